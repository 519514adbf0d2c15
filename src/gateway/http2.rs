//! HTTP/2: the two lanes, for each stream.
//!
//! The loop that accepts streams is ours, so that a discovery request is answered in it at
//! once: no task, no await, no pingora. Every other stream is a task of its own in the
//! proxy lane. What pingora's own loop watches over, this one does too:
//!
//! * streams that are open at once (`REFUSED_STREAM` beyond [`Limits::streams_max`]),
//! * streams that were never requests (`ENHANCE_YOUR_CALM` beyond
//!   [`Limits::stream_faults_max`]); floods of resets are h2's own limits,
//! * idle connections, which have no stream open,
//! * the drain: `GOAWAY`, then polling until the last stream has ended.
//!
//! Source: RFC 9113 §5.1.2, §5.4.1, §6.8, §8.3.
//!
//! [`Limits::streams_max`]: super::Limits::streams_max
//! [`Limits::stream_faults_max`]: super::Limits::stream_faults_max

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http::{HeaderMap, HeaderValue, Method, header};
use pingora::apps::HttpServerApp as _;
use pingora::protocols::http::ServerSession;
use pingora::protocols::http::v2::server::{H2Accept, H2Options, HttpSession, handshake};

use super::access::Line;
use super::express::content_of;
use super::front::Front;
use super::head::log_text;
use super::wire::{Facts, Wire};
use super::{Gateway, Limits};
use crate::answer::encoding::Accepted;
use crate::answer::{Answer, Conditions};
use crate::discovery::paths;
use crate::index::Ask;
use crate::site;
use crate::telemetry::Route;

/// Fields that are left to the proxy lane, as in HTTP/1.1.
const BARRED: [header::HeaderName; 10] = [
    header::CONTENT_LENGTH,
    header::TE,
    header::TRAILER,
    header::EXPECT,
    header::RANGE,
    header::IF_RANGE,
    header::IF_MATCH,
    header::IF_UNMODIFIED_SINCE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Counts the streams that are open in the proxy lane.
#[derive(Clone, Debug, Default)]
struct Live(Arc<AtomicUsize>);

/// One of them.
struct LiveStream(Live);

/// Serves an HTTP/2 connection to its end.
pub(super) async fn serve(front: Arc<Front>, wire: Wire) {
    let gateway = Arc::clone(&front.gateway);
    let limits = Arc::clone(&gateway.limits);
    let facts = wire.facts().clone();
    let digest = Arc::new(facts.digest());
    let options = options(&limits);
    let Ok(Ok(mut connection)) =
        tokio::time::timeout(limits.head, handshake(Box::new(wire), Some(options))).await
    else {
        gateway.metrics.stream_faults.inc();
        return;
    };
    let live = Live::default();
    let mut faults = 0;
    let mut last_stream = Instant::now();
    let mut is_draining = false;
    let mut idle = Box::pin(tokio::time::sleep(limits.idle));
    let mut draining = Box::pin(gateway.drain.draining());
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = HttpSession::from_h2_conn(&mut connection, Arc::clone(&digest)) => accepted,
            () = &mut draining, if !is_draining => {
                is_draining = true;
                connection.graceful_shutdown();
                continue;
            }
            () = &mut idle => {
                let quiet = last_stream.elapsed();
                let rest = limits.idle.saturating_sub(quiet);
                if live.count() == 0 && rest.is_zero() {
                    gateway.metrics.timeouts.inc();
                    connection.graceful_shutdown();
                }
                idle.as_mut().reset(tokio::time::Instant::now() + rest.max(Duration::from_secs(1)));
                continue;
            }
        };
        let mut session = match accepted {
            Ok(Some(H2Accept::Session(session))) => session,
            Ok(Some(H2Accept::Rejected)) => {
                gateway.metrics.stream_faults.inc();
                faults += 1;
                if faults > limits.stream_faults_max {
                    connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                }
                continue;
            }
            Ok(None) | Err(_) => return,
        };
        last_stream = Instant::now();
        if live.count() >= limits.streams_max as usize {
            gateway.metrics.stream_faults.inc();
            session.shutdown_with_reason(Reason::REFUSED_STREAM);
            continue;
        }
        match answer(&gateway, &session) {
            Some(answer) => respond(&gateway, &facts, session, &answer, last_stream),
            None => relay(&front, session, LiveStream::of(&live)),
        }
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

/// Hands a stream to the proxy lane, as a task of its own.
fn relay(front: &Arc<Front>, session: HttpSession, live: LiveStream) {
    let front = Arc::clone(front);
    tokio::spawn(async move {
        let mut session = ServerSession::new_http2(session);
        session.set_read_timeout(Some(front.gateway.limits.body));
        session.set_write_timeout(Some(front.gateway.limits.write));
        Box::pin(front.proxy.process_new_http(session, &front.shutdown)).await;
        drop(live);
    });
}

/// Finds the answer to a stream that the express lane takes.
fn answer(gateway: &Gateway, session: &HttpSession) -> Option<Answer> {
    let request = session.req_header();
    let takes = gateway.express
        && session.is_body_empty()
        && matches!(request.method, Method::GET | Method::HEAD)
        && BARRED
            .iter()
            .all(|name| !request.headers.contains_key(name))
        && !request.headers.contains_key(header::HOST);
    if !takes || request.uri.query().is_some() {
        return None;
    }
    let Ok(Cow::Borrowed(host)) = site::normalise(request.uri.authority()?.as_str()) else {
        return None;
    };
    let accept_encoding = only(&request.headers, &header::ACCEPT_ENCODING)?;
    let if_none_match = only(&request.headers, &header::IF_NONE_MATCH)?;
    if if_none_match.is_none() && request.headers.contains_key(header::IF_MODIFIED_SINCE) {
        return None;
    }
    let ask = Ask {
        accepted: accept_encoding.map_or(Accepted::IDENTITY_ONLY, |field| {
            Accepted::parse(field.as_bytes())
        }),
        conditions: Conditions {
            if_none_match: if_none_match.map(HeaderValue::as_bytes),
            ..Conditions::default()
        },
        ..Ask::PLAIN
    };
    gateway
        .index
        .with(host, |served| {
            let document = paths::find(request.uri.path(), &served.site.base_path)?;
            let answer = gateway.index.answer(served, host, document, &ask);
            (answer.status < 400).then_some(answer)
        })
        .flatten()
}

/// Returns the only line of a field, `Some(None)` without one, and `None` when there are more.
fn only<'h>(headers: &'h HeaderMap, name: &header::HeaderName) -> Option<Option<&'h HeaderValue>> {
    let mut lines = headers.get_all(name).iter();
    let first = lines.next();
    lines.next().is_none().then_some(first)
}

/// Answers in the loop itself. A body that the window does not take whole goes to a task.
fn respond(
    gateway: &Arc<Gateway>,
    facts: &Facts,
    mut session: HttpSession,
    answer: &Answer,
    since: Instant,
) {
    let content = content_of(session.req_header().method.as_str());
    let length = answer.body_bytes(content);
    if session
        .write_response_header(Box::new(answer.response_header()), length == 0)
        .is_err()
    {
        return;
    }
    if length > 0
        && let Some(mut stream) = session.take_response_body_writer()
    {
        stream.reserve_capacity(length);
        let body = answer.body.clone();
        if stream.capacity() >= length {
            // The stream may have been reset meanwhile; then nobody waits for the body.
            let _reset = stream.send_data(body, true);
        } else {
            let patience = gateway.limits.write;
            tokio::spawn(async move { send(stream, body, patience).await });
        }
    }
    let took = since.elapsed();
    gateway
        .metrics
        .answered(Route::Express, answer.status, took);
    if gateway.access.is_on() {
        let request = session.req_header();
        gateway.access.log(&Line {
            time: gateway.clock.now(),
            peer: facts.peer.ip(),
            protocol: "h2",
            tls: facts.is_tls(),
            method: request.method.as_str(),
            host: request
                .uri
                .authority()
                .map_or("", http::uri::Authority::as_str),
            path: request.uri.path(),
            status: answer.status,
            bytes: length as u64,
            route: Route::Express,
            took,
            agent: request
                .headers
                .get(header::USER_AGENT)
                .map_or("", |agent| log_text(agent.as_bytes())),
        });
    }
}

/// Sends a body as fast as the client's window opens, which must not stand still for longer
/// than `patience`.
async fn send(mut stream: SendStream<Bytes>, mut body: Bytes, patience: Duration) {
    while !body.is_empty() {
        stream.reserve_capacity(body.len());
        let opened = tokio::time::timeout(
            patience,
            std::future::poll_fn(|cx| stream.poll_capacity(cx)),
        )
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

// === impl Live ===

impl Live {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

// === impl LiveStream ===

impl LiveStream {
    fn of(live: &Live) -> Self {
        live.0.fetch_add(1, Ordering::Relaxed);
        Self(live.clone())
    }
}

impl Drop for LiveStream {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
