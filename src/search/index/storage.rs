//! The file of an index, and the decoded parts that are kept between questions.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::super::posting::Posting;
use super::terms::Occurrences;

/// The bytes of an index file, in memory or in a store.
pub trait Storage {
    /// Returns their number.
    fn length(&self) -> u64;

    /// Reads some of them. The range is within the length.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    fn read(&self, range: Range<u64>) -> io::Result<Bytes>;

    /// Returns the kept result of an earlier decoding at this place of the file.
    fn decoded(&self, _place: u64) -> Option<Decoded> {
        None
    }

    /// Keeps the result of decoding at this place of the file, for later questions. The cache may
    /// drop it at any time.
    fn keep(&self, _place: u64, _decoded: Decoded) {}
}

/// A decoded part of an index file: it takes longer to read or to decode than to keep.
#[derive(Clone, Debug)]
pub struct Decoded(pub(super) Part);

#[derive(Clone, Debug)]
pub(super) enum Part {
    /// A block of texts.
    Texts(Bytes),
    /// A block of the dictionary.
    Terms(Bytes),
    /// The postings of a term.
    Postings(Arc<Occurrences>),
}

// === impl Decoded ===

impl Decoded {
    /// Returns how many bytes of memory it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Part::Texts(bytes) | Part::Terms(bytes) => bytes.len(),
            Part::Postings(postings) => {
                size_of::<Occurrences>() + size_of_val::<[Posting]>(&postings.list)
            }
        }
    }
}

// === impl Bytes ===

impl Storage for Bytes {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        let place = |at: u64| usize::try_from(at).map_err(io::Error::other);
        let (start, end) = (place(range.start)?, place(range.end)?);
        if start > end || end > self.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(self.slice(start..end))
    }
}
