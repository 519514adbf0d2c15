//! What the queue is given and what it answers, whichever backend it has.

use crate::deploy::record::Commit;
use crate::deploy::update::{Source, Update};
use crate::deploy::{StatusId, Timestamp};
use crate::digest::Digest;
use crate::release::ReleaseId;
use crate::site::ProjectId;

/// What is asked of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// The project to build.
    pub project: ProjectId,
    /// Whose project it is.
    pub owner: Box<str>,
    /// The site's subdomain, for the record.
    pub subdomain: Box<str>,
    /// Which way it was asked for.
    pub source: Source,
    /// The digest of the caller's `Idempotency-Key`.
    pub idempotency: Option<Digest>,
}

/// The queue's answer to a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// The update that answers for the trigger.
    pub id: StatusId,
    /// Whether it had been queued before.
    pub coalesced: bool,
}

/// An update in the hands of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The update as it was claimed.
    pub update: Update,
    /// The number of this claim among the project's.
    pub epoch: u64,
    /// The commit of the project's last success, to tell what changed since.
    pub commit_before: Option<Box<str>>,
}

/// What a worker tells the queue while it builds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// New lines of the log.
    pub lines: Vec<String>,
    /// The commit, once it is known.
    pub commit: Option<Commit>,
}

/// Whether a claim still holds its update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Held {
    /// It does.
    Yes,
    /// Somebody else took over: stop.
    Lost,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A release was promoted.
    Success {
        /// The release.
        release: ReleaseId,
        /// When this node served it.
        visible_at: Option<Timestamp>,
    },
    /// It cannot succeed without somebody changing something.
    Failure,
    /// The world's fault: try again, but not for ever.
    Retry,
    /// The worker stops; the attempt does not count.
    LeaseReleased,
}

/// How the queue stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Updates that wait.
    pub queued: u64,
    /// Updates being built.
    pub in_progress: u64,
    /// Updates that ran out of attempts and were not looked at.
    pub dead_letters: u64,
}

/// What a sweep removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Records of ended updates.
    pub updates: u64,
    /// Remembered idempotency keys.
    pub idempotency_keys: u64,
}

// === impl Claim ===

impl Claim {
    /// Returns the status id.
    #[must_use]
    pub fn id(&self) -> &StatusId {
        &self.update.id
    }

    /// Returns the project.
    #[must_use]
    pub fn project(&self) -> &ProjectId {
        &self.update.project
    }
}
