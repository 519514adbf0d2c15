//! How many new orders each owner of sites has begun: one owner must not use up the budget of all.
//!
//! The counts are in memory. After a restart an owner may use its share again, and the budget of the
//! authority, which is written, still bounds all owners together.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::schedule::is_of_wrong_clock;

/// The new orders of owners in a window of time.
#[derive(Debug)]
pub(super) struct OwnerOrders {
    max: usize,
    window: u64,
    /// When the orders began, the oldest first.
    begun: VecDeque<(u64, Arc<str>)>,
    counts: HashMap<Arc<str>, usize>,
}

// === impl OwnerOrders ===

impl OwnerOrders {
    pub(super) fn new(max: u32, window: Duration) -> Self {
        Self {
            max: usize::try_from(max).unwrap_or(usize::MAX),
            window: window.as_secs(),
            begun: VecDeque::new(),
            counts: HashMap::new(),
        }
    }

    /// Forgets the orders that do not count any more.
    pub(super) fn expire(&mut self, now: u64) {
        while let Some((at, _)) = self.begun.front()
            && (is_of_wrong_clock(*at, now) || at.saturating_add(self.window) <= now)
        {
            if let Some((_, owner)) = self.begun.pop_front() {
                self.uncount(&owner);
            }
        }
    }

    /// Returns whether an owner may begin a new order.
    pub(super) fn has_room(&self, owner: &str) -> bool {
        self.counts.get(owner).is_none_or(|count| *count < self.max)
    }

    /// Counts a new order of an owner. Returns whether it was the last one that it may begin now.
    pub(super) fn begin(&mut self, owner: &Arc<str>, now: u64) -> bool {
        self.begun.push_back((now, Arc::clone(owner)));
        let count = self.counts.entry(Arc::clone(owner)).or_default();
        *count += 1;
        *count == self.max
    }

    /// Counts an order not: the authority was not asked.
    pub(super) fn give_back(&mut self, owner: &Arc<str>) {
        if let Some(at) = self.begun.iter().rposition(|(_, of)| of == owner) {
            self.begun.remove(at);
            self.uncount(owner);
        }
    }

    fn uncount(&mut self, owner: &Arc<str>) {
        if let Some(count) = self.counts.get_mut(owner) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_begins_a_limited_number_of_orders_in_the_window_and_others_have_their_own() {
        let mut orders = OwnerOrders::new(2, Duration::from_secs(100));
        let (acme, other) = (Arc::from("acme"), Arc::from("other"));
        assert!(!orders.begin(&acme, 10) && orders.begin(&acme, 50));
        assert!(!orders.has_room("acme") && orders.has_room("other"));
        orders.begin(&other, 60);
        orders.expire(109);
        assert!(!orders.has_room("acme"));
        orders.expire(110);
        assert!(orders.has_room("acme"));
        orders.begin(&acme, 110);
        assert!(!orders.has_room("acme"));
        orders.give_back(&acme);
        assert!(orders.has_room("acme"));
        // Orders of a clock that was a year ahead do not count.
        orders.begin(&acme, 365 * 86_400);
        assert!(!orders.has_room("acme"));
        orders.expire(200);
        assert!(orders.has_room("acme"));
        assert_eq!((orders.begun.len(), orders.counts.len()), (0, 0));
    }
}
