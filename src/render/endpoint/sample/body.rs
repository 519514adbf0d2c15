//! The body of a request.
//!
//! Sources: OpenAPI 3.1.1 §4.8.14.3 to §4.8.15 (files and forms); RFC 7578 (`multipart/form-data`);
//! WHATWG URL §5 (`application/x-www-form-urlencoded`).

use std::borrow::Cow;

use super::example::Sketch;
use super::literal::{in_one_line, json};
use crate::docs::openapi::{Media, Specification};
use crate::site::percent::encode_component;
use crate::syntax::{Data, Value as Json};

/// The path of a file in samples.
pub(super) const FILE: &str = "path/to/file";

/// The body of a request.
#[derive(Debug)]
pub(super) enum Body<'r> {
    /// A value of JSON.
    Json(Cow<'r, Json>),
    /// A text as it is sent.
    Text(String),
    /// The content of a file.
    File,
    /// The parts of a form. The client chooses the text that separates them, and names it in the
    /// media type.
    Parts(Vec<Part>),
}

/// A part of a form.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: String,
    /// Its text; `None` for a file.
    pub(super) text: Option<String>,
}

// === impl Body ===

impl<'r> Body<'r> {
    /// Makes the body from the first example of a media type.
    pub(super) fn of(media: &Media<'r>, sketch: Sketch<'r>) -> Option<Self> {
        let example = sketch.examples(media).into_iter().next();
        let Some((_, example)) = example else {
            let schema = media.schema.map(|schema| schema.value);
            let is_file =
                kind(media) == "application/octet-stream" || is_file(sketch.specification, schema);
            return is_file.then_some(Self::File);
        };
        if is_multipart(media) {
            let parts = parts(&example, media, sketch);
            return (!parts.is_empty()).then_some(Self::Parts(parts));
        }
        Some(match example.text() {
            _ if is_json(media) => Self::Json(example),
            Some(text) => Self::Text(text.to_owned()),
            None if is_url_encoded(media) && example.is_map() => Self::Text(url_encoded(&example)),
            None => Self::Text(json(&example)),
        })
    }

    /// Returns whether it has the content of a file.
    pub(super) fn has_file(&self) -> bool {
        match self {
            Self::File => true,
            Self::Parts(parts) => parts.iter().any(|part| part.text.is_none()),
            _ => false,
        }
    }
}

/// Returns whether a body is JSON (RFC 8259 §11, RFC 6839 §3.1).
pub(super) fn is_json(media: &Media<'_>) -> bool {
    media.kind.contains("json")
}

/// Returns whether a body is a form.
pub(super) fn is_form(media: &Media<'_>) -> bool {
    is_multipart(media) || is_url_encoded(media)
}

pub(super) fn is_multipart(media: &Media<'_>) -> bool {
    kind(media) == "multipart/form-data"
}

fn is_url_encoded(media: &Media<'_>) -> bool {
    kind(media) == "application/x-www-form-urlencoded"
}

/// Returns the media type without its parameters.
fn kind<'m>(media: &Media<'m>) -> &'m str {
    media.kind.split(';').next().unwrap_or_default().trim()
}

/// Returns whether a schema is the content of a file, or a list of files.
pub(in crate::render::endpoint) fn is_file(
    specification: &Specification,
    schema: Option<&Json>,
) -> bool {
    let is_content = |schema: &Json| {
        let text = |key| schema.get(key).and_then(Json::text);
        text("format") == Some("binary")
            || text("contentMediaType").is_some() && text("contentEncoding").is_none()
    };
    schema.is_some_and(|schema| {
        let items = schema.get("items");
        let items = items.and_then(|items| specification.resolve(items));
        is_content(schema) || items.is_some_and(is_content)
    })
}

/// Returns the fields of a form; each item of a list is a field (§4.8.15.1).
fn fields(object: &Json) -> impl Iterator<Item = (&str, &Json)> {
    object.members().iter().flat_map(|member| {
        let values = match &member.value.data {
            Data::List(items) => &items[..],
            _ => std::slice::from_ref(&member.value),
        };
        values.iter().map(move |value| (&*member.key, value))
    })
}

fn url_encoded(object: &Json) -> String {
    let pairs = fields(object).map(|(name, value)| {
        let value = encode_component(&in_one_line(value));
        format!("{}={value}", encode_component(name))
    });
    pairs.collect::<Vec<_>>().join("&")
}

fn parts(object: &Json, media: &Media<'_>, sketch: Sketch<'_>) -> Vec<Part> {
    let parts = fields(object).map(|(name, value)| {
        let schema = media.schema.map(|schema| schema.value);
        let schema = schema.and_then(|schema| sketch.field(schema, name));
        let is_file = is_file(sketch.specification, schema);
        Part {
            name: name.to_owned(),
            text: (!is_file).then(|| in_one_line(value)),
        }
    });
    parts.collect()
}
