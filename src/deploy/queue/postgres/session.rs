//! A session: a connection that is made again when it is lost, and transactions on it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::super::Timestamp;
use super::super::QueueError;
use super::Server;
use super::link::{Link, was_in_the_way};

/// How long a call tries again while the database cannot be reached.
const TRIES: Duration = Duration::from_secs(2);
/// The wait before the second try; each later wait is twice as long.
const WAIT: Duration = Duration::from_millis(25);
/// For how long a failed connection is not tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// Begins a transaction that reads one state of the tables.
pub(super) const READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// Begins a transaction that changes rows that it locks itself.
pub(super) const WRITE_ROW: &str = "BEGIN";
/// Begins a transaction that changes the order of the queue: one at a time may run. Reading does
/// not wait for it.
pub(super) const WRITE: &str = "BEGIN; LOCK TABLE identity IN SHARE ROW EXCLUSIVE MODE";

/// A session with the database.
pub(super) struct Session {
    server: Arc<Server>,
    link: Option<Link>,
    failed: Option<(Instant, QueueError)>,
    /// Since when no connection could be made.
    away_since: Option<Instant>,
}

/// Whether a transaction is run again if the connection was lost during its commit, so that nobody
/// knows whether it was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// It is: a second run finds what the first one stored.
    Always,
    /// It is not.
    BeforeCommit,
}

/// What a transaction does: it gets its tables and the time.
pub(super) type Act<'a, T> = &'a mut dyn FnMut(&Link, Timestamp) -> Result<T, QueueError>;

// === impl Session ===

impl Session {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            link: None,
            failed: None,
            away_since: None,
        }
    }

    /// Returns whether the last transaction left a connection that works.
    pub(super) fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    fn link(&mut self) -> Result<&Link, QueueError> {
        if self.link.as_ref().is_some_and(Link::is_broken) {
            self.link = None;
        }
        if self.link.is_none() {
            if let Some((since, error)) = &self.failed
                && since.elapsed() < PAUSE
            {
                return Err(error.clone());
            }
            match self.server.connect() {
                Ok(link) => {
                    self.link = Some(link);
                    self.failed = None;
                    self.away_since = None;
                }
                Err(error) => {
                    self.failed = Some((Instant::now(), error.clone()));
                    self.away_since.get_or_insert_with(Instant::now);
                    return Err(error);
                }
            }
        }
        let ended = || QueueError::Corrupt("there is no connection".to_owned());
        self.link.as_ref().ok_or_else(ended)
    }

    /// Runs a transaction, again if another one was in its way or the connection was lost. In a long
    /// outage, only the first calls try again: others need not wait.
    pub(super) fn transact<T>(
        &mut self,
        begin: &str,
        repeat: Repeat,
        act: Act<'_, T>,
    ) -> Result<T, QueueError> {
        let deadline = self.away_since.unwrap_or_else(Instant::now) + TRIES;
        let mut wait = WAIT;
        loop {
            match self.attempt(begin, repeat, act) {
                Err((error, true)) if Instant::now() + wait < deadline => {
                    log::debug!(target: "deploy", "the queue tries again: {}", crate::error::chain(&error));
                    std::thread::sleep(wait);
                    wait *= 2;
                }
                Err((error, _)) => return Err(error),
                Ok(done) => return Ok(done),
            }
        }
    }

    /// Runs a transaction once. An error comes with whether it may be run again.
    fn attempt<T>(
        &mut self,
        begin: &str,
        repeat: Repeat,
        act: Act<'_, T>,
    ) -> Result<T, (QueueError, bool)> {
        let is_away = |error: &QueueError| matches!(error, QueueError::Unavailable(_));
        let link = match self.link() {
            Ok(link) => link,
            Err(error) => return Err((error.clone(), is_away(&error))),
        };
        let done = match link.begin(begin).and_then(|now| act(link, now)) {
            Ok(done) => done,
            Err(error) => {
                // Without a connection there is no transaction either.
                let is_lost = link.is_broken() || link.batch("ROLLBACK").is_err();
                let again = was_in_the_way(&error) || is_lost && is_away(&error);
                if is_lost {
                    self.link = None;
                }
                return Err((error, again));
            }
        };
        link.batch("COMMIT").map(|()| done).map_err(|error| {
            let again = was_in_the_way(&error) || repeat == Repeat::Always && is_away(&error);
            self.link = None;
            (error, again)
        })
    }
}
