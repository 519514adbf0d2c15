//! The local store: a directory that several processes share.
//!
//! ```text
//! {path}/
//!   FORMAT                        "waypost store 1": the version of this layout
//!   lock                          locked shared by writers, exclusively by the sweep
//!   owners/{digest}.lock          locked while a release of this owner is stored and promoted
//!   temp/{process}-{count}        files that are being written
//!   content/{ab}/{cdef…}          a file of some release, named by its digest
//!   inventories/{ab}/{cdef…}.json the inventory of a release, named by the release's id
//!   pointers/{ab}/{project}.json  a pointer; {ab} begins the digest of the project's id
//!   pointers/{ab}/{project}.copy  the same, read if the pointer is damaged
//!   sites/{ab}/{project}.json     a site record of the admin API, with a copy as pointers have
//!   hosts/{ab}/{cdef…}.json       which of these records has a host, named by its digest
//!   audit/{number}.jsonl          the changes of these records, in files of a few megabytes
//!   domain-checks/{ab}/{cdef…}.json  the last check of a domain of a project
//!   domain-check-requests/{digest}   a domain that is to be checked now
//!   numbers/{ab}/{project}/{day}.json  the numbers of a site on a day
//!   verification.lock             locked by the process that checks domains
//!   verification-key              the key that tokens for owners and hosts are made with
//!   sites.lock, sites.journal     locked by a change of a site record; the change that has begun
//! ```
//!
//! Files are never changed in place. Every write goes through [`durable`]: a temporary file is
//! written, flushed and renamed, and its directory is flushed. The order gives S1: all content is
//! durable before the inventory that names it, and the sweep removes an inventory durably before
//! the content that only it named.
//!
//! **Locks.** A lock on `lock` separates writers from the sweep: while a writer holds it, no file
//! that the writer has found or refreshed is removed, and no temporary file. Only the type of this
//! lock (`WriterLock`) gives the directory for temporary files. A lock on a directory of pointers
//! makes comparing and replacing a pointer one step between processes (`serve`, `worker`,
//! `publish`). The kernel releases both when a process dies. A process that needs both locks takes
//! the lock of the store first. Readers take no lock.
//!
//! **Ages.** A writer that relies on a file which no pointer names first refreshes the file's
//! modification time: a put that reuses the file, or a promotion that is about to name it. So
//! the sweep can find old files without a lock, and must check only their ages again, under the
//! lock, before it removes them.
//!
//! **Shards.** There are 256 directories of pointers, not one for each project, because the
//! number of inotify watches of a machine is limited.
//!
//! **Repair.** A put compares existing files with the bytes it would write, so publishing a release
//! again repairs its damaged files. A damaged pointer is read from its copy (`pointers`), and
//! `waypost store check` finds and repairs the rest (`check`).

mod cache;
mod check;
mod layout;
mod numbers;
mod output;
mod pointers;
mod site_records;
mod sweep;
mod verification;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

use super::durable::{self, FileError, Temp};
use super::{
    ContentFile, Fence, Pointer, PromoteError, Promotion, PutError, ReadError, Retention,
    next_pointer,
};
use crate::clock::Clock;
use crate::digest::Digest;
use crate::release::{INVENTORY_BYTES_MAX, Inventory, Item, Release, ReleaseId};
use crate::site::ProjectId;
use layout::{Layout, Lock};

pub use layout::{FORMAT_VERSION, OpenError, WriterLock};
pub use site_records::SitesFileLock;
pub use verification::VerificationLead;

/// How many files a put has open at once: far below the usual limit of 1024 file descriptors.
const BATCH_FILES: usize = 128;
/// The longest pointer that is read.
const POINTER_BYTES_MAX: u64 = 1 << 20;

/// The settings of a local store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The directory. It is created when it is missing.
    pub path: PathBuf,
    /// How many releases are kept, and how long.
    pub retention: Retention,
    /// How many bytes of the disk stay free: nothing is put with less.
    pub free_bytes_min: u64,
    /// How many bytes the releases of an owner may use; 0 for any.
    pub owner_bytes_max: u64,
    /// How many bytes the audit log may use: its oldest entries are removed; 0 for any.
    pub audit_bytes_max: u64,
}

/// A store in a directory of this machine.
#[derive(Debug)]
pub struct Local {
    layout: Layout,
    retention: Retention,
    free_bytes_min: u64,
    audit_bytes_max: u64,
    clock: Clock,
}

/// A lock on the releases of an owner, until this is dropped.
#[derive(Debug)]
pub struct OwnerLock {
    _lock: Lock,
}

/// A file that is to be written to `path`.
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
            free_bytes_min: 512 << 20,
            owner_bytes_max: 20 << 30,
            audit_bytes_max: 1 << 30,
        }
    }
}

// === impl Local ===

impl Local {
    /// Opens the store. Creates an empty one when the directory is missing or empty.
    ///
    /// # Errors
    ///
    /// [`OpenError::Newer`] when a newer program wrote it, [`OpenError::NotAStore`] when the
    /// directory has other files.
    pub fn open(config: &Config, clock: Clock) -> Result<Self, OpenError> {
        Ok(Self::with_layout(
            Layout::open(&config.path)?,
            config,
            clock,
        ))
    }

    /// Opens the store to read it, and creates nothing. A directory that is missing or empty is an
    /// empty store, which cannot be written.
    ///
    /// # Errors
    ///
    /// As [`Local::open`].
    pub fn open_to_read(config: &Config, clock: Clock) -> Result<Self, OpenError> {
        let layout = Layout::open_to_read(&config.path)?;
        Ok(Self::with_layout(layout, config, clock))
    }

    fn with_layout(layout: Layout, config: &Config, clock: Clock) -> Self {
        Self {
            layout,
            retention: config.retention,
            free_bytes_min: config.free_bytes_min,
            audit_bytes_max: config.audit_bytes_max,
            clock,
        }
    }

    /// Returns whether a directory is a store.
    #[must_use]
    pub fn exists(path: &Path) -> bool {
        layout::has_format(path)
    }

    /// Opens a store to restore a backup of this name into it. Until [`Local::restored`] no other
    /// program can open it, so a restore that was killed is noticed and can be repeated.
    ///
    /// # Errors
    ///
    /// As [`Local::open`].
    pub fn restoring(config: &Config, backup: &str, clock: Clock) -> Result<Self, OpenError> {
        if layout::is_incomplete(&config.path) {
            Layout::unopened(&config.path).complete()?;
        }
        let store = Self::open(config, clock)?;
        store.layout.begin(backup)?;
        Ok(store)
    }

    /// Makes a restored store usable.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it cannot be made durable.
    pub fn restored(&self) -> Result<(), FileError> {
        self.layout.complete()
    }

    /// Returns whether a restore of a backup of this name into a directory was interrupted.
    #[must_use]
    pub fn is_incomplete(path: &Path, backup: &str) -> bool {
        layout::is_incomplete(path) && layout::restored_backup(path).as_deref() == Some(backup)
    }

    /// Returns the paths of [`Local::other_state`] with the site records and the claims of hosts,
    /// which are consistent only while the caller has [`lock_sites`](super::Store::lock_sites).
    pub fn record_state(&self) -> impl Iterator<Item = PathBuf> {
        self.layout.record_state()
    }

    /// Returns the directory of the audit log.
    #[must_use]
    pub fn audit_directory(&self) -> PathBuf {
        self.layout.audit()
    }

    /// Returns the path and the length of each file of the audit log. Up to that length a file
    /// changes only when the log is shortened, and then it is replaced. The caller has
    /// [`lock_sites`](super::Store::lock_sites).
    ///
    /// # Errors
    ///
    /// [`FileError`] when the files cannot be listed.
    pub fn audit_lengths(&self) -> Result<Vec<(PathBuf, u64)>, FileError> {
        let mut files = Vec::new();
        for (_, path) in self.audit_files()? {
            let found = fs::metadata(&path).map_err(FileError::on("read", &path))?;
            files.push((path, found.len()));
        }
        Ok(files)
    }

    /// Returns the paths in the directory that hold state which is neither releases nor pointers:
    /// site records, the audit log, admin keys and others. Locks and temporary files are left out.
    ///
    /// # Errors
    ///
    /// [`FileError`] when the directory cannot be listed.
    pub fn other_state(&self) -> Result<Vec<PathBuf>, FileError> {
        self.layout.other_state()
    }

    pub(super) fn has_release(&self, release: ReleaseId) -> Result<bool, ReadError> {
        let inventory = match self.inventory(release) {
            Ok(inventory) => inventory,
            Err(ReadError::UnknownRelease(_) | ReadError::Damaged { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        for (_, item) in inventory.iter() {
            if !self.has_content(item)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether there is a file with the length of an item.
    pub fn has_content(&self, item: &Item) -> Result<bool, FileError> {
        let found = modified(&self.layout.content(&item.digest))?;
        Ok(found.is_some_and(|(_, length)| length == item.length))
    }

    /// Returns the directory of the store.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.layout.root()
    }

    /// Returns the directories that hold pointers.
    pub fn pointer_directories(&self) -> impl Iterator<Item = PathBuf> {
        self.layout.pointer_shards()
    }

    pub(super) fn put(&self, release: &Release) -> Result<ReleaseId, PutError> {
        if let Some((_, file)) = release.files().find(|(_, file)| !file.has_bytes()) {
            return Err(PutError::Missing(file.digest()));
        }
        PutError::check_inventory(release.inventory_bytes().len() as u64)?;
        let bytes = release.files().map(|(_, file)| file.bytes.len() as u64);
        self.check_space(bytes.sum())?;
        let writer = self.layout.lock_for_writer()?;
        let files: BTreeMap<Digest, &Bytes> = release
            .files()
            .zip(release.inventory().iter())
            .map(|((_, file), (_, item))| (item.digest, &file.bytes))
            .collect();
        let mut entries = files
            .iter()
            .map(|(digest, bytes)| (self.layout.content(digest), &***bytes));
        // S1: every file first, and durably; then the inventory that names them.
        self.keep(&writer, &mut entries)?;
        let inventory = self.layout.inventory(release.id());
        let mut inventory = std::iter::once((inventory, &**release.inventory_bytes()));
        self.keep(&writer, &mut inventory)?;
        Ok(release.id())
    }

    pub(super) fn lock_owner(
        &self,
        owner: &str,
        timeout: Duration,
    ) -> Result<Option<OwnerLock>, FileError> {
        let lock = self.layout.lock_owner(owner, timeout)?;
        Ok(lock.map(|lock| OwnerLock { _lock: lock }))
    }

    /// Looks whether the disk has space for this many bytes more.
    pub(super) fn check_space(&self, bytes: u64) -> Result<(), PutError> {
        let path = self.layout.root();
        let disk = rustix::fs::statvfs(path)
            .map_err(|error| FileError::on("look at the disk of", path)(error.into()))?;
        if disk.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
            return Err(PutError::ReadOnly);
        }
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let least = self.free_bytes_min;
        match free.saturating_sub(bytes) < least {
            true => Err(PutError::Full { least }),
            false => Ok(()),
        }
    }

    /// Makes every path durably hold its bytes, and refreshes the modification times.
    fn keep(
        &self,
        writer: &WriterLock,
        entries: &mut dyn Iterator<Item = (PathBuf, &[u8])>,
    ) -> Result<(), FileError> {
        // Directories of existing files are flushed too: the process that renamed a file into
        // one may have been killed before it flushed the directory.
        let mut directories = BTreeSet::new();
        let mut missing = Vec::with_capacity(BATCH_FILES);
        for (path, bytes) in entries {
            directories.extend(path.parent().map(Path::to_owned));
            if !holds(&path, bytes)? || !touch(&path)? {
                missing.push(Missing { path, bytes });
            }
            if missing.len() == BATCH_FILES {
                Self::write(writer, &mut missing)?;
            }
        }
        Self::write(writer, &mut missing)?;
        directories
            .iter()
            .try_for_each(|d| durable::flush_directory(d))
    }

    /// Writes a batch of files: writes all, then flushes all, so that the system can combine the
    /// writes, and then renames all.
    fn write(writer: &WriterLock, missing: &mut Vec<Missing<'_>>) -> Result<(), FileError> {
        let mut written = missing
            .iter()
            .map(|file| Temp::write(writer.temp(), file.bytes))
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
        let writer = self.layout.lock_for_writer()?;
        let shard = self.lock_pointer(project)?;
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
                self.write_pointer(&writer, project, &after)?;
                after
            }
            // It was made before, by a process that may have been killed before the flush below.
            None => before.ok_or(PromoteError::UnknownRelease(release))?,
        };
        shard.flush()?;
        Ok(after)
    }

    /// Refreshes the modification times of a release that is about to be promoted. Fails when a
    /// part of it is missing.
    fn refresh(&self, release: ReleaseId) -> Result<(), PromoteError> {
        let unknown = || PromoteError::UnknownRelease(release);
        let path = self.layout.inventory(release);
        let young = Duration::from_secs(self.retention.unnamed_seconds) / 2;
        let age = match fs::metadata(&path).and_then(|found| found.modified()) {
            Ok(modified) => self.clock.now().duration_since(modified),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(unknown()),
            Err(error) => return Err(FileError::on("look at", &path)(error).into()),
        };
        // A put writes the inventory last, so its content is not older. No sweep can treat it as
        // old for another half of the retention time.
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

    /// Reads a small file with three system calls: a large platform reads hundreds of thousands
    /// of files when it starts.
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
        // One byte more than expected, to notice a file that is too long.
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

    pub(super) fn open_content(&self, item: &Item) -> Result<ContentFile, ReadError> {
        let path = self.layout.content(&item.digest);
        match File::open(&path) {
            Ok(file) => ContentFile::new(file, path, item.length),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(ReadError::UnknownContent(item.digest))
            }
            Err(error) => Err(FileError::on("open", &path)(error).into()),
        }
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

/// Returns the project of a pointer's file; `None` for other files.
pub(super) fn project_of(pointer: &Path) -> Option<ProjectId> {
    let name = pointer.file_name()?.to_str()?.strip_suffix(".json")?;
    ProjectId::parse(name).ok()
}

/// Returns whether a file holds exactly these bytes.
fn holds(path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
    let found = read_whole(path, (bytes.len() as u64).saturating_add(1))?;
    Ok(found.is_some_and(|found| found == bytes))
}

/// Sets the modification time of a file to now. Returns whether the file exists.
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

/// Reads a file of unknown, small length.
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

/// Returns modification time and length of a file; `None` when it does not exist.
fn modified(path: &Path) -> Result<Option<(SystemTime, u64)>, FileError> {
    match fs::symlink_metadata(path).and_then(|found| Ok((found.modified()?, found.len()))) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::on("look at", path)(error)),
    }
}

#[cfg(test)]
mod tests;
