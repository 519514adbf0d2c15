//! The embedded origin: a site's own pages, from its current release.
//!
//! A release holds skills so far, which discovery answers; there are no pages in it yet.
//! What the origin can say already, it says: where the site lives, and that nothing else
//! is there.

use http::header::{HeaderValue, LOCATION};

use crate::answer::{Answer, Problem, caching};
use crate::index::{Served, State};

/// Answers a request for `path`, normalised and without query, on one of a site's hosts.
#[must_use]
pub fn answer(served: &Served, path: &str) -> Answer {
    let base = served.site.base_path.as_str();
    let absent = || {
        Problem::new(404, "there is no such page on this site")
            .cached(caching::ABSENT)
            .answer()
    };
    // Nothing authenticates here, so a private site shows nothing, not even where it lives.
    if matches!(served.state, State::Private) || base.is_empty() || path != "/" {
        return absent();
    }
    match HeaderValue::from_str(&format!("{base}/")) {
        Ok(location) => Answer {
            caching: caching::DISCOVERY,
            ..Answer::empty(307)
        }
        .with(LOCATION, location),
        Err(_) => absent(),
    }
}
