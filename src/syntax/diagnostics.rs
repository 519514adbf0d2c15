//! The diagnostics about the files that were read.

use crate::diagnostic::{Diagnostic, Severity};

use super::{Files, Span};

/// A diagnostic about a span, whose file, line and column are not looked up yet.
#[derive(Clone, Debug)]
pub struct SpanDiagnostic {
    span: Span,
    diagnostic: Diagnostic,
}

/// Collects the diagnostics about some files.
#[derive(Debug, Default)]
pub struct Diagnostics {
    /// The files.
    pub files: Files,
    list: Vec<Diagnostic>,
}

// === impl SpanDiagnostic ===

impl SpanDiagnostic {
    /// Makes an error about a span.
    #[must_use]
    pub fn error(rule: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self {
            span,
            diagnostic: Diagnostic::error(rule, "", message),
        }
    }

    /// Makes a warning about a span.
    #[must_use]
    pub fn warning(rule: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self {
            span,
            diagnostic: Diagnostic::warning(rule, "", message),
        }
    }

    /// Adds a correction in words.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.diagnostic = self.diagnostic.help(help);
        self
    }

    /// Adds a correction in words, if there is one.
    #[must_use]
    pub fn help_if(self, help: Option<impl Into<String>>) -> Self {
        match help {
            Some(help) => self.help(help),
            None => self,
        }
    }

    /// Adds the change that `check --fix` makes.
    #[must_use]
    pub fn edit(mut self, span: Span, replacement: impl Into<Box<str>>) -> Self {
        self.diagnostic = self.diagnostic.edit(span.range(), replacement);
        self
    }
}

// === impl Diagnostics ===

impl Diagnostics {
    /// Adds a diagnostic about a span.
    pub fn push(&mut self, diagnostic: SpanDiagnostic) {
        let SpanDiagnostic {
            span,
            mut diagnostic,
        } = diagnostic;
        diagnostic.file = self.files.path(span.file).into();
        diagnostic.location = Some(self.files.locate(span));
        self.list.push(diagnostic);
    }

    /// Adds a diagnostic that already names its file.
    pub fn add(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// Adds several diagnostics that already name their files.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.list.extend(diagnostics);
    }

    /// Returns the number of diagnostics.
    #[must_use]
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Turns the errors after the first `from` diagnostics into warnings.
    pub fn errors_to_warnings(&mut self, from: usize) {
        for diagnostic in self.list.iter_mut().skip(from) {
            diagnostic.severity = Severity::Warning;
        }
    }

    /// Returns whether there is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(Diagnostic::is_error)
    }

    /// Returns the diagnostics by file and place, without repetitions.
    #[must_use]
    pub fn finish(self) -> Vec<Diagnostic> {
        let mut list = self.list;
        list.sort_by(|a, b| {
            let key = |d: &Diagnostic| (d.location, std::cmp::Reverse(d.severity), d.rule);
            (&a.file, key(a), &a.message).cmp(&(&b.file, key(b), &b.message))
        });
        list.dedup();
        list
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn diagnostics_are_sorted_by_place() {
        let mut diagnostics = Diagnostics::default();
        let file = diagnostics.files.add("f", Arc::from("a\nb"));
        let at = |start| Span {
            file,
            start,
            end: start + 1,
        };
        diagnostics.push(SpanDiagnostic::warning("r", at(2), "second"));
        diagnostics.push(SpanDiagnostic::error("r", at(0), "first"));
        let messages: Vec<_> = diagnostics
            .finish()
            .into_iter()
            .map(|d| d.message)
            .collect();
        assert_eq!(messages, ["first", "second"]);
    }
}
