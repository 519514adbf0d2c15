//! Forwarding fields, which tell an upstream about the client.
//!
//! An upstream trusts `X-Forwarded-For`, so only trusted peers may set it. Fields of this kind
//! are removed from a client's request, also in spellings that some servers treat as equal
//! (`X_Forwarded_For`), and ours are added. Only the fields of a trusted peer, for example a load
//! balancer of the operator, are kept and extended.
//!
//! Many servers turn fields into variables and write `_` for `-`. So `X_Forwarded_For` is removed
//! too. A field with an underscore is also removed if the same name with hyphens is in the request,
//! or says where the request ends. `Proxy` would become the variable `HTTP_PROXY`, which some
//! programs use as their proxy; it is always removed.
//!
//! Sources: RFC 7239 (`Forwarded`), RFC 9110 §7.6.1 (hop-by-hop fields) and §7.6.3 (`Via`), RFC
//! 9113 §8.2.3 (cookies). No standard defines `X-Forwarded-*` and `X-Real-IP`; they are used as
//! nginx and haproxy use them.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::{self, HeaderName, HeaderValue};
use pingora::http::{RequestHeader, ResponseHeader};

use crate::site::Network;

/// Fields in which proxies tell the client's address, the host or the path, beside
/// `X-Forwarded-*`. Servers and frameworks in use believe them.
const CLAIMS: [&str; 20] = [
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "client-ip",
    "fastly-client-ip",
    "forwarded",
    "proxy-client-ip",
    "true-client-ip",
    "wl-proxy-client-ip",
    "x-azure-clientip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
    "x-original-forwarded-for",
    "x-original-host",
    "x-original-url",
    "x-originating-ip",
    "x-real-ip",
    "x-remote-addr",
    "x-remote-ip",
    "x-rewrite-url",
];
/// Fields that say where a request ends or what happens to its connection, if they have a hyphen.
const FRAMING: [&str; 5] = [
    "content-length",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
];

/// The peers whose forwarding fields are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedPeers(Vec<Network>);

/// The client of one request.
#[derive(Clone, Copy, Debug)]
pub struct Client<'r> {
    /// The address of the connection.
    pub peer: IpAddr,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// The host of its request, in normal form.
    pub host: &'r str,
    /// `1.0`, `1.1` or `2.0`.
    pub version: &'static str,
}

// === impl TrustedPeers ===

impl TrustedPeers {
    /// Trusts the peers in these ranges.
    #[must_use]
    pub fn new(networks: Vec<Network>) -> Self {
        Self(networks)
    }

    /// Returns whether a peer is trusted.
    #[must_use]
    pub fn contains(&self, peer: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(peer))
    }

    /// Returns the client that a trusted peer names in the lines of its `X-Forwarded-For`: the
    /// last address that is not a trusted peer's.
    ///
    /// If there is none, or if a member is not an address, it is the last address that was read.
    #[must_use]
    pub fn client_of<'h>(
        &self,
        peer: IpAddr,
        lines: impl DoubleEndedIterator<Item = &'h [u8]>,
    ) -> IpAddr {
        let mut nearest = peer;
        for line in lines.rev() {
            for member in line.rsplit(|&b| b == b',') {
                let Some(address) = node_address(member.trim_ascii()) else {
                    return nearest;
                };
                nearest = address;
                if !self.contains(address) {
                    return nearest;
                }
            }
        }
        nearest
    }

    /// Returns the scheme over which a trusted peer has received a request, if it says so: the last
    /// member of the last `X-Forwarded-Proto`. The first lines and members may be the client's.
    pub(super) fn proto_of<'h>(&self, peer: IpAddr, headers: &'h HeaderMap) -> Option<&'h [u8]> {
        let lines = headers.get_all("x-forwarded-proto");
        let last = lines.iter().next_back().filter(|_| self.contains(peer))?;
        let member = last.as_bytes().rsplit(|&b| b == b',').next()?;
        Some(member.trim_ascii())
    }
}

/// Reads an address, which some balancers write with a port or in brackets.
fn node_address(text: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(text).ok()?;
    let with_port = || {
        let address = text.parse::<std::net::SocketAddr>().ok()?;
        Some(address.ip())
    };
    let in_brackets = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let plain = text.parse().ok();
    plain.or_else(with_port).or_else(in_brackets)
}

/// Replaces or continues the forwarding fields of a request. `pseudonym` is our name in
/// `Via`.
pub fn forward(
    request: &mut RequestHeader,
    client: &Client<'_>,
    trusted: &TrustedPeers,
    pseudonym: &str,
) {
    let is_trusted = trusted.contains(client.peer);
    let dropped: Vec<HeaderName> = request
        .headers
        .keys()
        .filter(|name| is_dropped(name.as_str(), &request.headers, is_trusted))
        .cloned()
        .collect();
    for name in &dropped {
        request.remove_header(name);
    }
    join_cookies(request);
    let peer = client.peer.to_canonical();
    let proto = if client.tls { "https" } else { "http" };
    // RFC 7239 §6: an IPv6 address is quoted and in brackets.
    let node = if peer.is_ipv6() {
        format!("\"[{peer}]\"")
    } else {
        peer.to_string()
    };
    append(request, "x-forwarded-for", &peer.to_string());
    append(
        request,
        "forwarded",
        &format!("for={node};host=\"{}\";proto={proto}", client.host),
    );
    append(
        request,
        header::VIA.as_str(),
        &format!("{} {pseudonym}", client.version),
    );
    // A trusted load balancer terminated TLS and knows the host that the client requested.
    for (name, value) in [
        ("x-forwarded-proto", proto),
        ("x-forwarded-host", client.host),
        ("x-real-ip", &peer.to_string()),
    ] {
        if !request.headers.contains_key(name) {
            append(request, name, value);
        }
    }
}

/// Returns whether a field of a client's request is removed.
fn is_dropped(name: &str, headers: &HeaderMap, is_trusted: bool) -> bool {
    if name == "proxy" {
        return true;
    }
    if !name.contains('_') {
        return !is_trusted && is_claim(name);
    }
    let with_hyphens = name.replace('_', "-");
    is_claim(&*with_hyphens)
        || FRAMING.contains(&&*with_hyphens)
        || headers.contains_key(&with_hyphens)
}

/// Returns whether a field tells the client's address, the host or the path, in any case.
pub(super) fn is_claim(name: impl AsRef<[u8]>) -> bool {
    const PREFIX: &[u8] = b"x-forwarded";
    let name = name.as_ref();
    let is =
        |known: &&str| known.len() == name.len() && known.as_bytes().eq_ignore_ascii_case(name);
    let start = name.get(..PREFIX.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(PREFIX)) || CLAIMS.iter().any(is)
}

/// Joins the cookie fragments into one field: HTTP/2 may split it (RFC 9113 §8.2.3), and
/// HTTP/1.1 servers read only the first.
fn join_cookies(request: &mut RequestHeader) {
    let cookie_fragments: Vec<&[u8]> = request
        .headers
        .get_all(header::COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if cookie_fragments.len() > 1
        && let Ok(cookies) = HeaderValue::from_bytes(&cookie_fragments.join(&b"; "[..]))
    {
        request
            .insert_header(header::COOKIE, cookies)
            .expect("a name and a value that are valid");
    }
}

/// Adds a member to a list field, in one field line.
fn append(request: &mut RequestHeader, name: &'static str, member: &str) {
    let name = HeaderName::from_static(name);
    let mut list: Vec<u8> = Vec::new();
    for line in request.headers.get_all(&name) {
        list.extend_from_slice(line.as_bytes());
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(member.as_bytes());
    if let Ok(value) = HeaderValue::from_bytes(&list) {
        request
            .insert_header(name, value)
            .expect("a name and a value that are valid");
    }
}

/// Removes the hop-by-hop fields of an upstream's response (RFC 9110 §7.6.1).
///
/// These are the fields that its `Connection` field names, and the older ones that it need not
/// name. pingora writes `Connection` and the framing fields itself.
pub fn remove_hop_by_hop(response: &mut ResponseHeader) {
    let nominated: Vec<HeaderName> = response
        .headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|line| line.as_bytes().split(|&b| b == b','))
        .filter_map(|option| HeaderName::from_bytes(option.trim_ascii()).ok())
        .filter(|name| *name != header::CONTENT_LENGTH && *name != header::TRANSFER_ENCODING)
        .collect();
    for name in &nominated {
        response.remove_header(name);
    }
    for name in ["keep-alive", "proxy-connection", "upgrade"] {
        response.remove_header(name);
    }
}

/// The transfer codings of a response of a site's own server.
///
/// The gateway decodes `chunked` and asks for no other coding (it sends no `TE`), so a response with
/// another one is malformed (RFC 9112 §6.1, §7.4): HTTP/2 clients and copies would get its coded
/// bytes as the content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TransferCodings {
    #[default]
    None,
    Chunked,
    Unknown,
}

impl TransferCodings {
    /// Adds the value of a field line.
    pub(super) fn with(self, line: &[u8]) -> Self {
        let is_chunked = line.trim_ascii().eq_ignore_ascii_case(b"chunked");
        match self {
            Self::None if is_chunked => Self::Chunked,
            _ => Self::Unknown,
        }
    }
}

/// Removes the `Domain` attribute from cookies that would be sent to every site below `domain`, the
/// domain of the service. Such a cookie is then sent to this host only (RFC 6265 §5.3 step 6).
///
/// All default subdomains are below this domain, and they belong to different owners.
pub fn confine_cookies(response: &mut ResponseHeader, domain: &str) {
    let cookies = response.headers.get_all(header::SET_COOKIE);
    let mut cookies_as_bytes = cookies.iter().map(HeaderValue::as_bytes);
    if !cookies_as_bytes.any(|cookie| reaches(cookie, domain)) {
        return;
    }
    let cookies: Vec<HeaderValue> = cookies.iter().cloned().collect();
    response.remove_header(&header::SET_COOKIE);
    for cookie in cookies {
        let confined = confined(cookie.as_bytes(), domain);
        let confined = confined.and_then(|confined| HeaderValue::from_bytes(&confined).ok());
        response
            .append_header(header::SET_COOKIE, confined.unwrap_or(cookie))
            .expect("a name and a value that are valid");
    }
}

/// Returns a cookie without its `Domain`, if it would be sent to every site below `domain`.
pub(super) fn confined(cookie: &[u8], domain: &str) -> Option<Vec<u8>> {
    reaches(cookie, domain).then(|| {
        let parts = cookie.split(|&byte| byte == b';');
        let kept: Vec<_> = parts.filter(|part| domain_of(part).is_none()).collect();
        kept.join(&b';')
    })
}

/// Returns whether a cookie is for `domain` or for a domain above it.
fn reaches(cookie: &[u8], domain: &str) -> bool {
    let attributes = cookie.split(|&byte| byte == b';').skip(1);
    attributes.filter_map(domain_of).any(|named| {
        let above = domain.len().checked_sub(named.len());
        !named.is_empty()
            && above.is_some_and(|above| {
                domain.as_bytes()[above..].eq_ignore_ascii_case(named)
                    && (above == 0 || domain.as_bytes()[above - 1] == b'.')
            })
    })
}

/// Returns the value of a `Domain` attribute, without its leading dot (RFC 6265 §5.2.3).
fn domain_of(attribute: &[u8]) -> Option<&[u8]> {
    let equals = attribute.iter().position(|&byte| byte == b'=')?;
    let (name, value) = attribute.split_at(equals);
    if !name.trim_ascii().eq_ignore_ascii_case(b"domain") {
        return None;
    }
    let value = value[1..].trim_ascii();
    Some(value.strip_prefix(b".").unwrap_or(value))
}

/// Returns whether a request has passed through us before: one member of `Via` is ours.
#[must_use]
pub fn is_loop(request: &RequestHeader, pseudonym: &str) -> bool {
    let mut lines = request.headers.get_all(header::VIA).iter();
    lines.any(|line| names_us(line.as_bytes(), pseudonym))
}

/// Returns whether a line of `Via` has a member that is ours.
pub(super) fn names_us(line: &[u8], pseudonym: &str) -> bool {
    let line = str::from_utf8(line).unwrap_or_default();
    line.split(',')
        .any(|member| member.split_whitespace().nth(1) == Some(pseudonym))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(fields: &[(&'static str, &'static str)]) -> RequestHeader {
        let mut request = RequestHeader::build("GET", b"/", None).unwrap();
        for (name, value) in fields {
            request.append_header(*name, *value).unwrap();
        }
        request
    }

    fn client(peer: &str) -> Client<'static> {
        Client {
            peer: peer.parse().unwrap(),
            tls: true,
            host: "docs.acme.com",
            version: "1.1",
        }
    }

    fn field<'r>(request: &'r RequestHeader, name: &str) -> &'r str {
        let mut lines = request.headers.get_all(name).iter();
        let line = lines.next().map_or("", |line| line.to_str().unwrap());
        assert!(lines.next().is_none(), "{name} has more than one line");
        line
    }

    #[test]
    fn the_client_is_the_last_address_that_is_not_trusted() {
        let trusted = TrustedPeers::new(vec!["10.0.0.0/8".parse().unwrap()]);
        let client = |lines: &[&str]| {
            let lines = lines.iter().map(|line| line.as_bytes());
            trusted.client_of("10.0.0.1".parse().unwrap(), lines)
        };
        for (lines, expected) in [
            (&[][..], "10.0.0.1"),
            (&["192.0.2.1"], "192.0.2.1"),
            // A client can write the first members.
            (&["203.0.113.9, 192.0.2.1 ,10.0.0.2"], "192.0.2.1"),
            (
                &["203.0.113.9", "192.0.2.1", "10.0.0.2, 10.0.0.3"],
                "192.0.2.1",
            ),
            (&["10.0.0.4, 10.0.0.5"], "10.0.0.4"),
            (&["192.0.2.1, unknown, 10.0.0.2"], "10.0.0.2"),
            (&["192.0.2.1, unknown"], "10.0.0.1"),
            (&["192.0.2.1:4711"], "192.0.2.1"),
            (&["[2001:db8::1]"], "2001:db8::1"),
            (&["[2001:db8::1]:4711"], "2001:db8::1"),
            (&["2001:db8::1"], "2001:db8::1"),
            (&["\u{e9}"], "10.0.0.1"),
        ] {
            assert_eq!(client(lines).to_string(), expected, "{lines:?}");
        }
    }

    #[test]
    fn forwarding_fields_of_an_untrusted_client_are_dropped() {
        let mut request = request(&[
            ("x-forwarded-for", "1.2.3.4"),
            ("x_forwarded_for", "1.2.3.4"),
            ("forwarded", "for=1.2.3.4"),
            ("x-forwarded-host", "evil.example"),
            ("x-forwarded-port", "1"),
            ("via", "1.1 cdn"),
        ]);
        forward(
            &mut request,
            &client("192.0.2.7"),
            &TrustedPeers::default(),
            "waypost.test",
        );
        assert_eq!(field(&request, "x-forwarded-for"), "192.0.2.7");
        assert_eq!(field(&request, "x_forwarded_for"), "");
        assert_eq!(
            field(&request, "forwarded"),
            "for=192.0.2.7;host=\"docs.acme.com\";proto=https"
        );
        assert_eq!(field(&request, "x-forwarded-host"), "docs.acme.com");
        assert_eq!(field(&request, "x-forwarded-proto"), "https");
        assert_eq!(field(&request, "x-forwarded-port"), "");
        assert_eq!(field(&request, "via"), "1.1 cdn, 1.1 waypost.test");
    }

    #[test]
    fn forwarding_fields_of_a_trusted_balancer_are_extended() {
        let mut request = request(&[
            ("x-forwarded-for", "198.51.100.1"),
            ("x-forwarded-proto", "http"),
            ("x_real_ip", "9.9.9.9"),
        ]);
        let trusted = TrustedPeers::new(vec!["10.0.0.0/8".parse().unwrap()]);
        forward(
            &mut request,
            &client("::ffff:10.1.2.3"),
            &trusted,
            "waypost.test",
        );
        assert_eq!(field(&request, "x-forwarded-for"), "198.51.100.1, 10.1.2.3");
        assert_eq!(field(&request, "x-forwarded-proto"), "http");
        assert_eq!(field(&request, "x-real-ip"), "10.1.2.3");
        assert_eq!(field(&request, "x_real_ip"), "");
    }

    #[test]
    fn an_ipv6_client_is_quoted_in_forwarded() {
        let mut request = request(&[]);
        forward(
            &mut request,
            &client("2001:db8::1"),
            &TrustedPeers::default(),
            "w",
        );
        assert_eq!(
            field(&request, "forwarded"),
            "for=\"[2001:db8::1]\";host=\"docs.acme.com\";proto=https"
        );
    }

    #[test]
    fn hop_by_hop_fields_of_an_upstream_are_removed() {
        let mut response = ResponseHeader::build(200, None).unwrap();
        for (name, value) in [
            ("connection", "close, X-Hop ,content-length,,"),
            ("x-hop", "a"),
            ("keep-alive", "timeout=5"),
            ("upgrade", "h2c"),
            ("content-length", "5"),
            ("x-end", "b"),
        ] {
            response.append_header(name, value).unwrap();
        }
        remove_hop_by_hop(&mut response);
        let left: Vec<_> = response.headers.keys().map(HeaderName::as_str).collect();
        for name in ["content-length", "x-end"] {
            assert!(left.contains(&name), "{left:?}");
        }
        for name in ["x-hop", "keep-alive", "upgrade"] {
            assert!(!left.contains(&name), "{left:?}");
        }
    }

    #[test]
    fn forwarding_fields_are_dropped_in_every_spelling() {
        let mut request = request(&[
            ("x-forwarded-ssl", "on"),
            ("x-forwarded", "for=1.2.3.4"),
            ("x-client-ip", "1.2.3.4"),
            ("true_client_ip", "1.2.3.4"),
            ("x-original-url", "/admin"),
            ("proxy", "http://evil.example"),
            ("transfer_encoding", "chunked"),
            ("content_length", "5"),
            ("x-own", "a"),
            ("x_own", "b"),
            ("x_other", "c"),
        ]);
        forward(
            &mut request,
            &client("192.0.2.7"),
            &TrustedPeers::default(),
            "waypost.test",
        );
        let mut left: Vec<_> = request.headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        let ours = [
            "forwarded",
            "via",
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-proto",
        ];
        assert_eq!(
            left,
            [&ours[..], &["x-own", "x-real-ip", "x_other"]].concat()
        );
    }

    #[test]
    fn a_cookie_for_all_sites_of_the_service_is_for_one_site() {
        for (cookie, expected) in [
            ("a=b; Domain=waypost.test; Path=/", "a=b; Path=/"),
            ("a=b;domain = .WAYPOST.test;Secure", "a=b;Secure"),
            ("a=b; Domain=test", "a=b"),
            (
                "a=b; Domain=acme.waypost.test",
                "a=b; Domain=acme.waypost.test",
            ),
            ("a=b; Domain=acme.com", "a=b; Domain=acme.com"),
            ("a=b; Domain=post.test", "a=b; Domain=post.test"),
            ("a=b; Domain=", "a=b; Domain="),
            ("Domain=waypost.test", "Domain=waypost.test"),
        ] {
            let mut response = ResponseHeader::build(200, None).unwrap();
            response.append_header("set-cookie", cookie).unwrap();
            response.append_header("set-cookie", "other=1").unwrap();
            confine_cookies(&mut response, "waypost.test");
            let cookies: Vec<_> = response.headers.get_all("set-cookie").iter().collect();
            assert_eq!(cookies, [expected, "other=1"], "{cookie}");
        }
    }

    #[test]
    fn our_pseudonym_in_via_is_a_loop() {
        assert!(is_loop(
            &request(&[("via", "1.0 fred, 1.1 waypost.test")]),
            "waypost.test"
        ));
        assert!(!is_loop(
            &request(&[("via", "1.1 waypost.test.example, 1.1 x (waypost.test)")]),
            "waypost.test"
        ));
    }
}
