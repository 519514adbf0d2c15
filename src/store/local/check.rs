//! The check of a store: finds damaged and missing files, and repairs them.
//!
//! It reads every file that a pointer names, so it takes as long as reading the whole store. It
//! takes no lock while it reads; a release that is promoted or swept meanwhile is not reported,
//! because content is written before the pointer that names it.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::layout::digest_of;
use super::pointers::{copy_of, read};
use super::site_records::read_record;
use super::sweep::list;
use super::{Local, modified};
use crate::digest::Digest;
use crate::error::chain;
use crate::release::ReleaseId;
use crate::site::{Host, ProjectId};
use crate::store::durable::{self, FileError};
use crate::store::{
    CheckResult, Damage, Fence, HostClaim, Pointer, PromoteError, ReadError, SiteError, SiteRecord,
};

/// The state of a check.
struct Check<'s> {
    store: &'s Local,
    repair: bool,
    checked: CheckResult,
    /// The releases that were read, and whether each is intact.
    releases: HashMap<ReleaseId, bool>,
    /// The content that was read, and whether it is intact.
    content: HashMap<Digest, bool>,
}

impl Local {
    pub(in crate::store) fn check(
        &self,
        repair: bool,
        now: SystemTime,
    ) -> Result<CheckResult, PromoteError> {
        let mut check = Check {
            store: self,
            repair,
            checked: CheckResult::default(),
            releases: HashMap::new(),
            content: HashMap::new(),
        };
        for project in self.pointers()? {
            check.project(&project)?;
        }
        for project in self.site_records()? {
            check.site_record(&project)?;
        }
        check.orphans()?;
        if repair {
            match self.sweep(now) {
                Ok(swept) => check.checked.swept = swept,
                Err(error) => check.add(chain(&error), None),
            }
        }
        Ok(check.checked)
    }
}

impl Check<'_> {
    fn add(&mut self, what: String, repaired: Option<String>) {
        self.checked.damages.push(Damage { what, repaired });
    }

    fn project(&mut self, project: &ProjectId) -> Result<(), PromoteError> {
        self.checked.projects += 1;
        let Some(pointer) = self.pointer(project)? else {
            return Ok(());
        };
        let releases: Vec<_> = pointer.promotions().map(|kept| kept.release).collect();
        let whole: Vec<bool> = releases
            .iter()
            .map(|id| self.release(project, *id))
            .collect();
        if whole.first() == Some(&true) {
            return Ok(());
        }
        let what = format!("the current release of {project} is damaged");
        let earlier = releases.iter().zip(&whole).find(|(_, whole)| **whole);
        match earlier {
            Some((release, _)) if self.repair => {
                let fence = Fence::next(Some(pointer.current.fence()), 0);
                self.store.promote(project, *release, fence)?;
                let repaired = format!("release {release} of its history is current now");
                self.add(what, Some(repaired));
            }
            Some((release, _)) => {
                self.add(
                    format!("{what}; release {release} of its history is intact"),
                    None,
                );
            }
            None => self.add(
                format!(
                    "{what}, and no release of its history is intact; deploy or publish it again"
                ),
                None,
            ),
        }
        Ok(())
    }

    /// Reads the site record of a project, its copy, and the claims of its domains.
    fn site_record(&mut self, project: &ProjectId) -> Result<(), PromoteError> {
        let path = self.store.layout.site_record(project);
        let files = [path.clone(), copy_of(&path)];
        let read = files.each_ref().map(|file| read_record(file, project));
        let record = match read {
            // It was removed meanwhile.
            [Ok(None), _] => return Ok(()),
            [Ok(Some(record)), Ok(Some(_))] => Some(record),
            [first, second] => self.broken_record(project, &files, first, second)?,
        };
        let domains = record
            .as_ref()
            .and_then(|record| record.record.get("domains"));
        let domains = domains.and_then(serde_json::Value::as_array);
        let hosts = domains.into_iter().flatten();
        for host in hosts.filter_map(|host| Host::parse(host.as_str()?).ok()) {
            let Err(error @ ReadError::Damaged { .. }) = self.store.host_claim(&host) else {
                continue;
            };
            let is_served = record.as_ref().is_some_and(|record| record.serves(&host));
            let ownership = record
                .as_ref()
                .and_then(|record| record.ownership.get(&host));
            let handovers = ownership.map_or(0, |ownership| ownership.handovers);
            let repaired = match self.repair {
                false => None,
                true => {
                    let _lock = self.store.lock_sites().map_err(of_sites)?;
                    let path = self.store.layout.host_claim(&host);
                    match is_served {
                        true => {
                            let claim = HostClaim {
                                host: host.clone(),
                                project: project.clone(),
                                quarantine: None,
                                handovers,
                            };
                            self.store.write_again(&path, &claim.to_text())?;
                            Some(format!("{host} belongs to {project} again"))
                        }
                        false => {
                            durable::remove(&path)?;
                            Some(format!("removed: {project} does not have {host} yet"))
                        }
                    }
                }
            };
            self.add(chain(&error), repaired);
        }
        Ok(())
    }

    /// Restores the record or its copy from the other one. Returns the usable one.
    fn broken_record(
        &mut self,
        project: &ProjectId,
        files: &[PathBuf; 2],
        first: Result<Option<SiteRecord>, ReadError>,
        second: Result<Option<SiteRecord>, ReadError>,
    ) -> Result<Option<SiteRecord>, PromoteError> {
        let (error, intact) = match (first, second) {
            (Ok(record), Err(error)) => (chain(&error), record),
            (Ok(record), Ok(_)) => {
                let missing = format!("{} is missing", files[1].display());
                (missing, record)
            }
            (Err(error @ ReadError::Damaged { .. }), other) => {
                (chain(&error), other.ok().flatten())
            }
            (Err(error), _) => return Err(error.into()),
        };
        let repaired = match (&intact, self.repair) {
            (Some(_), true) => {
                let _lock = self.store.lock_sites().map_err(of_sites)?;
                // Another process may have changed it since.
                let current = self.store.site_record(project)?;
                if let Some(record) = &current {
                    for file in files {
                        self.store.write_again(file, &record.to_text())?;
                    }
                }
                Some("restored from the undamaged one of the record and its copy".to_owned())
            }
            _ => None,
        };
        let error = match &intact {
            Some(_) => error,
            None => format!(
                "{error}; its copy cannot be used either: write the record again with `waypost site set {project}`"
            ),
        };
        self.add(error, repaired);
        Ok(intact)
    }

    /// Reads the pointer of a project and its copy. Returns the usable one.
    fn pointer(&mut self, project: &ProjectId) -> Result<Option<Pointer>, PromoteError> {
        let (usable, damage) = self.both_pointers(project)?;
        let Some(error) = damage else {
            return Ok(usable);
        };
        let what = chain(&error);
        if !self.repair {
            self.add(what, None);
            return Ok(usable);
        }
        let writer = self.store.layout.lock_for_writer()?;
        let shard = self.store.lock_pointer(project)?;
        // Another process may have changed both since.
        let (usable, damage) = self.both_pointers(project)?;
        let repaired = match (&usable, damage) {
            (_, None) => "another process has written it again".to_owned(),
            (Some(pointer), Some(_)) => {
                self.store.write_pointer(&writer, project, pointer)?;
                "restored from the undamaged one of the pointer and its copy".to_owned()
            }
            (None, Some(_)) => {
                let path = self.store.layout.pointer(project);
                let aside = path.with_extension("damaged");
                fs::rename(&path, &aside).map_err(FileError::on("rename", &path))?;
                format!(
                    "renamed to {}; deploy, publish or promote a release of {project}",
                    aside.display()
                )
            }
        };
        shard.flush()?;
        self.add(what, Some(repaired));
        Ok(usable)
    }

    /// Reads the pointer of a project and its copy. Returns the undamaged one, and the error of the
    /// damaged one.
    fn both_pointers(
        &self,
        project: &ProjectId,
    ) -> Result<(Option<Pointer>, Option<ReadError>), ReadError> {
        let path = self.store.layout.pointer(project);
        let (usable, error) = match (read(&path, project), read(&copy_of(&path), project)) {
            (Ok(None), _) => return Ok((None, None)),
            (Ok(usable), Ok(_)) => return Ok((usable, None)),
            (Ok(usable), Err(error)) => (usable, error),
            (Err(error), copy) => (copy.ok().flatten(), error),
        };
        match error {
            ReadError::Damaged { .. } => Ok((usable, Some(error))),
            _ => Err(error),
        }
    }

    /// Reads a release and all its content. Returns whether it is intact.
    fn release(&mut self, project: &ProjectId, release: ReleaseId) -> bool {
        if let Some(whole) = self.releases.get(&release) {
            return *whole;
        }
        self.checked.releases += 1;
        let whole = match self.store.inventory(release) {
            Ok(inventory) => {
                let mut whole = true;
                for (path, item) in inventory.iter() {
                    if let Some(known) = self.content.get(&item.digest) {
                        whole &= known;
                        continue;
                    }
                    let read = self.store.read(item);
                    self.checked.files += 1;
                    self.checked.bytes += item.length;
                    self.content.insert(item.digest, read.is_ok());
                    if let Err(error) = read {
                        whole = false;
                        let error = chain(&error);
                        let what = format!("{path} of release {release} of {project}: {error}");
                        self.add(what, None);
                    }
                }
                whole
            }
            Err(error) => {
                let what = format!("release {release} of {project}: {}", chain(&error));
                self.add(what, None);
                false
            }
        };
        self.releases.insert(release, whole);
        whole
    }

    /// Counts the files that no pointer names. The sweep removes them when they are old.
    fn orphans(&mut self) -> Result<(), ReadError> {
        let named: HashSet<Digest> = self.releases.keys().map(|id| *id.digest()).collect();
        let inventories = self.store.layout.inventory_shards();
        let content = self.store.layout.content_shards();
        for shard in inventories.chain(content) {
            for path in list(&shard)? {
                let is_named =
                    |digest| named.contains(&digest) || self.content.contains_key(&digest);
                if digest_of(&path).is_some_and(|digest| !is_named(digest)) {
                    self.orphan(&path)?;
                }
            }
        }
        Ok(())
    }

    fn orphan(&mut self, path: &Path) -> Result<(), FileError> {
        if let Some((_, bytes)) = modified(path)? {
            self.checked.orphans += 1;
            self.checked.orphan_bytes += bytes;
        }
        Ok(())
    }
}

fn of_sites(error: SiteError) -> PromoteError {
    match error {
        SiteError::Read(error) => error.into(),
        SiteError::File(error) => error.into(),
    }
}
