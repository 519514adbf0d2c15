//! When a release became visible, and which promotion of a project is served.
//!
//! A worker without listeners does not know when its release is served, and a gateway may
//! serve a release before its worker has recorded the end of the update. So the promotion that
//! is served is stored with the project, and successes are marked as visible on either event.

use rusqlite::{Connection, OptionalExtension, params};

use super::super::super::Timestamp;
use super::super::{QueueError, Served};
use super::row::{execute, list, save, stored};
use crate::site::ProjectId;
use crate::store::Fence;

/// Returns the promotion of a project that a gateway serves, if one has reported it.
pub(super) fn served(
    connection: &Connection,
    project: &ProjectId,
) -> Result<Option<Served>, QueueError> {
    const SQL: &str = "SELECT served_generation, served_epoch, served_at FROM projects \
         WHERE project = ?1 AND served_at IS NOT NULL";
    connection
        .prepare_cached(SQL)
        .and_then(|mut statement| {
            let served = |row: &rusqlite::Row<'_>| {
                Ok(Served {
                    fence: Fence {
                        generation: row.get(0)?,
                        epoch: row.get(1)?,
                    },
                    since: Timestamp::from_millis(row.get(2)?),
                })
            };
            statement.query_row([project.as_str()], served).optional()
        })
        .map_err(QueueError::unavailable)
}

/// Records the promotion that a gateway serves, and marks successes as visible.
pub(super) fn record_served(
    connection: &Connection,
    project: &ProjectId,
    fence: Fence,
    now: Timestamp,
) -> Result<(), QueueError> {
    const RECORD: &str = "UPDATE projects SET served_generation = ?2, served_epoch = ?3, \
         served_at = ?4 WHERE project = ?1";
    const WAITING: &str = "WHERE project = ?1 AND state = 'success' AND visible_at IS NULL";
    let served = Served::advance(served(connection, project)?, fence, now);
    let values = params![
        project.as_str(),
        stored(served.fence.generation),
        stored(served.fence.epoch),
        stored(served.since.millis()),
    ];
    execute(connection, RECORD, values)?;
    for mut update in list(connection, WAITING, [project.as_str()])? {
        served.mark_visible(&mut update);
        save(connection, &update)?;
    }
    Ok(())
}

/// Lists the projects with a success that no gateway has reported as visible.
pub(super) fn not_yet_visible(connection: &Connection) -> Result<Vec<ProjectId>, QueueError> {
    const SQL: &str = "SELECT DISTINCT project FROM updates WHERE state = 'success' \
         AND visible_at IS NULL ORDER BY project";
    let read = || -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare_cached(SQL)?;
        let projects = statement.query_map([], |row| row.get(0))?;
        projects.collect()
    };
    let parse = |project: String| {
        ProjectId::parse(&project)
            .map_err(|_invalid| QueueError::Corrupt(format!("the project {project:?}")))
    };
    let projects = read().map_err(QueueError::unavailable)?;
    projects.into_iter().map(parse).collect()
}
