//! The tables, and the migration of older files.
//!
//! `schema.sql` creates the tables and describes them. A later version of the schema adds a
//! script to [`MIGRATIONS`]; a script that was released is never changed. SQLite's
//! `user_version` is the number of scripts that have run on the file.

use rusqlite::{Connection, TransactionBehavior};

use super::super::QueueError;

/// One script per version.
const MIGRATIONS: [&str; 3] = [
    include_str!("schema.sql"),
    include_str!("spending.sql"),
    include_str!("token.sql"),
];

/// Rejects the version of a newer program.
pub(super) fn check(found: u32) -> Result<(), QueueError> {
    let known = u32::try_from(MIGRATIONS.len()).expect("a handful");
    match found > known {
        true => Err(QueueError::Newer { found, known }),
        false => Ok(()),
    }
}

/// Brings the tables up to date.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), QueueError> {
    let known = u32::try_from(MIGRATIONS.len()).expect("a handful");
    // A current file needs no lock: another process may hold it for long.
    let version = connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0));
    if version.is_ok_and(|version| version == known) {
        return Ok(());
    }
    // Two processes may open a new file at once: the second one finds the tables.
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(QueueError::unavailable)?;
    let found: u32 = transaction
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(QueueError::unavailable)?;
    check(found)?;
    for (version, script) in (1u32..)
        .zip(MIGRATIONS)
        .skip_while(|(version, _)| *version <= found)
    {
        transaction
            .execute_batch(script)
            .and_then(|()| transaction.pragma_update(None, "user_version", version))
            .map_err(QueueError::unavailable)?;
    }
    transaction.commit().map_err(QueueError::unavailable)
}
