//! What an edge reports about itself: metrics, and a part of the readiness body.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus::{Gauge, IntCounter, IntCounterVec, IntGauge, Opts};
use serde_json::{Value, json};

use super::client::FollowError;
use crate::clock::Clock;
use crate::error::chain;
use crate::telemetry::{Metrics, Part};

/// The state of an edge.
#[derive(Debug)]
pub struct Status {
    url: String,
    clock: Clock,
    part: Part,
    /// Whether the cache has what the source had at some time.
    is_filled: AtomicBool,
    values: Mutex<StatusValues>,
    revision: IntGauge,
    lag: IntGauge,
    contact: Gauge,
    waiting: IntGauge,
    refused: IntGauge,
    cache_bytes: IntGauge,
    pub(super) fetched_bytes: IntCounter,
    pub(super) comparisons: IntCounter,
    counts: IntGauge,
    failures: IntCounterVec,
}

/// The reasons that an alert counts: the source has answered, and the edge cannot use the answer.
const REFUSALS: [&str; 8] = [
    "signature",
    "older",
    "behind",
    "service",
    "message",
    "digest",
    "other_store",
    "removals",
];

#[derive(Clone, Debug, Default)]
struct StatusValues {
    identity: String,
    revision: u64,
    latest: u64,
    contact: Option<u64>,
    waiting: usize,
    cause: Option<String>,
}

impl Status {
    /// Makes it. `part` shows why the edge does not follow.
    #[must_use]
    pub fn new(url: &str, metrics: &Metrics, part: Part) -> Self {
        let gauge = |name, help| metrics.register(IntGauge::new(name, help));
        let counter = |name, help| metrics.register(IntCounter::new(name, help));
        let failures = Opts::new(
            "follow_failures_total",
            "Failed attempts to follow the source or to fetch a release, by reason.",
        );
        let failures = metrics.register(IntCounterVec::new(failures, &["reason"]));
        // An alert sees an increase only of a series that has begun.
        for reason in REFUSALS {
            failures.with_label_values(&[reason]);
        }
        Self {
            url: url.to_owned(),
            clock: Clock::System,
            part,
            is_filled: AtomicBool::new(false),
            values: Mutex::default(),
            revision: gauge(
                "follow_revision",
                "The revision of the source up to which this edge has everything.",
            ),
            lag: gauge(
                "follow_lag_revisions",
                "How many revisions this edge is behind the newest revision that the source has reported.",
            ),
            contact: metrics.register(Gauge::new(
                "follow_contact_timestamp_seconds",
                "When the source has last sent a valid message; 0 before the first time.",
            )),
            waiting: gauge(
                "follow_waiting_releases",
                "How many releases could not be fetched or stored, and are tried again.",
            ),
            refused: gauge(
                "follow_refused_records",
                "How many site records of the source cannot be served here, so that the records of \
                 before stay.",
            ),
            cache_bytes: gauge(
                "follow_cache_bytes",
                "How many bytes of files the cache has.",
            ),
            fetched_bytes: counter(
                "follow_fetched_bytes_total",
                "Bytes of releases, changes and snapshots that were fetched from the source.",
            ),
            comparisons: counter(
                "follow_comparisons_total",
                "How often everything was compared with a snapshot of the source.",
            ),
            counts: gauge(
                "follow_numbers_waiting_bytes",
                "How many bytes of counts for the owners of sites wait because the source does not \
                 take them.",
            ),
            failures,
        }
    }

    /// Returns whether the cache has what the source had at some time. Before that, an edge has
    /// nothing to serve and is not ready.
    #[must_use]
    pub fn is_filled(&self) -> bool {
        self.is_filled.load(Ordering::Acquire)
    }

    /// Returns the part of the readiness body.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let values = self.values().clone();
        let now = self.clock.unix_seconds();
        json!({
            "source": self.url,
            "identity": values.identity,
            "revision": values.revision,
            "lag": values.latest.saturating_sub(values.revision),
            "age_seconds": values.contact.map(|contact| now.saturating_sub(contact)),
            "waiting_releases": values.waiting,
            "cause": values.cause,
        })
    }

    pub(super) fn now(&self) -> u64 {
        self.clock.unix_seconds()
    }

    pub(super) fn filled(&self) {
        self.is_filled.store(true, Ordering::Release);
    }

    /// Records a contact at this time, in seconds after the Unix epoch.
    pub(super) fn contacted(&self, at: u64) {
        self.values().contact = Some(at);
        // Seconds since 1970 are exact in a float.
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        self.contact.set(at as f64);
    }

    pub(super) fn at(&self, identity: &str, revision: u64, latest: u64) {
        let mut values = self.values();
        if values.identity != identity {
            identity.clone_into(&mut values.identity);
        }
        values.revision = revision;
        values.latest = latest.max(revision);
        let gauge = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        self.revision.set(gauge(revision));
        self.lag.set(gauge(values.latest - revision));
    }

    pub(super) fn refused_are(&self, count: usize) {
        self.refused.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub(super) fn cache_has(&self, bytes: u64) {
        self.cache_bytes
            .set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Shows how many bytes of counts wait for the source.
    pub(super) fn counts_wait(&self, bytes: u64) {
        self.counts.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Counts a failure and returns its sentence.
    pub(super) fn count(&self, error: &FollowError) -> String {
        self.failures.with_label_values(&[error.reason()]).inc();
        chain(error)
    }

    /// Reports why the edge does not follow, or that it does.
    pub(super) fn report(&self, waiting: usize, cause: Option<String>) {
        self.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
        match &cause {
            Some(cause) => self.part.fail(cause),
            None => self.part.recover(),
        }
        let mut values = self.values();
        values.waiting = waiting;
        values.cause = cause;
    }

    fn values(&self) -> MutexGuard<'_, StatusValues> {
        // Every change is an assignment, so the value is whole after a panic too.
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
