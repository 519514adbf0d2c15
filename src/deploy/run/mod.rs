//! One update, from the fetch of its branch to its promotion.
//!
//! ```text
//!   child process                                  this process
//!   fetch ─▶ read ─▶ build ─▶ put ── release id ──▶ promote ─▶ announce
//! ```
//!
//! Each step is safe to repeat, so a crash between two steps costs one attempt and nothing else.
//! A release that was put and not promoted is removed later. A promotion whose end was not
//! recorded is repeated, and has no further effect.
//!
//! * R1: while the update runs, heartbeats renew its lease. An attempt that has lost its lease
//!   stops at once and promotes nothing.
//! * R2: an error of the authors ends the update; a failure of the network, the disk or this
//!   machine ends the attempt, and another attempt follows. An attempt that ran out of time or
//!   was killed is followed by one more at most.
//! * R3: the fence of the promotion is the (generation, epoch) of the claim. If the store holds a
//!   release of the same or a higher fence before the build begins, the generation is raised
//!   above it. If a newer release is promoted during the build, it stays and the update has
//!   succeeded.
//! * R4: if a command writes the `skill.md` ([`generate`]), its release is a second promotion of
//!   the same update. It has the next generation, which is taken before the first promotion.
//!   Until then, and if the command fails, the first release stays. A newer update does not wait
//!   for the command: it stops the command.
//! * R5: documentation with an error in any page is not published; see [`build`](crate::build).
//!
//! **Limits:** if the lease is lost or released while the command runs, the update repeats all
//! steps. The generated file is then served again until the command has run.

mod cache;
pub mod child;
pub mod generate;
mod job;
mod monitor;
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
use monitor::BuildMonitor;

pub use child::Limits;
pub use job::{Event, Job, Prepared, Step, Stopped};

/// The summary of an update whose site was removed before it was built.
pub const SITE_REMOVED: &str = "cancelled: the site was removed";

/// Everything that an update needs.
pub struct Stages {
    /// The queue of the update.
    pub queue: Arc<Queue>,
    /// The store of its release.
    pub store: Arc<Store>,
    /// The directory of the store, for the child.
    pub store_path: PathBuf,
    /// The name and the domain of the platform.
    pub service: Service,
    /// How repositories are fetched.
    pub git: git::Config,
    /// Which OpenAPI specifications are fetched when documentation names them by URL.
    pub specifications: remote::Config,
    /// The limits of a build.
    pub limits: Limits,
    /// The command that may write a `skill.md` where authors wrote none.
    pub generate: generate::Config,
    /// The program of the child process: this program.
    pub program: PathBuf,
    /// The time of day.
    pub clock: Clock,
    /// Makes this node serve a promoted release at once; `None` if this process serves nothing.
    pub announce: Option<Announce>,
}

/// Makes this node serve a project's current release, and returns when the node serves it.
pub type Announce = Arc<dyn Fn(&ProjectId) + Send + Sync>;

/// How an attempt ended, for the queue and for the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The queue has recorded this outcome.
    With(Outcome),
    /// Another worker holds the update.
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

    /// Carries out one attempt of an update and records in the queue how it ended.
    ///
    /// `stop` becomes true when the process must shut down; the lease is then released.
    ///
    /// # Errors
    ///
    /// The queue cannot be reached. The queue takes the update back when the lease ends.
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
        match self.raise_generation(&mut claim).await {
            Ok(Held::Yes) => {}
            Ok(Held::Lost) => return Ok(Ended::Lost),
            Err(stopped) => return self.stopped(claim, stopped).await,
        }
        let job = match self.job(&site, &claim) {
            Ok(job) => job,
            Err(stopped) => return self.stopped(claim, stopped).await,
        };
        let mut monitor = BuildMonitor::new(self, claim.clone(), stop);
        let ended = self.publish(claim, &site, job, &mut monitor).await;
        steps.append(&mut monitor.end().await);
        ended
    }

    fn job(&self, site: &Site, claim: &Claim) -> Result<Job, Stopped> {
        let Some(repository) = &site.repository else {
            return Err(Stopped {
                summary: "the site record names no repository".to_owned(),
                transient: false,
            });
        };
        // A private site serves no skill.
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
            lenient: site.lenient,
            allow_empty: site.allow_empty,
        })
    }

    /// Raises the claim's generation above what the store holds (rule R3).
    async fn raise_generation(&self, claim: &mut Claim) -> Result<Held, Stopped> {
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
        let raised = self.with_generation(claim, current.generation + 1).await;
        let (held, raised) = raised.map_err(|error| Stopped::transient(&error))?;
        *claim = raised;
        Ok(held)
    }

    /// Returns a claim with at least this generation, which no other claim has.
    async fn with_generation(
        &self,
        claim: &Claim,
        at_least: u64,
    ) -> Result<(Held, Claim), QueueError> {
        let (queue, mut raised) = (Arc::clone(&self.queue), claim.clone());
        blocking(move || {
            let held = queue.raise_generation(&mut raised, at_least)?;
            Ok((held, raised))
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
        let ending = outcome.clone();
        let held = blocking(move || queue.finish(&claim, &ending, &summary, now)).await?;
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

/// Waits until a flag is set. A dropped sender counts as a set flag.
async fn until_set(flag: &mut watch::Receiver<bool>) {
    let _ = flag.wait_for(|is_set| *is_set).await;
}

/// Runs a blocking function on a thread that may block.
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
