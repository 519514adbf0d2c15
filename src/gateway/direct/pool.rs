//! Idle connections to upstreams.
//!
//! A connection belongs to one site, one address that was checked, and one of the servers of the
//! site: its scheme, its name and with it the name in its certificate. When a site record changes
//! its origin, the connections of the old one are not used again.
//!
//! The connection that was returned last is used first. When there is no room, the one that has
//! been idle longest is closed. An upstream may close an idle connection at any moment:
//! [`Pool::take`] returns no connection that is known to be closed, and [`Pool::sweep`] frees
//! those.

use std::hash::BuildHasher as _;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use pingora::protocols::Stream;
use tokio::io::{AsyncRead as _, ReadBuf};

use crate::site::Site;

/// How many bytes of buffers an idle connection keeps.
const IDLE_BUFFER_BYTES: usize = 40 << 10;

/// A connection to an upstream, with the buffers of its exchanges.
pub(super) struct Link {
    pub(super) stream: Stream,
    /// Bytes that were read and not forwarded yet.
    pub(super) read: BytesMut,
    /// The head that the client gets.
    pub(super) head: Vec<u8>,
}

/// The idle connections of a process.
pub(super) struct Pool {
    max: usize,
    idle: Duration,
    hasher: RandomState,
    groups: Mutex<Groups>,
}

#[derive(Default)]
struct Groups {
    table: HashTable<Group>,
    /// How many connections there are.
    count: usize,
}

/// The connections for one site to one address.
struct Group {
    site: Arc<Site>,
    /// Which of the servers of the site.
    server: usize,
    address: SocketAddr,
    /// The connection with the longest idle time comes first.
    links: Vec<Idle>,
    /// Whether a connection was taken since the last sweep: then it will return, and needs no new
    /// group.
    is_used: bool,
}

struct Idle {
    link: Link,
    since: Instant,
}

// === impl Link ===

impl Link {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            read: BytesMut::new(),
            head: Vec::new(),
        }
    }

    /// Returns whether nothing has come since the last response. An upstream sends nothing of
    /// itself but the end of the connection.
    fn is_quiet(&mut self) -> bool {
        let mut byte = [0; 1];
        let mut context = Context::from_waker(Waker::noop());
        let read = Pin::new(&mut self.stream).poll_read(&mut context, &mut ReadBuf::new(&mut byte));
        read.is_pending()
    }
}

// === impl Pool ===

impl Pool {
    /// Makes a pool of at most `max` connections, each idle for at most `idle`.
    pub(super) fn new(max: usize, idle: Duration) -> Self {
        Self {
            max,
            idle,
            hasher: RandomState::default(),
            groups: Mutex::default(),
        }
    }

    /// Takes a connection.
    pub(super) fn take(
        &self,
        site: &Arc<Site>,
        server: usize,
        address: SocketAddr,
    ) -> Option<Link> {
        loop {
            let mut idle = self.pop(site, server, address)?;
            if idle.since.elapsed() < self.idle && idle.link.is_quiet() {
                return Some(idle.link);
            }
        }
    }

    fn pop(&self, site: &Arc<Site>, server: usize, address: SocketAddr) -> Option<Idle> {
        let hash = self.hash(site, server, address);
        let mut groups = self.groups();
        let group = groups
            .table
            .find_mut(hash, |group| group.is_for(site, server, address))?;
        let idle = group.links.pop()?;
        group.is_used = true;
        groups.count -= 1;
        Some(idle)
    }

    /// Returns a connection whose last response was read to its end.
    pub(super) fn put(&self, site: &Arc<Site>, server: usize, address: SocketAddr, mut link: Link) {
        link.read.clear();
        link.head.clear();
        if link.read.capacity() + link.head.capacity() > IDLE_BUFFER_BYTES {
            (link.read, link.head) = (BytesMut::new(), Vec::new());
        }
        if self.max == 0 {
            return;
        }
        let hash = self.hash(site, server, address);
        let idle = Idle {
            link,
            since: Instant::now(),
        };
        let mut groups = self.groups();
        let is_full = groups.count >= self.max;
        // Closed after the lock is free.
        let closed = is_full.then(|| groups.remove_oldest());
        groups.count += 1;
        let is_for = |group: &Group| group.is_for(site, server, address);
        match groups.table.find_mut(hash, is_for) {
            Some(group) => group.links.push(idle),
            None => {
                let group = Group {
                    site: Arc::clone(site),
                    server,
                    address,
                    links: vec![idle],
                    is_used: false,
                };
                let hash_of = |group: &Group| self.hash(&group.site, group.server, group.address);
                groups.table.insert_unique(hash, group, hash_of);
            }
        }
        drop(groups);
        drop(closed);
    }

    /// Closes connections that were idle for too long, and those that the upstream has closed.
    pub(super) fn sweep(&self) {
        let mut groups = self.groups();
        let is_kept = |idle: &mut Idle| idle.since.elapsed() < self.idle && idle.link.is_quiet();
        groups.table.retain(|group| {
            group.links.retain_mut(is_kept);
            std::mem::take(&mut group.is_used) || !group.links.is_empty()
        });
        groups.count = groups.table.iter().map(|group| group.links.len()).sum();
    }

    fn hash(&self, site: &Site, server: usize, address: SocketAddr) -> u64 {
        self.hasher.hash_one((&site.project, server, address))
    }

    /// Every change is one connection more or less, so the table is whole after a panic too.
    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Groups ===

impl Groups {
    fn remove_oldest(&mut self) -> Option<Idle> {
        let oldest = |group: &&mut Group| group.links.first().map(|idle| idle.since);
        let groups = self
            .table
            .iter_mut()
            .filter(|group| !group.links.is_empty());
        let group = groups.min_by_key(oldest)?;
        self.count -= 1;
        Some(group.links.remove(0))
    }
}

// === impl Group ===

impl Group {
    fn is_for(&self, site: &Arc<Site>, server: usize, address: SocketAddr) -> bool {
        // A record that was read again is another value, and may say the same.
        let is_same = || self.site.project == site.project && self.site.origin == site.origin;
        self.server == server
            && self.address == address
            && (Arc::ptr_eq(&self.site, site) || is_same())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::site::{Origin, ProjectId, Scheme, Upstream, UpstreamHttp};

    fn site(project: &str, host: &str) -> Arc<Site> {
        Arc::new(Site {
            origin: Origin::Upstream(Upstream {
                http: UpstreamHttp::One,
                ..Upstream::new(Scheme::Https, host, 443)
            }),
            ..Site::new(ProjectId::parse(project).unwrap())
        })
    }

    /// Connections to an upstream: our end and its end.
    async fn connect(listener: &TcpListener) -> (Link, TcpStream) {
        let address = listener.local_addr().unwrap();
        let ours = TcpStream::connect(address).await.unwrap();
        let stream = pingora::protocols::l4::stream::Stream::from(ours);
        (
            Link::new(Box::new(stream)),
            listener.accept().await.unwrap().0,
        )
    }

    #[tokio::test]
    async fn a_connection_is_used_for_its_site_address_and_origin_only() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let pool = Pool::new(4, Duration::from_secs(60));
        let acme = site("acme", "origin.test");
        let (link, _end) = connect(&listener).await;
        pool.put(&acme, 0, address, link);
        assert!(
            pool.take(&site("other", "origin.test"), 0, address)
                .is_none()
        );
        assert!(pool.take(&site("acme", "moved.test"), 0, address).is_none());
        let elsewhere = (address.ip(), 1).into();
        assert!(pool.take(&acme, 0, elsewhere).is_none());
        assert!(pool.take(&acme, 1, address).is_none());
        // The record was read again and says the same.
        assert!(
            pool.take(&site("acme", "origin.test"), 0, address)
                .is_some()
        );
        assert!(pool.take(&acme, 0, address).is_none());
    }

    #[tokio::test]
    async fn a_connection_that_was_closed_or_sends_something_is_not_used() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let pool = Pool::new(8, Duration::from_secs(60));
        let acme = site("acme", "origin.test");
        for sends in [false, true] {
            for is_swept in [false, true] {
                let (mut link, mut end) = connect(&listener).await;
                match sends {
                    true => end
                        .write_all(b"HTTP/1.1 408 Request Timeout\r\n")
                        .await
                        .unwrap(),
                    false => drop(end),
                }
                // The bytes, or the end, have arrived.
                std::future::poll_fn(|cx| {
                    let mut byte = [0; 1];
                    Pin::new(&mut link.stream).poll_read(cx, &mut ReadBuf::new(&mut byte))
                })
                .await
                .unwrap();
                pool.put(&acme, 0, address, link);
                if is_swept {
                    pool.sweep();
                    assert_eq!(pool.groups().count, 0);
                }
                assert!(pool.take(&acme, 0, address).is_none());
            }
        }
    }

    #[tokio::test]
    async fn the_oldest_connection_makes_room_and_an_old_one_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let pool = Pool::new(2, Duration::from_secs(60));
        let mut ends = Vec::new();
        for project in ["a", "b", "c"] {
            let (link, end) = connect(&listener).await;
            pool.put(&site(project, "origin.test"), 0, address, link);
            ends.push(end);
        }
        assert!(pool.take(&site("a", "origin.test"), 0, address).is_none());
        assert!(pool.take(&site("b", "origin.test"), 0, address).is_some());
        assert_eq!(pool.groups().count, 1);
        let brief = Pool::new(2, Duration::ZERO);
        let (link, _end) = connect(&listener).await;
        brief.put(&site("a", "origin.test"), 0, address, link);
        assert!(brief.take(&site("a", "origin.test"), 0, address).is_none());
    }

    #[tokio::test]
    async fn an_idle_connection_keeps_no_bytes_and_only_small_buffers() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let pool = Pool::new(4, Duration::from_secs(60));
        let acme = site("acme", "origin.test");
        for (capacity, is_kept) in [
            (IDLE_BUFFER_BYTES / 4, true),
            (IDLE_BUFFER_BYTES * 3 / 4, false),
        ] {
            let (mut link, _end) = connect(&listener).await;
            link.read = BytesMut::with_capacity(capacity);
            link.head = Vec::with_capacity(capacity);
            link.read.extend_from_slice(b"read");
            link.head.extend_from_slice(b"head");
            pool.put(&acme, 0, address, link);
            let link = pool.take(&acme, 0, address).unwrap();
            assert!(link.read.is_empty() && link.head.is_empty());
            let kept = (link.read.capacity() > 0, link.head.capacity() > 0);
            assert_eq!(kept, (is_kept, is_kept), "{capacity}");
        }
    }

    #[tokio::test]
    async fn a_pool_without_room_keeps_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let pool = Pool::new(0, Duration::from_secs(60));
        let (link, _end) = connect(&listener).await;
        pool.put(&site("acme", "origin.test"), 0, address, link);
        assert_eq!(pool.groups().count, 0);
        assert!(
            pool.take(&site("acme", "origin.test"), 0, address)
                .is_none()
        );
    }

    #[tokio::test]
    async fn a_sweep_closes_old_connections_and_forgets_unused_groups() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acme = site("acme", "origin.test");
        let groups = |pool: &Pool| {
            let groups = pool.groups();
            (groups.table.len(), groups.count)
        };
        let pool = Pool::new(4, Duration::from_secs(60));
        let (link, _end) = connect(&listener).await;
        pool.put(&acme, 0, address, link);
        let link = pool.take(&acme, 0, address).unwrap();
        pool.sweep();
        // The connection is about to return.
        assert_eq!(groups(&pool), (1, 0));
        pool.sweep();
        assert_eq!(groups(&pool), (0, 0));
        pool.put(&acme, 0, address, link);
        pool.sweep();
        assert_eq!(groups(&pool), (1, 1));
        let brief = Pool::new(4, Duration::ZERO);
        let (link, _other_end) = connect(&listener).await;
        brief.put(&acme, 0, address, link);
        brief.sweep();
        assert_eq!(groups(&brief), (0, 0));
    }
}
