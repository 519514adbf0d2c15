//! Signatures of messages: Ed25519 (RFC 8032).
//!
//! What is signed is a fixed text and the SHA-256 of the content, so that a signature has one
//! meaning only.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::digest::Digest;

/// What every signed text begins with.
const CONTEXT: &[u8] = b"waypost follow 1\n";
/// What the text of a public key begins with.
const PREFIX: &str = "ed25519:";
/// The length of a public key, in bytes.
const PUBLIC_KEY_BYTES: usize = 32;

/// The private key of a source.
pub struct SigningKey(Ed25519KeyPair);

/// The public key of a source: `ed25519:` and the key in Base64.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey([u8; PUBLIC_KEY_BYTES]);

/// Why a text is not a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a public key is `{PREFIX}` and 32 bytes in Base64, as `waypost edge key` prints it")]
pub struct InvalidPublicKey;

/// Why the private key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file cannot be read or written.
    #[error("use the key in {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The file has no such key.
    #[error("{} is not the key of a source", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
    },
}

// === impl SigningKey ===

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(…)")
    }
}

impl SigningKey {
    /// Reads the key of a file; makes the file with a new key if it does not exist.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or written, or has something else.
    pub fn read_or_create(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::File {
            path: path.to_owned(),
            source,
        };
        match fs::read_to_string(path) {
            Ok(text) => return Self::parse(&text, path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        let document = Ed25519KeyPair::generate()
            .and_then(|pair| pair.to_pkcs8())
            .map_err(|error| failed(io::Error::other(error.to_string())))?;
        let text = STANDARD.encode(document.as_ref());
        // Another process of the same store may do the same now: the first link is kept.
        let partial = path.with_extension(format!("partial-{}", std::process::id()));
        let linked = write_private(&partial, &text).and_then(|()| fs::hard_link(&partial, path));
        let _absent = fs::remove_file(&partial);
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
            _ => {
                let text = fs::read_to_string(path).map_err(failed)?;
                Self::parse(&text, path)
            }
        }
    }

    fn parse(text: &str, path: &Path) -> Result<Self, KeyError> {
        STANDARD
            .decode(text.trim())
            .ok()
            .and_then(|document| Ed25519KeyPair::from_pkcs8(&document).ok())
            .map(Self)
            .ok_or_else(|| KeyError::Invalid {
                path: path.to_owned(),
            })
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        let bytes = self.0.public_key().as_ref();
        PublicKey(bytes.try_into().expect("a key of Ed25519 has 32 bytes"))
    }

    /// Signs a content. The result is the value of a field.
    #[must_use]
    pub fn sign(&self, content: &[u8]) -> String {
        STANDARD.encode(self.0.sign(&signed(content)))
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path)?;
    writeln!(file, "{text}")?;
    file.sync_all()
}

fn signed(content: &[u8]) -> Vec<u8> {
    [CONTEXT, Digest::of(content).as_bytes()].concat()
}

// === impl PublicKey ===

impl PublicKey {
    /// Returns whether this key has signed a content.
    #[must_use]
    pub fn has_signed(&self, content: &[u8], signature: &[u8]) -> bool {
        let Ok(signature) = STANDARD.decode(signature) else {
            return false;
        };
        let key = UnparsedPublicKey::new(&ED25519, self.0);
        key.verify(&signed(content), &signature).is_ok()
    }
}

impl FromStr for PublicKey {
    type Err = InvalidPublicKey;

    fn from_str(text: &str) -> Result<Self, InvalidPublicKey> {
        let encoded = text.strip_prefix(PREFIX).ok_or(InvalidPublicKey)?;
        let bytes = STANDARD.decode(encoded).ok();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or(InvalidPublicKey)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_the_content_that_a_key_has_signed_is_accepted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let key = SigningKey::read_or_create(&path).unwrap();
        let again = SigningKey::read_or_create(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(key.public(), again.public());
        let public: PublicKey = key.public().to_string().parse().unwrap();
        let signature = again.sign(b"content");
        assert!(public.has_signed(b"content", signature.as_bytes()));
        assert!(!public.has_signed(b"other", signature.as_bytes()));
        assert!(!public.has_signed(b"content", b""));
        let other = SigningKey::read_or_create(&directory.path().join("other")).unwrap();
        assert!(!other.public().has_signed(b"content", signature.as_bytes()));
    }

    #[test]
    fn another_text_is_not_a_key() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        fs::write(&path, "AAAA\n").unwrap();
        let error = SigningKey::read_or_create(&path).unwrap_err();
        assert!(matches!(error, KeyError::Invalid { .. }), "{error}");
        for wrong in ["", "ed25519:", "ed25519:AAAA", "AAAA"] {
            assert_eq!(wrong.parse::<PublicKey>(), Err(InvalidPublicKey), "{wrong}");
        }
    }
}
