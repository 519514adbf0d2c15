//! Discovery: the documents by which agents find a site's skills.
//!
//! Functions from values to bytes. What a release says about its skills (a [`Summary`])
//! and the address a site has on a host become
//!
//! | document | specification | depends on |
//! |---|---|---|
//! | [`manifest()`] | Agent Skills Discovery 0.2.0 | base path |
//! | [`legacy()`] | its predecessor 0.1 | nothing |
//! | [`card()`] | A2A 0.3, readable by 1.0 clients | the site's address on the host |
//!
//! and [`paths`] is the one list of where they are found. Rules, each named by a test:
//!
//! * **D1** A manifest's `digest` is of the exact bytes its `url` answers: real clients
//!   drop a skill without a word when the two differ.
//! * **D2** `$schema` stands at the top level, where clients look, and in each entry, where
//!   it does no harm and the field list of the service has it.
//! * **D3** The legacy index has no `$schema`: clients ignore an index with one they do not know.
//! * **D4** URLs in the manifest are path-absolute and carry the base path.
//! * **D5** URLs in the card are absolute, on the address the card is asked for, or on the
//!   canonical domain when that was the default subdomain.
//! * **D6** The card has every field that any of the A2A SDKs requires and no `null`.

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

/// Where generated text must carry the site's own address, it carries this instead.
///
/// The index puts the canonical base URL in its place, once per site, before it takes digests.
/// `.invalid` (RFC 2606 §2) makes sure that no author means it.
pub const BASE_URL_PLACEHOLDER: &str = "https://base-url.invalid";

#[cfg(test)]
mod tests;
