//! `fetch`: pages as Markdown, whole or in parts.
//!
//! For one page the text is the JSON that the connectors of `OpenAI` require from a tool of this
//! name: `id`, `title`, `text`, `url` and `metadata`, whose values are texts.

use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::{Called, Failure, Result, object, tokens_schema};
use crate::diagnostic::closest;
use crate::mcp::{Call, shortened};
use crate::release::pages::id_of;

/// How many pages one call returns.
const PAGES_MAX: usize = 10;
/// How many tokens an answer has if the client does not say.
const TOKENS: usize = 8_000;
const ID_BYTES_MAX: usize = 2_000;
/// How much text a part has at least, in bytes, so that every call makes progress.
const TEXT_BYTES_MIN: usize = 64;
/// Metadata that needs more than this part of an answer is left out.
const METADATA_SHARE: usize = 4;
/// The table of contents gets this part of the room for the text.
const CONTENTS_SHARE: usize = 4;

pub(super) fn definition() -> (&'static str, &'static str, Value, Value) {
    let id = "The id of a page from `search`, `grep` or `list_pages`, or its address; with `#anchor` the answer begins at that section.";
    let document = json!({
        "id": {"type": "string"},
        "title": {"type": "string"},
        "text": {"type": "string", "description": "Markdown."},
        "url": {"type": "string"},
        "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
        "start": {"type": "integer", "description": "Where `text` begins in the page, in bytes."},
        "end": {"type": "integer", "description": "Where `text` ends in the page."},
        "length": {"type": "integer", "description": "The length of the page."},
        "next": {"type": "integer", "description": "The `start` of the next part, if there is more."},
        "contents": {"type": "array", "description": "The headings of a page that is not complete. If not all fit, those from `start` on.", "items": object(json!({
            "heading": {"type": "string"},
            "level": {"type": "integer"},
            "start": {"type": "integer"},
        }), &["heading", "level", "start"])},
        "more_headings": {"type": "integer", "description": "How many headings follow the last one in `contents`. To list them, call with a `start` after that one."},
        "note": {"type": "string", "description": "What the page does not have."},
        "error": {"type": "string"},
    });
    let mut output = document.clone();
    output["documents"] =
        json!({"type": "array", "items": {"type": "object", "properties": document}});
    (
        "Read pages",
        "Returns pages of the {site} documentation as Markdown, by id or address. \
         A long page comes in parts: the answer has the page's headings with their positions, and \
         `next`, the `start` of the next part. Several pages at once with `ids`.",
        json!({
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": id},
                "ids": {"type": "array", "items": {"type": "string"}, "maxItems": PAGES_MAX, "description": "Several ids or addresses, instead of `id`."},
                "start": {"type": "integer", "minimum": 0, "description": "Where to begin in the page, in bytes: `next` or a `start` of an earlier answer."},
                "max_tokens": tokens_schema(TOKENS),
            },
        }),
        json!({"type": "object", "properties": output}),
    )
}

pub(super) fn call(call: &Call<'_>, arguments: &Arguments<'_>) -> Result<Called> {
    let mut ids = arguments.texts("ids", ID_BYTES_MAX)?;
    let is_list = !ids.is_empty();
    if let Some(id) = arguments.text("id", ID_BYTES_MAX)? {
        ids.insert(0, id);
    }
    let is_one = ids.len() == 1 && !is_list;
    let budget = arguments.budget(TOKENS)?;
    let start = arguments.number("start", 0, 0..=usize::MAX)?;
    match ids.len() {
        0 => {
            let sentence = "`id` is missing: the id or the address of a page. \
                            `list_pages` returns the ids of all pages.";
            return Err(Failure::Input(sentence.to_owned()));
        }
        count if count > PAGES_MAX => {
            return Err(Failure::Input(format!(
                "`ids` has {count} ids; one call returns at most {PAGES_MAX} pages."
            )));
        }
        _ => {}
    }
    if is_one {
        let document = Value::Object(document(call, ids[0], start, budget)?);
        return Ok(Called::new(document.to_string(), document));
    }
    let mut left = budget.saturating_sub(r#"{"documents":[]}"#.len());
    let mut documents = Vec::with_capacity(ids.len());
    for (nth, id) in ids.iter().enumerate() {
        // Bytes that one page does not need are left to the others.
        let share = left / (ids.len() - nth);
        let document = match document(call, id, start, share.saturating_sub(1)) {
            Ok(document) => document,
            Err(Failure::Input(error)) => {
                let error = json!({"id": shortened(id), "error": error});
                error.as_object().cloned().unwrap_or_default()
            }
            Err(rejected) => return Err(rejected),
        };
        let document = Value::Object(document);
        left = left.saturating_sub(document.to_string().len() + 1);
        documents.push(document);
    }
    let documents = json!({ "documents": documents });
    Ok(Called::new(documents.to_string(), documents))
}

/// Makes the document of a page, which has at most this many bytes of JSON, if that is enough for
/// its other members and [`TEXT_BYTES_MIN`] of its text.
fn document(
    call: &Call<'_>,
    asked: &str,
    start: usize,
    bytes_max: usize,
) -> Result<Map<String, Value>> {
    let server = call.server;
    let place = server.place(asked).ok_or_else(|| {
        Failure::Input(format!(
            "The address {} is not on this site. The site is at {}.",
            shortened(asked),
            server.address
        ))
    })?;
    let mut path = place.path.clone();
    let mut found = call.library.markdown(&path)?;
    if found.is_none()
        && let Some(to) = call.library.redirect(&path)?
        && let Some(to) = server.place(&to)
    {
        found = call.library.markdown(&to.path)?;
        path = to.path;
    }
    let Some(markdown) = found else {
        return Err(unknown(call, asked, &place.path));
    };
    let text = String::from_utf8_lossy(&markdown);
    // With a `start`, the anchor only repeats what the id of an earlier answer was.
    let anchor = place.anchor.as_deref().filter(|_| start == 0);
    let section = match anchor {
        None => None,
        Some(anchor) => call
            .library
            .section(&path, anchor)?
            .or_else(|| super::excerpt::section(&text, anchor)),
    };
    let note = anchor.filter(|_| section.is_none()).map(|anchor| {
        format!(
            "The page has no section #{}, so `text` begins at the start of the page.",
            shortened(anchor)
        )
    });
    let start = section.unwrap_or(start);
    if start > text.len() {
        return Err(Failure::Input(format!(
            "`start` is {start}, but the page {} has {} bytes.",
            id_of(&path),
            text.len()
        )));
    }
    let start = text.floor_char_boundary(start);
    let pages = call.library.pages()?;
    let listed = pages.get(id_of(&path));
    let heading = || {
        super::excerpt::headings(&text)
            .first()
            .map(|h| h.text.to_owned())
    };
    let title = match listed {
        Some(page) => page.title.to_string(),
        None => heading().unwrap_or_else(|| id_of(&path).to_owned()),
    };
    let mut metadata = Map::new();
    if let Some(page) = listed {
        let section = (!page.section.is_empty()).then(|| page.section.join(" > "));
        for (key, value) in [
            ("description", page.description.as_deref()),
            ("language", page.language.as_deref()),
            ("version", page.version.as_deref()),
            ("section", section.as_deref()),
        ] {
            metadata.extend(value.map(|value| (key.to_owned(), json!(value))));
        }
    }
    let mut document = Map::new();
    let mut put = |key: &str, value: Value| document.insert(key.to_owned(), value);
    put("id", json!(id_of(&path)));
    put("title", json!(title));
    put("text", json!(""));
    put("url", json!(server.page_url(&path)));
    let is_small = Value::Object(metadata.clone()).to_string().len() <= bytes_max / METADATA_SHARE;
    put(
        "metadata",
        Value::Object(if is_small { metadata } else { Map::new() }),
    );
    put("start", json!(start));
    put("end", json!(text.len()));
    put("length", json!(text.len()));
    if let Some(note) = note {
        put("note", json!(note));
    }
    // The room that is left beside the members so far.
    let room = |document: &Map<String, Value>| {
        let frame = Value::Object(document.clone()).to_string().len();
        bytes_max.saturating_sub(frame).max(TEXT_BYTES_MIN)
    };
    let rest = &text[start..];
    let fits = |room: usize| super::excerpt::fits_as_json(rest, room);
    if start == 0 && fits(room(&document)) == rest.len() {
        document.insert("text".to_owned(), json!(rest));
        return Ok(document);
    }
    let contents = super::excerpt::contents(&text, start, room(&document) / CONTENTS_SHARE);
    document.insert("contents".to_owned(), contents.listed.into());
    if contents.left_out > 0 {
        document.insert("more_headings".to_owned(), json!(contents.left_out));
    }
    if fits(room(&document)) == rest.len() {
        document.insert("text".to_owned(), json!(rest));
        return Ok(document);
    }
    document.insert("next".to_owned(), json!(text.len()));
    let part = super::excerpt::part(&text, start, fits(room(&document)));
    document.insert("text".to_owned(), json!(&text[part.clone()]));
    document.insert("end".to_owned(), json!(part.end));
    document.insert("next".to_owned(), json!(part.end));
    Ok(document)
}

fn unknown(call: &Call<'_>, asked: &str, path: &str) -> Failure {
    let asked = shortened(asked);
    let pages = match call.library.pages() {
        Ok(pages) => pages,
        Err(unread) => return unread.into(),
    };
    let ids = pages.pages.iter().map(|page| &*page.id);
    Failure::Input(match closest(path, ids) {
        Some(similar) => format!("There is no page {asked}. Did you mean {similar}?"),
        None => format!("There is no page {asked}. `list_pages` returns the ids of all pages."),
    })
}
