//! What no single file can tell: whether what pages refer to is there.
//!
//! A reference without a scheme is one into the site. It is resolved as a browser does,
//! against the directory of the page's file ("/" is the site's root), and then is a page,
//! a generated endpoint page, a file of the repository, or the source of a redirect.
//! Anchors are looked up in the page they name. What is missing is a warning: a page with
//! a broken link is better than an old page.
//!
//! Sources: RFC 3986 §5.2 (resolution); design "URLs and links".

use std::collections::{HashMap, HashSet};

use crate::diagnostic::{Diagnostic, closest};
use crate::docs::Docs;
use crate::docs::config::Image;
use crate::docs::config_link;
use crate::docs::navigation::has_scheme;
use crate::docs::page::{Page, Reference, ReferenceKind};
use crate::docs::redirect;
use crate::docs::reference::relative;
use crate::site::percent::decode;
use crate::source::{Kind, Tree, TreePath};

/// The rule that a link without its page breaks.
pub const LINK: &str = "link";
/// The rule that a link without its anchor breaks.
pub const ANCHOR: &str = "anchor";
/// The rule that an image without its file breaks.
pub const IMAGE: &str = "image";
/// The rule that an import without its snippet breaks.
pub const SNIPPET: &str = "snippet";
/// For how many broken links the nearest page is looked for.
const SUGGESTIONS_MAX: usize = 100;

/// Checks what pages and configuration refer to.
#[must_use]
pub fn check(docs: &Docs, tree: &Tree) -> Vec<Diagnostic> {
    let generated = docs.navigation.pages.iter();
    let mut checker = Checker {
        docs,
        tree,
        urls: generated.map(|page| page.url.trim_matches('/')).collect(),
        known: HashMap::new(),
        suggestions: 0,
        found: Vec::new(),
    };
    for page in docs.pages.iter() {
        let mut lines = Lines::of(&page.text);
        for reference in &page.scan.references {
            checker.reference(page, reference, &mut lines);
        }
    }
    checker.images();
    checker.found.extend(config_link::check(docs, tree));
    checker.found
}

struct Checker<'d> {
    docs: &'d Docs,
    tree: &'d Tree,
    /// The paths of all pages' URLs.
    urls: HashSet<&'d str>,
    /// What was looked up before.
    known: HashMap<TreePath, bool>,
    suggestions: usize,
    found: Vec<Diagnostic>,
}

/// Counts lines, forwards only: references come in the order of the text, mostly.
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

impl Checker<'_> {
    fn reference(&mut self, page: &Page, reference: &Reference, lines: &mut Lines<'_>) {
        let target = &*reference.target;
        if has_scheme(target) || target.contains(['{', '}', '$']) {
            return;
        }
        let outcome = match reference.kind {
            ReferenceKind::Link => self.link(page, target),
            ReferenceKind::Image => self.image(page, target),
            ReferenceKind::Snippet => self.snippet(page, target),
        };
        let Err((rule, message, help)) = outcome else {
            return;
        };
        let (line, column) = lines.locate(reference.range.start);
        let length = u32::try_from(target.chars().count()).unwrap_or(u32::MAX);
        let diagnostic =
            Diagnostic::warning(rule, page.path.as_str(), message).at(line, column, length);
        self.found.push(match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        });
    }

    fn link(&mut self, page: &Page, target: &str) -> Outcome {
        let (path, anchor) = match target.split_once('#') {
            Some((path, anchor)) => (path, Some(anchor)),
            None => (target, None),
        };
        let path = path.split('?').next().unwrap_or(path);
        if path.is_empty() {
            return anchor.map_or(Ok(()), |anchor| in_page(page, anchor));
        }
        let Some(resolved) = self.resolve(page, path) else {
            return Err((
                LINK,
                format!("`{target}` leads out of the documentation's root"),
                None,
            ));
        };
        let slug = without_ending(&resolved);
        if let Some(found) = self.docs.pages.at(slug) {
            return match anchor {
                Some(anchor) if found.path != page.path => in_page(found, anchor),
                Some(anchor) => in_page(page, anchor),
                None => Ok(()),
            };
        }
        // `x/index` is the page `x`.
        let bare = slug.strip_suffix("/index").unwrap_or(slug);
        if self.urls.contains(bare)
            || self.is_file(&resolved)
            || redirect::matches(&self.docs.config.redirects, slug)
        {
            return Ok(());
        }
        if is_service_path(&resolved) {
            return Ok(());
        }
        Err((
            LINK,
            format!("there is no page `/{slug}`"),
            self.nearest(slug),
        ))
    }

    fn image(&mut self, page: &Page, target: &str) -> Outcome {
        let path = target.split(['#', '?']).next().unwrap_or(target);
        if path.is_empty() || target.starts_with("data:") {
            return Ok(());
        }
        match self.resolve(page, path) {
            Some(resolved) if self.is_file(&resolved) => Ok(()),
            Some(_) => Err((IMAGE, format!("there is no file `{path}`"), None)),
            // It may lie elsewhere in the repository.
            None if self.is_outside(page, path) => Ok(()),
            None => Err((IMAGE, format!("`{path}` leads out of the repository"), None)),
        }
    }

    fn snippet(&mut self, page: &Page, target: &str) -> Outcome {
        let candidates = [
            self.resolve(page, target),
            Some(format!("snippets/{}", target.trim_start_matches('/'))),
        ];
        let mut found = candidates.into_iter().flatten();
        if found.any(|path| self.is_file(&path)) || self.is_outside(page, target) {
            return Ok(());
        }
        Err((SNIPPET, format!("there is no snippet `{target}`"), None))
    }

    /// Resolves a path against the file of a page, to a path below the documentation's
    /// root; `None` when it leads out of that.
    fn resolve(&self, page: &Page, path: &str) -> Option<String> {
        let decoded = decode(path);
        let root = self.tree.docs_root();
        let directory = match decoded.strip_prefix('/') {
            Some(_) => root.clone(),
            None => page.path.parent().unwrap_or_default(),
        };
        let found = relative(&directory, decoded.trim_start_matches('/'))?;
        found.strip_prefix(root).map(str::to_owned)
    }

    fn is_outside(&self, page: &Page, path: &str) -> bool {
        let directory = page.path.parent().unwrap_or_default();
        let path = relative(&directory, &decode(path));
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

    fn nearest(&mut self, slug: &str) -> Option<String> {
        if self.suggestions == SUGGESTIONS_MAX {
            return None;
        }
        self.suggestions += 1;
        let near = closest(slug, self.urls.iter().copied())?;
        Some(format!("did you mean `/{near}`?"))
    }

    /// The images that `docs.json` names.
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

/// Rule, message and help of what is missing.
type Outcome = Result<(), (&'static str, String, Option<String>)>;

fn in_page(page: &Page, anchor: &str) -> Outcome {
    let anchor = decode(anchor);
    // A text fragment is the browser's affair; `#` alone is the top.
    if anchor.is_empty()
        || anchor.starts_with(":~:")
        || anchor == "top"
        || page.scan.has_anchor(&anchor)
    {
        return Ok(());
    }
    // Pages that describe an endpoint have anchors for its parts.
    if page.meta.openapi.is_some() {
        return Ok(());
    }
    let near = closest(&anchor, page.scan.anchors.iter().map(|anchor| &**anchor));
    let help = near.map(|near| format!("did you mean `#{near}`?"));
    Err((
        ANCHOR,
        format!("{} has no heading `#{anchor}`", page.path),
        help,
    ))
}

pub(super) fn without_ending(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    let bare = path
        .strip_suffix(".mdx")
        .or_else(|| path.strip_suffix(".md"));
    bare.unwrap_or(path)
}

/// Paths that the service answers beside pages.
pub(super) fn is_service_path(path: &str) -> bool {
    matches!(
        path,
        "llms.txt" | "llms-full.txt" | "skill.md" | "sitemap.xml" | "robots.txt" | "mcp"
    ) || path.starts_with(".well-known/")
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
        let (docs, errors) = read(&tree, &Options::default());
        assert_eq!(errors, []);
        let found = check(&docs, &tree);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn references_that_lead_somewhere_are_no_findings() {
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
    fn references_that_lead_nowhere_are_told_at_their_place() {
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
