//! The files that were read, and the conversion of spans to lines and columns.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::diagnostic::Location;

use super::Span;

/// Identifies one of the [`Files`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(u16);

/// The files whose values are in memory.
#[derive(Debug, Default)]
pub struct Files {
    files: Vec<File>,
}

#[derive(Debug)]
struct File {
    path: Box<str>,
    text: Arc<str>,
    /// Made when the first span is located.
    lines: OnceLock<LineIndex>,
}

/// Where the lines of a text start, to locate bytes by line and column.
#[derive(Clone, Debug)]
pub struct LineIndex {
    /// The offset of the first byte of each line.
    starts: Vec<usize>,
    /// How many characters precede each block of [`BLOCK_BYTES`] bytes. Without them, finding
    /// each place in a minified file of one line would count from the start of the file.
    blocks: Vec<usize>,
}

const BLOCK_BYTES: usize = 1024;

// === impl Files ===

impl Files {
    /// Adds a file.
    ///
    /// # Panics
    ///
    /// After 65,535 files; readers limit how many they open.
    pub fn add(&mut self, path: &str, text: Arc<str>) -> FileId {
        let id = u16::try_from(self.files.len()).expect("readers limit how many files they open");
        self.files.push(File {
            path: path.into(),
            text,
            lines: OnceLock::new(),
        });
        FileId(id)
    }

    /// Returns the path of a file, from the root of the repository.
    #[must_use]
    pub fn path(&self, file: FileId) -> &str {
        &self.files[usize::from(file.0)].path
    }

    /// Returns the text of a file.
    #[must_use]
    pub fn text(&self, file: FileId) -> &Arc<str> {
        &self.files[usize::from(file.0)].text
    }

    /// Returns the text of a span as it is in the file.
    #[must_use]
    pub fn source(&self, span: Span) -> &str {
        self.text(span.file).get(span.range()).unwrap_or_default()
    }

    /// Returns line, column and length of a span.
    ///
    /// If the span has several lines, the length counts only the part in the first line.
    #[must_use]
    pub fn locate(&self, span: Span) -> Location {
        let file = &self.files[usize::from(span.file.0)];
        let lines = file.lines.get_or_init(|| LineIndex::new(&file.text));
        lines.locate(&file.text, span.range())
    }
}

// === impl LineIndex ===

impl LineIndex {
    /// Indexes a text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes());
        let mut characters = 0;
        let blocks = text.as_bytes().chunks(BLOCK_BYTES).map(|block| {
            let before = characters;
            characters += count(block);
            before
        });
        Self {
            blocks: blocks.collect(),
            starts: std::iter::once(0).chain(breaks.map(|at| at + 1)).collect(),
        }
    }

    /// Returns line, column and length of a range of bytes of the indexed text.
    ///
    /// If the range has several lines, the length counts only the part in the first line.
    #[must_use]
    pub fn locate(&self, text: &str, range: Range<usize>) -> Location {
        let bytes = text.as_bytes();
        let start = range.start.min(bytes.len());
        let line = self.starts.partition_point(|&at| at <= start) - 1;
        let line_end = match self.starts.get(line + 1) {
            Some(next) if bytes[..next - 1].ends_with(b"\r") => next - 2,
            Some(next) => next - 1,
            None => bytes.len(),
        };
        let end = range.end.min(line_end).max(start);
        let before = self.characters_before(bytes, start);
        Location {
            line: narrow(line + 1),
            column: narrow(before - self.characters_before(bytes, self.starts[line]) + 1),
            length: narrow(self.characters_before(bytes, end) - before),
        }
    }

    fn characters_before(&self, bytes: &[u8], at: usize) -> usize {
        // If the length of the text is a multiple of the block size, no block starts at its end.
        let block = (at / BLOCK_BYTES).min(self.blocks.len().saturating_sub(1));
        let before = self.blocks.get(block).copied().unwrap_or_default();
        before + count(&bytes[block * BLOCK_BYTES..at])
    }
}

/// Counts the characters that start in some bytes of UTF-8.
fn count(bytes: &[u8]) -> usize {
    let is_start = |byte: &&u8| **byte & 0b1100_0000 != 0b1000_0000;
    bytes.iter().filter(is_start).count()
}

/// Converts a count of lines or characters; it fits, because files are limited to
/// `FILE_BYTES_MAX`.
fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locate(text: &str, range: Range<usize>) -> (u32, u32, u32) {
        let Location {
            line,
            column,
            length,
        } = LineIndex::new(text).locate(text, range);
        (line, column, length)
    }

    #[test]
    fn places_are_counted_in_characters_and_end_with_their_line() {
        assert_eq!(locate("ab\nçd {\n}", 7..10), (2, 4, 1));
        assert_eq!(locate("a\r\nb\r\n", 0..6), (1, 1, 1));
        assert_eq!(locate("", 0..0), (1, 1, 0));
        assert_eq!(locate("a\n", 2..2), (2, 1, 0));
    }

    #[test]
    fn places_in_a_long_line_are_counted_from_its_start() {
        let line = format!("x\n{}", "é".repeat(3 * BLOCK_BYTES));
        for characters in [0, 1, 511, 512, 513, 1024, 3000] {
            let at = 2 + 2 * characters;
            let column = u32::try_from(characters).unwrap() + 1;
            assert_eq!(locate(&line, at..at + 4), (2, column, 2));
        }
        let even = "x".repeat(2 * BLOCK_BYTES);
        assert_eq!(locate(&even, even.len()..even.len()), (1, 2049, 0));
    }
}
