//! Metrics, in the Prometheus text format.
//!
//! There is one [`Metrics`] for the process, which `cli` makes and passes on. Labels have a fixed
//! set of values, never hosts or projects: a million sites must not make a million series. The
//! series of the request path are looked up in advance, so counting a request is two atomic
//! additions.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::proto::MetricType;
use prometheus::{
    Encoder as _, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec,
    IntGauge, Opts, Registry, TextEncoder,
};

/// Status codes that are counted one by one; any other counts as `other`.
const STATUSES: [u16; 34] = [
    101, 200, 201, 202, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 408, 412,
    413, 414, 415, 417, 421, 422, 429, 431, 500, 501, 502, 503, 504, 505, 508,
];
/// The place of each status code in [`STATUSES`]; [`u8::MAX`] if it is not there.
static PLACES: [u8; 600] = places();
/// From 50 µs, which a response of the fast path takes, to the timeout of an upstream.
const DURATION_BUCKETS: [f64; 14] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0,
    30.0,
];

const fn places() -> [u8; 600] {
    let mut places = [u8::MAX; 600];
    let mut at = 0;
    while (at as usize) < STATUSES.len() {
        places[STATUSES[at as usize] as usize] = at;
        at += 1;
    }
    places
}

/// The waits of a request to an upstream, in order.
const WAITS: [&str; 3] = ["connect", "first_byte", "body"];

/// The part that responded to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The fast path.
    FastPath,
    /// The index, on the proxy path.
    Discovery,
    /// The admin API.
    Admin,
    /// The MCP server of a site, on the proxy path.
    Mcp,
    /// The origin of a site, embedded or the customer's.
    Origin,
    /// The answer to a certificate authority.
    Challenge,
    /// No route: the request was malformed, or for a host that no site has.
    Rejected,
}

/// A family of metrics: one name, with a series for each value of its labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// The quantity that it counts or measures.
    pub help: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// The names of its labels.
    pub labels: Vec<String>,
}

/// Every family of the process.
#[derive(Debug, Default)]
struct Families {
    registry: Registry,
    known: Mutex<Vec<Family>>,
}

/// All numbers of a process.
#[derive(Debug)]
pub struct Metrics {
    families: Families,
    requests: [[IntCounter; STATUSES.len() + 1]; Route::ALL.len()],
    durations: [Histogram; Route::ALL.len()],
    waits: [Histogram; WAITS.len()],
    ends: IntCounterVec,
    /// Client connections that are open.
    pub connections_open: IntGauge,
    /// Client connections accepted.
    pub connections: IntCounter,
    /// TLS handshakes that failed or took too long.
    pub tls_failures: IntCounter,
    /// HTTP/2 streams that were rejected before they became requests.
    pub stream_faults: IntCounter,
    /// Connections closed because nothing came in time.
    pub timeouts: IntCounter,
    /// Limits on client addresses that were exceeded: `connections`, `handshakes`, `requests`,
    /// `bytes`; and whether the limit was `enforced` or the `dry_run` only counted it.
    pub client_limits: IntCounterVec,
    /// Connections closed to protect the others: `address_connections`, `address_handshakes`,
    /// `idle_longest`, `memory`.
    pub connections_shed: IntCounterVec,
    /// The stage of memory pressure: 0, 1 or 2.
    pub memory_stage: IntGauge,
    /// Changes of the stage of memory pressure, by the new stage.
    pub memory_stages: IntCounterVec,
    /// Bytes that count against the bound on memory, at the last reading.
    pub memory_used: IntGauge,
    /// Panics.
    pub panics: IntCounter,
    /// Clients that were closed because they read a response too slowly: `stalled`, `slow`.
    pub slow_clients: IntCounterVec,
    /// Access log lines dropped because the disk was too slow.
    pub access_lines_dropped: IntCounter,
    /// Failures of upstreams, by what failed: `connect`, `timeout`, `protocol`.
    pub upstream_failures: IntCounterVec,
    /// Attempts at another connection or server: `made`, `over_budget`.
    pub upstream_retries: IntCounterVec,
    /// How often a server of a site was ejected.
    pub upstream_ejections: IntCounter,
    /// Servers that are ejected.
    pub upstream_ejected: IntGauge,
    /// Requests that wait for a place at a server.
    pub upstream_queued: IntGauge,
    /// Checks of servers that records of sites ask for, by outcome.
    pub upstream_checks: IntCounterVec,
    /// Servers that fail them now.
    pub upstream_checks_failing: IntGauge,
    /// Requests that got a copy of an earlier response.
    pub copies_served: IntCounter,
    /// Copies of responses: `stored`, `dropped`, `failed`, `evicted`, `forgotten`, `damaged`.
    pub copies: IntCounterVec,
    /// Copies that there are.
    pub copies_stored: IntGauge,
    /// Bytes that they use on the disk.
    pub copies_bytes: IntGauge,
    /// Connections that requests on the direct path have used: `opened`, `reused`.
    pub upstream_connections: IntCounterVec,
    /// Hosts that are served.
    pub index_hosts: IntGauge,
    /// Sites that are served.
    pub index_sites: IntGauge,
    /// Sites whose current release cannot be served.
    pub index_failing: IntGauge,
    /// Changes of the served sites: `swapped`, `failed`, `rejected`.
    pub index_swaps: IntCounterVec,
    /// When the index last agreed with store and site records, in seconds after the Unix epoch.
    pub index_fresh_at: Gauge,
    /// Site records that are not served as they are written.
    pub site_records_rejected: IntGauge,
    /// When the first certificate expires, in seconds after the Unix epoch; 0 without any.
    pub certificate_expires_at: Gauge,
    /// When the first certificate should have been replaced, in seconds after the Unix epoch; 0
    /// without any.
    pub certificate_late_at: Gauge,
    /// Certificate files that could not be used; the previous certificate stays in use.
    pub certificate_failures: IntCounter,
}

// === impl Route ===

impl Route {
    const ALL: [Self; 7] = [
        Self::FastPath,
        Self::Discovery,
        Self::Admin,
        Self::Mcp,
        Self::Origin,
        Self::Challenge,
        Self::Rejected,
    ];

    /// Returns the name in labels and log lines.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FastPath => "fast_path",
            Self::Discovery => "discovery",
            Self::Admin => "admin",
            Self::Mcp => "mcp",
            Self::Origin => "origin",
            Self::Challenge => "challenge",
            Self::Rejected => "rejected",
        }
    }
}

// === impl Metrics ===

impl Metrics {
    /// Registers everything, at zero.
    #[must_use]
    pub fn new() -> Self {
        let families = Families::default();
        let r = &families;
        let requests = r.register(IntCounterVec::new(
            opts(
                "gateway_requests_total",
                "Requests that got a response, by route and by status.",
            ),
            &["route", "status"],
        ));
        let options = HistogramOpts::new(
            "gateway_request_duration_seconds",
            "Time from a complete request head to the last byte of the response, by route.",
        )
        .buckets(DURATION_BUCKETS.to_vec());
        let durations = r.register(HistogramVec::new(options, &["route"]));
        let options = HistogramOpts::new(
            "gateway_upstream_wait_seconds",
            "Time that a request to the server of a site waited, by what it waited for: connect (a connection), first_byte (the head of the response), body (the rest of it, until the client had it).",
        )
        .buckets(DURATION_BUCKETS.to_vec());
        let waits = r.register(HistogramVec::new(options, &["for"]));
        let counter = |name, help| r.register(IntCounter::new(name, help));
        let gauge = |name, help| r.register(IntGauge::new(name, help));
        let time = |name, help| r.register(Gauge::new(name, help));
        let by = |name, help, label| r.register(IntCounterVec::new(opts(name, help), &[label]));
        let index_swaps = by(
            "index_swaps_total",
            "Changes of the served sites, by outcome: swapped, failed, rejected.",
            "outcome",
        );
        // An alert sees an increase only of a series that has begun.
        for outcome in ["swapped", "failed", "rejected"] {
            index_swaps.with_label_values(&[outcome]);
        }
        Self {
            requests: Route::ALL.map(|route| {
                std::array::from_fn(|at| {
                    let status = STATUSES.get(at).map_or("other".to_owned(), u16::to_string);
                    requests.with_label_values(&[route.as_str(), status.as_str()])
                })
            }),
            durations: Route::ALL.map(|route| durations.with_label_values(&[route.as_str()])),
            waits: WAITS.map(|wait| waits.with_label_values(&[wait])),
            ends: by(
                "gateway_requests_ended_total",
                "Requests that ended otherwise than with a complete response of the site, by the word that `ended` has in the access log.",
                "reason",
            ),
            connections_open: gauge(
                "gateway_connections_open",
                "Client connections that are open.",
            ),
            connections: counter("gateway_connections_total", "Client connections accepted."),
            tls_failures: counter(
                "gateway_tls_failures_total",
                "TLS handshakes that failed or timed out.",
            ),
            stream_faults: counter(
                "gateway_stream_faults_total",
                "HTTP/2 streams that were refused before they became requests.",
            ),
            timeouts: counter("gateway_timeouts_total", "Connections closed by a timeout."),
            client_limits: r.register(IntCounterVec::new(
                opts(
                    "gateway_client_limits_exceeded_total",
                    "How often a limit was exceeded: of a client address (connections, handshakes, requests, bytes, mcp, votes) or of a site (mcp_site). By whether the limit is enforced or in dry_run.",
                ),
                &["limit", "mode"],
            )),
            connections_shed: by(
                "gateway_connections_shed_total",
                "Connections closed to protect the others, by reason: address_connections, address_handshakes, idle_longest, memory, proxy_protocol.",
                "reason",
            ),
            memory_stage: gauge(
                "gateway_memory_stage",
                "Stage of memory pressure: 0 none, 1 no keep-alive, 2 new connections are refused.",
            ),
            memory_stages: by(
                "gateway_memory_stage_changes_total",
                "Changes of the stage of memory pressure, by the new stage.",
                "stage",
            ),
            memory_used: gauge(
                "gateway_memory_used_bytes",
                "Memory that counts against the bound, at the last reading. 0 without a bound.",
            ),
            panics: counter(
                "process_panics_total",
                "Panics. Each is logged with its backtrace.",
            ),
            slow_clients: by(
                "gateway_slow_clients_total",
                "Clients that were closed because they read a response too slowly: stalled (nothing for connections.write_seconds), slow (below connections.write_rate_min).",
                "reason",
            ),
            access_lines_dropped: counter(
                "gateway_access_lines_dropped_total",
                "Lines of the access log dropped because the disk was too slow.",
            ),
            upstream_failures: by(
                "gateway_upstream_failures_total",
                "Failures of the servers of sites, by kind: connect, timeout, tls, protocol, private (an address that is not allowed).",
                "kind",
            ),
            upstream_retries: by(
                "gateway_upstream_retries_total",
                "Attempts to reach the server of a site again, or another server of it, by outcome: made, over_budget (upstream.retry_percent).",
                "outcome",
            ),
            upstream_ejections: counter(
                "gateway_upstream_ejections_total",
                "How often a server of a site began a pause after failures in a row (upstream.eject_failures).",
            ),
            upstream_ejected: gauge(
                "gateway_upstream_ejected",
                "Servers of sites that pause now. /upstreams on the operator's listener names them.",
            ),
            upstream_queued: gauge(
                "gateway_upstream_queued",
                "Requests that wait now because a server of a site has upstream.requests_max requests.",
            ),
            upstream_checks: by(
                "gateway_upstream_checks_total",
                "Checks of servers that records of sites ask for (origin.check), by outcome: passed, failed.",
                "outcome",
            ),
            upstream_checks_failing: gauge(
                "gateway_upstream_checks_failing",
                "Servers that fail their checks now (origin.check). /upstreams on the operator's listener names them.",
            ),
            copies_served: counter(
                "gateway_copies_served_total",
                "Requests that got a copy of an earlier response, because the server of the site failed (upstream.copies).",
            ),
            copies: by(
                "gateway_copies_total",
                "Copies of responses of the servers of sites, by what happened: stored, dropped (too many are written at once), failed (the disk is full or does not work), evicted (there were too many), forgotten (the page or the site has changed, or the copy was too old), damaged.",
                "outcome",
            ),
            copies_stored: gauge(
                "gateway_copies",
                "Copies of responses of the servers of sites that there are now.",
            ),
            copies_bytes: gauge(
                "gateway_copies_bytes",
                "Bytes that the copies use on the disk.",
            ),
            upstream_connections: by(
                "gateway_upstream_connections_total",
                "Connections to the servers of sites that requests on the direct path have used, by use: opened (a new one), reused.",
                "use",
            ),
            index_hosts: gauge("index_hosts", "Hosts that are served now."),
            index_sites: gauge("index_sites", "Sites that are served now."),
            index_failing: gauge(
                "index_failing_sites",
                "Sites whose current release cannot be served; they serve an earlier one, if there is one.",
            ),
            index_swaps,
            index_fresh_at: time(
                "index_fresh_timestamp_seconds",
                "When the index last agreed with the store and the site records, in seconds since 1970.",
            ),
            site_records_rejected: gauge(
                "site_records_rejected",
                "Site records with mistakes, or in conflict with others, as they are now.",
            ),
            certificate_expires_at: time(
                "tls_certificate_expires_timestamp_seconds",
                "When the first certificate expires, in seconds since 1970. 0 without certificates.",
            ),
            certificate_late_at: time(
                "tls_certificate_late_timestamp_seconds",
                "When the first certificate should have been replaced, in seconds since 1970: a tenth of its life before its end, and at most seven days. 0 without certificates.",
            ),
            certificate_failures: counter(
                "tls_certificate_failures_total",
                "Certificate files that could not be used. The previous certificate stays in use.",
            ),
            families,
        }
    }

    /// Counts a request with its response.
    pub fn answered(&self, route: Route, status: u16, took: Duration) {
        let place = PLACES.get(usize::from(status)).map_or(u8::MAX, |at| *at);
        let at = usize::from(place).min(STATUSES.len());
        self.requests[route as usize][at].inc();
        self.durations[route as usize].observe(took.as_secs_f64());
    }

    /// Returns how many requests were answered, and how many of them with an error of this process:
    /// a status of 500 or more. Of the answers for sites only 500 counts: the others show that the
    /// server of a site does not answer.
    #[must_use]
    pub fn answers(&self) -> (u64, u64) {
        let mut all = 0;
        let mut errors = 0;
        for (route, counters) in self.requests.iter().enumerate() {
            for (at, counter) in counters.iter().enumerate() {
                let count = counter.get();
                all += count;
                let is_of_site = route == Route::Origin as usize;
                let is_error = STATUSES
                    .get(at)
                    .is_some_and(|status| *status == 500 || (*status > 500 && !is_of_site));
                if is_error {
                    errors += count;
                }
            }
        }
        (all, errors)
    }

    /// Counts a request that did not end with a complete response.
    pub fn ended(&self, reason: &str) {
        self.ends.with_label_values(&[reason]).inc();
    }

    /// Counts how long a request has waited for its upstream: for a connection, for the first
    /// byte, for the rest. A wait that was not reached has no value.
    pub fn waited(&self, waits: [Option<Duration>; 3]) {
        for (histogram, wait) in self.waits.iter().zip(waits) {
            if let Some(wait) = wait {
                histogram.observe(wait.as_secs_f64());
            }
        }
    }

    /// Returns every family, in the order of their names.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        let mut known = self.families.known().clone();
        known.sort_by(|a, b| a.name.cmp(&b.name));
        known
    }

    /// Writes everything in the Prometheus text format, version 0.0.4. A family that has no
    /// value yet is announced by its name, so that an operator sees that it exists.
    #[must_use]
    pub fn to_text(&self) -> Vec<u8> {
        let mut families = self.families.registry.gather();
        // Series of the counters by status that are zero are left out: absent means zero.
        for family in families
            .iter_mut()
            .filter(|family| family.name() == "gateway_requests_total")
        {
            family
                .mut_metric()
                .retain(|metric| metric.get_counter().get_value() > 0.0);
        }
        families.retain(|family| !family.get_metric().is_empty());
        let mut text = Vec::new();
        TextEncoder::new()
            .encode(&families, &mut text)
            .expect("a Vec takes every byte");
        let mut announced = String::new();
        for family in self.families() {
            if !families.iter().any(|with| with.name() == family.name) {
                let Family {
                    name, help, kind, ..
                } = family;
                let _never_fails =
                    write!(announced, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
            }
        }
        text.extend(announced.into_bytes());
        text
    }

    /// Makes a family of another module's own and adds it to what [`Metrics::to_text`] writes.
    ///
    /// # Panics
    ///
    /// When the name or a label is not one, or is registered already: names are constants.
    pub fn register<C: Collector + Clone + 'static>(&self, family: prometheus::Result<C>) -> C {
        self.families.register(family)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

fn opts(name: &str, help: &str) -> Opts {
    Opts::new(name, help)
}

// === impl Families ===

impl Families {
    fn register<C: Collector + Clone + 'static>(&self, family: prometheus::Result<C>) -> C {
        let family = family.expect("metric names and labels are constants");
        self.registry
            .register(Box::new(family.clone()))
            .expect("every metric is registered once");
        let kind = match family.collect().first().map(|one| one.get_field_type()) {
            Some(MetricType::COUNTER) => "counter",
            Some(MetricType::HISTOGRAM) => "histogram",
            _ => "gauge",
        };
        self.known()
            .extend(family.desc().into_iter().map(|described| Family {
                name: described.fq_name.clone(),
                help: described.help.clone(),
                kind,
                labels: described.variable_labels.clone(),
            }));
        family
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Vec<Family>> {
        self.known
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_route_and_status() {
        let metrics = Metrics::new();
        metrics.answered(Route::FastPath, 200, Duration::from_micros(20));
        metrics.answered(Route::FastPath, 200, Duration::from_micros(20));
        metrics.answered(Route::Origin, 418, Duration::from_millis(3));
        let text = String::from_utf8(metrics.to_text()).unwrap();
        assert!(
            text.contains("gateway_requests_total{route=\"fast_path\",status=\"200\"} 2\n"),
            "{text}"
        );
        assert!(
            text.contains("gateway_requests_total{route=\"origin\",status=\"other\"} 1\n"),
            "{text}"
        );
        assert!(!text.contains("status=\"404\""), "{text}");
        assert!(
            text.contains("gateway_request_duration_seconds_count{route=\"fast_path\"} 2\n"),
            "{text}"
        );
    }

    #[test]
    fn a_family_without_a_value_is_announced() {
        let metrics = Metrics::new();
        let text = String::from_utf8(metrics.to_text()).unwrap();
        let failures = "gateway_upstream_failures_total";
        assert!(
            text.contains(&format!("# TYPE {failures} counter\n")),
            "{text}"
        );
        metrics
            .upstream_failures
            .with_label_values(&["connect"])
            .inc();
        let text = String::from_utf8(metrics.to_text()).unwrap();
        assert_eq!(
            text.matches(&format!("# TYPE {failures} ")).count(),
            1,
            "{text}"
        );
        for family in metrics.families() {
            assert!(
                text.contains(&format!("# TYPE {} {}\n", family.name, family.kind)),
                "{text}"
            );
        }
    }

    #[test]
    fn each_status_is_found_and_no_other() {
        for status in 0..600_u16 {
            let place = STATUSES.iter().position(|known| *known == status);
            let found = STATUSES.get(usize::from(PLACES[usize::from(status)]));
            assert_eq!(found, place.map(|_| &status));
        }
    }
}
