//! Articles that a build takes over from the one before.
//!
//! Most updates change a page or two. An article is a function of what it was rendered
//! from: the page's file and text, its endpoint, the snippets it loads, and the [`Map`] that
//! its links and images are resolved in. When all of that is as it was, the article is. The
//! map counts as a whole: whoever adds a page or changes the size of an image renders every
//! article anew, and no list of what a link may have meant can be wrong.
//!
//! **Invariant:** with whatever articles a build begins, it makes the same release.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::docs::Docs;
use crate::docs::navigation::tree::Page;
use crate::render::article::{self, Article, Source};
use crate::render::link::Map;
use crate::source::{Tree, TreePath};

/// The articles of a build, for the next one.
#[derive(Clone, Debug, Default)]
pub struct Articles(HashMap<Digest, Kept>);

/// An article that the next build may take over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Kept(Arc<Article>);

/// What all articles of a site are rendered from.
#[derive(Debug)]
pub(super) struct Ground {
    before: Articles,
    map: Digest,
    /// What endpoints are read from.
    specifications: Digest,
}

// === impl Articles ===

impl Articles {
    pub(super) fn of(kept: impl IntoIterator<Item = (Digest, Kept)>) -> Self {
        Self(kept.into_iter().collect())
    }

    /// Writes them down, to be read by the same program. Those with findings or with files of
    /// their own are left out: their pages are rendered anew, and make and tell them again.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let good =
            |(_, kept): &(&Digest, &Kept)| kept.0.diagnostics.is_empty() && kept.0.files.is_empty();
        let good: Vec<(&[u8; 32], &Kept)> = self
            .0
            .iter()
            .filter(good)
            .map(|(name, kept)| (name.as_bytes(), kept))
            .collect();
        postcard::to_allocvec(&good).expect("texts and numbers in memory")
    }

    /// Reads what [`Articles::to_bytes`] wrote; `None` when it is anything else.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let read: Vec<([u8; 32], Kept)> = postcard::from_bytes(bytes).ok()?;
        let named = read.into_iter();
        Some(Self::of(
            named.map(|(name, kept)| (Digest::from_bytes(name), kept)),
        ))
    }

    /// Counts them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Counts those that another build shares.
    #[cfg(test)]
    pub(super) fn shared(&self, other: &Self) -> usize {
        let same = |(name, kept): &(&Digest, &Kept)| {
            let other = other.0.get(name);
            other.is_some_and(|other| Arc::ptr_eq(&other.0, &kept.0))
        };
        self.0.iter().filter(same).count()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

// === impl Kept ===

impl Kept {
    pub(super) fn article(&self) -> &Arc<Article> {
        &self.0
    }
}

// === impl Ground ===

impl Ground {
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

    /// Returns the article of a page, rendered now or before, and what names it.
    pub(super) fn article(&self, docs: &Docs, page: &Page, map: &Map) -> (Digest, Kept) {
        let source = Source::of(docs, page);
        let name = self.name(&source, docs, page);
        let kept = match self.before.0.get(&name) {
            Some(kept) => kept.clone(),
            None => Kept(Arc::new(article::render(&source, map))),
        };
        (name, kept)
    }

    /// Names everything that an article depends on.
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
        }
        Digest::of(&text)
    }
}

/// Names what any specification can be read from: one may refer to other files, and to what
/// was fetched.
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

/// Names what links and images can be resolved to.
fn digest(map: &Map) -> Digest {
    let mut text = String::new();
    for page in &map.pages {
        text.push_str(page);
        // No path has this character.
        text.push('\0');
    }
    for (path, asset) in &map.assets {
        text.push_str(&format!("\0{path}\0{:?}", asset.size));
    }
    text.push_str(&format!("\0{:?}\0{:?}", map.frames, map.library));
    Digest::of(text.as_bytes())
}
