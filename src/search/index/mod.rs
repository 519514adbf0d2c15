//! Reads an index.
//!
//! A reader holds the *tables* of the parts that were searched: the length of each section, and the
//! positions of blocks. Everything else is read from the file when a question needs it, so an open
//! index takes about a fifth of its file in memory. A file may be damaged or hostile: every number
//! that it contains is checked before it is used.

mod storage;
mod table;
mod terms;
mod texts;

use std::cell::RefCell;
use std::ops::Range;
use std::sync::OnceLock;

pub use storage::{Decoded, Storage};
pub(super) use table::{PageRow, Table};
pub(super) use terms::{Occurrences, Term};
pub(super) use texts::Blocks;

use super::bytes::Reader;
use super::write::MAGIC;
use super::{InvalidIndex, SearchError};

/// How many bytes of a file are read first.
const HEAD_BYTES: u64 = 4 << 10;
/// The longest header, in bytes.
const HEADER_BYTES_MAX: u64 = 1 << 20;
/// The longest table, in bytes before it was compressed.
const TABLE_BYTES_MAX: usize = 64 << 20;

/// The memory of a part without what its length decides.
const PART_BYTES: usize = 2 << 10;

/// An open index.
#[derive(Debug)]
pub struct Index {
    pub(super) parts: Vec<OpenPart>,
    bytes: usize,
}

/// A language and version of the site of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartInfo {
    /// The BCP 47 tag of the language.
    pub language: String,
    /// The label of the version, on a site that has several.
    pub version: Option<String>,
    /// Whether a question that names no version and no language searches it.
    pub is_default: bool,
    /// How many pages it has.
    pub pages: usize,
}

/// How many bytes of an index are what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Tables.
    pub tables: u64,
    /// Terms.
    pub dictionary: u64,
    /// Postings of terms that have several.
    pub postings: u64,
    /// Headings, anchors and places of sections.
    pub sections: u64,
    /// Paths, titles and breadcrumbs of pages.
    pub pages: u64,
}

/// A part of an index.
#[derive(Debug)]
pub(super) struct OpenPart {
    pub(super) info: PartInfo,
    table_length: usize,
    /// Where its regions are in the file.
    table: Range<u64>,
    dictionary: Range<u64>,
    postings: Range<u64>,
    sections: Range<u64>,
    pages: Range<u64>,
    /// Read at the first question.
    read: OnceLock<Table>,
}

// === impl Index ===

impl Index {
    /// Opens an index: reads the list of its parts.
    ///
    /// # Errors
    ///
    /// [`SearchError`] when the file cannot be read or is not an index.
    pub fn open(file: &dyn Storage) -> Result<Self, SearchError> {
        let length = file.length();
        let head = file.read(0..length.min(HEAD_BYTES))?;
        let (magic, rest) = head
            .split_at_checked(MAGIC.len())
            .ok_or(InvalidIndex::Cut)?;
        if magic != MAGIC {
            return Err(InvalidIndex::Magic.into());
        }
        let (header_length, rest) = rest.split_first_chunk::<8>().ok_or(InvalidIndex::Cut)?;
        let header_length = u64::from_le_bytes(*header_length);
        let start = (MAGIC.len() + 8) as u64;
        if header_length > HEADER_BYTES_MAX || start + header_length > length {
            return Err(InvalidIndex::Cut.into());
        }
        let longer;
        let header = match rest.get(..usize::try_from(header_length).unwrap_or(usize::MAX)) {
            Some(header) => header,
            None => {
                longer = file.read(start..start + header_length)?;
                &longer
            }
        };
        let mut reader = Reader::new(header);
        let count = reader.length()?;
        let mut at = start + header_length;
        let mut parts = Vec::new();
        for _ in 0..count {
            parts.push(OpenPart::read(&mut reader, &mut at, length)?);
        }
        // A table needs at most six times its stored bytes in memory; most of it is numbers.
        let tables = parts.iter().map(|part| 6 * part.table_length + PART_BYTES);
        Ok(Self {
            bytes: tables.sum::<usize>() + 256,
            parts,
        })
    }

    /// Returns about how many bytes of memory the index takes after all its parts were searched.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns how many bytes of the file are what.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        let mut sizes = Sizes::default();
        let length = |region: &Range<u64>| region.end - region.start;
        for part in &self.parts {
            sizes.tables += length(&part.table);
            sizes.dictionary += length(&part.dictionary);
            sizes.postings += length(&part.postings);
            sizes.sections += length(&part.sections);
            sizes.pages += length(&part.pages);
        }
        sizes
    }

    /// Returns the languages and versions, in the order of the site.
    pub fn parts(&self) -> impl Iterator<Item = &PartInfo> {
        self.parts.iter().map(|part| &part.info)
    }
}

// === impl OpenPart ===

impl OpenPart {
    fn read(reader: &mut Reader<'_>, at: &mut u64, length: u64) -> Result<Self, InvalidIndex> {
        let info = PartInfo {
            language: reader.text()?.to_owned(),
            version: reader.optional()?.map(str::to_owned),
            is_default: reader.number()? == 1,
            pages: reader.length()?,
        };
        let table_length = reader.length()?;
        if table_length > TABLE_BYTES_MAX {
            return Err(InvalidIndex::Number);
        }
        let mut region = || {
            let start = *at;
            let end = start.checked_add(reader.number()?);
            *at = end.filter(|end| *end <= length).ok_or(InvalidIndex::Cut)?;
            Ok::<_, InvalidIndex>(start..*at)
        };
        Ok(Self {
            info,
            table_length,
            table: region()?,
            dictionary: region()?,
            postings: region()?,
            sections: region()?,
            pages: region()?,
            read: OnceLock::new(),
        })
    }

    /// Returns the table, which is read at the first call.
    pub(super) fn table(&self, file: &dyn Storage) -> Result<&Table, SearchError> {
        if let Some(table) = self.read.get() {
            return Ok(table);
        }
        let bytes = decompressed(&file.read(self.table.clone())?, self.table_length)?;
        let table = self.parse(&bytes)?;
        Ok(self.read.get_or_init(|| table))
    }
}

/// Takes the next region of a file.
fn region(at: &mut u64, length: u64, end_max: u64) -> Result<Range<u64>, InvalidIndex> {
    let start = *at;
    let end = start.checked_add(length).filter(|end| *end <= end_max);
    *at = end.ok_or(InvalidIndex::Cut)?;
    Ok(start..*at)
}

fn decompressed(bytes: &[u8], length: usize) -> Result<Vec<u8>, InvalidIndex> {
    thread_local! {
        // Making a decompressor takes longer than a block.
        static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> =
            const { RefCell::new(None) };
    }
    let raw = DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => kept.insert(zstd::bulk::Decompressor::new().ok()?),
        };
        decompressor.decompress(bytes, length).ok()
    });
    let raw = raw.filter(|raw| raw.len() == length);
    raw.ok_or(InvalidIndex::Compressed)
}

/// Replaces what follows the first `shared` bytes.
fn extend(text: &mut String, shared: usize, added: &str) -> Result<(), InvalidIndex> {
    if !text.is_char_boundary(shared) {
        return Err(InvalidIndex::Text);
    }
    text.truncate(shared);
    text.push_str(added);
    Ok(())
}
