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
//! * R4: when a command is to write the `skill.md` ([`generate`]), its release follows as a
//!   second promotion of the same update, one generation higher, which is taken before the
//!   first. Until then, and when it fails, the first one stands. A newer update does not wait
//!   for the command: it ends it.
//!
//! **Limits:** an update that is taken over or given back while the command runs does
//! everything again, so the deterministic file is served once more until it has run.

pub mod child;
pub mod generate;
mod hearing;
mod job;
mod kept;
mod prepare;
mod promote;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinError;

use super::Timestamp;
use super::queue::{Claim, Held, Outcome, Progress, Queue, QueueError};
use crate::clock::Clock;
use crate::site::{ProjectId, Service, Site, Visibility};
use crate::source::{git, remote};
use crate::store::{Fence, Store};
use hearing::Hearing;

pub use child::Limits;
pub use job::{Event, Job, Prepared, Step, Stopped};

/// What the record of an update says whose site went before it was built.
pub const SITE_REMOVED: &str = "cancelled: the site was removed";

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
    /// Which command may write the `skill.md` that no author wrote.
    pub generate: generate::Config,
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
            let summary = SITE_REMOVED.to_owned();
            return self.finish(claim, Outcome::Failure, summary).await;
        };
        match self.lift(&mut claim).await {
            Ok(Held::Yes) => {}
            Ok(Held::Lost) => return Ok(Ended::Lost),
            Err(stopped) => return self.stopped(claim, stopped).await,
        }
        let job = match self.job(&site, &claim) {
            Ok(job) => job,
            Err(stopped) => return self.stopped(claim, stopped).await,
        };
        let mut hearing = Hearing::new(self, claim.clone(), stop);
        let ended = self.publish(claim, &site, job, &mut hearing).await;
        steps.append(&mut hearing.end().await);
        ended
    }

    fn job(&self, site: &Site, claim: &Claim) -> Result<Job, Stopped> {
        let Some(repository) = &site.repository else {
            return Err(Stopped {
                summary: "the site record names no repository".to_owned(),
                transient: false,
            });
        };
        // A private site shows no skill, so nobody needs to write one.
        let is_public = site.visibility == Visibility::Public;
        let writes = is_public && !self.generate.command.is_empty();
        Ok(Job {
            project: claim.project().as_str().into(),
            url: repository.url.clone(),
            branch: repository.branch.clone(),
            directory: repository.directory.clone(),
            commit_before: claim.commit_before.clone(),
            generate: writes.then(|| self.generate.clone()),
            service_name: self.service.name.clone(),
            frames: self.service.frames.clone(),
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
        let lifted = self.lifted(claim, current.generation + 1).await;
        let (held, lifted) = lifted.map_err(|error| Stopped::transient(&error))?;
        *claim = lifted;
        Ok(held)
    }

    /// Returns a claim with at least this generation, which is then nobody else's.
    async fn lifted(&self, claim: &Claim, at_least: u64) -> Result<(Held, Claim), QueueError> {
        let (queue, mut lifted) = (Arc::clone(&self.queue), claim.clone());
        blocking(move || {
            let held = queue.raise_generation(&mut lifted, at_least)?;
            Ok((held, lifted))
        })
        .await
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
