//! Schemas as fields: what may be sent and what comes back.
//!
//! Sources: OpenAPI 3.1.1 §4.8.24; JSON Schema 2020-12 (validation) §6, §7.

use super::{DEPTH_MAX, FIELDS_MAX, Writer, element, flag, prose, text};
use crate::docs::openapi::Schema;
use crate::docs::value::Value as Json;
use crate::render::html::slug;
use crate::render::mdx::{Node, Value};

/// How many values are listed.
const VALUES_MAX: usize = 50;
/// Bounds of values, and how they are said.
const BOUNDS: [(&str, &str); 9] = [
    ("minimum", "at least"),
    ("exclusiveMinimum", "more than"),
    ("maximum", "at most"),
    ("exclusiveMaximum", "less than"),
    ("minLength", "characters at least"),
    ("maxLength", "characters at most"),
    ("minItems", "items at least"),
    ("maxItems", "items at most"),
    ("pattern", "matches"),
];

// === impl Writer ===

impl<'s> Writer<'s> {
    /// Shows the fields of a schema.
    pub(super) fn schema(&mut self, schema: Schema<'s>, nodes: &mut Vec<Node>) {
        if let Some(name) = schema.name {
            if self.within.contains(&name) {
                self.linked.insert(name);
                let link = Node::Link {
                    href: format!("#{}", anchor(name)),
                    children: vec![Node::Text(name.to_owned())],
                };
                let text = Node::Text(", as above.".to_owned());
                nodes.push(Node::Paragraph(vec![link, text]));
                return;
            }
            self.within.push(name);
        }
        let start = nodes.len();
        if self.within.len() <= DEPTH_MAX {
            self.shape(schema.value, nodes);
        }
        let Some(name) = schema.name else {
            return;
        };
        self.within.pop();
        // Where a schema inside of itself leads back to.
        if self.linked.remove(name) {
            let place = element("span", vec![text("id", &anchor(name))], Vec::new());
            nodes.insert(start, place);
        }
    }

    /// Counts something that is shown; `false` when the page has enough.
    fn has_room(&mut self) -> bool {
        self.fields += 1;
        self.fields <= FIELDS_MAX
    }

    fn shape(&mut self, value: &'s Json, nodes: &mut Vec<Node>) {
        if let Some(items) = value
            .get("items")
            .and_then(|items| self.specification.schema(items))
        {
            return self.schema(items, nodes);
        }
        for part in value.get("allOf").map_or(&[][..], Json::items) {
            if let Some(part) = self.specification.schema(part).filter(|_| self.has_room()) {
                self.schema(part, nodes);
            }
        }
        for key in ["oneOf", "anyOf"] {
            let alternatives = value.get(key).map_or(&[][..], Json::items);
            if !alternatives.is_empty() {
                let words = if key == "oneOf" {
                    "One of these:"
                } else {
                    "Any of these:"
                };
                nodes.push(Node::Paragraph(vec![Node::Text(words.to_owned())]));
            }
            for (n, part) in alternatives.iter().enumerate() {
                let Some(part) = self.specification.schema(part) else {
                    continue;
                };
                if !self.has_room() {
                    return;
                }
                let title = part.value.get("title").and_then(Json::text).or(part.name);
                let title = title.map_or_else(|| format!("Option {}", n + 1), ToOwned::to_owned);
                let mut children = prose(part.value.get("description").and_then(Json::text));
                self.within.push("");
                self.schema(part, &mut children);
                self.within.pop();
                nodes.push(element("Expandable", vec![text("title", &title)], children));
            }
        }
        let required = value.get("required").map_or(&[][..], Json::items);
        for member in value.get("properties").map_or(&[][..], Json::members) {
            if !self.has_room() {
                return;
            }
            let Some(schema) = self.specification.schema(&member.value) else {
                continue;
            };
            let is_required = required.iter().any(|name| name.text() == Some(&member.key));
            self.field(&member.key, schema, is_required, nodes);
        }
        // §10.3.2.3: what keys that are not named hold.
        let others = value
            .get("additionalProperties")
            .filter(|others| others.is_map());
        if let Some(schema) = others.and_then(|others| self.specification.schema(others))
            && self.has_room()
        {
            self.field("{any key}", schema, false, nodes);
        }
    }

    pub(super) fn field(
        &mut self,
        name: &str,
        schema: Schema<'s>,
        required: bool,
        nodes: &mut Vec<Node>,
    ) {
        let mut attributes = vec![text("name", name), text("type", &kind(schema.value))];
        attributes.extend(required.then(|| flag("required")));
        let is = |key| schema.value.get(key).and_then(Json::flag) == Some(true);
        attributes.extend(is("deprecated").then(|| flag("deprecated")));
        for (key, word) in [
            ("readOnly", "read-only"),
            ("writeOnly", "write-only"),
            ("nullable", "nullable"),
        ] {
            if is(key) {
                let words = Value::List(vec![Value::Text(word.to_owned())]);
                attributes.push(("post".into(), words));
            }
        }
        attributes.extend(default(schema.value));
        let mut children = prose(schema.value.get("description").and_then(Json::text));
        children.extend(values(schema.value));
        let mut inner = Vec::new();
        self.within.push("");
        self.schema(schema, &mut inner);
        self.within.pop();
        if !inner.is_empty() {
            let title = text("title", "Fields");
            children.push(element("Expandable", vec![title], inner));
        }
        nodes.push(element("ResponseField", attributes, children));
    }
}

/// Names the type of a schema: `string`, `integer[]`, `string or null`.
pub(super) fn kind(schema: &Json) -> String {
    let plain = |value: &Json| value.text().map(ToOwned::to_owned);
    let types: Vec<String> = match schema.get("type") {
        Some(value) if value.text().is_some() => plain(value).into_iter().collect(),
        Some(value) => value.items().iter().filter_map(plain).collect(),
        None if schema.get("properties").is_some() => vec!["object".to_owned()],
        None => Vec::new(),
    };
    let format = schema.get("format").and_then(Json::text);
    let mut kind = types.join(" or ");
    if kind == "array" {
        let items = schema.get("items").map(self::kind).unwrap_or_default();
        kind = if items.is_empty() {
            kind
        } else {
            format!("{items}[]")
        };
    }
    match format {
        Some(format) if !kind.is_empty() => format!("{kind} <{format}>"),
        _ => kind,
    }
}

pub(super) fn default(schema: &Json) -> Option<(Box<str>, Value)> {
    Some(text("default", schema.get("default")?.scalar()?))
}

/// Lists the values that a schema allows, and their bounds.
pub(super) fn values(schema: &Json) -> Vec<Node> {
    let allowed: Vec<&str> = match schema.get("const").and_then(Json::scalar) {
        Some(only) => vec![only],
        None => schema
            .get("enum")
            .map_or(&[][..], Json::items)
            .iter()
            .filter_map(Json::scalar)
            .take(VALUES_MAX)
            .collect(),
    };
    let mut nodes = Vec::new();
    if !allowed.is_empty() {
        let words = if allowed.len() == 1 {
            "Always "
        } else {
            "One of "
        };
        let mut line = vec![Node::Text(words.to_owned())];
        for (n, value) in allowed.into_iter().enumerate() {
            if n > 0 {
                line.push(Node::Text(", ".to_owned()));
            }
            line.push(Node::Code(value.to_owned()));
        }
        nodes.push(Node::Paragraph(line));
    }
    let bounds: Vec<String> = BOUNDS
        .iter()
        .filter_map(|(key, words)| Some(format!("{words} {}", schema.get(key)?.scalar()?)))
        .collect();
    if !bounds.is_empty() {
        nodes.push(Node::Paragraph(vec![Node::Text(bounds.join(", "))]));
    }
    nodes
}

fn anchor(name: &str) -> String {
    format!("schema-{}", slug(name))
}
