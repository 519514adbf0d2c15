//! A request has one meaning and costs a bounded amount, in every version of HTTP.
//!
//! HTTP/2 has the same rules as HTTP/1.1: the same heads are rejected with the same status, and
//! request bodies have the same timeouts. HTTP/1.0 clients get only features of HTTP/1.0.

use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::edge::{Edge, Setup};
use crate::http::{Connection, TIMEOUT};
use crate::http2::{self, Client};
use crate::origin::{After, Origin, write_page};
use crate::ports::free_address;
use crate::presets::{DOMAIN, SKILL};
use crate::repository::key;
use crate::tls::{Encrypted, raw};

/// The host of the admin API.
const API: &str = "api.waypost.localhost";

fn is_error(line: &serde_json::Value) -> bool {
    line["level"] == "error"
}

/// Sends a request and reads the response to its end.
#[track_caller]
fn exchange(edge: &Edge, request: &str) -> crate::http::Response {
    let mut connection = Connection::open(edge.http);
    connection.send(request.as_bytes());
    let method = request.split(' ').next().unwrap();
    connection.receive(method).expect("a response")
}

#[test]
fn http_1_0_gets_no_chunks_and_no_interim_responses() {
    let origin = Origin::responding(|_, stream| {
        let response = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n\
             HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
        let _closed = stream.write_all(response.as_bytes());
        After::Keep
    });
    for fast_path in [true, false] {
        let edge = Setup::new()
            .conf("connections", &format!("{{ fast_path: {fast_path} }}"))
            .acme(&origin.record())
            .start();
        for (fields, content) in [
            ("", ""),
            ("Connection: keep-alive\r\n", ""),
            ("Content-Length: 2\r\n", "hi"),
            ("Content-Length: 2\r\nConnection: keep-alive\r\n", "hi"),
            ("Content-Length: 2\r\nExpect: 100-continue\r\n", "hi"),
        ] {
            let what = format!("fast path {fast_path}: {fields}");
            let mut connection = Connection::open(edge.http);
            let method = if content.is_empty() { "GET" } else { "POST" };
            let head = format!("{method} /a HTTP/1.0\r\nHost: {DOMAIN}\r\n{fields}\r\n{content}");
            connection.send(head.as_bytes());
            let response = connection.receive_head().unwrap();
            // RFC 9112 §6.1, RFC 9110 §15.2 and §10.1.1.
            assert_eq!(response.status, 200, "{what}");
            assert_eq!(response.field("transfer-encoding"), None, "{what}");
            assert_eq!(response.field("connection"), Some("close"), "{what}");
            assert_eq!(connection.receive_rest(), b"hello world", "{what}");
        }
    }
    for received in origin.received() {
        assert_eq!(received.field("expect"), None);
    }
}

#[test]
fn an_http_1_0_client_may_keep_its_connection_if_the_length_is_known() {
    let origin = Origin::start();
    let edge = Setup::new().acme_before(&origin).start();
    let mut connection = Connection::open(edge.http);
    for path in ["/skill.md", "/a", "/skill.md"] {
        let head =
            format!("GET {path} HTTP/1.0\r\nHost: {DOMAIN}\r\nConnection: keep-alive\r\n\r\n");
        connection.send(head.as_bytes());
        let response = connection.receive("GET").unwrap();
        assert_eq!(response.status, 200, "{path}");
        assert_eq!(response.field("connection"), Some("keep-alive"), "{path}");
    }
}

#[test]
fn a_proxy_sends_its_own_version() {
    let origin = Origin::responding(|_, stream| {
        let response = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok";
        let _closed = stream.write_all(response.as_bytes());
        After::Close
    });
    let edge = Setup::new().acme(&origin.record()).start();
    // RFC 9110 §2.5. The status line is read strictly.
    let response = exchange(&edge, &format!("GET /a HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n"));
    assert_eq!((response.status, response.text()), (200, "ok"));
}

#[test]
fn a_later_minor_version_is_read_as_http_1_1() {
    let origin = Origin::start();
    let edge = Setup::new().acme_before(&origin).start();
    let mut connection = Connection::open(edge.http);
    for (path, body) in [("/skill.md", SKILL), ("/a", "GET /a"), ("/skill.md", SKILL)] {
        // RFC 9110 §2.5.
        connection.send(format!("GET {path} HTTP/1.2\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
        let response = connection.receive("GET").unwrap();
        assert_eq!((response.status, response.text()), (200, body));
    }
}

#[test]
fn empty_lines_before_a_request_are_ignored_also_between_pipelined_requests() {
    let edge = Setup::new().acme("").with_skill().start();
    let mut connection = Connection::open(edge.http);
    let request = format!("\r\n\r\nGET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
    connection.send(request.repeat(3).as_bytes());
    for _ in 0..3 {
        // RFC 9112 §2.2.
        assert_eq!(connection.receive("GET").unwrap().status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_error_response_to_head_has_a_body() {
    // Nothing listens at this address any more.
    let dead = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let before_dead = format!("domains: [dead.test]\norigin: {{ url: \"http://{dead}\" }}");
    for fast_path in [true, false] {
        let fast_path = format!("{{ fast_path: {fast_path} }}");
        let setup = Setup::new().conf("connections", &fast_path);
        let gateway = Encrypted::of(setup.site("dead", &before_dead), "");
        let mut http2 = gateway.http2().await;
        for (host, path, status) in [
            (DOMAIN, "/none", 404),
            (DOMAIN, "/.well-known/skills/none/SKILL.md", 404),
            ("dead.test", "/a", 502),
            (API, "/v1/none", 404),
            ("none.test", "/", 404),
        ] {
            let mut connection = Connection::open(gateway.edge.http);
            let head = format!("HEAD {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            connection.send(head.as_bytes());
            let response = connection.receive_head().unwrap();
            assert_eq!(response.status, status, "{host}{path}");
            assert_ne!(response.field("content-length"), Some("0"), "{host}{path}");
            assert_eq!(connection.receive_rest(), b"", "{host}{path}");
            let request = http::Request::head(format!("https://{host}{path}"));
            let response = http2.request(request.body(()).unwrap()).await.unwrap();
            assert_ne!(response.field("content-length"), Some("0"), "{host}{path}");
            assert_eq!(response.body, b"", "{host}{path}");
        }
    }
}

#[test]
fn a_rejected_head_request_gets_no_body() {
    let edge = Setup::new().acme("").with_skill().start();
    for (head, status) in [
        (
            format!("HEAD /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\nX : a\r\n\r\n"),
            400,
        ),
        (
            format!(
                "HEAD /{} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n",
                "a".repeat(9000)
            ),
            414,
        ),
        (
            format!("HEAD /a HTTP/1.1\r\nHost: {DOMAIN}\r\nExpect: 200-ok\r\n\r\n"),
            417,
        ),
    ] {
        let mut connection = Connection::open(edge.http);
        connection.send(head.as_bytes());
        let response = connection.receive_head().unwrap();
        assert_eq!(response.status, status);
        // RFC 9110 §9.3.2: the length of the body that GET would have.
        assert_ne!(response.field("content-length"), Some("0"));
        assert_eq!(connection.receive_rest(), b"");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http_2_rejects_the_heads_that_http_1_1_rejects() {
    let origin = Origin::start();
    let gateway = Encrypted::before(&origin.record(), "{ stream_faults_max: 1000 }");
    let mut http2 = gateway.http2().await;
    let request = |method: &str, path: &str, fields: &[(&str, &str)]| {
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("https://{DOMAIN}{path}"));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    };
    let long = format!("/{}", "a".repeat(9000));
    let many: Vec<_> = (0..120).map(|_| ("x-a", "b")).collect();
    for path in ["/skill.md", "/guide"] {
        for (request, status) in [
            (request("TRACE", path, &[]), 405),
            (request("GET", path, &many), 431),
            (request("GET", &long, &[]), 414),
            (request("POST", path, &[("expect", "200-ok")]), 417),
            (request("GET", path, &[("host", "evil.test")]), 400),
            (
                request("GET", path, &[("host", DOMAIN), ("host", DOMAIN)]),
                400,
            ),
        ] {
            let what = format!("{request:?}");
            let response = http2.request(request).await.unwrap();
            assert_eq!(response.status, status, "{what}");
            response.check("GET");
        }
    }
    assert_eq!(origin.received().len(), 0);
}

#[test]
fn http_2_rejects_targets_with_invalid_characters() {
    let origin = Origin::start();
    let gateway = Encrypted::before(&origin.record(), "{}");
    for (path, fields) in [
        ("/a\\b", &[][..]),
        ("/a\u{e9}b", &[]),
        ("/a<b", &[]),
        ("*", &[]),
        ("/a", &[("content-length", "0"), ("content-length", "0")]),
        ("/a", &[("content-length", "+0")]),
    ] {
        gateway.rejects(path, fields);
    }
    // The scheme is neither http nor https: a literal in place of the indexed one.
    let mut connection = gateway.raw();
    let name = |name: &[u8]| [&[u8::try_from(name.len()).unwrap()], name].concat();
    let block = [
        vec![0x82, 0x06],
        name(b"ftp"),
        vec![0x01],
        name(DOMAIN.as_bytes()),
        vec![0x04],
        name(b"/guide"),
    ];
    connection.send(&raw::frame(raw::HEADERS, 0x05, 1, &block.concat()));
    let end = raw::wait_for(&mut connection, |frame| frame.kind == raw::HEADERS);
    assert_eq!(end.payload[0], 0x80 | 12);
    assert_eq!(origin.received().len(), 0);
}

/// A request that announces a body and sends one byte of it.
async fn begin_slowly(client: &mut Client, host: &str, fields: &[(&str, &str)]) -> http2::Exchange {
    let path = if host == API {
        "/v1/project/update/acme"
    } else {
        "/a"
    };
    let mut request = http::Request::post(format!("https://{host}{path}"));
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.header("content-length", "1000").body(()).unwrap();
    let mut exchange = client.begin(request, false).await.unwrap();
    exchange
        .body
        .send_data(Bytes::from_static(b"a"), false)
        .unwrap();
    exchange
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_body_over_http_2_is_a_timeout() {
    let origin = Origin::start();
    let limits = "{ body_seconds: 1, body_rate_min: 100 }";
    let gateway = Encrypted::before(&origin.record(), limits);
    let key = key(&gateway.edge.setup, "acme");
    let mut client = gateway.http2().await;
    let authorization = format!("Bearer {key}");
    let fields = [("authorization", authorization.as_str())];
    // A new key is accepted within a second.
    let deadline = Instant::now() + TIMEOUT;
    let status = http::Request::get(format!("https://{API}/v1/project/update-status/x"))
        .header("authorization", &authorization)
        .body(())
        .unwrap();
    while client.request(status.clone()).await.unwrap().status == 401 {
        assert!(Instant::now() < deadline, "the key is not accepted");
    }
    for (host, fields) in [(DOMAIN, &[][..]), (API, &fields[..])] {
        let since = Instant::now();
        let exchange = begin_slowly(&mut client, host, fields).await;
        let response = http2::receive(exchange.response).await.unwrap();
        assert_eq!(response.status, 408, "{host}: {}", response.text());
        assert!(since.elapsed() < Duration::from_secs(5), "{host}");
    }
    assert_eq!(gateway.edge.count_log(is_error), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_body_of_a_request_without_a_key_is_not_awaited() {
    let gateway = Encrypted::start("{ body_seconds: 60 }");
    let mut client = gateway.http2().await;
    for fields in [&[][..], &[("authorization", "Bearer waypost_wrong")]] {
        let since = Instant::now();
        let exchange = begin_slowly(&mut client, API, fields).await;
        let response = http2::receive(exchange.response).await.unwrap();
        assert_eq!(response.status, 401);
        assert!(
            since.elapsed() < Duration::from_secs(5),
            "{:?}",
            since.elapsed()
        );
    }
    // The same is true over HTTP/1.1.
    let since = Instant::now();
    let head = format!(
        "POST /v1/project/update/acme HTTP/1.1\r\nHost: {API}\r\nContent-Length: 1000\r\n\r\na"
    );
    assert!(matches!(exchange(&gateway.edge, &head).status, 401 | 403));
    assert!(
        since.elapsed() < Duration::from_secs(5),
        "{:?}",
        since.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_does_not_wait_for_a_client_that_sends_nothing() {
    let origin = Origin::start();
    let limits = "{ body_seconds: 60, drain_seconds: 20 }";
    let gateway = Encrypted::before(&origin.record(), limits);
    let mut client = gateway.http2().await;
    let _over_http2 = begin_slowly(&mut client, DOMAIN, &[]).await;
    let mut over_http1 = Connection::open(gateway.edge.http);
    over_http1.send(
        format!("POST /a HTTP/1.1\r\nHost: {DOMAIN}\r\nContent-Length: 9\r\n\r\na").as_bytes(),
    );
    // Both requests have reached the gateway when a later one is answered.
    assert_eq!(client.get(DOMAIN, "/skill.md").await.unwrap().status, 200);
    let since = Instant::now();
    gateway.edge.signal("TERM");
    assert!(gateway.edge.wait().success());
    assert!(
        since.elapsed() < Duration::from_secs(12),
        "{:?}",
        since.elapsed()
    );
}

#[test]
fn the_heads_of_open_streams_are_limited() {
    let (origin, proceed) = Origin::with_delayed_body();
    let limits = "{ stream_heads_bytes_max: 20000 }";
    let gateway = Encrypted::before(&origin.record(), limits);
    let mut connection = gateway.raw();
    let value = "a".repeat(120);
    // Each head has about 12,000 bytes, as HTTP/2 counts them.
    let fields: Vec<_> = (0..75).map(|_| ("x-a", value.as_str())).collect();
    let head = |stream| raw::get_with(stream, DOMAIN, "/guide", &fields);
    connection.send(&head(1));
    origin.wait_for(1);
    connection.send(&head(3));
    let rejected = raw::wait_for(&mut connection, |frame| frame.kind == raw::RST_STREAM);
    // RFC 9113 §7: REFUSED_STREAM, the client may try again.
    assert_eq!((rejected.stream, raw::code(&rejected)), (3, 7));
    // There is room for a small head, and for a discovery request, which holds no head.
    connection.send(&raw::get(5, DOMAIN, "/guide"));
    origin.wait_for(2);
    connection.send(&raw::get_with(7, DOMAIN, "/skill.md", &fields));
    raw::wait_for(&mut connection, |frame| {
        frame.kind == raw::HEADERS && frame.stream == 7
    });
    for _ in 0..3 {
        proceed.send(()).unwrap();
    }
    for _ in 0..2 {
        raw::wait_for(&mut connection, |frame| frame.kind == raw::HEADERS);
    }
    // The first streams have ended. Their place is free a moment after their responses.
    for stream in (9..).step_by(2) {
        connection.send(&head(stream));
        let first = raw::wait_for(&mut connection, |frame| {
            frame.stream == stream && [raw::HEADERS, raw::RST_STREAM].contains(&frame.kind)
        });
        if first.kind == raw::HEADERS {
            return;
        }
        assert_eq!(raw::code(&first), 7);
    }
}

/// Returns curl's report about a request over HTTP/2 with a body. The connection is for [`DOMAIN`].
fn curl(gateway: &Encrypted, host: &str, path: &str, body: &str) -> (Option<i32>, String) {
    let authority = gateway.edge.setup.path("authority.pem");
    gateway.authority.write(&authority);
    let port = gateway.address().port();
    let output = Command::new("curl")
        .args(["--silent", "--http2", "--output", "/dev/null"])
        .args([
            "--write-out",
            "%{http_version} %{http_code}",
            "--data-binary",
            body,
        ])
        .args(["--resolve", &format!("{DOMAIN}:{port}:127.0.0.1")])
        .args(["--header", &format!("Host: {host}"), "--cacert"])
        .arg(&authority)
        .arg(format!("https://{DOMAIN}:{port}{path}"))
        .output()
        .expect("curl is installed");
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

#[test]
fn curl_gets_the_response_to_a_request_with_a_body() {
    let closed = free_address();
    let record = format!("origin: {{ url: \"http://{closed}\" }}");
    let gateway = Encrypted::before(&record, "{}");
    for _ in 0..40 {
        let (code, text) = curl(&gateway, DOMAIN, "/skill.md", "{\"a\":1}");
        assert_eq!((code, &*text), (Some(0), "2 405"));
    }
    // A failure of the site's own server is a response too.
    for _ in 0..5 {
        let (code, text) = curl(&gateway, DOMAIN, "/a", "{\"a\":1}");
        assert_eq!((code, &*text), (Some(0), "2 502"));
    }
    let large = gateway.edge.setup.path("large");
    std::fs::write(&large, vec![b'a'; 2 << 20]).unwrap();
    let large = format!("@{}", large.display());
    for _ in 0..5 {
        let (code, text) = curl(&gateway, API, "/v1/project/update/acme", &large);
        assert_eq!((code, &*text), (Some(0), "2 401"));
        for (path, expected) in [("/skill.md", "2 405"), ("/a", "2 502")] {
            let (code, text) = curl(&gateway, DOMAIN, path, &large);
            assert_eq!((code, &*text), (Some(0), expected));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_clients_are_not_logged_as_errors() {
    let origin = Origin::responding(|request, stream| {
        write_page(stream, &request.method, &"a".repeat(1 << 20));
        After::Keep
    });
    let gateway = Encrypted::before(&origin.record(), "{ body_seconds: 1 }");
    for (host, path) in [
        (DOMAIN, "/a"),
        (DOMAIN, "/skill.md"),
        (API, "/v1/project/update/acme"),
        (API, "/openapi.json"),
    ] {
        let mut client = gateway.http2().await;
        // The client resets its request within the body, or closes the connection.
        for is_reset in [true, false] {
            let request = http::Request::post(format!("https://{host}{path}"));
            let request = request.body(()).unwrap();
            let mut exchange = client.begin(request, false).await.unwrap();
            let _sent = exchange.body.send_data(Bytes::from_static(b"a"), false);
            if is_reset {
                exchange.body.send_reset(h2::Reason::CANCEL);
            }
        }
        // The connection ends before the responses are read.
        let _response = client.begin(http2::get(host, path), true).await.unwrap();
        client.end.abort();
    }
    gateway.edge.signal("TERM");
    gateway
        .edge
        .wait_for_log(|line| line["message"] == "stopped");
    assert_eq!(gateway.edge.count_log(is_error), 0);
}
