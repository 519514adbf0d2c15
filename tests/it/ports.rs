//! Free ports that a test chooses: for a program that starts to listen later, or for an address
//! where nothing listens.
//!
//! The kernel chooses ports for listeners on port 0 and for connections. It may choose a port again
//! as soon as the first listener is closed, so such a port does not stay free. The ports here are
//! below the range of the kernel, and no two tests of a run get the same one.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// The first port. The kernel chooses from 32768 on (Linux, `ip_local_port_range`).
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// Returns an address of this machine at which nothing listens.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Two runs of the tests begin at different ports.
    let begin = u16::try_from(std::process::id() % 97).unwrap() * 100;
    for _ in 0..COUNT {
        let next = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        let port = FIRST + (begin + next) % COUNT;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
    panic!("none of the ports {FIRST} to {} is free", FIRST + COUNT - 1);
}

/// Returns the port of a free address.
pub fn free_port() -> u16 {
    free_address().port()
}
