//! An update through the running program, from the push to the documents that agents fetch.

use std::fs::read_to_string;
use std::time::{Duration, Instant};

use crate::edge::Setup;
use crate::http::pause;
use crate::presets::SKILL;
use crate::repository::{Repository, SilentHost, call, follow, key, queue, record, setup, trigger};

#[test]
fn a_triggered_push_is_served_on_every_host_with_a_complete_record() {
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL), ("old.mdx", "old")]);
    let record = format!(
        "owner: acme\ndomains: [docs.acme.test, docs.acme.dev]\n{}",
        docs.record()
    );
    let edge = setup.site("acme", &record).start();
    let key = key(&edge.setup, "acme");
    wait_until_accepted(&edge, &key);
    follow(&edge.setup, &trigger(&edge, &key, "acme"));

    let skill = SKILL.replace("# SDK", "# The new SDK");
    docs.git(&["rm", "--quiet", "old.mdx"]);
    let commit = docs.push(
        "Say more\n\nMuch more.",
        &[("skill.md", &skill), ("new.mdx", "new")],
    );
    let id = trigger(&edge, &key, "acme");
    let update = follow(&edge.setup, &id);

    assert_eq!(update["status"], "success", "{update:#}");
    for host in ["docs.acme.test", "docs.acme.dev", "acme.waypost.localhost"] {
        assert_eq!(edge.get(host, "/skill.md").text(), skill, "{host}");
    }
    let answer = call(
        &edge,
        &key,
        "GET",
        &format!("/v1/project/update-status/{id}"),
    );
    assert_eq!(answer.json(), update);
    assert_eq!(update["commit"]["sha"], commit);
    assert_eq!(update["commit"]["message"], "Say more\n\nMuch more.");
    let changed = &update["commit"]["filesChanged"];
    assert_eq!(changed["added"], serde_json::json!(["new.mdx"]));
    assert_eq!(changed["modified"], serde_json::json!(["skill.md"]));
    assert_eq!(changed["removed"], serde_json::json!(["old.mdx"]));
    assert_eq!(
        (&update["author"]["name"], &update["source"]),
        (&"Ada".into(), &"api".into())
    );
    assert!(update["visibleAt"].is_string() && update["endedAt"].is_string());
    let logs = update["logs"].to_string();
    for step in [
        "fetch: ",
        "read: ",
        "build: ",
        "put: ",
        "promote: published on https://docs.acme.dev",
    ] {
        assert!(logs.contains(step), "{step}: {logs}");
    }
}

/// Repeats a call until a new key is accepted, which must happen within one second.
#[track_caller]
fn wait_until_accepted(edge: &crate::edge::Edge, key: &str) {
    let deadline = Instant::now() + Duration::from_secs(2);
    while call(edge, key, "GET", "/v1/project/update-status/x").status == 401 {
        assert!(
            Instant::now() < deadline,
            "the key is not accepted after two seconds"
        );
    }
}

#[test]
fn a_mistake_of_the_author_fails_the_update_and_leaves_the_release_served() {
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let key = key(&setup, "acme");
    let edge = setup
        .site("acme", &format!("owner: acme\n{}", docs.record()))
        .start();
    follow(&edge.setup, &trigger(&edge, &key, "acme"));

    docs.push("Break it", &[("docs.json", "{")]);
    let update = follow(&edge.setup, &trigger(&edge, &key, "acme"));
    assert_eq!(update["status"], "failure");
    assert!(
        update["summary"].as_str().unwrap().contains("docs.json:"),
        "{update:#}"
    );
    assert_eq!(
        update["attempts"], 1,
        "an author's mistake is not tried again"
    );
    assert_eq!(
        edge.get("acme.waypost.localhost", "/skill.md").text(),
        SKILL
    );
}

#[test]
fn a_navigation_of_two_kinds_is_published_when_the_record_of_the_site_is_lenient() {
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    let config = r#"{"name": "Acme", "navigation": {
        "versions": [{"version": "1", "pages": ["index"]}],
        "tabs": [{"tab": "More", "pages": ["more"]}]}}"#;
    let files = [
        ("docs.json", config),
        ("index.mdx", "# Welcome"),
        ("more.mdx", "More."),
    ];
    docs.push("Begin", &files);
    let key = key(&setup, "acme");
    let edge = setup
        .site("strict", &format!("owner: acme\n{}", docs.record()))
        .site(
            "acme",
            &format!("owner: acme\nlenient: true\n{}", docs.record()),
        )
        .start();

    let rejected = follow(&edge.setup, &trigger(&edge, &key, "strict"));
    assert_eq!(rejected["status"], "failure", "{rejected:#}");
    let summary = rejected["summary"].as_str().unwrap();
    assert!(
        summary.starts_with(
            "cannot be published: 1 error in 1 file, the first is docs.json:3:9: error[N1]"
        ) && summary.contains("`lenient: true` in the site's record"),
        "{summary}"
    );

    let published = follow(&edge.setup, &trigger(&edge, &key, "acme"));
    assert_eq!(published["status"], "success", "{published:#}");
    let logs = published["logs"].to_string();
    assert!(logs.contains("warning[N1]"), "{logs}");
    let page = edge.get("acme.waypost.localhost", "/");
    assert!(page.text().contains("Welcome"), "{}", page.text());
}

#[test]
fn a_running_gateway_rejects_a_revoked_key_within_seconds() {
    let setup = setup();
    let key = key(&setup, "acme");
    let edge = setup.start();
    let path = "/v1/project/update-status/x";
    assert_eq!(call(&edge, &key, "GET", path).status, 404);

    let list = edge.setup.run(&["key", "list"]);
    let list = String::from_utf8(list.stdout).unwrap();
    assert!(!list.contains(&key[8..40]), "no list shows a key");
    let id = list.split_whitespace().next().unwrap();
    assert!(edge.setup.run(&["key", "revoke", id]).status.success());
    let revoked = Instant::now();
    while call(&edge, &key, "GET", path).status != 401 {
        // It looks every 400 ms; the machine of the tests may be busy.
        assert!(revoked.elapsed() < Duration::from_secs(5), "still accepted");
        pause();
    }
    assert_eq!(
        edge.count_log(|line| line.to_string().contains(&key[8..40])),
        0
    );
}

#[test]
fn the_operators_own_trigger_is_seen_by_a_running_gateway() {
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let edge = setup.site("acme", &docs.record()).start();
    let output = edge.setup.run(&["update", "trigger", "acme", "--follow"]);
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let id = printed.lines().next().unwrap();
    assert_eq!(record(&edge.setup, id)["source"], "internal");
    assert_eq!(
        edge.get("acme.waypost.localhost", "/skill.md").text(),
        SKILL
    );
}

/// A queue in which every update has one attempt.
fn once(setup: &Setup) -> String {
    let path = setup.path("updates.sqlite");
    format!(
        "{{ sqlite: {{ path: {} }}, attempts_max: 1 }}",
        path.display()
    )
}

#[test]
fn a_host_that_hangs_costs_only_one_attempt() {
    let host = SilentHost::start();
    let setup = setup();
    let queue = once(&setup);
    let edge = setup
        .conf("worker", "{ fetch_seconds: 1 }")
        .conf("queue", &queue)
        .site("acme", &host.record())
        .start();
    let output = edge.setup.run(&["update", "trigger", "acme", "--follow"]);
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        printed.contains("fetch: the host did not finish within 1 s"),
        "{printed}"
    );
    let dead = edge.setup.run(&["update", "dead-letters"]);
    assert!(String::from_utf8(dead.stdout).unwrap().contains("acme"));
}

#[test]
fn a_build_over_its_limits_fails_and_the_gateway_keeps_serving() {
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    // This cannot be compressed, so the pack is larger than the limit of a file.
    let uuid = || read_to_string("/proc/sys/kernel/random/uuid").unwrap();
    let noise: String = std::iter::repeat_with(uuid).take(60_000).collect();
    docs.push("Begin", &[("skill.md", SKILL), ("noise", &noise)]);
    let queue = once(&setup);
    let edge = setup
        .conf("worker", "{ file_bytes_max: 1048576 }")
        .conf("queue", &queue)
        .site("acme", &docs.record())
        .start();
    let output = edge.setup.run(&["update", "trigger", "acme", "--follow"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("the repository is too large"), "{printed}");
    assert_eq!(
        edge.get("acme.waypost.localhost", "/skill.md").status,
        404,
        "it is alive"
    );
}

#[test]
fn a_stopping_gateway_releases_its_leases() {
    let host = SilentHost::start();
    let edge = setup()
        .conf("worker", "{ grace_seconds: 0 }")
        .site("acme", &host.record())
        .start();
    let id = queue(&edge.setup, "acme");
    let _held = host.connected();
    edge.signal("TERM");
    let setup = edge.ended();
    let update = record(&setup, &id);
    assert_eq!(
        (&update["status"], &update["attempts"]),
        (&"queued".into(), &0.into()),
        "{update:#}"
    );
}

#[test]
fn the_waiting_update_of_a_removed_site_is_cancelled() {
    let host = SilentHost::start();
    let edge = setup()
        .conf(
            "worker",
            // The slow update keeps the only place, however loaded the machine is.
            "{ fetches_max: 1, builds_max: 1, grace_seconds: 0, light_seconds: 3600 }",
        )
        .site("slow", &format!("owner: acme\n{}", host.record()))
        .site("acme", "owner: acme")
        .start();
    queue(&edge.setup, "slow");
    // The build runs as long as the host does not respond. While all places are taken, no second
    // update of the same owner is claimed.
    let _held = host.connected();
    let id = queue(&edge.setup, "acme");
    assert_eq!(record(&edge.setup, &id)["status"], "queued");

    edge.remove_site("acme");
    let update = follow(&edge.setup, &id);
    assert_eq!(
        (&update["status"], &update["summary"]),
        (&"failure".into(), &"cancelled: the site was removed".into()),
        "{update:#}"
    );
    assert!(update["endedAt"].is_string() && update["attempts"] == 0);
}

#[test]
fn a_removed_page_is_a_warning_in_the_record() {
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    let config = |pages: &str, redirects: &str| {
        format!(
            r#"{{"name": "Acme", "redirects": [{redirects}], "navigation": {{"pages": [{pages}]}}}}"#
        )
    };
    let before = config(r#""index", "old/pay", "moved""#, "");
    let files = [
        ("docs.json", &*before),
        ("index.mdx", "# Acme"),
        ("old/pay.mdx", "# Pay"),
        ("moved.mdx", "# Moved"),
    ];
    docs.push("Begin", &files);
    let key = key(&setup, "acme");
    let edge = setup
        .site("acme", &format!("owner: acme\n{}", docs.record()))
        .start();
    let update = follow(&edge.setup, &trigger(&edge, &key, "acme"));
    assert!(
        !update["logs"].to_string().contains("page-removed"),
        "{update:#}"
    );

    docs.git(&["rm", "--quiet", "old/pay.mdx", "moved.mdx"]);
    let redirect = r#"{"source": "/moved", "destination": "/"}"#;
    let after = config(r#""index", "new/pay""#, redirect);
    docs.push("Move", &[("docs.json", &after), ("new/pay.mdx", "# Pay")]);
    let update = follow(&edge.setup, &trigger(&edge, &key, "acme"));

    assert_eq!(update["status"], "success", "{update:#}");
    let logs = update["logs"].to_string();
    assert!(
        logs.contains("the page `/old/pay` was removed without a redirect"),
        "{logs}"
    );
    assert!(
        logs.contains("/new/pay") && !logs.contains("`/moved`"),
        "{logs}"
    );
    assert!(
        update["summary"].as_str().unwrap().contains("1 warning"),
        "{update:#}"
    );
}
