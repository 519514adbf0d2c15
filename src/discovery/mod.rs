//! Discovery: the documents with which agents find a site's skills.
//!
//! Functions from values to bytes. What a release says about its skills (a [`Summary`])
//! and the address a site has on a host become
//!
//! | document | specification | depends on |
//! |---|---|---|
//! | [`manifest()`] | Agent Skills Discovery 0.2.0 | base path, address of the MCP server |
//! | [`legacy()`] | its predecessor 0.1 | nothing |
//! | [`card()`] | A2A 0.3, readable by 1.0 clients | the site's address on the host |
//!
//! and [`paths`] is the only list of their paths. Rules, each named by a test:
//!
//! * **D1** The `digest` in a manifest is the digest of the bytes at its `url`. If they differ,
//!   real clients drop the skill without a message.
//! * **D2** `$schema` is at the top level, where clients read it, and in each entry, where the
//!   specification lists it.
//! * **D3** The legacy index has no `$schema`: clients ignore an index whose `$schema` they do not
//!   know.
//! * **D4** URLs in the manifest are path-absolute and carry the base path.
//! * **D5** URLs in the card are absolute, on the host of the request; on the default subdomain
//!   they are on the canonical domain.
//! * **D6** The card has every field that any of the A2A SDKs requires and no `null`.
//! * **D7** If the MCP server of a site is on another host than its pages, the manifest and the card
//!   name its address.

mod card;
mod legacy;
mod manifest;
pub mod paths;
mod summary;

pub use card::card;
pub use legacy::legacy;
pub use manifest::manifest;
pub use summary::{Listed, SUMMARY_PATH, Summary, UnreadableSummary, skill_path};

/// The media type of all three documents.
pub const JSON: &str = "application/json";
/// The media type of a skill file (RFC 7763).
pub const MARKDOWN: &str = "text/markdown; charset=utf-8";

/// The placeholder for the address of the site in generated text.
///
/// The index replaces it by the canonical base URL, once for each site, before it computes
/// digests. With `.invalid` (RFC 2606 §2) no text of an author can contain it by accident.
pub const BASE_URL_PLACEHOLDER: &str = "https://base-url.invalid";

/// Where the MCP server of a site is.
#[derive(serde::Serialize)]
struct McpServer<'m> {
    url: &'m str,
    transport: &'static str,
}

// === impl McpServer ===

impl<'m> McpServer<'m> {
    fn at(url: &'m str) -> Self {
        Self {
            url,
            transport: "streamable-http",
        }
    }
}

#[cfg(test)]
mod tests;
