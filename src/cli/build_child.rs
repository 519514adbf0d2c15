//! `waypost build-child`: the process of one build, started by a worker and by nobody else.

use std::process::ExitCode;

use anyhow::Context as _;

use crate::deploy::run::child;

/// Carries out the order that comes on the standard input.
///
/// # Errors
///
/// When there is none, or its limits cannot be set.
pub fn run() -> anyhow::Result<ExitCode> {
    child::serve().context("carry out a worker's order")?;
    Ok(ExitCode::SUCCESS)
}
