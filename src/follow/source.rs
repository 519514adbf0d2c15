//! The answers of a source to the edges that follow it.
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/follow/changes?identity=…&after=N&wait=S` | the changes after a revision, as soon as there are some; 204 if there are none in time; 410 if the edge must compare everything |
//! | `GET /v1/follow/snapshot` | everything |
//! | `GET /v1/follow/objects/{digest}` | an inventory or a file of a release |
//! | `GET /v1/follow/secrets?identity=…&after=N&wait=S` | the secrets that have changed after a revision; 204 if there are none in time; all of them for another identity |
//! | `GET /v1/follow/certificates?keys=…` | certificates with their private keys, by the keys of their items |
//!
//! Every request has the token of an edge. Secrets and certificates are encrypted for that edge. Changes and snapshots have their signature in a field,
//! and a snapshot is compressed with zstd. A snapshot is made when it is asked for, at most once
//! a second, and all edges that ask meanwhile get the same one.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use prometheus::{IntCounterVec, IntGauge, IntGaugeVec, Opts};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::PATH;
use super::changes::After;
use super::message::push_line;
use super::report::Report;
use super::rings::{Health, Rings};
use super::sealing::SealingKey;
use super::secrets::{
    CERTIFICATES, CERTIFICATES_MAX, Certificate, ITEMS, OPEN, SEALED, SecretKind, SecretLog,
};
use super::signature::SigningKey;
use super::tokens::{EdgeName, ListedEdge, Tokens};
use crate::clock::Clock;
use crate::digest::Digest;
use crate::error::chain;
use crate::site::ProjectId;
use crate::store::{Fence, Store};
use crate::telemetry::Metrics;

/// The longest wait for changes.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// How long a snapshot is sent to others too, although there are newer changes.
const SNAPSHOT_AGE_MAX: Duration = Duration::from_secs(1);
/// The level of compression of snapshots: fast, and a tenth of the size.
const SNAPSHOT_LEVEL: i32 = 1;
/// An edge that has not asked for so long does not count as following.
const SEEN_SECONDS: u64 = 90;
const SEEN: Duration = Duration::from_secs(SEEN_SECONDS);
/// How often changes are passed on to the next rings.
const STEP: Duration = Duration::from_millis(200);
/// The metrics are set after this many of these steps.
const MEASURED_STEPS: u64 = 5;
/// The shortest wait of an edge that reports more often because there are several rings.
const REPORT_TIME: Duration = Duration::from_millis(250);
/// Fewer requests between two reports tell nothing about errors.
const JUDGED_REQUESTS: u64 = 20;
/// A smaller share of errors is no reason to stop.
const ERRORS_SHARE: f64 = 0.05;
/// The end of the sentence about an edge with errors.
const OF_ERRORS: &str = "with errors, which is more than before";

/// The answer to a request for changes or secrets that names no position.
const POSITION_MISSING: &str = "this needs ?identity= and &after=\n";

/// A source.
#[derive(Debug)]
pub struct Source {
    rings: Arc<Rings>,
    secrets: Arc<SecretLog>,
    certificates: Box<dyn Certificates>,
    /// The revision of the secrets that each edge has, and when it has asked last.
    applied: Mutex<BTreeMap<EdgeName, (u64, u64)>>,
    /// Changes when an edge has applied secrets.
    progress: watch::Sender<u64>,
    store: Arc<Store>,
    key: SigningKey,
    tokens: Tokens,
    clock: Clock,
    seen: Mutex<BTreeMap<EdgeName, Seen>>,
    /// One for each ring.
    snapshots: Vec<tokio::sync::Mutex<Option<Snapshot>>>,
    /// Cancelled when this process answers no more.
    ending: CancellationToken,
    requests: IntCounterVec,
    following: IntGauge,
    lag: IntGaugeVec,
    skew: IntGauge,
    versions: IntGauge,
    frozen: IntGauge,
    held: IntGaugeVec,
}

/// The parts of the process that a source uses.
#[derive(Debug)]
pub struct SourceParts {
    /// The changes.
    pub rings: Arc<Rings>,
    /// The objects.
    pub store: Arc<Store>,
    /// The secrets.
    pub secrets: Arc<SecretLog>,
    /// The certificates that the secrets name.
    pub certificates: Box<dyn Certificates>,
    /// The key that signs.
    pub key: SigningKey,
    /// The edges.
    pub tokens: Tokens,
}

/// The certificates of a source.
pub trait Certificates: std::fmt::Debug + Send + Sync {
    /// Returns the certificate of an item; `None` if there is none any more.
    fn certificate(&self, key: &str) -> Option<Certificate>;
}

/// What an edge has asked for last.
#[derive(Clone, Debug)]
struct Seen {
    at: u64,
    moment: Instant,
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
    /// The usual share of errors among its answers.
    usual: f64,
}

#[derive(Clone, Debug)]
struct Snapshot {
    revision: u64,
    made_at: Instant,
    content: Bytes,
    signature: String,
}

/// A request of an edge.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its path.
    pub path: String,
    /// Its query.
    pub query: String,
    /// The value of `Authorization`.
    pub authorization: Vec<u8>,
    /// The value of `User-Agent`, for lists.
    pub program: String,
}

/// An answer.
#[derive(Debug)]
pub enum Answer {
    /// A status without content other than a sentence.
    Status(u16, &'static str),
    /// A signed message.
    Message {
        /// The content.
        content: Bytes,
        /// Whether it is compressed with zstd.
        is_compressed: bool,
        /// The signature of the content without compression.
        signature: String,
    },
    /// A file of this length.
    File(File, u64),
    /// The bytes of a file.
    Content(Bytes),
}

impl Answer {
    /// Returns its status.
    pub(super) fn status(&self) -> u16 {
        match self {
            Self::Status(status, _) => *status,
            Self::Message { .. } | Self::File(..) | Self::Content(_) => 200,
        }
    }
}

// === impl Request ===

impl Request {
    fn query(&self, name: &str) -> Option<&str> {
        let mut members = self.query.split('&');
        members.find_map(|member| member.strip_prefix(name)?.strip_prefix('='))
    }

    /// Returns the identity and the revision that an edge has, and how long it waits.
    pub(super) fn position(&self) -> Option<(&str, u64, Duration)> {
        let identity = self.query("identity")?;
        let after = self.query("after")?.parse().ok()?;
        let wait = self.query("wait").and_then(|wait| wait.parse().ok());
        let wait = Duration::from_secs(wait.unwrap_or(0)).min(WAIT_MAX);
        Some((identity, after, wait))
    }
}

// === impl Source ===

impl Source {
    /// Makes a source. It ends to answer when `ending` is cancelled.
    #[must_use]
    pub fn new(parts: SourceParts, metrics: &Metrics, ending: CancellationToken) -> Self {
        let SourceParts {
            rings,
            store,
            secrets,
            certificates,
            key,
            tokens,
        } = parts;
        let requests = Opts::new(
            "follow_source_requests_total",
            "Answers to edges that follow this node, by what they asked for and status.",
        );
        let following = IntGauge::new(
            "follow_source_edges",
            "How many edges have asked for changes in the last 90 seconds.",
        );
        let gauge = |name, help| metrics.register(IntGauge::new(name, help));
        let gauges =
            |name, help, label| metrics.register(IntGaugeVec::new(Opts::new(name, help), &[label]));
        Self {
            snapshots: (0..rings.count())
                .map(|_| tokio::sync::Mutex::default())
                .collect(),
            rings,
            secrets,
            certificates,
            applied: Mutex::default(),
            progress: watch::Sender::new(0),
            store,
            key,
            tokens,
            clock: Clock::System,
            seen: Mutex::default(),
            ending,
            requests: metrics.register(IntCounterVec::new(requests, &["kind", "status"])),
            following: metrics.register(following),
            lag: gauges(
                "follow_source_lag_revisions",
                "How many changes each edge is behind its ring.",
                "edge",
            ),
            skew: gauge(
                "follow_source_skew_revisions",
                "How many changes the edge that is furthest behind is behind its ring.",
            ),
            versions: gauge(
                "follow_source_versions",
                "How many versions of the program the edges that follow have.",
            ),
            frozen: gauge(
                "follow_source_frozen",
                "Whether an operator has frozen this node, so that edges get no changes.",
            ),
            held: gauges(
                "follow_source_waiting_projects",
                "How many projects have a change that waits for a ring.",
                "ring",
            ),
        }
    }

    pub(super) fn ending(&self) -> &CancellationToken {
        &self.ending
    }

    /// Answers a request.
    pub(super) async fn answer(self: &Arc<Self>, request: &Request) -> Answer {
        let asked = request.path.strip_prefix(PATH);
        let Some(edge) = self.tokens.holder(&request.authorization) else {
            self.requests.with_label_values(&["token", "401"]).inc();
            let why = "this needs the token of an edge; `waypost edge add` makes one\n";
            return Answer::Status(401, why);
        };
        let (kind, answer) = match asked {
            Some("changes") => ("changes", self.changes(request, edge).await),
            Some("secrets") => ("secrets", self.secrets(request, edge).await),
            Some("certificates") => ("certificates", self.certificates(request, edge).await),
            Some("snapshot") => ("snapshot", self.snapshot(edge).await),
            Some(asked) if asked.starts_with("objects/") => {
                let digest = asked.trim_start_matches("objects/").to_owned();
                ("object", self.object(digest).await)
            }
            _ => (
                "other",
                Answer::Status(
                    404,
                    "changes, snapshot, secrets, certificates or objects/{digest}\n",
                ),
            ),
        };
        let labels = [kind, &answer.status().to_string()];
        self.requests.with_label_values(&labels).inc();
        answer
    }

    async fn changes(self: &Arc<Self>, request: &Request, edge: ListedEdge) -> Answer {
        let Some((identity, after, wait)) = request.position() else {
            return Answer::Status(400, POSITION_MISSING);
        };
        let ring = edge.ring;
        let log = self.rings.log(ring);
        self.see(&edge, request, identity, after);
        // The edges of several rings report more often.
        let wait = match self.rings.count() {
            1 => wait,
            _ => wait.min((self.rings.hold() / 8).max(REPORT_TIME)),
        };
        let mut latest = log.latest();
        let is_current = identity == log.identity() && *latest.borrow_and_update() == after;
        if is_current || !self.rings.waiting(ring).0 {
            tokio::select! {
                _changed = latest.changed() => {}
                () = self.ending.cancelled() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        // An edge may have been removed while it waited, or be in another ring.
        match self.tokens.holder(&request.authorization) {
            None => return Answer::Status(401, "this edge was removed\n"),
            Some(now) if now.ring != ring => return Answer::Status(204, ""),
            Some(_) if !self.rings.waiting(ring).0 => return Answer::Status(204, ""),
            Some(_) => {}
        }
        let (source, identity) = (Arc::clone(self), identity.to_owned());
        self.made(
            move || match source.rings.log(ring).after(&identity, after) {
                After::Gone => Answer::Status(410, "take a snapshot\n"),
                After::Nothing => Answer::Status(204, ""),
                After::Message { content, revision } => {
                    source.sent(&edge.name, revision);
                    Answer::Message {
                        signature: source.key.sign(&content),
                        content: content.into(),
                        is_compressed: false,
                    }
                }
            },
        )
        .await
    }

    async fn secrets(self: &Arc<Self>, request: &Request, edge: ListedEdge) -> Answer {
        let Some((identity, after, wait)) = request.position() else {
            return Answer::Status(400, POSITION_MISSING);
        };
        let is_this_life = identity == self.secrets.identity().id;
        let applied = if is_this_life { after } else { 0 };
        self.applied()
            .insert(edge.name.clone(), (applied, self.clock.unix_seconds()));
        self.progress.send_modify(|count| *count += 1);
        let mut latest = self.secrets.latest();
        if is_this_life && *latest.borrow_and_update() == after {
            tokio::select! {
                _changed = latest.changed() => {}
                () = self.ending.cancelled() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        // An edge may have been removed while it waited, or has got a key.
        let Some(edge) = self.tokens.holder(&request.authorization) else {
            return Answer::Status(401, "this edge was removed\n");
        };
        let (source, identity) = (Arc::clone(self), identity.to_owned());
        self.made(move || {
            let only = edge.key.is_none().then_some(SecretKind::Challenge);
            let message = source.secrets.after(&identity, after, only);
            let Some(message) = message else {
                return Answer::Status(204, "");
            };
            source.seal(edge.key, ITEMS, &message)
        })
        .await
    }

    async fn certificates(self: &Arc<Self>, request: &Request, edge: ListedEdge) -> Answer {
        let Some(key) = edge.key else {
            let why = "this edge has no key; `waypost edge set NAME --key` sets it\n";
            return Answer::Status(403, why);
        };
        let keys = request.query("keys").unwrap_or_default().split(',');
        let keys: Vec<String> = keys.map(str::to_owned).collect();
        if keys.len() > CERTIFICATES_MAX {
            return Answer::Status(400, "at most 16 certificates\n");
        }
        let source = Arc::clone(self);
        self.made(move || {
            let mut message = Vec::new();
            for wanted in keys {
                if let Some(found) = source.certificates.certificate(&wanted) {
                    push_line(&mut message, &found);
                }
            }
            source.seal(Some(key), CERTIFICATES, &message)
        })
        .await
    }

    async fn made(&self, make: impl FnOnce() -> Answer + Send + 'static) -> Answer {
        let made = tokio::task::spawn_blocking(make).await;
        made.unwrap_or(Answer::Status(500, "a panic\n"))
    }

    /// Encrypts a message for an edge with a key, and signs it.
    fn seal(&self, key: Option<SealingKey>, purpose: &str, message: &[u8]) -> Answer {
        let content = match key {
            None => [&[OPEN], message].concat(),
            Some(key) => match key.seal(purpose, message) {
                Some(sealed) => [&[SEALED], &sealed[..]].concat(),
                None => return Answer::Status(500, "the message cannot be encrypted\n"),
            },
        };
        Answer::Message {
            signature: self.key.sign(&content),
            content: content.into(),
            is_compressed: false,
        }
    }

    /// Waits until every edge that follows has applied the secrets up to a revision, at most for a
    /// time. Returns the edges that have not.
    pub async fn applied_by_all(&self, revision: u64, time: Duration) -> Vec<EdgeName> {
        let mut progress = self.progress.subscribe();
        let until = tokio::time::Instant::now() + time;
        loop {
            progress.borrow_and_update();
            let now = self.clock.unix_seconds();
            let behind = |(edge, (applied, at)): (&EdgeName, &(u64, u64))| {
                (*applied < revision && now < at + SEEN_SECONDS).then(|| edge.clone())
            };
            let behind: Vec<EdgeName> = self.applied().iter().filter_map(behind).collect();
            if behind.is_empty() {
                return behind;
            }
            match tokio::time::timeout_at(until, progress.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return behind,
            }
        }
    }

    fn applied(&self) -> MutexGuard<'_, BTreeMap<EdgeName, (u64, u64)>> {
        // Every change is an insertion, so the value is whole after a panic too.
        self.applied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn snapshot(self: &Arc<Self>, edge: ListedEdge) -> Answer {
        let ring = usize::from(edge.ring).min(self.rings.count() - 1);
        if !self.rings.waiting(edge.ring).0 {
            return Answer::Status(503, "the ring of this edge gets nothing yet\n");
        }
        // Held while a snapshot is made: others wait for the same one.
        let mut kept = self.snapshots[ring].lock().await;
        let latest = self.rings.log(edge.ring).revision();
        let is_fresh =
            |kept: &Snapshot| kept.revision == latest || kept.made_at.elapsed() < SNAPSHOT_AGE_MAX;
        let snapshot = match kept.as_ref().filter(|kept| is_fresh(kept)) {
            Some(kept) => kept.clone(),
            None => {
                let source = Arc::clone(self);
                let made =
                    tokio::task::spawn_blocking(move || source.make_snapshot(edge.ring)).await;
                match made {
                    Ok(Ok(made)) => kept.insert(made).clone(),
                    Ok(Err(error)) => {
                        log::error!(target: "follow", "make a snapshot: {error}");
                        return Answer::Status(500, "no snapshot could be made\n");
                    }
                    Err(_panic) => return Answer::Status(500, "a panic\n"),
                }
            }
        };
        self.sent(&edge.name, snapshot.revision);
        Answer::Message {
            content: snapshot.content,
            is_compressed: true,
            signature: snapshot.signature,
        }
    }

    fn make_snapshot(&self, ring: u8) -> io::Result<Snapshot> {
        let since = Instant::now();
        let (revision, message) = self.rings.log(ring).snapshot();
        let content: Bytes = zstd::bulk::compress(&message, SNAPSHOT_LEVEL)?.into();
        let (bytes, took_ms) = (content.len(), since.elapsed().as_millis());
        log::info!(target: "follow", revision, bytes, took_ms; "made a snapshot of {bytes} bytes");
        Ok(Snapshot {
            revision,
            made_at: Instant::now(),
            signature: self.key.sign(&message),
            content,
        })
    }

    async fn object(self: &Arc<Self>, digest: String) -> Answer {
        let Ok(digest) = Digest::parse(&digest) else {
            return Answer::Status(400, "a digest has 64 hexadecimal digits\n");
        };
        find_object(Arc::clone(&self.store), digest).await
    }

    fn see(&self, edge: &ListedEdge, request: &Request, identity: &str, revision: u64) {
        let now = Instant::now();
        let report = Report::of(|name| request.query(name)?.parse().ok());
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

    fn sent(&self, edge: &EdgeName, revision: u64) {
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
            let edges = edges.get_or_init(|| self.tokens.list().unwrap_or_default());
            self.health(edges, ring)
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
            if now.duration_since(seen.moment) > SEEN {
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

    /// Returns whom the promotion of a project waits for: an edge that follows and does not have it;
    /// `None` if all have it.
    #[must_use]
    pub fn waits_for(&self, project: &ProjectId, fence: Fence) -> Option<String> {
        let now = Instant::now();
        let edges = self.tokens.list().unwrap_or_default();
        let seen = self.seen();
        edges.iter().find_map(|edge| {
            let seen = seen.get(&edge.name)?;
            if now.duration_since(seen.moment) > SEEN {
                return None;
            }
            let known = self.rings.log(edge.ring).known(project);
            let (revision, current) =
                known.map_or((0, None), |(revision, known)| (revision, known.current));
            let has = current.is_some_and(|current| current.fence() >= fence)
                && seen.is_this_life
                && seen.revision >= revision;
            (!has).then(|| format!("{} of ring {}", edge.name, edge.ring))
        })
    }

    /// Returns what changes when an edge has asked again.
    #[must_use]
    pub fn progress(&self) -> watch::Receiver<u64> {
        self.progress.subscribe()
    }

    /// Updates the metrics: how many edges follow, how far each is behind, and which versions run.
    fn measure(&self) {
        let now = Instant::now();
        let (mut following, mut skew) = (0, 0);
        let mut versions = BTreeSet::new();
        self.lag.reset();
        let edges = self.tokens.list().unwrap_or_default();
        let seen = self.seen();
        let gauge = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        for edge in edges {
            let seen = seen.get(&edge.name);
            let seen = seen.filter(|seen| now.duration_since(seen.moment) <= SEEN);
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
            self.lag.with_label_values(&labels).set(gauge(lag));
        }
        drop(seen);
        self.following.set(following);
        self.skew.set(gauge(skew));
        self.versions.set(gauge(versions.len() as u64));
        self.frozen.set(i64::from(self.rings.is_frozen()));
        for ring in 0..self.rings.count() {
            let ring = u8::try_from(ring).unwrap_or(u8::MAX);
            let waiting = self.rings.waiting(ring).1 as u64;
            let gauges = self.held.with_label_values(&[&ring.to_string()]);
            gauges.set(gauge(waiting));
        }
    }

    /// Returns the rings, and each edge that has a token with its last report.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let now = Instant::now();
        let edges = self.tokens.list().unwrap_or_default();
        let seen = self.seen();
        let applied = self.applied().clone();
        let secrets = self.secrets.revision();
        let edges = edges.into_iter().map(|edge| {
            let name = edge.name.as_str();
            let Some(seen) = seen.get(&edge.name) else {
                return json!({ "name": name, "ring": edge.ring, "state": "never_seen" });
            };
            let latest = self.rings.log(edge.ring).revision();
            let applied = applied.get(&edge.name).map(|(applied, _)| *applied);
            json!({
                "name": name,
                "ring": edge.ring,
                "state": match now.duration_since(seen.moment) <= SEEN {
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
}

/// Opens an object of a store.
pub(super) async fn find_object(store: Arc<Store>, digest: Digest) -> Answer {
    let found = tokio::task::spawn_blocking(move || store.object(&digest)).await;
    match found {
        Ok(Ok(Some((file, length)))) => Answer::File(file, length),
        Ok(Ok(None)) => Answer::Status(404, "the store has no such object\n"),
        Ok(Err(error)) => {
            log::error!(target: "follow", "read {digest} for an edge: {}", chain(&error));
            Answer::Status(500, "the object cannot be read\n")
        }
        Err(_panic) => Answer::Status(500, "a panic\n"),
    }
}

/// Returns why an edge is not well, and its usual share of errors, from two reports of one process.
fn judge(before: Option<&Seen>, report: &Report) -> (Option<String>, f64) {
    let usual = before.map_or(0.0, |before| before.usual);
    if report.failing > 0 {
        let failing = report.failing;
        return (
            Some(format!("does not serve {failing} current releases")),
            usual,
        );
    }
    let Some(before) = before else {
        return (None, usual);
    };
    let requests = report.requests.saturating_sub(before.report.requests);
    let errors = report.errors.saturating_sub(before.report.errors);
    if requests < JUDGED_REQUESTS {
        // Too few tell nothing: what was is still so.
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
    use super::*;

    fn seen(report: Report, ill: Option<String>, usual: f64) -> Seen {
        Seen {
            at: 0,
            moment: Instant::now(),
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
    }
}
