//! The addresses of upstreams.
//!
//! Addresses of a name are used for [`FRESH`]. Then the next request still gets them at once, and
//! a lookup begins in the background. If lookups fail, the last addresses are used for up to
//! [`STALE`], so a failure of the resolver does not stop sites whose servers work. Only the first
//! requests for a name wait, and all of them wait for the same lookup. After a failure requests
//! fail at once until the next lookup, which follows after a time that doubles with each failure.
//! The addresses of a name are used round-robin.
//!
//! **Invariant:** every address that is returned was checked ([`PrivateHosts`]), also an address
//! in a site record. The caller connects to this address, so DNS cannot give another address
//! between the check and the connection.
//!
//! A lookup blocks a thread until the system gives up, which may take longer than
//! [`LOOKUP_TIMEOUT`]. So at most [`LOOKUPS_MAX`] threads look up names; the other threads of the
//! process stay free to read from the store. An owner of sites gets at most [`LOOKUPS_OF_OWNER_MAX`]
//! of them, so the silent name servers of a few owners do not stop the sites of others. Sites of
//! several owners may have servers of the same name. So a request first waits until its owner may
//! have another lookup, and only then begins the lookup of the name: meanwhile a request for a site
//! of another owner may begin it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::site::PrivateHosts;

/// How long addresses are used before the next lookup.
const FRESH: Duration = Duration::from_secs(30);
/// How long they are used if lookups fail.
const STALE: Duration = Duration::from_secs(3600);
/// How long a request waits for a lookup.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long after the first failure the next lookup may begin. Each further failure doubles it.
const RETRY: Duration = Duration::from_secs(1);
/// The longest time between two lookups of a name that fails.
const RETRY_MAX: Duration = Duration::from_secs(60);
/// How many lookups may run at once. Tokio has 512 threads for work that blocks.
const LOOKUPS_MAX: usize = 128;
/// How many of them may be for the sites of one owner.
const LOOKUPS_OF_OWNER_MAX: usize = 8;
/// How many owners are remembered before those without a lookup are forgotten.
const OWNERS_MAX: usize = 1000;
/// How many names are cached. When the cache is full, names older than [`FRESH`] are removed.
const NAMES_MAX: usize = 100_000;

/// Why a request cannot be sent to its upstream.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnresolvedUpstream {
    /// The name has no address.
    #[error("upstream {0} has no address")]
    NoAddress(Box<str>),
    /// No address of the upstream is public or allowed by the operator.
    #[error(
        "upstream {0} has the private address {1}, which `upstream.private_hosts` does not list"
    )]
    Private(Box<str>, IpAddr),
    /// The resolver did not respond in time.
    #[error("look up upstream {0} in time")]
    TimedOut(Box<str>),
    /// The resolver failed.
    #[error("look up upstream {0}: {1}")]
    Failed(Box<str>, #[source] Arc<io::Error>),
}

/// The addresses of an upstream, all of them checked.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The one whose turn it is.
    pub address: SocketAddr,
    /// All of them, if there is more than one.
    pub all: Option<Arc<[IpAddr]>>,
}

/// Looks up names, caches their addresses, and checks that they may be connected to.
#[derive(Clone, Debug)]
pub struct Resolver(Arc<Shared>);

/// Asks the resolver of the system for the addresses of a name. It may block.
type LookUp = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

struct Shared {
    private_hosts: PrivateHosts,
    look_up: Box<LookUp>,
    names: Mutex<HashMap<Box<str>, Name>>,
    turn: AtomicUsize,
    lookups: Arc<Semaphore>,
    /// The lookups of each owner.
    owners: Mutex<HashMap<Box<str>, Arc<Semaphore>>>,
}

/// The state of a name.
#[derive(Debug)]
struct Name {
    /// The allowed addresses of the last lookup that found some; empty before it.
    addresses: Arc<[IpAddr]>,
    /// When they were found.
    since: Instant,
    /// No lookup begins before this time.
    next: Instant,
    /// How often lookups have failed since then.
    failures: u32,
    /// How the last lookup failed.
    error: Option<UnresolvedUpstream>,
    /// The lookup that is running; cancelled when it has ended.
    running: Option<CancellationToken>,
}

/// The state of a name in the cache.
enum NameState {
    /// The addresses, or why there are none.
    Found(Result<Arc<[IpAddr]>, UnresolvedUpstream>),
    /// There are no addresses until this lookup has ended.
    Running(CancellationToken),
    /// There are no addresses, and a lookup may begin.
    Due,
}

// === impl Resolver ===

impl Resolver {
    /// Makes a resolver that returns public addresses, and those private ones that are allowed.
    #[must_use]
    pub fn new(private_hosts: PrivateHosts) -> Self {
        Self::with(private_hosts, |host| {
            Ok((host, 0)
                .to_socket_addrs()?
                .map(|found| found.ip())
                .collect())
        })
    }

    fn with(
        private_hosts: PrivateHosts,
        look_up: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Shared {
            private_hosts,
            look_up: Box::new(look_up),
            names: Mutex::default(),
            turn: AtomicUsize::new(0),
            lookups: Arc::new(Semaphore::new(LOOKUPS_MAX)),
            owners: Mutex::default(),
        }))
    }

    /// Returns an address of `host`, which is a name or an address, and the others that it has. A
    /// lookup counts for `owner`.
    ///
    /// # Errors
    ///
    /// [`UnresolvedUpstream`] when there is no address that may be used, not even an old one.
    pub async fn resolve(
        &self,
        owner: &str,
        host: &str,
        port: u16,
    ) -> Result<Resolved, UnresolvedUpstream> {
        let literal = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        if let Ok(address) = literal.parse::<IpAddr>() {
            return match self.0.private_hosts.allow(literal, address) {
                true => Ok(Resolved {
                    address: (address, port).into(),
                    all: None,
                }),
                false => Err(UnresolvedUpstream::Private(host.into(), address)),
            };
        }
        let mut state = self.state(host, || self.0.share_of(owner).try_acquire_owned().ok());
        if matches!(state, NameState::Due) {
            let share = self.0.share_of(owner).acquire_owned();
            let permit = tokio::time::timeout(LOOKUP_TIMEOUT, share).await;
            state = self.state(host, || permit.ok()?.ok());
        }
        let running = match state {
            NameState::Found(found) => return found.map(|addresses| self.pick(&addresses, port)),
            NameState::Running(running) => running,
            NameState::Due => return Err(UnresolvedUpstream::TimedOut(host.into())),
        };
        // Longer than the lookup itself may take: it reports its own timeout.
        let _elapsed = tokio::time::timeout(2 * LOOKUP_TIMEOUT, running.cancelled()).await;
        let names = self.0.names();
        let Some(name) = names.get(host) else {
            return Err(UnresolvedUpstream::TimedOut(host.into()));
        };
        match (name.is_usable(Instant::now()), &name.error) {
            (true, _) => Ok(self.pick(&name.addresses, port)),
            (false, Some(error)) => Err(error.clone()),
            (false, None) => Err(UnresolvedUpstream::TimedOut(host.into())),
        }
    }

    /// Chooses the other addresses of a name until the next lookup, if it has others.
    pub fn avoid(&self, host: &str, address: IpAddr) {
        let mut names = self.0.names();
        let Some(name) = names.get_mut(host) else {
            return;
        };
        let others = name.addresses.iter().copied();
        let others: Arc<[IpAddr]> = others.filter(|other| *other != address).collect();
        if !others.is_empty() {
            name.addresses = others;
        }
    }

    /// Returns what is known of a name. A lookup begins when it is due and `permit` returns the
    /// permit of an owner for it.
    fn state(
        &self,
        host: &str,
        permit: impl FnOnce() -> Option<OwnedSemaphorePermit>,
    ) -> NameState {
        let now = Instant::now();
        let mut names = self.0.names();
        let Some(name) = names.get_mut(host) else {
            let Some(permit) = permit() else {
                return NameState::Due;
            };
            if names.len() >= NAMES_MAX {
                names.retain(|_, name| name.running.is_some() || now < name.since + FRESH);
            }
            if names.len() >= NAMES_MAX {
                names.retain(|_, name| name.running.is_some());
            }
            let running = self.begin(permit, host);
            let name = Name {
                addresses: Arc::new([]),
                since: now,
                next: now,
                failures: 0,
                error: None,
                running: Some(running.clone()),
            };
            names.insert(host.into(), name);
            return NameState::Running(running);
        };
        if name.running.is_none() && now >= name.next {
            name.running = permit().map(|permit| self.begin(permit, host));
        }
        if name.is_usable(now) {
            return NameState::Found(Ok(Arc::clone(&name.addresses)));
        }
        match (&name.running, &name.error) {
            (Some(running), _) => NameState::Running(running.clone()),
            (None, Some(error)) if now < name.next => NameState::Found(Err(error.clone())),
            (None, _) => NameState::Due,
        }
    }

    /// Begins a lookup, which ends in [`Shared::found`] or [`Shared::failed`].
    fn begin(&self, permit: OwnedSemaphorePermit, host: &str) -> CancellationToken {
        let running = CancellationToken::new();
        // Dropped also if the task panics or its runtime ends, so that no request waits forever.
        let end = running.clone().drop_guard();
        let shared = Arc::clone(&self.0);
        let host: Box<str> = host.into();
        tokio::spawn(async move {
            match tokio::time::timeout(LOOKUP_TIMEOUT, shared.look_up(permit, &host)).await {
                Ok(Ok(addresses)) => shared.found(&host, addresses),
                Ok(Err(error)) => shared.failed(&host, error),
                Err(_elapsed) => shared.failed(&host, UnresolvedUpstream::TimedOut(host.clone())),
            }
            drop(end);
        });
        running
    }

    /// Chooses one of the addresses, which are not empty.
    fn pick(&self, addresses: &Arc<[IpAddr]>, port: u16) -> Resolved {
        let turn = self.0.turn.fetch_add(1, Ordering::Relaxed);
        Resolved {
            address: (addresses[turn % addresses.len()], port).into(),
            all: (addresses.len() > 1).then(|| Arc::clone(addresses)),
        }
    }
}

// === impl Name ===

impl Name {
    /// Returns whether there are addresses, and they are not too old.
    fn is_usable(&self, now: Instant) -> bool {
        !self.addresses.is_empty() && now < self.since + STALE
    }
}

// === impl Shared ===

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resolver")
            .field("private_hosts", &self.private_hosts)
            .field("names", &self.names().len())
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn names(&self) -> MutexGuard<'_, HashMap<Box<str>, Name>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the share of an owner.
    fn share_of(&self, owner: &str) -> Arc<Semaphore> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = owners.get(owner) {
            return Arc::clone(share);
        }
        if owners.len() >= OWNERS_MAX {
            let is_used = |share: &Arc<Semaphore>| {
                // A lookup has a permit, and one that waits has a copy.
                share.available_permits() < LOOKUPS_OF_OWNER_MAX || Arc::strong_count(share) > 1
            };
            owners.retain(|_, share| is_used(share));
        }
        let share = Arc::new(Semaphore::new(LOOKUPS_OF_OWNER_MAX));
        owners.insert(owner.into(), Arc::clone(&share));
        share
    }

    /// Looks up a name, and returns the addresses that may be used.
    async fn look_up(
        self: &Arc<Self>,
        of_owner: OwnedSemaphorePermit,
        host: &str,
    ) -> Result<Arc<[IpAddr]>, UnresolvedUpstream> {
        let failed = |error: io::Error| UnresolvedUpstream::Failed(host.into(), Arc::new(error));
        let permit = (Arc::clone(&self.lookups).acquire_owned().await, of_owner);
        let (shared, name) = (Arc::clone(self), Box::<str>::from(host));
        let found = tokio::task::spawn_blocking(move || {
            // Held until the thread is free, which may be after the timeout.
            let _permit = permit;
            (shared.look_up)(&name)
        });
        let found = found.await.map_err(|ended| failed(ended.into()))?;
        let found = found.map_err(failed)?;
        let allowed: Arc<[IpAddr]> = found
            .iter()
            .copied()
            .filter(|address| self.private_hosts.allow(host, *address))
            .collect();
        match (allowed.is_empty(), found.first()) {
            (false, _) => Ok(allowed),
            (true, Some(private)) => Err(UnresolvedUpstream::Private(host.into(), *private)),
            (true, None) => Err(UnresolvedUpstream::NoAddress(host.into())),
        }
    }

    fn found(&self, host: &str, addresses: Arc<[IpAddr]>) {
        let mut names = self.names();
        if let Entry::Occupied(mut name) = names.entry(host.into()) {
            let name = name.get_mut();
            if name.failures > 0 {
                log::info!(target: "origin", host; "upstream {host} has an address again");
            }
            let now = Instant::now();
            *name = Name {
                addresses,
                since: now,
                next: now + FRESH,
                failures: 0,
                error: None,
                running: None,
            };
        }
    }

    /// Stores a failure. It is logged when it is the first one after a success, not each time.
    fn failed(&self, host: &str, error: UnresolvedUpstream) {
        let mut names = self.names();
        let Some(name) = names.get_mut(host) else {
            return;
        };
        // The name has moved to a private address: its old address belongs to somebody else.
        if matches!(error, UnresolvedUpstream::Private(..)) {
            name.addresses = Arc::new([]);
        }
        match (name.failures, name.addresses.is_empty()) {
            (0, true) => log::warn!(target: "origin", host; "{error}"),
            (0, false) => {
                log::warn!(target: "origin", host; "{error}; the addresses of the last lookup are used");
            }
            _ => log::debug!(target: "origin", host; "{error}"),
        }
        let doubled = RETRY * 2_u32.saturating_pow(name.failures.min(16));
        name.next = Instant::now() + doubled.min(RETRY_MAX);
        name.failures = name.failures.saturating_add(1);
        name.error = Some(error);
        name.running = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A resolver whose lookups the test answers.
    struct Answers {
        resolver: Resolver,
        /// One answer for each lookup. A lookup blocks until it gets one.
        answers: mpsc::Sender<io::Result<Vec<IpAddr>>>,
        count: Arc<AtomicUsize>,
    }

    impl Answers {
        fn new() -> Self {
            let (answers, next) = mpsc::channel();
            let next = Mutex::new(next);
            let count = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&count);
            let resolver = Resolver::with(PrivateHosts::default(), move |_host| {
                counted.fetch_add(1, Ordering::SeqCst);
                let ended = |_| Err(io::Error::other("the test has ended"));
                next.lock().unwrap().recv().unwrap_or_else(ended)
            });
            Self {
                resolver,
                answers,
                count,
            }
        }

        fn answer(&self, addresses: &[&str]) {
            let addresses = addresses.iter().map(|address| address.parse().unwrap());
            self.answers.send(Ok(addresses.collect())).unwrap();
        }

        fn fail(&self) {
            self.answers
                .send(Err(io::Error::other("no answer")))
                .unwrap();
        }

        fn lookups(&self) -> usize {
            self.count.load(Ordering::SeqCst)
        }

        async fn resolve(&self) -> Result<String, UnresolvedUpstream> {
            let found = self.resolver.resolve("acme", "a.test", 80).await?;
            Ok(found.address.ip().to_string())
        }

        /// Waits until the lookup in the background has ended.
        async fn settled(&self) {
            let running = self.resolver.0.names()["a.test"].running.clone();
            if let Some(running) = running {
                running.cancelled().await;
            }
        }
    }

    #[tokio::test]
    async fn an_address_needs_no_lookup_and_a_name_is_found() {
        let hosts = ["127.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()];
        let resolver = Resolver::new(hosts.into_iter().collect());
        for (host, address) in [("127.0.0.2", "127.0.0.2:80"), ("[::1]", "[::1]:80")] {
            let found = resolver.resolve("acme", host, 80).await.unwrap();
            assert_eq!(found.address, address.parse().unwrap());
        }
        let found = resolver.resolve("acme", "localhost", 80).await.unwrap();
        assert!(found.address.ip().is_loopback());
        let error = resolver.resolve("acme", "no-such-host.invalid", 80).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains("no-such-host.invalid"), "{error}");
    }

    #[tokio::test]
    async fn a_private_address_is_rejected_as_a_literal_and_by_its_name() {
        let resolver = Resolver::new(PrivateHosts::default());
        for host in ["127.0.0.1", "[::1]", "::ffff:10.0.0.1", "localhost"] {
            let error = resolver.resolve("acme", host, 80).await.unwrap_err();
            assert!(matches!(error, UnresolvedUpstream::Private(..)), "{error}");
        }
    }

    #[tokio::test]
    async fn only_allowed_addresses_are_used() {
        let upstream = Answers::new();
        upstream.answer(&["10.0.0.1", "1.1.1.1", "169.254.169.254", "1.1.1.2"]);
        for expected in ["1.1.1.1", "1.1.1.2", "1.1.1.1"] {
            assert_eq!(upstream.resolve().await.unwrap(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn old_addresses_are_returned_at_once_while_a_lookup_runs() {
        let upstream = Answers::new();
        upstream.answer(&["1.1.1.1"]);
        assert_eq!(upstream.resolve().await.unwrap(), "1.1.1.1");
        tokio::time::advance(FRESH).await;
        // The lookup that these requests begin has no answer yet.
        for _ in 0..3 {
            assert_eq!(upstream.resolve().await.unwrap(), "1.1.1.1");
        }
        upstream.answer(&["1.1.1.2"]);
        upstream.settled().await;
        assert_eq!(upstream.resolve().await.unwrap(), "1.1.1.2");
        assert_eq!(upstream.lookups(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn lookups_back_off_after_failures_and_delay_no_request() {
        let upstream = Answers::new();
        upstream.fail();
        upstream.resolve().await.unwrap_err();
        for _ in 0..100 {
            upstream.resolve().await.unwrap_err();
        }
        assert_eq!(upstream.lookups(), 1);
        tokio::time::advance(RETRY).await;
        upstream.fail();
        upstream.resolve().await.unwrap_err();
        // The wait is twice as long after the second failure.
        tokio::time::advance(RETRY).await;
        upstream.resolve().await.unwrap_err();
        assert_eq!(upstream.lookups(), 2);
        tokio::time::advance(RETRY).await;
        upstream.answer(&["1.1.1.1"]);
        assert_eq!(upstream.resolve().await.unwrap(), "1.1.1.1");
    }

    #[tokio::test(start_paused = true)]
    async fn old_addresses_are_used_for_a_limited_time_when_lookups_fail() {
        let upstream = Answers::new();
        upstream.answer(&["1.1.1.1"]);
        upstream.resolve().await.unwrap();
        tokio::time::advance(FRESH).await;
        upstream.fail();
        assert_eq!(upstream.resolve().await.unwrap(), "1.1.1.1");
        upstream.settled().await;
        assert_eq!(upstream.resolve().await.unwrap(), "1.1.1.1");
        tokio::time::advance(STALE).await;
        upstream.fail();
        upstream.resolve().await.unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_is_avoided_until_the_next_lookup_if_there_is_another() {
        let upstream = Answers::new();
        upstream.answer(&["1.1.1.1", "1.1.1.2"]);
        upstream.resolve().await.unwrap();
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        upstream.resolver.avoid("a.test", ip("1.1.1.1"));
        for _ in 0..3 {
            assert_eq!(upstream.resolve().await.unwrap(), "1.1.1.2");
        }
        upstream.resolver.avoid("a.test", ip("1.1.1.2"));
        assert_eq!(upstream.resolve().await.unwrap(), "1.1.1.2");
        tokio::time::advance(FRESH).await;
        upstream.answer(&["1.1.1.1", "1.1.1.2"]);
        upstream.resolve().await.unwrap();
        upstream.settled().await;
        let mut addresses = [
            upstream.resolve().await.unwrap(),
            upstream.resolve().await.unwrap(),
        ];
        addresses.sort();
        assert_eq!(addresses, ["1.1.1.1", "1.1.1.2"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_gets_a_private_address_is_no_longer_used() {
        let upstream = Answers::new();
        upstream.answer(&["1.1.1.1"]);
        upstream.resolve().await.unwrap();
        tokio::time::advance(FRESH).await;
        upstream.answer(&["127.0.0.1"]);
        upstream.resolve().await.unwrap();
        upstream.settled().await;
        let error = upstream.resolve().await.unwrap_err();
        assert!(matches!(error, UnresolvedUpstream::Private(..)), "{error}");
    }

    #[tokio::test]
    async fn the_silent_names_of_five_owners_leave_lookups_for_others() {
        let (resolver, end) = silent_names();
        let owners = ["one", "two", "three", "four", "five"].into_iter();
        let asked = owners.flat_map(|owner| (0..2 * LOOKUPS_OF_OWNER_MAX).map(move |n| (owner, n)));
        let silent = asked.map(|(owner, n)| {
            let resolver = &resolver;
            async move {
                let name = format!("silent-{owner}-{n}.test");
                resolver.resolve(owner, &name, 80).await
            }
        });
        let silent = futures_util::future::join_all(silent);
        let served = async {
            for n in 0..LOOKUPS_MAX {
                let name = format!("a-{n}.test");
                resolver.resolve("acme", &name, 80).await.unwrap();
            }
        };
        tokio::select! {
            biased;
            _silent = silent => panic!("no name was answered"),
            () = served => {}
        }
        drop(end);
    }

    /// Returns a resolver whose lookups of names that begin with `silent` run until the second value
    /// is dropped.
    fn silent_names() -> (Resolver, mpsc::Sender<()>) {
        let (end, ended) = mpsc::channel::<()>();
        let ended = Mutex::new(ended);
        let resolver = Resolver::with(PrivateHosts::default(), move |host| {
            if host.starts_with("silent") {
                let _ended = ended.lock().map(|ended| ended.recv());
            }
            Ok(vec![IpAddr::from([1, 1, 1, 1])])
        });
        (resolver, end)
    }

    /// Returns a resolver with all lookups that the owner `slow` may have at once. They run until
    /// the second value is dropped.
    async fn busy_owner() -> (Resolver, impl Sized) {
        let (resolver, end) = silent_names();
        resolver.resolve("acme", "known.test", 80).await.unwrap();
        let mut silent = tokio::task::JoinSet::new();
        for n in 0..LOOKUPS_OF_OWNER_MAX {
            let resolver = resolver.clone();
            silent.spawn(async move {
                let name = format!("silent-{n}.test");
                resolver.resolve("slow", &name, 80).await
            });
        }
        while resolver.0.share_of("slow").available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        (resolver, (silent, end))
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_request_for_a_name_waits_for_the_share_of_its_own_owner_only() {
        let (resolver, _running) = busy_owner().await;
        let mut of_slow = Box::pin(resolver.resolve("slow", "a.test", 80));
        let mut of_nobody = Box::pin(resolver.resolve("slow", "b.test", 80));
        assert!(futures_util::poll!(&mut of_slow).is_pending());
        assert!(futures_util::poll!(&mut of_nobody).is_pending());
        assert!(resolver.0.names().get("a.test").is_none());
        resolver.resolve("acme", "a.test", 80).await.unwrap();
        tokio::time::advance(LOOKUP_TIMEOUT + Duration::from_millis(1)).await;
        // The owner may use what a lookup of the other has found.
        of_slow.await.unwrap();
        let error = of_nobody.await.unwrap_err();
        assert!(matches!(error, UnresolvedUpstream::TimedOut(_)), "{error}");
        resolver.resolve("acme", "b.test", 80).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_whose_owner_has_no_lookup_left_stops_no_renewal_of_a_name() {
        let (resolver, _running) = busy_owner().await;
        let is_running = || resolver.0.names()["known.test"].running.is_some();
        tokio::time::advance(FRESH).await;
        resolver.resolve("slow", "known.test", 80).await.unwrap();
        assert!(!is_running());
        resolver.resolve("acme", "known.test", 80).await.unwrap();
        assert!(is_running());
    }
}
