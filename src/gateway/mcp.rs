//! Messages to the MCP servers of sites, on both paths.
//!
//! A message that is wholly read with its head, and needs nothing but memory, gets its response on
//! the fast path ([`find`]). Every other request for the address of a server takes the proxy path
//! ([`respond`]), which reads the content and may read from the store.

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pingora::Result;
use pingora::proxy::Session;

use super::clients::LimitKind;
use super::fast_path::FastResponse;
use super::request::{announced, read_content, with_headers};
use super::turns::Turns;
use super::{Gateway, too_many_of};
use crate::discovery::paths::McpPath;
use crate::index::{Reading, Served};
use crate::mcp::{BODY_BYTES_MAX, count_messages, is_search, transport};
use crate::origin;
use crate::response::{Cors, MaybeCached, RequestHeaders, Response};

/// The longest message to which the fast path responds, in bytes.
pub(super) const FAST_BODY_BYTES_MAX: u64 = 16 << 10;

/// Returns whether [`find`] may have a response to a request, before its content is read. `host` is
/// the normal form of the host.
pub(super) fn is_message(gateway: &Gateway, headers: &RequestHeaders<'_>, host: &str) -> bool {
    let is_server = |served: &Arc<Served>| {
        origin::find_mcp(&served.site, headers.path) == Some(McpPath::Server)
    };
    headers.method == "POST" && gateway.index.with(host, is_server) == Some(true)
}

/// Finds the response to a message whose content was read with its head; `None` if the proxy path
/// has to respond. `host` is the normal form of the host.
///
/// A panic is logged and counted, and then the proxy path responds.
pub(super) fn find(
    gateway: &Gateway,
    headers: &RequestHeaders<'_>,
    host: &str,
    body: &[u8],
    client: IpAddr,
) -> Option<FastResponse> {
    if !gateway.fast_path || headers.method != "POST" {
        return None;
    }
    let find = |served: &Arc<Served>| {
        let takes = origin::find_mcp(&served.site, headers.path) == Some(McpPath::Server)
            && origin::mcp_rejection(served, headers, Some(body.len() as u64)).is_none();
        let project = &served.site.project;
        // The proxy path says how long to wait.
        if !takes || gateway.clients.may_ask(client, project).is_err() {
            return None;
        }
        let made = origin::mcp_response(served, headers, body, Reading::Cached)?;
        gateway.clients.ask(client, project, count_messages(body));
        Some(FastResponse {
            response: MaybeCached::Built(made),
            hsts: gateway.hsts_of(&served.site),
        })
    };
    // The index is only read: nothing is half changed after a panic.
    let found = catch_unwind(AssertUnwindSafe(|| gateway.index.with(host, find)));
    found.unwrap_or_default().flatten()
}

/// Responds to a request for the address of a server. `searches` runs searches, and `tools` whatever
/// else may block.
pub(super) async fn respond(
    session: &mut Session,
    gateway: &Gateway,
    served: Arc<Served>,
    client: IpAddr,
    (searches, tools): (&Turns, &Turns),
) -> Result<Response> {
    let announced = announced(session.req_header());
    let rejected = with_headers(session.req_header(), |headers| {
        origin::mcp_rejection(&served, headers, announced)
    });
    if let Some(rejected) = rejected {
        return Ok(rejected);
    }
    let project = &served.site.project;
    if let Err((limit, wait)) = gateway.clients.may_ask(client, project) {
        let detail = match limit {
            LimitKind::McpSite => "this site gets too many messages from all clients together",
            _ => "this address sends too many messages to MCP servers",
        };
        return Ok(Response {
            cors: Cors::Mcp,
            ..too_many_of(detail, wait)
        });
    }
    gateway.clients.ask(client, project, 1);
    let Some(body) = read_content(session, BODY_BYTES_MAX).await? else {
        return Ok(transport::too_long());
    };
    gateway
        .clients
        .ask(client, project, count_messages(&body) - 1);
    let request = session.req_header().clone();
    let is_search = is_search(&body);
    let make = move || {
        with_headers(&request, |headers| {
            origin::mcp_response(&served, headers, &body, Reading::Blocking)
        })
    };
    let turns = if is_search { searches } else { tools };
    let client = gateway.clients.network_of(client);
    let made = turns.run(client, make).await;
    Ok(made
        .flatten()
        .unwrap_or_else(|| transport::problem(500, "this message cannot be processed")))
}
