//! Watches for changes of pointers and of site records.
//!
//! The operating system reports most changes within a millisecond, but some never: network file
//! systems send no events, event queues overflow, whole directories are replaced. So there are
//! five kinds of [`Change`]: the pointer of one project, site records in the store, the files of
//! site records, what a follower has written, or "compare everything", which also occurs at regular
//! intervals.
//!
//! * Start the watch before reading the files. A change in between is then reported, even if the
//!   reader has already seen it.
//! * Directories are watched, not files: a careful writer replaces a file, and a watch of a file
//!   would stay on the old file. The directory of site records may itself be replaced, by a
//!   rename or by a changed link. So its parent is watched for its name, and the watch of the
//!   directory is renewed. Kubernetes replaces the link `..data` beside the records, so an event
//!   inside the directory counts whatever its name is.
//! * A changed pointer is reported at once, because a promotion is a single rename. Changed site
//!   records are reported after a short time without events, because their writers change many
//!   records together.
//! * Waiting changes are a set, not a list: a project that was promoted a hundred times waits
//!   once. When too many projects wait, they become one comparison of everything.
//! * Site records that wait are taken together: an edge that begins with an empty cache writes all
//!   of them at once, and each reading of records has a cost of its own.
//! * A follower of a shared store reports what it has written, and the revision of it,
//!   because events of the system may come later. The reader reads what it has not read yet, and
//!   then has everything up to the revision.
//!
//! If the system refuses a watch (usually because of its limit of watches), this is logged and
//! everything is compared more often.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::{Store, local};
use crate::site::ProjectId;

/// How many projects may wait. If more wait, they become one [`Change::Rescan`].
const POINTERS_MAX: usize = 65_536;
/// How many site records of the store are reported together: their reader blocks promotions for
/// about 0.1 seconds, and copies the tables of all hosts once.
const RECORDS_MAX: usize = 4096;
/// Changed site records are reported after this time without an event.
const SITES_QUIET: Duration = Duration::from_millis(50);
/// The longest delay of changed site records, while events continue.
const SITES_WAIT_MAX: Duration = Duration::from_millis(500);
/// How often everything is compared when the system refuses a watch.
const RESCAN_UNWATCHED_MAX: Duration = Duration::from_secs(30);

/// A possible change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The pointer of one project.
    Pointer(ProjectId),
    /// The site records of these projects in the store: at least one, none twice.
    Records(Vec<ProjectId>),
    /// Any file of site records.
    Sites,
    /// What a follower of a shared store has written. Most of it was reported before.
    Followed(Followed),
    /// Anything: events were lost, or a comparison is due.
    Rescan,
}

/// What a follower of a shared store has written into this store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// The identity of the store that is followed.
    pub id: String,
    /// All changes up to this revision are written.
    pub revision: u64,
    /// The projects whose records were written.
    pub records: BTreeSet<ProjectId>,
    /// The projects whose pointers were written.
    pub pointers: BTreeSet<ProjectId>,
    /// Whether anything else may have been written too.
    pub is_everything: bool,
}

/// A watch of the pointers of a store and of the site records.
#[derive(Debug)]
pub struct Watch {
    waiting: Arc<Waiting>,
    rescan: Duration,
    sites: PathBuf,
    /// `None` when the system cannot watch files.
    watcher: Mutex<Option<RecommendedWatcher>>,
}

/// The changes that the caller has not received yet.
#[derive(Debug, Default)]
struct Waiting {
    pending: Mutex<PendingChanges>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PendingChanges {
    pointers: BTreeSet<ProjectId>,
    /// The projects whose site records in the store may have changed.
    records: BTreeSet<ProjectId>,
    /// The times of the first and the last event about site records.
    sites: Option<(Instant, Instant)>,
    /// Whether the directory of site records may have been replaced.
    is_replaced: bool,
    rescan: bool,
    followed: Option<Followed>,
    rescanned: Option<Instant>,
    closed: bool,
}

/// Converts events of the system into changes.
struct Sorter {
    waiting: Arc<Waiting>,
    sites: PathBuf,
    sites_parent: PathBuf,
    pointers: BTreeSet<PathBuf>,
    records: BTreeSet<PathBuf>,
}

// === impl Watch ===

impl Watch {
    /// Starts to watch the pointers of a store and the site records at `sites`.
    ///
    /// Everything is compared at each interval of `rescan`.
    #[must_use]
    pub fn start(store: &Store, sites: &Path, rescan: Duration) -> Self {
        // Events have absolute paths when the watched paths are absolute.
        let sites = std::path::absolute(sites).unwrap_or_else(|_| sites.to_owned());
        let sites_parent = sites.parent().unwrap_or(Path::new("/")).to_owned();
        let local = match store {
            Store::Local(local) => local,
            Store::Shared(shared) => shared.cache(),
        };
        let absolute = |directory: PathBuf| std::path::absolute(&directory).unwrap_or(directory);
        let pointers: BTreeSet<PathBuf> = local.pointer_directories().map(absolute).collect();
        let records: BTreeSet<PathBuf> = local.site_record_directories().map(absolute).collect();
        let waiting = Arc::new(Waiting::default());
        waiting.pending().rescanned = Some(Instant::now());
        let sorter = Sorter {
            waiting: Arc::clone(&waiting),
            sites: sites.clone(),
            sites_parent: sites_parent.clone(),
            pointers: pointers.clone(),
            records: records.clone(),
        };
        let mut unwatched = 0_usize;
        let mut failed = |what: &Path, error: &notify::Error| {
            unwatched += 1;
            // One log line is enough: the limit of watches applies to all directories.
            if unwatched == 1 {
                log::warn!(target: "watch", "cannot watch {}: {error}", what.display());
            }
        };
        let mut watcher = notify::recommended_watcher(move |event| sorter.sort(event))
            .inspect_err(|error| failed(&sites_parent, error))
            .ok();
        if let Some(watcher) = &mut watcher {
            for directory in pointers.iter().chain(&records).chain([&sites_parent]) {
                if let Err(error) = watcher.watch(directory, RecursiveMode::NonRecursive) {
                    failed(directory, &error);
                }
            }
        }
        let rescan = if unwatched > 0 {
            rescan.min(RESCAN_UNWATCHED_MAX)
        } else {
            rescan
        };
        let watch = Self {
            waiting,
            rescan,
            sites,
            watcher: Mutex::new(watcher),
        };
        watch.rewatch();
        watch
    }

    /// Waits for a change. Returns `None` once the watch is closed.
    pub fn next(&self) -> Option<Change> {
        let (change, is_replaced) = self.waiting.next(self.rescan)?;
        if is_replaced || change == Change::Rescan {
            // Renewed before the caller reads the files, so that later changes are reported.
            self.rewatch();
        }
        Some(change)
    }

    /// Makes the next change a comparison of everything.
    pub fn rescan(&self) {
        self.waiting.pending().rescan = true;
        self.waiting.changed.notify_all();
    }

    /// Reports what a follower has written, after the changes that are reported already.
    pub fn followed(&self, followed: Followed) {
        let mut pending = self.waiting.pending();
        match &mut pending.followed {
            Some(waiting) => waiting.add(followed),
            none => *none = Some(followed),
        }
        drop(pending);
        self.waiting.changed.notify_all();
    }

    /// Ends the watch: [`Watch::next`] returns `None`.
    pub fn close(&self) {
        self.waiting.pending().closed = true;
        self.waiting.changed.notify_all();
    }

    /// Watches the current directory of site records.
    fn rewatch(&self) {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(watcher) = watcher.as_mut() else {
            return;
        };
        // There may be no watch, or a watch of a removed directory.
        let _was_watched = watcher.unwatch(&self.sites);
        if self.sites.is_dir()
            && let Err(error) = watcher.watch(&self.sites, RecursiveMode::NonRecursive)
        {
            log::warn!(target: "watch", "cannot watch {}: {error}", self.sites.display());
        }
    }
}

// === impl Followed ===

impl Followed {
    /// Adds a later report to this one.
    fn add(&mut self, later: Self) {
        self.id = later.id;
        self.revision = later.revision;
        self.records.extend(later.records);
        self.pointers.extend(later.pointers);
        self.is_everything |= later.is_everything;
    }
}

// === impl Waiting ===

impl Waiting {
    fn pending(&self) -> MutexGuard<'_, PendingChanges> {
        // A panic cannot leave the value in an inconsistent state.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a change is due.
    ///
    /// Also returns whether the directory of site records may have been replaced.
    fn next(&self, rescan: Duration) -> Option<(Change, bool)> {
        let mut pending = self.pending();
        loop {
            let now = Instant::now();
            if pending.closed {
                return None;
            }
            let rescan_due = pending.rescanned.unwrap_or(now) + rescan;
            if pending.rescan || now >= rescan_due {
                *pending = PendingChanges {
                    rescanned: Some(now),
                    followed: pending.followed.take(),
                    ..PendingChanges::default()
                };
                return Some((Change::Rescan, true));
            }
            if !pending.records.is_empty() {
                let records = std::iter::from_fn(|| pending.records.pop_first());
                let records = records.take(RECORDS_MAX).collect();
                return Some((Change::Records(records), false));
            }
            if let Some(project) = pending.pointers.pop_first() {
                return Some((Change::Pointer(project), false));
            }
            if let Some(followed) = pending.followed.take() {
                return Some((Change::Followed(followed), false));
            }
            let mut due = rescan_due;
            if let Some((first, last)) = pending.sites {
                let sites_due = (last + SITES_QUIET).min(first + SITES_WAIT_MAX);
                if now >= sites_due {
                    pending.sites = None;
                    let is_replaced = std::mem::take(&mut pending.is_replaced);
                    return Some((Change::Sites, is_replaced));
                }
                due = due.min(sites_due);
            }
            let woken = self.changed.wait_timeout(pending, due - now);
            pending = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

// === impl Sorter ===

impl Sorter {
    fn sort(&self, event: notify::Result<Event>) {
        let mut pending = self.waiting.pending();
        match event {
            Ok(event) if event.need_rescan() => pending.rescan = true,
            Ok(event) => {
                if may_change(event.kind) {
                    for path in &event.paths {
                        self.sort_path(path, &mut pending);
                    }
                }
            }
            Err(error) => {
                log::warn!(target: "watch", "an event was lost: {error}");
                pending.rescan = true;
            }
        }
        drop(pending);
        self.waiting.changed.notify_one();
    }

    fn sort_path(&self, path: &Path, pending: &mut PendingChanges) {
        let parent = path.parent().unwrap_or(Path::new("/"));
        if self.pointers.contains(parent) {
            pending.pointers.extend(local::project_of(path));
            if pending.pointers.len() > POINTERS_MAX {
                pending.pointers.clear();
                pending.rescan = true;
            }
        } else if self.records.contains(parent) {
            pending.records.extend(local::project_of(path));
            if pending.records.len() > POINTERS_MAX {
                pending.records.clear();
                pending.rescan = true;
            }
        } else if path == self.sites || parent == self.sites || self.replaces_link(path, parent) {
            let now = Instant::now();
            let first = pending.sites.map_or(now, |(first, _)| first);
            pending.sites = Some((first, now));
            pending.is_replaced |= parent != self.sites;
        }
    }

    /// Returns whether the path is the link that Kubernetes replaces. It is beside the records when
    /// they are a single file in a mounted directory.
    fn replaces_link(&self, path: &Path, parent: &Path) -> bool {
        parent == self.sites_parent && path.file_name() == Some(OsStr::new("..data"))
    }
}

/// Returns whether an event may mean a changed file. Opening and reading cause events too.
fn may_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
