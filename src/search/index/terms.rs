//! Terms of the dictionary and their postings.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::super::bytes::Reader;
use super::super::posting::Posting;
use super::super::write::{ADDED_MAX, BLOCK_TERMS, SHARED_MAX, SINGLE};
use super::super::{InvalidIndex, SearchError};
use super::storage::{Decoded, Part, Storage};
use super::table::Table;
use super::{OpenPart, extend, region};

/// The most bytes of postings that are read for one term.
const POSTINGS_BYTES_MAX: u64 = 32 << 20;
/// Shorter lists of postings are decoded again for each question.
const POSTINGS_KEPT_MIN: u32 = 8;

/// A term of the dictionary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::search) struct Term {
    pub(in crate::search) term: String,
    /// In how many sections it occurs.
    pub(in crate::search) sections: u32,
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

/// The postings of a term, in the order of the sections.
#[derive(Debug)]
pub(in crate::search) struct Occurrences {
    pub(in crate::search) list: Box<[Posting]>,
    /// How many pages have the term. Each question needs it, and a list is kept for many questions.
    pub(in crate::search) pages: u32,
}

// === impl Occurrences ===

impl Occurrences {
    pub(in crate::search) fn of(list: Vec<Posting>, table: &Table) -> Self {
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

// === impl OpenPart ===

impl OpenPart {
    /// Finds a term of the dictionary.
    pub(in crate::search) fn find(
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
    pub(in crate::search) fn scan(
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
            let bytes = block_bytes(file, &block.bytes)?;
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
    pub(in crate::search) fn postings(
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
}

/// Reads a block of the dictionary.
fn block_bytes(file: &dyn Storage, place: &Range<u64>) -> Result<Bytes, SearchError> {
    let length = place.end - place.start;
    match file.decoded(place.start) {
        Some(Decoded(Part::Terms(bytes))) if bytes.len() as u64 == length => Ok(bytes),
        _ => {
            let bytes = file.read(place.clone())?;
            file.keep(place.start, Decoded(Part::Terms(bytes.clone())));
            Ok(bytes)
        }
    }
}
