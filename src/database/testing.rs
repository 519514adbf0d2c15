//! Databases of unit tests, on one server for all tests of a process.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

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
    settings_of(&shared.cluster, &name)
}

/// Runs a statement in the database of these settings, and returns what it prints.
pub(crate) fn psql(config: &Config, sql: &str) -> String {
    let url = config.url.as_deref().unwrap();
    let name = url.split('?').next().unwrap().rsplit('/').next().unwrap();
    let shared = shared().lock().unwrap_or_else(PoisonError::into_inner);
    shared.cluster.psql(name, sql).unwrap()
}
