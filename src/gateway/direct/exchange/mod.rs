//! One exchange: a request to an upstream, and its response to the client.
//!
//! It runs in the task of the client's connection. While it waits for the upstream it also watches
//! the client ([`Downstream`]): a client that has gone ends the exchange.

mod ask;
mod connect;
mod forward;

use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use super::downstream::Downstream;
use super::response::{self, Recipient};
use super::{Direct, Plan};
use crate::gateway::access::Outcome;
use crate::gateway::balance::{HeldPlace, Tried};
use crate::gateway::body_rate::BodyRate;
use crate::gateway::copies::{self, Collecting, FoundCopy, Reason};
use crate::gateway::ending::{End, Stopwatch, Waits};
use crate::gateway::file_response::CopyReason;
use crate::gateway::interim::Interim;
use crate::gateway::{Gateway, fast_path, upstream};
use crate::response::Response;
use crate::telemetry::{Route, panics};
use ask::Unanswered;

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
    interim: Interim,
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
            interim: Interim::default(),
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
        if let Some(held) = &mut self.held {
            held.answered(head.status);
        }
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

    fn recipient(&self) -> Recipient<'_> {
        let is_tls = self.downstream.is_tls();
        Recipient {
            is_head: self.plan.is_head,
            after: self.plan.after,
            date: fast_path::date(self.gateway.clock),
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
