//! The resolved navigation: inherited settings are applied, files and endpoints are found.
//!
//! These types cannot express a broken rule: an element has one kind of content
//! ([`Content`], rules N1 and N2), a top-level group is always open ([`Open`], rule N5), a
//! group shows a listing only on its root page ([`Group::listing`], rule N4), a list of
//! versions or languages has exactly one default ([`Divisions::default`], rule N7), and only
//! a language has banner, footer and navbar (rule N8).
//!
//! Pages are in one list and are named by [`PageId`], because a page may be listed in
//! several places.

use super::language::Language;
use crate::docs::config::{Banner, Footer, Navbar};
use crate::docs::openapi::Method;
use crate::docs::page;

/// A resolved navigation.
#[derive(Debug, Default)]
pub struct Navigation {
    /// The content of the root: the primary pattern.
    pub content: Option<Content>,
    /// Links on every page.
    pub global: Vec<Anchor>,
    /// Every page: first the listed pages in the order of their first places, then the others.
    pub pages: Vec<Page>,
}

/// The index of a page in [`Navigation::pages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId(pub(super) usize);

/// The content of an element: one kind of children, or a link (rule N2).
#[derive(Clone, Debug)]
pub enum Content {
    /// Pages and the groups between them.
    Entries(Vec<Entry>),
    /// Groups.
    Groups(Vec<Group>),
    /// Further divisions of one kind.
    Divisions(Divisions),
    /// A link instead of content.
    Link(Box<str>),
}

/// Divisions of one kind.
#[derive(Clone, Debug)]
pub struct Divisions {
    /// Their kind.
    pub kind: DivisionKind,
    /// The index of the division that is shown first.
    pub default: usize,
    /// The divisions; the list is not empty.
    pub list: Vec<Division>,
}

/// The kinds of divisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DivisionKind {
    /// Tabs.
    Tabs,
    /// The items of a tab's menu.
    Menu,
    /// Anchors.
    Anchors,
    /// Entries of a dropdown.
    Dropdowns,
    /// Products.
    Products,
    /// Versions.
    Versions,
    /// Languages.
    Languages,
}

/// A part of the site.
#[derive(Clone, Debug)]
pub struct Division {
    /// Its label.
    pub label: Box<str>,
    /// A line about it.
    pub description: Option<Box<str>>,
    /// Its icon.
    pub icon: Option<Box<str>>,
    /// Its badge.
    pub tag: Option<Box<str>>,
    /// Whether it is hidden.
    pub hidden: bool,
    /// Its language, if the division is a language.
    pub language: Option<Box<LanguageParts>>,
    /// Links on each of its pages.
    pub global: Vec<Anchor>,
    /// Its content.
    pub content: Content,
    /// The page that opens when a reader selects it.
    pub first: Option<PageId>,
}

/// The settings that only a language has (rule N8).
#[derive(Clone, Debug)]
pub struct LanguageParts {
    /// The language.
    pub language: Language,
    /// Replaces the site's banner.
    pub banner: Option<Banner>,
    /// Replaces the site's footer.
    pub footer: Option<Footer>,
    /// Replaces the site's navbar.
    pub navbar: Option<Navbar>,
}

/// A group of the sidebar.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its label.
    pub label: Box<str>,
    /// Its icon.
    pub icon: Option<Box<str>>,
    /// Its badge.
    pub tag: Option<Box<str>>,
    /// The page that its title opens (rule N3).
    pub root: Option<PageId>,
    /// Whether it is open and whether a reader can close it (rule N5).
    pub open: Open,
    /// How its root page lists its children (rule N4).
    pub directory: Directory,
    /// Whether it is hidden.
    pub hidden: bool,
    /// Its pages and groups.
    pub entries: Vec<Entry>,
}

/// An entry of a sidebar.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A page.
    Page(PageId),
    /// A group.
    Group(Group),
}

/// Whether a group is open (rule N5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// Always, as a top-level group.
    Always,
    /// Open until a reader closes it.
    Expanded,
    /// Closed until a reader opens it.
    Collapsed,
}

/// How a root page lists the children of its group (rule N4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Directory {
    /// As a list.
    Accordion,
    /// As cards.
    Card,
    /// The root page shows no listing.
    #[default]
    None,
}

/// A link on every page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Its label.
    pub label: Box<str>,
    /// Its icon.
    pub icon: Option<Box<str>>,
    /// Its address.
    pub href: Box<str>,
}

/// A page of the site.
#[derive(Clone, Debug)]
pub struct Page {
    /// Its path without extension, from the documentation's root.
    pub slug: Box<str>,
    /// The path of its URL, from the site's base path.
    pub url: Box<str>,
    /// Its title.
    pub title: Box<str>,
    /// Its title in the sidebar, if it differs.
    pub sidebar_title: Option<Box<str>>,
    /// A line about it.
    pub description: Option<Box<str>>,
    /// Its icon.
    pub icon: Option<Box<str>>,
    /// Its badge in the sidebar.
    pub tag: Option<Box<str>>,
    /// The address to which its sidebar entry leads instead of the page.
    pub link: Option<Box<str>>,
    /// Whether sidebar, search and listings leave it out.
    pub hidden: bool,
    /// Whether search engines must not index it; listings leave it out too.
    pub noindex: bool,
    /// Whether search finds it, if everyone may read it and a sidebar lists it.
    pub searchable: bool,
    /// The factor by which search raises it; 1 if the authors set none.
    pub boost: Option<f32>,
    /// Whether everyone may read it.
    pub public: bool,
    /// Whether the subject of the page is deprecated.
    pub deprecated: bool,
    /// Whether its text comes from a file or from a specification.
    pub source: Source,
    /// The endpoint or schema that it describes.
    pub subject: Option<Subject>,
    /// Its first place in the navigation; `None` if it is not listed.
    pub place: Option<Place>,
}

/// The origin of a page's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File,
    /// A specification.
    Specification,
}

/// The endpoint or schema that a page describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An endpoint.
    Endpoint(EndpointId),
    /// An endpoint that is in no specification, or whose specification was not fetched: only its
    /// method and path are known.
    Unresolved {
        /// Its method.
        method: Method,
        /// Its path.
        path: Box<str>,
    },
    /// A schema.
    Schema(SchemaId),
}

/// A schema in `components.schemas` of a specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaId {
    /// Which specification.
    pub specification: usize,
    /// The name of the schema.
    pub name: Box<str>,
}

/// An endpoint of a specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EndpointId {
    /// Which specification.
    pub specification: usize,
    /// The index of the endpoint in the specification.
    pub endpoint: usize,
}

/// The place of a page in the navigation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The labels of the enclosing divisions and groups, without versions and languages.
    pub breadcrumb: Vec<Box<str>>,
    /// The page before it in its sidebar.
    pub previous: Option<PageId>,
    /// The page after it.
    pub next: Option<PageId>,
    /// The code of its language.
    pub language: Option<Box<str>>,
    /// The label of its version.
    pub version: Option<Box<str>>,
}

// === impl Page ===

impl Page {
    /// Returns the page of a file whose frontmatter says nothing.
    #[must_use]
    pub(in crate::docs) fn of_file(slug: &str, hidden: bool) -> Self {
        Self {
            slug: slug.into(),
            url: page::url(slug).into(),
            title: page::title_of(slug),
            sidebar_title: None,
            description: None,
            icon: None,
            tag: None,
            link: None,
            hidden,
            noindex: false,
            searchable: !hidden,
            boost: None,
            public: true,
            deprecated: false,
            source: Source::File,
            subject: None,
            place: None,
        }
    }

    /// Returns the endpoint that the page describes, if its specification was read.
    #[must_use]
    pub fn endpoint(&self) -> Option<EndpointId> {
        match self.subject {
            Some(Subject::Endpoint(id)) => Some(id),
            _ => None,
        }
    }

    /// Returns the specification that contains the subject of the page.
    #[must_use]
    pub fn specification(&self) -> Option<usize> {
        match self.subject.as_ref()? {
            Subject::Endpoint(id) => Some(id.specification),
            Subject::Schema(id) => Some(id.specification),
            Subject::Unresolved { .. } => None,
        }
    }

    /// Returns whether search engines may index the page.
    #[must_use]
    pub fn is_indexed(&self) -> bool {
        self.public && !self.hidden && !self.noindex
    }

    /// Returns whether `llms.txt`, the sitemap and lists of pages have the page.
    ///
    /// They omit a page that no sidebar lists and a page whose sidebar entry leads elsewhere.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.is_indexed() && self.place.is_some() && self.link.is_none()
    }

    /// Returns whether the search of the site finds the page. Without a word about it,
    /// it finds the pages that are listed.
    #[must_use]
    pub fn is_searchable(&self) -> bool {
        self.searchable && self.public && self.place.is_some() && self.link.is_none()
    }
}

// === impl Navigation ===

impl Navigation {
    /// Returns a page.
    #[must_use]
    pub fn page(&self, id: PageId) -> &Page {
        &self.pages[id.0]
    }

    /// Returns every page with its id.
    pub fn pages(&self) -> impl ExactSizeIterator<Item = (PageId, &Page)> {
        self.pages
            .iter()
            .enumerate()
            .map(|(at, page)| (PageId(at), page))
    }

    /// Returns the page that a visitor of the site sees first: the first page of the default
    /// divisions.
    #[must_use]
    pub fn first(&self) -> Option<PageId> {
        self.content.as_ref()?.first(&self.pages)
    }
}

// === impl Content ===

impl Content {
    /// Returns the page that is shown first. Hidden pages are skipped; the root of a group comes
    /// before the other pages of the group.
    #[must_use]
    pub fn first(&self, pages: &[Page]) -> Option<PageId> {
        match self {
            Self::Entries(entries) => first_of(entries, pages),
            Self::Groups(groups) => groups.iter().find_map(|group| group.first(pages)),
            Self::Divisions(divisions) => {
                let default = divisions.list.get(divisions.default);
                let visible = divisions.list.iter().filter(|division| !division.hidden);
                default
                    .into_iter()
                    .chain(visible)
                    .find_map(|division| division.first)
            }
            Self::Link(_) => None,
        }
    }
}

fn first_of(entries: &[Entry], pages: &[Page]) -> Option<PageId> {
    entries.iter().find_map(|entry| match entry {
        Entry::Page(id) => first_visible(*id, pages),
        Entry::Group(group) => group.first(pages),
    })
}

fn first_visible(id: PageId, pages: &[Page]) -> Option<PageId> {
    let page = &pages[id.0];
    (!page.hidden && page.public && page.link.is_none()).then_some(id)
}

// === impl Group ===

impl Group {
    /// Returns the page of the group that is shown first.
    #[must_use]
    pub fn first(&self, pages: &[Page]) -> Option<PageId> {
        if self.hidden {
            return None;
        }
        let root = self.root.and_then(|root| first_visible(root, pages));
        root.or_else(|| first_of(&self.entries, pages))
    }

    /// Returns how the group's root page lists the children; a group without a root has no
    /// listing (rule N4).
    #[must_use]
    pub fn listing(&self) -> Directory {
        match self.root {
            Some(_) => self.directory,
            None => Directory::None,
        }
    }
}

// === impl DivisionKind ===

impl DivisionKind {
    /// Returns the key under which `docs.json` lists them.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Tabs => "tabs",
            Self::Menu => "menu",
            Self::Anchors => "anchors",
            Self::Dropdowns => "dropdowns",
            Self::Products => "products",
            Self::Versions => "versions",
            Self::Languages => "languages",
        }
    }
}

// === impl Directory ===

impl Directory {
    /// Reads a value of `directory`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "accordion" => Some(Self::Accordion),
            "card" => Some(Self::Card),
            "none" => Some(Self::None),
            _ => None,
        }
    }

    /// Returns the value of `directory`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accordion => "accordion",
            Self::Card => "card",
            Self::None => "none",
        }
    }
}

// === impl Open ===

impl Open {
    /// Returns its value in `navigation.json`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Expanded => "expanded",
            Self::Collapsed => "collapsed",
        }
    }
}
