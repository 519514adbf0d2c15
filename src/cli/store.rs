//! `waypost store`: finds and repairs damage in the store.

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Subcommand;

use super::settings::{self, Settings};
use crate::clock::Clock;
use crate::store::Checked;

/// Check the store
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
    /// Where the store is.
    #[command(flatten)]
    settings: Settings,
}

#[derive(Clone, Debug, Subcommand)]
enum Action {
    /// Check all pointers and releases, and report damaged and missing files
    ///
    /// The gateway may run at the same time. Exit status: 0 if nothing is damaged or everything
    /// was repaired, 1 if something is still damaged, 2 if the check could not run.
    Check {
        /// Restore damaged pointers from their copies, make the newest intact release of the
        /// history current where the current one is damaged, and remove old files that no
        /// release needs
        #[arg(long)]
        repair: bool,
    },
}

/// Runs the action.
///
/// # Errors
///
/// When the configuration or the store cannot be used.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = settings::open_store(&args.settings.load()?)?;
    let Action::Check { repair } = &args.action;
    let checked = store.check(*repair, Clock::System.now())?;
    print(&checked, *repair).context("print the outcome")?;
    let is_intact = checked
        .damages
        .iter()
        .all(|damage| damage.repaired.is_some());
    Ok(if is_intact {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn print(checked: &Checked, repair: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for damage in &checked.damages {
        match &damage.repaired {
            Some(repaired) => writeln!(out, "{}; repaired: {repaired}", damage.what)?,
            None => writeln!(out, "{}", damage.what)?,
        }
    }
    writeln!(
        out,
        "{} projects, {} releases, {} files of {} bytes; {} files of {} bytes that no release needs; {} damages",
        checked.projects,
        checked.releases,
        checked.files,
        checked.bytes,
        checked.orphans,
        checked.orphan_bytes,
        checked.damages.len()
    )?;
    if repair {
        let swept = checked.swept;
        writeln!(
            out,
            "removed {} old releases and {} files of {} bytes",
            swept.releases, swept.files, swept.bytes
        )?;
    }
    Ok(())
}
