//! The listener for edges: HTTP/1.1 with TLS, or without on a private network.
//!
//! Its clients are edges with a token, so it needs little of what a public listener has: it reads
//! heads, hands them to the source or relay, and writes the responses. It reads content only from a
//! known edge that sends counts, and from a few edges at the same time. A connection is closed when
//! the source stops responding, so that its edge asks the process that has taken over.
//!
//! Anybody can connect. Until a request with the token of an edge has come, a connection is unknown:
//! it stays open for [`UNKNOWN_TIME`], and an address may have [`UNKNOWN_MAX`] such connections. So
//! others cannot take the places of edges.
//!
//! The certificate is read again when its files change; a broken one leaves the previous one in
//! use.
//!
//! Source: RFC 9112.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use super::clients::{AddressGuard, ClientLimits, Clients};
use super::head;
use crate::follow::{Request, Responder, SIGNATURE, SourceResponse};

/// How many connections are open at once; more wait in the queue of the kernel.
const CONNECTIONS_MAX: usize = 4096;
/// The longest head, in bytes.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// The most fields of a head.
const FIELDS_MAX: usize = 32;
/// How long a connection is open until the first request with the token of an edge, TLS handshake
/// included.
const UNKNOWN_TIME: Duration = Duration::from_secs(10);
/// How many connections without such a request an address may have; further ones are closed at once.
const UNKNOWN_MAX: u32 = 64;
/// How long a connection of an edge may be idle.
const IDLE_TIME: Duration = Duration::from_secs(120);
/// How long an edge may take to read a piece.
const WRITE_TIME: Duration = Duration::from_secs(60);
/// How many bytes of a file are read at once.
const PIECE_BYTES: usize = 256 << 10;
/// How long an edge may take to send a content.
const CONTENT_TIME: Duration = Duration::from_secs(60);
/// How many contents are read or processed at the same time; others wait.
const CONTENTS_MAX: usize = 8;
/// The wait after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The certificate of the listener.
#[derive(Debug)]
pub struct Identity {
    certificate: PathBuf,
    key: PathBuf,
    used: Mutex<Used>,
}

/// A connection on which no request with the token of an edge has come.
struct Unknown {
    /// When it is closed.
    until: Instant,
    #[expect(dead_code, reason = "held until it is dropped")]
    counted: Option<AddressGuard>,
}

#[derive(Debug)]
struct Used {
    stamp: Stamp,
    config: Arc<ServerConfig>,
}

/// Modification time and length of both files.
type Stamp = [Option<(SystemTime, u64)>; 2];

/// A request, and whether the connection ends with its response.
struct Received {
    request: Request,
    method: Method,
    is_last: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Get,
    /// With so many bytes of content.
    Post(usize),
    Other,
}

// === impl Identity ===

impl Identity {
    /// Reads the certificate and its key.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or the two do not belong together.
    pub fn read(certificate: &Path, key: &Path) -> io::Result<Self> {
        let stamp = stamp(certificate, key);
        let config = config(certificate, key)?;
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            used: Mutex::new(Used { stamp, config }),
        })
    }

    /// Returns the settings of the next handshake.
    fn current(&self) -> Arc<ServerConfig> {
        let stamp = stamp(&self.certificate, &self.key);
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if stamp != used.stamp {
            used.stamp = stamp;
            match config(&self.certificate, &self.key) {
                Ok(config) => used.config = config,
                Err(error) => {
                    let path = self.certificate.display();
                    log::error!(target: "follow", "the certificate {path} cannot be used, and the previous one stays in use: {error}");
                }
            }
        }
        Arc::clone(&used.config)
    }
}

fn stamp(certificate: &Path, key: &Path) -> Stamp {
    [certificate, key].map(|path| {
        let found = fs::metadata(path).ok()?;
        Some((found.modified().ok()?, found.len()))
    })
}

fn config(certificate: &Path, key: &Path) -> io::Result<Arc<ServerConfig>> {
    let pem = fs::read(certificate)?;
    let chain = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_slice(&fs::read(key)?).map_err(io::Error::other)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            let builder = builder.with_no_client_auth();
            builder.with_single_cert(chain, key)
        });
    Ok(Arc::new(config.map_err(io::Error::other)?))
}

/// Returns the limits of the addresses that connect to the listener for edges.
#[must_use]
pub fn limits(of_clients: &ClientLimits) -> ClientLimits {
    ClientLimits {
        ipv6_prefix: of_clients.ipv6_prefix,
        connections_max: UNKNOWN_MAX,
        handshakes_per_second: 0,
        ..ClientLimits::default()
    }
}

/// Responds to edges until the source stops responding. `clients` has the [`limits`] of addresses.
pub async fn listen(
    listener: TcpListener,
    source: Responder,
    identity: Option<Arc<Identity>>,
    clients: Arc<Clients>,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let contents = Arc::new(Semaphore::new(CONTENTS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = source.ended() => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                log::warn!(target: "follow", "cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(counted) = clients.connect(peer.ip(), false) else {
            continue;
        };
        let unknown = Unknown {
            until: Instant::now() + UNKNOWN_TIME,
            counted,
        };
        let (source, identity) = (source.clone(), identity.clone());
        let contents = Arc::clone(&contents);
        tokio::spawn(async move {
            let serving = connection(stream, unknown, &source, identity.as_deref(), &contents);
            // An error means that the edge is gone, and it asks again.
            if let Err(error) = serving.await {
                log::debug!(target: "follow", "a connection of an edge ended: {error}");
            }
            drop(place);
        });
    }
}

async fn connection(
    stream: TcpStream,
    unknown: Unknown,
    source: &Responder,
    identity: Option<&Identity>,
    contents: &Semaphore,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let Some(identity) = identity else {
        return respond(stream, unknown, source, contents).await;
    };
    let acceptor = TlsAcceptor::from(identity.current());
    let stream = tokio::time::timeout_at(unknown.until, acceptor.accept(stream)).await??;
    respond(stream, unknown, source, contents).await
}

/// Responds to the requests of a connection.
async fn respond(
    mut stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    unknown: Unknown,
    source: &Responder,
    contents: &Semaphore,
) -> io::Result<()> {
    let mut unknown = Some(unknown);
    let mut inbox = Vec::new();
    loop {
        let receiving = receive(&mut stream, &mut inbox);
        let until = unknown.as_ref().map(|unknown| unknown.until);
        let until = until.unwrap_or_else(|| Instant::now() + IDLE_TIME);
        let received = tokio::select! {
            received = tokio::time::timeout_at(until, receiving) => received,
            () = source.ended() => return stream.shutdown().await,
        };
        let Ok(Some(mut received)) = received.unwrap_or(Ok(None)) else {
            return Ok(());
        };
        unknown = unknown.filter(|_| !source.knows(&received.request));
        let rejection = match received.method {
            Method::Get => None,
            Method::Post(length) => source.rejection(&received.request, length),
            Method::Other => Some(SourceResponse::Status(405, "only GET\n")),
        };
        // After a rejection, the content of the request is not read.
        received.is_last |= rejection.is_some();
        let response = match (rejection, received.method) {
            (Some(rejection), _) => rejection,
            (None, Method::Post(length)) => {
                let Ok(_place) = contents.acquire().await else {
                    return Ok(());
                };
                let content = content(&mut stream, &mut inbox, length);
                let content = tokio::time::timeout(CONTENT_TIME, content).await??;
                received.request.content = Some(content);
                source.respond(&received.request).await
            }
            (None, _) => source.respond(&received.request).await,
        };
        // A relay knows a token when the first source has accepted it.
        let is_accepted = !matches!(response, SourceResponse::Status(401, _));
        unknown = unknown.filter(|_| !is_accepted || !source.knows(&received.request));
        let is_last = received.is_last || source.is_ending();
        write(&mut stream, response, is_last).await?;
        if is_last {
            return stream.shutdown().await;
        }
    }
}

/// Reads a head; `None` when the connection has ended or the head is not one of an edge.
async fn receive(
    stream: &mut (impl AsyncRead + Unpin),
    inbox: &mut Vec<u8>,
) -> io::Result<Option<Received>> {
    loop {
        if let Some(length) = head::length(inbox, 0) {
            let received = parse(&inbox[..length]);
            inbox.drain(..length);
            return Ok(received);
        }
        if inbox.len() > HEAD_BYTES_MAX || stream.read_buf(inbox).await? == 0 {
            return Ok(None);
        }
    }
}

/// Reads a content of this length.
async fn content(
    stream: &mut (impl AsyncRead + Unpin),
    inbox: &mut Vec<u8>,
    length: usize,
) -> io::Result<Bytes> {
    while inbox.len() < length {
        if stream.read_buf(inbox).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(inbox.drain(..length).collect())
}

fn parse(head: &[u8]) -> Option<Received> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    if !parsed.parse(head).ok()?.is_complete() {
        return None;
    }
    let values = |name: &str| {
        let fields = parsed.headers.iter();
        let values = fields.filter(|field| field.name.eq_ignore_ascii_case(name));
        values.map(|field| field.value).collect::<Vec<_>>()
    };
    let lengths = values("content-length");
    let length = match lengths[..] {
        [] => Some(0),
        [length] if length.iter().all(u8::is_ascii_digit) => {
            str::from_utf8(length).ok()?.parse().ok()
        }
        _ => None,
    };
    let length: usize = length.filter(|_| values("transfer-encoding").is_empty())?;
    let method = match parsed.method {
        Some("POST") => Method::Post(length),
        // Only a `POST` has content.
        _ if length > 0 => return None,
        Some("GET") => Method::Get,
        _ => Method::Other,
    };
    // More than one token has no meaning.
    let [authorization] = values("authorization")[..] else {
        return Some(received(&parsed, method, &[], true));
    };
    let closes = values("connection")
        .iter()
        .any(|value| value.eq_ignore_ascii_case(b"close"));
    let is_last = closes || parsed.version != Some(1);
    let mut received = received(&parsed, method, authorization, is_last);
    let program = values("user-agent").first().copied().unwrap_or_default();
    let program = String::from_utf8_lossy(&program[..program.len().min(64)]);
    received.request.program = program.chars().filter(|char| !char.is_control()).collect();
    Some(received)
}

fn received(
    parsed: &httparse::Request<'_, '_>,
    method: Method,
    authorization: &[u8],
    is_last: bool,
) -> Received {
    let target = parsed.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Received {
        request: Request {
            path: path.to_owned(),
            query: query.to_owned(),
            authorization: authorization.to_vec(),
            program: String::new(),
            content: None,
        },
        method,
        is_last,
    }
}

async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    response: SourceResponse,
    is_last: bool,
) -> io::Result<()> {
    let (status, length, media_type, more) = match &response {
        SourceResponse::Status(status, text) => {
            (*status, text.len() as u64, "text/plain", String::new())
        }
        SourceResponse::File(_, length) => {
            (200, *length, "application/octet-stream", String::new())
        }
        SourceResponse::Content(content) => {
            let length = content.len() as u64;
            (200, length, "application/octet-stream", String::new())
        }
        SourceResponse::Message {
            content,
            is_compressed,
            signature,
        } => {
            let media_type = match is_compressed {
                true => "application/zstd",
                false => "application/x-ndjson",
            };
            let more = format!("{SIGNATURE}: {signature}\r\n");
            (200, content.len() as u64, media_type, more)
        }
    };
    let reason = http::StatusCode::from_u16(status).ok();
    let reason = reason.and_then(|status| status.canonical_reason());
    let connection = if is_last { "close" } else { "keep-alive" };
    let mut head = format!(
        "HTTP/1.1 {status} {}\r\nCache-Control: no-store\r\nConnection: {connection}\r\n{more}",
        reason.unwrap_or_default()
    );
    if status != 204 {
        head.push_str(&format!(
            "Content-Type: {media_type}\r\nContent-Length: {length}\r\n"
        ));
    }
    head.push_str("\r\n");
    let mut first = head.into_bytes();
    match response {
        SourceResponse::Status(204, _) => send(stream, &first).await?,
        SourceResponse::Status(_, text) => {
            first.extend_from_slice(text.as_bytes());
            send(stream, &first).await?;
        }
        SourceResponse::Message { content, .. } | SourceResponse::Content(content) => {
            send(stream, &first).await?;
            for piece in content.chunks(PIECE_BYTES) {
                send(stream, piece).await?;
            }
        }
        SourceResponse::File(file, length) => send_file(stream, first, file, length).await?,
    }
    stream.flush().await
}

/// Sends a head and a file. The first piece goes with the head: most files are small.
async fn send_file(
    stream: &mut (impl AsyncWrite + Unpin),
    mut out: Vec<u8>,
    file: fs::File,
    length: u64,
) -> io::Result<()> {
    let mut file = tokio::fs::File::from_std(file).take(length);
    let mut left = length;
    loop {
        let piece = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
        let start = out.len();
        out.resize(start + piece, 0);
        file.read_exact(&mut out[start..]).await?;
        send(stream, &out).await?;
        out.clear();
        left -= piece as u64;
        if left == 0 {
            return Ok(());
        }
    }
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    tokio::time::timeout(WRITE_TIME, stream.write_all(bytes)).await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_of_an_edge_has_one_token_and_only_a_post_has_content() {
        let head =
            |fields: &str| format!("GET /v1/follow/changes?after=1 HTTP/1.1\r\n{fields}\r\n");
        let read = |fields: &str| parse(head(fields).as_bytes());
        let received = read("Host: a\r\nAuthorization: Bearer x\r\nUser-Agent: w/1\r\n").unwrap();
        assert_eq!(received.request.path, "/v1/follow/changes");
        assert_eq!(received.request.query, "after=1");
        assert_eq!(received.request.authorization, b"Bearer x");
        assert_eq!(received.request.program, "w/1");
        assert!(received.method == Method::Get && !received.is_last);
        assert!(
            read("Authorization: Bearer x\r\nConnection: close\r\n")
                .unwrap()
                .is_last
        );
        assert!(read("Content-Length: 5\r\n").is_none());
        assert!(read("Authorization: a\r\nTransfer-Encoding: chunked\r\n").is_none());
        let post = |fields: &str| {
            let head =
                format!("POST /v1/follow/numbers HTTP/1.1\r\nAuthorization: a\r\n{fields}\r\n");
            parse(head.as_bytes()).map(|received| received.method)
        };
        assert_eq!(post("Content-Length: 5\r\n"), Some(Method::Post(5)));
        assert_eq!(post("Content-Length: +5\r\n"), None);
        assert_eq!(post("Content-Length: 5\r\nContent-Length: 6\r\n"), None);
        assert_eq!(post("Transfer-Encoding: chunked\r\n"), None);
        let twice = read("Authorization: a\r\nAuthorization: b\r\n").unwrap();
        assert!(twice.request.authorization.is_empty() && twice.is_last);
        assert!(parse(b"\x16\x03\x01 nonsense\r\n\r\n").is_none());
    }
}
