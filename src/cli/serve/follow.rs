//! Following: the listener for edges on a node, and the thread that follows on an edge.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpSocket;
use tokio_util::sync::CancellationToken;

use super::Process;
use super::certificates::{self, Acme};
use super::reload::{Reload, Request, lock_reloader};
use super::shared::{ByEdges, EdgeSecrets, SourceSecrets};
use super::state::State;
use crate::acme::Elsewhere;
use crate::cli::settings;
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::error::chain;
use crate::follow::{
    self, ChangeLog, Fleet, Follower, FollowerParts, Relay, Responder, Rings, SecretFollower,
    Source, SourceParts, Status, StoreObserver,
};
use crate::gateway::clients::Clients;
use crate::gateway::followers::{self, Identity};
use crate::gateway::forward::TrustedPeers;
use crate::gateway::operator;
use crate::index::reload::Reloader;
use crate::numbers::received::Receiver;
use crate::store::Store;
use crate::store::sites::Removals;
use crate::store::watch::{Followed, Watch};
use crate::telemetry::{Health, Metrics, panics};

/// How often it is checked whether the cache was filled.
const FILLED_INTERVAL: Duration = Duration::from_millis(50);
/// How long is waited after records could not be read.
const LOAD_PAUSE: Duration = Duration::from_secs(5);
/// The number of the life of a source, below the directory of the store.
const LIFE: &str = "edges-life";

/// The listener for edges, before it accepts connections.
pub(super) struct Edges {
    pub(super) source: Arc<Source>,
    pub(super) secrets: Arc<SourceSecrets>,
    listener: EdgeListener,
}

/// What answers edges: nothing on most nodes.
pub(super) struct EdgeServices {
    /// On a node that edges follow.
    pub(super) node: Option<Edges>,
    /// On an edge that passes the requests of other edges on.
    relay: Option<(EdgeListener, Responder)>,
}

/// A cache that may never have been filled: then this node does not know yet which sites there are.
pub(super) struct Filling {
    pub(super) status: Arc<Status>,
    pub(super) reloader: Arc<Mutex<Reloader>>,
}

/// The listener for edges alone.
struct EdgeListener {
    socket: TcpSocket,
    identity: Option<Arc<Identity>>,
    clients: Arc<Clients>,
}

/// What an edge follows, before its thread starts.
pub(super) struct Following {
    pub(super) status: Arc<Status>,
    follower: Follower,
    secrets: Option<SecretFollower>,
    accepts_removals: Arc<AtomicBool>,
}

/// A request to compare with the disk, which on an edge also accepts removals by its source.
#[derive(Debug)]
struct EdgeRequest {
    request: Request,
    accepts_removals: Arc<AtomicBool>,
}

/// Reports to edges which revision of the shared store this node has.
#[derive(Debug)]
struct ToEdges {
    rings: Arc<Rings>,
    watch: Arc<Watch>,
}

/// Begins the logs of changes, if edges follow this node. They are filled by the first load.
pub(super) fn rings(config: &Config) -> anyhow::Result<Option<Arc<Rings>>> {
    if config.edges.listen.is_none() || config.store.is_edge() {
        return Ok(None);
    }
    // The file is in the directory of the store, which must exist.
    settings::open_store(config)?;
    let life = settings::store_path(config).join(LIFE);
    let service = config.service.domain.as_str();
    let now = Clock::System.unix_seconds();
    let logs = ChangeLog::begin(&life, service, now, config.edges.rings.into());
    let logs = logs.with_context(|| format!("write {}", life.display()))?;
    let frozen = settings::frozen(config);
    let rings = Rings::new(logs, config.edges.hold, frozen);
    Ok(Some(Arc::new(rings)))
}

// === impl EdgeServices ===

impl EdgeServices {
    /// Opens what answers on the listener for edges, if there is one.
    pub(super) fn open(
        config: &Config,
        state: &State,
        socket: Option<TcpSocket>,
        process: &Process,
    ) -> anyhow::Result<Self> {
        let (mut node, mut relay) = (None, None);
        let (metrics, handed_over) = (&process.metrics, process.handed_over.clone());
        let store = &state.reload.store;
        match (&state.rings, socket) {
            (None, Some(socket)) => {
                if let Some(responder) = self::relay(config, store, metrics, handed_over)? {
                    relay = Some((EdgeListener::new(config, socket, metrics)?, responder));
                }
            }
            (Some(rings), Some(socket)) => {
                let vault = state.acme.as_ref().map(Acme::vault);
                let shared_tickets = state.shared_tickets.clone();
                let tickets = certificates::ticket_source(config, None, shared_tickets);
                let directory = state.directory.clone();
                let secrets = SourceSecrets::new(rings, vault, directory, tickets);
                let counting = state.counting.as_ref();
                let numbers = counting.map(|it| it.receiver(config, &state.written));
                node = Some(Edges::open(
                    config,
                    (Arc::clone(rings), secrets),
                    (store, numbers),
                    socket,
                    (metrics, &process.health),
                    handed_over,
                )?);
            }
            (_, None) => {}
        }
        Ok(Self { node, relay })
    }

    /// Returns the edges that follow this node.
    pub(super) fn fleet(&self) -> Option<&Arc<Fleet>> {
        self.node.as_ref().map(|edges| edges.source.fleet())
    }

    /// Starts to accept connections. `filling` is the cache of the shared store.
    pub(super) fn start(self, filling: Option<Filling>) -> anyhow::Result<()> {
        if let Some(edges) = self.node {
            edges.start(filling)?;
        }
        if let Some((listener, responder)) = self.relay {
            listener.start(responder)?;
        }
        Ok(())
    }
}

// === impl Edges ===

impl Edges {
    fn open(
        config: &Config,
        (rings, secrets): (Arc<Rings>, Arc<SourceSecrets>),
        (store, numbers): (&Arc<Store>, Option<Receiver>),
        socket: TcpSocket,
        (metrics, health): (&Metrics, &Health),
        handed_over: CancellationToken,
    ) -> anyhow::Result<Self> {
        let parts = SourceParts {
            rings,
            store: Arc::clone(store),
            secrets: Arc::clone(&secrets.log),
            certificates: Box::new(Arc::clone(&secrets)),
            key: settings::edge_key(config)?,
            tokens: settings::edge_tokens_here(config),
            numbers,
            snapshot_bytes_max: config.edges.snapshot_bytes_max,
            part: health.part("edges"),
        };
        Ok(Self {
            source: Arc::new(Source::new(parts, metrics, handed_over)),
            secrets,
            listener: EdgeListener::new(config, socket, metrics)?,
        })
    }

    /// Returns the object that waits until edges answer challenges.
    pub(super) fn elsewhere(&self, config: &Config) -> Arc<dyn Elsewhere> {
        Arc::new(ByEdges {
            fleet: Arc::clone(self.source.fleet()),
            secrets: Arc::clone(&self.secrets),
            time: config.edges.challenge_wait,
        })
    }

    /// Starts to accept connections. The thread is never joined: it can be stopped at any point.
    ///
    /// No ring begins before the cache was filled. An edge would take an empty list for the truth, and
    /// remove its sites.
    fn start(self, filling: Option<Filling>) -> anyhow::Result<()> {
        let Self {
            source,
            secrets,
            listener,
        } = self;
        // Before the first edge asks. These threads are never joined: they can be stopped at any
        // point.
        let fleet = Arc::clone(source.fleet());
        let filling = filling.filter(|filling| !filling.status.is_filled());
        if filling.is_none() {
            fleet.step();
        }
        panics::essential_thread("edge-secrets", move || secrets.run())
            .context("start a thread")?;
        let begin = move || {
            if let Some(filling) = filling {
                filling.wait();
                fleet.step();
            }
            fleet.run();
        };
        panics::essential_thread("edge-rings", begin).context("start a thread")?;
        listener.start(Responder::Source(source))
    }
}

// === impl Filling ===

impl Filling {
    /// Waits until the cache was filled, and everything in it was loaded.
    fn wait(&self) {
        while !self.status.is_filled() {
            std::thread::sleep(FILLED_INTERVAL);
        }
        // The reloader may still have to notice what was written. This loads all of it, and the
        // rings observe it.
        while let Err(error) = lock_reloader(&self.reloader).rescan(Removals::Guarded) {
            log::warn!(target: "follow", "edges get nothing yet: {}", chain(&error));
            std::thread::sleep(LOAD_PAUSE);
        }
        log::info!(target: "follow", "the cache was filled: edges get the sites of this node");
    }
}

// === impl EdgeListener ===

impl EdgeListener {
    fn new(config: &Config, socket: TcpSocket, metrics: &Metrics) -> anyhow::Result<Self> {
        let edges = &config.edges;
        let identity = match (&edges.certificate, &edges.key) {
            (Some(certificate), Some(key)) => {
                let identity = Identity::read(certificate, key);
                let identity = identity
                    .with_context(|| format!("use the certificate {}", certificate.display()))?;
                Some(Arc::new(identity))
            }
            _ => None,
        };
        let limits = followers::limits(&config.clients);
        let trusted = TrustedPeers::new(config.connections.trusted_peers.clone());
        Ok(Self {
            socket,
            identity,
            clients: Arc::new(Clients::new(limits, trusted, metrics)),
        })
    }

    /// Starts to accept connections. The thread is never joined: it can be stopped at any point.
    fn start(self, answering: Responder) -> anyhow::Result<()> {
        let Self {
            socket,
            identity,
            clients,
        } = self;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("edges")
            .enable_all()
            .build()
            .context("start the listener for edges")?;
        let work = move || {
            runtime.block_on(async {
                let listener = match socket.listen(1024) {
                    Ok(listener) => listener,
                    Err(error) => {
                        log::error!(target: "serve", "cannot listen for edges: {error}");
                        std::process::exit(2);
                    }
                };
                if let Ok(address) = listener.local_addr() {
                    let scheme = if identity.is_some() { "https" } else { "http" };
                    log::info!(target: "serve", edges:% = address; "edges can follow {scheme}://{address}");
                }
                followers::listen(listener, answering, identity, clients).await;
            });
            // Connections of edges are cut: they ask again.
            runtime.shutdown_background();
        };
        panics::essential_thread("edges", work).context("start a thread")?;
        Ok(())
    }
}

/// Returns what answers the edges of an edge.
fn relay(
    config: &Config,
    store: &Arc<Store>,
    metrics: &Metrics,
    handed_over: CancellationToken,
) -> anyhow::Result<Option<Responder>> {
    let config::Store::Follow { follow, .. } = &config.store else {
        return Ok(None);
    };
    let service = config.service.domain.as_str();
    let relay = Relay::new(follow, service, Arc::clone(store), metrics, handed_over);
    let relay = relay.context("serve other edges")?;
    Ok(Some(Responder::Relay(Arc::new(relay))))
}

// === impl Following ===

impl Following {
    /// Opens the cache of an edge, or of a gateway on a shared store; `None` on other
    /// nodes. `written` is that store.
    pub(super) fn open(
        config: &Config,
        secrets: Option<EdgeSecrets>,
        (reload, rings, written): (&Reload, Option<&Arc<Rings>>, &Arc<Store>),
        metrics: &Arc<Metrics>,
        health: &Health,
    ) -> anyhow::Result<Option<Self>> {
        let (follow, cache) = match &config.store {
            config::Store::Local(_) => return Ok(None),
            config::Store::Follow { follow, cache } => (follow.clone(), cache),
            config::Store::Shared(shared) => {
                let follow = follow::Config {
                    url: "the database of the store".to_owned(),
                    cache_bytes_max: shared.cache_bytes_max,
                    object_bytes_max: u64::MAX,
                    ..follow::Config::default()
                };
                (Box::new(follow), &shared.cache)
            }
        };
        let is_edge = config.store.is_edge();
        let observer = rings.map(|rings| {
            let (rings, watch) = (Arc::clone(rings), Arc::clone(reload.watch()));
            Arc::new(ToEdges { rings, watch }) as Arc<dyn StoreObserver>
        });
        let status = Status::new(&follow.url, metrics, health.part("follow"));
        let status = Arc::new(status);
        let accepts_removals: Arc<AtomicBool> = Arc::default();
        let parts = FollowerParts {
            config: (*follow).clone(),
            service: config.service.clone(),
            private_hosts: config.private_hosts.clone(),
            store: Arc::clone(&reload.store),
            directory: cache.path.clone(),
            status: Arc::clone(&status),
            metrics: Arc::clone(metrics),
            accepts_removals: Arc::clone(&accepts_removals),
            observer,
        };
        let follower = match is_edge {
            true => Follower::open(parts).context("follow another node")?,
            false => {
                let written = Arc::clone(written);
                Follower::of_store(parts, written).context("follow the database of the store")?
            }
        };
        let secrets = match secrets {
            Some(secrets) => {
                let parts = secrets.parts(config, &follow, Arc::clone(&status), health);
                Some(SecretFollower::new(parts).context("follow another node")?)
            }
            None => None,
        };
        Ok(Some(Self {
            status,
            follower,
            secrets,
            accepts_removals,
        }))
    }

    /// Returns what the operator's listener calls.
    pub(super) fn reload(&self, request: Request) -> Arc<dyn operator::Reload> {
        Arc::new(EdgeRequest {
            request,
            accepts_removals: Arc::clone(&self.accepts_removals),
        })
    }

    /// Starts to follow. The thread is never joined: it can be stopped at any point.
    pub(super) fn start(self) -> anyhow::Result<()> {
        let (follower, secrets) = (self.follower, self.secrets);
        if let Some(secrets) = secrets {
            panics::essential_thread("follow-secrets", move || secrets.run())
                .context("start a thread")?;
        }
        panics::essential_thread("follow", move || follower.run()).context("start a thread")?;
        Ok(())
    }
}

impl StoreObserver for ToEdges {
    fn begins(&self, id: &str, newest: u64) {
        self.rings.begins(id, newest);
    }

    fn followed(&self, followed: Followed) {
        // The rings have it when it was loaded.
        self.watch.followed(followed);
    }
}

impl operator::Reload for EdgeRequest {
    fn reload(&self, accept_removals: bool) {
        use std::sync::atomic::Ordering;
        self.accepts_removals
            .fetch_or(accept_removals, Ordering::AcqRel);
        self.request.rescan(accept_removals);
    }
}
