//! `waypost reload`: makes a running gateway read its files again.
//!
//! A gateway notices changes by itself, but does not remove more than a tenth of its sites
//! at once. `waypost reload --accept-removals` makes it do so.
//!
//! The gateway accepts the request with its token, from the file `listen.operator_token`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use http::StatusCode;
use ureq::Agent;

use super::settings::{self, Settings};
use crate::gateway::token::Token;

/// How long the gateway may take to accept the request.
const TIMEOUT: Duration = Duration::from_secs(5);

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
    let address = config
        .listen
        .operator
        .context("`listen.operator` is false, so the gateway cannot be asked to reload")?;
    let query = if args.accept_removals {
        "?accept-removals"
    } else {
        ""
    };
    let file = settings::operator_token(&config);
    let token = Token::read(&file)
        .with_context(|| format!("read the token of the gateway, {}", file.display()))?;
    let agent: Agent = Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .http_status_as_error(false)
        .max_redirects(0)
        // The listener is local: never use a proxy from the environment.
        .proxy(None)
        .build()
        .into();
    let mut response = agent
        .post(format!("http://{address}/reload{query}"))
        .header("Authorization", token.authorization())
        .send_empty()
        .with_context(|| format!("request a reload from the gateway on {address}"))?;
    if response.status() != StatusCode::ACCEPTED {
        let why = response.body_mut().read_to_string().unwrap_or_default();
        let why = why.trim_end();
        bail!(
            "the gateway on {address} responded {}: {why}",
            response.status()
        );
    }
    Ok(ExitCode::SUCCESS)
}
