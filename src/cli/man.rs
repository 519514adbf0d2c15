//! `waypost man`: writes the manual pages of this program.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;

use super::Cli;

/// Write the manual pages of this program and of each command
///
/// Packages contain them: `man waypost`, `man waypost-serve`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The directory for the files, which must exist
    pub directory: PathBuf,
}

/// Writes a file for the program and for each command.
///
/// # Errors
///
/// When a file cannot be written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    clap_mangen::generate_to(Cli::command(), &args.directory)
        .with_context(|| format!("write manual pages to {}", args.directory.display()))?;
    Ok(ExitCode::SUCCESS)
}
