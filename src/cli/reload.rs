//! `waypost reload`: asks a running gateway to compare everything with the disk.
//!
//! A gateway notices changes by itself. This is for what it refuses to do unasked: taking
//! away more than a tenth of its sites at once.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::settings::Settings;

/// How long the gateway may take to say that it has understood.
const PATIENCE: Duration = Duration::from_secs(5);

/// Ask a running gateway to compare everything with the disk
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Also when that takes away more than a tenth of the sites
    #[arg(long)]
    pub accept_removals: bool,
    /// The configuration, which says where the gateway's operator listener is.
    #[command(flatten)]
    pub settings: Settings,
}

/// Asks, and returns once the gateway has understood.
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
    let ask = || {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "POST /reload{query} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = ask().with_context(|| format!("ask the gateway on {address}"))?;
    let status = answer.lines().next().unwrap_or_default();
    if !status.starts_with("HTTP/1.1 202") {
        bail!("the gateway on {address} answered {status:?}");
    }
    Ok(ExitCode::SUCCESS)
}
