//! MDX: from the text of a page to a tree.
//!
//! ```text
//!  text ──module──▶ text without import/export; the statements, parsed by `oxc`
//!       ──scan────▶ tags, expressions, comments        (code and formulas are skipped)
//!       ──region──▶ elements, each with its own dedented text; marks replace the tags
//!       ──markdown▶ pulldown-cmark reads that text; marks become elements again
//! ```
//!
//! A Markdown parser with linear time on hostile input reads the Markdown; a small layer of our own
//! finds the JSX, the expressions, and the imports and exports in it. The crate `oxc` parses the
//! JavaScript that is found. Plain values need no engine; everything else is evaluated
//! ([`evaluation`], [`crate::jsx`]). The crate `markdown` parses all of MDX, but we do not use it:
//! it panics on valid pages of a few bytes and takes seconds for a long table, and one page must
//! never stop a build. Where MDX reports an error (a `<` that opens no tag, a brace that is never
//! closed), this reader keeps the characters as text and warns where that may surprise.
//!
//! Differences from CommonMark, as in MDX: no indented code, no HTML (a tag is a tag).
//!
//! **Limits.** A page has at most [`PAGE_BYTES_MAX`] bytes. Its elements are nested at most
//! [`DEPTH_MAX`] deep. Its snippets, and the copies of its values, have at most
//! [`EXPANSION_BYTES_MAX`]. Its failed look-aheads read at most [`LOOKAHEAD_BYTES_MAX`]. The
//! Markdown parser does at most [`MARKDOWN_STEPS_MAX`] steps that the length of the text does
//! not bound, and the JavaScript parser reads at most [`SCRIPT_BYTES_MAX`]. All limits count
//! bytes or steps, never time, so that a page is read alike on every machine. A page over a
//! limit is shown as its source, with a warning that names the limit; the other pages are read.
//! Of a tag with more than [`ATTRIBUTES_MAX`] attributes, the others are left out, with a warning.
//! Rows of a table and links of a paragraph have no limit of their own: they are read in one
//! pass, so the byte limit bounds them.
//! Sources: MDX 3; CommonMark 0.31.2; GitHub Flavored Markdown 0.29.

pub mod anchor;
pub mod component;
mod control;
pub mod drawing;
mod evaluation;
mod html;
mod import;
mod markdown;
pub mod module;
pub mod node;
pub mod outline;
mod region;
mod scan;
mod scope;
pub mod span;
mod value;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;

pub use crate::jsx::script::{BYTES_MAX as SCRIPT_BYTES_MAX, NESTING_MAX as SCRIPT_NESTING_MAX};
pub use markdown::STEPS_MAX as MARKDOWN_STEPS_MAX;
pub use module::Statement;
pub use node::{Alignment, Element, Item, Node, Table, in_line, plain};
pub use outline::{Outline, Reference, ReferenceKind};
pub use scan::LOOKAHEAD_BYTES_MAX;
pub(crate) use scan::block_mark;
pub use span::Span;
pub use value::Value;

use crate::jsx::script;
use crate::watchdog;
use evaluation::Evaluation;
use markdown::Steps;
use scan::Lookahead;
use scope::{Scope, Scopes};
use span::{Origin, Trace};

/// How many bytes a page may have; the longest of 28,919 real pages has a third of this size.
pub const PAGE_BYTES_MAX: usize = 2 << 20;
/// How deep the elements of a page may be nested, snippets included.
pub const DEPTH_MAX: usize = 96;
/// How many bytes the snippets that one page shows and the copies of its values may have.
pub const EXPANSION_BYTES_MAX: usize = 4 << 20;
/// How many attributes a tag may have.
pub const ATTRIBUTES_MAX: usize = 256;
/// How many problems of one page are reported.
const DIAGNOSTICS_MAX: usize = 1000;

/// Why a page cannot be shown at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejected {
    /// Over [`PAGE_BYTES_MAX`].
    #[error("the page has more than {PAGE_BYTES_MAX} bytes")]
    TooLong,
    /// Over [`DEPTH_MAX`].
    #[error("elements are nested more than {DEPTH_MAX} levels deep")]
    TooDeep,
    /// Over [`EXPANSION_BYTES_MAX`].
    #[error("snippets and copies of values expand to more than {EXPANSION_BYTES_MAX} bytes")]
    TooMuchExpanded,
    /// Over [`SCRIPT_BYTES_MAX`].
    #[error("more than {SCRIPT_BYTES_MAX} bytes of JavaScript would have to be parsed")]
    TooMuchScript,
    /// Over [`MARKDOWN_STEPS_MAX`].
    #[error(
        "lists, quotations or link titles that many lines follow need more than \
         {MARKDOWN_STEPS_MAX} steps"
    )]
    TooManySteps,
    /// Over [`LOOKAHEAD_BYTES_MAX`].
    #[error("too many tags, braces or backticks are never closed")]
    Unclosed,
    /// The reader itself failed: a defect of this program.
    #[error("an unexpected error occurred while it was read")]
    Failed,
}

/// Reads the text of a file of the documentation, by its path from the root of the docs.
pub type Load<'a> = dyn Fn(&str) -> Option<Arc<str>> + 'a;

/// A page as its author wrote it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'t> {
    /// Its file, as a path from the root of the documentation. A `.md` file is Markdown with
    /// elements: it has no imports and expressions, and tags of unknown names are text.
    pub file: &'t str,
    /// Its title. A first heading that repeats it is left out.
    pub title: &'t str,
    /// The whole text of the file.
    pub text: &'t str,
    /// The byte at which the text after the frontmatter starts.
    pub body: usize,
    /// Whether dollars may start a formula.
    pub latex: bool,
}

impl<'t> Source<'t> {
    /// Makes the source of a page without frontmatter and title.
    #[must_use]
    pub fn new(file: &'t str, text: &'t str) -> Self {
        Self {
            file,
            title: "",
            text,
            body: 0,
            latex: true,
        }
    }
}

/// A page that was read.
#[derive(Debug, Default)]
pub struct Page {
    /// The byte of the file at which the body starts.
    pub body: usize,
    /// Its imports and exports, in order.
    pub module: Vec<Statement>,
    /// Its content.
    pub nodes: Vec<Node>,
    /// Its headings, anchors and references.
    pub outline: Outline,
    /// The files to which spans refer by number: the page itself and the files that it imports,
    /// as paths from the root of the documentation.
    pub files: Vec<Box<str>>,
    /// The problems that were found while reading it.
    pub diagnostics: Vec<Diagnostic>,
    /// The components that react to their reader when their scripts run. Only their first render
    /// is shown.
    pub interactive: BTreeSet<Box<str>>,
}

/// Reads a page.
///
/// # Errors
///
/// [`Rejected`] when the page is over a limit.
pub fn read(source: &Source<'_>, load: &Load<'_>) -> Result<Page, Rejected> {
    let _working = watchdog::working_on(source.file);
    let (before, body) = source.text.split_at(source.body);
    if body.len() > PAGE_BYTES_MAX {
        return Err(Rejected::TooLong);
    }
    let (text, shifts) = clean(body);
    let origin = Arc::new(Origin {
        file: 0,
        start: source.body,
        shifts,
        line: 1 + lines(before),
        line_ends: line_ends(&text),
    });
    let mut reader = Reader::new(source.file, load, origin);
    let scope = reader.scopes.add(None);
    reader.is_plain = source.file.ends_with(".md");
    reader.is_latex = source.latex;
    let mut nodes = match reader.is_plain {
        true => reader.region(&text, 0, scope, 0),
        false => reader.file(&text, 0, scope, 0),
    };
    if let Some(rejected) = reader.rejected {
        return Err(rejected);
    }
    if reader.diagnostics.len() == DIAGNOSTICS_MAX {
        let message = format!("more than {DIAGNOSTICS_MAX} problems; the others are not listed");
        let found = Diagnostic::warning("page-limit", source.file, message);
        reader.diagnostics.push(found);
    }
    let title = source.title;
    let repeats = |node: &Node| match node {
        Node::Heading {
            level: 1, children, ..
        } => plain(children).trim() == title,
        _ => false,
    };
    if nodes.first().is_some_and(repeats) {
        nodes.remove(0);
    }
    Ok(Page {
        body: source.body,
        outline: Outline::of(&mut nodes),
        nodes,
        module: reader.module,
        files: reader.files,
        diagnostics: reader.diagnostics,
        interactive: reader.evaluation.interactive,
    })
}

/// Reads plain Markdown that is not a file, such as a description; a tag in it is text.
///
/// # Errors
///
/// [`Rejected`] when the text is over a limit.
pub fn read_markdown(body: &str) -> Result<Vec<Node>, Rejected> {
    if body.len() > PAGE_BYTES_MAX {
        return Err(Rejected::TooLong);
    }
    let mut text = clean(body).0;
    if text.contains('$') {
        let Ok(scanned) = scan::scan(&text, false, true, &mut Lookahead::default()) else {
            return Err(Rejected::Unclosed);
        };
        text = Cow::Owned(region::escaped(&text, &scanned.dollars));
    }
    let mut steps = Steps::default();
    markdown::read(&text, &mut [], &Trace::default(), 0, &mut steps)
        .map_err(|markdown::TooManySteps| Rejected::TooManySteps)
}

/// Reads a description of a specification: Markdown with the elements that pages may use.
///
/// Tags of other names, and braces, are text: many descriptions have samples of XML and paths with
/// parameters. Nothing is evaluated and no file is read. The nodes have no place in a file.
///
/// # Errors
///
/// [`Rejected`] when the text is over a limit.
pub fn read_description(body: &str) -> Result<Vec<Node>, Rejected> {
    if !body.contains('<') || body.len() > PAGE_BYTES_MAX {
        return read_markdown(body);
    }
    let (text, shifts) = clean(body);
    let origin = Arc::new(Origin {
        file: Span::NONE.file,
        start: 0,
        shifts,
        line: 1,
        line_ends: line_ends(&text),
    });
    let mut reader = Reader::new("", &|_| None, origin);
    reader.is_plain = true;
    let scope = reader.scopes.add(None);
    let mut nodes = reader.region(&text, 0, scope, 0);
    remove_places(&mut nodes);
    match reader.rejected {
        Some(rejected) => Err(rejected),
        None => Ok(nodes),
    }
}

/// Makes elements look as if no author wrote them in a file.
fn remove_places(nodes: &mut [Node]) {
    for node in nodes {
        if let Node::Element(element) = node {
            element.line = 0;
            element.span = Span::NONE;
            element.written.clear();
        }
        node.each_children_mut(&mut |children| remove_places(children));
    }
}

/// Replaces characters that would look like our marks, and removes the `\r` of CRLF.
///
/// Also returns pairs: from this byte of the result on, add this number to get the byte of
/// the original.
fn clean(text: &str) -> (Cow<'_, str>, Vec<(usize, isize)>) {
    let is_odd = |c: char| matches!(c, '\r' | markdown::MARK | markdown::MARK_END | '\0');
    if !text.contains(is_odd) {
        return (Cow::Borrowed(text), Vec::new());
    }
    let mut out = String::with_capacity(text.len());
    let mut shifts = Vec::new();
    let mut ahead = 0_isize;
    let mut rest = text;
    while let Some(at) = rest.find(is_odd) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let returns = rest.starts_with("\r\n");
        let alone = rest.starts_with('\r') && !returns;
        let length = if rest.starts_with(['\r', '\0']) { 1 } else { 3 };
        rest = &rest[length..];
        if alone {
            out.push('\r');
        } else if returns {
            ahead += 1;
            shifts.push((out.len(), ahead));
        } else {
            out.push('\u{fffd}');
            if length == 1 {
                ahead -= 2;
                shifts.push((out.len(), ahead));
            }
        }
    }
    out.push_str(rest);
    (Cow::Owned(out), shifts)
}

/// The place in a file that a warning names.
#[derive(Clone, Copy, Debug)]
struct WarningPosition {
    line: u32,
    column: u32,
    length: u32,
}

// === impl Place ===

impl WarningPosition {
    /// Points to a whole line.
    fn line(line: u32) -> Self {
        Self {
            line,
            column: 1,
            length: 0,
        }
    }
}

/// Reads one page and what it imports.
struct Reader<'l> {
    load: &'l Load<'l>,
    /// The file that is being read.
    file: Box<str>,
    /// Maps the cleaned text of this file to the original.
    origin: Arc<Origin>,
    /// All files that were read.
    files: Vec<Box<str>>,
    scopes: Scopes,
    /// The imports and exports of the page itself.
    module: Vec<Statement>,
    /// The messages reported so far: each is reported once per page.
    reported: BTreeSet<String>,
    diagnostics: Vec<Diagnostic>,
    expandable: usize,
    script_left: usize,
    lookahead: Lookahead,
    steps: Steps,
    evaluation: Evaluation,
    /// Whether the text is no MDX: braces and tags of unknown names are text.
    is_plain: bool,
    /// Whether dollars may start a formula.
    is_latex: bool,
    rejected: Option<Rejected>,
}

// === impl Reader ===

impl<'l> Reader<'l> {
    fn new(file: &str, load: &'l Load<'l>, origin: Arc<Origin>) -> Self {
        Self {
            load,
            file: file.into(),
            origin,
            files: vec![file.into()],
            scopes: Scopes::default(),
            module: Vec::new(),
            reported: BTreeSet::new(),
            diagnostics: Vec::new(),
            expandable: EXPANSION_BYTES_MAX,
            script_left: SCRIPT_BYTES_MAX,
            lookahead: Lookahead::default(),
            steps: Steps::default(),
            evaluation: Evaluation::default(),
            is_plain: false,
            is_latex: true,
            rejected: None,
        }
    }
}

impl Reader<'_> {
    /// Reads a file, or the body of a component; `at` is where its text starts in the cleaned
    /// text of the file.
    fn file(&mut self, text: &str, at: usize, scope: Scope, depth: usize) -> Vec<Node> {
        let Ok(statements) = module::find(text, &mut self.lookahead) else {
            self.reject(Rejected::Unclosed);
            return Vec::new();
        };
        self.declare(text, at, &statements, scope, depth);
        self.region(&module::mask(text, &statements), at, scope, depth)
    }

    /// Reads Markdown with marks.
    fn markdown(
        &mut self,
        text: &str,
        marks: &mut [markdown::Mark<'_>],
        trace: &Trace,
        depth: usize,
    ) -> Vec<Node> {
        match markdown::read(text, marks, trace, depth, &mut self.steps) {
            Ok(nodes) => nodes,
            Err(markdown::TooManySteps) => {
                self.reject(Rejected::TooManySteps);
                Vec::new()
            }
        }
    }

    /// Returns the number of a file.
    fn number_of(&mut self, file: &str) -> u32 {
        let known = self.files.iter().position(|known| **known == *file);
        let number = known.unwrap_or_else(|| {
            self.files.push(file.into());
            self.files.len() - 1
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// Subtracts a piece of text from the expansion limit; each piece costs 64 bytes extra, so
    /// the number of pieces is limited too.
    fn charge_text(&mut self, text: &str) -> bool {
        self.charge(text.len() + 64)
    }

    /// Subtracts bytes from the expansion limit.
    fn charge(&mut self, bytes: usize) -> bool {
        let left = self.expandable.checked_sub(bytes);
        if left.is_none() {
            self.reject(Rejected::TooMuchExpanded);
        }
        self.expandable = left.unwrap_or(0);
        left.is_some()
    }

    /// Subtracts a source from what may be parsed as JavaScript.
    fn charge_script(&mut self, source: &str) -> bool {
        let left = self.script_left.checked_sub(source.len());
        if left.is_none() {
            self.reject(Rejected::TooMuchScript);
        }
        self.script_left = left.unwrap_or(0);
        left.is_some()
    }

    /// Returns the line of a byte of the cleaned text of the file that is being read.
    fn line(&self, at: usize) -> u32 {
        self.origin.line_of(at)
    }

    fn warn(&mut self, rule: &'static str, line: u32, message: String) {
        self.warn_at(rule, WarningPosition::line(line), message);
    }

    fn warn_at(&mut self, rule: &'static str, at: WarningPosition, message: String) {
        if self.diagnostics.len() < DIAGNOSTICS_MAX && self.reported.insert(message.clone()) {
            let found = Diagnostic::warning(rule, &self.file, message);
            self.diagnostics
                .push(found.at(at.line, at.column, at.length));
        }
    }

    fn reject(&mut self, rejected: Rejected) {
        self.rejected.get_or_insert(rejected);
    }
}

/// Counts the line ends of a text.
fn lines(text: &str) -> u32 {
    u32::try_from(memchr::memchr_iter(b'\n', text.as_bytes()).count()).unwrap_or(u32::MAX)
}

/// Returns where each line of a text ends.
fn line_ends(text: &str) -> Vec<usize> {
    memchr::memchr_iter(b'\n', text.as_bytes()).collect()
}

/// Shortens a piece of source for a message.
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
