//! Sends the response to the client while it arrives.

use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Buf as _;
use tokio_util::io::poll_read_buf;

use super::{Exchange, ExchangeEnd};
use crate::gateway::direct::downstream::{Downstream, Framing, Interrupted};
use crate::gateway::direct::pool::Link;
use crate::gateway::direct::response;
use crate::gateway::ending::End;
use crate::response::Connection;

/// How many bytes a further read gets.
const PIECE_BYTES: usize = 32 << 10;

/// How a wait for the upstream ended.
pub(super) enum Waited {
    Upstream(io::Result<usize>),
    Interrupted(Interrupted),
}

// === impl Exchange ===

impl<D: Downstream> Exchange<'_, D> {
    /// Sends the response to the client.
    pub(super) async fn forward(&mut self, link: &mut Link, head: &response::Head) -> ExchangeEnd {
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
            Connection::Keep => ExchangeEnd::Whole,
            Connection::Close => ExchangeEnd::Last,
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
    pub(super) async fn read(&mut self, link: &mut Link, bytes: usize, limit: Duration) -> Waited {
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
}
