//! Errors of the store: why something was not stored, promoted, read or changed.

use super::{Fence, FileError};
use crate::digest::Digest;
use crate::release::{INVENTORY_BYTES_MAX, InvalidInventory, ReleaseId};

/// Why a release was not stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PutError {
    /// A file could not be written.
    #[error("put the release")]
    File(#[from] FileError),
    /// A file that the store should have is damaged or cannot be read.
    #[error("put the release")]
    Existing(#[from] ReadError),
    /// Neither the store nor the caller has the bytes of a file.
    #[error("content {0} of the release is missing")]
    Missing(Digest),
    /// The bytes of a file do not have the digest in the inventory.
    #[error("content {0} of the release has other bytes")]
    Digest(Digest),
    /// The inventory of the release is longer than [`INVENTORY_BYTES_MAX`]: no edge would fetch it.
    #[error(
        "the list of the files of the release has {0} bytes, and {INVENTORY_BYTES_MAX} are \
         allowed; use fewer files or shorter paths"
    )]
    Inventory(u64),
    /// The release has more files or bytes than it may have, or cannot be read.
    #[error("read the release: {0}")]
    Release(String),
    /// The disk has too little free space.
    #[error("the disk of the store is full: {least} bytes must stay free")]
    Full {
        /// How many bytes must stay free.
        least: u64,
    },
    /// The file system is mounted read-only.
    #[error("the file system of the store is read-only")]
    ReadOnly,
}

/// Why a release did not become current.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PromoteError {
    /// The project has a newer or an equal promotion.
    #[error("promotion {offered} is not newer than {current}")]
    Stale {
        /// The fence of the pointer that stays.
        current: Fence,
        /// The fence that was rejected.
        offered: Fence,
    },
    /// The store does not have the release, or a part of it is missing.
    #[error("release {0} is not in the store")]
    UnknownRelease(ReleaseId),
    /// The pointer or the inventory could not be read.
    #[error("read what is current")]
    Read(#[from] ReadError),
    /// The pointer could not be written.
    #[error("write the pointer")]
    File(#[from] FileError),
}

/// Why something could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The store does not have the release.
    #[error("release {0} is not in the store")]
    UnknownRelease(ReleaseId),
    /// The store does not have the file.
    #[error("content {0} is not in the store")]
    UnknownContent(Digest),
    /// The stored bytes differ from the bytes that were put.
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// Which file.
        what: String,
        /// The problem.
        why: String,
    },
    /// A newer program wrote the file.
    #[error("{what} was written by a newer program: {why}")]
    Newer {
        /// Which file.
        what: String,
        /// The versions.
        why: String,
    },
    /// An operation of the file system failed.
    #[error("read the store")]
    File(#[from] FileError),
}

/// Why a site record could not be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SiteError {
    /// Something could not be read.
    #[error("read the site records")]
    Read(#[from] ReadError),
    /// Something could not be written.
    #[error("write the site record")]
    File(#[from] FileError),
}

// === impl PutError, PromoteError ===

impl PutError {
    /// Returns whether another attempt may succeed without anybody changing the release.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::File(_)
            | Self::Existing(_)
            | Self::Missing(_)
            | Self::Digest(_)
            | Self::Full { .. }
            | Self::ReadOnly => true,
            Self::Inventory(_) | Self::Release(_) => false,
        }
    }

    /// Refuses an inventory of this length, in bytes, if no edge would fetch it.
    ///
    /// # Errors
    ///
    /// [`PutError::Inventory`].
    pub(crate) fn check_inventory(length: u64) -> Result<(), Self> {
        match length > INVENTORY_BYTES_MAX {
            true => Err(Self::Inventory(length)),
            false => Ok(()),
        }
    }
}

impl PromoteError {
    /// Returns whether the same promotion may succeed when tried again.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Stale { .. } | Self::UnknownRelease(_) => false,
            Self::Read(error) => matches!(error, ReadError::File(_)),
            Self::File(_) => true,
        }
    }
}

// === impl ReadError ===

impl ReadError {
    pub(super) fn inventory(what: String, error: InvalidInventory) -> Self {
        match error {
            InvalidInventory::Newer { .. } => Self::Newer {
                what,
                why: error.to_string(),
            },
            InvalidInventory::Json(json) => Self::Damaged {
                what,
                why: json.to_string(),
            },
        }
    }
}
