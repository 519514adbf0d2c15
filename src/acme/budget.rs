//! The limits of an authority: how many new orders may begin, and whether it can be used now.
//!
//! Orders that began before a restart count too, so a process that is started again and again does
//! not exceed a limit. A renewal that names the certificate that it replaces counts for no limit
//! (RFC 9773 §5; rate limits of Let's Encrypt).

use std::collections::VecDeque;
use std::time::Duration;

/// The budget of one authority.
#[derive(Debug)]
pub(super) struct Budget {
    max: usize,
    window: u64,
    /// When the orders began that still count, the oldest first.
    taken: VecDeque<u64>,
    /// Until when it is not used.
    paused_until: u64,
    /// How many failures in a row the authority caused.
    failures: u32,
    /// How many names in a row the authority rejected with 'too many requests'.
    limited: u32,
}

/// After the authority has rejected this many names in a row with 'too many requests', the limit
/// is that of the account.
const LIMITED_MAX: u32 = 3;
/// The longest pause after failures of an authority, unless it asks for a longer one.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

// === impl Budget ===

impl Budget {
    pub(super) fn new(max: u32, window: Duration, taken: Vec<u64>) -> Self {
        Self {
            max: usize::try_from(max).unwrap_or(usize::MAX),
            window: window.as_secs(),
            taken: taken.into(),
            paused_until: 0,
            failures: 0,
            limited: 0,
        }
    }

    /// Returns whether the authority can be used now.
    pub(super) fn is_usable(&self, now: u64) -> bool {
        now >= self.paused_until
    }

    /// Returns until when the authority is not used.
    pub(super) fn paused_until(&self) -> u64 {
        self.paused_until
    }

    /// Returns how many new orders may begin now.
    pub(super) fn left(&mut self, now: u64) -> usize {
        while self.taken.front().is_some_and(|at| at + self.window <= now) {
            self.taken.pop_front();
        }
        self.max.saturating_sub(self.taken.len())
    }

    /// Counts a new order, if one may begin.
    pub(super) fn take(&mut self, now: u64) -> bool {
        let may = self.left(now) > 0;
        if may {
            self.taken.push_back(now);
        }
        may
    }

    /// Replaces when the orders began that count.
    pub(super) fn replace(&mut self, taken: Vec<u64>) {
        self.taken = taken.into();
    }

    /// Returns when the orders began that count.
    pub(super) fn taken(&self) -> Vec<u64> {
        self.taken.iter().copied().collect()
    }

    /// Notes that the authority has worked.
    pub(super) fn works(&mut self) {
        (self.failures, self.limited) = (0, 0);
    }

    /// Notes a failure of the authority; it is not used for `wait`, or for as long as it asks.
    pub(super) fn fails(&mut self, now: u64, wait: Duration, asked: Option<Duration>) {
        self.failures = self.failures.saturating_add(1);
        let wait = asked.unwrap_or(wait.min(PAUSE_MAX)).as_secs().max(1);
        self.paused_until = self.paused_until.max(now.saturating_add(wait));
    }

    /// Returns how many failures in a row the authority caused.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// Notes that the authority has refused one name because of a limit. If it refuses several in a
    /// row, the limit is that of the account, and the authority is not used for that time.
    pub(super) fn limits(&mut self, now: u64, asked: Option<Duration>) {
        self.limited = self.limited.saturating_add(1);
        if self.limited >= LIMITED_MAX {
            let wait = asked.unwrap_or(PAUSE_MAX).as_secs().max(1);
            self.paused_until = self.paused_until.max(now.saturating_add(wait));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn new_orders_stay_within_the_budget_also_after_a_restart() {
        let mut budget = Budget::new(3, HOUR, Vec::new());
        assert_eq!(
            [10, 20, 30, 40].map(|now| budget.take(now)),
            [true, true, true, false]
        );
        let mut again = Budget::new(3, HOUR, budget.taken());
        assert!(!again.take(50) && !again.take(3609));
        assert!(again.take(3610) && !again.take(3611));
        assert_eq!(again.left(3620), 1);
    }

    #[test]
    fn an_authority_that_fails_rests_and_is_used_again() {
        let mut budget = Budget::new(3, HOUR, Vec::new());
        budget.fails(100, Duration::from_secs(60), None);
        assert!(!budget.is_usable(159) && budget.is_usable(160));
        // It is down for a week, and is asked once an hour.
        budget.fails(160, Duration::from_secs(86_400), None);
        assert!(!budget.is_usable(3759) && budget.is_usable(3760));
        // It says when.
        budget.fails(4000, Duration::from_secs(60), Some(2 * HOUR));
        assert!(!budget.is_usable(11_199) && budget.is_usable(11_200));
        assert_eq!(budget.failures(), 3);
        budget.works();
        assert_eq!(budget.failures(), 0);
    }

    #[test]
    fn a_limit_of_one_name_does_not_stop_the_others() {
        let mut budget = Budget::new(300, HOUR, Vec::new());
        budget.limits(100, Some(HOUR));
        budget.limits(101, Some(HOUR));
        assert!(budget.is_usable(102));
        budget.works();
        budget.limits(103, Some(HOUR));
        budget.limits(104, Some(HOUR));
        assert!(budget.is_usable(105));
        budget.limits(105, Some(HOUR));
        assert!(!budget.is_usable(3704) && budget.is_usable(3705));
    }
}
