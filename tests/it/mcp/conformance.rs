//! The official conformance suite for servers.
//!
//! The scenarios for features of sites run against a site. Those that call tools, resources and
//! prompts of their own run against a server made of the same parts ([`super::fixture`]). Every
//! other scenario of the suite is in [`OTHERS`], with the feature that no site has.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::thread;

use serde_json::Value;

use super::{documentation, fixture};
use crate::clients::client;
use crate::edge::Setup;

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
        // Each needs a tool that the site does not have; the fixture has it.
        &[
            "sep-2575-http-server-no-independent-requests-on-stream",
            "sep-2575-missing-capability-http-400",
            "sep-2575-server-no-log-without-loglevel",
            "sep-2575-server-rejects-undeclared-capability",
        ],
    ),
    // A site has no prompts; the fixture has some.
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

/// Scenarios with tools, resources and prompts of the suite. Each runs with both revisions, if it
/// has both.
const WITH_FIXTURE: &[&str] = &[
    "caching",
    "completion-complete",
    "json-schema-2020-12",
    "prompts-get-embedded-resource",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-with-image",
    "prompts-list",
    "resources-read-binary",
    "resources-read-text",
    "resources-templates-read",
    "server-stateless",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-error",
    "tools-call-image",
    "tools-call-mixed-content",
    "tools-call-simple-text",
    "input-required-result-unsupported-methods",
];

/// The beginnings of the names of all other scenarios, and what they need.
const OTHERS: &[(&str, &str)] = &[
    ("elicitation-", "requests of the server to its client"),
    ("http-custom-header-", "tools with `x-mcp-header`"),
    (
        "input-required-result-",
        "results that ask the client for input",
    ),
    ("logging-", "a log level of a session"),
    ("resources-subscribe", "sessions with streams"),
    ("resources-unsubscribe", "sessions with streams"),
    ("server-session-lifecycle", "sessions"),
    ("server-sse-polling", "streams"),
    ("tasks-", "the extension for tasks"),
    (
        "tools-call-elicitation",
        "requests of the server to its client",
    ),
    (
        "tools-call-sampling",
        "requests of the server to its client",
    ),
    ("tools-call-with-logging", "streams"),
    ("tools-call-with-progress", "streams"),
];

/// Returns a command that runs the suite.
fn suite() -> Command {
    let folder = client(
        "mcp-conformance",
        "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    );
    let mut command = Command::new(folder.join("node_modules/.bin/node"));
    command.arg(folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"));
    command
}

/// Returns all scenarios for servers, with their revisions.
fn scenarios() -> Vec<(String, String)> {
    let output = suite().args(["list", "--server"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- "));
    let scenario = |line: &str| {
        let (name, revisions) = line.split_once(' ').unwrap();
        (name.to_owned(), revisions.to_owned())
    };
    lines.map(scenario).collect()
}

/// Runs a scenario; returns how many checks passed, and which failed.
#[track_caller]
fn run(server: SocketAddr, scenario: &str, revision: &str) -> (usize, BTreeSet<String>) {
    let results = tempfile::tempdir().unwrap();
    let mut command = suite();
    command
        .args(["server", "--scenario", scenario, "--url"])
        .arg(format!("http://localhost:{}/mcp", server.port()))
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

/// Runs scenarios, some at a time: starting Node takes longer than a scenario. Returns the sum of
/// what they return.
fn side_by_side<T: Sync>(runs: &[T], run: impl Fn(&T) -> usize + Sync) -> usize {
    const THREADS: usize = 4;
    let run = &run;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|nth| {
                let own = runs.iter().skip(nth).step_by(THREADS);
                scope.spawn(move || own.map(run).sum::<usize>())
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    })
}

#[test]
fn a_site_passes_the_official_suite() {
    // The suite asks for other hosts only if the server is on this machine.
    let edge = Setup::new().site("acme", "domains: [localhost]").start();
    edge.publish("acme", &documentation());
    let passed = side_by_side(SCENARIOS, |(scenario, revision, needing_more)| {
        let (successes, failed) = run(edge.http, scenario, revision);
        let expected: BTreeSet<String> = needing_more.iter().map(|id| (*id).to_owned()).collect();
        assert_eq!(failed, expected, "{scenario} {revision}");
        assert!(successes > 0, "{scenario} {revision}");
        successes
    });
    assert!(passed > 90, "{passed} checks passed");
}

#[test]
fn a_server_with_the_tools_of_the_official_suite_passes_it() {
    let server = fixture::serve();
    let known = scenarios();
    let runs: Vec<_> = WITH_FIXTURE
        .iter()
        .flat_map(|scenario| {
            let (_, revisions) = known.iter().find(|(name, _)| name == scenario).unwrap();
            let revisions = ["2025-11-25", "2026-07-28"]
                .into_iter()
                .filter(move |revision| revisions.contains(revision));
            revisions.map(move |revision| (*scenario, revision))
        })
        .collect();
    let passed = side_by_side(&runs, |(scenario, revision)| {
        let (successes, failed) = run(server, scenario, revision);
        assert_eq!(failed, BTreeSet::new(), "{scenario} {revision}");
        assert!(successes > 0, "{scenario} {revision}");
        1
    });
    assert!(passed >= 33, "{passed} scenarios passed");
}

#[test]
fn every_scenario_of_the_official_suite_runs_or_has_a_reason_not_to() {
    let known = scenarios();
    assert!(known.len() > 60, "{known:?}");
    for (name, _) in &known {
        let runs = SCENARIOS.iter().any(|(scenario, ..)| scenario == name)
            || WITH_FIXTURE.contains(&name.as_str());
        let has_reason = OTHERS.iter().any(|(start, _)| name.starts_with(start));
        assert!(runs || has_reason, "{name}");
    }
    // No reason is left over.
    for (start, why) in OTHERS {
        let is_used = known.iter().any(|(name, _)| name.starts_with(start));
        assert!(is_used, "{start}: {why}");
    }
}
