//! Admin keys: who may ask for updates.
//!
//! A key is `{service}_` and 72 hexadecimal digits: 32 random bytes and four bytes of
//! checksum. The prefix lets secret scanners find a leaked key; the checksum lets them, and
//! us, tell a key from a typo without a lookup. Hexadecimal, because it survives every
//! editor, mail client and case-folding copy.
//!
//! Only the SHA-256 of a key is kept. A key holds 256 bits from the operating system, so
//! there is nothing to guess and a slow hash would protect nothing; it would only let
//! anybody make the gateway work hard.
//!
//! Each key is one small file ([`directory`]), and a gateway holds all of them in memory
//! ([`cache`]), so that checking a key touches no disk, and a revocation holds within a
//! second without a restart and without the queue.
//!
//! **Invariant:** a [`Secret`] is printed by `key create` and read from a request. It has no
//! `Display`, and its `Debug` shows nothing.
//!
//! Sources: RFC 6750 (how keys travel); `internals/decisions#admin-keys`.

mod directory;
mod cache;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Timestamp;
use crate::digest::Digest;
use crate::site::ProjectId;

pub use cache::{KeyCache, Watch};
pub use directory::{Directory, KeyFileError, Listed};

/// Random bytes of a key.
const RANDOM_BYTES: usize = 32;
/// Digits of the random part and of the checksum.
const DIGITS: usize = 2 * (RANDOM_BYTES + CHECKSUM_BYTES);
const CHECKSUM_BYTES: usize = 4;
/// How many digits of a key's digest are its id.
const ID_DIGITS: usize = 16;

/// A key as its holder has it.
#[derive(Clone)]
pub struct Secret(Box<str>);

/// What a key is called where the key itself must not be shown.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(Box<str>);

/// Why a text is not a key's id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key id is {ID_DIGITS} hexadecimal digits, as `key list` shows them")]
pub struct InvalidKeyId;

/// What is known about a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The SHA-256 of the key.
    pub digest: Digest,
    /// Whose projects it may act on.
    pub owner: Box<str>,
    /// Which of them.
    pub scope: Scope,
    /// What its owner calls it.
    pub label: Box<str>,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is refused, if ever.
    pub expires_at: Option<Timestamp>,
    /// Since when it is refused, if it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// Which of its owner's projects a key may act on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// All, also those to come.
    All,
    /// These.
    Projects(Vec<Box<str>>),
}

/// Why a key is refused. Callers are told the same in every case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It has not the form of a key, or its checksum is wrong.
    Malformed,
    /// No such key was made here.
    Unknown,
    /// Its time is over.
    Expired,
    /// It was taken back.
    Revoked,
}

// === impl Secret ===

impl Secret {
    /// Makes a key.
    ///
    /// # Errors
    ///
    /// The operating system has no randomness to give.
    pub fn generate(service_name: &str) -> Result<Self, getrandom::Error> {
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random)?;
        let mut text = format!("{service_name}_{}", hex::encode(random));
        text.push_str(&checksum(&text));
        Ok(Self(text.into()))
    }

    /// Reads what a caller presents; `None` when it cannot be a key of this service.
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

    /// Returns the key itself: to be shown once, to the person who made it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns what is kept of it.
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

/// The checksum of everything before it: the first digits of its digest.
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
    /// [`InvalidKeyId`] for everything else, so that no id names a file elsewhere.
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

// === impl Key ===

impl Key {
    /// Returns its id: the first digits of its digest.
    #[must_use]
    pub fn id(&self) -> KeyId {
        KeyId(self.digest.to_string()[..ID_DIGITS].into())
    }

    /// Returns whether it may act on this project of its owner.
    #[must_use]
    pub fn covers(&self, project: &ProjectId) -> bool {
        match &self.scope {
            Scope::All => true,
            Scope::Projects(projects) => projects.iter().any(|name| **name == *project.as_str()),
        }
    }

    /// Says why the key is refused at this time, if it is.
    ///
    /// # Errors
    ///
    /// [`Refused::Revoked`] or [`Refused::Expired`].
    pub fn check(&self, now: Timestamp) -> Result<(), Refused> {
        if self.revoked_at.is_some() {
            return Err(Refused::Revoked);
        }
        match self.expires_at {
            Some(expires_at) if expires_at <= now => Err(Refused::Expired),
            _ => Ok(()),
        }
    }
}
