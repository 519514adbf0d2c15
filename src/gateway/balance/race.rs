//! Connecting to a name with several addresses (Happy Eyeballs, RFC 8305).
//!
//! The address families alternate, beginning with the chosen address. An attempt that has
//! not succeeded after [`ATTEMPT_DELAY`] does not end; the next one begins beside it, and at once
//! when an attempt fails. The first connection wins, and the others are dropped. So an address that
//! does not respond costs a reader a quarter of a second, and not the whole timeout.
//!
//! All addresses come from one look-up and were checked. Both pools keep an idle connection under
//! the address that was chosen, and pingora's does not use it if it leads to another one. So an
//! address that loses is not chosen until the next look-up ([`Resolver::avoid`]).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pingora::connectors::L4Connect;
use pingora::protocols::l4::socket::SocketAddr as PingoraAddr;
use pingora::protocols::l4::stream::Stream;
use pingora::{Error, ErrorType};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::places::{Place, Places};
use crate::origin::Resolver;

/// RFC 8305 §5: the recommended Connection Attempt Delay.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// How many addresses are tried.
const ATTEMPTS_MAX: usize = 8;

/// Connects to one of several addresses.
#[derive(Debug)]
pub(in crate::gateway) struct Race {
    addresses: Vec<SocketAddr>,
    limit: Duration,
    resolver: Resolver,
    /// The name that has the addresses.
    host: Box<str>,
    /// The places of the process.
    places: Arc<Places>,
}

impl Race {
    /// Makes a race that begins with `first`, one of `all`.
    pub(in crate::gateway) fn new(
        (resolver, host): (&Resolver, &str),
        first: SocketAddr,
        all: &[IpAddr],
        limit: Duration,
        places: &Arc<Places>,
    ) -> Self {
        Self {
            addresses: in_order(first, all),
            limit,
            resolver: resolver.clone(),
            host: host.into(),
            places: Arc::clone(places),
        }
    }

    async fn run(&self) -> io::Result<TcpStream> {
        let mut rest = self.addresses.iter().copied().peekable();
        let mut attempts = JoinSet::new();
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        loop {
            // The place of the request is for one attempt. Without a place for another one, the
            // next address waits until an attempt has failed.
            let extra = match attempts.is_empty() {
                true => Some(None),
                false if rest.peek().is_none() => None,
                false => Place::take(&self.places).map(Some),
            };
            if let Some(extra) = extra
                && let Some(address) = rest.next()
            {
                attempts.spawn(async move {
                    let _extra = extra;
                    TcpStream::connect(address).await
                });
            }
            let delay = tokio::time::sleep(ATTEMPT_DELAY);
            let joined = tokio::select! {
                joined = attempts.join_next() => joined,
                () = delay, if rest.peek().is_some() => continue,
            };
            match joined {
                Some(Ok(Ok(stream))) => return Ok(stream),
                Some(Ok(Err(error))) => last = error,
                Some(Err(ended)) => last = ended.into(),
                None => return Err(last),
            }
        }
    }
}

/// Returns the addresses in the order of the attempts (RFC 8305 §4).
fn in_order(first: SocketAddr, all: &[IpAddr]) -> Vec<SocketAddr> {
    let port = first.port();
    let start = all.iter().position(|address| *address == first.ip());
    let (before, after) = all.split_at(start.unwrap_or(0));
    let turned = || after.iter().chain(before).copied();
    let is_first_family = |address: &IpAddr| address.is_ipv4() == first.is_ipv4();
    let mut same = turned().filter(is_first_family);
    let mut other = turned().filter(|address| !is_first_family(address));
    let mut order: Vec<SocketAddr> = Vec::new();
    while order.len() < ATTEMPTS_MAX {
        let pair = [same.next(), other.next()];
        if pair == [None, None] {
            break;
        }
        order.extend(
            pair.into_iter()
                .flatten()
                .map(|ip| SocketAddr::new(ip, port)),
        );
    }
    order
}

#[async_trait]
impl L4Connect for Race {
    async fn connect(&self, _chosen: &PingoraAddr) -> pingora::Result<Stream> {
        let why = "connect to an address of the upstream";
        match tokio::time::timeout(self.limit, self.run()).await {
            Ok(Ok(stream)) => {
                let winner = stream.peer_addr().map(|address| address.ip());
                if let Some(chosen) = self.addresses.first()
                    && winner.is_ok_and(|winner| winner != chosen.ip())
                {
                    self.resolver.avoid(&self.host, chosen.ip());
                }
                Ok(stream.into())
            }
            Ok(Err(error)) => {
                let kind = match error.kind() {
                    io::ErrorKind::ConnectionRefused => ErrorType::ConnectRefused,
                    io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                        ErrorType::ConnectNoRoute
                    }
                    io::ErrorKind::TimedOut => ErrorType::ConnectTimedout,
                    _ => ErrorType::ConnectError,
                };
                Err(Error::because(kind, why, error))
            }
            Err(elapsed) => Err(Error::because(ErrorType::ConnectTimedout, why, elapsed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::net::TcpListener;

    use super::*;
    use crate::site::PrivateHosts;

    fn race(first: SocketAddr, all: &[IpAddr]) -> Race {
        let resolver = Resolver::new(PrivateHosts::default());
        let places = Arc::new(Places::new(8));
        let limit = Duration::from_secs(5);
        Race::new((&resolver, "a.test"), first, all, limit, &places)
    }

    #[test]
    fn families_take_turns_beginning_with_the_chosen_address() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let all = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"].map(ip);
        let order = in_order((ip("192.0.2.2"), 80).into(), &all);
        let order: Vec<_> = order.iter().map(|address| address.ip()).collect();
        let expected = ["192.0.2.2", "2001:db8::1", "192.0.2.3", "192.0.2.1"].map(ip);
        assert_eq!(order, expected);
    }

    #[tokio::test]
    async fn an_address_that_refuses_or_is_silent_gives_way_to_the_next() {
        let listener = TcpListener::bind("127.0.0.2:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // The first has no listener. The second queues one connection and never accepts, so
        // further connections get no response at all.
        let silent = tokio::net::TcpSocket::new_v4().unwrap();
        silent.bind(([127, 0, 0, 3], port).into()).unwrap();
        let _silent = silent.listen(0).unwrap();
        let _queued = TcpStream::connect(("127.0.0.3", port)).await.unwrap();
        let ip = |last| IpAddr::from([127, 0, 0, last]);
        for first in [4, 3] {
            let all = [ip(first), ip(2)];
            let began = Instant::now();
            let race = race((ip(first), port).into(), &all);
            let stream = race.run().await.unwrap();
            assert_eq!(stream.peer_addr().unwrap().ip(), ip(2), "{first}");
            assert!(began.elapsed() < Duration::from_secs(3), "{first}");
        }
        let race = race((ip(4), port).into(), &[ip(4), ip(5)]);
        let error = race.run().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
