//! Noticing changes of pointers and of site records.
//!
//! The system tells of most changes within a millisecond, of some never: network file
//! systems send no events, queues overflow, directories are swapped whole. So whoever
//! listens gets three kinds of [`Change`]: one project's pointer, the site records, or
//! "compare everything", which also comes by the clock.
//!
//! * Start watching before loading: a change in between is then seen twice, not never.
//! * What is watched is directories, never files: a careful writer replaces files, and the
//!   watch would stay with the old one. The directory of site records may be replaced too,
//!   by a rename or by turning a link; so its parent is watched for that one name, and the
//!   watch is renewed. Kubernetes turns the link `..data` beside the records: an event
//!   inside of the directory counts whatever its name.
//! * Pointers are reported at once, for a promotion is a single rename. Site records are
//!   reported when they have been quiet for a moment, for their writers write many.
//! * What waits to be taken is a set, not a queue: a project promoted a hundred times waits
//!   once. When too many wait, all become one comparison of everything.
//!
//! When the system refuses to watch (the usual reason is its limit of watches), that is
//! logged, and everything is compared more often instead.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::{Store, local};
use crate::site::ProjectId;

/// How many projects may wait to be taken; more are one [`Change::Rescan`].
const POINTERS_MAX: usize = 65_536;
/// How long site records must have been quiet.
const SITES_QUIET: Duration = Duration::from_millis(50);
/// How long a restless writer of site records can put that off.
const SITES_WAIT_MAX: Duration = Duration::from_millis(500);
/// How often everything is compared when the system does not tell of changes.
const RESCAN_UNWATCHED_MAX: Duration = Duration::from_secs(30);

/// What may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The pointer of one project.
    Pointer(ProjectId),
    /// Some site record.
    Sites,
    /// Anything: events were lost, or it is time to make sure.
    Rescan,
}

/// A watch over a store's pointers and over the site records.
#[derive(Debug)]
pub struct Watch {
    waiting: Arc<Waiting>,
    rescan: Duration,
    sites: PathBuf,
    /// `None` when the system has no means of watching.
    watcher: Mutex<Option<RecommendedWatcher>>,
}

/// What was seen and not yet taken.
#[derive(Debug, Default)]
struct Waiting {
    seen: Mutex<Seen>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct Seen {
    pointers: BTreeSet<ProjectId>,
    /// When the first and the last event about site records came.
    sites: Option<(Instant, Instant)>,
    /// Whether the directory of site records may be another one now.
    is_replaced: bool,
    rescan: bool,
    rescanned: Option<Instant>,
    closed: bool,
}

/// Tells events about pointers from those about site records.
struct Sorter {
    waiting: Arc<Waiting>,
    sites: PathBuf,
    sites_parent: PathBuf,
    pointers: BTreeSet<PathBuf>,
}

// === impl Watch ===

impl Watch {
    /// Begins to watch the pointers of a store and the site records at `sites`; every
    /// `rescan` everything is compared.
    #[must_use]
    pub fn start(store: &Store, sites: &Path, rescan: Duration) -> Self {
        // Events carry absolute paths without links where we ask with such paths.
        let sites = std::path::absolute(sites).unwrap_or_else(|_| sites.to_owned());
        let sites_parent = sites.parent().unwrap_or(Path::new("/")).to_owned();
        let Store::Local(local) = store;
        let pointers: BTreeSet<PathBuf> = local
            .pointer_directories()
            .map(|directory| std::path::absolute(&directory).unwrap_or(directory))
            .collect();
        let waiting = Arc::new(Waiting::default());
        waiting.seen().rescanned = Some(Instant::now());
        let sorter = Sorter {
            waiting: Arc::clone(&waiting),
            sites: sites.clone(),
            sites_parent: sites_parent.clone(),
            pointers: pointers.clone(),
        };
        let mut unwatched = 0_usize;
        let mut refused = |what: &Path, error: &notify::Error| {
            unwatched += 1;
            // The limit that stopped one directory stops them all.
            if unwatched == 1 {
                log::warn!(target: "watch", "cannot watch {}: {error}", what.display());
            }
        };
        let mut watcher = notify::recommended_watcher(move |event| sorter.sort(event))
            .inspect_err(|error| refused(&sites_parent, error))
            .ok();
        if let Some(watcher) = &mut watcher {
            for directory in pointers.iter().chain([&sites_parent]) {
                if let Err(error) = watcher.watch(directory, RecursiveMode::NonRecursive) {
                    refused(directory, &error);
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
        watch.renew();
        watch
    }

    /// Waits for a change. Returns `None` once the watch is closed.
    pub fn next(&self) -> Option<Change> {
        let (change, is_replaced) = self.waiting.next(self.rescan)?;
        if is_replaced || change == Change::Rescan {
            // Before the caller looks: what changes from here on is seen.
            self.renew();
        }
        Some(change)
    }

    /// Makes the next change a comparison of everything.
    pub fn rescan(&self) {
        self.waiting.seen().rescan = true;
        self.waiting.news.notify_all();
    }

    /// Ends the watch: whoever waits gets `None`.
    pub fn close(&self) {
        self.waiting.seen().closed = true;
        self.waiting.news.notify_all();
    }

    /// Watches the directory of site records that is there now.
    fn renew(&self) {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(watcher) = watcher.as_mut() else {
            return;
        };
        // There may be no watch, or one of a directory that is gone.
        let _was_watched = watcher.unwatch(&self.sites);
        if self.sites.is_dir()
            && let Err(error) = watcher.watch(&self.sites, RecursiveMode::NonRecursive)
        {
            log::warn!(target: "watch", "cannot watch {}: {error}", self.sites.display());
        }
    }
}

// === impl Waiting ===

impl Waiting {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        // No holder of the lock can leave it half changed.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for what is due, and tells whether the site records may be others now.
    fn next(&self, rescan: Duration) -> Option<(Change, bool)> {
        let mut seen = self.seen();
        loop {
            let now = Instant::now();
            if seen.closed {
                return None;
            }
            let rescan_due = seen.rescanned.unwrap_or(now) + rescan;
            if seen.rescan || now >= rescan_due {
                *seen = Seen {
                    rescanned: Some(now),
                    ..Seen::default()
                };
                return Some((Change::Rescan, true));
            }
            if let Some(project) = seen.pointers.pop_first() {
                return Some((Change::Pointer(project), false));
            }
            let mut due = rescan_due;
            if let Some((first, last)) = seen.sites {
                let sites_due = (last + SITES_QUIET).min(first + SITES_WAIT_MAX);
                if now >= sites_due {
                    seen.sites = None;
                    let is_replaced = std::mem::take(&mut seen.is_replaced);
                    return Some((Change::Sites, is_replaced));
                }
                due = due.min(sites_due);
            }
            let woken = self.news.wait_timeout(seen, due - now);
            seen = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

// === impl Sorter ===

impl Sorter {
    fn sort(&self, event: notify::Result<Event>) {
        let mut seen = self.waiting.seen();
        match event {
            Ok(event) if event.need_rescan() => seen.rescan = true,
            Ok(event) => {
                if changes_something(event.kind) {
                    for path in &event.paths {
                        self.sort_path(path, &mut seen);
                    }
                }
            }
            Err(error) => {
                log::warn!(target: "watch", "an event was lost: {error}");
                seen.rescan = true;
            }
        }
        drop(seen);
        self.waiting.news.notify_one();
    }

    fn sort_path(&self, path: &Path, seen: &mut Seen) {
        let parent = path.parent().unwrap_or(Path::new("/"));
        if self.pointers.contains(parent) {
            seen.pointers.extend(local::project_of(path));
            if seen.pointers.len() > POINTERS_MAX {
                seen.pointers.clear();
                seen.rescan = true;
            }
        } else if path == self.sites || parent == self.sites || self.turns_link(path, parent) {
            let now = Instant::now();
            let first = seen.sites.map_or(now, |(first, _)| first);
            seen.sites = Some((first, now));
            seen.is_replaced |= parent != self.sites;
        }
    }

    /// Returns whether a link beside the records was turned that they are reached through,
    /// when the records are a single file of a mounted directory.
    fn turns_link(&self, path: &Path, parent: &Path) -> bool {
        parent == self.sites_parent && path.file_name() == Some(OsStr::new("..data"))
    }
}

/// Returns whether an event can mean that a file is another now; reading one is an event too.
fn changes_something(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
