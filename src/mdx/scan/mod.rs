//! Finds the MDX in a text: tags, expressions and comments.
//!
//! One pass from left to right. The scanner skips code (fenced or inline), formulas and
//! escaped characters. Code in a line ends with its paragraph, its heading or its cell, as the
//! Markdown parser ends it. Characters that look like a tag and are not one (`a <= b`, `Vec<T`)
//! stay text: the MDX parser rejects such a page, but a reader wants to see it. So do dollars that
//! are prices or the names of shell variables.
//!
//! **Invariant:** time is linear in the text. Failed look-aheads share a budget of
//! [`LOOKAHEAD_BYTES_MAX`]; when it is used up the page is rejected.
//!
//! Sources: MDX 3, "Syntax"; CommonMark 0.31.2 §4.5 (fences), §6.1 (code spans);
//! Pandoc's User's Guide, "Extension: `tex_math_dollars`".

mod line;
mod tag;

use std::ops::Range;

pub(crate) use line::block_mark;
use line::{Line, fence_of_container};
pub(super) use line::{columns, fence, item_column, next_column};
use tag::read_tag;
pub(super) use tag::{balanced, element_end, string_end};

/// How many bytes all failed look-aheads of one page may read together.
pub const LOOKAHEAD_BYTES_MAX: usize = 16 << 20;

/// A tag, an expression or a comment in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// Its place in the text.
    pub range: Range<usize>,
    /// Its kind.
    pub kind: TokenKind,
}

/// The kind of a token; ranges are ranges of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// `<name …>` or `<name … />`.
    Open {
        name: Range<usize>,
        attributes: Vec<Attribute>,
        closes_itself: bool,
    },
    /// `</name>`.
    Close { name: Range<usize> },
    /// `{…}`, without its braces.
    Expression { inner: Range<usize> },
    /// `{/* … */}` or `<!-- … -->`.
    Comment,
}

/// An attribute of a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attribute {
    /// Its name; empty for `{...spread}`.
    pub name: Range<usize>,
    /// Its value.
    pub value: AttributeValue,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AttributeValue {
    /// No value: `disabled`.
    True,
    /// In quotes.
    Text(Range<usize>),
    /// In braces.
    Expression(Range<usize>),
}

/// The result of a scan.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    /// Tags, expressions and comments in order.
    pub tokens: Vec<Token>,
    /// Fenced code blocks, from the line of the opening fence to the line of the closing fence.
    pub fences: Vec<Range<usize>>,
    /// The dollars that are text: they are outside code, and no part of a formula.
    pub dollars: Vec<usize>,
}

/// Failed look-aheads used up the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

/// How many bytes failed look-aheads of one page may still read.
#[derive(Debug)]
pub(super) struct Lookahead {
    left: usize,
}

// === impl Lookahead ===

impl Default for Lookahead {
    fn default() -> Self {
        Self {
            left: LOOKAHEAD_BYTES_MAX,
        }
    }
}

impl Lookahead {
    /// Subtracts a failed look-ahead.
    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.left = self.left.checked_sub(bytes).ok_or(Exhausted)?;
        Ok(())
    }
}

/// Finds the tokens of a text; without `expressions`, a brace is text, and without `is_latex`,
/// a dollar.
pub(super) fn scan(
    text: &str,
    expressions: bool,
    is_latex: bool,
    lookahead: &mut Lookahead,
) -> Result<Scanned, Exhausted> {
    let mut scanner = Scanner {
        text,
        expressions,
        is_latex,
        bytes: text.as_bytes(),
        at: 0,
        line: Line::default(),
        lookahead,
        found: Scanned::default(),
    };
    scanner.run()?;
    Ok(scanner.found)
}

struct Scanner<'t> {
    text: &'t str,
    expressions: bool,
    is_latex: bool,
    bytes: &'t [u8],
    at: usize,
    /// The line that is read, or the first line of the tag or the code that is read.
    line: Line,
    lookahead: &'t mut Lookahead,
    found: Scanned,
}

// === impl Scanner ===

impl Scanner<'_> {
    fn run(&mut self) -> Result<(), Exhausted> {
        let mut line_starts = true;
        while self.at < self.bytes.len() {
            if std::mem::take(&mut line_starts) {
                if self.step_over_fence() {
                    self.line = Line::default();
                    line_starts = true;
                    continue;
                }
                self.line = self.line.next(&self.bytes[self.at..]);
            }
            match self.bytes[self.at] {
                b'\n' => {
                    self.at += 1;
                    line_starts = true;
                }
                b'\\' => self.at += 2,
                b'`' => self.step_over_code()?,
                b'$' => self.step_over_formula()?,
                b'<' => self.tag()?,
                b'{' if self.expressions => self.expression()?,
                _ => self.at += 1,
            }
        }
        Ok(())
    }

    /// Subtracts a failed look-ahead from here to `end` from the budget.
    fn charge(&mut self, end: usize) -> Result<(), Exhausted> {
        self.lookahead.charge(end.saturating_sub(self.at))
    }

    fn line_end(&self, from: usize) -> usize {
        memchr::memchr(b'\n', &self.bytes[from..]).map_or(self.bytes.len(), |n| from + n)
    }

    /// Skips the fenced code block that opens in the line that starts here, if there is one.
    fn step_over_fence(&mut self) -> bool {
        let start = self.at;
        let mut end = self.line_end(start);
        let Some((fence, length, _)) = fence(&self.bytes[start..end]) else {
            return false;
        };
        while end < self.bytes.len() {
            let line = end + 1;
            end = self.line_end(line);
            let body = &self.bytes[line..end];
            if fence_of_container(body).is_some_and(|(f, n, rest)| {
                f == fence && n >= length && rest.trim_ascii().is_empty()
            }) {
                break;
            }
        }
        self.found.fences.push(start..end);
        self.at = (end + 1).min(self.bytes.len());
        true
    }

    /// Skips a code span: from a run of backticks to the next run of the same length.
    fn step_over_code(&mut self) -> Result<(), Exhausted> {
        match self.code_end(self.at) {
            Ok(end) => self.at = end,
            Err(read) => {
                self.charge(read)?;
                self.at += self.run_of(self.at, b'`');
            }
        }
        Ok(())
    }

    /// Returns where the code span ends that starts here, or how far was read if none does.
    fn code_end(&self, start: usize) -> Result<usize, usize> {
        let run = self.run_of(start, b'`');
        let mut at = start + run;
        while at < self.bytes.len() {
            match self.bytes[at] {
                b'`' => {
                    let other = self.run_of(at, b'`');
                    at += other;
                    if other == run {
                        return Ok(at);
                    }
                }
                b'|' if self.line.ends_at_pipe(self.bytes, at) => break,
                b'\n' if self.line.ends_before(&self.bytes[at + 1..]) => break,
                _ => at += 1,
            }
        }
        Err(at)
    }

    /// Skips `$…$` and `$$…$$` in a paragraph: their braces are LaTeX. Other dollars are text.
    fn step_over_formula(&mut self) -> Result<(), Exhausted> {
        let dollars = self.run_of(self.at, b'$');
        let (end, read) = match dollars {
            1 if self.is_latex => self.formula_end(),
            2 if self.is_latex => self.block_end(),
            _ => (None, self.at + dollars),
        };
        if end.is_none_or(|end| end < read) {
            self.charge(read)?;
        }
        let after = self.at + dollars;
        if end.is_none() {
            self.found.dollars.extend(self.at..after);
        }
        self.at = end.unwrap_or(after);
        Ok(())
    }

    /// Returns where the formula ends that a single dollar starts, and how far was read.
    ///
    /// The next dollar decides, as in Pandoc: no space is after the first one and before the
    /// second one, and no digit after the second one; so two prices are no formula. A code span is
    /// no part of a formula, and neither is the end of an element that starts before it.
    fn formula_end(&self) -> (Option<usize>, usize) {
        let first = self.at + 1;
        let (mut at, mut read) = (first, first);
        let (mut braces, mut tags) = (0_usize, 0_usize);
        while let Some(byte) = self.bytes.get(at) {
            let next = self.bytes.get(at + 1);
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' if at == first => break,
                b'\\' => at += 2,
                b'$' if braces == 0 => {
                    let is_end = at > first
                        && !self.bytes[at - 1].is_ascii_whitespace()
                        && next.is_none_or(|b| !b.is_ascii_digit() && !matches!(b, b'$' | b'{'));
                    return (is_end.then_some(at + 1), read.max(at + 1));
                }
                b'`' => match self.code_end(at) {
                    // GitHub writes formulas as code between dollars, too.
                    Ok(end) if at == first && self.bytes.get(end) == Some(&b'$') => at = end,
                    Ok(end) => return (None, read.max(end)),
                    Err(end) => {
                        read = read.max(end);
                        at += self.run_of(at, b'`');
                    }
                },
                b'<' if next == Some(&b'/') && tags == 0 => break,
                b'|' if self.line.ends_at_pipe(self.bytes, at) => break,
                b'\n' if self.line.ends_before(&self.bytes[at + 1..]) => break,
                _ => {
                    let is_tag = *byte == b'<' && next.is_some_and(u8::is_ascii_alphabetic);
                    tags += usize::from(is_tag);
                    tags -= usize::from(*byte == b'<' && next == Some(&b'/'));
                    braces += usize::from(*byte == b'{');
                    braces = braces.saturating_sub(usize::from(*byte == b'}'));
                    at += 1;
                }
            }
        }
        (None, read.max(at))
    }

    /// Returns where the formula ends that two dollars start, and how far was read.
    fn block_end(&self) -> (Option<usize>, usize) {
        let mut at = self.at + 2;
        while let Some(byte) = self.bytes.get(at) {
            match byte {
                b'\\' => at += 2,
                b'$' => {
                    let dollars = self.run_of(at, b'$');
                    at += dollars;
                    if dollars == 2 {
                        return (Some(at), at);
                    }
                }
                b'|' if self.line.ends_at_pipe(self.bytes, at) => break,
                b'\n' if self.blank_line_follows(at) => break,
                _ => at += 1,
            }
        }
        (None, at)
    }

    fn run_of(&self, from: usize, byte: u8) -> usize {
        self.bytes[from..]
            .iter()
            .take_while(|b| **b == byte)
            .count()
    }

    fn blank_line_follows(&self, newline: usize) -> bool {
        let rest = &self.bytes[newline + 1..];
        rest.iter()
            .find(|b| !matches!(b, b' ' | b'\t' | b'\r'))
            .is_none_or(|b| *b == b'\n')
    }

    fn expression(&mut self) -> Result<(), Exhausted> {
        let start = self.at;
        // `{#id}` sets the id of a heading.
        if self.bytes.get(start + 1) == Some(&b'#') {
            self.at += 2;
            return Ok(());
        }
        match balanced(self.bytes, start) {
            Ok(end) => {
                let inner = start + 1..end - 1;
                let is_comment = is_comment(&self.text[inner.clone()]);
                self.push(
                    end,
                    if is_comment {
                        TokenKind::Comment
                    } else {
                        TokenKind::Expression { inner }
                    },
                );
            }
            Err(end) => {
                self.charge(end)?;
                self.at += 1;
            }
        }
        Ok(())
    }

    fn tag(&mut self) -> Result<(), Exhausted> {
        if self.bytes[self.at..].starts_with(b"<!--") {
            let after = self.at + 4;
            return match memchr::memmem::find(&self.bytes[after..], b"-->") {
                Some(n) => {
                    self.push(after + n + 3, TokenKind::Comment);
                    Ok(())
                }
                None => {
                    self.charge(self.bytes.len())?;
                    self.at += 1;
                    Ok(())
                }
            };
        }
        match read_tag(self.bytes, self.at) {
            Ok((end, kind)) => self.push(end, kind),
            Err(end) => {
                self.charge(end)?;
                self.at += self.address().max(1);
            }
        }
        Ok(())
    }

    /// Returns the length of an address in angle brackets that starts here.
    fn address(&self) -> usize {
        let rest = &self.bytes[self.at..];
        let is_address = rest.starts_with(b"<http://") || rest.starts_with(b"<https://");
        let end = |b: &u8| matches!(b, b'<' | b'>' | b' ' | b'\n');
        match rest.iter().skip(1).position(end) {
            Some(n) if is_address && rest[n + 1] == b'>' => n + 2,
            _ => 0,
        }
    }

    fn push(&mut self, end: usize, kind: TokenKind) {
        let range = self.at..end;
        self.found.tokens.push(Token { range, kind });
        self.at = end;
    }
}

/// Returns whether an expression is nothing but comments.
fn is_comment(inner: &str) -> bool {
    let mut rest = inner.trim();
    while let Some(after) = rest.strip_prefix("/*") {
        let Some(end) = after.find("*/") else {
            return false;
        };
        rest = after[end + 2..].trim_start();
    }
    rest.is_empty()
}
