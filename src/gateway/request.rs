//! What the proxy path reads of a request before anything is decided about it.
//!
//! Sources: RFC 9110 §5.3 (fields on several lines), §13 (conditions), §14.2 (`Range`);
//! RFC 9113 §8.3.1 (`:authority`).

use http::{Method as HttpMethod, Version, header};
use pingora::http::RequestHeader;

use crate::index::{Ask, Method};
use crate::origin::Asked;
use crate::response::Conditions;
use crate::response::encoding::Accepted;

/// Reads what the choice of a response depends on.
pub(super) fn with_ask<T>(
    request: &RequestHeader,
    act: impl FnOnce(&Ask<'_>, &Asked<'_>) -> T,
) -> T {
    let field = |name| joined(request, name);
    let (if_match, if_none_match) = (field(header::IF_MATCH), field(header::IF_NONE_MATCH));
    let (modified, unmodified) = (
        field(header::IF_MODIFIED_SINCE),
        field(header::IF_UNMODIFIED_SINCE),
    );
    let (accept_encoding, accept) = (field(header::ACCEPT_ENCODING), field(header::ACCEPT));
    // RFC 9110 §14.2: a range means something in a `GET` alone.
    let is_get = request.method == HttpMethod::GET;
    let (range, if_range) = (field(header::RANGE), field(header::IF_RANGE));
    let ask = Ask {
        method: match request.method {
            HttpMethod::GET | HttpMethod::HEAD => Method::GetOrHead,
            HttpMethod::OPTIONS => Method::Options,
            _ => Method::Other,
        },
        accepted: accept_encoding
            .as_deref()
            .map_or(Accepted::IDENTITY_ONLY, Accepted::parse),
        conditions: Conditions {
            if_match: if_match.as_deref(),
            if_none_match: if_none_match.as_deref(),
            if_modified_since: modified.as_deref(),
            if_unmodified_since: unmodified.as_deref(),
        },
    };
    let asked = Asked {
        query: request.uri.query(),
        accept: accept.as_deref(),
        range: range.as_deref().filter(|_| is_get),
        if_range: if_range.as_deref(),
    };
    act(&ask, &asked)
}

/// Returns whether it came over HTTP/2.
pub(super) fn is_http2(request: &RequestHeader) -> bool {
    request.version == Version::HTTP_2
}

/// Returns the host a request is for. Over HTTP/2 `:authority` and `Host` may both be
/// there, and must agree (RFC 9113 §8.3.1).
pub(super) fn host_of(request: &RequestHeader) -> Option<&str> {
    let mut fields = request.headers.get_all(header::HOST).iter();
    let field = fields.next().and_then(|value| value.to_str().ok());
    if fields.next().is_some() {
        return None;
    }
    match (
        request.uri.authority().map(http::uri::Authority::as_str),
        field,
    ) {
        (Some(authority), Some(field)) => authority.eq_ignore_ascii_case(field).then_some(field),
        (authority, field) => authority.or(field),
    }
}

/// Returns a list field as one line.
pub(super) fn joined(request: &RequestHeader, name: header::HeaderName) -> Option<Vec<u8>> {
    let lines: Vec<&[u8]> = request
        .headers
        .get_all(name)
        .iter()
        .map(http::HeaderValue::as_bytes)
        .collect();
    (!lines.is_empty()).then(|| lines.join(&b", "[..]))
}
