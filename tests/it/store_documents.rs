//! Gateways of one database, on different machines, share certificates, challenges, keys of session
//! tickets and admin keys. They serve from their copies while the database is away.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::{ClientConfig, HandshakeKind};

use crate::acme::certificate;
use crate::certificates::Authority;
use crate::edge::{Edge, Setup};
use crate::http::Connection;
use crate::pebble::Settings;
use crate::presets::{DOMAIN, SKILL};
use crate::queue_postgres::wait_until;
use crate::repository::call;
use crate::store_postgres::{Objects, cluster, command, init, machine, private};
use crate::tls::{connect, encrypted};

/// Listeners with TLS on free ports.
const LISTEN: &str =
    "{ http: [\"127.0.0.1:0\"], https: [\"127.0.0.1:0\"], operator: \"127.0.0.1:0\" }";
const SECOND: &str = "docs.second.test";
/// A change of a key counts everywhere after this time at the latest.
const SOON: Duration = Duration::from_secs(2);

/// Returns the certificate that a client sees; `None` if it does not trust it.
fn seen(edge: &Edge, name: &str, client: &Arc<ClientConfig>) -> Option<Vec<u8>> {
    // Handshakes of an address are limited.
    std::thread::sleep(Duration::from_millis(25));
    certificate(edge.https.unwrap(), name, client)
}

fn message(line: &serde_json::Value) -> &str {
    line["message"].as_str().unwrap_or_default()
}

/// Returns a setup that orders certificates and encrypts their keys with a file.
pub fn ordering(setup: Setup, settings: &Settings, key_file: &Path, challenge: &str) -> Setup {
    let acme = format!(
        "{{ authorities: [{}], agree_to_terms: true, key_file: {}, retry_seconds: [1], \
         challenges: [{challenge}] }}",
        settings.entry(),
        key_file.display()
    );
    setup.conf("acme", &acme)
}

#[test]
fn every_gateway_answers_challenges_and_serves_the_certificates_of_all() {
    for challenge in ["http-01", "tls-alpn-01"] {
        let mut cluster = cluster();
        let settings = Settings::new();
        let first = machine(&cluster, None, &Objects::Directory).conf("listen", LISTEN);
        let key_file = first.path("acme.key");
        let first = ordering(first, &settings, &key_file, challenge);
        init(&first);
        // The authority connects to the ports of the second machine, which does not order.
        let second = machine(&cluster, Some(&first), &Objects::Directory);
        let second = second.conf("listen", &settings.listen());
        let copy = second.path("acme.key");
        let second = ordering(second, &settings, &copy, challenge);
        let pebble = settings.start();
        let client = pebble.client(&["http/1.1"]);
        let leader = first.acme("").with_skill().start();
        let orders = |line: &serde_json::Value| message(line) == "this process orders certificates";
        leader.wait_for_log(orders);
        // The key file is copied from one machine to the other, as a secret.
        fs::copy(&key_file, &copy).unwrap();
        let other = second.acme("").start();
        wait_until("a certificate", || seen(&other, DOMAIN, &client).is_some());
        wait_until("the same on both machines", || {
            seen(&other, DOMAIN, &client) == seen(&leader, DOMAIN, &client)
        });
        // While both run, no order fails: the other machine has a challenge before the leader tells
        // the authority.
        for edge in [&leader, &other] {
            edge.write_site("second", &format!("domains: [{SECOND}]"));
        }
        wait_until("a second certificate", || {
            seen(&other, SECOND, &client).is_some()
        });
        let failed = |line: &serde_json::Value| {
            message(line).starts_with(&format!("no certificate for {SECOND}"))
        };
        assert_eq!(leader.count_log(failed), 0);
        assert_eq!(other.count_log(orders), 0, "one process orders");
        let dump = cluster.psql(
            "waypost",
            "SELECT string_agg(encode(content, 'escape'), '') FROM waypost_store.documents",
        );
        assert!(!dump.unwrap().contains("PRIVATE KEY"));
        let listed = command(&other.setup, &["cert", "list"]);
        assert_eq!(listed.lines().count(), 2, "{listed}");

        // A record of a newer program changes nothing.
        let before = seen(&other, DOMAIN, &client);
        cluster
            .psql(
                "waypost",
                "BEGIN; UPDATE waypost_store.documents_revision SET n = n + 1; \
                 INSERT INTO waypost_store.documents SELECT kind, split_part(key, '~', 1) || \
                 '~ffffffffffffffff', convert_to(replace(convert_from(content, 'UTF8'), \
                 '\"version\": 1', '\"version\": 9'), 'UTF8'), (SELECT n FROM \
                 waypost_store.documents_revision), 0 FROM waypost_store.documents \
                 WHERE kind = 'certificates' AND key LIKE 'docs.acme.test~%' LIMIT 1; COMMIT",
            )
            .unwrap();
        other.wait_for_log(|line| message(line).contains("has version 9"));
        assert_eq!(seen(&other, DOMAIN, &client), before);

        // Without the database, certificates are served, also after a restart.
        cluster.stop();
        assert_eq!(seen(&other, DOMAIN, &client), before);
        other.signal("KILL");
        let other = other.ended().start();
        assert_eq!(seen(&other, DOMAIN, &client), before);
        cluster.restart();

        // The machine that orders is gone: another one orders.
        leader.signal("TERM");
        // It has the objects.
        let _first = leader.ended();
        other.write_site("third", "domains: [docs.third.test]");
        // A lease of a killed process ends after 15 seconds.
        wait_until("a third certificate", || {
            seen(&other, "docs.third.test", &client).is_some()
        });

        // A node that takes over from the database serves the same.
        let directory = other.setup.path("node").display().to_string();
        let copied = command(&other.setup, &["store", "copy", "--to", &directory]);
        assert!(copied.contains("documents of certificates"), "{copied}");
        let node = Setup::new()
            .conf("store", &format!("{{ local: {{ path: {directory} }} }}"))
            .conf("listen", LISTEN);
        let other = other.setup.path("acme.key");
        let node = ordering(node, pebble.settings(), &other, challenge);
        let node = node.acme("").start();
        assert_eq!(seen(&node, DOMAIN, &client), before);
    }
}

#[test]
fn a_gateway_with_another_key_file_does_not_start() {
    let cluster = cluster();
    let settings = Settings::new();
    let first = machine(&cluster, None, &Objects::Directory).conf("listen", LISTEN);
    let key_file = first.path("acme.key");
    let first = ordering(first, &settings, &key_file, "http-01");
    init(&first);
    command(&first, &["cert", "list"]);
    let second = machine(&cluster, Some(&first), &Objects::Directory).conf("listen", LISTEN);
    let other = second.path("acme.key");
    let second = ordering(second, &settings, &other, "http-01");
    let (status, text) = second.start_expecting_failure();
    assert!(!status.success());
    assert!(
        text.contains("is missing") && text.contains("copy the key file"),
        "{text}"
    );
    assert!(!other.exists());
    fs::write(&other, "11".repeat(32)).unwrap();
    private(&other);
    let (status, text) = second.start_expecting_failure();
    assert!(!status.success());
    assert!(text.contains("is not that of the other gateways"), "{text}");
}

#[test]
fn a_session_of_one_gateway_is_resumed_by_another() {
    let cluster = cluster();
    let authority = Authority::new();
    let first = machine(&cluster, None, &Objects::Directory);
    let key_file = first.path("acme.key").display().to_string();
    let acme = format!("{{ key_file: {key_file} }}");
    init(&first);
    let second = machine(&cluster, Some(&first), &Objects::Directory);
    let [first, second] = [first, second].map(|setup| {
        let setup = setup.conf("acme", &acme);
        encrypted(&authority, setup)
    });
    let first = first.acme("");
    let published = first.publish("acme", &[("skill.md", SKILL)]);
    let (first, second) = (first.start(), second.acme("").start());
    for edge in [&first, &second] {
        edge.wait_until_served("acme", published.generation);
    }
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let client = authority.client_of(&["http/1.1"], &[version]);
        for (edge, kind) in [
            (&first, HandshakeKind::Full),
            (&second, HandshakeKind::Resumed),
        ] {
            let stream = connect(edge.https.unwrap(), DOMAIN, &client).unwrap();
            let seen = stream.conn.handshake_kind();
            // Tickets come with the first response.
            let mut connection = Connection::over(stream);
            connection.send(format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
            assert_eq!(connection.receive("GET").unwrap().status, 200);
            assert_eq!(seen, Some(kind), "{version:?}");
        }
    }
}

/// Waits until a gateway answers a call with this status, at most for [`SOON`].
#[track_caller]
fn answers_soon(edge: &Edge, key: &str, status: u16) {
    let since = Instant::now();
    loop {
        let found = call(edge, key, "GET", "/v1/sites").status;
        if found == status {
            return;
        }
        assert!(since.elapsed() < SOON, "{found} and not {status}");
    }
}

#[test]
fn a_key_counts_on_every_gateway_and_ends_on_every_gateway() {
    let mut cluster = cluster();
    let first = machine(&cluster, None, &Objects::Directory);
    init(&first);
    let second = machine(&cluster, Some(&first), &Objects::Directory);
    let (first, second) = (first.start(), second.start());
    let create = ["key", "create", "--owner", "acme", "--role", "owner"];
    let key = command(&first.setup, &create);
    for edge in [&first, &second] {
        answers_soon(edge, &key, 200);
    }
    let stored = "SELECT string_agg(encode(content, 'escape'), '') FROM waypost_store.documents";
    let stored = cluster.psql("waypost", stored).unwrap();
    assert!(stored.contains("\"owner\""), "{stored}");
    assert!(!stored.contains(&key[key.len() - 72..]), "digests only");
    let id = command(&second.setup, &["key", "list"])[..16].to_owned();
    wait_until("a use is recorded for all machines", || {
        command(&second.setup, &["key", "list"]).contains("  used ")
    });

    // Without the database, keys count as they are, and none can be revoked.
    cluster.stop();
    answers_soon(&second, &key, 200);
    let output = first.setup.run(&["key", "revoke", &id]);
    assert!(!output.status.success(), "{output:?}");
    cluster.restart();
    wait_until("it is revoked", || {
        let output = second.setup.run(&["key", "revoke", &id]);
        output.status.success()
    });
    for edge in [&first, &second] {
        answers_soon(edge, &key, 401);
    }
    assert!(command(&first.setup, &["key", "list"]).contains("  revoked "));

    // Tokens of edges are of all gateways too.
    command(&first.setup, &["edge", "add", "paris"]);
    let again = second.setup.run(&["edge", "add", "paris"]);
    assert!(!again.status.success());
    command(&second.setup, &["edge", "set", "paris", "--ring", "2"]);
    assert!(command(&first.setup, &["edge", "list"]).contains("paris  ring 2"));

    // Keys and edges move to a single node and back.
    let node = first.setup.path("node").display().to_string();
    let copied = command(&first.setup, &["store", "copy", "--to", &node]);
    let copied_keys = "copied 0 documents of certificates, 1 admin keys and 1 edges";
    assert!(copied.contains(copied_keys), "{copied}");
    let single = Setup::new().conf("store", &format!("{{ local: {{ path: {node} }} }}"));
    assert!(command(&single, &["key", "list"]).contains(&id));
    assert!(command(&single, &["edge", "list"]).contains("paris  ring 2"));
    let own = command(&single, &create);
    let back = command(&first.setup, &["store", "copy", "--from", &node]);
    assert!(back.contains("1 admin keys and 0 edges"), "{back}");
    for edge in [&first, &second] {
        answers_soon(edge, &own, 200);
    }
}
