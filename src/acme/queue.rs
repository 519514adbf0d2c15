//! The names that wait for an order: when each is due, and which due name is next.
//!
//! There are two lanes. Renewals with the consent of the authority, and orders that were counted
//! when they began, do not count for its limits, so they go on when the budget for new orders is
//! used up. Among all due names, the one whose
//! deadline is nearest is next. Putting, removing and taking a name costs the logarithm of the
//! number of names.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The lane of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// A new order, which counts for the budget of the authority.
    Counted,
    /// A renewal, or an order that has begun: neither counts.
    Uncounted,
}

/// Where a name waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// When it is due.
    pub(super) at: u64,
    /// By when it should have a certificate; the nearest is first among the names that are due.
    pub(super) deadline: u64,
    /// Its lane.
    pub(super) lane: Lane,
}

/// Names that wait.
#[derive(Debug, Default)]
pub(super) struct Queue {
    places: HashMap<Arc<str>, (Wait, bool)>,
    waiting: BTreeSet<(u64, Arc<str>)>,
    /// By lane: the names that are due.
    due: [BTreeSet<(u64, Arc<str>)>; 2],
}

// === impl Queue ===

impl Queue {
    /// Adds a name, or moves it.
    pub(super) fn put(&mut self, name: &Arc<str>, wait: Wait) {
        if self
            .places
            .get(name)
            .is_some_and(|(known, _)| *known == wait)
        {
            return;
        }
        self.remove(name);
        self.places.insert(Arc::clone(name), (wait, false));
        self.waiting.insert((wait.at, Arc::clone(name)));
    }

    /// Removes a name, if it waits.
    pub(super) fn remove(&mut self, name: &str) {
        let Some((name, (wait, is_due))) = self.places.remove_entry(name) else {
            return;
        };
        match is_due {
            true => self.due[wait.lane as usize].remove(&(wait.deadline, name)),
            false => self.waiting.remove(&(wait.at, name)),
        };
    }

    /// Takes the due name that is next. With `uncounted_only`, new orders keep waiting.
    pub(super) fn take(&mut self, now: u64, uncounted_only: bool) -> Option<Arc<str>> {
        while let Some((at, name)) = self.waiting.first().cloned() {
            if at > now {
                break;
            }
            self.waiting.pop_first();
            let (wait, is_due) = self.places.get_mut(&name).expect("every name has a place");
            *is_due = true;
            self.due[wait.lane as usize].insert((wait.deadline, name));
        }
        let [counted, uncounted] = &self.due;
        let counted = counted.first().filter(|_| !uncounted_only);
        let next = [counted, uncounted.first()].into_iter().flatten().min();
        let name = Arc::clone(&next?.1);
        self.remove(&name);
        Some(name)
    }

    /// Returns how many names are due and not taken.
    pub(super) fn due(&self, now: u64) -> usize {
        let late = self.waiting.iter().take_while(|(at, _)| *at <= now).count();
        self.due.iter().map(BTreeSet::len).sum::<usize>() + late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(queue: &mut Queue, name: &str, at: u64, deadline: u64, lane: Lane) {
        queue.put(&Arc::from(name), Wait { at, deadline, lane });
    }

    #[test]
    fn the_name_whose_certificate_expires_first_is_next() {
        let mut queue = Queue::default();
        put(&mut queue, "later", 5, 900, Lane::Uncounted);
        put(&mut queue, "soon", 9, 100, Lane::Uncounted);
        put(&mut queue, "new", 1, 300, Lane::Counted);
        put(&mut queue, "not yet", 11, 1, Lane::Uncounted);
        assert_eq!(queue.take(0, false), None);
        assert_eq!(queue.take(1, true), None);
        assert_eq!(queue.take(10, false).as_deref(), Some("soon"));
        assert_eq!(queue.due(10), 2);
        // The budget for new names is used up.
        assert_eq!(queue.take(10, true).as_deref(), Some("later"));
        assert_eq!(queue.take(10, true), None);
        assert_eq!(queue.take(10, false).as_deref(), Some("new"));
        assert_eq!(queue.take(11, false).as_deref(), Some("not yet"));
        assert_eq!((queue.take(99, false), queue.due(99)), (None, 0));
    }

    #[test]
    fn a_name_is_moved_and_removed_wherever_it_waits() {
        let mut queue = Queue::default();
        put(&mut queue, "a", 1, 5, Lane::Counted);
        put(&mut queue, "b", 1, 4, Lane::Counted);
        assert_eq!(queue.take(1, false).as_deref(), Some("b"));
        // `a` is due now.
        put(&mut queue, "a", 8, 5, Lane::Uncounted);
        assert_eq!(queue.take(7, false), None);
        put(&mut queue, "c", 8, 6, Lane::Counted);
        queue.remove("a");
        queue.remove("a");
        assert_eq!(queue.take(9, false).as_deref(), Some("c"));
        assert_eq!(queue.take(9, false), None);
    }
}
