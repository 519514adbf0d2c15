//! Links: resolves what authors write, and writes relative addresses.
//!
//! Authors write a link inside the site as a path from the root of the docs or from the
//! directory of their file, with or without extension, trailing slash or `/index`. The build
//! resolves it to a page and writes it relative to the page with the link, so that it works
//! under every domain and base path (**R5**).
//!
//! Sources: RFC 3986 §3.1, §4.2, §5.2.4.

use std::collections::{BTreeMap, BTreeSet};

use super::icon::Library;
use super::image::Form;
use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::docs::config_link::SCHEMES;
use crate::release::site::page_of;
use crate::site::Frames;
use crate::site::percent::{decode_or_keep, encode};

/// The possible targets of links inside a site.
#[derive(Clone, Debug, Default)]
pub struct Map {
    /// The paths in URLs of the pages, without leading slash; the root page is empty.
    pub pages: BTreeSet<Box<str>>,
    /// Other files that may be referenced, by path from the root of the docs.
    pub assets: BTreeMap<Box<str>, Asset>,
    /// The smaller form of the icon of the site, if it has one.
    pub icon: Option<Form>,
    /// The icon set that is searched first.
    pub library: Library,
    /// The hosts that pages may show in frames.
    pub frames: Frames,
    /// The colours of diagrams, as [`palette`](crate::render::layout::diagram_palette) writes them.
    pub palette: Box<str>,
}

/// A file that pages may show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asset {
    /// Width and height of an image, when they could be read.
    pub size: Option<(usize, usize)>,
    /// The smaller form of an image, if it has one.
    pub form: Option<Form>,
}

/// The base of relative links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start<'p> {
    /// A page, by its path in URLs.
    Page(&'p str),
    /// A page that is shown at any path: links begin with the placeholder of the base path.
    Anywhere,
}

/// The target of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A page of this site, with query and fragment.
    Page {
        /// Its path in URLs.
        page: Box<str>,
        /// Query and fragment as written, with their `?` and `#`.
        rest: Box<str>,
    },
    /// Another file of the site.
    Asset(Box<str>),
    /// A fragment or query of the same page.
    Here(Box<str>),
    /// An address outside of the site, with an allowed scheme.
    Elsewhere(Box<str>),
    /// A path of the site with neither page nor file.
    Unknown {
        /// The path.
        path: Box<str>,
        /// Query and fragment.
        rest: Box<str>,
    },
    /// An address with a scheme that is not allowed.
    Rejected,
}

// === impl Start ===

impl Start<'_> {
    /// Returns the address of a path of the site: relative to a page, or else after the
    /// placeholder of the base path.
    ///
    /// ```
    /// use waypost::render::link::Start;
    ///
    /// let start = Start::Page("guides/start");
    /// assert_eq!(start.to("guides/next"), "next");
    /// assert_eq!(start.to("api/keys"), "../api/keys");
    /// assert_eq!(start.to(""), "../");
    /// assert_eq!(Start::Page("start").to(""), "./");
    /// ```
    #[must_use]
    pub fn to(self, path: &str) -> String {
        match self {
            Self::Page(page) => relative(page, path),
            Self::Anywhere => format!("{BASE_URL_PLACEHOLDER}/{}", encode(path)),
        }
    }
}

// === impl Map ===

impl Map {
    /// Resolves a link on the page of `file`.
    #[must_use]
    pub fn resolve(&self, file: &str, href: &str) -> Target {
        // WHATWG URL: leading and trailing controls are stripped, tabs and newlines anywhere.
        let href: String = href
            .trim_matches(|c: char| c <= ' ')
            .chars()
            .filter(|c| !matches!(c, '\t' | '\n' | '\r'))
            .collect();
        if href.starts_with('#') {
            return Target::Here(href.into());
        }
        if href.starts_with("//") {
            return Target::Elsewhere(format!("https:{href}").into());
        }
        let end = href.find(['/', '?', '#']).unwrap_or(href.len());
        if let Some(colon) = href[..end].find(':') {
            let scheme = href[..colon].to_ascii_lowercase();
            return if SCHEMES.contains(&&*scheme) {
                Target::Elsewhere(href.into())
            } else {
                Target::Rejected
            };
        }
        let at = href.find(['?', '#']).unwrap_or(href.len());
        let (path, rest) = href.split_at(at);
        if path.is_empty() {
            return Target::Here(rest.into());
        }
        let found = self.find(&decode_or_keep(&absolute(file, path)), rest);
        // The author also wrote the base path below which the site is served.
        if let Target::Unknown { path: unknown, .. } = &found
            && path.starts_with('/')
            && let Some((_, below)) = unknown.split_once('/')
            && self.assets.contains_key(below)
        {
            return Target::Asset(below.into());
        }
        found
    }

    fn find(&self, path: &str, rest: &str) -> Target {
        if self.assets.contains_key(path) {
            return Target::Asset(path.into());
        }
        let page = page_of(path);
        if self.pages.contains(page) {
            return Target::Page {
                page: page.into(),
                rest: rest.into(),
            };
        }
        Target::Unknown {
            path: path.into(),
            rest: rest.into(),
        }
    }
}

/// Joins a path with the directory of the file that has the link; `..` stops at the root of
/// the docs.
#[must_use]
pub fn absolute(file: &str, path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    if !path.starts_with('/') {
        segments.extend(file.split('/'));
        segments.pop();
    }
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            other => segments.push(other),
        }
    }
    segments.join("/")
}

/// Returns the relative reference from a page to a path of the site.
fn relative(page: &str, to: &str) -> String {
    let mut from: Vec<&str> = page.split('/').collect();
    from.pop();
    let to: Vec<&str> = to.split('/').collect();
    // The last segment names the document and is always written.
    let (name, directory) = to.split_last().unwrap_or((&"", &[]));
    let common = from
        .iter()
        .zip(directory)
        .take_while(|(a, b)| a == b)
        .count();
    let mut out = "../".repeat(from.len() - common);
    for segment in &directory[common..] {
        out.push_str(&encode(segment));
        out.push('/');
    }
    out.push_str(&encode(name));
    // RFC 3986 §4.2, §4.4: an empty reference is the page itself, and a colon in the first
    // segment would end a scheme.
    if out.is_empty() || out.split('/').next().is_some_and(|s| s.contains(':')) {
        out.insert_str(0, "./");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> Map {
        Map {
            pages: ["", "guides", "guides/start", "api/keys"]
                .map(Into::into)
                .into(),
            assets: [("images/a b.png".into(), Asset::default())].into(),
            ..Map::default()
        }
    }

    #[track_caller]
    fn check(href: &str, expected: Target) {
        assert_eq!(map().resolve("guides/start.mdx", href), expected, "{href}");
    }

    fn page(page: &str, rest: &str) -> Target {
        Target::Page {
            page: page.into(),
            rest: rest.into(),
        }
    }

    #[test]
    fn every_spelling_of_a_page_is_resolved() {
        for href in [
            "/api/keys",
            "/api/keys/",
            "/api/keys.mdx",
            "../api/keys",
            "../api/./keys.md",
            "../../../api/keys",
        ] {
            check(href, page("api/keys", ""));
        }
        check("./", page("guides", ""));
        check("/index.mdx", page("", ""));
        check("/api/keys?a=b#c", page("api/keys", "?a=b#c"));
        check("#here", Target::Here("#here".into()));
        check("/images/a%20b.png", Target::Asset("images/a b.png".into()));
    }

    #[test]
    fn an_address_that_runs_code_is_rejected_in_any_spelling() {
        for href in [
            "javascript:alert(1)",
            " JavaScript:alert(1)",
            "java\nscript:alert(1)",
            "\u{1}javascript:alert(1)",
            "data:text/html,<script>",
            "vbscript:x",
            "blob:x",
        ] {
            check(href, Target::Rejected);
        }
        check("mailto:a@b.c", Target::Elsewhere("mailto:a@b.c".into()));
        check("//x.test/y", Target::Elsewhere("https://x.test/y".into()));
    }

    #[test]
    fn a_relative_link_is_resolved() {
        for (from, to) in [
            ("a", "b"),
            ("a/b", "a/c"),
            ("a/b/c", "a/d"),
            ("", "a/b"),
            ("a/b", ""),
            ("x/y", "z:1"),
        ] {
            let written = relative(from, to);
            assert_eq!(
                decode_or_keep(&absolute(from, &written)),
                to,
                "{from} {to} {written}"
            );
        }
    }
}
