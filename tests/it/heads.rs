//! A request head with one meaning is accepted; every other one is rejected, on both paths.
//!
//! Raw bytes go to two gateways over the same sites, one with the fast path and one without, for
//! a discovery path and for a path of the site's own origin. The origin records the requests that
//! it receives: no rejected request may reach it, and no request hidden behind one.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::edge::{Edge, Setup};
use crate::http::{Connection, Response};
use crate::origin::Origin;
use crate::presets::{DOMAIN, SKILL};
use crate::tls::Encrypted;

const DISCOVERY: &str = "/skill.md";
const PAGE: &str = "/guide";
/// This request follows every rejected request. A response to it means that it was smuggled.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n";

/// Two gateways over one site whose origin is a server of the test.
struct Gateways {
    origin: Origin,
    fast_path: Edge,
    proxy: Edge,
}

/// The RFC section of a rule, a head, and the status of the response.
///
/// `{path}` is replaced by a discovery path and by another path.
struct Case(&'static str, &'static str, u16);

impl Gateways {
    fn start(connections: &str) -> Self {
        Self::before(Origin::start(), connections)
    }

    fn before(origin: Origin, connections: &str) -> Self {
        let setup = Setup::new().acme_before(&origin);
        let connections = |fast_path| format!("{{ fast_path: {fast_path}{connections} }}");
        let second = setup.beside().conf("connections", &connections(false));
        Self {
            origin,
            fast_path: setup.conf("connections", &connections(true)).start(),
            proxy: second.start(),
        }
    }

    /// Both listeners, with a name for messages.
    fn each(&self) -> [(&'static str, SocketAddr); 2] {
        [
            ("fast_path", self.fast_path.http),
            ("proxy", self.proxy.http),
        ]
    }
}

/// Sends bytes and reads the only response. The gateway must close the connection after it.
#[track_caller]
fn only_response(address: SocketAddr, bytes: &[u8], what: &str) -> Response {
    let mut connection = Connection::open(address);
    connection.send(bytes);
    let method = if bytes.starts_with(b"HEAD") {
        "HEAD"
    } else {
        "GET"
    };
    let response = connection
        .receive(method)
        .unwrap_or_else(|| panic!("no answer to {what}"));
    assert_eq!(
        connection.receive_rest(),
        b"",
        "behind the answer to {what}"
    );
    response
}

const REJECTED: &[Case] = &[
    // Host.
    Case("9112 §3.2", "GET {path} HTTP/1.1\r\n\r\n", 400),
    Case("9112 §3.2", "GET {path} HTTP/1.0\r\n\r\n", 400),
    Case("9112 §3.2", "GET {path} HTTP/1.1\r\nHost:\r\n\r\n", 400),
    Case(
        "9112 §3.2",
        "GET {path} HTTP/1.1\r\nHost: a b/c<>\r\n\r\n",
        400,
    ),
    Case(
        "9112 §3.2",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test,b\r\n\r\n",
        400,
    ),
    Case(
        "9112 §3.2",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\nHost: docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "9112 §3.2",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\nHost: b.test\r\n\r\n",
        400,
    ),
    Case(
        "9110 §4.2.4",
        "GET {path} HTTP/1.1\r\nHost: user@docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "3986 §3.2.2",
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        400,
    ),
    Case(
        "3986 §3.2.2",
        "GET {path} HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
        400,
    ),
    Case(
        "3986 §3.2.3",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test:port\r\n\r\n",
        400,
    ),
    Case(
        "9112 §3.2.2",
        "GET http://b.test{path} HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "9112 §3.2.2",
        "GET http://user@docs.acme.test{path} HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "9112 §3.2.2",
        "GET ftp://docs.acme.test{path} HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        400,
    ),
    // Line ends.
    Case(
        "9112 §2.2",
        "GET {path} HTTP/1.1\nHost: docs.acme.test\n\n",
        400,
    ),
    Case(
        "9112 §2.2",
        "GET {path} HTTP/1.1\nHost: docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "9112 §2.2",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\n\r\n",
        400,
    ),
    Case(
        "9112 §2.2",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\nX: a\rY: b\r\n\r\n",
        400,
    ),
    Case(
        "9112 §2.2",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\nX: a\r\r\n\r\n",
        400,
    ),
    // The request line.
    Case("9112 §3", "GET {path}\r\n\r\n", 400),
    Case(
        "9112 §3",
        "GET  {path} HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "9112 §3",
        "GET\t{path} HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "9112 §3",
        "GET {path} HTTP/1.1 \r\nHost: docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "9112 §3",
        "GET {path} http/1.1\r\nHost: docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "9112 §3",
        " GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "9110 §9.1",
        "G(T {path} HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "9110 §2.5",
        "GET {path} HTTP/2.0\r\nHost: docs.acme.test\r\n\r\n",
        505,
    ),
    Case("9113 §3.4", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    // The target.
    Case(
        "3986 §2",
        "GET {path}\0 HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "3986 §2",
        "GET {path} a HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "3986 §2",
        "GET {path}\\a HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "3986 §2",
        "GET {path}\u{e9} HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "3986 §3.5",
        "GET {path}#a HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "9112 §3.2.4",
        "GET * HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "9112 §3.2.3",
        "GET docs.acme.test:80 HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        400,
    ),
    // Methods.
    Case(
        "9110 §9.3.8",
        "TRACE {path} HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        405,
    ),
    Case(
        "9110 §9.3.6",
        "CONNECT docs.acme.test:80 HTTP/1.1\r\nHost: docs.acme.test:80\r\n\r\n",
        405,
    ),
    // Field syntax.
    Case(
        "9112 §5.1",
        "GET {path} HTTP/1.1\r\nHost : docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "9112 §5.1",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\nTransfer-Encoding : chunked\r\n\r\n",
        400,
    ),
    Case(
        "9112 §5.2",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\nX: a\r\n b\r\n\r\n",
        400,
    ),
    Case(
        "9112 §2.2",
        "GET {path} HTTP/1.1\r\n Host: docs.acme.test\r\n\r\n",
        400,
    ),
    Case(
        "9110 §5.1",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\n: a\r\n\r\n",
        400,
    ),
    Case(
        "9110 §5.1",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\nX(Y): a\r\n\r\n",
        400,
    ),
    Case(
        "9112 §5",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\nX\r\n\r\n",
        400,
    ),
    Case(
        "9110 §5.5",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\nX: a\0b\r\n\r\n",
        400,
    ),
    Case(
        "9110 §5.5",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\nX: \u{7}\r\n\r\n",
        400,
    ),
    // Framing.
    Case(
        "9112 §6.3",
        "POST {path} HTTP/1.1\r\nHost: docs.acme.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    Case(
        "9112 §6.3",
        "POST {path} HTTP/1.1\r\nHost: docs.acme.test\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nhello",
        400,
    ),
    Case(
        "9110 §8.6",
        "POST {path} HTTP/1.1\r\nHost: docs.acme.test\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        400,
    ),
    Case(
        "9110 §8.6",
        "POST {path} HTTP/1.1\r\nHost: docs.acme.test\r\nContent-Length: 5, 5\r\n\r\nhello",
        400,
    ),
    Case(
        "9110 §8.6",
        "POST {path} HTTP/1.1\r\nHost: docs.acme.test\r\nContent-Length: +5\r\n\r\nhello",
        400,
    ),
    Case(
        "9110 §8.6",
        "POST {path} HTTP/1.1\r\nHost: docs.acme.test\r\nContent-Length: -1\r\n\r\n",
        400,
    ),
    Case(
        "9110 §8.6",
        "POST {path} HTTP/1.1\r\nHost: docs.acme.test\r\nContent-Length: 0x5\r\n\r\nhello",
        400,
    ),
    Case(
        "9110 §8.6",
        "POST {path} HTTP/1.1\r\nHost: docs.acme.test\r\nContent-Length:\r\n\r\n",
        400,
    ),
    Case(
        "9110 §8.6",
        "POST {path} HTTP/1.1\r\nHost: docs.acme.test\r\nContent-Length: 18446744073709551616\r\n\r\n",
        400,
    ),
    Case(
        "9112 §6.1",
        "POST {path} HTTP/1.1\r\nHost: docs.acme.test\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    Case(
        "9112 §6.1",
        "POST {path} HTTP/1.1\r\nHost: docs.acme.test\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    Case(
        "9112 §6.1",
        "POST {path} HTTP/1.1\r\nHost: docs.acme.test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        501,
    ),
    Case(
        "9112 §6.1",
        "POST {path} HTTP/1.1\r\nHost: docs.acme.test\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        501,
    ),
    Case(
        "9112 §7",
        "POST {path} HTTP/1.1\r\nHost: docs.acme.test\r\nTransfer-Encoding: identity\r\n\r\n",
        501,
    ),
    Case(
        "9112 §7",
        "POST {path} HTTP/1.1\r\nHost: docs.acme.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        501,
    ),
    Case(
        "9112 §7",
        "POST {path} HTTP/1.1\r\nHost: docs.acme.test\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
        501,
    ),
    Case(
        "9112 §7",
        "POST {path} HTTP/1.1\r\nHost: docs.acme.test\r\nTransfer-Encoding:\r\n\r\n",
        501,
    ),
    Case(
        "9112 §6.1",
        "POST {path} HTTP/1.0\r\nHost: docs.acme.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    // Fields that a proxy would have to remove, and expectations it could not meet.
    Case(
        "9110 §7.6.1",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\nConnection: Authorization\r\nAuthorization: a\r\n\r\n",
        400,
    ),
    Case(
        "9110 §7.6.1",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\nConnection: keep-alive, Host\r\n\r\n",
        400,
    ),
    Case(
        "9110 §10.1.1",
        "POST {path} HTTP/1.1\r\nHost: docs.acme.test\r\nExpect: 200-ok\r\nContent-Length: 0\r\n\r\n",
        417,
    ),
];

#[test]
fn an_ambiguous_head_is_rejected_and_the_connection_closed() {
    let gateways = Gateways::start("");
    for (name, address) in gateways.each() {
        for Case(section, head, status) in REJECTED {
            for path in [DISCOVERY, PAGE] {
                let head = head.replace("{path}", path);
                let what = format!("RFC {section}, {name}: {head:?}");
                let bytes = [head.as_bytes(), HIDDEN.as_bytes()].concat();
                let response = only_response(address, &bytes, &what);
                assert_eq!(response.status, *status, "{what}");
                assert_eq!(response.field("connection"), Some("close"), "{what}");
                response.check("GET");
                if *status == 405 {
                    assert!(response.field("allow").is_some(), "{what}");
                }
            }
        }
    }
    assert_eq!(gateways.origin.received().len(), 0);
}

const ACCEPTED: &[Case] = &[
    Case(
        "9112 §3.2.1",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        200,
    ),
    Case(
        "9112 §3.2.1",
        "GET {path}?a=%zz&b=/?x HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        200,
    ),
    Case(
        "9110 §7.2",
        "GET {path} HTTP/1.1\r\nhost:DOCS.Acme.test.:8080\r\n\r\n",
        200,
    ),
    Case(
        "9112 §3.2.2",
        "GET http://docs.acme.test{path} HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        200,
    ),
    Case(
        "9112 §3.2.2",
        "GET HTTP://DOCS.acme.test{path} HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        200,
    ),
    Case(
        "9112 §2.2",
        "\r\n\r\nGET {path} HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        200,
    ),
    Case(
        "9112 §5.1",
        "GET {path} HTTP/1.1\r\nHost: \t docs.acme.test \t\r\nX:\r\nY:\ta\tb \r\n\r\n",
        200,
    ),
    Case(
        "9110 §5.5",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\nX: \u{e9}\u{ff}\r\n\r\n",
        200,
    ),
    Case(
        "9110 §7.6.1",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\nConnection: X-Own\r\nX-Own: a\r\n\r\n",
        200,
    ),
    Case(
        "9110 §8.6",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\nContent-Length: 0\r\n\r\n",
        200,
    ),
    Case(
        "9110 §9.3.1",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\nContent-Length: 5\r\n\r\nhello",
        200,
    ),
    Case(
        "9112 §7.1",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\nTransfer-Encoding: Chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n",
        200,
    ),
    Case(
        "9110 §14.2",
        "GET {path} HTTP/1.1\r\nHost: docs.acme.test\r\nRange: bytes=0-1\r\n\r\n",
        200,
    ),
    Case(
        "9110 §9.3.2",
        "HEAD {path} HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        200,
    ),
];

#[test]
fn an_unambiguous_head_gets_its_response_and_the_connection_stays_open() {
    let gateways = Gateways::start("");
    for (name, address) in gateways.each() {
        for Case(section, head, status) in ACCEPTED {
            for path in [DISCOVERY, PAGE] {
                let head = head.replace("{path}", path);
                let what = format!("RFC {section}, {name}: {head:?}");
                let mut connection = Connection::open(address);
                connection.send(head.as_bytes());
                let method = if head.starts_with("HEAD") {
                    "HEAD"
                } else {
                    "GET"
                };
                let response = connection.receive(method).expect(&what);
                assert_eq!(response.status, *status, "{what}");
                // RFC 9112 §9.3: if the body is not read, the connection is closed, and the
                // response says so.
                if path == DISCOVERY && head.contains("hello") {
                    assert_eq!(response.field("connection"), Some("close"), "{what}");
                    continue;
                }
                connection.send(head.as_bytes());
                let again = connection.receive(method).expect(&what);
                assert_eq!(again.status, *status, "the second time: {what}");
            }
        }
    }
}

#[test]
fn a_head_may_come_byte_by_byte() {
    let gateways = Gateways::start("");
    for (name, address) in gateways.each() {
        for path in [DISCOVERY, PAGE] {
            let mut connection = Connection::open(address);
            let request = format!("GET {path} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
            for byte in request.as_bytes() {
                connection.send(&[*byte]);
            }
            assert_eq!(connection.receive("GET").expect(name).status, 200, "{name}");
        }
    }
}

#[test]
fn a_head_above_a_limit_gets_the_status_of_that_limit() {
    let gateways =
        Gateways::start(", head_bytes_max: 4096, target_bytes_max: 1024, fields_max: 20");
    let field = format!("X: {}\r\n", "a".repeat(1000));
    let many = "X: a\r\n".repeat(20);
    let long = "a".repeat(1100);
    for (section, head, status) in [
        // RFC 6585 §5 and RFC 9110 §15.5.15.
        (
            "6585 §5",
            format!(
                "GET {{path}} HTTP/1.1\r\nHost: {DOMAIN}\r\n{}\r\n",
                field.repeat(5)
            ),
            431,
        ),
        (
            "6585 §5",
            format!(
                "GET {{path}} HTTP/1.1\r\nHost: {DOMAIN}\r\n{}",
                field.repeat(5)
            ),
            431,
        ),
        (
            "6585 §5",
            format!("GET {{path}} HTTP/1.1\r\nHost: {DOMAIN}\r\n{many}\r\n"),
            431,
        ),
        (
            "9110 §15.5.15",
            format!("GET {{path}}?{long} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n"),
            414,
        ),
        (
            "9110 §15.5.15",
            format!("GET {{path}}?{}", long.repeat(2)),
            414,
        ),
        // These are just below the limits.
        (
            "",
            format!(
                "GET {{path}} HTTP/1.1\r\nHost: {DOMAIN}\r\nConnection: close\r\n{}\r\n",
                field.repeat(3)
            ),
            200,
        ),
        (
            "",
            format!(
                "GET {{path}}?{} HTTP/1.1\r\nHost: {DOMAIN}\r\nConnection: close\r\n\r\n",
                &long[..1000]
            ),
            200,
        ),
    ] {
        for (name, address) in gateways.each() {
            for path in [DISCOVERY, PAGE] {
                let head = head.replace("{path}", path);
                let what = format!("RFC {section}, {name}, {path}");
                let response = only_response(address, head.as_bytes(), &what);
                assert_eq!(response.status, status, "{what}");
            }
        }
    }
}

/// RFC 9112 §9.6: after the response to a request with `close`, the server reads no more requests.
#[test]
fn the_last_request_of_a_connection_takes_the_fast_path_and_ends_it() {
    let gateways = Gateways::start(", requests_per_connection_max: 2");
    let get = format!("GET {DISCOVERY} HTTP/1.1\r\nHost: {DOMAIN}\r\n");
    for (name, address) in gateways.each() {
        let closing = format!("{get}Connection: close\r\n\r\n");
        for hidden in ["", HIDDEN] {
            let response = only_response(address, format!("{closing}{hidden}").as_bytes(), name);
            assert_eq!((response.status, response.text()), (200, SKILL), "{name}");
            assert_eq!(response.field("connection"), Some("close"), "{name}");
        }
        let mut connection = Connection::open(address);
        connection.send(format!("{get}\r\n").repeat(3).as_bytes());
        for is_last in [false, true] {
            let response = connection.receive("GET").unwrap();
            let closes = response.field("connection") == Some("close");
            assert_eq!((response.status, closes), (200, is_last), "{name}");
        }
        assert_eq!(connection.receive_rest(), b"", "{name}");
    }
    let route = "gateway_requests_total{route=\"fast_path\",status=\"200\"}";
    let count = gateways.fast_path.metric(route);
    assert!((3.5..4.5).contains(&count), "{count} of 4");
}

#[test]
fn a_tls_hello_on_the_plain_port_gets_a_plain_text_response() {
    let gateways = Gateways::start("");
    for (name, address) in gateways.each() {
        let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
        assert_eq!(only_response(address, hello, name).status, 400, "{name}");
    }
}

#[test]
fn a_head_that_does_not_end_in_time_is_408() {
    let gateways = Gateways::start(", head_seconds: 1, idle_seconds: 30");
    for (name, address) in gateways.each() {
        let since = Instant::now();
        let response = only_response(address, b"GET /skill.md HTTP/1.1\r\nHost:", name);
        assert_eq!(response.status, 408, "{name}");
        assert_eq!(response.field("connection"), Some("close"), "{name}");
        let took = since.elapsed();
        assert!((900..5000).contains(&took.as_millis()), "{name}: {took:?}");
        // The time of a later head begins with its first byte, not with the idle time before.
        let mut connection = Connection::open(address);
        let whole = format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
        connection.send(whole.as_bytes());
        assert_eq!(connection.receive("GET").unwrap().status, 200);
        connection.send(b"G");
        assert_eq!(connection.receive("GET").expect(name).status, 408, "{name}");
    }
}

/// A byte now and then must not extend the deadline of a head.
#[test]
fn a_slow_head_is_408() {
    let gateways = Gateways::start(", head_seconds: 1");
    for (name, address) in gateways.each() {
        let mut connection = Connection::open(address);
        let since = Instant::now();
        connection.send(b"GET /skill.md HTTP/1.1\r\nHost: docs.acme.test\r\nX: ");
        let stream = connection.stream().try_clone().unwrap();
        let answered = std::thread::scope(|scope| {
            let answer = scope.spawn(|| connection.receive("GET"));
            let writer: &mut &TcpStream = &mut &stream;
            // The pause is the client's behaviour under test, not a wait for anything.
            while !answer.is_finished() && since.elapsed() < Duration::from_secs(10) {
                let _closed = std::io::Write::write_all(writer, b"a");
                std::thread::park_timeout(Duration::from_millis(100));
            }
            answer.join().unwrap()
        });
        assert_eq!(answered.expect(name).status, 408, "{name}");
        assert!(since.elapsed() < Duration::from_secs(5), "{name}");
    }
}

#[test]
fn a_connection_without_a_request_is_closed_without_a_response() {
    let gateways = Gateways::start(", head_seconds: 1, idle_seconds: 1");
    for (name, address) in gateways.each() {
        let since = Instant::now();
        assert_eq!(
            Connection::open(address).receive_rest(),
            b"",
            "{name}: never sent"
        );
        // RFC 9112 §9.5: a server may close an idle connection at any time.
        for path in [DISCOVERY, PAGE] {
            let mut connection = Connection::open(address);
            connection.send(format!("GET {path} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
            assert_eq!(connection.receive("GET").unwrap().status, 200);
            assert_eq!(connection.receive_rest(), b"", "{name}: idle after {path}");
        }
        let took = since.elapsed();
        assert!(
            (2700..10_000).contains(&took.as_millis()),
            "{name}: {took:?}"
        );
    }
    let idle = gateways.fast_path.metric("gateway_timeouts_total");
    assert!(idle >= 3.0, "{idle} connections timed out");
}

#[test]
fn a_stalled_or_slow_body_is_408() {
    let gateways = Gateways::start(", body_seconds: 1, body_rate_min: 100");
    for (name, address) in gateways.each() {
        let head =
            format!("POST {PAGE} HTTP/1.1\r\nHost: {DOMAIN}\r\nContent-Length: 10000\r\n\r\n");
        let since = Instant::now();
        let stalled = only_response(address, format!("{head}hello").as_bytes(), name);
        assert_eq!(stalled.status, 408, "{name}");
        let took = since.elapsed();
        assert!((900..6000).contains(&took.as_millis()), "{name}: {took:?}");
    }
}

#[test]
fn pipelined_requests_get_responses_in_their_order_across_both_paths() {
    let gateways = Gateways::start("");
    let requests: Vec<(&str, &str)> = (0..40)
        .map(|n| match n % 5 {
            0 => ("GET", PAGE),
            1 => ("HEAD", DISCOVERY),
            2 => ("GET", "/nowhere.html?x"),
            _ => ("GET", DISCOVERY),
        })
        .collect();
    let text: String = requests
        .iter()
        .map(|(method, path)| format!("{method} {path} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n"))
        .collect();
    for (name, address) in gateways.each() {
        let mut connection = Connection::open(address);
        connection.send(text.as_bytes());
        for (method, path) in &requests {
            let response = connection.receive(method).expect(name);
            let expected = match *method {
                "HEAD" => String::new(),
                _ if *path == DISCOVERY => SKILL.to_owned(),
                _ => format!("GET {path}"),
            };
            assert_eq!(
                (response.status, response.text()),
                (200, &*expected),
                "{name}"
            );
        }
    }
}

/// The client sends more pipelined bytes than the gateway buffers, while the origin is slow.
#[test]
fn a_body_and_the_next_request_in_one_segment_are_separated() {
    let gateways = Gateways::start("");
    for (name, address) in gateways.each() {
        let mut connection = Connection::open(address);
        let mut text = String::new();
        for n in 0..20 {
            let chunked = if n % 2 == 0 {
                "Transfer-Encoding: chunked\r\n\r\n5\r\nGET /\r\n0\r\n\r\n"
            } else {
                "Content-Length: 5\r\n\r\nGET /"
            };
            text += &format!("POST /{n} HTTP/1.1\r\nHost: {DOMAIN}\r\n{chunked}");
        }
        connection.send(text.as_bytes());
        let before = gateways.origin.received().len();
        for n in 0..20 {
            let response = connection.receive("POST").expect(name);
            assert_eq!(response.text(), format!("POST /{n}"), "{name}");
        }
        gateways.origin.wait_for(20);
        for request in &gateways.origin.received()[before.min(20)..] {
            assert_eq!(request.body, b"GET /", "{name}");
        }
    }
}

#[test]
fn after_a_half_close_the_request_still_gets_its_response() {
    let gateways = Gateways::start("");
    for (name, address) in gateways.each() {
        for path in [DISCOVERY, PAGE] {
            // RFC 9112 §9.6.
            let mut connection = Connection::open(address);
            let request = format!("GET {path} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
            connection.send(request.repeat(2).as_bytes());
            connection.stream().shutdown(Shutdown::Write).unwrap();
            for _ in 0..2 {
                let response = connection
                    .receive("GET")
                    .unwrap_or_else(|| panic!("{name} {path}"));
                assert_eq!(response.status, 200, "{name} {path}");
            }
            assert_eq!(connection.receive_rest(), b"", "{name} {path}");
        }
    }
}

/// RFC 9112 §9.6: unread bytes must not turn into a reset that destroys the response.
#[test]
fn a_response_arrives_even_if_the_body_is_not_read() {
    let gateways = Gateways::start("");
    for (name, address) in gateways.each() {
        let head = format!("TRACE {PAGE} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
        let bytes = [head.as_bytes(), &[b'a'; 48 << 10]].concat();
        assert_eq!(only_response(address, &bytes, name).status, 405, "{name}");
        // The gateway does not read this body, because the response comes from memory.
        let head = format!(
            "POST {DISCOVERY} HTTP/1.1\r\nHost: {DOMAIN}\r\nContent-Length: 1000000\r\n\r\n"
        );
        let bytes = [head.as_bytes(), &[b'a'; 48 << 10]].concat();
        let response = only_response(address, &bytes, name);
        assert_eq!(response.status, 405, "{name}");
        assert_eq!(response.field("connection"), Some("close"), "{name}");
    }
}

#[test]
fn a_malformed_chunked_body_is_rejected_and_never_complete_at_the_origin() {
    let gateways = Gateways::start("");
    for body in [
        "5\nhello\r\n0\r\n\r\n",
        "5 \r\nhello\r\n0\r\n\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "5;a\nb\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhellohello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "\r\nhello\r\n0\r\n\r\n",
        "FFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nX: \u{1}\r\n\r\n",
        "5\r\nhello\r\n0\r\nX: a\n\r\n",
    ] {
        for (name, address) in gateways.each() {
            // RFC 9112 §7.1.
            let what = format!("{name}: {body:?}");
            let request = format!(
                "POST {PAGE} HTTP/1.1\r\nHost: {DOMAIN}\r\nTransfer-Encoding: chunked\r\n\r\n{body}{HIDDEN}"
            );
            let response = only_response(address, request.as_bytes(), &what);
            assert_eq!(response.status, 400, "{what}");
        }
    }
    assert_eq!(gateways.origin.received().len(), 0);
}

#[test]
fn an_http_1_0_client_gets_its_response_and_the_connection_is_closed() {
    let gateways = Gateways::start("");
    for (name, address) in gateways.each() {
        for path in [DISCOVERY, PAGE] {
            // RFC 9112 §9.3: it stays open only if the client asks for it.
            let plain = format!("GET {path} HTTP/1.0\r\nHost: {DOMAIN}\r\n\r\n");
            let response = only_response(address, plain.as_bytes(), name);
            assert_eq!(response.status, 200, "{name} {path}");
            assert_eq!(response.field("transfer-encoding"), None, "{name} {path}");
            let received =
                format!("GET {path} HTTP/1.0\r\nHost: {DOMAIN}\r\nConnection: keep-alive\r\n\r\n");
            let mut connection = Connection::open(address);
            for _ in 0..2 {
                connection.send(received.as_bytes());
                let response = connection
                    .receive("GET")
                    .unwrap_or_else(|| panic!("{name} {path}"));
                assert_eq!(response.status, 200, "{name} {path}");
                let kept = response.field("connection").map(str::to_ascii_lowercase);
                assert_eq!(kept.as_deref(), Some("keep-alive"), "{name} {path}");
            }
        }
    }
}

#[test]
fn a_client_that_expects_100_continue_gets_it() {
    let gateways = Gateways::start("");
    for (name, address) in gateways.each() {
        // RFC 9110 §10.1.1: the body comes only after the interim response.
        let mut connection = Connection::open(address);
        connection.send(
            format!("POST {PAGE} HTTP/1.1\r\nHost: {DOMAIN}\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
                .as_bytes(),
        );
        assert_eq!(
            connection.receive("POST").expect(name).status,
            100,
            "{name}"
        );
        connection.send(b"hello");
        let response = connection.receive("POST").expect(name);
        assert_eq!(
            (response.status, response.text()),
            (200, "POST /guide"),
            "{name}"
        );
        // A response that does not need the body comes instead of the interim response.
        let mut connection = Connection::open(address);
        connection.send(
            format!("POST {DISCOVERY} HTTP/1.1\r\nHost: {DOMAIN}\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
                .as_bytes(),
        );
        assert_eq!(
            connection.receive("POST").expect(name).status,
            405,
            "{name}"
        );
    }
    assert_eq!(gateways.origin.received()[0].body, b"hello");
}

#[test]
fn an_http_2_request_follows_the_same_rules() {
    let origin = Origin::start();
    let gateway = Encrypted::before(&origin.record(), "{ fields_max: 30 }");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let request = |method: &str, scheme: &str, target: &str| {
        let uri = http::Uri::builder().scheme(scheme).authority(DOMAIN);
        let uri = uri.path_and_query(target).build().unwrap();
        http::Request::builder().method(method).uri(uri)
    };
    let long = format!("/{}", "a".repeat(9000));
    let many = (0..31).fold(request("GET", "https", PAGE), |request, n| {
        request.header(format!("x-{n}"), "y")
    });
    let lengths = request("POST", "https", PAGE);
    let cases = [
        (
            "9110 §8.6",
            lengths
                .header("content-length", "0")
                .header("content-length", "0"),
            400,
        ),
        ("9110 §9.3.8", request("TRACE", "https", PAGE), 405),
        ("fields_max", many, 431),
        ("target_bytes_max", request("GET", "https", &long), 414),
        ("3986 §2", request("GET", "https", "/a\\b"), 400),
        ("3986 §2", request("GET", "https", "/\u{e9}"), 400),
        ("9112 §3.2.4", request("GET", "https", "*"), 400),
        (
            "9110 §10.1.1",
            request("GET", "https", PAGE).header("expect", "200-ok"),
            417,
        ),
        ("3986 §3.1", request("GET", "ftp", PAGE), 400),
    ];
    runtime.block_on(async {
        let mut client = gateway.http2().await;
        for (rule, request, status) in cases {
            let request = request.body(()).unwrap();
            let what = format!("{rule}: {request:?}");
            let response = client.request(request).await.unwrap();
            assert_eq!(response.status, status, "{what}");
            if status == 405 {
                assert!(response.field("allow").is_some(), "{what}");
            }
        }
        assert_eq!(origin.received().len(), 0);
        // The connection stays open.
        assert_eq!(client.get(DOMAIN, PAGE).await.unwrap().status, 200);
    });
    let rejected = gateway
        .edge
        .metric("gateway_requests_total{route=\"rejected\",status=\"400\"}");
    assert!((rejected - 5.0).abs() < 0.5, "{rejected}");
}
