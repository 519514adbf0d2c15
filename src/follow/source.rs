//! The responses of a source to the edges that follow it.
//!
//! | request | response |
//! |---|---|
//! | `GET /v1/follow/changes?identity=…&after=N&wait=S` | the changes after a revision, as soon as there are some; 204 if there are none in time; 410 if the edge must compare everything |
//! | `GET /v1/follow/snapshot` | everything |
//! | `GET /v1/follow/objects/{digest}` | an inventory or a file of a release |
//! | `GET /v1/follow/secrets?identity=…&after=N&wait=S` | the secrets that have changed after a revision; 204 if there are none in time; all of them for another identity, and with `&all=1` as soon as the edge has a key |
//! | `GET /v1/follow/certificates?keys=…` | certificates with their private keys, by the keys of their items |
//! | `POST /v1/follow/numbers?life=…&sequence=N` | 204 once the counts are added; the content is a batch, compressed with zstd |
//!
//! Every request has the token of an edge. Secrets and certificates are encrypted for that edge.
//! Changes and snapshots have their signature in a field, and a snapshot is compressed with zstd. A
//! source makes a snapshot at most once a second; all edges that ask within this second get the
//! same one.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use prometheus::{IntCounterVec, IntGaugeVec};
use rayon::prelude::*;
use tokio_util::sync::CancellationToken;

use super::PATH;
use super::changes::After;
use super::fleet::Fleet;
use super::message::push_line;
use super::metrics::SourceMetrics;
use super::rings::Rings;
use super::sealing::SealingKey;
use super::secrets::{
    CERTIFICATES, CERTIFICATES_MAX, Certificate, ITEMS, OPEN, SEALED, SecretKind, SecretLog,
};
use super::signature::SigningKey;
use super::store_revision::StoreRevision;
use super::tokens::{ListedEdge, Tokens};
use crate::digest::Digest;
use crate::error::chain;
use crate::numbers::received::{Batch, ReceiveError, Receiver};
use crate::store::{FileError, Store};
use crate::telemetry::{Metrics, Part};

/// The longest wait for changes.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// How long a snapshot is sent to others too, although there are newer changes.
const SNAPSHOT_AGE_MAX: Duration = Duration::from_secs(1);
/// How many bytes of a snapshot are compressed together.
const FRAME_BYTES: usize = 8 << 20;
/// The level of compression of snapshots: fast, and a tenth of the size.
const SNAPSHOT_LEVEL: i32 = 1;
/// The shortest wait of an edge that reports more often because there are several rings.
const REPORT_TIME: Duration = Duration::from_millis(250);
/// The longest batch of counts that is read, in bytes without compression.
const BATCH_BYTES_MAX: u64 = 16 << 20;
/// The response to a request for changes or secrets that names no position.
const POSITION_MISSING: &str = "this needs ?identity= and &after=\n";

/// A source.
#[derive(Debug)]
pub struct Source {
    fleet: Arc<Fleet>,
    secrets: Arc<SecretLog>,
    certificates: Box<dyn Certificates>,
    store: Arc<Store>,
    key: SigningKey,
    numbers: Option<Receiver>,
    /// One for each ring.
    snapshots: Vec<tokio::sync::Mutex<Option<Snapshot>>>,
    snapshot_bytes_max: u64,
    part: Part,
    snapshot_bytes: IntGaugeVec,
    /// Cancelled when this process responds no more.
    ending: CancellationToken,
    requests: IntCounterVec,
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
    /// Adds the counts of edges; `None` if nothing is counted.
    pub numbers: Option<Receiver>,
    /// The longest snapshot that edges read, in bytes without compression.
    pub snapshot_bytes_max: u64,
    /// Shows that a snapshot is longer.
    pub part: Part,
}

/// The certificates of a source.
pub trait Certificates: std::fmt::Debug + Send + Sync {
    /// Returns the certificate of an item; `None` if there is none any more.
    ///
    /// # Errors
    ///
    /// When it cannot be read now.
    fn certificate(&self, key: &str) -> Result<Option<Certificate>, FileError>;
}

#[derive(Clone, Debug)]
struct Snapshot {
    revision: u64,
    source_revision: u64,
    store: Option<StoreRevision>,
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
    /// Its content; `None` if it is no `POST`.
    pub content: Option<Bytes>,
}

/// A response to an edge.
#[derive(Debug)]
pub enum SourceResponse {
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

impl SourceResponse {
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
    pub(super) fn query(&self, name: &str) -> Option<&str> {
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
    /// Makes a source. It stops responding when `ending` is cancelled.
    #[must_use]
    pub fn new(parts: SourceParts, metrics: &Metrics, ending: CancellationToken) -> Self {
        let SourceParts {
            rings,
            store,
            secrets,
            certificates,
            key,
            tokens,
            numbers,
            snapshot_bytes_max,
            part,
        } = parts;
        let SourceMetrics {
            requests,
            snapshot_bytes,
            fleet,
        } = SourceMetrics::new(metrics);
        Self {
            snapshot_bytes_max,
            part,
            snapshot_bytes,
            snapshots: (0..rings.count())
                .map(|_| tokio::sync::Mutex::default())
                .collect(),
            fleet: Arc::new(Fleet::new(rings, &secrets, tokens, fleet)),
            secrets,
            certificates,
            store,
            key,
            numbers,
            ending,
            requests,
        }
    }

    /// Returns the state of the edges.
    #[must_use]
    pub fn fleet(&self) -> &Arc<Fleet> {
        &self.fleet
    }

    pub(super) fn ending(&self) -> &CancellationToken {
        &self.ending
    }

    /// Returns whether a request has the token of an edge.
    pub(super) fn knows(&self, request: &Request) -> bool {
        let tokens = self.fleet.tokens();
        tokens.holder(&request.authorization).is_some()
    }

    /// Responds to a request.
    pub(super) async fn respond(self: &Arc<Self>, request: &Request) -> SourceResponse {
        let asked = request.path.strip_prefix(PATH);
        let Some(edge) = self.fleet.tokens().holder(&request.authorization) else {
            self.requests.with_label_values(&["token", "401"]).inc();
            let why = "this needs the token of an edge; `waypost edge add` makes one\n";
            return SourceResponse::Status(401, why);
        };
        let (kind, response) = match asked {
            Some("changes") => ("changes", self.changes(request, edge).await),
            Some("secrets") => ("secrets", self.secrets(request, edge).await),
            Some("certificates") => ("certificates", self.certificates(request, edge).await),
            Some("snapshot") => ("snapshot", self.snapshot(request, edge).await),
            Some("numbers") => ("numbers", self.numbers(request, edge).await),
            Some(asked) if asked.starts_with("objects/") => {
                let digest = asked.trim_start_matches("objects/").to_owned();
                ("object", self.object(digest).await)
            }
            _ => (
                "other",
                SourceResponse::Status(
                    404,
                    "changes, snapshot, secrets, certificates, numbers or objects/{digest}\n",
                ),
            ),
        };
        let labels = [kind, &response.status().to_string()];
        self.requests.with_label_values(&labels).inc();
        response
    }

    async fn changes(self: &Arc<Self>, request: &Request, edge: ListedEdge) -> SourceResponse {
        let Some((identity, after, wait)) = request.position() else {
            return SourceResponse::Status(400, POSITION_MISSING);
        };
        let ring = edge.ring;
        let log = self.fleet.rings().log(ring);
        self.fleet.see(&edge, request, identity, after);
        // The edges of several rings report more often.
        let wait = match self.fleet.rings().count() {
            1 => wait,
            _ => wait.min((self.fleet.rings().hold() / 8).max(REPORT_TIME)),
        };
        let mut latest = log.latest();
        let is_current = identity == log.identity() && *latest.borrow_and_update() == after;
        let has_begun = || self.fleet.rings().waiting(ring).0;
        if is_current || !has_begun() {
            // A ring that begins counts as a change.
            let changed = async { while latest.changed().await.is_ok() && !has_begun() {} };
            tokio::select! {
                () = changed => {}
                () = self.ending.cancelled() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        // An edge may have been removed while it waited, or be in another ring.
        match self.fleet.tokens().holder(&request.authorization) {
            None => return SourceResponse::Status(401, "this edge was removed\n"),
            Some(now) if now.ring != ring => return SourceResponse::Status(204, ""),
            Some(_) if !has_begun() => {
                return SourceResponse::Status(204, "");
            }
            Some(_) => {}
        }
        let (source, identity) = (Arc::clone(self), identity.to_owned());
        self.made(
            move || match source.fleet.rings().log(ring).after(&identity, after) {
                After::Gone => SourceResponse::Status(410, "take a snapshot\n"),
                After::Nothing => SourceResponse::Status(204, ""),
                After::Message { content, revision } => {
                    source.fleet.sent(&edge.name, revision);
                    SourceResponse::Message {
                        signature: source.key.sign(&content),
                        content: content.into(),
                        is_compressed: false,
                    }
                }
            },
        )
        .await
    }

    async fn secrets(self: &Arc<Self>, request: &Request, edge: ListedEdge) -> SourceResponse {
        let Some((identity, after, wait)) = request.position() else {
            return SourceResponse::Status(400, POSITION_MISSING);
        };
        let is_this_life = identity == self.secrets.identity().id;
        let applied = if is_this_life { after } else { 0 };
        self.fleet.has_applied(&edge.name, applied);
        let wants_all = request.query("all") == Some("1");
        let mut latest = self.secrets.latest();
        let is_current = is_this_life && *latest.borrow_and_update() == after;
        if is_current && !(wants_all && edge.key.is_some()) {
            tokio::select! {
                _changed = latest.changed() => {}
                () = self.ending.cancelled() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        // An edge may have been removed while it waited, or has got a key.
        let Some(edge) = self.fleet.tokens().holder(&request.authorization) else {
            return SourceResponse::Status(401, "this edge was removed\n");
        };
        let (source, identity) = (Arc::clone(self), identity.to_owned());
        self.made(move || {
            let only = edge.key.is_none().then_some(SecretKind::Challenge);
            let wants_all = wants_all && edge.key.is_some();
            let message = source.secrets.after(&identity, after, wants_all, only);
            let Some(message) = message else {
                return SourceResponse::Status(204, "");
            };
            source.seal(edge.key, ITEMS, &message)
        })
        .await
    }

    async fn certificates(self: &Arc<Self>, request: &Request, edge: ListedEdge) -> SourceResponse {
        let Some(key) = edge.key else {
            let why = "this edge has no key; `waypost edge set NAME --key` sets it\n";
            return SourceResponse::Status(403, why);
        };
        let keys = request.query("keys").unwrap_or_default().split(',');
        let keys: Vec<String> = keys.map(str::to_owned).collect();
        if keys.len() > CERTIFICATES_MAX {
            return SourceResponse::Status(400, "at most 16 certificates\n");
        }
        let source = Arc::clone(self);
        self.made(move || {
            let mut message = Vec::new();
            for wanted in keys {
                match source.certificates.certificate(&wanted) {
                    Ok(Some(found)) => push_line(&mut message, &found),
                    Ok(None) => {}
                    // The edge asks again. It would never ask again for one that was left out.
                    Err(error) => {
                        log::error!(target: "follow", "read the certificate {wanted} for an edge: {}", chain(&error));
                        return SourceResponse::Status(503, "a certificate cannot be read now\n");
                    }
                }
            }
            source.seal(Some(key), CERTIFICATES, &message)
        })
        .await
    }

    async fn numbers(self: &Arc<Self>, request: &Request, edge: ListedEdge) -> SourceResponse {
        let sequence = request.query("sequence").and_then(|text| text.parse().ok());
        let (Some(life), Some(sequence)) = (request.query("life"), sequence) else {
            return SourceResponse::Status(400, "this needs ?life= and &sequence=\n");
        };
        let Some(content) = request.content.clone() else {
            return SourceResponse::Status(405, "only POST\n");
        };
        let (source, life) = (Arc::clone(self), life.to_owned());
        self.made(move || {
            let Some(numbers) = &source.numbers else {
                return SourceResponse::Status(204, "");
            };
            let edge = edge.name.as_str();
            let added = unpack(&content).and_then(|content| {
                numbers.receive(&Batch {
                    edge,
                    life: &life,
                    sequence,
                    content: &content,
                })
            });
            let Err(error) = added else {
                return SourceResponse::Status(204, "");
            };
            log::warn!(target: "numbers", edge; "the counts of the edge {edge} are not added: {}", chain(&error));
            match error {
                ReceiveError::Invalid(_) => SourceResponse::Status(400, "the counts are not valid\n"),
                ReceiveError::Newer => SourceResponse::Status(501, "this node is older than the edge\n"),
                ReceiveError::Store(_) => SourceResponse::Status(503, "the store cannot be written\n"),
            }
        })
        .await
    }

    async fn made(&self, make: impl FnOnce() -> SourceResponse + Send + 'static) -> SourceResponse {
        let made = tokio::task::spawn_blocking(make).await;
        made.unwrap_or(SourceResponse::Status(500, "a panic\n"))
    }

    /// Encrypts a message for an edge with a key, and signs it.
    fn seal(&self, key: Option<SealingKey>, purpose: &str, message: &[u8]) -> SourceResponse {
        let content = match key {
            None => [&[OPEN], message].concat(),
            Some(key) => match key.seal(purpose, message) {
                Some(sealed) => [&[SEALED], &sealed[..]].concat(),
                None => return SourceResponse::Status(500, "the message cannot be encrypted\n"),
            },
        };
        SourceResponse::Message {
            signature: self.key.sign(&content),
            content: content.into(),
            is_compressed: false,
        }
    }

    async fn snapshot(self: &Arc<Self>, request: &Request, edge: ListedEdge) -> SourceResponse {
        self.fleet.see_comparison(&edge, request);
        let ring = usize::from(edge.ring).min(self.fleet.rings().count() - 1);
        if !self.fleet.rings().waiting(edge.ring).0 {
            return SourceResponse::Status(503, "the ring of this edge gets nothing yet\n");
        }
        // Held while a snapshot is made: others wait for the same one.
        let mut kept = self.snapshots[ring].lock().await;
        let log = self.fleet.rings().log(edge.ring);
        let latest = (log.revision(), log.source_revision());
        let store = log.store().get();
        let is_fresh = |kept: &Snapshot| {
            (kept.revision, kept.source_revision) == latest && kept.store == store
                || kept.made_at.elapsed() < SNAPSHOT_AGE_MAX
        };
        let snapshot = match kept.as_ref().filter(|kept| is_fresh(kept)) {
            Some(kept) => kept.clone(),
            None => {
                let source = Arc::clone(self);
                let made =
                    tokio::task::spawn_blocking(move || source.make_snapshot(edge.ring)).await;
                match made {
                    Ok(Ok(made)) => kept.insert(made).clone(),
                    Ok(Err(error)) => {
                        log::error!(target: "follow", "cannot make a snapshot: {error}");
                        let why = "no snapshot could be made, or it is too long\n";
                        return SourceResponse::Status(500, why);
                    }
                    Err(_panic) => return SourceResponse::Status(500, "a panic\n"),
                }
            }
        };
        self.fleet.sent(&edge.name, snapshot.revision);
        SourceResponse::Message {
            content: snapshot.content,
            is_compressed: true,
            signature: snapshot.signature,
        }
    }

    fn make_snapshot(&self, ring: u8) -> io::Result<Snapshot> {
        let since = Instant::now();
        let log = self.fleet.rings().log(ring);
        let store = log.store().get();
        let (revision, source_revision, message) = log.snapshot();
        self.check_length(ring, message.len() as u64)?;
        let (content, signature) = rayon::join(|| compressed(&message), || self.key.sign(&message));
        let content = content?;
        let bytes = content.len();
        let took_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        log::info!(target: "follow", revision, bytes, took_ms; "made a snapshot of {bytes} bytes");
        Ok(Snapshot {
            revision,
            source_revision,
            store,
            made_at: Instant::now(),
            signature,
            content,
        })
    }

    /// Refuses a snapshot that no edge would read. Edges serve what they have.
    fn check_length(&self, ring: u8, length: u64) -> io::Result<()> {
        let ring = ring.to_string();
        let gauge = self.snapshot_bytes.with_label_values(&[&*ring]);
        gauge.set(i64::try_from(length).unwrap_or(i64::MAX));
        let max = self.snapshot_bytes_max;
        if length <= max {
            self.part.recover();
            return Ok(());
        }
        let why = format!(
            "the list of all sites has {length} bytes, and edges read at most {max}: raise \
             `store.follow.snapshot_bytes_max` on every edge, and then `edges.snapshot_bytes_max`"
        );
        self.part.fail(&why);
        Err(io::Error::other(why))
    }

    async fn object(self: &Arc<Self>, digest: String) -> SourceResponse {
        let Ok(digest) = Digest::parse(&digest) else {
            return SourceResponse::Status(400, "a digest has 64 hexadecimal digits\n");
        };
        find_object(Arc::clone(&self.store), digest).await
    }
}

/// Compresses a message on all processors: to frames of zstd, one after the other (RFC 8878 §3.1).
fn compressed(message: &[u8]) -> io::Result<Bytes> {
    let frames: Vec<Vec<u8>> = message
        .par_chunks(FRAME_BYTES)
        .map(|part| zstd::bulk::compress(part, SNAPSHOT_LEVEL))
        .collect::<io::Result<_>>()?;
    Ok(frames.concat().into())
}

/// Removes the compression of a batch of counts.
fn unpack(content: &[u8]) -> Result<Vec<u8>, ReceiveError> {
    let invalid = |error: io::Error| ReceiveError::Invalid(error.to_string());
    let mut unpacked = Vec::new();
    zstd::stream::read::Decoder::new(content)
        .map_err(invalid)?
        .take(BATCH_BYTES_MAX + 1)
        .read_to_end(&mut unpacked)
        .map_err(invalid)?;
    match unpacked.len() as u64 > BATCH_BYTES_MAX {
        true => Err(ReceiveError::Invalid(format!(
            "they have more than {BATCH_BYTES_MAX} bytes"
        ))),
        false => Ok(unpacked),
    }
}

/// Opens an object of a store.
pub(super) async fn find_object(store: Arc<Store>, digest: Digest) -> SourceResponse {
    let found = tokio::task::spawn_blocking(move || store.object(&digest)).await;
    match found {
        Ok(Ok(Some((file, length)))) => SourceResponse::File(file, length),
        Ok(Ok(None)) => SourceResponse::Status(404, "the store has no such object\n"),
        Ok(Err(error)) => {
            log::error!(target: "follow", "cannot read {digest} for an edge: {}", chain(&error));
            SourceResponse::Status(500, "the object cannot be read\n")
        }
        Err(_panic) => SourceResponse::Status(500, "a panic\n"),
    }
}
