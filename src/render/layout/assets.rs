//! What all pages of a site load: one stylesheet, one script, the list of pages for search.
//!
//! The names of styles and script hold their digest, so that they can be kept for ever.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{STATIC, path_of};
use crate::digest::Digest;
use crate::docs::Docs;
use crate::docs::navigation::tree::Page;
use crate::render::article::Article;

/// The script of every page.
pub const SCRIPT: &str = include_str!("site.js");
const STYLES: &str = include_str!("site.css");
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
        let mut styles = STYLES.to_owned();
        let colors = &docs.config.colors;
        let primary = colors.primary.as_deref().filter(|c| is_hex(c));
        let light = colors.light.as_deref().filter(|c| is_hex(c));
        if let Some(primary) = primary {
            let light = light.unwrap_or(primary);
            styles += &format!(":root {{ --accent: light-dark({primary}, {light}); }}\n");
        }
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

/// Returns whether a colour can stand in a stylesheet without ending what it stands in.
fn is_hex(colour: &str) -> bool {
    let digits = colour.strip_prefix('#').unwrap_or_default();
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
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

    #[test]
    fn only_a_colour_can_be_a_colour() {
        assert!(is_hex("#0b6e4f") && is_hex("#FFF"));
        for colour in ["red", "#ff", "#fff;}*{display:none", "", "fff"] {
            assert!(!is_hex(colour), "{colour}");
        }
    }
}
