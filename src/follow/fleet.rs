//! The state of the edges that follow a source, as the source knows it.
//!
//! Each request of an edge says which revision the edge has, and how well it serves. From these
//! reports the source knows the health of a ring, on which the next ring depends, and which edges
//! serve a release. Metrics and the list of edges for operators show them.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::metrics::FleetMetrics;
use super::report::Report;
use super::rings::{Health, Rings};
use super::secrets::SecretLog;
use super::source::Request;
use super::tokens::{EdgeName, ListedEdge, Tokens};
use crate::clock::Clock;
use crate::error::chain;
use crate::site::ProjectId;
use crate::store::Fence;
use crate::store::shared::OtherGateway;

/// An edge that has not asked for so long does not count as following.
const SEEN_SECONDS: u64 = 90;
const SEEN: Duration = Duration::from_secs(SEEN_SECONDS);
/// For how long after its start a source counts an edge that has not asked yet as one that follows
/// and has nothing. An edge whose source was away asks again within 30 to 45 seconds.
const START_TIME: Duration = Duration::from_secs(60);
/// For how long a list of the edges is used again.
const LISTED_TIME: Duration = Duration::from_secs(1);
/// How often changes are passed on to the next rings.
const STEP: Duration = Duration::from_millis(200);
/// The metrics are set after this many of these steps.
const MEASURED_STEPS: u64 = 5;
/// Fewer requests between two reports prove nothing about errors.
const JUDGED_REQUESTS: u64 = 20;
/// A smaller share of errors is no reason to stop.
const ERRORS_SHARE: f64 = 0.05;
/// The end of the sentence about an edge with errors.
const OF_ERRORS: &str = "with errors, which is more than before";

/// The edges of a source.
#[derive(Debug)]
pub struct Fleet {
    rings: Arc<Rings>,
    secrets: Arc<SecretLog>,
    tokens: Tokens,
    clock: Clock,
    seen: Mutex<BTreeMap<EdgeName, Seen>>,
    /// The revision of the secrets that each edge has, and when it has asked last.
    applied: Mutex<BTreeMap<EdgeName, (u64, u64)>>,
    /// Changes when an edge has asked again.
    progress: watch::Sender<u64>,
    /// When this process began.
    began: Instant,
    began_at: u64,
    /// The edges that follow another gateway of the store, as it describes them, by name.
    elsewhere: Mutex<BTreeMap<String, Value>>,
    /// The edges that had a token a moment ago, and when they were listed.
    listed: Mutex<Option<(Instant, Vec<ListedEdge>)>>,
    metrics: FleetMetrics,
}

/// What an edge has asked for last.
#[derive(Clone, Debug)]
struct Seen {
    at: u64,
    /// When it has reported last.
    moment: Instant,
    /// When it has last asked for changes or for a snapshot.
    asked: Instant,
    /// The revision that it has, and whether that is of this life and of its ring.
    revision: u64,
    is_this_life: bool,
    /// The highest revision that it was sent.
    sent: u64,
    program: String,
    report: Report,
    /// Since when it has been well, by its reports.
    well_since: Instant,
    /// Why it is not; `None` if it is.
    ill: Option<String>,
    /// The usual share of errors among its responses.
    usual: f64,
}

// === impl Fleet ===

impl Fleet {
    pub(super) fn new(
        rings: Arc<Rings>,
        secrets: &Arc<SecretLog>,
        tokens: Tokens,
        metrics: FleetMetrics,
    ) -> Self {
        Self {
            rings,
            secrets: Arc::clone(secrets),
            tokens,
            clock: Clock::System,
            seen: Mutex::default(),
            applied: Mutex::default(),
            progress: watch::Sender::new(0),
            began: Instant::now(),
            began_at: Clock::System.unix_seconds(),
            elsewhere: Mutex::default(),
            listed: Mutex::default(),
            metrics,
        }
    }

    pub(super) fn rings(&self) -> &Rings {
        &self.rings
    }

    pub(super) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Notes that an edge asks for changes after a revision that it has.
    pub(super) fn see(&self, edge: &ListedEdge, request: &Request, identity: &str, revision: u64) {
        let now = Instant::now();
        let report = Report::of(|name| request.query(name));
        let mut all = self.seen();
        let before = all.get(&edge.name);
        let is_this_life = identity == self.rings.log(edge.ring).identity();
        let before = before.filter(|before| before.report.up <= report.up);
        let (ill, usual) = judge(before, &report);
        let well_since = match before {
            Some(before) if before.ill.is_none() && ill.is_none() => before.well_since,
            _ => now,
        };
        let sent = before.map_or(0, |before| before.sent);
        let seen = Seen {
            at: self.clock.unix_seconds(),
            moment: now,
            asked: now,
            revision,
            is_this_life,
            sent: if is_this_life {
                sent.max(revision)
            } else {
                sent
            },
            program: request.program.clone(),
            report,
            well_since,
            ill,
            usual,
        };
        all.insert(edge.name.clone(), seen);
        drop(all);
        self.progress.send_modify(|count| *count += 1);
    }

    /// Notes that an edge asks for a snapshot: it has nothing, or cannot go on from what it has.
    pub(super) fn see_comparison(&self, edge: &ListedEdge, request: &Request) {
        let now = Instant::now();
        let mut all = self.seen();
        let seen = all.entry(edge.name.clone()).or_insert_with(|| Seen {
            at: 0,
            moment: now,
            asked: now,
            revision: 0,
            is_this_life: false,
            sent: 0,
            program: String::new(),
            report: Report::default(),
            well_since: now,
            ill: None,
            usual: 0.0,
        });
        // The request has no report, so the last report stays.
        seen.at = self.clock.unix_seconds();
        seen.asked = now;
        seen.program.clone_from(&request.program);
        drop(all);
        self.progress.send_modify(|count| *count += 1);
    }

    /// Returns whether an edge is waited for although it has not asked: this process has just begun,
    /// and the edge had a token before.
    fn is_awaited(&self, edge: &ListedEdge) -> bool {
        self.began.elapsed() < START_TIME
            && edge.created_at <= self.began_at
            && !self.elsewhere().contains_key(edge.name.as_str())
    }

    /// Returns the edges that follow this node, for the other gateways of the store.
    #[must_use]
    pub fn following(&self) -> Vec<Value> {
        let all = self.to_json();
        let edges = all["edges"].as_array().into_iter().flatten();
        let follows = |edge: &&Value| edge["state"] == "following" && edge["gateway"].is_null();
        edges.filter(follows).cloned().collect()
    }

    /// Says which edges follow the other gateways of the store, as each has returned them as
    /// [`following`](Self::following).
    pub fn follow_elsewhere(&self, gateways: &[OtherGateway]) {
        let mut found = BTreeMap::new();
        for gateway in gateways {
            for edge in gateway.edges.iter().filter(|edge| edge.is_object()) {
                let mut edge = edge.clone();
                let Some(name) = edge["name"].as_str().map(str::to_owned) else {
                    continue;
                };
                edge["gateway"] = Value::from(gateway.name.as_str());
                found.insert(name, edge);
            }
        }
        *self.elsewhere() = found;
    }

    fn elsewhere(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        // Every change is an assignment, so the value is whole after a panic too.
        self.elsewhere
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the revision that an edge is sent.
    pub(super) fn sent(&self, edge: &EdgeName, revision: u64) {
        if let Some(seen) = self.seen().get_mut(edge) {
            seen.sent = revision;
        }
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<EdgeName, Seen>> {
        // Every change is an assignment, so the value is whole after a panic too.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes changes on to the rings that may get them. It never returns.
    pub fn run(&self) {
        for count in 0_u64.. {
            std::thread::sleep(STEP);
            self.step();
            if count.is_multiple_of(MEASURED_STEPS) {
                self.measure();
            }
        }
    }

    /// Passes changes on to the rings that may get them.
    pub fn step(&self) {
        let edges = OnceCell::new();
        self.rings.step(|ring| {
            match edges.get_or_init(|| self.tokens.list()) {
                Ok(edges) => self.health(edges, ring),
                // Nothing is passed on to rings whose edges are not known.
                Err(error) => Health {
                    revision: 0,
                    since: None,
                    reason: Some(format!("the edges are not known: {}", chain(error))),
                },
            }
        });
    }

    /// Returns how the edges of a ring are.
    fn health(&self, edges: &[ListedEdge], ring: u8) -> Health {
        let now = Instant::now();
        let half = self.rings.hold() / 2;
        let last = u8::try_from(self.rings.count() - 1).unwrap_or(u8::MAX);
        let mut health = Health {
            revision: u64::MAX,
            since: Some(now),
            reason: None,
        };
        let seen = self.seen();
        let mut following = 0;
        let mut all = 0;
        for edge in edges.iter().filter(|edge| edge.ring.min(last) == ring) {
            all += 1;
            let name = &edge.name;
            let Some(seen) = seen.get(name) else {
                continue;
            };
            let has = if seen.is_this_life { seen.revision } else { 0 };
            if now.duration_since(seen.asked) > SEEN {
                // It was away before, or it has taken a change and was not seen since.
                if seen.sent > has {
                    health.revision = health.revision.min(has);
                    health.reason = Some(format!("{name} has taken a change and is away since"));
                }
                continue;
            }
            following += 1;
            health.revision = health.revision.min(has);
            let since = seen.moment.checked_sub(half);
            health.since = health.since.min(since);
            if let Some(why) = &seen.ill {
                health.reason = Some(format!("{name} {why}"));
            } else if seen.moment.duration_since(seen.well_since) < half {
                health.since = None;
            }
        }
        if all > 0 && following == 0 && health.reason.is_none() {
            health.reason = Some(format!("no edge of ring {ring} follows"));
        }
        health
    }

    /// Returns the name of an edge that follows and does not have the promotion of a project;
    /// `None` if all have it.
    #[must_use]
    pub fn waits_for(&self, project: &ProjectId, fence: Fence) -> Option<String> {
        self.wait_for_each([(project, fence)]).remove(project)
    }

    /// Returns those of these projects whose promotion an edge that follows does not have, with the
    /// name of the edge.
    #[must_use]
    pub fn wait_for_each<'p>(
        &self,
        wanted: impl IntoIterator<Item = (&'p ProjectId, Fence)>,
    ) -> BTreeMap<&'p ProjectId, String> {
        let edges = self.tokens.list();
        let waiting = wanted.into_iter().filter_map(|(project, fence)| {
            let edge = match &edges {
                Ok(edges) => self.waits_for_one(edges, project, fence)?,
                Err(error) => format!("edges that are not known: {}", chain(error)),
            };
            Some((project, edge))
        });
        waiting.collect()
    }

    fn waits_for_one(
        &self,
        edges: &[ListedEdge],
        project: &ProjectId,
        fence: Fence,
    ) -> Option<String> {
        let now = Instant::now();
        let seen = self.seen();
        edges.iter().find_map(|edge| {
            let named = || format!("{} of ring {}", edge.name, edge.ring);
            let Some(seen) = seen.get(&edge.name) else {
                return self.is_awaited(edge).then(named);
            };
            if now.duration_since(seen.asked) > SEEN {
                return None;
            }
            let known = self.rings.log(edge.ring).state(project);
            let (revision, current) =
                known.map_or((0, None), |(revision, known)| (revision, known.current));
            let has = current.is_some_and(|current| current.fence() >= fence)
                && seen.is_this_life
                && seen.revision >= revision
                && seen.report.complete >= revision;
            (!has).then(named)
        })
    }

    /// Returns a channel that changes with each request of an edge.
    #[must_use]
    pub fn progress(&self) -> watch::Receiver<u64> {
        self.progress.subscribe()
    }

    /// Updates the metrics: how many edges follow, how far each is behind, and which versions run.
    fn measure(&self) {
        let now = Instant::now();
        let (mut following, mut skew) = (0, 0);
        let mut versions = BTreeSet::new();
        self.metrics.lag.reset();
        let edges = self.tokens.list().unwrap_or_default();
        let seen = self.seen();
        let gauge = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        for edge in edges {
            let seen = seen.get(&edge.name);
            let seen = seen.filter(|seen| now.duration_since(seen.asked) <= SEEN);
            let Some(seen) = seen else {
                continue;
            };
            following += 1;
            versions.insert(seen.program.clone());
            let latest = self.rings.log(edge.ring).revision();
            let has = if seen.is_this_life { seen.revision } else { 0 };
            let lag = latest.saturating_sub(has);
            skew = skew.max(lag);
            let labels = [edge.name.as_str()];
            self.metrics.lag.with_label_values(&labels).set(gauge(lag));
        }
        drop(seen);
        self.metrics.following.set(following);
        self.metrics.skew.set(gauge(skew));
        self.metrics.versions.set(gauge(versions.len() as u64));
        self.metrics.frozen.set(i64::from(self.rings.is_frozen()));
        for ring in 0..self.rings.count() {
            let ring = u8::try_from(ring).unwrap_or(u8::MAX);
            let waiting = self.rings.waiting(ring).1 as u64;
            let held = self.metrics.held.with_label_values(&[&ring.to_string()]);
            held.set(gauge(waiting));
        }
    }

    /// Returns the rings, and each edge that has a token with its last report.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let now = Instant::now();
        let edges = self.tokens.list().unwrap_or_default();
        let seen = self.seen();
        let applied = self.applied().clone();
        let elsewhere = self.elsewhere().clone();
        let secrets = self.secrets.revision();
        let edges = edges.into_iter().map(|edge| {
            let name = edge.name.as_str();
            let seen = seen.get(&edge.name);
            let follows = seen.is_some_and(|seen| now.duration_since(seen.asked) <= SEEN);
            if let (false, Some(described)) = (follows, elsewhere.get(name)) {
                return described.clone();
            }
            let Some(seen) = seen else {
                return json!({ "name": name, "ring": edge.ring, "state": "never_seen" });
            };
            let latest = self.rings.log(edge.ring).revision();
            let applied = applied.get(&edge.name).map(|(applied, _)| *applied);
            json!({
                "name": name,
                "ring": edge.ring,
                "state": match follows {
                    true => "following",
                    false => "away",
                },
                "revision": seen.is_this_life.then_some(seen.revision),
                "lag": seen.is_this_life.then(|| latest.saturating_sub(seen.revision)),
                "secrets_lag": applied.map(|applied| secrets.saturating_sub(applied)),
                "age_seconds": self.clock.unix_seconds().saturating_sub(seen.at),
                "up_seconds": seen.report.up / 1000,
                "failing_sites": seen.report.failing,
                "ill": seen.ill,
                "has_key": edge.key.is_some(),
                "program": seen.program,
            })
        });
        let edges: Vec<Value> = edges.collect();
        let rings = (0..self.rings.count()).map(|ring| {
            let ring = u8::try_from(ring).unwrap_or(u8::MAX);
            let (has_begun, waiting, reason) = self.rings.waiting(ring);
            json!({
                "ring": ring,
                "revision": self.rings.log(ring).revision(),
                "has_begun": has_begun,
                "waiting_projects": waiting,
                "reason": reason,
            })
        });
        let frozen = self.rings.is_frozen().then(|| {
            let why = fs::read_to_string(self.rings.frozen_file()).unwrap_or_default();
            why.trim().to_owned()
        });
        let log = self.rings.log(0);
        json!({
            "identity": log.identity(),
            "revision": log.revision(),
            "sites": log.sites(),
            "hold_seconds": self.rings.hold().as_secs(),
            "frozen": frozen,
            "rings": rings.collect::<Vec<_>>(),
            "edges": edges,
        })
    }
    /// Notes that an edge has applied the secrets up to a revision.
    pub(super) fn has_applied(&self, edge: &EdgeName, revision: u64) {
        let now = self.clock.unix_seconds();
        self.applied().insert(edge.clone(), (revision, now));
        self.progress.send_modify(|count| *count += 1);
    }

    /// Waits until every edge that follows has applied the secrets up to a revision, at most for a
    /// time. Returns the edges that have not.
    pub async fn applied_by_all(&self, revision: u64, time: Duration) -> Vec<EdgeName> {
        let mut progress = self.progress.subscribe();
        let until = tokio::time::Instant::now() + time;
        loop {
            progress.borrow_and_update();
            let behind = self.behind(revision);
            if behind.is_empty() {
                return behind;
            }
            match tokio::time::timeout_at(until, progress.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return behind,
            }
        }
    }

    /// Returns the edges that follow and have not applied the secrets up to a revision. Soon after
    /// the start of this process, edges that have not asked yet are among them.
    #[must_use]
    pub fn behind(&self, revision: u64) -> Vec<EdgeName> {
        let now = self.clock.unix_seconds();
        let behind = |(edge, (applied, at)): (&EdgeName, &(u64, u64))| {
            (*applied < revision && now < at + SEEN_SECONDS).then(|| edge.clone())
        };
        let known = self.applied().clone();
        let mut behind: Vec<EdgeName> = known.iter().filter_map(behind).collect();
        if self.began.elapsed() < START_TIME {
            let edges = self.listed().into_iter();
            let awaited =
                edges.filter(|edge| !known.contains_key(&edge.name) && self.is_awaited(edge));
            behind.extend(awaited.map(|edge| edge.name));
        }
        // A removed edge gets nothing more.
        behind.retain(|edge| self.tokens.has(edge));
        behind
    }

    /// Returns the edges that had a token at most a second ago. A list is used again, because a caller
    /// that waits for edges asks often.
    fn listed(&self) -> Vec<ListedEdge> {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        match &*listed {
            Some((at, edges)) if at.elapsed() < LISTED_TIME => edges.clone(),
            _ => {
                let edges = self.tokens.list().unwrap_or_default();
                *listed = Some((Instant::now(), edges.clone()));
                edges
            }
        }
    }

    fn applied(&self) -> MutexGuard<'_, BTreeMap<EdgeName, (u64, u64)>> {
        // Every change is an insertion, so the value is whole after a panic too.
        self.applied.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns why an edge is not well, and its usual share of errors, from two reports of one process.
fn judge(before: Option<&Seen>, report: &Report) -> (Option<String>, f64) {
    let usual = before.map_or(0.0, |before| before.usual);
    if let Some(reason) = &report.refuses {
        let why = format!("cannot use what this node sends ({})", reason.as_str());
        return (Some(why), usual);
    }
    if report.failing > 0 {
        let failing = report.failing;
        return (
            Some(format!(
                "does not serve {failing} current releases or records"
            )),
            usual,
        );
    }
    let Some(before) = before else {
        return (None, usual);
    };
    let requests = report.requests.saturating_sub(before.report.requests);
    let errors = report.errors.saturating_sub(before.report.errors);
    if requests < JUDGED_REQUESTS {
        // So few requests prove nothing: the edge keeps its last state.
        return (
            before.ill.clone().filter(|why| why.contains(OF_ERRORS)),
            usual,
        );
    }
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more digits")]
    let share = errors as f64 / requests as f64;
    if share > ERRORS_SHARE && share > 2.0 * usual {
        let why = format!("answers {errors} of {requests} requests {OF_ERRORS}");
        return (Some(why), usual);
    }
    (None, 0.8 * usual + 0.2 * share)
}

#[cfg(test)]
mod tests {
    use super::super::report::Reason;
    use super::*;

    fn seen(report: Report, ill: Option<String>, usual: f64) -> Seen {
        Seen {
            at: 0,
            moment: Instant::now(),
            asked: Instant::now(),
            revision: 0,
            is_this_life: true,
            sent: 0,
            program: String::new(),
            report,
            well_since: Instant::now(),
            ill,
            usual,
        }
    }

    fn report(requests: u64, errors: u64) -> Report {
        Report {
            requests,
            errors,
            ..Report::default()
        }
    }

    /// A fleet that has just begun, with the tokens of two edges.
    fn fleet() -> (Fleet, [ListedEdge; 2], tempfile::TempDir) {
        use super::super::changes::tests::log;
        let directory = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(directory.path().join("edges"), "waypost");
        for name in ["paris", "tokyo"] {
            let name = EdgeName::parse(name).unwrap();
            tokens.add(&name, None, 0, 1).unwrap();
        }
        let edges = tokens.list().unwrap().try_into().unwrap();
        let frozen = directory.path().join("frozen");
        let rings = Arc::new(Rings::new(vec![log()], Duration::ZERO, frozen));
        let secrets = Arc::new(rings.log(0).secrets());
        let metrics = super::super::SourceMetrics::new(&crate::telemetry::Metrics::new());
        let fleet = Fleet::new(rings, &secrets, tokens, metrics.fleet);
        (fleet, edges, directory)
    }

    fn request(query: &str) -> Request {
        Request {
            path: "/v1/follow/changes".to_owned(),
            query: query.to_owned(),
            authorization: Vec::new(),
            program: "waypost/0.1".to_owned(),
            content: None,
        }
    }

    fn gateway(edges: Vec<Value>) -> OtherGateway {
        OtherGateway {
            name: "one".to_owned(),
            ends_at: 1,
            edges,
        }
    }

    fn begin_long_ago(fleet: &mut Fleet) {
        fleet.began = fleet.began.checked_sub(START_TIME).unwrap();
    }

    #[test]
    fn an_edge_that_was_not_seen_since_the_start_has_no_secret_yet() {
        let (mut fleet, [paris, tokyo], _directory) = fleet();
        assert_eq!(fleet.behind(1), [paris.name.clone(), tokyo.name.clone()]);
        fleet.has_applied(&paris.name, 1);
        assert_eq!(fleet.behind(1), std::slice::from_ref(&tokyo.name));
        fleet.has_applied(&paris.name, 0);
        fleet.tokens.remove(&paris.name).unwrap();
        assert_eq!(fleet.behind(1), std::slice::from_ref(&tokyo.name));
        // It follows another gateway, which waits for it.
        let described = vec![json!({ "name": "tokyo", "state": "following" })];
        fleet.follow_elsewhere(&[gateway(described)]);
        assert_eq!(fleet.behind(1), []);
        fleet.follow_elsewhere(&[]);
        // An edge that got its token since then has no certificate of before.
        let new = EdgeName::parse("rome").unwrap();
        fleet.tokens.add(&new, None, 0, u64::MAX).unwrap();
        assert_eq!(fleet.behind(1), [tokyo.name]);
        begin_long_ago(&mut fleet);
        assert_eq!(fleet.behind(1), []);
    }

    #[test]
    fn an_edge_that_was_not_seen_since_the_start_does_not_have_a_release() {
        let (mut fleet, [paris, tokyo], _directory) = fleet();
        let project = ProjectId::parse("acme").unwrap();
        let fence = Fence {
            generation: 1,
            epoch: 0,
        };
        let waits = |fleet: &Fleet| fleet.waits_for(&project, fence);
        assert_eq!(waits(&fleet).unwrap(), "paris of ring 0");
        begin_long_ago(&mut fleet);
        assert_eq!(waits(&fleet), None);
        // One that asks for a snapshot has nothing.
        fleet.see_comparison(&tokyo, &request(""));
        assert_eq!(waits(&fleet).unwrap(), "tokyo of ring 0");
        let health = fleet.health(&[paris, tokyo], 0);
        assert_eq!((health.revision, health.reason), (0, None));
    }

    #[test]
    fn an_edge_that_compares_keeps_its_last_report() {
        let (fleet, [paris, _], _directory) = fleet();
        let failing = request("up=9&failing=2");
        fleet.see(&paris, &failing, "another life", 7);
        fleet.see_comparison(&paris, &request(""));
        let seen = fleet.seen().get(&paris.name).cloned().unwrap();
        assert!(seen.ill.unwrap().contains("does not serve 2"));
        assert_eq!((seen.revision, seen.report.up), (7, 9));
    }

    #[test]
    fn the_edges_of_another_gateway_follow_it() {
        let (fleet, [paris, _], _directory) = fleet();
        fleet.see_comparison(&paris, &request(""));
        let (other, _, _other_directory) = self::fleet();
        other.follow_elsewhere(&[gateway(fleet.following())]);
        let edges = other.to_json()["edges"].clone();
        assert_eq!(edges[0]["state"], "following", "{edges}");
        assert_eq!(edges[0]["gateway"], "one");
        assert_eq!(edges[1]["state"], "never_seen");
        // It is not passed on as an edge of this gateway.
        assert!(other.following().is_empty());
    }

    #[test]
    fn an_edge_whose_errors_rise_is_not_well() {
        let before = seen(report(1000, 1), None, 0.001);
        let (ill, usual) = judge(Some(&before), &report(1100, 1));
        assert!(ill.is_none() && usual < 0.001);
        let (ill, _) = judge(Some(&before), &report(1100, 41));
        let why = ill.unwrap();
        assert!(why.contains("40 of 100 requests"), "{why}");
        // It stays so until it has answered enough requests without.
        let before = seen(report(1100, 41), Some(why), 0.001);
        assert!(judge(Some(&before), &report(1105, 41)).0.is_some());
        assert!(judge(Some(&before), &report(1200, 41)).0.is_none());
        // A usual share is not a rise.
        let before = seen(report(0, 0), None, 0.3);
        assert!(judge(Some(&before), &report(100, 35)).0.is_none());
        let failing = Report {
            failing: 2,
            ..Report::default()
        };
        assert!(judge(None, &failing).0.is_some());
        let refusing = Report {
            refuses: Reason::parse("older"),
            ..Report::default()
        };
        assert!(judge(None, &refusing).0.unwrap().contains("(older)"));
    }
}
