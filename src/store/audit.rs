//! The audit log: one entry for each change of a site record, and of the state of a domain.
//!
//! An entry is written together with its change, in the same step, so there is no change without
//! an entry and no entry without its change. Entries are never changed. When the log has more bytes
//! than the configuration allows, the owners with the most bytes lose their oldest entries.

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
    /// After reading about so many bytes, the rest is for another call; 0 for any. A database reads
    /// only the entries that it lists.
    pub bytes_max: u64,
}

/// Listed entries, the newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The entries.
    pub entries: Vec<Entry>,
    /// Entries before this number were not looked at, because [`Filter::bytes_max`] was reached.
    pub before: Option<u64>,
}

/// Returns how many bytes each owner may keep, so that all together keep at most `keep`. An owner with
/// fewer bytes leaves the rest of its share to the others.
pub(super) fn share_of(bytes: impl Iterator<Item = u64>, keep: u64) -> u64 {
    let mut bytes: Vec<u64> = bytes.collect();
    bytes.sort_unstable();
    let (mut keep, mut owners) = (keep, bytes.len() as u64);
    for bytes in bytes {
        let share = keep / owners;
        if bytes > share {
            return share;
        }
        keep -= bytes;
        owners -= 1;
    }
    u64::MAX
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_with_little_keep_it_and_the_others_share_the_rest() {
        let share = |bytes: &[u64], keep| share_of(bytes.iter().copied(), keep);
        assert_eq!(share(&[1000, 10, 20], 100), 70);
        assert_eq!(share(&[1000, 500, 20], 100), 40);
        assert_eq!(share(&[30, 30, 30], 60), 20);
        assert_eq!(share(&[30, 30], 60), u64::MAX);
        assert_eq!(share(&[], 60), u64::MAX);
    }
}
