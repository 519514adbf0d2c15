//! The tools of the model: they read the built documentation, and nothing else.
//!
//! Every tool is a function of the material and the search index of the release. The two tools that
//! submit something are answered by the conversation.

use bytes::Bytes;
use serde_json::{Value, json};

use super::wire::Tool;
use crate::search::{Index, Question};
use crate::skills::written::{Draft, SECTIONS};
use crate::skills::{Material, SourceText};

/// The most pages in one list.
const PAGES_MAX: usize = 150;
/// The longest part of a page that is read at once, in bytes.
const PART_BYTES_MAX: usize = 16_000;
/// The most results of a search.
const RESULTS_MAX: usize = 10;
/// The longest excerpt of a result, in bytes.
const EXCERPT_BYTES: usize = 500;

pub(super) const SUBMIT_PLAN: &str = "submit_plan";
pub(super) const SUBMIT_DRAFT: &str = "submit_draft";

/// The tools that read.
#[derive(Debug)]
pub(super) struct Library<'m> {
    material: &'m Material,
    index: Option<Index>,
    file: Bytes,
    /// How many bytes may still be read.
    left: usize,
    pub(super) uses: Uses,
}

/// How often each kind of tool was used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Uses {
    pub(super) pages: usize,
    pub(super) searches: usize,
    pub(super) operations: usize,
}

/// The plan of the model.
#[derive(Clone, Debug, serde::Deserialize)]
pub(super) struct Plan {
    pub(super) tasks: Vec<String>,
    pub(super) pages: Vec<String>,
}

/// Lists all tools.
pub(super) fn tools() -> Vec<Tool> {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let object = |properties: Value, required: &[&str]| json!({ "type": "object", "properties": properties, "required": required });
    let statement = object(
        json!({
            "text": text("One line of words, emphasis and code."),
            "page": text("The path of the page that says it."),
            "quote": text("Consecutive words of that page, exactly as they are there."),
        }),
        &["text", "page", "quote"],
    );
    let item = object(
        json!({
            "kind": { "type": "string", "enum": ["heading", "text", "bullet", "step", "code"] },
            "text": text("The text, or the lines of code."),
            "language": text("The language of code."),
            "page": text("The path of the page. A heading has none."),
            "quote": text("Words of that page. Code and headings have none."),
        }),
        &["kind", "text"],
    );
    let mut draft = serde_json::Map::new();
    draft.insert("description".to_owned(), statement.clone());
    draft.insert("about".to_owned(), statement);
    for (key, _) in SECTIONS {
        let list = json!({ "type": "array", "items": item });
        draft.insert(key.to_owned(), list);
    }
    let keys: Vec<&str> = ["description", "about"]
        .into_iter()
        .chain(SECTIONS.map(|(key, _)| key))
        .collect();
    vec![
        Tool {
            name: "read_generated_file",
            description: "Reads the file that was generated without a model.",
            schema: object(json!({}), &[]),
        },
        Tool {
            name: "list_pages",
            description: "Lists pages with path, group, title, what they are about, and their size in bytes.",
            schema: object(
                json!({ "from": { "type": "integer", "description": "How many pages to skip." } }),
                &[],
            ),
        },
        Tool {
            name: "read_page",
            description: "Reads a part of a page in Markdown. The answer says where the next part begins.",
            schema: object(
                json!({
                    "page": text("The path of the page."),
                    "from": { "type": "integer", "description": "The byte at which the part begins." },
                }),
                &["page"],
            ),
        },
        Tool {
            name: "search",
            description: "Searches all pages. Gives the best pages with excerpts.",
            schema: object(json!({ "query": text("Words.") }), &["query"]),
        },
        Tool {
            name: "read_operation",
            description: "Reads the page about an operation of the API. Without `operation` it lists all operations.",
            schema: object(
                json!({ "operation": text("Method and path, such as `POST /v1/charges`.") }),
                &[],
            ),
        },
        Tool {
            name: SUBMIT_PLAN,
            description: "Submits the plan. Call it once, before the first draft.",
            schema: object(
                json!({
                    "tasks": { "type": "array", "items": text("What an agent wants to do with the product.") },
                    "pages": { "type": "array", "items": text("The path of a page that you use.") },
                }),
                &["tasks", "pages"],
            ),
        },
        Tool {
            name: SUBMIT_DRAFT,
            description: "Submits the whole draft. It is checked; the answer has the problems.",
            schema: object(Value::Object(draft), &keys),
        },
    ]
}

/// Reads a plan.
pub(super) fn plan(material: &Material, input: Value) -> Result<Plan, String> {
    let plan: Plan = serde_json::from_value(input).map_err(|error| error.to_string())?;
    let unknown = plan.pages.iter().find(|page| material.page(page).is_none());
    if let Some(unknown) = unknown {
        return Err(format!("{unknown:?} is no page of the documentation"));
    }
    if plan.tasks.is_empty() || plan.pages.is_empty() {
        return Err("a plan names at least one task and one page".to_owned());
    }
    Ok(plan)
}

/// Reads a draft.
pub(super) fn draft(input: Value) -> Result<Draft, String> {
    // Some models write the list or the whole draft as a text.
    serde_json::from_value(input).map_err(|error| format!("it is not a draft: {error}"))
}

// === impl Library ===

impl<'m> Library<'m> {
    pub(super) fn new(material: &'m Material, file: Bytes, read_bytes: usize) -> Self {
        let index = Index::open(&file)
            .inspect_err(
                |error| log::warn!(target: "writer", "cannot open the search index: {error}"),
            )
            .ok();
        Self {
            material,
            index,
            file,
            left: read_bytes,
            uses: Uses::default(),
        }
    }

    /// Calls a tool that reads.
    pub(super) fn call(&mut self, name: &str, input: &Value) -> Result<String, String> {
        if self.left == 0 {
            let why = "you have read as much as is allowed; go on with what you know";
            return Err(why.to_owned());
        }
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        let from = input.get("from").and_then(Value::as_u64).unwrap_or(0);
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let answer = match name {
            "read_generated_file" => json!({ "text": self.material.skill }),
            "list_pages" => self.list(from),
            "read_page" => {
                self.uses.pages += 1;
                self.read(text("page").ok_or("`page` is missing")?, from)?
            }
            "search" => {
                self.uses.searches += 1;
                self.search(text("query").ok_or("`query` is missing")?)?
            }
            "read_operation" => {
                self.uses.operations += 1;
                self.operation(text("operation").unwrap_or_default())?
            }
            _ => {
                let names = tools().iter().map(|tool| tool.name).collect::<Vec<_>>();
                return Err(format!(
                    "there is no such tool; the tools: {}",
                    names.join(", ")
                ));
            }
        };
        let answer = answer.to_string();
        self.left = self.left.saturating_sub(answer.len());
        Ok(answer)
    }

    fn list(&self, from: usize) -> Value {
        let pages = self.material.pages.iter().skip(from).take(PAGES_MAX);
        let pages: Vec<Value> = pages
            .map(|page| {
                json!({
                    "page": page.path,
                    "group": page.group,
                    "title": page.title,
                    "about": page.about,
                    "operation": page.endpoint,
                    "bytes": page.text.len(),
                })
            })
            .collect();
        let end = from.saturating_add(pages.len());
        let next = (end < self.material.pages.len()).then_some(end);
        json!({ "pages": pages, "next": next })
    }

    fn read(&self, path: &str, from: usize) -> Result<Value, String> {
        let page = self
            .material
            .page(path)
            .ok_or("there is no such page; `list_pages` lists all")?;
        Ok(part(page, from))
    }

    fn search(&self, query: &str) -> Result<Value, String> {
        let index = self.index.as_ref().ok_or("there is no search index")?;
        let texts = |path: &str, range: std::ops::Range<u64>| {
            let text = &self.material.page(path)?.text;
            let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(text.len());
            let (start, end) = (place(range.start), place(range.end));
            Some(Bytes::copy_from_slice(text.as_bytes().get(start..end)?))
        };
        let question = Question {
            limit: RESULTS_MAX,
            excerpt_bytes: EXCERPT_BYTES,
            ..Question::new(query)
        };
        let found = index
            .search(&self.file, &texts, &question)
            .map_err(|_damaged| "the search index cannot be read")?;
        // A page of another version or language is not in the material.
        let known = found.hits.iter().filter_map(|hit| {
            let page = self.material.page(&hit.path)?;
            let sections: Vec<Value> = hit
                .sections
                .iter()
                .map(|section| json!({ "heading": section.heading, "excerpt": section.excerpt.text }))
                .collect();
            Some(json!({ "page": page.path, "title": page.title, "sections": sections }))
        });
        Ok(json!({ "results": known.collect::<Vec<_>>() }))
    }

    fn operation(&self, wanted: &str) -> Result<Value, String> {
        let operations = || {
            let pages = self.material.pages.iter();
            pages.filter_map(|page| Some((page.endpoint.as_deref()?, page)))
        };
        let wanted = wanted.trim();
        if wanted.is_empty() {
            let list: Vec<Value> = operations()
                .take(PAGES_MAX)
                .map(|(endpoint, page)| json!({ "operation": endpoint, "page": page.path }))
                .collect();
            return Ok(json!({ "operations": list }));
        }
        let found = operations().find(|(endpoint, _)| endpoint.eq_ignore_ascii_case(wanted));
        let (_, page) =
            found.ok_or("there is no such operation; without `operation` all are listed")?;
        Ok(part(page, 0))
    }
}

/// Returns a part of a page.
fn part(page: &SourceText, from: usize) -> Value {
    let text = &page.text;
    let start = text.ceil_char_boundary(from.min(text.len()));
    let end = text.floor_char_boundary((start + PART_BYTES_MAX).min(text.len()));
    let next = (end < text.len()).then_some(end);
    json!({
        "page": page.path,
        "title": page.title,
        "text": &text[start..end],
        "next": next,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Document, Part, write};

    fn material() -> Material {
        let page = |path: &str, endpoint: Option<&str>, text: &str| SourceText {
            path: path.to_owned(),
            title: path.to_owned(),
            endpoint: endpoint.map(str::to_owned),
            text: text.to_owned(),
            ..SourceText::default()
        };
        Material {
            pages: vec![
                page("/", None, "# Home\n\nWelcome.\n"),
                page(
                    "/charge",
                    Some("POST /charges"),
                    "# Charge\n\nA card is charged.\n",
                ),
                page("/long", None, &"é".repeat(PART_BYTES_MAX)),
            ],
            skill: "# Generated\n".into(),
            ..Material::default()
        }
    }

    fn index(material: &Material) -> Bytes {
        let documents = material.pages.iter().map(|page| Document {
            path: page.path.trim_start_matches('/'),
            title: &page.title,
            breadcrumb: Vec::new(),
            keywords: Vec::new(),
            description: None,
            boost: None,
            markdown: &page.text,
            headings: Vec::new(),
        });
        let part = Part {
            language: "en",
            version: None,
            is_default: true,
            documents: documents.collect(),
        };
        write(&[part]).into()
    }

    #[test]
    fn the_tools_read_the_pages_and_their_search_index() {
        let material = material();
        let mut library = Library::new(&material, index(&material), 1 << 20);
        let mut call = |name: &str, input: Value| -> Value {
            serde_json::from_str(&library.call(name, &input).unwrap()).unwrap()
        };
        let generated = call("read_generated_file", json!({}));
        assert_eq!(generated["text"], "# Generated\n");
        let list = call("list_pages", json!({ "from": 1 }));
        assert_eq!(list["pages"][0]["operation"], "POST /charges");
        assert_eq!(list["next"], Value::Null);
        let part = call("read_page", json!({ "page": "/long", "from": 1 }));
        let text = part["text"].as_str().unwrap();
        assert!(text.len() <= PART_BYTES_MAX && text.starts_with('é'));
        let next = part["next"].as_u64().unwrap();
        let rest = call("read_page", json!({ "page": "/long", "from": next }));
        assert_eq!(rest["next"], Value::Null);
        let found = call("search", json!({ "query": "card charged" }));
        assert_eq!(found["results"][0]["page"], "/charge");
        let excerpt = &found["results"][0]["sections"][0]["excerpt"];
        assert!(
            excerpt.as_str().unwrap().contains("card is charged"),
            "{found}"
        );
        let operation = call("read_operation", json!({ "operation": "post /charges" }));
        assert_eq!(operation["page"], "/charge");
        let operations = call("read_operation", json!({}));
        assert_eq!(operations["operations"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn a_wrong_call_is_answered_and_reading_is_limited() {
        let material = material();
        let mut library = Library::new(&material, Bytes::from_static(b"damaged"), 40_000);
        for (name, input, expected) in [
            (
                "delete_page",
                json!({}),
                "there is no such tool; the tools: read_generated_file, list_pages",
            ),
            ("read_page", json!({}), "`page` is missing"),
            ("read_page", json!({ "page": 7 }), "`page` is missing"),
            (
                "read_page",
                json!({ "page": "/none" }),
                "there is no such page",
            ),
            (
                "search",
                json!({ "query": "x" }),
                "there is no search index",
            ),
            (
                "read_operation",
                json!({ "operation": "GET /x" }),
                "there is no such operation",
            ),
        ] {
            let refused = library.call(name, &input).unwrap_err();
            assert!(refused.starts_with(expected), "{name}: {refused}");
        }
        let long = json!({ "page": "/long" });
        let read = (0..9).take_while(|_| library.call("read_page", &long).is_ok());
        assert_eq!(read.count(), 3);
    }
}
