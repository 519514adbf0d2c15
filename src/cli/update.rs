//! `waypost update`: triggers and follows updates without the admin API.
//!
//! It opens the file of the queue itself, so it works while no gateway runs; a running
//! worker sees a new update within a fraction of a second.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Subcommand;

use super::check::ignore_broken_pipe;
use super::settings::{self, Settings};
use super::{deploying, project};
use crate::clock::Clock;
use crate::deploy::queue::{Queue, Trigger};
use crate::deploy::record::Record;
use crate::deploy::update::{Source, Status, Update};
use crate::deploy::{InvalidStatusId, StatusId, Timestamp};
use crate::site::ProjectId;
use crate::telemetry::logging::printable;

/// How often `--follow` reads the record.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Trigger updates, watch them, and look at the queue
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
    /// Where the queue is.
    #[command(flatten)]
    settings: Settings,
}

#[derive(Clone, Debug, Subcommand)]
enum Action {
    /// Queue an update of a project and print its id
    Trigger {
        /// The project to update
        #[arg(value_parser = project)]
        project: ProjectId,
        /// Print its log as it grows, and wait until it has ended
        #[arg(long)]
        follow: bool,
    },
    /// Print the record of an update as JSON
    Status {
        /// The id of the update
        #[arg(value_parser = status_id)]
        id: StatusId,
        /// Print its log as it grows, and wait until it has ended
        #[arg(long)]
        follow: bool,
    },
    /// List the latest updates of a project
    List {
        /// The project whose updates are listed
        #[arg(value_parser = project)]
        project: ProjectId,
    },
    /// End the waiting update of a project without building it
    Cancel {
        /// The project whose update it is
        #[arg(value_parser = project)]
        project: ProjectId,
    },
    /// List the updates that failed in every attempt and were not triggered again
    DeadLetters,
    /// Queue a new update for a project whose last one ran out of attempts
    Requeue {
        /// The project
        #[arg(value_parser = project)]
        project: ProjectId,
    },
}

fn status_id(text: &str) -> Result<StatusId, InvalidStatusId> {
    StatusId::parse(text)
}

/// Runs the action. The exit status is 1 if an update that is followed fails.
///
/// # Errors
///
/// When the configuration or the queue cannot be used, or there is no such project or update.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?;
    let queue = deploying::open_queue(&config)?;
    let now = Timestamp::of(Clock::System.now());
    match &args.action {
        Action::Trigger { project, follow } => {
            let (sites, _changes) = settings::read_sites(&config)?;
            let site = sites
                .get(project)
                .with_context(|| format!("no site record names the project {project}"))?;
            let trigger = Trigger {
                project: project.clone(),
                owner: site.owner.clone(),
                subdomain: site.subdomain.clone(),
                source: Source::Internal,
                idempotency: None,
            };
            let id = queue.enqueue(&trigger, now)?.id;
            print(&format!("{id}\n"))?;
            if *follow {
                return self::follow(&queue, &id);
            }
        }
        Action::Status { id, follow: true } => return self::follow(&queue, id),
        Action::Status { id, follow: false } => {
            let mut json = read(&queue, id)?.to_json();
            json.push(b'\n');
            io::stdout().write_all(&json).context("print the record")?;
        }
        Action::List { project } => print_all(&queue.recent(project, 20)?)?,
        Action::Cancel { project } => {
            if !queue.cancel(project, "cancelled by the operator", now)? {
                bail!("no update of {project} is waiting");
            }
        }
        Action::DeadLetters => print_all(&queue.dead_letters(1000)?)?,
        Action::Requeue { project } => {
            let Some(requeued) = queue.requeue(project, now)? else {
                bail!("no update of {project} ran out of attempts");
            };
            print(&format!("{}\n", requeued.id))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a record's log as it grows, until the update has ended.
fn follow(queue: &Queue, id: &StatusId) -> anyhow::Result<ExitCode> {
    let mut printed = 0;
    loop {
        let record = read(queue, id)?;
        for line in record.logs.iter().skip(printed) {
            print(&format!("{line}\n"))?;
        }
        printed = printed.max(record.logs.len());
        match record.status() {
            Status::Success => return Ok(ExitCode::SUCCESS),
            Status::Failure => return Ok(ExitCode::FAILURE),
            // SQLite does not notify other processes of changes.
            Status::Queued | Status::InProgress => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

fn read(queue: &Queue, id: &StatusId) -> anyhow::Result<Record> {
    queue
        .record(id)?
        .with_context(|| format!("there is no update {id}"))
}

fn print_all(updates: &[Update]) -> anyhow::Result<()> {
    for update in updates {
        let Update {
            id,
            project,
            created_at,
            summary,
            ..
        } = update;
        let status = update.status().as_str();
        print(&format!(
            "{id}  {project}  {created_at}  {status}  {summary}\n"
        ))?;
    }
    Ok(())
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout();
    // The record may contain text of an author.
    let printed = out.write_all(printable(text).as_bytes());
    ignore_broken_pipe(printed.and_then(|()| out.flush())).context("print")
}
