//! `waypost domain`: adds, shows, checks, lists and removes the domains of a site.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Subcommand;

use super::project;
use super::settings::Acting;
use super::site::{admin, operator, print};
use crate::deploy::sites::{Condition, Domain, Refused, Shown};
use crate::site::{Host, InvalidHost, ProjectId};
use crate::store::OwnershipState;

/// How often the result of a check is asked for.
const POLL: Duration = Duration::from_millis(200);

/// The arguments of the command.
pub type Args = Acting<Action>;

/// The action of the command.
#[derive(Clone, Debug, Subcommand)]
pub enum Action {
    /// Add a domain to a site, as its last one
    Add(Target),
    /// Show the state of a domain, what is in the way, and which DNS records it needs
    Show(Target),
    /// Let a running gateway check the DNS of a domain now, and show its state
    Check(Target),
    /// Remove a domain from a site
    Remove(Target),
    /// List the domains of a site, the canonical one first, or those of all sites
    List {
        /// The project of the site [default: all sites]
        #[arg(value_parser = project)]
        project: Option<ProjectId>,
        /// Only domains in this state: pending, verified, active, dangling or quarantined
        #[arg(long, value_name = "STATE", value_parser = state)]
        state: Option<OwnershipState>,
    },
}

/// A domain of a site.
#[derive(Clone, Debug, clap::Args)]
pub struct Target {
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

fn state(text: &str) -> Result<OwnershipState, String> {
    let mut all = OwnershipState::ALL.into_iter();
    all.find(|state| state.as_str() == text)
        .ok_or_else(|| "it is not a state of a domain".to_owned())
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
            print(&details(&domain))?;
        }
        Action::Show(Target { project, host }) => {
            print(&details(&admin.domain(&caller, project, host)?))?;
        }
        Action::Check(Target { project, host }) => {
            let checked = |domain: &Domain| domain.ownership.as_ref().and_then(|s| s.checked_at);
            let before = match admin.check_domain(&caller, project, host) {
                Ok(domain) => checked(&domain),
                // A recent result is shown.
                Err(Refused::TooSoon(_)) => {
                    print(&details(&admin.domain(&caller, project, host)?))?;
                    return Ok(ExitCode::SUCCESS);
                }
                Err(refused) => return Err(refused.into()),
            };
            let ends_at = Instant::now() + 2 * config.verification.check_timeout;
            loop {
                let domain = admin.domain(&caller, project, host)?;
                if checked(&domain) != before {
                    print(&details(&domain))?;
                    break;
                }
                if Instant::now() > ends_at {
                    bail!("no gateway has checked {host}: does one run with this store?");
                }
                std::thread::sleep(POLL);
            }
        }
        Action::Remove(Target { project, host }) => {
            admin.remove_domain(&caller, project, host, &condition)?;
            print(&format!("removed {host} from {project}\n"))?;
        }
        Action::List { project, state } => {
            let is_listed = |domain: &Domain| {
                let shown = domain.ownership.as_ref().map(|shown| shown.state);
                state.is_none() || shown == *state
            };
            let lines: String = match project {
                Some(project) => {
                    let mut domains = admin.domains(&caller, project)?;
                    domains.retain(is_listed);
                    domains.iter().map(line).collect()
                }
                None => {
                    let mut domains = admin.all_domains(&caller)?;
                    domains.retain(|(_, domain)| is_listed(domain));
                    let lines = domains.iter();
                    lines
                        .map(|(project, domain)| format!("{project}  {}", line(domain)))
                        .collect()
                }
            };
            print(&lines)?;
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
    let state = match &domain.ownership {
        Some(shown) => format!("  {}", shown.state),
        None => String::new(),
    };
    format!("{}  {canonical}  {served}{state}\n", domain.host)
}

/// Returns the line of a domain, and below it what is in the way and what to create.
fn details(domain: &Domain) -> String {
    let mut text = line(domain);
    if let Some(Shown {
        in_the_way,
        records,
        ..
    }) = &domain.ownership
    {
        for why in in_the_way {
            text.push_str(&format!("  in the way: {why}\n"));
        }
        for record in records {
            let (kind, name, value) = (record.kind, &record.name, &record.value);
            text.push_str(&format!(
                "  DNS record: {name} {kind} {value} ({})\n",
                record.purpose
            ));
        }
    }
    if let Some(why) = &domain.certificate_trouble {
        text.push_str(&format!("  no certificate: {why}\n"));
    }
    text
}
