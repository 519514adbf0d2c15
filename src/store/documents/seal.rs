//! Encryption of secrets at rest: AES-256-GCM, with a key from a file.
//!
//! The file holds a key of 32 bytes in each line, as 64 hexadecimal digits. The first key
//! encrypts. All keys decrypt, so a new key can be put before the old one. The name of the document
//! is authenticated with its secret: a secret that was copied to another document is not decrypted.
//!
//! Sources: NIST SP 800-38D; RFC 5116 §5.2.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// The length of a key, in bytes.
const KEY_BYTES: usize = 32;
/// How many bytes of the digest of a key name it.
const ID_BYTES: usize = 4;
/// The largest file of keys.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The keys of a file.
pub struct SealKey {
    /// The name of each key, and the key. There is at least one.
    keys: Vec<(String, LessSafeKey)>,
}

/// An encrypted secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sealed {
    /// Always `AES-256-GCM`.
    algorithm: String,
    /// Which key has encrypted it.
    key: String,
    /// The nonce, in hexadecimal digits.
    nonce: String,
    /// Ciphertext and tag, in base 64.
    text: String,
}

/// Why a file of keys cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The file cannot be read or written.
    #[error("{act} the key file {}", path.display())]
    File {
        /// The operation that failed.
        act: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A line is not a key.
    #[error("line {line} of the key file {} is not 64 hexadecimal digits", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
    },
    /// There is no key in the file.
    #[error("the key file {} holds no key", .0.display())]
    Empty(PathBuf),
    /// The system gives no random bytes.
    #[error("make a key")]
    Random(#[from] getrandom::Error),
}

/// Why a secret cannot be decrypted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnsealError {
    /// The file of keys has no such key.
    #[error("it is encrypted with the key {0}, which the key file does not hold")]
    UnknownKey(String),
    /// The secret was changed, or belongs to another document.
    #[error("its secret is damaged")]
    Damaged,
}

// === impl SealKey ===

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.keys.iter().map(|(id, _)| id).collect();
        f.debug_tuple("SealKey").field(&ids).finish()
    }
}

impl SealKey {
    /// Reads the keys of a file; `None` if there is no file.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] when the file cannot be used.
    pub fn read(path: &Path) -> Result<Option<Self>, KeyFileError> {
        let on = |source| KeyFileError::File {
            act: "read",
            path: path.to_owned(),
            source,
        };
        let text = match fs::metadata(path) {
            Ok(metadata) if metadata.len() > FILE_BYTES_MAX => {
                return Err(on(io::ErrorKind::FileTooLarge.into()));
            }
            Ok(_) => fs::read_to_string(path).map_err(on)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(on(error)),
        };
        let mut keys = Vec::new();
        for (line, text) in text.lines().enumerate() {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let wrong = || KeyFileError::Line {
                path: path.to_owned(),
                line: line + 1,
            };
            let mut key = [0; KEY_BYTES];
            hex::decode_to_slice(text, &mut key).map_err(|_not_hex| wrong())?;
            keys.push(named(&key).ok_or_else(wrong)?);
        }
        match keys.is_empty() {
            true => Err(KeyFileError::Empty(path.to_owned())),
            false => Ok(Some(Self { keys })),
        }
    }

    /// Writes a file with a new key, which only its owner can read.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] when there is such a file, or it cannot be written.
    pub fn create(path: &Path) -> Result<(), KeyFileError> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key)?;
        let write = || {
            if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
                fs::create_dir_all(above)?;
            }
            let mut options = fs::OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)?;
            writeln!(file, "{}", hex::encode(key))?;
            file.sync_all()
        };
        write().map_err(|source| KeyFileError::File {
            act: "write",
            path: path.to_owned(),
            source,
        })
    }

    /// Makes the file and reads it. If another process makes it at the same moment, reads that
    /// file.
    ///
    /// # Errors
    ///
    /// When the file cannot be written or read.
    pub fn make(path: &Path) -> Result<Self, KeyFileError> {
        match Self::create(path) {
            Err(KeyFileError::File { source, .. })
                if source.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        Self::read(path)?.ok_or_else(|| KeyFileError::Empty(path.to_owned()))
    }

    /// Encrypts a secret. `context` names the document that it belongs to.
    ///
    /// # Errors
    ///
    /// When the system gives no random bytes.
    pub fn seal(&self, secret: &[u8], context: &str) -> Result<Sealed, KeyFileError> {
        let (id, key) = &self.keys[0];
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce)?;
        let mut text = secret.to_vec();
        let aad = Aad::from(context.as_bytes());
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut text)
            .map_err(|_unspecified| getrandom::Error::UNEXPECTED)?;
        Ok(Sealed {
            algorithm: ALGORITHM.to_owned(),
            key: id.clone(),
            nonce: hex::encode(nonce),
            text: BASE64_STANDARD.encode(text),
        })
    }

    /// Returns whether the first key has encrypted a secret.
    #[must_use]
    pub fn is_newest(&self, sealed: &Sealed) -> bool {
        self.keys[0].0 == sealed.key
    }

    /// Decrypts a secret that belongs to `context`.
    ///
    /// # Errors
    ///
    /// [`UnsealError`] when no key decrypts it.
    pub fn unseal(&self, sealed: &Sealed, context: &str) -> Result<Vec<u8>, UnsealError> {
        let key = self.keys.iter().find(|(id, _)| *id == sealed.key);
        let (_, key) = key.ok_or_else(|| UnsealError::UnknownKey(sealed.key.clone()))?;
        let mut nonce = [0; NONCE_LEN];
        let decoded = hex::decode_to_slice(&sealed.nonce, &mut nonce);
        let text = BASE64_STANDARD.decode(&sealed.text);
        let (Ok(()), Ok(mut text), true) = (decoded, text, sealed.algorithm == ALGORITHM) else {
            return Err(UnsealError::Damaged);
        };
        let nonce = Nonce::assume_unique_for_key(nonce);
        let opened = key.open_in_place(nonce, Aad::from(context.as_bytes()), &mut text);
        match opened {
            Ok(secret) => Ok(secret.to_vec()),
            Err(_unspecified) => Err(UnsealError::Damaged),
        }
    }
}

const ALGORITHM: &str = "AES-256-GCM";

/// Returns a key with its name.
fn named(key: &[u8; KEY_BYTES]) -> Option<(String, LessSafeKey)> {
    let digest = Digest::of(&[&b"waypost key "[..], key].concat());
    let unbound = UnboundKey::new(&AES_256_GCM, key).ok()?;
    Some((
        hex::encode(&digest.as_bytes()[..ID_BYTES]),
        LessSafeKey::new(unbound),
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_secret_is_decrypted_with_its_key_for_its_owner_only() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("deep/key");
        assert!(SealKey::read(&path).unwrap().is_none());
        SealKey::create(&path).unwrap();
        assert!(SealKey::create(&path).is_err(), "a key is never replaced");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let key = SealKey::read(&path).unwrap().unwrap();
        let sealed = key.seal(b"secret", "docs.acme.com").unwrap();
        assert_ne!(sealed, key.seal(b"secret", "docs.acme.com").unwrap());
        assert_eq!(key.unseal(&sealed, "docs.acme.com").unwrap(), b"secret");
        assert!(matches!(
            key.unseal(&sealed, "docs.evil.com"),
            Err(UnsealError::Damaged)
        ));
        let mut changed = sealed.clone();
        changed.text.replace_range(
            ..1,
            if sealed.text.starts_with('A') {
                "B"
            } else {
                "A"
            },
        );
        assert!(key.unseal(&changed, "docs.acme.com").is_err());

        // A new key before the old one.
        let old = fs::read_to_string(&path).unwrap();
        let other = root.path().join("other");
        SealKey::create(&other).unwrap();
        let new = fs::read_to_string(&other).unwrap();
        fs::write(&path, format!("# new\n{new}\n{old}")).unwrap();
        let both = SealKey::read(&path).unwrap().unwrap();
        assert_eq!(both.unseal(&sealed, "docs.acme.com").unwrap(), b"secret");
        let again = both.seal(b"secret", "docs.acme.com").unwrap();
        assert!(matches!(
            key.unseal(&again, "docs.acme.com"),
            Err(UnsealError::UnknownKey(_))
        ));
    }

    #[test]
    fn a_file_that_holds_no_key_is_named_with_the_line() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("key");
        for (text, expected) in [
            ("", "holds no key"),
            ("# note\nabc\n", "line 2 of the key file"),
        ] {
            fs::write(&path, text).unwrap();
            let error = SealKey::read(&path).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
