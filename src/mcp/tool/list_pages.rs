//! `list_pages`: the list of pages.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::{BytesLeft, Called, Failure, Result, Scope, object, scope_schemas, tokens_schema};
use crate::mcp::Call;
use crate::release::pages::Page;

/// How many pages an answer has.
const PAGES: usize = 200;
const PAGES_MAX: usize = 1000;
/// How many tokens an answer has if the client does not say.
const TOKENS: usize = 5_000;
/// The room for the members of an answer beside the pages: counts and a cursor.
const FRAME_BYTES: usize = 240;

pub(super) fn definition() -> (&'static str, &'static str, Value, Value) {
    let page = json!({
        "id": {"type": "string", "description": "For `fetch`."},
        "title": {"type": "string"},
        "description": {"type": "string"},
        "url": {"type": "string"},
        "language": {"type": "string"},
        "version": {"type": "string"},
        "tokens": {"type": "integer", "description": "The length of the page; 4 bytes count as one token."},
    });
    let mut input = scope_schemas();
    input.extend([
        (
            "limit".to_owned(),
            json!({"type": "integer", "minimum": 1, "maximum": PAGES_MAX, "default": PAGES}),
        ),
        (
            "cursor".to_owned(),
            json!({"type": "string", "description": "`next_cursor` of an earlier answer."}),
        ),
        ("max_tokens".to_owned(), tokens_schema(TOKENS)),
    ]);
    (
        "List pages",
        "Lists the pages of the {site} documentation in the order of its navigation, with ids, \
         titles and descriptions. Use it to see what the documentation covers.",
        json!({"type": "object", "properties": input}),
        object(
            json!({
                "pages": {"type": "array", "items": object(page, &["id", "title", "url", "tokens"])},
                "total": {"type": "integer", "description": "How many pages match."},
                "next_cursor": {"type": "string"},
            }),
            &["pages", "total"],
        ),
    )
}

pub(super) fn call(call: &Call<'_>, arguments: &Arguments<'_>) -> Result<Called> {
    let budget = arguments.budget(TOKENS)?;
    let limit = arguments.number("limit", PAGES, 1..=PAGES_MAX)?;
    let pages = call.library.pages()?;
    let scope = Scope::of(arguments, &pages)?;
    let matching = scope.pages(&pages)?;
    let start = match arguments.text("cursor", 2000)? {
        None => 0,
        Some(cursor) => after(&matching, cursor)?,
    };
    let mut room = BytesLeft::of(budget, FRAME_BYTES);
    let mut listed = Vec::new();
    let mut lines = String::new();
    for page in matching[start..].iter().take(limit) {
        let mut line = format!("- {}: {}", page.id, page.title);
        if let Some(description) = &page.description {
            line += &format!(" – {}", description.replace('\n', " "));
        }
        line.push('\n');
        let page = described(call, page);
        if !room.take_or_fill(line.len(), page.to_string().len(), listed.is_empty()) {
            break;
        }
        lines += &line;
        listed.push(page);
    }
    let total = matching.len();
    let end = start + listed.len();
    let mut text = format!("{} of {total} pages.\n", listed.len());
    let mut structured = json!({"pages": listed, "total": total});
    if let Some(last) = matching[..end].last().filter(|_| end < total) {
        structured["next_cursor"] = json!(last.id);
        writeln!(
            text,
            "For more, call list_pages with the cursor \"{}\".",
            last.id
        )
        .expect("a String takes every character");
    }
    Ok(Called::new(text + &lines, structured))
}

/// Returns where the list continues after the page that a cursor names.
fn after(pages: &[&Page], cursor: &str) -> Result<usize> {
    let at = pages.iter().position(|page| *page.id == *cursor);
    at.map(|at| at + 1).ok_or_else(|| {
        let sentence = "The cursor is not one of this list, or the documentation has changed. \
                        Call again without a cursor.";
        Failure::Input(sentence.to_owned())
    })
}

fn described(call: &Call<'_>, page: &Page) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| out.insert(key.to_owned(), value);
    put("id", json!(page.id));
    put("title", json!(page.title));
    if let Some(description) = &page.description {
        put("description", json!(description));
    }
    put("url", json!(call.server.page_url(page.path())));
    if let Some(language) = &page.language {
        put("language", json!(language));
    }
    if let Some(version) = &page.version {
        put("version", json!(version));
    }
    put("tokens", json!(page.tokens));
    Value::Object(out)
}
