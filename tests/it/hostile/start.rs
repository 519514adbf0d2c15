//! The process has only the privileges that it reports, and only its operator can change its state.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::certificates::Authority;
use crate::edge::Setup;
use crate::http;
use crate::origin::Origin;
use crate::ports::free_port;
use crate::presets::{DOMAIN, SKILL};
use crate::repository::{self, Repository};
use crate::tls::encrypted;

#[test]
fn settings_of_pingora_that_would_be_ignored_are_rejected() {
    let setup = Setup::new().conf(
        "server",
        "{ user: nobody, group: nogroup, daemon: true, pid_file: /run/waypost.pid }",
    );
    let (status, words) = setup.start_expecting_failure();
    assert_eq!(status.code(), Some(2));
    for (key, reason) in [
        ("user", "start it as the user"),
        ("group", "start it as the user"),
        ("daemon", "use a supervisor"),
        ("pid_file", "use a supervisor"),
    ] {
        let line = words
            .lines()
            .find(|line| line.contains(&format!("`server.{key}` cannot be set")));
        assert!(line.is_some_and(|line| line.contains(reason)), "{words}");
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_secret_that_every_user_may_read_is_an_error() {
    let authority = Authority::new();
    let setup = encrypted(&authority, Setup::new());
    let (token, ssh) = (setup.path("token"), setup.path("ssh"));
    for path in [&token, &ssh] {
        fs::write(path, "secret").unwrap();
    }
    let setup = setup.conf(
        "git",
        &format!(
            "{{ credentials: [{{ host: git.acme.test, owners: [acme], https: {}, ssh_key: {} }}] }}",
            token.display(),
            ssh.display()
        ),
    );
    let key = setup.path("certificates").join(DOMAIN).join("privkey.pem");
    let operator = setup.path("operator");
    fs::write(&operator, "a token of the operator\n".replace(' ', "-")).unwrap();
    let setup = setup.conf(
        "listen",
        &format!(
            "{{ http: [\"127.0.0.1:0\"], https: [\"127.0.0.1:0\"], operator: \"127.0.0.1:0\", operator_token: {} }}",
            operator.display()
        ),
    );
    let all = [&token, &ssh, &key, &operator];
    for path in all {
        set_mode(path, 0o604);
    }
    let (status, words) = setup.start_expecting_failure();
    assert_eq!(status.code(), Some(2));
    for path in all {
        let said = format!("{} has mode 0604", path.display());
        assert!(words.contains(&said), "{words}");
    }
    // Access by a group may be intended.
    for path in all {
        set_mode(path, 0o640);
    }
    let edge = setup.start();
    edge.wait_for_log(|line| {
        let message = line["message"].as_str().unwrap();
        line["level"] == "warn" && message.contains(key.to_str().unwrap())
    });
}

fn all_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = vec![directory.to_owned()];
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(all_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn only_its_user_can_read_the_files_of_the_process() {
    let setup = repository::setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let setup = setup.site("acme", &format!("owner: acme\n{}", docs.record()));
    let key = repository::key(&setup, "acme");
    let edge = setup.start();
    repository::follow(&edge.setup, &repository::trigger(&edge, &key, "acme"));
    assert_eq!(
        edge.get("acme.waypost.localhost", "/skill.md").text(),
        SKILL
    );
    edge.signal("TERM");
    let setup = edge.ended();
    let mut written = Vec::new();
    for name in ["store", "mirrors"] {
        written.extend(all_below(&setup.path(name)));
    }
    for name in ["updates.sqlite", "access.log"] {
        written.push(setup.path(name));
    }
    assert!(written.len() > 10, "{written:?}");
    for path in written {
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:04o}", path.display());
    }
}

#[test]
fn only_the_operator_can_change_a_running_gateway() {
    let edge = Setup::new().acme_before(&Origin::start()).start();
    let token = edge.operator_token();
    let own = edge.operator.to_string();
    let post = |fields: &[(&str, &str)], host: &str| {
        http::request(edge.operator, "POST", host, "/reload", fields).status
    };
    assert_eq!(post(&[], &own), 401);
    assert_eq!(post(&[("Authorization", "Bearer wrong")], &own), 401);
    // A page in the operator's browser whose host name resolves to this machine.
    let with_token = [("Authorization", token.as_str())];
    assert_eq!(post(&with_token, "evil.example"), 421);
    // A site whose upstream is this listener.
    let via = ("Via", "1.1 waypost.localhost");
    assert_eq!(post(&[with_token[0], via], &own), 403);
    let metrics = http::request(edge.operator, "GET", &own, "/metrics", &[via]);
    assert_eq!(metrics.status, 403);
    assert!(!metrics.text().contains("gateway_"));
    assert_eq!(post(&with_token, &own), 202);
    assert_eq!(post(&with_token, "localhost"), 202);
}

#[test]
fn the_reload_command_has_the_token() {
    let port = free_port();
    let listen = format!("{{ http: [\"127.0.0.1:0\"], operator: \"127.0.0.1:{port}\" }}");
    let edge = Setup::new()
        .conf("listen", &listen)
        .acme_before(&Origin::start())
        .start();
    let done = edge.setup.run(&["reload"]);
    assert!(done.status.success(), "{done:?}");
    fs::remove_file(edge.setup.path("store/operator-token")).unwrap();
    let rejected = edge.setup.run(&["reload"]);
    assert_eq!(rejected.status.code(), Some(2));
    let words = String::from_utf8(rejected.stderr).unwrap();
    assert!(words.contains("operator-token"), "{words}");
}

#[test]
fn full_readiness_names_the_failing_parts() {
    let setup = Setup::new();
    let token = setup.path("operator-token");
    fs::write(&token, "short").unwrap();
    set_mode(&token, 0o600);
    let edge = setup
        .conf(
            "listen",
            &format!(
                "{{ http: [\"127.0.0.1:0\"], operator: \"127.0.0.1:0\", operator_token: {} }}",
                token.display()
            ),
        )
        .acme("")
        .with_skill()
        .start();
    // The sites are served, so the status is 200.
    let full = http::request(edge.operator, "GET", "localhost", "/readyz?full", &[]);
    assert_eq!(
        (full.status, full.field("content-type")),
        (200, Some("application/json"))
    );
    let body = full.json();
    assert_eq!(body["status"], "degraded");
    let part = &body["parts"]["operator-token"];
    assert_eq!(part["status"], "failing");
    assert!(
        part["cause"].as_str().unwrap().contains("16 visible"),
        "{body}"
    );
    let is_cause = |line: &serde_json::Value| line["part"] == "operator-token";
    assert_eq!(edge.count_log(is_cause), 1, "the log names the cause once");
    let authorization = [("Authorization", "Bearer short")];
    let rejected = http::request(
        edge.operator,
        "POST",
        "localhost",
        "/reload",
        &authorization,
    );
    assert_eq!(rejected.status, 503);
}

#[test]
fn a_warning_about_a_site_is_no_error_in_the_log() {
    let edge = Setup::new().site("acme", "visibility: private").start();
    let of_site = |line: &serde_json::Value| {
        let message = line["message"].as_str();
        message.is_some_and(|message| message.contains("warning[site]"))
    };
    assert_eq!(edge.wait_for_log(of_site)["level"], "warn");
}

#[test]
fn a_build_without_enough_address_space_is_rejected_at_the_start() {
    let (status, words) = Setup::new()
        .conf("worker", "{ memory_bytes_max: 1073741824 }")
        .start_expecting_failure();
    assert_eq!(status.code(), Some(2));
    assert!(
        words.contains("`worker.memory_bytes_max` is 1073741824"),
        "{words}"
    );
    // The smallest accepted value is enough.
    let setup = repository::setup().conf("worker", "{ memory_bytes_max: 2147483648 }");
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let setup = setup.site("acme", &format!("owner: acme\n{}", docs.record()));
    let key = repository::key(&setup, "acme");
    let edge = setup.start();
    let told = repository::follow(&edge.setup, &repository::trigger(&edge, &key, "acme"));
    assert_eq!(told["status"], "success", "{told:#}");
}
