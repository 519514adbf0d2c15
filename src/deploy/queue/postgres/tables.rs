//! The tables of the queue over a connection.

use super::super::QueueError;
use super::super::sql::{Cells, Tables, Value};
use crate::database::Link;

impl Tables for Link {
    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<usize, QueueError> {
        Ok(Self::execute(self, sql, values)?)
    }

    fn rows(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Cells>, QueueError> {
        Ok(Self::rows(self, sql, values)?)
    }

    // Not `FOR UPDATE`: that would also wait for rows that only refer to these.
    fn locking(&self) -> &'static str {
        " FOR NO KEY UPDATE"
    }

    fn skipping_locked(&self) -> &'static str {
        " FOR NO KEY UPDATE SKIP LOCKED"
    }
}
