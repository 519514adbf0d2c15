//! The public handle of an update.
//!
//! Source: the ULID specification (128 bits in Crockford's base 32, at
//! <https://github.com/ulid/spec>). The digits are written in lower case.

use std::fmt;

use ulid::Ulid;

use super::Timestamp;

const PREFIX: &str = "upd_";

/// The public handle of an update: `upd_` and a ULID, which is 48 bits of time in
/// milliseconds and 80 random bits.
///
/// Ids sort by creation, so a B-tree of them grows at one end. The random bits make an id
/// impossible to guess.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StatusId(Box<str>);

/// Why a text is not a status id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a status id is `upd_` and 26 letters and digits")]
pub struct InvalidStatusId;

// === impl StatusId ===

impl StatusId {
    /// Makes an id for an update that was triggered `now`.
    ///
    /// # Errors
    ///
    /// The operating system has no random bytes to give.
    pub fn generate(now: Timestamp) -> Result<Self, getrandom::Error> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)?;
        // A ULID takes the lower 80 bits.
        let ulid = Ulid::from_parts(now.millis(), u128::from_be_bytes(random));
        Ok(Self::of(ulid))
    }

    fn of(ulid: Ulid) -> Self {
        let mut digits = [0; ulid::ULID_LEN];
        let digits = ulid.array_to_str(&mut digits);
        digits.make_ascii_lowercase();
        Self(format!("{PREFIX}{digits}").into())
    }

    /// Reads an id.
    ///
    /// # Errors
    ///
    /// [`InvalidStatusId`] for everything that [`StatusId::generate`] cannot have made; so an
    /// update has one id, although ULIDs may be read in either case.
    pub fn parse(text: &str) -> Result<Self, InvalidStatusId> {
        let digits = text.strip_prefix(PREFIX).ok_or(InvalidStatusId)?;
        let ulid = Ulid::from_string(digits).map_err(|_invalid| InvalidStatusId)?;
        let id = Self::of(ulid);
        if id.as_str() == text {
            Ok(id)
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
    }

    #[test]
    fn ids_of_the_same_millisecond_are_different() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let [one, other] = [(); 2].map(|()| StatusId::generate(now).unwrap());
        assert_ne!(one, other);
        // Ten digits of time, then sixteen of 80 random bits.
        assert_eq!(one.as_str()[..14], other.as_str()[..14]);
    }

    #[test]
    fn other_texts_are_rejected() {
        for wrong in [
            "",
            "upd_",
            "job_01j00000000000000000000000",
            // Not a digit of base 32, in upper case, and over 128 bits.
            "upd_01j0000000000000000000000u",
            "upd_01J00000000000000000000000",
            "upd_80000000000000000000000000",
            "upd_01j000000000000000000000000",
            "upd_01j0000000000000000000000",
        ] {
            assert_eq!(StatusId::parse(wrong), Err(InvalidStatusId), "{wrong}");
        }
    }
}
