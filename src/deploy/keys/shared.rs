//! Keys in the database of a store that several machines share: one document for each, with the
//! content of the file that a single machine has.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use super::directory::{Listed, NewKey, parse, to_bytes};
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
    /// Creates a key for an owner. The secret is in the result and nowhere else.
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
        match self {
            Self::Directory(directory) => directory.create(service_name, new, now),
            Self::Shared(documents) => {
                let (key, secret) = new.make(service_name, now)?;
                documents.change_in(ADMIN_KEYS, key.id().as_str(), |_none| Some(to_bytes(&key)))?;
                Ok((key, secret))
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
                Ok(key) => Some(to_bytes(&Key {
                    revoked_at: Some(now),
                    ..key
                })),
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

    /// Waits until every gateway that runs has what was changed, at most for a time. Returns the
    /// names of those that do not. A directory is read by the gateways of this machine at once.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] when the database cannot be read.
    pub fn wait_until_read(&self, time: Duration) -> Result<Vec<String>, KeyFileError> {
        match self {
            Self::Directory(_) => Ok(Vec::new()),
            Self::Shared(documents) => Ok(documents.wait_until_read(time)?),
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
        listed.sort_by_key(|listed| std::cmp::Reverse(listed.key.created_at));
        Ok(listed)
    }

    /// Adds keys that were made elsewhere. One that is there stays, but a revocation is never undone.
    /// Returns how many were added or revoked.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] when one could not be stored; those before it are.
    pub fn add(&self, keys: &[Key]) -> Result<u64, KeyFileError> {
        let there = self.list()?;
        let mut changed = 0;
        for key in keys {
            let same = there.iter().find(|there| there.key.digest == key.digest);
            let is_needed =
                same.is_none_or(|same| same.key.revoked_at.is_none() && key.revoked_at.is_some());
            if !is_needed {
                continue;
            }
            match self {
                Self::Directory(directory) => directory.write(key)?,
                Self::Shared(documents) => {
                    documents
                        .change_in(ADMIN_KEYS, key.id().as_str(), |_older| Some(to_bytes(key)))?;
                }
            }
            changed += 1;
        }
        Ok(changed)
    }
}

/// Names a document in messages.
fn named(id: &str) -> PathBuf {
    format!("the database of the store, admin key {id}").into()
}
