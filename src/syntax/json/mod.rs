//! JSON with places; reading continues after errors.
//!
//! A reader that stops at the first wrong comma reports one mistake per push. This reader
//! reports the mistake, repairs it (it skips the comma, inserts it, or ends the string at the end
//! of its line) and continues. Every repair is an error of rule `json-syntax`, so a file that is
//! not JSON is never published. If there is only one correction, the diagnostic has an edit.
//!
//! [`DEPTH_MAX`] limits nesting and so also recursion; deeper values are skipped by counting
//! brackets.
//!
//! Sources: RFC 8259 §2 to §9 (grammar; §8.1: a byte order mark may be ignored).

mod scalar;

use super::{
    DEPTH_MAX, DUPLICATE_KEY, Data, Diagnostics, FileId, Keys, LIMIT, Member, Span, SpanDiagnostic,
    VALUES_MAX, Value,
};

/// The number of syntax errors after which reading stops: the text is probably not JSON.
const ERRORS_MAX: usize = 20;
/// The rule for text that is not JSON.
pub const SYNTAX: &str = "json-syntax";

struct Reader<'t> {
    text: &'t str,
    at: usize,
    file: FileId,
    values: usize,
    diagnostics: Vec<SpanDiagnostic>,
    stopped: bool,
    /// Whether the text ends too early or contains an unfinished merge. Its value is then
    /// incomplete, and diagnostics about missing parts would not help.
    cut_off: bool,
}

/// Reads the JSON of a file; `None` if the file contains no value.
#[must_use]
pub fn read(file: FileId, diagnostics: &mut Diagnostics) -> Option<Value> {
    let text = std::sync::Arc::clone(diagnostics.files.text(file));
    let mut reader = Reader {
        text: &text,
        at: 0,
        file,
        values: 0,
        diagnostics: Vec::new(),
        stopped: false,
        cut_off: false,
    };
    let value = reader.document();
    for diagnostic in reader.diagnostics {
        diagnostics.push(diagnostic);
    }
    value.filter(|_| !reader.cut_off)
}

// === impl Reader ===

impl Reader<'_> {
    fn document(&mut self) -> Option<Value> {
        if self.text.starts_with('\u{feff}') {
            self.at = '\u{feff}'.len_utf8();
        }
        self.space();
        if self.peek().is_none() {
            self.error(self.at, self.at, "the file is empty");
            return None;
        }
        let value = self.value(0);
        self.space();
        if !self.stopped && self.at < self.text.len() {
            self.error(
                self.at,
                self.at + self.char_len(),
                "there is text after the end of the value",
            );
        }
        value
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn char_len(&self) -> usize {
        self.text[self.at..]
            .chars()
            .next()
            .map_or(0, char::len_utf8)
    }

    fn span(&self, start: usize, end: usize) -> Span {
        let narrow = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Span {
            file: self.file,
            start: narrow(start),
            end: narrow(end),
        }
    }

    fn error(&mut self, start: usize, end: usize, message: impl Into<String>) {
        let diagnostic = SpanDiagnostic::error(SYNTAX, self.span(start, end), message);
        self.report(diagnostic);
    }

    fn report(&mut self, diagnostic: SpanDiagnostic) {
        if self.stopped {
            return;
        }
        self.diagnostics.push(diagnostic);
        if self.diagnostics.len() >= ERRORS_MAX {
            let place = self.span(self.at, self.at);
            let message = format!("after {ERRORS_MAX} errors the rest is not read");
            self.diagnostics
                .push(SpanDiagnostic::error(SYNTAX, place, message));
            self.stop();
        }
    }

    /// Moves to the end of the text. Code that reports an error advances `at` before, not after.
    fn stop(&mut self) {
        self.stopped = true;
        self.at = self.text.len();
    }

    /// Skips white space and comments; a comment is an error.
    fn space(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                b'/' => self.comment(),
                _ => return,
            }
        }
    }

    fn comment(&mut self) {
        let (start, rest) = (self.at, &self.text[self.at..]);
        let end = if rest.starts_with("//") {
            rest.find('\n').map_or(self.text.len(), |end| start + end)
        } else if rest.starts_with("/*") {
            rest.find("*/")
                .map_or(self.text.len(), |end| start + end + 2)
        } else {
            start + 1
        };
        self.at = end;
        if end == start + 1 {
            return self.error(start, end, "expected a value");
        }
        let span = self.span(start, end);
        let diagnostic = SpanDiagnostic::error(SYNTAX, span, "JSON has no comments");
        let removed = self.with_surroundings(start, end);
        self.report(diagnostic.help("remove it").edit(removed, ""));
    }

    /// Returns the span to remove with a comment: its whole lines if they contain nothing else,
    /// else the comment with the spaces before it.
    fn with_surroundings(&self, start: usize, end: usize) -> Span {
        let before = self.text[..start].trim_end_matches([' ', '\t']).len();
        let after = self.text[end..].trim_start_matches([' ', '\t', '\r']);
        let is_alone = before == 0 || self.text[..before].ends_with('\n');
        match after.strip_prefix('\n') {
            Some(next_line) if is_alone => self.span(before, self.text.len() - next_line.len()),
            Some(_) => self.span(before, end),
            None if is_alone => self.span(start, end),
            None => self.span(before, end),
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        let start = self.at;
        self.values += 1;
        if self.values > VALUES_MAX {
            let message = format!("there are more than {VALUES_MAX} values");
            self.report(SpanDiagnostic::error(
                LIMIT,
                self.span(start, start),
                message,
            ));
            self.stop();
            return None;
        }
        let data = match self.peek()? {
            b'{' | b'[' if depth == DEPTH_MAX => self.too_deep(),
            b'{' => self.map(depth),
            b'[' => self.list(depth),
            b'"' => Data::Text(self.string().into()),
            b'\'' => {
                let text = self.string();
                self.error(start, self.at, "strings are written in double quotes");
                Data::Text(text.into())
            }
            b'-' | b'+' | b'.' | b'0'..=b'9' => self.number(),
            _ => self.word()?,
        };
        Some(Value {
            span: self.span(start, self.at),
            data,
        })
    }

    fn too_deep(&mut self) -> Data {
        let start = self.at;
        let message = format!("this is nested more than {DEPTH_MAX} levels deep");
        self.report(SpanDiagnostic::error(
            LIMIT,
            self.span(start, start + 1),
            message,
        ));
        let mut open = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => drop(self.string()),
                b'{' | b'[' => (open, self.at) = (open + 1, self.at + 1),
                b'}' | b']' => (open, self.at) = (open - 1, self.at + 1),
                _ => self.at += 1,
            }
            if open == 0 {
                break;
            }
        }
        Data::Null
    }

    /// Reads the items between brackets; `entry` reads one item.
    fn between(&mut self, close: u8, mut entry: impl FnMut(&mut Self) -> bool) {
        let opened = self.at;
        self.at += 1;
        let mut comma: Option<usize> = None;
        let mut first = true;
        loop {
            self.space();
            match self.peek() {
                None => {
                    self.cut_off = true;
                    let name = if close == b'}' { "object" } else { "array" };
                    self.error(opened, opened + 1, format!("this {name} is not closed"));
                    return;
                }
                Some(byte) if byte == close => {
                    self.at += 1;
                    if let Some(comma) = comma {
                        let span = self.span(comma, comma + 1);
                        let message = format!("a comma before `{}`", char::from(close));
                        self.report(
                            SpanDiagnostic::error(SYNTAX, span, message)
                                .help("remove it")
                                .edit(span, ""),
                        );
                    }
                    return;
                }
                Some(b',') => {
                    self.at += 1;
                    if comma.is_some() || first {
                        let span = self.span(self.at - 1, self.at);
                        let diagnostic =
                            SpanDiagnostic::error(SYNTAX, span, "a comma with nothing before it");
                        self.report(diagnostic.help("remove it").edit(span, ""));
                    } else {
                        comma = Some(self.at - 1);
                    }
                    continue;
                }
                Some(b'}' | b']') => {
                    let message = format!("expected `{}`", char::from(close));
                    self.error(self.at, self.at + 1, message);
                    return;
                }
                Some(_) => {}
            }
            if !first && comma.is_none() {
                self.missing_comma();
            }
            (first, comma) = (false, None);
            let before = self.at;
            if !entry(self) || self.at == before {
                self.resume(before);
            }
        }
    }

    fn missing_comma(&mut self) {
        let end = self.text[..self.at].trim_end().len();
        let span = self.span(end, end);
        let diagnostic = SpanDiagnostic::error(SYNTAX, span, "a comma is missing");
        self.report(diagnostic.help("add one").edit(span, ","));
    }

    /// Skips to the place where the next item may start.
    fn resume(&mut self, before: usize) {
        if self.at == before {
            self.at += self.char_len();
        }
        while let Some(byte) = self.peek() {
            if matches!(byte, b',' | b'}' | b']' | b'"' | b'{' | b'[') {
                return;
            }
            self.at += self.char_len();
        }
    }

    fn list(&mut self, depth: usize) -> Data {
        let mut items = Vec::new();
        self.between(b']', |reader| {
            let item = reader.value(depth + 1);
            let read = item.is_some();
            items.extend(item);
            read
        });
        Data::List(items)
    }

    fn map(&mut self, depth: usize) -> Data {
        let mut members: Vec<Member> = Vec::new();
        let mut seen = Keys::default();
        self.between(b'}', |reader| {
            let start = reader.at;
            let Some(key) = reader.key() else {
                return false;
            };
            let span = reader.span(start, reader.at);
            reader.space();
            if reader.peek() == Some(b':') {
                reader.at += 1;
                reader.space();
            } else {
                reader.error(
                    start,
                    span.end as usize,
                    format!("`{key}` has no value: expected `:`"),
                );
                if matches!(reader.peek(), Some(b',' | b'}' | b']') | None) {
                    return true;
                }
            }
            let Some(value) = reader.value(depth + 1) else {
                return false;
            };
            if seen.insert(&members, &key) {
                members.push(Member { key, span, value });
            } else {
                let message = format!("the key `{key}` is repeated");
                reader.report(
                    SpanDiagnostic::error(DUPLICATE_KEY, span, message).help("keep one of the two"),
                );
            }
            true
        });
        Data::Map(members)
    }

    fn key(&mut self) -> Option<Box<str>> {
        let start = self.at;
        match self.peek()? {
            b'"' => Some(self.string().into()),
            b'\'' => {
                let text = self.string();
                self.error(start, self.at, "keys are written in double quotes");
                Some(text.into())
            }
            byte if byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' => {
                let word = self.take_word();
                let span = self.span(start, self.at);
                let diagnostic =
                    SpanDiagnostic::error(SYNTAX, span, format!("the key `{word}` is not quoted"));
                self.report(
                    diagnostic
                        .help("put it in double quotes")
                        .edit(span, format!("\"{word}\"")),
                );
                Some(word)
            }
            _ => {
                let end = self.at + self.char_len();
                self.conflict_or(start, end, "expected a key in double quotes");
                None
            }
        }
    }

    /// Reports an error. The marks of an unfinished merge are one error, and reading stops there.
    fn conflict_or(&mut self, start: usize, end: usize, message: &str) {
        let rest = &self.text[start..];
        if ["<<<<<<<", "=======", ">>>>>>>"]
            .iter()
            .any(|mark| rest.starts_with(mark))
        {
            self.error(start, start + 7, "unresolved merge conflict");
            self.stop();
            self.cut_off = true;
        } else {
            self.error(start, end, message);
        }
    }
}

#[cfg(test)]
mod tests;
