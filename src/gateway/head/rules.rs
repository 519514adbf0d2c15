//! The rules for request heads in every version of HTTP.
//!
//! HTTP/1.1 calls them while it reads the text of a head, HTTP/2 calls them on the fields that
//! its library has decoded ([`check_http2`]). Each rule is one function, so a request that is
//! rejected over one version is rejected over the other with the same status.
//!
//! Limit: over HTTP/2 the library removes a fragment (`/x#y`) from the target before anybody can
//! see it. The upstream gets the path without it too.
//!
//! Sources: RFC 9110 §7.2, §8.6, §9.3.6, §9.3.8, §10.1.1; RFC 9112 §3.2, RFC 9113 §8.3.1;
//! RFC 3986 §2, §3.1, §3.5.

use std::borrow::Cow;

use http::header;

use super::Rejection;
use crate::gateway::limits::Limits;
use crate::site::{self, Scheme};

const fn reject(status: u16, detail: &'static str) -> Rejection {
    Rejection { status, detail }
}

/// Which bytes a path may have, and which ones a query.
static IN_PATH: [bool; 256] = visible_except(b'`');
static IN_QUERY: [bool; 256] = visible_except(b'"');

/// Returns for each byte whether it is visible, and none of `#`, `\`, `<`, `>` and `excluded`.
const fn visible_except(excluded: u8) -> [bool; 256] {
    let mut allowed = [false; 256];
    let mut byte = 0x21;
    while byte <= 0x7e {
        let is_excluded = matches!(byte, b'#' | b'\\' | b'<' | b'>') || byte == excluded;
        allowed[byte as usize] = !is_excluded;
        byte += 1;
    }
    allowed
}

/// Checks the method. TRACE would send credentials back (RFC 9110 §9.3.8); CONNECT is for a
/// proxy that the client chose (§9.3.6).
pub(super) fn method(method: &str) -> Result<(), Rejection> {
    match method {
        "TRACE" | "CONNECT" => Err(reject(405, "this method is not allowed here")),
        _ => Ok(()),
    }
}

/// Checks the length of the target and the number of fields.
pub(super) fn sizes(target: usize, fields: usize, limits: &Limits) -> Result<(), Rejection> {
    if target > limits.target_bytes_max {
        return Err(reject(414, "the request target is too long"));
    }
    if fields > limits.fields_max {
        return Err(reject(431, "the request has too many header fields"));
    }
    Ok(())
}

/// Checks the characters of a target.
///
/// RFC 3986 §3.5 and §2: no fragment, no backslash, nothing outside visible ASCII. Real clients
/// send some other characters that no URL may hold; they encode the ones rejected here (WHATWG
/// URL §1.3), and pingora cannot read them: `<`, `>`, `"` in a query, a backquote in a path.
pub(super) fn target_characters(target: &str) -> Result<(), Rejection> {
    let path_length = memchr::memchr(b'?', target.as_bytes()).unwrap_or(target.len());
    let (path, query) = target.split_at(path_length);
    let has_only =
        |text: &str, allowed: &[bool; 256]| text.bytes().all(|b| allowed[usize::from(b)]);
    match has_only(path, &IN_PATH) && has_only(query, &IN_QUERY) {
        true => Ok(()),
        false => Err(reject(
            400,
            "the request target has characters that no URL has",
        )),
    }
}

/// Checks that the target `*` comes with `OPTIONS` (RFC 9112 §3.2.4).
pub(super) fn asterisk(method: &str) -> Result<(), Rejection> {
    match method {
        "OPTIONS" => Ok(()),
        _ => Err(reject(400, "the target * is for OPTIONS")),
    }
}

/// Reads the scheme of a target.
pub(super) fn scheme(name: &str) -> Result<Scheme, Rejection> {
    if name.eq_ignore_ascii_case("http") {
        Ok(Scheme::Http)
    } else if name.eq_ignore_ascii_case("https") {
        Ok(Scheme::Https)
    } else {
        Err(reject(
            400,
            "the request target is neither a path nor an http URL",
        ))
    }
}

/// Reads a host; `None` is an IP address, if `may_be_address` allows one. An address, or anything
/// else that is not a host name, selects no site.
pub(super) fn host(host: &str, may_be_address: bool) -> Result<Option<Cow<'_, str>>, Rejection> {
    match site::normalise(host) {
        Ok(name) => Ok(Some(name)),
        Err(site::InvalidHost::Address) if may_be_address => Ok(None),
        Err(_) => Err(reject(400, "the Host field is not a host name")),
    }
}

/// Reads a `Content-Length`; `known` is the value of an earlier one.
///
/// RFC 9110 §8.6: digits only. A list, or a second field, could be combined if all members were
/// equal; an upstream that uses another member must not see it.
pub(super) fn content_length(value: &[u8], known: Option<u64>) -> Result<u64, Rejection> {
    let digits = value.trim_ascii();
    let number = (!digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
        .then(|| str::from_utf8(digits).ok()?.parse().ok())
        .flatten()
        .ok_or(reject(400, "the Content-Length is not a number"))?;
    match known {
        None => Ok(number),
        Some(_) => Err(reject(400, "the request has more than one Content-Length")),
    }
}

/// Checks an `Expect`. RFC 9110 §10.1.1 defines one expectation; any other cannot be met.
pub(super) fn expectation(value: &[u8]) -> Result<(), Rejection> {
    match value.eq_ignore_ascii_case(b"100-continue") {
        true => Ok(()),
        false => Err(reject(
            417,
            "the request expects something other than 100-continue",
        )),
    }
}

/// Checks the head of an HTTP/2 request, whose syntax the library has checked (RFC 9113 §8.2,
/// §8.3).
///
/// # Errors
///
/// The [`Rejection`] to respond with.
pub fn check_http2(head: &http::request::Parts, limits: &Limits) -> Result<(), Rejection> {
    method(head.method.as_str())?;
    let target = head
        .uri
        .path_and_query()
        .map_or("", |target| target.as_str());
    sizes(target.len(), head.headers.len(), limits)?;
    target_characters(target)?;
    match target {
        "*" => asterisk(head.method.as_str())?,
        _ if target.starts_with('/') => {}
        _ => return Err(reject(400, "the request target is not a path")),
    }
    if let Some(name) = head.uri.scheme_str() {
        scheme(name)?;
    }
    // RFC 9113 §8.3.1: `Host` and `:authority` may both come, and name the same host.
    let mut hosts = head.headers.get_all(header::HOST).iter();
    if let Some(host) = hosts.next() {
        let is_other = |authority: &http::uri::Authority| {
            !authority
                .as_str()
                .as_bytes()
                .eq_ignore_ascii_case(host.as_bytes())
        };
        if hosts.next().is_some() || head.uri.authority().is_some_and(is_other) {
            return Err(reject(400, "the request names two hosts"));
        }
    }
    let mut length = None;
    for value in head.headers.get_all(header::CONTENT_LENGTH) {
        length = Some(content_length(value.as_bytes(), length)?);
    }
    for value in head.headers.get_all(header::EXPECT) {
        expectation(value.as_bytes())?;
    }
    Ok(())
}
