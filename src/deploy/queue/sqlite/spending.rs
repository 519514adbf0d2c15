//! The spending of an owner on a language model, by day.
//!
//! An update reserves what it may spend before it begins, and gives back what it did not spend. If
//! its process is killed in between, the reserved amount counts as spent: so no crash lets an owner
//! spend more than the limit.

use rusqlite::{Connection, OptionalExtension, params};

use super::super::{QueueError, Spending};
use super::row::{execute, stored};

/// Returns what was spent or is reserved on a day.
pub(super) fn spent(
    connection: &Connection,
    owner: &str,
    day: u64,
) -> Result<Spending, QueueError> {
    const SQL: &str = "SELECT tokens, cost FROM spending WHERE owner = ?1 AND day = ?2";
    let found = connection.prepare_cached(SQL).and_then(|mut statement| {
        statement
            .query_row(params![owner, stored(day)], |row| {
                Ok(Spending {
                    tokens: row.get(0)?,
                    cost: row.get(1)?,
                })
            })
            .optional()
    });
    Ok(found.map_err(QueueError::unavailable)?.unwrap_or_default())
}

/// Reserves as much of `requested` as the limit of the day leaves; `None` if nothing is left.
pub(super) fn reserve(
    connection: &Connection,
    owner: &str,
    day: u64,
    requested: Spending,
    limit: Spending,
) -> Result<Option<Spending>, QueueError> {
    let spent = spent(connection, owner, day)?;
    let granted = Spending::granted(requested, limit, spent);
    if let Some(granted) = granted {
        save(
            connection,
            owner,
            day,
            Spending {
                tokens: spent.tokens.saturating_add(granted.tokens),
                cost: spent.cost.saturating_add(granted.cost),
            },
        )?;
    }
    Ok(granted)
}

/// Replaces what was reserved by what was spent.
pub(super) fn settle(
    connection: &Connection,
    owner: &str,
    day: u64,
    reserved: Spending,
    used: Spending,
) -> Result<(), QueueError> {
    let spent = spent(connection, owner, day)?;
    let now =
        |spent: u64, reserved: u64, used: u64| spent.saturating_sub(reserved).saturating_add(used);
    save(
        connection,
        owner,
        day,
        Spending {
            tokens: now(spent.tokens, reserved.tokens, used.tokens),
            cost: now(spent.cost, reserved.cost, used.cost),
        },
    )
}

/// Removes the rows of days before this one.
pub(super) fn sweep(connection: &Connection, before: u64) -> Result<usize, QueueError> {
    const SQL: &str = "DELETE FROM spending WHERE day < ?1";
    execute(connection, SQL, [stored(before)])
}

fn save(connection: &Connection, owner: &str, day: u64, spent: Spending) -> Result<(), QueueError> {
    const SQL: &str = "INSERT OR REPLACE INTO spending (owner, day, tokens, cost) \
         VALUES (?1, ?2, ?3, ?4)";
    let amount = |value: u64| stored(value.min(i64::MAX.unsigned_abs()));
    let values = params![owner, stored(day), amount(spent.tokens), amount(spent.cost)];
    execute(connection, SQL, values).map(|_one| ())
}
