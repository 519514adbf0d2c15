//! The operations of the queue in SQL, the same for every database.
//!
//! A database implements [`Tables`]. The statements are written in what SQLite and PostgreSQL have
//! in common, with `?1` for the first value. So both have one set of rules, and the same tests run
//! over both.
//!
//! A function that writes runs in a transaction. While it runs, no other function that writes may
//! run, except [`operation::heartbeat`], which changes one update that it locks.

pub(super) mod operation;
pub(super) mod reading;
mod row;
pub(super) mod spending;
pub(super) mod visible;

use super::{QueueError, Timestamp};
pub(super) use crate::database::{Cell, Cells, Value, stored};

/// For how many days it is stored what owners have spent.
pub(super) const SPENDING_DAYS: u64 = 31;
const DAY_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// The tables of the queue in a database.
pub(super) trait Tables {
    /// Runs a statement and returns how many rows it changed.
    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<usize, QueueError>;

    /// Runs a statement and returns its rows.
    fn rows(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Cells>, QueueError>;

    /// The end of a `SELECT` that locks the rows it returns until the transaction ends.
    fn locking(&self) -> &'static str;

    /// The end of a `SELECT` that locks the rows it returns, and leaves out rows that another
    /// transaction has locked.
    fn skipping_locked(&self) -> &'static str;
}

impl From<Timestamp> for Value<'_> {
    fn from(time: Timestamp) -> Self {
        time.millis().into()
    }
}

/// Returns the number of the day (UTC), counted from 1970.
pub(super) fn day_of(now: Timestamp) -> u64 {
    now.millis() / DAY_MILLIS
}
