//! Reading and writing an update as a row.
//!
//! The checks of the table cannot express everything. A row that is not a valid [`Update`] is an
//! error ([`QueueError::Corrupt`]); no value is guessed.

use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::super::super::update::{Holder, Source, State, Update, WorkerId};
use super::super::super::{StatusId, Timestamp};
use super::super::QueueError;
use crate::release::ReleaseId;
use crate::site::ProjectId;

/// Every column, in the order of [`read`].
const COLUMNS: &str = "id, project, owner, subdomain, source, generation, created_at, attempts, \
     state, due_at, worker, epoch, superseded_by, ended_at, release, visible_at, dead_letter, summary, commit_json";

/// The columns whose values depend on the state.
#[derive(Default)]
struct Columns<'a> {
    due_at: Option<i64>,
    worker: Option<&'a str>,
    epoch: Option<i64>,
    superseded_by: Option<&'a str>,
    ended_at: Option<i64>,
    release: Option<String>,
    visible_at: Option<i64>,
    dead_letter: bool,
}

/// Inserts a new update.
pub(super) fn insert(connection: &Connection, update: &Update) -> Result<(), QueueError> {
    const SQL: &str = "INSERT INTO updates (id, project, owner, subdomain, source, generation, \
         created_at, attempts, state, due_at, summary) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    let values = params![
        update.id.as_str(),
        update.project.as_str(),
        update.owner,
        update.subdomain,
        update.source.as_str(),
        stored(update.generation),
        stored(update.created_at.millis()),
        update.attempts,
        update.state.name(),
        Columns::of(&update.state).due_at,
        update.summary,
    ];
    execute(connection, SQL, values).map(|_one| ())
}

/// Writes the columns of an update that can change.
pub(super) fn save(connection: &Connection, update: &Update) -> Result<(), QueueError> {
    const SQL: &str = "UPDATE updates SET generation = ?2, attempts = ?3, state = ?4, due_at = ?5, \
         worker = ?6, epoch = ?7, superseded_by = ?8, ended_at = ?9, release = ?10, visible_at = ?11, \
         dead_letter = ?12, summary = ?13, commit_json = ?14 WHERE id = ?1";
    let columns = Columns::of(&update.state);
    let commit = update.commit.as_ref().map(serde_json::to_string);
    let commit = commit.transpose().map_err(QueueError::unavailable)?;
    let values = params![
        update.id.as_str(),
        stored(update.generation),
        update.attempts,
        update.state.name(),
        columns.due_at,
        columns.worker,
        columns.epoch,
        columns.superseded_by,
        columns.ended_at,
        columns.release,
        columns.visible_at,
        columns.dead_letter,
        update.summary,
        commit,
    ];
    execute(connection, SQL, values).map(|_one| ())
}

/// Returns the first update of a query, given from its `WHERE` on.
pub(super) fn find(
    connection: &Connection,
    tail: &str,
    values: impl Params,
) -> Result<Option<Update>, QueueError> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM updates {tail}"))
        .and_then(|mut statement| statement.query_row(values, |row| Ok(read(row))).optional())
        .map_err(QueueError::unavailable)?
        .transpose()
}

/// Returns all updates of a query, given from its `WHERE` on.
pub(super) fn list(
    connection: &Connection,
    tail: &str,
    values: impl Params,
) -> Result<Vec<Update>, QueueError> {
    let mut statement = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM updates {tail}"))
        .map_err(QueueError::unavailable)?;
    let rows = statement
        .query_map(values, |row| Ok(read(row)))
        .map_err(QueueError::unavailable)?;
    rows.map(|row| row.map_err(QueueError::unavailable)?)
        .collect()
}

/// Runs a statement and returns how many rows it changed.
pub(super) fn execute(
    connection: &Connection,
    sql: &str,
    values: impl Params,
) -> Result<usize, QueueError> {
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(values))
        .map_err(QueueError::unavailable)
}

/// Converts a number for SQLite, whose integers are signed; a larger one becomes the largest.
pub(super) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

// === impl Columns ===

impl<'a> Columns<'a> {
    fn of(state: &'a State) -> Self {
        let millis = |time: &Timestamp| stored(time.millis());
        match state {
            State::Queued { ready_at } => Self {
                due_at: Some(millis(ready_at)),
                ..Self::default()
            },
            State::Superseded { by } => Self {
                superseded_by: Some(by.as_str()),
                ..Self::default()
            },
            State::InProgress(holder) => Self {
                due_at: Some(millis(&holder.lease_until)),
                worker: Some(holder.worker.as_str()),
                epoch: Some(stored(holder.epoch)),
                ..Self::default()
            },
            State::Success {
                ended_at,
                release,
                epoch,
                visible_at,
            } => Self {
                ended_at: Some(millis(ended_at)),
                epoch: Some(stored(*epoch)),
                release: Some(release.to_string()),
                visible_at: visible_at.as_ref().map(millis),
                ..Self::default()
            },
            State::Failure {
                ended_at,
                dead_letter,
            } => Self {
                ended_at: Some(millis(ended_at)),
                dead_letter: *dead_letter,
                ..Self::default()
            },
        }
    }
}

fn read(row: &Row<'_>) -> Result<Update, QueueError> {
    let text = |column: &str| {
        row.get::<_, String>(column)
            .map_err(QueueError::unavailable)
    };
    let number = |column: &str| row.get::<_, u64>(column).map_err(QueueError::unavailable);
    let id = text("id")?;
    let corrupt = |what: &str| QueueError::Corrupt(format!("the {what} of update {id:?}"));
    let commit: Option<String> = row.get("commit_json").map_err(QueueError::unavailable)?;
    let commit = commit.map(|json| serde_json::from_str(&json));
    Ok(Update {
        id: StatusId::parse(&id).map_err(|_invalid| corrupt("id"))?,
        project: ProjectId::parse(&text("project")?).map_err(|_invalid| corrupt("project"))?,
        owner: text("owner")?.into(),
        subdomain: text("subdomain")?.into(),
        source: Source::parse(&text("source")?).ok_or_else(|| corrupt("source"))?,
        generation: number("generation")?,
        created_at: Timestamp::from_millis(number("created_at")?),
        attempts: row.get("attempts").map_err(QueueError::unavailable)?,
        state: state(row, &text("state")?)
            .map_err(QueueError::unavailable)?
            .ok_or_else(|| corrupt("state"))?,
        summary: text("summary")?.into(),
        commit: commit.transpose().map_err(|_invalid| corrupt("commit"))?,
    })
}

/// Reads a state from its columns; `None` when they are not valid.
fn state(row: &Row<'_>, name: &str) -> rusqlite::Result<Option<State>> {
    let time = |column: &str| row.get(column).map(Timestamp::from_millis);
    Ok(match name {
        "queued" => Some(State::Queued {
            ready_at: time("due_at")?,
        }),
        "superseded" => StatusId::parse(&row.get::<_, String>("superseded_by")?)
            .ok()
            .map(|by| State::Superseded { by }),
        "in_progress" => Some(State::InProgress(Holder {
            worker: WorkerId::new(&row.get::<_, String>("worker")?),
            epoch: row.get("epoch")?,
            lease_until: time("due_at")?,
        })),
        "success" => {
            let visible_at: Option<u64> = row.get("visible_at")?;
            let ended_at = time("ended_at")?;
            let epoch = row.get("epoch")?;
            ReleaseId::parse(&row.get::<_, String>("release")?)
                .ok()
                .map(|release| State::Success {
                    ended_at,
                    release,
                    epoch,
                    visible_at: visible_at.map(Timestamp::from_millis),
                })
        }
        "failure" => Some(State::Failure {
            ended_at: time("ended_at")?,
            dead_letter: row.get("dead_letter")?,
        }),
        _ => None,
    })
}
