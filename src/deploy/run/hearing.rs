//! Listening to the process of a build.
//!
//! What it says becomes lines of the update's record, a few times a second; each time the
//! lease is renewed, so a follower sees the build go on and nobody else takes it over. Here
//! is the clock as well: what takes too long is ended, with everything it has started.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::child::Running;
use super::job::{Event, Job, Prepared, Step, Stopped};
use super::{Stages, blocking, generate, raised};
use crate::deploy::queue::{Claim, Held, Progress, QueueError};
use crate::deploy::record::Commit;

/// How often new lines of the log are written down: a follower's patience.
const NOTE_EVERY: Duration = Duration::from_millis(250);
/// After how long a silence somebody who follows is told that the step goes on.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// What is heard of a child, and what of it is not written down yet.
pub(super) struct Hearing<'s> {
    stages: &'s Stages,
    claim: Claim,
    stop: watch::Receiver<bool>,
    running: Option<Running>,
    began: Instant,
    lines: Vec<String>,
    commit: Option<Commit>,
    /// The start of the child counts as part of the first.
    step: Step,
    step_since: Instant,
    steps: Vec<(Step, Duration)>,
    noted_at: Instant,
}

/// How the listening to a child ended, for now.
pub(super) enum Heard {
    /// A release is in the store.
    Prepared(Prepared),
    /// What is published stays as it is.
    Kept(String),
    /// There is no release.
    Stopped(Stopped),
    /// Somebody else holds the update.
    Lost,
    /// This process has to stop.
    GiveBack,
}

// === impl Hearing ===

impl<'s> Hearing<'s> {
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
            noted_at: Instant::now(),
        }
    }

    /// Starts a child and listens until it has prepared a release, or will not.
    pub(super) async fn begin(&mut self, job: Job) -> Result<Heard, QueueError> {
        self.lines.push(format!(
            "attempt {} of {}",
            self.claim.update.attempts,
            self.stages.queue.policy().attempts_max
        ));
        if self.note().await? == Held::Lost {
            return Ok(Heard::Lost);
        }
        match Running::start(&self.stages.program, job, &self.stages.limits).await {
            Ok(running) => self.running = Some(running),
            Err(error) => return Ok(Heard::Stopped(Stopped::transient(&error))),
        }
        self.listen().await
    }

    /// Listens on, to the next release or to why there is none.
    pub(super) async fn listen(&mut self) -> Result<Heard, QueueError> {
        let heard = self.listen_on().await?;
        let is_told = !matches!(heard, Heard::Lost | Heard::GiveBack);
        if is_told && self.note().await? == Held::Lost {
            return Ok(Heard::Lost);
        }
        Ok(heard)
    }

    async fn listen_on(&mut self) -> Result<Heard, QueueError> {
        let mut ticks = tokio::time::interval(NOTE_EVERY);
        loop {
            let Some(running) = &mut self.running else {
                return Ok(self.silence("there is no build process"));
            };
            tokio::select! {
                event = running.event() => match event {
                    Ok(Some(event)) => {
                        if let Some(heard) = self.hear(event) {
                            return Ok(heard);
                        }
                    }
                    Ok(None) => {
                        let how = running.ended().await;
                        return Ok(self.silence(&how));
                    }
                    Err(error) => return Ok(Heard::Stopped(Stopped::transient(&error))),
                },
                _ = ticks.tick() => {
                    if let Some(heard) = self.overdue() {
                        return Ok(heard);
                    }
                    if self.is_due() && self.note().await? == Held::Lost {
                        return Ok(Heard::Lost);
                    }
                    if self.step == Step::Generate && self.is_superseded().await? {
                        return Ok(Heard::Kept("a newer update waits".to_owned()));
                    }
                },
                () = raised(&mut self.stop) => return Ok(Heard::GiveBack),
            }
        }
    }

    /// Ends the child and everything it has started, and returns how long each step took.
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

    /// Counts a step that is not the child's.
    pub(super) fn took(&mut self, step: Step, took: Duration) {
        self.steps.push((step, took));
        self.step_since = Instant::now();
    }

    /// Takes in an event; some end the listening.
    fn hear(&mut self, event: Event) -> Option<Heard> {
        match event {
            Event::Step(step) => {
                if step != self.step {
                    self.step_ends();
                    self.step = step;
                }
            }
            Event::Line(line) => self.lines.push(line),
            Event::Commit(commit) => self.commit = Some(commit),
            Event::Prepared(prepared) => {
                self.step_ends();
                return Some(Heard::Prepared(prepared));
            }
            Event::Kept(why) => {
                self.step_ends();
                return Some(Heard::Kept(why));
            }
            Event::Stopped(stopped) => return Some(Heard::Stopped(stopped)),
        }
        None
    }

    fn step_ends(&mut self) {
        self.steps.push((self.step, self.step_since.elapsed()));
        self.step_since = Instant::now();
    }

    /// A child that said nothing last has died.
    fn silence(&self, how: &str) -> Heard {
        Heard::Stopped(Stopped {
            summary: format!("{}: {how}", self.step.as_str()),
            transient: true,
        })
    }

    /// Says which limit has passed, if one has.
    fn overdue(&self) -> Option<Heard> {
        let limits = &self.stages.limits;
        let (step, took) = (self.step, self.step_since.elapsed());
        if step == Step::Generate {
            let limit = self.stages.generate.time;
            let late = format!("the command did not finish within {} s", limit.as_secs());
            return (took > limit).then_some(Heard::Kept(late));
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
        Some(Heard::Stopped(Stopped {
            summary,
            transient: true,
        }))
    }

    /// Returns whether there is something to write down, or the lease wants renewing.
    fn is_due(&self) -> bool {
        !self.lines.is_empty()
            || self.commit.is_some()
            || self.noted_at.elapsed() > self.stages.queue.policy().lease / 3
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

    /// Writes down what was heard, and keeps the lease.
    async fn note(&mut self) -> Result<Held, QueueError> {
        let silent = self.noted_at.elapsed();
        self.noted_at = Instant::now();
        if self.lines.is_empty() && silent > SILENCE_MAX {
            let took = self.step_since.elapsed().as_secs();
            self.lines.push(format!(
                "{}: still at it after {took} s",
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
