//! `waypost check --conf` finds what would fail at the start, at a reload or at the first request,
//! all at once, and changes nothing.

use std::fs;
use std::net::TcpListener;
use std::process::Output;

use crate::certificates::Authority;
use crate::edge::{LOCAL_UPSTREAMS, Setup};
use crate::ports::free_address;

#[track_caller]
fn finds(output: &Output, code: i32, all: &[&str]) -> String {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{text}{output:?}");
    for part in all {
        assert!(text.contains(part), "{part}\n{text}");
    }
    text
}

#[test]
fn a_right_configuration_has_no_diagnostics_and_nothing_is_made() {
    let setup = Setup::new().site("acme", "");
    finds(&setup.run(&["check"]), 0, &[]);
    for made in ["store", "updates.sqlite", "access.log", "builds"] {
        assert!(!setup.path(made).exists(), "{made}");
    }
    // A running gateway has its ports itself.
    let edge = setup.start();
    let conf = edge.setup.path("waypost.yaml");
    let text = fs::read_to_string(&conf).unwrap();
    let text = text.replace("127.0.0.1:0\"]", &format!("{}\"]", edge.http));
    let beside = edge.setup.path("beside.yaml");
    fs::write(&beside, text).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_waypost"));
    let output = command.args(["check", "--conf"]).arg(beside).output();
    finds(&output.unwrap(), 0, &[]);
}

#[test]
fn everything_that_would_fail_is_found_at_once_with_its_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap();
    let setup = Setup::new();
    let file = setup.path("file");
    fs::write(&file, "").unwrap();
    let below = |name: &str| file.join(name).display().to_string();
    let authority = Authority::new();
    let tls = setup.path("tls");
    authority
        .issue(&["docs.other.test"])
        .write(&tls, "docs.acme.test");
    let pair = tls.join("half.acme.test");
    authority
        .issue(&["half.acme.test"])
        .write(&tls, "half.acme.test");
    fs::remove_file(pair.join("privkey.pem")).unwrap();
    let setup = setup
        .conf(
            "listen",
            &format!("{{ http: [\"{port}\"], https: [\"127.0.0.1:0\"], operator: \"{port}\" }}"),
        )
        .conf(
            "store",
            &format!("{{ local: {{ path: {} }} }}", below("store")),
        )
        .conf(
            "queue",
            &format!("{{ sqlite: {{ path: {} }} }}", below("queue.sqlite")),
        )
        .conf("git", &format!("{{ mirrors: {} }}", below("mirrors")))
        .conf("access_log", "{ file: /nowhere/access.log }")
        .conf("log", "{ file: /nowhere/waypost.log }")
        .conf("generate", "{ model: { key_file: /nowhere/model.key } }")
        .conf(
            "tls",
            &format!(
                "{{ directory: {}, default: none.acme.test }}",
                tls.display()
            ),
        )
        .site("acme", "domains: [docs.acme.test]")
        .site("other", "domains: [docs.acme.test]");
    let output = setup.run(&["check", "--all"]);
    let text = finds(
        &output,
        1,
        &[
            &format!("listen on {port}: Address already in use"),
            &format!("`listen` names {port} twice"),
            "file is not a directory",
            "there is no directory /nowhere",
            "there is no file /nowhere/model.key",
            "the certificate for docs.acme.test: the certificate does not cover",
            "the certificate for half.acme.test: ",
            "there is no certificate for none.acme.test",
            "warning[conf]: there is no certificate for docs.acme.test, a domain of a site",
            "docs.acme.test is a host of project acme already",
        ],
    );
    let conf = setup.path("waypost.yaml").display().to_string();
    // Each has its line.
    let is_placed = |line: &&str| {
        let place = line.strip_prefix(&format!("{conf}:"));
        place.is_some_and(|place| place.starts_with(|first: char| first.is_ascii_digit()))
    };
    assert!(text.lines().filter(is_placed).count() >= 10, "{text}");
}

#[test]
fn a_server_that_accepts_no_connection_is_a_warning() {
    let closed_at = free_address();
    let open = TcpListener::bind("127.0.0.1:0").unwrap();
    let (open_at, record) = (open.local_addr().unwrap(), |at| {
        format!("origin: {{ url: \"http://{at}\" }}")
    });
    let setup = Setup::new()
        .site("down", &record(closed_at))
        .site("up", &record(open_at))
        .conf("upstream", &format!("{{ {LOCAL_UPSTREAMS} }}"));
    let text = finds(
        &setup.run(&["check"]),
        0,
        &[&format!(
            "the server {closed_at} of down does not accept connections now"
        )],
    );
    assert!(!text.contains(&open_at.to_string()), "{text}");
    let text = finds(&setup.run(&["check", "--offline"]), 0, &[]);
    assert!(!text.contains("does not accept"), "{text}");
}

#[test]
fn a_queue_that_cannot_be_used_is_found() {
    let setup = Setup::new().site("acme", "");
    let path = setup.path("updates.sqlite");
    fs::write(
        &path,
        "this is not a database, and long enough to be read as one".repeat(20),
    )
    .unwrap();
    finds(
        &setup.run(&["check"]),
        1,
        &["updates.sqlite: ", "not a database"],
    );
    fs::remove_file(&path).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch("PRAGMA user_version = 99")
        .unwrap();
    drop(connection);
    finds(&setup.run(&["check"]), 1, &["the queue has schema 99"]);
}
