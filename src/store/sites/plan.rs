//! Computes the effect of changed files on the sites, without applying it.
//!
//! A plan is computed from the changed files and from the sites that are served. It is applied only
//! if R5 allows it. In unchanged files it reads only the records that were rejected before.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rayon::prelude::*;

use super::claims::{Claimant, Conflict, Holder, Rejected};
use super::record::{self, Document, Outcome, Places, RULE};
use super::scan::{self, Read, Text};
use super::{Content, File, RecordText, Sites};
use crate::diagnostic::Diagnostic;
use crate::site::{ProjectId, Site};
use crate::store::stamp::unchanged_before;

/// A change that is computed and not applied yet.
#[derive(Default)]
pub(super) struct Plan {
    /// Changed files; `None` for removed ones.
    pub(super) files: Vec<(Arc<str>, Option<File>)>,
    /// Served projects that no record names any more.
    pub(super) removed: Vec<ProjectId>,
    /// Records that must be served.
    pub(super) claimants: Vec<Claimant>,
    /// Records whose project belongs to another record.
    pub(super) rejected: Vec<Rejected>,
    /// Served records that are on another line now.
    pub(super) moved: Vec<(ProjectId, u32)>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// A plan that is being computed.
struct Planner<'s> {
    sites: &'s Sites,
    plan: Plan,
    /// The places of names in the records that were just read.
    places: HashMap<*const Site, Places>,
    /// The projects that each changed file names.
    named: HashMap<Arc<str>, HashSet<ProjectId>>,
    candidates: Vec<Candidate>,
}

/// A valid record that differs from the served site.
struct Candidate {
    /// Whether it may replace the served record of its own file. Only the first record of a
    /// project in a file may.
    is_successor: bool,
    claimant: Claimant,
}

// === impl Plan ===

impl Plan {
    /// Computes the effect of changed and removed files.
    pub(super) fn new(sites: &Sites, read: Vec<Read>, vanished: Vec<Arc<str>>) -> Self {
        let mut planner = Planner {
            sites,
            plan: Self::default(),
            places: HashMap::new(),
            named: HashMap::new(),
            candidates: Vec::new(),
        };
        let unchanged_before = unchanged_before(sites.clock.now());
        let vanished = vanished.into_iter().map(|name| (name, None));
        let mut files: Vec<_> = vanished.collect();
        for read in read {
            let name = Arc::clone(&read.name);
            files.push((name, Some(planner.read(read, unchanged_before))));
        }
        for (name, file) in &mut files {
            planner.collect(name, file.as_mut());
        }
        planner.propose_rejected_records();
        planner.choose();
        planner.find_removed();
        Self {
            files,
            ..planner.plan
        }
    }
}

// === impl Planner ===

impl Planner<'_> {
    /// Reads a changed file. If it cannot be read, its previous content stays in use.
    fn read(&mut self, read: Read, unchanged_before: i64) -> File {
        let Read {
            name,
            stamp,
            content,
        } = read;
        let before = self.sites.files.get(&name);
        // Two changes within one step of the clock look the same, so a file that has just changed
        // is read again at the next scan.
        let stamp = stamp.filter(|stamp| stamp.is_older_than(unchanged_before));
        match content {
            Ok(Text::File(text)) => File {
                stamp,
                error: None,
                written: self.read_documents(&name, &text),
            },
            Ok(Text::Stored(stored, hash)) => {
                let Sites {
                    service,
                    private_hosts,
                    proof,
                    ..
                } = self.sites;
                let read = record::read_stored(&name, &stored, service, private_hosts, *proof);
                let (outcome, diagnostics) = read;
                self.plan.diagnostics.extend(diagnostics);
                let document = Document {
                    lines_before: 0,
                    text: "",
                };
                File {
                    stamp: None,
                    error: None,
                    written: vec![self.written(&document, hash, outcome)],
                }
            }
            Err(error) => {
                if before.and_then(|file| file.error.as_ref()) != Some(&error) {
                    let diagnostic = Diagnostic::error(RULE, &name, &*error);
                    self.plan.diagnostics.push(diagnostic);
                }
                File {
                    stamp,
                    error: Some(error),
                    written: before.map_or_else(Vec::new, |file| file.written.clone()),
                }
            }
        }
    }

    /// Parses the documents of a file that it did not have before.
    fn read_documents(&mut self, name: &str, text: &str) -> Vec<RecordText> {
        let sites = self.sites;
        let before = sites.files.get(name).into_iter();
        let parsed: HashMap<u64, &RecordText> = before
            .flat_map(|file| &file.written)
            .map(|written| (written.hash, written))
            .collect();
        let documents = record::documents(text);
        // A single large file is parsed on all processors too.
        let in_parallel = documents.par_iter().with_min_len(scan::PARALLEL_MIN);
        let outcomes = in_parallel.map(|document| {
            let hash = sites.hash(document.text);
            let fresh = || record::read(name, *document, &sites.service, &sites.private_hosts);
            let before = parsed.get(&hash).map(|written| (*written).clone());
            (hash, before.ok_or_else(fresh))
        });
        let outcomes: Vec<_> = outcomes.collect();
        let pairs = documents.iter().zip(outcomes);
        pairs
            .map(|(document, (hash, outcome))| match outcome {
                Ok(before) => RecordText {
                    lines_before: document.lines_before,
                    ..before
                },
                Err((outcome, diagnostics)) => {
                    self.plan.diagnostics.extend(diagnostics);
                    self.written(document, hash, outcome)
                }
            })
            .collect()
    }

    fn written(&mut self, document: &Document<'_>, hash: u64, outcome: Outcome) -> RecordText {
        let lines_before = document.lines_before;
        let mut line = 1;
        let content = match outcome {
            Outcome::Empty => Content::Empty,
            Outcome::Broken(project) => Content::Broken(project),
            Outcome::Site(record) => {
                line = record.places.project.0 - lines_before;
                self.places.insert(Arc::as_ptr(&record.site), record.places);
                Content::Site(record.site)
            }
        };
        RecordText {
            hash,
            lines_before,
            line,
            content,
        }
    }

    /// Collects the projects that a changed file names, and its records that are to be served.
    fn collect(&mut self, name: &Arc<str>, file: Option<&mut File>) {
        let mut here = HashSet::new();
        if let Some(file) = file {
            self.keep_sites_without_name(name, file);
            for written in &file.written {
                let Some(project) = written.content.project() else {
                    continue;
                };
                let is_first = here.insert(project.clone());
                if let Content::Site(site) = &written.content {
                    let line = written.lines_before + written.line;
                    self.compare(name, line, site, is_first);
                }
            }
        }
        self.named.insert(Arc::clone(name), here);
    }

    /// R2: a document whose project cannot be read keeps the projects that the file no longer
    /// names.
    fn keep_sites_without_name(&self, name: &Arc<str>, file: &mut File) {
        let has_no_name = |written: &RecordText| matches!(written.content, Content::Broken(None));
        if !file.written.iter().any(has_no_name) {
            return;
        }
        let now = file.written.iter().filter_map(|w| w.content.project());
        let now: HashSet<&ProjectId> = now.collect();
        let before = self.sites.files.get(name).into_iter();
        let kept: Vec<RecordText> = before
            .flat_map(|file| &file.written)
            .filter_map(|written| {
                let project = written.content.project()?;
                let (_, holder) = self.sites.claims.get(project)?;
                (holder.file == *name && !now.contains(project)).then(|| RecordText {
                    hash: 0,
                    content: Content::Broken(Some(project.clone())),
                    ..*written
                })
            })
            .collect();
        file.written.extend(kept);
    }

    /// Makes a record a candidate, unless it is the served one.
    fn compare(&mut self, name: &Arc<str>, line: u32, site: &Arc<Site>, is_first: bool) {
        let served = self.sites.claims.get(&site.project);
        match served.filter(|(served, _)| is_first && Arc::ptr_eq(served, site)) {
            Some((_, holder)) if holder.line != line => {
                self.plan.moved.push((site.project.clone(), line));
            }
            Some(_) => {}
            None => {
                let holder = Holder {
                    file: Arc::clone(name),
                    line,
                };
                self.propose(site, holder, is_first);
            }
        }
    }

    /// R3: a record that was rejected before is a candidate again. In a changed file it was read
    /// already.
    fn propose_rejected_records(&mut self) {
        for before in &self.sites.rejected {
            if !self.named.contains_key(&before.holder.file) {
                // The served site may be its own last good state.
                let served = self.sites.claims.get(&before.site.project);
                let is_itself = served.is_some_and(|(_, holder)| *holder == before.holder);
                self.propose(&before.site, before.holder.clone(), is_itself);
            }
        }
    }

    fn propose(&mut self, site: &Arc<Site>, holder: Holder, is_successor: bool) {
        let places = self.places.remove(&Arc::as_ptr(site));
        self.candidates.push(Candidate {
            is_successor,
            claimant: Claimant {
                site: Arc::clone(site),
                holder,
                places,
            },
        });
    }

    /// Decides which candidate gets each project.
    fn choose(&mut self) {
        let mut candidates = std::mem::take(&mut self.candidates);
        // A project belongs to the operator's file, if there is one.
        candidates.sort_by(|one, other| {
            let (one, other) = (&one.claimant.holder, &other.claimant.holder);
            let order = one.is_stored().cmp(&other.is_stored());
            order.then_with(|| one.cmp(other))
        });
        let mut taken: HashMap<ProjectId, Holder> = HashMap::new();
        for candidate in candidates {
            let Candidate { claimant, .. } = &candidate;
            let project = claimant.site.project.clone();
            match self.rival(&candidate).or_else(|| taken.get(&project)) {
                Some(holder) => self.plan.rejected.push(Rejected {
                    conflict: Conflict::Project {
                        holder: holder.clone(),
                    },
                    claimant: candidate.claimant,
                }),
                None => {
                    self.displace(claimant);
                    taken.insert(project, claimant.holder.clone());
                    self.plan.claimants.push(candidate.claimant);
                }
            }
        }
        // A host belongs to the record of the store: the API accepts no host that a file has, so
        // the file named it later.
        let claimants = &mut self.plan.claimants;
        claimants.sort_by_key(|claimant| !claimant.holder.is_stored());
    }

    /// Rejects the served record of the store whose project a file has now.
    fn displace(&mut self, claimant: &Claimant) {
        let served = self.sites.claims.get(&claimant.site.project);
        let Some((site, holder)) = served.filter(|(_, holder)| holder.is_stored()) else {
            return;
        };
        if claimant.holder.is_stored() || self.named.contains_key(&holder.file) {
            return;
        }
        self.plan.rejected.push(Rejected {
            claimant: Claimant {
                site: Arc::clone(site),
                holder: holder.clone(),
                places: Some(Places::default()),
            },
            conflict: Conflict::Project {
                holder: claimant.holder.clone(),
            },
        });
    }

    /// Returns the other record that has the project of a candidate and still names it.
    fn rival(&self, candidate: &Candidate) -> Option<&Holder> {
        let Candidate {
            is_successor,
            claimant,
        } = candidate;
        let (_, holder) = self.sites.claims.get(&claimant.site.project)?;
        let now = self.named.get(&holder.file);
        let still_there = now.is_none_or(|here| here.contains(&claimant.site.project));
        let is_other = holder.file != claimant.holder.file || !is_successor;
        // The file of the operator wins over the store.
        let is_weaker = holder.is_stored() && !claimant.holder.is_stored();
        (still_there && is_other && !is_weaker).then_some(holder)
    }

    /// Finds served projects that no record names any more.
    fn find_removed(&mut self) {
        let claimed = self.plan.claimants.iter().map(|one| &one.site.project);
        let claimed: HashSet<&ProjectId> = claimed.collect();
        let mut removed = Vec::new();
        for (name, here) in &self.named {
            let before = self.sites.files.get(name).into_iter();
            let before = before.flat_map(|file| &file.written);
            for project in before.filter_map(|written| written.content.project()) {
                let served = self.sites.claims.get(project);
                let held_by_file = served.is_some_and(|(_, holder)| holder.file == *name);
                if held_by_file && !here.contains(project) && !claimed.contains(project) {
                    removed.push(project.clone());
                }
            }
        }
        removed.sort();
        removed.dedup();
        self.plan.removed = removed;
    }
}
