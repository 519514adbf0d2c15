//! Votes whether a page was helpful, on the proxy path.

use std::net::IpAddr;
use std::sync::Arc;

use pingora::Result;
use pingora::proxy::Session;

use super::reads::Reads;
use super::request::{read_content, with_headers};
use super::{Gateway, too_many};
use crate::index::Served;
use crate::origin::{self, VOTE_BYTES_MAX};
use crate::response::{Problem, Response};

/// Responds to a request for the path of votes. `reads` runs what may block.
pub(super) async fn respond(
    session: &mut Session,
    gateway: &Gateway,
    served: Arc<Served>,
    client: IpAddr,
    reads: &Reads,
) -> Result<Response> {
    let rejected = with_headers(session.req_header(), |headers| {
        origin::reject_vote(&served, headers)
    });
    if let Some(rejected) = rejected {
        return Ok(rejected);
    }
    let Some(content) = read_content(session, VOTE_BYTES_MAX).await? else {
        let detail = format!("a vote has more than {VOTE_BYTES_MAX} bytes");
        return Ok(Problem::new(413, detail).response());
    };
    let request = session.req_header().clone();
    let clients = Arc::clone(&gateway.clients);
    let make = move || {
        let project = &served.site.project;
        let refuse = |page: &str| clients.vote(client, project, page).err().map(too_many);
        with_headers(&request, |headers| {
            origin::vote(&served, headers, &content, refuse)
        })
    };
    let made = reads.run(make);
    let failed = || Problem::new(500, "this vote cannot be counted").response();
    Ok(made.await.unwrap_or_else(failed))
}
