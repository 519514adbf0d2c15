//! The check: reads every object that a pointer needs, and puts back what the cache still has.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use super::objects::Upload;
use super::{Shared, store_error};
use crate::database::{DatabaseError, READ, Repeat, Value, WRITE};
use crate::digest::Digest;
use crate::release::{Item, ReleaseId};
use crate::store::{CheckResult, Damage, FileError, PromoteError, ReadError};

impl Shared {
    pub(in crate::store) fn check(
        &self,
        repair: bool,
        now: SystemTime,
    ) -> Result<CheckResult, PromoteError> {
        let mut checked = CheckResult::default();
        let mut releases = BTreeSet::new();
        for project in self.pointers()? {
            checked.projects += 1;
            match self.current(&project) {
                Ok(pointer) => {
                    let promotions = pointer.iter().flat_map(|pointer| pointer.promotions());
                    releases.extend(promotions.map(|kept| *kept.release.digest()));
                }
                Err(error @ (ReadError::Damaged { .. } | ReadError::Newer { .. })) => {
                    checked.damages.push(Damage {
                        what: crate::error::chain(&error),
                        repaired: None,
                    });
                }
                Err(error) => return Err(error.into()),
            }
        }
        checked.releases = releases.len() as u64;
        let mut items: BTreeMap<Digest, Item> = BTreeMap::new();
        for release in &releases {
            self.check_object(release, None, repair, &mut checked)?;
            match self.inventory(ReleaseId::of(*release)) {
                Ok(inventory) => items.extend(
                    inventory
                        .iter()
                        .map(|(_, item)| (item.digest, item.clone())),
                ),
                // It was reported.
                Err(ReadError::Damaged { .. } | ReadError::UnknownRelease(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for (digest, item) in &items {
            checked.files += 1;
            checked.bytes += item.length;
            self.check_object(digest, Some(item), repair, &mut checked)?;
        }
        (checked.orphans, checked.orphan_bytes) = self.orphans(&items, &releases)?;
        // The sweep needs every inventory that is named.
        let is_whole = checked
            .damages
            .iter()
            .all(|damage| damage.repaired.is_some());
        if repair && is_whole {
            checked.swept = self.sweep(now)?;
            let day = std::time::Duration::from_secs(24 * 60 * 60);
            checked.swept.leftovers += self.remove_leftovers(now - day)?;
        }
        Ok(checked)
    }

    /// Reads one object. A damaged or missing one is written again if the cache has its bytes.
    fn check_object(
        &self,
        digest: &Digest,
        item: Option<&Item>,
        repair: bool,
        checked: &mut CheckResult,
    ) -> Result<(), ReadError> {
        let what = match self.fetch(digest) {
            Ok(Some(bytes)) if item.is_none_or(|item| item.length == bytes.len() as u64) => {
                return Ok(());
            }
            Ok(Some(bytes)) => format!("{digest} has {} bytes", bytes.len()),
            Ok(None) => format!("{digest} is not in the store"),
            Err(error @ ReadError::Damaged { .. }) => crate::error::chain(&error),
            Err(error) => return Err(error),
        };
        let cached = match item {
            Some(item) => self.cache.read(item).ok(),
            None => {
                let inventory = self.cache.inventory(ReleaseId::of(*digest)).ok();
                inventory.map(|inventory| inventory.to_bytes().into())
            }
        };
        let repaired = match cached.filter(|_| repair) {
            Some(bytes) => {
                let digest = *digest;
                self.replace_object(Upload { digest, bytes })?;
                Some("written again from the cache of this machine".to_owned())
            }
            None => None,
        };
        checked.damages.push(Damage { what, repaired });
        Ok(())
    }

    fn replace_object(&self, upload: Upload) -> Result<(), FileError> {
        const ROW: &str = "INSERT INTO objects VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (digest) DO UPDATE SET object = excluded.object, \
             length = excluded.length, kept_at = excluded.kept_at";
        for written in self.objects()?.put(&[upload])? {
            let digest = written.digest.to_string();
            let replaced = self.database.transact(WRITE, Repeat::Always, |link, now| {
                let values = [
                    Value::Text(&digest),
                    Value::Text(&written.name),
                    written.length.into(),
                    now.into(),
                ];
                link.execute(ROW, &values)
            });
            replaced.map_err(store_error)?;
        }
        Ok(())
    }

    /// Counts the objects that no pointer needs.
    fn orphans(
        &self,
        items: &BTreeMap<Digest, Item>,
        releases: &BTreeSet<Digest>,
    ) -> Result<(u64, u64), FileError> {
        let all = self.database.transact(READ, Repeat::Always, |link, _now| {
            let rows = link.rows("SELECT digest, length FROM objects", &[])?;
            rows.into_iter()
                .map(|mut row| Ok((super::records::digest(&row.text()?)?, row.number()?)))
                .collect::<Result<Vec<_>, DatabaseError>>()
        });
        let all = all.map_err(store_error)?.into_iter();
        let unneeded =
            all.filter(|(digest, _)| !items.contains_key(digest) && !releases.contains(digest));
        Ok(unneeded.fold((0, 0), |(files, bytes), (_, length)| {
            (files + 1, bytes + length)
        }))
    }

    pub(in crate::store) fn content_bytes(&self) -> Result<u64, ReadError> {
        const BYTES: &str = "SELECT coalesce(sum(length), 0)::bigint FROM objects";
        let bytes = self.database.transact(READ, Repeat::Always, |link, _now| {
            link.one(BYTES, &[])?.number()
        });
        Ok(bytes.map_err(store_error)?)
    }
}
