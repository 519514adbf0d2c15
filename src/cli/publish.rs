//! `waypost publish`: builds a directory of documentation and serves it as a project.
//!
//! It builds, stores and promotes a release as an update does, without queue and worker. A
//! running gateway with the same store serves the release within a second.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;

use super::deploying;
use super::settings::{self, Settings};
use super::{Documentation, project};
use crate::build::NAVIGATION_PATH;
use crate::config::Config;
use crate::release::Release;
use crate::site::{ProjectId, Site};
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
    let site = site(&config, &args.project);
    let documentation = Documentation {
        allow_empty: args.allow_empty,
        ..args.documentation.clone()
    };
    let mut built =
        documentation.build(&config.service, &config.specifications, site.as_deref())?;
    let store = settings::open_store(&config)?;
    if let Some(before) = navigation_before(&store, &args.project)? {
        built.report.add(built.all_removed(&before));
    }
    let mut out = io::stdout();
    writeln!(out, "{}", built.report).context("print the report")?;
    if built.report.publishable().is_err() {
        return Ok(ExitCode::FAILURE);
    }
    // Newer than any build that is running.
    let at_least = deploying::last_generation(&config, &args.project)?;
    let pointer = publish(&store, &args.project, &built.release, at_least)?;
    let (release, fence) = (pointer.current.release, pointer.current.fence());
    let project = &args.project;
    writeln!(out, "promoted {release} of {project} as {fence}").context("print the outcome")?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the record of a project's site, if it can be read. It only adds links to the
/// source of each page, so a release can be published without it.
fn site(config: &Config, project: &ProjectId) -> Option<Arc<Site>> {
    let (sites, _changes) = settings::read_sites(config).ok()?;
    sites.get(project).map(Arc::clone)
}

/// Returns the navigation of the current release; `None` if there is none, or it is damaged: then
/// this publication mends it.
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

/// Puts and promotes a release as the newest of its project.
fn publish(
    store: &Store,
    project: &ProjectId,
    release: &Release,
    at_least: u64,
) -> anyhow::Result<Pointer> {
    let id = store.put(release)?;
    let mut attempts = 0;
    loop {
        let fence = store.next_fence(project, at_least)?;
        match store.promote(project, id, fence) {
            Err(PromoteError::Stale { .. }) if attempts < ATTEMPTS_MAX => attempts += 1,
            outcome => return Ok(outcome?),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::testing::Installation;
    use super::*;
    use crate::site::Service;

    fn args(installation: &Installation, docs: &Path) -> Args {
        Args {
            documentation: Documentation {
                path: docs.to_owned(),
                root: Some(docs.to_owned()),
                service_name: None,
                fetch_from: Vec::new(),
                lenient: false,
                allow_empty: false,
            },
            project: ProjectId::parse("acme").unwrap(),
            allow_empty: false,
            settings: installation.settings(),
        }
    }

    #[test]
    fn publish_makes_the_release_current() {
        let installation = Installation::new();
        let docs = installation.documentation("---\nname: pay\ndescription: Pays.\n---\n");
        let args = args(&installation, &docs);

        assert_eq!(run(&args).unwrap(), ExitCode::SUCCESS);

        let store = installation.store();
        let current = store.current(&args.project).unwrap().unwrap().current;
        assert_eq!(
            current.release,
            args.documentation
                .build(&Service::default(), &Default::default(), None)
                .unwrap()
                .release
                .id()
        );
        assert_eq!(current.generation, 1);
        run(&args).unwrap();
        let again = store.current(&args.project).unwrap().unwrap().current;
        assert_eq!((again.release, again.generation), (current.release, 2));
    }

    #[test]
    fn skills_have_the_name_of_the_configured_service() {
        let installation = Installation::new();
        let docs = installation.documentation("---\nname: pay\ndescription: Pays.\n---\n");
        let skill = docs.join(".docs/skills/refund");
        fs::create_dir_all(&skill).unwrap();
        let text = "---\nname: refund\ndescription: Refunds.\n---\n";
        fs::write(skill.join("SKILL.md"), text).unwrap();
        let args = args(&installation, &docs);
        let conf = args.settings.conf.as_ref().unwrap();
        let written = fs::read_to_string(conf).unwrap();
        fs::write(conf, format!("service: {{ name: docs }}\n{written}")).unwrap();

        run(&args).unwrap();

        let store = installation.store();
        let current = store.current(&args.project).unwrap().unwrap().current;
        let inventory = store.inventory(current.release).unwrap();
        assert!(inventory.get("skills/refund/SKILL.md").is_some());
    }

    #[test]
    fn documentation_with_errors_is_not_published() {
        let installation = Installation::new();
        let docs = installation.documentation("");
        let args = args(&installation, &docs);
        assert_eq!(run(&args).unwrap(), ExitCode::FAILURE);
        assert_eq!(installation.store().current(&args.project).unwrap(), None);
    }

    #[test]
    fn an_invalid_configuration_fails_before_the_build() {
        let installation = Installation::new();
        let docs = installation.documentation("---\nname: pay\ndescription: Pays.\n---\n");
        let args = args(&installation, &docs);
        let conf = args.settings.conf.as_ref().unwrap();
        fs::write(conf, "stoer: 1\nlisten: 2\n").unwrap();
        let error = run(&args).unwrap_err().to_string();
        assert!(
            error.contains(":1:1: ") && error.contains(":2:9: "),
            "{error}"
        );
    }
}
