//! The discovery documents on every host.
//!
//! | module | tests |
//! |---|---|
//! | `documents` | the content of each document, and its path |
//! | `negotiation` | methods, conditions, codings, and the fields of every response |
//! | `targets` | which hosts and which spellings of a path the gateway serves itself |
//!
//! Sources: Agent Skills Discovery 0.2.0 and 0.1; A2A 0.3.0.

mod documents;
mod negotiation;
mod targets;

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::edge::{Edge, Setup};

const DOCS_JSON: &str = r#"{
  "name": "Acme Docs",
  "description": "All about Acme.",
  "navigation": { "pages": ["index"] }
}"#;

/// A skill that is long enough to be compressed.
fn long_skill() -> String {
    let mut text = String::from("---\nname: long\ndescription: A long one.\n---\n");
    for line in 0..400 {
        writeln!(text, "{line}. Read the chapter before this one, then act.").unwrap();
    }
    text
}

/// Starts a gateway with one site that has these skills; the first is at the root.
fn serving(record: &str, skills: &[&str]) -> Edge {
    let edge = Setup::new().site("acme", record).start();
    publish(&edge, skills);
    edge
}

/// Publishes skills and a title; the first skill is at the root.
fn publish(edge: &Edge, skills: &[&str]) {
    let paths: Vec<String> = (0..skills.len())
        .map(|nth| match nth {
            0 => "skill.md".to_owned(),
            _ => format!(".waypost/skills/skill-{nth}/SKILL.md"),
        })
        .collect();
    let files: Vec<(&str, &str)> = paths
        .iter()
        .map(String::as_str)
        .zip(skills.iter().copied())
        .chain([("docs.json", DOCS_JSON), ("index.mdx", "# Acme\n")])
        .collect();
    edge.publish("acme", &files);
}

fn sha256(bytes: &[u8]) -> String {
    let digits = Sha256::digest(bytes);
    digits.iter().map(|byte| format!("{byte:02x}")).collect()
}
