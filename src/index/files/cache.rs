//! Files that were sent lately, answers that were made of them, and the listings of the
//! releases that they are of.
//!
//! All lie on shelves, each with a lock of its own that is held for a lookup and never
//! while a file is read, so that the fast path can ask here. A shelf has two
//! generations: when the young one has half of the room, it becomes the old one, and what
//! was not asked for since is forgotten.
//!
//! Files have half of the room, and answers the other half; bytes that both hold are there
//! once and counted twice. Listings have half as much again, on one shelf: a release of
//! thousands of pages has a list that no share of a shelf would hold.

use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::digest::Digest;
use crate::release::ReleaseId;
use crate::response::encoding::Accepted;
use crate::response::{CachedResponse, Encoding};

use super::Listing;

/// How many bytes of files are kept at hand, for all sites together, unless it is said.
pub const CACHE_BYTES_MAX: usize = 64 << 20;
/// How long a file may be to be kept.
const FILE_BYTES_MAX: usize = 1 << 20;
/// How many shelves for files, and how many for answers; a power of two.
const SHELVES: usize = 16;

/// A file's bytes in some coding.
#[derive(Clone, Debug)]
pub(super) struct Coded {
    pub(super) bytes: Bytes,
    pub(super) encoding: Encoding,
    /// The digest of the bytes before they were encoded.
    pub(super) digest: Digest,
}

/// What else than the path a response was chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The codings that the client takes.
    pub accepted: Accepted,
    /// Whether it would rather have Markdown.
    pub markdown: bool,
}

/// Files that were sent lately by what names their bytes, and answers by what asks for them.
#[derive(Debug)]
pub struct Cache {
    files: [Mutex<Shelf<NamedFile>>; SHELVES],
    answers: [Mutex<Shelf<AskedFor>>; SHELVES],
    listings: Mutex<Shelf<Listed>>,
    /// Clients choose what they ask for.
    hasher: RandomState,
    /// How much a generation of a shelf holds.
    bytes_max: usize,
    /// How much a generation of listings holds.
    listing_bytes_max: usize,
    /// How many sites have asked for a number.
    numbers: AtomicU64,
}

/// A file by its name.
#[derive(Clone, Debug)]
struct NamedFile {
    name: Digest,
    file: Coded,
}

/// A response by the number of its site's files, the path and the variant.
#[derive(Clone, Debug)]
struct AskedFor {
    number: u64,
    path: Arc<str>,
    variant: Variant,
    response: Arc<CachedResponse>,
}

/// A listing by its release.
#[derive(Clone, Debug)]
struct Listed {
    release: ReleaseId,
    listing: Arc<Listing>,
}

/// Something that is kept.
trait Kept: Clone {
    /// Returns how much room it takes.
    fn bytes(&self) -> usize;
}

/// What was asked for lately and what before, each with its hash.
#[derive(Debug)]
struct Shelf<K> {
    young: HashTable<(u64, K)>,
    old: HashTable<(u64, K)>,
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
            files: Default::default(),
            answers: Default::default(),
            listings: Mutex::default(),
            hasher: RandomState::default(),
            // Two kinds of shelves, two generations on each.
            bytes_max: bytes_max / SHELVES / 4,
            listing_bytes_max: bytes_max / 4,
            numbers: AtomicU64::new(0),
        }
    }

    /// Returns a number that no other files have. Answers of a release that is not served
    /// any more are never asked for again.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn file(&self, name: &Digest) -> Option<Coded> {
        let hash = hash_of(name);
        let is_it = |kept: &NamedFile| kept.name == *name;
        let mut shelf = lock(&self.files, hash);
        shelf.find(hash, self.bytes_max, is_it, |kept| kept.file.clone())
    }

    pub(super) fn put_file(&self, name: Digest, file: Coded) {
        let hash = hash_of(&name);
        if file.bytes.len() <= FILE_BYTES_MAX {
            let mut shelf = lock(&self.files, hash);
            let is_it = |kept: &NamedFile| kept.name == name;
            shelf.put(hash, NamedFile { name, file }, self.bytes_max, is_it);
        }
    }

    pub(super) fn response(
        &self,
        number: u64,
        path: &str,
        variant: Variant,
    ) -> Option<Arc<CachedResponse>> {
        let hash = self.hash_of_path(number, path);
        let mut shelf = lock(&self.answers, hash);
        let is_it = |kept: &AskedFor| kept.is(number, path, variant);
        shelf.find(hash, self.bytes_max, is_it, |kept| {
            Arc::clone(&kept.response)
        })
    }

    pub(super) fn put_response(
        &self,
        number: u64,
        path: &str,
        variant: Variant,
        response: Arc<CachedResponse>,
    ) {
        let hash = self.hash_of_path(number, path);
        let kept = AskedFor {
            number,
            path: path.into(),
            variant,
            response,
        };
        let mut shelf = lock(&self.answers, hash);
        let is_it = |kept: &AskedFor| kept.is(number, path, variant);
        shelf.put(hash, kept, self.bytes_max, is_it);
    }

    pub(super) fn listing(&self, release: ReleaseId) -> Option<Arc<Listing>> {
        let hash = self.hasher.hash_one(release);
        let mut shelf = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |kept: &Listed| kept.release == release;
        let take = |kept: &Listed| Arc::clone(&kept.listing);
        shelf.find(hash, self.listing_bytes_max, is_it, take)
    }

    pub(super) fn put_listing(&self, release: ReleaseId, listing: Arc<Listing>) {
        let hash = self.hasher.hash_one(release);
        let mut shelf = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |kept: &Listed| kept.release == release;
        let kept = Listed { release, listing };
        shelf.put(hash, kept, self.listing_bytes_max, is_it);
    }

    fn hash_of_path(&self, number: u64, path: &str) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u64(number);
        hasher.write(path.as_bytes());
        hasher.finish()
    }
}

/// A digest is its own hash.
fn hash_of(name: &Digest) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&name.as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

/// Picks the shelf by the middle of the hash; `HashTable` uses the lower bits and the
/// topmost seven.
fn lock<K>(shelves: &[Mutex<Shelf<K>>; SHELVES], hash: u64) -> MutexGuard<'_, Shelf<K>> {
    let at = usize::try_from(hash >> 32 & 0xffff).expect("16 bits fit") % SHELVES;
    shelves[at].lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl Kept ===

impl Kept for NamedFile {
    fn bytes(&self) -> usize {
        self.file.bytes.len()
    }
}

impl Kept for AskedFor {
    fn bytes(&self) -> usize {
        self.response.bytes() + self.path.len()
    }
}

impl Kept for Listed {
    fn bytes(&self) -> usize {
        self.listing.bytes
    }
}

// === impl AskedFor ===

impl AskedFor {
    fn is(&self, number: u64, path: &str, variant: Variant) -> bool {
        self.number == number && self.variant == variant && *self.path == *path
    }
}

// === impl Shelf ===

impl<K> Default for Shelf<K> {
    fn default() -> Self {
        Self {
            young: HashTable::new(),
            old: HashTable::new(),
            young_bytes: 0,
        }
    }
}

impl<K: Kept> Shelf<K> {
    /// Finds what is asked for, and makes it young.
    fn find<T>(
        &mut self,
        hash: u64,
        bytes_max: usize,
        is_it: impl Fn(&K) -> bool,
        take: impl Fn(&K) -> T,
    ) -> Option<T> {
        if let Some((_, kept)) = self.young.find(hash, |(_, kept)| is_it(kept)) {
            return Some(take(kept));
        }
        let found = self.old.find_entry(hash, |(_, kept)| is_it(kept)).ok()?;
        let ((_, kept), _) = found.remove();
        let taken = take(&kept);
        self.put(hash, kept, bytes_max, is_it);
        Some(taken)
    }

    /// Puts something in the place of what has the same name.
    fn put(&mut self, hash: u64, kept: K, bytes_max: usize, is_it: impl Fn(&K) -> bool) {
        let bytes = kept.bytes();
        if bytes > bytes_max {
            return;
        }
        if let Ok(before) = self.young.find_entry(hash, |(_, kept)| is_it(kept)) {
            self.young_bytes -= before.remove().0.1.bytes();
        }
        if self.young_bytes + bytes > bytes_max {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += bytes;
        let young = &mut self.young;
        young.insert_unique(hash, (hash, kept), |(hash, _)| *hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::Response;
    use crate::store::{Local, Store, local};

    const PLAIN: Variant = Variant {
        accepted: Accepted::IDENTITY_ONLY,
        markdown: false,
    };

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
            cache.put_file(name(n), file.clone());
            assert!(cache.file(&name(0)).is_some(), "{n}");
        }
        assert!(cache.file(&name(1)).is_none());
        let kept = cache.files.iter().map(|shelf| {
            let shelf = shelf.lock().unwrap();
            shelf.young.len() + shelf.old.len()
        });
        let kept: usize = kept.sum();
        assert!(kept * size <= room / 2, "{kept}");
    }

    /// The listing of a release with this text as its only page.
    fn listing(text: &str) -> (ReleaseId, Arc<Listing>) {
        let config = r#"{"name": "Acme", "navigation": {"pages": ["index"]}}"#;
        let files = [("docs.json", config), ("index.mdx", text)];
        let files = files.map(|(path, text)| {
            let path = crate::source::TreePath::parse(path).unwrap();
            (path, text.to_owned().into())
        });
        let tree = crate::source::Tree::from_files(files, []);
        let options = crate::build::Options::default();
        let input = crate::build::Input::read(tree, &options);
        let release = crate::build::build(&input, &options).release;
        let directory = tempfile::tempdir().unwrap();
        let config = local::Config {
            path: directory.path().join("store"),
            ..local::Config::default()
        };
        let store = Store::Local(Local::open(&config, crate::clock::Clock::System).unwrap());
        store.put(&release).unwrap();
        let listing = Listing::of(release.inventory().clone(), &store).unwrap();
        (release.id(), Arc::new(listing))
    }

    #[test]
    fn a_listing_that_is_asked_for_stays_and_another_makes_room() {
        let (asked, kept) = listing("asked");
        let others: Vec<_> = (0..6).map(|n| listing(&n.to_string())).collect();
        // Two of them in each generation.
        let cache = Cache::new(4 * (2 * kept.bytes + 1));
        cache.put_listing(asked, kept);
        for (release, listing) in &others {
            cache.put_listing(*release, Arc::clone(listing));
            assert!(cache.listing(asked).is_some());
        }
        assert!(cache.listing(others[0].0).is_none());
        assert!(cache.listing(others[5].0).is_some());
    }

    #[test]
    fn a_file_over_the_limit_pushes_nothing_out() {
        let cache = Cache::new(1 << 30);
        let name = Digest::of(b"large");
        let bytes = Bytes::from(vec![0; FILE_BYTES_MAX + 1]);
        cache.put_file(
            name,
            Coded {
                bytes,
                encoding: Encoding::Identity,
                digest: name,
            },
        );
        assert!(cache.file(&name).is_none());
    }

    #[test]
    fn an_answer_is_found_by_all_that_it_was_chosen_by_and_goes_when_others_come() {
        let cache = Cache::new(1 << 20);
        let page = |text: &'static str| {
            let page = Response::new(200, "text/html", Bytes::from_static(text.as_bytes()));
            Arc::new(CachedResponse::new(page))
        };
        let (one, other) = (cache.number(), cache.number());
        cache.put_response(one, "/a", PLAIN, page("first"));
        let kept = page("a");
        cache.put_response(one, "/a", PLAIN, Arc::clone(&kept));
        assert!(Arc::ptr_eq(
            &cache.response(one, "/a", PLAIN).unwrap(),
            &kept
        ));
        let markdown = Variant {
            markdown: true,
            ..PLAIN
        };
        let brotli = Variant {
            accepted: Accepted::parse(b"br"),
            ..PLAIN
        };
        for (number, path, variant) in [
            (other, "/a", PLAIN),
            (one, "/b", PLAIN),
            (one, "/a", markdown),
            (one, "/a", brotli),
        ] {
            assert!(cache.response(number, path, variant).is_none(), "{path}");
        }
        for n in 0..10_000 {
            cache.put_response(other, &format!("/{n}"), PLAIN, page("b"));
        }
        assert!(cache.response(one, "/a", PLAIN).is_none());
    }
}
