//! Times in records and in the queue: milliseconds, printed as RFC 3339.
//!
//! A time decides when an update is due, and is shown to people. It never decides which of two
//! builds is newer; the fence does.
//!
//! Source: RFC 3339 §5.6.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

use crate::telemetry::logging;

/// Milliseconds after the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

/// Why a text is not a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a date (`2027-01-31`) or a time (`2027-01-31T12:00:00Z`) after 1970")]
pub struct InvalidTimestamp(Box<str>);

// === impl Timestamp ===

impl Timestamp {
    /// Makes a time of milliseconds after the Unix epoch.
    #[must_use]
    pub fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Converts a system time. A time before 1970 becomes 1970.
    #[must_use]
    pub fn of(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(millis(since))
    }

    /// Returns the milliseconds after the Unix epoch.
    #[must_use]
    pub fn millis(self) -> u64 {
        self.0
    }

    /// Returns the time that is `wait` later.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(millis(wait)))
    }

    /// Returns the time that is `wait` earlier.
    #[must_use]
    pub fn before(self, wait: Duration) -> Self {
        Self(self.0.saturating_sub(millis(wait)))
    }

    /// Reads a date, which means its first moment in UTC, or a time.
    ///
    /// ```
    /// use waypost::deploy::Timestamp;
    ///
    /// let midnight = Timestamp::parse("2027-01-31")?;
    /// assert_eq!(midnight.to_string(), "2027-01-31T00:00:00.000Z");
    /// # Ok::<(), waypost::deploy::InvalidTimestamp>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidTimestamp`] for any other text, also for a day that does not exist.
    pub fn parse(text: &str) -> Result<Self, InvalidTimestamp> {
        let moment = || {
            let time = match text.parse::<jiff::Timestamp>() {
                Ok(time) => time,
                // From a text with a time, jiff would read the date and ignore the time.
                Err(_) if text.len() == "2027-01-31".len() => {
                    let date: jiff::civil::Date = text.parse().ok()?;
                    date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp()
                }
                Err(_) => return None,
            };
            u64::try_from(time.as_millisecond()).ok()
        };
        moment()
            .map(Self)
            .ok_or_else(|| InvalidTimestamp(text.chars().take(64).collect()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = UNIX_EPOCH + Duration::from_millis(self.0);
        f.write_str(&logging::timestamp(time))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_time_parses_back() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
        ] {
            let time = Timestamp::from_millis(millis);
            assert_eq!(time.to_string(), text);
            assert_eq!(Timestamp::parse(text), Ok(time));
        }
    }

    #[test]
    fn dates_that_do_not_exist_are_rejected() {
        for text in [
            "2027-02-29",
            "2027-04-31",
            "2027-13-01",
            "1969-12-31",
            "tomorrow",
            "2027-01-31T25:00:00Z",
            "2027-01-31T12:00:00",
            "",
        ] {
            assert!(Timestamp::parse(text).is_err(), "{text}");
        }
    }
}
