//! No client takes connections, processor time, memory or descriptors from another.
//!
//! The tests attack from one loopback address, and check from another address that its requests
//! still get responses.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::certificates::Authority;
use crate::edge::{Edge, LOCAL_UPSTREAMS, Setup};
use crate::http::{self, Connection, Response, TIMEOUT, connect_from};
use crate::http2::{self, Client};
use crate::origin::Origin;
use crate::presets::{DOMAIN, SKILL};
use crate::tls::{Encrypted, encrypted};

/// The address of the client that keeps all limits.
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Requests a path on a new connection from an address.
#[track_caller]
fn get_from(from: Ipv4Addr, edge: &Edge, path: &str) -> Response {
    let mut connection = Connection::over(connect_from(from, edge.http));
    get_on(&mut connection, path, "").expect("a response")
}

fn get_on(connection: &mut Connection, path: &str, fields: &str) -> Option<Response> {
    let head = format!("GET {path} HTTP/1.1\r\nHost: {DOMAIN}\r\n{fields}\r\n");
    // The gateway may have closed the connection.
    let mut stream = connection.stream();
    stream.write_all(head.as_bytes()).ok()?;
    connection.receive("GET")
}

/// Returns whether the gateway closes a connection on which nothing was sent.
fn is_closed(stream: &mut TcpStream) -> bool {
    matches!(stream.read(&mut [0]), Ok(0) | Err(_))
}

fn shed(edge: &Edge, reason: &str) -> f64 {
    edge.metric(&format!(
        "gateway_connections_shed_total{{reason=\"{reason}\"}}"
    ))
}

fn exceeded(edge: &Edge, limit: &str, mode: &str) -> f64 {
    edge.metric(&format!(
        "gateway_client_limits_exceeded_total{{limit=\"{limit}\",mode=\"{mode}\"}}"
    ))
}

/// Opens connections, and makes a request on each, so that the gateway has accepted it.
fn open_all(count: usize, edge: &Edge) -> Vec<Connection> {
    let open = |_| {
        let mut connection = Connection::open(edge.http);
        assert_eq!(
            get_on(&mut connection, "/skill.md", "").unwrap().status,
            200
        );
        connection
    };
    (0..count).map(open).collect()
}

#[test]
fn an_address_cannot_have_more_connections_than_its_share() {
    let edge = Setup::new()
        .conf("clients", "{ connections_max: 5 }")
        .acme("")
        .with_skill()
        .start();
    let open = open_all(5, &edge);
    let mut sixth = connect_from(Ipv4Addr::LOCALHOST, edge.http);
    assert!(is_closed(&mut sixth), "a sixth connection stays open");
    assert!(shed(&edge, "address_connections") > 0.5);
    assert!(exceeded(&edge, "connections", "enforced") > 0.5);
    assert_eq!(get_from(OTHER, &edge, "/skill.md").text(), SKILL);
    // A closed connection makes room for another.
    drop(open);
    let deadline = Instant::now() + TIMEOUT;
    while get_on(&mut Connection::open(edge.http), "/skill.md", "").is_none() {
        assert!(Instant::now() < deadline, "closed connections still count");
    }
}

#[test]
fn an_address_cannot_make_more_handshakes_than_its_share() {
    let authority = Authority::new();
    let edge = encrypted(&authority, Setup::new())
        .conf("clients", "{ handshakes_per_second: 1, burst_seconds: 5 }")
        .acme("")
        .with_skill()
        .start();
    let address = edge.https.unwrap();
    // No byte of a handshake is needed: the connection counts.
    let open = |_| connect_from(Ipv4Addr::LOCALHOST, address);
    let streams: Vec<TcpStream> = (0..20).map(open).collect();
    edge.wait_for_metric(
        "gateway_connections_shed_total{reason=\"address_handshakes\"}",
        5.0,
    );
    drop(streams);
    // Without TLS there is no handshake.
    assert_eq!(
        get_from(Ipv4Addr::LOCALHOST, &edge, "/skill.md").status,
        200
    );
}

#[test]
fn an_address_cannot_send_more_requests_than_its_share() {
    for fast_path in [true, false] {
        let origin = Origin::start();
        let edge = Setup::new()
            .conf("clients", "{ requests_per_second: 1, burst_seconds: 10 }")
            .conf("connections", &format!("{{ fast_path: {fast_path} }}"))
            .acme_before(&origin)
            .start();
        // Ten responses from the origin, or a hundred from memory.
        for (path, from, least, most) in [
            ("/guide", Ipv4Addr::LOCALHOST, 10, 25),
            ("/skill.md", OTHER, 90, 150),
        ] {
            let mut connection = Connection::over(connect_from(from, edge.http));
            let mut served = 0;
            let rejected = loop {
                let response = get_on(&mut connection, path, "").unwrap();
                if response.status != 200 {
                    break response;
                }
                served += 1;
                assert!(served <= most, "{path}: {served} responses");
            };
            assert!(served >= least, "{path}: {served} responses");
            assert_eq!(rejected.status, 429);
            rejected.check("GET");
            let wait: u64 = rejected.field("retry-after").unwrap().parse().unwrap();
            assert!((1..=60).contains(&wait), "{wait}");
            // The connection stays open, because a load balancer uses it for other clients.
            assert_eq!(get_on(&mut connection, path, "").unwrap().status, 429);
        }
        assert!(exceeded(&edge, "requests", "enforced") >= 4.0);
        let third = Ipv4Addr::new(127, 0, 0, 3);
        assert_eq!(get_from(third, &edge, "/guide").status, 200);
    }
}

/// A page whose lines take `grep` long: at each letter, a long match may begin.
fn slow_page() -> String {
    let mut state = 1_u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if state >> 31 == 0 { 'a' } else { 'q' }
    };
    let mut line = || (0..4000).map(|_| letter()).collect::<String>();
    let lines: Vec<String> = (0..60).map(|_| line()).collect();
    format!("```\n{}\n```\n", lines.join("\n"))
}

#[test]
fn a_client_with_many_calls_of_mcp_tools_delays_another_client_by_few() {
    const CALLS: usize = 40;
    let config = r#"{"name": "Acme", "navigation": {"pages": ["index"]}}"#;
    let unlimited = "{ mcp_requests_per_second: 0, mcp_site_requests_per_second: 0 }";
    let setup = Setup::new().conf("clients", unlimited).acme("");
    setup.publish(
        "acme",
        &[("docs.json", config), ("index.mdx", &slow_page())],
    );
    let edge = setup.start();
    let call = |pattern: &str| {
        let message = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "grep", "arguments": {"pattern": pattern}}});
        let message = message.to_string();
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {DOMAIN}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2025-11-25\r\nContent-Length: {}\r\n\r\n{message}",
            message.len()
        )
    };
    let ask = |from, pattern| {
        let mut connection = Connection::over(connect_from(from, edge.http));
        connection.send(call(pattern).as_bytes());
        connection
    };
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..CALLS)
            .map(|_| ask(Ipv4Addr::LOCALHOST, "a.{60}[yz]"))
            .collect();
        for mut connection in asked {
            let answered = &answered;
            scope.spawn(move || {
                let response = connection.receive("POST").unwrap();
                assert_eq!(response.status, 200, "{}", response.text());
                answered.fetch_add(1, Ordering::SeqCst);
            });
        }
        http::wait_until("the first calls are answered", || {
            answered.load(Ordering::SeqCst) > 0
        });
        let before = answered.load(Ordering::SeqCst);
        let response = ask(OTHER, "^Welcome").receive("POST").unwrap();
        assert_eq!(response.status, 200, "{}", response.text());
        let meanwhile = answered.load(Ordering::SeqCst) - before;
        assert!(meanwhile < CALLS / 2, "{meanwhile} calls came first");
    });
}

#[test]
fn a_304_costs_an_address_a_tenth_of_a_request() {
    let setup = Setup::new()
        .conf("clients", "{ requests_per_second: 1, burst_seconds: 10 }")
        .acme("origin: embedded");
    let config = r#"{"name": "Acme", "navigation": {"pages": ["index"]}}"#;
    setup.publish("acme", &[("docs.json", config), ("index.mdx", "Hello.")]);
    let edge = setup.start();
    let page = get_from(OTHER, &edge, "/");
    let fields = format!("If-None-Match: {}\r\n", page.field("etag").unwrap());
    let mut connection = Connection::open(edge.http);
    let mut count = 0;
    loop {
        match get_on(&mut connection, "/", &fields).unwrap().status {
            304 => count += 1,
            status => break assert_eq!(status, 429),
        }
        assert!(count <= 150, "{count}");
    }
    assert!(count >= 90, "{count}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_applies_to_http2_too() {
    let authority = Authority::new();
    let setup = encrypted(&authority, Setup::new())
        .conf("clients", "{ requests_per_second: 1, burst_seconds: 10 }")
        .acme_before(&Origin::start());
    let edge = setup.start();
    let client = Client::open(edge.https.unwrap(), DOMAIN, authority.client(&["h2"]));
    let mut client = client.await;
    let mut served = 0;
    let rejected = loop {
        let response = client.get(DOMAIN, "/guide").await.unwrap();
        if response.status != 200 {
            break response;
        }
        served += 1;
        assert!(served <= 25, "{served} responses");
    };
    assert_eq!(rejected.status, 429);
    assert!(rejected.field("retry-after").is_some());
    // Other streams of the connection go on.
    assert_eq!(client.get(DOMAIN, "/guide").await.unwrap().status, 429);
}

#[test]
fn a_request_of_a_trusted_peer_counts_for_the_client_that_it_names() {
    let edge = Setup::new()
        .conf(
            "clients",
            "{ connections_max: 1, requests_per_second: 1, burst_seconds: 10 }",
        )
        .conf("connections", "{ trusted_peers: [127.0.0.1] }")
        .acme_before(&Origin::start())
        .start();
    let mut balancer = Connection::open(edge.http);
    let mut ask = |client: &str| {
        let fields = format!("X-Forwarded-For: 9.9.9.9, {client}\r\n");
        get_on(&mut balancer, "/guide", &fields).unwrap().status
    };
    assert!((0..30).any(|_| ask("192.0.2.1") == 429));
    // The first address of the field is what a client has written itself.
    assert_eq!(ask("192.0.2.2"), 200);
    // The peer may have any number of connections.
    let _open = open_all(5, &edge);
    // `X-Forwarded-For` of an untrusted peer is ignored.
    let mut liar = Connection::over(connect_from(OTHER, edge.http));
    let rejected = (0..30).any(|n| {
        let fields = format!("X-Forwarded-For: 192.0.3.{n}\r\n");
        get_on(&mut liar, "/guide", &fields).unwrap().status == 429
    });
    assert!(rejected, "a client chooses for whom it counts");
}

/// Requests and bytes have no limit, as by default.
#[test]
fn each_client_of_a_trusted_peer_has_its_own_places_at_a_server() {
    const PLACES: usize = 8;
    for fast_path in [true, false] {
        let (origin, proceed) = Origin::with_delayed_body();
        let connections = format!("{{ trusted_peers: [127.0.0.1], fast_path: {fast_path} }}");
        let upstream = format!("{{ requests_max: {PLACES}, {LOCAL_UPSTREAMS} }}");
        let edge = Setup::new()
            .conf("connections", &connections)
            .conf("upstream", &upstream)
            .acme_before(&origin)
            .start();
        let _open: Vec<_> = (1..=PLACES)
            .map(|client| {
                let mut balancer = Connection::open(edge.http);
                let head = format!("GET /guide HTTP/1.1\r\nHost: {DOMAIN}\r\n");
                let client = format!("X-Forwarded-For: 192.0.2.{client}\r\n\r\n");
                balancer.send((head + &client).as_bytes());
                balancer
            })
            .collect();
        // The last of them comes while all other places are in use.
        origin.wait_for(PLACES);
        drop(proceed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_429_has_the_fields_and_the_access_line_of_its_host() {
    let authority = Authority::new();
    let setup = encrypted(&authority, Setup::new());
    let directory = setup.path("certificates").display().to_string();
    let gateway = Encrypted {
        edge: setup
            .conf(
                "tls",
                &format!("{{ directory: \"{directory}\", hsts_seconds: 600 }}"),
            )
            .conf("clients", "{ requests_per_second: 1, burst_seconds: 1 }")
            // Its request ids are believed.
            .conf("connections", "{ trusted_peers: [127.0.0.1] }")
            .acme("hsts: { seconds: 0 }")
            .with_skill()
            .start(),
        authority,
    };
    let name = "strict-transport-security";
    let fields = "User-Agent: reader/1\r\nX-Request-Id: me-7\r\n";
    let request = format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n{fields}\r\n");
    let mut http1 = gateway.http1();
    let rejected = loop {
        http1.send(request.as_bytes());
        let response = http1.receive("GET").unwrap();
        if response.status == 429 {
            break response;
        }
    };
    assert_eq!(rejected.field(name), Some("max-age=0"));
    let mut http2 = gateway.http2().await;
    let rejected = loop {
        let mut request = http2::get(DOMAIN, "/skill.md");
        let headers = request.headers_mut();
        headers.insert("user-agent", "reader/1".parse().unwrap());
        headers.insert("x-request-id", "me-7".parse().unwrap());
        let response = http2.request(request).await.unwrap();
        if response.status == 429 {
            break response;
        }
    };
    assert_eq!(rejected.field(name), Some("max-age=0"));
    let lines = gateway.edge.stop();
    let rejected: Vec<_> = lines.iter().filter(|line| line["status"] == 429).collect();
    assert_eq!(rejected.len(), 2, "{lines:?}");
    for line in rejected {
        assert_eq!(line["host"], DOMAIN, "{line}");
        assert_eq!(line["path"], "/skill.md", "{line}");
        assert_eq!(line["agent"], "reader/1", "{line}");
        assert_eq!(line["request_id"], "me-7", "{line}");
    }
}

#[test]
fn an_address_cannot_have_more_bytes_sent_to_it_than_its_share() {
    let large = format!("{SKILL}{}", "x".repeat(100_000));
    let setup = Setup::new()
        .conf("clients", "{ bytes_per_second: 20000, burst_seconds: 1 }")
        .acme("");
    setup.publish("acme", &[("skill.md", &large)]);
    let edge = setup.start();
    let etag = {
        let whole = get_from(OTHER, &edge, "/skill.md");
        assert_eq!(whole.text(), large);
        whole.field("etag").unwrap().to_owned()
    };
    assert_eq!(get_from(OTHER, &edge, "/skill.md").status, 429);
    // Responses without content cost little.
    let mut connection = Connection::open(edge.http);
    let fields = format!("If-None-Match: {etag}\r\n");
    for _ in 0..30 {
        let response = get_on(&mut connection, "/skill.md", &fields).unwrap();
        assert_eq!(response.status, 304);
    }
    assert!(exceeded(&edge, "bytes", "enforced") > 0.5);
}

#[test]
fn a_dry_run_counts_and_rejects_nothing() {
    let edge = Setup::new()
        .conf(
            "clients",
            "{ connections_max: 2, requests_per_second: 1, bytes_per_second: 100, burst_seconds: 1, dry_run: [connections, requests, bytes] }",
        )
        .acme("")
        .with_skill()
        .start();
    let mut open = open_all(4, &edge);
    for connection in &mut open {
        for _ in 0..10 {
            assert_eq!(get_on(connection, "/skill.md", "").unwrap().status, 200);
        }
    }
    for limit in ["connections", "requests", "bytes"] {
        assert!(exceeded(&edge, limit, "dry_run") > 0.5, "{limit}");
        assert!(exceeded(&edge, limit, "enforced") < 0.5, "{limit}");
        edge.wait_for_log(|line| {
            line["limit"] == limit && line["message"].as_str().unwrap().contains("dry run")
        });
    }
}

#[test]
fn a_dry_run_counts_handshakes_and_rejects_none() {
    let authority = Authority::new();
    let edge = encrypted(&authority, Setup::new())
        .conf(
            "clients",
            "{ handshakes_per_second: 1, burst_seconds: 1, dry_run: [handshakes] }",
        )
        .acme("")
        .with_skill()
        .start();
    let address = edge.https.unwrap();
    let mut open: Vec<_> = (0..10)
        .map(|_| connect_from(Ipv4Addr::LOCALHOST, address))
        .collect();
    edge.wait_for_log(|line| {
        line["limit"] == "handshakes" && line["message"].as_str().unwrap().contains("dry run")
    });
    assert!(exceeded(&edge, "handshakes", "dry_run") > 0.5);
    assert!(exceeded(&edge, "handshakes", "enforced") < 0.5);
    for stream in &mut open {
        stream.set_nonblocking(true).unwrap();
        let read = stream.read(&mut [0]);
        let is_open = read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(is_open, "a connection was closed");
    }
}

#[test]
fn the_addresses_of_an_ipv6_prefix_are_one_client() {
    // A load balancer names the clients, because this machine has one address of IPv6.
    let edge = Setup::new()
        .conf("connections", "{ proxy_protocol: [127.0.0.0/8] }")
        .conf("clients", "{ connections_max: 2, ipv6_prefix: 56 }")
        .acme("")
        .with_skill()
        .start();
    let open = |address: &str| {
        let mut connection = Connection::open(edge.http);
        let header = format!("PROXY TCP6 {address} 2001:db8:ffff::1 4711 80\r\n");
        let request = format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
        connection.send((header + &request).as_bytes());
        let is_served = connection.receive("GET").is_some();
        (connection, is_served)
    };
    let (_first, is_served) = open("2001:db8:0:100::1");
    assert!(is_served);
    let (_second, is_served) = open("2001:db8:0:1ff:ffff::2");
    assert!(is_served);
    let (_third, is_served) = open("2001:db8:0:180::3");
    assert!(!is_served, "the prefix has three connections");
    let (_other, is_served) = open("2001:db8:0:200::1");
    assert!(is_served, "another prefix");
}

#[test]
fn at_the_limit_the_longest_idle_connection_is_closed() {
    let edge = Setup::new()
        .conf("connections", "{ connections_max: 10 }")
        .acme("")
        .with_skill()
        .start();
    let mut open = open_all(10, &edge);
    let newcomer = get_from(OTHER, &edge, "/skill.md");
    assert_eq!(newcomer.text(), SKILL);
    assert_eq!(open[0].receive_rest(), b"", "the first one is idle longest");
    for connection in &mut open[2..] {
        assert_eq!(get_on(connection, "/skill.md", "").unwrap().status, 200);
    }
    assert!(shed(&edge, "idle_longest") > 0.5);
}

#[test]
fn a_connection_over_the_limit_of_its_address_closes_no_other() {
    let edge = Setup::new()
        .conf("connections", "{ connections_max: 10 }")
        .conf("clients", "{ connections_max: 5 }")
        .acme("")
        .with_skill()
        .start();
    let mut others: Vec<_> = (0..5)
        .map(|_| Connection::over(connect_from(OTHER, edge.http)))
        .collect();
    let serve = |connection: &mut Connection| get_on(connection, "/skill.md", "").unwrap().status;
    assert!(others.iter_mut().all(|other| serve(other) == 200));
    let _open = open_all(5, &edge);
    for _ in 0..20 {
        let mut rejected = connect_from(Ipv4Addr::LOCALHOST, edge.http);
        assert!(is_closed(&mut rejected));
    }
    assert!(others.iter_mut().all(|other| serve(other) == 200));
    assert!(shed(&edge, "idle_longest") < 0.5);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_closed_connections_is_given_back() {
    const CONNECTIONS: usize = 500;
    let authority = Authority::new();
    let setup = encrypted(&authority, Setup::new())
        .conf("clients", "{ handshakes_per_second: 0 }")
        .acme("")
        .with_skill();
    let edge = setup.start();
    let config = authority.client(&["h2"]);
    let open = async || Client::open(edge.https.unwrap(), DOMAIN, Arc::clone(&config)).await;
    // The first request allocates values that exist once.
    open().await.get(DOMAIN, "/skill.md").await.unwrap();
    let before = resident(&edge);
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut client = open().await;
        assert_eq!(client.get(DOMAIN, "/skill.md").await.unwrap().status, 200);
        clients.push(client);
    }
    let grown = resident(&edge) - before;
    assert!(grown > (CONNECTIONS as u64) * (32 << 10), "{grown}");
    drop(clients);
    let since = Instant::now();
    // The allocator keeps some: parts of the same pages are in use. It may also give back memory of
    // the start, so the process may become smaller than before.
    let enough = before + grown / 4 * 3;
    while resident(&edge) > enough {
        assert!(
            since.elapsed() < TIMEOUT,
            "{} and not {enough}",
            resident(&edge)
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Returns the resident memory of a gateway without files, in bytes.
fn resident(edge: &Edge) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", edge.id())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() << 10
}

#[test]
fn an_incomplete_head_or_handshake_can_be_closed() {
    let authority = Authority::new();
    let edge = encrypted(&authority, Setup::new())
        .conf("connections", "{ connections_max: 10, head_seconds: 3600 }")
        .acme("")
        .with_skill()
        .start();
    let slow: Vec<_> = (0..40)
        .map(|n| {
            let address = if n % 2 == 0 {
                edge.http
            } else {
                edge.https.unwrap()
            };
            let mut stream = connect_from(Ipv4Addr::LOCALHOST, address);
            let part: &[u8] = if n % 2 == 0 {
                b"GET / HT"
            } else {
                b"\x16\x03\x01"
            };
            // It may be closed already.
            let _closed = stream.write_all(part);
            stream
        })
        .collect();
    assert_eq!(get_from(OTHER, &edge, "/skill.md").text(), SKILL);
    drop(slow);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_http2_connection_makes_room_too() {
    let authority = Authority::new();
    let edge = encrypted(&authority, Setup::new())
        .conf("connections", "{ connections_max: 3 }")
        .acme("")
        .with_skill()
        .start();
    let mut clients = Vec::new();
    for _ in 0..3 {
        let config = authority.client(&["h2"]);
        let mut client = Client::open(edge.https.unwrap(), DOMAIN, config).await;
        assert_eq!(client.get(DOMAIN, "/skill.md").await.unwrap().status, 200);
        clients.push(client);
    }
    let edge = tokio::task::spawn_blocking(move || {
        assert_eq!(get_from(OTHER, &edge, "/skill.md").text(), SKILL);
        edge
    });
    let edge = edge.await.unwrap();
    clients.remove(0).ended().await;
    let mut last = clients.pop().unwrap();
    assert_eq!(last.get(DOMAIN, "/skill.md").await.unwrap().status, 200);
    assert!(shed(&edge, "idle_longest") > 0.5);
}

#[test]
fn a_request_in_progress_is_never_closed_for_others() {
    let (origin, proceed) = Origin::with_delayed_body();
    let edge = Setup::new()
        .conf("connections", "{ connections_max: 2 }")
        .acme_before(&origin)
        .start();
    let mut busy = Connection::open(edge.http);
    busy.send(format!("GET /guide HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
    origin.wait_for(1);
    for _ in 0..5 {
        let mut other = Connection::over(connect_from(OTHER, edge.http));
        assert_eq!(get_on(&mut other, "/skill.md", "").unwrap().status, 200);
    }
    proceed.send(()).unwrap();
    assert_eq!(busy.receive("GET").unwrap().text(), "late");
}

/// Measures how long requests of another address take beside many sockets of one address: the
/// 99th percentiles alone, while the sockets are opened, and while they are open.
#[expect(clippy::print_stdout, reason = "a figure of the long run")]
fn beside_one_address(clients: &str) {
    let is_long = std::env::var_os("WAYPOST_LONG_TESTS").is_some();
    let (sockets, requests) = if is_long {
        (15_000_u32, 2000)
    } else {
        (600, 100)
    };
    let most = sockets / 10 * 9;
    let edge = Setup::new()
        .conf("clients", clients)
        .conf("connections", &format!("{{ connections_max: {most} }}"))
        .acme("")
        .with_skill()
        .start();
    let request = || {
        let since = Instant::now();
        assert_eq!(get_from(OTHER, &edge, "/skill.md").status, 200);
        since.elapsed()
    };
    let p99 = |mut times: Vec<Duration>| {
        times.sort();
        times[(times.len() * 99).div_ceil(100) - 1]
    };
    let some = || (0..requests).map(|_| request()).collect::<Vec<_>>();
    let alone = p99(some());
    let (held, during) = std::thread::scope(|scope| {
        let open = || {
            let mut socket = connect_from(Ipv4Addr::LOCALHOST, edge.http);
            // Without a byte, it would be accepted a second later. It may be closed already.
            let _closed = socket.write_all(b"G");
            socket
        };
        let opening = scope.spawn(move || (0..sockets).map(|_| open()).collect::<Vec<_>>());
        let mut times = some();
        while !opening.is_finished() {
            times.push(request());
        }
        (opening.join().unwrap(), p99(times))
    });
    let beside = p99(some());
    println!(
        "{} sockets of one address, clients {clients}: p99 alone {alone:?}, while they are \
         opened {during:?}, while they are open {beside:?}",
        held.len()
    );
    // All tests of the short run share the processors of the machine.
    let slack = Duration::from_millis(if is_long { 20 } else { 1000 });
    assert!(during <= alone * 2 + slack && beside <= alone * 2 + slack);
    let rejected = shed(&edge, "address_connections") + shed(&edge, "idle_longest");
    assert!(rejected >= f64::from(sockets / 20), "{rejected}");
}

#[test]
fn many_sockets_of_one_address_delay_no_other_address() {
    beside_one_address("{ connections_max: 100 }");
}

#[test]
fn many_idle_sockets_delay_no_other_address_without_a_limit_for_each_address() {
    beside_one_address("{ connections_max: 0 }");
}

#[test]
fn connections_leave_enough_descriptors() {
    let setup = Setup::new()
        .wrapped_by(&["sh", "-c", "ulimit -n 256; exec \"$@\"", "sh"])
        .acme("origin: embedded");
    let files = |page| {
        let config = r#"{"name": "Acme", "navigation": {"pages": ["index"]}}"#;
        [
            ("skill.md", SKILL),
            ("docs.json", config),
            ("index.mdx", page),
        ]
    };
    setup.publish("acme", &files("Welcome."));
    let edge = setup.start();
    let warning = edge.wait_for_log(|line| line["connections_max"].is_u64());
    assert_eq!(
        (&warning["level"], &warning["limit"]),
        (&"warn".into(), &256.into())
    );
    let room = warning["connections_max"].as_u64().unwrap();
    assert!((50..200).contains(&room), "{room}");
    let idle: Vec<_> = (0..400)
        .map(|_| connect_from(Ipv4Addr::LOCALHOST, edge.http))
        .collect();
    // A new client, a read of the store and the operator are all served at once.
    let served = get_from(OTHER, &edge, "/");
    assert_eq!(served.status, 200);
    edge.publish("acme", &files("Welcome again."));
    assert!(
        get_from(OTHER, &edge, "/")
            .text()
            .contains("Welcome again.")
    );
    let health = http::request(edge.operator, "GET", "localhost", "/healthz", &[]);
    assert_eq!(health.status, 200);
    let accepts = |line: &serde_json::Value| {
        let message = line["message"].as_str();
        message.is_some_and(|message| message.contains("cannot accept a connection"))
    };
    assert_eq!(edge.count_log(accepts), 0, "descriptors were never used up");
    drop(idle);
}

#[test]
fn the_soft_limit_of_descriptors_is_raised_to_the_hard_one() {
    const SOFT: usize = 256;
    let script = format!("ulimit -Sn {SOFT}; ulimit -Hn 2048; exec \"$@\"");
    let edge = Setup::new()
        .wrapped_by(&["sh", "-c", &script, "sh"])
        .acme("")
        .with_skill()
        .start();
    // proc_pid_limits(5): name, soft limit, hard limit, unit.
    let limits = fs::read_to_string(format!("/proc/{}/limits", edge.id())).unwrap();
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let files: Vec<_> = files.unwrap().split_whitespace().collect();
    assert_eq!(files[3..5], ["2048", "2048"]);
    let _open = open_all(2 * SOFT, &edge);
    assert_eq!(get_from(OTHER, &edge, "/skill.md").text(), SKILL);
}

/// Returns the processor time of a process in clock ticks (proc(5): `utime` and `stime`).
fn ticks(id: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let fields: Vec<_> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn without_descriptors_the_process_neither_spins_nor_fills_its_log() {
    let edge = Setup::new()
        .conf(
            "log",
            "{ format: json, filter: info, repeats_max: 3, repeats_seconds: 1 }",
        )
        .acme("")
        .with_skill()
        .start();
    let limit = |files: &str| {
        let set = Command::new("prlimit")
            .args([
                "--pid",
                &edge.id().to_string(),
                &format!("--nofile={files}:"),
            ])
            .status()
            .unwrap();
        assert!(set.success());
    };
    assert_eq!(get_from(OTHER, &edge, "/skill.md").status, 200);
    limit("3");
    let _pending = [edge.http, edge.operator].map(|to| connect_from(OTHER, to));
    let before = ticks(edge.id());
    let summary = edge.wait_for_log(|line| {
        let message = line["message"].as_str().unwrap();
        message.contains("more lines like this were left out") && message.contains("accept")
    });
    assert!(summary["left_out"].as_u64().unwrap() > 0, "{summary}");
    http::silence(std::time::Duration::from_secs(1));
    // Two seconds of a processor are 200 ticks.
    let used = ticks(edge.id()) - before;
    assert!(used < 100, "the process spins: {used} ticks");
    let lines = edge.count_log(|line| line["message"].as_str().unwrap().contains("accept"));
    assert!(lines < 50, "{lines} lines");
    limit("1024");
    assert_eq!(get_from(OTHER, &edge, "/skill.md").status, 200);
    let health = http::request(edge.operator, "GET", "localhost", "/healthz", &[]);
    assert_eq!(health.status, 200);
}

#[test]
fn repeated_log_lines_are_limited_and_counted() {
    let edge = Setup::new()
        .conf(
            "log",
            "{ format: json, filter: info, repeats_max: 3, repeats_seconds: 1 }",
        )
        .conf("clients", "{ connections_max: 1 }")
        .acme("")
        .with_skill()
        .start();
    let _open = open_all(1, &edge);
    for _ in 0..200 {
        let _rejected = connect_from(Ipv4Addr::LOCALHOST, edge.http);
    }
    edge.wait_for_metric(
        "gateway_connections_shed_total{reason=\"address_connections\"}",
        200.0,
    );
    let is_limit = |line: &serde_json::Value| line["limit"] == "connections";
    let left_out = |line: &serde_json::Value| line["left_out"].as_u64().unwrap_or(0);
    let mut told = 0;
    let mut summaries = 0;
    let deadline = Instant::now() + TIMEOUT;
    while told + (edge.count_log(is_limit) as u64) < 200 {
        assert!(Instant::now() < deadline, "{told} lines were left out");
        summaries += 1;
        told += left_out(&edge.wait_for_nth_log(summaries, |line| left_out(line) > 0));
    }
    assert!(edge.count_log(is_limit) < 50);
}

#[test]
fn under_memory_pressure_keep_alive_ends_and_then_new_connections_are_closed() {
    let setup = Setup::new();
    let group = setup.path("cgroup");
    fs::create_dir(&group).unwrap();
    let write = |name: &str, text: &str| {
        let partial = group.join("partial");
        fs::write(&partial, text).unwrap();
        fs::rename(partial, group.join(name)).unwrap();
    };
    write("memory.max", "1000\n");
    write("memory.high", "max\n");
    write("memory.current", "900\n");
    // Pages of files do not count.
    write(
        "memory.stat",
        "anon 100\ninactive_file 500\nactive_file 200\n",
    );
    let edge = setup
        .conf("memory", &format!("{{ cgroup: {} }}", group.display()))
        .acme("")
        .with_skill()
        .start();
    let stage = |number: i32| {
        edge.wait_for_log(|line| line["target"] == "memory" && line["stage"] == number)
    };
    let mut idle = open_all(1, &edge).remove(0);
    write("memory.stat", "anon 900\ninactive_file 10\n");
    stage(1);
    assert_eq!(idle.receive_rest(), b"", "idle connections are closed");
    let mut connection = Connection::open(edge.http);
    let response = get_on(&mut connection, "/skill.md", "").unwrap();
    assert_eq!(response.text(), SKILL);
    assert_eq!(response.field("connection"), Some("close"));
    write("memory.current", "970\n");
    stage(2);
    let mut rejected = connect_from(OTHER, edge.http);
    assert!(is_closed(&mut rejected), "a new connection is served");
    let health = http::request(edge.operator, "GET", "localhost", "/healthz", &[]);
    assert_eq!(health.status, 200, "the operator has access");
    assert!((edge.metric("gateway_memory_stage") - 2.0).abs() < 0.5);
    assert!(shed(&edge, "memory") > 0.5);
    write("memory.current", "100\n");
    stage(0);
    let mut connection = open_all(1, &edge).remove(0);
    assert_eq!(
        get_on(&mut connection, "/skill.md", "").unwrap().status,
        200
    );
    let changes = edge.count_log(|line| line["target"] == "memory" && line["stage"].is_i64());
    assert_eq!(changes, 3, "a line for each change");
}
