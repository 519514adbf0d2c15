//! The listing of a release: its inventory, and the description of its site.

use crate::release::site::{SITE_FILE, SiteDescription, UnreadableDescription};
use crate::release::{Inventory, Item, ReleaseId};
use crate::store::{ReadError, Store};

/// The memory of one file of an inventory, without its path: a digest, a length, a media type,
/// and a share of a node of the tree.
const ITEM_BYTES: usize = 160;

/// The inventory of a release, and the description of its site.
#[derive(Debug)]
pub struct Listing {
    inventory: Inventory,
    pub(super) description: SiteDescription,
    /// Its approximate size in memory, in bytes.
    pub(super) bytes: usize,
}

/// Why there is no listing of a release.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListingError {
    /// The store cannot read it.
    #[error(transparent)]
    Store(#[from] ReadError),
    /// The release has no site.
    #[error("the release has no {SITE_FILE}")]
    NoSite,
    /// The description of its site cannot be read.
    #[error(transparent)]
    Description(#[from] UnreadableDescription),
}

// === impl Listing ===

impl Listing {
    pub(super) fn read(store: &Store, release: ReleaseId) -> Result<Self, ListingError> {
        Self::of(store.inventory(release)?, store)
    }

    /// Reads the description that belongs to an inventory.
    ///
    /// # Errors
    ///
    /// When the release has no site, or its description cannot be read.
    pub fn of(inventory: Inventory, store: &Store) -> Result<Self, ListingError> {
        let item = inventory.get(SITE_FILE).ok_or(ListingError::NoSite)?;
        let description = store.read(item)?;
        let items = inventory.iter();
        let items: usize = items
            .map(|(path, _)| path.as_str().len() + ITEM_BYTES)
            .sum();
        Ok(Self {
            // The parsed description takes about twice the bytes of the file, and so does its map
            // of redirects.
            bytes: items + 4 * description.len(),
            description: SiteDescription::parse(&description)?,
            inventory,
        })
    }

    pub(super) fn get(&self, path: &str) -> Option<&Item> {
        self.inventory.get(path)
    }
}
