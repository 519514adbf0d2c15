//! What all pages of a site load: one stylesheet, one script, the list of pages for search.
//!
//! The names of styles and script hold their digest, so that they can be kept for ever.

use bytes::Bytes;
use serde_json::{Value, json};

use super::colour::Rgb;
use super::{STATIC, path_of};
use crate::digest::Digest;
use crate::docs::Docs;
use crate::docs::navigation::tree::Page;
use crate::render::article::Article;

/// The script of every page, its parts in order: the first runs before anything is painted,
/// the others when the page is there.
pub const SCRIPT: &str = concat!(
    include_str!("scripts/first.js"),
    include_str!("scripts/shell.js"),
    include_str!("scripts/tabs.js"),
    include_str!("scripts/copy.js"),
    include_str!("scripts/search.js"),
    include_str!("scripts/missing.js"),
);

/// The stylesheet of every page; what comes later wins.
const STYLES: &str = concat!(
    include_str!("styles/base.css"),
    include_str!("styles/chrome.css"),
    include_str!("styles/columns.css"),
    include_str!("styles/article.css"),
    include_str!("styles/code.css"),
    include_str!("styles/components.css"),
);
/// How many headings of a page can be found.
const HEADINGS_MAX: usize = 60;

/// A file whose name is its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path in URLs.
    pub path: String,
    /// Its bytes.
    pub bytes: Bytes,
    /// Its media type.
    pub media_type: &'static str,
}

/// What all pages of a site load.
#[derive(Clone, Debug)]
pub struct Assets {
    /// The stylesheet, with the site's colours.
    pub stylesheet: File,
    /// The script.
    pub script: File,
}

// === impl Assets ===

impl Assets {
    /// Makes the files of a site.
    #[must_use]
    pub fn new(docs: &Docs) -> Self {
        let styles = STYLES.to_owned() + &accents(docs);
        Self {
            stylesheet: File::new("site", "css", styles.into(), "text/css; charset=utf-8"),
            script: File::new(
                "site",
                "js",
                SCRIPT.into(),
                "text/javascript; charset=utf-8",
            ),
        }
    }
}

// === impl File ===

impl File {
    fn new(name: &str, extension: &str, bytes: Bytes, media_type: &'static str) -> Self {
        let digest = Digest::of(&bytes).to_string();
        Self {
            path: format!("{STATIC}/{name}.{}.{extension}", &digest[..16]),
            bytes,
            media_type,
        }
    }
}

/// The site's own colours: `primary`, and `light` in its place on dark ground.
fn accents(docs: &Docs) -> String {
    let colors = &docs.config.colors;
    let read = |colour: &Option<Box<str>>| Rgb::parse(colour.as_deref()?);
    let Some(primary) = read(&colors.primary) else {
        return String::new();
    };
    let (light, dark) = (
        primary.on_light(),
        read(&colors.light).unwrap_or(primary).on_dark(),
    );
    format!(
        ":root {{ --accent: light-dark({light}, {dark}); --on-accent: light-dark({}, {}); }}\n",
        light.ink(),
        dark.ink(),
    )
}

/// Returns the path of the list of the pages of a language. It has no digest in its name:
/// it changes with every title, and the pages around it should not.
#[must_use]
pub fn search_path(language: Option<&str>) -> String {
    match language {
        Some(language) => format!("{STATIC}/pages.{language}.json"),
        None => format!("{STATIC}/pages.json"),
    }
}

/// Writes the list of the pages of a language that search and the page for missing ones look
/// into, as `[path, title, where, description, [[anchor, heading]…]]`. What is hidden is not
/// in it.
#[must_use]
pub fn search_titles<'a>(
    docs: &Docs,
    language: Option<&str>,
    articles: impl Iterator<Item = Option<&'a Article>>,
) -> Vec<u8> {
    let speaks = |page: &Page| {
        let place = page.place.as_ref();
        place.and_then(|place| place.language.as_deref()) == language
    };
    let pages = docs.navigation.pages.iter().zip(articles);
    let listed = pages.filter(|(page, _)| {
        speaks(page)
            && page.public
            && !page.hidden
            && !page.noindex
            && page.place.is_some()
            && page.link.is_none()
    });
    let rows = listed.filter_map(|(page, article)| {
        let article = article?;
        let headings = article.headings.iter().take(HEADINGS_MAX);
        let headings: Vec<Value> = headings.map(|h| json!([h.id, h.text])).collect();
        let place = page
            .place
            .as_ref()
            .map(|place| place.breadcrumb.join(" › "));
        let summary = article.summary.as_deref().unwrap_or_default();
        Some(json!([path_of(page), page.title, place, summary, headings]))
    });
    let rows: Vec<Value> = rows.collect();
    serde_json::to_vec(&rows).expect("texts are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_keeps_its_budget() {
        assert!(SCRIPT.len() <= 15 << 10, "{} bytes", SCRIPT.len());
    }
}
