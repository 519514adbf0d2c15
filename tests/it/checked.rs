//! `waypost check --conf` finds what would fail at the start, at a reload or at the first request,
//! all at once, and changes nothing.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use crate::certificates::Authority;
use crate::edge::{LOCAL_UPSTREAMS, Setup};
use crate::http::{TIMEOUT, pause};
use crate::ports::free_address;
use crate::store_postgres::{Objects, cluster, command, init, machine, private};

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
    for (format, key) in [("json", "errors"), ("sarif", "runs")] {
        let output = setup.run(&["check", "--format", format]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(
            report[key].is_number() || report[key].is_array(),
            "{report}"
        );
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
fn every_further_address_directory_file_and_program_is_looked_at() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let other_port = other.local_addr().unwrap();
    let closed_at = free_address();
    let setup = Setup::new().site("acme", "");
    let file = setup.path("file");
    fs::write(&file, "").unwrap();
    let key = setup.path("edges.key");
    fs::write(&key, "key\n").unwrap();
    private(&key);
    let key = key.display();
    let account = setup.path("acme.key");
    let account = account.display();
    let setup = setup
        .conf(
            "listen",
            "{ http: [\"127.0.0.1:0\"], https: [\"127.0.0.1:0\"], operator: \"127.0.0.1:0\" }",
        )
        .conf(
            "edges",
            &format!("{{ listen: \"{port}\", certificate: /nowhere/edges.crt, key: {key} }}"),
        )
        .conf("worker", &format!("{{ operator: \"{other_port}\" }}"))
        .conf(
            "upstream",
            &format!(
                "{{ {LOCAL_UPSTREAMS}, copies: {{ directory: {}/copies }} }}",
                file.display()
            ),
        )
        .conf("generate", "{ command: [no-such-writer] }")
        .conf(
            "acme",
            &format!(
                "{{ authorities: [{{ directory: \"https://{closed_at}/directory\" }}], \
                 agree_to_terms: true, key_file: {account}, challenges: [dns-01], \
                 dns_command: [/nowhere/dns, set] }}"
            ),
        );
    let text = finds(
        &setup.run(&["check"]),
        1,
        &[
            &format!("listen on {port}: Address already in use"),
            &format!("listen on {other_port}: Address already in use"),
            "`edges.certificate`: there is no file /nowhere/edges.crt",
            "file is not a directory",
            "`generate.command`: there is no program no-such-writer",
            "`acme.dns_command`: there is no program /nowhere/dns",
            &format!("the authority at {closed_at} does not accept connections now"),
        ],
    );
    assert_eq!(text.matches("error[").count(), 6, "{text}");
    assert_eq!(text.matches("warning[").count(), 1, "{text}");
    let text = finds(&setup.run(&["check", "--offline"]), 1, &[]);
    assert!(!text.contains("does not accept"), "{text}");
    // A file that is there and cannot be executed is no program; one that can be executed is.
    let script = setup.path("writer");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    let command = format!("{{ command: [{}] }}", script.display());
    let output = setup.run_with("generate", &command, &["check", "--offline"]);
    finds(&output, 1, &["`generate.command`: ", "cannot be executed"]);
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let output = setup.run_with("generate", &command, &["check", "--offline"]);
    assert!(!finds(&output, 1, &[]).contains("generate.command"));
    let output = setup.run_with("generate", "{ command: [sh] }", &["check", "--offline"]);
    assert!(!finds(&output, 1, &[]).contains("generate.command"));
}

#[test]
fn the_address_of_a_worker_that_runs_is_not_taken() {
    let address = free_address();
    let setup = Setup::new().site("acme", "").conf(
        "worker",
        &format!("{{ operator: \"{address}\", embedded: false }}"),
    );
    setup.write_conf();
    let mut worker = Command::new(env!("CARGO_BIN_EXE_waypost"))
        .args(["worker", "--conf"])
        .arg(setup.path("waypost.yaml"))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let since = Instant::now();
    let workers = setup.path("updates.sqlite.workers");
    let is_there = |entries: fs::ReadDir| {
        entries
            .flatten()
            .any(|e| e.path().extension().is_some_and(|end| end == "lock"))
    };
    while !fs::read_dir(&workers).is_ok_and(is_there) {
        assert!(since.elapsed() < TIMEOUT, "the worker in time");
        pause();
    }
    let output = setup.run(&["check"]);
    worker.kill().unwrap();
    worker.wait().unwrap();
    finds(&output, 0, &[]);
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

#[test]
fn the_key_file_of_an_edge_is_made_at_its_first_start() {
    let setup = Setup::new();
    let token = setup.path("token");
    fs::write(&token, "waypost_edge").unwrap();
    private(&token);
    let (key, cache) = (setup.path("keys/edge.key"), setup.path("cache"));
    let store = format!(
        "{{ follow: {{ url: \"https://node.test\", token_file: {}, key_file: {}, cache: {}, \
         public_keys: [\"ed25519:{}=\"] }} }}",
        token.display(),
        key.display(),
        cache.display(),
        "A".repeat(43)
    );
    let setup = setup.conf("store", &store);
    let output = setup.run(&["check", "--offline"]);
    finds(&output, 0, &["0 errors, 0 warnings"]);
    assert!(!key.exists() && !cache.exists());
}

#[test]
fn objects_of_the_store_that_cannot_be_used_are_found() {
    let cluster = cluster();
    let setup = machine(&cluster, None, &Objects::Directory).acme("");
    let check = |code, all: &[&str]| finds(&setup.run(&["check"]), code, all);
    init(&setup);
    check(0, &["0 errors, 0 warnings"]);
    let (objects, unmounted) = (setup.path("objects"), setup.path("unmounted"));
    let marker = objects.join("waypost-store");
    let store = fs::read_to_string(&marker).unwrap();
    fs::write(&marker, "another").unwrap();
    check(
        1,
        &[
            "`store.objects.url`: use the objects in ",
            "it belongs to another store",
        ],
    );
    fs::remove_file(&marker).unwrap();
    check(
        1,
        &["it has no object `waypost-store`; `waypost store init` makes it"],
    );
    fs::write(&marker, store).unwrap();
    // A directory that is not mounted, or a server that does not answer, may be back at the start.
    fs::rename(&objects, &unmounted).unwrap();
    check(
        0,
        &[
            "warning[conf]: `store.objects.url`: ",
            "0 errors, 1 warning",
        ],
    );
    assert!(!objects.exists());
    fs::rename(&unmounted, &objects).unwrap();
    check(0, &["0 errors, 0 warnings"]);
}

/// A machine whose store is in a database at this address, with a mistake in its site records.
fn with_store_at(address: SocketAddr) -> Setup {
    let setup = Setup::new();
    let (objects, cache) = (setup.path("objects"), setup.path("cache"));
    fs::create_dir(&objects).unwrap();
    let postgres = format!("postgres://waypost@{address}/waypost");
    let store = format!(
        "{{ postgres: {{ url: \"{postgres}\", tls: false, cache: {} }}, \
         objects: {{ url: \"file://{}\" }} }}",
        cache.display(),
        objects.display()
    );
    setup
        .conf("store", &store)
        .site("acme", "domains: [docs.acme.test]")
        .site("other", "domains: [docs.acme.test]")
}

#[test]
fn a_database_of_the_store_that_does_not_answer_hides_no_other_finding() {
    let setup = with_store_at(free_address());
    let claimed = "docs.acme.test is a host of project acme already";
    let text = finds(
        &setup.run(&["check"]),
        1,
        &[
            "warning[conf]: `store.postgres.url`: no database answers now: ",
            "Connection refused",
            "of the sites only those in files were checked",
            claimed,
        ],
    );
    assert!(text.contains("1 error, 1 warning"), "{text}");
    setup.remove_site("other");
    finds(&setup.run(&["check"]), 0, &["0 errors, 1 warning"]);
    assert!(!setup.path("cache").exists());
}

#[test]
fn an_offline_check_connects_to_no_database_of_the_store() {
    let database = TcpListener::bind("127.0.0.1:0").unwrap();
    database.set_nonblocking(true).unwrap();
    let setup = with_store_at(database.local_addr().unwrap());
    let output = setup.run(&["check", "--offline"]);
    let claimed = "docs.acme.test is a host of project acme already";
    let text = finds(&output, 1, &[claimed, "1 error, 0 warnings"]);
    assert!(!text.contains("database"), "{text}");
    let refused = database.accept().unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    assert!(!setup.path("cache").exists());
}

#[test]
fn the_records_in_a_database_are_checked_and_a_database_that_cannot_be_used_is_an_error() {
    let mut cluster = cluster();
    let setup = machine(&cluster, None, &Objects::Directory).acme("");
    let check = |code, all: &[&str]| finds(&setup.run(&["check"]), code, all);
    check(
        1,
        &["`store.postgres.url`: the database has no store; `waypost store init` makes it"],
    );
    init(&setup);
    let closed_at = free_address();
    let record = setup.path("record.yaml");
    let text =
        format!("owner: stored\nsubdomain: stored\norigin: {{ url: \"http://{closed_at}\" }}\n");
    fs::write(&record, text).unwrap();
    command(&setup, &["site", "set", "stored", record.to_str().unwrap()]);
    let cache = setup.path("store");
    fs::remove_dir_all(&cache).unwrap();
    let down = format!("the server {closed_at} of stored does not accept connections now");
    check(0, &[&down]);

    let mut password = OpenOptions::new();
    let mut password = password.append(true).open(setup.path("password")).unwrap();
    password.write_all(b"!").unwrap();
    let text = check(
        1,
        &["`store.postgres.url`: the database refuses access: password"],
    );
    assert!(!text.contains(&down), "{text}");
    fs::copy(cluster.password_file(), setup.path("password")).unwrap();
    private(&setup.path("password"));
    let identity = "UPDATE waypost_store.identity SET version = 9, compatible = 9";
    cluster.psql("waypost", identity).unwrap();
    check(1, &["`store.postgres.url`: the store has schema 9"]);
    cluster.stop();
    check(
        0,
        &["warning[conf]: `store.postgres.url`: no database answers now: "],
    );
    assert!(!cache.exists());
}
