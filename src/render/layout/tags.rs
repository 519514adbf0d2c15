//! The tags of a page for search engines and for previews of links.
//!
//! Tags of the frontmatter replace those of `seo` in `docs.json`, and both replace those that are
//! made from title and description. A page without an image has one that is drawn
//! ([`Drawings`](super::Drawings)). What the program knows better is written elsewhere: the
//! canonical address and the translations are in the `Link` field of the response.
//!
//! Programs that make previews need whole URLs, but a release knows no domain. So the tags with
//! addresses are one part of the head, with the placeholder of the base URL, which the server
//! replaces ([`ADDRESSED_START`]).
//!
//! Sources: the Open Graph protocol; X, "Cards markup"; WHATWG HTML §4.2.5.

use super::{Layout, PageWriter};
use crate::diagnostic::Diagnostic;
use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::docs::config::set_tag;
use crate::docs::config_link::is_image_tag;
use crate::docs::{CONFIG, Docs};
use crate::release::site::ADDRESSED_START;
use crate::render::link::{Map, Target};
use crate::site::percent::encode;

/// Tags that this program writes from what it knows, whatever an author writes.
const OWN: [&str; 6] = [
    "canonical",
    "charset",
    "description",
    "viewport",
    "og:url",
    "color-scheme",
];
/// The beginnings of the names that `RDFa` tags have; other names are those of HTML.
const PROPERTIES: [&str; 4] = ["og:", "article:", "fb:", "profile:"];

// === impl Layout ===

impl<'d> Layout<'d> {
    /// Returns the tags that the authors give a page, without addresses of images.
    fn authors_tags(&self, writer: &PageWriter<'_>) -> Vec<(&'d str, &'d str)> {
        let Some(id) = writer.id else {
            return Vec::new();
        };
        let mut tags = self.config().seo.tags(self.path(id));
        for tag in self.own_tags(id) {
            set_tag(&mut tags, &tag.name, &tag.content);
        }
        tags.retain(|(name, _)| !OWN.contains(name) && !is_image_tag(name));
        tags
    }

    /// Returns the image of a page, with its size if that is known: the one that its frontmatter
    /// names, or else `docs.json`, or else the one that is drawn.
    fn image(&self, writer: &PageWriter<'_>) -> Option<(String, Option<(usize, usize)>)> {
        let id = writer.id?;
        let page = self.navigation().page(id);
        let own = self.own_tags(id).iter();
        let own = own.filter(|tag| is_image_tag(&tag.name));
        let own = own.filter_map(|tag| image_at(&page.slug, &tag.content, self.map()));
        let of_site = self.config().seo.tags(self.path(id)).into_iter();
        let of_site = of_site.filter(|(name, _)| is_image_tag(name));
        let of_site = of_site.filter_map(|(_, content)| image_at(CONFIG, content, self.map()));
        own.chain(of_site).next().or_else(|| {
            let drawn = self.preview(id)?;
            let size = (drawn.width as usize, drawn.height as usize);
            Some((format!("{BASE_URL_PLACEHOLDER}/{}", drawn.path), Some(size)))
        })
    }
}

// === impl PageWriter ===

impl PageWriter<'_> {
    /// Writes the tags without addresses of the site.
    pub(super) fn described(&mut self, title: &str, description: Option<&str>, indexed: bool) {
        if let Some(description) = description {
            self.tag("description", description);
        }
        let name = &*self.layout.config().name;
        let mut tags: Vec<(&str, &str)> = vec![("og:title", title)];
        tags.extend(description.map(|description| ("og:description", description)));
        if self.id.is_some() {
            tags.push(("og:type", "website"));
            tags.extend((!name.is_empty()).then_some(("og:site_name", name)));
        }
        for (name, content) in self.layout.authors_tags(self) {
            set_tag(&mut tags, name, content);
        }
        for (name, content) in tags {
            // Nothing that an author writes shows a page to search engines that is hidden.
            if name == "robots" && !indexed {
                continue;
            }
            self.tag(name, content);
        }
        if !indexed {
            self.out.markup("<meta name=robots content=noindex>\n");
        }
    }

    /// Writes the tags with addresses of the site.
    pub(super) fn addressed_tags(&mut self, title: &str, description: Option<&str>, indexed: bool) {
        if self.id.is_none() {
            return;
        }
        let start = self.out.as_str().len();
        let url = format!("{BASE_URL_PLACEHOLDER}/{}", encode(self.path));
        self.out.markup(ADDRESSED_START).text(&url).markup("\">\n");
        if let Some((image, size)) = self.layout.image(self) {
            self.tag("og:image", &image);
            if let Some((width, height)) = size {
                self.tag("og:image:width", &width.to_string());
                self.tag("og:image:height", &height.to_string());
            }
            let is_named = |(name, _): &(&str, &str)| *name == "twitter:card";
            if !self.layout.authors_tags(self).iter().any(is_named) {
                self.tag("twitter:card", "summary_large_image");
            }
        }
        if indexed {
            self.linked_data(title, description);
        }
        self.addressed = Some((start, self.out.as_str().len()));
    }

    fn tag(&mut self, name: &str, content: &str) {
        let is_property = PROPERTIES.iter().any(|start| name.starts_with(start));
        self.out
            .markup("<meta")
            .attribute(if is_property { "property" } else { "name" }, name)
            .attribute("content", content)
            .markup(">\n");
    }
}

/// Returns the address of an image with its size, if that is known; `None` if it is neither a file
/// of the site nor a URL.
fn image_at(file: &str, written: &str, map: &Map) -> Option<(String, Option<(usize, usize)>)> {
    match map.resolve(file, written) {
        Target::Asset(path) => {
            let size = map.assets.get(&path).and_then(|asset| asset.size);
            Some((format!("{BASE_URL_PLACEHOLDER}/{}", encode(&path)), size))
        }
        Target::Elsewhere(url) => url.starts_with("https:").then(|| (url.into(), None)),
        _ => None,
    }
}

/// Finds the files of the site that tags name as images.
pub(super) fn image_files<'d>(docs: &'d Docs, map: &'d Map) -> impl Iterator<Item = Box<str>> + 'd {
    let seo = &docs.config.seo;
    let of_paths = seo.paths.iter().map(|entry| &entry.metatags);
    let of_site = [&seo.metatags].into_iter().chain(of_paths).flatten();
    let of_site = of_site.map(|(name, content)| (CONFIG, &**name, &**content));
    let pages = docs.pages.iter().filter(|page| page.meta.is_public());
    let of_pages = pages.flat_map(|page| {
        let tags = page.meta.tags.iter();
        tags.map(|tag| (&*page.slug, &*tag.name, &*tag.content))
    });
    let images = of_site
        .chain(of_pages)
        .filter(|(_, name, _)| is_image_tag(name));
    images.filter_map(|(file, _, content)| match map.resolve(file, content) {
        Target::Asset(path) => Some(path),
        _ => None,
    })
}

/// Finds the images of previews in frontmatter that are neither a file of the site nor a URL.
#[must_use]
pub fn missing_images(docs: &Docs, map: &Map) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for page in docs.pages.iter() {
        let images = page.meta.tags.iter().filter(|tag| is_image_tag(&tag.name));
        for tag in images.filter(|tag| image_at(&page.slug, &tag.content, map).is_none()) {
            let message = format!(
                "`{}` is `{}`, neither a file of this site nor a URL with `https://`",
                tag.name, tag.content
            );
            let place = tag.location;
            let diagnostic = Diagnostic::warning("image-tag", page.path.as_str(), message);
            found.push(diagnostic.at(place.line, place.column, place.length));
        }
    }
    found
}
