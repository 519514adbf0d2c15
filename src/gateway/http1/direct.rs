//! The direct path: the request at the front of the inbox goes to an upstream without pingora.

use std::time::Instant;

use bytes::Buf as _;

use super::{Http1, Request};
use crate::gateway::access::Outcome;
use crate::gateway::direct::{ExchangeEnd, FinalResponse, Http1Downstream, Parts};
use crate::gateway::file_response::FileResponse;
use crate::response::{Connection, MaybeCached};
use crate::telemetry::Route;

// === impl Http1 ===

impl Http1 {
    /// Passes the request at the front of the inbox on, without pingora.
    pub(super) async fn direct(&mut self, request: Request, since: Instant) -> ExchangeEnd {
        let Some(plan) = &self.plan.take() else {
            return ExchangeEnd::Proxy;
        };
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
                let is_tls = self.connection.info().is_tls();
                let hsts = is_tls.then(|| plan.hsts(gateway)).flatten();
                self.batch.push(&ready, content, after, hsts, gateway.clock);
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
}
