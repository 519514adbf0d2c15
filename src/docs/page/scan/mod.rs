//! The text of a page: headings, anchors, links.
//!
//! First everything that is not text is blanked out, byte for byte, so that places stay
//! true: fenced and inline code, comments, `import` and `export` blocks. What is left is
//! searched for links and attributes. Every step is one pass over the text.
//!
//! Sources: `CommonMark` 0.31.2 §4.2 (ATX headings), §4.5 (fences), §6.1 (code spans), §6.3
//! (links); MDX 3 (ESM, comments in braces).

mod blank;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// How long a link's destination may be.
const DESTINATION_BYTES_MAX: usize = 4096;

/// What the text of a page holds.
#[derive(Debug, Default)]
pub struct Scan {
    /// Its headings in order.
    pub headings: Vec<Heading>,
    /// What a link into the page may name.
    pub anchors: HashSet<Box<str>>,
    /// What it refers to.
    pub references: Vec<Reference>,
}

/// A heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// 1 to 6.
    pub level: u8,
    /// Its text as written.
    pub text: Box<str>,
    /// The anchor that names it.
    pub anchor: Box<str>,
}

/// Something a page refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// What for.
    pub kind: ReferenceKind,
    /// What it says.
    pub target: Box<str>,
    /// Where it says so, in bytes.
    pub range: Range<usize>,
}

/// What a page refers to something for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceKind {
    /// To lead there.
    Link,
    /// To show it.
    Image,
    /// To contain it.
    Snippet,
}

/// Collects while the lines go by.
struct Scanner<'t> {
    text: &'t str,
    scan: Scan,
    slugs: HashMap<String, usize>,
}

// === impl Scan ===

impl Scan {
    /// Scans the text from `body` on.
    #[must_use]
    pub fn of(text: &str, body: usize) -> Self {
        let mut scanner = Scanner {
            text,
            scan: Self::default(),
            slugs: HashMap::new(),
        };
        let blanked = scanner.blank(body);
        let mut start = body;
        for line in blanked.split_inclusive('\n') {
            scanner.line(line, start);
            start += line.len();
        }
        scanner.scan
    }

    /// Returns whether a link may name this anchor.
    #[must_use]
    pub fn has_anchor(&self, anchor: &str) -> bool {
        self.anchors.contains(anchor) || self.anchors.contains(&*anchor.to_lowercase())
    }
}

// === impl Scanner ===

impl Scanner<'_> {
    fn refer(&mut self, kind: ReferenceKind, target: &str, at: usize) {
        if target.len() <= DESTINATION_BYTES_MAX {
            self.scan.references.push(Reference {
                kind,
                target: target.into(),
                range: at..at + target.len(),
            });
        }
    }

    fn line(&mut self, line: &str, start: usize) {
        if let Some(level) = heading(line) {
            let written = &self.text[start..start + line.len()];
            self.heading(level, written);
        }
        self.links(line, start);
        self.definition(line, start);
        self.attributes(line, start);
    }

    fn heading(&mut self, level: u8, written: &str) {
        let text = written.trim_start().trim_start_matches('#').trim();
        // A closing sequence of `#` is no text (`CommonMark` §4.2).
        let text = text.trim_end_matches('#').trim_end();
        let (text, named) = match text.rsplit_once("{#") {
            Some((text, id)) if id.ends_with('}') => (text.trim_end(), Some(&id[..id.len() - 1])),
            _ => (text, None),
        };
        let anchor = match named {
            Some(id) => id.to_owned(),
            None => self.number(slug(text)),
        };
        self.scan.anchors.insert(anchor.as_str().into());
        self.scan.headings.push(Heading {
            level,
            text: text.into(),
            anchor: anchor.into(),
        });
    }

    /// Numbers a repeated anchor, as every renderer does.
    fn number(&mut self, slug: String) -> String {
        let count = self.slugs.entry(slug.clone()).or_default();
        *count += 1;
        match *count {
            1 => slug,
            n => format!("{slug}-{}", n - 1),
        }
    }

    /// `[text](destination "title")` and `![alt](source)`.
    fn links(&mut self, line: &str, start: usize) {
        let mut from = 0;
        while let Some(found) = line[from..].find("](") {
            let close = from + found;
            let open = close + 2;
            from = open;
            let Some(Range {
                start: left,
                end: right,
            }) = destination(line, open)
            else {
                continue;
            };
            let target = &line[left..right];
            if !target.is_empty() {
                let kind = match is_image(&line[..close]) {
                    true => ReferenceKind::Image,
                    false => ReferenceKind::Link,
                };
                self.refer(kind, target, start + left);
            }
            from = right.max(open);
        }
    }

    /// `[label]: destination`.
    fn definition(&mut self, line: &str, start: usize) {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let rest = &line[indent..];
        if indent > 3 || !rest.starts_with('[') || rest.starts_with("[^") {
            return;
        }
        let Some(close) = rest.find("]:") else {
            return;
        };
        let after = &rest[close + 2..];
        let target = after.trim_start();
        let at = start + line.len() - target.len();
        let target = target.split_whitespace().next().unwrap_or_default();
        let (target, at) = match target.strip_prefix('<').and_then(|t| t.strip_suffix('>')) {
            Some(inner) => (inner, at + 1),
            None => (target, at),
        };
        if !target.is_empty() {
            self.refer(ReferenceKind::Link, target, at);
        }
    }

    /// Attributes that refer to something or name an anchor.
    fn attributes(&mut self, line: &str, start: usize) {
        let mut from = 0;
        while let Some(found) = line[from..].find('=') {
            let equals = from + found;
            from = equals + 1;
            let Some(value) = quoted(line, from) else {
                continue;
            };
            let named = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            let before = line.as_bytes()[..equals].iter();
            let name_start = equals - before.rev().take_while(|byte| named(byte)).count();
            let name = &line[name_start..equals];
            let text = &line[value.clone()];
            from = value.end;
            match name {
                "href" => self.refer(ReferenceKind::Link, text, start + value.start),
                "src" => self.refer(ReferenceKind::Image, text, start + value.start),
                "file" if line[..name_start].trim_end().ends_with("<Snippet") => {
                    self.refer(ReferenceKind::Snippet, text, start + value.start);
                }
                "id" | "name" => {
                    self.scan.anchors.insert(text.into());
                }
                // Steps, tabs, accordions and updates can be linked to by what they say.
                "title" | "label" => {
                    let anchor = self.number(slug(text));
                    self.scan.anchors.insert(anchor.into());
                }
                "body" | "query" | "path" | "header" => {
                    let anchor = format!("param-{}", slug(text));
                    self.scan.anchors.insert(anchor.into());
                }
                _ => {}
            }
        }
    }
}

fn heading(line: &str) -> Option<u8> {
    let rest = line.trim_start_matches([' ', '\t']);
    let level = rest.bytes().take_while(|&byte| byte == b'#').count();
    let level = u8::try_from(level)
        .ok()
        .filter(|level| (1..=6).contains(level))?;
    let after = &rest[usize::from(level)..];
    after.starts_with([' ', '\t']).then_some(level)
}

/// Returns the bytes of a destination that starts behind `](`: `CommonMark` §6.3.
fn destination(line: &str, open: usize) -> Option<Range<usize>> {
    let rest = &line[open..];
    let start = open + (rest.len() - rest.trim_start_matches(' ').len());
    let rest = &line[start..];
    if let Some(inner) = rest.strip_prefix('<') {
        let end = inner.find('>')?;
        return Some(start + 1..start + 1 + end);
    }
    let mut depth = 0usize;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(start..start + at),
            b')' => depth -= 1,
            b' ' | b'\t' | b'\n' => return Some(start..start + at),
            _ => {}
        }
    }
    None
}

/// Returns whether the bracket that closes at the end of `before` opened with `![`.
fn is_image(before: &str) -> bool {
    let mut depth = 0usize;
    for (at, byte) in before.bytes().enumerate().rev() {
        match byte {
            b']' => depth += 1,
            b'[' if depth == 0 => return at > 0 && before.as_bytes()[at - 1] == b'!',
            b'[' => depth -= 1,
            _ => {}
        }
    }
    false
}

/// Returns what stands in the quotes that open here, `{"…"}` too.
fn quoted(line: &str, at: usize) -> Option<Range<usize>> {
    let bytes = line.as_bytes();
    let open = if bytes.get(at) == Some(&b'{') {
        at + 1
    } else {
        at
    };
    let quote = *bytes
        .get(open)
        .filter(|byte| matches!(byte, b'"' | b'\''))?;
    let length = memchr::memchr(quote, &bytes[open + 1..])?;
    Some(open + 1..open + 1 + length)
}

/// Makes an anchor of a heading, as GitHub does.
fn slug(text: &str) -> String {
    let plain = plain(text);
    let mut out = String::with_capacity(plain.len());
    for c in plain.trim().chars() {
        match c {
            ' ' => out.push('-'),
            '-' | '_' => out.push(c),
            c if c.is_alphanumeric() => out.extend(c.to_lowercase()),
            _ => {}
        }
    }
    out
}

/// Leaves of a heading what is read: the text of links, no marks.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['[', ']', '<', '*']) {
        out.push_str(&rest[..at]);
        let tail = &rest[at..];
        rest = match tail.as_bytes()[0] {
            b']' if tail.starts_with("](") => tail.find(')').map_or("", |end| &tail[end + 1..]),
            b'<' => match tail.find('>') {
                Some(end) => &tail[end + 1..],
                None => &tail[1..],
            },
            _ => &tail[1..],
        };
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests;
