//! `waypost upgrade`: replaces the program of a running gateway.
//!
//! The running gateway starts this program with its own arguments and passes its listening sockets
//! to it. `serve/upgrade.rs` has the steps.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use super::serve::upgrade::{Reply, Request};
use super::settings::{self, Settings};

/// Replace the program of a running gateway, without refusing a connection
///
/// The new process loads all sites before the old one stops. If it fails, the old one goes on and
/// the exit status is 2. Run this with the new program. To return to an earlier version, run it
/// with the earlier program.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The program of the new process [default: this program]
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// The configuration of the running gateway, which has the path of its socket.
    #[command(flatten)]
    pub settings: Settings,
}

/// Asks the gateway, and returns when the new process serves.
///
/// # Errors
///
/// When no gateway answers, or the new process did not serve.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?;
    let path = settings::upgrade_socket(&config)
        .context("`listen.upgrade_socket` is false, so the gateway cannot be upgraded")?;
    let program = match &args.program {
        Some(program) => program.canonicalize(),
        None => std::env::current_exe(),
    };
    let program = program.context("find the program")?;
    let mut stream = UnixStream::connect(&path)
        .with_context(|| format!("no gateway answers on {}", path.display()))?;
    let mut line = serde_json::to_vec(&Request { program })?;
    line.push(b'\n');
    stream.write_all(&line).context("ask the gateway")?;
    let mut reply = String::new();
    BufReader::new(&stream)
        .read_line(&mut reply)
        .context("wait for the gateway")?;
    if reply.is_empty() {
        bail!("the gateway ended before it answered");
    }
    match serde_json::from_str(&reply).context("read the answer of the gateway")? {
        Reply::Serving { process } => {
            writeln!(std::io::stdout(), "process {process} serves").context("print the process")?;
            Ok(ExitCode::SUCCESS)
        }
        Reply::Failed { reason } => bail!("{reason}; the running gateway goes on"),
    }
}
