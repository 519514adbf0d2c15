//! The places for requests at a server, and the queue for them; and the places of the process for
//! connections to all servers, without a queue.
//!
//! A request that finds a place at once costs two atomic additions. The places are given in the
//! order of the queue: a new request does not pass waiting requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus::IntGauge;
use tokio::sync::Notify;

/// The places at one server, or of the process.
#[derive(Debug)]
pub(in crate::gateway) struct Places {
    max: usize,
    used: AtomicUsize,
    queued: AtomicUsize,
    freed: Notify,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<Places>);

/// A request in the queue of a server.
pub(super) struct Queued<'p> {
    places: &'p Places,
    _waiting: Waiting<'p>,
}

/// Counts a request that waits, until it is dropped.
pub(super) struct Waiting<'p> {
    count: &'p AtomicUsize,
    metric: &'p IntGauge,
}

// === impl Places ===

impl Places {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            used: AtomicUsize::new(0),
            queued: AtomicUsize::new(0),
            freed: Notify::new(),
        }
    }

    /// Takes a place if there is one and nothing waits for it.
    pub(super) fn take(&self) -> bool {
        self.queued() == 0 && self.take_next()
    }

    fn take_next(&self) -> bool {
        let more = |used| (used < self.max).then_some(used + 1);
        self.used
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, more)
            .is_ok()
    }

    /// Returns a place.
    pub(super) fn free(&self) {
        // The order matters. A waiter increments `queued` before it tries to take a place, so
        // either it sees the free place or we see the waiter.
        self.used.fetch_sub(1, Ordering::SeqCst);
        if self.queued() > 0 {
            self.freed.notify_one();
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.used() < self.max
    }

    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// Returns how many requests have a place.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::SeqCst)
    }

    /// Returns how many requests wait for one.
    pub(super) fn queued(&self) -> usize {
        self.queued.load(Ordering::SeqCst)
    }

    /// Enters the queue.
    pub(super) fn queue<'p>(&'p self, metric: &'p IntGauge) -> Queued<'p> {
        Queued {
            places: self,
            _waiting: Waiting::new(&self.queued, metric),
        }
    }
}

// === impl Place ===

impl Place {
    /// Takes a place if there is one.
    pub(super) fn take(places: &Arc<Places>) -> Option<Self> {
        places.take().then(|| Self(Arc::clone(places)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.free();
    }
}

// === impl Queued ===

impl Queued<'_> {
    /// Waits until it has a place.
    pub(super) async fn take(self) {
        loop {
            let mut freed = std::pin::pin!(self.places.freed.notified());
            // From here on no place is freed without this request or another one noticing it.
            freed.as_mut().enable();
            if self.places.take_next() {
                return;
            }
            freed.await;
        }
    }
}

// === impl Waiting ===

impl<'p> Waiting<'p> {
    pub(super) fn new(count: &'p AtomicUsize, metric: &'p IntGauge) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        metric.inc();
        Self { count, metric }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
        self.metric.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_place_is_lost_and_none_is_given_twice() {
        const MAX: usize = 3;
        let (places, metric) = (Arc::new(Places::new(MAX)), IntGauge::new("a", "b").unwrap());
        let inside = Arc::new(AtomicUsize::new(0));
        let requests: Vec<_> = (0..16)
            .map(|number| {
                let (places, inside) = (Arc::clone(&places), Arc::clone(&inside));
                let metric = metric.clone();
                tokio::spawn(async move {
                    for turn in 0..2000 {
                        if !places.take() {
                            let waiting = places.queue(&metric).take();
                            // Some stop waiting, also after they were notified.
                            if (turn + number) % 5 == 0 {
                                let soon = std::time::Duration::from_micros(50);
                                if tokio::time::timeout(soon, waiting).await.is_err() {
                                    continue;
                                }
                            } else {
                                waiting.await;
                            }
                        }
                        assert!(inside.fetch_add(1, Ordering::SeqCst) < MAX);
                        tokio::task::yield_now().await;
                        inside.fetch_sub(1, Ordering::SeqCst);
                        places.free();
                    }
                })
            })
            .collect();
        for request in requests {
            request.await.unwrap();
        }
        assert_eq!((places.used(), places.queued(), metric.get()), (0, 0, 0));
    }
}
