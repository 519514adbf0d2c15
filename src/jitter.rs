//! Random waits: many processes that began together must not act together.

use std::time::Duration;

/// Returns a random part of a time: from nothing to all of it.
#[must_use]
pub fn part_of(time: Duration) -> Duration {
    time.mul_f64(random())
}

/// Returns a random time from half of a pause to all of it.
#[must_use]
pub fn pause(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + random() / 2.0)
}

/// Returns a number from 0 to 1.
fn random() -> f64 {
    let mut bytes = [0; 4];
    // Without random bytes nothing is spread.
    match getrandom::fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 0.5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_within_its_bounds() {
        let time = Duration::from_secs(8);
        for _ in 0..1000 {
            assert!(part_of(time) <= time);
            assert!((time / 2..=time).contains(&pause(time)));
        }
    }
}
