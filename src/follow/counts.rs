//! Sends the counts of an edge to its source, which adds them to its own.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::StatusCode;

use super::Config;
use super::client::{Client, FollowError};
use super::outbox::Outbox;
use super::status::Status;
use crate::error::chain;
use crate::jitter;
use crate::store::{Local, Store};

/// The longest time between two rounds of sending; the shortest one is half of it.
const INTERVAL: Duration = Duration::from_secs(40);
/// An edge begins at a random time of this length, so that many edges do not send together.
const START: Duration = Duration::from_secs(2);
/// How long the source may take to add a batch, and how long at the end of this process.
const TIME: Duration = Duration::from_secs(120);
const LAST_TIME: Duration = Duration::from_secs(10);
/// How often it is checked how many bytes of counts wait.
const BOUND_INTERVAL: Duration = Duration::from_secs(600);
/// The level of compression: fast.
const LEVEL: i32 = 1;

/// Sends counts.
pub struct CountSender {
    client: Client,
    cache: Arc<Store>,
    outbox: Outbox,
    status: Arc<Status>,
    /// When the counts that wait were last bounded.
    bounded: Mutex<Option<Instant>>,
    is_closed: Mutex<bool>,
    closing: Condvar,
}

impl fmt::Debug for CountSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountSender").finish_non_exhaustive()
    }
}

impl CountSender {
    /// Makes one for the cache of an edge, which is in this directory.
    ///
    /// # Errors
    ///
    /// When the file of authorities cannot be used.
    pub fn new(
        config: &Config,
        service: &str,
        cache: Arc<Store>,
        directory: &Path,
        status: Arc<Status>,
    ) -> Result<Self, FollowError> {
        Ok(Self {
            client: Client::new(config, service).map_err(FollowError::File)?,
            cache,
            outbox: Outbox::new(directory),
            status,
            bounded: Mutex::default(),
            is_closed: Mutex::new(false),
            closing: Condvar::new(),
        })
    }

    /// Sends again and again, until [`CountSender::close`].
    pub fn run(&self) {
        let mut wait = jitter::part_of(START);
        loop {
            let is_closed = self.is_closed();
            let waited = self
                .closing
                .wait_timeout_while(is_closed, wait, |is_closed| !*is_closed);
            if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                return;
            }
            self.send(TIME);
            wait = jitter::pause(INTERVAL);
        }
    }

    /// Makes [`CountSender::run`] return.
    pub fn close(&self) {
        *self.is_closed() = true;
        self.closing.notify_all();
    }

    /// Sends the remaining counts when this process ends, unless another thread is sending. If the
    /// source does not accept them within seconds, they stay in the cache, and the next process
    /// sends them.
    pub fn send_last(&self) {
        self.send(LAST_TIME);
    }

    /// Sends all counts. What fails is tried the next time.
    fn send(&self, time: Duration) {
        let Ok(cache) = self.cache.directory() else {
            return;
        };
        let sent = self.try_send(cache, time);
        if let Err(error) = &sent {
            // The part `follow` reports that the source is away.
            log::debug!(target: "numbers", "counts are sent later: {}", chain(error));
        }
        let mut bounded = self.bounded.lock().unwrap_or_else(PoisonError::into_inner);
        if sent.is_ok() && bounded.is_some() {
            self.status.counts_wait(0);
            *bounded = None;
        }
        if sent.is_err() && bounded.is_none_or(|at| at.elapsed() > BOUND_INTERVAL) {
            *bounded = Some(Instant::now());
            match self.outbox.bound(cache) {
                Ok(bytes) => self.status.counts_wait(bytes),
                Err(error) => {
                    log::warn!(target: "numbers", "cannot read the counts that wait: {}", chain(&error));
                }
            }
        }
    }

    fn try_send(&self, cache: &Local, time: Duration) -> Result<(), FollowError> {
        let Some(sending) = self.outbox.lock().map_err(FollowError::File)? else {
            return Ok(());
        };
        while let Some(batch) = self
            .outbox
            .next(cache, &sending)
            .map_err(FollowError::File)?
        {
            let content = zstd::bulk::compress(&batch.content, LEVEL).map_err(FollowError::File)?;
            let (life, sequence) = (&batch.life, batch.sequence);
            match self.client.numbers(life, sequence, &content, time)? {
                StatusCode::NO_CONTENT => {}
                status @ (StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE) => {
                    log::error!(target: "numbers", "the source refuses counts ({status}), and they are lost");
                }
                StatusCode::UNAUTHORIZED => return Err(FollowError::Token),
                // An older source has no such path.
                status => {
                    return Err(FollowError::Status {
                        status: status.as_u16(),
                        path: "numbers".to_owned(),
                    });
                }
            }
            self.outbox.remove(&batch).map_err(FollowError::File)?;
        }
        Ok(())
    }

    fn is_closed(&self) -> MutexGuard<'_, bool> {
        self.is_closed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
