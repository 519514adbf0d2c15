//! The queue of updates: durable, coalescing, fenced.
//!
//! # What it stores
//!
//! It stores updates with their records, the idempotency keys of callers, and two counters for
//! each project. The *generation* numbers the project's updates, the *epoch* numbers the claims
//! of them; no number is used twice. Together they are the fence of a promotion: a worker that
//! lost its lease and comes back cannot replace the release of the worker after it. A database that
//! loses its last transactions in a fail-over may use an epoch again, so each claim also has a
//! random *token*, and holds its lease only with it.
//!
//! # What a trigger returns
//!
//! | queued | running | the trigger returns |
//! |---|---|---|
//! | no | no | a new update |
//! | no | yes | a new update: the running build may have read the branch before the trigger |
//! | yes | either | the queued update, coalesced; if it waits for a retry, it is due now |
//!
//! Only the owner of an update may read its record. So when a site has another owner, the first
//! trigger of the new one ends all updates of the former one, and returns a new update.
//!
//! # Order
//!
//! Owners are served round-robin. An owner joins the end of the line with the first update that
//! waits or runs, and moves to the end with every claim. So an owner waits for at most one claim of
//! each other owner, however many updates those have. Among the updates of one owner, the one that
//! has been due longest is claimed first.
//!
//! Owners without a running update come first. So an owner has at most one running update while
//! another owner waits. If an owner had several before the other owner came, `run::slots` revokes
//! a slot. A busy worker claims updates only for owners without a running update
//! ([`Owners::Idle`]).
//!
//! # Attempts
//!
//! A claim is a lease. Its holder extends the lease with heartbeats; the answer to a heartbeat says
//! whether it still holds the lease. When a holder dies, the lease ends and another worker may
//! claim the update, with a higher epoch. A failure that may pass, such as a network error, is
//! tried again after a growing delay. An attempt that ran out of time or was killed by a signal is
//! tried once more. A failure that the author must correct is final. An update that runs out of
//! attempts is a *dead letter*: it ends as a failure and stays in the list of dead letters until
//! the project is triggered again. Requeueing one makes a new update.
//!
//! # Back ends
//!
//! [`Sqlite`] is the queue of one machine, [`Postgres`] that of several. A back end stores and
//! finds updates; the statements (`sql`), the moves between states and the decisions are shared
//! (`update`, `policy`). The tests in `conformance` run over every back end, and random histories
//! compare each with a model in memory.
//!
//! **Deliberately absent:** a clock. Every call gets the current time from its caller, so tests
//! need not wait; `Postgres` uses the time of its server instead. A wrong clock can make a lease end
//! too early or too late, and [`Queue::correct_times`] finds times that a clock wrote that was far
//! ahead. While a clock is far ahead, [`Queue::sweep`] removes ended updates and idempotency keys
//! before their time.
//!
//! **Limits:** an owner with very many projects can fill the queue (`waiting_max`), though with
//! one update of each project.

#[cfg(test)]
mod conformance;
mod error;
mod policy;
mod postgres;
mod sql;
mod sqlite;
mod value;

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use crate::error::chain;
use crate::site::ProjectId;
use crate::store::Fence;
use crate::telemetry::{self, Part};

use super::record::Record;
use super::update::{State, Update, WorkerId};
use super::{StatusId, Timestamp};

pub use crate::database::{Config as PostgresConfig, Rejection};
pub use error::QueueError;
pub use policy::Policy;
use policy::{Served, claim_token, end_as_dead_letter, finish_attempt, log_line};
pub use postgres::{Metrics as PostgresMetrics, Postgres};
pub use sqlite::Sqlite;
pub use value::{
    Claim, Depth, Enqueued, Held, Outcome, Owners, Progress, Spending, Swept, Trigger,
};

/// The most lines in the log of one update; later lines are dropped.
pub const LOG_LINES_MAX: usize = 2000;
/// The longest line of a log, in bytes; the rest of a longer one is cut off.
pub const LOG_LINE_BYTES_MAX: usize = 2000;
/// The summary of an update of a site that has another owner now.
pub const OWNER_CHANGED: &str = "cancelled: the site has another owner now";

/// The queue of updates.
#[derive(Debug)]
pub struct Queue {
    backend: Backend,
    policy: Policy,
    notify: Notify,
    health: Option<Health>,
}

/// Where the queue reports whether it works: reading may work when writing does not.
#[derive(Debug)]
struct Health {
    reading: Side,
    writing: Side,
}

#[derive(Debug)]
struct Side {
    part: Part,
    is_failing: AtomicBool,
}

/// Where updates are stored.
#[derive(Debug)]
pub enum Backend {
    /// In a file that several processes may open.
    Sqlite(Sqlite),
    /// In a database that processes of several machines use.
    Postgres(Postgres),
}

// === impl Queue ===

/// Calls the same method of the back end.
macro_rules! backend {
    ($queue:expr, $method:ident ( $($argument:expr),* )) => {
        match &$queue.backend {
            Backend::Sqlite(sqlite) => sqlite.$method($($argument),*),
            Backend::Postgres(postgres) => postgres.$method($($argument),*),
        }
    };
}

impl Queue {
    /// Makes a queue over a back end.
    #[must_use]
    pub fn new(backend: Backend, policy: Policy) -> Self {
        Self {
            backend,
            policy,
            notify: Notify::new(),
            health: None,
        }
    }

    /// Reports outages of the queue as the parts `queue_reading` and `queue_writing`.
    #[must_use]
    pub fn reporting_to(self, health: &telemetry::Health) -> Self {
        Self {
            health: Some(Health {
                reading: Side::new(health.part("queue_reading")),
                writing: Side::new(health.part("queue_writing")),
            }),
            ..self
        }
    }

    /// Opens the file again if it could not be opened or was replaced, and finds out whether it
    /// can be written again.
    ///
    /// # Errors
    ///
    /// Why the queue does not work yet.
    pub fn heal(&self) -> Result<(), QueueError> {
        self.read(backend!(self, reopen()))?;
        let was_broken = self
            .health
            .as_ref()
            .is_none_or(|health| health.writing.is_failing.load(Ordering::Relaxed));
        if was_broken {
            self.written(backend!(self, probe()))?;
        }
        Ok(())
    }

    fn read<T>(&self, result: Result<T, QueueError>) -> Result<T, QueueError> {
        if let Some(health) = &self.health {
            health.reading.report(&result);
        }
        result
    }

    fn written<T>(&self, result: Result<T, QueueError>) -> Result<T, QueueError> {
        if let Some(health) = &self.health {
            health.writing.report(&result);
        }
        result
    }

    /// Returns the delays and limits of the queue.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Queues an update, or returns the queued one that the trigger coalesces with.
    ///
    /// When this returns, the update is on disk.
    ///
    /// # Errors
    ///
    /// [`QueueError::Full`], [`QueueError::KeyReused`], or an error of the back end.
    pub fn enqueue(&self, trigger: &Trigger, now: Timestamp) -> Result<Enqueued, QueueError> {
        let enqueued = self.written(backend!(self, enqueue(trigger, &self.policy, now)))?;
        self.notify.notify_one();
        Ok(enqueued)
    }

    /// Does what [`Queue::enqueue`] does, but waits without blocking a thread. Hundreds of
    /// triggers may wait at once, and share one flush of the disk.
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
            Backend::Postgres(postgres) => {
                let policy = self.policy.clone();
                postgres.enqueue_soon(trigger, policy, now).await
            }
        };
        let enqueued = self.written(enqueued)?;
        self.notify.notify_one();
        Ok(enqueued)
    }

    /// Returns once an update was queued or ended through this value. Changes by other
    /// processes do not notify.
    pub async fn notified(&self) {
        self.notify.notified().await;
    }

    /// Reads the record of an update.
    ///
    /// # Errors
    ///
    /// An error of the back end.
    pub fn record(&self, id: &StatusId) -> Result<Option<Record>, QueueError> {
        self.read(backend!(self, record(id)))
    }

    /// Claims an update that is due: of the owner that is next, the one that has been due
    /// longest. Returns `None` when no update of these owners is due.
    ///
    /// # Errors
    ///
    /// An error of the back end.
    pub fn claim(
        &self,
        worker: &WorkerId,
        owners: Owners,
        now: Timestamp,
    ) -> Result<Option<Claim>, QueueError> {
        match backend!(self, claim(worker, owners, &self.policy, now)) {
            // Nothing was due, so nothing was written.
            Ok(None) => self.read(Ok(None)),
            claimed => self.written(claimed),
        }
    }

    /// Makes updates due whose lease or delay ends so far in the future that only a clock that
    /// was ahead can have set it. Returns how many there were.
    ///
    /// # Errors
    ///
    /// An error of the back end.
    pub fn correct_times(&self, now: Timestamp) -> Result<usize, QueueError> {
        let corrected = self.read(backend!(self, correct_times(&self.policy, now)))?;
        if corrected > 0 {
            self.notify.notify_one();
        }
        Ok(corrected)
    }

    /// Ends the leases of workers that have ended without releasing them. Their updates are due
    /// at once, and the attempts count. Returns how many leases there were.
    ///
    /// # Errors
    ///
    /// An error of the back end.
    pub fn end_leases(
        &self,
        has_ended: impl Fn(&WorkerId) -> bool,
        now: Timestamp,
    ) -> Result<usize, QueueError> {
        let running = self.read(backend!(self, running()))?;
        let mut ended = 0;
        for update in running {
            let State::InProgress(holder) = &update.state else {
                continue;
            };
            if has_ended(&holder.worker) {
                ended += usize::from(
                    self.written(backend!(self, end_lease(&update.id, holder.epoch, now)))?,
                );
            }
        }
        if ended > 0 {
            self.notify.notify_one();
        }
        Ok(ended)
    }

    /// Extends the lease of a claim and adds progress to the update's record.
    ///
    /// # Errors
    ///
    /// An error of the back end.
    pub fn heartbeat(
        &self,
        claim: &Claim,
        progress: Progress,
        now: Timestamp,
    ) -> Result<Held, QueueError> {
        self.written(backend!(
            self,
            heartbeat(claim, progress, &self.policy, now)
        ))
    }

    /// Raises the generation of a claimed update to at least `at_least`.
    ///
    /// This is needed when the store has a release of the same or a higher generation: the release
    /// was published by hand, or the file of the queue was lost after its promotion.
    ///
    /// # Errors
    ///
    /// An error of the back end.
    pub fn raise_generation(&self, claim: &mut Claim, at_least: u64) -> Result<Held, QueueError> {
        let held = self.written(backend!(self, raise_generation(claim, at_least)))?;
        claim.update.generation = claim.update.generation.max(at_least);
        Ok(held)
    }

    /// Ends an attempt. A claim that has done so may call it again: the answer is the same, and
    /// nothing changes.
    ///
    /// # Errors
    ///
    /// An error of the back end.
    pub fn finish(
        &self,
        claim: &Claim,
        outcome: &Outcome,
        summary: &str,
        now: Timestamp,
    ) -> Result<Held, QueueError> {
        let held = self.written(backend!(
            self,
            finish(claim, outcome, summary, &self.policy, now)
        ))?;
        // The project's next update may have waited for this one to end.
        self.notify.notify_one();
        Ok(held)
    }

    /// Ends the waiting update of a project. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// An error of the back end.
    pub fn cancel(
        &self,
        project: &ProjectId,
        summary: &str,
        now: Timestamp,
    ) -> Result<bool, QueueError> {
        self.written(backend!(self, cancel(project, summary, now)))
    }

    /// Records which promotion of a project a gateway serves since `now`.
    ///
    /// The records of the updates up to that promotion get the time at which they became visible.
    /// An update that has not ended yet gets it when it ends.
    ///
    /// # Errors
    ///
    /// An error of the back end.
    pub fn record_served(
        &self,
        project: &ProjectId,
        fence: Fence,
        now: Timestamp,
    ) -> Result<(), QueueError> {
        self.written(backend!(self, record_served(project, fence, now)))
    }

    /// Lists the projects with a successful update that no gateway has reported as visible.
    ///
    /// # Errors
    ///
    /// An error of the back end.
    pub fn not_yet_visible(&self) -> Result<Vec<ProjectId>, QueueError> {
        self.read(backend!(self, not_yet_visible()))
    }

    /// Lists the dead letters, the latest first: updates that ran out of attempts.
    ///
    /// # Errors
    ///
    /// An error of the back end.
    pub fn dead_letters(&self, limit: u32) -> Result<Vec<Update>, QueueError> {
        self.read(backend!(self, dead_letters(limit)))
    }

    /// Queues a new update for the latest dead letter of a project. Returns `None` when the
    /// project has none.
    ///
    /// # Errors
    ///
    /// As [`Queue::enqueue`].
    pub fn requeue(
        &self,
        project: &ProjectId,
        now: Timestamp,
    ) -> Result<Option<Enqueued>, QueueError> {
        let requeued = self.written(backend!(self, requeue(project, &self.policy, now)))?;
        self.notify.notify_one();
        Ok(requeued)
    }

    /// Lists a project's updates, the latest first.
    ///
    /// # Errors
    ///
    /// An error of the back end.
    pub fn recent(&self, project: &ProjectId, limit: u32) -> Result<Vec<Update>, QueueError> {
        self.read(backend!(self, recent(project, limit)))
    }

    /// Reserves what an update may spend on a language model: as much of `requested` as `limit`
    /// leaves to the owner on this day (UTC). Returns `None` if nothing is left.
    ///
    /// # Errors
    ///
    /// An error of the back end.
    pub fn reserve_spending(
        &self,
        owner: &str,
        requested: Spending,
        limit: Spending,
        now: Timestamp,
    ) -> Result<Option<Spending>, QueueError> {
        self.written(backend!(
            self,
            reserve_spending(owner, requested, limit, now)
        ))
    }

    /// Replaces the amount that was reserved at `begun` by the spent amount.
    ///
    /// # Errors
    ///
    /// An error of the back end.
    pub fn settle_spending(
        &self,
        owner: &str,
        reserved: Spending,
        used: Spending,
        begun: Timestamp,
    ) -> Result<(), QueueError> {
        self.written(backend!(
            self,
            settle_spending(owner, reserved, used, begun)
        ))
    }

    /// Returns what the updates of an owner have spent or reserved on this day (UTC).
    ///
    /// # Errors
    ///
    /// An error of the back end.
    pub fn spending(&self, owner: &str, now: Timestamp) -> Result<Spending, QueueError> {
        self.read(backend!(self, spending(owner, now)))
    }

    /// Removes records and idempotency keys that are older than the policy allows.
    ///
    /// # Errors
    ///
    /// An error of the back end.
    pub fn sweep(&self, now: Timestamp) -> Result<Swept, QueueError> {
        self.written(backend!(self, sweep(&self.policy, now)))
    }

    /// Returns the generation of a project's newest update; 0 when it never had one. A release
    /// that is published by hand takes a higher one, so that a build which runs at that time
    /// does not replace it.
    ///
    /// # Errors
    ///
    /// An error of the back end.
    pub fn generation(&self, project: &ProjectId) -> Result<u64, QueueError> {
        self.read(backend!(self, generation(project)))
    }

    /// Counts the updates that wait, run, or are dead letters.
    ///
    /// # Errors
    ///
    /// An error of the back end.
    pub fn depth(&self) -> Result<Depth, QueueError> {
        self.read(backend!(self, depth()))
    }
}

// === impl Side ===

impl Side {
    fn new(part: Part) -> Self {
        Self {
            part,
            is_failing: AtomicBool::new(false),
        }
    }

    /// Reports the result of a call. An error that is not an outage shows that the queue works.
    fn report<T>(&self, result: &Result<T, QueueError>) {
        match result {
            Err(error) if error.is_outage() => {
                self.is_failing.store(true, Ordering::Relaxed);
                self.part.fail(chain(error));
            }
            _ if self.is_failing.swap(false, Ordering::Relaxed) => self.part.recover(),
            _ => {}
        }
    }
}
