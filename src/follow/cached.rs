//! How many bytes of files the cache of an edge has, and making space.
//!
//! Space is reserved before a release is fetched. If there is not enough, everything that no
//! current pointer names is removed: earlier releases, and files without a release. What a current
//! pointer names stays. So a release that does not fit is rejected, and the previous release is
//! still served.

#![expect(
    clippy::disallowed_types,
    reason = "only the threads that follow wait, never those that serve sites"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use super::client::FollowError;
use crate::clock::Clock;
use crate::store::{ReadError, Store};

/// Makes every unnamed file old for the sweep.
const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The space of a cache.
#[derive(Debug)]
pub(super) struct Space {
    used: AtomicU64,
    bytes_max: u64,
    /// Shared while a release is written but not named yet, so that it is not removed.
    writing: RwLock<()>,
}

/// Space for a release that is being fetched. Dropping it gives the space back.
pub(super) struct Reserved<'s> {
    space: &'s Space,
    bytes: u64,
}

impl Space {
    pub(super) fn new(store: &Store, bytes_max: u64) -> Result<Self, ReadError> {
        Ok(Self {
            used: AtomicU64::new(store.content_bytes()?),
            bytes_max,
            writing: RwLock::new(()),
        })
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Keeps files that no pointer names yet from being removed.
    pub(super) fn write(&self) -> RwLockReadGuard<'_, ()> {
        self.writing.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves space, and makes some if there is not enough. The caller does not hold
    /// [`Space::write`].
    pub(super) fn reserve(&self, store: &Store, bytes: u64) -> Result<Reserved<'_>, FollowError> {
        if let Some(reserved) = self.try_reserve(bytes) {
            return Ok(reserved);
        }
        let alone = self.writing.write().unwrap_or_else(PoisonError::into_inner);
        remove_earlier(store)?;
        let now = Clock::System.now();
        let swept = store.sweep(now.checked_add(FAR).unwrap_or(now))?;
        // What others have reserved was not written yet: nobody else writes now.
        self.used
            .fetch_sub(swept.bytes.min(self.used()), Ordering::Relaxed);
        drop(alone);
        let (files, freed) = (swept.files, swept.bytes);
        log::info!(target: "follow", files, bytes = freed; "the cache was full: {files} files were removed");
        self.try_reserve(bytes).ok_or(FollowError::CacheFull {
            needed: bytes,
            bytes_max: self.bytes_max,
        })
    }

    fn try_reserve(&self, bytes: u64) -> Option<Reserved<'_>> {
        let more = |used: u64| {
            let after = used.checked_add(bytes)?;
            (after <= self.bytes_max).then_some(after)
        };
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()?;
        Some(Reserved { space: self, bytes })
    }

    /// Counts the files again: the sweep of the process has removed some.
    pub(super) fn count(&self, store: &Store) -> Result<(), ReadError> {
        let _alone = self.writing.write().unwrap_or_else(PoisonError::into_inner);
        self.used.store(store.content_bytes()?, Ordering::Relaxed);
        Ok(())
    }
}

/// Removes all earlier releases from the histories of the pointers.
fn remove_earlier(store: &Store) -> Result<(), FollowError> {
    for project in store.pointers()? {
        let Some(pointer) = store.current(&project)? else {
            continue;
        };
        for earlier in &pointer.history {
            store.remove_from_history(&project, earlier.release)?;
        }
    }
    Ok(())
}

// === impl Reserved ===

impl Reserved<'_> {
    /// The files are in the cache.
    pub(super) fn written(mut self) {
        self.bytes = 0;
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.space.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
