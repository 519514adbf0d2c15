//! Databases of unit tests, on one server for all tests of a process.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tempfile::TempDir;

use super::Config;
use super::cluster::Cluster;

/// The server, and the templates that it has.
struct Shared {
    cluster: Cluster,
    templates: BTreeSet<&'static str>,
}

fn shared() -> &'static Mutex<Shared> {
    static SHARED: OnceLock<Mutex<Shared>> = OnceLock::new();
    SHARED.get_or_init(|| {
        let settings = ["fsync=off", "full_page_writes=off", "autovacuum=off"];
        Mutex::new(Shared {
            cluster: Cluster::start(&settings),
            templates: BTreeSet::new(),
        })
    })
}

fn settings_of(cluster: &Cluster, database: &str) -> Config {
    Config {
        url: Some(cluster.url(database).into()),
        password_file: Some(cluster.password_file()),
        tls: false,
        connections_max: 2,
        require_durable: false,
        ..Config::default()
    }
}

/// The name of a database. The database is dropped with this value.
struct Database(String);

impl Drop for Database {
    fn drop(&mut self) {
        let shared = shared().lock().unwrap_or_else(PoisonError::into_inner);
        let sql = format!("DROP DATABASE {} WITH (FORCE)", self.0);
        // A panic in a destructor of a thread would end all tests.
        let _left = shared.cluster.psql("postgres", &sql);
    }
}

thread_local! {
    /// The databases of the test in this thread. They are dropped when the test ends, because each
    /// takes 8 MB.
    static OWN: RefCell<Vec<Database>> = const { RefCell::new(Vec::new()) };
}

/// Makes an empty database.
pub(crate) fn empty() -> Config {
    copy("template0")
}

/// Makes a database with the tables that `init` makes in the first one of this name.
pub(crate) fn with_tables(template: &'static str, init: impl FnOnce(&Config)) -> Config {
    let mut shared = shared().lock().unwrap_or_else(PoisonError::into_inner);
    if shared.templates.insert(template) {
        let sql = format!("CREATE DATABASE {template}");
        shared.cluster.psql("postgres", &sql).unwrap();
        init(&settings_of(&shared.cluster, template));
    }
    drop(shared);
    copy(template)
}

fn copy(template: &str) -> Config {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("test{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let shared = shared().lock().unwrap_or_else(PoisonError::into_inner);
    let sql = format!("CREATE DATABASE {name} TEMPLATE {template}");
    shared.cluster.psql("postgres", &sql).unwrap();
    let settings = settings_of(&shared.cluster, &name);
    OWN.with_borrow_mut(|own| own.push(Database(name)));
    settings
}

/// Runs a statement in the database of these settings, and returns what it prints.
pub(crate) fn psql(config: &Config, sql: &str) -> String {
    let url = config.url.as_deref().unwrap();
    let name = url.split('?').next().unwrap().rsplit('/').next().unwrap();
    let shared = shared().lock().unwrap_or_else(PoisonError::into_inner);
    shared.cluster.psql(name, sql).unwrap()
}

/// A relay between clients and the server. It can lose the answer to a commit, with the connection.
pub(crate) struct Relay {
    _directory: TempDir,
    loses_next: Arc<AtomicBool>,
}

impl Relay {
    /// Starts a relay for these settings, and changes them so that clients use it.
    pub(crate) fn start(config: &mut Config) -> Self {
        const SOCKET: &str = ".s.PGSQL.5432";
        let directory = tempfile::tempdir().unwrap();
        let url = config.url.as_deref().unwrap();
        let (database, server) = url.split_once("?host=").unwrap();
        let server = std::path::Path::new(server).join(SOCKET);
        let listener = UnixListener::bind(directory.path().join(SOCKET)).unwrap();
        let loses_next = Arc::new(AtomicBool::new(false));
        let loses = Arc::clone(&loses_next);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), UnixStream::connect(&server).unwrap());
                pass(client, server, &loses).unwrap();
            }
        });
        config.url = Some(format!("{database}?host={}", directory.path().display()).into());
        Self {
            _directory: directory,
            loses_next,
        }
    }

    /// Loses the answer to the next commit: the server makes it, and the client does not know.
    pub(crate) fn lose_next_commit(&self) {
        self.loses_next.store(true, Ordering::SeqCst);
    }

    /// Returns whether the answer was lost.
    pub(crate) fn has_lost(&self) -> bool {
        !self.loses_next.load(Ordering::SeqCst)
    }
}

/// Passes on the bytes of a connection, each way in a thread.
fn pass(client: UnixStream, server: UnixStream, loses_next: &Arc<AtomicBool>) -> io::Result<()> {
    let is_lost = Arc::new(AtomicBool::new(false));
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    let (loses_next, loses) = (Arc::clone(loses_next), Arc::clone(&is_lost));
    std::thread::spawn(move || -> io::Result<()> {
        let mut bytes = [0; 65_536];
        loop {
            let length = from.read(&mut bytes)?;
            let commits = memchr::memmem::find(&bytes[..length], b"COMMIT").is_some();
            if commits && loses_next.swap(false, Ordering::SeqCst) {
                loses.store(true, Ordering::SeqCst);
            }
            if length == 0 {
                return to.shutdown(Shutdown::Both);
            }
            to.write_all(&bytes[..length])?;
        }
    });
    let (mut from, mut to) = (server, client);
    std::thread::spawn(move || -> io::Result<()> {
        let mut bytes = [0; 65_536];
        loop {
            let length = from.read(&mut bytes)?;
            if length == 0 || is_lost.load(Ordering::SeqCst) {
                return to.shutdown(Shutdown::Both);
            }
            to.write_all(&bytes[..length])?;
        }
    });
    Ok(())
}
