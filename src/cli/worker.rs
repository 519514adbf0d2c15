//! `waypost worker`: builds updates in a process that serves no sites.
//!
//! It uses the same queue and the same store as a gateway, and the gateway serves what it
//! promotes. With queue and store in PostgreSQL it may run on any machine. The
//! store's record of a site is read again before each build. Files of records are read again if
//! they were read more than [`FILES_AGE_MAX`] ago or do not have the project.
//!
//! Its only listener is the operator's (`worker.operator`): health, readiness, metrics.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::settings::{self, Settings};
use super::{deploying, secrets};
use crate::clock::Clock;
use crate::deploy::ReadSite;
use crate::deploy::run::ProjectsOf;
use crate::deploy::worker::{Metrics, Stop, Worker};
use crate::gateway::drain::{Drain, Phase};
use crate::gateway::operator::Operator;
use crate::store::Store;
use crate::store::sites::Sites;
use crate::telemetry::{self, Health, logging, panics};

/// How often the cache is swept.
const SWEEP_INTERVAL: Duration = Duration::from_secs(3600);
/// How old the records of files in memory may be when a build begins. There may be very many
/// files, and each is looked at.
const FILES_AGE_MAX: Duration = Duration::from_secs(2);

/// Build updates in a process that serves no sites
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The configuration.
    #[command(flatten)]
    pub settings: Settings,
}

/// Works until a signal stops it.
///
/// # Errors
///
/// When the configuration, the store, the queue or the site records cannot be used.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?;
    logging::start(&config.log).context("start the log")?;
    let socket = config
        .worker
        .operator
        .map(super::serve::socket)
        .transpose()?;
    secrets::check(&config)?;
    let metrics = Arc::new(telemetry::Metrics::new());
    panics::report(metrics.panics.clone());
    let drain = Drain::new();
    let health = Health::new(Clock::System);
    let pseudonym = config.service.domain.as_str();
    let operator = Operator::new(
        Arc::clone(&metrics),
        health.clone(),
        drain.clone(),
        pseudonym,
        None,
    )
    .with_hosts(config.listen.operator_hosts.clone());
    let store = Arc::new(settings::open_store(&config)?);
    start_sweep(&store)?;
    let queue = deploying::open_queue_or_retry(&config, &metrics, &health)?;
    let (sites, changes) = settings::read_sites(&config).context("read the site records")?;
    for diagnostic in &changes.diagnostics {
        log::log!(target: "sites", diagnostic.severity.level(), "{diagnostic}");
    }
    let sites = Arc::new(Mutex::new((sites, Instant::now())));
    let stages = deploying::stages(&config, &queue, &store, projects_of(&sites), None)?;
    deploying::report_isolation(&stages, &metrics)?;
    let worker = Worker::new(
        deploying::worker_id()?,
        config.worker.clone(),
        Arc::new(stages),
        read_site(&sites),
        deploying::presence(&config),
        Metrics::new(&metrics),
        &health,
    );
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    runtime.block_on(async {
        if let Some(socket) = socket {
            let listener = socket.listen(128).context("listen for the operator")?;
            let address = listener.local_addr().context("listen for the operator")?;
            log::info!(target: "deploy", operator:% = address; "health, readiness and metrics on http://{address}");
            operator.loaded();
            // Never joined: it runs until the runtime ends.
            tokio::spawn(panics::essential("operator", operator.listen(listener)));
        }
        let (stop, stopped) = watch::channel(Stop::No);
        let working = tokio::spawn(panics::essential("worker", worker.run(stopped)));
        let mut term = signal(SignalKind::terminate()).context("handle SIGTERM")?;
        let mut int = signal(SignalKind::interrupt()).context("handle SIGINT")?;
        let mut working = std::pin::pin!(working);
        for urgency in [Stop::Soon, Stop::Now] {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
                ended = &mut working => return ended.context("the worker panicked"),
            }
            log::info!(target: "deploy", "stopping after a signal");
            drain.enter(Phase::Unready);
            // This fails only if the worker has stopped already.
            let _ = stop.send(urgency);
        }
        working.await.context("the worker panicked")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Starts to remove old releases from the cache of this machine, if the store is one of several.
/// The thread is never joined: it can be stopped at any point.
fn start_sweep(store: &Arc<Store>) -> anyhow::Result<()> {
    let store = Arc::clone(store);
    if matches!(*store, Store::Local(_)) {
        // The gateway sweeps it.
        return Ok(());
    }
    let sweep = move || loop {
        if let Err(error) = store.sweep_cache(Clock::System.now()) {
            log::warn!(target: "store", "cannot sweep the cache: {}", crate::error::chain(&error));
        }
        std::thread::sleep(SWEEP_INTERVAL);
    };
    panics::essential_thread("sweep", sweep).context("start a thread")?;
    Ok(())
}

/// The site records, and when the files were read.
type ReadSites = (Sites, Instant);

/// Returns a function that finds the projects of an owner in the records.
fn projects_of(read_sites: &Arc<Mutex<ReadSites>>) -> ProjectsOf {
    let read_sites = Arc::clone(read_sites);
    Arc::new(move |owner| {
        let read_sites = read_sites.lock().unwrap_or_else(PoisonError::into_inner);
        let owned = read_sites.0.iter().filter(|site| *site.owner == *owner);
        owned.map(|site| site.project.clone()).collect()
    })
}

/// Returns a function that reads the site of a project.
fn read_site(read_sites: &Arc<Mutex<ReadSites>>) -> ReadSite {
    let read_sites = Arc::clone(read_sites);
    Arc::new(move |project| {
        let mut read_sites = read_sites.lock().unwrap_or_else(PoisonError::into_inner);
        let (sites, read_at) = &mut *read_sites;
        if read_at.elapsed() <= FILES_AGE_MAX
            && let Some(site) = deploying::read_stored_site(sites, project)?
        {
            return Ok(Some(site));
        }
        let read = deploying::read_site(sites, project);
        *read_at = Instant::now();
        read
    })
}
