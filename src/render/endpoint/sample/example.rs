//! Examples of bodies: those of the specification, or else one that is made from the schema.
//!
//! Sources: OpenAPI 3.1.1 §4.8.14 (media types), §4.8.19 (examples), §4.8.24 (schemas).

use std::borrow::Cow;

use super::super::{PAGE_BYTES_MAX, bytes};
use super::body::{is_file, is_form, is_json};
use super::literal::json;
use crate::docs::openapi::{Media, Parameter, Specification};
use crate::syntax::{self, Data, Diagnostics, Member, Value as Json};

/// How many examples of one body are shown.
const EXAMPLES_MAX: usize = 8;
/// How many levels an example has that is made from a schema, and how many fields an object of it.
const SKETCH_DEPTH_MAX: usize = 5;
const SKETCH_MEMBERS_MAX: usize = 24;
/// How many bytes a value of such an example counts, and a field that is looked at.
const VALUE_BYTES: usize = 24;
const MEMBER_BYTES: usize = 8;

/// An example of a body as a page shows it.
#[derive(Debug)]
pub(in crate::render::endpoint) struct Example<'m> {
    /// Its name, if it has one.
    pub(in crate::render::endpoint) name: Option<&'m str>,
    /// The language of its text.
    pub(in crate::render::endpoint) language: &'static str,
    /// Its text.
    pub(in crate::render::endpoint) text: String,
}

// === impl Example ===

impl<'m> Example<'m> {
    /// Writes a value as the body has it: a text as it is, unless the body is JSON.
    fn of(media: &Media<'_>, name: Option<&'m str>, value: &Json) -> Self {
        let (language, text) = match value.text() {
            Some(text) if !is_json(media) => (language(media), text.to_owned()),
            _ => ("json", json(value)),
        };
        Self {
            name,
            language,
            text,
        }
    }
}

/// Returns the language of a text that is not JSON.
fn language(media: &Media<'_>) -> &'static str {
    let known = ["xml", "html", "yaml", "csv"].into_iter();
    let mut known = known.filter(|language| media.kind.contains(language));
    known.next().unwrap_or("text")
}

/// Returns the examples that the specification has for a body, each with its name, up to a number of
/// bytes as they are written.
fn examples<'m>(
    specification: &'m Specification,
    media: &Media<'m>,
    mut room: usize,
) -> Vec<(Option<&'m str>, Cow<'m, Json>)> {
    let mut fits = |value: &Json| {
        let left = room.checked_sub(bytes(value));
        room = left.unwrap_or(room);
        left.is_some()
    };
    let all = stated(specification, media).into_iter();
    all.filter(|(_, value)| fits(value))
        .map(|(name, value)| (name, unquoted(media, value)))
        .collect()
}

/// Returns how many bytes the examples have that the specification has for a body.
pub(in crate::render::endpoint) fn written_bytes(
    specification: &Specification,
    media: &Media<'_>,
) -> usize {
    let all = stated(specification, media).into_iter();
    all.map(|(_, value)| bytes(value)).sum()
}

/// Returns the examples as they are written.
fn stated<'m>(
    specification: &'m Specification,
    media: &Media<'m>,
) -> Vec<(Option<&'m str>, &'m Json)> {
    let named = media.value.get("examples").map_or(&[][..], Json::members);
    let mut all: Vec<_> = named
        .iter()
        .filter_map(|member| {
            let title = specification.stated(&member.value, "summary");
            let name = title.and_then(Json::text).unwrap_or(&member.key);
            let value = specification.resolve(&member.value)?.get("value")?;
            Some((Some(name), value))
        })
        .take(EXAMPLES_MAX)
        .collect();
    if let Some(only) = media.value.get("example") {
        all.insert(0, (None, only));
    }
    // §4.8.24: the examples of the schema, if the media type has none.
    if all.is_empty() {
        let only = media.schema.and_then(|schema| {
            let stated = |key| specification.stated(schema.written, key);
            let first = || stated("examples")?.items().first();
            stated("example").or_else(first)
        });
        all.extend(only.map(|only| (None, only)));
    }
    all
}

/// Returns the value of an example of JSON. Authors write objects and lists as a text with JSON, so
/// such a text is read, unless the schema allows texts.
fn unquoted<'m>(media: &Media<'_>, value: &'m Json) -> Cow<'m, Json> {
    let kinds = media.schema.and_then(|schema| schema.value.get("type"));
    let is_text = |kind: &Json| kind.text() == Some("string");
    let allows_text =
        kinds.is_some_and(|kinds| is_text(kinds) || kinds.items().iter().any(is_text));
    let text = value.text().filter(|_| is_json(media) && !allows_text);
    text.and_then(read).map_or(Cow::Borrowed(value), Cow::Owned)
}

/// Reads a text that is an object or a list of JSON.
fn read(text: &str) -> Option<Json> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let mut diagnostics = Diagnostics::default();
    let file = diagnostics.files.add("example", text.into());
    let value = syntax::json::read(file, &mut diagnostics);
    value.filter(|_| diagnostics.count() == 0)
}

/// Returns the example that the specification has for a parameter: its own, or the first of its
/// named ones, or that of its media type.
pub(in crate::render::endpoint) fn parameter_example<'s>(
    specification: &'s Specification,
    parameter: &'s Json,
) -> Option<&'s Json> {
    let named = |holder: &'s Json| {
        let first = holder.get("examples")?.members().first()?;
        specification.resolve(&first.value)?.get("value")
    };
    let content = || Some(&parameter.get("content")?.members().first()?.value);
    let mut holders = [Some(parameter), content()].into_iter().flatten();
    holders.find_map(|holder| holder.get("example").or_else(|| named(holder)))
}

/// Returns the examples that the specification has for a body.
pub(in crate::render::endpoint) fn written_examples<'m>(
    specification: &'m Specification,
    media: &Media<'m>,
    room: usize,
) -> Vec<Example<'m>> {
    let all = examples(specification, media, room).into_iter();
    all.map(|(name, value)| Example::of(media, name, &value))
        .collect()
}

/// Makes examples of schemas, for bodies without one.
#[derive(Clone, Copy, Debug)]
pub(in crate::render::endpoint) struct Sketch<'s> {
    pub(super) specification: &'s Specification,
    /// The flag of fields that are left out (OpenAPI 3.1.1 §4.8.24): a request has none that is
    /// `readOnly`, a response none that is `writeOnly`.
    pub(super) left_out: &'static str,
    /// Whether objects have their required fields only.
    pub(super) is_required_only: bool,
    /// How many bytes an example may have, about.
    pub(super) room: usize,
}

// === impl Sketch ===

impl<'s> Sketch<'s> {
    /// Makes examples of the bodies of requests.
    pub(in crate::render::endpoint) fn request(specification: &'s Specification) -> Self {
        Self {
            specification,
            left_out: "readOnly",
            is_required_only: false,
            room: PAGE_BYTES_MAX,
        }
    }

    /// Makes examples of about as many bytes.
    pub(in crate::render::endpoint) fn within(self, room: usize) -> Self {
        Self { room, ..self }
    }

    /// Makes examples of the bodies of responses.
    pub(in crate::render::endpoint) fn response(specification: &'s Specification) -> Self {
        Self {
            left_out: "writeOnly",
            ..Self::request(specification)
        }
    }

    /// Returns the examples of a body, or an example that is made from its schema.
    pub(in crate::render::endpoint) fn shown<'m>(self, media: &Media<'m>) -> Vec<Example<'m>>
    where
        's: 'm,
    {
        let all = self.examples(media).into_iter();
        all.map(|(name, value)| Example::of(media, name, &value))
            .collect()
    }

    /// Returns the same as values.
    pub(super) fn examples<'m>(self, media: &Media<'m>) -> Vec<(Option<&'m str>, Cow<'m, Json>)>
    where
        's: 'm,
    {
        let mut all = examples(self.specification, media, self.room);
        if all.is_empty() && (is_json(media) || is_form(media)) {
            let made = media.schema.and_then(|schema| self.made(schema.written));
            all.extend(made.map(|made| (None, Cow::Owned(made))));
        }
        all
    }

    /// Returns the example of a parameter, or one that is made from its schema.
    pub(super) fn parameter(self, parameter: &Parameter<'_>) -> Option<Json> {
        let written = parameter_example(self.specification, parameter.value);
        let written = written.filter(|value| bytes(value) <= self.room).cloned();
        written.or_else(|| self.made(parameter.schema?.written))
    }

    /// Makes an example of a schema.
    fn made(self, written: &Json) -> Option<Json> {
        self.of(written, 0, &mut self.room.clone())
    }

    /// Returns the schema of a field of an object.
    pub(super) fn field<'m>(self, schema: &'m Json, name: &str) -> Option<&'m Json>
    where
        's: 'm,
    {
        let mut parts = self.parts(schema);
        let written = parts.find_map(|part| part.get("properties")?.get(name))?;
        self.specification.resolve(written)
    }

    /// Returns the parts of a schema: those of `allOf`, then itself.
    fn parts<'m>(self, schema: &'m Json) -> impl Iterator<Item = &'m Json>
    where
        's: 'm,
    {
        let parts = schema.get("allOf").map_or(&[][..], Json::items).iter();
        let parts = parts.filter_map(move |part| self.specification.resolve(part));
        parts.chain([schema])
    }

    /// Makes an example of a schema: its own examples, defaults and first values, else a value of
    /// each type.
    ///
    /// It is `None` for a value deeper than [`SKETCH_DEPTH_MAX`], for a schema without a type, and
    /// where there is no room left.
    fn of(self, written: &Json, depth: usize, room: &mut usize) -> Option<Json> {
        *room = room.checked_sub(VALUE_BYTES)?;
        let stated = |key| self.specification.stated(written, key);
        let first = |key| stated(key).map_or(&[][..], Json::items).first();
        let mut keys = ["example", "const", "default"].into_iter();
        let schema = self.specification.resolve(written)?;
        if let Some(stated) = keys
            .find_map(stated)
            .or_else(|| first("examples"))
            .or_else(|| first("enum"))
        {
            *room = room.checked_sub(bytes(stated))?;
            return Some(stated.clone());
        }
        if depth >= SKETCH_DEPTH_MAX {
            return None;
        }
        let value = |data| Json {
            span: schema.span,
            data,
        };
        if let Some(part) = ["oneOf", "anyOf"].into_iter().find_map(first) {
            return self.of(part, depth, room);
        }
        let kinds = schema.get("type");
        let kind = kinds.and_then(|kind| kind.text().or_else(|| kind.items().first()?.text()));
        if let Some(items) = schema.get("items") {
            return Some(value(Data::List(vec![self.of(items, depth + 1, room)?])));
        }
        let members = self.members(schema, depth, room);
        if !members.is_empty() {
            return Some(value(Data::Map(members)));
        }
        // A file may have no type.
        let kind = kind.or_else(|| is_file(self.specification, Some(schema)).then_some("string"));
        let format = schema.get("format").and_then(Json::text);
        Some(value(match (kind?, format) {
            ("string", format) => Data::Text(
                match format {
                    Some("date-time") => "2026-01-31T12:00:00Z",
                    Some("date") => "2026-01-31",
                    Some("email") => "name@example.com",
                    Some("uri" | "url") => "https://example.com",
                    Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
                    _ => "string",
                }
                .into(),
            ),
            ("integer" | "number", _) => {
                let least = schema.get("minimum").and_then(Json::scalar);
                Data::Number(least.unwrap_or("1").into())
            }
            ("boolean", _) => Data::Flag(true),
            ("null", _) => Data::Null,
            ("object", _) => Data::Map(Vec::new()),
            _ => return None,
        }))
    }

    /// Makes the fields of an object; those of `allOf` come first.
    fn members(self, schema: &Json, depth: usize, room: &mut usize) -> Vec<Member> {
        let mut members: Vec<Member> = Vec::new();
        for part in self.parts(schema) {
            let required = part.get("required").map_or(&[][..], Json::items);
            for member in part.get("properties").map_or(&[][..], Json::members) {
                let Some(left) = room.checked_sub(MEMBER_BYTES) else {
                    return members;
                };
                *room = left;
                if members.len() >= SKETCH_MEMBERS_MAX {
                    return members;
                }
                let is_required = || required.iter().any(|name| name.text() == Some(&member.key));
                let flag = self.specification.stated(&member.value, self.left_out);
                let flag = flag.and_then(Json::flag);
                let is_left_out = flag == Some(true) || self.is_required_only && !is_required();
                let is_known = members.iter().any(|known| known.key == member.key);
                if is_left_out || is_known {
                    continue;
                }
                if let Some(value) = self.of(&member.value, depth + 1, room) {
                    members.push(Member {
                        value,
                        ..member.clone()
                    });
                }
            }
        }
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::openapi::Lookup;

    #[test]
    fn an_example_is_made_from_a_schema() {
        let text = r##"{"openapi": "3.1.0", "info": {"title": "Pay", "version": "1"}, "paths": {}, "components": {"schemas": {
            "Node": {"type": "object", "required": ["kind"], "properties": {"id": {"type": "string", "format": "uuid"},
              "secret": {"type": "string", "writeOnly": true}, "made": {"type": "boolean", "readOnly": true}, "kind": {"enum": ["a", "b"]},
              "size": {"type": "integer", "minimum": 3}, "when": {"type": ["string", "null"], "format": "date"},
              "tags": {"type": "array", "items": {"type": "string", "example": "red"}},
              "next": {"$ref": "#/components/schemas/Node"}, "other": {}}}}}}"##;
        let mut diagnostics = crate::syntax::Diagnostics::default();
        let file = diagnostics.files.add("a.json", text.into());
        let root = crate::syntax::json::read(file, &mut diagnostics).unwrap();
        let specification = Specification {
            path: "a.json".into(),
            title: "Pay".into(),
            endpoints: Vec::new(),
            root,
            from_page: false,
            lookup: Lookup::default(),
        };
        let node = specification.named_schema("Node").unwrap();
        let made = |sketch: Sketch<'_>| -> serde_json::Value {
            serde_json::from_str(&json(&sketch.made(node).unwrap())).unwrap()
        };
        let response = made(Sketch::response(&specification));
        assert_eq!(
            (&response["secret"], &response["made"]),
            (&serde_json::Value::Null, &true.into())
        );
        let required = Sketch {
            is_required_only: true,
            ..Sketch::request(&specification)
        };
        assert_eq!(made(required), serde_json::json!({"kind": "a"}));
        let made = made(Sketch::request(&specification));
        assert_eq!(
            (&made["secret"], &made["made"]),
            (&"string".into(), &serde_json::Value::Null)
        );
        assert_eq!(made["kind"], "a");
        assert_eq!(made["size"], 3);
        assert_eq!(made["when"], "2026-01-31");
        assert_eq!(made["tags"], serde_json::json!(["red"]));
        assert_eq!(made["next"]["next"]["kind"], "a");
        assert_eq!(made.get("other"), None);
        let depth = std::iter::successors(Some(&made), |node| node.get("next")).count();
        assert_eq!(depth, SKETCH_DEPTH_MAX);
    }
}
