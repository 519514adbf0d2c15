//! The gateway: the life of a request.
//!
//! ```text
//!  accept ─▶ (TLS) ─▶ handler ─┬─ fast path ─▶ index ─▶ one write
//!                            │
//!                            └─ relay ─▶ pingora ─▶ request_filter ─▶ route ─┬─ discovery
//!                                                                            ├─ admin
//!                                                                            └─ origin
//! ```
//!
//! | stop | module |
//! |---|---|
//! | listeners and handshakes | [`handler`](ConnectionHandler) |
//! | the requests of an HTTP/1.1 connection | `http1` |
//! | what a head may look like | [`head`], `chunked` |
//! | TLS certificates by name | [`tls`] |
//! | discovery without pingora, over HTTP/1.1 and HTTP/2 | `fast_path`, `http2` |
//! | one request lent to pingora | `relay` |
//! | what the admin API needs to know | `admin` |
//! | pingora's phases | `proxy` |
//! | what they read of a request | `request` |
//! | who answers | [`route`] |
//! | what an upstream is told about the client | [`forward`] |
//! | how a connection ends | [`drain`] |
//! | health, readiness, numbers | [`operator`] |
//!
//! Guarantees, each a module of the integration tests:
//!
//! * A request has one meaning: what RFC 9112 lets two servers read differently is refused
//!   by the connection handler, on both paths.
//! * The fast path is an optimisation: whatever it answers, the proxy path answers
//!   with the same status, fields and body. In doubt the fast path hands over; it never
//!   answers "no".
//! * Every wait has a deadline from [`Limits`].
//! * Client-sent forwarding fields reach an upstream only from a trusted peer.

pub mod access;
mod admin;
mod chunked;
pub mod drain;
mod fast_path;
pub mod forward;
mod handler;
pub mod head;
mod http1;
mod http2;
pub mod limits;
pub mod operator;
mod proxy;
mod single_request;
mod request;
mod respond;
pub mod route;
pub mod server;
pub mod tls;
mod connection;

pub use handler::{ConnectionHandler, Listeners, OpenListeners};
pub use limits::{Limits, UpstreamLimits};

use std::sync::Arc;

use crate::clock::Clock;
use crate::deploy::api::Api;
use crate::index::Index;
use crate::origin::Resolver;
use crate::response::RequestHeaders;
use crate::telemetry::Metrics;

use access::{Access, Client, Line, Outcome};
use drain::Drain;
use forward::TrustedPeers;

/// What every part of the gateway shares.
#[derive(Debug)]
pub struct Gateway {
    /// What is served.
    pub index: Arc<Index>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Where requests are logged.
    pub access: Access,
    /// What clients may take of us.
    pub limits: Arc<Limits>,
    /// How patient we are with upstreams.
    pub upstream: UpstreamLimits,
    /// Whose forwarding fields are believed.
    pub trusted: TrustedPeers,
    /// Whether the fast path is on.
    pub fast_path: bool,
    /// Where we are on our way out.
    pub drain: Drain,
    /// The addresses of upstreams.
    pub resolver: Resolver,
    /// The admin API, where this node has one.
    pub admin: Option<Arc<Api>>,
    /// The time of day, for log lines and `Date`.
    pub clock: Clock,
}

impl Gateway {
    /// Writes the access line of a request, if there is an access log.
    fn log(&self, client: Client, request: &RequestHeaders<'_>, outcome: Outcome) {
        if self.access.is_on() {
            self.access.log(&Line {
                time: self.clock.now(),
                client,
                request,
                outcome,
            });
        }
    }
}
