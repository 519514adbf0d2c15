//! Records which record has which project and host, and resolves a change of many records.
//!
//! A host and a project belong to one record, and the first record keeps them. But records change
//! together: when one scan moves a host from one site to another, neither order of the two changes
//! is right. So all changes of a scan are resolved together:
//!
//! 1. Removed sites release their hosts. Changed sites release theirs for the moment.
//! 2. Every changed site claims its new hosts, in the order of the files.
//! 3. A site that cannot claim all of them falls back to its last good state. If another changed
//!    site has claimed a host of that state, that site must fall back too.
//! 4. Hosts that became free by falling back are offered to the rejected sites once more.
//!
//! In step 3 a site falls back at most once, so the step ends. A site that was served before the
//! change is served after it, even if the change contains mistakes.
//!
//! A host is stored as a slot and the number of the host in the slot's site: eight bytes, however
//! long the name is. A change touches only the sites in it: one record among 100,000 sites takes
//! 7 ms, reading it included (a debug build). Rebuilding both maps from all records would be less
//! code, but for a million hosts it took three to five seconds with each change (a release build,
//! both on two busy processors).

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use super::is_stored;
use super::record::Places;
use crate::site::{Host, ProjectId, Service, Site};

/// The place of a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Holder {
    pub(super) file: Arc<str>,
    pub(super) line: u32,
}

// === impl Holder ===

impl Holder {
    /// Returns whether the record is in the store, and not in a file of the operator.
    pub(super) fn is_stored(&self) -> bool {
        is_stored(&self.file)
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.is_stored() {
            true => f.write_str("the API"),
            false => write!(f, "{}:{}", self.file, self.line),
        }
    }
}

/// A valid record that must be served.
#[derive(Debug)]
pub(super) struct Claimant {
    pub(super) site: Arc<Site>,
    pub(super) holder: Holder,
    /// The places of its names; `None` once its rejection was reported.
    pub(super) places: Option<Places>,
}

/// A record that is not served as it is written.
#[derive(Debug)]
pub(super) struct Rejected {
    pub(super) claimant: Claimant,
    pub(super) conflict: Conflict,
}

/// The project or host that another record has.
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

/// The result of a change.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    pub(super) upserted: Vec<Arc<Site>>,
    pub(super) removed: Vec<ProjectId>,
    pub(super) rejected: Vec<Rejected>,
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

/// One host of the site in a slot: 0 is the default subdomain, the domains follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    slot: u32,
    which: u32,
}

/// A changed site while a change is being resolved.
struct Candidate {
    slot: u32,
    old: Option<Arc<Site>>,
    claimant: Claimant,
    rejected: bool,
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

    /// Returns the site that has a host.
    pub(super) fn at(&self, host: &Host) -> Option<&Arc<Site>> {
        let hash = self.random.hash_one(host.as_str());
        let claim = self.hosts.find(hash, |claim| {
            let site = &self.slot(claim.slot).site;
            *host_of(site, claim.which as usize, &self.domain) == *host.as_str()
        })?;
        Some(&self.slot(claim.slot).site)
    }

    /// Records that a record is on another line now.
    pub(super) fn moved(&mut self, project: &ProjectId, line: u32) {
        if let Some(slot) = self.find_slot(project) {
            self.slot_mut(slot).holder.line = line;
        }
    }

    /// Applies a change. `claimants` names each project at most once.
    pub(super) fn resolve(
        &mut self,
        unclaimed: &[ProjectId],
        claimants: Vec<Claimant>,
    ) -> Resolved {
        let mut resolved = Resolved::default();
        for project in unclaimed {
            if let Some(slot) = self.find_slot(project) {
                self.release(slot);
                self.remove(slot);
                resolved.removed.push(project.clone());
            }
        }
        let mut candidates: Vec<Candidate> = claimants
            .into_iter()
            .map(|claimant| self.candidate(claimant))
            .collect();
        self.claim_in_order(&mut candidates);
        self.offer_again(&mut candidates);
        for candidate in candidates {
            self.conclude(candidate, &mut resolved);
        }
        resolved
    }

    /// Step 1: releases the hosts of a changed site.
    fn candidate(&mut self, claimant: Claimant) -> Candidate {
        let found = self.find_slot(&claimant.site.project);
        let old = found.map(|slot| Arc::clone(&self.slot(slot).site));
        let slot = match found {
            Some(slot) => {
                self.release(slot);
                slot
            }
            None => self.insert(&claimant),
        };
        Candidate {
            slot,
            old,
            claimant,
            rejected: false,
        }
    }

    /// Steps 2 and 3.
    fn claim_in_order(&mut self, candidates: &mut [Candidate]) {
        let by_slot: HashMap<u32, usize> = (0..)
            .zip(candidates.iter())
            .map(|(nth, candidate)| (candidate.slot, nth))
            .collect();
        for nth in 0..candidates.len() {
            let Candidate { slot, claimant, .. } = &candidates[nth];
            if candidates[nth].rejected {
                continue;
            }
            if self.conflict(*slot, &claimant.site).is_none() {
                self.claim(*slot, &Arc::clone(&claimant.site));
                continue;
            }
            let mut falling_back = vec![nth];
            while let Some(nth) = falling_back.pop() {
                let candidate = &mut candidates[nth];
                if std::mem::replace(&mut candidate.rejected, true) {
                    continue;
                }
                let Some(old) = candidate.old.clone() else {
                    continue;
                };
                let slot = candidate.slot;
                while let Some((_, other)) = self.conflict(slot, &old) {
                    // Served sites have no host in common, so the other one is a changed site.
                    self.release(other);
                    falling_back.extend(by_slot.get(&other));
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
            for candidate in candidates.iter_mut().filter(|c| c.rejected) {
                if self
                    .conflict(candidate.slot, &candidate.claimant.site)
                    .is_none()
                {
                    self.release(candidate.slot);
                    self.claim(candidate.slot, &candidate.claimant.site);
                    candidate.rejected = false;
                    progress = true;
                }
            }
        }
    }

    fn conclude(&mut self, candidate: Candidate, resolved: &mut Resolved) {
        let Candidate {
            slot,
            old,
            claimant,
            rejected,
        } = candidate;
        self.slot_mut(slot).holder = claimant.holder.clone();
        if !rejected {
            if old.as_ref() != Some(&claimant.site) {
                resolved.upserted.push(claimant.site);
            }
            return;
        }
        let conflict = self.conflict(slot, &claimant.site);
        if old.is_none() {
            self.remove(slot);
        }
        if let Some((which, other)) = conflict {
            let other = self.slot(other);
            let conflict = Conflict::Host {
                which,
                host: host_of(&claimant.site, which, &self.domain).into(),
                project: other.site.project.clone(),
                holder: other.holder.clone(),
            };
            resolved.rejected.push(Rejected { claimant, conflict });
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

    /// Adds a slot for a project, without hosts.
    fn insert(&mut self, claimant: &Claimant) -> u32 {
        let taken = Slot {
            site: Arc::clone(&claimant.site),
            holder: claimant.holder.clone(),
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(taken);
                slot
            }
            None => {
                self.slots.push(Some(taken));
                u32::try_from(self.slots.len() - 1).expect("memory holds fewer sites than that")
            }
        };
        let Self {
            projects,
            slots,
            random,
            ..
        } = self;
        let hash = random.hash_one(claimant.site.project.as_str());
        projects.insert_unique(hash, slot, |slot| {
            let site = slots[*slot as usize].as_ref().map(|slot| &slot.site);
            random.hash_one(site.map_or("", |site| site.project.as_str()))
        });
        slot
    }

    /// Frees a slot whose hosts are released.
    fn remove(&mut self, slot: u32) {
        let hash = self.random.hash_one(self.slot(slot).site.project.as_str());
        if let Ok(found) = self.projects.find_entry(hash, |found| *found == slot) {
            found.remove();
        }
        self.slots[slot as usize] = None;
        self.free.push(slot);
    }

    /// Returns the first host of `site` that another slot than `slot` has, and that slot.
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

    /// Sets the site of a slot and claims the hosts of the site, which must be free.
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

    /// Releases all hosts of a slot.
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

/// Returns one host of a site: 0 is the default subdomain, the domains follow.
fn host_of<'s>(site: &'s Site, which: usize, domain: &str) -> Cow<'s, str> {
    match which.checked_sub(1) {
        None => Cow::Owned(format!("{}.{domain}", site.subdomain)),
        Some(nth) => Cow::Borrowed(site.domains[nth].as_str()),
    }
}
