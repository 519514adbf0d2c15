//! The connections to the database of a store.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use prometheus::{IntCounter, IntGauge};

use super::blocking;
use crate::database::{
    Config, Connect, DatabaseError, Link, Promises, Repeat, Schema, Session, Value, check_schema,
    init, migrate,
};
use crate::error::chain;
use crate::telemetry;

/// How often a connection that listens is tested while nothing arrives.
const ALIVE: Duration = Duration::from_secs(15);
/// How long after a failure a connection that listens is made again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// The tables of a store.
pub(super) const SCHEMA: Schema = Schema {
    name: "waypost_store",
    holds: "store",
    section: "store.postgres",
    version: 2,
    compatible: 1,
    script: include_str!("schema.sql"),
    raises: &[include_str!("schema-2.sql")],
};

/// The database of a store: a few connections, which are made when they are needed.
pub(super) struct Database {
    server: Arc<Server>,
    connections: Mutex<Connections>,
    given_back: Condvar,
    /// Held while a hint is sent.
    notifying: Mutex<()>,
    /// Whether somebody waits to send the next one.
    is_notified_next: AtomicBool,
}

#[derive(Default)]
struct Connections {
    idle: Vec<Session>,
    open: usize,
}

struct Server {
    config: Config,
    service: Box<str>,
    promises: Mutex<Option<Promises>>,
    life: Mutex<Option<Life>>,
    metrics: OnceLock<Metrics>,
}

/// The metrics of the connections.
#[derive(Debug)]
pub struct Metrics {
    durable: IntGauge,
    timeline: IntGauge,
    connections: IntCounter,
}

/// Which store the database has, and which life of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// A random text of the store, made with its tables.
    pub store: String,
    /// The system identifier and the timeline of the server, unless the user may not read them, and
    /// the numbers of the database and of its tables. One of them changes when a standby takes over
    /// or a backup is restored.
    pub server: String,
}

// === impl Metrics ===

impl Metrics {
    /// Registers them.
    #[must_use]
    pub fn new(metrics: &telemetry::Metrics) -> Self {
        let durable = IntGauge::new(
            "store_database_durable",
            "Whether the database of the store promises that acknowledged changes survive (1) or not (0).",
        );
        let timeline = IntGauge::new(
            "store_database_timeline",
            "The timeline of the database of the store; it changes when a standby takes over.",
        );
        let connections = IntCounter::new(
            "store_database_connections_total",
            "Connections made to the database of the store.",
        );
        Self {
            durable: metrics.register(durable),
            timeline: metrics.register(timeline),
            connections: metrics.register(connections),
        }
    }

    fn show(&self, promises: &Promises) {
        self.durable.set(promises.gaps.is_empty().into());
        self.timeline.set(promises.timeline().into());
    }
}

// === impl Server ===

impl Connect for Server {
    fn connect(&self) -> Result<Link, DatabaseError> {
        let link = Link::open(&self.config, &SCHEMA)?;
        self.check(&link)?;
        if let Some(metrics) = self.metrics.get() {
            metrics.connections.inc();
        }
        Ok(link)
    }

    fn check(&self, link: &Link) -> Result<(), DatabaseError> {
        let durable = self.metrics.get().map(|metrics| &metrics.durable);
        let (config, service) = (&self.config, &self.service);
        let promises = Promises::confirmed(link, config, &SCHEMA, service, durable)?;
        let store = link.one("SELECT store FROM identity", &[])?.text()?;
        let server = promises.life.to_string();
        let life = Life { store, server };
        let before = lock(&self.life).replace(life.clone());
        if before.as_ref().is_some_and(|before| *before != life) {
            log::error!(target: "store", "the database of the store has another history than before ({}): what it acknowledged last may be lost", life.server);
        }
        if let Some(metrics) = self.metrics.get() {
            metrics.show(&promises);
        }
        let mut last = lock(&self.promises);
        if last.as_ref() != Some(&promises) {
            let level = match promises.is_weak() {
                false => log::Level::Info,
                true => log::Level::Warn,
            };
            log::log!(target: "store", level, "the database of the store: {promises}");
            *last = Some(promises);
        }
        Ok(())
    }
}

// === impl Database ===

impl Database {
    pub(super) fn new(config: &Config, service: &str) -> Self {
        Self {
            server: Arc::new(Server {
                config: config.clone(),
                service: service.into(),
                promises: Mutex::default(),
                life: Mutex::default(),
                metrics: OnceLock::new(),
            }),
            connections: Mutex::default(),
            given_back: Condvar::new(),
            notifying: Mutex::default(),
            is_notified_next: AtomicBool::new(false),
        }
    }

    /// Shows what the server promises, and counts connections from now on.
    pub(super) fn report_to(&self, metrics: &telemetry::Metrics) {
        let metrics = self.server.metrics.get_or_init(|| Metrics::new(metrics));
        if let Some(promises) = &*lock(&self.server.promises) {
            metrics.show(promises);
        }
    }

    /// Makes the tables. Returns `false` if they are there already.
    pub(super) fn init(
        config: &Config,
        service: &str,
        shared: bool,
    ) -> Result<bool, DatabaseError> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)
            .map_err(|error| DatabaseError::unavailable(std::io::Error::other(error)))?;
        let store = hex::encode(random);
        let link = Link::open(config, &SCHEMA)?;
        Promises::ask(&link, config, &SCHEMA)?;
        init(&link, &SCHEMA, service, shared, |link| {
            let values = [
                Value::Text(service),
                u64::from(SCHEMA.version).into(),
                u64::from(SCHEMA.compatible).into(),
                Value::Text(&store),
            ];
            let row = "INSERT INTO identity (service, version, compatible, store) \
                       VALUES (?1, ?2, ?3, ?4)";
            link.execute(row, &values).map(|_one| ())
        })
    }

    /// Connects once, and checks whether the database can be used.
    pub(super) fn check(config: &Config, service: &str) -> Result<(), DatabaseError> {
        let link = Link::open(config, &SCHEMA)?;
        Promises::ask(&link, config, &SCHEMA)?;
        check_schema(&link, &SCHEMA, service)
    }

    /// Raises the tables to the version of this program. Returns that version.
    pub(super) fn migrate(config: &Config, service: &str) -> Result<u32, DatabaseError> {
        let link = Link::open(config, &SCHEMA)?;
        Promises::ask(&link, config, &SCHEMA)?;
        migrate(&link, &SCHEMA, service)
    }

    /// Returns which store this is, as the last connection found it.
    pub(super) fn life(&self) -> Result<Life, DatabaseError> {
        if let Some(life) = lock(&self.server.life).clone() {
            return Ok(life);
        }
        self.transact(crate::database::READ, Repeat::Always, |_link, _now| Ok(()))?;
        let missing = || DatabaseError::Corrupt("the identity is missing".to_owned());
        lock(&self.server.life).clone().ok_or_else(missing)
    }

    /// Runs a transaction. `act` may run several times.
    pub(super) fn transact<T: Send>(
        &self,
        begin: &str,
        repeat: Repeat,
        mut act: impl FnMut(&Link, u64) -> Result<T, DatabaseError> + Send,
    ) -> Result<T, DatabaseError> {
        blocking(|| {
            let mut session = self.session();
            let done = session.transact(begin, repeat, &mut act);
            lock(&self.connections).idle.push(session);
            self.given_back.notify_one();
            done
        })
    }

    /// Notifies the readers that there is a change, after its commit. While one hint is being sent,
    /// the next one is sent for all changes until then.
    pub(super) fn notify(&self) {
        // `NOTIFY` holds a lock of all databases of the server until its commit, so nothing else is
        // in its transaction, and its commit waits for no disk.
        const NOTIFY: &str =
            "BEGIN; SET LOCAL synchronous_commit = off; NOTIFY waypost_store; COMMIT";
        if self.is_notified_next.swap(true, Ordering::AcqRel) {
            return;
        }
        let notifying = lock(&self.notifying);
        self.is_notified_next.store(false, Ordering::Release);
        blocking(|| {
            let mut session = self.session();
            session.hint(NOTIFY);
            lock(&self.connections).idle.push(session);
            self.given_back.notify_one();
        });
        drop(notifying);
    }

    /// Calls `notified` for each hint that a process has sent, and when there may have been some.
    /// It never returns.
    pub(super) fn listen(&self, notified: impl Fn()) -> ! {
        loop {
            let listening = self.server.connect().and_then(|link| {
                link.batch("LISTEN waypost_store")?;
                Ok(link)
            });
            match listening {
                Ok(link) => {
                    // There may have been changes before.
                    notified();
                    while !link.is_broken() {
                        match link.wait_for_notify(ALIVE) {
                            true => notified(),
                            // Finds out whether the connection still works.
                            false => {
                                let _broken = link.batch("SELECT 1");
                            }
                        }
                    }
                }
                Err(error) => {
                    log::debug!(target: "store", "cannot listen to the database: {}", chain(&error));
                }
            }
            // Meanwhile readers ask.
            std::thread::sleep(LISTEN_AGAIN);
        }
    }

    /// Takes a connection that nobody uses, or waits for one.
    fn session(&self) -> Session {
        let mut connections = lock(&self.connections);
        loop {
            if let Some(session) = connections.idle.pop() {
                return session;
            }
            if connections.open < self.server.config.connections_max {
                connections.open += 1;
                return Session::new(Arc::<Server>::clone(&self.server));
            }
            let waited = self.given_back.wait(connections);
            connections = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let idle = std::mem::take(&mut lock(&self.connections).idle);
        // A connection has a runtime, which must not end where others are driven.
        blocking(|| drop(idle));
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
