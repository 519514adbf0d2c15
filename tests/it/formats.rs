//! A node that an earlier version wrote goes on: its store, its queue and its records are read.
//!
//! `tests/formats/README.md` says when a new node is added. The rule is in
//! `internals/decisions#formats-of-stored-data`.

use std::process::Command;

use crate::edge::Setup;
use crate::presets::{DOMAIN, SKILL};

/// Unpacks a saved node into a new directory.
fn saved(name: &str) -> Setup {
    let setup = Setup::new().conf("verification", "{ required: false }");
    let archive = format!("{}/tests/formats/{name}.tar.gz", env!("CARGO_MANIFEST_DIR"));
    let unpacked = Command::new("tar")
        .args(["--extract", "--gzip", "--no-same-owner", "--file", &archive])
        .arg("--directory")
        .arg(setup.path(""))
        .status();
    assert!(unpacked.unwrap().success(), "{archive}");
    setup
}

#[test]
fn a_node_of_version_0_1_goes_on() {
    let edge = saved("node-0.1").start();
    for host in [DOMAIN, "other.acme.test"] {
        let skill = edge.get(host, "/skill.md");
        assert_eq!(skill.status, 200, "{host}");
        assert!(skill.text().contains("Use Acme."), "{host}");
    }
    let page = edge.get(DOMAIN, "/");
    assert!(page.text().contains("A page of an earlier version."));
    let run = |arguments: &[&str]| {
        let output = edge.setup.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run(&["releases", "acme"]).contains("96eea012ee49"));
    assert!(run(&["update", "list", "acme"]).contains("success"));
    assert!(run(&["key", "list"]).contains("of version 0.1"));
    assert!(run(&["site", "show", "other"]).contains("other.acme.test"));
    // It can be changed too.
    // `publish` of the gateway waits until the release is served.
    let config = r#"{"name": "Other", "navigation": {"pages": ["index"]}}"#;
    let page = ("index.mdx", "A page.\n");
    edge.publish("other", &[("docs.json", config), ("skill.md", SKILL), page]);
    assert_eq!(edge.get("other.acme.test", "/skill.md").text(), SKILL);
}
