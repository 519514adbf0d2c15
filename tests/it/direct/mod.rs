//! The direct path is an optimisation: upstreams and clients see the same as on the proxy path, and
//! no fault of an upstream becomes a wrong answer.
//!
//! Two gateways are in front of the same upstream, one with the direct path and one without.
//! Generated requests go to both, and the upstream gives generated answers, many of them hostile.
//! The requests at the upstream and the answers at the client must be equal (without `Date`,
//! `Connection`, and the order of fields). `WAYPOST_LONG_TESTS=1` makes a long run.

mod streams;

use std::collections::{HashMap, HashSet};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use crate::edge::{Edge, LOCAL_UPSTREAMS, Setup};
use crate::http::{Connection, TIMEOUT};
use crate::origin::{After, Origin, Received, write_page};
use crate::presets::DOMAIN;

fn cases() -> u32 {
    match std::env::var_os("WAYPOST_LONG_TESTS") {
        Some(_) => 40_000,
        None => 1500,
    }
}

const STATUS_LINES: &[&str] = &[
    "HTTP/1.1 200 OK",
    "HTTP/1.1 200 OK",
    "HTTP/1.1 200 OK",
    "HTTP/1.1 200 OK",
    "HTTP/1.0 200 OK",
    "HTTP/1.1 204 No Content",
    "HTTP/1.1 304 Not Modified",
    "HTTP/1.1 206 Partial Content",
    "HTTP/1.1 301 Moved",
    "HTTP/1.1 404 Nothing  at all",
    "HTTP/1.1 418 \u{e9}",
    "HTTP/1.1 599 Own",
    "HTTP/1.1 200",
    "HTTP/1.1 200 ",
    "HTTP/1.1 099 Low",
    "HTTP/1.1 1000 High",
    "HTTP/1.1 101 Switching Protocols",
    "HTTP/2 200 OK",
    "HTTP/1.1  200 OK",
    "220 mail.acme.test ESMTP",
    "",
];

/// Heads before the final one.
const INTERIM: &[&str] = &[
    "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 102 Processing\r\nContent-Length: 3\r\nX-Own: a\r\nConnection: X-Own\r\n\r\n",
];

const ANSWER_FIELDS: &[&str] = &[
    "Content-Type: text/plain",
    "Content-Type: text/event-stream; charset=utf-8",
    "Connection: close",
    "Connection: keep-alive",
    "Connection: X-Own, content-length, transfer-encoding",
    "Connection: Keep-Alive, X-Other",
    "X-Own: a",
    "x-other: \u{e9} b",
    "X-Empty:",
    "X-Twice: a",
    "X-Twice: b",
    "Keep-Alive: timeout=5",
    "Proxy-Connection: keep-alive",
    "Upgrade: h2c",
    "Trailer: X-Sum",
    "Date: Sun, 06 Nov 1994 08:49:37 GMT",
    "Via: 1.0 fred",
    "Set-Cookie: a=1; Domain=waypost.localhost; Path=/",
    "Set-Cookie: b=2; domain=.LOCALHOST",
    "Set-Cookie: c=3; Domain=acme.test",
    "Strict-Transport-Security: max-age=1",
    "X-Folded: a\r\n  b\r\n\tc",
    "X-Space : a",
    "X-Bell: \u{7}",
    "No colon",
    ": no name",
    "X Y: a",
    "ETag: \"a\"",
    "Content-Encoding: gzip",
];

/// How an answer says where it ends; `{n}` is the true length.
const FRAMINGS: &[&str] = &[
    "Content-Length: {n}",
    "Content-Length: {n}",
    "Content-Length: {n}",
    "content-length:   {n}  ",
    "Content-Length: {n}\r\nContent-Length: {n}",
    "Content-Length: {n}, {n}",
    "Content-Length: {n}\r\nContent-Length: 7",
    "Content-Length: +{n}",
    "Content-Length: -1",
    "Content-Length: 0x5",
    "Content-Length: {n} {n}",
    "Content-Length:",
    "Content-Length: 1",
    "Content-Length: 1000",
    "Content-Length: 99999999999999999999",
    "",
    "",
];

const CODINGS: &[&str] = &[
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: chunked",
    "transfer-encoding: CHUNKED",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked, gzip",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: chunked\r\nContent-Length: 5",
    "Content-Length: 5\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
];

/// Chunked bodies; the first ones are well-formed.
const CHUNKS: &[&str] = &[
    "5\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n",
    "0\r\n\r\n",
    "5;a=b\r\nhello\r\n000\r\n\r\n",
    "5  \r\nhello\r\n0\r\n\r\n",
    "A\r\n0123456789\r\n0\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n",
    "5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen",
    "5\r\nhelloX\r\n0\r\n\r\n",
    "g\r\nhello\r\n0\r\n\r\n",
    "-5\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n",
    "5\r\nhel",
    "5\nhello\r\n0\r\n\r\n",
    "10000000000000000\r\nhello\r\n0\r\n\r\n",
];

const BODIES: &[&str] = &[
    "",
    "hello",
    "hello, and some more words",
    "HTTP/1.1 200 OK\r\n\r\n",
];

const METHODS: &[&str] = &[
    "GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PURGE",
];

const REQUEST_FIELDS: &[&str] = &[
    "Accept: text/html",
    "Accept: */*",
    "User-Agent: \u{e9}\u{7f}",
    "User-Agent: curl",
    "Accept-Encoding: gzip",
    "Cookie: a=b",
    "Cookie: c=d",
    "Authorization: Bearer x",
    "Connection: keep-alive",
    "Connection: close",
    "Connection: X-Own",
    "X-Own: a",
    "X_Own: b",
    "Keep-Alive: timeout=9",
    "Proxy-Connection: keep-alive",
    "Proxy-Authorization: Basic x",
    "Proxy: http://evil.test",
    "TE: trailers",
    "Trailer: X-Sum",
    "Upgrade: h2c",
    "X-Forwarded-For: 9.9.9.9",
    "x-forwarded-for: 8.8.8.8, 7.7.7.7",
    "X-Forwarded-Proto: https",
    "X-Forwarded-Host: evil.test",
    "X-FORWARDED-Port: 1",
    "Forwarded: for=9.9.9.9",
    "X-Real-IP: 9.9.9.9",
    "True-Client-IP: 9.9.9.9",
    "Via: 1.0 fred, 1.1 p.example.net",
    "Via: 1.1 waypost.localhost",
    "If-None-Match: \"a\"",
    "Range: bytes=0-1",
    "Content-Type: text/plain",
    "X-Empty:",
    "X-Tabs:\t a\tb \t",
];

/// The bytes of an answer.
#[derive(Clone)]
struct Answer(Vec<u8>);

/// One request, and the answer of the upstream.
#[derive(Clone, Debug)]
struct Case {
    method: &'static str,
    query: &'static str,
    fields: Vec<&'static str>,
    content: Option<&'static str>,
    answer: Answer,
    /// How many bytes the upstream writes at once.
    piece: usize,
    after: After,
}

/// The response, as a client gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    /// Interim and final heads: the status line, and the fields in order of their names.
    heads: Vec<(String, Vec<String>)>,
    body: Vec<u8>,
    is_whole: bool,
    /// Whether the next request of the same connection was answered.
    is_followed: bool,
}

fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(c).unwrap()).collect()
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

fn any_answer() -> impl Strategy<Value = Answer> {
    let with_length = (
        select(FRAMINGS),
        select(BODIES),
        select(&["", "", "", "more"][..]),
    )
        .prop_map(|(framing, body, more)| {
            let framing = framing.replace("{n}", &body.len().to_string());
            (framing, format!("{body}{more}"))
        });
    let chunked = (
        select(CODINGS),
        prop_oneof![2 => select(&CHUNKS[..6]), 1 => select(CHUNKS)],
    )
        .prop_map(|(coding, chunks)| (coding.to_owned(), chunks.to_owned()));
    let interim = prop::collection::vec(select(INTERIM), 0..3);
    let interim = prop_oneof![5 => Just(Vec::new()), 1 => interim];
    let fields = prop::collection::vec(select(ANSWER_FIELDS), 0..4);
    let status = prop_oneof![3 => Just("HTTP/1.1 200 OK"), 1 => select(STATUS_LINES)];
    let cut = prop_oneof![5 => Just(None), 1 => (0.0..1.0_f64).prop_map(Some)];
    (
        interim,
        status,
        fields,
        prop_oneof![with_length, chunked],
        cut,
    )
        .prop_map(|(interim, status, mut fields, (framing, body), cut)| {
            fields.insert(fields.len() / 2, &framing);
            let fields: String = fields
                .iter()
                .filter(|field| !field.is_empty())
                .map(|field| format!("{field}\r\n"))
                .collect();
            let mut answer = latin1(&format!(
                "{}{status}\r\n{fields}\r\n{body}",
                interim.concat()
            ));
            if let Some(cut) = cut {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    clippy::cast_precision_loss,
                    reason = "a share of a short text"
                )]
                answer.truncate((cut * answer.len() as f64) as usize);
            }
            Answer(answer)
        })
}

fn any_case() -> impl Strategy<Value = Case> {
    let method = prop_oneof![2 => Just("GET"), 1 => select(METHODS)];
    let query = select(&["", "", "&x=%2F&y=/..//", "&a|b"][..]);
    let fields = prop::collection::vec(select(REQUEST_FIELDS), 0..4);
    let content = prop_oneof![3 => Just(None), 1 => select(BODIES).prop_map(Some)];
    let piece = prop_oneof![3 => Just(usize::MAX), 1 => 1..20_usize];
    let after = select(&[After::Keep, After::Keep, After::Close][..]);
    (method, query, fields, content, any_answer(), piece, after).prop_map(
        |(method, query, fields, content, answer, piece, after)| Case {
            method,
            query,
            fields,
            content,
            answer,
            piece,
            after,
        },
    )
}

impl Case {
    /// Returns the request as text. `{n}` is the number of the case, `gateway` that of the gateway.
    fn request(&self, n: usize, gateway: usize) -> Vec<u8> {
        let mut head = format!(
            "{} /{n}?gateway={gateway}{} HTTP/1.1\r\nHost: {DOMAIN}\r\n",
            self.method, self.query
        );
        for field in &self.fields {
            head += &format!("{field}\r\n");
        }
        match self.content {
            Some(content) => {
                head += &format!("Content-Length: {}\r\n\r\n{content}", content.len());
            }
            None => head += "\r\n",
        }
        latin1(&head)
    }

    /// Whether the end of the connection may end the answer. Then a client cannot detect a cut
    /// answer.
    fn may_be_cut_unseen(&self) -> bool {
        let text = String::from_utf8_lossy(&self.answer.0).to_lowercase();
        !text.contains("content-length") && !text.contains("chunked")
    }
}

/// Sends a request and then one more, and reads what comes.
fn observe(edge: &Edge, method: &str, request: &[u8]) -> Seen {
    let mut stream = TcpStream::connect(edge.http).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let next = format!("GET /next HTTP/1.1\r\nHost: {DOMAIN}\r\nConnection: close\r\n\r\n");
    stream
        .write_all(&[request, next.as_bytes()].concat())
        .unwrap();
    let mut bytes = Vec::new();
    // A reset after the response also ends the connection.
    let _reset = stream.read_to_end(&mut bytes);
    parse(&bytes, method)
}

/// Reads the answers on a connection, strictly.
fn parse(bytes: &[u8], method: &str) -> Seen {
    let mut seen = Seen {
        heads: Vec::new(),
        body: Vec::new(),
        is_whole: false,
        is_followed: false,
    };
    let mut rest = bytes;
    let (status, fields, coding) = loop {
        let Some(end) = rest.windows(4).position(|four| four == b"\r\n\r\n") else {
            assert!(rest.is_empty(), "half a head: {}", rest.escape_ascii());
            return seen;
        };
        let head: String = rest[..end].iter().map(|&b| char::from(b)).collect();
        rest = &rest[end + 4..];
        let mut lines = head.split("\r\n");
        let line = lines.next().unwrap().to_owned();
        assert!(line.starts_with("HTTP/1.1 "), "{line}");
        let mut fields: Vec<String> = lines
            .map(|line| {
                let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("{line:?}"));
                assert!(!line.contains(['\r', '\n', '\0']), "{line:?}");
                format!("{}: {value}", name.to_ascii_lowercase())
            })
            .filter(|line| !line.starts_with("date: ") && !line.starts_with("connection: "))
            .collect();
        let coding = fields
            .iter()
            .rfind(|field| field.starts_with("transfer-encoding: "))
            .map(|coding| coding.to_lowercase());
        fields.sort();
        let status: u16 = line[9..12].parse().unwrap();
        seen.heads.push((line, fields.clone()));
        if status >= 200 {
            break (status, fields, coding);
        }
    };
    let value = |name: &str| {
        let mut values = fields.iter().filter_map(|field| field.strip_prefix(name));
        let value = values.next();
        assert!(values.next().is_none(), "{name} more than once: {fields:?}");
        value
    };
    let has_content = method != "HEAD" && !matches!(status, 204 | 304);
    let length = match value("content-length: ") {
        Some(length) if coding.is_none() => Some(length.parse::<usize>().unwrap()),
        Some(_) => panic!("two framings: {fields:?}"),
        None => None,
    };
    if !has_content {
        seen.is_whole = true;
    } else if coding.is_some_and(|coding| coding.ends_with("chunked")) {
        while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
            let size = str::from_utf8(&rest[..end]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap_or_else(|_| panic!("{size:?}"));
            rest = &rest[end + 2..];
            let taken = size.min(rest.len());
            seen.body.extend_from_slice(&rest[..taken]);
            rest = &rest[taken..];
            let Some(after) = rest.strip_prefix(b"\r\n") else {
                break;
            };
            rest = after;
            if size == 0 {
                seen.is_whole = true;
                break;
            }
        }
    } else if let Some(length) = length {
        seen.is_whole = rest.len() >= length;
        let taken = length.min(rest.len());
        seen.body.extend_from_slice(&rest[..taken]);
        rest = &rest[taken..];
    } else {
        // The end of the connection; nothing can follow.
        seen.body.extend_from_slice(rest);
        seen.is_whole = true;
        return seen;
    }
    if seen.is_whole && !rest.is_empty() {
        assert!(rest.ends_with(b"next"), "{}", rest.escape_ascii());
        assert_eq!(rest.windows(5).filter(|five| five == b"HTTP/").count(), 1);
        seen.is_followed = true;
    }
    seen
}

/// The method, the query, the fields and the body of a request.
type Forwarded = (String, String, Vec<String>, Vec<u8>);

/// The request that the upstream received from a gateway, in an order that does not depend on the
/// path.
fn received(all: &[Received], gateway: usize) -> Option<Forwarded> {
    let name = format!("gateway={gateway}");
    // An idempotent request may be sent again; both must be the same.
    let request = all.iter().rfind(|request| request.target.contains(&name))?;
    let (target, rest) = request.target.split_once(&name).unwrap();
    let (_, query) = target.split_once('?').unwrap();
    let mut fields: Vec<_> = request
        .fields
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    fields.sort();
    Some((
        request.method.clone(),
        format!("{query}{rest}"),
        fields,
        request.body.clone(),
    ))
}

/// The cases of the upstream by their number, and what it has received since the last case.
#[derive(Debug, Default)]
struct Script {
    cases: Mutex<HashMap<String, Case>>,
    received: Mutex<Vec<Received>>,
    number: AtomicUsize,
}

impl Script {
    /// Sends a case to both gateways: calls `send` with the number of the case and the number of
    /// the gateway. Returns the two results, and the requests that the upstream received.
    fn observe<S>(&self, case: &Case, send: impl Fn(usize, usize) -> S) -> ([S; 2], Vec<Received>) {
        let mut tries = 0;
        loop {
            let n = self.number.fetch_add(1, Ordering::Relaxed);
            let mut cases = self.cases.lock().unwrap();
            cases.clear();
            cases.insert(n.to_string(), case.clone());
            drop(cases);
            self.received.lock().unwrap().clear();
            let seen = [0, 1].map(|gateway| send(n, gateway));
            let all = std::mem::take(&mut *self.received.lock().unwrap());
            // The upstream has closed a connection of an earlier case while this one began, and
            // such a request is not sent twice.
            let is_stale = all.len() < 2 && matches!(case.method, "POST" | "PURGE");
            tries += 1;
            if !is_stale || tries == 5 {
                return (seen, all);
            }
        }
    }
}

fn upstream(script: &Arc<Script>) -> Origin {
    let script = Arc::clone(script);
    Origin::responding(move |request, stream| {
        let number = request.target[1..].split('?').next().unwrap();
        let Some(case) = script.cases.lock().unwrap().get(number).cloned() else {
            write_page(stream, &request.method, "next");
            return After::Keep;
        };
        script.received.lock().unwrap().push(request.clone());
        // A response to HEAD ends with its head (RFC 9112 §6.3). The bytes after an answer must
        // arrive with it: later they would look like the next answer.
        let is_exact = is_exact(&case.answer.0) && request.method != "HEAD";
        let piece = match is_exact {
            true => case.piece,
            false => usize::MAX,
        };
        for piece in case.answer.0.chunks(piece) {
            if stream.write_all(piece).is_err() {
                return After::Close;
            }
        }
        // The end of an answer that the gateway waits for must come.
        match is_exact {
            true => case.after,
            false => After::Close,
        }
    })
}

/// Whether an answer is as long as it says.
fn is_exact(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let lines = head
        .lines()
        .filter_map(|line| line.strip_prefix("Content-Length: "));
    let lengths: Vec<_> = lines.map(str::parse::<usize>).collect();
    head.starts_with("HTTP/1.1 200")
        && match &lengths[..] {
            [] => {
                let mut codings = head.lines().map(str::to_lowercase);
                let is_chunked = |line: &String| line == "transfer-encoding: chunked";
                codings.any(|line| is_chunked(&line))
                    && codings.all(|line| is_chunked(&line) || !line.starts_with("transfer-"))
                    && body.ends_with("\r\n0\r\n\r\n")
            }
            [Ok(length)] => {
                *length == body.len() && !head.to_lowercase().contains("transfer-encoding")
            }
            _ => false,
        }
}

/// Makes a runner of this many generated cases.
fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config {
        cases,
        max_shrink_iters: 400,
        failure_persistence: None,
        ..Config::default()
    })
}

/// How many connections to the upstream a gateway has opened, and used again.
fn used(edge: &Edge) -> [f64; 2] {
    ["opened", "reused"].map(|kind| {
        edge.metric(&format!(
            "gateway_upstream_connections_total{{use=\"{kind}\"}}"
        ))
    })
}

fn compare(connections: &str) {
    let script = Arc::new(Script::default());
    let origin = upstream(&script);
    let setup = Setup::new()
        .acme(&origin.record())
        .conf("connections", &format!("{{ {connections} }}"))
        // The ids are random.
        .conf(
            "upstream",
            &format!("{{ create_request_id: false, {LOCAL_UPSTREAMS} }}"),
        )
        .conf("clients", "{ connections_max: 0 }");
    let other = setup.beside().conf(
        "connections",
        &format!("{{ fast_path: false, {connections} }}"),
    );
    let gateways = [setup.start(), other.start()];
    let run = runner(cases()).run(&any_case(), |case| {
        let ([direct, proxy], all) = script.observe(&case, |n, gateway| {
            let request = case.request(n, gateway);
            observe(&gateways[gateway], case.method, &request)
        });
        prop_assert_eq!(received(&all, 0), received(&all, 1));
        // pingora may lose an interim response before a failure, and repeats it if it sends an
        // idempotent request again.
        let is_failure = |head: &(String, Vec<String>)| head.0.starts_with("HTTP/1.1 502 ");
        let is_repeated = all
            .iter()
            .filter(|one| one.target.contains("gateway=1"))
            .count()
            > 1;
        let (last, other) = (direct.heads.last(), proxy.heads.last());
        prop_assert_eq!(last, other);
        if !is_repeated && !last.is_some_and(is_failure) {
            prop_assert_eq!(&direct.heads, &proxy.heads);
        }
        if direct.is_whole && proxy.is_whole || !case.may_be_cut_unseen() {
            prop_assert_eq!(direct.is_whole, proxy.is_whole);
        }
        match direct.is_whole {
            true => prop_assert_eq!(&direct.body, &proxy.body),
            // How much was sent before the end depends on how it arrived.
            false => prop_assert!(
                direct.body.starts_with(&proxy.body) || proxy.body.starts_with(&direct.body),
                "{:?} and {:?}",
                &direct.body,
                &proxy.body
            ),
        }
        Ok(())
    });
    if let Err(failure) = run {
        panic!("{failure}");
    }
    // If the direct path took no request, nothing was compared.
    let [opened, reused] = used(&gateways[0]);
    assert!(opened + reused > f64::from(cases()), "{opened} {reused}");
    assert!(reused > f64::from(cases()) / 20.0, "{opened} {reused}");
}

#[test]
fn requests_and_answers_are_the_same_on_the_direct_path_and_on_the_proxy_path() {
    compare("");
}

#[test]
fn they_are_the_same_for_a_trusted_peer() {
    compare("trusted_peers: [\"127.0.0.0/8\"]");
}

/// Sends one `GET` on a connection of its own and reads everything that comes.
fn get(edge: &Edge, path: &str) -> Seen {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
    observe(edge, "GET", request.as_bytes())
}

#[test]
fn an_upstream_that_dies_at_any_byte_gives_no_wrong_answer() {
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
    let with_length =
        "HTTP/1.1 200 OK\r\nContent-Length: 20\r\nX-Own: a\r\n\r\n01234567890123456789";
    let with_chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\n\
        c;ext=\"a\"\r\n890123456789\r\n0\r\nX-Sum: 1\r\n\r\n";
    let after_interim = format!("{interim}{with_length}");
    for answer in [with_length, with_chunks, &after_interim] {
        let bytes = answer.as_bytes().to_vec();
        let origin = Origin::responding(move |request, stream| {
            let Ok(cut) = request.target[1..].parse::<usize>() else {
                write_page(stream, &request.method, "next");
                return After::Keep;
            };
            let _closed = stream.write_all(&bytes[..cut]);
            After::Close
        });
        let edge = Setup::new().acme(&origin.record()).start();
        let rounds = match std::env::var_os("WAYPOST_LONG_TESTS") {
            // Each case is two requests: the second shows whether the connection is still usable.
            Some(_) => 10_000 / (3 * answer.len()),
            None => 1,
        };
        let cuts: Vec<_> = (0..rounds).flat_map(|_| 0..=answer.len()).collect();
        // Most of the time is spent waiting for the ends of connections.
        thread::scope(|scope| {
            let edge = &edge;
            for cuts in cuts.chunks(cuts.len().div_ceil(8)) {
                scope.spawn(move || {
                    for cut in cuts {
                        check_cut(edge, *cut, answer.len());
                    }
                });
            }
        });
    }
}

/// Requests an answer of this length that is cut.
fn check_cut(edge: &Edge, cut: usize, length: usize) {
    let seen = get(edge, &format!("/{cut}"));
    let (status, _) = seen.heads.last().unwrap();
    match cut == length {
        true => {
            assert_eq!((status.as_str(), seen.is_whole), ("HTTP/1.1 200 OK", true));
            assert_eq!(seen.body, b"01234567890123456789");
        }
        false if status.starts_with("HTTP/1.1 502 ") => assert!(seen.is_whole, "{cut}"),
        false => {
            assert_eq!(
                (status.as_str(), seen.is_whole),
                ("HTTP/1.1 200 OK", false),
                "{cut}"
            );
            assert!(b"01234567890123456789".starts_with(&seen.body), "{cut}");
        }
    }
}

/// Sends requests from several clients, each with paths of its own; every answer must name its
/// request. `count` is for each client; a long run has 20,000 in all.
fn many(edge: &Edge, methods: &'static [&'static str], count: usize) {
    let address = edge.http;
    let count = match std::env::var_os("WAYPOST_LONG_TESTS") {
        Some(_) => 5000,
        None => count,
    };
    let clients: Vec<_> = (0..4)
        .map(|client| {
            thread::spawn(move || {
                let mut connection = Connection::open(address);
                for n in 0..count {
                    let method = methods[n % methods.len()];
                    let request = format!(
                        "{method} /{client}/{n} HTTP/1.1\r\nHost: {DOMAIN}\r\nContent-Length: 2\r\n\r\nok"
                    );
                    connection.send(request.as_bytes());
                    let response = connection.receive(method).expect("an answer");
                    if response.status == 200 {
                        assert_eq!(response.text(), format!("{method} /{client}/{n}"));
                    } else {
                        // Only what may not be sent twice may fail.
                        assert_eq!((method, response.status), ("POST", 502), "{n}");
                        connection = Connection::open(address);
                    }
                }
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
}

#[test]
fn an_upstream_that_closes_after_its_answers_fails_no_request_and_gets_no_post_twice() {
    let origin = Origin::responding(|request, stream| {
        let body = format!("{} {}", request.method, request.target);
        write_page(stream, &request.method, &body);
        // Some connections live longer than one request.
        match request.target.ends_with(['3', '7']) {
            true => After::Close,
            false => After::Keep,
        }
    });
    let edge = Setup::new().acme(&origin.record()).start();
    many(&edge, &["GET", "PUT", "POST", "GET"], 1000);
    let mut posts = HashSet::new();
    for request in origin.received() {
        if request.method == "POST" {
            assert!(
                posts.insert(request.target.clone()),
                "{} came twice",
                request.target
            );
        }
        assert_eq!(request.body, b"ok");
    }
    let reused = edge.metric("gateway_upstream_connections_total{use=\"reused\"}");
    assert!(reused > 500.0, "{reused}");
}

#[test]
fn bytes_after_an_answer_are_never_the_answer_to_another_request() {
    let origin = Origin::responding(|request, stream| {
        let body = format!("{} {}", request.method, request.target);
        let stolen = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen";
        let head = match request.target.len() % 3 {
            0 => format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ),
            1 => format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}{stolen}",
                body.len()
            ),
            _ => format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n{stolen}",
                body.len()
            ),
        };
        let (first, second) = head.split_at(head.len() - stolen.len() / 2);
        let _closed = stream.write_all(first.as_bytes());
        // Later than the end of the answer.
        crate::http::pause();
        let _closed = stream.write_all(second.as_bytes());
        After::Keep
    });
    let edge = Setup::new().acme(&origin.record()).start();
    many(&edge, &["GET", "GET", "PUT", "DELETE"], 500);
}

#[test]
fn an_upstream_that_is_slow_or_silent_within_its_answer_is_cut_in_time() {
    let origin = Origin::responding(|request, stream| {
        match &*request.target {
            "/drip" => {
                let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n".to_owned()
                    + &"a".repeat(2000);
                for byte in answer.as_bytes() {
                    if stream.write_all(&[*byte]).is_err() {
                        return After::Close;
                    }
                }
            }
            "/next" => write_page(stream, &request.method, "next"),
            half => {
                let _closed = stream
                    .write_all(&half.replace("%20", " ").replace('|', "\r\n").as_bytes()[1..]);
                // Until the gateway gives up.
                let _closed = stream.read(&mut [0]);
                return After::Close;
            }
        }
        After::Keep
    });
    let upstream = format!("{{ read_seconds: 1, {LOCAL_UPSTREAMS} }}");
    let edge = Setup::new()
        .acme(&origin.record())
        .conf("upstream", &upstream)
        .start();
    let seen = get(&edge, "/drip");
    assert_eq!(
        (seen.body.len(), seen.is_whole, seen.is_followed),
        (2000, true, true)
    );
    for (half, status) in [
        ("/HTTP/1.1%20200%20OK|X:", 504),
        ("/HTTP/1.1%20200%20OK|Content-Length:9||half", 200),
        (
            "/HTTP/1.1%20200%20OK|Transfer-Encoding:chunked||4|half|",
            200,
        ),
        ("/HTTP/1.1%20100%20Continue||", 504),
        ("/nonsense", 502),
    ] {
        let seen = get(&edge, half);
        let (line, _) = seen.heads.last().unwrap();
        assert!(
            line.starts_with(&format!("HTTP/1.1 {status} ")),
            "{half}: {line}"
        );
        assert_eq!(seen.is_whole, status != 200, "{half}");
    }
    let timeouts = edge.metric("gateway_upstream_failures_total{kind=\"timeout\"}");
    assert_eq!(timeouts, 4.0);
}

#[test]
fn a_client_that_reads_nothing_stops_its_upstream() {
    const MANY: usize = 256 << 20;
    let (stalled, wait) = channel();
    let origin = Origin::responding(move |_, stream| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {MANY}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let second = Duration::from_secs(1);
        stream.set_write_timeout(Some(second)).unwrap();
        let piece = vec![b'a'; 64 << 10];
        let mut sent = 0;
        while sent < MANY && stream.write_all(&piece).is_ok() {
            sent += piece.len();
        }
        stalled.send(sent).unwrap();
        After::Close
    });
    let edge = Setup::new().acme(&origin.record()).start();
    let mut connection = Connection::open(edge.http);
    connection.send(format!("GET /a HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
    // The kernel buffers much less for both connections.
    let sent = wait.recv_timeout(TIMEOUT).unwrap();
    assert!(sent < MANY / 4, "the upstream has sent {sent} bytes");
    assert_eq!(connection.receive_head().unwrap().status, 200);
    assert!(connection.receive_rest().len() <= sent + (64 << 10));
}

#[test]
fn a_body_that_arrives_late_is_forwarded_whole_and_one_that_stops_is_rejected() {
    let origin = Origin::start();
    let connections = "{ body_seconds: 1 }";
    let edge = Setup::new()
        .acme(&origin.record())
        .conf("connections", connections)
        .start();
    let body = "0123456789".repeat(3000);
    let head = format!(
        "POST /a HTTP/1.1\r\nHost: {DOMAIN}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut connection = Connection::open(edge.http);
    for piece in head
        .as_bytes()
        .chunks(50)
        .chain(body.as_bytes().chunks(7000))
    {
        connection.send(piece);
        crate::http::pause();
    }
    let response = connection.receive("POST").unwrap();
    assert_eq!((response.status, response.text()), (200, "POST /a"));
    assert_eq!(origin.wait_for(1).body, body.as_bytes());
    // The connection is used again.
    connection.send(format!("{head}{}", &body[..10]).as_bytes());
    assert_eq!(connection.receive("POST").unwrap().status, 408);
    let mut connection = Connection::open(edge.http);
    connection.send(format!("{head}{}", &body[..10]).as_bytes());
    connection
        .stream()
        .shutdown(std::net::Shutdown::Write)
        .unwrap();
    assert_eq!(connection.receive("POST").unwrap().status, 400);
    assert_eq!(origin.received().len(), 1);
}
