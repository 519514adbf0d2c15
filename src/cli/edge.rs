//! `waypost edge`: the edges that may follow this node.
//!
//! A new token is printed once, alone on standard output, so that it can be piped into the file of
//! the edge.

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use http::StatusCode;
use serde_json::Value;

use super::operator::Operator;
use super::settings::{self, Settings};
use crate::clock::Clock;
use crate::config::Config;
use crate::deploy::Timestamp;
use crate::follow::{EdgeName, InvalidEdgeName};

/// Manage the edges that follow this node
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
    /// Where the tokens are.
    #[command(flatten)]
    settings: Settings,
}

#[derive(Clone, Debug, Subcommand)]
enum Action {
    /// Make the token of an edge and print it; it cannot be shown again
    Add {
        /// The name of the edge: lower-case letters, digits and hyphens
        #[arg(value_parser = name)]
        name: EdgeName,
    },
    /// List the edges that have a token
    List,
    /// Remove the token of an edge; a running gateway refuses it at once
    Remove {
        /// The name of the edge
        #[arg(value_parser = name)]
        name: EdgeName,
    },
    /// Print the public key of this node, for `store.follow.public_keys` of its edges
    Key,
    /// Show what the running gateway knows of each edge: whether it follows, and how far behind it is
    Status {
        /// Write the answer of the gateway as JSON
        #[arg(long)]
        json: bool,
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
    // The tokens are in the directory of the store, which must exist.
    settings::open_store(&config)?;
    let tokens = settings::edge_tokens(&config);
    let printed = match &args.action {
        Action::Add { name } => {
            let token = tokens.add(name, Clock::System.unix_seconds())?;
            writeln!(
                io::stderr(),
                "token of {name}, which cannot be shown again:"
            )
            .context("print the token")?;
            format!("{token}\n")
        }
        Action::List => {
            let edges = tokens.list()?;
            let line = |edge: crate::follow::ListedEdge| {
                let created = edge.created_at.saturating_mul(1000);
                let created = Timestamp::from_millis(created);
                format!("{}  created {created}\n", edge.name)
            };
            edges.into_iter().map(line).collect()
        }
        Action::Remove { name } => match tokens.remove(name)? {
            true => format!("removed {name}\n"),
            false => bail!("there is no edge {name}"),
        },
        Action::Key => format!("{}\n", settings::edge_key(&config)?.public()),
        Action::Status { json } => status(&config, *json)?,
    };
    io::stdout()
        .write_all(printed.as_bytes())
        .context("print the outcome")?;
    Ok(ExitCode::SUCCESS)
}

/// Asks the operator's listener of the gateway.
fn status(config: &Config, json: bool) -> anyhow::Result<String> {
    let operator = Operator::of(config)?;
    let (status, text) = operator.get("/edges")?;
    if status != StatusCode::OK {
        let address = operator.address();
        bail!("no edge can follow the gateway on {address}: `edges.listen` is false");
    }
    if json {
        return Ok(text);
    }
    let answer: Value = serde_json::from_str(&text).context("read the answer of the gateway")?;
    let revision = &answer["revision"];
    let edges = answer["edges"].as_array().map_or(&[][..], Vec::as_slice);
    let mut lines = format!("revision {revision}, {} sites\n", answer["sites"]);
    for edge in edges {
        let text = |key: &str| edge[key].as_str().unwrap_or_default();
        let (name, state) = (text("name"), text("state"));
        let line = match (edge["seen_seconds_ago"].as_u64(), edge["lag"].as_u64()) {
            (None, _) => format!("{name}  never seen\n"),
            (Some(seen), Some(lag)) => {
                format!(
                    "{name}  {state}  {lag} behind  seen {seen} s ago  {}\n",
                    text("program")
                )
            }
            (Some(seen), None) => {
                format!(
                    "{name}  {state}  comparing  seen {seen} s ago  {}\n",
                    text("program")
                )
            }
        };
        lines.push_str(&line);
    }
    Ok(lines)
}
