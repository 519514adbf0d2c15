//! The header of one request, borrowed: the input of the choice of a response.
//!
//! Both versions of HTTP and both paths of the gateway fill in the same value, so a response
//! cannot depend on the path of its request.
//!
//! Sources: RFC 9110 §7.1 (target), §9 (methods), §10.1.5 (`User-Agent`), §12.5.1 and §12.5.3
//! (`Accept`, `Accept-Encoding`), §13 (conditions), §14.2 (`Range`).

use super::encoding::Accepted;
use super::trace::{RequestId, TraceContext};
use super::{Conditions, Content};

/// The header of one request. A field that was not sent is empty or `None`; a list that was
/// sent in several lines is one value, joined by commas (RFC 9110 §5.3).
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestHeaders<'r> {
    /// The method, as sent.
    pub method: &'r str,
    /// `Host`, or `:authority`, as sent: maybe with a port.
    pub host: &'r str,
    /// The path of the target, without query, as sent.
    pub path: &'r str,
    /// The query of the target, without its question mark.
    pub query: Option<&'r str>,
    /// `User-Agent`, cut to the length that a log line holds.
    pub user_agent: &'r str,
    /// `Accept`.
    pub accept: Option<&'r [u8]>,
    /// `Accept-Encoding`.
    pub accept_encoding: Option<&'r [u8]>,
    /// The conditional fields.
    pub conditions: Conditions<'r>,
    /// `Range`. It has a meaning in `GET` requests only: see [`RequestHeaders::range`].
    pub range: Option<&'r [u8]>,
    /// `If-Range`.
    pub if_range: Option<&'r [u8]>,
    /// `Origin`.
    pub origin: Option<&'r [u8]>,
    /// `Sec-Fetch-Site`.
    pub fetch_site: Option<&'r [u8]>,
    /// `Content-Type` of the request's content.
    pub content_type: Option<&'r [u8]>,
    /// The fields of a message of the Model Context Protocol.
    pub mcp: McpFields<'r>,
    /// `traceparent`, if it was sent once and is valid.
    pub trace: Option<TraceContext>,
    /// `X-Request-Id`, if it has at most 128 visible ASCII characters.
    pub request_id: &'r str,
    /// The id that was made for it, which replaces `request_id`.
    pub made_id: Option<RequestId>,
}

/// The longest `X-Request-Id` that an access line holds.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// Reads the value of `X-Request-Id`; empty if an access line cannot hold it.
#[must_use]
pub fn request_id(value: &[u8]) -> &str {
    let is_plain = value.len() <= REQUEST_ID_BYTES_MAX && value.iter().all(u8::is_ascii_graphic);
    let text = is_plain.then(|| str::from_utf8(value).ok()).flatten();
    text.unwrap_or_default()
}

/// The fields that repeat parts of a message (Model Context Protocol 2026-07-28,
/// `basic/transports/streamable-http`, "Request Metadata").
#[derive(Clone, Copy, Debug, Default)]
pub struct McpFields<'r> {
    /// `MCP-Protocol-Version`.
    pub version: Option<&'r [u8]>,
    /// `Mcp-Method`.
    pub method: Option<&'r [u8]>,
    /// `Mcp-Name`.
    pub name: Option<&'r [u8]>,
}

/// The methods that a static document distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `GET` or `HEAD`: the response is the same, the content of `HEAD` is not sent.
    GetOrHead,
    /// `OPTIONS`.
    Options,
    /// Any other.
    Other,
}

// === impl RequestHeaders ===

impl<'r> RequestHeaders<'r> {
    /// A `GET` without any field.
    pub const GET: Self = Self {
        method: "GET",
        host: "",
        path: "/",
        query: None,
        user_agent: "",
        accept: None,
        accept_encoding: None,
        conditions: Conditions {
            if_match: None,
            if_none_match: None,
            if_modified_since: None,
            if_unmodified_since: None,
        },
        range: None,
        if_range: None,
        origin: None,
        fetch_site: None,
        content_type: None,
        mcp: McpFields {
            version: None,
            method: None,
            name: None,
        },
        trace: None,
        request_id: "",
        made_id: None,
    };

    /// Returns the kind of method.
    #[must_use]
    pub fn method(&self) -> Method {
        match self.method {
            "GET" | "HEAD" => Method::GetOrHead,
            "OPTIONS" => Method::Options,
            _ => Method::Other,
        }
    }

    /// Returns how much of the response is sent.
    #[must_use]
    pub fn content(&self) -> Content {
        match self.method {
            "HEAD" => Content::HeadOnly,
            _ => Content::Whole,
        }
    }

    /// Returns whether the fast path can respond to this request.
    ///
    /// It is a `GET` or `HEAD` of a whole resource, without query and with no condition but
    /// `If-None-Match`, beside which `If-Modified-Since` has no meaning (RFC 9110 §13.1.3).
    #[must_use]
    pub fn is_simple_get(&self) -> bool {
        let conditions = &self.conditions;
        self.method() == Method::GetOrHead
            && self.query.is_none()
            && self.range.is_none()
            && self.if_range.is_none()
            && conditions.if_match.is_none()
            && conditions.if_unmodified_since.is_none()
            && (conditions.if_modified_since.is_none() || conditions.if_none_match.is_some())
    }

    /// Returns the codings that the client accepts. Without the field we send the identity.
    #[must_use]
    pub fn accepted(&self) -> Accepted {
        self.accept_encoding
            .map_or(Accepted::IDENTITY_ONLY, Accepted::parse)
    }

    /// Returns whether the content has a media type, with any parameters (RFC 9110 §8.3).
    #[must_use]
    pub fn has_media_type(&self, media_type: &str) -> bool {
        self.content_type
            .is_some_and(|field| is_media_type(field, media_type))
    }

    /// Returns whether `Accept` names a media type, with whatever weight.
    #[must_use]
    pub fn names_accepted(&self, media_type: &str) -> bool {
        let accept = self.accept.unwrap_or_default().to_ascii_lowercase();
        memchr::memmem::find(&accept, media_type.as_bytes()).is_some()
    }

    /// Returns `Range` if the request is a `GET` (RFC 9110 §14.2).
    #[must_use]
    pub fn range(&self) -> Option<&'r [u8]> {
        self.range.filter(|_| self.method == "GET")
    }
}

/// Returns whether a field `Content-Type` names a media type, with any parameters (RFC 9110 §8.3).
#[must_use]
pub fn is_media_type(field: &[u8], media_type: &str) -> bool {
    let named = field.split(|&b| b == b';').next().unwrap_or_default();
    named
        .trim_ascii()
        .eq_ignore_ascii_case(media_type.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_a_media_type_do_not_matter() {
        let is_json = |field: &[u8]| is_media_type(field, "application/json");
        assert!(is_json(b"application/json"));
        assert!(is_json(b"Application/JSON; charset=utf-8"));
        for other in ["text/plain", "", "application/json-patch+json", "json"] {
            assert!(!is_json(other.as_bytes()), "{other}");
        }
    }
}
