//! The files that pages import; each is read and hashed once for all pages.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::digest::Digest;
use crate::docs::config::Variables;
use crate::source::{Tree, TreePath};

/// How long a snippet may be, in bytes.
const BYTES_MAX: u64 = 4 << 20;

/// The state of an imported file: its path from the documentation's root, and the digest of
/// its text, or `None` if the file did not exist.
pub type Loaded = (Box<str>, Option<Digest>);

/// The text of a file, and its digest.
type Text = Option<(Arc<str>, Digest)>;

/// The files that pages import.
pub(super) struct Snippets<'t> {
    tree: &'t Tree,
    variables: &'t Variables,
    texts: Mutex<HashMap<Box<str>, Text>>,
}

// === impl Snippets ===

impl<'t> Snippets<'t> {
    pub(super) fn new(tree: &'t Tree, variables: &'t Variables) -> Self {
        Self {
            tree,
            variables,
            texts: Mutex::default(),
        }
    }

    /// Returns the documentation's root.
    pub(super) fn root(&self) -> &TreePath {
        self.tree.docs_root()
    }

    /// Returns the text of a file; `None` if it does not exist or is not UTF-8.
    pub(super) fn text(&self, path: &str) -> Text {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = texts.get(path) {
            return text.clone();
        }
        let is_markdown = path.ends_with(".mdx") || path.ends_with(".md");
        let text = read(self.tree, path).map(|text| {
            // In JavaScript, braces in braces are objects.
            let text = match is_markdown {
                true => self.variables.fill(&text).into_owned(),
                false => text,
            };
            let digest = Digest::of(text.as_bytes());
            (Arc::from(text), digest)
        });
        texts.insert(path.into(), text.clone());
        text
    }

    /// Returns whether none of these files has changed.
    pub(super) fn are(&self, loaded: &[Loaded]) -> bool {
        loaded.iter().all(|(path, before)| {
            let now = self.text(path).map(|(_, digest)| digest);
            now == *before
        })
    }
}

/// Reads a file that pages import, by its path from the documentation's root.
#[must_use]
pub fn read(tree: &Tree, path: &str) -> Option<String> {
    let path = tree.docs_root().join(path).ok()?;
    let bytes = tree.read_at_most(&path, BYTES_MAX).ok()?;
    String::from_utf8(bytes.into()).ok()
}
