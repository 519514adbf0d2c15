//! Certificates are ordered, renewed and replaced, whatever authorities and disks do.
//!
//! The authority is pebble: it validates each name by connecting to the gateway.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::ClientConfig;

use crate::certificates::Authority;
use crate::edge::{Edge, Setup};
use crate::http::{Connection, TIMEOUT};
use crate::pebble::{self, Pebble, Settings};
use crate::presets::{DOMAIN, SKILL};
use crate::tls::connect;

const SECOND: &str = "docs.second.test";

/// Returns a setup that orders from authorities.
fn setup(listen: &str, authorities: &str, more: &str) -> Setup {
    let setup = Setup::new();
    let key = setup.path("acme.key").display().to_string();
    setup
        .conf("listen", listen)
        .conf("acme", &format!(
            "{{ authorities: [{authorities}], agree_to_terms: true, key_file: {key}, retry_seconds: [1], {more} }}"
        ))
}

/// Starts an authority, and a gateway that orders from it.
fn start(more: &str) -> (Pebble, Edge) {
    let settings = Settings::new();
    let setup = setup(&settings.listen(), &settings.entry(), more);
    let pebble = settings.start();
    (pebble, setup.acme("").with_skill().start())
}

/// Returns the certificate that a client sees; `None` if it does not trust it.
fn certificate(address: SocketAddr, name: &str, client: &Arc<ClientConfig>) -> Option<Vec<u8>> {
    let stream = connect(address, name, client).ok()?;
    Some(stream.conn.peer_certificates()?[0].to_vec())
}

/// Waits until a client that trusts the authority sees a certificate for a name that is another
/// one than `before`.
#[track_caller]
fn wait_for_certificate(
    edge: &Edge,
    name: &str,
    client: &Arc<ClientConfig>,
    before: Option<&[u8]>,
) -> Vec<u8> {
    let since = Instant::now();
    loop {
        match certificate(edge.https.unwrap(), name, client) {
            Some(seen) if Some(&*seen) != before => return seen,
            _ if since.elapsed() < 2 * TIMEOUT => {}
            // Shows the log.
            _ => drop(edge.wait_for_log(|_| false)),
        }
        // A handshake takes a millisecond, an order a second.
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn issued(line: &serde_json::Value, name: &str) -> bool {
    let message = line["message"].as_str().unwrap_or_default();
    line["name"] == name && message.contains("was issued")
}

fn stdout(output: std::process::Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the files of a directory and below it.
fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

#[test]
fn a_domain_gets_a_certificate_and_is_served_over_https() {
    let (pebble, edge) = start("contacts: [\"mailto:operator@acme.test\"]");
    let client = pebble.client(&["http/1.1"]);
    let first = wait_for_certificate(&edge, DOMAIN, &client, None);
    let stream = connect(edge.https.unwrap(), DOMAIN, &client).unwrap();
    let mut open = Connection::over(stream);
    let get = format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
    open.send(get.as_bytes());
    assert_eq!(open.receive("GET").unwrap().text(), SKILL);

    // A new site gets its own, and nothing else changes.
    edge.write_site("second", &format!("domains: [{SECOND}]"));
    wait_for_certificate(&edge, SECOND, &client, None);
    assert_eq!(
        certificate(edge.https.unwrap(), DOMAIN, &client),
        Some(first)
    );
    open.send(get.as_bytes());
    assert_eq!(open.receive("GET").unwrap().status, 200);

    // curl checks the chain to the root of the authority.
    let port = edge.https.unwrap().port();
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--cacert"])
        .arg(pebble.root_file())
        .args(["--resolve", &format!("{SECOND}:{port}:127.0.0.1")])
        .arg(format!("https://{SECOND}:{port}/"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");

    // No name that the platform owns is ordered, and no private key is readable.
    assert!(!pebble.log().contains("acme.waypost.localhost"));
    edge.wait_for_log(|line| issued(line, SECOND));
    let kept = files(&edge.setup.path("store/certificates"));
    for file in kept
        .iter()
        .filter(|file| file.to_string_lossy().contains(".test"))
    {
        let text = fs::read_to_string(file).unwrap();
        assert!(!text.contains("PRIVATE KEY"), "{}", file.display());
    }
    let listed = stdout(edge.setup.run(&["cert", "list"]));
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(
        listed.contains(&format!("{DOMAIN}  89 days left")),
        "{listed}"
    );
    edge.wait_for_metric("acme_orders_total{result=\"issued\"}", 2.0);
    assert!(edge.metric("acme_certificates") > 1.5);
}

#[test]
fn a_name_is_proven_in_a_handshake() {
    let (pebble, edge) = start("challenges: [tls-alpn-01]");
    let client = pebble.client(&["http/1.1"]);
    wait_for_certificate(&edge, DOMAIN, &client, None);
    assert!(!pebble.log().contains("/.well-known/acme-challenge/"));
    // The protocol is for authorities only, and only while they look.
    let probing = pebble.client(&["acme-tls/1"]);
    assert!(connect(edge.https.unwrap(), DOMAIN, &probing).is_err());
}

#[test]
fn a_certificate_of_the_operator_is_used_and_not_ordered() {
    let settings = Settings::new();
    let setup = setup(&settings.listen(), &settings.entry(), "");
    let own = Authority::new();
    let directory = setup.path("own");
    own.issue(&[DOMAIN]).write(&directory, DOMAIN);
    let setup = setup.conf("tls", &format!("{{ directory: {} }}", directory.display()));
    let pebble = settings.start();
    let edge = setup
        .acme("")
        .site("second", &format!("domains: [{SECOND}]"))
        .start();
    wait_for_certificate(&edge, SECOND, &pebble.client(&[]), None);
    let seen = certificate(edge.https.unwrap(), DOMAIN, &own.client(&[]));
    assert!(seen.is_some());
    assert!(!pebble.log().contains(DOMAIN), "{}", pebble.log());
    // It goes away: the name is ordered.
    fs::remove_dir_all(directory.join(DOMAIN)).unwrap();
    wait_for_certificate(&edge, DOMAIN, &pebble.client(&[]), None);
}

#[test]
fn a_restart_serves_what_it_has_while_the_authority_is_down() {
    let (mut pebble, edge) = start("");
    let client = pebble.client(&[]);
    let before = wait_for_certificate(&edge, DOMAIN, &client, None);
    edge.wait_for_log(|line| issued(line, DOMAIN));
    pebble.stop();
    edge.signal("TERM");
    let edge = edge
        .ended()
        .site("second", &format!("domains: [{SECOND}]"))
        .start();
    assert_eq!(
        certificate(edge.https.unwrap(), DOMAIN, &client).as_ref(),
        Some(&before)
    );
    edge.wait_for_log(|line| {
        let message = line["message"].as_str().unwrap_or_default();
        message.starts_with("certificates are not ordered now, those in use stay:")
    });
    // It comes back without its accounts: a new one is made.
    pebble.again();
    let client = pebble.client(&[]);
    wait_for_certificate(&edge, SECOND, &client, None);
}

#[test]
fn a_certificate_is_replaced_when_the_operator_asks() {
    let (pebble, edge) = start("");
    let client = pebble.client(&[]);
    let first = wait_for_certificate(&edge, DOMAIN, &client, None);
    edge.wait_for_log(|line| issued(line, DOMAIN));
    stdout(edge.setup.run(&["cert", "renew", DOMAIN]));
    let second = wait_for_certificate(&edge, DOMAIN, &client, Some(&first));

    edge.wait_for_nth_log(2, |line| issued(line, DOMAIN));
    let said = stdout(
        edge.setup
            .run(&["cert", "revoke", DOMAIN, "--key-compromise"]),
    );
    assert!(
        said.contains("is revoked, and another one is requested"),
        "{said}"
    );
    let serial = said
        .split("certificate ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    let status = pebble.management(&format!("/cert-status-by-serial/{serial}"));
    let status = String::from_utf8(status).unwrap();
    assert!(status.contains("\"Revoked\""), "{status}");
    wait_for_certificate(&edge, DOMAIN, &client, Some(&second));
    // Old certificates do not pile up.
    edge.wait_for_nth_log(3, |line| issued(line, DOMAIN));
    let kept = files(&edge.setup.path("store/certificates/certificates"));
    assert!(kept.len() <= 3, "{kept:?}");
    let missing = edge.setup.run(&["cert", "revoke", "else.test"]);
    let error = String::from_utf8(missing.stderr).unwrap();
    assert!(
        error.contains("there is no certificate by ACME for else.test"),
        "{error}"
    );
}

#[test]
fn a_certificate_that_the_authority_wants_replaced_is_replaced() {
    let (pebble, edge) = start("renewal_info_seconds: 1");
    let client = pebble.client(&[]);
    let first = wait_for_certificate(&edge, DOMAIN, &client, None);
    edge.wait_for_log(|line| issued(line, DOMAIN));
    edge.wait_for_metric("acme_renewal_info_total{result=\"answered\"}", 1.0);
    edge.signal("TERM");
    let setup = edge.ended();
    // It is revoked while no gateway runs, and the request of the command is lost: only the
    // authority knows.
    stdout(setup.run(&["cert", "revoke", DOMAIN]));
    for request in files(&setup.path("store/certificates/requests")) {
        fs::remove_file(request).unwrap();
    }
    let edge = setup.start();
    wait_for_certificate(&edge, DOMAIN, &client, Some(&first));
    let renewed = edge.wait_for_log(|line| issued(line, DOMAIN));
    assert_ne!(renewed["replaces"], "", "{renewed}");
    assert!(edge.metric("acme_renewal_info_total{result=\"answered\"}") > 0.5);
}

#[test]
fn a_refused_name_waits_and_stops_no_other() {
    let settings = Settings::new().blocking(SECOND);
    let setup = setup(&settings.listen(), &settings.entry(), "");
    let pebble = settings.start();
    let edge = setup
        .acme("")
        .site("second", &format!("domains: [{SECOND}]"))
        .start();
    wait_for_certificate(&edge, DOMAIN, &pebble.client(&[]), None);
    let failed = edge.wait_for_log(|line| line["name"] == SECOND && line["failures"] == 2);
    let message = failed["message"].as_str().unwrap();
    assert!(
        message.starts_with("no certificate for docs.second.test, the next try is in"),
        "{message}"
    );
    assert!(message.contains("rejectedIdentifier"), "{message}");
    let listed = stdout(edge.setup.run(&["cert", "list", "--json"]));
    let rows = listed
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let row = rows.into_iter().find(|row| row["name"] == SECOND).unwrap();
    assert!(
        row["failed"]["why"]
            .as_str()
            .unwrap()
            .contains("rejectedIdentifier"),
        "{row}"
    );
    assert!(row["certificate"].is_null(), "{row}");
}

#[test]
fn two_processes_answer_every_challenge_and_serve_every_certificate() {
    let settings = Settings::new();
    // The authority connects to the second process; the first one orders.
    let first = setup(
        &format!(
            "{{ http: [\"127.0.0.1:{}\"], https: [\"127.0.0.1:{}\"], operator: \"127.0.0.1:0\" }}",
            pebble::port(),
            pebble::port()
        ),
        &settings.entry(),
        "challenges: [http-01]",
    );
    let beside = |challenges: &str| {
        let second = first.beside().conf("listen", &settings.listen());
        let key = first.path("acme.key").display().to_string();
        second.conf("acme", &format!(
            "{{ authorities: [{}], agree_to_terms: true, key_file: {key}, retry_seconds: [1], challenges: [{challenges}] }}",
            settings.entry()
        ))
    };
    let second = beside("http-01");
    let first = first.start();
    first.wait_for_log(|line| line["message"] == "this process orders certificates");
    let second = second.start();
    let pebble = settings.start();
    first.write_site("acme", &format!("domains: [{DOMAIN}]"));
    let client = pebble.client(&[]);
    let seen = wait_for_certificate(&second, DOMAIN, &client, None);
    assert_eq!(wait_for_certificate(&first, DOMAIN, &client, None), seen);
    assert!(second.metric("gateway_requests_total{route=\"challenge\",status=\"200\"}") > 0.5);
    assert!(first.metric("gateway_requests_total{route=\"challenge\",status=\"200\"}") < 0.5);

    // Somebody removes the lock. Both believe that they lead until the first one looks; their
    // certificates are records of their own, and each serves.
    fs::remove_file(first.setup.path("store/certificates/leader")).unwrap();
    first.wait_for_log(|line| {
        line["message"]
            .as_str()
            .is_some_and(|text| text.contains("`leader` was removed"))
    });
    first.write_site("second", &format!("domains: [{SECOND}]"));
    let seen = wait_for_certificate(&second, SECOND, &client, None);
    assert_eq!(
        wait_for_certificate(&first, SECOND, &client, Some(b"")),
        seen
    );
    assert_eq!(
        first.metric("acme_leader") + second.metric("acme_leader"),
        1.0
    );
}

#[test]
fn mistakes_in_the_configuration_are_reported_at_once() {
    let setup = Setup::new().conf(
        "acme",
        "{ authorities: [{ directory: \"http://ca.test/dir\" }, { directory: \"https://ca.test/dir\", eab_id: x }, { directory: \"https://ca.test/dir\" }], names: [\"*.acme.test\"], challenges: [dns-01, dns-02], contacts: [operator] }",
    );
    let (status, error) = setup.start_expecting_failure();
    assert_eq!(status.code(), Some(2), "{error}");
    for expected in [
        "expected an authority whose directory is an https address",
        "expected `eab_id` and `eab_key_file` together",
        "expected `http-01` or `tls-alpn-01` or `dns-01`",
        "expected an address like",
        "`acme.agree_to_terms: true` is needed",
        "`acme.key_file` is needed",
        "needs an address in `listen.https`",
        "needs `acme.dns_command`",
    ] {
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
