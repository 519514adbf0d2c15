//! A request as pingora gives it: its header, which the proxy path and HTTP/2 read, and its
//! content.
//!
//! Sources: RFC 9110 §5.3 (fields on several lines), §8.6 (`Content-Length`), §13 (conditions);
//! RFC 9113 §8.3.1 (`:authority`).

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use http::Version;
use http::header;
use pingora::Result;
use pingora::http::RequestHeader;
use pingora::prelude::Error;
use pingora::proxy::Session;

use super::head::log_text;
use crate::response::trace::TraceContext;
use crate::response::{self, Conditions, McpFields, RequestHeaders};

/// The fields that a response depends on, each as one value.
#[derive(Default)]
struct Fields<'r> {
    accept: Option<Cow<'r, [u8]>>,
    accept_encoding: Option<Cow<'r, [u8]>>,
    if_match: Option<Cow<'r, [u8]>>,
    if_none_match: Option<Cow<'r, [u8]>>,
    if_modified_since: Option<Cow<'r, [u8]>>,
    if_unmodified_since: Option<Cow<'r, [u8]>>,
    range: Option<Cow<'r, [u8]>>,
    if_range: Option<Cow<'r, [u8]>>,
    origin: Option<Cow<'r, [u8]>>,
    fetch_site: Option<Cow<'r, [u8]>>,
    content_type: Option<Cow<'r, [u8]>>,
    mcp_version: Option<Cow<'r, [u8]>>,
    mcp_method: Option<Cow<'r, [u8]>>,
    mcp_name: Option<Cow<'r, [u8]>>,
}

/// Calls `act` with the header of a request.
pub(super) fn with_headers<T>(
    request: &RequestHeader,
    act: impl FnOnce(&RequestHeaders<'_>) -> T,
) -> T {
    let mut fields = Fields::default();
    // A request has few fields. One pass over them takes less time than a look-up of every field
    // that we read.
    for (name, value) in &request.headers {
        let place = match name.as_str() {
            "accept" => &mut fields.accept,
            "accept-encoding" => &mut fields.accept_encoding,
            "if-match" => &mut fields.if_match,
            "if-none-match" => &mut fields.if_none_match,
            "if-modified-since" => &mut fields.if_modified_since,
            "if-unmodified-since" => &mut fields.if_unmodified_since,
            "range" => &mut fields.range,
            "if-range" => &mut fields.if_range,
            "origin" => &mut fields.origin,
            "sec-fetch-site" => &mut fields.fetch_site,
            "content-type" => &mut fields.content_type,
            "mcp-protocol-version" => &mut fields.mcp_version,
            "mcp-method" => &mut fields.mcp_method,
            "mcp-name" => &mut fields.mcp_name,
            _ => continue,
        };
        // RFC 9110 §5.3: several lines are one value.
        match place {
            None => *place = Some(value.as_bytes().into()),
            Some(joined) => {
                let joined = joined.to_mut();
                joined.extend_from_slice(b", ");
                joined.extend_from_slice(value.as_bytes());
            }
        }
    }
    act(&RequestHeaders {
        origin: fields.origin.as_deref(),
        fetch_site: fields.fetch_site.as_deref(),
        content_type: fields.content_type.as_deref(),
        mcp: McpFields {
            version: fields.mcp_version.as_deref(),
            method: fields.mcp_method.as_deref(),
            name: fields.mcp_name.as_deref(),
        },
        accept: fields.accept.as_deref(),
        accept_encoding: fields.accept_encoding.as_deref(),
        conditions: Conditions {
            if_match: fields.if_match.as_deref(),
            if_none_match: fields.if_none_match.as_deref(),
            if_modified_since: fields.if_modified_since.as_deref(),
            if_unmodified_since: fields.if_unmodified_since.as_deref(),
        },
        range: fields.range.as_deref(),
        if_range: fields.if_range.as_deref(),
        ..logged(request)
    })
}

/// Returns the part of a header that an access line shows.
pub(super) fn logged(request: &RequestHeader) -> RequestHeaders<'_> {
    let mut logged = RequestHeaders {
        method: request.method.as_str(),
        host: host_of(request).unwrap_or_default(),
        path: request.uri.path(),
        query: request.uri.query(),
        ..RequestHeaders::default()
    };
    let (mut user_agent, mut request_id) = (None, None);
    let mut traces = (None, 0);
    for (name, value) in &request.headers {
        let value = value.as_bytes();
        match name.as_str() {
            // The first of several lines counts.
            "user-agent" => user_agent = user_agent.or(Some(value)),
            "x-request-id" => request_id = request_id.or(Some(value)),
            "traceparent" => traces = (Some(value), traces.1 + 1),
            _ => {}
        }
    }
    logged.user_agent = user_agent.map_or("", log_text);
    logged.request_id = request_id.map_or("", response::request_id);
    // A request has one trace, or none.
    if let (Some(trace), 1) = traces {
        logged.trace = TraceContext::parse(trace);
    }
    logged
}

/// Returns how many bytes of content a request announces.
pub(super) fn announced(request: &RequestHeader) -> Option<u64> {
    let length = request.headers.get(header::CONTENT_LENGTH);
    length.and_then(|length| length.to_str().ok()?.parse().ok())
}

/// Reads the content of a request; `None` if it has more than `bytes_max` bytes. Then the rest is
/// not read.
pub(super) async fn read_content(session: &mut Session, bytes_max: usize) -> Result<Option<Bytes>> {
    let is_too_long = |length: u64| length > bytes_max as u64;
    if announced(session.req_header()).is_some_and(is_too_long) {
        return Ok(None);
    }
    if session.is_body_done() {
        return Ok(Some(Bytes::new()));
    }
    let mut content = BytesMut::new();
    while let Some(bytes) = session
        .read_request_body()
        .await
        .map_err(Error::into_down)?
    {
        if content.len() + bytes.len() > bytes_max {
            return Ok(None);
        }
        content.extend_from_slice(&bytes);
    }
    Ok(Some(content.freeze()))
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
