//! A log file that other programs may rotate.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A file that is appended to. If its path leads to another file or to none, the file at the path
/// is opened or created. So logrotate may move the file away, with or without its option `create`.
///
/// If the file at the path cannot be opened, for example because a program that rotates has made
/// a file that only root can write, lines go to the file before, and none is lost.
#[derive(Debug)]
pub struct LogFile {
    file: File,
    path: PathBuf,
    /// Whether the caller knows that the path cannot be opened.
    is_reported: bool,
}

impl LogFile {
    /// Opens or creates it.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: open(path)?,
            path: path.to_owned(),
            is_reported: false,
        })
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends whole lines to the file at the path, or to the one before.
    ///
    /// # Errors
    ///
    /// When they could not be written.
    pub fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.write_all(lines)
    }

    /// Opens the file at the path if another one is open.
    ///
    /// # Errors
    ///
    /// When it cannot be opened. Only the first of several such errors in a row is returned.
    pub fn reopen(&mut self) -> io::Result<()> {
        let opened = match is_at(&self.file, &self.path) {
            Ok(true) => Ok(()),
            Ok(false) => open(&self.path).map(|opened| self.file = opened),
            Err(error) => Err(error),
        };
        let was_reported = std::mem::replace(&mut self.is_reported, opened.is_err());
        match was_reported {
            true => Ok(()),
            false => opened,
        }
    }
}

/// Returns whether a path still leads to an open file: the same device and inode.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let identity = |metadata: &Metadata| (metadata.dev(), metadata.ino());
    match std::fs::metadata(path) {
        Ok(there) => Ok(identity(&there) == identity(&file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotated_file_is_reopened() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("access.log");
        let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
        let mut out = LogFile::open(&path).unwrap();
        let mut write = |line: &[u8]| {
            let opened = out.reopen();
            out.write(line).unwrap();
            opened
        };
        write(b"one\n").unwrap();
        // logrotate without `create`: there is no file at the path.
        std::fs::rename(&path, directory.path().join("access.log.2")).unwrap();
        write(b"two\n").unwrap();
        // logrotate with `create`: there is an empty file at the path.
        std::fs::rename(&path, directory.path().join("access.log.1")).unwrap();
        File::create(&path).unwrap();
        write(b"three\n").unwrap();
        assert_eq!(read("access.log.2"), "one\n");
        assert_eq!(read("access.log.1"), "two\n");
        assert_eq!(read("access.log"), "three\n");
        // The file at the path cannot be opened.
        std::fs::rename(&path, directory.path().join("access.log.0")).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(write(b"four\n").is_err());
        assert!(write(b"five\n").is_ok(), "it is reported once");
        assert_eq!(read("access.log.0"), "three\nfour\nfive\n");
        std::fs::remove_dir(&path).unwrap();
        write(b"six\n").unwrap();
        assert_eq!(read("access.log"), "six\n");
    }
}
