//! Putting a release whose files arrive one after the other.
//!
//! A build runs in a process that cannot write to the store. Its parent reads the files of the
//! release from the output of that process and puts them. This needs the memory
//! of one batch of files, however large the release is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::layout::WriterLock;
use super::{BATCH_FILES, Local, Missing, durable, holds, touch};
use crate::digest::Digest;
use crate::release::{Inventory, Item, ReleaseId};
use crate::store::PutError;

/// How many bytes of files a batch may have; one file may be longer.
const BATCH_BYTES: usize = 16 << 20;

impl Local {
    /// Puts the release of an inventory.
    ///
    /// `next` is called once for each different digest in ascending order. It returns the bytes of
    /// the file; `None` means that the store has the file. The bytes are checked here.
    pub(in crate::store) fn put_files(
        &self,
        inventory: &Inventory,
        next: &mut dyn FnMut(&Item) -> Result<Option<Bytes>, PutError>,
    ) -> Result<ReleaseId, PutError> {
        // The store has most files of a release already. Only the files themselves show how many
        // bytes must be written, so the free space is checked before each batch.
        self.check_space(0)?;
        let inventory_bytes = inventory.to_bytes();
        PutError::check_inventory(inventory_bytes.len() as u64)?;
        let writer = self.layout.lock_for_writer()?;
        let items: BTreeMap<Digest, &Item> = inventory
            .iter()
            .map(|(_, item)| (item.digest, item))
            .collect();
        let mut directories = BTreeSet::new();
        let (mut batch, mut batch_bytes) = (Vec::with_capacity(BATCH_FILES), 0);
        for (digest, item) in items {
            let path = self.layout.content(&digest);
            directories.extend(path.parent().map(Path::to_owned));
            let Some(bytes) = next(item)? else {
                // The read checks length and digest.
                self.read(item)?;
                if !touch(&path)? {
                    return Err(PutError::Missing(digest));
                }
                continue;
            };
            if bytes.len() as u64 != item.length || Digest::of(&bytes) != digest {
                return Err(PutError::Digest(digest));
            }
            if !holds(&path, &bytes)? || !touch(&path)? {
                batch_bytes += bytes.len();
                batch.push((path, bytes));
            }
            if batch.len() == BATCH_FILES || batch_bytes > BATCH_BYTES {
                self.write_batch(&writer, &mut batch)?;
                batch_bytes = 0;
            }
        }
        self.write_batch(&writer, &mut batch)?;
        // S1: every file first, and durably; then the inventory that names them.
        for directory in &directories {
            durable::flush_directory(directory)?;
        }
        let id = ReleaseId::of(Digest::of(&inventory_bytes));
        let mut inventory = std::iter::once((self.layout.inventory(id), &*inventory_bytes));
        self.keep(&writer, &mut inventory)?;
        Ok(id)
    }

    fn write_batch(
        &self,
        writer: &WriterLock,
        batch: &mut Vec<(PathBuf, Bytes)>,
    ) -> Result<(), PutError> {
        let bytes = batch.iter().map(|(_, bytes)| bytes.len() as u64);
        self.check_space(bytes.sum())?;
        let mut missing = batch
            .iter()
            .map(|(path, bytes)| Missing {
                path: path.clone(),
                bytes,
            })
            .collect();
        Self::write(writer, &mut missing)?;
        batch.clear();
        Ok(())
    }
}
