//! The responses of an endpoint (OpenAPI 3.1.1 §4.8.16): errors with the same body are one table.

use std::collections::BTreeSet;

use super::node::{element, expandable, fence, flag, heading, prose, subheading, text};
use super::{RESPONSES_MAX, Writer, sample};
use crate::docs::openapi::{Media, Operation, Response};
use crate::mdx::anchor::github;
use crate::mdx::{Alignment, Element, Node, Table};
use crate::syntax::Value as Json;

impl<'s> Writer<'s> {
    pub(super) fn responses(&mut self, operation: &Operation<'s>, nodes: &mut Vec<Node>) {
        let mut responses = operation.responses();
        if responses.is_empty() {
            return;
        }
        if responses.len() > RESPONSES_MAX {
            self.is_cut.set(true);
            responses.truncate(RESPONSES_MAX);
        }
        nodes.push(heading(self.messages.responses, "responses"));
        // Contents that are shown already.
        let mut shown: Vec<(&str, Vec<Media<'_>>)> = Vec::new();
        let mut folded: BTreeSet<&str> = BTreeSet::new();
        for response in &responses {
            if folded.contains(response.status) {
                continue;
            }
            let is_like = |other: &&Response<'_>| {
                is_error(other) && is_same(&other.content, &response.content)
            };
            let like: Vec<_> = responses.iter().filter(is_like).collect();
            if is_error(response) && like.len() > 1 {
                let title = match folded.is_empty() {
                    true => self.messages.errors.to_owned(),
                    false => like
                        .iter()
                        .map(|one| one.status)
                        .collect::<Vec<_>>()
                        .join(", "),
                };
                folded.extend(like.iter().map(|one| one.status));
                self.errors(operation, &title, &like, nodes);
                continue;
            }
            if !self.has_part(response.status.len()) {
                self.end(nodes);
                break;
            }
            nodes.push(subheading(response.status, None));
            nodes.extend(self.prose(response.description));
            self.headers(operation, response.status, nodes);
            let same = |(_, content): &&(&str, Vec<Media<'_>>)| is_same(content, &response.content);
            if let Some((status, _)) = shown.iter().find(same) {
                nodes.push(self.as_above(status, &github(status)));
                continue;
            }
            self.part = Some("response");
            self.content(&response.content, false, nodes);
            self.part = None;
            if !response.content.is_empty() {
                shown.push((response.status, response.content.clone()));
            }
        }
    }

    /// Shows errors with the same body: a table of the statuses, their headers, and the body once.
    fn errors(
        &mut self,
        operation: &Operation<'s>,
        title: &str,
        errors: &[&Response<'s>],
        nodes: &mut Vec<Node>,
    ) {
        let is_first = title == self.messages.errors;
        nodes.push(subheading(title, is_first.then_some("errors")));
        let rows = errors.iter().map(|error| {
            let status = vec![Node::Code(error.status.to_owned())];
            let description = error.description;
            let description = description.filter(|text| self.has_part(text.len()));
            vec![status, in_line(description)]
        });
        let cell = |words: &str| vec![Node::Text(words.to_owned())];
        nodes.push(Node::Table(Table {
            alignment: vec![Alignment::Unset; 2],
            head: vec![cell(self.messages.status), cell(self.messages.when)],
            rows: rows.collect(),
        }));
        // Each header once, with the statuses that have it, unless all have it.
        let mut headers: Vec<(&str, Vec<&str>, Element)> = Vec::new();
        for error in errors {
            for (name, field) in self.header_fields(operation, error.status) {
                match headers.iter_mut().find(|(known, ..)| *known == name) {
                    Some((_, statuses, _)) => statuses.push(error.status),
                    None => headers.push((name, vec![error.status], field)),
                }
            }
        }
        let fields = headers.into_iter().map(|(_, statuses, mut field)| {
            if statuses.len() < errors.len() {
                let codes = statuses.iter().map(|one| Node::Code((*one).to_owned()));
                let mut line = Vec::new();
                for code in codes {
                    if !line.is_empty() {
                        line.push(Node::Text(", ".to_owned()));
                    }
                    line.push(code);
                }
                field.children.insert(0, Node::Paragraph(line));
            }
            Node::Element(field)
        });
        let fields: Vec<Node> = fields.collect();
        if !fields.is_empty() {
            nodes.push(expandable(self.messages.headers, "headers", fields));
        }
        if let Some(error) = errors.first() {
            self.part = Some("response");
            self.content(&error.content, false, nodes);
            self.part = None;
        }
    }

    /// Makes the element with the examples of responses, each with its status. A response without an
    /// example has its status line.
    pub(super) fn response_examples(&self, operation: &Operation<'s>) -> Option<Node> {
        let mut fences = Vec::new();
        for response in operation.responses().into_iter().take(RESPONSES_MAX) {
            let sketch = sample::Sketch::response(self.specification).within(self.room.get());
            let media = response.content.first();
            if let Some(media) = media {
                self.has_examples(media);
            }
            let examples = media.map(|media| sketch.shown(media)).unwrap_or_default();
            if examples.is_empty() {
                let line = sample::status_line(&response);
                fences.extend(line.map(|line| fence("text", response.status, &line)));
            }
            for example in examples {
                if !self.has_part(example.text.len()) {
                    continue;
                }
                let title = match example.name {
                    Some(name) => format!("{} {name}", response.status),
                    None => response.status.to_owned(),
                };
                fences.push(fence(example.language, &title, &example.text));
            }
        }
        (!fences.is_empty()).then(|| element("ResponseExample", Vec::new(), fences))
    }

    /// Shows the headers of a response.
    fn headers(&mut self, operation: &Operation<'s>, status: &str, nodes: &mut Vec<Node>) {
        let fields = self.header_fields(operation, status).into_iter();
        let fields: Vec<Node> = fields.map(|(_, field)| Node::Element(field)).collect();
        if !fields.is_empty() {
            nodes.push(expandable(self.messages.headers, "headers", fields));
        }
    }

    /// Makes the fields of the headers of a response (§4.8.21), each with its name.
    fn header_fields(&self, operation: &Operation<'s>, status: &str) -> Vec<(&'s str, Element)> {
        let response = || {
            let responses = operation.value().get("responses")?;
            self.specification
                .resolve(responses.get(status)?)?
                .get("headers")
        };
        let mut fields = Vec::new();
        for member in response().map_or(&[][..], Json::members) {
            let Some(header) = self.specification.resolve(&member.value) else {
                continue;
            };
            let description = self.specification.stated(&member.value, "description");
            let description = description.and_then(Json::text);
            if !self.has_part(member.key.len() + description.map_or(0, str::len)) {
                break;
            }
            let mut attributes = vec![text("header", &member.key)];
            let schema = header
                .get("schema")
                .and_then(|schema| self.specification.schema(schema));
            attributes.extend(schema.and_then(|schema| self.kind_of(schema)));
            let is = |key| header.get(key).and_then(Json::flag) == Some(true);
            attributes.extend(is("required").then(|| flag("required")));
            attributes.extend(is("deprecated").then(|| flag("deprecated")));
            let field = Element {
                attributes,
                children: prose(description),
                ..Element::new("ParamField")
            };
            fields.push((&*member.key, field));
        }
        fields
    }
}

/// Returns whether two bodies have the same media types with the same schemas.
fn is_same(one: &[Media<'_>], other: &[Media<'_>]) -> bool {
    let schema = |media: &Media<'_>| media.schema.map(|schema| std::ptr::from_ref(schema.value));
    let mut pairs = one.iter().zip(other);
    !one.is_empty()
        && one.len() == other.len()
        && pairs.all(|(one, other)| one.kind == other.kind && schema(one) == schema(other))
}

fn is_error(response: &Response<'_>) -> bool {
    response.status.starts_with(['4', '5']) || response.status == "default"
}

/// Reads a description for a cell of a table: a paragraph without its lines, or else plain text.
fn in_line(description: Option<&str>) -> Vec<Node> {
    match &mut prose(description)[..] {
        [] => Vec::new(),
        [Node::Paragraph(children)] => std::mem::take(children),
        _ => vec![Node::Text(description.unwrap_or_default().to_owned())],
    }
}
