//! The settings of certificates by ACME.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::site::{Host, InvalidHost};

/// Certificates by ACME. Without an authority, nothing is ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The authorities. If one cannot be used, the next one is.
    pub authorities: Vec<Authority>,
    /// Addresses of the operator (`mailto:…`) for the account.
    pub contacts: Vec<Box<str>>,
    /// Whether the operator agrees to the terms of the authorities.
    pub agree_to_terms: bool,
    /// The names of the authorities in CAA records (RFC 8659 §4.2); empty: those in the directory of
    /// each authority.
    pub caa_identities: Vec<Box<str>>,
    /// Names that get a certificate beside the domains of sites.
    pub names: Vec<Name>,
    /// The kinds of challenges that may be used, the preferred one first.
    pub challenges: Vec<ChallengeKind>,
    /// The command that sets and removes TXT records for DNS-01; empty: there is none.
    pub dns_command: Vec<Box<str>>,
    /// How long that command may take.
    pub dns_time: Duration,
    /// Where certificates are kept; `None`: `certificates` in the directory of the store.
    pub directory: Option<PathBuf>,
    /// The file with the key that encrypts private keys.
    pub key_file: Option<PathBuf>,
    /// How many orders that are no renewals an authority accepts in [`Config::orders_window`].
    pub orders_max: u32,
    /// The time for [`Config::orders_max`].
    pub orders_window: Duration,
    /// How many of them may be for one owner of sites.
    pub orders_owner_max: u32,
    /// How many certificates an authority issues in [`Config::certificates_window`] for the names
    /// of a registrable domain. Renewals that name the certificate that they replace do not count.
    pub domain_certificates_max: u32,
    /// How many it issues in that time for the same name.
    pub name_certificates_max: u32,
    /// The time for these two limits.
    pub certificates_window: Duration,
    /// How many orders run at the same time.
    pub parallel_max: usize,
    /// How long an authority may take to answer a request.
    pub request_time: Duration,
    /// How long an authority may take to validate a name, and to issue a certificate.
    pub order_time: Duration,
    /// The waits after the first, second, … failure of a name; the last one repeats.
    pub retries: Vec<Duration>,
    /// The longest time between two questions for the suggested time of a renewal.
    pub renewal_info: Duration,
    /// How long the certificate of a name that no site has any more is kept.
    pub release: Duration,
}

/// A certificate authority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authority {
    /// The address of its directory (RFC 8555 §7.1.1).
    pub directory: Box<str>,
    /// The file with the certificates that its server must be signed by; `None`: the authorities
    /// of this machine.
    pub ca_file: Option<PathBuf>,
    /// The identifier of the external account (RFC 8555 §7.3.4).
    pub eab_id: Option<Box<str>>,
    /// The file with the key of the external account, in base 64.
    pub eab_key_file: Option<PathBuf>,
    /// The profile of certificates.
    pub profile: Option<Box<str>>,
}

/// How control of a name is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChallengeKind {
    /// A file below `/.well-known/acme-challenge/` (RFC 8555 §8.3).
    Http,
    /// A certificate in a handshake (RFC 8737).
    TlsAlpn,
    /// A TXT record (RFC 8555 §8.4).
    Dns,
}

/// A host name, or a wildcard for one label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<str>);

/// Why a text is not a name for a certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct InvalidName(#[from] InvalidHost);

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            authorities: Vec::new(),
            contacts: Vec::new(),
            agree_to_terms: false,
            caa_identities: Vec::new(),
            names: Vec::new(),
            challenges: vec![ChallengeKind::Http, ChallengeKind::TlsAlpn],
            dns_command: Vec::new(),
            dns_time: Duration::from_secs(300),
            directory: None,
            key_file: None,
            // Let's Encrypt, August 2026: 300 new orders for each account in 3 hours.
            orders_max: 300,
            orders_window: Duration::from_secs(3 * 3600),
            orders_owner_max: 150,
            domain_certificates_max: 50,
            name_certificates_max: 5,
            certificates_window: Duration::from_secs(7 * 86_400),
            parallel_max: 20,
            request_time: Duration::from_secs(30),
            order_time: Duration::from_secs(120),
            // The integration guide of Let's Encrypt: 1, 10, 100 minutes, then daily.
            retries: [60, 600, 6000, 86_400].map(Duration::from_secs).to_vec(),
            renewal_info: Duration::from_secs(6 * 3600),
            release: Duration::from_secs(86_400),
        }
    }
}

impl Config {
    /// Returns whether certificates are ordered.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.authorities.is_empty()
    }

    /// Returns the kinds of challenges for a name, the preferred one first: a wildcard needs DNS-01
    /// (RFC 8555 §7.1.3).
    #[must_use]
    pub fn kinds(&self, name: &str) -> Vec<ChallengeKind> {
        let kinds = self.challenges.iter().copied();
        let is_wildcard = name.starts_with("*.");
        kinds
            .filter(|kind| !is_wildcard || *kind == ChallengeKind::Dns)
            .collect()
    }
}

// === impl ChallengeKind ===

impl ChallengeKind {
    /// The kinds with their names in RFC 8555 and RFC 8737.
    pub const NAMES: [(&str, Self); 3] = [
        ("http-01", Self::Http),
        ("tls-alpn-01", Self::TlsAlpn),
        ("dns-01", Self::Dns),
    ];
}

impl fmt::Display for ChallengeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = Self::NAMES.iter();
        let name = names.find(|(_, kind)| kind == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

// === impl Name ===

impl Name {
    /// Reads a host, or `*.` and a host.
    ///
    /// # Errors
    ///
    /// The reason why the text is not a host.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        match text.strip_prefix("*.") {
            Some(host) => Ok(Self(format!("*.{}", Host::parse(host)?).into())),
            None => Ok(Self(Host::parse(text)?.as_str().into())),
        }
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
