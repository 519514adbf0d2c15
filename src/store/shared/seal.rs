//! The key file of gateways that share a database: all of them must have the same keys.
//!
//! The database has a text that was encrypted with the key file of the first gateway. A gateway
//! that cannot decrypt it has another file: it would serve no certificate, and write secrets that
//! no other one can read.

use std::path::{Path, PathBuf};

use super::SharedDocuments;
use crate::error::chain;
use crate::store::FileError;
use crate::store::documents::{KeyFileError, SealKey, Sealed};

/// The set and the key of the encrypted text.
const SET: &str = "seal";
const KEY: &str = "check";
/// The context of the encryption, and the text.
const CONTEXT: &str = "the key file of the store";
const TEXT: &[u8] = b"waypost";

/// Why the key file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// It cannot be read or written.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// It is missing, and the database has secrets.
    #[error(
        "the key file {} is missing, and the secrets in the database are encrypted: copy the key \
         file of another gateway to this machine, or restore it",
        .0.display()
    )]
    Missing(PathBuf),
    /// It is that of another store.
    #[error(
        "the key file {} is not that of the other gateways: the database has secrets that it \
         does not decrypt ({why}); copy the key file of another gateway to this machine",
        file.display()
    )]
    Other {
        /// The file.
        file: PathBuf,
        /// Why they are not decrypted.
        why: String,
    },
    /// It is missing, and the database cannot be asked whether it has secrets.
    #[error("the key file {} is missing, and the database cannot be asked whether other gateways have one: copy it from one of them, or start again when the database can be reached", file.display())]
    Unknown {
        /// The file.
        file: PathBuf,
        /// Why the database cannot be asked.
        source: FileError,
    },
}

impl SharedDocuments {
    /// Reads the key file, and makes it if the database has no secrets yet. While the database
    /// cannot be reached, a key file that exists is used as it is.
    ///
    /// # Errors
    ///
    /// [`SealError`], for example if the other gateways have another key file.
    pub fn open_seal(&self, file: &Path) -> Result<SealKey, SealError> {
        let read = SealKey::read(file)?;
        let check = match self.get_in(SET, KEY) {
            Ok(check) => check,
            Err(source) => {
                return read.ok_or_else(|| SealError::Unknown {
                    file: file.to_owned(),
                    source,
                });
            }
        };
        let seal = match read {
            Some(seal) => seal,
            None if check.is_some() => return Err(SealError::Missing(file.to_owned())),
            None => SealKey::make(file)?,
        };
        let own = seal.seal(TEXT, CONTEXT)?;
        let own = serde_json::to_vec(&own).expect("texts are JSON");
        // Another gateway may write its own at the same moment: the first one stays.
        let check = check.or_else(|| self.note(|there| there.is_none().then(|| own.clone())));
        let Some(check) = check else { return Ok(seal) };
        let other = |why: String| SealError::Other {
            file: file.to_owned(),
            why,
        };
        let sealed: Sealed =
            serde_json::from_slice(&check).map_err(|error| other(error.to_string()))?;
        let text = seal.unseal(&sealed, CONTEXT);
        text.map_err(|error| other(error.to_string()))?;
        if !seal.is_newest(&sealed) {
            // The first key of the file is new; the older one may be removed later.
            self.note(|_older| Some(own.clone()));
        }
        Ok(seal)
    }

    /// Changes the note of the key file in the database, and returns it. A failure is only logged:
    /// the next start tries again.
    fn note(&self, change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>> + Send) -> Option<Vec<u8>> {
        self.change_in(SET, KEY, change).unwrap_or_else(|error| {
            log::warn!(target: "store", "cannot record the key file in the database: {}", chain(&error));
            None
        })
    }
}
