//! How many places each client has: of the process, or at one server.
//!
//! A client is an address, or a prefix of IPv6. It gets another place only while it has fewer places
//! than are free. The first client that takes as many as it can has half of the places, the second
//! one a quarter, and so on. So the rule needs no limit for each client.
//!
//! Clients are counted only while at least an eighth of the places is in use: before that, counting
//! would take time and reject nothing.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;

use super::places::Places;

/// Clients are counted when at least one of this many places is in use.
const UNCOUNTED_PART: usize = 8;

/// The clients that are counted.
#[derive(Debug)]
pub(super) struct Clients {
    /// The parts of the table, each with its lock.
    parts: Box<[Mutex<HashMap<IpAddr, usize>>]>,
    hasher: RandomState,
}

/// One place of a client, until it is dropped.
#[must_use]
#[derive(Debug)]
pub(super) struct Counted<'c> {
    clients: &'c Clients,
    counted: CountedClient,
}

/// A client whose place is counted; `None` if it is not.
pub(super) type CountedClient = Option<IpAddr>;

// === impl Clients ===

impl Clients {
    /// Makes a table with so many parts.
    pub(super) fn new(parts: usize) -> Self {
        Self {
            parts: (0..parts.max(1)).map(|_| Mutex::default()).collect(),
            hasher: RandomState::default(),
        }
    }

    /// Counts one more place of a client; `None` if it has as many as are free. A client without
    /// a place always gets one, which may have to wait.
    pub(super) fn count(&self, client: IpAddr, places: &Places) -> Option<Counted<'_>> {
        let (used, max) = (places.used(), places.max());
        let counted = (used >= max / UNCOUNTED_PART).then_some(client);
        if let Some(client) = counted {
            let free = max.saturating_sub(used).max(1);
            let mut part = self.part(client);
            match part.get_mut(&client) {
                Some(count) if *count >= free => return None,
                Some(count) => *count += 1,
                None => {
                    part.insert(client, 1);
                }
            }
        }
        Some(Counted {
            clients: self,
            counted,
        })
    }

    /// Returns a place of a client.
    pub(super) fn uncount(&self, counted: CountedClient) {
        let Some(client) = counted else { return };
        let mut part = self.part(client);
        if let Some(count) = part.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                part.remove(&client);
            }
        }
    }

    /// Every change is one number, so the table is whole after a panic too.
    fn part(&self, client: IpAddr) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the lowest bits choose the part"
        )]
        let at = self.hasher.hash_one(client) as usize % self.parts.len();
        self.parts[at]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.all(|part| part.lock().unwrap().is_empty())
    }
}

// === impl Counted ===

impl Counted<'_> {
    /// Keeps the place until [`Clients::uncount`] returns it.
    pub(super) fn keep(mut self) -> CountedClient {
        self.counted.take()
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.clients.uncount(self.counted);
    }
}
