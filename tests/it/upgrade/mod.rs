//! `waypost upgrade`: another process takes the place of a running gateway, and clients see
//! nothing of it.

mod crashes;

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::process::Output;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::drain::wait_until_closed;
use crate::edge::Setup;
use crate::http::{Connection, TIMEOUT};
use crate::origin::Origin;
use crate::presets::{DOMAIN, SKILL};
use crate::repository::{Repository, follow, queue, setup};
use crate::tls::{Encrypted, encrypted, raw};

/// A process that a gateway has started to replace itself. It is not a child of the test.
#[derive(Debug)]
struct Successor(String);

impl Drop for Successor {
    fn drop(&mut self) {
        signal(&self.0, "KILL");
    }
}

fn signal(process: &str, name: &str) {
    let _already_ended = std::process::Command::new("kill")
        .args(["-s", name, process])
        .output();
}

/// Waits until a gateway, which serves already, has its socket for upgrades; returns its path.
#[track_caller]
fn socket(setup: &Setup) -> PathBuf {
    let socket = setup.path("store").join("upgrade.sock");
    wait_until(|| socket.exists());
    socket
}

/// Asks a gateway to replace its process by one of another program.
#[track_caller]
fn upgrade_to(setup: &Setup, program: &str) -> Output {
    socket(setup);
    setup.run(&["upgrade", "--program", program])
}

/// Replaces the process of a gateway by another one of the same program.
#[track_caller]
fn upgrade(setup: &Setup) -> Successor {
    socket(setup);
    let output = setup.run(&["upgrade"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let process = text
        .strip_prefix("process ")
        .and_then(|rest| rest.strip_suffix(" serves\n"));
    Successor(
        process
            .unwrap_or_else(|| panic!("{text}{:?}", output.stderr))
            .to_owned(),
    )
}

#[track_caller]
fn wait_until(is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < TIMEOUT, "it did not happen in time");
        crate::http::pause();
    }
}

fn request(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").into_bytes()
}

/// Counts the responses of clients until the test ends, and collects their failures.
#[derive(Debug, Default)]
struct Load {
    is_over: AtomicBool,
    responses: AtomicUsize,
    errors: Mutex<Vec<String>>,
}

/// Ends the load when it is dropped, also after a panic.
struct Over<'l>(&'l Load);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

impl Load {
    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    /// Waits until there are more responses than this, or an error.
    #[track_caller]
    fn wait_for(&self, least: usize) {
        let mut last = (self.responses.load(Ordering::Relaxed), Instant::now());
        while last.0 <= least && self.errors.lock().unwrap().is_empty() {
            let now = self.responses.load(Ordering::Relaxed);
            if now > last.0 {
                last = (now, Instant::now());
            }
            assert!(last.1.elapsed() < TIMEOUT, "there are no more responses");
            crate::http::pause();
        }
    }

    /// Counts a response, or the reason why a client got none.
    fn count(&self, status: Result<u16, String>) {
        match status {
            Ok(200) => {
                self.responses.fetch_add(1, Ordering::Relaxed);
            }
            Ok(other) => self.errors.lock().unwrap().push(format!("status {other}")),
            Err(why) => self.errors.lock().unwrap().push(why),
        }
    }

    /// Sends requests on connections that stay open as long as the gateway wants.
    fn keep_alive(&self, gateway: SocketAddr, path: &str) {
        while self.goes_on() {
            let mut connection = Connection::open(gateway);
            while self.goes_on() {
                let sent = connection.try_send(&request(path));
                let response = sent.ok().and_then(|()| connection.receive("GET"));
                let Some(response) = response else {
                    self.count(Err(format!("{path}: the connection was closed")));
                    break;
                };
                self.count(Ok(response.status));
                if response.field("connection") == Some("close") {
                    break;
                }
            }
        }
    }

    /// Opens a connection for each request.
    fn connect(&self, gateway: SocketAddr) {
        while self.goes_on() {
            let mut connection = Connection::open(gateway);
            let sent = connection.try_send(&request("/skill.md"));
            let response = sent.ok().and_then(|()| connection.receive("GET"));
            let status = response.map(|response| response.status);
            self.count(status.ok_or_else(|| "a new connection was closed".to_owned()));
        }
    }

    /// Does the same as `http2`, in a thread of its own.
    fn http2_alone(&self, gateway: &Encrypted) {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(self.http2(gateway));
    }

    /// Sends requests over HTTP/2, on each connection until the gateway says `GOAWAY`.
    async fn http2(&self, gateway: &Encrypted) {
        while self.goes_on() {
            let mut client = gateway.http2().await;
            while self.goes_on() {
                match client.get(DOMAIN, "/skill.md").await {
                    Ok(response) => self.count(Ok(response.status)),
                    // RFC 9113 §6.8: the request was not processed, and can be sent again.
                    Err(error)
                        if error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR) =>
                    {
                        break;
                    }
                    Err(error) => {
                        self.count(Err(format!("HTTP/2: {error:?}")));
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn upgrades_under_load_refuse_and_reset_nothing() {
    // A long run has more than a million responses.
    let (upgrades, each) = match std::env::var_os("WAYPOST_LONG_TESTS") {
        Some(_) => (50, 20_500),
        None => (3, 200),
    };
    let origin = Origin::start();
    let authority = crate::certificates::Authority::new();
    let setup = encrypted(
        &authority,
        Setup::new().conf("connections", "{ drain_idle_seconds: 10 }"),
    );
    let edge = setup.acme_before(&origin).start();
    let gateway = Encrypted { authority, edge };
    let http = gateway.edge.http;
    let load = Load::default();
    let _newest = std::thread::scope(|scope| {
        scope.spawn(|| load.keep_alive(http, "/skill.md"));
        scope.spawn(|| load.keep_alive(http, "/guide"));
        scope.spawn(|| load.connect(http));
        scope.spawn(|| load.http2_alone(&gateway));
        let mut newest: Option<Successor> = None;
        for _ in 0..upgrades {
            let before = load.responses.load(Ordering::Relaxed);
            let next = upgrade(&gateway.edge.setup);
            // The earlier process ends by itself.
            if let Some(ended) = newest.replace(next) {
                std::mem::forget(ended);
            }
            load.wait_for(before + each);
        }
        load.is_over.store(true, Ordering::Relaxed);
        newest
    });
    let responses = load.responses.into_inner();
    let errors = load.errors.into_inner().unwrap();
    println!(
        "{upgrades} upgrades, {responses} responses, {} errors",
        errors.len()
    );
    assert!(
        errors.is_empty(),
        "{errors:?}, beside {responses} responses"
    );
    assert!(responses > each * upgrades, "{responses}");
}

/// Two units with the same socket (`Sockets=` of systemd): one starts before the other stops.
#[test]
fn two_units_that_share_a_socket_replace_each_other_and_refuse_nothing() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let http = socket.local_addr().unwrap();
    let listen =
        format!("{{ http: [\"{http}\"], operator: \"127.0.0.1:0\", upgrade_socket: false }}");
    let origin = Origin::start();
    let setup = Setup::new()
        .conf("listen", &listen)
        .conf("connections", "{ drain_idle_seconds: 2 }")
        .acme_before(&origin)
        .inheriting(socket.try_clone().unwrap());
    let green = setup.beside().inheriting(socket.try_clone().unwrap());
    let again = setup.beside().inheriting(socket);
    let mut running = setup.start();
    let load = Load::default();
    let mut ended = Vec::new();
    let _last = std::thread::scope(|scope| {
        scope.spawn(|| load.keep_alive(http, "/skill.md"));
        scope.spawn(|| load.keep_alive(http, "/guide"));
        scope.spawn(|| load.connect(http));
        scope.spawn(|| load.connect(http));
        for next in [green, again] {
            load.wait_for(load.responses.load(Ordering::Relaxed) + 100);
            let next = next.start();
            load.wait_for(load.responses.load(Ordering::Relaxed) + 100);
            running.signal("TERM");
            // The directory of its setup has the store.
            ended.push(std::mem::replace(&mut running, next).ended());
        }
        load.wait_for(load.responses.load(Ordering::Relaxed) + 100);
        load.is_over.store(true, Ordering::Relaxed);
        running
    });
    let errors = load.errors.into_inner().unwrap();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn a_program_that_fails_leaves_the_running_gateway_alone() {
    let edge = Setup::new()
        .conf("connections", "{ upgrade_seconds: 4 }")
        .acme("")
        .with_skill()
        .start();
    let mut idle = Connection::open(edge.http);
    let hanging = edge.setup.path("hanging");
    std::fs::write(&hanging, "#!/bin/sh\nexec sleep 300\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&hanging, mode).unwrap();
    let no_program = edge.setup.path("waypost.yaml");
    for (program, why) in [
        ("/bin/false", "the new process ended before it served"),
        (
            hanging.to_str().unwrap(),
            "did not serve within 4 s (connections.upgrade_seconds)",
        ),
        (no_program.to_str().unwrap(), "Permission denied"),
    ] {
        let Output { status, stderr, .. } = upgrade_to(&edge.setup, program);
        let stderr = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(2), "{program}: {stderr}");
        assert!(stderr.contains(why), "{program}: {stderr}");
        assert!(stderr.contains("the running gateway goes on"), "{stderr}");
    }
    idle.send(&request("/skill.md"));
    let response = idle.receive("GET").unwrap();
    assert_eq!((response.status, response.field("connection")), (200, None));
    assert_eq!(edge.get(DOMAIN, "/skill.md").status, 200);
}

/// A second gateway, which starts with the same store, looks whether the first one lives.
#[test]
fn a_second_gateway_at_the_socket_is_no_failed_upgrade() {
    let edge = Setup::new().acme("").start();
    drop(UnixStream::connect(socket(&edge.setup)).unwrap());
    // Requests are answered in their order.
    let output = upgrade_to(&edge.setup, "/bin/false");
    assert_eq!(output.status.code(), Some(2));
    let failed = |line: &serde_json::Value| line["level"] == "error" && line["target"] == "upgrade";
    edge.wait_for_log(failed);
    assert_eq!(edge.count_log(failed), 1);
}

/// Files that a new process cannot read must not stop the old one.
#[test]
fn a_configuration_with_mistakes_leaves_the_running_gateway_alone() {
    let edge = Setup::new().acme("").with_skill().start();
    std::fs::write(
        edge.setup.path("waypost.yaml"),
        "listen: { http: nowhere }\n",
    )
    .unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_waypost"))
        .args(["upgrade", "--conf"])
        .arg(edge.setup.path("waypost.yaml"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(edge.get(DOMAIN, "/skill.md").status, 200);
}

#[test]
fn the_new_process_serves_while_the_old_one_finishes_its_requests() {
    let (origin, proceed) = Origin::with_delayed_body();
    // The old process may still accept a connection, and waits for its request.
    let edge = Setup::new()
        .conf("connections", "{ drain_idle_seconds: 10 }")
        .acme_before(&origin)
        .start();
    let old = edge.id().to_string();
    let mut busy = Connection::open(edge.http);
    busy.send(&request("/guide"));
    origin.wait_for(1);
    let new = upgrade(&edge.setup);
    assert_ne!(new.0, old);
    assert_eq!(edge.get(DOMAIN, "/skill.md").status, 200);
    let ready = crate::http::request(edge.operator, "GET", "operator", "/readyz", &[]);
    assert_eq!((ready.status, ready.text()), (200, "ready\n"));
    proceed.send(()).unwrap();
    let late = busy.receive("GET").unwrap();
    assert_eq!((late.status, late.text()), (200, "late"));
    let setup = edge.ended();
    // Another one takes the place of the second, although its first parent has ended.
    let _newest = upgrade(&setup);
    wait_until(|| !std::path::Path::new(&format!("/proc/{}", new.0)).exists());
}

/// One worker builds at a time: the new one begins when the old one has ended.
#[test]
fn updates_are_built_after_an_upgrade() {
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let edge = setup.acme(&docs.record()).start();
    let _new = upgrade(&edge.setup);
    edge.wait_for_log(|line| line["message"] == "the worker of the earlier process has ended");
    let id = queue(&edge.setup, "acme");
    assert_eq!(follow(&edge.setup, &id)["status"], "success");
    assert_eq!(edge.get(DOMAIN, "/skill.md").status, 200);
}

#[test]
fn systemd_learns_when_a_process_serves_and_which_is_the_main_one() {
    let setup = Setup::new().acme("").with_skill();
    let path = setup.path("notify");
    let notified = UnixDatagram::bind(&path).unwrap();
    notified.set_read_timeout(Some(TIMEOUT)).unwrap();
    let receive = || {
        let mut bytes = [0; 256];
        let length = notified.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    };
    let variable = format!("NOTIFY_SOCKET={}", path.display());
    let edge = setup.wrapped_by(&["env", &variable]).start();
    assert_eq!(receive().trim(), "READY=1");
    let new = upgrade(&edge.setup);
    assert_eq!(receive().trim(), "READY=1", "of the new process");
    assert_eq!(receive().trim(), format!("MAINPID={}", new.0));
}

#[test]
fn idle_connections_are_closed_one_after_the_other() {
    let edge = Setup::new()
        .conf(
            "connections",
            "{ drain_idle_seconds: 60, drain_seconds: 60 }",
        )
        .acme("")
        .with_skill()
        .start();
    let mut idle: Vec<_> = (0..8)
        .map(|_| {
            let mut connection = Connection::open(edge.http);
            connection.send(&request("/skill.md"));
            assert_eq!(connection.receive("GET").unwrap().status, 200);
            connection
        })
        .collect();
    edge.signal("TERM");
    wait_until_closed(edge.http);
    let since = Instant::now();
    let answered = idle.iter_mut().filter_map(|connection| {
        connection.try_send(&request("/skill.md")).ok()?;
        let response = connection.receive("GET")?;
        assert_eq!(response.field("connection"), Some("close"));
        Some(response)
    });
    // The first of them is closed at once.
    assert!(answered.count() >= 6);
    assert!(since.elapsed() < Duration::from_secs(30));
    assert!(edge.wait().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_http_2_connections_are_told_to_close_one_after_the_other() {
    let gateway = Encrypted::start("{ drain_idle_seconds: 60, drain_seconds: 60 }");
    let mut idle = Vec::new();
    for _ in 0..8 {
        let mut client = gateway.http2().await;
        assert_eq!(client.get(DOMAIN, "/skill.md").await.unwrap().status, 200);
        idle.push(client);
    }
    let since = Instant::now();
    gateway.edge.signal("TERM");
    wait_until_closed(gateway.edge.http);
    let mut answered = 0;
    for client in &mut idle {
        answered += usize::from(client.get(DOMAIN, "/skill.md").await.is_ok());
    }
    // After a third of the time, a third of them may have been told.
    assert!(answered >= 5, "{answered}");
    assert!(since.elapsed() < Duration::from_secs(20));
    drop(idle);
    assert!(gateway.edge.wait().success());
}

/// RFC 9113 §6.8: the first `GOAWAY` names no last stream, because requests may be on their way;
/// the second one does.
#[test]
fn an_http_2_client_is_told_twice() {
    const PING: u8 = 6;
    const ACK: u8 = 1;
    let gateway = Encrypted::start("{ drain_seconds: 60 }");
    let mut connection = gateway.raw();
    connection.send(&raw::get(1, DOMAIN, "/skill.md"));
    raw::wait_for(&mut connection, |frame| frame.kind == raw::HEADERS);
    gateway.edge.signal("TERM");
    let last = |frame: &raw::Frame| u32::from_be_bytes(frame.payload[..4].try_into().unwrap());
    let first = raw::wait_for(&mut connection, |frame| frame.kind == raw::GOAWAY);
    assert_eq!((last(&first), raw::code(&first)), (0x7fff_ffff, 0));
    let ping = raw::wait_for(&mut connection, |frame| frame.kind == PING);
    // A request that was on its way when the client read the first one.
    connection.send(&raw::get(3, DOMAIN, "/skill.md"));
    connection.send(&raw::frame(PING, ACK, 0, &ping.payload));
    let answered = raw::wait_for(&mut connection, |frame| frame.kind == raw::HEADERS);
    assert_eq!(answered.stream, 3);
    let second = raw::wait_for(&mut connection, |frame| frame.kind == raw::GOAWAY);
    assert_eq!((last(&second), raw::code(&second)), (3, 0));
}

/// A load balancer sends the requests of many clients on connections that it keeps. If it sends one
/// while the gateway closes the connection, its client gets 502.
#[test]
fn an_idle_connection_of_a_load_balancer_gets_the_response_to_its_next_request() {
    let origin = Origin::start();
    let edge = Setup::new()
        .conf(
            "connections",
            "{ trusted_peers: [127.0.0.0/8], drain_idle_seconds: 0, drain_seconds: 60 }",
        )
        .acme_before(&origin)
        .start();
    let mut balancer = Connection::open(edge.http);
    balancer.send(&request("/guide"));
    assert_eq!(balancer.receive("GET").unwrap().status, 200);
    edge.signal("TERM");
    wait_until_closed(edge.http);
    edge.wait_for_log(|line| {
        let message = line["message"].as_str();
        message.is_some_and(|text| text.starts_with("draining:"))
    });
    // It is not idempotent, so a balancer cannot send it again.
    let order = format!("POST /orders HTTP/1.1\r\nHost: {DOMAIN}\r\nContent-Length: 2\r\n\r\n{{}}");
    balancer.send(order.as_bytes());
    let response = balancer.receive("POST").unwrap();
    assert_eq!(response.status, 200);
    assert_eq!(response.field("connection"), Some("close"));
    assert!(edge.wait().success());
}
