//! The store: releases, and pointers to the current ones.
//!
//! A store holds releases, which never change and are shared by all projects, and one *pointer*
//! for each project, which names the current release and the earlier ones. The deploying side
//! writes the store, and may fail, retry, and take minutes. The serving side reads it, and may
//! not fail.
//!
//! ```text
//! put(release) ──▶ stored, not served ──▶ promote(project, id, fence) ──▶ current
//!                          │                                                 │
//!                          └── sweep: a day after the last pointer ◀─ history ◀┘
//! ```
//!
//! Guarantees of every back end (the tests here run over all):
//!
//! * **S1** `put` is all or nothing: an inventory can be read only when every file in it can.
//!   Putting a release twice has the same result as putting it once.
//! * **S2** `promote` is the only step that readers see, and it is atomic: they read the pointer
//!   before or the pointer after.
//! * **S3** The [`Fence`] of a project's pointer only grows. A promotion with a fence that is not
//!   greater is [`PromoteError::Stale`]. Repeating the same promotion succeeds, so a caller that
//!   did not get the answer may call again.
//! * **S4** A release that a pointer names, as current or in its history, is never removed.
//! * **S5** Other releases and files are removed once they are older than the retention time,
//!   counted from when they were last put or promoted.
//! * **S6** Every read checks length and digest, so it returns the bytes that were put. A file
//!   that is opened to be read in parts ([`Store::open`]) has its length checked; the code that
//!   reads all of it checks the digest.
//! * **S7** An error leaves the state unchanged. There is one exception: when the last
//!   flush of a promotion fails, the new pointer is visible, but a power cut may undo it. The
//!   caller gets an error and repeats the promotion (S3).
//!
//! All operations block; an async caller runs them on its blocking pool.
//!
//! **Limits:** the pointer of a removed project stays, and so do its releases, until
//! [`Store::forget`] removes the pointer.

pub mod audit;
mod content;
pub mod copy;
pub mod documents;
mod durable;
mod error;
pub mod local;
mod ownership;
mod pointer;
mod record;
pub mod shared;
mod shards;
mod site_state;
pub mod sites;
mod stamp;
pub mod ticket_keys;
mod upkeep;
pub mod watch;

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::clock::Clock;
use crate::digest::Digest;
use crate::release::{Inventory, Item, Release, ReleaseId};
use crate::site::ProjectId;

pub use content::ContentFile;
pub use durable::FileError;
pub use error::{PromoteError, PutError, ReadError, SiteError};
pub use local::Local;
pub use ownership::{Ownership, OwnershipState};
pub use pointer::{Fence, InvalidPointer, Pointer, Promotion};
pub use record::{HostClaim, Quarantine, SiteChange, SiteRecord, SitesLock};
pub use shards::{ChangedShards, SeenShards};
pub use shared::Shared;
pub use site_state::{ChangeNumbers, VerificationLead};
pub use upkeep::{CheckResult, Damage, Retention, Swept};

/// A place where releases are stored.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a process has one or two")]
pub enum Store {
    /// A directory of this machine.
    Local(Local),
    /// A database and an object store, which several machines share.
    Shared(Shared),
}

/// A lock on the releases of an owner, until this is dropped.
#[derive(Debug)]
pub enum OwnerLock {
    /// Among the processes of this machine.
    File {
        /// It ends when it is dropped.
        _lock: local::OwnerLock,
    },
    /// Among all machines.
    Lease {
        /// It ends when it is dropped.
        _lease: shared::Lease,
    },
}

// === impl Store ===

impl Store {
    /// Opens the store in a directory, with the default retention.
    ///
    /// # Errors
    ///
    /// The errors of [`Local::open`].
    pub fn open_directory(path: PathBuf) -> Result<Self, local::OpenError> {
        let config = local::Config {
            path,
            ..local::Config::default()
        };
        Local::open(&config, Clock::System).map(Self::Local)
    }

    /// Stores a release. It is not served yet.
    ///
    /// # Errors
    ///
    /// [`PutError`] when not all of it could be made durable; then none of it is visible.
    pub fn put(&self, release: &Release) -> Result<ReleaseId, PutError> {
        match self {
            Self::Local(store) => store.put(release),
            Self::Shared(store) => store.put(release),
        }
    }

    /// Stores the release of an inventory, whose files arrive one after the other. It is not served
    /// yet.
    ///
    /// `next` is called once for each different digest in ascending order. It returns the bytes of
    /// the file; `None` means that the store has the file. All bytes are checked.
    ///
    /// # Errors
    ///
    /// [`PutError`], also from `next`. Nothing of the release is visible then.
    pub fn put_files(
        &self,
        inventory: &Inventory,
        next: &mut dyn FnMut(&Item) -> Result<Option<Bytes>, PutError>,
    ) -> Result<ReleaseId, PutError> {
        match self {
            Self::Local(store) => store.put_files(inventory, next),
            Self::Shared(store) => store.put_files(inventory, next),
        }
    }

    /// Waits until no other process stores a release of this owner, and keeps others from it as
    /// long as the value lives. `None` if another process has the lock all this time.
    ///
    /// # Errors
    ///
    /// The lock cannot be used.
    pub fn lock_owner(
        &self,
        owner: &str,
        timeout: Duration,
    ) -> Result<Option<OwnerLock>, FileError> {
        match self {
            Self::Local(store) => {
                let lock = store.lock_owner(owner, timeout)?;
                Ok(lock.map(|lock| OwnerLock::File { _lock: lock }))
            }
            Self::Shared(store) => {
                let lease = store.lock_owner(owner, timeout)?;
                Ok(lease.map(|lease| OwnerLock::Lease { _lease: lease }))
            }
        }
    }

    /// Makes a release the current one of a project: the only step that readers see.
    ///
    /// # Errors
    ///
    /// [`PromoteError::Stale`] when the project has a newer promotion,
    /// [`PromoteError::UnknownRelease`] when the store does not have the whole release.
    pub fn promote(
        &self,
        project: &ProjectId,
        release: ReleaseId,
        fence: Fence,
    ) -> Result<Pointer, PromoteError> {
        match self {
            Self::Local(store) => store.promote(project, release, fence),
            Self::Shared(store) => store.promote(project, release, fence),
        }
    }

    /// Returns a fence for a new promotion.
    ///
    /// Its generation is higher than the generation of the pointer and higher than `at_least`, the
    /// newest generation of the queue. So promotion works even if the file of the queue was lost.
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

    /// Returns the pointer of a project; `None` when no release of it was promoted.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when the pointer cannot be read.
    pub fn current(&self, project: &ProjectId) -> Result<Option<Pointer>, ReadError> {
        match self {
            Self::Local(store) => store.current(project),
            Self::Shared(store) => store.current(project),
        }
    }

    /// Returns the promotions of a project: the current one, then the history, latest first.
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
            Self::Shared(store) => store.inventory(release),
        }
    }

    /// Returns the bytes of one file of an inventory.
    ///
    /// # Errors
    ///
    /// [`ReadError::Damaged`] when length or digest differ from the inventory.
    pub fn read(&self, item: &Item) -> Result<Bytes, ReadError> {
        match self {
            Self::Local(store) => store.read(item),
            Self::Shared(store) => store.read(item),
        }
    }

    /// Opens one file of an inventory, to read it in parts. No file of any size is held in memory.
    ///
    /// # Errors
    ///
    /// [`ReadError::Damaged`] when the length differs from the inventory.
    pub fn open(&self, item: &Item) -> Result<ContentFile, ReadError> {
        match self {
            Self::Local(store) => store.open_content(item),
            Self::Shared(store) => store.open_content(item),
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
            Self::Shared(store) => store.pointers(),
        }
    }

    /// Finds the directories in which pointers may have changed since the last call with `seen`.
    pub fn changed_pointers(&self, seen: &mut SeenShards, now: SystemTime) -> ChangedShards {
        match self {
            Self::Local(store) => seen.compare(store.pointer_directories(), now),
            Self::Shared(_) => ChangedShards::all(),
        }
    }

    /// Returns the directory, if the store is one.
    ///
    /// # Errors
    ///
    /// When it is a database and an object store.
    pub fn directory(&self) -> Result<&Local, FileError> {
        match self {
            Self::Local(store) => Ok(store),
            Self::Shared(_) => Err(not_local()),
        }
    }

    /// Makes a release of a cache the current one of a project, whatever its fence is: the node
    /// that is followed decides. S1, S2 and S4 hold.
    ///
    /// # Errors
    ///
    /// [`PromoteError::UnknownRelease`] when the store does not have the whole release.
    pub fn follow(&self, project: &ProjectId, current: Promotion) -> Result<(), PromoteError> {
        match self {
            Self::Local(store) => store.follow(project, current),
            Self::Shared(_) => Err(not_local().into()),
        }
    }

    /// Opens a file or an inventory by its digest, and returns its length; `None` if the store has
    /// none. The digest is not checked.
    ///
    /// # Errors
    ///
    /// When it cannot be opened.
    pub fn object(&self, digest: &Digest) -> Result<Option<(File, u64)>, FileError> {
        match self {
            Self::Local(store) => store.object(digest),
            Self::Shared(store) => store.object(digest),
        }
    }

    /// Removes the pointer of a project that was removed. The sweep then removes its releases.
    /// Returns whether there was a pointer.
    ///
    /// # Errors
    ///
    /// [`PromoteError::File`] when the pointer could not be removed.
    pub fn forget(&self, project: &ProjectId) -> Result<bool, PromoteError> {
        match self {
            Self::Local(store) => store.forget(project),
            Self::Shared(store) => store.forget(project),
        }
    }

    /// Removes a release from the history of a project. The sweep then removes it. A release that
    /// is current stays.
    ///
    /// # Errors
    ///
    /// [`PromoteError`] when the pointer could not be read or written.
    pub fn remove_from_history(
        &self,
        project: &ProjectId,
        release: ReleaseId,
    ) -> Result<(), PromoteError> {
        match self {
            Self::Local(store) => store.remove_from_history(project, release),
            Self::Shared(store) => store.remove_from_history(project, release),
        }
    }

    /// Returns whether the store has a release and each of its files with the right length. No file
    /// is read.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when a file cannot be looked at, or the inventory cannot be read.
    pub fn has_release(&self, release: ReleaseId) -> Result<bool, ReadError> {
        match self {
            Self::Local(store) => store.has_release(release),
            Self::Shared(store) => store.has_release(release),
        }
    }

    /// Writes a pointer as it was in another store.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it could not be written.
    pub fn restore_pointer(&self, project: &ProjectId, pointer: &Pointer) -> Result<(), FileError> {
        match self {
            Self::Local(store) => store.restore_pointer(project, pointer),
            Self::Shared(store) => store.restore_pointer(project, pointer),
        }
    }
}

/// Returns the error of an operation that only a directory of one machine has.
fn not_local() -> FileError {
    let why = std::io::Error::other("the store is a database and an object store");
    FileError::on("use as a directory", std::path::Path::new("the store"))(why)
}

/// Returns the pointer after a promotion, or rejects it (S3). All back ends use it.
///
/// Returns `None` when the same promotion was made before.
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
pub(crate) mod tests;
