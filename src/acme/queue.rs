//! The names that wait for an order: when each is due, and which due name is next.
//!
//! There are two lanes. Renewals with the consent of the authority, and orders that were counted
//! when they began, do not count for its limits, so they go on when the budget for new orders is
//! used up.
//!
//! Owners take turns with the names that have no certificate yet. When an order of such a name has
//! failed, the name waits behind the names that were never tried. One new order in [`FAILED_TURN`]
//! is for a name that has failed, so these names do not wait for ever. The turn gives one name. Of
//! this name and the other due names, the one with the nearest deadline is next.
//!
//! To put, remove or take a name costs the logarithm of the number of names.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// One new order in so many is for a name that has failed, if there is one.
const FAILED_TURN: u32 = 4;

/// The lane of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// A new order, which counts for the budget of the authority.
    Counted,
    /// A renewal, or an order that has begun: neither counts.
    Uncounted,
}

/// Where a name waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// When it is due.
    pub(super) at: u64,
    /// By when it should have a certificate; the nearest is first among the names that are due.
    pub(super) deadline: u64,
    /// Its lane.
    pub(super) lane: Lane,
    /// Whose turn it needs; `None` for the operator's names and for those with a certificate.
    pub(super) turn: Option<Turn>,
}

/// The turn of a name that has no certificate yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// The owner of its site.
    pub(super) owner: Arc<str>,
    /// Whether an order of it has failed.
    pub(super) has_failed: bool,
}

/// Names by time.
type Names = BTreeSet<(u64, Arc<str>)>;

/// Names that wait.
#[derive(Debug, Default)]
pub(super) struct Queue {
    places: HashMap<Arc<str>, (Wait, bool)>,
    waiting: Names,
    /// By lane: the names that are due and need no turn.
    due: [Names; 2],
    /// The names that are due and need a turn: never tried, and failed.
    turns: [Turns; 2],
    /// How many names in a row were taken that were never tried, while others had failed.
    untried: u32,
}

/// Due names by owner. The owner that has waited longest is next.
#[derive(Debug, Default)]
struct Turns {
    /// The place in `order`, and the names by deadline.
    owners: HashMap<Arc<str>, (u64, Names)>,
    order: BTreeSet<(u64, Arc<str>)>,
    /// The last place that was given.
    last: u64,
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
        self.waiting.insert((wait.at, Arc::clone(name)));
        self.places.insert(Arc::clone(name), (wait, false));
    }

    /// Removes a name, if it waits. Returns where it has waited.
    pub(super) fn remove(&mut self, name: &str) -> Option<Wait> {
        let (name, (wait, is_due)) = self.places.remove_entry(name)?;
        match (is_due, &wait.turn) {
            (false, _) => {
                self.waiting.remove(&(wait.at, name));
            }
            (true, None) => {
                self.due[wait.lane as usize].remove(&(wait.deadline, name));
            }
            (true, Some(turn)) => {
                self.turns[usize::from(turn.has_failed)].remove(&turn.owner, (wait.deadline, name));
            }
        }
        Some(wait)
    }

    /// Takes the due name that is next. With `uncounted_only`, new orders keep waiting; so do the
    /// new orders of an owner that has no room for more.
    pub(super) fn take(
        &mut self,
        now: u64,
        uncounted_only: bool,
        has_room: impl Fn(&str) -> bool,
    ) -> Option<(Arc<str>, Wait)> {
        while let Some((at, name)) = self.waiting.first().cloned() {
            if at > now {
                break;
            }
            self.waiting.pop_first();
            let (wait, is_due) = self.places.get_mut(&name).expect("every name has a place");
            *is_due = true;
            let entry = (wait.deadline, name);
            match &wait.turn {
                None => {
                    self.due[wait.lane as usize].insert(entry);
                }
                Some(turn) => self.turns[usize::from(turn.has_failed)].put(&turn.owner, entry),
            }
        }
        let [counted, uncounted] = &self.due;
        let counted = counted.first().filter(|_| !uncounted_only);
        let [untried, failed] = match uncounted_only {
            true => [None, None],
            false => [0, 1].map(|kind: usize| self.turns[kind].next(&has_room)),
        };
        let is_turn_of_failed = self.untried + 1 >= FAILED_TURN;
        let new = match (untried, failed) {
            (Some(_), Some(_)) if is_turn_of_failed => failed,
            (untried, failed) => untried.or(failed),
        };
        let has_both = untried.is_some() && failed.is_some();
        let next = [counted, uncounted.first(), new]
            .into_iter()
            .flatten()
            .min();
        let name = Arc::clone(&next?.1);
        let wait = self.remove(&name)?;
        if let Some(turn) = &wait.turn {
            self.turns[usize::from(turn.has_failed)].taken(&turn.owner);
            self.untried = match has_both && !turn.has_failed {
                true => self.untried + 1,
                false => 0,
            };
        }
        Some((name, wait))
    }

    /// Returns how many names are due and not taken.
    pub(super) fn due(&self, now: u64) -> usize {
        let late = self.waiting.iter().take_while(|(at, _)| *at <= now).count();
        let turns = self.turns.iter().flat_map(|turns| turns.owners.values());
        let turns: usize = turns.map(|(_, names)| names.len()).sum();
        self.due.iter().map(BTreeSet::len).sum::<usize>() + turns + late
    }
}

// === impl Turns ===

impl Turns {
    fn put(&mut self, owner: &Arc<str>, entry: (u64, Arc<str>)) {
        if let Some((_, names)) = self.owners.get_mut(owner) {
            names.insert(entry);
            return;
        }
        self.last += 1;
        self.order.insert((self.last, Arc::clone(owner)));
        let names = BTreeSet::from([entry]);
        self.owners.insert(Arc::clone(owner), (self.last, names));
    }

    fn remove(&mut self, owner: &Arc<str>, entry: (u64, Arc<str>)) {
        let Some((place, names)) = self.owners.get_mut(owner) else {
            return;
        };
        names.remove(&entry);
        if names.is_empty() {
            self.order.remove(&(*place, Arc::clone(owner)));
            self.owners.remove(owner);
        }
    }

    /// Returns the first name of the owner that is next.
    fn next(&self, has_room: impl Fn(&str) -> bool) -> Option<&(u64, Arc<str>)> {
        let mut owners = self.order.iter();
        let (_, owner) = owners.find(|(_, owner)| has_room(owner))?;
        self.owners.get(owner)?.1.first()
    }

    /// Moves an owner behind the others.
    fn taken(&mut self, owner: &Arc<str>) {
        if let Some((place, _)) = self.owners.get_mut(owner) {
            self.order.remove(&(*place, Arc::clone(owner)));
            self.last += 1;
            *place = self.last;
            self.order.insert((self.last, Arc::clone(owner)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(queue: &mut Queue, name: &str, at: u64, deadline: u64, lane: Lane) {
        let wait = Wait {
            at,
            deadline,
            lane,
            turn: None,
        };
        queue.put(&Arc::from(name), wait);
    }

    fn put_new(queue: &mut Queue, name: &str, owner: &str, has_failed: bool) {
        let turn = Turn {
            owner: owner.into(),
            has_failed,
        };
        let wait = Wait {
            at: 1,
            deadline: 100,
            lane: Lane::Counted,
            turn: Some(turn),
        };
        queue.put(&Arc::from(name), wait);
    }

    fn take(queue: &mut Queue, now: u64, uncounted_only: bool) -> Option<Arc<str>> {
        let taken = queue.take(now, uncounted_only, |_| true);
        taken.map(|(name, _)| name)
    }

    #[test]
    fn the_name_whose_certificate_expires_first_is_next() {
        let mut queue = Queue::default();
        put(&mut queue, "later", 5, 900, Lane::Uncounted);
        put(&mut queue, "soon", 9, 100, Lane::Uncounted);
        put(&mut queue, "new", 1, 300, Lane::Counted);
        put(&mut queue, "not yet", 11, 1, Lane::Uncounted);
        assert_eq!(take(&mut queue, 0, false), None);
        assert_eq!(take(&mut queue, 1, true), None);
        assert_eq!(take(&mut queue, 10, false).as_deref(), Some("soon"));
        assert_eq!(queue.due(10), 2);
        // The budget for new names is used up.
        assert_eq!(take(&mut queue, 10, true).as_deref(), Some("later"));
        assert_eq!(take(&mut queue, 10, true), None);
        assert_eq!(take(&mut queue, 10, false).as_deref(), Some("new"));
        assert_eq!(take(&mut queue, 11, false).as_deref(), Some("not yet"));
        assert_eq!((take(&mut queue, 99, false), queue.due(99)), (None, 0));
    }

    #[test]
    fn a_name_is_moved_and_removed_wherever_it_waits() {
        let mut queue = Queue::default();
        put(&mut queue, "a", 1, 5, Lane::Counted);
        put(&mut queue, "b", 1, 4, Lane::Counted);
        assert_eq!(take(&mut queue, 1, false).as_deref(), Some("b"));
        // `a` is due now.
        put(&mut queue, "a", 8, 5, Lane::Uncounted);
        assert_eq!(take(&mut queue, 7, false), None);
        put(&mut queue, "c", 8, 6, Lane::Counted);
        queue.remove("a");
        queue.remove("a");
        assert_eq!(take(&mut queue, 9, false).as_deref(), Some("c"));
        assert_eq!(take(&mut queue, 9, false), None);
    }

    #[test]
    fn an_owner_with_many_names_delays_another_by_one_order() {
        let mut queue = Queue::default();
        for n in 0..1000 {
            put_new(&mut queue, &format!("{n}.many.test"), "many", false);
        }
        assert!(take(&mut queue, 1, false).is_some());
        put_new(&mut queue, "docs.acme.test", "acme", false);
        put_new(&mut queue, "docs.other.test", "other", false);
        let next: Vec<_> = (0..4)
            .map(|_| take(&mut queue, 1, false).unwrap())
            .collect();
        assert_eq!(
            next.iter()
                .filter(|name| name.ends_with("many.test"))
                .count(),
            2
        );
        // The budget is used up, and a name leaves.
        put_new(&mut queue, "docs.acme.test", "acme", false);
        assert_eq!(take(&mut queue, 1, true), None);
        queue.remove("docs.acme.test");
        assert!(take(&mut queue, 1, false).unwrap().ends_with("many.test"));
        assert_eq!(queue.due(1), 996);
    }

    #[test]
    fn an_owner_without_room_waits_and_a_renewal_keeps_its_priority() {
        let mut queue = Queue::default();
        put_new(&mut queue, "a.many.test", "many", false);
        put_new(&mut queue, "docs.acme.test", "acme", false);
        put(&mut queue, "renewed", 1, 99, Lane::Counted);
        let mut take = || {
            let taken = queue.take(1, false, |owner| owner != "many");
            taken.map(|(name, _)| name)
        };
        assert_eq!(take().as_deref(), Some("renewed"));
        assert_eq!(take().as_deref(), Some("docs.acme.test"));
        assert_eq!((take(), queue.due(1)), (None, 1));
    }

    #[test]
    fn a_name_that_failed_goes_behind_names_that_were_never_tried() {
        let mut queue = Queue::default();
        for n in 0..10 {
            put_new(&mut queue, &format!("{n}.failed.test"), "failed", true);
            put_new(
                &mut queue,
                &format!("{n}.new.test"),
                &format!("owner {n}"),
                false,
            );
        }
        let taken: Vec<_> = (0..20)
            .map(|_| take(&mut queue, 1, false).unwrap().ends_with("failed.test"))
            .collect();
        let failed = |part: &[bool]| part.iter().filter(|it| **it).count();
        assert_eq!(
            (taken[0], failed(&taken[..4]), failed(&taken[..8])),
            (false, 1, 2)
        );
        assert_eq!((failed(&taken), queue.due(1)), (10, 0));
    }
}
