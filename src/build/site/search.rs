//! Search that works in the page: for each language and version a list of titles, and a
//! full-text index.
//!
//! With the index alone, the page whose title is typed comes first in about nine of ten cases, so
//! the list of titles is searched first; the 404 page uses the list too. If the index cannot be
//! made, the build continues without it: titles and headings are still found.
//!
//! | in the directory of a [`Part`] | is |
//! |---|---|
//! | `pages.json` | `[[path, title, where, description, [[anchor, heading]…]]…]` |
//! | everything else | the [`search`] index |

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::discovery::JSON;
use crate::docs::Docs;
use crate::docs::navigation::tree::Page;
use crate::release::ReleaseFile;
use crate::render::article::Article;
use crate::render::escape::Html;
use crate::render::layout::{JAVASCRIPT, Layout, Part, path_of};
use crate::search::{self, Document, Unindexed};

/// The name of the list of titles in the directory of a part.
pub(super) const TITLES: &str = "pages.json";
/// How many headings of a page the list of titles has.
const HEADINGS_MAX: usize = 60;
/// A page that can be found.
pub(super) type Found<'d> = (&'d Page, &'d Article);

/// Groups the pages that can be found by part. Hidden pages are not among them.
pub(super) fn parts<'d>(
    docs: &'d Docs,
    layout: &Layout<'d>,
    articles: &[Option<&'d Article>],
) -> BTreeMap<Part<'d>, Vec<Found<'d>>> {
    // A site without pages has a list too, because its 404 page names one.
    let mut parts = BTreeMap::from([(layout.part(None), Vec::new())]);
    for ((id, page), article) in docs.navigation.pages().zip(articles) {
        let part: &mut Vec<_> = parts.entry(layout.part(Some(id))).or_default();
        if let (true, Some(article)) = (page.is_listed(), *article) {
            part.push((page, article));
        }
    }
    parts
}

/// Writes the list of titles of a part.
pub(super) fn titles(pages: &[Found<'_>]) -> Vec<u8> {
    let row = |(page, article): &Found<'_>| {
        let headings = article.headings.iter().take(HEADINGS_MAX);
        let headings: Vec<Value> = headings.map(|h| json!([h.id, h.text])).collect();
        let place = page.place.as_ref();
        let place = place.map(|place| place.breadcrumb.join(" › "));
        let summary = article.summary.as_deref().unwrap_or_default();
        json!([path_of(page), page.title, place, summary, headings])
    };
    let rows: Vec<Value> = pages.iter().map(row).collect();
    serde_json::to_vec(&rows).expect("texts are JSON")
}

/// Builds the full-text index of a part; returns files with their names in its directory.
///
/// # Errors
///
/// The library cannot make one.
pub(super) fn index(
    part: Part<'_>,
    pages: &[Found<'_>],
) -> Result<Vec<(String, ReleaseFile)>, Unindexed> {
    let document = |(page, article): &Found<'_>| Document {
        // With a leading slash, so that the root page has an address.
        address: format!("/{}", path_of(page)),
        html: document(part, page, article),
    };
    let files = search::index(part.language, pages.iter().map(document).collect())?;
    let file = |(name, bytes): (String, Bytes)| {
        let media_type = match name.rsplit_once('.') {
            Some((_, "js")) => JAVASCRIPT,
            Some((_, "json")) => JSON,
            _ => "application/octet-stream",
        };
        (name, ReleaseFile::new(bytes, media_type))
    };
    Ok(files.into_iter().map(file).collect())
}

/// Writes the text of a page for the index. Pagefind takes headings with an id for sections.
fn document(part: Part<'_>, page: &Page, article: &Article) -> String {
    let mut out = Html::default();
    out.markup("<!doctype html><html")
        .attribute("lang", part.language);
    out.markup("><body><main data-pagefind-body><h1 data-pagefind-meta=title>");
    out.text(&page.title).markup("</h1>");
    if let Some(summary) = &article.summary {
        out.markup("<p>").text(summary).markup("</p>");
    }
    out.append(&article.html);
    out.markup("</main></body></html>");
    out.into_string()
}
