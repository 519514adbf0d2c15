//! The text of a page: headings, anchors, links.
//!
//! First everything that is not text is blanked out, byte for byte, so that places stay
//! true: fenced and inline code, comments, `import` and `export` blocks. What is left is
//! searched for links and attributes. Every step is one pass over the text.
//!
//! Sources: CommonMark 0.31.2 §4.2 (ATX headings), §4.5 (fences), §6.1 (code spans), §6.3
//! (links); MDX 3 (ESM, comments in braces).

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

/// What the blanking is in the middle of.
enum Inside {
    Text,
    /// A fence of this character and length.
    Fence(u8, usize),
    /// An `import` or `export`, up to an empty line.
    Module,
    /// A comment, up to this.
    Comment(&'static str),
}

// === impl Scanner ===

impl Scanner<'_> {
    /// Copies the text from `body` on, with spaces for what is not text.
    fn blank(&mut self, body: usize) -> String {
        let mut out = String::with_capacity(self.text.len() - body);
        let mut inside = Inside::Text;
        let mut start = body;
        for line in self.text[body..].split_inclusive('\n') {
            inside = match inside {
                Inside::Fence(mark, length) => {
                    out.push_str(&spaces(line));
                    match fence(line) {
                        Some((m, l, rest)) if m == mark && l >= length && rest.is_empty() => {
                            Inside::Text
                        }
                        _ => Inside::Fence(mark, length),
                    }
                }
                Inside::Module if line.trim().is_empty() => {
                    out.push_str(line);
                    Inside::Text
                }
                Inside::Module => {
                    self.import(line, start);
                    out.push_str(&spaces(line));
                    Inside::Module
                }
                Inside::Text if fence(line).is_some() => {
                    out.push_str(&spaces(line));
                    fence(line).map_or(Inside::Text, |(mark, length, _)| {
                        Inside::Fence(mark, length)
                    })
                }
                Inside::Text if line.starts_with("import ") || line.starts_with("export ") => {
                    self.import(line, start);
                    out.push_str(&spaces(line));
                    Inside::Module
                }
                Inside::Text => inline(line, None, &mut out),
                Inside::Comment(end) => inline(line, Some(end), &mut out),
            };
            start += line.len();
        }
        out
    }

    /// `import X from "/snippets/x.mdx"`.
    fn import(&mut self, line: &str, start: usize) {
        let Some(from) = line.find(" from ").map(|at| at + " from ".len()) else {
            return;
        };
        let rest = &line[from..];
        let Some(quote) = rest
            .trim_start()
            .chars()
            .next()
            .filter(|c| matches!(c, '"' | '\''))
        else {
            return;
        };
        let open = from + (rest.len() - rest.trim_start().len()) + 1;
        let Some(length) = line[open..].find(quote) else {
            return;
        };
        let target = &line[open..open + length];
        // Anything else is the name of a package.
        if target.starts_with('/') || target.starts_with('.') {
            self.refer(ReferenceKind::Snippet, target, start + open);
        }
    }

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
        // A closing sequence of `#` is no text (CommonMark §4.2).
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

fn spaces(text: &str) -> String {
    let blank = |byte| if byte == b'\n' { '\n' } else { ' ' };
    text.bytes().map(blank).collect()
}

/// Returns mark, length and rest of a line that opens or closes a fence.
fn fence(line: &str) -> Option<(u8, usize, &str)> {
    let rest = line.trim_start();
    let mark = *rest
        .as_bytes()
        .first()
        .filter(|byte| matches!(byte, b'`' | b'~'))?;
    let length = rest.bytes().take_while(|&byte| byte == mark).count();
    let info = rest[length..].trim();
    // CommonMark §4.5: the info of a backtick fence has no backticks.
    (length >= 3 && !(mark == b'`' && info.contains('`'))).then_some((mark, length, info))
}

/// Copies a line of text with spaces for code spans and comments.
fn inline(line: &str, comment: Option<&'static str>, out: &mut String) -> Inside {
    let mut rest = line;
    if let Some(end) = comment {
        let Some(at) = rest.find(end) else {
            out.push_str(&spaces(rest));
            return Inside::Comment(end);
        };
        out.push_str(&spaces(&rest[..at + end.len()]));
        rest = &rest[at + end.len()..];
    }
    while let Some(at) = rest.find(['`', '{', '<', '\\']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let comment = [("{/*", "*/}"), ("<!--", "-->")];
        let length = if let Some((open, end)) =
            comment.into_iter().find(|(open, _)| rest.starts_with(open))
        {
            match rest[open.len()..].find(end) {
                Some(at) => open.len() + at + end.len(),
                None => {
                    out.push_str(&spaces(rest));
                    return Inside::Comment(end);
                }
            }
        } else if rest.starts_with('`') {
            let ticks = rest.bytes().take_while(|&byte| byte == b'`').count();
            closing(rest, ticks).unwrap_or(ticks)
        } else if rest.starts_with('\\')
            && rest.len() > 1
            && rest.as_bytes()[1].is_ascii_punctuation()
        {
            2
        } else {
            out.push_str(&rest[..1]);
            rest = &rest[1..];
            continue;
        };
        out.push_str(&spaces(&rest[..length]));
        rest = &rest[length..];
    }
    out.push_str(rest);
    Inside::Text
}

/// Returns where the code span that starts here ends: CommonMark §6.1, as many backticks.
fn closing(text: &str, ticks: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = ticks;
    while at < bytes.len() {
        let run = bytes[at..].iter().take_while(|&&byte| byte == b'`').count();
        if run == ticks {
            return Some(at + run);
        }
        at += run.max(1);
    }
    None
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

/// Returns the bytes of a destination that starts behind `](`: CommonMark §6.3.
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
