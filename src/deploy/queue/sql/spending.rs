//! The spending of an owner on a language model, by day.
//!
//! An update reserves what it may spend before it begins, and gives back what it did not spend. If
//! its process is killed in between, the reserved amount counts as spent: so no crash lets an owner
//! spend more than the limit.

use super::super::{QueueError, Spending};
use super::Tables;
use super::Value::Text;

/// Returns the spent and reserved amounts of a day.
pub(in super::super) fn spent(
    tables: &dyn Tables,
    owner: &str,
    day: u64,
) -> Result<Spending, QueueError> {
    const SQL: &str = "SELECT tokens, cost FROM spending WHERE owner = ?1 AND day = ?2";
    let found = tables.rows(SQL, &[Text(owner), day.into()])?;
    let Some(mut row) = found.into_iter().next() else {
        return Ok(Spending::default());
    };
    Ok(Spending {
        tokens: row.number()?,
        cost: row.number()?,
    })
}

/// Reserves as much of `requested` as the limit of the day leaves; `None` if nothing is left.
pub(in super::super) fn reserve(
    tables: &dyn Tables,
    owner: &str,
    day: u64,
    requested: Spending,
    limit: Spending,
) -> Result<Option<Spending>, QueueError> {
    let spent = spent(tables, owner, day)?;
    let granted = Spending::granted(requested, limit, spent);
    if let Some(granted) = granted {
        let total = Spending {
            tokens: spent.tokens.saturating_add(granted.tokens),
            cost: spent.cost.saturating_add(granted.cost),
        };
        save(tables, owner, day, total)?;
    }
    Ok(granted)
}

/// Replaces a reserved amount by the spent amount.
pub(in super::super) fn settle(
    tables: &dyn Tables,
    owner: &str,
    day: u64,
    reserved: Spending,
    used: Spending,
) -> Result<(), QueueError> {
    let spent = spent(tables, owner, day)?;
    let now =
        |spent: u64, reserved: u64, used: u64| spent.saturating_sub(reserved).saturating_add(used);
    let total = Spending {
        tokens: now(spent.tokens, reserved.tokens, used.tokens),
        cost: now(spent.cost, reserved.cost, used.cost),
    };
    save(tables, owner, day, total)
}

/// Removes the rows of days before this one.
pub(in super::super) fn sweep(tables: &dyn Tables, before: u64) -> Result<usize, QueueError> {
    const SQL: &str = "DELETE FROM spending WHERE day < ?1";
    tables.execute(SQL, &[before.into()])
}

fn save(tables: &dyn Tables, owner: &str, day: u64, spent: Spending) -> Result<(), QueueError> {
    const SQL: &str = "INSERT INTO spending (owner, day, tokens, cost) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (owner, day) DO UPDATE SET tokens = excluded.tokens, cost = excluded.cost";
    let values = [
        Text(owner),
        day.into(),
        spent.tokens.into(),
        spent.cost.into(),
    ];
    tables.execute(SQL, &values).map(|_one| ())
}
