//! The addresses to which git may connect.
//!
//! The owner of a site chooses the URL of its repository, and git connects to it from inside the
//! operator's network. Without a rule, an owner could send requests to any server that trusts this
//! network. So git connects only to public addresses and to those that the operator lists
//! ([`PrivateHosts`](crate::site::PrivateHosts)).
//!
//! The name is resolved once, here, and git is given the addresses that are allowed: the name
//! cannot get another address between the check and the connection.
//!
//! **Limits:** a proxy resolves names itself, so behind one the proxy must have such a rule. A name
//! that only the proxy knows is left to it.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use super::Config;
use super::address::{Address, Transport};
use super::failure::FetchError;

/// How long to wait for one address while there are others to try.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// The variables that name a proxy.
const PROXIES: [&str; 2] = ["HTTPS_PROXY", "https_proxy"];

/// The addresses of a host that git may connect to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Destination {
    /// Empty for a repository of this machine, and for a name that only a proxy knows.
    addresses: Vec<SocketAddr>,
}

// === impl Destination ===

impl Destination {
    /// Resolves the host of an address.
    ///
    /// # Errors
    ///
    /// [`FetchError::Private`] when the address is written in the URL and not allowed,
    /// [`FetchError::Network`] when a name has no address that is allowed. An author does not learn
    /// whether the name exists inside the operator's network: the log says it.
    pub(super) fn of(config: &Config, address: &Address) -> Result<Self, FetchError> {
        let (Some(host), Some(port)) = (address.host(), address.port()) else {
            return Ok(Self::default());
        };
        let resolved = match host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_name) => match (host, port).to_socket_addrs() {
                Ok(addresses) => addresses.collect(),
                Err(_unknown) if has_proxy(address) => return Ok(Self::default()),
                Err(error) => {
                    log::warn!(target: "source", "cannot resolve {host}: {error}");
                    return Err(FetchError::Network);
                }
            },
        };
        let is_allowed = |found: &SocketAddr| config.private_hosts.allow(host, found.ip());
        let addresses: Vec<_> = resolved.into_iter().filter(is_allowed).collect();
        if addresses.is_empty() {
            log::warn!(
                target: "source",
                "{host} has no public address, and git.private_hosts does not list it"
            );
            return Err(match host.parse::<IpAddr>() {
                Ok(_written) => FetchError::Private,
                Err(_name) => FetchError::Network,
            });
        }
        Ok(Self { addresses })
    }

    /// Returns the setting that keeps git over HTTP to these addresses (`CURLOPT_RESOLVE(3)`).
    pub(super) fn setting(&self, address: &Address) -> Option<String> {
        let first = self.addresses.first()?;
        let host = address.host()?;
        if !matches!(address.transport(), Transport::Https | Transport::Http)
            || host.parse::<IpAddr>().is_ok()
        {
            return None;
        }
        let shown: Vec<_> = self.addresses.iter().map(|one| shown(one.ip())).collect();
        let port = first.port();
        Some(format!(
            "http.curloptResolve={host}:{port}:{}",
            shown.join(",")
        ))
    }

    /// Returns the options that keep ssh to one of these addresses, the first that answers. The
    /// key of the host is still looked up by its name.
    pub(super) fn ssh_options(&self, address: &Address) -> Option<String> {
        let first = self.addresses.first()?;
        let host = address.host()?;
        let answers = |one: &&SocketAddr| TcpStream::connect_timeout(one, CONNECT_TIME).is_ok();
        let chosen = match &self.addresses[..] {
            [only] => only,
            several => several.iter().find(answers).unwrap_or(first),
        };
        let key = match chosen.port() {
            22 => host.to_owned(),
            port => format!("[{host}]:{port}"),
        };
        Some(format!(
            " -o HostName={} -o HostKeyAlias={key}",
            chosen.ip()
        ))
    }
}

fn shown(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

fn has_proxy(address: &Address) -> bool {
    address.transport() == Transport::Https
        && PROXIES.iter().any(|name| std::env::var_os(name).is_some())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::site::PrivateHosts;

    fn destination(url: &str, allowed: &[&str]) -> Result<Destination, FetchError> {
        let config = Config {
            plaintext: true,
            private_hosts: private(allowed),
            ..Config::new(Path::new("/var/mirrors"))
        };
        Destination::of(&config, &address(url))
    }

    fn private(allowed: &[&str]) -> PrivateHosts {
        allowed.iter().map(|entry| entry.parse().unwrap()).collect()
    }

    fn address(url: &str) -> Address {
        let config = Config {
            plaintext: true,
            ..Config::new(Path::new("/var/mirrors"))
        };
        Address::parse(url, "main", &config).unwrap()
    }

    #[test]
    fn a_private_address_needs_an_entry_of_the_list() {
        for url in [
            "http://127.0.0.1/r",
            "https://10.0.0.1:8443/r",
            "https://[::1]/r",
            "https://[::ffff:10.0.0.1]/r",
            "https://169.254.169.254/r",
        ] {
            let rejected = destination(url, &[]);
            assert!(matches!(rejected, Err(FetchError::Private)), "{url}");
        }
        // A name inside the network and a name that does not exist look the same.
        for url in [
            "https://localhost/r",
            "ssh://git@localhost:2222/r",
            "git@localhost:r",
            "https://no-such-host.invalid/r",
        ] {
            let rejected = destination(url, &[]);
            assert!(matches!(rejected, Err(FetchError::Network)), "{url}");
        }
        for (url, allowed) in [
            ("http://127.0.0.1/r", "127.0.0.0/8"),
            ("https://8.8.8.8/r", "127.0.0.1"),
            ("https://localhost/r", "localhost"),
        ] {
            assert!(destination(url, &[allowed]).is_ok(), "{url}");
        }
    }

    #[test]
    fn git_and_ssh_connect_to_the_address_that_was_checked() {
        let of = |url: &str| (destination(url, &["127.0.0.0/8"]).unwrap(), address(url));
        let (found, https) = of("https://localhost:8443/r");
        assert_eq!(
            found.setting(&https).unwrap(),
            "http.curloptResolve=localhost:8443:127.0.0.1"
        );
        let (found, literal) = of("https://127.0.0.1/r");
        assert_eq!(found.setting(&literal), None);
        let (found, ssh) = of("git@localhost:r");
        assert_eq!(found.setting(&ssh), None);
        assert_eq!(
            found.ssh_options(&ssh).unwrap(),
            " -o HostName=127.0.0.1 -o HostKeyAlias=localhost"
        );
        let (found, ssh) = of("ssh://git@localhost:2222/r");
        assert_eq!(
            found.ssh_options(&ssh).unwrap(),
            " -o HostName=127.0.0.1 -o HostKeyAlias=[localhost]:2222"
        );
    }
}
