//! Numbers and texts of the index file: written, and read with every bound checked.

use super::InvalidIndex;

/// Adds a number in groups of seven bits, the lowest first.
pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7F) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7F) as u8);
}

/// Adds the length of a text and the text.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Adds the length of an optional text plus one, and the text; zero if there is none.
pub(super) fn put_optional(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        None => put(out, 0),
        Some(text) => {
            put(out, text.len() as u64 + 1);
            out.extend_from_slice(text.as_bytes());
        }
    }
}

/// Returns an optional text if it is UTF-8.
pub(super) fn utf8(bytes: Option<&[u8]>) -> Result<Option<&str>, InvalidIndex> {
    let text = bytes.map(std::str::from_utf8);
    text.transpose().map_err(|_invalid| InvalidIndex::Text)
}

/// Reads bytes from their beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'b>(&'b [u8]);

// === impl Reader ===

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> Result<u8, InvalidIndex> {
        let (first, rest) = self.0.split_first().ok_or(InvalidIndex::Cut)?;
        self.0 = rest;
        Ok(*first)
    }

    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, InvalidIndex> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(InvalidIndex::Number)
    }

    pub(super) fn length(&mut self) -> Result<usize, InvalidIndex> {
        usize::try_from(self.number()?).map_err(|_too_large| InvalidIndex::Number)
    }

    pub(super) fn small(&mut self) -> Result<u32, InvalidIndex> {
        u32::try_from(self.number()?).map_err(|_too_large| InvalidIndex::Number)
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'b [u8], InvalidIndex> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(InvalidIndex::Cut)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Returns the bytes that were not read.
    pub(super) fn rest(&self) -> &'b [u8] {
        self.0
    }

    /// Returns a number that is written up to `most` elsewhere; what it has more follows here.
    pub(super) fn counted(&mut self, number: usize, most: usize) -> Result<usize, InvalidIndex> {
        match number == most {
            true => number
                .checked_add(self.length()?)
                .ok_or(InvalidIndex::Number),
            false => Ok(number),
        }
    }

    pub(super) fn text(&mut self) -> Result<&'b str, InvalidIndex> {
        let length = self.length()?;
        std::str::from_utf8(self.take(length)?).map_err(|_invalid| InvalidIndex::Text)
    }

    pub(super) fn optional(&mut self) -> Result<Option<&'b str>, InvalidIndex> {
        utf8(self.optional_bytes()?)
    }

    /// Reads an optional text without checking that it is UTF-8.
    pub(super) fn optional_bytes(&mut self) -> Result<Option<&'b [u8]>, InvalidIndex> {
        let length = self.length()?;
        length
            .checked_sub(1)
            .map(|length| self.take(length))
            .transpose()
    }

    /// Skips a text without checking that it is UTF-8.
    pub(super) fn skip_text(&mut self) -> Result<(), InvalidIndex> {
        let length = self.length()?;
        self.take(length).map(|_skipped| ())
    }
}
