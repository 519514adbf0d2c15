//! A store as the cache of an edge: what another node has decided is written as it is.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use super::pointers::copy_of;
use super::{Local, durable, modified, sweep};
use crate::digest::Digest;
use crate::release::ReleaseId;
use crate::site::ProjectId;
use crate::store::durable::FileError;
use crate::store::{Pointer, PromoteError, Promotion, ReadError, SiteError, SiteRecord};

impl Local {
    /// Writes all records durably, many files at a time, and then removes the others.
    pub(in crate::store) fn replace_site_records(
        &self,
        records: &[(ProjectId, Option<SiteRecord>)],
    ) -> Result<(), SiteError> {
        let written: Vec<(PathBuf, String)> = records
            .iter()
            .filter_map(|(project, record)| {
                let record = record.as_ref()?;
                Some((self.layout.site_record(project), record.to_text()))
            })
            .collect();
        // Without a change, the disk may be read-only.
        if !written.is_empty() {
            let mut entries = written
                .iter()
                .map(|(path, text)| (path.clone(), text.as_bytes()));
            self.keep(&self.layout.lock_for_writer()?, &mut entries)?;
        }
        for (project, _) in records.iter().filter(|(_, record)| record.is_none()) {
            let path = self.layout.site_record(project);
            // Only a change by hand in this cache has made a copy.
            durable::remove(&copy_of(&path))?;
            if durable::remove(&path)?
                && let Some(directory) = path.parent()
            {
                durable::flush_directory(directory)?;
            }
        }
        Ok(())
    }

    pub(in crate::store) fn follow(
        &self,
        project: &ProjectId,
        current: Promotion,
    ) -> Result<(), PromoteError> {
        let writer = self.layout.lock_for_writer()?;
        let shard = self.lock_pointer(project)?;
        // A damaged pointer of a cache is replaced.
        let before = self.current(project).ok().flatten();
        self.refresh(current.release)?;
        let after = Pointer::promoted(before, current, self.retention.releases);
        self.write_pointer(&writer, project, &after)?;
        Ok(shard.flush()?)
    }

    /// Keeps a file whose bytes were checked.
    pub(in crate::store) fn keep_content(
        &self,
        digest: &Digest,
        bytes: &[u8],
    ) -> Result<(), FileError> {
        let writer = self.layout.lock_for_writer()?;
        let mut file = std::iter::once((self.layout.content(digest), bytes));
        self.keep(&writer, &mut file)
    }

    /// Keeps the inventory of a release, whose files may be missing.
    pub(in crate::store) fn keep_inventory(
        &self,
        release: ReleaseId,
        bytes: &[u8],
    ) -> Result<(), FileError> {
        let writer = self.layout.lock_for_writer()?;
        let mut file = std::iter::once((self.layout.inventory(release), bytes));
        self.keep(&writer, &mut file)
    }

    pub(in crate::store) fn object(
        &self,
        digest: &Digest,
    ) -> Result<Option<(File, u64)>, FileError> {
        let paths = [
            self.layout.content(digest),
            self.layout.inventory(ReleaseId::of(*digest)),
        ];
        for path in paths {
            match File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file))) {
                Ok((length, file)) => return Ok(Some((file, length))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(FileError::on("open", &path)(error)),
            }
        }
        Ok(None)
    }

    pub(in crate::store) fn content_bytes(&self) -> Result<u64, ReadError> {
        let mut bytes = 0;
        for shard in self.layout.content_shards() {
            for path in sweep::list(&shard)? {
                bytes += modified(&path)?.map_or(0, |(_, length)| length);
            }
        }
        Ok(bytes)
    }
}
