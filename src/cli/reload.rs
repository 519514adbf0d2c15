//! `waypost reload`: asks a running gateway to read all site records and pointers again.
//!
//! A gateway notices changes by itself. The command is for the one change that it does not
//! make by itself: removing more than a tenth of its sites at once.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use ureq::Agent;

use super::settings::Settings;

/// How long the gateway may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Ask a running gateway to read site records and releases again
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Also remove sites whose records are gone, when they are more than a tenth of all
    #[arg(long)]
    pub accept_removals: bool,
    /// The configuration, which says where the gateway's operator listener is.
    #[command(flatten)]
    pub settings: Settings,
}

/// Asks, and returns once the gateway has accepted the request.
///
/// # Errors
///
/// When no gateway listens, or it answers with anything but 202.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?;
    let address = config
        .listen
        .operator
        .context("`listen.operator` is switched off")?;
    let query = if args.accept_removals {
        "?accept-removals"
    } else {
        ""
    };
    let agent: Agent = Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        // The listener is this machine's own: never through a proxy of the environment.
        .proxy(None)
        .max_redirects(0)
        .http_status_as_error(false)
        .build()
        .into();
    let response = agent
        .post(format!("http://{address}/reload{query}"))
        .send_empty()
        .with_context(|| format!("ask the gateway on {address}"))?;
    if response.status() != 202 {
        bail!("the gateway on {address} answered {}", response.status());
    }
    Ok(ExitCode::SUCCESS)
}
