//! The files of the repository that the layout of a site shows or links.
//!
//! A release holds only files that its pages need. Each article lists its own files; the
//! files that `docs.json` names are the same for all pages and are found here once.

use std::collections::BTreeSet;

use super::icon::icon_files;
use super::tags::image_files;
use crate::docs::config::{Banner, Font, Footer, Navbar};
use crate::docs::navigation::tree::{Content, Division};
use crate::docs::{CONFIG, Docs};
use crate::mdx;
use crate::render::html;
use crate::render::link::{Map, Start, Target};
use crate::render::messages::Messages;

/// Finds the files that the layout of a site shows or links.
#[must_use]
pub fn linked_files(docs: &Docs, map: &Map) -> BTreeSet<Box<str>> {
    let mut linked = Linked {
        map,
        files: icon_files(docs, map)
            .chain(image_files(docs, map))
            .collect(),
    };
    let config = &docs.config;
    for image in [&config.logo, &config.favicon].into_iter().flatten() {
        linked.link(&image.light);
        linked.link(&image.dark);
        linked.links(image.href.as_deref());
    }
    let fonts = [&config.fonts.body, &config.fonts.heading];
    let fonts = fonts.into_iter().flatten().filter_map(Font::file);
    let fonts = fonts.filter(|path| map.assets.contains_key(*path));
    linked.files.extend(fonts.map(Box::from));
    linked.parts(&config.banner, &config.navbar, &config.footer);
    linked.text(config.errors.not_found.description.as_deref());
    let navigation = &docs.navigation;
    linked.links(navigation.global.iter().map(|anchor| &*anchor.href));
    let public = navigation.pages.iter().filter(|page| page.public);
    linked.links(public.filter_map(|page| page.link.as_deref()));
    linked.content(navigation.content.as_ref());
    linked.files
}

/// The files found so far.
struct Linked<'m> {
    map: &'m Map,
    files: BTreeSet<Box<str>>,
}

// === impl Linked ===

impl Linked<'_> {
    fn link(&mut self, href: &str) {
        if let Target::Asset(path) = self.map.resolve(CONFIG, href) {
            self.files.insert(path);
        }
    }

    fn links<'h>(&mut self, hrefs: impl IntoIterator<Item = &'h str>) {
        hrefs.into_iter().for_each(|href| self.link(href));
    }

    /// Adds the files that a text in Markdown shows or links.
    fn text(&mut self, text: Option<&str>) {
        let Some(nodes) = text.map(mdx::read_markdown) else {
            return;
        };
        let nodes = nodes.unwrap_or_default();
        let messages = Messages::of("");
        let written = html::write(CONFIG, Start::Anywhere, &nodes, self.map, messages, true);
        self.files.extend(written.assets);
    }

    /// Adds the files of banner, header and footer, which a language may override (N8).
    fn parts(&mut self, banner: &Option<Banner>, navbar: &Option<Navbar>, footer: &Option<Footer>) {
        self.text(banner.as_ref().map(|banner| &*banner.content));
        if let Some(navbar) = navbar {
            let links = navbar.links.iter().chain(&navbar.primary);
            self.links(links.map(|link| &*link.href));
        }
        if let Some(footer) = footer {
            let links = footer.columns.iter().flat_map(|column| &column.items);
            self.links(links.map(|link| &*link.href));
            self.links(footer.socials.iter().map(|(_, href)| &**href));
        }
    }

    fn content(&mut self, content: Option<&Content>) {
        match content {
            Some(Content::Link(href)) => self.link(href),
            Some(Content::Divisions(divisions)) => {
                divisions
                    .list
                    .iter()
                    .for_each(|division| self.division(division));
            }
            Some(Content::Entries(_) | Content::Groups(_)) | None => {}
        }
    }

    fn division(&mut self, division: &Division) {
        self.links(division.global.iter().map(|anchor| &*anchor.href));
        if let Some(parts) = &division.language {
            self.parts(&parts.banner, &parts.navbar, &parts.footer);
        }
        self.content(Some(&division.content));
    }
}
