//! Sites: projects as they are served.
//!
//! A [`Site`] contains the hosts and the base path of a project, whether it is public, the
//! repository of its documentation, and the server for requests that are not discovery. It does
//! not contain releases: `index` combines sites and releases.
//!
//! A site's hosts are its *default subdomain* `{subdomain}.{service.domain}`, which the platform
//! owns, and its *domains*, which the customer owns. The first domain is *canonical*: responses
//! of the default subdomain contain URLs of this domain.
//!
//! Source: `internals/decisions#hosts`.

pub mod address;
mod check;
mod edit;
mod frames;
mod host;
mod hsts;
pub mod language;
mod network;
pub mod pattern;
pub mod percent;
mod private;
mod project;
pub mod redirect;
mod url;

pub use check::Check;
pub use edit::EditLink;
pub use frames::{FrameHost, Frames, InvalidFrameHost};
pub use host::{Host, InvalidHost, LENGTH_MAX, is_within, normalise};
pub use hsts::{HSTS_SECONDS_MAX, Hsts};
pub use network::{InvalidNetwork, Network};
pub use private::{InvalidPrivateHost, PrivateHost, PrivateHosts};
pub use project::{BasePath, InvalidBasePath, InvalidProjectId, ProjectId};
pub use url::{Scheme, Service};

/// A project as served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The project that the site belongs to.
    pub project: ProjectId,
    /// The owner of the admin keys that may change it.
    pub owner: Box<str>,
    /// The first label of the default subdomain: lower case.
    pub subdomain: Box<str>,
    /// The customer's own hosts; the first is canonical.
    pub domains: Vec<Host>,
    /// The path of the site on each host.
    pub base_path: BasePath,
    /// Who may see it.
    pub visibility: Visibility,
    /// The repository of its documentation; `None` if releases are only published by hand.
    pub repository: Option<Repository>,
    /// Whether its documentation is published even if its navigation breaks rule N1 or N2 (one kind
    /// of children at each level).
    pub lenient: bool,
    /// Whether an update may remove all pages of the site.
    pub allow_empty: bool,
    /// The server for requests that are not discovery.
    pub origin: Origin,
    /// Whether `{base path}/mcp` is our MCP server, and not the origin's.
    pub mcp: bool,
    /// Whether requests are counted for its owner, if the operator counts at all.
    pub numbers: bool,
    /// Its `Strict-Transport-Security`. With `None` its hosts use the value of the operator.
    pub hsts: Option<Hsts>,
    /// Where its record is.
    pub kept_in: KeptIn,
    /// Those of its domains for which no certificate is ordered, because their DNS does not lead
    /// here.
    pub not_ordered: Box<[Host]>,
}

/// Where the record of a site is. A site is kept in one place only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeptIn {
    /// In the store: the admin API and the command line change it.
    #[default]
    Api,
    /// In this file of the operator, below the directory of site records.
    File(std::sync::Arc<str>),
}

/// Who may see a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Everybody.
    Public,
    /// Only authenticated users: discovery responds with 404.
    Private,
}

/// The repository that documentation is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Any URL that git understands and the configuration allows.
    pub url: Box<str>,
    /// The branch that updates are built from.
    pub branch: Box<str>,
    /// The directory of the repository that holds the documentation; empty is its root.
    pub directory: Box<str>,
}

/// The server for a site's requests that are not discovery.
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
    /// With or without TLS.
    pub scheme: Scheme,
    /// Its name or address; its certificate must be valid for this name.
    pub host: Box<str>,
    /// Its port.
    pub port: u16,
    /// Which HTTP versions it supports.
    pub http: UpstreamHttp,
    /// Which `Host` field requests to it have.
    pub host_header: HostHeader,
    /// Its share of the requests, in proportion to the weights of the others.
    pub weight: u16,
    /// More servers with the same content, which understand the same versions of HTTP.
    pub others: Box<[Server]>,
    /// How many requests each server may have at once, if fewer than the operator allows.
    pub requests_max: Option<u32>,
    /// Whether copies of responses may be kept, if the operator keeps any.
    pub copies: bool,
    /// The active check of the servers; `None`: no check is sent.
    pub check: Option<Box<Check>>,
}

/// One more server of a customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// With or without TLS.
    pub scheme: Scheme,
    /// Its name or address; its certificate must be valid for this name.
    pub host: Box<str>,
    /// Its port.
    pub port: u16,
    /// Its share of the requests.
    pub weight: u16,
    /// Whether it is used only while no other server is available.
    pub is_backup: bool,
}

/// Which HTTP versions an upstream supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpstreamHttp {
    /// HTTP/1.1 only.
    One,
    /// HTTP/2 if the server selects it (ALPN over TLS), else HTTP/1.1.
    OneOrTwo,
    /// HTTP/2 only, also without TLS.
    Two,
}

/// Which `Host` field requests to an upstream have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostHeader {
    /// The field that the client sent.
    Preserve,
    /// The upstream's own name.
    Upstream,
}

// === impl Upstream ===

impl Upstream {
    /// Makes an upstream of one server, with the defaults of a site record.
    #[must_use]
    pub fn new(scheme: Scheme, host: &str, port: u16) -> Self {
        Self {
            scheme,
            host: host.into(),
            port,
            http: UpstreamHttp::OneOrTwo,
            host_header: HostHeader::Preserve,
            weight: 1,
            others: Box::default(),
            requests_max: None,
            copies: true,
            check: None,
        }
    }

    /// Returns the `Host` field for requests under the upstream's own name.
    ///
    /// The default port of the scheme is left out; an IPv6 address is in brackets (RFC 9110 §7.2,
    /// RFC 3986 §3.2.2).
    #[must_use]
    pub fn authority(&self) -> impl std::fmt::Display {
        std::fmt::from_fn(|f| {
            let host = &self.host;
            match host.contains(':') {
                true => write!(f, "[{host}]")?,
                false => f.write_str(host)?,
            }
            match self.port == self.scheme.default_port() {
                true => Ok(()),
                false => write!(f, ":{}", self.port),
            }
        })
    }
}

// === impl Site ===

impl Site {
    /// Makes a public site that Waypost serves, without domains and without a repository.
    ///
    /// Its owner and its subdomain are the id of the project.
    #[must_use]
    pub fn new(project: ProjectId) -> Self {
        Self {
            owner: project.as_str().into(),
            subdomain: project.as_str().into(),
            project,
            domains: Vec::new(),
            base_path: BasePath::default(),
            visibility: Visibility::Public,
            repository: None,
            lenient: false,
            allow_empty: false,
            origin: Origin::Embedded,
            mcp: true,
            numbers: true,
            hsts: None,
            kept_in: KeptIn::Api,
            not_ordered: Box::default(),
        }
    }

    /// Returns the default subdomain's host.
    ///
    /// # Errors
    ///
    /// [`InvalidHost`] if subdomain and service domain together are not a host; the reader of site
    /// records rejects such a record.
    pub fn default_host(&self, service: &Service) -> Result<Host, InvalidHost> {
        Host::parse(&format!("{}.{}", self.subdomain, service.domain))
    }

    /// Returns the host of absolute URLs in responses to a request for `host`.
    ///
    /// It is `host` if the customer owns it, else the canonical domain if there is one, else
    /// `host`.
    #[must_use]
    pub fn advertised_host<'h>(&'h self, host: &'h Host) -> &'h Host {
        if self.domains.contains(host) {
            host
        } else {
            self.domains.first().unwrap_or(host)
        }
    }
}

// === impl KeptIn ===

impl std::fmt::Display for KeptIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Api => f.write_str("the API"),
            Self::File(name) => write!(f, "the file {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_is_named_as_hosts_are_written() {
        let authority = |host: &str, port| {
            let upstream = Upstream::new(Scheme::Https, host, port);
            upstream.authority().to_string()
        };
        assert_eq!(authority("origin.acme.com", 443), "origin.acme.com");
        assert_eq!(authority("origin.acme.com", 80), "origin.acme.com:80");
        assert_eq!(authority("::1", 8443), "[::1]:8443");
    }
}
