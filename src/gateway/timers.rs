//! The timer of an HTTP/1.1 connection.
//!
//! It serves each wait of the connection, one after the other. It is reset only when it fires too
//! early or would fire too late, so most requests do not change the timer wheel.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::time::Sleep;

use super::open::Activity;

/// The events that wake a waiting connection, except the arrival of bytes.
pub(super) struct Timers {
    /// Fires at the deadline or earlier.
    timer: Pin<Box<Sleep>>,
    /// Ends when the connection must close: the drain begins, or others need its place. It is
    /// polled once: it stores the waker of this task, which stays the same while the connection
    /// is open.
    closing: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_registered: bool,
}

// === impl Timers ===

impl Timers {
    /// Makes the timers of a connection whose first wait ends after this time.
    pub(super) fn new(activity: &Activity, first: Duration) -> Self {
        Self {
            timer: Box::pin(tokio::time::sleep(first)),
            closing: Box::pin(activity.closing().cancelled_owned()),
            is_registered: false,
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
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if tokio::time::Instant::now() >= deadline {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}
