//! Limit on votes: how often an address votes for a page of a site in a day.
//!
//! An address and a page are known only by a hash with a random seed, in memory, and for a day at
//! most. The table has at most [`ClientLimits::addresses_max`](super::ClientLimits) places.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use foldhash::fast::RandomState;

use super::{Address, Clients, LimitKind};
use crate::site::ProjectId;

/// A day, from the start of the process on.
const DAY: Duration = Duration::from_secs(86_400);

/// The votes of a day.
#[derive(Debug, Default)]
pub(super) struct Votes {
    day: Mutex<Day>,
}

#[derive(Debug, Default)]
struct Day {
    nth: u64,
    counts: HashMap<u64, u32, RandomState>,
}

// === impl Clients ===

impl Clients {
    /// Counts a vote of a client for a page.
    ///
    /// # Errors
    ///
    /// How long the client has to wait; then the vote must not be counted, and the response is 429.
    pub fn vote(&self, client: IpAddr, site: &ProjectId, page: &str) -> Result<(), Duration> {
        let max = self.limits.votes_per_day;
        if max == 0 {
            return Ok(());
        }
        let address = Address::of(client, self.limits.ipv6_prefix);
        let hash = self.hasher.hash_one((address, site.as_str(), page));
        let places = self.limits.addresses_max.max(1);
        let Err(wait) = self.votes.count(hash, max, places, self.began.elapsed()) else {
            return Ok(());
        };
        self.report_exceeded(LimitKind::Votes, address);
        match self.is_enforced(LimitKind::Votes) {
            true => Err(wait),
            false => Ok(()),
        }
    }
}

// === impl Votes ===

impl Votes {
    fn count(&self, hash: u64, max: u32, places: usize, now: Duration) -> Result<(), Duration> {
        // Each step leaves a valid table.
        let mut day = self.day.lock().unwrap_or_else(PoisonError::into_inner);
        let nth = now.as_secs() / DAY.as_secs();
        if day.nth != nth {
            (day.nth, day.counts) = (nth, HashMap::default());
        }
        if day.counts.len() >= places && !day.counts.contains_key(&hash) {
            // The order of a hash table with a random seed: no client can choose the place.
            let forgotten = day.counts.keys().next().copied();
            forgotten.and_then(|forgotten| day.counts.remove(&forgotten));
        }
        let count = day.counts.entry(hash).or_default();
        if *count >= max {
            return Err(DAY.saturating_mul(u32::try_from(nth + 1).unwrap_or(u32::MAX)) - now);
        }
        *count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::clients::ClientLimits;
    use crate::gateway::forward::TrustedPeers;
    use crate::telemetry::Metrics;

    #[test]
    fn an_address_votes_a_few_times_a_day_for_a_page() {
        for (dry_run, accepted) in [(Vec::new(), 5), (vec![LimitKind::Votes], 100)] {
            let metrics = Metrics::new();
            let limits = ClientLimits {
                dry_run,
                ..ClientLimits::default()
            };
            let clients = Clients::new(limits, TrustedPeers::default(), &metrics);
            let site = |name: &str| ProjectId::parse(name).unwrap();
            let votes = |client: &str, site: &ProjectId, page: &str| {
                let client = client.parse().unwrap();
                let votes = (0..100).map(|_| clients.vote(client, site, page));
                votes.filter(Result::is_ok).count()
            };
            let (a, b) = (site("a"), site("b"));
            assert_eq!(votes("2001:db8::1", &a, "guide"), accepted);
            // Other pages, sites and clients have their own votes. A prefix of IPv6 is one client.
            assert_eq!(votes("2001:db8::1", &a, "other"), accepted);
            assert_eq!(votes("2001:db8::1", &b, "guide"), accepted);
            assert_eq!(votes("192.0.2.1", &a, "guide"), accepted);
            let again = if accepted == 100 { 100 } else { 0 };
            assert_eq!(votes("2001:db8::2", &a, "guide"), again);
            let modes = ["enforced", "dry_run"].map(|mode| {
                let labels = ["votes", mode];
                metrics.client_limits.with_label_values(&labels).get()
            });
            assert_eq!(modes.iter().sum::<u64>(), 4 * 95 + 100);
            assert!(modes.contains(&0));
        }
    }

    #[test]
    fn votes_are_forgotten_after_a_day_and_the_table_is_bounded() {
        let votes = Votes::default();
        let count = |hash, now| votes.count(hash, 1, 10, Duration::from_secs(now));
        count(1, 10).unwrap();
        assert_eq!(count(1, 86_390), Err(Duration::from_secs(10)));
        count(1, 86_400).unwrap();
        for hash in 2..1000 {
            count(hash, 86_401).unwrap();
        }
        assert_eq!(votes.day.lock().unwrap().counts.len(), 10);
    }
}
