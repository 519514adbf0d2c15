//! Upkeep: removes releases and files that no pointer names, checks the stored files, and measures
//! the free space.

use std::collections::HashSet;
use std::time::SystemTime;

use super::{PromoteError, PutError, ReadError, Store, not_local};
use crate::release::ReleaseId;

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
pub struct CheckResult {
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

// === impl Store ===

impl Store {
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

    /// Reads all pointers and the releases that they name. A repair restores damaged pointers from
    /// their copies, makes the newest intact release of the history current where the current one
    /// is damaged, and sweeps.
    ///
    /// # Errors
    ///
    /// [`PromoteError`] when the store cannot be listed or written. The value lists the damage.
    pub fn check(&self, repair: bool, now: SystemTime) -> Result<CheckResult, PromoteError> {
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
    pub fn check_space(&self) -> Result<(), PutError> {
        match self {
            Self::Local(store) => store.check_space(0),
            Self::Shared(store) => store.cache().check_space(0),
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
