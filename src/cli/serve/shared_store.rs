//! A gateway on a shared store: it follows the database into its cache, and sweeps.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::reload;
use super::shared::SourceSecrets;
use crate::acme::{Elsewhere, Vault};
use crate::cli::{deploying, settings};
use crate::clock::Clock;
use crate::config::Config;
use crate::deploy::keys::ADMIN_KEYS;
use crate::error::chain;
use crate::follow::{EDGE_TOKENS, Fleet};
use crate::store::Store;
use crate::store::documents::{LocalDocuments, SealKey};
use crate::store::shared::{
    ALIVE, Mirror, MirroredDocuments, SharedDocuments, SharedTicketKeys, TICKET_KEYS,
};
use crate::telemetry::{Health, Metrics, panics};

/// How often it is checked whether every edge has a document.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The documents of the database: certificates and their challenges, keys. They are served from a
/// copy in the cache.
pub(super) struct Copied {
    /// The name of this process.
    name: String,
    documents: SharedDocuments,
    mirror: Arc<Mirror>,
    certificates: Arc<LocalDocuments>,
    /// The key of secrets; `None` without a key file.
    seal: Option<Arc<SealKey>>,
    copy: PathBuf,
    /// Whether the database was there at the start.
    is_complete: bool,
}

/// Waits until every gateway of the database answers challenges, and every edge of a gateway.
#[derive(Debug)]
struct ByGateways {
    documents: SharedDocuments,
    /// How long it waits.
    time: Duration,
}

/// Returns the store that updates, the admin API and the verification of domains write: the one
/// that is served from, or the database and the objects behind that cache.
pub(super) fn written(
    config: &Config,
    served: &Arc<Store>,
    metrics: &Metrics,
) -> anyhow::Result<Arc<Store>> {
    match config.store.shared() {
        Some(_) => {
            let shared = settings::open_shared(config)?.with_metrics(metrics);
            Ok(Arc::new(Store::Shared(shared)))
        }
        None => Ok(Arc::clone(served)),
    }
}

/// Starts to listen to the database, and to remove what no pointer names. The threads are never
/// joined: they can be stopped at any point.
pub(super) fn start(store: &Arc<Store>) -> anyhow::Result<()> {
    if matches!(**store, Store::Shared(_)) {
        let (listening, swept) = (Arc::clone(store), Arc::clone(store));
        let listen = move || {
            if let Store::Shared(shared) = &*listening {
                shared.listen();
            }
        };
        panics::essential_thread("store-listen", listen).context("start a thread")?;
        panics::essential_thread("store-sweep", move || reload::sweep(&swept))
            .context("start a thread")?;
    }
    Ok(())
}

// === impl Copied ===

impl Copied {
    /// Copies the documents of a store that several machines share; `None` for other stores. While
    /// the database is away, what an earlier process has copied is used.
    pub(super) fn open(config: &Config, written: &Arc<Store>) -> anyhow::Result<Option<Self>> {
        let Store::Shared(shared) = &**written else {
            return Ok(None);
        };
        let documents = shared.documents();
        let copy = settings::copied_path(config);
        let name = deploying::worker_id()?;
        let store = settings::store_path(config);
        let mut mirror = Mirror::new(documents.clone(), name.as_str(), &copy, store)
            .context("open the copy of the documents of the database")?;
        for set in [ADMIN_KEYS, EDGE_TOKENS, TICKET_KEYS] {
            mirror = mirror.with_files(set, copy.join(set), ".json");
        }
        let frozen = copy.join(settings::FREEZE);
        mirror = mirror.with_files(settings::FREEZE, frozen, settings::FREEZE_ENDING);
        let directory = settings::certificates_path(config);
        let (mirror, certificates) = mirror
            .with_certificates(&directory, Clock::System)
            .context("open the directory of certificates")?;
        let synced = mirror.sync();
        if let Err(error) = &synced {
            log::warn!(target: "store", "certificates and keys are those that this machine had before: {}", chain(error));
        }
        let key_file = config.acme.key_file.as_deref();
        let seal = key_file.map(|file| documents.open_seal(file)).transpose()?;
        Ok(Some(Self {
            name: name.as_str().to_owned(),
            documents,
            mirror: Arc::new(mirror),
            certificates,
            seal: seal.map(Arc::new),
            copy,
            is_complete: synced.is_ok(),
        }))
    }

    /// Returns the keys of session tickets; `None` if only this machine has them, because there is
    /// no key file.
    pub(super) fn tickets(&self) -> Option<SharedTicketKeys> {
        let seal = Arc::clone(self.seal.as_ref()?);
        let copy = self.copy.join(TICKET_KEYS);
        Some(SharedTicketKeys::new(self.documents.clone(), seal, &copy))
    }

    /// Returns the documents of certificates, and the key of their secrets.
    pub(super) fn vault(&self, config: &Config) -> anyhow::Result<Vault> {
        settings::key_file(config)?;
        let seal = self.seal.as_ref().context("the key file was not read")?;
        let (mirror, certificates) = (Arc::clone(&self.mirror), Arc::clone(&self.certificates));
        Ok(Vault {
            documents: Arc::new(MirroredDocuments::new(mirror, certificates)),
            seal: Arc::clone(seal),
        })
    }

    /// Returns the wait until all gateways answer challenges.
    pub(super) fn elsewhere(&self, config: &Config) -> Arc<dyn Elsewhere> {
        Arc::new(ByGateways {
            documents: self.documents.clone(),
            time: config.edges.challenge_wait,
        })
    }

    /// Starts a thread that writes into the database up to which revision all edges of this gateway
    /// have the documents. The gateway that orders certificates waits for them too. The thread is
    /// never joined: it can be stopped at any point.
    pub(super) fn follow_edges(
        &self,
        fleet: &Arc<Fleet>,
        secrets: &Arc<SourceSecrets>,
    ) -> anyhow::Result<()> {
        let (fleet, secrets) = (Arc::clone(fleet), Arc::clone(secrets));
        let (documents, mirror) = (self.documents.clone(), Arc::clone(&self.mirror));
        let name = self.name.clone();
        let work = move || {
            let (mut applied, mut read) = (0, (0, 0));
            let mut reported: Option<(u64, Instant)> = None;
            loop {
                let copied = mirror.wait_for_other(applied, ALIVE / 2);
                if copied != read.0 {
                    // This writes the new documents of the copy into the log, which edges read.
                    secrets.read();
                    read = (copied, secrets.log.revision());
                }
                match fleet.behind(read.1).is_empty() {
                    true => applied = copied,
                    false => std::thread::sleep(CHECK_INTERVAL),
                }
                if reported.is_some_and(|(last, at)| last == applied && at.elapsed() < ALIVE) {
                    continue;
                }
                match documents.edges_have_read(&name, applied) {
                    Ok(()) => reported = Some((applied, Instant::now())),
                    // The part `documents` reports that the database is away.
                    Err(_away) => std::thread::sleep(ALIVE),
                }
            }
        };
        panics::essential_thread("edge-documents", work).context("start a thread")?;
        Ok(())
    }

    /// Says in the database that this process serves the copy, and starts to copy changes. The
    /// thread is never joined: it can be stopped at any point.
    pub(super) fn start(self, health: &Health) -> anyhow::Result<()> {
        let (mirror, part) = (self.mirror, health.part("documents"));
        if self.is_complete
            && let Err(error) = mirror.announce()
        {
            // The thread says it when the database is back.
            part.fail(chain(&error));
        }
        panics::essential_thread("documents", move || mirror.run(&part))
            .context("start a thread")?;
        Ok(())
    }
}

// === impl ByGateways ===

impl Elsewhere for ByGateways {
    fn answers(&self) -> Pin<Box<dyn Future<Output = Vec<String>> + Send + '_>> {
        Box::pin(async move {
            let (documents, time) = (self.documents.clone(), self.time);
            let waiting =
                tokio::task::spawn_blocking(move || documents.wait_until_read(true, time));
            match waiting.await {
                Ok(Ok(behind)) => behind,
                Ok(Err(error)) => {
                    log::warn!(target: "acme", "cannot ask the database which gateways have a challenge: {}", chain(&error));
                    Vec::new()
                }
                Err(_panic) => Vec::new(),
            }
        })
    }
}
