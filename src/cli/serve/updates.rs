//! Updates: the admin API, its queue, and a worker.

use std::collections::BTreeSet;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::{Notify, watch};

use super::counting::Counting;
use super::progress::Progress;
use super::reload::{Reload, lock_reloader};
use super::successor::Predecessor;
use crate::cli::{deploying, settings};
use crate::clock::Clock;
use crate::config::Config;
use crate::deploy::api::{self, Api};
use crate::deploy::keys::{self, KeyCache};
use crate::deploy::queue::Queue;
use crate::deploy::run::{Announce, ProjectsOf, SITE_REMOVED};
use crate::deploy::sites::verification::Changes as DomainChanges;
use crate::deploy::sites::{Changed, ServedSites, SiteAdmin};
use crate::deploy::worker::{self, Worker};
use crate::deploy::{FindSite, ReadSite, Timestamp, lower_priority};
use crate::error::chain;
use crate::follow::Fleet;
use crate::index::Index;
use crate::index::reload::Reloader;
use crate::numbers::Writer;
use crate::site::ProjectId;
use crate::store::documents::Documents;
use crate::store::shared::WaitingProjects;
use crate::store::sites::{Removals, ScanError, Sites};
use crate::store::{Fence, Store};
use crate::telemetry::{Health, Metrics, panics};

/// How often it is looked whether the edges that an update waits for still follow.
const UNSEEN_TIME: Duration = Duration::from_secs(5);

/// How often it is looked whether the edges of other gateways have a release.
const OTHERS_TIME: Duration = Duration::from_millis(500);

/// Admin API, queue and worker, opened but not started.
pub(super) struct Updates {
    pub(super) api: Arc<Api>,
    pub(super) site_admin: Arc<SiteAdmin>,
    /// The site records that have changed, for the proof of ownership.
    pub(super) domain_changes: DomainChanges,
    /// `None` if only `waypost worker` builds.
    worker: Option<Worker>,
    key_cache: Arc<KeyCache>,
    queue: Arc<Queue>,
    unseen: Arc<Unseen>,
    numbers: Option<Arc<Writer>>,
}

/// Records in the queue which releases are served.
#[derive(Clone)]
pub(super) struct ServedLog {
    /// `None` on an edge, which has no updates.
    queue: Option<Arc<Queue>>,
    unseen: Arc<Unseen>,
    /// Removes the numbers of removed sites.
    numbers: Option<Arc<Writer>>,
}

/// Projects whose release this node serves, and perhaps not every edge that follows it, or that
/// follows another gateway of the same store.
#[derive(Debug, Default)]
pub(super) struct Unseen {
    /// Whether there can be such edges.
    has_edges: bool,
    projects: Mutex<BTreeSet<ProjectId>>,
    changed: Notify,
}

/// The started worker.
pub(super) struct WorkerThreads {
    thread: JoinHandle<()>,
    _keys: keys::Watch,
}

impl Updates {
    pub(super) fn open(
        config: &Config,
        index: &Arc<Index>,
        (reload, store): (&Reload, &Arc<Store>),
        (documents, counting): (Option<Arc<dyn Documents>>, Option<&Counting>),
        metrics: &Metrics,
        health: &Health,
    ) -> anyhow::Result<Self> {
        let queue = deploying::open_queue_or_retry(config, metrics, health)?;
        let key_cache = deploying::load_key_cache(config, store)?;
        let index = Arc::clone(index);
        let (of_owner, all_sites) = (Arc::clone(&index), Arc::clone(&index));
        let projects_of: ProjectsOf = Arc::new(move |owner| of_owner.projects_of(owner));
        let find_site: FindSite =
            Arc::new(move |project| Some(Arc::clone(&index.served_by(project)?.site)));
        let reloader = Arc::clone(&reload.reloader);
        let unseen = Arc::new(Unseen {
            has_edges: config.edges.listen.is_some() || config.store.shared().is_some(),
            ..Unseen::default()
        });
        let announced = Arc::clone(&unseen);
        let announce: Announce = Arc::new(move |project| {
            // The update's record is completed at its end, not here.
            let _ = lock_reloader(&reloader).promoted(project);
            if announced.has_edges {
                announced.add(project);
            }
            !announced.has_edges
        });
        let stages = deploying::stages(config, &queue, store, projects_of, Some(announce))?;
        deploying::report_isolation(&stages, metrics)?;
        let served_sites: Arc<dyn ServedSites> = Arc::clone(&all_sites) as _;
        let domain_changes = DomainChanges::default();
        let served = ServedLog::new(&queue, &unseen, counting.map(Counting::writer));
        let read_files = {
            let (reloader, served) = (Arc::clone(&reload.reloader), served.clone());
            move || {
                let removed = lock_reloader(&reloader).rescan_sites(Removals::Guarded);
                served.scanned(removed);
            }
        };
        let changed: Changed = {
            let reloader = Arc::clone(&reload.reloader);
            let domain_changes = domain_changes.clone();
            Arc::new(move |project| {
                domain_changes.project(project);
                let one = std::slice::from_ref(project);
                let removed = lock_reloader(&reloader).rescan_records(one);
                served.scanned(removed);
            })
        };
        let site_admin = SiteAdmin::new(
            Arc::clone(store),
            config.service.clone(),
            config.private_hosts.clone(),
            served_sites,
            changed,
            Clock::System,
        )
        .owners_add_domains(config.admin.owners_add_domains)
        .proving(settings::rules_while_serving(config, store)?);
        let site_admin = match documents {
            Some(documents) => {
                site_admin.with_certificates(settings::certificate_trouble(documents))
            }
            None => site_admin,
        };
        let site_admin = match counting {
            Some(counting) => site_admin.with_numbers(counting.write_counts()),
            None => site_admin,
        };
        let site_admin = Arc::new(site_admin);
        let api = Api::new(
            config.admin.clone(),
            &config.service,
            Arc::clone(&key_cache),
            Arc::clone(&queue),
            Arc::clone(&find_site),
            Arc::clone(&site_admin),
            api::Metrics::new(metrics),
            Clock::System,
        );
        let stored = settings::unread_sites(config).without_files();
        let stored = stored.with_store(Arc::clone(store));
        let worker = Worker::new(
            deploying::worker_id()?,
            config.worker.clone(),
            Arc::new(stages),
            also_unserved(find_site, read_files, stored),
            deploying::presence(config),
            worker::Metrics::new(metrics),
            health,
        );
        Ok(Self {
            api: Arc::new(api),
            site_admin,
            domain_changes,
            worker: config.worker.embedded.then_some(worker),
            key_cache,
            queue,
            unseen,
            numbers: counting.map(Counting::writer),
        })
    }

    pub(super) fn served_log(&self) -> ServedLog {
        ServedLog::new(&self.queue, &self.unseen, self.numbers.clone())
    }

    pub(super) fn start(
        self,
        mut stopped: watch::Receiver<worker::Stop>,
        predecessor: Option<Predecessor>,
        ended: Sender<()>,
    ) -> anyhow::Result<WorkerThreads> {
        let keys = self.key_cache.watch().context("watch the admin keys")?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("start the worker")?;
        let worker = self.worker;
        let thread = panics::essential_thread("worker", move || {
            lower_priority();
            let Some(worker) = worker else { return };
            runtime.block_on(async {
                if let Some(predecessor) = predecessor {
                    tokio::select! {
                        () = predecessor.worker_ended() => {}
                        // The worker sees this too, and ends.
                        _ = stopped.changed() => stopped.mark_changed(),
                    }
                }
                worker.run(stopped).await;
            });
            // A wait for the predecessor may still block a thread.
            runtime.shutdown_background();
            drop(ended);
        });
        let thread = thread.context("start the worker")?;
        Ok(WorkerThreads {
            thread,
            _keys: keys,
        })
    }
}

impl ServedLog {
    fn new(queue: &Arc<Queue>, unseen: &Arc<Unseen>, numbers: Option<Arc<Writer>>) -> Self {
        Self {
            queue: Some(Arc::clone(queue)),
            unseen: Arc::clone(unseen),
            numbers,
        }
    }

    /// Records a release when every edge has it that follows this node (`fleet`), or another
    /// gateway of the same store. The thread is never joined: it can be stopped at any point.
    pub(super) fn follow(
        &self,
        fleet: Option<&Arc<Fleet>>,
        store: &Arc<Store>,
        reloader: &Arc<Mutex<Reloader>>,
    ) -> anyhow::Result<()> {
        let Some(queue) = self.queue.clone() else {
            return Ok(());
        };
        let (fleet, reloader) = (fleet.cloned(), Arc::clone(reloader));
        let name = deploying::worker_id()?;
        let unseen_time = match &**store {
            Store::Shared(_) => OTHERS_TIME,
            Store::Local(_) => UNSEEN_TIME,
        };
        if let (Some(fleet), Store::Shared(_)) = (&fleet, &**store) {
            let progress = Progress {
                store: Arc::clone(store),
                name: name.as_str().to_owned(),
                fleet: Arc::clone(fleet),
                reloader: Arc::clone(&reloader),
                queue: Arc::clone(&queue),
            };
            panics::essential_thread("edge-progress", move || progress.run())
                .context("start a thread")?;
        }
        let store = Arc::clone(store);
        let unseen = Arc::clone(&self.unseen);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .context("start a thread")?;
        let work = move || {
            let (_none, mut progress) = watch::channel(0);
            if let Some(fleet) = &fleet {
                progress = fleet.progress();
            }
            let mut told = WaitingProjects::new();
            loop {
                runtime.block_on(async {
                    if unseen.projects().is_empty() {
                        unseen.changed.notified().await;
                        return;
                    }
                    tokio::select! {
                        () = unseen.changed.notified() => {}
                        _asked = progress.changed() => {}
                        // An edge that goes away is not waited for, and reports nothing.
                        () = tokio::time::sleep(unseen_time) => {}
                    }
                });
                progress.borrow_and_update();
                let projects = unseen.projects().clone();
                let mut here = Vec::new();
                for project in projects {
                    let Some(fence) = lock_reloader(&reloader).served(&project) else {
                        unseen.projects().remove(&project);
                        continue;
                    };
                    let waits = fleet.as_ref().map(|fleet| fleet.waits_for(&project, fence));
                    if waits.flatten().is_none() {
                        here.push((project, fence));
                    }
                }
                let Some(waiting) = of_others(&store, name.as_str(), &here) else {
                    continue;
                };
                for (project, fence) in here {
                    if let Some(edge) = waiting.get(&project) {
                        if told.get(&project) != Some(edge) {
                            log::info!(target: "deploy", project:%; "the release of {project} is not visible everywhere yet: it waits for {edge}");
                        }
                        continue;
                    }
                    unseen.projects().remove(&project);
                    record(&queue, &project, fence);
                }
                told = waiting;
            }
        };
        panics::essential_thread("edge-visible", work).context("start a thread")?;
        Ok(())
    }

    /// Records nothing: an edge has no queue.
    pub(super) fn none() -> Self {
        Self {
            queue: None,
            unseen: Arc::default(),
            numbers: None,
        }
    }

    /// Cancels the updates of the sites that a scan of records has removed. After an error, the
    /// watch or the next comparison tries again.
    pub(super) fn scanned(&self, removed: Result<Vec<ProjectId>, ScanError>) {
        match removed {
            Ok(removed) => self.removed(&removed),
            Err(error) => {
                log::error!(target: "sites", "cannot read the site records, the earlier ones are still served: {}", chain(&error));
            }
        }
    }

    /// Cancels the waiting updates of sites that were removed, and removes their numbers.
    fn removed(&self, projects: &[ProjectId]) {
        for project in projects {
            if let Some(numbers) = &self.numbers {
                numbers.remove(project);
            }
        }
        let Some(queue) = &self.queue else { return };
        let now = Timestamp::of(Clock::System.now());
        for project in projects {
            match queue.cancel(project, SITE_REMOVED, now) {
                Ok(true) => {
                    log::info!(target: "deploy", project:%; "the update of {project} is cancelled: its site was removed");
                }
                Ok(false) => {}
                // If some were not cancelled, the worker that claims one finds no site and ends it.
                // The queue reports its own outages.
                Err(error) => {
                    if !error.is_outage() {
                        log::error!(target: "deploy", "cannot cancel the updates of removed sites: {}", chain(&error));
                    }
                    break;
                }
            }
        }
    }

    /// Records that a release of a project is served from now on.
    pub(super) fn served(&self, project: &ProjectId, fence: Fence) {
        let Some(queue) = &self.queue else { return };
        match self.unseen.has_edges {
            true => self.unseen.add(project),
            false => record(queue, project, fence),
        }
    }

    /// Records the served releases of all projects with a successful update that is not
    /// recorded as visible yet.
    pub(super) fn compare(&self, reloader: &Mutex<Reloader>) {
        let Some(queue) = &self.queue else { return };
        match queue.not_yet_visible() {
            Ok(projects) => {
                for project in projects {
                    let fence = lock_reloader(reloader).served(&project);
                    if let Some(fence) = fence {
                        self.served(&project, fence);
                    }
                }
            }
            Err(error) if error.is_outage() => {}
            Err(error) => {
                log::warn!(target: "deploy", "cannot list the updates that are not yet visible: {}", chain(&error));
            }
        }
    }
}

/// Returns a function that also finds a site that this process does not serve yet. Another process
/// may have written its record, and queued its update, a moment ago. `read_files` makes this
/// process serve what the files say; `stored` reads the store, and no files.
fn also_unserved(
    find_served: FindSite,
    read_files: impl Fn() + Send + Sync + 'static,
    stored: Sites,
) -> ReadSite {
    let stored = Mutex::new(stored);
    Arc::new(move |project| {
        let served = find_served(project).or_else(|| {
            read_files();
            find_served(project)
        });
        match served {
            Some(site) => Ok(Some(site)),
            None => {
                let mut stored = stored.lock().unwrap_or_else(PoisonError::into_inner);
                deploying::read_site(&mut stored, project)
            }
        }
    })
}

/// Returns which of these releases wait for edges of other gateways of the store; `None` if that
/// cannot be known now.
fn of_others(store: &Store, gateway: &str, here: &[(ProjectId, Fence)]) -> Option<WaitingProjects> {
    let Store::Shared(shared) = store else {
        return Some(WaitingProjects::new());
    };
    let projects: Vec<_> = here.iter().map(|(project, _)| project.clone()).collect();
    let waiting = shared.wait_for_edges(gateway, &projects);
    // The part `follow` reports that the database is away.
    waiting.ok()
}

fn record(queue: &Queue, project: &ProjectId, fence: Fence) {
    let now = Timestamp::of(Clock::System.now());
    if let Err(error) = queue.record_served(project, fence, now)
        && !error.is_outage()
    {
        // The next comparison tries again.
        log::warn!(target: "deploy", project:%; "cannot record the served release of {project}: {}", chain(&error));
    }
}

impl Unseen {
    fn add(&self, project: &ProjectId) {
        self.projects().insert(project.clone());
        self.changed.notify_one();
    }

    fn projects(&self) -> MutexGuard<'_, BTreeSet<ProjectId>> {
        // Every change is one insertion or removal.
        self.projects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorkerThreads {
    /// Waits until running builds have finished or went back to the queue.
    pub(super) fn end(self) {
        // A panic in it ends the process.
        let _joined = self.thread.join();
    }
}
