//! The answers of a source to the edges that follow it.
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/follow/changes?identity=…&after=N&wait=S` | the changes after a revision, as soon as there are some; 204 if there are none in time; 410 if the edge must compare everything |
//! | `GET /v1/follow/snapshot` | everything |
//! | `GET /v1/follow/objects/{digest}` | an inventory or a file of a release |
//!
//! Every request has the token of an edge. Changes and snapshots have their signature in a field,
//! and a snapshot is compressed with zstd. A snapshot is made when it is asked for, at most once
//! a second, and all edges that ask meanwhile get the same one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use prometheus::{IntCounterVec, IntGauge, Opts};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::PATH;
use super::changes::{After, ChangeLog};
use super::signature::SigningKey;
use super::tokens::{EdgeName, Tokens};
use crate::clock::Clock;
use crate::digest::Digest;
use crate::error::chain;
use crate::store::Store;
use crate::telemetry::Metrics;

/// The longest wait for changes.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// How long a snapshot is sent to others too, although there are newer changes.
const SNAPSHOT_AGE_MAX: Duration = Duration::from_secs(1);
/// The level of compression of snapshots: fast, and a tenth of the size.
const SNAPSHOT_LEVEL: i32 = 1;
/// An edge that has not asked for so long does not count as following.
const SEEN_SECONDS: u64 = 90;

/// A source.
#[derive(Debug)]
pub struct Source {
    log: Arc<ChangeLog>,
    store: Arc<Store>,
    key: SigningKey,
    tokens: Tokens,
    clock: Clock,
    seen: Mutex<BTreeMap<EdgeName, Seen>>,
    snapshot: tokio::sync::Mutex<Option<Snapshot>>,
    /// Cancelled when this process answers no more.
    ending: CancellationToken,
    requests: IntCounterVec,
    following: IntGauge,
}

/// What an edge has asked for last.
#[derive(Clone, Debug)]
struct Seen {
    at: u64,
    /// The revision that it has, and whether that is of this life.
    revision: u64,
    is_this_life: bool,
    program: String,
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
}

// === impl Source ===

impl Source {
    /// Makes a source. It ends to answer when `ending` is cancelled.
    #[must_use]
    pub fn new(
        log: Arc<ChangeLog>,
        store: Arc<Store>,
        key: SigningKey,
        tokens: Tokens,
        metrics: &Metrics,
        ending: CancellationToken,
    ) -> Self {
        let requests = Opts::new(
            "follow_source_requests_total",
            "Answers to edges that follow this node, by what they asked for and status.",
        );
        let following = IntGauge::new(
            "follow_source_edges",
            "How many edges have asked for changes in the last 90 seconds.",
        );
        Self {
            log,
            store,
            key,
            tokens,
            clock: Clock::System,
            seen: Mutex::default(),
            snapshot: tokio::sync::Mutex::default(),
            ending,
            requests: metrics.register(IntCounterVec::new(requests, &["kind", "status"])),
            following: metrics.register(following),
        }
    }

    /// Waits until the source ends to answer.
    pub async fn ended(&self) {
        self.ending.cancelled().await;
    }

    /// Returns whether the source ends to answer, so that connections are closed.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.ending.is_cancelled()
    }

    /// Answers a request.
    pub async fn answer(self: &Arc<Self>, request: &Request) -> Answer {
        let asked = request.path.strip_prefix(PATH);
        let (kind, answer) = match asked {
            _ if self.tokens.holder(&request.authorization).is_none() => {
                let why = "this needs the token of an edge; `waypost edge add` makes one\n";
                ("token", Answer::Status(401, why))
            }
            Some("changes") => ("changes", self.changes(request).await),
            Some("snapshot") => ("snapshot", self.snapshot().await),
            Some(asked) if asked.starts_with("objects/") => {
                let digest = asked.trim_start_matches("objects/").to_owned();
                ("object", self.object(digest).await)
            }
            _ => (
                "other",
                Answer::Status(404, "changes, snapshot or objects/{digest}\n"),
            ),
        };
        let status = match &answer {
            Answer::Status(status, _) => *status,
            Answer::Message { .. } | Answer::File(..) => 200,
        };
        let labels = [kind, &status.to_string()];
        self.requests.with_label_values(&labels).inc();
        answer
    }

    async fn changes(self: &Arc<Self>, request: &Request) -> Answer {
        let query = |name: &str| {
            let mut members = request.query.split('&');
            members.find_map(|member| member.strip_prefix(name)?.strip_prefix('='))
        };
        let (Some(identity), Some(Ok(after))) =
            (query("identity"), query("after").map(str::parse::<u64>))
        else {
            return Answer::Status(400, "this needs ?identity= and &after=\n");
        };
        let wait = query("wait").and_then(|wait| wait.parse().ok());
        let wait = Duration::from_secs(wait.unwrap_or(0)).min(WAIT_MAX);
        self.see(request, identity, after);
        let mut latest = self.log.latest();
        if identity == self.log.identity() && *latest.borrow_and_update() == after {
            tokio::select! {
                _changed = latest.changed() => {}
                () = self.ending.cancelled() => {}
                () = tokio::time::sleep(wait) => {}
            }
            // An edge may have been removed while it waited.
            if self.tokens.holder(&request.authorization).is_none() {
                return Answer::Status(401, "this edge was removed\n");
            }
        }
        let (source, identity) = (Arc::clone(self), identity.to_owned());
        let answer =
            tokio::task::spawn_blocking(move || match source.log.after(&identity, after) {
                After::Gone => Answer::Status(410, "take a snapshot\n"),
                After::Nothing => Answer::Status(204, ""),
                After::Message(message) => Answer::Message {
                    signature: source.key.sign(&message),
                    content: message.into(),
                    is_compressed: false,
                },
            });
        answer.await.unwrap_or(Answer::Status(500, "a panic\n"))
    }

    async fn snapshot(self: &Arc<Self>) -> Answer {
        // Held while a snapshot is made: others wait for the same one.
        let mut kept = self.snapshot.lock().await;
        let latest = self.log.revision();
        let is_fresh =
            |kept: &Snapshot| kept.revision == latest || kept.made_at.elapsed() < SNAPSHOT_AGE_MAX;
        let snapshot = match kept.as_ref().filter(|kept| is_fresh(kept)) {
            Some(kept) => kept.clone(),
            None => {
                let source = Arc::clone(self);
                let made = tokio::task::spawn_blocking(move || source.make_snapshot()).await;
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
        Answer::Message {
            content: snapshot.content,
            is_compressed: true,
            signature: snapshot.signature,
        }
    }

    fn make_snapshot(&self) -> io::Result<Snapshot> {
        let since = Instant::now();
        let (revision, message) = self.log.snapshot();
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
        let source = Arc::clone(self);
        let found = tokio::task::spawn_blocking(move || source.store.object(&digest)).await;
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

    fn see(&self, request: &Request, identity: &str, revision: u64) {
        let Some(edge) = self.tokens.holder(&request.authorization) else {
            return;
        };
        let now = self.clock.unix_seconds();
        let seen = Seen {
            at: now,
            revision,
            is_this_life: identity == self.log.identity(),
            program: request.program.clone(),
        };
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(edge, seen);
        let following = all.values().filter(|seen| now < seen.at + SEEN_SECONDS);
        let following = i64::try_from(following.count()).unwrap_or(i64::MAX);
        self.following.set(following);
    }

    /// Returns the edges with a token, and what is known of each.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let now = self.clock.unix_seconds();
        let latest = self.log.revision();
        let edges = self.tokens.list().unwrap_or_default();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let edges = edges.into_iter().map(|edge| match seen.get(&edge.name) {
            None => json!({ "name": edge.name.as_str(), "state": "never_seen" }),
            Some(seen) => json!({
                "name": edge.name.as_str(),
                "state": match now < seen.at + SEEN_SECONDS {
                    true => "following",
                    false => "away",
                },
                "revision": seen.is_this_life.then_some(seen.revision),
                "lag": seen.is_this_life.then(|| latest.saturating_sub(seen.revision)),
                "seen_seconds_ago": now.saturating_sub(seen.at),
                "program": seen.program,
            }),
        });
        json!({
            "identity": self.log.identity(),
            "revision": latest,
            "sites": self.log.sites(),
            "edges": edges.collect::<Vec<_>>(),
        })
    }
}
