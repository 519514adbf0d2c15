//! The files of a site's release, at hand for whoever serves its pages.
//!
//! Pages are not held in memory: a platform has more of them than memory, and most are
//! asked for seldom. What is held is the inventory of the release, so that a request finds
//! its file without asking the store, and the files that were sent lately, by digest, so
//! that pages of several sites and releases with the same bytes are there once.
//!
//! A file is read by the request that misses it: on a local disk one `open` and one `read`
//! of some kilobytes that the system most likely has in memory.
//!
//! Limits: a file is sent whole, from memory; there are no ranges.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::answer::Encoding;
use crate::answer::encoding::{Accepted, Effort};
use crate::digest::Digest;
use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::release::{Inventory, Item};
use crate::render::manifest::Manifest;
use crate::store::{ReadError, Store};

/// How many bytes of files are kept at hand, for all sites together.
const CACHE_BYTES_MAX: usize = 64 << 20;
/// How long a file may be to be kept.
const CACHED_FILE_BYTES_MAX: usize = 1 << 20;

/// The files of one release of one site.
#[derive(Debug)]
pub struct Files {
    store: Arc<Store>,
    cache: Arc<Cache>,
    inventory: Inventory,
    /// What no file name says.
    pub manifest: Manifest,
    /// The address of the site on its canonical host, without a slash at the end.
    pub address: Box<str>,
    /// When the release was promoted, in seconds after the Unix epoch.
    pub promoted_at: u64,
}

/// A file as it is sent.
#[derive(Clone, Debug)]
pub struct File {
    /// Its bytes, in its encoding.
    pub bytes: Bytes,
    /// Its encoding.
    pub encoding: Encoding,
    /// The digest of its bytes before they were encoded.
    pub digest: Digest,
}

/// Files that were sent lately, in two generations: when the young one has half of the
/// room, it becomes the old one, and what was not asked for since is forgotten.
#[derive(Debug, Default)]
pub struct Cache {
    generations: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Digest, File>,
    old: HashMap<Digest, File>,
    young_bytes: usize,
}

// === impl Files ===

impl Files {
    /// Takes a release's inventory and manifest to serve its files from.
    #[must_use]
    pub fn new(
        store: Arc<Store>,
        cache: Arc<Cache>,
        inventory: Inventory,
        manifest: Manifest,
        address: &str,
        promoted_at: u64,
    ) -> Self {
        Self {
            store,
            cache,
            inventory,
            manifest,
            address: address.trim_end_matches('/').into(),
            promoted_at,
        }
    }

    /// Returns a line of the inventory.
    #[must_use]
    pub fn item(&self, path: &str) -> Option<&Item> {
        self.inventory.get(path)
    }

    /// Reads a file in the best coding that the client takes and the release has.
    ///
    /// # Errors
    ///
    /// When the store does not give it out.
    pub fn read(&self, path: &str, accepted: Accepted) -> Result<Option<File>, ReadError> {
        let Some(identity) = self.item(path) else {
            return Ok(None);
        };
        let coded = Encoding::CODED
            .into_iter()
            .filter(|encoding| accepted.takes(*encoding))
            .find_map(|encoding| {
                let item = self.item(&format!("{path}{}", encoding.suffix()))?;
                Some((encoding, item))
            });
        let (encoding, item) = coded.unwrap_or((Encoding::Identity, identity));
        let read = || {
            Ok(File {
                bytes: self.store.read(item)?,
                encoding,
                digest: identity.digest,
            })
        };
        self.cache.get(item.digest, read).map(Some)
    }

    /// Reads a file with `address` in the place of the placeholder of the base URL.
    ///
    /// # Errors
    ///
    /// When the store does not give it out.
    pub fn read_addressed(
        &self,
        path: &str,
        address: &str,
        accepted: Accepted,
    ) -> Result<Option<File>, ReadError> {
        let Some(item) = self.item(path) else {
            return Ok(None);
        };
        let codings = Encoding::CODED.into_iter();
        let encoding = codings
            .into_iter()
            .find(|encoding| accepted.takes(*encoding));
        let encoding = encoding.unwrap_or(Encoding::Identity);
        let name = format!("{} {address} {}", item.digest, encoding.suffix());
        let read = || {
            let bytes = addressed(&self.store.read(item)?, address);
            let digest = Digest::of(&bytes);
            Ok(match encoding.encode(&bytes, Effort::Load) {
                Some(coded) => File {
                    bytes: coded.into(),
                    encoding,
                    digest,
                },
                None => File {
                    bytes,
                    encoding: Encoding::Identity,
                    digest,
                },
            })
        };
        self.cache.get(Digest::of(name.as_bytes()), read).map(Some)
    }
}

/// Puts an address in the place of the placeholder.
pub(super) fn addressed(bytes: &Bytes, address: &str) -> Bytes {
    let finder = memchr::memmem::Finder::new(BASE_URL_PLACEHOLDER);
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest: &[u8] = bytes;
    while let Some(at) = finder.find(rest) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(address.as_bytes());
        rest = &rest[at + BASE_URL_PLACEHOLDER.len()..];
    }
    out.extend_from_slice(rest);
    out.into()
}

// === impl Cache ===

impl Cache {
    /// Returns what has this name, made now when it is not at hand.
    fn get(
        &self,
        name: Digest,
        make: impl FnOnce() -> Result<File, ReadError>,
    ) -> Result<File, ReadError> {
        if let Some(file) = self.find(name) {
            return Ok(file);
        }
        // Not under the lock: several requests may read the same file, none waits for a disk.
        let file = make()?;
        if file.bytes.len() <= CACHED_FILE_BYTES_MAX {
            self.lock().put(name, file.clone());
        }
        Ok(file)
    }

    fn find(&self, name: Digest) -> Option<File> {
        let mut generations = self.lock();
        if let Some(file) = generations.young.get(&name) {
            return Some(file.clone());
        }
        let file = generations.old.remove(&name)?;
        generations.put(name, file.clone());
        Some(file)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Generations> {
        self.generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Generations ===

impl Generations {
    fn put(&mut self, name: Digest, file: File) {
        if self.young_bytes + file.bytes.len() > CACHE_BYTES_MAX / 2 {
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

    fn file(bytes: usize) -> File {
        let bytes = Bytes::from(vec![0; bytes]);
        File {
            digest: Digest::of(&bytes),
            encoding: Encoding::Identity,
            bytes,
        }
    }

    #[test]
    fn what_is_asked_for_stays_and_the_rest_goes() {
        let cache = Cache::default();
        let size = CACHED_FILE_BYTES_MAX;
        let name = |n: usize| Digest::of(&n.to_le_bytes());
        let fits = CACHE_BYTES_MAX / 2 / size;
        for n in 0..4 * fits {
            cache.get(name(n), || Ok(file(size))).unwrap();
            assert!(cache.find(name(0)).is_some(), "{n}");
        }
        assert!(cache.find(name(1)).is_none());
        let generations = cache.lock();
        let kept = generations.young.len() + generations.old.len();
        assert!(kept * size <= CACHE_BYTES_MAX, "{kept}");
    }

    #[test]
    fn an_address_takes_the_place_of_the_placeholder() {
        let text = format!("{BASE_URL_PLACEHOLDER}/a {BASE_URL_PLACEHOLDER}");
        assert_eq!(
            addressed(&text.into(), "https://x.test/b"),
            "https://x.test/b/a https://x.test/b"
        );
    }
}
