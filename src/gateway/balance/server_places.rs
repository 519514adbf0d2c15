//! The places for requests at one server, and the part of them that a client may have.
//!
//! A place is held until the client has read the response. One client with several connections, each
//! with a hundred streams that it reads slowly, could hold all places of a server. So a request waits
//! while its client has as many places as are free ([`Clients`]). It does not wait in the queue of
//! the server, so requests of other clients take the free places at once.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use prometheus::IntGauge;
use tokio::sync::Notify;

use super::clients::{Clients, Counted, CountedClient};
use super::group::Refused;
use super::places::{Places, Waiting};

/// The places at one server.
#[derive(Debug)]
pub(super) struct ServerPlaces {
    places: Places,
    clients: Clients,
    /// How many requests wait because their client has as many places as are free.
    waiting: AtomicUsize,
    freed: Notify,
}

/// A place at a server, until [`ServerPlaces::free`] returns it.
#[must_use]
#[derive(Debug)]
pub(super) struct ServerPlace {
    client: CountedClient,
}

// === impl ServerPlaces ===

impl ServerPlaces {
    pub(super) fn new(max: usize) -> Self {
        Self {
            places: Places::new(max),
            clients: Clients::new(1),
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
        }
    }

    /// Takes a place if there is one, nothing waits for it, and the client may have it.
    pub(super) fn take(&self, client: IpAddr) -> Option<ServerPlace> {
        let counted = self.clients.count(client, &self.places)?;
        self.places.take().then(|| ServerPlace {
            client: counted.keep(),
        })
    }

    /// Waits for a place, first until the client may have another one, then in the queue of the
    /// server. In each of the two, at most `queue_max` requests wait.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`], and [`Refused::Late`] after the longest time.
    pub(super) async fn wait(
        &self,
        client: IpAddr,
        queue_max: usize,
        longest: Duration,
        metric: &IntGauge,
    ) -> Result<ServerPlace, Refused> {
        let waiting = async {
            let counted = self.wait_for_client(client, queue_max, metric).await?;
            if !self.places.take() {
                let queued = self.places.queue(metric);
                if self.places.queued() > queue_max {
                    return Err(Refused::Full);
                }
                queued.take().await;
            }
            Ok(ServerPlace {
                client: counted.keep(),
            })
        };
        let waited = tokio::time::timeout(longest, waiting).await;
        waited.unwrap_or(Err(Refused::Late))
    }

    /// Waits until the client may have another place.
    async fn wait_for_client(
        &self,
        client: IpAddr,
        queue_max: usize,
        metric: &IntGauge,
    ) -> Result<Counted<'_>, Refused> {
        if let Some(counted) = self.clients.count(client, &self.places) {
            return Ok(counted);
        }
        if self.waiting.load(Ordering::SeqCst) >= queue_max {
            return Err(Refused::Full);
        }
        let _waiting = Waiting::new(&self.waiting, metric);
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            // From here on no place is freed without this request noticing it.
            freed.as_mut().enable();
            if let Some(counted) = self.clients.count(client, &self.places) {
                return Ok(counted);
            }
            freed.await;
        }
    }

    /// Returns a place.
    pub(super) fn free(&self, place: &ServerPlace) {
        self.clients.uncount(place.client);
        self.places.free();
        // The order matters: a waiter counts itself before it looks for the freed place.
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.freed.notify_waiters();
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.places.has_room()
    }

    /// Returns how many requests have a place.
    pub(super) fn used(&self) -> usize {
        self.places.used()
    }

    /// Returns how many requests wait for one.
    pub(super) fn queued(&self) -> usize {
        self.places.queued() + self.waiting.load(Ordering::SeqCst)
    }
}
