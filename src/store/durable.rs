//! Writing files that survive: a kill, a full disk, a power cut.
//!
//! A file becomes visible under its name only when it is whole: the bytes go to a name
//! of their own in the store's `temp` directory, are flushed, and the name is moved.
//! The move itself is durable when the directory that received it is flushed. A kill
//! leaves at most a file in `temp`, which the sweep removes.
//!
//! Sources: POSIX.1-2024 `rename` and `fsync`; Linux `fsync(2)`, whose notes say that
//! flushing a file does not flush the directory entry that names it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// How often a name in `temp` may be taken by somebody else before we give up.
const ATTEMPTS_MAX: u32 = 1000;

/// A file that has no name of its own yet. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Temp {
    file: Option<File>,
    path: PathBuf,
}

/// An operation on a file of the store that did not succeed.
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
    /// Wraps a failure with what was attempted on which file.
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
        // Processes of several containers may share the directory and their ids, so a
        // taken name is no surprise.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let process = std::process::id();
        let mut attempts = 0;
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = directory.join(format!("{process}-{count}"));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
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

    /// Flushes the bytes and closes the file, which still has no name.
    pub(super) fn flush(&mut self) -> Result<(), FileError> {
        match self.file.take() {
            Some(file) => file.sync_all().map_err(FileError::on("flush", &self.path)),
            None => Ok(()),
        }
    }

    /// Gives the flushed file its name. The name is durable once its directory is flushed.
    pub(super) fn rename(mut self, to: &Path) -> Result<(), FileError> {
        self.flush()?;
        fs::rename(&self.path, to).map_err(FileError::on("rename a new file to", to))?;
        // It has moved: there is nothing to remove.
        self.path = PathBuf::new();
        Ok(())
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // What cannot be removed now is removed by the sweep.
            let _left_to_the_sweep = fs::remove_file(&self.path);
        }
    }
}

/// Flushes the names in a directory.
pub(super) fn flush_directory(directory: &Path) -> Result<(), FileError> {
    File::open(directory)
        .and_then(|open| open.sync_all())
        .map_err(FileError::on("flush directory", directory))
}

/// Puts a whole file in the place of `path`, or a new one there, and waits until that
/// will survive a power cut.
pub(super) fn replace(temp: &Path, path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    Temp::write(temp, bytes)?.rename(path)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    flush_directory(directory)
}
