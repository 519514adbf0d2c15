//! The cache of files, of complete responses and of the listings of releases.
//!
//! Each of the three has a map of the crate `quick_cache`. The map is divided into shards. The
//! lock of a shard is held for a lookup, and never while a file is read, so the fast path can use
//! the cache. The maps are bounded by the bytes of their entries. When a map is full, entries
//! that are seldom requested make room for entries that are often requested (the Clock-PRO
//! algorithm). A lookup takes about 40 ns.
//!
//! Files and responses get half of the bytes each; bytes that are in both exist once and count
//! twice. Listings get an additional half. Their map has one shard, because the listing of a
//! release with thousands of pages is larger than one shard of many. Encoded forms of large texts
//! get an additional quarter; lists of pages, open search indexes and decoded parts of these an
//! eighth each.
//!
//! Files over [`FILE_BYTES_MAX`] are never in the cache: they are read while they are sent. Two
//! small maps store what is known about such a file: whether its digest is right, and the positions
//! of the placeholder of the base URL.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use foldhash::fast::RandomState;
use quick_cache::sync::{Cache as Map, DefaultLifecycle};
use quick_cache::{Equivalent, OptionsBuilder, Weighter};

use crate::digest::Digest;
use crate::release::ReleaseId;
use crate::response::encoding::Accepted;
use crate::response::{CachedResponse, Encoding};

use super::Listing;
use super::damage::Damage;
use super::large::DigestCheck;
use super::opened::OpenFiles;
use super::texts::Texts;
use crate::release::pages::Pages;
use crate::search::{Decoded, Index};
use crate::store::Store;
use crate::telemetry::Part;

/// The default size of the cache of files and responses, in bytes, for all sites together.
pub const CACHE_BYTES_MAX: usize = 64 << 20;
/// The longest file that is cached and held in memory while it is sent, in bytes. The limit is
/// small because slow readers also hold files that the cache has evicted.
pub(super) const FILE_BYTES_MAX: usize = 256 << 10;
/// For how many large files the cache remembers whether their digest is right.
const CHECKED_MAX: usize = 16 << 10;
/// How many bytes of positions of placeholders are remembered.
const PLACES_BYTES_MAX: usize = 4 << 20;
/// The memory of an entry of a small map, without its value.
const ENTRY_BYTES: usize = 64;
/// How many shards the map of files has, and the map of responses.
const SHARDS: usize = 16;
/// The typical size of an entry, from which the expected number of entries is calculated.
const ENTRY_BYTES_TYPICAL: usize = 8 << 10;

/// The bytes of a file in one coding.
#[derive(Clone, Debug)]
pub(super) struct Coded {
    pub(super) bytes: Bytes,
    pub(super) encoding: Encoding,
    /// The digest of the bytes before they were encoded.
    pub(super) digest: Digest,
}

/// A list of pages, and the length of its file.
#[derive(Debug)]
pub(super) struct PageList {
    pub(super) pages: Arc<Pages>,
    pub(super) bytes: usize,
}

/// The properties of a request, other than its path, that a response depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    /// The codings that the client accepts.
    pub accepted: Accepted,
    /// Whether it prefers Markdown.
    pub markdown: bool,
}

/// Files by digest, responses by request, listings and search indexes of releases.
#[derive(Debug)]
pub struct Cache {
    files: Bounded<Digest, Coded>,
    responses: Bounded<ResponseKey, Arc<CachedResponse>>,
    listings: Bounded<ReleaseId, Arc<Listing>>,
    /// Search indexes, by the digest of their file.
    indexes: Bounded<Digest, Arc<Index>>,
    /// Decoded parts of search indexes, by the digest of their file and their place in it.
    decoded: Bounded<(Digest, u64), Decoded>,
    /// How many numbers have been assigned.
    numbers: AtomicU64,
    checked: Bounded<Digest, DigestCheck>,
    /// The large files that are being sent.
    pub(super) open: OpenFiles,
    /// The files that were found damaged.
    pub(super) damage: Damage,
    places: Bounded<Digest, Arc<[u64]>>,
    /// Lists of pages, by the digest of their file.
    pages: Bounded<Digest, Arc<PageList>>,
    /// The encoded forms of large texts.
    pub(super) texts: Arc<Texts>,
}

/// A map that is bounded by bytes. Clients choose what they request, so hashes are seeded.
pub(super) type Bounded<K, V> = Map<K, V, ByBytes, RandomState, DefaultLifecycle<K, V>>;

/// The weight of an entry is its size in memory, in bytes.
#[derive(Clone, Debug)]
pub(super) struct ByBytes;

/// The key of a response: the number of its site's files, the path and the variant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ResponseKey {
    number: u64,
    variant: Variant,
    path: Box<str>,
}

/// The borrowed form of the key, so that a lookup allocates nothing.
struct ResponseName<'r> {
    number: u64,
    variant: Variant,
    path: &'r str,
}

// === impl Cache ===

impl Default for Cache {
    fn default() -> Self {
        Self::new(CACHE_BYTES_MAX)
    }
}

impl Cache {
    /// Makes a cache for this many bytes of files and responses.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        let half = bytes_max / 2;
        Self {
            files: bounded(half, SHARDS),
            responses: bounded(half, SHARDS),
            listings: bounded(half, 1),
            indexes: bounded(half / 4, 1),
            decoded: bounded(half / 4, SHARDS),
            numbers: AtomicU64::new(0),
            checked: bounded(CHECKED_MAX * ENTRY_BYTES, SHARDS),
            open: OpenFiles::new(usize::MAX),
            damage: Damage::default(),
            places: bounded(PLACES_BYTES_MAX, 1),
            pages: bounded(half / 4, 1),
            texts: Arc::new(Texts::new(half / 2)),
        }
    }

    /// Opens at most this many large files at once.
    #[must_use]
    pub fn opening_at_most(self, files: usize) -> Self {
        Self {
            open: OpenFiles::new(files),
            ..self
        }
    }

    /// Reports damaged files to this part of the process.
    #[must_use]
    pub fn reporting_to(self, part: Part) -> Self {
        Self {
            damage: Damage::reporting_to(part),
            ..self
        }
    }

    /// Reads the files that were found damaged again. It may block.
    pub(in crate::index) fn check_damage_again(&self, store: &Store) {
        self.damage.check_again(store);
    }

    /// Returns a number that no other `Files` have.
    ///
    /// Responses of a release that is no longer served are not requested again, so they are the
    /// first to make room.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn file(&self, name: &Digest) -> Option<Coded> {
        self.files.get(name)
    }

    pub(super) fn put_file(&self, name: Digest, file: Coded) {
        if file.bytes.len() <= FILE_BYTES_MAX {
            self.files.insert(name, file);
        }
    }

    pub(super) fn index(&self, file: &Digest) -> Option<Arc<Index>> {
        self.indexes.get(file)
    }

    pub(super) fn put_index(&self, file: Digest, index: Arc<Index>) {
        self.indexes.insert(file, index);
    }

    pub(super) fn decoded(&self, file: &Digest, place: u64) -> Option<Decoded> {
        self.decoded.get(&(*file, place))
    }

    pub(super) fn put_decoded(&self, file: Digest, place: u64, decoded: Decoded) {
        self.decoded.insert((file, place), decoded);
    }

    pub(super) fn checked(&self, file: &Digest) -> Option<DigestCheck> {
        self.checked.get(file)
    }

    pub(super) fn put_checked(&self, file: Digest, checked: DigestCheck) {
        self.checked.insert(file, checked);
    }

    pub(super) fn places(&self, text: &Digest) -> Option<Arc<[u64]>> {
        self.places.get(text)
    }

    pub(super) fn put_places(&self, text: Digest, places: Arc<[u64]>) {
        self.places.insert(text, places);
    }

    pub(super) fn pages(&self, file: &Digest) -> Option<Arc<Pages>> {
        Some(Arc::clone(&self.pages.get(file)?.pages))
    }

    pub(super) fn put_pages(&self, file: Digest, list: PageList) {
        self.pages.insert(file, Arc::new(list));
    }

    pub(super) fn response(
        &self,
        number: u64,
        path: &str,
        variant: Variant,
    ) -> Option<Arc<CachedResponse>> {
        self.responses.get(&ResponseName {
            number,
            variant,
            path,
        })
    }

    pub(super) fn put_response(
        &self,
        number: u64,
        path: &str,
        variant: Variant,
        response: Arc<CachedResponse>,
    ) {
        let key = ResponseKey {
            number,
            variant,
            path: path.into(),
        };
        self.responses.insert(key, response);
    }

    pub(super) fn listing(&self, release: ReleaseId) -> Option<Arc<Listing>> {
        self.listings.get(&release)
    }

    pub(super) fn put_listing(&self, release: ReleaseId, listing: Arc<Listing>) {
        self.listings.insert(release, listing);
    }
}

pub(super) fn bounded<K: Eq + Hash, V: Clone>(bytes_max: usize, shards: usize) -> Bounded<K, V>
where
    ByBytes: Weighter<K, V>,
{
    let options = OptionsBuilder::new()
        .shards(shards)
        .estimated_items_capacity(bytes_max / ENTRY_BYTES_TYPICAL)
        .weight_capacity(bytes_max as u64)
        .build()
        .expect("both capacities are set");
    Map::with_options(
        options,
        ByBytes,
        RandomState::default(),
        DefaultLifecycle::default(),
    )
}

// === impl ByBytes ===

impl Weighter<Digest, Coded> for ByBytes {
    fn weight(&self, _name: &Digest, file: &Coded) -> u64 {
        file.bytes.len() as u64
    }
}

impl Weighter<Digest, Option<Coded>> for ByBytes {
    fn weight(&self, _name: &Digest, form: &Option<Coded>) -> u64 {
        let bytes = form.as_ref().map_or(0, |form| form.bytes.len());
        (bytes + ENTRY_BYTES) as u64
    }
}

impl Weighter<Digest, DigestCheck> for ByBytes {
    fn weight(&self, _file: &Digest, _checked: &DigestCheck) -> u64 {
        ENTRY_BYTES as u64
    }
}

impl Weighter<Digest, Arc<[u64]>> for ByBytes {
    fn weight(&self, _text: &Digest, places: &Arc<[u64]>) -> u64 {
        (size_of_val::<[u64]>(places) + ENTRY_BYTES) as u64
    }
}

impl Weighter<Digest, Arc<PageList>> for ByBytes {
    fn weight(&self, _file: &Digest, list: &Arc<PageList>) -> u64 {
        // The parsed texts have about the length of the file, and each its own allocation.
        (2 * list.bytes + ENTRY_BYTES) as u64
    }
}

impl Weighter<ResponseKey, Arc<CachedResponse>> for ByBytes {
    fn weight(&self, key: &ResponseKey, response: &Arc<CachedResponse>) -> u64 {
        (key.path.len() + response.bytes()) as u64
    }
}

impl Weighter<ReleaseId, Arc<Listing>> for ByBytes {
    fn weight(&self, _release: &ReleaseId, listing: &Arc<Listing>) -> u64 {
        listing.bytes as u64
    }
}

impl Weighter<Digest, Arc<Index>> for ByBytes {
    fn weight(&self, _file: &Digest, index: &Arc<Index>) -> u64 {
        index.bytes() as u64
    }
}

impl Weighter<(Digest, u64), Decoded> for ByBytes {
    fn weight(&self, _place: &(Digest, u64), decoded: &Decoded) -> u64 {
        (decoded.bytes() + ENTRY_BYTES) as u64
    }
}

// === impl ResponseName ===

/// Gives the same hash as [`ResponseKey`], whose derived implementation hashes its fields in
/// order.
impl Hash for ResponseName<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
        self.variant.hash(state);
        self.path.hash(state);
    }
}

impl Equivalent<ResponseKey> for ResponseName<'_> {
    fn equivalent(&self, key: &ResponseKey) -> bool {
        self.number == key.number && self.variant == key.variant && *self.path == *key.path
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::ops::Range;

    use super::*;
    use crate::response::Response;
    use crate::search::{Document, Part, Question, Storage, write};
    use crate::store::Store;

    /// An index file whose decoded parts are in a cache.
    struct CachedFile<'f> {
        bytes: &'f Bytes,
        digest: Digest,
        cache: &'f Cache,
    }

    impl Storage for CachedFile<'_> {
        fn length(&self) -> u64 {
            self.bytes.length()
        }

        fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
            // A copy, as a file gives it: the memory of an index is not shared with another.
            self.bytes
                .read(range)
                .map(|bytes| Bytes::copy_from_slice(&bytes))
        }

        fn decoded(&self, place: u64) -> Option<Decoded> {
            self.cache.decoded(&self.digest, place)
        }

        fn keep(&self, place: u64, decoded: Decoded) {
            self.cache.put_decoded(self.digest, place, decoded);
        }
    }

    /// Returns the resident memory of this process, in bytes.
    fn resident() -> usize {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
        pages * 4096
    }

    /// The work of the test below. Other tests of its process would change the memory.
    #[test]
    #[ignore = "another test runs it in a process of its own"]
    fn search_many_indexes() {
        const ALL: usize = 100_000;
        const FILLED: usize = 20_000;
        let cache = Cache::new(32 << 20);
        let pages: Vec<String> = (0..8).map(|nth| format!("p{nth}")).collect();
        let documents = pages.iter().map(|path| Document {
            path,
            title: "Widgets",
            markdown: "# Widgets\n\nA widget has a limit.\n",
            ..Document::default()
        });
        let part = Part {
            language: "en",
            version: None,
            is_default: true,
            documents: documents.collect(),
        };
        let bytes = Bytes::from(write(&[part]));
        let texts = |_: &str, _: Range<u64>| None;
        let mut filled = 0;
        for nth in 0..ALL {
            let digest = Digest::of(&nth.to_le_bytes());
            let file = CachedFile {
                bytes: &bytes,
                digest,
                cache: &cache,
            };
            let index = Arc::new(Index::open(&file).unwrap());
            let found = index
                .search(&file, &texts, &Question::new("widget"))
                .unwrap();
            assert_eq!(found.total, 8);
            cache.put_index(digest, index);
            if nth == FILLED {
                filled = resident();
            }
        }
        assert!(cache.indexes.weight() <= 4 << 20);
        let grown = resident().saturating_sub(filled);
        assert!(
            grown < 4 << 20,
            "{grown} bytes more than after {FILLED} of them"
        );
    }

    #[test]
    fn a_hundred_thousand_search_indexes_take_no_more_memory_than_twenty_thousand() {
        let name = "index::files::cache::tests::search_many_indexes";
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--ignored"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    }

    const PLAIN: Variant = Variant {
        accepted: Accepted::IDENTITY_ONLY,
        markdown: false,
    };

    #[test]
    fn requested_files_stay_cached_within_the_byte_limit() {
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
            assert!(cache.files.weight() <= room as u64 / 2, "{n}");
        }
        let kept = (0..4 * room / size).filter(|n| cache.file(&name(*n)).is_some());
        let kept = kept.count();
        assert!(kept * size > room / 4 && kept * size <= room / 2, "{kept}");
    }

    /// Makes the listing of a release with this text as its only page.
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
        let store = Store::open_directory(directory.path().join("store")).unwrap();
        store.put(&release).unwrap();
        let listing = Listing::of(release.inventory().clone(), &store).unwrap();
        (release.id(), Arc::new(listing))
    }

    #[test]
    fn a_requested_listing_stays_cached_and_another_is_evicted() {
        let (asked, kept) = listing("asked");
        let others: Vec<_> = (0..6).map(|n| listing(&n.to_string())).collect();
        // The size is enough for four listings.
        let cache = Cache::new(2 * (4 * kept.bytes + 100));
        cache.put_listing(asked, kept);
        for (release, listing) in &others {
            cache.put_listing(*release, Arc::clone(listing));
            assert!(cache.listing(asked).is_some());
        }
        let left = others
            .iter()
            .filter(|(release, _)| cache.listing(*release).is_some());
        assert!((1..=3).contains(&left.count()));
    }

    #[test]
    fn a_file_over_the_limit_evicts_nothing() {
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
    fn the_key_of_a_response_has_everything_it_depends_on() {
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
    }

    #[test]
    fn the_search_indexes_of_any_number_of_sites_stay_within_the_byte_limit() {
        use crate::search::{Document, Part, Question, write};
        let room = 1 << 20;
        let cache = Cache::new(room);
        let document = |path| Document {
            path,
            title: "Whales",
            markdown: "# Whales\n\nThey sing for hours.\n",
            ..Document::default()
        };
        let part = Part {
            language: "en",
            version: None,
            is_default: true,
            documents: vec![document("a"), document("b")],
        };
        let file = Bytes::from(write(&[part]));
        let texts = |_: &str, _: std::ops::Range<u64>| None;
        let name = |n: usize| Digest::of(&n.to_le_bytes());
        let sites = 1000;
        let mut bytes = 0;
        for n in 0..sites {
            let index = Index::open(&file).unwrap();
            // A question reads the table, which then stays in memory.
            let found = index.search(&file, &texts, &Question::new("whales"));
            assert_eq!(found.unwrap().total, 2);
            bytes = index.bytes();
            cache.put_index(name(n), Arc::new(index));
            assert!(cache.indexes.weight() <= room as u64 / 8, "{n}");
        }
        let kept = (0..sites)
            .filter(|n| cache.index(&name(*n)).is_some())
            .count();
        assert!(kept > 0 && kept * bytes <= room / 8, "{kept} of {bytes}");
    }
}
