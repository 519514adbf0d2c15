//! Limits how often the same line is logged, and says how many lines were left out.
//!
//! Clients must not be able to fill a disk with log lines. Warnings and errors of one place in
//! the source are one kind. In an interval, each kind may be logged a number of times; further
//! lines of it are counted, and at the end of the interval one line has the number:
//!
//! ```text
//! … 28402 more lines like this were left out in the last 30 seconds: accept: Too many open files
//! ```
//!
//! The number of kinds is the number of places in the source, so the table stays small. An
//! interval begins with the first line of its kind.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use log::{Level, Log, Metadata, Record};

/// How often the same line may be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Limit {
    /// How many lines of one kind are logged in an interval; 0 means no limit.
    pub lines: u32,
    /// The interval.
    pub interval: Duration,
}

/// A logger that passes lines on to another one, within the limit.
pub(super) struct Limited<L>(Arc<Shared<L>>);

struct Shared<L> {
    inner: L,
    limit: Limit,
    kinds: Mutex<Kinds>,
    /// Notified when the first line of an interval was left out.
    left_out: Condvar,
}

#[derive(Default)]
struct Kinds {
    by_place: HashMap<CallSite, Kind>,
    /// Whether the thread that writes summaries runs.
    has_thread: bool,
}

/// A place in the source that logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CallSite {
    file: &'static str,
    line: u32,
    level: Level,
}

/// The lines of one place in the current interval.
struct Kind {
    began: Instant,
    logged: u32,
    left_out: u64,
    target: String,
    /// The last line that was logged.
    example: String,
}

/// A line with the number of lines that were left out.
#[derive(Debug, PartialEq, Eq)]
struct Summary {
    level: Level,
    target: String,
    left_out: u64,
    example: String,
}

/// The decision about a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Logged,
    /// Logged, and the last one of its interval.
    LoggedLast,
    LeftOut,
}

// === impl Limit ===

impl Default for Limit {
    fn default() -> Self {
        Self {
            lines: 30,
            interval: Duration::from_secs(30),
        }
    }
}

// === impl Limited ===

impl<L: Log + 'static> Limited<L> {
    pub(super) fn new(inner: L, limit: Limit) -> Self {
        Self(Arc::new(Shared {
            inner,
            limit,
            kinds: Mutex::default(),
            left_out: Condvar::new(),
        }))
    }
}

impl<L: Log + 'static> Log for Limited<L> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.0.inner.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        let shared = &self.0;
        if record.level() > Level::Warn || shared.limit.lines == 0 {
            return shared.inner.log(record);
        }
        if !shared.inner.enabled(record.metadata()) {
            return;
        }
        let now = Instant::now();
        let mut kinds = shared.lock();
        let place = CallSite::of(record);
        let (decision, summary) = kinds.take(place, shared.limit, now);
        if decision == Decision::LeftOut && !kinds.has_thread {
            kinds.has_thread = true;
            let shared = Arc::clone(shared);
            let thread = std::thread::Builder::new().name("log-summary".to_owned());
            // Without the thread, the summary is logged before the next line of its kind.
            let _none_left = thread.spawn(move || shared.summarise());
        }
        drop(kinds);
        if decision == Decision::LeftOut {
            shared.left_out.notify_one();
        }
        if let Some(summary) = summary {
            summary.log(&shared.inner, shared.limit.interval);
        }
        if decision == Decision::LoggedLast {
            // Formatted without the lock: formatting may log, or panic, and a panic is logged.
            let (target, example) = (record.target().to_owned(), record.args().to_string());
            if let Some(kind) = shared.lock().by_place.get_mut(&place) {
                (kind.target, kind.example) = (target, example);
            }
        }
        if decision != Decision::LeftOut {
            shared.inner.log(record);
        }
    }

    fn flush(&self) {
        let summaries = self.0.lock().ended(None);
        for summary in summaries {
            summary.log(&self.0.inner, self.0.limit.interval);
        }
        self.0.inner.flush();
    }
}

impl<L: Log> Shared<L> {
    /// Every change is a number or a text, so the table is whole after a panic too.
    fn lock(&self) -> MutexGuard<'_, Kinds> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs the summaries at the end of their intervals. It never returns.
    fn summarise(&self) {
        let mut kinds = self.lock();
        loop {
            let now = Instant::now();
            let summaries = kinds.ended(Some((now, self.limit.interval)));
            if !summaries.is_empty() {
                drop(kinds);
                for summary in summaries {
                    summary.log(&self.inner, self.limit.interval);
                }
                kinds = self.lock();
                continue;
            }
            kinds = match kinds.next_end(self.limit.interval) {
                Some(end) => {
                    let wait = end.saturating_duration_since(now);
                    let waited = self.left_out.wait_timeout(kinds, wait);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.left_out.wait(kinds);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }
}

// === impl Place ===

impl CallSite {
    fn of(record: &Record<'_>) -> Self {
        Self {
            file: record.file_static().unwrap_or_default(),
            line: record.line().unwrap_or_default(),
            level: record.level(),
        }
    }
}

// === impl Kinds ===

impl Kinds {
    /// Counts a line, and decides whether it is logged. A summary is logged before it.
    fn take(&mut self, place: CallSite, limit: Limit, now: Instant) -> (Decision, Option<Summary>) {
        let kind = self.by_place.entry(place).or_insert_with(|| Kind {
            began: now,
            logged: 0,
            left_out: 0,
            target: String::new(),
            example: String::new(),
        });
        let mut summary = None;
        if now.saturating_duration_since(kind.began) >= limit.interval {
            summary = kind.end(place.level);
            kind.began = now;
            kind.logged = 0;
        }
        if kind.logged >= limit.lines {
            kind.left_out += 1;
            return (Decision::LeftOut, summary);
        }
        kind.logged += 1;
        let decision = if kind.logged == limit.lines {
            Decision::LoggedLast
        } else {
            Decision::Logged
        };
        (decision, summary)
    }

    /// Ends the intervals that are over, or all of them, and returns what they left out.
    fn ended(&mut self, over: Option<(Instant, Duration)>) -> Vec<Summary> {
        let is_over = |kind: &Kind| {
            over.is_none_or(|(now, interval)| now.saturating_duration_since(kind.began) >= interval)
        };
        self.by_place
            .iter_mut()
            .filter(|(_, kind)| kind.left_out > 0 && is_over(kind))
            .filter_map(|(place, kind)| kind.end(place.level))
            .collect()
    }

    /// Returns when the first interval ends that has left a line out.
    fn next_end(&self, interval: Duration) -> Option<Instant> {
        let kinds = self.by_place.values().filter(|kind| kind.left_out > 0);
        kinds.map(|kind| kind.began + interval).min()
    }
}

// === impl Kind ===

impl Kind {
    fn end(&mut self, level: Level) -> Option<Summary> {
        let left_out = std::mem::take(&mut self.left_out);
        (left_out > 0).then(|| Summary {
            level,
            target: self.target.clone(),
            left_out,
            example: self.example.clone(),
        })
    }
}

// === impl Summary ===

impl Summary {
    fn log(&self, inner: &impl Log, interval: Duration) {
        let Self {
            level,
            target,
            left_out,
            example,
        } = self;
        let seconds = interval.as_secs();
        let pairs = [("left_out", log::kv::Value::from(*left_out))];
        inner.log(
            &Record::builder()
                .level(*level)
                .target(target)
                .key_values(&pairs)
                .args(format_args!(
                    "… {left_out} more lines like this were left out in the last {seconds} \
                     seconds: {example}"
                ))
                .build(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<(Mutex<Vec<String>>, Condvar)>);

    impl Log for Lines {
        fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
            true
        }

        fn log(&self, record: &Record<'_>) {
            let line = format!("{} {}", record.level(), record.args());
            self.0.0.lock().unwrap().push(line);
            self.0.1.notify_all();
        }

        fn flush(&self) {}
    }

    impl Lines {
        fn all(&self) -> Vec<String> {
            self.0.0.lock().unwrap().clone()
        }
    }

    fn limited(lines: u32, interval: Duration) -> (Lines, Limited<Lines>) {
        let kept = Lines::default();
        let limit = Limit { lines, interval };
        (kept.clone(), Limited::new(kept, limit))
    }

    fn log_at(log: &impl Log, line: u32, level: Level, text: &str) {
        log.log(
            &Record::builder()
                .file_static(Some("src/x.rs"))
                .line(Some(line))
                .level(level)
                .args(format_args!("{text}"))
                .build(),
        );
    }

    #[test]
    fn a_repeated_line_is_left_out_and_others_are_not() {
        let (kept, log) = limited(2, Duration::from_secs(3600));
        for n in 0..100 {
            log_at(&log, 1, Level::Warn, &format!("accept {n}"));
            log_at(&log, 2, Level::Info, "an event");
        }
        log_at(&log, 3, Level::Error, "another place");
        let lines = kept.all();
        let of = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
        assert_eq!((of("accept"), of("an event"), of("another")), (2, 100, 1));
        log.flush();
        assert_eq!(
            kept.all().last().unwrap(),
            "WARN … 98 more lines like this were left out in the last 3600 seconds: accept 1"
        );
    }

    #[test]
    fn the_end_of_the_interval_logs_the_number() {
        let (kept, log) = limited(1, Duration::from_millis(20));
        for _ in 0..10 {
            log_at(&log, 1, Level::Error, "no descriptor");
        }
        let reported = |lines: &Vec<String>| {
            let number = |line: &String| {
                let rest = line.strip_prefix("ERROR … ")?;
                rest.split(' ').next()?.parse::<u32>().ok()
            };
            let left_out: u32 = lines.iter().filter_map(number).sum();
            let logged = lines.iter().filter(|line| *line == "ERROR no descriptor");
            left_out + u32::try_from(logged.count()).unwrap()
        };
        let lines = kept.0.0.lock().unwrap();
        let waited = kept
            .0
            .1
            .wait_timeout_while(lines, Duration::from_secs(20), |lines| reported(lines) < 10);
        assert_eq!(reported(&waited.unwrap().0), 10);
    }

    #[test]
    fn without_a_limit_every_line_is_logged() {
        let (kept, log) = limited(0, Duration::from_secs(1));
        for _ in 0..100 {
            log_at(&log, 1, Level::Warn, "x");
        }
        assert_eq!(kept.all().len(), 100);
    }
}
