//! Promotion: a release in the store becomes the release that is served.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::fetch::short;
use super::job::{Order, Prepared, Step, Stopped};
use super::monitor::{BuildMonitor, BuildResult};
use super::quota::{QuotaError, ReservedSpace};
use super::workspace::{CACHE, Part, SKILL, SKILL_REJECTED};
use super::{AttemptEnd, Prior, Stages, Update, blocking, fence};
use crate::deploy::Timestamp;
use crate::deploy::queue::{Claim, Held, Outcome, Progress, QueueError};
use crate::diagnostic::count;
use crate::release::ReleaseId;
use crate::site::{ProjectId, Site};
use crate::store::{Fence, PromoteError, PutError};

/// The release that an update has published.
struct Published {
    release: ReleaseId,
    summary: String,
    /// When this node began to serve it; `None` if this process serves nothing.
    visible_at: Option<Timestamp>,
}

/// Why a release is not in the store.
#[derive(Debug, thiserror::Error)]
enum PutFailure {
    #[error(transparent)]
    Put(#[from] PutError),
    #[error(transparent)]
    Quota(#[from] QuotaError),
}

/// Moves a file that a process has written to the place where the next update reads it.
fn keep(update: &Update, name: &str, place: &Path) {
    if let Err(error) = update.workspace.take(name, place) {
        log::warn!(target: "deploy", "cannot write {}: {error}", place.display());
    }
}

/// Returns the line of the record about releases that were removed to make room.
fn removed_line(removed: usize) -> String {
    format!(
        "put: removed {} of this owner, because its releases use too many bytes",
        count(removed, "earlier release")
    )
}

impl Stages {
    /// Fetches, builds and promotes a release.
    ///
    /// If a writer writes a skill, the same follows for the release with this skill.
    pub(super) async fn publish(
        &self,
        mut claim: Claim,
        site: &Site,
        update: &Update,
        monitor: &mut BuildMonitor<'_>,
    ) -> Result<AttemptEnd, QueueError> {
        if monitor.begin().await? == Held::Lost {
            return Ok(AttemptEnd::Lost);
        }
        let (job, sandbox) = self.fetch_job(update);
        let commit = match monitor.run(Order::Fetch(Box::new(job)), sandbox).await? {
            BuildResult::Fetched(commit) => commit,
            unfetched => return self.end_without_release(claim, unfetched).await,
        };
        let (prepared, prior) = match self.build(&claim, update, &commit, monitor).await? {
            Ok(built) => built,
            Err(unfinished) => return self.end_without_release(claim, unfinished).await,
        };
        let space = match self.put(update, &prepared, &prior, monitor).await? {
            Ok(space) => space,
            Err(unput) => return self.end_without_release(claim, unput).await,
        };
        let (skill_pending, offered) = (prepared.skill_pending, fence(&claim));
        if skill_pending {
            // The generation of the second release is taken now. So a release that is published
            // by hand in the meantime is newer than both.
            let raised = self.with_generation(&claim, offered.generation + 1).await?;
            let (Held::Yes, with_generation) = raised else {
                return Ok(AttemptEnd::Lost);
            };
            claim = with_generation;
        }
        let promoted = self
            .promote(&claim, prepared, offered, space, monitor)
            .await;
        let mut published = match promoted {
            Ok(published) => published,
            Err(stopped) => return self.stopped(claim, stopped).await,
        };
        if self.record_published(&claim, site, &published).await? == Held::Lost {
            return Ok(AttemptEnd::Lost);
        }
        if skill_pending {
            // The update is visible; other updates need not wait for the writer.
            let next = match monitor.begin_writing() {
                true => monitor.next().await?,
                false => BuildResult::SkillStays(
                    "too many skills are being written; the next update asks again".to_owned(),
                ),
            };
            let mut is_waiting = false;
            let replaced = match next {
                BuildResult::Prepared(written) => {
                    match self.put(update, &written, &prior, monitor).await? {
                        Ok(space) => {
                            let offered = fence(&claim);
                            let promoting = self.promote(&claim, written, offered, space, monitor);
                            let replaced = promoting.await;
                            replaced.map_err(|stopped| stopped.summary)
                        }
                        Err(BuildResult::Stopped(stopped)) => Err(stopped.summary),
                        Err(unput) => return self.end_without_release(claim, unput).await,
                    }
                }
                BuildResult::SkillStays(why) => {
                    keep(update, SKILL_REJECTED, &update.skill_files.rejected);
                    Err(why)
                }
                BuildResult::SkillWaits => {
                    keep(update, SKILL, &update.skill_files.waiting);
                    is_waiting = true;
                    Err("the new one waits for approval".to_owned())
                }
                BuildResult::Stopped(stopped) => Err(stopped.summary),
                BuildResult::Killed(why) => Err(why),
                unfinished => return self.end_without_release(claim, unfinished).await,
            };
            let line = match replaced {
                Ok(replacement) => {
                    // The update has been visible since its first release was served.
                    published.release = replacement.release;
                    published.summary = replacement.summary;
                    let name = self.generate.writer_name();
                    format!("generate: the new skill.md of {name} is published")
                }
                Err(_waiting) if is_waiting => format!(
                    "generate: the new skill.md waits for approval: waypost skill approve {}",
                    claim.project().as_str()
                ),
                Err(why) => format!("generate: the skill.md that is published stays: {why}"),
            };
            if self.record_line(&claim, line).await? == Held::Lost {
                return Ok(AttemptEnd::Lost);
            }
        }
        let outcome = Outcome::Success {
            release: published.release,
            visible_at: published.visible_at,
        };
        self.finish(claim, outcome, published.summary).await
    }

    /// Builds the release once it has a slot. A build that has lost its slot begins
    /// anew with the next one.
    async fn build(
        &self,
        claim: &Claim,
        update: &Update,
        commit: &str,
        monitor: &mut BuildMonitor<'_>,
    ) -> Result<Result<(Prepared, Arc<Prior>), BuildResult>, QueueError> {
        loop {
            match monitor.wait(self.build_slot(claim)).await? {
                Ok(slot) => monitor.set_slot(Some(slot)),
                Err(end) => return Ok(Err(end)),
            }
            let prior = match self.prior(update).await {
                Ok(prior) => prior,
                Err(stopped) => return Ok(Err(BuildResult::Stopped(stopped))),
            };
            let (job, sandbox) = self.build_order(update, commit.into());
            let order = Order::Build(Box::new(job));
            match monitor.run(order, sandbox).await? {
                BuildResult::Prepared(prepared) => return Ok(Ok((prepared, prior))),
                BuildResult::SlotLost => {
                    if let Err(stopped) = monitor.release_slot().await {
                        return Ok(Err(BuildResult::Stopped(stopped)));
                    }
                }
                unfinished => return Ok(Err(unfinished)),
            }
        }
    }

    /// Records an attempt that ended without a release.
    async fn end_without_release(
        &self,
        claim: Claim,
        result: BuildResult,
    ) -> Result<AttemptEnd, QueueError> {
        match result {
            BuildResult::Stopped(stopped) => self.stopped(claim, stopped).await,
            BuildResult::Killed(how) => self.finish(claim, Outcome::RetryOnce, how).await,
            BuildResult::LeaseLost => Ok(AttemptEnd::Lost),
            BuildResult::Fetched(_)
            | BuildResult::Done
            | BuildResult::Prepared(_)
            | BuildResult::SkillStays(_)
            | BuildResult::SkillWaits
            | BuildResult::SlotLost
            | BuildResult::ShuttingDown => {
                let summary =
                    "released: another owner's update goes first, or the worker is shutting down"
                        .to_owned();
                self.finish(claim, Outcome::LeaseReleased, summary).await
            }
        }
    }

    /// Puts the release that a process has written into the store, and keeps its caches.
    async fn put(
        &self,
        update: &Update,
        prepared: &Prepared,
        prior: &Arc<Prior>,
        monitor: &mut BuildMonitor<'_>,
    ) -> Result<Result<ReservedSpace, BuildResult>, QueueError> {
        let since = Instant::now();
        // The build is done, and the owner may be locked for a minute: another build may begin.
        monitor.set_slot(None);
        let (store, workspace) = (Arc::clone(&self.store), Arc::clone(&update.workspace));
        let (prior, release, part) = (Arc::clone(prior), prepared.release, prepared.part);
        let (quota, site) = (Arc::clone(&self.quota), Arc::clone(&update.site));
        let putting = blocking(move || {
            let first = prior.first.get();
            let known: Vec<_> = prior.inventory.iter().chain(first).collect();
            let inventory = workspace.inventory(part, release)?;
            let space = quota.make_room(&store, &site.owner, &site.project, &inventory)?;
            workspace.put(&store, part, &inventory, &known)?;
            if part == Part::First {
                // The second release is made from the files of the first one.
                let _first = prior.first.set(inventory);
            }
            Ok::<_, PutFailure>(space)
        });
        let put = match monitor.wait(putting).await? {
            Ok(put) => put,
            Err(end) => return Ok(Err(end)),
        };
        let space = match put {
            Ok(space) => space,
            Err(PutFailure::Quota(error @ (QuotaError::Lock(_) | QuotaError::Read(_)))) => {
                let stopped = Stopped::of_machine("look at the quota of the owner", &error);
                return Ok(Err(BuildResult::Stopped(stopped)));
            }
            Err(PutFailure::Quota(exceeded)) => {
                let stopped = Stopped::lasting(&exceeded);
                return Ok(Err(BuildResult::Stopped(stopped)));
            }
            Err(PutFailure::Put(error @ PutError::Inventory(_))) => {
                return Ok(Err(BuildResult::Stopped(Stopped::lasting(&error))));
            }
            Err(PutFailure::Put(error)) => {
                if matches!(error, PutError::Existing(_) | PutError::Missing(_)) {
                    // A file of the previous release is damaged. Without its cache, the next
                    // attempt makes all files again.
                    let _removed = std::fs::remove_file(&update.cache);
                }
                let stopped = Stopped {
                    transient: error.is_transient(),
                    ..Stopped::of_machine("store the release", &error)
                };
                return Ok(Err(BuildResult::Stopped(stopped)));
            }
        };
        monitor.end_step();
        monitor.line(format!(
            "put: release {} is in the store ({} ms)",
            short(&release.to_string()),
            since.elapsed().as_millis(),
        ));
        if space.removed > 0 {
            monitor.line(removed_line(space.removed));
        }
        let (name, place) = match part {
            Part::First => (CACHE, &update.cache),
            Part::Second => (SKILL, &update.skill_files.accepted),
        };
        keep(update, name, place);
        // Recorded before the promotion writes its own lines.
        if monitor.record().await? == Held::Lost {
            return Ok(Err(BuildResult::LeaseLost));
        }
        Ok(Ok(space))
    }

    /// Makes a release the current one. Only this step changes the served site.
    async fn promote(
        &self,
        claim: &Claim,
        prepared: Prepared,
        offered: Fence,
        space: ReservedSpace,
        monitor: &mut BuildMonitor<'_>,
    ) -> Result<Published, Stopped> {
        let since = Instant::now();
        let (store, project) = (Arc::clone(&self.store), claim.project().clone());
        let release = prepared.release;
        let promoted = blocking(move || store.promote(&project, release, offered)).await;
        let (release, summary) = match promoted {
            Ok(_pointer) => {
                let short = &release.to_string()[..12];
                let summary = format!("published release {short}: {}", prepared.summary);
                (release, summary)
            }
            Err(PromoteError::Stale { .. }) => {
                let newer = self.current(claim.project()).await?;
                (newer, "a newer release was published meanwhile".to_owned())
            }
            Err(error) => return Err(Stopped::of_machine("promote the release", &error)),
        };
        let visible_at = self.announce(claim.project()).await;
        self.trim(claim, space, monitor).await;
        monitor.add_step(Step::Promote, since.elapsed());
        Ok(Published {
            release,
            summary,
            visible_at,
        })
    }

    /// Removes the release that was served before, if the quota of the owner has no room for it.
    async fn trim(&self, claim: &Claim, space: ReservedSpace, monitor: &mut BuildMonitor<'_>) {
        let (quota, store) = (Arc::clone(&self.quota), Arc::clone(&self.store));
        let (owner, project) = (claim.update.owner.clone(), claim.project().clone());
        let removed = blocking(move || quota.trim(&store, &owner, &project, space)).await;
        if removed > 0 {
            monitor.line(removed_line(removed));
        }
    }

    /// Returns the release that was promoted instead of ours.
    async fn current(&self, project: &ProjectId) -> Result<ReleaseId, Stopped> {
        let (store, project) = (Arc::clone(&self.store), project.clone());
        let current = blocking(move || store.current(&project))
            .await
            .map_err(|error| Stopped::of_machine("read what is served", &error))?;
        let current = current.map(|pointer| pointer.current.release);
        current.ok_or_else(|| Stopped {
            summary: "the pointer of the project has been removed".to_owned(),
            transient: true,
        })
    }

    /// Makes this node serve the promoted release; `None` if this process serves nothing, or if
    /// edges follow it that may not have it yet.
    async fn announce(&self, project: &ProjectId) -> Option<Timestamp> {
        let (announce, project) = (self.announce.clone()?, project.clone());
        let is_everywhere = blocking(move || announce(&project)).await;
        is_everywhere.then(|| self.now())
    }

    async fn record_published(
        &self,
        claim: &Claim,
        site: &Site,
        published: &Published,
    ) -> Result<Held, QueueError> {
        let hosts = site
            .default_host(&self.service)
            .into_iter()
            .chain(site.domains.iter().cloned());
        let urls = hosts.map(|host| self.service.site_url(&host, &site.base_path));
        let mut lines: Vec<_> = urls
            .map(|url| format!("promote: published on {url}"))
            .collect();
        if let Some(at) = published.visible_at {
            lines.push(format!("promote: served by this node since {at}"));
        }
        let commit = None;
        self.heartbeat(claim, Progress { lines, commit }).await
    }

    async fn record_line(&self, claim: &Claim, line: String) -> Result<Held, QueueError> {
        let (lines, commit) = (vec![line], None);
        self.heartbeat(claim, Progress { lines, commit }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_says_how_many_releases_made_room() {
        let line = |what: &str| {
            format!("put: removed {what} of this owner, because its releases use too many bytes")
        };
        assert_eq!(removed_line(1), line("1 earlier release"));
        assert_eq!(removed_line(2), line("2 earlier releases"));
    }
}
