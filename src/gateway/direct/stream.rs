//! Streams of HTTP/2 on the direct path.
//!
//! A request without content becomes a head of HTTP/1.1, and takes the same way as a request that
//! came over HTTP/1.1: one parser and one set of rules decide about both. Requests with content,
//! and those with the fields that only the proxy path reads, go there.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use h2::Reason;
use http::header;
use pingora::http::RequestHeader;
use tokio::time::Sleep;

use super::downstream::Http2Downstream;
use super::exchange::{ExchangeEnd, FinalResponse, Parts};
use super::{Arrived, Direct, LastGroup, Plan};
use crate::gateway::access::{Client, Outcome};
use crate::gateway::ending::End;
use crate::gateway::file_response::FileResponse;
use crate::gateway::head::Head;
use crate::gateway::http2_stream::Http2Stream;
use crate::gateway::reads::Reads;
use crate::gateway::write_rate::WriteRate;
use crate::gateway::{Gateway, http2_begun};
use crate::response::Connection;
use crate::telemetry::Route;

/// How long the head of a request is, at first.
const HEAD_BYTES: usize = 1 << 10;

/// How many unused memories of streams a thread keeps.
const UNUSED_MAX: usize = 64;
/// How many bytes of buffers an unused one has at most.
const MEMORY_BYTES_MAX: usize = 8 << 10;

/// A stream that takes the direct path.
#[derive(Debug)]
pub(in crate::gateway) struct PlannedStream {
    plan: Plan,
    memory: StreamMemory,
}

/// The memory of a stream. When it is dropped, the next stream on the same thread uses the memory.
#[derive(Debug)]
struct StreamMemory(Memory);

#[derive(Debug, Default)]
struct Memory {
    /// The head of the request, in the form of HTTP/1.1.
    head: Vec<u8>,
    /// The bytes for the upstream.
    request: Vec<u8>,
    /// The timer of waits for the upstream.
    timer: Option<Pin<Box<Sleep>>>,
}

thread_local! {
    static UNUSED: RefCell<Vec<Memory>> = const { RefCell::new(Vec::new()) };
}

// === impl StreamMemory ===

impl StreamMemory {
    fn take() -> Self {
        Self(UNUSED.with_borrow_mut(Vec::pop).unwrap_or_default())
    }
}

impl Drop for StreamMemory {
    fn drop(&mut self) {
        let mut memory = std::mem::take(&mut self.0);
        if memory.head.capacity() + memory.request.capacity() > MEMORY_BYTES_MAX {
            return;
        }
        memory.head.clear();
        memory.request.clear();
        // At the end of a thread there is no list any more.
        let _kept = UNUSED.try_with(|unused| {
            let mut unused = unused.borrow_mut();
            if unused.len() < UNUSED_MAX {
                unused.push(memory);
            }
        });
    }
}

// === impl PlannedStream ===

impl PlannedStream {
    /// Decides whether a stream takes the direct path. `host` is its host in normal form.
    pub(in crate::gateway) fn of(
        (gateway, direct): (&Gateway, &Direct),
        stream: &Http2Stream,
        host: &str,
        client: Client,
        group: &mut LastGroup,
    ) -> Option<Self> {
        let request = stream.req_header();
        let has_length = request.headers.contains_key(header::CONTENT_LENGTH);
        if !stream.is_body_done() || has_length {
            return None;
        }
        if !client.tls && gateway.may_redirect(host, request.uri.path()) {
            return None;
        }
        let mut memory = StreamMemory::take();
        let Memory {
            head, request: out, ..
        } = &mut memory.0;
        write_http1_head(request, head)?;
        let parsed = Head::parse(head, &gateway.limits).ok()?;
        let arrived = Arrived {
            head: parsed,
            bytes: head,
            length: head.len(),
            host,
            client,
            version: "2.0",
            after: Connection::Keep,
        };
        let plan = Plan::of((gateway, direct), arrived, group, out)?;
        Some(Self { plan, memory })
    }

    /// Passes the request on. Returns whether the proxy path has to do so.
    ///
    /// This future borrows everything: a large value that it owned would be copied several times.
    pub(in crate::gateway) async fn serve(
        &mut self,
        (gateway, direct, reads): (&Arc<Gateway>, &Direct, &Reads),
        stream: &mut Http2Stream,
        since: Instant,
    ) -> bool {
        let Self { plan, memory } = self;
        let Memory {
            head,
            request,
            timer,
        } = &mut memory.0;
        let mut write_rate = WriteRate::of_stream(&gateway.limits, &gateway.metrics);
        let parts = Parts {
            gateway,
            direct,
            plan,
            request,
            downstream: Http2Downstream {
                stream,
                write_rate: &mut write_rate,
                head,
                is_tls: plan.client.tls,
                timer,
            },
        };
        let finished = parts.exchange(since).await;
        match finished.ended {
            ExchangeEnd::Whole | ExchangeEnd::Last | ExchangeEnd::Proxy => {}
            // The client sees that the response is cut.
            ExchangeEnd::Cut(_) => stream.shutdown_with_reason(Reason::INTERNAL_ERROR),
            ExchangeEnd::Failed(end) => {
                let own = finished.into_response(end, plan, gateway, head);
                let request = (&*plan, &**head);
                let sending = send(own, end, request, stream, (gateway, reads), since);
                Box::pin(sending).await;
                return false;
            }
        }
        finished.ended == ExchangeEnd::Proxy
    }
}

/// Sends the response to a request that failed before the client got anything.
async fn send(
    own: FinalResponse,
    end: End,
    (plan, head): (&Plan, &[u8]),
    stream: &mut Http2Stream,
    (gateway, reads): (&Arc<Gateway>, &Reads),
    since: Instant,
) {
    let FinalResponse {
        response,
        copy,
        waits,
    } = own;
    if response.body.memory().is_none() && response.body_bytes(plan.own_content()) > 0 {
        let file = FileResponse {
            route: Route::Origin,
            response,
            request: plan.logged(head),
            client: plan.client(),
            since,
            copy,
        };
        return Box::pin(file.send_http2(stream, gateway, reads)).await;
    }
    let bytes = http2_begun::respond_in_task(gateway, stream, &response).await;
    let took = since.elapsed();
    let status = response.status;
    gateway.metrics.answered(Route::Origin, status, took);
    let outcome = Outcome {
        route: Route::Origin,
        status,
        bytes,
        took,
        end,
        waits,
        copy_age: copy.map(|copy| copy.age),
    };
    plan.log(gateway, head, outcome);
}

/// Writes the head of a request in the form of HTTP/1.1; `None` if it names no host.
fn write_http1_head(request: &RequestHeader, head: &mut Vec<u8>) -> Option<()> {
    let host = request.uri.authority()?;
    let target = request.uri.path_and_query()?;
    head.reserve(HEAD_BYTES);
    for part in [
        request.method.as_str(),
        " ",
        target.as_str(),
        " HTTP/1.1\r\nhost: ",
        host.as_str(),
        "\r\n",
    ] {
        head.extend_from_slice(part.as_bytes());
    }
    let fields = request.headers.iter();
    for (name, value) in fields.filter(|(name, _)| **name != header::COOKIE) {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    // RFC 9113 §8.2.3: the parts of a cookie become one field.
    let mut before: &[u8] = b"cookie: ";
    for cookie in request.headers.get_all(header::COOKIE) {
        head.extend_from_slice(before);
        head.extend_from_slice(cookie.as_bytes());
        before = b"; ";
    }
    if before == b"; " {
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(request: http::request::Builder) -> (Option<()>, String) {
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let mut head = Vec::new();
        let written = write_http1_head(&RequestHeader::from(parts), &mut head);
        (written, String::from_utf8(head).unwrap())
    }

    #[test]
    fn a_request_becomes_a_head_of_http_1_1_with_one_cookie() {
        let request = http::Request::get("https://docs.acme.test/a?b")
            .header("accept", "c")
            .header("cookie", "d=e")
            .header("x-f", "g")
            .header("cookie", "h=i");
        let expected = "GET /a?b HTTP/1.1\r\nhost: docs.acme.test\r\naccept: c\r\nx-f: g\r\n\
            cookie: d=e; h=i\r\n\r\n";
        assert_eq!(head(request), (Some(()), expected.to_owned()));
        let request = http::Request::head("https://docs.acme.test/");
        let expected = "HEAD / HTTP/1.1\r\nhost: docs.acme.test\r\n\r\n";
        assert_eq!(head(request), (Some(()), expected.to_owned()));
        assert_eq!(head(http::Request::get("/a")).0, None);
    }

    #[test]
    fn the_next_stream_uses_the_memory_again_unless_it_is_large() {
        let unused = || UNUSED.with_borrow(Vec::len);
        for (bytes, is_kept) in [
            (MEMORY_BYTES_MAX / 4, true),
            (MEMORY_BYTES_MAX * 3 / 4, false),
        ] {
            let mut memory = StreamMemory::take();
            assert_eq!(unused(), 0);
            for memory in [&mut memory.0.head, &mut memory.0.request] {
                memory.reserve_exact(bytes);
                memory.push(b'a');
            }
            drop(memory);
            assert_eq!(unused(), usize::from(is_kept), "{bytes}");
        }
        let memories: Vec<StreamMemory> = std::iter::repeat_with(StreamMemory::take)
            .take(UNUSED_MAX + 1)
            .collect();
        assert!(memories.iter().all(|memory| memory.0.head.is_empty()));
        drop(memories);
        assert_eq!(unused(), UNUSED_MAX);
    }
}
