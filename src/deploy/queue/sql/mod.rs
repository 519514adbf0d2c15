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

/// For how many days it is stored what owners have spent.
pub(super) const SPENDING_DAYS: u64 = 31;
const DAY_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// The tables of the queue in a database.
pub(super) trait Tables {
    /// Runs a statement and returns how many rows it changed.
    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<usize, QueueError>;

    /// Runs a statement and returns its rows.
    fn rows(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Cells>, QueueError>;

    /// What a `SELECT` ends with that locks the rows it returns until the transaction ends.
    fn locking(&self) -> &'static str;

    /// The same for a `SELECT` that leaves out rows that another transaction has locked.
    fn skipping_locked(&self) -> &'static str;
}

/// A value of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Null,
    Integer(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// A value of a row.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Null,
    Integer(i64),
    Text(String),
}

/// The values of a row, taken from the first to the last.
#[derive(Debug)]
pub(super) struct Cells(std::vec::IntoIter<Cell>);

// === impl Value ===

impl From<Option<i64>> for Value<'_> {
    fn from(number: Option<i64>) -> Self {
        number.map_or(Self::Null, Self::Integer)
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Integer(stored(number))
    }
}

impl From<Timestamp> for Value<'_> {
    fn from(time: Timestamp) -> Self {
        time.millis().into()
    }
}

// === impl Cells ===

impl Cells {
    pub(super) fn new(cells: Vec<Cell>) -> Self {
        Self(cells.into_iter())
    }

    fn next_text(&mut self) -> Result<Option<String>, QueueError> {
        match self.0.next() {
            Some(Cell::Text(text)) => Ok(Some(text)),
            Some(Cell::Null) => Ok(None),
            other => Err(unexpected("text", other.as_ref())),
        }
    }

    fn next_number(&mut self) -> Result<Option<u64>, QueueError> {
        match self.0.next() {
            Some(Cell::Integer(number)) => u64::try_from(number)
                .map(Some)
                .map_err(|_negative| QueueError::Corrupt(format!("the number {number}"))),
            Some(Cell::Null) => Ok(None),
            other => Err(unexpected("a number", other.as_ref())),
        }
    }

    pub(super) fn text(&mut self) -> Result<String, QueueError> {
        let text = self.next_text()?;
        text.ok_or_else(|| unexpected("text", Some(&Cell::Null)))
    }

    pub(super) fn number(&mut self) -> Result<u64, QueueError> {
        let number = self.next_number()?;
        number.ok_or_else(|| unexpected("a number", Some(&Cell::Null)))
    }
}

fn unexpected(expected: &str, found: Option<&Cell>) -> QueueError {
    QueueError::Corrupt(format!("{found:?} where {expected} is expected"))
}

/// Converts a number for SQL, whose integers are signed; a larger one becomes the largest.
pub(super) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns the number of the day (UTC), counted from 1970.
pub(super) fn day_of(now: Timestamp) -> u64 {
    now.millis() / DAY_MILLIS
}
