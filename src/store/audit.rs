//! The audit log: one entry for each change of a site record, and of the state of a domain.
//!
//! An entry is written together with its change, in the same step, so there is no change without
//! an entry and no entry without its change. Entries are never changed. The oldest ones are removed
//! when the log has more bytes than the configuration allows.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One change of a site record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number: each entry has a greater one than the entries before it. 0 before it is stored.
    pub id: u64,
    /// When it was made, in milliseconds after the Unix epoch.
    pub at: u64,
    /// Who made it.
    pub who: Who,
    /// The action: `site.create`, `site.replace`, `site.patch`, `site.delete`, `domain.add`,
    /// `domain.remove`; of the verification of domains `domain.verified`, `domain.active`,
    /// `domain.dangling`, `domain.quarantined`.
    pub what: Box<str>,
    /// The project of the site.
    pub project: Box<str>,
    /// The owner of the site: after the change, or before it if the site was removed.
    pub owner: Box<str>,
    /// The host, if the change is of one domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Box<str>>,
    /// The record before the change; `None` if there was none. If the state of a domain was
    /// changed, `ownership` has the state.
    pub before: Option<Map<String, Value>>,
    /// The record after it; `None` if it was removed.
    pub after: Option<Map<String, Value>>,
}

/// Who made a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// The id of the admin key, if it came through the API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Box<str>>,
    /// The address of the client, if it came through the API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Box<str>>,
    /// The user of the machine, if it came from the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Box<str>>,
}

/// Which entries are listed, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those of this project.
    pub project: Option<Box<str>>,
    /// Only those of this owner.
    pub owner: Option<Box<str>>,
    /// Only those of these projects.
    pub projects: Option<Vec<Box<str>>>,
    /// Only those with a smaller number.
    pub before: Option<u64>,
    /// At most so many.
    pub limit: usize,
}

// === impl Filter ===

impl Filter {
    /// Returns whether an entry is listed, apart from the limit.
    #[must_use]
    pub fn matches(&self, entry: &Entry) -> bool {
        self.before.is_none_or(|before| entry.id < before)
            && self.project.as_ref().is_none_or(|p| *p == entry.project)
            && self.owner.as_ref().is_none_or(|o| *o == entry.owner)
            && self
                .projects
                .as_ref()
                .is_none_or(|projects| projects.contains(&entry.project))
    }
}
