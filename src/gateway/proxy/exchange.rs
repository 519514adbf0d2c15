//! The exchange with a site's own server: the choice of a server, and the headers that pass in both
//! directions.

use std::borrow::Cow;

use http::{Version, header};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::prelude::{Error, HttpPeer, Result};
use pingora::proxy::Session;
use pingora::{ErrorType, OrErr as _};

use super::{Proxy, RequestCtx, client_of, single_request_of};
use crate::gateway::Gateway;
use crate::gateway::balance::{HeldPlace, Refused};
use crate::gateway::ending::End;
use crate::gateway::forward::{self, Client, TransferCodings};
use crate::gateway::http2_stream::is_event_stream;
use crate::gateway::request::{host_of, is_http2, logged};
use crate::gateway::route::Target;
use crate::gateway::upstream::{
    self, BUSY, NO_DESCRIPTOR, PRIVATE_UPSTREAM, QUEUE_FULL, QUEUE_TIMEOUT,
};
use crate::origin::UnresolvedUpstream;
use crate::response::trace::Made;
use crate::site::{self, HostHeader};

// === impl Proxy ===

impl Proxy {
    pub(super) async fn choose_peer(
        &self,
        session: &Session,
        ctx: &mut RequestCtx,
    ) -> Result<Box<HttpPeer>> {
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
                    let client = self.gateway.clients.network_of(self.counted(session));
                    let holding = group.hold(client, ctx.tried, is_idempotent);
                    holding.await.map_err(refused)?
                }
            };
            let upstream = held.upstream();
            let (owner, host) = (&served.site.owner, &upstream.host);
            match resolver.resolve(owner, host, upstream.port).await {
                Ok(resolved) => {
                    let peer =
                        upstream::peer(limits, resolver, balancer.places(), upstream, &resolved);
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

    pub(super) async fn write_request(
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
        // Another attempt is of the same trace.
        let make = || self.gateway.made(from.peer, &logged(session.req_header()));
        set_made(request, ctx.made.get_or_insert_with(make))?;
        let upstream = ctx.held.as_ref().map(HeldPlace::upstream);
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

    pub(super) async fn write_response(
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

/// Writes the trace and the id that were made for a request.
fn set_made(request: &mut RequestHeader, made: &Made) -> Result<()> {
    let mut value = Vec::with_capacity(64);
    if let Some(trace) = made.trace {
        request.remove_header("tracestate");
        trace.write(&mut value);
        request.insert_header("traceparent", &*value)?;
        value.clear();
    }
    if let Some(id) = made.request_id {
        id.write(&mut value);
        request.insert_header("x-request-id", &*value)?;
    }
    Ok(())
}

/// Returns the error of a request without a place at a server.
fn refused(why: Refused) -> Box<Error> {
    let kind = match why {
        Refused::Full => QUEUE_FULL,
        Refused::Late => QUEUE_TIMEOUT,
        Refused::NoDescriptor => NO_DESCRIPTOR,
        Refused::Tried => ErrorType::ConnectRefused,
    };
    Error::explain(kind, BUSY).into_up()
}

/// Rejects a response with content in a transfer coding that pingora does not decode; see
/// [`TransferCodings`].
pub(super) fn check_codings(response: &ResponseHeader) -> Result<()> {
    let lines = response.headers.get_all(header::TRANSFER_ENCODING).iter();
    let codings = lines.fold(TransferCodings::None, |codings, line| {
        codings.with(line.as_bytes())
    });
    let has_content = !matches!(response.status.as_u16(), 100..=199 | 204 | 304);
    if has_content && codings == TransferCodings::Unknown {
        let why = "the response has a transfer coding that was not asked for";
        return Err(Error::explain(ErrorType::InvalidHTTPHeader, why).into_up());
    }
    Ok(())
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
