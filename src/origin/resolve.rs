//! The addresses of upstreams.
//!
//! A name is looked up once, and its addresses are used for [`FRESH`]. If a lookup fails, the
//! last addresses are used for up to [`STALE`], so a failure of the resolver does not stop sites
//! whose servers work. The addresses of a name are used round-robin.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long addresses are used before the next lookup.
const FRESH: Duration = Duration::from_secs(30);
/// How long they are used if lookups fail.
const STALE: Duration = Duration::from_secs(3600);
/// How long a lookup may take.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);
/// How many names are cached. When the cache is full, names older than [`FRESH`] are removed.
const NAMES_MAX: usize = 100_000;

/// Why a request cannot be sent to its upstream.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnresolvedUpstream {
    /// The name has no address.
    #[error("upstream {0} has no address")]
    NoAddress(Box<str>),
    /// The resolver did not respond in time.
    #[error("look up upstream {0} in time")]
    TimedOut(Box<str>),
    /// The resolver failed.
    #[error("look up upstream {0}")]
    Failed(Box<str>, #[source] io::Error),
}

/// Looks up names and caches their addresses.
#[derive(Debug, Default)]
pub struct Resolver {
    names: Mutex<HashMap<Box<str>, Resolved>>,
    turn: AtomicUsize,
}

#[derive(Clone, Debug)]
struct Resolved {
    addresses: std::sync::Arc<[IpAddr]>,
    since: Instant,
}

// === impl Resolver ===

impl Resolver {
    /// Returns an address of `host`, which is a name or an address.
    ///
    /// # Errors
    ///
    /// [`UnresolvedUpstream`] when there is no address, not even an old one.
    pub async fn resolve(&self, host: &str, port: u16) -> Result<SocketAddr, UnresolvedUpstream> {
        let literal = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        if let Ok(address) = literal.parse::<IpAddr>() {
            return Ok((address, port).into());
        }
        let known = self.known(host);
        if let Some(known) = known.as_ref().filter(|known| known.since.elapsed() < FRESH) {
            return Ok((self.pick(&known.addresses), port).into());
        }
        match look_up(host).await {
            Ok(addresses) => {
                let address = self.pick(&addresses);
                self.remember(
                    host,
                    Resolved {
                        addresses,
                        since: Instant::now(),
                    },
                );
                Ok((address, port).into())
            }
            Err(error) => match known.filter(|known| known.since.elapsed() < STALE) {
                Some(known) => {
                    log::warn!(target: "origin", "{error}; using the addresses of the last lookup");
                    Ok((self.pick(&known.addresses), port).into())
                }
                None => Err(error),
            },
        }
    }

    fn known(&self, host: &str) -> Option<Resolved> {
        self.names
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(host)
            .cloned()
    }

    fn remember(&self, host: &str, known: Resolved) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= NAMES_MAX {
            names.retain(|_, known| known.since.elapsed() < FRESH);
        }
        names.insert(host.into(), known);
    }

    fn pick(&self, addresses: &[IpAddr]) -> IpAddr {
        addresses[self.turn.fetch_add(1, Ordering::Relaxed) % addresses.len()]
    }
}

async fn look_up(host: &str) -> Result<std::sync::Arc<[IpAddr]>, UnresolvedUpstream> {
    let found = tokio::time::timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((host, 0)))
        .await
        .map_err(|_elapsed| UnresolvedUpstream::TimedOut(host.into()))?
        .map_err(|error| UnresolvedUpstream::Failed(host.into(), error))?;
    let addresses: std::sync::Arc<[IpAddr]> = found.map(|address| address.ip()).collect();
    if addresses.is_empty() {
        Err(UnresolvedUpstream::NoAddress(host.into()))
    } else {
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_needs_no_lookup_and_a_name_is_found() {
        let resolver = Resolver::default();
        assert_eq!(
            resolver.resolve("127.0.0.2", 80).await.unwrap(),
            "127.0.0.2:80".parse().unwrap()
        );
        assert_eq!(
            resolver.resolve("[::1]", 80).await.unwrap(),
            "[::1]:80".parse().unwrap()
        );
        assert!(
            resolver
                .resolve("localhost", 80)
                .await
                .unwrap()
                .ip()
                .is_loopback()
        );
        let error = resolver
            .resolve("no-such-host.invalid", 80)
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("no-such-host.invalid"),
            "{error}"
        );
    }
}
