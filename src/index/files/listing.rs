//! What a release says of its files: which there are, and what no name of a file says.

use crate::release::site::{SITE_FILE, SiteDescription, UnreadableDescription};
use crate::release::{Inventory, Item, ReleaseId};
use crate::store::{ReadError, Store};

/// What a file of an inventory takes in memory beside its path: a digest, a length, a media
/// type, and its share of a node of the tree.
const ITEM_BYTES: usize = 160;

/// What a release says of its files.
#[derive(Debug)]
pub struct Listing {
    inventory: Inventory,
    pub(super) description: SiteDescription,
    /// About how much room all of it takes.
    pub(super) bytes: usize,
}

/// Why there is no listing of a release.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unlisted {
    /// The store does not give it out.
    #[error(transparent)]
    Store(#[from] ReadError),
    /// The release has no site.
    #[error("the release has no {SITE_FILE}")]
    NoSite,
    /// What it says of its site cannot be read.
    #[error(transparent)]
    Description(#[from] UnreadableDescription),
}

// === impl Listing ===

impl Listing {
    pub(super) fn read(store: &Store, release: ReleaseId) -> Result<Self, Unlisted> {
        Self::of(store.inventory(release)?, store)
    }

    /// Reads what goes with an inventory.
    ///
    /// # Errors
    ///
    /// When the release has no site, or what it says of it cannot be read.
    pub fn of(inventory: Inventory, store: &Store) -> Result<Self, Unlisted> {
        let item = inventory.get(SITE_FILE).ok_or(Unlisted::NoSite)?;
        let description = store.read(item)?;
        let items = inventory.iter();
        let items: usize = items
            .map(|(path, _)| path.as_str().len() + ITEM_BYTES)
            .sum();
        Ok(Self {
            // Redirects and the like: the longer the file, the more there is of it.
            bytes: items + 2 * description.len(),
            description: SiteDescription::parse(&description)?,
            inventory,
        })
    }

    pub(super) fn get(&self, path: &str) -> Option<&Item> {
        self.inventory.get(path)
    }
}
