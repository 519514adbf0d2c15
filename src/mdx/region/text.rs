//! The text of a piece: its lines, its indentation, and its Markdown.

use std::ops::Range;
use std::sync::Arc;

use super::tags::Piece;
use crate::mdx::ATTRIBUTES_MAX;
use crate::mdx::component;
use crate::mdx::markdown::{self, Mark, Meaning};
use crate::mdx::node::Node;
use crate::mdx::scan::{Attribute, Scanned, TokenKind, columns, item_column, next_column};
use crate::mdx::scope::Scope;
use crate::mdx::span::{Origin, Trace};

/// Elements that are inline even when they are alone on a line, except around a block.
const INLINE: [&str; 22] = [
    "a", "abbr", "b", "Badge", "br", "code", "del", "em", "i", "Icon", "img", "kbd", "mark", "s",
    "small", "span", "strong", "sub", "sup", "Tooltip", "u", "wbr",
];

/// A text with its tokens, and where it is read.
pub(super) struct Region<'t> {
    pub(super) text: &'t str,
    pub(super) scanned: &'t Scanned,
    pub(super) scope: Scope,
    /// Where the text starts in the cleaned text of its file.
    pub(super) base: usize,
    /// The file.
    pub(super) origin: Arc<Origin>,
}

/// The Markdown of a region while it is assembled.
pub(super) struct MarkdownBuffer<'t> {
    pub(super) text: String,
    pub(super) marks: Vec<Mark<'t>>,
    /// Whether the text is on the line of the tags around it.
    pub(super) is_line: bool,
    pub(super) indent: usize,
    /// Where the last fenced code starts.
    pub(super) fence: usize,
    /// The places from which the pieces of the text were copied.
    pub(super) trace: Trace,
}

/// How the lines of fenced code are moved.
struct Move {
    /// The column at which the fence starts.
    from: usize,
    /// The column to which the fence is moved.
    to: usize,
}

// === impl Region ===

impl Region<'_> {
    pub(super) fn line_of(&self, at: usize) -> u32 {
        self.origin.line_of(self.base + at)
    }

    /// Returns the range of the line that contains a byte, without the line end.
    fn line_around(&self, at: usize) -> Range<usize> {
        let end = self.base + self.text.len();
        let line = self.origin.line_around(self.base + at, end);
        line.start.max(self.base) - self.base..line.end.min(end) - self.base
    }

    /// Returns the name of an opening tag.
    pub(super) fn name_of(&self, token: usize) -> &str {
        match &self.scanned.tokens[token].kind {
            TokenKind::Open { name, .. } => &self.text[name.clone()],
            _ => "",
        }
    }

    /// Returns the attributes of an opening tag, up to the limit.
    pub(super) fn attributes_of(&self, token: usize) -> &[Attribute] {
        match &self.scanned.tokens[token].kind {
            TokenKind::Open { attributes, .. } => {
                &attributes[..attributes.len().min(ATTRIBUTES_MAX)]
            }
            _ => &[],
        }
    }

    pub(super) fn span(&self, piece: &Piece) -> Range<usize> {
        match piece {
            Piece::Element { token, end, .. } => self.scanned.tokens[*token].range.start..*end,
            Piece::Expression { range, .. } | Piece::Comment { range } | Piece::Text { range } => {
                range.clone()
            }
        }
    }

    /// Returns whether an element is a block: it is on lines of its own, or has a blank line in it.
    /// An inline element is one only around a block.
    pub(super) fn is_flow(
        &self,
        span: &Range<usize>,
        region: &Range<usize>,
        token: usize,
        inner: &Range<usize>,
        pieces: &[Piece],
    ) -> bool {
        if self.text[span.clone()].contains("\n\n") {
            return true;
        }
        let line_end = self.line_around(span.end).end;
        let after = &self.text[span.end..line_end.min(region.end)];
        let is_alone = self.starts_line(span.start, region.start) && after.trim().is_empty();
        let has_block = |piece: &Piece| match piece {
            Piece::Element {
                token,
                inner: range,
                pieces,
                ..
            } => {
                let name = self.name_of(*token);
                let is_line = !INLINE.contains(&name) && component::is_known(name);
                let may_be = !is_line || component::is_block(name);
                may_be && self.is_flow(&self.span(piece), inner, *token, range, pieces)
            }
            _ => false,
        };
        is_alone && (!INLINE.contains(&self.name_of(token)) || pieces.iter().any(has_block))
    }

    /// Returns whether a byte is the first of its line, after the markers of quotations and of an
    /// item; `start` is where the text of its element starts.
    pub(super) fn starts_line(&self, at: usize, start: usize) -> bool {
        let before = &self.text[self.line_around(at).start.max(start)..at];
        before.chars().all(|c| matches!(c, ' ' | '\t' | '>')) || is_item_marker(before.trim_start())
    }

    /// Returns the indentation that the lines of a range share; fenced code and the content of
    /// elements do not count.
    pub(super) fn indent(&self, range: &Range<usize>, pieces: &[Piece]) -> usize {
        let mut least = usize::MAX;
        let mut at = range.start;
        // The rest of the line after the opening tag has no indentation of its own.
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
    pub(super) fn copy(&self, range: Range<usize>, buffer: &mut MarkdownBuffer<'_>) {
        let mut at = range.start;
        let mut starts_line = at == 0 || self.text.as_bytes()[at - 1] == b'\n';
        if !starts_line && buffer.text.is_empty() {
            let rest = &self.text[at..range.end];
            at = range.end - rest.trim_start_matches([' ', '\t']).len();
        }
        // Where the fenced code ends that is moved.
        let mut moved: Option<(Move, usize)> = None;
        while at < range.end {
            if starts_line {
                let fences = &self.scanned.fences;
                let opens = fences.binary_search_by_key(&at, |fence| fence.start);
                at += buffer.margin(&self.text[at..range.end]);
                if let Ok(n) = opens {
                    let by = buffer.move_of_fence(&self.text[at..range.end]);
                    moved = by.map(|by| (by, fences[n].end));
                }
                if let Some((by, _)) = moved.as_ref().filter(|(_, end)| at < *end) {
                    at += buffer.move_line(&self.text[at..range.end], by);
                }
            }
            let next = self.next_line(at, range.end);
            self.push(at..next, buffer);
            at = next;
            starts_line = true;
        }
    }

    /// Appends a copy of text in one line. A dollar that is text is escaped: the Markdown parser
    /// finds a formula between any two.
    fn push(&self, range: Range<usize>, buffer: &mut MarkdownBuffer<'_>) {
        let dollars = &self.scanned.dollars;
        let first = dollars.partition_point(|at| *at < range.start);
        let mut from = range.start;
        for at in dollars[first..].iter().take_while(|at| **at < range.end) {
            buffer.push(&self.text[from..*at], self.base + from);
            buffer.push("\\", self.base + at);
            from = *at;
        }
        buffer.push(&self.text[from..range.end], self.base + from);
    }
}

/// Escapes the dollars of a text that are no part of a formula.
pub(in crate::mdx) fn escaped(text: &str, dollars: &[usize]) -> String {
    let mut out = String::with_capacity(text.len() + dollars.len());
    let mut from = 0;
    for at in dollars {
        out.push_str(&text[from..*at]);
        out.push('\\');
        from = *at;
    }
    out + &text[from..]
}

fn is_item_marker(text: &str) -> bool {
    let marker = text.trim_end();
    matches!(marker, "-" | "*" | "+")
        || marker
            .strip_suffix(['.', ')'])
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Returns the blanks at the start of a line.
fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

// === impl MarkdownBuffer ===

impl<'t> MarkdownBuffer<'t> {
    /// Returns how many bytes of a line's indentation are removed.
    fn margin(&self, line: &str) -> usize {
        indentation(line).len().min(self.indent)
    }

    /// Returns how fenced code is moved that comes next: MDX has no indented code, but the Markdown
    /// parser takes a fence that is indented four columns below a text for a line of that text.
    fn move_of_fence(&mut self, fence: &str) -> Option<Move> {
        // Code above ends a text. Each line is looked at once.
        let above = &self.text[self.fence..];
        self.fence = self.text.len();
        let from = columns(indentation(fence));
        if from < 4 {
            return None;
        }
        let mut to = from;
        for line in above.strip_suffix('\n')?.rsplit('\n') {
            if line.trim().is_empty() {
                break;
            }
            if let Some(content) = item_column(line) {
                return (from >= content + 4).then_some(Move { from, to: content });
            }
            to = columns(indentation(line));
        }
        (to < from).then_some(Move { from, to })
    }

    /// Moves a line of fenced code; returns how many bytes of its indentation are removed.
    fn move_line(&mut self, line: &str, by: &Move) -> usize {
        let mut removed = 0;
        let blanks = indentation(line).bytes().take_while(|blank| {
            let next = next_column(removed, *blank);
            let is_removed = next <= by.from;
            removed = if is_removed { next } else { removed };
            is_removed
        });
        let bytes = blanks.count();
        self.text.push_str(&" ".repeat(by.to.min(removed)));
        bytes
    }

    /// Appends a copy of text from a place in the file.
    fn push(&mut self, text: &str, at: usize) {
        if !text.is_empty() {
            // As in MDX, such text is inline: a mark before `-` or `#` makes it a character.
            if self.is_line && self.text.is_empty() {
                self.mark(Meaning::Nodes(Vec::new()), "");
            }
            self.trace.note(self.text.len(), at);
            self.text.push_str(text);
        }
    }

    /// Writes a mark in place of its source.
    pub(super) fn mark(&mut self, meaning: Meaning, source: &'t str) {
        markdown::push_mark(&mut self.text, self.marks.len());
        self.marks.push(Mark { meaning, source });
    }

    /// Writes nodes: as blocks of their own, or in a line.
    pub(super) fn nodes(&mut self, nodes: Vec<Node>, source: &'t str, is_flow: bool) {
        match is_flow {
            true => self.flow(nodes, source),
            false => self.mark(Meaning::Nodes(nodes), source),
        }
    }

    /// Puts blocks on a line of their own, inside the same list or quotation.
    fn flow(&mut self, nodes: Vec<Node>, source: &'t str) {
        let line = self.text.rfind('\n').map_or(0, |n| n + 1);
        let prefix = self.text[line..].to_owned();
        let quote = &prefix[..prefix.rfind('>').map_or(0, |n| n + 1)];
        if prefix.chars().all(|c| matches!(c, ' ' | '\t' | '>')) {
            self.text.truncate(line);
            self.trace.truncate(line);
            if line > 0 {
                self.text.push_str(quote);
                self.text.push('\n');
            }
            self.text.push_str(&prefix);
        }
        self.mark(Meaning::Nodes(nodes), source);
        self.text.push('\n');
        self.text.push_str(quote);
    }
}
