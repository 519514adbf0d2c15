//! Answers questions from the search index of a release.
//!
//! The index is read from the store in parts, and so is the Markdown from which excerpts are
//! written. The cache holds the open indexes of the sites that are searched. A site
//! without searches needs no memory.

use std::cell::{OnceCell, RefCell};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::cache::{Cache, Coded};
use super::{List, LiveFiles, Open, ReadFileError, Reading, Stored, completed};
use crate::release::Item;
use crate::release::site::{SEARCH_FILE, page_file};
use crate::response::Encoding;
use crate::search::{Decoded, Index, PartInfo, Question, SearchResult, Storage, Texts};
use crate::store::{ContentFile, Store};

/// The longest page that is read whole for an excerpt, in bytes, so that the cache holds it.
const PAGE_BYTES_MAX: u64 = 32 << 10;

/// The index file of a release, in the store. It is opened at the first read: the cache may have
/// everything that an answer needs.
struct IndexFile<'f> {
    item: &'f Item,
    store: &'f Store,
    cache: &'f Cache,
    file: OnceCell<ContentFile>,
}

/// The Markdown of the pages of a release.
struct StoredTexts<'f> {
    stored: &'f Stored,
    list: &'f List<'f>,
    /// The pages that were read for this answer: several sections of a page are shown.
    read: RefCell<Vec<(Box<str>, Bytes)>>,
}

/// The Markdown of the pages of a preview.
struct LiveTexts<'f>(&'f dyn LiveFiles);

// === impl Open ===

impl Open<'_> {
    /// Answers a question. A release without an index gives no results.
    ///
    /// # Errors
    ///
    /// [`ReadFileError`] when the index cannot be read or is damaged; always if reading from the
    /// store is not allowed.
    pub fn search(&self, question: &Question<'_>) -> Result<SearchResult, ReadFileError> {
        self.search_with_parts(question).map(|(found, _)| found)
    }

    /// Answers a question, and returns the languages and versions that can be searched.
    ///
    /// # Errors
    ///
    /// As [`Open::search`].
    pub fn search_with_parts(
        &self,
        question: &Question<'_>,
    ) -> Result<(SearchResult, Vec<PartInfo>), ReadFileError> {
        self.with_index(|index, file, texts| {
            let found = index.search(file, texts, question)?;
            Ok((found, index.parts().cloned().collect()))
        })
        .map(Option::unwrap_or_default)
    }

    /// Returns where the section with an anchor begins in the Markdown of a page as it is sent, in
    /// bytes. `None` if the index does not have it.
    ///
    /// # Errors
    ///
    /// As [`Open::search`].
    pub fn section_start(&self, path: &str, anchor: &str) -> Result<Option<usize>, ReadFileError> {
        let address = &*self.files.address;
        let found = self.with_index(|index, file, texts| {
            let start = index.section_start(file, path, anchor)?;
            // The index knows the page before the addresses are inserted.
            let before = start.and_then(|start| texts.markdown(path, 0..start));
            Ok(before.map(|before| completed(&before, (address, true)).len()))
        })?;
        Ok(found.flatten())
    }

    fn with_index<T>(
        &self,
        ask: impl FnOnce(&Index, &dyn Storage, &dyn Texts) -> Result<T, ReadFileError>,
    ) -> Result<Option<T>, ReadFileError> {
        if self.reading == Reading::Cached {
            return Err(ReadFileError::NotCached);
        }
        match &self.list {
            List::Release(stored, listing) => {
                let Some(item) = listing.get(SEARCH_FILE) else {
                    return Ok(None);
                };
                let file = IndexFile {
                    item,
                    store: &stored.store,
                    cache: &stored.cache,
                    file: OnceCell::new(),
                };
                let index = stored.index(item, &file)?;
                let texts = StoredTexts {
                    stored,
                    list: &self.list,
                    read: RefCell::default(),
                };
                ask(&index, &file, &texts).map(Some)
            }
            List::Live(files) => {
                let Some((bytes, _)) = files.file(SEARCH_FILE) else {
                    return Ok(None);
                };
                ask(&Index::open(&bytes)?, &bytes, &LiveTexts(*files)).map(Some)
            }
        }
    }
}

// === impl Stored ===

impl Stored {
    /// Returns the open index from the cache, or opens it.
    fn index(&self, item: &Item, file: &IndexFile<'_>) -> Result<Arc<Index>, ReadFileError> {
        if let Some(index) = self.cache.index(&item.digest) {
            return Ok(index);
        }
        let index = Arc::new(Index::open(file)?);
        self.cache.put_index(item.digest, Arc::clone(&index));
        Ok(index)
    }
}

// === impl IndexFile ===

impl Storage for IndexFile<'_> {
    fn length(&self) -> u64 {
        self.item.length
    }

    fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        let file = match self.file.get() {
            Some(file) => file,
            None => {
                let opened = self.store.open(self.item).map_err(io::Error::other)?;
                self.file.get_or_init(|| opened)
            }
        };
        read(file, range)
    }

    fn decoded(&self, place: u64) -> Option<Decoded> {
        self.cache.decoded(&self.item.digest, place)
    }

    fn keep(&self, place: u64, decoded: Decoded) {
        self.cache.put_decoded(self.item.digest, place, decoded);
    }
}

fn read(file: &ContentFile, range: Range<u64>) -> io::Result<Bytes> {
    let length = range.end.saturating_sub(range.start);
    let mut bytes = BytesMut::zeroed(usize::try_from(length).map_err(io::Error::other)?);
    file.read_at(&mut bytes, range.start)
        .map_err(io::Error::other)?;
    Ok(bytes.freeze())
}

// === impl Texts ===

impl Texts for StoredTexts<'_> {
    fn markdown(&self, path: &str, range: Range<u64>) -> Option<Bytes> {
        let known = self.read.borrow();
        if let Some((_, page)) = known.iter().find(|(known, _)| **known == *path) {
            return slice(page, range);
        }
        drop(known);
        let List::Release(_, listing) = self.list else {
            return None;
        };
        let item = listing.get(&page_file(path, "md"))?;
        let range = range.start.min(item.length)..range.end.min(item.length);
        if item.length > PAGE_BYTES_MAX {
            return match self.stored.cache.file(&item.digest) {
                Some(file) => slice(&file.bytes, range),
                None => read(&self.stored.store.open(item).ok()?, range).ok(),
            };
        }
        // Another question, or a request for the page, will read it again.
        let whole = self.stored.get(item.digest, Reading::Blocking, || {
            Ok(Coded {
                bytes: self.stored.read_item(item)?,
                encoding: Encoding::Identity,
                digest: item.digest,
            })
        });
        let page = whole.ok()?.bytes;
        let part = slice(&page, range);
        self.read.borrow_mut().push((path.into(), page));
        part
    }
}

impl Texts for LiveTexts<'_> {
    fn markdown(&self, path: &str, range: Range<u64>) -> Option<Bytes> {
        let (bytes, _) = self.0.file(&page_file(path, "md"))?;
        slice(&bytes, range)
    }
}

/// Returns a range of a text, as far as it exists.
fn slice(bytes: &Bytes, range: Range<u64>) -> Option<Bytes> {
    let end = usize::try_from(range.end).ok()?.min(bytes.len());
    let start = usize::try_from(range.start).ok()?.min(end);
    Some(bytes.slice(start..end))
}
