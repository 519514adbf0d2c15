//! Documents in the database: certificates, orders and challenges, admin keys, tokens of edges,
//! keys of session tickets.
//!
//! Every change takes the next number of a counter and holds it until its commit, as releases do
//! with theirs, so a reader that has seen a number has seen all changes before it. A removed
//! document keeps its row for a day, so that readers see the removal.
//!
//! The process that orders certificates holds a lease. Its changes check the lease in their own
//! transaction, so a leader that was stopped for long changes nothing after another one leads.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::database::Database;
use super::lease::{Lease, millis};
use super::{Hints, Place, Shared, list, store_error};
use crate::database::{Cells, DatabaseError, Link, READ, Repeat, Value, WRITE};
use crate::store::FileError;
use crate::store::documents::{Change, Documents, Kind, KnownKeys, Lead};

/// The name of the lease of the process that orders certificates.
const LEADER: &str = "certificates";
/// For how long the row of a removed document is kept.
const REMOVED_KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// How many documents are read at once.
pub(super) const ROWS: u64 = 500;
/// The first words of the name of a reader that stands for all edges of a gateway.
const EDGES_OF: &str = "edges of ";
/// How often it is checked whether every gateway has a change.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// How long a gateway counts as running without saying so again.
const READER_TIME: Duration = Duration::from_secs(6);

/// The documents of a shared store.
#[derive(Clone, Debug)]
pub struct SharedDocuments {
    database: Arc<Database>,
    pub(super) hints: Arc<Hints>,
    /// The lease of this process; `None` until it leads for the first time.
    lease: Arc<Mutex<Option<Weak<Lease>>>>,
}

/// The leadership of a process, as its owner holds it.
#[derive(Debug)]
struct HeldLease(Arc<Lease>);

/// A document as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) kind: String,
    pub(super) key: String,
    /// `None` if it was removed.
    pub(super) content: Option<Vec<u8>>,
    pub(super) revision: u64,
}

/// The documents that have changed after a revision.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) rows: Vec<Row>,
    /// The place of a reader that has applied them.
    pub(super) place: Place,
    pub(super) is_last: bool,
}

/// The state of the counter of changes.
struct State {
    /// The last change.
    place: Place,
    /// Removals up to this number are not kept any more.
    forgotten: u64,
}

// === impl Shared ===

impl Shared {
    /// Returns its documents.
    #[must_use]
    pub fn documents(&self) -> SharedDocuments {
        SharedDocuments {
            database: Arc::clone(&self.database),
            hints: Arc::clone(&self.hints),
            lease: Arc::default(),
        }
    }
}

// === impl SharedDocuments ===

impl SharedDocuments {
    /// Returns the bytes of a document of a set that is no [`Kind`].
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn get_in(&self, set: &str, key: &str) -> Result<Option<Vec<u8>>, FileError> {
        let read = self
            .database
            .transact(READ, Repeat::Always, |link, _now| get(link, set, key));
        read.map_err(store_error)
    }

    /// Returns all documents of a set, by key.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn all_in(&self, set: &str) -> Result<Vec<(String, Vec<u8>)>, FileError> {
        const ALL: &str = "SELECT key, content FROM documents \
             WHERE kind = ?1 AND content IS NOT NULL ORDER BY key";
        let read = self.database.transact(READ, Repeat::Always, |link, _now| {
            let rows = link.rows(ALL, &[Value::Text(set)])?.into_iter();
            rows.map(|mut row| Ok((row.text()?, row.bytes()?)))
                .collect::<Result<_, DatabaseError>>()
        });
        read.map_err(store_error)
    }

    /// Changes a document of a set. `change` gets the bytes that are there and returns those that
    /// replace them, or `None` to leave them; it may run several times. No other process changes
    /// the document meanwhile. Returns the bytes that are there afterwards.
    ///
    /// # Errors
    ///
    /// When the database cannot be written.
    pub fn change_in(
        &self,
        set: &str,
        key: &str,
        mut change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>> + Send,
    ) -> Result<Option<Vec<u8>>, FileError> {
        let changed = self.database.transact(WRITE, Repeat::Always, |link, now| {
            lock_counter(link)?;
            let before = get(link, set, key)?;
            match change(before.as_deref()) {
                Some(bytes) => {
                    put(link, now, set, key, &bytes)?;
                    Ok(Some(bytes))
                }
                None => Ok(before),
            }
        });
        self.notify(changed)
    }

    /// Notifies the readers of a change that was made.
    fn notify<T>(&self, done: Result<T, DatabaseError>) -> Result<T, FileError> {
        let done = done.map_err(store_error)?;
        self.hints.notify();
        self.database.notify();
        Ok(done)
    }

    /// Removes a document of a set. Returns whether it was there.
    ///
    /// # Errors
    ///
    /// When the database cannot be written.
    pub fn remove_in(&self, set: &str, key: &str) -> Result<bool, FileError> {
        let removed = self.database.transact(WRITE, Repeat::Always, |link, now| {
            remove(link, now, set, key)
        });
        self.notify(removed)
    }

    /// Returns the number of the last change.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn revision(&self) -> Result<u64, FileError> {
        let read = self.database.transact(READ, Repeat::Always, |link, _now| {
            Ok(state(link)?.place.revision)
        });
        read.map_err(store_error)
    }

    /// Returns which store this is, and which life of it, as one text.
    pub(super) fn history(&self) -> Result<String, FileError> {
        let life = self.database.life().map_err(store_error)?;
        Ok(format!("{}/{}", life.store, life.server))
    }

    /// Returns what has changed after a place; `None` if removals since then are not kept any more,
    /// or the database has not, or not any more, the change with this number and mark.
    pub(super) fn after(&self, known: &Place) -> Result<Option<Page>, FileError> {
        const ROWS_AFTER: &str = "SELECT kind, key, content IS NULL, content, revision \
             FROM documents WHERE revision > ?1 ORDER BY revision LIMIT ?2";
        let read = self.database.transact(READ, Repeat::Always, |link, _now| {
            let State { place, forgotten } = state(link)?;
            let revision = known.revision;
            if revision < forgotten || !has(link, &place, known)? {
                return Ok(None);
            }
            if revision == place.revision {
                let (rows, is_last) = (Vec::new(), true);
                return Ok(Some(Page {
                    rows,
                    place,
                    is_last,
                }));
            }
            let rows = link.rows(ROWS_AFTER, &[revision.into(), ROWS.into()])?;
            let rows = rows.into_iter().map(row).collect::<Result<Vec<_>, _>>()?;
            let is_last = (rows.len() as u64) < ROWS;
            let place = match rows.last() {
                Some(last) if !is_last => Place {
                    revision: last.revision,
                    mark: mark(link, last.revision)?,
                },
                _ => place,
            };
            Ok(Some(Page {
                rows,
                place,
                is_last,
            }))
        });
        read.map_err(store_error)
    }

    /// Returns the kinds and keys of all documents, and the place of a reader at that moment.
    pub(super) fn keys(&self) -> Result<(Place, Vec<(String, String)>), FileError> {
        const KEYS: &str = "SELECT kind, key FROM documents WHERE content IS NOT NULL";
        let read = self.database.transact(READ, Repeat::Always, |link, _now| {
            let State { place, .. } = state(link)?;
            let rows = link.rows(KEYS, &[])?.into_iter();
            let keys = rows.map(|mut row| Ok((row.text()?, row.text()?)));
            Ok((place, keys.collect::<Result<_, DatabaseError>>()?))
        });
        read.map_err(store_error)
    }

    /// Returns the documents of a set that have one of these keys and still exist.
    pub(super) fn some_in(&self, set: &str, keys: &[&str]) -> Result<Vec<Row>, FileError> {
        const SOME: &str = "SELECT kind, key, false, content, revision FROM documents \
             WHERE kind = ?1 AND content IS NOT NULL \
             AND key IN (SELECT json_array_elements_text(?2::text::json))";
        let keys = list(keys);
        let read = self.database.transact(READ, Repeat::Always, |link, _now| {
            let rows = link.rows(SOME, &[Value::Text(set), Value::Text(&keys)])?;
            rows.into_iter().map(row).collect()
        });
        read.map_err(store_error)
    }

    /// Says that a gateway has the documents up to a revision, and for some seconds more that it
    /// runs.
    pub(super) fn has_read(&self, name: &str, revision: u64) -> Result<(), FileError> {
        const READ_UP_TO: &str = "INSERT INTO readers VALUES (?1, ?2, ?3) \
             ON CONFLICT (name) DO UPDATE SET revision = excluded.revision, \
             ends_at = excluded.ends_at";
        let said = self.database.transact(WRITE, Repeat::Always, |link, now| {
            let ends_at = now + millis(READER_TIME);
            let values = [Value::Text(name), revision.into(), ends_at.into()];
            link.execute(READ_UP_TO, &values)
        });
        said.map(|_one| ()).map_err(store_error)
    }

    /// Says the same for all edges of a gateway.
    ///
    /// # Errors
    ///
    /// When the database cannot be written.
    pub fn edges_have_read(&self, gateway: &str, revision: u64) -> Result<(), FileError> {
        self.has_read(&format!("{EDGES_OF}{gateway}"), revision)
    }

    /// Returns the names of the gateways that run and do not have the documents up to a revision.
    fn behind(&self, revision: u64) -> Result<Vec<String>, FileError> {
        const BEHIND: &str = "SELECT name FROM readers WHERE revision < ?1 AND ends_at > ?2";
        let read = self.database.transact(READ, Repeat::Always, |link, now| {
            let rows = link.rows(BEHIND, &[revision.into(), now.into()])?;
            rows.into_iter().map(|mut row| row.text()).collect()
        });
        read.map_err(store_error)
    }

    /// Records when admin keys were used, in milliseconds since the Unix epoch. A later use stays.
    ///
    /// # Errors
    ///
    /// When the database cannot be written.
    pub fn note_key_uses(&self, uses: &[(&str, u64)]) -> Result<(), FileError> {
        const USED: &str = "INSERT INTO key_uses VALUES (?1, ?2) ON CONFLICT (key) \
             DO UPDATE SET used_at = greatest(key_uses.used_at, excluded.used_at)";
        let noted = self.database.transact(WRITE, Repeat::Always, |link, _now| {
            for (key, at) in uses {
                link.execute(USED, &[Value::Text(key), (*at).into()])?;
            }
            Ok(())
        });
        noted.map_err(store_error)
    }

    /// Returns when admin keys were last used, in milliseconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn key_uses(&self) -> Result<Vec<(String, u64)>, FileError> {
        let read = self.database.transact(READ, Repeat::Always, |link, _now| {
            let rows = link.rows("SELECT key, used_at FROM key_uses", &[])?;
            rows.into_iter()
                .map(|mut row| Ok((row.text()?, row.number()?)))
                .collect()
        });
        read.map_err(store_error)
    }

    /// Waits until every running gateway has all changes up to now, at most for a time. With
    /// `with_edges`, also until all edges of these gateways have them. Returns the names of the
    /// gateways that do not have them, and `edges of` a gateway.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn wait_until_read(
        &self,
        with_edges: bool,
        time: Duration,
    ) -> Result<Vec<String>, FileError> {
        let deadline = Instant::now() + time;
        let revision = self.revision()?;
        loop {
            let mut behind = self.behind(revision)?;
            behind.retain(|name| with_edges || !name.starts_with(EDGES_OF));
            if behind.is_empty() || Instant::now() >= deadline {
                return Ok(behind);
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
    }

    /// Removes the rows of documents that were removed long ago, and of gateways that have ended.
    pub(super) fn prune(link: &Link, now: u64) -> Result<(), DatabaseError> {
        const FORGET: &str = "WITH gone AS (DELETE FROM documents \
             WHERE content IS NULL AND changed_at < ?1 RETURNING revision) \
             UPDATE documents_revision SET forgotten = greatest(forgotten, \
             (SELECT max(revision) FROM gone)) WHERE EXISTS (SELECT 1 FROM gone)";
        const READERS: &str = "DELETE FROM readers WHERE ends_at < ?1";
        const MARKS: &str = "DELETE FROM document_marks WHERE at < ?1 \
             AND revision < (SELECT n FROM documents_revision)";
        let oldest = now.saturating_sub(millis(REMOVED_KEPT));
        lock_counter(link)?;
        link.execute(FORGET, &[oldest.into()])?;
        link.execute(READERS, &[oldest.into()])?;
        link.execute(MARKS, &[oldest.into()])?;
        Ok(())
    }

    /// Returns the lease that a change of a kind must be made under, if this process is or was the
    /// leader. A request may be made by everybody.
    fn lease(&self, kind: Kind) -> Result<Option<Arc<Lease>>, FileError> {
        if kind == Kind::Request {
            return Ok(None);
        }
        let lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        match &*lease {
            None => Ok(None),
            Some(lease) => lease.upgrade().map(Some).ok_or_else(no_leader),
        }
    }

    /// Makes a change that a leader may make only while it leads.
    fn change(
        &self,
        kind: Kind,
        mut act: impl FnMut(&Link, u64) -> Result<(), DatabaseError> + Send,
    ) -> Result<(), FileError> {
        let lease = self.lease(kind)?;
        let changed = self.database.transact(WRITE, Repeat::Always, |link, now| {
            if let Some(lease) = &lease
                && !lease.check(link, now)?
            {
                return Ok(false);
            }
            act(link, now).map(|()| true)
        });
        match self.notify(changed)? {
            true => Ok(()),
            false => Err(no_leader()),
        }
    }
}

impl Documents for SharedDocuments {
    fn get(&self, kind: Kind, key: &str) -> Result<Option<Vec<u8>>, FileError> {
        self.get_in(kind.directory(), key)
    }

    fn put(&self, kind: Kind, key: &str, bytes: &[u8]) -> Result<(), FileError> {
        self.change(kind, |link, now| {
            put(link, now, kind.directory(), key, bytes)
        })
    }

    fn remove(&self, kind: Kind, key: &str) -> Result<(), FileError> {
        self.change(kind, |link, now| {
            remove(link, now, kind.directory(), key).map(|_removed| ())
        })
    }

    fn changes(&self, kind: Kind, known: &mut KnownKeys) -> Result<Vec<Change>, FileError> {
        const CHANGED: &str = "SELECT key, (CASE WHEN content IS NULL THEN 0 ELSE 1 END)::bigint \
             FROM documents WHERE kind = ?1 AND revision > ?2";
        loop {
            let history = self.history()?;
            let after = known.place_in(&history).cloned();
            let read = self.database.transact(READ, Repeat::Always, |link, _now| {
                let State { place, forgotten } = state(link)?;
                let after = match &after {
                    Some(after) if after.revision >= forgotten && has(link, &place, after)? => {
                        Some(after.revision)
                    }
                    _ => None,
                };
                if after == Some(place.revision) {
                    return Ok((place, true, Vec::new()));
                }
                // The first change has the number 1.
                let above = after.unwrap_or(0);
                let values = [Value::Text(kind.directory()), above.into()];
                let rows = link.rows(CHANGED, &values)?.into_iter();
                let rows = rows.map(|mut row| Ok((Box::from(row.text()?), row.number()? == 1)));
                let rows: Result<Vec<(Box<str>, bool)>, DatabaseError> = rows.collect();
                Ok((place, after.is_some(), rows?))
            });
            let (place, is_part, mut rows) = read.map_err(store_error)?;
            if self.history()? != history {
                // The new connection is to a database with another history.
                continue;
            }
            if !is_part {
                let keys: HashSet<&str> = rows.iter().map(|(key, _)| &**key).collect();
                let gone = known.missing_in(&keys).into_iter();
                rows.extend(gone.map(|key| (key, false)).collect::<Vec<_>>());
            }
            return Ok(known.note(rows, history, place));
        }
    }

    fn keys_of(&self, kind: Kind, name: &str) -> Result<Vec<Box<str>>, FileError> {
        const KEYS: &str = "SELECT key FROM documents WHERE kind = ?1 AND content IS NOT NULL \
             AND key >= ?2 AND key < ?3";
        // The keys are ordered by bytes, and DEL follows `~`.
        let (begin, end) = (format!("{name}~"), format!("{name}\u{7f}"));
        let read = self.database.transact(READ, Repeat::Always, |link, _now| {
            let values = [
                Value::Text(kind.directory()),
                Value::Text(&begin),
                Value::Text(&end),
            ];
            let rows = link.rows(KEYS, &values)?.into_iter();
            rows.map(|mut row| Ok(row.text()?.into())).collect()
        });
        read.map_err(store_error)
    }

    fn lead(&self) -> Result<Option<Box<dyn Lead>>, FileError> {
        let lease = Lease::wait(&self.database, LEADER, Duration::ZERO).map_err(store_error)?;
        let Some(lease) = lease else { return Ok(None) };
        let lease = Arc::new(lease);
        *self.lease.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::downgrade(&lease));
        Ok(Some(Box::new(HeldLease(lease))))
    }

    fn has_space(&self, _bytes: u64) -> Result<bool, FileError> {
        // A full disk of the server shows as the error of a put.
        Ok(true)
    }
}

impl Lead for HeldLease {
    fn holds(&self) -> bool {
        self.0.holds()
    }
}

fn no_leader() -> FileError {
    let why = "this process does not order certificates any more";
    FileError::on("change", Path::new("the documents of the store"))(io::Error::other(why))
}

/// Returns the last change, and the number up to which removals are forgotten.
fn state(link: &Link) -> Result<State, DatabaseError> {
    const STATE: &str = "SELECT n, forgotten, \
         (SELECT mark FROM document_marks WHERE revision = n) FROM documents_revision";
    let mut row = link.one(STATE, &[])?;
    let (revision, forgotten) = (row.number()?, row.number()?);
    let mark = row.next_text()?;
    let place = Place { revision, mark };
    Ok(State { place, forgotten })
}

/// Returns the mark of a change; `None` if it is not kept.
fn mark(link: &Link, revision: u64) -> Result<Option<String>, DatabaseError> {
    const MARK: &str = "SELECT mark FROM document_marks WHERE revision = ?1";
    let row = link.rows(MARK, &[revision.into()])?.into_iter().next();
    row.map(|mut row| row.text()).transpose()
}

/// Returns whether the last change of a reader is one of this history, up to its latest change.
fn has(link: &Link, latest: &Place, known: &Place) -> Result<bool, DatabaseError> {
    if known.revision >= latest.revision {
        return Ok(known == latest);
    }
    // Every history begins with the same state.
    if known.revision == 0 {
        return Ok(true);
    }
    let found = mark(link, known.revision)?;
    // An earlier version of this program made the change without a mark: nothing is certain.
    Ok(found.is_some() && found == known.mark)
}

/// Lets only this transaction change documents.
fn lock_counter(link: &Link) -> Result<(), DatabaseError> {
    link.one("SELECT n FROM documents_revision FOR UPDATE", &[])
        .map(|_row| ())
}

fn get(link: &Link, set: &str, key: &str) -> Result<Option<Vec<u8>>, DatabaseError> {
    const GET: &str = "SELECT content FROM documents \
         WHERE kind = ?1 AND key = ?2 AND content IS NOT NULL";
    let row = link.rows(GET, &[Value::Text(set), Value::Text(key)])?;
    row.into_iter()
        .next()
        .map(|mut row| row.bytes())
        .transpose()
}

fn put(link: &Link, now: u64, set: &str, key: &str, bytes: &[u8]) -> Result<(), DatabaseError> {
    const PUT: &str = "WITH next AS (UPDATE documents_revision SET n = n + 1 RETURNING n), \
         marked AS (INSERT INTO document_marks (revision, at) SELECT n, ?4 FROM next) \
         INSERT INTO documents SELECT ?1, ?2, ?3, n, ?4 FROM next \
         ON CONFLICT (kind, key) DO UPDATE SET content = excluded.content, \
         revision = excluded.revision, changed_at = excluded.changed_at";
    let values = [
        Value::Text(set),
        Value::Text(key),
        Value::Bytes(bytes),
        now.into(),
    ];
    link.execute(PUT, &values).map(|_one| ())
}

/// Removes a document; `false` if it is not there.
fn remove(link: &Link, now: u64, set: &str, key: &str) -> Result<bool, DatabaseError> {
    const REMOVE: &str = "WITH next AS (UPDATE documents_revision SET n = n + 1 RETURNING n), \
         marked AS (INSERT INTO document_marks (revision, at) SELECT n, ?3 FROM next) \
         UPDATE documents SET content = NULL, revision = n, changed_at = ?3 FROM next \
         WHERE kind = ?1 AND key = ?2";
    lock_counter(link)?;
    if get(link, set, key)?.is_none() {
        return Ok(false);
    }
    let values = [Value::Text(set), Value::Text(key), now.into()];
    link.execute(REMOVE, &values).map(|_one| true)
}

/// Reads `kind, key, is removed, content, revision`.
fn row(mut row: Cells) -> Result<Row, DatabaseError> {
    let (kind, key) = (row.text()?, row.text()?);
    let is_removed = row.number()? == 1;
    let content = match is_removed {
        true => row.next_text()?.map(String::into_bytes),
        false => Some(row.bytes()?),
    };
    Ok(Row {
        kind,
        key,
        content,
        revision: row.number()?,
    })
}
