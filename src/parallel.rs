//! Jobs that wait for the network or the disk, several at once on threads of their own.
//!
//! Jobs that need the processor run on the pool of rayon instead.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Calls `act` with each job, at most `threads` at once, and returns the results in the order of
/// the jobs. One job, or one thread, runs on the thread of the caller.
///
/// # Panics
///
/// With the panic of a job, after the other threads have ended.
pub fn map<J: Sync, T: Send>(jobs: &[J], threads: usize, act: impl Fn(&J) -> T + Sync) -> Vec<T> {
    let act = |job: &J| Ok::<T, std::convert::Infallible>(act(job));
    let Ok(results) = try_map(jobs, threads, act);
    results
}

/// Runs jobs that may fail, as [`map`] does. After an error or a panic no further job begins.
///
/// # Errors
///
/// The error of the first job, in their order, among those that failed.
///
/// # Panics
///
/// With the panic of a job, after the other threads have ended.
pub fn try_map<J: Sync, T: Send, E: Send>(
    jobs: &[J],
    threads: usize,
    act: impl Fn(&J) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let threads = threads.min(jobs.len());
    if threads <= 1 {
        return jobs.iter().map(act).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        let stop = Stop {
            next: &next,
            end: jobs.len(),
        };
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at) else {
                return done;
            };
            let result = act(job);
            if result.is_err() {
                stop.now();
            }
            done.push((at, result));
        }
    };
    let mut done: Vec<(usize, Result<T, E>)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        let parts = ended.into_iter().map(|ended| match ended {
            Ok(part) => part,
            Err(panic) => resume_unwind(panic),
        });
        parts.flatten().collect()
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Lets no further job begin, when it is told to or dropped by a panic.
struct Stop<'n> {
    next: &'n AtomicUsize,
    end: usize,
}

// === impl Stop ===

impl Stop<'_> {
    fn now(&self) {
        self.next.store(self.end, Ordering::Relaxed);
    }
}

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn results_have_the_order_of_the_jobs() {
        let jobs: Vec<usize> = (0..1000).collect();
        for threads in [0, 1, 3, 64, 5000] {
            let doubled = map(&jobs, threads, |job| job * 2);
            let expected: Vec<usize> = jobs.iter().map(|job| job * 2).collect();
            assert_eq!(doubled, expected, "{threads} threads");
        }
        assert_eq!(map::<u8, u8>(&[], 4, |job| *job), [0_u8; 0]);
    }

    #[test]
    fn as_many_jobs_run_at_once_as_there_are_threads() {
        // Each job waits until three others run.
        let barrier = Barrier::new(4);
        let leaders = map(&[(); 8], 4, |()| barrier.wait().is_leader());
        assert_eq!(leaders.iter().filter(|leads| **leads).count(), 2);
    }

    #[test]
    fn one_job_runs_on_the_thread_of_the_caller() {
        let here = thread::current().id();
        assert_eq!(map(&[()], 4, |()| thread::current().id()), [here]);
        assert_eq!(map(&[(); 2], 1, |()| thread::current().id()), [here; 2]);
    }

    #[test]
    fn an_error_is_returned_and_no_further_job_begins() {
        let jobs: Vec<usize> = (0..100).collect();
        for threads in [1, 2] {
            let begun = AtomicUsize::new(0);
            let result: Result<Vec<()>, &str> = try_map(&jobs, threads, |job| {
                begun.fetch_add(1, Ordering::Relaxed);
                match *job {
                    0 => Err("job 0"),
                    _ => Err("another job"),
                }
            });
            assert_eq!(result, Err("job 0"), "{threads} threads");
            assert!(begun.into_inner() <= threads);
        }
    }

    #[test]
    fn a_panic_of_a_job_reaches_the_caller_with_its_message() {
        for jobs in [&[7, 7][..], &[1, 2, 3, 4, 5, 6, 7, 8]] {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                map(jobs, 3, |job| assert!(*job != 7, "job seven"));
            }));
            let panic = caught.unwrap_err();
            assert_eq!(panic.downcast_ref::<&str>(), Some(&"job seven"));
        }
    }

    #[test]
    fn a_panic_is_not_lost_behind_an_error() {
        let barrier = Barrier::new(2);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            try_map(&[false, true], 2, |panics| {
                barrier.wait();
                assert!(!panics, "the second job");
                Err::<(), _>("the first job")
            })
        }));
        assert!(caught.is_err());
    }
}
