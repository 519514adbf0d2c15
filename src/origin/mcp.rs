//! The MCP server of a site: connects [`crate::mcp`] with the release of the site.

use std::sync::Arc;

use bytes::Bytes;

use crate::digest::Digest;
use crate::discovery::JSON;
use crate::discovery::paths::{self, McpPath};
use crate::index::{Open, ReadFileError, Reading, Served, State, Variant};
use crate::mcp::{self, Library, ReadError, transport};
use crate::numbers::{Reader, SiteNumbers};
use crate::release::pages::Pages;
use crate::release::site::page_file;
use crate::response::encoding::Accepted;
use crate::response::{
    ALLOW_STATIC, Cors, ETag, Encoding, MaybeCached, Method, Outcome, Problem, RequestHeaders,
    Response, caching,
};
use crate::search::{Question, SearchResult};
use crate::site::Site;

/// The longest page that is read into memory, in bytes.
const PAGE_BYTES_MAX: usize = 8 << 20;
/// The variant under which parts of answers are in the cache of responses. Their names are not
/// paths.
const KEPT: Variant = Variant {
    accepted: Accepted::IDENTITY_ONLY,
    markdown: false,
};
/// The media type of a server card (SEP-2127, draft).
const CARD: &str = "application/mcp-server-card+json";

/// Returns the path of the site's MCP server that `path` (normalised) names; `None` also if the
/// site has no MCP server.
#[must_use]
pub fn find_mcp(site: &Site, path: &str) -> Option<McpPath> {
    site.mcp.then(|| paths::find_mcp(path, &site.base_path))?
}

/// Returns the response to a request for a document that announces the server.
#[must_use]
pub fn mcp_announcement(
    served: &Served,
    path: McpPath,
    headers: &RequestHeaders<'_>,
) -> Option<Response> {
    let State::Public(documents) = &served.state else {
        return mcp_rejection(served, headers, None);
    };
    let announced = documents.mcp_server(&served.site)?.announcement(path)?;
    let body = Bytes::from(announced.to_string());
    let media_type = match path {
        McpPath::OwnCard => CARD,
        _ => JSON,
    };
    let response = Response {
        etag: Some(ETag::new(&Digest::of(&body), Encoding::Identity)),
        caching: caching::DISCOVERY,
        cors: Cors::Open,
        ..Response::new(200, media_type, body)
    };
    Some(match headers.method() {
        Method::GetOrHead => match response.evaluate(&headers.conditions) {
            Outcome::Send => response,
            Outcome::NotModified => response.not_modified(),
            Outcome::Failed => {
                let detail = "the document does not match the condition of the request";
                Problem::new(412, detail).response()
            }
        },
        Method::Options => Response::preflight(),
        Method::Other => Response {
            allow: Some(ALLOW_STATIC),
            ..transport::problem(405, "this document can only be read")
        },
    })
}

/// Rejects a request whose content is not read. Returns `None` if the content must be read and
/// passed to [`mcp_response`].
#[must_use]
pub fn mcp_rejection(
    served: &Served,
    headers: &RequestHeaders<'_>,
    length: Option<u64>,
) -> Option<Response> {
    let absent = |detail, caching| Response {
        caching,
        ..transport::problem(404, detail)
    };
    match &served.state {
        State::Public(_) => transport::reject(headers, length),
        State::Private => Some(absent(
            "there is no such page on this site",
            caching::ABSENT,
        )),
        State::Unreleased => Some(absent(
            "this site has not been published yet",
            caching::NEVER,
        )),
    }
}

/// Answers a message; `None` if `reading` does not allow a read that the answer needs.
#[must_use]
pub fn mcp_response(
    served: &Served,
    headers: &RequestHeaders<'_>,
    body: &[u8],
    reading: Reading,
) -> Option<Response> {
    let State::Public(documents) = &served.state else {
        return mcp_rejection(served, headers, None);
    };
    let server = documents.mcp_server(&served.site)?;
    let open = documents.files().map(|files| files.open(reading));
    let open = match open.transpose() {
        Ok(open) => open,
        Err(error) if reading == Reading::Cached => {
            log::trace!(target: "mcp", "{error}");
            return None;
        }
        Err(error) => {
            log_failure(&served.site, &error);
            return Some(transport::problem(
                503,
                "the documentation cannot be read at the moment",
            ));
        }
    };
    let library = SiteLibrary {
        site: &served.site,
        numbers: served.numbers.as_deref(),
        open: open.as_ref(),
        reading,
    };
    let answer = mcp::answer(&server, &library, &headers.mcp, body).ok()?;
    if let Some(numbers) = &served.numbers {
        for call in &answer.calls {
            let reader = Reader::of(headers.user_agent);
            numbers.call(call.tool, call.client.as_deref(), reader);
        }
    }
    Some(transport::response(answer))
}

/// The pages of a site.
#[derive(Debug)]
struct SiteLibrary<'s> {
    site: &'s Site,
    /// The counts of the site; `None` if the site is not counted.
    numbers: Option<&'s SiteNumbers>,
    open: Option<&'s Open<'s>>,
    reading: Reading,
}

impl SiteLibrary<'_> {
    fn failed(&self, error: &ReadFileError) -> ReadError {
        match error {
            ReadFileError::NotCached => ReadError::NotReady,
            error => log_failure(self.site, error),
        }
    }
}

impl Library for SiteLibrary<'_> {
    fn pages(&self) -> Result<Arc<Pages>, ReadError> {
        match self.open {
            Some(open) => open.pages().map_err(|error| self.failed(&error)),
            None => Ok(Arc::default()),
        }
    }

    fn markdown(&self, path: &str) -> Result<Option<Bytes>, ReadError> {
        let Some(open) = self.open else {
            return Ok(None);
        };
        let file = page_file(path, "md");
        let address = &open.files.address;
        let file = open.read_addressed(&file, address, Accepted::IDENTITY_ONLY);
        let Some(file) = file.map_err(|error| self.failed(&error))? else {
            return Ok(None);
        };
        if let Some(bytes) = file.body.memory() {
            return Ok(Some(bytes.clone()));
        }
        if self.reading == Reading::Cached {
            return Err(ReadError::NotReady);
        }
        let length = file.body.len().min(PAGE_BYTES_MAX);
        let bytes = file.body.slice(0..length).read_all();
        bytes.map(Some).map_err(|error| {
            log::error!(target: "mcp", project:% = self.site.project; "cannot read a page: {error}");
            ReadError::Failed
        })
    }

    fn redirect(&self, path: &str) -> Result<Option<String>, ReadError> {
        let redirect = self.open.and_then(|open| open.description().redirect(path));
        Ok(redirect.map(|(destination, _permanent)| destination))
    }

    fn search(&self, question: &Question<'_>) -> Result<SearchResult, ReadError> {
        let found = match self.open {
            Some(open) => open.search(question).map_err(|error| self.failed(&error))?,
            None => SearchResult::default(),
        };
        if let Some(numbers) = self.numbers {
            numbers.search(question, found.total);
        }
        Ok(found)
    }

    fn section(&self, path: &str, anchor: &str) -> Result<Option<usize>, ReadError> {
        match self.open {
            Some(open) => open
                .section_start(path, anchor)
                .map_err(|error| self.failed(&error)),
            None => Ok(None),
        }
    }

    fn kept(&self, name: &str) -> Option<Bytes> {
        let kept = self.open?.files.cached(name, KEPT)?;
        MaybeCached::Cached(kept).response().body.memory().cloned()
    }

    fn keep(&self, name: &str, part: &str) {
        if let Some(open) = self.open {
            let part = Bytes::copy_from_slice(part.as_bytes());
            open.files.cache(name, KEPT, Response::new(200, JSON, part));
        }
    }

    fn may_work(&self) -> bool {
        self.reading == Reading::Blocking
    }
}

fn log_failure(site: &Site, error: &ReadFileError) -> ReadError {
    log::error!(target: "mcp", project:% = site.project; "cannot read a file of the release: {error}");
    ReadError::Failed
}
