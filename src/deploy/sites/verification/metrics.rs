//! Metrics of the proof of ownership.

use prometheus::{IntCounterVec, IntGauge, IntGaugeVec, Opts};

use crate::store::OwnershipState;
use crate::telemetry;

/// The results of a check.
pub(super) const RESULTS: [&str; 6] = [
    "proven",
    "unproven",
    "unanswered",
    "held",
    "removed",
    "failed",
];

/// Metrics of the proof of ownership. Names of hosts are never labels.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Domains by state.
    pub(super) domains: IntGaugeVec,
    /// Checks by result.
    pub(super) checks: IntCounterVec,
    /// Changes of state, by the new state.
    pub(super) changes: IntCounterVec,
    /// Domains that are due.
    pub(super) due: IntGauge,
    /// Whether this process checks domains.
    pub(super) leader: IntGauge,
}

impl Metrics {
    /// Registers everything, at zero.
    #[must_use]
    pub fn new(metrics: &telemetry::Metrics) -> Self {
        let domains = Opts::new(
            "domains",
            "Domains of sites that are kept in the store, by the state of their ownership, in the process that checks them.",
        );
        let checks = Opts::new(
            "domain_checks_total",
            "Checks of the ownership of a domain with DNS, by result: proven, unproven, unanswered (the name servers do not say), held (proven, but another owner has the host or the name above it), gone (the site does not have it any more), failed (this machine has a problem).",
        );
        let changes = Opts::new(
            "domain_state_changes_total",
            "Changes of the state of a domain, by the new state.",
        );
        let gauge = |name, help| metrics.register(IntGauge::new(name, help));
        let registered = Self {
            domains: metrics.register(IntGaugeVec::new(domains, &["state"])),
            checks: metrics.register(IntCounterVec::new(checks, &["result"])),
            changes: metrics.register(IntCounterVec::new(changes, &["state"])),
            due: gauge(
                "domain_checks_due",
                "Domains whose next check is due and has not begun.",
            ),
            leader: gauge(
                "domain_checks_leader",
                "Whether this process checks the domains of the store.",
            ),
        };
        for result in RESULTS {
            registered.checks.with_label_values(&[result]);
        }
        for state in OwnershipState::ALL {
            registered.domains.with_label_values(&[state.as_str()]);
            registered.changes.with_label_values(&[state.as_str()]);
        }
        registered
    }
}
