//! Why a call of the queue failed.

use std::sync::Arc;

use crate::deploy::update::InvalidMove;

/// Why a call of the queue failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The back end failed: nothing was stored, or it is unknown whether it was. Calling again
    /// is harmless.
    #[error("the queue cannot be reached")]
    Unavailable(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// A stored value is not valid.
    #[error("the queue holds a value that is not valid: {0}")]
    Corrupt(String),
    /// A newer program made the file.
    #[error("the queue has schema {found}; this program reads schemas up to {known}")]
    Newer {
        /// The schema of the file.
        found: u32,
        /// The highest schema that this program reads.
        known: u32,
    },
    /// SQLite is not safe on a network file system.
    #[error("the queue must not lie on a network file system ({0})")]
    NetworkFileSystem(&'static str),
    /// The limit of waiting updates is reached.
    #[error("the queue is full: {limit} updates are waiting")]
    Full {
        /// The limit.
        limit: u64,
    },
    /// The caller has used the same idempotency key for another project.
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
