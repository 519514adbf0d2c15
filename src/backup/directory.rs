//! A directory of backups.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::archive::Reader;
use super::{Error, Manifest};
use crate::clock::Clock;
use crate::store::documents::SealKey;
use crate::store::local;
use crate::store::{Local, Store};
use crate::version::newer_than;

/// The version of the layout and of the manifest that is written, and the highest that is read.
pub(super) const VERSION: u64 = 1;
const FORMAT: &str = "FORMAT";
const FORMAT_PREFIX: &str = "waypost backup ";
const LOCK: &str = "lock";
const RELEASES: &str = "releases";
const BACKUPS: &str = "backups";
const MANIFEST: &str = "manifest.json";
pub(super) const ARCHIVE: &str = "archive";
/// The end of the name of a backup that has not ended.
const PART: &str = ".part";

/// A directory of backups.
#[derive(Debug)]
pub struct Directory {
    root: PathBuf,
}

/// One backup.
#[derive(Debug)]
pub struct Backup {
    /// Its name: when it was begun.
    pub name: String,
    /// What it has.
    pub manifest: Manifest,
    directory: PathBuf,
}

// === impl Directory ===

impl Directory {
    /// Opens a directory that has backups.
    ///
    /// # Errors
    ///
    /// [`Error::NotBackups`], [`Error::Newer`].
    pub fn open(root: &Path) -> Result<Self, Error> {
        let directory = Self {
            root: root.to_owned(),
        };
        match directory.read_format()? {
            true => Ok(directory),
            false => Err(Error::NotBackups {
                path: root.to_owned(),
                why: format!("it has no {FORMAT}"),
            }),
        }
    }

    /// Opens a directory for a new backup. It is made if it does not exist.
    ///
    /// # Errors
    ///
    /// As [`Directory::open`]; when it cannot be written.
    pub fn create(root: &Path) -> Result<Self, Error> {
        let directory = Self {
            root: root.to_owned(),
        };
        let mut builder = fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(root);
        made.map_err(Error::on("make directory", root))?;
        if !directory.read_format()? {
            for entry in fs::read_dir(root).map_err(Error::on("list", root))? {
                let name = entry.map_err(Error::on("list", root))?.file_name();
                if name != "lost+found" {
                    return Err(Error::NotBackups {
                        path: root.to_owned(),
                        why: format!("it has no {FORMAT} but holds {}", name.display()),
                    });
                }
            }
            let path = root.join(FORMAT);
            write_durably(&path, format!("{FORMAT_PREFIX}{VERSION}\n").as_bytes())?;
        }
        let backups = root.join(BACKUPS);
        fs::create_dir_all(&backups).map_err(Error::on("make directory", &backups))?;
        flush(root)?;
        Ok(directory)
    }

    fn read_format(&self) -> Result<bool, Error> {
        let path = self.root.join(FORMAT);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(Error::on("read", &path)(error)),
        };
        let text = text.trim_end();
        let version = text.strip_prefix(FORMAT_PREFIX);
        match version.and_then(|version| version.parse::<u64>().ok()) {
            Some(1..=VERSION) => Ok(true),
            Some(version) if version > VERSION => Err(Error::Newer {
                what: self.root.display().to_string(),
                version,
                known: VERSION,
            }),
            _ => Err(Error::NotBackups {
                path: self.root.clone(),
                why: format!("its {FORMAT} says {text:?}"),
            }),
        }
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Keeps other processes from making a backup here until the value is dropped.
    pub(super) fn lock(&self) -> Result<File, Error> {
        let path = self.root.join(LOCK);
        let mut options = fs::OpenOptions::new();
        let opened = options.create(true).truncate(false).write(true).open(&path);
        let file = opened.map_err(Error::on("open", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(Error::Busy(self.root.clone())),
            Err(TryLockError::Error(error)) => Err(Error::on("lock", &path)(error)),
        }
    }

    /// Opens the store with the releases of all backups.
    pub(super) fn releases(&self) -> Result<Store, Error> {
        let config = local::Config {
            path: self.root.join(RELEASES),
            free_bytes_min: 0,
            ..local::Config::default()
        };
        Ok(Store::Local(Local::open(&config, Clock::System)?))
    }

    /// Returns the names of the backups, the oldest first.
    ///
    /// # Errors
    ///
    /// [`Error::File`] when they cannot be listed.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let names = self.listed()?.into_iter();
        Ok(names.filter(|name| !name.ends_with(PART)).collect())
    }

    fn listed(&self) -> Result<Vec<String>, Error> {
        let directory = self.root.join(BACKUPS);
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::on("list", &directory)(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(Error::on("list", &directory))?.file_name();
            names.extend(name.into_string());
        }
        names.sort();
        Ok(names)
    }

    /// Opens a backup; the newest one without a name.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`]; [`Error::Newer`] when a newer program wrote it.
    pub fn backup(&self, name: Option<&str>) -> Result<Backup, Error> {
        let names = self.names()?;
        let name = match name {
            Some(name) if names.iter().any(|known| known == name) => name.to_owned(),
            Some(name) => return Err(Error::Unknown(name.to_owned())),
            None => {
                let newest = names.last().cloned();
                let none = || Error::Unknown(format!("in {}", self.root.display()));
                newest.ok_or_else(none)?
            }
        };
        let directory = self.root.join(BACKUPS).join(&name);
        let path = directory.join(MANIFEST);
        let bytes = fs::read(&path).map_err(Error::on("read", &path))?;
        if let Some(version) = newer_than(VERSION, &bytes) {
            return Err(Error::Newer {
                what: format!("the backup {name}"),
                version,
                known: VERSION,
            });
        }
        let manifest = serde_json::from_slice(&bytes)
            .map_err(|error| Error::Damaged(vec![format!("{}: {error}", path.display())]))?;
        Ok(Backup {
            name,
            manifest,
            directory,
        })
    }

    /// Makes the directory of a new backup.
    pub(super) fn begin(&self, name: &str) -> Result<PathBuf, Error> {
        for left in self.listed()?.iter().filter(|name| name.ends_with(PART)) {
            let path = self.root.join(BACKUPS).join(left);
            fs::remove_dir_all(&path).map_err(Error::on("remove", &path))?;
        }
        let path = self.root.join(BACKUPS).join(format!("{name}{PART}"));
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(Error::on("make directory", &path))?;
        Ok(path)
    }

    /// Gives a finished backup its name.
    pub(super) fn end(&self, name: &str, manifest: &Manifest) -> Result<(), Error> {
        let above = self.root.join(BACKUPS);
        let part = above.join(format!("{name}{PART}"));
        let bytes = serde_json::to_vec_pretty(manifest).expect("texts and numbers are JSON");
        write_durably(&part.join(MANIFEST), &bytes)?;
        let path = above.join(name);
        fs::rename(&part, &path).map_err(Error::on("rename to", &path))?;
        flush(&above)
    }

    /// Removes a backup. Its releases stay.
    pub(super) fn remove(&self, name: &str) -> Result<(), Error> {
        let above = self.root.join(BACKUPS);
        let part = above.join(format!("{name}{PART}"));
        let path = above.join(name);
        fs::rename(&path, &part).map_err(Error::on("rename", &path))?;
        flush(&above)?;
        fs::remove_dir_all(&part).map_err(Error::on("remove", &part))
    }
}

// === impl Backup ===

impl Backup {
    /// Opens the archive.
    pub(super) fn archive<'k>(&self, key: &'k SealKey) -> Result<Reader<'k>, Error> {
        Reader::open(&self.directory.join(ARCHIVE), &self.name, key)
    }

    /// Returns the path of the archive, for messages.
    pub(super) fn archive_path(&self) -> PathBuf {
        self.directory.join(ARCHIVE)
    }
}

/// Writes a file that does not exist, or replaces it, and flushes it with its directory.
fn write_durably(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let partial = path.with_extension("partial");
    let write = || {
        fs::write(&partial, bytes)?;
        File::open(&partial)?.sync_all()?;
        fs::rename(&partial, path)
    };
    write().map_err(Error::on("write", path))?;
    flush(path.parent().unwrap_or(Path::new(".")))
}

fn flush(directory: &Path) -> Result<(), Error> {
    let flushed = File::open(directory).and_then(|open| open.sync_all());
    flushed.map_err(Error::on("flush directory", directory))
}
