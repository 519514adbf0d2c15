//! Exchanges that fail: which attempt is repeated, and which response the client gets.
//!
//! Connecting is retried up to [`UpstreamLimits::retries_max`] times, at another server of the site
//! if it has one ([`balance`](crate::gateway::balance)). Once a request may have reached the
//! upstream, only pingora retries it, and only if the method is idempotent, the whole body is still
//! available, and the upstream has closed an idle connection.
//!
//! [`UpstreamLimits::retries_max`]: crate::gateway::UpstreamLimits::retries_max

use pingora::prelude::Error;
use pingora::proxy::{FailToProxy, Session};
use pingora::{ErrorSource, ErrorType};

use super::respond::read_small_body;
use super::{Proxy, RequestCtx, single_request_of};
use crate::gateway::ending::End;
use crate::gateway::request::is_http2;
use crate::gateway::silence::SILENT;
use crate::gateway::single_request::SingleRequestStream;
use crate::gateway::upstream;
use crate::response::Problem;

// === impl Proxy ===

impl Proxy {
    /// Counts a connection that failed, and decides whether another one is tried.
    pub(super) fn not_connected(&self, ctx: &mut RequestCtx, mut error: Box<Error>) -> Box<Error> {
        upstream::count(&self.gateway.metrics, End::of_upstream_error(&error, false));
        ctx.retries += 1;
        let has_others = ctx.tries_others();
        let may_pass = has_others || upstream::may_pass(&error);
        let is_within = ctx.retries <= self.gateway.upstream.retries_max;
        error.set_retry(ctx.leave(may_pass && is_within));
        error
    }

    /// Decides whether a request is sent again after an error of its exchange.
    pub(super) fn interrupted(
        &self,
        session: &Session,
        mut error: Box<Error>,
        ctx: &mut RequestCtx,
        is_reused: bool,
    ) -> Box<Error> {
        let is_idempotent = session.req_header().method.is_idempotent();
        if !is_idempotent || session.as_ref().retry_buffer_truncated() {
            error.set_retry(false);
            return error;
        }
        error.retry.decide_reuse(is_reused);
        // The server has closed a new connection without a response: another one may have it.
        let is_closed = End::of_upstream_error(&error, false) == End::UpstreamClosed;
        let is_unanswered = ctx.stopwatch.is_some_and(|it| !it.is_answered())
            && session.response_written().is_none();
        let is_of_server = error.esource() == &ErrorSource::Upstream && is_closed && is_unanswered;
        let is_within = ctx.retries < self.gateway.upstream.retries_max;
        if is_of_server && !error.retry() && is_within && ctx.tries_others() && ctx.leave(true) {
            upstream::count(&self.gateway.metrics, End::UpstreamClosed);
            ctx.retries += 1;
            error.set_retry(true);
        }
        error
    }

    /// Responds to a request that is not sent again: with a copy of an earlier response, or with an
    /// error.
    pub(super) async fn give_up(
        &self,
        session: &mut Session,
        error: &Error,
        ctx: &mut RequestCtx,
    ) -> FailToProxy {
        let is_answered = ctx.stopwatch.is_some_and(|it| it.is_answered());
        let fault = single_request_of(session).and_then(SingleRequestStream::fault);
        let end = match (fault, error.etype(), error.esource()) {
            _ if ctx.found.is_some() => End::UpstreamError,
            (Some(408), ..) | (None, ErrorType::ReadTimedout, ErrorSource::Downstream) => {
                End::BodyTimeout
            }
            (Some(504), ..) => End::silent(is_answered),
            (None, kind, _) if *kind == SILENT => End::silent(is_answered),
            (Some(_), ..) | (None, ErrorType::HTTPStatus(_), _) => End::RequestInvalid,
            // The client has closed the connection, or is too slow.
            (
                None,
                ErrorType::WriteError
                | ErrorType::WriteTimedout
                | ErrorType::ReadError
                | ErrorType::ConnectionClosed,
                ErrorSource::Downstream,
            ) => End::of_client_error(error),
            (None, _, ErrorSource::Downstream) => End::RequestInvalid,
            (None, _, ErrorSource::Upstream) => End::of_upstream_error(error, is_answered),
            (None, ..) => End::Failed,
        };
        ctx.end = Some(end);
        let (mut status, mut detail) = end.status_and_detail();
        match (fault, error.etype()) {
            (Some(400..=499), _) => {}
            (None, ErrorType::HTTPStatus(sent)) => {
                (status, detail) = (*sent, "the request cannot be forwarded");
            }
            _ if end == End::RequestInvalid => detail = "the request cannot be read",
            _ => {}
        }
        // `fail_to_connect` has counted the failure of the last connection.
        let is_counted = ctx.retries > 0 && ctx.held.is_none() && !is_answered;
        if end.upstream_failure().is_some() && !is_counted {
            upstream::count(&self.gateway.metrics, end);
            log::debug!(target: "origin", "{error}");
        }
        if end == End::Failed {
            log::error!(target: "gateway", "{error}");
        }
        // A final response may follow an interim one.
        let written = session.response_written();
        let is_unanswered = written.is_none_or(|written| written.status.is_informational());
        if status > 0 && is_unanswered {
            session.set_keepalive(None);
            if ctx.copy.is_some() && status != 408 {
                read_small_body(session).await;
                if self.send_copy(session, end, ctx).await {
                    return FailToProxy {
                        error_code: status,
                        can_reuse_downstream: false,
                    };
                }
            }
            if status != 408 {
                read_small_body(session).await;
            }
            let response =
                match status == end.status_and_detail().0 && detail == end.status_and_detail().1 {
                    true => end.response(),
                    false => Problem::new(known_status(status), detail).response(),
                };
            let mut sent = self.send(session, response).await;
            if is_http2(session.req_header()) && status != 408 {
                // Reads the rest of the body: a reset could take the response away.
                sent = sent.and(session.finish_body().await);
            }
            if let Err(error) = sent {
                log::debug!(target: "gateway", "send an error response: {error}");
            }
        }
        FailToProxy {
            error_code: status,
            can_reuse_downstream: false,
        }
    }
}

/// Converts a status from pingora to a status that our problem responses use.
fn known_status(status: u16) -> u16 {
    match status {
        400 | 404 | 405 | 408 | 413 | 414 | 431 | 500 | 501 | 502 | 503 | 504 => status,
        401..=499 => 400,
        _ => 502,
    }
}
