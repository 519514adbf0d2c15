//! The revisions of the protocol, and the revision of a request.
//!
//! Source: Model Context Protocol 2026-07-28, `basic/versioning` and
//! `basic/transports/streamable-http`, "Request Metadata" and "Server Validation".

use serde_json::{Map, Value, json};

use super::encoded::decoded;
use super::message::INVALID_PARAMS;
use super::{Rejection, shortened};
use crate::response::McpFields;

/// The newest revision.
pub const LATEST: &str = "2026-07-28";
/// All revisions that the server speaks, the newest first.
pub const REVISIONS: [&str; 4] = [LATEST, "2025-11-25", "2025-06-18", "2025-03-26"];
/// The newest revision with a handshake.
pub(super) const LATEST_HANDSHAKE: &str = REVISIONS[1];

/// `HeaderMismatch`: fields and message differ.
const HEADER_MISMATCH: i32 = -32020;
/// `UnsupportedProtocolVersion`.
const UNSUPPORTED_VERSION: i32 = -32022;

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// How a client and the server agree on a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Once, by `initialize`: up to 2025-11-25.
    Handshake,
    /// Each request names it: 2026-07-28.
    Stateless,
}

// === impl Era ===

impl Era {
    /// Finds the era of a request, and checks the request by the rules of this era.
    pub(super) fn of(
        fields: &McpFields<'_>,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<Self, Rejection> {
        let meta = params.get("_meta").and_then(Value::as_object);
        let named = meta.and_then(|meta| meta.get(VERSION_KEY));
        let field = fields
            .version
            .map(|field| text(field, "MCP-Protocol-Version"));
        let field = field.transpose()?;
        let version = match (field, named) {
            (None, None) => return Ok(Self::Handshake),
            (Some(field), None) if is_handshake(field) => return Ok(Self::Handshake),
            (Some(LATEST), None) => return Err(missing(VERSION_KEY)),
            (Some(field), None) => return Err(unsupported(field)),
            (field, Some(named)) => {
                let named = named.as_str().ok_or_else(|| missing(VERSION_KEY))?;
                mirrored("MCP-Protocol-Version", field, named)?;
                named
            }
        };
        if version != LATEST {
            return Err(unsupported(version));
        }
        let capabilities = meta.and_then(|meta| meta.get(CAPABILITIES_KEY));
        if !capabilities.is_some_and(Value::is_object) {
            return Err(missing(CAPABILITIES_KEY));
        }
        let sent = fields.method.map(|field| text(field, "Mcp-Method"));
        mirrored("Mcp-Method", sent.transpose()?, method)?;
        let name = match method {
            "tools/call" | "prompts/get" => params.get("name"),
            "resources/read" => params.get("uri"),
            _ => None,
        };
        if let Some(name) = name.and_then(Value::as_str) {
            let sent = fields.name.map(|field| text(field, "Mcp-Name"));
            let sent = sent.transpose()?.map(decoded).transpose()?;
            mirrored("Mcp-Name", sent.as_deref(), name)?;
        }
        Ok(Self::Stateless)
    }
}

/// Returns the revision that `initialize` agrees on: the revision that the client wants, or the
/// newest (2025-11-25, `basic/lifecycle`, "Version Negotiation").
#[must_use]
pub fn negotiated(wanted: &str) -> &'static str {
    let known = REVISIONS[1..].iter().find(|known| **known == wanted);
    known.copied().unwrap_or(LATEST_HANDSHAKE)
}

/// Returns whether a request may be of the revision that has batches. Its clients send no field
/// (2025-06-18, `basic/transports`, "Protocol Version Header").
pub(super) fn has_batches(fields: &McpFields<'_>) -> bool {
    fields
        .version
        .is_none_or(|version| version == REVISIONS[3].as_bytes())
}

fn is_handshake(version: &str) -> bool {
    // Revision 2024-11-05 had another transport, but its messages are the same, and some clients
    // name it.
    REVISIONS[1..].contains(&version) || version == "2024-11-05"
}

/// Checks that a field repeats a part of the message.
fn mirrored(name: &str, field: Option<&str>, value: &str) -> Result<(), Rejection> {
    match field {
        Some(field) if field == value => Ok(()),
        Some(field) => Err(mismatch(format!(
            "the field {name} has the value '{}', the message has '{}'",
            shortened(field),
            shortened(value)
        ))),
        None => Err(mismatch(format!("the field {name} is missing"))),
    }
}

/// Reads a field, which is visible ASCII.
fn text<'f>(field: &'f [u8], name: &str) -> Result<&'f str, Rejection> {
    let text = str::from_utf8(field).ok().filter(|text| text.is_ascii());
    text.ok_or_else(|| mismatch(format!("the field {name} has other characters than ASCII")))
}

pub(super) fn mismatch(why: String) -> Rejection {
    Rejection::Error {
        status: 400,
        code: HEADER_MISMATCH,
        message: format!("Header mismatch: {why}"),
        data: None,
    }
}

fn unsupported(version: &str) -> Rejection {
    Rejection::Error {
        status: 400,
        code: UNSUPPORTED_VERSION,
        message: "Unsupported protocol version".to_owned(),
        data: Some(json!({"supported": REVISIONS, "requested": shortened(version)})),
    }
}

/// `basic`, "Per-request protocol fields".
fn missing(key: &str) -> Rejection {
    Rejection::Error {
        status: 400,
        code: INVALID_PARAMS,
        message: format!("Invalid params: `_meta` has no valid `{key}`"),
        data: None,
    }
}
