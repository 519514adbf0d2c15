//! The days on which the files of a commit were last changed.
//!
//! They come from commits and trees; no content is read, so a clone without blobs is enough. The
//! day of a file is the day, in UTC, of the newest commit that has another entry at the path of
//! the file than its first parent has. So:
//!
//! * A file that came with a merge has the day of the merge: the day from which the branch had it.
//! * A file that was moved has the day of the move.
//! * Changes that are not committed do not count.
//!
//! The days are a part of the [`Tree`](super::Tree): the same commit gives the same days, whether
//! it is read from a directory or from a mirror, if the whole history is there. At most
//! [`COMMITS_MAX`] commits are read, so that all machines stop at the same one.
//!
//! Sources: `git-log(1)` on `--first-parent`, `gitformat-commit-graph(5)`, `gitglossary(7)` on
//! shallow repositories.

use std::collections::HashMap;

use super::TreePath;

/// How many commits of a history are read.
pub const COMMITS_MAX: usize = 10_000;

/// The days on which files were last changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// By path without links; a day as RFC 3339 writes it.
    days: HashMap<TreePath, Box<str>>,
    end: End,
}

/// Where the reading of a history has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum End {
    /// All files have a day, or are in no commit.
    #[default]
    #[error("the history is complete")]
    Complete,
    /// The clone lacks older commits.
    #[error("this clone has only the newest commits")]
    Shallow,
    /// There are too many commits.
    #[error("only the newest {COMMITS_MAX} commits are read")]
    TooLong,
    /// There is no repository, or git could not read it.
    #[error("the history cannot be read: {0}")]
    Unreadable(Box<str>),
}

// === impl History ===

impl History {
    /// Makes a history of days such as `2026-01-31`, by path without links.
    #[must_use]
    pub fn new(days: impl IntoIterator<Item = (TreePath, Box<str>)>, end: End) -> Self {
        Self {
            days: days.into_iter().collect(),
            end,
        }
    }

    /// Returns the day on which a file was last changed, by its path without links.
    #[must_use]
    pub fn day(&self, path: &TreePath) -> Option<&str> {
        self.days.get(path).map(|day| &**day)
    }

    /// Returns where the reading has ended.
    #[must_use]
    pub fn end(&self) -> &End {
        &self.end
    }
}
