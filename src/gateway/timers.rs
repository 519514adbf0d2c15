//! The timer of an HTTP/1.1 connection.
//!
//! It serves each wait of the connection, one after the other. It is reset only when it fires too
//! early or would fire too late, so most requests do not change the timer wheel. It is polled only
//! after that: the waker of the task is the same while the connection is open.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::task::coop::unconstrained;
use tokio::time::Sleep;

use super::open::Activity;

/// The events that wake a waiting connection, except the arrival of bytes.
pub(super) struct Timers {
    /// Fires at the deadline or earlier.
    timer: Pin<Box<Sleep>>,
    /// Ends when the connection must close: the drain begins, or others need its place. It is
    /// polled once.
    closing: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_registered: bool,
    /// Whether the timer wakes the task when it fires.
    is_timer_set: bool,
}

// === impl Timers ===

impl Timers {
    /// Makes the timers of a connection whose first wait ends after this time.
    pub(super) fn new(activity: &Activity, first: Duration) -> Self {
        Self {
            timer: Box::pin(tokio::time::sleep(first)),
            closing: Box::pin(activity.closing().cancelled_owned()),
            is_registered: false,
            is_timer_set: false,
        }
    }

    /// Is ready when the deadline has passed. The task is also woken when the connection must
    /// close.
    pub(super) fn poll_late(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_registered {
            self.is_registered = true;
            // The caller checks whether the connection must close whenever the task is woken.
            if self.closing.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        let deadline = tokio::time::Instant::from_std(deadline);
        if self.timer.deadline() > deadline {
            self.timer.as_mut().reset(deadline);
            self.is_timer_set = false;
        }
        if self.is_timer_set && !self.timer.is_elapsed() {
            return Poll::Pending;
        }
        self.is_timer_set = true;
        // A poll that exceeds the budget of the task would not set the timer.
        while Pin::new(&mut unconstrained(self.timer.as_mut()))
            .poll(cx)
            .is_ready()
        {
            if tokio::time::Instant::now() >= deadline {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::task::coop::consume_budget;

    use super::*;
    use crate::gateway::drain::Drain;
    use crate::gateway::open::OpenConnections;

    fn timers(first: Duration) -> Timers {
        let (_registration, activity) = OpenConnections::new().add(&Drain::new());
        Timers::new(&activity, first)
    }

    fn after(seconds: u64) -> Instant {
        (tokio::time::Instant::now() + Duration::from_secs(seconds)).into_std()
    }

    /// Waits until it is late; returns after how many seconds.
    async fn late_after(timers: &mut Timers, deadline: Instant) -> u64 {
        let begin = tokio::time::Instant::now();
        poll_fn(|cx| timers.poll_late(deadline, cx)).await;
        begin.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn each_wait_ends_at_its_own_deadline() {
        let mut timers = timers(Duration::from_secs(10));
        assert_eq!(late_after(&mut timers, after(10)).await, 10);
        // A wait that ends early leaves the timer set; the next one may end later or earlier.
        for seconds in [60, 5, 30, 30] {
            let deadline = after(seconds);
            let waited = tokio::time::timeout(
                Duration::from_secs(seconds - 1),
                late_after(&mut timers, deadline),
            );
            assert!(waited.await.is_err());
            assert_eq!(late_after(&mut timers, deadline).await, 1);
            let unused = after(seconds * 2);
            poll_fn(|cx| {
                assert!(timers.poll_late(unused, cx).is_pending());
                Poll::Ready(())
            })
            .await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_without_budget_is_woken_at_the_deadline_too() {
        let mut timers = timers(Duration::from_secs(10));
        let deadline = after(10);
        let begin = tokio::time::Instant::now();
        let mut has_budget = true;
        poll_fn(|cx| {
            // Uses up the budget of the first poll; the runtime polls again at once.
            while has_budget {
                has_budget = std::pin::pin!(consume_budget()).poll(cx).is_ready();
            }
            timers.poll_late(deadline, cx)
        })
        .await;
        assert_eq!(begin.elapsed().as_secs(), 10);
    }
}
