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

pub mod component;
pub mod drawing;
mod import;
mod markdown;
mod module;
pub mod node;
mod region;
mod scan;
mod value;

use std::collections::BTreeSet;

use crate::diagnostic::Diagnostic;

pub use node::{Alignment, Element, Item, Node, Table, plain};
pub use scan::LOOKAHEAD_BYTES_MAX;
pub use value::Value;

use value::Scope;

/// How many bytes a page may have; the longest of 28,919 real ones has a third of it.
pub const PAGE_BYTES_MAX: usize = 2 << 20;
/// How deep the pieces of a page may lie in each other, snippets included.
pub const DEPTH_MAX: usize = 96;
/// How many bytes of snippets one page may show.
pub const EXPANSION_BYTES_MAX: usize = 4 << 20;
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

/// Counts the line ends of a text.
fn lines(text: &str) -> u32 {
    u32::try_from(memchr::memchr_iter(b'\n', text.as_bytes()).count()).unwrap_or(u32::MAX)
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

#[cfg(test)]
mod tests;
