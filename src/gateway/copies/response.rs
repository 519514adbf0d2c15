//! The response that a copy gives.
//!
//! The fields are those of the response that was kept, with `Age` (RFC 9111 §5.1), `Cache-Status`
//! (RFC 9211) and our `Via`. A client that has the content already gets 304 (RFC 9110 §13). `Range`
//! is ignored, which RFC 9110 §14.2 allows.

use http::header::{self, HeaderName, HeaderValue};

use super::file::Opened;
use crate::gateway::ending::End;
use crate::response::{Body, Response, Stored, caching, has_tag, read_date};

/// Fields that a 304 has too (RFC 9110 §15.4.5).
const WITHOUT_CONTENT: [HeaderName; 6] = [
    header::CACHE_CONTROL,
    header::CONTENT_LOCATION,
    header::ETAG,
    header::EXPIRES,
    header::LAST_MODIFIED,
    header::VARY,
];

/// A copy that is the response to a request.
#[derive(Debug)]
pub(in crate::gateway) struct FoundCopy {
    pub(super) opened: Opened,
    /// Its age, in seconds.
    pub(in crate::gateway) age: u64,
}

/// Why a copy is sent.
#[derive(Clone, Copy, Debug)]
pub(in crate::gateway) struct Reason {
    pub(in crate::gateway) end: End,
    /// The status of the server's response, if there was one.
    pub(in crate::gateway) status: Option<u16>,
}

impl FoundCopy {
    /// Makes the response. `domain` is the domain of the service, and `fields` are those of the
    /// request.
    pub(in crate::gateway) fn response<'f>(
        self,
        reason: Reason,
        domain: &str,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
    ) -> Response {
        let is_known = self.is_known(fields);
        let description = &self.opened.description;
        let lifetime = i128::from(description.fresh) - i128::from(self.age);
        let mut more = self.opened.fields;
        if is_known {
            more.retain(|(name, _)| WITHOUT_CONTENT.contains(name));
        }
        // The server is always asked first: `hit` would say that it was not.
        let asked = if lifetime > 0 { "bypass" } else { "stale" };
        let status = reason.status.map(|status| format!("; fwd-status={status}"));
        let status = status.unwrap_or_default();
        let detail = reason.end.as_str();
        let made = [
            (header::AGE, self.age.to_string()),
            (
                HeaderName::from_static("cache-status"),
                format!("\"{domain}\"; fwd={asked}{status}; ttl={lifetime}; detail={detail}"),
            ),
            (header::VIA, format!("1.1 {domain}")),
        ];
        for (name, value) in made {
            if let Ok(value) = HeaderValue::try_from(value) {
                more.push((name, value));
            }
        }
        let status = if is_known { 304 } else { 200 };
        Response {
            caching: caching::OWN,
            more,
            body: match is_known {
                true => Body::default(),
                false => Body::Stored(Stored::whole(self.opened.content)),
            },
            ..Response::empty(status)
        }
    }

    /// Returns whether the client has the content already.
    fn is_known<'f>(&self, fields: impl Iterator<Item = (&'f [u8], &'f [u8])>) -> bool {
        let own = |name: HeaderName| {
            let mut found = self.opened.fields.iter().filter(|(own, _)| *own == name);
            found.next().map(|(_, value)| value.as_bytes())
        };
        let mut is_known = None;
        let mut since = None;
        for (name, value) in fields {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            match name.len() {
                13 if is("if-none-match") => {
                    let has = own(header::ETAG).is_some_and(|tag| has_tag(value, tag, true));
                    *is_known.get_or_insert(false) |= has || value.trim_ascii() == b"*";
                }
                17 if is("if-modified-since") => since = read_date(value),
                _ => {}
            }
        }
        // RFC 9110 §13.1.3: the date does not count beside `If-None-Match`.
        is_known.unwrap_or_else(|| {
            let modified = own(header::LAST_MODIFIED).and_then(read_date);
            modified
                .zip(since)
                .is_some_and(|(modified, since)| modified <= since)
        })
    }
}
