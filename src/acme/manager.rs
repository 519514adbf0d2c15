//! The loop that keeps a valid certificate for every name that needs one.
//!
//! Every process runs it and reads new records. The process that leads also orders: it compares the
//! names with the certificates, asks authorities when to renew, and begins orders within the budget
//! and the limit of parallel orders.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use instant_acme::CertificateIdentifier;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Vault;
use super::authority::{Authorities, Known};
use super::caa;
use super::challenges::Challenges;
use super::config::Config;
use super::failure::{Cause, Failure};
use super::leaf::Life;
use super::metrics::{DAYS, Metrics};
use super::order::{Job, Shared};
use super::ordered::{Held, Ordered};
use super::queue::{Lane, Queue, Wait};
use super::record::Record;
use super::released::{self, Released};
use super::schedule::{Window, part_of, renewal_at, seed_of, wait_after};
use super::state::{OrderState, Request, Versioned as _};
use super::transport::{EXCHANGE, Exchange};
use crate::clock::Clock;
use crate::dns::Client;
use crate::error::chain;
use crate::store::documents::{Change, Kind, KnownKeys, Lead, key_of};
use crate::telemetry::{Part, panics};

/// How often the loop looks for changes.
const TICK: Duration = Duration::from_millis(500);
/// How often the names are compared although no change was reported.
const COMPARE_SECONDS: u64 = 60;
/// How often certificates are counted by the days that are left.
const COUNT_SECONDS: u64 = 15;
/// How many questions for renewal information run at the same time.
const QUESTIONS_MAX: usize = 8;
/// RFC 9773 §4.3.2: shorter waits are taken for a minute, longer ones for a day.
const QUESTION_SECONDS: std::ops::RangeInclusive<u64> = 60..=86_400;
/// A new name is as urgent as a certificate that expires after this time.
const NEW_SECONDS: u64 = 3 * 86_400;
/// A certificate that was replaced in the first part of its life is replaced again at once only so
/// often: an authority may suggest it for ever.
const EARLY_MAX: u32 = 2;
const EARLY_PART: u64 = 10;

/// The names that a process serves.
pub trait Names: Send {
    /// Returns a number that changes when the names change.
    fn generation(&self) -> u64;

    /// Returns the names that need a certificate by ACME, in normal form.
    fn wanted(&self) -> Vec<Box<str>>;

    /// Returns whether a name in normal form is served, with whichever certificate.
    fn serves(&self, name: &str) -> bool;
}

/// The loop, before it runs.
pub struct Manager {
    shared: Arc<Shared>,
    authorities: Arc<Authorities>,
    ordered: Arc<Ordered>,
    names: Box<dyn Names>,
    metrics: Metrics,
    part: Part,
    clock: Clock,
    lead: Option<Box<dyn Lead>>,
    state: State,
    requests: KnownKeys,
    running: JoinSet<Done>,
    orders: usize,
    questions: usize,
}

/// The state of the leader. Another leader collects it again.
#[derive(Default)]
struct State {
    entries: HashMap<Arc<str>, Entry>,
    queue: Queue,
    /// When authorities are asked for the time of a renewal.
    asks: BTreeSet<(u64, Arc<str>)>,
    /// Certificates whose records could not be written yet.
    unwritten: Vec<Record>,
    /// Names that no site has any more.
    released: Released,
    /// Most names seem to have left, so none is released.
    is_release_held: bool,
    generation: Option<u64>,
    compared_at: u64,
    counted_at: u64,
    /// The last failure that no name caused.
    trouble: Option<Failure>,
}

/// A name that needs a certificate.
#[derive(Debug, Default)]
struct Entry {
    since: u64,
    failures: u32,
    retry_at: u64,
    window: Option<Window>,
    ask_at: Option<u64>,
    /// The operator has requested another certificate.
    is_forced: bool,
    is_running: bool,
    /// How often in a row the certificate was replaced in the first part of its life.
    early: u32,
}

/// The end of a task.
enum Done {
    Order(Arc<str>, Result<Box<Record>, Failure>),
    Question(Arc<str>, Box<str>, Result<(Window, Duration), Failure>),
    Release(Box<str>, Result<(), Failure>),
    /// It was stopped.
    Nothing,
}

// === impl Manager ===

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manager").finish_non_exhaustive()
    }
}

impl Manager {
    /// Makes the loop.
    #[must_use]
    #[expect(clippy::too_many_arguments, reason = "each is a part of the process")]
    pub fn new(
        config: Config,
        vault: Vault,
        authorities: Authorities,
        ordered: Arc<Ordered>,
        challenges: Arc<Challenges>,
        names: Box<dyn Names>,
        client: Client,
        metrics: Metrics,
        part: Part,
        clock: Clock,
    ) -> Self {
        let shared = Shared {
            client,
            config,
            vault,
            challenges,
            clock,
        };
        Self {
            shared: Arc::new(shared),
            authorities: Arc::new(authorities),
            ordered,
            names,
            metrics,
            part,
            clock,
            lead: None,
            state: State::default(),
            requests: KnownKeys::default(),
            running: JoinSet::new(),
            orders: 0,
            questions: 0,
        }
    }

    /// Runs until `stop` is true. An order that runs then is finished by the next leader.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                done = self.running.join_next(), if !self.running.is_empty() => {
                    if let Some(done) = done {
                        self.done(done.unwrap_or(Done::Nothing)).await;
                    }
                }
                stopped = stop.wait_for(|stopped| *stopped) => {
                    // The sender is dropped when the process ends.
                    let _gone = stopped;
                    break;
                }
            }
            self.step();
        }
        self.running.shutdown().await;
    }

    /// Reads changes, and begins the orders and questions whose time has come.
    fn step(&mut self) {
        self.refresh();
        self.choose_leader();
        if self.lead.is_none() {
            return;
        }
        let now = self.clock.unix_seconds();
        self.write_again();
        self.compare(now);
        self.read_requests(now);
        self.begin_orders(now);
        self.begin_questions(now);
        self.begin_releases(now);
        self.count(now);
    }

    /// Reads the records that other processes have written.
    fn refresh(&mut self) {
        match self.ordered.refresh() {
            Ok(refreshed) => {
                for (key, why) in refreshed.failures {
                    self.metrics.unusable.inc();
                    log::error!(target: "acme", record:% = key; "the record {key} of a certificate cannot be used, so the certificate before stays in use: {why}");
                }
                for name in refreshed.names {
                    self.reschedule(&name);
                }
            }
            Err(error) => self.part.fail(chain(&error)),
        }
        let held = i64::try_from(self.ordered.len()).unwrap_or(i64::MAX);
        self.metrics.held.set(held);
    }

    fn choose_leader(&mut self) {
        if let Some(lead) = &self.lead {
            if lead.holds() {
                return;
            }
            log::error!(target: "acme", "this process does not lead any more, because the file `leader` was removed or the database of the store cannot be reached: it orders no certificates until it leads again");
            self.resign();
        }
        match self.shared.vault.documents.lead() {
            Ok(Some(lead)) => {
                log::info!(target: "acme", "this process orders certificates");
                self.lead = Some(lead);
                self.metrics.leader.set(1);
                self.shared.challenges.sweep();
                self.requests = KnownKeys::default();
                self.read_failures();
                // What the leader before has ordered, and when.
                self.refresh();
                self.authorities.read_budgets();
            }
            Ok(None) => {}
            Err(error) => self.part.fail(chain(&error)),
        }
    }

    /// Stops ordering.
    fn resign(&mut self) {
        self.lead = None;
        self.running.abort_all();
        self.state = State::default();
        let metrics = &self.metrics;
        for gauge in [
            &metrics.leader,
            &metrics.queue,
            &metrics.failing,
            &metrics.missing,
        ] {
            gauge.set(0);
        }
        metrics.expires_at.set(0.0);
    }

    /// Reads the failures that an earlier leader has written, so that no name is tried too soon.
    fn read_failures(&mut self) {
        let documents = &self.shared.vault.documents;
        let listed = documents.changes(Kind::Order, &mut KnownKeys::default());
        for change in listed.unwrap_or_default() {
            let Change::Added(key) = change else { continue };
            let read = documents.get(Kind::Order, &key).ok().flatten();
            let Some(state) = read.and_then(|bytes| OrderState::parse(&bytes)) else {
                continue;
            };
            let entry = self.state.entries.entry(state.name.into()).or_default();
            (entry.failures, entry.retry_at) = (state.failures, state.retry_at);
        }
    }

    /// Compares the names that need a certificate with the known ones.
    fn compare(&mut self, now: u64) {
        let generation = self.names.generation();
        let is_same = self.state.generation == Some(generation);
        if is_same && now < self.state.compared_at + COMPARE_SECONDS {
            return;
        }
        self.state.generation = Some(generation);
        self.state.compared_at = now;
        let wanted: HashSet<Box<str>> = self.names.wanted().into_iter().collect();
        let gone: Vec<_> = self
            .state
            .entries
            .iter()
            .filter(|(name, entry)| !wanted.contains(&***name) && !entry.is_running)
            .map(|(name, _)| Arc::clone(name))
            .collect();
        for name in gone {
            self.remove(&name);
        }
        for name in &wanted {
            let is_known = self
                .state
                .entries
                .get(&**name)
                .is_some_and(|entry| entry.since > 0);
            if !is_known {
                let entry = self.state.entries.entry(Arc::from(&**name)).or_default();
                entry.since = now;
                self.reschedule(name);
            }
        }
        let (names, wait) = (&self.names, self.shared.config.release.as_secs());
        let is_needed = |name: &str| wanted.contains(name) || names.serves(name);
        let all = self.ordered.names();
        let left = self.state.released.compare(all, is_needed, now + wait);
        if let Some(left) = left.filter(|_| !self.state.is_release_held) {
            log::error!(target: "acme", names = left; "no site has {left} names any more that have a certificate, which is most of them: none is revoked; are all site records there? `waypost cert revoke` revokes one");
        }
        self.state.is_release_held = left.is_some();
    }

    fn remove(&mut self, name: &str) {
        self.state.queue.remove(name);
        let Some((name, entry)) = self.state.entries.remove_entry(name) else {
            return;
        };
        if let Some(at) = entry.ask_at {
            self.state.asks.remove(&(at, name));
        }
    }

    /// Puts a name where it has to wait.
    fn reschedule(&mut self, name: &str) {
        let State {
            entries,
            queue,
            asks,
            ..
        } = &mut self.state;
        let Some((name, _)) = entries.get_key_value(name) else {
            return;
        };
        let name = Arc::clone(name);
        let Some(entry) = entries.get_mut(&name) else {
            return;
        };
        if entry.is_running || entry.since == 0 {
            return;
        }
        let held = self.ordered.exactly(&name);
        queue.put(&name, entry.wait(held.as_deref()));
        // Authorities are asked about certificates, at different times.
        let ask_at = held.filter(|held| held.life.not_after > entry.since);
        let ask_at = ask_at.map(|held| match entry.ask_at {
            Some(at) => at,
            None => {
                let interval = self.shared.config.renewal_info.as_secs();
                self.clock.unix_seconds() + part_of(interval, seed_of(&held.id))
            }
        });
        if ask_at != entry.ask_at {
            if let Some(at) = entry.ask_at {
                asks.remove(&(at, Arc::clone(&name)));
            }
            if let Some(at) = ask_at {
                asks.insert((at, Arc::clone(&name)));
            }
            entry.ask_at = ask_at;
        }
    }

    /// Reads which certificates the operator has asked to replace.
    fn read_requests(&mut self, now: u64) {
        let documents = Arc::clone(&self.shared.vault.documents);
        let Ok(changes) = documents.changes(Kind::Request, &mut self.requests) else {
            return;
        };
        for change in changes {
            let Change::Added(key) = change else { continue };
            let read = documents.get(Kind::Request, &key).ok().flatten();
            if let Some(request) = read.and_then(|bytes| Request::read(&bytes)) {
                let name = &request.name;
                match self.state.entries.get_mut(&**name) {
                    Some(entry) if entry.since > 0 => {
                        log::info!(target: "acme", name; "the operator wants another certificate for {name}");
                        entry.is_forced = true;
                        (entry.failures, entry.retry_at) = (0, now);
                        self.reschedule(name);
                    }
                    _ => {
                        log::warn!(target: "acme", name; "the operator wants a certificate for {name}, which is not a name that is served without a certificate from `tls.directory`");
                    }
                }
            }
            if let Err(error) = documents.remove(Kind::Request, &key) {
                log::warn!(target: "acme", "remove a request: {}", chain(&error));
            }
        }
    }

    /// Begins the orders that are due and allowed.
    fn begin_orders(&mut self, now: u64) {
        while self.orders < self.shared.config.parallel_max {
            let mut usable = self
                .authorities
                .iter()
                .filter(|known| known.budget().is_usable(now));
            let Some(first) = usable.next() else { return };
            let may_begin =
                first.budget().left(now) > 0 || usable.any(|known| known.budget().left(now) > 0);
            let Some(name) = self.state.queue.take(now, !may_begin) else {
                return;
            };
            let held = self.ordered.exactly(&name);
            let Some(entry) = self.state.entries.get_mut(&name) else {
                continue;
            };
            let kinds = self.shared.config.kinds(&name);
            let turn = usize::try_from(entry.failures).unwrap_or(0);
            let Some(kind) = kinds.get(turn % kinds.len().max(1)).copied() else {
                continue;
            };
            entry.is_running = true;
            let replaces = held.and_then(|held| {
                let id = held.leaf()?.renewal_id?;
                Some((Arc::clone(&held.authority), id))
            });
            let job = Job {
                name: Arc::clone(&name),
                kind,
                replaces,
            };
            let (shared, authorities) = (Arc::clone(&self.shared), Arc::clone(&self.authorities));
            self.orders += 1;
            self.running.spawn(async move {
                let ordering = order_anywhere(&shared, &authorities, &job);
                let outcome = panics::caught(ordering).await.unwrap_or_else(|panic| {
                    let why = format!("a panic: {}", panics::message(&*panic));
                    Err(Failure::new(Cause::Authority, why))
                });
                Done::Order(job.name, outcome.map(Box::new))
            });
        }
    }

    /// Asks authorities for the times of renewals.
    fn begin_questions(&mut self, now: u64) {
        while self.questions < QUESTIONS_MAX {
            let Some((at, name)) = self.state.asks.first().cloned() else {
                return;
            };
            if at > now {
                return;
            }
            self.state.asks.pop_first();
            let held = self.ordered.exactly(&name);
            let Some(entry) = self.state.entries.get_mut(&name) else {
                continue;
            };
            entry.ask_at = None;
            let Some(held) = held else { continue };
            let known = self.authorities.at(&held.authority).cloned();
            let id = held.leaf().and_then(|leaf| leaf.renewal_id);
            let (Some(known), Some(id)) = (known, id) else {
                // No authority can be asked.
                continue;
            };
            if !known.budget().is_usable(now) {
                self.ask_again(
                    &name,
                    now + known.budget().paused_until().saturating_sub(now).max(1),
                );
                continue;
            }
            self.questions += 1;
            self.running.spawn(async move {
                let exchange = Arc::new(Exchange::default());
                let asking = EXCHANGE.scope(Arc::clone(&exchange), ask(&known, id, &exchange));
                let outcome = panics::caught(asking)
                    .await
                    .unwrap_or_else(|_panic| Err(Failure::new(Cause::Authority, "a panic")));
                Done::Question(name, held.id.clone(), outcome)
            });
        }
    }

    /// Begins to revoke certificates of names that no site has any more.
    fn begin_releases(&mut self, now: u64) {
        while let Some(name) = self.state.released.take(now) {
            let (shared, authorities) = (Arc::clone(&self.shared), Arc::clone(&self.authorities));
            self.running.spawn(async move {
                let revoking = released::revoke(&shared, &authorities, &name);
                let outcome = panics::caught(revoking)
                    .await
                    .unwrap_or_else(|_panic| Err(Failure::new(Cause::Authority, "a panic")));
                Done::Release(name, outcome)
            });
        }
    }

    /// Removes the records of a name whose certificates were revoked.
    fn released(&mut self, name: &str, outcome: Result<(), Failure>, now: u64) {
        let result = match &outcome {
            Ok(()) => "revoked",
            Err(failure) if failure.is_passing() => "failed",
            Err(_) => "refused",
        };
        self.metrics.released.with_label_values(&[result]).inc();
        match outcome {
            Ok(()) => {
                log::info!(target: "acme", name; "no site has {name} any more: its certificate was revoked and its key is removed");
            }
            Err(failure) if failure.is_passing() => {
                log::warn!(target: "acme", name; "no site has {name} any more, and its certificate could not be revoked; this is tried again: {failure}");
                let retries = &self.shared.config.retries;
                let wait = |failures| wait_after(failures, retries).as_secs();
                return self.state.released.failed(name, now, wait);
            }
            Err(failure) => {
                log::warn!(target: "acme", name; "no site has {name} any more, and its certificate cannot be revoked; its key is removed: {failure}");
            }
        }
        self.state.released.done(name);
        self.remove_records(name, 0);
        self.shared.forget(name);
    }

    fn ask_again(&mut self, name: &Arc<str>, at: u64) {
        if let Some(entry) = self.state.entries.get_mut(name) {
            if let Some(before) = entry.ask_at.replace(at) {
                self.state.asks.remove(&(before, Arc::clone(name)));
            }
            self.state.asks.insert((at, Arc::clone(name)));
        }
    }

    async fn done(&mut self, done: Done) {
        let now = self.clock.unix_seconds();
        match done {
            Done::Order(name, outcome) => {
                self.orders = self.orders.saturating_sub(1);
                if self.lead.is_none() {
                    return;
                }
                match outcome {
                    Ok(record) => self.issued(&name, *record, now),
                    Err(failure) => self.failed(&name, &failure, now).await,
                }
            }
            Done::Question(name, id, outcome) => {
                self.questions = self.questions.saturating_sub(1);
                self.answered(&name, &id, outcome, now);
            }
            Done::Release(name, outcome) => {
                if self.lead.is_some() {
                    self.released(&name, outcome, now);
                }
            }
            // Stopped tasks are not counted.
            Done::Nothing => {
                (self.orders, self.questions) = (0, 0);
                self.state.released.stopped();
            }
        }
    }

    fn answered(
        &mut self,
        name: &Arc<str>,
        id: &str,
        outcome: Result<(Window, Duration), Failure>,
        now: u64,
    ) {
        let longest = self.shared.config.renewal_info.as_secs();
        let result = match &outcome {
            Ok(_) => "answered",
            Err(_) => "failed",
        };
        self.metrics.renewal_info.with_label_values(&[result]).inc();
        let wait = match outcome {
            Ok((window, wait)) => {
                let is_same = self
                    .ordered
                    .exactly(name)
                    .is_some_and(|held| *held.id == *id);
                if is_same && let Some(entry) = self.state.entries.get_mut(name) {
                    entry.window = Some(window);
                }
                let wait = wait.as_secs();
                wait.clamp(*QUESTION_SECONDS.start(), *QUESTION_SECONDS.end())
            }
            Err(failure) => {
                log::debug!(target: "acme", name:% = &**name; "ask when to renew the certificate of {name}: {failure}");
                longest
            }
        };
        self.ask_again(name, now + wait.min(longest).max(1));
        self.reschedule(name);
    }

    /// Writes the record of a new certificate, and serves it.
    fn issued(&mut self, name: &Arc<str>, mut record: Record, now: u64) {
        self.metrics.orders.with_label_values(&["issued"]).inc();
        let before = self.ordered.exactly(name);
        // Two certificates of one second: the later one is newer for every process.
        if let Some(held) = &before {
            record.issued_at = record.issued_at.max(held.issued_at + 1);
        }
        let expires =
            jiff::Timestamp::from_second(i64::try_from(record.leaf.not_after).unwrap_or(0));
        let expires = expires.map_or_else(|_| String::new(), |at| at.to_string());
        let (id, authority) = (&*record.id, &*record.authority);
        let replaces = before.as_ref().map_or("", |held| &*held.id);
        log::info!(target: "acme", name:% = &**name, id, authority, replaces, expires; "the certificate of {name} was issued");
        if let Some(entry) = self.state.entries.get_mut(name) {
            let is_early = before.is_some_and(|held| {
                let Life {
                    not_before,
                    not_after,
                    ..
                } = held.life;
                now.saturating_sub(not_before) < (not_after - not_before) / EARLY_PART
            });
            *entry = Entry {
                since: entry.since,
                ask_at: entry.ask_at,
                early: match is_early {
                    true => entry.early + 1,
                    false => 0,
                },
                ..Entry::default()
            };
        }
        self.state.trouble = None;
        let removed = self
            .shared
            .vault
            .documents
            .remove(Kind::Order, &key_of(name));
        if let Err(error) = removed {
            log::warn!(target: "acme", "remove the failures of {name}: {}", chain(&error));
        }
        // It is served even if it cannot be written now.
        if let Err(error) = self.ordered.serve(&record) {
            log::error!(target: "acme", "serve the new certificate of {name}: {}", chain(&error));
        }
        if !self.write(&record) {
            self.state.unwritten.push(record);
        }
        self.reschedule(name);
    }

    /// Writes a record. If that fails, the certificate is served from memory, and the record is
    /// written when the disk works again.
    fn write(&self, record: &Record) -> bool {
        let documents = &self.shared.vault.documents;
        match documents.put(Kind::Certificate, &record.key(), &record.to_bytes()) {
            Ok(()) => {
                self.shared.forget(&record.name);
                self.remove_records(&record.name, 2);
                true
            }
            Err(error) => {
                let name = &record.name;
                let why = format!(
                    "the new certificate of {name} is served from memory until it can be written: {}",
                    chain(&error)
                );
                self.part.fail(why);
                false
            }
        }
    }

    fn write_again(&mut self) {
        if self.state.unwritten.is_empty() {
            return;
        }
        let unwritten = std::mem::take(&mut self.state.unwritten);
        for record in unwritten {
            if !self.write(&record) {
                self.state.unwritten.push(record);
            }
        }
        if self.state.unwritten.is_empty() {
            self.part.recover();
        }
    }

    /// Removes the older records of a name; `keep` of them stay.
    fn remove_records(&self, name: &str, keep: usize) {
        let documents = &self.shared.vault.documents;
        let keys = documents.keys_of(Kind::Certificate, &key_of(name));
        let mut records: Vec<_> = keys
            .unwrap_or_default()
            .into_iter()
            .filter_map(|key| {
                let bytes = documents.get(Kind::Certificate, &key).ok().flatten()?;
                // A record of a newer program is left alone.
                let record = Record::parse(&bytes).ok()?;
                (*record.name == *name).then_some((record.issued_at, key))
            })
            .collect();
        records.sort_unstable_by(|a, b| b.cmp(a));
        for (_, key) in records.into_iter().skip(keep) {
            if let Err(error) = documents.remove(Kind::Certificate, &key) {
                log::warn!(target: "acme", "remove an old certificate: {}", chain(&error));
            }
        }
    }

    /// Notes a failed order.
    async fn failed(&mut self, name: &Arc<str>, failure: &Failure, now: u64) {
        let result = match failure.cause {
            Cause::Authority | Cause::Account => "authority",
            Cause::Limit => "limited",
            Cause::Name | Cause::Replaced => "name",
            Cause::Ourselves => "ourselves",
        };
        self.metrics.orders.with_label_values(&[result]).inc();
        let Some(entry) = self.state.entries.get_mut(name) else {
            return;
        };
        entry.is_running = false;
        let retries = &self.shared.config.retries;
        let is_of_name = matches!(failure.cause, Cause::Name | Cause::Limit | Cause::Replaced);
        if is_of_name {
            entry.failures = entry.failures.saturating_add(1);
            let wait = wait_after(entry.failures, retries);
            let wait = failure.wait.map_or(wait, |asked| asked.max(wait)).as_secs();
            // Names that failed together are not tried together again.
            entry.retry_at = now + wait + part_of(wait / 10, seed_of(name));
            let state = OrderState::new(name, entry.failures, now, entry.retry_at, &failure.text);
            let put = self
                .shared
                .vault
                .documents
                .put(Kind::Order, &key_of(name), &state.write());
            if let Err(error) = put {
                log::warn!(target: "acme", "note the failure of {name}: {}", chain(&error));
            }
            let again = entry.retry_at - now;
            let failures = entry.failures;
            log::warn!(target: "acme", name:% = &**name, failures, again; "no certificate for {name}, the next try is in {again} s: {failure}");
        } else {
            // The cause is the authority or this machine, so this does not count as a failure of
            // the name.
            let wait = wait_after(1, retries).as_secs().max(1);
            entry.retry_at = now + wait.min(60);
            let known = self.state.trouble.as_ref();
            let is_new = known.is_none_or(|known| known.text != failure.text);
            if is_new {
                log::error!(target: "acme", name:% = &**name; "certificates are not ordered now, those in use stay: {failure}");
            }
            self.state.trouble = Some(failure.clone());
        }
        self.reschedule(name);
    }

    /// Sets the metrics, and reports the health of the whole.
    fn count(&mut self, now: u64) {
        if now < self.state.counted_at + COUNT_SECONDS && self.state.counted_at > 0 {
            return;
        }
        self.state.counted_at = now;
        let set = |gauge: &prometheus::IntGauge, value: usize| {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        let mut by_days = [0_usize; DAYS.len()];
        let (mut missing, mut failing, mut first) = (0, 0, u64::MAX);
        for (name, entry) in &self.state.entries {
            failing += usize::from(entry.failures > 0);
            let held = self.ordered.exactly(name);
            match held {
                None => missing += 1,
                Some(held) => {
                    let left = held.life.not_after.saturating_sub(now) / 86_400;
                    first = first.min(held.life.not_after);
                    for (count, days) in by_days.iter_mut().zip(DAYS) {
                        *count += usize::from(left <= days);
                    }
                }
            }
        }
        let metrics = &self.metrics;
        set(&metrics.missing, missing);
        set(&metrics.failing, failing);
        let due = self.state.queue.due(now);
        set(&metrics.queue, due);
        for (count, days) in by_days.iter().zip(DAYS) {
            let days = days.to_string();
            set(&metrics.days_left.with_label_values(&[&days]), *count);
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "seconds stay exact for 285 million years"
        )]
        metrics
            .expires_at
            .set(if first == u64::MAX { 0.0 } else { first as f64 });
        if let Some(known) = self.authorities.iter().next() {
            set(&metrics.budget, known.budget().left(now));
        }
        let is_down = self
            .authorities
            .iter()
            .all(|known| known.budget().failures() > 0);
        match &self.state.trouble {
            Some(trouble)
                if is_down
                    || trouble.cause == Cause::Ourselves
                    || !self.state.unwritten.is_empty() =>
            {
                let text = format!("{trouble}; {due} names wait");
                self.part.fail(text);
            }
            _ if self.state.unwritten.is_empty() => self.part.recover(),
            _ => {}
        }
    }
}

// === impl Entry ===

impl Entry {
    /// Returns when its order is due, and how urgent it is.
    fn wait(&self, held: Option<&Held>) -> Wait {
        let Some(held) = held else {
            return Wait {
                at: self.since.max(self.retry_at),
                deadline: self.since + NEW_SECONDS,
                lane: Lane::New,
            };
        };
        let life = held.life;
        let mut at = renewal_at(life, self.window);
        if self.early >= EARLY_MAX {
            at = at.max(life.not_before + (life.not_after - life.not_before) / EARLY_PART);
        }
        if self.is_forced {
            at = 0;
        }
        Wait {
            at: at.max(self.retry_at),
            deadline: life.not_after,
            lane: Lane::Renewal,
        }
    }
}

/// Orders a certificate at the first authority that works.
async fn order_anywhere(
    shared: &Shared,
    authorities: &Authorities,
    job: &Job,
) -> Result<Record, Failure> {
    caa::permit(&shared.client, &job.name, &shared.config.caa_identities).await?;
    let mut last = None;
    for known in authorities.iter() {
        let now = shared.clock.unix_seconds();
        if !known.budget().is_usable(now) {
            continue;
        }
        if !job.is_renewal_at(&known.config.directory) && !known.take(now) {
            continue;
        }
        let exchange = Arc::new(Exchange::default());
        let ordering = EXCHANGE.scope(exchange, Box::pin(shared.order(known, job)));
        let failure = match ordering.await {
            Ok(record) => {
                known.budget().works();
                return Ok(record);
            }
            Err(failure) => failure,
        };
        let text = format!("{}: {failure}", known.config.directory);
        let failure = Failure { text, ..failure };
        let now = shared.clock.unix_seconds();
        match failure.cause {
            Cause::Name | Cause::Replaced => {
                known.budget().works();
                return Err(failure);
            }
            Cause::Ourselves => return Err(failure),
            Cause::Limit => {
                log::warn!(target: "acme", name:% = &*job.name; "an authority refuses an order because of a limit: {failure}");
                known.budget().limits(now, failure.wait);
            }
            Cause::Authority | Cause::Account => {
                known.forget(failure.cause == Cause::Account).await;
                let failures = known.budget().failures() + 1;
                let wait = wait_after(failures, &shared.config.retries);
                // It is not asked for a while, so this is logged once for many names.
                log::warn!(target: "acme", "an authority does not work, the next one is used if there is one: {failure}");
                known.budget().fails(now, wait, failure.wait);
            }
        }
        last = Some(failure);
    }
    Err(last.unwrap_or_else(|| Failure::new(Cause::Authority, "no authority accepts an order now")))
}

/// Asks an authority when to renew a certificate.
async fn ask(
    known: &Known,
    (authority_key, serial): (String, String),
    exchange: &Exchange,
) -> Result<(Window, Duration), Failure> {
    let account = known.account().await?;
    let id = CertificateIdentifier {
        authority_key_identifier: authority_key.into(),
        serial: serial.into(),
    };
    let asked = account.renewal_info(&id).await;
    let (info, wait) = asked.map_err(|error| Failure::of("ask when to renew", &error, exchange))?;
    let seconds = |time: i64| u64::try_from(time).unwrap_or(0);
    let window = Window {
        start: seconds(info.suggested_window.start.unix_timestamp()),
        end: seconds(info.suggested_window.end.unix_timestamp()),
    };
    Ok((window, wait))
}
