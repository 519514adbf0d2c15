//! The connector of the HTTP client: it uses a socket that somebody else has opened.
//!
//! This process can open no socket. Before each request it asks its parent for one and puts it into
//! a [`NextSocket`]; the client takes it from there. TLS and CONNECT to a proxy are done by the
//! client on this socket, so the parent sees neither the key nor the texts.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use http::Uri;
use ureq::config::Config;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport,
};

/// The socket for the next request.
#[derive(Clone, Debug, Default)]
pub(super) struct NextSocket(Arc<Mutex<Option<TcpStream>>>);

/// Takes the socket from [`NextSocket`].
#[derive(Debug)]
pub(super) struct SocketConnector(pub(super) NextSocket);

/// Resolves nothing: the parent has done it.
#[derive(Debug)]
pub(super) struct NoNames;

/// A connection over a socket of the parent.
#[derive(Debug)]
pub(super) struct SocketTransport {
    stream: TcpStream,
    buffers: LazyBuffers,
}

// === impl NextSocket ===

impl NextSocket {
    pub(super) fn put(&self, socket: TcpStream) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(socket);
    }

    fn take(&self) -> Option<TcpStream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

// === impl SocketConnector ===

impl<In: Transport> Connector<In> for SocketConnector {
    type Out = Either<In, SocketTransport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        // A tunnel through a proxy uses the socket already.
        if let Some(chained) = chained {
            return Ok(Some(Either::A(chained)));
        }
        let Some(stream) = self.0.take() else {
            return Err(io::Error::other("there is one socket for a request").into());
        };
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(Either::B(SocketTransport { stream, buffers })))
    }
}

// === impl NoNames ===

impl Resolver for NoNames {
    fn resolve(
        &self,
        _uri: &Uri,
        _config: &Config,
        _timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut addresses = self.empty();
        addresses.push(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0));
        Ok(addresses)
    }
}

// === impl SocketTransport ===

impl Transport for SocketTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        let limit = timeout.for_write();
        self.stream
            .set_write_timeout(limit.not_zero().map(|limit| *limit))?;
        let output = &self.buffers.output()[..amount];
        (&self.stream)
            .write_all(output)
            .map_err(|error| timed(error, limit))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        let limit = timeout.for_read();
        self.stream
            .set_read_timeout(limit.not_zero().map(|limit| *limit))?;
        let input = self.buffers.input_append_buf();
        let read = loop {
            match (&self.stream).read(input) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(|error| timed(error, limit))?,
            }
        };
        self.buffers.input_appended(read);
        Ok(read > 0)
    }

    fn is_open(&mut self) -> bool {
        // A socket is used for one request.
        false
    }
}

/// Returns the error of a limit of time as such.
fn timed(error: io::Error, limit: NextTimeout) -> ureq::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ureq::Error::Timeout(limit.reason),
        _ => error.into(),
    }
}
