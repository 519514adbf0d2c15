//! Updates the index after changes of the store and the site records.
//!
//! A [`Reloader`] is the only writer of the index. It is notified of a change, reads only what
//! changed, compiles it and swaps it in:
//!
//! ```text
//! pointer of one project ──▶ its release ──▶ documents ──▶ one slot
//! site records           ──▶ added, changed and removed sites ──▶ their hosts
//! rescan                 ──▶ both, for every pointer that moved without a notification
//! ```
//!
//! If something is broken (a release with a missing file, a record with a mistake), the site
//! serves the same as before. The reason is logged once, and again only if it changes.
//!
//! All functions block, so they run on separate threads.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Instant, SystemTime};

use super::{
    Cache, CompileError, Documents, Files, Index, Listing, ListingError, LostHosts, Material,
    SkillFile, State, Stored,
};
use crate::clock::Clock;
use crate::discovery::{SUMMARY_PATH, Summary, UnreadableSummary, skill_path};
use crate::error::chain;
use crate::release::Inventory;
use crate::response::Encoding;
use crate::site::{Origin, ProjectId, Site, Visibility};
use crate::store::sites::{Changes, Removals, ScanError, Sites};
use crate::store::{Fence, Pointer, Promotion, ReadError, SeenShards, Store};
use crate::telemetry::{Metrics, Part, panics};

/// How many sites a thread compiles at least before it puts them into the index together.
const BATCH_MIN: usize = 512;
/// How often a thread puts sites into the index at most. Each time the tables of all hosts are
/// copied, so with a fixed length of batches, the start would take quadratic time.
const BATCHES_MAX: usize = 16;

/// The writer of the index.
#[derive(Debug)]
pub struct Reloader {
    index: Arc<Index>,
    store: Arc<Store>,
    sites: Sites,
    metrics: Arc<Metrics>,
    clock: Clock,
    loaded: Mutex<HashMap<ProjectId, Loaded>>,
    cache: Arc<Cache>,
    /// The directories of pointers as they were at the last comparison.
    seen: SeenShards,
    failing: Mutex<Failing>,
    observer: Option<Arc<dyn Observer>>,
}

/// Somebody who is told what the index has loaded, in the order in which it was loaded.
pub trait Observer: std::fmt::Debug + Send + Sync {
    /// A site has this record and this current release; `None` if it has no release, or its pointer
    /// cannot be read.
    fn loaded(&self, site: &Arc<Site>, current: Option<Promotion>);

    /// These projects have no site any more.
    fn removed(&self, projects: &[ProjectId]);

    /// Everything up to a revision of a shared store was loaded, and observed. `id` is
    /// the identity of the store.
    fn followed(&self, _id: &str, _revision: u64) {}
}

/// The projects whose current release cannot be served.
#[derive(Debug, Default)]
struct Failing {
    projects: BTreeSet<ProjectId>,
    /// Where this is reported.
    health: Option<Part>,
}

/// The result of the last load of a project.
#[derive(Clone, Debug, Default)]
struct Loaded {
    /// The fence of the served pointer.
    fence: Option<Fence>,
    /// The last error that was logged.
    error: Option<String>,
}

/// Why the current release of a site cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The store cannot read the release.
    #[error("read the release")]
    Read(#[from] ReadError),
    /// A required file is not in the inventory.
    #[error("the release has no {0}")]
    Missing(String),
    /// Its summary cannot be read.
    #[error("read the release")]
    Summary(#[from] UnreadableSummary),
    /// The description of its site cannot be read.
    #[error("read the release")]
    Listing(#[from] ListingError),
    /// Reading it panicked, with this text.
    #[error("read the release: a panic: {0}")]
    Panic(String),
    /// Its parts contradict each other.
    #[error("compile the release")]
    Compile(#[from] CompileError),
}

// === impl Failing ===

impl Failing {
    /// Records whether a project fails, and reports it. The report names one project: a damaged
    /// disk affects many, and the log names each.
    fn set(&mut self, project: &ProjectId, fails: bool) {
        let is_new = match fails {
            true => self.projects.insert(project.clone()),
            false => self.projects.remove(project),
        };
        let (true, Some(health)) = (is_new, &self.health) else {
            return;
        };
        let others = match self.projects.len() {
            0 | 1 => "",
            _ => " and others",
        };
        match self.projects.first() {
            // The log already has the cause for each project.
            Some(first) => {
                health.note(&format!(
                    "the current release of {first}{others} cannot be served, so an earlier \
                     release is served; `waypost store check` shows the reason, and --repair \
                     repairs the store"
                ));
            }
            None => health.recover(),
        }
    }
}

// === impl Reloader ===

impl Reloader {
    /// Makes the writer of an empty index.
    #[must_use]
    pub fn new(
        index: Arc<Index>,
        store: Arc<Store>,
        sites: Sites,
        metrics: Arc<Metrics>,
        clock: Clock,
    ) -> Self {
        Self {
            index,
            store,
            sites,
            metrics,
            clock,
            loaded: Mutex::default(),
            cache: Arc::default(),
            seen: SeenShards::default(),
            failing: Mutex::default(),
            observer: None,
        }
    }

    /// Notifies an observer about loaded sites.
    #[must_use]
    pub fn observed_by(self, observer: Option<Arc<dyn Observer>>) -> Self {
        Self { observer, ..self }
    }

    /// Reports to this part whether every site serves its current release.
    #[must_use]
    pub fn reporting_to(self, health: Part) -> Self {
        let failing = Failing {
            health: Some(health),
            ..Failing::default()
        };
        Self {
            failing: Mutex::new(failing),
            ..self
        }
    }

    /// Uses this cache for the files of all sites.
    #[must_use]
    pub fn with_cache(self, cache: Cache) -> Self {
        Self {
            cache: Arc::new(cache),
            ..self
        }
    }

    /// Reads all site records, and the current release of each site whose pointer has moved.
    ///
    /// The first call fills the index. Returns the projects that were removed.
    ///
    /// # Errors
    ///
    /// When the site records cannot be listed, or would remove too many sites. The releases are
    /// compared in spite of the error.
    pub fn rescan(&mut self, removals: Removals) -> Result<Vec<ProjectId>, ScanError> {
        if removals == Removals::Accepted {
            self.seen.clear();
        }
        let moved = self
            .store
            .changed_pointers(&mut self.seen, self.clock.now());
        self.cache.check_damage_again(&self.store);
        let changes = self.sites.scan(removals);
        let upserted = changes.iter().flat_map(|changes| &changes.upserted);
        let loaded: HashSet<*const Site> = upserted.map(Arc::as_ptr).collect();
        let scanned = self.scanned(changes);
        // A release that could not be read may be readable now.
        let failing = self.failing().projects.clone();
        let is_due = |site: &Arc<Site>| {
            let project = &site.project;
            !loaded.contains(&Arc::as_ptr(site))
                && (moved.has(project.as_str()) || failing.contains(project))
        };
        let sites: Vec<Arc<Site>> = match moved.is_empty() && failing.is_empty() {
            true => Vec::new(),
            false => self
                .sites
                .iter()
                .filter(|site| is_due(site))
                .cloned()
                .collect(),
        };
        self.in_parallel(&sites, |site| {
            let moved = match self.store.current(&site.project) {
                Ok(pointer) => {
                    pointer.map(|pointer| pointer.current.fence())
                        != self.loaded(&site.project).fence
                }
                // The load reports this error.
                Err(_) => true,
            };
            moved.then(|| self.load(site)).flatten()
        });
        if scanned.is_ok() {
            self.update_gauges();
        }
        scanned
    }

    /// Reads the files of site records, and returns the projects that were removed.
    ///
    /// # Errors
    ///
    /// As [`Reloader::rescan`].
    pub fn rescan_sites(&mut self, removals: Removals) -> Result<Vec<ProjectId>, ScanError> {
        let changes = self.sites.scan_files(removals);
        self.scanned(changes)
    }

    /// Reads the records of these projects in the store, and returns the projects that were
    /// removed.
    ///
    /// # Errors
    ///
    /// As [`Reloader::rescan`].
    pub fn rescan_records(&mut self, projects: &[ProjectId]) -> Result<Vec<ProjectId>, ScanError> {
        let changes = self.sites.scan_records(projects);
        self.scanned(changes)
    }

    fn scanned(&self, changes: Result<Changes, ScanError>) -> Result<Vec<ProjectId>, ScanError> {
        let changes = changes.inspect_err(|_| self.count_swap("rejected"))?;
        let rejected = i64::try_from(self.sites.rejected()).unwrap_or(i64::MAX);
        self.metrics.site_records_rejected.set(rejected);
        self.apply(&changes);
        Ok(changes.removed)
    }

    /// Reads the pointer of one project.
    ///
    /// Returns the fence of the release that is served now, if it differs from the previous one.
    pub fn promoted(&self, project: &ProjectId) -> Option<Fence> {
        let site = self.sites.get(project)?;
        let since = Instant::now();
        let before = self.served(project);
        if let Some(state) = self.load(site)
            && self.index.promote(project, state)
        {
            self.count_swap("swapped");
            let took_us = since.elapsed().as_micros();
            // A private site has no generation, because its pointer is not read.
            let generation = self.served(project).map(|fence| fence.generation);
            log::debug!(target: "index", project:%, generation, took_us; "serving the new release of {project}");
        }
        self.update_gauges();
        self.served(project).filter(|now| Some(*now) != before)
    }

    /// Reads the pointer of one project, if it is not the one that was read last. Returns the same
    /// as [`Reloader::promoted`].
    pub fn promoted_meanwhile(&self, project: &ProjectId) -> Option<Fence> {
        let current = self.store.current(project).ok()?;
        let fence = current.map(|pointer| pointer.current.fence());
        match fence == self.served(project) {
            true => None,
            false => self.promoted(project),
        }
    }

    /// Says that everything up to a revision of a shared store was loaded.
    pub fn followed(&self, id: &str, revision: u64) {
        if let Some(observer) = &self.observer {
            observer.followed(id, revision);
        }
    }

    /// Returns the fence of the release that a project serves.
    #[must_use]
    pub fn served(&self, project: &ProjectId) -> Option<Fence> {
        self.loaded(project).fence
    }

    /// Returns the reader of the site records.
    #[must_use]
    pub fn sites(&self) -> &Sites {
        &self.sites
    }

    fn apply(&self, changes: &Changes) {
        for diagnostic in &changes.diagnostics {
            log::log!(target: "sites", diagnostic.severity.level(), "{diagnostic}");
        }
        self.in_parallel(&changes.upserted, |site| {
            // A site is served with its new record even if its release cannot be read.
            let state = self.load(site).or_else(|| {
                self.index
                    .served_by(&site.project)
                    .map(|served| served.state.clone())
            });
            Some(state.unwrap_or(State::Unreleased))
        });
        self.index.remove_sites(&changes.removed);
        if let Some(observer) = &self.observer {
            observer.removed(&changes.removed);
        }
        let mut known = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        for project in &changes.removed {
            known.remove(project);
        }
        drop(known);
        for project in &changes.removed {
            self.set_failing(project, false);
        }
        if !changes.upserted.is_empty() || !changes.removed.is_empty() {
            let (sites, hosts) = self.index.size();
            let (changed, removed) = (changes.upserted.len(), changes.removed.len());
            log::info!(target: "index", sites, hosts, changed, removed; "site records loaded");
        }
    }

    /// Compiles sites on all cores, and puts them into the index in batches.
    ///
    /// The threads are its own: they wait for the disk most of the time, and would block the pool
    /// of rayon, which reads the site records. Sites for which `state` returns `None` stay as they
    /// are.
    fn in_parallel(&self, sites: &[Arc<Site>], state: impl Fn(&Arc<Site>) -> Option<State> + Sync) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = sites.len().div_ceil(threads).max(1);
        let lost = Mutex::new(LostHosts::default());
        std::thread::scope(|scope| {
            for share in sites.chunks(share) {
                scope.spawn(|| {
                    let length = share.len().div_ceil(BATCHES_MAX).max(BATCH_MIN);
                    for batch in share.chunks(length) {
                        let compiled: Vec<_> = batch
                            .iter()
                            .filter_map(|site| Some((Arc::clone(site), state(site)?)))
                            .collect();
                        (0..compiled.len()).for_each(|_| self.count_swap("swapped"));
                        let more = self.index.put_sites(compiled);
                        lost.lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .extend([more]);
                    }
                });
            }
        });
        self.index
            .drop_hosts(lost.into_inner().unwrap_or_else(PoisonError::into_inner));
    }

    /// Loads the current release of a site.
    ///
    /// If it cannot be served, the error is logged once, and `None` is returned.
    fn load(&self, site: &Arc<Site>) -> Option<State> {
        let mut earlier = None;
        let mut promotion = None;
        let (fence, loaded) = match self.store.current(&site.project) {
            // This is checked first, so a site that was made private is hidden even if the store
            // cannot be read.
            _ if site.visibility == Visibility::Private => (None, Ok(State::Private)),
            Ok(None) => (None, Ok(State::Unreleased)),
            Ok(Some(pointer)) => {
                promotion = Some(pointer.current);
                let fence = Some(pointer.current.fence());
                let loaded = self.compile_or_panic(site, &pointer);
                if loaded.is_err() && !self.serves(site) {
                    earlier = self.newest_whole(site, &pointer);
                }
                (fence, loaded)
            }
            Err(error) => (None, Err(error.into())),
        };
        if let Some(observer) = &self.observer {
            // Also if the release cannot be loaded here: another node may have it undamaged.
            observer.loaded(site, promotion);
        }
        let error = loaded.as_ref().err().map(|error| chain(error));
        let mut known = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known
            .get(&site.project)
            .and_then(|known| known.error.clone());
        if let Some(error) = error
            .as_ref()
            .filter(|error| before.as_ref() != Some(error))
        {
            let project = &site.project;
            log::error!(target: "index", project:%; "the current release of {project} cannot be served, the previous release stays: {error}");
        }
        if error.is_some() {
            self.count_swap("failed");
        }
        self.set_failing(&site.project, error.is_some());
        // Without a fence, the next rescan loads the release again.
        let fence = fence.filter(|_| loaded.is_ok());
        known.insert(site.project.clone(), Loaded { fence, error });
        loaded.ok().or(earlier)
    }

    fn set_failing(&self, project: &ProjectId, fails: bool) {
        let mut failing = self.failing();
        failing.set(project, fails);
        let count = i64::try_from(failing.projects.len()).unwrap_or(i64::MAX);
        self.metrics.index_failing.set(count);
    }

    fn failing(&self) -> MutexGuard<'_, Failing> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compiles a release; a panic is an error of this release.
    fn compile_or_panic(&self, site: &Site, pointer: &Pointer) -> Result<State, LoadError> {
        // The call only reads, so a panic leaves nothing half changed.
        let compiled = catch_unwind(AssertUnwindSafe(|| self.compile(site, pointer)));
        let panicked = |panic: Box<dyn std::any::Any + Send>| {
            Err(LoadError::Panic(panics::message(&*panic).to_owned()))
        };
        compiled.unwrap_or_else(panicked)
    }

    /// Returns whether something is served for a site: its release, or that it is private.
    fn serves(&self, site: &Site) -> bool {
        let served = self.index.served_by(&site.project);
        served.is_some_and(|served| !matches!(served.state, State::Unreleased))
    }

    /// Compiles the newest release of the history that can be served.
    fn newest_whole(&self, site: &Site, pointer: &Pointer) -> Option<State> {
        pointer.history.iter().find_map(|earlier| {
            let pointer = Pointer {
                current: *earlier,
                history: Vec::new(),
            };
            let state = self.compile_or_panic(site, &pointer).ok()?;
            let (project, release) = (&site.project, earlier.release);
            log::error!(target: "index", project:%; "release {release} of the history of {project} is served, because the current one cannot be served");
            Some(state)
        })
    }

    fn compile(&self, site: &Site, pointer: &Pointer) -> Result<State, LoadError> {
        let inventory = self.store.inventory(pointer.current.release)?;
        let summary = Summary::parse(&self.read(&inventory, SUMMARY_PATH)?)?;
        let mut skills = Vec::with_capacity(summary.skills.len());
        for listed in &summary.skills {
            let path = |encoding| skill_path(&listed.slug, encoding);
            let identity = self.read(&inventory, &path(Encoding::Identity))?;
            let mut file = SkillFile {
                identity,
                ..SkillFile::default()
            };
            for (coded, encoding) in file.coded.iter_mut().zip(Encoding::CODED) {
                let item = inventory.get(&path(encoding));
                *coded = item.map(|item| self.store.read(item)).transpose()?;
            }
            skills.push(file);
        }
        let material = Material {
            summary,
            skills,
            promoted_at: pointer.current.promoted_at,
            files: self.files(site, pointer, inventory)?,
        };
        let documents = Documents::compile(site, self.index.service(), &material)?;
        Ok(State::Public(Arc::new(documents)))
    }

    /// Returns the files of a release if the origin of its site is embedded, or its MCP server
    /// reads them.
    fn files(
        &self,
        site: &Site,
        pointer: &Pointer,
        inventory: Inventory,
    ) -> Result<Option<Arc<Files>>, LoadError> {
        if site.origin != Origin::Embedded && !site.mcp {
            return Ok(None);
        }
        let listing = match Listing::of(inventory, &self.store) {
            Ok(listing) => listing,
            Err(ListingError::NoSite) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let service = self.index.service();
        let default_host = site
            .default_host(service)
            .expect("the reader of site records checked the subdomain");
        let canonical = site.advertised_host(&default_host);
        Ok(Some(Arc::new(Files::new(
            Stored {
                store: Arc::clone(&self.store),
                cache: Arc::clone(&self.cache),
                release: pointer.current.release,
                project: site.project.clone(),
                owner: Arc::from(&*site.owner),
                older_files: OnceLock::new(),
            },
            listing,
            &service.site_url(canonical, &site.base_path),
            pointer.current.promoted_at,
        ))))
    }

    fn read(&self, inventory: &Inventory, path: &str) -> Result<bytes::Bytes, LoadError> {
        let item = inventory
            .get(path)
            .ok_or_else(|| LoadError::Missing(path.to_owned()))?;
        Ok(self.store.read(item)?)
    }

    fn loaded(&self, project: &ProjectId) -> Loaded {
        self.loaded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(project)
            .cloned()
            .unwrap_or_default()
    }

    fn count_swap(&self, outcome: &str) {
        self.metrics.index_swaps.with_label_values(&[outcome]).inc();
    }

    /// Sets the gauges: the index is up to date at this moment.
    fn update_gauges(&self) {
        let (sites, hosts) = self.index.size();
        self.metrics
            .index_sites
            .set(i64::try_from(sites).unwrap_or(i64::MAX));
        self.metrics
            .index_hosts
            .set(i64::try_from(hosts).unwrap_or(i64::MAX));
        // The value has a fraction, so that two comparisons within one second differ.
        let now = self.clock.now().duration_since(SystemTime::UNIX_EPOCH);
        self.metrics
            .index_fresh_at
            .set(now.unwrap_or_default().as_secs_f64());
    }
}
