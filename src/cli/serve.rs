//! `waypost serve`: the gateway, and everything that keeps it true.
//!
//! Everything that can be wrong is found before anything is open: the configuration, the
//! ports, the store, the certificates, the site records. Then the index is filled, and
//! only then do the listeners open, so that no client is told of a site that it does not
//! exist because it was not loaded yet.
//!
//! | thread or runtime | does |
//! |---|---|
//! | `front` (as many threads as `server.threads`) | all client connections |
//! | `operator` | health, readiness, numbers |
//! | `reload` | store and site records → index |
//! | `worker` | queue → builds → store |
//! | `queue-writer` | triggers → disk |
//! | `key-watch` | admin keys → memory |
//! | `certificates` | certificate files → TLS |
//! | `sweep` | what the store no longer needs |
//! | `access-log` | lines → disk |
//!
//! `SIGTERM` and `SIGINT` drain; a second one ends the process at once. `SIGHUP` compares
//! everything with the disk.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use pingora::server::{RunArgs, Server, ShutdownSignal, ShutdownSignalWatch, ShutdownWatch};
use pingora::services::background::{BackgroundService, GenBackgroundService};
use tokio::net::TcpSocket;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Mutex, watch};

use super::deploying;
use super::settings::{self, Settings};
use crate::clock::Clock;
use crate::config::Config;
use crate::deploy::FindSite;
use crate::deploy::api::Api;
use crate::deploy::keys::{self, Ring};
use crate::deploy::run::Announce;
use crate::deploy::worker::{self, Worker};
use crate::gateway::access::{Access, Target};
use crate::gateway::drain::{Drain, Phase};
use crate::gateway::forward::TrustedPeers;
use crate::gateway::operator::Operator;
use crate::gateway::tls::{self, Certificates};
use crate::gateway::{Front, Gateway, Listeners, server};
use crate::index::reload::Reloader;
use crate::index::{Cache, Index};
use crate::origin::Resolver;
use crate::store::Store;
use crate::store::sites::{Removals, Sites};
use crate::store::watch::{Change, Watch};
use crate::telemetry::{Metrics, logging};

/// How often the store is swept, the first time soon after the start.
const SWEEP_INTERVAL: Duration = Duration::from_secs(3600);

/// Serve all sites
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The configuration.
    #[command(flatten)]
    pub settings: Settings,
}

/// Serves until it is told to stop.
///
/// # Errors
///
/// When something that is needed is not there, or not as it should be.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?;
    logging::start(&config.log).context("start the log")?;
    let conf = server::server_conf(&config.server).map_err(|wrong| {
        anyhow::anyhow!(
            wrong
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("\n")
        )
    })?;
    // Before pingora would choose: this provider has post-quantum key exchange.
    if rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .is_err()
    {
        log::debug!("a cryptography provider was chosen before");
    }
    let listeners = bind(&config)?;
    let operator_socket = config.listen.operator.map(socket).transpose()?;

    let metrics = Arc::new(Metrics::new());
    let drain = Drain::new();
    let certificates = certificates(&config, &metrics)?;
    let tls = certificates
        .as_ref()
        .map(tls::server_config)
        .transpose()
        .context("set up TLS")?;
    let index = Arc::new(Index::new(config.service.clone()));
    let reload = Reload::load(&config, &index, &metrics)?;
    let deploying = Deploying::open(&config, &index, &reload, &metrics)?;

    let access = Access::start(&config.access_log, metrics.access_lines_dropped.clone())
        .with_context(|| match &config.access_log {
            Target::File(path) => format!("open the access log {}", path.display()),
            Target::Stdout | Target::Off => "start the access log".to_owned(),
        })?;
    let gateway = Arc::new(Gateway {
        index,
        metrics: Arc::clone(&metrics),
        access,
        limits: Arc::new(config.front.limits.clone()),
        upstream: config.upstream.clone(),
        trusted: TrustedPeers::new(config.front.trusted_peers.clone()),
        express: config.front.express,
        drain: drain.clone(),
        resolver: Resolver::default(),
        admin: Some(Arc::clone(&deploying.api)),
        clock: Clock::System,
    });
    let operator = Operator::new(Arc::clone(&metrics), drain.clone(), reload.request());

    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let front = Front::new(Arc::clone(&gateway), &server.configuration, tls);
    let mut service = GenBackgroundService::new(
        "front".to_owned(),
        Arc::new(FrontService::new(front, listeners, operator.clone())),
    );
    service.threads = Some(server.configuration.threads);
    server.add_service(service);
    if let Some(socket) = operator_socket {
        let service = OperatorService {
            operator,
            socket: Mutex::new(Some(socket)),
        };
        server.add_service(GenBackgroundService::new(
            "operator".to_owned(),
            Arc::new(service),
        ));
    }
    let (worker, told) = watch::channel(worker::Stop::No);
    let stop = Stop {
        drain,
        limits: Arc::clone(&gateway.limits),
        reload: reload.request(),
        worker,
    };
    let threads = reload.start(certificates, metrics)?;
    let working = deploying.start(told)?;
    server.run(RunArgs {
        shutdown_signal: Box::new(stop),
    });
    working.end();
    threads.end();
    gateway.access.close();
    log::info!(target: "serve", "stopped");
    Ok(ExitCode::SUCCESS)
}

// === Before anything is open ===

fn bind(config: &Config) -> anyhow::Result<Listeners> {
    if config.listen.http.is_empty() && config.listen.https.is_empty() {
        anyhow::bail!("`listen` names no address for http or https");
    }
    if !config.listen.https.is_empty() && config.tls.directory.is_none() {
        anyhow::bail!("`listen.https` needs `tls.directory`, where the certificates are");
    }
    let all = |addresses: &[SocketAddr]| {
        addresses
            .iter()
            .map(|address| socket(*address))
            .collect::<anyhow::Result<_>>()
    };
    Ok(Listeners {
        http: all(&config.listen.http)?,
        https: all(&config.listen.https)?,
    })
}

/// Takes an address without accepting connections on it yet.
fn socket(address: SocketAddr) -> anyhow::Result<TcpSocket> {
    let open = || {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()
        } else {
            TcpSocket::new_v6()
        }?;
        // Connections of an earlier process that are winding down do not hold the address.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok::<_, std::io::Error>(socket)
    };
    open().with_context(|| format!("listen on {address}"))
}

fn certificates(config: &Config, metrics: &Metrics) -> anyhow::Result<Option<Arc<Certificates>>> {
    let Some(directory) = &config.tls.directory else {
        return Ok(None);
    };
    let certificates = Arc::new(Certificates::new(
        directory.clone(),
        config.tls.default.clone(),
        Clock::System,
    ));
    let report = certificates
        .read()
        .with_context(|| format!("read certificates in {}", directory.display()))?;
    report.tell(metrics);
    log::info!(target: "tls", names = report.names; "certificates for {} names", report.names);
    Ok(Some(certificates))
}

// === Keeping the index true ===

/// The reloader, loaded once and not yet on its thread.
struct Reload {
    reloader: Arc<std::sync::Mutex<Reloader>>,
    store: Arc<Store>,
    watch: Arc<Watch>,
    rescan: Duration,
    accepts_removals: Arc<AtomicBool>,
}

/// Asks the reloader to compare everything with the disk.
#[derive(Clone, Debug)]
pub struct Request {
    watch: Arc<Watch>,
    accepts_removals: Arc<AtomicBool>,
}

/// The threads beside the runtimes.
struct Threads {
    watch: Arc<Watch>,
    handles: Vec<std::thread::JoinHandle<()>>,
}

impl Reload {
    fn load(config: &Config, index: &Arc<Index>, metrics: &Arc<Metrics>) -> anyhow::Result<Self> {
        let store = Arc::new(settings::open_store(config)?);
        let sites = Sites::new(
            config.service.clone(),
            config.sites.path.clone(),
            Clock::System,
        );
        // Watching begins before loading: a change in between is seen twice, not never.
        let watch = Arc::new(Watch::start(
            &store,
            &config.sites.path,
            config.sites.rescan,
        ));
        let (index, metrics) = (Arc::clone(index), Arc::clone(metrics));
        let mut reloader = Reloader::new(index, Arc::clone(&store), sites, metrics, Clock::System)
            .with_cache(Cache::new(config.front.page_cache_bytes));
        reloader
            .rescan(Removals::Guarded)
            .context("read the site records")?;
        let accepts_removals = Arc::default();
        Ok(Self {
            reloader: Arc::new(std::sync::Mutex::new(reloader)),
            store,
            watch,
            rescan: config.sites.rescan,
            accepts_removals,
        })
    }

    fn request(&self) -> Request {
        Request {
            watch: Arc::clone(&self.watch),
            accepts_removals: Arc::clone(&self.accepts_removals),
        }
    }

    fn start(
        self,
        certificates: Option<Arc<Certificates>>,
        metrics: Arc<Metrics>,
    ) -> anyhow::Result<Threads> {
        let Self {
            reloader,
            store,
            watch,
            rescan,
            accepts_removals,
        } = self;
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new()
                .name(name.to_owned())
                .spawn(work)
                .context("start a thread")
        };
        let mut handles = Vec::new();
        handles.push(spawn("reload", {
            let watch = Arc::clone(&watch);
            Box::new(move || {
                while let Some(change) = watch.next() {
                    take_in(&mut locked(&reloader), &change, &accepts_removals);
                }
            })
        })?);
        // These two end with the process: neither holds anything half-done.
        if let Some(certificates) = certificates {
            spawn(
                "certificates",
                Box::new(move || tls::watch(&certificates, &metrics, rescan)),
            )?;
        }
        spawn("sweep", Box::new(move || sweep(&store)))?;
        Ok(Threads { watch, handles })
    }
}

/// Waits for the reloader; whoever panicked with it left what is served as it was.
fn locked(reloader: &std::sync::Mutex<Reloader>) -> std::sync::MutexGuard<'_, Reloader> {
    reloader
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn take_in(reloader: &mut Reloader, change: &Change, accepts_removals: &AtomicBool) {
    let removals = match accepts_removals.swap(false, Ordering::AcqRel) {
        true => Removals::Accepted,
        false => Removals::Guarded,
    };
    let outcome = match change {
        Change::Pointer(project) => {
            reloader.promoted(project);
            Ok(())
        }
        Change::Sites => reloader.rescan_sites(removals),
        Change::Rescan => reloader.rescan(removals),
    };
    if let Err(error) = outcome {
        log::error!(target: "sites", "keep serving the sites there were: {error}");
    }
}

fn sweep(store: &Store) {
    loop {
        match store.sweep(Clock::System.now()) {
            Ok(swept) if swept.releases + swept.files + swept.leftovers > 0 => {
                let (releases, files, bytes) = (swept.releases, swept.files, swept.bytes);
                log::info!(target: "store", releases, files, bytes; "swept {releases} releases and {files} files");
            }
            Ok(_) => {}
            Err(error) => log::warn!(target: "store", "sweep: {:#}", anyhow::Error::from(error)),
        }
        std::thread::sleep(SWEEP_INTERVAL);
    }
}

impl Request {
    /// Asks for a comparison of everything; with `accept_removals` also when it would take
    /// away many sites at once.
    pub fn rescan(&self, accept_removals: bool) {
        self.accepts_removals
            .fetch_or(accept_removals, Ordering::AcqRel);
        self.watch.rescan();
    }
}

impl crate::gateway::operator::Reload for Request {
    fn reload(&self, accept_removals: bool) {
        self.rescan(accept_removals);
    }
}

impl Threads {
    fn end(self) {
        self.watch.close();
        for handle in self.handles {
            if handle.join().is_err() {
                log::error!(target: "serve", "a thread panicked");
            }
        }
    }
}

// === Taking and building updates ===

/// The deploying side, open and not yet at work.
struct Deploying {
    api: Arc<Api>,
    worker: Worker,
    ring: Arc<Ring>,
}

/// The deploying side at work.
struct Working {
    thread: std::thread::JoinHandle<()>,
    _keys: keys::Watch,
}

impl Deploying {
    fn open(
        config: &Config,
        index: &Arc<Index>,
        reload: &Reload,
        metrics: &Metrics,
    ) -> anyhow::Result<Self> {
        let queue = Arc::new(deploying::open_queue(config)?);
        let ring = deploying::load_ring(config)?;
        let index = Arc::clone(index);
        let find_site: FindSite =
            Arc::new(move |project| Some(Arc::clone(&index.served_by(project)?.site)));
        let reloader = Arc::clone(&reload.reloader);
        let announce: Announce = Arc::new(move |project| locked(&reloader).promoted(project));
        let stages = deploying::stages(config, &queue, &reload.store, Some(announce))?;
        let api = Api::new(
            config.admin.clone(),
            &config.service,
            Arc::clone(&ring),
            queue,
            Arc::clone(&find_site),
            Clock::System,
        );
        let worker = Worker::new(
            deploying::worker_id()?,
            config.worker.clone(),
            Arc::new(stages),
            find_site,
            worker::Metrics::new(metrics),
        );
        Ok(Self {
            api: Arc::new(api),
            worker,
            ring,
        })
    }

    fn start(self, told: watch::Receiver<worker::Stop>) -> anyhow::Result<Working> {
        let keys = self.ring.watch().context("watch the admin keys")?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("start the worker")?;
        let worker = self.worker;
        let thread = std::thread::Builder::new()
            .name("worker".to_owned())
            .spawn(move || runtime.block_on(worker.run(told)))
            .context("start the worker")?;
        Ok(Working {
            thread,
            _keys: keys,
        })
    }
}

impl Working {
    /// Waits until what ran has finished or was given back.
    fn end(self) {
        if self.thread.join().is_err() {
            log::error!(target: "serve", "the worker panicked");
        }
    }
}

// === On pingora's runtimes ===

struct FrontService {
    front: Arc<Front>,
    listeners: Mutex<Option<Listeners>>,
    operator: Operator,
}

impl FrontService {
    fn new(front: Arc<Front>, listeners: Listeners, operator: Operator) -> Self {
        Self {
            front,
            listeners: Mutex::new(Some(listeners)),
            operator,
        }
    }
}

#[async_trait]
impl BackgroundService for FrontService {
    async fn start(&self, _shutdown: ShutdownWatch) {
        let Some(listeners) = self.listeners.lock().await.take() else {
            return;
        };
        match listeners.open() {
            Ok(open) => {
                self.operator.loaded();
                self.front.listen(open).await;
            }
            Err(error) => {
                log::error!(target: "serve", "{error}");
                std::process::exit(2);
            }
        }
    }
}

struct OperatorService {
    operator: Operator,
    socket: Mutex<Option<TcpSocket>>,
}

#[async_trait]
impl BackgroundService for OperatorService {
    async fn start(&self, _shutdown: ShutdownWatch) {
        let Some(socket) = self.socket.lock().await.take() else {
            return;
        };
        let listener = match socket.listen(128) {
            Ok(listener) => listener,
            Err(error) => {
                log::error!(target: "serve", "listen for the operator: {error}");
                std::process::exit(2);
            }
        };
        if let Ok(address) = listener.local_addr() {
            log::info!(target: "serve", operator:% = address; "health, readiness and metrics on http://{address}");
        }
        self.operator.clone().listen(listener).await;
    }
}

/// Turns signals into a drain, and the end of the drain into the end of the process.
struct Stop {
    drain: Drain,
    limits: Arc<crate::gateway::Limits>,
    reload: Request,
    worker: watch::Sender<worker::Stop>,
}

#[async_trait]
impl ShutdownSignalWatch for Stop {
    async fn recv(&self) -> ShutdownSignal {
        let open = |kind| signal(kind).expect("the runtime handles signals");
        let (mut term, mut int) = (open(SignalKind::terminate()), open(SignalKind::interrupt()));
        let mut hangup = open(SignalKind::hangup());
        loop {
            tokio::select! {
                _ = hangup.recv() => {
                    log::info!(target: "serve", "SIGHUP: comparing everything with the disk");
                    self.reload.rescan(false);
                }
                _ = either(&mut term, &mut int) => break,
            }
        }
        // A worker that does not listen any more has stopped.
        let _ = self.worker.send(worker::Stop::Soon);
        tokio::select! {
            () = self.leave() => {}
            _ = either(&mut term, &mut int) => {
                log::warn!(target: "serve", "told twice, leaving at once");
                let _ = self.worker.send(worker::Stop::Now);
            }
        }
        // pingora's own graceful stop would sleep its whole grace period; ours is over.
        ShutdownSignal::FastShutdown
    }
}

impl Stop {
    async fn leave(&self) {
        let open = self.drain.open();
        log::info!(target: "serve", open; "leaving: {open} connections are open");
        self.drain.enter(Phase::Unready);
        tokio::time::sleep(self.limits.drain_delay).await;
        self.drain.enter(Phase::Draining);
        let left = self.drain.finished(self.limits.drain).await;
        if left > 0 {
            log::warn!(target: "serve", left; "{left} connections were not finished in time");
        }
    }
}

async fn either(term: &mut Signal, int: &mut Signal) -> Option<()> {
    tokio::select! {
        signal = term.recv() => signal,
        signal = int.recv() => signal,
    }
}
