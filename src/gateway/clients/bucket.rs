//! A rate with a burst, in one number.
//!
//! The number is the time at which the bucket is full again. Each cost moves this time into the
//! future, by the time that the rate needs to fill the same amount. The bucket is overdrawn while
//! this time is further in the future than the burst. This is the generic cell rate algorithm
//! (ITU-T I.371, annex A) in its form with virtual scheduling.

use std::time::Duration;

use super::DEBT_MAX;

/// A rate and its burst.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// The time in which the rate fills 1, in seconds.
    seconds_each: f64,
    burst: Duration,
}

/// The state of one bucket.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    full_at: Duration,
}

// === impl Rate ===

impl Rate {
    /// Makes a rate; `None` for 0, which means no limit.
    pub(super) fn new(per_second: u64, burst: Duration) -> Option<Self> {
        #[expect(clippy::cast_precision_loss, reason = "a rate is far below 2^52")]
        let seconds_each = 1.0 / per_second as f64;
        (per_second > 0).then_some(Self {
            seconds_each,
            burst,
        })
    }

    /// Returns a multiple of it, with the same burst.
    pub(super) fn times(self, factor: f64) -> Self {
        Self {
            seconds_each: self.seconds_each / factor,
            ..self
        }
    }

    /// Returns it with another burst.
    pub(super) fn with_burst(self, burst: Duration) -> Self {
        Self { burst, ..self }
    }
}

// === impl Bucket ===

impl Bucket {
    /// Returns how long to wait if the bucket is overdrawn.
    pub(super) fn wait(&self, rate: Rate, now: Duration) -> Option<Duration> {
        let ahead = self.full_at.saturating_sub(now);
        (ahead > rate.burst).then(|| ahead - rate.burst)
    }

    /// Takes a cost out of the bucket. A negative cost puts it back.
    pub(super) fn spend(&mut self, rate: Rate, now: Duration, cost: f64) {
        let debt_max = rate.burst + DEBT_MAX;
        let time = (cost.abs() * rate.seconds_each).min(debt_max.as_secs_f64());
        let time = Duration::from_secs_f64(time);
        let full_at = if cost < 0.0 {
            self.full_at.saturating_sub(time)
        } else {
            self.full_at.max(now) + time
        };
        self.full_at = full_at.min(now + debt_max);
    }

    /// Returns whether the bucket is full.
    pub(super) fn is_full(&self, now: Duration) -> bool {
        self.full_at <= now
    }
}
