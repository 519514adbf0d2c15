//! The orders to the processes of an update, and their reports.
//!
//! These values pass between two processes, each as one line of JSON.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::generate::{self, SkillFiles};
use super::workspace::Part;
use crate::build::Options;
use crate::deploy::record::Commit;
use crate::deploy::writer::{self, Spent};
use crate::error::chain;
use crate::isolation::InForce;
use crate::release::ReleaseId;
use crate::site::{EditLink, Frames};
use crate::source::{git, remote};

/// The order for one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// Fetches a branch into a mirror.
    Fetch(Box<FetchJob>),
    /// Fetches the history of a branch into a mirror.
    History(Box<FetchJob>),
    /// Builds a release.
    Build(Box<BuildJob>),
    /// Fetches the specifications that documentation names by URL.
    Specifications(SpecificationsJob),
    /// Runs the command that writes a skill.
    Command(Box<CommandJob>),
    /// Has a language model write a skill.
    Model(Box<writer::Job>),
    /// Only reports which restrictions are in force.
    Probe,
}

/// A branch to fetch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FetchJob {
    /// The repository's URL.
    pub(super) url: Box<str>,
    /// The branch.
    pub(super) branch: Box<str>,
    /// The commit of the project's last successful update.
    pub(super) commit_before: Option<Box<str>>,
    /// How repositories are fetched, without the credentials.
    pub(super) git: git::Config,
    /// The directory of the mirror.
    pub(super) mirror: PathBuf,
    /// The largest size of the mirror, in bytes.
    pub(super) bytes_max: u64,
    /// The least rate of fetching, in bytes per second.
    pub(super) rate_min: u64,
    /// How long the rate is not considered.
    pub(super) grace: Duration,
    /// The credentials for the host.
    pub(super) secrets: git::Secrets,
    /// A directory of its own.
    pub(super) home: PathBuf,
}

/// A release to build.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BuildJob {
    /// The source of the build.
    pub(super) source: Source,
    /// The short name of the service.
    pub(super) service_name: Box<str>,
    /// The sites that pages may show in frames.
    pub(super) frames: Frames,
    /// Where the files of the repository are edited, if that is known.
    pub(super) edit: Option<EditLink>,
    /// The directory of a repository that a [`Source::Directory`] represents.
    pub(super) edit_below: Box<str>,
    /// Whether rules N1 and N2 of the navigation give warnings instead of errors.
    pub(super) lenient: bool,
    /// Whether a release without pages may be published.
    pub(super) allow_empty: bool,
    /// Whether a release with errors is written too.
    pub(super) keep_going: bool,
    /// Whether the parent fetches specifications that are named by URL.
    pub(super) has_specifications: bool,
    /// The writer of the `skill.md` of this site, if there is one.
    pub(super) generate: Option<generate::Config>,
    /// The directory of the update.
    pub(super) workspace: PathBuf,
    /// Where the cache of the last build is; `None` if no build follows.
    pub(super) cache: Option<PathBuf>,
    /// The stored files of the skill writer.
    pub(super) skill_files: Option<SkillFiles>,
}

/// The source of a release.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Source {
    /// A commit in a mirror.
    Mirror {
        /// The limits and the program, without credentials.
        git: git::Config,
        /// The directory of the mirror.
        mirror: PathBuf,
        /// The commit's object id.
        commit: Box<str>,
        /// The directory of the repository that holds the documentation.
        directory: Box<str>,
    },
    /// A directory of this machine.
    Directory {
        /// The directory that holds the documentation.
        path: PathBuf,
        /// The root of its repository; the same directory if there is none.
        root: PathBuf,
    },
}

/// Specifications to fetch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SpecificationsJob {
    pub(super) config: remote::Config,
    pub(super) urls: Vec<Box<str>>,
    /// Where the files are written.
    pub(super) output: PathBuf,
    /// Whether a temporary failure ends this attempt.
    pub(super) stops: bool,
}

/// A command to run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CommandJob {
    pub(super) config: generate::Config,
    /// Where its standard input is.
    pub(super) input: PathBuf,
    /// Where its standard output is written.
    pub(super) output: PathBuf,
    /// The directory in which it starts.
    pub(super) home: PathBuf,
}

// === impl BuildJob ===

impl BuildJob {
    /// Returns how to build.
    pub(super) fn options(&self) -> Options {
        Options {
            service_name: self.service_name.clone(),
            frames: self.frames.clone(),
            edit: self.edit.clone(),
            lenient: self.lenient,
            allow_empty: self.allow_empty,
        }
    }
}

/// A report of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A step begins.
    Step(Step),
    /// A line for the log.
    Line(String),
    /// The commit is known.
    Commit(Commit),
    /// The branch is fetched, and this is its newest commit; the last event of a fetch.
    Fetched(Box<str>),
    /// These specifications are needed; the process waits for an answer.
    Specifications(Vec<Box<str>>),
    /// The history of the branch is needed; the process waits for an answer.
    History,
    /// The input of the writer is written; the process waits for an answer.
    Write,
    /// A model needs a connection to its server; the process waits for it.
    Connect,
    /// The cost of the model until now.
    Spent(Spent),
    /// A process that was started to answer another one has done so; its last event.
    Done,
    /// The result of a build from a directory of this machine.
    Report {
        /// The report, for people.
        report: String,
        /// Whether authors made mistakes for which nothing is published.
        has_errors: bool,
    },
    /// A release is in the workspace. This is the last event, unless a writer still writes its
    /// skill.
    Prepared(Prepared),
    /// The writer made no other release, for this reason; the last event.
    SkillStays(String),
    /// The text of the writer waits for approval; the last event.
    SkillWaits,
    /// There is no release; the last event.
    Stopped(Stopped),
    /// The work on a page takes too long, as this sentence says; the last event.
    Late(String),
    /// Which restrictions are in force; the first event.
    InForce(InForce),
}

/// A release in a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// The release.
    pub release: ReleaseId,
    /// Which of the two releases of an update it is.
    pub part: Part,
    /// A sentence about the content of the release.
    pub summary: String,
    /// Whether a writer now writes a better `skill.md`, for another release.
    pub skill_pending: bool,
}

/// A step of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The branch is fetched.
    Fetch,
    /// The documentation is read.
    Read,
    /// The release is built.
    Build,
    /// The release is stored.
    Put,
    /// The release becomes the current one.
    Promote,
    /// A command or a model writes a `skill.md`, because no author wrote one.
    Generate,
}

/// Why a build gave no release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// The failure, in a sentence.
    pub summary: String,
    /// Whether another attempt may succeed without any change by a person.
    pub transient: bool,
}

// === impl Step ===

impl Step {
    /// All steps, in their order.
    pub const ALL: [Self; 6] = [
        Self::Fetch,
        Self::Read,
        Self::Build,
        Self::Put,
        Self::Promote,
        Self::Generate,
    ];

    /// Returns the word that logs and metrics use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::Read => "read",
            Self::Build => "build",
            Self::Put => "put",
            Self::Promote => "promote",
            Self::Generate => "generate",
        }
    }
}

// === impl Stopped ===

impl Stopped {
    /// Makes the value for a temporary failure: another attempt may succeed.
    #[must_use]
    pub fn transient(error: &(dyn std::error::Error + 'static)) -> Self {
        Self {
            summary: chain(error),
            transient: true,
        }
    }

    /// Makes the value for a failure that repeats until a person changes something.
    #[must_use]
    pub fn lasting(error: &(dyn std::error::Error + 'static)) -> Self {
        Self {
            summary: chain(error),
            transient: false,
        }
    }

    /// Makes the value for a failure of this machine. The log gets the whole error, the record only
    /// its last cause: authors read records, and must not see paths of the service.
    #[must_use]
    pub fn of_machine(act: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        log::error!(target: "deploy", "cannot {act}: {}", chain(error));
        let mut last = error;
        while let Some(source) = last.source() {
            last = source;
        }
        let cause = match last.downcast_ref::<std::io::Error>() {
            Some(error) => error.to_string(),
            None => "the log of the service says why".to_owned(),
        };
        Self {
            summary: format!("{act}: {cause}"),
            transient: true,
        }
    }
}
