//! The navigation as it is meant: decided, inherited, resolved.
//!
//! What breaks the rules cannot be written in these types: an element has one kind of
//! content ([`Content`], rules N1 and N2), a top-level group is always open ([`Open`],
//! rule N5), a group shows a listing only on its root page ([`Group::listing`], rule N4),
//! a list of versions or languages has exactly one default ([`Divisions::default`], rule
//! N7), and only a language carries banner, footer and navbar (rule N8).
//!
//! Pages stand in one list and are named by [`PageId`], since one page may be listed in
//! several places.

use super::language::Language;
use crate::docs::config::{Banner, Footer, Navbar};
use crate::docs::openapi::Method;

/// A resolved navigation.
#[derive(Debug, Default)]
pub struct Navigation {
    /// What the site is divided into: the primary pattern.
    pub content: Option<Content>,
    /// Links on every page.
    pub global: Vec<Anchor>,
    /// Every page: the listed ones in the order of their first place, then the others.
    pub pages: Vec<Page>,
}

/// A page of [`Navigation::pages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId(pub(super) usize);

/// What an element holds: one kind of children, or a link (rule N2).
#[derive(Clone, Debug)]
pub enum Content {
    /// Pages and the groups between them.
    Entries(Vec<Entry>),
    /// Groups.
    Groups(Vec<Group>),
    /// Further divisions of one kind.
    Divisions(Divisions),
    /// Nothing of its own: it leads elsewhere.
    Link(Box<str>),
}

/// Divisions of one kind.
#[derive(Clone, Debug)]
pub struct Divisions {
    /// Their kind.
    pub kind: DivisionKind,
    /// Which of them is shown first.
    pub default: usize,
    /// At least one.
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
    /// What it is called.
    pub label: Box<str>,
    /// A line about it.
    pub description: Option<Box<str>>,
    /// Its icon.
    pub icon: Option<Box<str>>,
    /// Its badge.
    pub tag: Option<Box<str>>,
    /// Whether it stays out of what is shown.
    pub hidden: bool,
    /// Its language, when it is one.
    pub language: Option<Box<LanguageParts>>,
    /// Links on each of its pages.
    pub global: Vec<Anchor>,
    /// What it holds.
    pub content: Content,
    /// The page that selecting it opens.
    pub first: Option<PageId>,
}

/// What only a language has (rule N8).
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
    /// What it is called.
    pub label: Box<str>,
    /// Its icon.
    pub icon: Option<Box<str>>,
    /// Its badge.
    pub tag: Option<Box<str>>,
    /// The page its title opens (rule N3).
    pub root: Option<PageId>,
    /// Whether it can be closed, and is at first (rule N5).
    pub open: Open,
    /// How its root page lists its children (rule N4).
    pub directory: Directory,
    /// Whether it stays out of what is shown.
    pub hidden: bool,
    /// Its pages and groups.
    pub entries: Vec<Entry>,
}

/// Something that stands in a sidebar.
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
    /// Always: it is a top-level group.
    Always,
    /// At first.
    Expanded,
    /// When it is opened.
    Collapsed,
}

/// How a root page lists the children of its group (rule N4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Directory {
    /// As a list.
    Accordion,
    /// As cards.
    Card,
    /// Not at all.
    #[default]
    None,
}

/// A link on every page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// What it says.
    pub label: Box<str>,
    /// Its icon.
    pub icon: Option<Box<str>>,
    /// Where it leads.
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
    /// Its title in the sidebar, where it differs.
    pub sidebar_title: Option<Box<str>>,
    /// A line about it.
    pub description: Option<Box<str>>,
    /// Its icon.
    pub icon: Option<Box<str>>,
    /// Its badge in the sidebar.
    pub tag: Option<Box<str>>,
    /// Where its entry in the sidebar leads instead of to it.
    pub link: Option<Box<str>>,
    /// Whether it stays out of sidebar, search and listings.
    pub hidden: bool,
    /// Whether it stays out of search engines, and of listings with them.
    pub noindex: bool,
    /// Whether everyone may read it.
    pub public: bool,
    /// Whether what it describes is going away.
    pub deprecated: bool,
    /// Whether its text is an author's or made from a specification.
    pub source: Source,
    /// What of a specification it describes.
    pub subject: Option<Subject>,
    /// Its first place in the navigation; `None` when it is not listed.
    pub place: Option<Place>,
}

/// Where a page's text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File,
    /// A specification.
    Specification,
}

/// What of a specification a page describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An endpoint.
    Endpoint(EndpointId),
    /// An endpoint of a specification that was not fetched: only its name is known.
    Unread {
        /// Its method.
        method: Method,
        /// Its path.
        path: Box<str>,
    },
    /// A schema.
    Schema(SchemaId),
}

/// One of `components.schemas` of one of the documentation's specifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaId {
    /// Which specification.
    pub specification: usize,
    /// The name of the schema.
    pub name: Box<str>,
}

/// An endpoint of one of the documentation's specifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EndpointId {
    /// Which specification.
    pub specification: usize,
    /// Which of its endpoints.
    pub endpoint: usize,
}

/// Where a page stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The labels of the divisions and groups on the way to it, versions and languages
    /// left out.
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
    /// Returns the endpoint that the page describes, if its specification was read.
    #[must_use]
    pub fn endpoint(&self) -> Option<EndpointId> {
        match self.subject {
            Some(Subject::Endpoint(id)) => Some(id),
            _ => None,
        }
    }

    /// Returns the specification of what the page describes.
    #[must_use]
    pub fn specification(&self) -> Option<usize> {
        match self.subject.as_ref()? {
            Subject::Endpoint(id) => Some(id.specification),
            Subject::Schema(id) => Some(id.specification),
            Subject::Unread { .. } => None,
        }
    }

    /// Returns whether search engines may know of the page.
    #[must_use]
    pub fn is_indexed(&self) -> bool {
        self.public && !self.hidden && !self.noindex
    }

    /// Returns whether the page stands in the lists of pages: in search, in `llms.txt`, in the
    /// sitemap. One that stands in no sidebar, or whose entry there leads elsewhere, does not.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.is_indexed() && self.place.is_some() && self.link.is_none()
    }
}

// === impl Navigation ===

impl Navigation {
    /// Returns a page.
    #[must_use]
    pub fn page(&self, id: PageId) -> &Page {
        &self.pages[id.0]
    }

    /// Returns every page with its name.
    pub fn pages(&self) -> impl ExactSizeIterator<Item = (PageId, &Page)> {
        self.pages
            .iter()
            .enumerate()
            .map(|(at, page)| (PageId(at), page))
    }

    /// Returns the page that the site opens with: the first of the default divisions.
    #[must_use]
    pub fn first(&self) -> Option<PageId> {
        self.content.as_ref()?.first(&self.pages)
    }
}

// === impl Content ===

impl Content {
    /// Returns the page that opening this shows: roots first, hidden ones passed over.
    #[must_use]
    pub fn first(&self, pages: &[Page]) -> Option<PageId> {
        match self {
            Self::Entries(entries) => first_of(entries, pages),
            Self::Groups(groups) => groups.iter().find_map(|group| group.first(pages)),
            Self::Divisions(divisions) => {
                let default = divisions.list.get(divisions.default);
                let shown = divisions.list.iter().filter(|division| !division.hidden);
                default
                    .into_iter()
                    .chain(shown)
                    .find_map(|division| division.first)
            }
            Self::Link(_) => None,
        }
    }
}

fn first_of(entries: &[Entry], pages: &[Page]) -> Option<PageId> {
    entries.iter().find_map(|entry| match entry {
        Entry::Page(id) => shown(*id, pages),
        Entry::Group(group) => group.first(pages),
    })
}

fn shown(id: PageId, pages: &[Page]) -> Option<PageId> {
    let page = &pages[id.0];
    (!page.hidden && page.public && page.link.is_none()).then_some(id)
}

// === impl Group ===

impl Group {
    /// Returns the page that opening the group shows.
    #[must_use]
    pub fn first(&self, pages: &[Page]) -> Option<PageId> {
        if self.hidden {
            return None;
        }
        let root = self.root.and_then(|root| shown(root, pages));
        root.or_else(|| first_of(&self.entries, pages))
    }

    /// Returns how the group's root page lists its children: only a group with a root
    /// can (rule N4).
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
    /// Returns the word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Expanded => "expanded",
            Self::Collapsed => "collapsed",
        }
    }
}
