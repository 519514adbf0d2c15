//! The JSON Schema of `docs.json`, for editors: made from the table.
//!
//! It allows unknown keys, as the check does; an editor then completes and describes keys
//! without marking what the service accepts.
//!
//! Sources: JSON Schema draft-07 (what editors read), §6 (assertions), §10.1 (annotations).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::docs::navigation::language;

use super::table::DOCS;
use super::{Element, Object, Shape};

/// Returns the JSON Schema of `docs.json`.
#[must_use]
pub fn json_schema() -> Value {
    let mut definitions = Map::new();
    let mut waiting = vec![&DOCS];
    let mut seen = BTreeSet::new();
    while let Some(object) = waiting.pop() {
        if seen.insert(object.noun()) {
            definitions.insert(object.noun().to_owned(), definition(object, &mut waiting));
        }
    }
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "docs.json",
        "$ref": format!("#/definitions/{}", DOCS.noun()),
        "definitions": definitions,
    })
}

fn definition(object: &'static Object, waiting: &mut Vec<&'static Object>) -> Value {
    let mut properties = Map::new();
    for field in object.fields {
        let mut value = shape(field.shape, waiting);
        // Draft-07 ignores what stands beside `$ref`.
        if value.get("$ref").is_some() {
            value = json!({ "allOf": [value] });
        }
        value["description"] = field.about.into();
        properties.insert(field.key.to_owned(), value);
    }
    let required = object.fields.iter().filter(|field| field.required);
    let required: Vec<_> = required.map(|field| field.key).collect();
    let whole = json!({
        "type": "object",
        "description": object.about,
        "properties": properties,
        "required": required,
    });
    // `$ref` stands for a file, whatever the object.
    let file = json!({ "type": "object", "properties": { "$ref": { "type": "string" } }, "required": ["$ref"] });
    json!({ "anyOf": [whole, file] })
}

fn shape(shape: Shape, waiting: &mut Vec<&'static Object>) -> Value {
    let mut refer = |object: &'static Object| {
        waiting.push(object);
        json!({ "$ref": format!("#/definitions/{}", object.noun()) })
    };
    match shape {
        Shape::Text | Shape::Href | Shape::Page => json!({ "type": "string" }),
        Shape::Label | Shape::Title => json!({ "type": "string", "minLength": 1 }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::OneOf(allowed) => json!({ "enum": allowed }),
        Shape::Language => json!({ "enum": language::codes().collect::<Vec<_>>() }),
        Shape::Icon => json!({ "type": ["string", "object"] }),
        Shape::OpenApi => {
            let one = json!({ "anyOf": [
                { "type": "string" },
                { "type": "object", "properties": {
                    "source": { "type": "string" }, "directory": { "type": "string" } } },
            ] });
            json!({ "anyOf": [one, { "type": "array", "items": one }] })
        }
        Shape::Pages => {
            json!({ "type": "array", "items": { "anyOf": [{ "type": "string" }, refer(Element::Group.object())] } })
        }
        Shape::Elements(element) | Shape::Unlisted(element) => {
            json!({ "type": "array", "items": refer(element.object()) })
        }
        Shape::Objects(object) => {
            json!({ "anyOf": [{ "type": "array", "items": refer(object) }, { "type": "object" }] })
        }
        Shape::Object(object) => refer(object),
        Shape::TextOr(object) => json!({ "anyOf": [{ "type": "string" }, refer(object)] }),
        Shape::Texts => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Shape::Any | Shape::Ignored => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_has_its_definition() {
        let schema = json_schema();
        let definitions = schema["definitions"].as_object().unwrap();
        let text = schema.to_string();
        for part in text.split("\"#/definitions/").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(definitions.contains_key(name), "{name}");
        }
    }

    #[test]
    fn the_keys_of_a_group_are_those_of_the_table() {
        let schema = json_schema();
        let properties = &schema["definitions"]["group"]["anyOf"][0]["properties"];
        assert_eq!(properties["expanded"]["type"], "boolean");
        assert_eq!(properties["directory"]["enum"][1], "card");
        assert_eq!(
            schema["definitions"]["group"]["anyOf"][0]["required"],
            json!(["group"])
        );
    }
}
