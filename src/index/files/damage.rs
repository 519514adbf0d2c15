//! The files of releases that were found damaged while they were read: the operator sees their
//! number, and the log names each once.
//!
//! A damaged file is found again with each rescan until its bytes are right, or the file is gone:
//! another release of the site may be served meanwhile, and then no request reads it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::digest::{Digest, Hasher};
use crate::release::Item;
use crate::store::{ReadError, Store};
use crate::telemetry::Part;

/// How many damaged files are remembered.
const REMEMBERED_MAX: usize = 1000;
/// How many bytes are read at once while a digest is checked.
const PIECE_BYTES: usize = 64 << 10;

/// The damaged files that were found.
#[derive(Debug, Default)]
pub(super) struct Damage {
    part: Option<Part>,
    found: Mutex<BTreeMap<Digest, Item>>,
}

// === impl Damage ===

impl Damage {
    /// Reports to this part of the process.
    pub(super) fn reporting_to(part: Part) -> Self {
        Self {
            part: Some(part),
            found: Mutex::default(),
        }
    }

    /// Notes the result of reading a file.
    pub(super) fn observe<T>(
        &self,
        item: &Item,
        read: Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        if let Err(error @ ReadError::Damaged { .. }) = &read {
            self.add(item, error);
        }
        read
    }

    /// Notes that a file is damaged.
    pub(super) fn add(&self, item: &Item, error: &ReadError) {
        let mut found = self.found();
        if found.len() >= REMEMBERED_MAX || found.insert(item.digest, item.clone()).is_some() {
            return;
        }
        self.report(found.len());
        drop(found);
        log::error!(target: "index", "a file of a release is damaged, and requests for it fail: {error} (publish the release again, or run `waypost store check --repair`)");
    }

    /// Reads the damaged files again, and forgets those that are right or gone. It may block.
    pub(super) fn check_again(&self, store: &Store) {
        let before: Vec<_> = self.found().values().cloned().collect();
        let well: Vec<_> = before
            .iter()
            .filter(|item| match is_whole(store, item) {
                Ok(is_whole) => is_whole,
                Err(ReadError::UnknownContent(_)) => true,
                Err(_) => false,
            })
            .collect();
        if well.is_empty() {
            return;
        }
        let mut found = self.found();
        for item in well {
            found.remove(&item.digest);
        }
        self.report(found.len());
    }

    fn report(&self, count: usize) {
        let Some(part) = &self.part else { return };
        match count {
            0 => part.recover(),
            1 => {
                part.note("1 file of a release is damaged");
            }
            _ => {
                part.note(&format!("{count} files of releases are damaged"));
            }
        }
    }

    /// Every change is one entry more or less, so the map is whole after a panic too.
    fn found(&self) -> MutexGuard<'_, BTreeMap<Digest, Item>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a file has its digest.
fn is_whole(store: &Store, item: &Item) -> Result<bool, ReadError> {
    let file = store.open(item)?;
    let mut hasher = Hasher::default();
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = 0;
    while at < item.length {
        let left = usize::try_from(item.length - at).unwrap_or(usize::MAX);
        let piece = &mut piece[..left.min(PIECE_BYTES)];
        file.read_at(piece, at)?;
        hasher.update(piece);
        at += piece.len() as u64;
    }
    Ok(hasher.finish() == item.digest)
}
