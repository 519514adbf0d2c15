//! Which changes of a shared store the content of a node or of an edge has.
//!
//! Each gateway of such a store has lives of its own, whose revisions cannot be compared with those
//! of another gateway. The revisions of the store itself can: an edge that is pointed at another
//! gateway refuses it as long as the gateway may not have everything that the edge has.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

/// Between which revisions of a store some content is.
///
/// A node reads files while they change, so it knows only two bounds of its revision. A comparison
/// uses the upper bound of the edge and the lower bound of the node: so the edge never goes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoreRevision {
    /// The store and the history of its database: `store/server`.
    pub(super) id: String,
    /// The content has all changes up to this one.
    pub(super) revision: u64,
    /// The content has no change after this one.
    pub(super) newest: u64,
}

/// The revision of the content that a node serves, for all its rings.
#[derive(Debug, Default)]
pub(super) struct ServedRevision(Mutex<Option<StoreRevision>>);

// === impl StoreRevision ===

impl StoreRevision {
    /// Returns whether this content may lack something that `other` has, in the same history.
    pub(super) fn may_lack(&self, other: &Self) -> bool {
        self.id == other.id && self.revision < other.newest
    }

    /// Returns whether both are of the same store, and its database has another history.
    pub(super) fn has_other_history(&self, other: &Self) -> bool {
        self.id != other.id && store_of(&self.id) == store_of(&other.id)
    }
}

/// Returns the store of an identity.
pub(super) fn store_of(id: &str) -> &str {
    id.split('/').next().unwrap_or_default()
}

// === impl ServedRevision ===

impl ServedRevision {
    /// Returns it; `None` if the node has no shared store.
    pub(super) fn get(&self) -> Option<StoreRevision> {
        self.lock().clone()
    }

    /// Returns the revision of content that was read after `before` was returned.
    pub(super) fn since(&self, before: Option<StoreRevision>) -> Option<StoreRevision> {
        let now = self.get()?;
        let revision = match before {
            Some(before) if before.id == now.id => before.revision,
            // It changed meanwhile: nothing is certain.
            _ => 0,
        };
        Some(StoreRevision { revision, ..now })
    }

    /// Says that changes up to `newest` may be in the content from now on.
    pub(super) fn begins(&self, id: &str, newest: u64) {
        let mut known = self.lock();
        let revision = match &*known {
            Some(known) if known.id == id => known.revision.min(newest),
            _ => 0,
        };
        *known = Some(StoreRevision {
            id: id.to_owned(),
            revision,
            newest,
        });
    }

    /// Says that all changes up to `revision` are in the content.
    pub(super) fn has(&self, id: &str, revision: u64) {
        if let Some(known) = &mut *self.lock()
            && known.id == id
        {
            known.revision = revision.min(known.newest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<StoreRevision>> {
        // Every change is an assignment, so the value is whole after a panic too.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(id: &str, revision: u64, newest: u64) -> StoreRevision {
        StoreRevision {
            id: id.to_owned(),
            revision,
            newest,
        }
    }

    #[test]
    fn only_content_that_certainly_has_everything_lacks_nothing() {
        let edge = at("a/1", 5, 7);
        assert!(at("a/1", 6, 9).may_lack(&edge));
        assert!(!at("a/1", 7, 7).may_lack(&edge));
        // Revisions of two histories, or of two stores, cannot be compared.
        let (failed_over, other) = (at("a/2", 1, 1), at("b/1", 1, 1));
        assert!(!failed_over.may_lack(&edge) && !other.may_lack(&edge));
        assert!(failed_over.has_other_history(&edge) && !other.has_other_history(&edge));
        assert!(!edge.has_other_history(&edge));
    }

    #[test]
    fn content_that_was_read_while_it_changed_has_both_bounds() {
        let served = ServedRevision::default();
        assert_eq!(served.since(None), None);
        served.begins("a/1", 4);
        assert_eq!(served.get(), Some(at("a/1", 0, 4)));
        served.has("a/1", 4);
        let before = served.get();
        served.begins("a/1", 6);
        served.has("a/1", 6);
        assert_eq!(served.since(before.clone()), Some(at("a/1", 4, 6)));
        // The database has another history now, in which less has happened.
        served.begins("a/2", 3);
        served.has("a/1", 6);
        assert_eq!(served.since(before), Some(at("a/2", 0, 3)));
        served.has("a/2", 3);
        assert_eq!(served.get(), Some(at("a/2", 3, 3)));
        // The same history has gone back: nothing is there that is not.
        served.begins("a/2", 2);
        assert_eq!(served.get(), Some(at("a/2", 2, 2)));
    }
}
