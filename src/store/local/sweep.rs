//! The sweep: removes old releases and files that no pointer names.
//!
//! First, without a lock, it collects everything that a pointer names or that is young and may
//! be named soon. Then it removes the rest in small steps. Each step holds the store's exclusive
//! lock and checks the ages again, because a put or a promotion may have refreshed a file in
//! between.
//!
//! Inventories are removed first, durably. So a killed sweep may leave content without an
//! inventory, which the next sweep removes, but never an inventory without its content (S1).

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::layout::Access;
use super::{Local, durable, layout, modified};
use crate::digest::Digest;
use crate::release::ReleaseId;
use crate::store::durable::FileError;
use crate::store::{ReadError, Swept};

/// How many files are removed under one lock, while writers wait.
const STEP_FILES: usize = 256;

/// The result of the first part of a sweep.
#[derive(Default)]
struct Marked {
    /// Files that stay.
    content: HashSet<Digest>,
    /// Inventories that may be removed.
    unnamed: Vec<PathBuf>,
}

impl Local {
    pub(in crate::store) fn sweep(&self, now: SystemTime) -> Result<Swept, ReadError> {
        let retention = Duration::from_secs(self.retention.unnamed_seconds);
        let oldest = now.checked_sub(retention).unwrap_or(SystemTime::UNIX_EPOCH);
        let mut named = HashSet::new();
        for project in self.pointers()? {
            let pointer = self.current(&project)?;
            named.extend(
                pointer
                    .iter()
                    .flat_map(|p| p.promotions().map(|kept| *kept.release.digest())),
            );
        }
        self.remove_unnamed(&named, oldest)
    }

    pub(in crate::store) fn keep_only(
        &self,
        named: &HashSet<ReleaseId>,
    ) -> Result<Swept, ReadError> {
        let named = named.iter().map(|release| *release.digest()).collect();
        // Every file is older than a day from now.
        let oldest = self.clock.now() + Duration::from_secs(24 * 60 * 60);
        self.remove_unnamed(&named, oldest)
    }

    fn remove_unnamed(
        &self,
        named: &HashSet<Digest>,
        oldest: SystemTime,
    ) -> Result<Swept, ReadError> {
        let marked = self.mark(named, oldest)?;
        let mut swept = Swept {
            leftovers: self.remove_leftovers()?,
            ..Swept::default()
        };
        let (releases, _) = self.remove_old(&marked.unnamed, oldest)?;
        swept.releases = releases;
        for shard in self.layout.content_shards() {
            let unnamed: Vec<_> = list(&shard)?
                .into_iter()
                .filter(|path| {
                    layout::digest_of(path).is_some_and(|digest| !marked.content.contains(&digest))
                })
                .collect();
            let (files, bytes) = self.remove_old(&unnamed, oldest)?;
            swept.files += files;
            swept.bytes += bytes;
        }
        Ok(swept)
    }

    /// Finds the files that stay. When an inventory that is named cannot be read, the sweep ends
    /// and nothing is removed.
    fn mark(&self, named: &HashSet<Digest>, oldest: SystemTime) -> Result<Marked, ReadError> {
        let mut marked = Marked::default();
        for shard in self.layout.inventory_shards() {
            for path in list(&shard)? {
                let Some(digest) = layout::digest_of(&path) else {
                    continue;
                };
                let is_named = named.contains(&digest);
                let is_young = || Ok(modified(&path)?.is_some_and(|(time, _)| time >= oldest));
                if !is_named && !is_young().map_err(|error: FileError| ReadError::from(error))? {
                    marked.unnamed.push(path);
                    continue;
                }
                match self.inventory(ReleaseId::of(digest)) {
                    Ok(inventory) => marked
                        .content
                        .extend(inventory.iter().map(|(_, item)| item.digest)),
                    // It cannot be read, so nothing needs the files that it names.
                    Err(ReadError::Damaged { .. } | ReadError::UnknownRelease(_)) if !is_named => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(marked)
    }

    /// Removes the files that are still old. Returns how many there were, and their bytes.
    fn remove_old(&self, files: &[PathBuf], oldest: SystemTime) -> Result<(u64, u64), FileError> {
        let (mut count, mut bytes) = (0, 0);
        for step in files.chunks(STEP_FILES) {
            let _lock = self.layout.lock(Access::Exclusive)?;
            let mut directories = HashSet::new();
            for path in step {
                let Some((_, length)) = modified(path)?.filter(|(time, _)| *time < oldest) else {
                    continue;
                };
                durable::remove(path)?;
                directories.extend(path.parent());
                count += 1;
                bytes += length;
            }
            directories
                .into_iter()
                .try_for_each(durable::flush_directory)?;
        }
        Ok((count, bytes))
    }

    /// Removes the temporary files of killed writers: a living writer would hold the lock.
    fn remove_leftovers(&self) -> Result<u64, FileError> {
        let _lock = self.layout.lock(Access::Exclusive)?;
        let leftovers = self.layout.temporary_files()?;
        for path in &leftovers {
            durable::remove(path)?;
        }
        Ok(leftovers.len() as u64)
    }
}

pub(super) fn list(directory: &Path) -> Result<Vec<PathBuf>, FileError> {
    fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .map_err(FileError::on("list", directory))
}
