//! Session tickets with keys that processes share.
//!
//! A ticket is `key name (16 bytes) ‖ nonce (12 bytes) ‖ ciphertext and tag`, encrypted with
//! AES-256-GCM. The keys come from a [`TicketSource`]; a thread looks for new ones. If they
//! cannot be read, this process uses a key of its own: sessions are resumed until it ends.
//!
//! Source: RFC 5077 §4 (the form is up to the server), RFC 8446 §4.6.1.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use rustls::server::ProducesTickets;

use crate::clock::Clock;
use crate::error::chain;
use crate::store::ticket_keys::{ID_BYTES, TICKET_TIME, TicketKey, TicketSource, encrypting};
use crate::telemetry::Part;

/// How often the keys are read.
const INTERVAL: Duration = Duration::from_secs(60);
/// The longest ticket that is decrypted.
const TICKET_BYTES_MAX: usize = 16 << 10;

/// Makes and reads session tickets.
#[derive(Debug)]
pub struct Tickets {
    keys: Arc<ArcSwap<Keys>>,
}

/// Keeps the keys of [`Tickets`] up to date.
#[derive(Debug)]
pub struct TicketRotation {
    keys: Arc<ArcSwap<Keys>>,
    source: Box<dyn TicketSource>,
    part: Part,
    clock: Clock,
}

/// Keys that are ready to be used.
struct Keys {
    /// The position of the key that encrypts.
    encrypts: usize,
    all: Vec<([u8; ID_BYTES], LessSafeKey)>,
}

// === impl Keys ===

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys")
            .field("count", &self.all.len())
            .finish()
    }
}

impl Keys {
    fn new(keys: &[TicketKey], now: u64) -> Self {
        let current = encrypting(keys, now).map(|key| key.id);
        let all: Vec<_> = keys
            .iter()
            .filter_map(|key| {
                let unbound = UnboundKey::new(&AES_256_GCM, &key.key).ok()?;
                Some((key.id, LessSafeKey::new(unbound)))
            })
            .collect();
        let mut ids = all.iter().map(|(id, _)| Some(*id));
        Self {
            encrypts: ids.position(|id| id == current).unwrap_or(0),
            all,
        }
    }
}

// === impl Tickets ===

impl Tickets {
    /// Makes it with the keys of a source, and the work that keeps them up to date.
    ///
    /// # Errors
    ///
    /// When the system gives no random bytes.
    pub fn new(
        source: Box<dyn TicketSource>,
        part: Part,
        clock: Clock,
    ) -> std::io::Result<(Arc<Self>, TicketRotation)> {
        let own = TicketKey::random(0)?;
        let keys = Keys::new(std::slice::from_ref(&own), clock.unix_seconds());
        let keys = Arc::new(ArcSwap::from_pointee(keys));
        let rotation = TicketRotation {
            keys: Arc::clone(&keys),
            source,
            part,
            clock,
        };
        rotation.refresh();
        Ok((Arc::new(Self { keys }), rotation))
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        u32::try_from(TICKET_TIME.as_secs()).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let keys = self.keys.load();
        let (id, key) = keys.all.get(keys.encrypts)?;
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).ok()?;
        let mut text = plain.to_vec();
        let aad = Aad::from(id);
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut text)
            .ok()?;
        Some([&id[..], &nonce, &text].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        if ticket.len() > TICKET_BYTES_MAX {
            return None;
        }
        let (id, rest) = ticket.split_first_chunk::<ID_BYTES>()?;
        let (nonce, text) = rest.split_first_chunk::<NONCE_LEN>()?;
        let keys = self.keys.load();
        let (_, key) = keys.all.iter().find(|(known, _)| known == id)?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let plain = key.open_in_place(nonce, Aad::from(id), &mut text).ok()?;
        Some(plain.to_vec())
    }
}

// === impl TicketRotation ===

impl TicketRotation {
    /// Reads the keys, and makes the next one when it is time. It never returns.
    pub fn run(self) {
        loop {
            self.source.wait(INTERVAL);
            self.refresh();
        }
    }

    fn refresh(&self) {
        let now = self.clock.unix_seconds();
        match self.source.current(now) {
            Ok(keys) => {
                self.keys.store(Arc::new(Keys::new(&keys, now)));
                self.part.recover();
            }
            // The keys before stay in use.
            Err(error) => self.part.fail(chain(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ticket_keys::TicketKeys;
    use crate::telemetry::Health;

    fn ticket_keys(root: &std::path::Path, name: &str) -> TicketKeys {
        std::fs::create_dir_all(root.join("temp")).unwrap();
        TicketKeys::new(root.join(name), root.to_owned())
    }

    fn tickets(source: &TicketKeys) -> Arc<Tickets> {
        let part = Health::new(Clock::System).part("session-tickets");
        Tickets::new(Box::new(source.clone()), part, Clock::System)
            .unwrap()
            .0
    }

    #[test]
    fn a_ticket_is_read_by_another_process_and_not_when_it_was_changed() {
        let root = tempfile::tempdir().unwrap();
        let source = ticket_keys(root.path(), "ticket-keys");
        let (one, two) = (tickets(&source), tickets(&source));
        let ticket = one.encrypt(b"session").unwrap();
        assert_eq!(two.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(two.decrypt(&changed), None, "{at}");
            assert_eq!(two.decrypt(&ticket[..at]), None, "{at}");
        }
        let other = ticket_keys(root.path(), "other");
        assert_eq!(tickets(&other).decrypt(&ticket), None);
    }

    #[test]
    fn without_a_file_a_process_uses_a_key_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let source = ticket_keys(root.path(), "nowhere/ticket-keys");
        let (one, two) = (tickets(&source), tickets(&source));
        let ticket = one.encrypt(b"session").unwrap();
        assert!(one.decrypt(&ticket).is_some() && two.decrypt(&ticket).is_none());
    }
}
