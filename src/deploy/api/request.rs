//! Requests of the admin API: resource, key and idempotency key.

use std::net::IpAddr;

use bytes::Bytes;

use super::{ErrorResponse, error_response};
use crate::digest::Digest;

/// The longest `Idempotency-Key`.
const IDEMPOTENCY_KEY_MAX: usize = 255;

/// The parts of a request that the API uses.
#[derive(Clone, Debug)]
pub struct Request<'r> {
    /// The method.
    pub method: &'r str,
    /// The path, without its query.
    pub path: &'r str,
    /// Every `Authorization` field.
    pub authorization: Vec<&'r [u8]>,
    /// Every `Idempotency-Key` field.
    pub idempotency_key: Vec<&'r [u8]>,
    /// The text after `?`, if there is one.
    pub query: Option<&'r str>,
    /// The `Content-Type` field.
    pub content_type: Option<&'r [u8]>,
    /// Every `If-Match` field.
    pub if_match: Vec<&'r [u8]>,
    /// Every `If-None-Match` field.
    pub if_none_match: Vec<&'r [u8]>,
    /// Its content.
    pub content: Bytes,
    /// Whether its content is more than [`BODY_BYTES_MAX`](super::BODY_BYTES_MAX).
    pub is_too_large: bool,
    /// Whether it came over TLS or from this machine.
    pub is_confidential: bool,
    /// The address of the caller, for the log.
    pub client: Option<IpAddr>,
}

/// The resource of a path.
pub(super) enum Resource<'r> {
    Description,
    Trigger(&'r str),
    Status(&'r str),
    Sites,
    Site(&'r str),
    Domains(&'r str),
    Domain(&'r str, &'r str),
    Check(&'r str, &'r str),
    Numbers(&'r str),
    Audit,
}

// === impl Resource ===

impl<'r> Resource<'r> {
    pub(super) fn find(path: &'r str) -> Option<Self> {
        if path == "/openapi.json" {
            return Some(Self::Description);
        }
        match path.strip_prefix("/v1/")? {
            "sites" => return Some(Self::Sites),
            "audit" => return Some(Self::Audit),
            below => {
                if let Some(below) = below.strip_prefix("sites/") {
                    return Self::of_site(below);
                }
            }
        }
        let rest = path.strip_prefix("/v1/project/")?;
        let (collection, id) = rest.split_once('/')?;
        if id.contains('/') {
            return None;
        }
        match collection {
            "update" => Some(Self::Trigger(id)),
            "update-status" => Some(Self::Status(id)),
            _ => None,
        }
    }

    /// Finds the resource of a path below `/v1/sites/`.
    fn of_site(below: &'r str) -> Option<Self> {
        let mut segments = below.split('/');
        let project = segments.next()?;
        let rest = [(); 4].map(|()| segments.next());
        match rest {
            [None, ..] => Some(Self::Site(project)),
            [Some("numbers"), None, ..] => Some(Self::Numbers(project)),
            [Some("domains"), None, ..] => Some(Self::Domains(project)),
            [Some("domains"), Some(host), None, _] => Some(Self::Domain(project, host)),
            [Some("domains"), Some(host), Some("check"), None] => Some(Self::Check(project, host)),
            _ => None,
        }
    }

    pub(super) fn methods(&self) -> &'static str {
        match self {
            Self::Description
            | Self::Status(_)
            | Self::Sites
            | Self::Domains(_)
            | Self::Numbers(_)
            | Self::Audit => "GET, HEAD",
            Self::Trigger(_) | Self::Check(..) => "POST",
            Self::Site(_) => "GET, HEAD, PUT, PATCH, DELETE",
            Self::Domain(..) => "GET, HEAD, PUT, DELETE",
        }
    }
}

/// Returns the key after `Bearer` (RFC 9110 §11.4: the scheme is case-insensitive).
pub(super) fn bearer(field: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(field).ok()?;
    let (scheme, key) = text.trim().split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| key.trim_start())
}

/// Returns the digest of the `Idempotency-Key`. The key itself is not stored, because a caller
/// may put anything into it.
pub(super) fn idempotency(fields: &[&[u8]]) -> Result<Option<Digest>, ErrorResponse> {
    let rejected = |detail: &str| Err(error_response(400, detail));
    match fields {
        [] => Ok(None),
        [key] if key.is_empty() || key.len() > IDEMPOTENCY_KEY_MAX => {
            rejected("the Idempotency-Key must have 1 to 255 characters")
        }
        [key] if !key.iter().all(u8::is_ascii_graphic) => {
            rejected("the Idempotency-Key must be visible ASCII without spaces")
        }
        [key] => Ok(Some(Digest::of(key))),
        _ => rejected("the request has more than one Idempotency-Key"),
    }
}
