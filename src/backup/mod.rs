//! Backups: a copy of everything that a node needs, made while it runs, and its restore.
//!
//! ```text
//! {directory}/
//!   FORMAT                    "waypost backup 1": the version of this layout
//!   lock                      locked while a backup is made
//!   releases/                 a store with the releases of all backups, each file once
//!   backups/{time}/manifest.json   what the backup has; written last
//!   backups/{time}/archive    the other files, encrypted
//!   backups/{time}.part/      a backup that has not ended
//! ```
//!
//! * **Order.** The queue is copied first, then pointers, then the rest. So an update that the copy
//!   of the queue calls done has its release in the copy, and one that it does not call done is
//!   built again after a restore. The fence of its pointer keeps an older release from replacing a
//!   newer one.
//! * **A queue in PostgreSQL** is copied row by row in one transaction, and put back in one.
//! * **A pointer** is added when the releases that it names were copied. If a release was removed
//!   meanwhile, the pointer is read again.
//! * **Site records** are copied under their lock, so records, claims of hosts and the audit log
//!   are of one moment.
//! * **A kill** leaves `{time}.part`, which the next backup removes. Earlier backups are not
//!   touched.
//! * **A restore** reads and checks all of a backup before it writes anything.

mod archive;
mod create;
mod directory;
mod restore;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::deploy::queue::{PostgresConfig, QueueError};
use crate::release::ReleaseId;
use crate::store::documents::KeyFileError;
use crate::store::{FileError, ReadError, SiteError, local};

pub use create::{Created, create};
pub use directory::{Backup, Directory};
pub use restore::{CheckedBackup, Restored, check, restore};

/// Where everything is on this machine that a backup holds.
#[derive(Clone, Debug)]
pub struct Places {
    /// The configuration; `None`: there is no file, and all keys have their defaults.
    pub configuration: Option<PathBuf>,
    /// The store of releases.
    pub store: local::Config,
    /// The file of the queue.
    pub queue: PathBuf,
    /// The database of the queue, in place of the file.
    pub database: Option<Database>,
    /// The directory of site records, or the file of them.
    pub sites: PathBuf,
    /// The directory of certificates by ACME.
    pub certificates: PathBuf,
    /// The directory of other certificates.
    pub tls: Option<PathBuf>,
    /// Further files that the configuration names.
    pub files: Vec<NamedFile>,
}

/// A file that the configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// The key of the configuration that names it.
    pub key: Box<str>,
    /// Its path.
    pub path: PathBuf,
    /// Whether a file that is there before a restore stays, because other programs of the machine
    /// may use it too.
    pub stays: bool,
}

/// The database of a queue.
#[derive(Clone, Debug)]
pub struct Database {
    /// How it is reached.
    pub config: PostgresConfig,
    /// The domain of the service whose queue it is.
    pub service: Box<str>,
}

/// What a backup has, in its `manifest.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the format.
    version: u64,
    /// The version of the program that wrote it.
    pub waypost: String,
    /// When it was begun, RFC 3339.
    pub begun_at: String,
    /// The absolute path of the configuration.
    pub configuration: Option<PathBuf>,
    /// How many projects have a pointer.
    pub projects: u64,
    /// How many other files the archive has.
    pub files: u64,
    /// The places that are directories: a restore makes them, also if no file is in them. Backups
    /// of earlier versions have none.
    #[serde(default)]
    directories: Vec<Box<str>>,
    /// The releases that the pointers name.
    pub releases: Vec<ReleaseId>,
    /// The releases that pointers name and that the store could not give.
    pub missing: Vec<ReleaseId>,
}

/// Why a backup could not be made, read or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation of the file system failed.
    #[error("{act} {}", path.display())]
    File {
        /// The operation.
        act: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A newer program wrote it.
    #[error(
        "{what} has version {version}, of a newer program; this program reads versions up to {known}"
    )]
    Newer {
        /// Which file.
        what: String,
        /// Its version.
        version: u64,
        /// The highest that this program reads.
        known: u64,
    },
    /// A directory holds something else.
    #[error("{} is not a directory of backups: {why}", path.display())]
    NotBackups {
        /// The directory.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// Another process makes a backup there.
    #[error("another process makes a backup in {}", .0.display())]
    Busy(PathBuf),
    /// There is no such backup.
    #[error("there is no backup {0}")]
    Unknown(String),
    /// Some of it is damaged or missing.
    #[error("{}", .0.join("\n"))]
    Damaged(Vec<String>),
    /// Files would be lost.
    #[error("{}", .0.join("\n"))]
    Occupied(Vec<String>),
    /// The configuration names no database for a queue of one.
    #[error(
        "the backup has the queue of a PostgreSQL database, and `queue.postgres.url` is not \
         configured: configure a database, or leave the queue out with `--without-queue`"
    )]
    NoDatabase,
    /// The key file cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The queue cannot be copied or put back.
    #[error("copy the queue")]
    Queue(#[from] QueueError),
    /// A store cannot be opened.
    #[error(transparent)]
    Open(#[from] local::OpenError),
    /// A store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A release cannot be copied.
    #[error("copy a release")]
    Put(#[from] crate::store::PutError),
    /// A file of a store cannot be used.
    #[error(transparent)]
    Store(#[from] FileError),
    /// The site records cannot be locked.
    #[error("lock the site records")]
    Sites(#[from] SiteError),
}

// === impl Places ===

impl Places {
    /// Returns the directories of files, each with the name of its place.
    fn trees(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let tls = self.tls.as_deref();
        let own = [
            ("certificates", &*self.certificates),
            ("sites", &*self.sites),
        ];
        own.into_iter().chain(tls.map(|tls| ("tls", tls)))
    }

    /// Returns the names of the places that are directories now.
    fn directories(&self) -> Vec<Box<str>> {
        let trees = self.trees().filter(|(_, path)| path.is_dir());
        trees.map(|(name, _)| name.into()).collect()
    }
}

// === impl Error ===

impl Error {
    /// Adds the operation and the file to an error.
    pub(crate) fn on<'a>(
        act: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> Self + use<'a> {
        move |source| Self::File {
            act,
            path: path.to_owned(),
            source,
        }
    }
}
