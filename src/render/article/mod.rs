//! An article: one page, read and written, whatever is in it.
//!
//! **Invariant (R6):** [`render`] always returns. A page that cannot be read is an article
//! that shows its source and says why, and a warning in its diagnostics: a mistake on one
//! page is no reason to hold back what changed on all others.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};

use crate::diagnostic::Diagnostic;
use crate::frontmatter;

use super::endpoint::{self, Subject};
use super::escape::Html;
use super::file::File;
use super::html::{self, Heading};
use super::link::{Map, Start};
use super::markdown;
use super::messages::Messages;
use crate::mdx::{self, Load, Node, plain};
use crate::release::site::page_of;

/// How many characters of a page's own text describe it when its author did not.
const DESCRIPTION_CHARS: usize = 160;
/// How much is shown of the source of a page that cannot be read.
const SOURCE_BYTES_MAX: usize = 128 << 10;

/// A page as it was written and as it is shown. It can be kept, without the files that were
/// made for it and what is wrong with it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Article {
    /// Its path in URLs, without leading slash.
    pub page: Box<str>,
    /// Its title.
    pub title: Box<str>,
    /// What it is about: its author's words, or its first paragraph.
    pub summary: Option<String>,
    /// For people.
    pub html: Html,
    /// Its headings.
    pub headings: Vec<Heading>,
    /// For agents, the title included.
    pub markdown: String,
    /// The files of the site that it shows.
    pub assets: BTreeSet<Box<str>>,
    /// The files that were made for it.
    #[serde(skip)]
    pub files: Vec<File>,
    /// What is wrong with it.
    #[serde(skip)]
    pub diagnostics: Vec<Diagnostic>,
}

/// What is rendered, and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Source<'p> {
    /// The file, relative to the root of the docs.
    pub file: &'p str,
    /// The page's title.
    pub title: &'p str,
    /// A line about it.
    pub description: Option<&'p str>,
    /// The BCP 47 tag of its language; empty when that is not known.
    pub language: &'p str,
    /// The whole text of the file.
    pub text: &'p str,
}

/// Renders a page.
#[must_use]
pub fn render(source: &Source<'_>, map: &Map, load: &Load<'_>) -> Article {
    caught(source, map, load, Vec::new)
}

/// Renders a page with what a specification says about its subject below what its author
/// wrote.
#[must_use]
pub fn render_subject(
    source: &Source<'_>,
    subject: Subject<'_>,
    map: &Map,
    load: &Load<'_>,
) -> Article {
    caught(source, map, load, || {
        endpoint::nodes(subject, source.language)
    })
}

/// Renders a page; `more` makes what stands below it. Nothing that happens in between
/// leaves this function.
fn caught(
    source: &Source<'_>,
    map: &Map,
    load: &Load<'_>,
    more: impl FnOnce() -> Vec<Node>,
) -> Article {
    let read = catch_unwind(AssertUnwindSafe(|| {
        let (mut nodes, diagnostics) = read(source, load)?;
        nodes.extend(more());
        Ok(write(source, nodes, diagnostics, map))
    }));
    match read {
        Ok(Ok(article)) => article,
        Ok(Err::<_, mdx::Refused>(refused)) => unreadable(source, &refused.to_string()),
        Err(_panic) => unreadable(source, "reading it failed in a way nobody thought of"),
    }
}

fn read(
    source: &Source<'_>,
    load: &Load<'_>,
) -> Result<(Vec<Node>, Vec<Diagnostic>), mdx::Refused> {
    // Whoever read the documentation has told what is wrong with the frontmatter.
    let body = match frontmatter::read(source.text) {
        Ok(Some(found)) => found.body_offset,
        _ => 0,
    };
    let (before, text) = source.text.split_at(body);
    if source.file.ends_with(".md") {
        return Ok((mdx::read_markdown(text)?, Vec::new()));
    }
    let lines = memchr::memchr_iter(b'\n', before.as_bytes()).count();
    let line = u32::try_from(lines + 1).unwrap_or(u32::MAX);
    let read = mdx::read(source.file, text, line, load)?;
    Ok((read.nodes, read.diagnostics))
}

/// Writes the nodes of a page, read or generated.
fn write(
    source: &Source<'_>,
    nodes: Vec<Node>,
    mut diagnostics: Vec<Diagnostic>,
    map: &Map,
) -> Article {
    let nodes = without_title(nodes, source.title);
    let page = page_of(source.file);
    let messages = Messages::of(source.language);
    let written = html::write(source.file, Start::Page(page), &nodes, map, messages);
    diagnostics.extend(written.diagnostics);
    let described = source.description.map(ToOwned::to_owned);
    let mut markdown = format!("# {}\n\n", source.title);
    if let Some(description) = &described {
        markdown += &format!("> {}\n\n", description.replace('\n', " "));
    }
    markdown += &markdown::write(source.file, &nodes, map, messages);
    Article {
        page: page.into(),
        title: source.title.into(),
        summary: described.or_else(|| summary(&nodes)),
        html: written.html,
        headings: written.headings,
        markdown,
        assets: written.assets,
        files: written.files,
        diagnostics,
    }
}

/// Shows the source of a page that cannot be read, as far as anybody would read on.
fn unreadable(source: &Source<'_>, why: &str) -> Article {
    let shown = &source.text[..source.text.floor_char_boundary(SOURCE_BYTES_MAX)];
    let mut html = Html::default();
    html.markup("<div class=trouble role=note><p>This page is shown as its author wrote it: ");
    html.text(why)
        .markup(".</p></div>\n<figure class=code><pre tabindex=0 class=wrapped><code>");
    html.text(shown).markup("</code></pre></figure>\n");
    let message = format!("{why}; the page is shown as its source");
    Article {
        page: page_of(source.file).into(),
        title: source.title.into(),
        summary: source.description.map(ToOwned::to_owned),
        html,
        headings: Vec::new(),
        markdown: format!("# {}\n\n{shown}\n", source.title),
        assets: BTreeSet::new(),
        files: Vec::new(),
        diagnostics: vec![Diagnostic::warning("page-limit", source.file, message)],
    }
}

/// Leaves out a first heading that repeats the title of the page.
fn without_title(mut nodes: Vec<Node>, title: &str) -> Vec<Node> {
    if let Some(Node::Heading {
        level: 1, children, ..
    }) = nodes.first()
        && plain(children).trim() == title
    {
        nodes.remove(0);
    }
    nodes
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
