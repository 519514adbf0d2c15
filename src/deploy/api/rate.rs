//! Rate limit of triggers: each owner may make a number of calls in any window of time.
//!
//! The window slides: the times of the last calls are stored, so no ten seconds contain more
//! calls than allowed, wherever they begin. The times are monotonic, so setting a clock changes
//! nothing.
//!
//! Source: draft-ietf-httpapi-ratelimit-headers (the fields `RateLimit-Policy` and
//! `RateLimit`).

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// From this number of owners on, owners without a call in the last window are removed.
const OWNERS_MAX: usize = 1024;

/// How often an owner may trigger updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many calls.
    pub calls: usize,
    /// In a window of this length.
    pub window: Duration,
}

/// Counts calls by owner.
#[derive(Debug)]
pub(super) struct Limiter {
    rate: Rate,
    calls: Mutex<HashMap<Box<str>, VecDeque<Instant>>>,
}

/// How many calls an owner has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left {
    /// Whether this call exceeds the limit.
    pub(super) is_over: bool,
    /// How many more calls are allowed now.
    pub(super) calls: usize,
    /// After how long another call is allowed.
    pub(super) next: Duration,
}

impl Default for Rate {
    /// Ten calls in ten seconds.
    fn default() -> Self {
        Self {
            calls: 10,
            window: Duration::from_secs(10),
        }
    }
}

// === impl Limiter ===

impl Limiter {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            rate,
            calls: Mutex::default(),
        }
    }

    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// Counts a call. A call that exceeds the limit is not counted.
    pub(super) fn call(&self, owner: &str, now: Instant) -> Left {
        let Rate { calls, window } = self.rate;
        let is_old = |call: &Instant| now.saturating_duration_since(*call) >= window;
        let mut owners = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.len() > OWNERS_MAX {
            owners.retain(|_, made| made.back().is_some_and(|last| !is_old(last)));
        }
        let made = owners.entry(owner.into()).or_default();
        while made.front().is_some_and(is_old) {
            made.pop_front();
        }
        let is_over = made.len() >= calls;
        if !is_over {
            made.push_back(now);
        }
        let next = made.front().map_or(Duration::ZERO, |first| {
            window.saturating_sub(now.saturating_duration_since(*first))
        });
        Left {
            is_over,
            calls: calls.saturating_sub(made.len()),
            next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn at_most_ten_calls_in_any_ten_seconds() {
        let limiter = Limiter::new(Rate::default());
        let start = Instant::now();
        let mut taken = Vec::new();
        for tenth in 0..600 {
            let now = start + SECOND * tenth / 10;
            if !limiter.call("acme", now).is_over {
                taken.push(now);
            }
        }
        for window in taken.windows(11) {
            assert!(window[10] - window[0] >= 10 * SECOND);
        }
        assert_eq!(taken.len(), 60);
    }

    #[test]
    fn a_rejected_call_says_when_to_retry() {
        let limiter = Limiter::new(Rate::default());
        let start = Instant::now();
        for left in (0..10).rev() {
            assert_eq!(limiter.call("acme", start).calls, left);
        }
        let left = limiter.call("acme", start + 3 * SECOND);
        assert_eq!((left.is_over, left.next), (true, 7 * SECOND));
        assert!(
            !limiter.call("globex", start).is_over,
            "owners do not share"
        );
        assert!(!limiter.call("acme", start + 10 * SECOND).is_over);
    }
}
