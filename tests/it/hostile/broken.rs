//! A bad commit, a broken queue or a damaged store changes no served site.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::neighbours::children;
use crate::edge::{Edge, Setup};
use crate::full::SmallDisk;
use crate::http::{self, Response, wait_until};
use crate::presets::SKILL;
use crate::repository::{API, Repository, SilentHost, call, follow, key, queue, setup};

const CONFIG: &str = r#"{"name": "Acme", "navigation": {"pages": ["index"]}}"#;
const PAGES: [(&str, &str); 2] = [("docs.json", CONFIG), ("index.mdx", "# Welcome\n")];
const HOST: &str = "acme.waypost.localhost";

/// A gateway that serves the pages of a repository.
fn deployed() -> (Edge, Repository) {
    let (edge, docs, _key) = deployed_with_key();
    (edge, docs)
}

/// The same, with an admin key.
fn deployed_with_key() -> (Edge, Repository, String) {
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &PAGES);
    let key = key(&setup, "acme");
    let edge = setup.site("acme", &docs.record()).start();
    let record = follow(&edge.setup, &queue(&edge.setup, "acme"));
    assert_eq!(record["status"], "success", "{record:#}");
    (edge, docs, key)
}

#[track_caller]
fn assert_rejected(edge: &Edge, what: &str, rule: &str) {
    let record = follow(&edge.setup, &queue(&edge.setup, "acme"));
    assert_eq!(record["status"], "failure", "{what}: {record:#}");
    assert_eq!(record["attempts"], 1, "{what}: {record:#}");
    let logs = record["logs"].to_string();
    assert!(logs.contains(&format!("error[{rule}]")), "{what}: {logs}");
    assert_eq!(edge.get(HOST, "/").status, 200, "{what}");
}

#[test]
fn a_commit_without_pages_fails_and_the_release_stays_served() {
    let (edge, docs) = deployed();
    docs.git(&["rm", "--quiet", "docs.json"]);
    docs.push("Delete the configuration", &[]);
    assert_rejected(&edge, "no docs.json", "config");

    docs.push("Only skills", &[("skill.md", SKILL)]);
    assert_rejected(&edge, "skills without the pages", "config");

    docs.push("The older format", &[("mint.json", CONFIG)]);
    assert_rejected(&edge, "mint.json", "config");
    let record = follow(&edge.setup, &queue(&edge.setup, "acme"));
    assert!(record["logs"].to_string().contains("waypost convert"));

    let no_page = r#"{"name": "Acme", "navigation": {"pages": ["gone"]}}"#;
    docs.git(&["rm", "--quiet", "index.mdx"]);
    docs.push("No page", &[("docs.json", no_page)]);
    assert_rejected(&edge, "no page", "no-page");

    docs.git(&["rm", "--quiet", "-r", "."]);
    docs.push("Nothing", &[]);
    assert_rejected(&edge, "an empty tree", "config");

    edge.write_site("acme", &format!("allow_empty: true\n{}", docs.record()));
    let record = follow(&edge.setup, &queue(&edge.setup, "acme"));
    assert_eq!(record["status"], "success", "{record:#}");
    assert_eq!(edge.get(HOST, "/").status, 404);
}

#[test]
fn the_first_update_without_pages_fails_too() {
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("README.md", "Soon.")]);
    let edge = setup.site("acme", &docs.record()).start();
    let record = follow(&edge.setup, &queue(&edge.setup, "acme"));
    assert_eq!(record["status"], "failure", "{record:#}");
    assert!(record["summary"].as_str().unwrap().contains("docs.json"));
}

#[test]
fn publishing_an_empty_directory_needs_an_option() {
    let setup = Setup::new().site("acme", "");
    setup.publish("acme", &PAGES);
    for files in [&[][..], &[("skill.md", SKILL)]] {
        let docs = setup.documentation(files);
        let docs = docs.to_str().unwrap();
        let publish = ["publish", docs, "--root", docs, "--project", "acme"];
        let rejected = setup.run(&publish);
        assert_eq!(rejected.status.code(), Some(1), "{rejected:?}");
        let told = String::from_utf8(rejected.stdout).unwrap();
        assert!(told.contains("error[config]"), "{told}");
        let meant = setup.run(&[&publish[..], &["--allow-empty"]].concat());
        assert!(meant.status.success(), "{meant:?}");
        setup.publish("acme", &PAGES);
    }
}

#[test]
fn a_broken_skill_does_not_stop_pages() {
    let (edge, docs) = deployed();
    let broken = "---\nname: pay\ndescription: Use when: asked\n---\n";
    docs.push(
        "Say more",
        &[("index.mdx", "# New\n"), ("skill.md", broken)],
    );
    let record = follow(&edge.setup, &queue(&edge.setup, "acme"));
    assert_eq!(record["status"], "success", "{record:#}");
    assert!(record["logs"].to_string().contains("skill-none"));
    assert!(edge.get(HOST, "/").text().contains("New"));
    let skill = edge.get(HOST, "/skill.md");
    assert_eq!(skill.status, 200, "a generated skill is served");
    assert_ne!(skill.text(), broken);
}

/// Asks for the page and triggers an update; returns the response to the trigger.
#[track_caller]
fn served_and_triggered(edge: &Edge, key: &str) -> Response {
    assert_eq!(edge.get(HOST, "/").status, 200);
    call(edge, key, "POST", "/v1/project/update/acme")
}

/// Starts a gateway with a queue that `breaks` has broken, and shows that only updates suffer.
#[track_caller]
fn serves_with_a_broken_queue<T>(
    breaks: impl FnOnce(&Path) -> T,
    cause: &str,
    reason: &str,
    heals: impl FnOnce(T, &Path),
) {
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &PAGES);
    let setup = setup.site("acme", &format!("owner: acme\n{}", docs.record()));
    setup.publish("acme", &PAGES);
    let key = key(&setup, "acme");
    let file = setup.path("updates.sqlite");
    let broken = breaks(&file);

    let edge = setup.start();
    for _ in 0..3 {
        let rejected = served_and_triggered(&edge, &key);
        assert_eq!(rejected.status, 503, "{}", rejected.text());
        assert!(rejected.text().contains(reason), "{}", rejected.text());
        assert!(rejected.field("retry-after").is_some());
    }
    let names_cause = |line: &serde_json::Value| line.to_string().contains(cause);
    edge.wait_for_log(names_cause);
    let rejected = edge.metric("deploy_triggers_rejected_total{reason=\"queue_outage\"}");
    assert!(rejected >= 3.0, "{rejected}");
    // It is ready, and says which part fails.
    let (status, ready) = readiness(&edge);
    assert_eq!(
        (status, &ready["status"]),
        (200, &"degraded".into()),
        "{ready:#}"
    );
    let fails = |part: &str| {
        let part = &ready["parts"][part];
        part["status"] == "failing" && part["cause"].to_string().contains(cause)
    };
    assert!(
        fails("queue_reading") || fails("queue_writing"),
        "{ready:#}"
    );
    assert_eq!(ready["parts"]["releases"]["status"], "ok", "{ready:#}");
    // One line for reading and one for writing, however many calls were rejected.
    assert!(edge.count_log(names_cause) <= 2);

    heals(broken, &file);
    wait_until("the queue is not opened again", || {
        served_and_triggered(&edge, &key).status == 202
    });
    let record = follow(&edge.setup, &queue(&edge.setup, "acme"));
    assert_eq!(record["status"], "success", "{record:#}");
    wait_until("a part still fails", || {
        readiness(&edge).1["status"] == "ready"
    });
}

/// Returns the status and the body of `/readyz?full`.
fn readiness(edge: &Edge) -> (u16, serde_json::Value) {
    let ready = http::request(edge.operator, "GET", "localhost", "/readyz?full", &[]);
    (ready.status, ready.json())
}

/// Changes a byte of each stored file of a release whose path begins with `path`.
fn damage(setup: &Setup, release: &str, path: &str) -> usize {
    let (shard, rest) = release.split_at(2);
    let inventory = setup.path("store/inventories").join(shard);
    let inventory = fs::read(inventory.join(format!("{rest}.json"))).unwrap();
    let inventory: serde_json::Value = serde_json::from_slice(&inventory).unwrap();
    let files = inventory["files"].as_object().unwrap();
    let chosen = files.iter().filter(|(name, _)| name.starts_with(path));
    let mut count = 0;
    for (_, item) in chosen {
        let digest = item["digest"].as_str().unwrap();
        let (shard, rest) = digest.split_at(2);
        let file = setup.path("store/content").join(shard).join(rest);
        let mut bytes = fs::read(&file).unwrap();
        bytes[0] ^= 1;
        fs::write(file, bytes).unwrap();
        count += 1;
    }
    count
}

#[test]
fn a_damaged_page_is_reported_once_and_until_it_is_repaired() {
    let setup = Setup::new().site("acme", "");
    let published = setup.publish("acme", &PAGES);
    assert!(damage(&setup, &published.release, "pages/index.") > 0);
    let edge = setup.start();
    assert_eq!(readiness(&edge).1["parts"]["files"]["status"], "ok");
    for _ in 0..5 {
        assert_eq!(edge.get(HOST, "/").status, 503);
    }
    let (status, ready) = readiness(&edge);
    assert_eq!(
        (status, &ready["status"]),
        (200, &"degraded".into()),
        "{ready:#}"
    );
    let cause = ready["parts"]["files"]["cause"].as_str().unwrap();
    assert!(cause.contains("damaged"), "{ready:#}");
    let lines = |line: &serde_json::Value| {
        line["level"] == "error" && line.to_string().contains("is damaged")
    };
    edge.wait_for_log(lines);
    assert_eq!(edge.count_log(lines), 1);
    // Publishing the same files again repairs them.
    edge.setup.publish("acme", &PAGES);
    edge.signal("HUP");
    wait_until("the files are still reported", || {
        readiness(&edge).1["status"] == "ready"
    });
    assert_eq!(edge.get(HOST, "/").status, 200);
}

#[test]
fn a_file_that_is_not_a_queue_stops_no_site() {
    serves_with_a_broken_queue(
        |file| fs::write(file, "junk ".repeat(1000)).unwrap(),
        "file is not a database",
        "its file is damaged",
        |(), file| fs::remove_file(file).unwrap(),
    );
}

#[test]
fn a_queue_of_a_newer_program_stops_no_site() {
    serves_with_a_broken_queue(
        |file| {
            let newer = rusqlite::Connection::open(file).unwrap();
            newer.pragma_update(None, "user_version", 99).unwrap();
        },
        "the queue has schema 99",
        "a newer program wrote it",
        |(), file| fs::remove_file(file).unwrap(),
    );
}

#[test]
fn a_queue_that_a_frozen_process_has_locked_stops_no_site() {
    serves_with_a_broken_queue(
        |file| {
            // A new file, as after a migration that was stopped half-way.
            let frozen = rusqlite::Connection::open(file).unwrap();
            frozen
                .execute_batch("PRAGMA journal_mode = wal; BEGIN IMMEDIATE; CREATE TABLE t (a)")
                .unwrap();
            frozen
        },
        "database is locked",
        "another process has locked its file",
        |frozen, _file| drop(frozen),
    );
}

#[test]
fn a_queue_without_a_directory_stops_no_site() {
    let setup = setup();
    fs::write(setup.path("not-a-directory"), "").unwrap();
    let file = setup.path("not-a-directory/updates.sqlite");
    let setup = setup.site("acme", "owner: acme").conf(
        "queue",
        &format!("{{ sqlite: {{ path: {} }} }}", file.display()),
    );
    let key = key(&setup, "acme");
    let edge = setup.start();
    let rejected = call(
        &edge,
        &key,
        "GET",
        "/v1/project/update-status/upd_00000000000000000000000000",
    );
    assert_eq!(rejected.status, 503, "{}", rejected.text());
    assert_eq!(edge.get(API, "/openapi.json").status, 200);
}

#[test]
fn the_path_of_a_queue_may_be_the_name_of_a_file() {
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &PAGES);
    let root = setup.path("").display().to_string();
    let setup = setup
        .conf("queue", "{ sqlite: { path: updates.sqlite } }")
        .wrapped_by(&["env", "--chdir", &root])
        .site("acme", &format!("owner: acme\n{}", docs.record()));
    let key = key(&setup, "acme");
    let edge = setup.start();
    let accepted = call(&edge, &key, "POST", "/v1/project/update/acme");
    assert_eq!(accepted.status, 202, "{}", accepted.text());
    wait_until("the update is not served", || {
        edge.get(HOST, "/").status == 200
    });
    assert!(edge.setup.path("updates.sqlite").exists());
}

#[test]
fn a_queue_file_that_is_deleted_while_the_gateway_runs_is_noticed() {
    let (edge, _docs, key) = deployed_with_key();
    let file = edge.setup.path("updates.sqlite");
    fs::remove_file(&file).unwrap();
    // The first trigger may find the deleted file or the new one. No id is lost with the old one.
    let mut id = None;
    wait_until("no trigger is accepted", || {
        let response = served_and_triggered(&edge, &key);
        assert!([202, 503].contains(&response.status), "{}", response.text());
        if response.status == 202 {
            id = response.json()["statusId"].as_str().map(str::to_owned);
        }
        id.is_some()
    });
    assert!(file.exists());
    let record = follow(&edge.setup, &id.unwrap());
    assert_eq!(record["status"], "success", "{record:#}");
}

#[test]
fn a_node_takes_over_the_leases_of_its_own_killed_process_at_once() {
    let host = SilentHost::start();
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &PAGES);
    let file = setup.path("updates.sqlite");
    let conf = format!(
        "{{ sqlite: {{ path: {} }}, lease_seconds: 3600 }}",
        file.display()
    );
    let edge = setup
        .conf("queue", &conf)
        .site("acme", &host.record())
        .start();
    let killed = queue(&edge.setup, "acme");
    let _held = host.connected();
    edge.signal("KILL");
    let setup = edge.ended();
    setup.write_site("acme", &docs.record());

    let since = Instant::now();
    let edge = setup.start();
    let id = queue(&edge.setup, "acme");
    for id in [id, killed] {
        let record = follow(&edge.setup, &id);
        assert_eq!(record["status"], "success", "{record:#}");
    }
    assert_eq!(edge.get(HOST, "/").status, 200);
    let took = since.elapsed();
    assert!(took < Duration::from_secs(15), "{took:?}");
}

#[test]
fn the_depth_of_the_queue_is_current_while_all_builds_are_busy() {
    let host = SilentHost::start();
    let setup = setup().conf(
        "worker",
        "{ fetches_max: 1, builds_max: 1, grace_seconds: 0 }",
    );
    let mut setup = setup.site("slow", &host.record());
    for n in 0..5 {
        setup = setup.site(&format!("p{n}"), &format!("owner: slow\n{}", host.record()));
    }
    let edge = setup.start();
    queue(&edge.setup, "slow");
    let _held = host.connected();
    for n in 0..5 {
        queue(&edge.setup, &format!("p{n}"));
    }
    let depth = || {
        edge.metric("deploy_queue_updates{state=\"queued\"}")
            + edge.metric("deploy_queue_updates{state=\"in_progress\"}")
    };
    wait_until("the gauges do not show six updates", || depth() >= 6.0);
}

/// Returns the state of a part of the process from `/readyz?full`.
fn part(edge: &Edge, name: &str) -> serde_json::Value {
    let ready = crate::http::request(edge.operator, "GET", "localhost", "/readyz?full", &[]);
    assert_eq!(ready.status, 200, "the sites are served: {}", ready.text());
    ready.json()["parts"][name].clone()
}

/// Returns the file of a pointer.
fn pointer_file(setup: &Setup, project: &str) -> std::path::PathBuf {
    let shards = fs::read_dir(setup.path("store/pointers")).unwrap();
    let files = shards
        .flatten()
        .map(|shard| shard.path().join(format!("{project}.json")));
    files.into_iter().find(|file| file.exists()).unwrap()
}

#[test]
fn a_damaged_pointer_is_read_from_its_copy_and_repaired() {
    let setup = Setup::new().site("acme", "");
    let first = setup.publish("acme", &PAGES);
    let second = setup.publish("acme", &[PAGES[0], ("index.mdx", "# New\n")]);
    let file = pointer_file(&setup, "acme");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();

    let listed = setup.run(&["releases", "acme"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.starts_with(&format!("* {}", second.release)),
        "{listed}"
    );
    assert!(
        listed.contains(&first.release),
        "the history is there: {listed}"
    );
    let check = setup.run(&["store", "check"]);
    assert_eq!(check.status.code(), Some(1), "{check:?}");
    assert!(
        String::from_utf8(check.stdout)
            .unwrap()
            .contains("acme.json is damaged")
    );

    let edge = setup.start();
    assert!(edge.get(HOST, "/").text().contains("New"));
    let repaired = edge.setup.run(&["store", "check", "--repair"]);
    assert!(repaired.status.success(), "{repaired:?}");
    assert_eq!(fs::read(&file).unwrap(), whole);
    assert!(edge.setup.run(&["store", "check"]).status.success());
}

#[test]
fn a_pointer_that_is_lost_with_its_copy_is_set_aside_by_a_repair() {
    let setup = Setup::new().site("acme", "");
    setup.publish("acme", &PAGES);
    let file = pointer_file(&setup, "acme");
    for file in [&file, &file.with_extension("copy")] {
        fs::write(file, "{").unwrap();
    }
    assert_eq!(setup.run(&["releases", "acme"]).status.code(), Some(2));
    let repaired = setup.run(&["store", "check", "--repair"]);
    let told = String::from_utf8(repaired.stdout).unwrap();
    assert!(told.contains("acme.damaged"), "{told}");
    setup.publish("acme", &PAGES);
}

#[test]
fn a_site_stays_served_when_its_pointer_and_the_copy_are_lost() {
    let setup = Setup::new().site("acme", "").site("other", "");
    setup.publish("acme", &PAGES);
    setup.publish("other", &PAGES);
    let edge = setup.start();
    assert_eq!(part(&edge, "releases")["status"], "ok");
    let file = pointer_file(&edge.setup, "acme");
    for file in [&file, &file.with_extension("copy")] {
        fs::write(file, "{").unwrap();
    }
    edge.signal("HUP");
    wait_until("the lost pointer is not shown", || {
        part(&edge, "releases")["status"] == "failing"
    });
    assert!(edge.get(HOST, "/").text().contains("Welcome"));
    // After a restart nothing says which release was served. Other sites do not notice.
    edge.signal("TERM");
    let edge = edge.ended().start();
    assert_eq!(part(&edge, "releases")["status"], "failing");
    assert_eq!(edge.get(HOST, "/").status, 404);
    assert_eq!(edge.get("other.waypost.localhost", "/").status, 200);
    edge.setup.run(&["store", "check", "--repair"]);
    // The repair removes the pointer, and the gateway loads that too.
    let published = edge.setup.publish("acme", &PAGES);
    edge.wait_for_log(|line| {
        line["target"] == "index"
            && line["project"] == "acme"
            && line["generation"] == published.generation
    });
    assert!(edge.get(HOST, "/").text().contains("Welcome"));
}

#[test]
fn a_damaged_release_at_start_falls_back_to_the_newest_whole_one() {
    let setup = Setup::new().site("acme", "");
    let first = setup.publish("acme", &PAGES).release;
    let second = setup
        .publish("acme", &[PAGES[0], ("index.mdx", "# New\n")])
        .release;
    let inventory = format!("store/inventories/{}/{}.json", &second[..2], &second[2..]);
    fs::write(setup.path(&inventory), "{}").unwrap();

    let edge = setup.start();
    assert!(edge.get(HOST, "/").text().contains("Welcome"));
    edge.wait_for_log(|line| {
        let message = line["message"].as_str().unwrap_or_default();
        message.contains(&format!("release {first} of the history of acme is served"))
    });
    assert_eq!(part(&edge, "releases")["status"], "failing");
    let check = edge.setup.run(&["store", "check"]);
    assert_eq!(check.status.code(), Some(1), "{check:?}");
    let repaired = edge.setup.run(&["store", "check", "--repair"]);
    let told = String::from_utf8(repaired.stdout).unwrap();
    assert!(
        told.contains(&format!("release {first} of its history is current now")),
        "{told}"
    );
    edge.wait_until_served("acme", 3);
    assert_eq!(part(&edge, "releases")["status"], "ok");
}

#[test]
fn a_store_and_a_queue_that_cannot_be_written_stop_no_site() {
    let small = SmallDisk::mount();
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &PAGES);
    let store = format!(
        "{{ local: {{ path: {}, free_bytes_min: 0 }} }}",
        small.path("store")
    );
    let file = small.path("updates.sqlite");
    let setup = setup
        .conf("store", &store)
        .conf("queue", &format!("{{ sqlite: {{ path: {file} }} }}"))
        .site("acme", &format!("owner: acme\n{}", docs.record()));
    let key = key(&setup, "acme");
    let edge = setup.start();
    let deployed = follow(&edge.setup, &queue(&edge.setup, "acme"));
    assert_eq!(deployed["status"], "success", "{deployed:#}");
    edge.signal("KILL");
    let setup = edge.ended();

    small.remount("ro");
    let edge = setup.start();
    let rejected = served_and_triggered(&edge, &key);
    assert_eq!(rejected.status, 503, "{}", rejected.text());
    wait_until("the store is not shown as read-only", || {
        let shown = part(&edge, "store_writing");
        shown["cause"] == "the file system of the store is read-only"
    });
    small.remount("rw");
    wait_until("the store is still shown as read-only", || {
        part(&edge, "store_writing")["status"] == "ok"
    });
    wait_until("the queue is not written again", || {
        served_and_triggered(&edge, &key).status == 202
    });
}

/// The store has a damaged file of a page that has not changed: the update makes the file again.
#[test]
fn an_update_repairs_a_damaged_file_of_a_page_that_has_not_changed() {
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    let config = r#"{ "name": "Acme", "navigation": { "pages": ["index", "guide"] } }"#;
    docs.push(
        "Begin",
        &[
            ("docs.json", config),
            ("index.mdx", "# Hi\n"),
            ("guide.mdx", "# Guide\n"),
        ],
    );
    let file = setup.path("updates.sqlite").display().to_string();
    let edge = setup
        .conf(
            "queue",
            &format!("{{ sqlite: {{ path: {file} }}, retry_seconds: 1 }}"),
        )
        .site("acme", &docs.record())
        .start();
    let first = follow(&edge.setup, &queue(&edge.setup, "acme"));
    let release = first["release"].as_str().unwrap();
    let inventory = format!("store/inventories/{}/{}.json", &release[..2], &release[2..]);
    let inventory = fs::read(edge.setup.path(&inventory)).unwrap();
    let inventory: serde_json::Value = serde_json::from_slice(&inventory).unwrap();
    let digest = inventory["files"]["pages/index.html.br"]["digest"]
        .as_str()
        .unwrap();
    let content = format!("store/content/{}/{}", &digest[..2], &digest[2..]);
    let content = edge.setup.path(&content);
    let whole = fs::read(&content).unwrap();
    fs::write(&content, &whole[1..]).unwrap();

    docs.push("Say more", &[("guide.mdx", "# Guide\n\nMore.\n")]);
    let second = follow(&edge.setup, &queue(&edge.setup, "acme"));
    assert_eq!(second["status"], "success", "{second:#}");
    assert_eq!(second["attempts"], 2, "{second:#}");
    assert_eq!(fs::read(&content).unwrap(), whole);
    assert!(edge.get(HOST, "/guide").text().contains("More."));
    assert!(edge.setup.run(&["store", "check"]).status.success());
}

/// A worker and the processes of its update are frozen while they hold the update and its mirror.
#[test]
fn another_worker_ends_the_update_of_a_frozen_one() {
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &PAGES);
    let root = setup.path("").display().to_string();
    let root = root.trim_end_matches('/');
    // The command of the frozen worker does not end; its mirror stays locked.
    fs::write(setup.path("write"), "exec sleep 600").unwrap();
    let edge = setup
        .conf(
            "queue",
            &format!("{{ sqlite: {{ path: {root}/updates.sqlite }}, lease_seconds: 5 }}"),
        )
        .conf("generate", &format!("{{ command: [sh, {root}/write] }}"))
        .site("acme", &docs.record())
        .start();
    let id = queue(&edge.setup, "acme");
    let has_begun = |processes: &[u32]| processes.iter().any(|id| !children(*id).is_empty());
    let mut processes = Vec::new();
    wait_until("the command does not run", || {
        processes = children(edge.id());
        processes.len() == 2 && has_begun(&processes)
    });
    let signal = |name: &str, processes: &[u32]| {
        let ids = processes.iter().map(u32::to_string);
        let sent = Command::new("kill").args(["-s", name]).args(ids).status();
        assert!(sent.unwrap().success());
    };
    processes.push(edge.id());
    signal("STOP", &processes);

    fs::write(edge.setup.path("write"), "exit 3").unwrap();
    docs.push("Change", &[("index.mdx", "# Changed\n")]);
    let other = edge.setup.beside().start();
    let record = follow(&other.setup, &id);
    assert_eq!(record["status"], "success", "{record:#}");
    assert_eq!(record["attempts"], 2, "{record:#}");
    assert!(other.get(HOST, "/").text().contains("Changed"));
    signal("CONT", &processes);
    // The worker that was frozen has lost the update, and changes nothing.
    wait_until("the frozen worker goes on", || {
        edge.metric("deploy_updates_total{outcome=\"lost\"}") >= 1.0
    });
    assert!(other.get(HOST, "/").text().contains("Changed"));
}
