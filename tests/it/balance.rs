//! Several servers for one site: requests are shared by weight, a server that fails pauses, nothing
//! that must not be repeated is repeated, and a server that responds to nothing holds only its own
//! requests. All of it on the direct path and on the proxy path.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::Value;

use crate::edge::{Edge, LOCAL_UPSTREAMS, Setup};
use crate::http::{Connection, Response, TIMEOUT, connect_from, request};
use crate::origin::{After, Origin, write_page};
use crate::ports::free_address;
use crate::presets::DOMAIN;

fn record(first: SocketAddr, more: &str, others: &[(SocketAddr, &str)]) -> String {
    let others = others
        .iter()
        .map(|(address, more)| format!("{{ url: \"http://{address}\"{more} }}"));
    let others: Vec<_> = others.collect();
    format!(
        "origin: {{ url: \"http://{first}\"{more}, others: [{}] }}",
        others.join(", ")
    )
}

fn edge(record: &str, upstream: &str, fast_path: bool) -> Edge {
    Setup::new()
        .conf("connections", &format!("{{ fast_path: {fast_path} }}"))
        .conf("upstream", &format!("{{ {upstream}{LOCAL_UPSTREAMS} }}"))
        .acme(record)
        .start()
}

fn get(edge: &Edge) -> Response {
    request(edge.http, "GET", DOMAIN, "/a", &[])
}

fn post(edge: &Edge) -> Response {
    let fields = [("Content-Length", "0")];
    request(edge.http, "POST", DOMAIN, "/a", &fields)
}

/// A server whose status the test sets.
fn with_status() -> (Origin, Arc<AtomicU16>) {
    let status = Arc::new(AtomicU16::new(200));
    let current = Arc::clone(&status);
    let origin = Origin::responding(move |request, stream| {
        use std::io::Write as _;
        match current.load(Ordering::SeqCst) {
            200 => write_page(stream, &request.method, "page"),
            status => {
                let head = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
                let _closed = stream.write_all(head.as_bytes());
            }
        }
        After::Keep
    });
    (origin, status)
}

/// Returns the servers as the operator sees them.
fn servers(edge: &Edge) -> Vec<Value> {
    let shown = request(edge.operator, "GET", "localhost", "/upstreams", &[]);
    assert_eq!(shown.status, 200);
    shown.json()["servers"].as_array().unwrap().clone()
}

fn state_of(edge: &Edge, server: SocketAddr) -> Value {
    let url = format!("http://{server}");
    let servers = servers(edge);
    let found = servers.iter().find(|row| row["server"] == url);
    // A site is listed after its first request.
    found.map_or(Value::Null, |row| row["state"].clone())
}

#[test]
fn servers_get_requests_by_weight_and_backups_get_none() {
    for fast_path in [true, false] {
        let [a, b, backup] = [(); 3].map(|()| Origin::start());
        let others = [
            (b.address, ", weight: 1"),
            (backup.address, ", backup: true, weight: 9"),
        ];
        let edge = edge(&record(a.address, ", weight: 3", &others), "", fast_path);
        for _ in 0..40 {
            assert_eq!(get(&edge).status, 200);
        }
        let got = [&a, &b, &backup].map(|origin| origin.received().len());
        assert_eq!(got, [30, 10, 0], "fast path {fast_path}");
    }
}

#[test]
fn a_server_that_refuses_connections_costs_no_request() {
    for fast_path in [true, false] {
        let (backup, down) = (Origin::start(), free_address());
        let others = [(free_address(), ""), (backup.address, ", backup: true")];
        let edge = edge(&record(down, "", &others), "eject_failures: 2, ", fast_path);
        // Nothing was sent to the servers before, so a POST may go to the next one.
        for _ in 0..5 {
            assert_eq!(post(&edge).status, 200, "fast path {fast_path}");
            assert_eq!(get(&edge).status, 200, "fast path {fast_path}");
        }
        assert_eq!(backup.received().len(), 10);
        assert_eq!(state_of(&edge, down), "ejected");
        assert_eq!(edge.metric("gateway_upstream_ejected"), 2.0);
        // After that, no request asked them any more.
        let failures = edge.metric("gateway_upstream_failures_total{kind=\"connect\"}");
        assert_eq!(failures, 4.0, "fast path {fast_path}");
    }
}

#[test]
fn a_failing_server_pauses_and_returns_after_one_trial() {
    for fast_path in [true, false] {
        let (ill, status) = with_status();
        let well = Origin::start();
        status.store(503, Ordering::SeqCst);
        let limits = "eject_failures: 2, eject_seconds: 1, slow_start_seconds: 0, ";
        let others = [(well.address, "")];
        let edge = edge(&record(ill.address, "", &others), limits, fast_path);
        let mut unavailable = 0;
        // The time is taken before each request, because any of them may begin the pause.
        let mut since = Instant::now();
        while state_of(&edge, ill.address) != "ejected" {
            since = Instant::now();
            unavailable += u32::from(get(&edge).status == 503);
        }
        assert_eq!((unavailable, ill.received().len()), (2, 2));
        // One idempotent request tries it after the pause, whatever else comes.
        let mut trial = since;
        while ill.received().len() == 2 {
            assert_eq!(post(&edge).status, 200);
            trial = Instant::now();
            let status = get(&edge).status;
            assert!(status == 200 || ill.received().len() == 3, "{status}");
            assert!(since.elapsed() < TIMEOUT, "no trial");
        }
        assert!(since.elapsed().as_millis() >= 900);
        assert_eq!(state_of(&edge, ill.address), "ejected");
        // The second pause is longer.
        let since = trial;
        status.store(200, Ordering::SeqCst);
        while state_of(&edge, ill.address) != "up" {
            assert_eq!(get(&edge).status, 200);
            assert!(since.elapsed() < TIMEOUT, "it does not return");
        }
        assert!(since.elapsed().as_millis() >= 1800);
        assert_eq!(ill.received().len(), 4);
        let methods = ill.received();
        assert!(
            methods
                .iter()
                .skip(2)
                .all(|request| request.method == "GET")
        );
        assert_eq!(edge.metric("gateway_upstream_ejections_total"), 2.0);
        assert_eq!(edge.metric("gateway_upstream_ejected"), 0.0);
        for _ in 0..10 {
            assert_eq!(get(&edge).status, 200);
        }
        assert_eq!(ill.received().len(), 9, "half of the requests");
    }
}

#[test]
fn a_failure_counts_before_the_client_has_the_response() {
    for fast_path in [true, false] {
        let (close, closed) = channel::<()>();
        let closed = Mutex::new(closed);
        let ill = Origin::responding(move |_, stream| {
            use std::io::Write as _;
            // As much content as no buffer of the gateway holds back.
            let _closed = stream.write_all(b"HTTP/1.1 503 X\r\nContent-Length: 300000\r\n\r\n");
            let _closed = stream.write_all(&[b'a'; 200_000]);
            let _closed = closed.lock().unwrap().recv();
            After::Close
        });
        let well = Origin::start();
        let others = [(well.address, "")];
        let edge = edge(
            &record(ill.address, "", &others),
            "eject_failures: 1, ",
            fast_path,
        );
        // The servers take turns.
        assert_eq!(get(&edge).status, 200);
        let mut connection = Connection::open(edge.http);
        connection.send(format!("GET /a HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
        let head = connection.receive_head().unwrap();
        assert_eq!(head.status, 503);
        assert_eq!(
            state_of(&edge, ill.address),
            "ejected",
            "fast path {fast_path}"
        );
        close.send(()).unwrap();
    }
}

#[test]
fn only_an_idempotent_request_goes_to_a_second_server_after_the_first_had_it() {
    for fast_path in [true, false] {
        let closing = Origin::responding(|_, _| After::Close);
        let well = Origin::start();
        let others = [(well.address, "")];
        let limits = "eject_failures: 0, retry_percent: 100, ";
        let edge = edge(&record(closing.address, "", &others), limits, fast_path);
        let mut statuses = Vec::new();
        for _ in 0..10 {
            for _ in 0..2 {
                assert_eq!(get(&edge).status, 200, "fast path {fast_path}");
            }
            statuses.push(post(&edge).status);
        }
        let failed = statuses.iter().filter(|status| **status == 502).count();
        let posts = |origin: &Origin| {
            let received = origin.received();
            received.iter().filter(|it| it.method == "POST").count()
        };
        // Each POST reached one server, once.
        assert_eq!((failed, posts(&well)), (posts(&closing), 10 - failed));
        assert!(failed > 0, "{statuses:?}");
        let received = closing.received();
        assert!(received.iter().any(|it| it.method == "GET"));
    }
}

#[test]
fn a_server_without_responses_holds_only_its_own_requests() {
    for fast_path in [true, false] {
        let (slow, proceed) = Origin::with_delayed_body();
        let healthy = Origin::start();
        let limits = "requests_max: 1, queue_max: 1, queue_seconds: 3, ";
        let edge = Setup::new()
            .conf("connections", &format!("{{ fast_path: {fast_path} }}"))
            .conf("upstream", &format!("{{ {limits}{LOCAL_UPSTREAMS} }}"))
            .acme(&slow.record())
            .site("other", &healthy.record())
            .start();
        let send = |path: &str| {
            let mut connection = Connection::open(edge.http);
            let head = format!("GET {path} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
            connection.send(head.as_bytes());
            connection
        };
        let mut first = send("/first");
        slow.wait_for(1);
        let mut queued = send("/queued");
        edge.wait_for_metric("gateway_upstream_queued", 1.0);
        let full = request(edge.http, "GET", DOMAIN, "/full", &[]);
        assert_eq!(full.status, 503);
        assert_eq!(full.field("retry-after"), Some("1"));
        full.check("GET");
        assert_eq!(servers(&edge)[0]["queued"], 1);
        let other = request(edge.http, "GET", "other.waypost.localhost", "/a", &[]);
        assert_eq!(other.status, 200);
        // No place becomes free, so the request in the queue times out.
        assert_eq!(queued.receive("GET").unwrap().status, 503);
        assert_eq!(edge.metric("gateway_upstream_queued"), 0.0);
        let mut next = send("/next");
        edge.wait_for_metric("gateway_upstream_queued", 1.0);
        proceed.send(()).unwrap();
        assert_eq!(first.receive("GET").unwrap().text(), "late");
        slow.wait_for(2);
        proceed.send(()).unwrap();
        assert_eq!(next.receive("GET").unwrap().text(), "late");
        let lines = edge.stop();
        let ended = |path: &str| {
            let line = lines.iter().find(|line| line["path"] == path).unwrap();
            line["ended"].as_str().unwrap()
        };
        assert_eq!(ended("/full"), "upstream_queue_full");
        assert_eq!(ended("/queued"), "upstream_queue_timeout");
        assert_eq!(ended("/next"), "complete");
    }
}

#[test]
fn a_record_lowers_the_number_of_requests_at_its_servers() {
    for fast_path in [true, false] {
        let (slow, proceed) = Origin::with_delayed_body();
        let record = record(slow.address, ", requests_max: 2", &[]);
        let limits = "queue_max: 1, queue_seconds: 60, ";
        let edge = edge(&record, limits, fast_path);
        let send = |path: &str| {
            let mut connection = Connection::open(edge.http);
            let head = format!("GET {path} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
            connection.send(head.as_bytes());
            connection
        };
        let other = connect_from(Ipv4Addr::new(127, 0, 0, 2), edge.http);
        let mut second = Connection::over(other);
        second.send(format!("GET /b HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
        let mut served = [send("/a"), second];
        slow.wait_for(2);
        let mut queued = send("/c");
        edge.wait_for_metric("gateway_upstream_queued", 1.0);
        assert_eq!(get(&edge).status, 503, "fast path {fast_path}");
        assert_eq!(slow.received().len(), 2, "fast path {fast_path}");
        for _ in 0..3 {
            proceed.send(()).unwrap();
        }
        for connection in served.iter_mut().chain([&mut queued]) {
            assert_eq!(connection.receive("GET").unwrap().status, 200);
        }
    }
}

/// Waits until a server has a state. Requests keep the servers of the site in use.
#[track_caller]
fn wait_for_state(edge: &Edge, server: SocketAddr, state: &str) {
    let since = Instant::now();
    while state_of(edge, server) != state {
        assert_eq!(get(edge).status, 200);
        assert!(since.elapsed() < TIMEOUT, "it is not {state}");
    }
}

fn readers(origin: &Origin) -> usize {
    let received = origin.received();
    received.iter().filter(|it| it.target != "/up").count()
}

#[test]
fn a_server_that_fails_its_checks_gets_no_requests_until_it_passes_them() {
    const CHECK: &str = "check: { path: /up, interval_seconds: 1, status: 204, \
                         healthy_threshold: 2, unhealthy_threshold: 2 }";
    for fast_path in [true, false] {
        let status = Arc::new(AtomicU16::new(500));
        let current = Arc::clone(&status);
        let checked = move |status: u16| {
            let current = Arc::clone(&current);
            Origin::responding(move |request, stream| {
                use std::io::Write as _;
                let status = match status {
                    0 => current.load(Ordering::SeqCst),
                    status => status,
                };
                match &*request.target {
                    "/up" => {
                        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
                        let _closed = stream.write_all(head.as_bytes());
                    }
                    _ => write_page(stream, &request.method, "page"),
                }
                After::Keep
            })
        };
        let (ill, well, unasked) = (checked(0), checked(204), Origin::start());
        let (first, second) = (ill.address, well.address);
        let record = format!(
            "origin: {{ url: \"http://{first}\", others: [{{ url: \"http://{second}\" }}], {CHECK} }}"
        );
        let limits = "slow_start_seconds: 0, ";
        let edge = Setup::new()
            .conf("connections", &format!("{{ fast_path: {fast_path} }}"))
            .conf("upstream", &format!("{{ {limits}{LOCAL_UPSTREAMS} }}"))
            .acme(&record)
            .site("other", &unasked.record())
            .start();
        let other = || request(edge.http, "GET", "other.waypost.localhost", "/a", &[]);
        assert_eq!(other().status, 200);
        wait_for_state(&edge, first, "check_failed");
        let metric = "gateway_upstream_checks_failing";
        assert_eq!(edge.metric(metric), 1.0);
        let row = servers(&edge).swap_remove(0);
        assert_eq!(row["check_error"], "it responds 500");
        let before = readers(&ill);
        for _ in 0..10 {
            assert_eq!(get(&edge).status, 200);
        }
        assert_eq!(readers(&ill), before, "fast path {fast_path}");
        status.store(204, Ordering::SeqCst);
        wait_for_state(&edge, first, "up");
        assert_eq!(edge.metric(metric), 0.0);
        let before = readers(&ill);
        for _ in 0..10 {
            assert_eq!(get(&edge).status, 200);
        }
        assert_eq!(readers(&ill), before + 5, "fast path {fast_path}");
        let received = ill.received();
        let check = received.iter().find(|it| it.target == "/up").unwrap();
        assert_eq!(check.method, "GET");
        assert_eq!(check.field("host"), Some(&*first.to_string()));
        // Two failures and two successes decide.
        let passed = edge.metric("gateway_upstream_checks_total{outcome=\"passed\"}");
        let failed = edge.metric("gateway_upstream_checks_total{outcome=\"failed\"}");
        assert!(passed >= 2.0 && failed >= 2.0, "{passed} {failed}");
        // A site without `check` has none.
        assert_eq!(other().status, 200);
        assert_eq!(unasked.received().len(), 2);
    }
}

#[test]
fn servers_are_used_if_all_fail_their_checks() {
    for fast_path in [true, false] {
        // It responds 200 to everything.
        let (a, b) = (Origin::start(), Origin::start());
        let (first, second) = (a.address, b.address);
        let record = format!(
            "origin: {{ url: \"http://{first}\", others: [{{ url: \"http://{second}\" }}], \
             check: {{ path: /up, interval_seconds: 1, status: 204, unhealthy_threshold: 1 }} }}"
        );
        let edge = edge(&record, "", fast_path);
        wait_for_state(&edge, first, "check_failed");
        wait_for_state(&edge, second, "check_failed");
        let before = (readers(&a), readers(&b));
        for _ in 0..10 {
            assert_eq!(get(&edge).status, 200);
        }
        assert_eq!((readers(&a), readers(&b)), (before.0 + 5, before.1 + 5));
    }
}

#[test]
fn one_client_cannot_hold_all_places_of_a_server() {
    const ATTACKS: usize = 20;
    // Half of the places, and one that was not counted.
    const HELD: usize = 5;
    let other = |edge: &Edge| {
        let stream = connect_from(Ipv4Addr::new(127, 0, 0, 2), edge.http);
        let mut connection = Connection::over(stream);
        connection.send(format!("GET /page HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
        connection.receive("GET").unwrap().status
    };
    for fast_path in [true, false] {
        let (proceed, wait) = channel::<()>();
        let wait = Mutex::new(wait);
        let origin = Origin::responding(move |request, stream| {
            if request.target == "/slow" {
                let _ended = wait.lock().unwrap().recv();
            }
            write_page(stream, &request.method, "well");
            After::Keep
        });
        let limits = "requests_max: 8, queue_max: 100, queue_seconds: 60, ";
        let edge = edge(&origin.record(), limits, fast_path);
        let head = format!("GET /slow HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
        let mut held = Vec::new();
        for number in 1..=ATTACKS {
            let mut connection = Connection::open(edge.http);
            connection.send(head.as_bytes());
            held.push(connection);
            // One after the other, so that all are counted alike.
            if number <= HELD {
                origin.wait_for(number);
            }
        }
        edge.wait_for_metric("gateway_upstream_queued", 15.0);
        assert_eq!(servers(&edge)[0]["requests"], HELD);
        // Another client has a place at once.
        assert_eq!(other(&edge), 200, "fast path {fast_path}");
        // The requests in the queue get their places when others end.
        for _ in 0..ATTACKS {
            proceed.send(()).unwrap();
        }
        for mut connection in held {
            assert_eq!(connection.receive("GET").unwrap().status, 200);
        }
        assert_eq!(edge.metric("gateway_upstream_queued"), 0.0);
    }
}

#[test]
fn a_client_that_leaves_the_queue_gives_its_place_back() {
    let (slow, proceed) = Origin::with_delayed_body();
    let limits = "requests_max: 1, queue_max: 1, queue_seconds: 60, ";
    let edge = edge(&slow.record(), limits, true);
    let head = format!("GET /a HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
    let mut first = Connection::open(edge.http);
    first.send(head.as_bytes());
    slow.wait_for(1);
    let leaving = Connection::open(edge.http);
    socket2::SockRef::from(leaving.stream())
        .set_linger(Some(std::time::Duration::ZERO))
        .unwrap();
    let mut leaving = leaving;
    leaving.send(head.as_bytes());
    edge.wait_for_metric("gateway_upstream_queued", 1.0);
    drop(leaving);
    edge.wait_for_metric(
        "gateway_requests_ended_total{reason=\"client_closed\"}",
        1.0,
    );
    assert_eq!(edge.metric("gateway_upstream_queued"), 0.0);
    proceed.send(()).unwrap();
    assert_eq!(first.receive("GET").unwrap().status, 200);
    let since = Instant::now();
    while servers(&edge)[0]["requests"] != 0 {
        assert!(since.elapsed() < TIMEOUT, "a place is lost");
    }
}

#[test]
fn a_dead_server_does_not_get_several_times_the_load() {
    for fast_path in [true, false] {
        let edge = edge(
            &format!("origin: {{ url: \"http://{}\" }}", free_address()),
            "",
            fast_path,
        );
        for _ in 0..100 {
            assert_eq!(get(&edge).status, 502);
        }
        let retries = |outcome: &str| {
            edge.metric(&format!(
                "gateway_upstream_retries_total{{outcome=\"{outcome}\"}}"
            ))
        };
        // Ten are saved, and each request adds a fifth.
        let made = retries("made");
        assert!(
            (20.0..=30.0).contains(&made),
            "fast path {fast_path}: {made}"
        );
        assert!(retries("over_budget") >= 60.0);
    }
}

#[test]
fn a_name_with_an_address_that_refuses_works() {
    for fast_path in [true, false] {
        let origin = Origin::start();
        let port = origin.address.port();
        // It has an IPv6 address too, on most machines.
        let record = format!("origin: {{ url: \"http://localhost:{port}\" }}");
        let edge = edge(&record, "retries_max: 0, ", fast_path);
        for _ in 0..30 {
            let fields = [("Connection", "close")];
            let response = request(edge.http, "GET", DOMAIN, "/a", &fields);
            assert_eq!(response.status, 200, "fast path {fast_path}");
        }
        // The address that refuses is not chosen again, so connections are used again.
        let used = origin.wait_for(30).connection + 1;
        assert!(used < 10, "30 requests took {used} connections");
    }
}

#[test]
fn mistakes_in_the_list_of_servers_are_reported() {
    let setup = Setup::new();
    let start = "project: acme\nsubdomain: acme\norigin:\n  url: https://a.test\n";
    for (lines, expected) in [
        ("  weight: 0\n", "from 1 to 1000"),
        ("  others: https://b.test\n", "is not a list"),
        ("  others: [https://b.test]\n", "a mapping"),
        ("  others: [{ weight: 2 }]\n", "`url` is missing"),
        (
            "  others: [{ url: \"http://10.0.0.1\" }]\n",
            "not a public address",
        ),
        (
            "  others: [{ url: \"https://b.test\", zone: a }]\n",
            "is not a known key",
        ),
        ("  check: /up\n", "a mapping"),
        ("  check: { status: 200 }\n", "path` is missing"),
        ("  check: { path: up }\n", "begins with `/`"),
        ("  check: { path: /a, status: 100 }\n", "from 200 to 599"),
        (
            "  check: { path: /a, interval_seconds: 0 }\n",
            "from 1 to 3600",
        ),
        ("  check: { path: /a, rise: 2 }\n", "is not a known key"),
    ] {
        setup.write_records("one.yaml", &format!("{start}{lines}"));
        let output = setup.run(&["check"]);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains(expected), "{lines}: {text}");
    }
}
