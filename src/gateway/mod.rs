//! The gateway: from a connection to a response.
//!
//! ```text
//!  accept ─▶ (TLS) ─▶ handler ─┬─ fast path ─▶ index ─▶ one write
//!                              │
//!                              ├─ direct path ─▶ a site's own server
//!                              │
//!                              └─ proxy path ─▶ pingora ─▶ route ─┬─ discovery
//!                                                                 ├─ admin API
//!                                                                 ├─ MCP server
//!                                                                 └─ origin
//! ```
//!
//! | what | module |
//! |---|---|
//! | listeners and handshakes | [`handler`](ConnectionHandler) |
//! | the socket option that lets the kernel wait for the first bytes of a connection | `defer` |
//! | a client's connection, its socket, and bytes that wait to be written to it | `connection`, `socket`, `held` |
//! | the requests of an HTTP/1.1 or HTTP/2 connection | `http1`, `http2`, `http2_begun` |
//! | the rules of a request head and of a chunked body | [`head`], [`chunked`] |
//! | the client that a TCP load balancer names | `proxy_protocol` |
//! | certificates by server name | [`tls`] |
//! | responses without pingora | `fast_path` |
//! | simple requests to a site's own HTTP/1.1 server, without pingora's proxy | `direct` |
//! | connections to upstreams | `upstream` |
//! | the limit on interim responses of an upstream | `interim` |
//! | several servers for one site | [`balance`] |
//! | copies of responses, for the time in which a server fails | [`copies`] |
//! | how a request ended, and how long it waited for an upstream | [`ending`] |
//! | the timer of an HTTP/1.1 connection | `timers` |
//! | one HTTP/1.1 request as a stream for pingora | `single_request` |
//! | one HTTP/2 request as a session for pingora | `http2_stream` |
//! | the waker of an HTTP/2 connection | `own_wakes` |
//! | values that return from pingora, also after a panic | `return_slot` |
//! | requests and upstreams that are too slow | `body_rate`, `silence` |
//! | pingora's phases | `proxy` |
//! | searches and calls of tools, which take turns | `turns` |
//! | files that are sent without pingora, and read while they are sent | `file_response`, `reads` |
//! | responses that the kernel sends without a copy | `memory_file` |
//! | how slowly a client may read | `write_rate` |
//! | the header of a request, from pingora's type | `request` |
//! | which part responds to a path | [`route`] |
//! | requests of the admin API | `admin` |
//! | messages to MCP servers | `mcp` |
//! | votes whether a page was helpful | `vote` |
//! | the fields that tell an upstream about the client | [`forward`] |
//! | limits on each client address | [`clients`] |
//! | the open connections, and which is idle longest | [`open`] |
//! | closing connections under memory pressure | [`memory`] |
//! | stopping | [`drain`] |
//! | health, readiness, metrics | [`operator`] |
//! | who may change the state of a gateway | [`token`] |
//!
//! Guarantees, each with a module in the integration tests:
//!
//! * A request has one meaning. A request that RFC 9112 allows two servers to read differently
//!   is rejected, on both paths.
//! * The fast path is an optimisation: the proxy path gives the same response, with the same
//!   status, fields and content. If the fast path is not sure, it leaves the request to the proxy
//!   path, and it never sends an error.
//! * The direct path is an optimisation too: upstreams and clients see the same as on the proxy
//!   path.
//! * Every wait has a timeout from [`Limits`].
//! * Forwarding fields of a client reach an upstream only from a trusted peer.

pub mod access;
mod admin;
pub mod balance;
mod body_rate;
pub mod chunked;
pub mod clients;
pub mod copies;
mod defer;
mod direct;
pub mod drain;
pub mod ending;
mod fast_path;
mod file_response;
pub mod followers;
pub mod forward;
mod handler;
mod held;
pub mod head;
mod http1;
mod http2;
mod http2_begun;
mod http2_stream;
mod interim;
mod return_slot;
pub mod limits;
mod mcp;
pub mod memory;
mod memory_file;
pub mod open;
pub mod operator;
mod own_wakes;
mod proxy;
mod proxy_protocol;
mod reads;
mod single_request;
mod socket;
mod request;
mod respond;
pub mod route;
mod silence;
pub mod server;
mod timers;
pub mod tls;
pub mod token;
pub mod top;
mod turns;
mod upstream;
mod vote;
mod write_rate;
mod connection;

pub use handler::{ConnectionHandler, Listeners, OpenListeners};
pub use limits::{Limits, UpstreamLimits};
pub use memory_file::FILES_MAX;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::acme::Challenges;
use crate::clock::Clock;
use crate::deploy::api::Api;
use crate::discovery::paths::{self, McpPath};
use crate::index::{Index, Served};
use crate::origin::{self, Resolver};
use crate::response::trace::Made;
use crate::response::{Problem, RequestHeaders, Response};
use crate::site::{self, Hsts, Network, Site};
use crate::telemetry::Metrics;

use access::{Access, Client, Line, Outcome};
use balance::Balancer;
use clients::Clients;
use copies::Copies;
use drain::Drain;
use ending::{End, Waits};
use forward::TrustedPeers;
use memory::Pressure;
use open::OpenConnections;
use top::Top;

/// The state that all parts of the gateway share.
#[derive(Debug)]
pub struct Gateway {
    /// The sites and their responses.
    pub index: Arc<Index>,
    /// Counters and gauges.
    pub metrics: Arc<Metrics>,
    /// The access log.
    pub access: Access,
    /// The hosts, addresses and reasons with the most requests and bytes.
    pub top: Arc<Top>,
    /// Limits on clients.
    pub limits: Arc<Limits>,
    /// Limits on each client address.
    pub clients: Arc<Clients>,
    /// The open client connections.
    pub open: Arc<OpenConnections>,
    /// How scarce memory is.
    pub pressure: Arc<Pressure>,
    /// Timeouts and retries of upstreams.
    pub upstream: UpstreamLimits,
    /// Peers whose forwarding fields are believed.
    pub trusted: TrustedPeers,
    /// The networks of load balancers that begin each connection with a header of the PROXY
    /// protocol.
    pub proxy_protocol: Vec<Network>,
    /// Whether the fast path and the direct path are on.
    pub fast_path: bool,
    /// The rules for requests without TLS.
    pub tls: tls::Policy,
    /// The answers to certificate authorities, if certificates are ordered.
    pub challenges: Option<Arc<Challenges>>,
    /// The phase of stopping the process.
    pub drain: Drain,
    /// The addresses of upstreams.
    pub resolver: Resolver,
    /// The servers of each site that has its own.
    pub balancer: Arc<Balancer>,
    /// The copies of upstreams' responses, if there are any.
    pub copies: Option<Copies>,
    /// The admin API, if this node has one.
    pub admin: Option<Arc<Api>>,
    /// The time of day, for log lines and `Date`.
    pub clock: Clock,
}

impl Gateway {
    /// Counts the end of a request and the bytes for its client, and writes the access line, if
    /// there is an access log.
    fn log(&self, client: Client, request: &RequestHeaders<'_>, outcome: Outcome) {
        self.clients.response(client.counted, &outcome);
        self.top.count(request.host, client.counted, &outcome);
        if outcome.end != End::Complete {
            self.metrics.ended(outcome.end.as_str());
        }
        if let Some(connect) = outcome.waits.connect {
            let Waits {
                first_byte, body, ..
            } = outcome.waits;
            self.metrics.waited([Some(connect), first_byte, body]);
        }
        if self.access.is_on() {
            let mut request = *request;
            // A request to an upstream has its id already.
            if request.made_id.is_none() {
                request.made_id = self.made(client.peer, &request).request_id;
            }
            self.access.log(&Line {
                time: self.clock.now(),
                client,
                request: &request,
                outcome,
            });
        }
    }

    /// Returns the time since a request has arrived, for its access line; zero if there is no access
    /// log.
    fn took(&self, since: Instant) -> Duration {
        match self.access.is_on() {
            true => since.elapsed(),
            false => Duration::ZERO,
        }
    }

    /// Makes the trace and the id that a request of a peer does not have.
    fn made(&self, peer: IpAddr, request: &RequestHeaders<'_>) -> Made {
        self.upstream.made(request, self.trusted.contains(peer))
    }

    /// Returns whether a request without TLS for a path of a host, in normal form, may be
    /// redirected. Discovery documents are not redirected, because some agents do not follow
    /// redirects.
    fn may_redirect(&self, host: &str, path: &str) -> bool {
        let is_discovery = |served: &Arc<Served>| {
            let path = paths::normalise(path);
            let site = &served.site;
            paths::find(&path, &site.base_path).is_some()
                || origin::find_mcp(site, &path).is_some_and(|found| found != McpPath::Server)
        };
        self.tls.may_redirect(host) && self.index.with(host, is_discovery) != Some(true)
    }

    /// Returns `Strict-Transport-Security` of responses over TLS for a host, as a client has
    /// written it. A host without a site uses the value of the operator.
    fn hsts(&self, host: &str) -> Option<Hsts> {
        let host = site::normalise(host).ok();
        let found = host.and_then(|host| self.index.with(&host, |served| served.site.hsts));
        found.flatten().or(self.tls.hsts())
    }

    /// Returns `Strict-Transport-Security` of responses over TLS for a site.
    fn hsts_of(&self, site: &Site) -> Option<Hsts> {
        site.hsts.or(self.tls.hsts())
    }

    /// Returns whether each response must be the last of its connection.
    fn is_closing(&self) -> bool {
        self.drain.is_draining() || self.pressure.is_scarce()
    }
}

/// The text of the response after a panic.
const GATEWAY_FAILED: &str = "the gateway failed";

/// Makes the response to a client that has exceeded a limit, and must wait this long.
fn too_many(wait: std::time::Duration) -> Response {
    let detail = "this address sends too many requests, or receives too many bytes";
    too_many_of(detail, wait)
}

/// Makes the response to a client that must wait this long, and says which limit was exceeded.
fn too_many_of(detail: &str, wait: std::time::Duration) -> Response {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let mut response = Problem::new(429, detail).response();
    response
        .more
        .push((http::header::RETRY_AFTER, seconds.max(1).into()));
    response
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
