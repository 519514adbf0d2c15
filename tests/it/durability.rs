//! What is acknowledged is kept, whatever happens to the process.
//!
//! The program is killed from outside: at random while it works, and at the system calls
//! that make things durable. `WAYPOST_ROUNDS` sets how often; a few rounds run by default.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use waypost::clock::Clock;
use waypost::site::ProjectId;
use waypost::store::{Fence, Local, Retention, Store, local};

use crate::edge::{Edge, SKILL, Setup};
use crate::http::Connection;
use crate::repository::{API, Repository, follow, key, setup};

const PROJECTS: usize = 4;

/// How many times to kill.
fn rounds(default: u64) -> u64 {
    std::env::var("WAYPOST_ROUNDS").map_or(default, |rounds| rounds.parse().unwrap())
}

/// A gateway with a few sites of one repository, and leases that end soon.
fn sites() -> (Setup, String) {
    let mut setup = setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let queue = setup.path("updates.sqlite").display().to_string();
    setup = setup.conf(
        "queue",
        &format!("{{ sqlite: {{ path: {queue} }}, lease_seconds: 5, retry_seconds: 1, attempts_max: 100 }}"),
    );
    for n in 0..PROJECTS {
        setup.write_site(&format!("p{n}"), &format!("owner: acme\n{}", docs.record()));
    }
    let key = key(&setup, "acme");
    (setup, key)
}

/// Triggers until the gateway is gone, and returns every id that was acknowledged.
fn trigger_until_gone(edge: &Edge, key: &str) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for n in 0.. {
        let request = format!(
            "POST /v1/project/update/p{} HTTP/1.1\r\nHost: {API}\r\nAuthorization: Bearer {key}\r\nContent-Length: 0\r\n\r\n",
            n % PROJECTS
        );
        let Ok(answer) = std::panic::catch_unwind(|| {
            let mut connection = Connection::open(edge.http);
            connection.send(request.as_bytes());
            connection.receive("POST")
        }) else {
            break;
        };
        match answer {
            Some(answer) if answer.status == 202 => {
                acknowledged.push(answer.json()["statusId"].as_str().unwrap().to_owned());
            }
            Some(answer) => assert_eq!(answer.status, 503, "{}", answer.text()),
            None => break,
        }
    }
    acknowledged
}

/// Opens the store, reads every file of every current release, and returns the fences.
#[track_caller]
fn whole(setup: &Setup) -> BTreeMap<String, Fence> {
    let config = local::Config {
        path: setup.path("store"),
        retention: Retention::default(),
    };
    let store = Store::Local(Local::open(&config, Clock::System).unwrap());
    let mut fences = BTreeMap::new();
    for project in (0..PROJECTS).map(|n| ProjectId::parse(&format!("p{n}")).unwrap()) {
        let Some(pointer) = store.current(&project).unwrap() else {
            continue;
        };
        for (_, item) in store.inventory(pointer.current.release).unwrap().iter() {
            store.read(item).unwrap();
        }
        fences.insert(project.to_string(), pointer.current.fence());
    }
    fences
}

/// Holds the promises after a crash, and those of all crashes before.
#[track_caller]
fn check(setup: &Setup, fences: &mut BTreeMap<String, Fence>) {
    let now = whole(setup);
    for (project, before) in fences.iter() {
        assert!(now[project] >= *before, "{project} went back from {before}");
    }
    *fences = now;
    let database = setup.path("updates.sqlite");
    let checked = Command::new("sqlite3")
        .arg(database)
        .arg("pragma integrity_check")
        .output();
    if let Ok(checked) = checked {
        assert_eq!(checked.stdout, b"ok\n", "{checked:?}");
    }
}

/// Every acknowledged update ends, and stays as it ended.
#[track_caller]
fn all_end(setup: Setup, acknowledged: &[String]) {
    let edge = setup.start();
    let mut ended = BTreeMap::new();
    for id in acknowledged {
        let record = follow(&edge.setup, id);
        assert_eq!(record["status"], "success", "{record:#}");
        ended.insert(id, record);
    }
    for (id, before) in ended {
        assert_eq!(crate::repository::record(&edge.setup, id), before);
    }
}

#[test]
fn no_acknowledged_update_is_lost_when_the_process_is_killed_at_any_moment() {
    let (mut setup, key) = sites();
    let mut acknowledged = Vec::new();
    let mut fences = BTreeMap::new();
    for round in 0..rounds(4) {
        let edge = setup.start();
        let life = Duration::from_millis(30 + round * 7919 % 400);
        let id = edge.id();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(life);
            Command::new("kill").args(["-9", &id.to_string()]).status()
        });
        acknowledged.extend(trigger_until_gone(&edge, &key));
        killer.join().unwrap().unwrap();
        setup = edge.ended();
        check(&setup, &mut fences);
    }
    acknowledged.sort();
    acknowledged.dedup();
    assert!(!acknowledged.is_empty());
    all_end(setup, &acknowledged);
}

/// Whether this machine lets a process be traced.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn can_trace() -> bool {
    let traced = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .status();
    let can = traced.is_ok_and(|status| status.success());
    if !can {
        println!("skipped: strace cannot trace here");
    }
    can
}

#[test]
fn no_acknowledged_update_is_lost_when_the_process_is_killed_at_a_durable_system_call() {
    if !can_trace() {
        return;
    }
    let (mut setup, key) = sites();
    let mut acknowledged = Vec::new();
    let mut fences = BTreeMap::new();
    let calls = [
        "fdatasync",
        "fsync",
        "rename,renameat,renameat2",
        "linkat,link",
        "pwrite64",
    ];
    for round in 0..rounds(5) {
        let call = calls[usize::try_from(round).unwrap() % calls.len()];
        let inject = format!("inject={call}:signal=KILL:when={}", 12 + round * 31 % 97);
        let trace = format!("trace={call}");
        let strace = [
            "strace",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            &trace,
            "-e",
            &inject,
        ];
        let edge = setup.under(&strace).start();
        let began = Instant::now();
        let watchdog = edge.id();
        let guard = std::thread::spawn(move || {
            // A call that is never made so often leaves the process alive.
            std::thread::sleep(Duration::from_secs(3));
            Command::new("pkill")
                .args(["-KILL", "-P", &watchdog.to_string()])
                .status()
        });
        acknowledged.extend(trigger_until_gone(&edge, &key));
        assert!(began.elapsed() < Duration::from_secs(15));
        guard.join().unwrap().unwrap();
        setup = edge.ended().under(&[]);
        check(&setup, &mut fences);
    }
    acknowledged.sort();
    acknowledged.dedup();
    all_end(setup, &acknowledged);
}

#[test]
fn a_disk_that_fails_acknowledges_nothing() {
    if !can_trace() {
        return;
    }
    for error in ["EIO", "ENOSPC"] {
        let (setup, key) = sites();
        // Made before, so that only triggers write.
        setup.run(&["update", "dead-letters"]);
        let inject = format!("inject=fdatasync,fsync:error={error}:when=1+");
        let strace = [
            "strace",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=fdatasync,fsync",
            "-e",
            &inject,
        ];
        let edge = setup.under(&strace).start();
        for n in 0..3 {
            let authorization = format!("Bearer {key}");
            let path = format!("/v1/project/update/p{n}");
            let answer = edge.request("POST", API, &path, &[("Authorization", &authorization)]);
            assert_eq!(answer.status, 503, "{error}: {}", answer.text());
            assert!(answer.field("retry-after").is_some());
        }
    }
}
