//! The calls that are in progress, by owner: the calls of one owner must not use all places.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many calls each owner has in progress.
#[derive(Debug)]
pub(super) struct Calls {
    max: usize,
    counts: Mutex<HashMap<Box<str>, usize>>,
}

/// A call in progress, until it is dropped.
#[derive(Debug)]
pub(super) struct Call<'c> {
    calls: &'c Calls,
    owner: Box<str>,
}

// === impl Calls ===

impl Calls {
    /// Makes it for at most `max` calls of each owner.
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            counts: Mutex::default(),
        }
    }

    /// Begins a call, unless the owner has too many.
    pub(super) fn begin(&self, owner: &str) -> Option<Call<'_>> {
        let mut counts = self.counts();
        let count = counts.entry(owner.into()).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Call {
            calls: self,
            owner: owner.into(),
        })
    }

    /// Each change leaves a valid table, so a panic under the lock does no harm.
    fn counts(&self) -> MutexGuard<'_, HashMap<Box<str>, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Call ===

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut counts = self.calls.counts();
        if let Some(count) = counts.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_has_a_share_and_others_keep_theirs() {
        let calls = Calls::new(2);
        let first = calls.begin("acme").unwrap();
        let _second = calls.begin("acme").unwrap();
        assert!(calls.begin("acme").is_none());
        assert!(calls.begin("other").is_some());
        drop(first);
        assert!(calls.begin("acme").is_some());
        assert_eq!(calls.counts().len(), 1);
    }
}
