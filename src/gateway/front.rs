//! The front: listeners, and the loop over the requests of an HTTP/1.1 connection.
//!
//! The front owns a connection from `accept` to its end. It waits for a whole head under
//! a deadline and a size limit, reads it strictly, and chooses the lane; pingora sees a
//! connection only through a [`Relay`], one request at a time.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{Buf as _, BytesMut};
use pingora::apps::HttpServerApp as _;
use pingora::protocols::http::ServerSession;
use pingora::proxy::HttpProxy;
use pingora::server::configuration::ServerConf;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;

use super::Gateway;
use super::access::Line;
use super::drain::ConnectionGuard;
use super::express::{self, Batch};
use super::head::{self, Form, Framing, Head, Refusal};
use super::http2;
use super::proxy::Proxy;
use super::relay::{self, Relay};
use super::wire::Wire;
use crate::answer::{Connection, Content, Problem, Ready};
use crate::telemetry::Route;

/// How much is asked of a connection at once while a head is awaited.
const READ_BYTES: usize = 4 << 10;
/// How many connections wait in the kernel at most; it has its own limit too.
const BACKLOG: u32 = 4096;
/// How long accepting pauses when the process has run out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const TOO_LARGE: Refusal = Refusal {
    status: 431,
    detail: "the request head is too large",
};
const TOO_SLOW: Refusal = Refusal {
    status: 408,
    detail: "the request head did not come in time",
};

/// The addresses of a process, taken before anything starts, so that a port that is taken
/// is an error message and not a panic.
#[derive(Debug, Default)]
pub struct Listeners {
    /// For plain HTTP/1.1.
    pub http: Vec<TcpSocket>,
    /// For TLS, with HTTP/2 or HTTP/1.1 by ALPN.
    pub https: Vec<TcpSocket>,
}

/// The same, taking connections.
#[derive(Debug)]
pub struct OpenListeners(Vec<(TcpListener, bool)>);

/// The front of a process.
pub struct Front {
    pub(super) gateway: Arc<Gateway>,
    pub(super) proxy: Arc<HttpProxy<Proxy>>,
    /// pingora's way of being told that answers are the last of their connection.
    pub(super) shutdown: watch::Receiver<bool>,
    shutting_down: watch::Sender<bool>,
    tls: Option<TlsAcceptor>,
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

/// What comes after the express lane.
enum Next {
    /// Waiting for the next head.
    Wait,
    /// Nothing: the client does not take what it asked for.
    Gone,
    /// A refusal.
    Refuse(Refusal),
    /// The proxy lane, with the request at the front of the inbox.
    Relay {
        head: usize,
        form: Form,
        framing: Framing,
        is_last: bool,
    },
}

/// An HTTP/1.1 connection between two requests.
struct Http1 {
    front: Arc<Front>,
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

// === impl Listeners ===

impl Listeners {
    /// Begins to take connections. Called on the runtime that will serve them.
    ///
    /// # Errors
    ///
    /// When another process took an address in the meantime.
    pub fn open(self) -> std::io::Result<OpenListeners> {
        let plain = self.http.into_iter().map(|socket| (socket, false));
        let encrypted = self.https.into_iter().map(|socket| (socket, true));
        let open = |(socket, is_tls): (TcpSocket, bool)| {
            let listener = socket.listen(BACKLOG)?;
            let (scheme, address) = (
                if is_tls { "https" } else { "http" },
                listener.local_addr()?,
            );
            log::info!(target: "gateway", scheme, address:%; "listening on {scheme}://{address}");
            Ok((listener, is_tls))
        };
        plain
            .chain(encrypted)
            .map(open)
            .collect::<std::io::Result<_>>()
            .map(OpenListeners)
    }
}

// === impl Front ===

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Front")
            .field("gateway", &self.gateway)
            .finish_non_exhaustive()
    }
}

impl Front {
    /// Puts the front before pingora's proxy.
    #[must_use]
    pub fn new(
        gateway: Arc<Gateway>,
        conf: &Arc<ServerConf>,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> Arc<Self> {
        let proxy = pingora::proxy::http_proxy(conf, Proxy::new(Arc::clone(&gateway)));
        let (shutting_down, shutdown) = watch::channel(false);
        let tls = tls.map(TlsAcceptor::from);
        Arc::new(Self {
            gateway,
            proxy: Arc::new(proxy),
            shutdown,
            shutting_down,
            tls,
        })
    }

    /// Accepts connections on all listeners until the drain begins.
    pub async fn listen(self: &Arc<Self>, listeners: OpenListeners) {
        let accept =
            |(listener, is_tls)| tokio::spawn(Arc::clone(self).accept_all(listener, is_tls));
        let tasks: Vec<_> = listeners.0.into_iter().map(accept).collect();
        for task in tasks {
            if let Err(error) = task.await {
                log::error!(target: "gateway", "a listener stopped: {error}");
            }
        }
        self.shutting_down.send_replace(true);
    }

    async fn accept_all(self: Arc<Self>, listener: TcpListener, is_tls: bool) {
        let drain = self.gateway.drain.clone();
        let mut draining = std::pin::pin!(drain.draining());
        loop {
            let accepted = tokio::select! {
                biased;
                accepted = async {
                    drain.below(self.gateway.limits.connections_max).await;
                    listener.accept().await
                } => accepted,
                () = &mut draining => return,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let guard = drain.guard();
                    tokio::spawn(Arc::clone(&self).serve(stream, peer, guard, is_tls));
                }
                // Out of descriptors, or a client that left the queue again.
                Err(error) => {
                    log::warn!("accept: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        guard: ConnectionGuard,
        is_tls: bool,
    ) {
        let metrics = Arc::clone(&self.gateway.metrics);
        metrics.connections.inc();
        // An answer is one write; Nagle's algorithm could only delay it.
        let _not_tcp = stream.set_nodelay(true);
        let wire = match (is_tls, &self.tls) {
            (true, Some(acceptor)) => {
                match tokio::time::timeout(self.gateway.limits.head, acceptor.accept(stream)).await
                {
                    Ok(Ok(stream)) => Some(Wire::tls(stream, peer, guard)),
                    Ok(Err(_)) | Err(_) => {
                        metrics.tls_failures.inc();
                        None
                    }
                }
            }
            _ => Some(Wire::plain(stream, peer, guard)),
        };
        match wire {
            Some(wire) if wire.facts().is_http2() => Box::pin(http2::serve(self, wire)).await,
            Some(wire) => Http1::new(self, wire).run().await,
            None => {}
        }
    }
}

// === impl Http1 ===

impl Http1 {
    fn new(front: Arc<Front>, wire: Wire) -> Self {
        let drain = front.gateway.drain.clone();
        let clocks = Clocks {
            timer: Box::pin(tokio::time::sleep(front.gateway.limits.head)),
            draining: Box::pin(async move { drain.draining().await }),
            is_registered: false,
        };
        Self {
            front,
            wire,
            inbox: BytesMut::new(),
            batch: Batch::default(),
            clocks,
            served: 0,
            is_half_closed: false,
        }
    }

    async fn run(mut self) {
        loop {
            let length = match self.wait_for_head().await {
                Waited::Head(length) => length,
                Waited::Over => return self.wire.close().await,
                Waited::Refused(refusal) => return self.refuse(refusal, Instant::now()).await,
            };
            let since = Instant::now();
            match self.express(length, since).await {
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
    /// The first head has [`Limits::head`](super::Limits::head) from the beginning of the connection, later ones
    /// from their first byte; between two requests a connection has
    /// [`Limits::idle`](super::Limits::idle).
    async fn wait_for_head(&mut self) -> Waited {
        let limits = Arc::clone(&self.front.gateway.limits);
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
                    self.front.gateway.metrics.timeouts.inc();
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
            front,
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
            if inbox.is_empty() && front.gateway.drain.is_draining() {
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

    /// Answers as many requests of the inbox as the express lane takes, the first of which
    /// has a head of `length` bytes.
    async fn express(&mut self, mut length: usize, since: Instant) -> Next {
        let Self {
            front,
            wire,
            inbox,
            batch,
            served,
            ..
        } = self;
        let gateway = &front.gateway;
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
            let answer = if is_last {
                None
            } else {
                express::answer(gateway, &head)
            };
            let Some(answer) = answer else {
                break Next::Relay {
                    head: length,
                    form: head.form,
                    framing: head.framing,
                    is_last,
                };
            };
            batch.push(
                &answer,
                express::content_of(head.method),
                Connection::Keep,
                now,
            );
            express::log(gateway, wire, &head, answer.answer(), since.elapsed(), now);
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
                .write(wire, gateway, Route::Express, since)
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
            front,
            wire,
            inbox,
            batch,
            clocks,
            served,
            ..
        } = self;
        let limits = &front.gateway.limits;
        let relay = Relay::new(wire, inbox, head, framing, Arc::clone(limits));
        let mut session = ServerSession::new_http1(Box::new(relay));
        session.set_keepalive(Some(limits.idle.as_secs()));
        session.set_keepalive_reuses_remaining(is_last.then_some(0));
        // The relay watches over the body, with a minimum rate that pingora does not have.
        session.set_read_timeout(None);
        session.set_write_timeout(Some(limits.write));
        let (stream, _settings) = Box::pin(front.proxy.process_new_http(session, &front.shutdown))
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
            front,
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
        let gateway = Arc::clone(&self.front.gateway);
        let now = gateway.clock.now();
        let mut answer = Problem::new(refusal.status, refusal.detail).answer();
        if refusal.status == 405 {
            answer.allow = Some("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
        }
        let ready = Ready::Made(answer);
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
                bytes: ready.answer().body.len() as u64,
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
