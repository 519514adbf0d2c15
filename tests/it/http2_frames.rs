//! The rules of HTTP/2 about frames: a table of connections that break one rule each.
//!
//! The cases come from RFC 9113 and RFC 7541. A public conformance tool tests them too. Each is
//! sent for a discovery document, a page and a path of a site's own server: the rules do not
//! depend on who responds.

use std::io::{Error, ErrorKind, Read as _, Write as _};

use crate::certificates::Authority;
use crate::edge::Setup;
use crate::origin::Origin;
use crate::presets::DOMAIN;
use crate::tls::raw::{self, Frame, frame};
use crate::tls::{Encrypted, Tls, encrypted};

const DATA: u8 = 0;
const PRIORITY: u8 = 2;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
/// A type that no specification defines.
const UNKNOWN: u8 = 0xbb;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const WITH_PRIORITY: u8 = 0x20;

// RFC 9113 §7.
const PROTOCOL_ERROR: u32 = 1;
const FLOW_CONTROL_ERROR: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const FRAME_SIZE_ERROR: u32 = 6;
const COMPRESSION_ERROR: u32 = 9;

/// The content of the last PING of each connection.
const LAST: &[u8; 8] = b"the last";

/// The expected result of a connection.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// The request on the first stream is answered, and the connection stays open.
    Answer,
    /// `GOAWAY` with one of these codes, or the end of the connection.
    ConnectionError(&'static [u32]),
    /// `RST_STREAM` with one of these codes, or a connection error with one of them.
    StreamError(&'static [u32]),
}
use Expected::{Answer, ConnectionError, StreamError};

/// The fields of a request, as literals without indexing (RFC 7541 §6.2.2).
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let field = |(name, value): &(&str, &str)| [vec![0], text(name), text(value)].concat();
    fields.iter().flat_map(field).collect()
}

/// The pseudo-header fields of a request, and more fields.
fn request<'f>(method: &'f str, path: &'f str, more: &[(&'f str, &'f str)]) -> Vec<u8> {
    let pseudo = [
        (":method", method),
        (":scheme", "https"),
        (":authority", DOMAIN),
        (":path", path),
    ];
    block(&[&pseudo, more].concat())
}

fn setting(number: u16, value: u32) -> Vec<u8> {
    let payload = [&number.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &payload)
}

fn headers(flags: u8, stream: u32, block: &[u8]) -> Vec<u8> {
    frame(raw::HEADERS, flags, stream, block)
}

/// The cases: section, frames, expected result.
fn cases(path: &str) -> Vec<(&'static str, Vec<Vec<u8>>, Expected)> {
    let get = || headers(END_HEADERS | END_STREAM, 1, &request("GET", path, &[]));
    let post = |more: &[(&str, &str)]| headers(END_HEADERS, 1, &request("POST", path, more));
    let whole = |fields: &[(&str, &str)]| headers(END_HEADERS | END_STREAM, 1, &block(fields));
    let with =
        |more: &[(&str, &str)]| headers(END_HEADERS | END_STREAM, 1, &request("GET", path, more));
    let data = |flags, bytes: &[u8]| frame(DATA, flags, 1, bytes);
    let window = |stream, by: u32| frame(WINDOW_UPDATE, 0, stream, &by.to_be_bytes());
    let ping = || frame(PING, 0, 0, b"anything");
    let long = vec![0; (16 << 10) + 1];
    let head = request("GET", path, &[]);
    let (first, rest) = head.split_at(5);
    let scheme = (":scheme", "https");
    let authority = (":authority", DOMAIN);
    let method = (":method", "GET");
    let target = (":path", path);
    vec![
        (
            "4.1 a frame of an unknown type is ignored",
            vec![frame(UNKNOWN, 0, 0, b"x"), get()],
            Answer,
        ),
        (
            "4.1 unknown flags are ignored",
            vec![frame(PING, 0x16, 0, b"anything"), get()],
            Answer,
        ),
        (
            "4.1 the reserved bit is ignored",
            vec![frame(PING, 0, 1 << 31, b"anything"), get()],
            Answer,
        ),
        (
            "4.2 DATA above the frame size",
            vec![post(&[]), data(END_STREAM, &long)],
            StreamError(&[FRAME_SIZE_ERROR]),
        ),
        (
            "4.2 HEADERS above the frame size",
            vec![headers(END_HEADERS | END_STREAM, 1, &long)],
            ConnectionError(&[FRAME_SIZE_ERROR]),
        ),
        (
            "4.3 a block that cannot be decoded",
            vec![headers(END_HEADERS | END_STREAM, 1, &[0x40])],
            ConnectionError(&[COMPRESSION_ERROR]),
        ),
        (
            "4.3 PRIORITY inside a block",
            vec![
                headers(END_STREAM, 1, first),
                frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 255]),
                frame(CONTINUATION, END_HEADERS, 1, rest),
            ],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "4.3 HEADERS inside a block",
            vec![
                headers(END_STREAM, 1, first),
                headers(END_HEADERS | END_STREAM, 3, &head),
            ],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "5.1 DATA on an idle stream",
            vec![data(END_STREAM, b"x")],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "5.1 RST_STREAM on an idle stream",
            vec![frame(raw::RST_STREAM, 0, 1, &8_u32.to_be_bytes())],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "5.1 WINDOW_UPDATE on an idle stream",
            vec![window(1, 100)],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "5.1 CONTINUATION on an idle stream",
            vec![frame(CONTINUATION, END_HEADERS, 1, &head)],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "5.1 DATA on a half-closed stream",
            vec![get(), data(END_STREAM, b"x")],
            StreamError(&[STREAM_CLOSED]),
        ),
        (
            "5.1 HEADERS on a half-closed stream",
            vec![get(), get()],
            StreamError(&[STREAM_CLOSED, PROTOCOL_ERROR]),
        ),
        (
            "5.1 CONTINUATION on a half-closed stream",
            vec![get(), frame(CONTINUATION, END_HEADERS, 1, &head)],
            ConnectionError(&[STREAM_CLOSED, PROTOCOL_ERROR]),
        ),
        (
            "5.1 CONTINUATION on a reset stream",
            vec![
                post(&[]),
                frame(raw::RST_STREAM, 0, 1, &8_u32.to_be_bytes()),
                frame(CONTINUATION, END_HEADERS, 1, &head),
            ],
            ConnectionError(&[STREAM_CLOSED, PROTOCOL_ERROR]),
        ),
        (
            "5.1.1 a stream with an even number",
            vec![headers(END_HEADERS | END_STREAM, 2, &head)],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "5.1.1 a stream with a smaller number",
            vec![
                headers(END_HEADERS | END_STREAM, 5, &head),
                headers(END_HEADERS | END_STREAM, 3, &head),
            ],
            ConnectionError(&[PROTOCOL_ERROR, STREAM_CLOSED]),
        ),
        (
            "5.3.1 HEADERS of a stream that depends on itself",
            vec![headers(
                END_HEADERS | END_STREAM | WITH_PRIORITY,
                1,
                &[&[0, 0, 0, 1, 255], &head[..]].concat(),
            )],
            StreamError(&[PROTOCOL_ERROR]),
        ),
        (
            "5.5 an unknown frame inside a block",
            vec![
                headers(END_STREAM, 1, first),
                frame(UNKNOWN, 0, 0, b"x"),
                frame(CONTINUATION, END_HEADERS, 1, rest),
            ],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "6.1 DATA on no stream",
            vec![post(&[]), frame(DATA, END_STREAM, 0, b"x")],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "6.1 DATA with more padding than content",
            vec![post(&[]), data(END_STREAM | PADDED, b"\x06test")],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "6.2 HEADERS with padding",
            vec![headers(
                END_HEADERS | END_STREAM | PADDED,
                1,
                &[&[2], &head[..], &[0, 0]].concat(),
            )],
            Answer,
        ),
        (
            "6.2 HEADERS with priority",
            vec![headers(
                END_HEADERS | END_STREAM | WITH_PRIORITY,
                1,
                &[&[0, 0, 0, 0, 255], &head[..]].concat(),
            )],
            Answer,
        ),
        (
            "6.2 HEADERS on no stream",
            vec![headers(END_HEADERS | END_STREAM, 0, &head)],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "6.2 HEADERS with more padding than content",
            vec![headers(
                END_HEADERS | END_STREAM | PADDED,
                1,
                &[&[255], &head[..]].concat(),
            )],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "6.3 PRIORITY changes nothing",
            vec![frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 255]), get()],
            Answer,
        ),
        (
            "6.3 PRIORITY on no stream",
            vec![frame(PRIORITY, 0, 0, &[0, 0, 0, 0, 255])],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "6.3 PRIORITY of a wrong length",
            vec![post(&[]), frame(PRIORITY, 0, 1, &[0; 4])],
            StreamError(&[FRAME_SIZE_ERROR]),
        ),
        (
            "6.4 RST_STREAM on no stream",
            vec![frame(raw::RST_STREAM, 0, 0, &[0; 4])],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "6.4 RST_STREAM of a wrong length",
            vec![post(&[]), frame(raw::RST_STREAM, 0, 1, &[0; 3])],
            ConnectionError(&[FRAME_SIZE_ERROR]),
        ),
        (
            "6.5 SETTINGS with ACK and content",
            vec![frame(SETTINGS, ACK, 0, &[0])],
            ConnectionError(&[FRAME_SIZE_ERROR]),
        ),
        (
            "6.5 SETTINGS on a stream",
            vec![frame(SETTINGS, 0, 1, &[])],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "6.5 SETTINGS of a wrong length",
            vec![frame(SETTINGS, 0, 0, &[0; 3])],
            ConnectionError(&[FRAME_SIZE_ERROR]),
        ),
        (
            "6.5.2 ENABLE_PUSH is 0 or 1",
            vec![setting(2, 2)],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "6.5.2 INITIAL_WINDOW_SIZE is below 2^31",
            vec![setting(4, 1 << 31)],
            ConnectionError(&[FLOW_CONTROL_ERROR]),
        ),
        (
            "6.5.2 MAX_FRAME_SIZE is at least 2^14",
            vec![setting(5, (1 << 14) - 1)],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "6.5.2 MAX_FRAME_SIZE is below 2^24",
            vec![setting(5, 1 << 24)],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "6.5.2 an unknown setting is ignored",
            vec![setting(0xff, 1), get()],
            Answer,
        ),
        (
            "6.6 PUSH_PROMISE of a client",
            vec![
                post(&[]),
                frame(
                    PUSH_PROMISE,
                    END_HEADERS,
                    1,
                    &[&[0, 0, 0, 2], &head[..]].concat(),
                ),
            ],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "6.7 PING with ACK is not answered",
            vec![frame(PING, ACK, 0, b"anything"), get()],
            Answer,
        ),
        (
            "6.7 PING on a stream",
            vec![frame(PING, 0, 1, b"anything")],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "6.7 PING of a wrong length",
            vec![frame(PING, 0, 0, b"short")],
            ConnectionError(&[FRAME_SIZE_ERROR]),
        ),
        (
            "6.8 GOAWAY on a stream",
            vec![frame(raw::GOAWAY, 0, 1, &[0; 8])],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "6.9 WINDOW_UPDATE by 0",
            vec![window(0, 0)],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "6.9 WINDOW_UPDATE of a stream by 0",
            vec![post(&[]), window(1, 0)],
            StreamError(&[PROTOCOL_ERROR]),
        ),
        (
            "6.9 WINDOW_UPDATE of a wrong length",
            vec![frame(WINDOW_UPDATE, 0, 0, &[0; 3])],
            ConnectionError(&[FRAME_SIZE_ERROR]),
        ),
        (
            "6.9.1 a window of the connection above 2^31",
            vec![window(0, (1 << 31) - 1), window(0, (1 << 31) - 1)],
            ConnectionError(&[FLOW_CONTROL_ERROR]),
        ),
        (
            "6.9.1 a window of a stream above 2^31",
            vec![
                post(&[]),
                window(1, (1 << 31) - 1),
                window(1, (1 << 31) - 1),
            ],
            StreamError(&[FLOW_CONTROL_ERROR]),
        ),
        (
            "6.9.2 a window that opens after the request",
            vec![setting(4, 0), get(), setting(4, 1), window(1, 1 << 20)],
            Answer,
        ),
        (
            "6.9.2 a window that becomes negative",
            vec![setting(4, 3), get(), setting(4, 2), window(1, 1 << 20)],
            Answer,
        ),
        (
            "6.9.2 settings that make a window overflow",
            vec![
                post(&[]),
                window(1, (1 << 31) - 1 - 65_535),
                setting(4, (1 << 31) - 1),
            ],
            ConnectionError(&[FLOW_CONTROL_ERROR]),
        ),
        (
            "6.10 a block in several frames",
            vec![
                headers(END_STREAM, 1, first),
                frame(CONTINUATION, 0, 1, &rest[..3]),
                frame(CONTINUATION, END_HEADERS, 1, &rest[3..]),
            ],
            Answer,
        ),
        (
            "6.10 CONTINUATION after the end of a block",
            vec![post(&[]), frame(CONTINUATION, END_HEADERS, 1, first)],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "6.10 CONTINUATION on no stream",
            vec![
                headers(END_STREAM, 1, first),
                frame(CONTINUATION, END_HEADERS, 0, rest),
            ],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "6.10 CONTINUATION after DATA",
            vec![
                post(&[]),
                data(0, b"x"),
                frame(CONTINUATION, END_HEADERS, 1, first),
            ],
            ConnectionError(&[PROTOCOL_ERROR]),
        ),
        (
            "8.1 a second head without the end of the stream",
            vec![post(&[]), post(&[])],
            StreamError(&[PROTOCOL_ERROR]),
        ),
        (
            "8.2.1 a name in upper case",
            vec![with(&[("X-Upper", "a")])],
            StreamError(&[PROTOCOL_ERROR]),
        ),
        (
            "8.2.2 a field of an HTTP/1.1 connection",
            vec![with(&[("connection", "keep-alive")])],
            StreamError(&[PROTOCOL_ERROR]),
        ),
        (
            "8.2.2 TE is trailers only",
            vec![with(&[("te", "trailers, deflate")])],
            StreamError(&[PROTOCOL_ERROR]),
        ),
        (
            "8.3 an unknown pseudo-header field",
            vec![with(&[(":test", "a")])],
            StreamError(&[PROTOCOL_ERROR]),
        ),
        (
            "8.3 a pseudo-header field of a response",
            vec![with(&[(":status", "200")])],
            StreamError(&[PROTOCOL_ERROR]),
        ),
        // The library drops such a field, so no code of ours sees it.
        (
            "8.3 a pseudo-header field in trailers",
            vec![
                post(&[]),
                headers(END_HEADERS | END_STREAM, 1, &block(&[method])),
            ],
            Answer,
        ),
        (
            "8.3 a pseudo-header field after others",
            vec![whole(&[scheme, authority, target, ("x", "a"), method])],
            StreamError(&[PROTOCOL_ERROR]),
        ),
        (
            "8.3.1 an empty path",
            vec![whole(&[method, scheme, authority, (":path", "")])],
            StreamError(&[PROTOCOL_ERROR]),
        ),
        (
            "8.3.1 no method",
            vec![whole(&[scheme, authority, target])],
            StreamError(&[PROTOCOL_ERROR]),
        ),
        (
            "8.3.1 no scheme",
            vec![whole(&[method, authority, target])],
            StreamError(&[PROTOCOL_ERROR]),
        ),
        (
            "8.3.1 no path",
            vec![whole(&[method, scheme, authority])],
            StreamError(&[PROTOCOL_ERROR]),
        ),
        (
            "8.3.1 two methods",
            vec![with(&[method])],
            StreamError(&[PROTOCOL_ERROR]),
        ),
        (
            "8.3.1 two schemes",
            vec![with(&[scheme])],
            StreamError(&[PROTOCOL_ERROR]),
        ),
        (
            "8.3.1 two paths",
            vec![with(&[target])],
            StreamError(&[PROTOCOL_ERROR]),
        ),
        (
            "8.1.1 a body shorter than its length",
            vec![post(&[("content-length", "4")]), data(END_STREAM, b"abc")],
            StreamError(&[PROTOCOL_ERROR]),
        ),
        (
            "8.1.1 a body in two frames, longer than its length",
            vec![
                post(&[("content-length", "3")]),
                data(0, b"ab"),
                data(END_STREAM, b"cd"),
            ],
            StreamError(&[PROTOCOL_ERROR]),
        ),
        (
            "HPACK 2.3.3 an index without entry",
            vec![headers(
                END_HEADERS | END_STREAM,
                1,
                &[&head[..], &[0xff, 0x80, 0x01]].concat(),
            )],
            ConnectionError(&[COMPRESSION_ERROR]),
        ),
        (
            "HPACK 4.2 a table size at the end of a block",
            vec![headers(
                END_HEADERS | END_STREAM,
                1,
                &[&head[..], &[0x20]].concat(),
            )],
            ConnectionError(&[COMPRESSION_ERROR]),
        ),
        (
            "HPACK 5.2 a Huffman code with too much padding",
            vec![headers(
                END_HEADERS | END_STREAM,
                1,
                &[&head[..], &[0, 1, b'x', 0x85, 0xff, 0xff, 0xff, 0xff, 0xff]].concat(),
            )],
            ConnectionError(&[COMPRESSION_ERROR]),
        ),
        (
            "HPACK 6.1 index 0",
            vec![headers(
                END_HEADERS | END_STREAM,
                1,
                &[&head[..], &[0x80]].concat(),
            )],
            ConnectionError(&[COMPRESSION_ERROR]),
        ),
        (
            "HPACK 6.3 a table larger than the limit",
            vec![headers(
                END_HEADERS | END_STREAM,
                1,
                &[&[0x3f, 0xe1, 0xff, 0x03], &head[..]].concat(),
            )],
            ConnectionError(&[COMPRESSION_ERROR]),
        ),
        (
            "a PING between two frames is answered",
            vec![post(&[]), ping(), data(END_STREAM, b"x")],
            Answer,
        ),
    ]
}

/// Reads the next frame. At the end of the connection, or when nothing comes in time, it returns
/// whether it was the end.
fn next(stream: &mut Tls) -> Result<Frame, bool> {
    let is_end =
        |error: Error| !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    let mut head = [0; 9];
    stream.read_exact(&mut head).map_err(is_end)?;
    let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).map_err(is_end)?;
    Ok(Frame {
        kind: head[3],
        stream: u32::from_be_bytes(head[5..9].try_into().unwrap()),
        payload,
    })
}

/// Sends the frames of a case and a PING; returns all frames up to the response to that PING, or
/// to the end of the connection, and whether it has ended. With `until`, it goes on until a frame
/// of this kind has come too, or nothing comes in time.
fn exchange(stream: &mut Tls, frames: &[Vec<u8>], until: Option<u8>) -> (Vec<Frame>, bool) {
    let ping = frame(PING, 0, 0, LAST);
    let sent = stream.write_all(&[&raw::preface(), &frames.concat()[..], &ping].concat());
    // The gateway may have closed the connection before everything was sent.
    let _sent = sent.and_then(|()| stream.flush());
    let mut received = Vec::new();
    let (mut is_answered, mut has_come) = (false, until.is_none());
    while !(is_answered && has_come) {
        let frame = match next(stream) {
            Ok(frame) => frame,
            Err(is_closed) => return (received, is_closed),
        };
        is_answered |= frame.kind == PING && frame.payload == LAST;
        has_come |= Some(frame.kind) == until;
        received.push(frame);
    }
    (received, false)
}

fn check(gateway: &Encrypted, path: &str) {
    let mut broken = Vec::new();
    for (name, frames, expected) in cases(path) {
        let until = match expected {
            Answer => Some(raw::HEADERS),
            StreamError(_) => Some(raw::RST_STREAM),
            ConnectionError(_) => Some(raw::GOAWAY),
        };
        let (received, is_closed) = exchange(&mut gateway.tls(), &frames, until);
        let coded = |kind| received.iter().find(|frame| frame.kind == kind);
        let goaway = coded(raw::GOAWAY).map(raw::code);
        // If a rule has its own code, PROTOCOL_ERROR is accepted too.
        let is_right = |code: u32, codes: &[u32]| code == PROTOCOL_ERROR || codes.contains(&code);
        let fits = |code: Option<u32>, codes| code.is_some_and(|code| is_right(code, codes));
        let holds = match expected {
            Answer => !is_closed && goaway.is_none() && coded(raw::RST_STREAM).is_none(),
            ConnectionError(codes) => fits(goaway, codes) || (goaway.is_none() && is_closed),
            StreamError(codes) => {
                let reset = coded(raw::RST_STREAM).map(raw::code);
                fits(reset, codes) || fits(goaway, codes) || (goaway.is_none() && is_closed)
            }
        };
        if !holds {
            broken.push(format!("{name}: {expected:?}, but {received:?}"));
        }
    }
    assert!(broken.is_empty(), "{path}: {broken:#?}");
}

#[test]
fn broken_frames_have_the_error_of_their_rule_on_discovery_and_pages() {
    let authority = Authority::new();
    let setup = encrypted(&authority, Setup::new()).acme("");
    setup.publish(
        "acme",
        &[
            (
                "docs.json",
                r#"{"name": "Acme", "navigation": {"pages": ["index"]}}"#,
            ),
            ("index.mdx", "Begin."),
        ],
    );
    let gateway = Encrypted {
        edge: setup.start(),
        authority,
    };
    check(&gateway, "/skill.md");
    check(&gateway, "/");
}

#[test]
fn broken_frames_have_the_error_of_their_rule_on_proxied_paths() {
    let origin = Origin::start();
    check(&Encrypted::before(&origin.record(), "{}"), "/guide");
}

#[test]
fn a_wrong_preface_ends_the_connection() {
    let gateway = Encrypted::start("{}");
    let mut stream = gateway.tls();
    // RFC 9113 §3.4. The client waits for the end before it sends anything else.
    stream
        .write_all(b"INVALID CONNECTION PREFACE\r\n\r\n")
        .unwrap();
    stream.flush().unwrap();
    let mut rest = Vec::new();
    while let Ok(frame) = next(&mut stream) {
        rest.push(frame.kind);
    }
    assert!(!rest.contains(&raw::HEADERS), "{rest:?}");
}

#[test]
fn settings_and_pings_are_acknowledged() {
    let gateway = Encrypted::start("{}");
    let frames = [frame(PING, 0, 0, b"a number"), setting(3, 100)];
    let (received, is_closed) = exchange(&mut gateway.tls(), &frames, None);
    let echoes = |frame: &&Frame| frame.kind == PING && frame.payload == b"a number";
    assert_eq!(received.iter().filter(echoes).count(), 1);
    let empty = |frame: &&Frame| frame.kind == SETTINGS && frame.payload.is_empty();
    // One for the preface, one for the frame.
    assert_eq!(received.iter().filter(empty).count(), 2, "{received:?}");
    assert!(!is_closed);
}
