//! Documents: small records that are kept beside the releases, each under a kind and a key.
//!
//! Certificates, their orders and the accounts at certificate authorities are kept here: in a
//! directory ([`LocalDocuments`]), or in the database of a store that several machines share
//! ([`SharedDocuments`](super::shared::SharedDocuments)).
//!
//! * A put is atomic and durable: a reader gets the bytes before or the bytes after, also after a
//!   power cut.
//! * [`Documents::changes`] finds what other processes have put or removed.
//! * [`Documents::lead`] chooses one process among those that share the documents.

mod local;
mod seal;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::time::SystemTime;

pub use local::LocalDocuments;
pub use seal::{KeyFileError, SealKey, Sealed, UnsealError};

use super::FileError;
use super::shared::Place;
use crate::digest::Digest;

/// The longest name that is used as a key as it is.
const KEY_BYTES_MAX: usize = 180;
/// How many bytes of a longer name begin its key.
const KEY_START_BYTES: usize = 140;

/// The kinds of documents. Each has keys of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A certificate with its private key. It never changes.
    Certificate,
    /// An account at a certificate authority.
    Account,
    /// The failed orders of a name, and when it is tried again.
    Order,
    /// The answer to a challenge of an authority, as long as the authority may ask for it. It
    /// never changes.
    Challenge,
    /// A private key whose certificate has not come yet, and the address of its order.
    Pending,
    /// A name whose certificate an operator has asked to replace.
    Request,
    /// When the orders of an authority began that count for its limits.
    Budget,
}

/// A change of the documents of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new key.
    Added(Box<str>),
    /// A removed key.
    Removed(Box<str>),
}

/// The keys of a kind that a reader has read already.
#[derive(Debug, Default)]
pub struct KnownKeys {
    /// For each part of the keys: when it was last changed, and its keys.
    parts: HashMap<u8, (Option<SystemTime>, HashSet<Box<str>>)>,
    /// The history of a database, and the last of its revisions that was read.
    position: Option<(String, Place)>,
}

/// A place where documents are kept.
pub trait Documents: fmt::Debug + Send + Sync {
    /// Returns the bytes under a key.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    fn get(&self, kind: Kind, key: &str) -> Result<Option<Vec<u8>>, FileError>;

    /// Stores bytes under a key, in place of the earlier bytes.
    ///
    /// # Errors
    ///
    /// When they could not be made durable; the bytes before stay.
    fn put(&self, kind: Kind, key: &str, bytes: &[u8]) -> Result<(), FileError>;

    /// Removes a key, if it is there.
    ///
    /// # Errors
    ///
    /// When it could not be removed.
    fn remove(&self, kind: Kind, key: &str) -> Result<(), FileError>;

    /// Returns the keys that were added or removed since the last call with the same `known`. The
    /// keys of documents whose bytes were replaced are left out.
    ///
    /// # Errors
    ///
    /// When they cannot be listed; the next call lists them again.
    fn changes(&self, kind: Kind, known: &mut KnownKeys) -> Result<Vec<Change>, FileError>;

    /// Returns all keys of a kind.
    ///
    /// # Errors
    ///
    /// When they cannot be listed.
    fn keys(&self, kind: Kind) -> Result<Vec<Box<str>>, FileError> {
        let changes = self.changes(kind, &mut KnownKeys::default())?.into_iter();
        let added = changes.filter_map(|change| match change {
            Change::Added(key) => Some(key),
            Change::Removed(_) => None,
        });
        Ok(added.collect())
    }

    /// Returns the keys of a kind that begin with `name` and `~`.
    ///
    /// # Errors
    ///
    /// When they cannot be listed.
    fn keys_of(&self, kind: Kind, name: &str) -> Result<Vec<Box<str>>, FileError>;

    /// Makes this process the leader, if no other process is. It is the leader until the value is
    /// dropped or the process ends.
    ///
    /// # Errors
    ///
    /// When the lock, or the documents of the previous leader, cannot be read.
    fn lead(&self) -> Result<Option<Box<dyn Lead>>, FileError>;

    /// Returns whether this many bytes can be put, as far as that can be known.
    ///
    /// # Errors
    ///
    /// When the disk cannot be looked at.
    fn has_space(&self, bytes: u64) -> Result<bool, FileError>;
}

/// The leadership of a process.
pub trait Lead: fmt::Debug + Send {
    /// Returns whether this process still leads. It loses the leadership if the lock file is
    /// removed, or if it cannot reach the database for some seconds.
    fn holds(&self) -> bool;
}

// === impl Kind ===

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Certificate,
        Self::Account,
        Self::Order,
        Self::Challenge,
        Self::Pending,
        Self::Request,
        Self::Budget,
    ];

    /// Returns the name of the directory, or of the kind in a database.
    pub(super) fn directory(self) -> &'static str {
        match self {
            Self::Certificate => "certificates",
            Self::Account => "accounts",
            Self::Order => "orders",
            Self::Challenge => "challenges",
            Self::Pending => "pending",
            Self::Request => "requests",
            Self::Budget => "budgets",
        }
    }

    /// Returns whether there may be so many that they are divided into parts.
    pub(super) fn is_divided(self) -> bool {
        matches!(self, Self::Certificate | Self::Order)
    }
}

// === impl KnownKeys ===

impl KnownKeys {
    /// Returns the place in the changes of a database up to which they are known; `None` if it has
    /// another history now.
    pub(super) fn place_in(&self, history: &str) -> Option<&Place> {
        let (known, place) = self.position.as_ref()?;
        (known == history).then_some(place)
    }

    /// Notes keys that exist, and keys that do not, up to a place in the changes of a
    /// database. Returns what has changed.
    pub(super) fn note(
        &mut self,
        keys: impl IntoIterator<Item = (Box<str>, bool)>,
        history: String,
        place: Place,
    ) -> Vec<Change> {
        let (_, known) = self.parts.entry(0).or_default();
        let mut changes = Vec::new();
        for (key, exists) in keys {
            match exists {
                true if known.insert(key.clone()) => changes.push(Change::Added(key)),
                false if known.remove(&key) => changes.push(Change::Removed(key)),
                _ => {}
            }
        }
        self.position = Some((history, place));
        changes
    }

    /// Returns the keys that are known and not among these.
    pub(super) fn missing_in(&self, keys: &HashSet<&str>) -> Vec<Box<str>> {
        let known = self.parts.get(&0).into_iter().flat_map(|(_, known)| known);
        known
            .filter(|key| !keys.contains(&***key))
            .cloned()
            .collect()
    }
}

/// Returns the key for a name of any length. Short names are their own keys.
#[must_use]
pub fn key_of(name: &str) -> String {
    if name.len() <= KEY_BYTES_MAX {
        return name.to_owned();
    }
    let digest = Digest::of(name.as_bytes()).to_string();
    let start = &name[..name.floor_char_boundary(KEY_START_BYTES)];
    format!("{start}-{}", &digest[..32])
}

/// Returns the part that a key belongs to: keys with the same text before `~` are in one part.
fn part_of(key: &str) -> u8 {
    let name = key.split_once('~').map_or(key, |(name, _)| name);
    Digest::of(name.as_bytes()).as_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_up_to_the_longest_key_is_its_own_key() {
        let longest = "a".repeat(KEY_BYTES_MAX);
        assert_eq!(key_of(&longest), longest);
        let key = key_of(&format!("{longest}a"));
        assert_eq!(key.len(), KEY_START_BYTES + "-".len() + 32);
        assert!(longest.starts_with(&key[..KEY_START_BYTES]));
    }

    #[test]
    fn a_key_that_is_noted_again_is_no_change() {
        let mut known = KnownKeys::default();
        let place = |revision| Place {
            revision,
            mark: None,
        };
        let mut note = |keys: &[(&str, bool)], revision| {
            let keys = keys.iter().map(|(key, exists)| ((*key).into(), *exists));
            known.note(keys, "history".to_owned(), place(revision))
        };
        let added = ["a", "b"].map(|key| Change::Added(key.into()));
        assert_eq!(note(&[("a", true), ("b", true)], 1), added);
        let removed = [Change::Removed("b".into())];
        assert_eq!(note(&[("a", true), ("b", false), ("c", false)], 2), removed);
        assert_eq!(known.place_in("history"), Some(&place(2)));
        assert_eq!(known.place_in("another"), None);
        assert_eq!(known.missing_in(&HashSet::from(["c"])), ["a".into()]);
        assert!(known.missing_in(&HashSet::from(["a"])).is_empty());
    }
}
