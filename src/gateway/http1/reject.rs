//! Responses to requests that are rejected.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Buf as _;

use super::Http1;
use crate::gateway::access::{Client, Outcome};
use crate::gateway::ending::{End, Waits};
use crate::gateway::head::{self, Head, Rejection};
use crate::gateway::too_many;
use crate::response::{Connection, MaybeCached, RequestHeaders};
use crate::telemetry::Route;

// === impl Http1 ===

impl Http1 {
    /// Responds 429 to the request at the front of the inbox.
    pub(super) async fn too_many(
        mut self,
        head: usize,
        client: Client,
        wait: Duration,
        is_last: bool,
        since: Instant,
    ) -> Option<Self> {
        let gateway = Arc::clone(&self.handler.gateway);
        // The head was parsed before, so this is no error.
        let parsed = Head::parse(&self.inbox[..head], &gateway.limits);
        let request = parsed.map_or_else(|_| request_line(&self.inbox), |head| head.headers);
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
            .push(&ready, content, connection, hsts, gateway.clock);
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
    pub(super) async fn reject(mut self, rejection: Rejection, since: Instant) {
        let gateway = Arc::clone(&self.handler.gateway);
        let ready = MaybeCached::Built(rejection.response());
        let request = request_line(&self.inbox);
        let content = request.content();
        let is_tls = self.connection.info().is_tls();
        let hsts = is_tls.then(|| gateway.hsts(request.host)).flatten();
        self.batch
            .push(&ready, content, Connection::Close, hsts, gateway.clock);
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

/// Returns the method and the path of a request whose other fields are not read.
fn request_line(inbox: &[u8]) -> RequestHeaders<'_> {
    let (method, path) = head::request_line(inbox);
    RequestHeaders {
        method,
        path,
        ..RequestHeaders::default()
    }
}
