//! Finding and reading the files that have changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use crate::store::stamp::Stamp;
use crate::store::{ReadError, SiteRecord};

/// The longest file, in bytes: a million records of a kilobyte.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// The least number of files or documents for one thread: with fewer, threads cost more than they
/// save.
pub(super) const PARALLEL_MIN: usize = 64;

/// A directory of record files, or one such file.
#[derive(Debug)]
pub(super) struct RecordPath<'p> {
    path: &'p Path,
    found: fs::Metadata,
}

/// A file that has changed.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) name: Arc<str>,
    /// `None` for a record of the store.
    pub(super) stamp: Option<Stamp>,
    /// Its content, or why it cannot be read.
    pub(super) content: Result<Text, String>,
}

/// The source of a record.
#[derive(Debug)]
pub(super) enum Text {
    /// The text of a file.
    File(String),
    /// A record of the store, with its hash.
    Stored(SiteRecord, u64),
}

/// Why a scan changed nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// There is no directory of site records.
    #[error("site records are missing: there is no {}", path.display())]
    Missing {
        /// The directory, or the one file.
        path: PathBuf,
    },
    /// Too many sites would be removed (R5).
    #[error("{removed} of {served} sites would be removed; accept it with --accept-removals")]
    Removals {
        /// How many sites would be removed.
        removed: usize,
        /// How many sites are served.
        served: usize,
    },
    /// The records in the store cannot be listed.
    #[error("read the site records in the store")]
    Store(#[from] ReadError),
    /// An operation of the file system failed.
    #[error("read site records in {}", path.display())]
    Io {
        /// The directory or file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

// === impl Place ===

impl<'p> RecordPath<'p> {
    /// Reads the metadata of a path.
    pub(super) fn of(path: &'p Path) -> Result<Self, ScanError> {
        let found = fs::metadata(path).map_err(failed(path))?;
        Ok(Self { path, found })
    }

    /// Lists the record files.
    pub(super) fn list(&self) -> Result<Vec<(Arc<str>, Stamp)>, ScanError> {
        if !self.found.is_dir() {
            let name = self.path.file_name().unwrap_or_default().to_string_lossy();
            return Ok(vec![(name.into(), Stamp::of(&self.found))]);
        }
        let mut names: Vec<Arc<str>> = Vec::new();
        for entry in fs::read_dir(self.path).map_err(failed(self.path))? {
            let name = entry.map_err(failed(self.path))?.file_name();
            if let Some(name) = name.to_str().filter(|name| is_record_file(name)) {
                names.push(name.into());
            }
        }
        let in_parallel = names.par_iter().with_min_len(PARALLEL_MIN);
        let stamps: Vec<_> = in_parallel.map(|name| self.stamp(name)).collect();
        let mut listed = Vec::with_capacity(names.len());
        for (name, stamp) in names.into_iter().zip(stamps) {
            listed.extend(stamp?.map(|stamp| (name, stamp)));
        }
        Ok(listed)
    }

    /// Returns the metadata of a record file; `None` when there is no such file.
    fn stamp(&self, name: &str) -> Result<Option<Stamp>, ScanError> {
        let file = self.file(name);
        match fs::metadata(&file) {
            Ok(found) if found.is_file() => Ok(Some(Stamp::of(&found))),
            Ok(_) => Ok(None),
            // A link that leads nowhere is also `NotFound`.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&file)(error)),
        }
    }

    /// Reads files. A file that was removed in between is left to the next scan.
    pub(super) fn read(&self, changed: Vec<(Arc<str>, Stamp)>) -> Vec<Read> {
        let in_parallel = changed.par_iter().with_min_len(PARALLEL_MIN);
        let texts: Vec<_> = in_parallel
            .map(|(name, stamp)| self.read_one(name, stamp))
            .collect();
        changed
            .into_iter()
            .zip(texts)
            .filter_map(|((name, stamp), text)| {
                Some(Read {
                    name,
                    stamp: Some(stamp),
                    content: text?.map(Text::File),
                })
            })
            .collect()
    }

    fn read_one(&self, name: &str, stamp: &Stamp) -> Option<Result<String, String>> {
        if stamp.length() > FILE_BYTES_MAX {
            let message = format!("a file of site records has at most {FILE_BYTES_MAX} bytes");
            return Some(Err(message));
        }
        match fs::read(self.file(name)) {
            Ok(bytes) => Some(String::from_utf8(bytes).map_err(|error| {
                let at = error.utf8_error().valid_up_to();
                format!("byte {at} is not UTF-8")
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(Err(error.to_string())),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        if self.found.is_dir() {
            self.path.join(name)
        } else {
            self.path.to_owned()
        }
    }
}

/// Returns whether a file of this name has records.
fn is_record_file(name: &str) -> bool {
    !name.starts_with('.') && (name.ends_with(".yaml") || name.ends_with(".yml"))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> ScanError + use<'_> {
    move |source| {
        let path = path.to_owned();
        if source.kind() == io::ErrorKind::NotFound {
            ScanError::Missing { path }
        } else {
            ScanError::Io { path, source }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_in_visible_files_of_yaml() {
        for (name, expected) in [
            ("a.yaml", true),
            ("a.yml", true),
            (".a.yaml", false),
            (".a.yml", false),
            ("a.json", false),
            ("yaml", false),
        ] {
            assert_eq!(is_record_file(name), expected, "{name}");
        }
    }
}
