//! A plain HTTP/1.1 client that sends any bytes, and reads responses strictly.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long a test waits for anything; a gateway that hangs fails the test.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// The header fields that a gateway may send; any other fails the test.
const ALLOWED: [&str; 28] = [
    "accept-ranges",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "access-control-max-age",
    "allow",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-security-policy",
    "content-type",
    "date",
    "etag",
    "last-modified",
    "link",
    "location",
    "ratelimit",
    "ratelimit-policy",
    "retry-after",
    "speculation-rules",
    "vary",
    "via",
    "www-authenticate",
    "x-content-type-options",
    "x-llms-txt",
];

/// A response, read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// In the order they came, names in lower case.
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// A connection to a gateway, over TCP or another stream of bytes.
#[derive(Debug)]
pub struct Connection<S = TcpStream> {
    reader: BufReader<S>,
}

/// Returns a socket that connects from one of the loopback addresses.
pub fn socket_from(from: Ipv4Addr) -> socket2::Socket {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
    socket
}

/// Connects from one of the loopback addresses.
pub fn connect_from(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = socket_from(from);
    socket.connect(&to.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

impl Connection {
    pub fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(stream)
    }
}

impl<S: Read + Write> Connection<S> {
    pub fn over(stream: S) -> Self {
        Self {
            reader: BufReader::new(stream),
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    /// Sends bytes to a gateway that may close the connection meanwhile.
    pub fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    /// Returns the stream of a connection from which nothing was read.
    #[track_caller]
    pub fn into_stream(self) -> S {
        assert!(self.reader.buffer().is_empty());
        self.reader.into_inner()
    }

    pub fn stream(&self) -> &S {
        self.reader.get_ref()
    }

    /// Reads exactly this many bytes, for example after an upgrade.
    pub fn receive_bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.reader.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Reads one response; `None` if the gateway has closed the connection instead.
    pub fn receive(&mut self, method: &str) -> Option<Response> {
        let mut response = self.receive_head()?;
        let has_body = method != "HEAD" && !matches!(response.status, 100..=199 | 204 | 304);
        if has_body && response.field("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.receive_chunk() {
                response.body.extend_from_slice(&chunk);
            }
        } else if has_body {
            match response
                .field("content-length")
                .map(|length| length.parse::<usize>().unwrap())
            {
                Some(length) => response.body = self.receive_bytes(length),
                None => response.body = self.receive_rest(),
            }
        }
        Some(response)
    }

    /// Reads status and fields, but not the body.
    pub fn receive_head(&mut self) -> Option<Response> {
        let mut line = String::new();
        if self.reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let status: u16 = line
            .strip_prefix("HTTP/1.1 ")
            .unwrap_or_else(|| panic!("status line {line:?}"))[..3]
            .parse()
            .unwrap();
        let mut fields = Vec::new();
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line).unwrap();
            let line = line.strip_suffix("\r\n").expect("a line ends in CRLF");
            if line.is_empty() {
                break;
            }
            let (name, value) = line
                .split_once(": ")
                .unwrap_or_else(|| panic!("field {line:?}"));
            fields.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        Some(Response {
            status,
            fields,
            body: Vec::new(),
        })
    }

    /// Reads one chunk of a body; `None` is its end.
    pub fn receive_chunk(&mut self) -> Option<Vec<u8>> {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        let length = usize::from_str_radix(line.trim_end(), 16).unwrap();
        let mut chunk = self.receive_bytes(length + 2);
        chunk.truncate(length);
        (length > 0).then_some(chunk)
    }

    /// Reads all bytes until the gateway closes the connection.
    pub fn receive_rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        // A reset after the response also ends the connection.
        let _reset = self.reader.read_to_end(&mut rest);
        rest
    }
}

impl Response {
    /// Returns the value of a field that comes at most once.
    #[track_caller]
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(field, _)| field == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(
            values.next().is_none(),
            "{name} comes more than once: {:?}",
            self.fields
        );
        value
    }

    pub fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap()
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Checks the rules for every response of a gateway.
    #[track_caller]
    pub fn check(&self, method: &str) {
        for (name, _) in &self.fields {
            assert!(
                ALLOWED.contains(&name.as_str()),
                "{name} is not expected: {:?}",
                self.fields
            );
        }
        assert!(self.field("date").is_some(), "no Date: {:?}", self.fields);
        assert!(
            self.field("cache-control").is_some(),
            "no Cache-Control: {:?}",
            self.fields
        );
        let length = self.field("content-length");
        match self.status {
            204 | 304 => assert_eq!(length, None, "{:?}", self.fields),
            _ => assert!(length.is_some(), "no Content-Length: {:?}", self.fields),
        }
        if method == "HEAD" {
            assert!(self.body.is_empty());
        }
        let is_page = self.field("content-type") == Some("text/html; charset=utf-8");
        if is_page {
            // Content of authors has the policy of pages, whatever the status.
            assert!(self.field("content-security-policy").is_some());
        }
        // The 404 page of a site.
        let is_not_found = is_page && self.status == 404;
        if self.status >= 400 && method != "HEAD" && !is_not_found {
            let problem = self.json();
            if problem["jsonrpc"] == "2.0" {
                assert_eq!(self.field("content-type"), Some("application/json"));
                assert!(problem["error"]["message"].is_string());
                return;
            }
            assert_eq!(self.field("content-type"), Some("application/problem+json"));
            assert_eq!(problem["status"], self.status);
            assert_eq!(problem["detail"], problem["error"]);
        }
    }

    /// Returns the response without the fields that may differ between paths, connections and
    /// seconds.
    pub fn normalised(mut self) -> Self {
        self.fields
            .retain(|(name, _)| !matches!(name.as_str(), "date" | "connection"));
        self.fields.sort();
        self
    }
}

/// Lets the program under test work before a condition is looked at again: a loop without it takes
/// one of two processors.
pub fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}

/// Waits until a condition holds.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "in time: {what}");
        pause();
    }
}

/// Lets time pass without traffic on a connection, for tests of timeouts; never to wait for an
/// event.
pub fn silence(length: Duration) {
    std::thread::sleep(length);
}

/// Sends one `GET`-like request on a connection of its own.
#[track_caller]
pub fn request(
    address: SocketAddr,
    method: &str,
    host: &str,
    path: &str,
    fields: &[(&str, &str)],
) -> Response {
    let mut connection = Connection::open(address);
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n");
    for (name, value) in fields {
        head += &format!("{name}: {value}\r\n");
    }
    connection.send(format!("{head}\r\n").as_bytes());
    connection.receive(method).expect("an answer")
}
