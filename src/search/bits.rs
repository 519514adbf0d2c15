//! Numbers of the index file that are shorter than bytes.
//!
//! Small numbers are frequent in postings, so they are written in bits, the highest bit of each
//! byte first. [`Writer::code`] writes a number as an exponential Golomb code (Teuhola, 1978): its
//! upper part in a code of Elias' gamma, and `low` further bits as they are.

use super::InvalidIndex;

/// The most further bits of a code.
pub(super) const LOW_MAX: u32 = 15;

/// Writes bits.
#[derive(Debug)]
pub(super) struct Writer<'o> {
    out: &'o mut Vec<u8>,
    /// How many bits of the last byte are free.
    free: u32,
}

/// Reads bits from their beginning. After the end of the bytes it reads zeros.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'b> {
    bytes: &'b [u8],
    /// How many bits were read.
    at: usize,
}

/// Returns how many bits a code has.
pub(super) fn code_bits(number: u32, low: u32) -> u32 {
    2 * bits(u64::from(number >> low) + 1) - 1 + low
}

/// Returns how many bits a number has.
pub(super) fn bits(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

// === impl Writer ===

impl<'o> Writer<'o> {
    /// Begins at the next byte.
    pub(super) fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out, free: 0 }
    }

    /// Writes the lowest bits of a number.
    pub(super) fn put(&mut self, number: u64, mut count: u32) {
        while count > 0 {
            if self.free == 0 {
                self.out.push(0);
                self.free = 8;
            }
            let now = count.min(self.free);
            count -= now;
            self.free -= now;
            let part = (number >> count) & ((1 << now) - 1);
            if let Some(last) = self.out.last_mut() {
                *last |= ((part << self.free) & 0xFF) as u8;
            }
        }
    }

    /// Writes a code.
    pub(super) fn code(&mut self, number: u32, low: u32) {
        let upper = u64::from(number >> low) + 1;
        let length = bits(upper);
        self.put(0, length - 1);
        self.put(upper, length);
        self.put(u64::from(number), low);
    }
}

// === impl Reader ===

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the bits that follow, at least 57 of them, from the highest bit on.
    #[inline]
    fn ahead(&self) -> u64 {
        let byte = self.at >> 3;
        let next = match self.bytes.get(byte..byte + 8) {
            Some(next) => next.try_into().unwrap_or_default(),
            None => {
                let mut next = [0; 8];
                let rest = self.bytes.get(byte..).unwrap_or_default();
                next[..rest.len()].copy_from_slice(rest);
                next
            }
        };
        u64::from_be_bytes(next) << (self.at & 7)
    }

    /// Reads some bits, at most 57.
    pub(super) fn take(&mut self, count: u32) -> u64 {
        let number = match count {
            0 => 0,
            count => self.ahead() >> (u64::BITS - count),
        };
        self.at += count as usize;
        number
    }

    /// Reads a code. The numbers of an index have at most 32 bits, so a longer one is an error.
    #[inline]
    pub(super) fn code(&mut self, low: u32) -> Result<u32, InvalidIndex> {
        let ahead = self.ahead();
        let zeros = ahead.leading_zeros();
        let length = 2 * zeros + 1 + low;
        if length <= 57 {
            self.at += length as usize;
            let upper = (ahead >> (63 - 2 * zeros)) - 1;
            let lower = (ahead << (2 * zeros) << 1) >> 1 >> (63 - low);
            return u32::try_from(upper << low | lower).map_err(|_large| InvalidIndex::Number);
        }
        if zeros > 32 {
            return Err(InvalidIndex::Number);
        }
        self.at += zeros as usize;
        let upper = self.take(zeros + 1) - 1;
        let lower = self.take(low);
        u32::try_from(upper << low | lower).map_err(|_large| InvalidIndex::Number)
    }

    /// Reads a code, and after it a code without further bits: a posting. Most fit together in what
    /// is read at once.
    #[inline]
    pub(super) fn codes(&mut self, low: u32) -> Result<(u32, u32), InvalidIndex> {
        let ahead = self.ahead();
        let zeros = ahead.leading_zeros();
        let length = 2 * zeros + 1 + low;
        if length <= 40 {
            let after = ahead << length;
            let zeros_after = after.leading_zeros();
            let length_after = 2 * zeros_after + 1;
            if length_after <= 17 {
                self.at += (length + length_after) as usize;
                let upper = (ahead >> (63 - 2 * zeros)) - 1;
                let lower = (ahead << (2 * zeros) << 1) >> 1 >> (63 - low);
                // Both have at most 40 bits.
                let first = u32::try_from(upper << low | lower);
                let second = u32::try_from((after >> (63 - 2 * zeros_after)) - 1);
                let large = |_large| InvalidIndex::Number;
                return Ok((first.map_err(large)?, second.map_err(large)?));
            }
        }
        Ok((self.code(low)?, self.code(0)?))
    }

    /// Returns how many bytes were begun.
    ///
    /// # Errors
    ///
    /// [`InvalidIndex::Cut`] if there are fewer.
    pub(super) fn end(&self) -> Result<usize, InvalidIndex> {
        let end = self.at.div_ceil(8);
        match end <= self.bytes.len() {
            true => Ok(end),
            false => Err(InvalidIndex::Cut),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn codes_and_bits_are_read_as_they_were_written(
            numbers in prop::collection::vec((any::<u32>(), 0_u32..32, 0..=LOW_MAX), 0..50)
        ) {
            let mut bytes = Vec::new();
            let mut writer = Writer::new(&mut bytes);
            let mut length = 0;
            for (number, shift, low) in &numbers {
                writer.code(number >> shift, *low);
                writer.put(u64::from(number >> shift), 32 - shift);
                length += code_bits(number >> shift, *low) + 32 - shift;
            }
            prop_assert_eq!(bytes.len(), length.div_ceil(8) as usize);
            let mut reader = Reader::new(&bytes);
            for (number, shift, low) in &numbers {
                prop_assert_eq!(reader.code(*low), Ok(number >> shift));
                prop_assert_eq!(reader.take(32 - shift), u64::from(number >> shift));
            }
            prop_assert_eq!(reader.end(), Ok(bytes.len()));
        }

        #[test]
        fn two_codes_are_read_as_one_after_the_other(
            bytes in prop::collection::vec(any::<u8>(), 0..40), low in 0..=LOW_MAX
        ) {
            let (mut together, mut apart) = (Reader::new(&bytes), Reader::new(&bytes));
            loop {
                let both = together.codes(low);
                let first = apart.code(low);
                let expected = first.and_then(|first| Ok((first, apart.code(0)?)));
                prop_assert_eq!(both, expected);
                if both.is_err() || apart.at > 8 * bytes.len() {
                    break;
                }
                prop_assert_eq!(together.at, apart.at);
            }
        }

        #[test]
        fn no_bytes_are_read_without_end(bytes: Vec<u8>, low in 0..=LOW_MAX) {
            let mut reader = Reader::new(&bytes);
            let mut count = 0;
            while reader.code(low).is_ok() {
                count += 1;
                prop_assert!(count <= 8 * bytes.len());
            }
        }
    }
}
