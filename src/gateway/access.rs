//! The access log: one line of JSON for each request, on both paths.
//!
//! A request never waits for the disk. Its line is appended to a buffer in memory, under a lock
//! that is held while about 200 bytes are copied. A thread writes the buffer out. If the disk is
//! too slow and the buffer is full, lines are dropped and counted. Appending allocates nothing
//! once the buffers have grown.
//!
//! A TLS failure or a rejected HTTP/2 stream has no request head: it is counted and not logged.
//! Query strings, cookies and credentials are never logged.
//!
//! The line of a response of the fast path is made when the response is ready: `ended` is
//! `complete` before the client has it. If the client does not take it, the metric counts that.

use std::io::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use prometheus::IntCounter;

use super::ending::{End, Waits};
use crate::response::RequestHeaders;
use crate::telemetry::log_file::LogFile;
use crate::telemetry::{Route, logging, panics};

/// How many bytes of lines may wait.
const BUFFER_BYTES_MAX: usize = 8 << 20;
/// How long a line may wait before it is written.
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);
/// The number of bytes at which the writer is woken at once.
const FLUSH_BYTES: usize = 256 << 10;

/// The target of access lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// No access log.
    Off,
    /// Standard output.
    #[default]
    Stdout,
    /// A file, appended to, which other programs may rotate ([`LogFile`]).
    File(PathBuf),
}

/// The connection that a request came over.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// The address of the connection.
    pub peer: IpAddr,
    /// The client that the request counts for: the address of the connection, or the client that
    /// a trusted peer names.
    pub counted: IpAddr,
    /// `http/1.0`, `http/1.1` or `h2`.
    pub protocol: &'static str,
    /// Whether the connection is encrypted.
    pub tls: bool,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The part that responded.
    pub route: Route,
    /// The status of the response; 0 if there was none.
    pub status: u16,
    /// How many bytes of content were sent.
    pub bytes: u64,
    /// The time from the end of the request head to the end of the response.
    pub took: Duration,
    /// How the request ended.
    pub end: End,
    /// The parts of the time in which it waited for an upstream.
    pub waits: Waits,
    /// The age of the copy that was sent, in seconds; `end` says why it was sent.
    pub copy_age: Option<u64>,
}

/// One request, to be logged. Method, host and path are empty if the head could not be read.
#[derive(Clone, Copy, Debug)]
pub struct Line<'r> {
    /// When the response was finished.
    pub time: SystemTime,
    /// Where the request came from.
    pub client: Client,
    /// The request.
    pub request: &'r RequestHeaders<'r>,
    /// Its outcome.
    pub outcome: Outcome,
}

/// The access log of a process.
#[derive(Debug)]
pub struct Access {
    shared: Option<Arc<Shared>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    dropped: IntCounter,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<u8>,
    closed: bool,
    /// Whether the file is to be opened again, also without a line.
    reopens: bool,
}

// === impl Access ===

impl Access {
    /// Starts the log.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened for appending.
    pub fn start(target: &Target, dropped: IntCounter) -> io::Result<Self> {
        let mut out = match target {
            Target::Off => {
                return Ok(Self {
                    shared: None,
                    writer: Mutex::new(None),
                    dropped,
                });
            }
            Target::Stdout => Out::Stdout(io::stdout()),
            Target::File(path) => Out::File(LogFile::open(path)?),
        };
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            wake: Condvar::new(),
        });
        let lost = dropped.clone();
        let writer = panics::essential_thread("access-log", {
            let shared = Arc::clone(&shared);
            move || shared.write_out(&mut out, &lost)
        })?;
        Ok(Self {
            shared: Some(shared),
            writer: Mutex::new(Some(writer)),
            dropped,
        })
    }

    /// Returns whether there is an access log; without one, callers need not collect the values
    /// of a line.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.shared.is_some()
    }

    /// Logs a request.
    pub fn log(&self, line: &Line<'_>) {
        let Some(shared) = &self.shared else { return };
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.lines.len() > BUFFER_BYTES_MAX {
            self.dropped.inc();
            return;
        }
        let before = state.lines.len();
        line.write(&mut state.lines);
        if before < FLUSH_BYTES && state.lines.len() >= FLUSH_BYTES {
            shared.wake.notify_one();
        }
    }

    /// Opens the file at the path again, if another one is there: the signal of programs that
    /// rotate files. Without it, that happens with the next lines.
    pub fn reopen(&self) {
        let Some(shared) = &self.shared else { return };
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.reopens = true;
        drop(state);
        shared.wake.notify_one();
    }

    /// Writes the rest of the lines and ends the log.
    pub fn close(&self) {
        let Some(shared) = &self.shared else { return };
        shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .closed = true;
        shared.wake.notify_one();
        let writer = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // A panic in it ends the process.
        let _joined = writer.map(JoinHandle::join);
    }
}

// === impl Shared ===

impl Shared {
    fn write_out(&self, out: &mut Out, lost: &IntCounter) {
        let mut lines = Vec::new();
        loop {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let idle = |state: &mut State| {
                state.lines.len() < FLUSH_BYTES && !state.closed && !state.reopens
            };
            let waited = self.wake.wait_timeout_while(state, FLUSH_INTERVAL, idle);
            let (mut state, _elapsed) = waited.unwrap_or_else(PoisonError::into_inner);
            std::mem::swap(&mut lines, &mut state.lines);
            let closed = state.closed;
            let reopens = std::mem::take(&mut state.reopens);
            drop(state);
            if reopens {
                out.reopen();
            }
            if let Err(error) = out.write(&lines) {
                lost.inc_by(memchr::memchr_iter(b'\n', &lines).count() as u64);
                log::warn!("cannot write the access log: {error}");
            }
            lines.clear();
            if closed {
                return;
            }
        }
    }
}

/// An open target.
#[derive(Debug)]
enum Out {
    Stdout(io::Stdout),
    File(LogFile),
}

// === impl Out ===

impl Out {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        match self {
            Self::Stdout(stdout) => {
                let mut stdout = stdout.lock();
                stdout.write_all(lines)?;
                stdout.flush()
            }
            Self::File(file) => {
                reopen(file);
                file.write(lines)
            }
        }
    }

    fn reopen(&mut self) {
        if let Self::File(file) = self {
            reopen(file);
        }
    }
}

fn reopen(file: &mut LogFile) {
    if let Err(error) = file.reopen() {
        let path = file.path().display();
        log::error!(
            "cannot open the access log {path} again: {error}; lines go to the previous file"
        );
    }
}

// === impl Line ===

impl Line<'_> {
    /// Each value is appended as bytes: `write!` would take twice as long, and a line is a tenth of
    /// the work of a request on the fast path.
    fn write(&self, out: &mut Vec<u8>) {
        let Client {
            peer,
            protocol,
            tls,
            ..
        } = self.client;
        out.extend_from_slice(b"{\"time\":\"");
        logging::write_timestamp(out, self.time);
        out.extend_from_slice(b"\",\"peer\":\"");
        write_address(out, peer);
        out.extend_from_slice(b"\",\"protocol\":\"");
        out.extend_from_slice(protocol.as_bytes());
        out.extend_from_slice(match tls {
            true => b"\",\"tls\":true",
            false => b"\",\"tls\":false",
        });
        let request = self.request;
        for (key, value) in [
            (&b",\"method\":"[..], request.method),
            (b",\"host\":", request.host),
            (b",\"path\":", request.path),
            (b",\"agent\":", request.user_agent),
        ] {
            out.extend_from_slice(key);
            write_string(out, value);
        }
        let Outcome {
            route,
            status,
            bytes,
            took,
            end,
            waits,
            copy_age,
        } = self.outcome;
        out.extend_from_slice(b",\"status\":");
        write_number(out, status.into());
        out.extend_from_slice(b",\"bytes\":");
        write_number(out, bytes);
        out.extend_from_slice(b",\"route\":\"");
        out.extend_from_slice(route.as_str().as_bytes());
        out.extend_from_slice(b"\",\"took_us\":");
        write_microseconds(out, took);
        for (key, wait) in [
            (&b",\"connect_us\":"[..], waits.connect),
            (b",\"first_byte_us\":", waits.first_byte),
            (b",\"body_us\":", waits.body),
        ] {
            // Only requests to an upstream have them.
            let Some(wait) = wait else { break };
            out.extend_from_slice(key);
            write_microseconds(out, wait);
        }
        if let Some(age) = copy_age {
            out.extend_from_slice(b",\"copy_age_s\":");
            write_number(out, age);
        }
        if let Some(trace) = request.trace {
            out.extend_from_slice(b",\"trace\":\"");
            trace.write_trace(out);
            out.push(b'"');
        }
        if let Some(id) = request.made_id {
            out.extend_from_slice(b",\"request_id\":\"");
            id.write(out);
            out.push(b'"');
        } else if !request.request_id.is_empty() {
            out.extend_from_slice(b",\"request_id\":");
            write_string(out, request.request_id);
        }
        out.extend_from_slice(b",\"ended\":\"");
        out.extend_from_slice(end.as_str().as_bytes());
        out.extend_from_slice(b"\"}\n");
    }
}

/// Writes an address as text, without the machinery of `fmt` for the usual ones.
pub(super) fn write_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            for (at, octet) in address.octets().into_iter().enumerate() {
                if at > 0 {
                    out.push(b'.');
                }
                write_number(out, octet.into());
            }
        }
        IpAddr::V6(address) => write!(out, "{address}").expect("a Vec takes every byte"),
    }
}

fn write_microseconds(out: &mut Vec<u8>, time: Duration) {
    write_number(out, u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
}

/// Writes a number in decimal.
pub(super) fn write_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Writes a JSON string.
fn write_string(out: &mut Vec<u8>, text: &str) {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    match text.bytes().all(is_plain) {
        true => {
            out.push(b'"');
            out.extend_from_slice(text.as_bytes());
            out.push(b'"');
        }
        false => serde_json::to_writer(out, text).expect("a Vec takes every byte"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: RequestHeaders<'_> = RequestHeaders {
        host: "docs.acme.com",
        path: "/a\"b",
        user_agent: "node",
        ..RequestHeaders::GET
    };

    fn line() -> Line<'static> {
        Line {
            time: SystemTime::UNIX_EPOCH,
            client: Client {
                peer: IpAddr::from([127, 0, 0, 1]),
                counted: IpAddr::from([127, 0, 0, 1]),
                protocol: "http/1.1",
                tls: false,
            },
            request: &REQUEST,
            outcome: Outcome {
                route: Route::FastPath,
                status: 200,
                bytes: 12,
                took: Duration::from_micros(17),
                end: End::ReadTimeout,
                waits: Waits {
                    connect: Some(Duration::from_micros(2)),
                    first_byte: Some(Duration::from_micros(3)),
                    body: None,
                },
                copy_age: Some(7),
            },
        }
    }

    #[test]
    fn each_line_is_an_object_and_closing_writes_the_rest() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("access.log");
        let access = Access::start(
            &Target::File(path.clone()),
            IntCounter::new("dropped", "x").unwrap(),
        )
        .unwrap();
        for _ in 0..3 {
            access.log(&line());
        }
        access.close();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0]["path"], "/a\"b");
        assert_eq!(lines[0]["route"], "fast_path");
        assert_eq!(lines[0]["took_us"], 17);
        assert_eq!(lines[0]["connect_us"], 2);
        assert_eq!(lines[0]["first_byte_us"], 3);
        assert!(lines[0].get("body_us").is_none());
        assert_eq!(lines[0]["copy_age_s"], 7);
        assert_eq!(lines[0]["ended"], "upstream_read_timeout");
    }

    #[test]
    fn numbers_addresses_and_texts_are_written_as_serde_writes_them() {
        for number in [0, 7, 10, 99, 100, 65_535, u64::MAX] {
            let mut out = Vec::new();
            write_number(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
        for address in ["0.0.0.0", "192.0.2.255", "::1", "2001:db8::ffff"] {
            let mut out = Vec::new();
            write_address(&mut out, address.parse().unwrap());
            assert_eq!(String::from_utf8(out).unwrap(), address);
        }
        for text in ["", "plain \u{e9}\u{7f}", "\"", "\\", "\n", "\0", "a\u{1f}b"] {
            let mut out = Vec::new();
            write_string(&mut out, text);
            assert_eq!(
                String::from_utf8(out).unwrap(),
                serde_json::to_string(text).unwrap()
            );
        }
    }
}
