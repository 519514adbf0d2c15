//! The queue of one machine: a SQLite file.
//!
//! Operators can look at it with the `sqlite3` program, several processes may open it, and
//! SQLite has a long record of not losing data. The write-ahead log and `synchronous=FULL` make
//! every acknowledged commit durable.
//!
//! One thread writes (`writer`). Readers have their own connections and never wait for it. The
//! scripts that create the tables describe them (`schema`).
//!
//! Sources: SQLite, "Write-Ahead Logging" and "PRAGMA synchronous".

mod operation;
mod row;
mod schema;
mod visible;
mod writer;

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};

use super::super::record::Record;
use super::super::update::{State, Update, WorkerId};
use super::super::{StatusId, Timestamp};
use super::{Claim, Depth, Enqueued, Held, Outcome, Policy, Progress, QueueError, Swept, Trigger};
use crate::site::ProjectId;
use crate::store::Fence;
use writer::Writer;

/// How long to wait while another process writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How many prepared statements a connection caches: room for all of them.
const STATEMENTS_CACHED: usize = 64;
/// The most idle connections for reading.
const READERS_IDLE_MAX: usize = 8;

/// A queue in a SQLite file.
pub struct Sqlite {
    path: Box<Path>,
    writer: Writer,
    readers: Mutex<Vec<Connection>>,
}

// === impl Sqlite ===

impl Sqlite {
    /// Opens the queue in this file, and creates the file if it is missing.
    ///
    /// # Errors
    ///
    /// [`QueueError::NetworkFileSystem`], [`QueueError::Newer`], or an error of SQLite.
    pub fn open(path: &Path) -> Result<Self, QueueError> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(QueueError::unavailable)?;
            refuse_network_file_system(directory)?;
        }
        let mut connection = connect(path)?;
        schema::migrate(&mut connection)?;
        Ok(Self {
            path: path.into(),
            writer: Writer::start(connection).map_err(QueueError::unavailable)?,
            readers: Mutex::default(),
        })
    }

    pub(super) fn enqueue(
        &self,
        trigger: &Trigger,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Enqueued, QueueError> {
        let (trigger, policy) = (trigger.clone(), policy.clone());
        self.writer
            .call(move |connection| operation::enqueue(connection, &trigger, &policy, now))
    }

    pub(super) async fn enqueue_soon(
        &self,
        trigger: Trigger,
        policy: Policy,
        now: Timestamp,
    ) -> Result<Enqueued, QueueError> {
        self.writer
            .call_soon(move |connection| operation::enqueue(connection, &trigger, &policy, now))
            .await
    }

    pub(super) fn claim(
        &self,
        worker: &WorkerId,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Option<Claim>, QueueError> {
        // An idle worker polls often, and most polls find nothing: those must not write.
        const DUE: &str = "WHERE due_at <= ?1 ORDER BY due_at LIMIT 1";
        let millis = row::stored(now.millis());
        if self
            .read(|connection| row::find(connection, DUE, [millis]))?
            .is_none()
        {
            return Ok(None);
        }
        let (worker, policy) = (worker.clone(), policy.clone());
        self.writer
            .call(move |connection| operation::claim(connection, &worker, &policy, now))
    }

    pub(super) fn heartbeat(
        &self,
        claim: &Claim,
        progress: Progress,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Held, QueueError> {
        let (claim, policy) = (claim.clone(), policy.clone());
        self.writer.call(move |connection| {
            operation::heartbeat(connection, &claim, progress, &policy, now)
        })
    }

    pub(super) fn raise_generation(
        &self,
        claim: &Claim,
        at_least: u64,
    ) -> Result<Held, QueueError> {
        let claim = claim.clone();
        self.writer
            .call(move |connection| operation::raise_generation(connection, &claim, at_least))
    }

    pub(super) fn finish(
        &self,
        claim: &Claim,
        outcome: &Outcome,
        summary: &str,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Held, QueueError> {
        let (claim, outcome) = (claim.clone(), outcome.clone());
        let (summary, policy) = (summary.to_owned(), policy.clone());
        self.writer.call(move |connection| {
            operation::finish(connection, &claim, &outcome, &summary, &policy, now)
        })
    }

    pub(super) fn cancel(
        &self,
        project: &ProjectId,
        summary: &str,
        now: Timestamp,
    ) -> Result<bool, QueueError> {
        let (project, summary) = (project.clone(), summary.to_owned());
        self.writer
            .call(move |connection| operation::cancel(connection, &project, &summary, now))
    }

    pub(super) fn record_served(
        &self,
        project: &ProjectId,
        fence: Fence,
        now: Timestamp,
    ) -> Result<(), QueueError> {
        let project = project.clone();
        self.writer
            .call(move |connection| visible::record_served(connection, &project, fence, now))
    }

    pub(super) fn not_yet_visible(&self) -> Result<Vec<ProjectId>, QueueError> {
        self.read(visible::not_yet_visible)
    }

    pub(super) fn requeue(
        &self,
        project: &ProjectId,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Option<Enqueued>, QueueError> {
        let (project, policy) = (project.clone(), policy.clone());
        self.writer
            .call(move |connection| operation::requeue(connection, &project, &policy, now))
    }

    pub(super) fn sweep(&self, policy: &Policy, now: Timestamp) -> Result<Swept, QueueError> {
        let mut total = Swept::default();
        loop {
            let policy = policy.clone();
            let swept = self
                .writer
                .call(move |connection| operation::sweep(connection, &policy, now))?;
            total.updates += swept.updates;
            total.idempotency_keys += swept.idempotency_keys;
            if swept == Swept::default() {
                return Ok(total);
            }
        }
    }

    pub(super) fn record(&self, id: &StatusId) -> Result<Option<Record>, QueueError> {
        self.read(|connection| {
            // One snapshot, so that the newer update does not end between the two reads.
            let snapshot = connection
                .unchecked_transaction()
                .map_err(QueueError::unavailable)?;
            let Some(update) = row::find(&snapshot, "WHERE id = ?1", [id.as_str()])? else {
                return Ok(None);
            };
            let mut logs = logs(&snapshot, id)?;
            let mut newer = None;
            if let State::Superseded { by: id } = &update.state {
                let found = row::find(&snapshot, "WHERE id = ?1", [id.as_str()])?
                    .ok_or_else(|| QueueError::Corrupt(format!("the update {id} is missing")))?;
                logs.extend(self::logs(&snapshot, id)?);
                newer = Some(Box::new(found));
            }
            Ok(Some(Record {
                update,
                newer,
                logs,
            }))
        })
    }

    pub(super) fn dead_letters(&self, limit: u32) -> Result<Vec<Update>, QueueError> {
        const TAIL: &str = "WHERE dead_letter = 1 ORDER BY id DESC LIMIT ?1";
        self.read(|connection| row::list(connection, TAIL, [limit]))
    }

    pub(super) fn recent(
        &self,
        project: &ProjectId,
        limit: u32,
    ) -> Result<Vec<Update>, QueueError> {
        const TAIL: &str = "WHERE project = ?1 ORDER BY id DESC LIMIT ?2";
        let values = rusqlite::params![project.as_str(), limit];
        self.read(|connection| row::list(connection, TAIL, values))
    }

    pub(super) fn generation(&self, project: &ProjectId) -> Result<u64, QueueError> {
        const SQL: &str = "SELECT generation FROM projects WHERE project = ?1";
        self.read(|connection| {
            let found = connection.prepare_cached(SQL).and_then(|mut statement| {
                statement
                    .query_row([project.as_str()], |row| row.get(0))
                    .optional()
            });
            Ok(found.map_err(QueueError::unavailable)?.unwrap_or(0))
        })
    }

    pub(super) fn depth(&self) -> Result<Depth, QueueError> {
        const SQL: &str = "SELECT \
             (SELECT updates FROM totals WHERE state = 'queued'), \
             (SELECT updates FROM totals WHERE state = 'in_progress'), \
             (SELECT count(*) FROM updates WHERE dead_letter = 1)";
        self.read(|connection| {
            let depth = connection.prepare_cached(SQL).and_then(|mut statement| {
                statement.query_row([], |row| {
                    Ok(Depth {
                        queued: row.get(0)?,
                        in_progress: row.get(1)?,
                        dead_letters: row.get(2)?,
                    })
                })
            });
            depth.map_err(QueueError::unavailable)
        })
    }

    /// Runs a query on a connection that no other thread uses at the same time.
    fn read<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, QueueError>,
    ) -> Result<T, QueueError> {
        let lock = || self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => {
                let connection = connect(&self.path)?;
                connection
                    .pragma_update(None, "query_only", true)
                    .map_err(QueueError::unavailable)?;
                connection
            }
        };
        let result = query(&connection);
        // A connection that has failed is not used again.
        if result.is_ok() {
            let mut readers = lock();
            if readers.len() < READERS_IDLE_MAX {
                readers.push(connection);
            }
        }
        result
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

fn connect(path: &Path) -> Result<Connection, QueueError> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
        Ok(connection)
    };
    open().map_err(QueueError::unavailable)
}

fn logs(connection: &Connection, id: &StatusId) -> Result<Vec<Box<str>>, QueueError> {
    const SQL: &str = "SELECT line FROM logs WHERE id = ?1 ORDER BY seq";
    let read = || -> rusqlite::Result<Vec<Box<str>>> {
        let mut statement = connection.prepare_cached(SQL)?;
        let lines = statement.query_map([id.as_str()], |row| row.get(0))?;
        lines.collect()
    };
    read().map_err(QueueError::unavailable)
}

/// SQLite's locks and shared memory do not work between machines.
#[cfg(target_os = "linux")]
fn refuse_network_file_system(directory: &Path) -> Result<(), QueueError> {
    /// `f_type` as `statfs(2)` lists them.
    const NETWORK: [(i64, &str); 4] = [
        (0x6969, "NFS"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB2"),
        (0x517b, "SMB"),
    ];
    let found = rustix::fs::statfs(directory)
        .map_err(|error| QueueError::unavailable(std::io::Error::from(error)))?;
    match NETWORK.iter().find(|(kind, _)| *kind == found.f_type) {
        Some((_, name)) => Err(QueueError::NetworkFileSystem(name)),
        None => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn refuse_network_file_system(_directory: &Path) -> Result<(), QueueError> {
    Ok(())
}
