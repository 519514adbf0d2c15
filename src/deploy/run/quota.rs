//! How many bytes the releases of an owner may use.
//!
//! A release counts if a pointer of the owner's projects names it, as current or in the history;
//! each file counts once. When a new release needs more room, the oldest releases of the owner's
//! history are removed first. If the releases that are served need too much, the update fails
//! before anything is stored.
//!
//! A release that left the history stays on the disk for a while, because edges may still fetch it
//! (`store.local.keep_unnamed_seconds`). So the releases that an owner has stored lately are limited
//! too, whether or not a pointer names them: they may use [`RECENT_FACTOR`] times the quota.
//!
//! From this check to the promotion the owner is locked in the store ([`ReservedSpace`]), so two
//! processes cannot use the same room.
//!
//! **Limits:** a process that is stopped while it has the lock is waited for, but not for ever. If
//! it goes on later, the quota may be exceeded by one release. The next update of the owner removes
//! history again, or fails. Each process counts the releases that it has stored itself since its
//! start. Inventories are not counted.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::digest::Digest;
use crate::error::chain;
use crate::release::{Inventory, ReleaseId, ReleasePath};
use crate::site::ProjectId;
use crate::store::{FileError, OwnerLock, Promotion, ReadError, Store};

/// How many times the quota all releases may use that an owner has stored lately.
const RECENT_FACTOR: u64 = 3;
/// How many sizes of releases are remembered.
const SIZES_MAX: usize = 100_000;
/// How long another process may store a release of the same owner.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the projects of an owner.
pub type ProjectsOf = Arc<dyn Fn(&str) -> Vec<ProjectId> + Send + Sync>;

/// The quota of each owner, and the limit of each file.
pub struct Quota {
    /// How many bytes the releases of an owner may use; 0 for any.
    bytes_max: u64,
    /// The longest file of a release that edges fetch.
    file_bytes_max: u64,
    projects_of: ProjectsOf,
    /// How many bytes the files of a release have, for releases that were measured.
    sizes: Mutex<HashMap<ReleaseId, u64>>,
    /// The releases of each owner that this process has stored and the store still has.
    recent: Mutex<HashMap<Box<str>, HashSet<ReleaseId>>>,
}

/// Space that is reserved for a new release of an owner. Keep it until the release is promoted: no
/// other process makes room for this owner as long as it lives.
#[derive(Debug)]
#[must_use]
pub struct ReservedSpace {
    /// How many releases were removed from the history.
    pub removed: usize,
    /// Whether history may have to go when the release is promoted.
    is_tight: bool,
    _lock: Option<OwnerLock>,
}

/// Why there is no room for a release.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuotaError {
    /// A file of the release is longer than edges fetch.
    #[error(
        "{path} has {length} bytes, and edges load files of at most {allowed}; make it smaller, \
         or ask the operator for more (`edges.object_bytes_max`)"
    )]
    File {
        /// The path of the file in the release.
        path: ReleasePath,
        /// How many bytes it has.
        length: u64,
        /// How many it may have.
        allowed: u64,
    },
    /// The releases of the owner need too many bytes.
    #[error(
        "the releases of this owner would use {needed} bytes, and {allowed} are allowed; \
         make the documentation smaller, or ask the operator for more"
    )]
    Exceeded {
        /// How many bytes would be used.
        needed: u64,
        /// How many may be used.
        allowed: u64,
    },
    /// The releases that the owner has stored lately need too many bytes.
    #[error(
        "the releases of this owner that were stored lately would use {needed} bytes, and {allowed} \
         are allowed; try again later, when replaced releases have been removed"
    )]
    Recent {
        /// How many bytes would be used.
        needed: u64,
        /// How many may be used.
        allowed: u64,
    },
    /// The store cannot be locked.
    #[error("lock the releases of the owner")]
    Lock(#[source] FileError),
    /// The releases of the owner cannot be read.
    #[error("read the releases of the owner")]
    Read(#[source] FileError),
}

/// A release that a pointer names.
struct Named {
    project: ProjectId,
    promotion: Promotion,
    is_current: bool,
}

// === impl Quota ===

impl std::fmt::Debug for Quota {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quota")
            .field("bytes_max", &self.bytes_max)
            .finish_non_exhaustive()
    }
}

impl Quota {
    /// Returns a quota of this many bytes; 0 for any.
    #[must_use]
    pub fn new(bytes_max: u64, projects_of: ProjectsOf) -> Self {
        Self {
            bytes_max,
            file_bytes_max: u64::MAX,
            projects_of,
            sizes: Mutex::default(),
            recent: Mutex::default(),
        }
    }

    /// Refuses releases with a file that is longer than this many bytes.
    #[must_use]
    pub fn with_file_bytes_max(self, file_bytes_max: u64) -> Self {
        Self {
            file_bytes_max,
            ..self
        }
    }

    /// Checks the files of a new release of a project, and makes room for it: removes the oldest
    /// releases of the owner's history. Returns how many releases were removed.
    ///
    /// The release that `project` serves stays until the new one is promoted. Then [`Quota::trim`]
    /// removes it if the history has no room for it.
    ///
    /// # Errors
    ///
    /// [`QuotaError`]: nothing is removed then.
    pub fn make_room(
        &self,
        store: &Store,
        owner: &str,
        project: &ProjectId,
        new: &Inventory,
    ) -> Result<ReservedSpace, QuotaError> {
        let allowed = self.file_bytes_max;
        if let Some((path, length)) = new.longer_than(allowed) {
            let path = path.clone();
            return Err(QuotaError::File {
                path,
                length,
                allowed,
            });
        }
        let lock = match self.bytes_max {
            0 => None,
            _ => store
                .lock_owner(owner, LOCK_TIMEOUT)
                .map_err(QuotaError::Lock)?,
        };
        if lock.is_none() && self.bytes_max > 0 {
            log::warn!(target: "deploy", owner; "another process has stored a release of {owner} for {} s, and is not waited for", LOCK_TIMEOUT.as_secs());
        }
        self.check_recent(store, owner, new)?;
        let fitted = self.fit(store, owner, project, Some(new))?;
        self.note_recent(owner, new);
        Ok(ReservedSpace {
            removed: fitted.unwrap_or(0),
            is_tight: fitted.is_some(),
            _lock: lock,
        })
    }

    /// Removes the oldest releases of the owner's history until the rest fits into the quota, after
    /// the release was promoted for which there is `space`. Returns how many releases were removed.
    pub fn trim(
        &self,
        store: &Store,
        owner: &str,
        project: &ProjectId,
        space: ReservedSpace,
    ) -> usize {
        if !space.is_tight {
            return 0;
        }
        // The served release is kept, even if an operator has made the quota smaller.
        let fitted = self.fit(store, owner, project, None);
        fitted.ok().flatten().unwrap_or(0)
    }

    /// Checks that the releases which the owner has stored lately leave room for a new one.
    fn check_recent(&self, store: &Store, owner: &str, new: &Inventory) -> Result<(), QuotaError> {
        let allowed = self.bytes_max.saturating_mul(RECENT_FACTOR);
        let recent = self.recent().get(owner).cloned().unwrap_or_default();
        let mut most = bytes_of(new);
        for release in &recent {
            most = most.saturating_add(self.size(store, *release)?);
        }
        if allowed == 0 || most <= allowed {
            return Ok(());
        }
        // They share files, and some may have been removed.
        let mut files = Files::default();
        files.add(new);
        let mut kept = HashSet::new();
        for release in recent {
            match store.inventory(release) {
                Ok(inventory) => files.add(&inventory),
                Err(ReadError::UnknownRelease(_)) => continue,
                Err(ReadError::File(error)) => return Err(QuotaError::Read(error)),
                // It cannot be read.
                Err(_damaged) => {}
            }
            kept.insert(release);
        }
        let needed = files.bytes;
        match kept.is_empty() {
            true => self.recent().remove(owner),
            false => self.recent().insert(owner.into(), kept),
        };
        match needed <= allowed {
            true => Ok(()),
            false => Err(QuotaError::Recent { needed, allowed }),
        }
    }

    fn note_recent(&self, owner: &str, new: &Inventory) {
        if self.bytes_max > 0 {
            let mut recent = self.recent();
            recent.entry(owner.into()).or_default().insert(new.id());
        }
    }

    fn recent(&self) -> MutexGuard<'_, HashMap<Box<str>, HashSet<ReleaseId>>> {
        // Each change is one insertion or removal.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many releases were removed; `None` if there is room for all without a look at
    /// the files that they share.
    fn fit(
        &self,
        store: &Store,
        owner: &str,
        project: &ProjectId,
        new: Option<&Inventory>,
    ) -> Result<Option<usize>, QuotaError> {
        if self.bytes_max == 0 {
            return Ok(None);
        }
        let named = self.named(store, owner, project)?;
        let releases: HashSet<_> = named.iter().map(|named| named.promotion.release).collect();
        let new_bytes = new.map_or(0, bytes_of);
        let mut most = new_bytes;
        for release in releases {
            most = most.saturating_add(self.size(store, release)?);
        }
        if most <= self.bytes_max {
            return Ok(None);
        }
        // Releases share files: now each file is counted once.
        let mut files = Files::default();
        if let Some(new) = new {
            files.add(new);
        }
        let is_replaced = |named: &Named| new.is_some() && named.project == *project;
        let (current, mut history): (Vec<_>, Vec<_>) =
            named.into_iter().partition(|named| named.is_current);
        for named in current.iter().filter(|named| !is_replaced(named)) {
            files.add_release(store, named.promotion.release);
        }
        if files.bytes > self.bytes_max {
            return Err(QuotaError::Exceeded {
                needed: files.bytes,
                allowed: self.bytes_max,
            });
        }
        // The newest releases get the room first.
        history.sort_by_key(|named| std::cmp::Reverse(named.promotion.promoted_at));
        let mut removed = 0;
        for named in history {
            let release = named.promotion.release;
            if removed == 0 && files.has_room_for(store, release, self.bytes_max) {
                files.add_release(store, release);
                continue;
            }
            match store.remove_from_history(&named.project, release) {
                Ok(()) => removed += 1,
                Err(error) => {
                    log::error!(target: "deploy", project:% = named.project; "cannot remove release {release} from the history: {}", chain(&error));
                }
            }
        }
        Ok(Some(removed))
    }

    /// Returns the releases that the pointers of an owner name.
    fn named(
        &self,
        store: &Store,
        owner: &str,
        project: &ProjectId,
    ) -> Result<Vec<Named>, QuotaError> {
        let mut projects = (self.projects_of)(owner);
        if !projects.contains(project) {
            projects.push(project.clone());
        }
        let mut all = Vec::new();
        for project in projects {
            let pointer = match store.current(&project) {
                Ok(Some(pointer)) => pointer,
                Err(ReadError::File(error)) => return Err(QuotaError::Read(error)),
                // A damaged pointer is reported where it is used.
                Ok(None) | Err(_) => continue,
            };
            all.extend(
                pointer
                    .promotions()
                    .enumerate()
                    .map(|(place, promotion)| Named {
                        project: project.clone(),
                        promotion: *promotion,
                        is_current: place == 0,
                    }),
            );
        }
        Ok(all)
    }

    /// Returns how many bytes the files of a release have.
    fn size(&self, store: &Store, release: ReleaseId) -> Result<u64, QuotaError> {
        let lock = || self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(size) = lock().get(&release) {
            return Ok(*size);
        }
        let inventory = match store.inventory(release) {
            Ok(inventory) => inventory,
            Err(ReadError::File(error)) => return Err(QuotaError::Read(error)),
            // A damaged release counts as zero bytes, because it cannot be served.
            Err(_damaged) => return Ok(0),
        };
        let size = bytes_of(&inventory);
        let mut sizes = lock();
        // Most are of releases that are removed meanwhile.
        if sizes.len() >= SIZES_MAX {
            sizes.clear();
        }
        sizes.insert(release, size);
        Ok(size)
    }
}

fn bytes_of(inventory: &Inventory) -> u64 {
    let mut files = Files::default();
    files.add(inventory);
    files.bytes
}

/// Different files, and how many bytes they have together.
#[derive(Default)]
struct Files {
    known: HashSet<Digest>,
    bytes: u64,
}

// === impl Files ===

impl Files {
    fn add(&mut self, inventory: &Inventory) {
        for (_, item) in inventory.iter() {
            if self.known.insert(item.digest) {
                self.bytes = self.bytes.saturating_add(item.length);
            }
        }
    }

    fn add_release(&mut self, store: &Store, release: ReleaseId) {
        if let Ok(inventory) = store.inventory(release) {
            self.add(&inventory);
        }
    }

    fn has_room_for(&self, store: &Store, release: ReleaseId, bytes_max: u64) -> bool {
        let Ok(inventory) = store.inventory(release) else {
            return true;
        };
        let mut added = HashSet::new();
        let new = inventory.iter().map(|(_, item)| item);
        let new =
            new.filter(|item| !self.known.contains(&item.digest) && added.insert(item.digest));
        let bytes: u64 = new.map(|item| item.length).sum();
        self.bytes.saturating_add(bytes) <= bytes_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::release::{Release, ReleaseFile, ReleasePath};
    use crate::store::{Fence, Local, local};

    fn release(files: &[(&str, usize)]) -> Release {
        let mut builder = Release::builder();
        for (name, length) in files {
            let text = format!("{name:<length$}");
            let file = ReleaseFile::new(text, "text/plain");
            builder
                .insert(ReleasePath::parse(name).unwrap(), file)
                .unwrap();
        }
        builder.finish()
    }

    fn project(name: &str) -> ProjectId {
        ProjectId::parse(name).unwrap()
    }

    fn promote(store: &Store, name: &str, generation: u64, release: &Release) {
        store.put(release).unwrap();
        let fence = Fence {
            generation,
            epoch: 1,
        };
        store.promote(&project(name), release.id(), fence).unwrap();
    }

    fn releases_of(store: &Store, name: &str) -> usize {
        store.releases(&project(name)).unwrap().len()
    }

    #[test]
    fn history_is_removed_before_an_update_fails_and_what_is_served_stays() {
        let root = tempfile::tempdir().unwrap();
        let config = local::Config {
            path: root.path().join("store"),
            ..local::Config::default()
        };
        let store = Store::Local(Local::open(&config, Clock::System).unwrap());
        let quota = Quota::new(10_000, Arc::new(|_| vec![project("a"), project("b")]));
        promote(&store, "a", 1, &release(&[("old", 3000), ("logo", 2000)]));
        promote(&store, "a", 2, &release(&[("now", 3000), ("logo", 2000)]));
        promote(&store, "b", 1, &release(&[("other", 1000)]));
        // A shared file counts once: 3,000 + 3,000 + 2,000 + 1,000.
        let make_room = |new: &Release| {
            let space = quota.make_room(&store, "acme", &project("b"), new.inventory());
            space.map(|space| space.removed)
        };
        assert_eq!(make_room(&release(&[("small", 500)])).unwrap(), 0);
        assert_eq!(make_room(&release(&[("large", 2500)])).unwrap(), 1);
        assert_eq!((releases_of(&store, "a"), releases_of(&store, "b")), (1, 1));
        let rejected = make_room(&release(&[("huge", 6000)])).unwrap_err();
        let QuotaError::Exceeded { needed, allowed } = rejected else {
            panic!("{rejected}");
        };
        assert_eq!((needed, allowed), (11_000, 10_000));
        assert_eq!((releases_of(&store, "a"), releases_of(&store, "b")), (1, 1));
        // The release that was served before has no room beside the new one.
        let large = release(&[("large", 4500)]);
        let space = quota.make_room(&store, "acme", &project("b"), large.inventory());
        let space = space.unwrap();
        assert_eq!(space.removed, 0);
        promote(&store, "b", 2, &large);
        assert_eq!(quota.trim(&store, "acme", &project("b"), space), 1);
        assert_eq!(releases_of(&store, "b"), 1);
    }

    #[test]
    fn releases_that_left_the_history_count_until_they_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let config = local::Config {
            path: root.path().join("store"),
            ..local::Config::default()
        };
        let store = Store::Local(Local::open(&config, Clock::System).unwrap());
        let projects_of = |owner: &str| match owner {
            "acme" => vec![project("a")],
            _ => Vec::new(),
        };
        let quota = Quota::new(10_000, Arc::new(projects_of));
        let new = |n: u64| release(&[(&format!("file-{n}"), 6000), ("logo", 2000)]);
        // Two releases do not fit into the quota, so each removes the one before from the history.
        let deploy = |n: u64| -> Result<(), QuotaError> {
            let space = quota.make_room(&store, "acme", &project("a"), new(n).inventory())?;
            promote(&store, "a", n, &new(n));
            quota.trim(&store, "acme", &project("a"), space);
            Ok(())
        };
        for n in 1..=4 {
            deploy(n).unwrap();
            assert_eq!(releases_of(&store, "a"), 1);
        }
        let QuotaError::Recent { needed, allowed } = deploy(5).unwrap_err() else {
            panic!("another error");
        };
        // The logo counts once.
        assert_eq!((needed, allowed), (32_000, 30_000));
        // Another owner has room, and so has a release without new files.
        let others = quota.make_room(&store, "other", &project("b"), new(6).inventory());
        assert!(others.is_ok());
        let same = quota.make_room(&store, "acme", &project("a"), new(4).inventory());
        drop(same.unwrap());
        let much_later = Clock::System.now() + Duration::from_secs(48 * 3600);
        assert_eq!(store.sweep(much_later).unwrap().releases, 3);
        deploy(5).unwrap();
    }

    #[test]
    fn without_a_quota_nothing_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let config = local::Config {
            path: root.path().join("store"),
            ..local::Config::default()
        };
        let store = Store::Local(Local::open(&config, Clock::System).unwrap());
        let quota = Quota::new(0, Arc::new(|_| Vec::new()));
        promote(&store, "a", 1, &release(&[("old", 3000)]));
        promote(&store, "a", 2, &release(&[("now", 3000)]));
        let new = release(&[("new", 3000)]);
        let made = quota.make_room(&store, "acme", &project("a"), new.inventory());
        assert_eq!((made.unwrap().removed, releases_of(&store, "a")), (0, 2));
    }

    #[test]
    fn two_processes_cannot_use_the_same_room() {
        let root = tempfile::tempdir().unwrap();
        let config = local::Config {
            path: root.path().join("store"),
            ..local::Config::default()
        };
        // Each has its own store, as processes have.
        let open = || Store::Local(Local::open(&config, Clock::System).unwrap());
        let quota = || Quota::new(10_000, Arc::new(|_| vec![project("a"), project("b")]));
        let (store, new) = (open(), release(&[("a", 6000)]));
        let space = quota().make_room(&store, "acme", &project("a"), new.inventory());
        let space = space.unwrap();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let new = release(&[("b", 6000)]);
                let made = quota().make_room(&open(), "acme", &project("b"), new.inventory());
                made.map(drop)
            });
            // Another owner does not wait.
            let others = Quota::new(10_000, Arc::new(|_| vec![project("c")]));
            let made = others.make_room(&store, "other", &project("c"), new.inventory());
            drop(made.unwrap());
            assert!(!other.is_finished());
            promote(&store, "a", 1, &new);
            drop(space);
            let rejected = other.join().unwrap().unwrap_err();
            assert!(rejected.to_string().contains("12000 bytes"), "{rejected}");
        });
    }
}
