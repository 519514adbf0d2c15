//! `waypost build`: builds a directory of documentation into a directory with the release.
//!
//! The result is for inspection and for copying elsewhere. `waypost publish` builds into the
//! store and does not need it.
//!
//! ```text
//! OUT/inventory.json      the release's inventory, whose digest is its id
//! OUT/files/…             its files
//! ```
//!
//! The release is written to a temporary directory, which is then renamed, so that the
//! result is never half-written. Only a directory that is empty or holds an earlier release
//! is replaced.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use super::Documentation;
use crate::release::Release;
use crate::site::Service;
use crate::source::remote;

/// The file with the inventory; a directory that has it is treated as a release.
const INVENTORY: &str = "inventory.json";
/// The directory with the files of the release.
const FILES: &str = "files";

/// Build a release from a directory of documentation
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What to build.
    #[command(flatten)]
    pub documentation: Documentation,
    /// The directory for the release; an earlier release in it is replaced
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Write the release also when there are errors; the exit status stays 1
    #[arg(long)]
    pub keep_going: bool,
}

/// Builds a release, prints its report and writes it.
///
/// If there are errors, nothing is written, so a script that ignores the exit status cannot use a
/// broken release. `--keep-going` writes the release anyway.
///
/// # Errors
///
/// When the documentation cannot be read or the release not written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let built = args
        .documentation
        .build(&Service::default(), &remote::Config::default(), None)?;
    writeln!(io::stdout(), "{}", built.report).context("print the report")?;
    let has_errors = built.report.publishable().is_err();
    if !has_errors || args.keep_going {
        write(&built.release, &args.out)
            .with_context(|| format!("write the release to {}", args.out.display()))?;
    }
    Ok(match has_errors {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// Writes a release to a directory, by renaming a temporary one.
fn write(release: &Release, out: &Path) -> anyhow::Result<()> {
    let replaces = is_replaceable(out)?;
    let name = out.file_name().context("the directory has no name")?;
    let beside = |what: &str| {
        let name = name.to_string_lossy();
        out.with_file_name(format!(".{name}.{}.{what}", std::process::id()))
    };
    let (partial, old) = (beside("partial"), beside("old"));
    let written = write_files(release, &partial).and_then(|()| {
        if replaces {
            fs::rename(out, &old)?;
        }
        fs::rename(&partial, out)
    });
    if let Err(error) = written {
        // The first failure is reported. A directory that cannot be removed only uses disk space.
        let _removed = fs::remove_dir_all(&partial);
        return Err(error.into());
    }
    if replaces {
        fs::remove_dir_all(&old).with_context(|| format!("remove {}", old.display()))?;
    }
    Ok(())
}

fn write_files(release: &Release, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for (path, file) in release.files() {
        let path = directory.join(FILES).join(path.as_str());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, &file.bytes)?;
    }
    fs::write(directory.join(INVENTORY), release.inventory_bytes())
}

/// Returns whether there is a directory that may be replaced.
fn is_replaceable(out: &Path) -> anyhow::Result<bool> {
    match fs::read_dir(out) {
        Ok(mut entries) => {
            if entries.next().is_some() && !out.join(INVENTORY).is_file() {
                bail!("the directory is not empty and holds no release");
            }
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::release::Inventory;

    const SKILL: &str = "---\nname: pay\ndescription: Use when paying.\n---\n";

    /// Documentation with this `skill.md`, and where its release goes.
    fn documentation(skill: &str) -> (TempDir, Args) {
        let directory = TempDir::new().unwrap();
        let docs = directory.path().join("docs");
        fs::create_dir(&docs).unwrap();
        fs::write(docs.join("skill.md"), skill).unwrap();
        let args = Args {
            documentation: Documentation {
                root: Some(docs.clone()),
                path: docs,
                service_name: None,
                fetch_from: Vec::new(),
                lenient: false,
                allow_empty: false,
            },
            out: directory.path().join("out"),
            keep_going: false,
        };
        (directory, args)
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_release_directory_has_the_inventory_and_the_listed_files() {
        let (directory, args) = documentation(SKILL);
        assert_eq!(run(&args).unwrap(), ExitCode::SUCCESS);
        let inventory = fs::read(args.out.join("inventory.json")).unwrap();
        let inventory = Inventory::parse(&inventory).unwrap();
        assert_eq!(
            inventory.id(),
            args.documentation
                .build(&Service::default(), &remote::Config::default(), None)
                .unwrap()
                .release
                .id()
        );
        let served = fs::read_to_string(args.out.join("files/skills/pay/SKILL.md")).unwrap();
        assert_eq!(served, SKILL);
        assert_eq!(names(directory.path()), ["docs", "out"]);
    }

    #[test]
    fn an_earlier_release_is_replaced_whole() {
        let (directory, args) = documentation(SKILL);
        run(&args).unwrap();
        let skill = args.documentation.path.join("skill.md");
        fs::write(skill, SKILL.replace("pay", "refund")).unwrap();
        run(&args).unwrap();
        assert_eq!(names(&args.out.join("files/skills")), ["refund"]);
        assert_eq!(names(directory.path()), ["docs", "out"]);
    }

    #[test]
    fn a_directory_with_other_files_is_not_changed() {
        let (directory, args) = documentation(SKILL);
        fs::create_dir(&args.out).unwrap();
        fs::write(args.out.join("thesis.txt"), "years of work").unwrap();
        run(&args).unwrap_err();
        assert_eq!(names(&args.out), ["thesis.txt"]);
        assert_eq!(names(directory.path()), ["docs", "out"]);
    }

    #[test]
    fn a_build_with_errors_fails_and_writes_nothing() {
        let (directory, args) = documentation("");
        assert_eq!(run(&args).unwrap(), ExitCode::FAILURE);
        assert_eq!(names(directory.path()), ["docs"]);
    }

    #[test]
    fn a_release_with_errors_is_written_on_request_and_the_command_fails() {
        let (directory, args) = documentation(SKILL);
        let args = Args {
            keep_going: true,
            ..args
        };
        let docs = &args.documentation.path;
        let config = r#"{"name": "A", "navigation": {"pages": ["good", "bad"]}}"#;
        fs::write(docs.join("docs.json"), config).unwrap();
        fs::write(docs.join("good.mdx"), "Fine.").unwrap();
        fs::write(docs.join("bad.mdx"), b"\xff").unwrap();
        assert_eq!(run(&args).unwrap(), ExitCode::FAILURE);
        let pages = names(&args.out.join("files/pages"));
        assert!(pages.contains(&"good.html".to_owned()), "{pages:?}");
        assert!(!pages.contains(&"bad.html".to_owned()), "{pages:?}");
        assert_eq!(names(directory.path()), ["docs", "out"]);
    }
}
