//! Writing files so that a kill, a full disk or a power cut cannot damage them.
//!
//! A file gets its name only when it is complete: the bytes are written to a temporary file in
//! the store's `temp` directory and flushed, and then the file is renamed. The rename is durable
//! once the directory that has received the file is flushed. A kill leaves at most a file in
//! `temp`, which the sweep removes.
//!
//! Sources: POSIX.1-2024 `rename` and `fsync`; Linux `fsync(2)`, whose notes say that flushing a
//! file does not flush the directory entry that names it.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many names in `temp` are tried when they exist already.
const ATTEMPTS_MAX: u32 = 1000;

/// A temporary file. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Temp {
    file: Option<File>,
    path: PathBuf,
}

/// Changes of many files, whose directories are flushed once, at the end ([`together`]).
#[derive(Debug, Default)]
pub(super) struct Together(BTreeSet<PathBuf>);

/// An operation on a file of the store that failed, or on its database or object store.
#[derive(Debug, thiserror::Error)]
#[error("{act} {}", path.display())]
pub struct FileError {
    act: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
}

// === impl FileError ===

impl FileError {
    /// Adds the operation and the file to an error.
    pub(super) fn on<'a>(
        act: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> Self + use<'a> {
        move |source| Self {
            act,
            path: path.to_owned(),
            source,
        }
    }

    /// Returns which kind of failure the system reported.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

// === impl Temp ===

impl Temp {
    /// Writes the bytes to a new file in `directory`, without flushing them.
    pub(super) fn write(directory: &Path, bytes: &[u8]) -> Result<Self, FileError> {
        let mut temp = Self::create(directory)?;
        let file = temp.file.as_mut().expect("created open");
        file.write_all(bytes)
            .map_err(FileError::on("write", &temp.path))?;
        Ok(temp)
    }

    fn create(directory: &Path) -> Result<Self, FileError> {
        // Processes in several containers may share the directory and have the same id, so a
        // name may exist already.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let process = std::process::id();
        let mut attempts = 0;
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = directory.join(format!("{process}-{count}"));
            // Only the owner may read it, whatever the process creates otherwise.
            let mut options = OpenOptions::new();
            match options.write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => {
                    return Ok(Self {
                        file: Some(file),
                        path,
                    });
                }
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists && attempts < ATTEMPTS_MAX =>
                {
                    attempts += 1;
                }
                Err(error) => return Err(FileError::on("create", &path)(error)),
            }
        }
    }

    /// Flushes the bytes and closes the file.
    pub(super) fn flush(&mut self) -> Result<(), FileError> {
        match self.file.take() {
            Some(file) => file.sync_all().map_err(FileError::on("flush", &self.path)),
            None => Ok(()),
        }
    }

    /// Flushes the file and renames it. The name is durable once its directory is flushed.
    pub(super) fn rename(mut self, to: &Path) -> Result<(), FileError> {
        self.flush()?;
        fs::rename(&self.path, to).map_err(FileError::on("rename a new file to", to))?;
        // It was renamed: there is nothing to remove.
        self.path = PathBuf::new();
        Ok(())
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // A file that cannot be removed now is removed by the sweep.
            let _left_to_the_sweep = fs::remove_file(&self.path);
        }
    }
}

/// Reads a file; `None` if there is none.
///
/// # Errors
///
/// The error of the system, or [`io::ErrorKind::FileTooLarge`] for more than `bytes_max` bytes.
pub(super) fn read(path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, FileError> {
    let read = || {
        if fs::metadata(path)?.len() > bytes_max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        fs::read(path)
    };
    match read() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::on("read", path)(error)),
    }
}

/// Removes a file. Returns whether it existed.
pub(super) fn remove(path: &Path) -> Result<bool, FileError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(FileError::on("remove", path)(error)),
    }
}

/// Flushes a directory, so that the names in it are durable.
pub(super) fn flush_directory(directory: &Path) -> Result<(), FileError> {
    File::open(directory)
        .and_then(|open| open.sync_all())
        .map_err(FileError::on("flush directory", directory))
}

/// Replaces the file at `path`, or creates it, and returns once that survives a power cut.
pub(super) fn replace(temp: &Path, path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    together(|changes| changes.replace(temp, path, bytes))
}

/// Changes files, and returns once all changes survive a power cut.
pub(super) fn together<T>(
    act: impl FnOnce(&mut Together) -> Result<T, FileError>,
) -> Result<T, FileError> {
    let mut changes = Together::default();
    let done = act(&mut changes);
    // After an error too: the caller may not repeat the changes before it.
    let mut flushed = changes.0.iter();
    let flushed = flushed.try_for_each(|directory| flush_directory(directory));
    let done = done?;
    flushed?;
    Ok(done)
}

// === impl Together ===

impl Together {
    /// Replaces the file at `path`, or creates it.
    pub(super) fn replace(
        &mut self,
        temp: &Path,
        path: &Path,
        bytes: &[u8],
    ) -> Result<(), FileError> {
        Temp::write(temp, bytes)?.rename(path)?;
        self.has_changed(path);
        Ok(())
    }

    /// Removes a file, if it exists. Without the flush, it could be back after a power cut.
    pub(super) fn remove(&mut self, path: &Path) -> Result<(), FileError> {
        if remove(path)? {
            self.has_changed(path);
        }
        Ok(())
    }

    fn has_changed(&mut self, path: &Path) {
        let directory = path.parent().unwrap_or(Path::new("."));
        if !self.0.contains(directory) {
            self.0.insert(directory.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_together_end_with_a_flush_of_each_directory() {
        let directory = tempfile::tempdir().unwrap();
        let (gone, file) = (directory.path().join("gone"), directory.path().join("file"));
        fs::create_dir(&gone).unwrap();
        let changed = together(|changes| {
            changes.replace(directory.path(), &gone.join("file"), b"one")?;
            changes.replace(directory.path(), &file, b"two")?;
            fs::remove_dir_all(&gone).unwrap();
            Ok(())
        });
        // The first directory cannot be flushed any more.
        assert_eq!(changed.unwrap_err().kind(), io::ErrorKind::NotFound);
        let removed = together(|changes| {
            changes.remove(&file)?;
            changes.remove(&file)
        });
        assert!(removed.is_ok() && !file.exists());
    }

    #[test]
    fn a_name_that_exists_is_not_used_and_a_dropped_file_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let first = Temp::write(path, b"first").unwrap();
        let name = first.path.file_name().unwrap().to_str().unwrap().to_owned();
        let (process, count) = name.split_once('-').unwrap();
        let count: u64 = count.parse().unwrap();
        let taken: Vec<_> = (1..=3)
            .map(|more| path.join(format!("{process}-{}", count + more)))
            .collect();
        taken
            .iter()
            .for_each(|name| fs::write(name, "taken").unwrap());
        let second = Temp::write(path, b"second").unwrap();
        assert!(!taken.contains(&second.path));
        drop((first, second));
        let left = fs::read_dir(path).unwrap().count();
        assert_eq!(left, taken.len());
        let missing = Temp::write(&path.join("missing"), b"");
        assert!(missing.is_err());
    }

    #[test]
    fn a_file_is_read_up_to_its_limit_and_removed_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        assert_eq!(read(&path, 4).unwrap(), None);
        assert!(!remove(&path).unwrap());
        fs::write(&path, "four").unwrap();
        assert_eq!(read(&path, 4).unwrap().unwrap(), b"four");
        let error = read(&path, 3).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(read(directory.path(), u64::MAX).is_err());
        assert!(remove(&path).unwrap() && !path.exists());
        assert!(remove(directory.path()).is_err());
    }
}
