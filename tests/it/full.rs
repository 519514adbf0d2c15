//! A full disk: a small file system, filled to its last byte.
//!
//! To mount it, the tests need `CAP_SYS_ADMIN`, or `sudo` without a password. Without both, the
//! tests fail and say so; `cargo test -- --skip full::` skips them.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::presets::SKILL;
use crate::repository::{Repository, call, follow, key, record, setup, trigger};

const PROJECTS: usize = 200;

/// A file system of 16 MB, mounted until this value is dropped.
///
/// It has its own directory, so a test may drop its other values before or after it.
pub struct SmallDisk(TempDir);

impl SmallDisk {
    #[track_caller]
    pub fn mount() -> Self {
        let at = tempfile::tempdir().unwrap();
        let arguments = ["-t", "tmpfs", "-o", "size=16m,mode=1777", "waypost-small"];
        let mounted = as_root("mount", &arguments, at.path());
        assert!(
            mounted.status.success(),
            "this test mounts a file system, which needs CAP_SYS_ADMIN or `sudo` without a \
             password; `cargo test -- --skip full::` leaves it out: {mounted:?}"
        );
        Self(at)
    }

    fn filler_file(&self) -> PathBuf {
        self.0.path().join("ballast")
    }

    /// Fills all free space.
    pub fn fill(&self) {
        let mut filler_file = File::create(self.filler_file()).unwrap();
        for block in [1 << 16, 1 << 10, 1] {
            let zeros = vec![0; block];
            while filler_file.write_all(&zeros).is_ok() {}
        }
    }

    /// Mounts it again, read-only (`ro`) or not (`rw`).
    #[track_caller]
    pub fn remount(&self, mode: &str) {
        let mounted = as_root("mount", &["-o", &format!("remount,{mode}")], self.0.path());
        assert!(mounted.status.success(), "{mounted:?}");
    }

    pub fn free(&self) {
        fs::remove_file(self.filler_file()).unwrap();
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // `-l`: a child process of a killed gateway may still have files open here.
        as_root("umount", &["-l"], self.0.path());
    }
}

/// Runs a command on a directory as root: directly, and with `sudo` if that fails.
fn as_root(command: &str, arguments: &[&str], directory: &Path) -> Output {
    let run = |words: &[&str]| {
        Command::new(words[0])
            .args(&words[1..])
            .args(arguments)
            .arg(directory)
            .output()
    };
    let direct = run(&[command]).unwrap();
    if direct.status.success() {
        return direct;
    }
    // If `sudo` cannot be started, show the first failure.
    run(&["sudo", "-n", command]).unwrap_or(direct)
}

fn queue(path: &str) -> String {
    format!(
        "{{ sqlite: {{ path: {path} }}, lease_seconds: 5, retry_seconds: 1, retry_seconds_max: 1, attempts_max: 100 }}"
    )
}

fn store(path: &str) -> String {
    format!("{{ local: {{ path: {path}, free_bytes_min: 0 }} }}")
}

#[test]
fn a_full_disk_loses_no_acknowledged_update_and_needs_no_restart() {
    let small = SmallDisk::mount();
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let record = |n| {
        let site = format!("project: p{n}\nowner: acme\nsubdomain: p{n}\n");
        format!("---\n{site}{}\n", docs.record())
    };
    setup.write_records("many", &(0..PROJECTS).map(record).collect::<String>());
    let setup = setup
        .conf("store", &store(&small.path("store")))
        .conf("queue", &queue(&small.path("updates.sqlite")));
    let key = key(&setup, "acme");
    let edge = setup.start();
    follow(&edge.setup, &trigger(&edge, &key, "p0"));

    small.fill();
    let mut acknowledged = Vec::new();
    let rejected = (1..PROJECTS).find_map(|n| {
        let answer = call(&edge, &key, "POST", &format!("/v1/project/update/p{n}"));
        if answer.status == 202 {
            let id = answer.json()["statusId"].as_str().unwrap().to_owned();
            acknowledged.push(id);
            return None;
        }
        Some(answer)
    });
    let rejected = rejected.expect("a full disk keeps no more updates");
    assert_eq!(rejected.status, 503, "{}", rejected.text());
    assert!(rejected.field("retry-after").is_some());
    let served = edge.get("p0.waypost.localhost", "/skill.md");
    assert_eq!(served.text(), SKILL, "the site is still served");

    small.free();
    acknowledged.push(trigger(&edge, &key, "p0"));
    for id in &acknowledged {
        let record = follow(&edge.setup, id);
        assert_eq!(record["status"], "success", "{record:#}");
    }
}

#[test]
fn a_full_store_leaves_the_last_release_and_the_update_waits_for_room() {
    let small = SmallDisk::mount();
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let updates = setup.path("updates.sqlite").display().to_string();
    let setup = setup
        .conf("store", &store(&small.path("store")))
        .conf("queue", &queue(&updates))
        .site("acme", &format!("owner: acme\n{}", docs.record()));
    let key = key(&setup, "acme");
    let edge = setup.start();
    follow(&edge.setup, &trigger(&edge, &key, "acme"));

    small.fill();
    let skill = SKILL.replace("# SDK", "# The new SDK");
    docs.push("Say more", &[("skill.md", &skill)]);
    let id = trigger(&edge, &key, "acme");
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let update = record(&edge.setup, &id);
        if update["logs"]
            .to_string()
            .contains("No space left on device")
        {
            assert!(update["endedAt"].is_null(), "{update:#}");
            // Authors do not learn where the service has its files.
            assert!(!update.to_string().contains(&small.path("")), "{update:#}");
            break;
        }
        assert!(Instant::now() < deadline, "{update:#}");
    }
    let host = "acme.waypost.localhost";
    assert_eq!(edge.get(host, "/skill.md").text(), SKILL);

    small.free();
    let update = follow(&edge.setup, &id);
    assert_eq!(update["status"], "success", "{update:#}");
    assert_eq!(edge.get(host, "/skill.md").text(), skill);
    assert!(Path::new(&small.path("store")).is_dir());
}
