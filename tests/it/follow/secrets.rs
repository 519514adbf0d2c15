//! Certificates, ticket keys and challenges of a source on its edges: encrypted for each edge, and
//! there before an authority asks.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::{ClientConfig, HandshakeKind};

use super::*;
use crate::pebble::{Pebble, Settings};
use crate::store_documents;
use crate::tls::{connect, encrypted};

/// Listeners with TLS on free ports.
const LISTEN: &str =
    "{ http: [\"127.0.0.1:0\"], https: [\"127.0.0.1:0\"], operator: \"127.0.0.1:0\" }";

/// Returns the setup of an edge that gets certificates.
pub(super) fn edge_with_key(source: &Setup, url: &str, name: &str, listen: &str) -> Setup {
    let edge = Setup::new();
    let key_file = edge.path("key");
    // The edge prints its key before it has a token.
    write_private(edge.path("token"), "none");
    let more = format!(", key_file: {}", key_file.display());
    let edge = following(source, edge, url, &more).conf("listen", listen);
    let key = output(&edge, &["edge", "key"]);
    let token = output(source, &["edge", "add", name, "--key", &key]);
    write_private(edge.path("token"), &token);
    edge
}

/// Returns the certificate that a client sees; `None` if it does not trust it.
pub(super) fn certificate(edge: &Edge, name: &str, client: &Arc<ClientConfig>) -> Option<Vec<u8>> {
    // The authority has the same address as this test, and handshakes of an address are limited.
    std::thread::sleep(std::time::Duration::from_millis(25));
    let stream = connect(edge.https.unwrap(), name, client).ok()?;
    Some(stream.conn.peer_certificates()?[0].to_vec())
}

/// Waits for an order whose first tries may fail, because the edge was not there yet.
#[track_caller]
pub(super) fn wait_for_order(source: &Edge, is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(
            since.elapsed() < 2 * TIMEOUT,
            "no certificate in time:\n{}",
            source.log()
        );
    }
}

/// Returns why an edge does not have its secrets.
fn trouble(edge: &Edge) -> String {
    let ready = readiness(edge);
    ready["parts"].to_string() + &ready.to_string()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Returns whether a file of a directory, or below it, has these bytes.
fn has_file_with(directory: &Path, part: &[u8]) -> bool {
    fs::read_dir(directory).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => has_file_with(&path, part),
            // A file of a running edge may be gone again.
            false => fs::read(&path).is_ok_and(|bytes| contains(&bytes, part)),
        }
    })
}

/// Returns the file of a certificate of a name.
fn record_of(directory: &Path, name: &str) -> PathBuf {
    let parts = fs::read_dir(directory).unwrap();
    let files = parts.flat_map(|part| fs::read_dir(part.unwrap().path()).unwrap());
    let mut paths = files.map(|file| file.unwrap().path());
    let is_of_name = |path: &PathBuf| {
        let file = path.file_name().and_then(|file| file.to_str());
        file.is_some_and(|file| file.split('~').next() == Some(name))
    };
    paths.find(is_of_name).unwrap()
}

/// Starts an authority that asks an edge, and a source that orders from it.
fn ordering(challenge: &str) -> (SocketAddr, Pebble, Edge, String) {
    let settings = Settings::new();
    let listen = free_address();
    let setup = source(listen).with_skill().conf("listen", LISTEN);
    let key_file = setup.path("acme.key");
    // The authority connects to the ports of the edge.
    let of_edge = settings.listen();
    let setup = store_documents::ordering(setup, &settings, &key_file, challenge);
    (listen, settings.start(), setup.start(), of_edge)
}

#[test]
fn an_edge_answers_the_challenges_of_its_source_and_serves_its_certificates() {
    for challenge in ["http-01", "tls-alpn-01"] {
        // The order of the source begins before its edge is there, and fails until then.
        let (listen, pebble, source, of_edge) = ordering(challenge);
        let between = Between::start(listen);
        let address = url(between.address);
        let edge = edge_with_key(&source.setup, &address, "paris", &of_edge).start();
        let client = pebble.client(&["http/1.1"]);
        wait_for_order(&source, || certificate(&edge, DOMAIN, &client).is_some());
        wait_until("the same on the source", || {
            certificate(&edge, DOMAIN, &client) == certificate(&source, DOMAIN, &client)
        });
        // A new domain is ordered while the edge follows: the first try succeeds, although each
        // change needs a while to the edge.
        between.lie(|path, _| {
            if path.contains("secrets") {
                std::thread::sleep(std::time::Duration::from_millis(700));
            }
        });
        source.write_site("second", "domains: [docs.second.test]");
        wait_until("a second certificate", || {
            certificate(&edge, "docs.second.test", &client).is_some()
        });
        let failed = |line: &serde_json::Value| {
            let message = line["message"].as_str().unwrap_or_default();
            message.starts_with("no certificate for docs.second.test")
        };
        assert_eq!(source.count_log(failed), 0);
        // The edge has them after a restart without its source, and still not in clear.
        let seen = certificate(&edge, DOMAIN, &client);
        let _source = kill(source);
        let edge = kill(edge).start();
        assert_eq!(certificate(&edge, DOMAIN, &client), seen);
        assert!(!has_file_with(&edge.setup.path("cache"), b"PRIVATE KEY"));
    }
}

#[test]
fn a_certificate_that_is_replaced_by_command_is_replaced_on_edges() {
    let (listen, pebble, source, of_edge) = ordering("http-01");
    let edge = edge_with_key(&source.setup, &url(listen), "paris", &of_edge).start();
    let client = pebble.client(&["http/1.1"]);
    wait_for_order(&source, || certificate(&edge, DOMAIN, &client).is_some());
    let before = certificate(&edge, DOMAIN, &client);
    output(
        &source.setup,
        &["cert", "revoke", DOMAIN, "--key-compromise"],
    );
    wait_until("another certificate", || {
        let now = certificate(&edge, DOMAIN, &client);
        now.is_some() && now != before
    });
    // A domain that moves to another site is served with its certificate there.
    source.write_site("acme", "");
    source.write_site("second", &format!("domains: [{DOMAIN}]"));
    source.publish("second", &[("skill.md", PAY)]);
    wait_until_serves(&edge, PAY);
    assert!(certificate(&edge, DOMAIN, &client).is_some());

    // A certificate that cannot be read now is not left out: the edge would not ask for it again.
    let token = fs::read_to_string(edge.setup.path("token")).unwrap();
    let field = format!("Bearer {}", token.trim());
    let record = record_of(
        &source.setup.path("store/certificates/certificates"),
        DOMAIN,
    );
    let key = record.file_name().unwrap().to_str().unwrap();
    let ask = || {
        let path = format!("/v1/follow/certificates?keys={key}");
        let fields = [("Authorization", &*field)];
        http::request(listen, "GET", "source", &path, &fields).status
    };
    assert_eq!(ask(), 200);
    let aside = source.setup.path("aside");
    fs::rename(&record, &aside).unwrap();
    fs::create_dir(&record).unwrap();
    assert_eq!(ask(), 503);
    fs::remove_dir(&record).unwrap();
    fs::rename(&aside, &record).unwrap();
    assert_eq!(ask(), 200);
}

#[test]
fn only_an_edge_with_its_key_gets_certificates_and_never_in_clear() {
    let authority = Authority::new();
    let listen = free_address();
    let source = encrypted(&authority, source(listen)).with_skill().start();
    let directory = source.setup.path("certificates");
    let pair = authority.issue(&[DOMAIN]);
    pair.write(&directory, DOMAIN);
    let between = Between::start(listen);
    let address = url(between.address);
    let edge = edge_with_key(&source.setup, &address, "paris", LISTEN).start();
    let client = authority.client(&["http/1.1"]);
    let expected = pair.der().to_vec();
    wait_until("a certificate", || {
        certificate(&edge, DOMAIN, &client).as_ref() == Some(&expected)
    });
    // Neither the wire nor the cache has the private key: as it is, or in a text.
    let private = pair.key.serialize_der();
    let encoded = STANDARD.encode(&private);
    let parts: [&[u8]; 3] = [
        &private[private.len() - 40..],
        &encoded.as_bytes()[..60],
        b"PRIVATE",
    ];
    for part in parts {
        assert!(!contains(&between.seen.lock().unwrap(), part));
        assert!(!has_file_with(&edge.setup.path("cache"), part));
    }
    // A session of the source is resumed on the edge.
    let config = authority.client_of(&["http/1.1"], &[&rustls::version::TLS12]);
    connect(source.https.unwrap(), DOMAIN, &config).unwrap();
    let stream = connect(edge.https.unwrap(), DOMAIN, &config).unwrap();
    assert_eq!(stream.conn.handshake_kind(), Some(HandshakeKind::Resumed));

    // A pair that is replaced or removed follows.
    let other = authority.issue(&[DOMAIN]);
    other.write(&directory, DOMAIN);
    wait_until("replaced", || {
        certificate(&edge, DOMAIN, &client) == Some(other.der().to_vec())
    });
    fs::remove_dir_all(directory.join(DOMAIN)).unwrap();
    wait_until("removed", || certificate(&edge, DOMAIN, &client).is_none());

    // An edge whose key the source does not know says so, and gets it when the key is set.
    other.write(&directory, DOMAIN);
    let setup = edge_with_key(&source.setup, &address, "tokyo", LISTEN);
    let right = output(&setup, &["edge", "key"]);
    fs::remove_file(setup.path("key")).unwrap();
    let edge = setup.start();
    wait_until("it says why", || {
        trouble(&edge).contains("is encrypted for another key")
    });
    assert_eq!(certificate(&edge, DOMAIN, &client), None);
    let key = output(&edge.setup, &["edge", "key"]);
    assert_ne!(key, right);
    output(&source.setup, &["edge", "set", "tokyo", "--key", &key]);
    wait_until("a certificate", || {
        certificate(&edge, DOMAIN, &client).is_some()
    });
}

#[test]
fn an_edge_without_a_key_gets_nothing_secret_and_orders_nothing() {
    let (listen, _pebble, source, _of_edge) = ordering("http-01");
    let setup = edge_of(&source.setup, &url(listen), "paris", "");
    let field = format!(
        "Bearer {}",
        fs::read_to_string(setup.path("token")).unwrap().trim()
    );
    let fields = [("Authorization", &*field)];
    let ask = |path: &str| http::request(listen, "GET", "source", path, &fields);
    let secrets = ask("/v1/follow/secrets?identity=&after=0");
    assert_eq!(secrets.status, 200);
    assert!(!contains(&secrets.body, b"tickets"), "{secrets:?}");
    assert_eq!(ask("/v1/follow/certificates?keys=a~b").status, 403);
    // An edge with authorities is refused at the start.
    let acme = "{ authorities: [{ directory: \"https://authority.test/dir\" }], agree_to_terms: true, key_file: k }";
    let (status, why) = setup.conf("acme", acme).start_expecting_failure();
    assert!(
        !status.success() && why.contains("the node that an edge"),
        "{why}"
    );
}

#[test]
fn an_edge_whose_key_is_set_or_replaced_later_gets_the_certificates_of_before() {
    let authority = Authority::new();
    let listen = free_address();
    let source = encrypted(&authority, source(listen)).with_skill().start();
    let directory = source.setup.path("certificates");
    authority.issue(&[DOMAIN]).write(&directory, DOMAIN);
    let edge = Setup::new();
    let key_file = edge.path("key");
    write_private(
        edge.path("token"),
        &output(&source.setup, &["edge", "add", "paris"]),
    );
    let more = format!(", key_file: {}", key_file.display());
    let edge = following(&source.setup, edge, &url(listen), &more).conf("listen", LISTEN);
    let edge = edge.start();
    wait_until("it says why", || trouble(&edge).contains("knows no key"));
    let client = authority.client(&["http/1.1"]);
    let key = output(&edge.setup, &["edge", "key"]);
    output(&source.setup, &["edge", "set", "paris", "--key", &key]);
    // A new certificate ends the wait of the edge for changes.
    let second = "docs.second.test";
    authority.issue(&[second]).write(&directory, second);
    wait_until("the new certificate", || {
        certificate(&edge, second, &client).is_some()
    });
    let first = certificate(&edge, DOMAIN, &client);
    assert!(first.is_some(), "the certificate of before");

    // With another key, the edge cannot decrypt what its cache has.
    let edge = kill(edge);
    fs::remove_file(&key_file).unwrap();
    let key = output(&edge, &["edge", "key"]);
    output(&source.setup, &["edge", "set", "paris", "--key", &key]);
    let edge = edge.start();
    wait_until("the same certificates", || {
        certificate(&edge, DOMAIN, &client) == first
            && certificate(&edge, second, &client).is_some()
    });
}
