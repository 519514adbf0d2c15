//! Gives freed memory back to the system.
//!
//! The allocator returns memory only while threads allocate. After many connections have closed, an
//! idle process allocates nothing. Without this work it would keep their memory, which counts
//! against its bound.
//!
//! Each thread has pages of its own, and only that thread can return them, also if another thread
//! freed the memory in them. So every thread that serves connections returns its own pages. The
//! thread that [`start`] starts returns the pages of threads that have ended.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    for interval in 1.. {
        tokio::time::sleep(INTERVAL).await;
        let done = Arc::new(AtomicUsize::new(0));
        for _ in 0..RUNS_MAX {
            for _ in 0..threads {
                let done = Arc::clone(&done);
                drop(tokio::spawn(async move { collect(interval, &done) }));
            }
            tokio::time::sleep(PAUSE).await;
            if done.load(Ordering::Relaxed) >= threads {
                break;
            }
        }
    }
}

/// Gives back the pages of this thread, once in each interval. `done` counts the threads that have
/// done so in this interval.
fn collect(interval: u64, done: &AtomicUsize) {
    if LAST.replace(interval) != interval {
        give_back();
        done.fetch_add(1, Ordering::Relaxed);
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
        let done = AtomicUsize::new(0);
        collect(7, &done);
        collect(7, &done);
        assert_eq!(done.load(Ordering::Relaxed), 1);
        std::thread::scope(|scope| scope.spawn(|| collect(7, &done)).join().unwrap());
        assert_eq!(done.load(Ordering::Relaxed), 2);
        collect(8, &done);
        assert_eq!(done.load(Ordering::Relaxed), 3);
    }
}
