//! The content of a page as a tree of Markdown and elements.

use std::borrow::Cow;

use super::anchor::Anchor;
use super::component;
use super::drawing::is_part;
use super::span::Span;

pub use super::value::Value;

/// A piece of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Plain text; a line break in the source is `\n`.
    Text(String),
    /// Inline code: `` `code` ``.
    Code(String),
    /// A formula, in LaTeX.
    Formula {
        /// The source.
        tex: String,
        /// Whether it is on lines of its own.
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
        /// The address, as written.
        href: String,
        /// The content of the link.
        children: Vec<Node>,
        /// The place of the address, or of the whole link if the address is not found.
        span: Span,
    },
    /// An image.
    Image {
        /// Its address, as written.
        src: String,
        /// Its description.
        alt: String,
        /// Its title; empty if it has none.
        title: String,
        /// The place of the address, or of the whole image if the address is not found.
        span: Span,
    },
    /// `[^1]`.
    FootnoteReference(String),
    /// `[^1]: …`
    Footnote {
        /// Its label.
        label: String,
        /// Its content.
        children: Vec<Node>,
    },
    /// A heading.
    Heading {
        /// From 1 to 6.
        level: u8,
        /// The id that the author wrote.
        id: Option<String>,
        /// The heading.
        children: Vec<Node>,
        /// The anchor that it has on its page.
        anchor: Option<Box<Anchor>>,
        /// Its place in the source.
        span: Span,
    },
    /// A paragraph.
    Paragraph(Vec<Node>),
    /// Fenced code.
    Fence {
        /// The text after the opening fence: the language, a title, options.
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
    /// An element: a tag with its content.
    Element(Element),
    /// A part of the page that could not be evaluated; a note is shown in its place.
    Expression(Expression),
}

/// A part of a page that could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    /// Its source.
    pub source: Box<str>,
    /// Its place in the source.
    pub span: Span,
    /// While the page is read: the number of the piece that will be evaluated.
    pub(super) piece: Option<usize>,
}

/// An item of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Whether its checkbox is checked; `None` if it has no checkbox.
    pub checked: Option<bool>,
    /// Its children.
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
    /// The author set none.
    Unset,
    /// At the start.
    Left,
    /// In the middle.
    Center,
    /// At the end.
    Right,
}

/// An element: a tag with its attributes and its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    /// The name of a component (`Card`) or of an HTML element (`div`); empty for a fragment.
    pub name: Box<str>,
    /// Its attributes in order.
    pub attributes: Vec<(Box<str>, Value)>,
    /// Its children.
    pub children: Vec<Node>,
    /// The line of its opening tag in the page, from 1.
    pub line: u32,
    /// Its place, from the opening tag to the closing tag.
    pub span: Span,
    /// The places of the attributes that have a name in the source (a spread has none).
    pub written: Vec<AttributePosition>,
    /// The anchor that it has on its page.
    pub anchor: Option<Box<Anchor>>,
}

/// The place of an attribute in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributePosition {
    /// Its name.
    pub name: Box<str>,
    /// The place of its value, without quotes or braces.
    pub span: Span,
    /// The source of its value, if the value is an expression that was not evaluated.
    pub unevaluated: Option<Box<str>>,
    /// While the page is read: the number of the piece that will be evaluated, and how many
    /// attributes are before this one.
    pub(super) piece: Option<(usize, usize)>,
}

/// Calls `$visit` with each list of child nodes, borrowed as `$node` is.
macro_rules! each_children {
    ($node:expr, $visit:expr, $iter:ident $(, $mutable:tt)?) => {
        match $node {
            Node::Emphasis(children)
            | Node::Strong(children)
            | Node::Struck(children)
            | Node::Link { children, .. }
            | Node::Footnote { children, .. }
            | Node::Heading { children, .. }
            | Node::Paragraph(children)
            | Node::Quote(children)
            | Node::Element(Element { children, .. }) => $visit(children),
            Node::List { items, .. } => {
                items.$iter().for_each(|item| $visit(&$($mutable)? item.children));
            }
            Node::Table(table) => {
                let cells = table.head.$iter().chain(table.rows.$iter().flatten());
                cells.for_each(|cell| $visit(cell));
            }
            _ => {}
        }
    };
}

// === impl Node ===

impl Node {
    /// Returns whether the node cannot be in a paragraph.
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

    /// Visits the lists of child nodes.
    pub fn each_children<'n>(&'n self, visit: &mut dyn FnMut(&'n [Node])) {
        each_children!(self, visit, iter);
    }

    /// Visits the lists of child nodes mutably, as [`Node::each_children`] does.
    pub fn each_children_mut(&mut self, visit: &mut dyn FnMut(&mut Vec<Node>)) {
        each_children!(self, visit, iter_mut, mut);
    }

    /// Returns about how many bytes a copy needs.
    pub(super) fn bytes(&self) -> usize {
        let own = match self {
            Self::Text(text)
            | Self::Code(text)
            | Self::Formula { tex: text, .. }
            | Self::FootnoteReference(text)
            | Self::Link { href: text, .. }
            | Self::Footnote { label: text, .. } => text.len(),
            Self::Image {
                src, alt, title, ..
            } => src.len() + alt.len() + title.len(),
            Self::Fence { info, code } => info.len() + code.len(),
            Self::Expression(expression) => expression.source.len(),
            Self::Element(element) => element.bytes(),
            _ => 0,
        };
        let mut bytes = size_of::<Self>() + own;
        self.each_children(&mut |children| {
            bytes += size_of::<Vec<Self>>() + children.iter().map(Self::bytes).sum::<usize>();
        });
        bytes
    }

    /// Returns whether the node or one of its descendants cannot be in a paragraph.
    #[must_use]
    pub fn is_or_holds_block(&self) -> bool {
        self.is_block()
            || match self {
                Self::Element(element) => {
                    // The content of a drawing or a picture is part of it.
                    *element.name != *"svg"
                        && !element.is_picture()
                        && element.children.iter().any(Self::is_or_holds_block)
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
    /// Returns whether it is a `<picture>` of an image and its sources. Browsers show everything
    /// else in a picture as if it were outside, and an author may have forgotten to end it.
    #[must_use]
    pub fn is_picture(&self) -> bool {
        fn is_part(node: &Node) -> bool {
            match node {
                Node::Text(text) => text.trim().is_empty(),
                Node::Break => true,
                Node::Paragraph(children) => children.iter().all(is_part),
                Node::Element(element) => matches!(&*element.name, "img" | "source"),
                _ => false,
            }
        }
        fn has_image(node: &Node) -> bool {
            match node {
                Node::Paragraph(children) => children.iter().any(has_image),
                Node::Element(element) => *element.name == *"img",
                _ => false,
            }
        }
        *self.name == *"picture"
            && self.children.iter().all(is_part)
            && self.children.iter().any(has_image)
    }

    /// Makes an element without attributes and children.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            attributes: Vec::new(),
            children: Vec::new(),
            line: 0,
            span: Span::NONE,
            written: Vec::new(),
            anchor: None,
        }
    }

    /// Returns about how many bytes a copy of its attributes needs.
    fn bytes(&self) -> usize {
        let attributes = self.attributes.iter();
        let attributes = attributes.map(|(name, value)| name.len() + value.bytes());
        let written = self.written.iter().map(|written| {
            let source = written.unevaluated.as_ref();
            size_of::<AttributePosition>()
                + written.name.len()
                + source.map_or(0, |source| source.len())
        });
        self.name.len() + attributes.sum::<usize>() + written.sum::<usize>()
    }

    /// Returns the place of the value of an attribute.
    #[must_use]
    pub fn span_of(&self, name: &str) -> Option<Span> {
        let mut written = self.written.iter().rev();
        Some(written.find(|written| *written.name == *name)?.span)
    }

    /// Returns whether an attribute is an expression that was not evaluated.
    #[must_use]
    pub fn is_unevaluated(&self, name: &str) -> bool {
        let mut written = self.written.iter().rev();
        written
            .find(|written| *written.name == *name)
            .is_some_and(|written| written.unevaluated.is_some())
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

    /// Returns an attribute that is a whole number up to 65,535.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<usize> {
        self.text(name)?.trim().parse::<u16>().ok().map(Into::into)
    }

    /// Returns the words of an attribute that is a text, a number or a piece of a page.
    #[must_use]
    pub fn words(&self, name: &str) -> Option<Cow<'_, str>> {
        match self.get(name)? {
            Value::Text(text) => Some(Cow::Borrowed(text)),
            Value::Nodes(nodes) => Some(plain(nodes).trim().to_owned().into()),
            _ => None,
        }
    }

    /// Returns whether an attribute is set and not `false`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|value| !matches!(value, Value::Boolean(false) | Value::Null))
    }
}

/// Makes fenced code of the text in a `CodeBlock`, which has its language and its title as
/// attributes.
///
/// Of an expression that failed, its source is shown: it is code too.
pub(super) fn code_block(block: &mut Element) {
    let is_text = |node: &Node| match node {
        Node::Paragraph(line) => line.iter().all(is_code),
        node => is_code(node),
    };
    if &*block.name != "CodeBlock"
        || block.children.is_empty()
        || !block.children.iter().all(is_text)
    {
        return;
    }
    let mut info = block
        .text("language")
        .or_else(|| block.text("lang"))
        .unwrap_or("text")
        .to_owned();
    let title = block.text("filename").or_else(|| block.text("title"));
    if let Some(title) = title.filter(|title| !title.contains('"')) {
        info += &format!(" title=\"{title}\"");
    }
    if let Some(icon) = block.text("icon").filter(|icon| !icon.contains([' ', '"'])) {
        info += &format!(" icon=\"{icon}\"");
    }
    for flag in ["lines", "wrap", "expandable"] {
        if block.has(flag) {
            info += &format!(" {flag}");
        }
    }
    for marks in ["highlight", "focus"] {
        if let Some(Value::Text(lines)) = block.get(marks) {
            let lines = lines.trim_matches(['[', ']', '{', '}']).replace(' ', "");
            info += &format!(" {marks}={{{lines}}}");
        }
    }
    let code = code_of(&block.children);
    let code = format!("{}\n", code.trim_start_matches('\n').trim_end());
    block.children = vec![Node::Fence { info, code }];
}

/// Makes fenced code of `<pre><code>`, so that it is shown as other samples are.
pub(super) fn code_sample(element: &Element) -> Option<Node> {
    if &*element.name != "pre" {
        return None;
    }
    let inner = match &element.children[..] {
        [Node::Paragraph(line)] => line,
        children => children,
    };
    let [Node::Element(code)] = inner else {
        return None;
    };
    let is_code = !code.children.is_empty() && code.children.iter().all(is_code);
    if &*code.name != "code" || !is_code {
        return None;
    }
    let text = code_of(&code.children);
    let language = code.text("className").or_else(|| code.text("class"));
    let language = language.and_then(|classes| {
        let mut classes = classes.split_whitespace();
        classes.find_map(|class| class.strip_prefix("language-"))
    });
    Some(Node::Fence {
        info: language.unwrap_or_default().to_owned(),
        code: format!("{}\n", text.trim_end()),
    })
}

/// Returns whether a node in a code sample is code: a text, or an expression that failed.
fn is_code(node: &Node) -> bool {
    match node {
        Node::Text(_) | Node::Break => true,
        Node::Expression(expression) => expression.piece.is_none(),
        _ => false,
    }
}

/// Returns the code of a sample.
fn code_of(nodes: &[Node]) -> String {
    let mut out = String::new();
    for node in nodes {
        match node {
            Node::Paragraph(line) => out += &(code_of(line) + " "),
            Node::Expression(expression) => out += &source_of(&expression.source),
            node => gather(std::slice::from_ref(node), &mut out),
        }
    }
    out
}

/// Returns what the source of an expression shows best: the text of a template with the names in
/// it, or the source in braces.
fn source_of(source: &str) -> String {
    let template = source.trim().strip_prefix('`');
    let template = template.and_then(|rest| rest.strip_suffix('`'));
    let Some(template) = template else {
        return format!("{{{source}}}");
    };
    let mut out = String::with_capacity(template.len());
    let mut characters = template.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(escaped @ ('`' | '$' | '\\')) => out.push(escaped),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    out
}

/// Moves the `<summary>` of `<details>` out of the paragraph that it has with text in the same line.
pub(super) fn lift_summary(details: &mut Element) {
    let is_summary =
        |node: &Node| matches!(node, Node::Element(element) if &*element.name == "summary");
    let is_space = |node: &Node| matches!(node, Node::Text(text) if text.trim().is_empty());
    if &*details.name != "details" {
        return;
    }
    let Some(Node::Paragraph(line)) = details.children.first_mut() else {
        return;
    };
    let before = line.iter().take_while(|node| is_space(node)).count();
    if !line.get(before).is_some_and(is_summary) {
        return;
    }
    let summary = line.remove(before);
    let is_empty = line.iter().all(is_space);
    details.children.splice(0..usize::from(is_empty), [summary]);
}

/// Returns whether some nodes contain an expression that was not evaluated.
#[must_use]
pub fn holds_expression(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| {
        let mut found = matches!(node, Node::Expression(_));
        node.each_children(&mut |children| found = found || holds_expression(children));
        found
    })
}

/// Returns some nodes as the content of a line: blocks are replaced by their content, so images,
/// icons, links and emphasis are kept.
#[must_use]
pub fn in_line(nodes: &[Node]) -> Vec<Node> {
    let mut out = Vec::new();
    for node in nodes {
        if !node.is_or_holds_block() {
            out.push(node.clone());
            continue;
        }
        match node {
            Node::Emphasis(children) => out.push(Node::Emphasis(in_line(children))),
            Node::Strong(children) => out.push(Node::Strong(in_line(children))),
            Node::Struck(children) => out.push(Node::Struck(in_line(children))),
            Node::Link {
                href,
                children,
                span,
            } => out.push(Node::Link {
                href: href.clone(),
                children: in_line(children),
                span: *span,
            }),
            Node::Paragraph(children)
            | Node::Heading { children, .. }
            | Node::Quote(children)
            | Node::Footnote { children, .. } => out.extend(in_line(children)),
            Node::List { items, .. } => {
                for item in items {
                    out.extend(in_line(&item.children));
                    out.push(Node::Text(" ".to_owned()));
                }
            }
            Node::Formula { tex, .. } => out.push(Node::Formula {
                tex: tex.clone(),
                display: false,
            }),
            Node::Fence { code, .. } => out.push(Node::Code(code.trim().to_owned())),
            Node::Element(element) if component::is_container(&element.name) => {
                out.push(Node::Element(Element {
                    name: "span".into(),
                    children: in_line(&element.children),
                    ..element.clone()
                }));
            }
            Node::Element(element) if !component::is_block(&element.name) => {
                out.push(Node::Element(Element {
                    children: in_line(&element.children),
                    ..element.clone()
                }));
            }
            Node::Element(element) if component::html(&element.name).is_some() => {
                out.extend(in_line(&element.children));
            }
            other => out.push(Node::Text(plain(std::slice::from_ref(other)))),
        }
        out.push(Node::Text(" ".to_owned()));
    }
    if matches!(out.last(), Some(Node::Text(text)) if text == " ") {
        out.pop();
    }
    out
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
            Node::FootnoteReference(_) | Node::Expression(_) => {}
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
            // The text of a drawing is part of the picture.
            Node::Element(element) if is_part(&element.name) => {}
            Node::Element(element) => {
                gather(&element.children, out);
                if component::is_block(&element.name) {
                    out.push(' ');
                }
            }
        }
    }
}
