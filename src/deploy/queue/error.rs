//! Why a call of the queue failed.

use std::sync::Arc;

use rusqlite::ErrorCode;

use crate::database::{DatabaseError, Failure, Rejection};
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
    #[error("the queue must not be on a network file system ({0})")]
    NetworkFileSystem(&'static str),
    /// The file was deleted or replaced while it was open.
    #[error("the file of the queue was deleted or replaced")]
    Replaced,
    /// The database must not be used, or does not let this program use it.
    #[error(transparent)]
    Rejected(#[from] Rejection),
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

impl From<DatabaseError> for QueueError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Unavailable(source) => Self::Unavailable(source),
            DatabaseError::Corrupt(what) => Self::Corrupt(what),
            DatabaseError::Newer { found, known, .. } => Self::Newer { found, known },
            DatabaseError::Rejected(rejection) => Self::Rejected(rejection),
        }
    }
}

impl Failure for QueueError {
    fn of_database(&self) -> Option<DatabaseError> {
        match self {
            Self::Unavailable(source) => Some(DatabaseError::Unavailable(Arc::clone(source))),
            _ => None,
        }
    }
}

impl QueueError {
    /// Returns whether the queue itself is broken, and not only this call rejected.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Unavailable(_)
            | Self::Newer { .. }
            | Self::NetworkFileSystem(_)
            | Self::Replaced
            | Self::Rejected(_) => true,
            Self::Corrupt(_) | Self::Full { .. } | Self::KeyReused | Self::Move(_) => false,
        }
    }

    /// Returns whether a new connection may help: not when the file is locked or its disk is full.
    pub(super) fn may_end_with_the_connection(&self) -> bool {
        let temporary = [
            ErrorCode::DatabaseBusy,
            ErrorCode::DatabaseLocked,
            ErrorCode::DiskFull,
        ];
        matches!(self, Self::Unavailable(_))
            && self.code().is_none_or(|code| !temporary.contains(&code))
    }

    /// Returns the code of an error of SQLite.
    fn code(&self) -> Option<ErrorCode> {
        let Self::Unavailable(source) = self else {
            return None;
        };
        source
            .downcast_ref::<rusqlite::Error>()
            .and_then(rusqlite::Error::sqlite_error_code)
    }

    /// Returns the reason in a few words, for callers: it names no file of this machine.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        let Self::Unavailable(source) = self else {
            return match self {
                Self::Newer { .. } => "a newer program wrote it",
                Self::Rejected(_) => "its database cannot be used",
                Self::NetworkFileSystem(_) => "its file is on a network file system",
                Self::Replaced => "its file was deleted or replaced",
                Self::Full { .. } => "too many updates are waiting",
                _ => "a stored value is not valid",
            };
        };
        match self.code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                "another process has locked its file"
            }
            Some(ErrorCode::DiskFull) => "its disk is full",
            Some(ErrorCode::ReadOnly) => "its file cannot be written",
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => "its file is damaged",
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                "its file cannot be opened"
            }
            None if !source.is::<rusqlite::Error>() && !source.is::<std::io::Error>() => {
                "its database cannot be reached"
            }
            _ => "its file cannot be read or written",
        }
    }

    pub(super) fn unavailable(source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Unavailable(Arc::new(source))
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    fn of_sqlite(code: i32) -> QueueError {
        let error = ffi::Error::new(code);
        QueueError::unavailable(rusqlite::Error::SqliteFailure(error, None))
    }

    #[test]
    fn an_error_of_sqlite_has_a_reason_and_may_end_with_the_connection() {
        for (code, reason, may_end) in [
            (
                ffi::SQLITE_BUSY,
                "another process has locked its file",
                false,
            ),
            (
                ffi::SQLITE_LOCKED,
                "another process has locked its file",
                false,
            ),
            (ffi::SQLITE_FULL, "its disk is full", false),
            (ffi::SQLITE_READONLY, "its file cannot be written", true),
            (ffi::SQLITE_NOTADB, "its file is damaged", true),
            (ffi::SQLITE_CORRUPT, "its file is damaged", true),
            (ffi::SQLITE_CANTOPEN, "its file cannot be opened", true),
            (ffi::SQLITE_PERM, "its file cannot be opened", true),
            (
                ffi::SQLITE_IOERR,
                "its file cannot be read or written",
                true,
            ),
        ] {
            let error = of_sqlite(code);
            assert_eq!(error.reason(), reason);
            assert_eq!(error.may_end_with_the_connection(), may_end, "{reason}");
            assert!(error.is_outage(), "{reason}");
        }
    }

    #[test]
    fn an_error_of_one_call_is_no_outage() {
        let newer = QueueError::Newer { found: 7, known: 1 };
        let full = QueueError::Full { limit: 1 };
        for (error, reason, is_outage) in [
            (newer, "a newer program wrote it", true),
            (
                QueueError::NetworkFileSystem("nfs"),
                "its file is on a network file system",
                true,
            ),
            (
                QueueError::Replaced,
                "its file was deleted or replaced",
                true,
            ),
            (full, "too many updates are waiting", false),
            (
                QueueError::Corrupt("x".to_owned()),
                "a stored value is not valid",
                false,
            ),
        ] {
            assert_eq!(error.reason(), reason);
            assert_eq!(error.is_outage(), is_outage, "{reason}");
            assert!(!error.may_end_with_the_connection(), "{reason}");
        }
    }

    #[test]
    fn an_error_without_a_code_says_whose_it_is() {
        let of_sqlite = QueueError::unavailable(rusqlite::Error::InvalidQuery);
        let of_file = QueueError::unavailable(std::io::Error::other("a test"));
        for error in [of_sqlite, of_file] {
            assert_eq!(error.reason(), "its file cannot be read or written");
        }
        let of_server = QueueError::unavailable(std::fmt::Error);
        assert_eq!(of_server.reason(), "its database cannot be reached");
    }
}
