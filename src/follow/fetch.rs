//! Fetches a release by digest into the cache: first its files, then its inventory.
//!
//! Files that the cache has are not fetched. After a kill in the middle, the files that were
//! complete are found again.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use super::cached::Space;
use super::client::FollowError;
use super::status::Status;
use super::upstream::Upstream;
use crate::digest::Digest;
use crate::parallel;
use crate::release::{INVENTORY_BYTES_MAX, Inventory, Item, ReleaseId};
use crate::store::{PromoteError, PutError, Store};

/// How many files are fetched at once, for one release.
const PARALLEL: usize = 6;
/// How many files, and how many bytes of files, are fetched before they are written.
const STEP_FILES: usize = 64;
const STEP_BYTES: u64 = 16 << 20;

/// Fetches releases.
#[derive(Debug)]
pub(super) struct Fetcher<'f> {
    pub(super) client: &'f Upstream,
    pub(super) store: &'f Store,
    pub(super) space: &'f Space,
    pub(super) status: &'f Status,
    pub(super) object_bytes_max: u64,
}

/// What is known of the files of a release that the cache does not have.
struct Missing {
    /// By ascending digest.
    items: Vec<Item>,
    /// How many were fetched, or begun to be.
    next: usize,
    fetched: HashMap<Digest, Bytes>,
}

impl Fetcher<'_> {
    /// Brings a whole release into the cache, and then calls `name`, which writes the pointer. In
    /// between no file of it is removed.
    pub(super) fn release(
        &self,
        release: ReleaseId,
        name: &dyn Fn() -> Result<(), FollowError>,
    ) -> Result<(), FollowError> {
        let writing = self.space.write();
        if self.has_whole(release) {
            match name() {
                // A sweep has removed a part of it.
                Err(FollowError::Promote(PromoteError::UnknownRelease(_))) => {}
                named => return named,
            }
        }
        drop(writing);
        let inventory = self.inventory(release)?;
        match self.put(&inventory, false, name) {
            // A file of the cache is damaged: read all of them, and fetch what is.
            Err(FollowError::Put(PutError::Existing(_) | PutError::Missing(_))) => {
                self.put(&inventory, true, name)
            }
            put => put,
        }
    }

    /// Returns whether the cache has a release with all its files. It may have an inventory without
    /// them: a gateway with a shared store reads the inventories of all releases when it sweeps.
    fn has_whole(&self, release: ReleaseId) -> bool {
        let has = |item: &Item| self.store.open(item).is_ok();
        let inventory = self.store.inventory(release);
        inventory.is_ok_and(|inventory| inventory.iter().all(|(_, item)| has(item)))
    }

    fn inventory(&self, release: ReleaseId) -> Result<Inventory, FollowError> {
        let bytes = self.client.object(release.digest(), INVENTORY_BYTES_MAX)?;
        self.status.fetched_bytes.inc_by(bytes.len() as u64);
        let invalid = |why: String| FollowError::Release { release, why };
        let inventory = Inventory::parse(&bytes).map_err(|error| invalid(error.to_string()))?;
        if inventory.id() != release {
            return Err(invalid("its inventory is not in the usual form".to_owned()));
        }
        let most = self.object_bytes_max;
        if let Some((path, length)) = inventory.longer_than(most) {
            return Err(invalid(format!(
                "{path} has {length} bytes, and at most {most} are fetched \
                 (`store.follow.object_bytes_max`)"
            )));
        }
        Ok(inventory)
    }

    fn put(
        &self,
        inventory: &Inventory,
        verify: bool,
        name: &dyn Fn() -> Result<(), FollowError>,
    ) -> Result<(), FollowError> {
        let items: BTreeMap<Digest, &Item> = inventory
            .iter()
            .map(|(_, item)| (item.digest, item))
            .collect();
        let has = |item: &Item| match verify {
            true => self.store.read(item).is_ok(),
            false => self.store.open(item).is_ok(),
        };
        let missing = items.into_values().filter(|item| !has(item));
        let missing: Vec<Item> = missing.cloned().collect();
        let bytes = missing.iter().map(|item| item.length);
        let bytes = bytes.fold(0, u64::saturating_add);
        let reserved = self.space.reserve(self.store, bytes)?;
        let _writing = self.space.write();
        let mut missing = Missing {
            items: missing,
            next: 0,
            fetched: HashMap::new(),
        };
        // What the store asks for may fail for a reason that is not the store's.
        let mut failed = None;
        let put = self.store.put_files(inventory, &mut |item| {
            if let Some(bytes) = missing.fetched.remove(&item.digest) {
                return Ok(Some(bytes));
            }
            // Making space may have removed a file that was there.
            let is_next = missing.items.get(missing.next);
            if is_next.is_none_or(|next| next.digest != item.digest) {
                if self.store.open(item).is_ok() {
                    return Ok(None);
                }
                missing.items.insert(missing.next, item.clone());
            }
            match self.step(&mut missing) {
                Ok(()) => Ok(missing.fetched.remove(&item.digest)),
                Err(error) => {
                    failed = Some(error);
                    Err(PutError::Missing(item.digest))
                }
            }
        });
        match (put, failed) {
            (_, Some(error)) => Err(error),
            (Err(error), None) => Err(error.into()),
            (Ok(_release), None) => {
                reserved.written();
                name()
            }
        }
    }

    /// Fetches the next files at once.
    fn step(&self, missing: &mut Missing) -> Result<(), FollowError> {
        let rest = &missing.items[missing.next..];
        let mut bytes = 0_u64;
        let fits = |item: &&Item| {
            bytes = bytes.saturating_add(item.length);
            bytes <= STEP_BYTES
        };
        // One file is fetched whatever its length is.
        let count = rest.iter().take(STEP_FILES).take_while(fits).count().max(1);
        let step: &[Item] = &rest[..count.min(rest.len())];
        let fetched = parallel::try_map(step, PARALLEL, |item| {
            let bytes = self.client.object(&item.digest, item.length)?;
            self.status.fetched_bytes.inc_by(bytes.len() as u64);
            Ok::<_, FollowError>((item.digest, Bytes::from(bytes)))
        })?;
        missing.next += step.len();
        missing.fetched.extend(fetched);
        Ok(())
    }
}
