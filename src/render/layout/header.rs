//! The header of a page: banner, logo, selectors, search, links, tabs.

use super::PageWriter;
use super::icon::Picture;
use crate::docs::CONFIG;
use crate::docs::navigation::tree::DivisionKind;
use crate::mdx;
use crate::release::site::SEARCH;
use crate::render::html;
use crate::render::messages::Messages;

/// The height of the logo in pixels, as it is written.
const LOGO_HEIGHT: usize = 28;

// === impl PageWriter ===

impl PageWriter<'_> {
    pub(super) fn top(&mut self, has_sidebar: bool) {
        self.banner();
        self.out
            .markup("<header class=top><p class=agents lang=en>For agents: all pages of this site are listed in <a tabindex=-1")
            .attribute("href", &self.start.to("llms.txt"))
            .markup(">/llms.txt</a>, and each of them is Markdown at its address with .md at the end.</p><div class=head><div class=bar>");
        // A popover works without a script: it closes on Escape or a press outside, and
        // returns the focus.
        self.out.markup(
            "<button class=\"plain-button menu sign sign-menu\" type=button popovertarget=_pages",
        );
        self.out.attribute("aria-label", self.messages.menu);
        self.out.markup("></button>");
        self.logo();
        let prompt = self.layout.config().search.prompt.as_deref();
        let prompt = prompt.filter(|_| self.layout.is_in_first_language(self.beside));
        // Without a script it leads to a page with a form.
        self.out.markup("<a class=\"search sign sign-search\"");
        let search = self.start.to(SEARCH);
        self.out
            .attribute("href", &search)
            .markup("><span>")
            .text(prompt.unwrap_or(self.messages.search))
            .markup("</span><kbd class=scripted>/</kbd></a>");
        if !has_sidebar {
            self.choices();
        }
        let sidebar = self.layout.sidebar(self.beside);
        for (divisions, at) in &sidebar.selected {
            if divisions.kind == DivisionKind::Languages {
                self.selector(divisions, *at);
            }
        }
        if !self.layout.config().appearance.strict {
            self.out
                .markup("<button class=\"plain-button theme scripted sign sign-theme\" type=button")
                .attribute("aria-label", self.messages.switch_colors)
                .attribute("data-names", self.messages.schemes)
                .markup("></button>");
        }
        self.out.markup("</div>\n");
        self.links();
        self.out.markup("</div>\n");
        for (divisions, at) in &sidebar.selected {
            if divisions.kind == DivisionKind::Tabs {
                self.tabs(divisions, *at);
            }
        }
        self.out.markup("</header>\n");
    }

    fn banner(&mut self) {
        let Some(banner) = self.layout.banner(self.beside) else {
            return;
        };
        self.out
            .markup("<div class=banner role=region")
            .attribute("aria-label", self.messages.announcement)
            .markup(if banner.dismissible {
                " data-banner>"
            } else {
                ">"
            });
        self.markdown(&banner.content);
        if banner.dismissible {
            self.out
                .markup("<button class=\"dismiss scripted sign sign-close\" type=button")
                .attribute("aria-label", self.messages.dismiss)
                .markup("></button>");
        }
        self.out.markup("</div>\n");
    }

    /// Writes a text of `docs.json` in Markdown; an invalid text is shown as it is.
    pub(super) fn markdown(&mut self, text: &str) {
        let Ok(nodes) = mdx::read_markdown(text) else {
            self.out.text(text);
            return;
        };
        let messages = Messages::of(self.layout.language_tag(self.beside));
        let map = self.layout.map();
        let written = html::write(CONFIG, self.start, &nodes, map, messages, true);
        self.out.append(&written.html);
    }

    fn logo(&mut self) {
        let config = self.layout.config();
        self.out.markup("<a class=logo");
        match config.logo.as_ref().and_then(|logo| logo.href.as_deref()) {
            Some(href) => self.href_written(href),
            None => self.href(self.layout.home()),
        }
        self.out.markup(">");
        let logo = config.logo.as_ref();
        let map = self.layout.map();
        let shown = |source| {
            let picture = Picture::of(source, map)?;
            let width = picture.width_at(LOGO_HEIGHT, map);
            Some((picture.address(self.start), width))
        };
        match logo.map(|logo| (shown(&logo.light), shown(&logo.dark))) {
            Some((Some(light), Some(dark))) if light != dark => {
                self.picture(&light, Some("only-light"));
                self.picture(&dark, Some("only-dark"));
            }
            Some((Some(only), _) | (None, Some(only))) => self.picture(&only, None),
            Some((None, None)) | None => self.name(),
        }
        self.out.markup("</a>");
    }

    fn name(&mut self) {
        let name = &*self.layout.config().name;
        self.out.text(if name.is_empty() {
            "Documentation"
        } else {
            name
        });
    }

    fn picture(&mut self, (address, width): &(String, Option<usize>), class: Option<&str>) {
        self.out.markup("<img height=28");
        if let Some(width) = width {
            self.out.attribute("width", &width.to_string());
        }
        self.out.attribute("src", address);
        self.out.attribute("alt", &self.layout.config().name);
        if let Some(class) = class {
            self.out.attribute("class", class);
        }
        self.out.markup(">");
    }

    fn links(&mut self) {
        let Some(navbar) = self.layout.navbar(self.beside) else {
            return;
        };
        self.out
            .markup("<nav class=links")
            .attribute("aria-label", self.messages.site)
            .markup(">");
        for link in &navbar.links {
            self.link(link, "<a");
        }
        if let Some(primary) = &navbar.primary {
            self.link(primary, "<a class=primary");
        }
        self.out.markup("</nav>\n");
    }
}
