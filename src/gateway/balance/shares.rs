//! The places of the process for requests to servers of sites, and the part of them that an owner
//! or a client may have.
//!
//! File descriptors limit the places. A request holds its place for long if the server does not
//! respond, or if the client reads slowly. So an owner gets another place only while it has fewer
//! places than are free. The first one that takes all it can get has half of the places, the second
//! one a quarter, and so on: some places are always free for the others. The same is true of a
//! client ([`Clients`]).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::clients::{Clients, CountedClient};
use super::places::Places;

/// The number of parts of the table of clients.
const PARTS: usize = 16;

/// The places of the process, and who has how many of them.
#[derive(Debug)]
pub(super) struct Shares {
    all: Arc<Places>,
    owners: Mutex<HashMap<Box<str>, Weak<AtomicUsize>>>,
    clients: Clients,
}

/// How many places the sites of an owner have.
pub(super) type OfOwner = Arc<AtomicUsize>;

/// A place of the process, until [`Shares::free`] returns it.
#[must_use]
#[derive(Debug)]
pub(super) struct Share {
    client: CountedClient,
}

// === impl Shares ===

impl Shares {
    pub(super) fn new(max: usize) -> Self {
        Self {
            all: Arc::new(Places::new(max)),
            owners: Mutex::default(),
            clients: Clients::new(PARTS),
        }
    }

    /// Returns the places of the process.
    pub(super) fn places(&self) -> &Arc<Places> {
        &self.all
    }

    /// Returns the counter of an owner's places. All sites of the owner share it.
    pub(super) fn of_owner(&self, owner: &str) -> OfOwner {
        let mut owners = self.owners();
        if let Some(known) = owners.get(owner).and_then(Weak::upgrade) {
            return known;
        }
        let new = OfOwner::default();
        owners.insert(owner.into(), Arc::downgrade(&new));
        new
    }

    /// Forgets owners without sites.
    pub(super) fn sweep(&self) {
        self.owners().retain(|_, owner| owner.strong_count() > 0);
    }

    /// Takes a place; `None` if there is none, or if the owner or the client has as many as are free.
    pub(super) fn take(&self, owner: &OfOwner, client: IpAddr) -> Option<Share> {
        let free = self.all.max().saturating_sub(self.all.used());
        if owner.load(Ordering::Relaxed) >= free {
            return None;
        }
        let counted = self.clients.count(client, &self.all)?;
        if !self.all.take() {
            return None;
        }
        owner.fetch_add(1, Ordering::Relaxed);
        Some(Share {
            client: counted.keep(),
        })
    }

    /// Returns a place of an owner.
    pub(super) fn free(&self, owner: &OfOwner, share: &Share) {
        owner.fetch_sub(1, Ordering::Relaxed);
        self.clients.uncount(share.client);
        self.all.free();
    }

    /// Every change is one number, so the table is whole after a panic too.
    fn owners(&self) -> MutexGuard<'_, HashMap<Box<str>, Weak<AtomicUsize>>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, number])
    }

    #[test]
    fn each_owner_gets_half_of_what_the_others_have_left() {
        let shares = Shares::new(64);
        let mut held = Vec::new();
        let mut clients = (0..=255).cycle();
        for (owner, most) in [("a", 32), ("b", 16), ("c", 8), ("d", 4)] {
            let of_owner = shares.of_owner(owner);
            let before = held.len();
            // Each request has another client.
            held.extend(std::iter::from_fn(|| {
                let share = shares.take(&of_owner, client(clients.next()?))?;
                Some((Arc::clone(&of_owner), share))
            }));
            assert_eq!(held.len() - before, most, "{owner}");
        }
        for (of_owner, share) in held {
            shares.free(&of_owner, &share);
        }
        assert_eq!(shares.all.used(), 0);
        assert!(shares.clients.is_empty());
        shares.sweep();
        assert!(shares.owners().is_empty());
    }

    #[test]
    fn a_client_gets_about_half_however_many_owners_it_asks() {
        let shares = Shares::new(64);
        let owners: Vec<_> = (0..64).map(|n| shares.of_owner(&n.to_string())).collect();
        let take = |number| -> Vec<Share> {
            let client = client(number);
            let taken = owners.iter().map(|owner| shares.take(owner, client));
            taken.flatten().collect()
        };
        let held = take(1);
        // An eighth is not counted.
        assert!((32..=36).contains(&held.len()), "{}", held.len());
        assert!(take(2).len() > 8);
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let shares = Shares::new(usize::MAX);
        let owner = shares.of_owner("a");
        let held: Vec<_> = (0..100)
            .filter_map(|_| shares.take(&owner, client(1)))
            .collect();
        assert_eq!(held.len(), 100);
        assert!(shares.clients.is_empty());
    }
}
