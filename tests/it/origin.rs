//! A site's own server, as simple as possible, which keeps the requests that it receives.
//!
//! It reads requests from plain HTTP/1.1 connections, keeps every byte of their heads and bodies,
//! and lets the test write the responses. It shares no code with the gateway, so both cannot have
//! the same mistake.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use crate::http::TIMEOUT;

/// A received request.
#[derive(Clone, Debug)]
pub struct Received {
    pub method: String,
    pub target: String,
    /// In the order they came, names in lower case.
    pub fields: Vec<(String, String)>,
    /// Chunks are joined.
    pub body: Vec<u8>,
    /// Which of the origin's connections it came over, from 0.
    pub connection: usize,
}

/// A running origin.
#[derive(Debug)]
pub struct Origin {
    pub address: SocketAddr,
    log: Arc<Log>,
}

#[derive(Debug, Default)]
struct Log {
    received: Mutex<Vec<Received>>,
    more: Condvar,
}

/// The state of the connection after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    Keep,
    Close,
}

impl Received {
    /// Returns all values of a field, in their order.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let matches = |field: &&(String, String)| field.0 == name;
        self.fields
            .iter()
            .filter(matches)
            .map(|(_, value)| value.as_str())
            .collect()
    }

    /// Returns the value of a field that comes at most once.
    #[track_caller]
    pub fn field(&self, name: &str) -> Option<&str> {
        let values = self.all(name);
        assert!(values.len() < 2, "{name} comes more than once: {values:?}");
        values.first().copied()
    }

    fn read<S: Read + Write>(from: &mut BufReader<S>, connection: usize) -> Option<Self> {
        let mut line = String::new();
        if from.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let mut words = line.trim_end().splitn(3, ' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut fields = Vec::new();
        loop {
            let mut line = String::new();
            from.read_line(&mut line).ok()?;
            match line.trim_end().split_once(':') {
                Some((name, value)) => {
                    fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
                }
                None => break,
            }
        }
        let mut request = Self {
            method,
            target,
            fields,
            body: Vec::new(),
            connection,
        };
        if request.field("expect").is_some() {
            let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
            from.get_mut().write_all(interim).ok()?;
        }
        if request.field("transfer-encoding").is_some() {
            request.body = read_chunks(from)?;
        } else if let Some(length) = request.field("content-length") {
            request.body = vec![0; length.parse().ok()?];
            from.read_exact(&mut request.body).ok()?;
        }
        Some(request)
    }
}

fn read_chunks(from: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok()?;
        let size = line.trim_end().split(';').next()?;
        let length = usize::from_str_radix(size, 16).ok()?;
        if length == 0 {
            // Trailers, and the empty line after them.
            while from.read_line(&mut line).ok()? > 2 {}
            return Some(body);
        }
        let mut chunk = vec![0; length + 2];
        from.read_exact(&mut chunk).ok()?;
        body.extend_from_slice(&chunk[..length]);
    }
}

impl Origin {
    /// Starts an origin whose responses name the method and the target of the request.
    pub fn start() -> Self {
        Self::responding(|request, stream| {
            let body = format!("{} {}", request.method, request.target);
            write_page(stream, &request.method, &body);
            After::Keep
        })
    }

    /// Responds "late" to a request each time the test sends on the channel, and to all waiting
    /// requests when the test ends.
    pub fn with_delayed_body() -> (Self, Sender<()>) {
        let (proceed, wait) = channel::<()>();
        let wait = Mutex::new(wait);
        let origin = Self::responding(move |request, stream| {
            let _ended = wait.lock().unwrap().recv();
            write_page(stream, &request.method, "late");
            After::Keep
        });
        (origin, proceed)
    }

    /// Starts an origin with responses of the test.
    pub fn responding(
        answer: impl Fn(&Received, &mut TcpStream) -> After + Send + Sync + 'static,
    ) -> Self {
        Self::serving(|stream| stream, answer)
    }

    /// Starts an origin over connections of another type, for example TLS.
    pub fn serving<S: Read + Write + 'static>(
        wrap: impl Fn(TcpStream) -> S + Send + Sync + 'static,
        answer: impl Fn(&Received, &mut S) -> After + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Log::default());
        let (wrap, answer) = (Arc::new(wrap), Arc::new(answer));
        thread::spawn({
            let log = Arc::clone(&log);
            move || {
                for (connection, stream) in listener.incoming().map_while(Result::ok).enumerate() {
                    let (log, wrap, answer) =
                        (Arc::clone(&log), Arc::clone(&wrap), Arc::clone(&answer));
                    thread::spawn(move || {
                        let mut reader = BufReader::new(wrap(stream));
                        while let Some(request) = Received::read(&mut reader, connection) {
                            log.received.lock().unwrap().push(request.clone());
                            log.more.notify_all();
                            if answer(&request, reader.get_mut()) == After::Close {
                                return;
                            }
                        }
                    });
                }
            }
        });
        Self { address, log }
    }

    /// Returns the lines of a site record that make this the site's origin.
    pub fn record(&self) -> String {
        format!("origin: {{ url: \"http://{}\" }}", self.address)
    }

    /// Returns everything received so far.
    pub fn received(&self) -> Vec<Received> {
        self.log.received.lock().unwrap().clone()
    }

    /// Waits until this many requests have come, and returns the last of them.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Received {
        let deadline = Instant::now() + TIMEOUT;
        let mut received = self.log.received.lock().unwrap();
        while received.len() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "only {} requests have come",
                received.len()
            );
            received = self.log.more.wait_timeout(received, left).unwrap().0;
        }
        received[count - 1].clone()
    }
}

/// Writes a small page, without its body for `HEAD`.
pub fn write_page(stream: &mut impl Write, method: &str, body: &str) {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let body = if method == "HEAD" { "" } else { body };
    // The gateway may have closed the connection.
    let _closed = stream.write_all(format!("{head}{body}").as_bytes());
}
