//! When a release became visible, and which promotion of a project is served.
//!
//! A worker without listeners does not know when its release is served, and a gateway may
//! serve a release before its worker has recorded the end of the update. So the promotion that
//! is served is stored with the project, and successes are marked as visible on either event.

use super::super::super::Timestamp;
use super::super::{QueueError, Served};
use super::Tables;
use super::Value::Text;
use super::row::{list_locked, save};
use crate::site::ProjectId;
use crate::store::Fence;

/// Returns the promotion of a project that a gateway serves, if one has reported it.
pub(super) fn served(
    tables: &dyn Tables,
    project: &ProjectId,
) -> Result<Option<Served>, QueueError> {
    const SQL: &str = "SELECT served_generation, served_epoch, served_at FROM projects \
         WHERE project = ?1 AND served_at IS NOT NULL";
    let found = tables.rows(SQL, &[Text(project.as_str())])?;
    let Some(mut row) = found.into_iter().next() else {
        return Ok(None);
    };
    Ok(Some(Served {
        fence: Fence {
            generation: row.number()?,
            epoch: row.number()?,
        },
        since: Timestamp::from_millis(row.number()?),
    }))
}

/// Records the promotion that a gateway serves, and marks successes as visible.
pub(in super::super) fn record_served(
    tables: &dyn Tables,
    project: &ProjectId,
    fence: Fence,
    now: Timestamp,
) -> Result<(), QueueError> {
    const RECORD: &str = "UPDATE projects SET served_generation = ?2, served_epoch = ?3, \
         served_at = ?4 WHERE project = ?1";
    const WAITING: &str = "WHERE project = ?1 AND state = 'success' AND visible_at IS NULL";
    let served = Served::advance(served(tables, project)?, fence, now);
    let values = [
        Text(project.as_str()),
        served.fence.generation.into(),
        served.fence.epoch.into(),
        served.since.into(),
    ];
    tables.execute(RECORD, &values)?;
    for mut update in list_locked(tables, WAITING, &[Text(project.as_str())])? {
        served.mark_visible(&mut update);
        save(tables, &update)?;
    }
    Ok(())
}

/// Lists the projects with a success that no gateway has reported as visible.
pub(in super::super) fn not_yet_visible(tables: &dyn Tables) -> Result<Vec<ProjectId>, QueueError> {
    const SQL: &str = "SELECT DISTINCT project FROM updates WHERE state = 'success' \
         AND visible_at IS NULL ORDER BY project";
    let parse = |project: String| {
        ProjectId::parse(&project)
            .map_err(|_invalid| QueueError::Corrupt(format!("the project {project:?}")))
    };
    let projects = tables.rows(SQL, &[])?.into_iter();
    projects.map(|mut row| parse(row.text()?)).collect()
}
