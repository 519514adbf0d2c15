//! Gives freed memory back to the system.
//!
//! The allocator returns memory only while threads allocate. After many connections have closed, an
//! idle process allocates nothing. Without this work it would keep their memory, which counts
//! against its bound.
//!
//! Each thread has pages of its own. What another thread frees of them is found only by the thread
//! that they belong to. So every thread that serves connections gives back its own pages, and one
//! more thread gives back the pages that belong to nobody.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::telemetry::panics;

/// How often freed memory is given back.
const INTERVAL: Duration = Duration::from_secs(5);
/// How often the tasks of one interval run until every thread has run one of them. The runtime
/// decides which thread runs a task, so one run may leave out a thread.
const RUNS_MAX: u32 = 20;
/// How long the tasks wait before they run again.
const PAUSE: Duration = Duration::from_millis(10);

thread_local! {
    /// The last interval in which this thread has given back its pages.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

/// What the tasks of one runtime share.
#[derive(Debug, Default)]
struct Round {
    interval: AtomicU64,
    /// How many threads have given back their pages in this interval.
    threads: AtomicUsize,
}

/// Starts the thread. It is never joined: it can be stopped at any point.
///
/// # Errors
///
/// When the system starts no more threads.
pub(super) fn start() -> std::io::Result<()> {
    let work = || loop {
        std::thread::sleep(INTERVAL);
        give_back();
    };
    panics::essential_thread("freed-memory", work).map(drop)
}

/// Lets every thread of the current runtime give back its own pages, until the runtime stops.
pub(super) async fn watch_threads() {
    let threads = Handle::current().metrics().num_workers();
    let round = Arc::new(Round::default());
    loop {
        tokio::time::sleep(INTERVAL).await;
        round.threads.store(0, Ordering::Relaxed);
        round.interval.fetch_add(1, Ordering::Relaxed);
        for _ in 0..RUNS_MAX {
            for _ in 0..threads {
                let round = Arc::clone(&round);
                drop(tokio::spawn(async move { round.collect() }));
            }
            tokio::time::sleep(PAUSE).await;
            if round.threads.load(Ordering::Relaxed) >= threads {
                break;
            }
        }
    }
}

// === impl Round ===

impl Round {
    /// Gives back the pages of this thread, once in each interval.
    fn collect(&self) {
        let interval = self.interval.load(Ordering::Relaxed);
        if LAST.replace(interval) != interval {
            give_back();
            self.threads.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[expect(
    unsafe_code,
    reason = "a function of the allocator, which is written in C"
)]
fn give_back() {
    // SAFETY: it takes no pointer, and any thread may call it at any time.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_gives_back_its_pages_once_in_each_interval() {
        let round = Round::default();
        round.interval.store(7, Ordering::Relaxed);
        round.collect();
        round.collect();
        assert_eq!(round.threads.load(Ordering::Relaxed), 1);
        std::thread::scope(|scope| scope.spawn(|| round.collect()).join().unwrap());
        assert_eq!(round.threads.load(Ordering::Relaxed), 2);
        round.interval.store(8, Ordering::Relaxed);
        round.collect();
        assert_eq!(round.threads.load(Ordering::Relaxed), 3);
    }
}
