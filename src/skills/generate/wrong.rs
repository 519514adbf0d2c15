//! Samples that an author shows as wrong, beside a right one.
//!
//! The title of a sample, the heading or the line above it, or a remark in it says so: `❌ Wrong`,
//! "Don't", "Before (v1)", `// Bad: no key`. Readers must not write such code, so a skill does not
//! repeat it.

use super::code::Block;
use super::role::{has, normal};
use super::text::sentences;
use crate::skills::unsafe_text::says_instruction;

/// Marks of wrong samples, and of right ones.
const MARKS: [char; 6] = ['❌', '✗', '✘', '🚫', '⛔', '👎'];
const RIGHT_MARKS: [char; 4] = ['✅', '✓', '✔', '👍'];
/// Words that announce a wrong sample. They are the whole text above it, or its beginning up to a
/// colon, a bracket or a dash.
const WRONG: [&str; 22] = [
    "anti pattern",
    "antipattern",
    "avoid",
    "avoid this",
    "bad",
    "before",
    "do not",
    "do not do",
    "do not do this",
    "do not use",
    "don t",
    "don t do",
    "don t do this",
    "don t use",
    "incorrect",
    "instead of",
    "instead of this",
    "invalid",
    "never do this",
    "not recommended",
    "old",
    "wrong",
];
/// Words after these that change nothing: "a bad example", "the wrong way".
const SAMPLES: [&str; 9] = [
    "approach", "code", "example", "pattern", "practice", "sample", "style", "usage", "way",
];
/// Words that announce a right sample in the same places.
const RIGHT: [&str; 9] = [
    "after",
    "better",
    "correct",
    "do",
    "do this",
    "good",
    "new",
    "recommended",
    "right",
];
/// Words anywhere in a line above a right sample.
const INSTEAD: [&str; 4] = ["instead", "to prevent this", "to avoid this", "to fix this"];
/// Beginnings of headings whose first sample is wrong.
const FORBIDS: [&str; 4] = [" don t ", " do not ", " avoid ", " never "];

/// Whether the texts above a sample call it wrong. A page is read from its beginning to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    by_heading: bool,
    /// `None` until a line below the heading says something.
    by_line: Option<bool>,
}

// === impl Verdict ===

impl Verdict {
    /// Notes a heading, or the title of a step.
    pub(super) fn heading(&mut self, heading: &str) {
        let words = normal(heading);
        let forbids = FORBIDS.iter().any(|start| words.starts_with(start));
        *self = Self {
            by_heading: is_wrong(heading) || forbids && !heading.trim_end().ends_with('?'),
            by_line: None,
        };
    }

    /// Notes a paragraph; its last sentence is about the sample below it.
    pub(super) fn line(&mut self, line: &str) {
        let line = sentences(line).pop().unwrap_or_default();
        self.by_line = match (is_wrong(line), is_right(line)) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            // Words after a sample belong to the next one.
            (false, false) => self.by_line.filter(|is_wrong| !is_wrong),
        };
    }

    /// Returns whether a sample at this place is wrong, or instructs agents against their users.
    pub(super) fn is_wrong(self, block: &Block<'_>) -> bool {
        let own = match (is_wrong(&block.label), is_right(&block.label)) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        };
        let said = self.by_line.unwrap_or(self.by_heading);
        own.unwrap_or(said)
            || block.code.lines().any(has_wrong_remark)
            || says_instruction(block.code).is_some()
    }
}

/// Returns whether a title, a line or a remark calls a sample wrong.
pub(super) fn is_wrong(text: &str) -> bool {
    text.trim_start().starts_with(MARKS) || announces(text, &WRONG)
}

fn is_right(text: &str) -> bool {
    let is_marked = text.trim_start().starts_with(RIGHT_MARKS);
    is_marked || announces(text, &RIGHT) || has(&normal(text), &INSTEAD)
}

/// Returns whether a text begins with one of these before its first colon, bracket or dash.
fn announces(text: &str, any: &[&str]) -> bool {
    let end = text
        .find([':', '(', '!', '—', '–'])
        .into_iter()
        .chain(text.find(" - "))
        .min()
        .unwrap_or(text.len());
    let words = normal(&text[..end]);
    let words = words.trim();
    let (first, last) = words.rsplit_once(' ').unwrap_or((words, ""));
    any.contains(&words) || any.contains(&first) && SAMPLES.contains(&last)
}

/// Returns whether a line of code has a remark that says that the code is wrong.
fn has_wrong_remark(line: &str) -> bool {
    const REMARKS: [&str; 5] = ["//", "#", "--", "/*", "<!--"];
    let starts = REMARKS.iter().filter_map(|mark| {
        let at = line.find(mark)?;
        // Not an address or a fragment of one.
        let is_remark = line[..at].is_empty() || line[..at].ends_with(char::is_whitespace);
        is_remark.then(|| (at, &line[at + mark.len()..]))
    });
    starts
        .min_by_key(|(at, _)| *at)
        .is_some_and(|(_, remark)| is_wrong(remark.trim_start_matches(['/', '*', '#', '-', ' '])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_and_remarks_say_that_a_sample_is_wrong() {
        for text in [
            "❌ Missing steps - TypeScript",
            "Bad",
            "DON'T",
            "Don’t do this:",
            "Wrong — the account is too small",
            "WRONG - mixed case",
            "Incorrect usage",
            "Before (v0.5.x)",
            "Bad practice: a key in the page",
            "Avoid",
            "Instead of this:",
        ] {
            assert!(is_wrong(text), "{text}");
        }
        for text in [
            "Before you begin",
            "Wrong email or password",
            "Bad Request (400)",
            "Avoid rate limits",
            "Don't forget the key",
            "Do not remove this line",
            "",
            "After",
            "Invalid tokens",
        ] {
            assert!(!is_wrong(text), "{text}");
        }
    }

    #[test]
    fn remarks_are_told_from_code() {
        for line in [
            "// ❌ OLD: patch the prototype",
            "  await context.call() // ❌ INCORRECT",
            "# Before",
            "  # Incorrect — filter is nested",
            "/* Bad */",
        ] {
            assert!(has_wrong_remark(line), "{line}");
        }
        for line in [
            "console.error('❌ failed')",
            "fetch('https://bad')",
            "x = \"#before\"",
            "// before the call, log in",
            "# Do not share this key",
        ] {
            assert!(!has_wrong_remark(line), "{line}");
        }
    }

    #[test]
    fn a_heading_counts_until_a_line_shows_the_right_way() {
        let block = Block::of("js", "acme.pay()", "");
        let mut verdict = Verdict::default();
        verdict.heading("Don't nest calls");
        assert!(verdict.is_wrong(&block));
        assert!(!verdict.is_wrong(&Block::of("js ✅ Correct", "acme.pay()", "")));
        verdict.line("Each call is a step.");
        assert!(verdict.is_wrong(&block));
        verdict.line("Call them one after the other instead:");
        assert!(!verdict.is_wrong(&block));
        verdict.line("**Before**".trim_matches('*'));
        assert!(verdict.is_wrong(&block));
        verdict.line("Then the page is shown.");
        assert!(verdict.is_wrong(&block), "the heading says so");
        verdict.heading("Pay");
        assert!(!verdict.is_wrong(&block));
        verdict.heading("Don't have an account?");
        assert!(!verdict.is_wrong(&block));
    }
}
