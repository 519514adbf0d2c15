//! Pointers: which release of a project is current, and which came before.
//!
//! A pointer is the one small record whose replacement is what "deployed" means. Its
//! file form is JSON with a `version`, like the inventory's, and refused likewise when
//! it is newer than this program.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::release::ReleaseId;
use crate::site::ProjectId;

/// The version of the pointer's format that is written, and the highest that is read.
pub(super) const VERSION: u32 = 1;

/// The order of promotions: of two, the greater is newer, whatever any clock says.
///
/// The generation counts what was asked for, the epoch who was given the work: a worker
/// that was thought dead and comes back carries an older epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fence {
    /// Counts the updates of a project.
    pub generation: u64,
    /// Counts the claims of one update.
    pub epoch: u64,
}

/// One release that was made the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promotion {
    /// What was promoted.
    pub release: ReleaseId,
    /// The generation of its fence.
    pub generation: u64,
    /// The epoch of its fence.
    pub epoch: u64,
    /// When, in seconds after the Unix epoch.
    pub promoted_at: u64,
}

/// What is current for a project, and what was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// The release that is served.
    pub current: Promotion,
    /// Other releases that are kept, the latest first, each once.
    pub history: Vec<Promotion>,
}

/// The file form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    version: u32,
    /// File systems that fold case would give two projects one file.
    project: String,
    current: Promotion,
    history: Vec<Promotion>,
}

/// Why bytes are not the pointer of a project.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidPointer {
    /// Written by a newer program.
    #[error("pointer has version {0}; this program reads versions up to {VERSION}")]
    Newer(u64),
    /// Another project's file.
    #[error("pointer is of project {0:?}")]
    Project(String),
    /// Not what we write.
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
        // `pad`, so that it can stand in a column.
        f.pad(&format!("{}.{}", self.generation, self.epoch))
    }
}

// === impl Promotion ===

impl Promotion {
    /// Returns its place in the order of promotions.
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
    /// Returns the pointer after one more promotion. Of the releases before, `keep` stay.
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

    /// Returns whether a release is current or kept.
    #[must_use]
    pub fn names(&self, release: ReleaseId) -> bool {
        self.promotions().any(|kept| kept.release == release)
    }

    pub(super) fn to_bytes(&self, project: &ProjectId) -> Vec<u8> {
        let record = Record {
            version: VERSION,
            project: project.to_string(),
            current: self.current,
            history: self.history.clone(),
        };
        serde_json::to_vec(&record).expect("numbers and texts are JSON")
    }

    pub(super) fn parse(bytes: &[u8], project: &ProjectId) -> Result<Self, InvalidPointer> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u64,
        }
        let record = match serde_json::from_slice::<Record>(bytes) {
            Ok(record) if record.version <= VERSION => record,
            Ok(record) => return Err(InvalidPointer::Newer(record.version.into())),
            Err(error) => {
                return Err(match serde_json::from_slice::<Versioned>(bytes) {
                    Ok(Versioned { version }) if version > u64::from(VERSION) => {
                        InvalidPointer::Newer(version)
                    }
                    _ => InvalidPointer::Json(error),
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
