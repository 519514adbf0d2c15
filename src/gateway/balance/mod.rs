//! Several servers for one site: which of them a request goes to.
//!
//! * **Choice.** The servers of a site get requests in proportion to their weights (smooth weighted
//!   round robin, as nginx does it). Backups are used while no other server is available.
//! * **Ejection.** The responses to readers show the state of a server. After
//!   [`UpstreamLimits::eject_failures`] failures in a row (no connection, no or half a response,
//!   or the status 502, 503 or 504) it pauses. After the pause one idempotent request tries it. If
//!   that fails too, the pause doubles. A server that returns gets few requests first
//!   ([`UpstreamLimits::slow_start`]). If all servers pause, they are used as if none did, and a
//!   site with one server never loses it: a late response is better than none.
//! * **Checks.** A site may ask for checks of its servers ([`Check`](crate::site::Check)); without
//!   that, no check is sent. A server that fails its checks gets no requests, unless all
//!   servers fail them.
//! * **Cap.** A server has at most [`UpstreamLimits::requests_max`] requests at once, and a short
//!   queue behind them. So one server that responds to nothing cannot hold all connections of the
//!   gateway, and one client cannot hold all places of a server ([`server_places`]). The limit of
//!   file descriptors bounds the requests at all servers together; one request more gets 503 at
//!   once. No owner and no client can have all of these places ([`shares`]).
//! * **Retries.** Each request adds a part of a retry to the budget of its site, and each attempt
//!   at another connection or server takes one ([`UpstreamLimits::retry_percent`]). So a dead
//!   server does not get several times as many requests. A request that may have reached a server
//!   is repeated only if its method is idempotent and nothing of a response has come. A connection
//!   that has ended while it was idle costs nothing.
//!
//! The state belongs to a site and to this process: two sites with the same server do not share it,
//! or one of them could harm the other. A new list of servers begins with a new state.
//!
//! `pingora-load-balancing` chooses by weight too, but has no ejection, no cap, no slow start and
//! no budget, and its choice is a snapshot that a task of each site would have to renew.

mod check;
mod clients;
mod group;
mod places;
pub(super) mod race;
mod row;
mod server_places;
mod shares;

use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use pingora::server::configuration::ServerConf;
use serde_json::{Value, json};

use super::UpstreamLimits;
use crate::origin::Resolver;
use crate::site::{Site, Upstream};
use crate::telemetry::Metrics;

pub(super) use group::{Group, HeldPlace, Refused, Tried};
pub(super) use places::Places;

use check::Checks;
use row::Row;
use shares::Shares;

/// How many parts the table has, each with its lock.
const SHARDS: usize = 16;
/// A site without a request for this long, or twice as long, is forgotten.
const SWEEP_INTERVAL: Duration = Duration::from_secs(600);
/// How many servers [`Balancer::to_json`] lists.
const LISTED_MAX: usize = 1000;

/// The servers of all sites that have servers of their own.
pub struct Balancer {
    limits: UpstreamLimits,
    /// The places of the process.
    shares: Arc<Shares>,
    metrics: Arc<Metrics>,
    /// `None`: no server is asked whether it works.
    checks: Option<Checks>,
    hasher: RandomState,
    shards: [Mutex<HashTable<Arc<Group>>>; SHARDS],
}

// === impl Balancer ===

impl Balancer {
    /// Makes it without any site; a site is added with its first request.
    #[must_use]
    pub fn new(limits: UpstreamLimits, metrics: Arc<Metrics>) -> Self {
        Self {
            limits,
            shares: Arc::new(Shares::new(usize::MAX)),
            metrics,
            checks: None,
            hasher: RandomState::default(),
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// Lets this many requests of all sites have a server at once.
    #[must_use]
    pub fn with_requests_max(self, requests_max: usize) -> Self {
        Self {
            shares: Arc::new(Shares::new(requests_max)),
            ..self
        }
    }

    /// Returns the places of the process.
    pub(super) fn places(&self) -> &Arc<Places> {
        self.shares.places()
    }

    /// Turns on active checks, for sites whose record asks for them. `conf` has the authorities
    /// that sign the certificates of servers.
    #[must_use]
    pub fn with_checks(mut self, resolver: Resolver, conf: &ServerConf) -> Self {
        let metrics = Arc::clone(&self.metrics);
        let checks = Checks::new(
            self.limits.clone(),
            resolver,
            Arc::clone(self.places()),
            conf,
            metrics,
        );
        self.checks = Some(checks);
        self
    }

    /// Returns the servers of a site.
    pub(super) fn group(&self, site: &Arc<Site>, upstream: &Upstream) -> Arc<Group> {
        let hash = self.hasher.hash_one(&site.project);
        let mut shard = self.shard(hash);
        let found = shard.find_mut(hash, |group| group.site.project == site.project);
        if let Some(group) = found {
            if !group.is_for(site) {
                *group = self.make(site, upstream);
            }
            group.touch();
            return Arc::clone(group);
        }
        let group = self.make(site, upstream);
        let hash_of = |group: &Arc<Group>| self.hasher.hash_one(&group.site.project);
        shard.insert_unique(hash, Arc::clone(&group), hash_of);
        group
    }

    fn make(&self, site: &Arc<Site>, upstream: &Upstream) -> Arc<Group> {
        let checks = self.checks.as_ref();
        let site = Arc::clone(site);
        let group = Group::new(
            site,
            upstream,
            &self.limits,
            &self.shares,
            &self.metrics,
            checks,
        );
        Arc::new(group)
    }

    /// Forgets sites without a request for a long time. It never returns.
    pub(super) async fn forget_idle(&self) {
        let mut interval = tokio::time::interval(SWEEP_INTERVAL);
        loop {
            interval.tick().await;
            self.sweep();
        }
    }

    fn sweep(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.retain(|group| group.take_touched() || Arc::strong_count(group) > 1);
        }
        self.shares.sweep();
        if let Some(checks) = &self.checks {
            checks.sweep();
        }
    }

    /// Returns the state of the servers of each site that had requests lately; those with a
    /// failure come first.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut groups: Vec<Arc<Group>> = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            groups.extend(shard.iter().cloned());
        }
        let mut servers: Vec<_> = groups.iter().flat_map(|group| group.rows()).collect();
        let listed = servers.len();
        servers.sort_by(|a, b| a.order().cmp(&b.order()));
        servers.truncate(LISTED_MAX);
        let rows: Vec<Value> = servers.iter().map(Row::to_json).collect();
        json!({ "servers": rows, "left_out": listed - rows.len() })
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, HashTable<Arc<Group>>> {
        // The table uses the upper and the lower bits.
        let shard = &self.shards[(hash >> 32) as usize % SHARDS];
        // Every change is one entry more or less, so the table is whole after a panic too.
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Balancer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Balancer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::site::{Origin, ProjectId, Scheme};

    #[tokio::test]
    async fn a_site_that_moved_to_another_owner_uses_the_share_of_that_owner() {
        let balancer = Balancer::new(UpstreamLimits::default(), Arc::new(Metrics::new()));
        let upstream = Upstream::new(Scheme::Http, "a.test", 80);
        let of = |owner: &str| {
            let site = Site {
                owner: owner.into(),
                origin: Origin::Upstream(upstream.clone()),
                ..Site::new(ProjectId::parse("acme").unwrap())
            };
            balancer.group(&Arc::new(site), &upstream)
        };
        let used = |owner| balancer.shares.of_owner(owner).load(Ordering::Relaxed);
        let client = IpAddr::from([192, 0, 2, 1]);
        let before = of("before").hold_now(client).unwrap();
        let _after = of("after").hold_now(client).unwrap();
        assert_eq!((used("before"), used("after")), (1, 1));
        // The same owner keeps the state of its servers.
        assert!(Arc::ptr_eq(&of("after"), &of("after")));
        drop(before);
        assert_eq!((used("before"), used("after")), (0, 1));
    }
}
