//! An acknowledged update is never lost, even if the process is killed at any moment.
//!
//! The program is killed from outside: at random moments while it works, and as it enters
//! the system calls that make data durable. Each test also asserts that updates were
//! acknowledged and that the process was killed, so no test passes without having tested
//! anything. A few rounds run by default, a thousand with `WAYPOST_LONG_TESTS=1` (`make soak`).

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::{Duration, Instant};

use waypost::site::ProjectId;
use waypost::store::{Fence, Store};

use crate::edge::{Edge, Setup};
use crate::http::Connection;
use crate::presets::SKILL;
use crate::repository::{API, Repository, follow, key, setup, trigger};

const PROJECTS: usize = 4;

/// System calls that make data durable, and the number of the call at which a thread is killed.
///
/// The first number is the earliest such call, the second is the size of the range of calls that
/// begins there. The queue writes with `pwrite64` and flushes with `fsync`; the store flushes with
/// `fsync` and publishes with a rename.
const DURABLE_CALLS: [(&str, usize, usize); 3] = [
    ("fsync", 2, 20),
    ("?rename,?renameat,?renameat2", 2, 3),
    ("pwrite64", 40, 60),
];

/// How many times a test kills the process.
fn rounds(default: usize) -> usize {
    match std::env::var_os("WAYPOST_LONG_TESTS") {
        Some(_) => 500,
        None => default,
    }
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

/// Triggers updates until the gateway ends, and returns every acknowledged id.
fn trigger_until_closed(edge: &Edge, key: &str) -> BTreeSet<String> {
    let mut acknowledged = BTreeSet::new();
    for n in 0.. {
        let request = format!(
            "POST /v1/project/update/p{} HTTP/1.1\r\nHost: {API}\r\nAuthorization: Bearer {key}\r\nContent-Length: 0\r\n\r\n",
            n % PROJECTS
        );
        // An update counts as acknowledged when the whole response has come.
        let Ok(answer) = std::panic::catch_unwind(|| {
            let mut connection = Connection::open(edge.http);
            connection.send(request.as_bytes());
            connection.receive("POST")
        }) else {
            break;
        };
        match answer {
            Some(answer) if answer.status == 202 => {
                acknowledged.insert(answer.json()["statusId"].as_str().unwrap().to_owned());
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
    let store = Store::open_directory(setup.path("store")).unwrap();
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

/// Checks the promises after a crash, also for updates from before earlier crashes.
#[track_caller]
fn check(setup: &Setup, fences: &mut BTreeMap<String, Fence>) {
    let now = whole(setup);
    for (project, before) in fences.iter() {
        assert!(now[project] >= *before, "{project} went back from {before}");
    }
    *fences = now;
    let checked = Command::new("sqlite3")
        .arg(setup.path("updates.sqlite"))
        .arg("pragma integrity_check")
        .output()
        .expect("sqlite3 is not installed; `make test` installs it");
    assert_eq!(checked.stdout, b"ok\n", "{checked:?}");
}

/// Asserts that every acknowledged update ends, and that its final status never changes.
#[track_caller]
fn all_end(setup: Setup, acknowledged: &BTreeSet<String>) -> Setup {
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
    edge.signal("TERM");
    edge.ended()
}

#[test]
fn no_acknowledged_update_is_lost_when_the_process_is_killed_at_any_moment() {
    let (mut setup, key) = sites();
    let mut acknowledged = BTreeSet::new();
    let mut fences = BTreeMap::new();
    for round in 0..rounds(4) {
        let edge = setup.start();
        let life = Duration::from_millis(30 + round as u64 * 7919 % 400);
        let id = edge.id();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(life);
            Command::new("kill").args(["-9", &id.to_string()]).status()
        });
        acknowledged.extend(trigger_until_closed(&edge, &key));
        killer.join().unwrap().unwrap();
        setup = edge.ended();
        check(&setup, &mut fences);
    }
    assert!(!acknowledged.is_empty(), "no update was acknowledged");
    all_end(setup, &acknowledged);
}

/// Returns the arguments with which `strace` injects a fault into the calls of one name.
fn strace<'a>(trace: &'a str, inject: &'a str) -> [&'a str; 9] {
    [
        "strace",
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        trace,
        "-e",
        inject,
    ]
}

#[test]
fn no_acknowledged_update_is_lost_when_the_process_is_killed_at_a_durable_system_call() {
    let (setup, key) = sites();
    // The queue and the store exist, and no round leaves an update waiting. So a start makes none
    // of these calls, and the gateway accepts triggers before it is killed.
    let edge = setup.start();
    follow(&edge.setup, &trigger(&edge, &key, "p0"));
    edge.signal("TERM");
    let mut setup = edge.ended();
    let mut acknowledged = 0;
    let mut fences = BTreeMap::new();
    let mut killed = [0; DURABLE_CALLS.len()];
    for round in 0..rounds(2 * DURABLE_CALLS.len()) {
        let which = round % DURABLE_CALLS.len();
        let (call, first, more) = DURABLE_CALLS[which];
        let nth = first + round / DURABLE_CALLS.len() * 7 % more;
        // strace counts the calls of each thread.
        let inject = format!("inject={call}:signal=KILL:when={nth}");
        let edge = setup
            .wrapped_by(&strace(&format!("trace={call}"), &inject))
            .start();
        let (began, id) = (Instant::now(), edge.id());
        let (over, wait) = std::sync::mpsc::channel::<()>();
        let watchdog = std::thread::spawn(move || {
            // If no thread reaches this number of calls, the process stays alive.
            let is_alive = wait.recv_timeout(Duration::from_secs(15)).is_err();
            if is_alive {
                let kill = ["-KILL", "-P", &id.to_string()];
                Command::new("pkill").args(kill).status().unwrap();
            }
            is_alive
        });
        let ids = trigger_until_closed(&edge, &key);
        assert!(began.elapsed() < Duration::from_secs(60));
        over.send(()).ok();
        killed[which] += usize::from(!watchdog.join().unwrap());
        setup = edge.ended().wrapped_by(&[]);
        check(&setup, &mut fences);
        setup = all_end(setup, &ids);
        acknowledged += ids.len();
    }
    assert!(acknowledged > 0, "no update was acknowledged");
    assert!(
        killed.iter().all(|count| *count > 0),
        "no kill came at one of {DURABLE_CALLS:?}: {killed:?}"
    );
}

#[test]
fn a_failing_disk_acknowledges_nothing() {
    for error in ["EIO", "ENOSPC"] {
        let (setup, key) = sites();
        // Creates the file of the queue, so that only triggers write to it later.
        let listed = setup.run(&["update", "dead-letters"]);
        assert!(listed.status.success(), "{listed:?}");
        let inject = format!("inject=fdatasync,fsync:error={error}:when=1+");
        let edge = setup
            .wrapped_by(&strace("trace=fdatasync,fsync", &inject))
            .start();
        for n in 0..3 {
            let authorization = format!("Bearer {key}");
            let path = format!("/v1/project/update/p{n}");
            let answer = edge.request("POST", API, &path, &[("Authorization", &authorization)]);
            assert_eq!(answer.status, 503, "{error}: {}", answer.text());
            assert!(answer.field("retry-after").is_some());
        }
    }
}
