//! Keys on disk: one JSON file for each, named by the id of the key.
//!
//! ```text
//! keys/0123456789abcdef.json   owner, scope, expiry of the key
//! keys/used/0123456789abcdef   when it was last used, in milliseconds
//! ```
//!
//! A file is written under another name, flushed and renamed, so a reader sees the old or the
//! new content. The last use has its own directory: it is written later, may be lost in a crash,
//! and must not look like a change of keys.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Key, KeyId, Role, Scope, Secret};
use crate::deploy::Timestamp;
use crate::digest::Digest;
use crate::site::ProjectId;

/// The version of the files that this code writes.
const VERSION: u32 = 1;

/// The directory of keys.
#[derive(Clone, Debug)]
pub struct Directory {
    path: Box<Path>,
}

/// What a new key is for.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewKey<'k> {
    /// The owner whose projects it is for.
    pub owner: &'k str,
    /// The projects that it covers; none for all.
    pub projects: &'k [ProjectId],
    /// What it may do.
    pub role: Role,
    /// A label for people.
    pub label: &'k str,
    /// When it expires, if ever.
    pub expires_at: Option<Timestamp>,
}

/// A key and when it was last used.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The key.
    pub key: Key,
    /// When it was last used, if that is recorded.
    pub used_at: Option<Timestamp>,
}

/// Why a key could not be stored or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// An operation of the file system failed.
    #[error("{act} {}", path.display())]
    Io {
        /// The operation that failed.
        act: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The file is not a key file.
    #[error("read the key in {}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The problem.
        #[source]
        source: serde_json::Error,
    },
    /// A newer program wrote the file.
    #[error("{} has version {found}; this program reads version {VERSION}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// The database of the keys cannot be used.
    #[error("use the admin keys of the store")]
    Database(#[from] crate::store::FileError),
    /// The operating system has no random bytes to give.
    #[error("make a key: {0}")]
    Random(getrandom::Error),
}

/// A key's file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    digest: Digest,
    owner: Box<str>,
    scope: Scope,
    role: Role,
    label: Box<str>,
    created_at: u64,
    expires_at: Option<u64>,
    revoked_at: Option<u64>,
}

// === impl Directory ===

impl Directory {
    /// Opens the directory, and creates it if it is missing. On a file system that cannot be
    /// written, a missing directory is one without keys.
    ///
    /// # Errors
    ///
    /// [`KeyFileError::Io`] when it cannot be created for another reason.
    pub fn open(path: &Path) -> Result<Self, KeyFileError> {
        let used = path.join("used");
        match fs::create_dir_all(&used) {
            Err(source)
                if !matches!(
                    source.kind(),
                    io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::StorageFull
                ) =>
            {
                Err(failed("make", &used, source))
            }
            _ => Ok(Self { path: path.into() }),
        }
    }

    /// Revokes a key; `None` when no key has this id.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] when that could not be stored: the key is still valid.
    pub fn revoke(&self, id: &KeyId, now: Timestamp) -> Result<Option<Key>, KeyFileError> {
        let Some(mut key) = self.get(id)? else {
            return Ok(None);
        };
        if key.revoked_at.is_none() {
            key.revoked_at = Some(now);
            self.write(&key)?;
        }
        Ok(Some(key))
    }

    /// Returns a key; `None` when no key has this id.
    pub(super) fn get(&self, id: &KeyId) -> Result<Option<Key>, KeyFileError> {
        match self.read(&self.file(id)) {
            Ok(key) => Ok(Some(key)),
            Err(KeyFileError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Lists all keys, the newest first.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] when one of them cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, KeyFileError> {
        let mut listed = Vec::new();
        for path in self.files()? {
            let key = self.read(&path)?;
            let used_at = fs::read_to_string(self.used_file(&key.id())).ok();
            let used_at = used_at.and_then(|text| text.trim().parse().ok());
            listed.push(Listed {
                key,
                used_at: used_at.map(Timestamp::from_millis),
            });
        }
        Ok(newest_first(listed))
    }

    /// Returns the paths of the files of keys.
    pub(super) fn files(&self) -> Result<Vec<PathBuf>, KeyFileError> {
        let failed = |source| failed("list", &self.path, source);
        let mut files = Vec::new();
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let is_key = path
                .extension()
                .is_some_and(|extension| extension == "json")
                && stem.is_some_and(|stem| KeyId::parse(stem).is_ok());
            if is_key {
                files.push(path);
            }
        }
        Ok(files)
    }

    /// Reads one key.
    pub(super) fn read(&self, path: &Path) -> Result<Key, KeyFileError> {
        let bytes = fs::read(path).map_err(|source| failed("read", path, source))?;
        parse(&bytes, path)
    }

    /// Returns when the directory itself last changed.
    pub(super) fn changed_at(&self) -> io::Result<std::time::SystemTime> {
        fs::metadata(&self.path)?.modified()
    }

    /// Records when a key was used. It may be lost in a crash, so it is not flushed.
    pub(super) fn write_use(&self, id: &KeyId, at: Timestamp) -> io::Result<()> {
        fs::write(self.used_file(id), at.millis().to_string())
    }

    pub(super) fn write(&self, key: &Key) -> Result<(), KeyFileError> {
        let path = self.file(&key.id());
        let new = path.with_extension("new");
        let bytes = to_bytes(key);
        let write = || -> io::Result<()> {
            let mut file = File::create(&new)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.path)?.sync_all()
        };
        write().map_err(|source| failed("write", &path, source))
    }

    fn file(&self, id: &KeyId) -> PathBuf {
        self.path.join(format!("{id}.json"))
    }

    fn used_file(&self, id: &KeyId) -> PathBuf {
        self.path.join("used").join(id.as_str())
    }
}

/// Sorts keys for a list.
pub(super) fn newest_first(mut listed: Vec<Listed>) -> Vec<Listed> {
    listed.sort_by_key(|listed| std::cmp::Reverse(listed.key.created_at));
    listed
}

/// Reads the content of a key's file, which `path` names in messages.
pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<Key, KeyFileError> {
    let stored: Stored = serde_json::from_slice(bytes).map_err(|source| KeyFileError::Invalid {
        path: path.to_owned(),
        source,
    })?;
    if stored.version != VERSION {
        return Err(KeyFileError::Newer {
            path: path.to_owned(),
            found: stored.version,
        });
    }
    Ok(stored.into())
}

/// Returns the content of a key's file.
pub(super) fn to_bytes(key: &Key) -> Vec<u8> {
    serde_json::to_vec_pretty(&Stored::from(key)).expect("strings, numbers and lists of them")
}

fn failed(act: &'static str, path: &Path, source: io::Error) -> KeyFileError {
    KeyFileError::Io {
        act,
        path: path.to_owned(),
        source,
    }
}

// === impl NewKey ===

impl NewKey<'_> {
    /// Makes the key and its secret.
    pub(super) fn make(
        &self,
        service_name: &str,
        now: Timestamp,
    ) -> Result<(Key, Secret), KeyFileError> {
        let secret = Secret::generate(service_name).map_err(KeyFileError::Random)?;
        let projects = self.projects.iter();
        let scope = match self.projects.is_empty() {
            true => Scope::All,
            false => Scope::Projects(projects.map(|project| project.as_str().into()).collect()),
        };
        let key = Key {
            digest: secret.digest(),
            owner: self.owner.into(),
            scope,
            role: self.role,
            label: self.label.into(),
            created_at: now,
            expires_at: self.expires_at,
            revoked_at: None,
        };
        Ok((key, secret))
    }
}

// === impl Stored ===

impl From<&Key> for Stored {
    fn from(key: &Key) -> Self {
        Self {
            version: VERSION,
            digest: key.digest,
            owner: key.owner.clone(),
            scope: key.scope.clone(),
            role: key.role,
            label: key.label.clone(),
            created_at: key.created_at.millis(),
            expires_at: key.expires_at.map(Timestamp::millis),
            revoked_at: key.revoked_at.map(Timestamp::millis),
        }
    }
}

impl From<Stored> for Key {
    fn from(stored: Stored) -> Self {
        Self {
            digest: stored.digest,
            owner: stored.owner,
            scope: stored.scope,
            role: stored.role,
            label: stored.label,
            created_at: Timestamp::from_millis(stored.created_at),
            expires_at: stored.expires_at.map(Timestamp::from_millis),
            revoked_at: stored.revoked_at.map(Timestamp::from_millis),
        }
    }
}
