//! Numbers for the owners of sites: counts of requests, searches and votes, without tracking.
//!
//! For each site and day (UTC) the following is counted:
//!
//! | what | by |
//! |---|---|
//! | requests for the HTML and the Markdown of a page | kind of reader |
//! | requests for `skill.md`, manifests, the agent card, `llms.txt` and skills | kind of reader |
//! | calls of MCP tools | the name that the client gives, else kind of reader |
//! | searches, those without result, and their texts | |
//! | votes whether a page was helpful | page |
//!
//! A request is counted if it is a `GET` of something that exists, answered with 200 or 304. A
//! search is counted when it is computed, so not if it is answered with 304. What a cache in front
//! of the gateway or the cache of a browser answers is not counted, and neither are pages of a
//! site's own server.
//!
//! **No personal data.** No address, cookie or identifier of a client is used or kept, and nothing
//! joins two requests. A kind of reader is one of a closed list, or the name of a program. A
//! searched text is written only if it was asked again on the same day, and never if it looks like
//! an address or a secret (`text`).
//!
//! **Bounds.** Only pages, files and skills of the release have an entry. The lists of names and
//! texts that clients choose are bounded in memory and in the store; a count without an entry is
//! added to the counts that are left out. One site and day takes at most about 2 MB in the store
//! and 4 MB in memory.
//!
//! **Speed.** A page or file is counted with one atomic addition and no lock ([`SiteNumbers`]).
//!
//! **Loss.** A [`Writer`] adds the counts to the store every 30 seconds and when the process ends.
//! A killed process loses the counts since the last write, and a power cut may undo the last write
//! too. All processes of a store add to the same document.
//!
//! **Edges** have no store that an owner reads. An edge writes its counts into its cache, and sends
//! them to the node that it follows, which adds each of them once ([`received`]).
//!
//! Source: `internals/decisions#numbers`.

mod document;
mod reader;
pub mod received;
mod site;
mod stored;
mod summary;
mod table;
mod text;
mod writer;

pub use document::{Document, InvalidDocument};
pub use reader::Reader;
pub use site::SiteNumbers;
pub use stored::copy;
pub use summary::Summary;
pub use table::Budget;
pub use writer::Writer;

/// The settings of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether anything is counted.
    pub enabled: bool,
    /// For how many days numbers are kept.
    pub keep_days: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: true,
            keep_days: 400,
        }
    }
}
