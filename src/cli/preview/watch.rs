//! Waits for changes of files.
//!
//! Editors write a file in several steps (a temporary file, a rename, permissions), and a
//! change of branch writes hundreds of files. So changes are reported when there was none
//! for [`QUIET_TIME`], and at the latest [`WAIT_MAX`] after the first.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

/// How long there must be no change before the changes are reported.
const QUIET_TIME: Duration = Duration::from_millis(10);
/// How long further changes can delay the report.
const WAIT_MAX: Duration = Duration::from_millis(300);

/// A watch over a directory of documentation.
#[derive(Debug)]
pub(super) struct Watch {
    waiting: Arc<Waiting>,
    /// Watches until it is dropped.
    _watcher: RecommendedWatcher,
}

#[derive(Debug, Default)]
struct Waiting {
    burst: Mutex<Option<Burst>>,
    changed: Condvar,
}

/// The times of the first and the last change that were not reported yet.
#[derive(Clone, Copy, Debug)]
struct Burst {
    first: Instant,
    last: Instant,
}

// === impl Watch ===

impl Watch {
    pub(super) fn start(directory: &Path) -> anyhow::Result<Self> {
        let waiting = Arc::new(Waiting::default());
        let changes = Arc::clone(&waiting);
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // An error may mean that events were lost.
            if event.map_or(true, |event| matters(&event)) {
                changes.add();
            }
        })
        .context("start to watch")?;
        watcher
            .watch(directory, RecursiveMode::Recursive)
            .with_context(|| format!("watch {}", directory.display()))?;
        for target in linked(directory) {
            // An editor may replace a file, so its directory is watched.
            let (watched, mode) = match target.is_dir() {
                true => (Some(&*target), RecursiveMode::Recursive),
                false => (target.parent(), RecursiveMode::NonRecursive),
            };
            if let Some(Err(error)) = watched.map(|path| watcher.watch(path, mode)) {
                log::warn!("changes of {} are not shown: {error}", target.display());
            }
        }
        Ok(Self {
            waiting,
            _watcher: watcher,
        })
    }

    /// Returns whether there are changes that were not reported yet.
    pub(super) fn has_changed(&self) -> bool {
        self.waiting.lock().is_some()
    }

    /// Waits for changes, and then until there are no more.
    pub(super) fn wait(&self) {
        let mut burst = self.waiting.lock();
        loop {
            let until = match *burst {
                None => {
                    let changed = &self.waiting.changed;
                    burst = changed.wait(burst).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
                Some(Burst { first, last }) => (last + QUIET_TIME).min(first + WAIT_MAX),
            };
            let now = Instant::now();
            if until <= now {
                *burst = None;
                return;
            }
            let waited = self.waiting.changed.wait_timeout(burst, until - now);
            burst = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Returns the targets of the symbolic links in a directory that are outside of it: the watch of the
/// directory does not follow links.
fn linked(directory: &Path) -> Vec<PathBuf> {
    let Ok(whole) = directory.canonicalize() else {
        return Vec::new();
    };
    let is_read = |entry: &ignore::DirEntry| {
        let name = entry.file_name();
        name != ".git" && name != "node_modules"
    };
    let entries = ignore::WalkBuilder::new(directory)
        .standard_filters(false)
        .filter_entry(is_read)
        .build();
    let links = entries.flatten().filter(ignore::DirEntry::path_is_symlink);
    let targets = links.filter_map(|entry| entry.path().canonicalize().ok());
    targets
        .filter(|target| !target.starts_with(&whole))
        .collect()
}

// === impl Waiting ===

impl Waiting {
    fn add(&self) {
        let now = Instant::now();
        let mut burst = self.lock();
        let first = burst.map_or(now, |burst| burst.first);
        *burst = Some(Burst { first, last: now });
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Burst>> {
        self.burst.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether an event changes the documentation: reading a file does not, nor do the
/// files of git.
fn matters(event: &Event) -> bool {
    let is_reading = match event.kind {
        EventKind::Access(access) => access != AccessKind::Close(AccessMode::Write),
        _ => false,
    };
    let is_git =
        |path: &std::path::PathBuf| path.components().any(|part| part.as_os_str() == ".git");
    !is_reading && !(event.paths.iter().any(is_git))
}
