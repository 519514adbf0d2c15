//! The access log: one line of JSON for every request, on either path.
//!
//! A request never waits for a disk. Its line is appended to a buffer in memory under a
//! lock that is held for a copy of some 200 bytes; a thread of its own writes the buffer
//! out. When the disk cannot keep up and the buffer is full, lines are dropped and
//! counted. Appending allocates nothing once the buffers have grown.
//!
//! What has no request head (TLS failures, refused HTTP/2 streams) is counted and not
//! logged. Query strings, cookies and credentials are never logged.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use prometheus::IntCounter;

use crate::telemetry::{Route, logging};

/// How many bytes of lines wait at most.
const BUFFER_BYTES_MAX: usize = 8 << 20;
/// How long a line waits at most before it is written.
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);
/// When the writer is woken early.
const FLUSH_BYTES: usize = 256 << 10;

/// Where access lines go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// Nowhere.
    Off,
    /// Standard output.
    #[default]
    Stdout,
    /// A file, appended to; opened anew when it was moved away, so that it can be rotated.
    File(PathBuf),
}

/// One request, to be logged.
#[derive(Clone, Copy, Debug)]
pub struct Line<'r> {
    /// When the response was finished.
    pub time: SystemTime,
    /// The client's address.
    pub peer: IpAddr,
    /// `http/1.0`, `http/1.1` or `h2`.
    pub protocol: &'static str,
    /// Whether it came over TLS.
    pub tls: bool,
    /// The method; empty when the head could not be read.
    pub method: &'r str,
    /// The host as sent; empty when the head could not be read.
    pub host: &'r str,
    /// The path, without query.
    pub path: &'r str,
    /// The status of the response.
    pub status: u16,
    /// Body bytes of the response.
    pub bytes: u64,
    /// Who answered.
    pub route: Route,
    /// From the head to the end of the response.
    pub took: Duration,
    /// `User-Agent`, cut to a sane length.
    pub agent: &'r str,
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
            Target::File(path) => Out::File {
                file: open(path)?,
                path: path.clone(),
            },
        };
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            wake: Condvar::new(),
        });
        let lost = dropped.clone();
        let writer = std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.write_out(&mut out, &lost)
            })?;
        Ok(Self {
            shared: Some(shared),
            writer: Mutex::new(Some(writer)),
            dropped,
        })
    }

    /// Returns whether lines go anywhere: callers need not gather them otherwise.
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

    /// Writes what is there and ends the log.
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
        if writer.is_some_and(|writer| writer.join().is_err()) {
            log::error!("the access log's writer panicked");
        }
    }
}

// === impl Shared ===

impl Shared {
    fn write_out(&self, out: &mut Out, lost: &IntCounter) {
        let mut lines = Vec::new();
        loop {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let idle = |state: &mut State| state.lines.len() < FLUSH_BYTES && !state.closed;
            let waited = self.wake.wait_timeout_while(state, FLUSH_INTERVAL, idle);
            let (mut state, _elapsed) = waited.unwrap_or_else(PoisonError::into_inner);
            std::mem::swap(&mut lines, &mut state.lines);
            let closed = state.closed;
            drop(state);
            if let Err(error) = out.write(&lines) {
                lost.inc_by(memchr::memchr_iter(b'\n', &lines).count() as u64);
                log::warn!("write the access log: {error}");
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
    File { file: File, path: PathBuf },
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
            Self::File { file, path } => {
                if !path.exists() {
                    *file = open(path)?;
                }
                file.write_all(lines)
            }
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

// === impl Line ===

impl Line<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"time\":\"");
        logging::write_timestamp(out, self.time);
        write!(
            out,
            "\",\"peer\":\"{}\",\"protocol\":\"{}\",\"tls\":{}",
            self.peer, self.protocol, self.tls
        )
        .expect("a Vec takes every byte");
        for (key, value) in [
            ("method", self.method),
            ("host", self.host),
            ("path", self.path),
            ("agent", self.agent),
        ] {
            write!(out, ",\"{key}\":").expect("a Vec takes every byte");
            serde_json::to_writer(&mut *out, value).expect("a Vec takes every byte");
        }
        let took = self.took.as_micros();
        let route = self.route.as_str();
        writeln!(
            out,
            ",\"status\":{},\"bytes\":{},\"route\":\"{route}\",\"took_us\":{took}}}",
            self.status, self.bytes
        )
        .expect("a Vec takes every byte");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line<'static> {
        Line {
            time: SystemTime::UNIX_EPOCH,
            peer: IpAddr::from([127, 0, 0, 1]),
            protocol: "http/1.1",
            tls: false,
            method: "GET",
            host: "docs.acme.com",
            path: "/a\"b",
            status: 200,
            bytes: 12,
            route: Route::FastPath,
            took: Duration::from_micros(17),
            agent: "node",
        }
    }

    #[test]
    fn every_line_is_an_object_and_closing_writes_what_is_there() {
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
    }
}
