//! The cache of articles from one build to the next.
//!
//! Most updates change a page or two. An article depends only on the file and text of its page, its
//! endpoint, the snippets it loads, and the [`Map`] by which its links and images are resolved. If
//! none of these has changed, the cached article is used. Any change of the map invalidates all
//! articles, for example a new page or another size of an image. A finer rule would have to know
//! every page to which a link could lead.
//!
//! **Invariant:** a build makes the same release with any cached articles.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::docs::Docs;
use crate::docs::navigation::tree::Page;
use crate::render::article::{self, Article, Source};
use crate::render::file::File;
use crate::render::link::Map;
use crate::source::{Tree, TreePath};

/// The articles of a build, for the next one.
#[derive(Clone, Debug, Default)]
pub struct Articles(HashMap<Digest, CachedArticle>);

/// An article that the next build may use.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CachedArticle(Arc<Article>);

/// The inputs that the articles of a site share, and the cached articles.
#[derive(Debug)]
pub(super) struct RenderInputs {
    before: Articles,
    map: Digest,
    /// The digest of all specifications.
    specifications: Digest,
}

// === impl Articles ===

impl Articles {
    pub(super) fn of(cached: impl IntoIterator<Item = (Digest, CachedArticle)>) -> Self {
        Self(cached.into_iter().collect())
    }

    /// Serialises the articles for the same program. Articles with diagnostics, or with files of
    /// their own that are not stylesheets, are left out, because these are made when the page is
    /// rendered.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let good = |(_, cached): &(&Digest, &CachedArticle)| {
            let files = &cached.0.files;
            cached.0.diagnostics.is_empty() && files.iter().all(File::is_stylesheet)
        };
        let good: Vec<(&[u8; 32], &CachedArticle)> = self
            .0
            .iter()
            .filter(good)
            .map(|(name, cached)| (name.as_bytes(), cached))
            .collect();
        postcard::to_allocvec(&good).expect("texts and numbers in memory")
    }

    /// Reads what [`Articles::to_bytes`] wrote; `None` for any other bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let read: Vec<([u8; 32], CachedArticle)> = postcard::from_bytes(bytes).ok()?;
        let named = read.into_iter();
        Some(Self::of(
            named.map(|(name, cached)| (Digest::from_bytes(name), cached)),
        ))
    }

    /// Returns the Markdown of each page by the path of the page in URLs, without leading slash.
    #[must_use]
    pub fn markdown(&self) -> HashMap<&str, &str> {
        let articles = self.0.values().map(|cached| &cached.0);
        articles
            .map(|article| (&*article.page, &*article.markdown))
            .collect()
    }

    /// Returns the number of articles.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of articles that are shared with another build.
    #[cfg(test)]
    pub(super) fn shared(&self, other: &Self) -> usize {
        let same = |(name, cached): &(&Digest, &CachedArticle)| {
            let other = other.0.get(name);
            other.is_some_and(|other| Arc::ptr_eq(&other.0, &cached.0))
        };
        self.0.iter().filter(same).count()
    }

    /// Returns whether there are no articles.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

// === impl CachedArticle ===

impl CachedArticle {
    pub(super) fn article(&self) -> &Arc<Article> {
        &self.0
    }
}

// === impl RenderInputs ===

impl RenderInputs {
    pub(super) fn new(before: Articles, tree: &Tree, docs: &Docs, map: &Map) -> Self {
        Self {
            before,
            map: digest(map),
            specifications: match docs.specifications.is_empty() {
                true => Digest::of(b""),
                false => specifications(tree),
            },
        }
    }

    /// Returns the article of a page, from the cache or rendered now, with the digest of its
    /// inputs.
    pub(super) fn article(&self, docs: &Docs, page: &Page, map: &Map) -> (Digest, CachedArticle) {
        let source = Source::of(docs, page);
        let name = self.name(&source, docs, page);
        let cached = match self.before.0.get(&name) {
            Some(cached) => cached.clone(),
            None => CachedArticle(Arc::new(article::render(&source, map))),
        };
        (name, cached)
    }

    /// Returns the digest of everything that an article depends on.
    fn name(&self, source: &Source<'_>, docs: &Docs, page: &Page) -> Digest {
        let mut text = Vec::with_capacity(source.text.len() + 512);
        let mut part = |bytes: &[u8]| {
            text.extend_from_slice(&bytes.len().to_le_bytes());
            text.extend_from_slice(bytes);
        };
        part(self.map.as_bytes());
        part(source.file.as_bytes());
        part(source.title.as_bytes());
        part(source.text.as_bytes());
        part(source.description.map_or(b"-", |_some| b"+"));
        part(source.description.unwrap_or_default().as_bytes());
        part(source.language.as_bytes());
        let loaded = docs.pages.get(&page.slug).map(|written| &*written.loaded);
        for (path, digest) in loaded.unwrap_or_default() {
            part(path.as_bytes());
            part(digest.as_ref().map_or(b"", |digest| digest.as_bytes()));
        }
        if let Some(subject) = &page.subject {
            part(self.specifications.as_bytes());
            part(format!("{subject:?}").as_bytes());
            part(format!("{:?}", source.shown).as_bytes());
        }
        Digest::of(&text)
    }
}

/// Returns the digest of all JSON and YAML files of the repository and of all fetched files,
/// because a specification may refer to any of them.
fn specifications(tree: &Tree) -> Digest {
    let is_one = |path: &&TreePath| {
        let extension = path
            .as_str()
            .rsplit_once('.')
            .map(|(_, extension)| extension);
        matches!(extension, Some("json" | "yaml" | "yml"))
    };
    let mut text = String::new();
    let mut add = |name: &str, bytes: &[u8]| {
        text.push_str(&format!("{name}\0{}\0", Digest::of(bytes)));
    };
    for path in tree.files().filter(is_one) {
        add(path.as_str(), &tree.read(path).unwrap_or_default());
    }
    for (url, bytes) in tree.remote().iter() {
        add(url, bytes.map_or(b"", |bytes| bytes));
    }
    Digest::of(text.as_bytes())
}

/// Returns the digest of a map.
fn digest(map: &Map) -> Digest {
    let mut text = String::new();
    for page in &map.pages {
        text.push_str(page);
        // No path has this character.
        text.push('\0');
    }
    for (path, asset) in &map.assets {
        let form = asset.form.as_ref().map(|form| &form.path);
        text.push_str(&format!("\0{path}\0{:?}{form:?}", asset.size));
    }
    text.push_str(&format!(
        "\0{:?}\0{:?}\0{}",
        map.frames, map.library, map.palette
    ));
    Digest::of(text.as_bytes())
}
