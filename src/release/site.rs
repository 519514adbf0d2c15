//! The description of a site in its release (`site.json`), and the names of its other files.
//!
//! A build writes them; the index and the embedded origin read them.
//!
//! The names of pages and files in the release are made from their URLs. The [`SiteDescription`]
//! holds everything that these names do not say.
//!
//! | in the release | is served at |
//! |---|---|
//! | `pages/{path}.html`, `pages/index.html` | `/{path}`, `/` |
//! | `pages/{path}.md` | `/{path}.md`, and `/{path}` for clients that prefer Markdown |
//! | `assets/{path}` | `/{path}`: files of the repository |
//! | `static/{path}` | `/{path}`: styles, scripts |
//! | `texts/{path}` | `/{path}`: `llms.txt`, `llms-agents.txt`, `llms-full.txt`, `sitemap.xml`, `robots.txt` |
//! | `texts/{page}/rss.xml` | `/{page}/rss.xml`: the feed of a changelog |
//! | `texts/api-catalog` | `/.well-known/api-catalog` |
//! | `texts/_waypost/pages` | `/_waypost/pages`: the list of pages, for programs ([`pages`](super::pages)) |
//! | `404.html` | every path without a page |
//! | `404/{directory}.html` | the same below a directory |
//! | `search.index` | nowhere: questions are answered from it |
//! | `written-skill` | nowhere: the last text of a skill writer, for the next update |
//! | `search.html`, `search/{language}.html` | `/_waypost/search`, with results |

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::site::redirect::{self, Patterns};

/// The path of the description in a release.
pub const SITE_FILE: &str = "site.json";
/// The path of the search index in a release. It has no URL.
pub const SEARCH_FILE: &str = "search.index";
/// The path, in a release, of the text of a skill writer as the next update reads it. It has no URL.
pub const WRITTEN_SKILL_FILE: &str = "written-skill";
/// The directory, in URLs below the base path, of the files that pages load.
pub const STATIC: &str = "_waypost";
/// The path, in URLs below the base path, at which questions are asked ([`SEARCH_FILE`]).
pub const SEARCH: &str = "_waypost/search";
/// The path to which pages send votes whether they were helpful.
pub const HELPFUL: &str = "_waypost/helpful";
/// The id of the thanks for a vote on a page.
pub const THANKED: &str = "_thanked";
/// The placeholder for the question in a page of results, inside an attribute.
pub const SEARCH_QUERY_PLACEHOLDER: &str = "waypost-search-words";
/// The mark before the texts of the layout, where the results are inserted. The texts are the
/// message when nothing was found, a bar (`|`), and the text of the link to more results.
pub const SEARCH_RESULTS_START: &str = "<!--waypost-search-results:";
/// The mark after these texts.
pub const SEARCH_RESULTS_END: &str = "-->";
/// The path of the speculation rules, in URLs below the base path.
///
/// The rules say which links a browser may load before a click.
pub const SPECULATION: &str = "_waypost/speculation.json";
/// The beginning of the part of a page's HTML that has addresses of the site.
///
/// It is one uncompressed part of the page in brotli
/// ([`replace_stored`](crate::response::segments::replace_stored)): its address can be replaced
/// without compressing the page again.
pub const ADDRESSED_START: &str = "<meta property=\"og:url\" content=\"";
/// The beginning of the path of the frame that draws diagrams.
pub const DIAGRAM_FRAME: &str = "_waypost/diagram.";
/// The content security policy of that frame (CSP Level 3).
///
/// It allows the frame's own scripts and styles in markup, and no requests.
pub const DIAGRAM_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; \
     img-src data:; font-src data:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'self'; sandbox allow-scripts";
/// If the name of a file below [`STATIC`] begins with one of these, the name contains the digest of
/// the file.
const DIGEST_NAMED: [&str; 12] = [
    "site.",
    "authors.",
    "image.",
    "preview.",
    "app.",
    "try.",
    "finder.",
    "page.",
    "diagram.",
    "mermaid.",
    "geist.",
    "geist-mono.",
];
/// The name of the feed of a changelog, below its page.
const FEED: &str = "rss.xml";
/// The 404 page of the whole site.
const NOT_FOUND: &str = "404.html";
/// How many segments a directory may have that has its own 404 page.
pub const NOT_FOUND_DEPTH_MAX: usize = 4;
/// The version of the file that this program writes, and the highest that it reads.
const VERSION: u32 = 3;

/// Everything about a site that its file names do not say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteDescription {
    version: u32,
    /// The path of the first page of the site; empty if there is a page at the root.
    pub home: Box<str>,
    /// The redirects from old paths.
    redirects: Vec<Redirect>,
    /// Finds the redirect of a path.
    #[serde(skip)]
    patterns: Patterns,
    /// Sets of pages that are translations of each other. A release of version 1 has none.
    #[serde(default)]
    translations: Vec<Vec<Translation>>,
    /// The positions of all pages in `translations`, sorted by the path of the page.
    #[serde(skip)]
    by_path: Vec<(usize, usize)>,
    /// Pages, by path, with another canonical address: a URL, or `/` and the path of another
    /// page.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub canonical: BTreeMap<Box<str>, Box<str>>,
    /// Whether the HTML of pages has addresses of the site ([`ADDRESSED_START`]). Releases before
    /// version 3 have none.
    #[serde(default)]
    pub addressed: bool,
    /// The origins that scripts of pages may send requests to, each with the paths of these pages.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    /// Whether pages ask if they were helpful.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub votes: bool,
}

/// One page of a set of translations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Translation {
    /// The tag of its language (BCP 47).
    pub language: Box<str>,
    /// Its path, without leading slash.
    pub path: Box<str>,
    /// Whether readers without a matching language get this language.
    pub default: bool,
}

/// A redirect from an old path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redirect {
    /// The old path. It may contain `:name`, `:name*` and `*`.
    pub source: Box<str>,
    /// The target.
    pub destination: Box<str>,
    /// Whether the redirect is permanent.
    pub permanent: bool,
}

/// Why the description of a site cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnreadableDescription {
    /// The file is not the JSON that this program writes.
    #[error("read {SITE_FILE}")]
    Syntax(#[from] serde_json::Error),
    /// The file was written by a newer program.
    #[error("{SITE_FILE} has version {0}, this program reads up to {VERSION}")]
    Newer(u32),
}

// === impl SiteDescription ===

impl SiteDescription {
    /// Makes a description.
    #[must_use]
    pub fn new(home: &str, redirects: Vec<Redirect>) -> Self {
        let patterns = patterns(&redirects);
        Self {
            version: VERSION,
            home: home.into(),
            redirects,
            patterns,
            translations: Vec::new(),
            by_path: Vec::new(),
            canonical: BTreeMap::new(),
            addressed: true,
            servers: BTreeMap::new(),
            votes: false,
        }
    }

    /// Sets the translations: sets of pages with the same content in several languages.
    #[must_use]
    pub fn translated(self, translations: Vec<Vec<Translation>>) -> Self {
        let places = translations.iter().enumerate();
        let places = places.flat_map(|(at, set)| (0..set.len()).map(move |n| (at, n)));
        let mut by_path: Vec<_> = places.collect();
        by_path.sort_by_key(|(at, n)| &translations[*at][*n].path);
        Self {
            translations,
            by_path,
            ..self
        }
    }

    /// Returns the translations of the page at `path`, including the page itself.
    ///
    /// The list is empty if the page exists in one language only.
    #[must_use]
    pub fn translations(&self, path: &str) -> &[Translation] {
        let place = |(at, n): &(usize, usize)| &*self.translations[*at][*n].path;
        let found = self
            .by_path
            .binary_search_by(|known| place(known).cmp(path));
        found.map_or(&[], |found| &self.translations[self.by_path[found].0])
    }

    /// Reads the file.
    ///
    /// # Errors
    ///
    /// When the bytes are not a description, or have a newer version.
    pub fn parse(bytes: &[u8]) -> Result<Self, UnreadableDescription> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let Version { version } = serde_json::from_slice(bytes)?;
        if version > VERSION {
            return Err(UnreadableDescription::Newer(version));
        }
        let mut description: Self = serde_json::from_slice(bytes)?;
        description.patterns = patterns(&description.redirects);
        let translations = std::mem::take(&mut description.translations);
        Ok(description.translated(translations))
    }

    /// Returns the file's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers are JSON")
    }

    /// Returns the target of the redirect at a path, and whether the redirect is permanent.
    ///
    /// The path has no leading slash. An exact source has priority over a pattern, and an earlier
    /// pattern over a later one.
    ///
    /// ```
    /// use waypost::release::site::{SiteDescription, Redirect};
    ///
    /// let redirect = |source: &str, destination: &str| Redirect {
    ///     source: source.into(), destination: destination.into(), permanent: true,
    /// };
    /// let redirects = [redirect("/old/:page*", "/new/:page*"), redirect("/old/a", "/b")];
    /// let description = SiteDescription::new("", redirects.into());
    /// assert_eq!(description.redirect("old/x/y"), Some(("/new/x/y".to_owned(), true)));
    /// assert_eq!(description.redirect("old/a"), Some(("/b".to_owned(), true)));
    /// assert_eq!(description.redirect("older"), None);
    /// ```
    #[must_use]
    pub fn redirect(&self, path: &str) -> Option<(String, bool)> {
        let path = path.trim_end_matches('/');
        let redirect = &self.redirects[self.patterns.find(path)?];
        let source = redirect.source.trim_matches('/');
        let destination = match redirect::captures(source, path) {
            Some(captures) if source != path => captures.fill(&redirect.destination),
            _ => redirect.destination.to_string(),
        };
        Some((destination, redirect.permanent))
    }
}

fn patterns(redirects: &[Redirect]) -> Patterns {
    Patterns::new(redirects.iter().map(|redirect| &*redirect.source))
}

/// Returns the path of a file's page in URLs: without extension, and `x/index` becomes `x`.
///
/// ```
/// use waypost::release::site::page_of;
///
/// assert_eq!(page_of("guides/start.mdx"), "guides/start");
/// assert_eq!(page_of("guides/index.mdx"), "guides");
/// assert_eq!(page_of("index.mdx"), "");
/// ```
#[must_use]
pub fn page_of(file: &str) -> &str {
    let path = file.trim_end_matches('/');
    let path = path
        .strip_suffix(".mdx")
        .or_else(|| path.strip_suffix(".md"))
        .unwrap_or(path);
    match path.strip_suffix("index") {
        Some("") => "",
        Some(parent) => parent.strip_suffix('/').unwrap_or(path),
        None => path,
    }
}

/// Returns whether the name of a file below [`STATIC`] contains the digest of its bytes.
///
/// Such a file never changes.
#[must_use]
pub fn is_named_by_digest(name: &str) -> bool {
    DIGEST_NAMED.iter().any(|start| name.starts_with(start))
}

/// Returns the file in a release of the page at a path, as HTML (`html`) or Markdown (`md`).
#[must_use]
pub fn page_file(path: &str, extension: &str) -> String {
    let path = if path.is_empty() { "index" } else { path };
    format!("pages/{path}.{extension}")
}

/// Returns the path in URLs of the feed of a page, without leading slash.
#[must_use]
pub fn feed_path(page: &str) -> String {
    match page {
        "" => FEED.to_owned(),
        page => format!("{page}/{FEED}"),
    }
}

/// Returns whether a path in URLs may be the path of a feed.
#[must_use]
pub fn is_feed(path: &str) -> bool {
    let before = path.strip_suffix(FEED);
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Returns the file in a release of the page of search results, of the whole site or in a
/// language given by its BCP 47 tag.
#[must_use]
pub fn search_page_file(language: Option<&str>) -> String {
    match language {
        None => "search.html".to_owned(),
        Some(tag) => format!("search/{tag}.html"),
    }
}

/// Returns the file in a release of the 404 page for a directory.
///
/// The empty directory means the 404 page of the site.
#[must_use]
pub fn not_found_file(directory: &str) -> String {
    match directory {
        "" => NOT_FOUND.to_owned(),
        directory => format!("404/{directory}.html"),
    }
}

/// Returns the files that may hold the 404 page for a path, the nearest directory first.
pub fn not_found_files(path: &str) -> impl Iterator<Item = String> {
    let ends = path.match_indices('/').map(|(at, _)| at);
    let ends = ends.chain([path.len()]).take(NOT_FOUND_DEPTH_MAX);
    let ends: Vec<usize> = ends.collect();
    let directories = ends.into_iter().rev().map(|end| &path[..end]);
    directories.chain([""]).map(not_found_file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_not_found_page_comes_first_for_paths_of_any_length() {
        let files = |path: &str| not_found_files(path).collect::<Vec<_>>();
        assert_eq!(files("a"), ["404/a.html", "404.html"]);
        let long = "a/b/c/d/".to_owned() + &"e/".repeat(1000);
        let four = [
            "404/a/b/c/d.html",
            "404/a/b/c.html",
            "404/a/b.html",
            "404/a.html",
        ];
        assert_eq!(files(&long)[..4], four);
        assert_eq!(files(&long)[4..], ["404.html"]);
    }

    fn redirected(source: &str, destination: &str, path: &str) -> Option<String> {
        let redirect = Redirect {
            source: source.into(),
            destination: destination.into(),
            permanent: false,
        };
        let description = SiteDescription::new("", vec![redirect]);
        description.redirect(path).map(|(to, _)| to)
    }

    #[test]
    fn a_redirect_ignores_slashes_at_the_ends() {
        assert_eq!(redirected("/a", "/b", "a/").as_deref(), Some("/b"));
        assert_eq!(redirected("/a/:x", "/b", "a/"), None);
        assert_eq!(
            redirected("/a/:x", "/b/:x", "a/c/").as_deref(),
            Some("/b/c")
        );
    }

    #[test]
    fn a_description_reads_back_and_a_later_version_is_rejected() {
        let page = |language: &str, path: &str| Translation {
            language: language.into(),
            path: path.into(),
            default: language == "en",
        };
        let sets = vec![
            vec![page("en", "z"), page("fr", "fr/z")],
            vec![page("en", ""), page("fr", "fr")],
        ];
        let description = SiteDescription::new("a", Vec::new()).translated(sets.clone());
        let read = SiteDescription::parse(&description.to_bytes()).unwrap();
        assert_eq!(read, description);
        for set in &sets {
            for page in set {
                assert_eq!(read.translations(&page.path), set);
            }
        }
        assert!(read.translations("fr/a").is_empty());
        let earlier =
            SiteDescription::parse(br#"{"version":1,"home":"a","redirects":[]}"#).unwrap();
        assert!(earlier.translations("").is_empty() && !earlier.addressed);
        let later = br#"{"version":4,"more":1}"#;
        assert!(matches!(
            SiteDescription::parse(later),
            Err(UnreadableDescription::Newer(4))
        ));
    }
}
