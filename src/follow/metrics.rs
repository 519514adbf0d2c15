//! The metrics of nodes that edges follow. Those of an edge are in [`Status`](super::Status).

use prometheus::{IntCounterVec, IntGauge, IntGaugeVec, Opts};

use crate::telemetry::Metrics;

/// The metrics of a source: a node that edges follow.
#[derive(Debug)]
pub struct SourceMetrics {
    /// Responses, by what was asked for and status.
    pub(super) requests: IntCounterVec,
    /// The length of the last snapshot, by ring.
    pub(super) snapshot_bytes: IntGaugeVec,
    pub(super) fleet: FleetMetrics,
}

/// The metrics of the edges of a source.
#[derive(Debug)]
pub(super) struct FleetMetrics {
    pub(super) following: IntGauge,
    pub(super) lag: IntGaugeVec,
    pub(super) skew: IntGauge,
    pub(super) versions: IntGauge,
    pub(super) frozen: IntGauge,
    pub(super) held: IntGaugeVec,
}

/// The metrics of an edge that other edges follow.
#[derive(Debug)]
pub struct RelayMetrics {
    /// Requests, by what was asked for and status.
    pub(super) requests: IntCounterVec,
}

// === impl SourceMetrics ===

impl SourceMetrics {
    /// Registers them.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Self {
        let requests = Opts::new(
            "follow_source_requests_total",
            "Responses to edges that follow this node, by what they asked for and status.",
        );
        let snapshot_bytes = Opts::new(
            "follow_source_snapshot_bytes",
            "The length of the last list of all sites that was made for a ring, without compression, in bytes.",
        );
        Self {
            requests: metrics.register(IntCounterVec::new(requests, &["kind", "status"])),
            snapshot_bytes: metrics.register(IntGaugeVec::new(snapshot_bytes, &["ring"])),
            fleet: FleetMetrics::new(metrics),
        }
    }
}

// === impl FleetMetrics ===

impl FleetMetrics {
    fn new(metrics: &Metrics) -> Self {
        let one = |name, help| metrics.register(IntGauge::new(name, help));
        let of_each =
            |name, help, label| metrics.register(IntGaugeVec::new(Opts::new(name, help), &[label]));
        Self {
            following: one(
                "follow_source_edges",
                "How many edges have asked for changes in the last 90 seconds.",
            ),
            lag: of_each(
                "follow_source_lag_revisions",
                "How many changes each edge is behind its ring.",
                "edge",
            ),
            skew: one(
                "follow_source_skew_revisions",
                "How many changes the edge that is furthest behind is behind its ring.",
            ),
            versions: one(
                "follow_source_versions",
                "How many versions of the program the edges that follow have.",
            ),
            frozen: one(
                "follow_source_frozen",
                "Whether an operator has frozen this node, so that edges get no changes (1) or not (0).",
            ),
            held: of_each(
                "follow_source_waiting_projects",
                "How many projects have a change that waits for a ring.",
                "ring",
            ),
        }
    }
}

// === impl RelayMetrics ===

impl RelayMetrics {
    /// Registers them.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Self {
        let requests = Opts::new(
            "follow_passed_requests_total",
            "Requests of edges that follow this edge, by what they asked for and status.",
        );
        Self {
            requests: metrics.register(IntCounterVec::new(requests, &["kind", "status"])),
        }
    }
}
