//! Responses: finished HTTP responses that are not sent yet.
//!
//! Discovery, the admin API, the embedded origin and every error produce a [`Response`]. It is
//! written as HTTP/1.1 text by the fast path ([`MaybeCached::write_head`]), or as a
//! [`ResponseHeader`] for HTTP/2 and for pingora ([`Response::response_header`]). Both use the
//! same list of fields, so a response cannot depend on the path it takes.
//!
//! Making a response copies and allocates nothing: bodies are shared bytes, or files that are read
//! while they are sent ([`Body`]); header values are constants or are formatted into the writer's
//! buffer.
//!
//! Sources: RFC 9110 (semantics), RFC 9111 (caching), Fetch §3.2 (CORS).

mod body;
pub mod caching;
mod conditional;
mod counted;
mod encoder_memory;
pub mod encoding;
mod cached;
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
use http::Version;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use pingora::http::ResponseHeader;

/// The CORS fields of discovery documents: scripts of other origins may read the documents and
/// their entity tags. A2A clients in browsers send `A2A-Version`, which needs a preflight.
const CORS_METHODS: &str = "GET, HEAD, OPTIONS";
const CORS_HEADERS: &str = "Accept, A2A-Version, Content-Type, If-None-Match, MCP-Protocol-Version";
/// The fields of messages to MCP servers, also of earlier revisions: clients send them, and
/// a browser sends nothing if one of them is not allowed.
const MCP_CORS_HEADERS: &str = "Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Method, \
     Mcp-Name, MCP-Protocol-Version, Mcp-Session-Id";
const CORS_MAX_AGE: &str = "86400";
/// The methods of every static document.
pub const ALLOW_STATIC: &str = "GET, HEAD, OPTIONS";

/// Most responses have at most this many fields, and most formatted values are at most this long.
const FIELDS_TYPICAL: usize = 16;
const FIELD_BYTES_TYPICAL: usize = 80;

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

    /// Calls `field` with every header field but `Date` and `Connection`, in the order in
    /// which the fast path writes them. `scratch` is where numbers are formatted; it is
    /// cleared for each.
    fn fields(&self, scratch: &mut Vec<u8>, mut field: impl FnMut(&HeaderName, Value<'_>)) {
        if let Some(media_type) = self.media_type {
            field(&header::CONTENT_TYPE, Value::Constant(media_type));
        }
        if self.has_length() {
            scratch.clear();
            push_decimal(scratch, self.body.len());
            field(&header::CONTENT_LENGTH, Value::Made(scratch));
        }
        if let Some(coding) = self.encoding.coding() {
            field(&header::CONTENT_ENCODING, Value::Constant(coding));
        }
        if let Some(etag) = &self.etag {
            scratch.clear();
            etag.write(scratch);
            field(&header::ETAG, Value::Made(scratch));
        }
        if let Some(seconds) = self.last_modified {
            scratch.clear();
            push_date(scratch, seconds);
            field(&header::LAST_MODIFIED, Value::Made(scratch));
        }
        if self.caching != caching::OWN {
            field(&header::CACHE_CONTROL, Value::Constant(self.caching));
        }
        if let Some(vary) = self.vary {
            field(&header::VARY, Value::Constant(vary));
        }
        for (name, value) in self.cors.fields() {
            field(name, Value::Constant(value));
        }
        if self.media_type.is_some() {
            field(&header::X_CONTENT_TYPE_OPTIONS, Value::Constant("nosniff"));
        }
        if let Some(allow) = self.allow {
            field(&header::ALLOW, Value::Constant(allow));
        }
        if let Some(location) = &self.location {
            field(&header::LOCATION, Value::Made(location));
        }
        for (name, value) in &self.more {
            field(name, Value::Made(value.as_bytes()));
        }
    }

    /// Appends the field lines of a header section, all but `Date` and `Connection`.
    fn write_fields(&self, out: &mut Vec<u8>, scratch: &mut Vec<u8>) {
        self.fields(scratch, |name, value| {
            out.extend_from_slice(title_case(name).as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value.as_bytes());
            out.extend_from_slice(b"\r\n");
        });
    }

    /// Returns the header as pingora's type. pingora adds `Date` in every version of HTTP.
    #[must_use]
    pub fn response_header(&self, version: Version) -> ResponseHeader {
        // HTTP/2 has lower-case names only.
        let build = if version == Version::HTTP_2 {
            ResponseHeader::build_no_case
        } else {
            ResponseHeader::build
        };
        let mut response =
            build(self.status, Some(FIELDS_TYPICAL)).expect("our status codes are valid");
        let mut scratch = Vec::with_capacity(FIELD_BYTES_TYPICAL);
        self.fields(&mut scratch, |name, value| {
            response
                .append_header(name, value.to_header_value())
                .expect("a header name and value we made");
        });
        response
    }

    /// Returns the fields for HTTP/2, all but `Date`.
    #[must_use]
    pub fn http2_fields(&self) -> HeaderMap {
        let mut fields = HeaderMap::with_capacity(FIELDS_TYPICAL);
        let mut scratch = Vec::with_capacity(FIELD_BYTES_TYPICAL);
        self.fields(&mut scratch, |name, value| {
            fields.append(name, value.to_header_value());
        });
        fields
    }
}

/// The value of a field.
#[derive(Clone, Copy)]
enum Value<'v> {
    /// Always the same.
    Constant(&'static str),
    /// Made for this response.
    Made(&'v [u8]),
}

// === impl Value ===

impl<'v> Value<'v> {
    fn as_bytes(self) -> &'v [u8] {
        match self {
            Self::Constant(text) => text.as_bytes(),
            Self::Made(bytes) => bytes,
        }
    }

    fn to_header_value(self) -> HeaderValue {
        match self {
            Self::Constant(text) => HeaderValue::from_static(text),
            Self::Made(bytes) => {
                HeaderValue::from_bytes(bytes).expect("our header values are visible ASCII")
            }
        }
    }
}

// === impl Cors ===

impl Cors {
    fn fields(self) -> &'static [(HeaderName, &'static str)] {
        const OPEN: [(HeaderName, &str); 2] = [
            (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
            (header::ACCESS_CONTROL_EXPOSE_HEADERS, "ETag"),
        ];
        const PREFLIGHT: [(HeaderName, &str); 4] = [
            (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
            (header::ACCESS_CONTROL_ALLOW_METHODS, CORS_METHODS),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, CORS_HEADERS),
            (header::ACCESS_CONTROL_MAX_AGE, CORS_MAX_AGE),
        ];
        const MCP: [(HeaderName, &str); 2] = [
            (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
            (header::ACCESS_CONTROL_EXPOSE_HEADERS, "Retry-After"),
        ];
        const MCP_PREFLIGHT: [(HeaderName, &str); 4] = [
            (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
            (header::ACCESS_CONTROL_ALLOW_METHODS, "POST, OPTIONS"),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, MCP_CORS_HEADERS),
            (header::ACCESS_CONTROL_MAX_AGE, CORS_MAX_AGE),
        ];
        match self {
            Self::Mcp => &MCP,
            Self::McpPreflight => &MCP_PREFLIGHT,
            Self::Closed => &[],
            Self::Open => &OPEN,
            Self::Preflight => &PREFLIGHT,
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

/// Returns the spelling of a header name that HTTP/1.1 clients are used to. Names compare
/// without case (RFC 9110 §5.1); this is for people who read with `curl -i`.
fn title_case(name: &HeaderName) -> &str {
    match name.as_str() {
        "content-type" => "Content-Type",
        "content-length" => "Content-Length",
        "content-encoding" => "Content-Encoding",
        "etag" => "ETag",
        "last-modified" => "Last-Modified",
        "cache-control" => "Cache-Control",
        "vary" => "Vary",
        "access-control-allow-origin" => "Access-Control-Allow-Origin",
        "access-control-expose-headers" => "Access-Control-Expose-Headers",
        "x-content-type-options" => "X-Content-Type-Options",
        "allow" => "Allow",
        "location" => "Location",
        "strict-transport-security" => "Strict-Transport-Security",
        other => other,
    }
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

/// Appends a number in decimal digits.
fn push_decimal(out: &mut Vec<u8>, number: usize) {
    write!(out, "{number}").expect("a Vec takes every byte");
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
