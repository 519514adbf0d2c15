//! Values in the order of their last change, as the logs of a source keep them.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// How many removed values are remembered.
pub(super) const REMOVED_MAX: usize = 10_000;

/// The last value of each key, and the revision of its last change.
#[derive(Debug)]
pub(super) struct Revisions<K, V> {
    latest: u64,
    /// A reader with a smaller revision may have missed a removal.
    oldest: u64,
    values: HashMap<K, (u64, V)>,
    /// The key of each revision.
    order: BTreeMap<u64, K>,
    /// The keys of removed values.
    removed: BTreeMap<u64, K>,
}

// === impl Revisions ===

impl<K: Clone + Eq + Hash, V> Revisions<K, V> {
    /// Returns the newest revision; 0 if nothing has changed yet.
    pub(super) fn latest(&self) -> u64 {
        self.latest
    }

    /// Returns how many values are not removed.
    pub(super) fn present(&self) -> usize {
        self.values.len() - self.removed.len()
    }

    /// Returns the last value of a key and its revision; also of a removed one, if it is
    /// remembered.
    pub(super) fn get(&self, key: &K) -> Option<&(u64, V)> {
        self.values.get(key)
    }

    /// Returns whether a reader with this revision may continue after it.
    pub(super) fn continues(&self, after: u64) -> bool {
        (self.oldest..=self.latest).contains(&after)
    }

    /// Returns the values that have changed since a revision, in the order of their changes.
    pub(super) fn after(&self, after: u64) -> impl Iterator<Item = (u64, &K, &V)> {
        let changed = self.order.range(after + 1..);
        changed.map(|(&revision, key)| (revision, key, &self.values[key].1))
    }

    /// Sets the value of a key. With `is_removed` the value says that the key was removed, and may
    /// be forgotten.
    pub(super) fn set(&mut self, key: K, is_removed: bool, value: V) {
        self.latest += 1;
        let revision = self.latest;
        if let Some((before, _)) = self.values.insert(key.clone(), (revision, value)) {
            self.order.remove(&before);
            self.removed.remove(&before);
        }
        if is_removed {
            self.removed.insert(revision, key.clone());
        }
        self.order.insert(revision, key);
        while self.removed.len() > REMOVED_MAX {
            let Some((oldest, key)) = self.removed.pop_first() else {
                break;
            };
            self.order.remove(&oldest);
            self.values.remove(&key);
            self.oldest = oldest;
        }
    }
}

impl<K, V> Default for Revisions<K, V> {
    fn default() -> Self {
        Self {
            latest: 0,
            oldest: 0,
            values: HashMap::new(),
            order: BTreeMap::new(),
            removed: BTreeMap::new(),
        }
    }
}
