//! The metric that shows which restrictions are in force.

use prometheus::{IntGaugeVec, Opts};

use super::InForce;
use crate::telemetry;

/// Which restrictions of the processes of builds are in force.
#[derive(Debug)]
pub struct Metrics {
    features: IntGaugeVec,
}

// === impl Metrics ===

impl Metrics {
    /// Registers the family.
    #[must_use]
    pub fn new(metrics: &telemetry::Metrics) -> Self {
        let features = Opts::new(
            "build_isolation",
            "Whether a restriction of the processes of builds is in force (1) or not (0), by feature.",
        );
        Self {
            features: metrics.register(IntGaugeVec::new(features, &["feature"])),
        }
    }

    /// Shows what a process has found to be in force.
    pub fn show(&self, in_force: InForce) {
        for (feature, is_in_force) in in_force.features() {
            let value = i64::from(is_in_force);
            self.features.with_label_values(&[feature]).set(value);
        }
    }
}
