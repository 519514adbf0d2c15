//! `$ref`: splits one configuration into several files.
//!
//! An object `{"$ref": "./navigation/en.json"}` is replaced by the content of that file. The
//! path is relative to the file that contains it and stays inside the documentation's root.
//! If the file holds an object, keys beside `$ref` override its keys.
//!
//! Values keep their span in their own file, so a diagnostic names the right place.
//!
//! **Limits.** A chain of references is at most [`CHAIN_MAX`] long, there are at most
//! [`REFERENCES_MAX`] references, and the expanded values count against [`VALUES_MAX`]. So files
//! that include each other many times give one diagnostic.

use std::collections::HashMap;
use std::sync::Arc;

use crate::source::{ReadError, Tree, TreePath};
use crate::syntax::{
    DEPTH_MAX, Data, Diagnostics, FILE_BYTES_MAX, FileId, LIMIT, Span, SpanDiagnostic, VALUES_MAX,
    Value, json,
};

/// How long a chain of files that refer to each other may be.
pub const CHAIN_MAX: usize = 16;
/// How many references one configuration may have.
pub const REFERENCES_MAX: usize = 1000;
/// The rule about references to missing files.
pub const REFERENCE: &str = "reference";
/// The rule about bytes that are not UTF-8.
pub const ENCODING: &str = "encoding";

/// Expands references.
struct Expansion<'t> {
    tree: &'t Tree,
    read: HashMap<TreePath, Option<Value>>,
    chain: Vec<TreePath>,
    references: usize,
    values: usize,
}

/// Reads a file and adds its text to the files of the diagnostics.
///
/// # Errors
///
/// [`OpenError`] when the file cannot be read or is not UTF-8.
pub fn open(
    tree: &Tree,
    path: &TreePath,
    diagnostics: &mut Diagnostics,
) -> Result<FileId, OpenError> {
    let bytes = tree
        .read_at_most(path, FILE_BYTES_MAX)
        .map_err(OpenError::Read)?;
    text(path.as_str(), &bytes, diagnostics)
}

/// Adds the bytes of a file, as text, to the files of the diagnostics.
///
/// # Errors
///
/// [`OpenError::Encoding`] when the bytes are not UTF-8.
pub fn text(name: &str, bytes: &[u8], diagnostics: &mut Diagnostics) -> Result<FileId, OpenError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(diagnostics.files.add(name, Arc::from(text))),
        Err(error) => {
            let before = &bytes[..error.valid_up_to()];
            let line = memchr::memchr_iter(b'\n', before).count() + 1;
            Err(OpenError::Encoding { line })
        }
    }
}

/// The reason why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It could not be read.
    #[error(transparent)]
    Read(ReadError),
    /// It is not UTF-8.
    #[error("the bytes in line {line} are not UTF-8")]
    Encoding {
        /// The line of the first invalid byte, from 1.
        line: usize,
    },
}

/// Replaces each reference in `value` by the content of its file.
#[must_use]
pub fn expand(tree: &Tree, path: &TreePath, value: Value, diagnostics: &mut Diagnostics) -> Value {
    let mut expansion = Expansion {
        tree,
        read: HashMap::new(),
        chain: vec![path.clone()],
        references: 0,
        values: value.count(),
    };
    expansion.value(value, 0, diagnostics)
}

// === impl Expansion ===

impl Expansion<'_> {
    fn value(&mut self, value: Value, depth: usize, diagnostics: &mut Diagnostics) -> Value {
        let span = value.span;
        if depth > DEPTH_MAX {
            let message = format!("this is nested more than {} levels deep", DEPTH_MAX);
            diagnostics.push(SpanDiagnostic::error(LIMIT, span, message));
            return Value {
                span,
                data: Data::Null,
            };
        }
        let data = match value.data {
            Data::List(items) => {
                let items = items.into_iter();
                Data::List(
                    items
                        .map(|item| self.value(item, depth + 1, diagnostics))
                        .collect(),
                )
            }
            Data::Map(mut members) => {
                let at = members.iter().position(|member| &*member.key == "$ref");
                let reference = at.map(|at| members.remove(at).value);
                for member in &mut members {
                    let placeholder = Value {
                        span,
                        data: Data::Null,
                    };
                    let value = std::mem::replace(&mut member.value, placeholder);
                    member.value = self.value(value, depth + 1, diagnostics);
                }
                let siblings = Value {
                    span,
                    data: Data::Map(members),
                };
                return match reference {
                    Some(reference) => self.merge(&reference, siblings, depth, diagnostics),
                    None => siblings,
                };
            }
            data => data,
        };
        Value { span, data }
    }

    /// Overrides the content of a reference by the keys beside it.
    fn merge(
        &mut self,
        reference: &Value,
        siblings: Value,
        depth: usize,
        diagnostics: &mut Diagnostics,
    ) -> Value {
        let Some(mut target) = self.follow(reference, depth, diagnostics) else {
            let span = siblings.span;
            return Value {
                span,
                data: Data::Unresolved,
            };
        };
        let overrides = match siblings.data {
            Data::Map(members) => members,
            _ => Vec::new(),
        };
        if overrides.is_empty() {
            return target;
        }
        let Data::Map(members) = &mut target.data else {
            let kind = target.kind();
            let message =
                format!("keys beside `$ref` override an object, but the file contains {kind}");
            diagnostics.push(SpanDiagnostic::error(REFERENCE, overrides[0].span, message));
            return target;
        };
        for over in overrides {
            match members.iter_mut().find(|member| member.key == over.key) {
                Some(member) => *member = over,
                None => members.push(over),
            }
        }
        target
    }

    fn follow(
        &mut self,
        reference: &Value,
        depth: usize,
        diagnostics: &mut Diagnostics,
    ) -> Option<Value> {
        let span = reference.span;
        let Some(text) = reference.text() else {
            let message = format!("`$ref` is the path of a file, not {}", reference.kind());
            diagnostics.push(SpanDiagnostic::error(REFERENCE, span, message));
            return None;
        };
        let path = match self.resolve(text) {
            Ok(path) => path,
            Err(message) => {
                diagnostics.push(SpanDiagnostic::error(REFERENCE, span, message));
                return None;
            }
        };
        if self.chain.contains(&path) {
            let message = format!("`{text}` is a cycle of references, back to {path}");
            diagnostics.push(SpanDiagnostic::error(REFERENCE, span, message));
            return None;
        }
        self.references += 1;
        if self.references > REFERENCES_MAX || self.chain.len() > CHAIN_MAX {
            if self.references <= REFERENCES_MAX + 1 {
                let message = format!(
                    "there are more than {REFERENCES_MAX} references, or {CHAIN_MAX} in a chain"
                );
                diagnostics.push(SpanDiagnostic::error(LIMIT, span, message));
            }
            return None;
        }
        let value = self.load(&path, text, span, diagnostics)?;
        self.values += value.count();
        if self.values > VALUES_MAX {
            let message = format!("references expand to more than {VALUES_MAX} values");
            diagnostics.push(SpanDiagnostic::error(LIMIT, span, message));
            self.references = REFERENCES_MAX + 1;
            return None;
        }
        self.chain.push(path);
        let expanded = self.value(value, depth + 1, diagnostics);
        self.chain.pop();
        Some(expanded)
    }

    /// Finds the file that a reference written in the file on top of the chain names.
    fn resolve(&self, text: &str) -> Result<TreePath, String> {
        if text.contains("://") {
            return Err(format!(
                "`{text}` is a URL; `$ref` names a file of this repository"
            ));
        }
        let containing = self
            .chain
            .last()
            .and_then(TreePath::parent)
            .unwrap_or_default();
        let outside = || format!("`{text}` leads out of the documentation's root");
        let path = relative(&containing, text).ok_or_else(outside)?;
        match path.strip_prefix(self.tree.docs_root()) {
            Some(_) => Ok(path),
            None => Err(outside()),
        }
    }

    fn load(
        &mut self,
        path: &TreePath,
        text: &str,
        span: Span,
        diagnostics: &mut Diagnostics,
    ) -> Option<Value> {
        if let Some(value) = self.read.get(path) {
            return value.clone();
        }
        let value = match open(self.tree, path, diagnostics) {
            Ok(file) => json::read(file, diagnostics),
            Err(error) => {
                let rule = match error {
                    OpenError::Encoding { .. } => ENCODING,
                    OpenError::Read(_) => REFERENCE,
                };
                diagnostics.push(SpanDiagnostic::error(
                    rule,
                    span,
                    format!("`{text}` cannot be read: {error}"),
                ));
                None
            }
        };
        self.read.insert(path.clone(), value.clone());
        value
    }
}

/// Resolves a path with `.` and `..` segments against a directory; `None` if it leads out of
/// the repository or is not a valid path.
#[must_use]
pub fn relative(directory: &TreePath, text: &str) -> Option<TreePath> {
    let mut segments: Vec<&str> = directory.segments().collect();
    if text.starts_with('/') {
        return None;
    }
    for segment in text.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop()?;
            }
            _ => segments.push(segment),
        }
    }
    TreePath::parse(&segments.join("/")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Diagnostic;

    fn expanded(files: &[(&str, &str)]) -> (Value, Vec<Diagnostic>) {
        let path = |text: &str| TreePath::parse(text).unwrap();
        let files: Vec<_> = files
            .iter()
            .map(|(name, text)| (path(name), bytes::Bytes::from((*text).to_owned())))
            .collect();
        let root = files[0].0.clone();
        let tree = Tree::from_files(files, []);
        let tree = tree.with_docs_root(path("docs"));
        let mut diagnostics = Diagnostics::default();
        let file = open(&tree, &root, &mut diagnostics).unwrap();
        let value = json::read(file, &mut diagnostics).unwrap();
        let value = expand(&tree, &root, value, &mut diagnostics);
        (value, diagnostics.finish())
    }

    #[test]
    fn paths_are_relative_to_their_file() {
        let (value, found) = expanded(&[
            (
                "docs/docs.json",
                r#"{"navigation": {"$ref": "./nav/all.json"}}"#,
            ),
            ("docs/nav/all.json", r#"{"tabs": {"$ref": "tabs.json"}}"#),
            ("docs/nav/tabs.json", "[1]"),
        ]);
        assert_eq!(found, []);
        let tabs = value.get("navigation").unwrap().get("tabs").unwrap();
        assert_eq!(tabs.items().len(), 1);
    }

    #[test]
    fn siblings_override_the_keys_of_the_file() {
        let (value, found) = expanded(&[
            (
                "docs/docs.json",
                r#"{"$ref": "a.json", "name": "mine", "more": 1}"#,
            ),
            ("docs/a.json", r#"{"name": "theirs", "theme": "mint"}"#),
        ]);
        assert_eq!(found, []);
        assert_eq!(value.get("name").unwrap().text(), Some("mine"));
        assert_eq!(value.get("theme").unwrap().text(), Some("mint"));
        assert!(value.get("more").is_some());
    }

    #[test]
    fn cycles_and_paths_out_of_the_root_are_errors_at_their_place() {
        for (reference, message) in [
            ("docs.json", "is a cycle of references"),
            ("../secret.json", "leads out of the documentation's root"),
            ("/etc/passwd", "leads out of the documentation's root"),
            ("https://example.com/a.json", "is a URL"),
            (
                "absent.json",
                "cannot be read: there is no docs/absent.json",
            ),
        ] {
            let text = format!(r#"{{"a": {{"$ref": "{reference}"}}}}"#);
            let (_, found) = expanded(&[("docs/docs.json", &text), ("secret.json", "1")]);
            assert_eq!(found.len(), 1, "{reference}: {found:?}");
            assert!(found[0].message.contains(message), "{}", found[0].message);
            assert_eq!(found[0].location.unwrap().column, 16);
        }
    }

    #[test]
    fn a_mistake_in_a_file_is_reported_in_that_file() {
        let (_, found) = expanded(&[
            ("docs/docs.json", r#"{"a": {"$ref": "b.json"}}"#),
            ("docs/b.json", "[1,]"),
        ]);
        assert_eq!(&*found[0].file, "docs/b.json");
    }

    #[test]
    fn a_bomb_of_references_ends_within_the_limits() {
        let names = [
            "docs.json",
            "b.json",
            "c.json",
            "d.json",
            "e.json",
            "f.json",
        ];
        let text = |n: usize| {
            let next = names
                .get(n + 1)
                .map_or("1".to_owned(), |next| format!(r#"{{"$ref": "{next}"}}"#));
            format!("[{}]", vec![next; 10].join(","))
        };
        let texts: Vec<_> = (0..names.len()).map(text).collect();
        let paths: Vec<_> = names.iter().map(|name| format!("docs/{name}")).collect();
        let files: Vec<_> = paths
            .iter()
            .zip(&texts)
            .map(|(p, t)| (p.as_str(), t.as_str()))
            .collect();
        let (_, found) = expanded(&files);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].rule, LIMIT);
    }
}
