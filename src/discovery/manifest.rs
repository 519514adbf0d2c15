//! The 0.2.0 manifest at `/.well-known/agent-skills/index.json`.
//!
//! Source: Agent Skills Discovery 0.2.0, "Discovery Index".

use serde::Serialize;

use super::{Listed, McpServer, paths};
use crate::digest::Digest;
use crate::site::BasePath;

/// The schema. Every client of 0.2.0 compares this text.
const SCHEMA: &str = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";
/// The only type of skill: a Markdown file.
const TYPE: &str = "skill-md";

#[derive(Serialize)]
struct Manifest<'m> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    skills: Vec<Entry<'m>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mcp: Option<McpServer<'m>>,
}

#[derive(Serialize)]
struct Entry<'m> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: &'m str,
    r#type: &'static str,
    description: &'m str,
    url: String,
    digest: String,
}

/// Writes the manifest of a site that lives under `base_path`.
///
/// Each skill comes with the digest of the bytes that are *served*. For a generated skill they
/// differ from the file in the release. `mcp` is the same as for [`card`](super::card()); clients ignore members that they do
/// not know ("Discovery Index").
#[must_use]
pub fn manifest<'s>(
    skills: impl Iterator<Item = (&'s Listed, Digest)>,
    base_path: &BasePath,
    mcp: Option<&str>,
) -> Vec<u8> {
    let entry = |(skill, digest): (&'s Listed, Digest)| Entry {
        schema: SCHEMA,
        name: &skill.slug,
        r#type: TYPE,
        description: &skill.description,
        url: paths::skill_file(base_path, &skill.slug),
        digest: format!("sha256:{digest}"),
    };
    let manifest = Manifest {
        schema: SCHEMA,
        skills: skills.map(entry).collect(),
        mcp: mcp.map(McpServer::at),
    };
    serde_json::to_vec(&manifest).expect("strings are JSON")
}
