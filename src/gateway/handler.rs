//! Listeners and connections: accept, TLS handshake, then HTTP/1.1 or HTTP/2.
//!
//! A [`ConnectionHandler`] owns each connection from `accept` to its end. It serves HTTP/1.1
//! ([`Http1`]) or HTTP/2 ([`http2`]), as ALPN decided.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use pingora::proxy::HttpProxy;
use pingora::server::configuration::ServerConf;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::Gateway;
use super::connection::ClientConnection;
use super::drain::ConnectionGuard;
use super::http1::Http1;
use super::http2;
use super::proxy::Proxy;

/// How many connections may wait in the kernel to be accepted; it has a limit of its own too.
const BACKLOG: u32 = 4096;
/// How long accepting pauses when the process has run out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bound sockets. They are bound before anything else starts, so that a port in use is an error
/// message and not a panic.
#[derive(Debug, Default)]
pub struct Listeners {
    /// For plain HTTP/1.1.
    pub http: Vec<TcpSocket>,
    /// For TLS, with HTTP/2 or HTTP/1.1 by ALPN.
    pub https: Vec<TcpSocket>,
}

/// Listening sockets.
#[derive(Debug)]
pub struct OpenListeners(Vec<(TcpListener, bool)>);

/// Serves the client connections of a process.
pub struct ConnectionHandler {
    pub(super) gateway: Arc<Gateway>,
    pub(super) proxy: Arc<HttpProxy<Proxy>>,
    /// Tells pingora that each response is the last of its connection.
    pub(super) shutdown: watch::Receiver<bool>,
    shutting_down: watch::Sender<bool>,
    tls: Option<TlsAcceptor>,
}

// === impl Listeners ===

impl Listeners {
    /// Begins to listen. Called on the runtime that will serve the connections.
    ///
    /// # Errors
    ///
    /// When another process listens on an address already.
    pub fn open(self) -> std::io::Result<OpenListeners> {
        let plain = self.http.into_iter().map(|socket| (socket, false));
        let encrypted = self.https.into_iter().map(|socket| (socket, true));
        let open = |(socket, is_tls): (TcpSocket, bool)| {
            let listener = socket.listen(BACKLOG)?;
            let (scheme, address) = (
                if is_tls { "https" } else { "http" },
                listener.local_addr()?,
            );
            log::info!(target: "gateway", scheme, address:%; "listening on {scheme}://{address}");
            Ok((listener, is_tls))
        };
        plain
            .chain(encrypted)
            .map(open)
            .collect::<std::io::Result<_>>()
            .map(OpenListeners)
    }
}

// === impl ConnectionHandler ===

impl std::fmt::Debug for ConnectionHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionHandler")
            .field("gateway", &self.gateway)
            .finish_non_exhaustive()
    }
}

impl ConnectionHandler {
    /// Makes a handler and the proxy behind it.
    #[must_use]
    pub fn new(
        gateway: Arc<Gateway>,
        conf: &Arc<ServerConf>,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> Arc<Self> {
        let proxy = pingora::proxy::http_proxy(conf, Proxy::new(Arc::clone(&gateway)));
        let (shutting_down, shutdown) = watch::channel(false);
        let tls = tls.map(TlsAcceptor::from);
        Arc::new(Self {
            gateway,
            proxy: Arc::new(proxy),
            shutdown,
            shutting_down,
            tls,
        })
    }

    /// Accepts connections on all listeners until the drain begins.
    pub async fn listen(self: &Arc<Self>, listeners: OpenListeners) {
        let accept =
            |(listener, is_tls)| tokio::spawn(Arc::clone(self).accept_all(listener, is_tls));
        let tasks: Vec<_> = listeners.0.into_iter().map(accept).collect();
        for task in tasks {
            if let Err(error) = task.await {
                log::error!(target: "gateway", "a listener stopped: {error}");
            }
        }
        self.shutting_down.send_replace(true);
    }

    async fn accept_all(self: Arc<Self>, listener: TcpListener, is_tls: bool) {
        let drain = self.gateway.drain.clone();
        let mut draining = std::pin::pin!(drain.draining());
        loop {
            let accepted = tokio::select! {
                biased;
                accepted = async {
                    drain.below(self.gateway.limits.connections_max).await;
                    listener.accept().await
                } => accepted,
                () = &mut draining => return,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let guard = drain.guard();
                    tokio::spawn(Arc::clone(&self).serve(stream, peer, guard, is_tls));
                }
                // No file descriptors left, or the client closed the connection already.
                Err(error) => {
                    log::warn!("accept: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        guard: ConnectionGuard,
        is_tls: bool,
    ) {
        let metrics = Arc::clone(&self.gateway.metrics);
        metrics.connections.inc();
        // A response is one write; Nagle's algorithm could only delay it.
        let _not_tcp = stream.set_nodelay(true);
        let connection = match (is_tls, &self.tls) {
            (true, Some(acceptor)) => {
                match tokio::time::timeout(self.gateway.limits.head, acceptor.accept(stream)).await
                {
                    Ok(Ok(stream)) => Some(ClientConnection::tls(stream, peer, guard)),
                    Ok(Err(_)) | Err(_) => {
                        metrics.tls_failures.inc();
                        None
                    }
                }
            }
            _ => Some(ClientConnection::plain(stream, peer, guard)),
        };
        match connection {
            Some(connection) if connection.info().is_http2() => {
                Box::pin(http2::serve(self, connection)).await
            }
            Some(connection) => Http1::new(self, connection).run().await,
            None => {}
        }
    }
}
