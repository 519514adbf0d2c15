//! Reads an index.
//!
//! A reader holds the *tables* of the parts that were searched: the length of each section, and the
//! positions of blocks. Everything else is read from the file when a question needs it, so an open
//! index takes about a fifth of its file in memory. A file may be damaged or hostile: every number
//! that it contains is checked before it is used.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::bytes::Reader;
use super::posting::{Kinds, Posting};
use super::words::Stemmer;
use super::write::{
    ADDED_MAX, BLOCK_TERMS, BLOCK_TEXTS, MAGIC, SHARED_MAX, SINGLE, anchor_of, boost,
};
use super::{InvalidIndex, SearchError};

/// How many bytes of a file are read first.
const HEAD_BYTES: u64 = 4 << 10;
/// The longest header, in bytes.
const HEADER_BYTES_MAX: u64 = 1 << 20;
/// The longest table, in bytes before it was compressed.
const TABLE_BYTES_MAX: usize = 64 << 20;
/// The longest block of texts, in bytes before it was compressed.
const BLOCK_BYTES_MAX: usize = 8 << 20;
/// The most bytes of postings that are read for one term.
const POSTINGS_BYTES_MAX: u64 = 32 << 20;

/// Shorter lists of postings are decoded again for each question.
const POSTINGS_KEPT_MIN: u32 = 64;

/// The memory of a part without what its length decides.
const PART_BYTES: usize = 2 << 10;

/// The bytes of an index file, in memory or in a store.
pub trait Storage {
    /// Returns their number.
    fn length(&self) -> u64;

    /// Reads some of them. The range is within the length.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    fn read(&self, range: Range<u64>) -> io::Result<Bytes>;

    /// Returns the kept result of an earlier decoding at this place of the file.
    fn decoded(&self, _place: u64) -> Option<Decoded> {
        None
    }

    /// Keeps the result of decoding at this place of the file, for later questions. The cache may
    /// drop it at any time.
    fn keep(&self, _place: u64, _decoded: Decoded) {}
}

/// A decoded part of an index file: it takes longer to decode than to keep.
#[derive(Clone, Debug)]
pub struct Decoded(Part);

#[derive(Clone, Debug)]
enum Part {
    /// A block of texts.
    Texts(Bytes),
    /// The postings of a term.
    Postings(Arc<Occurrences>),
}

/// The postings of a term, in the order of the sections.
#[derive(Debug)]
pub(super) struct Occurrences {
    pub(super) list: Box<[Posting]>,
    /// How many pages have the term. Each question needs it, and a list is kept for many questions.
    pub(super) pages: u32,
}

impl Occurrences {
    pub(super) fn of(list: Vec<Posting>, table: &Table) -> Self {
        let (mut pages, mut end) = (0, 0);
        for posting in &list {
            if posting.section >= end {
                pages += 1;
                end = table.sections_of(table.page_of(posting.section)).end;
            }
        }
        Self {
            list: list.into_boxed_slice(),
            pages,
        }
    }
}

impl Storage for Bytes {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        let place = |at: u64| usize::try_from(at).map_err(io::Error::other);
        let (start, end) = (place(range.start)?, place(range.end)?);
        if start > end || end > self.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(self.slice(start..end))
    }
}

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

/// The data of a part that stays in memory.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) stemmer: Stemmer,
    /// By page.
    pub(super) pages: Vec<PageRow>,
    /// By section: the page that has it.
    page_of: Vec<u32>,
    /// By section: the stored length.
    pub(super) lengths: Vec<u8>,
    /// By page: the number of its words, as a share of the mean.
    words: Vec<f32>,
    /// By stored length: the number of words of a section, as a share of the mean.
    section_words: Vec<f32>,
    kinds: Kinds,
    terms: Vec<TermBlock>,
    section_blocks: Vec<TextBlock>,
    page_blocks: Vec<TextBlock>,
}

/// The data of a page that stays in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageRow {
    /// Its first section.
    pub(super) first: u32,
    /// Its weight.
    pub(super) boost: f32,
    /// How many terms its title has.
    pub(super) title_terms: u8,
}

#[derive(Debug)]
struct TermBlock {
    first: Box<str>,
    bytes: Range<u64>,
    postings: u64,
}

#[derive(Debug)]
struct TextBlock {
    length: usize,
    bytes: Range<u64>,
}

/// A term of the dictionary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) term: String,
    /// In how many sections it occurs.
    pub(super) sections: u32,
    postings: Postings,
}

/// Where the postings of a term are.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Postings {
    /// It has only one, which is in the dictionary.
    Single(Posting),
    /// In the region of the postings.
    List(Range<u64>),
}

/// The blocks of texts that were read for one answer, by their place in the file. Results are
/// often in the same block.
#[derive(Debug, Default)]
pub(super) struct Blocks(RefCell<HashMap<u64, Bytes>>);

/// The texts of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageText {
    pub(super) path: String,
    pub(super) title: String,
    pub(super) breadcrumb: Vec<String>,
}

/// The texts of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SectionText {
    pub(super) heading: Option<String>,
    pub(super) anchor: Option<String>,
    pub(super) range: Range<u64>,
}

// === impl Decoded ===

impl Decoded {
    /// Returns how many bytes of memory it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Part::Texts(texts) => texts.len(),
            Part::Postings(postings) => {
                size_of::<Occurrences>() + size_of_val::<[Posting]>(&postings.list)
            }
        }
    }
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

    fn parse(&self, bytes: &[u8]) -> Result<Table, InvalidIndex> {
        let mut reader = Reader::new(bytes);
        let count = reader.length()?;
        // Each page and each section has at least a byte of the table.
        if count > bytes.len() {
            return Err(InvalidIndex::Number);
        }
        let mut pages = Vec::with_capacity(count);
        let mut page_of = Vec::new();
        for page in 0..count {
            let sections = reader.length()?;
            let boost = boost(reader.byte()?);
            let title_terms = reader.byte()?;
            let first = u32::try_from(page_of.len()).map_err(|_too_many| InvalidIndex::Number)?;
            if sections == 0 || page_of.len().saturating_add(sections) > bytes.len() {
                return Err(InvalidIndex::Number);
            }
            let page = u32::try_from(page).map_err(|_too_many| InvalidIndex::Number)?;
            page_of.resize(page_of.len() + sections, page);
            pages.push(PageRow {
                first,
                boost,
                title_terms,
            });
        }
        let lengths = reader.take(page_of.len())?.to_vec();
        let kinds = reader.length()?;
        let kinds = Kinds::new(reader.take(kinds)?);
        let terms = self.term_blocks(&mut reader, bytes.len())?;
        let mut section_words: Vec<f32> = (0..=u8::MAX).map(words).collect();
        let mut words = vec![0.0; pages.len()];
        for (page, length) in page_of.iter().zip(&lengths) {
            words[*page as usize] += section_words[usize::from(*length)];
        }
        let total: f32 = words.iter().sum();
        for words in &mut section_words {
            *words /= mean(total, page_of.len());
        }
        for words in &mut words {
            *words /= mean(total, pages.len());
        }
        Ok(Table {
            words,
            section_words,
            stemmer: Stemmer::of(&self.info.language),
            kinds,
            terms,
            section_blocks: text_blocks(&mut reader, &self.sections)?,
            page_blocks: text_blocks(&mut reader, &self.pages)?,
            pages,
            page_of,
            lengths,
        })
    }

    fn term_blocks(
        &self,
        reader: &mut Reader<'_>,
        length: usize,
    ) -> Result<Vec<TermBlock>, InvalidIndex> {
        let count = reader.length()?;
        let mut terms: Vec<TermBlock> = Vec::with_capacity(count.min(length));
        let mut at = self.dictionary.start;
        let mut postings = 0;
        let mut first = String::new();
        for _ in 0..count {
            let shared = reader.length()?;
            extend(&mut first, shared, reader.text()?)?;
            let bytes = region(&mut at, reader.number()?, self.dictionary.end)?;
            let of_postings = self.postings.end - self.postings.start;
            let of_block = region(&mut postings, reader.number()?, of_postings)?;
            terms.push(TermBlock {
                first: first.as_str().into(),
                bytes,
                postings: of_block.start,
            });
        }
        Ok(terms)
    }

    /// Finds a term of the dictionary.
    pub(super) fn find(
        &self,
        file: &dyn Storage,
        table: &Table,
        term: &str,
    ) -> Result<Option<Term>, SearchError> {
        let mut found = None;
        self.scan(file, table, term, |entry| {
            if entry.term == term {
                found = Some(entry.clone());
            }
            entry.term.as_str() < term
        })?;
        Ok(found)
    }

    /// Calls `each` for the terms in ascending order, from the block that may have `from`, until
    /// it returns false.
    pub(super) fn scan(
        &self,
        file: &dyn Storage,
        table: &Table,
        from: &str,
        mut each: impl FnMut(&Term) -> bool,
    ) -> Result<(), SearchError> {
        let block = table.terms.partition_point(|block| &*block.first <= from);
        let blocks = &table.terms[block.saturating_sub(1)..];
        let sections = table.sections();
        let mut entry = Term {
            term: String::new(),
            sections: 0,
            postings: Postings::List(0..0),
        };
        for block in blocks {
            let bytes = file.read(block.bytes.clone())?;
            let mut reader = Reader::new(&bytes);
            entry.term.clear();
            entry.term.push_str(&block.first);
            let mut at = block.postings;
            for _ in 0..BLOCK_TERMS {
                if reader.is_empty() {
                    break;
                }
                let head = reader.byte()?;
                let shared = reader.counted(usize::from(head) & SHARED_MAX, SHARED_MAX)?;
                let added = reader.counted(usize::from(head) >> 4 & ADDED_MAX, ADDED_MAX)?;
                let added = std::str::from_utf8(reader.take(added)?);
                let added = added.map_err(|_invalid| InvalidIndex::Text)?;
                extend(&mut entry.term, shared, added)?;
                if head & SINGLE != 0 {
                    let (only, length) = table.kinds.read_single(reader.rest(), sections)?;
                    reader.take(length)?;
                    entry.sections = 1;
                    entry.postings = Postings::Single(only);
                } else {
                    entry.sections = reader.small()?;
                    let length = self.postings.end - self.postings.start;
                    entry.postings = Postings::List(region(&mut at, reader.number()?, length)?);
                }
                if !each(&entry) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Reads the postings of a term.
    pub(super) fn postings(
        &self,
        file: &dyn Storage,
        table: &Table,
        entry: &Term,
    ) -> Result<Arc<Occurrences>, SearchError> {
        let range = match &entry.postings {
            Postings::Single(only) => return Ok(Arc::new(Occurrences::of(vec![*only], table))),
            Postings::List(range) => range,
        };
        let place = self.postings.start + range.start;
        let is_long = entry.sections >= POSTINGS_KEPT_MIN;
        if is_long && let Some(Decoded(Part::Postings(postings))) = file.decoded(place) {
            return Ok(postings);
        }
        if range.end - range.start > POSTINGS_BYTES_MAX {
            return Err(InvalidIndex::Number.into());
        }
        let bytes = file.read(place..self.postings.start + range.end)?;
        let sections = table.sections();
        // A list has at most one posting for each section, and each posting takes two bits.
        let count = entry.sections.min(sections);
        let most = bytes.len().saturating_mul(4);
        let mut postings = Vec::with_capacity(most.min(count as usize));
        let each = |posting| postings.push(posting);
        table.kinds.read_list(&bytes, (count, sections), each)?;
        let postings = Arc::new(Occurrences::of(postings, table));
        if is_long {
            file.keep(place, Decoded(Part::Postings(Arc::clone(&postings))));
        }
        Ok(postings)
    }

    /// Reads the texts of a page.
    pub(super) fn page(
        &self,
        file: &dyn Storage,
        blocks: &Blocks,
        page: u32,
    ) -> Result<PageText, SearchError> {
        let table = self.table(file)?;
        blocks.text(file, &table.page_blocks, page, |reader, before| {
            for _ in 0..before {
                reader.text()?;
                reader.text()?;
                for _ in 0..reader.length()? {
                    reader.text()?;
                }
            }
            let path = reader.text()?.to_owned();
            let title = reader.text()?.to_owned();
            let count = reader.length()?;
            let mut breadcrumb = Vec::new();
            for _ in 0..count {
                breadcrumb.push(reader.text()?.to_owned());
            }
            Ok(PageText {
                path,
                title,
                breadcrumb,
            })
        })
    }

    /// Reads the texts of a section.
    pub(super) fn section(
        &self,
        file: &dyn Storage,
        blocks: &Blocks,
        section: u32,
    ) -> Result<SectionText, SearchError> {
        let table = self.table(file)?;
        blocks.text(file, &table.section_blocks, section, |reader, before| {
            let first = section as usize - before;
            let mut end = 0_u64;
            for number in first.. {
                let heading = reader.optional()?;
                let anchor = match heading {
                    Some(_) => reader.optional()?,
                    None => None,
                };
                let is_of_next_page =
                    number > first && table.page_of.get(number) != table.page_of.get(number - 1);
                if is_of_next_page {
                    end = 0;
                }
                let start = end.checked_add(reader.number()?);
                let start = start.ok_or(InvalidIndex::Number)?;
                end = start
                    .checked_add(reader.number()?)
                    .ok_or(InvalidIndex::Number)?;
                if number == section as usize {
                    let made = || heading.map(anchor_of);
                    return Ok(SectionText {
                        anchor: anchor.map(str::to_owned).or_else(made),
                        heading: heading.map(str::to_owned),
                        range: start..end,
                    });
                }
            }
            Err(InvalidIndex::Order)
        })
    }
}

// === impl Blocks ===

impl Blocks {
    /// Reads one text of a block. `read` is told how many texts are before it.
    fn text<T>(
        &self,
        file: &dyn Storage,
        blocks: &[TextBlock],
        number: u32,
        read: impl FnOnce(&mut Reader<'_>, usize) -> Result<T, InvalidIndex>,
    ) -> Result<T, SearchError> {
        let number = number as usize;
        let block = blocks.get(number / BLOCK_TEXTS).ok_or(InvalidIndex::Cut)?;
        let mut known = self.0.borrow_mut();
        let bytes = match known.entry(block.bytes.start) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(entry) => {
                let place = block.bytes.start;
                let texts = match file.decoded(place) {
                    Some(Decoded(Part::Texts(texts))) if texts.len() == block.length => texts,
                    _ => {
                        let bytes = file.read(block.bytes.clone())?;
                        let texts = Bytes::from(decompressed(&bytes, block.length)?);
                        file.keep(place, Decoded(Part::Texts(texts.clone())));
                        texts
                    }
                };
                entry.insert(texts)
            }
        };
        Ok(read(&mut Reader::new(bytes), number % BLOCK_TEXTS)?)
    }
}

// === impl Table ===

impl Table {
    /// Returns the number of sections.
    pub(super) fn sections(&self) -> u32 {
        u32::try_from(self.page_of.len()).unwrap_or(u32::MAX)
    }

    /// Returns the page of a section.
    #[inline]
    pub(super) fn page_of(&self, section: u32) -> usize {
        self.page_of[section as usize] as usize
    }

    /// Returns the sections of a page.
    pub(super) fn sections_of(&self, page: usize) -> Range<u32> {
        let next = self.pages.get(page + 1).map(|next| next.first);
        self.pages[page].first..next.unwrap_or(self.sections())
    }

    /// Returns the factor by which the length of a page divides the frequency of its words.
    #[inline]
    pub(super) fn page_norm(&self, page: usize, share: f32) -> f32 {
        1.0 - share + share * self.words[page]
    }

    /// Returns the same for a section of a stored length.
    #[inline]
    pub(super) fn section_norm(&self, length: u8, share: f32) -> f32 {
        1.0 - share + share * self.section_words[usize::from(length)]
    }
}

/// Returns the number of words of a stored length.
fn words(length: u8) -> f32 {
    (f32::from(length) / 8.0).exp2() - 1.0
}

#[expect(clippy::cast_precision_loss, reason = "a mean is approximate")]
fn mean(total: f32, count: usize) -> f32 {
    (total / count as f32).max(1.0)
}

/// Takes the next region of a file.
fn region(at: &mut u64, length: u64, end_max: u64) -> Result<Range<u64>, InvalidIndex> {
    let start = *at;
    let end = start.checked_add(length).filter(|end| *end <= end_max);
    *at = end.ok_or(InvalidIndex::Cut)?;
    Ok(start..*at)
}

fn text_blocks(
    reader: &mut Reader<'_>,
    within: &Range<u64>,
) -> Result<Vec<TextBlock>, InvalidIndex> {
    let mut at = within.start;
    let mut blocks = Vec::new();
    for _ in 0..reader.length()? {
        let length = reader.length()?;
        if length > BLOCK_BYTES_MAX {
            return Err(InvalidIndex::Number);
        }
        let bytes = region(&mut at, reader.number()?, within.end)?;
        blocks.push(TextBlock { length, bytes });
    }
    Ok(blocks)
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
