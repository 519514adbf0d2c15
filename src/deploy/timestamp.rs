//! Times as records and the queue keep them: milliseconds, printed as RFC 3339.
//!
//! Times of day decide when something is due and what a person reads, never which of
//! two builds is newer: that is the fence's business.
//!
//! Sources: RFC 3339 §5.6; the day arithmetic is the proleptic Gregorian calendar in
//! years that begin on 1 March, so that the leap day is the last day of a year.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

/// Days from 1 March of the year 0 to 1 January 1970.
const EPOCH_DAYS: u64 = 719_468;
/// The calendar repeats after 400 years.
const ERA_DAYS: u64 = 146_097;
const DAY_MILLIS: u64 = 86_400_000;

/// Milliseconds after the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

/// Why a text is not a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a date (`2027-01-31`) or a UTC time (`2027-01-31T12:00:00Z`)")]
pub struct InvalidTimestamp(Box<str>);

// === impl Timestamp ===

impl Timestamp {
    /// Takes milliseconds after the Unix epoch.
    #[must_use]
    pub fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Converts a time of day; what lies before 1970 is 1970.
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

    /// Returns this time and some more.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(millis(wait)))
    }

    /// Returns how long ago `earlier` was; nothing when it lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Returns this time less some.
    #[must_use]
    pub fn before(self, wait: Duration) -> Self {
        Self(self.0.saturating_sub(millis(wait)))
    }

    /// Reads what people write: a date, meaning its first moment in UTC, or a UTC time.
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
    /// [`InvalidTimestamp`] for anything else, also for a day that is in no calendar.
    pub fn parse(text: &str) -> Result<Self, InvalidTimestamp> {
        parse(text).ok_or_else(|| InvalidTimestamp(text.chars().take(64).collect()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.0 / DAY_MILLIS);
        let millis = self.0 % DAY_MILLIS;
        let (hour, minute) = (millis / 3_600_000, millis / 60_000 % 60);
        let (second, rest) = (millis / 1000 % 60, millis % 1000);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{rest:03}Z"
        )
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

/// Converts days after the Unix epoch to year, month and day.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + EPOCH_DAYS;
    let (era, day_of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Five months from March on have 153 days, whichever five they are.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// Converts a day from 1970 on to days after the Unix epoch.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if year < 1970 || !(1..=12).contains(&month) || day == 0 {
        return None;
    }
    let year_from_march = year - u64::from(month <= 2);
    let month_from_march = (month + 9) % 12;
    let (era, year_of_era) = (year_from_march / 400, year_from_march % 400);
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (era * ERA_DAYS + day_of_era).checked_sub(EPOCH_DAYS)?;
    // 31 April is 1 May, and then it is not what was written.
    (civil(days) == (year, month, day)).then_some(days)
}

fn parse(text: &str) -> Option<Timestamp> {
    let (date, time) = match text.split_once(['T', ' ']) {
        None => (text, None),
        Some((date, time)) => (date, Some(time.strip_suffix(['Z', 'z'])?)),
    };
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let midnight = days(year, month, day)? * DAY_MILLIS;
    let Some(time) = time else {
        return Some(Timestamp(midnight));
    };
    let whole = time
        .split_once('.')
        .map_or(time, |(whole, _fraction)| whole);
    let [hour, minute, second] = numbers(whole, ':', [2, 2, 2])?;
    let in_range = hour < 24 && minute < 60 && second < 60;
    in_range.then(|| Timestamp(midnight + ((hour * 60 + minute) * 60 + second) * 1000))
}

/// Reads three numbers with exactly these many digits each.
fn numbers(text: &str, separator: char, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; 3];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next().filter(|part| part.len() == digits)?;
        if !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments_print_as_rfc_3339() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(Timestamp::from_millis(millis).to_string(), text);
        }
    }

    #[test]
    fn every_day_of_four_centuries_parses_back() {
        for day in 0..ERA_DAYS {
            let time = Timestamp::from_millis(day * DAY_MILLIS);
            assert_eq!(Timestamp::parse(&time.to_string()), Ok(time));
        }
    }

    #[test]
    fn days_in_no_calendar_are_refused() {
        for text in [
            "2027-02-29",
            "2027-04-31",
            "2027-13-01",
            "2027-00-10",
            "2027-1-1",
            "1969-12-31",
            "tomorrow",
            "2027-01-31T25:00:00Z",
            "2027-01-31T12:00:00+01:00",
            "",
        ] {
            assert!(Timestamp::parse(text).is_err(), "{text}");
        }
    }
}
