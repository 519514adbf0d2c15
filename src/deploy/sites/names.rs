//! Which names no customer can have, and which names are above a name.
//!
//! Sources: RFC 2606 and RFC 6761 (reserved names), RFC 6762 (`local`), RFC 7686 (`onion`), RFC
//! 8375 (`home.arpa`), the resolution of ICANN of 29 July 2024 (`internal`), publicsuffix.org.

use crate::site::{Host, Service};

/// Names that nobody can own, and all names below them.
const NEVER: [&str; 8] = [
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
    let below = |top: &str| {
        name.strip_suffix(top)
            .is_some_and(|above| above.is_empty() || above.ends_with('.'))
    };
    if below(service.domain.as_str()) || below(service.api_host.as_str()) {
        return Some(format!("{host} belongs to this service"));
    }
    if NEVER.iter().any(|top| below(top)) {
        return Some(format!("{host} is reserved: nobody can own it"));
    }
    if !is_closed && CLOSED.iter().any(|top| below(top)) {
        return Some(format!(
            "{host} is a name for closed networks: it needs `verification.resolvers`"
        ));
    }
    if name.split('.').any(|label| label.starts_with('_')) {
        return Some(format!("{host} has a label that begins with _"));
    }
    if psl::suffix_str(name) == Some(name) {
        return Some(format!(
            "{host} is a public suffix: domains of different owners are below it"
        ));
    }
    None
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
            ..Service::default()
        };
        for (name, why) in [
            ("acme.waypost.dev", "belongs to this service"),
            ("api.waypost.app", "belongs to this service"),
            ("x.api.waypost.app", "belongs to this service"),
            ("docs.localhost", "reserved"),
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
