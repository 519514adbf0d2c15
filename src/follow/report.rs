//! The report that an edge sends with each request for changes: how well it serves.

use std::sync::Arc;
use std::time::Instant;

use crate::telemetry::Metrics;

/// How an edge is, since its process has started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Sites whose current release or record it could not fetch or cannot serve.
    pub(super) failing: u64,
    /// The revision up to which it has the releases of all sites.
    pub(super) complete: u64,
    /// How long its process has run, in milliseconds.
    pub(super) up: u64,
    /// Requests that it has answered.
    pub(super) requests: u64,
    /// Requests that it has answered with an error of its own.
    pub(super) errors: u64,
}

/// Makes reports.
#[derive(Debug)]
pub(super) struct Reporter {
    began: Instant,
    metrics: Arc<Metrics>,
}

impl Reporter {
    pub(super) fn new(metrics: &Arc<Metrics>) -> Self {
        Self {
            began: Instant::now(),
            metrics: Arc::clone(metrics),
        }
    }

    /// Makes a report. `waiting` releases could not be fetched, and `refused` records cannot be
    /// served.
    pub(super) fn report(&self, waiting: usize, refused: usize, complete: u64) -> Report {
        let (requests, errors) = self.metrics.answers();
        let failing = u64::try_from(self.metrics.index_failing.get()).unwrap_or(0);
        let rejected = u64::try_from(self.metrics.site_records_rejected.get()).unwrap_or(0);
        Report {
            failing: failing.max(waiting as u64) + rejected + refused as u64,
            complete,
            up: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            requests,
            errors,
        }
    }
}

impl Report {
    /// Returns the end of a query.
    pub(super) fn to_query(self) -> String {
        let Self {
            failing,
            complete,
            up,
            requests,
            errors,
        } = self;
        format!(
            "&failing={failing}&complete={complete}&up={up}&requests={requests}&errors={errors}"
        )
    }

    /// Reads the members of a query; a member that is missing or is no number is 0.
    pub(super) fn of(query: impl Fn(&str) -> Option<u64>) -> Self {
        let number = |name| query(name).unwrap_or(0);
        Self {
            failing: number("failing"),
            complete: number("complete"),
            up: number("up"),
            requests: number("requests"),
            errors: number("errors"),
        }
    }
}
