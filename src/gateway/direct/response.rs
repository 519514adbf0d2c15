//! The head of an upstream's response, and the head that the client gets.
//!
//! The rules are those of the proxy path. The order of the fields and the case of their names
//! stay; our own fields come last.
//!
//! Sources: RFC 9112 §5.2 (folded lines), §6.3 (where a response ends), §9.3 (persistence);
//! RFC 9110 §7.6.1 (fields of the connection), §8.6 (lengths), §15.2 (interim responses);
//! RFC 6797 §8.1 (the first `Strict-Transport-Security` counts).

use std::io::Write as _;
use std::mem::MaybeUninit;

use httparse::{ParserConfig, Status};

use super::content::Content;
use crate::gateway::access::write_number;
use crate::gateway::forward::{self, TransferCodings};
use crate::gateway::http2_stream::is_event_stream_type;
use crate::response::{Connection, DATE_BYTES};
use crate::site::Hsts;

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
    pub(super) hsts: Option<Hsts>,
    /// The domain of the service.
    pub(super) domain: &'r str,
}

/// A head that is not one, or that has two meanings.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The fields that decide where a response ends and which fields the client gets.
#[derive(Debug, Default)]
struct ResponseFields {
    lengths: Lengths,
    codings: TransferCodings,
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

/// Reads the fields of a head that [`Recipient::read`] has accepted.
pub(super) fn fields(head: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut room = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let parsed = parser().parse_response_with_uninit_headers(&mut response, head, &mut room);
    match parsed {
        Ok(_) => {
            let fields = response.headers.iter();
            fields
                .map(|field| (field.name.as_bytes(), field.value))
                .collect()
        }
        Err(_malformed) => Vec::new(),
    }
}

fn parser() -> ParserConfig {
    let mut parser = ParserConfig::default();
    parser.allow_spaces_after_header_name_in_responses(true);
    parser.allow_obsolete_multiline_headers_in_responses(true);
    parser
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
        let parsed = parser().parse_response_with_uninit_headers(&mut response, bytes, &mut room);
        let length = match parsed {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) if bytes.len() <= HEAD_BYTES_MAX => return Ok(None),
            Ok(Status::Partial) | Err(_) => return Err(Malformed),
        };
        let status = response.code.filter(|code| *code >= 100).ok_or(Malformed)?;
        let fields = &*response.headers;
        let parsed = ResponseFields::of(fields);
        let is_http11 = response.version == Some(1);
        let content = self.content(status, &parsed)?;
        let is_interim = status < 200;
        out.extend_from_slice(b"HTTP/1.1 ");
        write_number(out, status.into());
        out.push(b' ');
        out.extend_from_slice(response.reason.unwrap_or_default().as_bytes());
        out.extend_from_slice(b"\r\n");
        let has_no_content = is_interim || matches!(status, 204 | 304);
        for field in fields {
            self.write_field(field, fields, &parsed, has_no_content, out);
        }
        if let (false, TransferCodings::None, Lengths::One(length)) =
            (has_no_content, parsed.codings, parsed.lengths)
        {
            out.extend_from_slice(b"Content-Length: ");
            write_number(out, length);
            out.extend_from_slice(b"\r\n");
        }
        if content == Content::Rechunked {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        if !is_interim {
            self.write_own(&parsed, out);
        }
        out.extend_from_slice(b"Via: 1.1 ");
        out.extend_from_slice(self.domain.as_bytes());
        out.extend_from_slice(b"\r\n\r\n");
        Ok(Some(Head {
            status,
            length,
            content,
            is_kept: parsed.is_kept(is_http11),
            is_event_stream: parsed.is_event_stream,
        }))
    }

    /// Decides what follows the head (RFC 9112 §6.3).
    fn content(&self, status: u16, parsed: &ResponseFields) -> Result<Content, Malformed> {
        let codings = parsed.codings;
        if parsed.lengths == Lengths::Invalid && codings == TransferCodings::None {
            return Err(Malformed);
        }
        Ok(match (status, parsed.lengths) {
            // RFC 9110 §15.2.2: only a request with `Upgrade` is answered with 101.
            (101, _) => return Err(Malformed),
            (100..=199 | 204 | 304, _) => Content::None,
            _ if codings == TransferCodings::Unknown => return Err(Malformed),
            _ if self.is_head => Content::None,
            _ if codings == TransferCodings::Chunked => Content::chunked(),
            (_, Lengths::One(length)) => Content::Length(length),
            _ => Content::Rechunked,
        })
    }

    fn write_field(
        &self,
        field: &httparse::Header<'_>,
        fields: &[httparse::Header<'_>],
        parsed: &ResponseFields,
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
        if is_dropped || parsed.nominates && !is_framing && is_nominated(field.name, fields) {
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
    fn write_own(&self, parsed: &ResponseFields, out: &mut Vec<u8>) {
        out.extend_from_slice(b"Date: ");
        out.extend_from_slice(&self.date);
        out.extend_from_slice(match self.after {
            Connection::Keep => &b"\r\nConnection: keep-alive\r\n"[..],
            Connection::Close => b"\r\nConnection: close\r\n",
        });
        if let Some(hsts) = self.hsts.filter(|_| !parsed.has_hsts) {
            // Writing into memory cannot fail.
            let _infallible = write!(out, "Strict-Transport-Security: {hsts}\r\n");
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

// === impl ResponseFields ===

impl ResponseFields {
    fn of(fields: &[httparse::Header<'_>]) -> Self {
        let mut parsed = Self::default();
        for field in fields {
            let is = |known: &str| field.name.eq_ignore_ascii_case(known);
            match field.name.len() {
                10 if is("connection") => parsed.connection(field.value),
                12 if is("content-type") => {
                    parsed.is_event_stream |= is_event_stream_type(field.value);
                }
                14 if is("content-length") => parsed.lengths = parsed.lengths.with(field.value),
                17 if is("transfer-encoding") => {
                    parsed.codings = parsed.codings.with(field.value);
                }
                25 if is("strict-transport-security") => parsed.has_hsts = true,
                _ => {}
            }
        }
        parsed
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
            false => self.keep_alive && !self.close && self.codings == TransferCodings::None,
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

#[cfg(test)]
mod tests {
    use super::*;

    const DOMAIN: &str = "edge.test";

    fn recipient(hsts: Option<Hsts>) -> Recipient<'static> {
        Recipient {
            is_head: false,
            after: Connection::Keep,
            date: [b'd'; DATE_BYTES],
            hsts,
            domain: DOMAIN,
        }
    }

    /// Returns the parsed head, and the head that the client gets.
    fn read(recipient: &Recipient<'_>, head: &str) -> Result<Option<(Head, String)>, Malformed> {
        let mut out = Vec::new();
        let read = recipient.read(head.as_bytes(), &mut out)?;
        Ok(read.map(|head| (head, String::from_utf8(out).unwrap())))
    }

    #[track_caller]
    fn of(fields: &str) -> (Head, String) {
        let head = format!("HTTP/1.1 200 Fine\r\n{fields}\r\n");
        let (read, written) = read(&recipient(None), &head).unwrap().unwrap();
        assert_eq!(read.length, head.len());
        (read, written)
    }

    /// Our own fields of a final response, with this `Connection`.
    fn own(connection: &str) -> String {
        let date = "d".repeat(DATE_BYTES);
        format!("Date: {date}\r\nConnection: {connection}\r\nVia: 1.1 {DOMAIN}\r\n\r\n")
    }

    #[test]
    fn fields_of_the_connection_are_dropped_and_the_others_stay() {
        let fields = "Date: x\r\nUpgrade: h2c\r\nTrailer: a\r\nKeep-Alive: 5\r\nX-A: 1\r\n\
            Connection: keep-alive, X-Gone , transfer-encoding\r\nX-Gone: 2\r\n\
            Proxy-Connection: close\r\nx-Kept:  two  words \r\nX-Lines: a\r\n b\r\n\
            content-length: 7\r\n";
        let (head, written) = of(fields);
        let kept = "HTTP/1.1 200 Fine\r\nX-A: 1\r\nx-Kept: two  words\r\nX-Lines: a";
        assert!(written.starts_with(kept), "{written}");
        assert!(written.ends_with(&format!("Content-Length: 7\r\n{}", own("keep-alive"))));
        for gone in [
            "X-Gone",
            "h2c",
            "Trailer",
            "Keep-Alive: 5",
            "Proxy",
            "Date: x",
            "a\r\n b",
        ] {
            assert!(!written.contains(gone), "{gone}: {written}");
        }
        assert_eq!((head.status, head.content), (200, Content::Length(7)));
        assert!(head.is_kept && !head.is_event_stream);
    }

    #[test]
    fn rfc_9112_6_3_the_fields_decide_where_the_content_ends() {
        let content = |fields: &str| of(fields).0.content;
        assert_eq!(content(""), Content::Rechunked);
        assert_eq!(content("Content-Length: 0\r\n"), Content::Length(0));
        assert_eq!(
            content("Content-Length: 5, 5\r\nContent-Length: 5\r\n"),
            Content::Length(5)
        );
        let (head, written) = of("Transfer-Encoding: Chunked\r\nContent-Length: 5\r\n");
        assert_eq!(head.content, Content::chunked());
        assert!(!written.contains("Content-Length"), "{written}");
        let (_, written) = of("");
        let rechunked = format!("Transfer-Encoding: chunked\r\n{}", own("keep-alive"));
        assert!(written.ends_with(&rechunked), "{written}");
        for lengths in ["5, 6", "5,", "+5", "", "5\r\nContent-Length: 6", "x"] {
            let head = format!("HTTP/1.1 200 Fine\r\nContent-Length: {lengths}\r\n\r\n");
            assert_eq!(
                read(&recipient(None), &head).unwrap_err(),
                Malformed,
                "{lengths}"
            );
        }
    }

    #[test]
    fn a_transfer_coding_other_than_chunked_is_malformed_if_there_is_content() {
        for codings in [
            "gzip, chunked",
            "chunked, gzip",
            "chunked, chunked",
            "identity",
            "",
            "chunked\r\nTransfer-Encoding: gzip",
            "gzip\r\nTransfer-Encoding: chunked",
        ] {
            let fields = format!("Transfer-Encoding: {codings}\r\n\r\n");
            let of_status =
                |status: &str| read(&recipient(None), &format!("HTTP/1.1 {status}\r\n{fields}"));
            assert_eq!(of_status("200 Fine").unwrap_err(), Malformed, "{codings}");
            let (_, written) = of_status("304 Same").unwrap().unwrap();
            assert!(!written.contains("Transfer-Encoding"), "{written}");
        }
    }

    #[test]
    fn responses_without_content_have_no_framing() {
        for status in ["204 No", "304 Same", "103 Early"] {
            let fields = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\nLink: a";
            let head = format!("HTTP/1.1 {status}\r\n{fields}\r\n\r\n");
            let (read, written) = read(&recipient(None), &head).unwrap().unwrap();
            assert_eq!(read.content, Content::None);
            let ours = match read.status {
                103 => format!("Via: 1.1 {DOMAIN}\r\n\r\n"),
                _ => own("keep-alive"),
            };
            assert_eq!(written, format!("HTTP/1.1 {status}\r\nLink: a\r\n{ours}"));
        }
        let to_head = Recipient {
            is_head: true,
            ..recipient(None)
        };
        let head = "HTTP/1.1 200 Fine\r\nContent-Length: 5\r\n\r\n";
        let (read_head, written) = read(&to_head, head).unwrap().unwrap();
        assert_eq!(read_head.content, Content::None);
        assert!(written.contains("Content-Length: 5\r\n"));
    }

    #[test]
    fn heads_that_cannot_be_forwarded_are_malformed() {
        let is_malformed = |head: &str| read(&recipient(None), head).is_err();
        assert!(is_malformed("HTTP/1.1 101 Switch\r\n\r\n"));
        assert!(is_malformed("HTTP/1.1 099 Low\r\n\r\n"));
        assert!(is_malformed("no head\r\n\r\n"));
        assert!(
            read(&recipient(None), "HTTP/1.1 100 Go\r\n\r\n")
                .unwrap()
                .is_some()
        );
        // An incomplete head is awaited until it is too long.
        let long = |bytes: usize| format!("HTTP/1.1 200 {}", "a".repeat(bytes - 13));
        assert!(
            read(&recipient(None), &long(HEAD_BYTES_MAX))
                .unwrap()
                .is_none()
        );
        assert!(is_malformed(&long(HEAD_BYTES_MAX + 1)));
    }

    #[test]
    fn the_connection_of_the_upstream_is_kept_as_its_version_says() {
        let is_kept = |version: u8, fields: &str| {
            let head = format!("HTTP/1.{version} 200 Fine\r\n{fields}Content-Length: 0\r\n\r\n");
            read(&recipient(None), &head).unwrap().unwrap().0.is_kept
        };
        assert!(is_kept(1, "") && !is_kept(1, "Connection: a, Close\r\n"));
        assert!(!is_kept(0, "") && is_kept(0, "Connection: Keep-Alive\r\n"));
        assert!(!is_kept(0, "Connection: keep-alive, close\r\n"));
        assert!(!is_kept(
            0,
            "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n"
        ));
    }

    #[test]
    fn the_client_gets_what_belongs_to_its_connection() {
        let hsts = Hsts {
            seconds: 5,
            ..Hsts::default()
        };
        let closing = Recipient {
            after: Connection::Close,
            ..recipient(Some(hsts))
        };
        let head = |fields: &str| format!("HTTP/1.1 200 Fine\r\nContent-Length: 0\r\n{fields}\r\n");
        let written = |fields: &str| read(&closing, &head(fields)).unwrap().unwrap().1;
        let ours = "Connection: close\r\nStrict-Transport-Security: max-age=5\r\n";
        assert!(written("").contains(ours));
        // The first field counts, so the field of the upstream stays alone.
        let own = written("strict-transport-security: max-age=9\r\n");
        assert!(
            own.contains("max-age=9") && !own.contains("max-age=5"),
            "{own}"
        );
        // A cookie for the whole service is confined to its host.
        let cookie = written("Set-Cookie: a=b; Domain=edge.test; Secure\r\n");
        assert!(
            !cookie.contains("Domain") && cookie.contains("a=b"),
            "{cookie}"
        );
        let cookie = written("Set-Cookie: a=b; Domain=acme.test\r\n");
        assert!(
            cookie.contains("Set-Cookie: a=b; Domain=acme.test\r\n"),
            "{cookie}"
        );
        let (head, _) = of("Content-Type: text/event-stream\r\nContent-Type: a/b\r\n");
        assert!(head.is_event_stream);
    }

    #[test]
    fn other_fields_with_the_length_of_a_dropped_one_stay() {
        let fields = "Etag: a\r\nX-Seven: b\r\nRetry-Able: c\r\nX-Fourteen-Aaa: d\r\n\
            X-Sixteen-Aaaaaa: e\r\nX-Seventeen-Aaaaa: f\r\n";
        let (_, written) = of(&format!("{fields}Content-Length: 0\r\n"));
        assert!(written.contains(fields), "{written}");
        let head = format!("HTTP/1.1 204 No\r\n{fields}\r\n");
        let (_, written) = read(&recipient(None), &head).unwrap().unwrap();
        assert!(written.contains(fields), "{written}");
        let coding = "Transfer-Encoding: chunked\r\n";
        assert!(of(coding).1.contains(coding));
    }

    #[test]
    fn the_fields_of_an_accepted_head_are_its_fields() {
        let head = b"HTTP/1.1 200 Fine\r\nX-A: 1\r\nx-b:  2 \r\n\r\n";
        let expected = [(&b"X-A"[..], &b"1"[..]), (b"x-b", b"2")];
        assert_eq!(fields(head), expected);
        assert_eq!(fields(b"no head\r\n\r\n"), []);
    }
}
