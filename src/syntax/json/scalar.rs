//! Strings, numbers and words.
//!
//! Sources: RFC 8259 §3 (words), §6 (numbers), §7 (strings).

use super::{Data, Reader, SYNTAX, SpanDiagnostic};

// === impl Reader ===

impl Reader<'_> {
    pub(super) fn number(&mut self) -> Data {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let length = bytes[start..]
            .iter()
            .take_while(|byte| inside(byte))
            .count();
        self.at += length;
        let number = &self.text[start..self.at];
        if !is_number(number) {
            self.error(start, self.at, format!("`{number}` is not a JSON number"));
        }
        Data::Number(number.into())
    }

    pub(super) fn take_word(&mut self) -> Box<str> {
        let rest = &self.text[self.at..];
        let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '.');
        let length = rest.find(|c| !inside(c)).unwrap_or(rest.len());
        self.at += length;
        rest[..length].into()
    }

    pub(super) fn word(&mut self) -> Option<Data> {
        let start = self.at;
        let word = self.take_word();
        match &*word {
            "true" => Some(Data::Flag(true)),
            "false" => Some(Data::Flag(false)),
            "null" => Some(Data::Null),
            "" => {
                let end = start + self.char_len();
                self.conflict_or(start, end, "expected a value");
                None
            }
            "True" | "TRUE" | "False" | "FALSE" | "None" | "NULL" | "undefined" => {
                let right = match &*word {
                    "True" | "TRUE" => "true",
                    "False" | "FALSE" => "false",
                    _ => "null",
                };
                let span = self.span(start, self.at);
                let diagnostic =
                    SpanDiagnostic::error(SYNTAX, span, format!("`{word}` is not a JSON value"));
                self.report(
                    diagnostic
                        .help(format!("write `{right}`"))
                        .edit(span, right),
                );
                Some(match right {
                    "null" => Data::Null,
                    right => Data::Flag(right == "true"),
                })
            }
            _ => {
                self.error(start, self.at, "strings are written in double quotes");
                Some(Data::Text(word))
            }
        }
    }

    /// Reads a quoted text; a text without closing quote ends at the end of its line.
    pub(super) fn string(&mut self) -> String {
        let quote = self.text.as_bytes()[self.at];
        let start = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let stop = |byte: &u8| *byte == quote || *byte == b'\\' || *byte < b' ';
            let Some(plain) = rest.as_bytes().iter().position(stop) else {
                self.at = self.text.len();
                self.error(start, self.at, "this string is not closed");
                return out;
            };
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.text.as_bytes()[self.at] {
                byte if byte == quote => {
                    self.at += 1;
                    return out;
                }
                b'\\' => self.escape(&mut out),
                b'\n' | b'\r' => {
                    self.error(start, self.at, "this string is not closed in its line");
                    return out;
                }
                control => {
                    let message = format!("the control character U+{control:04X} must be escaped");
                    self.at += 1;
                    out.push(char::from(control));
                    self.error(self.at - 1, self.at, message);
                }
            }
        }
    }

    fn escape(&mut self, out: &mut String) {
        let start = self.at;
        let escaped = self.text.as_bytes().get(start + 1).copied();
        self.at += 2;
        out.push(match escaped {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'u') => match self.code_point() {
                Some(c) => c,
                None => {
                    self.error(start, self.at, "this escape names no character");
                    char::REPLACEMENT_CHARACTER
                }
            },
            _ => {
                self.at = start + 1;
                let end = self.at + self.char_len();
                self.error(start, end, "JSON knows no such escape");
                '\\'
            }
        });
    }

    /// Reads the digits after `\u`, and the second escape of a surrogate pair.
    fn code_point(&mut self) -> Option<char> {
        let high = self.digits()?;
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high);
        }
        if !self.text[self.at..].starts_with("\\u") {
            return None;
        }
        let before = self.at;
        self.at += 2;
        let low = self.digits().filter(|low| (0xdc00..0xe000).contains(low));
        match low {
            Some(low) => char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)),
            None => {
                self.at = before;
                None
            }
        }
    }

    fn digits(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}

/// RFC 8259 §6: `-? int frac? exp?`.
pub(super) fn is_number(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut rest = text.strip_prefix('-').unwrap_or(text);
    let int = digits(rest);
    if int == 0 || (int > 1 && rest.starts_with('0')) {
        return false;
    }
    rest = &rest[int..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let count = digits(exponent);
        return count > 0 && count == exponent.len();
    }
    rest.is_empty()
}
