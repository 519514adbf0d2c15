//! Diagnostics: what is wrong with what an author wrote.
//!
//! A reader of authored files never stops at the first mistake. It returns what it
//! could make of the text together with a list of diagnostics, each naming file,
//! place, rule, what was found and, where one is likely, what to do about it. Errors
//! end a build (the release served before stays); warnings never do unless asked to.

use std::fmt;

use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The author may want to know; everything is built.
    Warning,
    /// What was written cannot be built.
    Error,
}

/// A place in a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Location {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// How many characters from there on are meant; 0 when only the place is known.
    pub length: u32,
}

/// One finding about an authored file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// How much it matters.
    pub severity: Severity,
    /// The rule that was broken: `N2` of the navigation, `skill-name`, `link-dangling`.
    pub rule: &'static str,
    /// The file, relative to the root of the repository.
    pub file: Box<str>,
    /// Where in the file, when it is about a place in it.
    pub location: Option<Location>,
    /// What was found: a sentence without its full stop.
    pub message: String,
    /// What to do about it, when that is likely.
    pub help: Option<String>,
}

// === impl Diagnostic ===

impl Diagnostic {
    /// Makes an error about a file.
    #[must_use]
    pub fn error(rule: &'static str, file: &str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            rule,
            file: file.into(),
            location: None,
            message: message.into(),
            help: None,
        }
    }

    /// Makes a warning about a file.
    #[must_use]
    pub fn warning(rule: &'static str, file: &str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(rule, file, message)
        }
    }

    /// Adds where in the file it is.
    #[must_use]
    pub fn at(mut self, line: u32, column: u32, length: u32) -> Self {
        self.location = Some(Location {
            line,
            column,
            length,
        });
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Returns whether this finding ends a build.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// The one-line form: `file:line:column: severity[rule]: message (help)`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(Location { line, column, .. }) = self.location {
            write!(f, ":{line}:{column}")?;
        }
        let severity = if self.is_error() { "error" } else { "warning" };
        write!(f, ": {severity}[{}]: {}", self.rule, self.message)?;
        if let Some(help) = &self.help {
            write!(f, " ({help})")?;
        }
        Ok(())
    }
}

/// Returns the one of `words` that was probably meant by `typed`: at most a third of its
/// letters are wrong, missing, too many or swapped.
pub fn closest<'w>(typed: &str, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let allowed = (typed.chars().count() / 3).clamp(1, 3);
    words
        .into_iter()
        .map(|word| (distance(typed, word), word))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, word)| word)
}

/// Counts the fewest letters to insert, remove, replace or swap with their neighbour.
///
/// Sources: Damerau 1964; the "optimal string alignment" recurrence.
fn distance(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    let mut two_back: Vec<usize> = Vec::new();
    let mut back: Vec<usize> = (0..=other.len()).collect();
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let replaced = back[j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut best = replaced.min(back[j] + 1).min(row[j - 1] + 1);
            let crossed = i > 1 && j > 1 && one[i - 1] == other[j - 2];
            if crossed && one[i - 2] == other[j - 1] {
                best = best.min(two_back[j - 2] + 1);
            }
            row.push(best);
        }
        two_back = std::mem::replace(&mut back, row);
    }
    back[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised_and_another_word_is_not() {
        let words = ["domains", "domain", "owner", "origin"];
        assert_eq!(closest("domians", words), Some("domains"));
        assert_eq!(closest("origni", words), Some("origin"));
        assert_eq!(closest("domain", words), Some("domain"));
        assert_eq!(closest("repository", words), None);
        assert_eq!(closest("", words), None);
    }

    #[test]
    fn distances_count_single_edits() {
        for (one, other, edits) in [
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("kitten", "sitting", 3),
            ("\u{fc}ber", "uber", 1),
        ] {
            assert_eq!(distance(one, other), edits, "{one} {other}");
            assert_eq!(distance(other, one), edits, "{other} {one}");
        }
    }
}
