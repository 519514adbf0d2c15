//! Stopping without losing a request.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use socket2::SockRef;

use crate::edge::{Edge, Setup};
use crate::http::{self, Connection, TIMEOUT};
use crate::origin::{After, Origin};
use crate::presets::DOMAIN;

/// How long a connection is read that is only opened to see whether it can be.
pub const PROBE: Duration = Duration::from_millis(200);

/// A gateway in front of an origin that responds when the test allows it.
struct Slow {
    edge: Edge,
    origin: Origin,
    proceed: Sender<()>,
}

impl Slow {
    fn start(connections: &str) -> Self {
        let (origin, proceed) = Origin::with_delayed_body();
        let setup = Setup::new()
            .conf("connections", connections)
            .acme_before(&origin);
        Self {
            edge: setup.start(),
            origin,
            proceed,
        }
    }

    /// Sends a request, and returns when the origin has it.
    fn begin(&self) -> Connection {
        let already = self.origin.received().len();
        let mut connection = Connection::open(self.edge.http);
        connection.send(format!("GET /guide HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
        self.origin.wait_for(already + 1);
        connection
    }
}

fn is_leaving(line: &serde_json::Value) -> bool {
    line["message"]
        .as_str()
        .is_some_and(|text| text.starts_with("draining:"))
}

/// Waits until an address accepts no more connections.
#[track_caller]
pub fn wait_until_closed(address: SocketAddr) {
    let since = Instant::now();
    while let Ok(mut stream) = TcpStream::connect(address) {
        assert!(
            since.elapsed() < TIMEOUT,
            "{address} still takes connections"
        );
        // This may be the last connection that is accepted; then the listener closes. If it closes
        // at the same moment, the kernel may forget the connection without a reset.
        stream.set_read_timeout(Some(PROBE)).unwrap();
        let _reset = stream.read(&mut [0]);
    }
}

#[test]
fn requests_in_flight_are_finished_and_then_the_process_ends_at_once() {
    let slow = Slow::start("{ drain_seconds: 60, idle_seconds: 60 }");
    let mut idle = Connection::open(slow.edge.http);
    idle.send(format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
    assert_eq!(idle.receive("GET").unwrap().status, 200);
    let mut fresh = Connection::open(slow.edge.http);
    // It is accepted after a second without a byte.
    slow.edge.wait_for_metric("gateway_connections_open", 2.0);
    let mut busy = slow.begin();
    // A second request on the same connection; it is read after the first response.
    busy.send(format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
    let since = Instant::now();
    slow.edge.signal("TERM");
    assert_eq!(
        idle.receive_rest(),
        b"",
        "idle connections are closed at once"
    );
    assert_eq!(
        fresh.receive_rest(),
        b"",
        "and those that never sent anything"
    );
    wait_until_closed(slow.edge.http);
    let ready = http::request(slow.edge.operator, "GET", "operator", "/readyz", &[]);
    assert_eq!((ready.status, ready.text()), (503, "leaving\n"));
    assert_eq!(
        http::request(slow.edge.operator, "GET", "operator", "/healthz", &[]).status,
        200
    );
    slow.proceed.send(()).unwrap();
    assert_eq!(busy.receive("GET").unwrap().text(), "late");
    // RFC 9112 §9.6: the next request gets a response with `Connection: close`, or none.
    if let Some(last) = busy.receive("GET") {
        assert_eq!(last.field("connection"), Some("close"));
    }
    assert_eq!(busy.receive_rest(), b"");
    assert!(slow.edge.wait().success());
    assert!(
        since.elapsed() < TIMEOUT,
        "it took {:?} of the 60 s there were",
        since.elapsed()
    );
}

#[test]
fn a_response_during_the_drain_has_connection_close() {
    let slow = Slow::start("{ drain_seconds: 60 }");
    slow.proceed.send(()).unwrap();
    // A connection with half a head stays open when the drain begins.
    let mut begun: Vec<_> = ["/skill.md", "/guide"]
        .map(|path| {
            let mut connection = Connection::open(slow.edge.http);
            connection.send(format!("GET {path} HTTP/1.1\r\nHost:").as_bytes());
            connection
        })
        .into();
    // After a response on a third connection, the gateway has accepted and read both.
    slow.edge.get(DOMAIN, "/skill.md");
    slow.edge.signal("TERM");
    wait_until_closed(slow.edge.http);
    for connection in &mut begun {
        connection.send(format!(" {DOMAIN}\r\n\r\n").as_bytes());
        let response = connection
            .receive("GET")
            .expect("a begun request is answered");
        assert_eq!(response.status, 200);
        assert_eq!(response.field("connection"), Some("close"));
        assert_eq!(connection.receive_rest(), b"");
    }
    assert!(slow.edge.wait().success());
}

#[test]
fn readiness_is_503_before_the_listeners_close() {
    let slow = Slow::start("{ drain_delay_seconds: 6, drain_seconds: 60 }");
    let mut idle = Connection::open(slow.edge.http);
    idle.send(format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
    assert_eq!(idle.receive("GET").unwrap().status, 200);
    slow.edge.signal("TERM");
    slow.edge.wait_for_log(is_leaving);
    let since = Instant::now();
    let ready = loop {
        let ready = http::request(slow.edge.operator, "GET", "operator", "/readyz", &[]);
        if ready.status == 503 {
            break ready;
        }
        assert!(since.elapsed() < Duration::from_secs(5), "still ready");
    };
    assert_eq!(ready.text(), "leaving\n");
    // New connections are still accepted, and stay open.
    let mut connection = Connection::open(slow.edge.http);
    for _ in 0..2 {
        connection.send(format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
        let response = connection.receive("GET").unwrap();
        assert_eq!((response.status, response.field("connection")), (200, None));
    }
    assert_eq!(
        connection.receive_rest(),
        b"",
        "closed when the delay is over"
    );
    assert_eq!(idle.receive_rest(), b"", "and so is one from before");
    assert!(slow.edge.wait().success());
    assert!(
        since.elapsed() < TIMEOUT,
        "idle connections outlasted the delay: {:?}",
        since.elapsed()
    );
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    for (first, second) in [("TERM", "TERM"), ("INT", "TERM")] {
        let slow = Slow::start("{ drain_seconds: 60 }");
        let mut busy = slow.begin();
        let since = Instant::now();
        slow.edge.signal(first);
        slow.edge.wait_for_log(is_leaving);
        slow.edge.signal(second);
        assert_eq!(busy.receive_rest(), b"");
        slow.edge.wait();
        assert!(
            since.elapsed() < TIMEOUT,
            "{first}, {second}: {:?}",
            since.elapsed()
        );
    }
}

#[test]
fn the_drain_ends_at_its_deadline() {
    let slow = Slow::start("{ drain_seconds: 1 }");
    let mut busy = slow.begin();
    let since = Instant::now();
    slow.edge.signal("TERM");
    assert_eq!(busy.receive_rest(), b"");
    let is_late = |line: &serde_json::Value| line["left"] == 1;
    slow.edge.wait_for_log(is_late);
    slow.edge.wait();
    let took = since.elapsed();
    assert!((900..10_000).contains(&took.as_millis()), "{took:?}");
}

#[test]
fn a_flood_of_connections_does_not_keep_the_listener_open() {
    let limits = "{ drain_seconds: 60, drain_idle_seconds: 1 }";
    let edge = Setup::new().conf("connections", limits).acme("").start();
    let http = edge.http;
    let since = Instant::now();
    // Returns whether connections were refused in the end.
    let flood = || {
        while since.elapsed() < TIMEOUT {
            match TcpStream::connect(http) {
                Ok(mut stream) => {
                    // Without a byte, the kernel would not give it to the gateway.
                    let _reset = stream.write_all(b"G");
                    // Without the wait for late packets, which would use up the ports.
                    let stream = SockRef::from(&stream);
                    stream.set_linger(Some(Duration::ZERO)).unwrap();
                }
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => return true,
                Err(_reset) => {}
            }
        }
        false
    };
    let refused = std::thread::scope(|scope| {
        let floods: Vec<_> = (0..4).map(|_| scope.spawn(flood)).collect();
        edge.wait_for_metric("gateway_connections_total", 1000.0);
        edge.signal("TERM");
        floods.into_iter().all(|flood| flood.join().unwrap())
    });
    assert!(refused, "the listener was open for {TIMEOUT:?}");
    assert!(edge.wait().success());
}

#[test]
fn an_open_websocket_is_closed_at_the_deadline_of_the_drain() {
    let (closed, end) = channel();
    let origin = Origin::responding(move |_, stream| {
        http::silence(Duration::from_millis(50));
        let head =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let _end = stream.read_to_end(&mut Vec::new());
        closed.send(()).unwrap();
        After::Close
    });
    let edge = Setup::new()
        .conf("connections", "{ drain_seconds: 1 }")
        .acme(&origin.record())
        .start();
    let mut socket = Connection::open(edge.http);
    socket.send(
        format!(
            "GET / HTTP/1.1\r\nHost: {DOMAIN}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        )
        .as_bytes(),
    );
    assert_eq!(socket.receive("GET").unwrap().status, 101);
    edge.signal("TERM");
    assert_eq!(socket.receive_rest(), b"");
    end.recv_timeout(TIMEOUT).unwrap();
    edge.wait();
}

#[test]
fn every_response_is_in_the_access_log_when_the_process_has_ended() {
    let slow = Slow::start("{}");
    let mut connection = Connection::open(slow.edge.http);
    let text = format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").repeat(500);
    connection.send(text.as_bytes());
    for _ in 0..500 {
        assert_eq!(connection.receive("GET").unwrap().status, 200);
    }
    let mut busy = slow.begin();
    slow.edge.signal("TERM");
    slow.edge.wait_for_log(is_leaving);
    slow.proceed.send(()).unwrap();
    assert_eq!(busy.receive("GET").unwrap().status, 200);
    connection.stream().shutdown(Shutdown::Both).unwrap();
    let lines = slow.edge.stopped();
    let count = |route| lines.iter().filter(|line| line["route"] == route).count();
    assert_eq!((count("fast_path"), count("origin")), (500, 1));
}

/// A supervisor keeps the socket open, so what comes between two processes waits for the second.
#[test]
fn a_restart_with_a_socket_of_the_supervisor_refuses_no_connection() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let listen = format!("{{ http: [\"{address}\"], operator: \"127.0.0.1:0\" }}");
    let setup = Setup::new().conf("listen", &listen).inheriting(socket);
    let edge = setup.acme("").with_skill().start();
    assert_eq!(edge.http, address);
    assert_eq!(edge.get(DOMAIN, "/skill.md").status, 200);
    edge.signal("TERM");
    let setup = edge.ended();
    let mut waiting = Connection::open(address);
    let request = format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
    waiting.send(request.as_bytes());
    let _edge = setup.start();
    assert_eq!(waiting.receive("GET").unwrap().status, 200);
}
