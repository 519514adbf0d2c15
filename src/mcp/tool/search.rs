//! `search`: the pages and sections that answer a question.
//!
//! The text is the JSON that the connectors of `OpenAI` require from a tool of this name:
//! `results`, each with `id`, `title` and `url`. It also has an excerpt, for clients that show only
//! the text to a model. An id is an argument for `fetch`: the page, with the anchor of its best
//! section.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::{BytesLeft, Called, Failure, Result, distinct, object, tokens_schema, unknown};
use crate::mcp::{Call, ReadError, Server};
use crate::release::pages::{Page, id_of};
use crate::search::{
    self, FOUND_MAX, LIMIT_MAX, QUESTION_BYTES_MAX, Question, SearchResult, Section,
};
use crate::site::language::primary;
use crate::site::percent::encode_component;

/// How many pages an answer has if the client does not say.
const PAGES: usize = 8;
/// How many tokens an answer has if the client does not say.
const TOKENS: usize = 4_000;
/// How long the excerpt of a section is.
const EXCERPT_BYTES_MAX: usize = 1_500;
const EXCERPT_BYTES_MIN: usize = 80;
/// How many bytes a page takes beside its excerpts, about.
const RESULT_BYTES: usize = 300;
/// The room for the members of an answer beside the pages.
const FRAME_BYTES: usize =
    r#"{"results":[],"total":1000,"elsewhere":true,"next_cursor":"1000"}"#.len();

pub(super) fn definition() -> (&'static str, &'static str, Value, Value) {
    let section = json!({
        "id": {"type": "string"},
        "url": {"type": "string"},
        "heading": {"type": "string"},
        "excerpt": {"type": "string"},
    });
    let result = json!({
        "id": {"type": "string", "description": "For `fetch`: the page and its best section."},
        "title": {"type": "string"},
        "url": {"type": "string"},
        "text": {"type": "string", "description": "An excerpt of the best section."},
        "breadcrumb": {"type": "array", "items": {"type": "string"}},
        "language": {"type": "string"},
        "version": {"type": "string"},
        "sections": {"type": "array", "items": object(section, &["id", "url", "excerpt"])},
    });
    (
        "Search",
        "Searches the {site} documentation, and returns the best pages with their sections and \
         excerpts. Use words of the question, or exact names such as options and error codes. \
         `fetch` returns a page whole.",
        json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "maxLength": QUESTION_BYTES_MAX},
                "limit": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": PAGES, "description": "The most pages in the answer."},
                "language": {"type": "string", "description": "A language tag such as `fr`. Without it: the default language."},
                "version": {"type": "string", "description": "A version of the documentation. Without it: the default version."},
                "cursor": {"type": "string", "description": "`next_cursor` of an earlier answer."},
                "max_tokens": tokens_schema(TOKENS),
            },
            "required": ["query"],
        }),
        object(
            json!({
                "results": {"type": "array", "items": object(result, &["id", "title", "url", "text"])},
                "total": {"type": "integer", "description": "How many pages were found, at most 1000."},
                "elsewhere": {"type": "boolean", "description": "Nothing was found in this language and version; the results are from other languages or versions."},
                "next_cursor": {"type": "string"},
            }),
            &["results", "total"],
        ),
    )
}

pub(super) fn call(call: &Call<'_>, arguments: &Arguments<'_>) -> Result<Called> {
    if !call.library.may_work() {
        return Err(ReadError::NotReady.into());
    }
    let budget = arguments.budget(TOKENS)?;
    let limit = arguments.number("limit", PAGES, 1..=LIMIT_MAX)?;
    let skip = match arguments.text("cursor", 20)? {
        None => 0,
        Some(cursor) => cursor
            .parse()
            .ok()
            .filter(|skip| *skip <= FOUND_MAX)
            .ok_or_else(|| {
                let sentence = "The cursor is not one of this search. Call again without a cursor.";
                Failure::Input(sentence.to_owned())
            })?,
    };
    // The structured form has the excerpt of the best section twice.
    let excerpt_bytes = (budget / limit).saturating_sub(RESULT_BYTES) / 2;
    let language = arguments.text("language", 64)?;
    let version = arguments.text("version", 200)?;
    check(call, language, version)?;
    let question = Question {
        limit,
        skip,
        language,
        version,
        excerpt_bytes: excerpt_bytes.clamp(EXCERPT_BYTES_MIN, EXCERPT_BYTES_MAX),
        ..Question::new(arguments.required("query", QUESTION_BYTES_MAX)?.trim())
    };
    let found = call.library.search(&question)?;
    let mut room = BytesLeft::of(budget, FRAME_BYTES);
    let mut brief = Vec::new();
    let mut results: Vec<String> = Vec::new();
    let mut further = Vec::new();
    for hit in &found.hits {
        let mut hit = Hit::of(call.server, hit);
        let others = hit.sections.split_off(hit.sections.len().min(1));
        let short = json_of(&hit.short());
        let mut whole = json_of(&hit);
        if !room.take(short.len() + 1, whole.len()) {
            if !results.is_empty() {
                break;
            }
            // The first page is always there; its excerpt is in `text` too.
            hit.sections.clear();
            whole = json_of(&hit);
            room = BytesLeft::of(0, 0);
        }
        brief.push(short);
        results.push(whole);
        further.push(others);
    }
    // Other sections of these pages come after the best section of each page.
    for (result, others) in results.iter_mut().zip(further) {
        for section in others {
            let section = json_of(&section);
            if room.take(0, section.len()) {
                add_section(result, &section);
            }
        }
    }
    Ok(answer(&found, skip, &brief, &results))
}

/// Adds a section to the JSON of a page, which ends with its sections; there is at least one.
fn add_section(page: &mut String, section: &str) {
    const END: &str = "]}";
    page.truncate(page.len() - END.len());
    page.push(',');
    page.push_str(section);
    page.push_str(END);
}

/// Rejects a language or a version that the documentation does not have. A documentation in one
/// language, or without versions, takes every value.
fn check(call: &Call<'_>, language: Option<&str>, version: Option<&str>) -> Result<()> {
    if language.is_none() && version.is_none() {
        return Ok(());
    }
    let pages = call.library.pages()?;
    let known = |part: fn(&Page) -> Option<&str>| distinct(pages.pages.iter().filter_map(part));
    let languages = known(|page| page.language.as_deref());
    let versions = known(|page| page.version.as_deref());
    let is_same = |one: &str, other: &str| primary(one).eq_ignore_ascii_case(primary(other));
    if let Some(wanted) = language
        && !languages.is_empty()
        && !languages.iter().any(|known| is_same(known, wanted))
    {
        let advice = "Without `language`, the default language is searched.";
        return Err(unknown("language", wanted, &languages, advice));
    }
    if let Some(wanted) = version
        && !versions.is_empty()
        && !versions.contains(&wanted)
    {
        let advice = "Without `version`, the default version is searched.";
        return Err(unknown("version", wanted, &versions, advice));
    }
    Ok(())
}

/// Writes the text of an answer, for models and connectors, and its structured form.
fn answer(found: &SearchResult, skip: usize, brief: &[String], results: &[String]) -> Called {
    let end = skip + results.len();
    let next = match !results.is_empty() && end < found.total {
        true => format!(r#","next_cursor":"{end}""#),
        false => String::new(),
    };
    let elsewhere = match found.is_elsewhere {
        true => r#","elsewhere":true"#,
        false => "",
    };
    let text = format!(r#"{{"results":[{}]{elsewhere}{next}}}"#, brief.join(","));
    let structured = format!(
        r#"{{"results":[{}],"total":{}{elsewhere}{next}}}"#,
        results.join(","),
        found.total
    );
    Called::written(text, structured)
}

fn json_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A page in the structured form.
#[derive(Serialize)]
struct Hit<'a> {
    id: String,
    title: Cow<'a, str>,
    url: String,
    text: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    breadcrumb: &'a [String],
    language: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    /// The last member: [`add_section`] adds to it.
    sections: Vec<Place<'a>>,
}

#[derive(Serialize)]
struct Place<'a> {
    id: String,
    url: String,
    excerpt: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    heading: Option<&'a str>,
}

/// A page in the text.
#[derive(Serialize)]
struct Short<'a> {
    id: &'a str,
    title: &'a str,
    url: &'a str,
    text: &'a str,
}

// === impl Hit ===

impl<'a> Hit<'a> {
    fn of(server: &Server<'_>, hit: &'a search::Hit) -> Self {
        let best = hit.sections.first();
        let (page, address) = (id_of(&hit.path), server.page_url(&hit.path));
        let place = |section: Option<&Section>| match section
            .and_then(|section| section.anchor.as_deref())
        {
            None => (page.to_owned(), address.clone()),
            Some(anchor) => (
                format!("{page}#{anchor}"),
                format!("{address}#{}", encode_component(anchor)),
            ),
        };
        let section = |section: &'a Section| {
            let (id, url) = place(Some(section));
            Place {
                id,
                url,
                excerpt: &section.excerpt.text,
                heading: section.heading.as_deref(),
            }
        };
        let (id, url) = place(best);
        let heading = best.and_then(|section| section.heading.as_deref());
        let title = match heading.filter(|heading| **heading != *hit.title) {
            Some(heading) => format!("{} › {heading}", hit.title).into(),
            None => hit.title.as_str().into(),
        };
        Self {
            id,
            title,
            url,
            text: best.map_or("", |section| section.excerpt.text.as_str()),
            breadcrumb: &hit.breadcrumb,
            language: &hit.language,
            version: hit.version.as_deref(),
            sections: hit.sections.iter().map(section).collect(),
        }
    }

    fn short(&self) -> Short<'_> {
        Short {
            id: &self.id,
            title: &self.title,
            url: &self.url,
            text: self.text,
        }
    }
}
