//! Releases: putting, promoting and reading them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;

use bytes::Bytes;

use super::objects::{Upload, Uploaded};
use super::{Shared, list, store_error};
use crate::database::{DatabaseError, Link, READ, Repeat, Value, WRITE};
use crate::digest::Digest;
use crate::release::{Inventory, Item, Release, ReleaseId};
use crate::site::ProjectId;
use crate::store::{
    ContentFile, Fence, FileError, InvalidPointer, Pointer, PromoteError, Promotion, PutError,
    ReadError, next_pointer,
};

/// How many objects, and how many bytes of objects, are written before their rows.
const BATCH_FILES: usize = 256;
const BATCH_BYTES: u64 = 32 << 20;
/// How many digests one statement has.
pub(super) const ROWS: usize = 5000;

/// The outcome of one try to promote.
enum Tried {
    Promoted(Pointer, Option<u64>),
    Stale(Fence),
    Unknown,
    /// The objects of the release must be kept from the sweep, so their digests are needed.
    Digests,
    Unreadable(InvalidPointer),
}

impl Shared {
    pub(in crate::store) fn put(&self, release: &Release) -> Result<ReleaseId, PutError> {
        if let Some((_, file)) = release.files().find(|(_, file)| !file.has_bytes()) {
            return Err(PutError::Missing(file.digest()));
        }
        let files: BTreeMap<Digest, &Bytes> = release
            .files()
            .zip(release.inventory().iter())
            .map(|((_, file), (_, item))| (item.digest, &file.bytes))
            .collect();
        self.put_files(release.inventory(), &mut |item| {
            Ok(files.get(&item.digest).map(|bytes| (*bytes).clone()))
        })
    }

    pub(in crate::store) fn put_files(
        &self,
        inventory: &Inventory,
        next: &mut dyn FnMut(&Item) -> Result<Option<Bytes>, PutError>,
    ) -> Result<ReleaseId, PutError> {
        let id = inventory.id();
        let items: BTreeMap<Digest, &Item> = inventory
            .iter()
            .map(|(_, item)| (item.digest, item))
            .collect();
        // S6: the cache checks all bytes, before one of them leaves this machine.
        self.cache
            .put_files(inventory, &mut |item| match next(item)? {
                Some(bytes) => Ok(Some(bytes)),
                None if self.cache.has_content(item)? => Ok(None),
                None => Ok(Some(self.read(item)?)),
            })?;
        let digests: Vec<Digest> = items.keys().copied().chain([*id.digest()]).collect();
        let known = self.refresh(&digests)?;
        let mut batch = Vec::new();
        let mut bytes = 0;
        for item in items.values().filter(|item| !known.contains(&item.digest)) {
            batch.push(Upload {
                digest: item.digest,
                bytes: self.cache.read(item)?,
            });
            bytes += item.length;
            if batch.len() == BATCH_FILES || bytes > BATCH_BYTES {
                self.upload(&std::mem::take(&mut batch))?;
                bytes = 0;
            }
        }
        self.upload(&batch)?;
        if !known.contains(id.digest()) {
            let bytes = inventory.to_bytes().into();
            self.upload(&[Upload {
                digest: *id.digest(),
                bytes,
            }])?;
        }
        self.put_row(id, &digests)?;
        Ok(id)
    }

    /// Keeps these objects from the sweep. Returns those of them that exist.
    fn refresh(&self, digests: &[Digest]) -> Result<HashSet<Digest>, FileError> {
        let mut known = HashSet::new();
        for digests in digests.chunks(ROWS) {
            let digests = list(digests);
            let found = self.database.transact(WRITE, Repeat::Always, |link, now| {
                refresh(link, &digests, now)
            });
            known.extend(found.map_err(store_error)?);
        }
        Ok(known)
    }

    /// Writes objects, and then their rows. Objects that another process has written meanwhile are
    /// removed again.
    fn upload(&self, uploads: &[Upload]) -> Result<(), FileError> {
        const ROW: &str = "INSERT INTO objects \
             SELECT digest, object, length, ?2 FROM json_to_recordset(?1::text::json) \
             AS given (digest text, object text, length bigint) \
             ON CONFLICT (digest) DO UPDATE SET kept_at = excluded.kept_at RETURNING object";
        if uploads.is_empty() {
            return Ok(());
        }
        let written = self.objects()?.put(uploads)?;
        let row = |one: &Uploaded| {
            serde_json::json!({
                "digest": one.digest.to_string(), "object": one.name, "length": one.length,
            })
        };
        // Sorted, so that two processes wait for each other in one order.
        let mut rows: Vec<_> = written.iter().collect();
        rows.sort_by_key(|one| one.digest);
        let rows = serde_json::Value::from_iter(rows.into_iter().map(row)).to_string();
        let kept = self.database.transact(WRITE, Repeat::Always, |link, now| {
            let kept = link.rows(ROW, &[Value::Text(&rows), now.into()])?;
            kept.into_iter().map(|mut row| row.text()).collect()
        });
        let kept: HashSet<String> = kept.map_err(store_error)?;
        let unused: Vec<String> = written
            .into_iter()
            .filter(|one| !kept.contains(&one.name))
            .map(|one| one.name)
            .collect();
        if !unused.is_empty()
            && let Err(error) = self.objects.remove(&unused)
        {
            // They are found as leftovers.
            log::warn!(target: "store", "cannot remove objects that another process has written too: {}", crate::error::chain(&error));
        }
        Ok(())
    }

    /// Writes the row of a release whose objects all have rows.
    fn put_row(&self, release: ReleaseId, digests: &[Digest]) -> Result<(), PutError> {
        const COUNT: &str = "SELECT count(*) FROM objects WHERE digest IN \
             (SELECT json_array_elements_text(?1::text::json))";
        const ROW: &str = "INSERT INTO releases VALUES (?1, ?2) \
             ON CONFLICT (release) DO UPDATE SET kept_at = excluded.kept_at";
        let chunks: Vec<String> = digests.chunks(ROWS).map(list).collect();
        let name = release.digest().to_string();
        let is_whole = self.database.transact(WRITE, Repeat::Always, |link, now| {
            let mut found = 0;
            for chunk in &chunks {
                found += link.one(COUNT, &[Value::Text(chunk)])?.number()?;
            }
            if found < digests.len() as u64 {
                return Ok(false);
            }
            link.execute(ROW, &[Value::Text(&name), now.into()])?;
            Ok(true)
        });
        match is_whole.map_err(store_error)? {
            true => Ok(()),
            // A sweep came between; the put is repeated.
            false => Err(PutError::Missing(*release.digest())),
        }
    }

    pub(in crate::store) fn promote(
        &self,
        project: &ProjectId,
        release: ReleaseId,
        fence: Fence,
    ) -> Result<Pointer, PromoteError> {
        let mut digests: Option<Vec<String>> = None;
        loop {
            let tried = self.database.transact(WRITE, Repeat::Always, |link, now| {
                self.try_promote(link, now, project, release, fence, digests.as_deref())
            });
            match tried.map_err(store_error)? {
                Tried::Promoted(pointer, revision) => {
                    if let Some(revision) = revision {
                        self.changed(revision);
                    }
                    return Ok(pointer);
                }
                Tried::Stale(current) => {
                    return Err(PromoteError::Stale {
                        current,
                        offered: fence,
                    });
                }
                Tried::Unreadable(why) => {
                    return Err(super::records::invalid_pointer(project, why).into());
                }
                Tried::Digests if digests.is_none() => {
                    let inventory = self.inventory(release)?;
                    let all: BTreeSet<Digest> = inventory
                        .iter()
                        .map(|(_, item)| item.digest)
                        .chain([*release.digest()])
                        .collect();
                    let all: Vec<Digest> = all.into_iter().collect();
                    digests = Some(all.chunks(ROWS).map(list).collect());
                }
                Tried::Unknown | Tried::Digests => {
                    return Err(PromoteError::UnknownRelease(release));
                }
            }
        }
    }

    fn try_promote(
        &self,
        link: &Link,
        now: u64,
        project: &ProjectId,
        release: ReleaseId,
        fence: Fence,
        digests: Option<&[String]>,
    ) -> Result<Tried, DatabaseError> {
        const RELEASE: &str = "SELECT kept_at FROM releases WHERE release = ?1 FOR NO KEY UPDATE";
        const KEPT: &str = "UPDATE releases SET kept_at = ?2 WHERE release = ?1";
        super::records::lock_pointer(link, project)?;
        let before = match super::records::read_pointer(link, project)? {
            Ok(before) => before,
            Err(why) => return Ok(Tried::Unreadable(why)),
        };
        let offered = Promotion {
            release,
            generation: fence.generation,
            epoch: fence.epoch,
            promoted_at: now / 1000,
        };
        let after = match next_pointer(before.clone(), offered, self.retention.releases) {
            Ok(Some(after)) => after,
            Ok(None) => {
                return Ok(match before {
                    Some(pointer) => Tried::Promoted(pointer, None),
                    None => Tried::Unknown,
                });
            }
            Err(PromoteError::Stale { current, .. }) => return Ok(Tried::Stale(current)),
            Err(_) => return Ok(Tried::Unknown),
        };
        if !before.is_some_and(|before| before.names(release)) {
            let name = release.digest().to_string();
            let found = link
                .rows(RELEASE, &[Value::Text(&name)])?
                .into_iter()
                .next();
            let Some(mut found) = found else {
                return Ok(Tried::Unknown);
            };
            // Its objects were kept then, so no sweep takes them for old for another half of the
            // retention time.
            let young = self.retention.unnamed_seconds * 1000 / 2;
            if found.number()? + young <= now {
                let Some(digests) = digests else {
                    return Ok(Tried::Digests);
                };
                let mut kept = 0;
                let mut all = 0;
                for chunk in digests {
                    kept += refresh(link, chunk, now)?.len();
                    all += serde_json::from_str::<Vec<&str>>(chunk).map_or(0, |all| all.len());
                }
                if kept < all {
                    return Ok(Tried::Unknown);
                }
            }
            link.execute(KEPT, &[Value::Text(&name), now.into()])?;
        }
        super::records::write_pointer(link, project, &after)?;
        let revision = super::changes::next(link, project, now)?;
        Ok(Tried::Promoted(after, Some(revision)))
    }

    pub(in crate::store) fn has_release(&self, release: ReleaseId) -> Result<bool, ReadError> {
        const RELEASE: &str = "SELECT release FROM releases WHERE release = ?1";
        let name = release.digest().to_string();
        let found = self.database.transact(READ, Repeat::Always, |link, _now| {
            Ok(!link.rows(RELEASE, &[Value::Text(&name)])?.is_empty())
        });
        Ok(found.map_err(store_error)?)
    }

    pub(in crate::store) fn inventory(&self, release: ReleaseId) -> Result<Inventory, ReadError> {
        match self.cache.inventory(release) {
            Err(ReadError::UnknownRelease(_) | ReadError::Damaged { .. }) => {}
            read => return read,
        }
        let bytes = self.fetch(release.digest())?;
        let bytes = bytes.ok_or(ReadError::UnknownRelease(release))?;
        let inventory = Inventory::parse(&bytes).map_err(|error| {
            ReadError::inventory(format!("the inventory of release {release}"), error)
        })?;
        self.kept(self.cache.keep_inventory(release, &bytes));
        Ok(inventory)
    }

    pub(in crate::store) fn read(&self, item: &Item) -> Result<Bytes, ReadError> {
        match self.cache.read(item) {
            Err(ReadError::UnknownContent(_) | ReadError::Damaged { .. }) => {}
            read => return read,
        }
        let bytes = self.fetch(&item.digest)?;
        let bytes = bytes.ok_or(ReadError::UnknownContent(item.digest))?;
        if bytes.len() as u64 != item.length {
            let (found, expected) = (bytes.len(), item.length);
            return Err(ReadError::Damaged {
                what: format!("the inventory that names {}", item.digest),
                why: format!("the file has {found} bytes, not {expected}"),
            });
        }
        self.kept(self.cache.keep_content(&item.digest, &bytes));
        Ok(bytes)
    }

    pub(in crate::store) fn open_content(&self, item: &Item) -> Result<ContentFile, ReadError> {
        match self.cache.open_content(item) {
            Err(ReadError::UnknownContent(_) | ReadError::Damaged { .. }) => {
                self.read(item)?;
                self.cache.open_content(item)
            }
            opened => opened,
        }
    }

    pub(in crate::store) fn object(
        &self,
        digest: &Digest,
    ) -> Result<Option<(File, u64)>, FileError> {
        if let Some(found) = self.cache.object(digest)? {
            return Ok(Some(found));
        }
        let fetched = self.fetch(digest).map_err(|error| match error {
            ReadError::File(error) => error,
            other => FileError::on("read", self.objects.place())(std::io::Error::other(other)),
        })?;
        match fetched {
            Some(bytes) => {
                self.cache.keep_content(digest, &bytes)?;
                self.cache.object(digest)
            }
            None => Ok(None),
        }
    }

    /// Fetches an object and checks its digest; `None` if the store has none.
    ///
    /// # Errors
    ///
    /// [`ReadError::Damaged`] when the object store has other bytes or none, although the
    /// database names the object.
    pub fn fetch(&self, digest: &Digest) -> Result<Option<Bytes>, ReadError> {
        const OBJECT: &str = "SELECT object FROM objects WHERE digest = ?1";
        let name = digest.to_string();
        let object = self.database.transact(READ, Repeat::Always, |link, _now| {
            let row = link.rows(OBJECT, &[Value::Text(&name)])?.into_iter().next();
            row.map(|mut row| row.text()).transpose()
        });
        let Some(object) = object.map_err(store_error)? else {
            return Ok(None);
        };
        let damaged = |why: &str| ReadError::Damaged {
            what: self.objects.place().join(&object).display().to_string(),
            why: why.to_owned(),
        };
        let bytes = self.objects()?.get(&object)?;
        let bytes = bytes.ok_or_else(|| damaged("the object store has no such object"))?;
        match Digest::of(&bytes) == *digest {
            true => Ok(Some(bytes)),
            false => Err(damaged("its digest is not its name")),
        }
    }

    /// Reports that a file could not be kept in the cache: the next read fetches it again.
    fn kept(&self, kept: Result<(), FileError>) {
        if let Err(error) = kept {
            log::warn!(target: "store", "cannot store a file in the cache: {}", crate::error::chain(&error));
        }
    }
}

/// Keeps objects from the sweep. Returns those that there are.
fn refresh(link: &Link, digests: &str, now: u64) -> Result<Vec<Digest>, DatabaseError> {
    // Locked in one order, so that two processes never wait for each other.
    const REFRESH: &str = "WITH known AS (SELECT digest FROM objects WHERE digest IN \
         (SELECT json_array_elements_text(?1::text::json)) ORDER BY digest FOR UPDATE) \
         UPDATE objects SET kept_at = ?2 FROM known WHERE objects.digest = known.digest \
         RETURNING objects.digest";
    let rows = link.rows(REFRESH, &[Value::Text(digests), now.into()])?;
    rows.into_iter()
        .map(|mut row| super::records::digest(&row.text()?))
        .collect()
}
