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
//! | `edge-progress` | with a store of several machines: which releases every edge has → its database |
//! | `edge-documents` | with a store of several machines: what every edge has → its database |
//! | `edge-secrets` | certificates, ticket keys, challenges → edges |
//! | `follow` | on an edge: the node that it follows → cache; with a store of several machines: its database → cache |
//! | `follow-secrets` | the same for certificates, ticket keys, challenges |
//! | `documents` | with a store of several machines: certificates, keys of its database → cache |
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
//! This file connects the parts. Each part beside it starts and stops its own threads:
//! [`reload`] the index, [`updates`] queue and worker, [`runtimes`] the listeners. [`stop`]
//! handles signals, [`upgrade`] and [`successor`] the change to another program.

mod certificates;
mod counting;
mod descriptors;
mod follow;
mod freed;
mod handover;
mod inherited;
mod progress;
mod reload;
mod runtimes;
mod shared;
mod shared_store;
mod stop;
mod successor;
pub(super) mod upgrade;
mod updates;
mod verification;

use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};

use anyhow::Context as _;
use pingora::server::configuration::ServerConf;
use pingora::server::{RunArgs, Server};
use sd_notify::NotifyState;
use tokio::net::TcpSocket;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::secrets;
use super::settings::{self, Settings};
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::deploy::worker;
use crate::gateway::access::{Access, Target};
use crate::gateway::balance::Balancer;
use crate::gateway::clients::Clients;
use crate::gateway::copies::Copies;
use crate::gateway::drain::Drain;
use crate::gateway::forward::TrustedPeers;
use crate::gateway::operator::{Changes, Operator};
use crate::gateway::tls;
use crate::gateway::token::Token;
use crate::gateway::{ConnectionHandler, Gateway, Listeners, memory, server};
use crate::index::Index;
use crate::index::reload::Observer;
use crate::origin::Resolver;
use crate::telemetry::{Health, Metrics, Part, logging, panics};
use certificates::Acme;
use counting::Counting;
use follow::{EdgeListener, Edges, Following};
use handover::Passed;
use inherited::Inherited;
use reload::Reload;
use runtimes::{Begin, ConnectionService, OperatorService};
use shared::{EdgeSecrets, SourceSecrets};
use shared_store::Copied;
use stop::Stop;
use successor::Predecessor;
use updates::{ServedLog, Updates};
use upgrade::{ListeningSockets, UpgradeSocket, Upgrades};
use verification::Verification;

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
    let room = descriptors::divide(&mut config, &mut conf);
    // This runs before pingora chooses a provider. This provider has post-quantum key exchange.
    if rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .is_err()
    {
        log::debug!("a cryptography provider was installed before");
    }
    let (predecessor, mut inherited) = match args.is_successor {
        true => {
            let (predecessor, sockets) = Predecessor::connect().context("take the sockets")?;
            (Some(predecessor), Inherited::of(sockets))
        }
        false => (None, Inherited::take()?),
    };
    let sockets = ListeningSockets::default();
    let mut take_or_bind = |address| take_or_bind(address, &mut inherited, &sockets);
    let listeners = bind(&config, &mut take_or_bind)?;
    let operator_socket = config.listen.operator.map(&mut take_or_bind).transpose()?;
    let edges_socket = config.edges.listen.map(take_or_bind).transpose()?;
    // A successor may have a configuration with fewer addresses.
    if predecessor.is_none() {
        inherited.check()?;
    }

    let metrics = Arc::new(Metrics::new());
    panics::report(metrics.panics.clone());
    let health = Health::new(Clock::System);
    let part = health.part("upgrade");
    let drain = Drain::new();
    let directory = certificates::of_directory(&config, &metrics)?;
    let index = Index::new(config.service.clone());
    let index = Arc::new(match config.numbers.enabled {
        true => index.counting(),
        false => index,
    });
    let rings = follow::rings(&config)?;
    let observer = rings.clone().map(|rings| rings as Arc<dyn Observer>);
    let reload = Reload::load(&config, room.files, &index, (&metrics, &health), observer)?;
    let written = shared_store::written(&config, &reload.store, &metrics)?;
    // They are kept in the store, which exists now.
    let copied = Copied::open(&config, &written)?;
    let acme = Acme::open(&config, copied.as_ref())?;
    let followed = EdgeSecrets::open(&config)?;
    let of_acme = acme.as_ref().map(|acme| (&acme.ordered, &acme.challenges));
    let of_source = followed.as_ref();
    let ordered = match of_source {
        Some(followed) => followed.ordered.clone(),
        None => of_acme.map(|(ordered, _)| Arc::clone(ordered)),
    };
    let challenges = of_source.map(|followed| &followed.challenges);
    let challenges = challenges.or(of_acme.map(|(_, challenges)| challenges));
    let resolver = Arc::new(tls::Resolver {
        directory: directory.clone(),
        ordered,
        challenges: challenges.cloned(),
        default: config.tls.default.clone(),
    });
    let tickets = of_source.and_then(|followed| followed.tickets.clone());
    let has_tls = directory.is_some() || resolver.ordered.is_some();
    let shared_tickets = copied.as_ref().and_then(Copied::tickets);
    let tls_config = has_tls
        .then(|| {
            let source = certificates::ticket_source(&config, tickets, shared_tickets.clone());
            certificates::tls(&config, &resolver, source, &health)
        })
        .transpose()?;
    let stores = (&reload.store, &written);
    let following = Following::open(&config, followed, stores, &metrics, &health)?;
    let served = Arc::clone(&index);
    let documents = acme.as_ref().map(Acme::documents);
    let counting = Counting::open(&config, &index, &written, following.as_ref())?;
    // An edge has no queue, no worker and no admin API.
    let updates = (!config.store.is_edge())
        .then(|| {
            Updates::open(
                &config,
                &index,
                (&reload, &written),
                (documents, counting.as_ref()),
                &metrics,
                &health,
            )
        })
        .transpose()?;

    let access = Access::start(&config.access_log, metrics.access_lines_dropped.clone())
        .with_context(|| match &config.access_log {
            Target::File(path) => format!("open the access log {}", path.display()),
            Target::Stdout | Target::Off => "start the access log".to_owned(),
        })?;
    let trusted = TrustedPeers::new(config.connections.trusted_peers.clone());
    let clients = Clients::new(config.clients.clone(), trusted.clone(), &metrics);
    let addresses = Resolver::new(config.private_hosts.clone());
    let balancer = Balancer::new(config.upstream.clone(), Arc::clone(&metrics))
        .with_requests_max(room.upstream_requests);
    let balancer = Arc::new(balancer.with_checks(addresses.clone(), &conf));
    let copies = Copies::start(&config.copies, &index, &drain, &metrics, Clock::System)
        .context("open the directory of `upstream.copies`")?;
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
        top: Arc::default(),
        proxy_protocol: config.connections.proxy_protocol.clone(),
        fast_path: config.connections.fast_path,
        tls: tls::Policy::new(&config.tls, &config.service, &resolver),
        challenges: resolver.challenges.clone(),
        drain: drain.clone(),
        resolver: addresses,
        balancer: Arc::clone(&balancer),
        copies,
        admin: updates.as_ref().map(|updates| Arc::clone(&updates.api)),
        clock: Clock::System,
    });
    watch_memory(&config, &gateway)?;
    freed::start().context("start a thread")?;
    let changes = Changes {
        reload: match &following {
            Some(following) => following.reload(reload.request()),
            None => Arc::new(reload.request()),
        },
        token: operator_token(&config, &health),
        upstreams: balancer,
        top: Arc::clone(&gateway.top),
        hosts: config.listen.operator_hosts.clone(),
    };
    let pseudonym = config.service.domain.as_str();
    let operator = Operator::new(
        Arc::clone(&metrics),
        health.clone(),
        drain.clone(),
        pseudonym,
        Some(changes),
    );
    let handed_over = CancellationToken::new();
    let mut of_edge = None;
    let edges = match (rings, edges_socket) {
        (None, Some(socket)) => {
            let answering = follow::relay(&config, &reload.store, &metrics, handed_over.clone())?;
            of_edge = answering
                .map(|answering| Ok((EdgeListener::new(&config, socket)?, answering)))
                .transpose()
                .map_err(|error: anyhow::Error| error)?;
            None
        }
        (Some(rings), Some(socket)) => {
            let vault = acme.as_ref().map(Acme::vault);
            let tickets = certificates::ticket_source(&config, None, shared_tickets);
            let secrets = SourceSecrets::new(&rings, vault, directory.clone(), tickets);
            Some(Edges::open(
                &config,
                (rings, secrets),
                (
                    &reload.store,
                    counting.as_ref().map(|it| it.receiver(&config, &written)),
                ),
                socket,
                (&metrics, &health),
                handed_over.clone(),
            )?)
        }
        _ => None,
    };
    if let Some(acme) = &acme {
        let of_edges = edges.as_ref().map(|edges| edges.elsewhere(&config));
        let gateways = copied.as_ref().map(|copied| copied.elsewhere(&config));
        for elsewhere in gateways.into_iter().chain(of_edges) {
            acme.challenges.share(elsewhere);
        }
    }
    let operator = operator.with_follow(
        edges.as_ref().map(|edges| Arc::clone(edges.source.fleet())),
        following.as_ref().map(|edge| Arc::clone(&edge.status)),
    );

    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let handler = ConnectionHandler::new(Arc::clone(&gateway), &server.configuration, tls_config);
    let (worker_thread, worker_ended) = mpsc::channel();
    let upgrades = Upgrades {
        sockets: sockets.clone(),
        drain: drain.clone(),
        time_max: config.connections.limits.upgrade,
        handed_over: handed_over.clone(),
        worker_ended,
    };
    let upgrade_socket = settings::upgrade_socket(&config);
    let is_successor = predecessor.is_some();
    let begin = Begin {
        predecessor: predecessor.clone(),
        serving: Box::new(move || serving(upgrades, upgrade_socket, is_successor, &part)),
    };
    let mut service = ConnectionService::new(handler, listeners, begin, operator.clone()).named();
    service.threads = Some(server.configuration.threads);
    server.add_service(service);
    if let Some(socket) = operator_socket {
        let service = OperatorService::new(operator, socket, handed_over.clone());
        server.add_service(service.named());
    }
    let (worker, stopped) = watch::channel(worker::Stop::No);
    let stop = Stop {
        drain,
        limits: Arc::clone(&gateway.limits),
        reload: reload.request(),
        gateway: Arc::clone(&gateway),
        worker,
        sockets,
        handed_over,
    };
    let ordering =
        acme.map(|acme| acme.start(&config, served, directory.clone(), &metrics, &health));
    let ordering = ordering.transpose()?;
    let checking = updates.as_ref().map(|updates| {
        Verification::start(
            &config,
            &updates.site_admin,
            &written,
            &updates.domain_changes,
            &metrics,
            &health,
        )
    });
    let checking = checking.transpose()?.flatten();
    let served_log = updates
        .as_ref()
        .map_or_else(ServedLog::none, Updates::served_log);
    let fleet = edges.as_ref().map(|edges| edges.source.fleet());
    if fleet.is_some() || config.store.shared().is_some() {
        served_log.follow(fleet, &written, &reload.reloader)?;
    }
    let domain_changes = updates
        .as_ref()
        .map(|updates| updates.domain_changes.clone())
        .unwrap_or_default();
    let counting = counting.map(Counting::start).transpose()?;
    let threads = reload.start(directory, metrics, served_log, domain_changes)?;
    let working = updates
        .map(|updates| updates.start(stopped, predecessor, worker_thread))
        .transpose()?;
    if let (Some(edges), Some(copied)) = (&edges, &copied) {
        copied.follow_edges(edges.source.fleet(), &edges.secrets)?;
    }
    // Before this process accepts connections: commands then wait for it.
    if let Some(copied) = copied {
        copied.start(&health)?;
    }
    if let Some(edges) = edges {
        edges.start()?;
    }
    if let Some((listener, answering)) = of_edge {
        listener.start(answering)?;
    }
    if let Some(following) = following {
        following.start()?;
    }
    shared_store::start(&written)?;
    server.run(RunArgs {
        shutdown_signal: Box::new(stop),
    });
    if let Some(working) = working {
        working.end();
    }
    if let Some(ordering) = ordering {
        ordering.end();
    }
    if let Some(checking) = checking {
        checking.end();
    }
    threads.end();
    if let Some(counting) = counting {
        counting.end();
    }
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

fn bind(
    config: &Config,
    take_or_bind: &mut impl FnMut(SocketAddr) -> anyhow::Result<TcpSocket>,
) -> anyhow::Result<Listeners> {
    if config.listen.http.is_empty() && config.listen.https.is_empty() {
        anyhow::bail!("`listen` names no address for http or https");
    }
    let follows = match &config.store {
        config::Store::Follow { follow, .. } => follow.key_file.is_some(),
        config::Store::Local(_) | config::Store::Shared(_) => false,
    };
    let has_certificates = config.tls.directory.is_some() || config.acme.is_on() || follows;
    if !config.listen.https.is_empty() && !has_certificates {
        anyhow::bail!(
            "`listen.https` needs `tls.directory`, where the certificates are, or \
             `acme.authorities`, or on an edge `store.follow.key_file`"
        );
    }
    let mut all = |addresses: &[SocketAddr]| {
        addresses
            .iter()
            .map(|address| take_or_bind(*address))
            .collect::<anyhow::Result<_>>()
    };
    Ok(Listeners {
        http: all(&config.listen.http)?,
        https: all(&config.listen.https)?,
    })
}

/// Takes the socket that another process has passed for an address, or makes one. A copy of it is
/// kept for a successor.
fn take_or_bind(
    address: SocketAddr,
    inherited: &mut Inherited,
    sockets: &ListeningSockets,
) -> anyhow::Result<TcpSocket> {
    let passed = inherited.socket(address);
    let open = match passed.with_context(|| format!("take the socket for {address}"))? {
        Some(socket) => {
            log::info!(target: "serve", address:%; "another process has passed the socket for {address}");
            socket
        }
        None => socket(address)?,
    };
    let copy = open.as_fd().try_clone_to_owned();
    let socket = copy.with_context(|| format!("copy the socket for {address}"))?;
    sockets.add(Passed { address, socket });
    Ok(open)
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
