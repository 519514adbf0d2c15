//! Requests without TLS for hosts that have a certificate, and HSTS.
//!
//! If this process gets certificates by ACME, requests without TLS are redirected to the same address
//! with TLS. The operator may switch this on or off. Three kinds are never redirected:
//!
//! * requests for a host without a certificate of its own,
//! * requests below [`HTTP_PATH`], with which a certificate authority asks for a proof before
//!   there is a certificate,
//! * requests from a trusted peer that has received them over TLS, or does not say how: a
//!   redirect would lead to the same peer again.
//!
//! Sources: RFC 6797 (`Strict-Transport-Security`), RFC 8555 §8.3 (challenges), RFC 9110 §15.4.9
//! (308 keeps the method).

use std::net::IpAddr;
use std::sync::Arc;

use pingora::http::RequestHeader;

use super::{Config, Resolver};
use crate::acme::HTTP_PATH;
use crate::gateway::forward::TrustedPeers;
use crate::response::Response;
use crate::site::{Hsts, Service};

/// The rules for requests without TLS, and the value of `Strict-Transport-Security`.
#[derive(Debug, Default)]
pub struct Policy {
    /// The names whose requests are redirected; `None`: no request is.
    redirected: Option<Arc<Resolver>>,
    /// The text after the host in the redirect: empty, or a port.
    port: String,
    hsts: Option<Hsts>,
}

// === impl Policy ===

impl Policy {
    /// Makes it of the operator's settings and of the certificates that are in use. `redirects` says
    /// whether requests without TLS are redirected.
    #[must_use]
    pub fn new(
        config: &Config,
        redirects: bool,
        service: &Service,
        certificates: &Arc<Resolver>,
    ) -> Self {
        let seconds = u32::try_from(config.hsts.as_secs()).unwrap_or(u32::MAX);
        let hsts = Hsts {
            seconds,
            ..Hsts::default()
        };
        Self {
            redirected: redirects.then(|| Arc::clone(certificates)),
            port: match service.port {
                0 | 443 => String::new(),
                port => format!(":{port}"),
            },
            hsts: (seconds > 0).then_some(hsts),
        }
    }

    /// Returns `Strict-Transport-Security` of the operator for responses over TLS, if there is one.
    pub(in crate::gateway) fn hsts(&self) -> Option<Hsts> {
        self.hsts
    }

    /// Returns whether requests without TLS for this host, in normal form, may be redirected.
    pub(in crate::gateway) fn may_redirect(&self, host: &str) -> bool {
        let certificates = self.redirected.as_ref();
        certificates.is_some_and(|certificates| certificates.names(host))
    }

    /// Returns the redirect of a request that came without TLS for this host, in normal form.
    pub(in crate::gateway) fn redirect(
        &self,
        host: &str,
        request: &RequestHeader,
        peer: IpAddr,
        trusted: &TrustedPeers,
    ) -> Option<Response> {
        let path = request.uri.path();
        if !self.may_redirect(host) || path.starts_with(HTTP_PATH) {
            return None;
        }
        let proto = trusted.proto_of(peer, &request.headers);
        let is_http = proto.is_some_and(|proto| proto.eq_ignore_ascii_case(b"http"));
        if trusted.contains(peer) && !is_http {
            return None;
        }
        let query = request.uri.query().map(|query| format!("?{query}"));
        let query = query.unwrap_or_default();
        let location = format!("https://{host}{}{path}{query}", self.port);
        Some(Response {
            location: Some(location.into()),
            ..Response::empty(308)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_the_redirect_is_that_of_the_service() {
        for (port, expected) in [(0, ""), (443, ""), (8443, ":8443")] {
            let service = Service {
                port,
                ..Service::default()
            };
            assert_eq!(
                Policy::new(&Config::default(), false, &service, &Arc::default()).port,
                expected
            );
        }
    }

    #[test]
    fn nothing_is_redirected_and_hsts_is_off_by_default() {
        let (config, service) = (Config::default(), Service::default());
        let policy = Policy::new(&config, false, &service, &Arc::default());
        assert!(!policy.may_redirect("docs.acme.test") && policy.hsts().is_none());
    }
}
