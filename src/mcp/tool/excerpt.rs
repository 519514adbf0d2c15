//! Parts of a Markdown text, and its table of contents.

use std::ops::Range;

use serde_json::{Value, json};

use crate::mdx::anchor::{github, slug};

/// How many headings a table of contents has.
const HEADINGS_MAX: usize = 80;

/// A heading of a Markdown text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heading<'t> {
    /// From 1 to 6.
    pub(super) level: usize,
    pub(super) text: &'t str,
    /// Where its line begins, in bytes.
    pub(super) start: usize,
}

/// Returns the part of a text that begins at `start` and has at most `bytes_max` bytes, but at
/// least one character. It ends after a line if one ends in its last half.
pub(super) fn part(text: &str, start: usize, bytes_max: usize) -> Range<usize> {
    let start = text.floor_char_boundary(start.min(text.len()));
    let rest = &text[start..];
    if rest.len() <= bytes_max {
        return start..text.len();
    }
    let first = rest.chars().next().map_or(0, char::len_utf8);
    let end = rest.floor_char_boundary(bytes_max).max(first);
    let line = memchr::memrchr(b'\n', &rest.as_bytes()[..end]).map(|at| at + 1);
    let end = line.filter(|line| *line > end / 2).unwrap_or(end);
    start..start + end
}

/// Finds the headings of a text. Lines inside fenced code are not headings (CommonMark 0.31 §4.2,
/// §4.5).
pub(super) fn headings(text: &str) -> Vec<Heading<'_>> {
    let mut found = Vec::new();
    let mut fence: Option<(u8, usize)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let here = start;
        start += line.len();
        let trimmed = line.trim();
        let mark = trimmed.bytes().next().unwrap_or_default();
        let run = trimmed.bytes().take_while(|b| *b == mark).count();
        match fence {
            Some((open, length)) if mark == open && run >= length && run == trimmed.len() => {
                fence = None;
            }
            Some(_) => {}
            None if matches!(mark, b'`' | b'~') && run >= 3 => fence = Some((mark, run)),
            None if mark == b'#' && run <= 6 && line.starts_with('#') => {
                if let Some(text) = trimmed[run..].strip_prefix(' ') {
                    found.push(Heading {
                        level: run,
                        text: text.trim(),
                        start: here,
                    });
                }
            }
            None => {}
        }
    }
    found
}

/// Returns where the section with an anchor begins.
pub(super) fn section(text: &str, anchor: &str) -> Option<usize> {
    let headings = headings(text);
    let plain = |heading: &Heading<'_>| heading.text.replace(['`', '*', '\\'], "");
    let is_named = |heading: &&Heading<'_>| {
        let words = plain(heading);
        slug(&words) == anchor || github(&words) == anchor
    };
    headings.iter().find(is_named).map(|heading| heading.start)
}

/// Writes the table of contents of a text.
pub(super) fn contents(text: &str) -> Value {
    let headings = headings(text);
    let heading = |heading: &Heading<'_>| json!({"heading": heading.text, "level": heading.level, "start": heading.start});
    headings.iter().take(HEADINGS_MAX).map(heading).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_a_text_and_end_after_lines() {
        let text = "# Été\n\nOne line.\nAnother line.\n\nThe last – it is long.\n";
        for bytes_max in 1..=text.len() {
            let mut at = 0;
            let mut all = String::new();
            while at < text.len() {
                let part = part(text, at, bytes_max);
                assert!(part.start == at && part.end > at, "{part:?}");
                assert!(part.len() <= bytes_max.max(3));
                all += &text[part.clone()];
                at = part.end;
            }
            assert_eq!(all, text);
        }
        assert_eq!(part(text, 0, 32), 0..19);
        assert_eq!(part(text, 1000, 32), text.len()..text.len());
    }

    #[test]
    fn headings_are_not_found_in_code() {
        let text = "# A\n\n```sh\n# no\n```\n\n## `B` c\n\n~~~~\n~~~\n# no\n~~~~\n#no\n### D ###\n";
        let found: Vec<_> = headings(text).iter().map(|h| (h.level, h.start)).collect();
        assert_eq!(found, [(1, 0), (2, 21), (3, 54)]);
        assert_eq!(section(text, "b-c"), Some(21));
        assert_eq!(section(text, "x"), None);
    }
}
