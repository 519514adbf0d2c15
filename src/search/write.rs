//! Writes an index.
//!
//! The documents of a part are divided into batches, whose words are found on all cores. The
//! batches are then merged in order, so the bytes do not depend on the number of threads.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use rayon::prelude::*;

use super::bytes::{put, put_optional, put_text};
use super::posting::{self, DESCRIPTION, HEADING, KEYWORD, PLACE, Posting, TITLE};
use super::section::{Heading, Section, sections};
use super::words::{Stemmer, runs, terms};

/// The first bytes of an index.
pub(super) const MAGIC: &[u8; 16] = b"waypost search1\n";
/// How many terms a block of the dictionary has.
pub(super) const BLOCK_TERMS: usize = 32;
/// How many pages or sections a block of texts has.
pub(super) const BLOCK_TEXTS: usize = 64;
/// The weight of a page without `boost`, as it is stored.
pub(super) const BOOST_UNIT: f32 = 16.0;
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
        let texts = part.documents.iter().zip(pages());
        let texts = texts.flat_map(|(document, sections)| {
            sections
                .iter()
                .map(|section| section_text(document, section))
        });
        regions.sections = blocks(texts, &mut table);
        regions.pages = blocks(part.documents.iter().map(page_text), &mut table);
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
        let mut terms: Vec<(&str, usize, u32)> = Vec::new();
        for (at, batch) in batches.iter().enumerate() {
            terms.extend(batch.terms.iter().map(|(term, id)| (&**term, at, *id)));
        }
        terms.par_sort_unstable();
        let mut first_section = Vec::with_capacity(batches.len());
        let mut sections = 0_u32;
        for batch in batches {
            first_section.push(sections);
            sections += u32::try_from(batch.lengths.len()).unwrap_or(u32::MAX);
        }
        let mut index = Vec::new();
        let mut before = "";
        let mut count = 0;
        let mut block_start = 0;
        for group in terms.chunk_by(|one, other| one.0 == other.0) {
            let term = group[0].0;
            if count % BLOCK_TERMS == 0 {
                if count > 0 {
                    put(&mut index, (self.dictionary.len() - block_start) as u64);
                }
                block_start = self.dictionary.len();
                before = "";
                put_text(&mut index, term);
                put(&mut index, self.postings.len() as u64);
            }
            count += 1;
            let shared = shared_bytes(before, term);
            before = term;
            put(&mut self.dictionary, shared as u64);
            put_text(&mut self.dictionary, &term[shared..]);
            let all = group.iter().flat_map(|(_, at, id)| {
                let first = first_section[*at];
                let postings = batches[*at].postings[*id as usize].iter();
                postings.map(move |posting| Posting {
                    section: first + posting.section,
                    ..*posting
                })
            });
            put(&mut self.dictionary, all.clone().count() as u64);
            let start = self.postings.len();
            posting::write(all, &mut self.postings);
            put(&mut self.dictionary, (self.postings.len() - start) as u64);
        }
        if count > 0 {
            put(&mut index, (self.dictionary.len() - block_start) as u64);
        }
        put(table, count.div_ceil(BLOCK_TERMS) as u64);
        table.extend(index);
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
fn blocks(texts: impl Iterator<Item = Vec<u8>>, table: &mut Vec<u8>) -> Vec<u8> {
    let texts: Vec<Vec<u8>> = texts.collect();
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

fn section_text(document: &Document<'_>, section: &Section) -> Vec<u8> {
    let mut out = Vec::new();
    let heading = section.heading.map(|at| document.headings[at]);
    put_optional(&mut out, heading.map(|heading| heading.text));
    put_optional(&mut out, heading.map(|heading| heading.anchor));
    put(&mut out, section.range.start as u64);
    put(&mut out, section.range.len() as u64);
    out
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
    (boost.unwrap_or(1.0) * BOOST_UNIT)
        .round()
        .clamp(1.0, 255.0) as u8
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
