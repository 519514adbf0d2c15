//! The proxy path: pingora's phases.
//!
//! | phase | what happens |
//! |---|---|
//! | `request_filter` | [`route`]; responds for discovery, the admin API, MCP servers and the embedded origin |
//! | `upstream_peer` | address, TLS and timeouts of the upstream |
//! | `upstream_request_filter` | `Host` and the forwarding fields |
//! | `upstream_response_filter`, `upstream_response_body_filter` | collect the response for a copy |
//! | `response_filter` | changes the fields that this client or this host must not get |
//! | `fail_to_proxy` | a copy of an earlier response, or 502, 504 or a client error, as a problem |
//! | `logging` | the access line and the counters |
//!
//! Connecting is retried up to [`UpstreamLimits::retries_max`] times, at another server of the site
//! if it has one ([`balance`](super::balance)). Once a request may have
//! reached the upstream, only pingora retries it, and only if the method is idempotent, the whole
//! body is still available, and the upstream has closed an idle connection.
//!
//! **Limits:** pingora reads at most 256 fields of an upstream's response. If there are more, the
//! client gets 502. pingora drops the trailers of HTTP/1.1, so the field `Trailer` is removed too.
//! If an upstream responds 101 before pingora has seen the end of the (empty) request body, the
//! exchange ends and the connection is closed. Only an upstream on the same machine is fast enough
//! for this (microseconds).
//!
//! [`UpstreamLimits::retries_max`]: super::UpstreamLimits::retries_max

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Version, header};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::prelude::{Error, HttpPeer, Result};
use pingora::protocols::Digest;
use pingora::proxy::{FailToProxy, ProxyHttp, Session};
use pingora::{ErrorSource, ErrorType, OrErr as _};

use super::access::{self, Outcome};
use super::balance::{Held, Refused, Tried};
use super::copies::{self, Asked, Collecting, Found, Reason};
use super::ending::{self, End, Stopwatch};
use super::file_response::{CopyReason, FileResponse, Logged};
use super::forward::{self, Client};
use super::http2_stream::is_event_stream;
use super::reads::Reads;
use super::request::{host_of, is_http2, logged, with_headers};
use super::respond;
use super::route::{self, Target};
use super::silence::SILENT;
use super::single_request::SingleRequestStream;
use super::upstream::{BUSY, PRIVATE_UPSTREAM, QUEUE_FULL, QUEUE_TIMEOUT};
use super::{Gateway, admin, mcp, upstream, vote};
use crate::acme::HTTP_PATH;
use crate::index::Served;
use crate::origin::{self, UnresolvedUpstream};
use crate::response::trace::{Outgoing, TraceContext};
use crate::response::{Body, Problem, Response};
use crate::site::{self, HostHeader, Hsts};
use crate::telemetry::{Route, panics};

/// How much of a request body is read before a response that does not need it.
const EARLY_BODY_BYTES_MAX: usize = 64 << 10;
/// How long such a body is waited for.
const EARLY_BODY_TIME_MAX: Duration = Duration::from_secs(1);

/// The gateway as pingora's proxy.
#[derive(Debug)]
pub(super) struct Proxy {
    gateway: Arc<Gateway>,
    reads: Arc<Reads>,
    /// Runs the calls of MCP servers. They take longer than reads of files, and must not delay
    /// them.
    tools: Reads,
    /// Runs searches.
    searches: Reads,
}

/// The state of one request, shared by the phases.
#[derive(Debug)]
pub(super) struct RequestCtx {
    since: Instant,
    route: Route,
    served: Option<Arc<Served>>,
    retries: usize,
    /// The place at the server that has the request.
    held: Option<Held>,
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
    found: Option<Found>,
    /// The status of the response that a copy replaces.
    replaced: Option<u16>,
    /// The age of the copy that was sent.
    copy_age: Option<u64>,
    /// The trace that was made for the request.
    trace: Option<TraceContext>,
}

/// The server has responded with a status that a copy replaces.
const REPLACED: ErrorType = ErrorType::Custom("ReplacedByCopy");

// === impl RequestCtx ===

impl RequestCtx {
    /// Returns whether the site has more servers than the one that has the request.
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
            tools: Reads::of_tools(),
            searches: Reads::of_searches(),
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

    fn route(&self, session: &Session) -> Target {
        let request = session.req_header();
        let Some(host) = host_of(request) else {
            let response = Problem::new(400, "the request names no host, or two").response();
            return Target::Response(Route::Rejected, Box::new(response));
        };
        with_headers(request, |headers| {
            route::route(&self.gateway.index, host, is_http2(request), headers)
        })
    }

    /// Responds with a file of the store, on a thread that may block.
    async fn embedded(&self, session: &Session, served: Arc<Served>, path: Box<str>) -> Response {
        let request = session.req_header().clone();
        let reads = match origin::is_search(&served, &path) {
            true => &self.searches,
            false => &self.reads,
        };
        let made = reads.run(move || {
            with_headers(&request, |headers| {
                let response = origin::response(&served, &path, headers);
                served.count(headers, &response);
                response
            })
        });
        made.await
            .unwrap_or_else(|| Problem::new(500, "this page cannot be made").response())
    }

    async fn respond(&self, session: &mut Session, ctx: &mut RequestCtx) -> Result<bool> {
        if session.req_header().version == Version::HTTP_10 {
            // RFC 9110 §10.1.1 and §15.2: HTTP/1.0 has no expectations and no interim responses.
            session.req_header_mut().remove_header(&header::EXPECT);
            session.set_ignore_info_resp(true);
        }
        let target = match self.challenge(session).await {
            Some(answer) => Target::Response(Route::Challenge, Box::new(answer)),
            None => match self.redirect(session) {
                Some(redirect) => Target::Response(Route::Rejected, Box::new(redirect)),
                None => self.route(session),
            },
        };
        let response = match target {
            Target::Response(route, response) => {
                ctx.route = route;
                *response
            }
            Target::OfSite(route, served, response) => {
                ctx.route = route;
                with_headers(session.req_header(), |headers| {
                    served.count(headers, &response)
                });
                *response
            }
            Target::Admin => {
                ctx.route = Route::Admin;
                match &self.gateway.admin {
                    Some(api) => admin::response(session, api, &self.gateway.trusted)
                        .await
                        .map_err(Error::into_down)?,
                    None => Problem::new(
                        503,
                        "this node is an edge; ask the admin API of the node that it follows",
                    )
                    .response(),
                }
            }
            Target::Mcp(served) => {
                ctx.route = Route::Mcp;
                let client = self.counted(session);
                mcp::respond(session, &self.gateway, served, client, &self.tools).await?
            }
            Target::Vote(served) => {
                ctx.route = Route::Origin;
                vote::respond(session, served, &self.reads).await?
            }
            Target::Embedded(served, path) => {
                ctx.route = Route::Origin;
                self.embedded(session, served, path).await
            }
            Target::Upstream(served) => {
                ctx.route = Route::Origin;
                if !forward::is_loop(session.req_header(), self.pseudonym()) {
                    ctx.copy = self.asked(session, &served);
                    ctx.served = Some(served);
                    return Ok(false);
                }
                Problem::new(508, "this request has already passed through this gateway").response()
            }
        };
        read_small_body(session).await;
        let is_file = FileResponse::file(&response, &logged(session.req_header())).is_some();
        match is_file {
            true => self.hand_over(session, response, None, ctx),
            false => self.send(session, response).await?,
        }
        Ok(true)
    }

    /// Lets the connection send a response after pingora has finished with its request.
    fn hand_over(
        &self,
        session: &mut Session,
        response: Response,
        copy: Option<CopyReason>,
        ctx: &mut RequestCtx,
    ) {
        let request = session.req_header();
        let response = FileResponse {
            route: ctx.route,
            response,
            request: Logged::of(&logged(request)),
            client: self.client_of(session),
            since: ctx.since,
            copy,
        };
        ctx.is_handed_over = true;
        if request.version == Version::HTTP_10 {
            session.set_keepalive(None);
        }
        match single_request_of(session) {
            Some(request) => request.hand_over(response),
            None => {
                let extensions = session.req_header_mut().extensions_mut();
                extensions.insert(response);
            }
        }
    }

    /// Reads what copies need to know of a request to a site's own server.
    fn asked(&self, session: &Session, served: &Served) -> Option<Asked> {
        let copies = self.gateway.copies.as_ref()?;
        let request = session.req_header();
        let host = site::normalise(host_of(request)?).ok()?;
        let target = request.uri.path_and_query()?.as_str().as_bytes();
        let client = client_of(session);
        let is_trusted = self.gateway.trusted.contains(client.peer);
        let how = (request.method.as_str(), client.tls);
        let fields = fields_of(&request.headers);
        copies.asked(&served.site, how, &host, target, is_trusted, fields)
    }

    /// Looks at the head of a server's response: a copy of it may be kept, or an earlier one may be
    /// needed.
    async fn observe(&self, response: &ResponseHeader, ctx: &mut RequestCtx) -> Result<()> {
        let (Some(copies), Some(asked), Some(served)) =
            (&self.gateway.copies, &ctx.copy, &ctx.served)
        else {
            return Ok(());
        };
        let status = response.status.as_u16();
        if response.status.is_informational() {
            return Ok(());
        }
        if copies::is_failure(status)
            && let Some(found) = copies.find(asked, &served.site).await
        {
            ctx.found = Some(found);
            ctx.replaced = Some(status);
            if let Some(stopwatch) = &mut ctx.stopwatch {
                stopwatch.answered();
            }
            return Err(Error::explain(REPLACED, "a copy replaces the response").into_up());
        }
        let fields: Vec<_> = fields_of(&response.headers).collect();
        let has = |name| response.headers.contains_key(name);
        let is_chunked = || {
            let mut last = response.headers.get_all(header::TRANSFER_ENCODING).iter();
            let last = last
                .next_back()
                .map(|last| last.as_bytes().trim_ascii_end());
            last.is_some_and(|last| last.to_ascii_lowercase().ends_with(b"chunked"))
        };
        let is_delimited = response.version == Version::HTTP_2
            || match has(header::TRANSFER_ENCODING) {
                true => is_chunked(),
                false => has(header::CONTENT_LENGTH),
            };
        ctx.collecting = copies.observe(asked, &served.site, status, is_delimited, &fields);
        Ok(())
    }

    /// Sends a copy in the place of a response that has failed, if there is one. Returns whether
    /// there is.
    async fn send_copy(&self, session: &mut Session, end: End, ctx: &mut RequestCtx) -> bool {
        let (Some(copies), Some(asked), Some(served)) =
            (&self.gateway.copies, &ctx.copy, &ctx.served)
        else {
            return false;
        };
        let found = match ctx.found.take() {
            Some(found) => Some(found),
            None if end.is_outage() => copies.find(asked, &served.site).await,
            None => return false,
        };
        let status = ctx.replaced;
        let Some(found) = found else { return false };
        let age = found.age;
        let request = session.req_header();
        let reason = Reason { end, status };
        let response = found.response(reason, self.pseudonym(), fields_of(&request.headers));
        ctx.copy_age = Some(age);
        if FileResponse::file(&response, &logged(request)).is_some() {
            let stopwatch = ctx.stopwatch.map(|it| it.stop(Instant::now()));
            let waits = stopwatch.unwrap_or_default();
            let copy = CopyReason { end, waits, age };
            self.hand_over(session, response, Some(copy), ctx);
        } else {
            let mut sent = self.send(session, response).await;
            if is_http2(session.req_header()) {
                // As for an error response: a reset could take it away.
                sent = sent.and(session.finish_body().await);
            }
            if let Err(error) = sent {
                log::debug!(target: "gateway", "send a copy: {error}");
            }
        }
        true
    }

    /// Returns the client of a request, and the client that it counts for.
    fn client_of(&self, session: &Session) -> access::Client {
        access::Client {
            counted: self.counted(session),
            ..client_of(session)
        }
    }

    /// Returns the answer to a certificate authority that asks for a proof (RFC 8555 §8.3). If this
    /// service has not asked it to, the request goes on: a site's own server may have.
    async fn challenge(&self, session: &Session) -> Option<Response> {
        let challenges = self.gateway.challenges.as_ref()?;
        let request = session.req_header();
        let path = request.uri.path();
        if !path.starts_with(HTTP_PATH) || !matches!(request.method, Method::GET | Method::HEAD) {
            return None;
        }
        let host = site::normalise(host_of(request)?).ok()?.into_owned();
        let (challenges, path) = (Arc::clone(challenges), path.to_owned());
        let found = self.reads.run(move || challenges.http(&host, &path));
        let answer = found.await.flatten()?;
        Some(Response {
            media_type: Some("application/octet-stream"),
            body: Body::from(Bytes::from(String::from(answer))),
            ..Response::empty(200)
        })
    }

    /// Returns the redirect of a request that came without TLS, if it has to come with TLS.
    fn redirect(&self, session: &Session) -> Option<Response> {
        let Gateway {
            tls,
            trusted,
            index,
            ..
        } = &*self.gateway;
        let request = session.req_header();
        let host = site::normalise(host_of(request)?).ok()?;
        // A key that was sent without TLS is refused, so that its owner learns of it.
        if is_tls(session) || *host == *index.service().api_host.as_str() {
            return None;
        }
        if !self.gateway.may_redirect(&host, request.uri.path()) {
            return None;
        }
        tls.redirect(&host, request, client_of(session).peer, trusted)
    }

    /// Sends a response of the gateway.
    async fn send(&self, session: &mut Session, mut response: Response) -> Result<()> {
        if let Some(hsts) = self.hsts(session) {
            let value = header::HeaderValue::try_from(hsts.to_string());
            let value = value.expect("digits and words");
            response = response.with(header::STRICT_TRANSPORT_SECURITY, value);
        }
        respond::write(session, &response).await
    }

    /// Returns `Strict-Transport-Security` for a response to this client.
    fn hsts(&self, session: &Session) -> Option<Hsts> {
        let host = host_of(session.req_header()).unwrap_or_default();
        is_tls(session).then(|| self.gateway.hsts(host)).flatten()
    }

    async fn choose_peer(&self, session: &Session, ctx: &mut RequestCtx) -> Result<Box<HttpPeer>> {
        let unrouted = || {
            Error::explain(
                ErrorType::InternalError,
                "proxy a request that has no upstream",
            )
        };
        let Gateway {
            balancer,
            resolver,
            upstream: limits,
            ..
        } = &*self.gateway;
        let served = ctx.served.as_ref().ok_or_else(unrouted)?;
        let upstream = Target::upstream(served).ok_or_else(unrouted)?;
        let group = balancer.group(&served.site, upstream);
        if ctx.held.is_none() && ctx.retries == 0 {
            group.count_request();
        }
        loop {
            // pingora asks again when it retries on a new connection to the same server.
            let held = match ctx.held.take() {
                Some(held) => held,
                None => {
                    let is_idempotent = session.req_header().method.is_idempotent();
                    let holding = group.hold(ctx.tried, is_idempotent);
                    holding.await.map_err(refused)?
                }
            };
            let upstream = held.upstream();
            match resolver.resolve(&upstream.host, upstream.port).await {
                Ok(resolved) => {
                    let peer = upstream::peer(limits, resolver, upstream, &resolved);
                    ctx.held = Some(held);
                    return Ok(Box::new(peer));
                }
                Err(error) => {
                    if ctx.tried.leave(held, group.len() > 1) {
                        upstream::count(&self.gateway.metrics, End::of_unresolved(&error));
                        continue;
                    }
                    let kind = match error {
                        UnresolvedUpstream::Private(..) => PRIVATE_UPSTREAM,
                        _ => ErrorType::ConnectError,
                    };
                    return Err(Error::because(kind, "look up the upstream", error).into_up());
                }
            }
        }
    }

    async fn write_request(
        &self,
        session: &mut Session,
        request: &mut RequestHeader,
        ctx: &mut RequestCtx,
    ) -> Result<()> {
        // Upstreams compare hosts byte by byte, so they get one spelling, and no port except our
        // own.
        let sent = host_of(session.req_header()).unwrap_or_default();
        let name = site::normalise(sent).unwrap_or(Cow::Borrowed(sent));
        let sent = match self.gateway.index.service().port {
            0 => name.into_owned(),
            port => format!("{name}:{port}"),
        };
        let from = client_of(session);
        let client = Client {
            peer: from.peer,
            tls: from.tls,
            host: &sent,
            version: match session.req_header().version {
                Version::HTTP_10 => "1.0",
                Version::HTTP_2 => "2.0",
                _ => "1.1",
            },
        };
        forward::forward(request, &client, &self.gateway.trusted, self.pseudonym());
        if self.gateway.upstream.create_trace_context {
            let mut sent = logged(session.req_header());
            // Another attempt is of the same trace.
            let outgoing = match ctx.trace {
                Some(made) => {
                    sent.trace = Some(made);
                    Outgoing {
                        is_new: true,
                        ..sent.outgoing_trace()
                    }
                }
                None => sent.outgoing_trace(),
            };
            ctx.trace = outgoing.is_new.then_some(outgoing.context);
            set_trace(request, &outgoing)?;
        }
        let upstream = ctx.held.as_ref().map(Held::upstream);
        let host = match upstream {
            Some(upstream) if upstream.host_header == HostHeader::Upstream => {
                upstream.authority().to_string()
            }
            _ => sent,
        };
        request.insert_header(header::HOST, host)?;
        // pingora removes it, because it is a field of the connection. HTTP/2 passes trailers on
        // (RFC 9113 §8.2.2), and gRPC needs the field.
        if request.version == Version::HTTP_2 && accepts_trailers(session.req_header()) {
            request.insert_header(header::TE, "trailers")?;
        }
        Ok(())
    }

    async fn write_response(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
    ) -> Result<()> {
        let version = if response.version == Version::HTTP_2 {
            "2.0"
        } else {
            "1.1"
        };
        if response.status == http::StatusCode::SWITCHING_PROTOCOLS {
            // RFC 9110 §15.2.2: only a request with `Upgrade` is answered with 101.
            if session.is_upgrade(response) != Some(true) {
                let why = "the upstream switches to a protocol that was not asked for";
                return Err(Error::explain(ErrorType::InvalidHTTPHeader, why).into_up());
            }
            if let Some(request) = single_request_of(session) {
                request.upgrade();
            }
            session.set_read_timeout(Some(self.gateway.upstream.upgraded));
        } else {
            forward::remove_hop_by_hop(response);
        }
        // RFC 9110 §8.6 and §15.2. `Content-Length` of a 304 is the length of the 200, and some
        // HTTP/2 clients take it for the length of the 304.
        if matches!(response.status.as_u16(), 100..=199 | 204 | 304) {
            response.remove_header(&header::CONTENT_LENGTH);
            response.remove_header(&header::TRANSFER_ENCODING);
        }
        one_length(response)?;
        // pingora passes trailers from HTTP/2 to HTTP/2 only.
        if !(response.version == Version::HTTP_2 && is_http2(session.req_header())) {
            response.remove_header(&header::TRAILER);
        }
        if session.req_header().version == Version::HTTP_10
            && response.remove_header(&header::TRANSFER_ENCODING).is_some()
        {
            // RFC 9112 §6.1: HTTP/1.0 has no chunks. The end of the connection ends the body.
            session.set_keepalive(None);
        }
        if !is_http2(session.req_header()) {
            // RFC 9110 §2.5: a proxy sends its own version.
            response.set_version(Version::HTTP_11);
        }
        if is_event_stream(response)
            && let Some(request) = single_request_of(session)
        {
            request.allow_silence(self.gateway.upstream.upgraded);
        }
        forward::confine_cookies(response, self.pseudonym());
        // RFC 6797 §8.1: browsers read the first field only, so the site's own one stays.
        if let Some(hsts) = self.hsts(session)
            && !response.status.is_informational()
            && !response
                .headers
                .contains_key(header::STRICT_TRANSPORT_SECURITY)
        {
            response.insert_header(header::STRICT_TRANSPORT_SECURITY, hsts.to_string())?;
        }
        response.append_header(header::VIA, format!("{version} {}", self.pseudonym()))?;
        Ok(())
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
            trace: None,
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
        mut error: Box<Error>,
    ) -> Box<Error> {
        upstream::count(&self.gateway.metrics, End::of_upstream_error(&error, false));
        ctx.retries += 1;
        let has_others = ctx.tries_others();
        let may_pass = has_others || upstream::may_pass(&error);
        let is_within = ctx.retries <= self.gateway.upstream.retries_max;
        error.set_retry(ctx.leave(may_pass && is_within));
        error
    }

    fn error_while_proxy(
        &self,
        peer: &HttpPeer,
        session: &mut Session,
        error: Box<Error>,
        ctx: &mut RequestCtx,
        is_reused: bool,
    ) -> Box<Error> {
        let mut error = error.more_context(format!("Peer: {peer}"));
        let is_idempotent = session.req_header().method.is_idempotent();
        if !is_idempotent || session.as_ref().retry_buffer_truncated() {
            error.set_retry(false);
            return error;
        }
        error.retry.decide_reuse(is_reused);
        // The server has closed a new connection without a response: another one may have it.
        let is_closed = End::of_upstream_error(&error, false) == End::UpstreamClosed;
        let is_unanswered = ctx.stopwatch.is_some_and(|it| !it.is_answered())
            && session.response_written().is_none();
        let is_of_server = error.esource() == &ErrorSource::Upstream && is_closed && is_unanswered;
        let is_within = ctx.retries < self.gateway.upstream.retries_max;
        if is_of_server && !error.retry() && is_within && ctx.tries_others() && ctx.leave(true) {
            upstream::count(&self.gateway.metrics, End::UpstreamClosed);
            ctx.retries += 1;
            error.set_retry(true);
        }
        error
    }

    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        ctx: &mut RequestCtx,
    ) -> FailToProxy {
        let is_answered = ctx.stopwatch.is_some_and(|it| it.is_answered());
        let fault = single_request_of(session).and_then(SingleRequestStream::fault);
        let end = match (fault, error.etype(), error.esource()) {
            _ if ctx.found.is_some() => End::UpstreamError,
            (Some(408), ..) | (None, ErrorType::ReadTimedout, ErrorSource::Downstream) => {
                End::BodyTimeout
            }
            (Some(504), ..) => End::silent(is_answered),
            (None, kind, _) if *kind == SILENT => End::silent(is_answered),
            (Some(_), ..) | (None, ErrorType::HTTPStatus(_), _) => End::RequestInvalid,
            // The client has closed the connection, or is too slow.
            (
                None,
                ErrorType::WriteError
                | ErrorType::WriteTimedout
                | ErrorType::ReadError
                | ErrorType::ConnectionClosed,
                ErrorSource::Downstream,
            ) => End::of_client_error(error),
            (None, _, ErrorSource::Downstream) => End::RequestInvalid,
            (None, _, ErrorSource::Upstream) => End::of_upstream_error(error, is_answered),
            (None, ..) => End::Failed,
        };
        ctx.end = Some(end);
        let (mut status, mut detail) = end.answer();
        match (fault, error.etype()) {
            (Some(400..=499), _) => {}
            (None, ErrorType::HTTPStatus(sent)) => {
                (status, detail) = (*sent, "the request cannot be forwarded");
            }
            _ if end == End::RequestInvalid => detail = "the request cannot be read",
            _ => {}
        }
        // `fail_to_connect` has counted the failure of the last connection.
        let is_counted = ctx.retries > 0 && ctx.held.is_none() && !is_answered;
        if end.upstream_failure().is_some() && !is_counted {
            upstream::count(&self.gateway.metrics, end);
            log::debug!(target: "origin", "{error}");
        }
        if end == End::Failed {
            log::error!(target: "gateway", "{error}");
        }
        // A final response may follow an interim one.
        let written = session.response_written();
        let is_unanswered = written.is_none_or(|written| written.status.is_informational());
        if status > 0 && is_unanswered {
            session.set_keepalive(None);
            if ctx.copy.is_some() && status != 408 {
                read_small_body(session).await;
                if self.send_copy(session, end, ctx).await {
                    return FailToProxy {
                        error_code: status,
                        can_reuse_downstream: false,
                    };
                }
            }
            if status != 408 {
                read_small_body(session).await;
            }
            let response = match status == end.answer().0 && detail == end.answer().1 {
                true => end.response(),
                false => Problem::new(known_status(status), detail).response(),
            };
            let mut sent = self.send(session, response).await;
            if is_http2(session.req_header()) && status != 408 {
                // Reads the rest of the body: a reset could take the response away.
                sent = sent.and(session.finish_body().await);
            }
            if let Err(error) = sent {
                log::debug!(target: "gateway", "send an error response: {error}");
            }
        }
        FailToProxy {
            error_code: status,
            can_reuse_downstream: false,
        }
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
        let mut request = logged(session.req_header());
        request.trace = request.trace.or(ctx.trace);
        gateway.log(client, &request, outcome);
    }
}

/// Returns the fields of a message as bytes.
fn fields_of(headers: &http::HeaderMap) -> impl Iterator<Item = (&[u8], &[u8])> {
    let fields = headers.iter();
    fields.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
}

/// Writes the fields of a trace.
fn set_trace(request: &mut RequestHeader, trace: &Outgoing) -> Result<()> {
    let mut value = Vec::with_capacity(64);
    if trace.is_new {
        request.remove_header("tracestate");
        trace.context.write(&mut value);
        request.insert_header("traceparent", &*value)?;
        value.clear();
    }
    if trace.sets_request_id {
        trace.context.write_trace(&mut value);
        request.insert_header("x-request-id", &*value)?;
    }
    Ok(())
}

/// Returns the error of a request without a place at a server.
fn refused(why: Refused) -> Box<Error> {
    let kind = match why {
        Refused::Full => QUEUE_FULL,
        Refused::Late => QUEUE_TIMEOUT,
        Refused::Tried => ErrorType::ConnectRefused,
    };
    Error::explain(kind, BUSY).into_up()
}

/// Reads the body of an HTTP/2 request before it is answered, if it is small and comes soon.
///
/// Some clients lose a response that ends before they have sent the whole request, although RFC
/// 9113 §8.1 allows it. A body that is larger or slower is read after the response
/// ([`StreamSession`](super::http2_stream::StreamSession)). A client that waits for permission to
/// send its body gets the response at once.
async fn read_small_body(session: &mut Session) {
    let header = session.req_header();
    let announced = header.headers.get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if !is_http2(header)
        || header.headers.contains_key(header::EXPECT)
        || announced.is_some_and(|length| length > EARLY_BODY_BYTES_MAX)
    {
        return;
    }
    let reading = async {
        let mut left = EARLY_BODY_BYTES_MAX;
        while left > 0 && !session.is_body_done() {
            match session.read_request_body().await {
                Ok(Some(bytes)) => left = left.saturating_sub(bytes.len()),
                // The client learns of a body that is too slow or broken by the end of the stream.
                Ok(None) | Err(_) => return,
            }
        }
    };
    let _elapsed = tokio::time::timeout(EARLY_BODY_TIME_MAX, reading).await;
}

/// Joins several equal values of `Content-Length` into one (RFC 9110 §8.6). pingora has rejected
/// different ones.
fn one_length(response: &mut ResponseHeader) -> Result<()> {
    let mut lengths = response.headers.get_all(header::CONTENT_LENGTH).iter();
    let first = lengths.next().map(header::HeaderValue::as_bytes);
    let is_list = first.is_some_and(|first| first.contains(&b','));
    if !is_list && lengths.next().is_none() {
        return Ok(());
    }
    let one = first.and_then(|first| first.split(|&b| b == b',').next());
    let one = header::HeaderValue::from_bytes(one.unwrap_or_default().trim_ascii());
    let why = "the length is not a number";
    let one = one.or_err(ErrorType::InvalidHTTPHeader, why)?;
    response.insert_header(header::CONTENT_LENGTH, one)
}

/// Returns whether an HTTP/2 client reads trailers.
fn accepts_trailers(request: &RequestHeader) -> bool {
    let te = request.headers.get(header::TE);
    is_http2(request) && te.is_some_and(|te| te.as_bytes().eq_ignore_ascii_case(b"trailers"))
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

/// Converts a status from pingora to one that our problem responses use.
fn known_status(status: u16) -> u16 {
    match status {
        400 | 404 | 405 | 408 | 413 | 414 | 431 | 500 | 501 | 502 | 503 | 504 => status,
        401..=499 => 400,
        _ => 502,
    }
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
