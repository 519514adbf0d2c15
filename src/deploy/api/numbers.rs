//! The call for the numbers of a site.

use super::page::Query;
use super::sites::object;
use super::{Api, ErrorResponse, error_response};
use crate::clock::Day;
use crate::deploy::sites::Caller;
use crate::response::Response;
use crate::site::ProjectId;

/// More pages than a day has.
const AFTER_MAX: u64 = 1_000_000;

impl Api {
    pub(super) async fn numbers(
        &self,
        query: &Query,
        caller: Caller,
        project: ProjectId,
    ) -> Result<Response, ErrorResponse> {
        let limit = query.limit()?;
        let skip = query.skip(AFTER_MAX)?;
        let days = (day(query, "from")?, day(query, "to")?);
        let path = format!("/v1/sites/{project}/numbers");
        let asked = self.ask(move |sites| {
            let summary = sites.numbers(&caller, &project, days)?;
            // Large lists are ordered on a thread that may block.
            Ok(summary.to_json(skip, limit))
        });
        let (mut numbers, has_more) = asked.await?;
        let next = has_more.then(|| query.next(&path, "after", &(skip + limit).to_string()));
        numbers["next"] = next.into();
        Ok(object(200, &numbers))
    }
}

fn day(query: &Query, name: &str) -> Result<Option<Day>, ErrorResponse> {
    let day = query.get(name).map(Day::parse).transpose();
    day.map_err(|why| {
        let detail = format!("the parameter {name:?} of the query: {why}");
        error_response(400, &detail)
    })
}
