//! A piece of MDX, from its tokens to nodes.
//!
//! The text of an element is read on its own, as Markdown, with the tags in it replaced by
//! marks; so each byte is read by the Markdown parser once, and indentation that only shows
//! how tags lie in each other is gone before it can mean code.

use std::collections::HashMap;
use std::ops::Range;

use super::markdown::{self, Mark};
use super::node::{Element, Node};
use super::scan::{self, Attribute, AttributeValue, Scanned, TokenKind};
use super::value::{Scope, Value};
use super::{DEPTH_MAX, Reader, Refused};
use crate::render::component;

/// HTML elements that never hold anything.
const VOID: [&str; 8] = ["br", "hr", "img", "input", "wbr", "col", "source", "track"];
/// Elements that stand in a line of text even when they have the line for themselves.
const INLINE: [&str; 22] = [
    "a", "abbr", "b", "Badge", "br", "code", "del", "em", "i", "Icon", "img", "kbd", "mark", "s",
    "small", "span", "strong", "sub", "sup", "Tooltip", "u", "wbr",
];

/// A token that counts, with what lies in it.
enum Piece {
    Element {
        token: usize,
        inner: Range<usize>,
        end: usize,
        pieces: Vec<Piece>,
    },
    Expression {
        range: Range<usize>,
        inner: Range<usize>,
    },
    Comment {
        range: Range<usize>,
    },
}

/// A text with its tokens, and where it is read.
struct Region<'t> {
    text: &'t str,
    scanned: &'t Scanned,
    scope: &'t Scope,
    /// The line of the file at which the text starts.
    line: u32,
    /// Where each line of the text ends.
    line_ends: Vec<usize>,
}

/// The Markdown of a region in the making.
struct Draft {
    text: String,
    marks: Vec<Mark>,
    indent: usize,
}

// === impl Reader ===

impl Reader<'_> {
    /// Reads a piece of MDX without import and export.
    pub(super) fn region(
        &mut self,
        text: &str,
        line: u32,
        scope: &Scope,
        depth: usize,
    ) -> Vec<Node> {
        let Ok(scanned) = scan::scan(text) else {
            self.refuse(Refused::Unclosed);
            return Vec::new();
        };
        let region = Region {
            text,
            scanned: &scanned,
            scope,
            line,
            line_ends: memchr::memchr_iter(b'\n', text.as_bytes()).collect(),
        };
        let pieces = self.match_tags(&region, depth);
        self.blocks(&region, 0..text.len(), pieces, depth)
    }

    /// Pairs opening with closing tags. A tag that has no partner stays text.
    fn match_tags(&mut self, region: &Region<'_>, depth: usize) -> Vec<Piece> {
        let text = region.text;
        let mut open: Vec<(usize, Vec<Piece>)> = Vec::new();
        let mut pieces: Vec<Piece> = Vec::new();
        for (at, token) in region.scanned.tokens.iter().enumerate() {
            let range = token.range.clone();
            match &token.kind {
                TokenKind::Comment => pieces.push(Piece::Comment { range }),
                TokenKind::Expression { inner } => pieces.push(Piece::Expression {
                    range,
                    inner: inner.clone(),
                }),
                TokenKind::Open {
                    name,
                    closes_itself,
                    ..
                } => {
                    if *closes_itself || VOID.contains(&&text[name.clone()]) {
                        pieces.push(Piece::Element {
                            token: at,
                            inner: range.end..range.end,
                            end: range.end,
                            pieces: Vec::new(),
                        });
                    } else if open.len() + depth >= DEPTH_MAX {
                        self.refuse(Refused::TooDeep);
                        return Vec::new();
                    } else {
                        open.push((at, std::mem::take(&mut pieces)));
                    }
                }
                // `<br></br>`: what cannot hold anything is closed already.
                TokenKind::Close { name } if VOID.contains(&&text[name.clone()]) => {
                    pieces.push(Piece::Comment { range });
                }
                TokenKind::Close { name } => {
                    let is_partner =
                        |(opened, _): &(usize, _)| match &region.scanned.tokens[*opened].kind {
                            TokenKind::Open { name: other, .. } => {
                                text[other.clone()] == text[name.clone()]
                            }
                            _ => false,
                        };
                    let Some(partner) = open.iter().rposition(is_partner) else {
                        self.stray(region, range, "closes a tag that is not open");
                        continue;
                    };
                    while open.len() > partner + 1 {
                        self.unclosed(region, &mut open, &mut pieces);
                    }
                    if let Some((token, outer)) = open.pop() {
                        let inner = std::mem::replace(&mut pieces, outer);
                        pieces.push(Piece::Element {
                            token,
                            inner: region.scanned.tokens[token].range.end..range.start,
                            end: range.end,
                            pieces: inner,
                        });
                    }
                }
            }
        }
        while !open.is_empty() {
            self.unclosed(region, &mut open, &mut pieces);
        }
        pieces
    }

    fn unclosed(
        &mut self,
        region: &Region<'_>,
        open: &mut Vec<(usize, Vec<Piece>)>,
        pieces: &mut Vec<Piece>,
    ) {
        let Some((token, mut outer)) = open.pop() else {
            return;
        };
        let range = region.scanned.tokens[token].range.clone();
        self.stray(region, range, "is never closed");
        outer.append(pieces);
        *pieces = outer;
    }

    fn stray(&mut self, region: &Region<'_>, range: Range<usize>, what: &str) {
        let line = region.line_of(range.start);
        let tag = super::short(&region.text[range]);
        self.warn(
            "mdx-tag",
            line,
            format!("`{tag}` {what}; it is shown as text"),
        );
    }

    /// Reads the blocks of one element.
    fn blocks(
        &mut self,
        region: &Region<'_>,
        range: Range<usize>,
        pieces: Vec<Piece>,
        depth: usize,
    ) -> Vec<Node> {
        if depth >= DEPTH_MAX {
            self.refuse(Refused::TooDeep);
        }
        if self.refused.is_some() {
            return Vec::new();
        }
        let mut draft = Draft {
            text: String::with_capacity(range.len() + 16),
            marks: Vec::new(),
            indent: region.indent(&range, &pieces),
        };
        self.fill(region, range, pieces, &mut draft, depth);
        markdown::read(&draft.text, &mut draft.marks, depth)
    }

    /// Writes the Markdown of a range, with marks for what is none.
    fn fill(
        &mut self,
        region: &Region<'_>,
        range: Range<usize>,
        pieces: Vec<Piece>,
        draft: &mut Draft,
        depth: usize,
    ) {
        let mut at = range.start;
        for piece in pieces {
            let span = region.span(&piece);
            region.copy(at..span.start, draft);
            at = span.end;
            match piece {
                Piece::Comment { .. } => {}
                Piece::Expression { inner, range } => {
                    let line = region.line_of(range.start);
                    let source = &region.text[inner];
                    let value = self.evaluate(source, line, region.scope, depth);
                    let nodes = value.map_or_else(Vec::new, Value::into_nodes);
                    draft.mark(Mark::Nodes(nodes));
                }
                Piece::Element {
                    token,
                    inner,
                    pieces,
                    ..
                } => {
                    let is_flow = region.is_flow(&span, &range, token);
                    let mut element = self.element(region, token, depth);
                    if is_flow || self.is_component(region, &element.name) {
                        element.children = self.blocks(region, inner, pieces, depth + 1);
                        let nodes = self.shown(region, element, depth);
                        if is_flow {
                            draft.flow(nodes);
                        } else {
                            draft.mark(Mark::Nodes(nodes));
                        }
                    } else {
                        draft.mark(Mark::Open(element));
                        self.fill(region, inner, pieces, draft, depth + 1);
                        draft.mark(Mark::Close);
                    }
                }
            }
        }
        region.copy(at..range.end, draft);
    }

    fn is_component(&self, region: &Region<'_>, name: &str) -> bool {
        region.scope.components.contains_key(name)
    }

    /// Puts what a local component shows in its place.
    fn shown(&mut self, region: &Region<'_>, element: Element, depth: usize) -> Vec<Node> {
        let Some(template) = region.scope.components.get(&element.name) else {
            return self.snippet(element, depth);
        };
        let mut props: HashMap<_, _> = element.attributes.into_iter().collect();
        if !element.children.is_empty() {
            props.insert("children".into(), Value::Nodes(element.children));
        }
        self.expand(template, props, depth)
    }

    /// Puts a snippet that is named by file, `<Snippet file="x.mdx" />`, in its place.
    fn snippet(&mut self, element: Element, depth: usize) -> Vec<Node> {
        let file = element.text("file").filter(|_| *element.name == *"Snippet");
        let Some(file) = file else {
            return vec![Node::Element(element)];
        };
        let mut scope = Scope::default();
        let from = format!("/snippets/{file}");
        self.import(Some("Snippet"), &[], &from, element.line, &mut scope, 0);
        match scope.components.get("Snippet") {
            Some(template) => self.expand(template, HashMap::new(), depth),
            None => Vec::new(),
        }
    }

    /// Reads the name and the attributes of a tag.
    fn element(&mut self, region: &Region<'_>, token: usize, depth: usize) -> Element {
        let token = &region.scanned.tokens[token];
        let line = region.line_of(token.range.start);
        let TokenKind::Open {
            name, attributes, ..
        } = &token.kind
        else {
            unreachable!("elements are made of opening tags");
        };
        let name = &region.text[name.clone()];
        if !component::is_known(name)
            && !region.scope.components.contains_key(name)
            && !region.scope.missing.contains(name)
        {
            self.warn(
                "mdx-component",
                line,
                format!("there is no component `{name}`; what it holds is shown"),
            );
        }
        let mut read = Vec::with_capacity(attributes.len());
        for Attribute { name, value } in attributes {
            let name = &region.text[name.clone()];
            let value = match value {
                AttributeValue::True => Value::Boolean(true),
                AttributeValue::Text(text) => {
                    Value::Text(markdown::unescape(&region.text[text.clone()]))
                }
                // A handler is never called; nobody needs to know what it would do.
                AttributeValue::Expression(_) if name.starts_with("on") => continue,
                AttributeValue::Expression(source) => {
                    let source = &region.text[source.clone()];
                    let source = source.trim().strip_prefix("...").unwrap_or(source);
                    match self.evaluate(source, line, region.scope, depth) {
                        Some(value) => value,
                        None => continue,
                    }
                }
            };
            match value {
                Value::Object(entries) if name.is_empty() => read.extend(entries),
                value => read.push((name.into(), value)),
            }
        }
        Element {
            name: name.into(),
            attributes: read,
            children: Vec::new(),
            line,
        }
    }
}

// === impl Region ===

impl Region<'_> {
    fn line_of(&self, at: usize) -> u32 {
        let before = self.line_ends.partition_point(|end| *end < at);
        self.line + u32::try_from(before).unwrap_or(u32::MAX)
    }

    /// Returns the line that holds a place, without its end.
    fn line_around(&self, at: usize) -> Range<usize> {
        let n = self.line_ends.partition_point(|end| *end < at);
        let start = if n == 0 { 0 } else { self.line_ends[n - 1] + 1 };
        start..self.line_ends.get(n).copied().unwrap_or(self.text.len())
    }

    fn span(&self, piece: &Piece) -> Range<usize> {
        match piece {
            Piece::Element { token, end, .. } => self.scanned.tokens[*token].range.start..*end,
            Piece::Expression { range, .. } | Piece::Comment { range } => range.clone(),
        }
    }

    /// Returns whether an element has its lines for itself.
    fn is_flow(&self, span: &Range<usize>, region: &Range<usize>, token: usize) -> bool {
        let inside = &self.text[span.clone()];
        if inside.contains("\n\n") {
            return true;
        }
        let line_start = self.line_around(span.start).start;
        let line_end = self.line_around(span.end).end;
        let before = &self.text[line_start.max(region.start)..span.start];
        let after = &self.text[span.end..line_end.min(region.end)];
        let starts = before.chars().all(|c| matches!(c, ' ' | '\t' | '>'))
            || is_item_marker(before.trim_start());
        let name = match &self.scanned.tokens[token].kind {
            TokenKind::Open { name, .. } => &self.text[name.clone()],
            _ => "",
        };
        starts && after.trim().is_empty() && !INLINE.contains(&name)
    }

    /// Returns by how much the lines of a range are indented together, code and what lies
    /// inside of its elements not counted.
    fn indent(&self, range: &Range<usize>, pieces: &[Piece]) -> usize {
        let mut least = usize::MAX;
        let mut at = range.start;
        // The rest of the line that the opening tag stands in is no line.
        if at > 0 && self.text.as_bytes()[at - 1] != b'\n' {
            at = self.next_line(at, range.end);
        }
        let mut pieces = pieces.iter().map(|piece| self.span(piece)).peekable();
        let first = self.scanned.fences.partition_point(|f| f.start < at);
        let mut fences = self.scanned.fences[first..].iter().peekable();
        while at < range.end {
            let line = &self.text[at..range.end];
            let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
            if !line[blank..].starts_with('\n') && blank < line.len() {
                least = least.min(blank);
            }
            let mut next = self.next_line(at, range.end);
            if let Some(fence) = fences.next_if(|fence| fence.start <= at + blank) {
                next = next.max(fence.end + 1);
            }
            while let Some(span) = pieces.next_if(|span| span.start < next) {
                if span.end > next {
                    next = self.next_line(span.end, range.end);
                }
            }
            at = next;
        }
        if least == usize::MAX { 0 } else { least }
    }

    fn next_line(&self, at: usize, end: usize) -> usize {
        self.text[at..end].find('\n').map_or(end, |n| at + n + 1)
    }

    /// Copies text, dedented.
    fn copy(&self, range: Range<usize>, draft: &mut Draft) {
        let mut at = range.start;
        let starts_line = at == 0 || self.text.as_bytes()[at - 1] == b'\n';
        if starts_line {
            at += draft.margin(&self.text[at..range.end]);
        } else if draft.text.is_empty() {
            let rest = &self.text[at..range.end];
            at = range.end - rest.trim_start_matches([' ', '\t']).len();
        }
        while let Some(n) = self.text[at..range.end].find('\n') {
            draft.text.push_str(&self.text[at..=at + n]);
            at += n + 1;
            at += draft.margin(&self.text[at..range.end]);
        }
        draft.text.push_str(&self.text[at..range.end]);
    }
}

fn is_item_marker(text: &str) -> bool {
    let marker = text.trim_end();
    matches!(marker, "-" | "*" | "+")
        || marker
            .strip_suffix(['.', ')'])
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

// === impl Draft ===

impl Draft {
    /// Returns how much of a line's indentation goes.
    fn margin(&self, line: &str) -> usize {
        let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
        blank.min(self.indent)
    }

    fn mark(&mut self, mark: Mark) {
        markdown::push_mark(&mut self.text, self.marks.len());
        self.marks.push(mark);
    }

    /// Puts blocks on a line of their own, in the list or quotation they stand in.
    fn flow(&mut self, nodes: Vec<Node>) {
        let line = self.text.rfind('\n').map_or(0, |n| n + 1);
        let prefix = self.text[line..].to_owned();
        let quote = &prefix[..prefix.rfind('>').map_or(0, |n| n + 1)];
        if prefix.chars().all(|c| matches!(c, ' ' | '\t' | '>')) {
            self.text.truncate(line);
            if line > 0 {
                self.text.push_str(quote);
                self.text.push('\n');
            }
            self.text.push_str(&prefix);
        }
        self.mark(Mark::Nodes(nodes));
        self.text.push('\n');
        self.text.push_str(quote);
    }
}
