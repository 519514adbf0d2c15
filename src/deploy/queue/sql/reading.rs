//! What callers and operators read.

use super::super::super::record::Record;
use super::super::super::update::{State, Update};
use super::super::super::{StatusId, Timestamp};
use super::super::{Depth, Policy, QueueError};
use super::Tables;
use super::Value::Text;
use super::row::{find, list};
use crate::site::ProjectId;

/// Returns whether an update is due.
pub(in super::super) fn has_due(tables: &dyn Tables, now: Timestamp) -> Result<bool, QueueError> {
    const DUE: &str = "WHERE due_at <= ?1 ORDER BY due_at LIMIT 1";
    Ok(find(tables, DUE, &[now.into()])?.is_some())
}

/// Returns whether an update has a time that [`Policy::correct`] changes.
pub(in super::super) fn has_wrong_times(
    tables: &dyn Tables,
    policy: &Policy,
    now: Timestamp,
) -> Result<bool, QueueError> {
    const FUTURE: &str = "WHERE due_at > ?1";
    let found = list(tables, FUTURE, &[policy.wrong_from(now).into()])?;
    let is_wrong = |mut update: Update| policy.correct(&mut update, now);
    Ok(found.into_iter().any(is_wrong))
}

/// Lists the updates that are being built.
pub(in super::super) fn running(tables: &dyn Tables) -> Result<Vec<Update>, QueueError> {
    list(tables, "WHERE state = 'in_progress'", &[])
}

/// Reads the record of an update. All its statements must see one state of the tables, so that the
/// newer update does not end between them.
pub(in super::super) fn record(
    tables: &dyn Tables,
    id: &StatusId,
) -> Result<Option<Record>, QueueError> {
    let Some(update) = find(tables, "WHERE id = ?1", &[Text(id.as_str())])? else {
        return Ok(None);
    };
    let mut logs = logs(tables, id)?;
    let mut newer = None;
    if let State::Superseded { by: id } = &update.state {
        let found = find(tables, "WHERE id = ?1", &[Text(id.as_str())])?
            .ok_or_else(|| QueueError::Corrupt(format!("the update {id} is missing")))?;
        logs.extend(self::logs(tables, id)?);
        newer = Some(Box::new(found));
    }
    Ok(Some(Record {
        update,
        newer,
        logs,
    }))
}

pub(in super::super) fn dead_letters(
    tables: &dyn Tables,
    limit: u32,
) -> Result<Vec<Update>, QueueError> {
    const TAIL: &str = "WHERE dead_letter = 1 ORDER BY id DESC LIMIT ?1";
    list(tables, TAIL, &[u64::from(limit).into()])
}

pub(in super::super) fn recent(
    tables: &dyn Tables,
    project: &ProjectId,
    limit: u32,
) -> Result<Vec<Update>, QueueError> {
    const TAIL: &str = "WHERE project = ?1 ORDER BY id DESC LIMIT ?2";
    let values = [Text(project.as_str()), u64::from(limit).into()];
    list(tables, TAIL, &values)
}

pub(in super::super) fn generation(
    tables: &dyn Tables,
    project: &ProjectId,
) -> Result<u64, QueueError> {
    const SQL: &str = "SELECT generation FROM projects WHERE project = ?1";
    let found = tables.rows(SQL, &[Text(project.as_str())])?;
    found
        .into_iter()
        .next()
        .map_or(Ok(0), |mut row| Ok(row.number()?))
}

pub(in super::super) fn depth(tables: &dyn Tables) -> Result<Depth, QueueError> {
    const SQL: &str = "SELECT \
         (SELECT updates FROM totals WHERE state = 'queued'), \
         (SELECT updates FROM totals WHERE state = 'in_progress'), \
         (SELECT count(*) FROM updates WHERE dead_letter = 1)";
    let mut depth = Depth::default();
    for mut row in tables.rows(SQL, &[])? {
        depth = Depth {
            queued: row.number()?,
            in_progress: row.number()?,
            dead_letters: row.number()?,
        };
    }
    Ok(depth)
}

fn logs(tables: &dyn Tables, id: &StatusId) -> Result<Vec<Box<str>>, QueueError> {
    const SQL: &str = "SELECT line FROM logs WHERE id = ?1 ORDER BY seq";
    let lines = tables.rows(SQL, &[Text(id.as_str())])?.into_iter();
    lines.map(|mut row| Ok(row.text()?.into())).collect()
}
