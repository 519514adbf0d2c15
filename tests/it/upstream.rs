//! Every request that is not for a discovery path goes to the site's own server, with only the
//! changes that a proxy must make.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustls::{ServerConnection, StreamOwned};

use crate::certificates::Authority;
use crate::edge::{Edge, LOCAL_UPSTREAMS, Setup};
use crate::http::{Connection, Response, TIMEOUT, silence};
use crate::http2;
use crate::origin::{After, Origin, write_page};
use crate::ports::free_address;
use crate::presets::DOMAIN;

/// A gateway before one origin.
fn before(origin: &Origin) -> Edge {
    edge_before(&origin.record(), Setup::new())
}

fn edge_before(record: &str, setup: Setup) -> Edge {
    setup.acme(record).start()
}

/// Sends a request on a connection of its own; `text` ends before the empty line.
#[track_caller]
fn send(edge: &Edge, text: &str) -> Response {
    let mut connection = Connection::open(edge.http);
    connection.send(text.as_bytes());
    connection
        .receive(text.split(' ').next().unwrap())
        .expect("an answer")
}

/// Sends a `GET` for a path with more fields.
#[track_caller]
fn get(edge: &Edge, path: &str, fields: &str) -> Response {
    send(
        edge,
        &format!("GET {path} HTTP/1.1\r\nHost: {DOMAIN}\r\n{fields}\r\n"),
    )
}

#[test]
fn method_path_and_query_reach_the_origin_as_they_were_sent() {
    let origin = Origin::start();
    let edge = before(&origin);
    for (n, request) in [
        "GET /",
        "GET /a//b/./c/../d?x=%2F&y=/..//&z",
        "GET /%7Euser/%e2%82%ac?%zz",
        "GET /a|b^{c}\"[d]?{e}|`",
        "GET /?",
        "GET //host/path",
        "GET /skill.md.html",
        "DELETE /a;v=1,2@3:4!$&'()*+",
        "PURGE /a",
        "M-SEARCH /a",
        "OPTIONS /a",
        "OPTIONS *",
        "PATCH /.well-known/acme-challenge/x",
        "get /lower",
    ]
    .into_iter()
    .enumerate()
    {
        let response = send(
            &edge,
            &format!("{request} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n"),
        );
        assert_eq!((response.status, response.text()), (200, request));
        let received = origin.wait_for(n + 1);
        assert_eq!(format!("{} {}", received.method, received.target), request);
    }
}

#[test]
fn an_absolute_target_reaches_the_origin_as_a_path() {
    let origin = Origin::start();
    let edge = before(&origin);
    for (n, (target, expected)) in [
        ("http://docs.acme.test/a?b=c", "/a?b=c"),
        ("HTTP://DOCS.acme.test/a", "/a"),
        ("http://docs.acme.test", "/"),
        ("https://docs.acme.test?q", "/?q"),
    ]
    .into_iter()
    .enumerate()
    {
        // RFC 9112 §3.2.1 and §3.2.2.
        send(
            &edge,
            &format!("GET {target} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n"),
        );
        let received = origin.wait_for(n + 1);
        assert_eq!(received.target, expected, "{target}");
        assert_eq!(received.field("host"), Some(DOMAIN), "{target}");
    }
}

#[test]
fn bodies_are_forwarded_complete_with_every_framing() {
    let large = "0123456789abcdef".repeat(300_000);
    let origin = Origin::responding({
        let large = large.clone();
        move |request, stream| {
            // If writing fails, the gateway has closed the connection.
            let _closed = match &*request.target {
                "/length" => write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{large}",
                    large.len()
                ),
                "/chunks" => {
                    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
                    write!(
                        stream,
                        "{head}{:x}\r\n{large}\r\n3\r\nend\r\n0\r\n\r\n",
                        large.len()
                    )
                }
                _ => {
                    let _closed = write!(stream, "HTTP/1.1 200 OK\r\n\r\n{large}");
                    return After::Close;
                }
            };
            After::Keep
        }
    });
    let edge = before(&origin);
    for (n, framing) in ["length", "chunks", "close"].into_iter().enumerate() {
        let head = format!("POST /{framing} HTTP/1.1\r\nHost: {DOMAIN}\r\n");
        let body = if n == 0 {
            format!("Content-Length: {}\r\n\r\n{large}", large.len())
        } else {
            let (first, second) = large.split_at(70_000);
            format!(
                "Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:x};ext\r\n{second}\r\n0\r\n\r\n",
                first.len(),
                second.len()
            )
        };
        let mut connection = Connection::open(edge.http);
        connection.send(format!("{head}{body}").as_bytes());
        let response = connection.receive("POST").unwrap();
        let expected = if framing == "chunks" {
            large.clone() + "end"
        } else {
            large.clone()
        };
        assert!(
            response.body == expected.as_bytes(),
            "{framing}: {} bytes",
            response.body.len()
        );
        let received = origin.wait_for(n + 1);
        assert!(
            received.body == large.as_bytes(),
            "{framing}: {} bytes came",
            received.body.len()
        );
    }
}

#[test]
fn responses_without_content_keep_their_fields_and_the_connection() {
    let origin = Origin::responding(|request, stream| {
        let status = &request.target[1..];
        let _closed = write!(
            stream,
            "HTTP/1.1 {status} X\r\nETag: \"a\"\r\n{}\r\n",
            match status {
                "304" | "204" => "",
                _ => "Content-Length: 12345\r\n",
            }
        );
        After::Keep
    });
    let edge = before(&origin);
    let mut connection = Connection::open(edge.http);
    for (method, status, length) in [
        ("GET", 304, None),
        ("GET", 204, None),
        ("HEAD", 200, Some("12345")),
    ] {
        // RFC 9110 §9.3.2, §15.3.5, §15.4.5.
        connection
            .send(format!("{method} /{status} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
        let response = connection.receive(method).unwrap();
        assert_eq!(response.status, status);
        assert_eq!(response.field("content-length"), length);
        assert_eq!(response.field("etag"), Some("\"a\""));
    }
    assert_eq!(origin.received().len(), 3);
}

#[test]
fn connections_to_the_origin_are_reused_for_other_clients() {
    let origin = Origin::start();
    let edge = before(&origin);
    // A connection is free a moment after its response has arrived, so sometimes a second one is
    // needed.
    for _ in 0..30 {
        assert_eq!(get(&edge, "/a", "").status, 200);
    }
    let used = origin.wait_for(30).connection + 1;
    assert!(used < 10, "30 requests took {used} connections");
}

/// Responds to the first request of each connection, and closes at the second.
fn closing_at_second_request() -> Origin {
    let seen = std::sync::Mutex::new(std::collections::HashSet::new());
    Origin::responding(move |request, stream| {
        if seen.lock().unwrap().insert(request.connection) {
            write_page(stream, &request.method, "once");
            return After::Keep;
        }
        After::Close
    })
}

/// Sends a request until it is forwarded on a connection that was used before: one is free a
/// moment after its response has arrived. Returns the response, and how many requests the origin
/// had received until then.
#[track_caller]
fn on_a_used_connection(edge: &Edge, origin: &Origin, request: &str) -> (Response, usize) {
    for _ in 0..100 {
        let before = origin.received();
        let answer = send(edge, request);
        let first = &origin.received()[before.len()];
        if before
            .iter()
            .any(|other| other.connection == first.connection)
        {
            return (answer, before.len());
        }
    }
    panic!("no connection was used again");
}

#[test]
fn only_safe_requests_are_retried() {
    for (method, status, times) in [
        ("GET", 200, 2),
        ("POST", 502, 1),
        ("PATCH", 502, 1),
        ("PURGE", 502, 1),
    ] {
        let origin = closing_at_second_request();
        let edge = before(&origin);
        assert_eq!(get(&edge, "/warm", "").status, 200);
        // RFC 9110 §9.2.2: the connection ends before a response; only an idempotent method
        // may be sent again.
        let request =
            format!("{method} /a HTTP/1.1\r\nHost: {DOMAIN}\r\nContent-Length: 0\r\n\r\n");
        let (answer, before) = on_a_used_connection(&edge, &origin, &request);
        assert_eq!(answer.status, status, "{method}");
        assert_eq!(origin.received().len(), before + times, "{method}");
    }
}

#[test]
fn each_failure_of_an_origin_has_its_status() {
    let silent = Origin::responding(|_, stream| {
        // Until the gateway gives up.
        let _closed = stream.read(&mut [0]);
        After::Close
    });
    let nonsense = Origin::responding(|_, stream| {
        let _closed = stream.write_all(b"220 mail.acme.test ESMTP\r\n");
        After::Close
    });
    let closing = Origin::responding(|_, _| After::Close);
    let gone = free_address();
    let unknown = "origin: { url: \"http://no-such-host.invalid\" }".to_owned();
    for (record, status, kind) in [
        (silent.record(), 504, "timeout"),
        (nonsense.record(), 502, "protocol"),
        (closing.record(), 502, "protocol"),
        (
            format!("origin: {{ url: \"http://{gone}\" }}"),
            502,
            "connect",
        ),
        (unknown, 502, "connect"),
    ] {
        let edge = edge_before(
            &record,
            Setup::new().conf(
                "upstream",
                &format!("{{ read_seconds: 1, {LOCAL_UPSTREAMS} }}"),
            ),
        );
        let response = get(&edge, "/a", "");
        assert_eq!(response.status, status, "{record}");
        response.check("GET");
        let failures = edge.metric(&format!(
            "gateway_upstream_failures_total{{kind=\"{kind}\"}}"
        ));
        assert!(failures >= 1.0, "{record}: {failures}");
    }
}

#[test]
fn a_response_that_breaks_off_is_not_forwarded_as_complete() {
    let origin = Origin::responding(|_, stream| {
        let _closed = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
        After::Close
    });
    let edge = before(&origin);
    let mut connection = Connection::open(edge.http);
    connection.send(format!("GET /a HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
    assert_eq!(
        connection.receive_head().unwrap().field("content-length"),
        Some("100")
    );
    assert_eq!(connection.receive_rest(), b"half");
}

#[test]
fn forwarding_fields_of_a_client_are_replaced() {
    let origin = Origin::start();
    let edge = before(&origin);
    get(
        &edge,
        "/a",
        "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.test\r\n\
         Forwarded: for=9.9.9.9\r\nX-Real-IP: 9.9.9.9\r\nX_Forwarded_For: 9.9.9.9\r\n\
         x-forwarded-port: 1\r\nX-FORWARDED-PREFIX: /x\r\nVia: 1.1 before\r\nX-Own: kept\r\n",
    );
    let received = origin.wait_for(1);
    for (name, value) in [
        ("host", Some(DOMAIN)),
        ("x-forwarded-for", Some("127.0.0.1")),
        ("x-forwarded-proto", Some("http")),
        ("x-forwarded-host", Some(DOMAIN)),
        ("x-real-ip", Some("127.0.0.1")),
        (
            "forwarded",
            Some("for=127.0.0.1;host=\"docs.acme.test\";proto=http"),
        ),
        ("x_forwarded_for", None),
        ("x-forwarded-port", None),
        ("x-forwarded-prefix", None),
        // RFC 9110 §7.6.3: Via is extended, never removed.
        ("via", Some("1.1 before, 1.1 waypost.localhost")),
        ("x-own", Some("kept")),
    ] {
        assert_eq!(received.field(name), value, "{name}");
    }
}

#[test]
fn forwarding_fields_of_a_trusted_peer_are_extended() {
    let origin = Origin::start();
    let connections = "{ trusted_peers: [\"127.0.0.0/8\"] }";
    let edge = edge_before(
        &origin.record(),
        Setup::new().conf("connections", connections),
    );
    get(
        &edge,
        "/a",
        "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\nForwarded: for=192.0.2.7;proto=https\r\n",
    );
    let received = origin.wait_for(1);
    for (name, value) in [
        ("x-forwarded-for", "192.0.2.7, 127.0.0.1"),
        ("x-forwarded-proto", "https"),
        (
            "forwarded",
            "for=192.0.2.7;proto=https, for=127.0.0.1;host=\"docs.acme.test\";proto=http",
        ),
    ] {
        assert_eq!(received.field(name), Some(value), "{name}");
    }
}

#[test]
fn hop_by_hop_fields_are_not_forwarded() {
    let origin = Origin::responding(|_, stream| {
        let _closed = stream.write_all(
            b"HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nX-Hop: a\r\nKeep-Alive: timeout=5\r\n\
              X-End: b\r\nContent-Length: 2\r\n\r\nok",
        );
        After::Keep
    });
    let edge = before(&origin);
    let response = get(
        &edge,
        "/a",
        "Connection: X-Own, keep-alive\r\nX-Own: a\r\nKeep-Alive: timeout=9\r\nTE: trailers\r\n\
         Proxy-Connection: keep-alive\r\nX-End: b\r\nAuthorization: Bearer x\r\nCookie: a=b\r\n",
    );
    let received = origin.wait_for(1);
    // RFC 9110 §7.6.1.
    for name in ["x-own", "keep-alive", "proxy-connection", "te", "upgrade"] {
        assert_eq!(received.field(name), None, "{name} reached the origin");
    }
    for (name, value) in [
        ("x-end", "b"),
        ("authorization", "Bearer x"),
        ("cookie", "a=b"),
    ] {
        assert_eq!(received.field(name), Some(value), "{name}");
    }
    for name in ["x-hop", "keep-alive"] {
        assert_eq!(response.field(name), None, "{name} reached the client");
    }
    assert_eq!(response.field("x-end"), Some("b"));
    assert_eq!(response.field("via"), Some("1.1 waypost.localhost"));
}

#[test]
fn the_origin_is_sent_the_clients_host_or_its_own() {
    for (setting, expected) in [("preserve", DOMAIN.to_owned()), ("upstream", String::new())] {
        let origin = Origin::start();
        let record = format!(
            "origin: {{ url: \"http://{}\", host: {setting} }}",
            origin.address
        );
        let edge = edge_before(&record, Setup::new());
        get(&edge, "/a", "");
        let expected = if expected.is_empty() {
            origin.address.to_string()
        } else {
            expected
        };
        let received = origin.wait_for(1);
        assert_eq!(received.field("host"), Some(&*expected));
        assert_eq!(received.field("x-forwarded-host"), Some(DOMAIN));
    }
}

#[test]
fn a_request_loop_is_508() {
    let edge = Setup::new().start();
    edge.write_site(
        "acme",
        &format!(
            "domains: [{DOMAIN}]\norigin: {{ url: \"http://{}\" }}",
            edge.http
        ),
    );
    // RFC 9110 §7.6.3: Via shows loops. RFC 5842 §7.2: 508.
    let response = get(&edge, "/a", "");
    assert_eq!(response.status, 508);
    assert_eq!(response.json()["status"], 508);
}

#[test]
fn an_interim_response_does_not_replace_the_final_one() {
    let origin = Origin::responding(|request, stream| {
        let _closed =
            stream.write_all(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n");
        write_page(stream, &request.method, "final");
        After::Keep
    });
    let edge = before(&origin);
    let mut connection = Connection::open(edge.http);
    for _ in 0..2 {
        connection.send(format!("GET /a HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
        let mut response = connection.receive("GET").unwrap();
        // RFC 9110 §15.2: a proxy may leave out an interim response.
        if response.status == 103 {
            response = connection.receive("GET").unwrap();
        }
        assert_eq!((response.status, response.text()), (200, "final"));
    }
}

const HANDSHAKE: &str = "GET /socket HTTP/1.1\r\nHost: docs.acme.test\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Accepts the upgrade and sends back every byte until the end, which it reports.
fn echo() -> (Origin, Receiver<()>) {
    let (ended, end) = channel();
    let origin = Origin::responding(move |request, stream| {
        assert_eq!(request.field("upgrade"), Some("websocket"));
        // See "Limits" in `gateway/proxy`: an origin on the same machine is too fast.
        silence(Duration::from_millis(50));
        assert_eq!(
            request.field("sec-websocket-key"),
            Some("dGhlIHNhbXBsZSBub25jZQ==")
        );
        let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let mut bytes = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut bytes) {
            // "bye" ends it from this side.
            if bytes[..read].ends_with(b"bye") || stream.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
        ended.send(()).unwrap();
        After::Close
    });
    (origin, end)
}

/// A setup whose timeouts are one second, except the timeout of upgraded connections.
fn short_timeouts(more: &str) -> Setup {
    Setup::new()
        .conf(
            "upstream",
            &format!("{{ read_seconds: 1, upgraded_seconds: 30, {LOCAL_UPSTREAMS} }}"),
        )
        .conf(
            "connections",
            &format!("{{ head_seconds: 1, idle_seconds: 1, body_seconds: 1{more} }}"),
        )
}

#[test]
fn a_websocket_is_forwarded_and_has_no_read_timeout() {
    let (origin, end) = echo();
    let short = short_timeouts("");
    let edge = edge_before(&origin.record(), short);
    let open = || {
        let mut connection = Connection::open(edge.http);
        connection.send(HANDSHAKE.as_bytes());
        let response = connection.receive("GET").unwrap();
        assert_eq!(response.status, 101);
        assert_eq!(response.field("upgrade"), Some("websocket"));
        assert_eq!(
            response.field("sec-websocket-accept"),
            Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        );
        connection
    };
    let mut connection = open();
    for message in [
        "\u{81}\u{2}hi",
        "not HTTP\n\n\0",
        "GET /hidden HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
    ] {
        connection.send(message.as_bytes());
        assert_eq!(connection.receive_bytes(message.len()), message.as_bytes());
    }
    silence(Duration::from_millis(2200));
    connection.send(b"still here");
    assert_eq!(connection.receive_bytes(10), b"still here");
    // The client closes, and the origin sees it.
    connection.stream().shutdown(Shutdown::Both).unwrap();
    end.recv_timeout(TIMEOUT).unwrap();
    // The origin closes, and the client sees it.
    let mut connection = open();
    connection.send(b"bye");
    assert_eq!(connection.receive_rest(), b"");
    end.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(origin.received().len(), 2);
}

#[test]
fn bytes_after_a_handshake_are_forwarded() {
    let (origin, _end) = echo();
    let edge = before(&origin);
    let mut connection = Connection::open(edge.http);
    connection.send(format!("{HANDSHAKE}early").as_bytes());
    assert_eq!(connection.receive("GET").unwrap().status, 101);
    assert_eq!(connection.receive_bytes(5), b"early");
}

#[test]
fn a_rejected_upgrade_is_forwarded() {
    let origin = Origin::start();
    let edge = before(&origin);
    let mut connection = Connection::open(edge.http);
    connection.send(HANDSHAKE.as_bytes());
    let response = connection.receive("GET").unwrap();
    assert_eq!((response.status, response.text()), (200, "GET /socket"));
}

#[test]
fn events_are_forwarded_as_they_arrive() {
    let (next, events) = channel::<()>();
    let events = std::sync::Mutex::new(events);
    let origin = Origin::responding(move |_, stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let events = events.lock().unwrap();
        while events.recv().is_ok() {
            if stream.write_all(b"9\r\ndata: 1\n\n\r\n").is_err() {
                break;
            }
        }
        let _closed = stream.write_all(b"0\r\n\r\n");
        After::Close
    });
    let short = short_timeouts(", write_seconds: 1");
    let edge = edge_before(&origin.record(), short);
    let mut connection = Connection::open(edge.http);
    connection.send(
        format!("GET /events HTTP/1.1\r\nHost: {DOMAIN}\r\nAccept: text/event-stream\r\n\r\n")
            .as_bytes(),
    );
    // The head arrives before any event, and each event before the next one is sent.
    assert_eq!(connection.receive_head().unwrap().status, 200);
    for gap in [0, 0, 2200] {
        silence(Duration::from_millis(gap));
        next.send(()).unwrap();
        assert_eq!(
            connection.receive_chunk().as_deref(),
            Some(&b"data: 1\n\n"[..])
        );
    }
    drop(next);
    assert_eq!(connection.receive_chunk(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_origin_may_speak_http_2_with_prior_knowledge() {
    let origin = http2::Origin::start(None).await;
    let record = format!(
        "origin: {{ url: \"http://{}\", http: \"2\" }}",
        origin.address
    );
    let edge = edge_before(&record, Setup::new());
    let request = format!(
        "POST /a?b HTTP/1.1\r\nHost: {DOMAIN}\r\nContent-Length: 5\r\nConnection: X-Own\r\nX-Own: a\r\n\r\nhello"
    );
    let response = send(&edge, &request);
    assert_eq!((response.status, response.text()), (200, "POST /a 5"));
    assert_eq!(response.field("via"), Some("2.0 waypost.localhost"));
    let received = &origin.received()[0];
    assert_eq!(received.body(), b"hello");
    assert_eq!(received.uri().path_and_query().unwrap().as_str(), "/a?b");
    let host = received
        .uri()
        .authority()
        .map(|name| name.as_str().to_owned());
    assert_eq!(host.as_deref(), Some(DOMAIN));
    assert_eq!(received.headers()["x-forwarded-for"], "127.0.0.1");
    assert!(!received.headers().contains_key("x-own"));
}

/// A gateway that trusts one authority, before an origin at `localhost`.
fn trusting(authority: &Authority, record: &str) -> Edge {
    let setup = Setup::new();
    let file = setup.path("authority.pem");
    authority.write(&file);
    let server = format!("{{ threads: 2, ca_file: \"{}\" }}", file.display());
    edge_before(record, setup.conf("server", &server))
}

#[tokio::test(flavor = "multi_thread")]
async fn http_2_is_spoken_to_an_origin_that_offers_it() {
    let authority = Authority::new();
    let origin = http2::Origin::start(Some(authority.server(&["localhost"], &["h2"]))).await;
    let record = format!(
        "origin: {{ url: \"https://localhost:{}\" }}",
        origin.address.port()
    );
    let edge = trusting(&authority, &record);
    for _ in 0..2 {
        let response = get(&edge, "/a", "");
        assert_eq!((response.status, response.text()), (200, "GET /a 0"));
    }
    assert_eq!(origin.received().len(), 2);
}

/// An HTTP/1.1 origin behind TLS.
fn encrypted(authority: &Authority, names: &[&str]) -> Origin {
    let config = authority.server(names, &["http/1.1"]);
    Origin::serving(
        move |stream: TcpStream| {
            StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream)
        },
        |request, stream| {
            write_page(stream, &request.method, "encrypted");
            After::Keep
        },
    )
}

#[test]
fn a_request_goes_to_an_origin_over_tls_only_if_its_certificate_is_valid() {
    let (authority, unknown_authority) = (Authority::new(), Authority::new());
    for (issuer, names, status) in [
        (&authority, &["localhost"][..], 200),
        (&authority, &["other.test"], 502),
        (&unknown_authority, &["localhost"], 502),
    ] {
        let origin = encrypted(issuer, names);
        let record = format!(
            "origin: {{ url: \"https://localhost:{}\" }}",
            origin.address.port()
        );
        let edge = trusting(&authority, &record);
        let response = get(&edge, "/a", "Cookie: secret=1\r\n");
        assert_eq!(response.status, status, "{names:?}");
        if status == 200 {
            assert_eq!(response.text(), "encrypted");
            assert_eq!(origin.wait_for(1).field("x-forwarded-proto"), Some("http"));
        } else {
            response.check("GET");
            assert_eq!(origin.received().len(), 0, "{names:?}");
            assert!(edge.metric("gateway_upstream_failures_total{kind=\"tls\"}") >= 1.0);
        }
    }
}
