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

    /// Counts the written bytes of the response.
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;
    use crate::gateway::testing;

    const HEAD: &[u8] = b"POST / HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n";

    /// Makes the stream of a request; its head and these bytes have arrived.
    async fn stream_of(
        framing: Framing,
        arrived: &[u8],
    ) -> (SingleRequestStream, ReturnSlot<Parts>, TcpStream) {
        let gateway = testing::gateway();
        let (connection, _activity, client) = testing::connect(&gateway).await;
        let inbox = BytesMut::from(&[HEAD, arrived].concat()[..]);
        let (head, slot) = (HEAD.len(), ReturnSlot::new());
        let stream =
            SingleRequestStream::new(connection, inbox, head, framing, &gateway, slot.clone());
        (stream, slot, client)
    }

    /// Reads this many bytes in small pieces.
    async fn read(stream: &mut SingleRequestStream, length: usize) -> Vec<u8> {
        let mut got = Vec::new();
        while got.len() < length {
            let mut piece = vec![0; 7.min(length - got.len())];
            let read = stream.read(&mut piece).await.unwrap();
            assert!(read > 0, "the stream has ended");
            got.extend_from_slice(&piece[..read]);
        }
        got
    }

    /// Polls a read, which must wait, until `is_done`.
    async fn wait(
        stream: &mut SingleRequestStream,
        is_done: impl Fn(&SingleRequestStream) -> bool,
    ) {
        std::future::poll_fn(|cx| {
            let mut byte = [0; 1];
            let polled = Pin::new(&mut *stream).poll_read(cx, &mut ReadBuf::new(&mut byte));
            assert!(polled.is_pending(), "{polled:?}");
            match is_done(stream) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    #[tokio::test]
    async fn a_reader_gets_one_request_and_the_next_one_returns_with_the_connection() {
        for (framing, body) in [
            (Framing::None, &b""[..]),
            (Framing::Length(9), b"nine byte"),
            (Framing::Chunked, b"3\r\nabc\r\n0\r\n\r\n"),
        ] {
            let (mut stream, slot, _client) = stream_of(framing, &[body, b"GET"].concat()).await;
            let request = [HEAD, body].concat();
            assert_eq!(read(&mut stream, request.len()).await, request);
            wait(&mut stream, |_| true).await;
            assert_eq!(stream.fault(), None);
            drop(stream);
            let parts = slot.take().unwrap();
            assert_eq!(&parts.inbox[..], b"GET");
            assert!(parts.is_read && !parts.is_half_closed && !parts.is_answered);
            assert!(parts.handed_over.is_none());
        }
    }

    #[tokio::test]
    async fn a_request_that_was_not_read_whole_returns_as_such() {
        for (framing, length) in [
            (Framing::None, HEAD.len() - 1),
            (Framing::Length(2), HEAD.len()),
            (Framing::Length(2), HEAD.len() + 1),
            (Framing::Chunked, HEAD.len() + 1),
        ] {
            let (mut stream, slot, _client) = stream_of(framing, b"2\r\nab\r\n").await;
            read(&mut stream, length).await;
            drop(stream);
            assert!(!slot.take().unwrap().is_read, "{framing:?} {length}");
        }
    }

    #[tokio::test]
    async fn a_limited_number_of_bytes_is_stored_after_the_request() {
        let (mut stream, _slot, mut client) = stream_of(Framing::None, b"").await;
        read(&mut stream, HEAD.len()).await;
        let limit = INBOX_BYTES_MAX;
        let sending = tokio::spawn(async move { client.write_all(&vec![b'a'; 8 * limit]).await });
        wait(&mut stream, |stream| stream.inbox.len() >= limit).await;
        let stored = stream.inbox.len();
        // The buffer may double when it grows.
        assert!(stored <= 2 * limit, "{stored}");
        wait(&mut stream, |_| true).await;
        assert_eq!(stream.inbox.len(), stored);
        sending.abort();
    }

    #[tokio::test]
    async fn a_client_that_closes_its_side_still_gets_its_response() {
        let (mut stream, slot, mut client) = stream_of(Framing::None, b"").await;
        read(&mut stream, HEAD.len()).await;
        client.write_all(b"GET").await.unwrap();
        client.shutdown().await.unwrap();
        wait(&mut stream, |stream| stream.is_half_closed).await;
        stream.write_all(b"response").await.unwrap();
        stream.flush().await.unwrap();
        drop(stream);
        let parts = slot.take().unwrap();
        assert!(parts.is_read && parts.is_half_closed && parts.is_answered);
        assert_eq!(&parts.inbox[..], b"GET");
        drop(parts);
        let mut response = Vec::new();
        client.read_to_end(&mut response).await.unwrap();
        assert_eq!(response, b"response");
    }

    #[tokio::test]
    async fn a_response_that_is_held_back_is_not_counted_as_sent() {
        let (mut stream, slot, _client) = stream_of(Framing::None, b"").await;
        stream.write_all(b"response").await.unwrap();
        drop(stream);
        let parts = slot.take().unwrap();
        assert_eq!(parts.connection.held_back(), 8);
        assert!(!parts.is_answered);
    }

    #[tokio::test]
    async fn a_malformed_or_incomplete_body_is_a_400() {
        for (framing, arrived) in [
            (Framing::Length(5), &b"abcd"[..]),
            (Framing::Chunked, b"5\r\nabcd"),
            (Framing::Chunked, b"x\r\n"),
        ] {
            let (mut stream, slot, mut client) = stream_of(framing, arrived).await;
            client.shutdown().await.unwrap();
            let mut got = Vec::new();
            stream.read_to_end(&mut got).await.unwrap_err();
            assert_eq!(stream.fault(), Some(400));
            drop(stream);
            assert!(!slot.take().unwrap().is_read);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_is_a_408_and_a_silent_upstream_is_a_504() {
        for (framing, status) in [(Framing::Length(2), 408), (Framing::None, 504)] {
            let (mut stream, _slot, _client) = stream_of(framing, b"").await;
            read(&mut stream, HEAD.len()).await;
            let error = stream.read_u8().await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert_eq!(stream.fault(), Some(status));
        }
    }

    #[tokio::test]
    async fn all_bytes_pass_after_an_upgrade() {
        let (mut stream, slot, mut client) = stream_of(Framing::None, b"early").await;
        read(&mut stream, HEAD.len()).await;
        stream.upgrade();
        client.write_all(b"and late").await.unwrap();
        assert_eq!(read(&mut stream, 13).await, b"earlyand late");
        drop(stream);
        // The bytes belonged to another protocol: no other request can follow.
        assert!(!slot.take().unwrap().is_read);
    }

    #[tokio::test]
    async fn the_stream_has_the_properties_of_its_connection() {
        let (stream, slot, client) = stream_of(Framing::None, b"").await;
        let digest = stream.get_socket_digest().unwrap();
        let peer = digest.peer_addr().unwrap().as_inet().copied();
        assert_eq!(peer, client.local_addr().ok());
        assert!(stream.get_ssl_digest().is_none());
        let id = stream.id();
        drop(stream);
        assert_eq!(slot.take().unwrap().connection.id(), id);
    }
}
