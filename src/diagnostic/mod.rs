//! Diagnostics: messages about mistakes in the files of authors.
//!
//! Code that reads these files does not stop at the first mistake. It returns the values that it
//! could read and a list of diagnostics. Each diagnostic names the file, the place, the rule, the
//! mistake and, if possible, a correction. An error stops a build, and the current release stays
//! published. A warning stops a build only if the caller requests it.
//!
//! Diagnostics are written for people ([`text`], in the form that rustc uses), for programs
//! ([`json`], one object), for code scanning ([`sarif`]) and as annotations of a pull request
//! ([`github`]). If there is only one correction, the diagnostic has an [`Edit`], which
//! `check --fix` makes.

mod closest;
pub mod github;
pub mod json;
pub mod rules;
pub mod sarif;
mod tally;
pub mod text;

use std::fmt;
use std::ops::Range;

use serde::Serialize;

pub use closest::closest;
pub use tally::{Tally, count, sort};

/// How severe a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The mistake does not stop a build.
    Warning,
    /// The mistake stops a build.
    Error,
}

/// A place in a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Location {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The number of characters; 0 if only the start is known.
    pub length: u32,
}

/// A message about a file that an author wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// The rule that was broken: `N2` of the navigation, `skill-name`, `link-dangling`.
    pub rule: &'static str,
    /// The file, relative to the root of the repository.
    pub file: Box<str>,
    /// The place in the file; `None` if the diagnostic is about the whole file.
    pub location: Option<Location>,
    /// The mistake: a sentence without full stop.
    pub message: String,
    /// A probable correction.
    pub help: Option<String>,
    /// The change to the file that corrects the mistake, if there is only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edit: Option<Box<Edit>>,
}

/// A change to a file: a range of bytes and its replacement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edit {
    /// The bytes that are replaced.
    pub range: Range<usize>,
    /// The new text.
    pub replacement: Box<str>,
}

// === impl Severity ===

impl Severity {
    /// Returns the level of a line of the process log.
    #[must_use]
    pub fn level(self) -> log::Level {
        match self {
            Self::Warning => log::Level::Warn,
            Self::Error => log::Level::Error,
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
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
            edit: None,
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

    /// Adds the place in the file.
    #[must_use]
    pub fn at(mut self, line: u32, column: u32, length: u32) -> Self {
        self.location = Some(Location {
            line,
            column,
            length,
        });
        self
    }

    /// Adds a correction in words.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the change to the file that corrects the mistake.
    #[must_use]
    pub fn edit(mut self, range: Range<usize>, replacement: impl Into<Box<str>>) -> Self {
        self.edit = Some(Box::new(Edit {
            range,
            replacement: replacement.into(),
        }));
        self
    }

    /// Returns whether this diagnostic stops a build.
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
        write!(f, ": {}[{}]: {}", self.severity, self.rule, self.message)?;
        if let Some(help) = &self.help {
            write!(f, " ({help})")?;
        }
        Ok(())
    }
}

// === impl Edit ===

/// Makes the edits of some diagnostics in the text of their file.
///
/// An edit that overlaps an earlier edit is not made; a second run makes it. Returns the new
/// text and the number of edits that were made.
///
/// ```
/// use waypost::diagnostic::{Edit, apply};
///
/// let comma = Edit { range: 2..3, replacement: "".into() };
/// assert_eq!(apply("[1,]", &[comma]), ("[1]".to_owned(), 1));
/// ```
#[must_use]
pub fn apply(text: &str, edits: &[Edit]) -> (String, usize) {
    let mut edits: Vec<_> = edits.iter().collect();
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let mut fixed = String::with_capacity(text.len());
    let (mut done, mut made) = (0, 0);
    for edit in edits {
        let Some(between) = text.get(done..edit.range.start) else {
            continue;
        };
        if text.get(edit.range.clone()).is_none() {
            continue;
        }
        fixed.push_str(between);
        fixed.push_str(&edit.replacement);
        done = edit.range.end;
        made += 1;
    }
    fixed.push_str(&text[done..]);
    (fixed, made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(range: Range<usize>, replacement: &str) -> Edit {
        Edit {
            range,
            replacement: replacement.into(),
        }
    }

    #[test]
    fn one_line_has_place_rule_and_help() {
        let found = Diagnostic::error("N2", "docs.json", "a tab has two kinds of children")
            .at(3, 7, 8)
            .help("keep one");
        assert_eq!(
            found.to_string(),
            "docs.json:3:7: error[N2]: a tab has two kinds of children (keep one)"
        );
    }

    #[test]
    fn edits_are_made_in_the_order_of_the_text() {
        let edits = [edit(4..5, "E"), edit(0..1, "A"), edit(2..2, "-")];
        assert_eq!(apply("abcde", &edits), ("Ab-cdE".to_owned(), 3));
    }

    #[test]
    fn an_edit_that_overlaps_or_lies_outside_is_left_out() {
        let edits = [edit(0..3, "x"), edit(2..4, "y"), edit(9..12, "z")];
        assert_eq!(apply("abcde", &edits), ("xde".to_owned(), 1));
    }
}
