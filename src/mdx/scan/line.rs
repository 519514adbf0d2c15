//! Lines: which of them open fenced code, and which end the code of a line before them.
//!
//! Sources: CommonMark 0.31.2 §4 (leaf blocks), §5 (containers); GitHub Flavored Markdown 0.29
//! §4.10 (tables).

use super::tag::name_end;
use crate::mdx::component;

/// A line, and the block that it is a part of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    block: Block,
    /// How many quotations its markers open.
    quotes: usize,
}

/// The block that a line is a part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Block {
    /// Text that may go on in the next line.
    #[default]
    Paragraph,
    /// A heading ends with its line.
    Heading,
    /// A row of a table, whose cells end at each `|`.
    Row,
}

// === impl Line ===

impl Line {
    /// Returns the line after this one; `rest` is the text from there on.
    pub(super) fn next(self, rest: &[u8]) -> Self {
        let (line, after) = split_line(rest);
        let (quotes, content) = content(line);
        let goes_on = self.block == Block::Row && !self.ends_before_line(line);
        let block = if goes_on || content.contains(&b'|') && is_delimiter_row(split_line(after).0) {
            Block::Row
        } else if is_heading(content) {
            Block::Heading
        } else {
            Block::Paragraph
        };
        Self { block, quotes }
    }

    /// Returns whether the inline content of this line ends before the next one; `rest` is the
    /// text from there on.
    ///
    /// A line that might start a block counts even if it starts none, such as `2.` in a
    /// paragraph: a tag that was read in a code span is shown as its source.
    pub(super) fn ends_before(self, rest: &[u8]) -> bool {
        let (line, after) = split_line(rest);
        self.block != Block::Paragraph
            || self.ends_before_line(line)
            || without_quotes(line).1.starts_with(b"|") && is_delimiter_row(split_line(after).0)
    }

    fn ends_before_line(self, line: &[u8]) -> bool {
        let (quotes, content) = without_quotes(line);
        quotes > self.quotes || content.is_empty() || starts_block(content)
    }

    /// Returns whether this byte, a `|`, ends a cell of this line.
    pub(super) fn ends_at_pipe(self, bytes: &[u8], at: usize) -> bool {
        self.block == Block::Row && at > 0 && bytes[at - 1] != b'\\'
    }
}

/// Splits off the first line; a line end is in neither part.
fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'\n', text) {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, &[]),
    }
}

/// Returns the content of a line after the markers of its quotations and items, and how many
/// quotations there are.
fn content(line: &[u8]) -> (usize, &[u8]) {
    let (mut quotes, mut rest) = without_quotes(line);
    while let Some(length) = item_marker(rest) {
        let (more, content) = without_quotes(&rest[length..]);
        quotes += more;
        rest = content;
    }
    (quotes, rest)
}

/// Returns a line without the markers of quotations at its start, and how many there are.
fn without_quotes(line: &[u8]) -> (usize, &[u8]) {
    let (mut quotes, mut rest) = (0, line.trim_ascii());
    while let Some(inside) = rest.strip_prefix(b">") {
        quotes += 1;
        rest = inside.trim_ascii_start();
    }
    (quotes, rest)
}

/// Returns the length of the marker of an item, without the space after it.
fn item_marker(line: &[u8]) -> Option<usize> {
    let is_apart = |after: &[u8]| matches!(after.first(), None | Some(b' ' | b'\t'));
    let digits = line.iter().take_while(|b| b.is_ascii_digit()).count();
    match &line[digits..] {
        [b'-' | b'*' | b'+', after @ ..] if digits == 0 && is_apart(after) => Some(1),
        [b'.' | b')', after @ ..] if (1..10).contains(&digits) && is_apart(after) => {
            Some(digits + 1)
        }
        _ => None,
    }
}

/// Returns the column of the content of the item or the footnote that starts in a line, if no
/// quotation starts there.
pub(in crate::mdx) fn item_column(line: &str) -> Option<usize> {
    let line = line.trim_end();
    let blank = line.len() - line.trim_start().len();
    if line[blank..].starts_with("[^") && line.contains("]:") {
        return Some(columns(&line[..blank]) + 4);
    }
    let (quotes, content) = content(line.as_bytes());
    let markers = &line[..line.len() - content.len()];
    let column = columns(markers) + usize::from(content.is_empty());
    (quotes == 0 && markers.len() > blank).then_some(column)
}

/// Returns how many columns the start of a line has.
pub(in crate::mdx) fn columns(start: &str) -> usize {
    start.bytes().fold(0, next_column)
}

/// Returns the column after a byte (CommonMark 0.31.2 §2.2).
pub(in crate::mdx) fn next_column(column: usize, byte: u8) -> usize {
    match byte {
        b'\t' => column / 4 * 4 + 4,
        _ => column + 1,
    }
}

/// Returns whether a line, without the markers of quotations, may start a block.
fn starts_block(content: &[u8]) -> bool {
    item_marker(content).is_some()
        || is_heading(content)
        || is_rule(content)
        || fence_here(content).is_some()
        || content.starts_with(b"[^")
        || starts_element(content)
}

/// Returns where a line needs a backslash so that it is text: it would start a block, or be the line
/// below a heading or below the head of a table.
pub(crate) fn block_mark(line: &str) -> Option<usize> {
    let text = line.trim_start();
    let content = text.as_bytes();
    let is_mark = || {
        let is_block = content.starts_with(b">") || is_heading(content) || is_rule(content);
        is_block || is_delimiter_row(content)
    };
    let at = match item_marker(content) {
        Some(length) => length - 1,
        None if is_mark() => 0,
        None => return None,
    };
    Some(line.len() - text.len() + at)
}

fn is_heading(content: &[u8]) -> bool {
    let marks = content.iter().take_while(|b| **b == b'#').count();
    (1..=6).contains(&marks) && matches!(content.get(marks), None | Some(b' ' | b'\t'))
}

/// Returns whether a line is a thematic break or underlines a heading.
fn is_rule(content: &[u8]) -> bool {
    let Some(mark) = content.first().filter(|b| b"-=*_".contains(b)) else {
        return false;
    };
    let is_part = |b: &u8| b == mark || matches!(b, b' ' | b'\t');
    content.iter().all(is_part) && (matches!(mark, b'-' | b'=') || content.len() > 2)
}

/// Returns whether a line starts with a tag of an element that is a block.
fn starts_element(content: &[u8]) -> bool {
    let Some(tag) = content.strip_prefix(b"<") else {
        return false;
    };
    let tag = tag.strip_prefix(b"/").unwrap_or(tag);
    let name = &tag[..name_end(tag, 0)];
    std::str::from_utf8(name).is_ok_and(component::is_block)
}

/// Returns whether a line is the one below the head of a table.
fn is_delimiter_row(line: &[u8]) -> bool {
    let (_, row) = without_quotes(line);
    row.contains(&b'-') && row.contains(&b'|') && row.iter().all(|b| b"|-: \t".contains(b))
}

/// Recognises the line that opens fenced code.
///
/// Returns the fence character, its count, and the text after it. The line may start with
/// quote and list markers.
pub(in crate::mdx) fn fence(line: &[u8]) -> Option<(u8, usize, &[u8])> {
    fence_here(content(line).1)
}

/// Recognises the line that closes fenced code, which may be in a quote.
pub(super) fn fence_of_container(line: &[u8]) -> Option<(u8, usize, &[u8])> {
    let start = line
        .iter()
        .position(|b| !matches!(b, b' ' | b'\t' | b'>'))?;
    fence_here(&line[start..])
}

fn fence_here(rest: &[u8]) -> Option<(u8, usize, &[u8])> {
    let fence = *rest.first().filter(|b| matches!(b, b'`' | b'~'))?;
    let length = rest.iter().take_while(|b| **b == fence).count();
    let info = &rest[length..];
    // §4.5: the info string of a backtick fence has no backticks.
    let is_code = fence == b'`' && info.contains(&b'`');
    (length >= 3 && !is_code).then_some((fence, length, info))
}
