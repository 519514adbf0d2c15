//! The bundled example, as readers use it: the real binary, headless Chromium.
//!
//! What is promised stands in `tests/browser/`, a file for each kind of promise, in the
//! language of the browser; here they are run. Chromium is Debian's, driven by
//! `playwright-core`; `make test` installs both. A failure names the page and the rule.
//!
//! Sources: WCAG 2.2, as `axe-core` looks for it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::clients::client;
use crate::edge::{Edge, Setup};

/// A name that browsers resolve to loopback by themselves, and that they trust with the
/// clipboard.
const HOST: &str = "docs.acme.localhost";

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conf/demo/docs")
}

/// A gateway that serves the bundled example.
fn serving() -> Edge {
    let edge = Setup::new()
        .site("acme", &format!("domains: [{HOST}]"))
        .start();
    let published = edge.setup.publish_directory("acme", &example());
    edge.wait_until_served("acme", published.generation);
    edge
}

/// Runs a file of `tests/browser`.
#[track_caller]
fn holds(file: &str) {
    let packages = client("browser", "playwright-core@1.65.1");
    let edge = serving();
    let output = Command::new("node")
        .args(["--test", "--test-reporter=spec"])
        .arg(Path::new("tests/browser").join(file))
        .env(
            "WAYPOST_SITE",
            format!("http://{HOST}:{}", edge.http.port()),
        )
        .env("WAYPOST_CLIENT", packages)
        .env("WAYPOST_CHROMIUM", "/usr/bin/chromium")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}");
}

#[test]
fn the_rules_of_the_navigation_are_seen() {
    holds("navigation.mjs");
}

#[test]
fn a_page_can_be_read_copied_and_linked() {
    holds("reading.mjs");
}

#[test]
fn a_title_and_a_word_are_found_in_the_readers_own_language_and_version() {
    holds("search.mjs");
}

#[test]
fn nothing_needs_a_script() {
    holds("plain.mjs");
}

#[test]
fn every_sort_of_page_is_accessible_still_and_light() {
    holds("quality.mjs");
}

#[test]
fn the_reference_of_the_example_is_the_description_of_the_api() {
    let shown = std::fs::read_to_string(example().join("api/openapi.json")).unwrap();
    assert!(
        shown == include_str!("../../src/deploy/api/openapi.json"),
        "copy src/deploy/api/openapi.json to conf/demo/docs/api"
    );
}

#[test]
fn the_example_has_no_findings() {
    let docs = example();
    let docs = docs.to_str().unwrap();
    let checked = Command::new(env!("CARGO_BIN_EXE_waypost"))
        .args(["check", docs, "--root", docs, "--strict"])
        .output()
        .unwrap();
    assert!(checked.status.success(), "{checked:?}");
}
