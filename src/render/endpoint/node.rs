//! The nodes that parts of a specification become.

use crate::mdx::anchor::github;
use crate::mdx::{Element, Node, Span, Value};

/// Reads a description as Markdown (§4.8.1) with elements; over a limit it is shown as plain text.
pub(super) fn prose(description: Option<&str>) -> Vec<Node> {
    let Some(text) = description else {
        return Vec::new();
    };
    crate::mdx::read_description(text)
        .unwrap_or_else(|_| vec![Node::Paragraph(vec![Node::Text(text.to_owned())])])
}

pub(super) fn paragraph(words: &str) -> Node {
    Node::Paragraph(vec![Node::Text(words.to_owned())])
}

pub(super) fn heading(title: &str, anchor: &str) -> Node {
    Node::Heading {
        level: 2,
        id: Some(anchor.into()),
        children: vec![Node::Text(title.to_owned())],
        anchor: None,
        span: Span::NONE,
    }
}

/// Makes a heading of a response.
pub(super) fn subheading(title: &str, id: Option<&str>) -> Node {
    Node::Heading {
        level: 3,
        id: id.map(Into::into),
        children: vec![Node::Text(title.to_owned())],
        anchor: None,
        span: Span::NONE,
    }
}

pub(super) fn fence(language: &str, title: &str, code: &str) -> Node {
    Node::Fence {
        info: format!("{language} title=\"{}\"", title.replace('"', "")),
        code: code.to_owned(),
    }
}

pub(super) fn expandable(title: &str, anchor: &str, children: Vec<Node>) -> Node {
    let attributes = vec![text("title", title), text("id", &github(anchor))];
    element("Expandable", attributes, children)
}

pub(super) fn element(name: &str, attributes: Vec<(Box<str>, Value)>, children: Vec<Node>) -> Node {
    Node::Element(Element {
        attributes,
        children,
        ..Element::new(name)
    })
}

pub(super) fn text(name: &str, value: &str) -> (Box<str>, Value) {
    (name.into(), Value::Text(value.to_owned()))
}

pub(super) fn flag(name: &str) -> (Box<str>, Value) {
    (name.into(), Value::Boolean(true))
}
