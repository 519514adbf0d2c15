//! Builds the addresses of sites.

use super::{BasePath, Frames, Host};

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS.
    Https,
}

/// The settings that all sites of a platform share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The short name: key prefix `{name}_`, skills directory `.{name}/skills`.
    pub name: Box<str>,
    /// The domain whose subdomains are the default addresses of sites.
    pub domain: Host,
    /// The host that the admin API answers on.
    pub api_host: Host,
    /// The domain whose subdomains customers' domains are aliases of, if it is not below `domain`
    /// by default.
    pub edge: Option<Host>,
    /// The scheme of the addresses of sites.
    pub scheme: Scheme,
    /// The port of the addresses of sites; 0 means the default port.
    pub port: u16,
    /// The hosts that pages may show in frames.
    pub frames: Frames,
}

// === impl Scheme ===

impl Scheme {
    /// Returns the scheme as URLs spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// Returns the port that URLs leave out.
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

// === impl Service ===

impl Service {
    /// Returns the address of a site on one of its hosts, without a trailing slash:
    /// `https://docs.acme.com/docs`.
    #[must_use]
    pub fn site_url(&self, host: &Host, base_path: &BasePath) -> String {
        let scheme = self.scheme.as_str();
        if self.port == 0 || self.port == self.scheme.default_port() {
            format!("{scheme}://{host}{base_path}")
        } else {
            format!("{scheme}://{host}:{}{base_path}", self.port)
        }
    }
}

impl Default for Service {
    /// The names that `make run` uses: browsers and curl resolve `*.localhost` to loopback.
    fn default() -> Self {
        let host = |name| Host::parse(name).expect("a constant host name");
        Self {
            name: "waypost".into(),
            domain: host("waypost.localhost"),
            api_host: host("api.waypost.localhost"),
            edge: None,
            scheme: Scheme::Https,
            port: 0,
            frames: Frames::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_url_carries_the_port_only_when_it_is_not_the_default() {
        let host = Host::parse("docs.acme.com").unwrap();
        let base = BasePath::parse("/docs").unwrap();
        let url = |scheme, port| {
            Service {
                scheme,
                port,
                ..Service::default()
            }
            .site_url(&host, &base)
        };
        assert_eq!(url(Scheme::Https, 0), "https://docs.acme.com/docs");
        assert_eq!(url(Scheme::Https, 443), "https://docs.acme.com/docs");
        assert_eq!(url(Scheme::Http, 8080), "http://docs.acme.com:8080/docs");
    }
}
