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
mod sample;
mod schema;

use std::cell::Cell;
use std::collections::BTreeSet;

use super::messages::{self, Messages};
use crate::docs::config::Language;
use crate::docs::openapi::{Endpoint, Media, Method, Operation, Response, Schema, Specification};
use crate::mdx::anchor::github;
use crate::mdx::{Alignment, Element, Node, Span, Table, Value};
use crate::syntax::Value as Json;

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

    fn responses(&mut self, operation: &Operation<'s>, nodes: &mut Vec<Node>) {
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

    /// Makes the element with the examples of responses, each with its status. A response without an
    /// example has its status line.
    fn response_examples(&self, operation: &Operation<'s>) -> Option<Node> {
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

    /// Shows the servers if a reader can choose: several servers, or variables.
    fn servers(&self, operation: &Operation<'_>, nodes: &mut Vec<Node>) {
        let servers = operation.servers();
        let has_variables = servers
            .iter()
            .any(|server| server.value.get("variables").is_some());
        if servers.len() < 2 && !has_variables {
            return;
        }
        let mut inside = Vec::new();
        for server in servers {
            let words = server.description.map_or(0, str::len);
            if !self.has_part(server.url.len() + words) {
                break;
            }
            let mut line = vec![Node::Code(server.url.to_owned())];
            line.extend(
                server
                    .description
                    .map(|words| Node::Text(format!(" {words}"))),
            );
            inside.push(Node::Paragraph(line));
            for member in server.value.get("variables").map_or(&[][..], Json::members) {
                if !self.has_part(bytes(&member.value)) {
                    break;
                }
                let mut attributes = vec![
                    text("name", &member.key),
                    text("type", self.messages.variable),
                ];
                attributes.extend(default(member.value.get("default")));
                let mut children = prose(member.value.get("description").and_then(Json::text));
                children.extend(self.values(&member.value));
                inside.push(element("ResponseField", attributes, children));
            }
        }
        nodes.push(expandable(self.messages.servers, "servers", inside));
    }

    /// Shows the alternative ways to authenticate (§4.8.30).
    fn security(&self, operation: &Operation<'_>, nodes: &mut Vec<Node>) {
        let alternatives = operation.security();
        if alternatives.iter().all(|set| set.schemes.is_empty()) {
            return;
        }
        nodes.push(heading(self.messages.authorization, "authorization"));
        let several = alternatives.len() > 1;
        if several {
            nodes.push(paragraph(self.messages.any_one_is_enough));
        }
        for (n, set) in alternatives.iter().enumerate() {
            let fields: Vec<Node> = set
                .schemes
                .iter()
                .filter(|(name, _)| self.has_part(name.len()))
                .map(|(name, scheme)| self.credential(name, scheme))
                .collect();
            if !several {
                nodes.extend(fields);
                continue;
            }
            let names: Vec<&str> = set.schemes.iter().map(|(name, _)| *name).collect();
            let (title, anchor) = match &names[..] {
                [] => (self.messages.nothing.to_owned(), "nothing".to_owned()),
                names => (names.join(self.messages.and), names.join(" and ")),
            };
            let mut attributes = vec![text("title", &title), text("id", &github(&anchor))];
            attributes.extend((n == 0).then(|| flag("defaultOpen")));
            nodes.push(element("Expandable", attributes, fields));
        }
    }

    /// Shows the place and the kind of a credential (§4.8.27).
    fn credential(&self, name: &str, scheme: &Json) -> Node {
        let field = |key| scheme.get(key).and_then(Json::text);
        let (place, key, kind) = match (field("type"), field("in"), field("name")) {
            (Some("apiKey"), Some(place), Some(key)) => {
                (place, key, self.messages.api_key.to_owned())
            }
            (Some("http"), ..) => {
                let scheme = field("scheme").unwrap_or("bearer");
                ("header", "Authorization", format!("HTTP {scheme}"))
            }
            (Some("mutualTLS"), ..) => ("name", name, self.messages.certificate.to_owned()),
            (kind, ..) => (
                "header",
                "Authorization",
                kind.unwrap_or("bearer").to_owned(),
            ),
        };
        let mut children = vec![Node::Paragraph(vec![Node::Code(name.to_owned())])];
        children.extend(self.prose(field("description")));
        let scopes = scheme.get("flows").map_or(&[][..], Json::members).iter();
        let scopes =
            scopes.flat_map(|flow| flow.value.get("scopes").map_or(&[][..], Json::members));
        for scope in scopes.take(FIELDS_MAX) {
            let words = scope.value.text().unwrap_or_default();
            if !self.has_bytes(scope.key.len() + words.len()) {
                break;
            }
            let line = vec![
                Node::Code(scope.key.to_string()),
                Node::Text(format!(" {words}")),
            ];
            children.push(Node::Paragraph(line));
        }
        let attributes = vec![text(place, key), text("type", &kind), flag("required")];
        element("ParamField", attributes, children)
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

/// Returns how many bytes a value has as it is written.
fn bytes(value: &Json) -> usize {
    value.span.end.saturating_sub(value.span.start) as usize
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

/// Reads a description as Markdown (§4.8.1) with elements; over a limit it is shown as plain text.
fn prose(description: Option<&str>) -> Vec<Node> {
    let Some(text) = description else {
        return Vec::new();
    };
    crate::mdx::read_description(text)
        .unwrap_or_else(|_| vec![Node::Paragraph(vec![Node::Text(text.to_owned())])])
}

fn paragraph(words: &str) -> Node {
    Node::Paragraph(vec![Node::Text(words.to_owned())])
}

fn heading(title: &str, anchor: &str) -> Node {
    Node::Heading {
        level: 2,
        id: Some(anchor.into()),
        children: vec![Node::Text(title.to_owned())],
        anchor: None,
        span: Span::NONE,
    }
}

/// Makes a heading of a response.
fn subheading(title: &str, id: Option<&str>) -> Node {
    Node::Heading {
        level: 3,
        id: id.map(Into::into),
        children: vec![Node::Text(title.to_owned())],
        anchor: None,
        span: Span::NONE,
    }
}

fn fence(language: &str, title: &str, code: &str) -> Node {
    Node::Fence {
        info: format!("{language} title=\"{}\"", title.replace('"', "")),
        code: code.to_owned(),
    }
}

fn expandable(title: &str, anchor: &str, children: Vec<Node>) -> Node {
    let attributes = vec![text("title", title), text("id", &github(anchor))];
    element("Expandable", attributes, children)
}

fn element(name: &str, attributes: Vec<(Box<str>, Value)>, children: Vec<Node>) -> Node {
    Node::Element(Element {
        attributes,
        children,
        ..Element::new(name)
    })
}

fn text(name: &str, value: &str) -> (Box<str>, Value) {
    (name.into(), Value::Text(value.to_owned()))
}

fn flag(name: &str) -> (Box<str>, Value) {
    (name.into(), Value::Boolean(true))
}

#[cfg(test)]
mod tests;
