//! The head of an upstream's response, and the head that the client gets.
//!
//! The rules are those of the proxy path. The order of the fields and the case of their names
//! stay; our own fields come last.
//!
//! Sources: RFC 9112 §5.2 (folded lines), §6.3 (where a response ends), §9.3 (persistence);
//! RFC 9110 §7.6.1 (fields of the connection), §8.6 (lengths), §15.2 (interim responses);
//! RFC 6797 §8.1 (the first `Strict-Transport-Security` counts).

use std::mem::MaybeUninit;

use http::header::HeaderValue;
use httparse::{ParserConfig, Status};

use super::content::Content;
use crate::gateway::access::write_number;
use crate::gateway::forward;
use crate::gateway::http2_stream::is_event_stream_type;
use crate::response::{Connection, DATE_BYTES};

/// How many fields a response may have. pingora has the same limit.
const FIELDS_MAX: usize = 256;
/// The longest head of a response, in bytes. pingora has the same limit.
pub(super) const HEAD_BYTES_MAX: usize = (1 << 20) - 1;

/// The parsed head of a response.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: u16,
    /// The length of the head, in bytes.
    pub(super) length: usize,
    /// The content after the head. After an interim response comes another head.
    pub(super) content: Content,
    /// Whether the upstream keeps its connection open.
    pub(super) is_kept: bool,
    /// Whether it may be silent for a long time.
    pub(super) is_event_stream: bool,
}

/// The client that gets a response.
#[derive(Debug)]
pub(super) struct Recipient<'r> {
    pub(super) is_head: bool,
    pub(super) after: Connection,
    pub(super) date: [u8; DATE_BYTES],
    pub(super) hsts: Option<&'r HeaderValue>,
    /// The domain of the service.
    pub(super) domain: &'r str,
}

/// A head that is not one, or that has two meanings.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The fields that decide where a response ends and which fields the client gets.
#[derive(Debug, Default)]
struct Facts {
    lengths: Lengths,
    has_coding: bool,
    /// Whether the last transfer coding is `chunked`.
    is_chunked: bool,
    close: bool,
    keep_alive: bool,
    /// Whether `Connection` names other fields.
    nominates: bool,
    has_hsts: bool,
    is_event_stream: bool,
}

/// The values of `Content-Length`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Lengths {
    #[default]
    None,
    One(u64),
    Invalid,
}

impl Recipient<'_> {
    /// Reads the head at the front of `bytes`, and writes the client's head to `out`. Returns
    /// `None` if the head is not complete.
    ///
    /// # Errors
    ///
    /// When the response cannot be forwarded.
    pub(super) fn read(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Option<Head>, Malformed> {
        let mut room = [const { MaybeUninit::uninit() }; FIELDS_MAX];
        let mut response = httparse::Response::new(&mut []);
        let mut parser = ParserConfig::default();
        parser.allow_spaces_after_header_name_in_responses(true);
        parser.allow_obsolete_multiline_headers_in_responses(true);
        let parsed = parser.parse_response_with_uninit_headers(&mut response, bytes, &mut room);
        let length = match parsed {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) if bytes.len() <= HEAD_BYTES_MAX => return Ok(None),
            Ok(Status::Partial) | Err(_) => return Err(Malformed),
        };
        let status = response.code.filter(|code| *code >= 100).ok_or(Malformed)?;
        let fields = &*response.headers;
        let facts = Facts::of(fields);
        let is_http11 = response.version == Some(1);
        let content = self.content(status, &facts)?;
        let is_interim = status < 200;
        out.extend_from_slice(b"HTTP/1.1 ");
        write_number(out, status.into());
        out.push(b' ');
        out.extend_from_slice(response.reason.unwrap_or_default().as_bytes());
        out.extend_from_slice(b"\r\n");
        let has_no_content = is_interim || matches!(status, 204 | 304);
        for field in fields {
            self.write_field(field, fields, &facts, has_no_content, out);
        }
        if let (false, false, Lengths::One(length)) =
            (has_no_content, facts.has_coding, facts.lengths)
        {
            out.extend_from_slice(b"Content-Length: ");
            write_number(out, length);
            out.extend_from_slice(b"\r\n");
        }
        if content == Content::Rechunked {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        if !is_interim {
            self.write_own(&facts, content.ends_connection(), out);
        }
        out.extend_from_slice(b"Via: 1.1 ");
        out.extend_from_slice(self.domain.as_bytes());
        out.extend_from_slice(b"\r\n\r\n");
        Ok(Some(Head {
            status,
            length,
            content,
            is_kept: facts.is_kept(is_http11),
            is_event_stream: facts.is_event_stream,
        }))
    }

    /// Decides what follows the head (RFC 9112 §6.3).
    fn content(&self, status: u16, facts: &Facts) -> Result<Content, Malformed> {
        if facts.lengths == Lengths::Invalid && !facts.has_coding {
            return Err(Malformed);
        }
        Ok(match (status, facts.lengths) {
            // RFC 9110 §15.2.2: only a request with `Upgrade` is answered with 101.
            (101, _) => return Err(Malformed),
            (100..=199 | 204 | 304, _) => Content::None,
            _ if self.is_head => Content::None,
            _ if facts.is_chunked => Content::chunked(),
            _ if facts.has_coding => Content::Raw,
            (_, Lengths::One(length)) => Content::Length(length),
            _ => Content::Rechunked,
        })
    }

    fn write_field(
        &self,
        field: &httparse::Header<'_>,
        fields: &[httparse::Header<'_>],
        facts: &Facts,
        has_no_content: bool,
        out: &mut Vec<u8>,
    ) {
        let is = |known: &str| field.name.eq_ignore_ascii_case(known);
        let is_dropped = match field.name.len() {
            // One from us is enough.
            4 => is("date"),
            7 => is("upgrade") || is("trailer"),
            // Trailers are not forwarded, so they are not announced.
            10 => is("connection") || is("keep-alive"),
            14 => is("content-length"),
            16 => is("proxy-connection"),
            // RFC 9112 §6.1.
            17 => has_no_content && is("transfer-encoding"),
            _ => false,
        };
        let is_framing = is("transfer-encoding");
        if is_dropped || facts.nominates && !is_framing && is_nominated(field.name, fields) {
            return;
        }
        out.extend_from_slice(field.name.as_bytes());
        out.extend_from_slice(b": ");
        if is("set-cookie") {
            match forward::confined(field.value, self.domain) {
                Some(confined) => write_value(&confined, out),
                None => write_value(field.value, out),
            }
        } else {
            write_value(field.value, out);
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Writes the fields of each final response.
    fn write_own(&self, facts: &Facts, ends_connection: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(b"Date: ");
        out.extend_from_slice(&self.date);
        out.extend_from_slice(match self.after {
            Connection::Keep if !ends_connection => b"\r\nConnection: keep-alive\r\n",
            Connection::Keep | Connection::Close => b"\r\nConnection: close\r\n",
        });
        if let Some(hsts) = self.hsts.filter(|_| !facts.has_hsts) {
            out.extend_from_slice(b"Strict-Transport-Security: ");
            out.extend_from_slice(hsts.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Returns whether a `Connection` field names another field.
fn is_nominated(name: &str, fields: &[httparse::Header<'_>]) -> bool {
    let connection = fields
        .iter()
        .filter(|field| field.name.eq_ignore_ascii_case("connection"));
    connection
        .flat_map(|field| field.value.split(|&b| b == b','))
        .any(|option| option.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
}

/// Writes a value; a value on several lines becomes one line.
fn write_value(value: &[u8], out: &mut Vec<u8>) {
    match memchr::memchr3(b'\r', b'\n', 0, value) {
        None => out.extend_from_slice(value),
        Some(_) => out.extend_from_slice(pingora::http::header_value_from_slice(value).as_bytes()),
    }
}

// === impl Facts ===

impl Facts {
    fn of(fields: &[httparse::Header<'_>]) -> Self {
        let mut facts = Self::default();
        for field in fields {
            let is = |known: &str| field.name.eq_ignore_ascii_case(known);
            match field.name.len() {
                10 if is("connection") => facts.connection(field.value),
                12 if is("content-type") => {
                    facts.is_event_stream |= is_event_stream_type(field.value);
                }
                14 if is("content-length") => facts.lengths = facts.lengths.with(field.value),
                17 if is("transfer-encoding") => {
                    facts.has_coding = true;
                    let last = field.value.rsplit(|&b| b == b',').next();
                    let last = last.unwrap_or_default().trim_ascii();
                    facts.is_chunked = last.eq_ignore_ascii_case(b"chunked");
                }
                25 if is("strict-transport-security") => facts.has_hsts = true,
                _ => {}
            }
        }
        facts
    }

    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
            if option.eq_ignore_ascii_case(b"close") {
                self.close = true;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                self.keep_alive = true;
            } else {
                self.nominates |= !option.is_empty();
            }
        }
    }

    fn is_kept(&self, is_http11: bool) -> bool {
        // RFC 9112 §6.1: HTTP/1.0 has no transfer codings.
        match is_http11 {
            true => !self.close,
            false => self.keep_alive && !self.close && !self.has_coding,
        }
    }
}

// === impl Lengths ===

impl Lengths {
    /// Adds the values of a field: all must be the same number (RFC 9110 §8.6).
    fn with(self, value: &[u8]) -> Self {
        value
            .split(|&b| b == b',')
            .map(<[u8]>::trim_ascii)
            .fold(self, |known, digits| {
                let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
                let number = str::from_utf8(digits).ok().filter(|_| is_number);
                match (known, number.and_then(|digits| digits.parse().ok())) {
                    (Self::None, Some(number)) => Self::One(number),
                    (Self::One(known), Some(number)) if known == number => known.into(),
                    _ => Self::Invalid,
                }
            })
    }
}

impl From<u64> for Lengths {
    fn from(length: u64) -> Self {
        Self::One(length)
    }
}
