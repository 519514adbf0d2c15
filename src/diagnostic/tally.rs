//! Counts errors and warnings.

use std::collections::HashSet;
use std::fmt;

use super::Diagnostic;

/// The numbers of errors and warnings in a list of diagnostics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of errors.
    pub errors: usize,
    /// The number of warnings.
    pub warnings: usize,
    /// The number of files with errors.
    pub files: usize,
}

/// Sorts diagnostics by file and place.
pub fn sort(found: &mut [Diagnostic]) {
    found.sort_by(|one, other| (&one.file, one.location).cmp(&(&other.file, other.location)));
}

/// Writes a number with its noun: `1 file`, `2 files`.
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

    /// Returns the message of every command if errors prevent publication; `None` without errors.
    #[must_use]
    pub fn error_summary(&self) -> Option<String> {
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
            (tally.error_summary(), tally.to_string()),
            (None, "0 errors, 1 warning".to_owned())
        );
        let tally = Tally::of(&[error("a"), warning, error("a"), error("b")]);
        assert_eq!(
            tally.error_summary().as_deref(),
            Some("cannot be published: 3 errors in 2 files")
        );
    }
}
