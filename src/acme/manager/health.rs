//! The metrics of all names, and the health of the whole.

use super::Manager;
use crate::acme::failure::Cause;
use crate::acme::metrics::DAYS;

/// How often certificates are counted by the days that are left.
const COUNT_SECONDS: u64 = 15;

// === impl Manager ===

impl Manager {
    /// Sets the metrics, and reports the health of the whole.
    pub(super) fn count(&mut self, now: u64) {
        if now < self.state.counted_at + COUNT_SECONDS && self.state.counted_at > 0 {
            return;
        }
        self.state.counted_at = now;
        let set = |gauge: &prometheus::IntGauge, value: usize| {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        let mut by_days = [0_usize; DAYS.len()];
        let (mut missing, mut failing, mut late, mut first) = (0, 0, 0, u64::MAX);
        for (name, entry) in &self.state.entries {
            failing += usize::from(entry.failures > 0);
            let held = self.ordered.exactly(name);
            match held {
                None => missing += 1,
                Some(held) => {
                    let left = held.life.not_after.saturating_sub(now) / 86_400;
                    first = first.min(held.life.not_after);
                    late += usize::from(held.life.late_at() <= now);
                    for (count, days) in by_days.iter_mut().zip(DAYS) {
                        *count += usize::from(left <= days);
                    }
                }
            }
        }
        let metrics = &self.metrics;
        set(&metrics.missing, missing);
        set(&metrics.failing, failing);
        set(&metrics.late, late);
        let due = self.state.queue.due(now);
        set(&metrics.queue, due);
        for (count, days) in by_days.iter().zip(DAYS) {
            let days = days.to_string();
            set(&metrics.days_left.with_label_values(&[&days]), *count);
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "seconds stay exact for 285 million years"
        )]
        metrics
            .expires_at
            .set(if first == u64::MAX { 0.0 } else { first as f64 });
        if let Some(authority) = self.authorities.iter().next() {
            set(&metrics.budget, authority.budget().left(now));
        }
        let is_down = self
            .authorities
            .iter()
            .all(|authority| authority.budget().failures() > 0);
        match &self.state.trouble {
            Some(trouble)
                if is_down
                    || trouble.cause == Cause::Ourselves
                    || !self.state.unwritten.is_empty() =>
            {
                let text = format!("{trouble}; {due} names wait");
                self.part.fail(text);
            }
            _ if self.state.unwritten.is_empty() => self.part.recover(),
            _ => {}
        }
    }
}
