//! Ranges of addresses, as configurations write them.
//!
//! Source: RFC 4632 §3.1 (prefix notation).

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// A range of addresses: `10.0.0.0/8`, `2001:db8::/32`, or a single one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network(IpNet);

/// Why a text is not a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an address nor a range such as 10.0.0.0/8")]
pub struct InvalidNetwork(String);

// === impl Network ===

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let single = |text: &str| text.parse::<IpAddr>().map(IpNet::from);
        text.parse::<IpNet>()
            .or_else(|_not_a_range| single(text))
            .map(Self)
            .map_err(|_neither| InvalidNetwork(text.to_owned()))
    }
}

impl TryFrom<String> for Network {
    type Error = InvalidNetwork;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Network {
    /// Returns whether an address is in the range. An IPv4 address that arrives on an IPv6
    /// socket is the IPv4 address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_the_addresses_of_its_prefix() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
            ("2001:db8::/33", "2001:db8:7fff::", "2001:db8:8000::"),
            ("0.0.0.0/0", "255.1.1.1", "::1"),
            ("::/0", "::1", "1.1.1.1"),
        ] {
            let network: Network = network.parse().unwrap();
            assert_eq!(String::from(network).parse(), Ok(network));
            assert!(
                network.contains(inside.parse().unwrap()),
                "{network} {inside}"
            );
            assert!(
                !network.contains(outside.parse().unwrap()),
                "{network} {outside}"
            );
        }
        for wrong in ["10.0.0.0/33", "10.0.0/8", "", "a/8", "::/129"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
