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

use super::{Documentation, sandboxed};
use crate::deploy::run::{Build, BuiltRelease, Limits, Session};
use crate::isolation::Mode;
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
    /// Write the release even if there are errors; the exit status is still 1
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
    let build = Build {
        place: args.documentation.place()?,
        options: args.documentation.options(&Service::default()),
        edit_below: Box::default(),
        keep_going: args.keep_going,
    };
    let specifications = args
        .documentation
        .specifications(&remote::Config::default());
    let (mode, limits) = (Mode::default(), Limits::default());
    let act = async |session: &Session| {
        let built = session.build(&build, None).await?;
        sandboxed::report_missing(built.in_force)?;
        writeln!(io::stdout(), "{}", built.report).context("print the report")?;
        if let Some(release) = &built.release {
            let files = |directory: &Path| write_files(session, release, directory);
            write(&files, &args.out)
                .with_context(|| format!("write the release to {}", args.out.display()))?;
        }
        Ok(built.has_errors)
    };
    let has_errors = sandboxed::run(mode, &limits, specifications, act)?;
    Ok(match has_errors {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// Writes a release to a directory, by renaming a temporary one.
fn write(files: &dyn Fn(&Path) -> anyhow::Result<()>, out: &Path) -> anyhow::Result<()> {
    let replaces = is_replaceable(out)?;
    let name = out.file_name().context("the directory has no name")?;
    let beside = |what: &str| {
        let name = name.to_string_lossy();
        out.with_file_name(format!(".{name}.{}.{what}", std::process::id()))
    };
    let (partial, old) = (beside("partial"), beside("old"));
    let written = files(&partial).and_then(|()| {
        if replaces {
            fs::rename(out, &old)?;
        }
        Ok(fs::rename(&partial, out)?)
    });
    if let Err(error) = written {
        // The first failure is reported. A directory that cannot be removed only uses disk space.
        let _removed = fs::remove_dir_all(&partial);
        return Err(error);
    }
    if replaces {
        fs::remove_dir_all(&old).with_context(|| format!("remove {}", old.display()))?;
    }
    Ok(())
}

fn write_files(session: &Session, release: &BuiltRelease, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    session.write_files(release, &to.join(FILES))?;
    Ok(fs::write(
        to.join(INVENTORY),
        release.inventory().to_bytes(),
    )?)
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
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Writes a release that has one file.
    fn with_file(name: &'static str) -> impl Fn(&Path) -> anyhow::Result<()> {
        move |directory: &Path| {
            fs::create_dir_all(directory)?;
            fs::write(directory.join(INVENTORY), "{}")?;
            Ok(fs::write(directory.join(name), "")?)
        }
    }

    #[test]
    fn an_earlier_release_is_replaced_whole() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("out");
        write(&with_file("pay"), &out).unwrap();
        write(&with_file("refund"), &out).unwrap();
        assert_eq!(names(&out), ["inventory.json", "refund"]);
        assert_eq!(names(directory.path()), ["out"]);
    }

    #[test]
    fn a_directory_with_other_files_is_not_changed() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("out");
        fs::create_dir(&out).unwrap();
        fs::write(out.join("thesis.txt"), "years of work").unwrap();
        write(&with_file("pay"), &out).unwrap_err();
        assert_eq!(names(&out), ["thesis.txt"]);
        assert_eq!(names(directory.path()), ["out"]);
    }
}
