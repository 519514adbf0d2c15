//! The record of an update: the response of `GET /v1/project/update-status/{statusId}`.
//!
//! Members may be added later, and none is ever removed. Times are RFC 3339 in UTC. A member
//! without a value yet is `null`, so a client sees all members from the first read.

use serde::{Deserialize, Serialize};

use crate::release::{PATH_LENGTH_MAX, ReleaseId};
use crate::site::ProjectId;
use crate::telemetry::logging::printable;

use super::update::{State, Status, Update, cut};
use super::{StatusId, Timestamp};

/// The most paths in each list of changed files; a first deployment may add any number.
pub const CHANGED_PATHS_MAX: usize = 2000;
/// The most bytes that the paths of all three lists have together. A record is written again with
/// every heartbeat.
pub const CHANGED_BYTES_MAX: usize = 256 << 10;
/// The longest commit message in a record, in bytes.
const MESSAGE_BYTES_MAX: usize = 2000;
/// The longest name of a branch in a record, in bytes. An object id is shorter.
const NAME_BYTES_MAX: usize = 255;

/// The commit that an update built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Commit {
    /// Its object id.
    pub sha: Box<str>,
    /// The branch that it was the head of.
    #[serde(rename = "ref")]
    pub branch: Box<str>,
    /// Its message.
    pub message: Box<str>,
    /// The author's name.
    pub author: Box<str>,
    /// The changes since the project's last successful update.
    pub files_changed: FilesChanged,
}

/// Changed files, at most [`CHANGED_PATHS_MAX`] paths of each kind and [`CHANGED_BYTES_MAX`] bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesChanged {
    /// Paths of new files.
    pub added: Vec<Box<str>>,
    /// Paths of files with other content.
    pub modified: Vec<Box<str>>,
    /// Paths of removed files.
    pub removed: Vec<Box<str>>,
}

/// An update and its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The update itself.
    pub update: Update,
    /// The update that has superseded it, if one has.
    pub newer: Option<Box<Update>>,
    /// The lines of the log.
    pub logs: Vec<Box<str>>,
}

/// The public form, in the order in which it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Public<'a> {
    #[serde(rename = "_id")]
    id: &'a str,
    project_id: &'a ProjectId,
    created_at: Timestamp,
    ended_at: Option<Timestamp>,
    visible_at: Option<Timestamp>,
    status: &'static str,
    summary: &'a str,
    logs: &'a [Box<str>],
    subdomain: &'a str,
    commit: Option<PublicCommit<'a>>,
    source: &'static str,
    author: Option<Author<'a>>,
    release: Option<ReleaseId>,
    attempts: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PublicCommit<'a> {
    sha: &'a str,
    #[serde(rename = "ref")]
    branch: &'a str,
    message: &'a str,
    files_changed: &'a FilesChanged,
}

#[derive(Serialize)]
struct Author<'a> {
    name: &'a str,
}

// === impl Commit ===

impl Commit {
    /// Cuts names, messages and lists to the lengths that a record may have, and replaces what a
    /// terminal would obey.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        // What is replaced may become longer.
        let shown = |text: &str, bytes_max| -> Box<str> {
            cut(&printable(cut(text, bytes_max)), bytes_max).into()
        };
        self.sha = shown(&self.sha, NAME_BYTES_MAX);
        self.branch = shown(&self.branch, NAME_BYTES_MAX);
        self.message = shown(&self.message, MESSAGE_BYTES_MAX);
        self.author = shown(&self.author, MESSAGE_BYTES_MAX);
        let FilesChanged {
            added,
            modified,
            removed,
        } = &mut self.files_changed;
        let mut left = CHANGED_BYTES_MAX;
        for paths in [added, modified, removed] {
            paths.truncate(CHANGED_PATHS_MAX);
            for path in &mut *paths {
                // A longer path cannot be in a release.
                *path = shown(path, PATH_LENGTH_MAX);
            }
            let fitting = paths.iter().take_while(|path| {
                left = left.saturating_sub(path.len());
                left > 0
            });
            let fitting = fitting.count();
            paths.truncate(fitting);
        }
        self
    }
}

// === impl Record ===

impl Record {
    /// Returns the status for callers. A superseded update has the status of the newer one
    /// (rule U5).
    #[must_use]
    pub fn status(&self) -> Status {
        self.shown().status()
    }

    /// Returns the release that was published, if one was.
    #[must_use]
    pub fn release(&self) -> Option<ReleaseId> {
        match self.shown().state {
            State::Success { release, .. } => Some(release),
            _ => None,
        }
    }

    /// Returns when a gateway served the release, if that is known.
    #[must_use]
    pub fn visible_at(&self) -> Option<Timestamp> {
        match self.shown().state {
            State::Success { visible_at, .. } => visible_at,
            _ => None,
        }
    }

    /// Returns one sentence about the state of the update.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.shown().summary
    }

    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> &StatusId {
        &self.update.id
    }

    /// Writes the public form.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let shown = self.shown();
        let commit = shown.commit.as_ref();
        let public = Public {
            id: self.update.id.as_str(),
            project_id: &self.update.project,
            created_at: self.update.created_at,
            ended_at: shown.ended_at(),
            visible_at: self.visible_at(),
            status: self.status().as_str(),
            summary: &shown.summary,
            logs: &self.logs,
            subdomain: &self.update.subdomain,
            commit: commit.map(|commit| PublicCommit {
                sha: &commit.sha,
                branch: &commit.branch,
                message: &commit.message,
                files_changed: &commit.files_changed,
            }),
            source: self.update.source.as_str(),
            author: commit.map(|commit| Author {
                name: &commit.author,
            }),
            release: self.release(),
            attempts: shown.attempts,
        };
        serde_json::to_vec(&public).expect("strings, numbers and lists of them")
    }

    fn shown(&self) -> &Update {
        self.newer.as_deref().unwrap_or(&self.update)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_with_long_names_needs_few_bytes_in_a_record() {
        let long = || -> Box<str> { "\u{7f}".repeat(64 << 10).into() };
        let paths = || vec![long(); 3 * CHANGED_PATHS_MAX];
        let commit = Commit {
            sha: long(),
            branch: long(),
            message: long(),
            author: long(),
            files_changed: FilesChanged {
                added: paths(),
                modified: paths(),
                removed: paths(),
            },
        };
        let bounded = commit.bounded();
        let bytes = serde_json::to_vec(&bounded).unwrap().len();
        assert!(bytes < 512 << 10, "{bytes} bytes");
        assert_eq!(bounded.clone().bounded(), bounded);
    }

    #[test]
    fn the_paths_of_a_usual_commit_are_whole() {
        let paths = |folder: &str| -> Vec<Box<str>> {
            let names = (0..CHANGED_PATHS_MAX / 2).map(|n| format!("{folder}/guides/page-{n}.mdx"));
            names.map(Into::into).collect()
        };
        let commit = Commit {
            sha: "c0ffee".repeat(7)[..40].into(),
            branch: "main".into(),
            message: "Say hello\n\nTo everybody.".into(),
            author: "Ada".into(),
            files_changed: FilesChanged {
                added: paths("en"),
                modified: paths("de"),
                removed: paths("fr"),
            },
        };
        assert_eq!(commit.clone().bounded(), commit);
    }
}
