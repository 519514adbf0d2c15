//! `waypost completions`: prints what a shell needs to complete the commands of this program.

use std::io;
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Cli;

/// Print the completions of this program for a shell
///
/// For bash: `waypost completions bash > /etc/bash_completion.d/waypost`. Packages contain them.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The shell
    pub shell: Shell,
}

/// Prints the completions.
///
/// # Errors
///
/// When they cannot be written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut command = Cli::command();
    // Written in one piece: if the reader ends early, this is an error and not a panic.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "waypost", &mut script);
    io::Write::write_all(&mut io::stdout(), &script)?;
    Ok(ExitCode::SUCCESS)
}
