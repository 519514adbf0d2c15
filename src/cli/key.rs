//! `waypost key`: make, list and take back admin keys.
//!
//! The key itself is printed once, alone on the standard output, so that it can be piped
//! to where it belongs; everything about it goes to the standard error.

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Subcommand;

use super::settings::{self, Settings};
use super::{deploying, project};
use crate::clock::Clock;
use crate::deploy::keys::{Key, KeyId, Listed, Scope};
use crate::deploy::{InvalidTimestamp, Timestamp};
use crate::site::ProjectId;

/// Manage admin keys
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Clone, Debug, Subcommand)]
enum Action {
    /// Make a key and print it, once
    Create {
        /// Whose projects it may act on
        #[arg(long)]
        owner: String,
        /// Which of them; all when none is named
        #[arg(long = "project", value_name = "ID", value_parser = project)]
        projects: Vec<ProjectId>,
        /// From when on it is refused: a date (its first moment, UTC) or a time
        #[arg(long, value_name = "DATE", value_parser = moment)]
        expires: Option<Timestamp>,
        /// What to call it in the list
        #[arg(long, default_value = "")]
        label: String,
        /// Where the keys are.
        #[command(flatten)]
        settings: Settings,
    },
    /// List all keys, the newest first
    List {
        /// Where the keys are.
        #[command(flatten)]
        settings: Settings,
    },
    /// Take a key back: running gateways refuse it within a second
    Revoke {
        /// Its id, as the list shows it
        #[arg(value_parser = KeyId::parse)]
        id: KeyId,
        /// Where the keys are.
        #[command(flatten)]
        settings: Settings,
    },
}

fn moment(text: &str) -> Result<Timestamp, InvalidTimestamp> {
    Timestamp::parse(text)
}

/// Does what the action says.
///
/// # Errors
///
/// When the configuration or the keys cannot be used.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let now = Timestamp::of(Clock::System.now());
    match &args.action {
        Action::Create {
            owner,
            projects,
            expires,
            label,
            settings,
        } => {
            if expires.is_some_and(|expires| expires <= now) {
                bail!("the key would have expired already");
            }
            let config = settings.load()?;
            // The store is made first where there is none.
            settings::open_store(&config)?;
            let keys = deploying::open_keys(&config)?;
            let (key, secret) =
                keys.create(&config.service.name, owner, projects, label, now, *expires)?;
            let id = key.id();
            writeln!(io::stderr(), "key {id} of {owner}; it is shown this once:")
                .and_then(|()| writeln!(io::stdout(), "{}", secret.reveal()))
                .context("print the key")?;
        }
        Action::List { settings } => {
            let keys = deploying::open_keys(&settings.load()?)?;
            let lines: String = keys
                .list()?
                .iter()
                .map(|listed| line(listed, now))
                .collect();
            io::stdout()
                .write_all(lines.as_bytes())
                .context("print the keys")?;
        }
        Action::Revoke { id, settings } => {
            let keys = deploying::open_keys(&settings.load()?)?;
            let Some(key) = keys.revoke(id, now)? else {
                bail!("there is no key {id}");
            };
            writeln!(io::stdout(), "revoked key {id} of {}", key.owner)
                .context("print the outcome")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One line about a key: id, owner, what it covers, how it stands.
fn line(listed: &Listed, now: Timestamp) -> String {
    let Listed { key, used_at } = listed;
    let scope = match &key.scope {
        Scope::All => "all projects".to_owned(),
        Scope::Projects(projects) => projects.join(","),
    };
    let used = used_at.map_or_else(|| "never used".to_owned(), |at| format!("used {at}"));
    format!(
        "{}  {}  {scope}  created {}  {}  {used}  {}\n",
        key.id(),
        key.owner,
        key.created_at,
        standing(key, now),
        key.label,
    )
}

fn standing(key: &Key, now: Timestamp) -> String {
    match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {at}"),
        (None, Some(at)) if at <= now => format!("expired {at}"),
        (None, Some(at)) => format!("expires {at}"),
        (None, None) => "never expires".to_owned(),
    }
}
