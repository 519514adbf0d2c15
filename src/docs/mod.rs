//! Reads documentation: configuration, pages, specifications, navigation.
//!
//! [`read`] takes the tree of a repository and returns the configuration, the pages, the
//! specifications, and the navigation that connects them. It never fails: it returns as much
//! as it understood, and a list of all mistakes, found in one pass. `check` shows this list,
//! and a build with an error in it is not published.
//!
//! Specifications that are named by URL are fetched between two steps, [`parse`] and
//! [`Parsed::resolve`]; every file is still read only once.
//!
//! Links between pages, anchors and images are checked by `build::check`, because the anchors
//! of endpoints are made there.
//!
//! All functions here are pure: the same tree gives the same docs.

mod parsed;
pub mod reference;
pub mod schema;
pub mod config;
pub mod page;
pub mod openapi;
pub mod navigation;
pub mod published;
pub mod config_link;
pub mod link;
pub mod redirect;
pub mod removed;

use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, Location};
use crate::source::history::History;
use crate::source::{Kind, LookupError, Tree, TreePath};
use crate::syntax::{Diagnostics, Value, json};

use config::{Config, Indexing};
use config_link::ConfigLink;
use navigation::Navigation;
use openapi::Specification;
use page::Pages;
use page::ignored::Ignored;
use published::Published;
use redirect::Redirects;
use reference::OpenError;

pub use parsed::{Fetched, Needs, Parsed, parse};

/// The name of the configuration's file.
pub const CONFIG: &str = "docs.json";
/// The rule about documentation without configuration.
pub const NO_CONFIG: &str = "config";
/// The rule about documentation without pages.
pub const NO_PAGE: &str = "no-page";
/// The rule about pages without the day of their last change.
pub const NO_DAY: &str = "no-day";

/// Documentation that was read.
#[derive(Debug, Default)]
pub struct Docs {
    /// `docs.json` without its navigation.
    pub config: Config,
    /// The pages.
    pub pages: Pages,
    /// The navigation.
    pub navigation: Navigation,
    /// The redirects; chains are resolved.
    pub redirects: Redirects,
    /// The specifications that the navigation and the pages name.
    pub specifications: Vec<Specification>,
    /// The specifications that are published.
    pub published: Vec<Published>,
    /// The icons that `docs.json` names.
    pub icons: Vec<Icon>,
    /// The pictures that `docs.json` names for the images that a build draws.
    pub pictures: Vec<Picture>,
    /// The files that are ignored.
    pub ignored: Ignored,
    /// The links of `docs.json`.
    pub links: Vec<ConfigLink>,
    /// The days of the last commits that changed pages, by slug.
    days: HashMap<Box<str>, Box<str>>,
}

/// An icon that `docs.json` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icon {
    /// Its name, or its address.
    pub name: Box<str>,
    /// The file that names it.
    pub file: Box<str>,
    /// The place in that file.
    pub location: Location,
}

/// A setting of `docs.json` that names a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The key of the setting: `logo`, `favicon` or `thumbnails.background`, or `logo.light` and
    /// so on if it has one for each mode.
    pub key: &'static str,
    /// The file that has the setting.
    pub file: Box<str>,
    /// The place in that file.
    pub location: Location,
}

/// The options of reading documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Rules N1 and N2 warn instead of failing, whatever `docs.json` says.
    pub lenient: bool,
    /// How much is read.
    pub extent: Extent,
}

/// How much of the documentation is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    #[default]
    Everything,
    /// `docs.json` alone; every page that it names counts as present.
    Config,
}

// === impl Docs ===

impl Docs {
    /// Returns the file of a page, unless the page is generated.
    #[must_use]
    pub fn written(&self, page: &navigation::tree::Page) -> Option<&page::Page> {
        self.pages.get(&page.slug)
    }

    /// Returns the day on which a page was last changed, such as `2026-01-31`: the one of its
    /// frontmatter, or with `metadata.timestamp` the one of its last commit.
    #[must_use]
    pub fn updated(&self, page: &navigation::tree::Page) -> Option<&str> {
        let written = self.written(page)?;
        let committed = || self.days.get(&page.slug).map(|day| &**day);
        written.meta.updated.as_deref().or_else(committed)
    }

    /// Adds the days of a history to the pages whose authors wrote none. Returns how many pages
    /// still have none.
    fn add_days(&mut self, tree: &Tree, history: &History) -> usize {
        let mut undated = 0;
        for page in self.pages.iter().filter(|page| page.meta.updated.is_none()) {
            let day = tree
                .lookup(&page.path)
                .ok()
                .and_then(|found| history.day(&found.path));
            match day {
                Some(day) => {
                    self.days.insert(page.slug.clone(), day.into());
                }
                None => undated += 1,
            }
        }
        undated
    }

    /// Returns whether a page has a feed: it is a changelog that search engines may show.
    #[must_use]
    pub fn has_feed(&self, page: &navigation::tree::Page) -> bool {
        let written = self.written(page);
        self.is_found(page) && written.is_some_and(|written| !written.updates().is_empty())
    }

    /// Returns whether search engines may show a page, by its frontmatter and by `seo`.
    #[must_use]
    pub fn is_found(&self, page: &navigation::tree::Page) -> bool {
        let seo = &self.config.seo;
        let is_hidden = page.hidden && seo.indexing == Indexing::Navigable;
        page.public && !page.noindex && !is_hidden && !seo.hides(page.url.trim_start_matches('/'))
    }
}

/// Reads the documentation of a tree, with the specifications that are in it.
///
/// ```
/// use waypost::docs;
/// use waypost::source::{Tree, TreePath};
///
/// let config = r#"{"name": "Acme", "navigation": {"pages": ["index"]}}"#;
/// let tree = Tree::from_files(
///     [
///         (TreePath::parse("docs.json")?, config.into()),
///         (TreePath::parse("index.mdx")?, "# Welcome".into()),
///     ],
///     [],
/// );
/// let (docs, found) = docs::read(&tree, &docs::Options::default());
/// assert!(found.is_empty());
/// assert_eq!(&*docs.navigation.pages[0].url, "/");
/// # Ok::<(), waypost::source::InvalidTreePath>(())
/// ```
#[must_use]
pub fn read(tree: &Tree, options: &Options) -> (Docs, Vec<Diagnostic>) {
    parse(tree, options, &Pages::default()).resolve(tree)
}

/// Returns whether a tree has documentation: a `docs.json`, readable or not.
#[must_use]
pub fn has_documentation(tree: &Tree) -> bool {
    let path = tree.docs_root().join(CONFIG);
    let found = path.map(|path| tree.lookup(&path));
    !matches!(found, Err(_) | Ok(Err(LookupError::NotFound { .. })))
}

/// Returns whether a tree has a configuration in the older format only.
#[must_use]
pub fn is_older(tree: &Tree) -> bool {
    let older = tree.docs_root().join("mint.json").ok();
    let is_file = |older| {
        tree.lookup(&older)
            .is_ok_and(|found| found.kind == Kind::File)
    };
    !has_documentation(tree) && older.is_some_and(is_file)
}

/// Returns the error about a tree without `docs.json`.
#[must_use]
pub fn missing(tree: &Tree) -> Diagnostic {
    let path = tree.docs_root().join(CONFIG);
    let file = path.as_ref().map_or(CONFIG, TreePath::as_str);
    let message = format!("there is no `{CONFIG}`, so nothing would be served");
    explained(tree, Diagnostic::error(NO_CONFIG, file, message))
}

/// Returns the error about documentation without any page.
#[must_use]
pub fn without_pages(docs: &Docs, tree: &Tree) -> Option<Diagnostic> {
    let path = tree.docs_root().join(CONFIG).ok()?;
    let is_empty = docs.navigation.content.is_some() && docs.navigation.pages.is_empty();
    is_empty.then(|| {
        let message = "`navigation` has no page, so nothing would be served";
        Diagnostic::error(NO_PAGE, path.as_str(), message).help(
            "list the pages in `navigation`, or set `allow_empty` in the site's record to publish a site without pages",
        )
    })
}

/// Reads `docs.json` with the files it refers to.
fn config(tree: &Tree, diagnostics: &mut Diagnostics) -> Option<Value> {
    let path = tree.docs_root().join(CONFIG).ok()?;
    let file = match reference::open(tree, &path, diagnostics) {
        Ok(file) => file,
        Err(error) => {
            diagnostics.add(unreadable(tree, &path, &error));
            return None;
        }
    };
    let value = json::read(file, diagnostics)?;
    Some(reference::expand(tree, &path, value, diagnostics))
}

fn unreadable(tree: &Tree, path: &TreePath, error: &OpenError) -> Diagnostic {
    if let OpenError::Encoding { line } = error {
        let found = Diagnostic::error(reference::ENCODING, path.as_str(), error.to_string());
        return found.at(u32::try_from(*line).unwrap_or(u32::MAX), 1, 0);
    }
    let found = Diagnostic::error(
        NO_CONFIG,
        path.as_str(),
        format!("{CONFIG} cannot be read: {error}"),
    );
    explained(tree, found)
}

/// Says what to do about a missing `docs.json`.
fn explained(tree: &Tree, found: Diagnostic) -> Diagnostic {
    if is_older(tree) {
        return found.help(
            "there is a `mint.json`, the older format, which is not read: `waypost convert` writes \
             a `docs.json` from it; commit that file",
        );
    }
    found.help(
        "write a `docs.json` with `name` and `navigation`, or name the directory that has one",
    )
}

#[cfg(test)]
mod tests;
