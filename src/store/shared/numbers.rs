//! The numbers of sites: rows of the database, one for each project and day.

use super::{Shared, store_error};
use crate::clock::Day;
use crate::database::DatabaseError;
use crate::database::{Link, READ, Repeat, Value, WRITE};
use crate::site::ProjectId;
use crate::store::{ChangeNumbers, FileError};

impl Shared {
    pub(in crate::store) fn numbers(
        &self,
        project: &ProjectId,
        first: Day,
        last: Day,
    ) -> Result<Vec<(Day, Vec<u8>)>, FileError> {
        const NUMBERS: &str = "SELECT day, content FROM numbers \
             WHERE project = ?1 AND day >= ?2 AND day <= ?3 ORDER BY day";
        let (first, last) = (first.to_string(), last.to_string());
        let values = [project.as_str(), &first, &last].map(Value::Text);
        let rows = self.database.transact(READ, Repeat::Always, |link, _now| {
            let rows = link.rows(NUMBERS, &values)?.into_iter();
            rows.map(|mut row| Ok((row.text()?, row.bytes()?)))
                .collect::<Result<Vec<_>, DatabaseError>>()
        });
        let rows = rows.map_err(store_error)?.into_iter();
        let parse = |(day, bytes): (String, _)| Some((Day::parse(&day).ok()?, bytes));
        Ok(rows.filter_map(parse).collect())
    }

    pub(in crate::store) fn numbered(&self) -> Result<Vec<(ProjectId, Day)>, FileError> {
        const ALL: &str = "SELECT project, day FROM numbers ORDER BY project, day";
        let rows = self.database.transact(READ, Repeat::Always, |link, _now| {
            let rows = link.rows(ALL, &[])?.into_iter();
            rows.map(|mut row| Ok((row.text()?, row.text()?)))
                .collect::<Result<Vec<_>, DatabaseError>>()
        });
        let rows = rows.map_err(store_error)?.into_iter();
        let parse = |(project, day): (String, String)| {
            Some((ProjectId::parse(&project).ok()?, Day::parse(&day).ok()?))
        };
        Ok(rows.filter_map(parse).collect())
    }

    pub(in crate::store) fn change_numbers(
        &self,
        project: &ProjectId,
        day: Day,
        change: ChangeNumbers<'_>,
    ) -> Result<(), FileError> {
        const NUMBERS: &str = "SELECT content FROM numbers WHERE project = ?1 AND day = ?2";
        const PUT: &str = "INSERT INTO numbers VALUES (?1, ?2, ?3) \
             ON CONFLICT (project, day) DO UPDATE SET content = excluded.content";
        let day = day.to_string();
        let (project, day) = (Value::Text(project.as_str()), Value::Text(&day));
        // After a commit without an answer, `change` finds what it has written.
        let changed = self.database.transact(WRITE, Repeat::Always, |link, _now| {
            lock(link, project)?;
            let row = link.rows(NUMBERS, &[project, day])?.into_iter().next();
            let before = row.map(|mut row| row.bytes()).transpose()?;
            match change(before.as_deref()) {
                Some(bytes) => link.execute(PUT, &[project, day, Value::Bytes(&bytes)]),
                None => Ok(0),
            }
        });
        changed.map(|_one| ()).map_err(store_error)
    }

    pub(in crate::store) fn remove_numbers(&self, project: &ProjectId) -> Result<(), FileError> {
        const REMOVE: &str = "DELETE FROM numbers WHERE project = ?1";
        let project = Value::Text(project.as_str());
        let removed = self.database.transact(WRITE, Repeat::Always, |link, _now| {
            link.execute(REMOVE, &[project])
        });
        removed.map(|_count| ()).map_err(store_error)
    }

    pub(in crate::store) fn sweep_numbers(&self, first: Day) -> Result<u64, FileError> {
        const REMOVE: &str = "DELETE FROM numbers WHERE day < ?1";
        let first = first.to_string();
        let removed = self.database.transact(WRITE, Repeat::Always, |link, _now| {
            link.execute(REMOVE, &[Value::Text(&first)])
        });
        removed.map(|count| count as u64).map_err(store_error)
    }
}

/// Lets only this transaction change the numbers of a project.
fn lock(link: &Link, project: Value<'_>) -> Result<(), DatabaseError> {
    // There may be no row yet that could be locked.
    const LOCK: &str =
        "SELECT pg_advisory_xact_lock(hashtextextended('waypost/numbers/' || ?1::text, 0))::text";
    link.rows(LOCK, &[project]).map(|_one| ())
}
