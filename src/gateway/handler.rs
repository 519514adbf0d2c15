//! Listeners and connections: accept, the header of a load balancer, TLS handshake, then HTTP/1.1
//! or HTTP/2.
//!
//! A [`ConnectionHandler`] owns each connection from `accept` to its end. It serves HTTP/1.1
//! ([`Http1`]) or HTTP/2 ([`http2`]), as ALPN decided.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use pingora::proxy::HttpProxy;
use pingora::server::configuration::ServerConf;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Gateway;
use super::clients::{AddressGuard, LimitKind};
use super::connection::{ClientConnection, set_client_options};
use super::direct::Direct;
use super::drain::ListenerGuard;
use super::http1::Http1;
use super::http2;
use super::memory::Stage;
use super::open::{Activity, Guards};
use super::proxy::Proxy;
use super::proxy_protocol;
use super::reads::Reads;
use super::socket::{Listener, Socket};
use super::write_rate::WriteRate;
use crate::acme::TLS_PROTOCOL;
use crate::telemetry::panics;

/// How many connections may wait in the kernel to be accepted; it has a limit of its own too.
const BACKLOG: u32 = 4096;
/// How long accepting pauses when the process has run out of file descriptors.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long accepting waits at most, when all connections are busy, until it looks for an idle
/// one again.
const ROOM_INTERVAL: Duration = Duration::from_millis(50);

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
pub struct OpenListeners(Vec<(Listener, bool)>);

/// Serves the client connections of a process.
pub struct ConnectionHandler {
    pub(super) gateway: Arc<Gateway>,
    pub(super) proxy: Arc<HttpProxy<Proxy>>,
    pub(super) reads: Arc<Reads>,
    pub(super) direct: Arc<Direct>,
    /// Tells pingora that each response is the last of its connection.
    pub(super) shutdown: watch::Receiver<bool>,
    shutting_down: watch::Sender<bool>,
    tls: Option<TlsAcceptor>,
}

/// A new connection that exceeds no limit.
struct Admitted {
    /// Counts it for the address of its client, unless addresses are not limited.
    address: Option<AddressGuard>,
    /// Whether the header of a load balancer names the address that it counts for.
    has_header: bool,
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
            set_client_options(&socket)?;
            let listener = Listener::new(socket.listen(BACKLOG)?)?;
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
        let reads = Arc::new(Reads::default());
        let proxy = Proxy::new(Arc::clone(&gateway), Arc::clone(&reads));
        let direct = Arc::new(Direct::new(&gateway, conf));
        let proxy = pingora::proxy::http_proxy(conf, proxy);
        let (shutting_down, shutdown) = watch::channel(false);
        let tls = tls.map(TlsAcceptor::from);
        Arc::new(Self {
            gateway,
            proxy: Arc::new(proxy),
            reads,
            direct,
            shutdown,
            shutting_down,
            tls,
        })
    }

    /// Accepts connections on all listeners until the drain begins.
    pub async fn listen(self: &Arc<Self>, listeners: OpenListeners) {
        let accept = |(listener, is_tls)| {
            let guard = self.gateway.drain.listener_guard();
            let accepting = Arc::clone(self).accept_all(listener, is_tls, guard);
            tokio::spawn(panics::essential("listener", accepting))
        };
        let direct = Arc::clone(&self.direct);
        let balancer = Arc::clone(&self.gateway.balancer);
        let sweep = async move { tokio::join!(direct.sweep(), balancer.forget_idle()) };
        let sweeping = tokio::spawn(panics::essential("upstream connections", sweep));
        let tasks: Vec<_> = listeners.0.into_iter().map(accept).collect();
        for task in tasks {
            // A panic in a listener ends the process.
            let _joined = task.await;
        }
        sweeping.abort();
        self.shutting_down.send_replace(true);
    }

    /// Accepts connections on one listener until the drain begins.
    async fn accept_all(self: Arc<Self>, listener: Listener, is_tls: bool, _guard: ListenerGuard) {
        let drain = self.gateway.drain.clone();
        let mut draining = std::pin::pin!(drain.draining());
        loop {
            let accepted = tokio::select! {
                biased;
                accepted = listener.accept() => accepted,
                () = &mut draining => return,
            };
            match accepted {
                Ok((stream, peer)) => {
                    // A connection that is rejected needs no place, so no other one is closed.
                    let Some(admitted) = self.admit(peer.ip(), is_tls) else {
                        continue;
                    };
                    // This is not done before `accept`: a connection is closed only if another one
                    // needs its place. A connection that was accepted is served, also when the
                    // drain begins meanwhile.
                    self.room().await;
                    self.serve_admitted(stream, peer, admitted, is_tls);
                }
                // No file descriptors left, or the client closed the connection already.
                Err(error) => {
                    log::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Waits until there is room for a connection that was accepted, and makes room if there is
    /// none: the connection that has been idle longest is closed.
    async fn room(&self) {
        let Gateway {
            drain,
            open,
            limits,
            metrics,
            ..
        } = &*self.gateway;
        let is_full = || drain.open() >= limits.connections_max;
        while is_full() {
            if open.evict_longest_idle() {
                let shed = &metrics.connections_shed;
                shed.with_label_values(&["idle_longest"]).inc();
            }
            let closed = drain.below(limits.connections_max);
            // All connections are busy: wait, and look for an idle connection again.
            let _elapsed = tokio::time::timeout(ROOM_INTERVAL, closed).await;
        }
    }

    /// Serves a new connection in a task of its own, unless it exceeds a limit.
    pub fn begin(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr, is_tls: bool) {
        if let Some(admitted) = self.admit(peer.ip(), is_tls) {
            self.serve_admitted(stream.into(), peer, admitted, is_tls);
        }
    }

    /// Counts a new connection; `None` if it exceeds a limit and must be closed.
    fn admit(&self, peer: IpAddr, is_tls: bool) -> Option<Admitted> {
        let Gateway {
            metrics,
            pressure,
            proxy_protocol,
            ..
        } = &*self.gateway;
        metrics.connections.inc();
        if pressure.stage() == Stage::Refusing {
            self.shed("memory");
            return None;
        }
        let has_header = proxy_protocol.iter().any(|network| network.contains(peer));
        let counted = match has_header {
            true => Ok(None),
            false => self.count(peer, is_tls),
        };
        let address = counted.inspect_err(|&reason| self.shed(reason)).ok()?;
        Some(Admitted {
            address,
            has_header,
        })
    }

    fn serve_admitted(
        self: &Arc<Self>,
        stream: Socket,
        peer: SocketAddr,
        admitted: Admitted,
        is_tls: bool,
    ) {
        let Admitted {
            address,
            has_header,
        } = admitted;
        let Gateway { drain, open, .. } = &*self.gateway;
        let (registration, activity) = open.add(drain);
        let guards = Guards {
            connection: drain.guard(),
            address,
            open: Some(registration),
        };
        let handler = Arc::clone(self);
        let serving = async move {
            let (mut stream, mut peer, mut guards) = (stream, peer, guards);
            if has_header {
                let naming = handler.named_client(&mut stream, peer, is_tls, &activity);
                match Box::pin(naming).await {
                    Ok((client, address)) => (peer, guards.address) = (client, address),
                    Err(reason) => return handler.shed(reason),
                }
            }
            handler.serve(stream, peer, guards, activity, is_tls).await;
        };
        // The runtime copies a task when it begins and when it ends, and this one is large.
        tokio::spawn(Box::pin(serving));
    }

    /// Counts a connection for the address of its client.
    ///
    /// # Errors
    ///
    /// The reason for which it must be closed, as metrics name it.
    fn count(&self, client: IpAddr, is_tls: bool) -> Result<Option<AddressGuard>, &'static str> {
        let counted = self.gateway.clients.connect(client, is_tls);
        counted.map_err(|limit| match limit {
            LimitKind::Handshakes => "address_handshakes",
            _ => "address_connections",
        })
    }

    /// Counts a connection that is closed to protect the others.
    fn shed(&self, reason: &'static str) {
        let shed = &self.gateway.metrics.connections_shed;
        shed.with_label_values(&[reason]).inc();
    }

    /// Reads the header of a load balancer and counts the connection for the client in it.
    ///
    /// # Errors
    ///
    /// As [`ConnectionHandler::count`]; and `proxy_protocol` without a valid header.
    async fn named_client(
        &self,
        stream: &mut Socket,
        peer: SocketAddr,
        is_tls: bool,
        activity: &Activity,
    ) -> Result<(SocketAddr, Option<AddressGuard>), &'static str> {
        const REASON: &str = "proxy_protocol";
        let header =
            tokio::time::timeout(self.gateway.limits.head, proxy_protocol::read(stream, peer));
        // Its client is about to send something, as on a connection without a request.
        let leaving = async {
            self.gateway.drain.draining().await;
            tokio::time::sleep(self.gateway.limits.drain_idle).await;
        };
        let client = tokio::select! {
            client = header => client,
            () = activity.evicted() => return Err(REASON),
            () = leaving => return Err(REASON),
        };
        let client = match client {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => {
                log::warn!(target: "gateway", peer:%; "cannot read the header of the PROXY protocol: {error}");
                return Err(REASON);
            }
            Err(_elapsed) => {
                log::warn!(target: "gateway", peer:%; "the header of the PROXY protocol took too long");
                return Err(REASON);
            }
        };
        let address = self.count(client.ip(), is_tls)?;
        Ok((client, address))
    }

    async fn serve(
        self: Arc<Self>,
        stream: Socket,
        peer: SocketAddr,
        guards: Guards,
        activity: Arc<Activity>,
        is_tls: bool,
    ) {
        let metrics = Arc::clone(&self.gateway.metrics);
        let write_rate = WriteRate::of_connection(&self.gateway.limits, &metrics);
        let connection = match (is_tls, &self.tls) {
            (true, Some(acceptor)) => {
                let handshake = self.handshake(acceptor, stream, &activity);
                let Some(stream) = Box::pin(handshake).await else {
                    return;
                };
                let answers_challenge = stream.get_ref().1.alpn_protocol() == Some(TLS_PROTOCOL);
                let connection = ClientConnection::tls(stream, peer, guards, write_rate);
                if answers_challenge {
                    // RFC 8737 §3: the handshake was the answer, no data follows.
                    return Box::pin(connection.close()).await;
                }
                connection
            }
            _ => ClientConnection::plain(stream, peer, guards, write_rate),
        };
        match connection.info().is_http2() {
            true => Box::pin(http2::serve(self, connection, activity)).await,
            false => Http1::new(self, connection, activity).run().await,
        }
    }

    /// Makes the TLS handshake of a connection; `None` if it fails, takes too long, or others need
    /// the place of the connection.
    async fn handshake(
        &self,
        acceptor: &TlsAcceptor,
        stream: Socket,
        activity: &Activity,
    ) -> Option<Box<TlsStream<Socket>>> {
        let accepting = acceptor.accept(stream);
        let handshake = tokio::time::timeout(self.gateway.limits.head, accepting);
        let accepted = tokio::select! {
            accepted = handshake => accepted,
            () = activity.evicted() => return None,
        };
        match accepted {
            Ok(Ok(stream)) => Some(Box::new(stream)),
            Ok(Err(_)) | Err(_) => {
                self.gateway.metrics.tls_failures.inc();
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use socket2::SockRef;

    use super::*;

    /// Returns the size of the future that a function makes, without calling it.
    fn size_of_future<F>(_make: impl FnOnce() -> F) -> usize {
        size_of::<F>()
    }

    fn any<T>() -> T {
        unreachable!("only its type is used")
    }

    #[test]
    fn the_task_of_a_connection_is_small() {
        let serve =
            |handler: Arc<ConnectionHandler>| handler.serve(any(), any(), any(), any(), any());
        // It is held while the connection is idle.
        let plain = size_of_future(|| serve(any()));
        assert!(plain < 6 << 10, "{plain}");
        let http2 = size_of_future(|| http2::serve(any(), any(), any()));
        assert!(http2 < 9 << 10, "{http2}");
    }

    #[tokio::test]
    async fn an_accepted_socket_has_the_options_of_its_listener() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listeners = Listeners {
            http: vec![socket],
            https: Vec::new(),
        };
        let open = listeners.open().unwrap().0;
        let address = open[0].0.local_addr().unwrap();
        let (client, accepted) = tokio::join!(TcpStream::connect(address), open[0].0.accept());
        let _client = client.unwrap();
        let (mut accepted, _) = accepted.unwrap();
        let accepted = SockRef::from(&*accepted.registered().unwrap());
        assert!(accepted.tcp_nodelay().unwrap());
        assert_eq!(accepted.tcp_notsent_lowat().unwrap(), 16 << 10);
    }
}
