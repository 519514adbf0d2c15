//! `waypost key`: creates, lists and revokes admin keys.
//!
//! A new key is printed once, alone on standard output, so that it can be piped into a
//! secret store; everything else goes to standard error.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Subcommand;

use super::check::ignore_broken_pipe;
use super::settings::{self, Settings};
use super::{deploying, project};
use crate::clock::Clock;
use crate::deploy::keys::{Key, KeyId, Listed, NewKey, Role, Scope};
use crate::deploy::{InvalidTimestamp, Timestamp};
use crate::site::ProjectId;

/// How long a command waits until all gateways of a database have a change. It is longer than a
/// killed gateway counts as running, so the command names only gateways that run.
const GATEWAYS_WAIT: Duration = Duration::from_secs(10);

/// Manage admin keys
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Clone, Debug, Subcommand)]
enum Action {
    /// Create a key and print it; it cannot be shown again
    Create {
        /// The owner whose projects the key may update
        #[arg(long)]
        owner: String,
        /// Allow only this project; may be given more than once [default: all projects of
        /// the owner]
        #[arg(long = "project", value_name = "ID", value_parser = project)]
        projects: Vec<ProjectId>,
        /// What the key may do: `deploy` triggers updates, `owner` also changes the owner's sites
        /// and their domains, `operator` also creates and removes the sites of every owner
        #[arg(long, value_name = "ROLE", value_parser = role, default_value = "deploy")]
        role: Role,
        /// When the key expires: a date (at 00:00 UTC) or a time (RFC 3339) [default: never]
        #[arg(long, value_name = "DATE", value_parser = timestamp)]
        expires: Option<Timestamp>,
        /// A note that `key list` shows
        #[arg(long, default_value = "")]
        label: String,
        /// Where the keys are.
        #[command(flatten)]
        settings: Settings,
    },
    /// List all keys, newest first
    List {
        /// Where the keys are.
        #[command(flatten)]
        settings: Settings,
    },
    /// Revoke a key; running gateways reject it within a second
    Revoke {
        /// The id of the key, as `key list` shows it
        #[arg(value_parser = KeyId::parse)]
        id: KeyId,
        /// Where the keys are.
        #[command(flatten)]
        settings: Settings,
    },
}

fn timestamp(text: &str) -> Result<Timestamp, InvalidTimestamp> {
    Timestamp::parse(text)
}

/// Runs the action.
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
            role,
            expires,
            label,
            settings,
        } => {
            if expires.is_some_and(|expires| expires <= now) {
                bail!("the date of `--expires` is in the past");
            }
            let config = settings.load()?;
            // Create the store first: see `open_keys`.
            let store = settings::open_store(&config)?;
            let keys = deploying::keys_of(&config, &store)?;
            let new = NewKey {
                owner,
                projects,
                role: *role,
                label,
                expires_at: *expires,
            };
            let (key, secret) = keys.create(&config.service.name, &new, now)?;
            wait_for_gateways(|time| keys.wait_until_read(time));
            let id = key.id();
            writeln!(
                io::stderr(),
                "key {id} of {owner}, which cannot be shown again:"
            )
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
            let printed = io::stdout().write_all(lines.as_bytes());
            ignore_broken_pipe(printed).context("print the keys")?;
        }
        Action::Revoke { id, settings } => {
            let keys = deploying::open_keys(&settings.load()?)?;
            let Some(key) = keys.revoke(id, now)? else {
                bail!("there is no key {id}");
            };
            wait_for_gateways(|time| keys.wait_until_read(time));
            writeln!(io::stdout(), "revoked key {id} of {}", key.owner)
                .context("print the outcome")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits until all gateways of a database have the change, and prints the names of gateways that do
/// not have it in time. The change is in the database in any case.
pub(super) fn wait_for_gateways<E: std::error::Error>(
    wait: impl FnOnce(Duration) -> Result<Vec<String>, E>,
) {
    let behind = match wait(GATEWAYS_WAIT) {
        Ok(behind) => behind.join(", "),
        Err(error) => crate::error::chain(&error),
    };
    if !behind.is_empty() {
        let line = format!("these gateways do not have the change yet: {behind}");
        // It is a hint.
        let _closed = writeln!(io::stderr(), "{line}");
    }
}

fn role(text: &str) -> Result<Role, String> {
    let named = Role::ALL.into_iter().find(|role| role.as_str() == text);
    named.ok_or_else(|| "a role is deploy, owner or operator".to_owned())
}

/// Returns the line of a key: id, owner, role, projects, when it was created, validity, use, label.
fn line(listed: &Listed, now: Timestamp) -> String {
    let Listed { key, used_at } = listed;
    let scope = match &key.scope {
        Scope::All => "all projects".to_owned(),
        Scope::Projects(projects) => projects.join(","),
    };
    let used = used_at.map_or_else(|| "never used".to_owned(), |at| format!("used {at}"));
    format!(
        "{}  {}  {}  {scope}  created {}  {}  {used}  {}\n",
        key.id(),
        key.owner,
        key.role.as_str(),
        key.created_at,
        validity(key, now),
        key.label,
    )
}

fn validity(key: &Key, now: Timestamp) -> String {
    match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {at}"),
        (None, Some(at)) if at <= now => format!("expired {at}"),
        (None, Some(at)) => format!("expires {at}"),
        (None, None) => "never expires".to_owned(),
    }
}
