//! Checks documentation: finds the mistakes that a build would report, without building.
//!
//! Reading the documentation already reports mistakes; the check adds two things:
//!
//! * **References** ([`references`]). A reference without a scheme leads into the site. It is
//!   resolved as a browser does, against the directory of the page's file ("/" is the site's
//!   root). Its target is a page, a generated endpoint page, a file of the repository, or the
//!   source of a redirect. Anchors are looked up in the target page, as its HTML has them. A
//!   missing target is a warning: a page with a broken link is better than an old page.
//!   The links in descriptions of specifications ([`descriptions`]) are checked too, for the pages
//!   that show them.
//! * **Rendering** ([`check`]): unknown icons, addresses that pages may not link, formulas that
//!   cannot be read. The HTML writer reports these, so check and build agree.
//!
//! The anchors of a page over a limit, and of a heading that a script would make, are unknown:
//! a link to them is not reported.
//!
//! Sources: RFC 3986 §5.2 (resolution).

mod descriptions;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, closest};
use crate::docs::Docs;
use crate::docs::config::Image;
use crate::docs::config_link;
use crate::docs::link::{LINK, is_service_path, without_ending};
use crate::docs::navigation::has_scheme;
use crate::docs::navigation::tree::Page as Listed;
use crate::docs::page::snippet;
use crate::docs::reference::relative;
use crate::mdx::anchor::Anchors;
use crate::mdx::{Reference, ReferenceKind, Span};
use crate::render::article::Source;
use crate::render::link::absolute;
use crate::site::percent::decode_or_keep;
use crate::source::{Kind, Tree, TreePath};

/// The rule about links to missing anchors.
pub const ANCHOR: &str = "anchor";
/// The rule about images without a file.
pub const IMAGE: &str = "image";
/// For how many broken links the closest page is searched.
const SUGGESTIONS_MAX: usize = 100;

/// Returns everything that a build reports in addition to reading.
#[must_use]
pub fn check(docs: &Docs, tree: &Tree) -> Vec<Diagnostic> {
    let mut found = references(docs, tree);
    found.extend(super::site::check(docs, tree));
    found
}

/// Checks the references of pages and configuration.
#[must_use]
pub fn references(docs: &Docs, tree: &Tree) -> Vec<Diagnostic> {
    let mut checker = Checker::new(docs, tree);
    checker.pages();
    checker.descriptions();
    checker.images();
    checker.found.extend(config_link::check(docs, tree));
    checker.found
}

/// Returns all links to anchors of pages, each with its verdict.
#[must_use]
pub fn anchors(docs: &Docs, tree: &Tree) -> Vec<AnchorLink> {
    let mut checker = Checker::new(docs, tree);
    checker.pages();
    checker.descriptions();
    checker.anchors
}

/// A link to an anchor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AnchorLink {
    /// The URL path of the page that contains it.
    pub from: Box<str>,
    /// The URL path of the page that it leads to.
    pub to: Box<str>,
    /// The anchor.
    pub anchor: Box<str>,
    /// Whether the anchor exists.
    pub verdict: Verdict,
}

/// Whether an anchor exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It exists.
    Found,
    /// It does not exist.
    Missing,
    /// The page cannot be read, or has an anchor that only a script can make.
    Unknown,
}

struct Checker<'d> {
    docs: &'d Docs,
    tree: &'d Tree,
    /// All pages, by URL path.
    urls: HashMap<&'d str, &'d Listed>,
    /// The anchors, made on demand, of pages that show a part of a specification.
    endpoints: HashMap<&'d str, Option<Arc<Anchors>>>,
    /// The files that are published, by their path from the documentation's root.
    published: HashSet<Box<str>>,
    /// The results of earlier look-ups: whether a path is a file.
    known: HashMap<TreePath, bool>,
    /// The texts of snippets with a broken reference.
    snippets: HashMap<Box<str>, Arc<str>>,
    /// The reported problems of snippets: a snippet may be shown on many pages.
    reported: HashSet<(Box<str>, u32, Box<str>)>,
    suggestions: usize,
    anchors: Vec<AnchorLink>,
    found: Vec<Diagnostic>,
}

/// The page that has a reference.
#[derive(Clone, Copy)]
struct From<'p> {
    /// Its file. A generated page has the name that an author would give it.
    file: &'p TreePath,
    /// Its path in URLs.
    url: &'p str,
}

/// Counts lines forwards and starts again if it must go back, which is rare.
struct Lines<'t> {
    text: &'t str,
    at: usize,
    line: u32,
    start: usize,
}

// === impl Lines ===

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            line: 1,
            start: 0,
        }
    }

    fn locate(&mut self, at: usize) -> (u32, u32) {
        if at < self.at {
            *self = Self::of(self.text);
        }
        for found in memchr::memchr_iter(b'\n', &self.text.as_bytes()[self.at..at]) {
            self.line += 1;
            self.start = self.at + found + 1;
        }
        self.at = at;
        let column = self.text[self.start..at].chars().count() + 1;
        (self.line, u32::try_from(column).unwrap_or(u32::MAX))
    }
}

// === impl Checker ===

impl<'d> Checker<'d> {
    fn new(docs: &'d Docs, tree: &'d Tree) -> Self {
        let pages = docs.navigation.pages.iter();
        Self {
            docs,
            tree,
            urls: pages
                .map(|page| (page.url.trim_matches('/'), page))
                .collect(),
            endpoints: HashMap::new(),
            published: super::site::published_files(docs, tree),
            known: HashMap::new(),
            snippets: HashMap::new(),
            reported: HashSet::new(),
            suggestions: 0,
            anchors: Vec::new(),
            found: Vec::new(),
        }
    }

    fn pages(&mut self) {
        for page in self.docs.pages.iter() {
            let Ok(read) = &page.read else {
                continue;
            };
            let mut lines = Lines::of(&page.text);
            let url = page.url();
            let from = From {
                file: &page.path,
                url: &url,
            };
            for reference in &read.outline.references {
                self.reference(from, &read.files, reference, &mut lines);
            }
        }
    }

    fn reference(
        &mut self,
        from: From<'_>,
        files: &[Box<str>],
        reference: &Reference,
        lines: &mut Lines<'_>,
    ) {
        let target = &*reference.target;
        if !is_inside(target) {
            return;
        }
        let outcome = match reference.kind {
            ReferenceKind::Link => self.link(from, target),
            ReferenceKind::Image => self.image(from, target),
        };
        let Err(broken) = outcome else {
            return;
        };
        let Span { file, start, .. } = reference.span;
        let snippet = (file > 0).then(|| files.get(file as usize)).flatten();
        let (path, (line, column)) = match snippet {
            None => (from.file.clone(), lines.locate(start as usize)),
            Some(file) => {
                let Ok(path) = self.tree.docs_root().join(file) else {
                    return;
                };
                let text = self
                    .snippets
                    .entry(file.clone())
                    .or_insert_with(|| snippet::read(self.tree, file).unwrap_or_default().into());
                (path, Lines::of(text).locate(start as usize))
            }
        };
        let reported = (path.as_str().into(), start, broken.1.as_str().into());
        if snippet.is_some() && !self.reported.insert(reported) {
            return;
        }
        let length = u32::try_from(target.chars().count()).unwrap_or(u32::MAX);
        self.found
            .push(diagnostic(broken, path.as_str()).at(line, column, length));
    }

    fn link(&mut self, from: From<'_>, target: &str) -> Outcome {
        let (path, anchor) = match target.split_once('#') {
            Some((path, anchor)) => (path, Some(anchor)),
            None => (target, None),
        };
        let path = path.split('?').next().unwrap_or(path);
        if path.is_empty() {
            return anchor.map_or(Ok(()), |anchor| self.anchor(from, from.url, anchor));
        }
        let resolved = self.on_site(from, path);
        let slug = without_ending(&resolved);
        if let Some(found) = self.docs.pages.at(slug) {
            return anchor.map_or(Ok(()), |anchor| self.anchor(from, &found.url(), anchor));
        }
        // `x/index` is the page `x`.
        let bare = slug.strip_suffix("/index").unwrap_or(slug);
        if let (Some(anchor), Some(listed)) = (anchor, self.urls.get(bare)) {
            return self.anchor(from, &listed.url, anchor);
        }
        if self.urls.contains_key(bare)
            || self.is_published(path, &resolved)
            || self.docs.redirects.matches(slug)
        {
            return Ok(());
        }
        if is_service_path(&resolved) {
            return Ok(());
        }
        if self.resolve(from, path).is_none() {
            let message = format!("`{target}` leads out of the documentation's root");
            return Err((LINK, message, None));
        }
        if self.is_file(&resolved) {
            let help = "the file exists, but it is ignored or of a kind that is not published";
            let message = format!("there is no page `/{slug}`");
            return Err((LINK, message, Some(help.into())));
        }
        let (is_file, what) = match super::site::is_of_published_kind(&resolved) {
            true => (true, "file"),
            false => (false, "page"),
        };
        let help = self.suggestion(is_file, if is_file { &resolved } else { slug });
        Err((LINK, format!("there is no {what} `/{slug}`"), help))
    }

    fn image(&mut self, from: From<'_>, target: &str) -> Outcome {
        let path = target.split(['#', '?']).next().unwrap_or(target);
        if path.is_empty() || target.starts_with("data:") {
            return Ok(());
        }
        match self.resolve(from, path) {
            Some(resolved) if self.is_published(path, &resolved) => Ok(()),
            Some(_) => Err((IMAGE, format!("there is no file `{path}`"), None)),
            // The file may be elsewhere in the repository.
            None if self.is_outside(from, path) => Ok(()),
            None => Err((IMAGE, format!("`{path}` leads out of the repository"), None)),
        }
    }

    /// Looks an anchor up in the page of a URL.
    fn anchor(&mut self, from: From<'_>, url: &str, anchor: &str) -> Outcome {
        let anchor = decode_or_keep(anchor);
        // The browser handles text fragments itself; `#` and `#top` are the top of the page.
        if anchor.is_empty() || anchor.starts_with(":~:") || anchor == "top" {
            return Ok(());
        }
        let path = url.trim_matches('/');
        let anchors = self.anchors_of(path);
        let verdict = match &anchors {
            Some(anchors) if anchors.contains(&anchor) => Verdict::Found,
            Some(anchors) if !anchors.has_unknown() => Verdict::Missing,
            _ => Verdict::Unknown,
        };
        self.anchors.push(AnchorLink {
            from: from.url.into(),
            to: format!("/{path}").into(),
            anchor: anchor.as_ref().into(),
            verdict,
        });
        let (Verdict::Missing, Some(anchors)) = (verdict, anchors) else {
            return Ok(());
        };
        let mut all: Vec<&str> = anchors.iter().collect();
        all.sort_unstable();
        let near = closest(&anchor, all);
        let help = near.map(|near| format!("did you mean `#{near}`?"));
        let file = match self.docs.pages.at(path) {
            Some(page) => page.path.to_string(),
            None => url.to_owned(),
        };
        Err((ANCHOR, format!("{file} has no heading `#{anchor}`"), help))
    }

    /// Returns the anchors of the page at a URL path; `None` if they are unknown.
    fn anchors_of(&mut self, path: &str) -> Option<Cow<'d, Anchors>> {
        let listed = self
            .urls
            .get_key_value(path)
            .map(|(path, page)| (*path, *page));
        match listed {
            Some((path, page)) if page.subject.is_some() => {
                let docs = self.docs;
                let make = || {
                    Source::of(docs, page)
                        .anchors()
                        .map(Cow::into_owned)
                        .map(Arc::new)
                };
                let anchors = self.endpoints.entry(path).or_insert_with(make);
                anchors
                    .as_ref()
                    .map(|anchors| Cow::Owned(Anchors::clone(anchors)))
            }
            _ => {
                let page = self.docs.pages.at(path)?;
                Some(Cow::Borrowed(&page.read.as_ref().ok()?.outline.anchors))
            }
        }
    }

    /// Returns whether a reference leads to a file that is published.
    fn is_published(&self, path: &str, resolved: &str) -> bool {
        // The author may also write the base path below which the site is served.
        let below = resolved.split_once('/').map(|(_, below)| below);
        let below = below.filter(|_| path.starts_with('/'));
        [Some(resolved), below]
            .into_iter()
            .flatten()
            .any(|path| self.published.contains(path))
    }

    /// Resolves a path as browsers do: `..` stops at the root of the site.
    fn on_site(&self, from: From<'_>, path: &str) -> String {
        let file = from.file.strip_prefix(self.tree.docs_root());
        absolute(file.unwrap_or_default(), &decode_or_keep(path))
    }

    /// Resolves a path against the file of a page to a path below the documentation's root;
    /// `None` if it leads out of the root.
    fn resolve(&self, from: From<'_>, path: &str) -> Option<String> {
        let decoded = decode_or_keep(path);
        let root = self.tree.docs_root();
        let directory = match decoded.strip_prefix('/') {
            Some(_) => root.clone(),
            None => from.file.parent().unwrap_or_default(),
        };
        let found = relative(&directory, decoded.trim_start_matches('/'))?;
        found.strip_prefix(root).map(str::to_owned)
    }

    fn is_outside(&self, from: From<'_>, path: &str) -> bool {
        let directory = from.file.parent().unwrap_or_default();
        let path = relative(&directory, &decode_or_keep(path));
        path.is_some_and(|path| {
            self.tree
                .lookup(&path)
                .is_ok_and(|found| found.kind == Kind::File)
        })
    }

    /// Returns whether a path below the documentation's root is a file.
    fn is_file(&mut self, path: &str) -> bool {
        let Ok(path) = self.tree.docs_root().join(path) else {
            return false;
        };
        if let Some(&known) = self.known.get(&path) {
            return known;
        }
        let is_file = self
            .tree
            .lookup(&path)
            .is_ok_and(|found| found.kind == Kind::File);
        self.known.insert(path, is_file);
        is_file
    }

    /// Returns help that names the page or the file that was probably meant.
    fn suggestion(&mut self, is_file: bool, name: &str) -> Option<String> {
        if self.suggestions == SUGGESTIONS_MAX {
            return None;
        }
        self.suggestions += 1;
        let near = match is_file {
            true => self.nearest_file(name),
            false => self.nearest_page(name),
        };
        Some(format!("did you mean `/{}`?", near?))
    }

    fn nearest_page<'s>(&'s self, slug: &'s str) -> Option<&'s str> {
        // The author also wrote the base path below which the site is served.
        let below = slug.split_once('/').map(|(_, below)| below);
        let page = slug
            .strip_suffix(".html")
            .or_else(|| slug.strip_suffix(".htm"));
        let page = page.map(|page| page.strip_suffix("/index").unwrap_or(page));
        let mut others = [below, page].into_iter().flatten();
        if let Some(page) = others.find(|page| self.urls.contains_key(page)) {
            return Some(page);
        }
        // The first page has no name that could be similar.
        let mut urls: Vec<&str> = self.urls.keys().copied().collect();
        urls.retain(|url| !url.is_empty());
        urls.sort_unstable();
        let same = urls.iter().find(|url| url.eq_ignore_ascii_case(slug));
        same.copied().or_else(|| closest(slug, urls))
    }

    fn nearest_file(&self, path: &str) -> Option<&str> {
        let mut files: Vec<&str> = self.published.iter().map(|path| &**path).collect();
        files.sort_unstable();
        closest(path, files)
    }

    /// Checks the images that `docs.json` names.
    fn images(&mut self) {
        let config = &self.docs.config;
        let images: Vec<&Image> = config.logo.iter().chain(&config.favicon).collect();
        for image in images {
            for path in [&image.light, &image.dark] {
                if has_scheme(path) || self.is_file(path.trim_start_matches(['.', '/'])) {
                    continue;
                }
                let root = self.tree.docs_root();
                let Ok(file) = root.join(crate::docs::CONFIG) else {
                    continue;
                };
                let message = format!("there is no file `{path}`");
                let diagnostic = Diagnostic::warning(IMAGE, file.as_str(), message);
                if !self.found.contains(&diagnostic) {
                    self.found.push(diagnostic);
                }
            }
        }
    }
}

/// The rule, message and help of a broken reference.
type Broken = (&'static str, String, Option<String>);
type Outcome = Result<(), Broken>;

/// Makes the warning about a broken reference in a file.
fn diagnostic((rule, message, help): Broken, file: &str) -> Diagnostic {
    let diagnostic = Diagnostic::warning(rule, file, message);
    match help {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

/// Returns whether a reference leads into the site. An address with a placeholder, as in
/// `/${name}`, is written as it is, so it is checked as it is.
fn is_inside(target: &str) -> bool {
    !has_scheme(target) && !target.starts_with("//")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::{Options, read};

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let config = r#"{"name": "A", "navigation": {"pages": ["index"]},
            "redirects": [{"source": "/old/:x", "destination": "/guides/:x"}]}"#;
        let all = files.iter().copied().chain([("docs.json", config)]);
        let all = all.map(|(path, text)| {
            (
                TreePath::parse(path).unwrap(),
                bytes::Bytes::from(text.to_owned()),
            )
        });
        let tree = Tree::from_files(all, []);
        let (docs, mut found) = read(&tree, &Options::default());
        assert!(!found.iter().any(Diagnostic::is_error), "{found:?}");
        found.extend(check(&docs, &tree));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn valid_references_have_no_diagnostic() {
        let text = "# Top\n[a](/guides/start#go) [b](guides/start.md) [c](#top) [d](/old/x)\n\
            ![i](img.png) [e](https://x.y) [f](/guides) [g](/llms.txt) [h](mailto:a@b.c)\n\
            [i](/img.png) [j](?q=1) [k](/guides/start/)\n";
        let files = [
            ("index.mdx", text),
            ("guides/start.mdx", "## Go\n[up](../index.mdx) [same](#go)"),
            ("guides/index.mdx", ""),
            ("img.png", ""),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
    }

    #[test]
    fn a_link_to_a_file_that_is_not_published_is_reported() {
        let text = "[z](/$x/y) [a](/model.tla) [b](notes/x.pdf) [c](/docs/a.pdf) [d](../../../a.pdf) [e](../guides)";
        let files = [
            ("index.mdx", text),
            ("guides.mdx", ""),
            ("model.tla", ""),
            ("a.pdf", ""),
            ("notes/x.pdf", ""),
            (".waypostignore", "notes/\n"),
        ];
        let why = "the file exists, but it is ignored or of a kind that is not published";
        assert_eq!(
            found(&files),
            [
                "index.mdx:1:5: warning[link]: there is no page `/$x/y`".to_owned(),
                format!("index.mdx:1:16: warning[link]: there is no page `/model.tla` ({why})"),
                format!("index.mdx:1:32: warning[link]: there is no page `/notes/x.pdf` ({why})"),
            ]
        );
    }

    #[test]
    fn the_help_of_a_broken_link_names_the_page_that_was_meant() {
        let text =
            "[a](/P) [b](/guides/start.html) [c](/files/a.pdf) [d](/guides/index.html) [e](/q)";
        let files = [
            ("index.mdx", text),
            ("p.mdx", ""),
            ("guides/start.mdx", ""),
            ("guides/index.mdx", ""),
        ];
        assert_eq!(
            found(&files),
            [
                "index.mdx:1:5: warning[link]: there is no page `/P` (did you mean `/p`?)",
                "index.mdx:1:13: warning[link]: there is no page `/guides/start.html` (did you mean `/guides/start`?)",
                "index.mdx:1:37: warning[link]: there is no file `/files/a.pdf`",
                "index.mdx:1:55: warning[link]: there is no page `/guides/index.html` (did you mean `/guides`?)",
                "index.mdx:1:79: warning[link]: there is no page `/q` (did you mean `/p`?)",
            ]
        );
    }

    #[test]
    fn broken_references_are_reported_at_their_place() {
        let text = "é [a](/guides/strat)\n[b](/guides/start#og) ![c](none.png)\n\nimport X from '/snippets/x.mdx'\n\n[d](../../etc)";
        let files = [("index.mdx", text), ("guides/start.mdx", "## Go\n")];
        assert_eq!(
            found(&files),
            [
                "index.mdx:4:16: warning[snippet]: there is no snippet `/snippets/x.mdx`",
                "index.mdx:1:7: warning[link]: there is no page `/guides/strat` (did you mean `/guides/start`?)",
                "index.mdx:2:5: warning[anchor]: guides/start.mdx has no heading `#og` (did you mean `#go`?)",
                "index.mdx:2:28: warning[image]: there is no file `none.png`",
                "index.mdx:6:5: warning[link]: `../../etc` leads out of the documentation's root",
            ]
        );
    }
}
