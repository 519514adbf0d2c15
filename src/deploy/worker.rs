//! The worker: claims updates from the queue and runs them, a few at a time.
//!
//! One loop claims updates. Each runs in a task, and the loop owns all its tasks. The queue
//! notifies the loop of triggers that came through this process; for triggers that came through
//! another process, the loop polls a few times a second.
//!
//! Another task keeps the queue in order, also while all builds are busy: it ends the leases of
//! processes that were killed ([`Presence`]), corrects times that a wrong clock wrote, opens a
//! broken queue again, looks at the disk of the store, and sets the gauges.
//!
//! **Stopping.** On the first request to stop, the worker claims nothing more, and running builds
//! may go on for the grace period. After it, the leases of builds that have not ended are
//! released and their processes killed; the updates are due at once. When the worker is killed
//! with SIGKILL, its leases end by themselves.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus::{
    Counter, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior};

use super::presence::{Presence, Present};
use super::queue::{Claim, Depth, Held, Outcome, Owners, Progress, QueueError};
use super::run::{AttemptEnd, Stages, Work, blocking};
use super::slots::{Shares, Slot, Slots};
use super::update::WorkerId;
use super::{ReadSite, Timestamp};
use crate::error::chain;
use crate::telemetry::{self, Health, Part, panics};

/// How often the queue is polled for triggers of other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How often the gauges are set.
const MEASURE_INTERVAL: Duration = Duration::from_millis(200);
/// How many updates a worker claims at once. Those without a slot only wait.
const CLAIMS_MAX: usize = 256;
/// How often the queue is put in order.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);
/// How much longer an owner may hold a place of an update than a place of a build before it counts
/// as heavy: an update is fetched, and waits for a slot.
const FETCH_FACTOR: u32 = 5;
/// How often old records are removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(3600);

/// The settings of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether `waypost serve` has a worker; else only `waypost worker` builds.
    pub embedded: bool,
    /// How many updates are fetched, wait for a build or are built at once.
    pub fetches_max: usize,
    /// How many updates are built at once.
    pub builds_max: usize,
    /// How long a build may take before its owner counts as heavy ([`slots`](super::slots)).
    pub light: Duration,
    /// How long running builds may go on after a request to stop.
    pub grace: Duration,
    /// The address at which a worker without listeners serves health, readiness and metrics to
    /// the operator. `None` switches that off.
    pub operator: Option<SocketAddr>,
}

/// Takes updates from the queue.
pub struct Worker {
    id: WorkerId,
    config: Config,
    stages: Arc<Stages>,
    read_site: ReadSite,
    presence: Presence,
    slots: Arc<Slots>,
    metrics: Metrics,
    /// Whether releases can be stored.
    storing: Part,
}

/// Whether a worker must stop, and how soon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Do not stop.
    #[default]
    No,
    /// Claim no more updates; running builds may go on for the grace period.
    Soon,
    /// Stop the running builds and release their leases.
    Now,
}

/// The metrics of a worker.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Attempts by how they ended.
    updates: IntCounterVec,
    /// Updates in the queue by state.
    queue: IntGaugeVec,
    /// How long each step took.
    steps: HistogramVec,
    /// Requests to language models that were answered.
    model_requests: IntCounter,
    /// Tokens of language models, by direction.
    model_tokens: IntCounterVec,
    /// What language models cost.
    model_cost: Counter,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            embedded: true,
            fetches_max: 8,
            builds_max: 2,
            light: Duration::from_secs(2),
            grace: Duration::from_secs(30),
            operator: None,
        }
    }
}

// === impl Metrics ===

impl Metrics {
    /// Registers the families.
    #[must_use]
    pub fn new(metrics: &telemetry::Metrics) -> Self {
        let updates = Opts::new(
            "deploy_updates_total",
            "Attempts at updates, by outcome: success, failure, retry, lease_released, lost.",
        );
        let queue = Opts::new("deploy_queue_updates", "Updates in the queue, by state.");
        let steps = HistogramOpts::new(
            "deploy_step_duration_seconds",
            "How long the steps of an update took: fetch, read, build, put, promote, generate.",
        )
        .buckets(vec![
            0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0,
        ]);
        let requests = IntCounter::new(
            "deploy_model_requests_total",
            "Requests to the language model that writes skills that were answered.",
        );
        let tokens = Opts::new(
            "deploy_model_tokens_total",
            "Tokens of the language model that writes skills, by direction: input, output.",
        );
        let cost = Counter::new(
            "deploy_model_cost_total",
            "Cost of the language model that writes skills, in the currency of generate.model.price_input and price_output.",
        );
        Self {
            model_requests: metrics.register(requests),
            model_tokens: metrics.register(IntCounterVec::new(tokens, &["direction"])),
            model_cost: metrics.register(cost),
            updates: metrics.register(IntCounterVec::new(updates, &["outcome"])),
            queue: metrics.register(IntGaugeVec::new(queue, &["state"])),
            steps: metrics.register(HistogramVec::new(steps, &["step"])),
        }
    }

    fn ended(&self, ended: &AttemptEnd) {
        let outcome = match ended {
            AttemptEnd::With(Outcome::Success { .. }) => "success",
            AttemptEnd::With(Outcome::Failure) => "failure",
            AttemptEnd::With(Outcome::Retry | Outcome::RetryOnce) => "retry",
            AttemptEnd::With(Outcome::LeaseReleased) => "lease_released",
            AttemptEnd::Lost => "lost",
        };
        self.updates.with_label_values(&[outcome]).inc();
    }

    fn measured(&self, depth: Depth) {
        let states = [
            ("queued", depth.queued),
            ("in_progress", depth.in_progress),
            ("dead_letter", depth.dead_letters),
        ];
        for (state, updates) in states {
            let updates = i64::try_from(updates).unwrap_or(i64::MAX);
            self.queue.with_label_values(&[state]).set(updates);
        }
    }

    fn worked(&self, work: &Work) {
        let spent = work.spent;
        self.model_requests.inc_by(spent.requests);
        for (direction, tokens) in [("input", spent.input), ("output", spent.output)] {
            self.model_tokens
                .with_label_values(&[direction])
                .inc_by(tokens);
        }
        self.model_cost.inc_by(spent.cost.amount());
        for (step, took) in &work.steps {
            self.steps
                .with_label_values(&[step.as_str()])
                .observe(took.as_secs_f64());
        }
    }
}

// === impl Worker ===

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Worker {
    /// Makes a worker; [`Worker::run`] starts it.
    #[must_use]
    pub fn new(
        id: WorkerId,
        config: Config,
        stages: Arc<Stages>,
        read_site: ReadSite,
        presence: Presence,
        metrics: Metrics,
        health: &Health,
    ) -> Self {
        Self {
            storing: health.part("store_writing"),
            slots: Slots::new(Shares {
                count: config.fetches_max,
                light: config.light * FETCH_FACTOR,
            }),
            id,
            config,
            stages,
            read_site,
            presence,
            metrics,
        }
    }

    /// Runs updates until it must stop, and returns when no build runs any more.
    pub async fn run(self, mut stop: watch::Receiver<Stop>) {
        let worker = Arc::new(self);
        let _present = worker.enter();
        let maintaining = Arc::clone(&worker).maintain();
        let maintenance = tokio::spawn(panics::essential("queue maintenance", maintaining));
        let mut builds = JoinSet::new();
        let (cancel, cancelled) = watch::channel(false);
        let mut polls = ticks(POLL_INTERVAL);
        let mut sweeps = ticks(SWEEP_INTERVAL);
        log::info!(target: "deploy", worker:% = worker.id.as_str(); "worker {} claims updates", worker.id.as_str());
        loop {
            // A notification that comes while we claim ends the next wait at once.
            while let Some(owners) = worker.claimable(builds.len().saturating_sub(worker.writing()))
                && let Some(claim) = worker.claim(owners).await
            {
                let build = Arc::clone(&worker).build(claim, cancelled.clone());
                builds.spawn(build);
            }
            tokio::select! {
                () = worker.stages.queue.notified(), if builds.len() < CLAIMS_MAX => {}
                _ = polls.tick() => {}
                _ = sweeps.tick() => worker.sweep().await,
                Some(ended) = builds.join_next() => log_panic(&ended),
                () = requested(&mut stop, Stop::Soon) => break,
            }
        }
        worker.end(builds, stop, cancel).await;
        maintenance.abort();
    }

    /// Declares this worker alive. Without that, its leases end by themselves after a kill.
    fn enter(&self) -> Option<Present> {
        self.presence
            .enter(&self.id)
            .inspect_err(|error| {
                log::warn!(target: "deploy", "cannot declare this worker alive: {error}");
            })
            .ok()
    }

    /// Keeps the queue in order until it is aborted.
    async fn maintain(self: Arc<Self>) {
        let mut measures = ticks(MEASURE_INTERVAL);
        let mut repairs = ticks(MAINTENANCE_INTERVAL);
        loop {
            tokio::select! {
                _ = repairs.tick() => {
                    let (worker, now) = (Arc::clone(&self), self.now());
                    // The queue reports its own outages.
                    let _ = blocking(move || worker.repair_queue(now)).await;
                }
                _ = measures.tick() => {
                    let queue = Arc::clone(&self.stages.queue);
                    if let Ok(depth) = blocking(move || queue.depth()).await {
                        self.metrics.measured(depth);
                    }
                }
            }
        }
    }

    fn repair_queue(&self, now: Timestamp) -> Result<(), QueueError> {
        match self.stages.store.check_space() {
            Ok(()) => self.storing.recover(),
            Err(error) => self.storing.fail(chain(&error)),
        }
        let queue = &self.stages.queue;
        queue.heal()?;
        let ended = queue.end_leases(|worker| self.presence.has_ended(worker), now)?;
        if ended > 0 {
            log::info!(target: "deploy", ended; "ended {ended} leases of workers that were killed");
        }
        self.presence.sweep();
        let corrected = queue.correct_times(now)?;
        if corrected > 0 {
            log::warn!(target: "deploy", corrected; "{corrected} updates had times of a clock that was ahead; they are due now");
        }
        Ok(())
    }

    /// Lets running builds finish, and cancels those that do not finish in time.
    async fn end(
        &self,
        mut builds: JoinSet<()>,
        mut stop: watch::Receiver<Stop>,
        cancel: watch::Sender<bool>,
    ) {
        tokio::select! {
            () = join_all(&mut builds) => {}
            () = tokio::time::sleep(self.config.grace) => {}
            () = requested(&mut stop, Stop::Now) => {}
        }
        // Sending fails only when no build runs.
        let _ = cancel.send(true);
        join_all(&mut builds).await;
        log::info!(target: "deploy", worker:% = self.id.as_str(); "worker {} has stopped", self.id.as_str());
    }

    fn now(&self) -> Timestamp {
        Timestamp::of(self.stages.clock.now())
    }

    /// Returns how many updates only write a skill, and hold no place.
    fn writing(&self) -> usize {
        self.stages.writing.load(Ordering::Relaxed)
    }

    /// Returns the owners whose updates may be claimed while this many are claimed. When all slots
    /// are busy, updates of owners without a running update may still be claimed; see [`Slots`].
    fn claimable(&self, claimed: usize) -> Option<Owners> {
        match claimed {
            claimed if claimed < self.config.fetches_max => Some(Owners::All),
            claimed if claimed < CLAIMS_MAX => Some(Owners::Idle),
            _ => None,
        }
    }

    async fn claim(&self, owners: Owners) -> Option<Claim> {
        let (queue, id, now) = (Arc::clone(&self.stages.queue), self.id.clone(), self.now());
        // The queue reports its own outages.
        let claimed = blocking(move || queue.claim(&id, owners, now)).await;
        claimed.unwrap_or_else(|error| {
            if !error.is_outage() {
                log::error!(target: "deploy", "cannot claim an update: {}", chain(&error));
            }
            None
        })
    }

    /// Waits for a slot and carries out an attempt.
    async fn build(self: Arc<Self>, claim: Claim, mut cancelled: watch::Receiver<bool>) {
        let (project, update) = (claim.project().clone(), claim.id().clone());
        let owner = claim.update.owner.clone();
        let mut work = Work::default();
        let ended = match self.slot(&claim, &mut cancelled).await {
            Ok(Ok(slot)) => {
                let (read_site, of) = (Arc::clone(&self.read_site), project.clone());
                let site = blocking(move || read_site(&of)).await;
                let (stop, stopped) = watch::channel(false);
                let revoked = slot.revoked();
                let mut attempt = pin!(self.stages.run(claim, site, slot, stopped, &mut work));
                tokio::select! {
                    ended = &mut attempt => ended,
                    () = either(async { let _why = revoked.await; }, is_set(&mut cancelled)) => {
                        // Sending fails only when the attempt has ended.
                        let _ = stop.send(true);
                        attempt.await
                    }
                }
            }
            Ok(Err(ended)) => Ok(ended),
            Err(error) => Err(error),
        };
        self.metrics.worked(&work);
        match ended {
            Ok(ended) => {
                if ended == AttemptEnd::With(Outcome::RetryOnce) {
                    self.slots.mark_heavy(&owner);
                    self.stages.builds.mark_heavy(&owner);
                }
                self.metrics.ended(&ended);
                log::info!(target: "deploy", project:%, update:%; "update {update} of {project}: {ended}");
            }
            // The lease ends by itself.
            Err(error) => {
                log::error!(target: "deploy", project:%, update:%; "update {update} of {project}: {}", chain(&error));
            }
        }
    }

    /// Waits for a slot, and renews the lease while it waits. Returns how the attempt ended
    /// when it got no slot.
    async fn slot(
        &self,
        claim: &Claim,
        cancelled: &mut watch::Receiver<bool>,
    ) -> Result<Result<Slot, AttemptEnd>, QueueError> {
        let mut slot = pin!(self.slots.take(&claim.update.owner));
        let mut renewals = ticks(self.stages.queue.policy().lease / 3);
        renewals.reset();
        loop {
            let (queue, claim, now) = (Arc::clone(&self.stages.queue), claim.clone(), self.now());
            tokio::select! {
                slot = &mut slot => return Ok(Ok(slot)),
                _ = renewals.tick() => {
                    let lines = vec!["waiting: all slots of this worker are in use".to_owned()];
                    let progress = Progress { lines, commit: None };
                    let held = blocking(move || queue.heartbeat(&claim, progress, now)).await?;
                    if held == Held::Lost {
                        return Ok(Err(AttemptEnd::Lost));
                    }
                }
                () = is_set(cancelled) => {
                    let ended = Outcome::LeaseReleased;
                    let summary = "released: the worker is shutting down";
                    let held = blocking(move || queue.finish(&claim, &ended, summary, now)).await?;
                    return Ok(Err(match held {
                        Held::Yes => AttemptEnd::With(Outcome::LeaseReleased),
                        Held::Lost => AttemptEnd::Lost,
                    }));
                }
            }
        }
    }

    async fn sweep(&self) {
        let (queue, now) = (Arc::clone(&self.stages.queue), self.now());
        match blocking(move || queue.sweep(now)).await {
            Ok(swept) => {
                log::debug!(target: "deploy", "removed {} old updates", swept.updates);
            }
            // The queue reports its own outages.
            Err(error) if error.is_outage() => {}
            Err(error) => {
                log::error!(target: "deploy", "cannot remove old updates: {}", chain(&error))
            }
        }
    }
}

// === impl Ended ===

impl std::fmt::Display for AttemptEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::With(Outcome::Success { release, .. }) => {
                write!(f, "published release {release}")
            }
            Self::With(Outcome::Failure) => f.write_str("failed"),
            Self::With(Outcome::Retry | Outcome::RetryOnce) => f.write_str("will be tried again"),
            Self::With(Outcome::LeaseReleased) => f.write_str("its lease was released"),
            Self::Lost => f.write_str("another worker has taken over"),
        }
    }
}

/// Waits for all builds.
async fn join_all(builds: &mut JoinSet<()>) {
    while let Some(ended) = builds.join_next().await {
        log_panic(&ended);
    }
}

/// Returns when the worker must stop at least as soon as `least`, or when the sender was dropped.
async fn requested(stop: &mut watch::Receiver<Stop>, least: Stop) {
    let _ = stop.wait_for(|stop| *stop >= least).await;
}

/// Returns when a flag is set, or its sender was dropped.
async fn is_set(flag: &mut watch::Receiver<bool>) {
    let _ = flag.wait_for(|is_set| *is_set).await;
}

/// Returns when one of two futures has ended.
async fn either(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    tokio::select! {
        () = one => {}
        () = other => {}
    }
}

fn log_panic(ended: &Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        // The lease ends by itself.
        log::error!(target: "deploy", "the task of an update has ended: {error}");
    }
}

fn ticks(every: Duration) -> Interval {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
