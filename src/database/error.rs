//! Why a call of the database failed.

use std::error::Error;
use std::sync::Arc;

use super::Rejection;

/// Why a call of the database failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// The server failed or cannot be reached: nothing was stored, or it is unknown whether it was.
    #[error("the database cannot be reached")]
    Unavailable(#[source] Arc<dyn Error + Send + Sync>),
    /// A stored value is not valid.
    #[error("the database holds a value that is not valid: {0}")]
    Corrupt(String),
    /// A newer program made the tables.
    #[error("the {holds} has schema {found}; this program reads schemas up to {known}")]
    Newer {
        /// The kind of data in the tables.
        holds: &'static str,
        /// The version of the tables.
        found: u32,
        /// The highest version that this program reads.
        known: u32,
    },
    /// The database must not be used, or does not let this program use it.
    #[error(transparent)]
    Rejected(#[from] Rejection),
}

// === impl DatabaseError ===

impl DatabaseError {
    /// Makes the error of a server that cannot be reached.
    pub(crate) fn unavailable(source: impl Error + Send + Sync + 'static) -> Self {
        Self::Unavailable(Arc::new(source))
    }

    /// Returns whether the same call may succeed later without anybody changing anything.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}
