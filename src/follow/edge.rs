//! The follower: a thread of an edge that keeps the cache equal to its source.
//!
//! It asks for changes after its position, applies them, and moves the position. A project whose
//! release cannot be fetched keeps its previous release and is retried. Until then the position
//! on disk does not advance; other projects are updated. A record that this edge cannot serve is
//! not written: the previous record stays, also after a restart.

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Config;
use super::cached::Space;
use super::client::{Changes, Client, FollowError};
use super::fetch::Fetcher;
use super::message::{Entry, Head, Message};
use super::position::Position;
use super::report::{Reason, Reporter};
use super::status::Status;
use super::store_revision::StoreRevision;
use super::upstream::{OfStore, Upstream};
use crate::error::chain;
use crate::jitter;
use crate::parallel;
use crate::site::{PrivateHosts, ProjectId, Service};
use crate::store::sites::read_record;
use crate::store::watch::Followed;
use crate::store::{Promotion, SiteRecord, Store};
use crate::telemetry::Metrics;

/// The file of the position, in the directory of the cache.
const POSITION: &str = "follow-position";
/// The file that the process which follows has locked.
const LOCK: &str = "follow-lock";
/// How long one request waits for changes.
pub(super) const WAIT: Duration = Duration::from_secs(30);
/// The wait after the first failure, and the longest one.
pub(super) const PAUSE: Duration = Duration::from_secs(1);
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The longest wait if a database is followed: its connections have pauses of their own.
const STORE_PAUSE_MAX: Duration = Duration::from_secs(2);
/// An edge with a filled cache begins at a random time of this length, so that many edges that
/// start together do not ask together.
const START: Duration = Duration::from_secs(2);
/// How many releases are fetched at once.
const RELEASES: usize = 4;
/// How many records are written together: the directories that changed are flushed once for all of
/// them, and all are in memory.
const BATCH: usize = 65_536;
/// How often the position is written if only the time of contact has changed, in seconds.
const CONTACT_SECONDS: u64 = 60;
/// How often the files of the cache are counted again.
const COUNT_INTERVAL: Duration = Duration::from_secs(3600);
/// F5: removing at most one of this many sites needs no operator.
pub(super) const REMOVALS_SHARE: usize = 10;
/// F5: removing fewer sites than this needs no operator.
pub(super) const REMOVALS_FREE: usize = 10;

/// What a follower needs.
#[derive(Debug)]
pub struct FollowerParts {
    /// Its settings.
    pub config: Config,
    /// The service: an edge serves the sites of its own one only.
    pub service: Service,
    /// The private addresses that servers of sites may have.
    pub private_hosts: PrivateHosts,
    /// The cache.
    pub store: Arc<Store>,
    /// The directory of the cache.
    pub directory: PathBuf,
    /// What it reports.
    pub status: Arc<Status>,
    /// The numbers of the process.
    pub metrics: Arc<Metrics>,
    /// Set by an operator who accepts that the next comparison removes many sites.
    pub accepts_removals: Arc<AtomicBool>,
    /// Receives a report after each write to the local copy. `None` unless a shared store is followed.
    pub observer: Option<Arc<dyn StoreObserver>>,
}

/// Receives reports about the revisions of a shared store that a follower writes.
pub trait StoreObserver: std::fmt::Debug + Send + Sync {
    /// The follower begins to write changes up to this revision. `id` is the identity of the store.
    fn begins(&self, id: &str, newest: u64);

    /// The follower has written this.
    fn followed(&self, followed: Followed);
}

/// Follows a source.
#[derive(Debug)]
pub struct Follower {
    parts: FollowerParts,
    client: Upstream,
    reporter: Reporter,
    space: Space,
    position: Option<Position>,
    /// The newest revision that the source has reported.
    latest: u64,
    /// The contact that is written in the file of the position.
    written: Option<Position>,
    /// Whether the last request failed, or there was none: then the next one does not wait, so that
    /// the edge soon reports that it follows.
    is_cut_off: bool,
    /// Why the last answer of the source could not be used, for the next report.
    refuses: Option<Reason>,
    /// How often everything was compared without another answer in between.
    comparisons: u32,
    /// Projects whose release could not be fetched, with the reason.
    waiting: BTreeMap<ProjectId, (Wanted, String)>,
    /// Projects whose record cannot be served here: the revision of the change, and the reason.
    refused: BTreeMap<ProjectId, (u64, String)>,
    /// When releases are tried again, and how long was waited.
    again: Option<(Instant, Duration)>,
    /// The writes that the next report contains, and the revision of the last report.
    unreported: Followed,
}

/// A release that a project should have.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// The revision of the change.
    revision: u64,
    promotion: Promotion,
}

// === impl Follower ===

impl Follower {
    /// Makes a follower. The cache shows whether it has ever followed.
    ///
    /// # Errors
    ///
    /// When the files of the cache cannot be counted, or the file of authorities cannot be used.
    pub fn open(parts: FollowerParts) -> Result<Self, FollowError> {
        let service = parts.service.domain.as_str();
        let client = Client::new(&parts.config, service).map_err(FollowError::File)?;
        Self::new(parts, Upstream::Node(client))
    }

    /// Makes a follower of a shared store.
    ///
    /// # Errors
    ///
    /// When the files of the cache cannot be counted.
    pub fn of_store(parts: FollowerParts, store: Arc<Store>) -> Result<Self, FollowError> {
        let service = parts.service.domain.to_string();
        Self::new(parts, Upstream::Store(OfStore { store, service }))
    }

    fn new(parts: FollowerParts, client: Upstream) -> Result<Self, FollowError> {
        let space = Space::new(&parts.store, parts.config.cache_bytes_max)?;
        let position = Position::read(&parts.directory.join(POSITION), &parts.config.url);
        if let Some(position) = &position {
            parts.status.filled();
            parts.status.contacted(position.contact);
            let revision = position.revision;
            parts.status.at(&position.identity.id, revision, revision);
        }
        if let (Some(observer), Some(position)) = (&parts.observer, &position) {
            // Before the first edge asks.
            let (_, newest) = position.of_store();
            observer.begins(&position.identity.id, newest);
        }
        parts.status.cache_has(space.used());
        Ok(Self {
            reporter: Reporter::new(&parts.metrics),
            parts,
            client,
            space,
            latest: 0,
            is_cut_off: true,
            refuses: None,
            comparisons: 0,
            written: position.clone(),
            position,
            waiting: BTreeMap::new(),
            refused: BTreeMap::new(),
            again: None,
            unreported: Followed {
                is_everything: true,
                ..Followed::default()
            },
        })
    }

    /// Follows until the process ends. It can be stopped at any point.
    pub fn run(mut self) {
        let _lock = self.lock();
        // Another process may have followed until now.
        let path = self.parts.directory.join(POSITION);
        self.position = Position::read(&path, &self.parts.config.url);
        self.written.clone_from(&self.position);
        if let (Some(observer), Some(position)) = (&self.parts.observer, &self.position) {
            let (id, (revision, newest)) = (position.identity.id.clone(), position.of_store());
            observer.begins(&id, newest);
            self.notify_observer(&id, revision);
        }
        let is_node = matches!(self.client, Upstream::Node(_));
        let pause_max = match is_node {
            true => PAUSE_MAX,
            false => STORE_PAUSE_MAX,
        };
        if self.position.is_some() && is_node {
            std::thread::sleep(jitter::part_of(START));
        }
        let mut pause = PAUSE;
        let mut counted = Instant::now();
        loop {
            match self.round() {
                Ok(()) => {
                    self.is_cut_off = false;
                    self.refuses = None;
                    self.report(None);
                    match self.comparisons {
                        0 | 1 => pause = PAUSE,
                        // The last one did not help.
                        _ => {
                            std::thread::sleep(jitter::pause(pause));
                            pause = (pause * 2).min(pause_max);
                        }
                    }
                }
                Err(error) => {
                    let cause = self.parts.status.count(&error);
                    self.is_cut_off = true;
                    if error.is_refusal() {
                        self.refuses = Reason::parse(error.reason());
                    }
                    self.report(Some(cause));
                    std::thread::sleep(jitter::pause(pause));
                    pause = (pause * 2).min(pause_max);
                }
            }
            if counted.elapsed() > COUNT_INTERVAL {
                counted = Instant::now();
                if let Err(error) = self.space.count(&self.parts.store) {
                    log::warn!(target: "follow", "cannot count the files of the cache: {}", chain(&error));
                }
            }
        }
    }

    /// Waits until no other process follows with this cache.
    fn lock(&self) -> Option<File> {
        let path = self.parts.directory.join(LOCK);
        let mut options = OpenOptions::new();
        let open = options.create(true).truncate(false).write(true).open(&path);
        let locked = open.and_then(|file| match file.try_lock() {
            Ok(()) => Ok(file),
            Err(_other) => {
                log::info!(target: "follow", "another process follows with this cache; this one waits");
                file.lock().map(|()| file)
            }
        });
        // A cache that cannot be written is reported at its first change.
        locked
            .inspect_err(
                |error| log::warn!(target: "follow", "cannot lock {}: {error}", path.display()),
            )
            .ok()
    }

    fn report(&self, cause: Option<String>) {
        let status = &self.parts.status;
        status.cache_has(self.space.used());
        let waiting = self.waiting.iter().next().map(|(project, (_, why))| {
            let others = self.waiting.len() - 1;
            format!("the release of {project} and of {others} others is not here yet: {why}")
        });
        let refused = self.refused.iter().next().map(|(project, (_, why))| {
            let others = self.refused.len() - 1;
            format!(
                "the record of {project} and of {others} others cannot be served here, and the \
                 record of before stays: {why}"
            )
        });
        status.refused_are(self.refused.len());
        status.report(self.waiting.len(), cause.or(waiting).or(refused));
        if let Some(position) = &self.position {
            let (revision, latest) = (self.complete(position), self.latest);
            status.at(&position.identity.id, revision, latest);
        }
    }

    /// Asks once, and applies the response.
    fn round(&mut self) -> Result<(), FollowError> {
        self.try_waiting();
        let Some(position) = self.position.clone() else {
            return self.compare();
        };
        let until = self
            .again
            .map(|(at, _)| at.saturating_duration_since(Instant::now()));
        let wait = match until {
            _ if self.is_cut_off => Duration::ZERO,
            Some(until) => until.clamp(Duration::from_secs(1), WAIT),
            None => WAIT,
        };
        let identity = &position.identity;
        let complete = self.complete(&position);
        let (waiting, refused) = (self.waiting.len(), self.refused.len());
        let mut report = self.reporter.report(waiting, refused, complete);
        report.refuses = self.refuses;
        match self.client.changes(&position, wait, &report)? {
            Changes::None => {
                self.comparisons = 0;
                self.contacted();
                self.keep(position)
            }
            Changes::Gone => self.compare(),
            Changes::Some(message) if message.head.identity != *identity => Err(FollowError::Older),
            Changes::Some(message) => {
                let Message { head, entries } = message;
                self.client.accept(&position, &head)?;
                self.begins(&head);
                self.comparisons = 0;
                self.latest = head.latest;
                self.apply(entries)?;
                self.contacted();
                let mut next = Position::of(&self.parts.config.url, head);
                next.source_revision = next.source_revision.max(position.source_revision);
                self.keep(next)
            }
        }
    }

    /// Compares everything with a snapshot.
    fn compare(&mut self) -> Result<(), FollowError> {
        let (message, bytes) = self.client.snapshot()?;
        let status = Arc::clone(&self.parts.status);
        status.fetched_bytes.inc_by(bytes);
        let Message { head, mut entries } = message;
        if let Some(position) = &self.position {
            self.client.accept(position, &head)?;
        }
        let named: HashSet<&ProjectId> = entries.iter().map(|(project, _)| project).collect();
        let mut known: HashSet<ProjectId> = self.parts.store.pointers()?.into_iter().collect();
        known.extend(self.parts.store.site_records()?);
        let sites = known.len();
        let mut removed = known;
        removed.retain(|project| !named.contains(project));
        let count = removed.len();
        if count >= REMOVALS_FREE
            && count * REMOVALS_SHARE > sites
            && !self.parts.accepts_removals.swap(false, Ordering::AcqRel)
        {
            return Err(FollowError::Removals {
                removed: count,
                sites,
            });
        }
        entries.extend(removed.into_iter().map(|project| {
            let entry = Entry {
                revision: head.revision,
                project: project.to_string(),
                record: None,
                current: None,
                ownership: BTreeMap::new(),
            };
            (project, entry)
        }));
        status.comparisons.inc();
        // What waited is in the snapshot, or was removed.
        self.waiting.clear();
        self.refused.clear();
        self.latest = head.latest;
        self.begins(&head);
        self.unreported.is_everything = true;
        self.apply(entries)?;
        let (revision, identity) = (head.revision, &head.identity.id);
        let ring = head.ring;
        log::info!(target: "follow", revision, identity:%, ring, sites, removed = count; "compared everything with the source");
        self.comparisons = self.comparisons.saturating_add(1);
        self.contacted();
        let position = Position::of(&self.parts.config.url, head);
        self.keep(position)?;
        status.filled();
        Ok(())
    }

    /// Writes records, removes projects that the source has removed, and fetches releases. An error
    /// means that records could not be written; releases that could not be fetched wait.
    fn apply(&mut self, entries: Vec<(ProjectId, Entry)>) -> Result<(), FollowError> {
        let store = Arc::clone(&self.parts.store);
        let now = self.parts.status.now();
        let mut wanted = Vec::new();
        let mut entries = entries.into_iter();
        while entries.len() > 0 {
            let batch: Vec<_> = entries.by_ref().take(BATCH).collect();
            let (service, hosts) = (&self.parts.service, &self.parts.private_hosts);
            let mut refused = Vec::new();
            let changed: Vec<_> = batch
                .iter()
                .filter_map(|(project, entry)| {
                    let (_, record) = changed_record(&store, project, entry, now)?;
                    let read = record.as_ref().map(|one| read_record(one, service, hosts));
                    if let Some(Err(why)) = read {
                        refused.push((project.clone(), (entry.revision, why.join("; "))));
                        return None;
                    }
                    Some((project.clone(), record))
                })
                .collect();
            for (project, entry) in &batch {
                // The source has no release of the new owner yet. The release of the former owner
                // must not be served with the new record.
                if entry.current.is_none() && has_another_owner(&store, project, entry) {
                    store.forget(project)?;
                }
            }
            store.replace_site_records(&changed)?;
            if self.parts.observer.is_some() && !self.unreported.is_everything {
                let records = changed.iter().map(|(project, _)| project.clone());
                self.unreported.records.extend(records);
            }
            for (project, _) in &batch {
                self.refused.remove(project);
            }
            for (project, (revision, why)) in refused {
                log::error!(target: "follow", project:%; "the record of {project} cannot be served here, and the record of before stays: {why}");
                self.refused.insert(project, (revision, why));
            }
            for (project, entry) in batch {
                self.waiting.remove(&project);
                match entry.current {
                    Some(promotion) => {
                        let revision = entry.revision;
                        wanted.push((
                            project,
                            Wanted {
                                revision,
                                promotion,
                            },
                        ));
                    }
                    None if entry.record.is_none() => {
                        store.forget(&project)?;
                    }
                    None => {}
                }
            }
        }
        self.fetch(wanted);
        Ok(())
    }

    /// Fetches the releases of these projects, several at once.
    fn fetch(&mut self, wanted: Vec<(ProjectId, Wanted)>) {
        let fetcher = Fetcher {
            client: &self.client,
            store: &self.parts.store,
            space: &self.space,
            status: &self.parts.status,
            object_bytes_max: self.parts.config.object_bytes_max,
        };
        let failed = parallel::map(&wanted, RELEASES, |(project, one)| {
            let error = fetch_one(&fetcher, project, one.promotion).err()?;
            let why = self.parts.status.count(&error);
            log::warn!(target: "follow", project:%; "the release of {project} stays as it is: {why}");
            Some(why)
        });
        let is_reported = self.parts.observer.is_some() && !self.unreported.is_everything;
        for ((project, one), failed) in wanted.into_iter().zip(failed) {
            match failed {
                Some(why) => {
                    self.waiting.insert(project, (one, why));
                }
                None if is_reported => {
                    self.unreported.pointers.insert(project);
                }
                None => {}
            }
        }
        if self.waiting.is_empty() {
            self.again = None;
        } else if self.again.is_none() {
            self.again = Some((Instant::now() + PAUSE, PAUSE));
        }
    }

    /// Tries again to fetch the releases that are due.
    fn try_waiting(&mut self) {
        let Some((at, pause)) = self.again else {
            return;
        };
        if Instant::now() < at {
            return;
        }
        let waiting = std::mem::take(&mut self.waiting);
        let wanted = waiting
            .into_iter()
            .map(|(project, (one, _))| (project, one));
        self.fetch(wanted.collect());
        if !self.waiting.is_empty() {
            let pause = (pause * 2).min(PAUSE_MAX);
            self.again = Some((Instant::now() + jitter::pause(pause), pause));
        }
        if let Some(position) = self.position.clone()
            && let Err(error) = self.keep(position)
        {
            // The next round reports it.
            self.parts.status.count(&error);
        }
        self.report(None);
    }

    fn contacted(&self) {
        self.parts.status.contacted(self.parts.status.now());
    }

    /// Moves the position. On disk it is before the first change that waits.
    fn keep(&mut self, mut position: Position) -> Result<(), FollowError> {
        let contact = self.parts.status.now();
        position.contact = contact;
        let mut kept = position.clone();
        // After a restart, what was refused is read and refused again, or taken.
        let refused = self.refused.values().map(|(revision, _)| *revision).min();
        let refused = refused.map_or(u64::MAX, |revision| revision.saturating_sub(1));
        kept.revision = self.complete(&position).min(refused);
        if kept.revision != position.revision {
            // The mark is of another change. Without one, the next process compares everything.
            kept.mark = None;
        }
        if let Some(store) = &mut kept.store {
            store.revision = self.complete_of_store(store);
        }
        self.client.has_followed(position.revision);
        self.position = Some(position);
        let store = kept.store.clone();
        let is_written = self.written.as_ref().is_some_and(|written| {
            written.identity == kept.identity
                && written.revision == kept.revision
                && written.mark == kept.mark
                && written.source_revision == kept.source_revision
                && written.store == kept.store
                && contact < written.contact.saturating_add(CONTACT_SECONDS)
        });
        if !is_written {
            let path = self.parts.directory.join(POSITION);
            kept.write(&path).map_err(FollowError::File)?;
            self.written = Some(kept);
        }
        if let Some(store) = store {
            self.notify_observer(&store.id, store.revision);
        }
        Ok(())
    }

    /// Returns the revision of the store up to which everything is written. It is never smaller than in
    /// the last report: while a release waits, its project keeps the release of that report.
    fn complete_of_store(&self, store: &StoreRevision) -> u64 {
        let waiting = self.waiting.values();
        let first = waiting.map(|(wanted, _)| wanted.revision).min();
        let complete = first.map_or(u64::MAX, |first| first.saturating_sub(1));
        let reported = match self.unreported.id == store.id {
            true => self.unreported.revision,
            false => 0,
        };
        store.revision.min(complete).max(reported)
    }

    /// Tells the observer that changes of a message are about to be written.
    fn begins(&mut self, head: &Head) {
        let (Some(observer), Some(store)) = (&self.parts.observer, &head.store) else {
            return;
        };
        observer.begins(&store.id, store.newest);
        if self.unreported.id != store.id || store.newest < self.unreported.revision {
            // The database has another history.
            self.unreported.id.clone_from(&store.id);
            self.unreported.revision = 0;
        }
    }

    /// Tells the observer what was written, and that everything up to a revision was.
    fn notify_observer(&mut self, id: &str, revision: u64) {
        let Some(observer) = &self.parts.observer else {
            return;
        };
        let nothing = Followed {
            id: id.to_owned(),
            revision,
            ..Followed::default()
        };
        if self.unreported == nothing {
            return;
        }
        let unreported = std::mem::replace(&mut self.unreported, nothing);
        observer.followed(Followed {
            id: id.to_owned(),
            revision,
            ..unreported
        });
    }

    /// Returns the revision up to which nothing waits.
    fn complete(&self, position: &Position) -> u64 {
        let waiting = self.waiting.values();
        let first = waiting.map(|(wanted, _)| wanted.revision).min();
        first.map_or(position.revision, |first| {
            position.revision.min(first.saturating_sub(1))
        })
    }
}

/// Returns the record of an entry, if the cache has another one.
fn changed_record(
    store: &Store,
    project: &ProjectId,
    entry: &Entry,
    now: u64,
) -> Option<(ProjectId, Option<SiteRecord>)> {
    let Some(record) = &entry.record else {
        return Some((project.clone(), None));
    };
    let known = store.site_record(project).ok().flatten();
    let is_known =
        known.is_some_and(|known| known.record == *record && known.ownership == entry.ownership);
    if is_known {
        return None;
    }
    let record = SiteRecord {
        project: project.clone(),
        changed_at: now,
        // A node sends only domains that it serves.
        ownership: entry.ownership.clone(),
        record: record.clone(),
    };
    Some((project.clone(), Some(record)))
}

/// Returns whether an entry gives a project of the cache to another owner.
fn has_another_owner(store: &Store, project: &ProjectId, entry: &Entry) -> bool {
    let known = store.site_record(project).ok().flatten();
    entry
        .record
        .as_ref()
        .zip(known)
        .is_some_and(|(record, known)| known.record.get("owner") != record.get("owner"))
}

/// Makes a release the current one of a project.
fn fetch_one(
    fetcher: &Fetcher<'_>,
    project: &ProjectId,
    promotion: Promotion,
) -> Result<(), FollowError> {
    let current = fetcher.store.current(project).ok().flatten();
    let has = current.is_some_and(|pointer| pointer.current == promotion)
        && fetcher.store.inventory(promotion.release).is_ok();
    if has {
        return Ok(());
    }
    fetcher.release(promotion.release, &|| {
        Ok(fetcher.store.follow(project, promotion)?)
    })
}
