//! Responses: finished HTTP responses that are not sent yet.
//!
//! Discovery, the admin API, the embedded origin and every error produce a [`Response`]. It is
//! written as HTTP/1.1 text by the fast path ([`MaybeCached::write_head`]), or as a
//! map of fields for HTTP/2 and for pingora ([`Response::http2_fields`],
//! [`Response::response_header`]). All use the same list of fields, so a response cannot depend on
//! the path it takes.
//!
//! Making a response copies and allocates nothing: bodies are shared bytes, or files that are read
//! while they are sent ([`Body`]); header values are constants or are formatted when the head is
//! written.
//!
//! Sources: RFC 9110 (semantics), RFC 9111 (caching), Fetch §3.2 (CORS).

mod body;
pub mod caching;
mod conditional;
mod counted;
mod encoder_memory;
pub mod encoding;
mod cached;
mod fields;
mod problem;
mod range;
mod request;
pub mod segments;
pub mod trace;

pub use body::{Body, Content as StoredContent, PIECE_BYTES, Pieces, Stored, TooManyOpenFiles};
pub use cached::{CachedResponse, MaybeCached};
pub use conditional::{Conditions, ETag, Outcome, has_tag, read_date};
pub use counted::Counted;
pub use encoding::Encoding;
pub use problem::Problem;
pub use request::{McpFields, Method, RequestHeaders, is_media_type, request_id};

use std::io::Write as _;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};

/// The methods of every static document.
pub const ALLOW_STATIC: &str = "GET, HEAD, OPTIONS";

/// A finished HTTP response.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// `Content-Type`, when there is a body to describe.
    pub media_type: Option<&'static str>,
    /// `Content-Encoding` of the body.
    pub encoding: Encoding,
    /// The strong validator of the body, encoding included.
    pub etag: Option<ETag>,
    /// `Last-Modified`, in seconds after the Unix epoch.
    pub last_modified: Option<u64>,
    /// `Cache-Control`.
    pub caching: caching::Policy,
    /// The request fields that this response depends on.
    pub vary: Option<&'static str>,
    /// Whether scripts of other origins may read it.
    pub cors: Cors,
    /// `Allow`, on 405 and on responses to `OPTIONS`.
    pub allow: Option<&'static str>,
    /// `Location`, on redirects.
    pub location: Option<Bytes>,
    /// Fields that few responses have: challenges, links, rate limits.
    pub more: Vec<(HeaderName, HeaderValue)>,
    /// The content. For `HEAD` and 304 it is not sent.
    pub body: Body,
    /// How the numbers of the site count it; `None` if they do not count it.
    pub counted: Option<Counted>,
}

/// Which CORS fields a response carries (Fetch §3.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cors {
    /// None: scripts of other origins cannot read the response.
    Closed,
    /// Everybody may read it.
    Open,
    /// The response to a preflight, with the allowed requests.
    Preflight,
    /// Everybody may read it: the response of an MCP server.
    Mcp,
    /// The response to a preflight of a message to an MCP server.
    McpPreflight,
}

/// How much of a response is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Header and body.
    Whole,
    /// The header alone, as a response to `HEAD`.
    HeadOnly,
}

// === impl Response ===

impl Response {
    /// Makes a response with a status, a media type and a body. No cache stores it, and only
    /// scripts of the same origin can read it.
    #[must_use]
    pub fn new(status: u16, media_type: &'static str, body: Bytes) -> Self {
        Self {
            media_type: Some(media_type),
            body: body.into(),
            ..Self::empty(status)
        }
    }

    /// Makes a response without content.
    #[must_use]
    pub fn empty(status: u16) -> Self {
        Self {
            status,
            media_type: None,
            encoding: Encoding::Identity,
            etag: None,
            last_modified: None,
            caching: caching::NEVER,
            vary: None,
            cors: Cors::Closed,
            allow: None,
            location: None,
            more: Vec::new(),
            body: Body::default(),
            counted: None,
        }
    }

    /// Makes the response to `OPTIONS` on a static document: 204 with what CORS allows.
    #[must_use]
    pub fn preflight() -> Self {
        Self {
            cors: Cors::Preflight,
            allow: Some(ALLOW_STATIC),
            caching: caching::DISCOVERY,
            ..Self::empty(204)
        }
    }

    /// Adds a header field.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.more.push((name, value));
        self
    }

    /// Turns a 200 into a 304: the same validators and policies, no content and no fields that
    /// describe it (RFC 9110 §15.4.5).
    #[must_use]
    pub fn not_modified(self) -> Self {
        Self {
            status: 304,
            media_type: None,
            encoding: Encoding::Identity,
            more: Vec::new(),
            body: Body::default(),
            ..self
        }
    }

    /// Evaluates the conditions of a request. A response without entity tag has none.
    #[must_use]
    pub fn evaluate(&self, conditions: &Conditions<'_>) -> Outcome {
        self.etag.as_ref().map_or(Outcome::Send, |etag| {
            conditions.evaluate(etag, self.last_modified)
        })
    }

    /// Returns whether a message with this status carries `Content-Length` (RFC 9110 §8.6:
    /// never with 1xx and 204; with 304 only the length a 200 had had, which we leave out).
    fn has_length(&self) -> bool {
        !matches!(self.status, 100..=199 | 204 | 304)
    }

    /// Returns how many body bytes follow the header.
    #[must_use]
    pub fn body_bytes(&self, content: Content) -> usize {
        if content == Content::HeadOnly || !self.has_length() {
            0
        } else {
            self.body.len()
        }
    }
}

/// Whether an HTTP/1.1 connection stays open after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// The next request may follow.
    Keep,
    /// The connection is closed after this response.
    Close,
}

/// Returns status code and reason phrase (RFC 9110 §15).
fn status_line(status: u16) -> &'static str {
    match status {
        200 => "200 OK",
        201 => "201 Created",
        202 => "202 Accepted",
        204 => "204 No Content",
        206 => "206 Partial Content",
        304 => "304 Not Modified",
        307 => "307 Temporary Redirect",
        308 => "308 Permanent Redirect",
        400 => "400 Bad Request",
        401 => "401 Unauthorized",
        403 => "403 Forbidden",
        404 => "404 Not Found",
        405 => "405 Method Not Allowed",
        406 => "406 Not Acceptable",
        408 => "408 Request Timeout",
        409 => "409 Conflict",
        412 => "412 Precondition Failed",
        413 => "413 Content Too Large",
        415 => "415 Unsupported Media Type",
        414 => "414 URI Too Long",
        416 => "416 Range Not Satisfiable",
        417 => "417 Expectation Failed",
        421 => "421 Misdirected Request",
        422 => "422 Unprocessable Content",
        428 => "428 Precondition Required",
        429 => "429 Too Many Requests",
        431 => "431 Request Header Fields Too Large",
        500 => "500 Internal Server Error",
        501 => "501 Not Implemented",
        502 => "502 Bad Gateway",
        503 => "503 Service Unavailable",
        504 => "504 Gateway Timeout",
        505 => "505 HTTP Version Not Supported",
        508 => "508 Loop Detected",
        other => unreachable!("no response has status {other}"),
    }
}

/// Returns the reason phrase of a status that our responses have.
#[must_use]
pub fn reason(status: u16) -> &'static str {
    &status_line(status)[4..]
}

/// How many bytes a date has.
pub const DATE_BYTES: usize = "Sun, 06 Nov 1994 08:49:37 GMT".len();

/// Formats a date as RFC 9110 §5.6.7 wants it.
#[must_use]
pub fn date(unix_seconds: u64) -> [u8; DATE_BYTES] {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(unix_seconds);
    let mut date = [b' '; DATE_BYTES];
    write!(&mut date[..], "{}", httpdate::HttpDate::from(time)).expect("a date has this length");
    date
}

/// Appends a date.
pub fn push_date(out: &mut Vec<u8>, unix_seconds: u64) {
    out.extend_from_slice(&date(unix_seconds));
}
