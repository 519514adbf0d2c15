//! MDX: from the text of a page to a tree.
//!
//! ```text
//!  text ──module──▶ text without import/export, names and their values
//!       ──scan────▶ tags, expressions, comments        (code and formulas stepped over)
//!       ──region──▶ elements, each with its own text, dedented, tags replaced by marks
//!       ──markdown▶ pulldown-cmark reads that text; marks become elements again
//! ```
//!
//! Markdown is read by a parser that is linear in hostile input, and JSX by a small layer
//! of ours above it. A parser for all of MDX exists (`markdown`), and was not taken: it
//! panics on valid pages of a few bytes and takes seconds for a long table, while one page
//! must never stall a build. What MDX calls an error (a `<` that opens no tag, a brace that
//! is never closed) is text here, with a warning where it may surprise.
//!
//! What differs from CommonMark, as in MDX: no indented code, no HTML (a tag is a tag).
//!
//! **Limits.** A page has at most [`PAGE_BYTES_MAX`] bytes, pieces lie at most
//! [`DEPTH_MAX`] deep, snippets expand to at most [`EXPANSION_BYTES_MAX`], failed looks
//! ahead cost at most [`LOOKAHEAD_BYTES_MAX`]. Over a limit the page is refused with its
//! name; the others go on. Rows of a table and links of a paragraph need no limit of their
//! own: they are read in one pass, so the one of bytes holds for them.
//!
//! Sources: MDX 3; CommonMark 0.31.2; GitHub Flavored Markdown 0.29.

mod markdown;
mod module;
pub mod node;
mod region;
mod scan;
mod value;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::diagnostic::Diagnostic;

pub use node::{Alignment, Element, Item, Node, Table, plain};
pub use scan::LOOKAHEAD_BYTES_MAX;
pub use value::Value;

use module::Statement;
use value::{Parameters, Scope, Template};

/// How many bytes a page may have; the longest of 28,919 real ones has a third of it.
pub const PAGE_BYTES_MAX: usize = 2 << 20;
/// How deep the pieces of a page may lie in each other, snippets included.
pub const DEPTH_MAX: usize = 96;
/// How many bytes of snippets one page may show.
pub const EXPANSION_BYTES_MAX: usize = 4 << 20;
/// How many imports may lead from one to the next.
const IMPORTS_MAX: usize = 8;

/// Why a page cannot be shown at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// Over [`PAGE_BYTES_MAX`].
    #[error("the page has more than {PAGE_BYTES_MAX} bytes")]
    TooLong,
    /// Over [`DEPTH_MAX`].
    #[error("elements lie more than {DEPTH_MAX} deep in each other")]
    TooDeep,
    /// Over [`EXPANSION_BYTES_MAX`].
    #[error("snippets expand to more than {EXPANSION_BYTES_MAX} bytes")]
    TooMuchExpanded,
    /// Over [`LOOKAHEAD_BYTES_MAX`].
    #[error("too many tags, braces or backticks are never closed")]
    Unclosed,
}

/// Reads the text of a file of the documentation, by its path from the root of the docs.
pub type Load<'a> = dyn Fn(&str) -> Option<String> + Sync + 'a;

/// A page as read.
#[derive(Debug)]
pub struct Read {
    /// What it says.
    pub nodes: Vec<Node>,
    /// What is odd about it.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the body of a page. `line` is the line of the file at which the body starts.
///
/// # Errors
///
/// [`Refused`] when the page is over a limit.
pub fn read(file: &str, body: &str, line: u32, load: &Load<'_>) -> Result<Read, Refused> {
    if body.len() > PAGE_BYTES_MAX {
        return Err(Refused::TooLong);
    }
    let mut reader = Reader {
        load,
        file: file.into(),
        told: BTreeSet::new(),
        diagnostics: Vec::new(),
        expandable: EXPANSION_BYTES_MAX,
        refused: None,
    };
    let nodes = reader.file(&clean(body), line, Scope::default(), 0);
    match reader.refused {
        Some(refused) => Err(refused),
        None => Ok(Read {
            nodes,
            diagnostics: reader.diagnostics,
        }),
    }
}

/// Reads plain Markdown, as in `.md` files: what looks like a tag is text.
///
/// # Errors
///
/// [`Refused`] when the page is over a limit.
pub fn read_markdown(body: &str) -> Result<Vec<Node>, Refused> {
    if body.len() > PAGE_BYTES_MAX {
        return Err(Refused::TooLong);
    }
    Ok(markdown::read(&clean(body), &mut [], 0))
}

/// Takes out what must not be taken for our marks, and the return of CRLF.
fn clean(text: &str) -> String {
    text.replace("\r\n", "\n")
        .replace([markdown::MARK, markdown::MARK_END, '\0'], "\u{fffd}")
}

/// Reads one page and what it imports.
struct Reader<'l> {
    load: &'l Load<'l>,
    /// The file that is read at the moment.
    file: Box<str>,
    /// What was said already: once per page is enough.
    told: BTreeSet<String>,
    diagnostics: Vec<Diagnostic>,
    expandable: usize,
    refused: Option<Refused>,
}

// === impl Reader ===

impl Reader<'_> {
    /// Reads a file, or the body of a component.
    fn file(&mut self, text: &str, line: u32, mut scope: Scope, depth: usize) -> Vec<Node> {
        let (masked, statements) = module::split(text);
        self.declare(text, line, &statements, &mut scope, 0);
        self.region(&masked, line, &scope, depth)
    }

    /// Gives the names that a file imports and exports their meaning.
    fn declare(
        &mut self,
        text: &str,
        line: u32,
        statements: &[(usize, Statement<'_>)],
        scope: &mut Scope,
        imports: usize,
    ) {
        for (offset, statement) in statements {
            let line = line + lines(&text[..*offset]);
            match statement {
                Statement::Import {
                    default,
                    names,
                    from,
                } => {
                    self.import(*default, names, from, line, scope, imports);
                }
                Statement::Value { name, source } => {
                    let value = self.evaluate(source, line, scope, 0);
                    if let Some(value) = value {
                        scope.values.insert((*name).into(), value);
                    }
                }
                Statement::Component {
                    name,
                    parameters,
                    body,
                } => {
                    let template = Template {
                        file: self.file.clone(),
                        body: (*body).into(),
                        line,
                        parameters: parameters.clone(),
                        scope: scope.clone(),
                    };
                    scope.components.insert((*name).into(), Arc::new(template));
                }
                // Of an imported file counts what is used of it.
                Statement::Other { .. } if imports > 0 => {}
                Statement::Other { name } => self.warn(
                    "mdx-script",
                    line,
                    format!(
                        "`{}` would have to be run, and pages run no script",
                        short(name)
                    ),
                ),
            }
        }
    }

    fn import(
        &mut self,
        default: Option<&str>,
        names: &[(&str, &str)],
        from: &str,
        line: u32,
        scope: &mut Scope,
        imports: usize,
    ) {
        if imports >= IMPORTS_MAX {
            return self.warn(
                "mdx-import",
                line,
                format!("more than {IMPORTS_MAX} imports lead from one file to the next"),
            );
        }
        let Some(path) = resolve(&self.file, from) else {
            return self.warn(
                "mdx-import",
                line,
                format!("`{from}` is not a file of the documentation"),
            );
        };
        let Some(text) = (self.load)(&path).filter(|text| text.len() <= PAGE_BYTES_MAX) else {
            return self.warn("mdx-import", line, format!("there is no file `{path}`"));
        };
        if !self.pay_for(&text) {
            return;
        }
        let text = clean(&text);
        let (head, body) = frontmatter_end(&text);
        let file = std::mem::replace(&mut self.file, path.as_str().into());
        let (_, statements) = module::split(body);
        let mut inner = Scope::default();
        self.declare(body, 1 + head, &statements, &mut inner, imports + 1);
        self.file = file;
        // The default export of a script is a component of it, and not the file.
        let is_script = !path.ends_with(".mdx") && !path.ends_with(".md");
        if let Some(name) = default.filter(|_| is_script) {
            let first = || {
                inner
                    .components
                    .iter()
                    .min_by_key(|(name, _)| (*name).clone())
            };
            let named = inner.components.get_key_value(name);
            let exported = named.or_else(first).map(|(_, component)| component);
            match exported {
                Some(component) => {
                    scope.components.insert(name.into(), Arc::clone(component));
                }
                None => self.without_value(name, from, line, scope),
            }
        } else if let Some(name) = default {
            let template = Template {
                file: path.into(),
                body: body.into(),
                line: 1 + head,
                parameters: Parameters::Implicit,
                scope: Scope::default(),
            };
            scope.components.insert(name.into(), Arc::new(template));
        }
        for (name, local) in names {
            if let Some(value) = inner.values.get(*name) {
                scope.values.insert((*local).into(), value.clone());
            } else if let Some(component) = inner.components.get(*name) {
                scope
                    .components
                    .insert((*local).into(), Arc::clone(component));
            } else {
                self.without_value(name, from, line, scope);
            }
        }
    }

    /// Tells that an import means nothing here, once for all its uses.
    fn without_value(&mut self, name: &str, from: &str, line: u32, scope: &mut Scope) {
        scope.missing.insert(name.into());
        self.warn(
            "mdx-import",
            line,
            format!("`{from}` exports no `{name}` that has a value without running it"),
        );
    }

    /// Shows a component with its props.
    fn expand(
        &mut self,
        template: &Template,
        mut props: HashMap<Box<str>, Value>,
        depth: usize,
    ) -> Vec<Node> {
        if !self.pay_for(&template.body) {
            return Vec::new();
        }
        let mut scope = template.scope.clone();
        let file = std::mem::replace(&mut self.file, template.file.clone());
        match &template.parameters {
            Parameters::Implicit => {
                let all = props.iter().map(|(k, v)| (k.clone(), v.clone()));
                scope.values.insert("props".into(), object(all));
                scope.values.extend(props);
            }
            Parameters::Whole(name) => {
                scope.values.insert(name.clone(), object(props));
            }
            Parameters::Named(names) => {
                for (name, default) in names {
                    let value = props.remove(name).or_else(|| {
                        self.evaluate(default.as_deref()?, template.line, &template.scope, depth)
                    });
                    scope
                        .values
                        .insert(name.clone(), value.unwrap_or(Value::Null));
                }
            }
        }
        let nodes = self.file(&template.body, template.line, scope, depth + 1);
        self.file = file;
        nodes
    }

    /// Counts a piece that is shown or read once more. The number of pieces counts too.
    fn pay_for(&mut self, text: &str) -> bool {
        let left = self.expandable.checked_sub(text.len() + 64);
        if left.is_none() {
            self.refuse(Refused::TooMuchExpanded);
        }
        self.expandable = left.unwrap_or(0);
        left.is_some()
    }

    fn evaluate(&mut self, source: &str, line: u32, scope: &Scope, depth: usize) -> Option<Value> {
        let found = value::evaluate(source, scope, &mut |piece| {
            let mut nodes = self.region(piece, line, scope, depth + 1);
            // A value that is a line goes on in the line it stands in.
            match &mut nodes[..] {
                [Node::Paragraph(line)] => std::mem::take(line),
                _ => nodes,
            }
        });
        if found.is_err() {
            self.warn(
                "mdx-script",
                line,
                format!("`{}` has no value without running it", short(source.trim())),
            );
        }
        found.ok()
    }

    fn warn(&mut self, rule: &'static str, line: u32, message: String) {
        if self.told.insert(message.clone()) {
            let found = Diagnostic::warning(rule, &self.file, message);
            self.diagnostics.push(found.at(line, 1, 0));
        }
    }

    fn refuse(&mut self, refused: Refused) {
        self.refused.get_or_insert(refused);
    }
}

fn object(entries: impl IntoIterator<Item = (Box<str>, Value)>) -> Value {
    let mut entries: Vec<_> = entries.into_iter().collect();
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    Value::Object(entries)
}

/// Counts the line ends of a text.
fn lines(text: &str) -> u32 {
    u32::try_from(memchr::memchr_iter(b'\n', text.as_bytes()).count()).unwrap_or(u32::MAX)
}

/// Steps over the frontmatter of a snippet: how many lines it has, and what follows.
fn frontmatter_end(text: &str) -> (u32, &str) {
    match crate::frontmatter::read(text) {
        Ok(Some(found)) => {
            let (head, body) = text.split_at(found.body_offset);
            (lines(head), body)
        }
        _ => (0, text),
    }
}

/// Cuts a piece of source for a message.
fn short(source: &str) -> String {
    let line = source.lines().next().unwrap_or_default();
    let mut cut: String = line.chars().take(40).collect();
    if cut.len() < source.len() {
        cut.push('…');
    }
    cut
}

/// Finds the file that an import in `file` names, from the root of the docs; `None` when
/// it is a package or lies outside.
fn resolve(file: &str, from: &str) -> Option<String> {
    let mut segments: Vec<&str> = match from.strip_prefix('/') {
        Some(_) => Vec::new(),
        None if from.starts_with('.') => file.split('/').rev().skip(1).collect(),
        None => return None,
    };
    if !from.starts_with('/') {
        segments.reverse();
    }
    for segment in from.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop()?;
            }
            other => segments.push(other),
        }
    }
    let path = segments.join("/");
    let has_extension = [".mdx", ".md", ".jsx", ".tsx", ".js", ".ts"]
        .iter()
        .any(|end| path.ends_with(end));
    Some(if has_extension {
        path
    } else {
        format!("{path}.mdx")
    })
}

#[cfg(test)]
mod tests;
