//! Supervises the process of a build.
//!
//! Several times a second its events become lines of the update's record. Each time the lease is
//! renewed, so that no other worker takes the update over. The time limits are enforced here too:
//! a process that takes too long is killed, with every process that it has started.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::child::Running;
use super::job::{Event, Job, Prepared, Step, Stopped};
use super::{Stages, blocking, generate, until_set};
use crate::deploy::queue::{Claim, Held, Progress, QueueError};
use crate::deploy::record::Commit;

/// How often new lines are written to the record.
const RECORD_INTERVAL: Duration = Duration::from_millis(250);
/// After this time without a line, the record says that the step still runs.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// The process of a build, and its events that are not yet in the record.
pub(super) struct BuildMonitor<'s> {
    stages: &'s Stages,
    claim: Claim,
    stop: watch::Receiver<bool>,
    running: Option<Running>,
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

/// What a build process has reported, or why it must end.
pub(super) enum BuildResult {
    /// A release is in the store.
    Prepared(Prepared),
    /// The release with the generated skill stays, for this reason.
    SkillStays(String),
    /// There is no release.
    Stopped(Stopped),
    /// The process ran out of time or was killed, as this sentence says.
    Killed(String),
    /// Another worker holds the update.
    LeaseLost,
    /// This process must shut down.
    ShuttingDown,
}

// === impl BuildMonitor ===

impl<'s> BuildMonitor<'s> {
    pub(super) fn new(stages: &'s Stages, claim: Claim, stop: watch::Receiver<bool>) -> Self {
        Self {
            stages,
            claim,
            stop,
            running: None,
            began: Instant::now(),
            lines: Vec::new(),
            commit: None,
            step: Step::Fetch,
            step_since: Instant::now(),
            steps: Vec::new(),
            recorded_at: Instant::now(),
        }
    }

    /// Starts a process and waits until it has prepared a release or has failed.
    pub(super) async fn start(&mut self, job: Job) -> Result<BuildResult, QueueError> {
        self.lines.push(format!(
            "attempt {} of {}",
            self.claim.update.attempts,
            self.stages.queue.policy().attempts_max
        ));
        if self.record().await? == Held::Lost {
            return Ok(BuildResult::LeaseLost);
        }
        match Running::start(&self.stages.program, job, &self.stages.limits).await {
            Ok(running) => self.running = Some(running),
            Err(error) => return Ok(BuildResult::Stopped(Stopped::transient(&error))),
        }
        self.next().await
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
            }
        }
    }

    /// Kills the process and everything it has started, and returns how long each step took.
    pub(super) async fn end(&mut self) -> Vec<(Step, Duration)> {
        if let Some(mut running) = self.running.take() {
            let process = running.id();
            running.kill().await;
            if let Some(process) = process.filter(|_| self.step == Step::Generate) {
                blocking(move || generate::clean(process)).await;
            }
        }
        std::mem::take(&mut self.steps)
    }

    /// Adds a step that did not run in the build process.
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
            Event::Line(line) => self.lines.push(line),
            Event::Commit(commit) => self.commit = Some(commit),
            Event::Prepared(prepared) => {
                self.end_step();
                return Some(BuildResult::Prepared(prepared));
            }
            Event::SkillStays(why) => {
                self.end_step();
                return Some(BuildResult::SkillStays(why));
            }
            Event::Stopped(stopped) => return Some(BuildResult::Stopped(stopped)),
        }
        None
    }

    fn end_step(&mut self) {
        self.steps.push((self.step, self.step_since.elapsed()));
        self.step_since = Instant::now();
    }

    /// Returns the result of a process that ended without a final event.
    fn died(&self, how: &str) -> BuildResult {
        BuildResult::Killed(format!("{}: {how}", self.step.as_str()))
    }

    /// Returns the result if a time limit has passed.
    fn overdue(&self) -> Option<BuildResult> {
        let limits = &self.stages.limits;
        let (step, took) = (self.step, self.step_since.elapsed());
        if step == Step::Generate {
            let limit = self.stages.generate.time;
            let late = format!("the command did not finish within {} s", limit.as_secs());
            return (took > limit).then_some(BuildResult::SkillStays(late));
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
    async fn record(&mut self) -> Result<Held, QueueError> {
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
