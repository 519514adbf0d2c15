//! Writes the counts of all sites into the store.
//!
//! A write may fail after the store has made it: the answer to a commit is lost with the
//! connection. So a write that has failed is made again with the same counts and the same number,
//! before newer counts of that site and day, and the document remembers the last number of each
//! process ([`Document::add_once`]).
//!
//! **Limits:** while the clock is far ahead, days are removed before their time.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ulid::Ulid;

use super::document::Document;
use super::{SiteNumbers, stored};
use crate::clock::{Clock, Day, unix_seconds};
use crate::error::chain;
use crate::site::ProjectId;
use crate::store::Store;

/// How often counts are written. A killed process loses the counts since the last write.
const WRITE_INTERVAL: Duration = Duration::from_secs(30);
/// How many documents that could not be written are kept in memory.
const UNWRITTEN_MAX: usize = 1000;
const DAY_SECONDS: u64 = 24 * 60 * 60;

/// Lists the sites that may have counts.
type ListSites = Box<dyn Fn() -> Vec<(ProjectId, Arc<SiteNumbers>)> + Send + Sync>;

/// Takes the counts of sites, and adds them to the documents in the store.
pub struct Writer {
    store: Arc<Store>,
    sites: ListSites,
    keep_days: u32,
    clock: Clock,
    /// A text that no other process has. It begins with the time of the start.
    life: Box<str>,
    state: Mutex<State>,
    is_closed: Mutex<bool>,
    closing: Condvar,
}

#[derive(Debug)]
struct State {
    /// The day to which the counts in memory belong.
    day: Day,
    /// When days were last removed.
    swept: Option<Day>,
    unwritten: HashMap<(ProjectId, Day), Unwritten>,
    /// The number of the last write.
    writes: u64,
}

/// Counts that the store may not have yet.
#[derive(Debug, Default)]
struct Unwritten {
    /// A write that has failed, with its number. Perhaps the store has made it.
    tried: Option<(u64, Document)>,
    newer: Document,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

// === impl Writer ===

impl Writer {
    /// Makes a writer. `sites` lists the sites that may have counts; days are kept for `keep_days`.
    #[must_use]
    pub fn new(store: Arc<Store>, sites: ListSites, keep_days: u32, clock: Clock) -> Self {
        let state = State {
            day: Day::of(clock.now()),
            swept: None,
            unwritten: HashMap::new(),
            writes: 0,
        };
        let mut random = [0; 16];
        // Without random bits, processes differ by the time of their start.
        let _filled = getrandom::fill(&mut random);
        let life = Ulid::from_parts(clock.unix_seconds() * 1000, u128::from_be_bytes(random));
        Self {
            life: life.to_string().into(),
            store,
            sites,
            keep_days,
            clock,
            state: Mutex::new(state),
            is_closed: Mutex::new(false),
            closing: Condvar::new(),
        }
    }

    /// Writes again and again, and at the end of each day, until [`Writer::close`]. Then it writes
    /// for the last time.
    pub fn run(&self) {
        loop {
            let into_day = unix_seconds(self.clock.now()) % DAY_SECONDS;
            let to_midnight = Duration::from_secs(DAY_SECONDS - into_day);
            let wait = WRITE_INTERVAL.min(to_midnight);
            let is_closed = self.is_closed();
            let waited = self
                .closing
                .wait_timeout_while(is_closed, wait, |is_closed| !*is_closed);
            let is_closed = *waited.unwrap_or_else(PoisonError::into_inner).0;
            self.write();
            if is_closed {
                return;
            }
        }
    }

    /// Makes [`Writer::run`] return.
    pub fn close(&self) {
        *self.is_closed() = true;
        self.closing.notify_all();
    }

    /// Writes the counts of all sites.
    pub fn write(&self) {
        let mut state = self.state();
        let today = Day::of(self.clock.now());
        let ends_day = state.day != today;
        for (project, numbers) in (self.sites)() {
            let document = numbers.take(ends_day);
            state.add(&project, document);
        }
        state.day = today;
        self.write_all(&mut state);
        if state.swept != Some(today) {
            match self.store.sweep_numbers(today.before(self.keep_days)) {
                Ok(_removed) => state.swept = Some(today),
                Err(error) => {
                    log::warn!(target: "numbers", "cannot remove old numbers: {}", chain(&error))
                }
            }
        }
    }

    /// Writes the counts of one site, so that a reader of the store gets them.
    pub fn write_site(&self, project: &ProjectId, numbers: &SiteNumbers) {
        let mut state = self.state();
        if state.day != Day::of(self.clock.now()) {
            drop(state);
            return self.write();
        }
        state.add(project, numbers.take(false));
        let day = state.day;
        let key = (project.clone(), day);
        if let Some(unwritten) = state.unwritten.remove(&key)
            && let Err(left) = self.write_one(&mut state, project, day, unwritten)
        {
            state.unwritten.insert(key, *left);
        }
    }

    /// Removes the numbers of a site that was removed.
    pub fn remove(&self, project: &ProjectId) {
        let mut state = self.state();
        state.unwritten.retain(|(of, _), _| of != project);
        if let Err(error) = self.store.remove_numbers(project) {
            log::warn!(target: "numbers", project:%; "cannot remove the numbers of {project}: {}", chain(&error));
        }
    }

    fn write_all(&self, state: &mut State) {
        let mut failed = 0;
        let since = Instant::now();
        for ((project, day), unwritten) in std::mem::take(&mut state.unwritten) {
            // While the store is away, one attempt is enough.
            let written = match failed {
                0 => self.write_one(state, &project, day, unwritten),
                _ => Err(Box::new(unwritten)),
            };
            if let Err(left) = written {
                failed += 1;
                state.unwritten.insert((project, day), *left);
            }
        }
        let took = since.elapsed();
        if took > WRITE_INTERVAL {
            log::warn!(target: "numbers", "writing the numbers of all sites took {} s", took.as_secs());
        }
        if state.unwritten.len() > UNWRITTEN_MAX {
            let lost = state.unwritten.len() - UNWRITTEN_MAX;
            let mut place = 0;
            state.unwritten.retain(|_, _| {
                place += 1;
                place <= UNWRITTEN_MAX
            });
            log::warn!(target: "numbers", lost; "{lost} documents with the numbers of a site and day are lost: the store could not be written");
        }
    }

    /// Adds counts to the document in the store. If a write fails, it returns the counts that the
    /// store may not have.
    fn write_one(
        &self,
        state: &mut State,
        project: &ProjectId,
        day: Day,
        mut unwritten: Unwritten,
    ) -> Result<(), Box<Unwritten>> {
        while let Some((number, document)) = unwritten.next(&mut state.writes) {
            let added = stored::change(&self.store, project, day, |sum| {
                sum.add_once(&self.life, number, document.clone())
            });
            if let Err(error) = added {
                log::warn!(target: "numbers", project:%; "cannot write the numbers of {project}: {}", chain(&error));
                unwritten.tried = Some((number, document));
                return Err(Box::new(unwritten));
            }
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // After a panic, counts may be missing or counted twice, but the value is usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) -> MutexGuard<'_, bool> {
        self.is_closed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    fn add(&mut self, project: &ProjectId, document: Document) {
        if !document.is_empty() {
            let key = (project.clone(), self.day);
            self.unwritten.entry(key).or_default().newer.add(document);
        }
    }
}

// === impl Unwritten ===

impl Unwritten {
    /// Takes the counts of the next write, with its number.
    fn next(&mut self, writes: &mut u64) -> Option<(u64, Document)> {
        if let Some(tried) = self.tried.take() {
            return Some(tried);
        }
        let document = std::mem::take(&mut self.newer);
        (!document.is_empty()).then(|| {
            *writes += 1;
            (*writes, document)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::testing;
    use crate::store::tests::shared;
    use crate::store::{Local, Retention, local};

    fn store(directory: &std::path::Path) -> Arc<Store> {
        let config = local::Config {
            path: directory.join("store"),
            ..local::Config::default()
        };
        Arc::new(Store::Local(Local::open(&config, Clock::System).unwrap()))
    }

    fn read(store: &Store, project: &ProjectId) -> Vec<(String, Document)> {
        let (first, last) = (Day::parse("2000-01-01"), Day::parse("2099-12-31"));
        let days = store.numbers(project, first.unwrap(), last.unwrap());
        let parse =
            |(day, bytes): (Day, Vec<u8>)| (day.to_string(), Document::parse(&bytes).unwrap());
        days.unwrap().into_iter().map(parse).collect()
    }

    fn writer(store: &Arc<Store>, numbers: &Arc<SiteNumbers>, clock: Clock) -> Writer {
        let (project, numbers) = (ProjectId::parse("acme").unwrap(), Arc::clone(numbers));
        let sites = Box::new(move || vec![(project.clone(), Arc::clone(&numbers))]);
        Writer::new(Arc::clone(store), sites, 30, clock)
    }

    #[test]
    fn processes_add_to_the_same_day_and_old_days_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let acme = ProjectId::parse("acme").unwrap();
        let numbers = [(); 2].map(|()| Arc::new(SiteNumbers::new(Arc::default())));
        let at = |seconds| Clock::fixed_at(seconds);
        for (numbers, seconds) in [
            (&numbers[0], 1_795_391_999),
            (&numbers[1], 1_795_391_000),
            (&numbers[0], 1_795_392_000),
        ] {
            numbers.vote("/guide", true);
            writer(&store, numbers, at(seconds)).write();
        }
        let days = read(&store, &acme);
        let votes = |page: &Document| page.pages["/guide"].yes;
        let votes: Vec<_> = days.iter().map(|(day, it)| (&**day, votes(it))).collect();
        assert_eq!(votes, [("2026-11-22", 2), ("2026-11-23", 1)]);
        writer(&store, &numbers[0], at(1_795_392_000 + 30 * DAY_SECONDS)).write();
        let days = read(&store, &acme);
        assert_eq!((days.len(), &*days[0].0), (1, "2026-11-23"));
        writer(&store, &numbers[0], at(1_795_392_000)).remove(&acme);
        assert!(read(&store, &acme).is_empty());
    }

    #[test]
    fn what_cannot_be_written_is_written_later() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let acme = ProjectId::parse("acme").unwrap();
        let numbers = Arc::new(SiteNumbers::new(Arc::default()));
        let writer = writer(&store, &numbers, Clock::fixed_at(1_795_392_000));
        let place = directory.path().join("store/numbers");
        std::fs::write(&place, "in the way").unwrap();
        numbers.vote("/guide", false);
        writer.write();
        numbers.vote("/guide", false);
        std::fs::remove_file(&place).unwrap();
        writer.write();
        let days = read(&store, &acme);
        assert_eq!(days[0].1.pages["/guide"].no, 2);
    }

    #[test]
    fn a_damaged_day_begins_again_and_one_of_a_newer_program_stays() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let acme = ProjectId::parse("acme").unwrap();
        let numbers = Arc::new(SiteNumbers::new(Arc::default()));
        let clock = Clock::fixed_at(1_795_392_000);
        let writer = writer(&store, &numbers, clock);
        let day = Day::of(clock.now());
        let put = |text: &str| {
            let mut put = |_before: Option<&[u8]>| Some(text.as_bytes().to_vec());
            store.change_numbers(&acme, day, &mut put).unwrap();
        };
        put("{");
        numbers.vote("/guide", true);
        writer.write();
        assert_eq!(read(&store, &acme)[0].1.pages["/guide"].yes, 1);
        put(r#"{"version":2}"#);
        numbers.vote("/guide", true);
        writer.write();
        let kept = store.numbers(&acme, day, day).unwrap();
        assert_eq!(kept[0].1, br#"{"version":2}"#);
    }

    #[test]
    fn a_write_whose_answer_was_lost_counts_once() {
        let directory = tempfile::tempdir().unwrap();
        let mut config = shared::config(directory.path(), Retention::default());
        let relay = testing::Relay::start(&mut config.database);
        let store = Arc::new(shared::node(&config, directory.path(), "cache"));
        let acme = ProjectId::parse("acme").unwrap();
        let numbers = Arc::new(SiteNumbers::new(Arc::default()));
        let writer = writer(&store, &numbers, Clock::fixed_at(1_795_392_000));
        for votes in 1..4 {
            relay.lose_next_commit();
            numbers.vote("/guide", true);
            writer.write_site(&acme, &numbers);
            assert!(relay.has_lost());
            // A write that was not repeated at once is made again now.
            writer.write_site(&acme, &numbers);
            assert_eq!(read(&store, &acme)[0].1.pages["/guide"].yes, votes);
        }
    }
}
