//! The configuration: one YAML file with the settings of all modules.
//!
//! Every setting is defined in the module that uses it, with its default and its meaning; this
//! module only reads the file. Only `cli` uses this module; it passes each part to its module.
//!
//! [`Config::parse`] reports every mistake at once, with line and column. A wrong value is an
//! error; it is never replaced by the default. `conf/waypost.yaml` lists every key with its
//! default; tests check that it is equal to [`Config::default`] and complete.
//!
//! Paths are relative to the directory the process is started in.

mod acme;
mod deploying;
mod follow;
mod read;
mod verification;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::deploy::sites::verification as ownership;
use crate::deploy::{api, queue, run, worker};
use crate::diagnostic::Diagnostic;
use crate::gateway::access;
use crate::gateway::clients::ClientLimits;
use crate::gateway::{Limits, UpstreamLimits, copies, memory, tls};
use crate::numbers;
use crate::site::{Network, PrivateHosts, Scheme, Service};
use crate::source::{git, remote};
use crate::store::{local, shared};
use crate::telemetry::logging;

/// All settings of an operator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The name and the hosts of the platform.
    pub service: Service,
    /// The addresses of the listeners.
    pub listen: Listen,
    /// Where releases are stored.
    pub store: Store,
    /// Where edges follow this node.
    pub edges: Edges,
    /// Where the queue of updates is stored.
    pub queue: Queue,
    /// The time limits and the number of attempts of updates, and how long they are stored.
    pub updates: queue::Policy,
    /// How repositories are fetched.
    pub git: git::Config,
    /// Which specifications are fetched if documentation names them by URL.
    pub specifications: remote::Config,
    /// How many updates are built at once.
    pub worker: worker::Config,
    /// The limits of one build.
    pub builds: run::Limits,
    /// How the processes of builds are isolated.
    pub isolation: run::Isolation,
    /// The command or model that writes `skill.md` for sites whose authors wrote none.
    pub generate: run::generate::Config,
    /// Where site records are, and how they are watched.
    pub sites: Sites,
    /// Where certificates are.
    pub tls: tls::Config,
    /// How certificates are ordered.
    pub acme: crate::acme::Config,
    /// The limits of clients' connections.
    pub connections: Connections,
    /// The limits on each client address.
    pub clients: ClientLimits,
    /// The bound on memory.
    pub memory: memory::Config,
    /// The limits of connections to sites' own servers.
    pub upstream: UpstreamLimits,
    /// The copies of responses of sites' own servers.
    pub copies: copies::Config,
    /// The servers of sites that may have a private address.
    pub private_hosts: PrivateHosts,
    /// Where requests are logged.
    pub access_log: access::Target,
    /// The format and the filter of the process log.
    pub log: logging::Config,
    /// The admin API.
    pub admin: api::Config,
    /// Counts of requests, searches and votes for the owners of sites.
    pub numbers: numbers::Config,
    /// How backups are made.
    pub backup: Backup,
    /// How owners prove that domains are theirs.
    pub verification: ownership::Config,
    /// The settings of pingora, for [`server_conf`](crate::gateway::server::server_conf).
    pub server: Map<String, Value>,
}

/// The addresses of the listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The addresses for HTTP without TLS.
    pub http: Vec<SocketAddr>,
    /// The addresses for HTTPS.
    pub https: Vec<SocketAddr>,
    /// The address for health, readiness and metrics, which must not be public; `None` turns it
    /// off.
    pub operator: Option<SocketAddr>,
    /// The file with the token of requests that change state; `None`: `operator-token` in the
    /// directory of the store.
    pub operator_token: Option<PathBuf>,
    /// Host names by which such requests may reach the operator's listener.
    pub operator_hosts: Vec<String>,
    /// The unix socket on which `waypost upgrade` asks for a new process.
    pub upgrade_socket: UpgradeSocket,
}

/// Where the unix socket for `waypost upgrade` is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UpgradeSocket {
    /// In the directory of the store: `upgrade.sock`.
    #[default]
    InStore,
    /// At this path.
    At(PathBuf),
    /// Nowhere: the process cannot be upgraded.
    Off,
}

/// The store of releases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Store {
    /// A directory of this machine.
    Local(local::Config),
    /// A database and an object store, which several machines share.
    Shared(Box<SharedStore>),
    /// The releases and site records of another node: this node is an edge.
    Follow {
        /// How it follows.
        follow: Box<crate::follow::Config>,
        /// The cache, which is a store in a directory of this machine.
        cache: local::Config,
    },
}

/// A shared store, and the cache of this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedStore {
    /// Its database and its objects.
    pub config: shared::Config,
    /// The cache, which is a store in a directory of this machine.
    pub cache: local::Config,
    /// How many bytes of files the cache of a gateway holds.
    pub cache_bytes_max: u64,
}

/// The listener for edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edges {
    /// Its address; `None` if no edge follows this node.
    pub listen: Option<SocketAddr>,
    /// The file of its certificate, with the certificates of the authority.
    pub certificate: Option<PathBuf>,
    /// The file of the private key.
    pub key: Option<PathBuf>,
    /// Whether it has no TLS.
    pub allow_http: bool,
    /// How long the order of a certificate waits until every edge answers its challenge.
    pub challenge_wait: Duration,
    /// How many rings of edges there are.
    pub rings: u8,
    /// How long a change stays in a ring before the next ring gets it.
    pub hold: Duration,
    /// The longest list of all sites that edges read, in bytes without compression.
    pub snapshot_bytes_max: u64,
    /// The longest file of a release that edges fetch, in bytes. No longer one is published.
    pub object_bytes_max: u64,
}

impl Default for Edges {
    fn default() -> Self {
        Self {
            listen: None,
            certificate: None,
            key: None,
            allow_http: false,
            challenge_wait: Duration::from_secs(10),
            rings: 1,
            hold: Duration::from_secs(300),
            snapshot_bytes_max: crate::follow::Config::default().snapshot_bytes_max,
            object_bytes_max: crate::follow::Config::default().object_bytes_max,
        }
    }
}

/// Where the queue of updates is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// A SQLite file of this machine, if no PostgreSQL is named; it is created if it does not
    /// exist. Workers of this machine declare themselves alive beside it in any case.
    pub sqlite: PathBuf,
    /// A PostgreSQL database, if one is named.
    pub postgres: queue::PostgresConfig,
}

/// How backups are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backup {
    /// The file with the key that encrypts them.
    pub key_file: Option<PathBuf>,
    /// How many backups stay in a directory; 0: all.
    pub keep: usize,
}

/// Where site records are, and how changes are noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sites {
    /// A directory of record files, or one such file.
    pub path: PathBuf,
    /// How often records and pointers are compared with the served state, in case the system did
    /// not report a change.
    pub rescan: Duration,
}

/// The limits of clients' connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Limits of time and size.
    pub limits: Limits,
    /// Whether the fast path serves discovery without pingora where this is possible.
    pub fast_path: bool,
    /// How many bytes of pages the cache contains, for all sites together.
    pub page_cache_bytes: usize,
    /// The networks of the operator's load balancers, whose forwarding fields are trusted.
    pub trusted_peers: Vec<Network>,
    /// The networks of load balancers that begin each connection with a header of the PROXY
    /// protocol.
    pub proxy_protocol: Vec<Network>,
}

// === impl Config ===

impl Config {
    /// Reads a configuration. `file` is the name of the file in diagnostics.
    ///
    /// # Errors
    ///
    /// All diagnostics, in the order of the file.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Diagnostic>> {
        read::read(file, text)
    }

    /// Returns whether requests without TLS are redirected to TLS, for hosts that have a certificate:
    /// as the operator says, else if this process gets certificates by ACME, from an authority or
    /// from the node that it follows.
    #[must_use]
    pub fn redirects(&self) -> bool {
        let follows = match &self.store {
            Store::Follow { follow, .. } => follow.key_file.is_some(),
            Store::Local(_) | Store::Shared(_) => false,
        };
        let has_tls = !self.listen.https.is_empty() && self.service.scheme == Scheme::Https;
        let by_default = has_tls && (self.acme.is_on() || follows);
        self.tls.redirect.unwrap_or(by_default)
    }
}

// === impl Listen, Store, Queue, Sites, Connections ===

impl Default for Listen {
    /// Loopback addresses: a gateway is public only if the operator configures it.
    fn default() -> Self {
        Self {
            http: vec![SocketAddr::from(([127, 0, 0, 1], 8080))],
            https: Vec::new(),
            operator: Some(SocketAddr::from(([127, 0, 0, 1], 9080))),
            operator_token: None,
            operator_hosts: Vec::new(),
            upgrade_socket: UpgradeSocket::InStore,
        }
    }
}

impl Store {
    /// Returns the settings of the directory on this machine: the store, or the cache of an edge.
    #[must_use]
    pub fn local(&self) -> &local::Config {
        match self {
            Self::Local(local) | Self::Follow { cache: local, .. } => local,
            Self::Shared(shared) => &shared.cache,
        }
    }

    /// Returns the shared store, if it is one.
    #[must_use]
    pub fn shared(&self) -> Option<&SharedStore> {
        match self {
            Self::Shared(shared) => Some(shared),
            _ => None,
        }
    }

    /// Returns whether this node is an edge.
    #[must_use]
    pub fn is_edge(&self) -> bool {
        matches!(self, Self::Follow { .. })
    }
}

impl Default for Store {
    fn default() -> Self {
        Self::Local(local::Config::default())
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            sqlite: "var/updates.sqlite".into(),
            postgres: queue::PostgresConfig::default(),
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
            proxy_protocol: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
