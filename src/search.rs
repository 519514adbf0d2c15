//! Search: a full-text index that the page reads, without a server.
//!
//! Pagefind divides the index into chunks. A browser loads only the few chunks that a query needs.
//! Words are stemmed by the rules of some thirty languages.
//!
//! | name | is |
//! |---|---|
//! | `pagefind.js`, `pagefind-worker.js`, `wasm.*` | code that a browser runs |
//! | `pagefind-entry.json`, `*.pf_meta` | the entry to the index |
//! | `index/`, `fragment/` | chunks of words, and excerpts of pages |
//!
//! Indexing is a pure function that can be called from anywhere. The library's interface is
//! asynchronous although nothing in it waits, so it runs to its end on a thread with its own
//! runtime. The same documents give the same files, byte for byte.
//!
//! Sources: pagefind 1.6, `pagefind::api`.

use bytes::Bytes;
use pagefind::api::{PagefindIndex, SyntheticFile};
use pagefind::options::PagefindServiceConfig;

/// Files that Pagefind writes for its own user interfaces, which our pages do not use.
const INTERFACES: [&str; 4] = [
    "pagefind-component-ui.",
    "pagefind-highlight.",
    "pagefind-modular-ui.",
    "pagefind-ui.",
];
/// Links in headings, which have no text of their own.
const UNSAID: &str = ".anchor";

/// The indexed content of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// What the page is called in results.
    pub address: String,
    /// An HTML document. Its `data-pagefind-meta=title` is the title; headings with an `id` begin
    /// sections, which are found separately.
    pub html: String,
}

/// Why there is no index.
#[derive(Debug, thiserror::Error)]
#[error("there is no full-text search in {language}: {why}")]
pub struct Unindexed {
    language: Box<str>,
    why: String,
}

/// Makes the index of documents in a language, given by its BCP 47 tag: names and bytes.
///
/// ```
/// let html = "<html lang=en><body data-pagefind-body><h1>Whales</h1><p>They sing.</body></html>";
/// let document = waypost::search::Document { address: "/whales".into(), html: html.into() };
/// let files = waypost::search::index("en", vec![document]).unwrap();
/// assert!(files.iter().any(|(name, _)| name == "pagefind-entry.json"));
/// ```
///
/// # Errors
///
/// If the library returns no index.
pub fn index(language: &str, documents: Vec<Document>) -> Result<Vec<(String, Bytes)>, Unindexed> {
    let made = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            runtime.block_on(run(language, documents))
        });
        running
            .join()
            .unwrap_or_else(|_panic| Err("the index cannot be made".to_owned()))
    });
    let files = made.map_err(|why| Unindexed {
        language: language.into(),
        why,
    })?;
    let mut files: Vec<_> = files.into_iter().filter_map(named).collect();
    files.sort_unstable();
    Ok(files)
}

async fn run(language: &str, documents: Vec<Document>) -> Result<Vec<SyntheticFile>, String> {
    let options = PagefindServiceConfig::builder()
        .force_language(language.to_lowercase())
        .exclude_selectors(vec![UNSAID.to_owned()])
        .build();
    // The library returns errors of any type.
    let mut index = PagefindIndex::new(Some(options)).map_err(|error| error.to_string())?;
    for Document { address, html } in documents {
        let added = index.add_html_file(None, Some(address), html).await;
        added.map_err(|error| error.to_string())?;
    }
    index.get_files().await.map_err(|error| error.to_string())
}

/// Returns the name of a file with its bytes; `None` for a file that we do not use.
fn named(file: SyntheticFile) -> Option<(String, Bytes)> {
    let parts: Option<Vec<&str>> = file.filename.iter().map(|part| part.to_str()).collect();
    let name = parts?.join("/");
    let is_ours = !INTERFACES.iter().any(|prefix| name.starts_with(prefix));
    is_ours.then(|| (name, file.contents.into()))
}
