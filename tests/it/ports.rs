//! Ports that the tests choose themselves, for a program that opens its listener later, or for an
//! address at which nothing listens.
//!
//! A port of the kernel's range is no such port: once its first listener is closed, the kernel may
//! give it to any connection or listener of another test. These ports are below that range, and no
//! test of a run gets the port of another one.

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
