//! Leaving without losing anybody.
//!
//! A [`Drain`] is shared by everything that holds a connection. It has three phases:
//!
//! ```text
//! Serving ──▶ Unready ──▶ Draining ──▶ (last guard dropped, or the deadline) ──▶ exit
//!             readiness    listeners close, idle connections close,
//!             says 503     answers say `Connection: close`, HTTP/2 says GOAWAY
//! ```
//!
//! pingora's own graceful stop sleeps the whole grace period whatever is in flight; ours
//! leaves as soon as the last [`ConnectionGuard`] is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};

/// Where a process is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Taking connections.
    Serving,
    /// Still taking connections, and asking load balancers for no more.
    Unready,
    /// Finishing what is in flight.
    Draining,
}

/// The shared state of leaving.
#[derive(Clone, Debug)]
pub struct Drain {
    shared: Arc<Shared>,
    phase: watch::Receiver<Phase>,
}

#[derive(Debug)]
struct Shared {
    phase: watch::Sender<Phase>,
    /// The same as the phase being `Draining`, for the request path.
    is_draining: AtomicBool,
    open: AtomicUsize,
    changed: Notify,
}

/// Counts one connection for as long as it lives.
#[derive(Debug)]
pub struct ConnectionGuard(Arc<Shared>);

// === impl Drain ===

impl Drain {
    /// Starts in [`Phase::Serving`], without connections.
    #[must_use]
    pub fn new() -> Self {
        let (sender, phase) = watch::channel(Phase::Serving);
        let shared = Shared {
            phase: sender,
            is_draining: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            changed: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
            phase,
        }
    }

    /// Returns the phase.
    #[must_use]
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Returns whether answers should be the last of their connection: one atomic load.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.shared.is_draining.load(Ordering::Relaxed)
    }

    /// Enters a phase; phases never go back.
    pub fn enter(&self, phase: Phase) {
        self.shared
            .is_draining
            .fetch_or(phase == Phase::Draining, Ordering::Relaxed);
        self.shared.phase.send_if_modified(|current| {
            let later = phase > *current;
            *current = phase.max(*current);
            // Who waits, waits for this one, and a connection leaves its waker only once: woken
            // for less, it would sleep through the drain.
            later && phase == Phase::Draining
        });
    }

    /// Waits until the phase is [`Phase::Draining`].
    pub async fn draining(&self) {
        let mut phase = self.phase.clone();
        // The sender lives in `shared`, which this value holds.
        let _closed = phase.wait_for(|phase| *phase == Phase::Draining).await;
    }

    /// Counts a new connection.
    #[must_use]
    pub fn guard(&self) -> ConnectionGuard {
        self.shared.open.fetch_add(1, Ordering::Relaxed);
        ConnectionGuard(Arc::clone(&self.shared))
    }

    /// Returns how many connections are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::Relaxed)
    }

    /// Waits until fewer than `limit` connections are open.
    pub async fn below(&self, limit: usize) {
        loop {
            // Registered before looking, so that a close in between is not missed.
            let changed = self.shared.changed.notified();
            if self.open() < limit {
                return;
            }
            changed.await;
        }
    }

    /// Waits until no connection is open, at most for `deadline`; returns how many were left.
    pub async fn finished(&self, deadline: Duration) -> usize {
        let _elapsed = tokio::time::timeout(deadline, self.below(1)).await;
        self.open()
    }
}

impl Default for Drain {
    fn default() -> Self {
        Self::new()
    }
}

// === impl ConnectionGuard ===

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        // Whoever waits for a place or for the end is one task at most each.
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Wake};

    use super::*;

    #[tokio::test]
    async fn the_end_comes_with_the_last_guard() {
        let drain = Drain::new();
        let guards = [drain.guard(), drain.guard()];
        drain.enter(Phase::Draining);
        let waiting = tokio::spawn({
            let drain = drain.clone();
            async move { drain.finished(Duration::from_secs(60)).await }
        });
        drop(guards);
        assert_eq!(waiting.await.unwrap(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_counts_who_is_left() {
        let drain = Drain::new();
        let _guard = drain.guard();
        assert_eq!(drain.finished(Duration::from_secs(5)).await, 1);
    }

    #[test]
    fn waiting_for_the_drain_is_woken_by_nothing_less() {
        #[derive(Default)]
        struct Woken(AtomicBool);
        impl Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let drain = Drain::new();
        let mut waiting = std::pin::pin!(drain.draining());
        let woken = Arc::new(Woken::default());
        let waker = Arc::clone(&woken).into();
        let mut cx = Context::from_waker(&waker);
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        drain.enter(Phase::Unready);
        assert_eq!(drain.phase(), Phase::Unready);
        assert!(!woken.0.load(Ordering::Relaxed));
        drain.enter(Phase::Draining);
        assert!(woken.0.load(Ordering::Relaxed));
        assert!(waiting.as_mut().poll(&mut cx).is_ready());
    }

    #[tokio::test]
    async fn phases_never_go_back() {
        let drain = Drain::new();
        drain.enter(Phase::Draining);
        drain.enter(Phase::Unready);
        assert_eq!(drain.phase(), Phase::Draining);
        assert!(drain.is_draining());
        drain.draining().await;
    }
}
