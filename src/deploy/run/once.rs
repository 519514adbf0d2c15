//! One build without a queue, for the commands of the command line.
//!
//! The documentation is in a directory of this machine. It may come from a stranger, so it is read
//! and built in a process within walls, as in an update.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::child::Launcher;
use super::job::{BuildJob, Event, Order, Prepared, Source, SpecificationsJob};
use super::walls;
use super::workspace::{SPECIFICATIONS, Workspace};
use crate::build::Options;
use crate::digest::Digest;
use crate::release::{Inventory, Item, ReleasePath};
use crate::source::remote;
use crate::store::{PutError, Store};

/// What to build.
#[derive(Clone, Debug)]
pub struct Build {
    /// The directory that holds the documentation.
    pub path: PathBuf,
    /// The root of its repository, if it is given.
    pub root: Option<PathBuf>,
    /// How it is built.
    pub options: Options,
    /// The directory of the repository for which a directory without a repository stands.
    pub edit_below: Box<str>,
    /// Which specifications may be fetched.
    pub specifications: remote::Config,
    /// Whether a release with errors is made too.
    pub keep_going: bool,
}

/// What a build has made.
#[derive(Debug)]
pub struct Built {
    /// What was built, and what is wrong with it.
    pub report: String,
    /// The release, unless errors keep it from being made.
    pub release: Option<BuiltRelease>,
}

/// A release that is in no store yet.
#[derive(Debug)]
pub struct BuiltRelease {
    workspace: Workspace,
    prepared: Prepared,
    inventory: Inventory,
}

/// Why there is no build.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A process cannot be started, or its files cannot be written.
    #[error("run the build")]
    Process(#[from] io::Error),
    /// The process has ended, or could not read the documentation.
    #[error("{0}")]
    Stopped(String),
    /// What the process has written is not a release.
    #[error("read the release")]
    Release(#[from] PutError),
}

/// Builds a directory in a process within walls.
///
/// # Errors
///
/// [`BuildError`]; what authors did wrong is in the report.
pub fn build(launcher: &Launcher, build: &Build) -> Result<Built, BuildError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run(launcher, build))
}

async fn run(launcher: &Launcher, build: &Build) -> Result<Built, BuildError> {
    let workspace = Workspace::make(&launcher.directory, launcher.user)?;
    let job = BuildJob {
        source: Source::Directory {
            path: fs::canonicalize(&build.path)?,
            root: build.root.as_deref().map(fs::canonicalize).transpose()?,
        },
        service_name: build.options.service_name.clone(),
        frames: build.options.frames.clone(),
        edit: build.options.edit.clone(),
        edit_below: build.edit_below.clone(),
        lenient: build.options.lenient,
        allow_empty: build.options.allow_empty,
        keep_going: build.keep_going,
        has_specifications: build.specifications.is_allowed(),
        generate: None,
        workspace: workspace.path().to_owned(),
        cache: None,
        skill_cache: None,
    };
    let walls = walls::of_build(&job, &workspace);
    let order = Order::Build(Box::new(job));
    let mut running = launcher.start(order, walls, &workspace.home()).await?;
    let mut report = None;
    loop {
        match running.event().await? {
            Some(Event::Report(text)) => report = Some(text),
            Some(Event::Specifications(urls)) => {
                specifications(launcher, &workspace, build, urls).await?;
                running.answer().await?;
            }
            Some(Event::Prepared(prepared)) => {
                let inventory = workspace.inventory(prepared.part, prepared.release)?;
                return Ok(Built {
                    report: report.unwrap_or_default(),
                    release: Some(BuiltRelease {
                        workspace,
                        prepared,
                        inventory,
                    }),
                });
            }
            Some(Event::Stopped(stopped)) => {
                let report = report.ok_or(BuildError::Stopped(stopped.summary))?;
                let release = None;
                return Ok(Built { report, release });
            }
            Some(_progress) => {}
            None => return Err(BuildError::Stopped(running.ended().await)),
        }
    }
}

async fn specifications(
    launcher: &Launcher,
    workspace: &Workspace,
    build: &Build,
    urls: Vec<Box<str>>,
) -> Result<(), BuildError> {
    let job = SpecificationsJob {
        config: build.specifications.clone(),
        urls,
        output: workspace.file(SPECIFICATIONS),
        stops: false,
    };
    let walls = walls::of_specifications(&job);
    let order = Order::Specifications(job);
    let mut running = launcher.start(order, walls, &workspace.home()).await?;
    loop {
        match running.event().await? {
            Some(Event::Done) => return Ok(()),
            Some(Event::Stopped(stopped)) => return Err(BuildError::Stopped(stopped.summary)),
            Some(_progress) => {}
            None => return Err(BuildError::Stopped(running.ended().await)),
        }
    }
}

// === impl BuiltRelease ===

impl BuiltRelease {
    /// Returns the list of the files.
    #[must_use]
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Stores the release. It is not served yet.
    ///
    /// # Errors
    ///
    /// [`PutError`].
    pub fn put(&self, store: &Store) -> Result<(), PutError> {
        self.workspace
            .put(store, self.prepared.part, &self.inventory, &[])
    }

    /// Writes the files below a directory, by their paths in the release.
    ///
    /// # Errors
    ///
    /// [`PutError`] when the files cannot be read or written.
    pub fn write_files(&self, directory: &Path) -> Result<(), PutError> {
        let mut paths: BTreeMap<Digest, (&Item, Vec<&ReleasePath>)> = BTreeMap::new();
        for (path, item) in self.inventory.iter() {
            let entry = paths.entry(item.digest).or_insert((item, Vec::new()));
            entry.1.push(path);
        }
        let mut content = self.workspace.content(self.prepared.part, &[])?;
        for (digest, (item, paths)) in paths {
            let bytes = content.next(item)?.unwrap_or_default();
            if Digest::of(&bytes) != digest {
                return Err(PutError::Digest(digest));
            }
            for path in paths {
                write_file(&directory.join(path.as_str()), &bytes)
                    .map_err(|error| PutError::Release(error.to_string()))?;
            }
        }
        Ok(())
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, bytes)
}
