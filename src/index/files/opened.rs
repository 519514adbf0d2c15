//! The large files that are being sent: each is open once, for all of its readers.
//!
//! Pieces are read at offsets, so readers share no position. A client can have a hundred streams on
//! one connection and read nothing: it must not use up the descriptors of the process. So the
//! number of open files is bounded, and a request for one more gets 503. An owner gets another file
//! only while fewer of its files are open than are left for all others.

use std::collections::HashMap;
use std::io;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use foldhash::fast::RandomState;

use crate::digest::Digest;
use crate::response::TooManyOpenFiles;
use crate::store::{ContentFile, ReadError};

/// The files that are open.
#[derive(Clone, Debug)]
pub(super) struct OpenFiles {
    max: usize,
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    /// How many files are open. A file that was put again is open beside the earlier one.
    count: usize,
    files: HashMap<Digest, Weak<OpenFile>, RandomState>,
    /// How many of the open files each owner has opened.
    owners: HashMap<Arc<str>, usize, RandomState>,
}

/// A file that is open until its last reader has gone.
#[derive(Debug)]
pub(super) struct OpenFile {
    file: ContentFile,
    _place: Place,
}

/// Counts an open file.
#[derive(Debug)]
struct Place {
    owner: Arc<str>,
    digest: Digest,
    table: Arc<Mutex<Table>>,
}

// === impl OpenFiles ===

impl OpenFiles {
    /// Makes it for at most `max` files.
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            table: Arc::default(),
        }
    }

    /// Returns the open file if it may be shared, or opens the file for an owner. It may block.
    ///
    /// # Errors
    ///
    /// [`TooManyOpenFiles`]; and when the file cannot be opened.
    pub(super) fn open(
        &self,
        owner: &Arc<str>,
        digest: Digest,
        may_share: impl Fn(&ContentFile) -> bool,
        open: impl FnOnce() -> Result<ContentFile, ReadError>,
    ) -> io::Result<Arc<OpenFile>> {
        let mut table = lock(&self.table);
        let shared = table.files.get(&digest).and_then(Weak::upgrade);
        if let Some(shared) = &shared
            && may_share(shared)
        {
            return Ok(Arc::clone(shared));
        }
        let left = self.max.saturating_sub(table.count);
        let of_owner = table.owners.get(owner).copied().unwrap_or_default();
        if of_owner >= left {
            drop(table);
            return Err(io::Error::other(TooManyOpenFiles));
        }
        table.count += 1;
        table.owners.insert(Arc::clone(owner), of_owner + 1);
        drop(table);
        let place = Place {
            owner: Arc::clone(owner),
            digest,
            table: Arc::clone(&self.table),
        };
        let opened = Arc::new(OpenFile {
            file: open().map_err(io::Error::other)?,
            _place: place,
        });
        let mut table = lock(&self.table);
        // Another request may have opened the same file meanwhile.
        let other = table.files.get(&digest).and_then(Weak::upgrade);
        if let Some(other) = &other
            && other.modified() == opened.modified()
        {
            drop(table);
            return Ok(Arc::clone(other));
        }
        table.files.insert(digest, Arc::downgrade(&opened));
        drop(table);
        Ok(opened)
    }
}

// === impl OpenFile ===

impl Deref for OpenFile {
    type Target = ContentFile;

    fn deref(&self) -> &ContentFile {
        &self.file
    }
}

// === impl Place ===

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = lock(&self.table);
        table.count -= 1;
        if let Some(of_owner) = table.owners.get_mut(&self.owner) {
            *of_owner -= 1;
            if *of_owner == 0 {
                table.owners.remove(&self.owner);
            }
        }
        let is_gone = |file: &Weak<OpenFile>| file.strong_count() == 0;
        if table.files.get(&self.digest).is_some_and(is_gone) {
            table.files.remove(&self.digest);
        }
    }
}

/// Each change leaves a valid table, so a panic under the lock does no harm.
fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
