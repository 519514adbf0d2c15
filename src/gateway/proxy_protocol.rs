//! The header of the PROXY protocol: a load balancer names its client before the first byte of a
//! connection.
//!
//! A TCP load balancer connects in its own name. With this header, which comes before TLS, the
//! client's address is known for limits, logs and forwarding fields. Anybody could send the header,
//! so it is read only from the configured networks; there it is mandatory, because a connection
//! without it would count for the load balancer.
//!
//! The header has no length that is known in advance in version 1, and the bytes after it belong to
//! TLS or HTTP. So bytes are looked at first (`MSG_PEEK`), and only those of the header are taken.
//!
//! Source: "The PROXY protocol", versions 1 and 2, `HAProxy` Technologies, 2020-03-05; §2.1 (text),
//! §2.2 (binary). The crate `ppp` parses it.

use std::io;
use std::net::{IpAddr, SocketAddr};

use ppp::{HeaderResult, v1, v2};
use thiserror::Error;
use tokio::io::AsyncReadExt as _;

use super::socket::Socket;

/// The longest header of version 1 with its line end (§2.1).
const TEXT_MAX: usize = 107;
/// The longest header of version 2 that is accepted: the addresses, and fields that are ignored.
const BINARY_MAX: usize = 2048;
/// The first bytes of version 1.
const TEXT_START: &[u8] = b"PROXY ";
/// How many bytes of version 2 come before its addresses; the last two are their length.
const BINARY_FIXED: usize = 16;

/// Why there is no valid header.
#[derive(Debug, Error)]
pub(super) enum Error {
    /// The connection failed or ended within the header.
    #[error("the connection ended before the end of the header: {0}")]
    Ended(#[from] io::Error),
    /// The first bytes are something else.
    #[error("the connection does not begin with a header of the PROXY protocol")]
    Missing,
    /// The header is longer than its limit.
    #[error("the header is longer than {0} bytes")]
    Long(usize),
    /// The header breaks the rules of its version.
    #[error("the header is malformed")]
    Malformed,
}

/// Takes the header from a connection and returns the client's address.
///
/// It is the address of the peer if the load balancer speaks for itself, for example in a health
/// check (`LOCAL`, `UNKNOWN`), or for a client without an IP address.
///
/// # Errors
///
/// The connection must be closed, because its client is unknown.
pub(super) async fn read(socket: &mut Socket, peer: SocketAddr) -> Result<SocketAddr, Error> {
    let stream = socket.registered()?;
    let mut header = vec![0; BINARY_MAX];
    let mut taken = 0;
    loop {
        let seen = taken + stream.peek(&mut header[taken..]).await?;
        if seen == taken {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let length = length(&header[..seen])?;
        // As long as the length is unknown, all bytes belong to the header.
        let end = length.map_or(seen, |length| length.min(seen));
        stream.read_exact(&mut header[taken..end]).await?;
        taken = end;
        if length == Some(taken) {
            return client(&header[..taken], peer);
        }
    }
}

/// Returns the length of the header that begins with these bytes, if they contain it.
fn length(bytes: &[u8]) -> Result<Option<usize>, Error> {
    let begins_with = |start: &[u8]| {
        let common = bytes.len().min(start.len());
        bytes[..common] == start[..common]
    };
    if begins_with(v2::PROTOCOL_PREFIX) {
        let Some(fixed) = bytes.first_chunk::<BINARY_FIXED>() else {
            return Ok(None);
        };
        let rest = u16::from_be_bytes([fixed[BINARY_FIXED - 2], fixed[BINARY_FIXED - 1]]);
        let length = BINARY_FIXED + usize::from(rest);
        return match length <= BINARY_MAX {
            true => Ok(Some(length)),
            false => Err(Error::Long(BINARY_MAX)),
        };
    }
    if !begins_with(TEXT_START) {
        return Err(Error::Missing);
    }
    let line = &bytes[..bytes.len().min(TEXT_MAX)];
    match memchr::memmem::find(line, b"\r\n") {
        Some(end) => Ok(Some(end + 2)),
        None if bytes.len() >= TEXT_MAX => Err(Error::Long(TEXT_MAX)),
        None => Ok(None),
    }
}

/// Returns the client that a whole header names.
fn client(header: &[u8], peer: SocketAddr) -> Result<SocketAddr, Error> {
    let named: (IpAddr, u16) = match HeaderResult::parse(header) {
        HeaderResult::V1(Ok(header)) => match header.addresses {
            v1::Addresses::Unknown => return Ok(peer),
            v1::Addresses::Tcp4(tcp) => (tcp.source_address.into(), tcp.source_port),
            v1::Addresses::Tcp6(tcp) => (tcp.source_address.into(), tcp.source_port),
        },
        HeaderResult::V2(Ok(header)) => {
            if header.command == v2::Command::Local {
                return Ok(peer);
            }
            if header.protocol == v2::Protocol::Datagram {
                return Err(Error::Malformed);
            }
            match header.addresses {
                v2::Addresses::IPv4(ip) => (ip.source_address.into(), ip.source_port),
                v2::Addresses::IPv6(ip) => (ip.source_address.into(), ip.source_port),
                v2::Addresses::Unspecified | v2::Addresses::Unix(_) => return Ok(peer),
            }
        }
        HeaderResult::V1(Err(_)) | HeaderResult::V2(Err(_)) => return Err(Error::Malformed),
    };
    Ok(SocketAddr::from((named.0.to_canonical(), named.1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

    fn named(header: &[u8]) -> Result<String, String> {
        let found = length(header).map_err(|error| error.to_string())?;
        assert_eq!(found, Some(header.len()));
        client(header, PEER)
            .map(|client| client.to_string())
            .map_err(|error| error.to_string())
    }

    /// Makes a header of version 2 from its third and fourth words and what follows.
    fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [v2::PROTOCOL_PREFIX, &[command, family], &length, rest].concat()
    }

    #[test]
    fn both_versions_name_the_client() {
        let text = named(b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n");
        assert_eq!(text, Ok("192.0.2.7:4711".to_owned()));
        let text = named(b"PROXY TCP6 2001:db8::7 2001:db8::1 4711 443\r\n");
        assert_eq!(text, Ok("[2001:db8::7]:4711".to_owned()));
        let ipv4 = [192, 0, 2, 7, 198, 51, 100, 1, 0x12, 0x67, 1, 187];
        assert_eq!(
            named(&binary(0x21, 0x11, &ipv4)),
            Ok("192.0.2.7:4711".to_owned())
        );
        // A field of type "no operation" after the addresses.
        let with_field = [&ipv4[..], &[4, 0, 1, 0]].concat();
        assert_eq!(
            named(&binary(0x21, 0x11, &with_field)),
            Ok("192.0.2.7:4711".to_owned())
        );
        // An IPv4 address inside an IPv6 address.
        let mapped = [&[0; 10][..], &[255, 255, 192, 0, 2, 7], &[0; 16], &[0; 4]].concat();
        assert_eq!(
            named(&binary(0x21, 0x21, &mapped)),
            Ok("192.0.2.7:0".to_owned())
        );
    }

    #[test]
    fn a_load_balancer_can_speak_for_itself() {
        let peer = Ok(PEER.to_string());
        assert_eq!(named(b"PROXY UNKNOWN\r\n"), peer);
        assert_eq!(named(b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n"), peer);
        assert_eq!(named(&binary(0x20, 0, &[])), peer);
        assert_eq!(named(&binary(0x21, 0, &[])), peer);
    }

    #[test]
    fn malformed_headers_are_rejected() {
        for header in [
            &b"PROXY TCP4 192.0.2.7 198.51.100.1 4711\r\n"[..],
            b"PROXY TCP4 192.0.2.999 198.51.100.1 4711 443\r\n",
            b"PROXY TCP4 2001:db8::7 2001:db8::1 4711 443\r\n",
            b"PROXY TCP4 192.0.2.7 198.51.100.1 65536 443\r\n",
            b"PROXY UDP4 192.0.2.7 198.51.100.1 4711 443\r\n",
            b"PROXY \r\n",
            // Version 3, an unknown command, addresses that are cut, a datagram.
            &binary(0x31, 0x11, &[0; 12]),
            &binary(0x22, 0x11, &[0; 12]),
            &binary(0x21, 0x11, &[0; 11]),
            &binary(0x21, 0x12, &[0; 12]),
        ] {
            assert!(named(header).is_err(), "{}", header.escape_ascii());
        }
    }

    #[test]
    fn the_length_is_limited_before_the_header_is_whole() {
        let is_long = |bytes: &[u8]| matches!(length(bytes), Err(Error::Long(_)));
        assert!(is_long(&[TEXT_START, &[b'1'; 101]].concat()));
        assert!(!is_long(&[TEXT_START, &[b'1'; 100]].concat()));
        assert!(is_long(
            &[v2::PROTOCOL_PREFIX, &[0x21, 0x11, 0xff, 0xff]].concat()
        ));
        for start in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"PROXi",
            b"\r\n\r\n\0\r\nQUIX",
            b"\x16\x03",
        ] {
            assert!(matches!(length(start), Err(Error::Missing)));
        }
        for start in [
            &b"P"[..],
            b"PROXY TCP4",
            b"\r",
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0",
        ] {
            assert!(
                matches!(length(start), Ok(None)),
                "{}",
                start.escape_ascii()
            );
        }
    }
}
