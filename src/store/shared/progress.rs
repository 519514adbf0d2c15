//! How far the edges of each gateway are: an update is visible when the edges of all gateways have
//! it.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

use serde_json::Value;

use super::lease::millis;
use super::{Shared, list, store_error};
use crate::database::{DatabaseError, READ, Repeat, Value as Cell, WRITE};
use crate::site::ProjectId;
use crate::store::FileError;

/// How long a gateway counts as running without saying so again.
const GATEWAY_TIME: Duration = Duration::from_secs(10);

/// Projects, and the edge that each waits for.
pub type WaitingProjects = BTreeMap<ProjectId, String>;

/// Another gateway of the store.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherGateway {
    /// The name of its process.
    pub name: String,
    /// From when on it counts as gone, in milliseconds since the Unix epoch. It grows as long as the
    /// process runs.
    pub ends_at: u64,
    /// The edges that follow it, as it describes them.
    pub edges: Vec<Value>,
}

/// A row: the gateway, its revision, and the projects that wait.
type Row = (String, u64, String);

impl Shared {
    /// Returns the revision up to which this process has followed the changes into its cache.
    #[must_use]
    pub fn followed(&self) -> u64 {
        let followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.revision
    }

    /// Says that all edges of a gateway have the releases up to a revision, except those that wait.
    /// With `edges`, also which edges follow it.
    ///
    /// # Errors
    ///
    /// When the database cannot be written.
    pub fn report_edges(
        &self,
        gateway: &str,
        revision: u64,
        waiting: &WaitingProjects,
        edges: Option<&[Value]>,
    ) -> Result<(), FileError> {
        const REPORT: &str = "INSERT INTO edge_progress VALUES (?1, ?2, ?3, ?4, \
             coalesce(?5, '[]')) ON CONFLICT (gateway) DO UPDATE SET \
             revision = excluded.revision, waiting = excluded.waiting, \
             ends_at = excluded.ends_at, edges = coalesce(?5, edge_progress.edges)";
        let waiting: BTreeMap<&str, &String> = waiting
            .iter()
            .map(|(project, edge)| (project.as_str(), edge))
            .collect();
        let waiting = serde_json::to_string(&waiting).expect("texts are JSON");
        let edges = edges.map(|edges| Value::from(edges).to_string());
        let reported = self.database.transact(WRITE, Repeat::Always, |link, now| {
            let ends_at = now + millis(GATEWAY_TIME);
            let values = [
                Cell::Text(gateway),
                revision.into(),
                Cell::Text(&waiting),
                ends_at.into(),
                edges.as_deref().map_or(Cell::Null, Cell::Text),
            ];
            link.execute(REPORT, &values)
        });
        reported.map(|_one| ()).map_err(store_error)
    }

    /// Returns the other gateways that run or have just ended, each with the edges that follow it.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn edges_elsewhere(&self, gateway: &str) -> Result<Vec<OtherGateway>, FileError> {
        const OTHERS: &str = "SELECT gateway, ends_at, edges FROM edge_progress \
             WHERE gateway <> ?1 AND ends_at > ?2";
        let read = self.database.transact(READ, Repeat::Always, |link, now| {
            let rows = link.rows(OTHERS, &[Cell::Text(gateway), now.into()])?;
            rows.into_iter()
                .map(|mut row| {
                    let (name, ends_at, edges) = (row.text()?, row.number()?, row.text()?);
                    let edges = serde_json::from_str(&edges).unwrap_or_default();
                    Ok(OtherGateway {
                        name,
                        ends_at,
                        edges,
                    })
                })
                .collect::<Result<Vec<_>, DatabaseError>>()
        });
        read.map_err(store_error)
    }

    /// Returns those of these projects whose last change is not on all edges of every other gateway
    /// that runs, with what each waits for.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn wait_for_edges(
        &self,
        gateway: &str,
        projects: &[ProjectId],
    ) -> Result<WaitingProjects, FileError> {
        const OTHERS: &str = "SELECT gateway, revision, waiting FROM edge_progress \
             WHERE gateway <> ?1 AND ends_at > ?2";
        const CHANGED: &str = "SELECT project, max(revision) FROM changes WHERE project IN \
             (SELECT json_array_elements_text(?1::text::json)) GROUP BY project";
        if projects.is_empty() {
            return Ok(BTreeMap::new());
        }
        let names = list(projects);
        let read = self.database.transact(READ, Repeat::Always, |link, now| {
            let rows = link.rows(OTHERS, &[Cell::Text(gateway), now.into()])?;
            let others: Vec<Row> = rows
                .into_iter()
                .map(|mut row| Ok((row.text()?, row.number()?, row.text()?)))
                .collect::<Result<_, DatabaseError>>()?;
            if others.is_empty() {
                return Ok((others, BTreeMap::new()));
            }
            let rows = link.rows(CHANGED, &[Cell::Text(&names)])?.into_iter();
            let changed: BTreeMap<String, u64> = rows
                .map(|mut row| Ok((row.text()?, row.number()?)))
                .collect::<Result<_, DatabaseError>>()?;
            Ok((others, changed))
        });
        let (others, changed) = read.map_err(store_error)?;
        let mut waiting = BTreeMap::new();
        for (gateway, revision, of_gateway) in others {
            let of_gateway: BTreeMap<String, String> =
                serde_json::from_str(&of_gateway).unwrap_or_default();
            for project in projects {
                // What is not kept any more was changed long ago.
                let change = changed.get(project.as_str()).copied().unwrap_or(0);
                let edge = match of_gateway.get(project.as_str()) {
                    Some(edge) => edge,
                    None if revision < change => "its edges",
                    None => continue,
                };
                waiting.insert(project.clone(), format!("{edge}, of the gateway {gateway}"));
            }
        }
        Ok(waiting)
    }
}
