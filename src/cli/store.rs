//! `waypost store`: finds and repairs damage in the store; makes, migrates and fills a store in
//! PostgreSQL and an object store.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Subcommand;

use super::documents::{self, CopiedDocuments, Way};
use super::settings::{self, Settings};
use crate::clock::Clock;
use crate::config::Config;
use crate::numbers;
use crate::store::audit::Who;
use crate::store::copy::{self, Copied};
use crate::store::{CheckResult, Local, Shared, Store, local};

/// Check the store, or make one in PostgreSQL and an object store
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
    /// Make the tables of the store in the database of `store.postgres`
    ///
    /// They are in a schema of their own, `waypost_store`. The place of `store.objects` gets an
    /// object that names the store. Tables and objects that exist are not changed.
    Init {
        /// Also in a database that has tables of other programs
        #[arg(long)]
        shared: bool,
    },
    /// Raise the tables to the version of this program
    Migrate,
    /// Copy the store of a node into the database and the object store, or back
    ///
    /// It copies releases, the pointers of sites and their history, site records, the hosts of each
    /// site, the key that makes ownership tokens, admin keys, tokens of edges, certificates with
    /// their accounts and orders, keys of session tickets, and the numbers for owners. It does not
    /// copy the audit log. You can repeat the command: it skips documents and releases that were
    /// copied before, and never replaces a pointer by an older one. If both have numbers of a day,
    /// the larger counts stay.
    Copy {
        /// The directory of a store, to copy from
        #[arg(long, value_name = "DIRECTORY", required_unless_present = "to")]
        from: Option<PathBuf>,
        /// The directory of a store, to copy to; it is made if it does not exist
        #[arg(long, value_name = "DIRECTORY", conflicts_with = "from")]
        to: Option<PathBuf>,
    },
}

/// Runs the action.
///
/// # Errors
///
/// When the configuration or the store cannot be used.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?;
    let repair = match &args.action {
        Action::Check { repair } => repair,
        other => return shared(&config, other),
    };
    let store = settings::open_store(&config)?;
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

/// Runs an action on a store in PostgreSQL.
fn shared(config: &Config, action: &Action) -> anyhow::Result<ExitCode> {
    let service = config.service.domain.as_str();
    let settings = config.store.shared().context(
        "`store.postgres.url` is not configured; the store in `store.local.path` is made when it \
         is opened",
    )?;
    let done = match action {
        Action::Init { shared } => match Shared::init(&settings.config, service, *shared)? {
            true => format!("made the store of {service}"),
            false => format!("the store of {service} is there already"),
        },
        Action::Migrate => {
            let version = Shared::migrate(&settings.config, service)?;
            format!("the store of {service} has schema {version}")
        }
        Action::Copy { from, to } => {
            let store = settings::open_store(config)?;
            if let Store::Shared(shared) = &store {
                shared.check_reachable()?;
            }
            let ((copied, days), place, way) = match (from, to) {
                (Some(from), _) => {
                    anyhow::ensure!(Local::exists(from), "{} is not a store", from.display());
                    (copy(&directory(config, from)?, &store)?, from, Way::In)
                }
                (None, Some(to)) => (copy(&store, &directory(config, to)?)?, to, Way::Out),
                (None, None) => anyhow::bail!("give `--from` or `--to`"),
            };
            if days > 0 {
                writeln!(io::stdout(), "copied {days} days of numbers").context("print")?;
            }
            if let Store::Shared(shared) = &store {
                print_copied(&documents::copy(config, shared, place, way)?)?;
            }
            for project in &copied.newer {
                let line = format!("{project} is newer there, and stays");
                writeln!(io::stderr(), "{line}").context("print")?;
            }
            format!(
                "copied {} releases, {} pointers and {} site records",
                copied.releases, copied.pointers, copied.sites
            )
        }
        Action::Check { .. } => String::new(),
    };
    writeln!(io::stdout(), "{done}").context("print")?;
    Ok(ExitCode::SUCCESS)
}

/// Opens the directory of a store with the settings of the configured one.
fn directory(config: &Config, path: &Path) -> anyhow::Result<Store> {
    let settings = local::Config {
        path: path.to_owned(),
        ..config.store.local().clone()
    };
    Ok(Store::Local(Local::open(&settings, Clock::System)?))
}

/// Copies one store into the other. Also returns how many days of numbers were written.
fn copy(from: &Store, to: &Store) -> anyhow::Result<(Copied, u64)> {
    let who = Who {
        user: std::env::var("USER").ok().map(Into::into),
        ..Who::default()
    };
    let copied = copy::copy(from, to, &who, &Clock::System)?;
    let days = numbers::copy(from, to).context("copy the numbers for owners")?;
    Ok((copied, days))
}

/// Prints which documents were copied, if there are any.
fn print_copied(copied: &CopiedDocuments) -> anyhow::Result<()> {
    for what in &copied.left_out {
        writeln!(io::stderr(), "left out: {what}").context("print")?;
    }
    let CopiedDocuments {
        certificates,
        keys,
        edges,
        ..
    } = copied;
    if certificates + keys + edges > 0 {
        let line = format!(
            "copied {certificates} documents of certificates, {keys} admin keys and {edges} edges"
        );
        writeln!(io::stdout(), "{line}").context("print")?;
    }
    Ok(())
}

fn print(checked: &CheckResult, repair: bool) -> io::Result<()> {
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
