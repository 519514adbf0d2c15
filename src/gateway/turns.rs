//! Searches take turns: only as many run at once as the machine has processors.
//!
//! A search computes most of its time, so more of them at once would only delay each other. The
//! thread that has finished a search takes the next one that waits, without going to sleep between:
//! to wake a thread takes as long as a part of a search.
//!
//! The clients take turns too: a search waits for the running ones, and for at most one search of
//! each other client. So a client that searches without end does not delay the others.
//!
//! Calls of MCP tools take turns in the same way, apart from the searches.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use tokio::sync::oneshot;

/// How many searches run at once, if the machine has fewer processors.
const RUNNING_MIN: usize = 2;
/// How many calls of MCP tools run at once. One call works for up to a quarter of a second.
const TOOLS_MAX: usize = 4;

/// Runs searches, or calls of tools: those of one client in the order in which they came.
#[derive(Clone, Debug)]
pub(super) struct Turns(Arc<State>);

#[derive(Debug)]
struct State {
    running_max: usize,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// The jobs of each client that wait.
    waiting: HashMap<IpAddr, VecDeque<Job>>,
    /// The clients of these jobs; the first one is next.
    clients: VecDeque<IpAddr>,
    /// How many threads take jobs.
    threads: usize,
}

type Job = Box<dyn FnOnce() + Send>;

// === impl Turns ===

impl Turns {
    /// Makes the turns of searches.
    pub(super) fn of_searches() -> Self {
        let processors = available_parallelism().map_or(1, NonZero::get);
        Self::new(processors.max(RUNNING_MIN))
    }

    /// Makes the turns of calls of MCP tools.
    pub(super) fn of_tools() -> Self {
        Self::new(TOOLS_MAX)
    }

    fn new(running_max: usize) -> Self {
        Self(Arc::new(State {
            running_max,
            queue: Mutex::default(),
        }))
    }

    /// Runs a function for a client on a thread that may block. Returns `None` if it panics. A
    /// function whose result nobody awaits any more is not begun.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        client: IpAddr,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        let job = move || {
            if !sender.is_closed() {
                let _nobody_awaits_it = sender.send(work());
            }
        };
        if self.0.add(client, Box::new(job)) {
            let state = Arc::clone(&self.0);
            tokio::task::spawn_blocking(move || state.work());
        }
        receiver.await.ok()
    }
}

// === impl State ===

impl State {
    /// Adds a job. Returns whether a further thread has to take jobs.
    fn add(&self, client: IpAddr, job: Job) -> bool {
        let mut queue = self.queue();
        queue.add(client, job);
        let has_turn = queue.threads < self.running_max;
        queue.threads += usize::from(has_turn);
        has_turn
    }

    /// Runs jobs until none waits.
    fn work(&self) {
        while let Some(job) = self.next() {
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                log::error!(target: "gateway", "a search or a call of a tool ended without an answer");
            }
            // The threads that read requests and send answers may wait for this processor. The
            // scheduler would let them wait for a time slice, which is ten searches long.
            std::thread::yield_now();
        }
    }

    fn next(&self) -> Option<Job> {
        let mut queue = self.queue();
        let job = queue.take();
        queue.threads -= usize::from(job.is_none());
        job
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Queue ===

impl Queue {
    fn add(&mut self, client: IpAddr, job: Job) {
        let jobs = self.waiting.entry(client).or_default();
        if jobs.is_empty() {
            self.clients.push_back(client);
        }
        jobs.push_back(job);
    }

    /// Takes the next job of the client that is next.
    fn take(&mut self) -> Option<Job> {
        let client = self.clients.pop_front()?;
        let jobs = self.waiting.get_mut(&client)?;
        let job = jobs.pop_front();
        match jobs.is_empty() {
            true => drop(self.waiting.remove(&client)),
            false => self.clients.push_back(client),
        }
        job
    }

    fn len(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue")
            .field("waiting", &self.len())
            .field("threads", &self.threads)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::task::JoinSet;

    use super::*;

    /// A client.
    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    #[tokio::test]
    async fn all_searches_run_and_few_at_once() {
        let turns = Turns::of_searches();
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut asked = JoinSet::new();
        for nth in 0..100 {
            let (turns, now, most) = (turns.clone(), Arc::clone(&now), Arc::clone(&most));
            asked.spawn(async move {
                let search = move || {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    now.fetch_sub(1, Ordering::SeqCst);
                    nth
                };
                turns.run(ONE, search).await
            });
        }
        let mut found: Vec<_> = asked.join_all().await.into_iter().flatten().collect();
        found.sort_unstable();
        assert_eq!(found, (0..100).collect::<Vec<_>>());
        assert!(most.load(Ordering::SeqCst) <= turns.0.running_max);
        let queue = turns.0.queue();
        assert!(queue.len() == 0 && queue.clients.is_empty(), "{queue:?}");
    }

    #[tokio::test]
    async fn after_a_panic_the_next_search_runs() {
        let turns = Turns::of_searches();
        for _ in 0..2 * turns.0.running_max {
            assert_eq!(
                turns.run(ONE, || panic!("a search that panics")).await,
                None::<()>
            );
        }
        assert_eq!(turns.run(ONE, || 1).await, Some(1));
    }

    #[tokio::test]
    async fn a_search_that_nobody_awaits_is_not_begun() {
        let turns = Turns::new(1);
        let (go_on, waits) = std::sync::mpsc::channel::<()>();
        let first = tokio::spawn({
            let turns = turns.clone();
            async move { turns.run(ONE, move || waits.recv().is_ok()).await }
        });
        let begun = Arc::new(AtomicUsize::new(0));
        let second = tokio::spawn({
            let (turns, begun) = (turns.clone(), Arc::clone(&begun));
            async move {
                turns
                    .run(ONE, move || begun.fetch_add(1, Ordering::SeqCst))
                    .await
            }
        });
        let has_begun_one = |queue: &Queue| queue.threads == 1 && queue.len() == 1;
        while !has_begun_one(&turns.0.queue()) {
            tokio::task::yield_now().await;
        }
        second.abort();
        assert!(second.await.unwrap_err().is_cancelled());
        go_on.send(()).unwrap();
        assert_eq!(first.await.unwrap(), Some(true));
        assert_eq!(turns.run(ONE, || 1).await, Some(1));
        assert_eq!(begun.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn a_client_with_many_searches_delays_another_client_by_one() {
        let turns = Turns::new(1);
        let order = Arc::new(Mutex::new(Vec::new()));
        let (go_on, waits) = std::sync::mpsc::channel::<()>();
        let mut asked = JoinSet::new();
        asked.spawn({
            let turns = turns.clone();
            async move { turns.run(ONE, move || waits.recv().is_ok()).await.map(drop) }
        });
        // The first search runs, and all others wait.
        while turns.0.queue().threads == 0 || turns.0.queue().len() > 0 {
            tokio::task::yield_now().await;
        }
        for (client, count, all) in [(ONE, 50, 50), (OTHER, 2, 52)] {
            for _ in 0..count {
                let (turns, order) = (turns.clone(), Arc::clone(&order));
                let search = move || order.lock().unwrap().push(client);
                asked.spawn(async move { turns.run(client, search).await });
            }
            while turns.0.queue().len() < all {
                tokio::task::yield_now().await;
            }
        }
        go_on.send(()).unwrap();
        assert_eq!(asked.join_all().await.len(), 53);
        let order = order.lock().unwrap();
        assert_eq!(order[..4], [ONE, OTHER, ONE, OTHER]);
    }
}
