//! What others need to know of a page: its headings, its anchors, and what it refers to.
//!
//! The outline is walked from the tree that HTML and Markdown are written from, so it names
//! what is there: no link in a comment, and each heading of a snippet that the page shows.

use super::anchor::Anchors;
use super::node::{Element, Node, Value, plain};
use super::span::Span;

/// How long the target of a link may be to be checked, in bytes.
const TARGET_BYTES_MAX: usize = 4096;

/// What others need to know of a page.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// Its headings in order; the title of the page is not among them.
    pub headings: Vec<Heading>,
    /// What a link into the page may name.
    pub anchors: Anchors,
    /// What it refers to, in order.
    pub references: Vec<Reference>,
}

/// A heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// From 1 to 6, as written.
    pub level: u8,
    /// Its words.
    pub text: Box<str>,
    /// Its anchor.
    pub anchor: Box<str>,
    /// Where it stands.
    pub span: Span,
}

/// Something a page refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// What for.
    pub kind: ReferenceKind,
    /// What it says.
    pub target: Box<str>,
    /// Where it says so.
    pub span: Span,
}

/// What a page refers to something for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceKind {
    /// To lead there.
    Link,
    /// To show it.
    Image,
}

// === impl Outline ===

impl Outline {
    /// Gives the places of a page their anchors, and lists what is on it.
    pub(super) fn of(nodes: &mut [Node]) -> Self {
        let mut outline = Self::default();
        outline.anchors.assign(nodes);
        outline.nodes(nodes);
        outline
    }

    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Heading {
                    level,
                    children,
                    anchor,
                    span,
                    ..
                } => {
                    let id = anchor.as_ref().map(|anchor| anchor.id.clone());
                    self.heading(*level, children, id, *span);
                }
                Node::Link { href, span, .. } => self.refer(ReferenceKind::Link, href, *span),
                Node::Image { src, span, .. } => self.refer(ReferenceKind::Image, src, *span),
                Node::Element(element) => self.element(element),
                _ => {}
            }
            node.each_children(&mut |children| self.nodes(children));
        }
    }

    fn heading(&mut self, level: u8, children: &[Node], id: Option<Box<str>>, span: Span) {
        self.headings.push(Heading {
            level,
            text: plain(children).trim().into(),
            anchor: id.unwrap_or_default(),
            span,
        });
    }

    fn element(&mut self, element: &Element) {
        if let [b'h', level @ b'1'..=b'6'] = element.name.as_bytes() {
            let id = element.anchor.as_ref().map(|anchor| anchor.id.clone());
            self.heading(level - b'0', &element.children, id, element.span);
        }
        if *element.name == *"iframe" {
            return;
        }
        for (key, value) in &element.attributes {
            let kind = match (&**key, &*element.name) {
                ("href", _) => ReferenceKind::Link,
                ("src" | "poster" | "srcDark" | "light" | "dark", _) | ("img", "Card") => {
                    ReferenceKind::Image
                }
                _ => continue,
            };
            if let Value::Text(target) = value {
                let span = element.span_of(key).unwrap_or(element.span);
                self.refer(kind, target, span);
            }
        }
    }

    fn refer(&mut self, kind: ReferenceKind, target: &str, span: Span) {
        if !target.is_empty() && target.len() <= TARGET_BYTES_MAX && span.is_written() {
            self.references.push(Reference {
                kind,
                target: target.into(),
                span,
            });
        }
    }
}
