//! The header of a request as pingora gives it, which the proxy path and HTTP/2 read.
//!
//! Sources: RFC 9110 §5.3 (fields on several lines), §13 (conditions);
//! RFC 9113 §8.3.1 (`:authority`).

use std::borrow::Cow;

use http::{Version, header};
use pingora::http::RequestHeader;

use super::head::log_text;
use crate::response::trace::TraceContext;
use crate::response::{Conditions, McpFields, RequestHeaders, request_id};

/// Calls `act` with the header of a request.
pub(super) fn with_headers<T>(
    request: &RequestHeader,
    act: impl FnOnce(&RequestHeaders<'_>) -> T,
) -> T {
    let field = |name| joined(request, name);
    let (if_match, if_none_match) = (field(header::IF_MATCH), field(header::IF_NONE_MATCH));
    let (modified, unmodified) = (
        field(header::IF_MODIFIED_SINCE),
        field(header::IF_UNMODIFIED_SINCE),
    );
    let (accept_encoding, accept) = (field(header::ACCEPT_ENCODING), field(header::ACCEPT));
    let (range, if_range) = (field(header::RANGE), field(header::IF_RANGE));
    let (origin, content_type) = (field(header::ORIGIN), field(header::CONTENT_TYPE));
    let mcp_field = |name| field(header::HeaderName::from_static(name));
    let version = mcp_field("mcp-protocol-version");
    let (method, name) = (mcp_field("mcp-method"), mcp_field("mcp-name"));
    act(&RequestHeaders {
        origin: origin.as_deref(),
        content_type: content_type.as_deref(),
        mcp: McpFields {
            version: version.as_deref(),
            method: method.as_deref(),
            name: name.as_deref(),
        },
        accept: accept.as_deref(),
        accept_encoding: accept_encoding.as_deref(),
        conditions: Conditions {
            if_match: if_match.as_deref(),
            if_none_match: if_none_match.as_deref(),
            if_modified_since: modified.as_deref(),
            if_unmodified_since: unmodified.as_deref(),
        },
        range: range.as_deref(),
        if_range: if_range.as_deref(),
        ..logged(request)
    })
}

/// Returns the part of a header that an access line shows.
pub(super) fn logged(request: &RequestHeader) -> RequestHeaders<'_> {
    let agent = request.headers.get(header::USER_AGENT);
    RequestHeaders {
        method: request.method.as_str(),
        host: host_of(request).unwrap_or_default(),
        path: request.uri.path(),
        query: request.uri.query(),
        user_agent: agent.map_or("", |agent| log_text(agent.as_bytes())),
        trace: trace_of(request),
        request_id: request
            .headers
            .get("x-request-id")
            .map_or("", |id| request_id(id.as_bytes())),
        ..RequestHeaders::default()
    }
}

/// Returns the trace of a request that names one.
fn trace_of(request: &RequestHeader) -> Option<TraceContext> {
    let mut fields = request.headers.get_all("traceparent").iter();
    let (Some(field), None) = (fields.next(), fields.next()) else {
        return None;
    };
    TraceContext::parse(field.as_bytes())
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

/// Returns a field as one value: several lines are joined (RFC 9110 §5.3).
pub(super) fn joined(request: &RequestHeader, name: header::HeaderName) -> Option<Cow<'_, [u8]>> {
    let mut lines = request.headers.get_all(name).iter();
    let first = lines.next()?.as_bytes();
    match lines.next() {
        None => Some(first.into()),
        Some(second) => {
            let mut joined = first.to_vec();
            for line in std::iter::once(second).chain(lines) {
                joined.extend_from_slice(b", ");
                joined.extend_from_slice(line.as_bytes());
            }
            Some(joined.into())
        }
    }
}
