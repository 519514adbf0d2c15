//! The local store: a directory that several processes share.
//!
//! ```text
//! {path}/
//!   FORMAT                        "waypost store 1": the layout below
//!   lock                          held shared by writers, alone by the sweep
//!   temp/{process}-{count}        files that have no name yet
//!   content/{ab}/{cdef…}          a file of some release, named by its digest
//!   inventories/{ab}/{cdef…}.json a release's inventory, named by the release's id
//!   pointers/{ab}/{project}.json  what is current; {ab} starts the project id's digest
//! ```
//!
//! Files are never edited in place. Every write goes through [`durable`]:
//! a temporary file, flushed, renamed, its directory flushed. The order makes S1: all
//! content is durable before the inventory that names it, and the sweep removes an
//! inventory durably before content that only it named.
//!
//! **Locks.** `flock` on `lock` keeps writers and sweep apart: a file a writer has found
//! or touched is not removed under it. `flock` on the pointer's shard directory makes
//! the comparison and replacement of a pointer one step between processes (`serve`,
//! `worker` and `publish` are three). The kernel drops both when a process dies. The order
//! is store, then shard. Readers take no lock.
//!
//! **Ages.** Whoever relies on a file that no pointer names (a put that reuses it, a
//! promotion that is about to name it) first refreshes its modification time. So the
//! sweep may decide at leisure what is unnamed, and only has to look at the age again,
//! alone, before each removal.
//!
//! **Shards.** There are 256 pointer directories and not one per project, because a
//! machine has far fewer inotify watches than a platform has projects.
//!
//! **Healing.** A put compares what it reuses with what it would write, so publishing
//! again repairs a damaged file.

mod layout;
mod sweep;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

use super::durable::{self, FileError, Temp};
use super::pointer::InvalidPointer;
use super::{
    Fence, Pointer, PromoteError, Promotion, PutError, ReadError, Retention, next_pointer,
};
use crate::clock::Clock;
use crate::digest::Digest;
use crate::release::{Inventory, Item, Release, ReleaseId};
use crate::site::ProjectId;
use layout::{Access, Layout};

pub use layout::{FORMAT_VERSION, OpenError};

/// How many files a put has open at once: far below the usual limit of 1024 descriptors.
const BATCH_FILES: usize = 128;
/// The longest pointer that is read.
const POINTER_BYTES_MAX: u64 = 1 << 20;
/// The longest inventory that is read: a million files with long paths.
const INVENTORY_BYTES_MAX: u64 = 1 << 30;

/// Where a local store lies and how long it keeps things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The directory; made when it does not exist.
    pub path: PathBuf,
    /// What is kept how long.
    pub retention: Retention,
}

/// A store in a directory of this machine.
#[derive(Debug)]
pub struct Local {
    layout: Layout,
    retention: Retention,
    clock: Clock,
}

/// A file that should stand at `path`, and is not there yet.
struct Missing<'a> {
    path: PathBuf,
    bytes: &'a [u8],
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            path: "var/store".into(),
            retention: Retention::default(),
        }
    }
}

// === impl Local ===

impl Local {
    /// Opens the store, or makes an empty one where there is nothing.
    ///
    /// # Errors
    ///
    /// [`OpenError::Newer`] when a newer program wrote it, [`OpenError::Stranger`] when the
    /// directory holds something else.
    pub fn open(config: &Config, clock: Clock) -> Result<Self, OpenError> {
        Ok(Self {
            layout: Layout::open(&config.path)?,
            retention: config.retention,
            clock,
        })
    }

    /// Returns the directory of the store.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.layout.root()
    }

    /// Returns the directories whose changes are changes of pointers.
    pub fn pointer_directories(&self) -> impl Iterator<Item = PathBuf> {
        self.layout.pointer_shards()
    }

    pub(super) fn put(&self, release: &Release) -> Result<ReleaseId, PutError> {
        let _writing = self.layout.lock(Access::Shared)?;
        let files: BTreeMap<Digest, &Bytes> = release
            .files()
            .zip(release.inventory().iter())
            .map(|((_, file), (_, item))| (item.digest, &file.bytes))
            .collect();
        let mut wanted = files
            .iter()
            .map(|(digest, bytes)| (self.layout.content(digest), &***bytes));
        // S1: every file first, and durably; then the inventory that names them.
        self.keep(&mut wanted)?;
        let inventory = self.layout.inventory(release.id());
        self.keep(&mut std::iter::once((
            inventory,
            &**release.inventory_bytes(),
        )))?;
        Ok(release.id())
    }

    /// Makes sure that every path durably holds its bytes, and that none looks old.
    fn keep(&self, wanted: &mut dyn Iterator<Item = (PathBuf, &[u8])>) -> Result<(), FileError> {
        // Also the directories of what was there: whoever renamed it may have been killed
        // before flushing them.
        let mut directories = BTreeSet::new();
        let mut missing = Vec::with_capacity(BATCH_FILES);
        for (path, bytes) in wanted {
            directories.extend(path.parent().map(Path::to_owned));
            if !holds(&path, bytes)? || !touch(&path)? {
                missing.push(Missing { path, bytes });
            }
            if missing.len() == BATCH_FILES {
                self.write(&mut missing)?;
            }
        }
        self.write(&mut missing)?;
        directories
            .iter()
            .try_for_each(|d| durable::flush_directory(d))
    }

    /// Writes a batch: first all bytes, then all flushes, so that the system can write them
    /// together; then all names.
    fn write(&self, missing: &mut Vec<Missing<'_>>) -> Result<(), FileError> {
        let temp = self.layout.temp();
        let mut written = missing
            .iter()
            .map(|file| Temp::write(&temp, file.bytes))
            .collect::<Result<Vec<_>, _>>()?;
        written.iter_mut().try_for_each(Temp::flush)?;
        for (temp, file) in written.into_iter().zip(missing.drain(..)) {
            temp.rename(&file.path)?;
        }
        Ok(())
    }

    pub(super) fn promote(
        &self,
        project: &ProjectId,
        release: ReleaseId,
        fence: Fence,
    ) -> Result<Pointer, PromoteError> {
        let _writing = self.layout.lock(Access::Shared)?;
        let path = self.layout.pointer(project);
        let shard = layout::lock_directory(path.parent().unwrap_or(self.path()))?;
        let before = self.current(project)?;
        let offered = Promotion {
            release,
            generation: fence.generation,
            epoch: fence.epoch,
            promoted_at: self.clock.unix_seconds(),
        };
        let after = match next_pointer(before.clone(), offered, self.retention.releases)? {
            Some(after) => {
                if !before.is_some_and(|before| before.names(release)) {
                    self.refresh(release)?;
                }
                let mut temp = Temp::write(&self.layout.temp(), &after.to_bytes(project))?;
                temp.flush()?;
                temp.rename(&path)?;
                after
            }
            // Made before, by somebody who may have been killed before the flush below.
            None => before.ok_or(PromoteError::UnknownRelease(release))?,
        };
        shard.flush()?;
        Ok(after)
    }

    /// Refreshes the age of a release that is about to be named, and thereby finds out
    /// whether it is whole.
    fn refresh(&self, release: ReleaseId) -> Result<(), PromoteError> {
        let unknown = || PromoteError::UnknownRelease(release);
        let path = self.layout.inventory(release);
        let young = Duration::from_secs(self.retention.unnamed_seconds) / 2;
        let age = match fs::metadata(&path).and_then(|found| found.modified()) {
            Ok(modified) => self.clock.now().duration_since(modified),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(unknown()),
            Err(error) => return Err(FileError::on("look at", &path)(error).into()),
        };
        // Its content is never older than it is (a put ends with it), and a sweep that
        // would take this age for too old is half a retention time away.
        if !young.is_zero() && age.is_ok_and(|age| age < young) {
            return Ok(());
        }
        for (_, item) in self.inventory(release)?.iter() {
            if !touch(&self.layout.content(&item.digest))? {
                return Err(unknown());
            }
        }
        if touch(&path)? {
            Ok(())
        } else {
            Err(unknown())
        }
    }

    pub(super) fn forget(&self, project: &ProjectId) -> Result<bool, PromoteError> {
        let path = self.layout.pointer(project);
        let shard = layout::lock_directory(path.parent().unwrap_or(self.path()))?;
        match fs::remove_file(&path) {
            Ok(()) => {
                shard.flush()?;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(FileError::on("remove", &path)(error).into()),
        }
    }

    pub(super) fn current(&self, project: &ProjectId) -> Result<Option<Pointer>, ReadError> {
        let path = self.layout.pointer(project);
        let Some(bytes) = read_whole(&path, POINTER_BYTES_MAX)? else {
            return Ok(None);
        };
        Pointer::parse(&bytes, project).map(Some).map_err(|error| {
            let what = path.display().to_string();
            let why = error.to_string();
            match error {
                InvalidPointer::Newer(_) => ReadError::Newer { what, why },
                InvalidPointer::Project(_) => ReadError::Damaged { what, why },
                InvalidPointer::Json(json) => ReadError::Damaged {
                    what,
                    why: json.to_string(),
                },
            }
        })
    }

    pub(super) fn inventory(&self, release: ReleaseId) -> Result<Inventory, ReadError> {
        let path = self.layout.inventory(release);
        let bytes =
            read_whole(&path, INVENTORY_BYTES_MAX)?.ok_or(ReadError::UnknownRelease(release))?;
        let what = || path.display().to_string();
        if Digest::of(&bytes) != *release.digest() {
            return Err(ReadError::Damaged {
                what: what(),
                why: "its digest is not the release's id".to_owned(),
            });
        }
        Inventory::parse(&bytes).map_err(|error| ReadError::inventory(what(), error))
    }

    /// Three system calls for a small file: a platform starts with hundreds of thousands.
    pub(super) fn read(&self, item: &Item) -> Result<Bytes, ReadError> {
        let path = self.layout.content(&item.digest);
        let damaged = |why: String| ReadError::Damaged {
            what: path.display().to_string(),
            why,
        };
        let length = usize::try_from(item.length).map_err(|error| damaged(error.to_string()))?;
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ReadError::UnknownContent(item.digest));
            }
            Err(error) => return Err(FileError::on("open", &path)(error).into()),
        };
        // One byte more than there should be, to see a file that goes on.
        let mut bytes = vec![0; length.saturating_add(1)];
        let mut filled = 0;
        while filled < length.max(1) {
            match file.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FileError::on("read", &path)(error).into()),
            }
        }
        if filled != length {
            let more_or_fewer = if filled > length { "more" } else { "fewer" };
            return Err(damaged(format!(
                "it has {more_or_fewer} than {length} bytes"
            )));
        }
        bytes.truncate(length);
        if Digest::of(&bytes) != item.digest {
            return Err(damaged("its digest is not its name".to_owned()));
        }
        Ok(bytes.into())
    }

    pub(super) fn pointers(&self) -> Result<Vec<ProjectId>, ReadError> {
        let mut projects = Vec::new();
        for shard in self.layout.pointer_shards() {
            let entries = fs::read_dir(&shard).map_err(FileError::on("list", &shard))?;
            for entry in entries {
                let entry = entry.map_err(FileError::on("list", &shard))?;
                projects.extend(project_of(Path::new(&entry.file_name())));
            }
        }
        Ok(projects)
    }
}

/// Returns whose pointer a file in a shard directory is; `None` for what is none.
pub(super) fn project_of(pointer: &Path) -> Option<ProjectId> {
    let name = pointer.file_name()?.to_str()?.strip_suffix(".json")?;
    ProjectId::parse(name).ok()
}

/// Returns whether a file holds exactly these bytes.
fn holds(path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
    let found = read_whole(path, (bytes.len() as u64).saturating_add(1))?;
    Ok(found.is_some_and(|found| found == bytes))
}

/// Makes a file look new. Returns whether it is there.
fn touch(path: &Path) -> Result<bool, FileError> {
    let time = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    let now = Timestamps {
        last_access: time(UTIME_OMIT),
        last_modification: time(UTIME_NOW),
    };
    match rustix::fs::utimensat(CWD, path, &now, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::NOENT) => Ok(false),
        Err(error) => Err(FileError::on("refresh the age of", path)(error.into())),
    }
}

/// Reads a small file of unknown length without asking for it first.
fn read_whole(path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, FileError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FileError::on("open", path)(error)),
    };
    let mut bytes = Vec::with_capacity(4096);
    file.take(bytes_max)
        .read_to_end(&mut bytes)
        .map_err(FileError::on("read", path))?;
    Ok(Some(bytes))
}

/// Returns when a file was last written or refreshed; `None` when it is gone.
fn modified(path: &Path) -> Result<Option<(SystemTime, u64)>, FileError> {
    match fs::symlink_metadata(path).and_then(|found| Ok((found.modified()?, found.len()))) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::on("look at", path)(error)),
    }
}

#[cfg(test)]
mod tests;
