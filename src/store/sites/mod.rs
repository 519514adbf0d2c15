//! Site records: which sites exist.
//!
//! Records are YAML files that other people and programs write, at any time and with any mistake.
//! This module protects the served sites from such mistakes. A scan reads the files that have
//! changed, computes the difference, and returns it as [`Changes`] for the serving side.
//!
//! Rules:
//!
//! * **R1** Every mistake is a diagnostic with file, line and column. A scan reports all of them,
//!   and reports each only once, when it is new.
//! * **R2** A record that cannot be read, or that claims a project or host of another record,
//!   leaves its project as it was: in its last good state, or absent if it never had one. When a
//!   document is so broken that even its project cannot be read, the same holds for every project
//!   that its file no longer names.
//! * **R3** A project and a host belong to one record; the first record keeps them. The first
//!   scan takes the records in the order of file names and lines. A rejected record is
//!   tried again with each change.
//! * **R4** The changes of one scan are resolved together (`claims`): a host can move from one site
//!   to another, and a record from one file to another, in one scan.
//! * **R5** A scan that would remove more than a tenth of the sites, and at least ten, is rejected
//!   as a whole until an operator accepts it: an empty mount must not remove all sites.
//!
//! Records are also in the store, where the admin API and the command line write them. They are
//! read by the same rules. In addition:
//!
//! * **R6** A project that is in a file and in the store belongs to the file. A host that both name
//!   belongs to the store, because no change of the store may name a host that a file has.
//! * **R7** R5 counts only records in files: a record of the store is removed by a command.
//!
//! A scan lists the directory. A file is read again only when its inode, size or times have
//! changed, and a document of it is parsed again only when its text has changed. Records in the
//! store are read again only when their directory has changed.
//!
//! **Limits:** the files are directly in the directory and end in `.yaml` or `.yml`. Hidden files
//! are skipped, among them those that Kubernetes and editors create beside the real ones.

mod claims;
mod plan;
mod record;
mod scan;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use crate::clock::Clock;
use crate::diagnostic::Diagnostic;
use crate::error::chain;
use crate::site::{Host, PrivateHosts, ProjectId, Service, Site};
use crate::store::stamp::Stamp;
use crate::store::{ReadError, SeenShards, SiteRecord, Store};
use claims::{Claimant, Claims, Conflict, Rejected};
use plan::Plan;
use record::{Outcome, RULE};
use scan::{Read, RecordPath, Text};

pub use record::Proof;
pub use scan::ScanError;

/// R5: removing at most one of this many sites needs no operator.
const REMOVALS_SHARE: usize = 10;
/// R5: removing fewer sites than this needs no operator.
const REMOVALS_FREE: usize = 10;

/// What the names of records in the store begin with. No file has a name with a slash.
const STORED: &str = "store/";

/// The sites of a platform, read from their records.
#[derive(Debug)]
pub struct Sites {
    service: Service,
    private_hosts: PrivateHosts,
    path: PathBuf,
    /// Whether there are records in files.
    has_files: bool,
    /// The store with more records.
    store: Option<Arc<Store>>,
    /// The directories of the store as they were at the last scan.
    seen: SeenShards,
    proof: Proof,
    clock: Clock,
    random: foldhash::quality::RandomState,
    files: BTreeMap<Arc<str>, File>,
    /// How many files and records in `files` are broken.
    broken: usize,
    claims: Claims,
    /// Valid records that were rejected because another record has their project or host. They are
    /// tried again.
    rejected: Vec<Claimant>,
}

/// The difference that a scan has found.
#[derive(Debug, Default)]
pub struct Changes {
    /// New and changed sites.
    pub upserted: Vec<Arc<Site>>,
    /// Removed projects.
    pub removed: Vec<ProjectId>,
    /// Mistakes that were not reported before.
    pub diagnostics: Vec<Diagnostic>,
}

/// Whether a scan may remove many sites at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removals {
    /// No (R5).
    Guarded,
    /// Yes, an operator has accepted it.
    Accepted,
}

/// The content of a file at the last scan.
#[derive(Debug, Default)]
struct File {
    /// `None` when the file must be read again at the next scan.
    stamp: Option<Stamp>,
    /// Why it could not be read, if that was reported.
    error: Option<String>,
    written: Vec<RecordText>,
}

/// One document of a file.
#[derive(Clone, Debug)]
struct RecordText {
    /// The hash of its text; 0 for a record that is no longer in the text (R2).
    hash: u64,
    /// How many lines of the file are before it.
    lines_before: u32,
    /// The line of the document that names the project.
    line: u32,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Site(Arc<Site>),
    Broken(Option<ProjectId>),
    Empty,
}

// === impl Sites ===

impl Sites {
    /// Makes an empty set of sites. The first scan reads `path`: a directory of records, or one
    /// file. A record may name a private address as its origin only if `private_hosts` lists it.
    #[must_use]
    pub fn new(service: Service, private_hosts: PrivateHosts, path: PathBuf, clock: Clock) -> Self {
        Self {
            claims: Claims::new(&service),
            service,
            private_hosts,
            path,
            has_files: true,
            store: None,
            seen: SeenShards::default(),
            proof: Proof::NotRequired,
            clock,
            random: foldhash::quality::RandomState::default(),
            files: BTreeMap::new(),
            broken: 0,
            rejected: Vec::new(),
        }
    }

    /// Reads the records of a store too.
    #[must_use]
    pub fn with_store(self, store: Arc<Store>) -> Self {
        Self {
            store: Some(store),
            ..self
        }
    }

    /// Sets whether domains of records in the store are served only if their ownership is proven.
    #[must_use]
    pub fn with_proof(self, proof: Proof) -> Self {
        Self { proof, ..self }
    }

    /// Reads only the records of the store, and no files.
    #[must_use]
    pub fn without_files(self) -> Self {
        Self {
            has_files: false,
            ..self
        }
    }

    /// Returns where the records are.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns how many sites are served.
    #[must_use]
    pub fn len(&self) -> usize {
        self.claims.len()
    }

    /// Returns whether no site is served.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the site of a project.
    #[must_use]
    pub fn get(&self, project: &ProjectId) -> Option<&Arc<Site>> {
        self.claims.get(project).map(|(site, _)| site)
    }

    /// Returns whether the store could not give the record of a project at the last scan.
    #[must_use]
    pub fn is_unreadable(&self, project: &ProjectId) -> bool {
        let file = self.files.get(&stored_name(project));
        file.is_some_and(|file| file.error.is_some())
    }

    /// Returns the site that is served at a host.
    #[must_use]
    pub fn at(&self, host: &Host) -> Option<&Arc<Site>> {
        self.claims.at(host)
    }

    /// Returns all sites that are served, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Site>> {
        self.claims.iter()
    }

    /// Reads the files and the records of the store that have changed.
    ///
    /// # Errors
    ///
    /// [`ScanError`] when the records cannot be listed, or when too many sites would be removed
    /// (R5). The sites are unchanged then.
    pub fn scan(&mut self, removals: Removals) -> Result<Changes, ScanError> {
        let (mut read, mut vanished) = self.changed_files(removals)?;
        let (stored, removed) = self.changed_records(removals)?;
        read.extend(stored);
        vanished.extend(removed);
        let applied = self.apply(read, vanished, removals);
        if applied.is_err() {
            self.seen.clear();
        }
        applied
    }

    /// Reads the files that have changed.
    ///
    /// # Errors
    ///
    /// As [`Sites::scan`].
    pub fn scan_files(&mut self, removals: Removals) -> Result<Changes, ScanError> {
        let (read, vanished) = self.changed_files(removals)?;
        self.apply(read, vanished, removals)
    }

    /// Reads the records of these projects in the store. None of them is named twice.
    ///
    /// # Errors
    ///
    /// As [`Sites::scan`].
    pub fn scan_records(&mut self, projects: &[ProjectId]) -> Result<Changes, ScanError> {
        let Some(store) = &self.store else {
            return Ok(Changes::default());
        };
        let (mut read, mut vanished) = (Vec::new(), Vec::new());
        for project in projects {
            let name = stored_name(project);
            match self.read_of(Arc::clone(&name), store.site_record(project)) {
                Some(found) => read.push(found),
                None if self.files.contains_key(&name) => vanished.push(name),
                None => {}
            }
        }
        self.apply(read, vanished, Removals::Accepted)
    }

    /// Finds the files that were changed or deleted.
    fn changed_files(&self, removals: Removals) -> Result<(Vec<Read>, Vec<Arc<str>>), ScanError> {
        if !self.has_files {
            return Ok((Vec::new(), Vec::new()));
        }
        let known = self.files.keys().filter(|name| !is_stored(name));
        let mut vanished: HashSet<Arc<str>> = known.cloned().collect();
        let place = match RecordPath::of(&self.path) {
            Err(ScanError::Missing { .. }) if removals == Removals::Accepted => {
                return Ok((Vec::new(), vanished.into_iter().collect()));
            }
            place => place?,
        };
        let mut changed = Vec::new();
        for (name, stamp) in place.list()? {
            vanished.remove(&*name);
            let before = self.files.get(&*name);
            if before.is_none_or(|file| file.stamp != Some(stamp)) {
                changed.push((name, stamp));
            }
        }
        Ok((place.read(changed), vanished.into_iter().collect()))
    }

    /// Finds the records of the store that were changed or deleted. A scan that an operator has
    /// requested reads all of them.
    fn changed_records(
        &mut self,
        removals: Removals,
    ) -> Result<(Vec<Read>, Vec<Arc<str>>), ScanError> {
        let Some(store) = self.store.clone() else {
            return Ok((Vec::new(), Vec::new()));
        };
        if removals == Removals::Accepted {
            self.seen.clear();
        }
        let changed = store.changed_site_records(&mut self.seen, self.clock.now());
        if changed.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let projects = store
            .site_records_in(&changed)
            .inspect_err(|_| self.seen.clear())?;
        let known = self.files.keys().filter(|name| {
            let project = name.strip_prefix(STORED);
            project.is_some_and(|project| changed.has(project))
        });
        let mut vanished: HashSet<Arc<str>> = known.cloned().collect();
        for project in &projects {
            vanished.remove(&stored_name(project));
        }
        let in_parallel = projects.par_iter().with_min_len(scan::PARALLEL_MIN);
        let read: Vec<Read> = in_parallel
            .filter_map(|project| {
                let name = stored_name(project);
                let stored = store.site_record(project);
                let is_changed = |read: &Read| match &read.content {
                    Ok(Text::Stored(_, hash)) => !self.has(&read.name, *hash),
                    _ => true,
                };
                self.read_of(name, stored).filter(is_changed)
            })
            .collect();
        for failed in read.iter().filter(|read| read.content.is_err()) {
            self.seen
                .forget(failed.name.strip_prefix(STORED).unwrap_or_default());
        }
        Ok((read, vanished.into_iter().collect()))
    }

    /// Converts what the store returned for a record; `None` if there is none.
    fn read_of(
        &self,
        name: Arc<str>,
        stored: Result<Option<SiteRecord>, ReadError>,
    ) -> Option<Read> {
        let content = match stored {
            Ok(stored) => {
                let stored = stored?;
                let ownership = stored.ownership.iter();
                let ownership: Vec<_> = ownership
                    .map(|(host, ownership)| (host.as_str(), ownership))
                    .collect();
                let both = (&stored.record, ownership);
                let text = serde_json::to_string(&both).unwrap_or_default();
                let hash = self.hash(&text);
                Ok(Text::Stored(stored, hash))
            }
            Err(error) => Err(chain(&error)),
        };
        Some(Read {
            name,
            stamp: None,
            content,
        })
    }

    /// Returns whether a record of the store is known with this hash.
    fn has(&self, name: &str, hash: u64) -> bool {
        self.files.get(name).is_some_and(|file| {
            file.error.is_none() && matches!(&*file.written, [written] if written.hash == hash)
        })
    }

    /// Counts the records that are not served as they are written: files that cannot be read,
    /// records with mistakes, and records in conflict with others.
    #[must_use]
    pub fn rejected(&self) -> usize {
        self.broken + self.rejected.len()
    }

    fn apply(
        &mut self,
        read: Vec<Read>,
        vanished: Vec<Arc<str>>,
        removals: Removals,
    ) -> Result<Changes, ScanError> {
        if read.is_empty() && vanished.is_empty() {
            return Ok(Changes::default());
        }
        let plan = Plan::new(self, read, vanished);
        let by_file = |project: &&ProjectId| {
            let served = self.claims.get(project);
            served.is_some_and(|(_, holder)| !holder.is_stored())
        };
        let (removed, served) = (plan.removed.iter().filter(by_file).count(), self.len());
        let many = removed >= REMOVALS_FREE && removed * REMOVALS_SHARE > served;
        if many && removals == Removals::Guarded {
            return Err(ScanError::Removals { removed, served });
        }
        Ok(self.commit(plan))
    }

    fn commit(&mut self, plan: Plan) -> Changes {
        for (name, file) in plan.files {
            self.broken += file.as_ref().map_or(0, File::broken);
            let before = match file {
                Some(file) => self.files.insert(name, file),
                None => self.files.remove(&name),
            };
            self.broken -= before.as_ref().map_or(0, File::broken);
        }
        for (project, line) in &plan.moved {
            self.claims.moved(project, *line);
        }
        let resolved = self.claims.resolve(&plan.removed, plan.claimants);
        let mut diagnostics = plan.diagnostics;
        self.rejected.clear();
        for Rejected {
            mut claimant,
            conflict,
        } in plan.rejected.into_iter().chain(resolved.rejected)
        {
            if let Some(places) = claimant.places.take() {
                diagnostics.push(conflict.diagnostic(&claimant, &places));
            }
            self.rejected.push(claimant);
        }
        Changes {
            upserted: resolved.upserted,
            removed: resolved.removed,
            diagnostics,
        }
    }

    fn hash(&self, text: &str) -> u64 {
        use std::hash::BuildHasher as _;
        self.random.hash_one(text).max(1)
    }
}

// === impl File ===

impl File {
    /// Counts its records with mistakes, and the file itself if it cannot be read.
    fn broken(&self) -> usize {
        let records = self.written.iter();
        let records = records.filter(|record| matches!(record.content, Content::Broken(_)));
        records.count() + usize::from(self.error.is_some())
    }
}

// === impl Content ===

impl Content {
    fn project(&self) -> Option<&ProjectId> {
        match self {
            Self::Site(site) => Some(&site.project),
            Self::Broken(project) => project.as_ref(),
            Self::Empty => None,
        }
    }
}

// === impl Conflict ===

impl Conflict {
    fn diagnostic(&self, claimant: &Claimant, places: &record::Places) -> Diagnostic {
        let (message, (line, column)) = match self {
            Self::Project { holder } => (
                format!(
                    "project {} is defined in {holder} already",
                    claimant.site.project
                ),
                places.project,
            ),
            Self::Host {
                which,
                host,
                project,
                holder,
            } => (
                format!("{host} is a host of project {project} already ({holder})"),
                match which.checked_sub(1) {
                    None => places.subdomain,
                    Some(nth) => places.domains.get(nth).copied().unwrap_or_default(),
                },
            ),
        };
        Diagnostic::error(RULE, &claimant.holder.file, message).at(line, column, 0)
    }
}

/// Reads a record as if the store kept it, and returns its site.
///
/// # Errors
///
/// Every mistake of the record, as a sentence.
pub fn read_record(
    record: &SiteRecord,
    service: &Service,
    private_hosts: &PrivateHosts,
) -> Result<Arc<Site>, Vec<String>> {
    let (outcome, diagnostics) =
        record::read_stored("", record, service, private_hosts, Proof::NotRequired);
    match outcome {
        Outcome::Site(record) => Ok(record.site),
        _ => Err(diagnostics
            .into_iter()
            .filter(Diagnostic::is_error)
            .map(|diagnostic| match diagnostic.help {
                Some(help) => format!("{}; {help}", diagnostic.message),
                None => diagnostic.message.to_string(),
            })
            .collect()),
    }
}

/// Returns the name of a record of the store among the names of files.
fn stored_name(project: &ProjectId) -> Arc<str> {
    format!("{STORED}{project}").into()
}

fn is_stored(name: &str) -> bool {
    name.starts_with(STORED)
}

#[cfg(test)]
mod tests;
