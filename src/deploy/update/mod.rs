//! One update: what was asked for, how far it is, and the moves between its states.
//!
//! ```text
//!              claim                    end
//!   queued ──────────▶ in_progress ──────────▶ success | failure
//!     ▲ │                 │   │
//!     │ │     retry,      │   │ a newer update is queued
//!     │ └───◀─ give back ─┘   ▼
//!     │                    follows ──────────▶ what its newer ends as
//! ```
//!
//! **Rules** (tests name them):
//!
//! * U1: an update moves only along the arrows; any other move is an [`InvalidMove`].
//! * U2: `success` and `failure` are final. Trying a failed update again is a new update.
//! * U3: the attempt is counted when it begins, so a build that kills its worker counts.
//! * U4: an attempt that ended for the world's reasons goes back to `queued`; when a newer
//!   update of the project is queued by then, the older one *follows* it, because the
//!   newer build reads the branch later and so covers both.
//! * U5: what a caller reads is one of four words. A follower shows its newer's.
//! * U6: the one thing that is added to a success later is when it became visible: a gateway
//!   may see the release before its worker has recorded the end, or long after.
//!
//! The same value and the same moves are used by every backend of the queue; a backend
//! only finds and keeps updates.

use crate::release::ReleaseId;
use crate::site::ProjectId;

use super::queue::Trigger;
use super::record::Commit;
use super::{StatusId, Timestamp};

/// The longest summary kept, in bytes.
const SUMMARY_BYTES_MAX: usize = 2000;

/// Who runs builds: unique per process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerId(Box<str>);

/// Which way an update was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A call of the admin API.
    Api,
    /// The operator's command line, or a requeued update.
    Internal,
}

/// One queued deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// Its public handle.
    pub id: StatusId,
    /// The project to build.
    pub project: ProjectId,
    /// Who may read it.
    pub owner: Box<str>,
    /// The site's subdomain when it was asked for.
    pub subdomain: Box<str>,
    /// Which way it was asked for.
    pub source: Source,
    /// Its number among the project's builds: what it publishes replaces anything lower.
    pub generation: u64,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// How many attempts have begun.
    pub attempts: u32,
    /// How far it is.
    pub state: State,
    /// The last thing worth knowing about it, in a sentence.
    pub summary: Box<str>,
    /// What it builds, once that is known.
    pub commit: Option<Commit>,
}

/// How far an update is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for a worker, not before `ready_at`.
    Queued {
        /// When the next attempt may begin.
        ready_at: Timestamp,
    },
    /// A later update of the same project will answer for it.
    Superseded {
        /// That update: itself queued or in progress.
        by: StatusId,
    },
    /// A worker builds it.
    InProgress(Holder),
    /// A release at or above its generation was promoted.
    Success {
        /// When it ended.
        ended_at: Timestamp,
        /// What was published.
        release: ReleaseId,
        /// The claim that published it.
        epoch: u64,
        /// When this node served it; a worker without listeners does not know it.
        visible_at: Option<Timestamp>,
    },
    /// It ended without a release; what was served before still is.
    Failure {
        /// When it ended.
        ended_at: Timestamp,
        /// Whether it ran out of attempts and nobody has looked at it yet.
        dead_letter: bool,
    },
}

/// Who builds an update, and until when nobody else may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The worker.
    pub worker: WorkerId,
    /// The number of this claim among the project's claims: the fence.
    pub epoch: u64,
    /// When others may take over.
    pub lease_until: Timestamp,
}

/// What callers are told about an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// No attempt runs.
    Queued,
    /// An attempt runs.
    InProgress,
    /// Published, final.
    Success,
    /// Not published, final.
    Failure,
}

/// A move that no rule allows: ours to fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("update {id} cannot go from {from} to {to}")]
pub struct InvalidMove {
    /// The update.
    pub id: StatusId,
    /// Where it is.
    pub from: &'static str,
    /// Where it should have gone.
    pub to: &'static str,
}

// === impl WorkerId ===

impl WorkerId {
    /// Names a worker.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

// === impl Source ===

impl Source {
    /// Returns the word that records use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Internal => "internal",
        }
    }

    /// Reads the word that records use.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "api" => Some(Self::Api),
            "internal" => Some(Self::Internal),
            _ => None,
        }
    }
}

// === impl Status ===

impl Status {
    /// Returns the word that callers read.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Success => "success",
            Self::Failure => "failure",
        }
    }

    /// Returns whether nothing will happen to the update any more.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Success | Self::Failure)
    }
}

// === impl State ===

impl State {
    /// Returns the name of the state, as the queue's table spells it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Queued { .. } => "queued",
            Self::Superseded { .. } => "superseded",
            Self::InProgress(_) => "in_progress",
            Self::Success { .. } => "success",
            Self::Failure { .. } => "failure",
        }
    }
}

// === impl Update ===

impl Update {
    /// Makes an update that waits for its first attempt.
    #[must_use]
    pub fn queued(id: StatusId, trigger: &Trigger, generation: u64, now: Timestamp) -> Self {
        Self {
            id,
            project: trigger.project.clone(),
            owner: trigger.owner.clone(),
            subdomain: trigger.subdomain.clone(),
            source: trigger.source,
            generation,
            created_at: now,
            attempts: 0,
            state: State::Queued { ready_at: now },
            summary: "waiting for a worker".into(),
            commit: None,
        }
    }

    /// Returns what callers are told, unless the update follows another (rule U5).
    #[must_use]
    pub fn status(&self) -> Status {
        match self.state {
            State::Queued { .. } | State::Superseded { .. } => Status::Queued,
            State::InProgress(_) => Status::InProgress,
            State::Success { .. } => Status::Success,
            State::Failure { .. } => Status::Failure,
        }
    }

    /// Returns when it ended, if it has.
    #[must_use]
    pub fn ended_at(&self) -> Option<Timestamp> {
        match self.state {
            State::Success { ended_at, .. } | State::Failure { ended_at, .. } => Some(ended_at),
            _ => None,
        }
    }

    /// Returns whether the claim with this epoch still holds it.
    #[must_use]
    pub fn is_held_by(&self, epoch: u64) -> bool {
        matches!(&self.state, State::InProgress(holder) if holder.epoch == epoch)
    }

    /// Gives it to a worker and counts the attempt (rule U3).
    ///
    /// Taking over from a worker whose lease has passed is the same move.
    ///
    /// # Errors
    ///
    /// [`InvalidMove`] when it has ended or follows another.
    pub fn claim(&mut self, holder: Holder) -> Result<(), InvalidMove> {
        match self.state {
            State::Queued { .. } | State::InProgress(_) => {
                self.attempts += 1;
                self.state = State::InProgress(holder);
                Ok(())
            }
            _ => Err(self.cannot_become("in_progress")),
        }
    }

    /// Moves the end of the lease.
    ///
    /// # Errors
    ///
    /// [`InvalidMove`] when nobody holds it.
    pub fn renew(&mut self, until: Timestamp) -> Result<(), InvalidMove> {
        match &mut self.state {
            State::InProgress(holder) => {
                holder.lease_until = until;
                Ok(())
            }
            _ => Err(self.cannot_become("in_progress")),
        }
    }

    /// Puts it back into the queue after an attempt.
    ///
    /// # Errors
    ///
    /// [`InvalidMove`] when no attempt was running.
    pub fn reschedule(&mut self, ready_at: Timestamp, summary: &str) -> Result<(), InvalidMove> {
        match self.state {
            State::InProgress(_) => {
                self.state = State::Queued { ready_at };
                self.summarise(summary);
                Ok(())
            }
            _ => Err(self.cannot_become("queued")),
        }
    }

    /// Lets a later update of the project answer for it, after an attempt (rule U4).
    ///
    /// # Errors
    ///
    /// [`InvalidMove`] when it has ended, or waits for its first attempt.
    pub fn mark_superseded(&mut self, by: &StatusId) -> Result<(), InvalidMove> {
        match self.state {
            State::InProgress(_) | State::Superseded { .. } => {
                self.state = State::Superseded { by: by.clone() };
                self.summarise(&format!("superseded by {by}"));
                Ok(())
            }
            _ => Err(self.cannot_become("superseded")),
        }
    }

    /// Ends a follower as its newer ended (rule U4).
    ///
    /// # Errors
    ///
    /// [`InvalidMove`] when it had ended, or its newer has not.
    pub fn end_as(&mut self, newer: &Self) -> Result<(), InvalidMove> {
        let mut state = newer.state.clone();
        if let State::Failure { dead_letter, .. } = &mut state {
            // One entry in the list of the dead is enough.
            *dead_letter = false;
        }
        self.commit.clone_from(&newer.commit);
        self.end(state, &newer.summary)
    }

    /// Adds when a success became visible, unless that is known (rule U6).
    pub fn mark_visible(&mut self, at: Timestamp) {
        if let State::Success { visible_at, .. } = &mut self.state {
            visible_at.get_or_insert(at);
        }
    }

    /// Brings a retry forward: who triggers again does not want to wait for it.
    pub fn expedite(&mut self, now: Timestamp) {
        if let State::Queued { ready_at } = &mut self.state {
            *ready_at = now.min(*ready_at);
        }
    }

    /// Ends it, for good (rule U2).
    ///
    /// # Errors
    ///
    /// [`InvalidMove`] when it has ended before, when the state is not a final one, or when
    /// it would succeed without an attempt.
    pub fn end(&mut self, state: State, summary: &str) -> Result<(), InvalidMove> {
        let allowed = matches!(
            (&self.state, &state),
            (
                State::InProgress(_) | State::Superseded { .. },
                State::Success { .. } | State::Failure { .. },
            ) | (State::Queued { .. }, State::Failure { .. })
        );
        if !allowed {
            return Err(self.cannot_become(state.name()));
        }
        self.state = state;
        self.summarise(summary);
        Ok(())
    }

    fn summarise(&mut self, summary: &str) {
        self.summary = cut(summary, SUMMARY_BYTES_MAX).into();
    }

    fn cannot_become(&self, to: &'static str) -> InvalidMove {
        InvalidMove {
            id: self.id.clone(),
            from: self.state.name(),
            to,
        }
    }
}

/// Cuts a text after at most `bytes_max` bytes, between two characters.
#[must_use]
pub fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests;
