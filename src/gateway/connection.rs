//! A client's connection, plain or TLS.
//!
//! The properties that pingora asks for (addresses, TLS) are collected once, when the connection
//! is accepted, so that no request needs a system call for it. A [`ClientConnection`] implements
//! pingora's `IO`, so it can carry HTTP/2. For HTTP/1.1 a
//! [`SingleRequestStream`](super::single_request::SingleRequestStream) gives it to the proxy path
//! for one request.
//!
//! HTTP/2 writes and flushes each `DATA` frame by itself. While a [`Cork`] is set, the connection
//! holds back what is written, so that the responses of a batch of streams leave in one system
//! call and in full TLS records.

use std::fs::File;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use pingora::protocols::l4::socket::SocketAddr as PingoraAddr;
use pingora::protocols::raw_connect::ProxyDigest;
use pingora::protocols::tls::SslDigest;
use pingora::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    TimingDigest, UniqueID, UniqueIDType,
};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpSocket;
use tokio_rustls::server::TlsStream;

use super::access::Client;
use super::held::HeldBytes;
use super::open::Guards;
use super::socket::Socket;
use super::write_rate::WriteRate;

/// How many bytes a cork holds back before they are written.
const CORKED_BYTES_MAX: usize = 64 << 10;
/// Writes of at least this length are not held back on a connection with HTTP/1.1: they are
/// pieces of a body, and copying them would double the memory of a slow reader.
const WRITTEN_THROUGH_BYTES: usize = 8 << 10;
/// The same limit while nothing is held back. Such a write is usually the rest of a piece, after
/// the socket has accepted the first part.
const REST_WRITTEN_THROUGH_BYTES: usize = 1 << 10;
/// How many bytes the kernel holds for a client beyond those that are on their way to it. The
/// kernel would hold megabytes for a client that does not read, and writing would seem to make
/// progress.
const UNSENT_BYTES_MAX: u32 = 16 << 10;
/// How many encrypted bytes a TLS session holds.
const TLS_BUFFER_BYTES: usize = 32 << 10;
/// How many bytes are still read from a connection that is being closed, so that no reset
/// destroys the response.
const LINGER_BYTES_MAX: usize = 64 << 10;
/// How long such a connection is still read.
const LINGER_TIME_MAX: Duration = Duration::from_secs(1);

/// A client's connection.
#[derive(Debug)]
pub(super) struct ClientConnection {
    transport: Transport,
    info: ConnectionInfo,
    cork: Option<Corked>,
    write_rate: WriteRate,
    /// Dropped with the connection: a drain waits until then, and its client may open another.
    _guards: Guards,
}

/// The properties of an accepted connection.
#[derive(Clone, Debug)]
pub(super) struct ConnectionInfo {
    /// The client's address.
    pub(super) peer: SocketAddr,
    /// What pingora asks for, once it has asked.
    socket: OnceLock<Arc<SocketDigest>>,
    tls: Option<Arc<SslDigest>>,
    is_http2: bool,
    fd: i32,
}

/// While it is set, written bytes are held back.
#[derive(Clone, Debug, Default)]
pub(super) struct Cork(Arc<AtomicBool>);

/// The bytes that a cork holds back.
#[derive(Debug)]
struct Corked {
    cork: Cork,
    held: HeldBytes,
    /// Whether long writes are written at once: the cork is for one HTTP/1.1 response.
    is_for_one_response: bool,
}

#[derive(Debug)]
enum Transport {
    Plain(Socket),
    Tls(Box<TlsStream<Socket>>),
}

// === impl ClientConnection ===

impl ClientConnection {
    /// Makes it of a plain connection.
    pub(super) fn plain(
        socket: Socket,
        peer: SocketAddr,
        guards: Guards,
        write_rate: WriteRate,
    ) -> Self {
        let info = ConnectionInfo::new(&socket, peer);
        Self {
            transport: Transport::Plain(socket),
            info,
            cork: None,
            write_rate,
            _guards: guards,
        }
    }

    /// Makes it of a connection after its TLS handshake.
    pub(super) fn tls(
        mut stream: Box<TlsStream<Socket>>,
        peer: SocketAddr,
        guards: Guards,
        write_rate: WriteRate,
    ) -> Self {
        let (_socket, session) = stream.get_mut();
        session.set_buffer_limit(Some(TLS_BUFFER_BYTES));
        let (socket, session) = stream.get_ref();
        let mut info = ConnectionInfo::new(socket, peer);
        let cipher = session
            .negotiated_cipher_suite()
            .and_then(|suite| suite.suite().as_str());
        let version = session
            .protocol_version()
            .and_then(|version| version.as_str());
        let digest = SslDigest::new(
            cipher.unwrap_or_default(),
            version.unwrap_or_default(),
            None,
            None,
            Vec::new(),
        );
        info.tls = Some(Arc::new(digest));
        info.is_http2 = session.alpn_protocol() == Some(b"h2");
        Self {
            transport: Transport::Tls(stream),
            info,
            cork: None,
            write_rate,
            _guards: guards,
        }
    }

    pub(super) fn info(&self) -> &ConnectionInfo {
        &self.info
    }

    /// Adds a cork to the connection; it is not set yet.
    pub(super) fn cork(&mut self) -> Cork {
        let cork = Cork::default();
        self.cork = Some(Corked {
            cork: cork.clone(),
            held: HeldBytes::default(),
            is_for_one_response: false,
        });
        cork
    }

    /// Buffers writes until the next flush: pingora writes the header and the body of a response
    /// separately, and flushes when the client must get them.
    pub(super) fn hold(&mut self) {
        self.cork = Some(Corked {
            cork: Cork::default(),
            held: HeldBytes::default(),
            is_for_one_response: true,
        });
    }

    /// Ends [`ClientConnection::hold`]. Bytes that were never flushed are still held back, and
    /// are written when the connection is closed.
    pub(super) fn unhold(&mut self) {
        self.cork = self.cork.take().filter(|corked| !corked.held.is_empty());
    }

    /// Returns how many bytes are held back.
    pub(super) fn held_back(&self) -> usize {
        self.cork.as_ref().map_or(0, |corked| corked.held.len())
    }

    /// Drops the buffered bytes.
    pub(super) fn discard(&mut self) {
        if let Some(corked) = &mut self.cork {
            corked.held.clear();
        }
        self.unhold();
    }

    /// Writes the bytes that the cork has held back.
    fn poll_release(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(corked) = &mut self.cork else {
            return Poll::Ready(Ok(()));
        };
        while !corked.held.is_empty() {
            let polled = self
                .transport
                .as_write()
                .poll_write(cx, corked.held.bytes());
            let written = ready!(watched(
                &mut self.write_rate,
                polled,
                |written| *written,
                cx
            ))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            corked.held.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    /// Says that the connection is closed right after the next write
    /// ([`Socket::end_after_next_write`]).
    pub(super) fn end_after_next_write(&mut self) {
        match &mut self.transport {
            Transport::Plain(socket) => socket.end_after_next_write(),
            Transport::Tls(stream) => stream.get_mut().0.end_after_next_write(),
        }
    }

    /// Writes all bytes. The client must take them as fast as [`WriteRate`] says.
    pub(super) async fn write_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes).await?;
        self.flush().await
    }

    /// Writes all slices, in as few system calls as the transport allows. The client must take
    /// them as fast as [`WriteRate`] says.
    pub(super) async fn write_all_vectored(
        &mut self,
        slices: &mut [IoSlice<'_>],
    ) -> io::Result<()> {
        let mut rest = slices;
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let write = poll_fn(|cx| Pin::new(&mut *self).poll_write_vectored(cx, rest));
            let written = write.await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            IoSlice::advance_slices(&mut rest, written);
        }
        self.flush().await
    }

    /// Returns whether [`Self::write_file`] can be used: the connection is not encrypted, and holds
    /// nothing back.
    pub(super) fn can_write_files(&self) -> bool {
        matches!(self.transport, Transport::Plain(_)) && self.cork.is_none()
    }

    /// Writes a whole file of this length without a copy. The client must take it as fast as
    /// [`WriteRate`] says.
    pub(super) async fn write_file(&mut self, file: &File, length: usize) -> io::Result<()> {
        let mut at = 0;
        while at < length as u64 {
            if poll_fn(|cx| self.poll_write_file(cx, file, &mut at, length)).await? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    /// Writes bytes of a file, and moves `at` to the next one.
    fn poll_write_file(
        &mut self,
        cx: &mut Context<'_>,
        file: &File,
        at: &mut u64,
        length: usize,
    ) -> Poll<io::Result<usize>> {
        let Transport::Plain(socket) = &mut self.transport else {
            return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
        };
        let polled = socket.poll_send_file(cx, file, at, length);
        watched(&mut self.write_rate, polled, |written| *written, cx)
    }

    /// Is ready when the client may have sent something, or closed its side. Otherwise the task is
    /// woken when that happens. Reading is not tried, so no buffer is needed.
    pub(super) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let socket = match &mut self.transport {
            Transport::Plain(socket) => socket,
            Transport::Tls(stream) => stream.get_mut().0,
        };
        // A read reports the error.
        socket.poll_read_ready(cx).map(|_ready| ())
    }

    /// Closes an idle connection. Over TLS `close_notify` is sent first, so that the client knows
    /// that no attacker closed it (RFC 8446 §6.1).
    pub(super) async fn close(mut self) {
        if self.info.is_tls() {
            // A client that reads nothing does not get it.
            let _elapsed =
                tokio::time::timeout(LINGER_TIME_MAX, AsyncWriteExt::shutdown(&mut self)).await;
        }
    }

    /// Closes the connection so that the last response arrives: when unread bytes are left, the
    /// kernel sends a reset, which can destroy the response (RFC 9112 §9.6).
    pub(super) async fn close_lingering(mut self) {
        let mut discarded = 0;
        // An array would be a part of the task of every connection.
        let mut sink = vec![0; 4096];
        let drain = async {
            if AsyncWriteExt::shutdown(&mut self).await.is_err() {
                return;
            }
            while discarded < LINGER_BYTES_MAX {
                match self.read(&mut sink).await {
                    Ok(0) | Err(_) => break,
                    Ok(read) => discarded += read,
                }
            }
        };
        // After the timeout the connection is closed anyway.
        let _elapsed = tokio::time::timeout(LINGER_TIME_MAX, drain).await;
    }
}

/// Returns the result of a write. A wait for a client that is too slow becomes an error.
fn watched<T>(
    write_rate: &mut WriteRate,
    polled: Poll<io::Result<T>>,
    taken: impl FnOnce(&T) -> usize,
    cx: &mut Context<'_>,
) -> Poll<io::Result<T>> {
    match polled {
        Poll::Pending => write_rate
            .poll_too_slow(cx)
            .map(|reason| Err(reason.into())),
        Poll::Ready(Ok(done)) => {
            write_rate.took(taken(&done));
            Poll::Ready(Ok(done))
        }
        failed @ Poll::Ready(Err(_)) => failed,
    }
}

/// Sets the options of client connections on the socket that will listen for them. The sockets that
/// it accepts have them too, on Linux (tcp(7)), which saves two system calls for each connection.
///
/// # Errors
///
/// When the socket is not a TCP socket.
pub(super) fn set_client_options(socket: &TcpSocket) -> io::Result<()> {
    // A response is one write; Nagle's algorithm could only delay it.
    socket.set_nodelay(true)?;
    // Without it, writing works too.
    let _unsupported = SockRef::from(socket).set_tcp_notsent_lowat(UNSENT_BYTES_MAX);
    Ok(())
}

// === impl Transport ===

impl Transport {
    fn as_write(&mut self) -> Pin<&mut (dyn AsyncWrite + Send + Unpin)> {
        match self {
            Self::Plain(stream) => Pin::new(stream),
            Self::Tls(stream) => Pin::new(&mut **stream),
        }
    }
}

// === impl Cork ===

impl Cork {
    /// Sets or removes the cork. The bytes that it held back are written by the next flush.
    pub(super) fn set(&self, is_set: bool) {
        self.0.store(is_set, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

// === impl ConnectionInfo ===

impl ConnectionInfo {
    fn new(socket: &Socket, peer: SocketAddr) -> Self {
        Self {
            peer,
            socket: OnceLock::new(),
            tls: None,
            is_http2: false,
            fd: socket.as_raw_fd(),
        }
    }

    fn socket(&self) -> Arc<SocketDigest> {
        let make = || {
            let socket = SocketDigest::from_raw_fd(self.fd);
            // Set before anybody asks, so that pingora never calls getpeername.
            let _unset = socket.peer_addr.set(Some(PingoraAddr::Inet(self.peer)));
            Arc::new(socket)
        };
        Arc::clone(self.socket.get_or_init(make))
    }

    /// Returns whether the connection is encrypted.
    pub(super) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns whether ALPN chose HTTP/2.
    pub(super) fn is_http2(&self) -> bool {
        self.is_http2
    }

    /// Returns where requests of this connection come from.
    pub(super) fn client(&self) -> Client {
        Client {
            peer: self.peer.ip(),
            counted: self.peer.ip(),
            protocol: if self.is_http2 { "h2" } else { "http/1.1" },
            tls: self.is_tls(),
        }
    }

    /// Returns what pingora asks about the connection.
    pub(super) fn digest(&self) -> pingora::protocols::Digest {
        pingora::protocols::Digest {
            ssl_digest: self.tls.clone(),
            timing_digest: Vec::new(),
            proxy_digest: None,
            socket_digest: Some(self.socket()),
        }
    }
}

// === impl IO for ClientConnection ===

impl AsyncRead for ClientConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Transport::Tls(stream) => match ready!(Pin::new(stream).poll_read(cx, buf)) {
                // The client closed the connection without close_notify. No attacker can cut a
                // request that way: framing decides where it ends.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
                other => Poll::Ready(other),
            },
        }
    }
}

impl AsyncWrite for ClientConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let (is_full, passes) = this.cork.as_ref().map_or((false, true), |corked| {
            let is_long = match corked.held.is_empty() {
                true => buf.len() >= REST_WRITTEN_THROUGH_BYTES,
                false => buf.len() >= WRITTEN_THROUGH_BYTES,
            };
            let is_full = corked.held.len() >= CORKED_BYTES_MAX;
            (is_full, is_long && corked.is_for_one_response)
        });
        if is_full || passes {
            ready!(this.poll_release(cx))?;
        }
        if passes {
            let polled = this.transport.as_write().poll_write(cx, buf);
            return watched(&mut this.write_rate, polled, |written| *written, cx);
        }
        if let Some(corked) = &mut this.cork {
            corked.held.push(buf);
        }
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.cork.is_none() {
            let this = &mut *self;
            let polled = this.transport.as_write().poll_write_vectored(cx, bufs);
            return watched(&mut this.write_rate, polled, |written| *written, cx);
        }
        let mut written = 0;
        for buf in bufs {
            match self.as_mut().poll_write(cx, buf) {
                Poll::Ready(Ok(length)) => {
                    written += length;
                    // The rest of this slice comes before the next one.
                    if length < buf.len() {
                        break;
                    }
                }
                other if written == 0 => return other,
                _ => break,
            }
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self
            .cork
            .as_ref()
            .is_some_and(|corked| corked.cork.is_set())
        {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_release(cx))?;
        let this = &mut *self;
        let polled = this.transport.as_write().poll_flush(cx);
        watched(&mut this.write_rate, polled, |()| 0, cx)
    }

    /// Over TLS this sends `close_notify`.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_release(cx))?;
        let this = &mut *self;
        let polled = this.transport.as_write().poll_shutdown(cx);
        watched(&mut this.write_rate, polled, |()| 0, cx)
    }
}

#[async_trait]
impl Shutdown for ClientConnection {
    async fn shutdown(&mut self) {
        // The client may have closed the connection already.
        let _closed = AsyncWriteExt::shutdown(self).await;
    }
}

impl UniqueID for ClientConnection {
    fn id(&self) -> UniqueIDType {
        self.info.fd
    }
}

impl Ssl for ClientConnection {
    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.info.tls.clone()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.info.is_http2.then_some(ALPN::H2)
    }
}

impl GetTimingDigest for ClientConnection {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

impl GetProxyDigest for ClientConnection {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        None
    }
}

impl GetSocketDigest for ClientConnection {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        Some(self.info.socket())
    }
}

impl Peek for ClientConnection {}
