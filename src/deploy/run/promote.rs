//! From a release in the store to what everybody sees.

use std::sync::Arc;
use std::time::Instant;

use super::hearing::{Heard, Hearing};
use super::job::{Job, Prepared, Step, Stopped};
use super::{Ended, Stages, blocking, fence};
use crate::deploy::Timestamp;
use crate::deploy::queue::{Claim, Held, Outcome, Progress, QueueError};
use crate::release::ReleaseId;
use crate::site::{ProjectId, Site};
use crate::store::{Fence, PromoteError};

/// What an update has made visible.
struct Published {
    release: ReleaseId,
    summary: String,
    /// When this node served it; `None` where nothing is served.
    visible_at: Option<Timestamp>,
}

impl Stages {
    /// Has a release prepared and promotes it, and the one that may follow it.
    pub(super) async fn publish(
        &self,
        mut claim: Claim,
        site: &Site,
        job: Job,
        hearing: &mut Hearing<'_>,
    ) -> Result<Ended, QueueError> {
        let prepared = match hearing.begin(job).await? {
            Heard::Prepared(prepared) => prepared,
            unprepared => return self.unprepared(claim, unprepared).await,
        };
        let (follows, offered) = (prepared.follows, fence(&claim));
        if follows {
            // Its place is taken now: what is published by hand meanwhile comes after it.
            let (held, lifted) = self.lifted(&claim, offered.generation + 1).await?;
            if held == Held::Lost {
                return Ok(Ended::Lost);
            }
            claim = lifted;
        }
        let mut published = match self.promote(&claim, prepared, offered, hearing).await {
            Ok(published) => published,
            Err(stopped) => return self.stopped(claim, stopped).await,
        };
        if self.note_published(&claim, site, &published).await? == Held::Lost {
            return Ok(Ended::Lost);
        }
        if follows {
            let why = match hearing.listen().await? {
                Heard::Prepared(written) => {
                    let offered = fence(&claim);
                    let replaced = self.promote(&claim, written, offered, hearing).await;
                    replaced.map_err(|stopped| stopped.summary)
                }
                Heard::Kept(why) => Err(why),
                Heard::Stopped(stopped) => Err(stopped.summary),
                unfinished => return self.unprepared(claim, unfinished).await,
            };
            let line = match why {
                Ok(replacement) => {
                    // The update has been visible since its first release was.
                    published.release = replacement.release;
                    published.summary = replacement.summary;
                    "generate: the skill.md of the command is published".to_owned()
                }
                Err(why) => format!("generate: the deterministic skill.md stays: {why}"),
            };
            if self.note_line(&claim, line).await? == Held::Lost {
                return Ok(Ended::Lost);
            }
        }
        let outcome = Outcome::Success {
            release: published.release,
            visible_at: published.visible_at,
        };
        self.finish(claim, outcome, published.summary).await
    }

    /// Tells the queue of an attempt that ended before its end.
    async fn unprepared(&self, claim: Claim, heard: Heard) -> Result<Ended, QueueError> {
        match heard {
            Heard::Stopped(stopped) => self.stopped(claim, stopped).await,
            Heard::Lost => Ok(Ended::Lost),
            Heard::Prepared(_) | Heard::Kept(_) | Heard::GiveBack => {
                let summary = "given back: the worker is shutting down".to_owned();
                self.finish(claim, Outcome::LeaseReleased, summary).await
            }
        }
    }

    /// The only step that anybody sees.
    async fn promote(
        &self,
        claim: &Claim,
        prepared: Prepared,
        offered: Fence,
        hearing: &mut Hearing<'_>,
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
            Err(error) => return Err(Stopped::transient(&error)),
        };
        let visible_at = self.announce(claim.project()).await;
        hearing.took(Step::Promote, since.elapsed());
        Ok(Published {
            release,
            summary,
            visible_at,
        })
    }

    /// Returns what was promoted instead of ours.
    async fn current(&self, project: &ProjectId) -> Result<ReleaseId, Stopped> {
        let (store, project) = (Arc::clone(&self.store), project.clone());
        let current = blocking(move || store.current(&project))
            .await
            .map_err(|error| Stopped::transient(&error))?;
        let current = current.map(|pointer| pointer.current.release);
        current.ok_or_else(|| Stopped {
            summary: "the pointer of the project is gone".to_owned(),
            transient: true,
        })
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

    async fn note_line(&self, claim: &Claim, line: String) -> Result<Held, QueueError> {
        let (lines, commit) = (vec![line], None);
        self.heartbeat(claim, Progress { lines, commit }).await
    }
}
