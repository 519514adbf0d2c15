//! Listening sockets that another process has opened: a supervisor (the socket activation of
//! systemd), or the gateway that this process replaces.
//!
//! They stay open while a process is replaced by the next one. Connections that come meanwhile wait
//! in the kernel, and none is refused or reset.
//!
//! Source: `sd_listen_fds(3)`.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use anyhow::Context as _;
use listenfd::ListenFd;
use tokio::net::TcpSocket;

use super::handover::Passed;

/// The sockets that were passed and not yet taken, with their addresses.
#[derive(Debug)]
pub(super) struct Inherited(Vec<(SocketAddr, TcpListener)>);

// === impl Inherited ===

impl Inherited {
    /// Takes the sockets of the process that this one replaces, in their order.
    pub(super) fn of(passed: Vec<Passed>) -> Self {
        let named = passed.into_iter();
        let named = named.map(|passed| (passed.address, TcpListener::from(passed.socket)));
        Self(named.collect())
    }

    /// Takes the sockets from the environment. Processes that are started later do not get them.
    ///
    /// # Errors
    ///
    /// A descriptor that was passed is not a listening TCP socket.
    pub(super) fn take() -> anyhow::Result<Self> {
        let mut passed = ListenFd::from_env();
        let mut sockets = Vec::with_capacity(passed.len());
        for at in 0..passed.len() {
            let taken = passed.take_tcp_listener(at);
            let listener = taken.with_context(|| format!("take socket {at} of the supervisor"))?;
            let Some(listener) = listener else { continue };
            rustix::io::fcntl_setfd(&listener, rustix::io::FdFlags::CLOEXEC)
                .context("keep a socket from other processes")?;
            let address = listener.local_addr().context("look at a socket")?;
            sockets.push((address, listener));
        }
        Ok(Self(sockets))
    }

    /// Returns the socket for an address, if one was passed.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub(super) fn socket(&mut self, address: SocketAddr) -> std::io::Result<Option<TcpSocket>> {
        let Some(at) = self.0.iter().position(|(passed, _)| *passed == address) else {
            return Ok(None);
        };
        let (_, listener) = self.0.remove(at);
        listener.set_nonblocking(true)?;
        // The type does not matter to the kernel: `listen` is called on it again.
        let socket = TcpStream::from(OwnedFd::from(listener));
        Ok(Some(TcpSocket::from_std_stream(socket)))
    }

    /// Checks that every socket was taken.
    ///
    /// # Errors
    ///
    /// A socket has an address that the configuration does not name.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        match self.0.first() {
            None => Ok(()),
            Some((address, _)) => anyhow::bail!(
                "the supervisor has passed a socket for {address}, which `listen` does not name"
            ),
        }
    }
}
