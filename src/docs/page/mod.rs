//! The Markdown files of the documentation, and the files that they import.
//!
//! A page is read once: its frontmatter ([`Meta`]), its body ([`crate::mdx`]) and the files
//! that it imports. The link check, HTML, Markdown, search and the generated skill all use
//! this value. A page over a limit has no tree: its source is shown, with a warning, and its
//! anchors are unknown.
//!
//! [`Pages`] are the `.mdx` and `.md` files of the documentation's root that are not ignored
//! ([`ignored`], which includes the repository's own README and similar files) and are not
//! snippets. A symbolic link with such a name is a page with the content of its target. A
//! link that leads out of the repository is an error. A link to a directory is not followed.
//!
//! A page's *slug* is its path without extension; its URL is `/` and the slug. The URL of
//! `x/index` is `/x`, and the URL of `index` is `/`.

pub mod ignored;
mod meta;
mod mode;
mod pages;
pub mod snippet;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use crate::diagnostic::Diagnostic;
use crate::frontmatter;
use crate::mdx::{self, Element, Node, Rejected};
use crate::source::TreePath;

pub use meta::{Meta, Related, Tag};
pub use mode::Mode;
use pages::PageSource;
pub use pages::{BYTES_MAX, COUNT_MAX, Pages, VARIABLE};
use snippet::{Loaded, Snippets};

/// How many entries of a changelog its feed has.
const UPDATES_MAX: usize = 50;
/// The rule about frontmatter that cannot be read.
pub const FRONTMATTER: &str = "frontmatter";
/// The rule about pages that cannot be read.
pub const PAGE: &str = "page";
/// The rule about pages over a limit.
pub const LIMIT: &str = "page-limit";

/// A page as its author wrote it.
#[derive(Debug)]
pub struct Page {
    /// Its file.
    pub path: TreePath,
    /// Its path from the documentation's root, without extension.
    pub slug: Box<str>,
    /// Its frontmatter.
    pub meta: Meta,
    /// Its content, or the reason why it could not be read.
    pub read: Result<mdx::Page, Rejected>,
    /// Its whole text.
    pub text: Arc<str>,
    /// The byte of the text at which the body starts.
    body: usize,
    /// Whether dollars may start a formula.
    latex: bool,
    /// The files that it imports.
    pub loaded: Box<[Loaded]>,
    /// The problems that were found while reading it.
    found: Vec<Diagnostic>,
}

// === impl Page ===

impl Page {
    /// Returns the path of its URL, from the root of the site.
    #[must_use]
    pub fn url(&self) -> String {
        url(&self.slug)
    }

    /// Reads a page; problems become diagnostics, and the rest is read.
    fn read(snippets: &Snippets<'_>, written: &PageSource<'_>) -> Self {
        let PageSource {
            path,
            below,
            slug,
            text,
            latex,
        } = written;
        let mut found = Vec::new();
        let (meta, body) = match frontmatter::read(text) {
            Ok(Some(frontmatter)) => {
                for key in &frontmatter.repeated {
                    let message = format!("the key `{}` is repeated", key.key);
                    let at = key.location;
                    let diagnostic = Diagnostic::warning(FRONTMATTER, path.as_str(), message);
                    found.push(diagnostic.at(at.line, at.column, at.length));
                }
                let meta = Meta::read(&frontmatter, path, &mut found);
                (meta, frontmatter.body_offset)
            }
            Ok(None) => (Meta::default(), 0),
            Err(invalid) => {
                found.push(invalid.diagnostic(FRONTMATTER, path.as_str()));
                (Meta::default(), 0)
            }
        };
        let title = meta.title.clone().unwrap_or_else(|| title_of(slug));
        let source = mdx::Source {
            file: below,
            // A first heading that repeats the title is removed, if the layout shows the title.
            title: if meta.mode.has_title() { &title } else { "" },
            text,
            body,
            latex: *latex,
        };
        let loaded = Mutex::new(Vec::new());
        let load = |path: &str| {
            let text = snippets.text(path);
            let digest = text.as_ref().map(|(_, digest)| *digest);
            let mut loaded = loaded.lock().unwrap_or_else(PoisonError::into_inner);
            loaded.push((path.into(), digest));
            text.map(|(text, _)| text)
        };
        // A panic in the reader must affect one page only.
        let read = catch_unwind(AssertUnwindSafe(|| mdx::read(&source, &load)));
        let read = read.unwrap_or(Err(Rejected::Failed));
        match &read {
            Ok(page) => {
                let in_repository = |found: &Diagnostic| {
                    let mut found = found.clone();
                    if let Ok(path) = snippets.root().join(&found.file) {
                        found.file = path.as_str().into();
                    }
                    found
                };
                found.extend(page.diagnostics.iter().map(in_repository));
            }
            Err(why) => {
                let message = format!(
                    "{why}; the page is shown as its source, and links on it and to its \
                     headings are not checked"
                );
                found.push(Diagnostic::warning(LIMIT, path.as_str(), message));
            }
        }
        Self {
            path: (*path).clone(),
            slug: slug.as_str().into(),
            meta,
            read,
            text: Arc::clone(text),
            body,
            latex: *latex,
            loaded: loaded
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner)
                .into(),
            found,
        }
    }

    /// Returns the entries of a changelog on the page: its `Update` elements, the first ones.
    #[must_use]
    pub fn updates(&self) -> Vec<&Element> {
        let mut found = Vec::new();
        if let Ok(page) = &self.read {
            gather_updates(&page.nodes, &mut found);
        }
        found.truncate(UPDATES_MAX);
        found
    }

    /// Returns the text after the frontmatter.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.text[self.body..]
    }

    /// Returns the title from the frontmatter, or a title made from the last segment of the
    /// path.
    #[must_use]
    pub fn title(&self) -> Box<str> {
        match &self.meta.title {
            Some(title) => title.clone(),
            None => title_of(&self.slug),
        }
    }
}

/// Collects `Update` elements; nodes are nested at most as deep as the reader of pages allows.
fn gather_updates<'n>(nodes: &'n [Node], found: &mut Vec<&'n Element>) {
    for node in nodes {
        if let Node::Element(element) = node {
            match &*element.name {
                "Update" => found.push(element),
                _ => gather_updates(&element.children, found),
            }
        }
    }
}

/// Returns the path of the URL of a slug.
#[must_use]
pub fn url(slug: &str) -> String {
    let slug = match slug.strip_suffix("index") {
        Some("") => "",
        Some(before) if before.ends_with('/') => &before[..before.len() - 1],
        _ => slug,
    };
    format!("/{slug}")
}

/// Makes a title from a slug: `get-started` becomes "Get started".
#[must_use]
pub fn title_of(slug: &str) -> Box<str> {
    let slug = slug.strip_suffix("/index").unwrap_or(slug);
    let last = slug.rsplit('/').next().unwrap_or(slug);
    words_of(last).unwrap_or_default()
}

/// Makes words of a segment of a path: `get-started` becomes "Get started"; `None` if it is
/// empty.
pub(super) fn words_of(segment: &str) -> Option<Box<str>> {
    let words = segment.replace(['-', '_'], " ");
    (!words.is_empty()).then(|| capitalised(&words).into())
}

/// Returns a text whose first letter is large.
pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// Returns the slug of a file that is a page, from its path below the documentation's root.
#[must_use]
pub fn slug_of(path: &str) -> Option<String> {
    // The skill file of the root is a document of its own.
    if path == "skill.md" {
        return None;
    }
    if is_snippet(path) {
        return None;
    }
    let slug = path
        .strip_suffix(".mdx")
        .or_else(|| path.strip_suffix(".md"))?;
    (!slug.is_empty()).then(|| slug.to_owned())
}

/// Snippets are parts of pages, not pages.
fn is_snippet(path: &str) -> bool {
    path.starts_with("snippets/") || path.starts_with("_snippets/") || path.contains("/_snippets/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_titles_follow_from_slugs() {
        for (slug, url, title) in [
            ("index", "/", "Index"),
            ("a/index", "/a", "A"),
            (
                "guides/get-started_now",
                "/guides/get-started_now",
                "Get started now",
            ),
            ("reindex", "/reindex", "Reindex"),
        ] {
            assert_eq!(super::url(slug), url);
            assert_eq!(&*title_of(slug), title);
        }
    }
}
