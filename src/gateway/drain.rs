//! Stops the gateway without losing a request.
//!
//! All tasks that serve a connection share a [`Drain`]. It has three phases:
//!
//! ```text
//! Serving ──▶ Unready ──▶ Draining ──▶ (last connection closed, or the deadline) ──▶ exit
//!             readiness    listeners close, idle connections close one after the other,
//!             is 503       responses have `Connection: close`; HTTP/2 connections get GOAWAY,
//!                          one after the other too
//! ```
//!
//! pingora's own graceful stop sleeps for the whole grace period. A [`Drain`] ends as soon as the
//! last [`ConnectionGuard`] and the last [`ListenerGuard`] are dropped: a listener may have accepted
//! a connection that is not counted yet.
//!
//! The `TaskTracker` of tokio-util cannot count the connections: it can wait until no task is
//! left, but not until fewer than `connections_max` are left.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The phases of stopping a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Accepting connections.
    Serving = 0,
    /// Still accepting connections, while the readiness check asks load balancers to send no
    /// more.
    Unready = 1,
    /// Finishing the requests in flight.
    Draining = 2,
}

/// The shared state of stopping.
#[derive(Clone, Debug)]
pub struct Drain(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// A [`Phase`].
    phase: AtomicU8,
    /// Cancelled when the phase is [`Phase::Draining`].
    draining: CancellationToken,
    /// When that was.
    began: OnceLock<Instant>,
    /// How many listeners may accept a connection.
    listening: AtomicUsize,
    open: AtomicUsize,
    /// Notified when a connection or a listener was closed.
    closed: Notify,
}

/// Counts one connection for as long as it lives.
#[derive(Debug)]
pub struct ConnectionGuard(Arc<Shared>);

/// Counts one listener for as long as it may accept a connection.
#[derive(Debug)]
pub struct ListenerGuard(Arc<Shared>);

// === impl Drain ===

impl Drain {
    /// Starts in [`Phase::Serving`], without connections.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Shared {
            phase: AtomicU8::new(Phase::Serving as u8),
            draining: CancellationToken::new(),
            began: OnceLock::new(),
            listening: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            closed: Notify::new(),
        }))
    }

    /// Returns the phase.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.0.phase.load(Ordering::Acquire) {
            0 => Phase::Serving,
            1 => Phase::Unready,
            _ => Phase::Draining,
        }
    }

    /// Returns whether each response must be the last of its connection. Costs one atomic load.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.phase() == Phase::Draining
    }

    /// Enters a phase. A later phase is never left for an earlier one.
    pub fn enter(&self, phase: Phase) {
        if phase == Phase::Draining {
            self.0.began.get_or_init(Instant::now);
        }
        self.0.phase.fetch_max(phase as u8, Ordering::AcqRel);
        if phase == Phase::Draining {
            self.0.draining.cancel();
        }
    }

    /// Returns when a connection without a request must close: at the part `share` (0 to 1) of the
    /// second half of the time `over` after the drain began. In the first half a busy client sends
    /// its next request, and learns from the response that it is the last one. `None` while the
    /// process serves.
    #[must_use]
    pub fn idle_until(&self, over: Duration, share: f64) -> Option<Instant> {
        let began = self.0.began.get()?;
        Some(*began + over.mul_f64(0.5 + share.clamp(0.0, 1.0) / 2.0))
    }

    /// Returns when an HTTP/2 connection gets `GOAWAY`: at the part `share` (0 to 1) of the time
    /// `over` after the drain began, so that not all clients connect again at once. `None` while
    /// the process serves.
    #[must_use]
    pub fn goaway_at(&self, over: Duration, share: f64) -> Option<Instant> {
        let began = self.0.began.get()?;
        Some(*began + over.mul_f64(share.clamp(0.0, 1.0)))
    }

    /// Waits until the phase is [`Phase::Draining`].
    ///
    /// A task that has polled this once is woken at that moment, and not by an earlier phase.
    pub async fn draining(&self) {
        self.0.draining.cancelled().await;
    }

    /// Waits like [`Drain::draining`], without borrowing.
    pub fn draining_owned(&self) -> WaitForCancellationFutureOwned {
        self.0.draining.clone().cancelled_owned()
    }

    /// Returns a token of one connection: it is cancelled when the phase is [`Phase::Draining`],
    /// and can be cancelled before.
    #[must_use]
    pub fn child_token(&self) -> CancellationToken {
        self.0.draining.child_token()
    }

    /// Counts a new connection.
    #[must_use]
    pub fn guard(&self) -> ConnectionGuard {
        self.0.open.fetch_add(1, Ordering::Relaxed);
        ConnectionGuard(Arc::clone(&self.0))
    }

    /// Counts a new listener.
    #[must_use]
    pub fn listener_guard(&self) -> ListenerGuard {
        self.0.listening.fetch_add(1, Ordering::Relaxed);
        ListenerGuard(Arc::clone(&self.0))
    }

    /// Returns how many connections are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.0.open.load(Ordering::Relaxed)
    }

    /// Waits until fewer than `limit` connections are open.
    pub async fn below(&self, limit: usize) {
        self.until(|| self.open() < limit).await;
    }

    /// Waits until no listener may accept a connection and none is open, at most for `deadline`;
    /// returns how many connections are still open.
    pub async fn finished(&self, deadline: Duration) -> usize {
        // A listener counts its last connection before it ends.
        let is_over = || self.0.listening.load(Ordering::Acquire) == 0 && self.open() == 0;
        let _elapsed = tokio::time::timeout(deadline, self.until(is_over)).await;
        self.open()
    }

    /// Waits until this condition on the counts is true.
    async fn until(&self, is_true: impl Fn() -> bool) {
        loop {
            // Registered before the check, so that a connection that closes in between is not
            // missed.
            let closed = self.0.closed.notified();
            if is_true() {
                return;
            }
            closed.await;
        }
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
        // Few tasks wait: one of each listener for a free connection, one for the end of the
        // drain.
        self.0.closed.notify_waiters();
    }
}

// === impl ListenerGuard ===

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        self.0.listening.fetch_sub(1, Ordering::Release);
        self.0.closed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Wake};

    use super::*;

    #[tokio::test]
    async fn the_drain_ends_with_the_last_guard() {
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
    async fn the_drain_waits_for_a_connection_that_a_listener_has_not_counted_yet() {
        let drain = Drain::new();
        let listener = drain.listener_guard();
        drain.enter(Phase::Draining);
        let mut waiting = std::pin::pin!(drain.finished(Duration::from_secs(60)));
        let early = tokio::time::timeout(Duration::from_secs(1), &mut waiting).await;
        assert!(early.is_err(), "the drain ended before the listener");
        let connection = drain.guard();
        drop(listener);
        let early = tokio::time::timeout(Duration::from_secs(1), &mut waiting).await;
        assert!(early.is_err(), "the drain ended before the connection");
        drop(connection);
        assert_eq!(waiting.await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_returns_the_open_connections() {
        let drain = Drain::new();
        let _guard = drain.guard();
        assert_eq!(drain.finished(Duration::from_secs(5)).await, 1);
    }

    #[test]
    fn an_earlier_phase_does_not_wake_a_task_that_waits_for_the_drain() {
        #[derive(Default)]
        struct Woken(std::sync::atomic::AtomicBool);
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
