//! Our own YAML files: configuration and site records.
//!
//! An operator who misspells a key must get an error with its place, together with all other
//! errors of the file; the setting must not stay at its default unnoticed. So code reads a
//! [`Mapping`] by naming every key that it knows, and [`Mapping::finish`] reports all other
//! keys. A [`Report`] collects the diagnostics about one text.
//!
//! A key without a value (`domains:`) counts as absent: the file looks like this when all values
//! below the key are commented out. Duplicate keys are errors.

mod scalar;

use std::cell::{OnceCell, RefCell};

use crate::diagnostic::{Diagnostic, Location, Severity, closest};

use super::yaml::{self, Limits};
use super::{Data, FileId, LineIndex, Span, Value};

pub use scalar::{boolean, number, one_of, parsed, seconds, text};

/// Our files have four levels and a few hundred values.
const LIMITS: Limits = Limits {
    depth: 32,
    values: 1_000_000,
    text_bytes: 16 << 20,
    documents: usize::MAX,
    indentations: 0,
};

/// The diagnostics about one text.
#[derive(Debug)]
pub struct Report<'t> {
    rule: &'static str,
    file: &'t str,
    text: &'t str,
    /// How many lines of the file come before the text.
    lines_before: u32,
    lines: OnceCell<LineIndex>,
    diagnostics: RefCell<Vec<Diagnostic>>,
}

/// A mapping that is being read, key by key.
#[derive(Debug)]
pub struct Mapping<'v, 't> {
    /// The keys that lead here: `connections.`, or empty at the top.
    prefix: String,
    value: &'v Value,
    report: &'v Report<'t>,
    known: Vec<&'static str>,
}

/// The text after "expected" in a message.
pub type Expected = String;

// === impl Report ===

impl<'t> Report<'t> {
    /// Makes an empty list of diagnostics about the text of a file; all have the same rule.
    #[must_use]
    pub fn new(rule: &'static str, file: &'t str, text: &'t str) -> Self {
        Self::after_lines(rule, file, text, 0)
    }

    /// Makes an empty list for a part of the file that starts after `lines_before` lines.
    #[must_use]
    pub fn after_lines(
        rule: &'static str,
        file: &'t str,
        text: &'t str,
        lines_before: u32,
    ) -> Self {
        Self {
            rule,
            file,
            text,
            lines_before,
            lines: OnceCell::new(),
            diagnostics: RefCell::default(),
        }
    }

    /// Reads the documents of the text; `None` after an error.
    pub fn documents(&self) -> Option<Vec<Value>> {
        let stream = yaml::parse(self.text, 0..self.text.len(), FileId::default(), &LIMITS);
        for duplicate in &stream.duplicates {
            let message = format!("the key `{}` is repeated", duplicate.key);
            self.add(self.at(duplicate.span, message));
        }
        if let Some(problem) = &stream.problem {
            self.add(self.at(problem.span, problem.message.clone()));
        }
        let is_readable = stream.duplicates.is_empty() && stream.problem.is_none();
        is_readable.then_some(stream.documents)
    }

    /// Adds an error about a value.
    pub fn error(&self, value: &Value, message: impl Into<String>) {
        self.add(self.at(value.span, message));
    }

    /// Adds a warning about a value.
    pub fn warning(&self, value: &Value, message: impl Into<String>) {
        self.add(Diagnostic {
            severity: Severity::Warning,
            ..self.at(value.span, message)
        });
    }

    /// Makes an error about a span without adding it.
    fn at(&self, span: Span, message: impl Into<String>) -> Diagnostic {
        let Location {
            line,
            column,
            length,
        } = self.locate(span);
        Diagnostic::error(self.rule, self.file, message).at(line, column, length)
    }

    /// Returns the line and column of a value in the file.
    #[must_use]
    pub fn place(&self, value: &Value) -> (u32, u32) {
        let location = self.locate(value.span);
        (location.line, location.column)
    }

    fn locate(&self, span: Span) -> Location {
        let lines = self.lines.get_or_init(|| LineIndex::new(self.text));
        let location = lines.locate(self.text, span.range());
        Location {
            line: location.line + self.lines_before,
            ..location
        }
    }

    /// Returns the name of the file.
    #[must_use]
    pub fn file(&self) -> &'t str {
        self.file
    }

    /// Adds a diagnostic. Its line counts from the start of the file.
    pub fn add(&self, diagnostic: Diagnostic) {
        self.diagnostics.borrow_mut().push(diagnostic);
    }

    /// Returns whether an error was added.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.diagnostics.borrow().iter().any(Diagnostic::is_error)
    }

    /// Returns all diagnostics in the order of the file.
    #[must_use]
    pub fn into_vec(self) -> Vec<Diagnostic> {
        let mut diagnostics = self.diagnostics.into_inner();
        diagnostics.sort_by_key(|diagnostic| diagnostic.location.map(|at| (at.line, at.column)));
        diagnostics
    }
}

// === impl Mapping ===

impl<'v, 't> Mapping<'v, 't> {
    /// Begins to read a mapping; any other value is an error.
    #[must_use]
    pub fn of(value: &'v Value, report: &'v Report<'t>) -> Option<Self> {
        Self::at(String::new(), value, report)
    }

    fn at(prefix: String, value: &'v Value, report: &'v Report<'t>) -> Option<Self> {
        if !value.is_map() {
            let name = prefix.strip_suffix('.').unwrap_or("the document");
            report.error(value, expected(name, "a mapping", value));
            return None;
        }
        Some(Self {
            prefix,
            value,
            report,
            known: Vec::new(),
        })
    }

    /// Returns the mapping itself.
    #[must_use]
    pub fn value(&self) -> &'v Value {
        self.value
    }

    /// Returns line and column of the value of a key, or of the mapping if the key is absent.
    #[must_use]
    pub fn place_of(&self, key: &str) -> (u32, u32) {
        self.report.place(self.value.get(key).unwrap_or(self.value))
    }

    /// Returns the value of a key; `None` if the key is absent or has no value.
    pub fn take(&mut self, key: &'static str) -> Option<&'v Value> {
        self.known.push(key);
        self.value.get(key).filter(|value| !value.is_null())
    }

    /// Reads the value of a key into a place. A value that does not fit is an error and leaves
    /// the place as it was.
    pub fn set<T>(
        &mut self,
        key: &'static str,
        place: &mut T,
        read: impl FnOnce(&Value) -> Result<T, Expected>,
    ) {
        if let Some(value) = self.get(key, read) {
            *place = value;
        }
    }

    /// Reads the value of a key; `None` if it is absent or does not fit.
    pub fn get<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Value) -> Result<T, Expected>,
    ) -> Option<T> {
        let value = self.take(key)?;
        match read(value) {
            Ok(value) => Some(value),
            Err(what) => {
                let name = format!("{}{key}", self.prefix);
                self.report.error(value, expected(&name, &what, value));
                None
            }
        }
    }

    /// Reads the value of a required key; its absence is an error.
    pub fn require<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Value) -> Result<T, Expected>,
    ) -> Option<T> {
        let before = self.report.diagnostics.borrow().len();
        let value = self.get(key, read);
        if value.is_none() && self.report.diagnostics.borrow().len() == before {
            let message = format!("`{}{key}` is missing", self.prefix);
            self.report.error(self.value, message);
        }
        value
    }

    /// Reads the values of a list one by one: a value that does not fit does not affect the others.
    pub fn list<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&Value) -> Result<T, Expected>,
    ) -> Option<Vec<T>> {
        let value = self.take(key)?;
        let name = format!("{}{key}", self.prefix);
        let Some(items) = value.list() else {
            self.report.error(value, expected(&name, "a list", value));
            return None;
        };
        let one = |item: &Value| {
            let wrong = |what: Expected| self.report.error(item, expected(&name, &what, item));
            read(item).map_err(wrong).ok()
        };
        Some(items.iter().filter_map(one).collect())
    }

    /// Begins to read the mapping under a key.
    pub fn section(&mut self, key: &'static str) -> Option<Mapping<'v, 't>> {
        let value = self.take(key)?;
        Mapping::at(format!("{}{key}.", self.prefix), value, self.report)
    }

    /// Reports an error for every key that was not read.
    pub fn finish(self) {
        for member in self.value.members() {
            let name = &*member.key;
            if self.known.contains(&name) {
                continue;
            }
            let message = format!("`{}{name}` is not a known key", self.prefix);
            let diagnostic = self.report.at(member.span, message);
            let likely = closest(name, self.known.iter().copied());
            self.report.add(match likely {
                Some(likely) => diagnostic.help(format!("did you mean `{likely}`?")),
                None => diagnostic.help(format!("known keys: {}", self.known.join(", "))),
            });
        }
    }
}

fn expected(name: &str, what: &str, value: &Value) -> String {
    let found = match &value.data {
        Data::Text(text) => format!("{:?}", shortened(text)),
        Data::Number(number) => number.to_string(),
        Data::Flag(flag) => flag.to_string(),
        _ => value.yaml_kind().to_owned(),
    };
    format!("`{name}` is {found}, expected {what}")
}

fn shortened(text: &str) -> &str {
    let end = text.char_indices().nth(60).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

#[cfg(test)]
mod tests;
