//! The order to a build process, and its reports.
//!
//! These values pass between two processes, each as one line of JSON.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::generate;
use crate::build::Options;
use crate::deploy::record::Commit;
use crate::error::chain;
use crate::release::ReleaseId;
use crate::site::{Frames, Repository};
use crate::source::{git, remote};

/// The release to prepare.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The project.
    pub project: Box<str>,
    /// The repository's URL.
    pub url: Box<str>,
    /// The branch.
    pub branch: Box<str>,
    /// The directory of the repository that holds the documentation.
    pub directory: Box<str>,
    /// The commit of the project's last successful update.
    pub commit_before: Option<Box<str>>,
    /// The short name of the service.
    pub service_name: Box<str>,
    /// How repositories are fetched.
    pub git: git::Config,
    /// Which OpenAPI specifications are fetched.
    pub specifications: remote::Config,
    /// The sites that pages may show in frames.
    pub frames: Frames,
    /// The directory of the store.
    pub store: PathBuf,
    /// The command that writes the `skill.md` of this site, if there is one.
    pub generate: Option<generate::Config>,
    /// Whether rules N1 and N2 of the navigation give warnings instead of errors.
    pub lenient: bool,
    /// Whether a release without pages may be published.
    pub allow_empty: bool,
}

// === impl Job ===

impl Job {
    /// Returns how to build.
    pub(super) fn options(&self) -> Options {
        let repository = Repository {
            url: self.url.clone(),
            branch: self.branch.clone(),
            directory: self.directory.clone(),
        };
        Options {
            service_name: self.service_name.clone(),
            frames: self.frames.clone(),
            edit: repository.edit_link(),
            lenient: self.lenient,
            allow_empty: self.allow_empty,
        }
    }

    /// Returns the file that caches the output of the command.
    ///
    /// It is in the directory of the mirrors, which may be deleted at any time.
    pub(super) fn skill_cache(&self) -> PathBuf {
        self.git.mirrors.join(format!("{}.skill", self.project))
    }
}

/// A report on the progress of a build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A step begins.
    Step(Step),
    /// A line for the log.
    Line(String),
    /// The commit is known.
    Commit(Commit),
    /// A release is in the store. This is the last event, unless a command still writes its
    /// skill.
    Prepared(Prepared),
    /// The command made no other release, for this reason; the last event.
    SkillStays(String),
    /// There is no release; the last event.
    Stopped(Stopped),
}

/// A release in the store that no pointer names yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// The release.
    pub release: ReleaseId,
    /// A sentence about the content of the release.
    pub summary: String,
    /// Whether a command now writes a better `skill.md`, for another release.
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
    /// A command writes a `skill.md`, because no author wrote one.
    Generate,
}

/// Why there is no release.
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
    /// A failure that may end without any change: another attempt may succeed.
    #[must_use]
    pub fn transient(error: &(dyn std::error::Error + 'static)) -> Self {
        Self {
            summary: chain(error),
            transient: true,
        }
    }

    /// A failure that repeats until a person changes something.
    #[must_use]
    pub fn lasting(error: &(dyn std::error::Error + 'static)) -> Self {
        Self {
            summary: chain(error),
            transient: false,
        }
    }
}
