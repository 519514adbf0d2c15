//! A gateway that cannot serve does not start, and its error names every mistake.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use crate::edge::Setup;
use crate::presets::SKILL;

/// Starts a gateway that must fail, and returns its standard error, which must hold no panic.
#[track_caller]
fn refusal(setup: &Setup) -> String {
    let (status, words) = setup.start_in_vain();
    assert_eq!(status.code(), Some(2), "{words}");
    assert!(!words.contains("panicked"), "{words}");
    words
}

#[test]
fn every_mistake_in_a_configuration_is_reported_at_once_with_line_and_column() {
    let setup = Setup::new()
        .conf("connections", "{ head_seconds: 0 }")
        .conf("listen", "{ http: [\"nowhere\"], htps: [] }")
        .conf("services", "{}")
        .conf("tls", "{ default: \"not a host\" }");
    let words = refusal(&setup);
    let mut places = Vec::new();
    for line in words.lines().filter(|line| line.contains("error[conf]")) {
        let place = line.split("waypost.yaml:").nth(1).unwrap();
        let mut numbers = place
            .split(':')
            .map(|number| number.parse::<u32>().unwrap_or(0));
        places.push((numbers.next().unwrap(), numbers.next().unwrap()));
    }
    // The harness writes keys in order: access_log, connections, listen, log, queue, server, services, …
    places.sort_unstable();
    assert_eq!(
        places,
        [(2, 30), (3, 18), (3, 30), (7, 1), (10, 17)],
        "{words}"
    );
}

#[test]
fn text_that_is_not_yaml_is_reported_with_its_place() {
    let setup = Setup::new().conf("connections", "{ fast_path: [");
    let words = refusal(&setup);
    assert!(words.contains("waypost.yaml:"), "{words}");
}

#[test]
fn a_missing_configuration_file_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_waypost"))
        .args(["serve", "--conf", "/nowhere/waypost.yaml"])
        .output()
        .unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(words.contains("read /nowhere/waypost.yaml"), "{words}");
    assert!(words.contains("No such file"), "{words}");
}

#[test]
fn a_port_that_is_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for listen in [
        format!("{{ http: [\"{address}\"], operator: false }}"),
        format!("{{ http: [\"127.0.0.1:0\"], operator: \"{address}\" }}"),
    ] {
        let words = refusal(&Setup::new().conf("listen", &listen));
        assert!(words.contains(&format!("listen on {address}")), "{words}");
        assert!(words.contains("Address already in use"), "{words}");
    }
}

#[test]
fn listeners_without_addresses_or_certificates_are_rejected() {
    let words = refusal(&Setup::new().conf("listen", "{ http: [], operator: false }"));
    assert!(words.contains("names no address"), "{words}");
    let setup = Setup::new().conf("listen", "{ https: [\"127.0.0.1:0\"], operator: false }");
    let words = refusal(&setup);
    assert!(words.contains("`tls.directory`"), "{words}");
    let setup = Setup::new()
        .conf(
            "listen",
            "{ http: [], https: [\"127.0.0.1:0\"], operator: false }",
        )
        .conf("tls", "{ directory: /nowhere/certificates }");
    let words = refusal(&setup);
    assert!(words.contains("/nowhere/certificates"), "{words}");
}

#[test]
fn a_missing_directory_of_site_records_is_named() {
    let setup = Setup::new().conf("sites", "/nowhere/sites");
    let words = refusal(&setup);
    assert!(words.contains("there is no /nowhere/sites"), "{words}");
}

#[test]
fn an_access_log_that_cannot_be_written_is_named() {
    let setup = Setup::new().conf("access_log", "{ file: /nowhere/access.log }");
    let words = refusal(&setup);
    assert!(words.contains("/nowhere/access.log"), "{words}");
}

#[test]
fn a_store_of_a_newer_version_is_left_alone() {
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
        let words = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {words}");
        assert!(
            words.contains("has format 2; this program reads formats up to 1"),
            "{words}"
        );
    }
    assert_eq!(fs::read_to_string(format).unwrap(), "waypost store 2\n");
}

#[test]
fn a_directory_that_is_not_a_store_is_left_alone() {
    let setup = Setup::new().site("acme", "");
    fs::create_dir(setup.path("store")).unwrap();
    fs::write(setup.path("store/holiday.jpg"), "sun").unwrap();
    let words = refusal(&setup);
    assert!(
        words.contains("it has no FORMAT but holds holiday.jpg"),
        "{words}"
    );
    fs::remove_dir_all(setup.path("store")).unwrap();
    fs::write(setup.path("store"), "a file").unwrap();
    let words = refusal(&setup);
    assert!(
        words.contains(setup.path("store").to_str().unwrap()),
        "{words}"
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
fn documentation_with_errors_is_not_published_and_the_release_before_stays() {
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
    let warning = edge.wait_for_log(|line| line["level"] == "warn");
    let message = warning["message"].as_str().unwrap();
    assert!(
        message.contains("access log") && message.contains("No space left"),
        "{message}"
    );
    assert!(edge.metric("gateway_access_lines_dropped_total") >= 1.0);
}
