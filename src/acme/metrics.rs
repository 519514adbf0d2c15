//! Metrics of certificates by ACME.

use prometheus::{Gauge, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts};

use crate::telemetry;

/// The days by which certificates are counted.
pub(super) const DAYS: [u64; 6] = [0, 1, 3, 7, 14, 30];

/// Metrics of certificates by ACME. Names of hosts are never labels.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Names with a certificate.
    pub held: IntGauge,
    /// Names with a certificate that has at most so many days left.
    pub days_left: IntGaugeVec,
    /// Names whose certificate should have been replaced.
    pub late: IntGauge,
    /// When the first certificate of a name that needs one expires; 0 without any.
    pub expires_at: Gauge,
    /// Orders by result.
    pub orders: IntCounterVec,
    /// Names whose order is due and has not begun.
    pub queue: IntGauge,
    /// Names whose last order failed.
    pub failing: IntGauge,
    /// Names that need a certificate and have none.
    pub missing: IntGauge,
    /// Orders that may begin now.
    pub budget: IntGauge,
    /// Whether this process is the leader.
    pub leader: IntGauge,
    /// Questions for the suggested time of a renewal, by result.
    pub renewal_info: IntCounterVec,
    /// Certificates of names that no site has any more, by result.
    pub released: IntCounterVec,
    /// Records that cannot be used.
    pub unusable: IntCounter,
}

// === impl Metrics ===

impl Metrics {
    /// Registers everything, at zero.
    #[must_use]
    pub fn new(metrics: &telemetry::Metrics) -> Self {
        let gauge = |name, help| metrics.register(IntGauge::new(name, help));
        let by = |name: &str, help: &str, label| {
            metrics.register(IntCounterVec::new(Opts::new(name, help), &[label]))
        };
        let days_left = IntGaugeVec::new(
            Opts::new(
                "acme_certificates_by_days_left",
                "Names with a certificate by ACME that has at most so many days left, and that is still wanted.",
            ),
            &["days"],
        );
        Self {
            held: gauge(
                "acme_certificates",
                "Names with a certificate by ACME that this process serves.",
            ),
            days_left: metrics.register(days_left),
            late: gauge(
                "acme_certificates_late",
                "Wanted names whose certificate by ACME was not replaced in time: less than a tenth of its life is left, and less than seven days. 0 in processes that do not lead.",
            ),
            expires_at: metrics.register(Gauge::new(
                "acme_certificate_expires_timestamp_seconds",
                "When the first certificate by ACME of a wanted name expires, in seconds since 1970. 0 without any, and in processes that do not lead.",
            )),
            orders: by(
                "acme_orders_total",
                "Orders of certificates, by result: issued, name (the name is not valid at the authority), limited (a limit of the authority), authority (it does not work), ourselves (this machine).",
                "result",
            ),
            queue: gauge(
                "acme_queue",
                "Names whose order is due and has not begun. 0 in processes that do not lead.",
            ),
            failing: gauge(
                "acme_names_failing",
                "Wanted names whose last order failed. 0 in processes that do not lead.",
            ),
            missing: gauge(
                "acme_names_without_certificate",
                "Wanted names that have no certificate yet. 0 in processes that do not lead.",
            ),
            budget: gauge(
                "acme_orders_left",
                "New orders that the first authority accepts now, by acme.orders_max.",
            ),
            leader: gauge(
                "acme_leader",
                "1 if this process orders certificates, 0 if another one does.",
            ),
            renewal_info: by(
                "acme_renewal_info_total",
                "Questions to authorities for the suggested time of a renewal, by result: answered, failed.",
                "result",
            ),
            released: by(
                "acme_releases_total",
                "Certificates of names that no site has any more, by result: revoked, refused (the authority does not revoke it, its key was removed), failed (it is tried again).",
                "result",
            ),
            unusable: metrics.register(IntCounter::new(
                "acme_records_unusable_total",
                "Records of certificates that could not be used. The previous certificate stays in use.",
            )),
        }
    }
}
