//! Admin keys, which allow their holders to trigger updates and, by their role, to change sites.
//!
//! A key is `{service}_` and 72 hexadecimal digits: 32 random bytes and a checksum of four bytes.
//! Secret scanners find a leaked key by the prefix. The checksum detects a typo without
//! a lookup. The digits are hexadecimal because editors, mail clients and tools that change the
//! case do not damage them.
//!
//! Only the SHA-256 of a key is stored. A key has 256 random bits from the operating system, so
//! it cannot be guessed, and a slow hash would add no protection: it would only let clients load
//! the gateway with wrong keys.
//!
//! Each key is a small file ([`directory`]). A gateway holds all keys in memory ([`cache`]), so
//! checking a key needs no disk, and a revocation takes effect within a second, without a restart
//! and without the queue. With a store that several machines share, the keys are in its database
//! ([`shared`]), and each gateway has a copy of the files.
//!
//! **Invariant:** a [`Secret`] is printed by `key create` and read from a request, and nowhere
//! else. It has no `Display`, and its `Debug` shows nothing of it.
//!
//! Source: RFC 6750 (bearer tokens).

mod directory;
mod cache;
mod shared;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Timestamp;
use crate::digest::Digest;
use crate::site::ProjectId;

pub use cache::{KeyCache, Watch};
pub use directory::{Directory, KeyFileError, Listed, NewKey};
pub use shared::{ADMIN_KEYS, Keys};

/// Random bytes of a key.
const RANDOM_BYTES: usize = 32;
/// Digits of the random part and of the checksum.
const DIGITS: usize = 2 * (RANDOM_BYTES + CHECKSUM_BYTES);
const CHECKSUM_BYTES: usize = 4;
/// How many digits of a key's digest make its id.
const ID_DIGITS: usize = 16;

/// The key itself, which only its holder has.
#[derive(Clone)]
pub struct Secret(Box<str>);

/// The id of a key, for logs and lists.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(Box<str>);

/// Why a text is not a key's id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key id is {ID_DIGITS} hexadecimal digits, as `key list` shows them")]
pub struct InvalidKeyId;

/// A key as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The SHA-256 of the key.
    pub digest: Digest,
    /// The owner whose projects it may update.
    pub owner: Box<str>,
    /// The projects that it covers.
    pub scope: Scope,
    /// What it may do.
    pub role: Role,
    /// A label for people.
    pub label: Box<str>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it expires, if ever: from then on it is rejected.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Timestamp>,
}

/// Which of its owner's projects a key may update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// All, also projects that do not exist yet.
    All,
    /// These.
    Projects(Vec<Box<str>>),
}

/// What the holder of a key may do. Each role includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Trigger updates of the owner's projects, and read their records.
    #[default]
    Deploy,
    /// Change the owner's sites and their domains.
    Owner,
    /// Create, change and remove the sites of every owner.
    Operator,
}

/// Why a key is rejected. Callers get the same response in every case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidKey {
    /// It does not have the form of a key, or its checksum is wrong.
    Malformed,
    /// There is no such key.
    Unknown,
    /// It has expired.
    Expired,
    /// It was revoked.
    Revoked,
}

// === impl Secret ===

impl Secret {
    /// Makes a key.
    ///
    /// # Errors
    ///
    /// The operating system has no random bytes to give.
    pub fn generate(service_name: &str) -> Result<Self, getrandom::Error> {
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random)?;
        let mut text = format!("{service_name}_{}", hex::encode(random));
        text.push_str(&checksum(&text));
        Ok(Self(text.into()))
    }

    /// Reads a key from a request; `None` when it cannot be a key of this service.
    #[must_use]
    pub fn parse(text: &str, service_name: &str) -> Option<Self> {
        let digits = text.strip_prefix(service_name)?.strip_prefix('_')?;
        let hexadecimal = digits
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if digits.len() != DIGITS || !hexadecimal {
            return None;
        }
        let (body, sum) = text.split_at(text.len() - 2 * CHECKSUM_BYTES);
        (checksum(body) == sum).then(|| Self(text.into()))
    }

    /// Returns the key itself, to show it once to the person who created it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the digest. Only the digest is stored.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The checksum of a text: the first digits of its SHA-256.
fn checksum(text: &str) -> String {
    let mut digits = Digest::of(text.as_bytes()).to_string();
    digits.truncate(2 * CHECKSUM_BYTES);
    digits
}

// === impl KeyId ===

impl KeyId {
    /// Reads an id.
    ///
    /// # Errors
    ///
    /// [`InvalidKeyId`] for any other text, so that no id is a path to another file.
    pub fn parse(text: &str) -> Result<Self, InvalidKeyId> {
        let hexadecimal = text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() == ID_DIGITS && hexadecimal {
            Ok(Self(text.into()))
        } else {
            Err(InvalidKeyId)
        }
    }

    /// Returns the digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl Role ===

impl Role {
    /// All roles, by increasing power.
    pub const ALL: [Self; 3] = [Self::Deploy, Self::Owner, Self::Operator];

    /// Returns the name of the role.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deploy => "deploy",
            Self::Owner => "owner",
            Self::Operator => "operator",
        }
    }
}

// === impl Key ===

impl Key {
    /// Returns its id: the first digits of its digest.
    #[must_use]
    pub fn id(&self) -> KeyId {
        KeyId(self.digest.to_string()[..ID_DIGITS].into())
    }

    /// Returns whether it is for the projects of an owner. The key of an operator is for all.
    #[must_use]
    pub fn is_for(&self, owner: &str) -> bool {
        self.role == Role::Operator || *self.owner == *owner
    }

    /// Returns whether it may update this project of its owner.
    #[must_use]
    pub fn covers(&self, project: &ProjectId) -> bool {
        match &self.scope {
            Scope::All => true,
            Scope::Projects(projects) => projects.iter().any(|name| **name == *project.as_str()),
        }
    }

    /// Checks that the key is valid at this time.
    ///
    /// # Errors
    ///
    /// [`InvalidKey::Revoked`] or [`InvalidKey::Expired`].
    pub fn check(&self, now: Timestamp) -> Result<(), InvalidKey> {
        if self.revoked_at.is_some() {
            return Err(InvalidKey::Revoked);
        }
        match self.expires_at {
            Some(expires_at) if expires_at <= now => Err(InvalidKey::Expired),
            _ => Ok(()),
        }
    }
}
