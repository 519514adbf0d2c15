//! The minimum rate of a request body.
//!
//! A body is read in intervals of [`Limits::body`]. An interval without a byte, or with
//! fewer bytes than [`Limits::body_rate_min`] requires, ends the request. While the process stops,
//! an interval is at most a quarter of [`Limits::drain`]: a client that sends nothing does not hold
//! the process until the end of the drain.
//!
//! [`Limits::body`]: super::Limits::body
//! [`Limits::body_rate_min`]: super::Limits::body_rate_min
//! [`Limits::drain`]: super::Limits::drain

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::drain::Drain;
use super::limits::Limits;

/// A client may be silent for one fourth of the drain.
const DRAIN_SHARE: u32 = 4;

/// Detects a request body that arrives too slowly.
#[derive(Debug)]
pub(super) struct BodyRate {
    limits: Arc<Limits>,
    drain: Drain,
    /// Bytes that have arrived in the current interval.
    bytes: u64,
    /// Whether the last read had to wait. If not, the gateway has not read since, for example
    /// because the upstream accepts no more bytes. Then the client is not the cause.
    is_waiting: bool,
    /// Created when a read waits for the first time.
    waiting: Option<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    end: Pin<Box<Sleep>>,
    length: Duration,
    /// `None` once the drain has begun.
    draining: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

// === impl BodyRate ===

impl BodyRate {
    pub(super) fn new(limits: Arc<Limits>, drain: Drain) -> Self {
        Self {
            limits,
            drain,
            bytes: 0,
            is_waiting: false,
            waiting: None,
        }
    }

    /// Counts bytes that have arrived.
    pub(super) fn add(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.is_waiting = false;
    }

    /// Called when a read has to wait.
    ///
    /// Returns whether an interval has ended with too few bytes. If not, the task is woken at the
    /// end of the interval.
    pub(super) fn poll_too_slow(&mut self, cx: &mut Context<'_>) -> bool {
        let limits = &self.limits;
        let waiting = self.waiting.get_or_insert_with(|| Waiting {
            end: Box::pin(tokio::time::sleep(limits.body)),
            length: limits.body,
            draining: Some(Box::pin(self.drain.draining_owned())),
        });
        if let Some(draining) = &mut waiting.draining
            && draining.as_mut().poll(cx).is_ready()
        {
            waiting.draining = None;
            waiting.length = limits.body.min(limits.drain / DRAIN_SHARE);
            waiting.end.as_mut().reset(Instant::now() + waiting.length);
            self.bytes = 0;
        }
        while waiting.end.as_mut().poll(cx).is_ready() {
            let share = u64::from(limits.body_rate_min) * waiting.length.as_secs().max(1);
            if self.is_waiting && (self.bytes == 0 || self.bytes < share) {
                return true;
            }
            self.bytes = 0;
            waiting.end.as_mut().reset(Instant::now() + waiting.length);
        }
        self.is_waiting = true;
        false
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::super::drain::Phase;
    use super::*;

    /// A body that sends its bytes in pieces, with a pause before each.
    async fn ends_after(rate: &mut BodyRate, pieces: &[(u64, usize)]) -> Option<u64> {
        let begin = Instant::now();
        for (pause, bytes) in pieces {
            let arrives = tokio::time::sleep(Duration::from_secs(*pause));
            let mut arrives = std::pin::pin!(arrives);
            let is_too_slow = std::future::poll_fn(|cx| {
                if arrives.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(false);
                }
                match rate.poll_too_slow(cx) {
                    true => Poll::Ready(true),
                    false => Poll::Pending,
                }
            });
            if is_too_slow.await {
                return Some(begin.elapsed().as_secs());
            }
            rate.add(*bytes);
        }
        None
    }

    fn rate(drain: &Drain) -> BodyRate {
        BodyRate::new(Arc::new(Limits::default()), drain.clone())
    }

    #[tokio::test(start_paused = true)]
    async fn silent_and_slow_bodies_end_with_an_error() {
        let drain = Drain::new();
        assert_eq!(ends_after(&mut rate(&drain), &[(100, 1)]).await, Some(30));
        let trickle = [(25, 1), (25, 1)];
        assert_eq!(ends_after(&mut rate(&drain), &trickle).await, Some(30));
        let enough = [(29, 3000), (29, 3000), (29, 3000)];
        assert_eq!(ends_after(&mut rate(&drain), &enough).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn time_without_a_reader_does_not_count() {
        let drain = Drain::new();
        let mut rate = rate(&drain);
        assert_eq!(ends_after(&mut rate, &[(1, 1)]).await, None);
        tokio::time::advance(Duration::from_secs(100)).await;
        assert_eq!(ends_after(&mut rate, &[(29, 1)]).await, None);
        assert_eq!(ends_after(&mut rate, &[(100, 1)]).await, Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_may_be_silent_for_a_quarter_of_the_drain() {
        let drain = Drain::new();
        drain.enter(Phase::Draining);
        assert_eq!(ends_after(&mut rate(&drain), &[(100, 1)]).await, Some(7));
    }
}
