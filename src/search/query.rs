//! The terms of a question, as far as a part of the index knows them.

use std::sync::Arc;

use super::index::{Occurrences, OpenPart, Storage, Table, Term};
use super::posting::Posting;
use super::words::{Role, Run, folded, is_common, runs, terms};
use super::{Question, SearchError};

/// How many terms of a question are searched; each has a bit in a mask.
pub(super) const TERMS_MAX: usize = 32;
/// A word of at least this many letters may have a mistake.
const LONG: usize = 5;
/// How many words of a question may have a mistake.
const MISTAKES_MAX: usize = 4;
/// A word of at least this many letters may have a mistake in its first letter.
const LONG_AFTER_FIRST: usize = 6;
/// How many first letters are tried. Each costs at most two searches in the dictionary, so a word
/// costs about as much as the scan of the terms with one first letter.
const FIRST_LETTERS_MAX: usize = 48;
/// How many letters longer than the term a word with a mistake may be: the stemmer does not remove
/// its ending.
const ENDING_MAX: usize = 5;
/// How many letters longer than its stem a typed word may be.
const TYPED_ENDING_MAX: usize = 8;
/// If the typed letters are a term too, the stem is added only if it is in more than this many times as
/// many sections.
const LIKELIER: u32 = 4;
/// The fewest letters of the stem of a typed word.
const TYPED_STEM_MIN: usize = 4;
/// The most terms that replace one word.
const ALTERNATIVES_MAX: usize = 3;
/// How many of the terms that begin with the typed letters are read.
const BEGUN_SCANNED_MAX: usize = 400;
/// How many of these terms are searched.
const BEGUN_MAX: usize = 24;
/// The weight of a term that differs from the word of the question.
const ALTERNATIVE_WEIGHT: f32 = 0.7;
/// The weight of a common word.
const COMMON_WEIGHT: f32 = 0.13;
/// The weight of a whole identifier beside its parts.
const WHOLE_WEIGHT: f32 = 1.0;
/// The weight of a part of an identifier.
const PART_WEIGHT: f32 = 0.6;

/// A term of a question.
#[derive(Debug)]
pub(super) struct QueryTerm {
    /// The run of the question that it comes from.
    pub(super) clause: usize,
    pub(super) role: Role,
    /// Its weight without the frequency of the term.
    pub(super) weight: f32,
    /// The terms of the index that match it. Empty if there are none.
    pub(super) entries: Vec<Term>,
    /// Whether it says little in a question.
    pub(super) is_common: bool,
    /// Whether it is a pair of characters of a script without spaces.
    pub(super) is_pair: bool,
    term: String,
    /// The word in lower case, before stemming.
    word: String,
    /// Whether the word may be only a beginning.
    is_begun: bool,
}

// === impl QueryTerm ===

impl QueryTerm {
    /// Finds the terms of a question.
    pub(super) fn of(
        question: &Question<'_>,
        part: &OpenPart,
        table: &Table,
        file: &dyn Storage,
    ) -> Result<Vec<Self>, SearchError> {
        let text = question.text;
        let mut all: Vec<Self> = Vec::new();
        let mut clause = 0;
        runs(text, |place, kind| {
            let run = &text[place.clone()];
            // The index has pairs of the characters of such a script, so a single one is only a
            // beginning.
            let is_single = kind == Run::Pairs && run.chars().nth(1).is_none();
            let is_begun = is_single || question.is_typing && place.end == text.len();
            terms(run, kind, &table.stemmer, |role, term| {
                if all.len() == TERMS_MAX || all.iter().any(|known| known.term == term) {
                    return;
                }
                let word = match role {
                    Role::Word => folded(run),
                    _ => term.to_owned(),
                };
                let is_common = role == Role::Word && is_common(&part.info.language, &word);
                let weight = match role {
                    Role::Word if is_common => COMMON_WEIGHT,
                    Role::Word => 1.0,
                    Role::Whole | Role::Flag => WHOLE_WEIGHT,
                    Role::Part => PART_WEIGHT,
                };
                all.push(Self {
                    clause,
                    role,
                    weight,
                    entries: Vec::new(),
                    is_common,
                    is_pair: kind == Run::Pairs,
                    term: term.to_owned(),
                    word,
                    is_begun,
                });
            });
            clause += 1;
        });
        let mut mistakes = 0;
        for term in &mut all {
            term.entries.extend(part.find(file, table, &term.term)?);
            if term.is_begun {
                term.begun(part, table, file)?;
            }
            let is_word = matches!(term.role, Role::Word | Role::Part);
            if term.entries.is_empty() && is_word && mistakes < MISTAKES_MAX {
                mistakes += 1;
                term.forgive(part, table, file)?;
            }
        }
        // Most unknown pairs consist of the end of one word and the start of the next. They have no
        // weight if the index knows another pair of the same run.
        let known: Vec<usize> = all
            .iter()
            .filter(|term| !term.entries.is_empty())
            .map(|term| term.clause)
            .collect();
        for term in all.iter_mut().filter(|term| term.is_pair) {
            if term.entries.is_empty() && known.contains(&term.clause) {
                term.weight = 0.0;
            }
        }
        Ok(all)
    }

    /// Returns whether the index knows it, and it is no common word.
    pub(super) fn is_telling(&self) -> bool {
        !self.is_common && !self.entries.is_empty()
    }

    /// Adds the most frequent terms that begin with the typed letters, and the stem of the word that
    /// is typed: it may be shorter than these letters. `navigatio` is a beginning of `navigation`,
    /// whose stem is `navig`.
    fn begun(
        &mut self,
        part: &OpenPart,
        table: &Table,
        file: &dyn Storage,
    ) -> Result<(), SearchError> {
        let start = self.word.as_str();
        let mut begun = Vec::new();
        let mut scanned = 0;
        part.scan(file, table, start, |entry| {
            if entry.term.starts_with(start) {
                scanned += 1;
                begun.push(entry.clone());
            }
            (entry.term.as_str() < start || entry.term.starts_with(start))
                && scanned < BEGUN_SCANNED_MAX
        })?;
        begun.retain(|entry| self.entries.iter().all(|known| known.term != entry.term));
        begun.sort_by_key(|entry| std::cmp::Reverse(entry.sections));
        begun.truncate(BEGUN_MAX);
        if self.role == Role::Word {
            let known = self.entries.iter().map(|entry| entry.sections).max();
            let stem = self.begun_stem(part, table, file)?;
            let is_likely = |stem: &Term| {
                known.is_none_or(|known| stem.sections > known.saturating_mul(LIKELIER))
            };
            begun.extend(stem.filter(is_likely));
        }
        if self.entries.is_empty() && !begun.is_empty() {
            self.weight *= ALTERNATIVE_WEIGHT;
        }
        self.entries.extend(begun);
        Ok(())
    }

    /// Finds the stem of a word of which some letters are typed. It is the longest beginning of
    /// these letters that the index knows, as it is or as the stem of a word.
    fn begun_stem(
        &self,
        part: &OpenPart,
        table: &Table,
        file: &dyn Storage,
    ) -> Result<Option<Term>, SearchError> {
        let ends = self.word.char_indices().map(|(end, _)| end);
        let ends: Vec<usize> = ends.skip(TYPED_STEM_MIN).collect();
        for end in ends.into_iter().rev().take(TYPED_ENDING_MAX) {
            let start = &self.word[..end];
            for stem in [start, &table.stemmer.term(start)] {
                let is_long = stem.chars().nth(TYPED_STEM_MIN - 1).is_some();
                if is_long
                    && self.word.starts_with(stem)
                    && let Some(entry) = part.find(file, table, stem)?
                {
                    return Ok(Some(entry));
                }
            }
        }
        Ok(None)
    }

    /// Finds the terms that differ from the word in one letter, or in its ending. If there are
    /// none with the same first letter, the mistake may be in the first letter.
    fn forgive(
        &mut self,
        part: &OpenPart,
        table: &Table,
        file: &dyn Storage,
    ) -> Result<(), SearchError> {
        let word: Vec<char> = self.word.chars().collect();
        let stem: Vec<char> = self.term.chars().collect();
        let is_long = word.len() >= LONG && word.iter().all(|c| c.is_alphabetic());
        let Some(first) = word.first().filter(|_| is_long) else {
            return Ok(());
        };
        let mut near: Vec<((usize, usize), Term)> = Vec::new();
        let mut letters = Vec::new();
        part.scan(file, table, first.encode_utf8(&mut [0; 4]), |entry| {
            letters.clear();
            letters.extend(entry.term.chars());
            if letters.first() > Some(first) {
                return false;
            }
            if letters.first() == Some(first)
                && let Some(distance) = distance(&word, &stem, &letters)
            {
                near.push((distance, entry.clone()));
            }
            true
        })?;
        near.sort_by(|(one, of_one), (other, of_other)| {
            one.cmp(other).then(of_other.sections.cmp(&of_one.sections))
        });
        let Some(least) = near.first().map(|(distance, _)| *distance) else {
            return self.forgive_first(&stem, part, table, file);
        };
        let near = near
            .into_iter()
            .take_while(|(distance, _)| *distance == least);
        self.entries
            .extend(near.take(ALTERNATIVES_MAX).map(|(_, entry)| entry));
        self.weight *= ALTERNATIVE_WEIGHT;
        Ok(())
    }

    /// Finds the terms that differ from the word in its first letter, or in the order of its first
    /// two. The rest must be right, so each possible term is looked up.
    fn forgive_first(
        &mut self,
        stem: &[char],
        part: &OpenPart,
        table: &Table,
        file: &dyn Storage,
    ) -> Result<(), SearchError> {
        let [first, second, rest @ ..] = stem else {
            return Ok(());
        };
        if self.word.chars().count() < LONG_AFTER_FIRST || stem.len() + 1 < LONG {
            return Ok(());
        }
        let rest = String::from_iter(rest);
        // Exchanged, and one letter too many.
        let mut terms = vec![format!("{second}{first}{rest}"), format!("{second}{rest}")];
        let letters = table.first_letters(first.is_ascii());
        for letter in letters.iter().take(FIRST_LETTERS_MAX) {
            // One letter is missing, and one is wrong.
            terms.push(format!("{letter}{}", self.term));
            terms.push(format!("{letter}{second}{rest}"));
        }
        let mut near: Vec<Term> = Vec::new();
        for term in terms {
            let is_long = term.chars().nth(LONG - 2).is_some();
            if is_long && near.iter().all(|known| known.term != term) {
                near.extend(part.find(file, table, &term)?);
            }
        }
        if near.is_empty() {
            return Ok(());
        }
        near.sort_by_key(|entry| std::cmp::Reverse(entry.sections));
        near.truncate(ALTERNATIVES_MAX);
        self.entries.extend(near);
        self.weight *= ALTERNATIVE_WEIGHT;
        Ok(())
    }

    /// Reads where it occurs. Postings of several terms are merged.
    pub(super) fn read(
        &self,
        part: &OpenPart,
        table: &Table,
        file: &dyn Storage,
    ) -> Result<Arc<Occurrences>, SearchError> {
        if let [entry] = &self.entries[..] {
            return part.postings(file, table, entry);
        }
        let mut postings = Vec::new();
        for entry in &self.entries {
            postings.extend_from_slice(&part.postings(file, table, entry)?.list);
        }
        postings.sort_unstable_by_key(|posting: &Posting| posting.section);
        postings.dedup_by(|later, first| {
            let is_same = later.section == first.section;
            if is_same {
                first.count = first.count.max(later.count);
                first.fields |= later.fields;
            }
            is_same
        });
        Ok(Arc::new(Occurrences::of(postings, table)))
    }
}

/// Returns how far a word is from a term: the letters that differ, at most one, and the letters
/// of its ending. `None` if it is another word.
fn distance(word: &[char], stem: &[char], term: &[char]) -> Option<(usize, usize)> {
    if term.len() + 1 < LONG {
        return None;
    }
    if word.starts_with(term) {
        let ending = word.len() - term.len();
        return (ending <= ENDING_MAX).then_some((0, ending));
    }
    if differs_in_one(stem, term) {
        return Some((1, 0));
    }
    let ends = term.len().saturating_sub(1)..=term.len() + 1;
    let endings = ends.filter(|end| *end <= word.len() && word.len() - end <= ENDING_MAX);
    let mut endings =
        endings.filter(|end| term.len() >= LONG && differs_in_one(&word[..*end], term));
    endings.next_back().map(|end| (1, word.len() - end))
}

/// Returns whether one letter is missing, added, wrong, or exchanged with its neighbour.
fn differs_in_one(one: &[char], other: &[char]) -> bool {
    let (short, long) = match one.len() <= other.len() {
        true => (one, other),
        false => (other, one),
    };
    let start = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    let (short, long) = (&short[start..], &long[start..]);
    match long.len() - short.len() {
        1 => *short == long[1..],
        0 if short.is_empty() => true,
        0 => {
            short[1..] == long[1..]
                || short.len() > 1
                    && short[0] == long[1]
                    && short[1] == long[0]
                    && short[2..] == long[2..]
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(word: &str, term: &str) -> bool {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        let word = letters(word);
        word.len() >= LONG && distance(&word, &word, &letters(term)).is_some()
    }

    #[test]
    fn one_letter_and_an_ending_are_forgiven() {
        assert!(is_near("deplyment", "deploy"));
        assert!(is_near("instal", "install"));
        assert!(is_near("kubernets", "kubernetes"));
        assert!(is_near("webhoks", "webhook"));
        assert!(is_near("cnofigure", "configur"));
        assert!(is_near("configuracion", "configur"));
        assert!(is_near("authentica", "authent"));
        assert!(!is_near("kubernetes", "cube"));
        assert!(!is_near("helm", "help"));
        assert!(!is_near("terraform", "terrain"));
    }
}
