//! An article: one rendered page.
//!
//! **Invariant (R6):** [`render`] always returns. The article of a page that cannot be read shows
//! the source and the reason, and its diagnostics have a warning: a mistake on one page must not
//! prevent the publication of the others.

mod source;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};

use super::file::File;
use super::html::{self, Heading};
use super::link::{Map, Start};
use super::markdown;
use super::messages::Messages;
use crate::diagnostic::Diagnostic;
use crate::docs::page::LIMIT;
use crate::markup::Html;
use crate::mdx::{Node, Rejected, plain};
use crate::release::site::page_of;
use crate::watchdog;

pub use source::Source;

/// How many characters of its first paragraph describe a page without a description.
const DESCRIPTION_CHARS: usize = 160;
/// How many bytes of the source are shown for a page that cannot be read.
const SOURCE_BYTES_MAX: usize = 128 << 10;

/// A rendered page.
///
/// It can be serialised, without its diagnostics and its generated files other than stylesheets.
#[derive(Debug, Serialize, Deserialize)]
pub struct Article {
    /// Its path in URLs, without leading slash.
    pub page: Box<str>,
    /// Its title.
    pub title: Box<str>,
    /// The author's description, or else its first paragraph.
    pub summary: Option<String>,
    /// The HTML, for people.
    pub html: Html,
    /// Its headings.
    pub headings: Vec<Heading>,
    /// The Markdown, for agents, including the title.
    pub markdown: String,
    /// The files of the site that it uses.
    pub assets: BTreeSet<Box<str>>,
    /// The files that were generated for it.
    #[serde(with = "super::file::stylesheets")]
    pub files: Vec<File>,
    /// The problems that were found while rendering it.
    #[serde(skip)]
    pub diagnostics: Vec<Diagnostic>,
}

/// Renders a page: its author's content, its part of a specification, or both.
///
/// This function catches a panic while rendering.
#[must_use]
pub fn render(source: &Source<'_>, map: &Map) -> Article {
    let _working = watchdog::working_on(&source.file);
    let written = catch_unwind(AssertUnwindSafe(|| {
        let (nodes, found) = source.nodes()?;
        let mut article = write(source, &nodes, map);
        article.diagnostics.extend(found);
        Ok(article)
    }));
    match written {
        Ok(Ok(article)) => article,
        // `docs` has already reported why the page cannot be read.
        Ok(Err::<_, Rejected>(rejected)) => unreadable(source, &rejected.to_string(), Vec::new()),
        Err(_panic) => {
            let why = Rejected::Failed.to_string();
            let message = format!("{why}; the page is shown as its source");
            let found = Diagnostic::warning(LIMIT, &source.file, message);
            unreadable(source, &why, vec![found])
        }
    }
}

/// Finds the problems that rendering a page would report, without highlighting its code.
#[must_use]
pub fn check(source: &Source<'_>, map: &Map) -> Vec<Diagnostic> {
    let _working = watchdog::working_on(&source.file);
    let found = catch_unwind(AssertUnwindSafe(|| {
        let (nodes, cut) = source.nodes().ok()?;
        let start = Start::Page(page_of(&source.file));
        let messages = Messages::of(&source.language);
        let mut found = html::check(&source.file, start, &nodes, map, messages);
        found.extend(cut);
        Some(found)
    }));
    match found {
        Ok(found) => found.unwrap_or_default(),
        Err(_panic) => render(source, map).diagnostics,
    }
}

/// Writes the nodes of a page, read or generated.
fn write(source: &Source<'_>, nodes: &[Node], map: &Map) -> Article {
    let page = page_of(&source.file);
    let messages = Messages::of(&source.language);
    let written = html::write(
        &source.file,
        Start::Page(page),
        nodes,
        map,
        messages,
        source.has_title,
    );
    let described = source.description.map(ToOwned::to_owned);
    let mut markdown = format!("# {}\n\n", markdown::escaped(source.title));
    if let Some(description) = &described {
        markdown += &format!("> {}\n\n", description.replace('\n', " "));
    }
    markdown += &markdown::write(&source.file, nodes, map, messages);
    Article {
        page: page.into(),
        title: source.title.into(),
        summary: described.or_else(|| summary(introduction(source, nodes))),
        html: written.html,
        headings: written.headings,
        markdown,
        assets: written.assets,
        files: written.files,
        diagnostics: written.diagnostics,
    }
}

/// Shows the source of a page that cannot be read, up to [`SOURCE_BYTES_MAX`].
fn unreadable(source: &Source<'_>, why: &str, diagnostics: Vec<Diagnostic>) -> Article {
    let shown = &source.text[..source.text.floor_char_boundary(SOURCE_BYTES_MAX)];
    let mut html = Html::default();
    html.markup("<div class=trouble role=note><p>This page is shown as its author wrote it: ");
    html.text(why)
        .markup(".</p></div>\n<figure class=code><pre tabindex=0 class=wrapped><code>");
    html.text(shown).markup("</code></pre></figure>\n");
    Article {
        page: page_of(&source.file).into(),
        title: source.title.into(),
        summary: source.description.map(ToOwned::to_owned),
        html,
        headings: Vec::new(),
        markdown: format!("# {}\n\n{shown}\n", markdown::escaped(source.title)),
        assets: BTreeSet::new(),
        files: Vec::new(),
        diagnostics,
    }
}

/// Returns the nodes that may describe the page: the author's, and those of a specification before
/// its first heading. Texts after it describe parts, such as a response.
fn introduction<'n>(source: &Source<'_>, nodes: &'n [Node]) -> &'n [Node] {
    if source.is_by_hand() {
        return nodes;
    }
    let written = source.read.ok().flatten();
    let written = written.map_or(0, |page| page.nodes.len()).min(nodes.len());
    let is_heading = |node: &Node| matches!(node, Node::Heading { .. });
    let before = nodes[written..].iter().position(is_heading);
    &nodes[..before.map_or(nodes.len(), |before| written + before)]
}

/// Describes a page by its first paragraph.
fn summary(nodes: &[Node]) -> Option<String> {
    let text = nodes.iter().find_map(|node| match node {
        Node::Paragraph(children) => Some(plain(children)).filter(|text| !text.trim().is_empty()),
        _ => None,
    })?;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(DESCRIPTION_CHARS) {
        None => Some(text),
        Some((end, _)) => {
            let cut = text[..end].rfind(' ').unwrap_or(end);
            Some(format!("{}…", &text[..cut]))
        }
    }
}

#[cfg(test)]
mod tests;
