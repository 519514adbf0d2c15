//! The tables in SQLite.

use rusqlite::types::{ToSqlOutput, Value as Stored, ValueRef};
use rusqlite::{Connection, Row, ToSql, params_from_iter};

use super::super::QueueError;
use super::super::sql::{Cell, Cells, Tables, Value};

impl Tables for Connection {
    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<usize, QueueError> {
        self.prepare_cached(sql)
            .and_then(|mut statement| statement.execute(params_from_iter(values)))
            .map_err(QueueError::unavailable)
    }

    fn rows(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Cells>, QueueError> {
        let read = || -> rusqlite::Result<Vec<Cells>> {
            let mut statement = self.prepare_cached(sql)?;
            let count = statement.column_count();
            let rows = statement.query_map(params_from_iter(values), |row| cells(row, count))?;
            rows.collect()
        };
        read().map_err(QueueError::unavailable)
    }

    // One transaction at a time may write, so no row needs a lock.
    fn locking(&self) -> &'static str {
        ""
    }

    fn skipping_locked(&self) -> &'static str {
        ""
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match *self {
            Self::Null => ToSqlOutput::Owned(Stored::Null),
            Self::Integer(number) => ToSqlOutput::Owned(Stored::Integer(number)),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

fn cells(row: &Row<'_>, count: usize) -> rusqlite::Result<Cells> {
    let cell = |column| {
        Ok(match row.get_ref(column)? {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(number) => Cell::Integer(number),
            _ => Cell::Text(row.get(column)?),
        })
    };
    let cells = (0..count).map(cell).collect::<rusqlite::Result<_>>()?;
    Ok(Cells::new(cells))
}
