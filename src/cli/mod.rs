//! The command line: a file for each subcommand, and the arguments that several share.
//!
//! Only this module opens configuration files, prints, and ends the process with an exit
//! code. The modules below take and return values.

pub mod backup;
pub mod build;
pub mod cert;
pub mod check;
pub mod completions;
pub mod convert;
mod deploying;
mod documentation;
mod documents;
pub mod domain;
pub mod edge;
pub mod fleet;
pub mod key;
pub mod man;
mod named;
mod operator;
pub mod preview;
pub mod publish;
pub mod queue;
pub mod releases;
pub mod reload;
pub mod restore;
pub mod schema;
mod secrets;
pub mod serve;
pub mod settings;
pub mod site;
pub mod skill;
pub mod status;
pub mod store;
#[cfg(test)]
mod testing;
pub mod top;
pub mod update;
pub mod upgrade;
mod sandboxed;
pub mod worker;

pub use documentation::Documentation;
pub use settings::Settings;

use std::io;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use rustix::fs::Mode;

use crate::deploy::run::child;
use crate::site::{InvalidProjectId, ProjectId};

/// Builds documentation from git repositories and serves it, to people and to coding agents.
///
/// Exit status: 0 on success, 1 if the documentation or the configuration has errors, 2 if
/// the command could not run.
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
    /// Manage the certificates that were ordered by ACME
    Cert(cert::Args),
    /// Manage the edges that follow this node
    Edge(edge::Args),
    Fleet(fleet::Args),
    Freeze(fleet::FreezeArgs),
    Unfreeze(fleet::UnfreezeArgs),
    Rollback(releases::RollbackArgs),
    Update(update::Args),
    /// Make the tables of a queue in PostgreSQL
    Queue(queue::Args),
    Skill(skill::Args),
    /// Run one build for a worker, which starts this process
    #[command(name = child::SUBCOMMAND, hide = true)]
    BuildChild,
    /// Check documentation for `check`, which starts this process
    #[command(name = check::SUBCOMMAND, hide = true)]
    CheckChild,
    /// Show documentation for `preview`, which starts this process
    #[command(name = preview::SUBCOMMAND, hide = true)]
    PreviewChild,
    Build(build::Args),
    Check(check::Args),
    Convert(convert::Args),
    Preview(preview::Args),
    Publish(publish::Args),
    Releases(releases::Args),
    Promote(releases::PromoteArgs),
    Store(store::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    /// List, show, write and remove sites that are kept in the store
    Site(site::Args),
    /// Add, show, check, list and remove the domains of sites that are kept in the store
    Domain(domain::Args),
    Reload(reload::Args),
    Upgrade(upgrade::Args),
    Status(status::Args),
    Top(top::Args),
    Schema(schema::Args),
    Completions(completions::Args),
    Man(man::Args),
}

// === impl Cli ===

impl Cli {
    /// Runs the command of the command line.
    ///
    /// # Errors
    ///
    /// When the command cannot run. Mistakes in the files that it reads are in the exit code.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        if self.command.writes_state() {
            // What these commands write is private: mirrors, releases, the queue, keys, logs.
            rustix::process::umask(Mode::RWXG | Mode::RWXO);
        }
        match &self.command {
            Command::Serve(args) => serve::run(args),
            Command::Worker(args) => worker::run(args),
            Command::Key(args) => key::run(args),
            Command::Cert(args) => cert::run(args),
            Command::Edge(args) => edge::run(args),
            Command::Fleet(args) => fleet::run(args),
            Command::Freeze(args) => fleet::freeze(args),
            Command::Unfreeze(args) => fleet::unfreeze(args),
            Command::Rollback(args) => releases::rollback(args),
            Command::Update(args) => update::run(args),
            Command::Queue(args) => queue::run(args),
            Command::Skill(args) => skill::run(args),
            Command::BuildChild => in_a_sandbox(child::serve()),
            Command::CheckChild => in_a_sandbox(check::serve()),
            Command::PreviewChild => in_a_sandbox(preview::serve()),
            Command::Build(args) => build::run(args),
            Command::Check(args) => check::run(args),
            Command::Convert(args) => convert::run(args),
            Command::Preview(args) => preview::run(args),
            Command::Publish(args) => publish::run(args),
            Command::Releases(args) => releases::run(args),
            Command::Promote(args) => releases::promote(args),
            Command::Store(args) => store::run(args),
            Command::Backup(args) => backup::run(args),
            Command::Restore(args) => restore::run(args),
            Command::Site(args) => site::run(args),
            Command::Domain(args) => domain::run(args),
            Command::Reload(args) => reload::run(args),
            Command::Upgrade(args) => upgrade::run(args),
            Command::Status(args) => status::run(args),
            Command::Top(args) => top::run(args),
            Command::Schema(args) => schema::run(args),
            Command::Completions(args) => completions::run(args),
            Command::Man(args) => man::run(args),
        }
    }
}

// === impl Command ===

impl Command {
    /// Returns whether the command writes to the directories of the service. Other commands write
    /// only to directories of an author.
    fn writes_state(&self) -> bool {
        match self {
            Self::Serve(_)
            | Self::Worker(_)
            | Self::Key(_)
            | Self::Cert(_)
            | Self::Edge(_)
            | Self::Fleet(_)
            | Self::Freeze(_)
            | Self::Unfreeze(_)
            | Self::Rollback(_)
            | Self::Update(_)
            | Self::Skill(_)
            | Self::BuildChild
            | Self::Publish(_)
            | Self::Releases(_)
            | Self::Promote(_)
            | Self::Store(_)
            | Self::Backup(_)
            | Self::Restore(_)
            | Self::Site(_)
            | Self::Domain(_) => true,
            Self::Build(_)
            | Self::Check(_)
            | Self::CheckChild
            | Self::Convert(_)
            | Self::Preview(_)
            | Self::PreviewChild
            | Self::Queue(_)
            | Self::Reload(_)
            | Self::Upgrade(_)
            | Self::Status(_)
            | Self::Top(_)
            | Self::Schema(_)
            | Self::Completions(_)
            | Self::Man(_) => false,
        }
    }
}

/// Returns the exit code of a sandboxed process; it has reported everything else to its parent.
fn in_a_sandbox(served: io::Result<()>) -> anyhow::Result<ExitCode> {
    served.context("run a sandboxed process")?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a project id from the command line.
fn project(text: &str) -> Result<ProjectId, InvalidProjectId> {
    ProjectId::parse(text)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
