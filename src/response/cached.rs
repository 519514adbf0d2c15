//! Responses that are cached with their heads.
//!
//! A page has a dozen header fields, and formatting them can take longer than finding the page.
//! So a page that is requested repeatedly is cached as a [`CachedResponse`]: the 200 and its 304,
//! each with its formatted field lines.

use std::sync::{Arc, OnceLock};

use http::HeaderMap;

use super::{Conditions, Connection, Outcome, Response, status_line};

/// A 200 and its 304, with their heads.
#[derive(Debug)]
pub struct CachedResponse {
    whole: Composed,
    unchanged: Composed,
}

/// A response with its field lines, without `Date` and `Connection`.
#[derive(Debug)]
struct Composed {
    response: Response,
    lines: Box<[u8]>,
    /// The same fields for HTTP/2, once a client of HTTP/2 has asked for them.
    http2: OnceLock<Box<HeaderMap>>,
}

/// A response: built for one request, or from the cache.
#[derive(Clone, Debug)]
pub enum MaybeCached {
    /// Built for this request.
    Built(Response),
    /// A cached 200.
    Cached(Arc<CachedResponse>),
    /// The 304 of a cached 200.
    NotModified(Arc<CachedResponse>),
}

// === impl CachedResponse ===

impl CachedResponse {
    /// Formats the heads of a 200 and its 304.
    #[must_use]
    pub fn new(whole: Response) -> Self {
        Self {
            unchanged: Composed::new(whole.clone().not_modified()),
            whole: Composed::new(whole),
        }
    }

    /// Evaluates the conditions of a request.
    #[must_use]
    pub fn evaluate(&self, conditions: &Conditions<'_>) -> Outcome {
        self.whole.response.evaluate(conditions)
    }

    /// Counts the bytes that it takes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // The fields for HTTP/2 take about as much as the lines.
        let lines = 2 * (self.whole.lines.len() + self.unchanged.lines.len());
        self.whole
            .response
            .body
            .memory()
            .map_or(0, |body| body.len())
            + lines
            + size_of::<Self>()
    }
}

// === impl Composed ===

impl Composed {
    fn new(response: Response) -> Self {
        let mut lines = Vec::new();
        response.write_fields(&mut lines);
        Self {
            response,
            lines: lines.into(),
            http2: OnceLock::new(),
        }
    }

    fn http2_fields(&self) -> HeaderMap {
        let make = || Box::new(self.response.http2_fields());
        (**self.http2.get_or_init(make)).clone()
    }
}

// === impl MaybeCached ===

impl MaybeCached {
    /// Returns the response.
    #[must_use]
    pub fn response(&self) -> &Response {
        match self {
            Self::Built(response) => response,
            Self::Cached(cached) => &cached.whole.response,
            Self::NotModified(cached) => &cached.unchanged.response,
        }
    }

    /// Returns the response as a value of its own.
    #[must_use]
    pub fn into_response(self) -> Response {
        match self {
            Self::Built(response) => response,
            cached => cached.response().clone(),
        }
    }

    /// Returns the fields for HTTP/2, as [`Response::http2_fields`] does.
    #[must_use]
    pub fn http2_fields(&self) -> HeaderMap {
        match self {
            Self::Built(response) => response.http2_fields(),
            Self::Cached(cached) => cached.whole.http2_fields(),
            Self::NotModified(cached) => cached.unchanged.http2_fields(),
        }
    }

    /// Appends the HTTP/1.1 status line and header section, the empty line included.
    ///
    /// `date` is a formatted `Date`.
    pub fn write_head(&self, out: &mut Vec<u8>, date: &[u8], connection: Connection) {
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(status_line(self.response().status).as_bytes());
        out.extend_from_slice(b"\r\nDate: ");
        out.extend_from_slice(date);
        out.extend_from_slice(b"\r\n");
        match self {
            Self::Built(response) => response.write_fields(out),
            Self::Cached(cached) => out.extend_from_slice(&cached.whole.lines),
            Self::NotModified(cached) => out.extend_from_slice(&cached.unchanged.lines),
        }
        out.extend_from_slice(match connection {
            Connection::Keep => b"\r\n".as_slice(),
            Connection::Close => b"Connection: close\r\n\r\n",
        });
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Version;
    use http::header::{self, HeaderValue};

    use super::*;
    use crate::digest::Digest;
    use crate::response::{ETag, Encoding, caching};

    fn page() -> Response {
        let body = Bytes::from_static(b"<p>A page.");
        let page = Response {
            etag: Some(ETag::new(&Digest::of(&body), Encoding::Identity)),
            last_modified: Some(784_111_777),
            caching: caching::DISCOVERY,
            vary: Some("Accept, Accept-Encoding"),
            ..Response::new(200, "text/html; charset=utf-8", body)
        };
        page.with(header::LINK, HeaderValue::from_static("</a>; rel=x"))
    }

    #[test]
    fn a_cached_response_has_the_bytes_of_a_built_one() {
        let kept = Arc::new(CachedResponse::new(page()));
        let unchanged = page().not_modified();
        for (made, kept) in [
            (page(), MaybeCached::Cached(Arc::clone(&kept))),
            (unchanged, MaybeCached::NotModified(kept)),
        ] {
            for connection in [Connection::Keep, Connection::Close] {
                let head = |ready: &MaybeCached| {
                    let mut head = Vec::new();
                    ready.write_head(&mut head, b"now", connection);
                    String::from_utf8(head).unwrap()
                };
                assert_eq!(head(&kept), head(&MaybeCached::Built(made.clone())));
            }
            // The proxy path sends the same.
            assert_eq!(
                made.http2_fields(),
                made.response_header(Version::HTTP_2).headers
            );
            // The first one is made, the second one is from the cache.
            for _ in 0..2 {
                assert_eq!(kept.http2_fields(), made.http2_fields());
            }
        }
    }

    #[test]
    fn a_304_has_only_the_fields_that_caches_need() {
        let mut head = Vec::new();
        let page = MaybeCached::Built(page().not_modified());
        page.write_head(&mut head, b"now", Connection::Keep);
        let head = String::from_utf8(head).unwrap();
        for name in ["ETag", "Vary", "Cache-Control", "Last-Modified"] {
            assert!(head.contains(&format!("\r\n{name}: ")), "{head}");
        }
        assert!(!head.contains("link"), "{head}");
    }
}
