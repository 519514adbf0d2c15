//! The server of a database, as machines see it: it proves who it is, and it may be replaced by one
//! that lacks the last commits.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::certificates::Authority;
use crate::cluster::{Cluster, PASSWORD, USER, as_user, program};
use crate::edge::{Edge, Setup};
use crate::ports::free_port;
use crate::queue_postgres::wait_until;
use crate::store_postgres::{Objects, cluster, init, machine, machine_at, private, serves, skill};

#[test]
fn a_server_whose_certificate_does_not_prove_its_name_is_refused() {
    let authority = Authority::new();
    let port = free_port();
    let cluster = Cluster::with_tls(port, &authority.issue(&["localhost"]));
    cluster.psql("postgres", "CREATE DATABASE waypost").unwrap();
    let other = free_port();
    let misnamed = Cluster::with_tls(other, &authority.issue(&["db.example.test"]));
    misnamed
        .psql("postgres", "CREATE DATABASE waypost")
        .unwrap();
    let setup = Setup::new();
    let (ours, another) = (setup.path("ca.pem"), setup.path("other.pem"));
    authority.write(&ours);
    Authority::new().write(&another);
    let password = setup.path("password");
    fs::copy(cluster.password_file(), &password).unwrap();
    private(&password);
    let queue = |port: u16, ca_file: &str| {
        let setup = Setup::new();
        let postgres = format!(
            "{{ postgres: {{ url: \"postgres://{USER}@localhost:{port}/waypost\", \
             password_file: {}{ca_file} }} }}",
            password.display()
        );
        setup.conf("queue", &postgres)
    };
    let trusting = |file: &std::path::Path| format!(", ca_file: {}", file.display());
    let refused = |setup: &Setup, sentence: &str| {
        let output = setup.run(&["queue", "init"]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && text.contains(sentence),
            "{text}"
        );
        assert!(text.contains("`queue.postgres.ca_file`"), "{text}");
    };
    // A different authority, and the authorities of this machine.
    for ca_file in [&*trusting(&another), ""] {
        refused(
            &queue(port, ca_file),
            "the certificate of the server is refused",
        );
    }
    // The right authority, and a server with another name.
    refused(&queue(other, &trusting(&ours)), "db.example.test");
    let tables = "SELECT to_regnamespace('waypost_queue')";
    for cluster in [&cluster, &misnamed] {
        assert_eq!(cluster.psql("waypost", tables).unwrap(), "");
    }
    // A server without TLS is refused too: a password is never sent to it.
    let port_of_plain = free_port();
    let mut plain = Cluster::empty(&["listen_addresses=127.0.0.1"]);
    plain.port = port_of_plain;
    plain.init();
    plain.restart();
    let output = queue(port_of_plain, "").run(&["queue", "init"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && text.contains("TLS"), "{text}");

    let setup = queue(port, &trusting(&ours));
    let output = setup.run(&["queue", "init"]);
    assert!(output.status.success(), "{output:?}");
    let encrypted = "SELECT count(*) FROM pg_stat_ssl WHERE ssl";
    let edge = setup.start();
    wait_until("the gateway uses TLS", || {
        cluster.psql("waypost", encrypted).unwrap() != "0"
    });
    drop(edge);
}

#[test]
fn after_a_fail_over_that_lost_commits_all_machines_compare_and_say_so() {
    let mut primary = Cluster::start(&[]);
    primary.psql("postgres", "CREATE DATABASE waypost").unwrap();
    let mut standby = primary.standby();
    let url = primary.url_with(&standby, "waypost");
    let password = primary.password_file();
    let first = machine_at(&url, &password, None, &Objects::Directory);
    init(&first);
    let second = machine_at(&url, &password, Some(&first), &Objects::Directory);
    for setup in [&first, &second] {
        setup.write_site("acme", "owner: acme");
    }
    let writer = machine_at(&url, &password, Some(&first), &Objects::Directory);
    writer.write_site("acme", "owner: acme");
    writer.publish("acme", &[("skill.md", &*skill(1))]);
    let gateways = [first.start(), second.start()];
    let all_serve = |number: usize| {
        for gateway in &gateways {
            wait_until("a gateway does not serve the release", || {
                serves(gateway, &skill(number))
            });
        }
    };
    all_serve(1);
    for gateway in &gateways {
        assert!(gateway.metric("store_database_durable") > 0.0);
        assert!((0.5..1.5).contains(&gateway.metric("store_database_timeline")));
        assert!(gateway.metric("store_database_connections_total") > 0.0);
    }
    let revision = "SELECT n FROM waypost_store.revision";
    wait_until("the standby has it", || {
        standby.psql("waypost", revision) == primary.psql("waypost", revision)
    });

    // The standby lacks what comes now.
    standby.stop();
    writer.publish("acme", &[("skill.md", &*skill(2))]);
    all_serve(2);
    primary.stop();
    standby.restart();
    standby.promote();
    // Everybody goes back together, and says so.
    all_serve(1);
    for gateway in &gateways {
        for sentence in [
            "has another history than before",
            "everything is compared, and sites may go back to an earlier state",
        ] {
            gateway.wait_for_log(|line| {
                let message = line["message"].as_str().unwrap_or_default();
                line["level"] == "error" && message.contains(sentence)
            });
        }
    }
    for gateway in &gateways {
        wait_until("the timeline is shown", || {
            gateway.metric("store_database_timeline") > 1.5
        });
    }
    // The next release is newer than both, also on a machine that knows the lost one.
    gateways[0].publish("acme", &[("skill.md", &*skill(3))]);
    all_serve(3);
    let follows = |edge: &Edge| edge.metric("follow_lag_revisions") == 0.0;
    assert!(gateways.iter().all(follows));
}

/// Runs a program of PostgreSQL on a server.
fn postgres(cluster: &Cluster, name: &str, arguments: &[&str]) {
    let output = as_user(&cluster.directory)
        .arg(program(name))
        .args(["-U", USER, "-p", &cluster.port.to_string(), "-h"])
        .arg(&cluster.directory)
        .args(arguments)
        .env("PGPASSWORD", PASSWORD)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_database_that_was_restored_on_the_same_server_has_another_history() {
    let cluster = cluster();
    let first = machine(&cluster, None, &Objects::Directory);
    init(&first);
    let second = machine(&cluster, Some(&first), &Objects::Directory);
    let writer = machine(&cluster, Some(&first), &Objects::Directory);
    for setup in [&first, &second, &writer] {
        setup.write_site("acme", "owner: acme");
    }
    writer.publish("acme", &[("skill.md", &*skill(1))]);
    let (running, stopped) = (first.start(), second.start());
    let all_serve = |gateways: &[&Edge], number: usize| {
        for gateway in gateways {
            wait_until("a gateway does not serve the release", || {
                serves(gateway, &skill(number))
            });
        }
    };
    all_serve(&[&running, &stopped], 1);
    postgres(&cluster, "pg_dump", &["-Fc", "-f", "dump", "waypost"]);
    writer.publish("acme", &[("skill.md", &*skill(2))]);
    all_serve(&[&running, &stopped], 2);
    wait_until("its position is not on disk", || {
        let position = fs::read_to_string(stopped.setup.path("store/follow-position"));
        position.is_ok_and(|text| text.contains("\"revision\":2"))
    });
    stopped.signal("KILL");
    let stopped = stopped.ended();

    // The dump lacks the second release. The revision reaches the same number again.
    cluster
        .psql("postgres", "DROP DATABASE waypost WITH (FORCE)")
        .unwrap();
    cluster.psql("postgres", "CREATE DATABASE waypost").unwrap();
    postgres(&cluster, "pg_restore", &["-d", "waypost", "dump"]);
    writer.publish("acme", &[("skill.md", &*skill(3))]);
    let revision = "SELECT n FROM waypost_store.revision";
    assert_eq!(cluster.psql("waypost", revision).unwrap(), "2");

    let restarted = stopped.start();
    all_serve(&[&running, &restarted], 3);
    let says = |gateway: &Edge, sentence: &str| {
        gateway.wait_for_log(|line| {
            let message = line["message"].as_str().unwrap_or_default();
            line["level"] == "error" && message.contains(sentence)
        });
    };
    says(&running, "the database of the store has another history");
    says(&running, "the database of the queue has another history");
    for gateway in [&running, &restarted] {
        says(
            gateway,
            "everything is compared, and sites may go back to an earlier state",
        );
    }
}

/// A metadata server of a machine in a cloud, which gives credentials. Returns its address, and the
/// requests that it got.
fn metadata_server() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&asked);
    let answer = move |mut stream: TcpStream| -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        loop {
            let mut first = String::new();
            if reader.read_line(&mut first).ok()? == 0 {
                return None;
            }
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).ok()?;
                if line.trim().is_empty() {
                    break;
                }
            }
            let path = first.split(' ').nth(1)?.to_owned();
            let body = match &*path {
                "/latest/api/token" => "a token",
                "/latest/meta-data/iam/security-credentials/" => "role",
                "/latest/meta-data/iam/security-credentials/role" => {
                    "{ \"AccessKeyId\": \"id\", \"SecretAccessKey\": \"secret\", \
                       \"Token\": \"session\", \"Code\": \"Success\", \
                       \"Expiration\": \"2099-01-01T00:00:00Z\" }"
                }
                _ => "",
            };
            seen.lock().unwrap().push(path);
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            stream.write_all(head.as_bytes()).ok()?;
            stream.write_all(body.as_bytes()).ok()?;
        }
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            answer(stream);
        }
    });
    (address, asked)
}

#[test]
fn a_machine_of_a_cloud_gets_its_credentials_over_http_and_the_objects_only_over_tls() {
    let cluster = cluster();
    let (metadata, asked) = metadata_server();
    // The object store: it notes the first byte of each connection, and ends it.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let first_bytes: Arc<Mutex<Vec<u8>>> = Arc::default();
    let seen = Arc::clone(&first_bytes);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut byte = [0];
            if stream.read_exact(&mut byte).is_ok() {
                seen.lock().unwrap().push(byte[0]);
            }
        }
    });
    let setup = machine(&cluster, None, &Objects::Directory);
    let text = |scheme: &str| {
        let password = setup.path("password");
        format!(
            "{{ postgres: {{ url: \"{}\", password_file: {}, tls: false, cache: {} }}, \
             objects: {{ url: \"s3://bucket/docs\", endpoint: \"{scheme}://127.0.0.1:{port}\", \
             region: eu-west-1 }} }}",
            cluster.url("waypost"),
            password.display(),
            setup.path("store").display()
        )
    };
    let store = text("https");
    let setup = setup.conf("store", &store);
    setup.write_conf();
    let output = Command::new(env!("CARGO_BIN_EXE_waypost"))
        .args(["store", "init", "--conf"])
        .arg(setup.path("waypost.yaml"))
        .env("AWS_METADATA_ENDPOINT", &metadata)
        .env("AWS_EC2_METADATA_DISABLED", "false")
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success(),
        "the object store ends connections"
    );
    let paths = asked.lock().unwrap().clone();
    assert!(
        paths.contains(&"/latest/meta-data/iam/security-credentials/role".to_owned()),
        "{paths:?} {error}"
    );
    let bytes = first_bytes.lock().unwrap().clone();
    assert!(
        !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0x16),
        "{bytes:?} {error}"
    );
    // Each cause is printed once.
    let causes: Vec<&str> = error.trim().split(": ").collect();
    for cause in &causes {
        let count = causes.iter().filter(|other| other == &cause).count();
        assert_eq!(count, 1, "{error}");
    }
}
