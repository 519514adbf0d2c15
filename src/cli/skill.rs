//! `waypost skill`: shows, approves and rejects skills that wait for approval.
//!
//! With `generate.approve`, a skill that a command or a model has written is kept until a person
//! decides. Nothing of it is served before.

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Subcommand;

use super::check::ignore_broken_pipe;
use super::settings::{self, Settings};
use super::{deploying, project};
use crate::clock::Clock;
use crate::config::Config;
use crate::deploy::Timestamp;
use crate::deploy::queue::Trigger;
use crate::deploy::run::SkillFiles;
use crate::deploy::update::Source;
use crate::site::ProjectId;
use crate::telemetry::logging::printable;

/// Show, approve and reject skills that were written by a command or a model
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
    /// Where the skills are.
    #[command(flatten)]
    settings: Settings,
}

#[derive(Clone, Debug, Subcommand)]
enum Action {
    /// Print the skill that waits for approval
    Show {
        /// The project
        #[arg(value_parser = project)]
        project: ProjectId,
        /// Print only how it differs from the accepted one
        #[arg(long)]
        changes: bool,
    },
    /// Accept the skill that waits, queue an update that publishes it, and print the id of the
    /// update
    Approve {
        /// The project
        #[arg(value_parser = project)]
        project: ProjectId,
    },
    /// Remove the skill that waits; the writer is not asked again until the documentation changes
    Reject {
        /// The project
        #[arg(value_parser = project)]
        project: ProjectId,
    },
}

/// Runs the action.
///
/// # Errors
///
/// When the configuration or the queue cannot be used, or no skill of the project waits.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?;
    match &args.action {
        Action::Show { project, changes } => {
            let Some(waiting) = files(&config, project).waiting() else {
                bail!("no skill of {project} waits for approval");
            };
            let text = match changes {
                true => waiting.changes.join("\n") + "\n",
                false => waiting.text,
            };
            print(&text)?;
        }
        Action::Approve { project } => approve(&config, project)?,
        Action::Reject { project } => {
            let rejected = files(&config, project).reject();
            if !rejected.context("keep that the skill was rejected")? {
                bail!("no skill of {project} waits for approval");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn approve(config: &Config, project: &ProjectId) -> anyhow::Result<()> {
    let (sites, _changes) = settings::read_sites(config)?;
    let site = sites
        .get(project)
        .with_context(|| format!("no site record names the project {project}"))?;
    // Before the file is moved: without a queue, nothing has changed.
    let queue = deploying::open_queue(config)?;
    if !files(config, project).approve().context("keep the skill")? {
        bail!("no skill of {project} waits for approval");
    }
    let trigger = Trigger {
        project: project.clone(),
        owner: site.owner.clone(),
        subdomain: site.subdomain.clone(),
        source: Source::Internal,
        idempotency: None,
    };
    let id = queue
        .enqueue(&trigger, Timestamp::of(Clock::System.now()))?
        .id;
    print(&format!("{id}\n"))
}

fn files(config: &Config, project: &ProjectId) -> SkillFiles {
    SkillFiles::of(&config.git.mirrors, project)
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout();
    // The text may have what an author wrote.
    for line in text.lines() {
        ignore_broken_pipe(writeln!(out, "{}", printable(line))).context("print")?;
    }
    ignore_broken_pipe(out.flush()).context("print")
}
