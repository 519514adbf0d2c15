//! `waypost domain`: adds, shows, lists and removes the domains of a site.

use std::process::ExitCode;

use clap::Subcommand;

use super::project;
use super::settings::Settings;
use super::site::{admin, operator, print};
use crate::deploy::sites::{Condition, Domain};
use crate::site::{Host, InvalidHost, ProjectId};

/// Add, show, list and remove the domains of sites that are kept in the store
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
    /// Where the sites are.
    #[command(flatten)]
    settings: Settings,
}

#[derive(Clone, Debug, Subcommand)]
enum Action {
    /// Add a domain to a site, as its last one
    Add(Target),
    /// Show the state of a domain
    Show(Target),
    /// Remove a domain from a site
    Remove(Target),
    /// List the domains of a site, the canonical one first
    List {
        /// The project of the site
        #[arg(value_parser = project)]
        project: ProjectId,
    },
}

/// A domain of a site.
#[derive(Clone, Debug, clap::Args)]
struct Target {
    /// The project of the site
    #[arg(value_parser = project)]
    project: ProjectId,
    /// The domain
    #[arg(value_parser = host)]
    host: Host,
}

fn host(text: &str) -> Result<Host, InvalidHost> {
    Host::parse(text)
}

/// Runs the action.
///
/// # Errors
///
/// When the configuration or the store cannot be used, or the change is refused.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?;
    let admin = admin(&config)?;
    let caller = operator();
    let condition = Condition::default();
    match &args.action {
        Action::Add(Target { project, host }) => {
            let (domain, _is_new) = admin.add_domain(&caller, project, host, &condition)?;
            print(&line(&domain))?;
        }
        Action::Show(Target { project, host }) => {
            print(&line(&admin.domain(&caller, project, host)?))?;
        }
        Action::Remove(Target { project, host }) => {
            admin.remove_domain(&caller, project, host, &condition)?;
            print(&format!("removed {host} from {project}\n"))?;
        }
        Action::List { project } => {
            let domains = admin.domains(&caller, project)?;
            print(&domains.iter().map(line).collect::<String>())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn line(domain: &Domain) -> String {
    let canonical = match domain.is_canonical {
        true => "canonical",
        false => "-",
    };
    let served = match domain.is_served {
        true => "served",
        false => "not served",
    };
    format!("{}  {canonical}  {served}\n", domain.host)
}
