//! The outline of a page: its headings, its anchors and its references.
//!
//! The outline is made from the same tree as HTML and Markdown, so it lists only content that
//! is written: no link in a comment, and each heading of a snippet that the page shows.

use super::anchor::Anchors;
use super::node::{Element, Node, Value, plain};
use super::span::Span;

/// How long the target of a link may be, in bytes; longer targets are not checked.
const TARGET_BYTES_MAX: usize = 4096;

/// The headings, anchors and references of a page.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// Its headings in order, without the title of the page.
    pub headings: Vec<Heading>,
    /// The anchors that a link into the page may use.
    pub anchors: Anchors,
    /// Its links and images, in order.
    pub references: Vec<Reference>,
}

/// A heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// The level, from 1 to 6, as written.
    pub level: u8,
    /// Its words.
    pub text: Box<str>,
    /// Its anchor.
    pub anchor: Box<str>,
    /// Its place in the source.
    pub span: Span,
}

/// A link or an image of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Whether this is a link or an image.
    pub kind: ReferenceKind,
    /// The address, as written.
    pub target: Box<str>,
    /// The place of the address in the source.
    pub span: Span,
}

/// The kind of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceKind {
    /// A link to the target.
    Link,
    /// An image or a video that the page shows.
    Image,
}

// === impl Outline ===

impl Outline {
    /// Assigns the anchors of a page and lists its headings and references.
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
        // The reference of `use` is no link.
        if matches!(&*element.name, "iframe" | "use") {
            return;
        }
        for (key, value) in &element.attributes {
            if let Value::Nodes(nodes) = value {
                self.nodes(nodes);
            }
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
