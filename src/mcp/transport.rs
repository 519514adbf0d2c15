//! Streamable HTTP: the rules for requests, and their responses.
//!
//! | request | response |
//! |---|---|
//! | `POST` of a request | 200 with one JSON-RPC response |
//! | `POST` of a notification | 202 |
//! | `GET`, `DELETE` and others | 405: there are no streams and no sessions |
//! | an `Origin` that is neither https nor this machine | 403 |
//! | a content that is not JSON | 415 |
//! | a content that is too long | 413 |
//!
//! Scripts of every origin over https may send messages, without credentials: all answers are
//! public.
//!
//! Source: Model Context Protocol 2026-07-28, `basic/transports/streamable-http`; 2025-11-25,
//! `basic/transports`.

use bytes::Bytes;

use super::{BODY_BYTES_MAX, MessageResponse};
use crate::response::{Cors, Problem, RequestHeaders, Response};

/// The media type of a message.
const JSON: &str = "application/json";
/// The methods of the address.
const ALLOW: &str = "POST, OPTIONS";

/// Rejects a request whose content is not read. Returns `None` if the content must be read and
/// answered.
///
/// `length` is the length of the content, if it is known.
#[must_use]
pub fn reject(headers: &RequestHeaders<'_>, length: Option<u64>) -> Option<Response> {
    if headers.origin.is_some_and(|origin| !is_allowed(origin)) {
        let detail = "the Origin is neither an https origin nor this machine";
        return Some(Problem::new(403, detail).response());
    }
    match headers.method {
        "POST" => {}
        "OPTIONS" => {
            return Some(Response {
                cors: Cors::McpPreflight,
                allow: Some(ALLOW),
                ..Response::empty(204)
            });
        }
        _ => {
            let detail = "this is the address of an MCP server: agents send messages to it by POST";
            return Some(Response {
                allow: Some(ALLOW),
                ..problem(405, detail)
            });
        }
    }
    if !headers.has_media_type(JSON) {
        return Some(problem(
            415,
            "a message has the media type application/json",
        ));
    }
    let length_max = BODY_BYTES_MAX as u64;
    length
        .is_some_and(|length| length > length_max)
        .then(too_long)
}

/// The response to a content that is longer than [`BODY_BYTES_MAX`].
#[must_use]
pub fn too_long() -> Response {
    problem(413, "a message has at most 65,536 bytes")
}

/// Returns the response with an answer.
#[must_use]
pub fn response(answer: MessageResponse) -> Response {
    let response = match answer.body.is_empty() {
        true => Response::empty(answer.status),
        false => Response::new(answer.status, JSON, Bytes::from(answer.body)),
    };
    Response {
        cors: Cors::Mcp,
        ..response
    }
}

/// Makes a problem that scripts of every origin may read.
#[must_use]
pub fn problem(status: u16, detail: &str) -> Response {
    Response {
        cors: Cors::Mcp,
        ..Problem::new(status, detail).response()
    }
}

/// Returns whether a page of this origin may send messages: a page on the web over TLS, or a tool
/// on the reader's own machine.
fn is_allowed(origin: &[u8]) -> bool {
    let Ok(origin) = str::from_utf8(origin) else {
        return false;
    };
    let origin = origin.trim().to_ascii_lowercase();
    if let Some(rest) = origin.strip_prefix("https://") {
        return !rest.is_empty() && !rest.contains(['/', ' ', ',', '@']);
    }
    let Some(rest) = origin.strip_prefix("http://") else {
        return false;
    };
    let host = match rest.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => rest,
    };
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_over_tls_and_on_this_machine_may_ask() {
        for origin in [
            "https://agent.example",
            "https://agent.example:8443",
            "http://localhost",
            "http://localhost:6274",
            "http://127.0.0.1:1",
            "http://[::1]:80",
            "HTTPS://Agent.example",
        ] {
            assert!(is_allowed(origin.as_bytes()), "{origin}");
        }
        for origin in [
            "http://evil.example",
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "null",
            "",
            "https://",
            "file://",
            "chrome-extension://x",
            "https://a, https://b",
            "http://localhost:80:x",
        ] {
            assert!(!is_allowed(origin.as_bytes()), "{origin}");
        }
        assert!(!is_allowed(b"\xff"));
    }
}
