//! A site's own server reads nothing private, and harms only its own readers.
//!
//! The owner of a site chooses its server: its name, its address, and every byte of its responses.
//! The clients are not trusted either, and the server must not get false forwarding fields from
//! them.

use std::io::Write as _;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::edge::{Edge, LOCAL_UPSTREAMS, Setup};
use crate::http::{self, Connection, Response};
use crate::http2;
use crate::origin::{After, Origin, write_page};
use crate::presets::DOMAIN;
use crate::tls::Encrypted;

/// A setup with the direct path, and one in which the proxy path forwards everything.
fn paths() -> impl Iterator<Item = Setup> {
    [true, false]
        .into_iter()
        .map(|is_direct| Setup::new().conf("connections", &format!("{{ fast_path: {is_direct} }}")))
}

/// A gateway before an origin that answers each request with the same bytes.
fn sending(setup: Setup, head: &'static str) -> (Origin, Edge) {
    let origin = Origin::responding(move |_, stream| {
        // The gateway may have closed the connection.
        let _closed = stream.write_all(head.as_bytes());
        After::Keep
    });
    let edge = setup.acme(&origin.record()).start();
    (origin, edge)
}

#[track_caller]
fn get(edge: &Edge, fields: &str) -> Response {
    let mut connection = Connection::open(edge.http);
    let head = format!("GET /a HTTP/1.1\r\nHost: {DOMAIN}\r\n{fields}\r\n");
    connection.send(head.as_bytes());
    connection.receive("GET").expect("an answer")
}

/// Whether a line tells the operator which key allows a private server.
fn names_the_key(line: &serde_json::Value) -> bool {
    line["level"] != "debug"
        && line["message"]
            .as_str()
            .is_some_and(|text| text.contains("upstream.private_hosts"))
}

#[test]
fn a_name_with_a_private_address_gets_no_connection() {
    let private = Origin::start();
    let port = private.address.port();
    let record = format!("origin: {{ url: \"http://localhost:{port}\" }}");
    let edge = Setup::new().conf("upstream", "{}").acme(&record).start();
    for _ in 0..3 {
        let response = edge.get(DOMAIN, "/metrics");
        assert_eq!(response.status, 502);
        assert!(
            !response.text().contains("127.0.0.1"),
            "{}",
            response.text()
        );
    }
    assert_eq!(private.received().len(), 0);
    let counted = edge.metric("gateway_upstream_failures_total{kind=\"private\"}");
    assert_eq!(counted, 3.0);
    // The operator reads the reason once, not once a request.
    let reason = edge.wait_for_log(names_the_key);
    assert!(reason["message"].as_str().unwrap().contains("localhost"));
    assert_eq!(edge.count_log(names_the_key), 1);
}

#[test]
fn a_record_with_a_private_address_is_rejected() {
    let edge = Setup::new().conf("upstream", "{}").acme("").start();
    let record = |url: String| format!("domains: [{DOMAIN}]\norigin: {{ url: \"{url}\" }}");
    for (n, host) in [
        edge.operator.to_string(),
        "169.254.169.254".to_owned(),
        "[::ffff:10.0.0.1]".to_owned(),
        "[64:ff9b::7f00:1]".to_owned(),
    ]
    .into_iter()
    .enumerate()
    {
        edge.setup
            .write_site("acme", &record(format!("http://{host}")));
        let finding = edge.wait_for_nth_log(n + 1, names_the_key);
        assert_eq!(finding["level"], "error", "{host}: {finding}");
        // The last good record of the site stays.
        assert_eq!(edge.get(DOMAIN, "/metrics").status, 404, "{host}");
    }
}

#[test]
fn the_operator_may_allow_a_name_an_address_or_a_network() {
    for (entries, is_allowed) in [
        ("localhost", true),
        ("127.0.0.1\", \"::1", true),
        ("127.0.0.0/8\", \"::/64", true),
        ("other.test\", \"10.0.0.0/8", false),
    ] {
        let origin = Origin::start();
        let record = format!(
            "origin: {{ url: \"http://localhost:{}\" }}",
            origin.address.port()
        );
        let upstream = format!("{{ private_hosts: [\"{entries}\"] }}");
        let edge = Setup::new()
            .conf("upstream", &upstream)
            .acme(&record)
            .start();
        let expected = if is_allowed { 200 } else { 502 };
        assert_eq!(get(&edge, "").status, expected, "{entries}");
    }
}

#[test]
fn forwarding_fields_of_a_client_do_not_reach_the_server() {
    let origin = Origin::start();
    let edge = Setup::new().acme(&origin.record()).start();
    let mut connection = Connection::open(edge.http);
    connection.send(
        b"GET /a HTTP/1.1\r\nHost: DOCS.Acme.test.:8443\r\nX-Forwarded-Ssl: on\r\n\
          X-Forwarded-Scheme: https\r\nX-Forwarded-By: a\r\nX-Client-IP: 9.9.9.9\r\n\
          True-Client-IP: 9.9.9.9\r\nX-Original-URL: /admin\r\nProxy: http://evil.test\r\n\
          Transfer_Encoding: chunked\r\nX_Real_IP: 9.9.9.9\r\nX-Own: a\r\nX_Own: b\r\n\r\n",
    );
    assert_eq!(connection.receive("GET").unwrap().status, 200);
    let received = origin.wait_for(1);
    for (name, value) in [
        // One spelling of the host, without a port.
        ("host", Some(DOMAIN)),
        ("x-forwarded-host", Some(DOMAIN)),
        ("x-real-ip", Some("127.0.0.1")),
        ("x-forwarded-ssl", None),
        ("x-forwarded-scheme", None),
        ("x-forwarded-by", None),
        ("x-client-ip", None),
        ("true-client-ip", None),
        ("x-original-url", None),
        ("proxy", None),
        ("transfer_encoding", None),
        ("x_real_ip", None),
        ("x-own", Some("a")),
        // CGI makes one variable of both.
        ("x_own", None),
    ] {
        assert_eq!(received.field(name), value, "{name}");
    }
}

#[test]
fn a_cookie_reaches_no_site_of_another_owner() {
    for setup in paths() {
        let (_origin, edge) = sending(
            setup,
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nSet-Cookie: a=1; Path=/; Domain=waypost.localhost\r\n\
         Set-Cookie: b=2; domain=.localhost\r\nSet-Cookie: c=3; Domain=acme.test\r\n\r\n",
        );
        let response = get(&edge, "");
        let cookies = response
            .fields
            .iter()
            .filter(|(name, _)| name == "set-cookie");
        let cookies: Vec<_> = cookies.map(|(_, value)| value.as_str()).collect();
        assert_eq!(cookies, ["a=1; Path=/", "b=2", "c=3; Domain=acme.test"]);
    }
}

#[test]
fn an_unrequested_upgrade_is_a_502() {
    for setup in paths() {
        let (_origin, edge) = sending(
            setup,
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nsecret",
        );
        let response = get(&edge, "");
        assert_eq!(response.status, 502);
        response.check("GET");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_without_content_has_no_length() {
    for setup in paths() {
        let origin = Origin::responding(|request, stream| {
            let status = &request.target[1..];
            let head = format!("HTTP/1.1 {status} X\r\nContent-Length: 4\r\nETag: \"a\"\r\n\r\n");
            let _closed = stream.write_all(head.as_bytes());
            After::Keep
        });
        let gateway = Encrypted::of(setup, &origin.record());
        let mut http1 = Connection::open(gateway.edge.http);
        let mut http2 = gateway.http2().await;
        for status in [204, 304] {
            let head = format!("GET /{status} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
            http1.send(head.as_bytes());
            let over_http1 = http1.receive("GET").unwrap();
            let over_http2 = http2.get(DOMAIN, &format!("/{status}")).await.unwrap();
            for response in [over_http1, over_http2] {
                assert_eq!(response.status, status);
                assert_eq!(response.field("content-length"), None);
                assert_eq!(response.field("etag"), Some("\"a\""));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_coding_other_than_chunked_is_a_502_for_every_client() {
    const CODINGS: [&str; 8] = [
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, gzip",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip",
        "Transfer-Encoding: identity\r\nContent-Length: 15",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked; a=b",
        "Transfer-Encoding:",
    ];
    for setup in paths() {
        let origin = Origin::responding(|request, stream| {
            let lines = match request.target[1..].parse::<usize>() {
                Ok(coding) => CODINGS[coding],
                Err(_) => "transfer-encoding: chunked",
            };
            let head = format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
            let _closed = stream.write_all(head.as_bytes());
            After::Close
        });
        let gateway = Encrypted::of(setup, &origin.record());
        let mut http2 = gateway.http2().await;
        for (at, lines) in CODINGS.iter().enumerate() {
            for method in ["GET", "HEAD"] {
                let path = format!("/{at}");
                let plain = http::request(gateway.edge.http, method, DOMAIN, &path, &[]);
                let mut request = http2::get(DOMAIN, &path);
                *request.method_mut() = method.parse().unwrap();
                let encrypted = http2.request(request).await.unwrap();
                for response in [plain, encrypted] {
                    assert_eq!(response.status, 502, "{method}, {lines}: {response:?}");
                }
            }
        }
        let plain = http::request(gateway.edge.http, "GET", DOMAIN, "/chunked", &[]);
        let encrypted = http2.get(DOMAIN, "/chunked").await.unwrap();
        for response in [plain, encrypted] {
            assert_eq!((response.status, response.text()), (200, "hello"));
        }
    }
}

#[test]
fn trailers_are_not_announced_because_they_are_not_forwarded() {
    for setup in paths() {
        let (_origin, edge) = sending(
            setup,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n",
        );
        let response = get(&edge, "");
        assert_eq!((response.status, response.text()), (200, "ok"));
        assert_eq!(response.field("trailer"), None);
    }
}

#[test]
fn a_response_has_at_most_256_fields() {
    for ((count, status), setup) in [(250, 200), (300, 502)]
        .into_iter()
        .flat_map(|case| paths().map(move |setup| (case, setup)))
    {
        let origin = Origin::responding(move |_, stream| {
            let fields: String = (0..count).map(|n| format!("X-{n}: a\r\n")).collect();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{fields}\r\n");
            let _closed = stream.write_all(head.as_bytes());
            After::Keep
        });
        let edge = setup.acme(&origin.record()).start();
        assert_eq!(get(&edge, "").status, status, "{count} fields");
    }
}

/// The header of a stream of events, then nothing until the test ends it.
fn silent_events(media_type: &'static str) -> (Origin, std::sync::mpsc::Sender<()>) {
    let (end, wait) = channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let origin = Origin::responding(move |_, stream| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nfirst\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let _ended = wait.lock().unwrap().recv();
        let _closed = stream.write_all(b"5\r\nlast\n\r\n0\r\n\r\n");
        After::Close
    });
    (origin, end)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_type_of_the_response_sets_the_silence_limit() {
    let upstream = format!("{{ read_seconds: 1, upgraded_seconds: 60, {LOCAL_UPSTREAMS} }}");
    for ((media_type, may_be_silent), setup) in [
        ("text/event-stream; charset=utf-8", true),
        ("text/plain", false),
    ]
    .into_iter()
    .flat_map(|case| paths().map(move |setup| (case, setup)))
    {
        let (origin, end) = silent_events(media_type);
        let setup = setup.conf("upstream", &upstream);
        let gateway = Encrypted::of(setup, &origin.record());
        // The request asks for the opposite.
        let accept = if may_be_silent {
            "*/*"
        } else {
            "text/event-stream"
        };
        let mut http1 = Connection::open(gateway.edge.http);
        http1.send(
            format!("GET /a HTTP/1.1\r\nHost: {DOMAIN}\r\nAccept: {accept}\r\n\r\n").as_bytes(),
        );
        assert_eq!(http1.receive_head().unwrap().status, 200);
        assert_eq!(http1.receive_chunk().unwrap(), b"first\n");
        let mut http2 = gateway.http2().await;
        let mut request = http2::get(DOMAIN, "/a");
        request
            .headers_mut()
            .insert("accept", accept.parse().unwrap());
        let exchange = http2.begin(request, true).await.unwrap();
        if may_be_silent {
            http::silence(Duration::from_millis(2500));
            drop(end);
            assert_eq!(http1.receive_chunk().unwrap(), b"last\n");
            let response = http2::receive(exchange.response).await.unwrap();
            assert_eq!(response.text(), "first\nlast\n");
        } else {
            // The response is cut, so that the client sees that it is not complete.
            assert_eq!(http1.receive_rest(), b"");
            http2::receive(exchange.response).await.unwrap_err();
            gateway
                .edge
                .wait_for_metric("gateway_upstream_failures_total{kind=\"timeout\"}", 2.0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_responds_is_a_timeout_in_both_versions() {
    for setup in paths() {
        let (origin, _end) = Origin::with_delayed_body();
        let upstream = format!("{{ read_seconds: 1, {LOCAL_UPSTREAMS} }}");
        let gateway = Encrypted::of(setup.conf("upstream", &upstream), &origin.record());
        let since = Instant::now();
        assert_eq!(get(&gateway.edge, "").status, 504);
        let mut http2 = gateway.http2().await;
        assert_eq!(http2.get(DOMAIN, "/a").await.unwrap().status, 504);
        assert!(since.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn early_hints_reach_clients_of_http_1_1_and_http_2() {
    for setup in paths() {
        let origin = Origin::responding(|request, stream| {
            let hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";
            let _closed = stream.write_all(hints);
            write_page(stream, &request.method, "final");
            After::Keep
        });
        let gateway = Encrypted::of(setup, &origin.record());
        let authority = gateway.edge.setup.path("authority.pem");
        gateway.authority.write(&authority);
        let port = gateway.address().port();
        for (option, version) in [("--http1.1", "HTTP/1.1"), ("--http2", "HTTP/2")] {
            let output = std::process::Command::new("curl")
                .args(["--silent", "--include", option, "--cacert"])
                .arg(&authority)
                .args(["--resolve", &format!("{DOMAIN}:{port}:127.0.0.1")])
                .arg(format!("https://{DOMAIN}:{port}/a"))
                .output()
                .expect("curl is installed");
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(text.starts_with(&format!("{version} 103")), "{text}");
            assert!(text.contains(&format!("{version} 200")), "{text}");
            assert!(text.ends_with("\r\n\r\nfinal"), "{text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_gets_at_most_16_interim_responses_and_64_kib_of_them() {
    for setup in paths() {
        let origin = Origin::responding(|request, stream| {
            let (count, length) = match &*request.target {
                "/few" => (16, 1),
                "/many" => (1000, 1),
                _ => (3, 30 << 10),
            };
            let long = "a".repeat(length);
            let interim = format!("HTTP/1.1 103 Early Hints\r\nX-Long: {long}\r\n\r\n");
            if (0..count).any(|_| stream.write_all(interim.as_bytes()).is_err()) {
                return After::Close;
            }
            write_page(stream, &request.method, "final");
            After::Keep
        });
        let gateway = Encrypted::of(setup, &origin.record());
        let mut http2 = gateway.http2().await;
        for (path, most, status) in [("/few", 16, 200), ("/many", 16, 502), ("/long", 2, 502)] {
            let mut http1 = Connection::open(gateway.edge.http);
            http1.send(format!("GET {path} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
            let mut interim = 0;
            let last = loop {
                let response = http1.receive("GET").expect("a final response");
                match response.status {
                    103 => interim += 1,
                    _ => break response.status,
                }
            };
            assert_eq!(last, status, "{path}");
            // pingora may lose an interim response before a failure.
            assert!(interim <= most, "{path}: {interim}");
            assert!(status != 200 || interim == most, "{path}: {interim}");
            // The client of HTTP/2 does not show them.
            let last = http2.get(DOMAIN, path).await.unwrap();
            assert_eq!(last.status, status, "{path}");
        }
        let counted = "gateway_upstream_failures_total{kind=\"protocol\"}";
        gateway.edge.wait_for_metric(counted, 4.0);
    }
}
