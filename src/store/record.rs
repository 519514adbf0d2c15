//! Site records that the store keeps: what the admin API and the command line have written.
//!
//! A record is the JSON object that its writer sent, with the keys of a record in a file. It is
//! kept as it was sent: an absent key has its default, also after a default has changed.
//!
//! A [`SiteChange`] is applied as a whole: the record, the hosts that it claims and releases, and
//! the line of the audit log. [`SitesLock`] keeps other writers away between reading and writing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Ownership, OwnershipState, audit};
use crate::site::{Host, ProjectId};
use crate::version::newer_than;

/// The version of the formats of records and claims that is written, and the highest that is read.
const VERSION: u32 = 1;

/// A site record in the store.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteRecord {
    /// The project of the site.
    pub project: ProjectId,
    /// When it was last changed, in seconds after the Unix epoch.
    pub changed_at: u64,
    /// The record, without its key `project`.
    pub record: Map<String, Value>,
    /// The state of the ownership of its domains. A domain without an entry was added while
    /// no proof was needed.
    pub ownership: BTreeMap<Host, Ownership>,
}

/// A host that a record in the store has, or has had.
///
/// A claim counts only while the record of its project names the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostClaim {
    /// The host.
    pub host: Host,
    /// The project of the record.
    pub project: ProjectId,
    /// The time after the project has lost the host; `None` while the project has it.
    pub quarantine: Option<Quarantine>,
    /// How often the host went from one owner to another. A proof from before a handover does not
    /// count after it.
    pub handovers: u64,
}

/// After an owner has lost a host, the time in which another owner must prove it with a TXT record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quarantine {
    /// The owner who had the host.
    pub owner: Box<str>,
    /// Its end, in seconds after the Unix epoch.
    pub until: u64,
}

/// A change of one site record.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteChange {
    /// The project of the record.
    pub project: ProjectId,
    /// The record after the change; `None` if it is removed.
    pub record: Option<SiteRecord>,
    /// The hosts that the project has from now on.
    pub claimed: Vec<Host>,
    /// The hosts that it had.
    pub released: Vec<Host>,
    /// The released hosts that go into quarantine, and their quarantine.
    pub quarantine: Option<(Vec<Host>, Quarantine)>,
    /// How often a claimed or released host went from one owner to another, this change included; 0
    /// for the others.
    pub handovers: BTreeMap<Host, u64>,
    /// The line of the audit log.
    pub entry: audit::Entry,
}

/// A lock against other changes of site records, until this is dropped.
#[derive(Debug)]
pub struct SitesLock {
    pub(super) hold: SitesHold,
}

/// The lock on the site records, as this store holds it.
#[derive(Debug)]
pub(super) enum SitesHold {
    /// Among the processes of this machine.
    File { _lock: super::local::SitesFileLock },
    /// Among all machines.
    Lease(super::shared::Lease),
}

/// Why bytes are not a record or a claim.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidRecord {
    /// Written by a newer program.
    #[error("it has version {0}; this program reads versions up to {VERSION}")]
    Newer(u64),
    /// It belongs to another project or host.
    #[error("it is of {0:?}")]
    Other(String),
    /// Not such a file.
    #[error("it is not valid")]
    Json(#[from] serde_json::Error),
}

/// The content of the file of a record.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordFile {
    version: u32,
    /// On a file system that ignores case, two projects might have one file.
    project: String,
    changed_at: u64,
    record: Map<String, Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    ownership: BTreeMap<String, Ownership>,
}

/// The content of the file of a claim.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimFile {
    version: u32,
    host: String,
    project: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quarantine: Option<Quarantine>,
    #[serde(default, skip_serializing_if = "super::ownership::is_zero")]
    handovers: u64,
}

// === impl SiteChange ===

impl SiteChange {
    /// Returns the hosts whose claims change, with the new claims; `None` for a removed claim.
    pub(super) fn claims(&self) -> impl Iterator<Item = (&Host, Option<HostClaim>)> {
        let claim = |host: &Host, quarantine| HostClaim {
            host: host.clone(),
            project: self.project.clone(),
            quarantine,
            handovers: self.handovers.get(host).copied().unwrap_or(0),
        };
        let claimed = self.claimed.iter();
        let claimed = claimed.map(move |host| (host, Some(claim(host, None))));
        let released = self.released.iter().map(move |host| {
            let quarantine = self.quarantine.as_ref();
            let quarantine = quarantine.filter(|(hosts, _)| hosts.contains(host));
            let left = quarantine.map(|(_, quarantine)| claim(host, Some(quarantine.clone())));
            (host, left)
        });
        claimed.chain(released)
    }
}

// === impl SiteRecord ===

impl SiteRecord {
    /// Returns the state of a domain; `None` for a domain that was added while no proof was needed.
    #[must_use]
    pub fn ownership_of(&self, host: &Host) -> Option<OwnershipState> {
        self.ownership.get(host).map(|ownership| ownership.state)
    }

    /// Returns whether the site is served at a domain of it, if proof is needed.
    #[must_use]
    pub fn serves(&self, host: &Host) -> bool {
        self.ownership_of(host)
            .is_none_or(OwnershipState::is_served)
    }

    pub(super) fn to_text(&self) -> String {
        let file = RecordFile {
            version: VERSION,
            project: self.project.to_string(),
            changed_at: self.changed_at,
            record: self.record.clone(),
            ownership: self
                .ownership
                .iter()
                .map(|(host, ownership)| (host.to_string(), ownership.clone()))
                .collect(),
        };
        serde_json::to_string(&file).expect("texts and numbers are JSON")
    }

    pub(super) fn parse(bytes: &[u8], project: &ProjectId) -> Result<Self, InvalidRecord> {
        let file: RecordFile = read(bytes, |file: &RecordFile| file.version)?;
        if file.project != project.as_str() {
            return Err(InvalidRecord::Other(file.project));
        }
        Ok(Self {
            project: project.clone(),
            changed_at: file.changed_at,
            record: file.record,
            ownership: file
                .ownership
                .into_iter()
                .filter_map(|(host, ownership)| Some((Host::parse(&host).ok()?, ownership)))
                .collect(),
        })
    }
}

// === impl HostClaim ===

impl HostClaim {
    pub(super) fn to_text(&self) -> String {
        let file = ClaimFile {
            version: VERSION,
            host: self.host.to_string(),
            project: self.project.to_string(),
            quarantine: self.quarantine.clone(),
            handovers: self.handovers,
        };
        serde_json::to_string(&file).expect("texts and numbers are JSON")
    }

    pub(super) fn parse(bytes: &[u8], host: &Host) -> Result<Self, InvalidRecord> {
        let claim = Self::parse_any(bytes)?;
        match claim.host == *host {
            true => Ok(claim),
            false => Err(InvalidRecord::Other(claim.host.to_string())),
        }
    }

    /// Reads the claim of any host.
    pub(super) fn parse_any(bytes: &[u8]) -> Result<Self, InvalidRecord> {
        let file: ClaimFile = read(bytes, |file: &ClaimFile| file.version)?;
        match (ProjectId::parse(&file.project), Host::parse(&file.host)) {
            (Ok(project), Ok(host)) => Ok(Self {
                host,
                project,
                quarantine: file.quarantine,
                handovers: file.handovers,
            }),
            _ => Err(InvalidRecord::Other(file.host)),
        }
    }
}

/// Reads a file with a `version`. A newer one may have members that this program does not know.
fn read<'b, T: Deserialize<'b>>(
    bytes: &'b [u8],
    version: impl Fn(&T) -> u32,
) -> Result<T, InvalidRecord> {
    match serde_json::from_slice::<T>(bytes) {
        Ok(file) if version(&file) <= VERSION => Ok(file),
        Ok(file) => Err(InvalidRecord::Newer(version(&file).into())),
        Err(error) => Err(match newer_than(VERSION.into(), bytes) {
            Some(version) => InvalidRecord::Newer(version),
            None => InvalidRecord::Json(error),
        }),
    }
}
