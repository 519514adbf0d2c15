//! `waypost build-child`: the process in which a worker runs one build.

use std::process::ExitCode;

use anyhow::Context as _;

use crate::deploy::run::child;

/// Runs the build that is described on standard input.
///
/// # Errors
///
/// When there is no description, or the limits of the process cannot be set.
pub fn run() -> anyhow::Result<ExitCode> {
    child::serve().context("run a build for a worker")?;
    Ok(ExitCode::SUCCESS)
}
