//! Heavy hitters: which hosts, client addresses and kinds of ends have the most requests or bytes.
//!
//! The memory is bounded whatever clients send: each list has [`ENTRIES_MAX`] entries and counts
//! with the algorithm Space-Saving. An entry that has more than 1/128 of all is always in the list,
//! and its count is too high by at most this part; the list says by how much.
//!
//! A busy gateway counts a sample: every n-th request with the weight n, where n grows with the
//! rate, so that about [`SAMPLES_PER_SECOND`] requests are counted. A response of
//! [`LARGE_BYTES`] or more is always counted for its bytes.
//!
//! The lists are of the last complete [`WINDOW`] and of the current one.
//!
//! Source: Metwally, Agrawal, El Abbadi: "Efficient Computation of Frequent and Top-k Elements in
//! Data Streams" (2005).

use std::cell::Cell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use serde_json::{Value, json};

use super::access::Outcome;

/// How many entries each list has.
pub const ENTRIES_MAX: usize = 128;
/// How long a window is.
pub const WINDOW: Duration = Duration::from_secs(30);
/// How many requests are counted per second, about.
pub const SAMPLES_PER_SECOND: u32 = 1000;
/// A response with so many bytes is always counted.
pub const LARGE_BYTES: u64 = 1 << 20;
/// The largest weight of a request.
const PERIOD_MAX: u32 = 1 << 16;
/// The longest name of an entry, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// What entries are named by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The host of the request, as sent.
    Host,
    /// The client that the request counts for.
    Address,
    /// Who responded, with which status, and how the request ended.
    Reason,
}

/// The unit of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Requests.
    Requests,
    /// Bytes of content that were sent.
    Bytes,
}

/// Counts the requests of a process.
#[derive(Debug)]
pub struct Top {
    /// One of this many requests is counted; a power of two.
    period: AtomicU32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    began: Instant,
    now: Window,
    before: Option<(Window, Duration)>,
    /// The second in which requests are counted to choose the period.
    second: Instant,
    samples: u32,
    /// The text of an address or a reason that is looked up.
    text: String,
}

/// The lists of a time.
#[derive(Debug, Default)]
struct Window {
    lists: [[List; 2]; 3],
    /// All requests and all bytes.
    totals: [u64; 2],
}

/// Space-Saving.
#[derive(Debug, Default)]
struct List {
    places: HashMap<Box<str>, usize, RandomState>,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: Box<str>,
    count: u64,
    /// By how much the count may be too high.
    excess: u64,
}

// === impl By, Of ===

impl By {
    /// All, with their names in the query of `/top`.
    pub const NAMES: [(&'static str, Self); 3] = [
        ("host", Self::Host),
        ("address", Self::Address),
        ("reason", Self::Reason),
    ];
}

impl Of {
    /// All, with their names in the query of `/top`.
    pub const NAMES: [(&'static str, Self); 2] =
        [("requests", Self::Requests), ("bytes", Self::Bytes)];
}

// === impl Top ===

impl Default for Top {
    fn default() -> Self {
        let now = Instant::now();
        Self {
            period: AtomicU32::new(1),
            state: Mutex::new(State {
                began: now,
                now: Window::default(),
                before: None,
                second: now,
                samples: 0,
                text: String::new(),
            }),
        }
    }
}

impl Top {
    /// Counts a request, or leaves it out of the sample.
    pub(super) fn count(&self, host: &str, address: IpAddr, outcome: &Outcome) {
        thread_local! {
            static REQUESTS: Cell<u32> = const { Cell::new(0) };
        }
        let period = self.period.load(Ordering::Relaxed);
        let count = REQUESTS.get().wrapping_add(1);
        REQUESTS.set(count);
        let is_sampled = count & (period - 1) == 0;
        let is_large = outcome.bytes >= LARGE_BYTES;
        if !is_sampled && !is_large {
            return;
        }
        let requests = if is_sampled { u64::from(period) } else { 0 };
        let bytes = match is_large {
            true => outcome.bytes,
            false => outcome.bytes.saturating_mul(u64::from(period)),
        };
        self.add(host, address, outcome, [requests, bytes]);
    }

    fn add(&self, host: &str, address: IpAddr, outcome: &Outcome, weights: [u64; 2]) {
        use std::fmt::Write as _;
        let mut state = self.lock();
        let State {
            now, text, samples, ..
        } = state.turn(Instant::now());
        *samples += 1;
        now.add(By::Host, host, weights);
        text.clear();
        // Writing to a text does not fail.
        let _written = write!(text, "{}", address.to_canonical());
        now.add(By::Address, text, weights);
        text.clear();
        let (route, end) = (outcome.route.as_str(), outcome.end.as_str());
        let _written = write!(text, "{route} {} {end}", outcome.status);
        now.add(By::Reason, text, weights);
        for (total, weight) in now.totals.iter_mut().zip(weights) {
            *total = total.saturating_add(weight);
        }
        state.choose_period(&self.period);
    }

    /// Returns a list, the heaviest entry first, as the body of `/top`.
    #[must_use]
    pub fn to_json(&self, by: By, of: Of, limit: usize) -> Value {
        let mut state = self.lock();
        let now = Instant::now();
        state.turn(now);
        let mut seconds = now.duration_since(state.began);
        let mut total = state.now.totals[of as usize];
        let mut merged = state.now.lists[by as usize][of as usize].entries.clone();
        if let Some((before, length)) = &state.before {
            seconds += *length;
            total = total.saturating_add(before.totals[of as usize]);
            for entry in &before.lists[by as usize][of as usize].entries {
                match merged.iter_mut().find(|known| known.name == entry.name) {
                    Some(known) => {
                        known.count = known.count.saturating_add(entry.count);
                        known.excess = known.excess.saturating_add(entry.excess);
                    }
                    None => merged.push(entry.clone()),
                }
            }
        }
        drop(state);
        merged.retain(|entry| entry.count > 0);
        merged.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        merged.truncate(limit);
        let entries = merged.iter().map(
            |entry| json!({ "name": entry.name, "count": entry.count, "excess_max": entry.excess }),
        );
        json!({
            "seconds": seconds.as_secs_f64(),
            "sampled_each": self.period.load(Ordering::Relaxed),
            "total": total,
            "entries": entries.collect::<Vec<_>>(),
        })
    }

    /// Every change leaves counts that are plausible, also after a panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    /// Begins a new window if the time of this one is over.
    fn turn(&mut self, now: Instant) -> &mut Self {
        let length = now.duration_since(self.began);
        if length >= WINDOW {
            let ended = std::mem::take(&mut self.now);
            // After a time without requests the window before says nothing.
            self.before = (length < 2 * WINDOW).then_some((ended, length));
            self.began = now;
        }
        self
    }

    fn choose_period(&mut self, period: &AtomicU32) {
        let now = Instant::now();
        let elapsed = now.duration_since(self.second);
        let chosen = period.load(Ordering::Relaxed);
        if self.samples > 2 * SAMPLES_PER_SECOND {
            period.store((chosen * 2).min(PERIOD_MAX), Ordering::Relaxed);
        } else if elapsed < Duration::from_secs(1) {
            return;
        } else if f64::from(self.samples)
            < f64::from(SAMPLES_PER_SECOND) / 2.0 * elapsed.as_secs_f64()
        {
            period.store((chosen / 2).max(1), Ordering::Relaxed);
        }
        self.second = now;
        self.samples = 0;
    }
}

// === impl Window ===

impl Window {
    fn add(&mut self, by: By, name: &str, weights: [u64; 2]) {
        let name = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
        for (list, weight) in self.lists[by as usize].iter_mut().zip(weights) {
            if weight > 0 {
                list.add(name, weight);
            }
        }
    }
}

// === impl List ===

impl List {
    fn add(&mut self, name: &str, weight: u64) {
        if let Some(&place) = self.places.get(name) {
            let entry = &mut self.entries[place];
            entry.count = entry.count.saturating_add(weight);
            return;
        }
        if self.entries.len() < ENTRIES_MAX {
            self.places.insert(name.into(), self.entries.len());
            self.entries.push(Entry {
                name: name.into(),
                count: weight,
                excess: 0,
            });
            return;
        }
        let least = self.entries.iter_mut().enumerate();
        let Some((place, least)) = least.min_by_key(|(_, entry)| entry.count) else {
            return;
        };
        self.places.remove(&least.name);
        self.places.insert(name.into(), place);
        *least = Entry {
            name: name.into(),
            excess: least.count,
            count: least.count.saturating_add(weight),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::ending::{End, Waits};
    use crate::telemetry::Route;

    fn outcome(bytes: u64) -> Outcome {
        Outcome {
            route: Route::FastPath,
            status: 200,
            bytes,
            took: Duration::ZERO,
            end: End::Complete,
            waits: Waits::default(),
            copy_age: None,
        }
    }

    fn names(list: &Value) -> Vec<&str> {
        let entries = list["entries"].as_array().unwrap().iter();
        entries
            .map(|entry| entry["name"].as_str().unwrap())
            .collect()
    }

    #[test]
    fn few_requests_are_counted_exactly() {
        let top = Top::default();
        let address = IpAddr::from([192, 0, 2, 1]);
        for _ in 0..7 {
            top.count("docs.acme.test", address, &outcome(10));
        }
        top.count("big.test", address, &outcome(5 << 20));
        let hosts = top.to_json(By::Host, Of::Requests, 10);
        assert_eq!(names(&hosts), ["docs.acme.test", "big.test"]);
        assert_eq!(hosts["entries"][0]["count"], 7);
        assert_eq!(
            (&hosts["total"], &hosts["sampled_each"]),
            (&8.into(), &1.into())
        );
        let bytes = top.to_json(By::Host, Of::Bytes, 1);
        assert_eq!(names(&bytes), ["big.test"]);
        let addresses = top.to_json(By::Address, Of::Requests, 10);
        assert_eq!(names(&addresses), ["192.0.2.1"]);
        let reasons = top.to_json(By::Reason, Of::Requests, 10);
        assert_eq!(names(&reasons), ["fast_path 200 complete"]);
    }

    #[test]
    fn a_heavy_host_is_found_among_any_number_of_others() {
        let mut list = List::default();
        for number in 0..100_000u32 {
            list.add(&format!("{number}.evil.test"), 1);
            if number % 20 == 0 {
                list.add("heavy.test", 1);
            }
        }
        assert_eq!(
            (list.entries.len(), list.places.len()),
            (ENTRIES_MAX, ENTRIES_MAX)
        );
        let heaviest = list.entries.iter().max_by_key(|entry| entry.count).unwrap();
        assert_eq!(&*heaviest.name, "heavy.test");
        let (count, excess) = (heaviest.count, heaviest.excess);
        assert!(count >= 5000 && count - excess <= 5000, "{count} {excess}");
        let long = "x".repeat(70_000);
        let mut window = Window::default();
        window.add(By::Host, &long, [1, 1]);
        assert_eq!(window.lists[0][0].entries[0].name.len(), NAME_BYTES_MAX);
    }

    #[test]
    fn many_requests_are_sampled_with_their_weight() {
        let top = Top::default();
        let address = IpAddr::from([192, 0, 2, 1]);
        let count = 200_000;
        for number in 0..count {
            let host = if number % 4 == 0 { "a.test" } else { "b.test" };
            // The thread counts each of them.
            top.count(host, address, &outcome(0));
        }
        assert!(top.period.load(Ordering::Relaxed) > 1);
        let hosts = top.to_json(By::Host, Of::Requests, 10);
        let total = hosts["total"].as_u64().unwrap();
        assert!((count / 2..count * 2).contains(&total), "{total}");
    }

    #[test]
    fn a_window_that_is_over_is_shown_once_more() {
        let mut state = State {
            began: Instant::now(),
            now: Window::default(),
            before: None,
            second: Instant::now(),
            samples: 0,
            text: String::new(),
        };
        state.now.add(By::Host, "a.test", [1, 0]);
        let began = state.began;
        state.turn(began + WINDOW);
        assert!(state.before.is_some() && state.now.lists[0][0].entries.is_empty());
        state.turn(began + WINDOW * 4);
        assert!(state.before.is_none());
    }
}
