//! TLS, terminated by the gateway.
//!
//! The server name of the handshake selects the certificate ([`Resolver`]): one in a directory of
//! the operator ([`Certificates`]), or one that was ordered by ACME. It does not select the *site*;
//! the `Host` field of each request does.
//!
//! * TLS 1.2 and 1.3 with the cipher suites of the provider; X25519MLKEM768 is preferred. No
//!   0-RTT: an attacker could replay such requests.
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

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;

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
    /// Whether requests without TLS are redirected, for hosts that have a certificate.
    pub redirect: bool,
    /// How long browsers use only TLS for a host (`Strict-Transport-Security`); zero: the
    /// header is not sent.
    pub hsts: Duration,
}

/// Makes the TLS configuration of the server for a set of certificates.
///
/// # Errors
///
/// When the cryptography provider has no protocol version.
pub fn server_config(
    certificates: &Arc<Resolver>,
    tickets: Arc<Tickets>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config =
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(
                Arc::clone(certificates) as Arc<dyn rustls::server::ResolvesServerCert>
            );
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    if certificates.challenges.is_some() {
        config.alpn_protocols.push(TLS_PROTOCOL.to_vec());
    }
    config.ticketer = tickets;
    config.send_tls13_tickets = 1;
    Ok(Arc::new(config))
}
