//! The state of sites beside their releases: records, claims of hosts, checks of domains, numbers,
//! the audit log.

use std::time::SystemTime;

use super::record::{HostClaim, SiteChange, SiteRecord, SitesLock};
use super::{
    ChangedShards, FileError, ReadError, SeenShards, SiteError, Store, audit, local, not_local,
    shared,
};
use crate::clock::Day;
use crate::site::{Host, ProjectId};

/// Makes the bytes of a day from those before; `None` leaves them.
pub type ChangeNumbers<'c> = &'c mut (dyn FnMut(Option<&[u8]>) -> Option<Vec<u8>> + Send + 'c);

/// The leadership of the process that checks domains, until this is dropped.
#[derive(Debug)]
pub enum VerificationLead {
    /// Among the processes of this machine.
    File(local::VerificationLead),
    /// Among all machines.
    Lease(shared::Lease),
}

// === impl Store ===

impl Store {
    /// Returns the site record of a project; `None` if the store has none.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when it cannot be read.
    pub fn site_record(&self, project: &ProjectId) -> Result<Option<SiteRecord>, ReadError> {
        match self {
            Self::Local(store) => store.site_record(project),
            Self::Shared(store) => store.site_record(project),
        }
    }

    /// Returns every project that has a site record in the store, in no particular order.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when a directory cannot be listed.
    pub fn site_records(&self) -> Result<Vec<ProjectId>, ReadError> {
        match self {
            Self::Local(store) => store.site_records(),
            Self::Shared(store) => store.site_records(),
        }
    }

    /// Finds the directories in which site records may have changed since the last call with
    /// `seen`.
    pub fn changed_site_records(&self, seen: &mut SeenShards, now: SystemTime) -> ChangedShards {
        match self {
            Self::Local(store) => seen.compare(store.site_record_directories(), now),
            Self::Shared(_) => ChangedShards::all(),
        }
    }

    /// Returns the projects that have a site record in one of these directories, in no particular
    /// order.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when a directory cannot be listed.
    pub fn site_records_in(&self, changed: &ChangedShards) -> Result<Vec<ProjectId>, ReadError> {
        match self {
            Self::Local(store) => store.site_records_in(changed),
            Self::Shared(store) => store.site_records(),
        }
    }

    /// Replaces and removes site records of a cache: what this node follows has checked them, so
    /// there are no claims and no audit log.
    ///
    /// # Errors
    ///
    /// [`SiteError`] when one could not be written. Then some are written.
    pub fn replace_site_records(
        &self,
        records: &[(ProjectId, Option<SiteRecord>)],
    ) -> Result<(), SiteError> {
        match self {
            Self::Local(store) => store.replace_site_records(records),
            Self::Shared(_) => Err(not_local().into()),
        }
    }

    /// Returns which record of the store has a host; `None` if there is none. The claim counts only
    /// while that record names the host.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when it cannot be read.
    pub fn host_claim(&self, host: &Host) -> Result<Option<HostClaim>, ReadError> {
        match self {
            Self::Local(store) => store.host_claim(host),
            Self::Shared(store) => store.host_claim(host),
        }
    }

    /// Returns all claims of hosts, in no particular order.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when one cannot be read.
    pub fn host_claims(&self) -> Result<Vec<HostClaim>, ReadError> {
        match self {
            Self::Local(store) => store.host_claims(),
            Self::Shared(store) => store.host_claims(),
        }
    }

    /// Waits until no other process changes site records, and completes an interrupted change.
    ///
    /// # Errors
    ///
    /// [`SiteError`] when the lock cannot be used, or the interrupted change cannot be completed.
    pub fn lock_sites(&self) -> Result<SitesLock, SiteError> {
        match self {
            Self::Local(store) => store.lock_sites(),
            Self::Shared(store) => store.lock_sites(),
        }
    }

    /// Changes a site record, with the claims of its hosts and the audit log: all or nothing.
    ///
    /// # Errors
    ///
    /// [`SiteError`] when it could not be written. If the disk became full in the middle, the next
    /// [`Store::lock_sites`] completes the change.
    pub fn change_site(&self, lock: &SitesLock, change: &SiteChange) -> Result<(), SiteError> {
        match self {
            Self::Local(store) => store.change_site(lock, change),
            Self::Shared(store) => store.change_site(lock, change),
        }
    }

    /// Returns the record of the last check of a domain of a project.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when it cannot be read.
    pub fn domain_check(
        &self,
        project: &ProjectId,
        host: &Host,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        match self {
            Self::Local(store) => store.domain_check(project, host),
            Self::Shared(store) => store.domain_check(project, host),
        }
    }

    /// Replaces the record of the last check of a domain; `None` removes it.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it could not be made durable; the bytes before stay.
    pub fn put_domain_check(
        &self,
        project: &ProjectId,
        host: &Host,
        bytes: Option<&[u8]>,
    ) -> Result<(), FileError> {
        match self {
            Self::Local(store) => store.put_domain_check(project, host, bytes),
            Self::Shared(store) => store.put_domain_check(project, host, bytes),
        }
    }

    /// Asks the process that checks domains to check one now.
    ///
    /// # Errors
    ///
    /// [`FileError`] when the request could not be written.
    pub fn request_domain_check(&self, project: &ProjectId, host: &Host) -> Result<(), FileError> {
        match self {
            Self::Local(store) => store.request_domain_check(project, host),
            Self::Shared(store) => store.request_domain_check(project, host),
        }
    }

    /// Takes the requests to check domains now.
    ///
    /// # Errors
    ///
    /// [`FileError`] when they cannot be read or removed.
    pub fn take_domain_check_requests(&self) -> Result<Vec<(ProjectId, Host)>, FileError> {
        match self {
            Self::Local(store) => store.take_domain_check_requests(),
            Self::Shared(store) => store.take_domain_check_requests(),
        }
    }

    /// Makes this process the checker of domains, if no other process is. It is until the
    /// value is dropped or the process ends.
    ///
    /// # Errors
    ///
    /// [`FileError`] when the lock cannot be used.
    pub fn lead_verification(&self) -> Result<Option<VerificationLead>, FileError> {
        match self {
            Self::Local(store) => {
                let lead = store.lead_verification()?;
                Ok(lead.map(VerificationLead::File))
            }
            Self::Shared(store) => Ok(store.lead_verification()?.map(VerificationLead::Lease)),
        }
    }

    /// Returns the secret key that tokens for owners and hosts are made with. It is made if it does
    /// not exist.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it can be neither read nor made.
    pub fn verification_key(&self) -> Result<Vec<u8>, FileError> {
        match self {
            Self::Local(store) => store.verification_key(),
            Self::Shared(store) => store.verification_key(),
        }
    }

    /// Puts the key that tokens are made with in place of that of this store.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it could not be made durable.
    pub fn replace_verification_key(&self, key: &[u8]) -> Result<(), FileError> {
        match self {
            Self::Local(store) => store.replace_verification_key(key),
            Self::Shared(store) => store.replace_verification_key(key),
        }
    }

    /// Returns the numbers of a project from `first` to `last`: one document for each day.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it cannot be read.
    pub fn numbers(
        &self,
        project: &ProjectId,
        first: Day,
        last: Day,
    ) -> Result<Vec<(Day, Vec<u8>)>, FileError> {
        match self {
            Self::Local(store) => store.numbers(project, first, last),
            Self::Shared(store) => store.numbers(project, first, last),
        }
    }

    /// Lists the projects and days that have numbers, in order.
    ///
    /// # Errors
    ///
    /// [`FileError`] when they cannot be listed.
    pub fn numbered(&self) -> Result<Vec<(ProjectId, Day)>, FileError> {
        match self {
            Self::Local(store) => store.numbered(),
            Self::Shared(store) => store.numbered(),
        }
    }

    /// Replaces the document of a day. `change` gets the old bytes and returns the new ones; after
    /// `None` the old ones stay. No other process changes the document at the same time. The store
    /// may call `change` several times, also with the bytes that an earlier call has returned.
    /// After a power cut, the bytes before may be there again.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it could not be written. The new bytes may be there: the answer of a
    /// database may be lost.
    pub fn change_numbers(
        &self,
        project: &ProjectId,
        day: Day,
        change: ChangeNumbers<'_>,
    ) -> Result<(), FileError> {
        match self {
            Self::Local(store) => store.change_numbers(project, day, change),
            Self::Shared(store) => store.change_numbers(project, day, change),
        }
    }

    /// Removes all numbers of a project.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it could not be removed.
    pub fn remove_numbers(&self, project: &ProjectId) -> Result<(), FileError> {
        match self {
            Self::Local(store) => store.remove_numbers(project),
            Self::Shared(store) => store.remove_numbers(project),
        }
    }

    /// Removes the numbers of all projects before a day. Returns how many documents it has removed.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it could not be removed.
    pub fn sweep_numbers(&self, first: Day) -> Result<u64, FileError> {
        match self {
            Self::Local(store) => store.sweep_numbers(first),
            Self::Shared(store) => store.sweep_numbers(first),
        }
    }

    /// Lists entries of the audit log, the newest first.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when the log cannot be read.
    pub fn audit(&self, filter: &audit::Filter) -> Result<Vec<audit::Entry>, ReadError> {
        Ok(self.audit_page(filter)?.entries)
    }

    /// The same, with the number before which nothing was looked at.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when the log cannot be read.
    pub fn audit_page(&self, filter: &audit::Filter) -> Result<audit::Page, ReadError> {
        match self {
            Self::Local(store) => store.audit(filter),
            Self::Shared(store) => store.audit(filter),
        }
    }
}

// === impl VerificationLead ===

impl VerificationLead {
    /// Returns whether this process still leads. It loses the leadership if the lock file is
    /// removed, or the database cannot be reached for some seconds.
    #[must_use]
    pub fn holds(&self) -> bool {
        match self {
            Self::File(lead) => lead.holds(),
            Self::Lease(lease) => lease.holds(),
        }
    }
}
