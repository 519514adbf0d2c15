//! The fast path: responses from memory, without pingora.
//!
//! It responds only to simple requests: `GET` or `HEAD`, a path that is exactly the path of a
//! document or of a cached page, one `Host` in normal form, and no field that changes the
//! response in another way. Every other request goes to the proxy path, and so does every
//! request whose response would be an error. Over HTTP/1.1 the responses to pipelined requests
//! are collected in a [`Batch`] and leave in one write; once its buffers have grown, nothing is
//! allocated. The last request of a connection is no exception: its response says so, and the
//! connection closes.

use std::cell::Cell;
use std::io::{self, IoSlice, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use bytes::Bytes;

use super::Gateway;
use super::connection::ClientConnection;
use super::memory_file;
use crate::clock::Clock;
use crate::discovery::paths;
use crate::index::Served;
use crate::origin;
use crate::response::{
    self, Connection, Content, DATE_BYTES, MaybeCached, RequestHeaders, Response,
};
use crate::site::{Hsts, Origin};
use crate::telemetry::Route;

/// How long a field may be that the fast path reads.
const FIELD_BYTES_MAX: usize = 256;
/// How many responses leave in one write.
pub(super) const BATCH_MAX: usize = 16;
/// A body of up to this length is copied behind its head, so that both leave in one write and one
/// TLS record.
const COPIED_BYTES_MAX: usize = 8 << 10;
/// The empty line at the end of a head.
const HEAD_END: &[u8] = b"\r\n";
/// The first size of the buffer of heads; most batches are one response.
const FIRST_BYTES: usize = 2 << 10;
/// Most heads are not longer than this.
const HEAD_BYTES_TYPICAL: usize = 4 << 10;

/// Responses to be written together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Heads, with small bodies behind them.
    text: Vec<u8>,
    /// Large bodies, and where in `text` they belong.
    bodies: Vec<(usize, Bytes)>,
    statuses: [u16; BATCH_MAX],
    count: usize,
}

/// A response of the fast path.
#[derive(Debug)]
pub(super) struct FastResponse {
    pub(super) response: MaybeCached,
    /// `Strict-Transport-Security` of its site, for a response over TLS.
    pub(super) hsts: Option<Hsts>,
}

/// Finds the response to a request, in either version of HTTP; `None` if the proxy path has to
/// respond. `host` is the normal form of the host.
///
/// A page is found if its response is cached. Otherwise it has to be read from the store, which
/// the proxy path does, and the next request finds it here.
///
/// A panic is logged and counted, and then the proxy path responds.
pub(super) fn find(
    gateway: &Gateway,
    headers: &RequestHeaders<'_>,
    host: &str,
) -> Option<FastResponse> {
    let mut found = None;
    // The index is only read, and the response is there as a whole: nothing is half changed after
    // a panic.
    let find = AssertUnwindSafe(|| found = find_response(gateway, headers, host));
    let _logged = catch_unwind(find);
    found
}

fn find_response(
    gateway: &Gateway,
    headers: &RequestHeaders<'_>,
    host: &str,
) -> Option<FastResponse> {
    let is_short = |field: Option<&[u8]>| field.is_none_or(|field| field.len() < FIELD_BYTES_MAX);
    let takes = gateway.fast_path
        && headers.is_simple_get()
        && is_short(headers.accept_encoding)
        && is_short(headers.conditions.if_none_match);
    if !takes {
        return None;
    }
    // Not the value of the closure: the response would be copied for each caller in between.
    let mut found = None;
    gateway.index.with(host, |served| {
        // A redirect of the site may have this path too; the MCP server has priority.
        if origin::find_mcp(&served.site, headers.path).is_some() {
            return;
        }
        let response = match paths::find(headers.path, &served.site.base_path) {
            Some(document) => {
                let response = gateway.index.response(served, host, document, headers);
                MaybeCached::Built(response)
            }
            None => match page(served, headers) {
                Some(page) => page,
                None => return,
            },
        };
        if is_sent(response.response(), headers) {
            served.count(headers, response.response());
            let hsts = gateway.hsts_of(&served.site);
            found = Some(FastResponse { response, hsts });
        }
    });
    found
}

/// Returns whether the fast path sends a response. Once the path is normalised, it may be the path
/// of another document. A file is read while it is sent, which the proxy path does.
fn is_sent(response: &Response, headers: &RequestHeaders<'_>) -> bool {
    let is_in_memory =
        response.body.memory().is_some() || response.body_bytes(headers.content()) == 0;
    response.status < 400 && is_in_memory
}

/// Finds a page of a site with the embedded origin.
fn page(served: &Served, headers: &RequestHeaders<'_>) -> Option<MaybeCached> {
    let path = headers.path;
    (served.site.origin == Origin::Embedded && is_normal(path))
        .then(|| origin::respond_from_memory(served, path, headers))
        .flatten()
}

/// Returns whether normalising certainly does not change a path: it has no escapes, parameters,
/// backslashes, empty segments, or segments that begin with a dot.
fn is_normal(path: &str) -> bool {
    let mut before = 0;
    path.bytes().all(|byte| {
        let changes = match byte {
            b'%' | b';' | b'\\' => true,
            b'/' | b'.' => before == b'/',
            _ => false,
        };
        before = byte;
        !changes
    })
}

// === impl Batch ===

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.count == BATCH_MAX
    }

    /// Adds a response, with its `Strict-Transport-Security`.
    pub(super) fn push(
        &mut self,
        ready: &MaybeCached,
        content: Content,
        connection: Connection,
        hsts: Option<Hsts>,
        clock: Clock,
    ) {
        let date = date(clock);
        if self.text.capacity() == 0 {
            self.text.reserve(FIRST_BYTES);
        }
        ready.write_head(&mut self.text, &date, connection);
        add_hsts(&mut self.text, hsts);
        let response = ready.response();
        let length = response.body_bytes(content);
        match response.body.memory() {
            Some(body) if length > COPIED_BYTES_MAX => {
                self.bodies.push((self.text.len(), body.clone()));
            }
            Some(body) => self.text.extend_from_slice(&body[..length]),
            None => debug_assert_eq!(length, 0, "the proxy path sends files"),
        }
        self.statuses[self.count] = response.status;
        self.count += 1;
    }

    /// Writes and counts all responses; the batch is empty afterwards. Returns the time at the end.
    pub(super) async fn write(
        &mut self,
        connection: &mut ClientConnection,
        gateway: &Gateway,
        route: Route,
        since: Instant,
    ) -> io::Result<Instant> {
        let written = self.send(connection).await;
        let now = Instant::now();
        let took = now - since;
        for status in &self.statuses[..self.count] {
            gateway.metrics.answered(route, *status, took);
        }
        self.clear();
        written.map(|()| now)
    }

    async fn send(&self, connection: &mut ClientConnection) -> io::Result<()> {
        match &self.bodies[..] {
            [] => return connection.write_whole(&self.text).await,
            [(_, body)] if self.count == 1 && connection.can_write_files() => {
                if let Some(file) = memory_file::of(&self.text, body) {
                    let length = self.text.len() + body.len();
                    return connection.write_file(&file, length).await;
                }
            }
            _ => {}
        }
        // Two slices for each large body and one for the rest.
        let mut slices: [IoSlice<'_>; 2 * BATCH_MAX + 1] =
            std::array::from_fn(|_| IoSlice::new(&[]));
        let mut from = 0;
        let mut used = 0;
        for (at, body) in &self.bodies {
            slices[used] = IoSlice::new(&self.text[from..*at]);
            slices[used + 1] = IoSlice::new(body);
            from = *at;
            used += 2;
        }
        slices[used] = IoSlice::new(&self.text[from..]);
        connection.write_all_vectored(&mut slices[..=used]).await
    }

    /// Drops all responses.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.bodies.clear();
        self.count = 0;
    }

    /// Frees the memory of a large batch, except the amount that one response needs.
    pub(super) fn shrink(&mut self) {
        self.text.shrink_to(HEAD_BYTES_TYPICAL + COPIED_BYTES_MAX);
    }
}

/// Adds `Strict-Transport-Security` to the head at the end of a text.
pub(super) fn add_hsts(text: &mut Vec<u8>, hsts: Option<Hsts>) {
    let Some(hsts) = hsts else {
        return;
    };
    text.truncate(text.len() - HEAD_END.len());
    // Writing into memory cannot fail.
    let _infallible = write!(text, "Strict-Transport-Security: {hsts}\r\n");
    text.extend_from_slice(HEAD_END);
}

/// Formats `Date`, once a second on each thread.
pub(super) fn date(clock: Clock) -> [u8; DATE_BYTES] {
    thread_local! {
        static LAST: Cell<(u64, [u8; DATE_BYTES])> =
            const { Cell::new((u64::MAX, [0; DATE_BYTES])) };
    }
    let seconds = clock.unix_seconds();
    let (of, last) = LAST.get();
    if of == seconds {
        return last;
    }
    let date = response::date(seconds);
    LAST.set((seconds, date));
    date
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalising_does_not_change_a_normal_path() {
        let parts = ["/", ".", "a", "%41", ";b", "\\", "/guide", "md"];
        let mut normal = 0;
        for n in 0..parts.len().pow(4) {
            let at = |place: u32| parts[n / parts.len().pow(place) % parts.len()];
            let path = format!("/{}{}{}{}", at(0), at(1), at(2), at(3));
            if is_normal(&path) {
                assert_eq!(paths::normalise(&path), path);
                normal += 1;
            }
        }
        assert!(normal > 100, "{normal}");
        for path in ["/", "/guide", "/guide.md", "/a/b.c/d", "/guide/"] {
            assert!(is_normal(path), "{path}");
        }
    }

    #[test]
    fn the_date_is_formatted_once_for_each_second() {
        for seconds in [0, 0, 784_111_777, 1_795_206_656] {
            assert_eq!(date(Clock::fixed_at(seconds)), response::date(seconds));
        }
        assert_eq!(
            &date(Clock::fixed_at(784_111_777)),
            b"Sun, 06 Nov 1994 08:49:37 GMT"
        );
    }
}
