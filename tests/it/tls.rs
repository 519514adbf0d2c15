//! HTTPS: certificates by name; HTTP/1.1 and HTTP/2 by ALPN, with both paths in each.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind, StreamOwned};

use crate::certificates::{Authority, Pair};
use crate::edge::{Edge, Setup};
use crate::http::{Connection, TIMEOUT, silence};
use crate::http2::{self, Client};
use crate::origin::Origin;
use crate::presets::{DOMAIN, SKILL};

pub type Tls = StreamOwned<ClientConnection, TcpStream>;

/// A gateway with TLS and the authority of its certificates.
pub struct Encrypted {
    pub authority: Authority,
    pub edge: Edge,
}

impl Encrypted {
    /// Starts a gateway for a site without pages of its own.
    pub fn start(connections: &str) -> Self {
        Self::before("", connections)
    }

    /// Starts a gateway for a site with more lines in its record.
    pub fn before(record: &str, connections: &str) -> Self {
        Self::of(Setup::new().conf("connections", connections), record)
    }

    /// Starts a gateway with a setup, for a site with more lines in its record.
    pub fn of(setup: Setup, record: &str) -> Self {
        let authority = Authority::new();
        let setup = encrypted(&authority, setup).acme(record).with_skill();
        Self {
            authority,
            edge: setup.start(),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.edge.https.unwrap()
    }

    fn directory(&self) -> std::path::PathBuf {
        self.edge.setup.path("certificates")
    }

    pub async fn http2(&self) -> Client {
        Client::open(self.address(), DOMAIN, self.authority.client(&["h2"])).await
    }

    pub fn http1(&self) -> Connection<Tls> {
        let stream = connect(
            self.address(),
            DOMAIN,
            &self.authority.client(&["http/1.1"]),
        )
        .unwrap();
        Connection::over(stream)
    }

    /// Returns the certificate that a client asking for `name` is shown.
    fn served_certificate(&self, name: &str) -> Option<Vec<u8>> {
        let stream = connect(self.address(), name, &self.authority.client(&[])).ok()?;
        Some(stream.conn.peer_certificates()?[0].to_vec())
    }
}

/// Adds an HTTPS listener and a certificate for the site's domain to a setup.
pub fn encrypted(authority: &Authority, setup: Setup) -> Setup {
    let directory = setup.path("certificates");
    authority.issue(&[DOMAIN]).write(&directory, DOMAIN);
    setup
        .conf(
            "listen",
            "{ http: [\"127.0.0.1:0\"], https: [\"127.0.0.1:0\"], operator: \"127.0.0.1:0\" }",
        )
        .conf(
            "tls",
            &format!("{{ directory: \"{}\" }}", directory.display()),
        )
}

/// Makes a TLS connection and completes the handshake.
pub fn connect(
    address: SocketAddr,
    name: &str,
    config: &Arc<ClientConfig>,
) -> std::io::Result<Tls> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut session = ClientConnection::new(Arc::clone(config), name).unwrap();
    while session.is_handshaking() {
        session.complete_io(&mut socket)?;
    }
    Ok(StreamOwned::new(session, socket))
}

#[test]
fn the_certificate_is_chosen_by_exact_name_then_wildcard_then_default() {
    let authority = Authority::new();
    let setup = encrypted(&authority, Setup::new());
    let directory = setup.path("certificates");
    let issue = |name: &str, names: &[&str]| {
        let pair = authority.issue(names);
        pair.write(&directory, name);
        pair.der().to_vec()
    };
    let exact = issue("docs.acme.test", &["docs.acme.test"]);
    let wildcard = issue("_.acme.test", &["*.acme.test"]);
    let default = issue(
        "default.test",
        &["default.test", "else.test", "a.b.acme.test", "127.0.0.1"],
    );
    let tls = format!(
        "{{ directory: \"{}\", default: default.test }}",
        directory.display()
    );
    let gateway = Encrypted {
        edge: setup.conf("tls", &tls).start(),
        authority,
    };
    for (name, expected) in [
        ("docs.acme.test", &exact),
        ("DOCS.ACME.test", &exact),
        ("other.acme.test", &wildcard),
        // RFC 6125 §6.4.3: a wildcard is one label.
        ("a.b.acme.test", &default),
        ("else.test", &default),
        // No server name is sent for an address (RFC 6066 §3).
        ("127.0.0.1", &default),
    ] {
        assert_eq!(
            gateway.served_certificate(name).as_ref(),
            Some(expected),
            "{name}"
        );
    }
}

#[test]
fn without_a_default_a_name_without_certificate_is_rejected() {
    let gateway = Encrypted::start("{}");
    for name in ["else.test", "127.0.0.1"] {
        let rejected = connect(gateway.address(), name, &gateway.authority.client(&[]));
        assert!(rejected.is_err(), "{name}");
    }
    assert!(gateway.served_certificate(DOMAIN).is_some());
    gateway
        .edge
        .wait_for_metric("gateway_tls_failures_total", 2.0);
}

#[test]
fn certificates_are_replaced_while_connections_stay_open() {
    let gateway = Encrypted::start("{}");
    let mut before = gateway.http1();
    let wait_for = |name: &str, pair: &Pair| {
        let since = Instant::now();
        while gateway.served_certificate(name).as_deref() != Some(&*pair.der()) {
            assert!(since.elapsed() < TIMEOUT, "{name} is not served");
            crate::http::pause();
        }
    };
    let second = gateway.authority.issue(&[DOMAIN]);
    second.write(&gateway.directory(), DOMAIN);
    wait_for(DOMAIN, &second);
    let added = gateway.authority.issue(&["new.acme.test"]);
    added.write(&gateway.directory(), "new.acme.test");
    wait_for("new.acme.test", &added);
    // Neither an invalid file nor a certificate for another name replaces it.
    for (n, text) in ["no certificate".to_owned(), added.certificate.pem()]
        .iter()
        .enumerate()
    {
        let chain = gateway.directory().join(DOMAIN).join("fullchain.pem");
        std::fs::write(chain, text).unwrap();
        let is_kept = |line: &serde_json::Value| {
            line["message"]
                .as_str()
                .is_some_and(|text| text.contains("the previous certificate stays in use"))
        };
        gateway.edge.wait_for_nth_log(n + 1, is_kept);
        assert_eq!(
            gateway.served_certificate(DOMAIN).as_deref(),
            Some(&*second.der())
        );
    }
    before.send(format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
    assert_eq!(before.receive("GET").unwrap().text(), SKILL);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_paths_respond_over_both_protocols() {
    let origin = Origin::start();
    let gateway = Encrypted::before(&origin.record(), "{}");
    let mut http1 = gateway.http1();
    let mut http2 = gateway.http2().await;
    for (path, body) in [
        ("/skill.md", SKILL),
        ("/guide", "GET /guide"),
        ("/x/../skill.md", SKILL),
    ] {
        http1.send(format!("GET {path} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
        let first = http1.receive("GET").unwrap();
        let second = http2.get(DOMAIN, path).await.unwrap();
        assert_eq!((first.status, first.text()), (200, body), "{path}");
        assert_eq!((second.status, second.text()), (200, body), "{path}");
    }
    let fast_path = gateway
        .edge
        .metric("gateway_requests_total{route=\"fast_path\",status=\"200\"}");
    assert!(
        (fast_path - 2.0).abs() < 0.5,
        "the fast path answered {fast_path}"
    );
    for received in origin.received() {
        assert_eq!(received.field("x-forwarded-proto"), Some("https"));
        assert_eq!(received.field("host"), Some(DOMAIN));
    }
}

#[test]
fn curl_accepts_both_protocols() {
    let gateway = Encrypted::start("{}");
    let authority = gateway.edge.setup.path("authority.pem");
    gateway.authority.write(&authority);
    for (option, version) in [("--http1.1", "1.1"), ("--http2", "2")] {
        let port = gateway.address().port();
        let output = Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                option,
                "--write-out",
                "%{http_version} %{http_code}",
            ])
            .args(["--resolve", &format!("{DOMAIN}:{port}:127.0.0.1")])
            .arg("--cacert")
            .arg(&authority)
            .arg(format!("https://{DOMAIN}:{port}/skill.md"))
            .output()
            .expect("curl is installed");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            text,
            format!("{SKILL}{version} 200"),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn tls_1_2_and_1_3_are_spoken_and_sessions_resume() {
    let gateway = Encrypted::start("{}");
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let config = gateway.authority.client_of(&["http/1.1"], &[version]);
        for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
            let stream = connect(gateway.address(), DOMAIN, &config).unwrap();
            assert_eq!(stream.conn.protocol_version(), Some(version.version));
            assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
            let seen = stream.conn.handshake_kind();
            // Tickets come with the first response.
            let mut connection = Connection::over(stream);
            connection.send(format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
            assert_eq!(connection.receive("GET").unwrap().status, 200);
            assert_eq!(seen, Some(kind), "{version:?}");
        }
    }
}

#[test]
fn versions_cipher_suites_and_groups_can_be_chosen() {
    use rustls::version::{TLS12, TLS13};
    let authority = Authority::new();
    let setup = encrypted(&authority, Setup::new());
    let directory = setup.path("certificates").display().to_string();
    let tls = |more: &str| format!("{{ directory: \"{directory}\", {more} }}");
    let of_13 = "TLS_CHACHA20_POLY1305_SHA256";
    let options = format!("min_version: \"1.3\", cipher_suites: [{of_13}], groups: [secp384r1]");
    let setup = setup.conf("tls", &tls(&options));
    let edge = setup.acme("").with_skill().start();
    let config = authority.client_of(&["http/1.1"], &[&TLS12]);
    assert!(connect(edge.https.unwrap(), DOMAIN, &config).is_err());
    let config = authority.client_of(&["http/1.1"], &[&TLS13]);
    let stream = connect(edge.https.unwrap(), DOMAIN, &config).unwrap();
    let suite = stream.conn.negotiated_cipher_suite().unwrap().suite();
    assert_eq!(suite, rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    let group = stream.conn.negotiated_key_exchange_group().unwrap().name();
    assert_eq!(group, rustls::NamedGroup::secp384r1);
    // Mistakes are found at the start.
    edge.signal("TERM");
    let setup = edge.ended();
    for (options, why) in [
        ("min_version: \"1.1\"", "`tls.min_version`"),
        ("cipher_suites: [RC4]", "TLS_AES_128_GCM_SHA256"),
        ("groups: [p256]", "secp256r1"),
        (
            &*format!("cipher_suites: [{of_13}]"),
            "has no suite of TLS 1.2",
        ),
    ] {
        let output = setup.run_with("tls", &tls(options), &["serve"]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_session_is_resumed_after_a_restart_of_the_program() {
    let gateway = Encrypted::start("{}");
    let Encrypted {
        authority,
        mut edge,
    } = gateway;
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let config = authority.client_of(&["http/1.1"], &[version]);
        for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
            let stream = connect(edge.https.unwrap(), DOMAIN, &config).unwrap();
            let seen = stream.conn.handshake_kind();
            // Tickets come with the first response.
            let mut connection = Connection::over(stream);
            connection.send(format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
            assert_eq!(connection.receive("GET").unwrap().status, 200);
            assert_eq!(seen, Some(kind), "{version:?}");
            if kind == HandshakeKind::Full {
                edge.signal("TERM");
                edge = edge.ended().start();
            }
        }
    }
    // Without the keys, no process resumes it.
    let config = authority.client_of(&["http/1.1"], &[&rustls::version::TLS12]);
    connect(edge.https.unwrap(), DOMAIN, &config).unwrap();
    edge.signal("TERM");
    let setup = edge.ended();
    std::fs::remove_file(setup.path("store/ticket-keys")).unwrap();
    let edge = setup.start();
    let stream = connect(edge.https.unwrap(), DOMAIN, &config).unwrap();
    assert_eq!(stream.conn.handshake_kind(), Some(HandshakeKind::Full));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_without_a_site_is_misdirected_over_http_2_only() {
    let gateway = Encrypted::start("{}");
    let mut http1 = gateway.http1();
    http1.send(b"GET /skill.md HTTP/1.1\r\nHost: unknown.test\r\n\r\n");
    assert_eq!(http1.receive("GET").unwrap().status, 404);
    // RFC 9110 §15.5.20: the client may try another connection.
    let mut http2 = gateway.http2().await;
    let response = http2.get("unknown.test", "/skill.md").await.unwrap();
    assert_eq!(response.status, 421);
    response.check("GET");
    // The connection can still be used.
    assert_eq!(http2.get(DOMAIN, "/skill.md").await.unwrap().status, 200);
}

#[test]
fn every_connection_ends_with_close_notify() {
    let origin = Origin::start();
    let gateway = Encrypted::before(&origin.record(), "{ idle_seconds: 1 }");
    for (request, what) in [
        (
            format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n"),
            "idle after the fast path",
        ),
        (
            format!("GET /guide HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n"),
            "idle after the proxy path",
        ),
        (
            format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\nConnection: close\r\n\r\n"),
            "told to close",
        ),
        ("GET /skill.md HTTP/1.1\r\n\r\n".to_owned(), "rejected"),
    ] {
        let mut stream =
            connect(gateway.address(), DOMAIN, &gateway.authority.client(&[])).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // RFC 8446 §6.1: rustls fails the read when the alert is missing.
        stream
            .read_to_end(&mut answer)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(answer.starts_with(b"HTTP/1.1 "), "{what}");
    }
}

#[test]
fn a_handshake_has_a_deadline() {
    let gateway = Encrypted::start("{ head_seconds: 1 }");
    for hello in [
        &b""[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        let since = Instant::now();
        let mut connection = Connection::open(gateway.address());
        connection.send(hello);
        connection.receive_rest();
        assert!(since.elapsed() < TIMEOUT / 2, "{hello:?}");
    }
    // A handshake without a request after it.
    let mut silent = gateway.http1();
    assert_eq!(silent.receive_rest(), b"");
    assert!(gateway.edge.metric("gateway_tls_failures_total") >= 3.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http_2_request_reaches_an_http_1_1_origin_in_its_form() {
    let origin = Origin::start();
    let gateway = Encrypted::before(&origin.record(), "{}");
    let mut client = gateway.http2().await;
    let request = http::Request::post(format!("https://{DOMAIN}/a//b?c=%2F"))
        .header("cookie", "a=b")
        .header("cookie", "c=d")
        .header("te", "trailers")
        .header("x-forwarded-for", "9.9.9.9")
        .header("x-own", "kept")
        .body(())
        .unwrap();
    let mut exchange = client.begin(request, false).await.unwrap();
    exchange
        .body
        .send_data(Bytes::from_static(b"hel"), false)
        .unwrap();
    exchange
        .body
        .send_data(Bytes::from_static(b"lo"), true)
        .unwrap();
    let response = http2::receive(exchange.response).await.unwrap();
    assert_eq!(
        (response.status, response.text()),
        (200, "POST /a//b?c=%2F")
    );
    let received = origin.wait_for(1);
    assert_eq!(received.body, b"hello");
    for (name, value) in [
        ("host", Some(DOMAIN)),
        // RFC 9113 §8.2.3: cookie fragments are joined into one field.
        ("cookie", Some("a=b; c=d")),
        ("te", None),
        ("x-forwarded-for", Some("127.0.0.1")),
        ("x-forwarded-proto", Some("https")),
        ("via", Some("2.0 waypost.localhost")),
        ("x-own", Some("kept")),
    ] {
        assert_eq!(received.field(name), value, "{name}");
    }
}

/// A server as gRPC has it: it answers each message of a request with one of its own before the
/// next comes, and says in trailers how the call ended.
async fn message_server() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    tokio::spawn(async move {
                        let has_te = request
                            .headers()
                            .get("te")
                            .is_some_and(|te| te == "trailers");
                        let mut body = request.into_body();
                        let response = http::Response::builder()
                            .header("content-type", "application/grpc")
                            .header("trailer", "grpc-status");
                        let response = response.body(()).unwrap();
                        let mut stream = respond.send_response(response, false).unwrap();
                        while let Some(message) = body.data().await {
                            let message = message.unwrap();
                            body.flow_control().release_capacity(message.len()).unwrap();
                            stream.send_data(message, false).unwrap();
                        }
                        let sent = body.trailers().await.unwrap().unwrap_or_default();
                        let mut trailers = http::HeaderMap::new();
                        let status = if has_te { "0" } else { "13" };
                        trailers.insert("grpc-status", status.parse().unwrap());
                        if let Some(sum) = sent.get("x-sum") {
                            trailers.insert("x-sum", sum.clone());
                        }
                        stream.send_trailers(trailers).unwrap();
                    });
                }
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_both_directions_passes_with_its_trailers() {
    let address = message_server().await;
    let record = format!("origin: {{ url: \"http://{address}\", http: \"2\" }}");
    let gateway = Encrypted::before(&record, "{}");
    let mut client = gateway.http2().await;
    let request = http::Request::post(format!("https://{DOMAIN}/acme.Docs/Search"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    let mut exchange = client
        .begin(request.body(()).unwrap(), false)
        .await
        .unwrap();
    let first = Bytes::from_static(b"\0\0\0\0\x03one");
    exchange.body.send_data(first.clone(), false).unwrap();
    let call = async {
        let (head, mut body) = exchange.response.await.unwrap().into_parts();
        assert_eq!(head.headers["content-type"], "application/grpc");
        assert_eq!(head.headers["trailer"], "grpc-status");
        // The answer to the first message comes before the second is sent.
        assert_eq!(body.data().await.unwrap().unwrap(), first);
        // More than a window in each direction.
        let long = Bytes::from(vec![b'a'; 300_000]);
        let sending = async {
            let mut rest = long.clone();
            while !rest.is_empty() {
                exchange.body.reserve_capacity(rest.len());
                let room = std::future::poll_fn(|cx| exchange.body.poll_capacity(cx)).await;
                let piece = rest.split_to(room.unwrap().unwrap().min(rest.len()));
                exchange.body.send_data(piece, rest.is_empty()).unwrap();
            }
        };
        let receiving = async {
            let mut got = 0;
            while let Some(piece) = body.data().await {
                let length = piece.unwrap().len();
                got += length;
                body.flow_control().release_capacity(length).unwrap();
            }
            (got, body.trailers().await.unwrap().expect("trailers"))
        };
        tokio::join!(sending, receiving).1
    };
    let (got, trailers) = tokio::time::timeout(TIMEOUT, call).await.expect("in time");
    assert_eq!(got, 300_000);
    assert_eq!(trailers["grpc-status"], "0");
}

/// A skill that is longer than the initial window of HTTP/2 (65,535 bytes).
fn long_skill() -> String {
    format!("{SKILL}\n{}", "Nothing new in this line.\n".repeat(12_000))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_larger_than_the_window_arrives_complete() {
    let gateway = Encrypted::start("{}");
    let long = long_skill();
    gateway.edge.publish("acme", &[("skill.md", &long)]);
    let mut client = gateway.http2().await;
    for path in ["/skill.md", "/x/../skill.md"] {
        let response = client.get(DOMAIN, path).await.unwrap();
        assert!(
            response.body == long.as_bytes(),
            "{path}: {} bytes",
            response.body.len()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_read_slowly_does_not_delay_others() {
    let gateway = Encrypted::start("{ write_seconds: 1 }");
    gateway.edge.publish("acme", &[("skill.md", &long_skill())]);
    let mut settings = h2::client::Builder::new();
    settings.initial_connection_window_size(1 << 20);
    let config = gateway.authority.client(&["h2"]);
    let mut client = Client::open_with(gateway.address(), DOMAIN, config, settings).await;
    // Their windows stay closed.
    let mut slow = Vec::new();
    for path in ["/skill.md", "/x/../skill.md"] {
        slow.push(
            client
                .begin(http2::get(DOMAIN, path), true)
                .await
                .unwrap()
                .response
                .await
                .unwrap(),
        );
    }
    for _ in 0..50 {
        let response = client
            .get(DOMAIN, "/.well-known/agent-card.json")
            .await
            .unwrap();
        assert_eq!(response.status, 200);
    }
    // The write timeout ends these streams (RFC 9113 §5.4.2).
    for response in slow {
        let mut body = response.into_body();
        let broken_off = loop {
            match body.data().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => break error,
                None => panic!("the whole body came through a shut window"),
            }
        };
        assert!(broken_off.is_reset(), "{broken_off}");
    }
    assert_eq!(
        client
            .get(DOMAIN, "/.well-known/agent-card.json")
            .await
            .unwrap()
            .status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_http_2_connection_is_closed_and_a_busy_one_is_not() {
    let (origin, proceed) = Origin::with_delayed_body();
    let gateway = Encrypted::before(&origin.record(), "{ idle_seconds: 1 }");
    let mut idle = gateway.http2().await;
    let mut busy = gateway.http2().await;
    let exchange = busy
        .begin(http2::get(DOMAIN, "/guide"), true)
        .await
        .unwrap();
    assert_eq!(idle.get(DOMAIN, "/skill.md").await.unwrap().status, 200);
    idle.ended().await;
    proceed.send(()).unwrap();
    assert_eq!(
        http2::receive(exchange.response).await.unwrap().text(),
        "late"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http_2_connection_is_idle_from_the_end_of_its_last_response_on() {
    const IDLE: Duration = Duration::from_secs(3);
    for fast_path in [true, false] {
        let (origin, proceed) = Origin::with_delayed_body();
        let connections = format!("{{ idle_seconds: 3, fast_path: {fast_path} }}");
        let gateway = Encrypted::before(&origin.record(), &connections);
        let mut client = gateway.http2().await;
        let exchange = client.begin(http2::get(DOMAIN, "/guide"), true).await;
        origin.wait_for(1);
        // The response takes longer than a connection may be idle.
        silence(IDLE + Duration::from_secs(1));
        let since = Instant::now();
        proceed.send(()).unwrap();
        let response = http2::receive(exchange.unwrap().response).await.unwrap();
        assert_eq!(response.text(), "late");
        client.ended().await;
        assert!(since.elapsed() >= IDLE, "{:?}", since.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http_2_connection_has_a_limited_number_of_requests() {
    let (origin, proceed) = Origin::with_delayed_body();
    let connections = "{ requests_per_connection_max: 3, head_seconds: 2 }";
    let gateway = Encrypted::before(&origin.record(), connections);
    // The gateway closes a connection whose client obeys GOAWAY, after the last response.
    let mut client = gateway.http2().await;
    let slow = client.begin(http2::get(DOMAIN, "/guide"), true).await;
    for _ in 0..2 {
        assert_eq!(client.get(DOMAIN, "/skill.md").await.unwrap().status, 200);
    }
    proceed.send(()).unwrap();
    let last = http2::receive(slow.unwrap().response).await.unwrap();
    assert_eq!(last.text(), "late");
    client.ended().await;
    // Requests that were under way are answered.
    let mut connection = gateway.raw();
    let streams: Vec<u32> = (0..5).map(|n| 1 + 2 * n).collect();
    let requests = streams
        .iter()
        .flat_map(|stream| raw::get(*stream, DOMAIN, "/skill.md"));
    connection.send(&requests.collect::<Vec<_>>());
    let frames = raw::all(connection);
    let goaway = frames.iter().find(|frame| frame.kind == raw::GOAWAY);
    assert_eq!(goaway.map(raw::code), Some(0), "{frames:?}");
    let heads = frames.iter().filter(|frame| frame.kind == raw::HEADERS);
    assert_eq!(heads.map(|frame| frame.stream).collect::<Vec<_>>(), streams);
}

#[test]
fn a_client_of_http_2_that_ignores_the_limit_of_requests_is_refused() {
    let connections = "{ requests_per_connection_max: 3, streams_max: 2, head_seconds: 60 }";
    let gateway = Encrypted::start(connections);
    let mut connection = gateway.raw();
    for n in 0..6 {
        let stream = 1 + 2 * n;
        connection.send(&raw::get(stream, DOMAIN, "/skill.md"));
        let ends = [raw::HEADERS, raw::RST_STREAM];
        let end = raw::wait_for(&mut connection, |frame| {
            ends.contains(&frame.kind) && frame.stream == stream
        });
        // RFC 9113 §8.7: REFUSED_STREAM; as many as may be open at once were under way.
        match n {
            0..5 => assert_eq!(end.kind, raw::HEADERS, "{end:?}"),
            _ => assert_eq!((end.kind, raw::code(&end)), (raw::RST_STREAM, 7)),
        }
    }
}

/// HTTP/2 frames by hand, for requests that no library sends.
pub mod raw {
    use std::io::{ErrorKind, Read as _};

    use super::{Connection, Tls};

    pub const HEADERS: u8 = 1;
    pub const RST_STREAM: u8 = 3;
    pub const GOAWAY: u8 = 7;

    /// A frame.
    #[derive(Debug)]
    pub struct Frame {
        pub kind: u8,
        pub stream: u32,
        pub payload: Vec<u8>,
    }

    pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    }

    /// The preface and empty settings.
    pub fn preface() -> Vec<u8> {
        [
            &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
            &frame(4, 0, 0, &[]),
        ]
        .concat()
    }

    /// HEADERS of a complete request, as literals without indexing (RFC 7541 §6).
    pub fn get(stream: u32, authority: &str, path: &str) -> Vec<u8> {
        get_with(stream, authority, path, &[])
    }

    pub fn get_with(stream: u32, authority: &str, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
        let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        let indexed = |name: u8, value: &str| [vec![name], text(value)].concat();
        let mut block = [
            vec![0x82, 0x87],
            indexed(0x01, authority),
            indexed(0x04, path),
        ]
        .concat();
        for (name, value) in fields {
            block.extend([vec![0], text(name), text(value)].concat());
        }
        frame(HEADERS, 0x05, stream, &block)
    }

    pub fn receive(connection: &mut Connection<Tls>) -> Frame {
        let head = connection.receive_bytes(9);
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        Frame {
            kind: head[3],
            stream: u32::from_be_bytes(head[5..9].try_into().unwrap()),
            payload: connection.receive_bytes(length),
        }
    }

    /// Reads until a matching frame.
    pub fn wait_for(connection: &mut Connection<Tls>, matches: impl Fn(&Frame) -> bool) -> Frame {
        loop {
            let frame = receive(connection);
            if matches(&frame) {
                return frame;
            }
        }
    }

    /// Returns all frames until the gateway closes the connection. Sends nothing: a stream of TLS
    /// that has something to send does so before it reads, which fails when the gateway has closed
    /// the connection, although what it has sent before can be read.
    #[track_caller]
    pub fn all(connection: Connection<Tls>) -> Vec<Frame> {
        let mut tls = connection.into_stream();
        let mut bytes = Vec::new();
        loop {
            match tls.conn.read_tls(&mut tls.sock) {
                Ok(0) => break,
                Ok(_more) => {
                    let state = tls.conn.process_new_packets().unwrap();
                    let more = state.plaintext_bytes_to_read();
                    let mut reader = tls.conn.reader();
                    (&mut reader)
                        .take(more as u64)
                        .read_to_end(&mut bytes)
                        .unwrap();
                }
                Err(error) => {
                    let is_open = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
                    assert!(!is_open.contains(&error.kind()), "{error}");
                    break;
                }
            }
        }
        let mut frames = Vec::new();
        let mut rest = &bytes[..];
        while let Some((head, more)) = rest.split_at_checked(9) {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let Some((payload, more)) = more.split_at_checked(length) else {
                break;
            };
            frames.push(Frame {
                kind: head[3],
                stream: u32::from_be_bytes(head[5..].try_into().unwrap()),
                payload: payload.to_vec(),
            });
            rest = more;
        }
        frames
    }

    /// Returns the error code of `RST_STREAM`, or of `GOAWAY`.
    pub fn code(frame: &Frame) -> u32 {
        let at = if frame.kind == GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(frame.payload[at..at + 4].try_into().unwrap())
    }
}

impl Encrypted {
    /// A connection for HTTP/2, on which nothing has been sent.
    pub fn tls(&self) -> Tls {
        connect(self.address(), DOMAIN, &self.authority.client(&["h2"])).unwrap()
    }

    pub fn raw(&self) -> Connection<Tls> {
        let mut connection = Connection::over(self.tls());
        connection.send(&raw::preface());
        connection
    }

    /// Asserts that an HTTP/2 request gets 400, or that its stream or connection is closed.
    #[track_caller]
    pub fn rejects(&self, path: &str, fields: &[(&str, &str)]) {
        let mut connection = self.raw();
        connection.send(&raw::get_with(1, DOMAIN, path, fields));
        let ends = [raw::HEADERS, raw::RST_STREAM, raw::GOAWAY];
        let end = raw::wait_for(&mut connection, |frame| ends.contains(&frame.kind));
        // HPACK's static table: 400 is entry 12.
        let is_rejected = end.kind != raw::HEADERS || end.payload[0] == 0x80 | 12;
        assert!(is_rejected, "{path:?} {fields:?}: {end:?}");
    }
}

#[test]
fn streams_above_the_limit_are_rejected_and_the_others_get_responses() {
    let (origin, proceed) = Origin::with_delayed_body();
    let gateway = Encrypted::before(&origin.record(), "{ streams_max: 3 }");
    let mut connection = gateway.raw();
    for stream in [1, 3, 5, 7] {
        connection.send(&raw::get(stream, DOMAIN, "/guide"));
    }
    // RFC 9113 §5.1.2: REFUSED_STREAM may be tried again.
    let rejected = raw::wait_for(&mut connection, |frame| frame.kind == raw::RST_STREAM);
    assert_eq!((rejected.stream, raw::code(&rejected)), (7, 7));
    origin.wait_for(3);
    for _ in 0..3 {
        proceed.send(()).unwrap();
        raw::wait_for(&mut connection, |frame| {
            frame.kind == raw::HEADERS && frame.stream < 7
        });
    }
    assert_eq!(origin.received().len(), 3);
}

#[test]
fn malformed_streams_are_rejected_and_too_many_end_the_connection() {
    let origin = Origin::start();
    let gateway = Encrypted::before(&origin.record(), "{ stream_faults_max: 5 }");
    let mut connection = gateway.raw();
    let good = raw::get(1, DOMAIN, "/skill.md");
    connection.send(&good);
    raw::wait_for(&mut connection, |frame| {
        frame.kind == raw::HEADERS && frame.stream == 1
    });
    for n in 1..=6 {
        // RFC 9113 §8.3.1: Host and :authority name one host.
        connection.send(&raw::get_with(
            1 + 2 * n,
            DOMAIN,
            "/guide",
            &[("host", "evil.test")],
        ));
    }
    let goaway = raw::wait_for(&mut connection, |frame| frame.kind == raw::GOAWAY);
    // RFC 9113 §7: ENHANCE_YOUR_CALM.
    assert_eq!(raw::code(&goaway), 11);
    connection.receive_rest();
    assert!(gateway.edge.metric("gateway_stream_faults_total") >= 6.0);
    assert_eq!(origin.received().len(), 0);
}

#[test]
fn a_malformed_http_2_request_is_rejected() {
    let origin = Origin::start();
    let gateway = Encrypted::before(&origin.record(), "{}");
    for (path, fields) in [
        // RFC 9113 §8.3.1: a path, not a URL.
        ("http://evil.test/", &[][..]),
        ("", &[]),
        // §8.2.1 and §8.2.2: names in lower case, no fields of HTTP/1.1 connections.
        ("/guide", &[("X-Upper", "a")]),
        ("/guide", &[("connection", "close")]),
        ("/guide", &[("transfer-encoding", "chunked")]),
        ("/guide", &[("x", "a\r\nb: c")]),
        ("/guide", &[("host", "evil.test")]),
        ("/guide", &[("content-length", "5, 5")]),
        ("/guide", &[("content-length", "5")]),
        ("/a b", &[]),
        ("/a\r\nb: c", &[]),
    ] {
        gateway.rejects(path, fields);
    }
    assert_eq!(origin.received().len(), 0);
}

#[test]
fn a_flood_of_resets_ends_the_connection() {
    let origin = Origin::start();
    let gateway = Encrypted::before(&origin.record(), "{}");
    let mut connection = gateway.raw();
    let mut flood = Vec::new();
    for n in 0..2000 {
        let stream = 1 + 2 * n;
        flood.extend(raw::get(stream, DOMAIN, "/guide"));
        flood.extend(raw::frame(raw::RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
    }
    // The gateway may close before it has read everything (CVE-2023-44487).
    let _sent = connection.try_send(&flood);
    let frames = raw::all(connection);
    let goaway = frames.iter().find(|frame| frame.kind == raw::GOAWAY);
    assert_eq!(goaway.map(raw::code), Some(11), "{frames:?}");
    let reached = origin.received().len();
    assert!(
        reached < 1000,
        "{reached} of 2000 requests that were taken back reached the origin"
    );
}

/// Resets streams whose requests are at the origin, `beside` each of them whole requests. Returns
/// how many it has reset until the gateway closes the connection, or `most`.
fn reset_soon(fast_path: bool, beside: u32, most: u32) -> u32 {
    // It responds to no request.
    let (origin, _end) = Origin::with_delayed_body();
    let connections = format!("{{ stream_faults_max: 5, fast_path: {fast_path} }}");
    let gateway = Encrypted::before(&origin.record(), &connections);
    let mut connection = gateway.raw();
    let mut streams = (0..).map(|n: u32| 1 + 2 * n);
    let mut stream = || streams.next().unwrap();
    for reset in 0..most {
        for _ in 0..beside {
            let whole = stream();
            connection.send(&raw::get(whole, DOMAIN, "/skill.md"));
            raw::wait_for(&mut connection, |frame| {
                assert_ne!(frame.kind, raw::GOAWAY, "{frame:?}");
                frame.kind == raw::HEADERS && frame.stream == whole
            });
        }
        let soon = stream();
        let path = format!("/{reset}");
        // The gateway accepts the stream, unless it closes the connection.
        let _closed = connection.try_send(&raw::get(soon, DOMAIN, &path));
        let since = Instant::now();
        let is_at = || {
            origin
                .received()
                .iter()
                .any(|request| request.target == path)
        };
        while !is_at() {
            if gateway.edge.metric("gateway_connections_open") < 0.5 {
                let frames = raw::all(connection);
                let goaway = frames.iter().find(|frame| frame.kind == raw::GOAWAY);
                // RFC 9113 §7: ENHANCE_YOUR_CALM.
                assert_eq!(goaway.map(raw::code), Some(11), "{frames:?}");
                return reset;
            }
            assert!(since.elapsed() < TIMEOUT, "{path} is not at the origin");
        }
        connection.send(&raw::frame(raw::RST_STREAM, 0, soon, &8_u32.to_be_bytes()));
    }
    most
}

#[test]
fn a_connection_whose_client_soon_resets_most_streams_is_closed() {
    for fast_path in [true, false] {
        // Half of all streams, and five.
        let reset = reset_soon(fast_path, 0, 200);
        assert!((10..200).contains(&reset), "{reset}");
    }
}

#[test]
fn a_client_may_soon_reset_half_of_its_streams() {
    assert_eq!(reset_soon(true, 1, 40), 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_sends_goaway_and_finishes_open_streams() {
    let (origin, proceed) = Origin::with_delayed_body();
    let gateway = Encrypted::before(&origin.record(), "{ drain_seconds: 60 }");
    let mut busy = gateway.http2().await;
    let idle = gateway.http2().await;
    let exchange = busy
        .begin(http2::get(DOMAIN, "/guide"), true)
        .await
        .unwrap();
    origin.wait_for(1);
    gateway.edge.signal("TERM");
    // RFC 9113 §6.8: the idle connection is closed at once.
    idle.ended().await;
    proceed.send(()).unwrap();
    assert_eq!(
        http2::receive(exchange.response).await.unwrap().text(),
        "late"
    );
    busy.ended().await;
    assert!(gateway.edge.wait().success());
}
