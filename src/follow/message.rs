//! Messages of a source: changes and snapshots.
//!
//! A message is lines of JSON. The first is the [`Head`]; each further one is an [`Entry`], the
//! state of one project. The whole message is signed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::store_revision::StoreRevision;
use crate::site::{Host, InvalidProjectId, ProjectId};
use crate::store::{Ownership, Promotion};
use crate::version::newer_than;

/// The version of messages.
pub(super) const VERSION: u32 = 1;
/// The longest line of an entry, in bytes.
const LINE_BYTES_MAX: usize = 4 << 20;

/// The life of a source between two starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Identity {
    /// A number that grows with each start.
    pub(super) life: u64,
    /// A random text.
    pub(super) id: String,
}

/// What a message has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// The entries that have changed after a revision.
    Changes,
    /// All entries.
    Snapshot,
}

/// The first line of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub(super) version: u32,
    pub(super) kind: Kind,
    /// The domain of the service; an edge of another service would serve other hosts.
    pub(super) service: String,
    pub(super) identity: Identity,
    /// The ring whose state this is.
    pub(super) ring: u8,
    /// The revision of the first ring when the message was made: a number that all rings of a life
    /// share, so that the messages of two rings have an order too.
    pub(super) source_revision: u64,
    /// The revision of the shared store, if the source has one. All gateways of the
    /// store share it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) store: Option<StoreRevision>,
    /// Of a message that was made of a database, and is not sent: the mark of the change with the
    /// number `revision`.
    #[serde(skip)]
    pub(super) mark: Option<String>,
    /// The revision that the edge has named; 0 in a snapshot.
    pub(super) after: u64,
    /// The revision of an edge that has applied the message.
    pub(super) revision: u64,
    /// The newest revision of the source.
    pub(super) latest: u64,
    /// How many entries follow.
    pub(super) entries: u64,
}

/// The state of one project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// The revision of its last change.
    pub(super) revision: u64,
    pub(super) project: String,
    /// Its site record, without the key `project`; `None` if it has no site.
    pub(super) record: Option<Map<String, Value>>,
    /// Its current release; `None` if it has none.
    pub(super) current: Option<Promotion>,
    /// The state of ownership of its domains, if the follower decides which of them it serves.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "hosts")]
    pub(super) ownership: BTreeMap<Host, Ownership>,
}

/// A message that was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Message {
    pub(super) head: Head,
    pub(super) entries: Vec<(ProjectId, Entry)>,
}

/// Why bytes are not a message.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidMessage {
    #[error("it has version {0}; this program reads version {VERSION}")]
    Newer(u64),
    #[error("line {line} is not valid: {source}")]
    Json {
        line: usize,
        source: serde_json::Error,
    },
    #[error("line {0} is too long")]
    Long(usize),
    #[error("it has {found} entries instead of {announced}")]
    Count { announced: u64, found: u64 },
    #[error("{0}")]
    Project(#[from] InvalidProjectId),
}

/// Hosts as texts.
mod hosts {
    use std::collections::BTreeMap;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use crate::site::Host;
    use crate::store::Ownership;

    pub(super) fn serialize<S: Serializer>(
        ownership: &BTreeMap<Host, Ownership>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let texts = ownership.iter().map(|(host, state)| (host.as_str(), state));
        texts.collect::<BTreeMap<_, _>>().serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(
        from: D,
    ) -> Result<BTreeMap<Host, Ownership>, D::Error> {
        let texts = BTreeMap::<String, Ownership>::deserialize(from)?;
        let hosts = texts.into_iter();
        Ok(hosts
            .filter_map(|(host, state)| Some((Host::parse(&host).ok()?, state)))
            .collect())
    }
}

/// Adds a line to a message.
pub(super) fn push_line(to: &mut Vec<u8>, line: &impl Serialize) {
    serde_json::to_writer(&mut *to, line).expect("texts and numbers are JSON");
    to.push(b'\n');
}

impl Message {
    /// Reads a message whose signature was checked.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        let mut lines = bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let first = lines.next().unwrap_or_default();
        let head: Head = serde_json::from_slice(first).map_err(|source| {
            match newer_than(VERSION.into(), first) {
                Some(version) => InvalidMessage::Newer(version),
                None => InvalidMessage::Json { line: 1, source },
            }
        })?;
        if head.version != VERSION {
            return Err(InvalidMessage::Newer(head.version.into()));
        }
        let mut entries = Vec::new();
        for (line, text) in (2..).zip(lines) {
            if text.len() > LINE_BYTES_MAX {
                return Err(InvalidMessage::Long(line));
            }
            let entry: Entry = serde_json::from_slice(text)
                .map_err(|source| InvalidMessage::Json { line, source })?;
            let project = ProjectId::parse(&entry.project)?;
            entries.push((project, entry));
        }
        let found = entries.len() as u64;
        match found == head.entries {
            true => Ok(Self { head, entries }),
            false => Err(InvalidMessage::Count {
                announced: head.entries,
                found,
            }),
        }
    }
}
