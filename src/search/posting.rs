//! Postings: in which sections a term occurs, and where.
//!
//! A posting is a number: twice the distance to the section of the previous posting. One is added
//! if the term occurs once in the text and in no other field, which is the most frequent case.
//! Otherwise a byte follows: the frequency in the text, in one of eight steps, and a bit for each
//! other field.

use super::InvalidIndex;
use super::bytes::{Reader, put};

/// The steps in which the frequency of a term is stored.
const STEPS: [u16; 8] = [0, 1, 2, 3, 5, 8, 13, 21];
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

/// Adds postings, in the order of their sections.
pub(super) fn write(postings: impl Iterator<Item = Posting>, out: &mut Vec<u8>) {
    let mut before = 0;
    for posting in postings {
        let distance = u64::from(posting.section - before);
        before = posting.section;
        let is_plain = posting.count == 1 && posting.fields == 0;
        put(out, distance << 1 | u64::from(is_plain));
        if !is_plain {
            let step = STEPS.iter().rposition(|step| *step <= posting.count);
            let step = u8::try_from(step.unwrap_or(0)).unwrap_or(0);
            out.push(step | posting.fields);
        }
    }
}

/// Calls `found` for each posting. Sections must be in ascending order and below `sections`.
pub(super) fn read(
    bytes: &[u8],
    sections: u32,
    mut found: impl FnMut(Posting),
) -> Result<(), InvalidIndex> {
    let mut reader = Reader::new(bytes);
    let mut section = 0;
    let mut is_first = true;
    while !reader.is_empty() {
        let number = reader.small()?;
        let distance = number >> 1;
        if distance == 0 && !is_first {
            return Err(InvalidIndex::Order);
        }
        is_first = false;
        section = distance.checked_add(section).ok_or(InvalidIndex::Order)?;
        if section >= sections {
            return Err(InvalidIndex::Order);
        }
        let (count, fields) = match number & 1 {
            1 => (1, 0),
            _ => {
                let byte = reader.byte()?;
                (STEPS[usize::from(byte & 7)], byte & !7)
            }
        };
        found(Posting {
            section,
            count,
            fields,
        });
    }
    Ok(())
}
