//! Pointers: the current release of a project, and the earlier ones.
//!
//! Replacing a pointer is what publishes a release. Its file is JSON with a `version`, as an
//! inventory is, and a version that is newer than this program is rejected.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::release::ReleaseId;
use crate::site::ProjectId;
use crate::version::newer_than;

/// The version of the pointer's format that is written, and the highest that is read.
pub(super) const VERSION: u32 = 1;

/// The order of promotions: the greater fence is the newer one. Clocks play no role.
///
/// The generation numbers the updates of a project, the epoch the claims of them: a worker that
/// lost its lease has an older epoch than the worker after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fence {
    /// The number of the update among the updates of the project.
    pub generation: u64,
    /// The number of the claim; 0 for a release that was published by hand.
    pub epoch: u64,
}

/// One release that was made the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promotion {
    /// The release.
    pub release: ReleaseId,
    /// The generation of its fence.
    pub generation: u64,
    /// The epoch of its fence.
    pub epoch: u64,
    /// When it was promoted, in seconds after the Unix epoch.
    pub promoted_at: u64,
}

/// The current release of a project, and the ones before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// The release that is served.
    pub current: Promotion,
    /// Earlier releases, the latest first, each once.
    pub history: Vec<Promotion>,
}

/// The content of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    version: u32,
    /// On a file system that ignores case, two projects might have one file.
    project: String,
    current: Promotion,
    history: Vec<Promotion>,
}

/// Why bytes are not the pointer of a project.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPointer {
    /// Written by a newer program.
    #[error("pointer has version {0}; this program reads versions up to {VERSION}")]
    Newer(u64),
    /// The file belongs to another project.
    #[error("pointer is of project {0:?}")]
    Project(String),
    /// The file is not a pointer.
    #[error("pointer is not valid")]
    Json(#[from] serde_json::Error),
}

// === impl Fence ===

impl Fence {
    /// Returns the first fence of the next generation after both `self` and `at_least`.
    #[must_use]
    pub(super) fn next(current: Option<Self>, at_least: u64) -> Self {
        let reached = current.map_or(0, |fence| fence.generation);
        Self {
            generation: reached.max(at_least).saturating_add(1),
            epoch: 0,
        }
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `pad` applies a width, for columns.
        f.pad(&format!("{}.{}", self.generation, self.epoch))
    }
}

// === impl Promotion ===

impl Promotion {
    /// Returns the fence.
    #[must_use]
    pub fn fence(&self) -> Fence {
        Fence {
            generation: self.generation,
            epoch: self.epoch,
        }
    }
}

// === impl Pointer ===

impl Pointer {
    /// Returns the pointer after one more promotion. `keep` earlier releases stay.
    pub(super) fn promoted(before: Option<Self>, current: Promotion, keep: usize) -> Self {
        let earlier = before
            .into_iter()
            .flat_map(|before| std::iter::once(before.current).chain(before.history));
        let history = earlier
            .filter(|earlier| earlier.release != current.release)
            .take(keep)
            .collect();
        Self { current, history }
    }

    /// Returns the current promotion and those before it, the latest first.
    pub fn promotions(&self) -> impl Iterator<Item = &Promotion> {
        std::iter::once(&self.current).chain(&self.history)
    }

    /// Returns whether a release is the current one or in the history.
    #[must_use]
    pub fn names(&self, release: ReleaseId) -> bool {
        self.promotions().any(|kept| kept.release == release)
    }

    /// Returns the bytes of the file of a project's pointer.
    #[must_use]
    pub fn to_bytes(&self, project: &ProjectId) -> Vec<u8> {
        let record = Record {
            version: VERSION,
            project: project.to_string(),
            current: self.current,
            history: self.history.clone(),
        };
        serde_json::to_vec(&record).expect("numbers and texts are JSON")
    }

    /// Reads the bytes of the file of a project's pointer.
    ///
    /// # Errors
    ///
    /// [`InvalidPointer`].
    pub fn parse(bytes: &[u8], project: &ProjectId) -> Result<Self, InvalidPointer> {
        let record = match serde_json::from_slice::<Record>(bytes) {
            Ok(record) if record.version <= VERSION => record,
            Ok(record) => return Err(InvalidPointer::Newer(record.version.into())),
            Err(error) => {
                return Err(match newer_than(VERSION.into(), bytes) {
                    Some(version) => InvalidPointer::Newer(version),
                    None => InvalidPointer::Json(error),
                });
            }
        };
        if record.project != project.as_str() {
            return Err(InvalidPointer::Project(record.project));
        }
        Ok(Self {
            current: record.current,
            history: record.history,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    fn release(name: &str) -> ReleaseId {
        ReleaseId::of(Digest::of(name.as_bytes()))
    }

    fn promotion(name: &str, generation: u64) -> Promotion {
        Promotion {
            release: release(name),
            generation,
            epoch: 7,
            promoted_at: 1_700_000_000,
        }
    }

    fn project() -> ProjectId {
        ProjectId::parse("acme").unwrap()
    }

    #[test]
    fn the_next_fence_is_after_the_current_one_and_after_the_least() {
        let current = promotion("a", 3).fence();
        for (current, at_least, generation) in [
            (None, 0, 1),
            (None, 5, 6),
            (Some(current), 1, 4),
            (Some(current), 9, 10),
            (Some(current), u64::MAX, u64::MAX),
        ] {
            let next = Fence::next(current, at_least);
            assert_eq!((next.generation, next.epoch), (generation, 0));
        }
        assert_eq!(format!("{current:>6}|"), "   3.7|");
        assert!(current < Fence::next(Some(current), 0));
    }

    #[test]
    fn the_history_has_each_earlier_release_once_and_the_latest_first() {
        let mut pointer = None;
        for (name, generation) in [("a", 1), ("b", 2), ("c", 3), ("a", 4), ("d", 5)] {
            pointer = Some(Pointer::promoted(pointer, promotion(name, generation), 3));
        }
        let pointer = pointer.unwrap();
        let releases: Vec<_> = pointer.promotions().map(|kept| kept.release).collect();
        assert_eq!(releases, ["d", "a", "c", "b"].map(release));
        assert!(pointer.names(release("d")) && pointer.names(release("b")));
        assert!(!pointer.names(release("e")));
        let shorter = Pointer::promoted(Some(pointer), promotion("e", 6), 1);
        assert_eq!(shorter.history, [promotion("d", 5)]);
    }

    #[test]
    fn a_pointer_is_read_as_it_was_written_for_its_project_only() {
        let first = Pointer::promoted(None, promotion("a", 1), 3);
        let pointer = Pointer::promoted(Some(first), promotion("b", 2), 3);
        let bytes = pointer.to_bytes(&project());
        assert_eq!(Pointer::parse(&bytes, &project()).unwrap(), pointer);
        let other = ProjectId::parse("other").unwrap();
        let error = Pointer::parse(&bytes, &other).unwrap_err();
        assert!(matches!(error, InvalidPointer::Project(found) if found == "acme"));
    }

    #[test]
    fn a_pointer_of_a_newer_program_is_named_as_such() {
        let bytes = Pointer::promoted(None, promotion("a", 1), 0).to_bytes(&project());
        let mut record: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        record["version"] = (VERSION + 1).into();
        let same_fields = serde_json::to_vec(&record).unwrap();
        for bytes in [&same_fields[..], br#"{"version": 2, "new": true}"#] {
            let error = Pointer::parse(bytes, &project()).unwrap_err();
            assert!(matches!(error, InvalidPointer::Newer(2)), "{error}");
        }
        for bytes in [&b"{}"[..], br#"{"version": 1}"#, b"pointer"] {
            let error = Pointer::parse(bytes, &project()).unwrap_err();
            assert!(matches!(error, InvalidPointer::Json(_)), "{error}");
        }
    }
}
