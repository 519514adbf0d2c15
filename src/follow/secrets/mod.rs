//! What edges get beside sites and releases: certificates with their private keys, the keys of
//! session tickets, and the answers to challenges of authorities.
//!
//! ```text
//! source: documents of ACME, directory, ticket keys ─▶ SecretLog ─▶ Source ── sealed ──┐
//! edge:   documents of its cache, encrypted ◀── SecretFollower ◀─────────────────────┘
//! ```
//!
//! * A message is lines of JSON, as other messages are: a [`Head`] and [`Item`]s. It is encrypted
//!   with the public key that the source knows of the edge, and then signed. An edge without a key
//!   gets only answers to challenges, without encryption: these are public.
//! * An item of a certificate has no content. The edge asks for the certificates that it does not
//!   have.
//! * An edge whose key is set later, or replaced, has none of the certificates up to its revision. It
//!   asks for everything, until it has got everything encrypted for that key.
//! * The next request of an edge reports that it has applied what it got. So the source knows which
//!   edges answer a challenge.

mod follower;
mod log;
mod tickets;

use serde::{Deserialize, Serialize};

pub use follower::{EdgeKeys, IsUsable, SecretFollower, SecretFollowerParts, ToRecord};
pub use log::SecretLog;
pub use tickets::FollowedTickets;

use super::message::Identity;

/// The version of messages.
pub(super) const VERSION: u32 = 1;
/// The purpose of sealed items, and of sealed certificates.
pub(super) const ITEMS: &str = "items";
pub(super) const CERTIFICATES: &str = "certificates";
/// How many certificates an edge asks for at once.
pub(super) const CERTIFICATES_MAX: usize = 16;
/// The first byte of an encrypted content, and of a content that is not encrypted.
pub(super) const SEALED: u8 = 1;
pub(super) const OPEN: u8 = 0;

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretKind {
    /// A certificate; its key is `{name}~{identifier}`.
    Certificate,
    /// The answer to a challenge, as the document of it is.
    Challenge,
    /// The keys of session tickets; there is one item.
    Tickets,
}

/// The first line of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub(super) version: u32,
    pub(super) service: String,
    pub(super) identity: Identity,
    /// The revision that the edge has named.
    pub(super) after: u64,
    /// The revision of an edge that has applied the message.
    pub(super) revision: u64,
    /// Whether the message has all items, so that others were removed.
    pub(super) is_complete: bool,
    pub(super) items: u64,
}

/// The state of one item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Item {
    pub(super) kind: SecretKind,
    pub(super) key: String,
    pub(super) is_removed: bool,
    /// `None` for certificates and removed items.
    pub(super) content: Option<String>,
}

/// A certificate with its private key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// The key of its item.
    pub key: String,
    /// The name that it serves.
    pub name: String,
    /// Where it is from: the directory of its authority.
    pub authority: String,
    /// When it was issued, in seconds after the Unix epoch. Of two certificates of a name, the
    /// later one is used.
    pub issued_at: u64,
    /// The chain, in PEM.
    pub chain: String,
    /// The private key in DER, in Base64.
    pub private_key: String,
}

impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Certificate");
        debug.field("key", &self.key).finish_non_exhaustive()
    }
}
