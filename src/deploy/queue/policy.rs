//! Delays and limits of the queue, and the result of an attempt.
//!
//! All back ends share these decisions. Nothing here depends on how updates are stored.

use std::time::Duration;

use super::super::update::{InvalidMove, State, Update, cut};
use super::super::{StatusId, Timestamp};
use super::{LOG_LINE_BYTES_MAX, Outcome, QueueError};
use crate::digest::Digest;
use crate::store::Fence;

/// How many attempts an update has if one ran out of time or was killed.
const ATTEMPTS_MAX_AFTER_KILL: u32 = 2;

/// Delays and limits of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How long a lease lasts after a claim or a heartbeat.
    pub lease: Duration,
    /// How many attempts an update has.
    pub attempts_max: u32,
    /// The delay after the first attempt; each later delay is four times as long.
    pub retry_delay: Duration,
    /// The longest delay between two attempts.
    pub retry_delay_max: Duration,
    /// How many updates may wait; further triggers are rejected.
    pub waiting_max: u64,
    /// How long the records of ended updates are kept.
    pub retention: Duration,
    /// How many of the newest ended updates of a project keep their log. A log may be long, and a
    /// project may have many updates: without this limit one owner could fill the disk of the queue.
    pub logs_max: u32,
    /// How long an `Idempotency-Key` is stored.
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
            logs_max: 30,
            idempotency: Duration::from_secs(24 * 60 * 60),
        }
    }
}

impl Policy {
    /// Returns the latest moment at which a lease may end.
    ///
    /// A lease that ends later was taken with a clock that was ahead. A heartbeat of another
    /// process may be a moment newer than `now`, and clocks are set back by small steps, so twice
    /// the length of a lease is allowed.
    pub(super) fn lease_end_max(&self, now: Timestamp) -> Timestamp {
        now.after(self.lease.saturating_mul(2))
    }

    /// Returns the latest moment at which a retry may be due, in the same sense.
    pub(super) fn retry_at_max(&self, now: Timestamp) -> Timestamp {
        now.after(self.retry_delay_max.saturating_mul(2))
    }

    /// Returns the earliest moment that [`Policy::correct`] compares a time with: no earlier time
    /// is wrong.
    pub(super) fn wrong_from(&self, now: Timestamp) -> Timestamp {
        now.after(self.lease).min(self.retry_at_max(now))
    }

    /// Makes an update due now if its time was set by a clock that was ahead. Returns whether it
    /// was changed.
    pub(super) fn correct(&self, update: &mut Update, now: Timestamp) -> bool {
        match &mut update.state {
            State::InProgress(holder) if holder.lease_until > self.lease_end_max(now) => {
                holder.lease_until = now;
                true
            }
            State::Queued { ready_at } => {
                // An update that was never tried is due from its trigger on.
                let is_ahead = update.attempts == 0 && *ready_at > now.after(self.lease)
                    || *ready_at > self.retry_at_max(now);
                if is_ahead {
                    *ready_at = now;
                }
                is_ahead
            }
            _ => false,
        }
    }

    /// Returns the delay after this many attempts of an update.
    ///
    /// The delay is up to a fifth shorter or longer than planned, so that updates which failed
    /// together are not retried together. The difference is derived from the id: the same
    /// update always waits equally long.
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

/// The promotion of a project that a gateway serves, as last recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Served {
    /// The fence of the promotion.
    pub(super) fence: Fence,
    /// Since when it is served.
    pub(super) since: Timestamp,
}

// === impl Served ===

impl Served {
    /// Returns the served release after a gateway has reported this fence.
    pub(super) fn advance(before: Option<Self>, fence: Fence, now: Timestamp) -> Self {
        match before {
            // An older report that comes late.
            Some(before) if before.fence >= fence => before,
            // The second promotion of one claim: the update is visible since the first one.
            // A release that was published by hand has no claim, and epoch 0.
            Some(before) if fence.epoch > 0 && before.fence.epoch == fence.epoch => Self {
                fence,
                since: before.since,
            },
            _ => Self { fence, since: now },
        }
    }

    /// Marks a successful update as visible when its release or a later one is served.
    pub(super) fn mark_visible(&self, update: &mut Update) {
        let State::Success { epoch, .. } = update.state else {
            return;
        };
        if self.fence.generation >= update.generation || self.fence.epoch >= epoch {
            update.mark_visible(self.since);
        }
    }
}

/// Moves an update whose attempt has ended to its next state. `waiting` is the project's
/// queued update.
pub(super) fn finish_attempt(
    update: &mut Update,
    outcome: &Outcome,
    summary: &str,
    waiting: Option<&StatusId>,
    policy: &Policy,
    now: Timestamp,
) -> Result<(), InvalidMove> {
    let goes_back = matches!(
        outcome,
        Outcome::Retry | Outcome::RetryOnce | Outcome::LeaseReleased
    );
    if let (true, Some(newer)) = (goes_back, waiting) {
        return update.mark_superseded(newer);
    }
    let attempts_max = match outcome {
        Outcome::RetryOnce => policy.attempts_max.min(ATTEMPTS_MAX_AFTER_KILL),
        _ => policy.attempts_max,
    };
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
        Outcome::Retry | Outcome::RetryOnce if update.attempts >= attempts_max => update.end(
            State::Failure {
                ended_at: now,
                dead_letter: true,
            },
            &format!("gave up after {} attempts: {summary}", update.attempts),
        ),
        Outcome::Retry | Outcome::RetryOnce => {
            let ready_at = now.after(policy.retry_delay(&update.id, update.attempts));
            let summary = format!("attempt {} of {attempts_max}: {summary}", update.attempts);
            update.reschedule(ready_at, &summary)
        }
        Outcome::LeaseReleased => {
            update.reschedule(now, summary)?;
            update.attempts = update.attempts.saturating_sub(1);
            Ok(())
        }
    }
}

/// Returns a token that no other claim has.
pub(super) fn claim_token() -> Result<Box<str>, QueueError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(QueueError::unavailable)?;
    Ok(hex::encode(random).into())
}

/// Ends an update whose worker died in its last attempt.
pub(super) fn end_as_dead_letter(update: &mut Update, now: Timestamp) -> Result<(), InvalidMove> {
    let state = State::Failure {
        ended_at: now,
        dead_letter: true,
    };
    let summary = format!(
        "gave up after {} attempts: the worker stopped responding in the last one",
        update.attempts
    );
    update.end(state, &summary)
}

/// Returns a line of the log as it is stored.
pub(super) fn log_line(now: Timestamp, text: &str) -> Box<str> {
    let text = cut(text, LOG_LINE_BYTES_MAX);
    format!("{now} {text}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(generation: u64, epoch: u64, since: u64) -> Served {
        Served {
            fence: Fence { generation, epoch },
            since: Timestamp::from_millis(since),
        }
    }

    fn advance(before: Served, fence: (u64, u64)) -> Served {
        let (generation, epoch) = fence;
        let now = Timestamp::from_millis(9);
        Served::advance(Some(before), Fence { generation, epoch }, now)
    }

    #[test]
    fn a_report_changes_what_is_served_only_if_it_is_newer() {
        let before = served(2, 3, 1);
        assert_eq!(advance(before, (1, 9)), before);
        assert_eq!(advance(before, (2, 3)), before);
        // The second promotion of a claim: its first one made the update visible.
        assert_eq!(advance(before, (3, 3)), served(3, 3, 1));
        assert_eq!(advance(before, (3, 4)), served(3, 4, 9));
        // Releases that were published by hand have no claim.
        assert_eq!(advance(served(2, 0, 1), (3, 0)), served(3, 0, 9));
    }
}
