//! The JSON Schema of `docs.json` for editors, made from the declarations.
//!
//! It allows unknown keys, as the check does: editors complete and describe keys and do not mark
//! keys that the service accepts. An error of the check is also an error of the schema if JSON
//! Schema can express it: wrong types, missing keys, rules N1 and N2.
//!
//! With `"lenient": true` N1 and N2 are only warnings, so each object of the navigation has two
//! definitions, and the root chooses.
//!
//! Sources: JSON Schema draft-07 (which editors read): validation §6 (assertions), §6.6 (`if`),
//! §10.1 (annotations).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::docs::config::Config;
use crate::docs::navigation::language;

use super::{Declared as _, Element, Field, Object, Shape, WEIGHT_MAX, WEIGHT_MIN, navigation};

/// Whether rules N1 and N2 are errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Strict,
    Lenient,
}

/// Writes definitions; `waiting` has the objects whose definitions are still missing.
struct Writer {
    mode: Mode,
    waiting: Vec<&'static Object>,
}

/// Returns the JSON Schema of `docs.json`.
#[must_use]
pub fn json_schema() -> Value {
    let mut definitions = Map::new();
    // An object with `$ref` is replaced by a file with any value.
    definitions.insert(
        "file".to_owned(),
        json!({ "type": "object", "properties": { "$ref": { "type": "string" } }, "required": ["$ref"] }),
    );
    for mode in [Mode::Strict, Mode::Lenient] {
        let mut writer = Writer {
            mode,
            waiting: vec![Config::OBJECT],
        };
        let mut seen = BTreeSet::new();
        while let Some(object) = writer.waiting.pop() {
            if seen.insert(object.noun()) {
                let definition = writer.definition(object);
                definitions.insert(mode.name(object), definition);
            }
        }
    }
    let root =
        |mode: Mode| json!({ "$ref": format!("#/definitions/{}", mode.name(Config::OBJECT)) });
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "docs.json",
        "if": { "properties": { "lenient": { "const": true } }, "required": ["lenient"] },
        "then": root(Mode::Lenient),
        "else": root(Mode::Strict),
        "definitions": definitions,
    })
}

// === impl Mode ===

impl Mode {
    /// Names the definition of an object.
    fn name(self, object: &Object) -> String {
        match self {
            Self::Strict => object.noun().to_owned(),
            Self::Lenient => format!("{} (lenient)", object.noun()),
        }
    }
}

// === impl Writer ===

impl Writer {
    fn definition(&mut self, object: &'static Object) -> Value {
        let mut properties = Map::new();
        for field in object.all_fields() {
            let mut value = self.shape(field.shape);
            // Draft-07 ignores the keys beside `$ref`.
            if value.get("$ref").is_some() {
                value = json!({ "allOf": [value] });
            }
            value["description"] = about(field).into();
            properties.insert(field.key.to_owned(), value);
        }
        let required = object.all_fields().filter(|field| field.required);
        let required: Vec<_> = required.map(|field| field.key).collect();
        let mut whole = json!({
            "type": "object",
            "description": object.about,
            "properties": properties,
            "required": required,
        });
        if let Some(rule) = self.one_kind(object) {
            whole["allOf"] = json!([rule]);
        }
        or_file(&whole)
    }

    /// Rules N1 and N2: `navigation` has one kind of children, any other element at most one,
    /// and none beside `href`. An empty list does not count as children.
    fn one_kind(&self, object: &'static Object) -> Option<Value> {
        if self.mode == Mode::Lenient {
            return None;
        }
        let is_root = std::ptr::eq(object, &navigation::NAVIGATION);
        let counts = |shape: Shape| match shape {
            Shape::Pages | Shape::Elements(_) | Shape::Unlisted(_) => true,
            Shape::Href => !is_root,
            _ => false,
        };
        let has_children = object
            .all_fields()
            .any(|field| matches!(field.shape, Shape::Pages | Shape::Elements(_)));
        // `global` has lists too, but they are not children.
        if !has_children || std::ptr::eq(object, &navigation::GLOBAL) {
            return None;
        }
        let empty = json!({ "enum": [[], ""] });
        let kinds = object.all_fields().filter(|field| counts(field.shape));
        let kinds: Vec<_> = kinds
            .map(|field| {
                json!({ "required": [field.key], "properties": { field.key: { "not": empty } } })
            })
            .collect();
        let none = json!({ "not": { "anyOf": kinds } });
        Some(match is_root {
            false => json!({ "anyOf": [none, { "oneOf": kinds }] }),
            // Its groups are generated from the endpoints.
            true => {
                let generated = json!({ "allOf": [none, { "required": ["openapi"] }] });
                json!({ "anyOf": [{ "oneOf": kinds }, generated] })
            }
        })
    }

    fn refer(&mut self, object: &'static Object) -> Value {
        self.waiting.push(object);
        json!({ "$ref": format!("#/definitions/{}", self.mode.name(object)) })
    }

    fn shape(&mut self, shape: Shape) -> Value {
        match shape {
            Shape::Text | Shape::Href | Shape::Page => json!({ "type": "string" }),
            Shape::Label | Shape::Title => json!({ "type": "string", "minLength": 1 }),
            Shape::Flag => json!({ "type": "boolean" }),
            Shape::Weight => {
                json!({ "type": "number", "minimum": WEIGHT_MIN, "maximum": WEIGHT_MAX })
            }
            Shape::OneOf(allowed) => json!({ "enum": allowed }),
            // An editor completes the listed codes and accepts the other spellings.
            Shape::Language => json!({ "anyOf": [
                { "enum": language::codes().collect::<Vec<_>>() },
                { "type": "string", "pattern": language::pattern() },
            ] }),
            Shape::Icon => json!({ "anyOf": [
                { "type": "string" },
                { "type": "object", "properties": {
                    "name": { "type": "string", "description": "The name of the icon" },
                    "library": { "type": "string", "description": "Its library; no effect here" },
                    "style": { "type": "string", "description": "Its style; no effect here" } } },
            ] }),
            Shape::OpenApi => {
                let one = json!({ "anyOf": [
                    { "type": "string" },
                    { "type": "object", "properties": {
                        "source": { "type": "string" }, "directory": { "type": "string" },
                        "overlays": { "type": "array", "description": "OpenAPI overlays; no effect here" } } },
                ] });
                json!({ "anyOf": [one, { "type": "array", "items": one }] })
            }
            Shape::Pages => {
                let group = self.refer(Element::Group.object());
                or_file(
                    &json!({ "type": "array", "items": { "anyOf": [{ "type": "string" }, group] } }),
                )
            }
            Shape::Elements(element) | Shape::Unlisted(element) => {
                let items = self.refer(element.object());
                or_file(&json!({ "type": "array", "items": items }))
            }
            Shape::Objects(object) => {
                let items = self.refer(object);
                or_file(&json!({ "type": "array", "items": items }))
            }
            Shape::Object(object) => self.refer(object),
            Shape::TextOr(object) => json!({ "anyOf": [{ "type": "string" }, self.refer(object)] }),
            Shape::Texts => {
                or_file(&json!({ "type": "object", "additionalProperties": { "type": "string" } }))
            }
            Shape::Described([], object) => self.refer(object),
            Shape::Described(types, object) => {
                let types = types.iter().map(|only| json!({ "type": only }));
                let all: Vec<_> = types.chain([self.refer(object)]).collect();
                json!({ "anyOf": all })
            }
            Shape::OfType([only]) | Shape::Ignored([only]) => json!({ "type": only }),
            Shape::OfType(types) | Shape::Ignored(types) => json!({ "type": types }),
        }
    }
}

/// Returns the description of a key, which says if it has no effect.
fn about(field: &Field) -> String {
    match field.effect || field.about.contains("no effect") {
        true => field.about.to_owned(),
        false => format!("{}; no effect here", field.about),
    }
}

fn or_file(value: &Value) -> Value {
    json!({ "anyOf": [value, { "$ref": "#/definitions/file" }] })
}

#[cfg(test)]
mod tests;
