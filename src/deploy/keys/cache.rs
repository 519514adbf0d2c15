//! All keys in memory, updated when their directory changes.
//!
//! A check is one digest and one lookup. An unknown key may just have been created, so the cache
//! reads the directory before it rejects one, at most ten times a second for all callers together.
//! Twice a second it reads the modification time of the directory, and the files only if a key was
//! created, changed or removed since.
//! A file that cannot be read leaves its key as it was; a removed file removes its key.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use subtle::ConstantTimeEq;

use super::{Directory, InvalidKey, Key, KeyFileError, KeyId, Secret};
use crate::clock::Clock;
use crate::deploy::Timestamp;
use crate::digest::Digest;
use crate::error::chain;
use crate::store::FileError;
use crate::store::shared::SharedDocuments;
use crate::telemetry::panics;

/// How often the directory is checked: a revocation takes effect within twice this time.
const CHECK_INTERVAL: Duration = Duration::from_millis(400);
/// How often in a second the directory is read because of unknown keys.
const UNKNOWN_REFRESHES_MAX: u32 = 10;
/// How often uses of keys are recorded in a database.
const SHARED_INTERVAL: Duration = Duration::from_secs(10);
/// Two changes within this time may have the same modification time, because the clocks of
/// file systems are coarse.
const CLOCK_STEP: Duration = Duration::from_secs(2);

/// The keys that a gateway accepts.
#[derive(Debug)]
pub struct KeyCache {
    directory: Directory,
    service_name: Box<str>,
    clock: Clock,
    keys: ArcSwap<HashMap<Digest, Arc<Key>>>,
    last_refresh: Mutex<LastRefresh>,
    /// The uses of keys that are not recorded yet.
    used: Mutex<HashMap<KeyId, Timestamp>>,
    unknown: Mutex<UnknownRefreshes>,
    /// Where uses are recorded for all machines.
    shared: Option<SharedUses>,
}

/// How often the directory was read because of unknown keys.
#[derive(Debug, Default)]
struct UnknownRefreshes {
    /// The second since the Unix epoch.
    second: u64,
    count: u32,
}

/// The database that has the uses of keys for all machines.
#[derive(Debug)]
struct SharedUses {
    documents: SharedDocuments,
    written_at: Mutex<Instant>,
}

/// The state of the directory at the last refresh.
#[derive(Debug, Default)]
struct LastRefresh {
    changed_at: Option<SystemTime>,
    last_check: Option<SystemTime>,
    files: HashMap<PathBuf, (SystemTime, Digest)>,
}

/// A thread that refreshes a cache until this is dropped.
#[derive(Debug)]
pub struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

// === impl KeyCache ===

impl KeyCache {
    /// Reads all keys. A key that cannot be read is logged and left out.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] when the directory cannot be listed.
    pub fn load(
        directory: Directory,
        service_name: &str,
        clock: Clock,
    ) -> Result<Self, KeyFileError> {
        let cache = Self {
            directory,
            service_name: service_name.into(),
            clock,
            keys: ArcSwap::default(),
            last_refresh: Mutex::default(),
            used: Mutex::default(),
            unknown: Mutex::default(),
            shared: None,
        };
        cache.refresh()?;
        Ok(cache)
    }

    /// Also records in a database when keys were used. The directory is the copy of its keys.
    #[must_use]
    pub fn recording_in(mut self, documents: SharedDocuments) -> Self {
        self.shared = Some(SharedUses {
            documents,
            written_at: Mutex::new(Instant::now()),
        });
        self
    }

    /// Returns the key that a caller presents.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`] when it is not valid.
    pub fn verify(&self, presented: &str) -> Result<Arc<Key>, InvalidKey> {
        let now = Timestamp::of(self.clock.now());
        let secret = Secret::parse(presented, &self.service_name).ok_or(InvalidKey::Malformed)?;
        let digest = secret.digest();
        // The time that the map takes to compare digests reveals nothing about a key, because
        // a caller cannot choose digests. The comparison that decides takes constant time.
        let known = self.keys.load().get(&digest).cloned();
        let key = known.or_else(|| self.find_new(&digest));
        let key = key.ok_or(InvalidKey::Unknown)?;
        let same = key.digest.as_bytes().ct_eq(digest.as_bytes());
        if !bool::from(same) {
            return Err(InvalidKey::Unknown);
        }
        key.check(now)?;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.insert(key.id(), now);
        Ok(key)
    }

    /// Reads the directory for an unknown key, which may have been created since the last refresh,
    /// unless this was done too often: wrong keys must not keep the disk busy.
    fn find_new(&self, digest: &Digest) -> Option<Arc<Key>> {
        let second = self.clock.unix_seconds();
        let mut refreshes = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        if refreshes.second != second {
            *refreshes = UnknownRefreshes { second, count: 0 };
        }
        if refreshes.count >= UNKNOWN_REFRESHES_MAX {
            return None;
        }
        refreshes.count += 1;
        drop(refreshes);
        // The thread that refreshes the cache reports errors.
        self.refresh().ok()?;
        self.keys.load().get(digest).cloned()
    }

    /// Reads the keys that have changed in the directory.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] when the directory cannot be listed: the keys stay as they were.
    pub fn refresh(&self) -> Result<(), KeyFileError> {
        let mut last_refresh = self
            .last_refresh
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let last_check = self.clock.now();
        let changed_at = self.directory.changed_at().ok();
        if let (Some(changed), Some(before)) = (changed_at, last_refresh.last_check)
            && last_refresh.changed_at == changed_at
            && before
                .duration_since(changed)
                .is_ok_and(|age| age > CLOCK_STEP)
        {
            return Ok(());
        }
        let mut keys = HashMap::new();
        let mut files = HashMap::new();
        let current = self.keys.load();
        for path in self.directory.files()? {
            let modified = std::fs::metadata(&path).and_then(|metadata| metadata.modified());
            let before = last_refresh.files.get(&path);
            let unchanged = match (&modified, before) {
                (Ok(modified), Some((modified_before, digest)))
                    if modified == modified_before
                        && last_check
                            .duration_since(*modified)
                            .is_ok_and(|age| age > CLOCK_STEP) =>
                {
                    current.get(digest).cloned()
                }
                _ => None,
            };
            let key = unchanged.or_else(|| match self.directory.read(&path) {
                Ok(key) => Some(Arc::new(key)),
                Err(error) => {
                    log::error!(target: "deploy", "{error}");
                    before.and_then(|(_, digest)| current.get(digest).cloned())
                }
            });
            if let Some(key) = key {
                let modified = modified.unwrap_or(SystemTime::UNIX_EPOCH);
                files.insert(path, (modified, key.digest));
                keys.insert(key.digest, key);
            }
        }
        self.keys.store(Arc::new(keys));
        *last_refresh = LastRefresh {
            changed_at,
            last_check: Some(last_check),
            files,
        };
        Ok(())
    }

    /// Records when keys were used: on disk, or in the database if this was not done for a while.
    pub fn write_uses(&self) {
        self.write_uses_after(SHARED_INTERVAL);
    }

    /// Records the uses: in the database only if the last record is older than `interval`.
    fn write_uses_after(&self, interval: Duration) {
        let is_early = |shared: &SharedUses| shared.written_at().elapsed() < interval;
        if self.shared.as_ref().is_some_and(is_early) {
            return;
        }
        let lock = || self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let used = std::mem::take(&mut *lock());
        if used.is_empty() {
            return;
        }
        let Some(shared) = &self.shared else {
            for (id, at) in used {
                if let Err(error) = self.directory.write_use(&id, at) {
                    log::warn!(target: "deploy", key:% = id; "cannot record the use of key {id}: {error}");
                }
            }
            return;
        };
        *shared.written_at() = Instant::now();
        if let Err(error) = shared.write(&used) {
            log::warn!(target: "deploy", "cannot record the use of keys: {}", chain(&error));
            // They are written the next time; a later use of a key stays.
            let mut kept = lock();
            for (id, at) in used {
                kept.entry(id).or_insert(at);
            }
        }
    }

    /// Starts a thread that refreshes the cache.
    ///
    /// # Errors
    ///
    /// The error of the system when the thread cannot be started.
    pub fn watch(self: &Arc<Self>) -> std::io::Result<Watch> {
        let cache = Arc::clone(self);
        let (stop, stopped) = channel();
        let thread = panics::essential_thread("key-watch", move || {
            while stopped.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = cache.refresh() {
                    log::error!(target: "deploy", "the admin keys stay as they were: {error}");
                }
                cache.write_uses();
            }
            cache.write_uses_after(Duration::ZERO);
        })?;
        Ok(Watch {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

// === impl SharedUses ===

impl SharedUses {
    fn write(&self, used: &HashMap<KeyId, Timestamp>) -> Result<(), FileError> {
        let uses = used.iter().map(|(id, at)| (id.as_str(), at.millis()));
        let mut uses: Vec<_> = uses.collect();
        // Two gateways lock the rows in the same order.
        uses.sort_unstable();
        self.documents.note_key_uses(&uses)
    }

    fn written_at(&self) -> MutexGuard<'_, Instant> {
        self.written_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Watch ===

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop = None;
        // A panic in it ends the process.
        let _joined = self.thread.take().map(JoinHandle::join);
    }
}
