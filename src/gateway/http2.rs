//! HTTP/2: the fast path and the proxy path for each stream.
//!
//! We accept the streams ourselves, so the loop can respond to a discovery request, or to a message
//! to an MCP server that has wholly arrived, at once: without a task, an await or pingora. A cork
//! holds back the responses to streams that arrived together, so that they leave in one write.
//! A stream on the [direct path](super::direct) runs in the loop too, beside the others: what has
//! arrived from several upstreams leaves in one write, and a stream needs no task. Every other
//! stream becomes a task on the proxy path. The loop limits
//!
//! * open streams (`REFUSED_STREAM` above [`Limits::streams_max`]),
//! * the request heads that open streams hold (`REFUSED_STREAM` above
//!   [`Limits::stream_heads_bytes_max`]),
//! * malformed streams, and streams that the client soon resets (`ENHANCE_YOUR_CALM` above
//!   [`Limits::stream_faults_max`]; h2 itself limits resets of streams that were not accepted yet),
//! * the streams of a connection ([`Limits::requests_per_connection_max`]): then it sends `GOAWAY`,
//!   serves the streams that are under way, and refuses more,
//! * how long a connection without open streams stays open,
//! * how long a drain takes: it sends `GOAWAY`, then polls until the last stream has ended.
//!
//! Source: RFC 9113 §5.1.2, §5.4.1, §6.8, §8.3.
//!
//! [`Limits::streams_max`]: super::Limits::streams_max
//! [`Limits::stream_heads_bytes_max`]: super::Limits::stream_heads_bytes_max
//! [`Limits::stream_faults_max`]: super::Limits::stream_faults_max
//! [`Limits::requests_per_connection_max`]: super::Limits::requests_per_connection_max

use std::borrow::Cow;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use h2::server::{Builder, Connection};
use h2::{Reason, SendStream};
use http::Version;
use http::header::{self, HeaderValue};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::protocols::Digest;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::access::Outcome;
use super::connection::{ClientConnection, ConnectionInfo, Cork};
use super::direct::{LastGroup, PlannedStream};
use super::ending::{End, Waits};
use super::fast_path::{self, FastResponse};
use super::handler::ConnectionHandler;
use super::head;
use super::http2_begun::{Begun, HeldHead, OpenStream};
use super::http2_stream::Http2Stream;
use super::mcp;
use super::open::{Activity, Busy};
use super::own_wakes::OwnWakes;
use super::request::{announced, host_of, logged, with_headers};
use super::write_rate::WriteRate;
use super::{Gateway, Limits, access, too_many};
use crate::response::{Content, MaybeCached, Response};
use crate::site::{self, Hsts};
use crate::telemetry::Route;

/// Fields that only the proxy path reads, as over HTTP/1.1.
///
/// `Host` is one of them, because a request may have it beside `:authority`.
const PROXY_PATH_FIELDS: [header::HeaderName; 5] = [
    header::TE,
    header::TRAILER,
    header::EXPECT,
    header::UPGRADE,
    header::HOST,
];

/// A body of up to this length is one frame: each client accepts frames of this length (RFC 9113
/// §4.2). The connection writes after each frame if no cork is set.
const FRAME_BYTES: usize = 16 << 10;

/// How many bytes of one stream wait in memory while the connection takes nothing.
const SEND_BUFFER_BYTES_MAX: usize = 64 << 10;

/// How often a connection with open streams is checked.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// An HTTP/2 connection.
struct Http2 {
    handler: Arc<ConnectionHandler>,
    activity: Arc<Activity>,
    connection: Connection<ClientConnection, Bytes>,
    digest: Arc<Digest>,
    cork: Cork,
    info: ConnectionInfo,
    /// Counts the streams on the proxy path, and the bodies that wait for the client's window.
    open: TaskTracker,
    /// The size of the request heads that streams on the proxy path hold.
    heads: Arc<AtomicUsize>,
    /// How many streams the client has sent.
    streams: u32,
    /// How many streams were malformed.
    faults: u32,
    /// How many streams the client has soon reset.
    resets: Arc<AtomicU32>,
    last_stream: Instant,
    last_group: LastGroup,
    /// Whether the last stream came alone: no other one arrived with it.
    came_alone: bool,
    /// The length of the last body that the loop has sent, in bytes.
    last_body_bytes: usize,
    /// Whether `GOAWAY` was sent.
    goaway_sent: bool,
}

/// Serves an HTTP/2 connection until it is closed.
pub(super) async fn serve(
    handler: Arc<ConnectionHandler>,
    mut connection: ClientConnection,
    activity: Arc<Activity>,
) {
    let limits = Arc::clone(&handler.gateway.limits);
    let info = connection.info().clone();
    let cork = connection.cork();
    let options = options(&limits);
    let handshaking = options.handshake(connection);
    let Ok(Ok(connection)) = tokio::time::timeout(limits.head, handshaking).await else {
        handler.gateway.metrics.stream_faults.inc();
        return;
    };
    let digest = Arc::new(info.digest());
    let last_stream = Instant::now();
    Http2 {
        handler,
        activity,
        connection,
        digest,
        cork,
        info,
        open: TaskTracker::new(),
        heads: Arc::default(),
        streams: 0,
        faults: 0,
        resets: Arc::default(),
        last_stream,
        last_group: LastGroup::default(),
        came_alone: true,
        last_body_bytes: 0,
        goaway_sent: false,
    }
    .run()
    .await;
}

impl Http2 {
    async fn run(mut self) {
        let mut exchanges = FuturesUnordered::new();
        let handler = Arc::clone(&self.handler);
        self.serve(&mut exchanges, |begun| begun.exchange(Arc::clone(&handler)))
            .await;
        drop(self);
        // The exchanges find the connection closed, and write their access lines.
        while let Some(left) = exchanges.next().await {
            if let Some(begun) = left {
                begun.proxy(&handler).await;
            }
        }
    }

    /// Serves the connection until it is closed. `exchange` passes a request on.
    async fn serve<E: Future<Output = Option<Box<Begun>>>>(
        &mut self,
        exchanges: &mut FuturesUnordered<E>,
        exchange: impl Fn(Box<Begun>) -> E,
    ) {
        let gateway = Arc::clone(&self.handler.gateway);
        let wakes = OwnWakes::new();
        let mut idle = Box::pin(tokio::time::sleep(gateway.limits.idle));
        let mut closing = Box::pin(self.activity.closing().cancelled_owned());
        let mut closes = false;
        // Whether `idle` ends when the drain reaches this connection.
        let mut waits_for_goaway = false;
        loop {
            tokio::select! {
                biased;
                stays_open = poll_fn(|cx| self.poll_streams(cx, &wakes, exchanges, &exchange)) => {
                    if !stays_open {
                        return;
                    }
                }
                () = &mut closing, if !closes => {
                    closes = true;
                    if self.activity.is_evicted() {
                        idle.as_mut().reset(self.close_at_once());
                    } else if !self.goaway_sent {
                        let share = self.activity.drain_share();
                        let at = gateway.drain.goaway_at(gateway.limits.drain_idle, share);
                        let at = at.map_or_else(Instant::now, Instant::from_std);
                        idle.as_mut().reset(at);
                        waits_for_goaway = true;
                    }
                }
                () = &mut idle => {
                    let next = match std::mem::take(&mut waits_for_goaway) {
                        true => Some(self.send_goaway()),
                        false => self.check_idle(),
                    };
                    match next {
                        Some(next) => idle.as_mut().reset(next),
                        None => return,
                    }
                }
            }
            if self.has_to_go_away() {
                waits_for_goaway = false;
                idle.as_mut().reset(self.send_goaway());
            }
        }
    }

    /// Serves the streams that arrive, and runs the exchanges, until nothing more can be done now.
    ///
    /// It is ready with `false` when the connection is closed, and with `true` when the gateway has to
    /// send `GOAWAY`.
    fn poll_streams<E: Future<Output = Option<Box<Begun>>>>(
        &mut self,
        cx: &mut Context<'_>,
        wakes: &OwnWakes,
        exchanges: &mut FuturesUnordered<E>,
        exchange: impl Fn(Box<Begun>) -> E,
    ) -> Poll<bool> {
        let mut streams = 0_u32;
        loop {
            // Many clients send one request and wait for its response. Then the poll that reads
            // whether more streams have arrived may write the response too.
            let is_corked = match streams {
                _ if !self.open.is_empty() => true,
                0 => false,
                1 => !self.came_alone || self.last_body_bytes > FRAME_BYTES,
                _ => true,
            };
            self.cork.set(is_corked);
            // `cx` wakes this task when an exchange can go on. The connection is polled next and
            // sends their responses, so it does not have to wake the task.
            wakes.ignore(|| {
                while !exchanges.is_empty()
                    && let Poll::Ready(Some(left)) = exchanges.poll_next_unpin(cx)
                {
                    self.spawn(left);
                }
            });
            let mut accepted = wakes.poll(cx, |cx| self.connection.poll_accept(cx));
            if is_corked && accepted.is_pending() {
                // No more streams have arrived: write the responses that are held back.
                self.cork.set(false);
                accepted = wakes.poll(cx, |cx| self.connection.poll_accept(cx));
            }
            match accepted.map(Option::transpose) {
                Poll::Ready(Ok(Some((request, respond)))) => {
                    streams += 1;
                    let stream = Http2Stream::new(request, respond, Arc::clone(&self.digest));
                    // The connection is polled again before this task waits.
                    wakes.ignore(|| match self.begin(stream) {
                        Some(begun) if begun.planned.is_some() => exchanges.push(exchange(begun)),
                        begun => self.spawn(begun),
                    });
                    if self.has_to_go_away() {
                        return Poll::Ready(true);
                    }
                }
                Poll::Ready(Ok(None)) => return Poll::Ready(false),
                Poll::Ready(Err(error)) => {
                    // Only an error of the protocol counts; a connection that the client closed
                    // does not.
                    if !error.is_io() {
                        self.handler.gateway.metrics.stream_faults.inc();
                    }
                    return Poll::Ready(false);
                }
                Poll::Pending => {
                    if streams > 0 {
                        self.came_alone = streams == 1;
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Begins a stream. Returns it if the fast path has not responded to it.
    fn begin(&mut self, stream: Http2Stream) -> Option<Box<Begun>> {
        self.last_stream = Instant::now();
        self.activity.touch(self.last_stream.into_std());
        // After a panic this stream is reset, and the others go on.
        let taken = catch_unwind(AssertUnwindSafe(|| self.take(stream)));
        taken.ok().flatten()
    }

    /// Lets a task serve a stream on the proxy path.
    fn spawn(&self, begun: Option<Box<Begun>>) {
        if let Some(begun) = begun {
            let handler = Arc::clone(&self.handler);
            tokio::spawn(async move { begun.proxy(&handler).await });
        }
    }

    /// Returns whether the gateway has to send `GOAWAY` now.
    fn has_to_go_away(&self) -> bool {
        !self.goaway_sent && (self.handler.gateway.pressure.is_scarce() || self.is_used_up())
    }

    /// Sends `GOAWAY`, and returns when the connection is dropped if the client does not close
    /// it.
    ///
    /// The client has as much time as for a request head.
    fn send_goaway(&mut self) -> Instant {
        self.goaway_sent = true;
        self.connection.graceful_shutdown();
        Instant::now() + self.handler.gateway.limits.head
    }

    /// Sends `GOAWAY` and closes the connection, whether the client closes it or not: it is idle,
    /// and others need its place.
    fn close_at_once(&mut self) -> Instant {
        self.goaway_sent = true;
        self.connection.abrupt_shutdown(Reason::NO_ERROR);
        Instant::now() + IDLE_CHECK_INTERVAL
    }

    /// Begins to close a connection that has been idle for too long.
    ///
    /// Returns when to check again; `None` if the connection must be dropped.
    fn check_idle(&mut self) -> Option<Instant> {
        let idle = self.handler.gateway.limits.idle;
        let quiet = self.activity.idle_time();
        match (self.open.is_empty(), self.goaway_sent) {
            // `GOAWAY` was sent, and the client has not closed the connection in time.
            (true, true) => None,
            (true, false) if quiet >= idle => {
                self.handler.gateway.metrics.timeouts.inc();
                Some(self.send_goaway())
            }
            _ => Some(Instant::now() + idle.saturating_sub(quiet).max(IDLE_CHECK_INTERVAL)),
        }
    }

    /// Responds to a stream on the fast path. Returns it if another path has to do so.
    fn take(&mut self, mut stream: Http2Stream) -> Option<Box<Begun>> {
        self.streams = self.streams.saturating_add(1);
        let gateway = &*self.handler.gateway;
        let limits = &gateway.limits;
        if self.has_too_many_faults() {
            self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
            return None;
        }
        if self.open.len() >= limits.streams_max as usize || self.ignores_goaway() {
            gateway.metrics.stream_faults.inc();
            stream.shutdown_with_reason(Reason::REFUSED_STREAM);
            return None;
        }
        if let Err(rejection) = head::check_http2(stream.req_header(), limits) {
            if rejection.status == 400 {
                self.count_fault();
            }
            self.reject(stream, rejection.response());
            return None;
        }
        let client = self.client(&stream);
        if let Err(wait) = gateway.clients.request(client.counted) {
            self.reject(stream, too_many(wait));
            return None;
        }
        if let Some(found) = find(gateway, &stream) {
            self.respond(stream, &found.response, found.hsts, Route::FastPath);
            return None;
        }
        if let Some(found) = find_mcp_response(gateway, &mut stream, client.counted) {
            stream.drop_early_body();
            self.respond(stream, &found.response, found.hsts, Route::FastPath);
            return None;
        }
        let held = HeldHead::new(&self.heads, stream.head_bytes());
        if held.is_over(limits.stream_heads_bytes_max) {
            gateway.metrics.stream_faults.inc();
            stream.shutdown_with_reason(Reason::REFUSED_STREAM);
            return None;
        }
        let open = OpenStream {
            head: held,
            open: self.hold_open(),
        };
        let host = fast_path_host(gateway, stream.req_header());
        let planned = host.and_then(|host| {
            let direct = (gateway, &*self.handler.direct);
            PlannedStream::of(direct, &stream, host, client, &mut self.last_group)
        });
        Some(Box::new(Begun {
            stream,
            planned,
            client,
            since: self.last_stream.into_std(),
            open,
            resets: Arc::clone(&self.resets),
        }))
    }

    /// Keeps the connection open for a task. The parts are dropped in this order: when no task
    /// is left, the time of the end is known.
    fn hold_open(&self) -> (Busy, TaskTrackerToken) {
        (self.activity.begin(), self.open.token())
    }

    /// Returns where a request comes from.
    fn client(&self, stream: &Http2Stream) -> access::Client {
        let client = self.info.client();
        let lines = || {
            let lines = stream.req_header().headers.get_all("x-forwarded-for");
            lines.iter().map(header::HeaderValue::as_bytes)
        };
        let counted = self.handler.gateway.clients.of_request(client.peer, lines);
        access::Client { counted, ..client }
    }

    /// Counts a malformed stream, and ends a connection that has brought too many.
    fn count_fault(&mut self) {
        let gateway = &self.handler.gateway;
        gateway.metrics.stream_faults.inc();
        self.faults += 1;
        if self.has_too_many_faults() {
            self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
        }
    }

    /// Returns whether too many streams were malformed, or soon reset.
    ///
    /// A reset costs the client nothing, and the gateway a request to a server (CVE-2023-44487). But
    /// browsers reset streams too: a reader leaves a page, or types more of a search. So half of all
    /// streams may be reset.
    fn has_too_many_faults(&self) -> bool {
        let resets = self.resets.load(Ordering::Relaxed);
        let resets = resets.saturating_sub(self.streams / 2);
        self.faults.saturating_add(resets) > self.handler.gateway.limits.stream_faults_max
    }

    /// Returns whether the client has sent as many streams as a connection may have.
    fn is_used_up(&self) -> bool {
        let max = self.handler.gateway.limits.requests_per_connection_max;
        max > 0 && self.streams >= max
    }

    /// Returns whether the client has sent more streams after that than can have been under way when
    /// `GOAWAY` was sent.
    fn ignores_goaway(&self) -> bool {
        let limits = &self.handler.gateway.limits;
        let max = limits.requests_per_connection_max;
        max > 0 && self.streams > max.saturating_add(limits.streams_max)
    }

    /// Rejects a request.
    fn reject(&mut self, stream: Http2Stream, response: Response) {
        let host = host_of(stream.req_header()).unwrap_or_default();
        let hsts = self.handler.gateway.hsts(host);
        let ready = MaybeCached::Built(response);
        self.respond(stream, &ready, hsts, Route::Rejected);
    }

    /// Responds in the loop itself.
    ///
    /// A task sends a body that is larger than the client's window.
    fn respond(
        &mut self,
        mut session: Http2Stream,
        ready: &MaybeCached,
        hsts: Option<Hsts>,
        route: Route,
    ) {
        let response = ready.response();
        let gateway = &self.handler.gateway;
        let since = self.last_stream;
        let content = match session.req_header().method == http::Method::HEAD {
            true => Content::HeadOnly,
            false => Content::Whole,
        };
        let length = response.body_bytes(content);
        self.last_body_bytes = length;
        let mut fields = ready.http2_fields();
        if let Some(hsts) = hsts {
            fields.insert(header::STRICT_TRANSPORT_SECURITY, hsts_value(hsts));
        }
        let sent = session.send_own_head(response.status, fields, length == 0);
        if sent.is_err() {
            return;
        }
        if length > 0
            && let Some(mut stream) = session.take_response_body_writer()
            && let Some(body) = response.body.memory().cloned()
        {
            stream.reserve_capacity(length);
            if stream.capacity() >= length {
                // The client may have reset the stream; then it does not want the body.
                let _reset = stream.send_data(body, true);
            } else {
                let mut write_rate = WriteRate::of_stream(&gateway.limits, &gateway.metrics);
                let held = self.hold_open();
                tokio::spawn(async move {
                    // A client that is too slow is counted; the stream is reset.
                    let _sent = send(&mut stream, body, true, &mut write_rate).await;
                    drop(held);
                });
            }
        }
        let took = since.elapsed();
        gateway.metrics.answered(route, response.status, took);
        let outcome = Outcome {
            route,
            status: response.status,
            bytes: length as u64,
            took,
            end: match route {
                Route::Rejected => End::of_status(response.status),
                _ => End::Complete,
            },
            waits: Waits::default(),
            copy_age: None,
        };
        let client = self.client(&session);
        gateway.log(client, &logged(session.req_header()), outcome);
        if !session.is_body_done() {
            let gateway = Arc::clone(gateway);
            let held = self.hold_open();
            tokio::spawn(async move {
                session.discard_body(&gateway).await;
                drop(held);
            });
        }
    }
}

fn options(limits: &Limits) -> Builder {
    let mut options = Builder::new();
    options
        .max_concurrent_streams(limits.streams_max)
        .max_send_buffer_size(SEND_BUFFER_BYTES_MAX)
        .max_header_list_size(u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX))
        .max_local_error_reset_streams(Some(limits.stream_faults_max as usize));
    options
}

/// Finds the response if the fast path can handle the request.
fn find(gateway: &Gateway, session: &Http2Stream) -> Option<FastResponse> {
    let request = session.req_header();
    let has_length = request.headers.contains_key(header::CONTENT_LENGTH);
    if !session.is_body_done() || has_length {
        return None;
    }
    let host = fast_path_host(gateway, request)?;
    with_headers(request, |headers| fast_path::find(gateway, headers, host))
}

/// Finds the response to a message to an MCP server, if the fast path can give it and the whole
/// message has arrived.
fn find_mcp_response(
    gateway: &Gateway,
    stream: &mut Http2Stream,
    client: IpAddr,
) -> Option<FastResponse> {
    let request = stream.req_header();
    let length = announced(request)?;
    let host = fast_path_host(gateway, request)?;
    let is_message = (1..=mcp::FAST_BODY_BYTES_MAX).contains(&length)
        && with_headers(request, |headers| mcp::is_message(gateway, headers, host));
    if !is_message {
        return None;
    }
    let body = stream.whole_body(usize::try_from(length).ok()?)?;
    let request = stream.req_header();
    let host = fast_path_host(gateway, request)?;
    with_headers(request, |headers| {
        mcp::find(gateway, headers, host, &body, client)
    })
}

/// Returns the host of a request that the fast path may handle, in its normal form.
fn fast_path_host<'r>(gateway: &Gateway, request: &'r RequestHeader) -> Option<&'r str> {
    let needs_proxy_path = |name| PROXY_PATH_FIELDS.contains(name);
    if !gateway.fast_path || request.headers.keys().any(needs_proxy_path) {
        return None;
    }
    match site::normalise(request.uri.authority()?.as_str()) {
        Ok(Cow::Borrowed(host)) => Some(host),
        _ => None,
    }
}

/// Returns the header of a response of the gateway, with its `Strict-Transport-Security`.
pub(super) fn header_of(hsts: Option<Hsts>, response: &Response) -> ResponseHeader {
    let mut header = response.response_header(Version::HTTP_2);
    if let Some(hsts) = hsts {
        let name = header::STRICT_TRANSPORT_SECURITY;
        header
            .insert_header(name, hsts_value(hsts))
            .expect("a name and a value that are valid");
    }
    header
}

fn hsts_value(hsts: Hsts) -> HeaderValue {
    HeaderValue::try_from(hsts.to_string()).expect("words and numbers are a valid value")
}

/// Sends a body, or a piece of it, as the client's window opens, and resets the stream of a client
/// that is too slow.
///
/// # Errors
///
/// When the client is too slow, or has closed the stream.
pub(super) async fn send(
    stream: &mut SendStream<Bytes>,
    mut body: Bytes,
    is_end: bool,
    write_rate: &mut WriteRate,
) -> io::Result<()> {
    while !body.is_empty() {
        let capacity = match write_rate.capacity(stream, body.len()).await {
            Ok(capacity) => capacity,
            Err(error) => {
                stream.send_reset(Reason::CANCEL);
                return Err(error);
            }
        };
        let piece = body.split_to(capacity.min(body.len()));
        let length = piece.len();
        let sent = stream.send_data(piece, is_end && body.is_empty());
        sent.map_err(|_reset| io::Error::from(io::ErrorKind::ConnectionReset))?;
        write_rate.took(length);
    }
    Ok(())
}
