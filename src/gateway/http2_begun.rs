//! Streams of HTTP/2 that the loop of their connection has not answered at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use h2::Reason;
use pingora::apps::HttpServerApp as _;
use pingora::protocols::http::ServerSession;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::access::{self, Outcome};
use super::direct::PlannedStream;
use super::ending::{End, Waits};
use super::handler::ConnectionHandler;
use super::http2::header_of;
use super::http2_stream::Http2Stream;
use super::open::Busy;
use super::request::logged;
use super::return_slot::ReturnSlot;
use super::write_rate::WriteRate;
use super::{GATEWAY_FAILED, Gateway};
use crate::response::{Problem, Response};
use crate::telemetry::{Route, panics};

/// A client that resets a stream in this time after its request has reset it soon. A client that
/// waits longer has few streams: [`Limits::streams_max`](super::Limits::streams_max) in this time.
const SOON: Duration = Duration::from_secs(1);

/// A stream that is open, until it is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "held until they are dropped")]
pub(super) struct OpenStream {
    pub(super) head: HeldHead,
    pub(super) open: (Busy, TaskTrackerToken),
}

/// A stream that the loop does not answer at once.
pub(super) struct Begun {
    pub(super) stream: Http2Stream,
    /// Set if it takes the direct path.
    pub(super) planned: Option<PlannedStream>,
    pub(super) client: access::Client,
    pub(super) since: Instant,
    pub(super) open: OpenStream,
    /// How many streams of the connection the client has soon reset.
    pub(super) resets: Arc<AtomicU32>,
}

/// Counts the bytes of a request head for as long as its stream is open.
#[derive(Debug)]
pub(super) struct HeldHead {
    all: Arc<AtomicUsize>,
    bytes: usize,
    /// How many bytes the other streams held when this one was added.
    before: usize,
}

// === impl Begun ===

impl Begun {
    /// Passes the request on. Returns the stream if the proxy path has to serve it.
    pub(super) async fn exchange(
        mut self: Box<Self>,
        handler: Arc<ConnectionHandler>,
    ) -> Option<Box<Self>> {
        let Self {
            stream,
            planned,
            since,
            resets,
            ..
        } = &mut *self;
        let parts = (&handler.gateway, &*handler.direct, &*handler.reads);
        // After a panic this stream is reset, and the others go on.
        let is_left = panics::caught(planned.as_mut()?.serve(parts, stream, *since)).await;
        if is_left.unwrap_or_default() {
            return Some(self);
        }
        count_reset(stream, *since, resets);
        None
    }

    /// Serves the stream on the proxy path.
    pub(super) async fn proxy(self: Box<Self>, handler: &Arc<ConnectionHandler>) {
        let Self {
            stream,
            planned,
            client,
            since,
            open: _open,
            resets,
        } = *self;
        drop(planned);
        let slot = ReturnSlot::new();
        let session = stream.into_session(&handler.gateway, slot.clone());
        let session = ServerSession::new_custom(Box::new(session));
        let serving = handler.proxy.process_new_http(session, &handler.shutdown);
        let is_served = panics::caught(serving).await.is_ok();
        let Some(mut stream) = slot.take() else {
            return;
        };
        count_reset(&mut stream, since, &resets);
        let gateway = &handler.gateway;
        match stream.take_handed_over() {
            _ if !is_served => fail(gateway, stream, client, since).await,
            Some(file) => {
                let reads = &handler.reads;
                file.send_http2(&mut stream, gateway, reads).await;
                stream.discard_body(gateway).await;
            }
            None => {}
        }
    }
}

/// Counts a stream if the client has reset it soon, before the end of its response.
fn count_reset(stream: &mut Http2Stream, since: Instant, resets: &AtomicU32) {
    if since.elapsed() < SOON && stream.is_reset_by_client() {
        resets.fetch_add(1, Ordering::Relaxed);
    }
}

/// Sends a response whose content is in memory, after the loop has handed its stream over. Returns
/// how long its content is.
pub(super) async fn respond_in_task(
    gateway: &Gateway,
    stream: &mut Http2Stream,
    response: &Response,
) -> u64 {
    let request = logged(stream.req_header());
    let length = response.body_bytes(request.content());
    let header = Box::new(header_of(gateway.hsts(request.host), response));
    if stream.write_response_header(header, length == 0).is_ok()
        && let Some(body) = response.body.memory().filter(|_| length > 0)
    {
        let mut write_rate = WriteRate::of_stream(&gateway.limits, &gateway.metrics);
        // A client that is too slow is counted; the stream is reset.
        let _sent = stream.send(body.clone(), true, &mut write_rate).await;
    }
    length as u64
}

/// Responds 500 on a stream whose request has panicked, or resets it if its response has begun.
async fn fail(gateway: &Gateway, mut stream: Http2Stream, client: access::Client, since: Instant) {
    if stream.is_answered() {
        return stream.shutdown_with_reason(Reason::INTERNAL_ERROR);
    }
    let response = Problem::new(500, GATEWAY_FAILED).response();
    let bytes = respond_in_task(gateway, &mut stream, &response).await;
    let took = since.elapsed();
    gateway.metrics.answered(Route::Rejected, 500, took);
    let outcome = Outcome {
        route: Route::Rejected,
        status: 500,
        bytes,
        took,
        end: End::Failed,
        waits: Waits::default(),
        copy_age: None,
    };
    gateway.log(client, &logged(stream.req_header()), outcome);
    stream.discard_body(gateway).await;
}

// === impl HeldHead ===

impl HeldHead {
    pub(super) fn new(all: &Arc<AtomicUsize>, bytes: usize) -> Self {
        Self {
            before: all.fetch_add(bytes, Ordering::Relaxed),
            all: Arc::clone(all),
            bytes,
        }
    }

    /// Returns whether all heads together are larger than `limit`. A single head is always
    /// accepted: other limits apply to it.
    pub(super) fn is_over(&self, limit: usize) -> bool {
        self.before > 0 && self.before + self.bytes > limit
    }
}

impl Drop for HeldHead {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
