//! `waypost status`: shows the state and the problems of a running gateway.

use std::collections::HashMap;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use serde_json::Value;

use super::operator::Operator;
use super::settings::Settings;
use crate::clock::Clock;
use crate::store::OwnershipState;

/// An index that was not compared with the disk for so long is a problem.
const INDEX_SECONDS_MAX: f64 = 900.0;
/// How many servers that pause, or fail their checks, are named.
const SERVERS_NAMED_MAX: usize = 5;

/// Show the state and the problems of a running gateway
///
/// Problems come first. Exit status: 0 if nothing is wrong, 1 if something is wrong and the
/// gateway serves, 2 if it does not serve or does not respond.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The configuration, which has the address of the operator's listener.
    #[command(flatten)]
    pub settings: Settings,
}

/// The state of a process, from the pages of its operator's listener.
#[derive(Debug, Default)]
struct Status {
    /// `ready`, `degraded`, `loading` or `leaving`.
    word: String,
    /// The problems, the worst first.
    problems: Vec<String>,
    /// What it does: a word and a sentence.
    details: Vec<(&'static str, String)>,
}

/// The samples of the metrics page.
#[derive(Debug, Default)]
struct Samples(HashMap<String, f64>);

/// Prints the state.
///
/// # Errors
///
/// When the listener is off, or no process responds.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let operator = Operator::of(&args.settings.load()?)?;
    let ready = operator.json("/readyz?full")?;
    let (_, metrics) = operator.get("/metrics")?;
    // A worker has no such page.
    let upstreams = operator.json("/upstreams").unwrap_or_default();
    let now = Clock::System.now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_secs_f64();
    let status = Status::of(&ready, &Samples::read(&metrics), &upstreams, now);
    let mut out = io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", status.to_json())?,
        false => status.print(&operator.address().to_string(), &mut out)?,
    }
    Ok(ExitCode::from(
        match (&*status.word, status.problems.is_empty()) {
            ("ready", true) => 0,
            ("ready" | "degraded", _) => 1,
            _ => 2,
        },
    ))
}

// === impl Samples ===

impl Samples {
    /// Reads the text format of Prometheus: `name{labels} value`.
    fn read(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let samples = lines.filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Self(samples.collect())
    }

    fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Returns a sample, or 0.
    fn value(&self, name: &str) -> f64 {
        self.get(name).unwrap_or(0.0)
    }

    /// Returns the sum of a family over its labels.
    fn sum(&self, family: &str, has: impl Fn(&str) -> bool) -> f64 {
        let of = |name: &str| {
            name.strip_prefix(family)
                .is_some_and(|rest| rest.starts_with('{'))
        };
        let samples = self.0.iter().filter(|(name, _)| of(name) && has(name));
        // The sum of nothing is -0.
        samples
            .map(|(_, value)| value)
            .fold(0.0, |sum, value| sum + value)
    }
}

// === impl Status ===

impl Status {
    fn of(ready: &Value, samples: &Samples, upstreams: &Value, now: f64) -> Self {
        let word = ready["status"].as_str().unwrap_or("unknown").to_owned();
        let mut status = Self {
            word,
            ..Self::default()
        };
        match &*status.word {
            "loading" => status.wrong("it loads its sites and does not serve yet".to_owned()),
            "leaving" => status.wrong("it stops: new connections are refused soon".to_owned()),
            _ => {}
        }
        for (name, part) in ready["parts"].as_object().into_iter().flatten() {
            if let (Some(cause), Some(since)) = (part["cause"].as_str(), part["since"].as_str()) {
                status.wrong(format!("{name} does not work since {since}: {cause}"));
            }
        }
        status.process(ready, samples);
        status.sites(samples, now);
        status.updates(ready, samples);
        status.certificates(samples, now);
        status.domains(samples);
        status.upstreams(samples, upstreams);
        status.upgrade(ready);
        status
    }

    fn wrong(&mut self, problem: String) {
        self.problems.push(problem);
    }

    fn detail(&mut self, word: &'static str, sentence: String) {
        self.details.push((word, sentence));
    }

    fn process(&mut self, ready: &Value, samples: &Samples) {
        let uptime = ready["uptime_seconds"].as_f64().unwrap_or(0.0);
        self.detail(
            "process",
            format!(
                "{}, version {}, runs for {}, {:.0} connections open",
                ready["process"],
                ready["version"].as_str().unwrap_or("unknown"),
                span(uptime),
                samples.value("gateway_connections_open"),
            ),
        );
        let panics = samples.value("process_panics_total");
        if panics > 0.0 {
            self.wrong(format!("{panics:.0} panics: the log has their backtraces"));
        }
        match samples.value("gateway_memory_stage") {
            stage if stage >= 2.0 => {
                self.wrong("memory is scarce: new connections are refused".to_owned());
            }
            stage if stage >= 1.0 => {
                self.wrong(
                    "memory is scarce: connections are closed after each response".to_owned(),
                );
            }
            _ => {}
        }
        let lost = samples.value("gateway_access_lines_dropped_total");
        if lost > 0.0 {
            self.wrong(format!("{lost:.0} lines of the access log were lost"));
        }
    }

    fn sites(&mut self, samples: &Samples, now: f64) {
        let Some(sites) = samples.get("index_sites") else {
            return;
        };
        let rejected = samples.value("site_records_rejected");
        if rejected > 0.0 {
            self.wrong(format!(
                "{rejected:.0} site records have mistakes or conflicts: `waypost check --conf` \
                 names them"
            ));
        }
        let compared = samples.value("index_fresh_timestamp_seconds");
        let age = (now - compared).max(0.0);
        if compared > 0.0 && age > INDEX_SECONDS_MAX {
            self.wrong(format!(
                "the store and the site records were not read for {}: new releases are not served",
                span(age)
            ));
        }
        let hosts = samples.value("index_hosts");
        let age = match compared > 0.0 {
            true => format!("; last compared with the disk {} ago", span(age)),
            false => String::new(),
        };
        self.detail("sites", format!("{sites:.0} with {hosts:.0} hosts{age}"));
    }

    fn updates(&mut self, ready: &Value, samples: &Samples) {
        let of = |state: &str| {
            let label = format!("state=\"{state}\"");
            samples.sum("deploy_queue_updates", |name| name.contains(&label))
        };
        let part = &ready["parts"]["queue_reading"];
        if part["status"] == "failing" {
            self.detail(
                "updates",
                "unknown, because the queue cannot be read".to_owned(),
            );
            return;
        }
        let (waiting, running) = (of("queued"), of("in_progress"));
        self.detail(
            "updates",
            format!("{waiting:.0} wait, {running:.0} are built"),
        );
        if waiting > 100.0 {
            self.wrong(format!("{waiting:.0} updates wait: does a worker run?"));
        }
    }

    fn certificates(&mut self, samples: &Samples, now: f64) {
        let names = samples.value("acme_certificates");
        let first = samples
            .get("tls_certificate_expires_timestamp_seconds")
            .into_iter()
            .chain(samples.get("acme_certificate_expires_timestamp_seconds"))
            .filter(|at| *at > 0.0)
            .min_by(f64::total_cmp);
        let Some(first) = first else {
            self.detail("certificates", "none".to_owned());
            return;
        };
        let left = first - now;
        let late_at = samples.value("tls_certificate_late_timestamp_seconds");
        // A certificate that lives only some days is not wrong because it soon expires.
        let is_late =
            late_at > 0.0 && late_at <= now || samples.value("acme_certificates_late") > 0.0;
        match left {
            left if left <= 0.0 => self.wrong(format!(
                "a certificate has expired {} ago: `waypost cert list` and the log name it",
                span(-left)
            )),
            left if is_late => self.wrong(format!(
                "a certificate was not replaced in time, the first one expires in {}: `waypost cert list` and the log name it",
                span(left)
            )),
            _ => {}
        }
        let failing = samples.value("acme_names_failing");
        if failing > 0.0 {
            self.wrong(format!(
                "the last order of {failing:.0} names failed: `waypost cert list` says why"
            ));
        }
        let missing = samples.value("acme_names_without_certificate");
        let due = samples.value("acme_queue");
        self.detail(
            "certificates",
            format!(
                "{names:.0} by ACME, {missing:.0} missing, {due:.0} due; the first expires in {}",
                span(left.max(0.0))
            ),
        );
    }

    /// Names the domains of the store by their state. A customer who forgets a record is no problem
    /// of the gateway.
    fn domains(&mut self, samples: &Samples) {
        let counts = OwnershipState::ALL.into_iter().filter_map(|state| {
            let count = samples.value(&format!("domains{{state=\"{state}\"}}"));
            (count > 0.0).then(|| format!("{count:.0} {state}"))
        });
        let counts: Vec<_> = counts.collect();
        if counts.is_empty() {
            return;
        }
        let dangling = samples.value("domains{state=\"dangling\"}") > 0.0;
        let hint = match dangling {
            true => {
                "; `waypost domain list --state dangling` names those that will not be served any more"
            }
            false => "",
        };
        self.detail("domains", format!("{}{hint}", counts.join(", ")));
    }

    fn upstreams(&mut self, samples: &Samples, upstreams: &Value) {
        for (metric, state, wrong) in [
            (
                "gateway_upstream_checks_failing",
                "check_failed",
                "servers of sites fail their checks",
            ),
            (
                "gateway_upstream_ejected",
                "ejected",
                "servers of sites pause after failures",
            ),
        ] {
            let count = samples.value(metric);
            if count == 0.0 {
                continue;
            }
            let servers = upstreams["servers"].as_array().into_iter().flatten();
            let concerned = servers.filter(|server| server["state"] == state);
            let mut names: Vec<_> = concerned
                .filter_map(|server| server["server"].as_str())
                .collect();
            // Several sites may have the same server.
            names.sort_unstable();
            names.dedup();
            names.truncate(SERVERS_NAMED_MAX);
            self.wrong(format!(
                "{count:.0} {wrong}: {}",
                match names.is_empty() {
                    true => "/upstreams names them".to_owned(),
                    false => names.join(", "),
                }
            ));
        }
        let waiting = samples.value("gateway_upstream_queued");
        if waiting > 0.0 {
            self.detail(
                "upstreams",
                format!("{waiting:.0} requests wait for a server of their site"),
            );
        }
    }

    fn upgrade(&mut self, ready: &Value) {
        let sentence = match ready["parts"]["upgrade"]["status"].as_str() {
            Some("ok") => "possible with `waypost upgrade`",
            Some(_) => "not possible: see above",
            None => return,
        };
        self.detail("upgrade", sentence.to_owned());
    }

    fn to_json(&self) -> Value {
        let details = self.details.iter();
        let details = details.map(|(word, sentence)| ((*word).to_owned(), sentence.clone().into()));
        serde_json::json!({
            "status": self.word,
            "problems": self.problems,
            "details": serde_json::Map::from_iter(details),
        })
    }

    fn print(&self, address: &str, out: &mut impl Write) -> io::Result<()> {
        match self.problems.len() {
            0 => writeln!(
                out,
                "The gateway at {address} is {}. Nothing is wrong.",
                self.word
            )?,
            1 => writeln!(out, "The gateway at {address} is {}. Wrong:", self.word)?,
            count => writeln!(
                out,
                "The gateway at {address} is {}. {count} things are wrong:",
                self.word
            )?,
        }
        for problem in &self.problems {
            writeln!(out, "  * {problem}")?;
        }
        for (word, sentence) in &self.details {
            writeln!(out, "{word:<13}{sentence}")?;
        }
        Ok(())
    }
}

/// Writes a time in its largest whole unit.
fn span(seconds: f64) -> String {
    for (unit, length) in [("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)] {
        if seconds >= 2.0 * length {
            return format!("{:.0} {unit}", (seconds / length).floor());
        }
    }
    format!("{seconds:.0} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: f64 = 1_700_000_000.0;

    fn status(ready: &Value, metrics: &str) -> Status {
        Status::of(ready, &Samples::read(metrics), &Value::Null, NOW)
    }

    #[test]
    fn everything_that_is_wrong_is_named() {
        let ready = serde_json::json!({
            "status": "degraded", "version": "1.2.3", "process": 7, "uptime_seconds": 7300,
            "parts": {
                "store": { "status": "ok" },
                "upgrade": { "status": "ok" },
                "queue_reading":
                    { "status": "failing", "cause": "it is locked", "since": "2026-01-01T00:00:00Z" },
            },
        });
        let metrics = format!(
            "# HELP index_sites x\nindex_sites 3\nindex_hosts 5\nsite_records_rejected 2\n\
             index_fresh_timestamp_seconds {}\nprocess_panics_total 1\ngateway_memory_stage 2\n\
             gateway_access_lines_dropped_total 9\ntls_certificate_expires_timestamp_seconds {}\n\
             tls_certificate_late_timestamp_seconds {}\n\
             acme_names_failing 4\ngateway_upstream_ejected 1\n\
             gateway_upstream_checks_failing 2\n",
            NOW - 2000.0,
            NOW + 3.0 * 86_400.0,
            NOW - 86_400.0,
        );
        let found = status(&ready, &metrics);
        let all = found.problems.join("\n");
        for part in [
            "queue_reading does not work since 2026-01-01T00:00:00Z: it is locked",
            "2 site records have mistakes",
            "were not read for 33 minutes",
            "1 panics",
            "memory is scarce: new connections are refused",
            "9 lines of the access log were lost",
            "a certificate was not replaced in time, the first one expires in 3 days",
            "the last order of 4 names failed",
            "1 servers of sites pause",
            "2 servers of sites fail their checks",
        ] {
            assert!(all.contains(part), "{part}\n{all}");
        }
        let mut out = Vec::new();
        found.print("127.0.0.1:9080", &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.starts_with(
                "The gateway at 127.0.0.1:9080 is degraded. 10 things are wrong:\n  * queue_reading"
            ),
            "{text}"
        );
        assert!(
            text.contains("process      7, version 1.2.3, runs for 2 hours"),
            "{text}"
        );
    }

    #[test]
    fn a_certificate_is_wrong_when_it_is_late_and_not_because_its_life_is_short() {
        let ready = serde_json::json!({ "status": "ready", "parts": {} });
        let problems = |late: u32, tls_late_at: f64| {
            let metrics = format!(
                "acme_certificates 1\nacme_certificate_expires_timestamp_seconds {}\n\
                 acme_certificates_late {late}\n\
                 tls_certificate_late_timestamp_seconds {tls_late_at}\n",
                NOW + 80.0 * 3600.0
            );
            status(&ready, &metrics).problems
        };
        assert_eq!(problems(0, 0.0), Vec::<String>::new());
        assert_eq!(problems(0, NOW + 1.0), Vec::<String>::new());
        for found in [problems(1, 0.0), problems(0, NOW - 1.0)] {
            assert!(found[0].contains("not replaced in time"), "{found:?}");
        }
    }

    #[test]
    fn nothing_is_wrong_with_a_quiet_gateway() {
        let ready = serde_json::json!({ "status": "ready", "parts": {} });
        let metrics = "index_sites 1\ndeploy_queue_updates{state=\"queued\"} 2\n\
                       deploy_queue_updates{state=\"in_progress\"} 1\n\
                       domains{state=\"active\"} 7\ndomains{state=\"dangling\"} 1\n";
        let found = status(&ready, metrics);
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        let updates = ("updates", "2 wait, 1 are built".to_owned());
        assert!(found.details.contains(&updates), "{:?}", found.details);
        let domains = found.details.iter().find(|(word, _)| *word == "domains");
        let domains = &domains.unwrap().1;
        let expected = "7 active, 1 dangling; `waypost domain list --state dangling`";
        assert!(domains.starts_with(expected), "{domains}");
    }
}
