//! A bare epoll loop. It shows the least time in which a server can do this work on this kernel.
//!
//! ```text
//! floor HTTP_PORT HTTPS_PORT RESPONSE CERTIFICATE KEY
//! ```
//!
//! One thread accepts connections on both ports of 127.0.0.1. For each request it reads once, looks
//! for the end of the head, and writes the bytes of the file RESPONSE: a whole response, head and
//! body. It parses nothing, routes nothing, counts nothing and knows no timeouts. A request in clear
//! with the line `Connection: close` is the last one of its connection.
//!
//! A connection costs the kernel as little as with Waypost: it is accepted when its first bytes have
//! arrived, its first read is made before it is registered, and the last response leaves together with
//! the end.
//!
//! Nearly all of its time is the time of the kernel and, on the second port, of the TLS library. The
//! difference to the time of Waypost is the time of Waypost's own work.
//!
//! It trusts its client: it is for `benches/peers/run` and for nothing else.

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;

use memchr::memmem::Finder;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::{SendFlags, SocketFlags, accept_with, send};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

#[path = "../../../../../src/gateway/defer.rs"]
mod defer;

/// The numbers of the listeners among the events; connections have larger ones.
const CLEAR: u64 = 0;
const ENCRYPTED: u64 = 1;

/// How the head of a request ends.
const END: &[u8] = b"\r\n\r\n";
/// The line of the last request of a connection. The load generator writes its fields in another
/// order each time.
const LAST: &[u8] = b"\r\nConnection: close\r\n";

/// The responses that the program sends, each with head and body.
struct Responses {
    /// Keeps the connection open.
    kept: Vec<u8>,
    /// The same response with `Connection: close`.
    last: Vec<u8>,
}

/// A client, and its TLS session on the second port.
struct Client {
    stream: TcpStream,
    tls: Option<ServerConnection>,
}

impl Client {
    /// Answers what has arrived. Returns `false` when the connection ends.
    fn answer(
        &mut self,
        buffer: &mut [u8],
        responses: &Responses,
        last: &Finder,
    ) -> std::io::Result<bool> {
        let Some(tls) = &mut self.tls else {
            let read = self.stream.read(buffer)?;
            let received = &buffer[..read];
            if received.ends_with(END) {
                if last.find(received).is_some() {
                    // The end follows at once, in the same packet.
                    send(&self.stream, &responses.last, SendFlags::MORE)?;
                    return Ok(false);
                }
                self.stream.write_all(&responses.kept)?;
            }
            return Ok(read > 0);
        };
        if tls.read_tls(&mut self.stream)? == 0 {
            return Ok(false);
        }
        let state = tls.process_new_packets().map_err(std::io::Error::other)?;
        if state.plaintext_bytes_to_read() > 0 {
            let read = tls.reader().read(buffer)?;
            if buffer[..read].ends_with(END) {
                tls.writer().write_all(&responses.kept)?;
            }
        }
        while tls.wants_write() {
            tls.write_tls(&mut self.stream)?;
        }
        Ok(true)
    }
}

/// Returns whether a connection ends.
fn is_over(answered: std::io::Result<bool>) -> bool {
    match answered {
        Ok(continues) => !continues,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [http, https, response, certificate, key] = arguments.as_slice() else {
        return Err("usage: floor HTTP_PORT HTTPS_PORT RESPONSE CERTIFICATE KEY".into());
    };
    let kept = fs::read(response)?;
    let line = kept
        .iter()
        .position(|byte| *byte == b'\n')
        .ok_or("no status line")?;
    let (status, rest) = kept.split_at(line + 1);
    let last = [status, b"Connection: close\r\n", rest].concat();
    let responses = Responses { kept, last };
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    let config = Arc::new(config);

    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut listeners = Vec::new();
    for (number, port) in [(CLEAR, http), (ENCRYPTED, https)] {
        let listener = TcpListener::bind(("127.0.0.1", port.parse()?))?;
        defer::defer_accept(&listener)?;
        epoll::add(
            &epoll,
            &listener,
            EventData::new_u64(number),
            EventFlags::IN,
        )?;
        listeners.push(listener);
    }
    let mut clients: HashMap<u64, Client> = HashMap::new();
    let mut next = ENCRYPTED + 1;
    let last = Finder::new(LAST);
    let mut buffer = vec![0; 16 << 10];
    let mut events = Vec::with_capacity(512);
    loop {
        events.clear();
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            let number = event.data.u64();
            if number <= ENCRYPTED {
                let listener = &listeners[usize::from(number == ENCRYPTED)];
                let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
                let stream = TcpStream::from(accept_with(listener, flags)?);
                let tls = match number {
                    ENCRYPTED => Some(ServerConnection::new(Arc::clone(&config))?),
                    _ => None,
                };
                let mut client = Client { stream, tls };
                if is_over(client.answer(&mut buffer, &responses, &last)) {
                    continue;
                }
                epoll::add(
                    &epoll,
                    client.stream.as_fd(),
                    EventData::new_u64(next),
                    EventFlags::IN,
                )?;
                clients.insert(next, client);
                next += 1;
                continue;
            }
            let Some(client) = clients.get_mut(&number) else {
                continue;
            };
            if is_over(client.answer(&mut buffer, &responses, &last)) {
                // Closing the socket removes it from the set.
                drop(clients.remove(&number));
            }
        }
    }
}
