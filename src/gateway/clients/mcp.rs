//! Limits on messages to MCP servers: for each client, and for each site from all clients.
//!
//! Every message costs 1. If the clients of a site together exceed its rate, a client is refused when
//! it lately sent more than its share. The share is the rate, divided by the number of clients that ask
//! the site. So a new client gets answers, however many messages a few others send. A client with many
//! addresses looks like many new clients, so above [`CEILING`] times the rate all are refused.
//!
//! The buckets of sites, and of clients at sites, are in the same table as the buckets of addresses,
//! under addresses that no client has.

use std::hash::BuildHasher as _;
use std::net::IpAddr;
use std::time::Duration;

use super::bucket::Bucket;
use super::{Address, Clients, LimitKind};
use crate::site::ProjectId;

/// A multicast address (RFC 4291 §2.7), which is not a client.
const SITES: u128 = 0xff << 120;
/// Other multicast addresses: each stands for one client at one site.
const PAIRS: u128 = SITES | 1 << 64;
/// Clients that have asked within this time share the rate of a site.
const SHARED_SECONDS: u64 = 10;
/// How much of its share a client may use at once.
const SHARE_BURST: Duration = Duration::from_secs(1);
/// A site answers at most its rate times this, for all clients together.
const CEILING: f64 = 2.0;

/// What all clients together ask of a site.
#[derive(Debug, Default)]
pub(super) struct Site {
    ceiling: Bucket,
    /// The current span of [`SHARED_SECONDS`].
    span: u32,
    /// How many clients have sent messages in this span.
    clients: u32,
    /// How many clients had sent messages in the span before it.
    clients_before: u32,
}

// === impl Site ===

impl Site {
    pub(super) fn is_idle(&self, now: Duration) -> bool {
        self.ceiling.is_full(now)
    }

    /// Returns how many clients share the rate.
    fn clients(&mut self, span: u32) -> u32 {
        if self.span != span {
            let is_next = self.span.checked_add(1) == Some(span);
            self.clients_before = if is_next { self.clients } else { 0 };
            (self.span, self.clients) = (span, 0);
        }
        self.clients.max(self.clients_before).max(1)
    }
}

// === impl Clients ===

impl Clients {
    /// Returns how long a client must wait before it may send a message to a site. Nothing is
    /// counted.
    ///
    /// # Errors
    ///
    /// The limit with the longest time, and this time; then the response must be 429.
    pub fn may_ask(&self, client: IpAddr, site: &ProjectId) -> Result<(), (LimitKind, Duration)> {
        let address = Address::of(client, self.limits.ipv6_prefix);
        let now = self.began.elapsed();
        let mut longest: Option<(LimitKind, Duration)> = None;
        let mut refuse = |kind, wait| {
            let is_longest = longest.is_none_or(|(_, known)| wait > known);
            if is_longest && self.is_enforced(kind) {
                longest = Some((kind, wait));
            }
        };
        if let Some(rate) = self.mcp
            && let Some(wait) = self.with_state(address, now, |state| state.mcp.wait(rate, now))
        {
            self.report_exceeded(LimitKind::Mcp, address);
            refuse(LimitKind::Mcp, wait);
        }
        if let Some(wait) = self.wait_of_site(address, site, now) {
            self.report_exceeded_as(LimitKind::McpSite, site.as_str());
            refuse(LimitKind::McpSite, wait);
        }
        longest.map_or(Ok(()), Err)
    }

    /// Counts messages of a client to a site. The messages of a batch may take more than is left;
    /// then the client waits longer.
    pub fn ask(&self, client: IpAddr, site: &ProjectId, messages: u32) {
        if messages == 0 {
            return;
        }
        let address = Address::of(client, self.limits.ipv6_prefix);
        let (now, messages) = (self.began.elapsed(), f64::from(messages));
        if let Some(rate) = self.mcp {
            self.with_state(address, now, |state| state.mcp.spend(rate, now, messages));
        }
        let Some(rate) = self.mcp_site else { return };
        let (span, pair) = (span_of(now), self.pair(address, site));
        let is_new = self.with_state(pair, now, |state| {
            std::mem::replace(&mut state.asked_in, span) != span
        });
        let clients = self.with_state(self.site(site), now, |state| {
            state.mcp.spend(rate, now, messages);
            let site = state.site.get_or_insert_default();
            site.ceiling.spend(rate.times(CEILING), now, messages);
            // A new client counts from now on.
            site.clients(span);
            site.clients = site.clients.saturating_add(is_new.into());
            site.clients(span)
        });
        let share = rate.times(f64::from(clients).recip());
        self.with_state(pair, now, |state| state.mcp.spend(share, now, messages));
    }

    /// Returns how long a client must wait because all clients together ask too much of a site.
    fn wait_of_site(&self, client: Address, site: &ProjectId, now: Duration) -> Option<Duration> {
        let rate = self.mcp_site?;
        let (ceiling, exceeded, clients) = self.with_state(self.site(site), now, |state| {
            let site = state.site.get_or_insert_default();
            let ceiling = site.ceiling.wait(rate.times(CEILING), now);
            let clients = site.clients(span_of(now));
            (ceiling, state.mcp.wait(rate, now), clients)
        });
        if ceiling.is_some() {
            return ceiling;
        }
        exceeded?;
        let share = rate.times(f64::from(clients).recip());
        let pair = self.pair(client, site);
        let shard = self.shard(pair);
        let state = shard.states.get(&pair)?;
        state.mcp.wait(share.with_burst(SHARE_BURST), now)
    }

    fn site(&self, site: &ProjectId) -> Address {
        Address(SITES | u128::from(self.hasher.hash_one(site.as_str())))
    }

    fn pair(&self, client: Address, site: &ProjectId) -> Address {
        Address(PAIRS | u128::from(self.hasher.hash_one((client, site.as_str()))))
    }
}

/// Returns the span of a time, from 1 on.
fn span_of(now: Duration) -> u32 {
    u32::try_from(now.as_secs() / SHARED_SECONDS + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::gateway::clients::ClientLimits;
    use crate::gateway::forward::TrustedPeers;
    use crate::telemetry::Metrics;

    #[test]
    fn messages_are_counted_for_the_client_and_for_the_site() {
        let limits = ClientLimits {
            mcp_requests_per_second: 1,
            mcp_site_requests_per_second: 2,
            burst: Duration::from_secs(5),
            ..ClientLimits::default()
        };
        let clients = Arc::new(Clients::new(
            limits,
            TrustedPeers::default(),
            &Metrics::new(),
        ));
        let site = |name: &str| ProjectId::parse(name).unwrap();
        let send = |client: &str, site: &ProjectId| {
            let client = client.parse().unwrap();
            let mut sent = 0;
            while clients.may_ask(client, site).is_ok() && sent < 100 {
                clients.ask(client, site, 1);
                sent += 1;
            }
            sent
        };
        let (a, b) = (site("a"), site("b"));
        let first = send("192.0.2.1", &a);
        assert!((5..=7).contains(&first), "{first}");
        // Another client of the same site has its own limit. The limit of the site applies to both.
        let second = send("192.0.2.2", &a);
        assert!((4..=7).contains(&second), "{second}");
        let third = send("192.0.2.3", &a);
        assert!(third <= 2, "{third}");
        assert!(send("192.0.2.3", &b) >= 3);
    }

    #[test]
    fn a_dry_run_counts_messages_and_rejects_none() {
        let limits = ClientLimits {
            mcp_requests_per_second: 1,
            mcp_site_requests_per_second: 1,
            burst: Duration::from_secs(1),
            dry_run: vec![LimitKind::Mcp, LimitKind::McpSite],
            ..ClientLimits::default()
        };
        let metrics = Metrics::new();
        let clients = Arc::new(Clients::new(limits, TrustedPeers::default(), &metrics));
        let (client, site) = ("192.0.2.1".parse().unwrap(), ProjectId::parse("a").unwrap());
        for _ in 0..10 {
            clients.may_ask(client, &site).unwrap();
            clients.ask(client, &site, 1);
        }
        for limit in ["mcp", "mcp_site"] {
            let counted = |mode| {
                metrics
                    .client_limits
                    .with_label_values(&[limit, mode])
                    .get()
            };
            assert!(counted("dry_run") >= 5, "{limit}");
            assert_eq!(counted("enforced"), 0, "{limit}");
        }
    }

    #[test]
    fn a_few_clients_that_use_up_the_rate_of_a_site_leave_answers_for_a_new_client() {
        let limits = ClientLimits {
            mcp_requests_per_second: 20,
            mcp_site_requests_per_second: 200,
            ..ClientLimits::default()
        };
        let metrics = Metrics::new();
        let clients = Clients::new(limits, TrustedPeers::default(), &metrics);
        let site = ProjectId::parse("a").unwrap();
        let ask = |client: IpAddr| {
            let may = clients.may_ask(client, &site).is_ok();
            if may {
                clients.ask(client, &site, 1);
            }
            may
        };
        let address = |n: u32| IpAddr::from(std::net::Ipv4Addr::from_bits(0x0b00_0000 + n));
        let mut refused = 0;
        for _ in 0..300 {
            for n in 0..12 {
                refused += u32::from(!ask(address(n)));
            }
        }
        assert!(refused > 1000, "{refused}");
        assert!(!ask(address(0)));
        // A new client gets the answers that a conversation begins with, and then its share.
        let new = address(100);
        let answered = (0..1000).take_while(|_| ask(new)).count();
        assert!((5..100).contains(&answered), "{answered}");
        // Clients that are always new do not get more than a multiple of the rate.
        let answered = (0..10_000).filter(|n| ask(address(1000 + n))).count();
        assert!(answered < 2500, "{answered}");
        assert!(!ask(address(500_000)));
    }
}
