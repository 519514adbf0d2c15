//! A file of a release that is read in parts.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::SystemTime;

use super::{FileError, ReadError};

/// An open file of the store. Its length was checked; its digest was not.
#[derive(Debug)]
pub struct ContentFile {
    file: File,
    path: PathBuf,
    modified: Option<SystemTime>,
}

// === impl ContentFile ===

impl ContentFile {
    /// Checks the length of an open file.
    pub(super) fn new(file: File, path: PathBuf, length: u64) -> Result<Self, ReadError> {
        let found = match file.metadata() {
            Ok(found) => found,
            Err(error) => return Err(FileError::on("look at", &path)(error).into()),
        };
        if found.len() != length {
            return Err(ReadError::Damaged {
                what: path.display().to_string(),
                why: format!("it has {} bytes instead of {length}", found.len()),
            });
        }
        Ok(Self {
            file,
            path,
            modified: found.modified().ok(),
        })
    }

    /// Reads bytes from an offset until `bytes` is full.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or ends before.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<(), ReadError> {
        match self.file.read_exact_at(bytes, offset) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.damaged("it has become shorter"))
            }
            Err(error) => Err(FileError::on("read", &self.path)(error).into()),
        }
    }

    /// Returns when the file was last written, or put again.
    #[must_use]
    pub fn modified(&self) -> Option<SystemTime> {
        self.modified
    }

    /// Makes the error for a file that does not have its bytes.
    #[must_use]
    pub fn damaged(&self, why: &str) -> ReadError {
        ReadError::Damaged {
            what: self.path.display().to_string(),
            why: why.to_owned(),
        }
    }
}
