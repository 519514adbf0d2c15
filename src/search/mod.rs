//! Search: one index for each release. A build writes it, and the edge answers questions from it.
//!
//! [`write()`] makes the file of an index from the pages of a site; [`Index`] answers questions
//! from it. A result is a page, with its best sections. The index has no copy of
//! the texts: an excerpt is read from the Markdown of the page, which the release has anyway.
//!
//! | module | does |
//! |---|---|
//! | `bits` | reads and writes numbers that are shorter than bytes |
//! | `words` | divides texts into terms: stems, identifiers, pairs of characters |
//! | `section` | divides the Markdown of a page into sections |
//! | `write` | writes the file |
//! | `index` | reads the file, with every bound checked |
//! | `query` | finds the terms of a question, and tolerates typing mistakes |
//! | `rank` | ranks pages and sections |
//! | `excerpt` | chooses the text of a section that is shown |
//!
//! # The file
//!
//! The file begins with the list of its parts: one for each language and version, each with its own
//! words, because a reader of version 2 in French does not look for a page of version 1 in English.
//! A part has five regions: a table that a reader holds in memory, the dictionary (sorted terms;
//! each omits the beginning that it shares with the previous term), the postings ([`posting`]; the
//! only posting of a term is in the dictionary), and the names of sections and pages, compressed in
//! blocks. The crate `fst` would make a smaller dictionary, but it reads some bytes without a
//! check, and a damaged file must not end a process that serves a million sites.
//!
//! **Invariant:** the same pages give the same file, byte for byte. **Invariant:** no file and no
//! question makes a reader panic, or read without end.

mod bits;
mod bytes;
mod excerpt;
mod index;
mod posting;
mod query;
mod rank;
mod section;
mod words;
mod write;

use std::borrow::Cow;
use std::io;
use std::ops::Range;

pub use index::{Decoded, Index, PartInfo, Sizes, Storage};
pub use section::Heading;
pub use write::{Document, Part, write};

use ::bytes::Bytes;
use excerpt::Finder;
use index::{Blocks, OpenPart};
use rank::{Candidate, Ranked, rank};

use crate::site::language::primary;

/// The longest question, in bytes. The rest of a longer one is not read.
pub const QUESTION_BYTES_MAX: usize = 512;
/// How many pages an answer has if a question does not say it.
pub const LIMIT_DEFAULT: usize = 10;
/// The most pages of one answer.
pub const LIMIT_MAX: usize = 50;
/// The most pages that a question finds. All of them can be reached with [`Question::skip`].
pub const FOUND_MAX: usize = 1000;
/// The length of an excerpt if a question does not say it, in bytes.
pub const EXCERPT_BYTES_DEFAULT: usize = 240;
/// The longest excerpt, in bytes.
pub const EXCERPT_BYTES_MAX: usize = 4000;
/// The longest part of a page that is read for an excerpt, in bytes.
const SECTION_BYTES_MAX: u64 = 16 << 10;
/// How many pages are compared by the nearness of their words.
const COMPARED: usize = 12;
/// The weight of words that are neighbours as in the question.
const NEARNESS: f32 = 0.25;
/// How many sections of a page are shown.
const SECTIONS_SHOWN: usize = 3;
/// How many other parts are searched when the requested parts have no result.
const OTHER_PARTS_MAX: usize = 16;

/// The question of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'q> {
    /// The words, at most [`QUESTION_BYTES_MAX`] bytes of them.
    pub text: &'q str,
    /// How many pages are wanted, at most [`LIMIT_MAX`].
    pub limit: usize,
    /// How many pages were already seen.
    pub skip: usize,
    /// The label of a version. Without it the default version of each part of the site is searched.
    pub version: Option<&'q str>,
    /// The BCP 47 tag of a language. Without it the first language of the site is searched.
    pub language: Option<&'q str>,
    /// Whether the last word may be only a beginning.
    pub is_typing: bool,
    /// The longest excerpt, in bytes, at most [`EXCERPT_BYTES_MAX`].
    pub excerpt_bytes: usize,
}

/// The answer to a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResult {
    /// Pages, the best first. Empty if nothing was found.
    pub hits: Vec<Hit>,
    /// How many pages were found, at most [`FOUND_MAX`].
    pub total: usize,
    /// Whether the hits are from other versions or languages, because the requested ones have none,
    /// or do not exist.
    pub is_elsewhere: bool,
}

/// A page that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Its path, without leading slash; empty for the root.
    pub path: String,
    /// Its title.
    pub title: String,
    /// The labels above it in the navigation, without versions and languages.
    pub breadcrumb: Vec<String>,
    /// The BCP 47 tag of its language.
    pub language: String,
    /// The label of its version.
    pub version: Option<String>,
    /// Its score, comparable within one answer.
    pub score: f32,
    /// Its best sections, the best first. There is at least one.
    pub sections: Vec<Section>,
}

/// A section that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its anchor; `None` at the beginning of the page.
    pub anchor: Option<String>,
    /// Its heading; `None` at the beginning of the page.
    pub heading: Option<String>,
    /// The part of its text that fits the question. Empty if the page could not be read.
    pub excerpt: Excerpt,
    /// Its bytes in the Markdown of the page.
    pub range: Range<u64>,
}

/// A part of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// The text, without markup.
    pub text: String,
    /// Where words of the question are in it, in bytes, in ascending order.
    pub marks: Vec<Range<usize>>,
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The file cannot be read.
    #[error("read the search index: {0}")]
    Storage(#[from] io::Error),
    /// The file is not an index, or is damaged.
    #[error("the search index is damaged: {0}")]
    Invalid(#[from] InvalidIndex),
}

/// Why a file is not an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidIndex {
    /// It does not begin like an index of this version.
    #[error("it does not begin as an index that this version reads")]
    Magic,
    /// It ends too early.
    #[error("it ends too early")]
    Cut,
    /// A number is too large.
    #[error("a number in it is too large")]
    Number,
    /// A text is not UTF-8.
    #[error("a text in it is not UTF-8")]
    Text,
    /// Sections are not in order, or do not exist.
    #[error("it names sections that do not exist")]
    Order,
    /// A block cannot be decompressed.
    #[error("a block of it cannot be decompressed")]
    Compressed,
}

/// The Markdown of pages, from which excerpts are written.
pub trait Texts {
    /// Returns a range of the Markdown of a page, as far as it exists; `None` if it cannot be
    /// read.
    fn markdown(&self, path: &str, range: Range<u64>) -> Option<Bytes>;
}

impl<F: Fn(&str, Range<u64>) -> Option<Bytes>> Texts for F {
    fn markdown(&self, path: &str, range: Range<u64>) -> Option<Bytes> {
        self(path, range)
    }
}

// === impl Question ===

impl<'q> Question<'q> {
    /// Makes a question with the defaults.
    #[must_use]
    pub fn new(text: &'q str) -> Self {
        Self {
            text,
            limit: LIMIT_DEFAULT,
            skip: 0,
            version: None,
            language: None,
            is_typing: false,
            excerpt_bytes: EXCERPT_BYTES_DEFAULT,
        }
    }
}

// === impl Index ===

impl Index {
    /// Answers a question. `file` is the file that was opened.
    ///
    /// # Errors
    ///
    /// [`SearchError`] when the file cannot be read or is damaged.
    pub fn search(
        &self,
        file: &dyn Storage,
        texts: &dyn Texts,
        question: &Question<'_>,
    ) -> Result<SearchResult, SearchError> {
        let text = question.text.trim();
        let question = Question {
            text: &text[..text.floor_char_boundary(QUESTION_BYTES_MAX)],
            limit: question.limit.min(LIMIT_MAX),
            excerpt_bytes: question.excerpt_bytes.min(EXCERPT_BYTES_MAX),
            ..*question
        };
        let selected = self.select(&question);
        let mut found = self.ask(file, texts, &question, &selected.asked)?;
        let mut is_elsewhere = selected.is_substitute;
        if found.total == 0 && !selected.others.is_empty() {
            found = self.ask(file, texts, &question, &selected.others)?;
            is_elsewhere = true;
        }
        Ok(SearchResult {
            is_elsewhere: is_elsewhere && found.total > 0,
            ..found
        })
    }

    /// Returns where the section with an anchor begins in the Markdown of a page, in bytes; `None` if
    /// the index has no such page or no such anchor.
    ///
    /// # Errors
    ///
    /// [`SearchError`] when the file cannot be read or is damaged.
    pub fn section_start(
        &self,
        file: &dyn Storage,
        path: &str,
        anchor: &str,
    ) -> Result<Option<u64>, SearchError> {
        for part in &self.parts {
            let blocks = Blocks::default();
            let Some(page) = part.page_at(file, &blocks, path)? else {
                continue;
            };
            for number in part.table(file)?.sections_of(page as usize) {
                let section = part.section(file, &blocks, number)?;
                if section.anchor.as_deref() == Some(anchor) {
                    return Ok(Some(section.range.start));
                }
            }
        }
        Ok(None)
    }

    /// Divides the parts into those that a question requests, and others to search if these have no
    /// result: first those in the same language.
    fn select(&self, question: &Question<'_>) -> Selected<'_> {
        let first = self.parts.first().map(|part| &*part.info.language);
        let wanted = question.language.or(first).unwrap_or_default();
        let has = |is: &dyn Fn(&str) -> bool| self.parts.iter().any(|part| is(&part.info.language));
        let exactly = |tag: &str| tag.eq_ignore_ascii_case(wanted);
        let nearly = |tag: &str| primary(tag).eq_ignore_ascii_case(primary(wanted));
        let is_language: &dyn Fn(&str) -> bool = match (has(&exactly), has(&nearly)) {
            (true, _) => &exactly,
            (false, true) => &nearly,
            (false, false) => &|tag| Some(tag) == first,
        };
        let in_language = |part: &&OpenPart| is_language(&part.info.language);
        let has_version = |is: &dyn Fn(&str) -> bool| {
            let parts = self.parts.iter().filter(in_language);
            let mut versions = parts.filter_map(|part| part.info.version.as_deref());
            versions.any(is)
        };
        let version = question
            .version
            .filter(|version| has_version(&|known| known == *version));
        // Where there are no versions, each question has the version that it requests.
        let lacks_version =
            question.version.is_some() && version.is_none() && has_version(&|_| true);
        let lacks_language = question.language.is_some() && !has(&exactly) && !has(&nearly);
        let is_asked = |part: &&OpenPart| {
            let is_version = match (version, &part.info.version) {
                (_, None) => true,
                (Some(wanted), Some(version)) => wanted == version,
                (None, Some(_)) => part.info.is_default,
            };
            in_language(part) && is_version
        };
        let (asked, mut others): (Vec<_>, Vec<_>) = self.parts.iter().partition(is_asked);
        others.sort_by_key(|part| (!in_language(part), !part.info.is_default));
        others.truncate(OTHER_PARTS_MAX);
        Selected {
            asked,
            others,
            is_substitute: lacks_language || lacks_version,
        }
    }

    fn ask(
        &self,
        file: &dyn Storage,
        texts: &dyn Texts,
        question: &Question<'_>,
        parts: &[&OpenPart],
    ) -> Result<SearchResult, SearchError> {
        let mut answers: Vec<PartResult<'_>> = Vec::with_capacity(parts.len());
        for part in parts {
            answers.push(PartResult {
                part,
                ranked: rank(question, part, file)?,
                blocks: Blocks::default(),
            });
        }
        let total: usize = answers.iter().map(|answer| answer.ranked.total).sum();
        let total = total.min(FOUND_MAX);
        let mut best: Vec<(usize, Candidate)> = Vec::new();
        for (at, answer) in answers.iter_mut().enumerate() {
            let candidates = answer.ranked.candidates.drain(..);
            best.extend(candidates.map(|candidate| (at, candidate)));
        }
        // Stable, so equal scores stay in the order of the site.
        best.sort_by(|(_, one), (_, other)| other.score.total_cmp(&one.score));
        let end = question.skip.saturating_add(question.limit);
        let end = end.min(best.len()).min(total);
        // Pages of results must not overlap, so the same pages are compared for each of them.
        // The words of one part of a question have no distance: the texts decide nothing.
        let is_compared = answers.iter().any(|answer| answer.ranked.has_neighbours());
        let compared = match is_compared {
            true => COMPARED.min(best.len()),
            false => 0,
        };
        let read = match question.skip < compared {
            true => 0..end.max(compared),
            false => question.skip.min(end)..end,
        };
        let mut readers = Vec::with_capacity(answers.len());
        for answer in &answers {
            readers.push(SectionReader::new(answer, file, texts, question)?);
        }
        let mut hits = Vec::with_capacity(read.len());
        for (at, candidate) in &best[read.clone()] {
            let reader = &readers[*at];
            hits.push((reader, candidate, reader.hit(candidate)?));
        }
        if read.start == 0 {
            hits[..compared]
                .sort_by(|(_, _, one), (_, _, other)| other.score.total_cmp(&one.score));
        }
        let skipped = question.skip - read.start;
        let mut shown = Vec::with_capacity(question.limit);
        for (reader, candidate, mut hit) in hits.into_iter().skip(skipped).take(question.limit) {
            reader.complete(candidate, &mut hit)?;
            shown.push(hit);
        }
        Ok(SearchResult {
            hits: shown,
            total,
            is_elsewhere: false,
        })
    }
}

/// The parts that a question searches.
struct Selected<'i> {
    asked: Vec<&'i OpenPart>,
    /// Searched if the others have no result.
    others: Vec<&'i OpenPart>,
    /// Whether the site does not have the requested language or version.
    is_substitute: bool,
}

/// The answer of a part.
struct PartResult<'i> {
    part: &'i OpenPart,
    ranked: Ranked,
    blocks: Blocks,
}

/// Reads the pages and sections that a part answers.
struct SectionReader<'a> {
    answer: &'a PartResult<'a>,
    file: &'a dyn Storage,
    texts: &'a dyn Texts,
    excerpt_bytes: usize,
    finder: Finder<'a>,
}

// === impl SectionReader ===

impl<'a> SectionReader<'a> {
    fn new(
        answer: &'a PartResult<'a>,
        file: &'a dyn Storage,
        texts: &'a dyn Texts,
        question: &Question<'_>,
    ) -> Result<Self, SearchError> {
        let stemmer = &answer.part.table(file)?.stemmer;
        let Ranked { terms, weights, .. } = &answer.ranked;
        Ok(Self {
            answer,
            file,
            texts,
            excerpt_bytes: question.excerpt_bytes,
            finder: Finder::new(terms, weights, stemmer),
        })
    }

    /// Reads a page that was found, with its best section.
    fn hit(&self, candidate: &Candidate) -> Result<Hit, SearchError> {
        let PartResult { part, blocks, .. } = self.answer;
        let page = part.page(self.file, blocks, candidate.page)?;
        let mut hit = Hit {
            path: page.path,
            title: page.title,
            breadcrumb: page.breadcrumb,
            language: part.info.language.clone(),
            version: part.info.version.clone(),
            score: candidate.score,
            sections: Vec::new(),
        };
        if let Some(best) = candidate.sections.first() {
            let nearness = self.section(*best, &mut hit)?;
            hit.score *= 1.0 + NEARNESS * nearness;
        }
        Ok(hit)
    }

    /// Reads the other sections.
    fn complete(&self, candidate: &Candidate, hit: &mut Hit) -> Result<(), SearchError> {
        for number in candidate.sections.iter().skip(1) {
            if hit.sections.len() == SECTIONS_SHOWN {
                break;
            }
            self.section(*number, hit)?;
        }
        Ok(())
    }

    /// Reads a section, unless another with the same anchor is shown. Returns how near its words
    /// are to each other.
    fn section(&self, number: u32, hit: &mut Hit) -> Result<f32, SearchError> {
        let PartResult { part, blocks, .. } = self.answer;
        let section = part.section(self.file, blocks, number)?;
        let mut shown = hit.sections.iter();
        if shown.any(|shown| shown.anchor == section.anchor) {
            return Ok(0.0);
        }
        let range = section.range;
        let end = range.end.min(range.start.saturating_add(SECTION_BYTES_MAX));
        let markdown = self.texts.markdown(&hit.path, range.start..end);
        let markdown = markdown.unwrap_or_default();
        // The check of the whole text is faster than the search for wrong parts.
        let markdown = match std::str::from_utf8(&markdown) {
            Ok(markdown) => Cow::Borrowed(markdown),
            Err(_cut) => String::from_utf8_lossy(&markdown),
        };
        let excerpted = self.finder.excerpt(&markdown, self.excerpt_bytes);
        hit.sections.push(Section {
            anchor: section.anchor,
            heading: section.heading,
            excerpt: excerpted.excerpt,
            range,
        });
        Ok(excerpted.nearness)
    }
}

#[cfg(test)]
mod tests;
