//! One update: its trigger, its state, and the moves between states.
//!
//! ```text
//!              claim                    end
//!   queued ──────────▶ in_progress ──────────▶ success | failure
//!     ▲ │                 │   │
//!     │ │  retry, lease   │   │ a newer update is queued
//!     │ └─── released ────┘   ▼
//!     │                  superseded ──────────▶ the same end as the newer update
//! ```
//!
//! **Rules** (tests name them):
//!
//! * U1: an update moves only along the arrows. Any other move is an [`InvalidMove`].
//! * U2: `success` and `failure` are final. Trying a failed update again is a new update.
//! * U3: an attempt is counted when it begins, so a build that kills its worker counts.
//! * U4: an attempt that failed for a reason that may pass goes back to `queued`. If a newer
//!   update of the project is queued by then, the older one is *superseded by* it instead: the
//!   newer build reads the branch later, so it includes what both were triggered for. The same
//!   holds for an update that a database had lost, if another one waits when it is stored again.
//! * U5: callers see one of four statuses. A superseded update shows the status of the newer one.
//! * U6: one value is added to a success later: when it became visible. A gateway may serve the
//!   release before the worker has recorded the end of the update, or much later.
//!
//! All back ends of the queue use this value and these moves.

use crate::release::ReleaseId;
use crate::site::ProjectId;

use super::queue::Trigger;
use super::record::Commit;
use super::{StatusId, Timestamp};

/// The longest summary, in bytes; the rest of a longer one is cut off.
const SUMMARY_BYTES_MAX: usize = 2000;

/// The name of a worker, unique for each process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerId(Box<str>);

/// Where a trigger came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A call of the admin API.
    Api,
    /// The operator's command line, or the requeueing of a dead letter.
    Internal,
}

/// One queued deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The public handle.
    pub id: StatusId,
    /// The project to build.
    pub project: ProjectId,
    /// The owner of the project, who may read the record.
    pub owner: Box<str>,
    /// The site's subdomain at the time of the trigger.
    pub subdomain: Box<str>,
    /// Where the trigger came from.
    pub source: Source,
    /// Its number among the project's updates. Its release replaces releases of lower numbers.
    pub generation: u64,
    /// When it was triggered.
    pub created_at: Timestamp,
    /// How many attempts have begun.
    pub attempts: u32,
    /// The state.
    pub state: State,
    /// One sentence about the state.
    pub summary: Box<str>,
    /// The commit that it builds, once it is known.
    pub commit: Option<Commit>,
    /// The random token of the claim that holds it, or whose end brought it to its state.
    pub token: Option<Box<str>>,
}

/// The state of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for a worker.
    Queued {
        /// When the next attempt may begin.
        ready_at: Timestamp,
    },
    /// A newer update of the same project builds what it was triggered for (rule U4).
    Superseded {
        /// The newer update, which is queued or in progress.
        by: StatusId,
    },
    /// A worker builds it.
    InProgress(Holder),
    /// A release of its generation or a higher one was promoted.
    Success {
        /// When it ended.
        ended_at: Timestamp,
        /// The release.
        release: ReleaseId,
        /// The epoch of the claim that published it.
        epoch: u64,
        /// When a gateway served it, if one has reported that.
        visible_at: Option<Timestamp>,
    },
    /// It ended without a release. The release that was served before is still served.
    Failure {
        /// When it ended.
        ended_at: Timestamp,
        /// Whether it ran out of attempts and the project was not triggered since.
        dead_letter: bool,
    },
}

/// The worker that builds an update, and its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The worker.
    pub worker: WorkerId,
    /// The number of this claim among the project's claims.
    pub epoch: u64,
    /// When the lease ends, and another worker may claim the update.
    pub lease_until: Timestamp,
}

/// The status of an update as callers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It waits for an attempt.
    Queued,
    /// An attempt runs.
    InProgress,
    /// It was published. This is final.
    Success,
    /// It was not published. This is final.
    Failure,
}

/// A move between states that no rule allows. It is an error in this program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("update {id} cannot go from {from} to {to}")]
pub struct InvalidMove {
    /// The update.
    pub id: StatusId,
    /// The state that it is in.
    pub from: &'static str,
    /// The state that it should have moved to.
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
    /// Returns the word for it in records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Internal => "internal",
        }
    }

    /// Reads the word for it in records.
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
    /// Returns the word for it in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Success => "success",
            Self::Failure => "failure",
        }
    }

    /// Returns whether the update has ended.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Success | Self::Failure)
    }
}

// === impl State ===

impl State {
    /// Returns the name of the state in the queue's table.
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
            token: None,
        }
    }

    /// Returns the status for callers, unless the update is superseded (rule U5).
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

    /// Starts an attempt of a worker and counts it (rule U3). No two claims have the same token.
    ///
    /// Taking over from a worker whose lease has ended is the same move.
    ///
    /// # Errors
    ///
    /// [`InvalidMove`] when it has ended or is superseded.
    pub fn claim(&mut self, holder: Holder, token: Box<str>) -> Result<(), InvalidMove> {
        match self.state {
            State::Queued { .. } | State::InProgress(_) => {
                self.attempts += 1;
                self.change(State::InProgress(holder));
                self.token = Some(token);
                Ok(())
            }
            _ => Err(self.cannot_become("in_progress")),
        }
    }

    /// Extends the lease.
    ///
    /// # Errors
    ///
    /// [`InvalidMove`] when it is not in progress.
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
                self.change(State::Queued { ready_at });
                self.summarise(summary);
                Ok(())
            }
            _ => Err(self.cannot_become("queued")),
        }
    }

    /// Marks it as superseded by a newer update of the project (rule U4).
    ///
    /// # Errors
    ///
    /// [`InvalidMove`] when it is queued or has ended.
    pub fn mark_superseded(&mut self, by: &StatusId) -> Result<(), InvalidMove> {
        match self.state {
            State::InProgress(_) | State::Superseded { .. } => {
                self.supersede(by);
                Ok(())
            }
            _ => Err(self.cannot_become("superseded")),
        }
    }

    /// Marks an update that the database has lost, and that is to be stored again, as superseded by
    /// the project's update that waits.
    ///
    /// # Errors
    ///
    /// [`InvalidMove`] when it has had an attempt.
    pub fn restore_superseded(&mut self, by: &StatusId) -> Result<(), InvalidMove> {
        match self.state {
            State::Queued { .. } if self.attempts == 0 => {
                self.supersede(by);
                Ok(())
            }
            _ => Err(self.cannot_become("superseded")),
        }
    }

    fn supersede(&mut self, by: &StatusId) {
        self.change(State::Superseded { by: by.clone() });
        self.summarise(&format!("superseded by {by}"));
    }

    /// Ends a superseded update as the newer one has ended (rule U4).
    ///
    /// # Errors
    ///
    /// [`InvalidMove`] when it has ended before, or the newer one has not.
    pub fn end_as(&mut self, newer: &Self) -> Result<(), InvalidMove> {
        let mut state = newer.state.clone();
        if let State::Failure { dead_letter, .. } = &mut state {
            // The newer one is in the list of dead letters already.
            *dead_letter = false;
        }
        self.commit.clone_from(&newer.commit);
        self.end(state, &newer.summary)
    }

    /// Records when a success became visible, unless that is recorded (rule U6).
    pub fn mark_visible(&mut self, at: Timestamp) {
        if let State::Success { visible_at, .. } = &mut self.state {
            visible_at.get_or_insert(at);
        }
    }

    /// Makes a waiting retry due now, because the project was triggered again.
    pub fn expedite(&mut self, now: Timestamp) {
        if let State::Queued { ready_at } = &mut self.state {
            *ready_at = now.min(*ready_at);
        }
    }

    /// Ends it (rule U2).
    ///
    /// # Errors
    ///
    /// [`InvalidMove`] when it has ended before, when `state` is not a final one, or when it
    /// would succeed without an attempt.
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
        self.change(state);
        self.summarise(summary);
        Ok(())
    }

    fn change(&mut self, state: State) {
        self.state = state;
        self.token = None;
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

/// Returns the longest beginning of a text that has at most `bytes_max` bytes.
#[must_use]
pub fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests;
