//! Names and their times: which names need a certificate, when each is ordered, and what operators
//! request.

use std::sync::Arc;

use super::{Manager, State};
use crate::acme::ordered::HeldCertificate;
use crate::acme::queue::{Lane, Turn, Wait};
use crate::acme::schedule::{Window, is_of_wrong_clock, part_of, renewal_at, seed_of};
use crate::acme::state::{OrderState, Request, Versioned as _};
use crate::error::chain;
use crate::store::documents::{Change, Kind};

/// How often the names are compared although no change was reported.
const COMPARE_SECONDS: u64 = 60;
/// A new name is as urgent as a certificate that expires after this time.
const NEW_SECONDS: u64 = 3 * 86_400;
/// A certificate that was replaced in the first part of its life is replaced again at once only so
/// often: an authority may suggest it for ever.
const EARLY_MAX: u32 = 2;
pub(super) const EARLY_PART: u64 = 10;

/// A name that needs a certificate.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// The owner of its site; `None` for a name of the operator.
    pub(super) owner: Option<Arc<str>>,
    /// The owner for which the order that runs was counted.
    pub(super) counted_for: Option<Arc<str>>,
    pub(super) since: u64,
    pub(super) failures: u32,
    pub(super) retry_at: u64,
    pub(super) window: Option<Window>,
    pub(super) ask_at: Option<u64>,
    /// The operator has requested another certificate.
    pub(super) is_forced: bool,
    pub(super) is_running: bool,
    /// An order of it has begun and can go on.
    pub(super) is_begun: bool,
    /// How often in a row the certificate was replaced in the first part of its life.
    pub(super) early: u32,
}

// === impl Manager ===

impl Manager {
    /// Reads what an earlier leader has written: the orders that have begun, and the failures, so
    /// that no name is tried too soon.
    pub(super) fn read_orders(&mut self, now: u64) {
        for name in self.shared.begun() {
            self.state.entries.entry(name.into()).or_default().is_begun = true;
        }
        let documents = &self.shared.vault.documents;
        for key in documents.keys(Kind::Order).unwrap_or_default() {
            let read = documents.get(Kind::Order, &key).ok().flatten();
            let Some(state) = read.and_then(|bytes| OrderState::parse(&bytes)) else {
                continue;
            };
            let entry = self.state.entries.entry(state.name.into()).or_default();
            entry.failures = state.failures;
            if !is_of_wrong_clock(state.failed_at, now) {
                entry.retry_at = state.retry_at;
            }
        }
    }

    /// Compares the names that need a certificate with the known ones.
    pub(super) fn compare(&mut self, now: u64) {
        let generation = self.names.generation();
        let is_same = self.state.generation == Some(generation);
        if is_same && now < self.state.compared_at + COMPARE_SECONDS {
            return;
        }
        self.state.generation = Some(generation);
        self.state.compared_at = now;
        let wanted = self.names.wanted();
        let gone: Vec<_> = self
            .state
            .entries
            .iter()
            .filter(|(name, entry)| !wanted.contains_key(&***name) && !entry.is_running)
            .map(|(name, _)| Arc::clone(name))
            .collect();
        for name in gone {
            self.remove(&name);
        }
        for (name, owner) in &wanted {
            let known = self.state.entries.get(&**name);
            let is_known = known
                .is_some_and(|entry| entry.since > 0 && entry.owner.as_deref() == owner.as_deref());
            if !is_known {
                let entry = self.state.entries.entry(Arc::from(&**name)).or_default();
                entry.owner.clone_from(owner);
                if entry.since == 0 {
                    entry.since = now;
                }
                self.reschedule(name);
            }
        }
        let (names, wait) = (&self.names, self.shared.config.release.as_secs());
        let is_needed = |name: &str| wanted.contains_key(name) || names.serves(name);
        let all = self.ordered.names();
        let left = self.state.released.compare(all, is_needed, now + wait);
        if let Some(left) = left.filter(|_| !self.state.is_release_held) {
            log::error!(target: "acme", names = left; "{left} names with certificates have no site any more. That is most of them, so none is revoked. Check whether site records are missing. `waypost cert revoke` revokes one certificate");
        }
        self.state.is_release_held = left.is_some();
    }

    fn remove(&mut self, name: &str) {
        self.state.queue.remove(name);
        let Some((name, entry)) = self.state.entries.remove_entry(name) else {
            return;
        };
        if let Some(at) = entry.ask_at {
            self.state.asks.remove(&(at, name));
        }
    }

    /// Puts a name where it has to wait.
    pub(super) fn reschedule(&mut self, name: &str) {
        let State {
            entries,
            queue,
            asks,
            ..
        } = &mut self.state;
        let Some((name, _)) = entries.get_key_value(name) else {
            return;
        };
        let name = Arc::clone(name);
        let Some(entry) = entries.get_mut(&name) else {
            return;
        };
        if entry.is_running || entry.since == 0 {
            return;
        }
        let held = self.ordered.exactly(&name);
        let is_exempt = held.as_ref().is_some_and(|held| {
            let known = self.authorities.at(&held.authority);
            known.is_some_and(|known| known.exempts_renewals())
        });
        queue.put(&name, entry.wait(held.as_deref(), is_exempt));
        // Authorities are asked about certificates, at different times.
        let ask_at = held.filter(|held| held.life.not_after > entry.since);
        let ask_at = ask_at.map(|held| match entry.ask_at {
            Some(at) => at,
            None => {
                let interval = self.shared.config.renewal_info.as_secs();
                self.clock.unix_seconds() + part_of(interval, seed_of(&held.id))
            }
        });
        if ask_at != entry.ask_at {
            if let Some(at) = entry.ask_at {
                asks.remove(&(at, Arc::clone(&name)));
            }
            if let Some(at) = ask_at {
                asks.insert((at, Arc::clone(&name)));
            }
            entry.ask_at = ask_at;
        }
    }

    /// Reads which certificates the operator has asked to replace.
    pub(super) fn read_requests(&mut self, now: u64) {
        let documents = Arc::clone(&self.shared.vault.documents);
        let Ok(changes) = documents.changes(Kind::Request, &mut self.requests) else {
            return;
        };
        for change in changes {
            let Change::Added(key) = change else { continue };
            let read = documents.get(Kind::Request, &key).ok().flatten();
            if let Some(request) = read.and_then(|bytes| Request::read(&bytes)) {
                let name = &request.name;
                match self.state.entries.get_mut(&**name) {
                    Some(entry) if entry.since > 0 => {
                        log::info!(target: "acme", name; "the operator wants another certificate for {name}");
                        entry.is_forced = true;
                        (entry.failures, entry.retry_at) = (0, now);
                        self.reschedule(name);
                    }
                    _ => {
                        log::warn!(target: "acme", name; "the operator wants a certificate for {name}, which is not a name that is served without a certificate from `tls.directory`");
                    }
                }
            }
            if let Err(error) = documents.remove(Kind::Request, &key) {
                log::warn!(target: "acme", "cannot remove a request: {}", chain(&error));
            }
        }
    }
}

// === impl Entry ===

impl Entry {
    /// Returns when its order is due, and how urgent it is. With `is_exempt`, the order replaces a
    /// certificate and does not count.
    fn wait(&self, held: Option<&HeldCertificate>, is_exempt: bool) -> Wait {
        let lane = match self.is_begun || is_exempt {
            true => Lane::Uncounted,
            false => Lane::Counted,
        };
        let Some(held) = held else {
            let at = self.since.max(self.retry_at);
            let owner = self.owner.as_ref().filter(|_| lane == Lane::Counted);
            return Wait {
                at,
                // A name that fails again and again does not become more urgent than renewals.
                deadline: at + NEW_SECONDS,
                lane,
                turn: owner.map(|owner| Turn {
                    owner: Arc::clone(owner),
                    has_failed: self.failures > 0,
                }),
            };
        };
        let life = held.life;
        let mut at = renewal_at(life, self.window);
        if self.early >= EARLY_MAX {
            at = at.max(life.not_before + (life.not_after - life.not_before) / EARLY_PART);
        }
        if self.is_forced {
            at = 0;
        }
        Wait {
            at: at.max(self.retry_at),
            deadline: life.not_after,
            lane,
            turn: None,
        }
    }
}
