//! The proxy path: pingora's phases.
//!
//! | phase | what happens |
//! |---|---|
//! | `request_filter` | [`route`](super::route); responds for discovery, the admin API, MCP servers and the embedded origin |
//! | `upstream_peer` | address, TLS and timeouts of the upstream |
//! | `upstream_request_filter` | `Host` and the forwarding fields |
//! | `upstream_response_filter` | limits interim responses |
//! | `upstream_response_filter`, `upstream_response_body_filter` | collect the response for a copy |
//! | `response_filter` | changes the fields that this client or this host must not get |
//! | `fail_to_proxy` | a copy of an earlier response, or 502, 504 or a client error, as a problem |
//! | `logging` | the access line and the counters |
//!
//! | module | does |
//! |---|---|
//! | `respond` | responds where the gateway does so itself |
//! | `exchange` | chooses the server, and writes the headers in both directions |
//! | `copy` | keeps copies of responses, and sends one in the place of a failed response |
//! | `failure` | tries again, or responds with an error |
//!
//! **Limits:** pingora reads at most 256 fields of an upstream's response. If there are more, the
//! client gets 502. pingora drops the trailers of HTTP/1.1, so the field `Trailer` is removed too.
//! If an upstream responds 101 before pingora has seen the end of the (empty) request body, the
//! exchange ends and the connection is closed. Only an upstream on the same machine is fast enough
//! for this (microseconds).

mod respond;
mod copy;
mod exchange;
mod failure;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Version, header};
use pingora::ErrorType;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::prelude::{Error, HttpPeer, Result};
use pingora::protocols::Digest;
use pingora::proxy::{FailToProxy, ProxyHttp, Session};

use super::Gateway;
use super::access::{self, Outcome};
use super::balance::{HeldPlace, Tried};
use super::copies::{Asked, Collecting, FoundCopy};
use super::ending::{self, End, Stopwatch};
use super::interim::{self, Interim};
use super::reads::Reads;
use super::request::logged;
use super::route::Target;
use super::single_request::SingleRequestStream;
use super::turns::Turns;
use crate::index::Served;
use crate::response::RequestHeaders;
use crate::response::trace::Made;
use crate::telemetry::{Route, panics};

/// The gateway as pingora's proxy.
#[derive(Debug)]
pub(super) struct Proxy {
    gateway: Arc<Gateway>,
    reads: Arc<Reads>,
    /// Runs the calls of MCP servers. They take longer than reads of files, and must not delay
    /// them.
    tools: Turns,
    searches: Turns,
}

/// The state of one request, shared by the phases.
#[derive(Debug)]
pub(super) struct RequestCtx {
    since: Instant,
    route: Route,
    served: Option<Arc<Served>>,
    retries: usize,
    interim: Interim,
    /// The place at the server that has the request.
    held: Option<HeldPlace>,
    tried: Tried,
    /// Whether the response is sent after pingora has finished, and logged then.
    is_handed_over: bool,
    /// Runs since the upstream was first chosen.
    stopwatch: Option<Stopwatch>,
    /// How the request ended, if not with a complete response.
    end: Option<End>,
    /// Set if a copy of the response may be kept or used.
    copy: Option<Asked>,
    /// Collects the response for a copy.
    collecting: Option<Collecting>,
    /// The copy that replaces the response of a server that has failed.
    found: Option<FoundCopy>,
    /// The status of the response that a copy replaces.
    replaced: Option<u16>,
    /// The age of the copy that was sent.
    copy_age: Option<u64>,
    /// The trace and the id that were made for the request to an upstream.
    made: Option<Made>,
}

// === impl RequestCtx ===

impl RequestCtx {
    /// Returns the part of a request's header that its access line shows.
    fn logged<'r>(&self, request: &'r RequestHeader) -> RequestHeaders<'r> {
        let logged = logged(request);
        match self.made {
            Some(made) => RequestHeaders {
                trace: made.trace.or(logged.trace),
                made_id: made.request_id,
                ..logged
            },
            None => logged,
        }
    }

    /// Returns whether the site has more servers than the server that has the request.
    fn tries_others(&self) -> bool {
        let served = self.served.as_deref().and_then(Target::upstream);
        served.is_some_and(|upstream| !upstream.others.is_empty())
    }

    /// Counts the failure of the server that has the request. Returns whether the request is sent
    /// again, if that is allowed otherwise.
    fn leave(&mut self, is_allowed: bool) -> bool {
        let held = self.held.take();
        held.is_some_and(|held| self.tried.leave(held, is_allowed))
    }
}

// === impl Proxy ===

impl Proxy {
    pub(super) fn new(gateway: Arc<Gateway>, reads: Arc<Reads>) -> Self {
        Self {
            gateway,
            reads,
            tools: Turns::of_tools(),
            searches: Turns::of_searches(),
        }
    }

    /// Returns the client that a request counts for.
    fn counted(&self, session: &Session) -> IpAddr {
        let clients = &self.gateway.clients;
        clients.of_request(client_of(session).peer, || {
            let lines = session.req_header().headers.get_all("x-forwarded-for");
            lines.iter().map(header::HeaderValue::as_bytes)
        })
    }

    fn pseudonym(&self) -> &str {
        self.gateway.index.service().domain.as_str()
    }

    /// Returns the client of a request, and the client that it counts for.
    fn client_of(&self, session: &Session) -> access::Client {
        access::Client {
            counted: self.counted(session),
            ..client_of(session)
        }
    }
}

#[async_trait]
impl ProxyHttp for Proxy {
    type CTX = RequestCtx;

    fn new_ctx(&self) -> RequestCtx {
        RequestCtx {
            since: Instant::now(),
            route: Route::Rejected,
            served: None,
            retries: 0,
            interim: Interim::default(),
            held: None,
            tried: Tried::default(),
            is_handed_over: false,
            stopwatch: None,
            end: None,
            copy: None,
            collecting: None,
            found: None,
            replaced: None,
            copy_age: None,
            made: None,
        }
    }

    #[cfg(test)]
    async fn early_request_filter(&self, session: &mut Session, _: &mut RequestCtx) -> Result<()> {
        panic_in(session, "early_request_filter");
        Ok(())
    }

    async fn request_filter(&self, session: &mut Session, ctx: &mut RequestCtx) -> Result<bool> {
        guarded(self.respond(session, ctx)).await
    }

    async fn upstream_peer(
        &self,
        session: &mut Session,
        ctx: &mut RequestCtx,
    ) -> Result<Box<HttpPeer>> {
        ctx.stopwatch
            .get_or_insert_with(|| Stopwatch::start(Instant::now()));
        guarded(self.choose_peer(session, ctx)).await
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        request: &mut RequestHeader,
        ctx: &mut RequestCtx,
    ) -> Result<()> {
        guarded(self.write_request(session, request, ctx)).await
    }

    async fn upstream_response_filter(
        &self,
        _session: &mut Session,
        response: &mut ResponseHeader,
        ctx: &mut RequestCtx,
    ) -> Result<()> {
        exchange::check_codings(response)?;
        if let Some(held) = &mut ctx.held {
            held.answered(response.status.as_u16());
        }
        if response.status.is_informational() {
            let fields = fields_of(&response.headers);
            let bytes = fields.map(|(name, value)| name.len() + value.len()).sum();
            if !ctx.interim.add(bytes) {
                let kind = ErrorType::InvalidHTTPHeader;
                return Err(Error::explain(kind, interim::TOO_MANY).into_up());
            }
        }
        guarded(self.observe(response, ctx)).await
    }

    fn upstream_response_body_filter(
        &self,
        _session: &mut Session,
        body: &mut Option<Bytes>,
        _is_end: bool,
        ctx: &mut RequestCtx,
    ) -> Result<Option<Duration>> {
        if let (Some(collecting), Some(piece)) = (&mut ctx.collecting, body)
            && !collecting.push(piece)
        {
            ctx.collecting = None;
        }
        Ok(None)
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
        ctx: &mut RequestCtx,
    ) -> Result<()> {
        let is_final = !response.status.is_informational()
            || response.status == http::StatusCode::SWITCHING_PROTOCOLS;
        if let Some(stopwatch) = ctx.stopwatch.as_mut().filter(|_| is_final) {
            stopwatch.answered();
        }
        guarded(self.write_response(session, response)).await
    }

    async fn connected_to_upstream(
        &self,
        _session: &mut Session,
        _is_reused: bool,
        _peer: &HttpPeer,
        _fd: std::os::unix::io::RawFd,
        _digest: Option<&Digest>,
        ctx: &mut RequestCtx,
    ) -> Result<()> {
        if let Some(stopwatch) = &mut ctx.stopwatch {
            stopwatch.connected();
        }
        Ok(())
    }

    fn fail_to_connect(
        &self,
        _session: &mut Session,
        _peer: &HttpPeer,
        ctx: &mut RequestCtx,
        error: Box<Error>,
    ) -> Box<Error> {
        self.not_connected(ctx, error)
    }

    fn error_while_proxy(
        &self,
        peer: &HttpPeer,
        session: &mut Session,
        error: Box<Error>,
        ctx: &mut RequestCtx,
        is_reused: bool,
    ) -> Box<Error> {
        let error = error.more_context(format!("Peer: {peer}"));
        self.interrupted(session, error, ctx, is_reused)
    }

    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        ctx: &mut RequestCtx,
    ) -> FailToProxy {
        self.give_up(session, error, ctx).await
    }

    fn suppress_error_log(&self, _session: &Session, _ctx: &RequestCtx, _error: &Error) -> bool {
        true
    }

    async fn logging(&self, session: &mut Session, error: Option<&Error>, ctx: &mut RequestCtx) {
        #[cfg(test)]
        panic_in(session, "logging");
        let gateway = &self.gateway;
        let status = session
            .response_written()
            .map_or(0, |response| response.status.as_u16());
        let now = Instant::now();
        let took: Duration = now - ctx.since;
        // An error that no phase was told of is the client's: its connection has ended.
        let end = match (ctx.end, error) {
            (Some(end), _) => end,
            (None, Some(error)) if ending::is_of_client(error) => End::of_client_error(error),
            (None, Some(_)) => End::Failed,
            (None, None) => End::Complete,
        };
        if let Some(mut held) = ctx.held.take() {
            let is_answered = ctx.stopwatch.is_some_and(|it| it.is_answered());
            let status = ctx.replaced.unwrap_or(status);
            held.report(end, if is_answered { status } else { 0 });
        }
        if let (Some(copies), Some(collected), End::Complete) =
            (&gateway.copies, ctx.collecting.take(), end)
        {
            copies.keep(collected);
        }
        if ctx.is_handed_over {
            return;
        }
        gateway.metrics.answered(ctx.route, status, took);
        let stopwatch = ctx.stopwatch.map(|stopwatch| stopwatch.stop(now));
        let outcome = Outcome {
            route: ctx.route,
            status,
            bytes: session.body_bytes_sent() as u64,
            took,
            end,
            waits: stopwatch.unwrap_or_default(),
            copy_age: ctx.copy_age,
        };
        let client = self.client_of(session);
        gateway.log(client, &ctx.logged(session.req_header()), outcome);
    }
}

/// Returns the fields of a message as bytes.
fn fields_of(headers: &http::HeaderMap) -> impl Iterator<Item = (&[u8], &[u8])> {
    let fields = headers.iter();
    fields.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
}

/// Runs a phase; a panic in it ends only this request, with 500.
async fn guarded<T>(phase: impl Future<Output = Result<T>>) -> Result<T> {
    panics::caught(phase).await.unwrap_or_else(|panic| {
        let text = panics::message(&*panic).to_owned();
        Error::e_explain(ErrorType::InternalError, format!("a panic: {text}"))
    })
}

/// Returns the client of a request, for the access log.
fn client_of(session: &Session) -> access::Client {
    let address = session.client_addr().and_then(|address| address.as_inet());
    let peer = address.map_or(Ipv4Addr::UNSPECIFIED.into(), SocketAddr::ip);
    access::Client {
        peer,
        counted: peer,
        protocol: match session.req_header().version {
            Version::HTTP_10 => "http/1.0",
            Version::HTTP_2 => "h2",
            _ => "http/1.1",
        },
        tls: is_tls(session),
    }
}

/// Returns whether the connection of the client is encrypted.
fn is_tls(session: &Session) -> bool {
    let digest = session.digest();
    digest.is_some_and(|digest| digest.ssl_digest.is_some())
}

/// Returns the stream of a request; `None` over HTTP/2.
fn single_request_of(session: &Session) -> Option<&SingleRequestStream> {
    session.as_downstream().stream()?.as_any().downcast_ref()
}

/// Panics in a phase that has no guard of its own, if a test's request names it.
#[cfg(test)]
fn panic_in(session: &Session, phase: &str) {
    let wanted = session.req_header().headers.get("x-test-panic");
    assert!(
        wanted.is_none_or(|wanted| wanted != phase),
        "a panic in {phase}"
    );
}

#[cfg(test)]
mod tests {
    use pingora::ErrorSource;

    use super::*;

    #[tokio::test]
    async fn a_panic_in_a_phase_is_a_500() {
        assert_eq!(guarded(async { Ok(7) }).await.unwrap(), 7);
        let error = guarded(async {
            tokio::task::yield_now().await;
            if true {
                panic!("a value");
            }
            Ok(7)
        });
        let error = error.await.unwrap_err();
        assert_eq!(error.etype(), &ErrorType::InternalError);
        assert_eq!(error.esource(), &ErrorSource::Unset);
        assert!(error.to_string().contains("a panic: a value"), "{error}");
    }
}
