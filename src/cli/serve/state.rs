//! The state that the process serves: opened and read, and not yet kept up to date by a thread.

use std::sync::Arc;

use super::Process;
use super::certificates::{self, Acme};
use super::counting::Counting;
use super::follow::{self, Following};
use super::reload::Reload;
use super::shared::EdgeSecrets;
use super::shared_store::{self, Copied};
use super::updates::Updates;
use crate::config::Config;
use crate::follow::Rings;
use crate::gateway::tls;
use crate::index::Index;
use crate::index::reload::Observer;
use crate::store::Store;
use crate::store::shared::SharedTicketKeys;

/// The state of the process.
pub(super) struct State {
    pub(super) index: Arc<Index>,
    /// The certificates in a directory of files.
    pub(super) directory: Option<Arc<tls::Certificates>>,
    /// The changes for edges.
    pub(super) rings: Option<Arc<Rings>>,
    pub(super) reload: Reload,
    /// The store that this process writes: the one that it serves, or that of several machines.
    pub(super) written: Arc<Store>,
    /// The documents of a shared store.
    pub(super) copied: Option<Copied>,
    pub(super) acme: Option<Acme>,
    pub(super) resolver: Arc<tls::Resolver>,
    pub(super) tls: Option<Arc<rustls::ServerConfig>>,
    pub(super) shared_tickets: Option<SharedTicketKeys>,
    /// What this process follows.
    pub(super) following: Option<Following>,
    pub(super) counting: Option<Counting>,
    /// `None` on an edge, which has no queue, no worker and no admin API.
    pub(super) updates: Option<Updates>,
}

// === impl State ===

impl State {
    /// Opens the state and fills the index. At most `files_max` files are open at once.
    ///
    /// # Errors
    ///
    /// When the store, a certificate or the site records cannot be used.
    pub(super) fn open(
        config: &Config,
        files_max: usize,
        process: &Process,
    ) -> anyhow::Result<Self> {
        let Process {
            metrics, health, ..
        } = process;
        let directory = certificates::of_directory(config, metrics)?;
        let index = Index::new(config.service.clone());
        let index = Arc::new(match config.numbers.enabled {
            true => index.counting(),
            false => index,
        });
        let rings = follow::rings(config)?;
        let observer = rings.clone().map(|rings| rings as Arc<dyn Observer>);
        let reload = Reload::load(config, files_max, &index, (metrics, health), observer)?;
        let written = shared_store::written(config, &reload.store, metrics)?;
        // They are kept in the store, which exists now.
        let copied = Copied::open(config, &written)?;
        let acme = Acme::open(config, copied.as_ref())?;
        let followed = EdgeSecrets::open(config)?;
        let resolver = resolver(config, &directory, acme.as_ref(), followed.as_ref());
        let tickets = followed.as_ref().and_then(|one| one.tickets.clone());
        let has_tls = directory.is_some() || resolver.ordered.is_some();
        let shared_tickets = copied.as_ref().and_then(Copied::tickets);
        let tls = has_tls
            .then(|| {
                let source = certificates::ticket_source(config, tickets, shared_tickets.clone());
                certificates::tls(config, &resolver, source, health)
            })
            .transpose()?;
        let parts = (&reload, rings.as_ref(), &written);
        let following = Following::open(config, followed, parts, metrics, health)?;
        let counting = Counting::open(config, &index, &written, following.as_ref())?;
        let documents = acme.as_ref().map(Acme::documents);
        let updates = (!config.store.is_edge())
            .then(|| {
                Updates::open(
                    config,
                    &index,
                    (&reload, &written),
                    (documents, counting.as_ref()),
                    metrics,
                    health,
                )
            })
            .transpose()?;
        Ok(Self {
            index,
            directory,
            rings,
            reload,
            written,
            copied,
            acme,
            resolver,
            tls,
            shared_tickets,
            following,
            counting,
            updates,
        })
    }
}

/// Makes what finds certificates and challenges: those of the followed node, or our own.
fn resolver(
    config: &Config,
    directory: &Option<Arc<tls::Certificates>>,
    acme: Option<&Acme>,
    followed: Option<&EdgeSecrets>,
) -> Arc<tls::Resolver> {
    let ordered = match followed {
        Some(followed) => followed.ordered.clone(),
        None => acme.map(|acme| Arc::clone(&acme.ordered)),
    };
    let challenges = followed.map(|followed| &followed.challenges);
    let challenges = challenges.or(acme.map(|acme| &acme.challenges));
    Arc::new(tls::Resolver {
        directory: directory.clone(),
        ordered,
        challenges: challenges.cloned(),
        default: config.tls.default.clone(),
    })
}
