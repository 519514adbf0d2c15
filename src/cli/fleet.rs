//! `waypost fleet`, `waypost freeze` and `waypost unfreeze`: the edges of a running node, and
//! whether they get changes.

use std::fs;
use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use http::StatusCode;
use serde_json::Value;

use super::key::wait_for_gateways;
use super::operator::Operator;
use super::settings::{self, Settings};
use crate::clock::Clock;
use crate::config::Config;
use crate::deploy::Timestamp;
use crate::store::Store;

/// Show the edges that follow the running gateway: ring, version, how far behind and how old
///
/// Exit status: 0 if every edge follows and is well, 1 if not or if the node is frozen.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Write the answer of the gateway as JSON
    #[arg(long)]
    pub json: bool,
    /// The configuration, which has the address of the operator's listener.
    #[command(flatten)]
    pub settings: Settings,
}

/// Stop all changes of sites and releases on their way to edges
///
/// Edges serve what they have. Certificates and answers to challenges still reach them. This node
/// itself goes on to build and to serve. With a shared store, the edges of all gateways are frozen.
#[derive(Clone, Debug, clap::Args)]
pub struct FreezeArgs {
    /// Why, for those who look at `waypost fleet`
    #[arg(long, default_value = "")]
    pub why: String,
    /// Where the store is.
    #[command(flatten)]
    pub settings: Settings,
}

/// Let changes reach edges again, each site in its newest state
#[derive(Clone, Debug, clap::Args)]
pub struct UnfreezeArgs {
    /// Where the store is.
    #[command(flatten)]
    pub settings: Settings,
}

/// Prints the edges.
///
/// # Errors
///
/// When the gateway does not respond, or no edge can follow it.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let operator = Operator::of(&args.settings.load()?)?;
    let (status, text) = operator.get("/edges")?;
    if status != StatusCode::OK {
        let address = operator.address();
        bail!("no edge can follow the gateway on {address}: `edges.listen` is false");
    }
    let fleet: Value = serde_json::from_str(&text).context("read the answer of the gateway")?;
    let (lines, is_well) = table(&fleet);
    let printed = if args.json { text } else { lines };
    io::stdout()
        .write_all(printed.as_bytes())
        .context("print the edges")?;
    Ok(match is_well {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Returns the lines, and whether all is well.
fn table(fleet: &Value) -> (String, bool) {
    let list = |key: &str| fleet[key].as_array().map_or(&[][..], Vec::as_slice);
    let mut is_well = true;
    let mut lines = format!("revision {}, {} sites\n", fleet["revision"], fleet["sites"]);
    if let Some(why) = fleet["frozen"].as_str() {
        is_well = false;
        lines.push_str(&format!("FROZEN: {why}\n"));
    }
    let rings = list("rings");
    for ring in rings.iter().filter(|_| rings.len() > 1) {
        let (number, hold) = (&ring["ring"], &fleet["hold_seconds"]);
        let waiting = match ring["waiting_projects"].as_u64().unwrap_or(0) {
            0 => "no change waits for it".to_owned(),
            1 => "the changes of 1 project wait for it".to_owned(),
            count => format!("the changes of {count} projects wait for it"),
        };
        let state = match (ring["has_begun"].as_bool(), ring["reason"].as_str()) {
            (_, Some(reason)) => format!("Nothing goes on: {reason}."),
            (Some(false), None) => {
                format!("It begins when the ring before has been well for {hold} s.")
            }
            _ => format!("Each change goes on after {hold} s in the ring before."),
        };
        lines.push_str(&format!("ring {number}: {waiting}. {state}\n"));
    }
    for edge in list("edges") {
        let text = |key: &str| edge[key].as_str().unwrap_or_default();
        let (name, ring, state) = (text("name"), &edge["ring"], text("state"));
        lines.push_str(&format!("{name}  ring {ring}  {state}"));
        if let Some(age) = edge["age_seconds"].as_u64() {
            let lag = match edge["lag"].as_u64() {
                Some(lag) => format!("{lag} behind"),
                None => "comparing".to_owned(),
            };
            let (revision, program) = (&edge["revision"], text("program"));
            lines.push_str(&format!(
                "  {lag}  revision {revision}  seen {age} s ago  {program}"
            ));
        }
        if let Some(gateway) = edge["gateway"].as_str() {
            lines.push_str(&format!("  of the gateway {gateway}"));
        }
        if let Some(why) = edge["ill"].as_str() {
            lines.push_str(&format!("  {why}"));
        }
        lines.push('\n');
        is_well &= state == "following" && edge["ill"].is_null();
    }
    (lines, is_well)
}

/// Freezes the edges.
///
/// # Errors
///
/// When no edge can follow this node, or its store cannot be written.
pub fn freeze(args: &FreezeArgs) -> anyhow::Result<ExitCode> {
    let (config, store) = opened(&args.settings)?;
    let now = Timestamp::of(Clock::System.now());
    let text = format!("since {now} {}\n", args.why);
    match &store {
        Store::Shared(shared) => {
            let documents = shared.documents();
            let frozen = |_before: Option<&[u8]>| Some(text.clone().into_bytes());
            documents
                .change_in(settings::FREEZE, settings::FREEZE_KEY, frozen)
                .context("write the freeze")?;
            wait_for_gateways(|time| documents.wait_until_read(false, time));
        }
        Store::Local(_) => {
            let file = settings::frozen(&config);
            fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
        }
    }
    writeln!(
        io::stdout(),
        "frozen: edges get no changes until `waypost unfreeze`"
    )
    .context("print the outcome")?;
    Ok(ExitCode::SUCCESS)
}

/// Ends a freeze.
///
/// # Errors
///
/// When the store cannot be written.
pub fn unfreeze(args: &UnfreezeArgs) -> anyhow::Result<ExitCode> {
    let (config, store) = opened(&args.settings)?;
    let was_frozen = match &store {
        Store::Shared(shared) => {
            let documents = shared.documents();
            let removed = documents.remove_in(settings::FREEZE, settings::FREEZE_KEY);
            let removed = removed.context("remove the freeze")?;
            wait_for_gateways(|time| documents.wait_until_read(false, time));
            removed
        }
        Store::Local(_) => {
            let file = settings::frozen(&config);
            match fs::remove_file(&file) {
                Ok(()) => true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                Err(error) => {
                    return Err(error).with_context(|| format!("remove {}", file.display()));
                }
            }
        }
    };
    let outcome = match was_frozen {
        true => "edges get changes again",
        false => "it was not frozen",
    };
    writeln!(io::stdout(), "{outcome}").context("print the outcome")?;
    Ok(ExitCode::SUCCESS)
}

/// Reads the configuration of a node that edges can follow, or of a gateway of a shared store: edges
/// may follow another gateway. Also opens its store.
fn opened(settings: &Settings) -> anyhow::Result<(Config, Store)> {
    let config = settings.load()?;
    let store = settings::open_store(&config)?;
    if config.edges.listen.is_none() && matches!(store, Store::Local(_)) {
        bail!("no edge can follow this node: `edges.listen` is false");
    }
    Ok((config, store))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_edge_that_is_away_or_ill_is_shown_and_is_a_failure() {
        let edge = |state: &str, ill: Option<&str>| {
            json!({ "name": "paris", "ring": 1, "state": state, "age_seconds": 3, "lag": 2,
                    "revision": 7, "program": "waypost/0.1", "ill": ill })
        };
        let fleet = |edge: Value| {
            json!({ "revision": 9, "sites": 4, "frozen": null, "hold_seconds": 5, "edges": [edge],
                    "rings": [{ "ring": 0, "waiting_projects": 0, "has_begun": true, "reason": null }] })
        };
        let (lines, is_well) = table(&fleet(edge("following", None)));
        assert!(is_well);
        assert_eq!(
            lines,
            "revision 9, 4 sites\nparis  ring 1  following  2 behind  revision 7  seen 3 s ago  \
             waypost/0.1\n"
        );
        assert!(!table(&fleet(edge("away", None))).1);
        let (lines, is_well) = table(&fleet(edge("following", Some("does not serve 1"))));
        assert!(!is_well && lines.contains("does not serve 1"), "{lines}");
    }
}
