//! The files read so far, and what was found in them.

use std::sync::{Arc, OnceLock};

use crate::diagnostic::{Diagnostic, Location};

use super::Span;

/// Which of the files read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(u16);

/// The files whose values are at hand.
#[derive(Debug, Default)]
pub struct Files {
    files: Vec<File>,
}

#[derive(Debug)]
struct File {
    path: Box<str>,
    text: Arc<str>,
    /// Where each line starts, once somebody asked.
    lines: OnceLock<Vec<usize>>,
}

/// Something found about a span.
#[derive(Clone, Debug)]
pub struct Finding {
    span: Span,
    diagnostic: Diagnostic,
}

/// What was found in the files read.
#[derive(Debug, Default)]
pub struct Findings {
    /// The files.
    pub files: Files,
    found: Vec<Diagnostic>,
}

// === impl Files ===

impl Files {
    /// Adds a file.
    ///
    /// # Panics
    ///
    /// After 65,535 files; readers bound how many they open.
    pub fn add(&mut self, path: &str, text: Arc<str>) -> FileId {
        let id = u16::try_from(self.files.len()).expect("readers bound how many files they open");
        self.files.push(File {
            path: path.into(),
            text,
            lines: OnceLock::new(),
        });
        FileId(id)
    }

    /// Returns the path of a file, from the root of the repository.
    #[must_use]
    pub fn path(&self, file: FileId) -> &str {
        &self.files[usize::from(file.0)].path
    }

    /// Returns the text of a file.
    #[must_use]
    pub fn text(&self, file: FileId) -> &Arc<str> {
        &self.files[usize::from(file.0)].text
    }

    /// Returns the bytes of a span as they are written.
    #[must_use]
    pub fn source(&self, span: Span) -> &str {
        self.text(span.file).get(span.range()).unwrap_or_default()
    }

    /// Returns line, column and length of a span; of one over several lines, its first.
    #[must_use]
    pub fn locate(&self, span: Span) -> Location {
        let file = &self.files[usize::from(span.file.0)];
        let lines = file.lines.get_or_init(|| {
            let breaks = memchr::memchr_iter(b'\n', file.text.as_bytes());
            std::iter::once(0).chain(breaks.map(|at| at + 1)).collect()
        });
        let start = span.start as usize;
        let line = lines.partition_point(|&at| at <= start) - 1;
        let characters = |from: usize, to: usize| {
            let text = file.text.get(from..to).unwrap_or_default();
            narrow(text.lines().next().unwrap_or_default().chars().count())
        };
        Location {
            line: narrow(line + 1),
            column: characters(lines[line], start) + 1,
            length: characters(start, span.end as usize),
        }
    }
}

/// Counts of lines and characters fit: no file is longer than `FILE_BYTES_MAX`.
fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

// === impl Finding ===

impl Finding {
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

    /// Adds what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.diagnostic = self.diagnostic.help(help);
        self
    }

    /// Adds what to do about it, if there is something.
    #[must_use]
    pub fn help_if(self, help: Option<impl Into<String>>) -> Self {
        match help {
            Some(help) => self.help(help),
            None => self,
        }
    }

    /// Adds the change that mends it.
    #[must_use]
    pub fn edit(mut self, span: Span, replacement: impl Into<Box<str>>) -> Self {
        self.diagnostic = self.diagnostic.edit(span.range(), replacement);
        self
    }
}

// === impl Findings ===

impl Findings {
    /// Adds something found about a span.
    pub fn push(&mut self, finding: Finding) {
        let Finding {
            span,
            mut diagnostic,
        } = finding;
        diagnostic.file = self.files.path(span.file).into();
        diagnostic.location = Some(self.files.locate(span));
        self.found.push(diagnostic);
    }

    /// Adds something found otherwise.
    pub fn add(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    /// Adds several.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.found.extend(diagnostics);
    }

    /// Returns whether an error is among what was found.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.found.iter().any(Diagnostic::is_error)
    }

    /// Returns what was found, by file and place, each finding once.
    #[must_use]
    pub fn finish(self) -> Vec<Diagnostic> {
        let mut found = self.found;
        found.sort_by(|a, b| {
            let key = |d: &Diagnostic| (d.location, std::cmp::Reverse(d.severity), d.rule);
            (&a.file, key(a), &a.message).cmp(&(&b.file, key(b), &b.message))
        });
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_characters_and_end_with_their_line() {
        let mut files = Files::default();
        let file = files.add("f", Arc::from("ab\nçd {\n}"));
        let span = Span {
            file,
            start: 7,
            end: 10,
        };
        assert_eq!(
            files.locate(span),
            Location {
                line: 2,
                column: 4,
                length: 1
            }
        );
    }

    #[test]
    fn what_is_found_is_ordered_by_place() {
        let mut findings = Findings::default();
        let file = findings.files.add("f", Arc::from("a\nb"));
        let at = |start| Span {
            file,
            start,
            end: start + 1,
        };
        findings.push(Finding::warning("r", at(2), "second"));
        findings.push(Finding::error("r", at(0), "first"));
        let messages: Vec<_> = findings.finish().into_iter().map(|d| d.message).collect();
        assert_eq!(messages, ["first", "second"]);
    }
}
