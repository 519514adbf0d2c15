//! Reading and writing an update as a row.
//!
//! The checks of the table cannot express everything. A row that is not a valid [`Update`] is an
//! error ([`QueueError::Corrupt`]); no value is guessed.

use super::super::super::update::{Holder, Source, State, Update, WorkerId};
use super::super::super::{StatusId, Timestamp};
use super::super::QueueError;
use super::Value::{self, Integer, Text};
use super::{Cells, Tables, stored};
use crate::release::ReleaseId;
use crate::site::ProjectId;

/// Every column, in the order of [`read`].
const COLUMNS: &str = "id, project, owner, subdomain, source, generation, created_at, attempts, \
     state, due_at, worker, epoch, superseded_by, ended_at, release, visible_at, dead_letter, summary, commit_json, token";

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

/// Inserts an update without an attempt.
pub(super) fn insert(tables: &dyn Tables, update: &Update) -> Result<(), QueueError> {
    const SQL: &str = "INSERT INTO updates (id, project, owner, subdomain, source, generation, \
         created_at, attempts, state, due_at, superseded_by, ended_at, summary) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    let columns = Columns::of(&update.state);
    let values = [
        Text(update.id.as_str()),
        Text(update.project.as_str()),
        Text(&update.owner),
        Text(&update.subdomain),
        Text(update.source.as_str()),
        update.generation.into(),
        update.created_at.into(),
        Integer(update.attempts.into()),
        Text(update.state.name()),
        columns.due_at.into(),
        columns.superseded_by.into(),
        columns.ended_at.into(),
        Text(&update.summary),
    ];
    tables.execute(SQL, &values).map(|_one| ())
}

/// Writes the columns of an update that can change.
pub(super) fn save(tables: &dyn Tables, update: &Update) -> Result<(), QueueError> {
    const SQL: &str = "UPDATE updates SET generation = ?2, attempts = ?3, state = ?4, due_at = ?5, \
         worker = ?6, epoch = ?7, superseded_by = ?8, ended_at = ?9, release = ?10, \
         visible_at = ?11, dead_letter = ?12, summary = ?13, commit_json = ?14, token = ?15 \
         WHERE id = ?1";
    let columns = Columns::of(&update.state);
    let commit = update.commit.as_ref().map(serde_json::to_string);
    let commit = commit.transpose().map_err(QueueError::unavailable)?;
    let values = [
        Text(update.id.as_str()),
        update.generation.into(),
        Integer(update.attempts.into()),
        Text(update.state.name()),
        columns.due_at.into(),
        columns.worker.into(),
        columns.epoch.into(),
        columns.superseded_by.into(),
        columns.ended_at.into(),
        columns.release.as_deref().into(),
        columns.visible_at.into(),
        Integer(columns.dead_letter.into()),
        Text(&update.summary),
        commit.as_deref().into(),
        update.token.as_deref().into(),
    ];
    tables.execute(SQL, &values).map(|_one| ())
}

/// Returns the first update of a query, given from its `WHERE` on.
pub(super) fn find(
    tables: &dyn Tables,
    tail: &str,
    values: &[Value<'_>],
) -> Result<Option<Update>, QueueError> {
    Ok(list(tables, tail, values)?.into_iter().next())
}

/// Returns all updates of a query, given from its `WHERE` on.
pub(super) fn list(
    tables: &dyn Tables,
    tail: &str,
    values: &[Value<'_>],
) -> Result<Vec<Update>, QueueError> {
    let sql = format!("SELECT {COLUMNS} FROM updates {tail}");
    let rows = tables.rows(&sql, values)?.into_iter();
    rows.map(read).collect()
}

/// Returns the first update of a query that is to be changed.
pub(super) fn find_locked(
    tables: &dyn Tables,
    tail: &str,
    values: &[Value<'_>],
) -> Result<Option<Update>, QueueError> {
    Ok(list_locked(tables, tail, values)?.into_iter().next())
}

/// Returns all updates of a query that are to be changed.
pub(super) fn list_locked(
    tables: &dyn Tables,
    tail: &str,
    values: &[Value<'_>],
) -> Result<Vec<Update>, QueueError> {
    list(tables, &format!("{tail}{}", tables.locking()), values)
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

fn read(mut row: Cells) -> Result<Update, QueueError> {
    let id = row.text()?;
    let corrupt = |what: &str| QueueError::Corrupt(format!("the {what} of update {id:?}"));
    let project = row.text()?;
    let (owner, subdomain) = (row.text()?, row.text()?);
    let source = row.text()?;
    let (generation, created_at) = (row.number()?, row.number()?);
    let attempts = u32::try_from(row.number()?).map_err(|_large| corrupt("attempts"))?;
    let state = state(&mut row)?.ok_or_else(|| corrupt("state"))?;
    let summary = row.text()?;
    let commit = row.next_text()?.map(|json| serde_json::from_str(&json));
    let token = row.next_text()?;
    Ok(Update {
        project: ProjectId::parse(&project).map_err(|_invalid| corrupt("project"))?,
        owner: owner.into(),
        subdomain: subdomain.into(),
        source: Source::parse(&source).ok_or_else(|| corrupt("source"))?,
        generation,
        created_at: Timestamp::from_millis(created_at),
        attempts,
        state,
        summary: summary.into(),
        commit: commit.transpose().map_err(|_invalid| corrupt("commit"))?,
        token: token.map(Into::into),
        id: StatusId::parse(&id).map_err(|_invalid| corrupt("id"))?,
    })
}

/// Reads a state from its columns; `None` when they are not valid.
fn state(row: &mut Cells) -> Result<Option<State>, QueueError> {
    let name = row.text()?;
    let due_at = row.next_number()?.map(Timestamp::from_millis);
    let worker = row.next_text()?;
    let epoch = row.next_number()?;
    let superseded_by = row.next_text()?;
    let ended_at = row.next_number()?.map(Timestamp::from_millis);
    let release = row.next_text()?;
    let visible_at = row.next_number()?.map(Timestamp::from_millis);
    let dead_letter = row.number()? != 0;
    let state = || {
        Some(match &*name {
            "queued" => State::Queued { ready_at: due_at? },
            "superseded" => State::Superseded {
                by: StatusId::parse(&superseded_by?).ok()?,
            },
            "in_progress" => State::InProgress(Holder {
                worker: WorkerId::new(&worker?),
                epoch: epoch?,
                lease_until: due_at?,
            }),
            "success" => State::Success {
                ended_at: ended_at?,
                release: ReleaseId::parse(&release?).ok()?,
                epoch: epoch?,
                visible_at,
            },
            "failure" => State::Failure {
                ended_at: ended_at?,
                dead_letter,
            },
            _ => return None,
        })
    };
    Ok(state())
}
