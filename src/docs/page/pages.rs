//! All pages of the documentation.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::ignored::{self, Ignored};
use super::snippet::Snippets;
use super::{PAGE, Page, slug_of, url};
use crate::diagnostic::Diagnostic;
use crate::docs::config::{Config, Variables};
use crate::source::{Tree, TreePath};

/// How many bytes the file of a page may have; the longest real one has 1.1 MB.
pub const BYTES_MAX: u64 = 4 << 20;
/// How many pages there may be.
pub const COUNT_MAX: usize = 100_000;
/// Slugs whose URL or Markdown file the service itself uses.
const RESERVED: [&str; 2] = ["mcp", "skill"];
/// The rule about names in double braces.
pub const VARIABLE: &str = "variable";

/// The pages of the documentation.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    pages: Vec<Arc<Page>>,
    by_slug: HashMap<Box<str>, usize>,
    /// The ignored files that would otherwise be pages: by slug, their path below the
    /// documentation's root and the reason.
    ignored: HashMap<Box<str>, (Box<str>, ignored::Reason)>,
}

/// The source of a page that will be read.
pub(super) struct PageSource<'t> {
    pub(super) path: &'t TreePath,
    /// Its path from the documentation's root.
    pub(super) below: &'t str,
    pub(super) slug: String,
    pub(super) text: Arc<str>,
    /// Whether dollars may start a formula.
    pub(super) latex: bool,
}

// === impl Pages ===

impl Pages {
    /// Reads all pages of a tree.
    ///
    /// Variables are filled in. A page of `before` with the same path, the same text and the same
    /// imports is reused.
    #[must_use]
    pub fn read(
        tree: &Tree,
        ignored: &Ignored,
        config: &Config,
        before: &Self,
    ) -> (Self, Vec<Diagnostic>) {
        let variables = &config.variables;
        let latex = config.styling.latex.unwrap_or(true);
        let mut found = Vec::new();
        let mut sources = Vec::new();
        let mut left_out = HashMap::new();
        for path in tree.files_and_links() {
            let Some(below) = path.strip_prefix(tree.docs_root()) else {
                continue;
            };
            let Some(slug) = slug_of(below) else {
                continue;
            };
            if let Some(reason) = ignored.reason(below) {
                left_out.insert(slug.into(), (below.into(), reason));
                continue;
            }
            if sources.len() == COUNT_MAX {
                let message = format!(
                    "there are more than {COUNT_MAX} pages; this one and those after it are left out"
                );
                found.push(Diagnostic::error(
                    crate::syntax::LIMIT,
                    path.as_str(),
                    message,
                ));
                break;
            }
            let text = text_of(tree, path);
            let filled = text.and_then(|text| filled(path, text, variables, &mut found));
            match filled {
                Ok(text) => sources.push(PageSource {
                    path,
                    below,
                    slug,
                    text,
                    latex,
                }),
                Err(diagnostic) => found.push(*diagnostic),
            }
        }
        // The platform that sites move here from serves `x`, not `x/index`.
        let paths: HashMap<String, &TreePath> = sources
            .iter()
            .map(|written| (written.slug.clone(), written.path))
            .collect();
        sources.retain(|written| {
            let other = written.slug.strip_suffix("/index");
            let Some(other) = other.and_then(|slug| paths.get(slug)) else {
                return true;
            };
            let reason = ignored::Reason::SameUrl(other.as_str().into());
            let message = format!(
                "{other} has the same URL `{}`; this file is left out",
                url(&written.slug)
            );
            let diagnostic = Diagnostic::warning(PAGE, written.path.as_str(), message);
            found.push(diagnostic.help(reason.help(written.below)));
            left_out.insert(written.slug.as_str().into(), (written.below.into(), reason));
            false
        });
        let mut pages = Self {
            ignored: left_out,
            ..Self::default()
        };
        for page in read_all(&Snippets::new(tree, variables), &sources, before) {
            found.extend(page.found.iter().cloned());
            pages.insert(page, &mut found);
        }
        found.extend(pages.iter().filter_map(misplaced));
        (pages, found)
    }

    fn insert(&mut self, page: Arc<Page>, found: &mut Vec<Diagnostic>) {
        let index = self.pages.len();
        match self.by_slug.entry(page.slug.clone()) {
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(index);
                self.pages.push(page);
            }
            std::collections::hash_map::Entry::Occupied(entry) => {
                let other = &self.pages[*entry.get()].path;
                let message = format!(
                    "{other} has the same path `{}`; this file is left out",
                    page.slug
                );
                found.push(
                    Diagnostic::error(PAGE, page.path.as_str(), message)
                        .help("rename one of the two"),
                );
            }
        }
    }

    /// Returns the page of a slug.
    #[must_use]
    pub fn get(&self, slug: &str) -> Option<&Page> {
        self.by_slug.get(slug).map(|&index| &*self.pages[index])
    }

    /// Returns the page at a URL path without leading slash: the page `x`, or `x/index`.
    #[must_use]
    pub fn at(&self, path: &str) -> Option<&Page> {
        match path {
            "" => self.get("index"),
            _ => self
                .get(path)
                .or_else(|| self.get(&format!("{path}/index"))),
        }
    }

    /// Returns the ignored file that would otherwise be the page of a slug: its path below the
    /// documentation's root, and the reason.
    #[must_use]
    pub fn ignored(&self, slug: &str) -> Option<(&str, &ignored::Reason)> {
        let (path, reason) = self.ignored.get(slug)?;
        Some((path, reason))
    }

    /// Returns all pages, in the order of their files.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Page> {
        self.pages.iter().map(|page| &**page)
    }

    /// Returns the existing page if its file, its text and its imports have not changed.
    fn unchanged(&self, snippets: &Snippets<'_>, written: &PageSource<'_>) -> Option<&Arc<Page>> {
        let page = &self.pages[*self.by_slug.get(&*written.slug)?];
        let is_same = page.path == *written.path
            && *page.text == *written.text
            && page.latex == written.latex;
        (is_same && snippets.are(&page.loaded)).then_some(page)
    }
}

/// Returns an error if the URL of a page belongs to the service.
fn misplaced(page: &Page) -> Option<Diagnostic> {
    RESERVED.contains(&&*page.slug).then(|| {
        let message = format!("the service itself serves `/{}`", page.slug);
        let error = Diagnostic::error(PAGE, page.path.as_str(), message);
        error.help("give the page another name")
    })
}

/// Reads pages on all cores; pages are independent of each other.
fn read_all(snippets: &Snippets<'_>, sources: &[PageSource<'_>], before: &Pages) -> Vec<Arc<Page>> {
    sources
        .par_iter()
        .map(|written| match before.unchanged(snippets, written) {
            Some(page) => Arc::clone(page),
            None => Arc::new(Page::read(snippets, written)),
        })
        .collect()
}

fn text_of(tree: &Tree, path: &TreePath) -> Result<Arc<str>, Box<Diagnostic>> {
    let bytes = tree
        .read_at_most(path, BYTES_MAX)
        .map_err(|error| Diagnostic::error(PAGE, path.as_str(), error.to_string()))
        .map_err(Box::new)?;
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(Arc::from(text)),
        Err(error) => {
            let before = &bytes[..error.valid_up_to()];
            let line = memchr::memchr_iter(b'\n', before).count() + 1;
            let message = "the bytes here are not UTF-8";
            let rule = crate::docs::reference::ENCODING;
            let diagnostic = Diagnostic::error(rule, path.as_str(), message);
            let line = u32::try_from(line).unwrap_or(u32::MAX);
            Err(Box::new(diagnostic.at(line, 1, 0)))
        }
    }
}

/// Returns the text of a page with the values of the variables.
fn filled(
    path: &TreePath,
    text: Arc<str>,
    variables: &Variables,
    found: &mut Vec<Diagnostic>,
) -> Result<Arc<str>, Box<Diagnostic>> {
    for misspelled in variables.misspelled(&text) {
        let before = &text[..misspelled.at];
        let line = memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1;
        let column = before[before.rfind('\n').map_or(0, |at| at + 1)..]
            .chars()
            .count()
            + 1;
        let message = format!("`{}` is not one of the `variables`", misspelled.name);
        let diagnostic = Diagnostic::warning(VARIABLE, path.as_str(), message);
        let place = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        found.push(
            diagnostic
                .at(place(line), place(column), place(misspelled.name.len() + 4))
                .help(format!("did you mean `{}`?", misspelled.near)),
        );
    }
    let filled = variables.fill(&text);
    if filled.len() as u64 > BYTES_MAX {
        let message =
            format!("with the values of its variables the page is longer than {BYTES_MAX} bytes");
        return Err(Box::new(Diagnostic::error(PAGE, path.as_str(), message)));
    }
    Ok(match filled {
        Cow::Borrowed(_) => text,
        Cow::Owned(filled) => filled.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::page::{LIMIT, Mode};
    use crate::mdx::Rejected;

    fn pages(files: &[(&str, &str)]) -> (Pages, Vec<Diagnostic>) {
        let files = files.iter().map(|(path, text)| {
            (
                TreePath::parse(path).unwrap(),
                bytes::Bytes::from((*text).to_owned()),
            )
        });
        let tree = Tree::from_files(files, []);
        let tree = tree.with_docs_root(TreePath::parse("docs").unwrap());
        let ignored = Ignored::read(&tree);
        Pages::read(&tree, &ignored, &Config::default(), &Pages::default())
    }

    #[test]
    fn every_markdown_file_that_is_not_ignored_is_a_page() {
        let (pages, found) = pages(&[
            ("docs/index.mdx", ""),
            ("docs/guides/start.md", ""),
            ("docs/README.md", ""),
            ("docs/skill.md", ""),
            ("docs/snippets/a.mdx", ""),
            ("docs/.github/b.md", ""),
            ("docs/node_modules/x/c.md", ""),
            ("docs/old/d.md", ""),
            ("docs/.waypostignore", "old/\n"),
            ("other/e.mdx", ""),
        ]);
        let slugs: Vec<_> = pages.iter().map(|page| &*page.slug).collect();
        assert_eq!(slugs, ["guides/start", "index"]);
        assert_eq!(found, []);
    }

    #[test]
    fn a_symbolic_link_inside_the_root_is_a_page() {
        let path = |text: &str| TreePath::parse(text).unwrap();
        let links = [
            ("docs/api/start.mdx", "../../shared/start.mdx"),
            ("docs/secret.md", "../../../etc/passwd"),
            ("docs/old.md", "gone.md"),
            ("docs/README.md", "../../outside.md"),
        ];
        let tree = Tree::from_files(
            [(path("shared/start.mdx"), "---\ntitle: Begin\n---\n".into())],
            links.map(|(link, target)| (path(link), target.into())),
        );
        let tree = tree.with_docs_root(path("docs"));
        let (pages, found) = Pages::read(
            &tree,
            &Ignored::read(&tree),
            &Config::default(),
            &Pages::default(),
        );
        let page = pages.get("api/start").unwrap();
        assert_eq!(
            (&*page.title(), page.path.as_str()),
            ("Begin", "docs/api/start.mdx")
        );
        assert_eq!(pages.iter().len(), 1);
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "docs/old.md: error[page]: link docs/old.md leads to gone.md, which does not exist",
                "docs/secret.md: error[page]: link docs/secret.md leads out of the repository, \
                 to ../../../etc/passwd",
            ]
        );
    }

    #[test]
    fn two_files_of_one_slug_are_an_error() {
        let (pages, found) = pages(&[("docs/a.md", ""), ("docs/a.mdx", "")]);
        assert_eq!(pages.iter().len(), 1);
        assert_eq!(found[0].rule, PAGE);
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_an_error_with_its_line() {
        let path = TreePath::parse("a.md").unwrap();
        let tree = Tree::from_files([(path, bytes::Bytes::from_static(b"a\n\xff"))], []);
        let (_, found) = Pages::read(
            &tree,
            &Ignored::read(&tree),
            &Config::default(),
            &Pages::default(),
        );
        assert_eq!(found[0].location.unwrap().line, 2);
    }

    #[test]
    fn a_page_is_read_again_when_its_text_or_its_file_has_changed() {
        let faulty = "---\ntitle: A\ntitle: B\n---\n";
        let (before, diagnostics) = pages(&[
            ("docs/a.md", faulty),
            ("docs/b.md", "b"),
            ("docs/c.md", "c"),
        ]);
        let files = [
            ("docs/a.md", faulty),
            ("docs/b.md", "B"),
            ("docs/c.mdx", "c"),
        ];
        let files = files.map(|(path, text)| (TreePath::parse(path).unwrap(), text.into()));
        let tree = Tree::from_files(files, []).with_docs_root(TreePath::parse("docs").unwrap());
        let (now, found) = Pages::read(&tree, &Ignored::read(&tree), &Config::default(), &before);
        let same = |n: usize| Arc::ptr_eq(&now.pages[n], &before.pages[n]);
        assert_eq!([same(0), same(1), same(2)], [true, false, false]);
        // A reused page reports its problems again.
        assert_eq!((diagnostics.len(), &found), (1, &diagnostics));
        assert_eq!(&*now.get("b").unwrap().text, "B");
    }

    #[test]
    fn diagnostics_of_a_page_are_reported_when_it_is_read() {
        let (pages, found) = pages(&[
            ("docs/a.mdx", "---\ntitle: A\n---\n\n<Fancy />\n"),
            ("docs/b.mdx", &"<Note>".repeat(1000)),
            (
                "docs/c.mdx",
                "\n<Snippet file=\"none.mdx\" />\n<Snippet file=\"there.mdx\" />\n",
            ),
            ("docs/_snippets/there.mdx", "## There\n"),
        ]);
        let found: Vec<_> = found
            .iter()
            .map(|found| (found.rule, &*found.file, found.location.map(|at| at.line)))
            .collect();
        assert_eq!(
            found,
            [
                ("mdx-component", "docs/a.mdx", Some(5)),
                (LIMIT, "docs/b.mdx", None),
                ("snippet", "docs/c.mdx", Some(2)),
            ]
        );
        let read = pages.get("c").unwrap().read.as_ref().unwrap();
        assert!(read.outline.anchors.contains("there"));
        assert_eq!(
            pages.get("b").unwrap().read.as_ref().err(),
            Some(&Rejected::TooDeep)
        );
    }

    #[test]
    fn without_latex_dollars_are_text_and_the_page_is_read_again() {
        let path = TreePath::parse("a.mdx").unwrap();
        let tree = Tree::from_files([(path, "$x$ and $$y$$".into())], []);
        let read = |latex: Option<bool>, before: &Pages| {
            let mut config = Config::default();
            config.styling.latex = latex;
            let ignored = Ignored::read(&tree);
            let (pages, _) = Pages::read(&tree, &ignored, &config, before);
            let page = pages.get("a").unwrap().read.as_ref().unwrap();
            let text = crate::mdx::plain(&page.nodes);
            let has_formula = format!("{:?}", page.nodes).contains("Formula");
            (pages, text, has_formula)
        };
        let (before, _, has_formula) = read(None, &Pages::default());
        assert!(has_formula);
        let (_, text, has_formula) = read(Some(false), &before);
        assert_eq!((text.trim(), has_formula), ("$x$ and $$y$$", false));
    }

    #[test]
    fn an_unknown_mode_is_reported_and_counts_as_the_default() {
        let (pages, found) = pages(&[
            ("docs/a.mdx", "---\nmode: weird\n---\n"),
            ("docs/b.mdx", "---\nmode: default\n---\n"),
            ("docs/c.mdx", "---\nmode: wide\n---\n"),
        ]);
        let mode = |slug: &str| pages.get(slug).unwrap().meta.mode;
        assert_eq!(
            [mode("a"), mode("b"), mode("c")],
            [Mode::Default, Mode::Default, Mode::Wide]
        );
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "docs/a.mdx:2:7: warning[frontmatter]: there is no mode `weird`; the modes are `default`, `wide`, `center`, `custom` and `frame`"
            ]
        );
    }

    #[test]
    fn a_page_is_read_again_when_an_import_has_changed() {
        let read = |snippet: &str, before: &Pages| {
            let files = [
                ("a.mdx", "<Snippet file=\"s.mdx\" />"),
                ("b.mdx", "b"),
                ("snippets/s.mdx", snippet),
            ];
            let files =
                files.map(|(path, text)| (TreePath::parse(path).unwrap(), text.to_owned().into()));
            let tree = Tree::from_files(files, []);
            Pages::read(&tree, &Ignored::read(&tree), &Config::default(), before).0
        };
        let before = read("## One", &Pages::default());
        let same = read("## One", &before);
        let now = read("## Two", &before);
        let shared = |pages: &Pages| -> Vec<bool> {
            let both = pages.pages.iter().zip(&before.pages);
            both.map(|(one, other)| Arc::ptr_eq(one, other)).collect()
        };
        assert_eq!(
            (shared(&same), shared(&now)),
            (vec![true, true], vec![false, true])
        );
    }
}
