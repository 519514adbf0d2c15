//! The limits of an account at an authority: how many new orders may begin, and whether the
//! authority can be used now.
//!
//! Orders that began before a restart count too, so a process that is started again and again does
//! not exceed a limit. A renewal that names the certificate that it replaces counts for no limit
//! (RFC 9773 §5; rate limits of Let's Encrypt).

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::queue::Lane;
use super::schedule::is_of_wrong_clock;

/// The budget of one authority.
#[derive(Debug)]
pub(super) struct Budget {
    max: usize,
    window: u64,
    /// When the orders began that still count, the oldest first.
    taken: VecDeque<u64>,
    /// Until when it is not used, after failures.
    paused_until: u64,
    /// Until when no new orders begin, after refusals because of a limit.
    limited_until: u64,
    /// How many failures in a row the authority caused.
    failures: u32,
    /// The registrable domains of the names that it refused in a row because of a limit, each with
    /// the owner of the last one; an empty text for the operator.
    limited: HashMap<Box<str>, Box<str>>,
    /// The owners for which no new orders begin, and until when.
    limited_owners: HashMap<Box<str>, u64>,
}

/// After refusals for so many registrable domains in a row, the limit is that of the account: most
/// limits are those of one domain, and one owner may have many names. If all the domains are those
/// of one owner, only this owner waits: it may have used up the limits of each of them elsewhere.
const LIMITED_MAX: usize = 3;
/// The longest pause, whatever the authority asks for: its answer may be wrong.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

// === impl Budget ===

impl Budget {
    pub(super) fn new(max: u32, window: Duration, taken: Vec<u64>) -> Self {
        Self {
            max: usize::try_from(max).unwrap_or(usize::MAX),
            window: window.as_secs(),
            taken: taken.into(),
            paused_until: 0,
            limited_until: 0,
            failures: 0,
            limited: HashMap::new(),
            limited_owners: HashMap::new(),
        }
    }

    /// Returns whether the authority can be used now. What does not count for its limits goes on
    /// when a limit is reached.
    pub(super) fn is_usable(&self, now: u64, lane: Lane) -> bool {
        let is_limited = lane == Lane::Counted && is_waiting(self.limited_until, now);
        !is_waiting(self.paused_until, now) && !is_limited
    }

    /// Returns whether the authority can be used now for a name of an owner; `None` is the operator.
    /// New orders of one owner may wait while those of others go on.
    pub(super) fn is_usable_for(&self, now: u64, lane: Lane, owner: Option<&str>) -> bool {
        let until = owner.and_then(|owner| self.limited_owners.get(owner));
        let is_limited = until.is_some_and(|until| is_waiting(*until, now));
        self.is_usable(now, lane) && !(lane == Lane::Counted && is_limited)
    }

    /// Returns until when the authority is not used, after failures.
    pub(super) fn paused_until(&self) -> u64 {
        self.paused_until
    }

    /// Returns how many new orders may begin now.
    pub(super) fn left(&mut self, now: u64) -> usize {
        self.taken
            .retain(|at| !is_of_wrong_clock(*at, now) && at.saturating_add(self.window) > now);
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

    /// Notes that the authority has worked. An order that does not count shows nothing about the
    /// limits.
    pub(super) fn works(&mut self, lane: Lane) {
        self.failures = 0;
        if lane == Lane::Counted {
            self.limited.clear();
        }
    }

    /// Notes a failure of the authority; it is not used for `wait`, or for as long as it asks.
    pub(super) fn fails(&mut self, now: u64, wait: Duration, asked: Option<Duration>) {
        self.failures = self.failures.saturating_add(1);
        let end = end_of_pause(now, asked.unwrap_or(wait));
        self.paused_until = later(self.paused_until, end, now);
    }

    /// Returns how many failures in a row the authority caused.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// Notes that the authority has refused a name of an owner because of a limit. If it refuses
    /// several registrable domains in a row, no new orders begin for that time: of this owner, or of
    /// all if it has refused several owners. Names of the operator have no owner.
    pub(super) fn limits(
        &mut self,
        now: u64,
        owner: Option<&str>,
        domain: &str,
        asked: Option<Duration>,
    ) {
        let is_operator = owner.is_none();
        let owner = owner.unwrap_or_default();
        let is_new = self.limited.values().all(|known| **known != *owner);
        if self.limited.len() < LIMITED_MAX || is_new {
            self.limited.insert(domain.into(), owner.into());
        }
        if self.limited.len() < LIMITED_MAX {
            return;
        }
        let end = end_of_pause(now, asked.unwrap_or(PAUSE_MAX));
        let has_others = self.limited.values().any(|known| **known != *owner);
        if is_operator || has_others {
            self.limited_until = later(self.limited_until, end, now);
        } else {
            self.limited_owners
                .retain(|_, until| is_waiting(*until, now));
            let known = self.limited_owners.entry(owner.into()).or_default();
            *known = later(*known, end, now);
        }
    }
}

fn end_of_pause(now: u64, wait: Duration) -> u64 {
    now.saturating_add(wait.min(PAUSE_MAX).as_secs().max(1))
}

/// Returns whether a pause has not ended. One that is longer than any was noted while the clock was
/// wrong.
fn is_waiting(until: u64, now: u64) -> bool {
    now < until && until <= end_of_pause(now, PAUSE_MAX)
}

/// Returns the later of the ends of two pauses.
fn later(known: u64, end: u64, now: u64) -> u64 {
    match is_waiting(known, now) {
        true => known.max(end),
        false => end,
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
        let is_usable = |budget: &Budget, now| {
            let lanes = [Lane::Counted, Lane::Uncounted];
            let [new, exempt] = lanes.map(|lane| budget.is_usable(now, lane));
            assert_eq!(new, exempt);
            new
        };
        budget.fails(100, Duration::from_secs(60), None);
        assert!(!is_usable(&budget, 159) && is_usable(&budget, 160));
        // It is down for a week, and is asked once an hour.
        budget.fails(160, Duration::from_secs(86_400), None);
        assert!(!is_usable(&budget, 3759) && is_usable(&budget, 3760));
        // It says when, but not later than in an hour.
        budget.fails(4000, Duration::from_secs(60), Some(HOUR / 2));
        assert!(!is_usable(&budget, 5799) && is_usable(&budget, 5800));
        budget.fails(6000, Duration::from_secs(60), Some(168 * HOUR));
        assert!(!is_usable(&budget, 9599) && is_usable(&budget, 9600));
        assert_eq!(budget.failures(), 4);
        budget.works(Lane::Uncounted);
        assert_eq!(budget.failures(), 0);
    }

    #[test]
    fn a_clock_that_was_a_year_ahead_leaves_no_pause_and_no_order() {
        let year = 365 * 86_400;
        let mut budget = Budget::new(2, HOUR, Vec::new());
        budget.fails(year, HOUR, None);
        for domain in ["acme.test", "second.test", "third.test"] {
            budget.limits(year, None, domain, Some(HOUR));
        }
        assert!(budget.take(year) && budget.take(year) && !budget.take(year));
        assert!(!budget.is_usable(year, Lane::Uncounted));
        assert!(budget.is_usable(100, Lane::Counted));
        assert_eq!(budget.left(100), 2);
        // A pause that begins now counts.
        budget.fails(100, HOUR, None);
        assert!(!budget.is_usable(101, Lane::Counted));
        assert!(budget.is_usable(3700, Lane::Uncounted));
        // So do orders before a small correction of the clock.
        assert!(budget.take(200) && budget.take(200));
        assert_eq!(budget.left(199), 0);
    }

    #[test]
    fn a_limit_of_one_domain_does_not_stop_the_others() {
        let mut budget = Budget::new(300, HOUR, Vec::new());
        for now in 0..100 {
            budget.limits(now, None, "acme.test", Some(HOUR));
        }
        budget.limits(100, None, "second.test", Some(HOUR));
        assert!(budget.is_usable(100, Lane::Counted));
        budget.works(Lane::Counted);
        budget.limits(101, None, "third.test", Some(HOUR));
        assert!(budget.is_usable(101, Lane::Counted));
    }

    #[test]
    fn a_limit_of_the_account_stops_new_orders_only_and_for_an_hour_at_most() {
        let mut budget = Budget::new(300, HOUR, Vec::new());
        for domain in ["acme.test", "second.test"] {
            budget.limits(100, None, domain, Some(168 * HOUR));
        }
        // A renewal that does not count shows nothing about the limit.
        budget.works(Lane::Uncounted);
        assert!(budget.is_usable(100, Lane::Counted));
        budget.limits(100, None, "third.test", Some(168 * HOUR));
        assert!(!budget.is_usable(3699, Lane::Counted) && budget.is_usable(3700, Lane::Counted));
        assert!(budget.is_usable(101, Lane::Uncounted));
    }

    #[test]
    fn the_limits_of_the_domains_of_one_owner_stop_no_other_owner() {
        let mut budget = Budget::new(300, HOUR, Vec::new());
        for domain in ["a.test", "b.test", "c.test", "d.test"] {
            budget.limits(100, Some("many"), domain, Some(HOUR));
        }
        assert!(budget.is_usable(100, Lane::Counted));
        let may_order = |owner, now| budget.is_usable_for(now, Lane::Counted, Some(owner));
        assert!(!may_order("many", 3699) && may_order("many", 3700));
        assert!(may_order("other", 100));
        assert!(budget.is_usable_for(100, Lane::Uncounted, Some("many")));
        // Two owners with the same domain are refused for one domain.
        let mut shared = Budget::new(300, HOUR, Vec::new());
        for (owner, domain) in [("one", "a.test"), ("two", "a.test"), ("two", "b.test")] {
            shared.limits(100, Some(owner), domain, Some(HOUR));
        }
        assert!(shared.is_usable_for(100, Lane::Counted, Some("two")));
        // The authority refuses a second owner too, so the account has reached its limit.
        budget.limits(100, Some("other"), "other.test", Some(HOUR));
        assert!(!budget.is_usable(3699, Lane::Counted) && budget.is_usable(3700, Lane::Counted));
    }
}
