//! The private servers that this program may connect to.
//!
//! The owner of a site chooses the site's own server and the host of its repository, and this
//! program connects to them from inside the operator's network. Without a rule, an owner could read
//! the operator's metrics, the metadata service of the cloud, or any other server that trusts this
//! network. So this program connects only to public addresses ([`address`]) and to those that the
//! operator lists.
//!
//! A name is a weaker permission than a network: the address is chosen by the owner of the name's
//! DNS records.

use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::pattern::Pattern;
use super::{Host, Network, address};

/// The private servers that the gateway may connect to: names, addresses and networks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrivateHosts {
    names: Vec<Pattern>,
    networks: Vec<Network>,
}

/// One entry of a list of private servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrivateHost {
    /// Every address of the names that match.
    Name(Pattern),
    /// Every server with an address in the network.
    Network(Network),
}

/// Why a text is not an entry of a list of private servers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a name like origin.internal or *.internal nor a network like 10.0.0.0/8")]
pub struct InvalidPrivateHost(String);

// === impl PrivateHosts ===

impl PrivateHosts {
    /// Returns whether a server may be connected to. `host` is its name or its address, as the
    /// site record has it; `address` is an address of it.
    ///
    /// ```
    /// use waypost::site::PrivateHosts;
    ///
    /// let hosts: PrivateHosts = ["*.internal".parse()?, "10.1.0.0/16".parse()?]
    ///     .into_iter()
    ///     .collect();
    /// assert!(hosts.allow("acme.com", "93.184.215.14".parse().unwrap()));
    /// assert!(hosts.allow("docs.internal", "192.168.0.1".parse().unwrap()));
    /// assert!(hosts.allow("acme.com", "10.1.2.3".parse().unwrap()));
    /// assert!(!hosts.allow("acme.com", "127.0.0.1".parse().unwrap()));
    /// # Ok::<(), waypost::site::InvalidPrivateHost>(())
    /// ```
    #[must_use]
    pub fn allow(&self, host: &str, address: IpAddr) -> bool {
        address::is_public(address)
            || self
                .networks
                .iter()
                .any(|network| network.contains(address))
            || !self.names.is_empty()
                && Host::parse(host)
                    .is_ok_and(|host| self.names.iter().any(|pattern| pattern.is_of(&host)))
    }
}

impl FromIterator<PrivateHost> for PrivateHosts {
    fn from_iter<I: IntoIterator<Item = PrivateHost>>(entries: I) -> Self {
        let mut hosts = Self::default();
        for entry in entries {
            match entry {
                PrivateHost::Name(pattern) => hosts.names.push(pattern),
                PrivateHost::Network(network) => hosts.networks.push(network),
            }
        }
        hosts
    }
}

// === impl PrivateHost ===

impl FromStr for PrivateHost {
    type Err = InvalidPrivateHost;

    fn from_str(text: &str) -> Result<Self, InvalidPrivateHost> {
        if let Ok(network) = text.parse() {
            return Ok(Self::Network(network));
        }
        text.parse()
            .map(Self::Name)
            .map_err(|_neither| InvalidPrivateHost(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(entries: &[&str]) -> PrivateHosts {
        entries.iter().map(|entry| entry.parse().unwrap()).collect()
    }

    #[test]
    fn without_a_list_only_public_addresses_are_allowed() {
        let none = PrivateHosts::default();
        assert!(none.allow("acme.com", "1.1.1.1".parse().unwrap()));
        for address in ["127.0.0.1", "::1", "10.0.0.1", "::ffff:10.0.0.1", "fd00::1"] {
            assert!(
                !none.allow("acme.com", address.parse().unwrap()),
                "{address}"
            );
            assert!(!none.allow(address, address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn a_name_allows_all_its_addresses_and_no_other_name() {
        let hosts = hosts(&["origin.internal", "*.lan"]);
        let address = "192.168.1.1".parse().unwrap();
        assert!(hosts.allow("origin.internal", address) && hosts.allow("Docs.LAN", address));
        for other in ["internal", "x.origin.internal", "lan", "192.168.1.1"] {
            assert!(!hosts.allow(other, address), "{other}");
        }
    }

    #[test]
    fn a_network_allows_its_addresses_under_any_name() {
        let hosts = hosts(&["10.0.0.0/8", "127.0.0.1"]);
        for (address, is_allowed) in [
            ("10.9.9.9", true),
            ("::ffff:10.9.9.9", true),
            ("127.0.0.1", true),
            ("127.0.0.2", false),
            ("64:ff9b::a00:1", false),
        ] {
            let allowed = hosts.allow("acme.com", address.parse().unwrap());
            assert_eq!(allowed, is_allowed, "{address}");
        }
    }

    #[test]
    fn an_entry_is_a_name_or_a_network() {
        for text in ["", "10.0.0.0/33", "http://a.test", "a*.test", "a.test/8"] {
            let error = text.parse::<PrivateHost>().unwrap_err();
            assert!(error.to_string().contains("10.0.0.0/8"), "{error}");
        }
    }
}
