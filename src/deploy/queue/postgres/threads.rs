//! The threads that own the connections: one changes the order of the queue, and a few are for
//! everything else.
//!
//! Callers that change the queue at the same time share one transaction, as with SQLite: a commit
//! costs a write to the disk of the server and perhaps of a standby. The transaction of a batch is
//! undone if one of its operations fails, and each runs alone then.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::super::Timestamp;
use super::super::QueueError;
use super::Server;
use super::WRITE;
use crate::database::{Link, Repeat, Session};
use crate::deploy::lower_priority;
use crate::telemetry::panics;

/// The most operations in one transaction.
const BATCH_MAX: usize = 256;
/// How many operations may wait before submitting blocks.
const WAITING_MAX: usize = 4096;

/// Something that a thread does with its session.
type Job = Box<dyn FnOnce(&mut Session) + Send>;

/// The threads. They end when this is dropped and all they were given is done.
pub(super) struct Threads {
    operations: SyncSender<Box<dyn Operation>>,
    jobs: SyncSender<Job>,
}

/// An operation, and the caller that waits for it.
trait Operation: Send {
    /// Runs in a transaction, perhaps several times. Returns whether the transaction may go on.
    fn run(&mut self, link: &Link, now: Timestamp) -> Result<(), QueueError>;
    fn repeat(&self) -> Repeat;
    /// Replies to the caller, after the commit or after its failure.
    fn reply(self: Box<Self>, committed: Result<(), QueueError>);
}

struct Call<F, R, T> {
    act: F,
    repeat: Repeat,
    result: Option<Result<T, QueueError>>,
    reply: R,
}

/// The thread has ended, because the process is ending.
#[derive(Debug, thiserror::Error)]
#[error("the connections to the database have ended")]
struct ThreadEnded;

// === impl Threads ===

impl Threads {
    /// Starts the threads. Each connects when it is first needed.
    pub(super) fn start(server: &Arc<Server>) -> std::io::Result<Self> {
        let (operations, waiting) = sync_channel(WAITING_MAX);
        let (jobs, waiting_jobs) = sync_channel::<Job>(WAITING_MAX);
        let writer = Arc::clone(server);
        panics::essential_thread("queue-writer", move || {
            lower_priority();
            write(&writer, &waiting);
        })?;
        let waiting_jobs = Arc::new(Mutex::new(waiting_jobs));
        for _ in 1..server.config.connections_max {
            let (server, jobs) = (Arc::clone(server), Arc::clone(&waiting_jobs));
            panics::essential_thread("queue-rows", move || {
                lower_priority();
                let mut session = session(&server);
                loop {
                    let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(job) = job else {
                        return;
                    };
                    job(&mut session);
                }
            })?;
        }
        Ok(Self { operations, jobs })
    }

    /// Runs a transaction of its own, on any connection but the writer's.
    pub(super) fn call<T: Send + 'static>(
        &self,
        begin: &'static str,
        mut act: impl FnMut(&Link, Timestamp) -> Result<T, QueueError> + Send + 'static,
    ) -> Result<T, QueueError> {
        let (caller, reply) = sync_channel(1);
        let job: Job = Box::new(move |session| {
            // A caller that has stopped waiting needs no reply.
            let _gone = caller.send(session.transact(begin, Repeat::Always, &mut |link, now| {
                act(link, Timestamp::from_millis(now))
            }));
        });
        let sent = self.jobs.send(job);
        sent.map_err(|_ended| QueueError::unavailable(ThreadEnded))?;
        reply
            .recv()
            .unwrap_or_else(|_ended| Err(QueueError::unavailable(ThreadEnded)))
    }

    /// Has the writer run an operation, and replies once it is committed.
    pub(super) fn submit<T: Send + 'static>(
        &self,
        repeat: Repeat,
        act: impl FnMut(&Link, Timestamp) -> Result<T, QueueError> + Send + 'static,
        reply: impl FnOnce(Result<T, QueueError>) + Send + 'static,
    ) -> Result<(), QueueError> {
        let call = Call {
            act,
            repeat,
            result: None,
            reply,
        };
        let sent = self.operations.send(Box::new(call));
        sent.map_err(|_ended| QueueError::unavailable(ThreadEnded))
    }

    /// Does the same and waits.
    pub(super) fn write<T: Send + 'static>(
        &self,
        repeat: Repeat,
        act: impl FnMut(&Link, Timestamp) -> Result<T, QueueError> + Send + 'static,
    ) -> Result<T, QueueError> {
        let (caller, reply) = sync_channel(1);
        self.submit(repeat, act, move |result| drop(caller.send(result)))?;
        reply
            .recv()
            .unwrap_or_else(|_ended| Err(QueueError::unavailable(ThreadEnded)))
    }

    /// Does the same without blocking a thread.
    pub(super) async fn write_soon<T: Send + 'static>(
        &self,
        act: impl FnMut(&Link, Timestamp) -> Result<T, QueueError> + Send + 'static,
    ) -> Result<T, QueueError> {
        let (caller, reply) = tokio::sync::oneshot::channel();
        self.submit(Repeat::Always, act, move |result| drop(caller.send(result)))?;
        reply
            .await
            .unwrap_or_else(|_ended| Err(QueueError::unavailable(ThreadEnded)))
    }
}

// === impl Call ===

impl<F, R, T> Operation for Call<F, R, T>
where
    F: FnMut(&Link, Timestamp) -> Result<T, QueueError> + Send,
    R: FnOnce(Result<T, QueueError>) + Send,
    T: Send,
{
    fn run(&mut self, link: &Link, now: Timestamp) -> Result<(), QueueError> {
        let result = (self.act)(link, now);
        let failed = match &result {
            // These are found before anything is written.
            Ok(_) | Err(QueueError::Full { .. } | QueueError::KeyReused) => Ok(()),
            Err(error) => Err(error.clone()),
        };
        self.result = Some(result);
        failed
    }

    fn repeat(&self) -> Repeat {
        self.repeat
    }

    fn reply(self: Box<Self>, committed: Result<(), QueueError>) {
        let result = match (self.result, committed) {
            (_, Err(error)) => Err(error),
            (Some(result), Ok(())) => result,
            (None, Ok(())) => Err(QueueError::unavailable(ThreadEnded)),
        };
        (self.reply)(result);
    }
}

fn session(server: &Arc<Server>) -> Session {
    Session::new(Arc::<Server>::clone(server))
}

fn write(server: &Arc<Server>, waiting: &Receiver<Box<dyn Operation>>) {
    let mut session = session(server);
    while let Ok(first) = waiting.recv() {
        let mut batch = vec![first];
        batch.extend(waiting.try_iter().take(BATCH_MAX - 1));
        let repeat = match batch.iter().all(|one| one.repeat() == Repeat::Always) {
            true => Repeat::Always,
            false => Repeat::BeforeCommit,
        };
        server.restore(&mut session);
        let mut has_failed = false;
        let committed = session.transact(WRITE, repeat, &mut |link, now| {
            has_failed = false;
            let now = Timestamp::from_millis(now);
            let mut run = batch.iter_mut().map(|operation| operation.run(link, now));
            let ran = run.try_for_each(|ran| ran);
            has_failed = ran.is_err();
            ran
        });
        // An outage is the same for each of them; the failure of one is not.
        let is_of_one = has_failed && batch.len() > 1 && session.is_connected();
        for mut operation in batch {
            let committed = match is_of_one {
                true => session.transact(WRITE, operation.repeat(), &mut |link, now| {
                    operation.run(link, Timestamp::from_millis(now))
                }),
                false => committed.clone(),
            };
            operation.reply(committed);
        }
    }
}
