//! The shared store: records in PostgreSQL, releases in an object store.
//!
//! ```text
//! put ──▶ cache ──▶ objects ──▶ rows of the objects ──▶ row of the release
//! promote, site records ──▶ one transaction, whose last step takes the next revision
//! followers ──▶ changes after a revision, or everything
//! ```
//!
//! * **Order of writing.** An object is written before the row that names it, the rows of all
//!   objects of a release before the row of the release, and that before a pointer. So what the
//!   database names is there (S1), and the outcome of an update is in the database only after its
//!   objects are.
//! * **Order of changes.** The transaction of a promotion or of a site record takes the next
//!   revision last and holds it until its commit. So revisions become visible in order, and a
//!   reader that has seen one has seen all before it. Readers ask five times a second; a `NOTIFY`
//!   after each commit lets them ask at once. It is only a hint: if one is lost, the next question
//!   finds the change.
//! * **Reading.** A file is read from the cache, a local store in a directory of this machine; a
//!   missing file is fetched, checked by its digest, and kept. Pointers and site records are
//!   read from the database, so every write sees the newest state. A gateway does not serve from
//!   here: it follows the changes into its cache, and serves from that.
//! * **Locks** between processes are leases by the clock of the database (`lease`).
//! * **Sweep.** Rows are removed first, then the objects that they named. An object has a name that
//!   is used once, so a put at the same time writes another object. Objects of killed processes,
//!   which no row names, are looked for once a day.

mod changes;
mod check;
mod database;
mod documents;
mod http;
mod lease;
mod mirror;
mod numbers;
mod objects;
mod progress;
mod records;
mod releases;
mod seal;
mod sweep;
mod tickets;

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::{FileError, Local, Retention};
use crate::clock::Clock;
use crate::database::DatabaseError;
use crate::telemetry;
use database::Database as Connections;
use objects::Objects;

pub use self::changes::{Change, Changes, Place};
pub use self::database::{Life, Metrics};
pub use documents::SharedDocuments;
pub use lease::Lease;
pub use mirror::{ALIVE, Mirror, MirroredDocuments};
pub use objects::Config as ObjectsConfig;
pub use progress::{OtherGateway, WaitingProjects};
pub use seal::SealError;
pub use tickets::{SharedTicketKeys, TICKET_KEYS};

/// How long a write waits until this process serves it.
const SERVED_WAIT: Duration = Duration::from_secs(2);

/// The settings of a shared store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The database.
    pub database: crate::database::Config,
    /// The object store.
    pub objects: ObjectsConfig,
    /// How many releases are kept, and how long.
    pub retention: Retention,
    /// How many bytes the audit log may use; 0 for any.
    pub audit_bytes_max: u64,
}

/// A shared store.
#[derive(Debug)]
pub struct Shared {
    database: Arc<Connections>,
    objects: Objects,
    /// Whether the objects were found to be those of the database.
    is_ours: OnceLock<()>,
    cache: Local,
    retention: Retention,
    audit_bytes_max: u64,
    clock: Clock,
    followed: Mutex<Followed>,
    /// The cache has followed up to another revision.
    moved: Condvar,
    hints: Arc<Hints>,
}

/// Wakes the readers of changes and of documents between two questions.
#[derive(Debug, Default)]
struct Hints {
    count: Mutex<u64>,
    changed: Condvar,
}

/// How far this process has followed the changes into its cache.
#[derive(Debug, Default)]
struct Followed {
    /// Whether it follows.
    is_on: bool,
    revision: u64,
}

// === impl Shared ===

impl Shared {
    /// Opens the store. The database is connected when it is needed, so this works while it is
    /// away. `service` is the service's domain.
    ///
    /// # Errors
    ///
    /// When the settings of the object store cannot be used.
    pub fn open(
        config: &Config,
        service: &str,
        cache: Local,
        clock: Clock,
    ) -> Result<Self, FileError> {
        Ok(Self {
            database: Arc::new(Connections::new(&config.database, service)),
            objects: Objects::new(&config.objects)?,
            is_ours: OnceLock::new(),
            cache,
            retention: config.retention,
            audit_bytes_max: config.audit_bytes_max,
            clock,
            followed: Mutex::default(),
            moved: Condvar::new(),
            hints: Arc::default(),
        })
    }

    /// Shows in metrics what the database promises.
    #[must_use]
    pub fn with_metrics(self, metrics: &telemetry::Metrics) -> Self {
        self.database.report_to(metrics);
        self
    }

    /// Connects to the database once, and checks whether it can be used.
    ///
    /// # Errors
    ///
    /// Why not; [`DatabaseError::Unavailable`] when it cannot be reached now.
    pub fn check_database(config: &Config, service: &str) -> Result<(), DatabaseError> {
        Connections::check(&config.database, service)
    }

    /// Asks the object store once. Whether the objects belong to the database is checked if the
    /// database can be used, so that an outage of it hides no mistake here.
    ///
    /// # Errors
    ///
    /// Why the objects cannot be used. Its kind is `PermissionDenied` or `InvalidData` when that
    /// does not end by itself.
    pub fn check_objects(
        config: &Config,
        service: &str,
        is_database_used: bool,
    ) -> Result<(), FileError> {
        let objects = Objects::new(&config.objects)?;
        let marker = objects.marker()?;
        if !is_database_used {
            return Ok(());
        }
        let database = Connections::new(&config.database, service);
        belongs_to(
            &objects,
            marker,
            &database.life().map_err(store_error)?.store,
        )
    }

    /// Makes the tables, and marks the place of the objects as theirs. Returns `false` if both are
    /// there already. A database with tables of other programs is refused unless it is `shared`.
    ///
    /// # Errors
    ///
    /// The database or the object store cannot be used, or belongs to another store.
    pub fn init(config: &Config, service: &str, shared: bool) -> Result<bool, InitError> {
        // A place that cannot be used is found before there are tables.
        let objects = Objects::new(&config.objects)?;
        let marked = objects.marker()?;
        let made = Connections::init(&config.database, service, shared)?;
        let store = Connections::new(&config.database, service).life()?.store;
        if objects.mark(&store)? != store {
            return Err(InitError::Objects(other_store(&objects)));
        }
        Ok(made || marked.is_none())
    }

    /// Raises the tables to the version of this program. Returns that version.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub fn migrate(config: &Config, service: &str) -> Result<u32, DatabaseError> {
        Connections::migrate(&config.database, service)
    }

    /// Connects to database and objects, and checks whether they can be used.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn check_reachable(&self) -> Result<(), FileError> {
        self.database.life().map_err(store_error)?;
        self.objects()?;
        Ok(())
    }

    /// Returns the objects, after finding out that they are those of the database.
    fn objects(&self) -> Result<&Objects, FileError> {
        if self.is_ours.get().is_none() {
            let store = self.database.life().map_err(store_error)?.store;
            belongs_to(&self.objects, self.objects.marker()?, &store)?;
            let _set = self.is_ours.set(());
        }
        Ok(&self.objects)
    }

    /// Returns the local store that caches read and written objects.
    #[must_use]
    pub fn cache(&self) -> &Local {
        &self.cache
    }

    /// Listens to hints of other processes that there is a change, so that readers of this process
    /// need not wait until they ask again. It never returns.
    pub fn listen(&self) -> ! {
        self.database.listen(|| self.hints.notify())
    }

    /// Returns how many hints about changes this process has received, its own ones included.
    #[cfg(test)]
    pub(in crate::store) fn hint_count(&self) -> u64 {
        self.hints.count()
    }

    /// Notifies all followers of a change, and waits a moment until it is served here.
    fn changed(&self, revision: u64) {
        self.hints.notify();
        self.database.notify();
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if !followed.is_on {
            return;
        }
        let deadline = Instant::now() + SERVED_WAIT;
        while followed.revision < revision {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.moved.wait_timeout(followed, left);
            followed = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

// === impl Hints ===

impl Hints {
    fn notify(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }

    fn count(&self) -> u64 {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the count differs from `seen`, at most for a time.
    fn wait(&self, seen: u64, time: Duration) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(count, time, |count| *count == seen);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Why a store cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InitError {
    /// The database.
    #[error("make the store")]
    Database(#[from] DatabaseError),
    /// The object store.
    #[error("make the store")]
    Objects(#[from] FileError),
}

/// Returns why the objects are not those of a store, by the object that names their store.
fn belongs_to(objects: &Objects, marker: Option<String>, store: &str) -> Result<(), FileError> {
    match marker {
        Some(found) if found == store => Ok(()),
        Some(_other) => Err(other_store(objects)),
        None => {
            let why = "it has no object `waypost-store`; `waypost store init` makes it";
            Err(unusable(objects, why))
        }
    }
}

fn other_store(objects: &Objects) -> FileError {
    unusable(
        objects,
        "it belongs to another store (object `waypost-store`)",
    )
}

fn unusable(objects: &Objects, why: &str) -> FileError {
    let error = io::Error::new(io::ErrorKind::InvalidData, why);
    FileError::on("use the objects in", objects.place())(error)
}

/// Returns an error of the database as one of the store.
fn store_error(error: DatabaseError) -> FileError {
    FileError::on("use", Path::new("the database of the store"))(io::Error::other(error))
}

/// Runs something that drives a runtime of its own, also where another one is driven.
fn blocking<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if tokio::runtime::Handle::try_current().is_err() {
        return work();
    }
    std::thread::scope(|scope| {
        let done = scope.spawn(work).join();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Makes an empty store with a database of its own, for tests of other modules. Its objects and its
/// cache are in a directory.
#[cfg(test)]
pub(crate) fn testing(directory: &Path) -> Shared {
    let objects = directory.join("objects");
    std::fs::create_dir_all(&objects).unwrap();
    let mut config = Config {
        objects: ObjectsConfig {
            url: format!("file://{}", objects.display()).into(),
            ..ObjectsConfig::default()
        },
        ..Config::default()
    };
    config.database = crate::database::testing::empty();
    Shared::init(&config, "tests", false).unwrap();
    let settings = super::local::Config {
        path: directory.join("cache"),
        ..super::local::Config::default()
    };
    let cache = Local::open(&settings, Clock::System).unwrap();
    Shared::open(&config, "tests", cache, Clock::System).unwrap()
}

/// Returns texts as a JSON array, for a statement.
fn list<T: ToString>(texts: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<String> = texts.into_iter().map(|text| text.to_string()).collect();
    serde_json::to_string(&texts).expect("texts are JSON")
}
