//! Limits on clients and upstreams: time, bytes, connections.
//!
//! Each limit has a name and a defined response for a client that exceeds it. The defaults are
//! common ones: a whole request head within 10 seconds (haproxy's `timeout http-request`) and
//! 16 KiB, 75 seconds between requests (nginx's `keepalive_timeout`).

use std::time::Duration;

use crate::response::RequestHeaders;
use crate::response::trace::{Made, RequestId, TraceContext};

/// Limits on clients, on both paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a client may take for one whole request head, from its first byte (from
    /// the accepted connection for the first one); then 408. TLS handshakes have the same.
    pub head: Duration,
    /// How long a connection may be idle between requests before it is closed.
    pub idle: Duration,
    /// How long a client may read nothing of a response.
    pub write: Duration,
    /// How many bytes a second, on average over [`Limits::write`], a client must read while
    /// bytes wait for it; 0 switches the minimum off.
    pub write_rate_min: u32,
    /// How long a client may send nothing of a request body.
    pub body: Duration,
    /// How many bytes a second, on average over [`Limits::body`], a request body must
    /// have; 0 switches the minimum off.
    pub body_rate_min: u32,
    /// The longest request head, in bytes; then 431.
    pub head_bytes_max: usize,
    /// The longest request target, in bytes; then 414.
    pub target_bytes_max: usize,
    /// How many header fields a request may have; then 431.
    pub fields_max: usize,
    /// How many connections may be open at once; for one more, the one that has been idle longest
    /// is closed.
    pub connections_max: usize,
    /// How many requests one connection may send before it is closed; 0 means no limit. Over HTTP/2
    /// the requests that are under way then are served too.
    pub requests_per_connection_max: u32,
    /// How many HTTP/2 streams a connection may have open at once.
    pub streams_max: u32,
    /// How many bytes of request heads the open HTTP/2 streams of a connection may hold
    /// together, as HTTP/2 counts them (RFC 9113 §6.5.2); then `REFUSED_STREAM`. A single head is
    /// never rejected.
    pub stream_heads_bytes_max: usize,
    /// How many malformed HTTP/2 streams a connection may have over its life; then it is closed
    /// with `ENHANCE_YOUR_CALM`. Streams that the client soon resets count too, except half of all
    /// streams.
    pub stream_faults_max: u32,
    /// The time that requests in flight have to finish after the signal to stop.
    pub drain: Duration,
    /// How long readiness is 503 before the listeners close, for load balancers to notice.
    pub drain_delay: Duration,
    /// The time over which idle connections are closed after that. A request that arrives before
    /// its connection is closed gets its response.
    pub drain_idle: Duration,
    /// How long a new process may take until it serves, when `waypost upgrade` starts it.
    pub upgrade: Duration,
}

/// Timeouts and retries for the upstream of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamLimits {
    /// How long connecting may take, TLS included.
    pub connect: Duration,
    /// How long the upstream may send nothing, before its response and within it.
    pub read: Duration,
    /// How long the upstream may read nothing of a request.
    pub write: Duration,
    /// How long an unused connection is kept.
    pub idle: Duration,
    /// How long an upgraded connection (WebSocket) may be without data.
    pub upgraded: Duration,
    /// How often connecting is tried again; a request that may have reached the upstream
    /// is never repeated unless its method is idempotent and the connection was a reused one.
    pub retries_max: usize,
    /// How many retries a site may have for a hundred requests.
    pub retry_percent: u32,
    /// After how many failures in a row a server pauses, if its site has another one; 0 switches
    /// this off.
    pub eject_failures: u32,
    /// How long the first pause is.
    pub eject: Duration,
    /// How long a pause may become.
    pub eject_max: Duration,
    /// How long after its pause a server gets fewer requests.
    pub slow_start: Duration,
    /// How many requests a server of a site may have at once.
    pub requests_max: usize,
    /// How many more may wait for it.
    pub queue_max: usize,
    /// How long they may wait.
    pub queue: Duration,
    /// Whether requests without `traceparent` or `X-Request-Id` get them.
    pub create_trace_context: bool,
    /// Whether each request has an id: that of a trusted peer, or one that is made.
    pub create_request_id: bool,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            write: Duration::from_secs(30),
            write_rate_min: 100,
            body: Duration::from_secs(30),
            body_rate_min: 100,
            head_bytes_max: 16 << 10,
            target_bytes_max: 8 << 10,
            fields_max: 100,
            connections_max: 50_000,
            requests_per_connection_max: 0,
            streams_max: 100,
            stream_heads_bytes_max: 256 << 10,
            stream_faults_max: 100,
            drain: Duration::from_secs(30),
            drain_delay: Duration::ZERO,
            drain_idle: Duration::from_secs(5),
            upgrade: Duration::from_secs(300),
        }
    }
}

// === impl UpstreamLimits ===

impl Default for UpstreamLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            read: Duration::from_secs(60),
            write: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            upgraded: Duration::from_secs(3600),
            retries_max: 2,
            retry_percent: 20,
            eject_failures: 5,
            eject: Duration::from_secs(10),
            eject_max: Duration::from_secs(300),
            slow_start: Duration::from_secs(10),
            requests_max: 1000,
            queue_max: 100,
            queue: Duration::from_secs(5),
            create_trace_context: false,
            create_request_id: true,
        }
    }
}

impl UpstreamLimits {
    /// Makes the trace and the id that a request does not have. If each request has an id, only
    /// trusted peers name it.
    pub(super) fn made(&self, request: &RequestHeaders<'_>, is_trusted: bool) -> Made {
        let is_new = self.create_trace_context && request.trace.is_none();
        let trace = is_new.then(TraceContext::random);
        let has_id = !request.request_id.is_empty() && (is_trusted || !self.create_request_id);
        let makes_id = !has_id && (self.create_request_id || self.create_trace_context);
        Made {
            trace,
            request_id: makes_id.then(|| RequestId::of(trace.or(request.trace))),
        }
    }
}
