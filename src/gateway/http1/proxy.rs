//! The proxy path: pingora gets the connection for one request.

use std::time::Instant;

use bytes::BytesMut;
use pingora::apps::HttpServerApp as _;
use pingora::protocols::http::ServerSession;

use super::{FAILED, Http1, Request};
use crate::gateway::return_slot::ReturnSlot;
use crate::gateway::single_request::{self, SingleRequestStream};
use crate::response::Connection;
use crate::telemetry::panics;

// === impl Http1 ===

impl Http1 {
    /// Gives the connection to pingora for the request at the front of the inbox.
    pub(super) async fn proxy(self, request: Request, since: Instant) -> Option<Self> {
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
            plan: None,
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
}
