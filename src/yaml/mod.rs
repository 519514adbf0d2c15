//! Reading our own YAML files: configuration and site records.
//!
//! An operator who mistypes a key must learn of it, of the place and of every other
//! mistake at once, and never find a misspelt setting quietly at its default. So a
//! reader goes through a [`Mapping`] by naming every key it knows; what it did not name
//! is an error when it finishes. All findings of a file gather in one [`Findings`].
//!
//! A key without a value (`domains:`) is a key that is not there: that is what remains
//! when all values below it are commented out. Duplicate keys are errors. Aliases are
//! expanded up to a limit.
//!
//! Sources: YAML 1.2.2, §9.1.2 (document markers), §10.2 (the JSON schema of scalars).

mod value;

use std::cell::RefCell;

use saphyr::{LoadableYamlNode as _, MarkedYaml, Scalar, YamlData};

use crate::diagnostic::{Diagnostic, Severity, closest};

pub use value::{boolean, number, one_of, parsed, seconds, text};

/// A value in a file, with its place.
pub type Node<'t> = MarkedYaml<'t>;

/// How many levels values may be nested; ours have four.
const DEPTH_MAX: usize = 32;

/// What is wrong with one file, gathered while it is read.
#[derive(Debug)]
pub struct Findings<'f> {
    rule: &'static str,
    file: &'f str,
    /// How many lines of the file come before the text that is being read.
    lines_before: u32,
    found: RefCell<Vec<Diagnostic>>,
}

/// A mapping that is being read, key by key.
#[derive(Debug)]
pub struct Mapping<'n, 't, 'f> {
    /// The keys that lead here: `connections.`, or empty at the top.
    place: String,
    node: &'n Node<'t>,
    findings: &'n Findings<'f>,
    known: Vec<&'static str>,
}

/// What a value should have been: the end of "expected …".
pub type Expected = String;

// === impl Findings ===

impl<'f> Findings<'f> {
    /// Starts with no findings about `file`, under one rule name.
    #[must_use]
    pub fn new(rule: &'static str, file: &'f str) -> Self {
        Self::after_lines(rule, file, 0)
    }

    /// The same for a part of the file, which begins after so many lines.
    #[must_use]
    pub fn after_lines(rule: &'static str, file: &'f str, lines_before: u32) -> Self {
        Self {
            rule,
            file,
            lines_before,
            found: RefCell::default(),
        }
    }

    /// Reads the documents of a text; a text that is not YAML is a finding.
    pub fn documents<'t>(&self, text: &'t str) -> Option<Vec<Node<'t>>> {
        if let Some((line, column)) = too_deep(text) {
            let message = format!("more than {DEPTH_MAX} brackets are open");
            self.add(Diagnostic::error(self.rule, self.file, message).at(line, column, 1));
            return None;
        }
        match Node::load_from_str(text) {
            Ok(documents) => Some(documents),
            Err(error) => {
                let (line, column) = place_of(error.marker());
                self.add(Diagnostic::error(self.rule, self.file, error.info()).at(line, column, 0));
                None
            }
        }
    }

    /// Adds an error about a value.
    pub fn error(&self, node: &Node<'_>, message: impl Into<String>) {
        self.add(self.about(node, message));
    }

    /// Adds a warning about a value.
    pub fn warning(&self, node: &Node<'_>, message: impl Into<String>) {
        self.add(Diagnostic {
            severity: Severity::Warning,
            ..self.about(node, message)
        });
    }

    /// Makes an error about a value without adding it.
    pub fn about(&self, node: &Node<'_>, message: impl Into<String>) -> Diagnostic {
        let (line, column) = place_of(&node.span.start);
        let one_line = node.span.start.line() == node.span.end.line();
        let length = if one_line { node.span.len() } else { 0 };
        let length = u32::try_from(length).unwrap_or(0);
        Diagnostic::error(self.rule, self.file, message).at(line, column, length)
    }

    /// Returns where a value stands in the file: line and column.
    #[must_use]
    pub fn place(&self, node: &Node<'_>) -> (u32, u32) {
        let (line, column) = place_of(&node.span.start);
        (line + self.lines_before, column)
    }

    /// Returns the name of the file.
    #[must_use]
    pub fn file(&self) -> &'f str {
        self.file
    }

    /// Adds a finding whose line counts from the start of the file, as [`Findings::place`]
    /// tells it.
    pub fn add_at_file(&self, finding: Diagnostic) {
        self.found.borrow_mut().push(finding);
    }

    /// Adds a finding whose line counts from the text that is being read.
    pub fn add(&self, mut finding: Diagnostic) {
        if let Some(location) = &mut finding.location {
            location.line += self.lines_before;
        }
        self.found.borrow_mut().push(finding);
    }

    /// Returns whether an error was found so far.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.found.borrow().iter().any(Diagnostic::is_error)
    }

    /// Returns everything that was found, in the order of the file.
    #[must_use]
    pub fn into_vec(self) -> Vec<Diagnostic> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|finding| finding.location.map(|at| (at.line, at.column)));
        found
    }
}

// === impl Mapping ===

impl<'n, 't, 'f> Mapping<'n, 't, 'f> {
    /// Begins to read a mapping; anything else is a finding.
    #[must_use]
    pub fn of(node: &'n Node<'t>, findings: &'n Findings<'f>) -> Option<Self> {
        Self::at(String::new(), node, findings)
    }

    fn at(place: String, node: &'n Node<'t>, findings: &'n Findings<'f>) -> Option<Self> {
        if !node.data.is_mapping() {
            let name = place.strip_suffix('.').unwrap_or("the document");
            findings.error(node, expected(name, "a mapping", node));
            return None;
        }
        Some(Self {
            place,
            node,
            findings,
            known: Vec::new(),
        })
    }

    /// Returns the mapping itself.
    #[must_use]
    pub fn node(&self) -> &'n Node<'t> {
        self.node
    }

    /// Returns where in the file the value of a key stands, or the mapping without it.
    #[must_use]
    pub fn place_of(&self, key: &str) -> (u32, u32) {
        let value = self.node.data.as_mapping_get(key);
        self.findings.place(value.unwrap_or(self.node))
    }

    /// Returns the value of a key, unless it is missing or has none.
    pub fn take(&mut self, key: &'static str) -> Option<&'n Node<'t>> {
        self.known.push(key);
        let mapping = self.node.data.as_mapping()?;
        let (_, value) = mapping
            .iter()
            .find(|(name, _)| name.data.as_str() == Some(key))?;
        (!value.data.is_null()).then_some(value)
    }

    /// Reads the value of a key into its place. A value that does not fit is a finding and
    /// leaves the place as it was.
    pub fn set<T>(
        &mut self,
        key: &'static str,
        place: &mut T,
        read: impl FnOnce(&Node<'t>) -> Result<T, Expected>,
    ) {
        if let Some(value) = self.get(key, read) {
            *place = value;
        }
    }

    /// Reads the value of a key; `None` when it is not there or does not fit.
    pub fn get<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Node<'t>) -> Result<T, Expected>,
    ) -> Option<T> {
        let node = self.take(key)?;
        match read(node) {
            Ok(value) => Some(value),
            Err(wanted) => {
                let name = format!("{}{key}", self.place);
                self.findings.error(node, expected(&name, &wanted, node));
                None
            }
        }
    }

    /// Reads the value of a key that must be there.
    pub fn require<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Node<'t>) -> Result<T, Expected>,
    ) -> Option<T> {
        let before = self.findings.found.borrow().len();
        let value = self.get(key, read);
        if value.is_none() && self.findings.found.borrow().len() == before {
            let message = format!("`{}{key}` is missing", self.place);
            self.findings.error(self.node, message);
        }
        value
    }

    /// Reads every value of a list on its own: one that does not fit leaves the others.
    pub fn list<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&Node<'t>) -> Result<T, Expected>,
    ) -> Option<Vec<T>> {
        let node = self.take(key)?;
        let name = format!("{}{key}", self.place);
        let Some(nodes) = node.data.as_sequence() else {
            self.findings.error(node, expected(&name, "a list", node));
            return None;
        };
        let one = |node: &Node<'t>| {
            let wrong =
                |wanted: Expected| self.findings.error(node, expected(&name, &wanted, node));
            read(node).map_err(wrong).ok()
        };
        Some(nodes.iter().filter_map(one).collect())
    }

    /// Begins to read the mapping under a key.
    pub fn section(&mut self, key: &'static str) -> Option<Mapping<'n, 't, 'f>> {
        let node = self.take(key)?;
        Mapping::at(format!("{}{key}.", self.place), node, self.findings)
    }

    /// Ends: every key that nobody asked for is a finding.
    pub fn finish(self) {
        for (key, _) in self.node.data.as_mapping().into_iter().flatten() {
            let Some(name) = key.data.as_str() else {
                self.findings.error(key, "a key must be text");
                continue;
            };
            if self.known.contains(&name) {
                continue;
            }
            let message = format!("`{}{name}` is not a key we know", self.place);
            let finding = self.findings.about(key, message);
            let likely = closest(name, self.known.iter().copied());
            self.findings.add(match likely {
                Some(likely) => finding.help(format!("did you mean `{likely}`?")),
                None => finding.help(format!("known are {}", self.known.join(", "))),
            });
        }
    }
}

fn expected(name: &str, wanted: &str, node: &Node<'_>) -> String {
    let found = match &node.data {
        YamlData::Value(Scalar::String(text)) => format!("{:?}", shortened(text)),
        YamlData::Value(Scalar::Integer(number)) => number.to_string(),
        YamlData::Value(Scalar::Boolean(truth)) => truth.to_string(),
        YamlData::Value(Scalar::FloatingPoint(number)) => number.to_string(),
        YamlData::Value(Scalar::Null) => "nothing".into(),
        YamlData::Sequence(_) => "a list".into(),
        YamlData::Mapping(_) => "a mapping".into(),
        _ => "something else".into(),
    };
    format!("`{name}` is {found}, expected {wanted}")
}

fn shortened(text: &str) -> &str {
    let end = text.char_indices().nth(60).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// Returns line and column in the text that was read, both from 1.
fn place_of(marker: &saphyr::Marker) -> (u32, u32) {
    let line = u32::try_from(marker.line()).unwrap_or(u32::MAX);
    let column = u32::try_from(marker.col() + 1).unwrap_or(u32::MAX);
    (line, column)
}

/// Finds the bracket that opens one level too many. Ours is a generous count (brackets in
/// text count too), for it only has to keep a reader that recurses from running out of
/// stack.
fn too_deep(text: &str) -> Option<(u32, u32)> {
    let mut depth = 0_usize;
    for (line, content) in (1..).zip(text.lines()) {
        let indentation = content.len() - content.trim_start_matches([' ', '-', '?']).len();
        let mut place = None;
        if indentation > 8 * DEPTH_MAX {
            place = Some(indentation);
        }
        for (column, c) in content.char_indices() {
            match c {
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > DEPTH_MAX {
                place = Some(column);
                break;
            }
        }
        if let Some(column) = place {
            return Some((line, u32::try_from(column + 1).unwrap_or(u32::MAX)));
        }
    }
    None
}

#[cfg(test)]
mod tests;
