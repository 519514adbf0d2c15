//! The configuration: one YAML file, composed of what each module wants to know.
//!
//! Every setting belongs to the module that obeys it, with its default and its meaning;
//! here they only meet. Only `cli` uses this module, and hands each part to its owner.
//!
//! [`Config::parse`] reports every mistake at once, with line and column, and never falls
//! back to a default for a setting that is there and wrong. `conf/waypost.yaml` lists
//! every key at its default; tests hold it equal to [`Config::default`], and complete.
//!
//! Paths are relative to the directory the process is started in.

mod deploying;
mod read;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::deploy::{api, queue, run, worker};
use crate::diagnostic::Diagnostic;
use crate::gateway::access;
use crate::gateway::forward::Network;
use crate::gateway::{Limits, UpstreamLimits, tls};
use crate::site::Service;
use crate::source::{git, remote};
use crate::store::local;
use crate::telemetry::logging;

/// Everything an operator can set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// What the platform is called.
    pub service: Service,
    /// Where we listen.
    pub listen: Listen,
    /// Where releases are kept.
    pub store: Store,
    /// Where updates wait.
    pub queue: Queue,
    /// How long updates wait, how often they are tried, and how long they are kept.
    pub updates: queue::Policy,
    /// How repositories are fetched.
    pub git: git::Config,
    /// Which specifications are fetched that documentation names by URL.
    pub specifications: remote::Config,
    /// How many updates are built at once.
    pub worker: worker::Config,
    /// What one build may use.
    pub builds: run::Limits,
    /// Which command may write the `skill.md` that no author wrote.
    pub generate: run::generate::Config,
    /// Where site records are, and how they are watched.
    pub sites: Sites,
    /// Where certificates are.
    pub tls: tls::Config,
    /// What clients may take of us.
    pub connections: Connections,
    /// How patient we are with sites' own servers.
    pub upstream: UpstreamLimits,
    /// Where requests are logged.
    pub access_log: access::Target,
    /// How the process log looks.
    pub log: logging::Config,
    /// The admin API.
    pub admin: api::Config,
    /// pingora's own settings, for [`server_conf`](crate::gateway::server::server_conf).
    pub server: Map<String, Value>,
}

/// Where we listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// For HTTP in plain text.
    pub http: Vec<SocketAddr>,
    /// For HTTPS.
    pub https: Vec<SocketAddr>,
    /// For health, readiness and metrics; never public. `None` is nowhere.
    pub operator: Option<SocketAddr>,
}

/// Which store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Store {
    /// A directory of this machine.
    Local(local::Config),
}

/// Which queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Queue {
    /// A database file of this machine.
    Sqlite {
        /// The file; made when it does not exist.
        path: PathBuf,
    },
}

/// Where site records are, and how changes are noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sites {
    /// A directory of record files, or one such file.
    pub path: PathBuf,
    /// How often records and pointers are compared with what is served, in case the
    /// system told us nothing of a change.
    pub rescan: Duration,
}

/// What clients may take of us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Times and sizes.
    pub limits: Limits,
    /// Whether discovery is answered without pingora where that is possible.
    pub fast_path: bool,
    /// How many bytes of pages, of all sites together, are kept in memory.
    pub page_cache_bytes: usize,
    /// The networks of our own balancers, whose forwarding fields are believed.
    pub trusted_peers: Vec<Network>,
}

// === impl Config ===

impl Config {
    /// Reads a configuration. `file` is the name that findings carry.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, in the order of the file.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Diagnostic>> {
        read::read(file, text)
    }
}

// === impl Listen, Store, Queue, Sites, Connections ===

impl Default for Listen {
    /// Loopback: a gateway is public only when somebody says so.
    fn default() -> Self {
        Self {
            http: vec![SocketAddr::from(([127, 0, 0, 1], 8080))],
            https: Vec::new(),
            operator: Some(SocketAddr::from(([127, 0, 0, 1], 9080))),
        }
    }
}

impl Default for Store {
    fn default() -> Self {
        Self::Local(local::Config::default())
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self::Sqlite {
            path: "var/updates.sqlite".into(),
        }
    }
}

impl Default for Sites {
    fn default() -> Self {
        Self {
            path: "conf/sites".into(),
            rescan: Duration::from_secs(300),
        }
    }
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            fast_path: true,
            page_cache_bytes: crate::index::CACHE_BYTES_MAX,
            trusted_peers: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
