//! Chooses the certificate of a handshake.
//!
//! 1. A certificate authority that asks for a proof gets the certificate of the challenge.
//! 2. The directory of the operator: the exact name, then a wildcard.
//! 3. The certificates by ACME: the exact name, then a wildcard.
//! 4. The default of the operator.
//!
//! Source: RFC 8737 §3 (the authority offers `acme-tls/1` alone).

use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::Certificates;
use crate::acme::{Challenges, Ordered, TLS_PROTOCOL};
use crate::site::Host;

/// All certificates of a process, and the answers to challenges.
#[derive(Clone, Debug, Default)]
pub struct Resolver {
    /// The certificates of the operator.
    pub directory: Option<Arc<Certificates>>,
    /// The certificates by ACME.
    pub ordered: Option<Arc<Ordered>>,
    /// The answers to challenges.
    pub challenges: Option<Arc<Challenges>>,
    /// The name whose certificate is used if the client sends no server name, or a name without a
    /// certificate.
    pub default: Option<Host>,
}

// === impl Resolver ===

impl Resolver {
    /// Returns whether there is a certificate for a name in normal form: an exact one or a
    /// wildcard.
    #[must_use]
    pub fn names(&self, name: &str) -> bool {
        let directory = self.directory.as_ref();
        directory.is_some_and(|directory| directory.names(name))
            || self
                .ordered
                .as_ref()
                .is_some_and(|ordered| ordered.find(name).is_some())
    }

    /// Finds the certificate for a server name as the client sent it.
    fn find(&self, name: Option<&str>) -> Option<Arc<CertifiedKey>> {
        let found = name.and_then(|name| {
            let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
            self.named(&name)
        });
        found.or_else(|| self.named(self.default.as_ref()?.as_str()))
    }

    fn named(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let directory = self.directory.as_ref();
        let found = directory.and_then(|directory| directory.find(name));
        found.or_else(|| Some(Arc::clone(&self.ordered.as_ref()?.find(name)?.key)))
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if let Some(challenges) = &self.challenges
            && let Some(mut protocols) = hello.alpn()
            && protocols.next() == Some(TLS_PROTOCOL)
            && protocols.next().is_none()
        {
            let name = hello.server_name()?.to_ascii_lowercase();
            return challenges.tls(&name);
        }
        self.find(hello.server_name())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::clock::Clock;

    /// Writes a self-signed pair for `names` into the directory of `name`.
    fn write(root: &Path, name: &str, names: &[&str]) {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let directory = root.join(name);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("fullchain.pem"), made.cert.pem()).unwrap();
        fs::write(
            directory.join("privkey.pem"),
            made.signing_key.serialize_pem(),
        )
        .unwrap();
    }

    fn resolver(root: &Path, default: Option<&str>) -> Resolver {
        let directory = Certificates::new(root.to_owned(), Clock::System);
        directory.read().unwrap();
        Resolver {
            directory: Some(Arc::new(directory)),
            default: default.map(|name| Host::parse(name).unwrap()),
            ..Resolver::default()
        }
    }

    #[test]
    fn exact_names_come_before_wildcards_and_wildcards_before_the_default() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "docs.acme.com", &["docs.acme.com"]);
        write(root.path(), "_.acme.com", &["*.acme.com"]);
        write(root.path(), "default.example", &["default.example"]);
        let set = resolver(root.path(), Some("default.example"));
        let leaf = |name: Option<&str>| set.find(name).map(|key| key.cert[0].to_vec());
        assert_eq!(leaf(Some("DOCS.acme.com.")), leaf(Some("docs.acme.com")));
        assert_ne!(leaf(Some("docs.acme.com")), leaf(Some("other.acme.com")));
        assert_eq!(leaf(Some("other.acme.com")), leaf(Some("*.acme.com")));
        assert_eq!(leaf(Some("a.b.acme.com")), leaf(None));
        assert_eq!(leaf(None), leaf(Some("default.example")));
    }

    #[test]
    fn without_a_default_an_unknown_name_is_rejected() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "docs.acme.com", &["docs.acme.com"]);
        let set = resolver(root.path(), None);
        assert!(set.find(Some("else.example")).is_none());
        assert!(set.find(None).is_none());
        assert!(set.names("docs.acme.com") && !set.names("else.example"));
    }
}
