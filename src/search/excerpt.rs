//! Excerpts: the part of a section that has most of the words of a question.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;

use super::Excerpt;
use super::query::QueryTerm;
use super::section::text_of;
use super::words::{Run, Stemmer, runs, terms};

/// How many bytes of text precede the first word of the question.
const BEFORE: usize = 60;

/// How many words apart neighbours of a question are in a text at most.
const APART_MAX: usize = 3;

/// Finds the words of a question in texts.
pub(super) struct Finder<'q> {
    /// By term: its number in the question.
    terms: HashMap<&'q str, usize>,
    /// By number: the word of the question, and its weight.
    clauses: Vec<(usize, f32)>,
    /// By the first letter: the second letters of the terms, to skip other words quickly.
    begins: [Seconds; 128],
    stemmer: &'q Stemmer,
    /// The term of the question that each word has that was met, if any. Words come again.
    known: RefCell<HashMap<Box<str>, Option<usize>, RandomState>>,
}

/// An excerpt, and how near the words of the question are to each other in it.
pub(super) struct Excerpted {
    pub(super) excerpt: Excerpt,
    /// The share of neighbours in the question that are neighbours in the text, from 0 to 1.
    pub(super) nearness: f32,
}

/// A run of a text that has a term of the question.
struct Match {
    place: Range<usize>,
    /// The number of the run in the text.
    run: usize,
    term: usize,
}

/// A set of second letters: a bit for each, and one for everything else.
type Seconds = u32;

/// Returns the second letter of a word, as a set. Stems write `i` for some `y`: `die` for `dying`.
fn second_letter(word: &[u8]) -> Seconds {
    match word.get(1).map(u8::to_ascii_lowercase) {
        Some(b'y') => 1 << (b'i' - b'a'),
        Some(letter) if letter.is_ascii_lowercase() => 1 << (letter - b'a'),
        // A joint is not in the term, so the letter after it may be the second one.
        Some(other) if !other.is_ascii_alphanumeric() => Seconds::MAX,
        Some(_digit) => 1 << 26,
        None => 1 << 27,
    }
}

/// Returns a text with one space between words.
fn spaced(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let add = |word: &str| {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    };
    // Bytes are divided faster than characters.
    match text.is_ascii() {
        true => text.split_ascii_whitespace().for_each(add),
        false => text.split_whitespace().for_each(add),
    }
    out
}

// === impl Finder ===

impl<'q> Finder<'q> {
    pub(super) fn new(query: &'q [QueryTerm], weights: &[f32], stemmer: &'q Stemmer) -> Self {
        let mut terms = HashMap::new();
        let mut clauses = Vec::new();
        for (at, (term, weight)) in query.iter().zip(weights).enumerate() {
            // A word that was not searched is not marked.
            let is_searched = *weight > 0.0;
            for entry in term.entries.iter().filter(|_| is_searched) {
                terms.entry(entry.term.as_str()).or_insert(at);
            }
            clauses.push((term.clause, *weight));
        }
        let mut begins = [0; 128];
        for term in terms.keys() {
            // A term that begins with another letter is in no ASCII word.
            let first = term.bytes().next();
            if let Some(seconds) = first.and_then(|first| begins.get_mut(usize::from(first))) {
                *seconds |= second_letter(term.as_bytes());
            }
        }
        Self {
            terms,
            clauses,
            begins,
            stemmer,
            known: RefCell::default(),
        }
    }

    /// Writes the excerpt of a section, given as Markdown.
    pub(super) fn excerpt(&self, markdown: &str, bytes_max: usize) -> Excerpted {
        let text = spaced(&text_of(markdown));
        let found = self.matches(&text);
        let shown = self.window(&text, &found, bytes_max);
        let marks = found
            .iter()
            .filter(|found| shown.start <= found.place.start && found.place.end <= shown.end);
        let mut out = String::with_capacity(shown.len() + 8);
        if shown.start > 0 {
            out.push_str("… ");
        }
        let shift = out.len();
        out.push_str(&text[shown.clone()]);
        if shown.end < text.len() {
            out.push_str(" …");
        }
        let place = |found: &Match| {
            found.place.start - shown.start + shift..found.place.end - shown.start + shift
        };
        Excerpted {
            excerpt: Excerpt {
                marks: marks.map(place).collect(),
                text: out,
            },
            nearness: self.nearness(&found),
        }
    }

    /// Finds the runs that have a term of the question.
    fn matches(&self, text: &str) -> Vec<Match> {
        let mut found = Vec::new();
        let mut run = 0;
        runs(text, |place, kind| {
            run += 1;
            let word = &text[place.clone()];
            if !self.may_match(word) {
                return;
            }
            if let Some(term) = self.term(word, kind) {
                found.push(Match { place, run, term });
            }
        });
        found
    }

    /// Returns the term of the question with the most weight that a run has.
    fn term(&self, word: &str, kind: Run) -> Option<usize> {
        let mut known = self.known.borrow_mut();
        if let Some(known) = known.get(word) {
            return *known;
        }
        let mut best: Option<usize> = None;
        terms(word, kind, self.stemmer, |_, term| {
            if let Some(at) = self.terms.get(term)
                && best.is_none_or(|best| self.clauses[best].1 < self.clauses[*at].1)
            {
                best = Some(*at);
            }
        });
        known.insert(word.into(), best);
        best
    }

    /// Returns false for most words that have no term of the question: a term is the beginning of a
    /// word, or of a part of an identifier.
    fn may_match(&self, word: &str) -> bool {
        if !word.is_ascii() {
            return true;
        }
        let bytes = word.as_bytes();
        let is_begin = |at: usize| {
            let letter = bytes[at].to_ascii_lowercase();
            let seconds = self.begins[usize::from(letter)];
            seconds != 0 && seconds & second_letter(&bytes[at..]) != 0
        };
        let is_start = |at: usize| {
            at == 0 || bytes[at].is_ascii_uppercase() || !bytes[at - 1].is_ascii_alphanumeric()
        };
        (0..bytes.len()).any(|at| is_start(at) && is_begin(at))
    }

    /// Chooses the part of a text that has most of the words of the question.
    fn window(&self, text: &str, found: &[Match], bytes_max: usize) -> Range<usize> {
        if text.len() <= bytes_max {
            return 0..text.len();
        }
        let room = bytes_max.saturating_sub(BEFORE);
        let mut best = (0.0, 0);
        for (at, first) in found.iter().enumerate() {
            let mut seen = 0_u32;
            let mut weight = 0.0;
            let inside = found[at..].iter();
            for other in inside.take_while(|other| other.place.end <= first.place.start + room) {
                let bit = 1 << other.term;
                // A further occurrence of the same word counts little.
                let share = if seen & bit == 0 { 1.0 } else { 0.05 };
                seen |= bit;
                weight += self.clauses[other.term].1 * share;
            }
            if weight > best.0 {
                best = (weight, first.place.start);
            }
        }
        let (_, first) = best;
        let start = match first <= BEFORE {
            true => 0,
            false => {
                // A sentence that begins shortly before, or else a word.
                let from = text.floor_char_boundary(first - BEFORE);
                let before = &text[from..first];
                let sentence = before.rfind(". ").map(|at| at + 2);
                from + sentence
                    .or_else(|| before.find(' ').map(|at| at + 1))
                    .unwrap_or(0)
            }
        };
        let end = text.floor_char_boundary((start + bytes_max).min(text.len()));
        let end = match end < text.len() {
            true => text[start..end].rfind(' ').map_or(end, |at| start + at),
            false => end,
        };
        start..end
    }

    /// Returns the share of neighbours in the question that are neighbours in the text.
    fn nearness(&self, found: &[Match]) -> f32 {
        let searched = self.clauses.iter().filter(|(_, weight)| *weight > 0.0);
        let mut searched: Vec<usize> = searched.map(|(clause, _)| *clause).collect();
        searched.dedup();
        let pairs = searched.len().saturating_sub(1);
        if !(1..32).contains(&pairs) {
            return 0.0;
        }
        let mut seen = 0_u32;
        for pair in found.windows(2) {
            let (one, other) = (self.clauses[pair[0].term].0, self.clauses[pair[1].term].0);
            // Other words may be between them.
            let apart = pair[1].run - pair[0].run;
            if apart <= APART_MAX && one + apart == other && one < 32 {
                seen |= 1 << one;
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "both are below 32")]
        let share = seen.count_ones() as f32 / pairs as f32;
        share.min(1.0)
    }
}
