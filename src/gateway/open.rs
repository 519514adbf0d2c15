//! The open client connections, and which of them has been idle longest.
//!
//! When no more connections may be opened, the connection that has been idle longest is closed, so
//! that a new client is served at once. A connection is idle if none of its requests is in
//! progress: it waits for the next request, for the rest of a request head, or for a TLS handshake.
//!
//! Beginning and ending a request are two stores to the connection's own numbers. The search for
//! idle connections looks at all of them, and remembers the [`CANDIDATES`] oldest for the next
//! newcomers.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use tokio_util::sync::CancellationToken;

use super::clients::AddressGuard;
use super::drain::{ConnectionGuard, Drain};

/// How many idle connections one search remembers.
const CANDIDATES: usize = 64;
/// The number of parts of the table.
const SHARDS: usize = 16;

/// The open client connections.
#[derive(Debug)]
pub struct OpenConnections(Arc<Shared>);

type Connections = HashMap<u64, Arc<Activity>, RandomState>;

#[derive(Debug)]
struct Shared {
    shards: [Mutex<Connections>; SHARDS],
    next: AtomicU64,
    candidates: Mutex<VecDeque<(u64, Arc<Activity>)>>,
    began: Instant,
}

/// When a connection was active, and whether it must close.
#[derive(Debug)]
pub(super) struct Activity {
    /// The number of the connection, in the order of arrival.
    id: u64,
    began: Instant,
    /// How many requests are in progress.
    requests: AtomicU32,
    /// When the last one ended, in microseconds after `began`.
    idle_since: AtomicU64,
    is_evicted: AtomicBool,
    drain: Drain,
    /// Made when somebody first waits for it or cancels it.
    closing: OnceLock<CancellationToken>,
}

/// A request in progress.
#[derive(Debug)]
pub(super) struct Busy(Arc<Activity>);

/// Counts a connection for as long as it lives.
#[derive(Debug)]
#[expect(dead_code, reason = "held until they are dropped")]
pub(super) struct Guards {
    pub(super) connection: ConnectionGuard,
    pub(super) address: Option<AddressGuard>,
    pub(super) open: Option<Registration>,
}

/// The place of a connection among the open ones.
#[derive(Debug)]
pub(super) struct Registration {
    id: u64,
    shared: Arc<Shared>,
}

// === impl OpenConnections ===

impl OpenConnections {
    /// Makes it; no connection is open.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Shared {
            shards: Default::default(),
            next: AtomicU64::new(0),
            candidates: Mutex::default(),
            began: Instant::now(),
        }))
    }

    /// Adds a connection, which is idle from now on.
    pub(super) fn add(&self, drain: &Drain) -> (Registration, Arc<Activity>) {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let activity = Arc::new(Activity {
            id,
            began: self.0.began,
            requests: AtomicU32::new(0),
            idle_since: AtomicU64::new(micros(self.0.began.elapsed())),
            is_evicted: AtomicBool::new(false),
            drain: drain.clone(),
            closing: OnceLock::new(),
        });
        self.0.shard(id).insert(id, Arc::clone(&activity));
        let registration = Registration {
            id,
            shared: Arc::clone(&self.0),
        };
        (registration, activity)
    }

    /// Asks the connection that has been idle longest to close; `false` if none is idle.
    pub(super) fn evict_longest_idle(&self) -> bool {
        let mut candidates = lock(&self.0.candidates);
        loop {
            while let Some((since, activity)) = candidates.pop_front() {
                if activity.idle_since() == Some(since) && activity.evict() {
                    return true;
                }
            }
            *candidates = self.0.longest_idle();
            if candidates.is_empty() {
                return false;
            }
        }
    }

    /// Asks all connections to close that have been idle for this time; returns how many.
    pub(super) fn evict_idle_for(&self, time: Duration) -> usize {
        let before = micros(self.0.began.elapsed().saturating_sub(time));
        let mut evicted = 0;
        for shard in &self.0.shards {
            for activity in lock(shard).values() {
                let is_idle = activity.idle_since().is_some_and(|since| since < before);
                evicted += usize::from(is_idle && activity.evict());
            }
        }
        evicted
    }
}

impl Default for OpenConnections {
    fn default() -> Self {
        Self::new()
    }
}

// === impl Shared ===

impl Shared {
    fn shard(&self, id: u64) -> MutexGuard<'_, Connections> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the lowest bits choose the part"
        )]
        let at = id as usize % SHARDS;
        lock(&self.shards[at])
    }

    /// Returns the connections that have been idle longest, the longest first.
    fn longest_idle(&self) -> VecDeque<(u64, Arc<Activity>)> {
        let mut idle = Vec::new();
        for shard in &self.shards {
            idle.extend(
                lock(shard)
                    .values()
                    .filter_map(|activity| Some((activity.idle_since()?, Arc::clone(activity)))),
            );
        }
        if idle.len() > CANDIDATES {
            idle.select_nth_unstable_by_key(CANDIDATES, |(since, _)| *since);
            idle.truncate(CANDIDATES);
        }
        idle.sort_unstable_by_key(|(since, _)| *since);
        idle.into()
    }
}

/// Every change of these values is one insertion or removal, so they are whole after a panic too.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.shared.shard(self.id).remove(&self.id);
    }
}

// === impl Activity ===

impl Activity {
    /// Records that requests are in progress, or that none is.
    pub(super) fn set_busy(&self, is_busy: bool, now: Instant) {
        if !is_busy {
            self.touch(now);
        }
        self.requests.store(is_busy.into(), Ordering::Release);
    }

    /// Begins a request, beside others.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.requests.fetch_add(1, Ordering::AcqRel);
        Busy(Arc::clone(self))
    }

    /// Declares that the connection was active.
    pub(super) fn touch(&self, now: Instant) {
        let since = now.saturating_duration_since(self.began);
        self.idle_since.store(micros(since), Ordering::Relaxed);
    }

    /// Returns how long the connection has been idle, if no request is in progress.
    pub(super) fn idle_time(&self) -> Duration {
        let since = Duration::from_micros(self.idle_since.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(since)
    }

    /// Returns whether the connection must close, because others need its place.
    pub(super) fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::Acquire)
    }

    /// Returns the token that is cancelled when the connection must close, for others or because
    /// the process stops.
    pub(super) fn closing(&self) -> CancellationToken {
        let closing = self.closing.get_or_init(|| self.drain.child_token());
        closing.clone()
    }

    /// Waits until the connection must close because others need its place. A drain lets what has
    /// begun finish.
    pub(super) async fn evicted(&self) {
        self.closing().cancelled().await;
        if !self.is_evicted() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns the point of a drain at which this connection closes if it is idle, from 0 to 1. The
    /// points of all connections are spread evenly.
    pub(super) fn drain_share(&self) -> f64 {
        // The steps of the golden ratio fill the range evenly, however many there are.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        #[expect(
            clippy::cast_precision_loss,
            reason = "a fraction needs no exact value"
        )]
        let share = self.id.wrapping_mul(STEP) as f64 / u64::MAX as f64;
        share
    }

    /// Returns when it became idle; `None` if it is not, or must close already.
    fn idle_since(&self) -> Option<u64> {
        let is_idle = self.requests.load(Ordering::Acquire) == 0 && !self.is_evicted();
        is_idle.then(|| self.idle_since.load(Ordering::Relaxed))
    }

    fn evict(&self) -> bool {
        let is_first = !self.is_evicted.swap(true, Ordering::AcqRel);
        self.closing().cancel();
        is_first
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.touch(Instant::now());
        self.0.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_idle_connection_is_closed_first_and_a_busy_one_never() {
        let (open, drain) = (OpenConnections::new(), Drain::new());
        let (_guards, all): (Vec<_>, Vec<_>) = (0..3).map(|_| open.add(&drain)).unzip();
        let start = open.0.began;
        for (n, activity) in (0_u32..).zip(&all) {
            activity.touch(start + Duration::from_secs(10 - u64::from(n)));
        }
        // The last connection has been inactive longest, but has a request.
        let busy = all[2].begin();
        assert!(open.evict_longest_idle());
        let evicted = |n: usize| all[n].is_evicted();
        assert_eq!([evicted(0), evicted(1), evicted(2)], [false, true, false]);
        assert!(all[1].closing().is_cancelled() && !all[0].closing().is_cancelled());
        // The search has remembered the other connection, which has become active since.
        all[0].set_busy(true, start);
        assert!(!open.evict_longest_idle());
        drop(busy);
        assert!(open.evict_longest_idle());
        assert_eq!([evicted(0), evicted(1), evicted(2)], [false, true, true]);
    }

    #[test]
    fn a_drain_closes_all_connections() {
        let (open, drain) = (OpenConnections::new(), Drain::new());
        let (_guard, activity) = open.add(&drain);
        drain.enter(super::super::drain::Phase::Draining);
        assert!(activity.closing().is_cancelled() && !activity.is_evicted());
    }

    #[test]
    fn idle_connections_are_closed_together_under_memory_pressure() {
        let (open, drain) = (OpenConnections::new(), Drain::new());
        let (_guards, all): (Vec<_>, Vec<_>) = (0..5).map(|_| open.add(&drain)).unzip();
        let _busy = all[0].begin();
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(open.evict_idle_for(Duration::ZERO), 4);
        assert_eq!(open.evict_idle_for(Duration::ZERO), 0);
    }
}
