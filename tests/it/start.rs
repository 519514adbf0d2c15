//! A gateway that cannot serve does not start, and its error names every mistake.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use crate::edge::Setup;
use crate::presets::SKILL;

/// Starts a gateway that must fail, and returns its standard error, which must hold no panic.
#[track_caller]
fn start_error(setup: &Setup) -> String {
    let (status, error) = setup.start_expecting_failure();
    assert_eq!(status.code(), Some(2), "{error}");
    assert!(!error.contains("panicked"), "{error}");
    error
}

#[test]
fn every_mistake_in_a_configuration_is_reported_at_once_with_line_and_column() {
    let setup = Setup::new()
        .conf("connections", "{ head_seconds: 0 }")
        .conf("listen", "{ http: [\"nowhere\"], htps: [] }")
        .conf("services", "{}")
        .conf("tls", "{ default: \"not a host\" }");
    let error = start_error(&setup);
    let mut places = Vec::new();
    for line in error.lines().filter(|line| line.contains("error[conf]")) {
        let place = line.split("waypost.yaml:").nth(1).unwrap();
        let mut numbers = place
            .split(':')
            .map(|number| number.parse::<u32>().unwrap_or(0));
        places.push((numbers.next().unwrap(), numbers.next().unwrap()));
    }
    // The harness writes keys in order: access_log, connections, listen, log, queue, server,
    // services, …
    places.sort_unstable();
    assert_eq!(
        places,
        [(2, 30), (3, 18), (3, 30), (7, 1), (10, 17)],
        "{error}"
    );
}

#[test]
fn text_that_is_not_yaml_is_reported_with_its_place() {
    let setup = Setup::new().conf("connections", "{ fast_path: [");
    let error = start_error(&setup);
    assert!(error.contains("waypost.yaml:"), "{error}");
}

#[test]
fn a_missing_configuration_file_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_waypost"))
        .args(["serve", "--conf", "/nowhere/waypost.yaml"])
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("read /nowhere/waypost.yaml"), "{error}");
    assert!(error.contains("No such file"), "{error}");
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for listen in [
        format!("{{ http: [\"{address}\"], operator: false }}"),
        format!("{{ http: [\"127.0.0.1:0\"], operator: \"{address}\" }}"),
    ] {
        let error = start_error(&Setup::new().conf("listen", &listen));
        assert!(error.contains(&format!("listen on {address}")), "{error}");
        assert!(error.contains("Address already in use"), "{error}");
    }
}

#[test]
fn listeners_without_addresses_or_certificates_are_rejected() {
    let error = start_error(&Setup::new().conf("listen", "{ http: [], operator: false }"));
    assert!(error.contains("names no address"), "{error}");
    let setup = Setup::new().conf("listen", "{ https: [\"127.0.0.1:0\"], operator: false }");
    let error = start_error(&setup);
    assert!(error.contains("`tls.directory`"), "{error}");
    let setup = Setup::new()
        .conf(
            "listen",
            "{ http: [], https: [\"127.0.0.1:0\"], operator: false }",
        )
        .conf("tls", "{ directory: /nowhere/certificates }");
    let error = start_error(&setup);
    assert!(error.contains("/nowhere/certificates"), "{error}");
}

#[test]
fn a_missing_directory_of_site_records_is_named() {
    let setup = Setup::new().conf("sites", "/nowhere/sites");
    let error = start_error(&setup);
    assert!(error.contains("there is no /nowhere/sites"), "{error}");
}

#[test]
fn an_access_log_that_cannot_be_written_is_named() {
    let setup = Setup::new().conf("access_log", "{ file: /nowhere/access.log }");
    let error = start_error(&setup);
    assert!(error.contains("/nowhere/access.log"), "{error}");
}

#[test]
fn a_store_of_a_newer_version_is_not_changed() {
    let setup = Setup::new().site("acme", "");
    setup.publish("acme", &[("skill.md", SKILL)]);
    let format = setup.path("store/FORMAT");
    fs::write(&format, "waypost store 2\n").unwrap();
    let docs = setup.documentation(&[("skill.md", SKILL)]);
    let docs = docs.to_str().unwrap();
    for arguments in [
        &["serve"][..],
        &["publish", docs, "--root", docs, "--project", "acme"],
        &["releases", "acme"],
    ] {
        let output = setup.run(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(
            error.contains("has format 2; this program reads formats up to 1"),
            "{error}"
        );
    }
    assert_eq!(fs::read_to_string(format).unwrap(), "waypost store 2\n");
}

#[test]
fn a_project_without_a_release_is_named_with_the_store() {
    let setup = Setup::new().site("acme", "");
    let output = setup.run(&["releases", "acme"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    let store = setup.path("store");
    let expected = format!("there is no release of acme in {}\n", store.display());
    assert_eq!(error, expected);
}

#[test]
fn a_directory_that_is_not_a_store_is_not_changed() {
    let setup = Setup::new().site("acme", "");
    fs::create_dir(setup.path("store")).unwrap();
    fs::write(setup.path("store/holiday.jpg"), "sun").unwrap();
    let error = start_error(&setup);
    assert!(
        error.contains("it has no FORMAT but holds holiday.jpg"),
        "{error}"
    );
    fs::remove_dir_all(setup.path("store")).unwrap();
    fs::write(setup.path("store"), "a file").unwrap();
    let error = start_error(&setup);
    assert!(
        error.contains(setup.path("store").to_str().unwrap()),
        "{error}"
    );
}

#[test]
fn a_broken_record_does_not_stop_the_others_from_being_served() {
    let edge = Setup::new()
        .site("acme", "")
        .site("bad", "base_path: docs\nvisiblity: private")
        .site("late", "domains: [acme.waypost.localhost]")
        .start();
    for place in ["bad.yaml:3:", "bad.yaml:4:", "late.yaml:3:"] {
        edge.wait_for_log(|line| {
            line["level"] == "error" && line["message"].as_str().unwrap().contains(place)
        });
    }
    edge.publish("acme", &[("skill.md", SKILL)]);
    assert_eq!(
        edge.get("acme.waypost.localhost", "/skill.md").text(),
        SKILL
    );
    assert_eq!(edge.get("bad.waypost.localhost", "/skill.md").status, 404);
}

#[test]
fn documentation_with_errors_leaves_the_previous_release_served() {
    let edge = Setup::new().site("acme", "").start();
    edge.publish("acme", &[("skill.md", SKILL)]);
    let docs = edge
        .setup
        .documentation(&[("skill.md", "---\nname: [\n---\n")]);
    let docs = docs.to_str().unwrap();
    let output = edge
        .setup
        .run(&["publish", docs, "--root", docs, "--project", "acme"]);
    assert_eq!(output.status.code(), Some(1));
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(
        report.contains("skill.md:") && report.contains("error["),
        "{report}"
    );
    let output = edge.setup.run(&["releases", "acme"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 1);
    assert_eq!(
        edge.get("acme.waypost.localhost", "/skill.md").text(),
        SKILL
    );
}

#[test]
fn a_full_disk_costs_lines_of_the_access_log_and_no_response() {
    let edge = Setup::new()
        .conf("access_log", "{ file: /dev/full }")
        .site("acme", "")
        .start();
    edge.publish("acme", &[("skill.md", SKILL)]);
    for _ in 0..10 {
        assert_eq!(
            edge.get("acme.waypost.localhost", "/skill.md").text(),
            SKILL
        );
    }
    edge.wait_for_log(|line| {
        let message = line["message"].as_str().unwrap();
        let is_it = message.contains("access log") && message.contains("No space left");
        is_it && line["level"] == "warn"
    });
    assert!(edge.metric("gateway_access_lines_dropped_total") >= 1.0);
}
