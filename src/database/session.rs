//! A session: a connection that is made again when it is lost, and transactions on it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{DatabaseError, Link, was_in_the_way};
use crate::error::chain;

/// How long a call tries again while the database cannot be reached.
const TRIES: Duration = Duration::from_secs(2);
/// The wait before the second try; each later wait is twice as long.
const WAIT: Duration = Duration::from_millis(25);
/// For how long a failed connection is not tried again.
const PAUSE: Duration = Duration::from_millis(200);
/// How often a connection that is used is checked again: an operator may change settings of the
/// server and reload them, or raise the tables, and no connection ends.
const CHECKED: Duration = Duration::from_secs(5);

/// Begins a transaction that reads one state of the tables.
pub(crate) const READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// Begins a transaction that changes rows that it locks itself.
pub(crate) const WRITE: &str = "BEGIN";

/// Makes connections, and checks what the server promises.
pub(crate) trait Connect: Send + Sync {
    /// Makes a connection and checks it.
    fn connect(&self) -> Result<Link, DatabaseError>;

    /// Checks whether the database can still be used.
    fn check(&self, link: &Link) -> Result<(), DatabaseError>;
}

/// A session with the database.
pub(crate) struct Session {
    connect: Arc<dyn Connect>,
    link: Option<Link>,
    checked: Instant,
    failed: Option<(Instant, DatabaseError)>,
    /// Since when no connection could be made.
    away_since: Option<Instant>,
}

/// Whether a transaction is run again if the connection was lost during its commit, so that nobody
/// knows whether it was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It is: a second run finds what the first one stored.
    Always,
    /// It is not.
    BeforeCommit,
}

/// The error of a transaction.
pub(crate) trait Failure: From<DatabaseError> + std::error::Error {
    /// Returns the error of the database, if it is one.
    fn of_database(&self) -> Option<DatabaseError>;
}

/// What a transaction does: it gets a connection and the time of the server in milliseconds.
pub(crate) type Act<'a, T, E> = &'a mut dyn FnMut(&Link, u64) -> Result<T, E>;

// === impl Failure ===

impl Failure for DatabaseError {
    fn of_database(&self) -> Option<DatabaseError> {
        Some(self.clone())
    }
}

// === impl Session ===

impl Session {
    pub(crate) fn new(connect: Arc<dyn Connect>) -> Self {
        Self {
            connect,
            link: None,
            checked: Instant::now(),
            failed: None,
            away_since: None,
        }
    }

    /// Returns whether the last transaction left a connection that works.
    pub(crate) fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    fn link(&mut self) -> Result<&Link, DatabaseError> {
        if self.link.as_ref().is_some_and(Link::is_broken) {
            self.link = None;
        }
        if self.link.is_none() {
            if let Some((since, error)) = &self.failed
                && since.elapsed() < PAUSE
            {
                return Err(error.clone());
            }
            match self.connect.connect() {
                Ok(link) => {
                    self.checked = Instant::now();
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
        if self.checked.elapsed() >= CHECKED
            && let Some(link) = &self.link
        {
            if let Err(error) = self.connect.check(link) {
                self.link = None;
                return Err(error);
            }
            self.checked = Instant::now();
        }
        let ended = || DatabaseError::Corrupt("there is no connection".to_owned());
        self.link.as_ref().ok_or_else(ended)
    }

    /// Runs statements on the connection, if there is one. They are only a hint, so an error is
    /// logged and not returned.
    pub(crate) fn hint(&mut self, sql: &str) {
        let Some(link) = self.link.as_ref().filter(|link| !link.is_broken()) else {
            return;
        };
        if let Err(error) = link.batch(sql) {
            log::debug!(target: "database", "a hint was not sent: {}", chain(&error));
            self.link = None;
        }
    }

    /// Runs a transaction, again if another one was in its way or the connection was lost. In a
    /// long outage, only the first calls try again: others need not wait.
    pub(crate) fn transact<T, E: Failure>(
        &mut self,
        begin: &str,
        repeat: Repeat,
        act: Act<'_, T, E>,
    ) -> Result<T, E> {
        let deadline = self.away_since.unwrap_or_else(Instant::now) + TRIES;
        let mut wait = WAIT;
        loop {
            match self.attempt(begin, repeat, act) {
                Err((error, true)) if Instant::now() + wait < deadline => {
                    log::debug!(target: "database", "the transaction is tried again: {}", chain(&error));
                    std::thread::sleep(wait);
                    wait *= 2;
                }
                Err((error, _)) => return Err(error),
                Ok(done) => return Ok(done),
            }
        }
    }

    /// Runs a transaction once. An error comes with whether it may be run again.
    fn attempt<T, E: Failure>(
        &mut self,
        begin: &str,
        repeat: Repeat,
        act: Act<'_, T, E>,
    ) -> Result<T, (E, bool)> {
        let is_away = |error: &E| {
            let found = error.of_database();
            found.is_some_and(|error| error.is_outage())
        };
        let in_the_way = |error: &E| {
            let found = error.of_database();
            found.is_some_and(|error| was_in_the_way(&error))
        };
        let link = match self.link() {
            Ok(link) => link,
            Err(error) => {
                let again = error.is_outage();
                return Err((error.into(), again));
            }
        };
        let begun = link.begin(begin).map_err(E::from);
        let done = match begun.and_then(|now| act(link, now)) {
            Ok(done) => done,
            Err(error) => {
                // Without a connection there is no transaction either.
                let is_lost = link.is_broken() || link.batch("ROLLBACK").is_err();
                let again = in_the_way(&error) || is_lost && is_away(&error);
                if is_lost {
                    self.link = None;
                }
                return Err((error, again));
            }
        };
        link.batch("COMMIT").map(|()| done).map_err(|error| {
            let again = was_in_the_way(&error) || repeat == Repeat::Always && error.is_outage();
            self.link = None;
            (error.into(), again)
        })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}
