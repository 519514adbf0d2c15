//! A client that makes TLS 1.3 handshakes: one request on each connection.
//!
//! ```text
//! handshakes full|resumed PORT HOST PATH CERTIFICATE SECONDS
//! ```
//!
//! Four threads connect to PORT of 127.0.0.1 one connection after the other, verify the
//! certificate, ask for PATH and read the response to its end. With `resumed` each connection but
//! the first of a thread uses a ticket of an earlier one. Prints connections, connections that
//! resumed, and seconds.

use std::env;
use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};

const THREADS: usize = 4;

/// One thread's connections until `end`: all of them, and those that resumed a session.
fn connect(
    config: &Arc<ClientConfig>,
    port: u16,
    host: &str,
    path: &str,
    end: Instant,
) -> Result<(u64, u64), Box<dyn Error + Send + Sync>> {
    let name = ServerName::try_from(host.to_owned())?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let mut response = Vec::new();
    let (mut all, mut resumed) = (0, 0);
    while Instant::now() < end {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        let session = ClientConnection::new(Arc::clone(config), name.clone())?;
        let mut tls = StreamOwned::new(session, stream);
        tls.write_all(request.as_bytes())?;
        response.clear();
        tls.read_to_end(&mut response)?;
        if !response.starts_with(b"HTTP/1.1 200") {
            return Err(String::from_utf8_lossy(&response).into_owned().into());
        }
        all += 1;
        resumed += u64::from(tls.conn.handshake_kind() == Some(HandshakeKind::Resumed));
    }
    Ok((all, resumed))
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [kind, port, host, path, certificate, seconds] = arguments.as_slice() else {
        return Err("usage: handshakes full|resumed PORT HOST PATH CERTIFICATE SECONDS".into());
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(certificate)? {
        roots.add(certificate?)?;
    }
    let begin = Instant::now();
    let end = begin + Duration::from_secs(seconds.parse()?);
    let port = port.parse()?;
    let counts: Vec<(u64, u64)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let mut config =
                    ClientConfig::builder_with_protocol_versions(&[&rustls::version::TLS13])
                        .with_root_certificates(roots.clone())
                        .with_no_client_auth();
                if kind == "full" {
                    config.resumption = Resumption::disabled();
                }
                let config = Arc::new(config);
                scope.spawn(move || connect(&config, port, host, path, end))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| "a thread panicked")?)
            .collect::<Result<_, Box<dyn Error + Send + Sync>>>()
    })?;
    let (all, resumed) = counts
        .iter()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    println!(
        "{all} connections, {resumed} resumed, {:.3} s",
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}
