//! The shell around an article: everything of a page that depends on the whole site.
//!
//! ```text
//!  banner
//!  header   logo · products, dropdowns, versions, languages · search · links · colours
//!  tabs
//!  ┌ sidebar ┐┌ article ────────────────────┐┌ on this page ┐
//!  │ anchors ││ where it stands · title     ││ headings     │
//!  │ groups  ││ body · listing of a root    ││              │
//!  └─────────┘│ previous · next             │└──────────────┘
//!  footer     └─────────────────────────────┘
//! ```
//!
//! All of it is readable and can be operated without scripts: what opens is `<details>`,
//! what is chosen is a link. The resolved navigation has decided what is shown; here it is
//! only written.
//!
//! Sources: specification 2.2 (rules N2 to N8); WCAG 2.2; WHATWG HTML.

mod assets;
mod chrome;
mod sidebar;
mod site;

pub use assets::{Assets, SCRIPT, search_path, search_titles};
pub use site::Shell;

use super::article::Article;
use super::escape::Html;
use super::html::Heading;
use super::link;
use crate::docs::config::Eyebrows;
use crate::docs::navigation::tree::{Directory, Entry, Group, Page, PageId};

/// Where styles, scripts and the search index of a site lie. No page can be there.
pub const STATIC: &str = "_waypost";

/// How wide a page is, by the `mode` of its frontmatter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Sidebar, article, list of headings.
    #[default]
    Default,
    /// Without the list of headings.
    Wide,
    /// Without sidebar and list.
    Center,
}

// === impl Mode ===

impl Mode {
    /// Reads the `mode` of a page's frontmatter; what is unknown is the default.
    #[must_use]
    pub fn parse(mode: Option<&str>) -> Self {
        match mode {
            Some("wide") => Self::Wide,
            Some("center" | "custom" | "frame") => Self::Center,
            _ => Self::Default,
        }
    }
}

/// Returns the path of a page's URL without its leading slash.
#[must_use]
pub fn path_of(page: &Page) -> &str {
    page.url.trim_start_matches('/')
}

/// A page in the making: where it stands and what was written of it.
struct Sheet<'s> {
    shell: &'s Shell<'s>,
    /// The path in URLs of the page, from which all links are written.
    path: &'s str,
    /// The page in the navigation; `None` for the page that says that there is none.
    id: Option<PageId>,
    out: Html,
}

// === impl Shell ===

impl Shell<'_> {
    /// Writes the page of an article.
    #[must_use]
    pub fn page(&self, id: PageId, article: &Article, mode: Mode) -> String {
        let page = self.navigation().page(id);
        let mut sheet = Sheet::new(self, path_of(page), Some(id));
        let indexed = !page.hidden && !page.noindex;
        let description = page.description.as_deref().or(article.summary.as_deref());
        sheet.head(&page.title, description, indexed);
        sheet.top();
        sheet.out.markup(match mode {
            Mode::Default => "<div class=columns>",
            Mode::Wide => "<div class=\"columns wide\">",
            Mode::Center => "<div class=\"columns center\">",
        });
        if mode != Mode::Center {
            sheet.sidebar();
        }
        sheet.main(page, article, mode);
        sheet.out.markup("</div>\n");
        sheet.bottom();
        sheet.out.into_string()
    }

    /// Writes the page that answers for paths at which there is nothing. It is shown at any
    /// depth, so its links start at the placeholder of the base path.
    #[must_use]
    pub fn not_found(&self) -> String {
        let mut sheet = Sheet::new(self, "", None);
        sheet.head("Page not found", None, false);
        sheet.top();
        sheet.out.markup("<div class=columns>");
        sheet.sidebar();
        sheet.out.markup(
            "<main id=content><article><h1>Page not found</h1>\
             <p>There is no page at this address. It may have moved.</p>\
             <div id=suggestions></div>",
        );
        sheet.out.markup("<p><a");
        sheet.href(self.home());
        sheet
            .out
            .markup(">Go to the first page</a></p></article></main></div>\n");
        sheet.bottom();
        sheet.out.into_string()
    }
}

// === impl Sheet ===

impl<'s> Sheet<'s> {
    fn new(shell: &'s Shell<'s>, path: &'s str, id: Option<PageId>) -> Self {
        Self {
            shell,
            path,
            id,
            out: Html::default(),
        }
    }

    /// Writes the address of a path of the site.
    fn href(&mut self, to: &str) {
        let href = self.address(to);
        self.out.attribute("href", &href);
    }

    fn address(&self, to: &str) -> String {
        match self.id {
            Some(_) => link::relative(self.path, to),
            None => format!(
                "{}/{}",
                crate::discovery::BASE_URL_PLACEHOLDER,
                link::encode(to)
            ),
        }
    }

    /// Writes the address of a link that an author wrote in the configuration.
    fn href_written(&mut self, href: &str) {
        let address = match self.shell.map().resolve("docs.json", href) {
            link::Target::Page { page, rest } => self.address(&page) + &rest,
            link::Target::Unknown { path, rest } => self.address(&path) + &rest,
            link::Target::Asset(path) => self.address(&path),
            link::Target::Here(href) | link::Target::Elsewhere(href) => href.into(),
            link::Target::Refused => "#".to_owned(),
        };
        self.out.attribute("href", &address);
        if address.starts_with("http")
            && !address.starts_with(crate::discovery::BASE_URL_PLACEHOLDER)
        {
            self.out.markup(" rel=noopener");
        }
    }

    /// Opens a link to a page; an entry may lead elsewhere instead.
    fn open_link(&mut self, id: PageId) {
        let page = self.shell.navigation().page(id);
        self.out.markup("<a");
        match &page.link {
            Some(link) => self.href_written(link),
            None => self.href(path_of(page)),
        }
        if self.id == Some(id) {
            self.out.markup(" aria-current=page");
        }
        self.out.markup(">");
    }

    fn main(&mut self, page: &Page, article: &Article, mode: Mode) {
        self.out.markup("<main id=content><article>");
        self.eyebrow(page);
        self.out.markup("<h1>").text(&page.title).markup("</h1>\n");
        if let Some(description) = &page.description {
            self.out.markup("<p class=lead>").text(description);
            self.out.markup("</p>\n");
        }
        self.page_actions();
        self.out.append(&article.html);
        self.listings();
        self.out.markup("</article>\n");
        self.neighbours(page);
        self.out.markup("</main>\n");
        if mode == Mode::Default {
            self.on_this_page(&article.headings);
        }
    }

    /// Where the page stands, as `styling.eyebrows` wants it.
    fn eyebrow(&mut self, page: &Page) {
        let Some(place) = &page.place else {
            return;
        };
        let labels = &place.breadcrumb;
        if labels.is_empty() {
            return;
        }
        if self.shell.eyebrows() == Eyebrows::Breadcrumbs {
            self.out
                .markup("<nav class=eyebrow aria-label=Breadcrumb><ol>");
            for label in labels {
                self.out.markup("<li>").text(label).markup("</li>");
            }
            self.out.markup("</ol></nav>\n");
        } else if let Some(section) = labels.last() {
            self.out
                .markup("<p class=eyebrow>")
                .text(section)
                .markup("</p>\n");
        }
    }

    fn page_actions(&mut self) {
        let markdown = if self.path.is_empty() {
            "index"
        } else {
            self.path
        };
        self.out
            .markup("<p class=actions><a rel=alternate type=\"text/markdown\"");
        self.href(&format!("{markdown}.md"));
        self.out.markup(">View as Markdown</a></p>\n");
    }

    /// N4: the listings of the groups whose root this page is.
    fn listings(&mut self) {
        let shell = self.shell;
        for group in self.id.into_iter().flat_map(|id| shell.rooted_at(id)) {
            match group.listing() {
                Directory::None => {}
                Directory::Card => self.listing(group, "<ul class=\"cards cols-2 listing\">"),
                Directory::Accordion => self.listing(group, "<ul class=\"listing rows\">"),
            }
        }
    }

    fn listing(&mut self, group: &Group, open: &'static str) {
        self.out.markup(open);
        for entry in &group.entries {
            let (id, label) = match entry {
                Entry::Page(id) if Some(*id) == group.root => continue,
                Entry::Page(id) => (*id, None),
                Entry::Group(group) => match group.first(&self.shell.navigation().pages) {
                    Some(first) => (first, Some(&group.label)),
                    None => continue,
                },
            };
            let page = self.shell.navigation().page(id);
            if page.hidden {
                continue;
            }
            self.out.markup("<li class=card><p class=card-title>");
            self.open_link(id);
            self.out
                .text(label.unwrap_or(&page.title))
                .markup("</a></p>");
            if let (None, Some(description)) = (label, &page.description) {
                self.out.markup("<p>").text(description).markup("</p>");
            }
            if let Entry::Group(group) = entry {
                let pages = group.entries.len();
                self.out.markup("<p>").number(pages);
                self.out.markup(if pages == 1 {
                    " page</p>"
                } else {
                    " pages</p>"
                });
            }
            self.out.markup("</li>");
        }
        self.out.markup("</ul>\n");
    }

    fn neighbours(&mut self, page: &Page) {
        let Some(place) = &page.place else {
            return;
        };
        self.out
            .markup("<nav class=neighbours aria-label=\"Previous and next\">");
        for (id, open, word) in [
            (place.previous, "<div class=previous>", "Previous"),
            (place.next, "<div class=next>", "Next"),
        ] {
            self.out.markup(open);
            if let Some(id) = id {
                self.open_link(id);
                let title = &self.shell.navigation().page(id).title;
                self.out.markup("<small>").text(word).markup("</small>");
                self.out.text(title).markup("</a>");
            }
            self.out.markup("</div>");
        }
        self.out.markup("</nav>\n");
    }

    fn on_this_page(&mut self, headings: &[Heading]) {
        self.out
            .markup("<nav class=contents aria-label=\"On this page\">");
        let listed = headings.iter().filter(|heading| heading.level <= 3);
        if listed.clone().next().is_some() {
            self.out.markup("<p>On this page</p><ul>");
            for heading in listed {
                self.out.markup(if heading.level == 3 {
                    "<li class=deeper><a"
                } else {
                    "<li><a"
                });
                self.out.attribute("href", &format!("#{}", heading.id));
                self.out.markup(">").text(&heading.text).markup("</a></li>");
            }
            self.out.markup("</ul>");
        }
        self.out.markup("</nav>\n");
    }
}

#[cfg(test)]
mod tests;
