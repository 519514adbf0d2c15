//! The queue of one machine: a SQLite file.
//!
//! Operators can look at it with the `sqlite3` program, several processes may open it, and
//! SQLite has a long record of not losing data. The write-ahead log and `synchronous=FULL` make
//! every acknowledged commit durable.
//!
//! One thread writes (`writer`). Readers have their own connections and never wait for it. The
//! scripts that create the tables describe them (`schema`).
//!
//! The file may be missing, locked, damaged or replaced at any time, and the process goes on:
//! calls fail until the file can be opened again (`open`).
//!
//! Sources: SQLite, "Write-Ahead Logging" and "PRAGMA synchronous".

mod open;
mod schema;
mod tables;
mod writer;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::super::record::Record;
use super::super::update::{Update, WorkerId};
use super::super::{StatusId, Timestamp};
use super::sql::{SPENDING_DAYS, Tables, day_of, operation, reading, spending, visible};
use super::{
    Claim, Depth, Enqueued, Held, Outcome, Owners, Policy, Progress, QueueError, Spending, Swept,
    Trigger,
};
use crate::site::ProjectId;
use crate::store::Fence;
use open::OpenFile;

/// How long to wait until other callers have finished with a file that is to be closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A queue in a SQLite file.
pub struct Sqlite {
    path: Box<Path>,
    file: Mutex<File>,
}

/// The file, or why it is not open.
enum File {
    Open(Arc<OpenFile>),
    Closed {
        error: QueueError,
        /// The file that was open before. It must be closed before the next one is opened,
        /// because SQLite removes the write-ahead log by name.
        before: Weak<OpenFile>,
    },
}

// === impl Sqlite ===

impl Sqlite {
    /// Opens the queue in this file, and creates the file if it is missing.
    ///
    /// # Errors
    ///
    /// [`QueueError::NetworkFileSystem`], [`QueueError::Newer`], or an error of SQLite.
    pub fn open(path: &Path) -> Result<Self, QueueError> {
        let file = OpenFile::open(path)?;
        Ok(Self {
            path: path.into(),
            file: Mutex::new(File::Open(Arc::new(file))),
        })
    }

    /// Opens the queue in this file, now or later: while the file cannot be opened, every call
    /// fails with the reason, and [`Queue::heal`](super::Queue::heal) tries again.
    #[must_use]
    pub fn open_or_retry(path: &Path) -> Self {
        Self::open(path).unwrap_or_else(|error| Self {
            path: path.into(),
            file: Mutex::new(File::Closed {
                error,
                before: Weak::new(),
            }),
        })
    }

    /// Checks whether a file is a queue that this program can use, without changing it.
    ///
    /// # Errors
    ///
    /// [`QueueError::Newer`], or an error of SQLite.
    pub fn check(path: &Path) -> Result<(), QueueError> {
        open::check(path)
    }

    /// Writes a copy of a file of a queue that may be in use, with everything that was committed
    /// before.
    ///
    /// # Errors
    ///
    /// [`QueueError::Unavailable`]; also when `to` exists.
    pub fn copy(from: &Path, to: &Path) -> Result<(), QueueError> {
        open::copy(from, to)
    }

    fn state(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self) -> Result<Arc<OpenFile>, QueueError> {
        match &*self.state() {
            File::Open(file) => Ok(Arc::clone(file)),
            File::Closed { error, .. } => Err(error.clone()),
        }
    }

    /// Returns the file if its path still leads to it, and closes it otherwise.
    fn checked(&self) -> Result<Arc<OpenFile>, QueueError> {
        let file = self.file()?;
        if let Err(error) = file.check() {
            let mut state = self.state();
            if matches!(&*state, File::Open(open) if Arc::ptr_eq(open, &file)) {
                *state = File::Closed {
                    error: error.clone(),
                    before: Arc::downgrade(&file),
                };
            }
            return Err(error);
        }
        Ok(file)
    }

    /// Opens the file if it is not open, or if the path now leads to another file.
    pub(super) fn reopen(&self) -> Result<(), QueueError> {
        if self.checked().is_ok() {
            return Ok(());
        }
        if let File::Closed { error, before } = &*self.state()
            && before.strong_count() > 0
        {
            return Err(error.clone());
        }
        // Without the lock: other callers fail at once while this waits for SQLite.
        let opened = OpenFile::open(&self.path);
        let mut state = self.state();
        if matches!(&*state, File::Closed { .. }) {
            let before = Weak::new();
            *state = match opened {
                Ok(file) => File::Open(Arc::new(file)),
                Err(error) => File::Closed { error, before },
            };
        }
        match &*state {
            File::Open(_) => Ok(()),
            File::Closed { error, .. } => Err(error.clone()),
        }
    }

    /// Writes something that changes nothing, to find out whether writing is possible.
    pub(super) fn probe(&self) -> Result<(), QueueError> {
        const SAME: &str = "UPDATE totals SET updates = updates WHERE state = 'queued'";
        let probe =
            || self.write(|connection| Tables::execute(connection, SAME, &[]).map(|_one| ()));
        match probe() {
            // A connection that was opened on a read-only file system stays read-only.
            Err(error) if error.may_end_with_the_connection() => {
                self.open_anew(error)?;
                probe()
            }
            probed => probed,
        }
    }

    /// Closes the file and opens it again. Other callers wait meanwhile.
    fn open_anew(&self, error: QueueError) -> Result<(), QueueError> {
        let mut state = self.state();
        let before = match &*state {
            File::Open(file) => Arc::downgrade(file),
            File::Closed { .. } => Weak::new(),
        };
        *state = File::Closed {
            error,
            before: Weak::clone(&before),
        };
        // Connections of one process share what they know of the file, so all are closed first.
        let deadline = Instant::now() + CLOSE_TIMEOUT;
        while before.strong_count() > 0 && Instant::now() < deadline {
            std::thread::yield_now();
        }
        *state = File::Open(Arc::new(OpenFile::open(&self.path)?));
        Ok(())
    }

    /// Runs an operation of the writer, and returns once it is on disk.
    fn write<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Connection) -> Result<T, QueueError> + Send + 'static,
    ) -> Result<T, QueueError> {
        self.checked()?.writer.call(act)
    }

    /// Runs a query on a connection that no other thread uses at the same time.
    fn read<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, QueueError>,
    ) -> Result<T, QueueError> {
        self.file()?.read(query)
    }

    pub(super) fn enqueue(
        &self,
        trigger: &Trigger,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Enqueued, QueueError> {
        let (trigger, policy) = (trigger.clone(), policy.clone());
        self.write(move |connection| operation::enqueue(connection, &trigger, &policy, now))
    }

    pub(super) async fn enqueue_soon(
        &self,
        trigger: Trigger,
        policy: Policy,
        now: Timestamp,
    ) -> Result<Enqueued, QueueError> {
        let file = self.checked()?;
        file.writer
            .call_soon(move |connection| operation::enqueue(connection, &trigger, &policy, now))
            .await
    }

    pub(super) fn claim(
        &self,
        worker: &WorkerId,
        owners: Owners,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Option<Claim>, QueueError> {
        // An idle worker polls often, and most polls find nothing: those must not write.
        if !self.read(|connection| reading::has_due(connection, now))? {
            return Ok(None);
        }
        let (worker, policy) = (worker.clone(), policy.clone());
        self.write(move |connection| operation::claim(connection, &worker, owners, &policy, now))
    }

    pub(super) fn correct_times(
        &self,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<usize, QueueError> {
        // Most calls find nothing, and those must not write.
        if !self.read(|connection| reading::has_wrong_times(connection, policy, now))? {
            return Ok(0);
        }
        let policy = policy.clone();
        self.write(move |connection| operation::correct_times(connection, &policy, now))
    }

    /// Lists the updates that are being built.
    pub(super) fn running(&self) -> Result<Vec<Update>, QueueError> {
        self.read(|connection| reading::running(connection))
    }

    pub(super) fn end_lease(
        &self,
        id: &StatusId,
        epoch: u64,
        now: Timestamp,
    ) -> Result<bool, QueueError> {
        let id = id.clone();
        self.write(move |connection| operation::end_lease(connection, &id, epoch, now))
    }

    pub(super) fn heartbeat(
        &self,
        claim: &Claim,
        progress: Progress,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Held, QueueError> {
        let (claim, policy) = (claim.clone(), policy.clone());
        self.write(move |connection| {
            operation::heartbeat(connection, &claim, &progress, &policy, now)
        })
    }

    pub(super) fn raise_generation(
        &self,
        claim: &Claim,
        at_least: u64,
    ) -> Result<Held, QueueError> {
        let claim = claim.clone();
        self.write(move |connection| operation::raise_generation(connection, &claim, at_least))
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
        self.write(move |connection| {
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
        let cancelled =
            self.write(move |connection| operation::cancel(connection, &project, &summary, now));
        Ok(cancelled?.is_some())
    }

    pub(super) fn record_served(
        &self,
        project: &ProjectId,
        fence: Fence,
        now: Timestamp,
    ) -> Result<(), QueueError> {
        let project = project.clone();
        self.write(move |connection| visible::record_served(connection, &project, fence, now))
    }

    pub(super) fn not_yet_visible(&self) -> Result<Vec<ProjectId>, QueueError> {
        self.read(|connection| visible::not_yet_visible(connection))
    }

    pub(super) fn requeue(
        &self,
        project: &ProjectId,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Option<Enqueued>, QueueError> {
        let (project, policy) = (project.clone(), policy.clone());
        self.write(move |connection| operation::requeue(connection, &project, &policy, now))
    }

    pub(super) fn reserve_spending(
        &self,
        owner: &str,
        requested: Spending,
        limit: Spending,
        now: Timestamp,
    ) -> Result<Option<Spending>, QueueError> {
        let owner = owner.to_owned();
        self.write(move |connection| {
            spending::reserve(connection, &owner, day_of(now), requested, limit)
        })
    }

    pub(super) fn settle_spending(
        &self,
        owner: &str,
        reserved: Spending,
        used: Spending,
        begun: Timestamp,
    ) -> Result<(), QueueError> {
        let owner = owner.to_owned();
        self.write(move |connection| {
            spending::settle(connection, &owner, day_of(begun), reserved, used)
        })
    }

    pub(super) fn spending(&self, owner: &str, now: Timestamp) -> Result<Spending, QueueError> {
        self.read(|connection| spending::spent(connection, owner, day_of(now)))
    }

    pub(super) fn sweep(&self, policy: &Policy, now: Timestamp) -> Result<Swept, QueueError> {
        let mut total = Swept::default();
        let oldest = day_of(now).saturating_sub(SPENDING_DAYS);
        self.write(move |connection| spending::sweep(connection, oldest))?;
        loop {
            let policy = policy.clone();
            let swept = self.write(move |connection| operation::sweep(connection, &policy, now))?;
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
            reading::record(&*snapshot, id)
        })
    }

    pub(super) fn dead_letters(&self, limit: u32) -> Result<Vec<Update>, QueueError> {
        self.read(|connection| reading::dead_letters(connection, limit))
    }

    pub(super) fn recent(
        &self,
        project: &ProjectId,
        limit: u32,
    ) -> Result<Vec<Update>, QueueError> {
        self.read(|connection| reading::recent(connection, project, limit))
    }

    pub(super) fn generation(&self, project: &ProjectId) -> Result<u64, QueueError> {
        self.read(|connection| reading::generation(connection, project))
    }

    pub(super) fn depth(&self) -> Result<Depth, QueueError> {
        self.read(|connection| reading::depth(connection))
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::super::update::Source;
    use super::super::LOG_LINES_MAX;
    use super::*;

    fn queue() -> (Sqlite, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let sqlite = Sqlite::open(&directory.path().join("updates.sqlite")).unwrap();
        (sqlite, directory)
    }

    #[test]
    fn a_replaced_file_is_opened_when_no_call_uses_the_old_one() {
        let (sqlite, directory) = queue();
        let path = directory.path().join("updates.sqlite");
        let used = sqlite.file().unwrap();
        fs::remove_file(&path).unwrap();
        assert!(matches!(sqlite.reopen(), Err(QueueError::Replaced)));
        assert!(!path.exists());
        drop(used);
        sqlite.reopen().unwrap();
        assert!(path.exists());
    }

    #[test]
    fn a_probe_writes() {
        let (sqlite, directory) = queue();
        sqlite.probe().unwrap();
        let other = Connection::open(directory.path().join("updates.sqlite")).unwrap();
        other.execute_batch("DROP TABLE totals").unwrap();
        assert!(matches!(sqlite.probe(), Err(QueueError::Unavailable(_))));
    }

    #[test]
    fn all_connections_are_closed_before_the_file_is_opened_anew() {
        let (sqlite, _directory) = queue();
        let error = || QueueError::Corrupt("a test".to_owned());
        let waited = || {
            let before = Arc::downgrade(&sqlite.file().unwrap());
            let since = Instant::now();
            sqlite.open_anew(error()).unwrap();
            (since.elapsed(), before.strong_count())
        };
        // Without other callers there is nothing to wait for. A loaded machine may be slow.
        let is_short = |(waited, users)| waited < CLOSE_TIMEOUT && users == 0;
        assert!((0..5).any(|_| is_short(waited())));
        // The wait for another caller ends.
        let used = sqlite.file().unwrap();
        let (waited, users) = waited();
        assert!(waited >= CLOSE_TIMEOUT && users == 1, "{waited:?}");
        assert!(!Arc::ptr_eq(&used, &sqlite.file().unwrap()));
    }

    #[test]
    fn a_probe_of_a_deleted_file_creates_none() {
        let (sqlite, directory) = queue();
        let path = directory.path().join("updates.sqlite");
        fs::remove_file(&path).unwrap();
        assert!(matches!(sqlite.probe(), Err(QueueError::Replaced)));
        assert!(!path.exists());
    }

    #[test]
    fn a_copy_of_a_file_in_use_has_what_was_committed() {
        let (sqlite, directory) = queue();
        let [path, copy] =
            ["updates.sqlite", "copy.sqlite"].map(|name| directory.path().join(name));
        let id = StatusId::generate(now()).unwrap();
        assert!(restore(&sqlite, &id));
        Sqlite::copy(&path, &copy).unwrap();
        Sqlite::check(&copy).unwrap();
        let copied = Sqlite::open(&copy).unwrap();
        assert_eq!(copied.record(&id).unwrap().unwrap().update.id, id);
        // An existing file is never replaced, and a missing one is not created.
        assert!(Sqlite::copy(&path, &copy).is_err());
        let missing = directory.path().join("missing.sqlite");
        assert!(Sqlite::check(&missing).is_err() && !missing.exists());
    }

    #[test]
    fn an_update_is_restored_once_and_superseded_by_one_that_waits() {
        let (sqlite, _directory) = queue();
        let [first, second] = [(); 2].map(|()| StatusId::generate(now()).unwrap());
        assert!(restore(&sqlite, &first));
        assert!(!restore(&sqlite, &first));
        assert!(restore(&sqlite, &second));
        let record = sqlite.record(&second).unwrap().unwrap();
        assert_eq!(record.newer.unwrap().id, first);
        assert!(!restore(&sqlite, &second));
    }

    /// Counts the statements that change tables.
    struct Counting<'c>(&'c Connection, std::cell::Cell<usize>);

    impl Tables for Counting<'_> {
        fn execute(
            &self,
            sql: &str,
            values: &[super::super::sql::Value<'_>],
        ) -> Result<usize, QueueError> {
            self.1.set(self.1.get() + 1);
            Tables::execute(self.0, sql, values)
        }

        fn rows(
            &self,
            sql: &str,
            values: &[super::super::sql::Value<'_>],
        ) -> Result<Vec<super::super::sql::Cells>, QueueError> {
            Tables::rows(self.0, sql, values)
        }

        fn locking(&self) -> &'static str {
            self.0.locking()
        }

        fn skipping_locked(&self) -> &'static str {
            self.0.skipping_locked()
        }
    }

    #[test]
    fn lines_beyond_the_limit_of_a_log_cost_the_queue_nothing() {
        let (sqlite, _directory) = queue();
        let policy = Policy::default();
        assert!(restore(&sqlite, &StatusId::generate(now()).unwrap()));
        let worker = WorkerId::new("worker");
        let claim = sqlite.claim(&worker, Owners::All, &policy, now());
        let claim = claim.unwrap().unwrap();
        let counted = |lines: usize| {
            let (claim, policy) = (claim.clone(), policy.clone());
            let counted = sqlite.write(move |connection| {
                let tables = Counting(connection, std::cell::Cell::default());
                let progress = Progress {
                    lines: vec!["line".to_owned(); lines],
                    commit: None,
                };
                let held = operation::heartbeat(&tables, &claim, &progress, &policy, now())?;
                assert_eq!(held, Held::Yes);
                Ok(tables.1.get())
            });
            counted.unwrap()
        };
        let one = counted(1);
        assert_eq!(counted(3 * LOG_LINES_MAX) - one, LOG_LINES_MAX - 2);
        assert_eq!(counted(LOG_LINES_MAX), one - 1);
        let logs = sqlite.record(claim.id()).unwrap().unwrap().logs;
        assert_eq!(logs.len(), LOG_LINES_MAX);
    }

    fn now() -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000)
    }

    fn restore(sqlite: &Sqlite, id: &StatusId) -> bool {
        let id = id.clone();
        let trigger = Trigger {
            project: ProjectId::parse("docs").unwrap(),
            owner: "acme".into(),
            subdomain: "docs".into(),
            source: Source::Api,
            idempotency: None,
        };
        let restored =
            sqlite.write(move |connection| operation::restore(connection, &id, &trigger, now()));
        restored.unwrap()
    }
}
