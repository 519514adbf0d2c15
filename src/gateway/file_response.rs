//! Responses whose content is a file, which are sent without pingora.
//!
//! pingora chooses the response as it does for every other one, but it would keep tens of
//! kilobytes for the request until the last byte is sent, and a client may read slowly. So the
//! response is handed over ([`FileResponse`]): pingora ends the request without having written
//! anything, and the connection or the stream that returns from it sends the file. Then a slow
//! reader costs little more than the piece of the file that it waits for.
//!
//! A file is opened before the header is written, so the client gets 503 if the file cannot be
//! read. The next piece is read when the client has taken the previous one.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::Reason;

use super::access::{Client, Outcome};
use super::connection::ClientConnection;
use super::ending::{End, Waits};
use super::fast_path;
use super::http2_stream::Http2Stream;
use super::reads::{Reads, Sending};
use super::write_rate::WriteRate;
use super::{Gateway, http2};
use crate::response::trace::{RequestId, TraceContext};
use crate::response::{
    Body, Connection, MaybeCached, Problem, RequestHeaders, Response, Stored, TooManyOpenFiles,
};
use crate::telemetry::Route;

/// A response that pingora has chosen and not sent.
#[derive(Clone, Debug)]
pub(super) struct FileResponse {
    pub(super) route: Route,
    pub(super) response: Response,
    pub(super) request: Logged,
    pub(super) client: Client,
    /// When the request began.
    pub(super) since: Instant,
    /// Set if the response is a copy of an earlier one.
    pub(super) copy: Option<CopyReason>,
}

/// Why a copy is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyReason {
    /// How the request to the site's server ended.
    pub(super) end: End,
    pub(super) waits: Waits,
    /// The age of the copy, in seconds.
    pub(super) age: u64,
}

/// The part of a request that an access line shows.
#[derive(Clone, Debug)]
pub(super) struct Logged {
    method: Box<str>,
    host: Box<str>,
    path: Box<str>,
    query: Option<Box<str>>,
    user_agent: Box<str>,
    request_id: Box<str>,
    made_id: Option<RequestId>,
    trace: Option<TraceContext>,
}

/// The opened content of a response: the file, or the reason why it cannot be read.
struct Opened {
    response: Response,
    content: Content,
    /// How the request ends when the client has all of the content.
    end: End,
}

enum Content {
    File(Sending),
    Memory(Bytes),
}

// === impl Logged ===

impl Logged {
    /// Copies it from the header of a request.
    pub(super) fn of(request: &RequestHeaders<'_>) -> Self {
        Self {
            method: request.method.into(),
            host: request.host.into(),
            path: request.path.into(),
            query: request.query.map(Into::into),
            user_agent: request.user_agent.into(),
            request_id: request.request_id.into(),
            made_id: request.made_id,
            trace: request.trace,
        }
    }

    fn headers(&self) -> RequestHeaders<'_> {
        RequestHeaders {
            method: &self.method,
            host: &self.host,
            path: &self.path,
            query: self.query.as_deref(),
            user_agent: &self.user_agent,
            request_id: &self.request_id,
            made_id: self.made_id,
            trace: self.trace,
            ..RequestHeaders::default()
        }
    }
}

// === impl FileResponse ===

impl FileResponse {
    /// Returns the file of a response; `None` if its content is in memory, or is not sent.
    pub(super) fn file<'r>(
        response: &'r Response,
        request: &RequestHeaders<'_>,
    ) -> Option<&'r Stored> {
        match &response.body {
            Body::Stored(stored) if response.body_bytes(request.content()) > 0 => Some(stored),
            Body::Stored(_) | Body::Memory(_) => None,
        }
    }

    /// Sends it over HTTP/1.1.
    ///
    /// # Errors
    ///
    /// When the client has closed the connection or is too slow, or the file cannot be read to
    /// its end. The connection must be closed then: the client sees that the response is cut.
    pub(super) async fn send_http1(
        self,
        connection: &mut ClientConnection,
        gateway: &Gateway,
        reads: &Reads,
        after: Connection,
    ) -> io::Result<()> {
        let host = self.request.host.clone();
        let Opened {
            response,
            mut content,
            end: complete,
        } = self.open(gateway, reads).await;
        let is_tls = connection.info().is_tls();
        let hsts = is_tls.then(|| gateway.hsts(&host)).flatten();
        let mut head = Vec::new();
        let date = fast_path::date(gateway.clock);
        let ready = MaybeCached::Built(response);
        ready.write_head(&mut head, &date, after);
        fast_path::add_hsts(&mut head, hsts);
        let status = ready.response().status;
        drop(ready);
        let mut sent = 0;
        let result = loop {
            let piece = match content.next(reads).await {
                Ok(piece) if piece.is_empty() => break Ok(()),
                Ok(piece) => piece,
                Err(_unread) => break Err(End::Failed),
            };
            let mut slices = [IoSlice::new(&head), IoSlice::new(&piece)];
            if let Err(error) = connection.write_all_vectored(&mut slices).await {
                break Err(End::of_client(&error));
            }
            head = Vec::new();
            sent += piece.len();
        };
        let end = match complete {
            End::Complete => *result.as_ref().err().unwrap_or(&complete),
            limit => limit,
        };
        self.log(gateway, status, sent, end);
        result.map_err(|_end| io::ErrorKind::ConnectionAborted.into())
    }

    /// Sends it over HTTP/2. If that fails, the stream is reset.
    pub(super) async fn send_http2(
        self,
        stream: &mut Http2Stream,
        gateway: &Arc<Gateway>,
        reads: &Reads,
    ) {
        let host = self.request.host.clone();
        let Opened {
            response,
            mut content,
            end: complete,
        } = self.open(gateway, reads).await;
        let header = Box::new(http2::header_of(gateway.hsts(&host), &response));
        let (mut sent, mut end) = (0, End::ClientClosed);
        if stream.write_response_header(header, false).is_ok()
            && let Some(mut writer) = stream.take_response_body_writer()
        {
            let mut write_rate = WriteRate::of_stream(&gateway.limits, &gateway.metrics);
            loop {
                let Ok(piece) = content.next(reads).await else {
                    end = End::Failed;
                    writer.send_reset(Reason::INTERNAL_ERROR);
                    break;
                };
                let length = piece.len();
                let is_last = content.is_done();
                let written = http2::send(&mut writer, piece, is_last, &mut write_rate).await;
                if let Err(error) = written {
                    end = End::of_client(&error);
                    break;
                }
                sent += length;
                if is_last {
                    end = complete;
                    break;
                }
            }
        }
        // A client that does not read the error does not change why there is one.
        if complete != End::Complete {
            end = complete;
        }
        self.log(gateway, response.status, sent, end);
    }

    async fn open(&self, gateway: &Gateway, reads: &Reads) -> Opened {
        let stored = match &self.response.body {
            Body::Stored(stored) => stored,
            Body::Memory(bytes) => {
                return Opened {
                    content: Content::Memory(bytes.clone()),
                    response: self.response.clone(),
                    end: End::Complete,
                };
            }
        };
        let client = gateway.clients.network_of(self.client.counted);
        let (response, end) = match reads.open(stored, client).await {
            Ok(sending) => {
                return Opened {
                    response: self.response.clone(),
                    content: Content::File(sending),
                    end: End::Complete,
                };
            }
            Err(error) if TooManyOpenFiles::is_cause(&error) => {
                (End::DescriptorLimit.response(), End::DescriptorLimit)
            }
            Err(error) => {
                log::error!(target: "origin", "cannot read a file of the release: {error}");
                let why = "this file cannot be read at the moment";
                (Problem::new(503, why).response(), End::Complete)
            }
        };
        let bytes = response.body.memory().cloned().unwrap_or_default();
        Opened {
            response,
            content: Content::Memory(bytes),
            end,
        }
    }

    fn log(&self, gateway: &Gateway, status: u16, bytes: usize, end: End) {
        let took: Duration = self.since.elapsed();
        gateway.metrics.answered(self.route, status, took);
        let end = match self.copy {
            Some(copy) if end == End::Complete => copy.end,
            _ => end,
        };
        let outcome = Outcome {
            route: self.route,
            status,
            bytes: bytes as u64,
            took,
            end,
            waits: self.copy.map_or_else(Waits::default, |copy| copy.waits),
            copy_age: self.copy.map(|copy| copy.age),
        };
        gateway.log(self.client, &self.request.headers(), outcome);
    }
}

// === impl Content ===

impl Content {
    /// Returns the next piece; it is empty at the end.
    async fn next(&mut self, reads: &Reads) -> io::Result<Bytes> {
        match self {
            Self::File(sending) => reads.next(sending).await,
            Self::Memory(bytes) => Ok(std::mem::take(bytes)),
        }
    }

    fn is_done(&self) -> bool {
        match self {
            Self::File(sending) => sending.is_done(),
            Self::Memory(bytes) => bytes.is_empty(),
        }
    }
}
