//! The command line: a file for each subcommand, and what several of them take.
//!
//! Here, and nowhere below, values are put together into a process: the only module that
//! names configuration files, prints, and ends with an exit code.

pub mod build;
pub mod check;
pub mod build_child;
mod deploying;
mod documentation;
pub mod key;
pub mod preview;
pub mod publish;
pub mod releases;
pub mod reload;
pub mod schema;
pub mod serve;
pub mod settings;
#[cfg(test)]
mod testing;
pub mod update;
pub mod worker;

pub use documentation::Documentation;
pub use settings::Settings;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::deploy::run::child;
use crate::site::{InvalidProjectId, ProjectId};

/// The edge of a documentation platform.
///
/// Exit status: 0 when all went well, 1 when what was checked or built has errors, 2 when
/// the command could not do its work.
#[derive(Debug, Parser)]
#[command(name = "waypost", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    Worker(worker::Args),
    Key(key::Args),
    Update(update::Args),
    /// The process of one build; started by a worker
    #[command(name = child::SUBCOMMAND, hide = true)]
    BuildChild,
    Build(build::Args),
    Check(check::Args),
    Preview(preview::Args),
    Publish(publish::Args),
    Releases(releases::Args),
    Promote(releases::PromoteArgs),
    Reload(reload::Args),
    Schema(schema::Args),
}

// === impl Cli ===

impl Cli {
    /// Does what the command line says.
    ///
    /// # Errors
    ///
    /// Why it could not be done.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        match &self.command {
            Command::Serve(args) => serve::run(args),
            Command::Worker(args) => worker::run(args),
            Command::Key(args) => key::run(args),
            Command::Update(args) => update::run(args),
            Command::BuildChild => build_child::run(),
            Command::Build(args) => build::run(args),
            Command::Check(args) => check::run(args),
            Command::Preview(args) => preview::run(args),
            Command::Publish(args) => publish::run(args),
            Command::Releases(args) => releases::run(args),
            Command::Promote(args) => releases::promote(args),
            Command::Reload(args) => reload::run(args),
            Command::Schema(args) => schema::run(args),
        }
    }
}

/// Reads a project id from the command line.
fn project(text: &str) -> Result<ProjectId, InvalidProjectId> {
    ProjectId::parse(text)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        super::Cli::command().debug_assert();
    }
}
