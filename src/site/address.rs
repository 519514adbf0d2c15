//! Decides which addresses belong to the public Internet.
//!
//! The function of the standard library (`IpAddr::is_global`) is not stable yet. Ours is
//! stricter: an address that a registry lists as special is not public, and an IPv6 address that
//! contains an IPv4 address is public only if the IPv4 address is public.
//!
//! Sources: the IANA special-purpose address registries (RFC 6890), RFC 4291 §2.5.5.2
//! (mapped), RFC 6052 §2.1 (translated), RFC 3056 §2 (6to4), RFC 4380 §4 (Teredo).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether an address is public.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b, c) {
        // This network, private use, loopback.
        (0 | 10 | 127, ..) => true,
        // RFC 6598: shared by a provider and its customers.
        (100, 64..=127, _) => true,
        // Link-local; cloud providers serve the metadata of a machine here.
        (169, 254, _) => true,
        (172, 16..=31, _) | (192, 168, _) => true,
        // Protocol assignments, documentation, the former 6to4 relays, AMT and AS112.
        (192, 0, 0 | 2) | (192, 88, 99) | (192, 31, 196) | (192, 52, 193) | (192, 175, 48) => true,
        (198, 51, 100) | (203, 0, 113) => true,
        // RFC 2544: benchmarks.
        (198, 18 | 19, _) => true,
        // Multicast, reserved, broadcast.
        (224.., ..) => true,
        _ => false,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match segments {
        [0, 0, 0, 0, 0, 0xffff, high, low] => is_public_v4(v4(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(v4(high, low)),
        [0x2002, high, low, ..] => is_public_v4(v4(high, low)),
        // Protocol assignments (Teredo is one of them), and the two ranges for documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // RFC 4291 §2.4: the only range of global unicast addresses so far.
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_not_public_in_any_form() {
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "192.0.2.1",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::a00:1",
            "::ffff:169.254.169.254",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
            "fec0::1",
            "::127.0.0.1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
