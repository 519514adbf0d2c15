//! The table of a part: what stays in memory.

use std::ops::Range;

use super::super::InvalidIndex;
use super::super::bytes::Reader;
use super::super::posting::Kinds;
use super::super::words::Stemmer;
use super::super::write::boost;
use super::{OpenPart, extend, region};

/// The longest block of texts, in bytes before it was compressed.
const BLOCK_BYTES_MAX: usize = 8 << 20;

/// The data of a part that stays in memory.
#[derive(Debug)]
pub(in crate::search) struct Table {
    pub(in crate::search) stemmer: Stemmer,
    /// By page.
    pub(in crate::search) pages: Vec<PageRow>,
    /// By section: the page that has it.
    pub(super) page_of: Vec<u32>,
    /// By section: the stored length.
    pub(in crate::search) lengths: Vec<u8>,
    /// By page: the number of its words, as a share of the mean.
    words: Vec<f32>,
    /// By stored length: the number of words of a section, as a share of the mean.
    section_words: Vec<f32>,
    pub(super) kinds: Kinds,
    pub(super) terms: Vec<TermBlock>,
    pub(super) section_blocks: Vec<TextBlock>,
    pub(super) page_blocks: Vec<TextBlock>,
}

/// The data of a page that stays in memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::search) struct PageRow {
    /// Its first section.
    pub(in crate::search) first: u32,
    /// Its weight.
    pub(in crate::search) boost: f32,
    /// How many terms its title has.
    pub(in crate::search) title_terms: u8,
}

/// The place of a block of terms.
#[derive(Debug)]
pub(super) struct TermBlock {
    /// Its first term.
    pub(super) first: Box<str>,
    pub(super) bytes: Range<u64>,
    /// Where its postings begin.
    pub(super) postings: u64,
}

/// The place of a block of texts.
#[derive(Debug)]
pub(super) struct TextBlock {
    /// Its bytes before it was compressed.
    pub(super) length: usize,
    pub(super) bytes: Range<u64>,
}

// === impl OpenPart ===

impl OpenPart {
    /// Parses the table of the part.
    pub(super) fn parse(&self, bytes: &[u8]) -> Result<Table, InvalidIndex> {
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
}

// === impl Table ===

impl Table {
    /// Returns letters with which terms begin: the Latin ones without accent, or the others, as far
    /// as blocks of the dictionary begin with them.
    pub(in crate::search) fn first_letters(&self, is_latin: bool) -> Vec<char> {
        if is_latin {
            return ('a'..='z').collect();
        }
        let blocks = self.terms.iter();
        let letters = blocks.filter_map(|block| block.first.chars().next());
        let mut letters: Vec<char> = letters
            .filter(|letter| !letter.is_ascii() && letter.is_alphabetic())
            .collect();
        // The blocks are in the order of their terms.
        letters.dedup();
        letters
    }

    /// Returns the number of sections.
    pub(in crate::search) fn sections(&self) -> u32 {
        u32::try_from(self.page_of.len()).unwrap_or(u32::MAX)
    }

    /// Returns the page of a section.
    #[inline]
    pub(in crate::search) fn page_of(&self, section: u32) -> usize {
        self.page_of[section as usize] as usize
    }

    /// Returns the sections of a page.
    pub(in crate::search) fn sections_of(&self, page: usize) -> Range<u32> {
        let next = self.pages.get(page + 1).map(|next| next.first);
        self.pages[page].first..next.unwrap_or(self.sections())
    }

    /// Returns the factor by which the length of a page divides the frequency of its words.
    #[inline]
    pub(in crate::search) fn page_norm(&self, page: usize, share: f32) -> f32 {
        1.0 - share + share * self.words[page]
    }

    /// Returns the same for a section of a stored length.
    #[inline]
    pub(in crate::search) fn section_norm(&self, length: u8, share: f32) -> f32 {
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
