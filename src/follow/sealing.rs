//! The key pair of an edge: what a source sends for one edge only is encrypted with its public key.
//!
//! It is HPKE in base mode: X25519, HKDF-SHA256, ChaCha20-Poly1305. What it says is authenticated
//! by the signature of the source, as every message is.
//!
//! The file of the edge has one key of 32 bytes in hexadecimal digits. The private key is derived
//! from it, and it also encrypts what the edge keeps in its cache, as the key file of ACME does.
//!
//! Sources: RFC 9180; RFC 5869.

use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use aws_lc_rs::agreement::{PrivateKey, X25519};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::aws_lc_rs::hpke::DH_KEM_X25519_HKDF_SHA256_CHACHA20_POLY1305;
use rustls::crypto::hpke::{EncapsulatedSecret, Hpke as _, HpkePrivateKey, HpkePublicKey};

use crate::store::documents::{KeyFileError, SealKey};

/// The meaning of the encrypted bytes.
const INFO: &[u8] = b"waypost follow secrets 1";
/// The meaning of the derived private key.
const DERIVED: &[u8] = b"waypost edge x25519 1";
/// The beginning of the text of a public key.
const PREFIX: &str = "x25519:";
/// The length of both keys, and of an encapsulated secret, in bytes.
const KEY_BYTES: usize = 32;

/// The key pair of an edge.
pub struct EdgeKey {
    private: HpkePrivateKey,
    public: SealingKey,
}

/// The public key of an edge: `x25519:` and the key in Base64.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SealingKey([u8; KEY_BYTES]);

/// Why a text is not the public key of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the public key of an edge is `{PREFIX}` and 32 bytes in Base64, as `waypost edge key` prints it \
     on the edge"
)]
pub struct InvalidSealingKey;

/// The length of the derived private key.
struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        KEY_BYTES
    }
}

// === impl EdgeKey ===

impl fmt::Debug for EdgeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EdgeKey").field(&self.public).finish()
    }
}

impl EdgeKey {
    /// Reads the key of a file; makes the file with a new key if it does not exist. Also returns
    /// the key that encrypts the kept secrets.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or written, or holds no key.
    pub fn read_or_create(path: &Path) -> Result<(Self, SealKey), KeyFileError> {
        let seal = match SealKey::read(path)? {
            Some(seal) => seal,
            None => SealKey::make(path)?,
        };
        let text = fs::read_to_string(path).map_err(|source| KeyFileError::File {
            act: "read",
            path: path.to_owned(),
            source,
        })?;
        let key = text.lines().find_map(|line| Self::derive(line.trim()));
        let key = key.ok_or_else(|| KeyFileError::Empty(path.to_owned()))?;
        Ok((key, seal))
    }

    /// Derives the pair from a line of the file; `None` for a comment.
    fn derive(line: &str) -> Option<Self> {
        let mut first = [0; KEY_BYTES];
        hex::decode_to_slice(line, &mut first).ok()?;
        let secret = Salt::new(HKDF_SHA256, b"").extract(&first);
        let mut derived = [0; KEY_BYTES];
        let info = [DERIVED];
        let filled = secret.expand(&info, Length);
        filled.and_then(|filled| filled.fill(&mut derived)).ok()?;
        Self::of(derived)
    }

    fn of(private: [u8; KEY_BYTES]) -> Option<Self> {
        let pair = PrivateKey::from_private_key(&X25519, &private).ok()?;
        let public = pair.compute_public_key().ok()?;
        Some(Self {
            private: HpkePrivateKey::from(private.to_vec()),
            public: SealingKey(public.as_ref().try_into().ok()?),
        })
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> SealingKey {
        self.public
    }

    /// Decrypts what a source has sealed; `None` if it was sealed for another key or purpose, or
    /// was changed.
    pub(super) fn open(&self, purpose: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (secret, text) = sealed.split_at_checked(KEY_BYTES)?;
        let secret = EncapsulatedSecret(secret.to_vec());
        let suite = DH_KEM_X25519_HKDF_SHA256_CHACHA20_POLY1305;
        let opened = suite.open(&secret, INFO, purpose.as_bytes(), text, &self.private);
        opened.ok()
    }
}

// === impl SealingKey ===

impl SealingKey {
    /// Encrypts a content for the edge. The purpose is authenticated with it.
    pub(super) fn seal(&self, purpose: &str, content: &[u8]) -> Option<Vec<u8>> {
        let suite = DH_KEM_X25519_HKDF_SHA256_CHACHA20_POLY1305;
        let key = HpkePublicKey(self.0.to_vec());
        let sealed = suite.seal(INFO, purpose.as_bytes(), content, &key);
        let (secret, text) = sealed.ok()?;
        Some([&secret.0[..], &text].concat())
    }
}

impl FromStr for SealingKey {
    type Err = InvalidSealingKey;

    fn from_str(text: &str) -> Result<Self, InvalidSealingKey> {
        let encoded = text.trim().strip_prefix(PREFIX).ok_or(InvalidSealingKey)?;
        let bytes = STANDARD.decode(encoded).ok();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or(InvalidSealingKey)
    }
}

impl fmt::Display for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", STANDARD.encode(self.0))
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_edge_whose_key_it_is_opens_it() {
        let directory = tempfile::tempdir().unwrap();
        let read = |name| EdgeKey::read_or_create(&directory.path().join(name)).unwrap();
        let (one, two) = (read("one").0, read("two").0);
        assert_eq!(one.public(), read("one").0.public());
        let public: SealingKey = one.public().to_string().parse().unwrap();
        let sealed = public.seal("items", b"a private key").unwrap();
        assert!(!sealed.windows(7).any(|part| part == b"private"));
        assert_eq!(one.open("items", &sealed).unwrap(), b"a private key");
        assert_eq!(one.open("certificates", &sealed), None);
        assert_eq!(two.open("items", &sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(one.open("items", &changed), None, "{at}");
            assert_eq!(one.open("items", &sealed[..at]), None, "{at}");
        }
    }

    #[test]
    fn another_text_is_not_a_public_key() {
        for wrong in ["", "x25519:", "x25519:AAAA", "ed25519:AAAA"] {
            assert_eq!(
                wrong.parse::<SealingKey>(),
                Err(InvalidSealingKey),
                "{wrong}"
            );
        }
    }
}
