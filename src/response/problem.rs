//! Problems: the body of an error response.
//!
//! The body is `application/problem+json` with one more member, `error`: the same text as `detail`,
//! for clients that read only that, and `errors` if there are several mistakes. The problem `type`
//! is always `about:blank`: no client needs more than the status. Details that are only for the log
//! are never in the response.
//!
//! Source: RFC 9457 §3 and §4.2.1.

use bytes::Bytes;
use serde::Serialize;

use super::{Response, caching, reason};

/// The media type of problem bodies.
const MEDIA_TYPE: &str = "application/problem+json";

/// An error, to be turned into a [`Response`].
#[derive(Clone, Debug)]
pub struct Problem {
    status: u16,
    detail: String,
    errors: Vec<String>,
    policy: caching::Policy,
}

#[derive(Serialize)]
struct Body<'p> {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    detail: &'p str,
    error: &'p str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Mistake<'p>>,
}

/// One of several mistakes.
#[derive(Serialize)]
struct Mistake<'p> {
    detail: &'p str,
}

// === impl Problem ===

impl Problem {
    /// Makes a problem. `detail` is a sentence for the client; it names no internals.
    #[must_use]
    pub fn new(status: u16, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
            errors: Vec::new(),
            policy: caching::NEVER,
        }
    }

    /// Makes a problem of several mistakes, each a sentence.
    #[must_use]
    pub fn of_mistakes(status: u16, mistakes: Vec<String>) -> Self {
        Self {
            errors: mistakes.clone(),
            ..Self::new(status, mistakes.join("; "))
        }
    }

    /// Lets caches keep the response.
    #[must_use]
    pub fn cached(mut self, policy: caching::Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Returns the response.
    #[must_use]
    pub fn response(&self) -> Response {
        let body = Body {
            r#type: "about:blank",
            title: reason(self.status),
            status: self.status,
            detail: &self.detail,
            error: &self.detail,
            errors: self
                .errors
                .iter()
                .map(|detail| Mistake { detail })
                .collect(),
        };
        let mut bytes = serde_json::to_vec(&body).expect("strings and a number are JSON");
        bytes.push(b'\n');
        // An owner other than `Vec` is shared from the start: clones allocate nothing.
        let bytes = Bytes::from_owner(bytes.into_boxed_slice());
        Response {
            caching: self.policy,
            ..Response::new(self.status, MEDIA_TYPE, bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_repeats_its_detail_in_the_error_member() {
        let response = Problem::new(404, "no site at \"x\"").response();
        let body: serde_json::Value =
            serde_json::from_slice(response.body.memory().unwrap()).unwrap();
        assert_eq!(body["detail"], body["error"]);
        assert_eq!(body["title"], "Not Found");
        assert_eq!(body["status"], 404);
    }
}
