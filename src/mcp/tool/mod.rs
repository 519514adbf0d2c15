//! The tools of a server: how they are listed, called and answered.
//!
//! Most clients know only tools, so tools return everything that resources return. Names are the
//! same on every site: a client distinguishes servers by its own label.
//!
//! An answer is bounded by tokens; [`BYTES_PER_TOKEN`] bytes of UTF-8 count as one. It has two
//! forms, the text and the structured content, and a client shows one of them to its model. So the
//! larger form counts. An answer has at least one result, or 64 bytes of a text, however few
//! tokens are allowed: so every call makes progress.
//! To get the rest, a client calls again with the `cursor` or the `start` of the answer. Bad input
//! is a result with `isError` and a sentence that helps, because a model reads results and not
//! protocol errors (2026-07-28, `server/tools`, "Error Handling").
//!
//! [`BYTES_PER_TOKEN`]: crate::release::pages::BYTES_PER_TOKEN

mod arguments;
mod excerpt;
mod fetch;
mod grep;
mod list_pages;
mod read_skill;
mod search;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::{Call, Outcome, Rejection, Server, quoted, shortened};
use crate::release::pages::{Page, Pages};
use arguments::Arguments;

/// The most tokens of an answer. Clients cut longer answers: Claude Code at 25,000.
pub const TOKENS_MAX: usize = 20_000;
/// The placeholder for the title of the site in definitions.
const SITE: &str = "{site}";
/// The beginning of the name of the search at the hosted service.
const ALIAS: &str = "search_";
/// The value of `language` and `version` that means all of them.
const ALL: &str = "all";

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Search,
    Fetch,
    ListPages,
    Grep,
    Skill,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
struct Called {
    text: String,
    /// JSON.
    structured: Option<String>,
    is_error: bool,
}

/// The bytes that are left for the two forms of an answer.
#[derive(Clone, Copy, Debug)]
struct BytesLeft {
    text: usize,
    structured: usize,
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq)]
enum Failure {
    /// The arguments are wrong, or name something that does not exist: a sentence for the model.
    Input(String),
    /// The call is rejected.
    Rejected(Rejection),
}

type Result<T, E = Failure> = std::result::Result<T, E>;

// === impl Tool ===

impl Tool {
    const ALL: [Self; 5] = [
        Self::Search,
        Self::Fetch,
        Self::ListPages,
        Self::Grep,
        Self::Skill,
    ];

    /// Returns the tools of a server, always in the same order.
    pub(super) fn listed(server: &Server<'_>) -> impl Iterator<Item = Self> {
        let (has_pages, has_skills) = (server.has_pages, !server.skills.is_empty());
        Self::ALL.into_iter().filter(move |tool| match tool {
            Self::Skill => has_skills,
            _ => has_pages,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Fetch => "fetch",
            Self::ListPages => "list_pages",
            Self::Grep => "grep",
            Self::Skill => "skill",
        }
    }

    /// Returns a line about it.
    pub(super) fn summary(self) -> &'static str {
        match self {
            Self::Search => "finds the pages and sections that answer a question.",
            Self::Fetch => "returns pages as Markdown, by id or address.",
            Self::ListPages => "lists the pages with their titles and descriptions.",
            Self::Grep => {
                "finds exact text: names, options, error messages, by regular expression."
            }
            Self::Skill => "returns a skill, which tells how to do a task.",
        }
    }

    /// Returns the definition (2026-07-28, `server/tools`, "Tool").
    fn definition(self) -> Value {
        let (title, description, input, output) = match self {
            Self::Search => search::definition(),
            Self::Fetch => fetch::definition(),
            Self::ListPages => list_pages::definition(),
            Self::Grep => grep::definition(),
            Self::Skill => read_skill::definition(),
        };
        json!({
            "name": self.name(),
            "title": title,
            "description": description,
            "inputSchema": input,
            "outputSchema": output,
            // A call reads a release, and releases never change. A call contacts no other system.
            "annotations": {
                "title": title,
                "readOnlyHint": true,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": false,
            },
        })
    }
}

/// Returns the name of a tool that exists. If a call had a result, its tool exists: another name
/// for the search is the name at the hosted service.
pub(super) fn known_name(name: &str, has_result: bool) -> Option<&'static str> {
    let mut names = Tool::ALL.into_iter().map(Tool::name);
    let known = names.find(|known| *known == name);
    let is_alias = has_result && name.starts_with(ALIAS);
    known.or_else(|| is_alias.then(|| Tool::Search.name()))
}

/// Returns whether a tool of this name, if it exists, is the search.
pub(super) fn is_search(name: &str) -> bool {
    name == Tool::Search.name() || name.starts_with(ALIAS)
}

/// The definitions as JSON, split at the placeholder for the title of the site.
static DEFINITIONS: LazyLock<Vec<(Tool, Vec<String>)>> = LazyLock::new(|| {
    let cut = |tool: Tool| {
        let text = tool.definition().to_string();
        (tool, text.split(SITE).map(str::to_owned).collect())
    };
    Tool::ALL.into_iter().map(cut).collect()
});

// === impl Call ===

impl Call<'_> {
    pub(super) fn tools(&self) -> Result<Outcome, Rejection> {
        self.first_page()?;
        Ok(self.kept_or("tools/list", || self.definitions()))
    }

    fn definitions(&self) -> String {
        let title = quoted(self.server.short_title());
        let title = &title[1..title.len() - 1];
        let mut out = String::from(r#""tools":["#);
        for (nth, tool) in Tool::listed(self.server).enumerate() {
            if nth > 0 {
                out.push(',');
            }
            let parts = DEFINITIONS.iter().find(|(known, _)| *known == tool);
            for (nth, part) in parts.iter().flat_map(|(_, parts)| parts).enumerate() {
                if nth > 0 {
                    out.push_str(title);
                }
                out.push_str(part);
            }
        }
        out.push(']');
        out
    }

    pub(super) fn call_tool(&self) -> Result<Outcome, Rejection> {
        let name = self.text("name")?;
        let is_named = |tool: &Tool| {
            tool.name() == name || *tool == Tool::Search && is_alias(self.server, name)
        };
        let tool = Tool::listed(self.server).find(is_named);
        let tool =
            tool.ok_or_else(|| Rejection::invalid(format!("Unknown tool: {}", shortened(name))))?;
        let none = Map::new();
        let arguments = match self.params.get("arguments") {
            None | Some(Value::Null) => &none,
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(Rejection::invalid("`arguments` must be an object.")),
        };
        let arguments = Arguments(arguments);
        let called = match tool {
            Tool::Search => search::call(self, &arguments),
            Tool::Fetch => fetch::call(self, &arguments),
            Tool::ListPages => list_pages::call(self, &arguments),
            Tool::Grep => grep::call(self, &arguments),
            Tool::Skill => read_skill::call(self, &arguments),
        };
        match called {
            Ok(called) => Ok(called.outcome()),
            Err(Failure::Input(sentence)) => Ok(Called::error(sentence).outcome()),
            Err(Failure::Rejected(rejection)) => Err(rejection),
        }
    }
}

/// Returns whether a name is the name of a site's search at the hosted service: `search_` and the
/// words of its title, or of its subdomain.
fn is_alias(server: &Server<'_>, name: &str) -> bool {
    let Some(slug) = name.strip_prefix(ALIAS) else {
        return false;
    };
    slug == snake_case(server.title) || slug == snake_case(server.name)
}

/// Returns the words of a text in lower case, joined by underscores. A word also begins with a
/// capital letter after a small one.
fn snake_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    for c in text.chars() {
        if c.is_alphanumeric() {
            let begins = !before.is_alphanumeric() || c.is_uppercase() && before.is_lowercase();
            if begins && !out.is_empty() {
                out.push('_');
            }
            out.extend(c.to_lowercase());
        }
        before = c;
    }
    out
}

// === impl BytesLeft ===

impl BytesLeft {
    /// Makes room for this many bytes in each form, without the bytes of its frame.
    fn of(bytes_max: usize, frame: usize) -> Self {
        let left = bytes_max.saturating_sub(frame);
        Self {
            text: left,
            structured: left,
        }
    }

    /// Takes the room for a result; returns whether there is enough. A comma follows the
    /// structured form of a result.
    fn take(&mut self, text: usize, structured: usize) -> bool {
        let left = (
            self.text.checked_sub(text),
            self.structured.checked_sub(structured + 1),
        );
        let (Some(text), Some(structured)) = left else {
            return false;
        };
        *self = Self { text, structured };
        true
    }

    /// Does the same, but the first result takes all the room if there is too little.
    fn take_or_fill(&mut self, text: usize, structured: usize, is_first: bool) -> bool {
        let has_room = self.take(text, structured);
        if !has_room && is_first {
            *self = Self::of(0, 0);
        }
        has_room || is_first
    }
}

// === impl Called ===

impl Called {
    fn new(text: String, structured: Value) -> Self {
        Self::written(text, structured.to_string())
    }

    /// Makes the result of a call from a text and JSON.
    fn written(text: String, structured: String) -> Self {
        Self {
            text,
            structured: Some(structured),
            is_error: false,
        }
    }

    fn error(sentence: String) -> Self {
        Self {
            text: sentence,
            structured: None,
            is_error: true,
        }
    }

    fn outcome(&self) -> Outcome {
        let structured = self.structured.as_ref();
        let structured = structured.map_or_else(String::new, |value| {
            format!(r#","structuredContent":{value}"#)
        });
        Outcome::Once(format!(
            r#""content":[{{"type":"text","text":{}}}]{structured},"isError":{}"#,
            quoted(&self.text),
            self.is_error,
        ))
    }
}

impl<T: Into<Rejection>> From<T> for Failure {
    fn from(rejection: T) -> Self {
        Self::Rejected(rejection.into())
    }
}

/// The pages that a call searches: pages of one language and one version, below one path.
#[derive(Clone, Copy, Debug)]
struct Scope<'s> {
    language: Option<&'s str>,
    version: Option<&'s str>,
    path: &'s str,
}

// === impl Scope ===

impl<'s> Scope<'s> {
    /// Reads `language`, `version` and `path`. Without these arguments, the call searches the
    /// default language and version.
    fn of(arguments: &Arguments<'s>, pages: &'s Pages) -> Result<Self> {
        let known = |part: fn(&Page) -> Option<&str>| pages.pages.iter().filter_map(part);
        let language = chosen(
            arguments.text("language", 64)?,
            pages.language.as_deref(),
            "language",
            known(|page| page.language.as_deref()),
        )?;
        let version = chosen(
            arguments.text("version", 200)?,
            pages.version.as_deref(),
            "version",
            known(|page| page.version.as_deref()),
        )?;
        let path = arguments.text("path", 1000)?.unwrap_or_default();
        Ok(Self {
            language,
            version,
            path: path.trim_matches('/'),
        })
    }

    /// Returns the pages, in the order of the navigation.
    fn pages(&self, pages: &'s Pages) -> Result<Vec<&'s Page>> {
        let matching: Vec<&Page> = pages.pages.iter().filter(|page| self.has(page)).collect();
        match matching.is_empty() && !self.path.is_empty() {
            true => Err(Failure::Input(format!(
                "There are no pages below the path {}.",
                shortened(self.path)
            ))),
            false => Ok(matching),
        }
    }

    fn has(&self, page: &Page) -> bool {
        let is_in = |wanted: Option<&str>, has: Option<&str>| {
            wanted.is_none_or(|wanted| has == Some(wanted))
        };
        let below = page.id.strip_prefix(self.path);
        is_in(self.language, page.language.as_deref())
            && is_in(self.version, page.version.as_deref())
            && below.is_some_and(|rest| {
                self.path.is_empty() || rest.is_empty() || rest.starts_with('/')
            })
    }
}

/// Chooses a language or a version; `None` means all of them.
fn chosen<'s>(
    wanted: Option<&'s str>,
    default: Option<&'s str>,
    what: &str,
    known: impl Iterator<Item = &'s str>,
) -> Result<Option<&'s str>> {
    match wanted {
        None => Ok(default),
        Some(ALL) => Ok(None),
        Some(wanted) => {
            let names = distinct(known);
            if names.contains(&wanted) {
                return Ok(Some(wanted));
            }
            Err(match names.is_empty() {
                true => Failure::Input(format!(
                    "This documentation has one {what}. Leave `{what}` out."
                )),
                false => unknown(what, wanted, &names, "\"all\" means all of them."),
            })
        }
    }
}

/// Returns the values of an iterator, each once.
fn distinct<'s>(values: impl Iterator<Item = &'s str>) -> Vec<&'s str> {
    let mut distinct: Vec<&str> = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

/// Says that the documentation does not have a language or a version, and which ones it has.
fn unknown(what: &str, wanted: &str, known: &[&str], advice: &str) -> Failure {
    let wanted = shortened(wanted);
    let known = known.join(", ");
    Failure::Input(format!(
        "There is no {what} \"{wanted}\". There are: {known}. {advice}"
    ))
}

/// The schemas of the arguments that several tools have.
fn scope_schemas() -> Map<String, Value> {
    let schemas = json!({
        "path": {"type": "string", "description": "Only pages whose path is this one or below it, for example `guides`."},
        "language": {"type": "string", "description": "A language tag such as `fr`. Without it: the default language; `all`: every language."},
        "version": {"type": "string", "description": "A version of the documentation. Without it: the default version; `all`: every version."},
    });
    match schemas {
        Value::Object(schemas) => schemas,
        _ => Map::new(),
    }
}

fn tokens_schema(default: usize) -> Value {
    json!({
        "type": "integer", "minimum": 1, "maximum": TOKENS_MAX, "default": default,
        "description": "The most tokens of the answer; 4 bytes count as one token. An answer has at least one result.",
    })
}

/// Makes the schema of an object with these properties.
fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

#[cfg(test)]
mod tests {
    use super::snake_case;

    #[test]
    fn names_are_written_as_the_hosted_service_writes_them() {
        for (title, name) in [
            ("bun", "bun"),
            ("Docs by LangChain", "docs_by_lang_chain"),
            ("FastMCP", "fast_mcp"),
            ("acme-docs", "acme_docs"),
            (" A  B!", "a_b"),
        ] {
            assert_eq!(snake_case(title), name);
        }
    }
}
