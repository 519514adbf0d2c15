//! One update, from the fetch of its branch to its promotion.
//!
//! ```text
//!   process with network      process without network      this process
//!   fetch ──── commit ──────▶ read ─▶ build ── release ──▶ put ─▶ promote ─▶ announce
//! ```
//!
//! The processes handle content that is not trusted, in a sandbox ([`child`]). Only this process
//! can change the store; it checks the output of the build process.
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
//! * R4: if a command or a model writes the `skill.md` ([`generate`]), its release is a second
//!   promotion of the same update. It has the next generation, which is taken before the first
//!   promotion. Until then, and if the writer fails, the first release stays. While the writer
//!   runs, the update holds no place of the worker. A newer update does not wait for the writer:
//!   it stops the writer.
//! * R5: documentation with an error in any page is not published; see [`build`](crate::build).
//!
//! **Limits:** if the lease is lost or released while the writer runs, the update repeats all
//! steps.

mod cache;
pub mod child;
mod content;
mod directory;
mod fetch;
pub mod generate;
mod job;
mod monitor;
mod prepare;
mod promote;
mod quota;
mod specifications;
mod sandbox;
mod workspace;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinError;

use super::Timestamp;
use super::queue::{Claim, Held, Outcome, Progress, Queue, QueueError};
use super::slots::{Slot, Slots};
use super::writer::Spent;
use crate::build::NAVIGATION_PATH;
use crate::clock::Clock;
use crate::isolation::Sandbox;
use crate::release::Inventory;
use crate::release::site::WRITTEN_SKILL_FILE;
use crate::site::{ProjectId, Repository, Service, Site, Visibility};
use crate::source::git::{Address, FetchError, Mirror, Secrets};
use crate::source::{git, remote};
use crate::store::{Fence, Store};
use cache::BuildCache;
use job::{BuildJob, FetchJob, Source};
use monitor::BuildMonitor;
use workspace::{NAVIGATION, PREVIOUS, SKILL_BEFORE, Workspace};

pub use child::{Isolation, LaunchError, Launcher, Limits};
pub use directory::{Build, BuildError, Built, BuiltRelease, DocsDirectory, Session};
pub use generate::{SkillFiles, WaitingSkill};
pub use job::{Event, Prepared, Step, Stopped};
pub use quota::{ProjectsOf, Quota, QuotaError, ReservedSpace};
pub use workspace::{Part, clear_leftovers};

/// The summary of an update whose site was removed before it was built.
pub const SITE_REMOVED: &str = "cancelled: the site was removed";

/// The resources that an update needs.
pub struct Stages {
    /// The queue of the update.
    pub queue: Arc<Queue>,
    /// How many updates may build at once.
    pub builds: Arc<Slots>,
    /// The store of its release.
    pub store: Arc<Store>,
    /// How many bytes the releases of an owner may use.
    pub quota: Arc<Quota>,
    /// The name and the domain of the platform.
    pub service: Service,
    /// How repositories are fetched.
    pub git: git::Config,
    /// Which OpenAPI specifications are fetched when documentation names them by URL.
    pub specifications: remote::Config,
    /// Starts the processes of builds.
    pub launcher: Launcher,
    /// The command or model that may write a `skill.md` where authors wrote none.
    pub generate: generate::Config,
    /// How many writers may run at once.
    pub writers: Arc<Slots>,
    /// How many updates only write a skill, or wait for that.
    pub writing: Arc<AtomicUsize>,
    /// The time of day.
    pub clock: Clock,
    /// Makes this node serve a promoted release at once; `None` if this process serves nothing.
    pub announce: Option<Announce>,
}

/// Makes this node serve a project's current release, and returns when the node serves it: whether
/// every node that shows it to readers does.
pub type Announce = Arc<dyn Fn(&ProjectId) -> bool + Send + Sync>;

/// How an attempt ended, for the queue and for the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The queue has recorded this outcome.
    With(Outcome),
    /// Another worker holds the update.
    Lost,
}

/// The work of an attempt, for the metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The steps that have ended, and how long they took.
    pub steps: Vec<(Step, Duration)>,
    /// The tokens and the money that a language model cost.
    pub spent: Spent,
}

impl fmt::Debug for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stages")
            .field("launcher", &self.launcher)
            .finish_non_exhaustive()
    }
}

/// One update and what it holds while it runs.
struct Update {
    site: Arc<Site>,
    repository: Repository,
    commit_before: Option<Box<str>>,
    address: Address,
    secrets: Secrets,
    /// No other update uses the mirror.
    mirror: Mirror,
    workspace: Arc<Workspace>,
    /// Where the cache of the build is kept.
    cache: PathBuf,
    /// The stored files of the skill writer.
    skill_files: SkillFiles,
}

/// An update that only writes a skill, or waits for that. It holds no place of the worker.
#[derive(Debug)]
struct Writing(Arc<AtomicUsize>);

/// The releases of the project that the store has.
#[derive(Debug, Default)]
struct Prior {
    /// The inventory of the release of the last build.
    inventory: Option<Inventory>,
    /// The inventory of the first release of this update, once it is put.
    first: OnceLock<Inventory>,
}

/// How many updates may wait until their writer runs: each has a process of its build.
const WRITERS_WAITING_MAX: usize = 16;

// === impl Writing ===

impl Writing {
    /// Returns `None` if too many run or wait.
    fn begin(stages: &Stages) -> Option<Self> {
        let counted = Self(Arc::clone(&stages.writing));
        let before = counted.0.fetch_add(1, Ordering::Relaxed);
        (before < stages.generate.runs_max + WRITERS_WAITING_MAX).then_some(counted)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl Stages ===

impl Stages {
    fn now(&self) -> Timestamp {
        Timestamp::of(self.clock.now())
    }

    /// Carries out one attempt of an update and records in the queue how it ended.
    ///
    /// `place` is given back as soon as only the writer of a skill runs. `stop` becomes true when
    /// the process must shut down; the lease is then released.
    ///
    /// # Errors
    ///
    /// The queue cannot be reached. The queue takes the update back when the lease ends.
    pub async fn run(
        &self,
        mut claim: Claim,
        site: Result<Option<Arc<Site>>, Stopped>,
        place: Slot,
        stop: watch::Receiver<bool>,
        work: &mut Work,
    ) -> Result<AttemptEnd, QueueError> {
        let site = match site {
            Ok(Some(site)) if site.owner == claim.update.owner => site,
            // The owner of the update can read its record, and must not see the build of the other
            // owner. This process may have an old record of the site, so the update is tried again.
            Ok(Some(_)) => {
                let stopped = Stopped {
                    summary: "the site has another owner than the update".to_owned(),
                    transient: true,
                };
                return self.stopped(claim, stopped).await;
            }
            Ok(None) => {
                let summary = SITE_REMOVED.to_owned();
                return self.finish(claim, Outcome::Failure, summary).await;
            }
            Err(stopped) => return self.stopped(claim, stopped).await,
        };
        match self.raise_generation(&mut claim).await {
            Ok(Held::Yes) => {}
            Ok(Held::Lost) => return Ok(AttemptEnd::Lost),
            Err(stopped) => return self.stopped(claim, stopped).await,
        }
        let update = match self.prepare(&site, &claim).await {
            Ok(update) => update,
            Err(stopped) => return self.stopped(claim, stopped).await,
        };
        let mut monitor = BuildMonitor::new(self, &update, claim.clone(), place, stop);
        let ended = self.publish(claim, &site, &update, &mut monitor).await;
        *work = monitor.end().await;
        // Removing a workspace takes time.
        blocking(move || drop(update)).await;
        ended
    }

    /// Takes what an update holds while it runs: its mirror, its credentials and a workspace.
    async fn prepare(&self, site: &Arc<Site>, claim: &Claim) -> Result<Update, Stopped> {
        let Some(repository) = site.repository.clone() else {
            return Err(Stopped {
                summary: "the site record names no repository".to_owned(),
                transient: false,
            });
        };
        let (git, user) = (self.git.clone(), self.launcher.process.user);
        let directory = self.launcher.directory.clone();
        let (site, commit_before) = (Arc::clone(site), claim.commit_before.clone());
        blocking(move || {
            let failed = |error: FetchError| fetch::stopped(&error);
            let address = Address::parse(&repository.url, &repository.branch, &git)
                .map_err(|invalid| failed(invalid.into()))?;
            let credential =
                git::choose(&git.credentials, &address, &site.owner).map_err(failed)?;
            let secrets = match credential {
                Some(credential) => Secrets::read(credential, &address).map_err(failed)?,
                None => Secrets::default(),
            };
            let project = site.project.as_str();
            let mirror = Mirror::take(&git, project, address.url(), user).map_err(failed)?;
            let workspace = Workspace::make(&directory, user)
                .map_err(|error| Stopped::of_machine("make a directory for the build", &error))?;
            let cache = cache::path(
                &git.mirrors,
                project,
                &repository.url,
                &repository.branch,
                &repository.directory,
            );
            if let Err(error) = git::remove_earlier(&cache) {
                log::warn!(target: "deploy", "cannot remove the earlier caches of {project}: {error}");
            }
            Ok(Update {
                cache: absolute(cache),
                skill_files: SkillFiles::of(&git.mirrors, &site.project),
                site,
                repository,
                commit_before,
                address,
                secrets,
                mirror,
                workspace: Arc::new(workspace),
            })
        })
        .await
    }

    /// Returns the job to fetch the branch of an update.
    fn fetch_job(&self, update: &Update) -> (FetchJob, Sandbox) {
        let limits = &self.launcher.limits;
        let job = FetchJob {
            url: update.repository.url.clone(),
            branch: update.repository.branch.clone(),
            commit_before: update.commit_before.clone(),
            git: self.git_without_credentials(),
            mirror: absolute(update.mirror.directory().to_owned()),
            bytes_max: update.mirror.bytes_max(),
            rate_min: limits.fetch_rate_min,
            grace: limits.fetch_grace,
            secrets: update.secrets.clone(),
            home: update.workspace.home(),
        };
        let sandbox = sandbox::of_fetch(&job, &update.address, &update.workspace);
        (job, sandbox)
    }

    fn git_without_credentials(&self) -> git::Config {
        git::Config {
            credentials: Vec::new(),
            ..self.git.clone()
        }
    }

    fn build_order(&self, update: &Update, commit: Box<str>) -> (BuildJob, Sandbox) {
        // A private site serves no skill.
        let is_public = update.site.visibility == Visibility::Public;
        let writes = is_public && self.generate.has_writer();
        let job = BuildJob {
            source: Source::Mirror {
                git: self.git_without_credentials(),
                mirror: absolute(update.mirror.directory().to_owned()),
                commit,
                directory: update.repository.directory.clone(),
            },
            service_name: self.service.name.clone(),
            frames: self.service.frames.clone(),
            edit: update.repository.edit_link(),
            edit_below: Box::default(),
            lenient: update.site.lenient,
            allow_empty: update.site.allow_empty,
            keep_going: false,
            has_specifications: self.specifications.is_allowed(),
            generate: writes.then(|| self.generate.clone()),
            workspace: update.workspace.path().to_owned(),
            cache: Some(update.cache.clone()),
            skill_files: Some(update.skill_files.clone()),
        };
        let sandbox = sandbox::of_build(&job, &update.workspace);
        (job, sandbox)
    }

    /// Gives the process of the build what it may know of earlier releases: the inventory of the
    /// last build's release, if the project has it still, and the navigation and the written skill of
    /// the current one.
    async fn prior(&self, update: &Update) -> Result<Arc<Prior>, Stopped> {
        let (store, project) = (Arc::clone(&self.store), update.site.project.clone());
        let (workspace, cache) = (Arc::clone(&update.workspace), update.cache.clone());
        let failed = |error: std::io::Error| Stopped::of_machine("write for the build", &error);
        blocking(move || {
            let mut prior = Prior::default();
            let Ok(Some(pointer)) = store.current(&project) else {
                return Ok(Arc::new(prior));
            };
            let current = store.inventory(pointer.current.release).ok();
            // The text of the skill writer is there for a machine that has not written it.
            for (path, name) in [
                (NAVIGATION_PATH, NAVIGATION),
                (WRITTEN_SKILL_FILE, SKILL_BEFORE),
            ] {
                let item = current.as_ref().and_then(|inventory| inventory.get(path));
                if let Some(bytes) = item.and_then(|item| store.read(item).ok()) {
                    workspace.give(name, &bytes).map_err(failed)?;
                }
            }
            let last = BuildCache::release_of(&cache);
            // A process of a build has written the cache: the release must be one of this project.
            let last = last.filter(|release| pointer.names(*release));
            prior.inventory = last.and_then(|release| store.inventory(release).ok());
            if let Some(inventory) = &prior.inventory {
                let bytes = inventory.to_bytes();
                workspace.give(PREVIOUS, &bytes).map_err(failed)?;
            }
            Ok(Arc::new(prior))
        })
        .await
    }

    /// Waits until this update may build.
    async fn build_slot(&self, claim: &Claim) -> Slot {
        self.builds.take(&claim.update.owner).await
    }

    /// Raises the claim's generation above what the store holds (rule R3).
    async fn raise_generation(&self, claim: &mut Claim) -> Result<Held, Stopped> {
        let (store, project) = (Arc::clone(&self.store), claim.project().clone());
        let current = blocking(move || store.current(&project))
            .await
            .map_err(|error| Stopped::of_machine("read what is served", &error))?;
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

    async fn stopped(&self, claim: Claim, stopped: Stopped) -> Result<AttemptEnd, QueueError> {
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
    ) -> Result<AttemptEnd, QueueError> {
        let (queue, now) = (Arc::clone(&self.queue), self.now());
        let ending = outcome.clone();
        let held = blocking(move || queue.finish(&claim, &ending, &summary, now)).await?;
        Ok(match held {
            Held::Yes => AttemptEnd::With(outcome),
            Held::Lost => AttemptEnd::Lost,
        })
    }
}

/// Processes start in the same directory, but a sandbox names absolute paths.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
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
