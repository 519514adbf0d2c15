//! The part of the layout that is the same for all pages of a site, computed once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::head::bar_colours;
use super::path_of;
use crate::docs::Docs;
use crate::docs::config::{Banner, Config, Eyebrows, Footer, Navbar, Playing};
use crate::docs::navigation::Navigation;
use crate::docs::navigation::tree::{
    Anchor, Content, DivisionKind, Divisions, Entry, Group, LanguageParts, Page, PageId,
};
use crate::docs::openapi::Endpoint;
use crate::docs::page::{Related, Tag};
use crate::render::endpoint::form;
use crate::render::link::Map;
use crate::site::EditLink;

use super::alternate::Alternates;
use super::assets::Assets;
use super::drawings::Drawings;
use super::theme;

/// The layout of a site.
#[derive(Debug)]
pub struct Layout<'d> {
    pub(super) docs: &'d Docs,
    map: &'d Map,
    assets: &'d Assets,
    sidebars: Vec<Sidebar<'d>>,
    /// The first sidebar that lists each page, as an index into `sidebars`.
    sidebar_of: HashMap<PageId, usize>,
    /// The groups whose root each page is.
    roots: HashMap<PageId, Vec<&'d Group>>,
    alternates: Alternates<'d>,
    /// The link to edit a page, if the repository is known.
    edit: Option<&'d EditLink>,
    /// The images that are drawn.
    drawn: Option<&'d Drawings>,
    /// The tags with the colours of the bar of the browser.
    pub(super) bar_colours: String,
}

/// A sidebar: the pages and groups for one selection of tab, version, language and so on.
#[derive(Debug, Default)]
pub(super) struct Sidebar<'d> {
    /// The divisions from the root down to this sidebar, each with the index of the selected
    /// one.
    pub selected: Vec<(&'d Divisions, usize)>,
    /// The pages and groups; `None` on a site without navigation.
    pub content: Option<&'d Content>,
}

// === impl Layout ===

impl<'d> Layout<'d> {
    /// Computes the layout of the documentation.
    #[must_use]
    pub fn new(docs: &'d Docs, map: &'d Map, assets: &'d Assets) -> Self {
        let mut layout = Self {
            docs,
            map,
            assets,
            sidebars: Vec::new(),
            sidebar_of: HashMap::new(),
            roots: HashMap::new(),
            alternates: Alternates::default(),
            edit: None,
            drawn: None,
            bar_colours: bar_colours(docs),
        };
        if let Some(content) = &docs.navigation.content {
            layout.walk(content, &mut Vec::new());
        }
        if layout.sidebars.is_empty() {
            layout.sidebars.push(Sidebar::default());
        }
        layout
    }

    /// Sets where pages are edited.
    #[must_use]
    pub fn edited_at(mut self, edit: Option<&'d EditLink>) -> Self {
        self.edit = edit;
        self
    }

    /// Sets the images that are drawn.
    #[must_use]
    pub fn showing(mut self, drawn: &'d Drawings) -> Self {
        self.drawn = Some(drawn);
        self
    }

    pub(super) fn drawn(&self) -> Option<&'d Drawings> {
        self.drawn
    }

    fn walk(&mut self, content: &'d Content, selected: &mut Vec<(&'d Divisions, usize)>) {
        let mut pages = Vec::new();
        match content {
            Content::Link(_) => return,
            Content::Divisions(divisions) => {
                for (at, division) in divisions.list.iter().enumerate() {
                    selected.push((divisions, at));
                    self.walk(&division.content, selected);
                    selected.pop();
                }
                return;
            }
            Content::Entries(entries) => self.gather(entries, &mut pages),
            Content::Groups(groups) => {
                for group in groups {
                    self.gather_group(group, &mut pages);
                }
            }
        }
        let sidebar = self.sidebars.len();
        for id in pages {
            self.sidebar_of.entry(id).or_insert(sidebar);
            let path = path_of(self.docs.navigation.page(id));
            for (divisions, at) in selected.iter() {
                if matches!(
                    divisions.kind,
                    DivisionKind::Versions | DivisionKind::Languages
                ) {
                    self.alternates.insert(&divisions.list[*at], path);
                }
            }
        }
        self.sidebars.push(Sidebar {
            selected: selected.clone(),
            content: Some(content),
        });
    }

    fn gather(&mut self, entries: &'d [Entry], pages: &mut Vec<PageId>) {
        for entry in entries {
            match entry {
                Entry::Page(id) => pages.push(*id),
                Entry::Group(group) => self.gather_group(group, pages),
            }
        }
    }

    fn gather_group(&mut self, group: &'d Group, pages: &mut Vec<PageId>) {
        if let Some(root) = group.root {
            pages.push(root);
            self.roots.entry(root).or_default().push(group);
        }
        self.gather(&group.entries, pages);
    }

    pub(super) fn navigation(&self) -> &'d Navigation {
        &self.docs.navigation
    }

    pub(super) fn config(&self) -> &'d Config {
        &self.docs.config
    }

    pub(super) fn map(&self) -> &'d Map {
        self.map
    }

    pub(super) fn assets(&self) -> &'d Assets {
        self.assets
    }

    /// Returns the path of the page that the site opens with.
    #[must_use]
    pub fn home(&self) -> &'d str {
        if self.map.pages.contains("") {
            return "";
        }
        let first = self.navigation().first();
        first.map_or("", |id| path_of(self.navigation().page(id)))
    }

    pub(super) fn alternates(&self) -> &Alternates<'d> {
        &self.alternates
    }

    pub(super) fn path(&self, id: PageId) -> &'d str {
        path_of(self.docs.navigation.page(id))
    }

    pub(super) fn eyebrows(&self) -> Eyebrows {
        theme::eyebrows(&self.docs.config)
    }

    pub(super) fn drilldown(&self) -> bool {
        theme::drilldown(&self.docs.config)
    }

    /// Returns the tags in the frontmatter of a page.
    pub(super) fn own_tags(&self, id: PageId) -> &'d [Tag] {
        let page = self.docs.navigation.page(id);
        let written = self.docs.pages.get(&page.slug);
        written.map_or(&[][..], |written| &written.meta.tags)
    }

    /// Returns the links to related content in the frontmatter of a page.
    pub(super) fn related(&self, id: PageId) -> &'d [Related] {
        let page = self.docs.navigation.page(id);
        let written = self.docs.pages.get(&page.slug);
        written.map_or(&[][..], |written| &written.meta.related)
    }

    /// Returns the title of the page at a path in URLs.
    pub(super) fn title_at(&self, path: &str) -> Option<String> {
        let mut pages = self.docs.navigation.pages.iter();
        let page = pages.find(|page| path_of(page) == path)?;
        Some(page.title.to_string())
    }

    /// Returns whether a page is in the language that the site opens with: texts of `docs.json` are
    /// in that language.
    pub(super) fn is_in_first_language(&self, id: Option<PageId>) -> bool {
        self.language_tag(id) == self.language_tag(self.navigation().first())
    }

    /// Returns where the source of a page is edited; a generated page has no source.
    pub(super) fn edit(&self, id: PageId) -> Option<String> {
        let page = self.docs.navigation.page(id);
        let written = self.docs.pages.get(&page.slug)?;
        Some(self.edit?.of(written.path.as_str()))
    }

    /// Returns the sidebar of a page. A page that is not listed has the sidebar of the first page.
    pub(super) fn sidebar(&self, id: Option<PageId>) -> &Sidebar<'d> {
        &self.sidebars[self.sidebar_number(id)]
    }

    /// Returns the pages that the labels of a page's breadcrumb lead to: the first page of
    /// a division, the root or the first page of a group.
    pub(super) fn breadcrumbs(
        &self,
        id: Option<PageId>,
        labels: &[Box<str>],
    ) -> Vec<Option<PageId>> {
        let sidebar = self.sidebar(id);
        let mut targets = Vec::with_capacity(labels.len());
        let mut divisions = sidebar.selected.iter();
        for label in labels {
            let mut rest = divisions.clone();
            let Some((list, at)) = rest.find(|(list, at)| list.list[*at].label == *label) else {
                break;
            };
            divisions = rest;
            targets.push(list.list[*at].first);
        }
        let mut groups = Vec::new();
        if let Some(id) = id {
            match sidebar.content {
                Some(Content::Entries(entries)) => {
                    enclosing(entries, id, &mut groups);
                }
                Some(Content::Groups(list)) => {
                    list.iter().find(|group| inside(group, id, &mut groups));
                }
                _ => {}
            }
        }
        let pages = &self.docs.navigation.pages;
        let groups = groups.iter();
        targets.extend(groups.map(|group| group.root.or_else(|| group.first(pages))));
        targets.resize(labels.len(), None);
        targets
    }

    /// Returns the index of the sidebar of a page.
    pub(super) fn sidebar_number(&self, id: Option<PageId>) -> usize {
        let number = |id: PageId| self.sidebar_of.get(&id).copied();
        let first = || number(self.navigation().first()?);
        id.and_then(number).or_else(first).unwrap_or(0)
    }

    /// Returns the first sidebar that lists a page.
    pub(super) fn listed(&self, id: PageId) -> Option<&Sidebar<'d>> {
        Some(&self.sidebars[*self.sidebar_of.get(&id)?])
    }

    pub(super) fn sidebars(&self) -> &[Sidebar<'d>] {
        &self.sidebars
    }

    pub(super) fn endpoint(&self, id: PageId) -> Option<&'d Endpoint> {
        let id = self.navigation().page(id).endpoint()?;
        let specification = self.docs.specifications.get(id.specification)?;
        specification.endpoints.get(id.endpoint)
    }

    /// Describes the form that sends a request of the endpoint of a page; `None` if the site has no
    /// such forms, or the endpoint has no server that a browser can ask.
    pub(super) fn form(&self, id: PageId) -> Option<serde_json::Value> {
        let api = &self.docs.config.api;
        if api.playground.display != Some(Playing::Interactive) {
            return None;
        }
        let page = self.navigation().page(id);
        let written = self.docs.written(page);
        if written.is_some_and(|written| written.meta.hide_form) {
            return None;
        }
        let specification = page.endpoint()?.specification;
        let specification = self.docs.specifications.get(specification)?;
        form::form(specification, self.endpoint(id)?, api)
    }

    /// Returns the origins that the pages of endpoints send requests to, each with the paths of
    /// these pages, sorted. The site's own origin is not among them.
    #[must_use]
    pub fn servers(&self) -> BTreeMap<Box<str>, BTreeSet<Box<str>>> {
        let mut servers: BTreeMap<Box<str>, BTreeSet<Box<str>>> = BTreeMap::new();
        if self.docs.config.api.playground.display != Some(Playing::Interactive) {
            return servers;
        }
        let is_shown = |page: &Page| {
            let written = self.docs.written(page);
            page.public && !written.is_some_and(|written| written.meta.hide_form)
        };
        for (id, page) in self.navigation().pages().filter(|(_, page)| is_shown(page)) {
            let specification = page.endpoint().map(|endpoint| endpoint.specification);
            let specification = specification.and_then(|n| self.docs.specifications.get(n));
            let (Some(specification), Some(endpoint)) = (specification, self.endpoint(id)) else {
                continue;
            };
            for origin in form::origins(specification, endpoint) {
                let pages = servers.entry(origin).or_default();
                pages.insert(path_of(page).into());
            }
        }
        servers
    }

    pub(super) fn rooted_at(&self, id: PageId) -> &[&'d Group] {
        self.roots.get(&id).map_or(&[], Vec::as_slice)
    }

    pub(super) fn language(&self, id: Option<PageId>) -> Option<&'d LanguageParts> {
        let selected = self.sidebar(id).selected.iter();
        let mut languages =
            selected.filter_map(|(divisions, at)| divisions.list[*at].language.as_deref());
        languages.next()
    }

    /// Returns the banner of the language, or else the banner of the site (N8).
    pub(super) fn banner(&self, id: Option<PageId>) -> Option<&'d Banner> {
        let own = self.language(id).and_then(|parts| parts.banner.as_ref());
        own.or(self.docs.config.banner.as_ref())
    }

    /// Returns the footer, by the same rule as the banner.
    pub(super) fn footer(&self, id: Option<PageId>) -> Option<&'d Footer> {
        let own = self.language(id).and_then(|parts| parts.footer.as_ref());
        own.or(self.docs.config.footer.as_ref())
    }

    /// Returns the links of the header, by the same rule as the banner.
    pub(super) fn navbar(&self, id: Option<PageId>) -> Option<&'d Navbar> {
        let own = self.language(id).and_then(|parts| parts.navbar.as_ref());
        own.or(self.docs.config.navbar.as_ref())
    }

    /// Returns the links for the top of the sidebar: the links of the site, then the links of the
    /// selected divisions.
    pub(super) fn global(&self, id: Option<PageId>) -> impl Iterator<Item = &'d Anchor> {
        let selected = self.sidebar(id).selected.iter();
        let own = selected.flat_map(|(divisions, at)| &divisions.list[*at].global);
        self.navigation().global.iter().chain(own)
    }
}

/// Collects the groups around a page, the outermost first; returns whether it is in one.
fn enclosing<'d>(entries: &'d [Entry], id: PageId, groups: &mut Vec<&'d Group>) -> bool {
    entries.iter().any(|entry| match entry {
        Entry::Page(page) => *page == id,
        Entry::Group(group) => inside(group, id, groups),
    })
}

/// Returns whether a page is in a group; if so, adds it and the groups inside it around the page.
fn inside<'d>(group: &'d Group, id: PageId, groups: &mut Vec<&'d Group>) -> bool {
    let before = groups.len();
    groups.push(group);
    let found = group.root == Some(id) || enclosing(&group.entries, id, groups);
    if !found {
        groups.truncate(before);
    }
    found
}
