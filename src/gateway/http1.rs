//! HTTP/1.1: the loop over the requests of a connection.
//!
//! The loop waits for a complete request head, with a timeout and a size limit. It parses the head
//! strictly and chooses the fast path, the direct path or the proxy path. pingora gets the
//! connection for one request at a time, as a [`SingleRequestStream`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::{Buf as _, BytesMut};
use pingora::apps::HttpServerApp as _;
use pingora::protocols::http::ServerSession;

use super::access::{Client, Outcome};
use super::connection::ClientConnection;
use super::direct::{Arrived, ExchangeEnd, FinalResponse, Http1Downstream, LastGroup, Parts, Plan};
use super::ending::{End, Waits};
use super::fast_path::{self, Batch, FastResponse};
use super::file_response::FileResponse;
use super::handler::ConnectionHandler;
use super::head::{self, Form, Framing, Head, Rejection};
use super::mcp;
use super::open::Activity;
use super::return_slot::ReturnSlot;
use super::single_request::{self, SingleRequestStream};
use super::timers::Timers;
use super::{GATEWAY_FAILED, too_many};
use crate::response::{Connection, MaybeCached, RequestHeaders};
use crate::telemetry::{Route, panics};

/// How many bytes one read gets while the loop waits for a head.
const READ_BYTES: usize = 4 << 10;
/// How many bytes an idle connection keeps for the next request of the direct path.
const OUTBOX_IDLE_BYTES: usize = 2 << 10;

const TOO_LARGE: Rejection = Rejection {
    status: 431,
    detail: "the request head is too large",
};
const TOO_SLOW: Rejection = Rejection {
    status: 408,
    detail: "the request head did not arrive in time",
};

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
    last_group: LastGroup,
    batch: Batch,
    timers: Timers,
    /// When the last response was sent, or the connection began.
    idle_since: Instant,
    served: u32,
    is_half_closed: bool,
}

/// How a wait for a request head ended.
enum Waited {
    /// The inbox begins with a complete head of this many bytes.
    Head(usize),
    /// The client has closed the connection, or it was idle for too long.
    Over,
    /// The head is rejected before it is complete.
    Rejected(Rejection),
}

/// How a wait for more bytes ended.
enum Filled {
    Some,
    Over,
    Late,
}

/// The next step of the loop after the fast path.
enum Next {
    /// It waits for the next head.
    Wait,
    /// It ends: the responses could not be written.
    Closed,
    /// It rejects a request.
    Reject(Rejection),
    /// It responds 429 to the request at the front of the inbox, for which this client has to
    /// wait. The request has only a head, or the connection closes.
    TooMany {
        head: usize,
        client: Client,
        wait: Duration,
        is_last: bool,
    },
    /// It takes the direct path.
    Direct { request: Request, plan: Plan },
    /// It takes the proxy path.
    Proxy(Request),
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
        let timers = Timers::new(&activity, handler.gateway.limits.head);
        Self {
            handler,
            activity,
            connection,
            inbox: BytesMut::new(),
            line: Vec::new(),
            outbox: Vec::new(),
            last_group: LastGroup::default(),
            batch: Batch::default(),
            timers,
            idle_since: Instant::now(),
            served: 0,
            is_half_closed: false,
        }
    }

    /// Serves the connection until it is closed.
    pub(super) async fn run(mut self) {
        loop {
            let length = match self.wait_for_head().await {
                Waited::Head(length) => length,
                Waited::Over => return self.connection.close().await,
                Waited::Rejected(rejection) => return self.reject(rejection, Instant::now()).await,
            };
            let since = Instant::now();
            match self.fast_path(length, since).await {
                // `idle_since` is the end of the write.
                Next::Wait => continue,
                Next::Closed => return,
                Next::Reject(rejection) => return self.reject(rejection, since).await,
                Next::TooMany {
                    head,
                    client,
                    wait,
                    is_last,
                } => match self.too_many(head, client, wait, is_last, since).await {
                    Some(connection) => self = connection,
                    None => return,
                },
                Next::Direct { request, plan } => match self.direct(request, &plan, since).await {
                    ExchangeEnd::Whole => {}
                    ExchangeEnd::Proxy => match self.proxy(request, since).await {
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
                    match self.proxy(request, since).await {
                        Some(connection) => self = connection,
                        None => return,
                    }
                }
            }
            self.idle_since = Instant::now();
        }
    }

    /// Waits until the inbox begins with a complete head.
    ///
    /// The first head must arrive within [`Limits::head`](super::Limits::head) of the beginning
    /// of the connection, and a later head within the same time of its first byte. Between two
    /// requests a connection may be idle for [`Limits::idle`](super::Limits::idle).
    async fn wait_for_head(&mut self) -> Waited {
        let limits = Arc::clone(&self.handler.gateway.limits);
        let mut has_begun = !self.inbox.is_empty();
        let timeout = if has_begun || self.served == 0 {
            limits.head
        } else {
            limits.idle
        };
        let now = self.idle_since;
        self.activity.set_busy(false, now);
        let mut deadline = now + timeout;
        let mut has_just_begun = false;
        let mut searched = 0;
        loop {
            // RFC 9112 §2.2: an empty line before a request line is ignored.
            while self.inbox.starts_with(b"\r\n") {
                self.inbox.advance(2);
                searched = 0;
            }
            if let Some(end) = memchr::memmem::find(&self.inbox[searched..], b"\r\n\r\n") {
                let length = searched + end + 4;
                self.activity.set_busy(true, now);
                return if length > limits.head_bytes_max {
                    Waited::Rejected(TOO_LARGE)
                } else {
                    Waited::Head(length)
                };
            }
            searched = self.inbox.len().saturating_sub(3);
            if let Some(rejection) = head::reject_early(&self.inbox, &limits) {
                return Waited::Rejected(rejection);
            }
            if std::mem::take(&mut has_just_begun) {
                deadline = Instant::now() + limits.head;
            }
            match self.fill(deadline).await {
                Filled::Some => {}
                Filled::Over => return Waited::Over,
                Filled::Late => {
                    self.handler.gateway.metrics.timeouts.inc();
                    return if has_begun {
                        Waited::Rejected(TOO_SLOW)
                    } else {
                        Waited::Over
                    };
                }
            }
            // Most heads are complete now and need no deadline.
            has_just_begun = !has_begun && self.served > 0;
            has_begun = true;
        }
    }

    /// Reads more bytes into the inbox.
    ///
    /// It stops at the deadline, or when the drain reaches this connection and the inbox is empty.
    async fn fill(&mut self, deadline: Instant) -> Filled {
        let Self {
            handler,
            activity,
            connection,
            inbox,
            timers,
            is_half_closed,
            batch,
            outbox,
            served,
            ..
        } = self;
        // A connection without a request yet is closed last: its client is about to send one.
        let share = if *served == 0 {
            1.0
        } else {
            activity.drain_share()
        };
        if *is_half_closed {
            return Filled::Over;
        }
        let mut has_waited = false;
        std::future::poll_fn(|cx| {
            match single_request::poll_read_into(connection, inbox, READ_BYTES, cx) {
                Poll::Ready(Ok(1..)) => return Poll::Ready(Filled::Some),
                Poll::Ready(_) => return Poll::Ready(Filled::Over),
                Poll::Pending => {}
            }
            // Checked after reading, so that a request that was sent before the drain began gets
            // its response.
            if activity.is_evicted() {
                return Poll::Ready(Filled::Over);
            }
            let mut deadline = deadline;
            let gateway = &handler.gateway;
            if inbox.is_empty() && gateway.drain.is_draining() {
                // A load balancer uses its connections for the requests of many clients. One that
                // sends a request while we close its connection answers 502, so it gets more time
                // to send one and to learn from the response that it is the last.
                let over = match gateway.trusted.contains(connection.info().peer.ip()) {
                    true => gateway.limits.drain.max(gateway.limits.drain_idle),
                    false => gateway.limits.drain_idle,
                };
                let until = gateway.drain.idle_until(over, share);
                if until.is_some_and(|until| until <= Instant::now()) {
                    return Poll::Ready(Filled::Over);
                }
                deadline = until.map_or(deadline, |until| deadline.min(until));
            }
            if !has_waited {
                has_waited = true;
                batch.shrink();
                outbox.clear();
                outbox.shrink_to(OUTBOX_IDLE_BYTES);
                if inbox.is_empty() && inbox.capacity() > READ_BYTES {
                    *inbox = BytesMut::new();
                }
            }
            timers.poll_late(deadline, cx).map(|()| Filled::Late)
        })
        .await
    }

    /// Responds to the requests in the inbox, up to the first that the fast path cannot handle.
    ///
    /// The head of the first request has `length` bytes.
    async fn fast_path(&mut self, length: usize, since: Instant) -> Next {
        // Nothing has been sent when this panics, and the batch is dropped then.
        let collecting = AssertUnwindSafe(|| self.collect(length, since));
        let Ok(next) = catch_unwind(collecting) else {
            self.batch.clear();
            return Next::Reject(FAILED);
        };
        let Self {
            handler,
            connection,
            batch,
            idle_since,
            ..
        } = self;
        if batch.is_empty() {
            return next;
        }
        let gateway = &handler.gateway;
        match batch
            .write(connection, gateway, Route::FastPath, since)
            .await
        {
            Ok(now) => *idle_since = now,
            Err(error) => {
                gateway.metrics.ended(End::of_client(&error).as_str());
                return Next::Closed;
            }
        }
        next
    }

    /// Collects the responses of the fast path in the batch.
    fn collect(&mut self, mut length: usize, since: Instant) -> Next {
        let Self {
            handler,
            connection,
            inbox,
            outbox,
            last_group,
            batch,
            served,
            ..
        } = self;
        let gateway = &handler.gateway;
        let now = gateway.clock.now();
        let is_redirected = |host: &str, path: &str| {
            !connection.info().is_tls() && gateway.may_redirect(host, path)
        };
        let mut at = 0;
        let next = loop {
            let head = match Head::parse(&inbox[at..at + length], &gateway.limits) {
                Ok(head) => head,
                Err(rejection) => {
                    if rejection.status == 505 && head::to_known_version(&mut inbox[at..]) {
                        continue;
                    }
                    break Next::Reject(rejection);
                }
            };
            *served += 1;
            let is_last = !head.keep_alive
                || gateway.is_closing()
                || *served == gateway.limits.requests_per_connection_max;
            let mut client = connection.info().client();
            if gateway.clients.limits_requests() {
                let lines = || forwarded_for(&inbox[at..at + length]);
                client.counted = gateway.clients.of_request(client.peer, lines);
                if let Err(wait) = gateway.clients.request(client.counted) {
                    break Next::TooMany {
                        head: length,
                        client,
                        wait,
                        is_last: is_last || head.framing != Framing::None,
                    };
                }
            }
            let mut end = at + length;
            let found = match head.host_name {
                Some(host) if is_last || is_redirected(host, head.headers.path) => None,
                Some(host) if head.is_fast_path_form() => {
                    fast_path::find(gateway, &head.headers, host)
                }
                Some(host) => match small_body(&head, &inbox[end..]) {
                    Some(body) => {
                        end += body.len();
                        let lines = || forwarded_for(&inbox[at..at + length]);
                        let counted = gateway.clients.of_request(client.peer, lines);
                        mcp::find(gateway, &head.headers, host, body, counted)
                    }
                    None => None,
                },
                None => None,
            };
            let Some(FastResponse { response, hsts }) = found else {
                let request = Request {
                    head: length,
                    form: head.form,
                    framing: head.framing,
                    is_last,
                };
                let after = match is_last {
                    true => Connection::Close,
                    false => Connection::Keep,
                };
                let host = head
                    .host_name
                    .filter(|host| !is_redirected(host, head.headers.path));
                let direct = &handler.direct;
                let plan = host.and_then(|host| {
                    let arrived = Arrived {
                        head,
                        bytes: &inbox[at..],
                        length,
                        host,
                        client,
                        version: "1.1",
                        after,
                    };
                    Plan::of((gateway, direct), arrived, last_group, outbox)
                });
                break match plan {
                    Some(plan) => Next::Direct { request, plan },
                    None => Next::Proxy(request),
                };
            };
            let content = head.headers.content();
            let hsts = hsts.filter(|_| connection.info().is_tls());
            batch.push(&response, content, Connection::Keep, hsts, now);
            let outcome = Outcome {
                route: Route::FastPath,
                status: response.response().status,
                bytes: response.response().body_bytes(content) as u64,
                took: since.elapsed(),
                end: End::Complete,
                waits: Waits::default(),
                copy_age: None,
            };
            gateway.log(client, &head.headers, outcome);
            at = end;
            // Empty lines are ignored, as before the first request of a batch.
            while inbox[at..].starts_with(b"\r\n") {
                at += 2;
            }
            match memchr::memmem::find(&inbox[at..], b"\r\n\r\n") {
                Some(end) if !batch.is_full() && end + 4 <= gateway.limits.head_bytes_max => {
                    length = end + 4
                }
                _ => break Next::Wait,
            }
        };
        inbox.advance(at);
        next
    }

    /// Passes the request at the front of the inbox on, without pingora.
    async fn direct(&mut self, request: Request, plan: &Plan, since: Instant) -> ExchangeEnd {
        let gateway = &self.handler.gateway;
        let parts = Parts {
            gateway,
            direct: &self.handler.direct,
            plan,
            request: &mut self.outbox,
            downstream: Http1Downstream {
                connection: &mut self.connection,
                inbox: &mut self.inbox,
                is_half_closed: &mut self.is_half_closed,
                timers: &mut self.timers,
            },
        };
        let finished = parts.exchange(since).await;
        let ended = finished.ended;
        match ended {
            ExchangeEnd::Whole => self.inbox.advance(request.length()),
            ExchangeEnd::Failed(end) => {
                let FinalResponse {
                    response,
                    copy,
                    waits,
                } = finished.into_response(end, plan, gateway, &self.inbox);
                let after = match copy {
                    Some(_) => plan.after(&self.inbox),
                    None => Connection::Close,
                };
                let content = plan.own_content();
                if response.body.memory().is_none() && response.body_bytes(content) > 0 {
                    let file = FileResponse {
                        route: Route::Origin,
                        response,
                        request: plan.logged(&self.inbox),
                        client: plan.client(),
                        since,
                        copy,
                    };
                    let reads = &self.handler.reads;
                    let sending = file.send_http1(&mut self.connection, gateway, reads, after);
                    return match (Box::pin(sending).await, after) {
                        (Ok(()), Connection::Keep) => {
                            self.inbox.advance(request.length());
                            ExchangeEnd::Whole
                        }
                        (Ok(()), Connection::Close) => ExchangeEnd::Last,
                        (Err(_), _) => ExchangeEnd::Cut(end),
                    };
                }
                let ready = MaybeCached::Built(response);
                let status = ready.response().status;
                let now = gateway.clock.now();
                let is_tls = self.connection.info().is_tls();
                let hsts = is_tls.then(|| plan.hsts(gateway)).flatten();
                self.batch.push(&ready, content, after, hsts, now);
                // If writing fails, the client has gone.
                let _gone = self
                    .batch
                    .write(&mut self.connection, gateway, Route::Origin, since)
                    .await;
                let outcome = Outcome {
                    route: Route::Origin,
                    status,
                    bytes: ready.response().body_bytes(content) as u64,
                    took: since.elapsed(),
                    end,
                    waits,
                    copy_age: copy.map(|copy| copy.age),
                };
                plan.log(gateway, &self.inbox, outcome);
                if after == Connection::Keep {
                    self.inbox.advance(request.length());
                    return ExchangeEnd::Whole;
                }
            }
            ExchangeEnd::Last | ExchangeEnd::Cut(_) | ExchangeEnd::Proxy => {}
        }
        ended
    }

    /// Gives the connection to pingora for the request at the front of the inbox.
    async fn proxy(self, request: Request, since: Instant) -> Option<Self> {
        let Request {
            head,
            framing,
            is_last,
            ..
        } = request;
        let Self {
            handler,
            activity,
            connection,
            inbox,
            mut line,
            outbox,
            last_group,
            batch,
            timers,
            idle_since,
            served,
            ..
        } = self;
        let limits = &handler.gateway.limits;
        line.clear();
        let end = memchr::memmem::find(&inbox[..head], b"\r\n");
        line.extend_from_slice(&inbox[..end.map_or(head, |end| end + 2)]);
        let slot = ReturnSlot::new();
        let gateway = &handler.gateway;
        let request =
            SingleRequestStream::new(connection, inbox, head, framing, gateway, slot.clone());
        let mut session = ServerSession::new_http1(Box::new(request));
        session.set_keepalive(Some(limits.idle.as_secs()));
        session.set_keepalive_reuses_remaining(is_last.then_some(0));
        // The stream enforces the minimum rate of the body; pingora has no such limit.
        session.set_read_timeout(None);
        // The connection closes a client that reads too slowly; pingora would do so for a client
        // that needs longer for one piece.
        session.set_write_timeout(None);
        let serving = handler.proxy.process_new_http(session, &handler.shutdown);
        // The stream is dropped with what pingora returns, and so its parts return to the slot.
        // `None` is a panic.
        let reusable = panics::caught(serving)
            .await
            .map(|stream| stream.is_some())
            .ok();
        let single_request::Parts {
            mut connection,
            inbox,
            is_read,
            is_half_closed,
            is_answered,
            handed_over,
        } = slot.take()?;
        let inbox = match inbox.is_empty() {
            // The memory of the inbox is not needed while the client reads.
            true => BytesMut::new(),
            false => inbox,
        };
        if let Some(file) = handed_over.filter(|_| reusable.is_some()) {
            let after = match reusable == Some(true) && is_read && !is_last {
                true => Connection::Keep,
                false => Connection::Close,
            };
            let sending = file.send_http1(&mut connection, gateway, &handler.reads, after);
            // The client sees that the response is incomplete, or has closed the connection.
            Box::pin(sending).await.ok()?;
        }
        let inbox = match reusable {
            Some(true) if is_read && !is_last => inbox,
            Some(_) => {
                connection.close_lingering().await;
                return None;
            }
            // The client sees that the response is not complete.
            None if is_answered => return None,
            None => {
                connection.discard();
                BytesMut::from(&*line)
            }
        };
        let returned = Self {
            handler,
            activity,
            connection,
            inbox,
            line,
            outbox,
            last_group,
            batch,
            timers,
            idle_since,
            served,
            is_half_closed,
        };
        if reusable.is_none() {
            returned.reject(FAILED, since).await;
            return None;
        }
        Some(returned)
    }

    /// Responds 429 to the request at the front of the inbox.
    async fn too_many(
        mut self,
        head: usize,
        client: Client,
        wait: Duration,
        is_last: bool,
        since: Instant,
    ) -> Option<Self> {
        let gateway = Arc::clone(&self.handler.gateway);
        let request = request_line(&self.inbox);
        let content = request.content();
        let ready = MaybeCached::Built(too_many(wait));
        let connection = if is_last {
            Connection::Close
        } else {
            Connection::Keep
        };
        let is_tls = self.connection.info().is_tls();
        let hsts = is_tls.then(|| gateway.hsts(request.host)).flatten();
        self.batch
            .push(&ready, content, connection, hsts, gateway.clock.now());
        let outcome = Outcome {
            route: Route::Rejected,
            status: 429,
            bytes: ready.response().body_bytes(content) as u64,
            took: since.elapsed(),
            end: End::RateLimit,
            waits: Waits::default(),
            copy_age: None,
        };
        gateway.log(client, &request, outcome);
        let written = self
            .batch
            .write(&mut self.connection, &gateway, Route::Rejected, since)
            .await;
        if written.is_err() {
            return None;
        }
        if is_last {
            self.connection.close_lingering().await;
            return None;
        }
        self.inbox.advance(head);
        Some(self)
    }

    /// Rejects a request and closes the connection.
    async fn reject(mut self, rejection: Rejection, since: Instant) {
        let gateway = Arc::clone(&self.handler.gateway);
        let now = gateway.clock.now();
        let ready = MaybeCached::Built(rejection.response());
        let request = request_line(&self.inbox);
        let content = request.content();
        let is_tls = self.connection.info().is_tls();
        let hsts = is_tls.then(|| gateway.hsts(request.host)).flatten();
        self.batch
            .push(&ready, content, Connection::Close, hsts, now);
        let written = self
            .batch
            .write(&mut self.connection, &gateway, Route::Rejected, since)
            .await;
        let outcome = Outcome {
            route: Route::Rejected,
            status: rejection.status,
            bytes: ready.response().body_bytes(content) as u64,
            took: since.elapsed(),
            end: End::of_rejection(&rejection),
            waits: Waits::default(),
            copy_age: None,
        };
        gateway.log(self.connection.info().client(), &request, outcome);
        if written.is_ok() {
            self.connection.close_lingering().await;
        }
    }
}

/// Returns the content of a message that the fast path may answer, if it is wholly read.
fn small_body<'i>(head: &Head<'_>, after: &'i [u8]) -> Option<&'i [u8]> {
    match head.framing {
        Framing::Length(length @ 1..=mcp::FAST_BODY_BYTES_MAX) if head.is_fast_message_form() => {
            after.get(..usize::try_from(length).ok()?)
        }
        _ => None,
    }
}

/// Returns the values of the `X-Forwarded-For` lines of a head that the parser has accepted.
fn forwarded_for(head: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    const NAME: &[u8] = b"x-forwarded-for:";
    let lines = head.split(|&b| b == b'\n');
    lines.filter_map(|line| {
        let (name, value) = line.split_at_checked(NAME.len())?;
        name.eq_ignore_ascii_case(NAME).then(|| value.trim_ascii())
    })
}

/// Returns the method and the path of a request whose other fields are not read.
fn request_line(inbox: &[u8]) -> RequestHeaders<'_> {
    let (method, path) = head::request_line(inbox);
    RequestHeaders {
        method,
        path,
        ..RequestHeaders::default()
    }
}
