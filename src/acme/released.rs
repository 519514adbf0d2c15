//! Certificates of names that no site has any more: they are revoked, and their keys removed.
//!
//! A customer who leaves should not have to trust that we do not use the certificate of their
//! domain. There is a wait before, because a site or a domain may be removed by mistake. If most
//! names seem to have left at once, a mistake is more likely: then nothing is revoked.

use std::collections::{BTreeSet, HashMap};

use super::Authorities;
use super::authority::Reason;
use super::failure::Failure;
use super::order::Shared;
use super::record::Record;
use crate::error::chain;
use crate::store::documents::{Kind, key_of};

/// Up to this many names may leave at once, even if that is most of them.
const LEFT_FREE: usize = 10;
/// How many names are worked on at the same time.
const RUNNING_MAX: usize = 4;

/// The names, and when their certificates are revoked.
#[derive(Debug, Default)]
pub(super) struct Released {
    names: HashMap<Box<str>, State>,
    waiting: BTreeSet<(u64, Box<str>)>,
    running: usize,
}

#[derive(Clone, Copy, Debug)]
struct State {
    at: u64,
    failures: u32,
    is_running: bool,
}

impl Released {
    /// Compares it with all names that have a certificate. Names that are released now are due at
    /// a time; names that are needed again are left out.
    ///
    /// Returns how many have left if that is most of them; then none is due.
    pub(super) fn compare(
        &mut self,
        all: Vec<Box<str>>,
        is_needed: impl Fn(&str) -> bool,
        due_at: u64,
    ) -> Option<usize> {
        let left = all.iter().filter(|name| !is_needed(name)).count();
        if left > LEFT_FREE && left > all.len() / 2 {
            // Names whose certificates are being revoked now end by themselves.
            self.names.retain(|_, state| state.is_running);
            self.waiting.clear();
            return Some(left);
        }
        let needed = self.names.keys().filter(|name| is_needed(name));
        for name in needed.cloned().collect::<Vec<_>>() {
            self.remove(&name);
        }
        for name in all {
            if is_needed(&name) || self.names.contains_key(&name) {
                continue;
            }
            let state = State {
                at: due_at,
                failures: 0,
                is_running: false,
            };
            self.names.insert(name.clone(), state);
            self.waiting.insert((due_at, name));
        }
        None
    }

    /// Takes a name that is due, if not too many are worked on.
    pub(super) fn take(&mut self, now: u64) -> Option<Box<str>> {
        let (at, _) = self.waiting.first()?;
        if *at > now || self.running >= RUNNING_MAX {
            return None;
        }
        let (_, name) = self.waiting.pop_first()?;
        if let Some(state) = self.names.get_mut(&name) {
            state.is_running = true;
        }
        self.running += 1;
        Some(name)
    }

    /// Ends the work on a name that was taken.
    pub(super) fn done(&mut self, name: &str) {
        self.running = self.running.saturating_sub(1);
        self.remove(name);
    }

    /// Ends the work on a name that was taken and that has failed: it is due again after a wait,
    /// which depends on how often it has failed.
    pub(super) fn failed(&mut self, name: &str, now: u64, wait: impl Fn(u32) -> u64) {
        self.running = self.running.saturating_sub(1);
        // It may be needed again.
        let Some(state) = self.names.get_mut(name) else {
            return;
        };
        state.failures = state.failures.saturating_add(1);
        state.is_running = false;
        state.at = now + wait(state.failures).max(1);
        self.waiting.insert((state.at, name.into()));
    }

    /// Notes that nothing is worked on any more.
    pub(super) fn stopped(&mut self) {
        self.running = 0;
        for (name, state) in &mut self.names {
            if std::mem::take(&mut state.is_running) {
                self.waiting.insert((state.at, name.clone()));
            }
        }
    }

    fn remove(&mut self, name: &str) {
        if let Some((name, state)) = self.names.remove_entry(name) {
            self.waiting.remove(&(state.at, name));
        }
    }
}

/// Revokes all certificates of a name that are valid now.
pub(super) async fn revoke(
    shared: &Shared,
    authorities: &Authorities,
    name: &str,
) -> Result<(), Failure> {
    let now = shared.clock.unix_seconds();
    let documents = &shared.vault.documents;
    let keys = documents.keys_of(Kind::Certificate, &key_of(name));
    let keys = keys.map_err(|error| Failure::ours(chain(&error)))?;
    for key in keys {
        let bytes = documents.get(Kind::Certificate, &key);
        let bytes = bytes.map_err(|error| Failure::ours(chain(&error)))?;
        // A certificate that cannot be read cannot be revoked.
        let Some(record) = bytes.and_then(|bytes| Record::parse(&bytes).ok()) else {
            continue;
        };
        if *record.name == *name && record.leaf.not_after > now {
            authorities.revoke(&record, Reason::Ceased).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<Box<str>> {
        names.iter().map(|name| (*name).into()).collect()
    }

    #[test]
    fn a_name_waits_and_may_come_back() {
        let mut released = Released::default();
        let all = ["a.test", "b.test", "c.test"];
        released.compare(names(&all), |name| name == "a.test", 10);
        // A later comparison does not postpone it, and a name that came back is left out.
        released.compare(names(&all), |name| name != "c.test", 20);
        assert_eq!(released.take(9), None);
        assert_eq!(released.take(10).as_deref(), Some("c.test"));
        assert_eq!(released.take(99), None);
        // It is due again after a failure, later each time.
        released.failed("c.test", 10, |failures| u64::from(failures) * 100);
        assert_eq!(released.take(109), None);
        assert_eq!(released.take(110).as_deref(), Some("c.test"));
        released.failed("c.test", 110, |failures| u64::from(failures) * 100);
        assert_eq!(released.take(309), None);
        assert!(released.take(310).is_some());
        released.done("c.test");
        assert!(released.names.is_empty() && released.waiting.is_empty());
        assert_eq!(released.running, 0);
    }

    #[test]
    fn nothing_is_revoked_if_most_names_have_left_at_once() {
        let mut released = Released::default();
        let all: Vec<Box<str>> = (0..40).map(|n| format!("{n}.test").into()).collect();
        // Half of them is a large customer.
        let is_small = |name: &str| name.len() < "10.test".len();
        assert_eq!(released.compare(all[..20].to_vec(), is_small, 5), None);
        assert!(released.take(5).is_some());
        assert_eq!(released.compare(all.clone(), is_small, 5), Some(30));
        assert_eq!(released.take(99), None);
        // The records can be read again.
        assert_eq!(released.compare(all, |_| true, 5), None);
        assert_eq!(released.take(99), None);
        released.done("10.test");
        assert!(released.names.is_empty());
    }

    #[test]
    fn few_are_worked_on_at_once_and_a_stop_loses_none() {
        let mut released = Released::default();
        let all: Vec<Box<str>> = (0..10).map(|n| format!("{n}.test").into()).collect();
        assert_eq!(released.compare(all, |_| false, 0), None);
        let mut taken = 0;
        while released.take(1).is_some() {
            taken += 1;
        }
        assert_eq!(taken, RUNNING_MAX);
        released.stopped();
        assert_eq!(released.waiting.len(), 10);
        // A name that is needed again while it is worked on does not come back.
        let name = released.take(1).unwrap();
        released.compare(Vec::new(), |needed| *needed == *name, 0);
        released.failed(&name, 1, |_| 1);
        assert_eq!(released.waiting.len(), 9);
    }
}
