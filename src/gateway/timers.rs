//! The timer of an HTTP/1.1 connection.
//!
//! It serves each wait of the connection, one after the other. It is reset only when it fires too
//! early or would fire too late, so most requests do not change the timer wheel. It is polled only
//! after that: the waker of the task is the same while the connection is open. A connection that
//! never waits has none.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::task::coop::unconstrained;
use tokio::time::Sleep;

use super::open::Activity;

/// The events that wake a waiting connection, except the arrival of bytes.
pub(super) struct Timers {
    activity: Arc<Activity>,
    /// Made by the first wait.
    wakers: Option<Wakers>,
}

struct Wakers {
    /// Fires at the deadline or earlier.
    timer: Pin<Box<Sleep>>,
    /// Whether the timer wakes the task when it fires.
    is_timer_set: bool,
    /// Ends when the connection must close: the drain begins, or others need its place. It is
    /// polled once.
    _closing: Pin<Box<dyn Future<Output = ()> + Send>>,
}

// === impl Timers ===

impl Timers {
    /// Makes the timers of a connection.
    pub(super) fn new(activity: &Arc<Activity>) -> Self {
        Self {
            activity: Arc::clone(activity),
            wakers: None,
        }
    }

    /// Is ready when the deadline has passed. The task is also woken when the connection must
    /// close.
    pub(super) fn poll_late(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = tokio::time::Instant::from_std(deadline);
        let wakers = self
            .wakers
            .get_or_insert_with(|| Wakers::new(&self.activity, deadline, cx));
        if wakers.timer.deadline() > deadline {
            wakers.timer.as_mut().reset(deadline);
            wakers.is_timer_set = false;
        }
        if wakers.is_timer_set && !wakers.timer.is_elapsed() {
            return Poll::Pending;
        }
        wakers.is_timer_set = true;
        // A poll that exceeds the budget of the task would not set the timer.
        while Pin::new(&mut unconstrained(wakers.timer.as_mut()))
            .poll(cx)
            .is_ready()
        {
            if tokio::time::Instant::now() >= deadline {
                return Poll::Ready(());
            }
            wakers.timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

// === impl Wakers ===

impl Wakers {
    fn new(activity: &Activity, deadline: tokio::time::Instant, cx: &mut Context<'_>) -> Self {
        let mut closing = Box::pin(activity.closing().cancelled_owned());
        // The caller checks whether the connection must close whenever the task is woken.
        if closing.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Self {
            timer: Box::pin(tokio::time::sleep_until(deadline)),
            is_timer_set: false,
            _closing: closing,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use tokio::task::coop::consume_budget;

    use super::*;
    use crate::gateway::drain::Drain;
    use crate::gateway::open::OpenConnections;

    fn timers() -> Timers {
        let (_registration, activity) = OpenConnections::new().add(&Drain::new());
        Timers::new(&activity)
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
        let mut timers = timers();
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
        let mut timers = timers();
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
