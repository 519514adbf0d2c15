//! The gateway and the operator's listener, with the parts that they need.

use std::sync::Arc;

use anyhow::Context as _;
use pingora::server::configuration::ServerConf;

use super::state::State;
use super::{Process, freed};
use crate::cli::settings;
use crate::clock::Clock;
use crate::config::Config;
use crate::gateway::access::{Access, Target};
use crate::gateway::balance::Balancer;
use crate::gateway::clients::Clients;
use crate::gateway::copies::Copies;
use crate::gateway::forward::TrustedPeers;
use crate::gateway::operator::{Changes, Operator};
use crate::gateway::token::Token;
use crate::gateway::{Gateway, memory, tls};
use crate::origin::Resolver;
use crate::telemetry::{Health, panics};

/// Makes the gateway, and starts the threads that watch its memory. At most `requests_max` requests
/// are with upstreams at once.
///
/// # Errors
///
/// When a file or directory of the configuration cannot be used, or a thread cannot be started.
pub(super) fn open(
    config: &Config,
    conf: &ServerConf,
    requests_max: usize,
    state: &State,
    process: &Process,
) -> anyhow::Result<Arc<Gateway>> {
    let Process { metrics, drain, .. } = process;
    let access = Access::start(&config.access_log, metrics.access_lines_dropped.clone())
        .with_context(|| match &config.access_log {
            Target::File(path) => format!("open the access log {}", path.display()),
            Target::Stdout | Target::Off => "start the access log".to_owned(),
        })?;
    let trusted = TrustedPeers::new(config.connections.trusted_peers.clone());
    let clients = Clients::new(config.clients.clone(), trusted.clone(), metrics);
    let resolver = Resolver::new(config.private_hosts.clone());
    let balancer = Balancer::new(config.upstream.clone(), Arc::clone(metrics))
        .with_requests_max(requests_max)
        .with_checks(resolver.clone(), conf);
    let copies = Copies::start(&config.copies, &state.index, drain, metrics, Clock::System)
        .context("open the directory of `upstream.copies`")?;
    let admin = state.updates.as_ref();
    let gateway = Arc::new(Gateway {
        index: Arc::clone(&state.index),
        metrics: Arc::clone(metrics),
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
        tls: tls::Policy::new(
            &config.tls,
            config.redirects(),
            &config.service,
            &state.resolver,
        ),
        challenges: state.resolver.challenges.clone(),
        drain: drain.clone(),
        resolver,
        balancer: Arc::new(balancer),
        copies,
        admin: admin.map(|updates| Arc::clone(&updates.api)),
        clock: Clock::System,
    });
    watch_memory(config, &gateway)?;
    freed::start().context("start a thread")?;
    Ok(gateway)
}

/// Makes what answers on the operator's listener.
pub(super) fn operator(
    config: &Config,
    gateway: &Gateway,
    state: &State,
    process: &Process,
) -> Operator {
    let Process {
        metrics,
        health,
        drain,
        ..
    } = process;
    let changes = Changes {
        reload: match &state.following {
            Some(following) => following.reload(state.reload.request()),
            None => Arc::new(state.reload.request()),
        },
        token: operator_token(config, health),
        upstreams: Arc::clone(&gateway.balancer),
        top: Arc::clone(&gateway.top),
        hosts: config.listen.operator_hosts.clone(),
    };
    let pseudonym = config.service.domain.as_str();
    let (metrics, health) = (Arc::clone(metrics), health.clone());
    Operator::new(metrics, health, drain.clone(), pseudonym, Some(changes))
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
