//! The place of an edge in the changes of its source, kept in a file of the cache.
//!
//! It is written after everything up to it is in the cache. A kill in between makes the edge apply
//! some changes again, which has the same result. Without the file, or with a damaged one,
//! everything is compared.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::files;
use super::message::Identity;

const VERSION: u32 = 1;

/// A place in the changes of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Position {
    version: u32,
    /// The life of the source.
    pub(super) identity: Identity,
    /// Everything up to this revision is in the cache.
    pub(super) revision: u64,
    /// When the source has last responded, in seconds after the Unix epoch.
    pub(super) contact: u64,
}

impl Position {
    pub(super) fn new(identity: Identity, revision: u64, contact: u64) -> Self {
        Self {
            version: VERSION,
            identity,
            revision,
            contact,
        }
    }

    /// Reads the file; `None` if there is none that can be used.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                log::warn!(target: "follow", "cannot read {}, so everything is compared: {error}", path.display());
                return None;
            }
        };
        match serde_json::from_slice::<Self>(&bytes) {
            Ok(position) if position.version == VERSION => Some(position),
            Ok(_) | Err(_) => {
                log::warn!(target: "follow", "{} cannot be used, so everything is compared", path.display());
                None
            }
        }
    }

    /// Replaces the file.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        files::replace(path, &serde_json::to_vec(self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_no_position() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("position");
        assert_eq!(Position::read(&path), None);
        let identity = Identity {
            life: 3,
            id: "a".to_owned(),
        };
        let position = Position::new(identity, 9, 10);
        position.write(&path).unwrap();
        assert_eq!(Position::read(&path), Some(position));
        for damaged in ["", "{}", "{\"version\":2}"] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(Position::read(&path), None);
        }
    }
}
