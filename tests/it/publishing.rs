//! A promoted release survives a kill or a failure of the process that writes it.
//!
//! A first run under `strace` lists every system call that touches the store. Then the same
//! command runs again and again, and each time one of these calls does not happen: the
//! process is killed as it enters it, or the call fails as on a full or a broken disk.
//! After each, a gateway that was running all the time serves the old release or the new
//! one, as `waypost releases` says, and every named file in the store is complete. The program
//! contains no code for these tests.
//!
//! `WAYPOST_LONG_TESTS=1` runs every case; without it, cases are picked evenly.
//!
//! Source: `src/store/mod.rs`, S1 to S7.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::edge::{Edge, Setup};
use crate::faults::{Fault, Point, binary, cases, has_struck, points, sample, strace};
use crate::presets::SUBDOMAIN;

/// A command that would change the served site.
struct Attempt {
    arguments: Vec<String>,
    /// The text that is served if the command succeeds.
    text: String,
}

/// Returns the generation that is current.
#[track_caller]
fn current(setup: &Setup) -> u64 {
    let output = setup.run(&["releases", "acme"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().next().unwrap().strip_prefix("* ").unwrap();
    let fence = line.split_whitespace().nth(1).unwrap();
    fence.split_once('.').unwrap().0.parse().unwrap()
}

/// Makes each attempt fail at another point, and checks the state after it.
#[track_caller]
fn old_or_new_is_served(
    edge: &Edge,
    cases: &[(Point, Fault)],
    mut served: String,
    mut attempt: impl FnMut(&str) -> Attempt,
) {
    let setup = &edge.setup;
    let store = setup.path("store");
    let mut before = current(setup);
    let mut struck = 0;
    // A directory of site records that cannot be read is a warning: its sites stay as they were.
    let must_strike = |point: &Point| point.call != "openat";
    for (point, fault) in cases {
        let Attempt { arguments, text } = attempt(&served);
        let output = strace(setup, &["-e", &point.inject(*fault)], &arguments);
        let after = current(setup);
        if has_struck(&output, *fault, &store) {
            struck += usize::from(must_strike(point));
            assert!([before, before + 1].contains(&after), "{point:?} {fault:?}");
        } else {
            assert_eq!(after, before + 1, "{point:?} {fault:?}: {output:?}");
        }
        if after > before {
            edge.wait_until_served("acme", after);
            served = text;
        }
        let response = edge.get(SUBDOMAIN, "/skill.md");
        assert_eq!(response.text(), served, "{point:?} {fault:?}");
        is_whole(&store);
        before = after;
    }
    // When two files share a directory, a run makes one call less than the first run.
    let expected = cases.iter().filter(|(point, _)| must_strike(point)).count();
    assert!(
        struck * 10 >= expected * 9,
        "{struck} of {expected} faults came"
    );
    sweeps_clean(edge, &served);
}

/// Starts another gateway on the same store: it serves the same release and removes leftovers.
#[track_caller]
fn sweeps_clean(edge: &Edge, served: &str) {
    let path = edge.setup.path("store");
    let has_leftovers = fs::read_dir(path.join("temp")).unwrap().next().is_some();
    let next = Setup::new()
        .conf(
            "store",
            &format!("{{ local: {{ path: {} }} }}", path.display()),
        )
        .site("acme", "")
        .start();
    assert_eq!(next.get(SUBDOMAIN, "/skill.md").text(), served);
    if has_leftovers {
        next.wait_for_log(|line| {
            line["message"]
                .as_str()
                .is_some_and(|message| message.starts_with("swept"))
        });
    }
    assert_eq!(fs::read_dir(path.join("temp")).unwrap().count(), 0);
    is_whole(&path);
}

/// Fails when a file in the store does not match its name, or refers to a missing file.
#[track_caller]
fn is_whole(store: &Path) {
    for (digest, bytes) in files(&store.join("content")) {
        assert_eq!(sha256(&bytes), digest);
    }
    for (release, bytes) in files(&store.join("inventories")) {
        assert_eq!(sha256(&bytes), release);
        let inventory: Value = serde_json::from_slice(&bytes).unwrap();
        for item in inventory["files"].as_object().unwrap().values() {
            let digest = item["digest"].as_str().unwrap();
            let file = store.join("content").join(&digest[..2]).join(&digest[2..]);
            let length = fs::metadata(file).unwrap().len();
            assert_eq!(length, item["length"].as_u64().unwrap());
        }
    }
    for (_, bytes) in files(&store.join("pointers")) {
        let pointer: Value = serde_json::from_slice(&bytes).unwrap();
        let release = pointer["current"]["release"].as_str().unwrap();
        let name = format!("inventories/{}/{}.json", &release[..2], &release[2..]);
        assert!(store.join(name).exists(), "{pointer}");
    }
}

/// Returns the files in the shards of a directory: the digest in the name, and the bytes.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for shard in fs::read_dir(directory).unwrap() {
        let shard = shard.unwrap();
        for file in fs::read_dir(shard.path()).unwrap() {
            let path = file.unwrap().path();
            let first = shard.file_name().into_string().unwrap();
            let rest = path.file_stem().unwrap().to_str().unwrap();
            files.push((first + rest, fs::read(&path).unwrap()));
        }
    }
    files
}

fn sha256(bytes: &[u8]) -> String {
    let digits = Sha256::digest(bytes);
    digits.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn skill(version: usize) -> String {
    format!("---\nname: sdk\ndescription: Version {version}.\n---\n\n# Version {version}\n")
}

/// Returns the arguments that publish this skill.
fn publish(setup: &Setup, text: &str) -> Vec<String> {
    let docs = setup.documentation(&[("skill.md", text)]);
    let docs = docs.to_str().unwrap();
    ["publish", docs, "--root", docs, "--project", "acme"]
        .map(str::to_owned)
        .to_vec()
}

fn serving(text: &str) -> Edge {
    let edge = Setup::new().binary(binary()).site("acme", "").start();
    edge.publish("acme", &[("skill.md", text)]);
    edge
}

#[test]
fn a_publish_that_fails_at_any_step_leaves_a_complete_release_served() {
    let edge = serving(&skill(0));
    let points = points(&edge.setup, &publish(&edge.setup, &skill(1)));
    edge.wait_until_served("acme", 2);
    let calls = |name: &str| points.iter().filter(|point| point.call == name).count();
    // Content, summary, inventory, pointer and its copy: each is written, flushed and renamed.
    assert_eq!((calls("write"), calls("rename")), (5, 5), "{points:?}");
    assert_eq!(calls("fsync"), 9, "{points:?}");
    // Most of the calls check for 768 directories that exist, or read those of site records.
    let (many, others): (Vec<_>, Vec<_>) = cases(&points)
        .into_iter()
        .partition(|(point, _)| matches!(&point.call[..], "mkdir" | "openat"));
    let cases = [sample(many, 12), sample(others, 120)].concat();
    let mut version = 1;
    old_or_new_is_served(&edge, &cases, skill(1), |_| {
        version += 1;
        let text = skill(version);
        Attempt {
            arguments: publish(&edge.setup, &text),
            text,
        }
    });
}

#[test]
fn a_promote_that_fails_at_any_step_leaves_a_complete_release_served() {
    let edge = serving(&skill(0));
    let second = edge.publish("acme", &[("skill.md", &skill(1))]).release;
    let first = edge.publish("acme", &[("skill.md", &skill(0))]).release;
    let other = |served: &str| match served == skill(0) {
        true => (&second, skill(1)),
        false => (&first, skill(0)),
    };
    let promote = |served: &str| {
        let (release, text) = other(served);
        let arguments = ["promote", "acme", release].map(str::to_owned).to_vec();
        Attempt { arguments, text }
    };
    let points = points(&edge.setup, &promote(&skill(0)).arguments);
    edge.wait_until_served("acme", 4);
    let cases: Vec<_> = cases(&points)
        .into_iter()
        .filter(|(point, _)| point.call != "mkdir")
        .collect();
    old_or_new_is_served(&edge, &sample(cases, 60), skill(1), promote);
}

#[test]
fn an_incomplete_store_is_completed_by_the_next_command() {
    let fresh = || {
        let setup = Setup::new().binary(binary()).site("acme", "");
        // Writes the configuration; there is no store yet, and no release.
        let arguments = publish(&setup, &skill(0));
        setup.write_conf();
        (setup, arguments)
    };
    let (setup, arguments) = fresh();
    let cases = cases(&points(&setup, &arguments));
    let (mkdir, others): (Vec<_>, Vec<_>) = cases
        .into_iter()
        .partition(|(point, _)| point.call == "mkdir");
    for (point, fault) in [sample(mkdir, 9), sample(others, 60)].concat() {
        let (setup, arguments) = fresh();
        let output = strace(&setup, &["-e", &point.inject(fault)], &arguments);
        let is_struck = has_struck(&output, fault, &setup.path("store"));
        assert!(is_struck, "{point:?} {fault:?}: {output:?}");
        let published = setup.publish("acme", &[("skill.md", &skill(1))]);
        assert!(
            [1, 2].contains(&published.generation),
            "{point:?} {fault:?}"
        );
        is_whole(&setup.path("store"));
    }
}

#[test]
fn the_next_start_sweeps_the_rest_of_a_failed_publish() {
    for end in [
        "inject=unlink:error=EIO",
        "inject=unlink:signal=SIGKILL:when=1",
    ] {
        let edge = serving(&skill(0));
        let arguments = publish(&edge.setup, &skill(1));
        let options = ["-e", "inject=fsync:error=ENOSPC:when=1", "-e", end];
        let output = strace(&edge.setup, &options, &arguments);
        assert!(!output.status.success(), "{output:?}");
        let temp = edge.setup.path("store/temp");
        assert_ne!(
            fs::read_dir(&temp).unwrap().count(),
            0,
            "nothing was left: {output:?}"
        );
        sweeps_clean(&edge, &skill(0));
    }
}

#[test]
fn a_killed_sweep_never_removes_served_files() {
    let original = Setup::new().binary(binary());
    for version in 0..4 {
        original.publish("acme", &[("skill.md", &skill(version))]);
    }
    age(&original.path("store"));
    // A summary, a skill and an inventory of each of three releases that no pointer names.
    let removals = sample((1..=9).collect(), 9);
    for nth in removals {
        let setup = Setup::new().binary(binary()).site("acme", "");
        let copied = Command::new("cp")
            .arg("-a")
            .args([original.path("store"), setup.path("store")])
            .status();
        assert!(copied.unwrap().success());
        let store = format!(
            "{{ local: {{ path: {}, keep_releases: 0, keep_unnamed_seconds: 60 }} }}",
            setup.path("store").display()
        );
        let setup = setup.conf("store", &store);
        // Promoted again without a history: no pointer names the others any more.
        setup.publish("acme", &[("skill.md", &skill(3))]);
        let unlink = Point {
            call: "unlink".to_owned(),
            nth,
        };
        let output = strace(&setup, &["-e", &unlink.inject(Fault::Kill)], &["serve"]);
        assert!(
            has_struck(&output, Fault::Kill, &setup.path("store")),
            "{output:?}"
        );
        // S1: an inventory is removed before its content, so no inventory is left without content.
        is_whole(&setup.path("store"));
        let edge = setup.start();
        assert_eq!(edge.get(SUBDOMAIN, "/skill.md").text(), skill(3));
        edge.wait_for_log(|line| {
            line["message"]
                .as_str()
                .is_some_and(|message| message.starts_with("swept"))
        });
        is_whole(&edge.setup.path("store"));
        assert_eq!(files(&edge.setup.path("store/content")).len(), 2);
    }
}

/// Sets the modification time of everything in a store to years ago.
fn age(store: &Path) {
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for directory in ["content", "inventories"] {
        for shard in fs::read_dir(store.join(directory)).unwrap() {
            for file in fs::read_dir(shard.unwrap().path()).unwrap() {
                let file = fs::File::open(file.unwrap().path()).unwrap();
                file.set_modified(then).unwrap();
            }
        }
    }
}
