//! The store: what is kept.
//!
//! A store holds releases (immutable, shared by all projects) and one *pointer* per
//! project (which release is current, which were before). It is the joint between the
//! deploying side, which may fail, be retried and take minutes, and the serving side,
//! which may not.
//!
//! ```text
//! put(release) ──▶ kept, but nobody sees it ──▶ promote(project, id, fence) ──▶ current
//!                          │                                                       │
//!                          └── sweep: after a day without a pointer ◀── history ◀──┘
//! ```
//!
//! Guarantees, the same for every backend (`store/tests/mod.rs` checks them):
//!
//! * **S1** `put` is all or nothing: an inventory can be read only when every file it
//!   names can. Putting a release twice is putting it once.
//! * **S2** `promote` is the only visible step and is atomic: a reader sees the pointer
//!   before or the pointer after.
//! * **S3** The [`Fence`] of a project's pointer only grows. A promotion whose fence is
//!   not greater is [`PromoteError::Stale`]; the very same promotion repeated is a success,
//!   so a caller that never heard the answer may ask again.
//! * **S4** What a pointer names, current or kept, is never removed.
//! * **S5** What no pointer names is removed once it is older than the retention time,
//!   counted from when it was last put or promoted.
//! * **S6** Bytes that are read are the bytes that were put: length and digest are checked
//!   with every read.
//! * **S7** A failure leaves the state as it was. One exception cannot be avoided: when the
//!   very last flush of a promotion fails, the new pointer is visible and may not survive
//!   a power cut. The caller gets an error and repeats (S3).
//!
//! All operations block. Callers on an async runtime put them on its blocking pool.
//!
//! Limits: the pointer of a removed project is kept; its releases stay until the pointer is
//! removed by [`Store::forget`].
//!
//! Source: `internals/decisions#promotion`.

mod durable;
pub mod local;
mod pointer;
pub mod sites;
pub mod watch;

use std::time::SystemTime;

use bytes::Bytes;

use crate::digest::Digest;
use crate::release::{InvalidInventory, Inventory, Item, Release, ReleaseId};
use crate::site::ProjectId;

pub use durable::FileError;
pub use local::Local;
pub use pointer::{Fence, Pointer, Promotion};

/// A place where releases are kept.
#[derive(Debug)]
pub enum Store {
    /// A directory of this machine.
    Local(Local),
}

/// How long things are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// How many releases before the current one each project keeps.
    pub releases: usize,
    /// How long what no pointer names stays, in seconds since it was last put or promoted.
    pub unnamed_seconds: u64,
}

/// What a sweep removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Releases that no pointer named.
    pub releases: u64,
    /// Files that no release named.
    pub files: u64,
    /// The bytes of those files.
    pub bytes: u64,
    /// Files that a killed writer had left behind.
    pub leftovers: u64,
}

/// Why a release was not put.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PutError {
    /// A file could not be written.
    #[error("put the release")]
    File(#[from] FileError),
}

/// Why a release did not become current.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PromoteError {
    /// A newer promotion was there first.
    #[error("promotion {offered} is not newer than {current}")]
    Stale {
        /// The fence of the pointer that stays.
        current: Fence,
        /// The fence that was refused.
        offered: Fence,
    },
    /// The store does not have the release, or not all of it.
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
    /// The store does not have the file, although a release may name it.
    #[error("content {0} is not in the store")]
    UnknownContent(Digest),
    /// What is kept is not what was put.
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// Which file.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// Written by a newer program.
    #[error("{what} was written by a newer program: {why}")]
    Newer {
        /// Which file.
        what: String,
        /// The versions.
        why: String,
    },
    /// The system refused.
    #[error("read the store")]
    File(#[from] FileError),
}

// === impl Store ===

impl Store {
    /// Keeps a release. Nobody sees it yet.
    ///
    /// # Errors
    ///
    /// [`PutError`] when not all of it could be made durable; none of it is visible then.
    pub fn put(&self, release: &Release) -> Result<ReleaseId, PutError> {
        match self {
            Self::Local(store) => store.put(release),
        }
    }

    /// Makes a release the current one of a project: the only visible step.
    ///
    /// # Errors
    ///
    /// [`PromoteError::Stale`] when a newer promotion was there first,
    /// [`PromoteError::UnknownRelease`] when the release is not whole in the store.
    pub fn promote(
        &self,
        project: &ProjectId,
        release: ReleaseId,
        fence: Fence,
    ) -> Result<Pointer, PromoteError> {
        match self {
            Self::Local(store) => store.promote(project, release, fence),
        }
    }

    /// Returns a fence for a new promotion: its generation is one more than the larger of
    /// what the caller knows of (`at_least`, the queue's last generation) and the
    /// pointer's own. A lost queue file therefore never blocks a project.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when the pointer cannot be read.
    pub fn next_fence(&self, project: &ProjectId, at_least: u64) -> Result<Fence, ReadError> {
        let current = self.current(project)?;
        Ok(Fence::next(
            current.map(|pointer| pointer.current.fence()),
            at_least,
        ))
    }

    /// Returns what is current for a project; `None` when nothing was ever promoted.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when the pointer cannot be read.
    pub fn current(&self, project: &ProjectId) -> Result<Option<Pointer>, ReadError> {
        match self {
            Self::Local(store) => store.current(project),
        }
    }

    /// Returns the releases of a project that are kept, the current one first.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when the pointer cannot be read.
    pub fn releases(&self, project: &ProjectId) -> Result<Vec<Promotion>, ReadError> {
        let pointer = self.current(project)?;
        Ok(pointer.map_or_else(Vec::new, |pointer| pointer.promotions().copied().collect()))
    }

    /// Returns the inventory of a release.
    ///
    /// # Errors
    ///
    /// [`ReadError::UnknownRelease`] when the store does not have it.
    pub fn inventory(&self, release: ReleaseId) -> Result<Inventory, ReadError> {
        match self {
            Self::Local(store) => store.inventory(release),
        }
    }

    /// Returns the bytes of one file of an inventory.
    ///
    /// # Errors
    ///
    /// [`ReadError::Damaged`] when length or digest are not those of the inventory.
    pub fn read(&self, item: &Item) -> Result<Bytes, ReadError> {
        match self {
            Self::Local(store) => store.read(item),
        }
    }

    /// Returns every project that has a pointer, in no particular order.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when a directory cannot be listed.
    pub fn pointers(&self) -> Result<Vec<ProjectId>, ReadError> {
        match self {
            Self::Local(store) => store.pointers(),
        }
    }

    /// Removes the pointer of a project that is no more; its releases are then swept like
    /// any that no pointer names. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// [`PromoteError::File`] when the pointer could not be removed.
    pub fn forget(&self, project: &ProjectId) -> Result<bool, PromoteError> {
        match self {
            Self::Local(store) => store.forget(project),
        }
    }

    /// Removes what no pointer names and nobody touched for the retention time.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when a pointer or a kept inventory cannot be read: nothing is removed
    /// on partial knowledge.
    pub fn sweep(&self, now: SystemTime) -> Result<Swept, ReadError> {
        match self {
            Self::Local(store) => store.sweep(now),
        }
    }
}

// === impl Retention ===

impl Default for Retention {
    /// Ten releases to roll back to, and a day for whoever is in the middle of something.
    fn default() -> Self {
        Self {
            releases: 10,
            unnamed_seconds: 24 * 60 * 60,
        }
    }
}

// === impl PutError, PromoteError ===

impl PutError {
    /// Returns whether another attempt may succeed without anybody changing the release.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::File(_) => true,
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
    fn inventory(what: String, error: InvalidInventory) -> Self {
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

/// Decides on a promotion: S3 in one place for all backends.
///
/// Returns `None` when the very same promotion has already been made.
fn next_pointer(
    before: Option<Pointer>,
    offered: Promotion,
    keep: usize,
) -> Result<Option<Pointer>, PromoteError> {
    if let Some(Pointer { current, .. }) = &before {
        if current.fence() == offered.fence() && current.release == offered.release {
            return Ok(None);
        }
        if current.fence() >= offered.fence() {
            return Err(PromoteError::Stale {
                current: current.fence(),
                offered: offered.fence(),
            });
        }
    }
    Ok(Some(Pointer::promoted(before, offered, keep)))
}

#[cfg(test)]
mod tests;
