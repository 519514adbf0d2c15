//! HTTP/1.1: the loop over the requests of a connection.
//!
//! The loop waits for a complete request head, with a timeout and a size limit. It parses the head
//! strictly and chooses the fast path, the direct path or the proxy path. pingora gets the
//! connection for one request at a time, as a [`SingleRequestStream`](super::single_request::SingleRequestStream).

mod collect;
mod direct;
mod proxy;
mod reject;
mod wait;

use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;

use super::GATEWAY_FAILED;
use super::connection::ClientConnection;
use super::direct::{ExchangeEnd, LastGroup, Plan};
use super::fast_path::Batch;
use super::handler::ConnectionHandler;
use super::head::{self, Form, Framing, Rejection};
use super::open::Activity;
use super::timers::Timers;
use collect::Next;
use wait::Waited;

/// The response after a panic.
const FAILED: Rejection = Rejection {
    status: 500,
    detail: GATEWAY_FAILED,
};

/// An HTTP/1.1 connection.
pub(super) struct Http1 {
    handler: Arc<ConnectionHandler>,
    activity: Arc<Activity>,
    connection: ClientConnection,
    inbox: BytesMut,
    /// The request line of the request that pingora has, for the response after a panic.
    line: Vec<u8>,
    /// The request of the direct path, as the upstream gets it.
    outbox: Vec<u8>,
    /// How it takes the direct path. It is large, so it is not a part of [`Next`], which each
    /// request moves.
    plan: Option<Plan>,
    last_group: LastGroup,
    batch: Batch,
    timers: Timers,
    /// When the last response was sent, or the connection began.
    idle_since: Instant,
    served: u32,
    is_half_closed: bool,
}

/// The request at the front of the inbox.
#[derive(Clone, Copy)]
struct Request {
    /// The length of its head.
    head: usize,
    form: Form,
    framing: Framing,
    /// Whether it is the last one of the connection.
    is_last: bool,
}

// === impl Request ===

impl Request {
    /// Returns the length of the request; the content of a chunked one does not count.
    fn length(&self) -> usize {
        match self.framing {
            Framing::Length(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                self.head.saturating_add(length)
            }
            Framing::None | Framing::Chunked => self.head,
        }
    }
}

// === impl Http1 ===

impl Http1 {
    /// Makes the loop for a connection.
    pub(super) fn new(
        handler: Arc<ConnectionHandler>,
        connection: ClientConnection,
        activity: Arc<Activity>,
    ) -> Self {
        let timers = Timers::new(&activity);
        Self {
            handler,
            activity,
            connection,
            inbox: BytesMut::new(),
            line: Vec::new(),
            outbox: Vec::new(),
            plan: None,
            last_group: LastGroup::default(),
            batch: Batch::default(),
            timers,
            idle_since: Instant::now(),
            served: 0,
            is_half_closed: false,
        }
    }

    /// Serves the connection until it is closed.
    ///
    /// The futures of rare steps are boxed. Otherwise the task of every connection would contain
    /// space for them, as long as the connection is open.
    pub(super) async fn run(mut self) {
        loop {
            let length = match self.wait_for_head().await {
                Waited::Head(length) => length,
                Waited::Over => return self.connection.close().await,
                Waited::Rejected(rejection) => {
                    return Box::pin(self.reject(rejection, Instant::now())).await;
                }
            };
            let since = Instant::now();
            match self.fast_path(length, since).await {
                // `idle_since` is the end of the write.
                Next::Wait => continue,
                Next::Closed => return,
                // This client sends nothing more that could destroy the response.
                Next::Last { is_agreed: true } => return self.connection.close().await,
                Next::Last { is_agreed: false } => return self.connection.close_lingering().await,
                Next::Reject(rejection) => return Box::pin(self.reject(rejection, since)).await,
                Next::TooMany {
                    head,
                    client,
                    wait,
                    is_last,
                } => match Box::pin(self.too_many(head, client, wait, is_last, since)).await {
                    Some(connection) => self = connection,
                    None => return,
                },
                Next::Direct(request) => match self.direct(request, since).await {
                    ExchangeEnd::Whole => {}
                    ExchangeEnd::Proxy => match Box::pin(self.proxy(request, since)).await {
                        Some(connection) => self = connection,
                        None => return,
                    },
                    // The client sees that the response is not complete.
                    ExchangeEnd::Cut(_) | ExchangeEnd::Last | ExchangeEnd::Failed(_) => {
                        return self.connection.close_lingering().await;
                    }
                },
                Next::Proxy(mut request) => {
                    if let Form::Absolute(_) = request.form {
                        request.head = head::to_origin_form(&mut self.inbox, request.head);
                    }
                    match Box::pin(self.proxy(request, since)).await {
                        Some(connection) => self = connection,
                        None => return,
                    }
                }
            }
            self.idle_since = Instant::now();
        }
    }
}
