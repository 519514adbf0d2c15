//! A page as Markdown, for agents.
//!
//! HTML elements become Markdown if Markdown has such elements ([`html`]). For components see
//! [`super::component`].
//!
//! Links inside the site begin with the placeholder of the base URL and end in `.md`.
//!
//! **Invariant:** text of an author, in attributes too, is escaped, so that a reader of
//! Markdown takes it for text.

mod html;
mod line;

use super::component;
use super::html::fence::{Info, without_remarks};
use super::link::Map;
use super::messages::Messages;
use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::mdx::{Alignment, Element, Node, Table, in_line};
use crate::site::percent::encode;

pub(super) use line::code_span;
pub use line::escaped;

use line::{is_dark_form, is_inline, not_blocks, spaced};

/// Writes the nodes of the page of `file`, in the language of `messages`.
#[must_use]
pub fn write(file: &str, nodes: &[Node], map: &Map, messages: &Messages) -> String {
    let writer = Writer {
        file,
        map,
        messages,
    };
    let mut out = String::new();
    writer.blocks(nodes, &mut out);
    let trimmed = out.trim_end().len();
    out.truncate(trimmed);
    out.push('\n');
    out
}

/// Returns the address of a page as Markdown, on the placeholder of the base URL.
#[must_use]
pub fn address(page: &str) -> String {
    let page = if page.is_empty() { "index" } else { page };
    format!("{BASE_URL_PLACEHOLDER}/{}.md", encode(page))
}

/// Writes the Markdown of a page.
pub(super) struct Writer<'p> {
    file: &'p str,
    map: &'p Map,
    pub(super) messages: &'p Messages,
}

// === impl Writer ===

impl Writer<'_> {
    /// Writes blocks with blank lines between them; runs of inline nodes are paragraphs.
    pub(super) fn blocks(&self, nodes: &[Node], out: &mut String) {
        let mut line = String::new();
        for node in nodes {
            if is_inline(node) {
                self.inline(node, &mut line);
                continue;
            }
            paragraph(&mut line, out);
            self.block(node, out);
        }
        paragraph(&mut line, out);
    }

    pub(super) fn block(&self, node: &Node, out: &mut String) {
        match node {
            Node::Heading {
                level, children, ..
            } => self.heading((*level).into(), children, out),
            Node::Paragraph(children) if children.iter().all(is_inline) => {
                block(&not_blocks(&self.line(children)), out);
            }
            // A tag in a line may hold blocks.
            Node::Paragraph(children) => self.blocks(children, out),
            Node::Fence { info, code } => fence(info, &without_remarks(code), out),
            Node::Quote(children) => block(&prefixed(&self.inside(children), "> ", "> "), out),
            Node::List { start, items } => {
                let items = items.iter().map(|item| (item.checked, &*item.children));
                self.list(*start, items, out);
            }
            Node::Table(table) => self.table(table, out),
            Node::Rule => block("---", out),
            Node::Formula { tex, .. } => block(&format!("$$\n{}\n$$", tex.trim()), out),
            Node::Footnote { label, children } => {
                let text = prefixed(&self.inside(children), &format!("[^{label}]: "), "    ");
                block(&text, out);
            }
            Node::Element(element) => {
                if is_dark_form(element) || self.html(element, out) {
                    return;
                }
                match component::find(&element.name) {
                    Some(component) => (component.markdown)(self, element, out),
                    None => self.blocks(&spaced(element), out),
                }
            }
            inline => block(&not_blocks(&self.line(std::slice::from_ref(inline))), out),
        }
    }

    /// Writes a heading; it is one line.
    fn heading(&self, level: usize, children: &[Node], out: &mut String) {
        let text = self.line(&in_line(children));
        let lines = text.lines().map(str::trim);
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        block(&format!("{} {}", "#".repeat(level), lines.join(" ")), out);
    }

    pub(super) fn inside(&self, children: &[Node]) -> String {
        let mut inside = String::new();
        self.blocks(children, &mut inside);
        inside.trim_end().to_owned()
    }

    /// Writes the content of an element after `head`: in the same line, unless it begins with
    /// a block that needs a line of its own.
    pub(super) fn after(&self, head: &str, between: &str, children: &[Node]) -> String {
        let text = self.inside(children);
        let mut shown = children.iter().filter(|node| match node {
            Node::Text(text) => !text.trim().is_empty(),
            _ => true,
        });
        let is_line = shown.next().is_none_or(|first| match first {
            Node::Paragraph(line) => line.iter().all(is_inline),
            node => is_inline(node),
        });
        match text.is_empty() {
            true => head.to_owned(),
            false if head.is_empty() => text,
            false if is_line => format!("{head}{between}{text}"),
            false => format!("{head}\n\n{text}"),
        }
    }

    /// Writes the text of an attribute in bold as a block; nothing if it has no text.
    pub(super) fn bold_block(&self, text: Option<&str>, out: &mut String) {
        block(&bold(text), out);
    }

    /// Returns the title of an element in bold.
    pub(super) fn bold_label(&self, element: &Element, name: &str) -> String {
        match self.label(element, name) {
            text if text.is_empty() => text,
            // A text that is already bold gets no second marks.
            text if text.contains("**") => bold(element.words(name).as_deref()),
            text => format!("**{text}**"),
        }
    }

    fn list<'n>(
        &self,
        start: Option<u64>,
        items: impl Iterator<Item = (Option<bool>, &'n [Node])>,
        out: &mut String,
    ) {
        let mut text = String::new();
        for (n, (checked, children)) in items.enumerate() {
            let marker = match start {
                Some(start) => format!("{}. ", start.saturating_add(n as u64)),
                None => "- ".to_owned(),
            };
            let mut inside = self.inside(children);
            if let Some(checked) = checked {
                let mark = if checked { "[x] " } else { "[ ] " };
                inside.insert_str(0, mark);
            }
            let indent = " ".repeat(marker.len());
            text += &prefixed(&inside, &marker, &indent);
            text.push('\n');
        }
        block(text.trim_end(), out);
    }

    fn table(&self, table: &Table, out: &mut String) {
        let cells = |cells: &[Vec<Node>]| {
            let cells = cells.iter().map(|cell| match cell.iter().all(is_inline) {
                true => self.line(cell),
                false => self.cell(cell),
            });
            row(&cells.collect::<Vec<_>>())
        };
        let mut text = cells(&table.head);
        let rule = table.alignment.iter().map(|alignment| match alignment {
            Alignment::Unset => "---",
            Alignment::Left => ":--",
            Alignment::Center => ":-:",
            Alignment::Right => "--:",
        });
        text += &format!("| {} |\n", rule.collect::<Vec<_>>().join(" | "));
        text.extend(table.rows.iter().map(|row| cells(row)));
        block(text.trim_end(), out);
    }
}

/// A line break in a paragraph (CommonMark 0.31.2 §6.7).
const BREAK: &str = "  \n";

/// Returns the text of an attribute in bold; nothing if it has no text.
pub(super) fn bold(text: Option<&str>) -> String {
    match escaped(text.unwrap_or_default()) {
        text if text.is_empty() => text,
        text => format!("**{text}**"),
    }
}

/// Writes a row of a table.
fn row(cells: &[String]) -> String {
    let cells = cells.iter().map(|cell| {
        let lines = cell.split(BREAK).map(str::trim);
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        lines.join("<br>").replace('\n', " ").replace('|', "\\|")
    });
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

pub(super) fn block(text: &str, out: &mut String) {
    if !text.trim().is_empty() {
        out.push_str(text);
        out.push_str("\n\n");
    }
}

fn paragraph(line: &mut String, out: &mut String) {
    block(&not_blocks(std::mem::take(line).trim()), out);
}

pub(super) fn fence(info: &str, code: &str, out: &mut String) {
    let longest = code
        .lines()
        .map(|line| line.trim_start())
        .map(|line| line.len() - line.trim_start_matches('`').len())
        .max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    let Info {
        language, title, ..
    } = Info::parse(info);
    // CommonMark 0.31.2 §4.5: an info string after backticks has no backtick.
    let title = title.replace(['`', '\n'], "");
    let space = if title.is_empty() { "" } else { " " };
    let end = if code.ends_with('\n') { "" } else { "\n" };
    block(
        &format!("{fence}{language}{space}{title}\n{code}{end}{fence}"),
        out,
    );
}

/// Puts `first` before the first line and `next` before the others.
pub(super) fn prefixed(text: &str, first: &str, next: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for (n, line) in text.split('\n').enumerate() {
        if n > 0 {
            out.push('\n');
        }
        let prefix = if n == 0 { first } else { next };
        let prefix = if line.is_empty() {
            prefix.trim_end()
        } else {
            prefix
        };
        out.push_str(prefix);
        out.push_str(line);
    }
    out
}

#[cfg(test)]
mod tests;
