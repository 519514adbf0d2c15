//! Forwarding fields: what an upstream is told about the client.
//!
//! An upstream believes `X-Forwarded-For`, so not everybody may set it. Fields of this kind are
//! removed from a client's request, also in spellings that some servers treat as equal
//! (`X_Forwarded_For`), and ours are added. Only the fields of a trusted peer, for example a load
//! balancer of the operator, are kept and extended.
//!
//! Sources: RFC 7239 (`Forwarded`), RFC 9110 §7.6.1 (hop-by-hop fields) and §7.6.3 (`Via`), RFC
//! 9113 §8.2.3 (cookies). No standard defines `X-Forwarded-*` and `X-Real-IP`; they are used as
//! nginx and haproxy use them.

use std::net::IpAddr;
use std::str::FromStr;

use http::header::{self, HeaderName, HeaderValue};
use ipnet::IpNet;
use pingora::http::{RequestHeader, ResponseHeader};

/// The fields that we set. Those of a client are removed.
const FORWARDING: [&str; 8] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-port",
    "x-forwarded-server",
    "x-forwarded-prefix",
    "x-real-ip",
];

/// A range of addresses: `10.0.0.0/8`, `2001:db8::/32`, or a single one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

/// Why a text is not a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an address nor a range such as 10.0.0.0/8")]
pub struct InvalidNetwork(String);

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
    /// The `Host` it sent.
    pub host: &'r str,
    /// `1.0`, `1.1` or `2.0`.
    pub version: &'static str,
}

// === impl Network ===

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let single = |text: &str| text.parse::<IpAddr>().map(IpNet::from);
        text.parse::<IpNet>()
            .or_else(|_not_a_range| single(text))
            .map(Self)
            .map_err(|_neither| InvalidNetwork(text.to_owned()))
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Network {
    /// Returns whether an address is in the range. An IPv4 address that arrives on an IPv6
    /// socket is the IPv4 address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
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
        .filter(|name| {
            let folded = name.as_str().replace('_', "-");
            FORWARDING.contains(&folded.as_str()) && (!is_trusted || name.as_str().contains('_'))
        })
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

/// Returns whether a request has passed through us before: one member of `Via` is ours.
#[must_use]
pub fn is_loop(request: &RequestHeader, pseudonym: &str) -> bool {
    let lines = request
        .headers
        .get_all(header::VIA)
        .iter()
        .filter_map(|line| line.to_str().ok());
    lines
        .flat_map(|line| line.split(','))
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
    fn a_network_contains_the_addresses_of_its_prefix() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
            ("2001:db8::/33", "2001:db8:7fff::", "2001:db8:8000::"),
            ("0.0.0.0/0", "255.1.1.1", "::1"),
            ("::/0", "::1", "1.1.1.1"),
        ] {
            let network: Network = network.parse().unwrap();
            assert!(
                network.contains(inside.parse().unwrap()),
                "{network} {inside}"
            );
            assert!(
                !network.contains(outside.parse().unwrap()),
                "{network} {outside}"
            );
        }
        for wrong in ["10.0.0.0/33", "10.0.0/8", "", "a/8", "::/129"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
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
