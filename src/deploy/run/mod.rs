//! One update, from its branch to the edge.
//!
//! ```text
//!   child process                                  this process
//!   fetch ─▶ read ─▶ build ─▶ put ── release id ──▶ promote ─▶ announce
//! ```
//!
//! Each step is safe to repeat, so a crash between any two of them costs an attempt and
//! nothing else: a put without a promotion leaves a release that is swept, a promotion
//! without a recorded end is made again and found to be done.
//!
//! * R1: while it runs, the update is held by heartbeats; an attempt that has lost its
//!   update stops at once and promotes nothing.
//! * R2: the author's mistakes end the update; the world's end the attempt.
//! * R3: the fence of the promotion is (generation, epoch) of the claim. When the store
//!   holds something as new before the build begins, the generation is lifted above it;
//!   when something newer appears meanwhile, it stays and the update has succeeded.
//!
//! Design sections 1, 3 and 6.

pub mod child;
mod prepare;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinError;

use super::Timestamp;
use super::queue::{Claim, Held, Outcome, Progress, Queue, QueueError};
use super::record::Commit;
use crate::clock::Clock;
use crate::release::ReleaseId;
use crate::site::{ProjectId, Service, Site};
use crate::source::{git, remote};
use crate::store::{Fence, PromoteError, Store};
use child::Running;

pub use child::Limits;
pub use prepare::{Event, Job, Step, Stopped};

/// How often new lines of the log are written down: a follower's patience.
const NOTE_EVERY: Duration = Duration::from_millis(250);

/// Everything an update passes through.
pub struct Stages {
    /// Where the update comes from.
    pub queue: Arc<Queue>,
    /// Where its release is kept.
    pub store: Arc<Store>,
    /// The directory of the store, for the child.
    pub store_path: PathBuf,
    /// The names the platform goes by.
    pub service: Service,
    /// How repositories are fetched.
    pub git: git::Config,
    /// Which specifications are fetched that documentation names by URL.
    pub specifications: remote::Config,
    /// What a build may use.
    pub limits: Limits,
    /// The program that a child is: this one.
    pub program: PathBuf,
    /// The time of day.
    pub clock: Clock,
    /// Makes this node serve what was promoted, now; `None` where nothing is served.
    pub announce: Option<Announce>,
}

/// Makes this node serve a project's current release, and returns when it does.
pub type Announce = Arc<dyn Fn(&ProjectId) + Send + Sync>;

/// How an attempt ended: for the queue, and for the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The queue was told this.
    With(Outcome),
    /// Somebody else holds the update.
    Lost,
}

/// What was heard of a child and is not written down yet.
struct Hearing<'s> {
    stages: &'s Stages,
    claim: &'s Claim,
    lines: Vec<String>,
    commit: Option<Commit>,
    /// The start of the child counts as part of the first.
    step: Step,
    step_since: Instant,
    steps: Vec<(Step, Duration)>,
    noted_at: Instant,
}

/// How the listening to a child ended.
enum Heard {
    Prepared(ReleaseId, String),
    Stopped(Stopped),
    Lost,
    GiveBack,
}

impl fmt::Debug for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stages")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

// === impl Stages ===

impl Stages {
    fn now(&self) -> Timestamp {
        Timestamp::of(self.clock.now())
    }

    /// Carries out one attempt of an update and tells the queue how it ended.
    ///
    /// `stop` becomes true when the process cannot wait any longer; the update is given back.
    ///
    /// # Errors
    ///
    /// The queue cannot be told; the end of the lease tells it.
    pub async fn run(
        &self,
        mut claim: Claim,
        site: Option<Arc<Site>>,
        stop: watch::Receiver<bool>,
        steps: &mut Vec<(Step, Duration)>,
    ) -> Result<Ended, QueueError> {
        let Some(site) = site else {
            let summary = "the project has no site any more";
            return self
                .finish(claim, Outcome::Failure, summary.to_owned())
                .await;
        };
        match self.lift(&mut claim).await {
            Ok(Held::Yes) => {}
            Ok(Held::Lost) => return Ok(Ended::Lost),
            Err(stopped) => return self.stopped(claim, stopped).await,
        }
        let heard = match self.job(&site, &claim) {
            Ok(job) => self.prepare(&claim, job, stop, steps).await?,
            Err(stopped) => Heard::Stopped(stopped),
        };
        match heard {
            Heard::Prepared(release, summary) => {
                let since = Instant::now();
                let ended = self.promote(claim, &site, release, summary).await;
                steps.push((Step::Promote, since.elapsed()));
                ended
            }
            Heard::Stopped(stopped) => self.stopped(claim, stopped).await,
            Heard::Lost => Ok(Ended::Lost),
            Heard::GiveBack => {
                let summary = "given back: the worker is shutting down".to_owned();
                self.finish(claim, Outcome::GiveBack, summary).await
            }
        }
    }

    fn job(&self, site: &Site, claim: &Claim) -> Result<Job, Stopped> {
        let Some(repository) = &site.repository else {
            return Err(Stopped {
                summary: "the site record names no repository".to_owned(),
                transient: false,
            });
        };
        Ok(Job {
            project: claim.project().as_str().into(),
            url: repository.url.clone(),
            branch: repository.branch.clone(),
            directory: repository.directory.clone(),
            commit_before: claim.commit_before.clone(),
            service_name: self.service.name.clone(),
            git: self.git.clone(),
            specifications: self.specifications.clone(),
            store: self.store_path.clone(),
        })
    }

    /// Lifts the claim's generation above what the store holds (rule R3).
    async fn lift(&self, claim: &mut Claim) -> Result<Held, Stopped> {
        let (store, project) = (Arc::clone(&self.store), claim.project().clone());
        let current = blocking(move || store.current(&project))
            .await
            .map_err(|error| Stopped::transient(&error))?;
        let Some(current) = current.map(|pointer| pointer.current.fence()) else {
            return Ok(Held::Yes);
        };
        if current < fence(claim) {
            return Ok(Held::Yes);
        }
        let (queue, mut lifted) = (Arc::clone(&self.queue), claim.clone());
        let (held, lifted) = blocking(move || {
            let held = queue.lift(&mut lifted, current.generation + 1)?;
            Ok((held, lifted))
        })
        .await
        .map_err(|error: QueueError| Stopped::transient(&error))?;
        *claim = lifted;
        Ok(held)
    }

    /// Listens to a child until it has ended, one way or another.
    async fn prepare(
        &self,
        claim: &Claim,
        job: Job,
        mut stop: watch::Receiver<bool>,
        steps: &mut Vec<(Step, Duration)>,
    ) -> Result<Heard, QueueError> {
        let began = Instant::now();
        let mut hearing = Hearing::new(self, claim);
        let first = format!(
            "attempt {} of {}",
            claim.update.attempts,
            self.queue.policy().attempts_max
        );
        hearing.lines.push(first);
        if hearing.note().await? == Held::Lost {
            return Ok(Heard::Lost);
        }
        let mut running = match Running::start(&self.program, job, &self.limits).await {
            Ok(running) => running,
            Err(error) => return Ok(Heard::Stopped(Stopped::transient(&error))),
        };
        let mut ticks = tokio::time::interval(NOTE_EVERY);
        let heard = loop {
            tokio::select! {
                event = running.event() => match event {
                    Ok(Some(event)) => {
                        if let Some(heard) = hearing.hear(event) {
                            break heard;
                        }
                    }
                    Ok(None) => break hearing.silence(running.ended().await),
                    Err(error) => break Heard::Stopped(Stopped::transient(&error)),
                },
                _ = ticks.tick() => {
                    if let Some(stopped) = hearing.overdue(began.elapsed()) {
                        break Heard::Stopped(stopped);
                    }
                    if hearing.is_due() && hearing.note().await? == Held::Lost {
                        break Heard::Lost;
                    }
                },
                () = raised(&mut stop) => break Heard::GiveBack,
            }
        };
        running.kill().await;
        steps.append(&mut hearing.steps);
        if matches!(heard, Heard::Prepared(..) | Heard::Stopped(_))
            && hearing.note().await? == Held::Lost
        {
            return Ok(Heard::Lost);
        }
        Ok(heard)
    }

    /// The only step that anybody sees.
    async fn promote(
        &self,
        claim: Claim,
        site: &Site,
        release: ReleaseId,
        summary: String,
    ) -> Result<Ended, QueueError> {
        let (store, project) = (Arc::clone(&self.store), claim.project().clone());
        let offered = fence(&claim);
        let promoted = blocking(move || store.promote(&project, release, offered)).await;
        let (release, summary) = match promoted {
            Ok(_pointer) => {
                let short = &release.to_string()[..12];
                (release, format!("published release {short}: {summary}"))
            }
            Err(PromoteError::Stale { .. }) => match self.newer(claim.project()).await {
                Ok(Some(newer)) => (newer, "a newer release was published meanwhile".to_owned()),
                Ok(None) => {
                    let summary = "the pointer of the project is gone".to_owned();
                    return self.finish(claim, Outcome::Retry, summary).await;
                }
                Err(stopped) => return self.stopped(claim, stopped).await,
            },
            Err(error) => return self.stopped(claim, Stopped::transient(&error)).await,
        };
        let visible_at = self.announce(claim.project()).await;
        let held = self.note_published(&claim, site, visible_at).await?;
        if held == Held::Lost {
            return Ok(Ended::Lost);
        }
        let outcome = Outcome::Success {
            release,
            visible_at,
        };
        self.finish(claim, outcome, summary).await
    }

    /// Returns what was promoted instead of ours.
    async fn newer(&self, project: &ProjectId) -> Result<Option<ReleaseId>, Stopped> {
        let (store, project) = (Arc::clone(&self.store), project.clone());
        let current = blocking(move || store.current(&project))
            .await
            .map_err(|error| Stopped::transient(&error))?;
        Ok(current.map(|pointer| pointer.current.release))
    }

    /// Makes this node serve what was promoted; `None` where nothing is served.
    async fn announce(&self, project: &ProjectId) -> Option<Timestamp> {
        let (announce, project) = (self.announce.clone()?, project.clone());
        blocking(move || announce(&project)).await;
        Some(self.now())
    }

    async fn note_published(
        &self,
        claim: &Claim,
        site: &Site,
        visible_at: Option<Timestamp>,
    ) -> Result<Held, QueueError> {
        let hosts = site
            .default_host(&self.service)
            .into_iter()
            .chain(site.domains.iter().cloned());
        let urls = hosts.map(|host| self.service.site_url(&host, &site.base_path));
        let mut lines: Vec<_> = urls
            .map(|url| format!("promote: published on {url}"))
            .collect();
        if let Some(at) = visible_at {
            lines.push(format!("promote: served by this node since {at}"));
        }
        let commit = None;
        self.heartbeat(claim, Progress { lines, commit }).await
    }

    async fn stopped(&self, claim: Claim, stopped: Stopped) -> Result<Ended, QueueError> {
        let outcome = if stopped.transient {
            Outcome::Retry
        } else {
            Outcome::Failure
        };
        self.finish(claim, outcome, stopped.summary).await
    }

    async fn heartbeat(&self, claim: &Claim, progress: Progress) -> Result<Held, QueueError> {
        let (queue, claim, now) = (Arc::clone(&self.queue), claim.clone(), self.now());
        blocking(move || queue.heartbeat(&claim, progress, now)).await
    }

    async fn finish(
        &self,
        claim: Claim,
        outcome: Outcome,
        summary: String,
    ) -> Result<Ended, QueueError> {
        let (queue, now) = (Arc::clone(&self.queue), self.now());
        let told = outcome.clone();
        let held = blocking(move || queue.finish(&claim, &told, &summary, now)).await?;
        Ok(match held {
            Held::Yes => Ended::With(outcome),
            Held::Lost => Ended::Lost,
        })
    }
}

// === impl Hearing ===

impl<'s> Hearing<'s> {
    fn new(stages: &'s Stages, claim: &'s Claim) -> Self {
        Self {
            stages,
            claim,
            lines: Vec::new(),
            commit: None,
            step: Step::Fetch,
            step_since: Instant::now(),
            steps: Vec::new(),
            noted_at: Instant::now(),
        }
    }

    /// Takes in an event; the last one ends the listening.
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
            Event::Prepared { release, summary } => {
                self.step_ends();
                return Some(Heard::Prepared(release, summary));
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
    fn silence(&self, how: String) -> Heard {
        Heard::Stopped(Stopped {
            summary: format!("{}: {how}", self.step.as_str()),
            transient: true,
        })
    }

    /// Says which limit has passed, if one has.
    fn overdue(&self, total: Duration) -> Option<Stopped> {
        let limits = &self.stages.limits;
        let summary = if self.step == Step::Fetch && self.step_since.elapsed() > limits.fetch {
            format!(
                "fetch: the host did not finish within {} s",
                limits.fetch.as_secs()
            )
        } else if total > limits.total {
            let step = self.step.as_str();
            format!(
                "{step}: the update took longer than {} s",
                limits.total.as_secs()
            )
        } else {
            return None;
        };
        Some(Stopped {
            summary,
            transient: true,
        })
    }

    /// Returns whether there is something to write down, or the lease wants renewing.
    fn is_due(&self) -> bool {
        !self.lines.is_empty()
            || self.commit.is_some()
            || self.noted_at.elapsed() > self.stages.queue.policy().lease / 3
    }

    /// Writes down what was heard, and keeps the lease.
    async fn note(&mut self) -> Result<Held, QueueError> {
        let silent = self.noted_at.elapsed();
        self.noted_at = Instant::now();
        if self.lines.is_empty() && silent > Duration::from_secs(5) {
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
        self.stages.heartbeat(self.claim, progress).await
    }
}

fn fence(claim: &Claim) -> Fence {
    Fence {
        generation: claim.update.generation,
        epoch: claim.epoch,
    }
}

/// Returns when a flag is raised. A sender that is gone wants no less.
async fn raised(flag: &mut watch::Receiver<bool>) {
    let _ = flag.wait_for(|raised| *raised).await;
}

/// Runs what blocks where it may.
pub(super) async fn blocking<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(act)
        .await
        .map_err(JoinError::try_into_panic)
    {
        Ok(value) => value,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The runtime is being shut down, and this task with it.
        Err(Err(_cancelled)) => std::future::pending().await,
    }
}
