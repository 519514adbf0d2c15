//! The source of wall-clock time.
//!
//! Builds and tests must give the same result each time, so nothing below `cli/` reads the
//! system's clock: callers pass in a [`Clock`]. Durations inside one process are measured with
//! [`std::time::Instant`], which setting the clock does not change.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::civil::Date;
use jiff::tz::TimeZone;

/// A source of wall-clock time.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The clock of the machine.
    System,
    /// A fixed time, for tests and repeatable builds.
    Fixed(SystemTime),
}

/// A day in UTC. Its text is a date: `2027-01-31` (RFC 3339 §5.6, `full-date`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(Date);

/// Why a text is not a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a day is a date like 2027-01-31")]
pub struct InvalidDay;

// === impl Clock ===

impl Clock {
    /// Returns a clock that always shows this many seconds after the Unix epoch.
    #[must_use]
    pub fn fixed_at(unix_seconds: u64) -> Self {
        Self::Fixed(UNIX_EPOCH + Duration::from_secs(unix_seconds))
    }

    /// Returns the time of day.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the system's clock"
    )]
    pub fn now(&self) -> SystemTime {
        match self {
            Self::System => SystemTime::now(),
            Self::Fixed(time) => *time,
        }
    }

    /// Returns the time of day as whole seconds after the Unix epoch; 0 before it.
    #[must_use]
    pub fn unix_seconds(&self) -> u64 {
        unix_seconds(self.now())
    }
}

/// Converts a time to whole seconds after the Unix epoch; 0 before it.
#[must_use]
pub fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

// === impl Day ===

impl Day {
    /// Returns the day of a time. A time outside the range of dates gives 1970-01-01.
    #[must_use]
    pub fn of(time: SystemTime) -> Self {
        let time = jiff::Timestamp::try_from(time).unwrap_or_default();
        Self(time.to_zoned(TimeZone::UTC).date())
    }

    /// Reads a day.
    ///
    /// # Errors
    ///
    /// [`InvalidDay`] for any other text, also for a day that does not exist.
    pub fn parse(text: &str) -> Result<Self, InvalidDay> {
        // jiff would read the date of a longer text and ignore the rest.
        if text.len() != "2027-01-31".len() {
            return Err(InvalidDay);
        }
        text.parse().map(Self).map_err(|_not_a_date| InvalidDay)
    }

    /// Returns the day so many days earlier, or the first day that there is.
    #[must_use]
    pub fn before(self, days: u32) -> Self {
        let span = jiff::Span::new().days(i64::from(days));
        Self(self.0.checked_sub(span).unwrap_or(Date::MIN))
    }

    /// Returns how many days there are from `first` to this one; 0 if it is not later.
    #[must_use]
    pub fn since(self, first: Self) -> u32 {
        let days = first.0.until(self.0).map_or(0, |span| span.get_days());
        u32::try_from(days).unwrap_or_default()
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_a_date_in_utc() {
        let last_second = Clock::fixed_at(1_795_391_999).now();
        let day = Day::of(last_second);
        assert_eq!(day.to_string(), "2026-11-22");
        assert_eq!(
            Day::of(last_second + Duration::from_secs(1)).to_string(),
            "2026-11-23"
        );
        assert_eq!(Day::parse("2026-11-22"), Ok(day));
        assert_eq!(day.before(22).to_string(), "2026-10-31");
        assert_eq!(
            (day.since(day.before(22)), day.before(1).since(day)),
            (22, 0)
        );
        for wrong in [
            "",
            "2026-11-31",
            "2026-11-22T00:00:00Z",
            "20261122",
            "today",
        ] {
            assert_eq!(Day::parse(wrong), Err(InvalidDay), "{wrong}");
        }
    }
}
