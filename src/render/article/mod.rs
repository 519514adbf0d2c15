//! An article: one page, read and written, whatever is in it.
//!
//! **Invariant (R6):** [`render`] always returns. A page that cannot be read is an article
//! that says so and an error in its diagnostics; it keeps no other page from being built.
//!
//! Sources: design section 2; the frontmatter keys that public documentation uses.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::diagnostic::Diagnostic;
use crate::frontmatter::{self, Mapping, Value};

use super::escape::Html;
use super::html::{self, Heading};
use super::link::{Map, page_of};
use super::markdown;
use super::mdx::{self, Load, Node, plain};

/// How many characters of a page's own text describe it when its author did not.
const DESCRIPTION_CHARS: usize = 160;

/// What the head of a page says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Its title; made of the file's name when it has none.
    pub title: String,
    /// What it is about.
    pub description: Option<String>,
    /// Its title in the sidebar.
    pub sidebar_title: Option<String>,
    /// A badge beside it.
    pub tag: Option<String>,
    /// An address that its entry in the sidebar leads to instead.
    pub url: Option<String>,
    /// How wide it is.
    pub mode: Mode,
    /// Whether it is left out of navigation, search and lists.
    pub hidden: bool,
    /// Whether search engines are asked to leave it out.
    pub noindex: bool,
    /// Words it is found by.
    pub keywords: Vec<String>,
    /// Whether only some may see it: then it is in no public output.
    pub restricted: bool,
    /// The endpoint it describes, as written.
    pub openapi: Option<String>,
}

/// How wide a page is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Sidebar, article, list of headings.
    #[default]
    Default,
    /// Without the list of headings.
    Wide,
    /// Without sidebar and list.
    Center,
    /// Nothing but the navigation bar around it.
    Custom,
}

/// A page as it was written and as it is shown.
#[derive(Debug)]
pub struct Article {
    /// The file, relative to the root of the docs.
    pub file: Box<str>,
    /// Its path in URLs, without leading slash.
    pub page: Box<str>,
    /// What its head says.
    pub head: Head,
    /// For people.
    pub html: Html,
    /// Its headings.
    pub headings: Vec<Heading>,
    /// For agents, the title included.
    pub markdown: String,
    /// The files of the site that it shows.
    pub assets: BTreeSet<Box<str>>,
    /// Its words, for search.
    pub text: String,
    /// What is wrong with it.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the head of a page.
#[must_use]
pub fn head(file: &str, text: &str) -> (Head, usize, Option<Diagnostic>) {
    let (mapping, body, found) = match frontmatter::read(text) {
        Ok(Some(read)) => (read.mapping, read.body_offset, None),
        Ok(None) => (Mapping::default(), 0, None),
        // What its author restricted must not be shown because it could not be read.
        Err(error) => {
            let found = error.diagnostic("page-frontmatter", file);
            let head = Head {
                title: title_of(file),
                restricted: true,
                ..Head::default()
            };
            return (head, 0, Some(found));
        }
    };
    let text = |key: &str| {
        let text = mapping.get(key).and_then(Value::scalar)?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let is = |key: &str| mapping.get(key).and_then(Value::as_bool) == Some(true);
    let keywords = mapping.get("keywords").and_then(Value::as_list);
    let head = Head {
        title: text("title").unwrap_or_else(|| title_of(file)),
        description: text("description"),
        sidebar_title: text("sidebarTitle"),
        tag: text("tag"),
        url: text("url"),
        mode: match text("mode").as_deref() {
            Some("wide") => Mode::Wide,
            Some("center") => Mode::Center,
            Some("custom" | "frame") => Mode::Custom,
            _ => Mode::Default,
        },
        hidden: is("hidden"),
        noindex: is("noindex"),
        keywords: keywords
            .unwrap_or_default()
            .iter()
            .filter_map(|word| Some(word.scalar()?.to_owned()))
            .collect(),
        restricted: mapping.get("groups").is_some(),
        openapi: text("openapi"),
    };
    (head, body, found)
}

/// Renders the page of `file`.
#[must_use]
pub fn render(file: &str, text: &str, map: &Map, load: &Load<'_>) -> Article {
    let (head, body, found) = head(file, text);
    let written = catch_unwind(AssertUnwindSafe(|| {
        write(file, &head, text, body, map, load)
    }));
    let mut article = match written {
        Ok(Ok(article)) => article,
        Ok(Err(refused)) => unreadable(file, head, &refused.to_string()),
        Err(_panic) => unreadable(file, head, "the page cannot be rendered"),
    };
    article.diagnostics.extend(found);
    article
}

fn write(
    file: &str,
    head: &Head,
    text: &str,
    body: usize,
    map: &Map,
    load: &Load<'_>,
) -> Result<Article, mdx::Refused> {
    let (before, text) = text.split_at(body);
    let line = 1 + u32::try_from(memchr::memchr_iter(b'\n', before.as_bytes()).count())
        .unwrap_or(u32::MAX);
    let (nodes, mut diagnostics) = if file.ends_with(".md") {
        (mdx::read_markdown(text)?, Vec::new())
    } else {
        let read = mdx::read(file, text, line, load)?;
        (read.nodes, read.diagnostics)
    };
    let nodes = without_title(nodes, &head.title);
    let page = page_of(file);
    let written = html::write(file, page, &nodes, map);
    diagnostics.extend(written.diagnostics);
    let words = plain(&nodes);
    let mut head = head.clone();
    head.description = head.description.or_else(|| summary(&nodes));
    let mut markdown = format!("# {}\n\n", head.title);
    if let Some(description) = &head.description {
        markdown += &format!("> {}\n\n", description.replace('\n', " "));
    }
    markdown += &markdown::write(file, &nodes, map);
    Ok(Article {
        file: file.into(),
        page: page.into(),
        head,
        html: written.html,
        headings: written.headings,
        markdown,
        assets: written.assets,
        text: words,
        diagnostics,
    })
}

fn unreadable(file: &str, head: Head, why: &str) -> Article {
    let mut html = Html::default();
    html.markup("<p>")
        .text("This page cannot be shown: ")
        .text(why)
        .markup(".</p>");
    Article {
        file: file.into(),
        page: page_of(file).into(),
        markdown: format!("# {}\n\nThis page cannot be shown: {why}.\n", head.title),
        head,
        html,
        headings: Vec::new(),
        assets: BTreeSet::new(),
        text: String::new(),
        diagnostics: vec![Diagnostic::error("page-limit", file, why)],
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

/// Makes a title of a file's name: `get-started.mdx` is "Get started".
#[must_use]
pub fn title_of(file: &str) -> String {
    let page = page_of(file);
    let name = page.rsplit('/').next().unwrap_or(page);
    let words = name.replace(['-', '_'], " ");
    let mut chars = words.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => "Home".to_owned(),
    }
}

#[cfg(test)]
mod tests;
