//! Sends the request, and reads the head of the response.

use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Instant;

use bytes::Buf as _;
use tokio::io::AsyncWrite as _;

use super::forward::Waited;
use super::{Exchange, ExchangeEnd};
use crate::gateway::direct::downstream::{Downstream, Interrupted};
use crate::gateway::direct::pool::Link;
use crate::gateway::direct::response;
use crate::gateway::ending::End;
use crate::gateway::interim;

/// How many bytes the first read of a response gets: most responses fit.
const FIRST_READ_BYTES: usize = 16 << 10;
/// A head up to this length is parsed each time when more of it has arrived.
const SHORT_HEAD_BYTES: usize = 8 << 10;

/// Why the head of a response was not read.
pub(super) enum Unanswered {
    /// The connection ended before anything was received.
    Stale {
        /// Whether the upstream may have a part of the request.
        is_sent: bool,
    },
    Ended(ExchangeEnd),
}

// === impl Exchange ===

impl<D: Downstream> Exchange<'_, D> {
    /// Sends the request and reads the head of the response. Interim responses go to the client.
    pub(super) async fn ask(&mut self, link: &mut Link) -> Result<response::Head, Unanswered> {
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
        if !self.interim.add(head.length) {
            let invalid = self.failed(End::UpstreamInvalid, Some(&interim::TOO_MANY));
            return Err(Unanswered::Ended(invalid));
        }
        *self.is_answered = true;
        let written = self.downstream.write_interim(&link.head).await;
        written.map_err(|gone| Unanswered::Ended(ExchangeEnd::Cut(End::of_client(&gone))))?;
        link.head.clear();
        link.read.advance(head.length);
        Ok(())
    }
}
