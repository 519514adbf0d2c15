//! `waypost reload`: makes a running gateway read its files again.
//!
//! A gateway notices changes by itself, but does not remove more than a tenth of its sites
//! at once. `waypost reload --accept-removals` makes it do so.
//!
//! The gateway accepts the request with its token, from the file `listen.operator_token`.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use http::StatusCode;

use super::operator::Operator;
use super::settings::{self, Settings};
use crate::gateway::token::Token;

/// Make a running gateway read its site records and releases again
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Remove sites without a record, even if they are more than a tenth of all sites
    #[arg(long)]
    pub accept_removals: bool,
    /// The configuration, which has the address of the operator's listener.
    #[command(flatten)]
    pub settings: Settings,
}

/// Sends the request, and returns when the gateway has accepted it.
///
/// # Errors
///
/// When no gateway listens, or it responds with another status than 202.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?;
    let operator = Operator::of(&config)?;
    let path = match args.accept_removals {
        true => "/reload?accept-removals",
        false => "/reload",
    };
    let file = settings::operator_token(&config);
    let token = Token::read(&file)
        .with_context(|| format!("read the token of the gateway, {}", file.display()))?;
    let (status, why) = operator.post(path, &token)?;
    if status != StatusCode::ACCEPTED {
        let (address, why) = (operator.address(), why.trim_end());
        bail!("the gateway on {address} responded {status}: {why}");
    }
    Ok(ExitCode::SUCCESS)
}
