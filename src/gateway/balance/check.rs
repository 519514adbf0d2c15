//! Checks of servers, if the record of their site asks for them (`origin.check`).
//!
//! A server is asked with `GET` under its own name, by one task for all sites whose records name
//! the same server and the same check. So the number of requests does not grow with the number of
//! sites, and no site can change the result for another one. The first request comes after a random
//! part of the interval, so the checks of all gateways are spread over the interval.
//!
//! A task runs while a site has the server: it ends when the site has had no request for a long
//! time, and begins with the next one. A check connects only to addresses that the
//! resolver allows, like a request of a reader. Each request has a connection of its own, because a
//! server that takes no new connections does not work.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use pingora::connectors::ConnectorOptions;
use pingora::connectors::http::Connector;
use pingora::http::RequestHeader;
use pingora::prelude::Error;
use pingora::server::configuration::ServerConf;
use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior};

use super::places::{Place, Places};
use crate::gateway::{UpstreamLimits, upstream};
use crate::jitter;
use crate::origin::{Resolver, UnresolvedUpstream};
use crate::site::{Check, Scheme, Upstream, UpstreamHttp};
use crate::telemetry::{Metrics, panics};

/// The value of `User-Agent`, for the logs of the customer.
const USER_AGENT: &str = concat!("waypost-check/", env!("CARGO_PKG_VERSION"));

/// The checks that run in this process.
pub(super) struct Checks {
    asking: Arc<Asking>,
    running: Mutex<HashMap<Key, Weak<RunningCheck>>>,
}

/// A server that is asked, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    scheme: Scheme,
    host: Box<str>,
    port: u16,
    http: UpstreamHttp,
    check: Check,
}

/// The settings of a request to a server.
struct Asking {
    limits: UpstreamLimits,
    resolver: Resolver,
    /// The places of the process.
    places: Arc<Places>,
    options: ConnectorOptions,
    /// Made by the first check: it reads the authorities of the system.
    connector: OnceLock<Connector>,
    metrics: Arc<Metrics>,
}

/// The results of the checks of one server. Dropping this value stops the checks.
#[derive(Debug)]
pub(super) struct RunningCheck {
    results: Arc<Results>,
    task: AbortHandle,
}

#[derive(Debug)]
struct Results {
    is_failing: AtomicBool,
    /// When the checks began.
    began: Instant,
    /// How many milliseconds after that the server began to work again; 0 if it has not failed.
    /// Each request reads it.
    returned: AtomicU64,
    last: Mutex<Last>,
    metrics: Arc<Metrics>,
}

/// The last requests.
#[derive(Debug, Default)]
struct Last {
    /// How many of the last results in a row contradict the current state.
    contrary: u32,
    /// Why the last one failed.
    error: Option<Arc<str>>,
}

/// Why a request was not a success.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Unresolved(#[from] UnresolvedUpstream),
    #[error("{}", .0.etype().as_str())]
    Connection(#[from] Box<Error>),
    #[error("it responds {0}")]
    Status(u16),
    #[error("it did not respond in {} s", .0.as_secs())]
    Late(Duration),
    #[error("the check failed")]
    Panicked,
}

// === impl Checks ===

impl Checks {
    pub(super) fn new(
        limits: UpstreamLimits,
        resolver: Resolver,
        places: Arc<Places>,
        conf: &ServerConf,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            asking: Arc::new(Asking {
                limits,
                resolver,
                places,
                options: ConnectorOptions::from_server_conf(conf),
                connector: OnceLock::new(),
                metrics,
            }),
            running: Mutex::default(),
        }
    }

    /// Returns the results for a server of a site whose record asks for checks. They begin, if they
    /// do not run yet.
    pub(super) fn of(&self, upstream: &Upstream) -> Option<Arc<RunningCheck>> {
        let key = Key {
            scheme: upstream.scheme,
            host: upstream.host.clone(),
            port: upstream.port,
            http: upstream.http,
            check: upstream.check.as_deref()?.clone(),
        };
        let mut running = self.running();
        if let Some(checked) = running.get(&key).and_then(Weak::upgrade) {
            return Some(checked);
        }
        let results = Arc::new(Results::new(Arc::clone(&self.asking.metrics)));
        let first = jitter::part_of(key.check.interval);
        let server = upstream.clone();
        let (asking, results_of_check) = (Arc::clone(&self.asking), Arc::clone(&results));
        let task = tokio::spawn(asking.repeat(server, key.check.clone(), first, results_of_check));
        let checked = Arc::new(RunningCheck {
            results,
            task: task.abort_handle(),
        });
        running.insert(key, Arc::downgrade(&checked));
        Some(checked)
    }

    /// Forgets servers that no site has any more.
    pub(super) fn sweep(&self) {
        self.running()
            .retain(|_, checked| checked.strong_count() > 0);
    }

    /// Every change is one entry more or less, so the table is whole after a panic too.
    fn running(&self) -> MutexGuard<'_, HashMap<Key, Weak<RunningCheck>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checks").finish_non_exhaustive()
    }
}

// === impl Asking ===

impl Asking {
    /// Asks a server at each interval. It never returns.
    async fn repeat(
        self: Arc<Self>,
        server: Upstream,
        check: Check,
        first: Duration,
        results: Arc<Results>,
    ) {
        let mut interval = tokio::time::interval_at(Instant::now() + first, check.interval);
        // After a slow response, a full interval passes before the next check.
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            // Without a descriptor for the connection, nothing is known about the server.
            let Some(_place) = Place::take(&self.places) else {
                continue;
            };
            let asking = Box::pin(self.ask(&server, &check));
            let asking = tokio::time::timeout(check.timeout, asking);
            let asked = match panics::caught(asking).await {
                Ok(Ok(asked)) => asked,
                Ok(Err(_elapsed)) => Err(Failure::Late(check.timeout)),
                Err(_panic) => Err(Failure::Panicked),
            };
            results.add(asked, &check, &server);
        }
    }

    /// Asks a server once.
    async fn ask(&self, server: &Upstream, check: &Check) -> Result<(), Failure> {
        let resolved = self
            .resolver
            // Sites of several owners may share the check.
            .resolve(&server.host, &server.host, server.port)
            .await?;
        let peer = upstream::peer(
            &self.limits,
            &self.resolver,
            &self.places,
            server,
            &resolved,
        );
        let make = || Connector::new(Some(self.options.clone()));
        let connector = self.connector.get_or_init(make);
        let (mut session, _is_reused) = connector.get_http_session(&peer).await?;
        let mut request = RequestHeader::build("GET", check.path.as_bytes(), None)?;
        request.insert_header("Host", server.authority().to_string())?;
        request.insert_header("User-Agent", USER_AGENT)?;
        session.write_request_header(Box::new(request)).await?;
        session.finish_request_body().await?;
        let status = loop {
            session.read_response_header().await?;
            let status = session.response_header().map(|head| head.status.as_u16());
            // RFC 9110 §15.2: interim responses come before the final one.
            match status {
                Some(100 | 102..=199) => {}
                status => break status.unwrap_or_default(),
            }
        };
        // The content is not read: the connection is not used again.
        session.shutdown().await;
        match check.accepts(status) {
            true => Ok(()),
            false => Err(Failure::Status(status)),
        }
    }
}

// === impl Checked ===

impl RunningCheck {
    /// Returns whether the server gets no requests, because it fails its checks.
    pub(super) fn is_failing(&self) -> bool {
        self.results.is_failing.load(Ordering::Acquire)
    }

    /// Returns when it began to work again, if it has failed.
    pub(super) fn returned(&self) -> Option<Instant> {
        self.results.returned()
    }

    /// Returns why the last check failed; `None` if it did not.
    pub(super) fn error(&self) -> Option<Arc<str>> {
        self.results.last().error.clone()
    }
}

impl Drop for RunningCheck {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// === impl Results ===

impl Results {
    fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            is_failing: AtomicBool::new(false),
            began: Instant::now(),
            returned: AtomicU64::new(0),
            last: Mutex::default(),
            metrics,
        }
    }

    fn returned(&self) -> Option<Instant> {
        match self.returned.load(Ordering::Relaxed) {
            0 => None,
            after => Some(self.began + Duration::from_millis(after)),
        }
    }

    /// Adds the result of a request.
    fn add(&self, asked: Result<(), Failure>, check: &Check, server: &Upstream) {
        let outcome = if asked.is_ok() { "passed" } else { "failed" };
        let checks = &self.metrics.upstream_checks;
        checks.with_label_values(&[outcome]).inc();
        let mut last = self.last();
        let is_failing = self.is_failing.load(Ordering::Relaxed);
        last.error = asked.as_ref().err().map(|error| error.to_string().into());
        if asked.is_err() == is_failing {
            last.contrary = 0;
            return;
        }
        last.contrary += 1;
        let threshold = match is_failing {
            true => check.healthy_threshold,
            false => check.unhealthy_threshold,
        };
        if last.contrary < threshold {
            return;
        }
        last.contrary = 0;
        let (scheme, authority) = (server.scheme.as_str(), server.authority());
        let path = &check.path;
        match asked {
            Ok(()) => {
                let after = u64::try_from(self.began.elapsed().as_millis());
                let after = after.unwrap_or(u64::MAX).max(1);
                self.returned.store(after, Ordering::Relaxed);
                self.metrics.upstream_checks_failing.dec();
                log::info!(target: "origin", "{scheme}://{authority} passes its check {path} again");
            }
            Err(error) => {
                self.metrics.upstream_checks_failing.inc();
                log::warn!(target: "origin", "{scheme}://{authority} fails its check {path}: {error}");
            }
        }
        // A request that sees that the server works also sees since when.
        self.is_failing.store(!is_failing, Ordering::Release);
    }

    /// Each change leaves a valid state, so a panic under the lock does no harm.
    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        if *self.is_failing.get_mut() {
            self.metrics.upstream_checks_failing.dec();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(check: &Check) -> Upstream {
        Upstream {
            http: UpstreamHttp::One,
            check: Some(Box::new(check.clone())),
            ..Upstream::new(Scheme::Http, "a.test", 80)
        }
    }

    #[test]
    fn only_results_in_a_row_change_the_state() {
        let metrics = Arc::new(Metrics::new());
        let results = Results::new(Arc::clone(&metrics));
        let check = Check::new("/".into());
        let server = server(&check);
        let add = |succeeds: bool| {
            let asked = if succeeds {
                Ok(())
            } else {
                Err(Failure::Status(500))
            };
            results.add(asked, &check, &server);
            results.is_failing.load(Ordering::Relaxed)
        };
        let states = [
            false, false, true, false, false, false, true, false, true, true,
        ]
        .map(add);
        let expected = [
            false, false, false, false, false, true, true, true, true, false,
        ];
        assert_eq!(states, expected);
        assert!(results.returned().is_some());
        for _ in 0..3 {
            add(false);
        }
        assert_eq!(metrics.upstream_checks_failing.get(), 1);
        // A changed record starts new checks, without results.
        drop(results);
        assert_eq!(metrics.upstream_checks_failing.get(), 0);
    }

    #[tokio::test]
    async fn sites_with_the_same_server_and_check_share_the_task() {
        let limits = UpstreamLimits::default();
        let resolver = Resolver::new(crate::site::PrivateHosts::default());
        let checks = Checks::new(
            limits,
            resolver,
            Arc::new(Places::new(1)),
            &ServerConf::default(),
            Arc::default(),
        );
        let check = Check::new("/up".into());
        let one = checks.of(&server(&check)).unwrap();
        let two = checks.of(&server(&check)).unwrap();
        assert!(Arc::ptr_eq(&one, &two));
        let other = checks.of(&server(&Check::new("/other".into()))).unwrap();
        assert!(!Arc::ptr_eq(&one, &other));
        let task = one.task.clone();
        drop((one, two));
        checks.sweep();
        assert_eq!(checks.running().len(), 1);
        while !task.is_finished() {
            tokio::task::yield_now().await;
        }
    }
}
