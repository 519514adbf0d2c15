//! The agent card at `/.well-known/agent-card.json`.
//!
//! A card of schema 0.3 with the list of interfaces of 1.0: the A2A Python SDK writes the same
//! combination, and every released SDK reads it. There is no A2A server behind it; its skills
//! lead to files.
//!
//! Source: A2A 0.3.0 `AgentCard` and `AgentSkill`, A2A 1.0.0 §8.

use serde::Serialize;

use super::{Listed, McpServer, Summary, paths};
use crate::site::BasePath;

/// The version of A2A whose clients read the card.
const PROTOCOL_VERSION: &str = "0.3";
const TRANSPORT: &str = "HTTP+JSON";
const MODES: [&str; 1] = ["text/plain"];
/// The name of the extension that tells where an MCP server is: the specification of its transport.
const MCP: &str =
    "https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http";
/// Tags, for readers that filter by them.
const TAGS: [&str; 1] = ["documentation"];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Card<'c> {
    protocol_version: &'static str,
    name: &'c str,
    description: &'c str,
    version: &'c str,
    url: &'c str,
    preferred_transport: &'static str,
    supported_interfaces: [Interface<'c>; 1],
    provider: Provider<'c>,
    documentation_url: &'c str,
    default_input_modes: [&'static str; 1],
    default_output_modes: [&'static str; 1],
    capabilities: Capabilities<'c>,
    skills: Vec<Skill<'c>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Interface<'c> {
    url: &'c str,
    protocol_binding: &'static str,
    protocol_version: &'static str,
}

#[derive(Serialize)]
struct Provider<'c> {
    url: &'c str,
    organization: &'c str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Capabilities<'c> {
    streaming: bool,
    push_notifications: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extensions: Vec<Extension<'c>>,
}

/// A2A 0.3.0 and 1.0, `AgentExtension`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Extension<'c> {
    uri: &'static str,
    description: &'static str,
    required: bool,
    params: McpServer<'c>,
}

#[derive(Serialize)]
struct Skill<'c> {
    id: &'c str,
    name: &'c str,
    description: &'c str,
    tags: [&'static str; 1],
    url: String,
}

fn extension(url: &str) -> Extension<'_> {
    Extension {
        uri: MCP,
        description: "The MCP server of the documentation.",
        required: false,
        params: McpServer::at(url),
    }
}

/// Writes the card of a site whose address is `site_url` (with its base path, without a
/// trailing slash).
///
/// `mcp` is the address of the site's MCP server if it is on another host than the site: a proxy of
/// the customer may forward this card and not the documents that announce the server.
#[must_use]
pub fn card(summary: &Summary, site_url: &str, mcp: Option<&str>) -> Vec<u8> {
    let no_base = BasePath::default();
    let skill =
        |listed: &'_ Listed| format!("{site_url}{}", paths::skill_file(&no_base, &listed.slug));
    let card = Card {
        protocol_version: PROTOCOL_VERSION,
        name: &summary.title,
        description: &summary.description,
        version: &summary.documentation_version,
        url: site_url,
        preferred_transport: TRANSPORT,
        supported_interfaces: [Interface {
            url: site_url,
            protocol_binding: TRANSPORT,
            protocol_version: PROTOCOL_VERSION,
        }],
        provider: Provider {
            url: site_url,
            organization: &summary.title,
        },
        documentation_url: site_url,
        default_input_modes: MODES,
        default_output_modes: MODES,
        capabilities: Capabilities {
            streaming: false,
            push_notifications: false,
            extensions: mcp.into_iter().map(extension).collect(),
        },
        skills: summary
            .skills
            .iter()
            .map(|listed| Skill {
                id: &listed.slug,
                name: &listed.name,
                description: &listed.description,
                tags: TAGS,
                url: skill(listed),
            })
            .collect(),
    };
    serde_json::to_vec(&card).expect("strings and booleans are JSON")
}
