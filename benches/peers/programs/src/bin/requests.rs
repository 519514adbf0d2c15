//! A client that asks for one document as often as it can, with little work of its own.
//!
//! ```text
//! requests kept|closed PORT HOST PATH SECONDS [CERTIFICATE]
//! ```
//!
//! One thread has 32 connections to PORT of 127.0.0.1, each with one request that waits for its
//! response. It receives the responses in the order of the requests, and sends a new request after
//! each. With `closed` each request has a connection of its own. With a certificate the connections
//! are encrypted. Prints responses and seconds.
//!
//! A fast server over TLS can do more requests a second than `wrk`, and then `wrk` is the limit of the
//! measurement. `wrk` asks the kernel which connections are ready. This program does not: while it
//! works on one connection, the server answers the others, and so the next response has usually
//! arrived. That saves half of the system calls.
//!
//! Each response must have the status 200 and the length of the first one.

use std::env;
use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use memchr::memmem;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const CONNECTIONS: usize = 32;
/// The longest response.
const RESPONSE_BYTES_MAX: usize = 64 << 10;

/// The requests, which are all the same.
struct Work {
    request: Vec<u8>,
    is_kept: bool,
    end: Instant,
}

impl Work {
    /// Asks until the end, and returns how many responses came.
    fn run<S: Read + Write>(&self, open: impl Fn() -> Result<S>) -> Result<u64> {
        let open = || {
            let mut stream = open()?;
            stream.write_all(&self.request)?;
            Ok::<S, Box<dyn Error>>(stream)
        };
        let mut buffer = vec![0; RESPONSE_BYTES_MAX];
        let length = first_response(&mut open()?, &mut buffer)?;
        let mut streams = (0..CONNECTIONS)
            .map(|_| open())
            .collect::<Result<Vec<S>>>()?;
        let mut responses = 0;
        loop {
            for stream in &mut streams {
                receive(stream, length, &mut buffer)?;
                responses += 1;
                match self.is_kept {
                    true => stream.write_all(&self.request)?,
                    false => *stream = open()?,
                }
            }
            if Instant::now() > self.end {
                return Ok(responses);
            }
        }
    }
}

/// Receives a response, and returns the length of its head and body together.
fn first_response(stream: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    let mut received = 0;
    loop {
        received += read(stream, &mut buffer[received..])?;
        let Some(end) = memmem::find(&buffer[..received], b"\r\n\r\n") else {
            continue;
        };
        let head = std::str::from_utf8(&buffer[..end])?.to_ascii_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"));
        let body: usize = length
            .ok_or("a response without its length")?
            .trim()
            .parse()?;
        let whole = end + 4 + body;
        while received < whole {
            received += read(stream, &mut buffer[received..])?;
        }
        return Ok(whole);
    }
}

/// Receives a response of this length.
fn receive(stream: &mut impl Read, length: usize, buffer: &mut [u8]) -> Result<()> {
    let mut received = 0;
    while received < length {
        received += read(stream, &mut buffer[received..])?;
    }
    if received == length && buffer.starts_with(b"HTTP/1.1 200 ") {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&buffer[..received]);
    Err(format!("{received} bytes instead of {length}: {text}").into())
}

fn read(stream: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    match stream.read(buffer)? {
        0 => Err("the server has closed the connection, or the response is too long".into()),
        read => Ok(read),
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [kind, port, host, path, seconds, certificate @ ..] = arguments.as_slice() else {
        return Err("usage: requests kept|closed PORT HOST PATH SECONDS [CERTIFICATE]".into());
    };
    let is_kept = kind == "kept";
    let field = if is_kept { "" } else { "Connection: close\r\n" };
    let begin = Instant::now();
    let work = Work {
        request: format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{field}\r\n").into_bytes(),
        is_kept,
        end: begin + Duration::from_secs(seconds.parse()?),
    };
    let port: u16 = port.parse()?;
    let connect = || Ok(TcpStream::connect(("127.0.0.1", port))?);
    let responses = match certificate.first() {
        None => work.run(connect)?,
        Some(file) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_file_iter(file)? {
                roots.add(certificate?)?;
            }
            let config = ClientConfig::builder()
                .with_root_certificates(roots)
                .with_no_client_auth();
            let (config, name) = (Arc::new(config), ServerName::try_from(host.clone())?);
            work.run(|| {
                let session = ClientConnection::new(Arc::clone(&config), name.clone())?;
                Ok(StreamOwned::new(session, connect()?))
            })?
        }
    };
    println!(
        "{responses} responses, {:.3} s",
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}
