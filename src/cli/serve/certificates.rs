//! The certificates of the process: those of the operator's directory, and those by ACME.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context as _;
use tokio::sync::watch;

use super::shared_store::Copied;
use crate::acme::{
    Authorities, Challenges, Manager, Metrics as AcmeMetrics, Names, Ordered, Vault,
};
use crate::cli::settings;
use crate::clock::Clock;
use crate::config::Config;
use crate::dns::Client;
use crate::follow::FollowedTickets;
use crate::gateway::tls::{Certificates, Resolver, Tickets, server_config};
use crate::index::Index;
use crate::store::documents::Documents;
use crate::store::shared::SharedTicketKeys;
use crate::store::ticket_keys::TicketSource;
use crate::telemetry::{Health, Metrics, panics};

/// Certificates by ACME, read but not yet ordered.
pub(super) struct Acme {
    pub(super) ordered: Arc<Ordered>,
    pub(super) challenges: Arc<Challenges>,
    vault: Vault,
    authorities: Authorities,
}

/// The thread that orders.
pub(super) struct Ordering {
    thread: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

/// The names that this process serves and that need a certificate by ACME.
struct Served {
    index: Arc<Index>,
    directory: Option<Arc<Certificates>>,
    more: Vec<Box<str>>,
    /// Its sites and certificates are those of another node, which decides what is released.
    is_edge: bool,
}

/// Reads the certificates of the operator's directory, if there is one.
pub(super) fn of_directory(
    config: &Config,
    metrics: &Metrics,
) -> anyhow::Result<Option<Arc<Certificates>>> {
    let Some(directory) = &config.tls.directory else {
        return Ok(None);
    };
    let certificates = Arc::new(Certificates::new(directory.clone(), Clock::System));
    let report = certificates
        .read()
        .with_context(|| format!("read certificates in {}", directory.display()))?;
    report.record(metrics);
    log::info!(target: "tls", names = report.names; "certificates for {} names", report.names);
    Ok(Some(certificates))
}

/// Returns where the keys of session tickets are. An edge has the keys of its source; the gateways
/// of a database share theirs; every other gateway has the keys of its machine.
pub(super) fn ticket_source(
    config: &Config,
    followed: Option<FollowedTickets>,
    shared: Option<SharedTicketKeys>,
) -> Box<dyn TicketSource> {
    match (followed, shared) {
        (Some(followed), _) => Box::new(followed),
        (None, Some(shared)) => Box::new(shared),
        (None, None) => {
            if config.store.shared().is_some() {
                log::info!(target: "tls", "a session of this gateway is not resumed by the others: `acme.key_file` is not configured, which encrypts the keys of session tickets in the database");
            }
            Box::new(settings::ticket_keys(config))
        }
    }
}

/// Makes the configuration of TLS, and starts the thread that keeps the keys of session tickets up
/// to date. The store exists.
pub(super) fn tls(
    config: &Config,
    resolver: &Arc<Resolver>,
    source: Box<dyn TicketSource>,
    health: &Health,
) -> anyhow::Result<Arc<rustls::ServerConfig>> {
    let part = health.part("session-tickets");
    let (tickets, rotation) =
        Tickets::new(source, part, Clock::System).context("make keys of session tickets")?;
    // Never joined: it can be stopped at any point.
    panics::essential_thread("session-tickets", move || rotation.run())
        .context("start a thread")?;
    server_config(&config.tls, resolver, tickets).context("set up TLS")
}

// === impl Acme ===

impl Acme {
    /// Opens the certificates by ACME, if they are configured, and reads all of them.
    ///
    /// # Errors
    ///
    /// When the directory or a file of the configuration cannot be used. A record that cannot be
    /// used is logged.
    pub(super) fn open(config: &Config, copied: Option<&Copied>) -> anyhow::Result<Option<Self>> {
        if !config.acme.is_on() {
            return Ok(None);
        }
        let vault = match copied {
            Some(copied) => copied.vault(config)?,
            None => settings::open_vault(config)?,
        };
        let authorities = Authorities::new(&config.acme, &vault, Clock::System);
        let authorities = authorities.map_err(|wrong| anyhow::anyhow!("{}", wrong.join("\n")))?;
        let ordered = Arc::new(Ordered::new(vault.clone(), Clock::System));
        let read = ordered.refresh().context("read the certificates by ACME")?;
        for (key, why) in &read.failures {
            log::error!(target: "acme", record:% = key; "the record {key} of a certificate cannot be used: {why}");
        }
        let names = ordered.len();
        log::info!(target: "acme", names; "certificates by ACME for {names} names");
        Ok(Some(Self {
            ordered,
            challenges: Arc::new(Challenges::new(Arc::clone(&vault.documents))),
            vault,
            authorities,
        }))
    }

    /// Returns the documents of certificates, and the key of their secrets.
    pub(super) fn vault(&self) -> Vault {
        self.vault.clone()
    }

    /// Returns where the documents of certificates are.
    pub(super) fn documents(&self) -> Arc<dyn Documents> {
        Arc::clone(&self.vault.documents)
    }

    /// Starts the thread that orders.
    pub(super) fn start(
        self,
        config: &Config,
        index: Arc<Index>,
        directory: Option<Arc<Certificates>>,
        metrics: &Metrics,
        health: &Health,
    ) -> anyhow::Result<Ordering> {
        let names = config.acme.names.iter();
        let served = Served {
            index,
            directory,
            more: names.map(|name| name.as_str().into()).collect(),
            is_edge: config.store.is_edge(),
        };
        let verification = &config.verification;
        let client = Client::new(
            &verification.resolvers,
            config.private_hosts.clone(),
            verification.check_timeout,
        );
        let manager = Manager::new(
            config.acme.clone(),
            self.vault,
            self.authorities,
            self.ordered,
            self.challenges,
            Box::new(served),
            client,
            AcmeMetrics::new(metrics),
            health.part("certificates"),
            Clock::System,
        );
        let (stop, stopped) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("start a thread")?;
        let thread = panics::essential_thread("acme", move || {
            runtime.block_on(manager.run(stopped));
            // Requests to authorities that run are not waited for.
            runtime.shutdown_background();
        });
        Ok(Ordering {
            thread: thread.context("start a thread")?,
            stop,
        })
    }
}

// === impl Ordering ===

impl Ordering {
    /// Stops to order. Another process may lead from now on.
    pub(super) fn end(self) {
        self.stop.send_replace(true);
        // A panic in it ends the process.
        let _joined = self.thread.join();
    }
}

// === impl Served ===

impl Names for Served {
    fn generation(&self) -> u64 {
        let directory = self.directory.as_ref();
        let directory = directory.map_or(0, |directory| directory.generation());
        self.index.generation().wrapping_add(directory << 32)
    }

    fn wanted(&self) -> HashMap<Box<str>, Option<Arc<str>>> {
        let domains = self.index.domains().into_iter();
        let domains = domains.map(|(host, owner)| (host.as_str().into(), Some(owner.into())));
        // A name of the operator stays one if a site has it too.
        let more = self.more.iter().map(|name| (name.clone(), None));
        let mut wanted: HashMap<Box<str>, Option<Arc<str>>> = domains.chain(more).collect();
        wanted.retain(|name, _| {
            let has_own = self.directory.as_ref();
            let has_own = has_own.is_some_and(|directory| directory.names(name));
            let by_wildcard = name.split_once('.').is_some_and(|(label, rest)| {
                label != "*"
                    && self
                        .more
                        .iter()
                        .any(|more| more.strip_prefix("*.") == Some(rest))
            });
            !has_own && !by_wildcard
        });
        wanted
    }

    fn serves(&self, name: &str) -> bool {
        self.is_edge || self.index.with(name, |_| ()).is_some()
    }
}
