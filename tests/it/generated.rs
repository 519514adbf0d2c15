//! The generated skill of the example: a golden file, and what the public validator says.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::edge::Setup;

const EXAMPLE: &str = "tests/repositories/payments";
const GOLDEN: &str = "tests/repositories/payments.skill.md";

/// Serves the example and fetches its skill.
fn fetch() -> String {
    let edge = Setup::new()
        .site("acme", "domains: [docs.acme.test]")
        .start();
    edge.setup
        .publish_directory("acme", &Path::new(EXAMPLE).canonicalize().unwrap());
    edge.wait_for_log(|line| {
        line["message"]
            .as_str()
            .is_some_and(|message| message.starts_with("serving"))
    });
    edge.get("docs.acme.test", "/skill.md").text().to_owned()
}

#[test]
fn the_example_has_the_skill_of_the_golden_file() {
    let served = fetch();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(GOLDEN, &served).unwrap();
    }
    assert_eq!(served, fs::read_to_string(GOLDEN).unwrap());
    assert!(
        !served.contains("base-url.invalid"),
        "every link is the site's own"
    );
}

#[test]
fn the_public_validator_accepts_it() {
    let directory = tempfile::tempdir().unwrap();
    let skill = directory.path().join("acme-payments");
    fs::create_dir(&skill).unwrap();
    fs::copy(GOLDEN, skill.join("SKILL.md")).unwrap();
    match Command::new("agentskills")
        .arg("validate")
        .arg(&skill)
        .output()
    {
        Ok(validated) => assert!(validated.status.success(), "{validated:?}"),
        Err(error) => println!("skipped: agentskills (PyPI skills-ref) cannot be run: {error}"),
    }
}
