//! Digests: the SHA-256 of bytes that are served or stored.
//!
//! The store names files by their digest, an `ETag` contains it, and a client checks with it what
//! it fetched (`"digest"` in the list of skills, version 0.2.0). Its text form is 64 lower-case
//! hexadecimal digits: real clients drop a skill whose digest is in upper case.
//!
//! Sources: FIPS 180-4; Agent Skills Discovery 0.2.0, "Discovery Index".

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// Computes the digest of bytes that come in pieces.
#[derive(Clone, Debug, Default)]
pub struct Hasher(Sha256);

/// Why a text is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not 64 lower-case hexadecimal digits")]
pub struct InvalidDigest(String);

// === impl Digest ===

impl Digest {
    /// Computes the digest of `bytes`.
    ///
    /// ```
    /// use waypost::digest::Digest;
    ///
    /// assert!(Digest::of(b"").to_string().starts_with("e3b0c44298fc1c14"));
    /// ```
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Reads the 64 lower-case hexadecimal digits that [`Digest`]'s `Display` writes.
    ///
    /// # Errors
    ///
    /// [`InvalidDigest`] for everything else, also for upper-case digits.
    pub fn parse(text: &str) -> Result<Self, InvalidDigest> {
        let mut digest = [0; 32];
        let is_lower_case = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        match hex::decode_to_slice(text, &mut digest) {
            Ok(()) if is_lower_case => Ok(Self(digest)),
            _ => Err(InvalidDigest(text.chars().take(80).collect())),
        }
    }

    /// Returns the 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Makes a digest of the 32 bytes of one.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

// === impl Hasher ===

impl Hasher {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest of all bytes.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_digest_parses_back() {
        let digest = Digest::of(b"skill");
        assert_eq!(Digest::parse(&digest.to_string()), Ok(digest));
    }

    #[test]
    fn pieces_have_the_digest_of_the_whole() {
        let mut hasher = Hasher::default();
        hasher.update(b"sk");
        hasher.update(b"ill");
        assert_eq!(hasher.finish(), Digest::of(b"skill"));
    }

    #[test]
    fn upper_case_short_and_long_texts_are_not_digests() {
        let text = Digest::of(b"skill").to_string();
        for wrong in [
            text.to_uppercase(),
            text[1..].to_owned(),
            format!("{text}00"),
            String::new(),
            "é".repeat(32),
        ] {
            assert!(Digest::parse(&wrong).is_err(), "{wrong}");
        }
    }
}
