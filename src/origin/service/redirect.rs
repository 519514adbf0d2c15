//! Redirects from other spellings of a page's path, and the redirects of the site.
//!
//! Sources: RFC 9110 §15.4.8 (307), §15.4.9 (308);
//! `internals/decisions#addresses-of-pages`.

use super::Request;
use crate::release::site::{page_file, page_of};
use crate::response::{Response, caching};
use crate::site::percent::{decode_or_keep, encode};

/// Makes a redirect. Paths are encoded, so they cannot hold a line break.
pub(super) fn to(status: u16, location: &str) -> Response {
    Response {
        caching: caching::DISCOVERY,
        location: Some(location.to_owned().into()),
        ..Response::empty(status)
    }
}

// === impl Request ===

impl Request<'_> {
    /// Redirects another spelling of a page's path to the page.
    pub(super) fn spelling(&self) -> Option<Response> {
        let is_other = self.path.ends_with('/')
            || self.path.ends_with(".mdx")
            || self.path == "index"
            || self.path.ends_with("/index");
        let page = page_of(self.path);
        let exists = || self.files.has(&page_file(page, "html"));
        (is_other && page != self.path && exists())
            .then(|| to(308, &self.with_query(&self.location(page))))
    }

    pub(super) fn location(&self, path: &str) -> String {
        // A path with two slashes at its beginning would be the name of another host (RFC 3986
        // §4.2).
        format!("{}/{}", self.base, encode(path.trim_start_matches('/')))
    }

    /// Adds the query of the request, unless the location has its own query.
    fn with_query(&self, location: &str) -> String {
        match self.headers.query {
            Some(query) if !location.contains('?') => {
                let (path, fragment) = location.split_once('#').unwrap_or((location, ""));
                let hash = if fragment.is_empty() { "" } else { "#" };
                format!("{path}?{query}{hash}{fragment}")
            }
            _ => location.to_owned(),
        }
    }

    /// Makes the response for a redirect of the site.
    pub(super) fn redirect(&self, destination: &str, permanent: bool) -> Response {
        let status = if permanent { 308 } else { 307 };
        let is_elsewhere =
            destination.starts_with("https://") || destination.starts_with("http://");
        let (path, rest) =
            destination.split_at(destination.find(['?', '#']).unwrap_or(destination.len()));
        let rest: String = rest.chars().filter(char::is_ascii_graphic).collect();
        let location = if is_elsewhere {
            destination.chars().filter(char::is_ascii_graphic).collect()
        } else {
            self.location(&decode_or_keep(path)) + &rest
        };
        to(status, &self.with_query(&location))
    }
}
