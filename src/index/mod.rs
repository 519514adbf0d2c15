//! The index: finds the response for a host and a path in memory.
//!
//! Everything that does not depend on the request is computed before it arrives: the release that a
//! site serves, the text of its documents on each host, and their compressed forms. A request needs
//! a lookup and a write.
//!
//! ```text
//!  host ─▶ shard ─▶ Slot ──(one pointer)──▶ Served ─▶ documents, packed
//!          changes   shared by all            one release of one site,
//!          with site  hosts of a site         replaced as a whole
//!          records
//! ```
//!
//! **Invariant:** a reader takes no lock and never waits. **Invariant:** one response comes from
//! one [`Served`]. **Invariant:** a promotion stores one pointer, however many hosts and sites
//! there are.
//!
//! A mutex excludes writers ([`reload`]) from each other. A new host of a site appears when its
//! slot is complete. A host that a site has lost is removed after all sites of the change are
//! stored, so a host that moves from one site to another is served at every moment.

mod compile;
mod files;
pub mod reload;
mod shard;

pub use compile::{CompileError, Documents, Material, SkillFile};
pub use files::{
    CACHE_BYTES_MAX, Cache, File, Files, Listing, ListingError, LiveFiles, Open, ReadFileError,
    Reading, Stored, Variant,
};

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use arc_swap::ArcSwap;

use crate::discovery::paths::{self, Document};
use crate::numbers::{Budget, Reader, SiteNumbers};
use crate::response::{Cors, Counted, Method, Outcome, Problem, RequestHeaders, Response, caching};
use crate::site::{Host, Origin, ProjectId, Service, Site, percent};
use crate::telemetry::panics;

use shard::{Change, Hosts};

/// `Vary` of every response that depends on `Accept-Encoding`, 404 included.
const VARY: &str = "Accept-Encoding";

/// All sites of a node, by host.
#[derive(Debug)]
pub struct Index {
    service: Service,
    hosts: Hosts,
    sites: Mutex<HashMap<ProjectId, Arc<Slot>>>,
    /// How often hosts were added or removed.
    generation: AtomicU64,
    errors: ErrorResponses,
    /// `None` if nothing is counted.
    budget: Option<Arc<Budget>>,
}

/// The entry of a site in the index. Each promotion replaces its content.
#[derive(Debug)]
struct Slot {
    served: ArcSwap<Served>,
    /// `None` if nothing is counted.
    numbers: Option<Arc<SiteNumbers>>,
}

/// A site with the release that it serves.
#[derive(Debug)]
pub struct Served {
    /// The site record.
    pub site: Arc<Site>,
    /// Its discovery documents.
    pub state: State,
    /// The counts for its owner; `None` if this site is not counted.
    pub numbers: Option<Arc<SiteNumbers>>,
}

/// Hosts that sites had before a change and no longer have after it.
#[derive(Debug, Default)]
pub struct LostHosts(Vec<(Host, Arc<Slot>)>);

/// The discovery state of a site.
#[derive(Clone, Debug)]
pub enum State {
    /// Nothing has been promoted yet.
    Unreleased,
    /// The site is private: discovery serves nothing.
    Private,
    /// The documents of its release.
    Public(Arc<Documents>),
}

/// Error responses, which are the same for all sites.
#[derive(Debug)]
struct ErrorResponses {
    absent: Response,
    unreleased: Response,
    method: Response,
    precondition: Response,
    unknown_host: Response,
    misdirected: Response,
}

// === impl Index ===

impl Index {
    /// Makes an index without sites.
    #[must_use]
    pub fn new(service: Service) -> Self {
        Self {
            service,
            hosts: Hosts::new(),
            sites: Mutex::default(),
            generation: AtomicU64::new(0),
            errors: ErrorResponses::new(),
            budget: None,
        }
    }

    /// Makes the index count requests, searches and votes of every site whose record allows it.
    #[must_use]
    pub fn counting(self) -> Self {
        Self {
            budget: Some(Arc::default()),
            ..self
        }
    }

    /// Returns the settings that all sites share.
    #[must_use]
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Calls `found` with the site that is served at `host` (in normal form); `None` if there is
    /// none.
    pub fn with<T>(&self, host: &str, found: impl FnOnce(&Arc<Served>) -> T) -> Option<T> {
        self.hosts.with(host, |slot| found(&slot.served.load()))
    }

    /// Returns the site that is served at `host`, to be held while a request is handled.
    #[must_use]
    pub fn served(&self, host: &str) -> Option<Arc<Served>> {
        self.with(host, Arc::clone)
    }

    /// Returns the response to a request for a discovery document.
    #[must_use]
    pub fn response(
        &self,
        served: &Served,
        host: &str,
        document: Document<'_>,
        headers: &RequestHeaders<'_>,
    ) -> Response {
        let documents = match &served.state {
            State::Public(documents) => documents,
            State::Unreleased => return self.errors.unreleased.clone(),
            State::Private => return self.errors.absent.clone(),
        };
        let Some(response) = documents.response(&served.site, host, document, headers.accepted())
        else {
            return self.errors.absent.clone();
        };
        match headers.method() {
            Method::GetOrHead => {}
            Method::Options => return Response::preflight(),
            Method::Other => return self.errors.method.clone(),
        }
        match response.evaluate(&headers.conditions) {
            Outcome::Send => response,
            Outcome::NotModified => response.not_modified(),
            Outcome::Failed => self.errors.precondition.clone(),
        }
    }

    /// Returns the response for a host that no site has: 404 over HTTP/1.1; 421 over HTTP/2,
    /// where a client may use a connection for another host (RFC 9110 §15.5.20).
    #[must_use]
    pub fn unknown_host(&self, is_http2: bool) -> Response {
        if is_http2 {
            self.errors.misdirected.clone()
        } else {
            self.errors.unknown_host.clone()
        }
    }

    /// Adds sites, or replaces them with all their hosts.
    ///
    /// A host that a site has lost still leads to this site until [`Index::drop_hosts`]. So a
    /// host that moves from one site to another is served at every moment.
    #[must_use = "hosts that a site has lost are to be dropped once all sites are in"]
    pub fn put_sites(&self, sites: impl IntoIterator<Item = (Arc<Site>, State)>) -> LostHosts {
        let mut slots = self.lock();
        let mut lost = LostHosts::default();
        let mut changes = Vec::new();
        for (site, state) in sites {
            let numbers = match slots.get(&site.project) {
                Some(slot) => slot.numbers.clone(),
                None => {
                    let new = |budget: &Arc<Budget>| SiteNumbers::new(Arc::clone(budget));
                    self.budget.as_ref().map(|budget| Arc::new(new(budget)))
                }
            };
            let served = Arc::new(Served {
                numbers: numbers.clone().filter(|_| site.numbers),
                site: Arc::clone(&site),
                state,
            });
            let hosts = self.hosts_of(&site);
            let slot = match slots.get(&site.project) {
                None => {
                    let slot = Arc::new(Slot {
                        served: ArcSwap::new(served),
                        numbers,
                    });
                    slots.insert(site.project.clone(), Arc::clone(&slot));
                    slot
                }
                Some(slot) => {
                    let before = self.hosts_of(&slot.served.load().site);
                    let lost_hosts = before.into_iter().filter(|host| !hosts.contains(host));
                    lost.0
                        .extend(lost_hosts.map(|host| (host, Arc::clone(slot))));
                    slot.served.store(served);
                    Arc::clone(slot)
                }
            };
            changes.extend(
                hosts
                    .iter()
                    .map(|host| Change::Put(host.as_str().into(), Arc::clone(&slot))),
            );
        }
        self.hosts.apply(changes);
        self.generation.fetch_add(1, Ordering::Release);
        lost
    }

    /// Removes the hosts that sites have lost, except hosts that another site has now.
    pub fn drop_hosts(&self, lost: LostHosts) {
        let _writing = self.lock();
        let changes = lost.0.into_iter();
        self.hosts
            .apply(changes.map(|(host, slot)| Change::Remove(host.as_str().into(), slot)));
    }

    /// Replaces the release that a site serves; its hosts stay. Returns whether the site exists.
    pub fn promote(&self, project: &ProjectId, state: State) -> bool {
        let slots = self.lock();
        let Some(slot) = slots.get(project) else {
            return false;
        };
        let before = slot.served.load();
        let served = Served {
            site: Arc::clone(&before.site),
            state,
            numbers: before.numbers.clone(),
        };
        slot.served.store(Arc::new(served));
        true
    }

    /// Removes sites with all their hosts.
    pub fn remove_sites<'p>(&self, projects: impl IntoIterator<Item = &'p ProjectId>) {
        let mut slots = self.lock();
        let removed = projects
            .into_iter()
            .filter_map(|project| slots.remove(project));
        let changes: Vec<_> = removed
            .flat_map(|slot| {
                let hosts = self.hosts_of(&slot.served.load().site);
                hosts
                    .into_iter()
                    .map(move |host| Change::Remove(host.as_str().into(), Arc::clone(&slot)))
            })
            .collect();
        self.hosts.apply(changes);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Returns a number that changes when sites are added, replaced or removed.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns the domains of all sites for which certificates are ordered, each with the owner of
    /// its site: the hosts that customers own and that lead here. It looks at every site.
    #[must_use]
    pub fn domains(&self) -> Vec<(Host, Box<str>)> {
        let all: Vec<_> = {
            let slots = self.lock();
            slots.values().map(|slot| slot.served.load_full()).collect()
        };
        let visible = all.iter().filter(|served| !served.is_hidden());
        visible
            .flat_map(|served| {
                let Site {
                    owner,
                    domains,
                    not_ordered,
                    ..
                } = &*served.site;
                let ordered = domains.iter().filter(|host| !not_ordered.contains(host));
                let owned = ordered.map(|host| (host.clone(), owner.clone()));
                owned.collect::<Vec<_>>()
            })
            .collect()
    }

    /// Returns the site of a project with the release that it serves; `None` if there is no site.
    #[must_use]
    pub fn served_by(&self, project: &ProjectId) -> Option<Arc<Served>> {
        self.lock().get(project).map(|slot| slot.served.load_full())
    }

    /// Returns the projects of an owner. It looks at every site.
    #[must_use]
    pub fn projects_of(&self, owner: &str) -> Vec<ProjectId> {
        let slots = self.lock();
        let sites = slots.values().map(|slot| slot.served.load());
        let owned = sites.filter(|served| *served.site.owner == *owner);
        owned.map(|served| served.site.project.clone()).collect()
    }

    /// Returns all sites, in no particular order.
    #[must_use]
    pub fn sites(&self) -> Vec<Arc<Site>> {
        let slots = self.lock();
        let sites = slots.values().map(|slot| slot.served.load());
        sites.map(|served| Arc::clone(&served.site)).collect()
    }

    /// Returns the sites for which something was counted. It looks at every site.
    #[must_use]
    pub fn counted(&self) -> Vec<(ProjectId, Arc<SiteNumbers>)> {
        let slots = self.lock();
        let counted = |(project, slot): (&ProjectId, &Arc<Slot>)| {
            let numbers = slot.numbers.as_ref()?;
            numbers
                .has_counts()
                .then(|| (project.clone(), Arc::clone(numbers)))
        };
        slots.iter().filter_map(counted).collect()
    }

    /// Counts sites and hosts.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        (self.lock().len(), self.hosts.len())
    }

    fn hosts_of(&self, site: &Site) -> Vec<Host> {
        let default = site
            .default_host(&self.service)
            .expect("the reader of site records checked the subdomain");
        std::iter::once(default)
            .chain(site.domains.iter().cloned())
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProjectId, Arc<Slot>>> {
        // Sites and hosts may contradict each other after a panic of a writer.
        self.sites
            .lock()
            .unwrap_or_else(|_poisoned| panics::end("index"))
    }
}

// === impl Served ===

impl Served {
    /// Counts a request with this response for the owner of the site: a `GET` that is answered with
    /// 200 or 304. For paths that need no decoding, nothing is allocated.
    pub fn count(&self, headers: &RequestHeaders<'_>, response: &Response) {
        let (Some(numbers), Some(counted)) = (&self.numbers, response.counted) else {
            return;
        };
        if headers.method != "GET" || !matches!(response.status, 200 | 304) {
            return;
        }
        let base = &self.site.base_path;
        let path = paths::normalise(headers.path);
        let below = base.strip(&path).unwrap_or(&path);
        let reader = Reader::of(headers.user_agent);
        let file = |document: Document<'_>| {
            numbers.file(document.pattern().unwrap_or_default(), reader);
        };
        match counted {
            Counted::Html => numbers.page(&percent::decode_or_keep(below), false, reader),
            Counted::Markdown => {
                let page = below.strip_suffix(".md").unwrap_or(below);
                let page = if page == "/index" { "/" } else { page };
                numbers.page(&percent::decode_or_keep(page), true, reader);
            }
            Counted::List => {
                // A list may be below `/.well-known` or a part of the site: only its name counts.
                numbers.file(&below[below.rfind('/').unwrap_or_default()..], reader);
            }
            Counted::Entry => file(Document::Entry),
            Counted::Manifest => file(Document::Manifest),
            Counted::Legacy => file(Document::Legacy),
            Counted::Card => file(Document::Card),
            // Its slug is the directory of the file.
            Counted::Skill => {
                if let Some(slug) = path.rsplit('/').nth(1) {
                    numbers.skill(slug, reader);
                }
            }
        }
    }

    /// Returns whether nothing of the site is served: it is private, and nothing here
    /// authenticates. Its hosts are treated as hosts that no site has.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        matches!(self.state, State::Private) && self.site.origin == Origin::Embedded
    }
}

// === impl LostHosts ===

impl Extend<Self> for LostHosts {
    fn extend<T: IntoIterator<Item = Self>>(&mut self, more: T) {
        self.0.extend(more.into_iter().flat_map(|lost| lost.0));
    }
}

// === impl ErrorResponses ===

impl ErrorResponses {
    fn new() -> Self {
        let absent = |detail: &str, policy| Response {
            vary: Some(VARY),
            cors: Cors::Open,
            ..Problem::new(404, detail).cached(policy).response()
        };
        let method = Problem::new(405, "this document can only be read").response();
        Self {
            absent: absent(
                "there is no such discovery document on this site",
                caching::ABSENT,
            ),
            unreleased: absent("this site has not been published yet", caching::NEVER),
            method: Response {
                allow: Some(crate::response::ALLOW_STATIC),
                cors: Cors::Open,
                ..method
            },
            precondition: Problem::new(
                412,
                "the document does not match the condition of the request",
            )
            .response(),
            unknown_host: Problem::new(404, "no site is served at this host")
                .cached(caching::ABSENT)
                .response(),
            misdirected: Problem::new(421, "no site is served at this host").response(),
        }
    }
}

#[cfg(test)]
mod tests;
