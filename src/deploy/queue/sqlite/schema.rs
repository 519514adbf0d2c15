//! The tables, and how an older file becomes a current one.
//!
//! `schema.sql` makes the tables and says what they hold; the scripts after it in
//! [`MIGRATIONS`] add to them, each saying why. A script that was released is never changed.
//! `user_version` says how many have run.

use rusqlite::{Connection, TransactionBehavior};

use super::super::QueueError;

/// One script per version.
const MIGRATIONS: [&str; 3] = [
    include_str!("schema.sql"),
    include_str!("served.sql"),
    include_str!("turns.sql"),
];

/// Brings the tables up to date.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), QueueError> {
    // Two processes may open a new file at once: whoever comes second finds it done.
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(QueueError::unavailable)?;
    let known = u32::try_from(MIGRATIONS.len()).expect("a handful");
    let found: u32 = transaction
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(QueueError::unavailable)?;
    if found > known {
        return Err(QueueError::Newer { found, known });
    }
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
