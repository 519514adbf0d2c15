//! Why the queue did not do what it was asked.

use std::sync::Arc;

use crate::deploy::update::InvalidMove;

/// Why the queue did not do what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// Nothing was kept, or it is unknown whether it was; asking again is harmless.
    #[error("the queue cannot be reached")]
    Unavailable(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// What is kept cannot be understood.
    #[error("the queue holds something unknown: {0}")]
    Corrupt(String),
    /// A newer Waypost has written it.
    #[error("the queue has schema {found}, this version knows {known}")]
    Newer {
        /// What was found.
        found: u32,
        /// What is known.
        known: u32,
    },
    /// A network file system cannot keep what SQLite promises.
    #[error("the queue must not lie on a network file system ({0})")]
    NetworkFileSystem(&'static str),
    /// As many updates wait as may.
    #[error("the queue is full: {limit} updates are waiting")]
    Full {
        /// The limit.
        limit: u64,
    },
    /// The caller used its key for another project before.
    #[error("the idempotency key was used for another project")]
    KeyReused,
    /// A move between states that no rule allows.
    #[error(transparent)]
    Move(#[from] InvalidMove),
}

// === impl QueueError ===

impl QueueError {
    pub(super) fn unavailable(source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Unavailable(Arc::new(source))
    }
}
