//! Under load and during changes, no response fails, and every response is complete and belongs to
//! one release.
//!
//! Clients send requests over connections that they never close, while releases are promoted and
//! rolled back, site records change, and publishing is killed half-way. The text of a skill holds
//! its version, so the test can see which parts belong together.

use std::collections::HashMap;
use std::io::Read as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::edge::{Edge, Setup};
use crate::faults::{binary, strace};
use crate::http::{Connection, Response};

const NAMES: [&str; 3] = ["charge", "long", "refund"];
const VERSIONS: usize = 40;
const CLIENTS: usize = 4;
/// The least number of requests, and of rounds of changes.
const REQUESTS_MIN: usize = 20_000;
const ROUNDS_MIN: usize = 10;

/// The texts that the clients know: every published text, by the digest of its bytes.
#[derive(Default)]
struct PublishedTexts {
    skills: HashMap<String, (&'static str, usize)>,
    /// The highest version whose publishing has begun.
    newest: AtomicUsize,
    requests: AtomicUsize,
    /// How often a client saw another version than before.
    changes: AtomicUsize,
    is_over: AtomicBool,
}

fn skill(name: &str, version: usize) -> String {
    let lines = if name == "long" { 200 } else { 1 };
    let body = format!("This is version {version} of {name}.\n").repeat(lines);
    format!("---\nname: {name}\ndescription: Version {version} of {name}.\n---\n\n{body}")
}

fn sha256(bytes: &[u8]) -> String {
    let digits = Sha256::digest(bytes);
    digits.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The files of a version.
fn files(version: usize) -> Vec<(String, String)> {
    let file = |name| {
        (
            format!(".waypost/skills/{name}/SKILL.md"),
            skill(name, version),
        )
    };
    NAMES.map(file).to_vec()
}

// === impl PublishedTexts ===

impl PublishedTexts {
    fn all() -> Self {
        let mut known = Self::default();
        for version in 0..VERSIONS {
            for name in NAMES {
                let digest = sha256(skill(name, version).as_bytes());
                known.skills.insert(digest, (name, version));
            }
        }
        known
    }

    /// Checks a response to a request for one of the site's documents, and returns the version of
    /// its content, which must be one.
    #[track_caller]
    fn version_of(&self, path: &str, response: &Response) -> usize {
        response.check("GET");
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        let body = identity(response);
        let digest = sha256(&body);
        let tag = match response.field("content-encoding") {
            None => format!("\"{}\"", &digest[..32]),
            Some(coding) => format!("\"{}-{coding}\"", &digest[..32]),
        };
        assert_eq!(response.field("etag"), Some(&*tag), "{path}");
        let version = if path.ends_with(".md") {
            let (name, version) = self.skills[&digest];
            assert!(path.contains(name), "{path} answers {name}");
            version
        } else {
            self.version_of_list(&serde_json::from_slice(&body).unwrap())
        };
        assert!(version <= self.newest.load(Ordering::Acquire));
        version
    }

    /// Returns the only version of all entries of a manifest, a legacy index or a card.
    #[track_caller]
    fn version_of_list(&self, list: &Value) -> usize {
        let skills = list["skills"].as_array().unwrap();
        assert_eq!(skills.len(), NAMES.len());
        let version = |skill: &Value| {
            let description = skill["description"].as_str().unwrap();
            let number = description.split(' ').nth(1).unwrap();
            let version: usize = number.parse().unwrap();
            if let Some(digest) = skill["digest"].as_str() {
                let digest = digest.strip_prefix("sha256:").unwrap();
                assert_eq!(self.skills[digest].1, version, "{list}");
            }
            version
        };
        let first = version(&skills[0]);
        assert!(skills.iter().all(|skill| version(skill) == first), "{list}");
        first
    }

    /// Requests one document after the other on one connection until the test ends.
    fn request(&self, address: SocketAddr, client: usize) {
        let mut connection = Connection::open(address);
        let mut last = 0;
        for turn in client.. {
            if self.is_over.load(Ordering::Acquire) {
                return;
            }
            let host = ["docs.acme.test", "acme.waypost.localhost"][turn % 2];
            let path = [
                "/.well-known/agent-skills/index.json",
                "/.well-known/agent-card.json",
                "/.well-known/agent-skills/long/SKILL.md",
                "/.well-known/skills/index.json",
                "/.well-known/skills/refund/skill.md",
                // This spelling is not served by the fast path.
                "/.well-known/skills/%72efund/./SKILL.md?v=1",
            ][turn / 2 % 6];
            let coding = ["identity", "br", "gzip", "zstd"][client % 4];
            let head =
                format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: {coding}\r\n\r\n");
            connection.send(head.as_bytes());
            let response = connection
                .receive("GET")
                .expect("the gateway closes no connection that is in use");
            let path = path.split('?').next().unwrap().replace("%72", "r");
            let version = self.version_of(&path, &response);
            self.requests.fetch_add(1, Ordering::AcqRel);
            self.changes
                .fetch_add(usize::from(version != last), Ordering::AcqRel);
            last = version;
        }
    }
}

fn identity(response: &Response) -> Vec<u8> {
    let mut out = Vec::new();
    let body = response.body.as_slice();
    match response.field("content-encoding") {
        None => out.extend_from_slice(body),
        Some("br") => {
            let mut decoder = brotli::Decompressor::new(body, 4096);
            decoder.read_to_end(&mut out).unwrap();
        }
        Some("gzip") => {
            let mut decoder = flate2::read::GzDecoder::new(body);
            decoder.read_to_end(&mut out).unwrap();
        }
        Some("zstd") => zstd::stream::copy_decode(body, &mut out).unwrap(),
        Some(other) => panic!("nobody asked for {other}"),
    }
    out
}

/// Makes all changes that are possible under load; the hosts stay.
#[track_caller]
fn change_everything(edge: &Edge, known: &PublishedTexts, round: usize) {
    let version = 1 + round % (VERSIONS - 1);
    let files = files(version);
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (&**p, &**t)).collect();
    known.newest.fetch_max(version, Ordering::AcqRel);

    // A publish that is killed at one of its flushes, and one that is not.
    let docs = edge.setup.documentation(&files);
    let docs = docs.to_str().unwrap();
    let arguments = ["publish", docs, "--root", docs, "--project", "acme"];
    let kill = format!("inject=fsync:signal=SIGKILL:when={}", round % 12 + 1);
    strace(&edge.setup, &["-e", &kill], &arguments);
    let published = edge.publish("acme", &files);

    let records = [
        "domains: [docs.acme.test]",
        "domains: [help.acme.test, docs.acme.test]",
        "domains: [docs.acme.test, help.acme.test]\nbase_path: /docs",
    ];
    edge.write_site("acme", records[(round + 1) % records.len()]);
    match round % 2 {
        0 => edge.write_site("other", "domains: [docs.other.test]"),
        _ => edge.remove_site("other"),
    }
    edge.signal("HUP");

    // Roll back to the release before the current one.
    let kept = edge.setup.run(&["releases", "acme"]);
    let kept = String::from_utf8(kept.stdout).unwrap();
    if let Some(before) = kept.lines().nth(1) {
        edge.promote("acme", before.split_whitespace().next().unwrap());
    }
    edge.promote("acme", &published.release);
}

#[test]
fn every_response_under_load_is_complete_and_of_one_release() {
    let edge = Setup::new()
        .binary(binary())
        .conf("log", "{ format: json, filter: \"info,index=debug\" }")
        .acme("")
        .start();
    let first = files(0);
    let first: Vec<(&str, &str)> = first.iter().map(|(p, t)| (&**p, &**t)).collect();
    edge.publish("acme", &first);

    let known = Arc::new(PublishedTexts::all());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (known, address) = (Arc::clone(&known), edge.http);
            std::thread::spawn(move || known.request(address, client))
        })
        .collect();
    let is_busy = || clients.iter().all(|client| !client.is_finished());
    let mut round = 0;
    while is_busy() && (round < ROUNDS_MIN || known.requests.load(Ordering::Acquire) < REQUESTS_MIN)
    {
        change_everything(&edge, &known, round);
        round += 1;
    }
    known.is_over.store(true, Ordering::Release);
    for client in clients {
        client.join().expect("every answer is as it should be");
    }
    // The clients have seen the changes.
    let changes = known.changes.load(Ordering::Acquire);
    assert!(changes >= ROUNDS_MIN, "{changes}");
}

#[test]
fn a_moving_host_is_always_served() {
    // One file, so that on the disk too the host belongs to a site at every moment.
    let records = |holder: usize| {
        let record = |nth: usize| {
            let domains = if nth == holder {
                "docs.moving.test"
            } else {
                ""
            };
            format!("project: site-{nth}\nsubdomain: site-{nth}\ndomains: [{domains}]\n")
        };
        format!("{}---\n{}", record(0), record(1))
    };
    let setup = Setup::new().binary(binary());
    setup.write_records("both", &records(0));
    let edge = setup.start();
    for nth in 0..2 {
        edge.publish(&format!("site-{nth}"), &[("skill.md", &skill("sdk", nth))]);
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let client = std::thread::spawn({
        let (is_over, address) = (Arc::clone(&is_over), edge.http);
        move || {
            let mut connection = Connection::open(address);
            while !is_over.load(Ordering::Acquire) {
                connection.send(b"GET /skill.md HTTP/1.1\r\nHost: docs.moving.test\r\n\r\n");
                let response = connection.receive("GET").expect("an answer");
                assert_eq!(response.status, 200, "{}", response.text());
            }
        }
    });
    for round in 1..40 {
        edge.change_sites(|| edge.setup.write_records("both", &records(round % 2)));
        let holder = edge.get("docs.moving.test", "/skill.md");
        assert_eq!(holder.text(), skill("sdk", round % 2));
    }
    is_over.store(true, Ordering::Release);
    client.join().expect("the host is always somebody's");
}
