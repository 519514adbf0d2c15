//! No owner can keep the worker from building the sites of another owner: slow hosts, killed
//! builds, builds out of time.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::edge::{Edge, Setup};
use crate::http::wait_until;
use crate::presets::SKILL;
use crate::repository::{Repository, SilentHost, follow, key, queue, record, setup, trigger};

/// How many pages take long enough to build.
const HEAVY_PAGES: usize = 60;

/// The processes that a process has started.
pub(super) fn children(process: u32) -> Vec<u32> {
    // The process may have ended.
    let tasks = fs::read_dir(format!("/proc/{process}/task"));
    tasks
        .into_iter()
        .flatten()
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

#[test]
fn an_owner_whose_releases_are_locked_has_no_place_for_builds() {
    let setup = setup().conf("worker", "{ builds_max: 1, grace_seconds: 0 }");
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let edge = setup
        .site("locked", &format!("owner: locked\n{}", docs.record()))
        .site("acme", &docs.record())
        .start();
    for project in ["locked", "acme"] {
        let done = follow(&edge.setup, &queue(&edge.setup, project));
        assert_eq!(done["status"], "success", "{done:#}");
    }
    // As a process that was stopped while it stores a release of this owner.
    let name = waypost::digest::Digest::of(b"locked").to_string();
    let lock = edge.setup.path("store/owners");
    let lock = fs::File::open(lock.join(format!("{}.lock", &name[..32]))).unwrap();
    lock.lock().unwrap();
    docs.push("Go on", &[("skill.md", &SKILL.replace("SDK", "SDK 2"))]);
    let locked = queue(&edge.setup, "locked");
    wait_until("the update has not been built", || {
        let lines = record(&edge.setup, &locked)["logs"].to_string();
        lines.contains("build:")
    });
    let since = Instant::now();
    let done = follow(&edge.setup, &queue(&edge.setup, "acme"));
    assert_eq!(done["status"], "success", "{done:#}");
    // The lock is waited for a minute.
    assert!(since.elapsed() < Duration::from_secs(30));
    lock.unlock().unwrap();
    let done = follow(&edge.setup, &locked);
    assert_eq!(done["status"], "success", "{done:#}");
}

/// A gateway with two slots for builds, an owner with slow projects and an owner with a fast
/// project.
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

/// A part of a page that takes seconds until it is over its limit of steps.
const SLOW: &str = "{(() => { let a = {}; for (let i = 0; i < 10; i++) a = Object.create(a); for (;;) { a.b; a.b; a.b; a.b; } })()}\n\n";

#[test]
fn a_page_that_takes_too_long_ends_its_update_and_is_named() {
    let setup = setup().conf("worker", "{ builds_max: 1, page_seconds: 2 }");
    let (slow, docs) = (
        Repository::new(&setup, "slow"),
        Repository::new(&setup, "docs"),
    );
    let navigation = r#"{ "name": "Slow", "navigation": { "pages": ["index", "guides/slow"] } }"#;
    let pieces = SLOW.repeat(5);
    let index = ("index.mdx", "# Slow\n");
    slow.push(
        "Begin",
        &[
            ("docs.json", navigation),
            index,
            ("guides/slow.mdx", &*pieces),
        ],
    );
    docs.push("Begin", &[("skill.md", SKILL)]);
    let file = setup.path("updates.sqlite").display().to_string();
    let conf = format!("{{ sqlite: {{ path: {file} }}, retry_seconds: 1 }}");
    let edge = setup
        .conf("queue", &conf)
        .site("slow", &format!("owner: slow\n{}", slow.record()))
        .site("acme", &docs.record())
        .start();
    let failed = follow(&edge.setup, &queue(&edge.setup, "slow"));
    assert_eq!(failed["status"], "failure", "{failed:#}");
    // A machine with much other work may have been the reason: once more, and then no more.
    assert_eq!(failed["attempts"], 2, "{failed:#}");
    let why = "guides/slow.mdx: reading this page takes longer than 2 s";
    assert!(failed["logs"].to_string().contains(why), "{failed:#}");
    assert!(
        failed["summary"].as_str().unwrap().contains(why),
        "{failed:#}"
    );
    let done = follow(&edge.setup, &queue(&edge.setup, "acme"));
    assert_eq!(done["status"], "success", "{done:#}");
}

#[test]
fn git_of_a_fetch_that_was_killed_is_killed_too() {
    let host = SilentHost::start();
    let edge = setup().site("acme", &host.record()).start();
    queue(&edge.setup, "acme");
    let _held = host.connected();
    let fetch = children(edge.id())[0];
    let git = children(fetch);
    let helpers = git.iter().flat_map(|id| children(*id));
    let git: Vec<_> = helpers.chain(git.iter().copied()).collect();
    assert!(!git.is_empty(), "git runs");
    // As the kernel does when memory is short.
    let killed = Command::new("kill")
        .args(["-KILL", &fetch.to_string()])
        .status();
    assert!(killed.unwrap().success());
    let runs = |id: &u32| {
        let status = fs::read_to_string(format!("/proc/{id}/status"));
        status.is_ok_and(|status| !status.contains("State:\tZ"))
    };
    // git itself would wait for 30 s.
    let deadline = Instant::now() + Duration::from_secs(10);
    while git.iter().any(runs) {
        assert!(Instant::now() < deadline, "{git:?} still run");
        std::thread::yield_now();
    }
}

/// What a process may report has a limit, and the diagnostics of these pages are more.
#[test]
fn a_build_with_very_many_diagnostics_ends_and_gives_its_place_back() {
    let setup = setup().conf("worker", "{ builds_max: 1, grace_seconds: 0 }");
    let loud = Repository::new(&setup, "loud");
    let below = vec!["a".repeat(240); 11].join("/");
    let unknown: Vec<_> = (0..1000).map(|n| format!("<B{n} />\n\n")).collect();
    let (page, config) = (
        unknown.concat(),
        r#"{ "name": "Loud", "navigation": { "pages": ["index"] } }"#,
    );
    let pages: Vec<_> = (0..30).map(|n| format!("{below}/p{n}.mdx")).collect();
    let mut files = vec![("docs.json", config), ("index.mdx", "# Loud\n")];
    files.extend(pages.iter().map(|name| (&**name, &*page)));
    loud.push("Begin", &files);
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let edge = setup
        .site("loud", &format!("owner: loud\n{}", loud.record()))
        .site("acme", &docs.record())
        .start();
    let loud = queue(&edge.setup, "loud");
    let deadline = Instant::now() + Duration::from_secs(120);
    let ended = loop {
        let record = record(&edge.setup, &loud);
        if !record["endedAt"].is_null() {
            break record;
        }
        assert!(Instant::now() < deadline, "{}", record["status"]);
    };
    assert_eq!(ended["status"], "success", "{}", ended["summary"]);
    let logs = ended["logs"].as_array().unwrap();
    let last: Vec<_> = logs.iter().rev().take(20).collect();
    assert!(logs.len() < 2000, "{} lines", logs.len());
    let said = format!("{last:?}");
    assert!(said.contains("lines of the report are left out"), "{said}");
    let done = follow(&edge.setup, &queue(&edge.setup, "acme"));
    assert_eq!(done["status"], "success", "{done:#}");
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

/// If the releases of an owner use all allowed bytes, the history is removed first. Then the update
/// fails, and the served release stays.
#[test]
fn an_owner_cannot_fill_the_store() {
    let setup = setup();
    let root = setup.path("").display().to_string();
    let store = format!("{{ local: {{ path: {root}/store, owner_bytes_max: 4000000 }} }}");
    let docs = Repository::new(&setup, "docs");
    let record = docs.record();
    let edge = setup.conf("store", &store).site("acme", &record).start();
    let push = |mebibytes: u8| {
        let mut seed = u32::from(mebibytes) + 1;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed.to_be_bytes()[0]
        };
        // Bytes without a pattern cannot be compressed, so they are stored once.
        let paper: Vec<u8> = (0..usize::from(mebibytes) << 20).map(|_| next()).collect();
        fs::write(edge.setup.path("docs/paper.pdf"), paper).unwrap();
        let config = r#"{ "name": "Acme", "navigation": { "pages": ["index"] } }"#;
        let page = format!("# Acme\n\nVersion {mebibytes}. [Paper](/paper.pdf)\n");
        docs.push("Draw", &[("docs.json", config), ("index.mdx", &page)]);
        follow(&edge.setup, &queue(&edge.setup, "acme"))
    };
    let releases = || {
        let output = edge.setup.run(&["releases", "acme"]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().lines().count()
    };
    let one = push(1);
    assert_eq!(one["status"], "success", "{one:#}");
    let before = releases();
    let two = push(2);
    assert_eq!(two["status"], "success", "{two:#}");
    let said = two["logs"].to_string();
    assert!(
        !said.contains("of this owner, because its releases use too many bytes"),
        "{said}"
    );
    assert_eq!(releases(), before + 1);
    let three = push(3);
    assert_eq!(three["status"], "success", "{three:#}");
    let said = three["logs"].to_string();
    assert!(
        said.contains("of this owner, because its releases use too many bytes"),
        "{said}"
    );
    assert_eq!(releases(), before);
    let four = push(5);
    assert_eq!(four["status"], "failure", "{four:#}");
    let summary = four["summary"].as_str().unwrap();
    assert!(
        summary.starts_with("the releases of this owner would use "),
        "{summary}"
    );
    // The quota holds for `publish`, too.
    let root = edge.setup.path("docs").display().to_string();
    let publish = ["publish", &*root, "--root", &*root, "--project", "acme"];
    let published = edge.setup.run(&publish);
    assert_eq!(published.status.code(), Some(2), "{published:?}");
    let said = String::from_utf8(published.stderr).unwrap();
    assert!(
        said.contains("the releases of this owner would use "),
        "{said}"
    );
    let page = edge.get("acme.waypost.localhost", "/");
    assert!(page.text().contains("Version 3."), "{}", page.text());
}

/// A terminal shows the text of a commit and obeys no control sequence in it.
#[test]
fn a_commit_cannot_write_to_the_terminal_of_an_operator() {
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin\u{1b}]0;owned\u{7}\u{202e}", &[("skill.md", SKILL)]);
    docs.git(&[
        "-c",
        "user.name=A\u{1b}[2Jda",
        "commit",
        "--quiet",
        "--amend",
        "--no-edit",
        "--reset-author",
    ]);
    let edge = setup.site("acme", &docs.record()).start();
    let id = queue(&edge.setup, "acme");
    let followed = edge.setup.run(&["update", "status", &id, "--follow"]);
    let shown = String::from_utf8(followed.stdout).unwrap();
    assert!(shown.contains("owned"), "{shown}");
    let is_obeyed = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
    assert!(!shown.contains(is_obeyed), "{shown:?}");
    let record = record(&edge.setup, &id);
    for text in [&record["commit"]["message"], &record["author"]["name"]] {
        let text = text.as_str().unwrap();
        assert!(!text.contains(is_obeyed), "{text:?}");
    }
}

/// A host that answers each request with one byte at a time, for ever.
fn dripping_host() -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let drip = |mut stream: std::net::TcpStream| {
        let mut head = [0; 4096];
        let _read = stream.read(&mut head);
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\
                    Content-Type: application/x-git-upload-pack-advertisement\r\n\r\n\
                    001e# service=git-upload-pack\n0000";
        let mut is_open = stream.write_all(head.as_bytes()).is_ok();
        while is_open {
            std::thread::sleep(Duration::from_millis(20));
            is_open = stream.write_all(b"0").is_ok();
        }
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || drip(stream));
        }
    });
    address
}

#[test]
fn a_host_that_sends_too_slowly_loses_its_fetch() {
    let url = format!("http://{}/docs.git", dripping_host());
    let record = format!("repository: {{ url: \"{url}\", branch: main }}");
    let setup = setup()
        .conf(
            "worker",
            "{ fetch_rate_min: 100000, fetch_grace_seconds: 1 }",
        )
        .site("acme", &record);
    let file = setup.path("updates.sqlite").display().to_string();
    let conf = format!("{{ sqlite: {{ path: {file} }}, attempts_max: 1 }}");
    let edge = setup.conf("queue", &conf).start();
    let since = Instant::now();
    let failed = follow(&edge.setup, &queue(&edge.setup, "acme"));
    assert_eq!(failed["status"], "failure", "{failed:#}");
    let summary = failed["summary"].as_str().unwrap();
    assert!(
        summary.contains("sends fewer than 100000 bytes per second"),
        "{summary}"
    );
    // git itself would wait for 30 s.
    assert!(since.elapsed() < Duration::from_secs(20));
}

/// Makes documentation with this many pages. Each page takes long to build.
fn heavy(setup: &Setup, pages: usize) -> String {
    let heavy = Repository::new(setup, "heavy");
    let names: Vec<_> = (0..pages).map(|n| format!("\"p{n}\"")).collect();
    let config = format!(
        "{{ \"name\": \"Heavy\", \"navigation\": {{ \"pages\": [{}] }} }}",
        names.join(",")
    );
    let code = "```js\nconst a = `${b(`${c}`)}` /* d */ + { e: [1, 2, 3] };\n```\n\n";
    let page = code.repeat(200);
    let pages: Vec<_> = (0..pages).map(|n| format!("p{n}.mdx")).collect();
    let mut files = vec![("docs.json", &*config)];
    files.extend(pages.iter().map(|name| (&**name, &*page)));
    heavy.push("Begin", &files);
    heavy.record()
}

/// Long builds do not hold all places. A build that is stopped for another owner begins anew, and
/// is published.
#[test]
fn owners_whose_builds_take_long_leave_a_place_for_the_others() {
    let mut setup = setup().conf(
        "worker",
        "{ builds_max: 2, light_seconds: 1, grace_seconds: 0 }",
    );
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let record_of_heavy = heavy(&setup, 12 * HEAVY_PAGES);
    for owner in 0..4 {
        let record = format!("owner: heavy{owner}\n{record_of_heavy}");
        setup = setup.site(&format!("heavy{owner}"), &record);
    }
    let edge = setup.site("acme", &docs.record()).start();
    let heavy: Vec<_> = (0..4)
        .map(|owner| queue(&edge.setup, &format!("heavy{owner}")))
        .collect();
    let status = |id: &str| record(&edge.setup, id);
    let is_building = |id: &&String| status(id)["logs"].to_string().contains("read: ");
    wait_until("no two heavy updates build", || {
        heavy.iter().filter(is_building).count() >= 2
    });
    for _ in 0..3 {
        let done = follow(&edge.setup, &queue(&edge.setup, "acme"));
        assert_eq!(done["status"], "success", "{done:#}");
    }
    let ended: Vec<_> = heavy
        .iter()
        .filter(|id| status(id)["status"] == "success")
        .collect();
    assert!(ended.is_empty(), "{ended:?}");
    let stops = |id: &String| {
        let logs = status(id)["logs"].to_string();
        let line = "build: stopped, because builds of this owner take long";
        logs.matches(line).count()
    };
    let stopped: Vec<_> = heavy.iter().filter(|id| stops(id) > 0).collect();
    assert!(!stopped.is_empty());
    assert!(stopped.iter().all(|id| stops(id) == 1), "{stopped:?}");
    let ended = follow(&edge.setup, stopped[0]);
    assert_eq!(ended["status"], "success", "{ended:#}");
    assert_eq!(ended["attempts"], 1, "{ended:#}");
}

/// The actions of four owners during the update of another owner.
enum Hostility {
    /// Their hosts never respond.
    Silent,
    /// Their hosts send a byte from time to time.
    Dripping,
    /// The processes of their updates are killed.
    Dying,
    /// Their pages take long to build.
    Heavy,
}

/// Measures how long an update takes: alone (p50, p99), and beside four hostile owners (p50, p99).
#[expect(clippy::print_stdout, reason = "a figure of the long run")]
fn beside(hostility: &Hostility, rounds: usize) -> [Duration; 4] {
    let host = SilentHost::start();
    let mut setup = setup().conf("worker", "{ builds_max: 2, grace_seconds: 0 }");
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let record = match hostility {
        Hostility::Dripping => {
            let url = format!("http://{}/docs.git", dripping_host());
            format!("repository: {{ url: \"{url}\", branch: main }}")
        }
        Hostility::Dying | Hostility::Silent => host.record(),
        Hostility::Heavy => heavy(&setup, HEAVY_PAGES),
    };
    let mut slow = Vec::new();
    for owner in 0..4 {
        let key = key(&setup, &format!("slow{owner}"));
        for project in 0..(if owner == 3 { 6 } else { 1 }) {
            let name = format!("slow{owner}-{project}");
            setup = setup.site(&name, &format!("owner: slow{owner}\n{record}"));
            slow.push((key.clone(), name));
        }
    }
    let edge = setup.site("acme", &docs.record()).start();
    let update = || {
        let since = Instant::now();
        let done = follow(&edge.setup, &queue(&edge.setup, "acme"));
        assert_eq!(done["status"], "success", "{done:#}");
        since.elapsed()
    };
    update();
    let quiet: Vec<_> = (0..rounds).map(|_| update()).collect();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let busy = std::thread::scope(|scope| {
        // The other owners are hostile during the whole measurement.
        let hostile = scope.spawn(|| {
            let mut next = slow.iter().cycle();
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                let (key, project) = next.next().unwrap();
                trigger(&edge, key, project);
                if matches!(hostility, Hostility::Dying) {
                    kill_fetches(&edge);
                }
                // Each project is triggered five times a second, so its next update always waits.
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        wait_until("no hostile update runs", || {
            edge.metric("deploy_queue_updates{state=\"in_progress\"}") >= 2.0
        });
        // At first no owner counts as heavy: each may take a place once until it does.
        let first = (0..rounds.min(8)).map(|_| update()).max().unwrap();
        println!("the slowest of the first eight: {first:?}");
        let busy: Vec<_> = (0..rounds).map(|_| update()).collect();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        hostile.join().unwrap();
        busy
    });
    let place = |times: &[Duration], percent: usize| {
        let mut times = times.to_vec();
        times.sort();
        times[(times.len() * percent).div_ceil(100) - 1]
    };
    [
        place(&quiet, 50),
        place(&quiet, 99),
        place(&busy, 50),
        place(&busy, 99),
    ]
}

/// Kills the processes of the gateway that fetch over the network.
fn kill_fetches(edge: &Edge) {
    for child in children(edge.id()) {
        let fetches = children(child).into_iter().any(|program| {
            let line = fs::read(format!("/proc/{program}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("http://127.0.0.1:")
        });
        if fetches {
            // It may have ended meanwhile.
            let _killed = Command::new("kill")
                .args(["-KILL", &child.to_string()])
                .stderr(std::process::Stdio::null())
                .status();
        }
    }
}

/// Checks that an update beside four hostile owners takes at most twice as long as alone.
#[track_caller]
#[expect(clippy::print_stdout, reason = "a figure of the long run")]
fn four_owners_delay_no_other(hostility: &Hostility) {
    let is_long = std::env::var_os("WAYPOST_LONG_TESTS").is_some();
    let rounds = if is_long { 100 } else { 3 };
    let [quiet50, quiet99, p50, p99] = beside(hostility, rounds);
    println!("alone p50 {quiet50:?}, p99 {quiet99:?}; beside four owners p50 {p50:?}, p99 {p99:?}");
    // All tests of the short run share the processors of the machine.
    let slack = Duration::from_secs(if is_long { 0 } else { 15 });
    assert!(p99 <= quiet99 * 2 + slack, "{p99:?} against {quiet99:?}");
}

#[test]
fn four_owners_with_hosts_that_never_respond_delay_no_other() {
    four_owners_delay_no_other(&Hostility::Silent);
}

#[test]
fn four_owners_with_hosts_that_send_too_slowly_delay_no_other() {
    four_owners_delay_no_other(&Hostility::Dripping);
}

#[test]
fn four_owners_whose_builds_die_delay_no_other() {
    four_owners_delay_no_other(&Hostility::Dying);
}

#[test]
fn four_owners_with_heavy_pages_delay_no_other() {
    four_owners_delay_no_other(&Hostility::Heavy);
}
