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
pub mod local;
mod ownership;
mod pointer;
mod record;
pub mod shared;
pub mod sites;
pub mod ticket_keys;
pub mod watch;

use std::collections::HashSet;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::clock::{Clock, Day};
use crate::digest::Digest;
use crate::release::{InvalidInventory, Inventory, Item, Release, ReleaseId};
use crate::site::{Host, ProjectId};

pub use content::ContentFile;
pub use durable::FileError;
pub use local::Local;
pub use ownership::{Ownership, OwnershipState};
pub use pointer::{Fence, InvalidPointer, Pointer, Promotion};
pub use record::{HostClaim, Quarantine, SiteChange, SiteRecord, SitesLock};
pub use shared::Shared;

/// A place where releases are stored.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a process has one or two")]
pub enum Store {
    /// A directory of this machine.
    Local(Local),
    /// A database and an object store, which several machines share.
    Shared(Shared),
}

/// Makes the bytes of a day from those before; `None` leaves them.
pub type ChangeNumbers<'c> = &'c mut (dyn FnMut(Option<&[u8]>) -> Option<Vec<u8>> + Send + 'c);

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

/// The leadership of the process that looks at domains, until this is dropped.
#[derive(Debug)]
pub enum VerificationLead {
    /// Among the processes of this machine.
    File(local::VerificationLead),
    /// Among all machines.
    Lease(shared::Lease),
}

/// How many releases are kept, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// How many earlier releases stay in the history of each project.
    pub releases: usize,
    /// After how many seconds a release that no pointer names is removed, counted from when it was
    /// last put or promoted.
    pub unnamed_seconds: u64,
}

/// The result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many releases that no pointer named.
    pub releases: u64,
    /// How many files that no release named.
    pub files: u64,
    /// How many bytes those files had.
    pub bytes: u64,
    /// How many temporary files of killed writers.
    pub leftovers: u64,
}

/// The result of a check of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// How many projects have a pointer.
    pub projects: u64,
    /// How many releases the pointers name.
    pub releases: u64,
    /// How many different files these have.
    pub files: u64,
    /// How many bytes these files have.
    pub bytes: u64,
    /// How many files no pointer needs.
    pub orphans: u64,
    /// How many bytes those have.
    pub orphan_bytes: u64,
    /// The damaged and missing parts.
    pub damages: Vec<Damage>,
    /// The files that a repair has removed.
    pub swept: Swept,
}

/// Something in the store that is damaged or missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The damaged part, and its damage.
    pub what: String,
    /// How a repair has corrected it; `None` if it has not.
    pub repaired: Option<String>,
}

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
    /// The bytes of a file are not those that the inventory names.
    #[error("content {0} of the release has other bytes")]
    Digest(Digest),
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
    /// The stored bytes are not those that were put.
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

    /// Returns the site record of a project; `None` if the store has none.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when it cannot be read.
    pub fn site_record(&self, project: &ProjectId) -> Result<Option<SiteRecord>, ReadError> {
        match self {
            Self::Local(store) => store.site_record(project),
            Self::Shared(store) => store.site_record(project),
        }
    }

    /// Returns every project that has a site record in the store, in no particular order.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when a directory cannot be listed.
    pub fn site_records(&self) -> Result<Vec<ProjectId>, ReadError> {
        match self {
            Self::Local(store) => store.site_records(),
            Self::Shared(store) => store.site_records(),
        }
    }

    /// Returns which record of the store has a host; `None` if there is none. The claim counts only
    /// while that record names the host.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when it cannot be read.
    pub fn host_claim(&self, host: &Host) -> Result<Option<HostClaim>, ReadError> {
        match self {
            Self::Local(store) => store.host_claim(host),
            Self::Shared(store) => store.host_claim(host),
        }
    }

    /// Waits until no other process changes site records, and completes an interrupted change.
    ///
    /// # Errors
    ///
    /// [`SiteError`] when the lock cannot be used, or the interrupted change cannot be completed.
    pub fn lock_sites(&self) -> Result<SitesLock, SiteError> {
        match self {
            Self::Local(store) => store.lock_sites(),
            Self::Shared(store) => store.lock_sites(),
        }
    }

    /// Changes a site record, with the claims of its hosts and the audit log: all or nothing.
    ///
    /// # Errors
    ///
    /// [`SiteError`] when it could not be written. If the disk became full in the middle, the next
    /// [`Store::lock_sites`] completes the change.
    pub fn change_site(&self, lock: &SitesLock, change: &SiteChange) -> Result<(), SiteError> {
        match self {
            Self::Local(store) => store.change_site(lock, change),
            Self::Shared(store) => store.change_site(lock, change),
        }
    }

    /// Returns what was written about the last look at a domain of a project.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when it cannot be read.
    pub fn domain_check(
        &self,
        project: &ProjectId,
        host: &Host,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        match self {
            Self::Local(store) => store.domain_check(project, host),
            Self::Shared(store) => store.domain_check(project, host),
        }
    }

    /// Replaces what is written about the last look at a domain; `None` removes it.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it could not be made durable; the bytes before stay.
    pub fn put_domain_check(
        &self,
        project: &ProjectId,
        host: &Host,
        bytes: Option<&[u8]>,
    ) -> Result<(), FileError> {
        match self {
            Self::Local(store) => store.put_domain_check(project, host, bytes),
            Self::Shared(store) => store.put_domain_check(project, host, bytes),
        }
    }

    /// Asks the process that looks at domains to look at one now.
    ///
    /// # Errors
    ///
    /// [`FileError`] when the request could not be written.
    pub fn request_domain_check(&self, project: &ProjectId, host: &Host) -> Result<(), FileError> {
        match self {
            Self::Local(store) => store.request_domain_check(project, host),
            Self::Shared(store) => store.request_domain_check(project, host),
        }
    }

    /// Takes the requests to look at domains now.
    ///
    /// # Errors
    ///
    /// [`FileError`] when they cannot be read or removed.
    pub fn take_domain_check_requests(&self) -> Result<Vec<(ProjectId, Host)>, FileError> {
        match self {
            Self::Local(store) => store.take_domain_check_requests(),
            Self::Shared(store) => store.take_domain_check_requests(),
        }
    }

    /// Makes this process the one that looks at domains, if no other process is. It is until the
    /// value is dropped or the process ends.
    ///
    /// # Errors
    ///
    /// [`FileError`] when the lock cannot be used.
    pub fn lead_verification(&self) -> Result<Option<VerificationLead>, FileError> {
        match self {
            Self::Local(store) => {
                let lead = store.lead_verification()?;
                Ok(lead.map(VerificationLead::File))
            }
            Self::Shared(store) => Ok(store.lead_verification()?.map(VerificationLead::Lease)),
        }
    }

    /// Returns the numbers of a project from `first` to `last`: one document for each day.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it cannot be read.
    pub fn numbers(
        &self,
        project: &ProjectId,
        first: Day,
        last: Day,
    ) -> Result<Vec<(Day, Vec<u8>)>, FileError> {
        match self {
            Self::Local(store) => store.numbers(project, first, last),
            Self::Shared(store) => store.numbers(project, first, last),
        }
    }

    /// Replaces the document of a day. `change` gets the old bytes and returns the new ones; after
    /// `None` the old ones stay. No other process changes the document at the same time. The store
    /// may call `change` several times.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it could not be made durable; the bytes before stay.
    pub fn change_numbers(
        &self,
        project: &ProjectId,
        day: Day,
        change: ChangeNumbers<'_>,
    ) -> Result<(), FileError> {
        match self {
            Self::Local(store) => store.change_numbers(project, day, change),
            Self::Shared(store) => store.change_numbers(project, day, change),
        }
    }

    /// Removes all numbers of a project.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it could not be removed.
    pub fn remove_numbers(&self, project: &ProjectId) -> Result<(), FileError> {
        match self {
            Self::Local(store) => store.remove_numbers(project),
            Self::Shared(store) => store.remove_numbers(project),
        }
    }

    /// Removes the numbers of all projects before a day. Returns how many documents it has removed.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it could not be removed.
    pub fn sweep_numbers(&self, first: Day) -> Result<u64, FileError> {
        match self {
            Self::Local(store) => store.sweep_numbers(first),
            Self::Shared(store) => store.sweep_numbers(first),
        }
    }

    /// Returns the secret key that tokens for owners and hosts are made with. It is made if it does
    /// not exist.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it can be neither read nor made.
    pub fn verification_key(&self) -> Result<Vec<u8>, FileError> {
        match self {
            Self::Local(store) => store.verification_key(),
            Self::Shared(store) => store.verification_key(),
        }
    }

    /// Puts the key that tokens are made with in place of that of this store.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it could not be made durable.
    pub fn replace_verification_key(&self, key: &[u8]) -> Result<(), FileError> {
        match self {
            Self::Local(store) => store.replace_verification_key(key),
            Self::Shared(store) => store.replace_verification_key(key),
        }
    }

    /// Returns all claims of hosts, in no particular order.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when one cannot be read.
    pub fn host_claims(&self) -> Result<Vec<HostClaim>, ReadError> {
        match self {
            Self::Local(store) => store.host_claims(),
            Self::Shared(store) => store.host_claims(),
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

    /// Removes what this machine has of old releases, as [`Store::sweep`]; in the cache only, if
    /// the store is one of several machines.
    ///
    /// # Errors
    ///
    /// As [`Store::sweep`].
    pub fn sweep_cache(&self, now: SystemTime) -> Result<Swept, ReadError> {
        match self {
            Self::Local(store) => store.sweep(now),
            Self::Shared(store) => store.cache().sweep(now),
        }
    }

    /// Replaces and removes site records of a cache: what this node follows has checked them, so
    /// there are no claims and no audit log.
    ///
    /// # Errors
    ///
    /// [`SiteError`] when one could not be written. Then some are written.
    pub fn replace_site_records(
        &self,
        records: &[(ProjectId, Option<SiteRecord>)],
    ) -> Result<(), SiteError> {
        match self {
            Self::Local(store) => store.replace_site_records(records),
            Self::Shared(_) => Err(not_local().into()),
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

    /// Returns how many bytes the files of all releases have.
    ///
    /// # Errors
    ///
    /// When a directory cannot be listed.
    pub fn content_bytes(&self) -> Result<u64, ReadError> {
        match self {
            Self::Local(store) => store.content_bytes(),
            Self::Shared(store) => store.content_bytes(),
        }
    }

    /// Lists entries of the audit log, the newest first.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when the log cannot be read.
    pub fn audit(&self, filter: &audit::Filter) -> Result<Vec<audit::Entry>, ReadError> {
        match self {
            Self::Local(store) => store.audit(filter),
            Self::Shared(store) => store.audit(filter),
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

    /// Reads all pointers and the releases that they name. A repair restores damaged pointers from
    /// their copies, makes the newest intact release of the history current where the current one
    /// is damaged, and sweeps.
    ///
    /// # Errors
    ///
    /// [`PromoteError`] when the store cannot be listed or written. What is damaged is in the
    /// value.
    pub fn check(&self, repair: bool, now: SystemTime) -> Result<Checked, PromoteError> {
        match self {
            Self::Local(store) => store.check(repair, now),
            Self::Shared(store) => store.check(repair, now),
        }
    }

    /// Returns why no release can be stored now, if that can be seen without writing.
    ///
    /// # Errors
    ///
    /// The disk is full or read-only, or cannot be looked at.
    pub fn look_for_space(&self) -> Result<(), PutError> {
        match self {
            Self::Local(store) => store.look_for_space(0),
            Self::Shared(store) => store.cache().look_for_space(0),
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

    /// Removes all releases but those named, and their files. It is for a store without pointers.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when the inventory of a named release cannot be read. Nothing is removed then.
    pub fn keep_only(&self, named: &HashSet<ReleaseId>) -> Result<Swept, ReadError> {
        match self {
            Self::Local(store) => store.keep_only(named),
            Self::Shared(_) => Err(not_local().into()),
        }
    }

    /// Removes releases and files that no pointer names and that are older than the retention time.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when a pointer, or an inventory that a pointer names, cannot be read. Nothing
    /// is removed then.
    pub fn sweep(&self, now: SystemTime) -> Result<Swept, ReadError> {
        match self {
            Self::Local(store) => store.sweep(now),
            Self::Shared(store) => store.sweep(now),
        }
    }
}

// === impl VerificationLead ===

impl VerificationLead {
    /// Returns whether this process still leads. It loses the leadership if the lock file is
    /// removed, or the database cannot be reached for some seconds.
    #[must_use]
    pub fn holds(&self) -> bool {
        match self {
            Self::File(lead) => lead.holds(),
            Self::Lease(lease) => lease.holds(),
        }
    }
}

// === impl Retention ===

impl Default for Retention {
    /// Ten releases to roll back to, and a day for builds and commands that are running.
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
            Self::File(_)
            | Self::Existing(_)
            | Self::Missing(_)
            | Self::Digest(_)
            | Self::Full { .. }
            | Self::ReadOnly => true,
            Self::Release(_) => false,
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
mod tests;
