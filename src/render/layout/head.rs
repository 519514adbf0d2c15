//! The `<head>` of a page: title, language, stylesheets and scripts.

use super::PageWriter;
use super::assets::brand;
use super::colour::Rgb;
use crate::digest::Digest;
use crate::docs::config::{Image, Scheme};
use crate::docs::{CONFIG, Docs};
use crate::markup::Html;
use crate::release::site::{SEARCH, feed_path};
use crate::render::link::{Map, Target};

/// Languages that are written from right to left.
const RIGHT_TO_LEFT: [&str; 2] = ["ar", "he"];

// === impl PageWriter ===

impl PageWriter<'_> {
    pub(super) fn head(&mut self, title: &str, description: Option<&str>, indexed: bool) {
        let language = self.layout.language_tag(self.beside);
        self.out
            .markup("<!doctype html>\n<html")
            .attribute("lang", language);
        if RIGHT_TO_LEFT.contains(&language) {
            self.out.markup(" dir=rtl");
        }
        let appearance = &self.layout.config().appearance;
        match appearance.default {
            Scheme::System => {}
            Scheme::Light => {
                self.out.markup(" data-theme=light");
            }
            Scheme::Dark => {
                self.out.markup(" data-theme=dark");
            }
        }
        if appearance.strict {
            self.out.markup(" data-strict");
        }
        // On the root element, so that the script hides a dismissed banner before it is painted.
        if let Some(banner) = self.layout.banner(self.beside).filter(|b| b.dismissible) {
            let digest = Digest::of(banner.content.as_bytes()).to_string();
            self.out.attribute("data-banner", &digest[..12]);
        }
        // Stylesheets of authors select a single page by this attribute.
        if self.id.is_some() {
            let path = format!("/{}", self.path);
            self.out.attribute("data-current-path", &path);
        }
        self.out.markup(
            "><head><meta charset=utf-8>\
             <meta name=viewport content=\"width=device-width, initial-scale=1\">\n<title>",
        );
        let name = &*self.layout.config().name;
        self.out.text(title);
        if !name.is_empty() && name != title {
            self.out.text(" - ").text(name);
        }
        self.out.markup("</title>\n");
        if let Some(path) = self.redirect {
            let refresh = format!("0;url={}", self.start.to(path));
            self.out
                .markup("<meta http-equiv=refresh")
                .attribute("content", &refresh)
                .markup(">\n");
        }
        self.described(title, description, indexed);
        self.loaded(title);
        // After the rest of the head, which is compressed better at the beginning of the page.
        self.addressed_tags(title, description, indexed);
        self.out.markup("</head>\n<body");
        let root = self.start.to("");
        self.out.attribute("data-root", &root);
        let part = self.layout.part(self.beside);
        self.out.attribute("data-search", &self.start.to(SEARCH));
        self.out.attribute("data-language", part.language);
        if let Some(version) = part.version {
            self.out.attribute("data-version", version);
        }
        let finder = self.start.to(&self.layout.assets().finder.path);
        self.out.attribute("data-finder", &finder);
        self.out
            .attribute("data-messages", &self.messages.script.joined());
        self.out
            .markup(">\n<a class=skip href=\"#_content\">")
            .text(self.messages.skip_to_content)
            .markup("</a>\n");
    }

    fn loaded(&mut self, title: &str) {
        // WHATWG HTML §4.6.7.8: nothing is painted before the article begins, so a header
        // that is parsed in parts does not move the page.
        self.out
            .markup("<link rel=expect href=\"#_content\" blocking=render>\n");
        if let Some(font) = &self.layout.assets().sans {
            self.out
                .markup("<link rel=preload as=font type=\"font/woff2\" crossorigin");
            self.href(&font.path);
            self.out.markup(">\n");
        }
        self.out.markup("<link rel=stylesheet");
        self.href(&self.layout.assets().stylesheet.path);
        if let Some(authors) = &self.layout.assets().authors {
            self.out.markup(">\n<link rel=stylesheet");
            self.href(&authors.path);
        }
        // Not deferred, because its first part sets colours and banner before the first paint.
        self.out.markup(">\n<script");
        let script = self.start.to(&self.layout.assets().script.path);
        self.out.attribute("src", &script).markup("></script>\n");
        if let Some((script, styles)) = self
            .layout
            .assets()
            .forms
            .as_ref()
            .filter(|_| self.form.is_some())
        {
            self.out.markup("<link rel=stylesheet");
            self.href(&styles.path);
            let script = self.start.to(&script.path);
            self.out
                .markup(">\n<script type=module")
                .attribute("src", &script);
            self.out.markup("></script>\n");
        }
        if let Some(feed) = self.feed() {
            self.out
                .markup("<link rel=alternate type=\"application/rss+xml\"")
                .attribute("title", title);
            self.href(&feed);
            self.out.markup(">\n");
        }
        self.out.escaped(&self.layout.bar_colours);
        self.icons();
    }

    /// Returns the path of the feed of the page, if it has one.
    pub(super) fn feed(&self) -> Option<String> {
        let page = self.layout.navigation().page(self.id?);
        self.layout
            .docs
            .has_feed(page)
            .then(|| feed_path(self.path))
    }

    /// Writes the icons of tabs and of apps. Apps take PNG images only, which are drawn if they can
    /// be.
    fn icons(&mut self) {
        let map = self.layout.map();
        let Some(icon) = site_icon(self.layout.docs, map) else {
            return;
        };
        self.out.markup("<link rel=icon");
        match &map.icon {
            Some(form) => self.href(&form.path),
            None => self.href_written(&icon.light),
        }
        self.out.markup(">\n");
        if let Some(icons) = self.layout.drawn().and_then(|drawn| drawn.icons.as_ref()) {
            self.out.markup("<link rel=apple-touch-icon");
            self.href(&icons.touch.path);
            // A private site answers only requests with credentials.
            self.out
                .markup(">\n<link rel=manifest crossorigin=use-credentials");
            self.href(&icons.manifest.path);
            self.out.markup(">\n");
        } else if icon.light.to_ascii_lowercase().ends_with(".png") {
            self.out.markup("<link rel=apple-touch-icon");
            self.href_written(&icon.light);
            self.out.markup(">\n");
        }
    }
}

/// Returns the icon of a site: its `favicon`, or else its logo, if no side of it is more than twice
/// as long as the other.
#[must_use]
pub fn site_icon<'d>(docs: &'d Docs, map: &Map) -> Option<&'d Image> {
    let is_square = |logo: &&Image| match map.resolve(CONFIG, &logo.light) {
        Target::Asset(path) => {
            let size = map.assets.get(&path).and_then(|asset| asset.size);
            size.is_some_and(|(width, height)| width <= 2 * height && height <= 2 * width)
        }
        _ => false,
    };
    let config = &docs.config;
    let logo = || config.logo.as_ref().filter(is_square);
    config.favicon.as_ref().or_else(logo)
}

/// Returns the tags that give the bar of the browser the background colour of the pages of a site.
pub(super) fn bar_colours(docs: &Docs) -> String {
    let (light, dark) = brand(docs).backgrounds();
    let appearance = &docs.config.appearance;
    let tag = |colour: Rgb, media: Option<&str>| {
        let mut out = Html::default();
        out.markup("<meta name=theme-color")
            .attribute("content", &colour.to_string());
        if let Some(media) = media {
            out.attribute("media", media);
        }
        out.markup(">\n");
        out.into_string()
    };
    match appearance.default {
        Scheme::Light if appearance.strict => tag(light, None),
        Scheme::Dark if appearance.strict => tag(dark, None),
        _ => {
            tag(light, Some("(prefers-color-scheme:light)"))
                + &tag(dark, Some("(prefers-color-scheme:dark)"))
        }
    }
}
