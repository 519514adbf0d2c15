//! Keeps the index up to date with the disk: the reloader and the threads beside the runtimes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;

use super::updates::ServedLog;
use crate::cli::settings;
use crate::clock::Clock;
use crate::config::Config;
use crate::deploy::sites::verification::Changes as DomainChanges;
use crate::gateway::operator;
use crate::gateway::tls::{self, Certificates};
use crate::index::reload::{Observer, Reloader};
use crate::index::{Cache, Index};
use crate::site::ProjectId;
use crate::store::Store;
use crate::store::sites::{Removals, ScanError};
use crate::store::watch::{Change, Followed, Watch};
use crate::telemetry::{Health, Metrics, panics};

/// How often the store is swept; the first time is at the start.
const SWEEP_INTERVAL: Duration = Duration::from_secs(3600);

/// The reloader after its first load, before its thread starts.
pub(super) struct Reload {
    pub(super) reloader: Arc<Mutex<Reloader>>,
    pub(super) store: Arc<Store>,
    watch: Arc<Watch>,
    rescan: Duration,
    accepts_removals: Arc<AtomicBool>,
}

/// Makes the reloader read all sites again and compare them with the disk.
#[derive(Clone, Debug)]
pub(super) struct Request {
    watch: Arc<Watch>,
    accepts_removals: Arc<AtomicBool>,
}

/// The threads beside the runtimes.
pub(super) struct Threads {
    watch: Arc<Watch>,
    handles: Vec<JoinHandle<()>>,
}

impl Reload {
    pub(super) fn load(
        config: &Config,
        open_files_max: usize,
        index: &Arc<Index>,
        (metrics, health): (&Arc<Metrics>, &Health),
        observer: Option<Arc<dyn Observer>>,
    ) -> anyhow::Result<Self> {
        let store = Arc::new(settings::open_local(config)?);
        let is_edge = config.store.is_edge();
        // An edge has no site records in files, and its own cache is always there.
        let records = match is_edge {
            true => settings::store_path(config).join("no-site-records"),
            false => config.sites.path.clone(),
        };
        let sites = settings::unread_sites(config).with_store(Arc::clone(&store));
        // Watch before loading, so that a change in between is not missed.
        let watch = Arc::new(Watch::start(&store, &records, config.sites.rescan));
        let (index, metrics) = (Arc::clone(index), Arc::clone(metrics));
        let mut reloader = Reloader::new(index, Arc::clone(&store), sites, metrics, Clock::System)
            .with_cache(
                Cache::new(config.connections.page_cache_bytes)
                    .opening_at_most(open_files_max)
                    .reporting_to(health.part("files")),
            )
            .reporting_to(health.part("releases"))
            .observed_by(observer);
        reloader
            .rescan(Removals::Guarded)
            .context("read the site records")?;
        let accepts_removals = Arc::default();
        Ok(Self {
            reloader: Arc::new(Mutex::new(reloader)),
            store,
            watch,
            rescan: config.sites.rescan,
            accepts_removals,
        })
    }

    pub(super) fn request(&self) -> Request {
        Request {
            watch: Arc::clone(&self.watch),
            accepts_removals: Arc::clone(&self.accepts_removals),
        }
    }

    /// Returns the watch of the store.
    pub(super) fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    pub(super) fn start(
        self,
        certificates: Option<Arc<Certificates>>,
        metrics: Arc<Metrics>,
        served_log: ServedLog,
        domain_changes: DomainChanges,
    ) -> anyhow::Result<Threads> {
        let Self {
            reloader,
            store,
            watch,
            rescan,
            accepts_removals,
        } = self;
        let spawn = |name: &'static str, work: Box<dyn FnOnce() + Send>| {
            panics::essential_thread(name, work).context("start a thread")
        };
        let mut handles = Vec::new();
        handles.push(spawn("reload", {
            let watch = Arc::clone(&watch);
            Box::new(move || {
                // A worker may have published while no gateway ran.
                served_log.compare(&reloader);
                while let Some(change) = watch.next() {
                    apply(&reloader, &change, &accepts_removals, &served_log);
                    match &change {
                        Change::Records(projects) => {
                            projects.iter().for_each(|one| domain_changes.project(one));
                        }
                        Change::Followed(followed) if followed.is_everything => {
                            domain_changes.all();
                        }
                        Change::Followed(followed) => {
                            let projects = &followed.records;
                            projects.iter().for_each(|one| domain_changes.project(one));
                        }
                        Change::Sites | Change::Rescan => domain_changes.all(),
                        Change::Pointer(_) => {}
                    }
                }
            })
        })?);
        // These two threads are never joined: they can be stopped at any point.
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

/// Locks the reloader. The reloader catches a panic while it reads a release. After any other panic
/// in it the served state is unknown, and the process ends.
pub(super) fn lock_reloader(reloader: &Mutex<Reloader>) -> MutexGuard<'_, Reloader> {
    reloader
        .lock()
        .unwrap_or_else(|_poisoned| panics::end("reload"))
}

/// Applies a change to the index, and records the outcome in the queue.
fn apply(
    reloader: &Mutex<Reloader>,
    change: &Change,
    accepts_removals: &AtomicBool,
    served_log: &ServedLog,
) {
    // Only a change that can remove sites resets the flag; a promotion does not.
    let removals = || match accepts_removals.swap(false, Ordering::AcqRel) {
        true => Removals::Accepted,
        false => Removals::Guarded,
    };
    let removed = match change {
        Change::Pointer(project) => {
            let served = lock_reloader(reloader).promoted(project);
            return served.map_or((), |fence| served_log.served(project, fence));
        }
        Change::Records(projects) => lock_reloader(reloader).rescan_records(projects),
        Change::Sites => lock_reloader(reloader).rescan_sites(removals()),
        Change::Followed(followed) => {
            let removed = read_followed(reloader, followed, served_log);
            if removed.is_ok() {
                lock_reloader(reloader).followed(&followed.id, followed.revision);
            }
            removed
        }
        Change::Rescan => lock_reloader(reloader).rescan(removals()),
    };
    served_log.scanned(removed);
    if let Change::Rescan = change {
        served_log.compare(reloader);
    }
}

/// Reads what a follower has written, as far as the events of the system have not reported it yet.
fn read_followed(
    reloader: &Mutex<Reloader>,
    followed: &Followed,
    served_log: &ServedLog,
) -> Result<Vec<ProjectId>, ScanError> {
    if followed.is_everything {
        let removed = lock_reloader(reloader).rescan(Removals::Guarded);
        served_log.compare(reloader);
        return removed;
    }
    let records: Vec<ProjectId> = followed.records.iter().cloned().collect();
    let removed = match records.is_empty() {
        true => Ok(Vec::new()),
        false => lock_reloader(reloader).rescan_records(&records),
    };
    for project in &followed.pointers {
        let served = lock_reloader(reloader).promoted_meanwhile(project);
        if let Some(fence) = served {
            served_log.served(project, fence);
        }
    }
    removed
}

pub(super) fn sweep(store: &Store) {
    loop {
        match store.sweep(Clock::System.now()) {
            Ok(swept) if swept.releases + swept.files + swept.leftovers > 0 => {
                let (releases, files, bytes) = (swept.releases, swept.files, swept.bytes);
                log::info!(target: "store", releases, files, bytes; "swept {releases} releases and {files} files");
            }
            Ok(_) => {}
            Err(error) => {
                log::warn!(target: "store", "cannot remove old releases and files: {:#}", anyhow::Error::from(error))
            }
        }
        std::thread::sleep(SWEEP_INTERVAL);
    }
}

impl Request {
    /// Requests a comparison of everything; with `accept_removals` it may remove any number
    /// of sites.
    pub(super) fn rescan(&self, accept_removals: bool) {
        self.accepts_removals
            .fetch_or(accept_removals, Ordering::AcqRel);
        self.watch.rescan();
    }
}

impl operator::Reload for Request {
    fn reload(&self, accept_removals: bool) {
        self.rescan(accept_removals);
    }
}

impl Threads {
    pub(super) fn end(self) {
        self.watch.close();
        for handle in self.handles {
            // A panic in it ends the process.
            let _joined = handle.join();
        }
    }
}
