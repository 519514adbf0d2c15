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
//! | `sweep` | removes what the store no longer needs |
//! | `memory` | reads how much memory is used, if it is bounded |
//! | `freed-memory` | gives freed memory back to the system |
//! | `access-log` | lines → disk |
//! | `log-summary` | logs how many lines of the process log were left out |
//!
//! A panic in one of them ends the process with exit code 101, so that its supervisor starts it
//! again. A panic in a request ends only that request.
//!
//! `SIGTERM` and `SIGINT` drain; a second one ends the process at once. `SIGHUP` makes the
//! gateway read site records and releases again.
//!
//! This file connects the parts. Each part beside it starts and stops its own threads:
//! [`reload`] the index, [`updates`] queue and worker, [`runtimes`] the listeners. [`stop`]
//! handles signals.

mod descriptors;
mod freed;
mod inherited;
mod reload;
mod runtimes;
mod stop;
mod updates;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use pingora::server::configuration::ServerConf;
use pingora::server::{RunArgs, Server};
use tokio::net::TcpSocket;
use tokio::sync::watch;

use super::secrets;
use super::settings::{self, Settings};
use crate::clock::Clock;
use crate::config::Config;
use crate::deploy::worker;
use crate::gateway::access::{Access, Target};
use crate::gateway::balance::Balancer;
use crate::gateway::clients::Clients;
use crate::gateway::drain::Drain;
use crate::gateway::forward::TrustedPeers;
use crate::gateway::operator::{Changes, Operator};
use crate::gateway::tls::{self, Certificates};
use crate::gateway::token::Token;
use crate::gateway::{ConnectionHandler, Gateway, Listeners, memory, server};
use crate::index::Index;
use crate::origin::Resolver;
use crate::telemetry::{Health, Metrics, logging, panics};
use inherited::Inherited;
use reload::Reload;
use runtimes::{ConnectionService, OperatorService};
use stop::Stop;
use updates::Updates;

/// Serve all sites and build their updates
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The configuration.
    #[command(flatten)]
    pub settings: Settings,
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
    let limits = &mut config.connections.limits;
    limits.connections_max = descriptors::clamp(limits.connections_max, config.worker.fetches_max);
    let conf = server_conf(&config)?;
    // This runs before pingora chooses a provider. This provider has post-quantum key exchange.
    if rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .is_err()
    {
        log::debug!("a cryptography provider was installed before");
    }
    let mut inherited = Inherited::take()?;
    let listeners = bind(&config, &mut inherited)?;
    let operator_socket = config.listen.operator;
    let operator_socket = operator_socket.map(|address| take_or_bind(address, &mut inherited));
    let operator_socket = operator_socket.transpose()?;
    inherited.check()?;

    let metrics = Arc::new(Metrics::new());
    panics::report(metrics.panics.clone());
    let health = Health::new(Clock::System);
    let drain = Drain::new();
    let certificates = certificates(&config, &metrics)?;
    let tls_config = certificates
        .as_ref()
        .map(tls::server_config)
        .transpose()
        .context("set up TLS")?;
    let index = Arc::new(Index::new(config.service.clone()));
    let reload = Reload::load(&config, &index, &metrics, &health)?;
    let updates = Updates::open(&config, &index, &reload, &metrics, &health)?;

    let access = Access::start(&config.access_log, metrics.access_lines_dropped.clone())
        .with_context(|| match &config.access_log {
            Target::File(path) => format!("open the access log {}", path.display()),
            Target::Stdout | Target::Off => "start the access log".to_owned(),
        })?;
    let trusted = TrustedPeers::new(config.connections.trusted_peers.clone());
    let clients = Clients::new(config.clients.clone(), trusted.clone(), &metrics);
    let balancer = Balancer::new(config.upstream.clone(), Arc::clone(&metrics));
    let balancer = Arc::new(balancer);
    let gateway = Arc::new(Gateway {
        index,
        metrics: Arc::clone(&metrics),
        access,
        limits: Arc::new(config.connections.limits.clone()),
        upstream: config.upstream.clone(),
        clients: Arc::new(clients),
        open: Arc::default(),
        pressure: Arc::default(),
        trusted,
        proxy_protocol: config.connections.proxy_protocol.clone(),
        fast_path: config.connections.fast_path,
        tls: tls::Policy::new(&config.tls, &config.service, certificates.as_ref()),
        drain: drain.clone(),
        resolver: Resolver::new(config.private_hosts.clone()),
        balancer: Arc::clone(&balancer),
        admin: Some(Arc::clone(&updates.api)),
        clock: Clock::System,
    });
    watch_memory(&config, &gateway)?;
    freed::start().context("start a thread")?;
    let changes = Changes {
        reload: Arc::new(reload.request()),
        token: operator_token(&config, &health),
        upstreams: balancer,
        hosts: config.listen.operator_hosts.clone(),
    };
    let pseudonym = config.service.domain.as_str();
    let operator = Operator::new(
        Arc::clone(&metrics),
        health,
        drain.clone(),
        pseudonym,
        Some(changes),
    );

    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let handler = ConnectionHandler::new(Arc::clone(&gateway), &server.configuration, tls_config);
    let mut service = ConnectionService::new(handler, listeners, operator.clone()).named();
    service.threads = Some(server.configuration.threads);
    server.add_service(service);
    if let Some(socket) = operator_socket {
        server.add_service(OperatorService::new(operator, socket).named());
    }
    let (worker, stopped) = watch::channel(worker::Stop::No);
    let stop = Stop {
        drain,
        limits: Arc::clone(&gateway.limits),
        reload: reload.request(),
        worker,
    };
    let threads = reload.start(certificates, metrics, updates.served_log())?;
    let working = updates.start(stopped)?;
    server.run(RunArgs {
        shutdown_signal: Box::new(stop),
    });
    working.end();
    threads.end();
    gateway.access.close();
    log::info!(target: "serve", "stopped");
    Ok(ExitCode::SUCCESS)
}

// === Checks before anything is open ===

fn server_conf(config: &Config) -> anyhow::Result<ServerConf> {
    server::server_conf(&config.server).map_err(|wrong| {
        let lines: Vec<_> = wrong.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{}", lines.join("\n"))
    })
}

fn bind(config: &Config, inherited: &mut Inherited) -> anyhow::Result<Listeners> {
    if config.listen.http.is_empty() && config.listen.https.is_empty() {
        anyhow::bail!("`listen` names no address for http or https");
    }
    if !config.listen.https.is_empty() && config.tls.directory.is_none() {
        anyhow::bail!("`listen.https` needs `tls.directory`, where the certificates are");
    }
    let mut all = |addresses: &[SocketAddr]| {
        addresses
            .iter()
            .map(|address| take_or_bind(*address, inherited))
            .collect::<anyhow::Result<_>>()
    };
    Ok(Listeners {
        http: all(&config.listen.http)?,
        https: all(&config.listen.https)?,
    })
}

/// Takes the socket that a supervisor has passed for an address, or makes one.
fn take_or_bind(address: SocketAddr, inherited: &mut Inherited) -> anyhow::Result<TcpSocket> {
    let passed = inherited.socket(address);
    match passed.with_context(|| format!("take the socket for {address}"))? {
        Some(socket) => {
            log::info!(target: "serve", address:%; "the socket for {address} comes from the supervisor");
            Ok(socket)
        }
        None => socket(address),
    }
}

/// Takes an address without accepting connections on it yet.
pub(super) fn socket(address: SocketAddr) -> anyhow::Result<TcpSocket> {
    let open = || {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()
        } else {
            TcpSocket::new_v6()
        }?;
        // Closing connections of an earlier process must not block the address.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok::<_, std::io::Error>(socket)
    };
    open().with_context(|| format!("listen on {address}"))
}

/// Starts the thread that watches memory, if the process has a bound.
fn watch_memory(config: &Config, gateway: &Arc<Gateway>) -> anyhow::Result<()> {
    let reader = memory::Reader::open(&config.memory).context("read how much memory is used")?;
    let Some(reader) = reader else {
        return Ok(());
    };
    let bound = reader.bound();
    log::info!(target: "memory", bound; "memory is bounded to {bound} bytes");
    let (config, gateway) = (config.memory.clone(), Arc::clone(gateway));
    let watch = move || {
        let Gateway {
            pressure,
            open,
            metrics,
            ..
        } = &*gateway;
        memory::watch(&reader, &config, pressure, open, metrics);
    };
    // Never joined: it can be stopped at any point.
    panics::essential_thread("memory", watch).context("start a thread")?;
    Ok(())
}

/// Reads or makes the token of the operator's listener. Without it sites are served, and no
/// request can change the state of the process.
fn operator_token(config: &Config, health: &Health) -> Option<Token> {
    config.listen.operator?;
    let file = settings::operator_token(config);
    let part = health.part("operator-token");
    match Token::read_or_create(&file) {
        Ok(token) => Some(token),
        Err(error) => {
            part.fail(format!("{}: {error}", file.display()));
            None
        }
    }
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
    report.record(metrics);
    log::info!(target: "tls", names = report.names; "certificates for {} names", report.names);
    Ok(Some(certificates))
}
