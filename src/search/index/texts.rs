//! The texts of pages and sections.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use bytes::Bytes;

use super::super::bytes::{Reader, utf8};
use super::super::write::{BLOCK_TEXTS, anchor_of};
use super::super::{InvalidIndex, SearchError};
use super::storage::{Decoded, Part, Storage};
use super::table::TextBlock;
use super::{OpenPart, decompressed};

/// The blocks of texts that were read for one answer, by their place in the file. Results are
/// often in the same block.
#[derive(Debug, Default)]
pub(in crate::search) struct Blocks(RefCell<HashMap<u64, Bytes>>);

/// The texts of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::search) struct PageText {
    pub(in crate::search) path: String,
    pub(in crate::search) title: String,
    pub(in crate::search) breadcrumb: Vec<String>,
}

/// The texts of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::search) struct SectionText {
    pub(in crate::search) heading: Option<String>,
    pub(in crate::search) anchor: Option<String>,
    pub(in crate::search) range: Range<u64>,
}

// === impl OpenPart ===

impl OpenPart {
    /// Reads the texts of a page.
    pub(in crate::search) fn page(
        &self,
        file: &dyn Storage,
        blocks: &Blocks,
        page: u32,
    ) -> Result<PageText, SearchError> {
        let table = self.table(file)?;
        blocks.text(file, &table.page_blocks, page, |reader, before| {
            for _ in 0..before {
                reader.skip_text()?;
                reader.skip_text()?;
                for _ in 0..reader.length()? {
                    reader.skip_text()?;
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

    /// Finds the page at a path. All blocks of pages before it are read.
    pub(in crate::search) fn page_at(
        &self,
        file: &dyn Storage,
        blocks: &Blocks,
        path: &str,
    ) -> Result<Option<u32>, SearchError> {
        let table = self.table(file)?;
        for page in (0..table.pages.len()).step_by(BLOCK_TEXTS) {
            let first = u32::try_from(page).map_err(|_too_many| InvalidIndex::Number)?;
            let found = blocks.text(file, &table.page_blocks, first, |reader, _| {
                for number in first.. {
                    if reader.is_empty() {
                        break;
                    }
                    if reader.text()? == path {
                        return Ok(Some(number));
                    }
                    reader.skip_text()?;
                    for _ in 0..reader.length()? {
                        reader.skip_text()?;
                    }
                }
                Ok(None)
            })?;
            if found.is_some() {
                // A damaged file may name more pages than the table has.
                return Ok(found.filter(|page| (*page as usize) < table.pages.len()));
            }
        }
        Ok(None)
    }

    /// Reads the texts of a section.
    pub(in crate::search) fn section(
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
                let heading = reader.optional_bytes()?;
                let anchor = match heading {
                    Some(_) => reader.optional_bytes()?,
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
                    let heading = utf8(heading)?;
                    let made = || heading.map(anchor_of);
                    return Ok(SectionText {
                        anchor: utf8(anchor)?.map(str::to_owned).or_else(made),
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
    /// Reads one text of a block. `read` gets the number of texts before it.
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
