//! Parts of a Markdown text, and its table of contents.

use std::ops::Range;

use serde_json::{Value, json};

use crate::mdx::anchor::of_headings;

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

/// Returns where the section with an anchor begins: the anchors are made from the words of the
/// headings and numbered as in the HTML of the page. Markdown does not show the ids that authors
/// wrote.
pub(super) fn section(text: &str, anchor: &str) -> Option<usize> {
    let mut headings = headings(text);
    // The title of a page has no anchor.
    if headings.first().is_some_and(|first| first.level == 1) {
        headings.remove(0);
    }
    let words: Vec<String> = headings
        .iter()
        .map(|heading| heading.text.replace(['`', '*', '\\'], ""))
        .collect();
    let anchors = of_headings(words.iter().map(String::as_str));
    let own = anchors.iter().position(|known| *known.id == *anchor);
    let at = own.or_else(|| {
        let mut anchors = anchors.iter();
        anchors.position(|known| known.aliases.iter().any(|alias| **alias == *anchor))
    });
    at.map(|at| headings[at].start)
}

/// A table of contents that has room for some bytes of JSON.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) listed: Vec<Value>,
    /// The length of the list as JSON, without its brackets.
    pub(super) bytes: usize,
    /// How many headings follow the last listed one.
    pub(super) left_out: usize,
}

/// Lists the headings of a text: all, or those from `start` on that fit.
pub(super) fn contents(text: &str, start: usize, bytes_max: usize) -> Contents {
    let headings = headings(text);
    let entry = |heading: &Heading<'_>| json!({"heading": heading.text, "level": heading.level, "start": heading.start});
    let whole = fitting(headings.iter().map(entry), headings.len(), bytes_max);
    if whole.left_out == 0 {
        return whole;
    }
    let first = headings.partition_point(|heading| heading.start < start);
    let rest = &headings[first..];
    fitting(rest.iter().map(entry), rest.len(), bytes_max)
}

fn fitting(entries: impl Iterator<Item = Value>, count: usize, bytes_max: usize) -> Contents {
    let mut contents = Contents::default();
    for entry in entries {
        let bytes = entry.to_string().len() + 1;
        // One is always listed, so that the next call can begin after it.
        if contents.bytes + bytes > bytes_max && !contents.listed.is_empty() {
            break;
        }
        contents.bytes += bytes;
        contents.listed.push(entry);
    }
    contents.left_out = count - contents.listed.len();
    contents
}

/// Returns how many bytes of a text fit if the text is written as JSON.
pub(super) fn fits_as_json(text: &str, bytes_max: usize) -> usize {
    let mut left = bytes_max;
    for (at, c) in text.char_indices() {
        let bytes = match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            c => c.len_utf8(),
        };
        if bytes > left {
            return at;
        }
        left -= bytes;
    }
    text.len()
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

    #[test]
    fn a_text_is_cut_by_the_length_of_its_json() {
        let text = "a\"b\nç\u{1}\u{7f}z";
        for bytes_max in 0..=20 {
            let end = fits_as_json(text, bytes_max);
            let bytes = serde_json::to_string(&text[..end]).unwrap().len() - 2;
            assert!(bytes <= bytes_max);
            let next = text[end..].chars().next();
            if let Some(next) = next {
                let longer = &text[..end + next.len_utf8()];
                assert!(serde_json::to_string(longer).unwrap().len() - 2 > bytes_max);
            }
        }
    }

    #[test]
    fn repeated_headings_have_numbers() {
        let text = "# Errors\n\n## Errors\n\n## Errors\n\n## Set up\n";
        assert_eq!(section(text, "errors"), Some(10));
        assert_eq!(section(text, "errors-2"), Some(21));
        assert_eq!(section(text, "set-up"), Some(32));
        assert_eq!(section(text, "errors-3"), None);
    }

    #[test]
    fn headings_that_do_not_fit_are_counted() {
        let text = "# A\n\n## B\n\n## C\n\n## D\n";
        let listed = |start, bytes_max| {
            let contents = contents(text, start, bytes_max);
            let starts = contents.listed.iter();
            let starts: Vec<_> = starts
                .map(|entry| entry["start"].as_u64().unwrap())
                .collect();
            (starts, contents.left_out)
        };
        assert_eq!(listed(0, 1000), (vec![0, 5, 11, 17], 0));
        assert_eq!(listed(6, 1000), (vec![0, 5, 11, 17], 0));
        assert_eq!(listed(0, 90), (vec![0, 5], 2));
        assert_eq!(listed(6, 90), (vec![11, 17], 0));
        assert_eq!(listed(6, 1), (vec![11], 1));
    }
}
