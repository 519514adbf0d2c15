//! The thread that writes; callers that write at the same time share one `fsync`.
//!
//! A commit costs one `fsync`, independent of its size. The writer takes all waiting operations,
//! runs each in its own savepoint, commits once, and only then replies to the callers. An
//! operation that fails is rolled back alone. When the commit fails, all its operations fail, and
//! none was acknowledged.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::super::QueueError;
use crate::deploy::lower_priority;
use crate::telemetry::panics;

/// The most operations in one commit. For so many operations, the cost of another `fsync` is small.
const BATCH_MAX: usize = 512;
/// How many operations may wait before submitting blocks: more than the API lets wait, so that
/// submitting never blocks an async thread.
const WAITING_MAX: usize = 4096;

/// The thread that owns the writing connection.
#[derive(Debug)]
pub(super) struct Writer {
    /// `None` once the writer is to end.
    operations: Option<SyncSender<Box<dyn Operation>>>,
    thread: Option<JoinHandle<()>>,
}

/// An operation, and the caller that waits for it.
trait Operation: Send {
    /// Runs inside a savepoint. Returns `false` to have the savepoint rolled back.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Replies to the caller, after the commit or after its failure.
    fn reply(self: Box<Self>, committed: Result<(), QueueError>);
}

struct Call<F, R, T> {
    act: Option<F>,
    result: Option<Result<T, QueueError>>,
    reply: R,
}

/// The writer has ended, because the process is ending.
#[derive(Debug, thiserror::Error)]
#[error("the writer has ended")]
struct WriterEnded;

/// SQLite rolled the whole transaction back, as it does when the disk is full.
#[derive(Debug, thiserror::Error)]
#[error("the transaction was rolled back")]
struct RolledBack;

// === impl Writer ===

impl Writer {
    pub(super) fn start(connection: Connection) -> std::io::Result<Self> {
        let (operations, waiting) = sync_channel(WAITING_MAX);
        let thread = panics::essential_thread("queue-writer", move || {
            lower_priority();
            write(&connection, &waiting);
        })?;
        Ok(Self {
            operations: Some(operations),
            thread: Some(thread),
        })
    }

    /// Runs `act` and returns once what it wrote is on disk.
    pub(super) fn call<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Connection) -> Result<T, QueueError> + Send + 'static,
    ) -> Result<T, QueueError> {
        let (caller, reply) = sync_channel(1);
        // A caller that has stopped waiting needs no reply.
        self.submit(act, move |result| drop(caller.send(result)))?;
        reply
            .recv()
            .unwrap_or_else(|_| Err(QueueError::unavailable(WriterEnded)))
    }

    /// Does the same without blocking a thread.
    pub(super) async fn call_soon<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Connection) -> Result<T, QueueError> + Send + 'static,
    ) -> Result<T, QueueError> {
        let (caller, reply) = oneshot::channel();
        self.submit(act, move |result| drop(caller.send(result)))?;
        reply
            .await
            .unwrap_or_else(|_| Err(QueueError::unavailable(WriterEnded)))
    }

    fn submit<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Connection) -> Result<T, QueueError> + Send + 'static,
        reply: impl FnOnce(Result<T, QueueError>) + Send + 'static,
    ) -> Result<(), QueueError> {
        let call = Call {
            act: Some(act),
            result: None,
            reply,
        };
        self.operations
            .as_ref()
            .and_then(|operations| operations.send(Box::new(call)).ok())
            .ok_or_else(|| QueueError::unavailable(WriterEnded))
    }
}

impl Drop for Writer {
    /// Waits until all submitted operations are written.
    fn drop(&mut self) {
        self.operations = None;
        // A panic in it ends the process.
        let _joined = self.thread.take().map(JoinHandle::join);
    }
}

// === impl Call ===

impl<F, R, T> Operation for Call<F, R, T>
where
    F: FnOnce(&Connection) -> Result<T, QueueError> + Send,
    R: FnOnce(Result<T, QueueError>) + Send,
    T: Send,
{
    fn run(&mut self, connection: &Connection) -> bool {
        let result = self.act.take().map(|act| act(connection));
        let keep = matches!(result, Some(Ok(_)));
        self.result = result;
        keep
    }

    fn reply(self: Box<Self>, committed: Result<(), QueueError>) {
        let result = match (self.result, committed) {
            // The error of the operation says more than the error of the transaction.
            (Some(Err(error)), _) | (_, Err(error)) => Err(error),
            (Some(result), Ok(())) => result,
            (None, Ok(())) => Err(QueueError::unavailable(RolledBack)),
        };
        (self.reply)(result);
    }
}

fn write(connection: &Connection, waiting: &Receiver<Box<dyn Operation>>) {
    while let Ok(first) = waiting.recv() {
        let mut batch = vec![first];
        batch.extend(waiting.try_iter().take(BATCH_MAX - 1));
        let committed = commit(connection, &mut batch);
        for operation in batch {
            operation.reply(committed.clone());
        }
    }
}

/// Runs the batch in one transaction.
fn commit(connection: &Connection, batch: &mut [Box<dyn Operation>]) -> Result<(), QueueError> {
    let result = execute(connection, "BEGIN IMMEDIATE").and_then(|()| {
        for operation in batch {
            run(connection, operation.as_mut())?;
        }
        execute(connection, "COMMIT")
    });
    if result.is_err() && !connection.is_autocommit() {
        // No operation of it was acknowledged, so none may be stored.
        if let Err(error) = execute(connection, "ROLLBACK") {
            log::error!(target: "deploy", "the queue cannot roll back: {error}");
        }
    }
    result
}

fn run(connection: &Connection, operation: &mut dyn Operation) -> Result<(), QueueError> {
    execute(connection, "SAVEPOINT operation")?;
    let keep = operation.run(connection);
    if connection.is_autocommit() {
        return Err(QueueError::unavailable(RolledBack));
    }
    if !keep {
        execute(connection, "ROLLBACK TO operation")?;
    }
    execute(connection, "RELEASE operation")
}

fn execute(connection: &Connection, statement: &str) -> Result<(), QueueError> {
    connection
        .prepare_cached(statement)
        .and_then(|mut statement| statement.execute([]))
        .map(|_changed| ())
        .map_err(|error| QueueError::Unavailable(Arc::new(error)))
}
