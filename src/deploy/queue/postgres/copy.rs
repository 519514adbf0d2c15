//! Copying all of a queue, and putting a copy back.
//!
//! A copy is lines of text. The first one is JSON: whose queue it is, and the version of its
//! tables. Each further one is the name of a table, a space, and a row as JSON. The rows are of one
//! moment, and writers are not held up.

use serde_json::{Value as Json, json};

use super::super::QueueError;
use super::{Config, Postgres, SCHEMA, make};
use crate::database::{DatabaseError, Link, Promises, Rejection, Value, check_schema};

/// The tables, those first that others refer to.
const TABLES: [&str; 7] = [
    "projects",
    "updates",
    "logs",
    "idempotency_keys",
    "spending",
    "owners",
    "totals",
];
/// How many rows are fetched or stored at once.
const ROWS: usize = 500;

impl Postgres {
    /// Checks whether the database can be used. Nothing is changed.
    ///
    /// # Errors
    ///
    /// Why it cannot be used; [`QueueError::Unavailable`] when it cannot be reached now.
    pub fn check(config: &Config, service: &str) -> Result<(), QueueError> {
        let link = Link::open(config, &SCHEMA)?;
        Promises::ask(&link, config, &SCHEMA)?;
        Ok(check_schema(&link, &SCHEMA, service)?)
    }

    /// Copies the queue, as it is at one moment. `add` gets each line, without its end.
    ///
    /// # Errors
    ///
    /// As [`Postgres::check`], or the error of `add`.
    pub fn copy<E: From<QueueError>>(
        config: &Config,
        service: &str,
        mut add: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let link = Link::open(config, &SCHEMA).map_err(QueueError::from)?;
        let batch = |sql: &str| link.batch(sql).map_err(QueueError::from);
        check_schema(&link, &SCHEMA, service).map_err(QueueError::from)?;
        let header = json!({ "service": service, "version": SCHEMA.version });
        add(&header.to_string())?;
        batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        for table in TABLES {
            batch(&format!(
                "DECLARE {table}_copy NO SCROLL CURSOR FOR SELECT row_to_json(t)::text FROM {table} t"
            ))?;
            let fetch = format!("FETCH {ROWS} FROM {table}_copy");
            loop {
                let rows = link.rows(&fetch, &[]).map_err(QueueError::from)?;
                if rows.is_empty() {
                    break;
                }
                for mut row in rows {
                    let row = row.text().map_err(QueueError::from)?;
                    add(&format!("{table} {row}"))?;
                }
            }
            batch(&format!("CLOSE {table}_copy"))?;
        }
        batch("COMMIT")?;
        Ok(())
    }

    /// Returns whether the database has a queue with anything in it.
    ///
    /// # Errors
    ///
    /// As [`Postgres::init`].
    pub fn is_occupied(config: &Config, service: &str) -> Result<bool, QueueError> {
        let link = Link::open(config, &SCHEMA)?;
        Promises::ask(&link, config, &SCHEMA)?;
        match check_schema(&link, &SCHEMA, service) {
            Ok(()) => {}
            Err(DatabaseError::Rejected(Rejection::NoSchema { .. })) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let found = link.rows("SELECT EXISTS (SELECT 1 FROM projects)", &[])?;
        let mut found = found.into_iter();
        let is_occupied = found.next().map(|mut row| row.number()).transpose()?;
        Ok(is_occupied == Some(1))
    }

    /// Moves the queue of the database aside: its schema gets a new name, which is returned.
    ///
    /// # Errors
    ///
    /// As [`Postgres::init`]; also when there is a schema of that name already.
    pub fn move_aside(config: &Config, suffix: &str) -> Result<String, QueueError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric();
        let suffix: String = suffix.chars().filter(|c| is_plain(*c)).collect();
        let name = format!("waypost_queue_before_{}", suffix.to_ascii_lowercase());
        let link = Link::open(config, &SCHEMA)?;
        link.batch(&format!("ALTER SCHEMA waypost_queue RENAME TO {name}"))?;
        Ok(name)
    }

    /// Puts a copy in place of all that the queue has; the tables are made if they do not exist.
    /// Either all of it is stored or nothing. `next` returns the lines of [`Postgres::copy`], and
    /// `None` after the last.
    ///
    /// # Errors
    ///
    /// As [`Postgres::init`], the error of `next`, or [`QueueError::Corrupt`].
    pub fn put_back<E: From<QueueError>>(
        config: &Config,
        service: &str,
        mut next: impl FnMut() -> Result<Option<String>, E>,
    ) -> Result<(), E> {
        let corrupt = |why: &str| QueueError::Corrupt(format!("the copy of the queue: {why}"));
        let first = next()?.ok_or_else(|| corrupt("it is empty"))?;
        let header: Json =
            serde_json::from_str(&first).map_err(|error| corrupt(&error.to_string()))?;
        let version = header["version"].as_u64();
        let version = version.and_then(|version| u32::try_from(version).ok());
        let found = version.ok_or_else(|| corrupt("it has no version"))?;
        if found > SCHEMA.version {
            let known = SCHEMA.version;
            return Err(QueueError::Newer { found, known }.into());
        }
        let link = Link::open(config, &SCHEMA).map_err(QueueError::from)?;
        let batch = |sql: &str| link.batch(sql).map_err(QueueError::from);
        Promises::ask(&link, config, &SCHEMA).map_err(QueueError::from)?;
        make(&link, service, false).map_err(QueueError::from)?;
        batch("BEGIN")?;
        // The triggers count and order rows that are new; these have been counted.
        batch("ALTER TABLE updates DISABLE TRIGGER USER")?;
        batch(&format!("TRUNCATE {}", TABLES.join(", ")))?;
        let (mut table, mut rows) = ("", Vec::new());
        while let Some(line) = next()? {
            let (name, row) = line.split_once(' ').unwrap_or((&line, ""));
            let known = TABLES.into_iter().find(|known| *known == name);
            let of = known.ok_or_else(|| corrupt(&format!("a row of the table {name:?}")))?;
            if of != table || rows.len() >= ROWS {
                store(&link, table, &mut rows)?;
                table = of;
            }
            rows.push(row.to_owned());
        }
        store(&link, table, &mut rows)?;
        // References are checked at the end of a transaction otherwise, and then no table can be
        // altered.
        batch("SET CONSTRAINTS ALL IMMEDIATE; ALTER TABLE updates ENABLE TRIGGER USER; COMMIT")?;
        Ok(())
    }
}

/// Stores rows in their table.
fn store(link: &Link, table: &str, rows: &mut Vec<String>) -> Result<(), QueueError> {
    if rows.is_empty() {
        return Ok(());
    }
    let all = format!("[{}]", rows.join(","));
    rows.clear();
    let sql = format!(
        "INSERT INTO {table} SELECT * FROM json_populate_recordset(NULL::{table}, ?1::text::json)"
    );
    link.execute(&sql, &[Value::Text(&all)])?;
    Ok(())
}
