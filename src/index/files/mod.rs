//! The files of a site's release, from the cache or from the store.
//!
//! A platform has more pages than memory, and most pages are seldom requested. Even the listings
//! of all releases of a million sites would need more memory than everything else in the index.
//! So the [`Cache`] holds recently requested data: the [`Listing`] of a release, which finds
//! a file without the store; files, by digest, so that equal files of several sites exist once;
//! and complete responses with their heads.
//!
//! A thread that must not block reads from memory only ([`Reading::Cached`]). If the data are not
//! cached, a thread that may block reads them from the store, and the next request finds them in
//! the cache.
//!
//! A file that is longer than 256 KiB is never held in memory: its body is read from the store
//! while it is sent (`large`). The status, the fields and the conditions of such a response come
//! from the inventory, so a `HEAD`, a 304 and a range read nothing but the bytes that they send.
//! Nothing of that size is encoded while a request waits (`texts`).
//!
//! Questions are answered from the search index of a release (`search`).
//!
//! In a preview the files are [`LiveFiles`], and each file is made when it is requested.

mod cache;
mod damage;
mod kind;
mod large;
mod listing;
mod opened;
mod pages;
mod search;
mod texts;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::digest::Digest;
use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::release::announcements;
use crate::release::site::{ADDRESSED_START, STATIC, SiteDescription};
use crate::release::{Item, ReleaseId};
use crate::response::encoding::{Accepted, Effort};
use crate::response::segments::replace_stored;
use crate::response::{Body, CachedResponse, Encoding, Response, Stored as StoredBody};
use crate::search::SearchError;
use crate::site::ProjectId;
use crate::store::{ReadError, Store};

pub use cache::{CACHE_BYTES_MAX, Cache, Variant};
use cache::{Coded, FILE_BYTES_MAX};
use large::{AddressedText, LargeFile};
pub use listing::{Listing, ListingError};

/// The longest text that is encoded, in bytes.
const ENCODED_TEXT_BYTES_MAX: u64 = 32 << 20;

/// The files of one site.
#[derive(Debug)]
pub struct Files {
    source: Source,
    /// The number of these files in the cache.
    number: u64,
    /// The address of the site on its canonical host, without a slash at the end.
    pub address: Box<str>,
    /// When the release was promoted, in seconds after the Unix epoch.
    pub promoted_at: u64,
}

/// The files of one site, with their listing.
#[derive(Debug)]
pub struct Open<'f> {
    /// The files.
    pub files: &'f Files,
    list: List<'f>,
    /// Whether a read may use the store.
    reading: Reading,
}

/// The listing of the files.
#[derive(Debug)]
enum List<'f> {
    Release(&'f Stored, Arc<Listing>),
    Live(&'f dyn LiveFiles),
}

/// The source of the files.
#[derive(Debug)]
enum Source {
    Release(Stored),
    Live(Arc<dyn LiveFiles>),
}

/// The files of a release.
#[derive(Debug)]
pub struct Stored {
    /// The store of the release.
    pub store: Arc<Store>,
    /// The cache, shared with other releases.
    pub cache: Arc<Cache>,
    /// The release.
    pub release: ReleaseId,
    /// The project of the release.
    pub project: ProjectId,
    /// The files that pages of older releases load. The list is made at the first such request.
    pub older_files: OnceLock<HashMap<Box<str>, Item>>,
}

/// Files of a preview, which has no release: each file is made when it is requested.
///
/// The paths are the same as in a release ([`site`](crate::release::site)).
pub trait LiveFiles: std::fmt::Debug + Send + Sync {
    /// Returns the description of the site.
    fn description(&self) -> &SiteDescription;
    /// Returns whether a file exists.
    fn has(&self, path: &str) -> bool;
    /// Makes a file, and returns its bytes and its media type.
    fn file(&self, path: &str) -> Option<(Bytes, &'static str)>;
}

/// Whether a read may use the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The read uses the cache only.
    Cached,
    /// The read may use the store. It may block, so it must not run on a thread that serves
    /// connections.
    Blocking,
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadFileError {
    /// The file is not in the cache, and the store was not read.
    #[error("the file is not in the cache")]
    NotCached,
    /// The store cannot read the file.
    #[error(transparent)]
    Store(#[from] ReadError),
    /// The listing of the release cannot be read.
    #[error(transparent)]
    Listing(#[from] ListingError),
    /// The list of pages cannot be read.
    #[error("read the list of pages")]
    Pages(#[source] serde_json::Error),
    /// The search index of the release cannot be read.
    #[error(transparent)]
    Search(#[from] SearchError),
}

/// A file to be sent.
#[derive(Clone, Debug)]
pub struct File {
    /// Its bytes, in its encoding.
    pub body: Body,
    /// Its encoding.
    pub encoding: Encoding,
    /// The digest of its bytes before they were encoded.
    pub digest: Digest,
    /// Its media type.
    pub media_type: &'static str,
}

// === impl Files ===

impl Files {
    /// Makes the files of a release, and puts its listing into the cache.
    #[must_use]
    pub fn new(stored: Stored, listing: Listing, address: &str, promoted_at: u64) -> Self {
        stored.cache.put_listing(stored.release, Arc::new(listing));
        Self {
            number: stored.cache.number(),
            source: Source::Release(stored),
            address: address.trim_end_matches('/').into(),
            promoted_at,
        }
    }

    /// Makes files of a preview at `address`, each made when it is requested.
    #[must_use]
    pub fn live(files: Arc<dyn LiveFiles>, address: &str, now: u64) -> Self {
        Self {
            source: Source::Live(files),
            number: 0,
            address: address.trim_end_matches('/').into(),
            promoted_at: now,
        }
    }

    /// Returns the release; `None` in a preview.
    #[must_use]
    pub fn release(&self) -> Option<ReleaseId> {
        match &self.source {
            Source::Release(stored) => Some(stored.release),
            Source::Live(_) => None,
        }
    }

    /// Finds the cached response to a request for `path`.
    #[must_use]
    pub fn cached(&self, path: &str, variant: Variant) -> Option<Arc<CachedResponse>> {
        match &self.source {
            Source::Release(stored) => stored.cache.response(self.number, path, variant),
            Source::Live(_) => None,
        }
    }

    /// Caches a 200 for the next request for `path`. A preview caches nothing, because its files
    /// change.
    pub fn cache(&self, path: &str, variant: Variant, whole: Response) -> Arc<CachedResponse> {
        let cached_response = Arc::new(CachedResponse::new(whole));
        if let Source::Release(stored) = &self.source {
            let cache = &stored.cache;
            cache.put_response(self.number, path, variant, Arc::clone(&cached_response));
        }
        cached_response
    }

    /// Gets the listing of the files. `reading` says whether this and later reads may use the
    /// store.
    ///
    /// # Errors
    ///
    /// [`ReadFileError`] when the listing cannot be read.
    pub fn open(&self, reading: Reading) -> Result<Open<'_>, ReadFileError> {
        let list = match &self.source {
            Source::Release(stored) => List::Release(stored, stored.listing(reading)?),
            Source::Live(files) => List::Live(&**files),
        };
        Ok(Open {
            files: self,
            list,
            reading,
        })
    }
}

// === impl Open ===

impl Open<'_> {
    /// Returns the description of the site.
    #[must_use]
    pub fn description(&self) -> &SiteDescription {
        match &self.list {
            List::Release(_, listing) => &listing.description,
            List::Live(files) => files.description(),
        }
    }

    /// Returns whether a file exists.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        match &self.list {
            List::Release(_, listing) => listing.get(path).is_some(),
            List::Live(files) => files.has(path),
        }
    }

    /// Reads a file in the best coding that the client accepts and the release has.
    ///
    /// Returns `None` when there is no such file.
    ///
    /// # Errors
    ///
    /// [`ReadFileError`] when the file exists and cannot be read.
    pub fn read(&self, path: &str, accepted: Accepted) -> Result<Option<File>, ReadFileError> {
        match &self.list {
            List::Release(stored, listing) => {
                stored.pick(path, accepted, self.reading, |path| listing.get(path))
            }
            List::Live(files) => Ok(files.file(path).map(|(bytes, media_type)| {
                let digest = Digest::of(&bytes);
                File::plain(bytes, digest, media_type)
            })),
        }
    }

    /// Reads a file, and replaces the placeholder of the base URL by `address`.
    ///
    /// # Errors
    ///
    /// [`ReadFileError`] when the file exists and cannot be read.
    pub fn read_addressed(
        &self,
        path: &str,
        address: &str,
        accepted: Accepted,
    ) -> Result<Option<File>, ReadFileError> {
        match &self.list {
            List::Release(stored, listing) => match listing.get(path) {
                Some(item) => stored
                    .read_addressed(item, (address, is_page(path)), accepted, self.reading)
                    .map(Some),
                None => Ok(None),
            },
            List::Live(files) => Ok(files.file(path).map(|(bytes, media_type)| {
                let bytes = completed(&bytes, (address, is_page(path)));
                let digest = Digest::of(&bytes);
                File::plain(bytes, digest, media_type)
            })),
        }
    }

    /// Reads the HTML of a page, with `address` in place of the placeholder of the base URL.
    ///
    /// # Errors
    ///
    /// [`ReadFileError`] when the file exists and cannot be read.
    pub fn read_page(
        &self,
        path: &str,
        address: &str,
        accepted: Accepted,
    ) -> Result<Option<File>, ReadFileError> {
        match &self.list {
            List::Release(stored, listing) if listing.description.addressed => {
                let Some(item) = listing.get(path) else {
                    return Ok(None);
                };
                let brotli = listing.get(&format!("{path}{}", Encoding::Brotli.suffix()));
                let read = stored.read_page(item, brotli, address, accepted, self.reading);
                read.map(Some)
            }
            List::Release(..) => self.read(path, accepted),
            List::Live(_) => self.read_addressed(path, address, accepted),
        }
    }

    /// Reads a file that only pages of an older release load, if that release is still in the
    /// store.
    ///
    /// A page in a client's cache must not lose its style when another release is promoted.
    ///
    /// # Errors
    ///
    /// [`ReadFileError`] when the file exists and cannot be read.
    pub fn read_older(
        &self,
        path: &str,
        accepted: Accepted,
    ) -> Result<Option<File>, ReadFileError> {
        match &self.list {
            List::Release(stored, _) => stored.read_older(path, accepted, self.reading),
            List::Live(_) => Ok(None),
        }
    }
}

// === impl Stored ===

impl Stored {
    fn listing(&self, reading: Reading) -> Result<Arc<Listing>, ReadFileError> {
        if let Some(listing) = self.cache.listing(self.release) {
            return Ok(listing);
        }
        if reading == Reading::Cached {
            return Err(ReadFileError::NotCached);
        }
        let listing = Arc::new(Listing::read(&self.store, self.release)?);
        self.cache.put_listing(self.release, Arc::clone(&listing));
        Ok(listing)
    }

    fn read_older(
        &self,
        path: &str,
        accepted: Accepted,
        reading: Reading,
    ) -> Result<Option<File>, ReadFileError> {
        let older_files = match (self.older_files.get(), reading) {
            (Some(older_files), _) => older_files,
            (None, Reading::Cached) => return Err(ReadFileError::NotCached),
            (None, Reading::Blocking) => {
                let found = self.find_older()?;
                self.older_files.get_or_init(|| found)
            }
        };
        self.pick(path, accepted, reading, |path| older_files.get(path))
    }

    /// Lists the files that pages of all releases in the store load.
    ///
    /// Their names contain digests, so files with equal names are equal.
    fn find_older(&self) -> Result<HashMap<Box<str>, Item>, ReadFileError> {
        let mut older_files = HashMap::new();
        for promotion in self.store.releases(&self.project)? {
            // The store may delete an old release at any moment.
            let Ok(inventory) = self.store.inventory(promotion.release) else {
                continue;
            };
            let prefix = format!("static/{STATIC}/");
            let loaded = inventory
                .iter()
                .filter(|(path, _)| path.as_str().starts_with(&prefix));
            older_files.extend(loaded.map(|(path, item)| (path.as_str().into(), item.clone())));
        }
        Ok(older_files)
    }

    /// Reads a file in the best coding that the client accepts and for which `item` finds an
    /// item.
    fn pick<'i>(
        &self,
        path: &str,
        accepted: Accepted,
        reading: Reading,
        item: impl Fn(&str) -> Option<&'i Item>,
    ) -> Result<Option<File>, ReadFileError> {
        let Some(identity) = item(path) else {
            return Ok(None);
        };
        let coded = accepted.preferred().find_map(|encoding| {
            let item = item(&format!("{path}{}", encoding.suffix()))?;
            Some((encoding, item))
        });
        let (encoding, item) = coded.unwrap_or((Encoding::Identity, identity));
        if item.length > FILE_BYTES_MAX as u64 {
            return Ok(Some(File {
                body: Body::Stored(StoredBody::whole(Arc::new(self.large(item)))),
                encoding,
                digest: identity.digest,
                media_type: kind::known(&identity.media_type),
            }));
        }
        let coded = self.get(item.digest, reading, || {
            Ok(Coded {
                bytes: self.read_item(item)?,
                encoding,
                digest: identity.digest,
            })
        })?;
        Ok(Some(File::of(coded, &identity.media_type)))
    }

    fn read_addressed(
        &self,
        item: &Item,
        (address, is_page): (&str, bool),
        accepted: Accepted,
        reading: Reading,
    ) -> Result<File, ReadFileError> {
        // A text without known places is small, or it has not been requested yet.
        let may_be_small =
            item.length <= FILE_BYTES_MAX as u64 && self.cache.places(&item.digest).is_none();
        if may_be_small
            && let Some(text) = self.small_text(item, (address, is_page), accepted, reading)?
        {
            return Ok(File::of(text, &item.media_type));
        }
        self.large_text(item, address, accepted, reading)
    }

    /// Reads the HTML of a page. In brotli only its addresses are replaced.
    fn read_page(
        &self,
        item: &Item,
        brotli: Option<&Item>,
        address: &str,
        accepted: Accepted,
        reading: Reading,
    ) -> Result<File, ReadFileError> {
        let is_first = accepted.preferred().next() == Some(Encoding::Brotli);
        let brotli = brotli.filter(|coded| is_first && coded.length <= FILE_BYTES_MAX as u64);
        if let Some(coded) = brotli {
            let name = form_name(item, address, Encoding::Brotli);
            if let Some(file) = self.cache.file(&name) {
                return Ok(File::of(file, &item.media_type));
            }
            if reading == Reading::Cached {
                return Err(ReadFileError::NotCached);
            }
            let replace = |part: &[u8]| {
                let part = Bytes::copy_from_slice(part);
                addressed(&part, address).into()
            };
            let bytes = self.read_item(coded)?;
            if let Some(bytes) = replace_stored(&bytes, ADDRESSED_START.as_bytes(), replace) {
                let file = Coded {
                    bytes: bytes.into(),
                    encoding: Encoding::Brotli,
                    // The page is a function of these two.
                    digest: Digest::of(format!("{} {address}", item.digest).as_bytes()),
                };
                self.cache.put_file(name, file.clone());
                return Ok(File::of(file, &item.media_type));
            }
        }
        self.read_addressed(item, (address, false), accepted, reading)
    }

    /// Returns a text from the cache, or makes it. Returns `None` if the address makes it too
    /// long for the cache.
    fn small_text(
        &self,
        item: &Item,
        (address, is_page): (&str, bool),
        accepted: Accepted,
        reading: Reading,
    ) -> Result<Option<Coded>, ReadFileError> {
        let encoding = accepted.preferred().next().unwrap_or(Encoding::Identity);
        let name = form_name(item, address, encoding);
        if let Some(file) = self.cache.file(&name) {
            return Ok(Some(file));
        }
        if reading == Reading::Cached {
            return Err(ReadFileError::NotCached);
        }
        let bytes = completed(&self.read_item(item)?, (address, is_page));
        if bytes.len() > FILE_BYTES_MAX {
            return Ok(None);
        }
        let digest = Digest::of(&bytes);
        let file = match encoding.encode(&bytes, Effort::Load) {
            Some(coded) => Coded {
                bytes: coded.into(),
                encoding,
                digest,
            },
            None => Coded {
                bytes,
                encoding: Encoding::Identity,
                digest,
            },
        };
        self.cache.put_file(name, file.clone());
        Ok(Some(file))
    }

    /// Returns the encoded form of a large text if it exists, else the text itself, which is read
    /// while it is sent.
    fn large_text(
        &self,
        item: &Item,
        address: &str,
        accepted: Accepted,
        reading: Reading,
    ) -> Result<File, ReadFileError> {
        let file = self.large(item);
        let places = match (self.cache.places(&item.digest), reading) {
            (Some(places), _) => places,
            (None, Reading::Cached) => return Err(ReadFileError::NotCached),
            (None, Reading::Blocking) => {
                let places = file.find_places()?;
                self.cache.put_places(item.digest, Arc::clone(&places));
                places
            }
        };
        let text = Arc::new(AddressedText {
            file,
            address: address.into(),
            places,
        });
        // The text is a function of these two, and no digest of it needs to be computed.
        let digest = Digest::of(format!("{} {address}", item.digest).as_bytes());
        for encoding in accepted.preferred() {
            let name = form_name(item, address, encoding);
            match self.cache.texts.get(&name) {
                Some(Some(coded)) => return Ok(File::of(coded, &item.media_type)),
                // The coding does not make it smaller.
                Some(None) => {}
                None => {
                    self.encode_later(Arc::clone(&text), name, encoding, digest);
                    break;
                }
            }
        }
        Ok(File {
            body: Body::Stored(StoredBody::whole(text)),
            encoding: Encoding::Identity,
            digest,
            media_type: kind::known(&item.media_type),
        })
    }

    /// Makes the encoded form of a large text in a thread of its own, if no other is being made.
    fn encode_later(
        &self,
        text: Arc<AddressedText>,
        name: Digest,
        encoding: Encoding,
        digest: Digest,
    ) {
        if text.addressed_length() > ENCODED_TEXT_BYTES_MAX {
            return;
        }
        let Some(permit) = self.cache.texts.encoder_permit() else {
            return;
        };
        let encode = move || match Body::Stored(StoredBody::whole(text)).read_all() {
            Ok(bytes) => {
                let encoded = encoding.encode(&bytes, Effort::Load);
                permit.put(name, encoded, |bytes| Coded {
                    bytes,
                    encoding,
                    digest,
                });
            }
            Err(error) => log::warn!(target: "index", "cannot encode a text: {error}"),
        };
        let thread = std::thread::Builder::new().name("encode-text".to_owned());
        if let Err(error) = thread.spawn(encode) {
            log::warn!(target: "index", "cannot start a thread that encodes texts: {error}");
        }
    }

    /// Reads a file from the store; a damaged one is reported.
    fn read_item(&self, item: &Item) -> Result<Bytes, ReadError> {
        self.cache.damage.observe(item, self.store.read(item))
    }

    fn large(&self, item: &Item) -> LargeFile {
        LargeFile {
            store: Arc::clone(&self.store),
            cache: Arc::clone(&self.cache),
            item: item.clone(),
        }
    }

    /// Returns the file of this name from the cache, or makes it if `reading` allows.
    ///
    /// Several requests may make the same file at the same time; no request waits for another.
    fn get(
        &self,
        name: Digest,
        reading: Reading,
        make: impl FnOnce() -> Result<Coded, ReadError>,
    ) -> Result<Coded, ReadFileError> {
        if let Some(file) = self.cache.file(&name) {
            return Ok(file);
        }
        if reading == Reading::Cached {
            return Err(ReadFileError::NotCached);
        }
        let file = make()?;
        self.cache.put_file(name, file.clone());
        Ok(file)
    }
}

// === impl File ===

impl File {
    fn of(coded: Coded, media_type: &str) -> Self {
        Self {
            body: coded.bytes.into(),
            encoding: coded.encoding,
            digest: coded.digest,
            media_type: kind::known(media_type),
        }
    }

    fn plain(bytes: Bytes, digest: Digest, media_type: &'static str) -> Self {
        Self {
            body: bytes.into(),
            encoding: Encoding::Identity,
            digest,
            media_type,
        }
    }
}

/// Returns the name in the cache of one form of a text that contains an address.
fn form_name(item: &Item, address: &str, encoding: Encoding) -> Digest {
    let name = format!("{} {address} {}", item.digest, encoding.suffix());
    Digest::of(name.as_bytes())
}

/// Returns whether a file is the Markdown of a page.
fn is_page(path: &str) -> bool {
    path.starts_with("pages/") && path.ends_with(".md")
}

/// Replaces the placeholder by an address. The Markdown of a page then says where all pages are
/// listed.
fn completed(bytes: &Bytes, (address, is_page): (&str, bool)) -> Bytes {
    let bytes = addressed(bytes, address);
    match str::from_utf8(&bytes) {
        Ok(text) if is_page => announcements::with_index(text, address).into(),
        _ => bytes,
    }
}

/// Replaces the placeholder by an address.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_placeholder_is_replaced_by_the_address() {
        let text = format!("{BASE_URL_PLACEHOLDER}/a {BASE_URL_PLACEHOLDER}");
        assert_eq!(
            addressed(&text.into(), "https://x.test/b"),
            "https://x.test/b/a https://x.test/b"
        );
    }
}
