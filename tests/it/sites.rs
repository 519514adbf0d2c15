//! Site records and releases change while a gateway runs, and it serves the new state.
//!
//! No test builds or restarts anything. A record is a file; a record that is not valid leaves its
//! site as it was.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::edge::{Edge, Setup};
use crate::http::{self, TIMEOUT, pause};
use crate::presets::{CARD, MANIFEST, SKILL};

const PAY: &str = "---\nname: pay\ndescription: Take payments.\n---\n\n# Pay\n";

fn acme(record: &str) -> Edge {
    let edge = Setup::new().site("acme", record).start();
    edge.publish("acme", &[("skill.md", SKILL)]);
    edge
}

fn status(edge: &Edge, host: &str) -> u16 {
    edge.get(host, "/skill.md").status
}

fn card_url(edge: &Edge, host: &str) -> serde_json::Value {
    edge.get(host, CARD).json()["url"].clone()
}

fn is_complaint(line: &serde_json::Value) -> bool {
    line["level"] == "error"
}

#[test]
fn a_site_is_served_while_its_record_exists() {
    let edge = acme("");
    assert_eq!(status(&edge, "docs.other.test"), 404);
    edge.write_site("other", "domains: [docs.other.test]");
    let unreleased = edge.get("docs.other.test", "/skill.md");
    assert_eq!(
        unreleased.field("cache-control"),
        Some("no-store, no-transform")
    );
    edge.publish("other", &[("skill.md", PAY)]);
    assert_eq!(edge.get("docs.other.test", "/skill.md").text(), PAY);
    edge.remove_site("other");
    for host in ["docs.other.test", "other.waypost.localhost"] {
        assert_eq!(status(&edge, host), 404);
    }
    // Its release is still in the store, so the site is served as before.
    edge.write_site("other", "");
    assert_eq!(edge.get("other.waypost.localhost", "/skill.md").text(), PAY);
    assert_eq!(status(&edge, "docs.other.test"), 404);
    assert_eq!(
        edge.get("acme.waypost.localhost", "/skill.md").text(),
        SKILL
    );
}

#[test]
fn a_release_that_was_promoted_before_its_site_is_served_with_it() {
    let edge = acme("");
    edge.setup.publish("other", &[("skill.md", PAY)]);
    edge.write_site("other", "");
    assert_eq!(edge.get("other.waypost.localhost", "/skill.md").text(), PAY);
}

#[test]
fn domains_can_change_and_the_first_is_canonical() {
    let edge = acme("");
    let default = "acme.waypost.localhost";
    assert_eq!(card_url(&edge, default), "https://acme.waypost.localhost");
    edge.write_site("acme", "domains: [docs.acme.test, help.acme.test]");
    assert_eq!(card_url(&edge, default), "https://docs.acme.test");
    assert_eq!(card_url(&edge, "help.acme.test"), "https://help.acme.test");
    edge.write_site("acme", "domains: [help.acme.test, docs.acme.test]");
    assert_eq!(card_url(&edge, default), "https://help.acme.test");
    assert_eq!(card_url(&edge, "docs.acme.test"), "https://docs.acme.test");
    edge.write_site("acme", "domains: [help.acme.test]");
    assert_eq!(status(&edge, "docs.acme.test"), 404);
    assert_eq!(status(&edge, "help.acme.test"), 200);
    edge.write_site("acme", "");
    assert_eq!(card_url(&edge, default), "https://acme.waypost.localhost");
}

#[test]
fn a_renamed_subdomain_or_file_keeps_the_site() {
    let edge = acme("domains: [docs.acme.test]");
    let record = |subdomain: &str| {
        format!("project: acme\nsubdomain: {subdomain}\ndomains: [docs.acme.test]\n")
    };
    edge.change_sites(|| edge.setup.write_records("acme", &record("rocket")));
    assert_eq!(status(&edge, "acme.waypost.localhost"), 404);
    assert_eq!(status(&edge, "rocket.waypost.localhost"), 200);
    // The same project is in another file, with another subdomain, so that the test sees when it
    // was read.
    edge.change_sites(|| {
        edge.setup.remove_site("acme");
        edge.setup.write_records("customers", &record("rocket2"));
    });
    assert_eq!(status(&edge, "rocket2.waypost.localhost"), 200);
    assert_eq!(status(&edge, "docs.acme.test"), 200);
}

#[test]
fn one_file_may_hold_many_records() {
    let edge = acme("");
    edge.change_sites(|| {
        let records = "project: one\nsubdomain: one\n---\nproject: two\nsubdomain: two\n";
        edge.setup.write_records("others", records);
    });
    for project in ["one", "two"] {
        edge.publish(project, &[("skill.md", PAY)]);
        assert_eq!(status(&edge, &format!("{project}.waypost.localhost")), 200);
    }
}

#[test]
fn a_changed_base_path_moves_every_address() {
    let edge = acme("");
    let host = "acme.waypost.localhost";
    let url = |edge: &Edge| edge.get(host, MANIFEST).json()["skills"][0]["url"].clone();
    assert_eq!(url(&edge), "/.well-known/agent-skills/sdk/SKILL.md");
    edge.write_site("acme", "base_path: /docs");
    assert_eq!(url(&edge), "/docs/.well-known/agent-skills/sdk/SKILL.md");
    assert_eq!(edge.get(host, "/docs/skill.md").text(), SKILL);
    assert_eq!(card_url(&edge, host), "https://acme.waypost.localhost/docs");
    edge.write_site("acme", "base_path: /v2");
    assert_eq!(edge.get(host, "/docs/skill.md").status, 404);
    assert_eq!(edge.get(host, "/v2/skill.md").text(), SKILL);
}

#[test]
fn a_private_site_is_404_on_every_path() {
    let edge = acme("");
    let host = "acme.waypost.localhost";
    let paths = [
        "/skill.md",
        MANIFEST,
        "/.well-known/agent-skills/sdk/SKILL.md",
        "/.well-known/skills/index.json",
        "/.well-known/skills/sdk/skill.md",
        CARD,
        "/",
        "/guide",
    ];
    edge.write_site("acme", "visibility: private");
    for path in paths {
        for method in ["GET", "HEAD", "OPTIONS"] {
            let response = edge.request(method, host, path, &[("If-None-Match", "*")]);
            assert_eq!(response.status, 404, "{method} {path}");
            assert_eq!(
                response.field("cache-control"),
                Some("public, max-age=10, no-transform")
            );
        }
    }
    // A release that is published meanwhile is served when the site is public again.
    edge.setup.publish("acme", &[("skill.md", PAY)]);
    assert_eq!(status(&edge, host), 404);
    edge.write_site("acme", "visibility: public");
    assert_eq!(edge.get(host, "/skill.md").text(), PAY);
}

#[test]
fn a_broken_record_leaves_its_site_as_it_was_and_is_reported_once() {
    let edge = acme("domains: [docs.acme.test]");
    edge.setup.write_site(
        "acme",
        "domains: [docs.acme.test, 127.0.0.1]\nbase_path: docs",
    );
    let finding = edge.wait_for_log(is_complaint);
    let message = finding["message"].as_str().unwrap();
    assert!(message.contains("acme.yaml:3:"), "{message}");
    // Every later scan finds the same mistakes.
    for round in 0..3 {
        edge.write_site("other", &format!("domains: [docs{round}.other.test]"));
    }
    let complaints = |place: &str| {
        edge.count_log(|line| {
            is_complaint(line) && line["message"].as_str().unwrap().contains(place)
        })
    };
    assert_eq!(
        (complaints("acme.yaml:3:"), complaints("acme.yaml:4:")),
        (1, 1)
    );
    assert_eq!(status(&edge, "docs.acme.test"), 200);
    edge.publish("acme", &[("skill.md", PAY)]);
    assert_eq!(edge.get("docs.acme.test", "/skill.md").text(), PAY);
    edge.write_site("acme", "domains: [help.acme.test]");
    assert_eq!(status(&edge, "help.acme.test"), 200);
    assert_eq!(status(&edge, "docs.acme.test"), 404);
}

#[test]
fn a_host_that_two_sites_claim_stays_with_the_first() {
    let edge = acme("domains: [docs.acme.test]");
    edge.write_site("other", "");
    edge.publish("other", &[("skill.md", PAY)]);
    edge.setup
        .write_site("other", "domains: [docs.acme.test, docs.other.test]");
    let finding = edge.wait_for_log(is_complaint);
    let message = finding["message"].as_str().unwrap();
    let wanted = "docs.acme.test is a host of project acme already (acme.yaml:1)";
    assert!(
        message.contains("other.yaml:3:") && message.contains(wanted),
        "{message}"
    );
    assert_eq!(edge.get("docs.acme.test", "/skill.md").text(), SKILL);
    assert_eq!(edge.get("other.waypost.localhost", "/skill.md").text(), PAY);
    // The whole record is rejected, not only the host.
    assert_eq!(status(&edge, "docs.other.test"), 404);
    edge.write_site("acme", "");
    assert_eq!(edge.get("docs.acme.test", "/skill.md").text(), PAY);
    assert_eq!(edge.count_log(is_complaint), 1);
}

#[test]
fn a_host_moves_between_sites_in_one_change() {
    let edge = acme("domains: [docs.acme.test]");
    edge.write_site("other", "");
    edge.publish("other", &[("skill.md", PAY)]);
    edge.setup.write_site("acme", "");
    edge.setup.write_site("other", "domains: [docs.acme.test]");
    let since = Instant::now();
    while edge.get("docs.acme.test", "/skill.md").text() != PAY {
        assert!(since.elapsed() < TIMEOUT, "the host does not move");
        pause();
    }
    assert_eq!(edge.count_log(is_complaint), 0);
}

#[test]
fn removing_all_records_needs_confirmation() {
    let setup = Setup::new();
    let projects: Vec<String> = (0..12).map(|nth| format!("site-{nth}")).collect();
    for project in &projects {
        setup.write_site(project, "");
    }
    let edge = setup.start();
    edge.publish("site-7", &[("skill.md", SKILL)]);
    let moved = edge.setup.path("sites-moved");
    fs::rename(edge.setup.path("sites"), &moved).unwrap();
    fs::create_dir(edge.setup.path("sites")).unwrap();
    // Between the two steps the directory is missing.
    edge.wait_for_log(|line| {
        is_complaint(line) && line.to_string().contains("12 of 12 sites would be removed")
    });
    assert_eq!(status(&edge, "site-7.waypost.localhost"), 200);

    edge.change_sites(|| reload(&edge, &["--accept-removals"]));
    assert_eq!(status(&edge, "site-7.waypost.localhost"), 404);
    edge.change_sites(|| {
        fs::remove_dir(edge.setup.path("sites")).unwrap();
        fs::rename(&moved, edge.setup.path("sites")).unwrap();
    });
    assert_eq!(status(&edge, "site-7.waypost.localhost"), 200);
}

/// Runs `waypost reload` against a gateway whose port the system chose.
#[track_caller]
fn reload(edge: &Edge, arguments: &[&str]) {
    let conf = edge.setup.path("reload.yaml");
    // The store has the token of the gateway.
    let store = edge.setup.path("store").display().to_string();
    let text = format!(
        "listen: {{ operator: \"{}\" }}\nstore: {{ local: {{ path: {store} }} }}\n",
        edge.operator
    );
    fs::write(&conf, text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_waypost"))
        .arg("reload")
        .args(arguments)
        .arg("--conf")
        .arg(conf)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_missing_directory_of_records_removes_no_site() {
    let edge = acme("");
    fs::rename(edge.setup.path("sites"), edge.setup.path("away")).unwrap();
    let rejected = edge.wait_for_log(is_complaint);
    let message = rejected["message"].as_str().unwrap();
    assert!(message.contains("site records are missing"), "{message}");
    assert_eq!(status(&edge, "acme.waypost.localhost"), 200);
}

#[test]
fn a_damaged_release_is_reported_once_and_the_previous_one_stays_served() {
    let edge = acme("");
    let host = "acme.waypost.localhost";
    let bad = edge.publish("acme", &[("skill.md", PAY)]).release;
    edge.publish("acme", &[("skill.md", SKILL)]);
    let file = files_beneath(&edge.setup.path("store/content"))
        .into_iter()
        .find(|file| fs::read(file).unwrap() == PAY.as_bytes())
        .unwrap();
    fs::write(&file, PAY.replace("payments", "garments")).unwrap();

    edge.setup.promote("acme", &bad);
    let complaint = edge.wait_for_log(is_complaint);
    let message = complaint["message"].as_str().unwrap();
    assert!(
        message.contains("the previous release stays") && message.contains("is damaged"),
        "{message}"
    );
    reload(&edge, &[]);
    edge.write_site("other", "");
    assert_eq!(edge.get(host, "/skill.md").text(), SKILL);
    assert_eq!(edge.count_log(is_complaint), 1);
    // Publishing again repairs the damaged file.
    edge.publish("acme", &[("skill.md", PAY)]);
    assert_eq!(edge.get(host, "/skill.md").text(), PAY);
}

#[test]
fn a_skill_for_groups_is_nowhere_in_the_store_and_on_no_path() {
    let word = "b9c1-for-admins-only";
    let long = |name: &str, more: &str, word: &str| {
        let line = format!("The word is {word}; keep it in mind.\n");
        format!(
            "---\nname: {name}\ndescription: {word}.\n{more}---\n{}",
            line.repeat(200)
        )
    };
    let edge = Setup::new().site("acme", "").start();
    edge.publish(
        "acme",
        &[
            ("skill.md", &long("open", "", "for-everybody")),
            (
                ".waypost/skills/secret/SKILL.md",
                &long("secret", "groups: [admin]\n", word),
            ),
            (
                ".waypost/skills/quiet/SKILL.md",
                &long("quiet", "Groups:\n  - admin\n", word),
            ),
        ],
    );
    let host = "acme.waypost.localhost";
    for path in [MANIFEST, "/.well-known/skills/index.json", CARD] {
        let text = edge.get(host, path).text().to_owned();
        assert!(text.contains("for-everybody"), "{text}");
        assert!(!text.contains(word) && !text.contains("secret"), "{text}");
    }
    for path in [
        "/.well-known/agent-skills/secret/SKILL.md",
        "/.well-known/skills/secret/skill.md",
        "/.well-known/skills/quiet/SKILL.md",
    ] {
        assert_eq!(edge.get(host, path).status, 404, "{path}");
    }
    // With two skills it would be a redirect.
    assert_eq!(status(&edge, host), 200);

    let texts: Vec<Vec<u8>> = files_beneath(&edge.setup.path("store"))
        .iter()
        // The socket of `waypost upgrade` is not a file.
        .filter(|file| file.is_file())
        .flat_map(|file| decodings(&fs::read(file).unwrap()))
        .collect();
    let having = |word: &str| {
        let word = word.as_bytes();
        let has = |text: &&Vec<u8>| text.windows(word.len()).any(|window| window == word);
        texts.iter().filter(has).count()
    };
    // The public word is in the summary and in the skill, which is stored in four codings. So this
    // search would find the secret word as well.
    assert_eq!((having("for-everybody"), having(word)), (5, 0));
}

fn files_beneath(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let below = |path: PathBuf| match path.is_dir() {
        true => files_beneath(&path),
        false => vec![path],
    };
    entries
        .flat_map(|entry| below(entry.unwrap().path()))
        .collect()
}

/// A file as it is, and decoded if it is encoded.
fn decodings(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut brotli = Vec::new();
    let is_brotli = brotli::Decompressor::new(bytes, 4096)
        .read_to_end(&mut brotli)
        .is_ok();
    let mut gzip = Vec::new();
    let is_gzip = flate2::read::GzDecoder::new(bytes)
        .read_to_end(&mut gzip)
        .is_ok();
    let zstd = zstd::stream::decode_all(bytes).ok();
    std::iter::once(bytes.to_vec())
        .chain(is_brotli.then_some(brotli))
        .chain(is_gzip.then_some(gzip))
        .chain(zstd)
        .collect()
}

#[test]
fn a_reload_compares_everything_with_the_disk() {
    let edge = acme("");
    for ask in ["reload", "SIGHUP"] {
        let already = edge.count_log(|line| line["message"] == "site records loaded");
        edge.setup.write_site(&ask.to_ascii_lowercase(), "");
        match ask {
            "SIGHUP" => edge.signal("HUP"),
            _ => reload(&edge, &[]),
        }
        edge.wait_for_nth_log(already + 1, |line| line["message"] == "site records loaded");
    }
    let rejected = http::request(edge.operator, "GET", "operator", "/reload", &[]);
    assert_eq!(rejected.status, 404);
}

#[test]
fn the_number_of_rejected_records_follows_the_files() {
    let setup = Setup::new();
    setup.write_site("acme", "");
    let edge = setup.start();
    let rejected = || edge.metric("site_records_rejected").round();
    assert!(rejected() < 0.5);
    // The last record is valid: the gateway logs that it has loaded it.
    edge.change_sites(|| {
        edge.setup.write_site("acme", "visibility: secret");
        edge.setup.write_site("other", "");
    });
    assert!((rejected() - 1.0).abs() < 0.5);
    edge.change_sites(|| {
        edge.setup.write_site("acme", "");
        edge.setup.write_site("third", "");
    });
    assert!(rejected() < 0.5);
}
