//! HTTP/1.1: the loop over the requests of a connection.
//!
//! It waits for a whole head under a deadline and a size limit, reads it strictly, and
//! chooses the path; pingora sees a connection only through a [`Relay`], one request at a
//! time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::{Buf as _, BytesMut};
use pingora::apps::HttpServerApp as _;
use pingora::protocols::http::ServerSession;
use tokio::time::Sleep;

use super::access::Line;
use super::fast_path::{self, Batch};
use super::handler::ConnectionHandler;
use super::head::{self, Form, Framing, Head, Refusal};
use super::relay::{self, Relay};
use super::wire::Wire;
use crate::response::{Connection, Content, MaybeCached, Problem};
use crate::telemetry::Route;

/// How much is asked of a connection at once while a head is awaited.
const READ_BYTES: usize = 4 << 10;

const TOO_LARGE: Refusal = Refusal {
    status: 431,
    detail: "the request head is too large",
};
const TOO_SLOW: Refusal = Refusal {
    status: 408,
    detail: "the request head did not come in time",
};

/// An HTTP/1.1 connection between two requests.
pub(super) struct Http1 {
    handler: Arc<ConnectionHandler>,
    wire: Wire,
    inbox: BytesMut,
    batch: Batch,
    clocks: Clocks,
    served: u32,
    is_half_closed: bool,
}

/// What wakes a connection that waits for bytes.
struct Clocks {
    /// Never later than the deadline; set anew only when it has fired too early, so that a
    /// request does not cost a change of the timer wheel.
    timer: Pin<Box<Sleep>>,
    /// The beginning of the drain. Polled once: it keeps the waker of this connection's
    /// task, which is the same for as long as the connection lives.
    draining: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_registered: bool,
}

/// How a wait for a request head ended.
enum Waited {
    /// A whole head, this many bytes of the inbox.
    Head(usize),
    /// The client has gone, or there is no reason to wait for it any longer.
    Over,
    /// The head is refused before it is whole.
    Refused(Refusal),
}

/// How a wait for more bytes ended.
enum Filled {
    Some,
    Over,
    Late,
}

/// What comes after the fast path.
enum Next {
    /// Waiting for the next head.
    Wait,
    /// Nothing: the client does not take what it asked for.
    Gone,
    /// A refusal.
    Refuse(Refusal),
    /// The proxy path, with the request at the front of the inbox.
    Relay {
        head: usize,
        form: Form,
        framing: Framing,
        is_last: bool,
    },
}

// === impl Http1 ===

impl Http1 {
    /// Takes over a connection.
    pub(super) fn new(handler: Arc<ConnectionHandler>, wire: Wire) -> Self {
        let drain = handler.gateway.drain.clone();
        let clocks = Clocks {
            timer: Box::pin(tokio::time::sleep(handler.gateway.limits.head)),
            draining: Box::pin(async move { drain.draining().await }),
            is_registered: false,
        };
        Self {
            handler,
            wire,
            inbox: BytesMut::new(),
            batch: Batch::default(),
            clocks,
            served: 0,
            is_half_closed: false,
        }
    }

    /// Serves it to its end.
    pub(super) async fn run(mut self) {
        loop {
            let length = match self.wait_for_head().await {
                Waited::Head(length) => length,
                Waited::Over => return self.wire.close().await,
                Waited::Refused(refusal) => return self.refuse(refusal, Instant::now()).await,
            };
            let since = Instant::now();
            match self.fast_path(length, since).await {
                Next::Wait => {}
                Next::Gone => return,
                Next::Refuse(refusal) => return self.refuse(refusal, since).await,
                Next::Relay {
                    head,
                    form,
                    framing,
                    is_last,
                } => {
                    let head = match form {
                        Form::Absolute(_) => head::to_origin_form(&mut self.inbox, head),
                        Form::Origin | Form::Asterisk => head,
                    };
                    match self.relay(head, framing, is_last).await {
                        Some(connection) => self = connection,
                        None => return,
                    }
                }
            }
        }
    }

    /// Waits until the inbox begins with a whole head.
    ///
    /// The first head has [`Limits::head`](super::Limits::head) from the beginning of the
    /// connection, later ones from their first byte; between two requests a connection has
    /// [`Limits::idle`](super::Limits::idle).
    async fn wait_for_head(&mut self) -> Waited {
        let limits = Arc::clone(&self.handler.gateway.limits);
        let mut has_begun = !self.inbox.is_empty();
        let patience = if has_begun || self.served == 0 {
            limits.head
        } else {
            limits.idle
        };
        let mut deadline = Instant::now() + patience;
        let mut searched = 0;
        loop {
            // RFC 9112 §2.2: an empty line before a request line is ignored.
            while self.inbox.starts_with(b"\r\n") {
                self.inbox.advance(2);
                searched = 0;
            }
            if let Some(end) = memchr::memmem::find(&self.inbox[searched..], b"\r\n\r\n") {
                let length = searched + end + 4;
                return if length > limits.head_bytes_max {
                    Waited::Refused(TOO_LARGE)
                } else {
                    Waited::Head(length)
                };
            }
            searched = self.inbox.len().saturating_sub(3);
            if let Some(refusal) = head::refuse_early(&self.inbox, &limits) {
                return Waited::Refused(refusal);
            }
            match self.fill(deadline).await {
                Filled::Some => {}
                Filled::Over => return Waited::Over,
                Filled::Late => {
                    self.handler.gateway.metrics.timeouts.inc();
                    return if has_begun {
                        Waited::Refused(TOO_SLOW)
                    } else {
                        Waited::Over
                    };
                }
            }
            if !has_begun && self.served > 0 {
                deadline = Instant::now() + limits.head;
            }
            has_begun = true;
        }
    }

    /// Reads more into the inbox, until the deadline, or until the drain begins when there
    /// is nothing in it.
    async fn fill(&mut self, deadline: Instant) -> Filled {
        let Self {
            handler,
            wire,
            inbox,
            clocks,
            is_half_closed,
            batch,
            ..
        } = self;
        if *is_half_closed {
            return Filled::Over;
        }
        let mut has_waited = false;
        std::future::poll_fn(|cx| {
            match relay::poll_read_into(wire, inbox, READ_BYTES, cx) {
                Poll::Ready(Ok(1..)) => return Poll::Ready(Filled::Some),
                Poll::Ready(_) => return Poll::Ready(Filled::Over),
                Poll::Pending => {}
            }
            // Only now: a request that was sent before the drain began is answered, also when
            // its connection was accepted last.
            if inbox.is_empty() && handler.gateway.drain.is_draining() {
                return Poll::Ready(Filled::Over);
            }
            if !has_waited {
                has_waited = true;
                batch.shrink();
                if inbox.is_empty() && inbox.capacity() > READ_BYTES {
                    *inbox = BytesMut::new();
                }
            }
            clocks.poll_late(deadline, cx).map(|()| Filled::Late)
        })
        .await
    }

    /// Answers as many requests of the inbox as the fast path takes, the first of which
    /// has a head of `length` bytes.
    async fn fast_path(&mut self, mut length: usize, since: Instant) -> Next {
        let Self {
            handler,
            wire,
            inbox,
            batch,
            served,
            ..
        } = self;
        let gateway = &handler.gateway;
        let now = gateway.clock.now();
        let mut at = 0;
        let next = loop {
            let head = match Head::parse(&inbox[at..at + length], &gateway.limits) {
                Ok(head) => head,
                Err(refusal) => break Next::Refuse(refusal),
            };
            *served += 1;
            let is_last = !head.keep_alive
                || gateway.drain.is_draining()
                || *served == gateway.limits.requests_per_connection_max;
            let response = if is_last {
                None
            } else {
                fast_path::response(gateway, &head)
            };
            let Some(response) = response else {
                break Next::Relay {
                    head: length,
                    form: head.form,
                    framing: head.framing,
                    is_last,
                };
            };
            batch.push(
                &response,
                fast_path::content_of(head.method),
                Connection::Keep,
                now,
            );
            fast_path::log(
                gateway,
                wire,
                &head,
                response.response(),
                since.elapsed(),
                now,
            );
            at += length;
            match memchr::memmem::find(&inbox[at..], b"\r\n\r\n") {
                Some(end) if !batch.is_full() && end + 4 <= gateway.limits.head_bytes_max => {
                    length = end + 4
                }
                _ => break Next::Wait,
            }
        };
        inbox.advance(at);
        if !batch.is_empty()
            && batch
                .write(wire, gateway, Route::FastPath, since)
                .await
                .is_err()
        {
            return Next::Gone;
        }
        next
    }

    /// Lends the connection to pingora for the request at the front of the inbox.
    async fn relay(self, head: usize, framing: Framing, is_last: bool) -> Option<Self> {
        let Self {
            handler,
            wire,
            inbox,
            batch,
            clocks,
            served,
            ..
        } = self;
        let limits = &handler.gateway.limits;
        let relay = Relay::new(wire, inbox, head, framing, Arc::clone(limits));
        let mut session = ServerSession::new_http1(Box::new(relay));
        session.set_keepalive(Some(limits.idle.as_secs()));
        session.set_keepalive_reuses_remaining(is_last.then_some(0));
        // The relay watches over the body, with a minimum rate that pingora does not have.
        session.set_read_timeout(None);
        session.set_write_timeout(Some(limits.write));
        let (stream, _settings) =
            Box::pin(handler.proxy.process_new_http(session, &handler.shutdown))
                .await?
                .consume();
        let relay = stream.into_any().downcast::<Relay>().ok()?;
        let parts = relay.into_parts()?;
        if !parts.is_read || is_last {
            parts.wire.close_lingering().await;
            return None;
        }
        let relay::Parts {
            wire,
            inbox,
            is_half_closed,
            ..
        } = parts;
        Some(Self {
            handler,
            wire,
            inbox,
            batch,
            clocks,
            served,
            is_half_closed,
        })
    }

    /// Answers a request that is not passed on, and closes the connection.
    async fn refuse(mut self, refusal: Refusal, since: Instant) {
        let gateway = Arc::clone(&self.handler.gateway);
        let now = gateway.clock.now();
        let mut response = Problem::new(refusal.status, refusal.detail).response();
        if refusal.status == 405 {
            response.allow = Some("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
        }
        let ready = MaybeCached::Made(response);
        self.batch
            .push(&ready, Content::Whole, Connection::Close, now);
        let written = self
            .batch
            .write(&mut self.wire, &gateway, Route::Refused, since)
            .await;
        if gateway.access.is_on() {
            let (method, path) = head::request_line(&self.inbox);
            gateway.access.log(&Line {
                time: now,
                peer: self.wire.facts().peer.ip(),
                protocol: "http/1.1",
                tls: self.wire.facts().is_tls(),
                method,
                host: "",
                path,
                status: refusal.status,
                bytes: ready.response().body.len() as u64,
                route: Route::Refused,
                took: since.elapsed(),
                agent: "",
            });
        }
        if written.is_ok() {
            self.wire.close_lingering().await;
        }
    }
}

// === impl Clocks ===

impl Clocks {
    /// Ready when the deadline has passed. Also arranges to be woken by the drain.
    fn poll_late(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_registered {
            self.is_registered = true;
            // Ready or not: whoever waits looks at `Drain::is_draining` when it is woken.
            if self.draining.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        let deadline = tokio::time::Instant::from_std(deadline);
        if self.timer.deadline() > deadline {
            self.timer.as_mut().reset(deadline);
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if tokio::time::Instant::now() >= deadline {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}
