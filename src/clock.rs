//! Where the time comes from.
//!
//! Builds and tests must repeat, so nothing below `cli/` asks the operating system
//! what time it is: a [`Clock`] is handed in. Durations inside one process are
//! measured with [`std::time::Instant`], which nobody can set back.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A source of wall-clock time.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The machine's own clock.
    System,
    /// A clock that stands still, for tests and repeatable builds.
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
        reason = "the one place that asks the system"
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
