//! Requests of the admin API, from a pingora session.
//!
//! The API itself is a function ([`deploy::api`](crate::deploy::api)). This module builds its
//! request and reads its content to the end, so that the connection can be used again.

use std::net::IpAddr;

use bytes::Bytes;
use http::header::{self, AsHeaderName};
use pingora::Result;
use pingora::http::RequestHeader;
use pingora::proxy::Session;

use super::forward::TrustedPeers;
use super::request::read_content;
use crate::deploy::api::{Api, BODY_BYTES_MAX, Request};
use crate::response::Response;

/// Responds to a request for the API's host.
///
/// The key is checked before the content is read: a client without a key cannot make the gateway
/// wait.
pub(super) async fn response(
    session: &mut Session,
    api: &Api,
    trusted: &TrustedPeers,
) -> Result<Response> {
    let mut content = Some(Bytes::new());
    if !session.is_body_done() {
        if let Some(response) = api.reject(&request(session, trusted, content.clone())) {
            return Ok(response);
        }
        content = read_content(session, BODY_BYTES_MAX).await?;
    }
    Ok(api.handle(&request(session, trusted, content)).await)
}

/// Makes the request; `content` is `None` if there is too much of it.
fn request<'s>(
    session: &'s Session,
    trusted: &TrustedPeers,
    content: Option<Bytes>,
) -> Request<'s> {
    let address = session.client_addr().and_then(|address| address.as_inet());
    let peer = address.map(std::net::SocketAddr::ip);
    let is_tls = session
        .digest()
        .is_some_and(|digest| digest.ssl_digest.is_some());
    let header = session.req_header();
    Request {
        method: header.method.as_str(),
        path: header.uri.path(),
        query: header.uri.query(),
        authorization: fields(header, header::AUTHORIZATION),
        idempotency_key: fields(header, "idempotency-key"),
        content_type: fields(header, header::CONTENT_TYPE).first().copied(),
        if_match: fields(header, header::IF_MATCH),
        if_none_match: fields(header, header::IF_NONE_MATCH),
        is_too_large: content.is_none(),
        content: content.unwrap_or_default(),
        is_confidential: is_tls || is_private(header, peer, trusted),
        client: peer,
    }
}

fn fields(request: &RequestHeader, name: impl AsHeaderName) -> Vec<&[u8]> {
    let values = request.headers.get_all(name);
    values.iter().map(http::HeaderValue::as_bytes).collect()
}

/// Returns whether a request was protected in transit: it comes from this machine, or from a
/// trusted load balancer that received it over TLS.
fn is_private(request: &RequestHeader, peer: Option<IpAddr>, trusted: &TrustedPeers) -> bool {
    let Some(peer) = peer else {
        return false;
    };
    match trusted.proto_of(peer, &request.headers) {
        Some(proto) => proto.eq_ignore_ascii_case(b"https"),
        None => peer.to_canonical().is_loopback(),
    }
}
