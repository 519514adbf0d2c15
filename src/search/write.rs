//! Writes an index.
//!
//! The documents of a part are divided into batches, whose words are found on all cores. The
//! batches are then merged in order, so the bytes do not depend on the number of threads.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use rayon::prelude::*;

use super::bytes::{put, put_optional, put_text};
use super::posting::{
    DESCRIPTION, HEADING, KEYWORD, KindCounts, KindNumbers, PLACE, Posting, TITLE,
};
use super::section::{Heading, Section, sections};
use super::words::{Stemmer, runs, terms};

/// The first bytes of an index.
pub(super) const MAGIC: &[u8; 16] = b"waypost search2\n";
/// How many terms a block of the dictionary has.
pub(super) const BLOCK_TERMS: usize = 32;
/// How many pages or sections a block of texts has.
pub(super) const BLOCK_TEXTS: usize = 64;
/// The stored weight of a page without `boost`.
const BOOST_NONE: f32 = 128.0;
/// How many steps a doubling of the weight has.
const BOOST_STEPS: f32 = 16.0;
/// The first byte of an entry of the dictionary says that its term has only one posting.
pub(super) const SINGLE: u8 = 0x80;
/// The most bytes of a term that the first byte of its entry can count.
pub(super) const ADDED_MAX: usize = 7;
/// The most bytes in common with the term before it that the first byte can count.
pub(super) const SHARED_MAX: usize = 15;
/// How many pages a batch has.
const BATCH: usize = 32;
/// The level of compression of texts: higher levels are slower, and the result is hardly smaller.
const LEVEL: i32 = 9;
/// How many keywords of a page are indexed.
const KEYWORDS_MAX: usize = 64;

/// A language and version of a site, with its pages.
#[derive(Clone, Debug)]
pub struct Part<'d> {
    /// The BCP 47 tag of the language, whose rules stem the words.
    pub language: &'d str,
    /// The label of the version, on a site that has several.
    pub version: Option<&'d str>,
    /// Whether a question that names no version and no language searches it.
    pub is_default: bool,
    /// Its pages.
    pub documents: Vec<Document<'d>>,
}

/// A page to be found.
#[derive(Clone, Debug, Default)]
pub struct Document<'d> {
    /// Its path, without leading slash.
    pub path: &'d str,
    /// Its title.
    pub title: &'d str,
    /// The labels above it in the navigation.
    pub breadcrumb: Vec<&'d str>,
    /// The words that its author wrote for search.
    pub keywords: Vec<&'d str>,
    /// Its description. The Markdown has it as a quote below the title.
    pub description: Option<&'d str>,
    /// The factor by which its author raises it; 1 if not set.
    pub boost: Option<f32>,
    /// Its Markdown. The first heading is the title.
    pub markdown: &'d str,
    /// Its headings with anchors, in order.
    pub headings: Vec<Heading<'d>>,
}

/// Writes the index of a site. The same parts give the same bytes.
///
/// ```
/// use waypost::search::{Document, Index, Part, Question, write};
///
/// let page = Document {
///     path: "whales",
///     title: "Whales",
///     markdown: "# Whales\n\nThey sing for hours.\n",
///     ..Document::default()
/// };
/// let markdown = bytes::Bytes::from(page.markdown);
/// let part = Part { language: "en", version: None, is_default: true, documents: vec![page] };
/// let file = bytes::Bytes::from(write(&[part]));
/// let index = Index::open(&file)?;
/// let found = index.search(&file, &|_: &str, range: std::ops::Range<u64>| {
///     Some(markdown.slice(range.start as usize..range.end as usize))
/// }, &Question::new("singing"))?;
/// assert_eq!(found.hits[0].title, "Whales");
/// assert_eq!(found.hits[0].sections[0].excerpt.text, "They sing for hours.");
/// # Ok::<(), waypost::search::SearchError>(())
/// ```
#[must_use]
pub fn write(parts: &[Part<'_>]) -> Vec<u8> {
    let regions: Vec<Regions> = parts.par_iter().map(Regions::of).collect();
    let mut header = Vec::new();
    put(&mut header, parts.len() as u64);
    for (part, regions) in parts.iter().zip(&regions) {
        put_text(&mut header, part.language);
        put_optional(&mut header, part.version);
        put(&mut header, u64::from(part.is_default));
        put(&mut header, part.documents.len() as u64);
        put(&mut header, regions.table_length as u64);
        for region in regions.all() {
            put(&mut header, region.len() as u64);
        }
    }
    let mut out = MAGIC.to_vec();
    out.extend((header.len() as u64).to_le_bytes());
    out.extend(header);
    for regions in &regions {
        for region in regions.all() {
            out.extend_from_slice(region);
        }
    }
    out
}

/// The regions of a part.
#[derive(Debug, Default)]
struct Regions {
    /// The compressed bytes that a reader keeps in memory.
    table: Vec<u8>,
    /// The length of the table before it was compressed.
    table_length: usize,
    dictionary: Vec<u8>,
    postings: Vec<u8>,
    sections: Vec<u8>,
    pages: Vec<u8>,
}

/// The words of some pages.
#[derive(Default)]
struct Batch {
    terms: HashMap<Box<str>, u32, FixedState>,
    /// By the number of the term.
    postings: Vec<Vec<Posting>>,
    /// The sections of each page.
    pages: Vec<Vec<Section>>,
    /// The number of words of each section.
    lengths: Vec<u32>,
    kinds: KindCounts,
}

/// A term with its postings in the batches that have it.
type Group<'b> = &'b [(&'b str, usize, u32)];

/// A block of the dictionary.
#[derive(Default)]
struct TermBlock {
    entries: Vec<u8>,
    postings: Vec<u8>,
}

/// Finds the words of texts, and remembers the terms of each run.
struct Words<'s> {
    stemmer: &'s Stemmer,
    known: HashMap<Box<str>, Box<[u32]>, FixedState>,
}

// === impl Regions ===

impl Regions {
    fn of(part: &Part<'_>) -> Self {
        let stemmer = Stemmer::of(part.language);
        let batches = part.documents.par_chunks(BATCH);
        let batches: Vec<Batch> = batches.map(|pages| Batch::of(pages, &stemmer)).collect();
        let mut regions = Self::default();
        let mut table = Vec::new();
        let pages = || batches.iter().flat_map(|batch| &batch.pages);
        put(&mut table, pages().count() as u64);
        for (document, sections) in part.documents.iter().zip(pages()) {
            put(&mut table, sections.len() as u64);
            table.push(boost_byte(document.boost));
            let mut words = 0_u8;
            runs(document.title, |place, kind| {
                terms(&document.title[place], kind, &stemmer, |_, _| {
                    words = words.saturating_add(1);
                });
            });
            table.push(words);
        }
        let lengths = batches.iter().flat_map(|batch| &batch.lengths);
        table.extend(lengths.map(|length| length_byte(*length)));
        regions.dictionary(&batches, &mut table);
        let mut texts = Vec::new();
        for (document, sections) in part.documents.iter().zip(pages()) {
            let mut before = 0;
            for section in sections {
                // A block is read without the one before it.
                if texts.len() % BLOCK_TEXTS == 0 {
                    before = 0;
                }
                texts.push(section_text(document, section, before));
                before = section.range.end;
            }
        }
        regions.sections = blocks(&texts, &mut table);
        let texts: Vec<Vec<u8>> = part.documents.iter().map(page_text).collect();
        regions.pages = blocks(&texts, &mut table);
        regions.table_length = table.len();
        regions.table = compressed(&table);
        regions
    }

    fn all(&self) -> [&[u8]; 5] {
        [
            &self.table,
            &self.dictionary,
            &self.postings,
            &self.sections,
            &self.pages,
        ]
    }

    /// Writes the dictionary and the postings, and the blocks of the dictionary into the table.
    fn dictionary(&mut self, batches: &[Batch], table: &mut Vec<u8>) {
        let mut counts = KindCounts::default();
        let mut first_section = Vec::with_capacity(batches.len());
        let mut sections = 0_u32;
        for batch in batches {
            counts.merge(&batch.kinds);
            first_section.push(sections);
            sections += u32::try_from(batch.lengths.len()).unwrap_or(u32::MAX);
        }
        let (kinds, numbers) = counts.numbers();
        put(table, kinds.as_bytes().len() as u64);
        table.extend(kinds.as_bytes());
        let mut terms: Vec<(&str, usize, u32)> = Vec::new();
        for (at, batch) in batches.iter().enumerate() {
            terms.extend(batch.terms.iter().map(|(term, id)| (&**term, at, *id)));
        }
        terms.par_sort_unstable();
        let groups: Vec<Group<'_>> = terms.chunk_by(|one, other| one.0 == other.0).collect();
        let postings = |group: Group<'_>| -> Vec<Posting> {
            let of_batch = |(_, at, id): &(&str, usize, u32)| {
                let first = first_section[*at];
                let postings = batches[*at].postings[*id as usize].iter();
                postings.map(move |posting| Posting {
                    section: first + posting.section,
                    ..*posting
                })
            };
            group.iter().flat_map(of_batch).collect()
        };
        let block = |groups: &[Group<'_>]| {
            let mut block = TermBlock::default();
            let mut before = groups[0][0].0;
            for group in groups {
                let term = group[0].0;
                block.add((before, term), &postings(group), (&numbers, sections));
                before = term;
            }
            block
        };
        let blocks: Vec<TermBlock> = groups.par_chunks(BLOCK_TERMS).map(block).collect();
        put(table, blocks.len() as u64);
        let mut before = "";
        for (block, groups) in blocks.iter().zip(groups.chunks(BLOCK_TERMS)) {
            let term = groups[0][0].0;
            let shared = shared_bytes(before, term);
            before = term;
            put(table, shared as u64);
            put_text(table, &term[shared..]);
            put(table, block.entries.len() as u64);
            put(table, block.postings.len() as u64);
            self.dictionary.extend(&block.entries);
            self.postings.extend(&block.postings);
        }
    }
}

// === impl TermBlock ===

impl TermBlock {
    /// Adds a term. The only posting of a term is in the dictionary itself.
    fn add(
        &mut self,
        (before, term): (&str, &str),
        postings: &[Posting],
        (numbers, sections): (&KindNumbers, u32),
    ) {
        let shared = shared_bytes(before, term);
        let added = term.len() - shared;
        let single = match postings.len() {
            1 => SINGLE,
            _ => 0,
        };
        let counted = added.min(ADDED_MAX) << 4 | shared.min(SHARED_MAX);
        let counted = u8::try_from(counted).expect("seven bits are two limited counts");
        self.entries.push(single | counted);
        if let Some(more) = shared.checked_sub(SHARED_MAX) {
            put(&mut self.entries, more as u64);
        }
        if let Some(more) = added.checked_sub(ADDED_MAX) {
            put(&mut self.entries, more as u64);
        }
        self.entries.extend_from_slice(&term.as_bytes()[shared..]);
        if let [only] = postings {
            numbers.write_single(only, sections, &mut self.entries);
            return;
        }
        put(&mut self.entries, postings.len() as u64);
        let start = self.postings.len();
        numbers.write_list(postings, &mut self.postings);
        put(&mut self.entries, (self.postings.len() - start) as u64);
    }
}

/// Returns how many bytes two terms have in common at their beginning, up to a whole character.
fn shared_bytes(one: &str, other: &str) -> usize {
    let pairs = one.bytes().zip(other.bytes());
    let shared = pairs.take_while(|(one, other)| one == other).count();
    one.floor_char_boundary(shared)
        .min(other.floor_char_boundary(shared))
}

/// Compresses texts in blocks, and writes their lengths into the table.
fn blocks(texts: &[Vec<u8>], table: &mut Vec<u8>) -> Vec<u8> {
    let blocks = texts.par_chunks(BLOCK_TEXTS).map(|texts| {
        let raw = texts.concat();
        (raw.len(), compressed(&raw))
    });
    let blocks: Vec<_> = blocks.collect();
    let mut out = Vec::new();
    put(table, blocks.len() as u64);
    for (raw, block) in blocks {
        put(table, raw as u64);
        put(table, block.len() as u64);
        out.extend(block);
    }
    out
}

fn compressed(raw: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(raw, LEVEL).expect("memory is the only thing that compression needs")
}

fn page_text(document: &Document<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    put_text(&mut out, document.path);
    put_text(&mut out, document.title);
    put(&mut out, document.breadcrumb.len() as u64);
    for label in &document.breadcrumb {
        put_text(&mut out, label);
    }
    out
}

/// Writes the texts of a section. `before` is the end of the section before it, on the same page
/// and in the same block; else zero.
fn section_text(document: &Document<'_>, section: &Section, before: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let heading = section.heading.map(|at| document.headings[at]);
    put_optional(&mut out, heading.map(|heading| heading.text));
    if let Some(Heading { anchor, text }) = heading {
        // Most anchors are made of the heading.
        match anchor == anchor_of(text) {
            true => put(&mut out, 0),
            false => put_optional(&mut out, Some(anchor)),
        }
    }
    put(&mut out, section.range.start.saturating_sub(before) as u64);
    put(&mut out, section.range.len() as u64);
    out
}

/// Returns the anchor that a heading has most often: its letters and digits in lower case, with a
/// hyphen between the words.
pub(super) fn anchor_of(heading: &str) -> String {
    let mut anchor = String::with_capacity(heading.len());
    for c in heading.chars() {
        match c {
            c if c.is_alphanumeric() => anchor.extend(c.to_lowercase()),
            ' ' | '-' | '_' | '.' if !anchor.is_empty() && !anchor.ends_with('-') => {
                anchor.push('-');
            }
            _ => {}
        }
    }
    anchor.truncate(anchor.trim_end_matches('-').len());
    anchor
}

/// Stores a number of words in eight steps for each doubling.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the logarithm of a 32-bit number is at most 32"
)]
pub(super) fn length_byte(words: u32) -> u8 {
    ((1.0 + words as f32).log2() * 8.0).round().min(255.0) as u8
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is clamped"
)]
fn boost_byte(boost: Option<f32>) -> u8 {
    let steps = boost.unwrap_or(1.0).log2() * BOOST_STEPS;
    (BOOST_NONE + steps.round()).clamp(0.0, 255.0) as u8
}

/// Returns the factor of a stored weight.
pub(super) fn boost(byte: u8) -> f32 {
    ((f32::from(byte) - BOOST_NONE) / BOOST_STEPS).exp2()
}

// === impl Batch ===

impl Batch {
    fn of(documents: &[Document<'_>], stemmer: &Stemmer) -> Self {
        let mut batch = Self::default();
        let mut words = Words {
            stemmer,
            known: HashMap::default(),
        };
        for document in documents {
            let is_described = document.description.is_some();
            let mut sections = sections(document.markdown, &document.headings, is_described);
            for (at, section) in sections.iter_mut().enumerate() {
                if at == 0 {
                    batch.fields_of_page(document, &mut words);
                }
                let text = std::mem::take(&mut section.text);
                let count = batch.text(&mut words, &text);
                if let (Some(heading), false) = (section.heading, section.continues) {
                    batch.field(&mut words, document.headings[heading].text, HEADING);
                }
                batch.lengths.push(count);
            }
            batch.pages.push(sections);
        }
        for posting in batch.postings.iter().flatten() {
            batch.kinds.add(posting);
        }
        batch
    }

    /// Adds the words that belong to the whole page, to its first section.
    fn fields_of_page(&mut self, document: &Document<'_>, words: &mut Words<'_>) {
        self.field(words, document.title, TITLE);
        for keyword in document.keywords.iter().take(KEYWORDS_MAX) {
            self.field(words, keyword, KEYWORD);
        }
        self.field(words, document.description.unwrap_or_default(), DESCRIPTION);
        for label in &document.breadcrumb {
            self.field(words, label, PLACE);
        }
        // The separators of a path are not joints of an identifier.
        self.field(
            words,
            &document.path.replace(['-', '_', '.', '/'], " "),
            PLACE,
        );
        let last = document.path.rsplit('/').next().unwrap_or_default();
        self.field(words, last, PLACE);
    }

    fn section(&self) -> u32 {
        u32::try_from(self.lengths.len()).unwrap_or(u32::MAX)
    }

    fn field(&mut self, words: &mut Words<'_>, text: &str, field: u8) {
        let section = self.section();
        runs(text, |place, kind| {
            words.each(self, &text[place], kind, |batch, term| {
                batch.posting(term, section).fields |= field;
            });
        });
    }

    /// Adds the words of the text of a section, and returns their number.
    fn text(&mut self, words: &mut Words<'_>, text: &str) -> u32 {
        let section = self.section();
        let mut count = 0_u32;
        runs(text, |place, kind| {
            words.each(self, &text[place], kind, |batch, term| {
                let posting = batch.posting(term, section);
                posting.count = posting.count.saturating_add(1);
                count = count.saturating_add(1);
            });
        });
        count
    }

    fn posting(&mut self, term: u32, section: u32) -> &mut Posting {
        let postings = &mut self.postings[term as usize];
        if postings.last().is_none_or(|last| last.section != section) {
            postings.push(Posting {
                section,
                count: 0,
                fields: 0,
            });
        }
        postings.last_mut().expect("one was added")
    }

    fn term(&mut self, term: &str) -> u32 {
        if let Some(id) = self.terms.get(term) {
            return *id;
        }
        let id = u32::try_from(self.postings.len()).unwrap_or(u32::MAX);
        self.terms.insert(term.into(), id);
        self.postings.push(Vec::new());
        id
    }
}

// === impl Words ===

impl Words<'_> {
    fn each(
        &mut self,
        batch: &mut Batch,
        run: &str,
        kind: super::words::Run,
        mut found: impl FnMut(&mut Batch, u32),
    ) {
        if let Some(known) = self.known.get(run) {
            for term in known {
                found(batch, *term);
            }
            return;
        }
        let mut ids = Vec::new();
        terms(run, kind, self.stemmer, |_, term| {
            ids.push(batch.term(term))
        });
        for id in &ids {
            found(batch, *id);
        }
        self.known.insert(run.into(), ids.into());
    }
}
