//! The map from hosts to sites.
//!
//! It is divided into 2,048 small tables, each behind its own pointer. A reader hashes the host
//! once and uses the hash to find the table and the entry: two loads, no lock. A writer copies
//! one table, changes the copy and swaps the pointer. So adding a host to a million hosts costs
//! as much as adding it to five hundred.
//!
//! Only site records change this map. A promotion swaps the content of a [`Slot`].

use std::hash::BuildHasher;
use std::sync::Arc;

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::Slot;

/// The number of tables, a power of two. With a million hosts each table has about 500.
const SHARDS: usize = 2048;

/// All hosts of all sites.
#[derive(Debug)]
pub(super) struct Hosts {
    hasher: RandomState,
    shards: Box<[ArcSwap<HashTable<Entry>>]>,
}

/// One host.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    host: Arc<str>,
    /// Its site, shared with the other hosts of the site.
    pub(super) slot: Arc<Slot>,
}

/// A host to be added or removed.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// The host leads to this slot, even if it led to another one before.
    Put(Arc<str>, Arc<Slot>),
    /// The host is removed if it still leads to this slot.
    Remove(Arc<str>, Arc<Slot>),
}

// === impl Hosts ===

impl Hosts {
    pub(super) fn new() -> Self {
        let shards = std::iter::repeat_with(|| ArcSwap::from_pointee(HashTable::new()));
        Self {
            hasher: RandomState::default(),
            shards: shards.take(SHARDS).collect(),
        }
    }

    /// Calls `found` with the slot of `host`; `None` if there is none.
    pub(super) fn with<T>(&self, host: &str, found: impl FnOnce(&Slot) -> T) -> Option<T> {
        let hash = self.hasher.hash_one(host);
        let shard = self.shards[shard_of(hash)].load();
        shard
            .find(hash, |entry| *entry.host == *host)
            .map(|entry| found(&entry.slot))
    }

    /// Applies changes; each table is copied and swapped once.
    ///
    /// The caller ensures that there is no other writer.
    pub(super) fn apply(&self, changes: impl IntoIterator<Item = Change>) {
        let mut by_shard: Vec<(u64, Change)> = changes
            .into_iter()
            .map(|change| {
                let (Change::Put(host, _) | Change::Remove(host, _)) = &change;
                (self.hasher.hash_one(&**host), change)
            })
            .collect();
        // The sort is stable, so changes of one host stay in order.
        by_shard.sort_by_key(|(hash, _)| shard_of(*hash));
        for group in by_shard.chunk_by(|(a, _), (b, _)| shard_of(*a) == shard_of(*b)) {
            let shard = &self.shards[shard_of(group[0].0)];
            let mut table = HashTable::clone(&shard.load());
            for (hash, change) in group {
                self.change(&mut table, *hash, change);
            }
            shard.store(Arc::new(table));
        }
    }

    fn change(&self, table: &mut HashTable<Entry>, hash: u64, change: &Change) {
        match change {
            Change::Put(host, slot) => {
                let entry = Entry {
                    host: Arc::clone(host),
                    slot: Arc::clone(slot),
                };
                match table.find_mut(hash, |entry| entry.host == *host) {
                    Some(old) => *old = entry,
                    None => {
                        table
                            .insert_unique(hash, entry, |entry| self.hasher.hash_one(&*entry.host));
                    }
                }
            }
            Change::Remove(host, slot) => {
                let same = |entry: &Entry| entry.host == *host && Arc::ptr_eq(&entry.slot, slot);
                if let Ok(entry) = table.find_entry(hash, same) {
                    entry.remove();
                }
            }
        }
    }

    /// Counts the hosts.
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.load().len()).sum()
    }
}

/// Selects the table by the upper half of the hash, because `HashTable` uses the lower bits and
/// the top seven bits.
fn shard_of(hash: u64) -> usize {
    usize::try_from(hash >> 32).expect("32 bits fit") & (SHARDS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_half_of_a_hash_selects_each_of_the_tables() {
        for shard in 0..SHARDS {
            assert_eq!(shard_of((shard as u64) << 32 | 0xffff_ffff), shard);
        }
        assert_eq!(shard_of(u64::MAX), SHARDS - 1);
    }
}
