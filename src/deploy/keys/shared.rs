//! Keys in the database of a store that several machines share: one document for each, with the
//! content of the file that a single machine has.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use super::directory::{Listed, NewKey, newest_first, parse, to_bytes};
use super::{Directory, Key, KeyFileError, KeyId, Secret};
use crate::deploy::Timestamp;
use crate::store::shared::SharedDocuments;

/// The set of the documents of keys.
pub const ADMIN_KEYS: &str = "admin-keys";

/// The keys of a node: in a directory, or in a database.
#[derive(Clone, Debug)]
pub enum Keys {
    /// The files of this machine.
    Directory(Directory),
    /// The documents of all machines.
    Shared(SharedDocuments),
}

// === impl Keys ===

impl Keys {
    /// Creates a key for an owner. Only the result has the secret.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] when it could not be stored.
    pub fn create(
        &self,
        service_name: &str,
        new: &NewKey<'_>,
        now: Timestamp,
    ) -> Result<(Key, Secret), KeyFileError> {
        let (key, secret) = new.make(service_name, now)?;
        self.write(&key)?;
        Ok((key, secret))
    }

    /// Stores a key, in place of an older record of it.
    fn write(&self, key: &Key) -> Result<(), KeyFileError> {
        match self {
            Self::Directory(directory) => directory.write(key),
            Self::Shared(documents) => {
                documents.change_in(ADMIN_KEYS, key.id().as_str(), |_older| Some(to_bytes(key)))?;
                Ok(())
            }
        }
    }

    /// Revokes a key; `None` when no key has this id.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] when that could not be stored: the key is still valid.
    pub fn revoke(&self, id: &KeyId, now: Timestamp) -> Result<Option<Key>, KeyFileError> {
        let documents = match self {
            Self::Directory(directory) => return directory.revoke(id, now),
            Self::Shared(documents) => documents,
        };
        let mut invalid = None;
        let after = documents.change_in(ADMIN_KEYS, id.as_str(), |there| {
            invalid = None;
            match parse(there?, &named(id.as_str())) {
                Ok(key) if key.revoked_at.is_some() => None,
                Ok(mut key) => {
                    key.revoked_at = Some(now);
                    Some(to_bytes(&key))
                }
                Err(error) => {
                    invalid = Some(error);
                    None
                }
            }
        })?;
        match (invalid, after) {
            (Some(error), _) => Err(error),
            (None, Some(bytes)) => parse(&bytes, &named(id.as_str())).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Waits until every running gateway has the last change, at most for a time. Returns the names
    /// of the gateways that do not have it. The gateways of one machine read its directory at once.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] when the database cannot be read.
    pub fn wait_until_read(&self, time: Duration) -> Result<Vec<String>, KeyFileError> {
        match self {
            Self::Directory(_) => Ok(Vec::new()),
            Self::Shared(documents) => Ok(documents.wait_until_read(false, time)?),
        }
    }

    /// Lists all keys, the newest first.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] when one of them cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, KeyFileError> {
        let documents = match self {
            Self::Directory(directory) => return directory.list(),
            Self::Shared(documents) => documents,
        };
        let used: HashMap<String, u64> = documents.key_uses()?.into_iter().collect();
        let mut listed = Vec::new();
        for (id, bytes) in documents.all_in(ADMIN_KEYS)? {
            listed.push(Listed {
                key: parse(&bytes, &named(&id))?,
                used_at: used.get(&id).copied().map(Timestamp::from_millis),
            });
        }
        Ok(newest_first(listed))
    }

    /// Adds keys that were made elsewhere. A known key stays, but a revocation is never
    /// undone. Returns how many were added or revoked.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] when one could not be stored; those before it are.
    pub fn add(&self, keys: &[Key]) -> Result<u64, KeyFileError> {
        let mut changed = 0;
        for key in keys {
            changed += u64::from(match self {
                Self::Directory(directory) => {
                    let is_new = adds(directory.get(&key.id())?.as_ref(), key);
                    if is_new {
                        directory.write(key)?;
                    }
                    is_new
                }
                Self::Shared(documents) => add(documents, key)?,
            });
        }
        Ok(changed)
    }
}

/// Adds a key to a database, or its revocation, in one transaction. Returns whether that was
/// needed.
fn add(documents: &SharedDocuments, key: &Key) -> Result<bool, KeyFileError> {
    let id = key.id();
    let mut is_new = Ok(false);
    documents.change_in(ADMIN_KEYS, id.as_str(), |there| {
        let there = there
            .map(|bytes| parse(bytes, &named(id.as_str())))
            .transpose();
        is_new = there.map(|there| adds(there.as_ref(), key));
        matches!(is_new, Ok(true)).then(|| to_bytes(key))
    })?;
    is_new
}

/// Returns whether a key is new, or revokes the known key.
fn adds(there: Option<&Key>, key: &Key) -> bool {
    there.is_none_or(|there| there.revoked_at.is_none() && key.revoked_at.is_some())
}

/// Names a document in messages.
fn named(id: &str) -> PathBuf {
    format!("the database of the store, admin key {id}").into()
}
