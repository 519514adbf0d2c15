//! Sites: a project as it is served.
//!
//! A [`Site`] says on which hosts a project answers, under which base path, whether the
//! public may see it, where its documentation is written and who serves what is not
//! discovery. It knows nothing of releases: the two meet in `index`.
//!
//! A site's hosts are its *default subdomain* `{subdomain}.{service.domain}`, which is
//! ours, and its *domains*, which the customer owns. The first domain is *canonical*:
//! URLs that the default subdomain hands out are built on it.
//!
//! Source: `internals/decisions#hosts`.

mod edit;
mod frames;
mod host;
pub mod percent;
mod project;
pub mod redirect;
mod url;

pub use edit::EditLink;
pub use frames::{FrameHost, Frames, InvalidFrameHost};
pub use host::{Host, InvalidHost, LENGTH_MAX, normalise};
pub use project::{BasePath, InvalidBasePath, InvalidProjectId, ProjectId};
pub use url::{Scheme, Service};

/// A project as served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Whose site it is.
    pub project: ProjectId,
    /// Whose admin keys may act on it.
    pub owner: Box<str>,
    /// The first label of the default subdomain: lower case.
    pub subdomain: Box<str>,
    /// The customer's own hosts; the first is canonical.
    pub domains: Vec<Host>,
    /// Where on each host the site lives.
    pub base_path: BasePath,
    /// Who may see it.
    pub visibility: Visibility,
    /// Where its documentation is written; `None` when releases are only published by hand.
    pub repository: Option<Repository>,
    /// Whether its documentation is published although its navigation breaks the rules N1 or N2:
    /// one kind of children at each level.
    pub lenient: bool,
    /// Who answers what is not discovery.
    pub origin: Origin,
}

/// Who may see a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Everybody.
    Public,
    /// Nobody without authentication: discovery answers 404.
    Private,
}

/// Where documentation is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Any URL that git understands and the configuration allows.
    pub url: Box<str>,
    /// The branch that updates are built from.
    pub branch: Box<str>,
    /// The directory of the repository that holds the documentation; empty is its root.
    pub directory: Box<str>,
}

/// Who answers a site's requests that are not discovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Waypost itself, from the current release.
    Embedded,
    /// The customer's own server.
    Upstream(Upstream),
}

/// A customer's own server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// How to speak to it.
    pub scheme: Scheme,
    /// Its name or address, also the name its certificate must carry.
    pub host: Box<str>,
    /// Its port.
    pub port: u16,
    /// Which HTTP versions to speak.
    pub http: UpstreamHttp,
    /// Which `Host` it is sent.
    pub host_header: HostHeader,
}

/// Which HTTP versions an upstream speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamHttp {
    /// HTTP/1.1 only.
    One,
    /// HTTP/2 where the server takes it (ALPN over TLS), else HTTP/1.1.
    OneOrTwo,
    /// HTTP/2 only, also without TLS.
    Two,
}

/// Which `Host` an upstream is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostHeader {
    /// The one the client sent.
    Preserve,
    /// The upstream's own name.
    Upstream,
}

// === impl Upstream ===

impl Upstream {
    /// Returns the `Host` of requests to the server under its own name: without the port
    /// that its scheme implies, an IPv6 address in brackets (RFC 9110 §7.2, RFC 3986 §3.2.2).
    #[must_use]
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.to_string()
        };
        if self.port == self.scheme.default_port() {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }
}

// === impl Site ===

impl Site {
    /// Returns the default subdomain's host.
    ///
    /// # Errors
    ///
    /// [`InvalidHost`] when subdomain and service domain do not make a host together;
    /// the reader of site records refuses such a record.
    pub fn default_host(&self, service: &Service) -> Result<Host, InvalidHost> {
        Host::parse(&format!("{}.{}", self.subdomain, service.domain))
    }

    /// Returns the host that absolute URLs are built on for a request to `host`: the host
    /// itself when the customer owns it, else the canonical domain when there is one.
    #[must_use]
    pub fn advertised_host<'h>(&'h self, host: &'h Host) -> &'h Host {
        if self.domains.contains(host) {
            host
        } else {
            self.domains.first().unwrap_or(host)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_is_named_as_hosts_are_written() {
        let authority = |host: &str, port| {
            Upstream {
                scheme: Scheme::Https,
                host: host.into(),
                port,
                http: UpstreamHttp::One,
                host_header: HostHeader::Upstream,
            }
            .authority()
        };
        assert_eq!(authority("origin.acme.com", 443), "origin.acme.com");
        assert_eq!(authority("origin.acme.com", 80), "origin.acme.com:80");
        assert_eq!(authority("::1", 8443), "[::1]:8443");
    }
}
