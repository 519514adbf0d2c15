//! How commands read documentation on this machine: in a sandboxed process.
//!
//! The process has no network, no environment, and can read the repository of the documentation and
//! the programs of the system only. The parent process prints and writes files. It also starts the
//! process that fetches the specifications that documentation names by URL.

use std::io::{self, Write as _};

use anyhow::Context as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

use super::deploying;
use crate::deploy::run::{Isolation, Launcher, Limits, Session};
use crate::isolation::process::Report;
use crate::isolation::{InForce, IsolationError, Mode};
use crate::source::remote;

/// The events that the process of a command reports. `E` are the events of one command only.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event<E> {
    /// The first event: which restrictions are in force.
    InForce(InForce),
    /// These specifications are needed; the process waits for an answer.
    Specifications(Vec<Box<str>>),
    /// The last event: the documentation cannot be read, for this reason.
    Failed(String),
    /// An event of this command.
    Own(E),
}

/// A signal has stopped the command.
#[derive(Debug, thiserror::Error)]
#[error("stopped by a signal")]
pub(super) struct Stopped;

// === impl Event ===

impl<E: Serialize + DeserializeOwned> Report for Event<E> {
    fn in_force(in_force: InForce) -> Self {
        Self::InForce(in_force)
    }

    fn refused(error: &IsolationError) -> Self {
        Self::Failed(error.to_string())
    }

    fn late(sentence: String) -> Self {
        Self::Failed(sentence)
    }
}

/// Runs a command with a session for its processes; an interrupted command leaves no files behind.
///
/// # Errors
///
/// The errors of the command, or [`Stopped`].
pub(super) fn run<T>(
    mode: Mode,
    limits: &Limits,
    specifications: remote::Config,
    act: impl AsyncFnOnce(&Session) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    runtime.block_on(async {
        // Another user of this machine cannot know the name in advance.
        let directory = TempDir::with_prefix("waypost-").context("make a temporary directory")?;
        let isolation = Isolation {
            mode,
            // The documentation belongs to the user of the command.
            user: None,
            directory: directory.path().to_owned(),
        };
        let launcher = Launcher::new(deploying::program()?, limits.clone(), &isolation, None)
            .context("start a sandboxed process")?;
        let session = Session::new(launcher, specifications);
        let session = session.context("make a directory for a process")?;
        let mut terminated = signal(SignalKind::terminate()).context("wait for a signal")?;
        tokio::select! {
            done = act(&session) => done,
            _ = tokio::signal::ctrl_c() => Err(Stopped.into()),
            _ = terminated.recv() => Err(Stopped.into()),
        }
    })
}

/// Prints on standard error which restrictions the kernel lacks.
///
/// # Errors
///
/// Standard error is closed.
pub(super) fn report_missing(in_force: InForce) -> io::Result<()> {
    let mut lacks = Vec::new();
    if in_force.landlock == 0 {
        lacks.push("Landlock: the documentation is read by a process that can read all your files");
    }
    if !in_force.seccomp {
        lacks.push("seccomp: the documentation is read by a process that can use the network");
    }
    for feature in lacks {
        writeln!(io::stderr(), "waypost: this system has no {feature}")?;
    }
    Ok(())
}
