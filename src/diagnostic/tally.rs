//! How many errors and warnings there are, and what follows from it.

use std::collections::HashSet;
use std::fmt;

use super::Diagnostic;

/// The numbers of some diagnostics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many errors there are.
    pub errors: usize,
    /// How many warnings there are.
    pub warnings: usize,
    /// In how many files the errors are.
    pub files: usize,
}

/// Sorts diagnostics by file and place.
pub fn sort(found: &mut [Diagnostic]) {
    found.sort_by(|one, other| (&one.file, one.location).cmp(&(&other.file, other.location)));
}

/// Writes a number of things: `1 file`, `2 files`.
#[must_use]
pub fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

// === impl Tally ===

impl Tally {
    /// Counts diagnostics.
    #[must_use]
    pub fn of(found: &[Diagnostic]) -> Self {
        let errors = found.iter().filter(|found| found.is_error());
        let files: HashSet<&str> = errors.clone().map(|error| &*error.file).collect();
        let errors = errors.count();
        Self {
            errors,
            warnings: found.len() - errors,
            files: files.len(),
        }
    }

    /// Returns the sentence with which every command says that a documentation cannot be
    /// published; `None` when it can.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let Self { errors, files, .. } = *self;
        let errors = (errors > 0).then(|| count(errors, "error"))?;
        Some(format!(
            "cannot be published: {errors} in {}",
            count(files, "file")
        ))
    }
}

/// `1 error, 2 warnings`.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (errors, warnings) = (count(self.errors, "error"), count(self.warnings, "warning"));
        write!(f, "{errors}, {warnings}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_keep_a_documentation_from_being_published() {
        let error = |file| Diagnostic::error("r", file, "wrong");
        let warning = Diagnostic::warning("r", "c", "odd");
        let tally = Tally::of(std::slice::from_ref(&warning));
        assert_eq!(
            (tally.refusal(), tally.to_string()),
            (None, "0 errors, 1 warning".to_owned())
        );
        let tally = Tally::of(&[error("a"), warning, error("a"), error("b")]);
        assert_eq!(
            tally.refusal().as_deref(),
            Some("cannot be published: 3 errors in 2 files")
        );
    }
}
