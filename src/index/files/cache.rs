//! Files that were sent lately.
//!
//! Several shards, each with a lock of its own that is held for a lookup and never while a
//! file is read, so that the express lane can ask here. A shard has two generations: when
//! the young one has half of the room, it becomes the old one, and what was not asked for
//! since is forgotten.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::answer::Encoding;
use crate::digest::Digest;

/// How many bytes of files are kept at hand, for all sites together, unless it is said.
pub const CACHE_BYTES_MAX: usize = 64 << 20;
/// How long a file may be to be kept.
const FILE_BYTES_MAX: usize = 1 << 20;
/// How many shards; a power of two.
const SHARDS: usize = 16;

/// A file's bytes in some coding.
#[derive(Clone, Debug)]
pub(super) struct Coded {
    pub(super) bytes: Bytes,
    pub(super) encoding: Encoding,
    /// The digest of the bytes before they were encoded.
    pub(super) digest: Digest,
}

/// Files that were sent lately, by what names their bytes.
#[derive(Debug)]
pub struct Cache {
    shards: [Mutex<Generations>; SHARDS],
    /// How much a generation of a shard holds.
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Digest, Coded>,
    old: HashMap<Digest, Coded>,
    young_bytes: usize,
}

// === impl Cache ===

impl Default for Cache {
    fn default() -> Self {
        Self::new(CACHE_BYTES_MAX)
    }
}

impl Cache {
    /// Makes a cache that holds this many bytes at most.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self {
            shards: Default::default(),
            bytes_max: bytes_max / SHARDS / 2,
        }
    }

    pub(super) fn find(&self, name: &Digest) -> Option<Coded> {
        let mut generations = self.shard(name);
        if let Some(file) = generations.young.get(name) {
            return Some(file.clone());
        }
        let file = generations.old.remove(name)?;
        generations.put(*name, file.clone(), self.bytes_max);
        Some(file)
    }

    pub(super) fn put(&self, name: Digest, file: Coded) {
        if file.bytes.len() <= FILE_BYTES_MAX.min(self.bytes_max) {
            self.shard(&name).put(name, file, self.bytes_max);
        }
    }

    fn shard(&self, name: &Digest) -> MutexGuard<'_, Generations> {
        let shard = usize::from(name.as_bytes()[0]) % SHARDS;
        self.shards[shard]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Generations ===

impl Generations {
    fn put(&mut self, name: Digest, file: Coded, bytes_max: usize) {
        if self.young_bytes + file.bytes.len() > bytes_max {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += file.bytes.len();
        if let Some(before) = self.young.insert(name, file) {
            self.young_bytes -= before.bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_the_rest_goes() {
        let room = 1 << 20;
        let cache = Cache::new(room);
        let size = 4 << 10;
        let name = |n: usize| Digest::of(&n.to_le_bytes());
        let file = Coded {
            bytes: Bytes::from(vec![0; size]),
            encoding: Encoding::Identity,
            digest: name(0),
        };
        for n in 0..4 * room / size {
            cache.put(name(n), file.clone());
            assert!(cache.find(&name(0)).is_some(), "{n}");
        }
        assert!(cache.find(&name(1)).is_none());
        let kept = cache.shards.iter().map(|shard| {
            let shard = shard.lock().unwrap();
            shard.young.len() + shard.old.len()
        });
        let kept: usize = kept.sum();
        assert!(kept * size <= room, "{kept}");
    }

    #[test]
    fn a_file_over_the_limit_pushes_nothing_out() {
        let cache = Cache::new(64 << 20);
        let name = Digest::of(b"large");
        let bytes = Bytes::from(vec![0; FILE_BYTES_MAX + 1]);
        cache.put(
            name,
            Coded {
                bytes,
                encoding: Encoding::Identity,
                digest: name,
            },
        );
        assert!(cache.find(&name).is_none());
    }
}
