//! What stands around the columns of a page: head, banner, header, tabs, footer.

use super::{Sheet, search_path};
use crate::digest::Digest;
use crate::docs::config::Link;
use crate::docs::navigation::tree::{Content, Division, DivisionKind, Divisions};
use crate::render::{html, mdx};

/// Languages that are written from right to left.
const RIGHT_TO_LEFT: [&str; 2] = ["ar", "he"];

// === impl Sheet ===

impl Sheet<'_> {
    pub(super) fn head(&mut self, title: &str, description: Option<&str>, indexed: bool) {
        let own = self.shell.language(self.id);
        let language = own.map_or("en", |parts| &*parts.language.tag);
        let own = own.map(|parts| &*parts.language.code);
        self.out
            .markup("<!doctype html>\n<html")
            .attribute("lang", language);
        if RIGHT_TO_LEFT.contains(&language) {
            self.out.markup(" dir=rtl");
        }
        self.out.markup(
            "><head><meta charset=utf-8>\
             <meta name=viewport content=\"width=device-width, initial-scale=1\">\n<title>",
        );
        let name = &*self.shell.config().name;
        self.out.text(title);
        if !name.is_empty() && name != title {
            self.out.text(" - ").text(name);
        }
        self.out.markup("</title>\n");
        if let Some(description) = description {
            self.out
                .markup("<meta name=description")
                .attribute("content", description);
            self.out.markup(">\n<meta property=\"og:description\"");
            self.out.attribute("content", description).markup(">\n");
        }
        self.out
            .markup("<meta property=\"og:title\"")
            .attribute("content", title);
        self.out.markup(">\n");
        if !indexed {
            self.out.markup("<meta name=robots content=noindex>\n");
        }
        self.out.markup("<link rel=stylesheet");
        self.href(&self.shell.assets().stylesheet.path);
        self.out.markup(">\n<script");
        let script = self.address(&self.shell.assets().script.path);
        self.out.attribute("src", &script).markup("></script>\n");
        if let Some(icon) = &self.shell.config().favicon {
            self.out.markup("<link rel=icon");
            self.href_written(&icon.light);
            self.out.markup(">\n");
        }
        self.out.markup("</head>\n<body");
        let root = self.address("");
        self.out.attribute("data-root", &root);
        let search = self.address(&search_path(own));
        self.out.attribute("data-search", &search);
        self.out
            .markup(">\n<a class=skip href=\"#content\">Skip to content</a>\n");
    }

    pub(super) fn top(&mut self) {
        self.banner();
        self.out.markup("<header class=top><div class=bar>");
        self.logo();
        let leaf = self.shell.leaf(self.id);
        for (divisions, at) in &leaf.trail {
            match divisions.kind {
                DivisionKind::Products | DivisionKind::Dropdowns => {
                    self.selector(divisions, *at, "Section");
                }
                DivisionKind::Versions => self.selector(divisions, *at, "Version"),
                DivisionKind::Languages => self.selector(divisions, *at, "Language"),
                DivisionKind::Tabs | DivisionKind::Menu | DivisionKind::Anchors => {}
            }
        }
        self.out.markup(
            "<button class=search type=button hidden>Search <kbd>/</kbd></button>\
             <nav class=links aria-label=Site>",
        );
        if let Some(navbar) = self.shell.navbar(self.id) {
            for link in &navbar.links {
                self.link(link, "<a");
            }
            if let Some(primary) = &navbar.primary {
                self.link(primary, "<a class=primary");
            }
        }
        self.out.markup(
            "</nav><button class=theme type=button hidden aria-label=\"Switch colours\">◐</button></div>",
        );
        for (divisions, at) in &leaf.trail {
            if divisions.kind == DivisionKind::Tabs {
                self.tabs(divisions, *at);
            }
        }
        self.out.markup("</header>\n");
    }

    fn banner(&mut self) {
        let Some(banner) = self.shell.banner(self.id) else {
            return;
        };
        self.out
            .markup("<div class=banner role=region aria-label=Announcement");
        if banner.dismissible {
            let digest = Digest::of(banner.content.as_bytes()).to_string();
            self.out.attribute("data-banner", &digest[..12]);
        }
        self.out.markup(">");
        // What is no Markdown is text: the banner is never lost.
        if let Ok(nodes) = mdx::read_markdown(&banner.content) {
            let written = html::write("docs.json", self.path, &nodes, self.shell.map());
            self.out.append(&written.html);
        } else {
            self.out.text(&banner.content);
        }
        if banner.dismissible {
            self.out.markup(
                "<button class=dismiss type=button hidden aria-label=\"Dismiss\">×</button>",
            );
        }
        self.out.markup("</div>\n");
    }

    fn logo(&mut self) {
        self.out.markup("<a class=logo");
        match self
            .shell
            .config()
            .logo
            .as_ref()
            .and_then(|logo| logo.href.as_deref())
        {
            Some(href) => self.href_written(href),
            None => self.href(self.shell.home()),
        }
        self.out.markup(">");
        let name = self.shell.config().name.clone();
        match &self.shell.config().logo {
            Some(logo) if logo.light == logo.dark => self.picture(&logo.light, &name, ""),
            Some(logo) => {
                self.picture(&logo.light, &name, "only-light");
                self.picture(&logo.dark, &name, "only-dark");
            }
            None => {
                self.out.text(if name.is_empty() {
                    "Documentation"
                } else {
                    &name
                });
            }
        }
        self.out.markup("</a>");
    }

    fn picture(&mut self, src: &str, alt: &str, class: &str) {
        let path = src.trim_start_matches('/');
        let address = if self.shell.map().assets.contains_key(path) {
            self.address(path)
        } else if src.starts_with("https://") {
            src.to_owned()
        } else {
            self.out.text(alt);
            return;
        };
        self.out.markup("<img height=28").attribute("src", &address);
        self.out.attribute("alt", alt);
        if !class.is_empty() {
            self.out.attribute("class", class);
        }
        self.out.markup(">");
    }

    /// A list to choose one of several divisions from.
    fn selector(&mut self, divisions: &Divisions, at: usize, what: &'static str) {
        let current = &divisions.list[at];
        self.out.markup("<details class=selector");
        self.out
            .attribute("data-kind", divisions.kind.key())
            .markup("><summary");
        self.out
            .attribute("aria-label", &format!("{what}: {}", label(current)));
        self.out
            .markup(">")
            .text(label(current))
            .markup("</summary><ul>");
        for (n, division) in divisions.list.iter().enumerate() {
            if division.hidden && n != at {
                continue;
            }
            self.out.markup("<li><a");
            self.division_href(divisions.kind, division);
            if n == at {
                self.out.markup(" aria-current=true");
            }
            if let Some(parts) = &division.language {
                self.out.attribute("lang", &parts.language.tag);
            }
            self.out.markup(">").text(label(division));
            self.badge(division.tag.as_deref());
            if n == divisions.default && divisions.kind == DivisionKind::Versions {
                self.badge(Some("default"));
            }
            if let Some(description) = &division.description {
                self.out
                    .markup("<small>")
                    .text(description)
                    .markup("</small>");
            }
            self.out.markup("</a></li>");
        }
        self.out.markup("</ul></details>");
    }

    pub(super) fn badge(&mut self, tag: Option<&str>) {
        if let Some(tag) = tag {
            self.out
                .markup(" <span class=badge>")
                .text(tag)
                .markup("</span>");
        }
    }

    /// Writes where choosing a division leads.
    pub(super) fn division_href(&mut self, kind: DivisionKind, division: &Division) {
        if let Content::Link(href) = &division.content {
            return self.href_written(href);
        }
        let switches = matches!(kind, DivisionKind::Versions | DivisionKind::Languages);
        let to = if switches {
            self.shell.counterpart(self.path, division)
        } else {
            let first = division.first.map(|id| self.shell.navigation().page(id));
            first.map(super::path_of)
        };
        self.href(to.unwrap_or(self.shell.home()));
    }

    fn tabs(&mut self, tabs: &Divisions, at: usize) {
        self.out
            .markup("<nav class=sections aria-label=Sections><ul>");
        for (n, tab) in tabs.list.iter().enumerate() {
            if tab.hidden && n != at {
                continue;
            }
            self.out.markup(if n == at {
                "<li class=current>"
            } else {
                "<li>"
            });
            match &tab.content {
                Content::Divisions(menu) if menu.kind == DivisionKind::Menu => {
                    self.menu(tab, menu);
                }
                _ => {
                    self.out.markup("<a");
                    self.division_href(tabs.kind, tab);
                    if n == at {
                        self.out.markup(" aria-current=true");
                    }
                    self.out.markup(">").text(label(tab));
                    self.badge(tab.tag.as_deref());
                    self.out.markup("</a>");
                }
            }
            self.out.markup("</li>");
        }
        self.out.markup("</ul></nav>\n");
    }

    fn menu(&mut self, tab: &Division, menu: &Divisions) {
        self.out.markup("<details class=selector><summary>");
        self.out.text(label(tab)).markup("</summary><ul>");
        for item in menu.list.iter().filter(|item| !item.hidden) {
            self.out.markup("<li><a");
            self.division_href(menu.kind, item);
            self.out.markup(">").text(label(item));
            if let Some(description) = &item.description {
                self.out
                    .markup("<small>")
                    .text(description)
                    .markup("</small>");
            }
            self.out.markup("</a></li>");
        }
        self.out.markup("</ul></details>");
    }

    fn link(&mut self, link: &Link, open: &'static str) {
        self.out.markup(open);
        self.href_written(&link.href);
        let label = link.label.as_deref().or(link.kind.as_deref());
        self.out
            .markup(">")
            .text(label.unwrap_or(&link.href))
            .markup("</a>");
    }

    pub(super) fn bottom(&mut self) {
        self.out.markup("<footer class=bottom>");
        if let Some(footer) = self.shell.footer(self.id) {
            for column in &footer.columns {
                self.out.markup("<div>");
                if let Some(header) = &column.header {
                    self.out.markup("<p>").text(header).markup("</p>");
                }
                self.out.markup("<ul>");
                for item in &column.items {
                    self.out.markup("<li>");
                    self.link(item, "<a");
                    self.out.markup("</li>");
                }
                self.out.markup("</ul></div>");
            }
            if !footer.socials.is_empty() {
                self.out.markup("<ul class=socials>");
                for (network, href) in &footer.socials {
                    self.out.markup("<li><a");
                    self.href_written(href);
                    self.out.markup(">").text(network).markup("</a></li>");
                }
                self.out.markup("</ul>");
            }
        }
        self.out.markup("</footer>\n</body></html>\n");
    }
}

/// What a division is called; a language in its own words.
fn label(division: &Division) -> &str {
    match &division.language {
        Some(parts) => parts.language.name,
        None => &division.label,
    }
}
