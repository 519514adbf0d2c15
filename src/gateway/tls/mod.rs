//! TLS, terminated by the gateway.
//!
//! The server name of the handshake selects the certificate ([`Resolver`]): one in a directory of
//! the operator ([`Certificates`]), or one that was ordered by ACME. It does not select the *site*;
//! the `Host` field of each request does.
//!
//! * TLS 1.2 and 1.3 with the cipher suites of the provider, or with those of the configuration;
//!   X25519MLKEM768 is preferred. No 0-RTT: an attacker could replay such requests.
//! * ALPN offers `h2` before `http/1.1`.
//! * Requests without TLS may be redirected, and responses may have `Strict-Transport-Security`
//!   ([`Policy`]).
//! * Sessions are resumed by tickets with rotating keys, so the server keeps no session state. The
//!   keys are in the store ([`Tickets`]): other processes resume them too, also after a restart.
//!
//! Source: RFC 8446, RFC 6066 §3 (server name), RFC 7301 (ALPN).

mod certificates;
mod policy;
mod resolver;
mod tickets;
mod watch;

pub use certificates::{Certificates, Report};
pub use policy::Policy;
pub use resolver::Resolver;
pub use tickets::{TicketRotation, Tickets};
pub use watch::watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, NamedGroup, ServerConfig, SupportedProtocolVersion};

use crate::acme::TLS_PROTOCOL;
use crate::site::Host;

/// The directory of the certificates, and the default certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The directory of `{name}/fullchain.pem` and `{name}/privkey.pem`.
    ///
    /// It is watched. The directory of a wildcard is named `*.acme.com` or `_.acme.com`.
    pub directory: Option<PathBuf>,
    /// The name of the default certificate.
    ///
    /// It is used if the client sends no server name, or a name without a certificate. Without a
    /// default, such handshakes fail.
    pub default: Option<Host>,
    /// Whether requests without TLS are redirected, for hosts that have a certificate; `None`: if
    /// this process gets certificates by ACME.
    pub redirect: Option<bool>,
    /// How long browsers use only TLS for a host (`Strict-Transport-Security`); zero: the
    /// header is not sent.
    pub hsts: Duration,
    /// The lowest version of TLS.
    pub min_version: MinVersion,
    /// The cipher suites, the preferred one first; empty: those of the library.
    pub cipher_suites: Vec<CipherSuite>,
    /// The groups for the key exchange, the preferred one first; empty: those of the library.
    pub groups: Vec<NamedGroup>,
}

/// The lowest version of TLS that clients may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinVersion {
    /// TLS 1.2, RFC 5246.
    #[default]
    Tls12,
    /// TLS 1.3, RFC 8446.
    Tls13,
}

// === impl MinVersion ===

impl MinVersion {
    /// All, with their names in the configuration.
    pub const NAMES: [(&'static str, Self); 2] = [("1.2", Self::Tls12), ("1.3", Self::Tls13)];
}

// === impl Config ===

impl Config {
    /// Finds a cipher suite by its name at IANA.
    ///
    /// # Errors
    ///
    /// A list of the names that are possible.
    pub fn cipher_suite(name: &str) -> Result<CipherSuite, String> {
        let all = aws_lc_rs::ALL_CIPHER_SUITES.iter();
        let all: Vec<_> = all.map(|suite| suite.suite()).collect();
        find(name, &all, |suite| {
            // The library distinguishes the suites of TLS 1.3.
            let name = format!("{suite:?}");
            name.replacen("TLS13_", "TLS_", 1)
        })
    }

    /// Finds a group for the key exchange by its name at IANA.
    ///
    /// # Errors
    ///
    /// A list of the names that are possible.
    pub fn group(name: &str) -> Result<NamedGroup, String> {
        let all = aws_lc_rs::ALL_KX_GROUPS.iter();
        let all: Vec<_> = all.map(|group| group.name()).collect();
        find(name, &all, |group| format!("{group:?}"))
    }

    /// Returns what does not fit together.
    #[must_use]
    pub fn contradiction(&self) -> Option<&'static str> {
        let is_of_13 = |suite: &&CipherSuite| format!("{suite:?}").starts_with("TLS13_");
        let of_13 = self.cipher_suites.iter().filter(is_of_13).count();
        let of_12 = self.cipher_suites.len() - of_13;
        match (self.cipher_suites.is_empty(), self.min_version) {
            (true, _) => None,
            _ if of_13 == 0 => Some("`tls.cipher_suites` has no suite of TLS 1.3"),
            (false, MinVersion::Tls12) if of_12 == 0 => Some(
                "`tls.cipher_suites` has no suite of TLS 1.2: add one, or set `tls.min_version: \
                 \"1.3\"`",
            ),
            (false, MinVersion::Tls13) if of_12 > 0 => {
                Some("`tls.cipher_suites` has a suite of TLS 1.2, but `tls.min_version` is \"1.3\"")
            }
            _ => None,
        }
    }

    /// Returns the versions of the library.
    fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        static BOTH: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
        match self.min_version {
            MinVersion::Tls12 => &BOTH,
            MinVersion::Tls13 => &BOTH[..1],
        }
    }

    /// Returns the cryptography with the suites and groups of the configuration, in its order.
    fn provider(&self) -> CryptoProvider {
        let mut provider = aws_lc_rs::default_provider();
        if !self.cipher_suites.is_empty() {
            let named = self.cipher_suites.iter().filter_map(|wanted| {
                let mut all = aws_lc_rs::ALL_CIPHER_SUITES.iter();
                all.find(|suite| suite.suite() == *wanted).copied()
            });
            provider.cipher_suites = named.collect();
        }
        if !self.groups.is_empty() {
            let named = self.groups.iter().filter_map(|wanted| {
                let mut all = aws_lc_rs::ALL_KX_GROUPS.iter();
                all.find(|group| group.name() == *wanted).copied()
            });
            provider.kx_groups = named.collect();
        }
        provider
    }
}

fn find<T: Copy>(name: &str, all: &[T], name_of: impl Fn(&T) -> String) -> Result<T, String> {
    let found = all.iter().find(|one| name_of(one) == name);
    found.copied().ok_or_else(|| {
        let names: Vec<_> = all.iter().map(name_of).collect();
        format!("one of {}", names.join(", "))
    })
}

/// Makes the TLS configuration of the server for a set of certificates.
///
/// # Errors
///
/// When no cipher suite and group fit to a version.
pub fn server_config(
    options: &Config,
    certificates: &Arc<Resolver>,
    tickets: Arc<Tickets>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider = Arc::new(options.provider());
    let mut config =
        ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(options.versions())?
            .with_no_client_auth()
            .with_cert_resolver(
                Arc::clone(certificates) as Arc<dyn rustls::server::ResolvesServerCert>
            );
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    if certificates.challenges.is_some() {
        config.alpn_protocols.push(TLS_PROTOCOL.to_vec());
    }
    // The order of the operator counts. Otherwise the client knows best what its machine can do.
    config.ignore_client_order = !options.cipher_suites.is_empty();
    config.ticketer = tickets;
    config.send_tls13_tickets = 1;
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_and_groups_have_their_names_of_iana() {
        let suite = |name| Config::cipher_suite(name);
        assert_eq!(
            suite("TLS_AES_256_GCM_SHA384"),
            Ok(CipherSuite::TLS13_AES_256_GCM_SHA384)
        );
        let of_12 = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
        assert_eq!(
            suite(of_12),
            Ok(CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256)
        );
        let wrong = suite("RC4").unwrap_err();
        assert!(wrong.contains("TLS_AES_128_GCM_SHA256"), "{wrong}");
        assert_eq!(Config::group("X25519"), Ok(NamedGroup::X25519));
        let wrong = Config::group("p256").unwrap_err();
        assert!(wrong.contains("secp256r1"), "{wrong}");
    }

    #[test]
    fn suites_must_fit_to_the_versions() {
        let of_13 = CipherSuite::TLS13_AES_256_GCM_SHA384;
        let of_12 = CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256;
        for (min_version, suites, is_right) in [
            (MinVersion::Tls12, vec![], true),
            (MinVersion::Tls12, vec![of_13, of_12], true),
            (MinVersion::Tls13, vec![of_13], true),
            (MinVersion::Tls12, vec![of_13], false),
            (MinVersion::Tls12, vec![of_12], false),
            (MinVersion::Tls13, vec![of_13, of_12], false),
        ] {
            let config = Config {
                min_version,
                cipher_suites: suites,
                ..Config::default()
            };
            assert_eq!(config.contradiction().is_none(), is_right, "{config:?}");
            let made = ServerConfig::builder_with_provider(Arc::new(config.provider()))
                .with_protocol_versions(config.versions());
            assert!(!is_right || made.is_ok(), "{config:?}");
        }
    }
}
