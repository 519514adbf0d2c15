//! The source of wall-clock time.
//!
//! Builds and tests must give the same result each time, so nothing below `cli/` reads the
//! system's clock: callers pass in a [`Clock`]. Durations inside one process are measured with
//! [`std::time::Instant`], which setting the clock does not change.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A source of wall-clock time.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The clock of the machine.
    System,
    /// A fixed time, for tests and repeatable builds.
    Fixed(SystemTime),
}

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
