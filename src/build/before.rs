//! What a build may take over from the one before.
//!
//! Most updates change a page or two of a thousand. What did not change need not be made
//! again: articles are taken from [`Articles`], and compressed files from the release that
//! was made then ([`Earlier`]), where the bytes that they were made of are the same. Both
//! must come from the same program; whoever keeps them sees to that.
//!
//! **Invariant:** the release is the same with and without.

use bytes::Bytes;

use crate::release::{Inventory, Item, ReleaseFile};

pub use super::site::Articles;

/// What a build may take over. The default is nothing.
#[derive(Debug, Default)]
pub struct Before<'b> {
    /// The articles of a build before.
    pub articles: Articles,
    /// The release of that build.
    pub release: Option<Earlier<'b>>,
}

/// The release of a build before, wherever it lies.
pub struct Earlier<'b> {
    /// The list of its files.
    pub inventory: &'b Inventory,
    /// Reads one of them; `None` when it is gone.
    pub read: &'b (dyn Fn(&Item) -> Option<Bytes> + Sync),
}

// === impl Earlier ===

impl std::fmt::Debug for Earlier<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Earlier").finish_non_exhaustive()
    }
}

impl Earlier<'_> {
    /// Returns whether the release had this file with these bytes.
    pub(super) fn has(&self, path: &str, file: &ReleaseFile) -> bool {
        let before = self.inventory.get(path);
        before.is_some_and(|before| before.digest == file.digest())
    }

    /// Takes a coding of a file that it has: `Some(None)` when that coding did not pay,
    /// `None` when the file cannot be read any longer.
    pub(super) fn take(&self, path: &str) -> Option<Option<ReleaseFile>> {
        match self.inventory.get(path) {
            None => Some(None),
            Some(item) => (self.read)(item)
                .map(|bytes| Some(ReleaseFile::of_digest(bytes, &item.media_type, item.digest))),
        }
    }
}
