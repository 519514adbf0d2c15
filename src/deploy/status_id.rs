//! The public handle of an update.
//!
//! Sources: Crockford, "Base 32"; the layout is that of a ULID.

use std::fmt;

use super::Timestamp;

const PREFIX: &str = "upd_";
/// 128 bits, five at a time.
const DIGITS: usize = 26;
/// No letter that is read as a digit.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The public handle of an update: 48 bits of time and 80 random bits.
///
/// Ids sort by creation, which keeps a B-tree of them growing at one end, and nobody
/// guesses another's.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StatusId(Box<str>);

/// Why a text is not a status id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a status id is `upd_` and 26 letters and digits")]
pub struct InvalidStatusId;

// === impl StatusId ===

impl StatusId {
    /// Makes an id for an update asked for `now`.
    ///
    /// # Errors
    ///
    /// The operating system has no randomness to give.
    pub fn generate(now: Timestamp) -> Result<Self, getrandom::Error> {
        let mut random = [0; 16];
        getrandom::fill(&mut random[6..])?;
        let entropy = u128::from_be_bytes(random);
        Ok(Self::from_bits(u128::from(now.millis()) << 80 | entropy))
    }

    /// Spells 128 bits; the uppermost two are the first digit's alone.
    pub(super) fn from_bits(bits: u128) -> Self {
        let digit = |place: u32| {
            let index = usize::try_from(bits >> (5 * place) & 31).expect("five bits");
            char::from(ALPHABET[index])
        };
        let digits = (0..26).rev().map(digit);
        Self(PREFIX.chars().chain(digits).collect())
    }

    /// Reads an id.
    ///
    /// # Errors
    ///
    /// [`InvalidStatusId`] for everything that [`StatusId::generate`] cannot have made.
    pub fn parse(text: &str) -> Result<Self, InvalidStatusId> {
        let digits = text.strip_prefix(PREFIX).ok_or(InvalidStatusId)?;
        let known = digits.bytes().all(|byte| ALPHABET.contains(&byte));
        // 128 bits leave three of the first digit's five unused.
        let fits = matches!(digits.as_bytes(), [b'0'..=b'7', ..]) && digits.len() == DIGITS;
        if known && fits {
            Ok(Self(text.into()))
        } else {
            Err(InvalidStatusId)
        }
    }

    /// Returns the id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StatusId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_ids_sort_by_time_and_parse_back() {
        let ids: Vec<_> = [0, 1, 1_800_000_000_000]
            .map(|millis| StatusId::generate(Timestamp::from_millis(millis)).unwrap())
            .into();
        assert!(ids.is_sorted());
        for id in &ids {
            assert_eq!(StatusId::parse(id.as_str()).as_ref(), Ok(id));
        }
        for wrong in [
            "",
            "upd_",
            "job_01j00000000000000000000000",
            "upd_01J0000000000000000000000u",
            "upd_80000000000000000000000000",
        ] {
            assert_eq!(StatusId::parse(wrong), Err(InvalidStatusId));
        }
    }
}
