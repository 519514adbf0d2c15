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
//!
//! Design section 4.

mod claims;
mod record;
mod scan;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::clock::Clock;
use crate::diagnostic::Diagnostic;
use crate::site::{ProjectId, Service, Site};
use claims::{Claims, Conflict, Holder, Refused, Wanted};
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

/// A change that is worked out and not yet made.
#[derive(Default)]
struct Plan {
    files: Vec<(Arc<str>, Option<File>)>,
    gone: Vec<ProjectId>,
    wanted: Vec<Wanted>,
    /// Records whose project is another's.
    refused: Vec<Refused>,
    /// Where served records stand now.
    moved: Vec<(ProjectId, u32)>,
    findings: Vec<Diagnostic>,
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
        let mut plan = Plan::default();
        plan.files
            .extend(vanished.into_iter().map(|name| (name, None)));
        let mut places = self.read_files(read, &mut plan);
        self.plan_sites(&mut plan, &mut places);
        let (removed, served) = (plan.gone.len(), self.len());
        let many = removed >= REMOVALS_FREE && removed * REMOVALS_SHARE > served;
        if many && removals == Removals::Guarded {
            return Err(ScanError::Removals { removed, served });
        }
        Ok(self.carry_out(plan))
    }

    /// Reads the documents that changed, all files together so that one large file is read
    /// by all processors too. Returns where the names of new records stand.
    fn read_files(&self, read: Vec<Read>, plan: &mut Plan) -> HashMap<*const Site, record::Places> {
        let mut places = HashMap::new();
        let settled_before = scan::settled_before(self.clock.now());
        for Read { name, stamp, text } in read {
            let known = self.files.get(&name);
            // A file may change twice within one tick of its clock; a recent one is read again.
            let stamp = stamp.is_older_than(settled_before).then_some(stamp);
            let text = match text {
                Ok(text) => text,
                Err(trouble) => {
                    let before = known.and_then(|file| file.trouble.as_ref());
                    if before != Some(&trouble) {
                        plan.findings
                            .push(Diagnostic::error(RULE, &name, &*trouble));
                    }
                    let file = File {
                        stamp,
                        trouble: Some(trouble),
                        written: known.map_or_else(Vec::new, |file| file.written.clone()),
                    };
                    plan.files.push((name, Some(file)));
                    continue;
                }
            };
            let known: HashMap<u64, &Written> = known
                .into_iter()
                .flat_map(|file| &file.written)
                .map(|written| (written.hash, written))
                .collect();
            let documents = record::documents(&text);
            let outcomes = scan::in_parallel(&documents, |document| {
                let hash = self.hash(document.text);
                match known.get(&hash) {
                    Some(written) => (hash, Err((*written).clone())),
                    None => (hash, Ok(record::read(&name, *document, &self.service))),
                }
            });
            let mut written = Vec::with_capacity(documents.len());
            for ((hash, outcome), document) in outcomes.into_iter().zip(&documents) {
                let lines_before = document.lines_before;
                let mut line = 1;
                let content = match outcome {
                    Err(unchanged) => {
                        line = unchanged.line;
                        unchanged.content
                    }
                    Ok((outcome, findings)) => {
                        plan.findings.extend(findings);
                        match outcome {
                            record::Outcome::Empty => Content::Empty,
                            record::Outcome::Broken(project) => Content::Broken(project),
                            record::Outcome::Site(record) => {
                                line = record.places.project.0 - lines_before;
                                places.insert(Arc::as_ptr(&record.site), record.places);
                                Content::Site(record.site)
                            }
                        }
                    }
                };
                written.push(Written {
                    hash,
                    lines_before,
                    line,
                    content,
                });
            }
            let file = File {
                stamp,
                trouble: None,
                written,
            };
            plan.files.push((name, Some(file)));
        }
        places
    }

    /// Works out which projects go and which records are to be served.
    fn plan_sites(&self, plan: &mut Plan, places: &mut HashMap<*const Site, record::Places>) {
        plan.files.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut named: HashMap<Arc<str>, HashSet<ProjectId>> = HashMap::new();
        let mut candidates = Vec::new();
        for (name, file) in &mut plan.files {
            let mut here = HashSet::new();
            if let Some(file) = file {
                self.keep_unnamed(name, file);
                for written in &file.written {
                    let Some(project) = written.content.project() else {
                        continue;
                    };
                    let is_first = here.insert(project.clone());
                    let Content::Site(site) = &written.content else {
                        continue;
                    };
                    let served = self.claims.get(project);
                    let line = written.lines_before + written.line;
                    if let Some((_, holder)) =
                        served.filter(|(served, _)| is_first && Arc::ptr_eq(served, site))
                    {
                        if holder.line != line {
                            plan.moved.push((project.clone(), line));
                        }
                        continue;
                    }
                    candidates.push((is_first, wanted(name, line, site, places)));
                }
            }
            named.insert(Arc::clone(name), here);
        }
        for before in &self.refused {
            let Holder { file, line } = &before.holder;
            if !named.contains_key(file) {
                // Its last good state may be what is served.
                let served = self.claims.get(&before.site.project);
                let is_itself = served.is_some_and(|(_, holder)| *holder == before.holder);
                candidates.push((is_itself, wanted(file, *line, &before.site, places)));
            }
        }
        candidates.sort_by(|(_, one), (_, other)| one.holder.cmp(&other.holder));

        let mut taken: HashMap<ProjectId, Holder> = HashMap::new();
        for (is_first, wanted) in candidates {
            let project = &wanted.site.project;
            let rival = self
                .claims
                .get(project)
                .map(|(_, holder)| holder)
                .filter(|holder| {
                    let still_there = named
                        .get(&holder.file)
                        .is_none_or(|here| here.contains(project));
                    still_there && (holder.file != wanted.holder.file || !is_first)
                });
            match rival.or_else(|| taken.get(project)) {
                Some(holder) => plan.refused.push(Refused {
                    conflict: Conflict::Project {
                        holder: holder.clone(),
                    },
                    wanted,
                }),
                None => {
                    taken.insert(project.clone(), wanted.holder.clone());
                    plan.wanted.push(wanted);
                }
            }
        }
        for name in named.keys() {
            let before = self
                .files
                .get(name)
                .into_iter()
                .flat_map(|file| &file.written);
            for project in before.filter_map(|written| written.content.project()) {
                let held_here = self
                    .claims
                    .get(project)
                    .is_some_and(|(_, holder)| holder.file == *name);
                if held_here && !named[name].contains(project) && !taken.contains_key(project) {
                    plan.gone.push(project.clone());
                }
            }
        }
        plan.gone.sort();
        plan.gone.dedup();
    }

    /// R2: a document that does not even tell its project stands for those that the file
    /// no longer names.
    fn keep_unnamed(&self, name: &Arc<str>, file: &mut File) {
        let is_nameless = |written: &Written| matches!(written.content, Content::Broken(None));
        if !file.written.iter().any(is_nameless) {
            return;
        }
        let now: HashSet<&ProjectId> = file
            .written
            .iter()
            .filter_map(|written| written.content.project())
            .collect();
        let before = self
            .files
            .get(name)
            .into_iter()
            .flat_map(|file| &file.written);
        let kept: Vec<Written> = before
            .filter_map(|written| {
                let project = written.content.project()?;
                let (_, holder) = self.claims.get(project)?;
                (holder.file == *name && !now.contains(project)).then(|| Written {
                    hash: 0,
                    lines_before: written.lines_before,
                    line: written.line,
                    content: Content::Broken(Some(project.clone())),
                })
            })
            .collect();
        file.written.extend(kept);
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

fn wanted(
    file: &Arc<str>,
    line: u32,
    site: &Arc<Site>,
    places: &mut HashMap<*const Site, record::Places>,
) -> Wanted {
    Wanted {
        site: Arc::clone(site),
        holder: Holder {
            file: Arc::clone(file),
            line,
        },
        places: places.remove(&Arc::as_ptr(site)),
    }
}

#[cfg(test)]
mod tests;
