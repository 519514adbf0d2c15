//! Ranking: finds the pages and sections that answer a question best.
//!
//! The score of a page is computed with BM25F (Robertson, Zaragoza, 2009), in which the fields of a
//! page have weights, plus the score of its best section, which is counted in the same way. A page
//! with few of the words of the question gets a lower score than a page with most of them. A title
//! that has the words of the question and no others raises the score of its page.

use std::cell::Cell;

use super::index::{Occurrences, OpenPart, PageRow, Storage, Table};
use super::posting::{DESCRIPTION, HEADING, KEYWORD, PLACE, Posting, STEPS, TITLE};
use super::query::QueryTerm;
use super::words::Role;
use super::{COMPARED, FOUND_MAX, Question, SearchError};

/// How fast the value of further occurrences of a term decreases.
const SATURATION: f32 = 2.0;
/// How much the length of a page counts, from 0 to 1.
const PAGE_LENGTH: f32 = 0.95;
/// How much the length of a section counts.
const SECTION_LENGTH: f32 = 0.7;
/// The weight of the best section beside its page.
const SECTION: f32 = 0.6;
/// The weight of a title that has the words of the question.
const TITLE_MATCH: f32 = 1.6;
/// How much the score of a page with few words of the question is lowered.
const COVERAGE: f32 = 0.43;
/// The share of a question that a page must have, by weight, to be found.
const COVERAGE_MIN: f32 = 0.15;
/// The weight of a word that the index does not know.
const UNKNOWN: f32 = 0.45;
/// A thread keeps its arrays for the next question if they are for at most this many sections.
const SECTIONS_KEPT_MAX: usize = 1 << 18;
/// How many sets of terms are known with their factor.
const COVERAGES_KNOWN: usize = 256;
/// From how many other words of a question on its common words are not searched.
const TELLING_MIN: usize = 3;
/// A list of postings is read whole if it has at most this many postings for each page that matters:
/// finding the postings of one page takes about as long as reading this many.
const POSTINGS_PER_PAGE_MAX: usize = 8;
/// How many sections of a page are found.
const SECTIONS_MAX: usize = 3;
/// A section whose score is below this share of the best one is not found.
const SECTION_MIN: f32 = 0.55;

/// A page that was found.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) page: u32,
    pub(super) score: f32,
    /// Its best sections, the best first.
    pub(super) sections: Vec<u32>,
}

/// The result of a part of the index.
#[derive(Debug)]
pub(super) struct Ranked {
    pub(super) terms: Vec<QueryTerm>,
    /// The weight of each term.
    pub(super) weights: Vec<f32>,
    /// The best pages, the best first.
    pub(super) candidates: Vec<Candidate>,
    /// How many pages were found; it may be more than there are candidates.
    pub(super) total: usize,
}

/// The scores so far.
struct Scores<'t> {
    table: &'t Table,
    arrays: Arrays,
}

/// The scores by page and by section.
#[derive(Default)]
struct Arrays {
    /// By step of the frequency and stored length of the section: what a term adds to a section
    /// that has it only in its text.
    plain: Vec<[f32; 256]>,
    /// The number of words of the longest section, as a share of the mean: tables with the same one
    /// have the same values in `plain`.
    plain_of: f32,
    pages: Vec<f32>,
    /// The terms that each page has.
    masks: Vec<u32>,
    /// The terms that each title has.
    titles: Vec<u32>,
    sections: Vec<f32>,
}

thread_local! {
    /// The arrays of the last question of this thread: their memory is used again, because it is
    /// in the processor's cache.
    static ARRAYS: Cell<Arrays> = Cell::default();
}

/// Ranks the pages of a part.
///
/// If a question has some words that tell something, words like "the" and "how" are not searched:
/// they are on nearly every page, and would take most of the time. The terms with the most weight are
/// counted first: in the pages that have none of them, the others are not counted if such a page would
/// have too little of the question.
pub(super) fn rank(
    question: &Question<'_>,
    part: &OpenPart,
    file: &dyn Storage,
) -> Result<Ranked, SearchError> {
    let table = part.table(file)?;
    let terms = QueryTerm::of(question, part, table, file)?;
    let mut scores = Scores::new(table);
    let telling = terms.iter().filter(|term| term.is_telling()).count();
    let mut weights = vec![0.0; terms.len()];
    let mut occurrences = Vec::with_capacity(terms.len());
    for (at, term) in terms.iter().enumerate() {
        if term.is_common && telling >= TELLING_MIN {
            continue;
        }
        let postings = term.read(part, table, file)?;
        weights[at] = term.weight * rarity(&postings, table);
        occurrences.push((at, postings));
    }
    let clauses = Clauses::of(&terms, &weights);
    occurrences.sort_by(|(one, _), (other, _)| weights[*other].total_cmp(&weights[*one]));
    let mut rest = occurrences.iter().fold(0, |bits, (at, _)| bits | 1 << at);
    for (at, postings) in &occurrences {
        // A page that has at most this term and the lighter ones is not found.
        match clauses.coverage(rest) < COVERAGE_MIN {
            true => scores.add_to_known(&postings.list, weights[*at], 1 << at),
            false => scores.add(&postings.list, weights[*at], 1 << at),
        }
        rest &= !(1 << at);
    }
    let mut candidates = scores.candidates(&clauses);
    let total = candidates.len();
    let order = |one: &Candidate, other: &Candidate| {
        let order = other.score.total_cmp(&one.score);
        order.then(one.page.cmp(&other.page))
    };
    // Of each part, only so many pages can be compared or shown.
    let read_max = question.skip.saturating_add(question.limit).max(COMPARED);
    let read_max = read_max.min(FOUND_MAX);
    if total > read_max {
        candidates.select_nth_unstable_by(read_max, order);
        candidates.truncate(read_max);
    }
    candidates.sort_unstable_by(order);
    for candidate in &mut candidates {
        candidate.sections = scores.best_sections(candidate.page);
    }
    Ok(Ranked {
        terms,
        weights,
        candidates,
        total,
    })
}

// === impl Ranked ===

impl Ranked {
    /// Returns whether the question has two searched words, which may be neighbours in a text.
    pub(super) fn has_neighbours(&self) -> bool {
        let terms = self.terms.iter().zip(&self.weights);
        let mut searched = terms.filter(|(_, weight)| **weight > 0.0);
        let first = searched.next().map(|(term, _)| term.clause);
        first.is_some_and(|first| searched.any(|(term, _)| term.clause != first))
    }
}

/// Returns the inverse frequency of a term, by pages. A term that the index does not know counts
/// less than the rarest one that it knows: it may be a word that authors do not use.
fn rarity(postings: &Occurrences, table: &Table) -> f32 {
    let (all, pages) = (float(table.pages.len()), float(postings.pages as usize));
    let rarity = (1.0 + (all - pages + 0.5) / (pages + 0.5)).ln();
    match postings.list.is_empty() {
        true => UNKNOWN * rarity,
        false => rarity,
    }
}

#[expect(clippy::cast_precision_loss, reason = "scores are approximate")]
fn float(number: usize) -> f32 {
    number as f32
}

fn saturated(frequency: f32) -> f32 {
    frequency / (SATURATION + frequency)
}

/// Returns the weight of the fields of a page that have a term, without its text.
fn page_fields(fields: u8) -> f32 {
    let weights = [
        (TITLE, 5.4),
        (KEYWORD, 3.0),
        (DESCRIPTION, 2.0),
        (PLACE, 2.4),
    ];
    let of = weights.iter().filter(|(field, _)| fields & field != 0);
    of.map(|(_, weight)| weight).sum()
}

/// Returns the weight of the fields of a section that have a term, without its text.
fn section_fields(fields: u8) -> f32 {
    let weights = [
        (HEADING, 2.8),
        (TITLE, 1.0),
        (KEYWORD, 1.0),
        (DESCRIPTION, 1.0),
    ];
    let of = weights.iter().filter(|(field, _)| fields & field != 0);
    of.map(|(_, weight)| weight).sum()
}

// === impl Scores ===

impl<'t> Scores<'t> {
    fn new(table: &'t Table) -> Self {
        Self {
            table,
            arrays: ARRAYS.take().of(table),
        }
    }

    /// Adds the occurrences of a term.
    fn add(&mut self, mut postings: &[Posting], weight: f32, bit: u32) {
        while let Some(first) = postings.first() {
            let page = self.table.page_of(first.section);
            let (of_page, rest) = self.split_after(page, postings);
            self.add_page(page, of_page, weight, bit);
            postings = rest;
        }
    }

    /// Adds the occurrences of a term in the pages that have another term. The other pages do not
    /// matter: they may be added too.
    fn add_to_known(&mut self, mut postings: &[Posting], weight: f32, bit: u32) {
        let masks = self.arrays.masks.iter().enumerate();
        let known = masks.filter(|(_, mask)| **mask != 0);
        let known: Vec<usize> = known.map(|(page, _)| page).collect();
        if postings.len() <= known.len() * POSTINGS_PER_PAGE_MAX {
            return self.add(postings, weight, bit);
        }
        for page in known {
            let sections = self.table.sections_of(page);
            postings = from_section(postings, sections.start);
            let (of_page, rest) = self.split_after(page, postings);
            postings = rest;
            if !of_page.is_empty() {
                self.add_page(page, of_page, weight, bit);
            }
        }
    }

    /// Divides postings after those of a page.
    fn split_after<'p>(
        &self,
        page: usize,
        postings: &'p [Posting],
    ) -> (&'p [Posting], &'p [Posting]) {
        let end = self.table.sections_of(page).end;
        let is_later = |posting: &Posting| posting.section >= end;
        let of_page = postings.iter().position(is_later);
        postings.split_at(of_page.unwrap_or(postings.len()))
    }

    /// Adds the occurrences of a term in a page.
    fn add_page(&mut self, page: usize, postings: &[Posting], weight: f32, bit: u32) {
        let table = self.table;
        let (mut count, mut headings, mut fields) = (0.0, 0.0, 0);
        for posting in postings {
            let section = posting.section as usize;
            let length = table.lengths[section];
            let in_text = f32::from(posting.count);
            count += in_text;
            let share = match posting.plain_step() {
                Some(step) => self.arrays.plain[step][usize::from(length)],
                None => {
                    fields |= posting.fields;
                    if posting.fields & HEADING != 0 {
                        headings += 1.0;
                    }
                    let text = in_text / table.section_norm(length, SECTION_LENGTH);
                    saturated(text + section_fields(posting.fields))
                }
            };
            self.arrays.sections[section] += weight * share;
        }
        let text = count / table.page_norm(page, PAGE_LENGTH);
        let headings = f32::min(headings, 2.0) * 1.1;
        let frequency = text + headings + page_fields(fields);
        self.arrays.pages[page] += weight * saturated(frequency);
        self.arrays.masks[page] |= bit;
        if fields & TITLE != 0 {
            self.arrays.titles[page] |= bit;
        }
    }

    /// Returns the pages that have enough of the question.
    fn candidates(&self, clauses: &Clauses) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        let mut coverages = Coverages::new(clauses);
        for (at, row) in self.table.pages.iter().enumerate() {
            let mask = self.arrays.masks[at];
            if mask == 0 {
                continue;
            }
            let Some(coverage) = coverages.factor(mask) else {
                continue;
            };
            let sections = self.table.sections_of(at);
            let sections = &self.arrays.sections[sections.start as usize..sections.end as usize];
            let larger = |one, other| if one < other { other } else { one };
            let best = sections.iter().copied().fold(0.0, larger);
            let text = self.arrays.pages[at] + SECTION * best;
            let title = clauses.title(self.arrays.titles[at], row);
            let score = (text * coverage + TITLE_MATCH * title) * row.boost;
            candidates.push(Candidate {
                page: u32::try_from(at).unwrap_or(u32::MAX),
                score,
                sections: Vec::new(),
            });
        }
        candidates
    }

    fn best_sections(&self, page: u32) -> Vec<u32> {
        let score = |section: u32| self.arrays.sections[section as usize];
        let mut sections: Vec<u32> = self.table.sections_of(page as usize).collect();
        sections.sort_by(|one, other| score(*other).total_cmp(&score(*one)));
        let least = sections
            .first()
            .map_or(0.0, |best| score(*best) * SECTION_MIN);
        sections.truncate(2 * SECTIONS_MAX);
        sections.retain(|section| score(*section) >= least);
        sections
    }
}

impl Drop for Scores<'_> {
    fn drop(&mut self) {
        let arrays = std::mem::take(&mut self.arrays);
        if arrays.sections.capacity() <= SECTIONS_KEPT_MAX {
            ARRAYS.set(arrays);
        }
    }
}

// === impl Arrays ===

impl Arrays {
    /// Returns arrays for a part of the index, with scores of zero.
    fn of(mut self, table: &Table) -> Self {
        fn zero<T: Copy + Default>(array: &mut Vec<T>, length: usize) {
            array.clear();
            array.resize(length, T::default());
        }
        zero(&mut self.pages, table.pages.len());
        zero(&mut self.masks, table.pages.len());
        zero(&mut self.titles, table.pages.len());
        zero(&mut self.sections, table.lengths.len());
        let longest = table.section_norm(u8::MAX, 1.0);
        if self.plain.is_empty() || self.plain_of.to_bits() != longest.to_bits() {
            self.plain_of = longest;
            self.plain = STEPS.map(|count| plain(count, table)).to_vec();
        }
        self
    }
}

/// Returns what a term adds to a section of each stored length that has it so often in its text, and
/// nowhere else.
fn plain(count: u16, table: &Table) -> [f32; 256] {
    std::array::from_fn(|length| {
        let length = u8::try_from(length).unwrap_or(u8::MAX);
        saturated(f32::from(count) / table.section_norm(length, SECTION_LENGTH))
    })
}

/// Returns the postings from a section on, which is assumed to be near the first one: steps double
/// until they pass it.
fn from_section(postings: &[Posting], section: u32) -> &[Posting] {
    let is_before = |posting: &Posting| posting.section < section;
    let (mut start, mut step) = (0, 1);
    while postings.get(start + step).is_some_and(is_before) {
        start += step;
        step *= 2;
    }
    let end = (start + step).min(postings.len());
    let start = start + postings[start..end].partition_point(is_before);
    &postings[start..]
}

/// The factors of pages by their coverage. Most pages have one of a few sets of terms.
struct Coverages<'c> {
    clauses: &'c Clauses,
    /// By the lower bits of the mask: the last mask with these bits, and its factor.
    known: [(u32, Option<f32>); COVERAGES_KNOWN],
}

// === impl Coverages ===

impl<'c> Coverages<'c> {
    fn new(clauses: &'c Clauses) -> Self {
        Self {
            clauses,
            // No candidate has the mask 0.
            known: [(0, None); COVERAGES_KNOWN],
        }
    }

    /// Returns the factor of a page that has some terms; `None` if it has too little of the
    /// question.
    fn factor(&mut self, mask: u32) -> Option<f32> {
        let (known, factor) = &mut self.known[mask as usize % COVERAGES_KNOWN];
        if *known != mask {
            let coverage = self.clauses.coverage(mask);
            *factor = (coverage >= COVERAGE_MIN).then(|| coverage.powf(COVERAGE));
            *known = mask;
        }
        *factor
    }
}

/// The words of a question with their weights, to compute which share of the question a page has.
struct Clauses {
    /// The words of one term: for each of the four bytes of a mask, the weights of its bits.
    simple: [[f32; 256]; 4],
    /// The others.
    clauses: Vec<Clause>,
    weight: f32,
}

#[derive(Default)]
struct Clause {
    /// The bits of the terms that together cover it.
    whole: u32,
    /// The bits and weights of its parts.
    parts: Vec<(u32, f32)>,
    parts_weight: f32,
    weight: f32,
}

// === impl Clauses ===

impl Clauses {
    fn of(terms: &[QueryTerm], weights: &[f32]) -> Self {
        let mut clauses: Vec<Clause> = Vec::new();
        for (at, (term, weight)) in terms.iter().zip(weights).enumerate() {
            while clauses.len() <= term.clause {
                clauses.push(Clause::default());
            }
            let Some(clause) = clauses.last_mut() else {
                continue;
            };
            match term.role {
                Role::Part => {
                    clause.parts.push((1 << at, *weight));
                    clause.parts_weight += weight;
                }
                // No pair of characters is the whole question.
                Role::Word if term.is_pair => {
                    clause.parts.push((1 << at, *weight));
                    clause.parts_weight += weight;
                    clause.weight += weight;
                }
                Role::Word | Role::Whole | Role::Flag => {
                    clause.whole |= 1 << at;
                    clause.weight = clause.weight.max(*weight);
                }
            }
        }
        for clause in &mut clauses {
            clause.weight = clause.weight.max(clause.parts_weight);
        }
        let weight = clauses.iter().map(|clause| clause.weight).sum();
        let mut simple = [[0.0; 256]; 4];
        clauses.retain(|clause| {
            let is_simple = clause.parts.is_empty() && clause.whole.count_ones() <= 1;
            if let Some(bit) = clause.whole.checked_ilog2().filter(|_| is_simple) {
                let (byte, bit) = (bit as usize / 8, bit % 8);
                for (mask, sum) in simple[byte].iter_mut().enumerate() {
                    if mask >> bit & 1 == 1 {
                        *sum += clause.weight;
                    }
                }
            }
            !is_simple
        });
        Self {
            simple,
            clauses,
            weight,
        }
    }

    /// Returns the share of the question that a page with some terms has, from 0 to 1.
    fn coverage(&self, mask: u32) -> f32 {
        if self.weight <= 0.0 {
            return 0.0;
        }
        let of = |clause: &Clause| {
            if clause.whole & mask != 0 {
                return clause.weight;
            }
            let parts = clause.parts.iter().filter(|(bit, _)| bit & mask != 0);
            let had: f32 = parts.map(|(_, weight)| weight).sum();
            match clause.parts_weight > 0.0 {
                true => clause.weight * had / clause.parts_weight,
                false => 0.0,
            }
        };
        let bytes = self.simple.iter().zip(mask.to_le_bytes());
        let simple: f32 = bytes.map(|(sums, byte)| sums[usize::from(byte)]).sum();
        (simple + self.clauses.iter().map(of).sum::<f32>()) / self.weight
    }

    /// Returns a weight for a title: it is high if the title has the words of the question and no
    /// others.
    fn title(&self, mask: u32, row: &PageRow) -> f32 {
        if mask == 0 || row.title_terms == 0 {
            return 0.0;
        }
        let asked = self.coverage(mask);
        let terms = float(mask.count_ones() as usize);
        let said = f32::min(terms / f32::from(row.title_terms), 1.0);
        self.weight * asked * asked * said
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn postings_are_found_from_a_section_on(
            sections in prop::collection::btree_set(0_u32..500, 0..100), section in 0_u32..510
        ) {
            let posting = |section| Posting { section, count: 1, fields: 0 };
            let postings: Vec<Posting> = sections.iter().copied().map(posting).collect();
            let expected: Vec<Posting> = sections.range(section..).copied().map(posting).collect();
            prop_assert_eq!(from_section(&postings, section), expected);
        }
    }
}
