//! Sentences that state a limit or a consequence, and pages about limits.

use crate::docs::navigation::tree::Page;

use super::role::{has, normal};

/// The most words of the title of a page about limits.
const TITLE_WORDS_MAX: usize = 5;

/// Words of a sentence about a limit.
const LIMITS: [&str; 33] = [
    "limit",
    "limits",
    "limited",
    "maximum",
    "minimum",
    "at most",
    "at least",
    "up to",
    "must",
    "only",
    "cannot",
    "can t",
    "not supported",
    "unsupported",
    "never",
    "requires",
    "required",
    "expire",
    "expires",
    "expired",
    "rate",
    "quota",
    "by default",
    "default",
    "no longer",
    "before",
    "irreversible",
    "permanently",
    "not available",
    "doesn t",
    "does not",
    "won t",
    "timeout",
];
/// Words that also stand in sentences without a limit, unless there is a number.
const WEAK: [&str; 5] = ["by default", "default", "before", "rate", "only"];
/// Words of a sentence that states a limit.
const STRICT: [&str; 14] = [
    "must",
    "cannot",
    "can t",
    "not supported",
    "unsupported",
    "never",
    "at most",
    "at least",
    "up to",
    "maximum of",
    "minimum of",
    "limit of",
    "expire",
    "expires",
];
/// Words of titles of pages about limits.
const LIMIT_TITLES: [&str; 8] = [
    "limits",
    "rate limits",
    "rate limiting",
    "limitations",
    "quotas",
    "quotas and limits",
    "known issues",
    "usage limits",
];
/// Words of a sentence about the consequence of a mistake.
const CONSEQUENCES: [&str; 38] = [
    "otherwise",
    "or else",
    "fail",
    "fails",
    "failed",
    "failure",
    "failures",
    "lose",
    "loses",
    "lost",
    "loss",
    "break",
    "breaks",
    "broken",
    "overwrites",
    "overwritten",
    "deleted",
    "deletes",
    "denied",
    "rejected",
    "rejects",
    "dropped",
    "ignored",
    "terminated",
    "invalidates",
    "blocked",
    "will delete",
    "exposes",
    "exposed",
    "leads to",
    "results in",
    "prevents",
    "cannot be undone",
    "irreversible",
    "permanently",
    "error",
    "charged",
    "429",
];

/// Returns whether a sentence states a limit: a number, or something that must or cannot be.
pub(super) fn says_limit(sentence: &str) -> bool {
    let words = normal(sentence);
    // The reason for a design is no limit of the reader.
    let explains = has(&words, &["because", "so the"]);
    !explains && has(&words, &STRICT) || has_number(&words) && has(&words, &LIMITS)
}

/// Returns whether a sentence of a note is a rule for the reader. A sentence that gives a reason
/// explains how something was built.
pub(super) fn is_rule(sentence: &str) -> bool {
    let words = normal(sentence);
    let explains = has(&words, &["because", "so the", "which means"]);
    let mut rules = LIMITS.into_iter().filter(|word| !WEAK.contains(word));
    says_limit(sentence) || !explains && rules.any(|word| has(&words, &[word]))
}

/// Returns whether a sentence states the consequence of a mistake.
pub(super) fn says_consequence(sentence: &str) -> bool {
    has(&normal(sentence), &CONSEQUENCES)
}

/// Returns whether a sentence states a rate: `5 requests per second`.
pub(super) fn says_rate(sentence: &str) -> bool {
    let words = normal(sentence);
    has_number(&words) && has(&words, &["per"])
}

/// Returns whether one of the words is a number. The digit of a name such as `S3` is none.
fn has_number(words: &str) -> bool {
    words
        .split(' ')
        .any(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

/// How much of the product a page about limits concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// All of it: `Rate limits`.
    Whole,
    /// A part of it: `Webhook limitations`.
    Part,
}

impl Scope {
    /// Returns the scope of a page about limits; `None` for other pages.
    pub(super) fn of(page: &Page) -> Option<Self> {
        let title = normal(&page.title);
        let is_short = title.split_whitespace().count() <= TITLE_WORDS_MAX;
        let last = page.slug.rsplit('/').next().unwrap_or_default();
        let last = normal(last);
        let is_named = has(&title, &LIMIT_TITLES);
        let is_whole = LIMIT_TITLES.contains(&title.trim()) || !is_named;
        let is_about = is_short && is_named || LIMIT_TITLES.contains(&last.trim());
        // A module such as `rate_limiting` describes code, not what readers may do.
        let is_module = page.title.contains('_') && !page.title.contains(' ');
        (is_about && !is_module).then_some(if is_whole { Self::Whole } else { Self::Part })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consequence_and_a_rate_are_told_from_other_sentences() {
        for sentence in [
            "Do not close it: the job fails.",
            "Keep the key, otherwise you lose access.",
            "All data is deleted.",
        ] {
            assert!(says_consequence(sentence), "{sentence}");
        }
        assert!(!says_consequence("Use a key of your own."));
        assert!(says_rate("20,000 requests per 30 seconds"));
        assert!(!says_rate("A key per project") && !says_rate("20 requests"));
    }
}
