//! `waypost releases` and `waypost promote`: lists the releases of a project and rolls back.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context as _, bail};

use super::check::ignore_broken_pipe;
use super::deploying;
use super::project;
use super::settings::{self, Settings};
use crate::config;
use crate::deploy::Timestamp;
use crate::release::ReleaseId;
use crate::site::ProjectId;
use crate::store::Store;

/// How many digits of an id are needed at least, so that a typing error matches nothing.
const DIGITS_MIN: usize = 4;

/// List the stored releases of a project, the current one first
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The project
    #[arg(value_parser = project)]
    pub project: ProjectId,
    /// Where the store is.
    #[command(flatten)]
    pub settings: Settings,
}

/// Serve a stored release of a project again, for example to roll back
#[derive(Clone, Debug, clap::Args)]
pub struct PromoteArgs {
    /// The project
    #[arg(value_parser = project)]
    pub project: ProjectId,
    /// The id of the release, or its first 4 or more digits
    pub release: String,
    /// Where the store is.
    #[command(flatten)]
    pub settings: Settings,
}

/// Serve the release before the current one again: of a project, or of all that have changed
///
/// Of a project that has no earlier release in its history, nothing changes.
#[derive(Clone, Debug, clap::Args)]
pub struct RollbackArgs {
    /// The project
    #[arg(value_parser = project, required_unless_present = "since", conflicts_with = "since")]
    pub project: Option<ProjectId>,
    /// Every project whose current release was promoted at this time or later: it gets the newest
    /// one from before. A time like 2027-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = Timestamp::parse)]
    pub since: Option<Timestamp>,
    /// Where the store is.
    #[command(flatten)]
    pub settings: Settings,
}

/// Prints a line for each release. If there is none, a line says in which store, and the command
/// fails.
///
/// # Errors
///
/// When the configuration or the store cannot be used.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?;
    let store = settings::open_store(&config)?;
    let project = &args.project;
    let lines = list(&store, project)?;
    if lines.is_empty() {
        let place = place(&config.store);
        writeln!(io::stderr(), "there is no release of {project} in {place}")
            .context("print the outcome")?;
        return Ok(ExitCode::FAILURE);
    }
    let printed = io::stdout().write_all(lines.as_bytes());
    ignore_broken_pipe(printed).context("print the releases")?;
    Ok(ExitCode::SUCCESS)
}

/// Promotes a release again: a new generation with an old release.
///
/// # Errors
///
/// When the release is not in the store, or the store cannot be used.
pub fn promote(args: &PromoteArgs) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?;
    let store = settings::open_store(&config)?;
    let project = &args.project;
    let release = find(&store, project, &args.release)?;
    // Newer than any build that is running.
    let fence = store.next_fence(project, deploying::last_generation(&config, project)?)?;
    let pointer = store.promote(project, release, fence)?;
    let fence = pointer.current.fence();
    writeln!(io::stdout(), "promoted {release} of {project} as {fence}")
        .context("print the outcome")?;
    Ok(ExitCode::SUCCESS)
}

/// Promotes earlier releases again, each as a new generation.
///
/// # Errors
///
/// When a project has no earlier release, or the store cannot be used.
pub fn rollback(args: &RollbackArgs) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?;
    let store = settings::open_store(&config)?;
    let mut projects = match &args.project {
        Some(project) => vec![project.clone()],
        None => store.pointers()?,
    };
    projects.sort();
    let since = args.since.map_or(0, |since| since.millis() / 1000);
    let mut outcome = ExitCode::SUCCESS;
    for project in &projects {
        let Some(pointer) = store.current(project)? else {
            if args.project.is_some() {
                bail!("{project} has no release");
            }
            continue;
        };
        let current = pointer.current;
        if current.promoted_at < since {
            continue;
        }
        let earlier = pointer.history.iter().find(|earlier| match args.since {
            Some(_) => earlier.promoted_at < since,
            None => earlier.release != current.release,
        });
        let line = match earlier {
            Some(earlier) => {
                // Newer than any build that is running.
                let at_least = deploying::last_generation(&config, project)?;
                let fence = store.next_fence(project, at_least)?;
                let pointer = store.promote(project, earlier.release, fence)?;
                let (release, fence) = (earlier.release, pointer.current.fence());
                format!("promoted {release} of {project} as {fence}")
            }
            None => {
                outcome = ExitCode::FAILURE;
                format!("{project} has no earlier release, so nothing has changed")
            }
        };
        writeln!(io::stdout(), "{line}").context("print the outcome")?;
    }
    Ok(outcome)
}

/// Returns the place of the releases, as the configuration names it.
fn place(store: &config::Store) -> String {
    match store.shared() {
        Some(shared) => shared.config.objects.url.to_string(),
        None => store.local().path.display().to_string(),
    }
}

fn list(store: &Store, project: &ProjectId) -> anyhow::Result<String> {
    let promotions = store.releases(project)?;
    let lines = promotions.iter().enumerate().map(|(nth, promotion)| {
        let mark = if nth == 0 { '*' } else { ' ' };
        let promoted_at = UNIX_EPOCH + Duration::from_secs(promotion.promoted_at);
        let (release, fence) = (promotion.release, promotion.fence());
        format!(
            "{mark} {release}  {fence:>8}  {}\n",
            httpdate::fmt_http_date(promoted_at)
        )
    });
    Ok(lines.collect())
}

/// Finds a release by its id, or by its first digits among the releases of a project.
fn find(store: &Store, project: &ProjectId, digits: &str) -> anyhow::Result<ReleaseId> {
    if let Ok(release) = ReleaseId::parse(digits) {
        return Ok(release);
    }
    if digits.len() < DIGITS_MIN {
        bail!("give at least {DIGITS_MIN} digits of the release's id");
    }
    let promotions = store.releases(project)?;
    let mut found = promotions
        .iter()
        .map(|promotion| promotion.release)
        .filter(|release| release.to_string().starts_with(digits));
    match (found.next(), found.next()) {
        (Some(release), None) => Ok(release),
        (Some(_), Some(_)) => bail!("{project} has several releases whose id begins with {digits}"),
        (None, _) => bail!("{project} has no release whose id begins with {digits}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Installation;
    use super::*;
    use crate::release::{Release, ReleaseFile, ReleasePath};

    fn acme() -> ProjectId {
        ProjectId::parse("acme").unwrap()
    }

    fn installation_with(texts: &[&'static str]) -> (Installation, Vec<ReleaseId>) {
        let installation = Installation::new();
        let store = installation.store();
        let promoted = texts.iter().map(|text| {
            let mut builder = Release::builder();
            let file = ReleaseFile::new(*text, "text/plain");
            builder
                .insert(ReleasePath::parse("a").unwrap(), file)
                .unwrap();
            let id = store.put(&builder.finish()).unwrap();
            let fence = store.next_fence(&acme(), 0).unwrap();
            store.promote(&acme(), id, fence).unwrap();
            id
        });
        let ids = promoted.collect();
        (installation, ids)
    }

    #[test]
    fn the_current_release_is_listed_first_and_marked() {
        let (installation, ids) = installation_with(&["one", "two"]);
        let lines = list(&installation.store(), &acme()).unwrap();
        let lines: Vec<_> = lines.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(
            lines[0].starts_with(&format!("* {}       2.0  ", ids[1])),
            "{}",
            lines[0]
        );
        assert!(
            lines[1].starts_with(&format!("  {}       1.0  ", ids[0])),
            "{}",
            lines[1]
        );
    }

    #[test]
    fn a_project_without_releases_fails() {
        let (installation, _) = installation_with(&[]);
        let args = Args {
            project: acme(),
            settings: installation.settings(),
        };
        assert_eq!(run(&args).unwrap(), ExitCode::FAILURE);
    }

    #[test]
    fn rolling_back_promotes_the_old_release_anew() {
        let (installation, ids) = installation_with(&["one", "two"]);
        let args = |release: &str| PromoteArgs {
            project: acme(),
            release: release.to_owned(),
            settings: installation.settings(),
        };
        let digits = ids[0].to_string();
        assert_eq!(promote(&args(&digits[..8])).unwrap(), ExitCode::SUCCESS);
        let current = installation
            .store()
            .current(&acme())
            .unwrap()
            .unwrap()
            .current;
        assert_eq!((current.release, current.generation), (ids[0], 3));

        for wrong in ["", "abc", "zzzz", &"0".repeat(64)] {
            promote(&args(wrong)).unwrap_err();
        }
        let after = installation
            .store()
            .current(&acme())
            .unwrap()
            .unwrap()
            .current;
        assert_eq!(after, current);
    }
}
