//! Builds nodes from the parser's events for Markdown with marks.
//!
//! A mark is a number between two characters that the text of a page cannot contain (`clean`
//! replaces them). A mark may be wherever text may be. The two characters are rare punctuation:
//! the tag or brace that a mark replaces also begins and ends with punctuation, which decides
//! whether `**` beside it opens or closes (CommonMark 0.31.2 §6.2).

mod steps;
mod text;

use std::mem;
use std::ops::Range;

use pulldown_cmark::{
    Alignment as Aligned, BlockQuoteKind, CodeBlockKind, Event, HeadingLevel, LinkType, Options,
    Parser, Tag,
};

pub use steps::STEPS_MAX;
pub(super) use steps::{Steps, TooManySteps};
use text::split_url;
pub(super) use text::unescape;

use super::DEPTH_MAX;
use super::node::{Alignment, Element, Item, Node, Table};
use super::span::{Span, Trace};

/// Starts a mark. It has three bytes.
pub(super) const MARK: char = '\u{2cfe}';
/// Ends a mark. It has three bytes.
pub(super) const MARK_END: char = '\u{2cff}';
/// How often text that the parser reports as indented code is parsed again.
const AGAIN_MAX: usize = 8;

/// A mark: what it stands for, and the source that it replaces.
#[derive(Debug)]
pub(super) struct Mark<'t> {
    pub meaning: Meaning,
    /// Shown where Markdown has no elements: in code and formulas.
    pub source: &'t str,
}

/// The meaning of a mark.
#[derive(Debug)]
pub(super) enum Meaning {
    /// Finished nodes.
    Nodes(Vec<Node>),
    /// An inline element starts here.
    Open(Element),
    /// The innermost open inline element ends here.
    Close,
}

/// Writes the mark with this number.
pub(super) fn push_mark(text: &mut String, number: usize) {
    text.push(MARK);
    text.push_str(&number.to_string());
    text.push(MARK_END);
}

/// Reads Markdown; `depth` is the nesting depth of the text in the page.
pub(super) fn read(
    text: &str,
    marks: &mut [Mark<'_>],
    trace: &Trace,
    depth: usize,
    steps: &mut Steps,
) -> Result<Vec<Node>, TooManySteps> {
    steps.charge(text)?;
    Ok(read_again(text, marks, trace, depth, 0))
}

fn read_again(
    text: &str,
    marks: &mut [Mark<'_>],
    trace: &Trace,
    depth: usize,
    again: usize,
) -> Vec<Node> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_MATH
        | Options::ENABLE_GFM;
    let mut builder = Builder {
        source: text,
        marks,
        trace,
        frames: vec![Frame::new(None, 0..0)],
        words: String::new(),
        flat: 0,
        depth,
        again,
    };
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        builder.event(event, range);
    }
    builder.finish()
}

struct Builder<'m, 't> {
    source: &'m str,
    marks: &'m mut [Mark<'t>],
    trace: &'m Trace,
    /// Text that is not in a node yet: the parser reports text in pieces.
    words: String,
    frames: Vec<Frame>,
    /// How many containers are open that are deeper than [`DEPTH_MAX`].
    flat: usize,
    depth: usize,
    again: usize,
}

/// An open container.
struct Frame {
    tag: Option<Tag<'static>>,
    /// Its place in the text.
    range: Range<usize>,
    /// The lines of indented code, and the place from which each line was copied.
    code: String,
    copies: Vec<(usize, usize)>,
    children: Vec<Node>,
    checked: Option<bool>,
    /// The items of a list, the cells of a row, and the rows of a table.
    items: Vec<Item>,
    cells: Vec<Vec<Node>>,
    head: Vec<Vec<Node>>,
    rows: Vec<Vec<Vec<Node>>>,
}

// === impl Frame ===

impl Frame {
    fn new(tag: Option<Tag<'static>>, range: Range<usize>) -> Self {
        Self {
            tag,
            range,
            code: String::new(),
            copies: Vec::new(),
            children: Vec::new(),
            checked: None,
            items: Vec::new(),
            cells: Vec::new(),
            head: Vec::new(),
            rows: Vec::new(),
        }
    }
}

// === impl Builder ===

impl Builder<'_, '_> {
    fn top(&mut self) -> &mut Frame {
        self.frames
            .last_mut()
            .expect("the outermost frame is never closed")
    }

    fn push(&mut self, node: Node) {
        self.top().children.push(node);
    }

    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        // MDX has no HTML: HTML that the parser still reports is text.
        if let Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) = &event {
            let top = self.top();
            // Indented code is parsed again as Markdown, with its marks.
            if matches!(top.tag, Some(Tag::CodeBlock(CodeBlockKind::Indented))) {
                top.copies.push((top.code.len(), range.start));
                top.code.push_str(text);
            } else {
                self.words.push_str(text);
            }
            return;
        }
        if !self.words.is_empty() {
            let words = mem::take(&mut self.words);
            self.text(&words);
        }
        match event {
            // Containers deeper than the limit are flattened into their parent.
            Event::Start(_) if self.frames.len() + self.depth > DEPTH_MAX => self.flat += 1,
            Event::Start(tag) => self.frames.push(Frame::new(Some(tag.into_static()), range)),
            Event::End(_) if self.flat > 0 => self.flat -= 1,
            Event::End(_) => self.close(),
            Event::Text(_) | Event::Html(_) | Event::InlineHtml(_) => {}
            Event::Code(code) => {
                // CommonMark 0.31.2 §6.1: a line end is a space.
                let code = self.unmarked(&code).replace('\n', " ");
                self.push(Node::Code(code));
            }
            Event::InlineMath(tex) => self.formula(&tex, false),
            Event::DisplayMath(tex) => self.formula(&tex, true),
            Event::FootnoteReference(label) => {
                self.push(Node::FootnoteReference(label.into_string()));
            }
            Event::SoftBreak => self.push(Node::Text("\n".to_owned())),
            Event::HardBreak => self.push(Node::Break),
            Event::Rule => self.push(Node::Rule),
            Event::TaskListMarker(checked) => {
                if let Some(item) = self
                    .frames
                    .iter_mut()
                    .rev()
                    .find(|frame| matches!(frame.tag, Some(Tag::Item)))
                {
                    item.checked = Some(checked);
                }
            }
        }
    }

    fn formula(&mut self, tex: &str, display: bool) {
        let tex = self.unmarked(tex);
        self.push(Node::Formula { tex, display });
    }

    /// Adds text and replaces its marks.
    fn text(&mut self, text: &str) {
        if matches!(self.top().tag, Some(Tag::CodeBlock(_))) {
            let code = self.unmarked(text);
            self.push(Node::Text(code));
            return;
        }
        let mut rest = text;
        while let Some((before, number, after)) = split_mark(rest) {
            self.plain(before);
            rest = after;
            match self.marks.get_mut(number).map(|mark| &mut mark.meaning) {
                Some(Meaning::Nodes(nodes)) => {
                    let nodes = mem::take(nodes);
                    self.top().children.extend(nodes);
                }
                Some(Meaning::Open(element)) => {
                    let element = mem::replace(element, Element::new(""));
                    self.push(Node::Element(Element {
                        name: format!("{MARK}{}", element.name).into(),
                        ..element
                    }));
                }
                Some(Meaning::Close) => self.push(Node::Text(MARK_END.to_string())),
                None => {}
            }
        }
        self.plain(rest);
    }

    /// Returns a text with the source of each mark in its place.
    fn unmarked(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, number, after)) = split_mark(rest) {
            out.push_str(before);
            out.push_str(self.marks.get(number).map_or("", |mark| mark.source));
            rest = after;
        }
        out + rest
    }

    /// Adds text without marks; addresses in it become links (GFM §6.9).
    fn plain(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let linkable = !matches!(self.top().tag, Some(Tag::Link { .. } | Tag::Image { .. }));
        let mut rest = text;
        while linkable && let Some((before, url, after)) = split_url(rest) {
            if !before.is_empty() {
                self.push(Node::Text(before.to_owned()));
            }
            self.push(Node::Link {
                href: url.to_owned(),
                children: vec![Node::Text(url.to_owned())],
                span: Span::NONE,
            });
            rest = after;
        }
        if !rest.is_empty() {
            self.push(Node::Text(rest.to_owned()));
        }
    }

    fn close(&mut self) {
        let depth = self.frames.len() + self.depth;
        let Some(mut frame) = self.frames.pop() else {
            return;
        };
        let Some(tag) = frame.tag.take() else {
            self.frames.push(frame);
            return;
        };
        frame.children = nest(frame.children);
        match tag {
            Tag::Paragraph => self.paragraph(frame.children),
            Tag::Item => {
                let item = Item {
                    checked: frame.checked,
                    children: frame.children,
                };
                self.top().items.push(item);
            }
            Tag::TableCell => self.top().cells.push(frame.children),
            Tag::TableHead => self.top().head = frame.cells,
            Tag::TableRow => self.top().rows.push(frame.cells),
            // MDX has no indented code; nested indentation makes several passes necessary.
            Tag::CodeBlock(CodeBlockKind::Indented) if self.again < AGAIN_MAX => {
                let trace = self.trace.of_copies(frame.copies.into_iter());
                let nodes = read_again(&frame.code, self.marks, &trace, depth, self.again + 1);
                self.top().children.extend(nodes);
            }
            Tag::CodeBlock(CodeBlockKind::Indented) => {
                // After the last pass the text is added line by line; only its marks are replaced.
                let mut nodes = Vec::new();
                for line in frame.code.lines() {
                    nodes.extend(self.marked(line));
                }
                self.top().children.extend(nodes);
            }
            Tag::CodeBlock(CodeBlockKind::Fenced(info)) => {
                let info = self.unmarked(&info);
                let code = gather_text(frame.children);
                self.push(Node::Fence { info, code });
            }
            mut tag => {
                if let Tag::Heading { id, .. } = &mut tag {
                    let written = &self.source[frame.range.clone()];
                    *id = take_id(written, &mut frame.children).map(Into::into);
                }
                let span = self.place(&tag, frame.range.clone());
                if let Some(node) = node(tag, frame, span) {
                    self.push(node);
                }
            }
        }
    }

    /// Returns the nodes of a text after replacing its marks.
    fn marked(&mut self, text: &str) -> Vec<Node> {
        self.frames.push(Frame::new(None, 0..0));
        self.text(text);
        let frame = self.frames.pop();
        nest(frame.map(|frame| frame.children).unwrap_or_default())
    }

    /// Returns the place of a container; for a link or an image, the place of its address.
    fn place(&self, tag: &Tag<'_>, range: Range<usize>) -> Span {
        let range = match tag {
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                let written = self.source.get(range.clone()).unwrap_or_default();
                // The reader has escaped dollars.
                let dollars = dest_url.replace('$', "\\$");
                let mut forms = [&**dest_url, &*dollars].into_iter();
                let found = forms.find_map(|form| Some((written.rfind(form)?, form.len())));
                match found.filter(|_| !dest_url.is_empty()) {
                    Some((at, length)) => range.start + at..range.start + at + length,
                    None => range,
                }
            }
            _ => range,
        };
        self.trace.span(range)
    }

    /// Adds a paragraph, or only its children when all of them are blocks.
    fn paragraph(&mut self, children: Vec<Node>) {
        let is_space = |node: &Node| matches!(node, Node::Text(text) if text.trim().is_empty());
        if children.iter().all(is_space) {
            return;
        }
        let is_block = |node: &Node| node.is_block() || is_space(node);
        if children.iter().all(is_block) {
            let blocks = children.into_iter().filter(|node| !is_space(node));
            self.top().children.extend(blocks);
        } else {
            self.push(Node::Paragraph(children));
        }
    }

    fn finish(mut self) -> Vec<Node> {
        let words = mem::take(&mut self.words);
        self.text(&words);
        while self.frames.len() > 1 {
            self.close();
        }
        let nodes = self.frames.pop().map(|frame| frame.children);
        nest(nodes.unwrap_or_default())
    }
}

/// Makes the node of a container that was closed.
fn node(tag: Tag<'_>, frame: Frame, span: Span) -> Option<Node> {
    let children = frame.children;
    Some(match tag {
        Tag::Heading { level, id, .. } => Node::Heading {
            level: match level {
                HeadingLevel::H1 => 1,
                HeadingLevel::H2 => 2,
                HeadingLevel::H3 => 3,
                HeadingLevel::H4 => 4,
                HeadingLevel::H5 => 5,
                HeadingLevel::H6 => 6,
            },
            id: id.map(pulldown_cmark::CowStr::into_string),
            children,
            anchor: None,
            span,
        },
        Tag::BlockQuote(None) => Node::Quote(children),
        Tag::BlockQuote(Some(kind)) => Node::Element(Element {
            name: match kind {
                BlockQuoteKind::Note => "Note",
                BlockQuoteKind::Tip => "Tip",
                BlockQuoteKind::Important => "Info",
                BlockQuoteKind::Warning => "Warning",
                BlockQuoteKind::Caution => "Danger",
            }
            .into(),
            children,
            ..Element::new("")
        }),
        Tag::List(start) => Node::List {
            start,
            items: frame.items,
        },
        Tag::FootnoteDefinition(label) => Node::Footnote {
            label: label.into_string(),
            children,
        },
        Tag::Table(alignment) => Node::Table(Table {
            alignment: alignment.into_iter().map(aligned).collect(),
            head: frame.head,
            rows: frame.rows,
        }),
        Tag::Emphasis => Node::Emphasis(children),
        Tag::Strong => Node::Strong(children),
        Tag::Strikethrough => Node::Struck(children),
        Tag::Link {
            link_type,
            dest_url,
            ..
        } => Node::Link {
            // CommonMark 0.31.2 §6.5: `<name@host>`.
            href: match link_type {
                LinkType::Email => format!("mailto:{dest_url}"),
                _ => without_marks(&dest_url),
            },
            children,
            span,
        },
        Tag::Image {
            dest_url, title, ..
        } => Node::Image {
            src: without_marks(&dest_url),
            alt: super::plain(&children),
            title: without_marks(&title),
            span,
        },
        Tag::HtmlBlock => Node::Paragraph(children),
        _ => return None,
    })
}

/// Takes the id from the end of a heading, `{#id}`.
///
/// The Markdown parser would take all words in braces there, as attributes.
fn take_id(written: &str, children: &mut Vec<Node>) -> Option<String> {
    // A heading of several lines has its underline in the last one.
    let text = written.trim_end();
    let text = text.rsplit_once('\n').map_or(text, |(text, _)| text);
    let text = text.trim_end().trim_end_matches('#').trim_end();
    let (before, id) = text.strip_suffix('}')?.rsplit_once("{#")?;
    let is_odd = |c: char| c.is_whitespace() || matches!(c, '{' | '}' | MARK);
    if before.ends_with('\\') || id.is_empty() || id.contains(is_odd) {
        return None;
    }
    // The parser may have found emphasis in the id: it follows this text.
    let mut texts = children.iter().enumerate().rev();
    let (at, length) = texts.find_map(|(at, node)| match node {
        Node::Text(text) => Some((at, text[..text.rfind("{#")?].trim_end().len())),
        _ => None,
    })?;
    children.truncate(at + usize::from(length > 0));
    if let Some(Node::Text(text)) = children.get_mut(at) {
        text.truncate(length);
    }
    Some(id.to_owned())
}

fn aligned(alignment: Aligned) -> Alignment {
    match alignment {
        Aligned::None => Alignment::Unset,
        Aligned::Left => Alignment::Left,
        Aligned::Center => Alignment::Center,
        Aligned::Right => Alignment::Right,
    }
}

fn gather_text(children: Vec<Node>) -> String {
    let texts = children.into_iter().filter_map(|node| match node {
        Node::Text(text) => Some(text),
        _ => None,
    });
    texts.collect()
}

fn without_marks(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, _, after)) = split_mark(rest) {
        out.push_str(before);
        rest = after;
    }
    out + rest
}

/// Splits a text at its first mark.
fn split_mark(text: &str) -> Option<(&str, usize, &str)> {
    let start = text.find(MARK)?;
    let inside = &text[start + MARK.len_utf8()..];
    let end = inside.find(MARK_END)?;
    let number = inside[..end].parse().ok()?;
    Some((&text[..start], number, &inside[end + MARK_END.len_utf8()..]))
}

/// Moves the nodes between an opening and a closing mark into the element.
fn nest(nodes: Vec<Node>) -> Vec<Node> {
    let is_mark = |node: &Node| match node {
        Node::Element(element) => element.name.starts_with(MARK),
        Node::Text(text) => text.starts_with(MARK_END),
        _ => false,
    };
    if !nodes.iter().any(is_mark) {
        return nodes;
    }
    let mut open: Vec<Element> = Vec::new();
    let mut out: Vec<Node> = Vec::new();
    let add = |open: &mut Vec<Element>, out: &mut Vec<Node>, node| match open.last_mut() {
        Some(element) => element.children.push(node),
        None => out.push(node),
    };
    for node in nodes {
        match node {
            Node::Element(element) if element.name.starts_with(MARK) => {
                let name = element.name[MARK.len_utf8()..].into();
                open.push(Element { name, ..element });
            }
            Node::Text(text) if text.starts_with(MARK_END) => {
                if let Some(element) = open.pop() {
                    add(&mut open, &mut out, Node::Element(element));
                }
            }
            node => add(&mut open, &mut out, node),
        }
    }
    // The closing tag is in another block: the element ends with this block.
    while let Some(element) = open.pop() {
        add(&mut open, &mut out, Node::Element(element));
    }
    out
}
