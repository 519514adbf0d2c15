//! Health: which parts of the process fail, and why.
//!
//! A process can serve sites while a part of it fails, for example the queue. Such a part reports
//! its cause here. The operator's listener shows the causes (`GET /readyz?full`), and the process
//! log names each cause once, when it begins.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::logging::timestamp;
use crate::clock::Clock;

/// The state of all parts of a process.
#[derive(Clone, Debug)]
pub struct Health(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    clock: Clock,
    parts: Mutex<BTreeMap<&'static str, Option<Failure>>>,
}

/// A part of the process that reports whether it works.
#[derive(Clone, Debug)]
pub struct Part {
    name: &'static str,
    health: Health,
}

/// Why a part does not work.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Failure {
    cause: String,
    /// When it began, as RFC 3339.
    since: String,
}

// === impl Health ===

impl Health {
    /// Makes it; the process has no parts yet.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self(Arc::new(Shared {
            clock,
            parts: Mutex::default(),
        }))
    }

    /// Adds a part, which works until it reports a failure. The same name gives the same part.
    #[must_use]
    pub fn part(&self, name: &'static str) -> Part {
        self.lock().entry(name).or_default();
        Part {
            name,
            health: self.clone(),
        }
    }

    /// Returns whether every part works.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.lock().values().all(Option::is_none)
    }

    /// Returns the state of every part, by its name: `{"status": "ok"}`, or `{"status":
    /// "failing", "cause": …, "since": …}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let parts = self.lock();
        let of = |failure: &Option<Failure>| match failure {
            None => json!({ "status": "ok" }),
            Some(Failure { cause, since }) => {
                json!({ "status": "failing", "cause": cause, "since": since })
            }
        };
        let parts = parts.iter().map(|(name, failure)| {
            let name = (*name).to_owned();
            (name, of(failure))
        });
        Value::Object(parts.collect())
    }

    /// Every change is one assignment, so the map is whole after a panic too.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Option<Failure>>> {
        self.0.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Part ===

impl Part {
    /// Reports that the part does not work. The log gets a line when the cause is a new one.
    pub fn fail(&self, cause: impl Display) {
        let (name, cause) = (self.name, cause.to_string());
        if self.note(&cause) {
            log::error!(target: "health", part = name; "{name} does not work: {cause}");
        }
    }

    /// Reports that the part does not work, for a cause that the caller has logged itself.
    /// Returns whether the cause is a new one.
    pub fn note(&self, cause: &str) -> bool {
        let now = timestamp(self.health.0.clock.now());
        let mut parts = self.health.lock();
        let failure = parts.entry(self.name).or_default();
        if failure.as_ref().is_some_and(|known| known.cause == cause) {
            return false;
        }
        let since = failure.take().map_or(now, |known| known.since);
        *failure = Some(Failure {
            cause: cause.to_owned(),
            since,
        });
        true
    }

    /// Reports that the part works. The log gets a line if it did not before.
    pub fn recover(&self) {
        let name = self.name;
        let failure = self.health.lock().insert(name, None).flatten();
        if failure.is_some() {
            log::info!(target: "health", part = name; "{name} works again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_part_is_shown_with_its_cause_until_it_recovers() {
        let health = Health::new(Clock::fixed_at(784_111_777));
        let (queue, store) = (health.part("queue"), health.part("store"));
        assert!(health.is_whole());
        queue.fail("the file is locked");
        queue.fail("the file is gone");
        assert!(!health.is_whole());
        assert_eq!(
            health.to_json(),
            json!({
                "queue": {
                    "status": "failing",
                    "cause": "the file is gone",
                    "since": "1994-11-06T08:49:37.000Z",
                },
                "store": { "status": "ok" },
            })
        );
        queue.recover();
        store.recover();
        assert!(health.is_whole());
    }
}
