//! Which domain is checked next.
//!
//! Domains wait for their time. Then they are in the queue of their owner, and the owners are
//! served round-robin. An owner with many domains delays only itself.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// A domain of an owner, as the schedule knows it.
pub(super) type Key = Arc<(crate::site::ProjectId, crate::site::Host)>;

/// All domains.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// By time, in seconds after the Unix epoch.
    waiting: BTreeSet<(u64, Key)>,
    places: HashMap<Key, ScheduledDomain>,
    owners: HashMap<Arc<str>, Owner>,
    /// The owners with due domains, in round-robin order.
    round_robin: VecDeque<Arc<str>>,
    due: usize,
    running: usize,
}

#[derive(Debug)]
struct ScheduledDomain {
    owner: Arc<str>,
    state: Position,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Waiting(u64),
    Due,
    Running,
}

#[derive(Debug, Default)]
struct Owner {
    due: VecDeque<Key>,
    running: usize,
    has_turn: bool,
}

impl Schedule {
    /// Sets when a domain is checked. A domain that is being checked keeps its place.
    pub(super) fn put(&mut self, key: &Key, owner: &Arc<str>, at: u64) {
        if self.is_running(key) {
            return;
        }
        self.remove(key);
        self.waiting.insert((at, Arc::clone(key)));
        let place = ScheduledDomain {
            owner: Arc::clone(owner),
            state: Position::Waiting(at),
        };
        self.places.insert(Arc::clone(key), place);
    }

    pub(super) fn is_running(&self, key: &Key) -> bool {
        self.places
            .get(key)
            .is_some_and(|place| place.state == Position::Running)
    }

    /// Removes a domain.
    pub(super) fn remove(&mut self, key: &Key) {
        match self.places.remove(key) {
            Some(ScheduledDomain {
                state: Position::Waiting(at),
                ..
            }) => {
                self.waiting.remove(&(at, Arc::clone(key)));
            }
            Some(ScheduledDomain {
                owner,
                state: Position::Due,
            }) => {
                if let Some(owner) = self.owners.get_mut(&owner) {
                    owner.due.retain(|due| due != key);
                    self.due -= 1;
                }
            }
            Some(ScheduledDomain {
                owner,
                state: Position::Running,
            }) => self.end(&owner),
            None => {}
        }
    }

    /// Takes the domain that is next, if one is due and its owner has not too many checks already.
    pub(super) fn take(&mut self, now: u64, owner_max: usize) -> Option<Key> {
        while let Some((at, _)) = self.waiting.first()
            && *at <= now
        {
            let Some((_, key)) = self.waiting.pop_first() else {
                break;
            };
            let Some(place) = self.places.get_mut(&key) else {
                continue;
            };
            place.state = Position::Due;
            self.due += 1;
            let name = Arc::clone(&place.owner);
            let owner = self.owners.entry(Arc::clone(&name)).or_default();
            owner.due.push_back(key);
            if !owner.has_turn {
                owner.has_turn = true;
                self.round_robin.push_back(name);
            }
        }
        for _ in 0..self.round_robin.len() {
            let name = self.round_robin.pop_front()?;
            let Some(owner) = self.owners.get_mut(&name) else {
                continue;
            };
            if owner.running >= owner_max {
                self.round_robin.push_back(name);
                continue;
            }
            let Some(key) = owner.due.pop_front() else {
                owner.has_turn = false;
                self.forget(&name);
                continue;
            };
            owner.running += 1;
            self.round_robin.push_back(name);
            self.running += 1;
            self.due -= 1;
            if let Some(place) = self.places.get_mut(&key) {
                place.state = Position::Running;
            }
            return Some(key);
        }
        None
    }

    /// Ends the check of a domain, which has no place then.
    pub(super) fn done(&mut self, key: &Key) {
        if self.is_running(key) {
            self.remove(key);
        }
    }

    /// Returns how many domains are due and not checked yet.
    pub(super) fn due(&self) -> usize {
        self.due
    }

    /// Returns how many checks run.
    pub(super) fn running(&self) -> usize {
        self.running
    }

    fn end(&mut self, name: &Arc<str>) {
        self.running = self.running.saturating_sub(1);
        if let Some(owner) = self.owners.get_mut(name) {
            owner.running = owner.running.saturating_sub(1);
        }
        self.forget(name);
    }

    /// Forgets an owner without domains that are due or being checked.
    fn forget(&mut self, name: &Arc<str>) {
        let is_idle = |owner: &Owner| owner.running == 0 && !owner.has_turn;
        if self.owners.get(name).is_some_and(is_idle) {
            self.owners.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::{Host, ProjectId};

    fn key(project: &str, host: &str) -> Key {
        let project = ProjectId::parse(project).unwrap();
        Arc::new((project, Host::parse(host).unwrap()))
    }

    #[test]
    fn an_owner_with_many_domains_delays_only_itself() {
        let mut schedule = Schedule::default();
        let (many, few): (Arc<str>, Arc<str>) = ("many".into(), "few".into());
        for nth in 0..10_000 {
            schedule.put(&key("many", &format!("d{nth}.many.test")), &many, 1);
        }
        let (one, two) = (key("few", "one.test"), key("few", "two.test"));
        schedule.put(&one, &few, 2);
        schedule.put(&two, &few, 2);
        assert_eq!(schedule.take(0, 3), None);
        let mut taken = Vec::new();
        while let Some(key) = schedule.take(2, 3) {
            taken.push(key);
        }
        // Three of the owner with many, and both of the other one, which comes second.
        assert_eq!((taken.len(), schedule.running()), (5, 5));
        assert!(taken[..4].contains(&one) && taken.contains(&two));
        assert_eq!(schedule.due(), 9997);
        // A place is free again: it is the turn of the owner with many.
        schedule.done(&taken[0]);
        assert_eq!(
            schedule.take(2, 3).map(|key| key.0.to_string()),
            Some("many".into())
        );
        assert_eq!(schedule.take(2, 3), None);
    }

    #[test]
    fn a_domain_is_moved_and_removed_wherever_it_is() {
        let mut schedule = Schedule::default();
        let owner: Arc<str> = "acme".into();
        let (a, b) = (key("acme", "a.test"), key("acme", "b.test"));
        schedule.put(&a, &owner, 5);
        schedule.put(&b, &owner, 5);
        schedule.put(&a, &owner, 9);
        assert_eq!(schedule.take(6, 9), Some(Arc::clone(&b)));
        // It is being checked, so it keeps its place.
        schedule.put(&b, &owner, 1);
        assert_eq!(schedule.take(6, 9), None);
        schedule.done(&b);
        schedule.put(&b, &owner, 7);
        assert_eq!(schedule.take(8, 9), Some(Arc::clone(&b)));
        schedule.remove(&a);
        schedule.remove(&b);
        assert_eq!(schedule.take(99, 9), None);
        assert_eq!((schedule.due(), schedule.running()), (0, 0));
        assert!(schedule.owners.is_empty() && schedule.places.is_empty());
    }
}
