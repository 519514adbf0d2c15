//! The official conformance suite for servers: every scenario for a feature that this server has.
//!
//! The other scenarios are about prompts, completion, logging, subscriptions, tasks, and results
//! that ask the client for input; the server has none of these, and its capabilities do not name
//! them. Some scenarios need tools of their own for a part of their checks: these parts are listed
//! as failures here, so that a check that begins to pass is noticed.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use super::documentation;
use crate::clients::client;
use crate::edge::{Edge, Setup};

/// Scenarios, each with its revision and the checks that need a feature that the server does not
/// have. Without a revision the suite chooses one.
const SCENARIOS: &[(&str, &str, &[&str])] = &[
    ("server-initialize", "2025-11-25", &[]),
    ("ping", "2025-11-25", &[]),
    ("tools-list", "2025-11-25", &[]),
    ("tools-list", "2026-07-28", &[]),
    ("resources-list", "2025-11-25", &[]),
    ("resources-list", "2026-07-28", &[]),
    ("sep-2164-resource-not-found", "2026-07-28", &[]),
    ("dns-rebinding-protection", "2025-11-25", &[]),
    ("dns-rebinding-protection", "2026-07-28", &[]),
    ("http-header-validation", "2026-07-28", &[]),
    ("server-sse-multiple-streams", "2026-07-28", &[]),
    (
        "server-stateless",
        "2026-07-28",
        // Each needs a tool that only tests have.
        &[
            "sep-2575-http-server-no-independent-requests-on-stream",
            "sep-2575-missing-capability-http-400",
            "sep-2575-server-no-log-without-loglevel",
            "sep-2575-server-rejects-undeclared-capability",
        ],
    ),
    // There are no prompts.
    (
        "caching",
        "2026-07-28",
        &["sep-2549-prompts-list-caching-hints"],
    ),
    ("sep-2640-skills-enumeration", "", &[]),
    ("sep-2640-skills-manifest", "", &[]),
    // A skill is one file, so its directory has no other directory.
    (
        "sep-2640-skills-directory",
        "",
        &["sep-2640-directory-read-subdir-mimetype"],
    ),
];

/// Runs a scenario; returns how many checks passed, and which failed.
#[track_caller]
fn run(edge: &Edge, scenario: &str, revision: &str) -> (usize, BTreeSet<String>) {
    let folder = client(
        "mcp-conformance",
        "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    );
    let results = tempfile::tempdir_in(edge.setup.path(".")).unwrap();
    let mut command = Command::new(folder.join("node_modules/.bin/node"));
    command
        .arg(folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"))
        .args(["server", "--scenario", scenario, "--url"])
        .arg(format!("http://localhost:{}/mcp", edge.http.port()))
        .arg("--output-dir")
        .arg(results.path());
    if !revision.is_empty() {
        command.args(["--spec-version", revision]);
    }
    let output = command.output().unwrap();
    let mut directories = fs::read_dir(results.path()).unwrap();
    let directory = directories.next();
    let directory = directory.unwrap_or_else(|| panic!("{scenario}: {output:?}"));
    let checks = fs::read(directory.unwrap().path().join("checks.json")).unwrap();
    let checks: Vec<Value> = serde_json::from_slice(&checks).unwrap();
    let with = |status: &'static str| checks.iter().filter(move |check| check["status"] == status);
    let failed = with("FAILURE").map(|check| check["id"].as_str().unwrap().to_owned());
    (with("SUCCESS").count(), failed.collect())
}

#[test]
fn the_official_suite_passes_in_every_scenario_that_applies() {
    // The suite asks for other hosts only if the server is on this machine.
    let edge = Setup::new().site("acme", "domains: [localhost]").start();
    // The suite requires that the name of each skill is the last part of its address.
    let mut files = documentation();
    files.retain(|(path, _)| !path.starts_with(".waypost/"));
    edge.publish("acme", &files);
    let mut passed = 0;
    for (scenario, revision, needing_more) in SCENARIOS {
        let (successes, failed) = run(&edge, scenario, revision);
        let expected: BTreeSet<String> = needing_more.iter().map(|id| (*id).to_owned()).collect();
        assert_eq!(failed, expected, "{scenario} {revision}");
        assert!(successes > 0, "{scenario} {revision}");
        passed += successes;
    }
    assert!(passed > 90, "{passed} checks passed");
}
