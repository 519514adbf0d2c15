//! The client's side of an exchange: a connection of HTTP/1.1, or a stream of HTTP/2.

use std::io::{self, IoSlice, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode, Version};
use tokio::time::Sleep;

use super::request;
use crate::gateway::connection::ClientConnection;
use crate::gateway::http2_stream::{Http2Stream, is_of_connection};
use crate::gateway::single_request::{INBOX_BYTES_MAX, READ_BYTES, poll_read_into};
use crate::gateway::timers::Timers;
use crate::gateway::write_rate::WriteRate;

/// Most responses have at most this many fields.
const FIELDS_TYPICAL: usize = 16;

/// The side of the client, as an exchange uses it.
pub(in crate::gateway) trait Downstream: Send {
    /// Returns the bytes of the client. They begin with the head of the request in the form of
    /// HTTP/1.1.
    fn request(&self) -> &[u8];

    fn is_tls(&self) -> bool;

    /// Reads more content of the request. Returns how many bytes; 0 is the end.
    fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>>;

    /// Called while the upstream is waited for. Is ready when the wait has to end.
    fn poll_interrupted(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<Interrupted>;

    /// Sends an interim response.
    fn write_interim(&mut self, head: &[u8]) -> impl Future<Output = io::Result<()>> + Send;

    /// Sends the head of the final response, if it is not empty, and a piece of the content, as
    /// slowly as the client reads.
    fn write(
        &mut self,
        head: &[u8],
        piece: &[u8],
        framing: Framing,
    ) -> impl Future<Output = io::Result<()>> + Send;
}

/// How a piece of content is sent.
#[derive(Clone, Copy, Debug)]
pub(in crate::gateway) struct Framing {
    /// Whether a client of HTTP/1.1 gets chunks.
    pub(super) is_chunked: bool,
    /// Whether it is the last piece.
    pub(super) is_done: bool,
}

/// Why a wait for the upstream ends before the upstream has done anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Interrupted {
    Late,
    /// The connection of the client is broken, or the client has reset the stream.
    Gone,
}

/// A client of HTTP/1.1.
pub(in crate::gateway) struct Http1Downstream<'c> {
    pub(in crate::gateway) connection: &'c mut ClientConnection,
    /// The request, and what the client sends later.
    pub(in crate::gateway) inbox: &'c mut BytesMut,
    pub(in crate::gateway) is_half_closed: &'c mut bool,
    pub(in crate::gateway) timers: &'c mut Timers,
}

/// A stream of HTTP/2, whose request has no content.
pub(super) struct Http2Downstream<'s> {
    pub(super) stream: &'s mut Http2Stream,
    pub(super) write_rate: &'s mut WriteRate,
    /// The head of the request, in the form of HTTP/1.1.
    pub(super) head: &'s [u8],
    pub(super) is_tls: bool,
    /// Made when the upstream is first waited for. It fires at the deadline or earlier.
    pub(super) timer: &'s mut Option<Pin<Box<Sleep>>>,
}

impl Downstream for Http1Downstream<'_> {
    fn request(&self) -> &[u8] {
        self.inbox
    }

    fn is_tls(&self) -> bool {
        self.connection.info().is_tls()
    }

    fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        poll_read_into(self.connection, self.inbox, READ_BYTES, cx)
    }

    /// Reads what the client sends, up to a limit.
    fn poll_interrupted(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<Interrupted> {
        while !*self.is_half_closed
            && self.inbox.len() < INBOX_BYTES_MAX
            && self.connection.poll_readable(cx).is_ready()
        {
            match poll_read_into(self.connection, self.inbox, READ_BYTES, cx) {
                // RFC 9112 §9.6: a client that has closed its side still gets its response.
                Poll::Ready(Ok(read)) => *self.is_half_closed = read == 0,
                Poll::Ready(Err(_broken)) => return Poll::Ready(Interrupted::Gone),
                Poll::Pending => break,
            }
        }
        let late = self.timers.poll_late(deadline, cx);
        late.map(|()| Interrupted::Late)
    }

    async fn write_interim(&mut self, head: &[u8]) -> io::Result<()> {
        let mut slices = [IoSlice::new(head)];
        self.connection.write_all_vectored(&mut slices).await
    }

    async fn write(&mut self, head: &[u8], piece: &[u8], framing: Framing) -> io::Result<()> {
        // 16 digits, and the end of the line.
        let mut size = [0; 18];
        let (size, after): (&[u8], &[u8]) = match (framing.is_chunked, piece, framing.is_done) {
            (false, ..) | (true, [], false) => (b"", b""),
            (true, [], true) => (b"", b"0\r\n\r\n"),
            (true, piece, is_done) => {
                let mut rest = &mut size[..];
                write!(rest, "{:x}\r\n", piece.len())?;
                let left = rest.len();
                let after: &[u8] = if is_done { b"\r\n0\r\n\r\n" } else { b"\r\n" };
                (&size[..18 - left], after)
            }
        };
        if head.is_empty() && piece.is_empty() && after.is_empty() {
            return Ok(());
        }
        let mut slices = [head, size, piece, after].map(IoSlice::new);
        self.connection.write_all_vectored(&mut slices).await
    }
}

impl Downstream for Http2Downstream<'_> {
    fn request(&self) -> &[u8] {
        self.head
    }

    fn is_tls(&self) -> bool {
        self.is_tls
    }

    fn poll_content(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(0))
    }

    fn poll_interrupted(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<Interrupted> {
        if self.stream.poll_reset(cx).is_ready() {
            return Poll::Ready(Interrupted::Gone);
        }
        let deadline = tokio::time::Instant::from_std(deadline);
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        // The timer may still have the earlier deadline of a previous stream. It is set again only
        // when it fires, so most streams do not change the timer wheel.
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        while timer.as_mut().poll(cx).is_ready() {
            if tokio::time::Instant::now() >= deadline {
                return Poll::Ready(Interrupted::Late);
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }

    async fn write_interim(&mut self, head: &[u8]) -> io::Result<()> {
        self.stream.send_interim(response_of(head)?);
        Ok(())
    }

    async fn write(&mut self, head: &[u8], piece: &[u8], framing: Framing) -> io::Result<()> {
        if !head.is_empty() {
            let is_end = framing.is_done && piece.is_empty();
            self.stream.send_head(response_of(head)?, is_end)?;
        }
        let piece = Bytes::copy_from_slice(piece);
        self.stream
            .send(piece, framing.is_done, self.write_rate)
            .await
    }
}

/// Returns the response of a head in the form of HTTP/1.1, without the fields that HTTP/2 does not
/// have. Its values share one copy of the head.
fn response_of(head: &[u8]) -> io::Result<Response<()>> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let from_http = |error: http::Error| io::Error::new(io::ErrorKind::InvalidData, error);
    let end = memchr::memchr(b'\n', head).ok_or_else(invalid)?;
    let head = Bytes::copy_from_slice(head);
    let status = head.get(9..12).ok_or_else(invalid)?;
    let mut response = Response::new(());
    *response.status_mut() =
        StatusCode::from_bytes(status).map_err(|error| from_http(error.into()))?;
    *response.version_mut() = Version::HTTP_2;
    let mut headers = HeaderMap::with_capacity(FIELDS_TYPICAL);
    for (name, value) in request::lines(&head[end + 1..]) {
        let name = HeaderName::from_bytes(name).map_err(|error| from_http(error.into()))?;
        if is_of_connection(&name) {
            continue;
        }
        let value = HeaderValue::from_maybe_shared(head.slice_ref(value));
        headers.append(name, value.map_err(|error| from_http(error.into()))?);
    }
    *response.headers_mut() = headers;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;
    use crate::gateway::testing;

    const LONG: Duration = Duration::from_secs(600);

    /// The parts of a downstream.
    struct Parts {
        connection: ClientConnection,
        inbox: BytesMut,
        is_half_closed: bool,
        timers: Timers,
    }

    impl Parts {
        async fn new(arrived: &[u8]) -> (Self, TcpStream) {
            let (connection, activity, client) = testing::connect(&testing::gateway()).await;
            let parts = Self {
                connection,
                inbox: BytesMut::from(arrived),
                is_half_closed: false,
                timers: Timers::new(&activity),
            };
            (parts, client)
        }

        fn downstream(&mut self) -> Http1Downstream<'_> {
            Http1Downstream {
                connection: &mut self.connection,
                inbox: &mut self.inbox,
                is_half_closed: &mut self.is_half_closed,
                timers: &mut self.timers,
            }
        }

        /// Waits for the upstream until the wait is interrupted, or until `is_done`.
        async fn wait(
            &mut self,
            limit: Duration,
            is_done: impl Fn(&Self) -> bool,
        ) -> Option<Interrupted> {
            let deadline = Instant::now() + limit;
            std::future::poll_fn(
                |cx| match self.downstream().poll_interrupted(deadline, cx) {
                    Poll::Ready(interrupted) => Poll::Ready(Some(interrupted)),
                    Poll::Pending if is_done(self) => Poll::Ready(None),
                    Poll::Pending => Poll::Pending,
                },
            )
            .await
        }
    }

    #[tokio::test]
    async fn a_client_of_http_1_gets_whole_chunks() {
        let (mut parts, mut client) = Parts::new(b"").await;
        let mut expected = Vec::new();
        for (is_chunked, head, piece, is_done, bytes) in [
            (false, "head", "piece", true, "headpiece"),
            (false, "", "piece", false, "piece"),
            (false, "", "", true, ""),
            (true, "head", "", false, "head"),
            (true, "head", "", true, "head0\r\n\r\n"),
            (true, "", "0123456789", false, "a\r\n0123456789\r\n"),
            (true, "", "last", true, "4\r\nlast\r\n0\r\n\r\n"),
            (true, "", "", false, ""),
            (true, "", "", true, "0\r\n\r\n"),
        ] {
            let framing = Framing {
                is_chunked,
                is_done,
            };
            let mut downstream = parts.downstream();
            let writing = downstream.write(head.as_bytes(), piece.as_bytes(), framing);
            writing.await.unwrap();
            expected.extend_from_slice(bytes.as_bytes());
        }
        let interim = b"HTTP/1.1 103 Early\r\n\r\n";
        parts.downstream().write_interim(interim).await.unwrap();
        expected.extend_from_slice(interim);
        drop(parts);
        let mut got = Vec::new();
        client.read_to_end(&mut got).await.unwrap();
        assert_eq!(String::from_utf8(got), String::from_utf8(expected));
    }

    #[tokio::test]
    async fn a_client_may_send_more_and_close_its_side_while_the_upstream_is_awaited() {
        let (mut parts, mut client) = Parts::new(b"request").await;
        client.write_all(b"next").await.unwrap();
        let has_next = |parts: &Parts| parts.inbox.ends_with(b"next");
        assert_eq!(parts.wait(LONG, has_next).await, None);
        assert!(!parts.is_half_closed);
        client.shutdown().await.unwrap();
        assert_eq!(parts.wait(LONG, |parts| parts.is_half_closed).await, None);
        assert_eq!(parts.downstream().request(), b"requestnext");
        assert!(!parts.downstream().is_tls());
    }

    #[tokio::test]
    async fn a_client_that_sends_too_much_is_not_read_while_the_upstream_is_awaited() {
        let stored = vec![b'a'; INBOX_BYTES_MAX];
        let (mut parts, mut client) = Parts::new(&stored).await;
        client.write_all(b"more").await.unwrap();
        std::future::poll_fn(|cx| parts.connection.poll_readable(cx)).await;
        assert_eq!(parts.wait(LONG, |_| true).await, None);
        assert_eq!(parts.inbox.len(), INBOX_BYTES_MAX);
    }

    #[tokio::test]
    async fn a_wait_for_the_upstream_ends_at_its_deadline_or_with_the_client() {
        let (mut parts, client) = Parts::new(b"").await;
        let ended = parts.wait(Duration::from_millis(1), |_| false).await;
        assert_eq!(ended, Some(Interrupted::Late));
        let linger = socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO));
        linger.unwrap();
        drop(client);
        assert_eq!(parts.wait(LONG, |_| false).await, Some(Interrupted::Gone));
    }

    #[tokio::test]
    async fn the_content_of_a_request_is_read_behind_its_head() {
        let (mut parts, mut client) = Parts::new(b"head").await;
        client.write_all(b"content").await.unwrap();
        client.shutdown().await.unwrap();
        while std::future::poll_fn(|cx| parts.downstream().poll_content(cx))
            .await
            .unwrap()
            > 0
        {}
        assert_eq!(&parts.inbox[..], b"headcontent");
    }

    #[test]
    fn a_head_becomes_a_response_of_http_2_without_the_fields_of_the_connection() {
        let head = b"HTTP/1.1 204 No Content\r\nX-A: b\r\nConnection: close\r\nx-a:  c \r\n\r\n";
        let response = response_of(head).unwrap();
        assert_eq!(response.status(), StatusCode::NO_CONTENT);
        assert_eq!(response.version(), Version::HTTP_2);
        let values: Vec<_> = response.headers().get_all("x-a").iter().collect();
        assert_eq!(values, ["b", "c"]);
        assert_eq!(response.headers().len(), 2);
        for head in [
            &b"HTTP/1.1 204 No Content"[..],
            b"HTTP/1.1\n",
            b"HTTP/1.1 2x4 No\r\n\r\n",
            b"HTTP/1.1 204 No\r\na b: c\r\n\r\n",
        ] {
            let error = response_of(head).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }
}
