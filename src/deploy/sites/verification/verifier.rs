//! The loop that checks all domains.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::judge::{Proof, Verdict};
use super::lookup::Seen;
use super::metrics::Metrics;
use super::schedule::{Key, Schedule};
use super::{Check, Config, VERSION};
use crate::clock::Clock;
use crate::deploy::sites::ownership::{Claim, Settled};
use crate::deploy::sites::{Refused, SiteAdmin};
use crate::digest::Digest;
use crate::dns::Client;
use crate::error::chain;
use crate::site::{Host, ProjectId};
use crate::store::{Ownership, OwnershipState as State, Store, VerificationLead};
use crate::telemetry::{Part, panics};

/// How often the loop looks for changes.
const TICK: Duration = Duration::from_millis(250);
/// How often domains are counted by their state.
const COUNT_SECONDS: u64 = 10;

/// The site records that have changed and were not read yet.
#[derive(Clone, Debug, Default)]
pub struct Changes(Arc<Mutex<Changed>>);

#[derive(Debug, Default)]
struct Changed {
    projects: BTreeSet<ProjectId>,
    is_all: bool,
}

/// The loop, before it runs.
pub struct Verifier {
    shared: Arc<Shared>,
    changes: Changes,
    metrics: Metrics,
    part: Part,
    lead: Option<VerificationLead>,
    schedule: Schedule,
    domains: HashMap<ProjectId, HashMap<Host, Entry>>,
    running: JoinSet<(Key, Finished)>,
    counted_at: u64,
    has_failed: bool,
}

/// The parts of the process that every check uses.
struct Shared {
    admin: Arc<SiteAdmin>,
    store: Arc<Store>,
    client: Client,
    config: Config,
    clock: Clock,
}

/// A domain.
#[derive(Clone, Debug)]
struct Entry {
    claim: Claim,
    owner: Arc<str>,
    attempts: u32,
    proven_at: Option<u64>,
}

/// The result of a check.
struct Finished {
    /// The result, as the metric names it.
    result: &'static str,
    /// The state that the domain has now, if it was changed.
    changed: Option<State>,
    /// The result of the check; `None` if the site does not have the domain any more.
    check: Option<Check>,
    /// A problem of this machine.
    trouble: Option<String>,
}

// === impl Changes ===

impl Changes {
    /// Notes that the record of a project was changed.
    pub fn project(&self, project: &ProjectId) {
        self.lock().projects.insert(project.clone());
    }

    /// Notes that any record may have been changed.
    pub fn all(&self) {
        self.lock().is_all = true;
    }

    fn take(&self) -> Changed {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Changed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Verifier ===

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verifier").finish_non_exhaustive()
    }
}

impl Verifier {
    /// Makes the loop.
    #[must_use]
    #[expect(clippy::too_many_arguments, reason = "each is a part of the process")]
    pub fn new(
        config: Config,
        admin: Arc<SiteAdmin>,
        store: Arc<Store>,
        client: Client,
        changes: Changes,
        metrics: Metrics,
        part: Part,
        clock: Clock,
    ) -> Self {
        let shared = Shared {
            admin,
            store,
            client,
            config,
            clock,
        };
        Self {
            shared: Arc::new(shared),
            changes,
            metrics,
            part,
            lead: None,
            schedule: Schedule::default(),
            domains: HashMap::new(),
            running: JoinSet::new(),
            counted_at: 0,
            has_failed: false,
        }
    }

    /// Runs until `stop` is true. A check that runs then has no result.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => self.step(),
                done = self.running.join_next(), if !self.running.is_empty() => {
                    // A stopped check is no result.
                    if let Some(Ok((key, finished))) = done {
                        self.done(&key, finished);
                    }
                    self.begin();
                }
                stopped = stop.wait_for(|stopped| *stopped) => {
                    // The sender is dropped when the process ends.
                    let _gone = stopped;
                    break;
                }
            }
        }
        self.running.shutdown().await;
    }

    /// Reads changes, and begins the checks whose time has come.
    fn step(&mut self) {
        self.choose_leader();
        if self.lead.is_none() {
            // Whoever leads next reads everything.
            self.changes.take();
            return;
        }
        self.has_failed = false;
        let changed = self.changes.take();
        match changed.is_all {
            true => self.read_all(),
            false => changed
                .projects
                .iter()
                .for_each(|project| self.read(project)),
        }
        self.read_requests();
        self.begin();
        self.count();
        if !self.has_failed {
            self.part.recover();
        }
    }

    fn choose_leader(&mut self) {
        if let Some(lead) = &self.lead {
            if lead.holds() {
                return;
            }
            log::error!(target: "verification", "the file `verification.lock` was removed or replaced: this process checks no domains until it leads again");
            self.lead = None;
            self.metrics.leader.set(0);
            self.running.abort_all();
            self.schedule = Schedule::default();
            self.domains = HashMap::new();
        }
        match self.shared.store.lead_verification() {
            Ok(Some(lead)) => {
                log::info!(target: "verification", "this process checks domains");
                self.lead = Some(lead);
                self.metrics.leader.set(1);
                self.changes.all();
            }
            Ok(None) => {}
            Err(error) => self.part.fail(chain(&error)),
        }
    }

    fn fail(&mut self, why: String) {
        self.has_failed = true;
        self.part.fail(why);
    }

    /// Reads all records.
    fn read_all(&mut self) {
        let projects = match self.shared.store.site_records() {
            Ok(projects) => projects,
            Err(error) => {
                // It is tried again.
                self.changes.all();
                return self.fail(chain(&error));
            }
        };
        let known: Vec<ProjectId> = self.domains.keys().cloned().collect();
        for project in projects.iter().chain(&known) {
            self.read(project);
        }
    }

    /// Reads the record of a project.
    fn read(&mut self, project: &ProjectId) {
        let claims = match self.shared.admin.claims(project) {
            Ok(claims) => claims,
            Err(error) => {
                self.changes.project(project);
                return self.fail(chain(&error));
            }
        };
        let now = self.shared.clock.unix_seconds();
        let mut before = self.domains.remove(project).unwrap_or_default();
        let mut after = HashMap::new();
        for claim in claims {
            let key: Key = Arc::new((project.clone(), claim.host.clone()));
            let known = before.remove(&claim.host);
            let owner: Arc<str> = match &known {
                Some(known) if *known.owner == *claim.owner => Arc::clone(&known.owner),
                _ => Arc::from(&*claim.owner),
            };
            let is_known = known.as_ref().is_some_and(|known| {
                // Only a domain that was removed and added is pending again.
                let is_same = known.claim.state == claim.state && known.claim.since == claim.since;
                let is_added = claim.state == Some(State::Pending) && !is_same;
                known.claim.token == claim.token && *known.owner == *claim.owner && !is_added
            });
            let host = claim.host.clone();
            let entry = match known.filter(|_| is_known) {
                Some(known) => Entry { claim, ..known },
                None => {
                    let ownership = claim.state.map(|state| Ownership {
                        state,
                        since: claim.since,
                        token: claim.token.clone(),
                        handovers: claim.handovers,
                    });
                    let store = &self.shared.store;
                    let check = Check::read(store, project, &host, ownership.as_ref());
                    let at = check.as_ref().map_or(now, |check| check.next_at);
                    self.schedule.put(&key, &owner, at);
                    Entry {
                        claim,
                        owner,
                        attempts: check.as_ref().map_or(0, |check| check.attempts),
                        proven_at: check.and_then(|check| check.proven_at),
                    }
                }
            };
            after.insert(host, entry);
        }
        for host in before.into_keys() {
            self.schedule.remove(&Arc::new((project.clone(), host)));
        }
        if !after.is_empty() {
            self.domains.insert(project.clone(), after);
        }
    }

    /// Reads which domains callers want to have checked now.
    fn read_requests(&mut self) {
        let requests = match self.shared.store.take_domain_check_requests() {
            Ok(requests) => requests,
            Err(error) => return self.fail(chain(&error)),
        };
        for (project, host) in requests {
            let is_known = |domains: &HashMap<ProjectId, HashMap<Host, Entry>>| {
                domains
                    .get(&project)
                    .is_some_and(|of| of.contains_key(&host))
            };
            if !is_known(&self.domains) {
                self.read(&project);
            }
            let entry = self.domains.get_mut(&project);
            if let Some(entry) = entry.and_then(|domains| domains.get_mut(&host)) {
                entry.attempts = 0;
                let owner = Arc::clone(&entry.owner);
                self.schedule.put(&Arc::new((project, host)), &owner, 0);
            }
        }
    }

    /// Begins the checks that are due.
    fn begin(&mut self) {
        let Config {
            parallel_max,
            parallel_owner_max,
            ..
        } = self.shared.config;
        if self.lead.is_none() {
            return;
        }
        while self.schedule.running() < parallel_max {
            let now = self.shared.clock.unix_seconds();
            let Some(key) = self.schedule.take(now, parallel_owner_max) else {
                return;
            };
            let entry = self.domains.get(&key.0).and_then(|of| of.get(&key.1));
            let Some(mut entry) = entry.cloned() else {
                self.schedule.remove(&key);
                continue;
            };
            let shared = Arc::clone(&self.shared);
            self.running.spawn(async move {
                let checking = async {
                    let Claim { host, owner, .. } = &entry.claim;
                    let parents = shared.admin.parents_of_others(host, owner);
                    entry.claim.parents = parents;
                    let seen = Seen::look_up(&shared.client, &entry.claim).await;
                    let work = tokio::task::spawn_blocking(move || shared.conclude(&entry, &seen));
                    work.await
                };
                let finished = match panics::caught(checking).await {
                    Ok(Ok(finished)) => finished,
                    _ => Finished {
                        result: "failed",
                        changed: None,
                        check: None,
                        trouble: Some("a panic".to_owned()),
                    },
                };
                (key, finished)
            });
        }
    }

    fn done(&mut self, key: &Key, finished: Finished) {
        let Finished {
            result,
            changed,
            check,
            trouble,
        } = finished;
        self.schedule.done(key);
        self.metrics.checks.with_label_values(&[result]).inc();
        if let Some(state) = changed {
            let counter = self.metrics.changes.with_label_values(&[state.as_str()]);
            counter.inc();
        }
        if let Some(why) = trouble {
            log::error!(target: "verification", project:% = key.0, host:% = key.1; "cannot check the domain {}: {why}", key.1);
        }
        let now = self.shared.clock.unix_seconds();
        let entry = self.domains.get_mut(&key.0);
        if let Some(entry) = entry.and_then(|of| of.get_mut(&key.1)) {
            let at = match &check {
                Some(check) => {
                    entry.attempts = check.attempts;
                    entry.proven_at = check.proven_at;
                    check.next_at
                }
                // The record is read again below.
                None => now + self.shared.config.wait(entry.attempts),
            };
            let owner = Arc::clone(&entry.owner);
            self.schedule.put(key, &owner, at);
        }
        // The record has another state, or the domain is gone.
        if changed.is_some() || check.is_none() {
            self.read(&key.0);
        }
    }

    /// Sets the metrics.
    fn count(&mut self) {
        let now = self.shared.clock.unix_seconds();
        let due = i64::try_from(self.schedule.due()).unwrap_or(i64::MAX);
        self.metrics.due.set(due);
        if now < self.counted_at + COUNT_SECONDS && self.counted_at > 0 {
            return;
        }
        self.counted_at = now;
        for state in State::ALL {
            let entries = self.domains.values().flat_map(HashMap::values);
            let count = entries
                .filter(|entry| entry.claim.state == Some(state))
                .count();
            let gauge = self.metrics.domains.with_label_values(&[state.as_str()]);
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}

// === impl Finished ===

impl Finished {
    /// The result for a domain that the site does not have any more.
    fn removed() -> Self {
        Self {
            result: "removed",
            changed: None,
            check: None,
            trouble: None,
        }
    }
}

// === impl Shared ===

impl Shared {
    /// Judges the answers of DNS, changes the state of the domain, and writes the result. Blocks.
    fn conclude(&self, entry: &Entry, seen: &Seen) -> Finished {
        let Entry {
            claim,
            attempts,
            proven_at,
            ..
        } = entry;
        let failed = |error: Refused| Finished {
            result: "failed",
            changed: None,
            check: None,
            trouble: Some(chain(&error)),
        };
        let Some(rules) = self.admin.rules() else {
            return failed(Refused::NoDomain);
        };
        let now = self.clock.unix_seconds();
        let mut verdict = Verdict::of(claim, seen, rules);
        let is_proven = matches!(verdict.proof, Proof::Text | Proof::Alias);
        let proven_at = match is_proven {
            true => Some(now),
            false => *proven_at,
        };
        let last_proven = proven_at.unwrap_or(if claim.since > 0 { claim.since } else { now });
        let next = verdict.next(claim.state, claim.since, last_proven, now, &self.config);
        match self.admin.has(claim) {
            Ok(true) => {}
            // It was removed, and maybe added again, while this check ran.
            Ok(false) => return Finished::removed(),
            Err(error) => return failed(error),
        }
        let mut result = match verdict.proof {
            Proof::Text | Proof::Alias => "proven",
            Proof::None => "unproven",
            Proof::Unknown => "unanswered",
        };
        let mut changed = None;
        if let Some(state) = next.filter(|state| claim.state != Some(*state)) {
            let proven = is_proven.then(|| seen.proven(verdict.proof == Proof::Text));
            match self.admin.settle(claim, state, proven.as_ref()) {
                Ok(Settled::Changed) => changed = Some(state),
                Ok(Settled::Same) => {}
                Ok(Settled::Removed) => return Finished::removed(),
                Ok(Settled::Held(why)) => {
                    result = "held";
                    if !verdict.in_the_way.contains(&why) {
                        verdict.in_the_way.insert(0, why);
                    }
                }
                Err(error) => return failed(error),
            }
        }
        let state = changed.or(claim.state);
        let is_well = state == Some(State::Active) && verdict.in_the_way.is_empty();
        let attempts = match is_well || changed.is_some() {
            true => 0,
            false => attempts.saturating_add(1),
        };
        let wait = match is_well {
            true => self.config.recheck.as_secs(),
            false => self.config.wait(attempts),
        };
        // Domains that were added together are not always checked together.
        let part = u64::from(Digest::of(claim.host.as_str().as_bytes()).as_bytes()[0]);
        let mut next_at = now + wait + wait / 10 * part / 256;
        if state == Some(State::Dangling) {
            let since = if changed.is_some() { now } else { claim.since };
            next_at = next_at
                .min(since.saturating_add(self.config.dangling.as_secs()))
                .max(now + 1);
        }
        let check = Check {
            version: VERSION,
            token: claim.token.clone(),
            checked_at: now,
            next_at,
            proven_at,
            attempts,
            in_the_way: verdict.in_the_way,
        };
        let put = self
            .store
            .put_domain_check(&claim.project, &claim.host, Some(&check.to_bytes()));
        Finished {
            result,
            changed,
            check: Some(check),
            trouble: put.err().map(|error| chain(&error)),
        }
    }
}

// === impl Config ===

impl Config {
    /// Returns how many seconds a domain that waits for something waits for its next check.
    fn wait(&self, attempts: u32) -> u64 {
        let nth = usize::try_from(attempts).unwrap_or(usize::MAX);
        let last = self.retries.len().saturating_sub(1);
        let wait = self.retries.get(nth.min(last)).copied();
        wait.unwrap_or(self.recheck).as_secs().max(1)
    }
}
