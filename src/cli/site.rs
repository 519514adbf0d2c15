//! `waypost site`: lists, shows, writes and removes sites in the store of this node.
//!
//! It changes the same records as the admin API, with the same checks, and needs no running
//! gateway. A running gateway serves a change within a moment.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, bail};
use clap::{Subcommand, ValueEnum};
use serde_json::{Map, Number, Value};

use super::check::ignore_broken_pipe;
use super::project;
use super::settings::{self, Acting};
use crate::clock::{Clock, Day};
use crate::config::Config;
use crate::deploy::Timestamp;
use crate::deploy::keys::Role;
use crate::deploy::sites::{Caller, Condition, SiteAdmin, reading_again};
use crate::site::ProjectId;
use crate::store::audit::{Filter, Who};
use crate::syntax::strict::Report;
use crate::syntax::{Data, Value as Yaml};
use crate::telemetry::logging::printable;

/// The arguments of the command.
pub type Args = Acting<Action>;

/// The action of the command.
#[derive(Clone, Debug, Subcommand)]
pub enum Action {
    /// List all sites: project, owner, where the record is, default host, domains
    List {
        /// List only the sites of this owner
        #[arg(long)]
        owner: Option<String>,
    },
    /// Print the record of a site as JSON
    Show {
        /// The project of the site
        #[arg(value_parser = project)]
        project: ProjectId,
    },
    /// Create a site or replace its record, and print the record
    Set {
        /// The project of the site
        #[arg(value_parser = project)]
        project: ProjectId,
        /// A file with the record in YAML or JSON; `-` reads standard input
        file: PathBuf,
        /// Change only the keys in the file; a key with `null` is removed (RFC 7396)
        #[arg(long)]
        merge: bool,
    },
    /// Remove a site; its releases stay for the time that the store keeps them
    Delete {
        /// The project of the site
        #[arg(value_parser = project)]
        project: ProjectId,
    },
    /// Print the numbers of a site: requests for pages, readers, searches, votes
    Numbers {
        /// The project of the site
        #[arg(value_parser = project)]
        project: ProjectId,
        /// The first day, as 2027-01-31; by default 27 days before the last one
        #[arg(long, value_parser = Day::parse)]
        from: Option<Day>,
        /// The last day; by default this one (UTC)
        #[arg(long, value_parser = Day::parse)]
        to: Option<Day>,
        /// How it is printed
        #[arg(long, value_enum, default_value_t)]
        format: NumbersFormat,
    },
    /// Print the latest changes of sites, one JSON object in each line, the newest first
    Audit {
        /// Only changes of this project
        #[arg(value_parser = project)]
        project: Option<ProjectId>,
        /// At most this many
        #[arg(long, default_value = "100")]
        limit: usize,
    },
}

/// How numbers are printed.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum NumbersFormat {
    /// Tables for people.
    #[default]
    Text,
    /// The JSON of the admin API.
    Json,
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
    match &args.action {
        Action::List { owner } => {
            let (sites, _has_more) = admin.sites(&caller, owner.as_deref(), None, usize::MAX)?;
            let lines: Vec<_> = sites.iter().map(|s| line(&s.members, &config)).collect();
            print(&lines.concat())?;
        }
        Action::Show { project } => {
            let site = admin.site(&caller, project)?;
            print(&String::from_utf8_lossy(&site.text()))?;
        }
        Action::Set {
            project,
            file,
            merge,
        } => {
            let record = read(file)?;
            let condition = Condition::default();
            let done = match merge {
                true => admin.patch(&caller, project, &record, &condition),
                false => admin.put(&caller, project, record, &condition),
            };
            if let Some(after) = done?.after {
                print(&String::from_utf8_lossy(&after.text()))?;
            }
        }
        Action::Delete { project } => {
            admin.delete(&caller, project, &Condition::default())?;
            print(&format!("removed the site {project}\n"))?;
        }
        Action::Numbers {
            project,
            from,
            to,
            format,
        } => {
            if config.store.is_edge() {
                bail!("this node is an edge, which keeps no numbers; ask the node that it follows");
            }
            let numbers = admin.numbers(&caller, project, (*from, *to))?;
            match format {
                NumbersFormat::Text => print(&numbers.to_text())?,
                NumbersFormat::Json => {
                    let (numbers, _has_more) = numbers.to_json(0, usize::MAX);
                    let text = serde_json::to_string_pretty(&numbers).context("print")?;
                    print(&format!("{text}\n"))?;
                }
            }
        }
        Action::Audit { project, limit } => {
            let filter = Filter {
                project: project.as_ref().map(|project| project.as_str().into()),
                limit: *limit,
                ..Filter::default()
            };
            for entry in admin.audit(&caller, filter)?.entries {
                let mut line = serde_json::to_value(&entry).context("print an entry")?;
                line["at"] = Timestamp::from_millis(entry.at).to_string().into();
                print(&format!("{line}\n"))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the administration of the sites of a configuration.
///
/// # Errors
///
/// When the store or the site records cannot be used.
pub(super) fn admin(config: &Config) -> anyhow::Result<SiteAdmin> {
    let store = Arc::new(settings::open_store(config)?);
    let (sites, _changes) = settings::read_sites(config).context("read the site records")?;
    let sites = Arc::new(Mutex::new(sites));
    // A running gateway watches the store.
    let changed = reading_again(&sites);
    let rules = settings::rules(config, &store)?;
    let admin = SiteAdmin::new(
        store,
        config.service.clone(),
        config.private_hosts.clone(),
        sites,
        changed,
        Clock::System,
    )
    .proving(rules);
    if !config.acme.is_on() {
        return Ok(admin);
    }
    let vault = settings::open_vault(config)?;
    Ok(admin.with_certificates(settings::certificate_trouble(vault.documents)))
}

/// Returns the user of this command, who may do everything.
pub(super) fn operator() -> Caller {
    let user = rustix::process::getuid().as_raw();
    Caller {
        role: Role::Operator,
        owner: Box::default(),
        projects: None,
        who: Who {
            user: Some(format!("uid {user}").into()),
            ..Who::default()
        },
    }
}

/// Prints text that may have come from other people.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let printed = io::stdout().write_all(printable(text).as_bytes());
    ignore_broken_pipe(printed).context("print")
}

fn line(site: &Map<String, Value>, config: &Config) -> String {
    let text = |key: &str| site.get(key).and_then(Value::as_str).unwrap_or_default();
    let domains = site.get("domains").and_then(Value::as_array);
    let domains: Vec<&str> = domains
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let kept_in = match text("file") {
        "" => "api",
        file => file,
    };
    format!(
        "{}  {}  {kept_in}  {}.{}  {}\n",
        text("project"),
        text("owner"),
        text("subdomain"),
        config.service.domain,
        domains.join(",")
    )
}

/// Reads a record, in YAML or JSON.
fn read(file: &Path) -> anyhow::Result<Map<String, Value>> {
    let mut text = String::new();
    if file == Path::new("-") {
        io::stdin()
            .read_to_string(&mut text)
            .context("read standard input")?;
    } else {
        text = std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    }
    let name = file.to_string_lossy();
    let report = Report::new("site", &name, &text);
    let documents = report.documents().unwrap_or_default();
    let mut documents = documents.iter().filter(|document| !document.is_null());
    let value = documents.next().map(|document| plain(&document.data));
    if documents.next().is_some() {
        bail!("{name} has more than one record");
    }
    if report.has_errors() {
        let lines: Vec<_> = report.into_vec().iter().map(ToString::to_string).collect();
        bail!("{}", lines.join("\n"));
    }
    match value {
        Some(Value::Object(members)) => Ok(members),
        _ => bail!("{name} is not a record: a mapping is expected"),
    }
}

fn plain(data: &Data) -> Value {
    let below = |value: &Yaml| plain(&value.data);
    match data {
        Data::Null | Data::Unresolved => Value::Null,
        Data::Flag(flag) => (*flag).into(),
        Data::Number(text) => match text.parse::<Number>() {
            Ok(number) => Value::Number(number),
            // YAML has more forms of numbers than JSON.
            Err(_) => (**text).into(),
        },
        Data::Text(text) => (**text).into(),
        Data::List(items) => items.iter().map(below).collect(),
        Data::Map(members) => members
            .iter()
            .map(|member| (member.key.to_string(), below(&member.value)))
            .collect(),
    }
}
