//! How long the queue waits and how often it tries, and what an attempt's end means.
//!
//! The decisions every backend shares; none of them looks at where updates are kept.

use std::time::Duration;

use super::super::update::{InvalidMove, State, Update, cut};
use super::super::{StatusId, Timestamp};
use super::{LOG_LINE_BYTES_MAX, Outcome};
use crate::digest::Digest;
use crate::store::Fence;

/// How long the queue waits, tries and keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How long a worker may be silent before another takes over.
    pub lease: Duration,
    /// How often an update is tried.
    pub attempts_max: u32,
    /// The wait after the first attempt; each next one is four times as long.
    pub retry_delay: Duration,
    /// The longest wait between two attempts.
    pub retry_delay_max: Duration,
    /// How many updates may wait; more are refused.
    pub waiting_max: u64,
    /// How long the records of ended updates are kept.
    pub retention: Duration,
    /// How long an `Idempotency-Key` is remembered.
    pub idempotency: Duration,
}

// === impl Policy ===

impl Default for Policy {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            attempts_max: 5,
            retry_delay: Duration::from_secs(5),
            retry_delay_max: Duration::from_secs(15 * 60),
            waiting_max: 100_000,
            retention: Duration::from_secs(30 * 24 * 60 * 60),
            idempotency: Duration::from_secs(24 * 60 * 60),
        }
    }
}

impl Policy {
    /// Returns how long to wait after this many attempts of an update.
    ///
    /// A fifth more or less keeps updates that failed together from coming back together.
    /// It is taken from the id, so that it needs no randomness and repeats.
    #[must_use]
    pub fn retry_delay(&self, id: &StatusId, attempts: u32) -> Duration {
        let factor = 4u32.saturating_pow(attempts.saturating_sub(1));
        let delay = self
            .retry_delay
            .saturating_mul(factor)
            .min(self.retry_delay_max);
        let digest = Digest::of(format!("{id}/{attempts}").as_bytes());
        let percent = 80 + u32::from(digest.as_bytes()[0]) * 40 / 255;
        delay * percent / 100
    }
}

/// What a gateway serves of a project, as far as the queue was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Served {
    /// The place of its promotion among the project's.
    pub(super) fence: Fence,
    /// Since when.
    pub(super) since: Timestamp,
}

// === impl Served ===

impl Served {
    /// What is served once this fence was seen.
    pub(super) fn advance(before: Option<Self>, fence: Fence, now: Timestamp) -> Self {
        match before {
            // Late news.
            Some(before) if before.fence >= fence => before,
            // The second promotion of one claim: the update has been visible since its first.
            // What is published by hand has no claim, and epoch 0.
            Some(before) if fence.epoch > 0 && before.fence.epoch == fence.epoch => Self {
                fence,
                since: before.since,
            },
            _ => Self { fence, since: now },
        }
    }

    /// Tells a success that it is visible, if what is served is its release or a later one.
    pub(super) fn mark_visible(&self, update: &mut Update) {
        let State::Success { epoch, .. } = update.state else {
            return;
        };
        if self.fence.generation >= update.generation || self.fence.epoch >= epoch {
            update.mark_visible(self.since);
        }
    }
}

/// What becomes of an update whose attempt ended; `waiting` is the project's queued one.
pub(super) fn finish_attempt(
    update: &mut Update,
    outcome: &Outcome,
    summary: &str,
    waiting: Option<&StatusId>,
    policy: &Policy,
    now: Timestamp,
) -> Result<(), InvalidMove> {
    if let (Outcome::Retry | Outcome::LeaseReleased, Some(newer)) = (outcome, waiting) {
        return update.mark_superseded(newer);
    }
    let epoch = match &update.state {
        State::InProgress(holder) => holder.epoch,
        _ => 0,
    };
    match outcome {
        Outcome::Success {
            release,
            visible_at,
        } => update.end(
            State::Success {
                ended_at: now,
                release: *release,
                epoch,
                visible_at: *visible_at,
            },
            summary,
        ),
        Outcome::Failure => update.end(
            State::Failure {
                ended_at: now,
                dead_letter: false,
            },
            summary,
        ),
        Outcome::Retry if update.attempts >= policy.attempts_max => update.end(
            State::Failure {
                ended_at: now,
                dead_letter: true,
            },
            &format!("gave up after {} attempts: {summary}", update.attempts),
        ),
        Outcome::Retry => {
            let ready_at = now.after(policy.retry_delay(&update.id, update.attempts));
            let summary = format!(
                "attempt {} of {}: {summary}",
                update.attempts, policy.attempts_max
            );
            update.reschedule(ready_at, &summary)
        }
        Outcome::LeaseReleased => {
            update.reschedule(now, summary)?;
            update.attempts = update.attempts.saturating_sub(1);
            Ok(())
        }
    }
}

/// What becomes of an update whose worker died at its last attempt.
pub(super) fn give_up(update: &mut Update, now: Timestamp) -> Result<(), InvalidMove> {
    let state = State::Failure {
        ended_at: now,
        dead_letter: true,
    };
    let summary = format!(
        "gave up after {} attempts: the worker stopped answering each time",
        update.attempts
    );
    update.end(state, &summary)
}

/// A line of the log as it is kept.
pub(super) fn log_line(now: Timestamp, text: &str) -> Box<str> {
    let text = cut(text, LOG_LINE_BYTES_MAX);
    format!("{now} {text}").into()
}
