//! The loop that keeps a valid certificate for every name that needs one.
//!
//! Every process runs it and reads new records. The process that leads also orders: it compares the
//! names with the certificates, asks authorities when to renew, and begins orders within the budget
//! and the limit of parallel orders.
//!
//! | module | does |
//! |---|---|
//! | `names` | compares the names with the certificates, and decides when each is ordered |
//! | `orders` | begins orders, writes certificates, notes failures |
//! | `questions` | asks authorities when to renew |
//! | `releases` | revokes certificates of names that have left |
//! | `health` | metrics and health |

mod health;
mod names;
mod orders;
mod questions;
mod releases;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Vault;
use super::authority::Authorities;
use super::challenges::Challenges;
use super::config::Config;
use super::failure::Failure;
use super::metrics::Metrics;
use super::order::Shared;
use super::ordered::Ordered;
use super::owners::OwnerOrders;
use super::queue::Queue;
use super::record::Record;
use super::released::Released;
use super::schedule::{Window, is_of_wrong_clock};
use crate::clock::Clock;
use crate::dns::Client;
use crate::error::chain;
use crate::store::documents::{KnownKeys, Lead};
use crate::telemetry::Part;
use names::Entry;

/// How often the loop looks for changes.
const TICK: Duration = Duration::from_millis(500);
/// The names that a process serves.
pub trait Names: Send {
    /// Returns a number that changes when the names change.
    fn generation(&self) -> u64;

    /// Returns the names that need a certificate by ACME, in normal form, each with the owner of its
    /// site; `None` for a name of the operator.
    fn wanted(&self) -> HashMap<Box<str>, Option<Arc<str>>>;

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
    /// The new orders of owners.
    owners: OwnerOrders,
    requests: KnownKeys,
    running: JoinSet<Done>,
    orders: usize,
    questions: usize,
    /// When the last step began.
    stepped_at: u64,
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
        let owners = OwnerOrders::new(config.orders_owner_max, config.orders_window);
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
            owners,
            requests: KnownKeys::default(),
            running: JoinSet::new(),
            orders: 0,
            questions: 0,
            stepped_at: 0,
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
        let now = self.clock.unix_seconds();
        if is_of_wrong_clock(self.stepped_at, now) {
            // Names wait for times of the wrong clock. The next leader collects everything again.
            log::warn!(target: "acme", "the clock was set back, so all times are collected again");
            let unwritten = std::mem::take(&mut self.state.unwritten);
            self.resign();
            self.state.unwritten = unwritten;
        }
        self.stepped_at = now;
        self.refresh();
        self.choose_leader(now);
        if self.lead.is_none() {
            return;
        }
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
                    log::error!(target: "acme", record:% = key; "the record {key} of a certificate cannot be used, so the previous certificate stays in use: {why}");
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

    fn choose_leader(&mut self, now: u64) {
        if let Some(lead) = &self.lead {
            if lead.holds() {
                return;
            }
            self.resign();
            log::error!(target: "acme", "this process does not lead any more, because the file `leader` was removed or the database of the store cannot be reached: it orders no certificates until it leads again");
        }
        match self.shared.vault.documents.lead() {
            Ok(Some(lead)) => {
                self.lead = Some(lead);
                self.metrics.leader.set(1);
                log::info!(target: "acme", "this process orders certificates");
                self.shared.challenges.sweep();
                self.requests = KnownKeys::default();
                self.read_orders(now);
                // The orders of the previous leader count against the budgets.
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
            &metrics.late,
        ] {
            gauge.set(0);
        }
        metrics.expires_at.set(0.0);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acme::config;
    use crate::acme::state::{OrderState, Versioned as _};
    use crate::site::PrivateHosts;
    use crate::store::documents::Kind;
    use crate::telemetry::{self, Health};

    const NOW: u64 = 1_800_000_000;
    const YEAR: u64 = 365 * 86_400;
    const NAMES: [&str; 2] = ["docs.acme.test", "docs.second.test"];

    /// Names with the owners of their sites.
    #[derive(Debug)]
    struct Owned(Vec<(String, &'static str)>);

    impl Names for Owned {
        fn generation(&self) -> u64 {
            1
        }

        fn wanted(&self) -> HashMap<Box<str>, Option<Arc<str>>> {
            let owned = self.0.iter();
            owned
                .map(|(name, owner)| (name.as_str().into(), Some((*owner).into())))
                .collect()
        }

        fn serves(&self, name: &str) -> bool {
            self.0.iter().any(|(served, _)| served == name)
        }
    }

    /// Makes a manager of an authority that does not answer.
    fn manager(vault: Vault, clock: Clock, names: Owned) -> Manager {
        let authority = config::Authority {
            directory: "https://127.0.0.1:1/directory".into(),
            ..config::Authority::default()
        };
        let config = Config {
            authorities: vec![authority],
            agree_to_terms: true,
            orders_owner_max: 4,
            ..Config::default()
        };
        Manager::new(
            config.clone(),
            vault.clone(),
            Authorities::new(&config, &vault, clock).unwrap(),
            Arc::new(Ordered::new(vault.clone(), clock)),
            Arc::new(Challenges::new(Arc::clone(&vault.documents))),
            Box::new(names),
            Client::new(&[], PrivateHosts::default(), Duration::from_secs(1)),
            Metrics::new(&telemetry::Metrics::new()),
            Health::new(clock).part("certificates"),
            clock,
        )
    }

    #[tokio::test]
    async fn names_that_were_new_while_the_clock_was_a_year_ahead_are_ordered_when_it_is_right() {
        let root = tempfile::tempdir().unwrap();
        let key_file = root.path().join("key");
        let clock = Clock::fixed_at(NOW + YEAR);
        let vault = Vault::open(&root.path().join("certificates"), &key_file, clock).unwrap();
        // The order of one of them failed then, in a process that has ended.
        let at = NOW + YEAR;
        let failed = OrderState::new(NAMES[0], 1, at, at + 60, "refused");
        let documents = Arc::clone(&vault.documents);
        let put = documents.put(Kind::Order, NAMES[0], &failed.write());
        put.unwrap();
        let names = NAMES.map(|name| (name.to_owned(), "acme"));
        let mut manager = manager(vault, clock, Owned(names.into()));
        manager.step();
        assert_eq!(manager.orders, 1, "the other one is ordered at once");
        manager.running.shutdown().await;
        manager.orders = 0;
        manager.clock = Clock::fixed_at(NOW);
        manager.step();
        assert_eq!(manager.orders, NAMES.len());
        manager.running.shutdown().await;
    }

    #[tokio::test]
    async fn an_owner_with_many_domains_leaves_orders_for_others() {
        let root = tempfile::tempdir().unwrap();
        let clock = Clock::fixed_at(NOW);
        let (directory, key) = (root.path().join("certificates"), root.path().join("key"));
        let vault = Vault::open(&directory, &key, clock).unwrap();
        let many = (0..1000).map(|n| (format!("docs.a{n}.test"), "many"));
        let other = ("docs.other.test".to_owned(), "other");
        let mut manager = manager(vault, clock, Owned(many.chain([other]).collect()));
        manager.step();
        assert_eq!(manager.orders, 4 + 1);
        assert!(manager.state.entries["docs.other.test"].is_running);
        assert_eq!(manager.state.queue.due(NOW), 1000 - 4);
        // The authority does not answer, so these orders do not count.
        while let Some(done) = manager.running.join_next().await {
            manager.done(done.unwrap()).await;
        }
        assert!(manager.owners.has_room("many"));
    }
}
