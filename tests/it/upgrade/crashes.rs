//! Processes that are killed in the middle of an upgrade.

use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::{Load, Over, request, signal, socket, upgrade, upgrade_to, wait_until};
use crate::edge::Setup;
use crate::http::Connection;
use crate::presets::{DOMAIN, SKILL};
use crate::repository::{Repository, follow, queue, setup};
use crate::tls::{Encrypted, encrypted};

/// When a new process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Killed {
    /// It loads, and has not greeted itself.
    Loading,
    /// It has greeted itself and taken the socket for upgrades over, and is about to tell systemd
    /// and the old process that it serves.
    Greeted,
}

/// How often each crash happens.
fn rounds() -> usize {
    match std::env::var_os("WAYPOST_LONG_TESTS") {
        Some(_) => 20,
        None => 1,
    }
}

/// Fills the queue of a datagram socket, so that the next sender waits.
fn fill(path: &Path) {
    loop {
        // One socket alone may send less than the queue holds.
        let sender = UnixDatagram::unbound().unwrap();
        sender.set_nonblocking(true).unwrap();
        if sender.send_to(b"full", path).is_err() {
            return;
        }
    }
}

/// Receives everything that is in the queue of a datagram socket.
fn empty(socket: &UnixDatagram) {
    socket.set_nonblocking(true).unwrap();
    while socket.recv(&mut [0; 256]).is_ok() {}
}

/// A new process that dies before it has said that it serves leaves the old one alone, and no
/// request fails.
#[test]
fn a_new_process_that_is_killed_under_load_leaves_the_running_gateway_alone() {
    let authority = crate::certificates::Authority::new();
    // A connection that was accepted just before the change has time for its request.
    let connections = "{ drain_idle_seconds: 2 }";
    let setup = encrypted(&authority, Setup::new().conf("connections", connections));
    let path = setup.path("notify");
    let notified = UnixDatagram::bind(&path).unwrap();
    let variable = format!("NOTIFY_SOCKET={}", path.display());
    let setup = setup.acme("").with_skill();
    let edge = setup.wrapped_by(&["env", &variable]).start();
    let (program, named) = (edge.setup.path("program"), edge.setup.path("process"));
    let script = format!(
        "#!/bin/sh\necho $$ > {named}.new && mv {named}.new {named}\nexec {} \"$@\"\n",
        env!("CARGO_BIN_EXE_waypost"),
        named = named.display(),
    );
    std::fs::write(&program, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    // A process waits for this lock when it opens the store.
    let lock = std::fs::File::options()
        .write(true)
        .open(edge.setup.path("store/lock"))
        .unwrap();
    let gateway = Encrypted { authority, edge };
    let edge = &gateway.edge;
    let socket = socket(&edge.setup);
    let inode = || std::fs::metadata(&socket).map_or(0, |found| found.ino());
    let load = Load::default();
    std::thread::scope(|scope| {
        let _over = Over(&load);
        scope.spawn(|| load.keep_alive(edge.http, "/skill.md"));
        scope.spawn(|| load.connect(edge.http));
        scope.spawn(|| load.http2_alone(&gateway));
        let stages = [Killed::Loading, Killed::Greeted];
        for killed in stages.into_iter().cycle().take(2 * rounds()) {
            let before = inode();
            match killed {
                Killed::Loading => lock.lock().unwrap(),
                Killed::Greeted => fill(&path),
            }
            let upgrade = scope.spawn(|| upgrade_to(&edge.setup, program.to_str().unwrap()));
            wait_until(|| named.exists());
            if killed == Killed::Greeted {
                wait_until(|| inode() != before);
            }
            load.wait_for(load.responses.load(Ordering::Relaxed) + 100);
            signal(std::fs::read_to_string(&named).unwrap().trim(), "KILL");
            let output = upgrade.join().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{killed:?}: {stderr}");
            assert!(
                stderr.contains("the new process ended"),
                "{killed:?}: {stderr}"
            );
            load.wait_for(load.responses.load(Ordering::Relaxed) + 100);
            lock.unlock().unwrap();
            empty(&notified);
            std::fs::remove_file(&named).unwrap();
        }
    });
    let errors = load.errors.into_inner().unwrap();
    assert!(errors.is_empty(), "{errors:?}");
    // The next upgrade works.
    let _new = upgrade(&edge.setup);
    assert_eq!(edge.get(DOMAIN, "/skill.md").status, 200);
}

/// The new process is killed while the old one drains, and another one is started with the same
/// socket, as systemd does. The clients lose only the requests that the killed process had. Returns
/// these failures.
fn lost_after_a_kill_during_the_drain(is_http2: bool) -> Vec<String> {
    let authority = crate::certificates::Authority::new();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let listen = match is_http2 {
        true => format!("http: [\"127.0.0.1:0\"], https: [\"{address}\"]"),
        false => format!("http: [\"{address}\"]"),
    };
    let connections = "{ drain_idle_seconds: 60, drain_seconds: 60 }";
    let setup = encrypted(&authority, Setup::new())
        .conf("connections", connections)
        .conf(
            "listen",
            &format!("{{ {listen}, operator: \"127.0.0.1:0\" }}"),
        )
        .acme("")
        .with_skill()
        .inheriting(socket.try_clone().unwrap());
    let again = setup.beside().inheriting(socket);
    let edge = setup.start();
    // The old process does not end before the test.
    let _idle = Connection::open(edge.http);
    let gateway = Encrypted { authority, edge };
    let load = Load::default();
    let clients = if is_http2 { 1 } else { 3 };
    let _last = std::thread::scope(|scope| {
        let _over = Over(&load);
        match is_http2 {
            true => drop(scope.spawn(|| load.http2_alone(&gateway))),
            false => {
                scope.spawn(|| load.keep_alive(address, "/skill.md"));
                scope.spawn(|| load.keep_alive(address, "/skill.md"));
                scope.spawn(|| load.connect(address));
            }
        }
        load.wait_for(100);
        let new = upgrade(&gateway.edge.setup);
        gateway.edge.wait_for_log(|line| {
            let message = line["message"].as_str();
            message.is_some_and(|text| text.starts_with("draining"))
        });
        // All clients have left the old process.
        load.wait_for(load.responses.load(Ordering::Relaxed) + 200);
        drop(new);
        let last = again.start();
        let responses = || load.responses.load(Ordering::Relaxed);
        let before = responses();
        wait_until(|| responses() > before + 200);
        last
    });
    let errors = load.errors.into_inner().unwrap();
    // A client has one request at a time.
    assert!(errors.len() <= clients, "{errors:?}");
    errors
}

#[test]
fn a_kill_during_the_drain_loses_only_the_requests_of_the_killed_process() {
    let lost = (0..rounds()).map(|_| lost_after_a_kill_during_the_drain(false));
    let lost: Vec<_> = lost.flatten().collect();
    println!("{} kills, {} lost requests: {lost:?}", rounds(), lost.len());
}

#[test]
fn a_kill_during_the_drain_loses_only_the_http_2_requests_of_the_killed_process() {
    let lost = (0..rounds()).map(|_| lost_after_a_kill_during_the_drain(true));
    let lost: Vec<_> = lost.flatten().collect();
    println!("{} kills, {} lost requests: {lost:?}", rounds(), lost.len());
}

/// The old process is killed while it drains: only its open connections are lost.
#[test]
fn an_old_process_that_is_killed_after_the_change_loses_only_its_connections() {
    let setup = setup().conf(
        "connections",
        "{ drain_idle_seconds: 60, drain_seconds: 60 }",
    );
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let edge = setup.acme(&docs.record()).with_skill().start();
    let mut idle = Connection::open(edge.http);
    idle.send(&request("/skill.md"));
    assert_eq!(idle.receive("GET").unwrap().status, 200);
    let _new = upgrade(&edge.setup);
    let http = edge.http;
    wait_until(|| {
        // The old process has closed its listener when only the new one accepts.
        edge.count_log(|line| {
            line["message"]
                .as_str()
                .is_some_and(|m| m.starts_with("draining"))
        }) > 0
    });
    let load = Load::default();
    let setup = std::thread::scope(|scope| {
        scope.spawn(|| load.keep_alive(http, "/skill.md"));
        scope.spawn(|| load.connect(http));
        load.wait_for(100);
        edge.signal("KILL");
        let setup = edge.ended();
        load.wait_for(load.responses.load(Ordering::Relaxed) + 200);
        load.is_over.store(true, Ordering::Relaxed);
        setup
    });
    // At most the request that a client had sent to the old process.
    let errors = load.errors.into_inner().unwrap();
    assert!(errors.len() <= 1, "{errors:?}");
    assert!(idle.try_send(&request("/skill.md")).is_err() || idle.receive("GET").is_none());
    // The new one builds.
    let id = queue(&setup, "acme");
    assert_eq!(follow(&setup, &id)["status"], "success");
}
