//! One exchange: a request to an upstream, and its response to the client.
//!
//! It runs in the task of the client's connection. While it waits for the upstream it also watches
//! the client ([`Downstream`]): a client that has gone ends the exchange.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Buf as _;
use pingora::protocols::ALPN;
use tokio::io::AsyncWrite as _;
use tokio_util::io::poll_read_buf;

use super::downstream::{Downstream, Framing, Interrupted};
use super::pool::Link;
use super::response::{self, Recipient};
use super::{Direct, Plan};
use crate::gateway::access::Outcome;
use crate::gateway::balance::{HeldPlace, Tried};
use crate::gateway::body_rate::BodyRate;
use crate::gateway::copies::{self, Collecting, FoundCopy, Reason};
use crate::gateway::ending::{End, Stopwatch, Waits};
use crate::gateway::file_response::CopyReason;
use crate::gateway::{Gateway, fast_path, upstream};
use crate::response::{Connection, Response};
use crate::telemetry::{Route, panics};

/// How many bytes the first read of a response gets: most responses fit.
const FIRST_READ_BYTES: usize = 16 << 10;
/// How many bytes a further read gets.
const PIECE_BYTES: usize = 32 << 10;
/// A head up to this length is parsed each time when more of it has arrived.
const SHORT_HEAD_BYTES: usize = 8 << 10;

/// The parts of a connection, or of a stream, that an exchange works with.
pub(in crate::gateway) struct Parts<'c, D> {
    pub(in crate::gateway) gateway: &'c Gateway,
    pub(in crate::gateway) direct: &'c Direct,
    pub(in crate::gateway) plan: &'c Plan,
    /// The bytes for the upstream; without the content at first.
    pub(in crate::gateway) request: &'c mut Vec<u8>,
    pub(in crate::gateway) downstream: D,
}

/// An exchange that runs.
struct Exchange<'c, D> {
    gateway: &'c Gateway,
    direct: &'c Direct,
    plan: &'c Plan,
    request: &'c mut Vec<u8>,
    downstream: D,
    /// The status that the client has got; 0 before the final head.
    status: u16,
    /// Whether the client has got anything. It is a reference, so that `Parts::exchange` can read
    /// it after a panic.
    is_answered: &'c mut bool,
    /// How many bytes of content the client has got.
    sent: u64,
    stopwatch: &'c mut Stopwatch,
    /// The place at the server that has the request.
    held: Option<HeldPlace>,
    tried: Tried,
    /// Collects the response for a copy.
    collecting: Option<Collecting>,
    /// The copy that the client gets after [`ExchangeEnd::Failed`].
    found: &'c mut Option<(FoundCopy, Reason)>,
}

/// The end of an exchange.
pub(in crate::gateway) struct Finished {
    pub(in crate::gateway) ended: ExchangeEnd,
    stopwatch: Stopwatch,
    found: Option<(FoundCopy, Reason)>,
}

/// What the client gets after [`ExchangeEnd::Failed`].
pub(in crate::gateway) struct FinalResponse {
    pub(in crate::gateway) response: Response,
    /// Set if the response is a copy of an earlier one.
    pub(in crate::gateway) copy: Option<CopyReason>,
    pub(in crate::gateway) waits: Waits,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum ExchangeEnd {
    /// The client has the whole response.
    Whole,
    /// The response is the last of the client's connection.
    Last,
    /// Nothing was sent to the client: it gets a copy if one was found, or
    /// [`End::status_and_detail`].
    Failed(End),
    /// The client has gone, or sees that the response is cut.
    Cut(End),
    /// Nothing was sent to anybody: the proxy path has to forward the request.
    Proxy,
}

/// Why the head of a response was not read.
enum Unanswered {
    /// The connection ended before anything was received.
    Stale {
        /// Whether the upstream may have a part of the request.
        is_sent: bool,
    },
    Ended(ExchangeEnd),
}

/// How a wait for the upstream ended.
enum Waited {
    Upstream(io::Result<usize>),
    Interrupted(Interrupted),
}

// === impl Parts ===

impl<D: Downstream> Parts<'_, D> {
    /// Runs the exchange, counts it and logs it. A panic is a failure.
    pub(in crate::gateway) async fn exchange(self, since: Instant) -> Finished {
        let (mut is_answered, mut found) = (false, None);
        let mut stopwatch = Stopwatch::start(since);
        let exchange = Exchange {
            gateway: self.gateway,
            direct: self.direct,
            plan: self.plan,
            request: self.request,
            downstream: self.downstream,
            status: 0,
            is_answered: &mut is_answered,
            sent: 0,
            stopwatch: &mut stopwatch,
            held: None,
            tried: Tried::default(),
            collecting: None,
            found: &mut found,
        };
        let ended = match panics::caught(exchange.run(since)).await {
            Ok(ended) => ended,
            Err(_panic) if is_answered => ExchangeEnd::Cut(End::Failed),
            Err(_panic) => ExchangeEnd::Failed(End::Failed),
        };
        Finished {
            ended,
            stopwatch,
            found,
        }
    }
}

// === impl Finished ===

impl Finished {
    /// Returns the response after [`ExchangeEnd::Failed`]: a copy if one was found, otherwise an
    /// error. `request` begins with the head of the request.
    pub(in crate::gateway) fn into_response(
        self,
        end: End,
        plan: &Plan,
        gateway: &Gateway,
        request: &[u8],
    ) -> FinalResponse {
        let waits = self.stopwatch.stop(Instant::now());
        let (response, copy) = match self.found {
            Some((found, reason)) => {
                let age = found.age;
                let domain = gateway.index.service().domain.as_str();
                let response = found.response(reason, domain, plan.fields(request));
                (response, Some(CopyReason { end, waits, age }))
            }
            None => (end.response(), None),
        };
        FinalResponse {
            response,
            copy,
            waits,
        }
    }
}

// === impl Exchange ===

impl<D: Downstream> Exchange<'_, D> {
    async fn run(mut self, since: Instant) -> ExchangeEnd {
        let ended = self.exchange().await;
        if let ExchangeEnd::Failed(end) = ended
            && self.found.is_none()
        {
            self.find(end, None).await;
        }
        let end = match ended {
            ExchangeEnd::Whole | ExchangeEnd::Last => Some(End::Complete),
            ExchangeEnd::Cut(end) | ExchangeEnd::Failed(end) => Some(end),
            ExchangeEnd::Proxy => None,
        };
        if let (Some(mut held), Some(end)) = (self.held.take(), end) {
            held.report(end, self.status);
        }
        match ended {
            ExchangeEnd::Whole | ExchangeEnd::Last => self.log(End::Complete, since),
            ExchangeEnd::Cut(end) => self.log(end, since),
            // The caller responds, and logs its response.
            ExchangeEnd::Failed(_) | ExchangeEnd::Proxy => {}
        }
        ended
    }

    /// Counts the response and writes its access line.
    fn log(&self, end: End, since: Instant) {
        let now = Instant::now();
        let took = now - since;
        let outcome = Outcome {
            route: Route::Origin,
            status: self.status,
            bytes: self.sent,
            took,
            end,
            waits: self.stopwatch.stop(now),
            copy_age: None,
        };
        let metrics = &self.gateway.metrics;
        metrics.answered(Route::Origin, self.status, took);
        self.plan
            .log(self.gateway, self.downstream.request(), outcome);
    }

    async fn exchange(&mut self) -> ExchangeEnd {
        if !self.plan.content.is_empty() {
            if let Err(ended) = self.receive().await {
                return ended;
            }
            let content = self.downstream.request().get(self.plan.content.clone());
            self.request.extend_from_slice(content.unwrap_or_default());
            *self.stopwatch = Stopwatch::start(Instant::now());
        }
        let mut may_reuse = true;
        let (mut link, address, head) = loop {
            let (mut link, address, is_reused) = match self.connect(may_reuse).await {
                Ok(connected) => connected,
                Err(ended) => return ended,
            };
            match self.ask(&mut link).await {
                Ok(head) => break (link, address, head),
                Err(Unanswered::Ended(ended)) => return ended,
                // The next one is new.
                Err(Unanswered::Stale { is_sent })
                    if is_reused && (self.plan.is_idempotent || !is_sent) =>
                {
                    may_reuse = false;
                }
                Err(Unanswered::Stale { is_sent })
                    if (self.plan.is_idempotent || !is_sent) && self.may_move() =>
                {
                    upstream::count(&self.gateway.metrics, End::UpstreamClosed);
                    may_reuse = true;
                }
                Err(Unanswered::Stale { .. }) => return self.failed(End::UpstreamClosed, None),
            }
        };
        if copies::is_failure(head.status) && self.find(End::UpstreamError, Some(head.status)).await
        {
            self.status = head.status;
            return ExchangeEnd::Failed(End::UpstreamError);
        }
        if let (Some(copies), Some(asked)) = (&self.gateway.copies, &self.plan.copy) {
            let fields = response::fields(&link.read[..head.length]);
            let is_delimited = !head.content.may_end();
            let site = &self.plan.served.site;
            self.collecting = copies.observe(asked, site, head.status, is_delimited, &fields);
        }
        let ended = self.forward(&mut link, &head).await;
        let is_whole = matches!(ended, ExchangeEnd::Whole | ExchangeEnd::Last);
        if let Some(collected) = self.collecting.take_if(|_| is_whole)
            && let Some(copies) = &self.gateway.copies
        {
            copies.keep(collected);
        }
        if is_whole && head.is_kept && !head.content.may_end() && link.read.is_empty() {
            let server = self.held.as_ref().map_or(0, HeldPlace::server);
            let site = &self.plan.served.site;
            self.direct.pool.put(site, server, address, link);
        }
        ended
    }

    /// Looks for a copy, if there may be one. Returns whether there is.
    async fn find(&mut self, end: End, status: Option<u16>) -> bool {
        let (Some(copies), Some(asked)) = (&self.gateway.copies, &self.plan.copy) else {
            return false;
        };
        if end.is_outage() {
            let found = Box::pin(copies.find(asked, &self.plan.served.site)).await;
            *self.found = found.map(|found| (found, Reason { end, status }));
        }
        self.found.is_some()
    }

    /// Leaves a server that has closed a connection without a response. Returns whether the
    /// request may go to another one.
    fn may_move(&mut self) -> bool {
        let has_others = self.plan.group.len() > 1;
        let held = self.held.take_if(|_| has_others);
        held.is_some_and(|held| self.tried.leave(held, true))
    }

    /// Waits until the content of the request has arrived.
    async fn receive(&mut self) -> Result<(), ExchangeEnd> {
        let Self {
            gateway,
            downstream,
            ..
        } = self;
        let end = self.plan.content.end;
        if downstream.request().len() >= end {
            return Ok(());
        }
        let mut rate = BodyRate::new(Arc::clone(&gateway.limits), gateway.drain.clone());
        std::future::poll_fn(|cx| {
            while downstream.request().len() < end {
                match downstream.poll_content(cx) {
                    Poll::Ready(Ok(0)) => {
                        return Poll::Ready(Err(ExchangeEnd::Failed(End::RequestInvalid)));
                    }
                    Poll::Ready(Ok(read)) => rate.add(read),
                    Poll::Ready(Err(_broken)) => {
                        return Poll::Ready(Err(ExchangeEnd::Cut(End::ClientClosed)));
                    }
                    Poll::Pending if rate.poll_too_slow(cx) => {
                        return Poll::Ready(Err(ExchangeEnd::Failed(End::BodyTimeout)));
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Finds a connection to a server of the site, or makes one. Returns whether it was used
    /// before.
    async fn connect(&mut self, may_reuse: bool) -> Result<(Link, SocketAddr, bool), ExchangeEnd> {
        let Self {
            gateway,
            direct,
            plan,
            ..
        } = *self;
        let has_others = plan.group.len() > 1;
        let mut failures = 0;
        loop {
            let held = match self.held.take().or_else(|| plan.group.hold_now()) {
                Some(held) => held,
                None => Box::pin(self.hold()).await?,
            };
            let upstream = held.upstream();
            let owner = &plan.served.site.owner;
            let resolving = gateway
                .resolver
                .resolve(owner, &upstream.host, upstream.port);
            let resolved = match resolving.await {
                Ok(resolved) => resolved,
                Err(error) => {
                    let failed = self.failed(End::of_unresolved(&error), Some(&error));
                    if self.tried.leave(held, has_others) {
                        continue;
                    }
                    return Err(failed);
                }
            };
            let (site, address) = (&plan.served.site, resolved.address);
            if may_reuse && let Some(link) = direct.pool.take(site, held.server(), address) {
                direct.reused.inc();
                self.stopwatch.connected();
                self.held = Some(held);
                return Ok((link, address, true));
            }
            let (resolver, places) = (&gateway.resolver, gateway.balancer.places());
            let peer = upstream::peer(&gateway.upstream, resolver, places, upstream, &resolved);
            let error = match Box::pin(direct.connector.new_stream(&peer)).await {
                Ok(stream) if stream.selected_alpn_proto() == Some(ALPN::H2) => {
                    direct.chose_http2(upstream);
                    return Err(ExchangeEnd::Proxy);
                }
                Ok(stream) => {
                    direct.opened.inc();
                    self.stopwatch.connected();
                    self.held = Some(held);
                    return Ok((Link::new(stream), address, false));
                }
                Err(error) => error,
            };
            failures += 1;
            let failed = self.failed(End::of_upstream_error(&error, false), Some(&error));
            let may_pass = has_others || upstream::may_pass(&error);
            let is_within = failures <= gateway.upstream.retries_max;
            if !self.tried.leave(held, may_pass && is_within) {
                return Err(failed);
            }
        }
    }

    /// Waits for a place at a server of the site.
    async fn hold(&mut self) -> Result<HeldPlace, ExchangeEnd> {
        let plan = self.plan;
        // The queue has its own timeout, which is shorter.
        let late = self.gateway.upstream.queue * 2;
        let mut deadline = None;
        let holding = plan.group.hold(self.tried, plan.is_idempotent);
        let mut holding = std::pin::pin!(holding);
        std::future::poll_fn(|cx| {
            if let Poll::Ready(held) = holding.as_mut().poll(cx) {
                return Poll::Ready(held.map_err(|why| ExchangeEnd::Failed(End::of_refused(why))));
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + late);
            self.downstream
                .poll_interrupted(deadline, cx)
                .map(|interrupted| match interrupted {
                    Interrupted::Gone => Err(ExchangeEnd::Cut(End::ClientClosed)),
                    Interrupted::Late => Err(ExchangeEnd::Failed(End::QueueTimeout)),
                })
        })
        .await
    }

    /// Sends the request and reads the head of the response. Interim responses go to the client.
    async fn ask(&mut self, link: &mut Link) -> Result<response::Head, Unanswered> {
        self.send(link).await?;
        let mut has_received = false;
        let mut parsed = 0_usize;
        loop {
            // A long head is parsed again only when it may be complete.
            let read = &link.read[..];
            let tail = &read[parsed.saturating_sub(3).min(read.len())..];
            let may_be_complete = read.len() <= SHORT_HEAD_BYTES
                || memchr::memmem::find(tail, b"\n\r\n").is_some()
                || memchr::memmem::find(tail, b"\n\n").is_some()
                || read.len() > response::HEAD_BYTES_MAX;
            if read.len() > parsed && may_be_complete {
                let recipient = self.recipient();
                match recipient.read(read, &mut link.head) {
                    Ok(Some(head)) if head.status < 200 => {
                        self.interim(link, &head).await?;
                        parsed = 0;
                        continue;
                    }
                    Ok(Some(head)) => {
                        self.stopwatch.answered();
                        return Ok(head);
                    }
                    Ok(None) => {}
                    Err(_malformed) => {
                        let why = "the head of the response is malformed";
                        return Err(Unanswered::Ended(
                            self.failed(End::UpstreamInvalid, Some(&why)),
                        ));
                    }
                }
            }
            parsed = link.read.len();
            let limit = self.gateway.upstream.read;
            match self.read(link, FIRST_READ_BYTES, limit).await {
                Waited::Upstream(Ok(1..)) => has_received = true,
                Waited::Upstream(ended) if !has_received => {
                    log::debug!(target: "origin", "no response on a connection: {ended:?}");
                    return Err(Unanswered::Stale { is_sent: true });
                }
                Waited::Upstream(ended) => {
                    let why = format_args!("{ended:?}");
                    return Err(Unanswered::Ended(
                        self.failed(End::UpstreamClosed, Some(&why)),
                    ));
                }
                Waited::Interrupted(Interrupted::Late) => {
                    let late = self.failed(End::FirstByteTimeout, None);
                    return Err(Unanswered::Ended(late));
                }
                Waited::Interrupted(Interrupted::Gone) => {
                    return Err(Unanswered::Ended(ExchangeEnd::Cut(End::ClientClosed)));
                }
            }
        }
    }

    /// Sends the request.
    async fn send(&mut self, link: &mut Link) -> Result<(), Unanswered> {
        let limit = self.gateway.upstream.write;
        // Most requests are sent without waiting, and need no clock.
        let mut deadline = None;
        // Not borrowed from `self`, which is used while the upstream takes it.
        let request = std::mem::take(self.request);
        let mut rest = &request[..];
        let waited = std::future::poll_fn(|cx| {
            loop {
                let stream = Pin::new(&mut link.stream);
                let polled = match rest.is_empty() {
                    true => stream.poll_flush(cx).map_ok(|()| 0),
                    false => stream.poll_write(cx, rest),
                };
                match polled {
                    Poll::Ready(Ok(_)) if rest.is_empty() => {
                        return Poll::Ready(Waited::Upstream(Ok(0)));
                    }
                    Poll::Ready(Ok(0)) => {
                        let ended = Err(io::ErrorKind::WriteZero.into());
                        return Poll::Ready(Waited::Upstream(ended));
                    }
                    Poll::Ready(Ok(written)) => rest = &rest[written..],
                    Poll::Ready(Err(error)) => return Poll::Ready(Waited::Upstream(Err(error))),
                    Poll::Pending => {
                        let deadline = *deadline.get_or_insert_with(|| Instant::now() + limit);
                        let interrupted = self.downstream.poll_interrupted(deadline, cx);
                        return interrupted.map(Waited::Interrupted);
                    }
                }
            }
        });
        let waited = waited.await;
        let is_sent = rest.len() < request.len();
        *self.request = request;
        match waited {
            Waited::Upstream(Ok(_)) => Ok(()),
            Waited::Upstream(Err(_broken)) => Err(Unanswered::Stale { is_sent }),
            Waited::Interrupted(Interrupted::Late) => {
                Err(Unanswered::Ended(self.failed(End::SendTimeout, None)))
            }
            Waited::Interrupted(Interrupted::Gone) => {
                Err(Unanswered::Ended(ExchangeEnd::Cut(End::ClientClosed)))
            }
        }
    }

    /// Forwards an interim response, and removes it from the read bytes.
    async fn interim(&mut self, link: &mut Link, head: &response::Head) -> Result<(), Unanswered> {
        *self.is_answered = true;
        let written = self.downstream.write_interim(&link.head).await;
        written.map_err(|gone| Unanswered::Ended(ExchangeEnd::Cut(End::of_client(&gone))))?;
        link.head.clear();
        link.read.advance(head.length);
        Ok(())
    }

    /// Sends the response to the client.
    async fn forward(&mut self, link: &mut Link, head: &response::Head) -> ExchangeEnd {
        link.read.advance(head.length);
        let mut content = head.content;
        let limit = match head.is_event_stream {
            true => self.gateway.upstream.upgraded,
            false => self.gateway.upstream.read,
        };
        let mut has_ended = false;
        loop {
            let Ok(taken) = content.take(&mut link.read) else {
                // The client sees that the response is cut, however its bytes have arrived.
                let _gone = self.write_piece(link, 0, false, false).await;
                self.status = head.status;
                return self.cut(End::UpstreamInvalid);
            };
            let is_done = content.is_done() || has_ended;
            if let Err(gone) = self
                .write_piece(link, taken, content.is_chunked(), is_done)
                .await
            {
                return ExchangeEnd::Cut(End::of_client(&gone));
            }
            self.status = head.status;
            self.sent += taken as u64;
            if let Some(collecting) = &mut self.collecting
                && !collecting.push(&link.read[..taken])
            {
                self.collecting = None;
            }
            link.read.advance(taken);
            if is_done {
                break;
            }
            match self.read(link, PIECE_BYTES, limit).await {
                Waited::Upstream(Ok(0)) if content.may_end() => has_ended = true,
                Waited::Upstream(Ok(0) | Err(_)) => return self.cut(End::UpstreamClosed),
                Waited::Upstream(Ok(_)) => {}
                Waited::Interrupted(Interrupted::Late) => return self.cut(End::ReadTimeout),
                Waited::Interrupted(Interrupted::Gone) => {
                    return ExchangeEnd::Cut(End::ClientClosed);
                }
            }
        }
        match self.plan.after {
            Connection::Keep if !content.ends_connection() => ExchangeEnd::Whole,
            Connection::Keep | Connection::Close => ExchangeEnd::Last,
        }
    }

    /// Writes the head, if it is not written yet, and a piece of the content.
    async fn write_piece(
        &mut self,
        link: &mut Link,
        length: usize,
        is_chunked: bool,
        is_done: bool,
    ) -> io::Result<()> {
        let framing = Framing {
            is_chunked,
            is_done,
        };
        *self.is_answered = true;
        let piece = &link.read[..length];
        self.downstream.write(&link.head, piece, framing).await?;
        link.head.clear();
        Ok(())
    }

    /// Reads from the upstream.
    async fn read(&mut self, link: &mut Link, bytes: usize, limit: Duration) -> Waited {
        // No clock is read for content that has arrived already.
        let mut deadline = None;
        if link.read.is_empty() {
            link.read.clear();
        }
        link.read.reserve(bytes);
        std::future::poll_fn(|cx| {
            let stream = Pin::new(&mut link.stream);
            match poll_read_buf(stream, cx, &mut link.read) {
                Poll::Ready(read) => Poll::Ready(Waited::Upstream(read)),
                Poll::Pending => {
                    let deadline = *deadline.get_or_insert_with(|| Instant::now() + limit);
                    let interrupted = self.downstream.poll_interrupted(deadline, cx);
                    interrupted.map(Waited::Interrupted)
                }
            }
        })
        .await
    }

    fn recipient(&self) -> Recipient<'_> {
        let is_tls = self.downstream.is_tls();
        Recipient {
            is_head: self.plan.is_head,
            after: self.plan.after,
            date: fast_path::date(self.gateway.clock.now()),
            hsts: is_tls.then(|| self.plan.hsts(self.gateway)).flatten(),
            domain: self.gateway.index.service().domain.as_str(),
        }
    }

    /// Counts a failure before the final response.
    fn failed(&self, end: End, why: Option<&dyn fmt::Display>) -> ExchangeEnd {
        upstream::count(&self.gateway.metrics, end);
        if let Some(why) = why {
            log::debug!(target: "origin", "{why}");
        }
        ExchangeEnd::Failed(end)
    }

    /// Counts a failure within the response.
    fn cut(&self, end: End) -> ExchangeEnd {
        upstream::count(&self.gateway.metrics, end);
        ExchangeEnd::Cut(end)
    }
}
