//! The relay: one HTTP/1.1 request, lent to the proxy path.
//!
//! pingora's HTTP/1.1 session reads from a stream until it has what it wants, and then
//! some: bytes of a pipelined next request end the connection, or the request with an
//! error. A [`SingleRequestStream`] is a stream that holds exactly one request. It yields the head that
//! the connection handler has read, then the body as the connection handler frames it, and then nothing: a read
//! waits, while what the client sends next gathers in the inbox for the handler. When
//! pingora gives the stream back, [`SingleRequestStream::into_parts`] returns the connection to the handler.
//!
//! After a `101` the relay is transparent: what follows is the other protocol's.
//!
//! A request body that stalls, or trickles below the minimum rate, ends in an error, and
//! so does a malformed chunk; [`SingleRequestStream::fault`] then says which status to answer with. When
//! the relay is dropped with the connection still in it, the connection is closed lingering.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use bytes::{Buf as _, BytesMut};
use pingora::protocols::raw_connect::ProxyDigest;
use pingora::protocols::tls::SslDigest;
use pingora::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    TimingDigest, UniqueID, UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};
use tokio_util::io::poll_read_buf;

use super::chunked::Scanner;
use super::connection::ClientConnection;
use super::head::Framing;
use super::limits::Limits;

/// How many bytes of the next requests wait in the inbox at most; then the client's own
/// send buffer fills.
const INBOX_BYTES_MAX: usize = 64 << 10;
/// How much is asked of the transport at once.
const READ_BYTES: usize = 8 << 10;

/// A stream that holds one request.
#[derive(Debug)]
pub(super) struct SingleRequestStream {
    /// `None` once the parts were taken.
    connection: Option<ClientConnection>,
    inbox: BytesMut,
    /// What of the head, at the front of the inbox, is still to be read.
    head: usize,
    body: Body,
    is_upgraded: AtomicBool,
    fault: AtomicU16,
    min_rate: MinRateGuard,
    /// The client has closed its side; what it asked for is still answered.
    is_half_closed: bool,
}

/// What of the body is still to be read.
#[derive(Clone, Copy, Debug)]
enum Body {
    Length(u64),
    Chunked(Scanner),
}

/// Watches over the arrival of a body.
#[derive(Debug)]
struct MinRateGuard {
    limits: Arc<Limits>,
    /// The end of the current window; made when a read first has to wait.
    window: Option<Pin<Box<Sleep>>>,
    bytes: u64,
}

/// What the connection handler gets back.
pub(super) struct Parts {
    pub(super) connection: ClientConnection,
    /// What the client has sent beyond the request.
    pub(super) inbox: BytesMut,
    /// Whether the whole request has been read. Otherwise the rest of its body is still to
    /// come, and nobody would read it.
    pub(super) is_read: bool,
    pub(super) is_half_closed: bool,
}

// === impl SingleRequestStream ===

impl SingleRequestStream {
    /// Lends a connection for the request whose head is the first `head` bytes of `inbox`.
    pub(super) fn new(
        mut connection: ClientConnection,
        inbox: BytesMut,
        head: usize,
        framing: Framing,
        limits: Arc<Limits>,
    ) -> Self {
        connection.hold();
        let body = match framing {
            Framing::None => Body::Length(0),
            Framing::Length(length) => Body::Length(length),
            Framing::Chunked => Body::Chunked(Scanner::new()),
        };
        Self {
            connection: Some(connection),
            inbox,
            head,
            body,
            is_upgraded: AtomicBool::new(false),
            fault: AtomicU16::new(0),
            min_rate: MinRateGuard {
                limits,
                window: None,
                bytes: 0,
            },
            is_half_closed: false,
        }
    }

    /// Makes the relay transparent: the response was `101 Switching Protocols`.
    pub(super) fn upgrade(&self) {
        self.is_upgraded.store(true, Ordering::Release);
    }

    /// Returns the status of the response that a read error of the body asks for.
    pub(super) fn fault(&self) -> Option<u16> {
        Some(self.fault.load(Ordering::Acquire)).filter(|status| *status > 0)
    }

    /// Gives the connection back; `None` when the connection now speaks another protocol.
    pub(super) fn into_parts(mut self) -> Option<Parts> {
        let is_read =
            self.head == 0 && self.body.is_done() && !self.is_upgraded.load(Ordering::Acquire);
        let mut connection = self.connection.take()?;
        connection.unhold();
        Some(Parts {
            connection,
            inbox: std::mem::take(&mut self.inbox),
            is_read,
            is_half_closed: self.is_half_closed,
        })
    }

    fn fail(&self, status: u16, kind: io::ErrorKind, why: &'static str) -> io::Error {
        self.fault.store(status, Ordering::Release);
        io::Error::new(kind, why)
    }

    fn connection(&mut self) -> io::Result<&mut ClientConnection> {
        self.connection
            .as_mut()
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Reads more into the inbox; 0 bytes are the end.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match self.connection.as_mut() {
            Some(connection) => poll_read_into(connection, &mut self.inbox, READ_BYTES, cx),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    /// After the request: lets what comes next gather, and waits.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.is_half_closed && self.inbox.len() < INBOX_BYTES_MAX {
            // RFC 9112 §9.6: a client that has closed its side can still be answered.
            self.is_half_closed = ready!(self.poll_fill(cx))? == 0;
        }
        Poll::Pending
    }

    fn poll_body(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.inbox.is_empty() {
            match self.poll_fill(cx) {
                Poll::Ready(Ok(0)) => {
                    let error = self.fail(
                        400,
                        io::ErrorKind::UnexpectedEof,
                        "the request body ended early",
                    );
                    return Poll::Ready(Err(error));
                }
                Poll::Ready(Ok(read)) => self.min_rate.bytes += read as u64,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    return match self.min_rate.poll_too_slow(cx) {
                        true => Poll::Ready(Err(self.fail(
                            408,
                            io::ErrorKind::TimedOut,
                            "the request body came too slowly",
                        ))),
                        false => Poll::Pending,
                    };
                }
            }
        }
        let offered = self.inbox.len().min(buf.remaining());
        let taken = match &mut self.body {
            Body::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(offered);
                *left -= taken as u64;
                taken
            }
            Body::Chunked(scanner) => match scanner.advance(&self.inbox[..offered]) {
                Ok(taken) => taken,
                Err(malformed) => {
                    let error = self.fail(
                        400,
                        io::ErrorKind::InvalidData,
                        "the chunked request body is malformed",
                    );
                    log::debug!("{malformed}");
                    return Poll::Ready(Err(error));
                }
            },
        };
        buf.put_slice(&self.inbox[..taken]);
        self.inbox.advance(taken);
        Poll::Ready(Ok(()))
    }
}

/// Reads once from `wire` into the spare room of `inbox`, making room for `bytes` first, and
/// returns how many bytes came; 0 are the end.
pub(super) fn poll_read_into(
    connection: &mut ClientConnection,
    inbox: &mut BytesMut,
    bytes: usize,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    inbox.reserve(bytes);
    poll_read_buf(Pin::new(connection), cx, inbox)
}

impl Drop for SingleRequestStream {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        // Outside a runtime there is nobody to linger; the socket is closed at once.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(connection.close_lingering());
        }
    }
}

// === impl Body ===

impl Body {
    fn is_done(self) -> bool {
        match self {
            Self::Length(left) => left == 0,
            Self::Chunked(scanner) => scanner.is_done(),
        }
    }
}

// === impl MinRateGuard ===

impl MinRateGuard {
    /// Called when a read has to wait: returns whether the window has ended with less than
    /// its share.
    fn poll_too_slow(&mut self, cx: &mut Context<'_>) -> bool {
        let length = self.limits.body;
        let window = self
            .window
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(length)));
        while window.as_mut().poll(cx).is_ready() {
            let share = u64::from(self.limits.body_rate_min) * length.as_secs().max(1);
            if self.bytes == 0 || self.bytes < share {
                return true;
            }
            self.bytes = 0;
            window.as_mut().reset(Instant::now() + length);
        }
        false
    }
}

// === impl IO for SingleRequestStream ===

impl AsyncRead for SingleRequestStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        if this.is_upgraded.load(Ordering::Acquire) {
            if this.inbox.is_empty() {
                return Pin::new(this.connection()?).poll_read(cx, buf);
            }
            let taken = this.inbox.len().min(buf.remaining());
            buf.put_slice(&this.inbox[..taken]);
            this.inbox.advance(taken);
            return Poll::Ready(Ok(()));
        }
        if this.head > 0 {
            let taken = this.head.min(buf.remaining());
            buf.put_slice(&this.inbox[..taken]);
            this.inbox.advance(taken);
            this.head -= taken;
            return Poll::Ready(Ok(()));
        }
        if this.body.is_done() {
            this.poll_idle(cx)
        } else {
            this.poll_body(cx, buf)
        }
    }
}

impl AsyncWrite for SingleRequestStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.get_mut().connection()?).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.get_mut().connection()?).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.get_mut().connection()?).poll_flush(cx)
    }

    /// pingora is done with the connection; [`Drop`] closes it, lingering.
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[async_trait]
impl Shutdown for SingleRequestStream {
    /// See [`AsyncWrite::poll_shutdown`] above.
    async fn shutdown(&mut self) {}
}

impl UniqueID for SingleRequestStream {
    fn id(&self) -> UniqueIDType {
        self.connection.as_ref().map_or(-1, UniqueID::id)
    }
}

impl Ssl for SingleRequestStream {
    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.connection.as_ref().and_then(Ssl::get_ssl_digest)
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        None
    }
}

impl GetTimingDigest for SingleRequestStream {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

impl GetProxyDigest for SingleRequestStream {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        None
    }
}

impl GetSocketDigest for SingleRequestStream {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.connection
            .as_ref()
            .and_then(GetSocketDigest::get_socket_digest)
    }
}

impl Peek for SingleRequestStream {}
