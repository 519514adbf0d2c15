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
use super::message::{Head, Identity};
use super::store_revision::StoreRevision;

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
    /// The revision of the first ring of the source, from the last message.
    #[serde(default)]
    pub(super) source_revision: u64,
    /// The revision of the shared store, from the last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) store: Option<StoreRevision>,
    /// Of secrets: the public key of this edge with which everything up to this revision was
    /// decrypted; `None` if the source knew no key of this edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    /// Of a shared store: the mark of the change with the number `revision`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mark: Option<String>,
    /// The address of the source.
    #[serde(default)]
    url: String,
    /// When the source has last responded, in seconds after the Unix epoch.
    pub(super) contact: u64,
}

impl Position {
    /// Makes a position.
    pub(super) fn new(url: &str, identity: Identity, revision: u64, contact: u64) -> Self {
        Self {
            version: VERSION,
            identity,
            revision,
            source_revision: 0,
            store: None,
            key: None,
            mark: None,
            url: url.to_owned(),
            contact,
        }
    }

    /// Makes the position of an edge that has applied a message of the source at an address.
    pub(super) fn of(url: &str, head: Head) -> Self {
        Self {
            source_revision: head.source_revision,
            store: head.store,
            mark: head.mark,
            ..Self::new(url, head.identity, head.revision, 0)
        }
    }

    /// Returns the revisions of the store that is followed: up to which everything is in the cache,
    /// and after which nothing is.
    pub(super) fn of_store(&self) -> (u64, u64) {
        match &self.store {
            Some(store) => (store.revision, store.newest),
            // An earlier version of this program has written it.
            None => (self.revision, self.revision),
        }
    }

    /// Reads the file; `None` if there is none that can be used. If the edge followed another
    /// address before, nothing is known of the lives of the source there: the operator has chosen
    /// another source, and everything is compared with it. Only the revision of a store that both
    /// share can be compared.
    pub(super) fn read(path: &Path, url: &str) -> Option<Self> {
        let position = Self::read_any(path)?;
        if position.url.is_empty() || position.url == url {
            return Some(position);
        }
        let before = &position.url;
        log::info!(target: "follow", "this edge followed {before} before, so everything is compared with {url}");
        let identity = Identity {
            life: 0,
            id: "another-source".to_owned(),
        };
        Some(Self {
            identity,
            source_revision: 0,
            ..position
        })
    }

    fn read_any(path: &Path) -> Option<Self> {
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
        assert_eq!(Position::read(&path, "a"), None);
        let identity = Identity {
            life: 3,
            id: "a".to_owned(),
        };
        let position = Position {
            store: Some(StoreRevision {
                id: "s/1".to_owned(),
                revision: 5,
                newest: 6,
            }),
            ..Position::new("a", identity, 9, 10)
        };
        position.write(&path).unwrap();
        assert_eq!(Position::read(&path, "a"), Some(position.clone()));
        // The lives of another source cannot be compared with these; the revisions of the store can.
        let other = Position::read(&path, "b").unwrap();
        assert_eq!((other.identity.life, other.contact), (0, 10));
        assert_ne!(other.identity.id, position.identity.id);
        assert_eq!(other.store, position.store);
        // An earlier version of the program wrote no revision of the store.
        let earlier = r#"{"version":1,"identity":{"life":3,"id":"a"},"revision":9,"contact":10}"#;
        fs::write(&path, earlier).unwrap();
        assert_eq!(Position::read(&path, "a").unwrap().store, None);
        for damaged in ["", "{}", "{\"version\":2}"] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(Position::read(&path, "a"), None);
        }
    }
}
