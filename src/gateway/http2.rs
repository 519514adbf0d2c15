//! HTTP/2: the fast path and the proxy path for each stream.
//!
//! We accept the streams ourselves, so the loop can respond to a discovery request at once:
//! without a task, an await or pingora. A cork holds back the responses to streams that arrived
//! together, so that they leave in one write. Every other stream becomes a task on the proxy
//! path. Like pingora's own loop, this loop limits
//!
//! * open streams (`REFUSED_STREAM` above [`Limits::streams_max`]),
//! * malformed streams (`ENHANCE_YOUR_CALM` above [`Limits::stream_faults_max`]; h2 itself limits
//!   floods of resets),
//! * how long a connection without open streams stays open,
//! * how long a drain takes: it sends `GOAWAY`, then polls until the last stream has ended.
//!
//! Source: RFC 9113 §5.1.2, §5.4.1, §6.8, §8.3.
//!
//! [`Limits::streams_max`]: super::Limits::streams_max
//! [`Limits::stream_faults_max`]: super::Limits::stream_faults_max

use std::borrow::Cow;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::server::Connection as H2Connection;
use h2::{Reason, SendStream};
use http::{Version, header};
use pingora::apps::HttpServerApp as _;
use pingora::protocols::http::ServerSession;
use pingora::protocols::http::v2::server::{H2Accept, H2Options, HttpSession, handshake};
use pingora::protocols::{Digest, Stream};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::access::Outcome;
use super::connection::{ClientConnection, ConnectionInfo, Cork};
use super::fast_path;
use super::handler::ConnectionHandler;
use super::head;
use super::request::{logged, with_headers};
use super::{Gateway, Limits};
use crate::response::{MaybeCached, Response};
use crate::site;
use crate::telemetry::Route;

/// Fields that only the proxy path reads, as over HTTP/1.1.
///
/// `Host` is one of them, because a request may have it beside `:authority`.
const PROXY_PATH_FIELDS: [header::HeaderName; 6] = [
    header::CONTENT_LENGTH,
    header::TE,
    header::TRAILER,
    header::EXPECT,
    header::UPGRADE,
    header::HOST,
];

/// How many streams are accepted before the first of them gets its response.
const BATCH_MAX: usize = 64;

/// How often a connection with open streams is checked.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// An HTTP/2 connection.
struct Http2 {
    handler: Arc<ConnectionHandler>,
    connection: H2Connection<Stream, Bytes>,
    digest: Arc<Digest>,
    cork: Cork,
    info: ConnectionInfo,
    /// Counts the streams on the proxy path, and the bodies that wait for the client's window.
    open: TaskTracker,
    /// How many streams were malformed.
    faults: u32,
    last_stream: Instant,
    /// Whether `GOAWAY` was sent.
    goaway_sent: bool,
}

/// Serves an HTTP/2 connection until it is closed.
pub(super) async fn serve(handler: Arc<ConnectionHandler>, mut connection: ClientConnection) {
    let limits = Arc::clone(&handler.gateway.limits);
    let info = connection.info().clone();
    let cork = connection.cork();
    let options = options(&limits);
    let handshaking = handshake(Box::new(connection), Some(options));
    let Ok(Ok(connection)) = tokio::time::timeout(limits.head, handshaking).await else {
        handler.gateway.metrics.stream_faults.inc();
        return;
    };
    let digest = Arc::new(info.digest());
    let last_stream = Instant::now();
    Http2 {
        handler,
        connection,
        digest,
        cork,
        info,
        open: TaskTracker::new(),
        faults: 0,
        last_stream,
        goaway_sent: false,
    }
    .run()
    .await;
}

impl Http2 {
    async fn run(mut self) {
        let gateway = Arc::clone(&self.handler.gateway);
        let mut idle = Box::pin(tokio::time::sleep(gateway.limits.idle));
        let mut draining = Box::pin(gateway.drain.draining());
        let mut arrived = Vec::with_capacity(BATCH_MAX);
        loop {
            tokio::select! {
                biased;
                stays_open = self.arrive(&mut arrived) => if !stays_open { return },
                () = &mut draining, if !self.goaway_sent => idle.as_mut().reset(self.send_goaway()),
                () = &mut idle => match self.check_idle() {
                    Some(next) => idle.as_mut().reset(next),
                    None => return,
                },
            }
            for session in arrived.drain(..) {
                self.last_stream = Instant::now();
                self.take(session);
            }
        }
    }

    /// Waits for a stream, and collects the streams that arrived with it.
    ///
    /// Returns whether the connection stays open.
    async fn arrive(&mut self, arrived: &mut Vec<HttpSession>) -> bool {
        let Self {
            handler,
            connection,
            digest,
            cork,
            faults,
            ..
        } = self;
        loop {
            let has_some = !arrived.is_empty();
            let accepted = {
                // `from_h2_conn` can be dropped at any await; pingora's own loop does this too.
                let mut accept =
                    std::pin::pin!(HttpSession::from_h2_conn(connection, Arc::clone(digest)));
                std::future::poll_fn(|cx| {
                    cork.set(true);
                    let first = accept.as_mut().poll(cx);
                    if has_some || first.is_ready() {
                        return Poll::Ready(first);
                    }
                    // No more streams have arrived: write the responses that are held back.
                    cork.set(false);
                    accept.as_mut().poll(cx).map(Poll::Ready)
                })
                .await
            };
            match accepted {
                Poll::Ready(Ok(Some(H2Accept::Session(session)))) => arrived.push(session),
                Poll::Ready(Ok(Some(H2Accept::Rejected))) => {
                    handler.gateway.metrics.stream_faults.inc();
                    *faults += 1;
                    if *faults > handler.gateway.limits.stream_faults_max {
                        connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                    }
                }
                Poll::Ready(Ok(None)) => return false,
                Poll::Ready(Err(error)) => {
                    // Only an error of the protocol counts; a connection that the client closed
                    // does not.
                    let fault = error.root_cause().downcast_ref::<h2::Error>();
                    if fault.is_some_and(|fault| !fault.is_io()) {
                        handler.gateway.metrics.stream_faults.inc();
                    }
                    return false;
                }
                Poll::Pending => return true,
            }
            if arrived.len() == BATCH_MAX {
                return true;
            }
        }
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

    /// Begins to close a connection that has been idle for too long.
    ///
    /// Returns when to check again; `None` if the connection must be dropped.
    fn check_idle(&mut self) -> Option<Instant> {
        let idle = self.handler.gateway.limits.idle;
        let quiet = self.last_stream.elapsed();
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

    /// Chooses between the fast path and the proxy path.
    fn take(&self, mut session: HttpSession) {
        let gateway = &self.handler.gateway;
        if self.open.len() >= gateway.limits.streams_max as usize {
            gateway.metrics.stream_faults.inc();
            session.shutdown_with_reason(Reason::REFUSED_STREAM);
            return;
        }
        if let Err(rejection) = head::check_http2(session.req_header(), &gateway.limits) {
            let response = rejection.response();
            return self.respond(session, &response, Route::Rejected);
        }
        match find(gateway, &session) {
            Some(found) => self.respond(session, found.response(), Route::FastPath),
            None => proxy(&self.handler, session, self.open.token()),
        }
    }

    /// Responds in the loop itself.
    ///
    /// A task sends a body that is larger than the client's window.
    fn respond(&self, mut session: HttpSession, response: &Response, route: Route) {
        let gateway = &self.handler.gateway;
        let since = Instant::now();
        let content = logged(session.req_header()).content();
        let length = response.body_bytes(content);
        let header = Box::new(response.response_header(Version::HTTP_2));
        if session.write_response_header(header, length == 0).is_err() {
            return;
        }
        if length > 0
            && let Some(mut stream) = session.take_response_body_writer()
        {
            stream.reserve_capacity(length);
            let body = response.body.clone();
            if stream.capacity() >= length {
                // The client may have reset the stream; then it does not want the body.
                let _reset = stream.send_data(body, true);
            } else {
                let timeout = gateway.limits.write;
                let open = self.open.token();
                tokio::spawn(async move {
                    send(stream, body, timeout).await;
                    drop(open);
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
        };
        gateway.log(self.info.client(), &logged(session.req_header()), outcome);
    }
}

fn options(limits: &Limits) -> H2Options {
    let mut options = H2Options::new();
    options
        .max_concurrent_streams(limits.streams_max)
        .max_header_list_size(u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX))
        .max_local_error_reset_streams(Some(limits.stream_faults_max as usize));
    options
}

/// Serves a stream on the proxy path, in a task.
fn proxy(handler: &Arc<ConnectionHandler>, session: HttpSession, open: TaskTrackerToken) {
    let handler = Arc::clone(handler);
    tokio::spawn(async move {
        let mut session = ServerSession::new_http2(session);
        session.set_read_timeout(Some(handler.gateway.limits.body));
        session.set_write_timeout(Some(handler.gateway.limits.write));
        Box::pin(handler.proxy.process_new_http(session, &handler.shutdown)).await;
        drop(open);
    });
}

/// Finds the response if the fast path can handle the request.
fn find(gateway: &Gateway, session: &HttpSession) -> Option<MaybeCached> {
    let request = session.req_header();
    let needs_proxy_path = || {
        PROXY_PATH_FIELDS
            .iter()
            .any(|name| request.headers.contains_key(name))
    };
    if !gateway.fast_path || !session.is_body_empty() || needs_proxy_path() {
        return None;
    }
    let Ok(Cow::Borrowed(host)) = site::normalise(request.uri.authority()?.as_str()) else {
        return None;
    };
    with_headers(request, |headers| fast_path::find(gateway, headers, host))
}

/// Sends a body as the client's window opens. The window may stay closed for `timeout`.
async fn send(mut stream: SendStream<Bytes>, mut body: Bytes, timeout: Duration) {
    while !body.is_empty() {
        stream.reserve_capacity(body.len());
        let opened =
            tokio::time::timeout(timeout, std::future::poll_fn(|cx| stream.poll_capacity(cx)))
                .await;
        let Ok(Some(Ok(capacity))) = opened else {
            stream.send_reset(Reason::CANCEL);
            return;
        };
        let piece = body.split_to(capacity.min(body.len()));
        if stream.send_data(piece, body.is_empty()).is_err() {
            return;
        }
    }
}
