//! Postings: in which sections a term occurs, and where.
//!
//! A list of postings is written in bits ([`bits`](super::bits)): the distances between sections,
//! and after each distance the *kind* of the occurrence: its frequency in the text, in one of eight
//! steps, and a bit for each other field. Kinds are numbered by how often the part of the index has
//! them, so the most frequent one, once in the text and nowhere else, takes a single bit.

use super::InvalidIndex;
use super::bits::{LOW_MAX, Reader, Writer, bits, code_bits};

/// The steps in which the frequency of a term is stored.
pub(super) const STEPS: [u16; 8] = [0, 1, 2, 3, 5, 8, 13, 21];
/// The term is in the heading of the section.
pub(super) const HEADING: u8 = 1 << 3;
/// The term is in the title of the page.
pub(super) const TITLE: u8 = 1 << 4;
/// The term is one of the keywords of the page.
pub(super) const KEYWORD: u8 = 1 << 5;
/// The term is in the description of the page.
pub(super) const DESCRIPTION: u8 = 1 << 6;
/// The term is in the path of the page or in its breadcrumb.
pub(super) const PLACE: u8 = 1 << 7;
/// How many bits the number of further bits of the distances has.
const LOW_BITS: u32 = 4;

/// An occurrence of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Posting {
    /// The number of the section.
    pub(super) section: u32,
    /// How often the term is in its text.
    pub(super) count: u16,
    /// The other fields that have it.
    pub(super) fields: u8,
}

/// The kinds of occurrences of a part, the most frequent first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds(Vec<u8>);

/// Counts kinds.
#[derive(Clone, Debug)]
pub(super) struct KindCounts([u64; 256]);

/// The numbers of kinds.
#[derive(Clone, Debug)]
pub(super) struct KindNumbers([u32; 256]);

// === impl Posting ===

impl Posting {
    fn kind(&self) -> u8 {
        let step = STEPS.iter().rposition(|step| *step <= self.count);
        u8::try_from(step.unwrap_or(0)).unwrap_or(0) | self.fields
    }

    fn of(section: u32, kind: u8) -> Self {
        Self {
            section,
            count: STEPS[usize::from(kind & 7)],
            fields: kind & !7,
        }
    }

    /// Returns the step of the frequency if no other field has the term.
    #[inline]
    pub(super) fn plain_step(&self) -> Option<usize> {
        match (self.fields, self.count) {
            (0, 0..=3) => Some(usize::from(self.count)),
            (0, 5) => Some(4),
            (0, count) => STEPS.iter().position(|step| *step == count),
            _ => None,
        }
    }
}

// === impl KindCounts ===

impl Default for KindCounts {
    fn default() -> Self {
        Self([0; 256])
    }
}

impl KindCounts {
    pub(super) fn add(&mut self, posting: &Posting) {
        self.0[usize::from(posting.kind())] += 1;
    }

    /// Adds the counts of others.
    pub(super) fn merge(&mut self, others: &Self) {
        for (count, other) in self.0.iter_mut().zip(&others.0) {
            *count += other;
        }
    }

    /// Numbers the kinds.
    pub(super) fn numbers(&self) -> (Kinds, KindNumbers) {
        let mut kinds: Vec<u8> = (0..=u8::MAX)
            .filter(|kind| self.0[usize::from(*kind)] > 0)
            .collect();
        kinds.sort_by_key(|kind| std::cmp::Reverse(self.0[usize::from(*kind)]));
        let mut numbers = [0; 256];
        for (number, kind) in (0..).zip(&kinds) {
            numbers[usize::from(*kind)] = number;
        }
        (Kinds(kinds), KindNumbers(numbers))
    }
}

// === impl Kinds ===

impl Kinds {
    pub(super) fn new(kinds: &[u8]) -> Self {
        Self(kinds.to_vec())
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    #[inline]
    fn numbered(&self, number: u32) -> Result<u8, InvalidIndex> {
        let kind = self.0.get(number as usize).copied();
        kind.ok_or(InvalidIndex::Number)
    }

    /// Calls `found` for each of `count` postings. Sections must be in ascending order and below
    /// `sections`.
    pub(super) fn read_list(
        &self,
        bytes: &[u8],
        (count, sections): (u32, u32),
        mut found: impl FnMut(Posting),
    ) -> Result<(), InvalidIndex> {
        let mut reader = Reader::new(bytes);
        let low = u32::try_from(reader.take(LOW_BITS)).unwrap_or(LOW_MAX);
        let mut next = 0_u32;
        for _ in 0..count {
            let (distance, kind) = reader.codes(low)?;
            let section = next.checked_add(distance);
            let section = section.filter(|section| *section < sections);
            let section = section.ok_or(InvalidIndex::Order)?;
            next = section + 1;
            found(Posting::of(section, self.numbered(kind)?));
        }
        reader.end()?;
        Ok(())
    }

    /// Reads the posting of a term that has only one. Returns how many bytes it takes.
    pub(super) fn read_single(
        &self,
        bytes: &[u8],
        sections: u32,
    ) -> Result<(Posting, usize), InvalidIndex> {
        let mut reader = Reader::new(bytes);
        let section = u32::try_from(reader.take(bits(u64::from(sections))));
        let section = section.ok().filter(|section| *section < sections);
        let section = section.ok_or(InvalidIndex::Order)?;
        let kind = self.numbered(reader.code(0)?)?;
        Ok((Posting::of(section, kind), reader.end()?))
    }
}

// === impl KindNumbers ===

impl KindNumbers {
    /// Adds a list of postings, in the order of their sections.
    pub(super) fn write_list(&self, postings: &[Posting], out: &mut Vec<u8>) {
        let mut next = 0;
        let distances = postings.iter().map(|posting| {
            let distance = posting.section - next;
            next = posting.section + 1;
            distance
        });
        let distances: Vec<u32> = distances.collect();
        let last = postings.last().map_or(0, |last| last.section);
        let mean = u64::from(last) / postings.len().max(1) as u64;
        let cost = |low: &u32| -> u64 {
            let each = distances.iter();
            each.map(|distance| u64::from(code_bits(*distance, *low)))
                .sum()
        };
        let low = (0..=bits(mean).min(LOW_MAX)).min_by_key(cost).unwrap_or(0);
        let mut writer = Writer::new(out);
        writer.put(u64::from(low), LOW_BITS);
        for (posting, distance) in postings.iter().zip(&distances) {
            writer.code(*distance, low);
            writer.code(self.0[usize::from(posting.kind())], 0);
        }
    }

    /// Adds the posting of a term that has only one.
    pub(super) fn write_single(&self, posting: &Posting, sections: u32, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.put(u64::from(posting.section), bits(u64::from(sections)));
        writer.code(self.0[usize::from(posting.kind())], 0);
    }
}
