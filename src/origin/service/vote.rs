//! Votes whether a page was helpful, at `/_waypost/helpful`.
//!
//! A vote is accepted from pages of the same site only: a browser says from which site a request
//! comes. It is counted for the page, and nothing about the reader is kept.
//!
//! Sources: Fetch Metadata Request Headers (`Sec-Fetch-Site`); Fetch §3.2 (`Origin`); WHATWG URL
//! §5.1 (`application/x-www-form-urlencoded`).

use super::form;
use super::redirect::to;
use crate::index::{Reading, Served, State};
use crate::release::site::{HELPFUL, THANKED, page_file};
use crate::response::{Problem, RequestHeaders, Response, caching};
use crate::site::percent::encode;

/// The longest content of a vote, in bytes.
pub const VOTE_BYTES_MAX: usize = 2048;
const FORM: &str = "application/x-www-form-urlencoded";

/// Returns whether a path (normalised) of a site with our pages is the one to which they send
/// votes.
#[must_use]
pub fn is_vote(served: &Served, path: &str) -> bool {
    let below = served.site.base_path.strip(path).unwrap_or_default();
    below.strip_prefix('/') == Some(HELPFUL)
}

/// Checks a vote before its content is read. Returns the error if the site or the request is wrong.
#[must_use]
pub fn reject_vote(served: &Served, headers: &RequestHeaders<'_>) -> Option<Response> {
    let is_public = matches!(served.state, State::Public(_));
    if !is_public || served.numbers.is_none() {
        return Some(Problem::new(404, "this site counts no votes").response());
    }
    if headers.method != "POST" {
        return Some(Response {
            allow: Some("POST"),
            ..Problem::new(405, "a vote is sent with POST").response()
        });
    }
    if !is_of_site(headers) {
        let detail = "votes are accepted from pages of this site only";
        return Some(Problem::new(403, detail).response());
    }
    if !headers.has_media_type(FORM) {
        let detail = format!("a vote is a form: {FORM}");
        return Some(Problem::new(415, detail).response());
    }
    None
}

/// Returns whether a page of the same site sends the request. Programs that say nothing are
/// rejected.
fn is_of_site(headers: &RequestHeaders<'_>) -> bool {
    if let Some(site) = headers.fetch_site {
        return site == b"same-origin";
    }
    let origin = headers
        .origin
        .and_then(|origin| str::from_utf8(origin).ok());
    let host = origin.and_then(|origin| {
        let https = origin.strip_prefix("https://");
        https.or_else(|| origin.strip_prefix("http://"))
    });
    host.is_some_and(|host| !host.is_empty() && host.eq_ignore_ascii_case(headers.host))
}

/// Counts a vote that [`reject_vote`] has not rejected, unless `refuse` has a response for the page
/// that it is for. It may read from the store, and may then block.
///
/// A browser without scripts is led back to the page.
#[must_use]
pub fn vote(
    served: &Served,
    headers: &RequestHeaders<'_>,
    content: &[u8],
    refuse: impl FnOnce(&str) -> Option<Response>,
) -> Response {
    let wrong = |status, detail| Problem::new(status, detail).response();
    let State::Public(documents) = &served.state else {
        return wrong(404, "this site counts no votes");
    };
    let (Some(numbers), Some(files)) = (&served.numbers, documents.files()) else {
        return wrong(404, "this site counts no votes");
    };
    let content = String::from_utf8_lossy(content);
    let value = |name: &str| form::value(&content, name);
    let is_helpful = match value("vote").as_deref() {
        Some("yes") => true,
        Some("no") => false,
        _ => return wrong(422, "`vote` is yes or no"),
    };
    let Some(page) = value("page") else {
        return wrong(422, "`page` is missing: the path of the page");
    };
    let open = match files.open(Reading::Blocking) {
        Ok(open) => open,
        Err(error) => {
            log::error!(target: "origin", project:% = served.site.project; "cannot read a file of the release: {error}");
            return wrong(503, "the vote cannot be counted at the moment");
        }
    };
    if !open.description().votes {
        return wrong(404, "this site counts no votes");
    }
    if !open.has(&page_file(&page, "html")) {
        return wrong(422, "the site has no such page");
    }
    if let Some(refused) = refuse(&page) {
        return refused;
    }
    numbers.vote(&format!("/{page}"), is_helpful);
    match headers.names_accepted("text/html") {
        false => Response::empty(204),
        true => {
            let base = served.site.base_path.as_str();
            let page = encode(&page);
            Response {
                caching: caching::NEVER,
                ..to(303, &format!("{base}/{page}#{THANKED}"))
            }
        }
    }
}
