//! Ranking: finds the pages and sections that answer a question best.
//!
//! The score of a page is computed with BM25F (Robertson, Zaragoza, 2009), in which the fields of a
//! page have weights, plus the score of its best section, which is counted in the same way. A page
//! with few of the words of the question gets a lower score than a page with most of them. A title
//! that has the words of the question and no others raises the score of its page.

use super::index::{OpenPart, PageRow, Storage, Table};
use super::posting::{DESCRIPTION, HEADING, KEYWORD, PLACE, Posting, TITLE};
use super::query::QueryTerm;
use super::words::Role;
use super::write::BOOST_UNIT;
use super::{Question, SearchError};

/// How fast the value of further occurrences of a term decreases.
const SATURATION: f32 = 2.0;
/// How much the length of a page counts, from 0 to 1.
const PAGE_LENGTH: f32 = 0.95;
/// How much the length of a section counts.
const SECTION_LENGTH: f32 = 0.6;
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
/// How many pages of a part are compared with pages of other parts.
const CANDIDATES_MAX: usize = 100;
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
    /// How many pages were found.
    pub(super) total: usize,
}

/// The scores so far.
struct Scores {
    pages: Vec<f32>,
    /// The terms that each page has.
    masks: Vec<u32>,
    /// The terms that each title has.
    titles: Vec<u32>,
    sections: Vec<f32>,
}

/// Ranks the pages of a part.
pub(super) fn rank(
    question: &Question<'_>,
    part: &OpenPart,
    file: &dyn Storage,
) -> Result<Ranked, SearchError> {
    let table = part.table(file)?;
    let terms = QueryTerm::of(question, part, table, file)?;
    let mut scores = Scores {
        pages: vec![0.0; table.pages.len()],
        masks: vec![0; table.pages.len()],
        titles: vec![0; table.pages.len()],
        sections: vec![0.0; table.page_of.len()],
    };
    let mut weights = Vec::with_capacity(terms.len());
    for (at, term) in terms.iter().enumerate() {
        let weight = term.weight * rarity(term, table);
        scores.add(table, &term.postings, weight, 1 << at);
        weights.push(weight);
    }
    let clauses = Clauses::of(&terms, &weights);
    let mut candidates = scores.candidates(table, &clauses);
    let total = candidates.len();
    candidates.sort_unstable_by(|one, other| {
        let order = other.score.total_cmp(&one.score);
        order.then(one.page.cmp(&other.page))
    });
    candidates.truncate(CANDIDATES_MAX);
    for candidate in &mut candidates {
        candidate.sections = scores.best_sections(table, candidate.page);
    }
    Ok(Ranked {
        terms,
        weights,
        candidates,
        total,
    })
}

/// Returns the inverse frequency of a term, by pages. A term that the index does not know counts
/// less than the rarest one that it knows: it may be a word that authors do not use.
fn rarity(term: &QueryTerm, table: &Table) -> f32 {
    let mut pages = 0_u32;
    let mut last = None;
    for posting in &term.postings {
        let page = table.page_of[posting.section as usize];
        if last.replace(page) != Some(page) {
            pages += 1;
        }
    }
    let (all, pages) = (float(table.pages.len()), float(pages as usize));
    let rarity = (1.0 + (all - pages + 0.5) / (pages + 0.5)).ln();
    match term.postings.is_empty() {
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

impl Scores {
    /// Adds the occurrences of a term.
    fn add(&mut self, table: &Table, postings: &[Posting], weight: f32, bit: u32) {
        for of_page in postings.chunk_by(|one, other| {
            table.page_of[one.section as usize] == table.page_of[other.section as usize]
        }) {
            let page = table.page_of[of_page[0].section as usize] as usize;
            let (mut count, mut headings, mut fields) = (0.0, 0.0, 0);
            for posting in of_page {
                let section = posting.section as usize;
                let in_text = f32::from(posting.count);
                count += in_text;
                fields |= posting.fields;
                if posting.fields & HEADING != 0 {
                    headings += 1.0;
                }
                let text = in_text / table.section_norm(section, SECTION_LENGTH);
                let frequency = text + section_fields(posting.fields);
                self.sections[section] += weight * saturated(frequency);
            }
            let text = count / table.page_norm(page, PAGE_LENGTH);
            let headings = f32::min(headings, 2.0) * 1.1;
            let frequency = text + headings + page_fields(fields);
            self.pages[page] += weight * saturated(frequency);
            self.masks[page] |= bit;
            if fields & TITLE != 0 {
                self.titles[page] |= bit;
            }
        }
    }

    /// Returns the pages that have enough of the question.
    fn candidates(&self, table: &Table, clauses: &Clauses) -> Vec<Candidate> {
        let mut best = vec![0.0_f32; table.pages.len()];
        for (page, score) in table.page_of.iter().zip(&self.sections) {
            let best = &mut best[*page as usize];
            *best = best.max(*score);
        }
        let mut candidates = Vec::new();
        for (at, row) in table.pages.iter().enumerate() {
            let mask = self.masks[at];
            if mask == 0 {
                continue;
            }
            let coverage = clauses.coverage(mask);
            if coverage < COVERAGE_MIN {
                continue;
            }
            let text = self.pages[at] + SECTION * best[at];
            let title = clauses.title(self.titles[at], row);
            let boost = f32::from(row.boost) / BOOST_UNIT;
            let score = (text * coverage.powf(COVERAGE) + TITLE_MATCH * title) * boost;
            candidates.push(Candidate {
                page: u32::try_from(at).unwrap_or(u32::MAX),
                score,
                sections: Vec::new(),
            });
        }
        candidates
    }

    fn best_sections(&self, table: &Table, page: u32) -> Vec<u32> {
        let first = table.pages[page as usize].first;
        let next = table.pages.get(page as usize + 1).map(|next| next.first);
        let end = next.map_or(table.page_of.len(), |next| next as usize);
        let score = |section: u32| self.sections[section as usize];
        let end = u32::try_from(end).unwrap_or(u32::MAX);
        let mut sections: Vec<u32> = (first..end).collect();
        sections.sort_by(|one, other| score(*other).total_cmp(&score(*one)));
        let least = sections
            .first()
            .map_or(0.0, |best| score(*best) * SECTION_MIN);
        sections.truncate(2 * SECTIONS_MAX);
        sections.retain(|section| score(*section) >= least);
        sections
    }
}

/// The words of a question with their weights, to compute which share of the question a page has.
struct Clauses {
    /// By clause: the bits of the terms that match all of it, the bits and weights of its parts,
    /// and its weight.
    clauses: Vec<Clause>,
    weight: f32,
}

#[derive(Default)]
struct Clause {
    whole: u32,
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
                // Each pair of characters is a word of its own.
                Role::Word if clause.whole != 0 || !clause.parts.is_empty() => {
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
        Self { clauses, weight }
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
        self.clauses.iter().map(of).sum::<f32>() / self.weight
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
