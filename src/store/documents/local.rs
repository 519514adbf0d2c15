//! Documents in a directory of this machine.
//!
//! ```text
//! {path}/
//!   FORMAT                     "waypost certificates 1": the version of this layout
//!   leader                     locked by the process that leads
//!   temp/{process}-{count}     files that are being written
//!   certificates/{ab}/{key}    divided kinds: {ab} begins the digest of the key's name
//!   accounts/{key}             other kinds
//! ```
//!
//! A file is written through [`durable`]. Only their owner can read the directory and its files.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{Change, Documents, Kind, KnownKeys, Lead, part_of};
use crate::clock::Clock;
use crate::store::durable::{self, FileError, Together};

/// The layout that is written, and the highest that is read.
const FORMAT_VERSION: u64 = 1;
const FORMAT: &str = "FORMAT";
const FORMAT_PREFIX: &str = "waypost certificates ";
const LEADER: &str = "leader";
const TEMP: &str = "temp";
/// A directory that has changed less long ago is listed again: its time may not show a second
/// change.
const TIME_STEP: Duration = Duration::from_secs(2);
/// The largest document that is read.
const BYTES_MAX: u64 = 1 << 20;

/// Documents in a directory.
#[derive(Debug)]
pub struct LocalDocuments {
    root: PathBuf,
    clock: Clock,
}

/// A lock on the file `leader`.
#[derive(Debug)]
struct Leader {
    file: File,
    path: PathBuf,
}

// === impl LocalDocuments ===

impl LocalDocuments {
    /// Opens the directory, and creates missing files and directories.
    ///
    /// # Errors
    ///
    /// When the directory cannot be written, or a newer program made it.
    pub fn open(root: &Path, clock: Clock) -> Result<Self, FileError> {
        let documents = Self {
            root: root.to_owned(),
            clock,
        };
        let format = root.join(FORMAT);
        match fs::read_to_string(&format) {
            Ok(text) => {
                let version = text.trim_end().strip_prefix(FORMAT_PREFIX);
                match version.and_then(|version| version.parse::<u64>().ok()) {
                    Some(1..=FORMAT_VERSION) => {}
                    Some(newer) => {
                        let why = format!(
                            "it has format {newer}; this program reads formats up to {FORMAT_VERSION}"
                        );
                        return Err(FileError::on("use", root)(io::Error::other(why)));
                    }
                    None => {
                        let why = format!("its {FORMAT} says {:?}", text.trim_end());
                        return Err(FileError::on("use", root)(io::Error::other(why)));
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(FileError::on("read", &format)(error)),
        }
        make_directory(&root.join(TEMP))?;
        for kind in Kind::ALL {
            let above = root.join(kind.directory());
            make_directory(&above)?;
            if kind.is_divided() {
                for part in 0..=u8::MAX {
                    make_directory(&above.join(hex::encode([part])))?;
                }
                durable::flush_directory(&above)?;
            }
        }
        durable::flush_directory(root)?;
        if !format.exists() {
            let text = format!("{FORMAT_PREFIX}{FORMAT_VERSION}\n");
            durable::replace(&root.join(TEMP), &format, text.as_bytes())?;
        }
        Ok(documents)
    }

    /// Puts a document as one of several changes.
    pub(in crate::store) fn put_in(
        &self,
        changes: &mut Together,
        kind: Kind,
        key: &str,
        bytes: &[u8],
    ) -> Result<(), FileError> {
        changes.replace(&self.root.join(TEMP), &self.path(kind, key), bytes)
    }

    /// Removes a document as one of several changes.
    pub(in crate::store) fn remove_in(
        &self,
        changes: &mut Together,
        kind: Kind,
        key: &str,
    ) -> Result<(), FileError> {
        changes.remove(&self.path(kind, key))
    }

    fn path(&self, kind: Kind, key: &str) -> PathBuf {
        let mut path = self.directory(kind, part_of(key));
        path.push(key);
        path
    }

    fn directory(&self, kind: Kind, part: u8) -> PathBuf {
        let mut path = self.root.join(kind.directory());
        if kind.is_divided() {
            path.push(hex::encode([part]));
        }
        path
    }
}

impl Documents for LocalDocuments {
    fn get(&self, kind: Kind, key: &str) -> Result<Option<Vec<u8>>, FileError> {
        durable::read(&self.path(kind, key), BYTES_MAX)
    }

    fn put(&self, kind: Kind, key: &str, bytes: &[u8]) -> Result<(), FileError> {
        durable::together(|changes| self.put_in(changes, kind, key, bytes))
    }

    fn remove(&self, kind: Kind, key: &str) -> Result<(), FileError> {
        durable::together(|changes| self.remove_in(changes, kind, key))
    }

    fn changes(&self, kind: Kind, known: &mut KnownKeys) -> Result<Vec<Change>, FileError> {
        let last = if kind.is_divided() { u8::MAX } else { 0 };
        let now = self.clock.now();
        let mut parts = Vec::new();
        for part in 0..=last {
            let directory = self.directory(kind, part);
            let metadata = fs::metadata(&directory);
            let changed_at = metadata.and_then(|metadata| metadata.modified());
            let changed_at = changed_at.map_err(FileError::on("look at", &directory))?;
            let known_at = known.parts.get(&part).and_then(|(time, _)| *time);
            if known_at != Some(changed_at) {
                parts.push((part, changed_at, list(&directory)?));
            }
        }
        // Nothing is noted before all directories were listed: after an error, the caller gets none
        // of the changes.
        let mut changes = Vec::new();
        for (part, changed_at, listed) in parts {
            let (time, keys) = known.parts.entry(part).or_default();
            let removed = keys.iter().filter(|key| !listed.contains(*key));
            changes.extend(removed.cloned().map(Change::Removed));
            let added = listed.iter().filter(|key| !keys.contains(*key));
            changes.extend(added.cloned().map(Change::Added));
            *time = is_settled(changed_at, now).then_some(changed_at);
            *keys = listed;
        }
        Ok(changes)
    }

    fn keys_of(&self, kind: Kind, name: &str) -> Result<Vec<Box<str>>, FileError> {
        let keys = list(&self.directory(kind, part_of(name)))?.into_iter();
        let is_of = |key: &str| key.split_once('~').is_some_and(|(own, _)| own == name);
        Ok(keys.filter(|key| is_of(key)).collect())
    }

    fn lead(&self) -> Result<Option<Box<dyn Lead>>, FileError> {
        let path = self.root.join(LEADER);
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        let file = options.open(&path).map_err(FileError::on("open", &path))?;
        match file.try_lock() {
            Ok(()) => {
                let leader = Leader { file, path };
                // The file may have been replaced between the two calls.
                Ok(leader.holds().then(|| Box::new(leader) as Box<dyn Lead>))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(FileError::on("lock", &path)(error)),
        }
    }

    fn has_space(&self, bytes: u64) -> Result<bool, FileError> {
        let disk = rustix::fs::statvfs(&self.root)
            .map_err(|error| FileError::on("look at the disk of", &self.root)(error.into()))?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize) >= bytes)
    }
}

/// Returns whether the time of a directory would show another change.
fn is_settled(changed_at: SystemTime, now: SystemTime) -> bool {
    now.duration_since(changed_at)
        .is_ok_and(|age| age > TIME_STEP)
}

fn list(directory: &Path) -> Result<HashSet<Box<str>>, FileError> {
    let on = || FileError::on("list", directory);
    let mut keys = HashSet::new();
    for entry in fs::read_dir(directory).map_err(on())? {
        let name = entry.map_err(on())?.file_name();
        keys.extend(name.to_str().map(Box::from));
    }
    Ok(keys)
}

fn make_directory(path: &Path) -> Result<(), FileError> {
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(path);
    made.map_err(FileError::on("make directory", path))
}

// === impl Leader ===

impl Lead for Leader {
    fn holds(&self) -> bool {
        let same = || {
            let (ours, theirs) = (self.file.metadata()?, fs::metadata(&self.path)?);
            Ok::<_, io::Error>((ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino()))
        };
        same().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(root: &Path) -> LocalDocuments {
        LocalDocuments::open(root, Clock::System).unwrap()
    }

    #[test]
    fn one_process_leads_and_notices_that_it_no_longer_does() {
        let root = tempfile::tempdir().unwrap();
        let (one, two) = (open(root.path()), open(root.path()));
        let first = one.lead().unwrap().unwrap();
        assert!(first.holds() && two.lead().unwrap().is_none());
        // The lock file is removed: both processes believe that they lead, until the first one
        // checks.
        fs::remove_file(root.path().join(LEADER)).unwrap();
        let second = two.lead().unwrap().unwrap();
        assert!(!first.holds() && second.holds());
        drop(second);
        assert!(one.lead().unwrap().is_some());
    }

    #[test]
    fn changes_that_could_not_be_listed_once_are_listed_the_next_time() {
        let root = tempfile::tempdir().unwrap();
        let documents = open(root.path());
        documents
            .put(Kind::Certificate, "docs.acme.test~1", b"{}")
            .unwrap();
        // The last directory cannot be looked at, after the one with the document was listed.
        let (last, aside) = (root.path().join("certificates/ff"), root.path().join("ff"));
        fs::rename(&last, &aside).unwrap();
        let mut known = KnownKeys::default();
        assert!(documents.changes(Kind::Certificate, &mut known).is_err());
        fs::rename(&aside, &last).unwrap();
        let added = [Change::Added("docs.acme.test~1".into())];
        let changes = documents.changes(Kind::Certificate, &mut known).unwrap();
        assert_eq!(changes, added);
        let changes = documents.changes(Kind::Certificate, &mut known).unwrap();
        assert_eq!(changes, []);
    }

    #[test]
    fn a_directory_of_a_newer_program_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        drop(open(root.path()));
        fs::write(root.path().join(FORMAT), "waypost certificates 2\n").unwrap();
        let error = LocalDocuments::open(root.path(), Clock::System).unwrap_err();
        let text = crate::error::chain(&error);
        assert!(
            text.contains("it has format 2; this program reads"),
            "{text}"
        );
    }

    #[test]
    fn a_key_fits_into_a_file_name_and_a_long_name_has_its_own() {
        let long = |end: &str| format!("{}{end}", "a23456789.".repeat(25));
        assert_eq!(super::super::key_of("docs.acme.com"), "docs.acme.com");
        let keys = [long("x"), long("y")].map(|name| super::super::key_of(&name));
        assert!(keys[0] != keys[1] && keys[0].len() < 200, "{keys:?}");
    }

    #[test]
    fn the_time_of_a_directory_is_settled_after_the_step_of_the_clock() {
        let changed_at = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        let nanosecond = Duration::from_nanos(1);
        assert!(is_settled(changed_at, changed_at + TIME_STEP + nanosecond));
        assert!(!is_settled(changed_at, changed_at + TIME_STEP));
        assert!(!is_settled(changed_at, changed_at - TIME_STEP - nanosecond));
    }
}
