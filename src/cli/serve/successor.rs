//! The start of a process that replaces a running gateway: it takes the listening sockets of its
//! predecessor, and checks that it can respond before the predecessor stops.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::handover::{self, Message, Passed};
use crate::gateway::ConnectionHandler;

/// How long the request to itself may take.
const GREETING_TIME_MAX: Duration = Duration::from_secs(10);
/// The client address of that request: one for documentation (RFC 5737 §3), which no setting of an
/// operator names.
const GREETER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 1);

/// The running gateway that has started this process.
#[derive(Clone, Debug)]
pub(super) struct Predecessor(Arc<UnixStream>);

// === impl Predecessor ===

impl Predecessor {
    /// Connects to it over the standard input, and takes its sockets.
    ///
    /// # Errors
    ///
    /// When the standard input is not the end of a socket pair whose other end has passed sockets.
    pub(super) fn connect() -> io::Result<(Self, Vec<Passed>)> {
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let sockets = handover::receive(&stream)?;
        Ok((Self(Arc::new(stream)), sockets))
    }

    /// Notifies it that this process accepts connections, so that it stops.
    ///
    /// # Errors
    ///
    /// When it has ended, or has stopped waiting.
    pub(super) fn replace(&self) -> io::Result<()> {
        handover::notify(&self.0, Message::Serving)
    }

    /// Waits until its worker has ended, or the whole process.
    pub(super) async fn worker_ended(self) {
        let wait = move || {
            if let Err(error) = handover::wait_for(&self.0, Message::WorkerEnded)
                && error.kind() != io::ErrorKind::UnexpectedEof
            {
                log::warn!(target: "upgrade", "cannot wait for the worker of the earlier process: {error}");
            }
        };
        // After a panic the earlier worker may still run. Its lease protects its update.
        let _joined = tokio::task::spawn_blocking(wait).await;
        log::info!(target: "upgrade", "the worker of the earlier process has ended");
    }
}

/// Sends a request to this process over a connection of its own, before clients can.
///
/// # Errors
///
/// When no response comes.
pub(super) async fn greet(handler: &Arc<ConnectionHandler>) -> io::Result<()> {
    let greeting = async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (mut client, (stream, _)) = (client?, accepted?);
        handler.begin(stream, GREETER, false);
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .await?;
        let mut response = Vec::new();
        client.read_to_end(&mut response).await?;
        if !response.starts_with(b"HTTP/1.1 ") {
            return Err(io::Error::other("the response is not HTTP"));
        }
        Ok(())
    };
    tokio::time::timeout(GREETING_TIME_MAX, greeting).await?
}
