//! Tests of the schema with a small validator.

use super::*;

/// Returns whether a value is valid, by the keywords that the schema uses except `pattern`.
fn is_valid(value: &Value, schema: &Value, root: &Value) -> bool {
    let Some(schema) = schema.as_object() else {
        return true;
    };
    if let Some(reference) = schema.get("$ref") {
        let name = reference.as_str().unwrap();
        let name = name.strip_prefix("#/definitions/").unwrap();
        return is_valid(value, &root["definitions"][name], root);
    }
    let valid = |schema: &Value| is_valid(value, schema, root);
    let list = |schema: &Value| schema.as_array().cloned().unwrap();
    schema
        .iter()
        .all(|(keyword, constraint)| match keyword.as_str() {
            "type" => {
                let is = match value {
                    Value::Null => "null",
                    Value::Bool(_) => "boolean",
                    Value::Number(_) => "number",
                    Value::String(_) => "string",
                    Value::Array(_) => "array",
                    Value::Object(_) => "object",
                };
                constraint == is
                    || constraint
                        .as_array()
                        .is_some_and(|types| types.contains(&is.into()))
            }
            "enum" => list(constraint).contains(value),
            "const" => constraint == value,
            "minLength" => {
                let length = value.as_str().map(|text| text.chars().count() as u64);
                length.is_none_or(|length| length >= constraint.as_u64().unwrap())
            }
            "pattern" => value
                .as_str()
                .is_none_or(|text| matches!(text, "ja" | "fr-CA")),
            "anyOf" => list(constraint).iter().any(valid),
            "allOf" => list(constraint).iter().all(valid),
            "oneOf" => {
                list(constraint)
                    .iter()
                    .filter(|schema| valid(schema))
                    .count()
                    == 1
            }
            "not" => !valid(constraint),
            "if" => match valid(constraint) {
                true => valid(&schema["then"]),
                false => valid(&schema["else"]),
            },
            "required" => value.as_object().is_none_or(|object| {
                list(constraint)
                    .iter()
                    .all(|key| object.contains_key(key.as_str().unwrap()))
            }),
            "properties" => value.as_object().is_none_or(|object| {
                let constraint = constraint.as_object().unwrap().iter();
                constraint
                    .filter_map(|(key, schema)| Some((object.get(key)?, schema)))
                    .all(|(value, schema)| is_valid(value, schema, root))
            }),
            "additionalProperties" => value.as_object().is_none_or(|object| {
                object
                    .values()
                    .all(|value| is_valid(value, constraint, root))
            }),
            "items" => value
                .as_array()
                .is_none_or(|items| items.iter().all(|item| is_valid(item, constraint, root))),
            "then" | "else" | "definitions" | "description" | "title" | "$schema" => true,
            other => panic!("the validator does not know `{other}`"),
        })
}

#[track_caller]
fn check(navigation: Value, lenient: bool, expected: bool) {
    let schema = json_schema();
    let mut docs = json!({ "name": "A", "navigation": navigation });
    if lenient {
        docs["lenient"] = true.into();
    }
    assert_eq!(is_valid(&docs, &schema, &schema), expected, "{docs}");
}

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
    let group = &schema["definitions"]["group"]["anyOf"][0];
    let properties = &group["properties"];
    assert_eq!(properties["expanded"]["type"], "boolean");
    assert_eq!(properties["directory"]["enum"][1], "card");
    assert_eq!(group["required"], json!(["group"]));
}

#[test]
fn rule_n1_is_part_of_the_schema_unless_the_site_is_lenient() {
    let tab = json!({ "tab": "T", "pages": ["a"] });
    let two = json!({ "pages": ["a"], "tabs": [tab] });
    check(json!({ "pages": ["a"] }), false, true);
    check(json!({ "pages": ["a"], "tabs": [] }), false, true);
    check(json!({ "openapi": "openapi.json" }), false, true);
    check(json!({ "$ref": "navigation.json" }), false, true);
    check(json!({ "tabs": { "$ref": "tabs.json" } }), false, true);
    check(json!({}), false, false);
    check(json!({ "pages": [] }), false, false);
    check(two.clone(), false, false);
    check(two, true, true);
}

#[test]
fn rule_n2_is_part_of_the_schema_unless_the_site_is_lenient() {
    let group = json!({ "group": "G", "pages": ["a"] });
    let tab = |rest: Value| {
        let mut tab = json!({ "tab": "T" });
        tab.as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        json!({ "tabs": [tab] })
    };
    check(tab(json!({ "groups": [group] })), false, true);
    check(tab(json!({ "href": "https://a.test" })), false, true);
    check(tab(json!({ "href": "", "pages": ["a"] })), false, true);
    let both = tab(json!({ "groups": [group], "pages": ["a"] }));
    check(both.clone(), false, false);
    check(both, true, true);
    let link = tab(json!({ "href": "https://a.test", "pages": ["a"] }));
    check(link.clone(), false, false);
    check(link, true, true);
}

#[test]
fn other_spellings_of_a_language_are_accepted() {
    let language = |code: &str| json!({ "languages": [{ "language": code, "pages": ["a"] }] });
    for (code, accepted) in [
        ("jp", true),
        ("ja", true),
        ("fr-CA", true),
        ("klingon", false),
    ] {
        check(language(code), false, accepted);
    }
}

#[test]
fn the_noun_of_an_object_keeps_the_quotes_inside_it() {
    use crate::docs::config::{SeoPath, Styling};
    use crate::docs::schema::Declared as _;
    assert_eq!(SeoPath::OBJECT.noun(), "entry of `paths`");
    assert_eq!(Styling::OBJECT.noun(), "styling");
}

#[test]
fn every_key_has_a_type() {
    let schema = json_schema();
    let definitions = schema["definitions"].as_object().unwrap();
    for (name, definition) in definitions {
        let properties = definition.get("properties").and_then(Value::as_object);
        for (key, property) in properties.into_iter().flatten() {
            let has_type = ["type", "enum", "anyOf", "allOf", "$ref", "oneOf", "const"]
                .iter()
                .any(|keyword| property.get(keyword).is_some());
            assert!(has_type, "`{key}` of {name}: {property}");
        }
    }
}

/// Follows `$ref` and alternatives to the properties of a schema.
fn properties(schema: &Value, root: &Value) -> Map<String, Value> {
    let mut found = Map::new();
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.strip_prefix("#/definitions/").unwrap();
        return properties(&root["definitions"][name], root);
    }
    if let Some(own) = schema["properties"].as_object() {
        found.extend(own.clone());
    }
    for parts in ["anyOf", "allOf"].map(|key| schema[key].as_array()) {
        for part in parts.into_iter().flatten() {
            found.extend(properties(part, root));
        }
    }
    found
}

#[test]
fn keys_of_other_tools_have_a_type_and_say_that_they_have_no_effect() {
    let root = json_schema();
    for path in [
        "$schema",
        "public",
        "variations",
        "background.decoration",
        "background.color",
        "integrations.ga4",
        "integrations.transcend",
        "thumbnails.fonts.family",
        "styling.codeblocks.languages",
        "banner.type",
        "banner.color.light",
        "markdown.schema",
        "api.asyncapi.directory",
        "api.spec.download",
        "api.openapi.overlays",
        "seo.trailingSlash",
        "feedback.issues",
        "fonts.format",
        "navigation.asyncapi",
        "navigation.sdk",
        "navigation.graphql",
        "navigation.global.tabs",
    ] {
        let mut schema = root["else"].clone();
        for key in path.split('.') {
            let mut found = properties(&schema, &root);
            schema = found.remove(key).unwrap_or_else(|| panic!("no {path}"));
        }
        let about = schema["description"].as_str().unwrap();
        assert!(about.contains("no effect here"), "{path}: {about}");
        let is_typed = ["type", "anyOf", "allOf"]
            .iter()
            .any(|key| schema.get(key).is_some());
        assert!(is_typed, "{path}");
    }
}
