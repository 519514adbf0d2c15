//! Supervises the processes of an update.
//!
//! Several times a second their events become lines of the update's record. Each time the lease is
//! renewed, so that no other worker takes the update over. The limits of time and of the disk are
//! enforced here too: a process that takes too much is killed, with every process that it has
//! started.

mod writing;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::child::Running;
use super::job::{Event, Order, Prepared, SpecificationsJob, Step, Stopped};
use super::workspace::{SPECIFICATIONS, Workspace};
use super::{Stages, Update, Work, Writing, blocking, generate, sandbox, until_set};
use crate::deploy::NICENESS_OF_HEAVY;
use crate::deploy::queue::{Claim, Held, LOG_LINE_BYTES_MAX, LOG_LINES_MAX, Progress, QueueError};
use crate::deploy::record::Commit;
use crate::deploy::slots::{Revoked, Slot};
use crate::deploy::update::cut;
use crate::deploy::writer::Spent;
use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::isolation::Sandbox;
use crate::telemetry::logging::printable;

/// How often new lines are written to the record.
const RECORD_INTERVAL: Duration = Duration::from_millis(250);
/// After this time without a line, the record says that the step still runs.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// The processes of an update, and their events that are not yet in the record.
pub(super) struct BuildMonitor<'s> {
    stages: &'s Stages,
    update: &'s Update,
    workspace: &'s Workspace,
    claim: Claim,
    stop: watch::Receiver<bool>,
    running: Option<Running>,
    /// The place of the update among those of the worker, until only the writer of a skill runs.
    place: Option<Slot>,
    /// The slot of the build, while there is one.
    slot: Option<Slot>,
    slot_since: Instant,
    /// Whether the running process has the priority of a heavy owner.
    is_lowered: bool,
    /// Whether only the writer of a skill runs.
    writing: Option<Writing>,
    /// The model that writes a skill, while it runs.
    model: Option<generate::Running>,
    /// The tokens and the money that models have cost.
    spent: Spent,
    began: Instant,
    lines: Vec<String>,
    commit: Option<Commit>,
    /// The current step; the start of the process counts as part of the first step.
    step: Step,
    step_since: Instant,
    /// The steps that have ended, and how long they took.
    steps: Vec<(Step, Duration)>,
    recorded_at: Instant,
}

/// The result that a build process has reported, or the reason why it must end.
pub(super) enum BuildResult {
    /// The branch is fetched; this is its commit.
    Fetched(Box<str>),
    /// A release is in the workspace.
    Prepared(Prepared),
    /// A process that was started to help the build has ended.
    Done,
    /// The release with the generated skill remains current, for this reason.
    SkillStays(String),
    /// The text of the writer waits for approval.
    SkillWaits,
    /// There is no release.
    Stopped(Stopped),
    /// The process ran out of time or was killed, as this sentence says.
    Killed(String),
    /// The build has lost its slot: its owner is heavy, and another owner waits.
    SlotLost,
    /// Another worker holds the update.
    LeaseLost,
    /// This process must shut down.
    ShuttingDown,
}

/// Returns a text of a process as authors may read it: without what a terminal would obey, and with
/// addresses of the site as paths, because a build does not know the domain.
fn readable(text: &str) -> String {
    printable(text).replace(BASE_URL_PLACEHOLDER, "")
}

// === impl BuildMonitor ===

impl<'s> BuildMonitor<'s> {
    pub(super) fn new(
        stages: &'s Stages,
        update: &'s Update,
        claim: Claim,
        place: Slot,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self {
            stages,
            update,
            workspace: &update.workspace,
            claim,
            stop,
            running: None,
            place: Some(place),
            slot: None,
            slot_since: Instant::now(),
            is_lowered: false,
            writing: None,
            model: None,
            spent: Spent::default(),
            began: Instant::now(),
            lines: Vec::new(),
            commit: None,
            step: Step::Fetch,
            step_since: Instant::now(),
            steps: Vec::new(),
            recorded_at: Instant::now(),
        }
    }

    /// Writes to the record that the attempt begins.
    pub(super) async fn begin(&mut self) -> Result<Held, QueueError> {
        self.lines.push(format!(
            "attempt {} of {}",
            self.claim.update.attempts,
            self.stages.queue.policy().attempts_max
        ));
        self.record().await
    }

    /// Starts a process in its sandbox and waits for its result.
    pub(super) async fn run(
        &mut self,
        order: Order,
        sandbox: Sandbox,
    ) -> Result<BuildResult, QueueError> {
        if let Some(mut before) = self.running.take() {
            before.kill().await;
        }
        if matches!(order, Order::Build(_)) {
            self.step = Step::Read;
            self.step_since = Instant::now();
        }
        let home = self.workspace.home();
        match self.stages.launcher.start(order, sandbox, &home).await {
            Ok(running) => {
                self.running = Some(running);
                self.is_lowered = false;
            }
            Err(error) => {
                let act = "start a process for the update";
                return Ok(BuildResult::Stopped(Stopped::of_machine(act, &error)));
            }
        }
        self.next().await
    }

    /// Waits for something else, and renews the lease meanwhile.
    ///
    /// # Errors
    ///
    /// The queue cannot be reached. `Err` inside is why the update must end.
    pub(super) async fn wait<T>(
        &mut self,
        until: impl Future<Output = T>,
    ) -> Result<Result<T, BuildResult>, QueueError> {
        let since = Instant::now();
        let mut until = std::pin::pin!(until);
        let mut ticks = tokio::time::interval(RECORD_INTERVAL);
        loop {
            tokio::select! {
                value = &mut until => {
                    // Waiting does not count as work.
                    self.began += since.elapsed();
                    return Ok(Ok(value));
                }
                _ = ticks.tick() => {
                    if self.is_record_due() && self.record().await? == Held::Lost {
                        return Ok(Err(BuildResult::LeaseLost));
                    }
                }
                () = until_set(&mut self.stop) => return Ok(Err(BuildResult::ShuttingDown)),
            }
        }
    }

    /// Holds a slot while the build runs, or gives it back. The update ends when the slot is
    /// revoked.
    pub(super) fn set_slot(&mut self, slot: Option<Slot>) {
        self.slot = slot;
        self.slot_since = Instant::now();
    }

    /// Stops the build that has lost its slot, so that it can begin anew. Its time does not count.
    pub(super) async fn release_slot(&mut self) -> Result<(), Stopped> {
        if let Some(mut running) = self.running.take() {
            running.kill().await;
        }
        self.began += self.slot_since.elapsed();
        self.set_slot(None);
        self.lines.push(
            "build: stopped, because builds of this owner take long and another owner waits; \
             it begins anew when a place is free"
                .to_owned(),
        );
        let user = self.stages.launcher.process.user;
        let cleared = self.workspace.clear(user);
        cleared.map_err(|error| Stopped::of_machine("clear the directory of the build", &error))
    }

    /// Lowers the priority of the processes of a heavy owner while others work.
    fn lower_priority(&mut self) {
        if self.is_lowered || !self.stages.builds.steps_back(&self.claim.update.owner) {
            return;
        }
        if let Some(running) = &self.running {
            running.set_niceness(NICENESS_OF_HEAVY);
            self.is_lowered = true;
        }
    }

    /// Gives all slots back: the update is visible, and only the writer of a skill runs. Returns
    /// `false` if too many writers run or wait already.
    pub(super) fn begin_writing(&mut self) -> bool {
        self.slot = None;
        self.place = None;
        self.writing = Writing::begin(self.stages);
        self.writing.is_some()
    }

    /// Adds a line to the record.
    pub(super) fn line(&mut self, line: String) {
        self.lines.push(line);
    }

    /// Waits for the next release of the process, or for the reason why there is none.
    pub(super) async fn next(&mut self) -> Result<BuildResult, QueueError> {
        let result = self.watch().await?;
        let holds_lease = !matches!(result, BuildResult::LeaseLost | BuildResult::ShuttingDown);
        if holds_lease && self.record().await? == Held::Lost {
            return Ok(BuildResult::LeaseLost);
        }
        Ok(result)
    }

    async fn watch(&mut self) -> Result<BuildResult, QueueError> {
        let mut ticks = tokio::time::interval(RECORD_INTERVAL);
        loop {
            let Some(running) = &mut self.running else {
                return Ok(self.died("there is no build process"));
            };
            tokio::select! {
                event = running.event() => match event {
                    Ok(Some(Event::Specifications(urls))) => {
                        if let Some(end) = Box::pin(self.fetch_specifications(urls)).await? {
                            return Ok(end);
                        }
                    }
                    Ok(Some(Event::History)) => {
                        if let Some(end) = Box::pin(self.fetch_history()).await? {
                            return Ok(end);
                        }
                    }
                    Ok(Some(Event::Write)) => {
                        if let Some(end) = Box::pin(self.run_writer()).await? {
                            return Ok(end);
                        }
                    }
                    Ok(Some(Event::Connect)) => {
                        if let Some(end) = self.connect().await? {
                            return Ok(end);
                        }
                    }
                    Ok(Some(event)) => {
                        if let Some(result) = self.take(event) {
                            return Ok(result);
                        }
                    }
                    Ok(None) => {
                        let how = running.ended().await;
                        return Ok(self.died(&how));
                    }
                    Err(error) => return Ok(BuildResult::Stopped(Stopped::transient(&error))),
                },
                _ = ticks.tick() => {
                    self.lower_priority();
                    if let Some(result) = self.overdue() {
                        return Ok(result);
                    }
                    if self.is_record_due() && self.record().await? == Held::Lost {
                        return Ok(BuildResult::LeaseLost);
                    }
                    if self.step == Step::Generate && self.is_superseded().await? {
                        return Ok(BuildResult::SkillStays("a newer update waits".to_owned()));
                    }
                },
                () = until_set(&mut self.stop) => return Ok(BuildResult::ShuttingDown),
                why = revoked(self.slot.as_ref()) => return Ok(match why {
                    Revoked::Heavy => BuildResult::SlotLost,
                    Revoked::Several => BuildResult::ShuttingDown,
                }),
            }
        }
    }

    /// Kills the process and everything it has started, and returns what the attempt needed.
    pub(super) async fn end(&mut self) -> Work {
        if let Some(mut running) = self.running.take() {
            running.kill().await;
        }
        Work {
            steps: std::mem::take(&mut self.steps),
            spent: self.spent,
        }
    }

    /// Fetches the specifications that the process of the build needs, and lets it go on. Returns a
    /// result if the update cannot go on.
    async fn fetch_specifications(
        &mut self,
        urls: Vec<Box<str>>,
    ) -> Result<Option<BuildResult>, QueueError> {
        let job = SpecificationsJob {
            config: self.stages.specifications.clone(),
            urls,
            output: self.workspace.file(SPECIFICATIONS),
            stops: true,
        };
        let sandbox = sandbox::of_specifications(&job);
        self.help(Order::Specifications(job), sandbox).await
    }

    /// Fetches the history that the process of the build needs, and lets it go on. Returns a result
    /// if the update cannot go on.
    async fn fetch_history(&mut self) -> Result<Option<BuildResult>, QueueError> {
        let (job, sandbox) = self.stages.fetch_job(self.update);
        self.help(Order::History(Box::new(job)), sandbox).await
    }

    /// Runs another process while the process of the build waits.
    async fn help(
        &mut self,
        order: Order,
        sandbox: Sandbox,
    ) -> Result<Option<BuildResult>, QueueError> {
        let home = self.workspace.home();
        let helper = match self.stages.launcher.start(order, sandbox, &home).await {
            Ok(helper) => helper,
            Err(error) => {
                let act = "start a process for the update";
                return Ok(Some(BuildResult::Stopped(Stopped::of_machine(act, &error))));
            }
        };
        let waiting = self.running.replace(helper);
        let was_lowered = std::mem::take(&mut self.is_lowered);
        let result = self.watch().await;
        self.is_lowered = was_lowered;
        if let Some(mut helper) = std::mem::replace(&mut self.running, waiting) {
            helper.kill().await;
        }
        match result? {
            BuildResult::Done => {}
            end => return Ok(Some(end)),
        }
        let Some(waiting) = &mut self.running else {
            return Ok(Some(self.died("there is no build process")));
        };
        Ok(match waiting.answer().await {
            Ok(()) => None,
            // The exit status of the process says more than a closed pipe.
            Err(_closed) => {
                let how = waiting.ended().await;
                Some(self.died(&how))
            }
        })
    }

    /// Adds a step that did not run in a process.
    pub(super) fn add_step(&mut self, step: Step, took: Duration) {
        self.steps.push((step, took));
        self.step_since = Instant::now();
    }

    /// Applies an event; returns a result if the event is one.
    fn take(&mut self, event: Event) -> Option<BuildResult> {
        match event {
            Event::Step(step) => {
                if step != self.step {
                    self.end_step();
                    self.step = step;
                }
            }
            // The line may contain text of an author. A record has no room for more lines.
            Event::Line(line) => {
                if self.lines.len() < LOG_LINES_MAX {
                    self.lines.push(readable(cut(&line, LOG_LINE_BYTES_MAX)));
                }
            }
            Event::Commit(commit) => self.commit = Some(commit.bounded()),
            Event::Fetched(commit) => {
                self.end_step();
                return Some(BuildResult::Fetched(commit));
            }
            Event::Done => return Some(BuildResult::Done),
            // Asked for with its own answer, or only for other readers.
            Event::Specifications(_)
            | Event::History
            | Event::Write
            | Event::Connect
            | Event::Report { .. }
            | Event::InForce(_) => {}
            // The step ends when the release is in the store.
            Event::Prepared(mut prepared) => {
                prepared.summary = readable(&prepared.summary);
                return Some(BuildResult::Prepared(prepared));
            }
            Event::SkillStays(why) => {
                self.end_step();
                return Some(BuildResult::SkillStays(readable(&why)));
            }
            Event::SkillWaits => {
                self.end_step();
                return Some(BuildResult::SkillWaits);
            }
            Event::Spent(spent) => {
                if let Some(model) = &mut self.model {
                    model.spent = spent;
                }
            }
            Event::Stopped(mut stopped) => {
                stopped.summary = readable(&stopped.summary);
                return Some(BuildResult::Stopped(stopped));
            }
            Event::Late(sentence) => return Some(self.died(&readable(&sentence))),
        }
        None
    }

    pub(super) fn end_step(&mut self) {
        self.steps.push((self.step, self.step_since.elapsed()));
        self.step_since = Instant::now();
    }

    /// Returns the result of a process that ended without a final event.
    fn died(&self, how: &str) -> BuildResult {
        BuildResult::Killed(format!("{}: {how}", self.step.as_str()))
    }

    /// Returns the result if a time limit has passed.
    fn overdue(&self) -> Option<BuildResult> {
        let limits = &self.stages.launcher.limits;
        let (step, took) = (self.step, self.step_since.elapsed());
        let is_full = step != Step::Fetch && self.workspace.bytes() > limits.output_bytes;
        if step == Step::Generate {
            let generate = &self.stages.generate;
            if is_full {
                let bytes = limits.output_bytes;
                let why = format!("{} wrote more than {bytes} bytes", generate.writer_name());
                return Some(BuildResult::SkillStays(why));
            }
            let (name, limit) = (generate.writer_name(), generate.time());
            let late = format!("{name} did not finish within {} s", limit.as_secs());
            return (took > limit).then_some(BuildResult::SkillStays(late));
        }
        if is_full {
            return Some(BuildResult::Stopped(Stopped {
                summary: format!(
                    "{}: the release needs more than {} bytes",
                    step.as_str(),
                    limits.output_bytes
                ),
                transient: false,
            }));
        }
        let summary = if step == Step::Fetch && took > limits.fetch {
            let limit = limits.fetch.as_secs();
            format!("fetch: the host did not finish within {limit} s")
        } else if self.began.elapsed() > limits.total {
            let limit = limits.total.as_secs();
            format!("{}: the update took longer than {limit} s", step.as_str())
        } else {
            return None;
        };
        Some(BuildResult::Killed(summary))
    }

    /// Returns whether there is something to record, or the lease must be renewed.
    fn is_record_due(&self) -> bool {
        !self.lines.is_empty()
            || self.commit.is_some()
            || self.recorded_at.elapsed() > self.stages.queue.policy().lease / 3
    }

    /// Returns whether the project's next update waits for this one.
    async fn is_superseded(&self) -> Result<bool, QueueError> {
        let queue = Arc::clone(&self.stages.queue);
        let project = self.claim.project().clone();
        let newest = blocking(move || queue.recent(&project, 1)).await?;
        Ok(newest
            .first()
            .is_some_and(|newest| newest.id != *self.claim.id()))
    }

    /// Writes new lines to the record, and renews the lease.
    pub(super) async fn record(&mut self) -> Result<Held, QueueError> {
        let silent = self.recorded_at.elapsed();
        self.recorded_at = Instant::now();
        if self.lines.is_empty() && silent > SILENCE_MAX {
            let took = self.step_since.elapsed().as_secs();
            self.lines.push(format!(
                "{}: still running after {took} s",
                self.step.as_str()
            ));
        }
        let progress = Progress {
            lines: std::mem::take(&mut self.lines),
            commit: self.commit.take(),
        };
        self.stages.heartbeat(&self.claim, progress).await
    }
}

/// Returns why a slot is revoked, when it is; never without a slot.
async fn revoked(slot: Option<&Slot>) -> Revoked {
    match slot {
        Some(slot) => slot.revoked().await,
        None => std::future::pending().await,
    }
}
