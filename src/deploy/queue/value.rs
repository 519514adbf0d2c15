//! The arguments and results of the queue, the same for every back end.

use crate::deploy::record::Commit;
use crate::deploy::update::{Source, Update};
use crate::deploy::{StatusId, Timestamp};
use crate::digest::Digest;
use crate::release::ReleaseId;
use crate::site::ProjectId;

/// A request to update a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// The project to build.
    pub project: ProjectId,
    /// The owner of the project.
    pub owner: Box<str>,
    /// The site's subdomain, for the record.
    pub subdomain: Box<str>,
    /// Where the request came from.
    pub source: Source,
    /// The digest of the caller's `Idempotency-Key`, if it sent one.
    pub idempotency: Option<Digest>,
}

/// The result of a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// The update whose build will include what the caller has pushed.
    pub id: StatusId,
    /// Whether the update was queued by an earlier trigger.
    pub coalesced: bool,
}

/// An update that a worker has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The update as it was claimed.
    pub update: Update,
    /// The number of this claim among the claims of the project.
    pub epoch: u64,
    /// The commit of the project's last successful update, to list the files changed since.
    pub commit_before: Option<Box<str>>,
}

/// The progress that a worker adds to the record during a build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// New lines for the log.
    pub lines: Vec<String>,
    /// The commit, once it is known.
    pub commit: Option<Commit>,
}

/// The owners whose updates may be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners {
    /// Every owner. Owners without a running update come first.
    All,
    /// Only owners without a running update.
    Idle,
}

/// Whether a claim still holds the lease of its update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Held {
    /// It holds the lease.
    Yes,
    /// It has lost the lease: another worker may have claimed the update, so stop.
    Lost,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A release was promoted.
    Success {
        /// The release.
        release: ReleaseId,
        /// When this process served it; `None` in a worker without listeners.
        visible_at: Option<Timestamp>,
    },
    /// Trying again cannot help: the author or the operator must change something.
    Failure,
    /// Trying again may help. The queue does so until the attempts run out.
    Retry,
    /// The attempt ran out of time or was killed. Trying again helps only if the machine was
    /// busy, so the second attempt is the last.
    RetryOnce,
    /// The worker stops and releases the lease; the attempt does not count.
    LeaseReleased,
}

/// How many updates the queue holds, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Updates that wait.
    pub queued: u64,
    /// Updates being built.
    pub in_progress: u64,
    /// Updates that ran out of attempts and whose project was not triggered since.
    pub dead_letters: u64,
}

/// The counts of removed records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many records of ended updates.
    pub updates: u64,
    /// How many idempotency keys.
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

    /// Returns whether an update has the token of this claim: the claim holds it, or has ended it.
    #[must_use]
    pub fn is_of(&self, update: &Update) -> bool {
        self.update.token.is_some() && update.token == self.update.token
    }
}

/// An amount of tokens of a language model, and of money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// Tokens; as a limit, 0 means any number.
    pub tokens: u64,
    /// Money in millionths of the configured currency; as a limit, 0 means any amount.
    pub cost: u64,
}

// === impl Spending ===

impl Spending {
    /// Returns how much of `requested` may be spent when `spent` was spent already; `None` if the
    /// limit is reached.
    pub(super) fn granted(requested: Self, limit: Self, spent: Self) -> Option<Self> {
        let granted = |requested: u64, limit: u64, spent: u64| match limit {
            0 => Some(requested),
            limit => match (limit.saturating_sub(spent), requested) {
                (0, _) => None,
                (left, 0) => Some(left),
                (left, requested) => Some(requested.min(left)),
            },
        };
        Some(Self {
            tokens: granted(requested.tokens, limit.tokens, spent.tokens)?,
            cost: granted(requested.cost, limit.cost, spent.cost)?,
        })
    }
}
