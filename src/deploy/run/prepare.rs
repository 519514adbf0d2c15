//! The part of an update that handles what strangers wrote: fetch, read, build, put.
//!
//! Nobody sees anything of it: it ends with a release in the store that no pointer names.
//! It runs in a process of its own ([`super::child`]), says what it does in [`Event`]s, and
//! blocks as long as it takes; whoever started it holds the clock.

use std::path::PathBuf;
use std::time::Instant;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::build::{Built, NAVIGATION_PATH, Options, build, gone};
use crate::clock::Clock;
use crate::deploy::record::{Commit, FilesChanged};
use crate::diagnostic::Diagnostic;
use crate::docs;
use crate::release::ReleaseId;
use crate::site::{ProjectId, Repository};
use crate::source::git::{self, Address, FetchError, Head};
use crate::source::{Tree, TreePath, remote};
use crate::store::{Local, Retention, Store, local};

/// What to prepare. It crosses a process boundary, so it is all values.
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
    /// The commit of the project's last success.
    pub commit_before: Option<Box<str>>,
    /// The short name of the service.
    pub service_name: Box<str>,
    /// How repositories are fetched.
    pub git: git::Config,
    /// Which specifications are fetched.
    pub specifications: remote::Config,
    /// The directory of the store.
    pub store: PathBuf,
}

// === impl Job ===

impl Job {
    fn repository(&self) -> Repository {
        Repository {
            url: self.url.clone(),
            branch: self.branch.clone(),
            directory: self.directory.clone(),
        }
    }
}

/// What a preparation says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A step begins.
    Step(Step),
    /// A line for the log.
    Line(String),
    /// The commit is known.
    Commit(Commit),
    /// The last event of one that succeeded.
    Prepared {
        /// The release, which is in the store.
        release: ReleaseId,
        /// What is in it, in a sentence.
        summary: String,
    },
    /// The last event of one that did not.
    Stopped(Stopped),
}

/// A step of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The branch is brought here.
    Fetch,
    /// Its tree is listed.
    Read,
    /// The release is made.
    Build,
    /// The release is kept.
    Put,
    /// The release becomes the current one.
    Promote,
}

/// Why there is no release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// What happened, in a sentence.
    pub summary: String,
    /// Whether the same may succeed later without anybody changing anything.
    pub transient: bool,
}

// === impl Step ===

impl Step {
    /// All steps, in their order.
    pub const ALL: [Self; 5] = [
        Self::Fetch,
        Self::Read,
        Self::Build,
        Self::Put,
        Self::Promote,
    ];

    /// Returns the word that logs and numbers use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::Read => "read",
            Self::Build => "build",
            Self::Put => "put",
            Self::Promote => "promote",
        }
    }
}

// === impl Stopped ===

impl Stopped {
    /// The world's fault: another attempt may succeed.
    #[must_use]
    pub fn transient(error: &(dyn std::error::Error + 'static)) -> Self {
        Self {
            summary: chain(error),
            transient: true,
        }
    }

    /// Somebody has to change something first.
    #[must_use]
    pub fn lasting(error: &(dyn std::error::Error + 'static)) -> Self {
        Self {
            summary: chain(error),
            transient: false,
        }
    }
}

/// Joins an error and its sources.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

/// Prepares a release and tells how it goes; the last event says how it ended.
pub(super) fn prepare(job: &Job, tell: &mut dyn FnMut(Event)) {
    let last = match attempt(job, tell) {
        Ok((release, summary)) => Event::Prepared { release, summary },
        Err(stopped) => Event::Stopped(stopped),
    };
    tell(last);
}

fn attempt(job: &Job, tell: &mut dyn FnMut(Event)) -> Result<(ReleaseId, String), Stopped> {
    tell(Event::Step(Step::Fetch));
    let head = fetch(job, tell)?;
    tell(Event::Step(Step::Read));
    let (tree, found) = read(job, &head, tell)?;
    let tree = specifications(job, tree, tell)?;
    tell(Event::Step(Step::Build));
    let built = make(job, &tree, found, tell)?;
    tell(Event::Step(Step::Put));
    put(job, &built, tell)
}

fn fetch(job: &Job, tell: &mut dyn FnMut(Event)) -> Result<Head, Stopped> {
    let since = Instant::now();
    let stopped = |error: FetchError| Stopped {
        transient: error.is_transient(),
        summary: chain(&error),
    };
    let address = Address::parse(&job.url, &job.branch, &job.git)
        .map_err(|invalid| stopped(invalid.into()))?;
    let head = git::fetch(&job.git, &address).map_err(stopped)?;
    let commit = commit(job, &head);
    let subject = commit.message.lines().next().unwrap_or_default();
    tell(Event::Line(format!(
        "fetch: {} is at {} \"{subject}\" by {} ({} ms)",
        job.branch,
        short(&head.commit),
        head.author,
        since.elapsed().as_millis(),
    )));
    tell(Event::Line(format!(
        "fetch: {}",
        changed(job, &commit.files_changed)
    )));
    tell(Event::Commit(commit));
    Ok(head)
}

fn commit(job: &Job, head: &Head) -> Commit {
    let before = job.commit_before.as_deref();
    let changes = before
        .and_then(|before| head.changes_since(before))
        .unwrap_or_default();
    let commit = Commit {
        sha: head.commit.clone(),
        branch: job.branch.clone(),
        message: head.message.clone(),
        author: head.author.clone(),
        files_changed: FilesChanged {
            added: changes.added,
            modified: changes.modified,
            removed: changes.removed,
        },
    };
    commit.bounded()
}

fn changed(job: &Job, changed: &FilesChanged) -> String {
    let Some(before) = &job.commit_before else {
        return "this is the first deployment".to_owned();
    };
    format!(
        "{} added, {} modified, {} removed since {}",
        changed.added.len(),
        changed.modified.len(),
        changed.removed.len(),
        short(before),
    )
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

fn read(
    job: &Job,
    head: &Head,
    tell: &mut dyn FnMut(Event),
) -> Result<(Tree, Vec<Diagnostic>), Stopped> {
    let since = Instant::now();
    let docs = TreePath::parse(&job.directory).map_err(|invalid| Stopped::lasting(&invalid))?;
    let (tree, found) = head.open(&docs).map_err(|error| match error {
        git::OpenError::Git(_) => Stopped::transient(&error),
        _ => Stopped::lasting(&error),
    })?;
    tell(Event::Line(format!(
        "read: {} files ({} ms)",
        tree.files().count(),
        since.elapsed().as_millis(),
    )));
    Ok((tree, found))
}

/// Brings the specifications that are named by URL. The world's fault ends this attempt;
/// what the author has to change is for the build to tell.
fn specifications(job: &Job, tree: Tree, tell: &mut dyn FnMut(Event)) -> Result<Tree, Stopped> {
    if !job.specifications.is_allowed() {
        return Ok(tree);
    }
    let urls = docs::urls(&tree);
    if urls.is_empty() {
        return Ok(tree);
    }
    let since = Instant::now();
    let fetched = remote::fetch(&job.specifications, &urls);
    for (url, file) in fetched.iter() {
        match file {
            Ok(bytes) => tell(Event::Line(format!("read: {url}: {} bytes", bytes.len()))),
            Err(error) if error.is_transient() => {
                let summary = format!("the specification {url} did not come: {}", chain(error));
                return Err(Stopped {
                    summary,
                    transient: true,
                });
            }
            Err(_) => {}
        }
    }
    tell(Event::Line(format!(
        "read: asked for {} specifications ({} ms)",
        urls.len(),
        since.elapsed().as_millis()
    )));
    Ok(tree.with_remote(fetched))
}

fn make(
    job: &Job,
    tree: &Tree,
    found: Vec<Diagnostic>,
    tell: &mut dyn FnMut(Event),
) -> Result<Built, Stopped> {
    let since = Instant::now();
    let options = Options {
        service_name: job.service_name.clone(),
        edit: job.repository().edit_link(),
    };
    let mut built = build(tree, &options);
    built.report.add(found);
    if let Some(before) = navigation_before(job) {
        let gone = gone(&before, &built, tree);
        built.report.add(gone);
    }
    for line in built.report.to_string().lines() {
        tell(Event::Line(format!("build: {line}")));
    }
    tell(Event::Line(format!(
        "build: done ({} ms)",
        since.elapsed().as_millis()
    )));
    built
        .report
        .refuse_if_errors()
        .map_err(|error| Stopped::lasting(&error))?;
    Ok(built)
}

/// Returns what the current release says of its pages; nothing depends on it but warnings.
fn navigation_before(job: &Job) -> Option<Bytes> {
    let store = open(job).ok()?;
    let project = ProjectId::parse(&job.project).ok()?;
    let current = store.current(&project).ok()??.current.release;
    let inventory = store.inventory(current).ok()?;
    store.read(inventory.get(NAVIGATION_PATH)?).ok()
}

fn open(job: &Job) -> Result<Store, local::OpenError> {
    let config = local::Config {
        path: job.store.clone(),
        // Only a promotion trims what is kept.
        retention: Retention::default(),
    };
    Ok(Store::Local(Local::open(&config, Clock::System)?))
}

fn put(
    job: &Job,
    built: &Built,
    tell: &mut dyn FnMut(Event),
) -> Result<(ReleaseId, String), Stopped> {
    let since = Instant::now();
    let store = open(job).map_err(|error| Stopped::transient(&error))?;
    let release = store
        .put(&built.release)
        .map_err(|error| Stopped::transient(&error))?;
    tell(Event::Line(format!(
        "put: release {} is in the store ({} ms)",
        short(&release.to_string()),
        since.elapsed().as_millis(),
    )));
    let skills = built.report.skills.len();
    let summary = format!(
        "{} files, {skills} skill{}, {} warning{}",
        built.report.files,
        if skills == 1 { "" } else { "s" },
        built.report.warnings(),
        if built.report.warnings() == 1 {
            ""
        } else {
            "s"
        },
    );
    Ok((release, summary))
}
