//! Search that works in the page: for each language and version a list of titles, and a
//! full-text index.
//!
//! The index is Pagefind's: made of chunks, of which a browser loads the few that a query
//! needs. It alone puts the page whose title is typed first in about nine of ten cases, so
//! the list of titles goes before it; the page for missing addresses uses the list too.
//!
//! | in the directory of a [`Part`] | is |
//! |---|---|
//! | `pages.json` | `[[path, title, where, description, [[anchor, heading]…]]…]` |
//! | `pagefind.js`, `pagefind-worker.js`, `wasm.*` | what a browser runs |
//! | `pagefind-entry.json`, `*.pf_meta` | where to begin |
//! | `index/`, `fragment/` | chunks of words, and what is shown of a page |
//!
//! Pagefind's interface is asynchronous though nothing in it waits; a runtime on a thread of
//! its own runs it to its end, so a build stays a function wherever it is called from. What
//! fails in it costs the index, never the build: titles and headings are still found.
//!
//! Sources: pagefind 1.6, `pagefind::api`.

use std::collections::BTreeMap;

use pagefind::api::{PagefindIndex, SyntheticFile};
use pagefind::options::PagefindServiceConfig;
use serde_json::{Value, json};

use crate::discovery::JSON;
use crate::docs::Docs;
use crate::docs::navigation::tree::Page;
use crate::release::ReleaseFile;
use crate::render::article::Article;
use crate::render::escape::Html;
use crate::render::layout::{JAVASCRIPT, Part, Shell, path_of};

/// The name of the list of titles in the directory of a part.
pub(super) const TITLES: &str = "pages.json";
/// How many headings of a page stand in the list of titles.
const HEADINGS_MAX: usize = 60;
/// What Pagefind writes for its own interfaces, which our pages do not have.
const INTERFACES: [&str; 4] = [
    "pagefind-component-ui.",
    "pagefind-highlight.",
    "pagefind-modular-ui.",
    "pagefind-ui.",
];

/// A file of an index, by its name in the directory.
pub(super) type Named = (String, ReleaseFile);

/// A page that can be found.
pub(super) type Found<'d> = (&'d Page, &'d Article);

/// Why there is no index of a part.
#[derive(Debug, thiserror::Error)]
#[error("there is no full-text search in {language}: {why}")]
pub(super) struct Unindexed {
    language: Box<str>,
    why: String,
}

/// Sorts the pages that can be found by the part they are found in. What is hidden is not
/// among them.
pub(super) fn parts<'d>(
    docs: &'d Docs,
    shell: &Shell<'d>,
    articles: &[Option<&'d Article>],
) -> BTreeMap<Part<'d>, Vec<Found<'d>>> {
    // The part of a site without pages has a list too: every page names one.
    let mut parts = BTreeMap::from([(shell.part(None), Vec::new())]);
    for ((id, page), article) in docs.navigation.pages().zip(articles) {
        let part: &mut Vec<_> = parts.entry(shell.part(Some(id))).or_default();
        let is_listed = page.public
            && !page.hidden
            && !page.noindex
            && page.place.is_some()
            && page.link.is_none();
        if let (true, Some(article)) = (is_listed, *article) {
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

/// Makes the full-text index of a part: names in its directory, and files.
///
/// # Errors
///
/// When the library gives none.
pub(super) fn index(part: Part<'_>, pages: &[Found<'_>]) -> Result<Vec<Named>, Unindexed> {
    let documents: Vec<_> = pages
        .iter()
        // A leading slash, so that the root has an address too.
        .map(|(page, article)| (format!("/{}", path_of(page)), document(part, page, article)))
        .collect();
    let made = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            runtime.block_on(run(part.language, documents))
        });
        running
            .join()
            .unwrap_or_else(|_panic| Err("the index cannot be made".to_owned()))
    });
    let files = made.map_err(|why| Unindexed {
        language: part.language.into(),
        why,
    })?;
    let mut files: Vec<_> = files.into_iter().filter_map(named).collect();
    files.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Ok(files)
}

async fn run(
    language: &str,
    documents: Vec<(String, String)>,
) -> Result<Vec<SyntheticFile>, String> {
    let options = PagefindServiceConfig::builder()
        .force_language(language.to_lowercase())
        .exclude_selectors(vec![".anchor".to_owned()])
        .build();
    // The library's errors are of any type.
    let mut index = PagefindIndex::new(Some(options)).map_err(|error| error.to_string())?;
    for (path, document) in documents {
        let added = index.add_html_file(None, Some(path), document).await;
        added.map_err(|error| error.to_string())?;
    }
    index.get_files().await.map_err(|error| error.to_string())
}

/// Writes what is indexed of a page. Headings with an id are what Pagefind takes for sections.
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

/// Names a file in its directory; `None` when it is of no use to us.
fn named(file: SyntheticFile) -> Option<Named> {
    let parts: Option<Vec<&str>> = file.filename.iter().map(|part| part.to_str()).collect();
    let name = parts?.join("/");
    let media_type = match name.rsplit_once('.') {
        Some((_, "js")) => JAVASCRIPT,
        Some((_, "json")) => JSON,
        _ => "application/octet-stream",
    };
    let is_ours = !INTERFACES.iter().any(|prefix| name.starts_with(prefix));
    is_ours.then(|| (name, ReleaseFile::new(file.contents, media_type)))
}
