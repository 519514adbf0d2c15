//! `waypost queue`: makes and raises the tables of a queue in PostgreSQL.

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::Subcommand;

use super::settings::Acting;
use crate::deploy::queue::Postgres;

/// The arguments of the command.
pub type Args = Acting<Action>;

/// The action of the command.
#[derive(Clone, Debug, Subcommand)]
pub enum Action {
    /// Make the tables of the queue in the database of `queue.postgres`
    ///
    /// They are in a schema of their own, `waypost_queue`. If they are there already, nothing is
    /// changed.
    Init {
        /// Also in a database that has tables of other programs
        #[arg(long)]
        shared: bool,
    },
    /// Raise the tables to the version of this program
    Migrate,
}

/// Runs the action.
///
/// # Errors
///
/// When the configuration names no database, or the database cannot be used.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?;
    let (postgres, service) = (&config.queue.postgres, config.service.domain.as_str());
    ensure!(
        postgres.url.is_some(),
        "`queue.postgres.url` is not configured; the tables of a SQLite queue are made when it is opened"
    );
    let done = match args.action {
        Action::Init { shared } => match Postgres::init(postgres, service, shared)? {
            true => format!("made the queue of {service}"),
            false => format!("the queue of {service} is there already"),
        },
        Action::Migrate => {
            let version = Postgres::migrate(postgres, service)?;
            format!("the queue of {service} has schema {version}")
        }
    };
    writeln!(io::stdout(), "{done}").context("print")?;
    Ok(ExitCode::SUCCESS)
}
