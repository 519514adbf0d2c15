//! The bytes of the files of a release, on their way from the process that builds to its parent.
//!
//! The file `content` of a workspace has the bytes of all files that are not in a `known`
//! inventory, in any order, because several threads write. Then follows a list of their places: the
//! digest of each file and the byte at which it starts; at the end is the number of places.
//!
//! The parent does not trust the list: a file is what its digest says, lies in the bytes before the
//! list, and all files together have no more bytes than were written.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::workspace::Part;
use crate::build::Output;
use crate::digest::Digest;
use crate::release::{FILES_MAX, Inventory, Item, Release, ReleaseFile};
use crate::store::PutError;

pub(super) const DIGEST_BYTES: usize = 32;
/// The length of a number in a list of places.
pub(super) const COUNT_BYTES: usize = 8;
/// The length of the place of a file: its digest, and where it starts.
pub(super) const PLACE_BYTES: usize = DIGEST_BYTES + COUNT_BYTES;

/// Writes the files of a release into a workspace while a build makes them.
#[derive(Debug)]
pub(super) struct Writer {
    directory: PathBuf,
    part: Part,
    content: File,
    /// The files that need not be written.
    known: HashSet<Digest>,
    written: Mutex<WrittenFiles>,
}

/// The files that have been written.
#[derive(Debug, Default)]
struct WrittenFiles {
    /// Where each file starts.
    places: HashMap<Digest, u64>,
    /// Where the next file starts.
    end: u64,
    /// The first failure.
    error: Option<io::Error>,
}

/// The bytes of the files of a release that a process has written.
#[derive(Debug)]
pub(super) struct Content {
    known: HashSet<Digest>,
    /// Where each file starts.
    places: HashMap<Digest, u64>,
    /// Where the last file ends.
    end: u64,
    /// How many bytes may still be read.
    left: AtomicU64,
    file: File,
}

// === impl Writer ===

impl Writer {
    /// Starts to write one of the two releases of an update.
    pub(super) fn new(directory: &Path, part: Part, known: &[&Inventory]) -> io::Result<Self> {
        Ok(Self {
            directory: directory.to_owned(),
            part,
            content: open_for_writing(&directory.join(part.content()))?,
            known: digests(known),
            written: Mutex::default(),
        })
    }

    /// Writes a file, unless its bytes are written already.
    fn write(&self, file: &ReleaseFile) {
        if self.known.contains(&file.digest()) || !file.has_bytes() {
            return;
        }
        let start = {
            let mut written = self.written();
            let start = written.end;
            match written.places.entry(file.digest()) {
                Entry::Occupied(_) => return,
                Entry::Vacant(place) => place.insert(start),
            };
            written.end += file.length();
            start
        };
        // The place is reserved, so several threads write at the same time.
        if let Err(error) = self.content.write_all_at(&file.bytes, start) {
            self.written().error.get_or_insert(error);
        }
    }

    /// Writes the files of a release whose bytes are still in memory, then the list of places and
    /// the inventory.
    pub(super) fn finish(self, release: &Release) -> io::Result<()> {
        for (_, file) in release.files() {
            self.write(file);
        }
        let written = self.written.into_inner();
        let written = written.unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = written.error {
            return Err(error);
        }
        let mut list = Vec::with_capacity(written.places.len() * PLACE_BYTES + COUNT_BYTES);
        for (digest, start) in &written.places {
            list.extend_from_slice(digest.as_bytes());
            list.extend_from_slice(&start.to_le_bytes());
        }
        list.extend_from_slice(&(written.places.len() as u64).to_le_bytes());
        self.content.write_all_at(&list, written.end)?;
        let inventory = self.directory.join(self.part.inventory());
        open_for_writing(&inventory)?.write_all(release.inventory_bytes())
    }

    fn written(&self) -> MutexGuard<'_, WrittenFiles> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Output for Writer {
    fn take(&self, file: ReleaseFile) -> ReleaseFile {
        self.write(&file);
        file.without_bytes()
    }
}

/// Opens a file of the workspace and removes its content. The sandbox allows to change the files,
/// not to make new ones.
///
/// An empty file is not truncated: ext4 writes a file that was truncated to the disk when it is
/// closed (its option `auto_da_alloc`), but these files are soon removed.
fn open_for_writing(path: &Path) -> io::Result<File> {
    let file = fs::OpenOptions::new().write(true).open(path)?;
    if file.metadata()?.len() > 0 {
        file.set_len(0)?;
    }
    Ok(file)
}

// === impl Content ===

impl Content {
    /// Opens the file `content` of a workspace.
    pub(super) fn open(file: File, known: &[&Inventory]) -> io::Result<Self> {
        let (places, end) = places(&file)?;
        Ok(Self {
            known: digests(known),
            places,
            end,
            left: AtomicU64::new(end),
            file,
        })
    }

    /// Reads the file of an item; `None` when a known inventory has it. The caller checks the
    /// bytes, and reads each file once.
    pub(super) fn read(&self, item: &Item) -> Result<Option<Bytes>, PutError> {
        if self.known.contains(&item.digest) {
            return Ok(None);
        }
        let missing = || PutError::Missing(item.digest);
        let start = *self.places.get(&item.digest).ok_or_else(missing)?;
        // Lengths come from the process, too: files that share bytes must not make us read more
        // than it has written.
        let take = |left: u64| left.checked_sub(item.length);
        let left = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        let end = start.checked_add(item.length);
        if left.is_err() || end.is_none_or(|end| end > self.end) {
            return Err(missing());
        }
        let mut bytes = vec![0; usize::try_from(item.length).unwrap_or(usize::MAX)];
        let read = self.file.read_exact_at(&mut bytes, start);
        read.map_err(|error| PutError::Release(error.to_string()))?;
        Ok(Some(Bytes::from(bytes)))
    }
}

/// Reads the list of places at the end of a file that a [`Writer`] has written; returns it and the
/// byte at which it starts.
fn places(file: &File) -> io::Result<(HashMap<Digest, u64>, u64)> {
    let invalid = || io::Error::other("its content has no list of files");
    let length = file.metadata()?.len();
    let mut count = [0; COUNT_BYTES];
    let list_end = length.checked_sub(COUNT_BYTES as u64).ok_or_else(invalid)?;
    file.read_exact_at(&mut count, list_end)?;
    // The number comes from the process: it must not make us reserve more than there is.
    let count = usize::try_from(u64::from_le_bytes(count)).unwrap_or(usize::MAX);
    let list_bytes = count.checked_mul(PLACE_BYTES).ok_or_else(invalid)?;
    let start = list_end.checked_sub(list_bytes as u64);
    let start = start.filter(|_| count <= FILES_MAX).ok_or_else(invalid)?;
    let mut list = vec![0; list_bytes];
    file.read_exact_at(&mut list, start)?;
    let (places, _) = list.as_chunks::<PLACE_BYTES>();
    let place = |place: &[u8; PLACE_BYTES]| {
        let (digest, start) = place.split_first_chunk::<DIGEST_BYTES>()?;
        let start = start.first_chunk::<COUNT_BYTES>()?;
        Some((Digest::from_bytes(*digest), u64::from_le_bytes(*start)))
    };
    Ok((places.iter().filter_map(place).collect(), start))
}

fn digests(inventories: &[&Inventory]) -> HashSet<Digest> {
    let items = inventories.iter().flat_map(|inventory| inventory.iter());
    items.map(|(_, item)| item.digest).collect()
}
