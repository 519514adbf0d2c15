//! Copying a store into another one: releases, pointers, site records and the key for tokens.
//!
//! A copy skips what the other store has, and never replaces a pointer by an older one. So it can
//! be repeated: after an interruption, and once more after the last writer of a store in use has
//! ended.

use std::collections::BTreeMap;

use super::audit::{Entry, Who};
use super::record::SiteChange;
use super::{
    FileError, HostClaim, PromoteError, PutError, Quarantine, ReadError, SiteError, Store,
};
use crate::clock::Clock;
use crate::site::{Host, ProjectId};

/// The result of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// How many releases the other store did not have.
    pub releases: u64,
    /// How many pointers were written.
    pub pointers: u64,
    /// How many site records were written.
    pub sites: u64,
    /// Projects whose pointer there is newer, so that it stays.
    pub newer: Vec<ProjectId>,
}

/// Why a copy has stopped. The target keeps the documents and releases that were copied before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The store cannot be read.
    #[error("copy the store")]
    Read(#[from] ReadError),
    /// The other store cannot be written.
    #[error("copy the store")]
    File(#[from] FileError),
    /// A release cannot be copied.
    #[error("copy a release of {project}")]
    Release {
        /// Its project.
        project: ProjectId,
        /// The reason.
        source: PutError,
    },
    /// A pointer cannot be written.
    #[error("copy the store")]
    Pointer(#[from] PromoteError),
    /// A site record cannot be written.
    #[error("copy the store")]
    Site(#[from] SiteError),
}

/// Copies everything that `to` does not have.
///
/// # Errors
///
/// [`CopyError`].
pub fn copy(from: &Store, to: &Store, who: &Who, clock: &Clock) -> Result<Copied, CopyError> {
    let mut copied = Copied::default();
    // Tokens of owners are made with it, so it comes before the records.
    to.replace_verification_key(&from.verification_key()?)?;
    let mut projects = from.pointers()?;
    projects.sort();
    for project in &projects {
        copy_project(from, to, project, &mut copied)?;
    }
    copy_sites(from, to, who, clock, &mut copied)?;
    Ok(copied)
}

fn copy_project(
    from: &Store,
    to: &Store,
    project: &ProjectId,
    copied: &mut Copied,
) -> Result<(), CopyError> {
    let Some(pointer) = from.current(project)? else {
        return Ok(());
    };
    let there = to.current(project)?;
    if there.as_ref() == Some(&pointer) {
        return Ok(());
    }
    if there.is_some_and(|there| there.current.fence() > pointer.current.fence()) {
        copied.newer.push(project.clone());
        return Ok(());
    }
    for promotion in pointer.promotions() {
        if to.has_release(promotion.release)? {
            continue;
        }
        let inventory = from.inventory(promotion.release)?;
        let put = to.put_files(&inventory, &mut |item| Ok(Some(from.read(item)?)));
        put.map_err(|source| CopyError::Release {
            project: project.clone(),
            source,
        })?;
        copied.releases += 1;
    }
    to.restore_pointer(project, &pointer)?;
    copied.pointers += 1;
    Ok(())
}

fn copy_sites(
    from: &Store,
    to: &Store,
    who: &Who,
    clock: &Clock,
    copied: &mut Copied,
) -> Result<(), CopyError> {
    let mut claims: BTreeMap<ProjectId, Vec<HostClaim>> = BTreeMap::new();
    for claim in from.host_claims()? {
        claims.entry(claim.project.clone()).or_default().push(claim);
    }
    let mut projects = from.site_records()?;
    // A host may be in quarantine after the record of its project was removed.
    projects.extend(claims.keys().cloned());
    projects.sort();
    projects.dedup();
    let lock = to.lock_sites()?;
    for project in projects {
        let record = from.site_record(&project)?;
        let before = to.site_record(&project)?;
        let claims = claims.remove(&project).unwrap_or_default();
        let mut has_all = true;
        for claim in &claims {
            has_all &= to.host_claim(&claim.host)?.as_ref() == Some(claim);
        }
        if before == record && has_all {
            continue;
        }
        let is_held = |claim: &&HostClaim| claim.quarantine.is_none();
        let claimed: Vec<Host> = claims
            .iter()
            .filter(is_held)
            .map(|claim| claim.host.clone())
            .collect();
        // Each quarantine has its own end, so each is a step of its own.
        let mut steps: Vec<Option<(Vec<Host>, Quarantine)>> = vec![None];
        steps.extend(claims.iter().filter_map(|claim| {
            let quarantine = claim.quarantine.clone()?;
            Some(Some((vec![claim.host.clone()], quarantine)))
        }));
        for quarantine in steps {
            let released = quarantine
                .as_ref()
                .map_or_else(Vec::new, |(hosts, _)| hosts.clone());
            let entry = Entry {
                id: 0,
                at: clock.unix_seconds() * 1000,
                who: who.clone(),
                what: "site.copy".into(),
                project: project.as_str().into(),
                owner: owner(
                    record
                        .as_ref()
                        .or(before.as_ref())
                        .map(|found| &found.record),
                ),
                host: None,
                before: before.as_ref().map(|found| found.record.clone()),
                after: record.as_ref().map(|found| found.record.clone()),
            };
            let change = SiteChange {
                project: project.clone(),
                record: record.clone(),
                claimed: claimed.clone(),
                released,
                quarantine,
                handovers: claims
                    .iter()
                    .map(|claim| (claim.host.clone(), claim.handovers))
                    .collect(),
                entry,
            };
            to.change_site(&lock, &change)?;
        }
        copied.sites += u64::from(record.is_some());
    }
    Ok(())
}

fn owner(record: Option<&serde_json::Map<String, serde_json::Value>>) -> Box<str> {
    let owner = record.and_then(|record| record.get("owner"));
    owner
        .and_then(serde_json::Value::as_str)
        .unwrap_or("")
        .into()
}
