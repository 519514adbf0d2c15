//! The queue of updates: durable, coalescing, fenced.
//!
//! # What it keeps
//!
//! Updates with their records, per project a counter of generations and one of epochs, and
//! the idempotency keys of callers. A *generation* numbers the builds of a project, an
//! *epoch* its claims; neither is ever reused. Together they are the fence that a release
//! is promoted under, so a worker that was thought dead cannot overwrite its successor.
//!
//! # What a trigger finds
//!
//! | queued | running | answer |
//! |---|---|---|
//! | no | no | a new update |
//! | no | yes | a new update: the running build may have read the branch already |
//! | yes | either | the queued one's id, coalesced; a retry it waits for is brought forward |
//!
//! # Turns
//!
//! Owners take positions: whoever has something waiting or running stands in a line, at its end
//! when the first of it comes and at its end again with every claim. So an owner waits for
//! at most one claim of each other one, whoever has triggered how much. Among one owner's
//! updates the one that has been due longest is next.
//!
//! # Attempts
//!
//! A claim is a lease. Its holder moves the end of the lease with heartbeats and learns
//! from them when it has lost it. When it dies, the next claim after the end of the lease
//! takes over with a higher epoch. The world's failures are tried again after growing
//! waits; the author's are final. An update that runs out of attempts is *dead*: it ends as
//! a failure, is listed, and can be requeued, which makes a new update.
//!
//! # Backends
//!
//! [`memory`] for tests and previews, [`sqlite`] for a node. Both keep the same values and
//! use the same moves (`update.rs`); `conformance.rs` holds them to the same behaviour, and
//! a property test compares them step by step.
//!
//! **Deliberately absent:** a clock. Every call is told what time it is, so tests do not
//! wait, and a wrong clock can only delay a take-over or expedite it.
//!
//! **Limits:** positions are over claims, not over the time that builds take; and an owner with
//! very many projects can fill the queue (`waiting_max`), though each only once.

#[cfg(test)]
mod conformance;
mod error;
mod policy;
mod sqlite;
mod value;

use tokio::sync::Notify;

use crate::site::ProjectId;
use crate::store::Fence;

use super::record::Record;
use super::update::{Update, WorkerId};
use super::{StatusId, Timestamp};

pub use error::QueueError;
pub use policy::Policy;
use policy::{Served, finish_attempt, give_up, log_line};
pub use sqlite::Sqlite;
pub use value::{Claim, Depth, Enqueued, Held, Outcome, Progress, Swept, Trigger};

/// The most lines kept in one update's log.
pub const LOG_LINES_MAX: usize = 2000;
/// The longest line kept, in bytes.
pub const LOG_LINE_BYTES_MAX: usize = 2000;

/// The queue of updates.
#[derive(Debug)]
pub struct Queue {
    backend: Backend,
    policy: Policy,
    notify: Notify,
}

/// Where updates are kept.
#[derive(Debug)]
pub enum Backend {
    /// In a file that several processes may open.
    Sqlite(Sqlite),
}

// === impl Queue ===

/// Calls the same method of whichever backend there is.
macro_rules! backend {
    ($queue:expr, $method:ident ( $($argument:expr),* )) => {
        match &$queue.backend {
            Backend::Sqlite(sqlite) => sqlite.$method($($argument),*),
        }
    };
}

impl Queue {
    /// Makes a queue over a backend.
    #[must_use]
    pub fn new(backend: Backend, policy: Policy) -> Self {
        Self {
            backend,
            policy,
            notify: Notify::new(),
        }
    }

    /// Returns how long it waits, tries and keeps.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Queues an update, or finds the one that will answer for the trigger.
    ///
    /// When this returns, the update is as durable as the backend can make it.
    ///
    /// # Errors
    ///
    /// [`QueueError::Full`], [`QueueError::KeyReused`], or the backend's trouble.
    pub fn enqueue(&self, trigger: &Trigger, now: Timestamp) -> Result<Enqueued, QueueError> {
        let enqueued = backend!(self, enqueue(trigger, &self.policy, now))?;
        self.notify.notify_one();
        Ok(enqueued)
    }

    /// Does what [`Queue::enqueue`] does without holding a thread while it waits: triggers
    /// come by the hundred, and share one flush of the disk.
    ///
    /// # Errors
    ///
    /// As [`Queue::enqueue`].
    pub async fn enqueue_soon(
        &self,
        trigger: Trigger,
        now: Timestamp,
    ) -> Result<Enqueued, QueueError> {
        let enqueued = match &self.backend {
            Backend::Sqlite(sqlite) => {
                let policy = self.policy.clone();
                sqlite.enqueue_soon(trigger, policy, now).await
            }
        }?;
        self.notify.notify_one();
        Ok(enqueued)
    }

    /// Returns once something was queued through this value. Other processes ring no notify.
    pub async fn notified(&self) {
        self.notify.notified().await;
    }

    /// Reads the record of an update.
    ///
    /// # Errors
    ///
    /// The backend's trouble.
    pub fn record(&self, id: &StatusId) -> Result<Option<Record>, QueueError> {
        backend!(self, record(id))
    }

    /// Takes an update that is due, if one is: of the owner whose turn it is, the one that
    /// has been due longest.
    ///
    /// # Errors
    ///
    /// The backend's trouble.
    pub fn claim(&self, worker: &WorkerId, now: Timestamp) -> Result<Option<Claim>, QueueError> {
        backend!(self, claim(worker, &self.policy, now))
    }

    /// Keeps a claim for another lease and adds to the update's record.
    ///
    /// # Errors
    ///
    /// The backend's trouble.
    pub fn heartbeat(
        &self,
        claim: &Claim,
        progress: Progress,
        now: Timestamp,
    ) -> Result<Held, QueueError> {
        backend!(self, heartbeat(claim, progress, &self.policy, now))
    }

    /// Lifts the generation of a claimed update to at least this one, because the store
    /// holds something as new: a release published by hand, or a queue that was lost.
    ///
    /// # Errors
    ///
    /// The backend's trouble.
    pub fn raise_generation(&self, claim: &mut Claim, at_least: u64) -> Result<Held, QueueError> {
        let held = backend!(self, raise_generation(claim, at_least))?;
        claim.update.generation = claim.update.generation.max(at_least);
        Ok(held)
    }

    /// Ends an attempt.
    ///
    /// # Errors
    ///
    /// The backend's trouble.
    pub fn finish(
        &self,
        claim: &Claim,
        outcome: &Outcome,
        summary: &str,
        now: Timestamp,
    ) -> Result<Held, QueueError> {
        let held = backend!(self, finish(claim, outcome, summary, &self.policy, now))?;
        // The project's next update may have waited for this one.
        self.notify.notify_one();
        Ok(held)
    }

    /// Ends what waits for a project that is no more.
    ///
    /// # Errors
    ///
    /// The backend's trouble.
    pub fn cancel(
        &self,
        project: &ProjectId,
        summary: &str,
        now: Timestamp,
    ) -> Result<bool, QueueError> {
        backend!(self, cancel(project, summary, now))
    }

    /// Notes what a gateway serves of a project now, so that the record of the update which
    /// published it says since when: those that have ended, and the one that will.
    ///
    /// # Errors
    ///
    /// The backend's trouble.
    pub fn record_served(
        &self,
        project: &ProjectId,
        fence: Fence,
        now: Timestamp,
    ) -> Result<(), QueueError> {
        backend!(self, record_served(project, fence, now))
    }

    /// Lists projects with a success of which nobody has said that it is visible.
    ///
    /// # Errors
    ///
    /// The backend's trouble.
    pub fn not_yet_visible(&self) -> Result<Vec<ProjectId>, QueueError> {
        backend!(self, not_yet_visible())
    }

    /// Lists updates that ran out of attempts, the latest first.
    ///
    /// # Errors
    ///
    /// The backend's trouble.
    pub fn dead_letters(&self, limit: u32) -> Result<Vec<Update>, QueueError> {
        backend!(self, dead_letters(limit))
    }

    /// Queues a project's dead update again, as a new one; `None` when it has none.
    ///
    /// # Errors
    ///
    /// As [`Queue::enqueue`].
    pub fn requeue(
        &self,
        project: &ProjectId,
        now: Timestamp,
    ) -> Result<Option<Enqueued>, QueueError> {
        let requeued = backend!(self, requeue(project, &self.policy, now))?;
        self.notify.notify_one();
        Ok(requeued)
    }

    /// Lists a project's updates, the latest first.
    ///
    /// # Errors
    ///
    /// The backend's trouble.
    pub fn recent(&self, project: &ProjectId, limit: u32) -> Result<Vec<Update>, QueueError> {
        backend!(self, recent(project, limit))
    }

    /// Forgets what is older than the policy keeps.
    ///
    /// # Errors
    ///
    /// The backend's trouble.
    pub fn sweep(&self, now: Timestamp) -> Result<Swept, QueueError> {
        backend!(self, sweep(&self.policy, now))
    }

    /// Returns the generation of a project's newest update; 0 when it never had one. What
    /// is published by hand takes a higher one, so that a build which is running then
    /// does not replace it.
    ///
    /// # Errors
    ///
    /// The backend's trouble.
    pub fn generation(&self, project: &ProjectId) -> Result<u64, QueueError> {
        backend!(self, generation(project))
    }

    /// Counts the updates by what they wait for.
    ///
    /// # Errors
    ///
    /// The backend's trouble.
    pub fn depth(&self) -> Result<Depth, QueueError> {
        backend!(self, depth())
    }
}
