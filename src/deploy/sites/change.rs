//! Changes of a site record: each is checked, stored and logged under the lock of all writers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::hosts::owner_of;
use super::{Caller, Condition, Domain, Done, Refused, Representation, SiteAdmin};
use crate::deploy::Timestamp;
use crate::deploy::keys::Role;
use crate::error::chain;
use crate::site::{Host, KeptIn, ProjectId, Site};
use crate::store::audit::{Entry, Filter};
use crate::store::sites::read_record;
use crate::store::{PromoteError, ReadError, SiteChange, SiteError, SiteRecord};

/// The members of a representation that are not of the record.
const READ_ONLY: [&str; 2] = ["project", "kept_in"];

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

impl SiteAdmin {
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

    /// Removes a site. Its releases stay for the time that the store keeps releases which no project
    /// uses. A site that is created again has no release until its next update.
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
        self.check_permission(caller, project, step, before.as_ref())?;
        let shown = before.as_ref().map(Representation::of_record);
        let etag = shown.as_ref().map(Representation::etag);
        // A whole record is checked before the condition: its mistakes do not depend on what
        // exists.
        let is_whole = step.action == Action::Replace;
        if !is_whole {
            before.as_ref().ok_or(Refused::NoSite)?;
            step.condition.check(etag.as_ref())?;
        }
        let mut after = edit(before.as_ref())?;
        let site = after
            .as_mut()
            .map(|record| self.complete(caller, project, before.as_ref(), record))
            .transpose()?;
        if is_whole {
            step.condition.check(etag.as_ref())?;
        }
        let ownership = match &site {
            Some(site) => self.ownership_after(site, before.as_ref())?,
            None => BTreeMap::new(),
        };
        let claimed = match &site {
            Some(site) => self.hosts_to_claim(caller, site, &ownership)?,
            None => Vec::new(),
        };
        if after.as_ref() == before.as_ref().map(|before| &before.record) {
            return Ok(Done {
                after: shown,
                is_new: false,
            });
        }
        let is_new = step.action.host().is_some() || before.is_none();
        let after = after.map(|record| SiteRecord {
            project: project.clone(),
            changed_at: self.clock.unix_seconds(),
            record,
            ownership,
        });
        let entry = self.audit_entry(caller, project, step, before.as_ref(), after.as_ref());
        let hosts_before = before
            .as_ref()
            .map_or_else(Vec::new, |before| self.hosts_of(before));
        let kept: BTreeSet<&Host> = site.iter().flat_map(|site| site.domains.iter()).collect();
        let gone: Vec<Host> = hosts_before
            .iter()
            .filter(|host| !kept.contains(host))
            .cloned()
            .collect();
        let what = entry.what.clone();
        let released: Vec<Host> = hosts_before
            .into_iter()
            .filter(|host| !claimed.contains(host) && self.is_claimed(project, host))
            .collect();
        let mut handovers = BTreeMap::new();
        for host in &claimed {
            let owner = site.as_ref().map_or("", |site| &*site.owner);
            handovers.insert(host.clone(), self.handovers(host, owner)?);
        }
        for host in &released {
            let owner = before.as_ref().map(owner_of).unwrap_or_default();
            handovers.insert(host.clone(), self.handovers(host, &owner)?);
        }
        let change = SiteChange {
            project: project.clone(),
            record: after.clone(),
            released,
            claimed,
            handovers,
            quarantine: self.quarantine_of(before.as_ref(), &gone),
            entry,
        };
        if let (None, Some(site)) = (&before, &site) {
            self.forget_former_owner(project, &site.owner)?;
        }
        self.store.change_site(&lock, &change)?;
        // A file of the operator may have this project too, and then its releases are served.
        if after.is_none()
            && self.in_file(project).is_none()
            && let Err(error) = self.forget_releases(project)
        {
            log::error!(target: "deploy", project:%; "the releases of {project}, which was removed, stay: {}", chain(&error));
        }
        drop(lock);
        for host in &gone {
            // If this fails, the old state is ignored; the domain gets a new one if it comes back.
            let _left = self.store.put_domain_check(project, host, None);
        }
        log::info!(
            target: "audit", project:%, what:%, key:? = caller.who.key, user:? = caller.who.user;
            "the site record of {project} was changed"
        );
        (self.changed)(project);
        Ok(Done {
            after: after.as_ref().map(Representation::of_record),
            is_new,
        })
    }

    /// Forgets the releases of a project that another owner had before. An update that ran while the
    /// site was removed may have left one.
    fn forget_former_owner(&self, project: &ProjectId, owner: &str) -> Result<(), Refused> {
        if let Ok(None) = self.store.current(project) {
            return Ok(());
        }
        let last = self.store.audit(&Filter {
            project: Some(project.as_str().into()),
            limit: 1,
            ..Filter::default()
        })?;
        // Without an entry, no other owner is known: the site was in a file, or is published first.
        match last.first() {
            Some(entry) if *entry.owner != *owner => Ok(self.forget_releases(project)?),
            _ => Ok(()),
        }
    }

    /// Forgets which releases a project has.
    fn forget_releases(&self, project: &ProjectId) -> Result<(), SiteError> {
        match self.store.forget(project) {
            Ok(_was_there) => Ok(()),
            Err(PromoteError::Read(error)) => Err(error.into()),
            Err(PromoteError::File(error)) => Err(error.into()),
            Err(other) => Err(SiteError::Read(ReadError::Damaged {
                what: format!("the pointer of {project}"),
                why: chain(&other),
            })),
        }
    }

    /// Checks that the caller may make this kind of change, and that the record is kept here (T1).
    fn check_permission(
        &self,
        caller: &Caller,
        project: &ProjectId,
        step: &Step<'_>,
        before: Option<&SiteRecord>,
    ) -> Result<(), Refused> {
        let in_file = self.in_file(project);
        let is_removal = step.action == Action::Delete;
        self.admit(caller, project, before, in_file.as_deref())
            .map_err(|refused| match refused {
                // A whole record may also create the site.
                Refused::NoSite if step.action == Action::Replace => Refused::Forbidden(
                    "the owner has no such project, and only an operator creates sites",
                ),
                refused => refused,
            })?;
        if is_removal && caller.role != Role::Operator {
            return Err(Refused::Forbidden("only an operator removes sites"));
        }
        match in_file.map(|site| site.kept_in.clone()) {
            // A record in the store that a file has replaced can be removed.
            Some(KeptIn::File(name)) if !(is_removal && before.is_some()) => {
                Err(Refused::Conflict(vec![format!(
                    "the site {project} is kept in the file {name} of the operator: change it there"
                )]))
            }
            _ => Ok(()),
        }
    }

    /// Returns the entry of the audit log for a change (T4).
    fn audit_entry(
        &self,
        caller: &Caller,
        project: &ProjectId,
        step: &Step<'_>,
        before: Option<&SiteRecord>,
        after: Option<&SiteRecord>,
    ) -> Entry {
        Entry {
            id: 0,
            at: Timestamp::of(self.clock.now()).millis(),
            who: caller.who.clone(),
            what: step.action.word(before.is_none()).into(),
            project: project.as_str().into(),
            owner: after.or(before).map(owner_of).unwrap_or_default(),
            host: step.action.host().map(|host| host.as_str().into()),
            before: before.map(|before| before.record.clone()),
            after: after.map(|after| after.record.clone()),
        }
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
        check_dots(&site)?;
        if let Some(domains) = record.get_mut("domains") {
            let hosts = site.domains.iter().map(|host| host.as_str().into());
            *domains = Value::Array(hosts.collect());
        }
        if caller.role != Role::Operator {
            self.check_owner_change(&site, before, &known_owner)?;
        }
        Ok(site)
    }

    /// Checks that a change by an owner leaves to operators what only they change.
    fn check_owner_change(
        &self,
        site: &Site,
        before: Option<&SiteRecord>,
        known_owner: &str,
    ) -> Result<(), Refused> {
        let subdomain_before = before.and_then(|before| before.record.get("subdomain"));
        let is_same_name = subdomain_before
            .and_then(Value::as_str)
            .is_some_and(|before| before.eq_ignore_ascii_case(&site.subdomain));
        if *site.owner != *known_owner || !is_same_name {
            return Err(Refused::Forbidden(
                "only an operator changes the owner or the subdomain of a site",
            ));
        }
        let had = before.map_or_else(Vec::new, |before| self.hosts_of(before));
        let may_add = self.owners_add_domains || self.rules.is_some();
        match may_add || site.domains.iter().all(|domain| had.contains(domain)) {
            true => Ok(()),
            false => Err(Refused::Forbidden(
                "only an operator adds domains: ask the operator of this service",
            )),
        }
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

/// Checks that each domain of a site has a dot.
fn check_dots(site: &Site) -> Result<(), Refused> {
    let without_dot = site
        .domains
        .iter()
        .map(Host::as_str)
        .filter(|host| !host.contains('.'));
    let mistakes: Vec<String> = without_dot
        .map(|host| format!("`domains` contains {host:?}, which has no dot"))
        .collect();
    match mistakes.is_empty() {
        true => Ok(()),
        false => Err(Refused::Invalid(mistakes)),
    }
}

/// Returns whether a member of a list of domains is this host.
fn is_host(domain: &Value, host: &Host) -> bool {
    domain
        .as_str()
        .and_then(|text| Host::parse(text).ok())
        .is_some_and(|found| found == *host)
}

/// Merges a patch into an object (RFC 7396 §2).
pub(super) fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
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
