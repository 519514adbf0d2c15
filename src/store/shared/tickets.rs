//! The keys of TLS session tickets of all gateways of a database. The gateway that first finds that
//! the next key is missing makes it; the others read it from their copy.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::SharedDocuments;
use crate::store::FileError;
use crate::store::documents::{SealKey, Sealed};
use crate::store::durable;
use crate::store::ticket_keys::{self, TicketKey, TicketSource, encrypting, to_text};

/// The set of the document, and its key.
pub const TICKET_KEYS: &str = "ticket-keys";
const KEY: &str = "keys";
/// The context of the encryption.
const CONTEXT: &str = "the keys of session tickets of the store";
/// The largest document that is read.
const BYTES_MAX: u64 = 256 << 10;

/// The encrypted keys in the database, read from the copy of this machine.
#[derive(Clone, Debug)]
pub struct SharedTicketKeys {
    documents: SharedDocuments,
    seal: Arc<SealKey>,
    copy: PathBuf,
}

// === impl SharedTicketKeys ===

impl SharedTicketKeys {
    /// Makes it. `copy` is the directory of the copy, whose files end with `.json`.
    #[must_use]
    pub fn new(documents: SharedDocuments, seal: Arc<SealKey>, copy: &Path) -> Self {
        Self {
            documents,
            seal,
            copy: copy.join(format!("{KEY}.json")),
        }
    }

    /// Writes keys if the database has none. Returns whether it has written them.
    ///
    /// # Errors
    ///
    /// When the database cannot be written.
    pub fn begin_with(&self, keys: &[TicketKey]) -> Result<bool, FileError> {
        let sealed = self.sealed(keys)?;
        let mut has_written = false;
        self.documents.change_in(TICKET_KEYS, KEY, |there| {
            has_written = there.is_none();
            has_written.then(|| sealed.clone())
        })?;
        Ok(has_written)
    }

    /// Returns the keys in the database.
    ///
    /// # Errors
    ///
    /// When they cannot be read or decrypted.
    pub fn stored(&self) -> Result<Vec<TicketKey>, FileError> {
        let bytes = self.documents.get_in(TICKET_KEYS, KEY)?;
        bytes.map_or_else(|| Ok(Vec::new()), |bytes| self.open(&bytes))
    }

    fn sealed(&self, keys: &[TicketKey]) -> Result<Vec<u8>, FileError> {
        let sealed = self.seal.seal(to_text(keys).as_bytes(), CONTEXT);
        let sealed = sealed.map_err(|error| unusable(io::Error::other(error)))?;
        Ok(serde_json::to_vec(&sealed).expect("texts are JSON"))
    }

    fn open(&self, bytes: &[u8]) -> Result<Vec<TicketKey>, FileError> {
        let sealed: Sealed =
            serde_json::from_slice(bytes).map_err(|error| unusable(error.into()))?;
        let text = self.seal.unseal(&sealed, CONTEXT);
        let text = text.map_err(|error| unusable(io::Error::other(error)))?;
        ticket_keys::read(&text).map_err(unusable)
    }

    /// Makes the next key, unless another gateway has made it.
    fn rotate(&self, now: u64) -> Result<Vec<TicketKey>, FileError> {
        let mut failed = None;
        let mut keys = Vec::new();
        self.documents.change_in(TICKET_KEYS, KEY, |there| {
            failed = None;
            let mut change = || {
                keys = there.map_or_else(|| Ok(Vec::new()), |bytes| self.open(bytes))?;
                match ticket_keys::rotate(&mut keys, now).map_err(unusable)? {
                    true => self.sealed(&keys).map(Some),
                    false => Ok(None),
                }
            };
            match change() {
                Ok(changed) => changed,
                Err(error) => {
                    failed = Some(error);
                    None
                }
            }
        })?;
        failed.map_or(Ok(keys), Err)
    }
}

impl TicketSource for SharedTicketKeys {
    fn current(&self, now: u64) -> Result<Vec<TicketKey>, FileError> {
        let mut keys = match durable::read(&self.copy, BYTES_MAX)? {
            Some(bytes) => self.open(&bytes)?,
            None => Vec::new(),
        };
        keys.retain(|key| !ticket_keys::is_over(key, now));
        if !ticket_keys::is_due(&keys, now) {
            return Ok(keys);
        }
        match self.rotate(now) {
            Ok(rotated) => Ok(rotated),
            // The next key is made when the database is there again.
            Err(error) if encrypting(&keys, now).is_none() => Err(error),
            Err(_away) => Ok(keys),
        }
    }
}

fn unusable(error: io::Error) -> FileError {
    FileError::on(
        "use",
        Path::new("the keys of session tickets in the database"),
    )(error)
}
