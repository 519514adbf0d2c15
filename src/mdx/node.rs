//! What a page says, as a tree: Markdown and elements alike.

use super::Value;
use super::component;
use super::drawing::is_part;

/// A piece of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Plain text; a line break in the source is `\n`.
    Text(String),
    /// `code` in a line.
    Code(String),
    /// A formula, in LaTeX.
    Formula {
        /// The source.
        tex: String,
        /// Whether it stands on lines of its own.
        display: bool,
    },
    /// A forced line break.
    Break,
    /// `*emphasis*`.
    Emphasis(Vec<Node>),
    /// `**strong**`.
    Strong(Vec<Node>),
    /// `~~struck~~`.
    Struck(Vec<Node>),
    /// A link.
    Link {
        /// Where to, as written.
        href: String,
        /// What is linked.
        children: Vec<Node>,
    },
    /// An image.
    Image {
        /// Its address, as written.
        src: String,
        /// Its description.
        alt: String,
    },
    /// `[^1]`.
    FootnoteReference(String),
    /// `[^1]: …`
    Footnote {
        /// Its label.
        label: String,
        /// What it says.
        children: Vec<Node>,
    },
    /// A heading.
    Heading {
        /// From 1 to 6.
        level: u8,
        /// The anchor that the author gave it.
        id: Option<String>,
        /// The heading.
        children: Vec<Node>,
    },
    /// A paragraph.
    Paragraph(Vec<Node>),
    /// Fenced code.
    Fence {
        /// What follows the opening fence: the language, a title, options.
        info: String,
        /// The code.
        code: String,
    },
    /// A quotation.
    Quote(Vec<Node>),
    /// A list.
    List {
        /// The number of the first item of an ordered list.
        start: Option<u64>,
        /// Its items.
        items: Vec<Item>,
    },
    /// A table.
    Table(Table),
    /// A thematic break.
    Rule,
    /// A tag with what it holds.
    Element(Element),
}

/// An item of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Whether its box is checked, when it has one.
    pub checked: Option<bool>,
    /// What it holds.
    pub children: Vec<Node>,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// How each column is aligned.
    pub alignment: Vec<Alignment>,
    /// The cells of the head.
    pub head: Vec<Vec<Node>>,
    /// The cells of each row.
    pub rows: Vec<Vec<Vec<Node>>>,
}

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// Not said.
    Unset,
    /// At the start.
    Left,
    /// In the middle.
    Center,
    /// At the end.
    Right,
}

/// A tag with its attributes and what it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    /// Its name: a component (`Card`), an HTML element (`div`), or nothing (a fragment).
    pub name: Box<str>,
    /// Its attributes in order.
    pub attributes: Vec<(Box<str>, Value)>,
    /// What it holds.
    pub children: Vec<Node>,
    /// The line of the page it stands in, from 1.
    pub line: u32,
}

// === impl Node ===

impl Node {
    /// Returns whether the node cannot stand in a paragraph.
    #[must_use]
    pub fn is_block(&self) -> bool {
        match self {
            Self::Element(element) => component::is_block(&element.name),
            Self::Formula { display, .. } => *display,
            Self::Heading { .. }
            | Self::Paragraph(_)
            | Self::Fence { .. }
            | Self::Quote(_)
            | Self::List { .. }
            | Self::Table(_)
            | Self::Rule
            | Self::Footnote { .. } => true,
            _ => false,
        }
    }

    /// Returns whether the node, or something in it, cannot stand in a paragraph.
    #[must_use]
    pub fn is_or_holds_block(&self) -> bool {
        self.is_block()
            || match self {
                Self::Element(Element { name, children, .. }) => {
                    // What lies in a drawing or a picture is part of it.
                    !matches!(&**name, "svg" | "picture")
                        && children.iter().any(Self::is_or_holds_block)
                }
                Self::Emphasis(children)
                | Self::Strong(children)
                | Self::Struck(children)
                | Self::Link { children, .. } => children.iter().any(Self::is_or_holds_block),
                _ => false,
            }
    }
}

// === impl Element ===

impl Element {
    /// Makes an element without attributes that holds nothing yet.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            attributes: Vec::new(),
            children: Vec::new(),
            line: 0,
        }
    }

    /// Returns an attribute.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        let found = self.attributes.iter().rev().find(|(n, _)| **n == *name);
        found.map(|(_, value)| value)
    }

    /// Returns an attribute that is a text or a number.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_text()
    }

    /// Returns whether an attribute is set and not `false`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|value| !matches!(value, Value::Boolean(false) | Value::Null))
    }
}

/// Returns the words of some nodes, without any markup.
#[must_use]
pub fn plain(nodes: &[Node]) -> String {
    let mut out = String::new();
    gather(nodes, &mut out);
    out
}

fn gather(nodes: &[Node], out: &mut String) {
    for node in nodes {
        match node {
            Node::Text(text) | Node::Code(text) | Node::Formula { tex: text, .. } => {
                out.push_str(text);
            }
            Node::Fence { code, .. } => {
                out.push_str(code);
                out.push(' ');
            }
            Node::Break | Node::Rule => out.push(' '),
            Node::Image { alt, .. } => out.push_str(alt),
            Node::FootnoteReference(_) => {}
            Node::Emphasis(children)
            | Node::Strong(children)
            | Node::Struck(children)
            | Node::Link { children, .. } => gather(children, out),
            Node::Footnote { children, .. }
            | Node::Heading { children, .. }
            | Node::Paragraph(children)
            | Node::Quote(children) => {
                gather(children, out);
                out.push(' ');
            }
            Node::List { items, .. } => items.iter().for_each(|item| gather(&item.children, out)),
            Node::Table(table) => {
                for cell in table.head.iter().chain(table.rows.iter().flatten()) {
                    gather(cell, out);
                    out.push(' ');
                }
            }
            // What a drawing says is drawn.
            Node::Element(element) if is_part(&element.name) => {}
            Node::Element(element) => gather(&element.children, out),
        }
    }
}
