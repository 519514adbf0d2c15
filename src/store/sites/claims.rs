//! Who holds which project and which host, and how a change of many records is settled.
//!
//! Two rules: a host and a project have one holder, and the first holder keeps it. Records
//! change together, though: when one reload moves a host from one site to another, neither
//! order of the two changes is the right one. So a change is settled as a whole:
//!
//! 1. What is gone gives up its hosts; so, for the moment, do all sites that change.
//! 2. Every changed site claims its new hosts, in the order of the files.
//! 3. One that cannot falls back to its last good state. Should another changed site have
//!    taken a host of that state meanwhile, that one has to fall back too.
//! 4. What falling back freed is offered once more to those that were refused.
//!
//! A site falls back at most once in step 3, so it ends; what was good before never
//! depends on what is wrong now.
//!
//! Hosts are kept as (slot, which of its hosts): eight bytes for each, whatever the name.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use super::record::Places;
use crate::site::{ProjectId, Service, Site};

/// Where a record stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Holder {
    pub(super) file: Arc<str>,
    pub(super) line: u32,
}

/// A record that is to be served.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) site: Arc<Site>,
    pub(super) holder: Holder,
    /// Where its names stand; `None` once its refusal was reported.
    pub(super) places: Option<Places>,
}

/// A record that is not served as it is written.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) wanted: Wanted,
    pub(super) conflict: Conflict,
}

/// What another record holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Conflict {
    Project {
        holder: Holder,
    },
    Host {
        which: usize,
        host: Box<str>,
        project: ProjectId,
        holder: Holder,
    },
}

/// What came of a change.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pub(super) upserted: Vec<Arc<Site>>,
    pub(super) removed: Vec<ProjectId>,
    pub(super) refused: Vec<Refused>,
}

/// The sites that are served, by project and by host.
#[derive(Debug)]
pub(super) struct Claims {
    domain: Box<str>,
    random: RandomState,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    projects: HashTable<u32>,
    hosts: HashTable<Claim>,
}

#[derive(Debug)]
struct Slot {
    site: Arc<Site>,
    holder: Holder,
}

/// One host of a slot's site: the default subdomain is 0, the domains follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    slot: u32,
    which: u32,
}

/// A site while a change is being settled.
struct Candidate {
    slot: u32,
    old: Option<Arc<Site>>,
    wanted: Wanted,
    refused: bool,
}

// === impl Claims ===

impl Claims {
    pub(super) fn new(service: &Service) -> Self {
        Self {
            domain: service.domain.as_str().into(),
            random: RandomState::default(),
            slots: Vec::new(),
            free: Vec::new(),
            projects: HashTable::new(),
            hosts: HashTable::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.projects.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Site>> {
        self.slots.iter().flatten().map(|slot| &slot.site)
    }

    pub(super) fn get(&self, project: &ProjectId) -> Option<(&Arc<Site>, &Holder)> {
        let slot = self.find(project)?;
        Some((&slot.site, &slot.holder))
    }

    /// Notes that a record moved within its file or to another one.
    pub(super) fn moved(&mut self, project: &ProjectId, line: u32) {
        if let Some(slot) = self.find_slot(project) {
            self.slot_mut(slot).holder.line = line;
        }
    }

    /// Carries out a change. `wanted` names each project at most once.
    pub(super) fn settle(&mut self, gone: &[ProjectId], wanted: Vec<Wanted>) -> Settled {
        let mut settled = Settled::default();
        for project in gone {
            if let Some(slot) = self.find_slot(project) {
                self.release(slot);
                self.remove(slot);
                settled.removed.push(project.clone());
            }
        }
        let mut candidates: Vec<Candidate> = wanted
            .into_iter()
            .map(|wanted| self.candidate(wanted))
            .collect();
        self.claim_in_turn(&mut candidates);
        self.offer_again(&mut candidates);
        for candidate in candidates {
            self.conclude(candidate, &mut settled);
        }
        settled
    }

    /// Step 1: a changed site gives up its hosts for the moment.
    fn candidate(&mut self, wanted: Wanted) -> Candidate {
        let found = self.find_slot(&wanted.site.project);
        let old = found.map(|slot| Arc::clone(&self.slot(slot).site));
        let slot = match found {
            Some(slot) => {
                self.release(slot);
                slot
            }
            None => self.insert(&wanted),
        };
        Candidate {
            slot,
            old,
            wanted,
            refused: false,
        }
    }

    /// Steps 2 and 3.
    fn claim_in_turn(&mut self, candidates: &mut [Candidate]) {
        let by_slot: HashMap<u32, usize> = (0..)
            .zip(candidates.iter())
            .map(|(nth, candidate)| (candidate.slot, nth))
            .collect();
        for nth in 0..candidates.len() {
            let Candidate { slot, wanted, .. } = &candidates[nth];
            if candidates[nth].refused {
                continue;
            }
            if self.conflict(*slot, &wanted.site).is_none() {
                self.claim(*slot, &Arc::clone(&wanted.site));
                continue;
            }
            let mut falling = vec![nth];
            while let Some(nth) = falling.pop() {
                let candidate = &mut candidates[nth];
                if std::mem::replace(&mut candidate.refused, true) {
                    continue;
                }
                let Some(old) = candidate.old.clone() else {
                    continue;
                };
                let slot = candidate.slot;
                while let Some((_, other)) = self.conflict(slot, &old) {
                    // Served sites never overlap: only a changed one can stand here.
                    self.release(other);
                    falling.extend(by_slot.get(&other));
                }
                self.claim(slot, &old);
            }
        }
    }

    /// Step 4.
    fn offer_again(&mut self, candidates: &mut [Candidate]) {
        let mut progress = true;
        while progress {
            progress = false;
            for candidate in candidates.iter_mut().filter(|c| c.refused) {
                if self
                    .conflict(candidate.slot, &candidate.wanted.site)
                    .is_none()
                {
                    self.release(candidate.slot);
                    self.claim(candidate.slot, &candidate.wanted.site);
                    candidate.refused = false;
                    progress = true;
                }
            }
        }
    }

    fn conclude(&mut self, candidate: Candidate, settled: &mut Settled) {
        let Candidate {
            slot,
            old,
            wanted,
            refused,
        } = candidate;
        self.slot_mut(slot).holder = wanted.holder.clone();
        if !refused {
            if old.as_ref() != Some(&wanted.site) {
                settled.upserted.push(wanted.site);
            }
            return;
        }
        let conflict = self.conflict(slot, &wanted.site);
        if old.is_none() {
            self.remove(slot);
        }
        if let Some((which, other)) = conflict {
            let other = self.slot(other);
            let conflict = Conflict::Host {
                which,
                host: host_of(&wanted.site, which, &self.domain).into(),
                project: other.site.project.clone(),
                holder: other.holder.clone(),
            };
            settled.refused.push(Refused { wanted, conflict });
        }
    }

    fn find(&self, project: &ProjectId) -> Option<&Slot> {
        self.find_slot(project).map(|slot| self.slot(slot))
    }

    fn find_slot(&self, project: &ProjectId) -> Option<u32> {
        let hash = self.random.hash_one(project.as_str());
        self.projects
            .find(hash, |slot| self.slot(*slot).site.project == *project)
            .copied()
    }

    fn slot(&self, slot: u32) -> &Slot {
        self.slots[slot as usize]
            .as_ref()
            .expect("both maps name only taken slots")
    }

    fn slot_mut(&mut self, slot: u32) -> &mut Slot {
        self.slots[slot as usize]
            .as_mut()
            .expect("both maps name only taken slots")
    }

    /// Makes a slot for a project, without any host.
    fn insert(&mut self, wanted: &Wanted) -> u32 {
        let taken = Slot {
            site: Arc::clone(&wanted.site),
            holder: wanted.holder.clone(),
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(taken);
                slot
            }
            None => {
                self.slots.push(Some(taken));
                u32::try_from(self.slots.len() - 1).expect("fewer sites than memory for them")
            }
        };
        let Self {
            projects,
            slots,
            random,
            ..
        } = self;
        let hash = random.hash_one(wanted.site.project.as_str());
        projects.insert_unique(hash, slot, |slot| {
            let site = slots[*slot as usize].as_ref().map(|slot| &slot.site);
            random.hash_one(site.map_or("", |site| site.project.as_str()))
        });
        slot
    }

    /// Gives a slot back whose hosts are released.
    fn remove(&mut self, slot: u32) {
        let hash = self.random.hash_one(self.slot(slot).site.project.as_str());
        if let Ok(found) = self.projects.find_entry(hash, |found| *found == slot) {
            found.remove();
        }
        self.slots[slot as usize] = None;
        self.free.push(slot);
    }

    /// Returns the first host of `site` that another slot than `slot` holds, and which.
    fn conflict(&self, slot: u32, site: &Site) -> Option<(usize, u32)> {
        (0..=site.domains.len()).find_map(|which| {
            let host = host_of(site, which, &self.domain);
            let hash = self.random.hash_one(&*host);
            let found = self.hosts.find(hash, |claim| {
                *host_of(
                    &self.slot(claim.slot).site,
                    claim.which as usize,
                    &self.domain,
                ) == *host
            })?;
            (found.slot != slot).then_some((which, found.slot))
        })
    }

    /// Gives a slot its site and all of the site's hosts, which are free.
    fn claim(&mut self, slot: u32, site: &Arc<Site>) {
        self.slot_mut(slot).site = Arc::clone(site);
        let Self {
            hosts,
            slots,
            random,
            domain,
            ..
        } = self;
        for which in 0..=site.domains.len() {
            let hash = random.hash_one(&*host_of(site, which, domain));
            let claim = Claim {
                slot,
                which: u32::try_from(which).expect("a record has few domains"),
            };
            hosts.insert_unique(hash, claim, |claim| {
                let found = slots[claim.slot as usize].as_ref();
                let host = found.map(|found| host_of(&found.site, claim.which as usize, domain));
                random.hash_one(host.as_deref().unwrap_or_default())
            });
        }
    }

    /// Takes all hosts from a slot.
    fn release(&mut self, slot: u32) {
        let site = Arc::clone(&self.slot(slot).site);
        for which in 0..=site.domains.len() {
            let hash = self.random.hash_one(&*host_of(&site, which, &self.domain));
            let is_ours = |claim: &Claim| claim.slot == slot && claim.which as usize == which;
            if let Ok(found) = self.hosts.find_entry(hash, is_ours) {
                found.remove();
            }
        }
    }
}

/// Returns one host of a site: the default subdomain is 0, the domains follow.
fn host_of<'s>(site: &'s Site, which: usize, domain: &str) -> Cow<'s, str> {
    match which.checked_sub(1) {
        None => Cow::Owned(format!("{}.{domain}", site.subdomain)),
        Some(nth) => Cow::Borrowed(site.domains[nth].as_str()),
    }
}
