//! Limits on each client address: connections, TLS handshakes, requests, bytes.
//!
//! | limit | what exceeds it | response |
//! |---|---|---|
//! | connections | one more open connection | it is closed at once, and counted |
//! | handshakes | one more TLS connection | it is closed at once, and counted |
//! | requests | one more request | 429 with `Retry-After` |
//! | bytes | a request after too many bytes of responses | 429 with `Retry-After` |
//! | `mcp` | one more message to an MCP server | 429 with `Retry-After` |
//! | `mcp_site` | the same, of a client that uses more than its share of the site | 429 with `Retry-After` |
//! | `votes` | one more vote for a page on one day | 429 with `Retry-After` |
//!
//! An address is one IPv4 address, or the prefix of an IPv6 address, because one subscriber has a
//! whole prefix. The peers that [`TrustedPeers`] names may open any number of connections: many
//! clients share them. Requests that they pass on count for the client that they name in
//! `X-Forwarded-For`.
//!
//! Each rate is a token bucket, which fills at the rate and is full after [`ClientLimits::burst`].
//! A request costs 1, and [`CHEAP_REQUEST`] if its response came from memory or was 304. A response
//! costs its content and [`HEAD_BYTES`]. What a response costs is known at its end, so it can
//! overdraw the bucket, but never for longer than [`DEBT_MAX`].
//!
//! The state is a table in [`SHARDS`] parts, each with a lock, and has at most
//! [`ClientLimits::addresses_max`] addresses. Without a limit on requests and bytes, a request
//! does not touch it.

mod bucket;
mod mcp;
mod votes;

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use prometheus::IntCounter;

use super::access::Outcome;
use super::forward::TrustedPeers;
use crate::telemetry::{Metrics, Route};
use bucket::{Bucket, Rate};

/// The cost of a request whose response came from memory or was 304; any other costs 1.
pub const CHEAP_REQUEST: f64 = 0.1;
/// How many bytes a response costs beside its content.
pub const HEAD_BYTES: u64 = 500;
/// The longest time that an address has to wait until it is served again.
pub const DEBT_MAX: Duration = Duration::from_secs(60);
/// The number of parts of the table.
const SHARDS: usize = 64;
/// How long to wait before a full part of the table is searched again for idle addresses.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The limits on each client address. 0 means no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// How many bits of an IPv6 address are one client.
    pub ipv6_prefix: u8,
    /// How many connections an address may have open.
    pub connections_max: u32,
    /// How many TLS connections an address may open per second.
    pub handshakes_per_second: u32,
    /// How many requests an address may send per second.
    pub requests_per_second: u32,
    /// How many bytes of responses an address may get per second.
    pub bytes_per_second: u64,
    /// How many messages an address may send to MCP servers per second.
    pub mcp_requests_per_second: u32,
    /// How many messages all addresses may send to the MCP server of one site per second. Above it,
    /// addresses that send more than their share are refused.
    pub mcp_site_requests_per_second: u32,
    /// How often an address may vote for a page of a site in a day.
    pub votes_per_day: u32,
    /// The size of a burst: an address that was idle may at once use as much as the rate allows
    /// in this time.
    pub burst: Duration,
    /// How many addresses are remembered.
    pub addresses_max: usize,
    /// The limits that are counted and logged, and not enforced.
    pub dry_run: Vec<LimitKind>,
}

/// One of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// Open connections.
    Connections,
    /// TLS handshakes per second.
    Handshakes,
    /// Requests per second.
    Requests,
    /// Bytes of responses per second.
    Bytes,
    /// Messages to MCP servers per second.
    Mcp,
    /// Messages to the MCP server of one site per second, from all addresses.
    McpSite,
    /// Votes for a page of a site in a day.
    Votes,
}

/// The client addresses of a process.
#[derive(Debug)]
pub struct Clients {
    limits: ClientLimits,
    trusted: TrustedPeers,
    handshakes: Option<Rate>,
    requests: Option<Rate>,
    bytes: Option<Rate>,
    mcp: Option<Rate>,
    mcp_site: Option<Rate>,
    votes: votes::Votes,
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
    shard_addresses_max: usize,
    /// By [`LimitKind`], then enforced and dry run.
    exceeded: [[IntCounter; 2]; LimitKind::ALL.len()],
    began: Instant,
}

/// Counts one connection of an address for as long as it lives.
#[derive(Debug)]
pub struct AddressGuard {
    clients: Arc<Clients>,
    address: Address,
}

/// A client: an IPv4 address, or the prefix of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Address(u128);

#[derive(Debug)]
struct Shard {
    states: HashMap<Address, State, RandomState>,
    /// When the last search for idle addresses was.
    swept: Duration,
}

/// The state of an address.
#[derive(Debug, Default)]
struct State {
    connections: u32,
    handshakes: Bucket,
    requests: Bucket,
    bytes: Bucket,
    mcp: Bucket,
    /// Of a client at a site: when it asked last, in spans of time.
    asked_in: u32,
    /// Of a site.
    site: Option<Box<mcp::Site>>,
}

// === impl ClientLimits ===

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            ipv6_prefix: 64,
            connections_max: 1000,
            handshakes_per_second: 100,
            requests_per_second: 0,
            bytes_per_second: 0,
            mcp_requests_per_second: 20,
            mcp_site_requests_per_second: 200,
            votes_per_day: 5,
            burst: Duration::from_secs(10),
            addresses_max: 100_000,
            dry_run: Vec::new(),
        }
    }
}

// === impl LimitKind ===

impl LimitKind {
    /// All limits.
    pub const ALL: [Self; 7] = [
        Self::Connections,
        Self::Handshakes,
        Self::Requests,
        Self::Bytes,
        Self::Mcp,
        Self::McpSite,
        Self::Votes,
    ];

    /// Returns the name in the configuration and in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Handshakes => "handshakes",
            Self::Requests => "requests",
            Self::Bytes => "bytes",
            Self::Mcp => "mcp",
            Self::McpSite => "mcp_site",
            Self::Votes => "votes",
        }
    }
}

// === impl Clients ===

impl Clients {
    /// Makes an empty table.
    #[must_use]
    pub fn new(limits: ClientLimits, trusted: TrustedPeers, metrics: &Metrics) -> Self {
        let rate = |per_second: u64| Rate::new(per_second, limits.burst);
        let exceeded = LimitKind::ALL.map(|kind| {
            ["enforced", "dry_run"].map(|mode| {
                let labels = [kind.as_str(), mode];
                metrics.client_limits.with_label_values(&labels)
            })
        });
        let shard = || {
            Mutex::new(Shard {
                states: HashMap::default(),
                swept: Duration::ZERO,
            })
        };
        Self {
            handshakes: rate(limits.handshakes_per_second.into()),
            requests: rate(limits.requests_per_second.into()),
            bytes: rate(limits.bytes_per_second),
            mcp: rate(limits.mcp_requests_per_second.into()),
            mcp_site: rate(limits.mcp_site_requests_per_second.into()),
            votes: votes::Votes::default(),
            hasher: RandomState::default(),
            shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
            shard_addresses_max: limits.addresses_max.div_ceil(SHARDS).max(1),
            exceeded,
            began: Instant::now(),
            limits,
            trusted,
        }
    }

    /// Returns whether requests or bytes are limited, in a dry run too.
    fn limits_requests(&self) -> bool {
        self.requests.is_some() || self.bytes.is_some()
    }

    /// Returns the client that a request of a peer counts for: here, and for the places at servers
    /// of sites. `forwarded` gives its `X-Forwarded-For`; it is called only if the peer is trusted.
    pub fn of_request<'h, L: DoubleEndedIterator<Item = &'h [u8]>>(
        &self,
        peer: IpAddr,
        forwarded: impl FnOnce() -> L,
    ) -> IpAddr {
        match self.trusted.contains(peer) {
            true => self.trusted.client_of(peer, forwarded()),
            false => peer,
        }
    }

    /// Returns the address, or the first address of the IPv6 prefix, that stands for a client.
    #[must_use]
    pub fn network_of(&self, client: IpAddr) -> IpAddr {
        let address = Address::of(client, self.limits.ipv6_prefix);
        IpAddr::from(Ipv6Addr::from_bits(address.0)).to_canonical()
    }

    /// Counts a new connection.
    ///
    /// # Errors
    ///
    /// The limit that it exceeds; then the connection must be closed.
    pub fn connect(
        self: &Arc<Self>,
        peer: IpAddr,
        is_tls: bool,
    ) -> Result<Option<AddressGuard>, LimitKind> {
        let handshakes = self.handshakes.filter(|_| is_tls);
        let connections_max = self.limits.connections_max;
        if (connections_max == 0 && handshakes.is_none()) || self.trusted.contains(peer) {
            return Ok(None);
        }
        let address = Address::of(peer, self.limits.ipv6_prefix);
        let now = self.began.elapsed();
        let mut shard = self.shard(address);
        let state = shard.state(address, now, self.shard_addresses_max);
        let mut exceeded = None;
        if connections_max > 0 && state.connections >= connections_max {
            exceeded = Some(LimitKind::Connections);
        } else if let Some(rate) = handshakes {
            if state.handshakes.wait(rate, now).is_some() {
                exceeded = Some(LimitKind::Handshakes);
            } else {
                state.handshakes.spend(rate, now, 1.0);
            }
        }
        if let Some(kind) = exceeded
            && self.is_enforced(kind)
        {
            drop(shard);
            self.report_exceeded(kind, address);
            return Err(kind);
        }
        state.connections += 1;
        drop(shard);
        if let Some(kind) = exceeded {
            self.report_exceeded(kind, address);
        }
        Ok(Some(AddressGuard {
            clients: Arc::clone(self),
            address,
        }))
    }

    /// Counts a new request.
    ///
    /// # Errors
    ///
    /// How long the client has to wait; then the response must be 429.
    pub fn request(&self, client: IpAddr) -> Result<(), Duration> {
        if !self.limits_requests() {
            return Ok(());
        }
        let address = Address::of(client, self.limits.ipv6_prefix);
        let now = self.began.elapsed();
        let mut shard = self.shard(address);
        let state = shard.state(address, now, self.shard_addresses_max);
        let requests = self
            .requests
            .and_then(|rate| state.requests.wait(rate, now));
        let bytes = self.bytes.and_then(|rate| state.bytes.wait(rate, now));
        let exceeded = [(LimitKind::Requests, requests), (LimitKind::Bytes, bytes)];
        let enforced = exceeded
            .iter()
            .filter(|(kind, _)| self.is_enforced(*kind))
            .filter_map(|(_, wait)| *wait)
            .max();
        if let (None, Some(rate)) = (enforced, self.requests) {
            state.requests.spend(rate, now, 1.0);
        }
        drop(shard);
        for (kind, wait) in exceeded {
            if wait.is_some() {
                self.report_exceeded(kind, address);
            }
        }
        enforced.map_or(Ok(()), Err)
    }

    /// Counts the response to a request that [`Clients::request`] has counted.
    pub fn response(&self, client: IpAddr, outcome: &Outcome) {
        if !self.limits_requests() || outcome.status == 429 {
            return;
        }
        let address = Address::of(client, self.limits.ipv6_prefix);
        let now = self.began.elapsed();
        let is_cheap =
            outcome.status == 304 || matches!(outcome.route, Route::FastPath | Route::Discovery);
        let mut shard = self.shard(address);
        let state = shard.state(address, now, self.shard_addresses_max);
        if let Some(rate) = self.requests.filter(|_| is_cheap) {
            state.requests.spend(rate, now, CHEAP_REQUEST - 1.0);
        }
        if let Some(rate) = self.bytes {
            #[expect(
                clippy::cast_precision_loss,
                reason = "a response has less than 2^52 bytes"
            )]
            let bytes = outcome.bytes.saturating_add(HEAD_BYTES) as f64;
            state.bytes.spend(rate, now, bytes);
        }
    }

    fn is_enforced(&self, kind: LimitKind) -> bool {
        !self.limits.dry_run.contains(&kind)
    }

    /// Counts and logs that a limit was exceeded.
    fn report_exceeded(&self, kind: LimitKind, address: Address) {
        self.report_exceeded_as(kind, &address.show(self.limits.ipv6_prefix));
    }

    /// Counts and logs that a limit was exceeded. `shown` is the text of an address, or the name of a
    /// site.
    fn report_exceeded_as(&self, kind: LimitKind, shown: &str) {
        let is_dry = !self.is_enforced(kind);
        self.exceeded[kind as usize][usize::from(is_dry)].inc();
        let limit = kind.as_str();
        if is_dry {
            log::warn!(target: "limits", limit, address = shown; "{shown} exceeds the limit on {limit} (dry run: nothing is rejected)");
        } else {
            log::warn!(target: "limits", limit, address = shown; "{shown} exceeds the limit on {limit}");
        }
    }

    /// Reads or changes the state of an address.
    fn with_state<T>(
        &self,
        address: Address,
        now: Duration,
        act: impl FnOnce(&mut State) -> T,
    ) -> T {
        let mut shard = self.shard(address);
        act(shard.state(address, now, self.shard_addresses_max))
    }

    /// Every change is a number, so a part of the table is whole after a panic too.
    fn shard(&self, address: Address) -> MutexGuard<'_, Shard> {
        let hash = self.hasher.hash_one(address);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the lowest bits choose the part"
        )]
        let at = hash as usize % SHARDS;
        self.shards[at]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AddressGuard {
    fn drop(&mut self) {
        let mut shard = self.clients.shard(self.address);
        if let Some(state) = shard.states.get_mut(&self.address) {
            state.connections = state.connections.saturating_sub(1);
        }
    }
}

// === impl Shard ===

impl Shard {
    /// Returns the state of an address. If there is no room, another address is forgotten: one
    /// that has nothing to remember, or else one without a connection.
    fn state(&mut self, address: Address, now: Duration, addresses_max: usize) -> &mut State {
        let is_full = self.states.len() >= addresses_max;
        if is_full && !self.states.contains_key(&address) {
            if now.saturating_sub(self.swept) >= SWEEP_INTERVAL {
                self.swept = now;
                self.states.retain(|_, state| !state.is_idle(now));
            }
            if self.states.len() >= addresses_max {
                // The order of a hash table with a random seed: no client can choose the address.
                let forgotten = self.states.iter().find(|(_, state)| state.connections == 0);
                let forgotten = forgotten.map(|(address, _)| *address);
                if let Some(forgotten) = forgotten {
                    self.states.remove(&forgotten);
                }
            }
        }
        self.states.entry(address).or_default()
    }
}

// === impl State ===

impl State {
    fn is_idle(&self, now: Duration) -> bool {
        let buckets = [&self.handshakes, &self.requests, &self.bytes, &self.mcp];
        let is_site_idle = self.site.as_ref().is_none_or(|site| site.is_idle(now));
        self.connections == 0 && is_site_idle && buckets.iter().all(|bucket| bucket.is_full(now))
    }
}

// === impl Address ===

impl Address {
    fn of(address: IpAddr, ipv6_prefix: u8) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(address.to_ipv6_mapped().to_bits()),
            IpAddr::V6(address) => {
                let rest = 128 - u32::from(ipv6_prefix.min(128));
                let mask = u128::MAX.checked_shl(rest).unwrap_or(0);
                Self(address.to_bits() & mask)
            }
        }
    }

    fn show(self, ipv6_prefix: u8) -> String {
        match IpAddr::from(Ipv6Addr::from_bits(self.0)).to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("{address}/{ipv6_prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::ending::{End, Waits};

    fn clients(limits: ClientLimits) -> Arc<Clients> {
        let trusted = TrustedPeers::new(vec!["10.0.0.0/8".parse().unwrap()]);
        Arc::new(Clients::new(limits, trusted, &Metrics::new()))
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn outcome(route: Route, status: u16, bytes: u64) -> Outcome {
        Outcome {
            end: End::Complete,
            waits: Waits::default(),
            copy_age: None,
            route,
            status,
            bytes,
            took: Duration::ZERO,
        }
    }

    #[test]
    fn connections_are_counted_by_address_until_they_close() {
        let clients = clients(ClientLimits {
            connections_max: 2,
            ..ClientLimits::default()
        });
        let connect = |text| clients.connect(address(text), false);
        let first = connect("192.0.2.1").unwrap();
        let _second = connect("::ffff:192.0.2.1").unwrap();
        assert_eq!(connect("192.0.2.1").unwrap_err(), LimitKind::Connections);
        assert!(connect("192.0.2.2").unwrap().is_some());
        drop(first);
        assert!(connect("192.0.2.1").is_ok());
        // One prefix of IPv6 is one client.
        let _open = [connect("2001:db8::1"), connect("2001:db8::2")].map(Result::unwrap);
        assert!(connect("2001:db8::ffff:0:3").is_err());
        assert!(connect("2001:db8:0:1::1").is_ok());
        // A trusted peer is many clients.
        for _ in 0..10 {
            assert!(connect("10.1.2.3").unwrap().is_none());
        }
    }

    #[test]
    fn handshakes_are_counted_for_tls_only() {
        let clients = clients(ClientLimits {
            handshakes_per_second: 1,
            burst: Duration::from_secs(3),
            ..ClientLimits::default()
        });
        let connect = |is_tls| clients.connect(address("192.0.2.1"), is_tls);
        let accepted = (0..10).filter(|_| connect(true).is_ok()).count();
        assert!((3..=4).contains(&accepted), "{accepted}");
        assert!(connect(false).is_ok());
    }

    #[test]
    fn a_response_from_memory_costs_a_tenth_of_a_request() {
        let limits = ClientLimits {
            requests_per_second: 1,
            burst: Duration::from_secs(10),
            ..ClientLimits::default()
        };
        for (outcome, least, most) in [
            (outcome(Route::Origin, 200, 0), 10, 12),
            (outcome(Route::FastPath, 200, 0), 95, 115),
            (outcome(Route::Origin, 304, 0), 95, 115),
        ] {
            let clients = clients(limits.clone());
            let client = address("192.0.2.1");
            let mut admitted = 0;
            let wait = loop {
                match clients.request(client) {
                    Ok(()) => clients.response(client, &outcome),
                    Err(wait) => break wait,
                }
                admitted += 1;
            };
            assert!((least..=most).contains(&admitted), "{admitted}");
            assert!(wait <= Duration::from_secs(1), "{wait:?}");
            assert!(clients.request(address("192.0.2.2")).is_ok());
        }
    }

    #[test]
    fn bytes_are_counted_when_they_were_sent_and_the_debt_has_an_end() {
        let clients = clients(ClientLimits {
            bytes_per_second: 1000,
            burst: Duration::from_secs(1),
            ..ClientLimits::default()
        });
        let client = address("192.0.2.1");
        clients.request(client).unwrap();
        clients.response(client, &outcome(Route::Origin, 200, 1 << 40));
        let wait = clients.request(client).unwrap_err();
        assert!(wait <= DEBT_MAX && wait > DEBT_MAX / 2, "{wait:?}");
    }

    #[test]
    fn a_dry_run_counts_and_rejects_nothing() {
        let metrics = Metrics::new();
        let limits = ClientLimits {
            connections_max: 1,
            handshakes_per_second: 1,
            requests_per_second: 1,
            bytes_per_second: 1,
            burst: Duration::from_secs(1),
            dry_run: LimitKind::ALL.to_vec(),
            ..ClientLimits::default()
        };
        let clients = Arc::new(Clients::new(limits, TrustedPeers::default(), &metrics));
        let client = address("192.0.2.1");
        let _open: Vec<_> = (0..5)
            .map(|_| clients.connect(client, true).unwrap())
            .collect();
        for _ in 0..5 {
            clients.request(client).unwrap();
            clients.response(client, &outcome(Route::Origin, 200, 100));
        }
        for limit in ["connections", "requests", "bytes"] {
            let counted = metrics
                .client_limits
                .with_label_values(&[limit, "dry_run"])
                .get();
            assert!(counted >= 2, "{limit} {counted}");
            let enforced = metrics
                .client_limits
                .with_label_values(&[limit, "enforced"])
                .get();
            assert_eq!(enforced, 0);
        }
    }

    #[test]
    fn the_table_is_limited_and_keeps_connected_addresses() {
        let clients = clients(ClientLimits {
            connections_max: 1,
            addresses_max: 640,
            ..ClientLimits::default()
        });
        let connected = clients.connect(address("192.0.2.1"), false).unwrap();
        for n in 0..100_000_u32 {
            let passing = IpAddr::from(std::net::Ipv4Addr::from_bits(0x0b00_0000 + n));
            drop(clients.connect(passing, true).unwrap());
        }
        let size = |shard: &Mutex<Shard>| shard.lock().unwrap().states.len();
        let sizes: usize = clients.shards.iter().map(size).sum();
        assert!(sizes <= 640, "{sizes}");
        assert!(clients.connect(address("192.0.2.1"), false).is_err());
        drop(connected);
        assert!(clients.connect(address("192.0.2.1"), false).is_ok());
    }

    #[test]
    fn a_trusted_peer_sends_for_the_client_that_it_names_with_and_without_limits() {
        let limited = ClientLimits {
            requests_per_second: 1,
            ..ClientLimits::default()
        };
        let unlimited = ClientLimits {
            mcp_requests_per_second: 0,
            mcp_site_requests_per_second: 0,
            ..ClientLimits::default()
        };
        for limits in [limited, unlimited] {
            let clients = clients(limits);
            let of = |peer: &str, lines: &'static [&'static [u8]]| {
                clients.of_request(address(peer), || lines.iter().copied())
            };
            assert_eq!(of("192.0.2.1", &[b"9.9.9.9"]), address("192.0.2.1"));
            assert_eq!(
                of("10.0.0.1", &[b"9.9.9.9, 198.51.100.7"]),
                address("198.51.100.7")
            );
            assert_eq!(
                of("10.0.0.1", &[b"9.9.9.9", b"198.51.100.7, 10.0.0.2"]),
                address("198.51.100.7")
            );
            assert_eq!(of("10.0.0.1", &[b"x"]), address("10.0.0.1"));
            assert_eq!(of("10.0.0.1", &[]), address("10.0.0.1"));
        }
    }
}
