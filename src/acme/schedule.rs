//! When a certificate is renewed, and when a failed order is tried again.
//!
//! The authority suggests a window (ARI), and a point in it is chosen. Without a suggestion, a
//! certificate is renewed when a third of its life is left, or half if it lives less than ten
//! days, as the integration guide of Let's Encrypt asks. The times of many certificates are spread.
//! The point depends on the certificate alone: it is the same after a restart.
//!
//! All functions take the time as an argument. Times are seconds after the Unix epoch.
//!
//! Source: RFC 9773 §4.2.

use std::time::Duration;

use super::leaf::Life;
use crate::digest::Digest;

/// A certificate with a shorter life is renewed when half of it is left.
const SHORT_LIFE_SECONDS: u64 = 10 * 86_400;
/// The times of renewals are spread over this part of a life.
const SPREAD: u64 = 20;
/// A window that the authority suggests never delays a renewal beyond this part of a life before
/// the end: an authority may be wrong.
const LATEST: u64 = 10;

/// A time that is later than this from now was noted while the clock was wrong. It is ignored, so
/// that a clock that was wrong once stops nothing. Smaller corrections of a clock are usual.
pub(super) const CLOCK_STEP_SECONDS: u64 = 3600;

/// The window in which an authority suggests a renewal (RFC 9773 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Returns when a certificate is renewed without a suggestion of its authority.
#[must_use]
pub fn renewal(life: Life) -> u64 {
    renewal_at(life, None)
}

/// Returns when a certificate is renewed.
pub(super) fn renewal_at(life: Life, window: Option<Window>) -> u64 {
    let Life {
        not_before,
        not_after,
        seed,
    } = life;
    let life = not_after.saturating_sub(not_before);
    match window {
        Some(Window { start, end }) => {
            let latest = not_after - life / LATEST;
            let point = start.saturating_add(part_of(end.saturating_sub(start), seed));
            point.min(latest)
        }
        None => {
            let left = match life < SHORT_LIFE_SECONDS {
                true => life / 2,
                false => life / 3,
            };
            // Earlier, never later.
            not_after - left - part_of(life / SPREAD, seed)
        }
    }
}

/// Returns how long a name waits after its failures in a row.
pub(super) fn wait_after(failures: u32, retries: &[Duration]) -> Duration {
    let at = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX);
    let wait = retries.get(at).or_else(|| retries.last());
    wait.copied().unwrap_or(Duration::from_secs(86_400))
}

/// Returns whether a time was noted while the clock was wrong.
pub(super) fn is_of_wrong_clock(noted: u64, now: u64) -> bool {
    noted > now.saturating_add(CLOCK_STEP_SECONDS)
}

/// Returns a number that depends on a text only, the same in every process.
pub(super) fn seed_of(text: &str) -> u64 {
    let digest = Digest::of(text.as_bytes());
    let [a, b, c, d, e, f, g, h, ..] = *digest.as_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// Returns the part of a length that a seed chooses.
pub(super) fn part_of(length: u64, seed: u64) -> u64 {
    let part = u128::from(length) * u128::from(seed) / (u128::from(u64::MAX) + 1);
    u64::try_from(part).expect("less than the length")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;
    const BEGIN: u64 = 1_700_000_000;

    fn life(days: u64, serial: &str) -> Life {
        Life {
            not_before: BEGIN,
            not_after: BEGIN + days * DAY,
            seed: seed_of(serial),
        }
    }

    #[test]
    fn a_third_of_the_life_is_left_or_half_of_a_short_one() {
        for n in 0..200 {
            let serial = format!("{n:x}");
            for (days, earliest, latest) in [(90, 55, 60), (45, 27, 30), (6, 2, 3)] {
                let at = renewal(life(days, &serial)) - BEGIN;
                assert!(
                    (earliest * DAY..=latest * DAY).contains(&at),
                    "{days} {serial}: {at}"
                );
            }
        }
    }

    #[test]
    fn renewals_are_spread_over_the_window_of_the_authority() {
        let window = Window {
            start: BEGIN + 20 * DAY,
            end: BEGIN + 22 * DAY,
        };
        let mut by_half = [0; 2];
        for n in 0..1000 {
            let at = renewal_at(life(45, &format!("{n:x}")), Some(window));
            assert!((window.start..window.end).contains(&at));
            by_half[usize::from(at >= BEGIN + 21 * DAY)] += 1;
        }
        assert!(by_half.iter().all(|count| *count > 350), "{by_half:?}");
        // A window in the past: at once (a revoked certificate).
        let past = Window {
            start: BEGIN - DAY,
            end: BEGIN,
        };
        assert!(renewal_at(life(45, "a"), Some(past)) <= BEGIN);
        // A window after the end, or the wrong way round, never lets a certificate expire.
        for (start, end) in [(100, 120), (120, 100), (u64::MAX / DAY - 40_000, 0)] {
            let window = Window {
                start: BEGIN + start * DAY,
                end: BEGIN + end * DAY,
            };
            let at = renewal_at(life(45, "a"), Some(window));
            assert_eq!(at, BEGIN + 45 * DAY - 45 * DAY / 10);
        }
    }

    #[test]
    fn a_certificate_is_never_late_before_its_renewal_whatever_its_life_is() {
        for (days, left_hours) in [(365, 168), (90, 168), (45, 108), (6, 14)] {
            let life = life(days, "a");
            let late_at = life.late_at();
            assert_eq!((life.not_after - late_at) / 3600, left_hours, "{days}");
            let never = Window {
                start: u64::MAX,
                end: u64::MAX,
            };
            assert!(renewal(life) < late_at && renewal_at(life, Some(never)) <= late_at);
        }
    }

    #[test]
    fn failures_wait_longer_and_then_daily() {
        let retries = [60, 600, 6000, 86_400].map(Duration::from_secs);
        let waits: Vec<_> = (1..7).map(|n| wait_after(n, &retries).as_secs()).collect();
        assert_eq!(waits, [60, 600, 6000, 86_400, 86_400, 86_400]);
        // A week with an authority that rejects a name: ten orders, and three in the first hour.
        let (mut at, mut failures, mut orders) = (0, 0, Vec::new());
        while at < 7 * DAY {
            orders.push(at);
            failures += 1;
            at += wait_after(failures, &retries).as_secs();
        }
        assert!(orders.len() <= 10, "{orders:?}");
        assert_eq!(orders.iter().filter(|at| **at < 3600).count(), 3);
    }
}
