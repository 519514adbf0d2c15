//! Builds without a queue, for the commands of the command line.
//!
//! The documentation is in a directory of this machine. Its author may not be trusted, so it is
//! read in a sandboxed process, as in an update: without network, without the environment, and
//! without any other file of the user.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

use super::child::Launcher;
use super::job::{BuildJob, Event, Order, Prepared, Source, SpecificationsJob};
use super::sandbox;
use super::workspace::{NAVIGATION, SPECIFICATIONS, Workspace};
use crate::build::Options;
use crate::digest::Digest;
use crate::isolation::process::{Limits, Report, Running, Start};
use crate::isolation::{InForce, Sandbox};
use crate::release::{Inventory, Item, ReleasePath};
use crate::source::remote;
use crate::store::{PutError, Store};

/// A directory of documentation on this machine. Both paths are absolute and have no links.
#[derive(Clone, Debug)]
pub struct DocsDirectory {
    /// The directory that holds the documentation.
    pub path: PathBuf,
    /// The root of its repository; the same directory if there is none.
    pub root: PathBuf,
}

/// The input of a build.
#[derive(Clone, Debug)]
pub struct Build {
    /// Where the documentation is.
    pub place: DocsDirectory,
    /// How it is built.
    pub options: Options,
    /// For a directory without a repository: the directory of a repository that it represents.
    pub edit_below: Box<str>,
    /// Whether a release with errors is made too.
    pub keep_going: bool,
}

/// The result of a build.
#[derive(Debug)]
pub struct Built {
    /// The report: the content of the release, and the diagnostics.
    pub report: String,
    /// Whether authors made mistakes for which nothing is published.
    pub has_errors: bool,
    /// The release, unless errors keep it from being made.
    pub release: Option<BuiltRelease>,
    /// Which restrictions the process had.
    pub in_force: InForce,
}

/// A release that is in no store yet.
#[derive(Debug)]
pub struct BuiltRelease {
    prepared: Prepared,
    inventory: Inventory,
}

/// The processes of one command, and the directory of what they write.
#[derive(Debug)]
pub struct Session {
    launcher: Launcher,
    workspace: Workspace,
    specifications: remote::Config,
}

/// Why a build failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A process cannot be started, or its files cannot be written.
    #[error("run a sandboxed process")]
    Process(#[from] io::Error),
    /// The process has ended, or could not read the documentation.
    #[error("{0}")]
    Stopped(String),
    /// The output of the process is not a release.
    #[error("read the release")]
    Release(#[from] PutError),
}

// === impl Session ===

impl Session {
    /// Makes a directory for what the processes of a command write; `specifications` says which
    /// are fetched when documentation names them by URL.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn new(launcher: Launcher, specifications: remote::Config) -> io::Result<Self> {
        let user = launcher.process.user;
        let workspace = Workspace::make(&launcher.directory, user)?;
        Ok(Self {
            launcher,
            workspace,
            specifications,
        })
    }

    /// Whether specifications may be fetched.
    #[must_use]
    pub fn has_specifications(&self) -> bool {
        self.specifications.is_allowed()
    }

    /// Returns the file with the specifications that were fetched last.
    #[must_use]
    pub fn specifications(&self) -> PathBuf {
        self.workspace.file(SPECIFICATIONS)
    }

    /// Returns the sandbox of a process that only reads documentation.
    #[must_use]
    pub fn sandbox(&self, place: &DocsDirectory) -> Sandbox {
        let mut read: Vec<_> = sandbox::of_directory(&place.root).collect();
        read.push(self.specifications());
        Sandbox {
            read,
            execute: sandbox::git_in_path().into_iter().collect(),
            ..Sandbox::new()
        }
    }

    /// Starts another process of this program, with a listening socket if there is one.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub async fn start<O: Serialize, E: Report>(
        &self,
        subcommand: &'static str,
        order: &O,
        sandbox: Sandbox,
        listener: Option<&TcpListener>,
    ) -> io::Result<Running<E>> {
        let limits = &self.launcher.limits;
        let start = Start {
            subcommand,
            order,
            sandbox,
            home: &self.workspace.home(),
            limits: Limits {
                memory_bytes: limits.memory_bytes,
                file_bytes: limits.output_bytes,
                open_files: limits.open_files,
                processes: limits.processes,
                page: limits.page,
            },
            has_network: false,
            listener,
        };
        self.launcher.process.start(start).await
    }

    /// Fetches specifications into [`Session::specifications`], in a process that has network and
    /// no documentation.
    ///
    /// # Errors
    ///
    /// [`BuildError`]; a specification that cannot be fetched is a mistake of the documentation.
    pub async fn fetch(&self, urls: Vec<Box<str>>) -> Result<(), BuildError> {
        let job = SpecificationsJob {
            config: self.specifications.clone(),
            urls,
            output: self.specifications(),
            stops: false,
        };
        let sandbox = sandbox::of_specifications(&job);
        let (order, home) = (Order::Specifications(job), self.workspace.home());
        let mut running = self.launcher.start(order, sandbox, &home).await?;
        loop {
            match running.event().await? {
                Some(Event::Done) => return Ok(()),
                Some(Event::Stopped(stopped)) => return Err(BuildError::Stopped(stopped.summary)),
                Some(_progress) => {}
                None => return Err(BuildError::Stopped(running.ended().await)),
            }
        }
    }

    /// Builds a directory; `navigation` is the one of the release that is served.
    ///
    /// # Errors
    ///
    /// [`BuildError`]; what authors did wrong is in the report.
    pub async fn build(
        &self,
        build: &Build,
        navigation: Option<&[u8]>,
    ) -> Result<Built, BuildError> {
        if let Some(navigation) = navigation {
            self.workspace.give(NAVIGATION, navigation)?;
        }
        let options = build.options.clone();
        let job = BuildJob {
            source: Source::Directory {
                path: build.place.path.clone(),
                root: build.place.root.clone(),
            },
            service_name: options.service_name,
            frames: options.frames,
            edit: options.edit,
            edit_below: build.edit_below.clone(),
            lenient: options.lenient,
            allow_empty: options.allow_empty,
            keep_going: build.keep_going,
            has_specifications: self.has_specifications(),
            generate: None,
            workspace: self.workspace.path().to_owned(),
            cache: None,
            skill_files: None,
        };
        let sandbox = sandbox::of_build(&job, &self.workspace);
        let (order, home) = (Order::Build(Box::new(job)), self.workspace.home());
        let mut running = self.launcher.start(order, sandbox, &home).await?;
        let (mut found, mut in_force) = (None, InForce::default());
        let (prepared, (report, has_errors)) = loop {
            match running.event().await? {
                Some(Event::InForce(now)) => in_force = now,
                Some(Event::Report { report, has_errors }) => found = Some((report, has_errors)),
                Some(Event::Specifications(urls)) => {
                    self.fetch(urls).await?;
                    running.answer().await?;
                }
                Some(Event::Prepared(prepared)) => {
                    break (Some(prepared), found.unwrap_or_default());
                }
                Some(Event::Late(sentence)) => return Err(BuildError::Stopped(sentence)),
                Some(Event::Stopped(stopped)) => {
                    break (None, found.ok_or(BuildError::Stopped(stopped.summary))?);
                }
                Some(_progress) => {}
                None => return Err(BuildError::Stopped(running.ended().await)),
            }
        };
        let release = prepared.map(|prepared| {
            let inventory = self.workspace.inventory(prepared.part, prepared.release)?;
            Ok::<_, PutError>(BuiltRelease {
                prepared,
                inventory,
            })
        });
        Ok(Built {
            report,
            has_errors,
            release: release.transpose()?,
            in_force,
        })
    }

    /// Stores a release of this session. It is not served yet.
    ///
    /// # Errors
    ///
    /// [`PutError`].
    pub fn put(&self, store: &Store, built: &BuiltRelease) -> Result<(), PutError> {
        self.workspace
            .put(store, built.prepared.part, &built.inventory, &[])
    }

    /// Writes the files of a release of this session below a directory, by their paths.
    ///
    /// # Errors
    ///
    /// [`PutError`] when the files cannot be read or written.
    pub fn write_files(&self, built: &BuiltRelease, directory: &Path) -> Result<(), PutError> {
        let mut files: BTreeMap<Digest, (&Item, Vec<&ReleasePath>)> = BTreeMap::new();
        for (path, item) in built.inventory.iter() {
            let entry = files.entry(item.digest).or_insert((item, Vec::new()));
            entry.1.push(path);
        }
        let content = self.workspace.content(built.prepared.part, &[])?;
        files.par_iter().try_for_each(|(digest, (item, paths))| {
            let bytes = content.read(item)?.unwrap_or_default();
            if Digest::of(&bytes) != *digest {
                return Err(PutError::Digest(*digest));
            }
            for path in paths {
                write_file(&directory.join(path.as_str()), &bytes)
                    .map_err(|error| PutError::Release(error.to_string()))?;
            }
            Ok(())
        })
    }
}

// === impl BuiltRelease ===

impl BuiltRelease {
    /// Returns the list of the files.
    #[must_use]
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, bytes)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener as Listener, TcpStream, UdpSocket};
    use std::process::Command;

    use super::*;
    use crate::deploy::run::{Isolation, Limits};
    use crate::isolation::Mode;

    /// Actions of hostile code in the reader, and whether each succeeds.
    fn attacks(above: &Path, listener: std::net::SocketAddr) -> Vec<(&'static str, bool)> {
        let path = |name: &str| above.join(name);
        let runs = |program: &str, argument: &str| {
            let output = Command::new(program).arg(argument).output();
            output.is_ok_and(|output| output.status.success())
        };
        vec![
            ("read a key", fs::read(path("home/.ssh/id")).is_ok()),
            ("list a home", fs::read_dir(path("home")).is_ok()),
            ("read another repository", fs::read(path("other/a")).is_ok()),
            ("write to the docs", fs::write(path("docs/a"), "x").is_ok()),
            ("add to the docs", fs::write(path("docs/b"), "x").is_ok()),
            ("add a hook", fs::write(path("docs/.git/hook"), "x").is_ok()),
            (
                "write to /tmp",
                fs::write("/tmp/waypost-hostile", "x").is_ok(),
            ),
            ("read passwords", fs::read("/etc/shadow").is_ok()),
            (
                "run a file of the docs",
                runs(path("docs/run").to_str().unwrap_or(""), ""),
            ),
            (
                "read the environment of the parent",
                fs::read(format!(
                    "/proc/{}/environ",
                    std::os::unix::process::parent_id()
                ))
                .is_ok(),
            ),
            ("connect", TcpStream::connect(listener).is_ok()),
            ("send a datagram", UdpSocket::bind("127.0.0.1:0").is_ok()),
            ("listen", Listener::bind("127.0.0.1:0").is_ok()),
        ]
    }

    #[test]
    fn a_reader_that_was_taken_over_reads_the_documentation_and_nothing_else() {
        let above = tempfile::tempdir().unwrap();
        let path = |name: &str| above.path().join(name);
        for directory in ["home/.ssh", "other", "docs/.git", "work"] {
            fs::create_dir_all(path(directory)).unwrap();
        }
        for file in ["home/.ssh/id", "other/a", "docs/a"] {
            fs::write(path(file), "text").unwrap();
        }
        fs::copy("/bin/true", path("docs/run")).unwrap();
        let isolation = Isolation {
            mode: Mode::Available,
            user: None,
            directory: path("work"),
        };
        let launcher = Launcher::new("true".into(), Limits::default(), &isolation, None).unwrap();
        let session = Session::new(launcher, remote::Config::default()).unwrap();
        let place = DocsDirectory {
            path: path("docs"),
            root: path("docs"),
        };
        let sandbox = session.sandbox(&place);
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let root = above.path().to_owned();
        // The sandbox restricts a thread, too.
        let inside = std::thread::spawn(move || {
            let in_force = sandbox.enter(Mode::Available).unwrap();
            let reads = fs::read(root.join("docs/a")).is_ok();
            (in_force, reads, attacks(&root, address))
        });
        let (in_force, reads, results) = inside.join().unwrap();
        assert!(reads);
        if in_force.landlock >= 3 && in_force.seccomp {
            let taken: Vec<_> = results.iter().filter(|(_, is_done)| *is_done).collect();
            assert!(taken.is_empty(), "{taken:?}");
        }
        // Outside, everything of this is possible.
        let outside = attacks(above.path(), address);
        let (possible, all) = (
            outside.iter().filter(|(_, done)| *done).count(),
            outside.len(),
        );
        assert!(possible + 2 >= all, "{outside:?}");
        let _removed = fs::remove_file("/tmp/waypost-hostile");
    }
}
