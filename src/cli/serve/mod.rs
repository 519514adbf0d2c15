//! `waypost serve`: the gateway, and everything that keeps it true.
//!
//! Everything that can be wrong is found before anything is open: the configuration, the
//! ports, the store, the certificates, the site records. Then the index is filled, and
//! only then do the listeners open, so that no client is told of a site that it does not
//! exist because it was not loaded yet.
//!
//! | thread or runtime | does |
//! |---|---|
//! | `connections` (as many threads as `server.threads`) | all client connections |
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
//!
//! This file is the composition root; each part beside it starts and ends something of its
//! own: [`reload`] the index and its threads, [`updates`] the deploying side, [`runtimes`]
//! the listeners, [`stop`] the end.

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

use super::settings::Settings;
use crate::clock::Clock;
use crate::config::Config;
use crate::deploy::worker;
use crate::gateway::access::{Access, Target};
use crate::gateway::drain::Drain;
use crate::gateway::forward::TrustedPeers;
use crate::gateway::operator::Operator;
use crate::gateway::tls::{self, Certificates};
use crate::gateway::{ConnectionHandler, Gateway, Listeners, server};
use crate::index::Index;
use crate::origin::Resolver;
use crate::telemetry::{Metrics, logging};
use reload::Reload;
use runtimes::{ConnectionService, OperatorService};
use stop::Stop;
use updates::Updates;

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
    let conf = server_conf(&config)?;
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
    let updates = Updates::open(&config, &index, &reload, &metrics)?;

    let access = Access::start(&config.access_log, metrics.access_lines_dropped.clone())
        .with_context(|| match &config.access_log {
            Target::File(path) => format!("open the access log {}", path.display()),
            Target::Stdout | Target::Off => "start the access log".to_owned(),
        })?;
    let gateway = Arc::new(Gateway {
        index,
        metrics: Arc::clone(&metrics),
        access,
        limits: Arc::new(config.connections.limits.clone()),
        upstream: config.upstream.clone(),
        trusted: TrustedPeers::new(config.connections.trusted_peers.clone()),
        fast_path: config.connections.fast_path,
        drain: drain.clone(),
        resolver: Resolver::default(),
        admin: Some(Arc::clone(&updates.api)),
        clock: Clock::System,
    });
    let reloads = Some(Arc::new(reload.request()) as _);
    let operator = Operator::new(Arc::clone(&metrics), drain.clone(), reloads);

    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let handler = ConnectionHandler::new(Arc::clone(&gateway), &server.configuration, tls);
    let mut service = ConnectionService::new(handler, listeners, operator.clone()).named();
    service.threads = Some(server.configuration.threads);
    server.add_service(service);
    if let Some(socket) = operator_socket {
        server.add_service(OperatorService::new(operator, socket).named());
    }
    let (worker, told) = watch::channel(worker::Stop::No);
    let stop = Stop {
        drain,
        limits: Arc::clone(&gateway.limits),
        reload: reload.request(),
        worker,
    };
    let threads = reload.start(certificates, metrics, updates.notes())?;
    let working = updates.start(told)?;
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

fn server_conf(config: &Config) -> anyhow::Result<ServerConf> {
    server::server_conf(&config.server).map_err(|wrong| {
        let lines: Vec<_> = wrong.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{}", lines.join("\n"))
    })
}

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
pub(super) fn socket(address: SocketAddr) -> anyhow::Result<TcpSocket> {
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
