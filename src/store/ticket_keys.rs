//! The keys of TLS session tickets, which several processes share.
//!
//! They are in a file of the store ([`TicketKeys`]), or encrypted in the database of a store of
//! several machines ([`SharedTicketKeys`](super::shared::SharedTicketKeys)).
//!
//! A ticket that one process has made can be used with another one, and after a restart. The file
//! can be read by its owner only. A key encrypts for six hours and decrypts for twelve hours more.
//! The next key is written ten minutes before it is used, so that every process has it by then.
//!
//! Source: RFC 8446 §4.6.1 (a ticket lives at most seven days), §C.4 and RFC 5077 §5.5 (rotation).

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::durable::{self, FileError};
use super::local::WriterLock;

/// The length of a key, in bytes.
pub const KEY_BYTES: usize = 32;
/// The length of the name of a key, in bytes.
pub const ID_BYTES: usize = 16;
/// How long a key encrypts.
const ENCRYPTS_SECONDS: u64 = 6 * 3600;
/// How long a ticket lives.
pub const TICKET_TIME: Duration = Duration::from_secs(12 * 3600);
/// How long before it is used a key is written.
const AHEAD_SECONDS: u64 = 600;
/// The version of the file.
const VERSION: u64 = 1;
/// The largest file that is read.
const BYTES_MAX: u64 = 64 << 10;

/// A key of session tickets.
#[derive(Clone, PartialEq, Eq)]
pub struct TicketKey {
    /// Its name, which a ticket begins with.
    pub id: [u8; ID_BYTES],
    /// The key.
    pub key: [u8; KEY_BYTES],
    /// From when it encrypts, in seconds after the Unix epoch.
    pub from: u64,
}

/// The content of the file.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeysDocument {
    version: u64,
    keys: Vec<WrittenKey>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenKey {
    id: String,
    key: String,
    from: u64,
}

/// The file of the keys of session tickets.
#[derive(Clone, Debug)]
pub struct TicketKeys {
    file: PathBuf,
    /// The directory of the store, which has the temporary files.
    store: PathBuf,
}

/// A place that keys come from: a file or the database of the store, or the node that an edge
/// follows.
pub trait TicketSource: std::fmt::Debug + Send + Sync {
    /// Returns the keys, the newest first. One of them always encrypts.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    fn current(&self, now: u64) -> Result<Vec<TicketKey>, FileError>;

    /// Waits until there may be other keys, at most this long.
    fn wait(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

// === impl TicketKey ===

impl std::fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TicketKey")
            .field("id", &hex::encode(self.id))
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

impl TicketKey {
    /// Makes a key.
    ///
    /// # Errors
    ///
    /// When the system gives no random bytes.
    pub fn random(from: u64) -> io::Result<Self> {
        let mut made = Self {
            id: [0; ID_BYTES],
            key: [0; KEY_BYTES],
            from,
        };
        let filled = getrandom::fill(&mut made.id).and_then(|()| getrandom::fill(&mut made.key));
        filled.map_err(io::Error::other)?;
        Ok(made)
    }
}

// === impl TicketKeys ===

impl TicketKeys {
    /// Makes keys that are in a file, which is created when it is needed. `store` is the directory
    /// of a store on the same file system, which has the temporary files.
    #[must_use]
    pub fn new(file: PathBuf, store: PathBuf) -> Self {
        Self { file, store }
    }

    /// Returns the keys in the file, as they are.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or a newer program has written it.
    pub fn stored(&self) -> Result<Vec<TicketKey>, FileError> {
        self.read()
    }

    /// Writes keys if the file has none.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or written.
    pub fn begin_with(&self, keys: &[TicketKey]) -> Result<(), FileError> {
        let _lock = self.lock()?;
        match self.read()?.is_empty() {
            true => self.write(keys),
            false => Ok(()),
        }
    }

    /// Waits until no other process changes the keys. The lock ends when the file is dropped.
    fn lock(&self) -> Result<File, FileError> {
        let lock = self.file.with_extension("lock");
        let mut options = OpenOptions::new();
        let opened = options.create(true).truncate(false).write(true).open(&lock);
        let locked = opened.map_err(FileError::on("open", &lock))?;
        locked.lock().map_err(FileError::on("lock", &lock))?;
        Ok(locked)
    }

    /// Makes the keys that are missing and removes those that are over.
    fn rotate(&self, now: u64) -> Result<Vec<TicketKey>, FileError> {
        let mut keys = self.read()?;
        keys.retain(|key| !is_over(key, now));
        if !is_due(&keys, now) {
            return Ok(keys);
        }
        // Only one process makes the next key.
        let _lock = self.lock()?;
        keys = self.read()?;
        let rotated = rotate(&mut keys, now);
        if rotated.map_err(FileError::on("make a key for", &self.file))? {
            self.write(&keys)?;
        }
        Ok(keys)
    }

    fn read(&self) -> Result<Vec<TicketKey>, FileError> {
        let Some(bytes) = durable::read(&self.file, BYTES_MAX)? else {
            return Ok(Vec::new());
        };
        read(&bytes).map_err(FileError::on("use", &self.file))
    }

    fn write(&self, keys: &[TicketKey]) -> Result<(), FileError> {
        let text = to_text(keys);
        // The caller has the lock.
        durable::replace(
            WriterLock::take(&self.store)?.temp(),
            &self.file,
            text.as_bytes(),
        )
    }
}

impl TicketSource for TicketKeys {
    /// A file that is damaged is replaced.
    fn current(&self, now: u64) -> Result<Vec<TicketKey>, FileError> {
        self.rotate(now)
    }
}

/// Reads the content of a file. A damaged file has no keys.
///
/// # Errors
///
/// When a newer program has written it.
pub(super) fn read(bytes: &[u8]) -> io::Result<Vec<TicketKey>> {
    let written: KeysDocument = serde_json::from_slice(bytes).unwrap_or_default();
    if written.version > VERSION {
        let newer = written.version;
        let why = format!("it has version {newer}; this program reads versions up to {VERSION}");
        return Err(io::Error::other(why));
    }
    Ok(keys_of(written))
}

/// Removes the keys that are over, and adds the next one when it is time. Returns whether it has
/// added one.
///
/// # Errors
///
/// When the system gives no random bytes.
pub(super) fn rotate(keys: &mut Vec<TicketKey>, now: u64) -> io::Result<bool> {
    keys.retain(|key| !is_over(key, now));
    if !is_due(keys, now) {
        return Ok(false);
    }
    let next = match keys.first() {
        Some(newest) => (newest.from + ENCRYPTS_SECONDS).max(now),
        None => now,
    };
    let has_current = keys.iter().any(|key| encrypts(key, now));
    let from = if has_current { next } else { now };
    keys.insert(0, TicketKey::random(from)?);
    Ok(true)
}

/// Returns the keys as a text that [`from_text`] reads.
#[must_use]
pub fn to_text(keys: &[TicketKey]) -> String {
    let keys = keys.iter().map(|key| WrittenKey {
        id: hex::encode(key.id),
        key: hex::encode(key.key),
        from: key.from,
    });
    let written = KeysDocument {
        version: VERSION,
        keys: keys.collect(),
    };
    serde_json::to_string(&written).expect("numbers and texts are JSON")
}

/// Reads the keys of a text; `None` if a newer program has written it, or it is something else.
#[must_use]
pub fn from_text(text: &str) -> Option<Vec<TicketKey>> {
    let written: KeysDocument = serde_json::from_str(text).ok()?;
    (written.version == VERSION).then(|| keys_of(written))
}

fn keys_of(written: KeysDocument) -> Vec<TicketKey> {
    let keys = written.keys.into_iter().filter_map(|written| {
        let mut key = TicketKey {
            id: [0; ID_BYTES],
            key: [0; KEY_BYTES],
            from: written.from,
        };
        hex::decode_to_slice(&written.id, &mut key.id).ok()?;
        hex::decode_to_slice(&written.key, &mut key.key).ok()?;
        Some(key)
    });
    keys.collect()
}

/// Returns whether no ticket of a key is alive any more.
#[must_use]
pub fn is_over(key: &TicketKey, now: u64) -> bool {
    now >= key.from + ENCRYPTS_SECONDS + TICKET_TIME.as_secs()
}

/// Returns whether a key encrypts at a time.
fn encrypts(key: &TicketKey, now: u64) -> bool {
    (key.from..key.from + ENCRYPTS_SECONDS).contains(&now)
}

/// Returns the key that encrypts at a time: the newest that has begun.
#[must_use]
pub fn encrypting(keys: &[TicketKey], now: u64) -> Option<&TicketKey> {
    keys.iter().find(|key| key.from <= now)
}

/// Returns whether the next key has to be made.
pub(super) fn is_due(keys: &[TicketKey], now: u64) -> bool {
    let newest = keys.first();
    newest.is_none_or(|newest| now + AHEAD_SECONDS >= newest.from + ENCRYPTS_SECONDS)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::*;

    const BEGIN: u64 = 1_700_000_000;
    const HOUR: u64 = 3600;

    fn ticket_keys(root: &Path) -> TicketKeys {
        fs::create_dir_all(root.join("temp")).unwrap();
        TicketKeys::new(root.join("ticket-keys"), root.to_owned())
    }

    #[test]
    fn keys_are_shared_and_replaced_before_they_are_over() {
        let root = tempfile::tempdir().unwrap();
        let (one, two) = (ticket_keys(root.path()), ticket_keys(root.path()));
        let first = one.current(BEGIN).unwrap();
        assert_eq!((first.len(), &first), (1, &two.current(BEGIN).unwrap()));
        // The next key exists before it encrypts.
        let both = two.current(BEGIN + 6 * HOUR - 600).unwrap();
        assert_eq!(both.len(), 2);
        assert_eq!(both, one.current(BEGIN + 6 * HOUR - 599).unwrap());
        let at = |now| encrypting(&both, now).unwrap().id;
        assert_eq!(at(BEGIN + 6 * HOUR - 1), first[0].id);
        assert_eq!(at(BEGIN + 6 * HOUR), both[0].id);
        // A ticket of the first key lives twelve hours, and no longer.
        let keys = |now| {
            let keys = one.current(now).unwrap();
            assert!(encrypting(&keys, now).is_some_and(|key| encrypts(key, now)));
            keys
        };
        assert!(keys(BEGIN + 17 * HOUR).contains(&first[0]));
        assert!(!keys(BEGIN + 18 * HOUR).contains(&first[0]));
        // After a long pause of all processes, a new key encrypts at once.
        assert_eq!(keys(BEGIN + 1000 * HOUR).len(), 1);
    }

    #[test]
    fn a_damaged_file_is_replaced_and_a_newer_one_is_not() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("ticket-keys");
        let keys = ticket_keys(root.path());
        fs::write(&file, "{").unwrap();
        assert_eq!(keys.current(BEGIN).unwrap().len(), 1);
        let newer = "{\"version\":2,\"keys\":[]}";
        fs::write(&file, newer).unwrap();
        assert!(keys.current(BEGIN).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), newer);
    }

    #[test]
    fn the_file_can_be_read_by_its_owner_only() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("ticket-keys");
        ticket_keys(root.path()).current(BEGIN).unwrap();
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
}
