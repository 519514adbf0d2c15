//! How slowly a client may read.
//!
//! A [`WriteRate`] watches one connection, or one stream of HTTP/2, while bytes wait for the
//! client. Time counts only then, so a slow upstream or a pause between two requests is never the
//! client's fault. A wait ends in two cases:
//!
//! * *stalled*: the client has taken nothing for [`Limits::write`](super::Limits::write). The
//!   kernel reports what the client of a connection has taken in steps of up to [`STEP_BYTES`],
//!   so a connection has as long as a step takes at the minimum rate, if that is longer;
//! * *slow*: it takes fewer bytes a second than
//!   [`Limits::write_rate_min`](super::Limits::write_rate_min). The client has a credit of bytes.
//!   Waiting uses it up at the minimum rate, and what the client takes refills it. The credit of
//!   a new client lasts for twice `Limits::write`.
//!
//! So a download at any speed above the minimum is complete, and a client that takes one byte from
//! time to time does not hold a connection forever.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::SendStream;
use tokio::time::{Instant, Sleep};

use super::Limits;
use crate::telemetry::Metrics;

/// How many bytes the client of a connection takes, at most, before the kernel takes more bytes
/// from us: the bytes that the kernel holds for the client, and one piece.
const STEP_BYTES: u64 = 32 << 10;
/// The rate at which a step is expected if there is no minimum, in bytes a second. A slower client
/// looks like a client that reads nothing.
const STEP_RATE_MIN: u64 = 100;

/// Watches how fast a client reads.
#[derive(Debug)]
pub(super) struct WriteRate {
    metrics: Arc<Metrics>,
    stall: Duration,
    /// In bytes a second; 0 means no minimum.
    rate_min: u64,
    /// In thousandths of a byte, so that milliseconds count.
    credit: u64,
    waiting: Option<Waiting>,
    timer: Option<Pin<Box<Sleep>>>,
}

/// A wait that has not ended.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// When the client last took something, or the wait began.
    since: Instant,
    /// The time up to which the credit has been charged.
    charged: Instant,
}

/// Why a client is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TooSlow {
    /// It has taken nothing for too long.
    Stalled,
    /// It takes fewer bytes a second than the minimum.
    Slow,
}

// === impl WriteRate ===

impl WriteRate {
    /// Watches a connection.
    pub(super) fn of_connection(limits: &Limits, metrics: &Arc<Metrics>) -> Self {
        let rate = u64::from(limits.write_rate_min).max(STEP_RATE_MIN);
        let step = Duration::from_millis(STEP_BYTES * 1000 / rate);
        let limits = Limits {
            write: limits.write.max(step),
            ..limits.clone()
        };
        Self::of_stream(&limits, metrics)
    }

    /// Watches a stream of HTTP/2, whose client says exactly what it has taken.
    pub(super) fn of_stream(limits: &Limits, metrics: &Arc<Metrics>) -> Self {
        let mut write_rate = Self {
            metrics: Arc::clone(metrics),
            stall: limits.write,
            rate_min: limits.write_rate_min.into(),
            credit: 0,
            waiting: None,
            timer: None,
        };
        write_rate.credit = write_rate.credit_max();
        write_rate
    }

    fn credit_max(&self) -> u64 {
        let seconds = self.stall.as_secs().max(1);
        self.rate_min * 2 * seconds * 1000
    }

    /// Called when the client has taken bytes.
    pub(super) fn took(&mut self, bytes: usize) {
        if let Some(waiting) = self.waiting.take() {
            self.charge(waiting, Instant::now());
        }
        let refilled = self.credit.saturating_add(bytes as u64 * 1000);
        self.credit = refilled.min(self.credit_max());
    }

    /// Takes the credit for the time up to now.
    fn charge(&mut self, waiting: Waiting, now: Instant) {
        let waited = now.saturating_duration_since(waiting.charged);
        let waited = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        let used = waited.saturating_mul(self.rate_min);
        self.credit = self.credit.saturating_sub(used);
    }

    /// Called when a write has to wait for the client. Is ready when the client is too slow;
    /// wakes the task then.
    pub(super) fn poll_too_slow(&mut self, cx: &mut Context<'_>) -> Poll<TooSlow> {
        loop {
            let now = Instant::now();
            let mut waiting = self.waiting.unwrap_or(Waiting {
                since: now,
                charged: now,
            });
            self.charge(waiting, now);
            waiting.charged = now;
            self.waiting = Some(waiting);
            let stalls = waiting.since + self.stall;
            if now >= stalls {
                return Poll::Ready(self.count(TooSlow::Stalled));
            }
            if self.rate_min > 0 && self.credit == 0 {
                return Poll::Ready(self.count(TooSlow::Slow));
            }
            let lasts = match self.credit.div_ceil(self.rate_min.max(1)) {
                _ if self.rate_min == 0 => self.stall,
                milliseconds => Duration::from_millis(milliseconds),
            };
            let due = stalls.min(now + lasts.min(self.stall));
            let timer = self
                .timer
                .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
            if timer.deadline() != due {
                timer.as_mut().reset(due);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Waits until a stream of HTTP/2 may send, at most `wanted` bytes. Returns how many.
    ///
    /// # Errors
    ///
    /// `TimedOut` when the client is too slow, `ConnectionReset` when it has ended the stream.
    pub(super) async fn capacity(
        &mut self,
        stream: &mut SendStream<Bytes>,
        wanted: usize,
    ) -> io::Result<usize> {
        stream.reserve_capacity(wanted);
        // The capacity may be there already; then it does not change, and polling would wait.
        let capacity = stream.capacity();
        if capacity > 0 {
            return Ok(capacity);
        }
        let opened = std::future::poll_fn(|cx| match stream.poll_capacity(cx) {
            Poll::Ready(opened) => Poll::Ready(Ok(opened)),
            Poll::Pending => self.poll_too_slow(cx).map(Err),
        });
        match opened.await {
            Ok(Some(Ok(capacity))) => Ok(capacity),
            Ok(_) => Err(io::ErrorKind::ConnectionReset.into()),
            Err(reason) => Err(reason.into()),
        }
    }

    fn count(&self, reason: TooSlow) -> TooSlow {
        let slow = &self.metrics.slow_clients;
        slow.with_label_values(&[reason.as_str()]).inc();
        reason
    }
}

// === impl TooSlow ===

impl TooSlow {
    /// Returns the name in the metric.
    fn as_str(self) -> &'static str {
        match self {
            Self::Stalled => "stalled",
            Self::Slow => "slow",
        }
    }
}

impl From<TooSlow> for io::Error {
    fn from(reason: TooSlow) -> Self {
        let why = match reason {
            TooSlow::Stalled => "the client reads nothing",
            TooSlow::Slow => "the client reads too slowly",
        };
        Self::new(io::ErrorKind::TimedOut, why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_rate(rate_min: u32) -> WriteRate {
        let limits = Limits {
            write: Duration::from_secs(10),
            write_rate_min: rate_min,
            ..Limits::default()
        };
        WriteRate::of_stream(&limits, &Arc::new(Metrics::new()))
    }

    /// Waits until the client is closed, or for `seconds`.
    async fn wait(write_rate: &mut WriteRate, seconds: u64) -> Option<TooSlow> {
        let slow = std::future::poll_fn(|cx| write_rate.poll_too_slow(cx));
        tokio::time::timeout(Duration::from_secs(seconds), slow)
            .await
            .ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_closed_in_time_and_counted() {
        for rate_min in [0, 100] {
            let mut write_rate = write_rate(rate_min);
            assert_eq!(wait(&mut write_rate, 9).await, None);
            assert_eq!(wait(&mut write_rate, 2).await, Some(TooSlow::Stalled));
            let counted = write_rate
                .metrics
                .slow_clients
                .with_label_values(&["stalled"]);
            assert_eq!(counted.get(), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_above_the_minimum_is_never_closed_and_one_below_it_is() {
        // Bursts of nine seconds.
        for (bytes, is_closed) in [(910, false), (890, true)] {
            let mut write_rate = write_rate(100);
            let mut closed = None;
            for _burst in 0..1000 {
                closed = closed.or(wait(&mut write_rate, 9).await);
                write_rate.took(bytes);
            }
            assert_eq!(closed, is_closed.then_some(TooSlow::Slow), "{bytes}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_has_time_for_one_step_at_the_minimum_rate() {
        for (rate_min, seconds) in [(0, 327), (100, 327), (1000, 32), (100_000, 30)] {
            let limits = Limits {
                write_rate_min: rate_min,
                ..Limits::default()
            };
            let mut write_rate = WriteRate::of_connection(&limits, &Arc::new(Metrics::new()));
            assert_eq!(wait(&mut write_rate, seconds - 1).await, None, "{rate_min}");
            assert_eq!(
                wait(&mut write_rate, 3).await,
                Some(TooSlow::Stalled),
                "{rate_min}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn time_between_two_waits_does_not_count() {
        let mut write_rate = write_rate(100);
        for _response in 0..1000 {
            assert_eq!(wait(&mut write_rate, 5).await, None);
            write_rate.took(600);
            tokio::time::advance(Duration::from_secs(3600)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_cannot_save_credit_for_hours() {
        let mut write_rate = write_rate(100);
        write_rate.took(1 << 30);
        let mut waits = 0;
        while wait(&mut write_rate, 9).await.is_none() {
            write_rate.took(1);
            waits += 1;
        }
        assert!(waits <= 3, "{waits}");
    }
}
