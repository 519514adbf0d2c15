//! Working out what a change of files means for the sites, without making it.
//!
//! A plan is made of the files that changed and of what was served before, and is carried
//! out only when R5 has nothing against it. It never looks at records of files that did
//! not change, but for those that were refused before.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::claims::{Conflict, Holder, Refused, Wanted};
use super::record::{self, Document, Outcome, Places, RULE};
use super::scan::{self, Read};
use super::{Content, File, Sites, Written};
use crate::diagnostic::Diagnostic;
use crate::site::{ProjectId, Site};

/// A change that is worked out and not yet made.
#[derive(Default)]
pub(super) struct Plan {
    /// Files as they are written now; `None` for those that vanished.
    pub(super) files: Vec<(Arc<str>, Option<File>)>,
    /// Served projects that no record names any more.
    pub(super) gone: Vec<ProjectId>,
    /// Records that are to be served.
    pub(super) wanted: Vec<Wanted>,
    /// Records whose project is another's.
    pub(super) refused: Vec<Refused>,
    /// Served records that stand on another line now.
    pub(super) moved: Vec<(ProjectId, u32)>,
    pub(super) findings: Vec<Diagnostic>,
}

/// A plan in the making.
struct Planner<'s> {
    sites: &'s Sites,
    plan: Plan,
    /// Where the names of records stand that were read just now.
    places: HashMap<*const Site, Places>,
    /// The projects that each changed file names now.
    named: HashMap<Arc<str>, HashSet<ProjectId>>,
    candidates: Vec<Candidate>,
}

/// A good record that is not served as it is written.
struct Candidate {
    /// Whether it may follow on what its own file holds: the file's first record of its
    /// project may.
    is_successor: bool,
    wanted: Wanted,
}

// === impl Plan ===

impl Plan {
    /// Works out what it means that these files changed and those vanished.
    pub(super) fn new(sites: &Sites, read: Vec<Read>, vanished: Vec<Arc<str>>) -> Self {
        let mut planner = Planner {
            sites,
            plan: Self::default(),
            places: HashMap::new(),
            named: HashMap::new(),
            candidates: Vec::new(),
        };
        let settled_before = scan::settled_before(sites.clock.now());
        let vanished = vanished.into_iter().map(|name| (name, None));
        let mut files: Vec<_> = vanished.collect();
        for read in read {
            let name = Arc::clone(&read.name);
            files.push((name, Some(planner.read(read, settled_before))));
        }
        for (name, file) in &mut files {
            planner.look_through(name, file.as_mut());
        }
        planner.try_again();
        planner.choose();
        planner.find_gone();
        Self {
            files,
            ..planner.plan
        }
    }
}

// === impl Planner ===

impl Planner<'_> {
    /// Reads a file that changed. When it cannot be read, what was written before stands.
    fn read(&mut self, read: Read, settled_before: i64) -> File {
        let Read { name, stamp, text } = read;
        let known = self.sites.files.get(&name);
        // A file may change twice within one tick of its clock; a recent one is read again.
        let stamp = stamp.is_older_than(settled_before).then_some(stamp);
        match text {
            Ok(text) => File {
                stamp,
                trouble: None,
                written: self.read_documents(&name, &text),
            },
            Err(trouble) => {
                if known.and_then(|file| file.trouble.as_ref()) != Some(&trouble) {
                    let finding = Diagnostic::error(RULE, &name, &*trouble);
                    self.plan.findings.push(finding);
                }
                File {
                    stamp,
                    trouble: Some(trouble),
                    written: known.map_or_else(Vec::new, |file| file.written.clone()),
                }
            }
        }
    }

    /// Reads the documents of a file, except for those it already had.
    fn read_documents(&mut self, name: &str, text: &str) -> Vec<Written> {
        let sites = self.sites;
        let before = sites.files.get(name).into_iter();
        let known: HashMap<u64, &Written> = before
            .flat_map(|file| &file.written)
            .map(|written| (written.hash, written))
            .collect();
        let documents = record::documents(text);
        // One large file occupies all processors too.
        let outcomes = scan::in_parallel(&documents, |document| {
            let hash = sites.hash(document.text);
            let fresh = || record::read(name, *document, &sites.service);
            let known = known.get(&hash).map(|written| (*written).clone());
            (hash, known.ok_or_else(fresh))
        });
        let pairs = documents.iter().zip(outcomes);
        pairs
            .map(|(document, (hash, outcome))| match outcome {
                Ok(known) => Written {
                    lines_before: document.lines_before,
                    ..known
                },
                Err((outcome, findings)) => {
                    self.plan.findings.extend(findings);
                    self.written(document, hash, outcome)
                }
            })
            .collect()
    }

    fn written(&mut self, document: &Document<'_>, hash: u64, outcome: Outcome) -> Written {
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
        Written {
            hash,
            lines_before,
            line,
            content,
        }
    }

    /// Notes which projects a changed file names, and which of its records are to be served.
    fn look_through(&mut self, name: &Arc<str>, file: Option<&mut File>) {
        let mut here = HashSet::new();
        if let Some(file) = file {
            self.keep_unnamed(name, file);
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

    /// R2: a document that does not even tell its project stands for those that the file
    /// no longer names.
    fn keep_unnamed(&self, name: &Arc<str>, file: &mut File) {
        let is_nameless = |written: &Written| matches!(written.content, Content::Broken(None));
        if !file.written.iter().any(is_nameless) {
            return;
        }
        let now = file.written.iter().filter_map(|w| w.content.project());
        let now: HashSet<&ProjectId> = now.collect();
        let before = self.sites.files.get(name).into_iter();
        let kept: Vec<Written> = before
            .flat_map(|file| &file.written)
            .filter_map(|written| {
                let project = written.content.project()?;
                let (_, holder) = self.sites.claims.get(project)?;
                (holder.file == *name && !now.contains(project)).then(|| Written {
                    hash: 0,
                    content: Content::Broken(Some(project.clone())),
                    ..*written
                })
            })
            .collect();
        file.written.extend(kept);
    }

    /// Makes a candidate of a record, unless it is the one that is served.
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

    /// R3: who was refused before is a candidate again, if only by its file not changing.
    fn try_again(&mut self) {
        for before in &self.sites.refused {
            if !self.named.contains_key(&before.holder.file) {
                // What is served may be its own last good state.
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
            wanted: Wanted {
                site: Arc::clone(site),
                holder,
                places,
            },
        });
    }

    /// Settles who may have each project.
    fn choose(&mut self) {
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.sort_by(|one, other| one.wanted.holder.cmp(&other.wanted.holder));
        let mut taken: HashMap<ProjectId, Holder> = HashMap::new();
        for candidate in candidates {
            let Candidate { wanted, .. } = &candidate;
            let project = wanted.site.project.clone();
            match self.rival(&candidate).or_else(|| taken.get(&project)) {
                Some(holder) => self.plan.refused.push(Refused {
                    conflict: Conflict::Project {
                        holder: holder.clone(),
                    },
                    wanted: candidate.wanted,
                }),
                None => {
                    taken.insert(project, wanted.holder.clone());
                    self.plan.wanted.push(candidate.wanted);
                }
            }
        }
    }

    /// Returns who holds a candidate's project and still names it.
    fn rival(&self, candidate: &Candidate) -> Option<&Holder> {
        let Candidate {
            is_successor,
            wanted,
        } = candidate;
        let (_, holder) = self.sites.claims.get(&wanted.site.project)?;
        let now = self.named.get(&holder.file);
        let still_there = now.is_none_or(|here| here.contains(&wanted.site.project));
        let is_other = holder.file != wanted.holder.file || !is_successor;
        (still_there && is_other).then_some(holder)
    }

    /// Finds served projects that their files no longer name, and nobody else either.
    fn find_gone(&mut self) {
        let wanted = self.plan.wanted.iter().map(|w| &w.site.project);
        let wanted: HashSet<&ProjectId> = wanted.collect();
        let mut gone = Vec::new();
        for (name, here) in &self.named {
            let before = self.sites.files.get(name).into_iter();
            let before = before.flat_map(|file| &file.written);
            for project in before.filter_map(|written| written.content.project()) {
                let served = self.sites.claims.get(project);
                let held_here = served.is_some_and(|(_, holder)| holder.file == *name);
                if held_here && !here.contains(project) && !wanted.contains(project) {
                    gone.push(project.clone());
                }
            }
        }
        gone.sort();
        gone.dedup();
        self.plan.gone = gone;
    }
}
