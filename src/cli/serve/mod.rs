//! `waypost serve`: runs the gateway and a worker.
//!
//! The start has an order. First the configuration, the ports, the store, the certificates
//! and the site records are checked, so that every mistake ends the process before it
//! serves. Then the index is filled. The listeners open last, so that no client gets a 404
//! for a site that is not loaded yet.
//!
//! | thread or runtime | does |
//! |---|---|
//! | `connections` (as many threads as `server.threads`) | all client connections |
//! | `operator` | health, readiness, metrics |
//! | `reload` | store and site records → index |
//! | `worker` | queue → builds → store |
//! | `queue-writer` | triggers → disk |
//! | `key-watch` | admin keys → memory |
//! | `certificates` | certificate files → TLS |
//! | `acme` | orders of certificates → TLS |
//! | `verification` | DNS → ownership of domains |
//! | `session-tickets` | keys of session tickets → TLS |
//! | `numbers` | counts for the owners of sites → store |
//! | `numbers-send` | on an edge: these counts → the node that it follows |
//! | `edges` | answers edges that follow this node |
//! | `edge-rings` | changes → rings of edges |
//! | `edge-visible` | what every edge has → queue |
//! | `edge-progress` | with a shared store: which releases every edge has → its database |
//! | `edge-documents` | with a shared store: what every edge has → its database |
//! | `edge-secrets` | certificates, ticket keys, challenges → edges |
//! | `follow` | on an edge: the node that it follows → cache; with a shared store: its database → cache |
//! | `follow-secrets` | the same for certificates, ticket keys, challenges |
//! | `documents` | with a shared store: certificates, keys of its database → cache |
//! | `store-listen` | hints of the database that something has changed → `follow`, `documents` |
//! | `sweep`, `store-sweep` | removes what the store no longer needs |
//! | `memory` | reads how much memory is used, if it is bounded |
//! | `freed-memory` | gives freed memory back to the system |
//! | `access-log` | lines → disk |
//! | `upgrade` | starts the process that replaces this one |
//! | `log-summary` | logs how many lines of the process log were left out |
//!
//! A panic in one of them ends the process with exit code 101, so that its supervisor starts it
//! again. A panic in a request ends only that request.
//!
//! `SIGTERM` and `SIGINT` drain; a second one ends the process at once. `SIGHUP` makes the
//! gateway read site records and releases again, and open its log files again.
//!
//! This file is the list of the steps: [`sockets`], [`state`], [`gateway`], [`threads`]. Each part
//! beside it starts and stops its own threads: [`reload`] the index, [`updates`] queue and worker,
//! [`runtimes`] the listeners. [`stop`] handles signals, [`upgrade`] and [`successor`] the change to
//! another program.

mod certificates;
mod counting;
mod descriptors;
mod follow;
mod freed;
mod gateway;
mod handover;
mod inherited;
mod progress;
mod reload;
mod runtimes;
mod shared;
mod shared_store;
mod sockets;
mod state;
mod stop;
mod successor;
mod threads;
pub(super) mod upgrade;
mod updates;
mod verification;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};

use anyhow::Context as _;
use pingora::server::configuration::ServerConf;
use pingora::server::{RunArgs, Server};
use sd_notify::NotifyState;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::secrets;
use super::settings::{self, Settings};
use crate::clock::Clock;
use crate::config::Config;
use crate::deploy::worker;
use crate::gateway::drain::Drain;
use crate::gateway::{ConnectionHandler, server};
use crate::telemetry::{Health, Metrics, Part, logging, panics};
use certificates::Acme;
use follow::EdgeServices;
use runtimes::{Begin, ConnectionService, OperatorService};
use sockets::Sockets;
pub(super) use sockets::socket;
use state::State;
use stop::Stop;
use threads::{Threads, WorkerSignals};
use upgrade::{UpgradeSocket, Upgrades};

/// Serve all sites and build their updates
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Take the listening sockets of the gateway that has started this process.
    #[arg(long = "successor", hide = true)]
    pub is_successor: bool,
    /// The configuration.
    #[command(flatten)]
    pub settings: Settings,
}

/// The parts that belong to the process, and that most others use.
struct Process {
    metrics: Arc<Metrics>,
    health: Health,
    drain: Drain,
    /// Cancelled when another process responds on the addresses of this one.
    handed_over: CancellationToken,
}

// === impl Process ===

impl Process {
    fn new() -> Self {
        let metrics = Arc::new(Metrics::new());
        panics::report(metrics.panics.clone());
        Self {
            metrics,
            health: Health::new(Clock::System),
            drain: Drain::new(),
            handed_over: CancellationToken::new(),
        }
    }
}

/// Serves until a signal stops it.
///
/// # Errors
///
/// When the configuration, an address, the store, a certificate or the site records cannot be
/// used. A queue that cannot be used stops no site from being served.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut config = args.settings.load()?;
    logging::start(&config.log).context("start the log")?;
    secrets::check(&config)?;
    let mut conf = server_conf(&config)?;
    let shares = descriptors::divide(&mut config, &mut conf);
    install_cryptography();
    let sockets = Sockets::open(&config, args.is_successor)?;
    let process = Process::new();
    let upgrade_part = process.health.part("upgrade");

    let state = State::open(&config, shares.files, &process)?;
    let requests_max = shares.upstream_requests;
    let gateway = gateway::open(&config, &conf, requests_max, &state, &process)?;
    let operator = gateway::operator(&config, &gateway, &state, &process);
    let edges = EdgeServices::open(&config, &state, sockets.edges, &process)?;
    share_challenges(&config, &state, &edges);
    let operator = operator.with_follow(
        edges.fleet().cloned(),
        state
            .following
            .as_ref()
            .map(|edge| Arc::clone(&edge.status)),
    );

    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let tls = state.tls.clone();
    let handler = ConnectionHandler::new(Arc::clone(&gateway), &server.configuration, tls);
    let (ended, worker_ended) = mpsc::channel();
    let upgrades = Upgrades {
        sockets: sockets.copies.clone(),
        drain: process.drain.clone(),
        time_max: config.connections.limits.upgrade,
        handed_over: process.handed_over.clone(),
        worker_ended,
    };
    let upgrade_socket = settings::upgrade_socket(&config);
    let is_successor = sockets.predecessor.is_some();
    let begin = Begin {
        predecessor: sockets.predecessor.clone(),
        serving: Box::new(move || serving(upgrades, upgrade_socket, is_successor, &upgrade_part)),
    };
    let listeners = sockets.listeners;
    let mut service = ConnectionService::new(handler, listeners, begin, operator.clone()).named();
    service.threads = Some(server.configuration.threads);
    server.add_service(service);
    if let Some(socket) = sockets.operator {
        let service = OperatorService::new(operator, socket, process.handed_over.clone());
        server.add_service(service.named());
    }

    let (worker, stopped) = watch::channel(worker::Stop::No);
    let stop = Stop {
        drain: process.drain.clone(),
        limits: Arc::clone(&gateway.limits),
        reload: state.reload.request(),
        gateway: Arc::clone(&gateway),
        worker,
        sockets: sockets.copies,
        handed_over: process.handed_over.clone(),
    };
    let worker = WorkerSignals {
        stop: stopped,
        predecessor: sockets.predecessor,
        ended,
    };
    let threads = Threads::start(&config, state, edges, &process, worker)?;
    server.run(RunArgs {
        shutdown_signal: Box::new(stop),
    });
    threads.end();
    gateway.access.close();
    log::info!(target: "serve", "stopped");
    Ok(ExitCode::SUCCESS)
}

/// Installs the provider of cryptography with post-quantum key exchange, before pingora chooses
/// one.
fn install_cryptography() {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    if provider.install_default().is_err() {
        log::debug!("a cryptography provider was installed before");
    }
}

/// Lets the process that orders certificates wait until all edges and all gateways answer its
/// challenges.
fn share_challenges(config: &Config, state: &State, edges: &EdgeServices) {
    let Some(Acme { challenges, .. }) = &state.acme else {
        return;
    };
    let of_edges = edges.node.as_ref().map(|edges| edges.elsewhere(config));
    let gateways = state.copied.as_ref().map(|copied| copied.elsewhere(config));
    for elsewhere in gateways.into_iter().chain(of_edges) {
        challenges.share(elsewhere);
    }
}

fn server_conf(config: &Config) -> anyhow::Result<ServerConf> {
    server::server_conf(&config.server).map_err(|wrong| {
        let lines: Vec<_> = wrong.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{}", lines.join("\n"))
    })
}

/// Opens the socket for `waypost upgrade`, and tells systemd that this process serves. Without that
/// socket the sites are served, and the process cannot be upgraded.
fn serving(upgrades: Upgrades, path: Option<PathBuf>, is_successor: bool, part: &Part) {
    let opened = path.map_or(Ok(()), |path| {
        let socket = UpgradeSocket::open(&path, is_successor)?;
        // Never joined: it can be stopped at any point.
        panics::essential_thread("upgrade", move || upgrades.run(socket)).map(drop)
    });
    if let Err(error) = opened {
        part.fail(format!("the socket for `waypost upgrade`: {error}"));
    }
    // Without systemd this does nothing.
    if let Err(error) = sd_notify::notify(&[NotifyState::Ready]) {
        log::warn!(target: "serve", "cannot notify systemd that the process serves: {error}");
    }
}
