//! Edges that follow a node: they serve what it serves, and need neither its database nor its disk.
//!
//! ```text
//! source: index ─▶ ChangeLog ─▶ Source ── HTTP ──▶ Client ─▶ Follower ─▶ cache ─▶ index :edge
//!                                store ──┘ objects
//! ```
//!
//! * A [`ChangeLog`] numbers the changes of a source in the order in which they became visible. It
//!   has one entry for each project: its record, and its current promotion.
//! * The [`Rings`] of a source have a log each: a change reaches one ring of edges after the other.
//! * A [`Source`] responds to edges: changes after a revision (a long poll), everything (a snapshot),
//!   and files by digest. Changes and snapshots are signed.
//! * A [`Fleet`] holds the state of the edges of a source: the revision and the health of each.
//! * A [`SecretLog`] does the same for certificates, ticket keys and answers to challenges, and
//!   a [`SecretFollower`] keeps them. They are encrypted for one edge.
//! * A [`CountSender`] sends the counts of an edge for the owners of sites.
//! * A [`Relay`] passes on what edges of an edge ask.
//! * A [`Follower`] writes what it gets into the [cache](crate::store::Store), which is a store in
//!   a directory of the edge. The rest of the process reads that store as on any node. So an edge
//!   starts from its cache, and serves from it as long as the source is away.
//!
//! A gateway on a shared store follows that store in the same way: its database says
//! what has changed, and files come from the object store.
//!
//! Rules:
//!
//! * **F1** An edge continues after a revision only of the same identity. Each start of a source
//!   makes a new identity. Another identity, or a revision that is too old, leads to a full
//!   comparison: everything is compared, and what the source does not have is removed.
//! * **F2** The pointer of a project changes only when the cache has the whole release.
//! * **F3** An edge uses only messages that a key which it trusts has signed, and files with the
//!   digest that such a message, or the inventory that it names, says.
//! * **F4** A message of an earlier life of the source, or of an earlier revision of the same
//!   life, is refused: nobody between can bring back an old state. Messages of different rings are
//!   compared by the revision of the first ring, which each message has. An edge that an operator
//!   points at another address compares everything with the source there. If both sources are
//!   gateways of one store, a message says which changes of the store it has: the edge refuses
//!   the source as long as it may lack a change that the edge has. If the database has another
//!   history, after a fail-over for example, the edge logs it, and compares everything.
//! * **F5** A full comparison that would remove more than a tenth of the sites, and at least ten,
//!   is refused until an operator accepts it.
//! * **F6** A change that cannot be fetched or stored is tried again, and the earlier state stays
//!   served.
//! * **F7** A record that an edge cannot serve, for example because its server is on a private
//!   address that only the source allows, is not written: the record of before stays served. The
//!   edge reports it, and does not count as well.

mod cached;
mod changes;
mod client;
mod counts;
mod edge;
mod fetch;
mod files;
mod fleet;
mod message;
mod metrics;
mod outbox;
mod position;
mod relay;
mod report;
mod revisions;
mod rings;
mod sealing;
mod secrets;
mod signature;
mod source;
mod status;
mod store_revision;
mod tokens;
mod upstream;

use std::path::PathBuf;
use std::sync::Arc;

pub use changes::ChangeLog;
pub use client::FollowError;
pub use counts::CountSender;
pub use edge::{Follower, FollowerParts, StoreObserver};
pub use fleet::Fleet;
pub use metrics::{RelayMetrics, SourceMetrics};
pub use relay::Relay;
pub use rings::{RINGS_MAX, Rings};
pub use sealing::{EdgeKey, InvalidSealingKey, SealingKey};
pub use secrets::{
    Certificate, EdgeKeys, FollowedTickets, IsUsable, SecretFollower, SecretFollowerParts,
    SecretKind, SecretLog, ToRecord,
};
pub use signature::{InvalidPublicKey, KeyError, PublicKey, SigningKey};
pub use source::{Certificates, Request, Source, SourceParts, SourceResponse};
pub use status::Status;
pub use tokens::{EDGE_TOKENS, EdgeName, InvalidEdgeName, ListedEdge, TokenError, Tokens};

/// The part that responds to edges.
#[derive(Clone, Debug)]
pub enum Responder {
    /// A source.
    Source(Arc<Source>),
    /// An edge that serves other edges.
    Relay(Arc<Relay>),
}

/// The path below which a source responds.
pub const PATH: &str = "/v1/follow/";
/// The path to which edges send their counts.
pub const NUMBERS_PATH: &str = "/v1/follow/numbers";
/// The longest content that an edge sends, in bytes.
pub const CONTENT_BYTES_MAX: usize = 4 << 20;
/// The field of a response with the signature of its content.
pub const SIGNATURE: &str = "waypost-signature";

/// How an edge follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The address of the source: `https://` and a host, with a port.
    pub url: String,
    /// The file with the token of this edge.
    pub token_file: PathBuf,
    /// The public keys that may sign; several while one replaces another.
    pub public_keys: Vec<PublicKey>,
    /// The file with the key of this edge; `None` if it terminates no TLS with certificates of the
    /// source.
    pub key_file: Option<PathBuf>,
    /// Authorities that are trusted instead of those of the machine.
    pub ca_file: Option<PathBuf>,
    /// Whether the address may begin with `http://`.
    pub allow_http: bool,
    /// How many bytes of files the cache holds.
    pub cache_bytes_max: u64,
    /// The longest file that is fetched, in bytes.
    pub object_bytes_max: u64,
    /// The longest snapshot that is read, in bytes without compression.
    pub snapshot_bytes_max: u64,
}

// === impl Responder ===

impl Responder {
    /// Responds to a request.
    pub async fn respond(&self, request: &Request) -> SourceResponse {
        match self {
            Self::Source(source) => source.respond(request).await,
            Self::Relay(relay) => relay.respond(request).await,
        }
    }

    /// Returns whether a request has the token of an edge. A relay knows only tokens that it has
    /// already forwarded.
    #[must_use]
    pub fn knows(&self, request: &Request) -> bool {
        match self {
            Self::Source(source) => source.knows(request),
            Self::Relay(relay) => relay.knows(request),
        }
    }

    /// Returns the response to a request whose content is not read; `None` if the content is read.
    #[must_use]
    pub fn rejection(&self, request: &Request, length: usize) -> Option<SourceResponse> {
        match request.path == NUMBERS_PATH {
            false => Some(SourceResponse::Status(405, "only GET\n")),
            true if !self.knows(request) => Some(SourceResponse::Status(
                401,
                "no edge with this token follows\n",
            )),
            true if length > CONTENT_BYTES_MAX => {
                Some(SourceResponse::Status(413, "at most 4 MiB\n"))
            }
            true => None,
        }
    }

    /// Waits until this process stops responding.
    pub async fn ended(&self) {
        match self {
            Self::Source(source) => source.ending().cancelled().await,
            Self::Relay(relay) => relay.ending().cancelled().await,
        }
    }

    /// Returns whether this process stops responding, so that connections are closed.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        match self {
            Self::Source(source) => source.ending().is_cancelled(),
            Self::Relay(relay) => relay.ending().is_cancelled(),
        }
    }
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            url: String::new(),
            token_file: PathBuf::new(),
            public_keys: Vec::new(),
            key_file: None,
            ca_file: None,
            allow_http: false,
            cache_bytes_max: 20 << 30,
            object_bytes_max: 256 << 20,
            snapshot_bytes_max: 1 << 30,
        }
    }
}
