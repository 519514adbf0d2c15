//! The places of nodes in their source files.
//!
//! A page is read in pieces: carriage returns are removed, elements are dedented, and the
//! text of an element is read apart from the tags in it. A [`Trace`] records for each piece
//! of such a text the place from which it was copied, so that every link and heading has its
//! place in the file.

use std::ops::Range;
use std::sync::Arc;

/// A range of bytes in a file that a page was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Which file, by its number in [`Page::files`](super::Page::files); the page itself is 0.
    pub file: u32,
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

// === impl Span ===

impl Span {
    /// The place of generated nodes, which no author wrote.
    pub const NONE: Self = Self {
        file: u32::MAX,
        start: 0,
        end: 0,
    };

    /// Returns whether an author wrote this.
    #[must_use]
    pub fn is_written(self) -> bool {
        self.file != u32::MAX
    }

    /// Returns the range of bytes.
    #[must_use]
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl Default for Span {
    fn default() -> Self {
        Self::NONE
    }
}

/// Maps the cleaned text of a file to the original.
#[derive(Debug, Default)]
pub(super) struct Origin {
    /// The number of the file.
    pub(super) file: u32,
    /// The byte of the file at which the cleaned text starts.
    pub(super) start: usize,
    /// Pairs: from this byte of the cleaned text on, add this number to get the original byte.
    pub(super) shifts: Vec<(usize, isize)>,
    /// The line of the file at which the cleaned text starts, from 1.
    pub(super) line: u32,
    /// Where each line of the cleaned text ends.
    pub(super) line_ends: Vec<usize>,
}

// === impl Origin ===

impl Origin {
    /// Returns the line of the file of a byte of the cleaned text.
    pub(super) fn line_of(&self, offset: usize) -> u32 {
        let before = self.line_ends.partition_point(|end| *end < offset);
        self.line + u32::try_from(before).unwrap_or(u32::MAX)
    }

    /// Returns the line of the cleaned text that contains a byte, without its line end;
    /// `length` is the length of the text.
    pub(super) fn line_around(&self, offset: usize, length: usize) -> Range<usize> {
        let n = self.line_ends.partition_point(|end| *end < offset);
        let start = if n == 0 { 0 } else { self.line_ends[n - 1] + 1 };
        start..self.line_ends.get(n).copied().unwrap_or(length)
    }

    /// Returns the place in the file of a byte of the cleaned text.
    fn at(&self, offset: usize) -> u32 {
        let nth = self.shifts.partition_point(|(from, _)| *from <= offset);
        let shift = match nth {
            0 => 0,
            nth => self.shifts[nth - 1].1,
        };
        let at = self.start.saturating_add_signed(shift) + offset;
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    /// Returns the place in the file of a range of the cleaned text.
    pub(super) fn span(&self, range: Range<usize>) -> Span {
        let start = self.at(range.start);
        // The place of the last byte, so that characters removed after it do not count.
        let end = match range.end.checked_sub(1).filter(|_| !range.is_empty()) {
            Some(last) => self.at(last) + 1,
            None => start,
        };
        Span {
            file: self.file,
            start,
            end,
        }
    }
}

/// The places from which the pieces of an assembled text were copied.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    origin: Option<Arc<Origin>>,
    /// Pairs: a byte of the text, and the byte of the cleaned text from which it was copied.
    pieces: Vec<(usize, usize)>,
}

// === impl Trace ===

impl Trace {
    /// Makes the trace of a text that is copied from a file in pieces.
    pub(super) fn new(origin: &Arc<Origin>) -> Self {
        Self {
            origin: Some(Arc::clone(origin)),
            pieces: Vec::new(),
        }
    }

    /// Records that the text from `here` on was copied from `there`.
    pub(super) fn note(&mut self, here: usize, there: usize) {
        let goes_on = |&(h, t): &(usize, usize)| here.checked_sub(h) == there.checked_sub(t);
        if !self.pieces.last().is_some_and(goes_on) {
            self.pieces.push((here, there));
        }
    }

    /// Removes the records of the text from `here` on.
    pub(super) fn truncate(&mut self, here: usize) {
        let kept = self.pieces.partition_point(|(at, _)| *at < here);
        self.pieces.truncate(kept);
    }

    fn at(&self, here: usize) -> usize {
        let nth = self.pieces.partition_point(|(at, _)| *at <= here);
        match nth {
            0 => self.pieces.first().map_or(0, |(_, there)| *there),
            nth => {
                let (h, there) = self.pieces[nth - 1];
                there + (here - h)
            }
        }
    }

    /// Returns the trace of a text whose pieces are copied from the text of this trace.
    pub(super) fn of_copies(&self, copies: impl Iterator<Item = (usize, usize)>) -> Self {
        Self {
            origin: self.origin.clone(),
            pieces: copies.map(|(here, there)| (here, self.at(there))).collect(),
        }
    }

    /// Returns where a range of the text was written.
    pub(super) fn span(&self, range: Range<usize>) -> Span {
        match &self.origin {
            None => Span::NONE,
            Some(origin) => {
                let start = self.at(range.start);
                // The place of the last byte, so that text of the next piece does not count.
                let end = match range.is_empty() {
                    true => start,
                    false => self.at(range.end - 1) + 1,
                };
                origin.span(start..end.max(start))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_found_through_copies_and_dropped_carriage_returns() {
        // Written: 100 bytes of frontmatter, then "ab\r\ncd": one byte is dropped before "\n".
        let origin = Arc::new(Origin {
            file: 0,
            start: 100,
            shifts: vec![(2, 1)],
            ..Origin::default()
        });
        let mut trace = Trace::new(&origin);
        trace.note(0, 3);
        trace.note(1, 4);
        trace.note(5, 0);
        let place = |range| {
            let span = trace.span(range);
            (span.start, span.end)
        };
        assert_eq!(trace.pieces, [(0, 3), (5, 0)]);
        assert_eq!(place(0..2), (104, 106));
        assert_eq!(place(5..7), (100, 102));
    }
}
