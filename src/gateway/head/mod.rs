//! Request heads, read strictly.
//!
//! pingora forwards requests that RFC 9112 says a server must refuse or may not pass on
//! unchanged; each of them is a way for two servers in a row to disagree about where a
//! request ends. The connection handler therefore reads every HTTP/1.1 head itself and hands on only
//! what has one meaning. [`Head::parse`] is that reading: a whole head in, its parts or
//! the status of the refusal out.
//!
//! Sources: RFC 9112 §2.2 (bare LF), §3 (request line), §3.2 (`Host`, target forms), §5
//! (field syntax, no folding), §6 (framing), §2.3 (versions); RFC 9110 §5.5, §7.2, §9.1.

use std::borrow::Cow;

use bytes::{Buf as _, BytesMut};
use httparse::Status;

use super::limits::Limits;
use crate::site::{self, Scheme};

/// The most header fields the parser has room for, whatever the configuration says.
pub const FIELDS_MAX: usize = 128;
/// How much of `User-Agent` is logged.
const AGENT_BYTES_MAX: usize = 200;

/// A request head with exactly one meaning.
#[derive(Clone, Copy, Debug)]
pub struct Head<'b> {
    /// The method, as sent.
    pub method: &'b str,
    /// The target, as sent: `/path?query`, `http://host/path` or `*`.
    pub target: &'b str,
    /// The form the target has.
    pub form: Form,
    /// Whether the minor version is 1.
    pub is_http11: bool,
    /// The `Host` field (equal to the authority of an absolute target).
    pub host: &'b str,
    /// The name in it, when it was sent in normal form.
    pub host_name: Option<&'b str>,
    /// What follows the head.
    pub framing: Framing,
    /// What the client wants to happen to the connection afterwards.
    pub keep_alive: bool,
    /// `User-Agent`, cut to what a log line holds; empty when it is not text.
    pub agent: &'b str,
    /// The fields that decide about the fast path.
    pub express: Express<'b>,
}

/// The forms of a request target (RFC 9112 §3.2) that a proxy for sites can meet.
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

/// What the fast path wants to know.
#[derive(Clone, Copy, Debug, Default)]
pub struct Express<'b> {
    /// The only `Accept-Encoding`.
    pub accept_encoding: Option<&'b [u8]>,
    /// The only `Accept`.
    pub accept: Option<&'b [u8]>,
    /// The only `If-None-Match`.
    pub if_none_match: Option<&'b [u8]>,
    /// Whether `If-Modified-Since` is there.
    pub has_date: bool,
    /// Whether a field is there whose meaning the fast path leaves to the proxy path.
    pub is_barred: bool,
}

/// Why a head is refused. The connection is closed after the response: what follows a head
/// that cannot be trusted cannot be either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status of the response.
    pub status: u16,
    /// What is wrong, for the client.
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
    agent: &'b [u8],
    express: Express<'b>,
}

const fn refuse(status: u16, detail: &'static str) -> Refusal {
    Refusal { status, detail }
}

// === impl Head ===

impl<'b> Head<'b> {
    /// Reads a head; `bytes` end with its empty line.
    ///
    /// # Errors
    ///
    /// The [`Refusal`] to answer with.
    pub fn parse(bytes: &'b [u8], limits: &Limits) -> Result<Self, Refusal> {
        Self::read(bytes, limits, false)
    }

    /// Reads a head whose `Host` may also be an IP address (RFC 3986 §3.2.2). A site has no
    /// address, so only a listener that is not for sites takes one.
    ///
    /// # Errors
    ///
    /// The [`Refusal`] to answer with.
    pub fn parse_with_address(bytes: &'b [u8], limits: &Limits) -> Result<Self, Refusal> {
        Self::read(bytes, limits, true)
    }

    fn read(bytes: &'b [u8], limits: &Limits, may_be_address: bool) -> Result<Self, Refusal> {
        let mut room = [const { std::mem::MaybeUninit::uninit() }; FIELDS_MAX];
        let mut request = httparse::Request::new(&mut []);
        check_line_ends(bytes)?;
        match request.parse_with_uninit_headers(bytes, &mut room) {
            Ok(Status::Complete(length)) if length == bytes.len() => {}
            Ok(_) => return Err(refuse(400, "the request head is not complete")),
            Err(error) => return Err(Refusal::from_syntax(error, bytes)),
        }
        let (method, target) = (
            request.method.unwrap_or_default(),
            request.path.unwrap_or_default(),
        );
        let is_http11 = request.version == Some(1);
        if target.len() > limits.target_bytes_max {
            return Err(refuse(414, "the request target is too long"));
        }
        if request.headers.len() > limits.fields_max {
            return Err(refuse(431, "the request has too many header fields"));
        }
        // RFC 9110 §9.3.8, §9.3.6: TRACE would send credentials back; CONNECT is for proxies
        // that a client chose.
        if matches!(method, "TRACE" | "CONNECT") {
            return Err(refuse(405, "this method is not allowed here"));
        }
        let mut fields = Fields::default();
        for header in request.headers.iter() {
            fields.read(header.name, header.value, is_http11)?;
        }
        let host = fields
            .host
            .ok_or(refuse(400, "the request has no Host field"))?;
        let host = str::from_utf8(host)
            .map_err(|_not_text| refuse(400, "the Host field is not a host"))?;
        let host_name = match site::normalise(host) {
            Ok(Cow::Borrowed(name)) => Some(name),
            Ok(Cow::Owned(_)) => None,
            Err(site::InvalidHost::Address) if may_be_address => None,
            Err(_) => return Err(refuse(400, "the Host field is not a host name")),
        };
        let form = Form::of(method, target, host)?;
        let framing = match (fields.is_chunked, fields.content_length) {
            // RFC 9112 §6.3 rule 3: an attempt at request smuggling.
            (true, Some(_)) => {
                return Err(refuse(
                    400,
                    "the request has both Content-Length and Transfer-Encoding",
                ));
            }
            (true, None) => Framing::Chunked,
            (false, None | Some(0)) => Framing::None,
            (false, Some(length)) => Framing::Length(length),
        };
        fields.express.is_barred |= fields.content_length.is_some();
        let keep_alive = !fields.close && (is_http11 || fields.keep_alive);
        let agent = log_text(fields.agent);
        Ok(Self {
            method,
            target,
            form,
            is_http11,
            host,
            host_name,
            framing,
            keep_alive,
            agent,
            express: fields.express,
        })
    }

    /// Returns the target's path, without query and authority.
    #[must_use]
    pub fn path(&self) -> &'b str {
        let target = match self.form {
            Form::Absolute(_) => {
                let rest = self
                    .target
                    .split_once("://")
                    .map_or(self.target, |(_scheme, rest)| rest);
                rest.find(['/', '?']).map_or("/", |at| &rest[at..])
            }
            Form::Origin | Form::Asterisk => self.target,
        };
        target.split_once('?').map_or(target, |(path, _query)| path)
    }
}

/// Returns as much of a field as a log line holds.
#[must_use]
pub fn log_text(field: &[u8]) -> &str {
    let cut = &field[..field.len().min(AGENT_BYTES_MAX)];
    // What is not ASCII may have been cut in the middle of a character.
    str::from_utf8(cut)
        .or_else(|error| str::from_utf8(&cut[..error.valid_up_to()]))
        .unwrap_or_default()
}

/// Rewrites a head whose target is a URL so that its target is the path of it, in place, and
/// returns its new length. `inbox` begins with the head.
///
/// The authority says nothing that `Host` does not ([`Form`] holds them equal), and an origin
/// expects a path (RFC 9112 §3.2.1; §3.2.4 for `OPTIONS` without one).
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
    // A URL is longer than its path: the method moves up to it.
    let removed = path - target - start.len();
    inbox.copy_within(..target, removed);
    inbox[path - start.len()..path].copy_from_slice(start);
    inbox.advance(removed);
    length - removed
}

/// Finds in a head that is not whole yet what makes waiting for the rest pointless.
#[must_use]
pub fn refuse_early(bytes: &[u8], limits: &Limits) -> Option<Refusal> {
    let is_token = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
    // A TLS handshake on a plain port, or no HTTP at all.
    if bytes.first().is_some_and(|first| !is_token(first)) {
        return Some(refuse(400, "the request line is malformed"));
    }
    // The rest of the room is for a method; a line this long will not become valid.
    if bytes.len() > limits.target_bytes_max + 100 && memchr::memchr(b'\n', bytes).is_none() {
        return Some(refuse(414, "the request target is too long"));
    }
    if bytes.len() > limits.head_bytes_max {
        return Some(refuse(431, "the request head is too large"));
    }
    check_line_ends(bytes).err()
}

/// Returns method and path of a request line as far as they can be told, for the log:
/// without query and fragment, and without an authority, which may carry a password.
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

/// RFC 9112 §2.2: a recipient may take a bare LF as a line end; two recipients in a row
/// that differ in that are a smuggling vector. A bare CR must be refused.
fn check_line_ends(bytes: &[u8]) -> Result<(), Refusal> {
    let bare = memchr::memchr_iter(b'\n', bytes).any(|at| at == 0 || bytes[at - 1] != b'\r');
    if bare {
        Err(refuse(
            400,
            "a line of the request head ends in a bare line feed",
        ))
    } else {
        Ok(())
    }
}

// === impl Form ===

impl Form {
    fn of(method: &str, target: &str, host: &str) -> Result<Self, Refusal> {
        // RFC 3986 §3.5 and §2: no fragment, no backslash, nothing outside visible ASCII. Of
        // the other characters that no URL has, real clients send some; these they encode
        // (WHATWG URL §1.3), and pingora does not read them: `<`, `>`, and besides `"` in a
        // query and a back quote in a path.
        let path_length = target.find('?').unwrap_or(target.len());
        let stranger = |(at, b): (usize, u8)| {
            !(0x21..=0x7e).contains(&b)
                || matches!(b, b'#' | b'\\' | b'<' | b'>')
                || b == if at < path_length { b'`' } else { b'"' }
        };
        if target.bytes().enumerate().any(stranger) {
            return Err(refuse(
                400,
                "the request target has characters that no URL has",
            ));
        }
        if target.starts_with('/') {
            return Ok(Self::Origin);
        }
        if target == "*" {
            let response = refuse(400, "the target * is for OPTIONS");
            return if method == "OPTIONS" {
                Ok(Self::Asterisk)
            } else {
                Err(response)
            };
        }
        let scheme = |name: &str| match name {
            _ if name.eq_ignore_ascii_case("http") => Some(Scheme::Http),
            _ if name.eq_ignore_ascii_case("https") => Some(Scheme::Https),
            _ => None,
        };
        let (scheme, rest) = target
            .split_once("://")
            .and_then(|(name, rest)| Some((scheme(name)?, rest)))
            .ok_or(refuse(
                400,
                "the request target is neither a path nor an http URL",
            ))?;
        // RFC 9112 §3.2.2: Host must be identical to the target's authority.
        let authority = rest.find(['/', '?']).map_or(rest, |at| &rest[..at]);
        if !authority.eq_ignore_ascii_case(host) {
            return Err(refuse(
                400,
                "the Host field and the request target name different hosts",
            ));
        }
        Ok(Self::Absolute(scheme))
    }
}

// === impl Fields ===

impl<'b> Fields<'b> {
    fn read(&mut self, name: &str, value: &'b [u8], is_http11: bool) -> Result<(), Refusal> {
        // Length first: most fields are neither.
        match name.len() {
            2 if name.eq_ignore_ascii_case("te") => self.express.is_barred = true,
            4 if name.eq_ignore_ascii_case("host") => self.host(value)?,
            5 if name.eq_ignore_ascii_case("range") => self.express.is_barred = true,
            6 if name.eq_ignore_ascii_case("accept") => {
                self.express.is_barred |= self.express.accept.replace(value).is_some();
            }
            6 if name.eq_ignore_ascii_case("expect") => {
                self.express.is_barred = true;
                // RFC 9110 §10.1.1: there is one expectation; any other cannot be met.
                if !value.eq_ignore_ascii_case(b"100-continue") {
                    return Err(refuse(
                        417,
                        "the request expects something other than 100-continue",
                    ));
                }
            }
            7 if name.eq_ignore_ascii_case("upgrade") || name.eq_ignore_ascii_case("trailer") => {
                self.express.is_barred = true
            }
            8 if name.eq_ignore_ascii_case("if-range") || name.eq_ignore_ascii_case("if-match") => {
                self.express.is_barred = true
            }
            10 if name.eq_ignore_ascii_case("connection") => self.connection(value)?,
            10 if name.eq_ignore_ascii_case("user-agent") => self.agent = value,
            13 if name.eq_ignore_ascii_case("if-none-match") => {
                self.express.is_barred |= self.express.if_none_match.replace(value).is_some();
            }
            14 if name.eq_ignore_ascii_case("content-length") => self.content_length(value)?,
            14 if name.eq_ignore_ascii_case("http2-settings") => self.express.is_barred = true,
            15 if name.eq_ignore_ascii_case("accept-encoding") => {
                self.express.is_barred |= self.express.accept_encoding.replace(value).is_some();
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                self.transfer_encoding(value, is_http11)?
            }
            17 if name.eq_ignore_ascii_case("if-modified-since") => self.express.has_date = true,
            19 if name.eq_ignore_ascii_case("if-unmodified-since") => self.express.is_barred = true,
            _ => {}
        }
        Ok(())
    }

    fn host(&mut self, value: &'b [u8]) -> Result<(), Refusal> {
        // RFC 9112 §3.2: a second Host must be answered 400.
        match self.host.replace(value.trim_ascii()) {
            None => Ok(()),
            Some(_) => Err(refuse(400, "the request has more than one Host field")),
        }
    }

    fn connection(&mut self, value: &[u8]) -> Result<(), Refusal> {
        for option in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
            match option {
                _ if option.eq_ignore_ascii_case(b"close") => self.close = true,
                _ if option.eq_ignore_ascii_case(b"keep-alive") => self.keep_alive = true,
                // RFC 9110 §7.6.1: an end-to-end field must not be nominated; a proxy that
                // obeys would strip it, one that does not would pass it on.
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
                    return Err(refuse(
                        400,
                        "the Connection field nominates an end-to-end field",
                    ));
                }
                _ => self.express.is_barred = true,
            }
        }
        self.express.is_barred |= self.close;
        Ok(())
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        // RFC 9110 §8.6: digits only. A list or a second field could be collapsed when all
        // its members are equal; an origin that takes another member must not see it.
        let digits = value.trim_ascii();
        let number = (!digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
            .then(|| str::from_utf8(digits).ok()?.parse().ok())
            .flatten();
        match (number, self.content_length) {
            (Some(length), None) => self.content_length = Some(length),
            (Some(_), Some(_)) => {
                return Err(refuse(400, "the request has more than one Content-Length"));
            }
            (None, _) => return Err(refuse(400, "the Content-Length is not a number")),
        }
        Ok(())
    }

    fn transfer_encoding(&mut self, value: &[u8], is_http11: bool) -> Result<(), Refusal> {
        // RFC 9112 §6.1: with HTTP/1.0 the framing is faulty.
        if !is_http11 {
            return Err(refuse(
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
            return Err(refuse(400, "the request is chunked more than once"));
        }
        if chunked != codings.len() {
            return Err(refuse(501, "this transfer coding is not implemented"));
        }
        self.is_chunked = true;
        self.express.is_barred = true;
        Ok(())
    }
}

// === impl Refusal ===

impl Refusal {
    fn from_syntax(error: httparse::Error, bytes: &[u8]) -> Self {
        match error {
            // RFC 9112 §2.3: 505 for a major version we do not speak.
            httparse::Error::Version if has_other_version(bytes) => {
                refuse(505, "this version of HTTP is not supported")
            }
            httparse::Error::TooManyHeaders => {
                refuse(431, "the request has too many header fields")
            }
            httparse::Error::HeaderName => refuse(400, "a header field has an invalid name"),
            httparse::Error::HeaderValue => refuse(400, "a header field has an invalid value"),
            _ => refuse(400, "the request line is malformed"),
        }
    }
}

/// Returns whether the request line ends in a well-formed version that is not 1.0 or 1.1.
fn has_other_version(bytes: &[u8]) -> bool {
    let line = bytes.split(|&b| b == b'\r').next().unwrap_or_default();
    let mut words = line.split(|&b| b == b' ').skip(2);
    let is_version = |word: &[u8]| matches!(word, [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] if major.is_ascii_digit() && minor.is_ascii_digit());
    words.next().is_some_and(is_version) && words.next().is_none()
}

#[cfg(test)]
mod tests;
