//! Responses that the gateway makes itself: discovery, the admin API, MCP servers, votes, the
//! embedded origin, challenges of certificate authorities, and redirects to TLS.
//!
//! A response whose body is a file is handed over to the connection, which sends it after pingora
//! has finished with the request.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Version, header};
use pingora::prelude::{Error, Result};
use pingora::proxy::Session;

use super::{Proxy, RequestCtx, client_of, is_tls, single_request_of};
use crate::acme::HTTP_PATH;
use crate::gateway::file_response::{CopyReason, FileResponse, Logged};
use crate::gateway::request::{announced, host_of, is_http2, logged, with_headers};
use crate::gateway::route::{self, Target};
use crate::gateway::{Gateway, admin, forward, mcp, respond, vote};
use crate::index::Served;
use crate::origin;
use crate::response::{Body, Problem, Response};
use crate::site::{self, Hsts};
use crate::telemetry::Route;

/// How much of a request body is read before a response that does not need it.
const EARLY_BODY_BYTES_MAX: usize = 64 << 10;
/// How long such a body is waited for.
const EARLY_BODY_TIME_MAX: Duration = Duration::from_secs(1);

// === impl Proxy ===

impl Proxy {
    pub(super) async fn respond(
        &self,
        session: &mut Session,
        ctx: &mut RequestCtx,
    ) -> Result<bool> {
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
                let threads = (&self.searches, &self.tools);
                mcp::respond(session, &self.gateway, served, client, threads).await?
            }
            Target::Vote(served) => {
                ctx.route = Route::Origin;
                let client = self.counted(session);
                vote::respond(session, &self.gateway, served, client, &self.reads).await?
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
        let is_search = origin::is_search(&served, &path);
        let make = move || {
            with_headers(&request, |headers| {
                let response = origin::response(&served, &path, headers);
                served.count(headers, &response);
                response
            })
        };
        let made = match is_search {
            true => {
                let client = self.gateway.clients.network_of(self.counted(session));
                self.searches.run(client, make).await
            }
            false => self.reads.run(make).await,
        };
        made.unwrap_or_else(|| Problem::new(500, "this page cannot be made").response())
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

    /// Lets the connection send a response after pingora has finished with its request.
    pub(super) fn hand_over(
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
            request: Logged::of(&ctx.logged(request)),
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

    /// Sends a response of the gateway.
    pub(super) async fn send(&self, session: &mut Session, mut response: Response) -> Result<()> {
        if let Some(hsts) = self.hsts(session) {
            let value = header::HeaderValue::try_from(hsts.to_string());
            let value = value.expect("digits and words");
            response = response.with(header::STRICT_TRANSPORT_SECURITY, value);
        }
        respond::write(session, &response).await
    }

    /// Returns `Strict-Transport-Security` for a response to this client.
    pub(super) fn hsts(&self, session: &Session) -> Option<Hsts> {
        let host = host_of(session.req_header()).unwrap_or_default();
        is_tls(session).then(|| self.gateway.hsts(host)).flatten()
    }
}

/// Reads the body of an HTTP/2 request before it is answered, if it is small and comes soon.
///
/// Some clients lose a response that ends before they have sent the whole request, although RFC
/// 9113 §8.1 allows it. A body that is larger or slower is read after the response, by
/// [`StreamSession`](crate::gateway::http2_stream::StreamSession). A client that waits for
/// permission to send its body gets the response at once.
pub(super) async fn read_small_body(session: &mut Session) {
    let header = session.req_header();
    if !is_http2(header)
        || header.headers.contains_key(header::EXPECT)
        || announced(header).is_some_and(|length| length > EARLY_BODY_BYTES_MAX as u64)
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
