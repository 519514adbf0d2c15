//! A gateway without sites and the connections of its clients, for unit tests.

use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};

use super::access::Target;
use super::clients::ClientLimits;
use super::connection::ClientConnection;
use super::open::{Activity, Guards};
use super::write_rate::WriteRate;
use super::*;
use crate::site::{PrivateHosts, Service};

/// A gateway without sites.
pub(super) fn gateway() -> Arc<Gateway> {
    let metrics = Arc::new(Metrics::new());
    let clients = Clients::new(ClientLimits::default(), TrustedPeers::default(), &metrics);
    Arc::new(Gateway {
        proxy_protocol: Vec::new(),
        index: Arc::new(Index::new(Service::default())),
        access: Access::start(&Target::Off, metrics.access_lines_dropped.clone()).unwrap(),
        metrics,
        limits: Arc::default(),
        clients: Arc::new(clients),
        open: Arc::default(),
        pressure: Arc::default(),
        top: Arc::default(),
        upstream: UpstreamLimits::default(),
        trusted: TrustedPeers::default(),
        fast_path: true,
        tls: tls::Policy::default(),
        challenges: None,
        drain: Drain::new(),
        resolver: Resolver::new(PrivateHosts::default()),
        balancer: Arc::new(Balancer::new(UpstreamLimits::default(), Arc::default())),
        copies: None,
        admin: None,
        clock: Clock::System,
    })
}

/// Makes the connection of an accepted socket.
pub(super) fn connection(
    gateway: &Gateway,
    stream: TcpStream,
    peer: SocketAddr,
) -> (ClientConnection, Arc<Activity>) {
    let (registration, activity) = gateway.open.add(&gateway.drain);
    let guards = Guards {
        connection: gateway.drain.guard(),
        address: None,
        open: Some(registration),
    };
    let write_rate = WriteRate::of_connection(&gateway.limits, &gateway.metrics);
    let connection = ClientConnection::plain(stream.into(), peer, guards, write_rate);
    (connection, activity)
}

/// Opens a connection to the gateway; returns both ends, the gateway's first.
pub(super) async fn connect(gateway: &Gateway) -> (ClientConnection, Arc<Activity>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    let (stream, peer) = accepted.unwrap();
    let (connection, activity) = connection(gateway, stream, peer);
    (connection, activity, client.unwrap())
}
