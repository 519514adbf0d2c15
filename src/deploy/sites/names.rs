//! Which names no customer can have, and which names are above a name.
//!
//! Sources: RFC 2606 and RFC 6761 (reserved names), RFC 6762 (`local`), RFC 7686 (`onion`), RFC
//! 8375 (`home.arpa`), RFC 9476 (`alt`), the resolution of ICANN of 29 July 2024 (`internal`),
//! publicsuffix.org; RFC 1123 §2.1 and UTS #46 (the letters of a host name).

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

use crate::site::{Host, Service, is_within};

/// Names that nobody can own, and all names below them.
const NEVER: [&str; 9] = [
    "alt",
    "localhost",
    "invalid",
    "onion",
    "arpa",
    "example",
    "example.com",
    "example.net",
    "example.org",
];
/// Names that exist only in closed networks.
const CLOSED: [&str; 7] = [
    "test", "local", "internal", "intranet", "lan", "home", "corp",
];

/// Returns why a host cannot be a domain of a customer, whoever asks. In a closed network the
/// names that only exist in such networks are allowed.
pub(super) fn rejection(host: &Host, service: &Service, is_closed: bool) -> Option<String> {
    let name = host.as_str();
    let own = [&service.domain, &service.api_host].into_iter();
    let mut own = own.chain(&service.edge);
    if own.any(|own| is_within(name, own.as_str())) {
        return Some(format!("{host} belongs to this service"));
    }
    if NEVER.iter().any(|top| is_within(name, top)) {
        return Some(format!("{host} is reserved: nobody can own it"));
    }
    if !is_closed && CLOSED.iter().any(|top| is_within(name, top)) {
        return Some(format!(
            "{host} is a name for closed networks: it needs `verification.resolvers`"
        ));
    }
    if let Some(why) = misspelled(name) {
        return Some(format!("{host} {why}"));
    }
    if psl::suffix_str(name) == Some(name) {
        return Some(format!(
            "{host} is a public suffix: domains of different owners are below it"
        ));
    }
    None
}

/// Returns why no client and no certificate authority takes a text for a host name.
fn misspelled(name: &str) -> Option<&'static str> {
    if name.split('.').any(|label| label.starts_with('_')) {
        return Some("has a label that begins with _");
    }
    if name.contains('_') {
        return Some("has an underscore: no certificate can have such a name");
    }
    let has_hyphen_outside = |label: &str| label.starts_with('-') || label.ends_with('-');
    if name.split('.').any(has_hyphen_outside) {
        return Some("has a label that begins or ends with a hyphen");
    }
    let (ascii, length) = (AsciiDenyList::STD3, DnsLength::Verify);
    let read = Uts46::new().to_ascii(name.as_bytes(), ascii, Hyphens::CheckFirstLast, length);
    read.is_err()
        .then_some("has a label that begins with xn-- and is no name of IDNA")
}

/// Returns the names above a host that may have an owner of their own, the nearest first: up to the
/// registrable domain.
pub(super) fn above(host: &Host) -> Vec<Host> {
    let top = psl::domain_str(host.as_str()).unwrap_or(host.as_str());
    let mut above = Vec::new();
    let mut name = host.as_str();
    while name != top
        && let Some((_, rest)) = name.split_once('.')
    {
        above.extend(Host::parse(rest));
        name = rest;
    }
    above
}

/// Returns whether a host is the top of a zone, where DNS allows no alias.
pub(super) fn is_apex(host: &Host) -> bool {
    psl::domain_str(host.as_str()) == Some(host.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> Host {
        Host::parse(name).unwrap()
    }

    #[test]
    fn our_own_names_reserved_names_and_public_suffixes_are_refused() {
        let service = Service {
            domain: host("waypost.dev"),
            api_host: host("api.waypost.app"),
            edge: Some(host("edge.waypost-zone.com")),
            ..Service::default()
        };
        for (name, why) in [
            ("acme.waypost.dev", "belongs to this service"),
            ("api.waypost.app", "belongs to this service"),
            ("x.api.waypost.app", "belongs to this service"),
            ("edge.waypost-zone.com", "belongs to this service"),
            ("a.edge.waypost-zone.com", "belongs to this service"),
            ("docs.localhost", "reserved"),
            ("docs.acme.alt", "reserved"),
            ("docs_one.acme.com", "has an underscore"),
            ("a-.com", "begins or ends with a hyphen"),
            ("-a.acme.com", "begins or ends with a hyphen"),
            ("xn--a.com", "no name of IDNA"),
            ("docs.xn--mnchen-3y.de", "no name of IDNA"),
            ("1.2.3.in-addr.arpa", "reserved"),
            ("docs.example.com", "reserved"),
            ("docs.acme.internal", "closed networks"),
            ("_x.acme.com", "begins with _"),
            ("co.uk", "public suffix"),
            ("github.io", "public suffix"),
        ] {
            let rejection = rejection(&host(name), &service, false).unwrap();
            assert!(rejection.contains(why), "{rejection}");
        }
        for name in [
            "acme.com",
            "docs.acme.co.uk",
            "acme.github.io",
            "waypost.app",
            "waypost-zone.com",
            "xn--mnchen-3ya.de",
            "r3---sn.acme.com",
        ] {
            assert_eq!(rejection(&host(name), &service, false), None, "{name}");
        }
        assert_eq!(rejection(&host("docs.acme.internal"), &service, true), None);
        assert!(rejection(&host("x.waypost.dev"), &service, true).is_some());
    }

    #[test]
    fn the_names_above_end_at_the_registrable_domain() {
        for (name, expected) in [
            ("a.b.acme.com", &["b.acme.com", "acme.com"][..]),
            ("acme.com", &[]),
            ("docs.acme.co.uk", &["acme.co.uk"]),
            ("acme.github.io", &[]),
            ("docs.acme.test", &["acme.test"]),
        ] {
            let above: Vec<_> = above(&host(name)).iter().map(ToString::to_string).collect();
            assert_eq!(above, expected, "{name}");
        }
        assert!(is_apex(&host("acme.co.uk")) && !is_apex(&host("docs.acme.co.uk")));
    }
}
