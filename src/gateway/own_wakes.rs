//! A waker that ignores the wakes that a task causes itself.
//!
//! The HTTP/2 library wakes the task of a connection for each response, because any task may have
//! made it. The loop of a connection makes most responses itself and polls the connection right
//! afterwards. Such a wake would only cost a second poll, in which there is nothing to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// The waker of one task for what it polls and changes itself.
#[derive(Debug)]
pub(super) struct OwnWakes {
    shared: Arc<Shared>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Shared {
    task: AtomicWaker,
    is_ignoring: AtomicBool,
}

// === impl OwnWakes ===

impl OwnWakes {
    pub(super) fn new() -> Self {
        let shared = Arc::<Shared>::default();
        Self {
            waker: Waker::from(Arc::clone(&shared)),
            shared,
        }
    }

    /// Polls with this waker, in a poll of the task.
    pub(super) fn poll<T>(
        &self,
        cx: &Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.shared.task.register(cx.waker());
        poll(&mut Context::from_waker(&self.waker))
    }

    /// Runs `change`. Wakes that arrive while it runs are ignored, also those of other tasks.
    ///
    /// The caller must poll again before it waits. That poll sees the changes, and everything that
    /// an ignored wake has announced.
    pub(super) fn ignore<T>(&self, change: impl FnOnce() -> T) -> T {
        self.shared.is_ignoring.store(true, Ordering::SeqCst);
        let changed = change();
        self.shared.is_ignoring.store(false, Ordering::SeqCst);
        changed
    }
}

// === impl Shared ===

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_ignoring.load(Ordering::SeqCst) {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_wake_reaches_the_task_unless_the_task_causes_it() {
        let counted = Arc::<Counted>::default();
        let task = Waker::from(Arc::clone(&counted));
        let own = OwnWakes::new();
        let poll = || {
            let mut waker = None;
            let polled = own.poll(&Context::from_waker(&task), |cx| {
                waker = Some(cx.waker().clone());
                Poll::<()>::Pending
            });
            assert_eq!(polled, Poll::Pending);
            waker.unwrap()
        };
        let waker = poll();
        own.ignore(|| waker.wake_by_ref());
        assert_eq!(counted.0.load(Ordering::SeqCst), 0);
        waker.wake_by_ref();
        assert_eq!(counted.0.load(Ordering::SeqCst), 1);
        // Each poll registers the task again.
        poll().wake();
        assert_eq!(counted.0.load(Ordering::SeqCst), 2);
    }
}
