//! `waypost backup`: copies everything that a node needs while it runs.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use super::named;
use super::settings::{self, Settings};
use crate::backup::{self, Created, Database, Directory, NamedFile, Places};
use crate::clock::Clock;
use crate::config::Config;
use crate::store::documents::SealKey;

/// Make a backup of this node while it runs
///
/// It has the releases with their pointers, the sites and audit log of the API, admin keys,
/// certificates, the queue of updates, the configuration, the site records in files and the other
/// files that the configuration names: secrets, certificates, authorities. Everything but the files
/// of releases is encrypted with the key of `backup.key_file`. Releases that the directory has
/// already are not copied again.
///
/// Exit status: 0 on success, 1 if the backup was made without damaged releases, or without a queue
/// in a database that did not answer, 2 if no backup was made.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The directory of backups; it is made if it does not exist
    pub directory: PathBuf,
    /// The file with the key [default: `backup.key_file`]
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// How many backups stay in the directory; 0: all [default: `backup.keep`]
    #[arg(long, value_name = "NUMBER")]
    pub keep: Option<usize>,
    /// The configuration of the node.
    #[command(flatten)]
    pub settings: Settings,
}

/// Makes the backup.
///
/// # Errors
///
/// When no backup was made.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?;
    anyhow::ensure!(
        config.store.shared().is_none(),
        "the store is in PostgreSQL and in an object store: back it up with the tools of both, first \
         the database (`pg_dump`), then the bucket; keep `acme.key_file` too; or copy it into a \
         directory with `waypost store copy --to DIRECTORY`, and back that up"
    );
    let key_file = args.key_file.as_ref().or(config.backup.key_file.as_ref());
    let key_file = key_file
        .context("no key: set `backup.key_file` in the configuration, or give `--key-file FILE`")?;
    let places = places(&config, args.settings.file());
    reject_inside(&places.store.path, &args.directory, "the store")?;
    reject_inside(&args.directory, key_file, "the directory of backups")?;
    let store = settings::open_store(&config)?;
    let directory = Directory::create(&args.directory)?;
    let key = key(key_file, &directory)?;
    let keep = args.keep.unwrap_or(config.backup.keep);
    let created = backup::create(&directory, &places, &store, &key, keep, &Clock::System)?;
    print(&created).context("print the outcome")?;
    Ok(match created.damages.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Returns where everything is that a backup holds.
pub(super) fn places(config: &Config, configuration: Option<PathBuf>) -> Places {
    let store = config.store.local();
    Places {
        configuration,
        store: store.clone(),
        queue: config.queue.sqlite.clone(),
        database: database(config),
        sites: config.sites.path.clone(),
        certificates: settings::certificates_path(config),
        tls: config.tls.directory.clone(),
        files: files(config),
    }
}

/// Returns the files that the configuration names.
fn files(config: &Config) -> Vec<NamedFile> {
    let files = named::files(config).into_iter();
    let files = files.map(|named::Named { key, path, kind }| NamedFile {
        key,
        path,
        stays: kind == named::Kind::Authority,
    });
    files.collect()
}

/// Returns the database of the queue, if it is not in a file.
fn database(config: &Config) -> Option<Database> {
    let postgres = &config.queue.postgres;
    postgres.url.as_ref().map(|_url| Database {
        config: postgres.clone(),
        service: config.service.domain.as_str().into(),
    })
}

/// Reads the key. A missing one is made, unless there are backups that another key has encrypted.
fn key(file: &Path, directory: &Directory) -> anyhow::Result<SealKey> {
    if let Some(key) = SealKey::read(file)? {
        return Ok(key);
    }
    if !directory.names()?.is_empty() {
        bail!(
            "the key file {} is missing, and {} has backups that are encrypted with it: restore \
             it, or use another directory",
            file.display(),
            directory.path().display()
        );
    }
    SealKey::create(file)?;
    let made = SealKey::read(file)?.context("read the new key")?;
    writeln!(
        io::stderr(),
        "made the key {}: keep a copy of it in another place than the backups",
        file.display()
    )?;
    Ok(made)
}

/// Returns an error when a path is below another one.
fn reject_inside(above: &Path, path: &Path, what: &str) -> anyhow::Result<()> {
    let real = |path: &Path| -> io::Result<PathBuf> {
        let path = std::path::absolute(path)?;
        // The last parts of it may not exist yet.
        let existing = path.ancestors().find(|above| above.exists());
        let existing = existing.unwrap_or(Path::new("/"));
        let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
        Ok(existing.canonicalize()?.join(rest))
    };
    let (above, inside) = (real(above)?, real(path)?);
    if inside.starts_with(&above) {
        bail!("{} is inside {what}: choose another place", path.display());
    }
    Ok(())
}

fn print(created: &Created) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for damage in &created.damages {
        writeln!(out, "not in the backup: {damage}")?;
    }
    let manifest = &created.manifest;
    writeln!(
        out,
        "backup {}: {} projects, {} releases ({} new), {} other files",
        created.name,
        manifest.projects,
        manifest.releases.len(),
        created.copied,
        manifest.files,
    )?;
    if created.removed > 0 {
        writeln!(out, "removed {} older backups", created.removed)?;
    }
    Ok(())
}
