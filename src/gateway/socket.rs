//! A client's TCP socket.
//!
//! The kernel gives a connection to the program when its first bytes have arrived, or after one
//! second without any (`TCP_DEFER_ACCEPT`, tcp(7)). In both protocols, HTTP and TLS, the client
//! sends first. So the first read seldom waits, and a connection for one request takes a quarter less
//! processor time. Until its first bytes, a connection takes no memory and no time of the program,
//! and no limit counts it. The kernel keeps it in the queue of the handshakes that have not ended,
//! and answers with SYN cookies when that queue is full. When the listener is closed, the
//! connections in this queue are lost.
//!
//! The socket is registered with the runtime only when it has to wait. Its first two system calls, a
//! read and a write, are made without a registration: the first request has arrived, and the response
//! fits into the buffer of the socket. If the connection is for one request, it is never registered.
//! From the third call on, the runtime is asked first: it makes the task give way to others, also if
//! the client always has the next request ready.
//!
//! The last response of a connection waits in the kernel until the connection is closed, which
//! follows at once. Both leave in one packet. A client that opens a connection for each request
//! opens 4 to 5 % more connections a second.
//!
//! One piece is sent with `send`, and a file without a copy. TLS and the fast path write lists of
//! pieces, and most lists have one piece. The kernel takes 0.14 us longer for `writev` of one piece
//! than for `send`, which is 1 to 2 % of a request. The C library takes another 0.05 us for `send`,
//! because there a thread can be cancelled. So the system call is made without it.

use std::fs::File;
use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::fs::sendfile;
use rustix::net::{SendFlags, SocketFlags, acceptfrom_with, send};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use super::defer::defer_accept;

/// How many system calls a socket makes before it is registered: one reads the first request, or the
/// first message of TLS, and one writes the response.
const FIRST_CALLS: u8 = 2;

/// A client's TCP socket.
#[derive(Debug)]
pub(super) struct Socket {
    state: State,
    /// Whether the connection is closed after the next write.
    is_ending: bool,
}

#[derive(Debug)]
enum State {
    /// The runtime does not know it yet.
    New {
        stream: std::net::TcpStream,
        calls_left: u8,
    },
    Registered(TcpStream),
    /// It could not be registered, and is closed.
    Lost,
}

/// A listening socket.
///
/// Tokio's `TcpListener` registers each connection that it accepts. Its `TcpStream` can wait until a
/// socket is ready and then make any system call, here `accept4`, so the listener is one.
#[derive(Debug)]
pub(super) struct Listener(TcpStream);

// === impl Listener ===

impl Listener {
    /// Makes it of a socket that listens.
    pub(super) fn new(listener: TcpListener) -> io::Result<Self> {
        let socket = OwnedFd::from(listener.into_std()?);
        // Without it, a connection is accepted before its first bytes have arrived.
        let _unsupported = defer_accept(&socket);
        TcpStream::from_std(socket.into()).map(Self)
    }

    /// Returns the address that it listens on.
    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Waits for a client, and returns its connection and address.
    pub(super) async fn accept(&self) -> io::Result<(Socket, SocketAddr)> {
        let accept = || {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let (socket, peer) = acceptfrom_with(&self.0, flags)?;
            let peer = peer.and_then(|peer| peer.try_into().ok());
            Ok((socket, peer.ok_or(io::ErrorKind::NotConnected)?))
        };
        let (socket, peer) = self.0.async_io(Interest::READABLE, accept).await?;
        Ok((Socket::new(socket.into()), peer))
    }
}

// === impl Socket ===

impl Socket {
    /// Makes it of a socket that does not block and that the runtime does not know.
    fn new(stream: std::net::TcpStream) -> Self {
        Self {
            state: State::New {
                stream,
                calls_left: FIRST_CALLS,
            },
            is_ending: false,
        }
    }

    /// Says that the next write is the last one, and that the socket is shut down or dropped right
    /// after it. The kernel holds the end of the response until then, for at most 0.2 s.
    pub(super) fn end_after_next_write(&mut self) {
        self.is_ending = true;
    }

    /// Makes a system call without a registration; `None` if the socket has to be registered for it.
    fn call_first<T>(
        &mut self,
        call: impl FnOnce(&std::net::TcpStream) -> io::Result<T>,
    ) -> Option<io::Result<T>> {
        let State::New { stream, calls_left } = &mut self.state else {
            return None;
        };
        *calls_left = calls_left.checked_sub(1)?;
        match call(stream) {
            Err(error) if is_to_be_repeated(&error) => None,
            done => Some(done),
        }
    }

    /// Registers the socket, unless it is registered, and returns it.
    pub(super) fn registered(&mut self) -> io::Result<&mut TcpStream> {
        if let State::New { .. } = self.state
            && let State::New { stream, .. } = std::mem::replace(&mut self.state, State::Lost)
        {
            self.state = State::Registered(TcpStream::from_std(stream)?);
        }
        match &mut self.state {
            State::Registered(stream) => Ok(stream),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Is ready when the client may have sent something, or closed its side.
    pub(super) fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.registered()?.poll_read_ready(cx)
    }

    /// Sends at most `length` bytes of a file from `at` on, and moves `at` behind them. The kernel
    /// makes no copy, and stops at the end of the file.
    pub(super) fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        file: &File,
        at: &mut u64,
        length: usize,
    ) -> Poll<io::Result<usize>> {
        // It sends fewer bytes at the end of the file too.
        self.poll_call(cx, 0, |socket| {
            sendfile(socket, file, Some(&mut *at), length)
        })
    }

    /// Makes a system call when the socket is ready, and returns how many bytes it has sent. If these
    /// are fewer than `length`, the buffer of the socket is full.
    fn poll_call(
        &mut self,
        cx: &mut Context<'_>,
        length: usize,
        mut call: impl FnMut(BorrowedFd<'_>) -> rustix::io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        if let Some(sent) = self.call_first(|stream| Ok(call(stream.as_fd())?)) {
            return Poll::Ready(sent);
        }
        let stream = self.registered()?;
        loop {
            ready!(stream.poll_write_ready(cx))?;
            let mut part = None;
            let sent = stream.try_io(Interest::WRITABLE, || match call(stream.as_fd())? {
                sent if sent < length => {
                    // With this error the runtime waits until the buffer has space again, and does
                    // not call in vain before.
                    part = Some(sent);
                    Err(io::ErrorKind::WouldBlock.into())
                }
                sent => Ok(sent),
            });
            match (sent, part) {
                (_, Some(part)) => return Poll::Ready(Ok(part)),
                (Err(error), None) if is_to_be_repeated(&error) => {}
                (sent, None) => return Poll::Ready(sent),
            }
        }
    }
}

/// Returns whether a call of the system is repeated, perhaps when the socket is ready again.
fn is_to_be_repeated(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        Self {
            state: State::Registered(stream),
            is_ending: false,
        }
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        match &self.state {
            State::New { stream, .. } => stream.as_raw_fd(),
            State::Registered(stream) => stream.as_raw_fd(),
            State::Lost => -1,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.call_first(|mut stream| stream.read(buf.initialize_unfilled()));
        if let Some(read) = read {
            return Poll::Ready(read.map(|length| buf.advance(length)));
        }
        Pin::new(self.registered()?).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        // No signal when the client has gone: an error says it.
        let mut flags = SendFlags::NOSIGNAL;
        flags.set(SendFlags::MORE, self.is_ending);
        self.poll_call(cx, buf.len(), |socket| send(socket, buf, flags))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut pieces = bufs.iter().filter(|piece| !piece.is_empty());
        if let (Some(only), None) = (pieces.next(), pieces.next()) {
            return self.poll_write(cx, only);
        }
        if let Some(written) = self.call_first(|mut stream| stream.write_vectored(bufs)) {
            return Poll::Ready(written);
        }
        Pin::new(self.registered()?).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Does nothing: nothing is held back.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.state {
            State::New { stream, .. } => Poll::Ready(stream.shutdown(Shutdown::Write)),
            State::Registered(stream) => Pin::new(stream).poll_shutdown(cx),
            State::Lost => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Waker;
    use std::time::{Duration, Instant};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    async fn listening() -> (Listener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listener = Listener::new(listener).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// Returns a client that has sent nothing, and its connection.
    async fn connected() -> (TcpStream, Socket) {
        connected_and_sent(b"").await
    }

    /// Returns a client that has sent these bytes, and its connection.
    async fn connected_and_sent(bytes: &[u8]) -> (TcpStream, Socket) {
        let (listener, address) = listening().await;
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(bytes).await.unwrap();
        let (socket, peer) = listener.accept().await.unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
        (client, socket)
    }

    #[tokio::test]
    async fn a_connection_is_accepted_when_its_first_bytes_have_arrived() {
        let (listener, address) = listening().await;
        let mut client = TcpStream::connect(address).await.unwrap();
        let mut accept = std::pin::pin!(listener.accept());
        let mut cx = Context::from_waker(Waker::noop());
        let early = accept.as_mut().poll(&mut cx);
        assert!(early.is_pending(), "it is accepted without a byte");
        client.write_all(b"request").await.unwrap();
        let (mut socket, _) = accept.await.unwrap();
        let mut request = [0; 99];
        assert_eq!(socket.read(&mut request).await.unwrap(), 7);
        assert!(matches!(socket.state, State::New { .. }));
    }

    #[tokio::test]
    async fn a_connection_without_a_byte_is_accepted_too() {
        let begin = Instant::now();
        let (_client, _socket) = connected().await;
        let taken = begin.elapsed();
        assert!(taken > Duration::from_millis(500), "{taken:?}");
    }

    #[tokio::test]
    async fn a_connection_for_one_request_is_not_registered() {
        let (mut client, mut socket) = connected_and_sent(b"request").await;
        let mut request = [0; 99];
        assert_eq!(socket.read(&mut request).await.unwrap(), 7);
        socket.write_all(b"response").await.unwrap();
        assert!(matches!(socket.state, State::New { .. }));
        drop(socket);
        let mut response = String::new();
        client.read_to_string(&mut response).await.unwrap();
        assert_eq!(response, "response");
    }

    #[tokio::test]
    async fn a_connection_for_more_requests_is_registered() {
        let (_client, mut socket) = connected_and_sent(b"one, two").await;
        let mut request = [0; 5];
        for sent in ["one, ", "two"] {
            let read = socket.read(&mut request).await.unwrap();
            assert_eq!(&request[..read], sent.as_bytes());
            socket.write_all(b"response").await.unwrap();
        }
        assert!(matches!(socket.state, State::Registered(_)));
    }

    #[tokio::test]
    async fn the_last_response_leaves_with_the_end_of_the_connection() {
        let mut was_held = false;
        // The kernel keeps it for 0.2 s, which may pass on a busy machine.
        for _ in 0..10 {
            let (client, mut socket) = connected_and_sent(b"request").await;
            assert_eq!(socket.read(&mut [0; 99]).await.unwrap(), 7);
            socket.end_after_next_write();
            socket.write_all(b"response").await.unwrap();
            let mut client = client.into_std().unwrap();
            was_held |= client.peek(&mut [0]).is_err();
            drop(socket);
            client.set_nonblocking(false).unwrap();
            let mut response = String::new();
            client.read_to_string(&mut response).unwrap();
            assert_eq!(response, "response");
        }
        assert!(was_held);
    }

    #[tokio::test]
    async fn a_client_that_sends_late_is_waited_for() {
        let (mut client, mut socket) = connected().await;
        let mut request = [0; 99];
        let mut cx = Context::from_waker(Waker::noop());
        let early = Pin::new(&mut socket).poll_read(&mut cx, &mut ReadBuf::new(&mut request));
        assert!(early.is_pending());
        client.write_all(b"request").await.unwrap();
        assert_eq!(socket.read(&mut request).await.unwrap(), 7);
        assert!(matches!(socket.state, State::Registered(_)));
    }

    #[tokio::test]
    async fn a_client_that_reads_late_gets_everything() {
        let (mut client, mut socket) = connected_and_sent(b"request").await;
        // More than the buffers of both sockets hold.
        let sent: Vec<u8> = (0..32_u32 << 20).map(|at| (at % 251) as u8).collect();
        let mut written = 0;
        poll_fn(|cx| {
            while let Poll::Ready(part) = Pin::new(&mut socket).poll_write(cx, &sent[written..]) {
                written += part.unwrap();
            }
            Poll::Ready(())
        })
        .await;
        assert!(written < sent.len(), "{written}");
        let rest = async {
            socket.write_all(&sent[written..]).await.unwrap();
            socket.shutdown().await.unwrap();
        };
        let mut received = Vec::new();
        let ((), read) = tokio::join!(rest, client.read_to_end(&mut received));
        read.unwrap();
        assert!(received == sent);
    }

    #[tokio::test]
    async fn every_list_of_pieces_arrives_whole() {
        let (mut client, mut socket) = connected_and_sent(b"request").await;
        for pieces in [
            &[][..],
            &[""],
            &["one"],
            &["", "two"],
            &["three", ""],
            &["", "fo", "", "ur"],
        ] {
            let slices: Vec<_> = pieces
                .iter()
                .map(|piece| IoSlice::new(piece.as_bytes()))
                .collect();
            let written = socket.write_vectored(&slices).await.unwrap();
            assert_eq!(written, pieces.concat().len(), "{pieces:?}");
        }
        socket.shutdown().await.unwrap();
        let mut received = String::new();
        client.read_to_string(&mut received).await.unwrap();
        assert_eq!(received, "onetwothreefour");
    }
}
