//! `waypost publish`: builds a directory of documentation and serves it as a project.
//!
//! It builds, stores and promotes a release as an update does, without queue and worker. A
//! running gateway with the same store serves the release within a second.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;

use super::settings::{self, Settings};
use super::{Documentation, deploying, project, sandboxed};
use crate::build::NAVIGATION_PATH;
use crate::config::Config;
use crate::deploy::run::{Build, Quota, Session};
use crate::diagnostic::count;
use crate::release::ReleaseId;
use crate::site::{ProjectId, Repository, Service, Site};
use crate::store::{Pointer, PromoteError, ReadError, Store};

/// How often to try again when another promotion came first; each try takes a newer fence.
const ATTEMPTS_MAX: u32 = 10;

/// Build a directory of documentation and serve it as a project
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What to build.
    #[command(flatten)]
    pub documentation: Documentation,
    /// The project that serves it
    #[arg(long, value_name = "ID", value_parser = project)]
    pub project: ProjectId,
    /// Publish the release even if it removes all pages of the site
    #[arg(long)]
    pub allow_empty: bool,
    /// Where the store is.
    #[command(flatten)]
    pub settings: Settings,
}

/// Builds a release and prints its report. If the report has no errors, stores and promotes
/// the release.
///
/// # Errors
///
/// When the configuration, the documentation or the store cannot be used.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?;
    let (site, quota) = site(&config, &args.project);
    let documentation = Documentation {
        allow_empty: args.allow_empty,
        ..args.documentation.clone()
    };
    let build = build(&documentation, &config.service, site.as_deref())?;
    let specifications = documentation.specifications(&config.specifications);
    let store = settings::open_store(&config)?;
    let before = navigation_before(&store, &args.project)?;
    let act = async |session: &Session| {
        let built = session.build(&build, before.as_deref()).await?;
        sandboxed::report_missing(built.in_force)?;
        let mut out = io::stdout();
        writeln!(out, "{}", built.report).context("print the report")?;
        let Some(release) = &built.release else {
            return Ok(ExitCode::FAILURE);
        };
        // Newer than any build that is running.
        let at_least = deploying::last_generation(&config, &args.project)?;
        let project = &args.project;
        let owner = site.as_ref().map_or("", |site| &*site.owner);
        let room = quota.make_room(&store, owner, project, release.inventory())?;
        session.put(&store, release)?;
        let pointer = promote(&store, project, release.inventory().id(), at_least)?;
        let removed = room.removed + quota.trim(&store, owner, project, room);
        if removed > 0 {
            let releases = count(removed, "earlier release");
            writeln!(
                out,
                "removed {releases} of this owner, because its releases use too many bytes"
            )
            .context("print the outcome")?;
        }
        let (release, fence) = (pointer.current.release, pointer.current.fence());
        writeln!(out, "promoted {release} of {project} as {fence}").context("print the outcome")?;
        Ok(ExitCode::SUCCESS)
    };
    sandboxed::run(config.isolation.mode, &config.builds, specifications, act)
}

/// Returns how the documentation is built for a service, and for a site when there is one: pages
/// link to their source in its repository.
fn build(
    documentation: &Documentation,
    service: &Service,
    site: Option<&Site>,
) -> anyhow::Result<Build> {
    let mut options = documentation.options(service);
    options.lenient |= site.is_some_and(|site| site.lenient);
    options.allow_empty |= site.is_some_and(|site| site.allow_empty);
    let repository = site.and_then(|site| site.repository.as_ref());
    options.edit = repository.and_then(Repository::edit_link);
    Ok(Build {
        place: documentation.place()?,
        options,
        edit_below: repository.map_or_else(Box::default, |found| found.directory.clone()),
        keep_going: false,
    })
}

/// Returns the record of a project's site, if it can be read, and the quota of its owner. The
/// record only adds links to the source of each page, so a release can be published without it;
/// then the releases of the project alone count.
fn site(config: &Config, project: &ProjectId) -> (Option<Arc<Site>>, Quota) {
    let local = config.store.local();
    let sites = settings::read_sites(config).ok();
    let sites = sites.map(|(sites, _changes)| sites);
    let site = sites.as_ref().and_then(|sites| sites.get(project));
    let site = site.map(Arc::clone);
    let mut owned: Vec<ProjectId> = Vec::new();
    if let (Some(sites), Some(site)) = (&sites, &site) {
        let all = sites.iter().filter(|other| other.owner == site.owner);
        owned.extend(all.map(|other| other.project.clone()));
    }
    let projects_of = move |_owner: &str| owned.clone();
    let quota = Quota::new(local.owner_bytes_max, Arc::new(projects_of))
        .with_file_bytes_max(config.edges.object_bytes_max);
    (site, quota)
}

/// Returns the navigation of the current release; `None` if there is none, or if it is damaged:
/// then this publication repairs it.
fn navigation_before(store: &Store, project: &ProjectId) -> anyhow::Result<Option<Bytes>> {
    let read = || {
        let Some(pointer) = store.current(project)? else {
            return Ok(None);
        };
        let inventory = store.inventory(pointer.current.release)?;
        let item = inventory.get(NAVIGATION_PATH);
        item.map(|item| store.read(item)).transpose()
    };
    match read() {
        Err(
            ReadError::Damaged { .. } | ReadError::UnknownRelease(_) | ReadError::UnknownContent(_),
        ) => Ok(None),
        read => Ok(read?),
    }
}

/// Promotes a release as the newest of its project.
fn promote(
    store: &Store,
    project: &ProjectId,
    release: ReleaseId,
    at_least: u64,
) -> anyhow::Result<Pointer> {
    let mut attempts = 0;
    loop {
        let fence = store.next_fence(project, at_least)?;
        match store.promote(project, release, fence) {
            Err(PromoteError::Stale { .. }) if attempts < ATTEMPTS_MAX => attempts += 1,
            outcome => return Ok(outcome?),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::testing::Installation;
    use super::*;

    #[test]
    fn an_invalid_configuration_fails_before_the_build() {
        let installation = Installation::new();
        let docs = installation.documentation("---\nname: pay\ndescription: Pays.\n---\n");
        let args = Args {
            documentation: Documentation {
                path: docs.clone(),
                root: Some(docs),
                service_name: None,
                fetch_from: Vec::new(),
                lenient: false,
                allow_empty: false,
            },
            project: ProjectId::parse("acme").unwrap(),
            allow_empty: false,
            settings: installation.settings(),
        };
        let conf = args.settings.conf.as_ref().unwrap();
        fs::write(conf, "stoer: 1\nlisten: 2\n").unwrap();
        let error = run(&args).unwrap_err().to_string();
        assert!(
            error.contains(":1:1: ") && error.contains(":2:9: "),
            "{error}"
        );
    }
}
