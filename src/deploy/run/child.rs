//! The processes of an update.
//!
//! The content of customers is fetched and parsed in sandboxed processes
//! ([`isolation::process`](crate::isolation::process)):
//!
//! | process | network | reads | writes |
//! |---|---|---|---|
//! | fetch | the repository's host | its mirror | its mirror |
//! | build | none | its mirror, its workspace | the files of its workspace |
//! | specifications | the ports of the URLs | certificates | one file of the workspace |
//! | command | only if configured | its input, configured files | its own directory |
//! | model | sockets that the parent gives, to one host | its input, certificates | one file of the workspace |
//!
//! A repository that exhausts memory, recurses without end or crashes a parser ends its own build
//! only; the gateway in the parent continues.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::job::{Event, Order, Stopped};
use super::{fetch, generate, prepare, specifications};
use crate::isolation::process::{self, Report, Start};
use crate::isolation::{InForce, IsolationError, Mode, Sandbox, User, UserError};
use crate::telemetry::logging;

/// The subcommand that starts a child.
pub const SUBCOMMAND: &str = "build-child";

/// The limits of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The address space of the child, and of each program that it starts.
    pub memory_bytes: u64,
    /// The largest file that a fetch may write; in practice a pack file of the mirror.
    pub file_bytes: u64,
    /// How many bytes a build may write: its release and its cache.
    pub output_bytes: u64,
    /// How many files it may have open.
    pub open_files: u64,
    /// How many processes and threads may be added to those that its user has.
    pub processes: u64,
    /// How long the fetch of the branch may take.
    pub fetch: Duration,
    /// The lowest average rate of a fetch, in bytes per second; 0 for any.
    pub fetch_rate_min: u64,
    /// How long a fetch may take before its rate is considered.
    pub fetch_grace: Duration,
    /// How long a build may work on one page, in whole seconds.
    pub page: Duration,
    /// How long the whole update may take.
    pub total: Duration,
}

/// How the processes of builds are isolated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// Whether builds run without Landlock and seccomp.
    pub mode: Mode,
    /// The name of the user that they run as; `None`: the user of the service.
    pub user: Option<Box<str>>,
    /// The directory for what the processes of an update write.
    pub directory: PathBuf,
}

/// Starts the processes of builds.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// Starts sandboxed processes.
    pub process: process::Launcher,
    /// The limits of a build.
    pub limits: Limits,
    /// Where the workspaces of updates are.
    pub directory: PathBuf,
}

/// A running process of a build.
pub(super) type Running = process::Running<Event>;

/// The connection of a process to its parent.
pub(super) type Parent<'p> = process::Parent<'p, Event>;

/// Why no build can run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The user of builds cannot be used.
    #[error("worker.user")]
    User(#[from] UserError),
    /// A process cannot be started, or does not report.
    #[error("start a process for builds")]
    Start(#[source] io::Error),
    /// The process refuses to run.
    #[error("worker.isolation: {0}")]
    Refused(String),
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 4 << 30,
            file_bytes: 4 << 30,
            output_bytes: 2 << 30,
            open_files: 1024,
            processes: 256,
            fetch: Duration::from_secs(300),
            fetch_rate_min: 20_000,
            fetch_grace: Duration::from_secs(20),
            page: Duration::from_secs(60),
            total: Duration::from_secs(600),
        }
    }
}

impl Limits {
    /// Returns how much the process of an order may use.
    fn of(&self, order: &Order) -> process::Limits {
        process::Limits {
            memory_bytes: self.memory_bytes,
            file_bytes: match order {
                Order::Fetch(job) | Order::History(job) => self.file_bytes.min(job.bytes_max),
                _ => self.output_bytes,
            },
            open_files: self.open_files,
            processes: self.processes,
            page: self.page,
        }
    }
}

// === impl Isolation ===

impl Default for Isolation {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            user: None,
            directory: "var/builds".into(),
        }
    }
}

// === impl Launcher ===

impl Launcher {
    /// Returns a launcher with the user of the configuration.
    ///
    /// # Errors
    ///
    /// [`LaunchError::User`].
    pub fn new(
        program: PathBuf,
        limits: Limits,
        isolation: &Isolation,
        log: Option<logging::Config>,
    ) -> Result<Self, LaunchError> {
        let user = isolation.user.as_deref().map(User::of_builds).transpose()?;
        Ok(Self {
            process: process::Launcher {
                program,
                mode: isolation.mode,
                user,
                log,
            },
            limits,
            directory: isolation.directory.clone(),
        })
    }

    /// Starts a process that enters the sandbox of a build, and returns the protections in force.
    ///
    /// # Errors
    ///
    /// [`LaunchError`], in particular when isolation is required and the kernel lacks a feature.
    pub fn probe(&self) -> Result<InForce, LaunchError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LaunchError::Start)?;
        runtime.block_on(async {
            let started = self.start(Order::Probe, Sandbox::new(), Path::new("/"));
            let mut running = started.await.map_err(LaunchError::Start)?;
            loop {
                match running.event().await.map_err(LaunchError::Start)? {
                    Some(Event::InForce(in_force)) => return Ok(in_force),
                    Some(Event::Stopped(stopped)) => {
                        return Err(LaunchError::Refused(stopped.summary));
                    }
                    Some(_other) => {}
                    None => {
                        let how = io::Error::other(running.ended().await);
                        return Err(LaunchError::Start(how));
                    }
                }
            }
        })
    }

    /// Starts a process and writes its order.
    pub(super) async fn start(
        &self,
        order: Order,
        sandbox: Sandbox,
        home: &Path,
    ) -> io::Result<Running> {
        let start = Start {
            subcommand: SUBCOMMAND,
            limits: self.limits.of(&order),
            has_network: matches!(
                order,
                Order::Fetch(_) | Order::History(_) | Order::Specifications(_) | Order::Model(_)
            ),
            order: &order,
            sandbox,
            home,
            listener: None,
        };
        self.process.start(start).await
    }
}

// === impl Event ===

impl Report for Event {
    fn in_force(in_force: InForce) -> Self {
        Self::InForce(in_force)
    }

    fn refused(error: &IsolationError) -> Self {
        Self::Stopped(Stopped::transient(error))
    }

    fn late(sentence: String) -> Self {
        Self::Late(sentence)
    }
}

/// Carries out the order of this process in its sandbox.
///
/// # Errors
///
/// As [`process::serve`].
pub fn serve() -> io::Result<()> {
    process::serve(|order: Order, parent| match &order {
        Order::Fetch(job) => fetch::fetch(job, parent),
        Order::History(job) => fetch::fetch_history(job, parent),
        Order::Build(job) => prepare::prepare(job, parent),
        Order::Specifications(job) => specifications::fetch(job, parent),
        Order::Command(job) => generate::run(job, parent),
        Order::Model(job) => generate::run_model(job, parent),
        Order::Probe => {}
    })
}
