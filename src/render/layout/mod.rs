//! The layout around an article: the parts of a page that depend on the whole site.
//!
//! ```text
//!  banner                                                              header.rs
//!  header   logo · products, dropdowns, versions · search · links      header.rs
//!           languages · colours                                        selector.rs
//!  tabs     with their menus                                           selector.rs
//!  ┌ sidebar ┐┌ article ────────────────────┐┌ on this page ┐          sidebar.rs
//!  │ anchors ││ breadcrumb · title          ││ headings     │          article.rs
//!  │ groups  ││ body · listing of a root    ││              │          listing.rs
//!  └─────────┘│ previous · next             │└──────────────┘
//!  footer     └─────────────────────────────┘                          footer.rs
//! ```
//!
//! The page for a path without an article is in `missing.rs`; the page of search results is in
//! `results.rs`.
//!
//! A page can be read and used without scripts: menus are `<details>` or popovers, and every choice
//! is a link. Elements that need a script have the class `scripted` and are hidden without scripts.
//! The resolved navigation decides which entries are shown. The classes are in `styles/`.
//!
//! Sources: rules N2 to N8 of the navigation ([`crate::diagnostic::rules`]); WCAG 2.2; WHATWG HTML.

mod article;
mod assets;
mod colour;
mod drawings;
mod alternate;
mod sidebar_entries;
mod footer;
mod head;
mod header;
mod icon;
mod linked;
mod linked_data;
mod listing;
mod missing;
mod part;
mod related;
mod results;
mod selector;
mod sidebar;
mod shared;
mod tags;
mod theme;
mod vote;

pub(super) use assets::STYLES;
pub use assets::{Assets, JAVASCRIPT, SCRIPT, SPECULATION_TYPE, diagram_palette};
pub(super) use colour::PROPERTIES;
pub use drawings::Drawings;
pub use head::site_icon;
pub use icon::unknown_icons;
pub use linked::linked_files;
pub use part::Part;
pub use related::broken_related;
pub use shared::Layout;
pub use sidebar_entries::{SegmentedPage, Sidebars};
pub use tags::missing_images;

use sidebar_entries::{CURRENT, Marks};

use super::article::Article;
use super::icon::EmittedIcons;
use super::link::{Start, Target};
use super::messages::{self, Messages};
use crate::docs::CONFIG;
use crate::docs::navigation::tree::{Page, PageId};
use crate::docs::page::Mode;
use crate::markup::Html;
use crate::response::segments::Segment;

// === impl Mode ===

impl Mode {
    fn has_sidebar(self) -> bool {
        matches!(self, Self::Default | Self::Wide | Self::Frame)
    }

    fn has_contents(self) -> bool {
        self == Self::Default
    }

    fn columns(self) -> &'static str {
        match self {
            Self::Default => "<div class=\"columns default\">\n",
            Self::Wide => "<div class=\"columns wide\">\n",
            Self::Center => "<div class=\"columns center\">\n",
            Self::Custom => "<div class=\"columns custom\">\n",
            Self::Frame => "<div class=\"columns frame-mode\">\n",
        }
    }
}

/// Returns the path of a page's URL without its leading slash.
#[must_use]
pub fn path_of(page: &Page) -> &str {
    page.url.trim_start_matches('/')
}

/// Writes one page: its place in the site, and the HTML so far.
struct PageWriter<'s> {
    layout: &'s Layout<'s>,
    /// The path in URLs of the page.
    path: &'s str,
    /// The page in the navigation; `None` for the 404 page.
    id: Option<PageId>,
    /// The base of relative links.
    start: Start<'s>,
    /// The page whose language, sidebar and links are shown: the page itself, or for a 404
    /// page one of the same directory. `None` is the first page of the site.
    beside: Option<PageId>,
    messages: &'static messages::Layout,
    /// The icons that the page has already; later uses refer to the first.
    emitted_icons: EmittedIcons,
    /// The entries of sidebars, if several pages are written.
    sidebars: Option<&'s Sidebars>,
    /// The places of insertions, while entries are written for no page in particular.
    marks: Option<Marks>,
    /// The form of the endpoint of the page.
    form: Option<serde_json::Value>,
    /// The page that readers are taken to at once.
    redirect: Option<&'s str>,
    /// The segments of the page up to the end of its sidebar.
    segments: Vec<Segment>,
    /// Start and end of the part of the head that has addresses of the site, from the placeholder
    /// of its URL on.
    addressed: Option<(usize, usize)>,
    out: Html,
}

// === impl Layout ===

impl Layout<'_> {
    /// Writes the page of an article.
    #[must_use]
    pub fn page(&self, id: PageId, article: &Article, mode: Mode) -> String {
        self.write(PageWriter::of(self, id), id, article, mode).html
    }

    /// Writes the page of an article; the entries of its sidebar are copied if a page of the same
    /// directory has them, and are kept for the next one.
    #[must_use]
    pub fn page_with(
        &self,
        id: PageId,
        article: &Article,
        mode: Mode,
        sidebars: &Sidebars,
    ) -> SegmentedPage {
        let writer = PageWriter {
            sidebars: Some(sidebars),
            ..PageWriter::of(self, id)
        };
        self.write(writer, id, article, mode)
    }

    fn write(
        &self,
        mut writer: PageWriter<'_>,
        id: PageId,
        article: &Article,
        mode: Mode,
    ) -> SegmentedPage {
        let page = self.navigation().page(id);
        let description = page.description.as_deref().or(article.summary.as_deref());
        writer.head(&page.title, description, self.docs.is_found(page));
        writer.top(mode.has_sidebar());
        writer.out.markup(mode.columns());
        writer.sidebar(mode.has_sidebar());
        writer.main(page, article, mode);
        writer.out.markup("</div>\n");
        writer.bottom();
        writer.finish()
    }
}

// === impl PageWriter ===

impl<'s> PageWriter<'s> {
    /// Begins the writer of a page.
    fn of(layout: &'s Layout<'s>, id: PageId) -> Self {
        let path = layout.path(id);
        Self {
            path,
            id: Some(id),
            start: Start::Page(path),
            form: layout.form(id),
            ..Self::anywhere(layout, Some(id))
        }
    }

    /// Begins the writer of a page that is not in the navigation and is shown at any path.
    fn anywhere(layout: &'s Layout<'s>, beside: Option<PageId>) -> Self {
        Self {
            layout,
            path: "",
            id: None,
            start: Start::Anywhere,
            beside,
            messages: &Messages::of(layout.language_tag(beside)).layout,
            emitted_icons: EmittedIcons::default(),
            sidebars: None,
            marks: None,
            form: None,
            redirect: None,
            segments: Vec::new(),
            addressed: None,
            out: Html::default(),
        }
    }

    /// Writes `href` with a path of the site.
    fn href(&mut self, to: &str) {
        let href = self.start.to(to);
        self.out.attribute("href", &href);
    }

    /// Writes `href` with a link from `docs.json`.
    fn href_written(&mut self, href: &str) {
        let (address, more) = match self.layout.map().resolve(CONFIG, href) {
            Target::Page { page: path, rest } | Target::Unknown { path, rest } => {
                (self.start.to(&path) + &rest, "")
            }
            Target::Asset(path) => (self.start.to(&path), ""),
            Target::Here(href) => (href.into(), ""),
            Target::Elsewhere(url) if url.starts_with("http") => (url.into(), " rel=noopener"),
            Target::Elsewhere(url) => (url.into(), ""),
            Target::Rejected => ("#".to_owned(), ""),
        };
        self.out.attribute("href", &address).markup(more);
    }

    /// Opens a link to a page, or to the address that the page has instead of content.
    fn open_link(&mut self, id: PageId) {
        let page = self.layout.navigation().page(id);
        self.out.markup("<a");
        match &page.link {
            Some(link) => self.href_written(link),
            None => self.href(path_of(page)),
        }
        if self.id == Some(id) {
            self.out.markup(CURRENT);
        }
        if let Some(marks) = &mut self.marks {
            marks.link(id, self.out.as_str().len());
        }
        self.out.markup(">");
    }
}

#[cfg(test)]
mod tests;
