//! `waypost restore`: puts a node back from a backup.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use super::backup::places;
use super::settings::{self, Settings};
use crate::backup::{self, Backup, CheckedBackup, Directory, Error, Places};
use crate::config::Config;
use crate::isolation::User;
use crate::store::documents::SealKey;

/// Restore a node from a backup
///
/// The whole backup is read and checked before anything is written. The configuration in the
/// backup says where everything goes; with `--conf FILE`, and if that file exists, that file says
/// it. Run this in the directory in which the service is started, while it does not run.
///
/// Exit status: 0 on success, 1 if the backup is damaged, 2 if nothing could be restored.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The directory of backups
    pub directory: PathBuf,
    /// The name of the backup [default: the newest one]
    #[arg(long, value_name = "NAME")]
    pub backup: Option<String>,
    /// List the backups, and do nothing else
    #[arg(long, conflicts_with_all = ["check", "backup", "replace"])]
    pub list: bool,
    /// Read and check the backup, and write nothing
    #[arg(long)]
    pub check: bool,
    /// Rename existing files first. Without this option, nothing is written if one exists
    #[arg(long)]
    pub replace: bool,
    /// Leave the queue in a database as it is: it was restored with the tools of the database
    #[arg(long)]
    pub without_queue: bool,
    /// The file with the key [default: `backup.key_file` of `--conf FILE`]
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// The user that gets the restored files; only root can use it
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// The configuration that says where everything goes.
    #[command(flatten)]
    pub settings: Settings,
}

/// Restores the backup.
///
/// # Errors
///
/// When nothing could be restored, or only a part of it.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let directory = Directory::open(&args.directory)?;
    if args.list {
        list(&directory)?;
        return Ok(ExitCode::SUCCESS);
    }
    let user = match &args.user {
        Some(name) => Some(User::named(name)?),
        None => None,
    };
    let named = args.settings.conf.as_ref().filter(|file| file.exists());
    let configured = match named {
        Some(_) => Some(args.settings.load()?),
        None => None,
    };
    let from_conf = configured.as_ref();
    let from_conf = from_conf.and_then(|config| config.backup.key_file.clone());
    let key_file = args.key_file.clone().or(from_conf);
    let key_file = key_file.context("no key: give `--key-file FILE`")?;
    let key = SealKey::read(&key_file)?;
    let key = key.with_context(|| format!("there is no key file {}", key_file.display()))?;
    let backup = directory.backup(args.backup.as_deref())?;
    let checked = match backup::check(&directory, &backup, &key) {
        Ok(checked) => checked,
        Err(Error::Damaged(lines)) => {
            let mut out = io::stdout().lock();
            for line in lines {
                writeln!(out, "damaged: {line}")?;
            }
            writeln!(
                out,
                "backup {} is damaged; nothing was written",
                backup.name
            )?;
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(error.into()),
    };
    if args.check {
        print(&backup, &checked, "is whole")?;
        return Ok(ExitCode::SUCCESS);
    }
    let (config, file) = match configured {
        Some(config) => (config, None),
        None => of_backup(args, &backup, &checked)?,
    };
    if let Some(socket) = settings::upgrade_socket(&config)
        && UnixStream::connect(&socket).is_ok()
    {
        bail!("a gateway runs with this store: stop it first");
    }
    let mut places = places(&config, file);
    if args.without_queue {
        places.database = None;
    } else if checked.has_queue_rows && places.database.is_none() {
        return Err(Error::NoDatabase.into());
    }
    let restored = backup::restore(&directory, &backup, &key, &checked, &places, args.replace);
    let restored = match restored {
        Err(Error::Occupied(lines)) => bail!(
            "{}\nnothing was written; `--replace` moves these aside, and `--conf FILE` names a \
             configuration with other places",
            lines.join("\n")
        ),
        other => other?,
    };
    if let Some(user) = user {
        give(&places, &restored.stayed, user)?;
    }
    let mut out = io::stdout().lock();
    for (from, to) in &restored.moved {
        writeln!(out, "moved {} to {}", from.display(), to.display())?;
    }
    for path in &restored.stayed {
        writeln!(
            out,
            "{} is there already, and stays as it is",
            path.display()
        )?;
    }
    for name in &restored.left_out {
        writeln!(
            out,
            "not restored, because {name} is not in the configuration"
        )?;
    }
    drop(out);
    print(&backup, &checked, "is restored")?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the configuration in the backup, and the file that it goes to.
fn of_backup(
    args: &Args,
    backup: &Backup,
    checked: &CheckedBackup,
) -> anyhow::Result<(Config, Option<PathBuf>)> {
    let Some(text) = &checked.configuration else {
        return Ok((Config::default(), None));
    };
    let file = args.settings.conf.clone();
    let file = file.or_else(|| backup.manifest.configuration.clone());
    let file =
        file.context("the backup does not say where its configuration was: give `--conf FILE`")?;
    let text = str::from_utf8(text).context("the configuration in the backup is not UTF-8")?;
    let name = file.display().to_string();
    let config = Config::parse(&name, text).map_err(|diagnostics| {
        let lines: Vec<_> = diagnostics.iter().map(ToString::to_string).collect();
        anyhow::anyhow!(
            "the configuration in the backup has mistakes for this version:\n{}",
            lines.join("\n")
        )
    })?;
    Ok((config, Some(file)))
}

/// Makes a user the owner of everything that was restored, but not of files that have `stayed`.
fn give(places: &Places, stayed: &[PathBuf], user: User) -> anyhow::Result<()> {
    let mut paths = vec![
        places.store.path.clone(),
        places.queue.clone(),
        places.sites.clone(),
        places.certificates.clone(),
    ];
    paths.extend(places.tls.clone());
    paths.extend(places.configuration.clone());
    let files = places.files.iter().map(|file| &file.path);
    paths.extend(files.filter(|path| !stayed.contains(path)).cloned());
    for path in paths {
        give_tree(&path, user).with_context(|| format!("give {} to the user", path.display()))?;
    }
    Ok(())
}

fn give_tree(path: &Path, user: User) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            give_tree(&entry?.path(), user)?;
        }
    }
    std::os::unix::fs::lchown(path, Some(user.id), Some(user.group))
}

fn list(directory: &Directory) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    for name in directory.names()? {
        match directory.backup(Some(&name)) {
            Ok(backup) => {
                let manifest = &backup.manifest;
                writeln!(
                    out,
                    "{name}: {} projects, {} releases, {} missing, {} other files, by Waypost {}",
                    manifest.projects,
                    manifest.releases.len(),
                    manifest.missing.len(),
                    manifest.files,
                    manifest.waypost,
                )?;
            }
            Err(error) => writeln!(out, "{name}: {:#}", anyhow::Error::from(error))?,
        }
    }
    Ok(())
}

fn print(backup: &Backup, checked: &CheckedBackup, state: &str) -> io::Result<()> {
    let missing = backup.manifest.missing.len();
    let missing = match missing {
        0 => String::new(),
        count => format!("; {count} releases were damaged when it was made and are not in it"),
    };
    writeln!(
        io::stdout(),
        "backup {} {state}: {} projects, {} releases, {} other files{missing}",
        backup.name,
        checked.projects,
        checked.releases,
        checked.files,
    )
}
