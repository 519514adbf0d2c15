//! Waits for a complete request head.

use std::task::Poll;
use std::time::Instant;

use bytes::{Buf as _, BytesMut};

use super::Http1;
use crate::gateway::head::{self, Rejection};
use crate::gateway::single_request;

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

/// How a wait for a request head ended.
pub(super) enum Waited {
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

// === impl Http1 ===

impl Http1 {
    /// Waits until the inbox begins with a complete head.
    ///
    /// The first head must arrive within [`Limits::head`](crate::gateway::Limits::head) of the beginning
    /// of the connection, and a later head within the same time of its first byte. Between two
    /// requests a connection may be idle for [`Limits::idle`](crate::gateway::Limits::idle).
    pub(super) async fn wait_for_head(&mut self) -> Waited {
        let limits = &self.handler.gateway.limits;
        let (head_time, head_bytes_max) = (limits.head, limits.head_bytes_max);
        let mut has_begun = !self.inbox.is_empty();
        let timeout = if has_begun || self.served == 0 {
            head_time
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
            if let Some(length) = head::length(&self.inbox, searched) {
                self.activity.set_busy(true, now);
                return if length > head_bytes_max {
                    Waited::Rejected(TOO_LARGE)
                } else {
                    Waited::Head(length)
                };
            }
            searched = self.inbox.len().saturating_sub(3);
            if let Some(rejection) = head::reject_early(&self.inbox, &self.handler.gateway.limits) {
                return Waited::Rejected(rejection);
            }
            if std::mem::take(&mut has_just_begun) {
                deadline = Instant::now() + head_time;
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
}
