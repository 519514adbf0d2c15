//! One HTTP/2 request, and its response.
//!
//! The connection's loop reads the head of an [`Http2Stream`] and responds to it, if the fast path
//! can. For the proxy path it becomes a [`StreamSession`], which pingora drives. pingora has a
//! session of its own for HTTP/2, but that one
//!
//! * waits for a request body without a timeout,
//! * drops the rest of a request body with the response. The library then resets the stream, and
//!   some clients, for example curl 7.88, lose the response,
//! * drops interim responses.
//!
//! Sources: RFC 9113 §5.1 (states of a stream), §8.1 (a response before the end of the request),
//! §8.2.2 (fields that HTTP/2 does not have); RFC 9110 §15.2 (interim responses).

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::{self, HeaderName};
use http::{HeaderMap, Request, Response, StatusCode};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::protocols::Digest;
use pingora::protocols::http::HttpTask;
use pingora::protocols::http::body_buffer::FixedBuffer;
use pingora::protocols::http::custom::CustomMessageWrite;
use pingora::protocols::http::custom::server::Session;
use pingora::protocols::http::date::get_cached_date;
use pingora::protocols::l4::socket::SocketAddr;
use pingora::{Error, ErrorType, OrErr as _, Result};

use super::Gateway;
use super::body_rate::BodyRate;
use super::file_response::FileResponse;
use super::http2;
use super::return_slot::{ReturnSlot, Returned};
use super::silence::{SILENT, Silence};
use super::write_rate::WriteRate;

/// How much of a request body is still read and dropped after its response.
const LATE_BODY_BYTES_MAX: usize = 4 << 20;
/// How long such a body is read.
const LATE_BODY_TIME_MAX: Duration = Duration::from_secs(60);
/// How much of a request body is held for a second attempt at another address of the upstream.
const RETRY_BYTES_MAX: usize = 64 << 10;
/// How many bytes HTTP/2 adds for each field when it counts the size of a head (RFC 9113 §6.5.2).
const FIELD_OVERHEAD: usize = 32;

/// RFC 9113 §8.2.2: fields that describe an HTTP/1.1 connection.
const CONNECTION_FIELDS: [HeaderName; 5] = [
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

type Messages = Box<dyn futures_core::Stream<Item = Result<Bytes>> + Unpin + Send + Sync>;

/// A request on a stream, and the handle for its response.
pub(super) struct Http2Stream {
    header: RequestHeader,
    body: RecvStream,
    /// The part of the body that was read before the path was chosen.
    early: Option<Bytes>,
    respond: SendResponse<Bytes>,
    /// Set once the response header is sent.
    writer: Option<SendStream<Bytes>>,
    /// Whether the end of the response is sent.
    is_ended: bool,
    /// Whether a reset of the stream may be one of the gateway.
    may_be_reset: bool,
    digest: Arc<Digest>,
}

/// A stream on the proxy path.
pub(super) struct StreamSession {
    stream: Returned<Http2Stream>,
    response: Option<Box<ResponseHeader>>,
    body_read: usize,
    body_sent: usize,
    /// The part of the body that was read, up to the limit.
    retry: Option<FixedBuffer>,
    rate: BodyRate,
    silence: Silence,
    /// How long a stream of events may be silent.
    events_silence: Duration,
    write_rate: WriteRate,
}

// === impl Http2Stream ===

impl Http2Stream {
    pub(super) fn new(
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
        digest: Arc<Digest>,
    ) -> Self {
        let (header, body) = request.into_parts();
        Self {
            header: header.into(),
            body,
            early: None,
            respond,
            writer: None,
            is_ended: false,
            may_be_reset: false,
            digest,
        }
    }

    pub(super) fn req_header(&self) -> &RequestHeader {
        &self.header
    }

    /// Returns how much memory the head needs, as HTTP/2 counts it (RFC 9113 §6.5.2).
    pub(super) fn head_bytes(&self) -> usize {
        let fields = self.header.headers.iter();
        let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + FIELD_OVERHEAD);
        let target = self.header.uri.path_and_query();
        let target = target.map_or(0, |target| target.as_str().len());
        target + fields.sum::<usize>()
    }

    /// Returns whether the request body has ended.
    pub(super) fn is_body_done(&self) -> bool {
        self.early.is_none() && self.body.is_end_stream()
    }

    /// Reads what has arrived of the body, without waiting. Returns the body if that is all of it,
    /// and has this length. It stays there until [`Self::drop_early_body`] drops it.
    ///
    /// The connection has read its socket until there was nothing more before it gave this stream,
    /// so a body that came with its head is here.
    pub(super) fn whole_body(&mut self, length: usize) -> Option<Bytes> {
        // Another task waits for the rest, with a waker of its own.
        let mut cx = Context::from_waker(Waker::noop());
        let mut read = BytesMut::new();
        while let Poll::Ready(Some(Ok(data))) = self.body.poll_data(&mut cx) {
            read.extend_from_slice(&data);
        }
        if read.is_empty() {
            return None;
        }
        let read = read.freeze();
        self.early = Some(read.clone());
        (self.body.is_end_stream() && read.len() == length).then_some(read)
    }

    /// Drops the body that [`Self::whole_body`] has read, after it was used.
    pub(super) fn drop_early_body(&mut self) {
        if let Some(read) = self.early.take() {
            self.release(read.len());
        }
    }

    /// Lets the client send as many bytes again.
    fn release(&mut self, length: usize) {
        // This fails if the stream was reset. The next read shows it.
        let _reset = self.body.flow_control().release_capacity(length);
    }

    pub(super) fn write_response_header(
        &mut self,
        mut header: Box<ResponseHeader>,
        is_end: bool,
    ) -> Result<()> {
        if self.writer.is_some() {
            return Ok(());
        }
        header.insert_header(header::DATE, get_cached_date())?;
        let mut response = Response::from_parts((*header).into(), ());
        remove_connection_fields(response.headers_mut());
        self.send_head(response, is_end)
            .or_err(ErrorType::WriteError, "send the header of a response")
            .map_err(Error::into_down)
    }

    /// Sends the head of a response of the gateway, whose fields HTTP/2 has, with `Date`.
    ///
    /// # Errors
    ///
    /// When the client has reset the stream.
    pub(super) fn send_own_head(
        &mut self,
        status: u16,
        mut fields: HeaderMap,
        is_end: bool,
    ) -> io::Result<()> {
        fields.insert(header::DATE, get_cached_date());
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::from_u16(status).expect("our status codes are valid");
        *response.headers_mut() = fields;
        self.send_head(response, is_end)
    }

    fn write_interim(&mut self, header: &mut ResponseHeader) {
        let mut response = Response::from_parts(header.as_owned_parts(), ());
        remove_connection_fields(response.headers_mut());
        self.send_interim(response);
    }

    /// Sends an interim response, which has only fields that HTTP/2 has. The client may ignore it,
    /// so a failure to send it is ignored too.
    pub(super) fn send_interim(&mut self, response: Response<()>) {
        if self.writer.is_none() {
            let _reset = self.respond.send_informational(response);
        }
    }

    /// Sends the head of the response, which has only fields that HTTP/2 has.
    ///
    /// # Errors
    ///
    /// When the client has reset the stream.
    pub(super) fn send_head(&mut self, response: Response<()>, is_end: bool) -> io::Result<()> {
        let sent = self.respond.send_response(response, is_end);
        let writer = sent.map_err(|_reset| io::Error::from(io::ErrorKind::ConnectionReset))?;
        self.writer = Some(writer);
        self.is_ended = is_end;
        Ok(())
    }

    /// Sends a piece of the response's content, after its head, as slowly as the client reads.
    ///
    /// # Errors
    ///
    /// When the client is too slow, or has reset the stream.
    pub(super) async fn send(
        &mut self,
        piece: Bytes,
        is_end: bool,
        write_rate: &mut WriteRate,
    ) -> io::Result<()> {
        if self.is_ended {
            return Ok(());
        }
        if piece.is_empty() {
            let ended = if is_end { self.end() } else { Ok(()) };
            return ended.map_err(|_reset| io::ErrorKind::ConnectionReset.into());
        }
        let Some(writer) = &mut self.writer else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        http2::send(writer, piece, is_end, write_rate).await?;
        self.is_ended = is_end;
        Ok(())
    }

    /// Is ready when the client has reset the stream.
    pub(super) fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let reset = match &mut self.writer {
            Some(writer) => writer.poll_reset(cx),
            None => self.respond.poll_reset(cx),
        };
        reset.map(drop)
    }

    pub(super) fn take_response_body_writer(&mut self) -> Option<SendStream<Bytes>> {
        self.may_be_reset = true;
        self.writer.take()
    }

    /// Returns whether the client has reset the stream before the end of the response.
    pub(super) fn is_reset_by_client(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        !self.is_ended && !self.may_be_reset && self.poll_reset(&mut cx).is_ready()
    }

    pub(super) fn shutdown_with_reason(&mut self, reason: Reason) {
        if !self.is_ended {
            self.may_be_reset = !self.is_reset_by_client();
            self.respond.send_reset(reason);
        }
    }

    /// Sends the end of the response.
    fn end(&mut self) -> Result<()> {
        if self.is_ended {
            return Ok(());
        }
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        self.is_ended = true;
        writer
            .send_data(Bytes::new(), true)
            .or_err(ErrorType::WriteError, "send the end of a response")
            .map_err(Error::into_down)
    }

    /// Returns the response that pingora has chosen and not sent.
    pub(super) fn take_handed_over(&mut self) -> Option<FileResponse> {
        self.header.extensions_mut().remove()
    }

    /// Returns whether the response has begun.
    pub(super) fn is_answered(&self) -> bool {
        self.writer.is_some() || self.is_ended
    }

    /// Makes the session for pingora. The stream returns to the slot when the session is dropped.
    pub(super) fn into_session(self, gateway: &Gateway, slot: ReturnSlot<Self>) -> StreamSession {
        StreamSession {
            stream: Returned::new(self, slot),
            response: None,
            body_read: 0,
            body_sent: 0,
            retry: None,
            rate: BodyRate::new(Arc::clone(&gateway.limits), gateway.drain.clone()),
            silence: Silence::new(gateway.upstream.read),
            events_silence: gateway.upstream.upgraded,
            write_rate: WriteRate::of_stream(&gateway.limits, &gateway.metrics),
        }
    }

    /// Reads the rest of the request body and drops it, so that the stream ends without a reset.
    pub(super) async fn discard_body(self, gateway: &Gateway) {
        let mut session = self.into_session(gateway, ReturnSlot::new());
        session.discard_body().await;
    }
}

/// Returns whether HTTP/2 does not have a field.
pub(super) fn is_of_connection(name: &HeaderName) -> bool {
    CONNECTION_FIELDS.contains(name)
}

/// Removes the fields that HTTP/2 does not have.
fn remove_connection_fields(headers: &mut HeaderMap) {
    for name in &CONNECTION_FIELDS {
        headers.remove(name);
    }
}

// === impl StreamSession ===

impl StreamSession {
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>>> {
        let arrived = match self.stream.early.take() {
            Some(early) => Poll::Ready(Some(Ok(early))),
            None => self.stream.body.poll_data(cx),
        };
        let data = match arrived {
            Poll::Pending if self.rate.poll_too_slow(cx) => {
                let why = "the request body came too slowly";
                let error = Error::explain(ErrorType::ReadTimedout, why);
                return Poll::Ready(Err(error.into_down()));
            }
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => return Poll::Ready(Ok(None)),
            Poll::Ready(Some(Err(error))) => {
                let error = Error::because(ErrorType::ReadError, "read a request body", error);
                return Poll::Ready(Err(error.into_down()));
            }
            Poll::Ready(Some(Ok(data))) => data,
        };
        self.body_read += data.len();
        self.rate.add(data.len());
        if let Some(retry) = &mut self.retry {
            retry.write_to_buffer(&data);
        }
        self.stream.release(data.len());
        Poll::Ready(Ok(Some(data)))
    }

    /// Waits until the client resets the stream, or the upstream has been silent for too long.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Box<Error>> {
        if self.stream.poll_reset(cx).is_ready() {
            let why = "the client has ended the stream";
            return Poll::Ready(Error::explain(ErrorType::ConnectionClosed, why).into_down());
        }
        match self.silence.poll_too_long(cx) {
            true => {
                let why = "the upstream was silent for too long";
                Poll::Ready(Error::explain(SILENT, why))
            }
            false => Poll::Pending,
        }
    }

    async fn discard_body(&mut self) {
        if self.stream.is_body_done() {
            return;
        }
        let reading = async {
            let mut left = LATE_BODY_BYTES_MAX;
            while left > 0 && !self.stream.is_body_done() {
                match std::future::poll_fn(|cx| self.poll_body(cx)).await {
                    Ok(Some(data)) => left = left.saturating_sub(data.len()),
                    Ok(None) | Err(_) => return,
                }
            }
        };
        // After the timeout the stream is reset.
        let _elapsed = tokio::time::timeout(LATE_BODY_TIME_MAX, reading).await;
    }
}

#[async_trait]
impl Session for StreamSession {
    fn req_header(&self) -> &RequestHeader {
        &self.stream.header
    }

    fn req_header_mut(&mut self) -> &mut RequestHeader {
        &mut self.stream.header
    }

    async fn read_body_bytes(&mut self) -> Result<Option<Bytes>> {
        std::future::poll_fn(|cx| self.poll_body(cx)).await
    }

    async fn drain_request_body(&mut self) -> Result<()> {
        self.discard_body().await;
        Ok(())
    }

    async fn write_response_header(
        &mut self,
        mut header: Box<ResponseHeader>,
        end: bool,
    ) -> Result<()> {
        self.silence.note_activity();
        if header.status.is_informational() {
            self.stream.write_interim(&mut header);
            return Ok(());
        }
        if self.response.is_some() {
            return Ok(());
        }
        if is_event_stream(&header) {
            self.silence.allow(self.events_silence);
        }
        self.response = Some(header.clone());
        self.stream.write_response_header(header, end)
    }

    async fn write_response_header_ref(
        &mut self,
        header: &ResponseHeader,
        end: bool,
    ) -> Result<()> {
        Session::write_response_header(self, Box::new(header.clone()), end).await
    }

    /// Writes a body as the client's window opens. The client must read as fast as [`WriteRate`]
    /// requires.
    async fn write_body(&mut self, mut data: Bytes, end: bool) -> Result<()> {
        let stream = &mut *self.stream;
        if stream.is_ended {
            return Ok(());
        }
        let Some(writer) = &mut stream.writer else {
            let why = "write a body before its header";
            return Err(Error::explain(ErrorType::InternalError, why));
        };
        let failed = |error: h2::Error| {
            Error::because(ErrorType::WriteError, "send a response body", error).into_down()
        };
        self.body_sent += data.len();
        while !data.is_empty() {
            let capacity = self.write_rate.capacity(writer, data.len()).await;
            let capacity = capacity.map_err(|error| {
                let kind = match error.kind() {
                    std::io::ErrorKind::TimedOut => ErrorType::WriteTimedout,
                    _ => ErrorType::ConnectionClosed,
                };
                Error::because(kind, "send a response body", error).into_down()
            })?;
            let piece = data.split_to(capacity.min(data.len()));
            let length = piece.len();
            let is_last = end && data.is_empty();
            writer.send_data(piece, is_last).map_err(failed)?;
            self.write_rate.took(length);
            stream.is_ended = is_last;
        }
        self.silence.note_activity();
        match end {
            true => self.stream.end(),
            false => Ok(()),
        }
    }

    async fn write_trailers(&mut self, trailers: HeaderMap) -> Result<()> {
        let stream = &mut *self.stream;
        if stream.is_ended {
            return Ok(());
        }
        let Some(writer) = &mut stream.writer else {
            let why = "write trailers before a header";
            return Err(Error::explain(ErrorType::InternalError, why));
        };
        stream.is_ended = true;
        writer
            .send_trailers(trailers)
            .or_err(ErrorType::WriteError, "send trailers")
            .map_err(Error::into_down)
    }

    async fn response_duplex_vec(&mut self, tasks: Vec<HttpTask>) -> Result<bool> {
        let mut is_end = false;
        for task in tasks {
            is_end |= task.is_end();
            match task {
                HttpTask::Header(header, end) => {
                    Session::write_response_header(self, header, end).await?;
                }
                HttpTask::Body(Some(data), end) => self.write_body(data, end).await?,
                HttpTask::Body(None, _) | HttpTask::Trailer(None) | HttpTask::Done => {}
                HttpTask::Trailer(Some(trailers)) => self.write_trailers(*trailers).await?,
                HttpTask::UpgradedBody(..) => {
                    let why = "upgrade an HTTP/2 stream";
                    return Err(Error::explain(ErrorType::InternalError, why));
                }
                HttpTask::Failed(error) => return Err(error),
            }
        }
        if is_end {
            self.stream.end()?;
        }
        Ok(is_end)
    }

    /// Does nothing: the limits of the gateway hold.
    fn set_read_timeout(&mut self, _timeout: Option<Duration>) {}

    fn get_read_timeout(&self) -> Option<Duration> {
        None
    }

    /// Does nothing: [`WriteRate`] limits how long a write may take.
    fn set_write_timeout(&mut self, _timeout: Option<Duration>) {}

    fn get_write_timeout(&self) -> Option<Duration> {
        None
    }

    /// Does nothing: the minimum rate limits how long a body is read.
    fn set_total_drain_timeout(&mut self, _timeout: Option<Duration>) {}

    fn get_total_drain_timeout(&self) -> Option<Duration> {
        None
    }

    fn request_summary(&self) -> String {
        let header = &self.stream.header;
        format!("{} {}", header.method, header.uri)
    }

    fn response_written(&self) -> Option<&ResponseHeader> {
        self.response.as_deref()
    }

    async fn shutdown(&mut self, _code: u32, _ctx: &str) {
        self.stream.shutdown_with_reason(Reason::INTERNAL_ERROR);
    }

    fn is_body_done(&mut self) -> bool {
        self.is_body_empty() || self.stream.is_body_done()
    }

    /// Ends the response, then reads the rest of the request.
    async fn finish(&mut self) -> Result<()> {
        self.stream.end()?;
        if self.stream.is_ended {
            self.discard_body().await;
        }
        Ok(())
    }

    fn is_body_empty(&mut self) -> bool {
        self.body_read == 0 && self.stream.is_body_done()
    }

    async fn read_body_or_idle(&mut self, no_body_expected: bool) -> Result<Option<Bytes>> {
        if no_body_expected || self.is_body_done() {
            Err(std::future::poll_fn(|cx| self.poll_idle(cx)).await)
        } else {
            self.read_body_bytes().await
        }
    }

    fn body_bytes_sent(&self) -> usize {
        self.body_sent
    }

    fn body_bytes_read(&self) -> usize {
        self.body_read
    }

    fn digest(&self) -> Option<&Digest> {
        Some(&self.stream.digest)
    }

    fn digest_mut(&mut self) -> Option<&mut Digest> {
        Arc::get_mut(&mut self.stream.digest)
    }

    fn client_addr(&self) -> Option<&SocketAddr> {
        self.stream.digest.socket_digest.as_ref()?.peer_addr()
    }

    fn server_addr(&self) -> Option<&SocketAddr> {
        self.stream.digest.socket_digest.as_ref()?.local_addr()
    }

    /// Never called: only pingora's cache needs it.
    fn pseudo_raw_h1_request_header(&self) -> Bytes {
        Bytes::new()
    }

    fn enable_retry_buffering(&mut self) {
        self.retry
            .get_or_insert_with(|| FixedBuffer::new(RETRY_BYTES_MAX));
    }

    fn retry_buffer_truncated(&self) -> bool {
        self.retry.as_ref().is_some_and(FixedBuffer::is_truncated)
    }

    fn get_retry_buffer(&self) -> Option<Bytes> {
        let retry = self.retry.as_ref().filter(|retry| !retry.is_truncated())?;
        retry.get_buffer()
    }

    async fn finish_custom(&mut self) -> Result<()> {
        Ok(())
    }

    /// HTTP/2 has no messages beside requests and responses.
    fn take_custom_message_reader(&mut self) -> Option<Messages> {
        None
    }

    fn restore_custom_message_reader(&mut self, _reader: Messages) -> Result<()> {
        Ok(())
    }

    fn take_custom_message_writer(&mut self) -> Option<Box<dyn CustomMessageWrite>> {
        None
    }

    fn restore_custom_message_writer(
        &mut self,
        _writer: Box<dyn CustomMessageWrite>,
    ) -> Result<()> {
        Ok(())
    }
}

/// Returns whether a response is a stream of events, which may be silent for a long time (HTML
/// §9.2.5, `text/event-stream`).
pub(super) fn is_event_stream(response: &ResponseHeader) -> bool {
    let media_type = response.headers.get(header::CONTENT_TYPE);
    media_type.is_some_and(|media_type| is_event_stream_type(media_type.as_bytes()))
}

/// Returns whether a `Content-Type` names a stream of events.
pub(super) fn is_event_stream_type(media_type: &[u8]) -> bool {
    let essence = media_type.split(|&byte| byte == b';').next();
    essence
        .unwrap_or_default()
        .trim_ascii()
        .eq_ignore_ascii_case(b"text/event-stream")
}
