//! The legacy index at `/.well-known/skills/index.json`.
//!
//! Its clients request `{name}/SKILL.md`, whatever the case of the name in `files`. One invalid
//! entry makes them drop the whole index, so every entry here is valid for them.
//!
//! Source: Agent Skills Discovery 0.1.

use serde::Serialize;

use super::Listed;

#[derive(Serialize)]
struct Index<'i> {
    skills: Vec<Entry<'i>>,
}

#[derive(Serialize)]
struct Entry<'i> {
    name: &'i str,
    description: &'i str,
    files: [&'static str; 1],
}

/// Writes the legacy index.
#[must_use]
pub fn legacy(skills: &[Listed]) -> Vec<u8> {
    let entries = skills.iter().map(|skill| Entry {
        name: &skill.slug,
        description: &skill.description,
        files: ["SKILL.md"],
    });
    let index = Index {
        skills: entries.collect(),
    };
    serde_json::to_vec(&index).expect("strings are JSON")
}
