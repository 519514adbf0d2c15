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

mod caller;
mod change;
mod hosts;
mod served;
mod names;
mod numbers;
mod ownership;
mod representation;
#[cfg(test)]
mod tests;
pub mod verification;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::keys::Role;
use crate::clock::Clock;
use crate::site::{Host, KeptIn, PrivateHosts, ProjectId, Service, Site};
use crate::store::audit::{Filter, Page};
use crate::store::{ReadError, SiteError, SiteRecord, Store};

use hosts::owner_of;

pub use caller::{Caller, Condition};
pub use numbers::WriteCounts;
pub use ownership::{Rules, Shown, Wanted};
pub use representation::Representation;
pub use served::{ServedSites, reading_again};

/// Called with the project of a change, once it is stored.
pub type Changed = Arc<dyn Fn(&ProjectId) + Send + Sync>;

/// Returns why there is no certificate for a host, if an order failed: a sentence.
pub type CertificateTrouble = Arc<dyn Fn(&Host) -> Option<String> + Send + Sync>;

/// Changes site records.
pub struct SiteAdmin {
    store: Arc<Store>,
    service: Service,
    private_hosts: PrivateHosts,
    served: Arc<dyn ServedSites>,
    changed: Changed,
    owners_add_domains: bool,
    /// `None`: no proof of ownership is required.
    rules: Option<Rules>,
    certificate_trouble: Option<CertificateTrouble>,
    write_counts: Option<WriteCounts>,
    clock: Clock,
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
    /// The state of its ownership; `None` if no proof is required.
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
    /// The condition names another version of the record.
    #[error(
        "the site was changed since it was read: read it again, and send its new ETag in If-Match"
    )]
    Changed,
    /// The condition says that the site must not exist.
    #[error("the site exists already")]
    Exists,
    /// The same was asked for a moment ago.
    #[error("the domain was checked a moment ago: ask again in {} s", .0.as_secs())]
    TooSoon(Duration),
    /// A condition is needed.
    #[error("send the ETag of the site in If-Match, so that no other change is lost")]
    Unconditional,
    /// The store failed.
    #[error("change the site")]
    Store(#[from] SiteError),
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
    /// Makes the administration of the sites of a store. `served` are the sites that are served,
    /// and `changed` is called after each change.
    #[must_use]
    pub fn new(
        store: Arc<Store>,
        service: Service,
        private_hosts: PrivateHosts,
        served: Arc<dyn ServedSites>,
        changed: Changed,
        clock: Clock,
    ) -> Self {
        Self {
            store,
            service,
            private_hosts,
            served,
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
        let mut sites = self.served.all();
        sites.retain(|site| {
            caller.check(&site.owner, &site.project).is_ok()
                && owner.is_none_or(|owner| *site.owner == *owner)
                && after.is_none_or(|after| site.project.as_str() > after)
        });
        let has_more = sites.len() > limit;
        // A page of a million sites must not sort all of them.
        if has_more {
            sites.select_nth_unstable_by(limit, |one, other| one.project.cmp(&other.project));
            sites.truncate(limit);
        }
        sites.sort_unstable_by(|one, other| one.project.cmp(&other.project));
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
        let mut sites = self.served.all();
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

    /// Lists entries of the audit log, the newest first. A caller that is not an operator gets
    /// those of its owner.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub fn audit(&self, caller: &Caller, mut filter: Filter) -> Result<Page, Refused> {
        if caller.role != Role::Operator {
            filter.owner = Some(caller.owner.clone());
            filter.projects.clone_from(&caller.projects);
        }
        Ok(self.store.audit_page(&filter)?)
    }

    /// Returns the site of a project, if its record is in a file.
    fn in_file(&self, project: &ProjectId) -> Option<Arc<Site>> {
        let site = self.served.site(project)?;
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
                    .served
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
}
