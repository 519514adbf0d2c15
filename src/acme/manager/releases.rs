//! Releases: revokes certificates of names that no site has any more, and removes their records.

use std::sync::Arc;

use super::{Done, Manager};
use crate::acme::failure::{Cause, Failure};
use crate::acme::released;
use crate::acme::schedule::wait_after;
use crate::telemetry::panics;

// === impl Manager ===

impl Manager {
    /// Begins to revoke certificates of names that no site has any more.
    pub(super) fn begin_releases(&mut self, now: u64) {
        while let Some(name) = self.state.released.take(now) {
            let (shared, authorities) = (Arc::clone(&self.shared), Arc::clone(&self.authorities));
            self.running.spawn(async move {
                let revoking = released::revoke(&shared, &authorities, &name);
                let outcome = panics::caught(revoking)
                    .await
                    .unwrap_or_else(|_panic| Err(Failure::new(Cause::Authority, "a panic")));
                Done::Release(name, outcome)
            });
        }
    }

    /// Removes the records of a name whose certificates were revoked.
    pub(super) fn released(&mut self, name: &str, outcome: Result<(), Failure>, now: u64) {
        let result = match &outcome {
            Ok(()) => "revoked",
            Err(failure) if failure.is_passing() => "failed",
            Err(_) => "refused",
        };
        self.metrics.released.with_label_values(&[result]).inc();
        match outcome {
            Ok(()) => {
                log::info!(target: "acme", name; "no site has {name} any more: its certificate was revoked and its key is removed");
            }
            Err(failure) if failure.is_passing() => {
                log::warn!(target: "acme", name; "no site has {name} any more, and its certificate could not be revoked; this is tried again: {failure}");
                let retries = &self.shared.config.retries;
                let wait = |failures| wait_after(failures, retries).as_secs();
                return self.state.released.failed(name, now, wait);
            }
            Err(failure) => {
                log::warn!(target: "acme", name; "no site has {name} any more, and its certificate cannot be revoked; its key is removed: {failure}");
            }
        }
        self.state.released.done(name);
        self.remove_records(name, 0);
        self.shared.forget(name);
    }
}
