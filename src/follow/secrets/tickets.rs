//! The keys of session tickets that an edge has got from its source, in an encrypted file.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::follow::files;
use crate::store::FileError;
use crate::store::documents::{SealKey, Sealed};
use crate::store::ticket_keys::{TicketKey, TicketSource, from_text, is_over};

/// The meaning of the encrypted file.
const CONTEXT: &str = "the keys of session tickets";

/// The keys of an edge.
#[derive(Clone, Debug)]
pub struct FollowedTickets {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    file: PathBuf,
    seal: Arc<SealKey>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    keys: Vec<TicketKey>,
    /// It encrypts while there is no other: then sessions are resumed on this edge only.
    own: TicketKey,
    is_new: bool,
}

impl FollowedTickets {
    /// Opens the file, which need not exist.
    ///
    /// # Errors
    ///
    /// When the system gives no random bytes.
    pub fn open(file: PathBuf, seal: Arc<SealKey>) -> io::Result<Self> {
        let read = || {
            let sealed: Sealed = serde_json::from_slice(&fs::read(&file).ok()?).ok()?;
            let text = String::from_utf8(seal.unseal(&sealed, CONTEXT).ok()?).ok()?;
            from_text(&text)
        };
        let state = State {
            keys: read().unwrap_or_default(),
            own: TicketKey::random(0)?,
            is_new: false,
        };
        let shared = Shared {
            file,
            seal,
            state: Mutex::new(state),
            changed: Condvar::new(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Uses these keys, in the form of [`crate::store::ticket_keys::to_text`].
    pub(super) fn replace(&self, text: &str) -> io::Result<()> {
        let keys = from_text(text).ok_or_else(|| io::Error::other("they cannot be read"))?;
        let mut state = self.state();
        state.keys = keys;
        state.is_new = true;
        drop(state);
        self.shared.changed.notify_all();
        let sealed = self.shared.seal.seal(text.as_bytes(), CONTEXT);
        let sealed = sealed.map_err(io::Error::other)?;
        files::replace(&self.shared.file, &serde_json::to_vec(&sealed)?)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is an assignment, so the value is whole after a panic too.
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

impl TicketSource for FollowedTickets {
    fn current(&self, now: u64) -> Result<Vec<TicketKey>, FileError> {
        let mut state = self.state();
        state.is_new = false;
        let usable = state.keys.iter().filter(|key| !is_over(key, now));
        let mut keys: Vec<TicketKey> = usable.cloned().collect();
        keys.push(state.own.clone());
        Ok(keys)
    }

    fn wait(&self, time: Duration) {
        let state = self.state();
        let waiting = self
            .shared
            .changed
            .wait_timeout_while(state, time, |state| !state.is_new);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::documents::SealKey;
    use crate::store::ticket_keys::{encrypting, to_text};

    #[test]
    fn keys_are_kept_encrypted_and_a_key_of_its_own_is_used_without_them() {
        let root = tempfile::tempdir().unwrap();
        let key = root.path().join("key");
        SealKey::create(&key).unwrap();
        let open = || {
            let seal = SealKey::read(&key).unwrap().unwrap();
            FollowedTickets::open(root.path().join("tickets"), Arc::new(seal)).unwrap()
        };
        let now = 1_700_000_000;
        let tickets = open();
        let own = tickets.current(now).unwrap();
        assert_eq!(own.len(), 1);
        let key = TicketKey::random(now).unwrap();
        tickets
            .replace(&to_text(std::slice::from_ref(&key)))
            .unwrap();
        for tickets in [tickets, open()] {
            let keys = tickets.current(now).unwrap();
            assert_eq!(encrypting(&keys, now), Some(&key));
            // Long after the source went away, its keys are not used any more.
            assert_eq!(tickets.current(now + 100 * 3600).unwrap().len(), 1);
        }
        let kept = fs::read_to_string(root.path().join("tickets")).unwrap();
        assert!(!kept.contains(&hex::encode(key.key)), "{kept}");
    }
}
