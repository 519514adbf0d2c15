//! Copies of upstreams' responses, for the time in which an upstream fails.
//!
//! It is not a cache for speed: each request goes to the site's server first. If that fails, the
//! last good response to the same request is sent instead of an error. "Fails" means that it has
//! no address, refuses the connection or its certificate is not valid, is too slow to connect, to
//! take the request or to begin its response, closes the connection before a response or sends a
//! malformed one, has too many requests already, or responds 500, 502, 503 or 504. Nothing is
//! replaced after the first byte of a final response has reached the client.
//!
//! ```text
//!  response ─▶ policy ─▶ Collecting ─▶ keeper (a thread) ─▶ file
//!                        in memory,     bounds, eviction
//!                        bounded
//!  failure ──▶ table ──▶ file, compared with its digest ──▶ response
//! ```
//!
//! | what | module |
//! |---|---|
//! | what a request and a response allow | `request`, `policy` |
//! | the content, while the client gets it | `collect` |
//! | which copies there are, and the bounds | `table` |
//! | the thread that writes and removes files | `keeper` |
//! | the format of a file | `file` |
//! | the response that a copy gives | `response` |
//!
//! * Only the response to a `GET` without `Cookie`, `Authorization` and unusual fields is kept, and
//!   only if it has no `Set-Cookie` and depends on no field but `Accept-Encoding`. A reader with
//!   cookies may get a copy, one with `Authorization` gets none.
//! * A copy belongs to the record of its site, and to scheme, host, path and query. Private sites
//!   have no copies.
//! * A client never waits for a copy to be written. If the disk is slow, or too much is collected
//!   already, the copy is dropped and counted.
//! * A response that says that the page has gone, or is not public any more, removes its copies if
//!   the response to the same request could have been kept. Servers answer other requests
//!   differently (unusual fields, cookies, `Range`, `HEAD`), so any client could remove the copies
//!   of pages that all others still get. A page that has really gone loses its copies with the next
//!   usual request.
//! * A successful request with a method that may change the page removes its copies too (RFC 9111
//!   §4.4).

mod response;
mod collect;
mod file;
mod keeper;
mod policy;
mod request;
mod table;

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};

use super::drain::Drain;
use super::reads::Reads;
use crate::clock::Clock;
use crate::index::Index;
use crate::site::{Origin, Site, Visibility};
use crate::telemetry::{Metrics, panics};

pub(super) use collect::Collecting;
use file::Description;
use keeper::Keeper;
use policy::Verdict;
pub(super) use request::Asked;
use request::Kind;
pub(super) use response::{FoundCopy, Reason};
use table::Table;

/// How many responses may wait to be written.
const WAITING_MAX: usize = 256;

/// Fields that are not kept: those of the connection, those that are made for each response, and
/// `Strict-Transport-Security`, which the gateway adds by its own rules.
const LEFT_OUT: [&str; 14] = [
    "age",
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "set-cookie",
    "strict-transport-security",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "warning",
];

/// Where copies are kept, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The directory; `None`: there are no copies.
    pub directory: Option<PathBuf>,
    /// How many bytes the copies of one site may use.
    pub site_bytes_max: u64,
    /// How many bytes all copies may use.
    pub total_bytes_max: u64,
    /// The longest content of a copy.
    pub response_bytes_max: usize,
    /// How long a copy may be used after it is no longer fresh.
    pub stale: Duration,
    /// How much space is left free on the disk.
    pub free_bytes_min: u64,
    /// More fields of requests that responses do not depend on.
    pub request_fields: Vec<Box<str>>,
}

/// The copies of a process.
pub struct Copies {
    shared: Arc<Shared>,
    jobs: SyncSender<Box<Collecting>>,
    reads: Reads,
    clock: Clock,
}

/// What the requests and the thread share.
struct Shared {
    config: Config,
    directory: PathBuf,
    table: Mutex<Table>,
    /// Whether this process uses the directory.
    is_active: AtomicBool,
    metrics: Arc<Metrics>,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            directory: None,
            site_bytes_max: 64 << 20,
            total_bytes_max: 1 << 30,
            response_bytes_max: 1 << 20,
            stale: Duration::from_secs(24 * 60 * 60),
            free_bytes_min: 512 << 20,
            request_fields: Vec::new(),
        }
    }
}

// === impl Copies ===

impl Copies {
    /// Starts the thread that writes them; `None` if there are none.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made, or the thread cannot be started.
    pub fn start(
        config: &Config,
        index: &Arc<Index>,
        drain: &Drain,
        metrics: &Arc<Metrics>,
        clock: Clock,
    ) -> io::Result<Option<Self>> {
        let Some(directory) = &config.directory else {
            return Ok(None);
        };
        fs::create_dir_all(directory)?;
        let one = head_bytes(file::FIELDS_BYTES_MAX) + config.response_bytes_max as u64;
        let shared = Arc::new(Shared {
            config: config.clone(),
            directory: directory.clone(),
            table: Mutex::new(Table::new(one)),
            is_active: AtomicBool::new(false),
            metrics: Arc::clone(metrics),
        });
        let (jobs, waiting) = sync_channel(WAITING_MAX);
        let keeper = Keeper {
            shared: Arc::clone(&shared),
            jobs: waiting,
            index: Arc::clone(index),
            drain: drain.clone(),
            clock,
        };
        panics::essential_thread("copies", move || keeper.run())?;
        Ok(Some(Self {
            shared,
            jobs,
            reads: Reads::default(),
            clock,
        }))
    }

    /// Reads a request to a site's own server; see [`Asked::of`].
    pub(super) fn asked<'f>(
        &self,
        site: &Site,
        (method, is_tls): (&str, bool),
        host: &str,
        target: &[u8],
        is_trusted: bool,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
    ) -> Option<Asked> {
        if !self.shared.is_active.load(Ordering::Relaxed) || !may_keep_of(site) {
            return None;
        }
        let known = &self.shared.config.request_fields;
        Asked::of(known, method, is_tls, host, target, is_trusted, fields)
    }

    /// Looks at the head of a final response. Returns what collects its content, if a copy is to be
    /// written. `is_delimited` says whether the end of the content can be told from the end of the
    /// connection.
    pub(super) fn observe(
        &self,
        asked: &Asked,
        site: &Arc<Site>,
        status: u16,
        is_delimited: bool,
        fields: &[(&[u8], &[u8])],
    ) -> Option<Collecting> {
        let shared = &self.shared;
        if asked.kind == Kind::Unsafe {
            if (200..400).contains(&status) {
                shared.forget(site, asked);
            }
            return None;
        }
        // Such a response says nothing of what other clients get.
        if !asked.may_keep {
            return None;
        }
        let now = self.clock.unix_seconds();
        let stale_max = shared.config.stale.as_secs();
        let terms = match policy::judge(status, fields.iter().copied(), now, stale_max) {
            Verdict::Keep(terms) if is_delimited => terms,
            Verdict::Forget => {
                shared.forget(site, asked);
                return None;
            }
            Verdict::Keep(_) | Verdict::Nothing => return None,
        };
        let content_bytes_max = shared.config.response_bytes_max;
        let content = match terms.length {
            None => content_bytes_max,
            Some(length) => usize::try_from(length)
                .ok()
                .filter(|length| *length <= content_bytes_max)?,
        };
        let kept = kept_fields(fields)?;
        let reserved = head_bytes(kept.len());
        let record = shared
            .table()
            .begin(site, &asked.target, &terms, reserved, now)?;
        let description = Description::new(&site.project, record, &asked.target, &terms, now);
        Some(Collecting {
            shared: Arc::clone(shared),
            site: Arc::clone(site),
            key: (asked.target, terms.coding),
            reserved,
            description,
            length: terms.length,
            content_bytes_max: content,
            fields: kept,
            content: Vec::new(),
        })
    }

    /// Writes a copy of a response that is complete.
    pub(super) fn keep(&self, collected: Collecting) {
        if collected.is_whole() && self.jobs.try_send(Box::new(collected)).is_err() {
            self.shared.count("dropped", 1);
        }
    }

    /// Finds a copy for a request whose server has failed, and compares it with its digest.
    pub(super) async fn find(&self, asked: &Asked, site: &Arc<Site>) -> Option<FoundCopy> {
        if !asked.may_use() {
            return None;
        }
        let shared = &self.shared;
        let now = self.clock.unix_seconds();
        let candidates = shared
            .table()
            .find(site, &asked.target, asked.accepted, now);
        for (name, coding) in candidates {
            let path = name.path(&shared.directory);
            let opened = match self.reads.run(move || file::open(&path)).await? {
                Ok(opened) => opened,
                // It has been removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    log::warn!(target: "copies", project:% = site.project; "cannot read a copy: {error}");
                    shared.count("damaged", 1);
                    shared.table().forget_damaged(site, &asked.target, coding);
                    continue;
                }
            };
            let description = &opened.description;
            let is_asked = description.project == site.project.as_str()
                && description.key() == Some((asked.target, coding));
            if !is_asked || !description.is_usable(now) {
                continue;
            }
            shared.metrics.copies_served.inc();
            let age = description.age_at(now);
            return Some(FoundCopy { opened, age });
        }
        None
    }
}

impl fmt::Debug for Copies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}

/// Returns whether the responses of a site's own server may be kept.
fn may_keep_of(site: &Site) -> bool {
    let Origin::Upstream(upstream) = &site.origin else {
        return false;
    };
    site.visibility == Visibility::Public && upstream.copies
}

/// Returns how many bytes a response counts for before its content is received.
fn head_bytes(fields: usize) -> u64 {
    table::COLLECTING_BYTES + fields as u64
}

/// Returns whether a status means that the site's server has failed.
pub(super) fn is_failure(status: u16) -> bool {
    matches!(status, 500 | 502..=504)
}

/// Returns the field lines of a copy; `None` if they are too long, or cannot be sent over HTTP/2.
fn kept_fields(fields: &[(&[u8], &[u8])]) -> Option<Vec<u8>> {
    let connection = fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"connection"));
    let options: Vec<&[u8]> = connection
        .flat_map(|(_, value)| policy::members(value))
        .collect();
    let mut kept = Vec::new();
    for (name, value) in fields {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        let is_left_out = LEFT_OUT.iter().any(|known| is(known.as_bytes()))
            || options.iter().any(|option| is(option));
        if is_left_out {
            continue;
        }
        HeaderName::from_bytes(name).ok()?;
        // A value on several lines becomes one line.
        let value = pingora::http::header_value_from_slice(value);
        HeaderValue::from_bytes(value.as_bytes()).ok()?;
        kept.extend_from_slice(name);
        kept.extend_from_slice(b": ");
        kept.extend_from_slice(value.as_bytes());
        kept.extend_from_slice(b"\r\n");
    }
    (kept.len() <= file::FIELDS_BYTES_MAX).then_some(kept)
}

// === impl Shared ===

impl Shared {
    /// Each change leaves a table that agrees with itself; a panic under the lock is one of the
    /// thread, which ends the process, or of a request that has only read.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_active(&self, is_active: bool) {
        self.is_active.store(is_active, Ordering::Relaxed);
    }

    fn forget(&self, site: &Arc<Site>, asked: &Asked) {
        let forgotten = self.table().forget(site, &asked.target);
        self.count("forgotten", forgotten);
    }

    fn count(&self, outcome: &str, copies: u64) {
        if copies > 0 {
            let counter = self.metrics.copies.with_label_values(&[outcome]);
            counter.inc_by(copies);
        }
    }

    fn show_size(&self, (count, bytes): (u64, u64)) {
        let metrics = &self.metrics;
        metrics
            .copies_stored
            .set(i64::try_from(count).unwrap_or(i64::MAX));
        metrics
            .copies_bytes
            .set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copies").finish_non_exhaustive()
    }
}
