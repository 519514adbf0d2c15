//! Leases: locks between machines, with an end by the clock of the database.
//!
//! A thread extends a lease as long as its value lives. A process that was killed, or that cannot
//! reach the database, loses its lease after [`TIME`]. Each transaction of a holder checks the
//! lease ([`Lease::check`]), so a holder that has lost it writes nothing.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::database::Database;
use crate::database::{DatabaseError, Link, Repeat, Value, WRITE};
use crate::error::chain;
use crate::telemetry::panics;

/// How long a lease lasts without being extended.
const TIME: Duration = Duration::from_secs(15);
/// How often it is extended.
const INTERVAL: Duration = Duration::from_secs(4);
/// How often a lease is tried that another process has.
const TRY_INTERVAL: Duration = Duration::from_millis(50);

/// A lease that this process holds.
#[derive(Debug)]
pub struct Lease {
    state: Arc<LeaseState>,
    /// Dropping it ends the thread.
    _stop: Sender<()>,
}

#[derive(Debug)]
struct LeaseState {
    database: Arc<Database>,
    name: String,
    holder: String,
    epoch: i64,
    until: Mutex<Instant>,
}

impl Lease {
    /// Takes the lease of this name. Returns `None` if another process has it.
    pub(super) fn take(
        database: &Arc<Database>,
        name: &str,
        time: Duration,
    ) -> Result<Option<Self>, DatabaseError> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)
            .map_err(|error| DatabaseError::unavailable(std::io::Error::other(error)))?;
        let holder = hex::encode(random);
        let began = Instant::now();
        let Some(epoch) = take(database, name, &holder, time)? else {
            return Ok(None);
        };
        let state = Arc::new(LeaseState {
            database: Arc::clone(database),
            name: name.to_owned(),
            holder,
            epoch,
            until: Mutex::new(began + TIME),
        });
        let (stop, stopped) = channel();
        let keeper = Arc::clone(&state);
        let thread = panics::essential_thread("lease", move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                keeper.extend();
            }
            keeper.end();
        });
        thread.map_err(DatabaseError::unavailable)?;
        Ok(Some(Self { state, _stop: stop }))
    }

    /// Waits for a lease; `None` if another process has it all this time.
    pub(super) fn wait(
        database: &Arc<Database>,
        name: &str,
        timeout: Duration,
    ) -> Result<Option<Self>, DatabaseError> {
        let deadline = Instant::now() + timeout;
        loop {
            match Self::take(database, name, TIME)? {
                None if Instant::now() < deadline => std::thread::sleep(TRY_INTERVAL),
                taken => return Ok(taken),
            }
        }
    }

    /// Does what happens at most once in this time on all machines: returns whether it is due.
    pub(super) fn once_in(
        database: &Arc<Database>,
        name: &str,
        time: Duration,
    ) -> Result<bool, DatabaseError> {
        Ok(take(database, name, "", time)?.is_some())
    }

    /// Returns whether this process still holds the lease.
    #[must_use]
    pub fn holds(&self) -> bool {
        Instant::now()
            < *self
                .state
                .until
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks in a transaction that this process holds the lease, and keeps others from taking it
    /// until the transaction ends.
    pub(super) fn check(&self, link: &Link, now: u64) -> Result<bool, DatabaseError> {
        const HELD: &str = "SELECT epoch FROM leases WHERE name = ?1 AND holder = ?2 \
             AND epoch = ?3 AND ends_at > ?4 FOR UPDATE";
        let LeaseState {
            name,
            holder,
            epoch,
            ..
        } = &*self.state;
        let values = [
            Value::Text(name),
            Value::Text(holder),
            Value::Integer(*epoch),
            now.into(),
        ];
        Ok(!link.rows(HELD, &values)?.is_empty())
    }
}

fn take(
    database: &Database,
    name: &str,
    holder: &str,
    time: Duration,
) -> Result<Option<i64>, DatabaseError> {
    const TAKE: &str = "INSERT INTO leases VALUES (?1, ?2, 1, ?4) \
         ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, \
         epoch = leases.epoch + 1, ends_at = excluded.ends_at \
         WHERE leases.ends_at <= ?3 RETURNING epoch";
    database.transact(WRITE, Repeat::BeforeCommit, |link, now| {
        let values = [
            Value::Text(name),
            Value::Text(holder),
            now.into(),
            (now + millis(time)).into(),
        ];
        let row = link.rows(TAKE, &values)?.into_iter().next();
        let epoch = row.map(|mut row| row.number()).transpose()?;
        Ok(epoch.map(crate::database::stored))
    })
}

impl LeaseState {
    fn extend(&self) {
        const EXTEND: &str = "UPDATE leases SET ends_at = ?4 \
             WHERE name = ?1 AND holder = ?2 AND epoch = ?3 AND ends_at > ?5";
        let began = Instant::now();
        let extended = self.database.transact(WRITE, Repeat::Always, |link, now| {
            let values = [
                Value::Text(&self.name),
                Value::Text(&self.holder),
                Value::Integer(self.epoch),
                (now + millis(TIME)).into(),
                now.into(),
            ];
            Ok(link.execute(EXTEND, &values)? == 1)
        });
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        match extended {
            Ok(true) => *until = began + TIME,
            Ok(false) => {
                *until = began;
                log::warn!(target: "store", "the lock {} was lost: another process has it", self.name);
            }
            Err(error) => {
                log::warn!(target: "store", "cannot extend the lock {}: {}", self.name, chain(&error));
            }
        }
    }

    fn end(&self) {
        const END: &str = "UPDATE leases SET ends_at = 0 \
             WHERE name = ?1 AND holder = ?2 AND epoch = ?3";
        let values = [
            Value::Text(&self.name),
            Value::Text(&self.holder),
            Value::Integer(self.epoch),
        ];
        let ended = self.database.transact(WRITE, Repeat::Always, |link, _now| {
            link.execute(END, &values)
        });
        if let Err(error) = ended {
            // It ends by itself.
            log::debug!(target: "store", "end the lock {}: {}", self.name, chain(&error));
        }
    }
}

/// Returns a time in milliseconds.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
