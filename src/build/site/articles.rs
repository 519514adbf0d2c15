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
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::docs::Docs;
use crate::docs::navigation::language::{self, Code};
use crate::docs::navigation::tree::Subject;
use crate::render::article::{self, Article, Source};
use crate::render::endpoint;
use crate::render::link::Map;
use crate::source::{Tree, TreePath};

use super::files;

/// The articles of a build, for the next one.
#[derive(Clone, Debug, Default)]
pub struct Articles(HashMap<Digest, Kept>);

/// An article, and the snippets that it loaded with the digest of each; without one for a
/// file that was not there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    article: Arc<Article>,
    loaded: Box<[(Box<str>, Option<Digest>)]>,
}

/// What all articles of a site are rendered from.
#[derive(Debug)]
pub(super) struct Ground {
    before: Articles,
    map: Digest,
    /// What endpoints are read from.
    specifications: Digest,
}

/// A page to be rendered.
struct Asked<'p> {
    source: Source<'p>,
    subject: Option<&'p Subject>,
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
        let good = |(_, kept): &(&Digest, &Kept)| {
            kept.article.diagnostics.is_empty() && kept.article.files.is_empty()
        };
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
            other.is_some_and(|other| Arc::ptr_eq(&other.article, &kept.article))
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
        &self.article
    }

    fn is_good(&self, tree: &Tree) -> bool {
        let mut loaded = self.loaded.iter();
        loaded.all(|(path, before)| {
            files::text(tree, path).map(|text| Digest::of(text.as_bytes())) == *before
        })
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
    pub(super) fn article(
        &self,
        tree: &Tree,
        docs: &Docs,
        page: &crate::docs::navigation::tree::Page,
        map: &Map,
    ) -> (Digest, Kept) {
        let file = file(docs, page);
        let written = docs.pages.get(&page.slug);
        let language = language(page);
        let asked = Asked {
            source: Source {
                file: &file,
                title: &page.title,
                description: page.description.as_deref(),
                language: &language,
                text: written.map_or("", |written| &written.text),
            },
            subject: page.subject.as_ref(),
        };
        let name = self.name(&asked);
        let before = self.before.0.get(&name);
        let kept = match before.filter(|kept| kept.is_good(tree)) {
            Some(kept) => kept.clone(),
            None => render(&asked, tree, docs, map),
        };
        (name, kept)
    }

    /// Names everything that an article depends on, except the snippets, which only
    /// rendering tells.
    fn name(&self, asked: &Asked<'_>) -> Digest {
        let Asked { source, subject } = asked;
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
        if let Some(subject) = subject {
            part(self.specifications.as_bytes());
            part(format!("{subject:?}").as_bytes());
        }
        Digest::of(&text)
    }
}

/// Returns the tag of the language that a page is written in; empty when it stands in none.
fn language(page: &crate::docs::navigation::tree::Page) -> Box<str> {
    let place = page.place.as_ref();
    let code = place.and_then(|place| place.language.as_deref());
    match code.map(language::parse) {
        Some(Code::Listed(language) | Code::Alias(language, _)) => language.tag,
        Some(Code::Unknown) | None => "".into(),
    }
}

/// Returns the file of a page; a generated one has the name that its author might give it.
fn file(docs: &Docs, page: &crate::docs::navigation::tree::Page) -> String {
    let written = docs.pages.get(&page.slug);
    let extension = written.and_then(|written| written.path.name().rsplit('.').next());
    format!("{}.{}", page.slug, extension.unwrap_or("mdx"))
}

/// Renders a page: its author's text, what it shows of a specification, or both.
fn render(asked: &Asked<'_>, tree: &Tree, docs: &Docs, map: &Map) -> Kept {
    let loaded = Mutex::new(Vec::new());
    let load = |path: &str| {
        let text = files::text(tree, path);
        let digest = text.as_ref().map(|text| Digest::of(text.as_bytes()));
        let mut loaded = loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.push((path.into(), digest));
        text
    };
    let article = match asked.subject.and_then(|subject| shown(docs, subject)) {
        None => article::render(&asked.source, map, &load),
        Some(subject) => article::render_subject(&asked.source, subject, map, &load),
    };
    Kept {
        article: Arc::new(article),
        loaded: loaded
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .into(),
    }
}

/// Looks up what a page shows of a specification.
fn shown<'d>(docs: &'d Docs, subject: &'d Subject) -> Option<endpoint::Subject<'d>> {
    let specification = |number: usize| docs.specifications.get(number);
    Some(match subject {
        Subject::Endpoint(id) => {
            let specification = specification(id.specification)?;
            let endpoint = specification.endpoints.get(id.endpoint)?;
            endpoint::Subject::Endpoint(specification, endpoint)
        }
        Subject::Unread { method, path } => endpoint::Subject::Unread(*method, path),
        Subject::Schema(id) => {
            endpoint::Subject::Schema(specification(id.specification)?, &id.name)
        }
    })
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
