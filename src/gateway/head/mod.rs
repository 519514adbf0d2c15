//! Request heads, read strictly.
//!
//! pingora forwards requests that RFC 9112 tells a server to reject, or not to forward unchanged.
//! With each of them, two servers in a row can disagree about where a request ends (request
//! smuggling). So the gateway reads every HTTP/1.1 head itself ([`Head::parse`]) and forwards only
//! a head with one meaning. The rules that do not depend on the syntax of HTTP/1.1 are in `rules`;
//! HTTP/2 has the same rules ([`check_http2`]).
//!
//! Sources: RFC 9112 §2.2 (bare LF), §3 (request line), §3.2 (`Host`, target forms), §5
//! (field syntax, no folding), §6 (framing), §2.3 (versions); RFC 9110 §5.5, §7.2, §9.1.

mod rules;

use std::borrow::Cow;
use std::sync::LazyLock;

use bytes::{Buf as _, BytesMut};
use httparse::Status;
use memchr::memmem::Finder;

use super::limits::Limits;
use crate::response::trace::TraceContext;
use crate::response::{Problem, RequestHeaders, Response, request_id};
use crate::site::Scheme;

pub use rules::check_http2;

/// The most header fields that the parser accepts; the configuration can only set fewer.
pub const FIELDS_MAX: usize = 128;
/// How much of `User-Agent` is logged.
const AGENT_BYTES_MAX: usize = 200;
/// Finds the empty line at the end of a head.
static HEAD_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\r\n\r\n"));
/// The methods that a request may have at all; a site may allow fewer.
const ALLOW: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// A request head with exactly one meaning.
#[derive(Clone, Copy, Debug)]
pub struct Head<'b> {
    /// The header fields that a response depends on.
    pub headers: RequestHeaders<'b>,
    /// The form of the target.
    pub form: Form,
    /// Whether the minor version is 1.
    pub is_http11: bool,
    /// The name in `Host`, if it was sent in normal form.
    pub host_name: Option<&'b str>,
    /// The framing of the body after the head.
    pub framing: Framing,
    /// Whether the client wants to keep the connection open.
    pub keep_alive: bool,
    /// Whether only the proxy path may serve the request: it has a field that the fast path
    /// does not read, or one of its own fields twice.
    pub needs_proxy_path: bool,
    /// Whether it has `Content-Length`, also with the value 0.
    pub has_length: bool,
}

/// The forms of a request target that are not rejected (RFC 9112 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `/path?query`.
    Origin,
    /// `http://host/path?query`.
    Absolute(Scheme),
    /// `*`, with `OPTIONS` only.
    Asterisk,
}

/// How the end of a request is found (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// This many bytes follow.
    Length(u64),
    /// Chunks follow.
    Chunked,
}

/// Why a request is rejected. Over HTTP/1.1 the connection is closed after the response: where
/// the next request begins is not certain. Over HTTP/2 only the stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The status of the response.
    pub status: u16,
    /// The error, for the client.
    pub detail: &'static str,
}

/// The fields gathered while walking over the head.
#[derive(Default)]
struct Fields<'b> {
    host: Option<&'b [u8]>,
    content_length: Option<u64>,
    is_chunked: bool,
    close: bool,
    keep_alive: bool,
    headers: RequestHeaders<'b>,
    has_trace: bool,
    needs_proxy_path: bool,
}

const fn reject(status: u16, detail: &'static str) -> Rejection {
    Rejection { status, detail }
}

// === impl Head ===

impl<'b> Head<'b> {
    /// Reads a head; `bytes` end with its empty line.
    ///
    /// # Errors
    ///
    /// The [`Rejection`] to respond with.
    pub fn parse(bytes: &'b [u8], limits: &Limits) -> Result<Self, Rejection> {
        Self::read(bytes, limits, false)
    }

    /// Reads a head whose `Host` may also be an IP address (RFC 3986 §3.2.2). A site has no
    /// address, so only a listener that is not for sites accepts one.
    ///
    /// # Errors
    ///
    /// The [`Rejection`] to respond with.
    pub fn parse_with_address(bytes: &'b [u8], limits: &Limits) -> Result<Self, Rejection> {
        Self::read(bytes, limits, true)
    }

    fn read(bytes: &'b [u8], limits: &Limits, may_be_address: bool) -> Result<Self, Rejection> {
        let mut room = [const { std::mem::MaybeUninit::uninit() }; FIELDS_MAX];
        let mut request = httparse::Request::new(&mut []);
        check_line_ends(bytes)?;
        match request.parse_with_uninit_headers(bytes, &mut room) {
            Ok(Status::Complete(length)) if length == bytes.len() => {}
            Ok(_) => return Err(reject(400, "the request head is not complete")),
            Err(error) => return Err(Rejection::from_syntax(error, bytes)),
        }
        let (method, target) = (
            request.method.unwrap_or_default(),
            request.path.unwrap_or_default(),
        );
        let is_http11 = request.version == Some(1);
        rules::sizes(target.len(), request.headers.len(), limits)?;
        rules::method(method)?;
        let mut fields = Fields::default();
        for header in request.headers.iter() {
            fields.read(header.name, header.value, is_http11)?;
        }
        let host = fields
            .host
            .ok_or(reject(400, "the request has no Host field"))?;
        let host = str::from_utf8(host)
            .map_err(|_not_text| reject(400, "the Host field is not a host"))?;
        let host_name = match rules::host(host, may_be_address)? {
            Some(Cow::Borrowed(name)) => Some(name),
            Some(Cow::Owned(_)) | None => None,
        };
        let form = Form::of(method, target, host)?;
        let framing = match (fields.is_chunked, fields.content_length) {
            // RFC 9112 §6.3 rule 3: possibly request smuggling.
            (true, Some(_)) => {
                return Err(reject(
                    400,
                    "the request has both Content-Length and Transfer-Encoding",
                ));
            }
            (true, None) => Framing::Chunked,
            (false, None | Some(0)) => Framing::None,
            (false, Some(length)) => Framing::Length(length),
        };
        let (path, query) = form.path_and_query(target);
        Ok(Self {
            headers: RequestHeaders {
                method,
                host,
                path,
                query,
                ..fields.headers
            },
            form,
            is_http11,
            host_name,
            framing,
            keep_alive: !fields.close && (is_http11 || fields.keep_alive),
            needs_proxy_path: fields.needs_proxy_path,
            has_length: fields.content_length.is_some(),
        })
    }
}

impl Head<'_> {
    /// Returns whether the fast path may look at the request.
    #[must_use]
    pub fn is_fast_path_form(&self) -> bool {
        self.is_fast_message_form() && !self.has_length
    }

    /// Returns the same for a request that may have content of a known length.
    #[must_use]
    pub fn is_fast_message_form(&self) -> bool {
        self.is_http11
            && self.form == Form::Origin
            && !self.needs_proxy_path
            && self.framing != Framing::Chunked
    }
}

/// Returns the length of the head at the beginning of bytes, the empty line included; `None` if
/// they do not have all of it. No end is in the first `searched` bytes.
#[must_use]
pub fn length(bytes: &[u8], searched: usize) -> Option<usize> {
    let end = HEAD_END.find(&bytes[searched..])?;
    Some(searched + end + HEAD_END.needle().len())
}

/// Returns a field, cut to the length that a log line holds.
#[must_use]
pub fn log_text(field: &[u8]) -> &str {
    let cut = &field[..field.len().min(AGENT_BYTES_MAX)];
    // The cut may be in the middle of a character.
    str::from_utf8(cut)
        .or_else(|error| str::from_utf8(&cut[..error.valid_up_to()]))
        .unwrap_or_default()
}

/// Replaces the URL in the target of a head by its path, in place, and returns the new length of
/// the head. `inbox` begins with the head.
///
/// The authority is equal to `Host` ([`Form`] checks it), and an origin expects a path (RFC 9112
/// §3.2.1; §3.2.4 for `OPTIONS` without one).
pub fn to_origin_form(inbox: &mut BytesMut, length: usize) -> usize {
    let space = |from: usize| memchr::memchr(b' ', &inbox[from..length]).map(|at| from + at);
    let Some((target, end)) = space(0).and_then(|at| Some((at + 1, space(at + 1)?))) else {
        return length;
    };
    let Some(authority) = memchr::memmem::find(&inbox[target..end], b"://") else {
        return length;
    };
    let authority = target + authority + 3;
    let path = memchr::memchr2(b'/', b'?', &inbox[authority..end]).map_or(end, |at| authority + at);
    let start: &[u8] = match inbox[path] {
        b'/' => b"",
        b' ' if inbox.starts_with(b"OPTIONS ") => b"*",
        _ => b"/",
    };
    // A URL is longer than its path: the method moves towards it.
    let removed = path - target - start.len();
    inbox.copy_within(..target, removed);
    inbox[path - start.len()..path].copy_from_slice(start);
    inbox.advance(removed);
    length - removed
}

/// Changes the version of a request line from a later HTTP/1.x to HTTP/1.1, in place. `bytes`
/// begin with the head.
///
/// RFC 9110 §2.5: a server reads a request of a higher minor version as one of the highest minor
/// version that it conforms to. pingora reads no other version either.
///
/// Returns whether the request line had such a version.
pub fn to_known_version(bytes: &mut [u8]) -> bool {
    let Some(end) = memchr::memchr(b'\r', bytes) else {
        return false;
    };
    match &mut bytes[..end] {
        [
            ..,
            b' ',
            b'H',
            b'T',
            b'T',
            b'P',
            b'/',
            b'1',
            b'.',
            minor @ b'2'..=b'9',
        ] => {
            *minor = b'1';
            true
        }
        _ => false,
    }
}

/// Checks the beginning of a head that is not complete: a head that will be rejected anyway is
/// rejected now.
#[must_use]
pub fn reject_early(bytes: &[u8], limits: &Limits) -> Option<Rejection> {
    let is_token = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
    // For example a TLS handshake on a plain port.
    if bytes.first().is_some_and(|first| !is_token(first)) {
        return Some(reject(400, "the request line is malformed"));
    }
    // 100 bytes are enough for the method and the version.
    if bytes.len() > limits.target_bytes_max + 100 && memchr::memchr(b'\n', bytes).is_none() {
        return Some(reject(414, "the request target is too long"));
    }
    if bytes.len() > limits.head_bytes_max {
        return Some(reject(431, "the request head is too large"));
    }
    check_line_ends(bytes).err()
}

/// Returns the method and the path of a request line for the log, as far as it can be parsed:
/// without query and fragment, and without the authority, which may hold a password.
#[must_use]
pub fn request_line(bytes: &[u8]) -> (&str, &str) {
    let line = bytes
        .split(|&b| b == b'\r' || b == b'\n')
        .next()
        .unwrap_or_default();
    let mut words = log_text(line).split(' ');
    let method = words
        .next()
        .filter(|word| word.bytes().all(|b| b.is_ascii_alphabetic()))
        .unwrap_or_default();
    let target = words.next().unwrap_or_default();
    let target = target.split(['?', '#']).next().unwrap_or_default();
    let path = match target.split_once("://") {
        Some((_scheme, rest)) => rest.find('/').map_or("", |at| &rest[at..]),
        // RFC 9112 §3.2.3: the target of CONNECT is an authority.
        None if target.contains('@') && !target.starts_with('/') => "",
        None => target,
    };
    (method, path)
}

/// Rejects a bare LF. RFC 9112 §2.2 allows a recipient to read it as the end of a line; if two
/// recipients in a row differ in that, requests can be smuggled.
fn check_line_ends(bytes: &[u8]) -> Result<(), Rejection> {
    let bare = memchr::memchr_iter(b'\n', bytes).any(|at| at == 0 || bytes[at - 1] != b'\r');
    if bare {
        Err(reject(
            400,
            "a line of the request head ends in a bare line feed",
        ))
    } else {
        Ok(())
    }
}

// === impl Form ===

impl Form {
    fn of(method: &str, target: &str, host: &str) -> Result<Self, Rejection> {
        rules::target_characters(target)?;
        if target.starts_with('/') {
            return Ok(Self::Origin);
        }
        if target == "*" {
            return rules::asterisk(method).map(|()| Self::Asterisk);
        }
        let (name, rest) = target.split_once("://").ok_or(reject(
            400,
            "the request target is neither a path nor an http URL",
        ))?;
        let scheme = rules::scheme(name)?;
        // RFC 9112 §3.2.2: Host must be identical to the target's authority.
        let authority = rest.find(['/', '?']).map_or(rest, |at| &rest[..at]);
        if !authority.eq_ignore_ascii_case(host) {
            return Err(reject(
                400,
                "the Host field and the request target name different hosts",
            ));
        }
        Ok(Self::Absolute(scheme))
    }

    /// Splits a target of this form: its path without authority, and its query.
    fn path_and_query(self, target: &str) -> (&str, Option<&str>) {
        let target = match self {
            Self::Absolute(_) => {
                let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
                rest.find(['/', '?']).map_or("/", |at| &rest[at..])
            }
            Self::Origin | Self::Asterisk => target,
        };
        match memchr::memchr(b'?', target.as_bytes()) {
            // RFC 9110 §4.2.3: an empty path of a URL is `/`.
            Some(0) => ("/", Some(&target[1..])),
            Some(end) => (&target[..end], Some(&target[end + 1..])),
            None => (target, None),
        }
    }
}

// === impl Fields ===

impl<'b> Fields<'b> {
    fn read(&mut self, name: &str, value: &'b [u8], is_http11: bool) -> Result<(), Rejection> {
        // The length first: most fields are none of these.
        match name.len() {
            2 if name.eq_ignore_ascii_case("te") => self.needs_proxy_path = true,
            4 if name.eq_ignore_ascii_case("host") => self.host(value)?,
            5 if name.eq_ignore_ascii_case("range") => self.put(value, |h| &mut h.range),
            6 if name.eq_ignore_ascii_case("accept") => self.put(value, |h| &mut h.accept),
            6 if name.eq_ignore_ascii_case("origin") => self.put(value, |h| &mut h.origin),
            8 if name.eq_ignore_ascii_case("mcp-name") => self.put(value, |h| &mut h.mcp.name),
            10 if name.eq_ignore_ascii_case("mcp-method") => {
                self.put(value, |h| &mut h.mcp.method);
            }
            12 if name.eq_ignore_ascii_case("content-type") => {
                self.put(value, |h| &mut h.content_type);
            }
            20 if name.eq_ignore_ascii_case("mcp-protocol-version") => {
                self.put(value, |h| &mut h.mcp.version);
            }
            6 if name.eq_ignore_ascii_case("expect") => {
                self.needs_proxy_path = true;
                // RFC 9110 §10.1.1: HTTP/1.0 has no expectations; they are ignored.
                if is_http11 {
                    rules::expectation(value)?;
                }
            }
            7 if name.eq_ignore_ascii_case("upgrade") || name.eq_ignore_ascii_case("trailer") => {
                self.needs_proxy_path = true;
            }
            8 if name.eq_ignore_ascii_case("if-range") => self.put(value, |h| &mut h.if_range),
            8 if name.eq_ignore_ascii_case("if-match") => {
                self.put(value, |h| &mut h.conditions.if_match);
            }
            10 if name.eq_ignore_ascii_case("connection") => self.connection(value)?,
            10 if name.eq_ignore_ascii_case("user-agent") => {
                self.headers.user_agent = log_text(value);
            }
            11 if name.eq_ignore_ascii_case("traceparent") => {
                // Two of them name no trace (W3C Trace Context §3.2).
                let is_first = !std::mem::replace(&mut self.has_trace, true);
                self.headers.trace = TraceContext::parse(value).filter(|_| is_first);
            }
            12 if name.eq_ignore_ascii_case("x-request-id") => {
                self.headers.request_id = request_id(value);
            }
            13 if name.eq_ignore_ascii_case("if-none-match") => {
                self.put(value, |h| &mut h.conditions.if_none_match);
            }
            14 if name.eq_ignore_ascii_case("content-length") => {
                self.content_length = Some(rules::content_length(value, self.content_length)?);
            }
            14 if name.eq_ignore_ascii_case("http2-settings") => self.needs_proxy_path = true,
            15 if name.eq_ignore_ascii_case("accept-encoding") => {
                self.put(value, |h| &mut h.accept_encoding);
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                self.transfer_encoding(value, is_http11)?;
            }
            17 if name.eq_ignore_ascii_case("if-modified-since") => {
                self.put(value, |h| &mut h.conditions.if_modified_since);
            }
            19 if name.eq_ignore_ascii_case("if-unmodified-since") => {
                self.put(value, |h| &mut h.conditions.if_unmodified_since);
            }
            _ => {}
        }
        Ok(())
    }

    /// Keeps a field. The lines of a field that came before are joined on the proxy path.
    fn put(
        &mut self,
        value: &'b [u8],
        field: impl for<'h> FnOnce(&'h mut RequestHeaders<'b>) -> &'h mut Option<&'b [u8]>,
    ) {
        let before = field(&mut self.headers).replace(value);
        self.needs_proxy_path |= before.is_some();
    }

    fn host(&mut self, value: &'b [u8]) -> Result<(), Rejection> {
        // RFC 9112 §3.2: a second Host is 400.
        match self.host.replace(value.trim_ascii()) {
            None => Ok(()),
            Some(_) => Err(reject(400, "the request has more than one Host field")),
        }
    }

    fn connection(&mut self, value: &[u8]) -> Result<(), Rejection> {
        for option in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
            match option {
                _ if option.eq_ignore_ascii_case(b"close") => self.close = true,
                _ if option.eq_ignore_ascii_case(b"keep-alive") => self.keep_alive = true,
                // RFC 9110 §7.6.1: an end-to-end field must not be named here. One proxy would
                // remove it, another would forward it.
                _ if [
                    &b"host"[..],
                    b"content-length",
                    b"transfer-encoding",
                    b"authorization",
                    b"cookie",
                ]
                .iter()
                .any(|name| option.eq_ignore_ascii_case(name)) =>
                {
                    return Err(reject(
                        400,
                        "the Connection field nominates an end-to-end field",
                    ));
                }
                _ => self.needs_proxy_path = true,
            }
        }
        Ok(())
    }

    fn transfer_encoding(&mut self, value: &[u8], is_http11: bool) -> Result<(), Rejection> {
        // RFC 9112 §6.1: in HTTP/1.0 the framing would be wrong.
        if !is_http11 {
            return Err(reject(
                400,
                "an HTTP/1.0 request cannot have Transfer-Encoding",
            ));
        }
        let codings: Vec<&[u8]> = value
            .split(|&b| b == b',')
            .map(<[u8]>::trim_ascii)
            .collect();
        let chunked = codings
            .iter()
            .filter(|coding| coding.eq_ignore_ascii_case(b"chunked"))
            .count();
        // §6.1: chunked must not be applied more than once; §7: 501 for codings we do not know.
        if self.is_chunked || chunked > 1 {
            return Err(reject(400, "the request is chunked more than once"));
        }
        if chunked != codings.len() {
            return Err(reject(501, "this transfer coding is not implemented"));
        }
        self.is_chunked = true;
        self.needs_proxy_path = true;
        Ok(())
    }
}

// === impl Rejection ===

impl Rejection {
    /// Returns the response that tells the client.
    #[must_use]
    pub fn response(&self) -> Response {
        let response = Problem::new(self.status, self.detail).response();
        Response {
            allow: (self.status == 405).then_some(ALLOW),
            ..response
        }
    }

    fn from_syntax(error: httparse::Error, bytes: &[u8]) -> Self {
        match error {
            // RFC 9112 §2.3: 505 for a major version we do not speak.
            httparse::Error::Version if has_other_version(bytes) => {
                reject(505, "this version of HTTP is not supported")
            }
            httparse::Error::TooManyHeaders => {
                reject(431, "the request has too many header fields")
            }
            httparse::Error::HeaderName => reject(400, "a header field has an invalid name"),
            httparse::Error::HeaderValue => reject(400, "a header field has an invalid value"),
            _ => reject(400, "the request line is malformed"),
        }
    }
}

/// Returns whether the request line ends in a well-formed version that is not 1.0 or 1.1.
fn has_other_version(bytes: &[u8]) -> bool {
    let line = bytes.split(|&b| b == b'\r').next().unwrap_or_default();
    let mut words = line.split(|&b| b == b' ').skip(2);
    let is_version = |word: &[u8]| match word {
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] => {
            major.is_ascii_digit() && minor.is_ascii_digit()
        }
        _ => false,
    };
    words.next().is_some_and(is_version) && words.next().is_none()
}

#[cfg(test)]
mod tests;
