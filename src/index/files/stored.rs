//! The files of a release, in the forms that clients accept: from the cache, or made from the store.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::cache::{Cache, Coded, FILE_BYTES_MAX};
use super::kind;
use super::large::{AddressedText, LargeFile};
use super::listing::Listing;
use super::{File, ReadFileError, Reading};
use crate::digest::Digest;
use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::release::site::{ADDRESSED_START, STATIC};
use crate::release::{Item, ReleaseId, announcements};
use crate::response::encoding::{Accepted, Effort};
use crate::response::segments::replace_stored;
use crate::response::{Body, Encoding, Stored as StoredBody};
use crate::site::ProjectId;
use crate::store::{ReadError, Store};

/// The longest text that is encoded, in bytes.
const ENCODED_TEXT_BYTES_MAX: u64 = 32 << 20;

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
    /// The owner of the project.
    pub owner: Arc<str>,
    /// The files that pages of older releases load. The list is made at the first such request.
    pub older_files: OnceLock<HashMap<Box<str>, Item>>,
}

// === impl Stored ===

impl Stored {
    pub(super) fn listing(&self, reading: Reading) -> Result<Arc<Listing>, ReadFileError> {
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

    pub(super) fn read_older(
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
    pub(super) fn pick<'i>(
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

    pub(super) fn read_addressed(
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
    pub(super) fn read_page(
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
    pub(super) fn read_item(&self, item: &Item) -> Result<Bytes, ReadError> {
        self.cache.damage.observe(item, self.store.read(item))
    }

    fn large(&self, item: &Item) -> LargeFile {
        LargeFile {
            owner: Arc::clone(&self.owner),
            store: Arc::clone(&self.store),
            cache: Arc::clone(&self.cache),
            item: item.clone(),
        }
    }

    /// Returns the file of this name from the cache, or makes it if `reading` allows.
    ///
    /// Several requests may make the same file at the same time; no request waits for another.
    pub(super) fn get(
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

/// Returns the name in the cache of one form of a text that contains an address.
fn form_name(item: &Item, address: &str, encoding: Encoding) -> Digest {
    let name = format!("{} {address} {}", item.digest, encoding.suffix());
    Digest::of(name.as_bytes())
}

/// Replaces the placeholder by an address. The Markdown of a page then says where all pages are
/// listed.
pub(super) fn completed(bytes: &Bytes, (address, is_page): (&str, bool)) -> Bytes {
    let bytes = addressed(bytes, address);
    match str::from_utf8(&bytes) {
        Ok(text) if is_page => announcements::with_index(text, address).into(),
        _ => bytes,
    }
}

/// Replaces the placeholder by an address.
pub(in crate::index) fn addressed(bytes: &Bytes, address: &str) -> Bytes {
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
