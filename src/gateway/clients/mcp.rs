//! Limits on messages to MCP servers: for each client, and for each site from all clients.
//!
//! Every message costs 1. The bucket of a site is in the same table as the buckets of addresses,
//! under an address that no client has.

use std::hash::BuildHasher as _;
use std::net::IpAddr;
use std::time::Duration;

use super::{Address, Clients, LimitKind};
use crate::site::ProjectId;

/// A multicast address (RFC 4291 §2.7), which is not a client.
const SITES: u128 = 0xff << 120;

// === impl Clients ===

impl Clients {
    /// Returns how long a client must wait before it may send a message to a site. Nothing is
    /// counted.
    ///
    /// # Errors
    ///
    /// The limit with the longest time, and this time; then the response must be 429.
    pub fn may_ask(&self, client: IpAddr, site: &ProjectId) -> Result<(), (LimitKind, Duration)> {
        let mut longest: Option<(LimitKind, Duration)> = None;
        for (kind, address) in self.asked(client, site) {
            let Some(rate) = self.mcp_rate(kind) else {
                continue;
            };
            let now = self.began.elapsed();
            let mut shard = self.shard(address);
            let state = shard.state(address, now, self.shard_addresses_max);
            let wait = state.mcp.wait(rate, now);
            drop(shard);
            let Some(wait) = wait else {
                continue;
            };
            match kind {
                LimitKind::McpSite => self.report_exceeded_as(kind, site.as_str()),
                _ => self.report_exceeded(kind, address),
            }
            let is_longest = longest.is_none_or(|(_, known)| wait > known);
            if is_longest && self.is_enforced(kind) {
                longest = Some((kind, wait));
            }
        }
        longest.map_or(Ok(()), Err)
    }

    /// Counts messages of a client to a site. The messages of a batch may take more than is left;
    /// then the client waits longer.
    pub fn ask(&self, client: IpAddr, site: &ProjectId, messages: u32) {
        if messages == 0 {
            return;
        }
        for (kind, address) in self.asked(client, site) {
            if let Some(rate) = self.mcp_rate(kind) {
                let now = self.began.elapsed();
                let mut shard = self.shard(address);
                let state = shard.state(address, now, self.shard_addresses_max);
                state.mcp.spend(rate, now, f64::from(messages));
            }
        }
    }

    fn asked(&self, client: IpAddr, site: &ProjectId) -> [(LimitKind, Address); 2] {
        let name = u128::from(self.hasher.hash_one(site.as_str()));
        [
            (LimitKind::Mcp, Address::of(client, self.limits.ipv6_prefix)),
            (LimitKind::McpSite, Address(SITES | name)),
        ]
    }

    fn mcp_rate(&self, kind: LimitKind) -> Option<super::Rate> {
        match kind {
            LimitKind::McpSite => self.mcp_site,
            _ => self.mcp,
        }
    }
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
}
