//! Which hosts a site may have (T2, T6).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Caller, Refused, SiteAdmin};
use crate::deploy::keys::Role;
use crate::site::{Host, KeptIn, ProjectId, Site};
use crate::store::sites::read_record;
use crate::store::{Ownership, OwnershipState, Quarantine, SiteRecord};

impl SiteAdmin {
    /// Checks the hosts of a changed site. Returns the hosts that it claims at once; the others
    /// wait for a proof.
    pub(super) fn hosts_to_claim(
        &self,
        caller: &Caller,
        site: &Site,
        ownership: &BTreeMap<Host, Ownership>,
    ) -> Result<Vec<Host>, Refused> {
        let is_waiting = |host: &Host| {
            let state = ownership.get(host).map(|ownership| ownership.state);
            self.rules.is_some() && state.is_some_and(|state| !state.is_served())
        };
        let (waiting, claimed): (Vec<_>, Vec<_>) =
            self.hosts(site).into_iter().partition(is_waiting);
        self.check_hosts(caller, site, &claimed)?;
        self.check_waiting(caller, site, &waiting)?;
        Ok(claimed)
    }

    /// T2: checks that no other site has one of these hosts. T6: nor a domain above one of them, if
    /// it is another owner's.
    fn check_hosts(&self, caller: &Caller, site: &Site, hosts: &[Host]) -> Result<(), Refused> {
        let project = &site.project;
        let mut conflicts = Vec::new();
        for host in hosts {
            let is_unproven = caller.role != Role::Operator && self.rules.is_none();
            if is_unproven && self.is_below_another_owner(host, site) {
                conflicts.push(format!(
                    "{host} is below a domain of another owner: only an operator adds it"
                ));
                continue;
            }
            let served = self.served.at(host).filter(|site| site.project != *project);
            let other = match served {
                Some(site) => Some((site.project.clone(), site.kept_in.to_string())),
                None => self
                    .claimed_by(host)?
                    .filter(|other| other != project)
                    .map(|other| (other, KeptIn::Api.to_string())),
            };
            if let Some((other, place)) = other {
                conflicts.push(taken(caller, host, &other, &place));
            }
        }
        match conflicts.is_empty() {
            true => Ok(()),
            false => Err(Refused::Conflict(conflicts)),
        }
    }

    /// Checks the domains of a site that wait for a proof: another site may have one only while its
    /// own proof is gone.
    fn check_waiting(&self, caller: &Caller, site: &Site, hosts: &[Host]) -> Result<(), Refused> {
        let mut conflicts = Vec::new();
        for host in hosts {
            let served = self.served.at(host).map(|site| site.project.clone());
            let other = match served {
                Some(project) => Some(project),
                None => self.claimed_by(host)?,
            };
            let Some(other) = other.filter(|other| *other != site.project) else {
                continue;
            };
            let (state, place) = match self.in_file(&other) {
                Some(site) => (None, site.kept_in.to_string()),
                None => {
                    let record = self.store.site_record(&other)?;
                    let state = record.and_then(|record| record.ownership_of(host));
                    (state, KeptIn::Api.to_string())
                }
            };
            if state != Some(OwnershipState::Dangling) {
                conflicts.push(taken(caller, host, &other, &place));
            }
        }
        match conflicts.is_empty() {
            true => Ok(()),
            false => Err(Refused::Conflict(conflicts)),
        }
    }

    /// Returns the ownership of each domain of a changed site. A new domain waits for a proof. If the
    /// site has another owner, each domain needs the proof of that owner; a domain that is served
    /// stays served for as long as one whose proof is gone.
    pub(super) fn ownership_after(
        &self,
        site: &Site,
        before: Option<&SiteRecord>,
    ) -> Result<BTreeMap<Host, Ownership>, Refused> {
        let had = before.map_or_else(Vec::new, |before| self.hosts_of(before));
        let known = before.map(|before| &before.ownership);
        let is_moved = before.is_some_and(|before| *owner_of(before) != *site.owner);
        let now = self.clock.unix_seconds();
        let mut ownership = BTreeMap::new();
        let mut refused = Vec::new();
        for host in &site.domains {
            match (known.and_then(|known| known.get(host)), &self.rules) {
                (Some(known), Some(rules)) if is_moved => {
                    let handovers = self.handovers(host, &site.owner)?;
                    let added = rules.added(&site.owner, host, handovers, now);
                    let state = match known.state.is_served() {
                        true => OwnershipState::Dangling,
                        false => added.state,
                    };
                    ownership.insert(host.clone(), Ownership { state, ..added });
                }
                (Some(known), _) => {
                    ownership.insert(host.clone(), known.clone());
                }
                (None, Some(rules)) if !had.contains(host) => {
                    refused.extend(rules.rejection(host, &self.service));
                    let handovers = self.handovers(host, &site.owner)?;
                    let added = rules.added(&site.owner, host, handovers, now);
                    ownership.insert(host.clone(), added);
                }
                (None, _) => {}
            }
        }
        match refused.is_empty() {
            true => Ok(ownership),
            false => Err(Refused::Invalid(refused)),
        }
    }

    /// Returns the proven domains that a site has lost, with their quarantine; `None` if no proof
    /// is required.
    pub(super) fn quarantine_of(
        &self,
        before: Option<&SiteRecord>,
        gone: &[Host],
    ) -> Option<(Vec<Host>, Quarantine)> {
        let (rules, before) = self.rules.as_ref().zip(before)?;
        let proven = gone.iter().filter(|host| before.serves(host));
        let quarantine = Quarantine {
            owner: owner_of(before),
            until: rules.quarantine_ends(self.clock.unix_seconds()),
        };
        Some((proven.cloned().collect(), quarantine))
    }

    /// Returns whether a domain of another owner's site is above a host.
    fn is_below_another_owner(&self, host: &Host, site: &Site) -> bool {
        let dots = host.as_str().match_indices('.');
        let above = dots.filter_map(|(at, _)| Host::parse(&host.as_str()[at + 1..]).ok());
        let mut above = above.filter_map(|above| {
            let other = self.served.at(&above)?;
            other.domains.contains(&above).then_some(other)
        });
        above.any(|other| other.owner != site.owner)
    }

    /// Returns the project whose record in the store has a host.
    pub(super) fn claimed_by(&self, host: &Host) -> Result<Option<ProjectId>, Refused> {
        let Some(claim) = self.store.host_claim(host)? else {
            return Ok(None);
        };
        let record = self.store.site_record(&claim.project)?;
        let is_served = |record: &SiteRecord| {
            self.hosts_of(record).contains(host) && (self.rules.is_none() || record.serves(host))
        };
        // A file may have the project, and then the record in the store has no effect.
        let counts = claim.quarantine.is_none()
            && record.is_some_and(|record| is_served(&record))
            && self.in_file(&claim.project).is_none();
        Ok(counts.then_some(claim.project))
    }

    /// Returns how often a host went from one owner to another, with the next time if `owner` is
    /// not the one who had it last.
    pub(super) fn handovers(&self, host: &Host, owner: &str) -> Result<u64, Refused> {
        let Some(claim) = self.store.host_claim(host)? else {
            return Ok(0);
        };
        let last = match claim.quarantine {
            Some(quarantine) => Some(quarantine.owner),
            None => {
                let record = self.store.site_record(&claim.project)?;
                record.as_ref().map(owner_of)
            }
        };
        let is_another = last.is_some_and(|last| *last != *owner);
        Ok(claim.handovers.saturating_add(is_another.into()))
    }

    /// Returns whether the claim of a host is of this project, or cannot be read.
    pub(super) fn is_claimed(&self, project: &ProjectId, host: &Host) -> bool {
        match self.store.host_claim(host) {
            Ok(claim) => {
                claim.is_some_and(|claim| claim.project == *project && claim.quarantine.is_none())
            }
            Err(_) => true,
        }
    }

    /// Returns the hosts of a record; none of a record that is not valid.
    pub(super) fn hosts_of(&self, record: &SiteRecord) -> Vec<Host> {
        let site = read_record(record, &self.service, &self.private_hosts);
        site.map_or_else(|_invalid| Vec::new(), |site| self.hosts(&site))
    }

    /// Returns all hosts of a site.
    fn hosts(&self, site: &Site) -> Vec<Host> {
        let default = site.default_host(&self.service).into_iter();
        let hosts = default.chain(site.domains.iter().cloned());
        hosts.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Returns why a caller cannot have a host of another site.
fn taken(caller: &Caller, host: &Host, other: &ProjectId, place: &str) -> String {
    match caller.role {
        Role::Operator => {
            format!("{host} is a host of the site {other} already, which is kept in {place}")
        }
        Role::Owner | Role::Deploy => format!("{host} is a host of another site already"),
    }
}

/// Returns the owner of a record.
pub(super) fn owner_of(record: &SiteRecord) -> Box<str> {
    let owner = record.record.get("owner").and_then(Value::as_str);
    owner.unwrap_or(record.project.as_str()).into()
}
