//! The large files that are being sent: each is open once, for all of its readers.
//!
//! Pieces are read at offsets, so readers share no position. A client can have a hundred streams on
//! one connection and read nothing: it must not use up the descriptors of the process. So the
//! number of open files is bounded, and a request for one more gets 503. An owner gets another file
//! only while fewer of its files are open than may still be opened. The same rule holds for a client,
//! because one client could read files of many owners. A file counts for the client that opened it.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::io;
use std::net::IpAddr;
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
    /// How many of the open files each owner has.
    owners: HashMap<Arc<str>, usize, RandomState>,
    /// How many of them each client has opened.
    clients: HashMap<IpAddr, usize, RandomState>,
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
    client: Option<IpAddr>,
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

    /// Returns the open file if it may be shared, or opens the file of an owner for a client, if
    /// there is one. It may block.
    ///
    /// # Errors
    ///
    /// [`TooManyOpenFiles`]; and when the file cannot be opened.
    pub(super) fn open(
        &self,
        (owner, client): (&Arc<str>, Option<IpAddr>),
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
        let of_client = client.and_then(|client| table.clients.get(&client).copied());
        if of_owner.max(of_client.unwrap_or_default()) >= left {
            drop(table);
            return Err(io::Error::other(TooManyOpenFiles));
        }
        table.count += 1;
        *table.owners.entry(Arc::clone(owner)).or_default() += 1;
        if let Some(client) = client {
            *table.clients.entry(client).or_default() += 1;
        }
        drop(table);
        let place = Place {
            owner: Arc::clone(owner),
            client,
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
        remove_one(&mut table.owners, &self.owner);
        if let Some(client) = &self.client {
            remove_one(&mut table.clients, client);
        }
        let is_gone = |file: &Weak<OpenFile>| file.strong_count() == 0;
        if table.files.get(&self.digest).is_some_and(is_gone) {
            table.files.remove(&self.digest);
        }
    }
}

/// Counts one less, and forgets who has none.
fn remove_one<K: Eq + Hash>(counts: &mut HashMap<K, usize, impl BuildHasher>, of: &K) {
    if let Some(count) = counts.get_mut(of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(of);
        }
    }
}

/// Each change leaves a valid table, so a panic under the lock does no harm.
fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
