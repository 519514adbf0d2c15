//! A request, as far as copies are concerned.

use crate::digest::Hasher;
use crate::gateway::forward;
use crate::response::encoding::Accepted;

/// How many bytes of a digest name a target.
const TARGET_BYTES: usize = 16;

/// Fields that a request may have whose response is kept. Some servers put the values of other
/// fields into their pages without saying so in `Vary`, and such a page could harm later readers.
/// Browsers, crawlers and command-line clients send only these, and proxies add some of them.
const PLAIN: [&str; 32] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "cdn-loop",
    "cf-ray",
    "cf-visitor",
    "cf-ipcountry",
    "cf-warp-tag-id",
    "connection",
    "dnt",
    "from",
    "host",
    "if-modified-since",
    "if-none-match",
    "keep-alive",
    "pragma",
    "priority",
    "proxy-connection",
    "purpose",
    "referer",
    "te",
    "traceparent",
    "tracestate",
    "upgrade-insecure-requests",
    "user-agent",
    "via",
    "x-amzn-trace-id",
    "x-cloud-trace-context",
    "x-correlation-id",
    "x-request-id",
    "x-trace-id",
];

/// The requested address: scheme, host, path and query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TargetKey([u8; TARGET_BYTES]);

/// A request for something that may have a copy.
#[derive(Clone, Copy, Debug)]
pub(in crate::gateway) struct Asked {
    pub(super) target: TargetKey,
    pub(super) accepted: Accepted,
    pub(super) kind: Kind,
    /// Whether the response may be kept: it is not for this client only, and it is what other
    /// clients get.
    pub(super) may_keep: bool,
    may_use: bool,
}

/// The methods that differ here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Get,
    Head,
    /// A method that may change the page (RFC 9111 §4.4).
    Unsafe,
}

// === impl TargetKey ===

impl TargetKey {
    pub(super) fn as_bytes(&self) -> &[u8; TARGET_BYTES] {
        &self.0
    }

    pub(super) fn from_bytes(bytes: [u8; TARGET_BYTES]) -> Self {
        Self(bytes)
    }
}

// === impl Asked ===

impl Asked {
    /// Reads a request; `None` if copies do not matter for it. `host` is in normal form, `target`
    /// is path and query, and `is_trusted` says whether the forwarding fields are believed. `known`
    /// names more fields that the response does not depend on.
    pub(super) fn of<'f>(
        known: &[Box<str>],
        method: &str,
        is_tls: bool,
        host: &str,
        target: &[u8],
        is_trusted: bool,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
    ) -> Option<Self> {
        let kind = match method {
            "GET" => Kind::Get,
            "HEAD" => Kind::Head,
            "OPTIONS" | "TRACE" => return None,
            _ => Kind::Unsafe,
        };
        let mut key = Hasher::default();
        key.update(if is_tls { b"https://" } else { b"http://" });
        key.update(host.as_bytes());
        key.update(target);
        let mut accept_encoding: Option<Vec<u8>> = None;
        let mut has_credentials = false;
        let mut asked = Self {
            target: TargetKey([0; TARGET_BYTES]),
            accepted: Accepted::IDENTITY_ONLY,
            kind,
            may_keep: kind == Kind::Get,
            may_use: kind != Kind::Unsafe,
        };
        for (name, value) in fields {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            match name.len() {
                5 if is("range") => asked.may_keep = false,
                6 if is("cookie") => has_credentials = true,
                7 if is("upgrade") => asked.may_use = false,
                13 if is("authorization") => {
                    has_credentials = true;
                    asked.may_use = false;
                }
                13 if is("cache-control") => {
                    let mut directives = super::policy::members(value);
                    asked.may_keep &= !directives.any(|it| it.eq_ignore_ascii_case(b"no-store"));
                }
                15 if is("accept-encoding") => match &mut accept_encoding {
                    None => accept_encoding = Some(value.to_vec()),
                    Some(list) => {
                        list.push(b',');
                        list.extend_from_slice(value);
                    }
                },
                // The server does not get it.
                _ if forward::is_claim(name) && !is_trusted => {}
                // Servers write the host and the scheme into their pages.
                16.. if starts_with(name, "x-forwarded-") => {
                    key.update(b"\n");
                    key.update(&name.to_ascii_lowercase());
                    key.update(b":");
                    key.update(value);
                }
                // Some servers take the path or the host from these.
                _ if starts_with(name, "x-original-") || starts_with(name, "x-rewrite-") => {
                    asked.may_keep = false;
                }
                _ if forward::is_claim(name) => {}
                _ => asked.may_keep &= is_plain(name) || known.iter().any(|known| is(known)),
            }
        }
        asked.may_keep &= !has_credentials;
        if let Some(list) = accept_encoding {
            asked.accepted = Accepted::parse(&list);
        }
        let digest = key.finish();
        asked
            .target
            .0
            .copy_from_slice(&digest.as_bytes()[..TARGET_BYTES]);
        Some(asked)
    }

    /// Returns whether a copy may be the response.
    pub(in crate::gateway) fn may_use(&self) -> bool {
        self.may_use
    }
}

fn is_plain(name: &[u8]) -> bool {
    let is_known =
        |known: &&str| known.len() == name.len() && known.as_bytes().eq_ignore_ascii_case(name);
    starts_with(name, "sec-") || PLAIN.iter().any(is_known)
}

fn starts_with(name: &[u8], start: &str) -> bool {
    let found = name.get(..start.len());
    found.is_some_and(|found| found.eq_ignore_ascii_case(start.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, is_trusted: bool, fields: &[(&str, &str)]) -> Asked {
        let fields = fields
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        Asked::of(
            &["X-Known".into()],
            method,
            true,
            "docs.acme.test",
            b"/a",
            is_trusted,
            fields,
        )
        .unwrap()
    }

    #[test]
    fn only_the_response_to_a_plain_request_of_nobody_in_particular_is_kept() {
        let plain = [
            ("Host", "docs.acme.test"),
            ("User-Agent", "a"),
            ("Sec-Fetch-Mode", "navigate"),
            ("X-Forwarded-For", "192.0.2.1"),
            ("Cache-Control", "max-age=0"),
            ("x-known", "a"),
        ];
        assert!(asked("GET", false, &plain).may_keep);
        for (name, value) in [
            ("Cookie", "a=b"),
            ("Authorization", "Bearer a"),
            ("Range", "bytes=0-1"),
            ("Cache-Control", "max-age=0, No-Store"),
            ("X-Own", "a"),
            ("Origin", "https://evil.test"),
            ("X-Host", "evil.test"),
            ("Sec", "a"),
        ] {
            let asked = asked("GET", false, &[("Accept", "*/*"), (name, value)]);
            assert!(!asked.may_keep, "{name}");
            assert_eq!(asked.may_use(), name != "Authorization");
        }
        assert!(!asked("HEAD", false, &plain).may_keep);
        assert!(asked("HEAD", false, &plain).may_use());
        assert!(!asked("POST", false, &plain).may_use());
        assert!(!asked("GET", false, &[("Upgrade", "websocket")]).may_use());
    }

    #[test]
    fn a_copy_belongs_to_scheme_host_and_target_as_the_server_sees_them() {
        let of = |is_tls, host: &str, target: &str| {
            let none = std::iter::empty();
            let asked = Asked::of(&[], "GET", is_tls, host, target.as_bytes(), false, none);
            asked.unwrap().target
        };
        let keys = [
            of(true, "a.test", "/a"),
            of(false, "a.test", "/a"),
            of(true, "b.test", "/a"),
            of(true, "a.test", "/a?b"),
            of(true, "a.test", "/A"),
        ];
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key), "{at}");
        }
        let proto = [("X-Forwarded-Proto", "http")];
        assert_eq!(
            asked("GET", false, &proto).target,
            asked("GET", false, &[]).target
        );
        assert_ne!(
            asked("GET", true, &proto).target,
            asked("GET", true, &[]).target
        );
        // The addresses of readers differ, and their pages do not.
        let address = [
            ("X-Forwarded-For", "192.0.2.1"),
            ("CF-Connecting-IP", "192.0.2.1"),
        ];
        assert_eq!(
            asked("GET", true, &address).target,
            asked("GET", true, &[]).target
        );
        assert!(asked("GET", true, &address).may_keep);
        assert!(!asked("GET", true, &[("X-Original-URL", "/b")]).may_keep);
    }
}
