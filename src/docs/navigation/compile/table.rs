//! The pages of a navigation, in the order in which they are first listed.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::diagnostic::closest;
use crate::docs::openapi::{Endpoint, Method};
use crate::docs::page::{self, Pages};
use crate::syntax::{Diagnostics, Span, SpanDiagnostic};

use super::super::tree::{EndpointId, Page, PageId, Place, Source, Subject};
use super::Scope;
use super::endpoints::Applied;

/// The rule that entries of `pages` name pages.
pub(super) const MISSING: &str = "page-missing";
/// The rule about the spelling of an entry of `pages`.
pub(super) const PATH: &str = "page-path";
/// The rule that a page is listed once.
pub(super) const DUPLICATE: &str = "page-duplicate";
/// The rule that a page has one language.
pub(super) const LANGUAGES: &str = "page-languages";
/// For how many missing pages the closest existing page is searched.
const SUGGESTIONS_MAX: usize = 100;

/// The pages that were listed so far.
pub(super) struct Table<'a> {
    files: Option<&'a Pages>,
    pages: Vec<Page>,
    by_slug: HashMap<Box<str>, PageId>,
    by_endpoint: HashMap<EndpointId, PageId>,
    /// The specification that applies at the place of a page.
    applied: HashMap<PageId, Rc<Applied>>,
    listed: HashSet<Listed>,
    reported_roots: Vec<PageId>,
    sidebar: Vec<PageId>,
    suggestions: usize,
}

/// A page in one language and version.
#[derive(PartialEq, Eq, Hash)]
struct Listed {
    page: PageId,
    language: Option<Box<str>>,
    version: Option<Box<str>>,
}

// === impl Table ===

impl<'a> Table<'a> {
    pub(super) fn new(files: Option<&'a Pages>) -> Self {
        Self {
            files,
            pages: Vec::new(),
            by_slug: HashMap::new(),
            by_endpoint: HashMap::new(),
            applied: HashMap::new(),
            listed: HashSet::new(),
            reported_roots: Vec::new(),
            sidebar: Vec::new(),
            suggestions: 0,
        }
    }

    pub(super) fn pages(&self) -> &[Page] {
        &self.pages
    }

    pub(super) fn pages_mut(&mut self) -> &mut [Page] {
        &mut self.pages
    }

    pub(super) fn slug(&self, id: PageId) -> &str {
        &self.pages[id.0].slug
    }

    /// Returns whether there is no page of this slug.
    pub(super) fn is_missing(&self, slug: &str) -> bool {
        let slug = slug.trim_start_matches("./").trim_matches('/');
        self.files.is_some_and(|files| files.at(slug).is_none())
    }

    /// Returns whether a text is exactly the path of a page file.
    pub(super) fn is_file(&self, text: &str) -> bool {
        self.files.is_some_and(|files| files.get(text).is_some())
    }

    /// Starts a sidebar and returns the enclosing one.
    pub(super) fn enter_sidebar(&mut self) -> Vec<PageId> {
        std::mem::take(&mut self.sidebar)
    }

    /// Ends a sidebar and links each visible page to the next.
    pub(super) fn leave_sidebar(&mut self, outer: Vec<PageId>) {
        let sidebar = std::mem::replace(&mut self.sidebar, outer);
        let shown = |id: &PageId| {
            let page = &self.pages[id.0];
            !page.hidden && page.public && page.link.is_none()
        };
        let shown: Vec<_> = sidebar.into_iter().filter(shown).collect();
        for pair in shown.windows(2) {
            if let Some(place) = &mut self.pages[pair[0].0].place {
                place.next = Some(pair[1]);
            }
            if let Some(place) = &mut self.pages[pair[1].0].place {
                place.previous = Some(pair[0]);
            }
        }
    }

    /// Records a root that its group lists too; rule N3 has already reported it.
    pub(super) fn note_reported_root(&mut self, id: PageId) {
        self.reported_roots.push(id);
    }

    /// Records the specification that applies at the place of a page.
    pub(super) fn note_specification(&mut self, id: PageId, applied: Option<&Rc<Applied>>) {
        if let Some(applied) = applied {
            let applied = Rc::clone(applied);
            self.applied.entry(id).or_insert(applied);
        }
    }

    pub(super) fn applied(&self, id: PageId) -> Option<&Applied> {
        self.applied.get(&id).map(|applied| &**applied)
    }

    /// Lists the page that an entry names.
    pub(super) fn list(
        &mut self,
        text: &str,
        span: Span,
        scope: &Scope,
        diagnostics: &mut Diagnostics,
    ) -> Option<PageId> {
        let slug = normalised(text, span, diagnostics)?;
        let slug = match self.files {
            None => slug,
            Some(files) if files.get(&slug).is_some() => slug,
            Some(files) => {
                let index = format!("{slug}/index");
                if files.get(&index).is_none() {
                    self.missing(&slug, span, files, diagnostics);
                    return None;
                }
                let message = format!("`{slug}` is the folder of `{index}`");
                let diagnostic = SpanDiagnostic::warning(PATH, span, message);
                diagnostics.push(
                    diagnostic
                        .help(format!("write `{index}`"))
                        .edit(span, format!("\"{index}\"")),
                );
                index
            }
        };
        let id = self.page(&slug, scope);
        self.place(id, span, scope, diagnostics);
        Some(id)
    }

    fn missing(&mut self, slug: &str, span: Span, files: &Pages, diagnostics: &mut Diagnostics) {
        let index = format!("{slug}/index");
        if let Some((path, reason)) = files.ignored(slug).or_else(|| files.ignored(&index)) {
            let message =
                format!("the page `{slug}` is ignored, because {reason}; the entry is left out");
            diagnostics
                .push(SpanDiagnostic::warning(MISSING, span, message).help(reason.help(path)));
            return;
        }
        let mut diagnostic = SpanDiagnostic::warning(
            MISSING,
            span,
            format!("there is no page `{slug}`; the entry is left out"),
        );
        if self.suggestions < SUGGESTIONS_MAX {
            self.suggestions += 1;
            let near =
                closest(slug, files.iter().map(|page| &*page.slug)).or_else(|| moved(slug, files));
            diagnostic = diagnostic.help_if(near.map(|near| format!("did you mean `{near}`?")));
        }
        diagnostics.push(diagnostic);
    }

    /// Returns the page of a slug, and adds it if it is new.
    fn page(&mut self, slug: &str, scope: &Scope) -> PageId {
        if let Some(&id) = self.by_slug.get(slug) {
            return id;
        }
        let page = match self.files.and_then(|files| files.get(slug)) {
            Some(file) => from_file(file, scope),
            None => unseen(slug, scope),
        };
        self.add(page)
    }

    fn add(&mut self, page: Page) -> PageId {
        let id = PageId(self.pages.len());
        self.by_slug.insert(page.slug.clone(), id);
        self.pages.push(page);
        id
    }

    /// Lists the page of an endpoint.
    pub(super) fn endpoint(
        &mut self,
        id: EndpointId,
        endpoint: &Endpoint,
        slug: String,
        scope: &Scope,
    ) -> PageId {
        if let Some(&page) = self.by_endpoint.get(&id) {
            return page;
        }
        let mut free = slug.clone();
        let mut number = 0;
        while self.by_slug.contains_key(&*free) || self.is_file(&free) {
            number += 1;
            free = format!("{slug}-{number}");
        }
        let mut page = unseen(&free, scope);
        let named = endpoint.title.as_ref().or(endpoint.summary.as_ref());
        if let Some(title) = named {
            page.title = title.clone();
        } else if endpoint.method != Method::Webhook {
            page.title = format!("{} {}", endpoint.method, endpoint.path).into();
        }
        page.description = endpoint.description.clone();
        page.source = Source::Specification;
        page.subject = Some(Subject::Endpoint(id));
        page.deprecated = endpoint.deprecated;
        let page = self.add(page);
        self.by_endpoint.insert(id, page);
        page
    }

    /// Sets the place of a page; a second place is a warning.
    pub(super) fn place(
        &mut self,
        id: PageId,
        span: Span,
        scope: &Scope,
        diagnostics: &mut Diagnostics,
    ) {
        let again = !self.listed.insert(Listed {
            page: id,
            language: scope.language.clone(),
            version: scope.version.clone(),
        });
        let page = &mut self.pages[id.0];
        let Some(place) = &page.place else {
            page.place = Some(Place {
                breadcrumb: scope.breadcrumb.clone(),
                previous: None,
                next: None,
                language: scope.language.clone(),
                version: scope.version.clone(),
            });
            self.sidebar.push(id);
            return;
        };
        if page.endpoint().is_some() || self.reported_roots.contains(&id) {
            return;
        }
        if again {
            let message = format!("`{}` is listed more than once", page.slug);
            diagnostics.push(
                SpanDiagnostic::warning(DUPLICATE, span, message)
                    .help("its first place counts; this one only links to it"),
            );
        } else if place.language != scope.language {
            let message = format!("`{}` is listed in another language already", page.slug);
            diagnostics.push(
                SpanDiagnostic::warning(LANGUAGES, span, message)
                    .help("each language has pages of its own"),
            );
        }
    }

    /// Returns all pages; unlisted pages come last.
    pub(super) fn finish(mut self) -> Vec<Page> {
        let files = self.files.map(Pages::iter).into_iter().flatten();
        for file in files {
            if !self.by_slug.contains_key(&file.slug) {
                self.pages.push(from_file(file, &Scope::default()));
            }
        }
        self.pages
    }

    /// Adds the unlisted pages, which can name an endpoint too.
    pub(super) fn add_unlisted(&mut self) {
        let Some(files) = self.files else {
            return;
        };
        for file in files.iter() {
            if !self.by_slug.contains_key(&file.slug) {
                self.add(from_file(file, &Scope::default()));
            }
        }
    }

    pub(super) fn files(&self) -> Option<&'a Pages> {
        self.files
    }

    pub(super) fn by_slug(&self, slug: &str) -> Option<PageId> {
        self.by_slug.get(slug).copied()
    }
}

/// Finds the only page of the same name in another folder.
fn moved<'p>(slug: &str, files: &'p Pages) -> Option<&'p str> {
    let name = slug.rsplit('/').next()?;
    let mut same = files
        .iter()
        .filter(|page| page.slug.rsplit('/').next() == Some(name));
    let only = same.next()?;
    same.next().is_none().then_some(&only.slug)
}

fn from_file(file: &page::Page, scope: &Scope) -> Page {
    let meta = &file.meta;
    // The frontmatter overrides the enclosing group.
    let hidden = meta.hidden.unwrap_or(scope.hidden);
    let is_own_choice = meta.hidden == Some(true) || meta.noindex;
    let inherited = scope.searchable.filter(|_| !is_own_choice);
    let searchable = meta.searchable.or(inherited);
    Page {
        slug: file.slug.clone(),
        url: file.url().into(),
        title: file.title(),
        sidebar_title: meta.sidebar_title.clone(),
        description: meta.description.clone(),
        icon: meta.icon.clone(),
        tag: meta.tag.clone(),
        link: meta.url.clone(),
        hidden,
        noindex: meta.noindex,
        searchable: searchable.unwrap_or(!hidden && !meta.noindex),
        boost: meta.boost.or(scope.boost),
        public: meta.is_public(),
        deprecated: meta.deprecated,
        source: Source::File,
        subject: None,
        place: None,
    }
}

/// Returns a page whose file is not known.
fn unseen(slug: &str, scope: &Scope) -> Page {
    Page {
        searchable: scope.searchable.unwrap_or(!scope.hidden),
        boost: scope.boost,
        ..Page::of_file(slug, scope.hidden)
    }
}

/// Normalises an entry to the path of a page; `None` if it cannot be a path.
fn normalised(text: &str, span: Span, diagnostics: &mut Diagnostics) -> Option<String> {
    if text.trim().is_empty() {
        diagnostics.push(SpanDiagnostic::error(
            crate::docs::schema::REQUIRED,
            span,
            "an entry of `pages` is empty",
        ));
        return None;
    }
    if text.contains(|c: char| c.is_control()) {
        diagnostics.push(SpanDiagnostic::error(
            PATH,
            span,
            format!("the path {text:?} has a control character"),
        ));
        return None;
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in text.trim().split('/') {
        match segment {
            "" | "." => {}
            ".." if segments.pop().is_none() => {
                let message = format!("`{text}` leads out of the documentation's root");
                diagnostics.push(SpanDiagnostic::error(PATH, span, message));
                return None;
            }
            ".." => {}
            _ => segments.push(segment),
        }
    }
    let joined = segments.join("/");
    let slug = [".mdx", ".md"]
        .iter()
        .find_map(|ending| joined.strip_suffix(ending));
    let slug = slug.unwrap_or(&joined).trim();
    if slug.is_empty() {
        diagnostics.push(SpanDiagnostic::error(
            PATH,
            span,
            format!("`{text}` names no page"),
        ));
        return None;
    }
    if slug != text {
        let message = format!("the path `{text}` is read as `{slug}`");
        let help = "a page is named by its path from the documentation's root, without extension";
        diagnostics.push(
            SpanDiagnostic::warning(PATH, span, message)
                .help(help)
                .edit(span, format!("\"{slug}\"")),
        );
    }
    Some(slug.to_owned())
}
