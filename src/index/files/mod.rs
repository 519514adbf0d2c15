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
mod stored;
mod texts;

use std::sync::Arc;

use bytes::Bytes;

use crate::digest::Digest;
use crate::release::ReleaseId;
use crate::release::site::SiteDescription;
use crate::response::encoding::Accepted;
use crate::response::{Body, CachedResponse, Encoding, Response};
use crate::search::SearchError;
use crate::store::ReadError;

use cache::Coded;
pub use cache::{CACHE_BYTES_MAX, Cache, Variant};
pub use listing::{Listing, ListingError};
pub use stored::Stored;
pub(super) use stored::addressed;
use stored::completed;

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

/// Returns whether a file is the Markdown of a page.
fn is_page(path: &str) -> bool {
    path.starts_with("pages/") && path.ends_with(".md")
}
