//! Site records: which sites there are.
//!
//! Records are YAML files that somebody else writes, at any time, with any mistake. This
//! reader keeps two pictures apart: what is *written* and what is *served*. A scan reads
//! what changed on disk, works out the difference and returns it as [`Changes`]; whoever
//! serves applies them.
//!
//! Rules:
//!
//! * **R1** Every mistake is a finding with file, line and column, all at once; each is
//!   reported when it is first seen and not again by later scans.
//! * **R2** A record that cannot be read, or claims what another holds, leaves its project as
//!   it was: its last good state, or nothing when it never had one. A document so broken that
//!   not even its project can be read stands for every project its file no longer names.
//! * **R3** A project and a host have one holder, and the first one keeps it. At the first scan
//!   the order is that of file names and lines. Who was refused is tried again with each change.
//! * **R4** Changes are settled together (`claims.rs`): a host can move between sites, a record
//!   between files, in one scan.
//! * **R5** A scan that would remove more than a tenth of the sites, and at least ten, is refused
//!   as a whole until it is accepted: an emptied mount must not be an outage.
//!
//! A scan costs a listing: a file is read again only when its inode, size or times changed,
//! a document of it parsed again only when its text did.
//!
//! Limits: files lie directly in the directory and end in `.yaml` or `.yml`; hidden ones are
//! skipped, which also skips what Kubernetes and editors keep beside the files they swap.

mod claims;
mod plan;
mod record;
mod scan;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::clock::Clock;
use crate::diagnostic::Diagnostic;
use crate::site::{ProjectId, Service, Site};
use claims::{Claims, Conflict, Refused, Wanted};
use plan::Plan;
use record::RULE;
use scan::{Place, Read, Stamp};

pub use scan::ScanError;

/// A tenth of the sites may go at once without anybody being asked.
const REMOVALS_SHARE: usize = 10;
/// So few may always go.
const REMOVALS_FREE: usize = 10;

/// The sites of a platform, as far as their records are good.
#[derive(Debug)]
pub struct Sites {
    service: Service,
    path: PathBuf,
    clock: Clock,
    random: foldhash::quality::RandomState,
    files: BTreeMap<Arc<str>, File>,
    claims: Claims,
    /// Good records that others stand in the way of, to be tried again.
    refused: Vec<Wanted>,
}

/// What a scan changes.
#[derive(Debug, Default)]
pub struct Changes {
    /// Sites that are new or different.
    pub upserted: Vec<Arc<Site>>,
    /// Projects that are no more.
    pub removed: Vec<ProjectId>,
    /// What is wrong and was not reported before.
    pub findings: Vec<Diagnostic>,
}

/// Whether a scan may remove many sites at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removals {
    /// Not without being asked (R5).
    Guarded,
    /// An operator has said so.
    Accepted,
}

/// What is written in one file, as of the last scan.
#[derive(Debug, Default)]
struct File {
    /// `None` when it has to be read again whatever it looks like.
    stamp: Option<Stamp>,
    /// Why it could not be read, when it was reported.
    trouble: Option<String>,
    written: Vec<Written>,
}

/// One document of a file.
#[derive(Clone, Debug)]
struct Written {
    /// Of its text; 0 for what the text no longer says (R2).
    hash: u64,
    /// How many lines of the file come before it.
    lines_before: u32,
    /// Which of its own lines names the project.
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
    /// Makes an empty set of sites, to be filled by the first scan of `path`: a directory of
    /// records, or one file.
    #[must_use]
    pub fn new(service: Service, path: PathBuf, clock: Clock) -> Self {
        Self {
            claims: Claims::new(&service),
            service,
            path,
            clock,
            random: foldhash::quality::RandomState::default(),
            files: BTreeMap::new(),
            refused: Vec::new(),
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

    /// Returns every site that is served, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Site>> {
        self.claims.iter()
    }

    /// Looks at every file and takes in what changed.
    ///
    /// # Errors
    ///
    /// [`ScanError`] when the records cannot be listed, or when too many sites would be
    /// removed (R5). Nothing has changed then.
    pub fn scan(&mut self, removals: Removals) -> Result<Changes, ScanError> {
        let place = match Place::of(&self.path) {
            Err(ScanError::Missing { .. }) if removals == Removals::Accepted => {
                let vanished = self.files.keys().cloned().collect();
                return self.take_in(Vec::new(), vanished, removals);
            }
            place => place?,
        };
        let mut vanished: HashSet<Arc<str>> = self.files.keys().cloned().collect();
        let mut changed = Vec::new();
        for (name, stamp) in place.list()? {
            vanished.remove(&*name);
            let known = self.files.get(&*name);
            if known.is_none_or(|file| file.stamp != Some(stamp)) {
                changed.push((name, stamp));
            }
        }
        let read = place.read(changed);
        self.take_in(read, vanished.into_iter().collect(), removals)
    }

    /// Looks only at these files of the directory, given by name.
    ///
    /// # Errors
    ///
    /// As [`Sites::scan`].
    pub fn update(&mut self, names: &[&str], removals: Removals) -> Result<Changes, ScanError> {
        let place = Place::of(&self.path)?;
        let mut vanished = Vec::new();
        let mut changed = Vec::new();
        for name in names
            .iter()
            .copied()
            .filter(|name| scan::is_record_file(name))
        {
            match place.look_at(name)? {
                Some(stamp) => changed.push((name.into(), stamp)),
                None => vanished.extend(self.files.get_key_value(name).map(|(n, _)| Arc::clone(n))),
            }
        }
        let read = place.read(changed);
        self.take_in(read, vanished, removals)
    }

    fn take_in(
        &mut self,
        read: Vec<Read>,
        vanished: Vec<Arc<str>>,
        removals: Removals,
    ) -> Result<Changes, ScanError> {
        if read.is_empty() && vanished.is_empty() {
            return Ok(Changes::default());
        }
        let plan = Plan::new(self, read, vanished);
        let (removed, served) = (plan.gone.len(), self.len());
        let many = removed >= REMOVALS_FREE && removed * REMOVALS_SHARE > served;
        if many && removals == Removals::Guarded {
            return Err(ScanError::Removals { removed, served });
        }
        Ok(self.carry_out(plan))
    }

    fn carry_out(&mut self, plan: Plan) -> Changes {
        for (name, file) in plan.files {
            match file {
                Some(file) => self.files.insert(name, file),
                None => self.files.remove(&name),
            };
        }
        for (project, line) in &plan.moved {
            self.claims.moved(project, *line);
        }
        let settled = self.claims.settle(&plan.gone, plan.wanted);
        let mut findings = plan.findings;
        self.refused.clear();
        for Refused {
            mut wanted,
            conflict,
        } in plan.refused.into_iter().chain(settled.refused)
        {
            if let Some(places) = wanted.places.take() {
                findings.push(conflict.finding(&wanted, &places));
            }
            self.refused.push(wanted);
        }
        Changes {
            upserted: settled.upserted,
            removed: settled.removed,
            findings,
        }
    }

    fn hash(&self, text: &str) -> u64 {
        use std::hash::BuildHasher as _;
        self.random.hash_one(text).max(1)
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
    fn finding(&self, wanted: &Wanted, places: &record::Places) -> Diagnostic {
        let (message, (line, column)) = match self {
            Self::Project { holder } => (
                format!(
                    "project {} is defined in {}:{} already",
                    wanted.site.project, holder.file, holder.line
                ),
                places.project,
            ),
            Self::Host {
                which,
                host,
                project,
                holder,
            } => (
                format!(
                    "{host} is a host of project {project} already ({}:{})",
                    holder.file, holder.line
                ),
                match which.checked_sub(1) {
                    None => places.subdomain,
                    Some(nth) => places.domains[nth],
                },
            ),
        };
        Diagnostic::error(RULE, &wanted.holder.file, message).at(line, column, 0)
    }
}

#[cfg(test)]
mod tests;
