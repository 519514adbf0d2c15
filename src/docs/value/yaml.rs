//! YAML with places, for OpenAPI specifications.
//!
//! The parser's events are put together here rather than by a loader, because an alias
//! must be paid for: nine lines of aliases to aliases stand for a billion values. Each
//! repetition counts against [`VALUES_MAX`], each level against [`DEPTH_MAX`].
//!
//! Scalars are those of the core schema. A number keeps its text, since a title of
//! `1.10` or a hash of `91e16528` is meant as it is written.
//!
//! Sources: YAML 1.2.2 §7.1 (aliases), §10.3.2 (core schema: tag resolution).

use std::collections::HashMap;
use std::sync::Arc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use super::json::{DUPLICATE_KEY, LIMIT};
use super::{DEPTH_MAX, Data, FileId, Finding, Findings, Member, Span, VALUES_MAX, Value};

/// The rule that errors of syntax break.
pub const SYNTAX: &str = "yaml-syntax";

/// Puts the values of one document together.
struct Builder<'t> {
    places: Places<'t>,
    open: Vec<Open>,
    anchors: HashMap<usize, Value>,
    values: usize,
    root: Option<Value>,
    found: Vec<Finding>,
}

/// A list or map that is not closed yet.
struct Open {
    span: Span,
    anchor: usize,
    data: Partial,
}

enum Partial {
    List(Vec<Value>),
    Map(Vec<Member>, Option<Value>),
}

/// Turns the parser's counts of characters into bytes, forwards only.
struct Places<'t> {
    text: &'t str,
    file: FileId,
    ascii: bool,
    characters: usize,
    bytes: usize,
}

/// Reads the first document of a file; `None` when it cannot be read.
#[must_use]
pub fn read(file: FileId, findings: &mut Findings) -> Option<Value> {
    let text = Arc::clone(findings.files.text(file));
    let mut builder = Builder {
        places: Places {
            text: &text,
            file,
            ascii: text.is_ascii(),
            characters: 0,
            bytes: 0,
        },
        open: Vec::new(),
        anchors: HashMap::new(),
        values: 0,
        root: None,
        found: Vec::new(),
    };
    let read = builder.document();
    if let Err(finding) = read {
        builder.found.push(*finding);
        builder.root = None;
    }
    let Builder { root, found, .. } = builder;
    for finding in found {
        findings.push(finding);
    }
    root
}

// === impl Builder ===

impl Builder<'_> {
    fn document(&mut self) -> Result<(), Box<Finding>> {
        let text = self.places.text;
        let mut parser = Parser::new_from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
        while let Some(event) = parser.next_event() {
            let (event, span) = event.map_err(|error| {
                let place = self.places.span(*error.marker(), *error.marker());
                Box::new(Finding::error(SYNTAX, place, error.info()))
            })?;
            let span = self.places.span(span.start, span.end);
            match event {
                Event::Scalar(text, style, anchor, _) => {
                    let data = scalar(&text, style);
                    self.complete(Value { span, data }, anchor, 1)?;
                }
                Event::SequenceStart(anchor, _) => {
                    self.enter(span, anchor, Partial::List(Vec::new()))?;
                }
                Event::MappingStart(anchor, _) => {
                    self.enter(span, anchor, Partial::Map(Vec::new(), None))?;
                }
                Event::SequenceEnd | Event::MappingEnd => self.leave()?,
                Event::Alias(anchor) => self.alias(span, anchor)?,
                Event::DocumentEnd => return Ok(()),
                Event::Nothing
                | Event::StreamStart
                | Event::StreamEnd
                | Event::DocumentStart(_) => {}
            }
        }
        Ok(())
    }

    fn enter(&mut self, span: Span, anchor: usize, data: Partial) -> Result<(), Box<Finding>> {
        if self.open.len() == DEPTH_MAX {
            let message = format!("this lies more than {DEPTH_MAX} levels deep");
            return Err(Box::new(Finding::error(LIMIT, span, message)));
        }
        self.open.push(Open { span, anchor, data });
        Ok(())
    }

    fn leave(&mut self) -> Result<(), Box<Finding>> {
        let open = self.open.pop().expect("the parser closes what it opened");
        let data = match open.data {
            Partial::List(items) => Data::List(items),
            Partial::Map(members, _) => Data::Map(members),
        };
        let span = open.span;
        self.complete(Value { span, data }, open.anchor, 1)
    }

    fn alias(&mut self, span: Span, anchor: usize) -> Result<(), Box<Finding>> {
        let Some(value) = self.anchors.get(&anchor).cloned() else {
            return Err(Box::new(Finding::error(
                SYNTAX,
                span,
                "the alias stands inside its own anchor",
            )));
        };
        let depth = self.open.len() + depth(&value);
        if depth > DEPTH_MAX {
            let message = format!("this lies more than {DEPTH_MAX} levels deep");
            return Err(Box::new(Finding::error(LIMIT, span, message)));
        }
        let count = value.count();
        self.complete(value, 0, count)
    }

    fn complete(&mut self, value: Value, anchor: usize, count: usize) -> Result<(), Box<Finding>> {
        self.values += count;
        if self.values > VALUES_MAX {
            let message = format!("there are more than {VALUES_MAX} values");
            return Err(Box::new(Finding::error(LIMIT, value.span, message)));
        }
        if anchor > 0 {
            self.values += value.count();
            self.anchors.insert(anchor, value.clone());
        }
        match self.open.last_mut().map(|open| &mut open.data) {
            None => self.root = Some(value),
            Some(Partial::List(items)) => items.push(value),
            Some(Partial::Map(_, key @ None)) => *key = Some(value),
            Some(Partial::Map(members, key @ Some(_))) => {
                let key = key.take().expect("the pattern says so");
                let Some(text) = key_text(&key) else {
                    self.found
                        .push(Finding::error(SYNTAX, key.span, "a key is a text"));
                    return Ok(());
                };
                if members.iter().any(|member| *member.key == *text) {
                    let message = format!("the key `{text}` stands here a second time");
                    self.found
                        .push(Finding::error(DUPLICATE_KEY, key.span, message));
                    return Ok(());
                }
                members.push(Member {
                    key: text,
                    span: key.span,
                    value,
                });
            }
        }
        Ok(())
    }
}

// === impl Places ===

impl Places<'_> {
    fn span(&mut self, start: Marker, end: Marker) -> Span {
        let narrow = |at| u32::try_from(at).unwrap_or(u32::MAX);
        let start = self.byte(start.index());
        let length = end.index().saturating_sub(self.characters);
        let rest = &self.text[start.min(self.text.len())..];
        let length = if self.ascii {
            length.min(rest.len())
        } else {
            rest.char_indices()
                .nth(length)
                .map_or(rest.len(), |(at, _)| at)
        };
        Span {
            file: self.file,
            start: narrow(start),
            end: narrow(start + length),
        }
    }

    /// Finds where a character starts. Events come in the order of the text, so the way
    /// from the last one is short; the few that lie before it start over.
    fn byte(&mut self, index: usize) -> usize {
        if self.ascii {
            self.characters = index;
            return index.min(self.text.len());
        }
        let mark = self.text.starts_with('\u{feff}');
        if index < self.characters || self.bytes == 0 {
            (self.characters, self.bytes) = (0, if mark { 3 } else { 0 });
        }
        let ahead = index - self.characters;
        let rest = &self.text[self.bytes..];
        let skipped = rest
            .char_indices()
            .nth(ahead)
            .map_or(rest.len(), |(at, _)| at);
        self.characters = index;
        self.bytes += skipped;
        self.bytes
    }
}

fn depth(value: &Value) -> usize {
    let below = match &value.data {
        Data::List(items) => items.iter().map(depth).max(),
        Data::Map(members) => members.iter().map(|m| depth(&m.value)).max(),
        _ => return 0,
    };
    1 + below.unwrap_or(0)
}

/// Status codes and versions are keys too: `200:` means "200".
fn key_text(key: &Value) -> Option<Box<str>> {
    match &key.data {
        Data::Text(text) | Data::Number(text) => Some(text.clone()),
        Data::Flag(flag) => Some(flag.to_string().into()),
        Data::Null => Some("null".into()),
        Data::List(_) | Data::Map(_) | Data::Unread => None,
    }
}

/// YAML 1.2.2 §10.3.2: how a plain scalar is resolved.
fn scalar(text: &str, style: ScalarStyle) -> Data {
    if style != ScalarStyle::Plain {
        return Data::Text(text.into());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Data::Null,
        "true" | "True" | "TRUE" => Data::Flag(true),
        "false" | "False" | "FALSE" => Data::Flag(false),
        _ if is_number(text) => Data::Number(text.into()),
        _ => Data::Text(text.into()),
    }
}

fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let starts = unsigned.strip_prefix('.').unwrap_or(unsigned);
    starts.starts_with(|c: char| c.is_ascii_digit())
        && unsigned
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'))
        && text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Diagnostic;

    fn read_all(text: &str) -> (Option<Value>, Findings) {
        let mut findings = Findings::default();
        let file = findings.files.add("api.yaml", text.into());
        let value = read(file, &mut findings);
        (value, findings)
    }

    fn found(text: &str) -> Vec<Diagnostic> {
        read_all(text).1.finish()
    }

    #[test]
    fn scalars_are_resolved_by_the_core_schema() {
        let (value, _) = read_all("a: yes\nb: true\nc: 1.10\nd: \"1\"\ne: ~\n200: x\n");
        let value = value.unwrap();
        assert_eq!(value.get("a").unwrap().text(), Some("yes"));
        assert_eq!(value.get("b").unwrap().flag(), Some(true));
        assert_eq!(value.get("c").unwrap().data, Data::Number("1.10".into()));
        assert_eq!(value.get("d").unwrap().text(), Some("1"));
        assert_eq!(value.get("e").unwrap().data, Data::Null);
        assert_eq!(value.get("200").unwrap().text(), Some("x"));
    }

    #[test]
    fn spans_are_bytes_of_the_text_beyond_ascii_too() {
        for text in ["é: ü\nkey: välue\n", "\u{feff}é: ü\nkey: välue\n"] {
            let (value, findings) = read_all(text);
            let value = value.unwrap();
            let member = value.member("key").unwrap();
            assert_eq!(findings.files.source(member.span), "key");
            assert_eq!(findings.files.source(member.value.span), "välue");
        }
    }

    #[test]
    fn aliases_repeat_their_value() {
        let (value, _) = read_all("a: &x {b: 1}\nc: *x\n");
        let value = value.unwrap();
        assert_eq!(value.get("a"), value.get("c"));
    }

    #[test]
    fn a_bomb_of_aliases_is_one_finding() {
        let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for n in 1..12 {
            let of = format!("*a{},", n - 1).repeat(9);
            text.push_str(&format!("a{n}: &a{n} [{of}]\n"));
        }
        let found = found(&text);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].rule, LIMIT);
    }

    #[test]
    fn depth_is_bounded() {
        let blocks = found(&format!("{}x", "- ".repeat(1000)));
        assert_eq!(blocks.len(), 1);
        assert_eq!(blocks[0].rule, LIMIT);
        // The parser itself refuses brackets that deep.
        assert_eq!(found(&format!("a: {}", "[".repeat(10_000))).len(), 1);
    }

    #[test]
    fn an_error_of_syntax_has_its_place() {
        let found = found("a: 1\nb: [1, 2\nc: 3\n");
        assert_eq!(found[0].rule, SYNTAX);
        assert!(found[0].location.unwrap().line >= 2);
    }

    #[test]
    fn a_repeated_key_is_a_finding() {
        assert_eq!(found("a: 1\na: 2\n")[0].rule, DUPLICATE_KEY);
    }
}
