//! What of a page is no text, blanked out byte for byte.
//!
//! Sources: `CommonMark` 0.31.2 §4.5 (fences), §6.1 (code spans); MDX 3 (ESM, comments).

use super::{ReferenceKind, Scanner};

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
    pub(super) fn blank(&mut self, body: usize) -> String {
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
    // `CommonMark` §4.5: the info of a backtick fence has no backticks.
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

/// Returns where the code span that starts here ends: `CommonMark` §6.1, as many backticks.
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
