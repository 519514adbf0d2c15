//! How listening sockets go from one process to the next: the messages, and the sockets in them.
//!
//! A gateway that is upgraded starts its successor with one end of a socket pair as its standard
//! input. Each message is one line of JSON. The first one carries the listening sockets
//! (`SCM_RIGHTS`, `unix(7)`):
//!
//! ```text
//! old ──▶ new   {"version":1,"addresses":["0.0.0.0:80","0.0.0.0:443"]}  and a socket for each
//! old ◀── new   "serving"        the new process has loaded everything and accepts connections
//! old ──▶ new   "worker-ended"   the old process builds no more updates
//! ```
//!
//! Meanwhile both processes have the same sockets open, so the kernel keeps its queue of
//! connections, and one of the two accepts each of them.

use std::io::{self, BufRead as _, BufReader, IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

/// The version of the messages. A successor rejects every other one.
const VERSION: u32 = 1;
/// How many sockets may be passed. `listen` never names as many.
const SOCKETS_MAX: usize = 64;
/// The longest first message, in bytes.
const FIRST_BYTES_MAX: usize = 16 << 10;

/// A listening socket, with the address by which the configuration names it.
#[derive(Debug)]
pub(super) struct Passed {
    pub(super) address: SocketAddr,
    pub(super) socket: OwnedFd,
}

#[derive(Debug, Deserialize, Serialize)]
struct First {
    version: u32,
    addresses: Vec<SocketAddr>,
}

/// The messages after the first one.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Message {
    /// The new process accepts connections.
    Serving,
    /// The old process builds no more updates.
    WorkerEnded,
}

/// Sends the sockets.
///
/// # Errors
///
/// The error of the system, for example because the new process has ended.
pub(super) fn send(stream: &UnixStream, sockets: &[Passed]) -> io::Result<()> {
    let first = First {
        version: VERSION,
        addresses: sockets.iter().map(|passed| passed.address).collect(),
    };
    let mut line = serde_json::to_vec(&first)?;
    line.push(b'\n');
    let borrowed: Vec<_> = sockets.iter().map(|passed| passed.socket.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() && !rights.push(SendAncillaryMessage::ScmRights(&borrowed)) {
        return Err(io::Error::other(format!(
            "more than {SOCKETS_MAX} sockets to pass"
        )));
    }
    let sent = sendmsg(
        stream,
        &[IoSlice::new(&line)],
        &mut rights,
        SendFlags::NOSIGNAL,
    )?;
    // The kernel has sent the sockets with the first byte.
    (&mut &*stream).write_all(&line[sent..])
}

/// Receives the sockets, as [`send`] sends them.
///
/// # Errors
///
/// The error of the system, or a message of another version.
pub(super) fn receive(stream: &UnixStream) -> io::Result<Vec<Passed>> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let (mut line, mut sockets) = (Vec::new(), Vec::new());
    while line.last() != Some(&b'\n') {
        let mut bytes = vec![0; FIRST_BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
        let mut rights = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            stream,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut rights,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        for message in rights.drain() {
            if let RecvAncillaryMessage::ScmRights(passed) = message {
                sockets.extend(passed);
            }
        }
        line.extend_from_slice(&bytes[..received.bytes]);
        if received.bytes == 0 || line.len() > FIRST_BYTES_MAX {
            return Err(invalid("the earlier process sent no sockets".to_owned()));
        }
    }
    let first: First = serde_json::from_slice(&line)?;
    if first.version != VERSION {
        return Err(invalid(format!(
            "the earlier process passes its sockets in version {}; this program knows version \
             {VERSION}",
            first.version
        )));
    }
    if first.addresses.len() != sockets.len() {
        return Err(invalid(format!(
            "the earlier process named {} sockets and passed {}",
            first.addresses.len(),
            sockets.len()
        )));
    }
    let named = first.addresses.into_iter().zip(sockets);
    Ok(named
        .map(|(address, socket)| Passed { address, socket })
        .collect())
}

/// Sends one of the later messages.
///
/// # Errors
///
/// The error of the system, for example because the other process has ended.
pub(super) fn notify(mut stream: &UnixStream, message: Message) -> io::Result<()> {
    let mut line = serde_json::to_vec(&message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Waits until the other process sends this message.
///
/// # Errors
///
/// [`io::ErrorKind::UnexpectedEof`] if it has ended; [`io::ErrorKind::WouldBlock`] if the stream
/// has a timeout, which passed; another message.
pub(super) fn wait_for(stream: &UnixStream, expected: Message) -> io::Result<()> {
    let mut line = String::new();
    if BufReader::with_capacity(64, stream).read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let message: Message = serde_json::from_str(&line)?;
    if message != expected {
        let why = format!("the other process sent {message:?} instead of {expected:?}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn passed(address: &str, listener: &TcpListener) -> Passed {
        Passed {
            address: address.parse().unwrap(),
            socket: listener.try_clone().unwrap().into(),
        }
    }

    #[test]
    fn a_passed_socket_accepts_what_waited_for_the_first_process() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (old, new) = UnixStream::pair().unwrap();
        send(&old, &[passed("127.0.0.1:80", &listener)]).unwrap();
        let mut waiting = TcpStream::connect(address).unwrap();
        drop(listener);
        let received = receive(&new).unwrap();
        assert_eq!(received[0].address, "127.0.0.1:80".parse().unwrap());
        let [Passed { socket, .. }] = received.try_into().unwrap();
        let (mut accepted, _) = TcpListener::from(socket).accept().unwrap();
        accepted.write_all(b"!").unwrap();
        let mut byte = [0];
        waiting.read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"!");
    }

    #[test]
    fn another_version_is_rejected() {
        let (old, new) = UnixStream::pair().unwrap();
        (&old)
            .write_all(b"{\"version\":2,\"addresses\":[]}\n")
            .unwrap();
        let error = receive(&new).unwrap_err().to_string();
        assert!(
            error.contains("in version 2; this program knows version 1"),
            "{error}"
        );
    }

    #[test]
    fn a_process_that_has_ended_is_noticed() {
        let (old, new) = UnixStream::pair().unwrap();
        notify(&old, Message::Serving).unwrap();
        assert!(wait_for(&new, Message::Serving).is_ok());
        notify(&old, Message::WorkerEnded).unwrap();
        let error = wait_for(&new, Message::Serving).unwrap_err().to_string();
        assert!(error.contains("WorkerEnded instead of Serving"), "{error}");
        drop(old);
        let error = wait_for(&new, Message::Serving).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        let error = receive(&new).unwrap_err().to_string();
        assert_eq!(error, "the earlier process sent no sockets");
    }
}
