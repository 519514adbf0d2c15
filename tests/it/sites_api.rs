//! Sites and domains that are written through the admin API and the command line.
//!
//! Nothing restarts. What a command has written, a running gateway serves a moment later; what the
//! API has acknowledged, it serves at once.

use serde_json::{Value, json};

use crate::edge::{Edge, Setup};
use crate::http::{Connection, Response};
use crate::presets::SKILL;
use crate::repository::API;

/// The domains of these tests need no proof.
fn unproven() -> Setup {
    Setup::new().conf("verification", "{ required: false }")
}

/// Makes a key with a role.
#[track_caller]
fn key(setup: &Setup, owner: &str, role: &str) -> String {
    let output = setup.run(&["key", "create", "--owner", owner, "--role", role]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Calls the admin API with content.
#[track_caller]
fn call(
    edge: &Edge,
    key: &str,
    method: &str,
    path: &str,
    content: Option<&Value>,
    fields: &[(&str, &str)],
) -> Response {
    let text = content.map(Value::to_string).unwrap_or_default();
    let media_type = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {API}\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: {media_type}\r\nContent-Length: {}\r\n",
        text.len()
    );
    for (name, value) in fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut connection = Connection::open(edge.http);
    connection.send(format!("{head}\r\n{text}").as_bytes());
    connection.receive(method).unwrap()
}

fn record(project: &str, domain: &str) -> Value {
    json!({ "owner": "acme", "subdomain": project, "domains": [domain] })
}

#[track_caller]
fn command(setup: &Setup, arguments: &[&str]) -> String {
    let output = setup.run(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_site_of_the_api_is_served_when_its_change_is_acknowledged() {
    let setup = unproven().conf("admin", "{ owners_add_domains: true }");
    let operator = key(&setup, "platform", "operator");
    let owner = key(&setup, "acme", "owner");
    let edge = setup.start();
    let path = "/v1/sites/acme";
    let record = record("acme", "docs.acme.test");
    let created = call(&edge, &operator, "PUT", path, Some(&record), &[]);
    assert_eq!(created.status, 201, "{}", created.text());
    edge.publish("acme", &[("skill.md", SKILL)]);
    assert_eq!(edge.get("docs.acme.test", "/skill.md").text(), SKILL);

    let domain = format!("{path}/domains/help.acme.test");
    assert_eq!(edge.get("help.acme.test", "/skill.md").status, 404);
    let added = call(&edge, &owner, "PUT", &domain, None, &[]);
    assert_eq!(added.status, 201, "{}", added.text());
    assert_eq!(added.json()["served"], true);
    assert_eq!(edge.get("help.acme.test", "/skill.md").text(), SKILL);
    assert_eq!(
        call(&edge, &owner, "DELETE", &domain, None, &[]).status,
        204
    );
    assert_eq!(edge.get("help.acme.test", "/skill.md").status, 404);

    // A lost update: both have read the same record.
    let tag = call(&edge, &owner, "GET", path, None, &[]);
    let tag = tag.field("etag").unwrap();
    let patch = json!({ "base_path": "/docs" });
    let conditional = [("If-Match", tag)];
    let first = call(&edge, &owner, "PATCH", path, Some(&patch), &conditional);
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!(edge.get("docs.acme.test", "/docs/skill.md").text(), SKILL);
    let second = call(&edge, &owner, "PATCH", path, Some(&patch), &conditional);
    assert_eq!(second.status, 412);
    assert_eq!(
        call(&edge, &owner, "PATCH", path, Some(&patch), &[]).status,
        428
    );

    // The record is durable.
    edge.signal("KILL");
    let edge = edge.ended().start();
    assert_eq!(edge.get("docs.acme.test", "/docs/skill.md").text(), SKILL);
    let removed = call(&edge, &operator, "DELETE", path, None, &[("If-Match", "*")]);
    assert_eq!(removed.status, 204, "{}", removed.text());
    for host in ["docs.acme.test", "acme.waypost.localhost"] {
        assert_eq!(edge.get(host, "/skill.md").status, 404);
    }
}

#[test]
fn a_running_gateway_serves_what_the_command_line_has_written() {
    let edge = unproven().site("filed", "").start();
    let setup = &edge.setup;
    let file = setup.path("record.yaml");
    std::fs::write(
        &file,
        "owner: acme\nsubdomain: acme\ndomains: [docs.acme.test]\n",
    )
    .unwrap();
    let file = file.to_str().unwrap().to_owned();
    edge.change_sites(|| {
        let shown = command(setup, &["site", "set", "acme", &file]);
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["domains"], json!(["docs.acme.test"]));
    });
    edge.publish("acme", &[("skill.md", SKILL)]);
    assert_eq!(edge.get("docs.acme.test", "/skill.md").text(), SKILL);
    edge.change_sites(|| {
        let shown = command(setup, &["domain", "add", "acme", "help.acme.test"]);
        assert_eq!(shown, "help.acme.test  -  served\n");
    });
    assert_eq!(edge.get("help.acme.test", "/skill.md").text(), SKILL);
    let listed = command(setup, &["site", "list"]);
    assert_eq!(
        listed,
        "acme  acme  api  acme.waypost.localhost  docs.acme.test,help.acme.test\n\
         filed  filed  filed.yaml  filed.waypost.localhost  \n"
    );

    // What a file has, no command changes, and no host is claimed twice.
    for (arguments, why) in [
        (
            ["domain", "add", "filed", "a.acme.test"],
            "the site filed is kept in the file filed.yaml of the operator",
        ),
        (
            ["site", "set", "filed", &file],
            "the site filed is kept in the file filed.yaml",
        ),
        (
            ["site", "set", "other", &file],
            "docs.acme.test is a host of the site acme already, which is kept in the API",
        ),
        (
            ["domain", "add", "acme", "filed.waypost.localhost"],
            "hosts below waypost.localhost are default subdomains",
        ),
    ] {
        let output = setup.run(&arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains(why), "{text}");
    }
    edge.change_sites(|| {
        command(setup, &["domain", "remove", "acme", "docs.acme.test"]);
    });
    assert_eq!(edge.get("docs.acme.test", "/skill.md").status, 404);
    edge.change_sites(|| {
        command(setup, &["site", "delete", "acme"]);
    });
    assert_eq!(edge.get("help.acme.test", "/skill.md").status, 404);

    let audit = command(setup, &["site", "audit", "acme"]);
    let entries: Vec<Value> = audit
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let what: Vec<_> = entries
        .iter()
        .map(|entry| entry["what"].as_str().unwrap())
        .collect();
    assert_eq!(
        what,
        ["site.delete", "domain.remove", "domain.add", "site.create"]
    );
    assert!(
        entries[0]["who"]["user"]
            .as_str()
            .unwrap()
            .starts_with("uid ")
    );
    assert_eq!(entries[1]["after"]["domains"], json!(["help.acme.test"]));
}

#[test]
fn a_file_wins_over_the_api_and_both_say_so() {
    let setup = unproven();
    let operator = key(&setup, "platform", "operator");
    let edge = setup.start();
    let created = record("acme", "docs.acme.test");
    let created = call(
        &edge,
        &operator,
        "PUT",
        "/v1/sites/acme",
        Some(&created),
        &[],
    );
    assert_eq!(created.status, 201, "{}", created.text());
    edge.write_site("acme", "domains: [docs.filed.test]");
    edge.wait_for_log(|line| {
        let message = line["message"].as_str().unwrap_or_default();
        line["level"] == "error"
            && message.contains("project acme is defined in acme.yaml:1 already")
    });
    assert_eq!(edge.get("docs.acme.test", "/skill.md").status, 404);
    edge.publish("acme", &[("skill.md", SKILL)]);
    assert_eq!(edge.get("docs.filed.test", "/skill.md").text(), SKILL);
    let shown = call(&edge, &operator, "GET", "/v1/sites/acme", None, &[]).json();
    assert_eq!(
        (&shown["kept_in"], &shown["file"]),
        (&"file".into(), &"acme.yaml".into())
    );
    let conditional = [("If-Match", "*")];
    let patch = json!({ "lenient": true });
    let refused = call(
        &edge,
        &operator,
        "PATCH",
        "/v1/sites/acme",
        Some(&patch),
        &conditional,
    );
    assert_eq!(refused.status, 409, "{}", refused.text());
    // It is the same after a start, and without the file the record of the API counts again.
    edge.signal("KILL");
    let edge = edge.ended().start();
    assert_eq!(edge.get("docs.filed.test", "/skill.md").text(), SKILL);
    edge.remove_site("acme");
    assert_eq!(edge.get("docs.acme.test", "/skill.md").text(), SKILL);
}

#[test]
fn concurrent_changes_of_many_writers_lose_nothing() {
    let setup = unproven().conf("admin", "{ triggers_max: 1000000 }");
    let operator = key(&setup, "platform", "operator");
    let edge = setup.start();
    let site = record("acme", "docs.acme.test");
    let created = call(&edge, &operator, "PUT", "/v1/sites/acme", Some(&site), &[]);
    assert_eq!(created.status, 201, "{}", created.text());
    // Four clients add domains through the API, and two commands on the node do.
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (edge, operator) = (&edge, &operator);
            scope.spawn(move || {
                for nth in 0..5 {
                    let path = format!("/v1/sites/acme/domains/h{nth}.w{writer}.test");
                    let added = call(edge, operator, "PUT", &path, None, &[]);
                    assert_eq!(added.status, 201, "{}", added.text());
                }
            });
        }
        for writer in 4..6 {
            let setup = &edge.setup;
            // The configuration is written once: two commands must not write it at once.
            let conf = setup.path("waypost.yaml");
            scope.spawn(move || {
                let host = format!("h0.w{writer}.test");
                let output = std::process::Command::new(env!("CARGO_BIN_EXE_waypost"))
                    .args(["domain", "add", "acme", &host, "--conf"])
                    .arg(conf)
                    .output()
                    .unwrap();
                assert!(output.status.success(), "{output:?}");
            });
        }
    });
    let shown = call(&edge, &operator, "GET", "/v1/sites/acme", None, &[]).json();
    assert_eq!(shown["domains"].as_array().unwrap().len(), 23);
    let page = call(&edge, &operator, "GET", "/v1/audit?limit=1000", None, &[]).json();
    let ids: Vec<u64> = page["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids, (1..=23).rev().collect::<Vec<_>>());
}

#[test]
fn a_project_of_another_owner_serves_no_release_of_the_owner_before() {
    let edge = unproven().start();
    let operator = key(&edge.setup, "platform", "operator");
    let path = "/v1/sites/acme";
    let create = |owner: &str| {
        let mut record = record("acme", "docs.acme.test");
        record["owner"] = owner.into();
        let fields = [("If-None-Match", "*")];
        let created = call(&edge, &operator, "PUT", path, Some(&record), &fields);
        assert_eq!(created.status, 201, "{}", created.text());
    };
    let remove = || {
        let removed = call(&edge, &operator, "DELETE", path, None, &[("If-Match", "*")]);
        assert_eq!(removed.status, 204, "{}", removed.text());
    };
    let serves = || edge.get("docs.acme.test", "/skill.md").text() == SKILL;
    create("acme");
    edge.publish("acme", &[("skill.md", SKILL)]);
    assert!(serves());
    // The releases of a removed site are removed with it.
    remove();
    let releases = edge.setup.run(&["releases", "acme"]);
    assert!(releases.stdout.is_empty(), "{releases:?}");
    create("globex");
    assert!(!serves());
    // An update that ran meanwhile may publish after the removal.
    remove();
    edge.setup.publish("acme", &[("skill.md", SKILL)]);
    create("initech");
    assert!(!serves());
    // For the same owner it stays.
    remove();
    edge.setup.publish("acme", &[("skill.md", SKILL)]);
    create("initech");
    assert!(serves());
}

#[test]
fn a_reader_that_has_seen_enough_of_a_list_is_no_mistake() {
    let setup = unproven();
    let file = setup.path("record.json");
    std::fs::write(&file, record("one", "docs.one.test").to_string()).unwrap();
    command(&setup, &["site", "set", "one", file.to_str().unwrap()]);
    key(&setup, "acme", "owner");
    for arguments in [
        &["site", "audit"][..],
        &["site", "list"],
        &["domain", "list"],
        &["key", "list"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_waypost"))
            .args(arguments)
            .arg("--conf")
            .arg(setup.path("waypost.yaml"))
            .stdout(writer)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), &*text),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
}
