//! The PROXY protocol: a load balancer names its client, before HTTP and before TLS.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::time::Instant;

use crate::certificates::Authority;
use crate::drain::PROBE;
use crate::edge::{Edge, Setup};
use crate::http::{Connection, TIMEOUT};
use crate::origin::Origin;
use crate::presets::{DOMAIN, SKILL};
use crate::tls::encrypted;

/// The client that the headers of these tests name.
const CLIENT: &str = "192.0.2.7";
const TEXT: &[u8] = b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n";
/// Version 2: the same client, and a field that has no meaning here.
const BINARY: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x10\xc0\0\x02\x07\xc6\x33\x64\x01\x12\x67\x01\xbb\x04\0\x01\0";
/// All loopback addresses are load balancers.
const BALANCERS: &str = "{ proxy_protocol: [127.0.0.0/8] }";

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n")
}

fn shed(edge: &Edge) -> f64 {
    edge.metric("gateway_connections_shed_total{reason=\"proxy_protocol\"}")
}

#[test]
fn the_client_in_the_header_is_logged_and_forwarded() {
    let origin = Origin::start();
    let edge = Setup::new()
        .conf("connections", BALANCERS)
        .acme_before(&origin)
        .with_skill()
        .start();
    for header in [TEXT, BINARY] {
        let mut connection = Connection::open(edge.http);
        // The header and the first request in one packet, then a request on the same connection.
        connection.send(&[header, request("/skill.md").as_bytes()].concat());
        assert_eq!(connection.receive("GET").unwrap().text(), SKILL);
        connection.send(request("/page").as_bytes());
        assert_eq!(connection.receive("GET").unwrap().status, 200);
    }
    for received in origin.received() {
        assert_eq!(received.field("x-forwarded-for"), Some(CLIENT));
    }
    assert_eq!(origin.received().len(), 2);
    let lines = edge.stop();
    assert_eq!(lines.len(), 4);
    assert!(
        lines.iter().all(|line| line["peer"] == CLIENT),
        "{lines:#?}"
    );
}

#[test]
fn a_header_that_has_begun_before_a_drain_is_read_and_the_request_served() {
    let edge = Setup::new()
        .conf(
            "connections",
            "{ proxy_protocol: [127.0.0.0/8], drain_idle_seconds: 60 }",
        )
        .acme("")
        .with_skill()
        .start();
    let mut connection = Connection::open(edge.http);
    let (begin, rest) = TEXT.split_at(8);
    connection.send(begin);
    edge.wait_for_metric("gateway_connections_open", 1.0);
    edge.signal("TERM");
    // The listeners close when the drain has begun.
    let whole = [TEXT, request("/skill.md").as_bytes()].concat();
    let since = Instant::now();
    while let Ok(mut probe) = TcpStream::connect(edge.http) {
        assert!(since.elapsed() < TIMEOUT, "it does not drain");
        probe.set_read_timeout(Some(PROBE)).unwrap();
        let _closed = probe.write_all(&whole);
        let _reset = probe.read(&mut [0]);
    }
    connection.send(&[rest, request("/skill.md").as_bytes()].concat());
    assert_eq!(connection.receive("GET").unwrap().text(), SKILL);
}

#[test]
fn a_header_may_arrive_byte_by_byte() {
    let edge = Setup::new()
        .conf("connections", BALANCERS)
        .acme("")
        .with_skill()
        .start();
    for header in [TEXT, BINARY] {
        let mut connection = Connection::open(edge.http);
        for byte in header {
            connection.send(&[*byte]);
        }
        connection.send(request("/skill.md").as_bytes());
        assert_eq!(connection.receive("GET").unwrap().text(), SKILL);
    }
}

#[test]
fn curl_sends_the_header_before_tls() {
    let authority = Authority::new();
    let edge = encrypted(&authority, Setup::new())
        .conf("connections", BALANCERS)
        .acme("")
        .with_skill()
        .start();
    let file = edge.setup.path("authority.pem");
    authority.write(&file);
    let port = edge.https.unwrap().port();
    for version in ["--http1.1", "--http2"] {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--haproxy-protocol", version])
            .args(["--resolve", &format!("{DOMAIN}:{port}:127.0.0.1")])
            .arg("--cacert")
            .arg(&file)
            .arg(format!("https://{DOMAIN}:{port}/skill.md"))
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), SKILL, "{output:?}");
    }
}

#[test]
fn a_load_balancer_without_a_valid_header_is_closed() {
    let edge = Setup::new()
        .conf("connections", BALANCERS)
        .acme("")
        .with_skill()
        .start();
    let long = [b"PROXY TCP4 ".as_slice(), &[b'1'; 200]].concat();
    let huge = [&BINARY[..14], &[0xff; 2]].concat();
    for (n, bytes) in [
        request("/skill.md").as_bytes(),
        &long,
        &huge,
        b"PROXY TCP4 x\r\n",
    ]
    .into_iter()
    .enumerate()
    {
        let mut connection = Connection::open(edge.http);
        connection.send(bytes);
        assert!(connection.receive("GET").is_none());
        assert!(shed(&edge) > n as f64 + 0.5);
    }
}

#[test]
fn a_peer_outside_of_the_networks_cannot_name_a_client() {
    let edge = Setup::new()
        .conf("connections", "{ proxy_protocol: [192.0.2.0/24] }")
        .acme("")
        .with_skill()
        .start();
    let mut connection = Connection::open(edge.http);
    connection.send(&[TEXT, request("/skill.md").as_bytes()].concat());
    assert_eq!(connection.receive("GET").unwrap().status, 400);
    let mut connection = Connection::open(edge.http);
    connection.send(request("/skill.md").as_bytes());
    assert_eq!(connection.receive("GET").unwrap().text(), SKILL);
}

#[test]
fn limits_count_for_the_client_in_the_header() {
    let edge = Setup::new()
        .conf("connections", BALANCERS)
        .conf("clients", "{ connections_max: 1 }")
        .acme("")
        .with_skill()
        .start();
    let open = |client: Ipv4Addr| {
        let mut stream = TcpStream::connect(edge.http).unwrap();
        let header = format!("PROXY TCP4 {client} 198.51.100.1 4711 443\r\n");
        stream.write_all(header.as_bytes()).unwrap();
        let mut connection = Connection::over(stream);
        connection.send(request("/skill.md").as_bytes());
        let status = connection.receive("GET").map(|response| response.status);
        (connection, status)
    };
    let (_first, status) = open(Ipv4Addr::new(192, 0, 2, 7));
    assert_eq!(status, Some(200));
    let (_second, status) = open(Ipv4Addr::new(192, 0, 2, 7));
    assert_eq!(
        status, None,
        "a second connection of this client stays open"
    );
    let (_other, status) = open(Ipv4Addr::new(192, 0, 2, 8));
    assert_eq!(status, Some(200));
}

#[test]
fn a_health_check_speaks_for_the_load_balancer() {
    let edge = Setup::new()
        .conf("connections", BALANCERS)
        .acme("")
        .with_skill()
        .start();
    for header in [&b"PROXY UNKNOWN\r\n"[..], b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"] {
        let mut connection = Connection::open(edge.http);
        connection.send(&[header, request("/skill.md").as_bytes()].concat());
        assert_eq!(connection.receive("GET").unwrap().text(), SKILL);
    }
    let lines = edge.stop();
    assert_eq!(lines.len(), 2);
    assert!(
        lines.iter().all(|line| line["peer"] == "127.0.0.1"),
        "{lines:#?}"
    );
}
