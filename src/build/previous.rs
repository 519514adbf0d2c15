//! The parts of the previous build that a build can reuse.
//!
//! Most updates change a page or two of a thousand. If their inputs are the same, rendered articles
//! are taken from [`Articles`], and compressed files from the release of the previous build
//! ([`PreviousRelease`]). Both must be from the same version of this program; the caller that
//! stores them checks this.
//!
//! **Invariant:** the release is the same with and without reuse.

use crate::release::{Inventory, Item, ReleaseFile};

pub use super::site::Articles;

/// The parts that a build may reuse. The default is empty.
#[derive(Debug, Default)]
pub struct Previous<'b> {
    /// The articles of the previous build.
    pub articles: Articles,
    /// The release of the previous build.
    pub release: Option<PreviousRelease<'b>>,
}

/// The release of the previous build, wherever it is stored.
pub struct PreviousRelease<'b> {
    /// The list of its files.
    pub inventory: &'b Inventory,
    /// Returns one of them, with its bytes or without ([`ReleaseFile::stored`]); `None` when it has
    /// been removed.
    pub file: &'b (dyn Fn(&Item) -> Option<ReleaseFile> + Sync),
}

// === impl PreviousRelease ===

impl std::fmt::Debug for PreviousRelease<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreviousRelease").finish_non_exhaustive()
    }
}

impl PreviousRelease<'_> {
    /// Returns whether the release had this file with these bytes.
    pub(super) fn has(&self, path: &str, file: &ReleaseFile) -> bool {
        let before = self.inventory.get(path);
        before.is_some_and(|before| before.digest == file.digest())
    }

    /// Takes an encoded variant of a file. It is `Some(None)` if the file had no such variant,
    /// because the variant was not smaller, and `None` if the variant can no longer be read.
    pub(super) fn take(&self, path: &str) -> Option<Option<ReleaseFile>> {
        match self.inventory.get(path) {
            None => Some(None),
            Some(item) => (self.file)(item).map(Some),
        }
    }
}
