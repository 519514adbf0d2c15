//! One HTTP/1.1 request as a stream for pingora.
//!
//! pingora's HTTP/1.1 session may read more than one request. Then the bytes of a pipelined next
//! request end the connection, or end the request with an error. A [`SingleRequestStream`] holds
//! exactly one request. A reader gets the head, then the body. After that a read waits, and the
//! inbox stores the bytes that the client sends next. When pingora drops the stream, at the end of
//! the request or because of a panic, the connection and the inbox return to its [`ReturnSlot`].
//!
//! After a `101` response all bytes pass through: they belong to the other protocol.
//!
//! A request body that stops, that is slower than the minimum rate or that has a malformed chunk
//! ends with an error, and so does the silence of the upstream. [`SingleRequestStream::fault`]
//! then returns the status of the response.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Buf as _, BytesMut};
use pingora::protocols::raw_connect::ProxyDigest;
use pingora::protocols::tls::SslDigest;
use pingora::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    TimingDigest, UniqueID, UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::io::poll_read_buf;

use super::Gateway;
use super::body_rate::BodyRate;
use super::chunked::Scanner;
use super::connection::ClientConnection;
use super::file_response::FileResponse;
use super::head::Framing;
use super::return_slot::ReturnSlot;
use super::silence::Silence;

/// How many bytes of later requests the inbox stores. More bytes stay in the client's send
/// buffer.
pub(super) const INBOX_BYTES_MAX: usize = 64 << 10;
/// How many bytes one read gets.
pub(super) const READ_BYTES: usize = 8 << 10;

/// A stream that holds one request.
#[derive(Debug)]
pub(super) struct SingleRequestStream {
    /// `None` only while the stream is dropped.
    connection: Option<ClientConnection>,
    inbox: BytesMut,
    /// How many bytes of the head, at the front of the inbox, the reader has not read yet.
    head: usize,
    body: Body,
    is_upgraded: AtomicBool,
    fault: AtomicU16,
    rate: BodyRate,
    silence: Silence,
    /// Whether the client has closed its side; it still gets its response.
    is_half_closed: bool,
    /// How many bytes of the response were written.
    written: usize,
    /// The response that is sent after pingora has finished.
    handed_over: Mutex<Option<Box<FileResponse>>>,
    slot: ReturnSlot<Parts>,
}

/// The part of the body that the reader has not read yet.
#[derive(Clone, Copy, Debug)]
enum Body {
    Length(u64),
    Chunked(Scanner),
}

/// The parts that the connection handler gets back.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) connection: ClientConnection,
    /// The bytes that the client has sent after the request.
    pub(super) inbox: BytesMut,
    /// Whether the whole request has been read. If not, the connection cannot be used for another
    /// request, because the rest of the body is still to come.
    pub(super) is_read: bool,
    pub(super) is_half_closed: bool,
    /// Whether the client may have a part of the response. Bytes that are still held back do not
    /// count.
    pub(super) is_answered: bool,
    /// The response that is still to be sent.
    pub(super) handed_over: Option<Box<FileResponse>>,
}

// === impl SingleRequestStream ===

impl SingleRequestStream {
    /// Makes the stream of the request whose head is the first `head` bytes of `inbox`.
    pub(super) fn new(
        mut connection: ClientConnection,
        inbox: BytesMut,
        head: usize,
        framing: Framing,
        gateway: &Gateway,
        slot: ReturnSlot<Parts>,
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
            rate: BodyRate::new(Arc::clone(&gateway.limits), gateway.drain.clone()),
            silence: Silence::new(gateway.upstream.read),
            is_half_closed: false,
            written: 0,
            handed_over: Mutex::default(),
            slot,
        }
    }

    /// Lets all bytes through from now on: the response was `101 Switching Protocols`.
    pub(super) fn upgrade(&self) {
        self.is_upgraded.store(true, Ordering::Release);
    }

    /// Lets the upstream be silent for this long.
    pub(super) fn allow_silence(&self, limit: Duration) {
        self.silence.allow(limit);
    }

    /// Returns the status of the response after an error in the body, or after the silence of
    /// the upstream.
    pub(super) fn fault(&self) -> Option<u16> {
        Some(self.fault.load(Ordering::Acquire)).filter(|status| *status > 0)
    }

    /// Keeps a response that is sent after pingora has finished.
    pub(super) fn hand_over(&self, response: FileResponse) {
        *self.handed_over() = Some(Box::new(response));
    }

    fn handed_over(&self) -> MutexGuard<'_, Option<Box<FileResponse>>> {
        let locked = self.handed_over.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
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

    /// Counts what was written of the response.
    fn count(&mut self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(written)) = &polled {
            self.written = self.written.saturating_add(*written);
        }
        polled
    }

    /// Reads more bytes into the inbox; 0 bytes mean that the client has closed its side.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match self.connection.as_mut() {
            Some(connection) => poll_read_into(connection, &mut self.inbox, READ_BYTES, cx),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    /// Waits after the request, and reads later requests into the inbox.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.is_half_closed && self.inbox.len() < INBOX_BYTES_MAX {
            match self.poll_fill(cx) {
                // RFC 9112 §9.6: a client that has closed its side still gets its response.
                Poll::Ready(read) => self.is_half_closed = read? == 0,
                Poll::Pending => break,
            }
        }
        match self.silence.poll_too_long(cx) {
            true => Poll::Ready(Err(self.fail(
                504,
                io::ErrorKind::TimedOut,
                "the upstream was silent for too long",
            ))),
            false => Poll::Pending,
        }
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
                Poll::Ready(Ok(read)) => self.rate.add(read),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    return match self.rate.poll_too_slow(cx) {
                        true => Poll::Ready(Err(self.fail(
                            408,
                            io::ErrorKind::TimedOut,
                            "the request body arrived too slowly",
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

/// Reads once into the inbox, after it has made room for at least `bytes`.
///
/// Returns how many bytes were read; 0 means the end.
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
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        let is_answered = self.written > connection.held_back();
        connection.unhold();
        self.slot.put(Parts {
            connection,
            inbox: std::mem::take(&mut self.inbox),
            is_read: self.head == 0
                && self.body.is_done()
                && !self.is_upgraded.load(Ordering::Acquire),
            is_half_closed: self.is_half_closed,
            is_answered,
            handed_over: self.handed_over().take(),
        });
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
        let this = self.get_mut();
        this.silence.note_activity();
        let polled = Pin::new(this.connection()?).poll_write(cx, buf);
        this.count(polled)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.silence.note_activity();
        let polled = Pin::new(this.connection()?).poll_write_vectored(cx, bufs);
        this.count(polled)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.get_mut().connection()?).poll_flush(cx)
    }

    /// Does nothing: [`Drop`] closes the connection.
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
