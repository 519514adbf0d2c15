//! The servers of one site.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::check::{Checks, RunningCheck};
use super::row::Row;
use super::server_places::{ServerPlace, ServerPlaces};
use super::shares::{OfOwner, Share, Shares};
use crate::gateway::UpstreamLimits;
use crate::gateway::ending::End;
use crate::site::{Site, Upstream};
use crate::telemetry::Metrics;

/// How many retries the budget holds. It begins full.
const RETRIES_SAVED: u32 = 10;
/// The part of its weight, in percent, with which a server returns.
const START_PERCENT: u128 = 10;

/// The servers of a site.
#[derive(Debug)]
pub(in crate::gateway) struct Group {
    pub(super) site: Arc<Site>,
    servers: Box<[Server]>,
    state: Mutex<Box<[State]>>,
    /// In hundredths of a retry.
    budget: AtomicU32,
    is_touched: AtomicBool,
    limits: UpstreamLimits,
    /// The places of the process.
    all: Arc<Shares>,
    /// How many of them the owner of the site has.
    of_owner: OfOwner,
    metrics: Arc<Metrics>,
}

#[derive(Debug)]
struct Server {
    upstream: Upstream,
    is_backup: bool,
    places: ServerPlaces,
    /// Whether its last request succeeded and nothing else is known: then a success changes
    /// nothing. It is changed under the lock of the states.
    is_clean: AtomicBool,
    /// The results of its checks, if the record asks for them.
    checked: Option<Arc<RunningCheck>>,
}

/// The state of a server, from its responses.
#[derive(Clone, Debug, Default)]
struct State {
    /// The current weight in the smooth round robin.
    current: i64,
    /// Failures in a row.
    failures: u32,
    /// How often it was ejected without a long time between.
    ejections: u32,
    ejected_until: Option<Instant>,
    /// Whether the trial request is running.
    is_tried: bool,
    returned: Option<Instant>,
}

/// Some of the servers of a site, each as one bit. A record has at most 16 servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Servers(u32);

/// The servers that a request has tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::gateway) struct Tried(Servers);

/// A place for one request at a server, until it is dropped.
#[derive(Debug)]
pub(in crate::gateway) struct HeldPlace {
    group: Arc<Group>,
    server: usize,
    is_trial: bool,
    is_reported: bool,
    /// `None`: the request still waits for them.
    places: Option<HeldPlaces>,
}

/// The places that a request has.
#[derive(Debug)]
struct HeldPlaces {
    of_server: ServerPlace,
    of_process: Share,
}

/// Why a request has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Refused {
    /// All servers were tried.
    Tried,
    /// The queue is full.
    Full,
    /// The request was in the queue for too long.
    Late,
    /// The process has no descriptor for another connection to an upstream, or not for this owner
    /// or this client.
    NoDescriptor,
}

// === impl Group ===

impl Group {
    pub(super) fn new(
        site: Arc<Site>,
        upstream: &Upstream,
        limits: &UpstreamLimits,
        all: &Arc<Shares>,
        metrics: &Arc<Metrics>,
        checks: Option<&Checks>,
    ) -> Self {
        // A record may lower the operator's limit.
        let of_record = upstream.requests_max.map(|max| max as usize);
        let requests_max =
            of_record.map_or(limits.requests_max, |max| max.min(limits.requests_max));
        let server = |upstream: Upstream, is_backup| Server {
            checked: checks.and_then(|checks| checks.of(&upstream)),
            upstream,
            is_backup,
            places: ServerPlaces::new(requests_max),
            is_clean: AtomicBool::new(true),
        };
        let first = Upstream {
            others: Box::default(),
            ..upstream.clone()
        };
        let others = upstream.others.iter().map(|other| {
            let same = Upstream {
                scheme: other.scheme,
                host: other.host.clone(),
                port: other.port,
                weight: other.weight,
                ..first.clone()
            };
            server(same, other.is_backup)
        });
        let servers: Box<[Server]> = std::iter::once(server(first.clone(), false))
            .chain(others)
            .collect();
        Self {
            of_owner: all.of_owner(&site.owner),
            site,
            state: Mutex::new(vec![State::default(); servers.len()].into()),
            servers,
            budget: AtomicU32::new(RETRIES_SAVED * 100),
            is_touched: AtomicBool::new(true),
            limits: limits.clone(),
            all: Arc::clone(all),
            metrics: Arc::clone(metrics),
        }
    }

    pub(super) fn is_for(&self, site: &Arc<Site>) -> bool {
        Arc::ptr_eq(&self.site, site)
            || self.site.origin == site.origin && self.site.owner == site.owner
    }

    pub(in crate::gateway) fn touch(&self) {
        // Reading first avoids invalidating the cache line of other cores.
        if !self.is_touched.load(Ordering::Relaxed) {
            self.is_touched.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn take_touched(&self) -> bool {
        self.is_touched.swap(false, Ordering::Relaxed)
    }

    /// Returns how many servers there are.
    pub(in crate::gateway) fn len(&self) -> usize {
        self.servers.len()
    }

    /// Adds the part of a retry that a request brings.
    pub(in crate::gateway) fn count_request(&self) {
        let saved = self.budget.load(Ordering::Relaxed);
        if saved < RETRIES_SAVED * 100 {
            let percent = self.limits.retry_percent;
            self.budget.fetch_add(percent, Ordering::Relaxed);
        }
    }

    /// Takes one retry from the budget, if it has one.
    fn may_retry(&self) -> bool {
        let take = |saved: u32| saved.checked_sub(100);
        let taken = self
            .budget
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        let outcome = match taken {
            Ok(_) => "made",
            Err(_) => "over_budget",
        };
        let retries = &self.metrics.upstream_retries;
        retries.with_label_values(&[outcome]).inc();
        taken.is_ok()
    }

    /// Finds a place for a request of a client without waiting, if the site has one server and it
    /// has room.
    pub(in crate::gateway) fn hold_now(self: &Arc<Self>, client: IpAddr) -> Option<HeldPlace> {
        let [server] = &*self.servers else {
            return None;
        };
        let of_server = server.places.take(client)?;
        let places = self.and_of_process(client, 0, of_server)?;
        Some(HeldPlace {
            group: Arc::clone(self),
            server: 0,
            is_trial: false,
            is_reported: false,
            places: Some(places),
        })
    }

    /// Finds a place for a request of a client at a server that was not tried, and waits in its
    /// queue if it has none.
    ///
    /// # Errors
    ///
    /// [`Refused`].
    pub(in crate::gateway) async fn hold(
        self: &Arc<Self>,
        client: IpAddr,
        tried: Tried,
        is_idempotent: bool,
    ) -> Result<HeldPlace, Refused> {
        let (server, is_trial) = match self.servers.len() {
            1 => (0, false),
            _ => self.choose(tried, is_idempotent).ok_or(Refused::Tried)?,
        };
        // Dropped also if the caller stops waiting.
        let mut held = HeldPlace {
            group: Arc::clone(self),
            server,
            is_trial,
            is_reported: false,
            places: None,
        };
        let places = &self.servers[server].places;
        let of_server = match places.take(client) {
            Some(place) => place,
            None => {
                let UpstreamLimits {
                    queue_max, queue, ..
                } = self.limits;
                let metric = &self.metrics.upstream_queued;
                places.wait(client, queue_max, queue, metric).await?
            }
        };
        let places = self.and_of_process(client, server, of_server);
        held.places = Some(places.ok_or(Refused::NoDescriptor)?);
        Ok(held)
    }

    /// Takes a place of the process for a client that has a place of a server. If there is none,
    /// the place of the server is free again.
    fn and_of_process(
        &self,
        client: IpAddr,
        server: usize,
        of_server: ServerPlace,
    ) -> Option<HeldPlaces> {
        match self.all.take(&self.of_owner, client) {
            Some(of_process) => Some(HeldPlaces {
                of_server,
                of_process,
            }),
            None => {
                self.servers[server].places.free(&of_server);
                None
            }
        }
    }

    /// Chooses a server, and says whether the request tries it after its pause.
    fn choose(&self, tried: Tried, is_idempotent: bool) -> Option<(usize, bool)> {
        let now = Instant::now();
        let mut states = self.states();
        let open = Servers::all(self.servers.len()).filter(|at| !tried.0.has(at));
        let passing = open.filter(|at| !self.servers[at].fails_checks());
        let chosen = self.choose_of(passing, &mut states, is_idempotent, now);
        if chosen.is_some() {
            return chosen;
        }
        // Whatever the checks say: a wrong path in a record must not stop a site.
        if let Some(chosen) = self.choose_of(open, &mut states, is_idempotent, now) {
            return Some(chosen);
        }
        // All pause: the one whose pause ends first.
        let first = open
            .iter()
            .min_by_key(|at| (self.servers[*at].is_backup, states[*at].ejected_until));
        first.map(|at| (at, false))
    }

    /// Chooses one of some servers; `None` if all of them pause.
    fn choose_of(
        &self,
        servers: Servers,
        states: &mut [State],
        is_idempotent: bool,
        now: Instant,
    ) -> Option<(usize, bool)> {
        for is_backup in [false, true] {
            let tier = servers.filter(|at| self.servers[at].is_backup == is_backup);
            let is_due = |at: &usize| {
                let state = &states[*at];
                is_idempotent
                    && !state.is_tried
                    && state.ejected_until.is_some_and(|until| until <= now)
            };
            if let Some(at) = tier.iter().find(is_due) {
                states[at].is_tried = true;
                return Some((at, true));
            }
            let well = tier.filter(|at| states[at].ejected_until.is_none());
            let with_room = well.filter(|at| self.servers[at].places.has_room());
            let able = if with_room.is_empty() {
                well
            } else {
                with_room
            };
            if let Some(at) = self.turn(states, able, now) {
                return Some((at, false));
            }
        }
        None
    }

    /// Chooses one of the servers by weight.
    fn turn(&self, states: &mut [State], able: Servers, now: Instant) -> Option<usize> {
        let mut total = 0;
        for at in able.iter() {
            let weight = self.weight(at, &states[at], now);
            states[at].current += weight;
            total += weight;
        }
        let at = able.iter().max_by_key(|at| states[*at].current)?;
        states[at].current -= total;
        Some(at)
    }

    /// Returns the weight of a server, in hundredths: less in the time after it returned.
    fn weight(&self, at: usize, state: &State, now: Instant) -> i64 {
        let whole = i64::from(self.servers[at].upstream.weight) * 100;
        let Some(returned) = self.servers[at].returned(state) else {
            return whole;
        };
        let since = now.saturating_duration_since(returned).as_millis();
        let slow = self.limits.slow_start.as_millis();
        if since >= slow {
            return whole;
        }
        let percent = START_PERCENT + (100 - START_PERCENT) * since / slow.max(1);
        (whole * i64::try_from(percent).unwrap_or(100) / 100).max(1)
    }

    fn succeeded(&self, server: usize) {
        let is_clean = &self.servers[server].is_clean;
        if is_clean.load(Ordering::Relaxed) {
            return;
        }
        let mut states = self.states();
        let state = &mut states[server];
        state.failures = 0;
        state.is_tried = false;
        if state.ejected_until.take().is_some() {
            let url = self.servers[server].url();
            log::info!(target: "origin", project:% = self.site.project; "{url} responds again");
            self.metrics.upstream_ejected.dec();
            state.returned = Some(Instant::now());
        }
        is_clean.store(true, Ordering::Relaxed);
    }

    fn failed(&self, server: usize, is_trial: bool) {
        let limits = &self.limits;
        let mut states = self.states();
        // Under the lock, as in `succeeded`: a success at the same time must not leave `true` beside
        // this failure.
        self.servers[server]
            .is_clean
            .store(false, Ordering::Relaxed);
        let state = &mut states[server];
        state.failures = state.failures.saturating_add(1);
        let is_ejected = state.ejected_until.is_some();
        let is_due = match is_ejected {
            // It pauses already, and was used because all others pause too.
            true => is_trial,
            false => limits.eject_failures > 0 && state.failures >= limits.eject_failures,
        };
        if !is_due || self.servers.len() == 1 {
            return;
        }
        let now = Instant::now();
        let was_well = |returned: Instant| now - returned > limits.eject_max;
        if !is_ejected && state.returned.is_none_or(was_well) {
            state.ejections = 0;
        }
        let pause = limits.eject * 2_u32.saturating_pow(state.ejections.min(16));
        let pause = pause.min(limits.eject_max);
        state.ejections = state.ejections.saturating_add(1);
        state.ejected_until = Some(now + pause);
        state.is_tried = false;
        if !is_ejected {
            self.metrics.upstream_ejected.inc();
        }
        self.metrics.upstream_ejections.inc();
        let (url, seconds) = (self.servers[server].url(), pause.as_secs());
        log::warn!(target: "origin", project:% = self.site.project; "{url} fails; it pauses for {seconds} s");
    }

    /// Lets another request try a server: this one has shown neither success nor failure.
    fn untried(&self, server: usize) {
        self.states()[server].is_tried = false;
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        let now = Instant::now();
        let states = self.states().clone();
        let rows = self.servers.iter().zip(&states).map(|(server, state)| {
            let pause = state.ejected_until;
            Row {
                project: self.site.project.as_str().into(),
                server: server.url(),
                state: match (pause, server.returned(state)) {
                    (Some(_), _) if state.is_tried => "tried",
                    (Some(_), _) => "ejected",
                    (None, _) if server.fails_checks() => "check_failed",
                    (None, Some(at)) if now - at < self.limits.slow_start => "slow_start",
                    (None, _) if state.failures > 0 => "failing",
                    (None, _) => "up",
                },
                failures: state.failures,
                ejections: state.ejections,
                pause: pause.map(|until| until.saturating_duration_since(now)),
                requests: server.places.used(),
                queued: server.places.queued(),
                is_backup: server.is_backup,
                check_error: server.checked.as_ref().and_then(|checked| checked.error()),
            }
        });
        rows.collect()
    }

    /// Each change leaves a valid state, so a panic under the lock does no harm.
    fn states(&self) -> MutexGuard<'_, Box<[State]>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for state in &*self.states() {
            if state.ejected_until.is_some() {
                self.metrics.upstream_ejected.dec();
            }
        }
    }
}

// === impl Server ===

impl Server {
    fn url(&self) -> String {
        let Upstream { scheme, .. } = &self.upstream;
        format!("{}://{}", scheme.as_str(), self.upstream.authority())
    }

    fn fails_checks(&self) -> bool {
        self.checked
            .as_ref()
            .is_some_and(|checked| checked.is_failing())
    }

    /// Returns when it was last available again, after a pause or after checks that failed.
    fn returned(&self, state: &State) -> Option<Instant> {
        let by_checks = self.checked.as_ref().and_then(|checked| checked.returned());
        state.returned.max(by_checks)
    }
}

// === impl Servers ===

impl Servers {
    /// Returns the first `count` servers.
    fn all(count: usize) -> Self {
        (0..count).fold(Self::default(), Self::and)
    }

    fn and(self, server: usize) -> Self {
        Self(self.0 | 1 << server)
    }

    fn has(self, server: usize) -> bool {
        self.0 & (1 << server) != 0
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let server = left.trailing_zeros();
            // Removes the lowest bit.
            left &= left.checked_sub(1)?;
            Some(server as usize)
        })
    }

    /// Returns the servers that meet a condition.
    fn filter(self, condition: impl Fn(usize) -> bool) -> Self {
        let kept = self.iter().filter(|server| condition(*server));
        kept.fold(Self::default(), Self::and)
    }
}

// === impl Tried ===

impl Tried {
    /// Counts the failure of a server. Returns whether the request is sent again, if that is
    /// allowed otherwise: to another server, or to another address of the only one.
    pub(in crate::gateway) fn leave(&mut self, mut held: HeldPlace, is_allowed: bool) -> bool {
        held.failed();
        self.0 = self.0.and(held.server);
        let group = &held.group;
        let has_more = match group.len() {
            1 => true,
            servers => self.0.len() < servers,
        };
        is_allowed && has_more && group.may_retry()
    }
}

// === impl HeldPlace ===

impl HeldPlace {
    /// Returns the server.
    pub(in crate::gateway) fn upstream(&self) -> &Upstream {
        &self.group.servers[self.server].upstream
    }

    /// Returns the number of the server in the list of its site.
    pub(in crate::gateway) fn server(&self) -> usize {
        self.server
    }

    /// Reports the status of a response before the client gets it. A status that shows a failure
    /// counts at once: the content of the response may be slow.
    pub(in crate::gateway) fn answered(&mut self, status: u16) {
        // RFC 9110 §15.6.3 to §15.6.5: the server itself does not work.
        if matches!(status, 502..=504) {
            self.failed();
        }
    }

    /// Reports how a request has ended, and which status the server has sent (0: none).
    pub(in crate::gateway) fn report(&mut self, end: End, status: u16) {
        match (end, status) {
            _ if self.is_reported => {}
            _ if end.upstream_failure().is_some() => self.failed(),
            (End::Complete | End::UpstreamError, 1..) => {
                self.is_reported = true;
                self.group.succeeded(self.server);
            }
            // The client ended the request, so it shows neither success nor failure of the server.
            _ => {}
        }
    }

    fn failed(&mut self) {
        self.is_reported = true;
        self.group.failed(self.server, self.is_trial);
    }
}

impl Drop for HeldPlace {
    fn drop(&mut self) {
        if self.is_trial && !self.is_reported {
            self.group.untried(self.server);
        }
        if let Some(held) = self.places.take() {
            let group = &self.group;
            group.servers[self.server].places.free(&held.of_server);
            group.all.free(&group.of_owner, &held.of_process);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::site::{ProjectId, Scheme, Server as Other, UpstreamHttp};

    const SECOND: Duration = Duration::from_secs(1);

    fn group(limits: UpstreamLimits) -> Arc<Group> {
        let site = Site::new(ProjectId::parse("acme").unwrap());
        let upstream = Upstream {
            http: UpstreamHttp::One,
            others: [Other {
                scheme: Scheme::Http,
                host: "b.test".into(),
                port: 80,
                weight: 1,
                is_backup: false,
            }]
            .into(),
            ..Upstream::new(Scheme::Http, "a.test", 80)
        };
        let metrics = Arc::new(Metrics::new());
        let group = Group::new(
            Arc::new(site),
            &upstream,
            &limits,
            &Arc::new(Shares::new(usize::MAX)),
            &metrics,
            None,
        );
        Arc::new(group)
    }

    async fn hold(group: &Arc<Group>, is_idempotent: bool) -> HeldPlace {
        let client = IpAddr::from([192, 0, 2, 1]);
        let held = group.hold(client, Tried::default(), is_idempotent);
        held.await.unwrap()
    }

    /// Returns how many of 110 requests the first server gets.
    async fn share(group: &Arc<Group>) -> usize {
        let mut count = 0;
        for _ in 0..110 {
            count += usize::from(hold(group, true).await.server() == 0);
        }
        count
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_one_request_tries_and_a_server_returns_slowly() {
        let group = group(UpstreamLimits {
            eject_failures: 1,
            eject: 10 * SECOND,
            eject_max: 15 * SECOND,
            slow_start: 10 * SECOND,
            ..UpstreamLimits::default()
        });
        assert_eq!(share(&group).await, 55);
        let mut held = hold(&group, true).await;
        while held.server() != 0 {
            held = hold(&group, true).await;
        }
        held.answered(503);
        held.report(End::Complete, 503);
        drop(held);
        assert_eq!(share(&group).await, 0);
        tokio::time::advance(10 * SECOND).await;
        // A request that may not be repeated tries nothing.
        assert_eq!(hold(&group, false).await.server(), 1);
        let mut trial = hold(&group, true).await;
        assert_eq!(trial.server(), 0);
        assert_eq!(share(&group).await, 0);
        trial.report(End::FirstByteTimeout, 0);
        drop(trial);
        // Twice as long, but no longer than the longest.
        tokio::time::advance(14 * SECOND).await;
        assert_eq!(share(&group).await, 0);
        tokio::time::advance(SECOND).await;
        // The client ends the trial: another request makes it.
        let mut trial = hold(&group, true).await;
        trial.report(End::ClientClosed, 0);
        drop(trial);
        let mut trial = hold(&group, true).await;
        assert_eq!(trial.server(), 0);
        trial.report(End::Complete, 200);
        drop(trial);
        // A tenth of the weight at first.
        assert_eq!(share(&group).await, 10);
        tokio::time::advance(10 * SECOND).await;
        assert_eq!(share(&group).await, 55);
    }
}
