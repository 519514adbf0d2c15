//! Finds the `import` and `export` statements of a page, and reads their names.
//!
//! In the text they are replaced by spaces, so the other bytes stay at their offsets.
//!
//! **Invariant:** time is linear in the text. Failed look-aheads are subtracted from the budget
//! that the scanner uses too ([`LOOKAHEAD_BYTES_MAX`](super::LOOKAHEAD_BYTES_MAX)).
//!
//! Sources: MDX 3, "ESM"; ECMA-262 §16.2.

use std::borrow::Cow;
use std::ops::Range;

use oxc_ast::ast::{
    BindingPattern, Declaration, ExportDefaultDeclarationKind, ImportDeclarationSpecifier,
    Statement as Parsed,
};

use super::scan::{Exhausted, Lookahead, balanced, element_end, fence, string_end};
use super::span::Span;

/// An import or an export of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its kind.
    pub kind: StatementKind,
    /// Its source.
    pub source: Box<str>,
    /// Its place.
    pub span: Span,
}

/// The kind of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// `import … from "path"`.
    Import {
        /// The path.
        from: Box<str>,
        /// The names.
        names: Vec<Binding>,
    },
    /// `export …`.
    Export {
        /// The path, if the names come from another file.
        from: Option<Box<str>>,
        /// The names; none for types.
        names: Vec<Binding>,
    },
    /// It cannot be parsed.
    Broken,
}

/// A name that is imported or exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The name that other files use: `default` for the default export, `*` for all.
    pub name: Box<str>,
    /// The name that this file uses; for an export without one, the same as `name`.
    pub local: Box<str>,
}

// === impl Binding ===

impl Binding {
    pub(super) fn new(name: &str, local: &str) -> Self {
        Self {
            name: name.into(),
            local: local.into(),
        }
    }
}

// === impl StatementKind ===

impl StatementKind {
    /// Returns the kind of a parsed statement; `None` if it is neither an import nor an export.
    pub(super) fn of(parsed: &Parsed<'_>) -> Option<Self> {
        Some(match parsed {
            Parsed::ImportDeclaration(import) => {
                let specifiers = import.specifiers.iter().flatten();
                Self::Import {
                    from: import.source.value.as_str().into(),
                    names: specifiers.map(imported).collect(),
                }
            }
            Parsed::ExportDeclaration(export) => Self::Export {
                from: None,
                names: declared(&export.declaration),
            },
            Parsed::ExportNamedDeclaration(export) => {
                let names = export.specifiers.iter();
                let names = names.map(|one| Binding::new(&one.exported.name(), &one.local.name()));
                Self::Export {
                    from: None,
                    names: names.collect(),
                }
            }
            Parsed::ExportFromDeclaration(export) => {
                let names = export.specifiers.iter();
                let names = names.map(|one| Binding::new(&one.exported.name(), &one.local.name()));
                Self::Export {
                    from: Some(export.source.value.as_str().into()),
                    names: names.collect(),
                }
            }
            Parsed::ExportAllDeclaration(export) => {
                let name = export.exported.as_ref().map(|name| name.name());
                Self::Export {
                    from: Some(export.source.value.as_str().into()),
                    names: vec![Binding::new(name.as_deref().unwrap_or("*"), "*")],
                }
            }
            Parsed::ExportDefaultDeclaration(export) => {
                let local = match &export.declaration {
                    ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                        function.id.as_ref().map(|id| id.name.as_str())
                    }
                    ExportDefaultDeclarationKind::ClassDeclaration(class) => {
                        class.id.as_ref().map(|id| id.name.as_str())
                    }
                    ExportDefaultDeclarationKind::Identifier(name) => Some(name.name.as_str()),
                    _ => None,
                };
                Self::Export {
                    from: None,
                    names: vec![Binding::new("default", local.unwrap_or("default"))],
                }
            }
            _ => return None,
        })
    }
}

fn imported(specifier: &ImportDeclarationSpecifier<'_>) -> Binding {
    let local = specifier.local().name.as_str();
    match specifier {
        ImportDeclarationSpecifier::ImportSpecifier(one) => {
            Binding::new(&one.imported.name(), local)
        }
        ImportDeclarationSpecifier::ImportDefaultSpecifier(_) => Binding::new("default", local),
        ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => Binding::new("*", local),
    }
}

/// Returns the names that a declaration declares; patterns are not supported.
fn declared(declaration: &Declaration<'_>) -> Vec<Binding> {
    let same = |name: &str| Binding::new(name, name);
    match declaration {
        Declaration::VariableDeclaration(variables) => {
            let names = variables.declarations.iter();
            let names = names.filter_map(|one| match &one.id {
                BindingPattern::BindingIdentifier(id) => Some(same(id.name.as_str())),
                _ => None,
            });
            names.collect()
        }
        Declaration::FunctionDeclaration(function) => {
            let id = function.id.iter();
            id.map(|id| same(id.name.as_str())).collect()
        }
        Declaration::ClassDeclaration(class) => {
            let id = class.id.iter();
            id.map(|id| same(id.name.as_str())).collect()
        }
        _ => Vec::new(),
    }
}

/// Finds the statements of a text.
pub(super) fn find(text: &str, lookahead: &mut Lookahead) -> Result<Vec<Range<usize>>, Exhausted> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut open_fence: Option<(u8, usize)> = None;
    while at < text.len() {
        let line_end = memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |n| at + n);
        let line = &text[at..line_end];
        match (open_fence, fence(line.as_bytes())) {
            (None, Some((mark, length, _))) => open_fence = Some((mark, length)),
            (Some((mark, length)), Some((other, n, rest)))
                if other == mark && n >= length && rest.trim_ascii().is_empty() =>
            {
                open_fence = None;
            }
            (None, None) if is_statement(line) => {
                let end = statement_end(text.as_bytes(), at, lookahead)?;
                found.push(at..end);
                at = end + 1;
                continue;
            }
            _ => {}
        }
        at = line_end + 1;
    }
    Ok(found)
}

/// Replaces the statements of a text by spaces.
pub(super) fn mask<'t>(text: &'t str, statements: &[Range<usize>]) -> Cow<'t, str> {
    if statements.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    let mut copied = 0;
    for range in statements {
        masked.push_str(&text[copied..range.start]);
        // Blanks have the length of the statement, so the rest stays at its offsets and lines.
        let blank = |byte| if byte == b'\n' { '\n' } else { ' ' };
        masked.extend(text[range.clone()].bytes().map(blank));
        copied = range.end;
    }
    masked.push_str(&text[copied..]);
    Cow::Owned(masked)
}

/// Returns whether a line starts a statement, and not a sentence with the same first word.
fn is_statement(line: &str) -> bool {
    if let Some(rest) = line.strip_prefix("import ") {
        let rest = rest.trim_start();
        return rest.starts_with(['{', '*', '"', '\''])
            || rest.contains(" from ") && rest.contains(['"', '\'']);
    }
    line.strip_prefix("export ").is_some_and(|rest| {
        let word = rest.trim_start();
        let keywords = [
            "const ",
            "let ",
            "var ",
            "function ",
            "default ",
            "async ",
            "class ",
            "type ",
            "interface ",
            "{",
            "* from ",
        ];
        keywords.iter().any(|keyword| word.starts_with(keyword))
    })
}

/// Returns the end of the statement: the first line end outside all brackets at which the
/// statement can be complete.
fn statement_end(
    bytes: &[u8],
    start: usize,
    lookahead: &mut Lookahead,
) -> Result<usize, Exhausted> {
    // A bracket without its partner ends with the paragraph.
    let paragraph_end =
        |at: usize| memchr::memmem::find(&bytes[at..], b"\n\n").map_or(bytes.len(), |n| at + n);
    let mut at = start;
    // The end of the text that is neither a blank nor a comment.
    let mut code_end = start;
    while at < bytes.len() {
        let next = match bytes[at] {
            b'{' | b'(' | b'[' | b'`' => match balanced(bytes, at) {
                Ok(end) => end,
                Err(stop) => {
                    lookahead.charge(stop - at)?;
                    return Ok(paragraph_end(at));
                }
            },
            quote @ (b'"' | b'\'') => string_end(bytes, at, quote) + 1,
            // JSX without brackets around it.
            b'<' if starts_jsx(&bytes[start..code_end], &bytes[at..]) => {
                let end = element_end(bytes, at);
                if end == bytes.len() {
                    lookahead.charge(end - at)?;
                    return Ok(paragraph_end(at));
                }
                end
            }
            b'/' if bytes[at..].starts_with(b"//") => {
                at = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |n| at + n);
                continue;
            }
            b'/' if bytes[at..].starts_with(b"/*") => {
                let Some(length) = memchr::memmem::find(&bytes[at + 2..], b"*/") else {
                    lookahead.charge(bytes.len() - at)?;
                    return Ok(paragraph_end(at));
                };
                at += length + 4;
                continue;
            }
            b'\n' if !goes_on(&bytes[start..code_end], &bytes[at + 1..]) => return Ok(at),
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            _ => at + 1,
        };
        at = next;
        code_end = at;
    }
    Ok(bytes.len())
}

/// Returns whether JSX starts here, and not a comparison or a type.
fn starts_jsx(before: &[u8], here: &[u8]) -> bool {
    (before.ends_with(b"=") || before.ends_with(b"=>"))
        && here
            .get(1)
            .is_some_and(|b| b.is_ascii_alphabetic() || *b == b'>')
}

/// Returns whether a statement goes on in the next line.
fn goes_on(before: &[u8], next: &[u8]) -> bool {
    let ends: [&[u8]; 8] = [b"=", b"=>", b",", b"?", b":", b"&&", b"||", b"+"];
    let starts: [&[u8]; 8] = [b".", b"?", b":", b"&&", b"||", b"+ ", b"from ", b"="];
    // A line with an operator continues; a blank line does not.
    let indent = next
        .iter()
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count();
    let next = &next[indent..];
    ends.iter().any(|end| before.ends_with(end))
        || indent > 0 && starts.iter().any(|start| next.starts_with(start))
}
