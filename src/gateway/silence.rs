//! The timeout of an upstream that sends nothing.
//!
//! Only the response says how long an upstream may be silent: a stream of events may be silent for
//! hours, another response may not. pingora sets its timeout before the response has come. So
//! pingora gets the longer one, and [`Silence`] enforces the shorter one. It is polled while
//! pingora waits for the upstream: at the same time pingora reads from the client, to notice that
//! the client closes the connection, and that read is our code.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Context;
use std::time::Duration;

use pingora::ErrorType;
use tokio::time::{Instant, Sleep};

/// The error of an upstream that has been silent for too long.
pub(super) const SILENT: ErrorType = ErrorType::Custom("UpstreamSilent");

/// Detects an upstream that has been silent for too long.
#[derive(Debug)]
pub(super) struct Silence {
    /// In milliseconds.
    limit: AtomicU64,
    /// When the wait began, or the upstream sent something.
    since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

// === impl Silence ===

impl Silence {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit: AtomicU64::new(milliseconds(limit)),
            since: None,
            timer: None,
        }
    }

    /// Sets another limit.
    pub(super) fn allow(&self, limit: Duration) {
        self.limit.store(milliseconds(limit), Ordering::Relaxed);
    }

    /// Called when something is sent to the client: the upstream was not silent.
    pub(super) fn note_activity(&mut self) {
        self.since = None;
    }

    /// Called while pingora waits for the upstream.
    ///
    /// Returns whether it has been silent for too long. If not, the task is woken when it will
    /// have been.
    pub(super) fn poll_too_long(&mut self, cx: &mut Context<'_>) -> bool {
        let limit = Duration::from_millis(self.limit.load(Ordering::Relaxed));
        let deadline = *self.since.get_or_insert_with(Instant::now) + limit;
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        // Reset only when it fires too early or would fire too late: most responses do not change
        // the timer wheel.
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        while timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return true;
            }
            timer.as_mut().reset(deadline);
        }
        false
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    /// Waits until the upstream has been silent for too long; returns after how many seconds.
    async fn ends_after(silence: &mut Silence) -> u64 {
        let begin = Instant::now();
        std::future::poll_fn(|cx| match silence.poll_too_long(cx) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
        begin.elapsed().as_secs()
    }

    async fn is_silent_for(silence: &mut Silence, seconds: u64) -> bool {
        let time = Duration::from_secs(seconds);
        tokio::time::timeout(time, ends_after(silence))
            .await
            .is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn silence_counts_from_the_last_activity() {
        let mut silence = Silence::new(Duration::from_secs(10));
        assert!(is_silent_for(&mut silence, 9).await);
        silence.note_activity();
        assert_eq!(ends_after(&mut silence).await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_can_change_in_both_directions() {
        let mut silence = Silence::new(Duration::from_secs(10));
        assert!(is_silent_for(&mut silence, 5).await);
        silence.allow(Duration::from_secs(60));
        assert_eq!(ends_after(&mut silence).await, 55);
        silence.note_activity();
        silence.allow(Duration::from_secs(10));
        assert_eq!(ends_after(&mut silence).await, 10);
    }
}
