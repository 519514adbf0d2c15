//! `waypost edge`: the edges that may follow this node.
//!
//! A new token is printed once, alone on standard output, so that it can be piped into the file of
//! the edge.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Subcommand;

use super::check::ignore_broken_pipe;
use super::key::wait_for_gateways;
use super::settings::{self, Acting};
use crate::clock::Clock;
use crate::config;
use crate::deploy::Timestamp;
use crate::follow::{EdgeKey, EdgeName, InvalidEdgeName, SealingKey, SigningKey};

/// The arguments of the command.
pub type Args = Acting<Action>;

/// The action of the command.
#[derive(Clone, Debug, Subcommand)]
pub enum Action {
    /// Make the token of an edge and print it; it cannot be shown again
    Add {
        /// The name of the edge: lower-case letters, digits and hyphens
        #[arg(value_parser = name)]
        name: EdgeName,
        /// The public key of the edge, which `waypost edge key` prints there: it gets certificates
        /// with their private keys, encrypted with it
        #[arg(long)]
        key: Option<SealingKey>,
        /// The ring of the edge: changes reach ring 0 first
        #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..10))]
        ring: u8,
    },
    /// Set the public key or the ring of an edge; it counts from the next request of the edge on
    Set {
        /// The name of the edge
        #[arg(value_parser = name)]
        name: EdgeName,
        /// The public key, which `waypost edge key` prints on the edge
        #[arg(long, required_unless_present = "ring")]
        key: Option<SealingKey>,
        /// The ring
        #[arg(long, value_parser = clap::value_parser!(u8).range(0..10))]
        ring: Option<u8>,
    },
    /// List the edges that have a token
    List,
    /// Remove the token of an edge; a running gateway refuses it at once
    Remove {
        /// The name of the edge
        #[arg(value_parser = name)]
        name: EdgeName,
    },
    /// Print the public key of this node: for `store.follow.public_keys` of its edges, or on an
    /// edge for `waypost edge add --key`
    Key {
        /// On a node: print the public key of this file instead. If the file does not exist, it is
        /// made with a new key. To replace the key of the node, see "Replace the key" of the page
        /// "Several machines"
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

fn name(text: &str) -> Result<EdgeName, InvalidEdgeName> {
    EdgeName::parse(text)
}

/// Runs the action.
///
/// # Errors
///
/// When the configuration, the tokens or the gateway cannot be used.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?;
    if let (Action::Key { file: other }, config::Store::Follow { follow, .. }) =
        (&args.action, &config.store)
    {
        if other.is_some() {
            bail!("this is the configuration of an edge; `--file` is for the key of a node");
        }
        let file = follow.key_file.as_deref();
        let file = file.context("`store.follow.key_file` is not configured")?;
        let (key, _seal) = EdgeKey::read_or_create(file)?;
        writeln!(io::stdout(), "{}", key.public()).context("print the key")?;
        return Ok(ExitCode::SUCCESS);
    }
    // The tokens are in the directory of the store, which must exist.
    let store = settings::open_store(&config)?;
    let tokens = settings::edge_tokens(&config, &store);
    let printed = match &args.action {
        Action::Add { name, key, ring } => {
            let token = tokens.add(name, *key, *ring, Clock::System.unix_seconds())?;
            writeln!(
                io::stderr(),
                "token of {name}, which cannot be shown again:"
            )
            .context("print the token")?;
            format!("{token}\n")
        }
        Action::Set { name, key, ring } => {
            tokens.set(name, *key, *ring)?;
            format!("changed {name}\n")
        }
        Action::List => {
            let edges = tokens.list()?;
            let line = |edge: crate::follow::ListedEdge| {
                let created = edge.created_at.saturating_mul(1000);
                let created = Timestamp::from_millis(created);
                let key = edge.key.map(|key| format!("  {key}"));
                let (name, ring, key) = (edge.name, edge.ring, key.unwrap_or_default());
                format!("{name}  ring {ring}  created {created}{key}\n")
            };
            edges.into_iter().map(line).collect()
        }
        Action::Remove { name } => match tokens.remove(name)? {
            true => format!("removed {name}\n"),
            false => bail!("there is no edge {name}"),
        },
        Action::Key { file } => {
            let key = match file {
                Some(file) => SigningKey::read_or_create(file)?,
                None => settings::edge_key(&config)?,
            };
            format!("{}\n", key.public())
        }
    };
    if !matches!(args.action, Action::List | Action::Key { .. }) {
        wait_for_gateways(|time| tokens.wait_until_read(time));
    }
    let written = io::stdout().write_all(printed.as_bytes());
    match args.action {
        Action::List => ignore_broken_pipe(written),
        // The token is printed only once, so an error here must be reported.
        _ => written,
    }
    .context("print the outcome")?;
    Ok(ExitCode::SUCCESS)
}
