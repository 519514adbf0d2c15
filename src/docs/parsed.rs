//! Documentation whose files have been read, before its navigation is resolved.
//!
//! Generated pages need the specifications, and some of these are named by URL. So reading
//! has two steps with a fetch between them: [`parse`] reads every file of the repository
//! once, [`Parsed::needs`] lists the URLs to fetch, and [`Parsed::resolve`] makes the [`Docs`]
//! when the fetched specifications are in the tree. A caller that fetches nothing uses
//! [`read`](super::read()) for both steps. The days on which pages were last changed need the
//! history of the commit, so they are read between the two steps, too.

use std::collections::HashMap;

use super::config::{self, Config, Variables};
use super::config_link::{self, ConfigLink};
use super::navigation::{self, Input};
use super::openapi::{self, is_url};
use super::page::Pages;
use super::page::ignored::Ignored;
use super::schema::Kind as _;
use super::{Docs, Extent, Icon, NO_DAY, Options, Picture, published, redirect};
use crate::diagnostic::{Diagnostic, count};
use crate::source::history::{End, History};
use crate::source::remote::Remote;
use crate::source::{Tree, TreePath};
use crate::syntax::{Data, Diagnostics, Span, SpanDiagnostic, Value};

/// Documentation whose files have been read.
#[derive(Debug)]
pub struct Parsed {
    options: Options,
    ignored: Ignored,
    /// `None` if only `docs.json` is read.
    pages: Option<Pages>,
    /// The value of `docs.json`; `None` when it cannot be read.
    root: Option<Value>,
    config: Config,
    diagnostics: Diagnostics,
}

/// What documentation needs besides the files of its commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The URLs of specifications.
    pub urls: Vec<Box<str>>,
    /// The files of pages that show the day of their last change and do not name it; paths without
    /// links. Empty unless `metadata.timestamp` is set.
    pub undated: Vec<TreePath>,
    /// The directory of the documentation.
    pub docs_root: TreePath,
}

/// Inputs that were fetched for documentation; `None` if none were needed or fetching is not
/// allowed.
#[derive(Debug, Default)]
pub struct Fetched {
    /// The specifications.
    pub remote: Option<Remote>,
    /// The days of the last changes.
    pub history: Option<History>,
}

/// Reads the files of the documentation.
///
/// A page of `before` with the same path, text and imports is reused.
#[must_use]
pub fn parse(tree: &Tree, options: &Options, before: &Pages) -> Parsed {
    let mut diagnostics = Diagnostics::default();
    let ignored = Ignored::read(tree);
    let mut root = super::config(tree, &mut diagnostics);
    if let Some(root) = &mut root {
        let variables = Variables::read(root.get("variables")).flatten();
        variables.unwrap_or_default().fill_config(root);
    }
    let config = root
        .as_ref()
        .map(|root| Config::of(root, &mut diagnostics))
        .unwrap_or_default();
    let pages = match options.extent {
        Extent::Everything => {
            let (pages, found) = Pages::read(tree, &ignored, &config, before);
            diagnostics.extend(found);
            Some(pages)
        }
        Extent::Config => None,
    };
    Parsed {
        options: *options,
        ignored,
        pages,
        root,
        config,
        diagnostics,
    }
}

// === impl Parsed ===

impl Parsed {
    /// Returns the URLs of specifications that `docs.json` and the pages name, each once, in the
    /// order in which they are written.
    #[must_use]
    pub fn urls(&self) -> Vec<Box<str>> {
        let mut urls: Vec<Box<str>> = Vec::new();
        let mut add = |text: &str| {
            if is_url(text) && !urls.iter().any(|known| **known == *text) {
                urls.push(text.into());
            }
        };
        if let Some(navigation) = self.root.as_ref().and_then(|root| root.get("navigation")) {
            gather(navigation, &mut add);
        }
        for (source, _) in &self.config.api.openapi {
            add(source);
        }
        for page in self.pages.iter().flat_map(Pages::iter) {
            for (text, _) in page.meta.openapi.iter().chain(&page.meta.openapi_schema) {
                text.split_whitespace()
                    .next()
                    .into_iter()
                    .for_each(&mut add);
            }
        }
        urls
    }

    /// Returns the inputs of the documentation that are not files of the tree.
    #[must_use]
    pub fn needs(&self, tree: &Tree) -> Needs {
        let pages = self
            .pages
            .iter()
            .flat_map(Pages::iter)
            .filter(|page| self.config.metadata.timestamp && page.meta.updated.is_none());
        Needs {
            urls: self.urls(),
            undated: pages
                .filter_map(|page| Some(tree.lookup(&page.path).ok()?.path))
                .collect(),
            docs_root: tree.docs_root().clone(),
        }
    }

    /// Resolves the navigation with the specifications of the tree, which may have been fetched
    /// after parsing. The list holds all mistakes with file and place.
    #[must_use]
    pub fn resolve(self, tree: &Tree) -> (Docs, Vec<Diagnostic>) {
        let Self {
            options,
            ignored,
            pages,
            root,
            config,
            mut diagnostics,
        } = self;
        let nothing = Value {
            span: Span::default(),
            data: Data::Null,
        };
        let navigation = root.as_ref().and_then(|root| root.get("navigation"));
        let mut specifications = openapi::Specifications::default();
        let navigation = navigation::compile(
            &Input {
                tree,
                ignored: &ignored,
                navigation: navigation.unwrap_or(&nothing),
                pages: pages.as_ref(),
                api: &config.api.openapi,
                mdx: &config.api.mdx,
                lenient: options.lenient || config.lenient,
            },
            &mut specifications,
            &mut diagnostics,
        );
        redirect::check(
            &config.redirects,
            &navigation,
            options.extent,
            &mut diagnostics,
        );
        let file = |span: Span| Box::from(diagnostics.files.path(span.file));
        let icons = root.as_ref().map(config::icons).unwrap_or_default();
        let icons = icons.into_iter().map(|(name, span)| Icon {
            name,
            file: file(span),
            location: diagnostics.files.locate(span),
        });
        let pictures = root.as_ref().map(config::pictures).unwrap_or_default();
        let pictures = pictures.into_iter().map(|(key, span)| Picture {
            key,
            file: file(span),
            location: diagnostics.files.locate(span),
        });
        let links = root.as_ref().map(config_link::find).unwrap_or_default();
        let links = links
            .into_iter()
            .map(|(href, span, in_navigation)| ConfigLink {
                href,
                file: file(span),
                location: diagnostics.files.locate(span),
                in_navigation,
            });
        let mut docs = Docs {
            links: links.collect(),
            icons: icons.collect(),
            pictures: pictures.collect(),
            redirects: redirect::resolve(&config.redirects, &navigation),
            config,
            pages: pages.unwrap_or_default(),
            navigation,
            specifications: specifications.into_all(),
            published: Vec::new(),
            days: HashMap::new(),
            ignored,
        };
        let setting = root
            .as_ref()
            .and_then(|root| root.get("metadata")?.get("timestamp"))
            .filter(|_| docs.config.metadata.timestamp);
        if let (Some(history), Some(setting)) = (tree.history(), setting) {
            let undated = docs.add_days(tree, history);
            if let Some((message, help)) = without_day(undated, history.end()) {
                let found = SpanDiagnostic::warning(NO_DAY, setting.span, message).help(help);
                diagnostics.push(found);
            }
        }
        docs.published = published::find(&docs, tree);
        (docs, diagnostics.finish())
    }
}

/// Says why pages have no day, and what to do about it.
fn without_day(pages: usize, end: &End) -> Option<(String, &'static str)> {
    let help = match end {
        // These pages are not committed yet.
        End::Complete => return None,
        End::Shallow => {
            "fetch all commits: `git fetch --unshallow`, or `fetch-depth: 0` in a workflow"
        }
        End::TooLong => "write `lastUpdatedDate` in the frontmatter of these pages",
        End::Unreadable(_) => "check the documentation in the working tree of its repository",
    };
    let pages = match pages {
        0 => return None,
        1 => "1 page has".to_owned(),
        pages => format!("{} have", count(pages, "page")),
    };
    Some((format!("{pages} no day of the last change: {end}"), help))
}

// === impl Needs ===

impl Needs {
    /// Returns whether nothing is needed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.urls.is_empty() && self.undated.is_empty()
    }
}

// === impl Fetched ===

impl Fetched {
    /// Adds the fetched inputs to the tree.
    #[must_use]
    pub fn into_tree(self, tree: Tree) -> Tree {
        let tree = match self.remote {
            Some(remote) => tree.with_remote(remote),
            None => tree,
        };
        match self.history {
            Some(history) => tree.with_history(history),
            None => tree,
        }
    }
}

/// Finds the texts that name a specification: the value of every `openapi`, and the first word of
/// entries such as `https://api.acme.com/openapi.json GET /pay`.
///
/// Values are nested at most [`DEPTH_MAX`](crate::syntax::DEPTH_MAX) deep.
fn gather(value: &Value, add: &mut impl FnMut(&str)) {
    for member in value.members() {
        match &*member.key {
            "openapi" => config::sources(&member.value)
                .iter()
                .for_each(|(source, _)| add(source)),
            _ => gather(&member.value, add),
        }
    }
    for item in value.items() {
        let mut words = item.text().unwrap_or_default().split_whitespace();
        if let (Some(first), Some(_method)) = (words.next(), words.next()) {
            add(first);
        }
        gather(item, add);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::TreePath;
    use crate::source::remote::Remote;

    const CONFIG: &str = r#"{"name": "Acme", "api": {"openapi": "https://a.test/root.json"},
        "navigation": {"tabs": [
            {"tab": "One", "openapi": "https://a.test/one.json"},
            {"tab": "Two", "openapi": {"source": "https://a.test/two.yaml", "directory": "two"}, "groups": [
                {"group": "G", "pages": ["index", "https://a.test/one.json GET /a", "https://a.test/four.json GET /a"]}]},
            {"tab": "Link", "href": "https://a.test/"}]}}"#;
    const SPECIFICATION: &str = r#"{"openapi": "3.1.0", "info": {"title": "A", "version": "1"},
        "paths": {"/a": {"get": {"summary": "Look"}}}}"#;

    const BOUND: &str = "---\nopenapi: https://a.test/five.json GET /a\n---\n";

    fn tree(config: &str, page: &str) -> Tree {
        let files = [("docs.json", config), ("index.mdx", page)];
        let files =
            files.map(|(path, text)| (TreePath::parse(path).unwrap(), text.to_owned().into()));
        Tree::from_files(files, [])
    }

    #[test]
    fn variables_are_filled_in_all_values_of_the_configuration() {
        let config = r#"{"name": "{{product}}", "variables": {"product": "Acme", "x": "{{product}}"},
            "banner": {"content": "{{product}} is new, {{other}}"}, "search": {"prompt": "Ask {{ product }}"},
            "navigation": {"pages": [{"group": "About {{product}}", "pages": ["index"]}]}}"#;
        let (docs, _) = parse(&tree(config, ""), &Options::default(), &Pages::default())
            .resolve(&tree(config, ""));
        assert_eq!(&*docs.config.name, "Acme");
        assert_eq!(
            &*docs.config.banner.unwrap().content,
            "Acme is new, {{other}}"
        );
        assert_eq!(docs.config.search.prompt.as_deref(), Some("Ask Acme"));
        assert_eq!(docs.config.variables.fill("{{x}}"), "{{product}}");
        assert_eq!(
            docs.navigation.pages[0].place.as_ref().unwrap().breadcrumb,
            ["About Acme".into()]
        );
    }

    #[test]
    fn each_url_of_a_specification_is_requested_once() {
        let parsed = parse(&tree(CONFIG, BOUND), &Options::default(), &Pages::default());
        let names = [
            "one.json",
            "two.yaml",
            "four.json",
            "root.json",
            "five.json",
        ];
        let urls = names.map(|name| format!("https://a.test/{name}").into_boxed_str());
        assert_eq!(parsed.urls(), urls);
    }

    #[test]
    fn specifications_that_were_fetched_after_parsing_make_pages() {
        let config = r#"{"name": "Acme", "navigation": {"groups": [
            {"group": "G", "openapi": "https://a.test/five.json"}, {"group": "H", "openapi": "https://a.test/six.json"}]}}"#;
        let tree = tree(config, "# Welcome");
        let parsed = parse(&tree, &Options::default(), &Pages::default());
        let fetched = parsed.urls().into_iter();
        let fetched: Remote = fetched.map(|url| (url, Ok(SPECIFICATION.into()))).collect();
        let (docs, found) = parsed.resolve(&tree.with_remote(fetched));
        assert_eq!(found, []);
        assert_eq!(docs.specifications.len(), 2);
        let urls: Vec<_> = docs
            .navigation
            .pages
            .iter()
            .map(|page| &*page.url)
            .collect();
        assert_eq!(urls, ["/api-reference/look", "/api-reference/look-1", "/"]);
    }

    #[test]
    fn reading_in_two_steps_gives_the_same_result() {
        let tree = tree(CONFIG, BOUND);
        let parsed = parse(&tree, &Options::default(), &Pages::default());
        let (docs, found) = parsed.resolve(&tree);
        let (at_once, found_at_once) = super::super::read(&tree, &Options::default());
        assert_eq!(found, found_at_once);
        assert_eq!(
            navigation::to_json(&docs.navigation),
            navigation::to_json(&at_once.navigation)
        );
    }
}
