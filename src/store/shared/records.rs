//! Pointers, site records, the audit log, and results of domain checks: rows of the database.

use std::io;
use std::time::Duration;

use super::lease::Lease;
use super::{Shared, list, store_error};
use crate::database::{DatabaseError, Link, READ, Repeat, Value, WRITE};
use crate::digest::Digest;
use crate::release::ReleaseId;
use crate::site::{Host, ProjectId};
use crate::store::audit::{Filter, Page};
use crate::store::record::{InvalidRecord, SitesHold};
use crate::store::{
    FileError, HostClaim, InvalidPointer, Pointer, PromoteError, ReadError, SiteChange, SiteError,
    SiteRecord, SitesLock,
};

/// How long a change of site records waits for another one.
const SITES_WAIT: Duration = Duration::from_secs(30);
/// The length of the key for tokens, in bytes.
const KEY_BYTES: usize = 32;

impl Shared {
    // === Pointers ===

    pub(in crate::store) fn current(
        &self,
        project: &ProjectId,
    ) -> Result<Option<Pointer>, ReadError> {
        let read = self.database.transact(READ, Repeat::Always, |link, _now| {
            read_pointer(link, project)
        });
        read.map_err(store_error)?
            .map_err(|why| invalid_pointer(project, why))
    }

    pub(in crate::store) fn pointers(&self) -> Result<Vec<ProjectId>, ReadError> {
        self.projects("SELECT project FROM pointers")
    }

    fn projects(&self, sql: &'static str) -> Result<Vec<ProjectId>, ReadError> {
        let names = self.database.transact(READ, Repeat::Always, |link, _now| {
            let rows = link.rows(sql, &[])?;
            rows.into_iter()
                .map(|mut row| row.text())
                .collect::<Result<Vec<_>, _>>()
        });
        let names = names.map_err(store_error)?.into_iter();
        Ok(names
            .filter_map(|name| ProjectId::parse(&name).ok())
            .collect())
    }

    pub(in crate::store) fn forget(&self, project: &ProjectId) -> Result<bool, PromoteError> {
        const FORGET: &str = "DELETE FROM pointers WHERE project = ?1";
        let forgotten = self.database.transact(WRITE, Repeat::Always, |link, now| {
            lock_pointer(link, project)?;
            if link.execute(FORGET, &[Value::Text(project.as_str())])? == 0 {
                return Ok(None);
            }
            super::changes::next(link, project, now).map(Some)
        });
        let revision = forgotten.map_err(store_error)?;
        if let Some(revision) = revision {
            self.changed(revision);
        }
        Ok(revision.is_some())
    }

    pub(in crate::store) fn remove_from_history(
        &self,
        project: &ProjectId,
        release: ReleaseId,
    ) -> Result<(), PromoteError> {
        let done = self.database.transact(WRITE, Repeat::Always, |link, _now| {
            lock_pointer(link, project)?;
            match read_pointer(link, project)? {
                Ok(Some(mut pointer)) => {
                    pointer.history.retain(|earlier| earlier.release != release);
                    write_pointer(link, project, &pointer).map(Ok)
                }
                Ok(None) => Ok(Ok(())),
                Err(why) => Ok(Err(why)),
            }
        });
        let done = done.map_err(store_error)?;
        Ok(done.map_err(|why| invalid_pointer(project, why))?)
    }

    pub(in crate::store) fn restore_pointer(
        &self,
        project: &ProjectId,
        pointer: &Pointer,
    ) -> Result<(), FileError> {
        let restored = self.database.transact(WRITE, Repeat::Always, |link, now| {
            lock_pointer(link, project)?;
            write_pointer(link, project, pointer)?;
            super::changes::next(link, project, now)
        });
        self.changed(restored.map_err(store_error)?);
        Ok(())
    }

    // === Site records ===

    pub(in crate::store) fn site_record(
        &self,
        project: &ProjectId,
    ) -> Result<Option<SiteRecord>, ReadError> {
        const RECORD: &str = "SELECT record FROM sites WHERE project = ?1";
        let text = self.text(RECORD, project.as_str())?;
        text.map(|text| parse_record(&text, project)).transpose()
    }

    pub(in crate::store) fn site_records(&self) -> Result<Vec<ProjectId>, ReadError> {
        self.projects("SELECT project FROM sites")
    }

    pub(in crate::store) fn host_claim(&self, host: &Host) -> Result<Option<HostClaim>, ReadError> {
        const CLAIM: &str = "SELECT claim FROM hosts WHERE host = ?1";
        let text = self.text(CLAIM, host.as_str())?;
        text.map(|text| {
            HostClaim::parse(text.as_bytes(), host)
                .map_err(|why| invalid(format!("the claim of {host} in the database"), why))
        })
        .transpose()
    }

    pub(in crate::store) fn host_claims(&self) -> Result<Vec<HostClaim>, ReadError> {
        let texts = self.database.transact(READ, Repeat::Always, |link, _now| {
            let rows = link.rows("SELECT claim FROM hosts", &[])?.into_iter();
            rows.map(|mut row| row.text())
                .collect::<Result<Vec<_>, _>>()
        });
        let texts = texts.map_err(store_error)?;
        let parse = |text: &String| {
            HostClaim::parse_any(text.as_bytes())
                .map_err(|why| invalid("the claim of a host in the database".to_owned(), why))
        };
        texts.iter().map(parse).collect()
    }

    /// Returns the text of a row.
    fn text(&self, sql: &'static str, key: &str) -> Result<Option<String>, FileError> {
        let text = self.database.transact(READ, Repeat::Always, |link, _now| {
            let row = link.rows(sql, &[Value::Text(key)])?.into_iter().next();
            row.map(|mut row| row.text()).transpose()
        });
        text.map_err(store_error)
    }

    pub(in crate::store) fn lock_sites(&self) -> Result<SitesLock, SiteError> {
        let lease = Lease::wait(&self.database, "sites", SITES_WAIT).map_err(store_error)?;
        match lease {
            Some(lease) => Ok(SitesLock {
                hold: SitesHold::Lease(lease),
            }),
            None => Err(self.busy("another process changes site records").into()),
        }
    }

    fn busy(&self, why: &'static str) -> FileError {
        store_error(DatabaseError::unavailable(io::Error::other(why)))
    }

    pub(in crate::store) fn change_site(
        &self,
        lock: &SitesLock,
        change: &SiteChange,
    ) -> Result<(), SiteError> {
        let SitesHold::Lease(lease) = &lock.hold else {
            return Err(self.busy("the lock is of another store").into());
        };
        // A repeat after a commit without an answer would write a second entry.
        let repeat = Repeat::BeforeCommit;
        let changed =
            self.database
                .transact(WRITE, repeat, |link, now| match lease.check(link, now)? {
                    true => write_change(link, now, change).map(Some),
                    false => Ok(None),
                });
        match changed.map_err(store_error)? {
            Some(revision) => {
                self.changed(revision);
                Ok(())
            }
            None => Err(self.busy("the lock of site records was lost").into()),
        }
    }

    pub(in crate::store) fn audit(&self, filter: &Filter) -> Result<Page, ReadError> {
        const ENTRIES: &str = "SELECT entry FROM audit WHERE id < ?1 \
             AND (?2::text IS NULL OR project = ?2) AND (?3::text IS NULL OR owner = ?3) \
             AND (?4::text IS NULL OR project IN \
             (SELECT json_array_elements_text(?4::text::json))) ORDER BY id DESC LIMIT ?5";
        let projects = filter.projects.as_ref().map(list);
        let entries = self.database.transact(READ, Repeat::Always, |link, _now| {
            let values = [
                filter.before.unwrap_or(u64::MAX).into(),
                filter.project.as_deref().into(),
                filter.owner.as_deref().into(),
                projects.as_deref().into(),
                (filter.limit as u64).into(),
            ];
            let rows = link.rows(ENTRIES, &values)?;
            rows.into_iter()
                .map(|mut row| row.text())
                .collect::<Result<Vec<_>, _>>()
        });
        let entries = entries.map_err(store_error)?;
        let parse = |text: &String| {
            serde_json::from_str(text).map_err(|error| ReadError::Damaged {
                what: "an entry of the audit log in the database".to_owned(),
                why: error.to_string(),
            })
        };
        Ok(Page {
            entries: entries.iter().map(parse).collect::<Result<_, _>>()?,
            before: None,
        })
    }

    // === Domains ===

    pub(in crate::store) fn domain_check(
        &self,
        project: &ProjectId,
        host: &Host,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        const CHECK: &str = "SELECT content FROM domain_checks WHERE project = ?1 AND host = ?2";
        let values = [Value::Text(project.as_str()), Value::Text(host.as_str())];
        let content = self.database.transact(READ, Repeat::Always, |link, _now| {
            let row = link.rows(CHECK, &values)?.into_iter().next();
            row.map(|mut row| row.bytes()).transpose()
        });
        Ok(content.map_err(store_error)?)
    }

    pub(in crate::store) fn put_domain_check(
        &self,
        project: &ProjectId,
        host: &Host,
        bytes: Option<&[u8]>,
    ) -> Result<(), FileError> {
        const PUT: &str = "INSERT INTO domain_checks VALUES (?1, ?2, ?3) \
             ON CONFLICT (project, host) DO UPDATE SET content = excluded.content";
        const REMOVE: &str = "DELETE FROM domain_checks WHERE project = ?1 AND host = ?2";
        let (project, host) = (Value::Text(project.as_str()), Value::Text(host.as_str()));
        let put = self
            .database
            .transact(WRITE, Repeat::Always, |link, _now| match bytes {
                Some(bytes) => link.execute(PUT, &[project, host, Value::Bytes(bytes)]),
                None => link.execute(REMOVE, &[project, host]),
            });
        put.map(|_one| ()).map_err(store_error)
    }

    pub(in crate::store) fn request_domain_check(
        &self,
        project: &ProjectId,
        host: &Host,
    ) -> Result<(), FileError> {
        const REQUEST: &str = "INSERT INTO domain_requests VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        let values = [Value::Text(project.as_str()), Value::Text(host.as_str())];
        let requested = self.database.transact(WRITE, Repeat::Always, |link, _now| {
            link.execute(REQUEST, &values)
        });
        requested.map(|_one| ()).map_err(store_error)
    }

    pub(in crate::store) fn take_domain_check_requests(
        &self,
    ) -> Result<Vec<(ProjectId, Host)>, FileError> {
        const ANY: &str = "SELECT 1 FROM domain_requests LIMIT 1";
        const TAKE: &str = "DELETE FROM domain_requests RETURNING project, host";
        let taken = self
            .database
            .transact(WRITE, Repeat::BeforeCommit, |link, _now| {
                if link.rows(ANY, &[])?.is_empty() {
                    return Ok(Vec::new());
                }
                let rows = link.rows(TAKE, &[])?.into_iter();
                rows.map(|mut row| Ok((row.text()?, row.text()?))).collect()
            });
        let taken = taken.map_err(store_error)?.into_iter();
        let parse = |(project, host): (String, String)| {
            Some((ProjectId::parse(&project).ok()?, Host::parse(&host).ok()?))
        };
        Ok(taken.filter_map(parse).collect())
    }

    pub(in crate::store) fn lead_verification(&self) -> Result<Option<Lease>, FileError> {
        Lease::wait(&self.database, "verification", Duration::ZERO).map_err(store_error)
    }

    pub(in crate::store) fn lock_owner(
        &self,
        owner: &str,
        timeout: Duration,
    ) -> Result<Option<Lease>, FileError> {
        let name = format!("owner/{}", Digest::of(owner.as_bytes()));
        Lease::wait(&self.database, &name, timeout).map_err(store_error)
    }

    pub(in crate::store) fn verification_key(&self) -> Result<Vec<u8>, FileError> {
        const MAKE: &str = "INSERT INTO secrets VALUES ('verification-key', ?1) \
             ON CONFLICT (name) DO NOTHING";
        const KEY: &str = "SELECT value FROM secrets WHERE name = 'verification-key'";
        let read = self.database.transact(READ, Repeat::Always, |link, _now| {
            let row = link.rows(KEY, &[])?.into_iter().next();
            row.map(|mut row| row.bytes()).transpose()
        });
        if let Some(key) = read.map_err(store_error)? {
            return Ok(key);
        }
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(|_none| self.busy("there are no random bytes"))?;
        let made = self.database.transact(WRITE, Repeat::Always, |link, _now| {
            link.execute(MAKE, &[Value::Bytes(&key)])?;
            link.one(KEY, &[])?.bytes()
        });
        made.map_err(store_error)
    }

    pub(in crate::store) fn replace_verification_key(&self, key: &[u8]) -> Result<(), FileError> {
        const PUT: &str = "INSERT INTO secrets VALUES ('verification-key', ?1) \
             ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        let put = self.database.transact(WRITE, Repeat::Always, |link, _now| {
            link.execute(PUT, &[Value::Bytes(key)])
        });
        put.map(|_one| ()).map_err(store_error)
    }
}

/// Lets only this transaction change the pointer of a project.
pub(super) fn lock_pointer(link: &Link, project: &ProjectId) -> Result<(), DatabaseError> {
    // There may be no row yet that could be locked.
    const LOCK: &str =
        "SELECT pg_advisory_xact_lock(hashtextextended('waypost/' || ?1::text, 0))::text";
    link.rows(LOCK, &[Value::Text(project.as_str())])
        .map(|_one| ())
}

pub(super) fn read_pointer(
    link: &Link,
    project: &ProjectId,
) -> Result<Result<Option<Pointer>, InvalidPointer>, DatabaseError> {
    const POINTER: &str = "SELECT pointer FROM pointers WHERE project = ?1";
    let row = link.rows(POINTER, &[Value::Text(project.as_str())])?;
    let Some(mut row) = row.into_iter().next() else {
        return Ok(Ok(None));
    };
    Ok(Pointer::parse(row.text()?.as_bytes(), project).map(Some))
}

pub(super) fn write_pointer(
    link: &Link,
    project: &ProjectId,
    pointer: &Pointer,
) -> Result<(), DatabaseError> {
    const POINTER: &str = "INSERT INTO pointers VALUES (?1, ?2) \
         ON CONFLICT (project) DO UPDATE SET pointer = excluded.pointer";
    const OTHERS: &str = "DELETE FROM named WHERE project = ?1 AND release NOT IN \
         (SELECT json_array_elements_text(?2::text::json))";
    const NAMED: &str = "INSERT INTO named SELECT ?1, json_array_elements_text(?2::text::json) \
         ON CONFLICT DO NOTHING";
    let text = String::from_utf8(pointer.to_bytes(project))
        .map_err(|_bytes| DatabaseError::Corrupt("a pointer is no text".to_owned()))?;
    let project = Value::Text(project.as_str());
    let releases = list(pointer.promotions().map(|kept| *kept.release.digest()));
    link.execute(POINTER, &[project, Value::Text(&text)])?;
    link.execute(OTHERS, &[project, Value::Text(&releases)])?;
    link.execute(NAMED, &[project, Value::Text(&releases)])?;
    Ok(())
}

/// Writes a change of a site record, and takes the next revision.
fn write_change(link: &Link, now: u64, change: &SiteChange) -> Result<u64, DatabaseError> {
    const RECORD: &str = "INSERT INTO sites VALUES (?1, ?2) \
         ON CONFLICT (project) DO UPDATE SET record = excluded.record";
    const REMOVE: &str = "DELETE FROM sites WHERE project = ?1";
    const NUMBERS: &str = "DELETE FROM numbers WHERE project = ?1";
    const CLAIM: &str = "INSERT INTO hosts VALUES (?1, ?2) \
         ON CONFLICT (host) DO UPDATE SET claim = excluded.claim";
    const RELEASE: &str = "DELETE FROM hosts WHERE host = ?1";
    const LAST: &str = "SELECT coalesce(max(id), 0) FROM audit";
    const ENTRY: &str = "INSERT INTO audit VALUES (?1, ?2, ?3, ?4)";
    let project = Value::Text(change.project.as_str());
    match &change.record {
        Some(record) => link.execute(RECORD, &[project, Value::Text(&record.to_text())])?,
        None => {
            link.execute(NUMBERS, &[project])?;
            link.execute(REMOVE, &[project])?
        }
    };
    for (host, claim) in change.claims() {
        let host = Value::Text(host.as_str());
        match claim {
            Some(claim) => link.execute(CLAIM, &[host, Value::Text(&claim.to_text())])?,
            None => link.execute(RELEASE, &[host])?,
        };
    }
    let mut entry = change.entry.clone();
    entry.id = link.one(LAST, &[])?.number()? + 1;
    let text = serde_json::to_string(&entry).expect("texts and numbers are JSON");
    let values = [
        entry.id.into(),
        Value::Text(&entry.project),
        Value::Text(&entry.owner),
        Value::Text(&text),
    ];
    link.execute(ENTRY, &values)?;
    super::changes::next(link, &change.project, now)
}

pub(super) fn parse_record(text: &str, project: &ProjectId) -> Result<SiteRecord, ReadError> {
    SiteRecord::parse(text.as_bytes(), project)
        .map_err(|why| invalid(format!("the site record of {project} in the database"), why))
}

fn invalid(what: String, why: InvalidRecord) -> ReadError {
    match why {
        InvalidRecord::Newer(_) => ReadError::Newer {
            what,
            why: why.to_string(),
        },
        why => ReadError::Damaged {
            what,
            why: crate::error::chain(&why),
        },
    }
}

pub(super) fn invalid_pointer(project: &ProjectId, why: InvalidPointer) -> ReadError {
    let what = format!("the pointer of {project} in the database");
    match why {
        InvalidPointer::Newer(_) => ReadError::Newer {
            what,
            why: why.to_string(),
        },
        why => ReadError::Damaged {
            what,
            why: crate::error::chain(&why),
        },
    }
}

pub(super) fn digest(text: &str) -> Result<Digest, DatabaseError> {
    Digest::parse(text).map_err(|_invalid| DatabaseError::Corrupt(format!("the digest {text:?}")))
}
