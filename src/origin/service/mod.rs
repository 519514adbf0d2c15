//! The embedded origin: the pages of a site, from its current release.
//!
//! A path is looked up in this order, below the base path of the site:
//!
//! 1. `llms.txt`, `llms-full.txt` (also below `/.well-known`), `{part}/llms.txt`,
//!    `llms-agents.txt`, `sitemap.xml`, `robots.txt`, `.well-known/api-catalog`, `_waypost/pages`;
//!    all but the third and the last also at the root of the host;
//! 2. the search, at `/_waypost/search`, and a file that pages load, below `/_waypost`;
//! 3. another spelling of a page's path (`/x/`, `/x.mdx`, `/x/index`): 308 to the page;
//! 4. a page: HTML, or Markdown if the client prefers it; its Markdown at `{page}.md`;
//! 5. a file of the repository;
//! 6. a redirect of the site;
//! 7. the search, at `/search`;
//! 8. the 404 page of the nearest directory.
//!
//! **Invariant:** only files in the inventory of the current release can be sent: paths are only
//! looked up there. **Invariant:** a private site serves nothing, because nothing here
//! authenticates.
//!
//! Sources: RFC 9110 §12.5.1 (`Accept`), §13 (conditions).

mod announce;
mod fields;
mod form;
mod redirect;
mod search;
mod vote;

use bytes::Bytes;
use http::header::{self, HeaderValue};

use super::negotiation::prefers_markdown;
use crate::index::{File, Open, ReadFileError, Reading, Served, State, Variant};
use crate::numbers::SiteNumbers;
use crate::release::pages::{API_DESCRIPTION, PAGES};
use crate::release::site::{
    DIAGRAM_FRAME, DIAGRAM_POLICY, SEARCH, STATIC, is_feed, is_named_by_digest, not_found_files,
    page_file,
};
use crate::response::encoding::Accepted;
use crate::response::{
    Conditions, Cors, Counted, ETag, MaybeCached, Method, Outcome, Problem, RequestHeaders,
    Response, caching,
};
use crate::site::percent::decode_or_keep;
use crate::store::ReadError;
use fields::ASSET_POLICY;
use redirect::to;
use search::with_form;
pub use vote::{VOTE_BYTES_MAX, is_vote, reject_vote, vote};

/// Texts of a site that are served below `/.well-known` too.
const WELL_KNOWN: [&str; 2] = ["llms.txt", "llms-full.txt"];
/// The catalog of APIs (RFC 9727 §2), below `/.well-known` only.
const CATALOG: &str = "api-catalog";
/// The other texts.
const TEXTS: [&str; 3] = ["sitemap.xml", "robots.txt", "llms-agents.txt"];
/// The request fields that select the response for a page.
const VARY_PAGE: &str = "Accept, Accept-Encoding";
const VARY_FILE: &str = "Accept-Encoding";
const HTML: &str = "text/html; charset=utf-8";
/// A second path of the search, below the base path, if the site has no page or file there.
const SEARCH_SHORT: &str = "search";

/// Returns the response to a request for `path` (normalised, without query) on a host of a site.
///
/// It may read from the store, and may then block.
#[must_use]
pub fn response(served: &Served, path: &str, headers: &RequestHeaders<'_>) -> Response {
    find(served, path, headers, Reading::Blocking).unwrap_or_else(|error| {
        // The index has logged a damaged file, once.
        let level = match &error {
            ReadFileError::Store(ReadError::Damaged { .. }) => log::Level::Debug,
            _ => log::Level::Error,
        };
        log::log!(target: "origin", level, project:% = served.site.project; "read a file of the release: {error}");
        Problem::new(503, "this page cannot be read at the moment").response()
    })
}

/// Returns the same response without blocking; `None` if a required file is not in the cache.
///
/// A response with status 200 is cached with its head.
#[must_use]
pub fn respond_from_memory(
    served: &Served,
    path: &str,
    headers: &RequestHeaders<'_>,
) -> Option<MaybeCached> {
    let files = match &served.state {
        State::Public(documents) => documents.files(),
        State::Private | State::Unreleased => None,
    };
    let is_whole = headers.method() == Method::GetOrHead && headers.range().is_none();
    let Some(files) = files.filter(|_| is_whole) else {
        let made = find(served, path, headers, Reading::Cached);
        return made.ok().map(MaybeCached::Built);
    };
    // The answer of a search depends on the query, which is not part of the key of a cached
    // response, and the store is read for it.
    if is_search(served, path) {
        return None;
    }
    let variant = Variant {
        accepted: headers.accepted(),
        markdown: headers.accept.is_some_and(prefers_markdown),
    };
    let cached_response = match files.cached(path, variant) {
        Some(cached_response) => cached_response,
        None => {
            // The response is made without conditions, so the cached response can serve all of
            // them.
            let asked = headers;
            let headers = RequestHeaders {
                conditions: Conditions::default(),
                ..*headers
            };
            let made = find(served, path, &headers, Reading::Cached).ok()?;
            // Other responses are not cached: their number has no limit, so clients could fill
            // the cache. The body of a large file is not in memory.
            if made.status != 200 || made.body.memory().is_none() {
                let conditional = match made.evaluate(&asked.conditions) {
                    Outcome::Send => made,
                    Outcome::NotModified => made.not_modified(),
                    Outcome::Failed => precondition_failed(),
                };
                return Some(MaybeCached::Built(conditional));
            }
            files.cache(path, variant, made)
        }
    };
    Some(match cached_response.evaluate(&headers.conditions) {
        Outcome::Send => MaybeCached::Cached(cached_response),
        Outcome::NotModified => MaybeCached::NotModified(cached_response),
        Outcome::Failed => MaybeCached::Built(precondition_failed()),
    })
}

fn find(
    served: &Served,
    path: &str,
    headers: &RequestHeaders<'_>,
    reading: Reading,
) -> Result<Response, ReadFileError> {
    let documents = match &served.state {
        State::Private => return Ok(no_such_page()),
        State::Unreleased => {
            return Ok(Problem::new(404, "this site has not been published yet").response());
        }
        State::Public(documents) => documents,
    };
    match headers.method() {
        Method::GetOrHead => {}
        Method::Options => return Ok(Response::preflight()),
        Method::Other => {
            return Ok(Response {
                allow: Some(crate::response::ALLOW_STATIC),
                ..Problem::new(405, "pages can only be read").response()
            });
        }
    }
    let base = served.site.base_path.as_str();
    let below = served.site.base_path.strip(path);
    let Some(below) = below.or_else(|| is_of_host(path).then_some(path)) else {
        return Ok(match path {
            "/" => to(307, &format!("{base}/")),
            _ => no_such_page(),
        });
    };
    let Some(files) = documents.files() else {
        return Ok(no_such_page());
    };
    let Some(below) = below.strip_prefix('/') else {
        return Ok(to(308, &format!("{base}/")));
    };
    Request {
        files: files.open(reading)?,
        has_mcp: served.site.mcp,
        numbers: served.numbers.as_deref(),
        policy: documents.page_policy(),
        base,
        path: &decode_or_keep(below),
        headers,
    }
    .response()
}

/// Returns whether clients request a path only at the root of a host. A site below a
/// base path has its texts there too.
fn is_of_host(path: &str) -> bool {
    let Some(path) = path.strip_prefix('/') else {
        return false;
    };
    match path.strip_prefix(".well-known/") {
        Some(name) => WELL_KNOWN.contains(&name) || name == CATALOG,
        None => WELL_KNOWN.contains(&path) || TEXTS.contains(&path),
    }
}

/// The response when a condition fails (RFC 9110 §15.5.13).
fn precondition_failed() -> Response {
    Problem::new(412, "the page does not match the condition of the request").response()
}

fn no_such_page() -> Response {
    Problem::new(404, "there is no such page on this site")
        .cached(caching::ABSENT)
        .response()
}

/// A request for a page or a file of a site.
struct Request<'r> {
    files: Open<'r>,
    /// Whether the site has an MCP server.
    has_mcp: bool,
    /// The counts of the site; `None` if the site is not counted.
    numbers: Option<&'r SiteNumbers>,
    /// The content security policy of a page.
    policy: &'r HeaderValue,
    base: &'r str,
    /// The path below the base path, decoded, without leading slash.
    path: &'r str,
    headers: &'r RequestHeaders<'r>,
}

/// Returns whether a path of a site is one at which the site is searched, unless it has a page
/// there.
#[must_use]
pub fn is_search(served: &Served, path: &str) -> bool {
    let below = served.site.base_path.strip(path).unwrap_or_default();
    let below = below.strip_prefix('/');
    [SEARCH, SEARCH_SHORT]
        .iter()
        .any(|search| below == Some(search))
}

type FoundResponse = Result<Option<Response>, ReadFileError>;

// === impl Request ===

impl Request<'_> {
    fn response(&self) -> Result<Response, ReadFileError> {
        if let Some(found) = self.text()? {
            return Ok(found);
        }
        if self.path == SEARCH {
            return self.search();
        }
        if let Some(found) = self.static_file()? {
            return Ok(found);
        }
        if let Some(found) = self.spelling() {
            return Ok(found);
        }
        if let Some(found) = self.page()? {
            return Ok(found);
        }
        if let Some(found) = self.asset()? {
            return Ok(found);
        }
        if let Some((destination, permanent)) = self.files.description().redirect(self.path) {
            return Ok(self.redirect(&destination, permanent));
        }
        if self.path == SEARCH_SHORT {
            return self.search();
        }
        self.not_found()
    }

    /// Finds a text of the site.
    fn text(&self) -> FoundResponse {
        let name = self.path.strip_prefix(".well-known/").unwrap_or(self.path);
        // `{part}/llms.txt`. If the release has none, `addressed` finds no file.
        let of_language = self.path.strip_suffix("/llms.txt");
        let of_language = of_language.is_some_and(|language| !language.contains('/'));
        let is_catalog = name == CATALOG && name != self.path;
        let is_list = WELL_KNOWN.contains(&name) || TEXTS.contains(&self.path) || of_language;
        let is_for_agents = is_list && name != "sitemap.xml" && name != "robots.txt";
        if self.path == PAGES || self.path == API_DESCRIPTION {
            let response =
                self.addressed(&format!("texts/{}", self.path), &self.files.files.address)?;
            // Programs read this file, also scripts in browsers.
            return Ok(response.map(|response| Response {
                cors: Cors::Open,
                ..response
            }));
        }
        if is_feed(self.path) {
            let path = format!("texts/{}", self.path);
            return self.addressed(&path, &self.files.files.address);
        }
        if !is_list && !is_catalog {
            return Ok(None);
        }
        let path = format!("texts/{name}");
        let response = match self.has_mcp || !announce::is_announcing(name) {
            true => self.addressed(&path, &self.files.files.address)?,
            false => self.silent(&path, is_catalog)?,
        };
        let response = response.map(|response| Response {
            counted: is_for_agents.then_some(Counted::List),
            ..response
        });
        Ok(match is_catalog {
            // RFC 9727 §3.1: a HEAD response links to the catalog too.
            true => response.map(|response| self.with_catalog(response)),
            false => response,
        })
    }

    /// Finds a file that pages load. A name with a digest always means the same bytes.
    fn static_file(&self) -> FoundResponse {
        let Some(name) = self
            .path
            .strip_prefix(STATIC)
            .and_then(|rest| rest.strip_prefix('/'))
        else {
            return Ok(None);
        };
        if is_coding(name) {
            return Ok(None);
        }
        let path = format!("static/{STATIC}/{name}");
        // For example `site.{digest}.css`. The lists of pages have names without a digest.
        let never_changes = is_named_by_digest(name);
        let accepted = self.headers.accepted();
        let file = match self.files.read(&path, accepted)? {
            None if never_changes => self.files.read_older(&path, accepted)?,
            found => found,
        };
        let caching = match never_changes {
            true => caching::IMMUTABLE,
            false => caching::DISCOVERY,
        };
        let response = file.map(|file| Response {
            caching,
            ..self.dated_response(file)
        });
        Ok(response.map(|response| {
            let response = self.conditional(response);
            // The frame of diagrams has its own policy.
            match self.path.starts_with(DIAGRAM_FRAME) {
                true => response.with(
                    header::CONTENT_SECURITY_POLICY,
                    HeaderValue::from_static(DIAGRAM_POLICY),
                ),
                false => response,
            }
        }))
    }

    fn page(&self) -> FoundResponse {
        if let Some(page) = self.path.strip_suffix(".md") {
            let page = if page == "index" { "" } else { page };
            return self.markdown(page, None);
        }
        let html = page_file(self.path, "html");
        if !self.files.has(&html) {
            // Without a page at the root, the root redirects to the first page.
            let home = &self.files.description().home;
            let leads_to_site_root = self.path.is_empty() && !home.is_empty();
            return Ok(leads_to_site_root.then(|| to(307, &self.location(home))));
        }
        if self.headers.accept.is_some_and(prefers_markdown) {
            return self.markdown(self.path, Some(VARY_PAGE));
        }
        let address = &self.files.files.address;
        let file = self
            .files
            .read_page(&html, address, self.headers.accepted())?;
        let Some(file) = file else {
            return Ok(None);
        };
        let response = ok_response(file);
        let response = Response {
            caching: caching::DISCOVERY,
            vary: Some(VARY_PAGE),
            counted: Some(Counted::Html),
            ..response
        };
        let response = response.with(header::CONTENT_SECURITY_POLICY, self.page_policy());
        Ok(Some(self.conditional(
            self.with_links(self.with_speculation(response)),
        )))
    }

    fn markdown(&self, page: &str, vary: Option<&'static str>) -> FoundResponse {
        let file = page_file(page, "md");
        let response = self.addressed(&file, &self.files.files.address)?;
        Ok(response.map(|response| {
            let vary = vary.unwrap_or(VARY_FILE);
            let response = Response {
                vary: Some(vary),
                counted: Some(Counted::Markdown),
                ..response
            };
            self.with_links(response)
        }))
    }

    /// Finds a file of the repository, or a range of it.
    fn asset(&self) -> FoundResponse {
        if is_coding(self.path) {
            return Ok(None);
        }
        // A range counts the bytes of the file without content coding.
        let accepted = match self.headers.range() {
            Some(_) => Accepted::IDENTITY_ONLY,
            None => self.headers.accepted(),
        };
        let path = format!("assets/{}", self.path);
        let Some(file) = self.files.read(&path, accepted)? else {
            return Ok(None);
        };
        let response = Response {
            caching: caching::DISCOVERY,
            ..self.dated_response(file)
        };
        let response = response.with(header::CONTENT_SECURITY_POLICY, ASSET_POLICY);
        // RFC 9110 §13.2.2: conditions are evaluated before the range.
        let response = self.conditional(response);
        Ok(Some(
            response.ranged(self.headers.range(), self.headers.if_range),
        ))
    }

    fn not_found(&self) -> Result<Response, ReadFileError> {
        let accepted = self.headers.accepted();
        let Some(path) = not_found_files(self.path).find(|path| self.files.has(path)) else {
            return Ok(no_such_page());
        };
        let Some(file) = self.files.read_addressed(&path, self.base, accepted)? else {
            return Ok(no_such_page());
        };
        let response = Response {
            encoding: file.encoding,
            caching: caching::ABSENT,
            vary: Some(VARY_FILE),
            body: file.body,
            ..Response::new(404, HTML, Bytes::new())
        };
        // It has the form of the search.
        Ok(response.with(header::CONTENT_SECURITY_POLICY, with_form(self.policy)))
    }

    /// Finds a file, and replaces the placeholder of the base URL by the address of the site.
    fn addressed(&self, path: &str, address: &str) -> FoundResponse {
        let file = self
            .files
            .read_addressed(path, address, self.headers.accepted())?;
        Ok(file.map(|file| {
            let response = ok_response(file);
            self.conditional(Response {
                caching: caching::DISCOVERY,
                ..response
            })
        }))
    }

    /// Makes the response with a file whose bytes are those in the release, so that it changes only
    /// with a promotion.
    fn dated_response(&self, file: File) -> Response {
        Response {
            last_modified: Some(self.files.files.promoted_at),
            ..ok_response(file)
        }
    }

    /// Evaluates the conditions of the request (RFC 9110 §13).
    fn conditional(&self, response: Response) -> Response {
        match response.evaluate(&self.headers.conditions) {
            Outcome::Send => response,
            Outcome::NotModified => response.not_modified(),
            Outcome::Failed => precondition_failed(),
        }
    }
}

/// Makes the response with a file. It has no `Last-Modified`: a text that contains the address of
/// its site also changes with the site record, which has no date.
fn ok_response(file: File) -> Response {
    Response {
        encoding: file.encoding,
        etag: Some(ETag::new(&file.digest, file.encoding)),
        vary: Some(VARY_FILE),
        body: file.body,
        ..Response::new(200, file.media_type, Bytes::new())
    }
}

/// Returns whether a path is an encoded form of a file. Encoded forms have no URL.
fn is_coding(path: &str) -> bool {
    [".br", ".zst", ".gz"].iter().any(|end| path.ends_with(end))
}

#[cfg(test)]
mod tests;
