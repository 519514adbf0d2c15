//! Routing: who responds to a request.
//!
//! The one decision of the proxy path: a function from a host, a path and the index to a
//! [`Target`]. Only `Host` selects the site, never `X-Forwarded-Host` and never the server name of
//! the TLS handshake: a client may use a connection for every host that the certificate covers (RFC
//! 9110 §7.4).

use std::sync::Arc;

use crate::discovery::paths;
use crate::index::{Index, Served};
use crate::origin;
use crate::response::{Problem, RequestHeaders, Response};
use crate::site::{self, Origin, Upstream};
use crate::telemetry::Route;

/// The part that responds.
#[derive(Clone, Debug)]
pub enum Target {
    /// The gateway itself, with this response.
    Response(Route, Box<Response>),
    /// The gateway itself, with this response of the site, which the numbers of the site may count.
    OfSite(Route, Arc<Served>, Box<Response>),
    /// The admin API.
    Admin,
    /// The MCP server of the site.
    Mcp(Arc<Served>),
    /// A vote whether a page of the site was helpful.
    Vote(Arc<Served>),
    /// The embedded origin. The response is not cached: it has to read from the store.
    Embedded(Arc<Served>, Box<str>),
    /// A customer's own server.
    Upstream(Arc<Served>),
}

/// Decides who responds. `host` is as the client sent it.
#[must_use]
pub fn route(index: &Index, host: &str, is_http2: bool, headers: &RequestHeaders<'_>) -> Target {
    let reject = |response| Target::Response(Route::Rejected, Box::new(response));
    let host = match site::normalise(host) {
        Ok(host) => host,
        Err(invalid) => return reject(Problem::new(400, invalid.to_string()).response()),
    };
    if *host == *index.service().api_host.as_str() {
        return Target::Admin;
    }
    let Some(served) = index.served(&host) else {
        return reject(index.unknown_host(is_http2));
    };
    // A client must not learn that a private host exists.
    if served.is_hidden() {
        return reject(index.unknown_host(is_http2));
    }
    let path = paths::normalise(headers.path);
    let below_page = || match served.site.origin {
        Origin::Embedded => paths::find_below_page(&path, &served.site.base_path),
        Origin::Upstream(_) => None,
    };
    if let Some(document) = paths::find(&path, &served.site.base_path).or_else(below_page) {
        let response = index.response(&served, &host, document, headers);
        return Target::OfSite(Route::Discovery, served, Box::new(response));
    }
    if let Some(found) = origin::find_mcp(&served.site, &path) {
        return match origin::mcp_announcement(&served, found, headers) {
            Some(response) => Target::Response(Route::Discovery, Box::new(response)),
            None => Target::Mcp(served),
        };
    }
    match served.site.origin {
        Origin::Embedded if origin::is_vote(&served, &path) => Target::Vote(served),
        Origin::Embedded => match origin::respond_from_memory(&served, &path, headers) {
            Some(ready) => Target::OfSite(Route::Origin, served, Box::new(ready.into_response())),
            None => Target::Embedded(served, path.into()),
        },
        Origin::Upstream(_) => Target::Upstream(served),
    }
}

impl Target {
    /// Returns the upstream that a request goes to.
    #[must_use]
    pub fn upstream(served: &Served) -> Option<&Upstream> {
        match &served.site.origin {
            Origin::Upstream(upstream) => Some(upstream),
            Origin::Embedded => None,
        }
    }
}
