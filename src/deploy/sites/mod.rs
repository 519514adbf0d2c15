//! Changes of sites and domains: what the admin API and the command line have in common.
//!
//! * **T1** A site is kept in one place. A site that is in a file of the operator cannot be changed
//!   here, and the message names the file.
//! * **T2** A host belongs to one site, whether its record is in a file or in the store.
//! * **T3** A change is checked and stored under one lock of all writers, so two changes never
//!   overwrite each other. A condition ([`Condition`]) is checked under the same lock.
//! * **T4** Every change has an entry in the audit log, written with it.
//! * **T5** A caller that is not an operator learns nothing of the sites of other owners.
//! * **T6** If proof of ownership is required, a new domain is pending: nothing is served at it and
//!   no certificate is ordered for it until [`verification`] has seen the proof. It takes no host
//!   from anybody before. Otherwise only an operator adds domains, unless the configuration lets
//!   owners do it, and an owner never gets a host below a domain of another owner.
//!
//! All functions block.
//!
//! Sources: RFC 9110 §13.1.1 (`If-Match`), RFC 7396 (JSON Merge Patch).

mod known;
mod names;
mod numbers;
mod ownership;
mod representation;
#[cfg(test)]
mod tests;
pub mod verification;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::Timestamp;
use super::keys::Role;
use crate::clock::Clock;
use crate::response::{Conditions, ETag, Outcome};
use crate::site::{Host, KeptIn, PrivateHosts, ProjectId, Service, Site};
use crate::store::audit::{Entry, Filter, Who};
use crate::store::sites::read_record;
use crate::store::{
    Ownership, OwnershipState, Quarantine, ReadError, SiteChange, SiteError, SiteRecord, Store,
};

pub use known::{Known, reading_again};
pub use numbers::{DAYS_MAX, Days, WriteCounts};
pub use ownership::{Rules, Shown, Wanted};
pub use representation::Representation;

/// Called with the project of a change, once it is stored.
pub type Changed = Arc<dyn Fn(&ProjectId) + Send + Sync>;

/// Returns why there is no certificate for a host, if an order failed: a sentence.
pub type CertificateTrouble = Arc<dyn Fn(&Host) -> Option<String> + Send + Sync>;

/// The members of a representation that are not of the record.
const READ_ONLY: [&str; 2] = ["project", "kept_in"];

/// Changes site records.
pub struct SiteAdmin {
    store: Arc<Store>,
    service: Service,
    private_hosts: PrivateHosts,
    known: Arc<dyn Known>,
    changed: Changed,
    owners_add_domains: bool,
    /// `None`: no proof of ownership is required.
    rules: Option<Rules>,
    certificate_trouble: Option<CertificateTrouble>,
    write_counts: Option<WriteCounts>,
    clock: Clock,
}

/// Who asks for something.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The role, which decides what the caller may do.
    pub role: Role,
    /// The owner whose sites the caller may see; an operator sees all.
    pub owner: Box<str>,
    /// The projects of this owner that the caller may change; `None` for all.
    pub projects: Option<Vec<Box<str>>>,
    /// The caller in the audit log.
    pub who: Who,
}

/// The condition of a change: the fields `If-Match` and `If-None-Match` as they were sent.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    /// `If-Match`.
    pub if_match: Option<Vec<u8>>,
    /// `If-None-Match`.
    pub if_none_match: Option<Vec<u8>>,
    /// Whether a change of what exists needs one of them.
    pub is_required: bool,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// The record after it; `None` if it was removed.
    pub after: Option<Representation>,
    /// Whether the site, or the domain, did not exist before.
    pub is_new: bool,
}

/// A domain of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The host.
    pub host: Host,
    /// Whether it is the canonical one.
    pub is_canonical: bool,
    /// Whether the site is served at it.
    pub is_served: bool,
    /// What is known about its ownership; `None` if no proof is required.
    pub ownership: Option<Shown>,
    /// Why the last order of its certificate failed.
    pub certificate_trouble: Option<String>,
}

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// There is no such site, or the caller may not know of it.
    #[error("there is no such project")]
    NoSite,
    /// The site does not have the domain.
    #[error("the site has no such domain")]
    NoDomain,
    /// The caller may not do this.
    #[error("{0}")]
    Forbidden(&'static str),
    /// The record has these mistakes.
    #[error("{}", .0.join("; "))]
    Invalid(Vec<String>),
    /// Others have the project or these hosts.
    #[error("{}", .0.join("; "))]
    Conflict(Vec<String>),
    /// The record is not the one that the condition names.
    #[error(
        "the site was changed since it was read: read it again, and send its new ETag in If-Match"
    )]
    Changed,
    /// The condition says that the site must not exist.
    #[error("the site exists already")]
    Exists,
    /// The same was asked for a moment ago.
    #[error("the domain was looked at a moment ago: ask again in {} s", .0.as_secs())]
    TooSoon(Duration),
    /// A condition is needed.
    #[error("send the ETag of the site in If-Match, so that no other change is lost")]
    Unconditional,
    /// The store failed.
    #[error("change the site")]
    Store(#[from] SiteError),
}

/// A change of a site record.
struct Step<'s> {
    action: Action<'s>,
    condition: &'s Condition,
}

/// The kinds of changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action<'s> {
    Replace,
    Patch,
    Delete,
    AddDomain(&'s Host),
    RemoveDomain(&'s Host),
}

impl std::fmt::Debug for SiteAdmin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SiteAdmin").finish_non_exhaustive()
    }
}

impl From<ReadError> for Refused {
    fn from(error: ReadError) -> Self {
        Self::Store(error.into())
    }
}

// === impl SiteAdmin ===

impl SiteAdmin {
    /// Makes the administration of the sites of a store. `known` are the sites that are served, and
    /// `changed` is called after each change.
    #[must_use]
    pub fn new(
        store: Arc<Store>,
        service: Service,
        private_hosts: PrivateHosts,
        known: Arc<dyn Known>,
        changed: Changed,
        clock: Clock,
    ) -> Self {
        Self {
            store,
            service,
            private_hosts,
            known,
            changed,
            owners_add_domains: false,
            rules: None,
            certificate_trouble: None,
            write_counts: None,
            clock,
        }
    }

    /// Sets the rules of the proof of ownership; `None`: none is required (T6).
    #[must_use]
    pub fn proving(self, rules: Option<Rules>) -> Self {
        Self { rules, ..self }
    }

    /// Sets where the reasons of failed orders come from.
    #[must_use]
    pub fn with_certificates(self, trouble: CertificateTrouble) -> Self {
        Self {
            certificate_trouble: Some(trouble),
            ..self
        }
    }

    /// Sets whether owners may add domains (T6).
    #[must_use]
    pub fn owners_add_domains(self, owners_add_domains: bool) -> Self {
        Self {
            owners_add_domains,
            ..self
        }
    }

    /// Returns the rules of the proof of ownership, if one is required.
    fn rules(&self) -> Option<&Rules> {
        self.rules.as_ref()
    }

    /// Returns a site.
    ///
    /// # Errors
    ///
    /// [`Refused::NoSite`], or the error of the store.
    pub fn site(&self, caller: &Caller, project: &ProjectId) -> Result<Representation, Refused> {
        let (owner, shown) = match self.in_file(project) {
            Some(site) => (site.owner.clone(), Representation::of_site(&site)),
            None => {
                let record = self.store.site_record(project)?.ok_or(Refused::NoSite)?;
                (owner_of(&record), Representation::of_record(&record))
            }
        };
        caller.check(&owner, project)?;
        Ok(shown)
    }

    /// Lists sites by project: at most `limit`, after a project. Also returns whether there are
    /// more.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub fn sites(
        &self,
        caller: &Caller,
        owner: Option<&str>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<Representation>, bool), Refused> {
        let mut sites = self.known.all();
        sites.retain(|site| {
            caller.check(&site.owner, &site.project).is_ok()
                && owner.is_none_or(|owner| *site.owner == *owner)
                && after.is_none_or(|after| site.project.as_str() > after)
        });
        sites.sort_unstable_by(|one, other| one.project.cmp(&other.project));
        let has_more = sites.len() > limit;
        sites.truncate(limit);
        let shown: Result<Vec<_>, Refused> = sites
            .iter()
            .map(|site| {
                let stored = match site.kept_in {
                    KeptIn::File(_) => None,
                    KeptIn::Api => self.store.site_record(&site.project)?,
                };
                Ok(match stored {
                    Some(record) => Representation::of_record(&record),
                    None => Representation::of_site(site),
                })
            })
            .collect();
        Ok((shown?, has_more))
    }

    /// Lists the domains of all sites that the caller may see, by project.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub fn all_domains(&self, caller: &Caller) -> Result<Vec<(ProjectId, Domain)>, Refused> {
        let mut sites = self.known.all();
        sites.retain(|site| caller.check(&site.owner, &site.project).is_ok());
        sites.sort_unstable_by(|one, other| one.project.cmp(&other.project));
        let mut all = Vec::new();
        for site in sites {
            let domains = self.domains(caller, &site.project)?;
            all.extend(
                domains
                    .into_iter()
                    .map(|domain| (site.project.clone(), domain)),
            );
        }
        Ok(all)
    }

    /// Creates a site, or replaces its record.
    ///
    /// # Errors
    ///
    /// [`Refused`]; nothing has changed then.
    pub fn put(
        &self,
        caller: &Caller,
        project: &ProjectId,
        record: Map<String, Value>,
        condition: &Condition,
    ) -> Result<Done, Refused> {
        let step = Step {
            action: Action::Replace,
            condition,
        };
        self.change(caller, project, &step, |_| Ok(Some(record)))
    }

    /// Merges a patch into the record of a site (RFC 7396).
    ///
    /// # Errors
    ///
    /// [`Refused`]; nothing has changed then.
    pub fn patch(
        &self,
        caller: &Caller,
        project: &ProjectId,
        patch: &Map<String, Value>,
        condition: &Condition,
    ) -> Result<Done, Refused> {
        let step = Step {
            action: Action::Patch,
            condition,
        };
        self.change(caller, project, &step, |before| {
            let mut record = before.ok_or(Refused::NoSite)?.record.clone();
            merge(&mut record, patch);
            Ok(Some(record))
        })
    }

    /// Removes a site. Its releases stay for the time that the store keeps them.
    ///
    /// # Errors
    ///
    /// [`Refused`]; nothing has changed then.
    pub fn delete(
        &self,
        caller: &Caller,
        project: &ProjectId,
        condition: &Condition,
    ) -> Result<(), Refused> {
        let step = Step {
            action: Action::Delete,
            condition,
        };
        self.change(caller, project, &step, |before| {
            before.ok_or(Refused::NoSite)?;
            Ok(None)
        })?;
        Ok(())
    }

    /// Lists the domains of a site, the canonical one first.
    ///
    /// # Errors
    ///
    /// [`Refused::NoSite`], or the error of the store.
    pub fn domains(&self, caller: &Caller, project: &ProjectId) -> Result<Vec<Domain>, Refused> {
        let shown = self.site(caller, project)?;
        let record = match self.in_file(project) {
            Some(_) => None,
            None => self.store.site_record(project)?,
        };
        Ok(self.domains_of(project, &shown.members, record.as_ref()))
    }

    /// Returns a domain of a site.
    ///
    /// # Errors
    ///
    /// [`Refused::NoSite`], [`Refused::NoDomain`], or the error of the store.
    pub fn domain(
        &self,
        caller: &Caller,
        project: &ProjectId,
        host: &Host,
    ) -> Result<Domain, Refused> {
        let domains = self.domains(caller, project)?;
        let found = domains.into_iter().find(|domain| domain.host == *host);
        found.ok_or(Refused::NoDomain)
    }

    /// Adds a domain to a site, as its last one.
    ///
    /// # Errors
    ///
    /// [`Refused`]; nothing has changed then.
    pub fn add_domain(
        &self,
        caller: &Caller,
        project: &ProjectId,
        host: &Host,
        condition: &Condition,
    ) -> Result<(Domain, bool), Refused> {
        let step = Step {
            action: Action::AddDomain(host),
            condition,
        };
        let done = self.change(caller, project, &step, |before| {
            let mut record = before.ok_or(Refused::NoSite)?.record.clone();
            let domains = record
                .entry("domains")
                .or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(domains) = domains
                && !domains.iter().any(|domain| is_host(domain, host))
            {
                domains.push(host.as_str().into());
            }
            Ok(Some(record))
        })?;
        let record = self.store.site_record(project)?;
        let domains = done
            .after
            .map(|after| self.domains_of(project, &after.members, record.as_ref()));
        let mut domains = domains.unwrap_or_default().into_iter();
        let domain = domains.find(|domain| domain.host == *host);
        Ok((domain.ok_or(Refused::NoDomain)?, done.is_new))
    }

    /// Removes a domain from a site.
    ///
    /// # Errors
    ///
    /// [`Refused`]; nothing has changed then.
    pub fn remove_domain(
        &self,
        caller: &Caller,
        project: &ProjectId,
        host: &Host,
        condition: &Condition,
    ) -> Result<(), Refused> {
        let step = Step {
            action: Action::RemoveDomain(host),
            condition,
        };
        self.change(caller, project, &step, |before| {
            let mut record = before.ok_or(Refused::NoSite)?.record.clone();
            let Some(Value::Array(domains)) = record.get_mut("domains") else {
                return Err(Refused::NoDomain);
            };
            let count = domains.len();
            domains.retain(|domain| !is_host(domain, host));
            match domains.len() == count {
                true => Err(Refused::NoDomain),
                false => Ok(Some(record)),
            }
        })?;
        Ok(())
    }

    /// Lists entries of the audit log, the newest first. A caller that is not an operator gets
    /// those of its owner.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub fn audit(&self, caller: &Caller, mut filter: Filter) -> Result<Vec<Entry>, Refused> {
        if caller.role != Role::Operator {
            filter.owner = Some(caller.owner.clone());
            filter.projects.clone_from(&caller.projects);
        }
        Ok(self.store.audit(&filter)?)
    }

    /// Returns the site of a project, if its record is in a file.
    fn in_file(&self, project: &ProjectId) -> Option<Arc<Site>> {
        let site = self.known.site(project)?;
        matches!(site.kept_in, KeptIn::File(_)).then_some(site)
    }

    fn domains_of(
        &self,
        project: &ProjectId,
        members: &Map<String, Value>,
        record: Option<&SiteRecord>,
    ) -> Vec<Domain> {
        let hosts = members.get("domains").and_then(Value::as_array);
        let hosts = hosts.into_iter().flatten();
        let hosts = hosts.filter_map(|host| Host::parse(host.as_str()?).ok());
        hosts
            .enumerate()
            .map(|(nth, host)| Domain {
                is_canonical: nth == 0,
                is_served: self
                    .known
                    .at(&host)
                    .is_some_and(|site| site.project == *project),
                ownership: record.and_then(|record| self.shown(record, &host)),
                certificate_trouble: self
                    .certificate_trouble
                    .as_ref()
                    .and_then(|trouble| trouble(&host)),
                host,
            })
            .collect()
    }

    /// Makes a change: `edit` returns the record after it, or `None` to remove the site.
    fn change(
        &self,
        caller: &Caller,
        project: &ProjectId,
        step: &Step<'_>,
        edit: impl FnOnce(Option<&SiteRecord>) -> Result<Option<Map<String, Value>>, Refused>,
    ) -> Result<Done, Refused> {
        let lock = self.store.lock_sites()?;
        let before = self.store.site_record(project)?;
        let in_file = self.in_file(project);
        let is_removal = step.action == Action::Delete;
        // A whole record may also create the site.
        let is_whole = step.action == Action::Replace;
        self.admit(caller, project, before.as_ref(), in_file.as_deref())
            .map_err(|refused| match refused {
                Refused::NoSite if is_whole => Refused::Forbidden(
                    "the owner has no such project, and only an operator creates sites",
                ),
                refused => refused,
            })?;
        if is_removal && caller.role != Role::Operator {
            return Err(Refused::Forbidden("only an operator removes sites"));
        }
        if let Some(KeptIn::File(name)) = in_file.map(|site| site.kept_in.clone())
            // A record in the store that a file has replaced can be removed.
            && !(is_removal && before.is_some())
        {
            return Err(Refused::Conflict(vec![format!(
                "the site {project} is kept in the file {name} of the operator: change it there"
            )]));
        }
        let shown = before.as_ref().map(Representation::of_record);
        let etag = shown.as_ref().map(Representation::etag);
        // A whole record is checked before the condition: its mistakes do not depend on what
        // exists.
        if !is_whole {
            before.as_ref().ok_or(Refused::NoSite)?;
            step.condition.check(etag.as_ref())?;
        }
        let mut after = edit(before.as_ref())?;
        let mut site = None;
        if let Some(record) = &mut after {
            site = Some(self.complete(caller, project, before.as_ref(), record)?);
        }
        if is_whole {
            step.condition.check(etag.as_ref())?;
        }
        let ownership = match &site {
            Some(site) => self.ownership_after(site, before.as_ref())?,
            None => BTreeMap::new(),
        };
        let hosts = site.as_ref().map_or_else(Vec::new, |site| self.hosts(site));
        let is_waiting = |host: &Host| {
            let state = ownership.get(host).map(|ownership| ownership.state);
            self.rules.is_some() && state.is_some_and(|state| !state.is_served())
        };
        let (waiting, claimed): (Vec<_>, Vec<_>) = hosts.into_iter().partition(is_waiting);
        if let Some(site) = &site {
            self.check_hosts(caller, site, &claimed)?;
            self.check_waiting(caller, site, &waiting)?;
        }
        if after.as_ref() == before.as_ref().map(|before| &before.record) {
            let done = Done {
                after: shown,
                is_new: false,
            };
            return Ok(done);
        }
        let host = step.action.host();
        let is_new = host.is_some() || before.is_none();
        let now = self.clock.now();
        let after = after.map(|record| SiteRecord {
            project: project.clone(),
            changed_at: self.clock.unix_seconds(),
            record,
            ownership: ownership.clone(),
        });
        let what = step.action.word(before.is_none());
        let owner = after.as_ref().or(before.as_ref()).map(owner_of);
        let entry = Entry {
            id: 0,
            at: Timestamp::of(now).millis(),
            who: caller.who.clone(),
            what: what.into(),
            project: project.as_str().into(),
            owner: owner.unwrap_or_default(),
            host: host.map(|host| host.as_str().into()),
            before: before.as_ref().map(|before| before.record.clone()),
            after: after.as_ref().map(|after| after.record.clone()),
        };
        let released = match &before {
            Some(before) => self.hosts_of(before),
            None => Vec::new(),
        };
        let kept = site.iter().flat_map(|site| site.domains.iter());
        let kept: BTreeSet<&Host> = kept.collect();
        let gone: Vec<Host> = released
            .iter()
            .filter(|host| !kept.contains(host))
            .cloned()
            .collect();
        let quarantine = self.quarantine_of(before.as_ref(), &gone);
        let change = SiteChange {
            project: project.clone(),
            record: after.clone(),
            released: released
                .into_iter()
                .filter(|host| !claimed.contains(host) && self.is_claimed(project, host))
                .collect(),
            claimed,
            quarantine,
            entry,
        };
        self.store.change_site(&lock, &change)?;
        drop(lock);
        for host in &gone {
            // What is left is ignored, and written again if the domain comes back.
            let _left = self.store.put_domain_check(project, host, None);
        }
        log::info!(
            target: "audit", project:%, what, key:? = caller.who.key, user:? = caller.who.user;
            "the site record of {project} was changed"
        );
        (self.changed)(project);
        Ok(Done {
            after: after.as_ref().map(Representation::of_record),
            is_new,
        })
    }

    /// Checks that the caller may change the site. T5: without a site of its owner, every caller
    /// that may not create sites gets the same response.
    fn admit(
        &self,
        caller: &Caller,
        project: &ProjectId,
        before: Option<&SiteRecord>,
        in_file: Option<&Site>,
    ) -> Result<(), Refused> {
        let owner = match (in_file, before) {
            (Some(site), _) => Some(site.owner.clone()),
            (None, Some(record)) => Some(owner_of(record)),
            (None, None) => None,
        };
        match caller.role {
            Role::Operator => Ok(()),
            Role::Owner => caller.check(owner.as_deref().unwrap_or_default(), project),
            Role::Deploy => Err(Refused::Forbidden(
                "this admin key may only deploy: changing sites needs a key with the role owner or operator",
            )),
        }
    }

    /// Checks a record and completes it: with its owner, without empty members, its hosts in normal
    /// form.
    fn complete(
        &self,
        caller: &Caller,
        project: &ProjectId,
        before: Option<&SiteRecord>,
        record: &mut Map<String, Value>,
    ) -> Result<Arc<Site>, Refused> {
        let mut mistakes = Vec::new();
        let wanted = [project.as_str(), "api"];
        for (key, wanted) in READ_ONLY.into_iter().zip(wanted) {
            let sent = record.shift_remove(key);
            if sent.is_some_and(|sent| !sent.is_null() && sent.as_str() != Some(wanted)) {
                mistakes.push(format!("`{key}` cannot be changed: it is {wanted:?}"));
            }
        }
        remove_nulls(record);
        let known_owner = before.map_or_else(|| project.as_str().into(), owner_of);
        record
            .entry("owner")
            .or_insert_with(|| Value::from(&*known_owner));
        let stored = SiteRecord {
            project: project.clone(),
            changed_at: 0,
            record: record.clone(),
            ownership: BTreeMap::new(),
        };
        let site = match read_record(&stored, &self.service, &self.private_hosts) {
            Ok(site) if mistakes.is_empty() => site,
            Ok(_) => return Err(Refused::Invalid(mistakes)),
            Err(more) => {
                mistakes.extend(more);
                return Err(Refused::Invalid(mistakes));
            }
        };
        let without_dot = site
            .domains
            .iter()
            .filter(|host| !host.as_str().contains('.'));
        let without_dot: Vec<String> = without_dot
            .map(|host| {
                format!(
                    "`domains` contains {host:?}, which has no dot",
                    host = host.as_str()
                )
            })
            .collect();
        if !without_dot.is_empty() {
            return Err(Refused::Invalid(without_dot));
        }
        if let Some(domains) = record.get_mut("domains") {
            let hosts = site.domains.iter().map(|host| host.as_str().into());
            *domains = Value::Array(hosts.collect());
        }
        let subdomain_before = before.and_then(|before| before.record.get("subdomain"));
        let is_same_name = subdomain_before
            .and_then(Value::as_str)
            .is_some_and(|before| before.eq_ignore_ascii_case(&site.subdomain));
        let is_ours = site.owner == known_owner && is_same_name;
        if caller.role != Role::Operator && !is_ours {
            return Err(Refused::Forbidden(
                "only an operator changes the owner or the subdomain of a site",
            ));
        }
        let may_add = self.owners_add_domains || self.rules.is_some();
        if caller.role != Role::Operator && !may_add {
            let had = before.map_or_else(Vec::new, |before| self.hosts_of(before));
            if site.domains.iter().any(|domain| !had.contains(domain)) {
                return Err(Refused::Forbidden(
                    "only an operator adds domains: ask the operator of this service",
                ));
            }
        }
        Ok(site)
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
            let served = self.known.at(host).filter(|site| site.project != *project);
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
            let served = self.known.at(host).map(|site| site.project.clone());
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

    /// Returns what is known about the ownership of the domains of a changed site: a new domain
    /// waits for a proof.
    fn ownership_after(
        &self,
        site: &Site,
        before: Option<&SiteRecord>,
    ) -> Result<BTreeMap<Host, Ownership>, Refused> {
        let had = before.map_or_else(Vec::new, |before| self.hosts_of(before));
        let known = before.map(|before| &before.ownership);
        let now = self.clock.unix_seconds();
        let mut ownership = BTreeMap::new();
        let mut refused = Vec::new();
        for host in &site.domains {
            match (known.and_then(|known| known.get(host)), &self.rules) {
                (Some(known), _) => {
                    ownership.insert(host.clone(), known.clone());
                }
                (None, Some(rules)) if !had.contains(host) => {
                    refused.extend(rules.refusal(host, &self.service));
                    ownership.insert(host.clone(), rules.added(&site.owner, host, now));
                }
                (None, _) => {}
            }
        }
        match refused.is_empty() {
            true => Ok(ownership),
            false => Err(Refused::Invalid(refused)),
        }
    }

    /// Returns the quarantine of the domains that a site has lost: of those that were proven.
    fn quarantine_of(
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
            let other = self.known.at(&above)?;
            other.domains.contains(&above).then_some(other)
        });
        above.any(|other| other.owner != site.owner)
    }

    /// Returns the project whose record in the store has a host.
    fn claimed_by(&self, host: &Host) -> Result<Option<ProjectId>, Refused> {
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

    /// Returns whether the claim of a host is of this project, or cannot be read.
    fn is_claimed(&self, project: &ProjectId, host: &Host) -> bool {
        match self.store.host_claim(host) {
            Ok(claim) => {
                claim.is_some_and(|claim| claim.project == *project && claim.quarantine.is_none())
            }
            Err(_) => true,
        }
    }

    /// Returns the hosts of a record; none of a record that is not valid.
    fn hosts_of(&self, record: &SiteRecord) -> Vec<Host> {
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

// === impl Action ===

impl<'s> Action<'s> {
    /// Returns the name of the change in the audit log ([`Entry::what`]).
    fn word(self, is_new_site: bool) -> &'static str {
        match self {
            Self::Replace if is_new_site => "site.create",
            Self::Replace => "site.replace",
            Self::Patch => "site.patch",
            Self::Delete => "site.delete",
            Self::AddDomain(_) => "domain.add",
            Self::RemoveDomain(_) => "domain.remove",
        }
    }

    /// Returns the host, if the change is of one domain.
    fn host(self) -> Option<&'s Host> {
        match self {
            Self::AddDomain(host) | Self::RemoveDomain(host) => Some(host),
            Self::Replace | Self::Patch | Self::Delete => None,
        }
    }
}

// === impl Caller ===

impl Caller {
    /// Returns whether the caller may act on this project of its owner.
    #[must_use]
    pub fn covers(&self, project: &str) -> bool {
        self.role == Role::Operator
            || self
                .projects
                .as_ref()
                .is_none_or(|projects| projects.iter().any(|covered| **covered == *project))
    }

    fn check(&self, owner: &str, project: &ProjectId) -> Result<(), Refused> {
        if self.role != Role::Operator && *self.owner != *owner {
            return Err(Refused::NoSite);
        }
        match self.covers(project.as_str()) {
            true => Ok(()),
            false => Err(Refused::Forbidden(
                "the admin key does not cover this project",
            )),
        }
    }
}

// === impl Condition ===

impl Condition {
    /// Checks the condition against the entity tag of what exists.
    fn check(&self, current: Option<&ETag>) -> Result<(), Refused> {
        let holds = |conditions: Conditions<'_>, etag: &ETag| {
            conditions.evaluate(etag, None) == Outcome::Send
        };
        if self.if_match.is_some() {
            let condition = || Conditions {
                if_match: self.if_match.as_deref(),
                ..Conditions::default()
            };
            if !current.is_some_and(|etag| holds(condition(), etag)) {
                return Err(Refused::Changed);
            }
        }
        let condition = || Conditions {
            if_none_match: self.if_none_match.as_deref(),
            ..Conditions::default()
        };
        if current.is_some_and(|etag| !holds(condition(), etag)) {
            return Err(Refused::Exists);
        }
        let is_absent = self.if_match.is_none() && self.if_none_match.is_none();
        match self.is_required && is_absent && current.is_some() {
            true => Err(Refused::Unconditional),
            false => Ok(()),
        }
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
fn owner_of(record: &SiteRecord) -> Box<str> {
    let owner = record.record.get("owner").and_then(Value::as_str);
    owner.unwrap_or(record.project.as_str()).into()
}

/// Returns whether a member of a list of domains is this host.
fn is_host(domain: &Value, host: &Host) -> bool {
    domain
        .as_str()
        .and_then(|text| Host::parse(text).ok())
        .is_some_and(|found| found == *host)
}

/// Merges a patch into an object (RFC 7396 §2).
fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, value) in patch {
        match value {
            Value::Null => {
                target.shift_remove(key);
            }
            Value::Object(patch) => {
                let below = target.entry(key.as_str()).or_insert(Value::Null);
                if !below.is_object() {
                    *below = Value::Object(Map::new());
                }
                if let Value::Object(below) = below {
                    merge(below, patch);
                }
            }
            value => {
                target.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Removes the members without a value, at every depth: absent keys have their default.
fn remove_nulls(members: &mut Map<String, Value>) {
    members.retain(|_, value| !value.is_null());
    for value in members.values_mut() {
        if let Value::Object(members) = value {
            remove_nulls(members);
        }
    }
}
