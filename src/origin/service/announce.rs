//! The lists of a site without an MCP server, which must not announce one.

use bytes::Bytes;
use serde_json::Value;

use super::{CATALOG, FoundResponse, Request, ok_response};
use crate::digest::Digest;
use crate::discovery::paths::mcp_address;
use crate::index::File;
use crate::release::announcements::without_mcp;
use crate::response::encoding::Accepted;
use crate::response::{Body, Encoding, Response, caching};

/// Returns whether the list of this name announces the MCP server.
pub(super) fn is_announcing(name: &str) -> bool {
    name == CATALOG || name == "llms.txt" || name.ends_with("/llms.txt")
}

// === impl Request ===

impl Request<'_> {
    /// Finds a list, and leaves the MCP server out.
    pub(super) fn silent(&self, path: &str, is_catalog: bool) -> FoundResponse {
        let address = &self.files.files.address;
        let file = self
            .files
            .read_addressed(path, address, Accepted::IDENTITY_ONLY)?;
        let Some(file) = file else {
            return Ok(None);
        };
        // The lists are short; one that is not in memory stays as it is.
        let silent = file.body.memory().map(|bytes| match is_catalog {
            true => without_server(bytes, &mcp_address(address)),
            false => without_mcp(&String::from_utf8_lossy(bytes)).into(),
        });
        let file = match silent {
            None => file,
            Some(bytes) => File {
                digest: Digest::of(&bytes),
                body: Body::from(bytes),
                encoding: Encoding::Identity,
                ..file
            },
        };
        let response = ok_response(file);
        Ok(Some(self.conditional(Response {
            caching: caching::DISCOVERY,
            ..response
        })))
    }
}

/// Removes the entry of the server from the catalog of APIs.
fn without_server(catalog: &Bytes, server: &str) -> Bytes {
    let Ok(mut catalog) = serde_json::from_slice::<Value>(catalog) else {
        return catalog.clone();
    };
    if let Some(links) = catalog.get_mut("linkset").and_then(Value::as_array_mut) {
        links.retain(|link| link.get("anchor").and_then(Value::as_str) != Some(server));
    }
    catalog.to_string().into()
}
