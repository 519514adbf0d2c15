//! The queue of several machines: a PostgreSQL database, version 14 or newer.
//!
//! The rules are those of SQLite ([`sql`](super::sql)). What differs:
//!
//! * **One at a time.** Round-robin over all owners is one order, so claims, triggers and ends of
//!   updates run one after the other: each such transaction takes one lock, and a process puts all
//!   that waits into one transaction. Heartbeats need no order. They lock only their own update,
//!   and a claim leaves out updates that are locked (`SKIP LOCKED`). Reading waits for nothing.
//! * **The clock of the server** decides when leases end, so the clocks of workers may differ.
//! * **The server's promises** are checked for every connection (`promises`).
//! * **A lost tail.** A standby that takes over may lack the last transactions, and a restored
//!   backup too. A process remembers the updates that it has acknowledged in the last hour; when
//!   the life of the database changes, or a new connection does not find the last one of them, it
//!   stores those again that the database does not know (`Server::restore`). If a process has ended
//!   since then, nothing knows what it acknowledged.
//!
//! Workers poll for updates, as with SQLite: `NOTIFY` takes one lock for all databases of a server
//! until the commit is on disk, which costs triggers more than five indexed reads a second for
//! each worker cost, and it does not pass connection poolers.
//!
//! Sources: PostgreSQL, "Explicit Locking", "Transaction Isolation", "NOTIFY", "Reliability".

mod copy;
mod tables;
mod threads;

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus::{IntCounter, IntGauge};

use super::super::record::Record;
use super::super::update::{Update, WorkerId};
use super::super::{StatusId, Timestamp};
use super::sql::{SPENDING_DAYS, day_of, operation, reading, spending, visible};
use super::{
    Claim, Depth, Enqueued, Held, Outcome, Owners, Policy, Progress, QueueError, Spending, Swept,
    Trigger,
};
use crate::database::{
    self, Config, Connect, DatabaseError, Link, Promises, READ, Repeat, Schema, Session, Value,
    WRITE as WRITE_ROW,
};
use crate::site::ProjectId;
use crate::store::Fence;
use crate::telemetry;
use threads::Threads;

/// The tables of the queue.
pub(super) const SCHEMA: Schema = Schema {
    name: "waypost_queue",
    holds: "queue",
    section: "queue.postgres",
    version: 1,
    compatible: 1,
    script: include_str!("schema.sql"),
    raises: &[],
};
/// Begins a transaction that changes the order of the queue: one at a time may run. Reading does
/// not wait for it.
const WRITE: &str = "BEGIN; LOCK TABLE identity IN SHARE ROW EXCLUSIVE MODE";
/// How long an acknowledged update is remembered, in case the database loses it.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// How many acknowledged updates are remembered.
const REMEMBERED_MAX: usize = 10_000;

/// A queue in a PostgreSQL database.
pub struct Postgres {
    server: Arc<Server>,
    threads: Threads,
}

/// What all connections of a process share.
struct Server {
    config: Config,
    service: Box<str>,
    clock: ClockOf,
    metrics: Option<Metrics>,
    /// What the last connection was promised.
    promises: Mutex<Option<Promises>>,
    /// Another life of the database was found, and what it may lack was not queued again yet.
    has_new_life: AtomicBool,
    acknowledged: Mutex<VecDeque<(StatusId, Trigger, Timestamp)>>,
}

/// Whose clock is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClockOf {
    /// The clock of the database.
    Server,
    /// The time that callers give: tests do not wait.
    #[cfg(test)]
    Callers,
}

/// The metrics of the connections.
#[derive(Debug)]
pub struct Metrics {
    durable: IntGauge,
    timeline: IntGauge,
    connections: IntCounter,
    restored: IntCounter,
}

// === impl ClockOf ===

impl ClockOf {
    fn time(self, server: Timestamp, _callers: Timestamp) -> Timestamp {
        match self {
            Self::Server => server,
            #[cfg(test)]
            Self::Callers => _callers,
        }
    }
}

// === impl Metrics ===

impl Metrics {
    /// Registers them.
    #[must_use]
    pub fn new(metrics: &telemetry::Metrics) -> Self {
        let durable = IntGauge::new(
            "deploy_queue_database_durable",
            "Whether the database of the queue promises that acknowledged updates survive (1) or not (0).",
        );
        let timeline = IntGauge::new(
            "deploy_queue_database_timeline",
            "The timeline of the database of the queue; it changes when a standby takes over.",
        );
        let connections = IntCounter::new(
            "deploy_queue_database_connections_total",
            "Connections made to the database of the queue.",
        );
        let restored = IntCounter::new(
            "deploy_queue_database_restored_total",
            "Updates queued again because the database had lost them in a fail-over.",
        );
        Self {
            durable: metrics.register(durable),
            timeline: metrics.register(timeline),
            connections: metrics.register(connections),
            restored: metrics.register(restored),
        }
    }
}

// === impl Server ===

impl Connect for Server {
    fn connect(&self) -> Result<Link, DatabaseError> {
        let link = Link::open(&self.config, &SCHEMA)?;
        self.check(&link)?;
        self.look_for_last(&link)?;
        if let Some(metrics) = &self.metrics {
            metrics.connections.inc();
        }
        Ok(link)
    }

    fn check(&self, link: &Link) -> Result<(), DatabaseError> {
        let durable = self.metrics.as_ref().map(|metrics| &metrics.durable);
        let (config, service) = (&self.config, &self.service);
        let promises = Promises::confirmed(link, config, &SCHEMA, service, durable)?;
        self.promised(promises);
        Ok(())
    }
}

impl Server {
    /// Finds out whether the database has lost an acknowledged update. A copy of all its files that
    /// was restored has the same life, and lacks the last ones.
    fn look_for_last(&self, link: &Link) -> Result<(), DatabaseError> {
        const KNOWN: &str = "SELECT 1::bigint FROM updates WHERE id = ?1";
        let last = lock(&self.acknowledged).back().map(|(id, ..)| id.clone());
        let Some(id) = last else { return Ok(()) };
        if link.rows(KNOWN, &[Value::Text(id.as_str())])?.is_empty()
            && !self.has_new_life.swap(true, Ordering::Relaxed)
        {
            log::error!(target: "deploy", "the database of the queue does not have the update {id}, which it acknowledged: an earlier state of it was restored");
        }
        Ok(())
    }

    /// Logs promises that differ from the last ones.
    fn promised(&self, promises: Promises) {
        if let Some(metrics) = &self.metrics {
            metrics.durable.set(promises.gaps.is_empty().into());
            metrics.timeline.set(promises.timeline().into());
        }
        let mut last = lock(&self.promises);
        if last.as_ref() == Some(&promises) {
            return;
        }
        let level = match promises.is_weak() {
            false => log::Level::Info,
            true => log::Level::Warn,
        };
        log::log!(target: "deploy", level, "the database of the queue: {promises}");
        let now = &promises.life;
        if let Some(before) = last.as_ref().map(|last| &last.life)
            && before != now
        {
            log::error!(
                target: "deploy",
                "the database of the queue has another history ({now} after {before}): what it acknowledged last may be lost",
            );
            self.has_new_life.store(true, Ordering::Relaxed);
        }
        *last = Some(promises);
    }

    /// Remembers an update that a caller was told of.
    fn acknowledge(&self, enqueued: &Enqueued, trigger: &Trigger, now: Timestamp) {
        if enqueued.coalesced {
            return;
        }
        let mut acknowledged = lock(&self.acknowledged);
        let oldest = now.before(REMEMBERED);
        while acknowledged.len() >= REMEMBERED_MAX
            || acknowledged.front().is_some_and(|(.., at)| *at < oldest)
        {
            acknowledged.pop_front();
        }
        acknowledged.push_back((enqueued.id.clone(), trigger.clone(), now));
    }

    /// Stores the updates again that the database has lost.
    fn restore(&self, session: &mut Session) {
        if !self.has_new_life.swap(false, Ordering::Relaxed) {
            return;
        }
        let acknowledged: Vec<_> = lock(&self.acknowledged).iter().cloned().collect();
        let (mut lost, mut failed) = (0, None);
        for (id, trigger, _at) in &acknowledged {
            let restored = session.transact(WRITE, Repeat::Always, &mut |link, now| {
                operation::restore(link, id, trigger, Timestamp::from_millis(now))
            });
            match restored {
                Ok(is_restored) => lost += u64::from(is_restored),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        if let Some(error) = failed {
            self.has_new_life.store(true, Ordering::Relaxed);
            log::error!(target: "deploy", "cannot search for lost updates: {}", crate::error::chain(&error));
        }
        if lost > 0 {
            log::error!(target: "deploy", lost; "the database had lost {lost} acknowledged updates; they are in the queue again");
        }
        if let Some(metrics) = &self.metrics {
            metrics.restored.inc_by(lost);
        }
    }
}

// === impl Postgres ===

impl Postgres {
    /// Opens the queue, now or later: while the database cannot be used, every call fails with the
    /// reason, and [`Queue::heal`](super::Queue::heal) tries again. `service` is the service's
    /// domain.
    ///
    /// # Errors
    ///
    /// When threads cannot be started.
    pub fn open(
        config: &Config,
        service: &str,
        metrics: Option<&telemetry::Metrics>,
    ) -> std::io::Result<Self> {
        Self::start(config, service, metrics, ClockOf::Server)
    }

    /// Opens a queue that uses the time of its callers.
    #[cfg(test)]
    pub(super) fn open_for_tests(config: &Config) -> Self {
        let opened = Self::start(config, "tests", None, ClockOf::Callers);
        opened.unwrap()
    }

    fn start(
        config: &Config,
        service: &str,
        metrics: Option<&telemetry::Metrics>,
        clock: ClockOf,
    ) -> std::io::Result<Self> {
        let server = Arc::new(Server {
            config: config.clone(),
            service: service.into(),
            clock,
            metrics: metrics.map(Metrics::new),
            promises: Mutex::default(),
            has_new_life: AtomicBool::new(false),
            acknowledged: Mutex::default(),
        });
        let threads = Threads::start(&server)?;
        Ok(Self { server, threads })
    }

    /// Behaves as after a fail-over.
    #[cfg(test)]
    pub(super) fn find_new_life(&self) {
        self.server.has_new_life.store(true, Ordering::Relaxed);
    }

    /// Makes the schema in a database. Returns `false` if it is there already. A database with
    /// tables of other programs is refused unless it is `shared`.
    ///
    /// # Errors
    ///
    /// [`QueueError::Rejected`], [`QueueError::Newer`], or an outage.
    pub fn init(config: &Config, service: &str, shared: bool) -> Result<bool, QueueError> {
        let link = Link::open(config, &SCHEMA)?;
        Promises::ask(&link, config, &SCHEMA)?;
        Ok(make(&link, service, shared)?)
    }

    /// Raises the schema to the version of this program. Returns that version.
    ///
    /// # Errors
    ///
    /// As [`Postgres::init`].
    pub fn migrate(config: &Config, service: &str) -> Result<u32, QueueError> {
        let link = Link::open(config, &SCHEMA)?;
        Promises::ask(&link, config, &SCHEMA)?;
        Ok(database::migrate(&link, &SCHEMA, service)?)
    }

    /// Runs a transaction that only reads.
    fn read<T: Send + 'static>(
        &self,
        act: impl FnMut(&Link, Timestamp) -> Result<T, QueueError> + Send + 'static,
    ) -> Result<T, QueueError> {
        self.threads.call(READ, act)
    }

    /// Runs a transaction that may change anything.
    fn write<T: Send + 'static>(
        &self,
        act: impl FnMut(&Link, Timestamp) -> Result<T, QueueError> + Send + 'static,
    ) -> Result<T, QueueError> {
        self.threads.write(Repeat::Always, act)
    }

    pub(super) fn reopen(&self) -> Result<(), QueueError> {
        self.read(|_link, _now| Ok(()))?;
        if self.server.has_new_life.load(Ordering::Relaxed) {
            // The writer looks for lost updates before anything else.
            self.write(|_link, _now| Ok(()))?;
        }
        Ok(())
    }

    /// Writes something that changes nothing, to find out whether writing is possible.
    pub(super) fn probe(&self) -> Result<(), QueueError> {
        const SAME: &str = "UPDATE totals SET updates = updates WHERE state = 'queued'";
        self.write(|link, _now| Ok(link.execute(SAME, &[]).map(|_one| ())?))
    }

    pub(super) fn enqueue(
        &self,
        trigger: &Trigger,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Enqueued, QueueError> {
        let operation = enqueuing(self.server.clock, trigger.clone(), policy.clone(), now);
        let enqueued = self.write(operation)?;
        self.server.acknowledge(&enqueued, trigger, now);
        Ok(enqueued)
    }

    pub(super) async fn enqueue_soon(
        &self,
        trigger: Trigger,
        policy: Policy,
        now: Timestamp,
    ) -> Result<Enqueued, QueueError> {
        let operation = enqueuing(self.server.clock, trigger.clone(), policy, now);
        let enqueued = self.threads.write_soon(operation).await?;
        self.server.acknowledge(&enqueued, &trigger, now);
        Ok(enqueued)
    }

    pub(super) fn claim(
        &self,
        worker: &WorkerId,
        owners: Owners,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Option<Claim>, QueueError> {
        let clock = self.server.clock;
        // An idle worker polls often, and most polls find nothing: those take no lock.
        if !self.read(move |link, time| reading::has_due(link, clock.time(time, now)))? {
            return Ok(None);
        }
        let (worker, policy) = (worker.clone(), policy.clone());
        // A claim that was stored without an answer ends with its lease.
        self.threads.write(Repeat::BeforeCommit, move |link, time| {
            operation::claim(link, &worker, owners, &policy, clock.time(time, now))
        })
    }

    pub(super) fn correct_times(
        &self,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<usize, QueueError> {
        let (clock, known) = (self.server.clock, policy.clone());
        let has_wrong = self.read(move |link, time| {
            reading::has_wrong_times(link, &known, clock.time(time, now))
        })?;
        if !has_wrong {
            return Ok(0);
        }
        let policy = policy.clone();
        self.write(move |link, time| operation::correct_times(link, &policy, clock.time(time, now)))
    }

    pub(super) fn running(&self) -> Result<Vec<Update>, QueueError> {
        self.read(|link, _now| reading::running(link))
    }

    pub(super) fn end_lease(
        &self,
        id: &StatusId,
        epoch: u64,
        now: Timestamp,
    ) -> Result<bool, QueueError> {
        let (clock, id) = (self.server.clock, id.clone());
        self.write(move |link, time| operation::end_lease(link, &id, epoch, clock.time(time, now)))
    }

    pub(super) fn heartbeat(
        &self,
        claim: &Claim,
        progress: Progress,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Held, QueueError> {
        let clock = self.server.clock;
        let (claim, policy) = (claim.clone(), policy.clone());
        self.threads.call(WRITE_ROW, move |link, time| {
            operation::heartbeat(link, &claim, &progress, &policy, clock.time(time, now))
        })
    }

    pub(super) fn raise_generation(
        &self,
        claim: &Claim,
        at_least: u64,
    ) -> Result<Held, QueueError> {
        let claim = claim.clone();
        self.write(move |link, _now| operation::raise_generation(link, &claim, at_least))
    }

    pub(super) fn finish(
        &self,
        claim: &Claim,
        outcome: &Outcome,
        summary: &str,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Held, QueueError> {
        let clock = self.server.clock;
        let (claim, outcome) = (claim.clone(), outcome.clone());
        let (summary, policy) = (summary.to_owned(), policy.clone());
        self.write(move |link, time| {
            let now = clock.time(time, now);
            operation::finish(link, &claim, &outcome, &summary, &policy, now)
        })
    }

    pub(super) fn cancel(
        &self,
        project: &ProjectId,
        summary: &str,
        now: Timestamp,
    ) -> Result<bool, QueueError> {
        let (clock, project) = (self.server.clock, project.clone());
        let summary = summary.to_owned();
        let mut cancelled = None;
        self.write(move |link, time| {
            let now = clock.time(time, now);
            if let Some(id) = operation::cancel(link, &project, &summary, now)? {
                cancelled = Some(id);
                return Ok(true);
            }
            let before = operation::stored_before(link, cancelled.as_ref())?;
            Ok(before
                .is_some_and(|update| *update.summary == *summary && update.ended_at().is_some()))
        })
    }

    pub(super) fn record_served(
        &self,
        project: &ProjectId,
        fence: Fence,
        now: Timestamp,
    ) -> Result<(), QueueError> {
        let (clock, project) = (self.server.clock, project.clone());
        self.write(move |link, time| {
            visible::record_served(link, &project, fence, clock.time(time, now))
        })
    }

    pub(super) fn not_yet_visible(&self) -> Result<Vec<ProjectId>, QueueError> {
        self.read(|link, _now| visible::not_yet_visible(link))
    }

    pub(super) fn requeue(
        &self,
        project: &ProjectId,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Option<Enqueued>, QueueError> {
        let clock = self.server.clock;
        let (project, policy) = (project.clone(), policy.clone());
        let mut requeued: Option<Enqueued> = None;
        self.write(move |link, time| {
            let now = clock.time(time, now);
            if let Some(enqueued) = operation::requeue(link, &project, &policy, now)? {
                requeued = Some(enqueued.clone());
                return Ok(Some(enqueued));
            }
            let id = requeued.as_ref().map(|enqueued| &enqueued.id);
            let before = operation::stored_before(link, id)?;
            Ok(before.and_then(|_update| requeued.clone()))
        })
    }

    pub(super) fn reserve_spending(
        &self,
        owner: &str,
        requested: Spending,
        limit: Spending,
        now: Timestamp,
    ) -> Result<Option<Spending>, QueueError> {
        // The caller settles the day at which it reserved, so both use its clock.
        let owner = owner.to_owned();
        self.write(move |link, _now| spending::reserve(link, &owner, day_of(now), requested, limit))
    }

    pub(super) fn settle_spending(
        &self,
        owner: &str,
        reserved: Spending,
        used: Spending,
        begun: Timestamp,
    ) -> Result<(), QueueError> {
        // A second run after a commit without an answer would give back twice.
        let owner = owner.to_owned();
        self.threads.write(Repeat::BeforeCommit, move |link, _now| {
            spending::settle(link, &owner, day_of(begun), reserved, used)
        })
    }

    pub(super) fn spending(&self, owner: &str, now: Timestamp) -> Result<Spending, QueueError> {
        let owner = owner.to_owned();
        self.read(move |link, _now| spending::spent(link, &owner, day_of(now)))
    }

    pub(super) fn sweep(&self, policy: &Policy, now: Timestamp) -> Result<Swept, QueueError> {
        let clock = self.server.clock;
        let mut total = Swept::default();
        let oldest = day_of(now).saturating_sub(SPENDING_DAYS);
        self.write(move |link, _now| spending::sweep(link, oldest))?;
        loop {
            let policy = policy.clone();
            let swept = self
                .write(move |link, time| operation::sweep(link, &policy, clock.time(time, now)))?;
            total.updates += swept.updates;
            total.idempotency_keys += swept.idempotency_keys;
            if swept == Swept::default() {
                return Ok(total);
            }
        }
    }

    pub(super) fn record(&self, id: &StatusId) -> Result<Option<Record>, QueueError> {
        let id = id.clone();
        self.read(move |link, _now| reading::record(link, &id))
    }

    pub(super) fn dead_letters(&self, limit: u32) -> Result<Vec<Update>, QueueError> {
        self.read(move |link, _now| reading::dead_letters(link, limit))
    }

    pub(super) fn recent(
        &self,
        project: &ProjectId,
        limit: u32,
    ) -> Result<Vec<Update>, QueueError> {
        let project = project.clone();
        self.read(move |link, _now| reading::recent(link, &project, limit))
    }

    pub(super) fn generation(&self, project: &ProjectId) -> Result<u64, QueueError> {
        let project = project.clone();
        self.read(move |link, _now| reading::generation(link, &project))
    }

    pub(super) fn depth(&self) -> Result<Depth, QueueError> {
        self.read(|link, _now| reading::depth(link))
    }
}

/// Returns the operation of a trigger. A second run finds what the first one has made, if that was
/// stored though the answer was lost.
fn enqueuing(
    clock: ClockOf,
    trigger: Trigger,
    policy: Policy,
    now: Timestamp,
) -> impl FnMut(&Link, Timestamp) -> Result<Enqueued, QueueError> + Send + 'static {
    let mut made: Option<StatusId> = None;
    move |link, time| {
        let now = clock.time(time, now);
        let mut enqueued = operation::enqueue(link, &trigger, &policy, now)?;
        enqueued.coalesced &= made.as_ref() != Some(&enqueued.id);
        if !enqueued.coalesced {
            made = Some(enqueued.id.clone());
        }
        Ok(enqueued)
    }
}

/// Makes the tables. Returns `false` if they are there already.
fn make(link: &Link, service: &str, shared: bool) -> Result<bool, DatabaseError> {
    database::init(link, &SCHEMA, service, shared, |link| {
        let values = [
            Value::Text(service),
            u64::from(SCHEMA.version).into(),
            u64::from(SCHEMA.compatible).into(),
        ];
        let row = "INSERT INTO identity (service, version, compatible) VALUES (?1, ?2, ?3)";
        link.execute(row, &values).map(|_one| ())
    })
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
