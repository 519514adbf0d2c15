//! The fast path: responses to all requests that have arrived and that it can handle, in one write.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use bytes::Buf as _;

use super::{FAILED, Http1, Request};
use crate::gateway::access::{Client, Outcome};
use crate::gateway::direct::{Arrived, Plan};
use crate::gateway::ending::{End, Waits};
use crate::gateway::fast_path::{self, FastResponse};
use crate::gateway::head::{self, Framing, Head, Rejection};
use crate::gateway::mcp;
use crate::response::Connection;
use crate::telemetry::Route;

/// The next step of the loop after the fast path.
pub(super) enum Next {
    /// It waits for the next head.
    Wait,
    /// It ends: the responses could not be written.
    Closed,
    /// It closes the connection: the last response has been written.
    Last {
        /// Whether the client has asked for that, and has sent nothing more.
        is_agreed: bool,
    },
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
    /// It takes the direct path, as [`Http1::plan`] says.
    Direct(Request),
    /// It takes the proxy path.
    Proxy(Request),
}

// === impl Http1 ===

impl Http1 {
    /// Responds to the requests in the inbox, up to the first that the fast path cannot handle.
    ///
    /// The head of the first request has `length` bytes.
    pub(super) async fn fast_path(&mut self, length: usize, since: Instant) -> Next {
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
        if let Next::Last { .. } = next {
            connection.end_after_next_write();
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
            plan,
            last_group,
            batch,
            served,
            ..
        } = self;
        let gateway = &handler.gateway;
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
            let mut end = at + length;
            let found = match head.host_name {
                Some(host) if is_redirected(host, head.headers.path) => None,
                Some(host) if head.is_fast_path_form() => {
                    fast_path::find(gateway, &head.headers, host)
                }
                Some(host) => match small_body(&head, &inbox[end..]) {
                    Some(body) => {
                        end += body.len();
                        mcp::find(gateway, &head.headers, host, body, client.counted)
                    }
                    None => None,
                },
                None => None,
            };
            let after = match is_last {
                true => Connection::Close,
                false => Connection::Keep,
            };
            let Some(FastResponse { response, hsts }) = &found else {
                let request = Request {
                    head: length,
                    form: head.form,
                    framing: head.framing,
                    is_last,
                };
                let host = head
                    .host_name
                    .filter(|host| !is_redirected(host, head.headers.path));
                let direct = &handler.direct;
                *plan = host.and_then(|host| {
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
                    Some(_) => Next::Direct(request),
                    None => Next::Proxy(request),
                };
            };
            let content = head.headers.content();
            let hsts = hsts.filter(|_| connection.info().is_tls());
            batch.push(response, content, after, hsts, gateway.clock);
            let outcome = Outcome {
                route: Route::FastPath,
                status: response.response().status,
                bytes: response.response().body_bytes(content) as u64,
                took: gateway.took(since),
                end: End::Complete,
                waits: Waits::default(),
                copy_age: None,
            };
            gateway.log(client, &head.headers, outcome);
            at = end;
            if is_last {
                let is_agreed = !head.keep_alive && inbox.len() == at;
                break Next::Last { is_agreed };
            }
            // Empty lines are ignored, as before the first request of a batch.
            while inbox[at..].starts_with(b"\r\n") {
                at += 2;
            }
            match head::length(&inbox[at..], 0) {
                Some(next) if !batch.is_full() && next <= gateway.limits.head_bytes_max => {
                    length = next;
                }
                _ => break Next::Wait,
            }
        };
        match at == inbox.len() {
            // All of its memory is free for the next head.
            true => inbox.clear(),
            false => inbox.advance(at),
        }
        next
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
