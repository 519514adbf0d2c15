//! No owner takes the worker from another: slow hosts, killed builds, builds out of time.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use super::wait_until;
use crate::edge::Edge;
use crate::presets::SKILL;
use crate::repository::{Repository, SilentHost, follow, queue, record, setup};

/// The processes that a process has started.
fn children(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|ids| {
            let ids: Vec<u32> = ids
                .split_whitespace()
                .map(|id| id.parse().unwrap())
                .collect();
            ids
        })
        .collect()
}

/// A gateway with two places for builds, an owner with slow projects and one with a fast one.
fn with_slow_owner(host: &SilentHost, slow: usize) -> Edge {
    let mut setup = setup().conf(
        "worker",
        "{ fetches_max: 2, builds_max: 2, grace_seconds: 0 }",
    );
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    for n in 0..slow {
        let record = format!("owner: slow\n{}", host.record());
        setup = setup.site(&format!("slow{n}"), &record);
    }
    setup.site("acme", &docs.record()).start()
}

#[test]
fn an_owner_that_has_taken_all_places_gives_one_back() {
    let host = SilentHost::start();
    let edge = with_slow_owner(&host, 6);
    let slow: Vec<_> = (0..6)
        .map(|n| queue(&edge.setup, &format!("slow{n}")))
        .collect();
    // No other owner waits, so this owner gets both slots.
    let _held = [host.connected(), host.connected()];
    for _ in 0..3 {
        let since = Instant::now();
        let done = follow(&edge.setup, &queue(&edge.setup, "acme"));
        assert_eq!(done["status"], "success", "{done:#}");
        // The host never responds, and the limit of a fetch is five minutes.
        assert!(since.elapsed() < Duration::from_secs(15));
    }
    let attempts = slow
        .iter()
        .map(|id| record(&edge.setup, id)["attempts"].as_u64());
    let attempts: Vec<_> = attempts.map(Option::unwrap).collect();
    assert!(
        attempts.iter().all(|attempts| *attempts <= 1),
        "{attempts:?}"
    );
}

#[test]
fn a_build_that_dies_by_a_signal_is_tried_once_more() {
    let host = SilentHost::start();
    let setup = setup()
        .conf(
            "worker",
            "{ fetches_max: 1, builds_max: 1, grace_seconds: 0 }",
        )
        .site("acme", &host.record());
    let file = setup.path("updates.sqlite").display().to_string();
    let conf = format!("{{ sqlite: {{ path: {file} }}, retry_seconds: 1 }}");
    let edge = setup.conf("queue", &conf).start();
    let id = queue(&edge.setup, "acme");
    for _ in 0..2 {
        let _connected = host.connected();
        for child in children(edge.id()) {
            let killed = Command::new("kill")
                .args(["-KILL", &child.to_string()])
                .status();
            assert!(killed.unwrap().success());
        }
    }
    let failed = follow(&edge.setup, &id);
    assert_eq!(failed["status"], "failure", "{failed:#}");
    assert_eq!(failed["attempts"], 2, "{failed:#}");
    let summary = failed["summary"].as_str().unwrap();
    assert!(summary.starts_with("gave up after 2 attempts"), "{summary}");
}

#[test]
fn a_host_that_never_responds_is_tried_twice() {
    let host = SilentHost::start();
    let setup = setup()
        .conf("worker", "{ builds_max: 1, fetch_seconds: 1 }")
        .site("acme", &host.record());
    let file = setup.path("updates.sqlite").display().to_string();
    let conf = format!("{{ sqlite: {{ path: {file} }}, retry_seconds: 1 }}");
    let edge = setup.conf("queue", &conf).start();
    let failed = follow(&edge.setup, &queue(&edge.setup, "acme"));
    assert_eq!(failed["status"], "failure", "{failed:#}");
    assert_eq!(failed["attempts"], 2, "{failed:#}");
    wait_until("the dead letter is not counted", || {
        edge.metric("deploy_queue_updates{state=\"dead_letter\"}") >= 1.0
    });
}

#[test]
fn four_owners_with_hosts_that_never_respond_delay_no_other() {
    let host = SilentHost::start();
    let mut setup = setup().conf("worker", "{ builds_max: 2, grace_seconds: 0 }");
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let mut slow = Vec::new();
    for owner in 0..4 {
        // The last of them has six projects.
        for project in 0..(if owner == 3 { 6 } else { 1 }) {
            let name = format!("slow{owner}-{project}");
            let record = format!("owner: slow{owner}\n{}", host.record());
            setup = setup.site(&name, &record);
            slow.push(name);
        }
    }
    let edge = setup.site("acme", &docs.record()).start();
    let rounds = match std::env::var_os("WAYPOST_LONG_TESTS") {
        Some(_) => 100,
        None => 5,
    };
    let update = || {
        let since = Instant::now();
        let done = follow(&edge.setup, &queue(&edge.setup, "acme"));
        assert_eq!(done["status"], "success", "{done:#}");
        since.elapsed()
    };
    let quiet = (0..rounds).map(|_| update()).max().unwrap();
    for project in &slow {
        queue(&edge.setup, project);
    }
    let _held: Vec<_> = (0..8).map(|_| host.connected()).collect();
    let mut busy: Vec<_> = (0..rounds).map(|_| update()).collect();
    // The first update waits until a place is given back.
    busy.sort();
    let p99 = busy[busy.len() * 99 / 100 - usize::from(busy.len() % 100 == 0)];
    println!("quiet: {quiet:?} at most; with four hostile owners: p99 {p99:?}");
    if rounds >= 100 {
        assert!(p99 < 2 * quiet, "{p99:?} against {quiet:?}");
    }
    assert!(p99 < Duration::from_secs(15), "{p99:?}");
}
