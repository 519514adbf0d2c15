//! Shows schemas as fields.
//!
//! Sources: OpenAPI 3.1.1 §4.8.24; JSON Schema 2020-12 (validation) §6, §7.

use std::collections::HashSet;

use super::node::{element, expandable, flag, paragraph, prose, text};
use super::sample::in_one_line;
use super::{DEPTH_MAX, FIELDS_MAX, WITHIN_MAX, Writer, bytes};
use crate::docs::openapi::Schema;
use crate::mdx::anchor::github;
use crate::mdx::{Node, Value};
use crate::syntax::{Data, Value as Json};

/// How many values are listed.
const VALUES_MAX: usize = 50;

// === impl Writer ===

impl<'s> Writer<'s> {
    /// Shows the fields of a schema.
    pub(super) fn schema(&mut self, schema: Schema<'s>, nodes: &mut Vec<Node>) {
        if let Some(name) = schema.name
            && self.within.contains(&Some(name))
        {
            self.linked.insert(name);
            nodes.push(self.as_above(name, &anchor(name)));
            return;
        }
        if self.level == DEPTH_MAX || self.within.len() == WITHIN_MAX {
            if self.has_fields(schema) {
                self.end(nodes);
            }
            return;
        }
        let start = nodes.len();
        self.within.push(schema.name);
        self.shape(schema.value, nodes);
        self.within.pop();
        // The target of the link from a schema inside itself.
        if let Some(name) = schema.name
            && self.linked.remove(name)
        {
            let place = element("span", vec![text("id", &anchor(name))], Vec::new());
            nodes.insert(start, place);
        }
    }

    /// Returns the value of a key of a schema, or the one beside the reference to it.
    pub(super) fn stated(&self, schema: Schema<'s>, key: &str) -> Option<&'s Json> {
        self.specification.stated(schema.written, key)
    }

    pub(super) fn description(&self, schema: Schema<'s>) -> Option<&'s str> {
        self.stated(schema, "description")?.text()
    }

    /// Returns whether a schema has a flag.
    pub(super) fn is(&self, schema: Schema<'s>, key: &str) -> bool {
        self.stated(schema, key).and_then(Json::flag) == Some(true)
    }

    /// Shows the fields inside a field or an alternative.
    fn inside(&mut self, schema: Schema<'s>, nodes: &mut Vec<Node>) {
        self.level += 1;
        self.schema(schema, nodes);
        self.level -= 1;
    }

    /// Returns whether a schema, or the items of its lists, have fields.
    fn has_fields(&self, schema: Schema<'s>) -> bool {
        let mut value = schema.value;
        for _ in 0..WITHIN_MAX {
            let items = value.get("items");
            let Some(items) = items.and_then(|items| self.specification.resolve(items)) else {
                let parts = ["allOf", "oneOf", "anyOf"].into_iter();
                let mut parts = parts.filter_map(|key| value.get(key));
                let has_members = |key| value.get(key).is_some_and(|map| !map.members().is_empty());
                return parts.any(|parts| !parts.items().is_empty())
                    || has_members("properties")
                    || has_members("additionalProperties");
            };
            value = items;
        }
        true
    }

    /// Counts a shown field; if the page has reached the limit, says so and returns `false`.
    fn has_room(&mut self, nodes: &mut Vec<Node>) -> bool {
        self.fields += 1;
        let has_room = self.fields <= FIELDS_MAX;
        if !has_room {
            self.end(nodes);
        }
        has_room
    }

    /// Returns how many bytes of texts the field of a schema has, without the fields inside it.
    pub(super) fn bytes(&self, schema: Schema<'s>) -> usize {
        let keys = ["description", "default", "type", "title"];
        let of_schema = ["const", "pattern", "format"].into_iter();
        let mut all: Vec<&Json> = keys
            .into_iter()
            .filter_map(|key| self.stated(schema, key))
            .chain(of_schema.filter_map(|key| schema.value.get(key)))
            .collect();
        let values = schema.value.get("enum").map_or(&[][..], Json::items);
        all.extend(values.iter().take(VALUES_MAX));
        let labels = self.labels.iter();
        all.extend(labels.filter_map(|key| self.stated(schema, key)));
        all.into_iter().map(bytes).sum()
    }

    /// Says that more fields are not shown.
    pub(super) fn end(&self, nodes: &mut Vec<Node>) {
        let note = paragraph(self.messages.more_fields);
        if nodes.last() != Some(&note) {
            nodes.push(note);
        }
    }

    fn shape(&mut self, value: &'s Json, nodes: &mut Vec<Node>) {
        if let Some(items) = value
            .get("items")
            .and_then(|items| self.specification.schema(items))
        {
            return self.schema(items, nodes);
        }
        for part in value.get("allOf").map_or(&[][..], Json::items) {
            let Some(part) = self.specification.schema(part) else {
                continue;
            };
            if !self.has_room(nodes) {
                return;
            }
            self.schema(part, nodes);
        }
        for (key, words) in [
            ("oneOf", self.messages.one_of_these),
            ("anyOf", self.messages.any_of_these),
        ] {
            let alternatives = value.get(key).map_or(&[][..], Json::items);
            if !alternatives.is_empty() {
                nodes.push(paragraph(words));
            }
            for (n, part) in alternatives.iter().enumerate() {
                let Some(part) = self.specification.schema(part) else {
                    continue;
                };
                if !self.has_room(nodes) {
                    return;
                }
                if !self.has_part(self.bytes(part)) {
                    return self.end(nodes);
                }
                let title = self.stated(part, "title").and_then(Json::text);
                let title = title.or(part.name);
                let number = n + 1;
                let (title, anchor) = match title {
                    Some(title) => (title.to_owned(), title.to_owned()),
                    None => (
                        self.messages.option.replace("{}", &number.to_string()),
                        format!("option-{number}"),
                    ),
                };
                let mut children = Vec::from_iter(self.plain(part));
                children.extend(prose(self.description(part)));
                children.extend(self.values(part.value));
                self.inside(part, &mut children);
                nodes.push(expandable(&title, &anchor, children));
            }
        }
        let required = value.get("required").map_or(&[][..], Json::items);
        if !self.has_bytes(required.iter().map(bytes).sum()) {
            return self.end(nodes);
        }
        let required: HashSet<&str> = required.iter().filter_map(Json::text).collect();
        for member in value.get("properties").map_or(&[][..], Json::members) {
            if !self.has_room(nodes) {
                return;
            }
            let Some(schema) = self.specification.schema(&member.value) else {
                continue;
            };
            if !self.has_part(member.key.len() + self.bytes(schema)) {
                return self.end(nodes);
            }
            let is_required = required.contains(&*member.key);
            let mut named = vec![text("name", &member.key)];
            named.extend(is_required.then(|| flag("required")));
            self.field(named, schema, nodes);
        }
        // §10.3.2.3: the schema of keys that are not listed.
        let others = value
            .get("additionalProperties")
            .filter(|others| others.is_map());
        if let Some(schema) = others.and_then(|others| self.specification.schema(others))
            && self.has_room(nodes)
            && self.has_part(self.bytes(schema))
        {
            let named = vec![
                text("name", self.messages.any_key),
                text("id", "param-any-key"),
            ];
            self.field(named, schema, nodes);
        }
    }

    /// Shows a field; its first attributes hold its name.
    fn field(
        &mut self,
        mut attributes: Vec<(Box<str>, Value)>,
        schema: Schema<'s>,
        nodes: &mut Vec<Node>,
    ) {
        attributes.extend(self.kind_of(schema));
        attributes.extend(self.is(schema, "deprecated").then(|| flag("deprecated")));
        let words = [
            ("readOnly", self.messages.read_only),
            ("writeOnly", self.messages.write_only),
            ("nullable", self.messages.nullable),
        ];
        let words: Vec<&str> = words
            .into_iter()
            .filter_map(|(key, word)| self.is(schema, key).then_some(word))
            .collect();
        attributes.extend(self.labels_of(Some(schema), None, &words));
        attributes.extend(default(self.stated(schema, "default")));
        let mut children = prose(self.description(schema));
        children.extend(self.values(schema.value));
        let mut inner = Vec::new();
        self.inside(schema, &mut inner);
        if !inner.is_empty() {
            children.push(self.inner(inner));
        }
        attributes.extend(self.part.map(|part| text("part", part)));
        nodes.push(element("ResponseField", attributes, children));
    }

    /// Returns the attribute with the labels after the name of a field: `words`, then the values of
    /// the keys that the site shows. They are looked up in the schema, and else in the parameter.
    pub(super) fn labels_of(
        &self,
        schema: Option<Schema<'s>>,
        parameter: Option<&Json>,
        words: &[&str],
    ) -> Option<(Box<str>, Value)> {
        let mut labels: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        for key in self.labels {
            let of_schema = schema.and_then(|schema| self.stated(schema, key));
            let Some(value) = of_schema.or_else(|| parameter?.get(key)) else {
                continue;
            };
            match value.flag() {
                Some(true) => labels.push((**key).to_owned()),
                Some(false) => {}
                None => {
                    let all = value.scalar().into_iter();
                    let all = all.chain(value.items().iter().filter_map(Json::scalar));
                    labels.extend(all.take(VALUES_MAX).map(ToOwned::to_owned));
                }
            }
        }
        let labels: Vec<_> = labels.into_iter().map(Value::Text).collect();
        (!labels.is_empty()).then(|| ("post".into(), Value::List(labels)))
    }

    /// Makes the element with the fields inside a field.
    fn inner(&self, fields: Vec<Node>) -> Node {
        let mut attributes = vec![
            text("title", self.messages.fields),
            text("id", &github("fields")),
        ];
        attributes.extend(self.expanded.then(|| flag("defaultOpen")));
        element("Expandable", attributes, fields)
    }

    /// Shows the type of a schema without fields.
    pub(super) fn plain(&self, schema: Schema<'_>) -> Option<Node> {
        let kind = self.kind(schema.value);
        let is_plain = schema.value.get("properties").is_none() && !kind.is_empty();
        is_plain.then(|| Node::Paragraph(vec![Node::Code(kind)]))
    }

    /// Returns the attribute with the type of a schema, if it has a type.
    pub(super) fn kind_of(&self, schema: Schema<'_>) -> Option<(Box<str>, Value)> {
        let kind = self.kind(schema.value);
        (!kind.is_empty()).then(|| text("type", &kind))
    }

    /// Returns the type of a schema as text: `string`, `integer[]`, `string or null`.
    pub(super) fn kind(&self, schema: &Json) -> String {
        let plain = |value: &Json| value.text().map(ToOwned::to_owned);
        let types: Vec<String> = match schema.get("type") {
            Some(value) if value.text().is_some() => plain(value).into_iter().collect(),
            Some(value) => value.items().iter().filter_map(plain).collect(),
            None if schema.get("properties").is_some() => vec!["object".to_owned()],
            None => Vec::new(),
        };
        let format = schema.get("format").and_then(Json::text);
        let mut kind = types.join(self.messages.or);
        if kind == "array" {
            let items = schema
                .get("items")
                .map(|items| self.kind(items))
                .unwrap_or_default();
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

    /// Lists the values that a schema allows, and their bounds.
    pub(super) fn values(&self, schema: &Json) -> Vec<Node> {
        let allowed = match schema.get("const") {
            Some(only) => std::slice::from_ref(only),
            None => schema.get("enum").map_or(&[][..], Json::items),
        };
        let mut nodes = Vec::new();
        if !allowed.is_empty() {
            let words = if allowed.len() == 1 {
                self.messages.only_value
            } else {
                self.messages.one_of_values
            };
            let mut line = vec![Node::Text(words.to_owned())];
            for (n, value) in allowed.iter().take(VALUES_MAX).enumerate() {
                if n > 0 {
                    line.push(Node::Text(", ".to_owned()));
                }
                line.push(Node::Code(in_one_line(value)));
            }
            let left = allowed.len().saturating_sub(VALUES_MAX);
            if left > 0 {
                let words = self.messages.and_more.replace("{}", &left.to_string());
                line.push(Node::Text(words));
            }
            nodes.push(Node::Paragraph(line));
        }
        let mut line = Vec::new();
        for (key, message) in self.messages.bounds.by_keyword() {
            let Some(bound) = schema.get(key).and_then(Json::scalar) else {
                continue;
            };
            let (before, after) = message.split_once("{}").unwrap_or((message, ""));
            let separator = if line.is_empty() { "" } else { ", " };
            line.push(Node::Text(format!("{separator}{before}")));
            // A pattern is code: its signs are hard to read as text.
            line.push(match key {
                "pattern" => Node::Code(bound.to_owned()),
                _ => Node::Text(bound.to_owned()),
            });
            line.push(Node::Text(after.to_owned()));
        }
        if !line.is_empty() {
            nodes.push(Node::Paragraph(line));
        }
        nodes
    }
}

/// Returns the attribute with the default of a schema or a variable: a text as it is, another value
/// as JSON. `null` is none.
pub(super) fn default(value: Option<&Json>) -> Option<(Box<str>, Value)> {
    let value = value.filter(|value| value.data != Data::Null)?;
    Some(text("default", &in_one_line(value)))
}

fn anchor(name: &str) -> String {
    format!("schema-{}", github(name))
}
