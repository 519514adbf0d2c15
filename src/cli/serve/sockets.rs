//! The sockets on which the process listens, before it accepts connections.

use std::net::SocketAddr;
use std::os::fd::AsFd as _;

use anyhow::Context as _;
use tokio::net::TcpSocket;

use super::handover::Passed;
use super::inherited::Inherited;
use super::successor::Predecessor;
use super::upgrade::ListeningSockets;
use crate::config::{self, Config};
use crate::gateway::Listeners;

/// The sockets, and the process from which a successor has taken them.
pub(super) struct Sockets {
    /// The process that this one replaces.
    pub(super) predecessor: Option<Predecessor>,
    /// Copies of all of them, for a successor.
    pub(super) copies: ListeningSockets,
    /// For clients.
    pub(super) listeners: Listeners,
    pub(super) operator: Option<TcpSocket>,
    pub(super) edges: Option<TcpSocket>,
}

// === impl Sockets ===

impl Sockets {
    /// Takes the sockets that another process has passed, and makes the others.
    ///
    /// # Errors
    ///
    /// When an address cannot be used, or a supervisor has passed a socket for another address.
    pub(super) fn open(config: &Config, is_successor: bool) -> anyhow::Result<Self> {
        let (predecessor, mut inherited) = match is_successor {
            true => {
                let (predecessor, sockets) = Predecessor::connect().context("take the sockets")?;
                (Some(predecessor), Inherited::of(sockets))
            }
            false => (None, Inherited::take()?),
        };
        let copies = ListeningSockets::default();
        let mut take_or_bind = |address| take_or_bind(address, &mut inherited, &copies);
        let listeners = bind(config, &mut take_or_bind)?;
        let operator = config.listen.operator.map(&mut take_or_bind).transpose()?;
        let edges = config.edges.listen.map(take_or_bind).transpose()?;
        // A successor may have a configuration with fewer addresses.
        if predecessor.is_none() {
            inherited.check()?;
        }
        Ok(Self {
            predecessor,
            copies,
            listeners,
            operator,
            edges,
        })
    }
}

fn bind(
    config: &Config,
    take_or_bind: &mut impl FnMut(SocketAddr) -> anyhow::Result<TcpSocket>,
) -> anyhow::Result<Listeners> {
    if config.listen.http.is_empty() && config.listen.https.is_empty() {
        anyhow::bail!("`listen` names no address for http or https");
    }
    let follows = match &config.store {
        config::Store::Follow { follow, .. } => follow.key_file.is_some(),
        config::Store::Local(_) | config::Store::Shared(_) => false,
    };
    let has_certificates = config.tls.directory.is_some() || config.acme.is_on() || follows;
    if !config.listen.https.is_empty() && !has_certificates {
        anyhow::bail!(
            "`listen.https` needs `tls.directory`, where the certificates are, or \
             `acme.authorities`, or on an edge `store.follow.key_file`"
        );
    }
    let mut all = |addresses: &[SocketAddr]| {
        addresses
            .iter()
            .map(|address| take_or_bind(*address))
            .collect::<anyhow::Result<_>>()
    };
    Ok(Listeners {
        http: all(&config.listen.http)?,
        https: all(&config.listen.https)?,
    })
}

/// Takes the socket that another process has passed for an address, or makes one. A copy of it is
/// kept for a successor.
fn take_or_bind(
    address: SocketAddr,
    inherited: &mut Inherited,
    sockets: &ListeningSockets,
) -> anyhow::Result<TcpSocket> {
    let passed = inherited.socket(address);
    let open = match passed.with_context(|| format!("take the socket for {address}"))? {
        Some(socket) => {
            log::info!(target: "serve", address:%; "another process has passed the socket for {address}");
            socket
        }
        None => socket(address)?,
    };
    let copy = open.as_fd().try_clone_to_owned();
    let socket = copy.with_context(|| format!("copy the socket for {address}"))?;
    sockets.add(Passed { address, socket });
    Ok(open)
}

/// Takes an address without accepting connections on it yet.
pub(in crate::cli) fn socket(address: SocketAddr) -> anyhow::Result<TcpSocket> {
    let open = || {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()
        } else {
            TcpSocket::new_v6()
        }?;
        // Closing connections of an earlier process must not block the address.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok::<_, std::io::Error>(socket)
    };
    open().with_context(|| format!("listen on {address}"))
}
