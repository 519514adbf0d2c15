//! Builds the part of a page that comes from a specification: endpoints (rule N6) and schemas.
//!
//! An endpoint or schema becomes the same nodes as text of an author, so the same writers
//! make its HTML and Markdown. Headings are in the language of the page.
//!
//! **Anchors** are made from the English messages in every language. The anchor of an author's
//! heading depends on its words, so a translation changes it. These headings are generated, so
//! their anchors can be the same in every language: a link to `#responses` stays valid when its
//! page is translated and when a message changes.
//!
//! **Limits.** Schemas are shown at most [`DEPTH_MAX`] levels deep, and at most [`FIELDS_MAX`]
//! fields a page. A note says where more is left out. A schema inside itself is named and not shown
//! again. The pages of a specification share [`SPECIFICATION_BYTES_MAX`], because a small one can
//! name the same schema or example on each of thousands of pages: see [`Subject::room`].
//!
//! Sources: OpenAPI 3.1.1 §4.8.10 (operations), §4.8.24 (schemas).

pub mod form;
mod node;
mod response;
mod sample;
mod schema;
mod security;

use std::cell::Cell;
use std::collections::BTreeSet;

use super::messages::{self, Messages};
use crate::docs::config::Language;
use crate::docs::openapi::{Endpoint, Media, Method, Operation, Schema, Specification};
use crate::mdx::{Node, Span};
use crate::syntax::Value as Json;

use node::{element, fence, flag, heading, paragraph, prose, text};
use schema::default;

/// How many levels of fields are shown: fields inside fields, and alternatives.
const DEPTH_MAX: usize = 6;
/// How many schemas are inside each other, with lists and the parts of `allOf`, which are no levels.
const WITHIN_MAX: usize = 32;
/// The element that holds the samples and examples of an endpoint.
pub(super) const EXAMPLES: &str = "Panel";
/// How many fields a page shows.
const FIELDS_MAX: usize = 400;
/// How many responses a page shows.
const RESPONSES_MAX: usize = 200;
/// About how many bytes of texts the pages of a specification show together, in one language.
pub const SPECIFICATION_BYTES_MAX: usize = 128 << 20;
/// The most bytes of texts of such a page, however few pages the specification has.
pub const PAGE_BYTES_MAX: usize = 1 << 20;
/// What such a page may always show, however many pages the specification has.
const PAGE_BYTES_MIN: usize = 8 << 10;
/// How many bytes a field, a response or an example counts besides its texts.
const PART_BYTES: usize = 256;

/// The part of a specification that a page shows.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'s> {
    /// An endpoint.
    Endpoint(&'s Specification, &'s Endpoint),
    /// The method and path of an endpoint without a specification: it was not fetched, or it lacks
    /// the endpoint.
    Unresolved(Method, &'s str),
    /// One of the schemas of a specification, by its name.
    Schema(&'s Specification, &'s str),
}

/// What a page shows of a specification.
#[derive(Clone, Debug, Default)]
pub struct Made {
    /// Its nodes.
    pub nodes: Vec<Node>,
    /// Whether something is left out because the page would show more than [`Subject::room`].
    pub is_cut: bool,
}

// === impl Subject ===

impl<'s> Subject<'s> {
    /// Returns the specification; `None` if there is none.
    #[must_use]
    pub fn specification(self) -> Option<&'s Specification> {
        match self {
            Self::Endpoint(specification, _) | Self::Schema(specification, _) => {
                Some(specification)
            }
            Self::Unresolved(..) => None,
        }
    }

    /// Returns how many bytes of texts the page may show: an equal part for each page that the
    /// specification may have.
    #[must_use]
    pub fn room(self) -> usize {
        let pages = match self {
            Self::Endpoint(specification, _) => specification.endpoints.len(),
            Self::Schema(specification, _) => specification.schema_names().count(),
            Self::Unresolved(..) => 1,
        };
        (SPECIFICATION_BYTES_MAX / pages.max(1)).clamp(PAGE_BYTES_MIN, PAGE_BYTES_MAX)
    }
}

/// How the page of an endpoint is shown: settings of `docs.json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown<'s> {
    /// The programming languages of samples.
    pub samples: &'s [Language],
    /// Whether fields inside fields are open at first.
    pub expanded: bool,
    /// The keys of schemas whose values are shown after the name of a field.
    pub labels: &'s [Box<str>],
    /// Whether the address names the first server.
    pub full_address: bool,
    /// Whether bodies that are made for samples have their required fields only.
    pub required_only: bool,
}

/// Makes the nodes of a subject in the language of a BCP 47 tag; an empty list if the specification
/// no longer contains it.
#[must_use]
pub fn nodes<'s>(subject: Subject<'s>, language: &str, shown: Shown<'s>) -> Vec<Node> {
    made(subject, language, shown).nodes
}

/// Makes the same as [`nodes`], and returns whether all of it is shown.
#[must_use]
pub fn made<'s>(subject: Subject<'s>, language: &str, shown: Shown<'s>) -> Made {
    let room = subject.room();
    match subject {
        Subject::Endpoint(specification, endpoint) => {
            let writer = Writer::new(specification, language, room);
            endpoint_nodes(writer, endpoint, language, shown)
        }
        Subject::Unresolved(method, path) => Made {
            nodes: vec![name(method, path, language)],
            is_cut: false,
        },
        Subject::Schema(specification, name) => {
            let writer = Writer::new(specification, language, room);
            schema_nodes(writer, name, shown.labels)
        }
    }
}

/// Writes the method and path of an endpoint.
fn name(method: Method, path: &str, language: &str) -> Node {
    if method == Method::Webhook {
        let messages = &Messages::of(language).endpoint;
        return paragraph(&messages.webhook_sends.replace("{}", path));
    }
    Node::Fence {
        info: "http".to_owned(),
        code: format!("{method} {path}"),
    }
}

fn endpoint_nodes<'s>(
    mut writer: Writer<'s>,
    endpoint: &'s Endpoint,
    language: &str,
    shown: Shown<'s>,
) -> Made {
    let Some(operation) = writer.specification.operation(endpoint) else {
        return Made::default();
    };
    writer.languages = shown.samples;
    writer.expanded = shown.expanded;
    writer.labels = shown.labels;
    writer.is_required_only = shown.required_only;
    let mut nodes = Vec::new();
    if endpoint.deprecated {
        let warning = vec![paragraph(writer.messages.deprecated)];
        nodes.push(element("Warning", Vec::new(), warning));
    }
    let servers = operation.servers();
    let server = servers.first().filter(|_| shown.full_address);
    let server = server.map(sample::address).unwrap_or_default();
    let address = match endpoint.method {
        Method::Webhook => endpoint.path.to_string(),
        _ => format!("{}{}", server.trim_end_matches('/'), endpoint.path),
    };
    nodes.push(name(endpoint.method, &address, language));
    nodes.extend(writer.prose(operation.description()));
    nodes.extend(writer.prose(operation.introduction()));
    // The stylesheet puts them beside the rest on a wide screen.
    let mut examples = Vec::from_iter(writer.samples(endpoint, &operation));
    examples.extend(writer.response_examples(&operation));
    if !examples.is_empty() {
        let id = vec![text("id", "request")];
        nodes.push(element(EXAMPLES, id, examples));
    }
    if writer.specification.from_page {
        return writer.made(nodes);
    }
    writer.servers(&operation, &mut nodes);
    writer.security(&operation, &mut nodes);
    writer.parameters(&operation, &mut nodes);
    writer.body(&operation, &mut nodes);
    writer.responses(&operation, &mut nodes);
    writer.made(nodes)
}

fn schema_nodes<'s>(mut writer: Writer<'s>, name: &'s str, labels: &'s [Box<str>]) -> Made {
    let specification = writer.specification;
    let written = specification.named_schema(name);
    let Some(schema) = written.and_then(|written| specification.schema(written)) else {
        return Made::default();
    };
    let schema = Schema {
        name: Some(name),
        ..schema
    };
    writer.labels = labels;
    let mut nodes = writer.prose(writer.description(schema));
    nodes.extend(writer.plain(schema));
    nodes.extend(writer.values(schema.value));
    writer.schema(schema, &mut nodes);
    nodes.extend(writer.example(&Media {
        kind: "application/json",
        schema: Some(schema),
        value: schema.written,
    }));
    writer.made(nodes)
}

struct Writer<'s> {
    specification: &'s Specification,
    /// The programming languages of samples.
    languages: &'s [Language],
    /// Whether fields inside fields are open at first.
    expanded: bool,
    /// The keys of schemas whose values are shown after the name of a field.
    labels: &'s [Box<str>],
    /// Whether bodies that are made for samples have their required fields only.
    is_required_only: bool,
    messages: &'static messages::Endpoint,
    /// How many fields are shown.
    fields: usize,
    /// How many fields and alternatives enclose the current schema.
    level: usize,
    /// The schemas that enclose the current one, by their names.
    within: Vec<Option<&'s str>>,
    /// The enclosing schemas that contain themselves.
    linked: BTreeSet<&'s str>,
    /// The part of the endpoint whose fields are written; aliases of their anchors contain it.
    part: Option<&'static str>,
    /// How many more bytes of texts the page may show.
    room: Cell<usize>,
    /// Whether something is left out because there is no room for it.
    is_cut: Cell<bool>,
}

// === impl Writer ===

impl<'s> Writer<'s> {
    fn new(specification: &'s Specification, language: &str, room: usize) -> Self {
        Self {
            specification,
            languages: &[],
            expanded: false,
            labels: &[],
            is_required_only: false,
            messages: &Messages::of(language).endpoint,
            fields: 0,
            level: 0,
            within: Vec::new(),
            linked: BTreeSet::new(),
            part: None,
            room: Cell::new(room),
            is_cut: Cell::new(false),
        }
    }

    fn made(self, nodes: Vec<Node>) -> Made {
        Made {
            nodes,
            is_cut: self.is_cut.get(),
        }
    }

    /// Counts texts before they are made; returns whether there is room for them.
    fn has_bytes(&self, bytes: usize) -> bool {
        let left = self.room.get().checked_sub(bytes);
        match left {
            Some(left) => self.room.set(left),
            None => self.is_cut.set(true),
        }
        left.is_some()
    }

    /// Counts a part with its texts; returns whether there is room for it.
    fn has_part(&self, bytes: usize) -> bool {
        self.has_bytes(PART_BYTES + bytes)
    }

    /// Reads a description, if there is room for it.
    fn prose(&self, description: Option<&str>) -> Vec<Node> {
        prose(description.filter(|text| self.has_bytes(text.len())))
    }

    fn parameters(&mut self, operation: &Operation<'s>, nodes: &mut Vec<Node>) {
        let parameters = operation.parameters();
        let messages = self.messages;
        for (place, title, anchor) in [
            ("path", messages.path_parameters, "path-parameters"),
            ("query", messages.query_parameters, "query-parameters"),
            ("header", messages.headers, "headers"),
            ("cookie", messages.cookies, "cookies"),
        ] {
            let mut here = parameters.iter().filter(|p| p.place == place).peekable();
            if here.peek().is_none() {
                continue;
            }
            nodes.push(heading(title, anchor));
            for parameter in here {
                let labels = self.labels.iter();
                let labels = labels.filter_map(|key| parameter.value.get(key)).map(bytes);
                let own = parameter.name.len() + labels.sum::<usize>();
                if !self.has_part(own + parameter.schema.map_or(0, |schema| self.bytes(schema))) {
                    self.end(nodes);
                    break;
                }
                let mut attributes = vec![text(place, parameter.name)];
                attributes.extend(self.labels_of(parameter.schema, Some(parameter.value), &[]));
                if let Some(schema) = parameter.schema {
                    attributes.extend(self.kind_of(schema));
                    attributes.extend(default(self.stated(schema, "default")));
                }
                attributes.extend(parameter.required.then(|| flag("required")));
                let schema = parameter.schema;
                let is_deprecated = parameter.deprecated
                    || schema.is_some_and(|schema| self.is(schema, "deprecated"));
                attributes.extend(is_deprecated.then(|| flag("deprecated")));
                let of_schema = || self.description(schema?);
                let mut children = match parameter.description {
                    Some(description) => self.prose(Some(description)),
                    None => prose(of_schema()),
                };
                if let Some(schema) = schema {
                    children.extend(self.values(schema.value));
                }
                nodes.push(element("ParamField", attributes, children));
            }
        }
    }

    fn body(&mut self, operation: &Operation<'s>, nodes: &mut Vec<Node>) {
        let Some(body) = operation.body() else {
            return;
        };
        nodes.push(heading(self.messages.body, "body"));
        nodes.extend(self.prose(body.description));
        self.part = Some("body");
        self.content(&body.content, true, nodes);
        self.part = None;
    }

    /// Refers to a part of the page above, by its name.
    fn as_above(&self, name: &str, anchor: &str) -> Node {
        let link = Node::Link {
            href: format!("#{anchor}"),
            children: vec![Node::Text(name.to_owned())],
            span: Span::NONE,
        };
        let around = self.messages.same_as_above.split_once("{}");
        let (before, after) = around.unwrap_or_default();
        let text_node = |words: &str| Node::Text(words.to_owned());
        Node::Paragraph(vec![text_node(before), link, text_node(after)])
    }

    /// Shows the media types of a body; a reader chooses between several. The examples of responses
    /// are shown elsewhere.
    fn content(&mut self, content: &[Media<'s>], with_examples: bool, nodes: &mut Vec<Node>) {
        let mut tabs = Vec::new();
        for media in content {
            let mut inside = Vec::new();
            if let Some(schema) = media.schema {
                inside.extend(self.plain(schema));
                self.schema(schema, &mut inside);
            }
            if with_examples {
                inside.extend(self.example(media));
            }
            tabs.push((media.kind, inside));
        }
        if let [(kind, inside)] = &mut tabs[..] {
            nodes.push(Node::Paragraph(vec![Node::Code((*kind).to_owned())]));
            nodes.append(inside);
            return;
        }
        let tabs = tabs
            .into_iter()
            .map(|(kind, inside)| element("Tab", vec![text("title", kind)], inside));
        let tabs: Vec<Node> = tabs.collect();
        if !tabs.is_empty() {
            nodes.push(element("Tabs", Vec::new(), tabs));
        }
    }

    /// Finds out whether there is room for the examples that the specification has for a body.
    fn has_examples(&self, media: &Media<'_>) {
        if sample::written_bytes(self.specification, media) > self.room.get() {
            self.is_cut.set(true);
        }
    }

    /// Shows the examples of a body; a reader chooses between several.
    fn example(&self, media: &Media<'_>) -> Option<Node> {
        self.has_examples(media);
        let examples = sample::written_examples(self.specification, media, self.room.get());
        let examples = examples
            .iter()
            .filter(|example| self.has_part(example.text.len()));
        let fences = examples.map(|example| {
            let title = example.name.unwrap_or(self.messages.example);
            fence(example.language, title, &example.text)
        });
        let mut fences: Vec<Node> = fences.collect();
        match fences.len() {
            0 | 1 => fences.pop(),
            _ => Some(element("CodeGroup", Vec::new(), fences)),
        }
    }
}

/// Returns how many bytes a value has as it is written.
fn bytes(value: &Json) -> usize {
    value.span.end.saturating_sub(value.span.start) as usize
}

#[cfg(test)]
mod tests;
