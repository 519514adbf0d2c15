//! The paths of a local store, and its locks.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::digest::Digest;
use crate::error::chain;
use crate::release::ReleaseId;
use crate::site::{Host, ProjectId};
use crate::store::durable::{self, FileError};
use crate::store::shards::shard_of;

/// The layout that is written, and the highest that is read.
pub const FORMAT_VERSION: u32 = 1;

const FORMAT: &str = "FORMAT";
const FORMAT_PREFIX: &str = "waypost store ";
/// The name of `FORMAT` while the store is being restored.
const INCOMPLETE: &str = "FORMAT.incomplete";
/// The name of the backup that is being restored.
const RESTORED: &str = "FORMAT.backup";
/// `mkfs` creates it in the root of every ext file system.
const LOST: &str = "lost+found";
const LOCK: &str = "lock";
/// The directory of files that are being written, below that of the store.
const TEMP: &str = "temp";
const CONTENT: &str = "content";
const INVENTORIES: &str = "inventories";
const POINTERS: &str = "pointers";
const OWNERS: &str = "owners";
const SITES: &str = "sites";
const SITES_LOCK: &str = "sites.lock";
const SITES_JOURNAL: &str = "sites.journal";
const HOSTS: &str = "hosts";
const AUDIT: &str = "audit";
const DOMAIN_CHECKS: &str = "domain-checks";
const DOMAIN_CHECK_REQUESTS: &str = "domain-check-requests";
const NUMBERS: &str = "numbers";
const VERIFICATION_LOCK: &str = "verification.lock";
const VERIFICATION_KEY: &str = "verification-key";
/// How often a lock is tried that another process has.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);
const SHARDED: [&str; 4] = [CONTENT, INVENTORIES, POINTERS, SITES];

/// The paths of a store.
#[derive(Debug)]
pub(super) struct Layout {
    root: PathBuf,
}

/// A lock that ends when this is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
}

/// A shared lock of the store, and the directory for the temporary files of its holder. The sweep
/// waits for it before it removes temporary files.
#[derive(Debug)]
pub struct WriterLock {
    temp: PathBuf,
    _lock: Lock,
}

/// Which other locks are possible at the same time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Access {
    /// Other shared ones. Writers take it, because they only add files.
    Shared,
    /// None. The sweep takes it, which removes files, and a promotion, which replaces a pointer.
    Exclusive,
}

/// Why a directory cannot be used as a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A newer program made it.
    #[error(
        "the store in {} has format {version}; this program reads formats up to {FORMAT_VERSION}",
        path.display()
    )]
    Newer {
        /// The directory.
        path: PathBuf,
        /// Its format.
        version: u64,
    },
    /// It is not empty, and has no `FORMAT` that this program can read.
    #[error("{} is not a store: {why}", path.display())]
    NotAStore {
        /// The directory.
        path: PathBuf,
        /// The reason why it is not a store.
        why: String,
    },
    /// A restore of a backup into it has begun and has not ended.
    #[error(
        "the restore of a backup into {} was interrupted: run `waypost restore` again",
        .0.display()
    )]
    Incomplete(PathBuf),
    /// An operation of the file system failed.
    #[error("open the store")]
    File(#[from] FileError),
}

// === impl Layout ===

impl Layout {
    /// Names the paths of a store without looking at it.
    pub(super) fn unopened(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// Opens a store and creates missing directories.
    ///
    /// `FORMAT` is written last, when all directories are durable. A directory without it must be
    /// empty, or hold only what a killed process of this program has created.
    pub(super) fn open(root: &Path) -> Result<Self, OpenError> {
        let layout = Self::unopened(root);
        let complete = layout.is_complete()?;
        if !complete {
            fs::create_dir_all(root).map_err(FileError::on("make directory", root))?;
        }
        let writer = match layout.lock_for_writer() {
            Ok(writer) => writer,
            // A complete store can be read even if it cannot be written; its writers report the
            // error.
            Err(error) if complete && is_for_writers(error.kind()) => {
                log::warn!(target: "store", "the store can only be read: {}", chain(&error));
                return Ok(layout);
            }
            Err(error) => return Err(error.into()),
        };
        let mut is_new = make_directory(writer.temp())?;
        for sharded in SHARDED {
            let above = root.join(sharded);
            is_new |= make_directory(&above)?;
            let mut made = false;
            for shard in 0..=u8::MAX {
                made |= make_directory(&above.join(hex::encode([shard])))?;
            }
            if made || !complete {
                durable::flush_directory(&above)?;
            }
        }
        if is_new || !complete {
            durable::flush_directory(root)?;
        }
        if !complete {
            if let Some(above) = root.parent().filter(|above| !above.as_os_str().is_empty()) {
                durable::flush_directory(above)?;
            }
            let format = format!("{FORMAT_PREFIX}{FORMAT_VERSION}\n");
            durable::replace(writer.temp(), &root.join(FORMAT), format.as_bytes())?;
        }
        Ok(layout)
    }

    /// Opens a store to read it, and creates nothing. A directory that is missing or empty has
    /// nothing to read.
    pub(super) fn open_to_read(root: &Path) -> Result<Self, OpenError> {
        let layout = Self::unopened(root);
        layout.is_complete()?;
        Ok(layout)
    }

    /// Returns whether there is a store. `false` if there may be one; an error for a directory of
    /// something else.
    fn is_complete(&self) -> Result<bool, OpenError> {
        if self.read_format()? {
            return Ok(true);
        }
        match self.reject_other_files() {
            Ok(()) => Ok(false),
            // Another process may have completed the store in between, and added files.
            Err(_) if self.read_format()? => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Returns whether there is a store; an error when this program cannot use it.
    fn read_format(&self) -> Result<bool, OpenError> {
        let path = self.root.join(FORMAT);
        let not_store_error = |why: String| OpenError::NotAStore {
            path: self.root.clone(),
            why,
        };
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(FileError::on("read", &path)(error).into()),
        };
        let version = text
            .trim_end()
            .strip_prefix(FORMAT_PREFIX)
            .and_then(|version| version.parse::<u64>().ok())
            .ok_or_else(|| not_store_error(format!("its {FORMAT} says {:?}", text.trim_end())))?;
        match version {
            0 => Err(not_store_error(format!("there is no format {version}"))),
            _ if version > u64::from(FORMAT_VERSION) => Err(OpenError::Newer {
                path: self.root.clone(),
                version,
            }),
            _ => Ok(true),
        }
    }

    /// Rejects a directory with files that are not ours.
    fn reject_other_files(&self) -> Result<(), OpenError> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(FileError::on("list", &self.root)(error).into()),
        };
        for entry in entries {
            let entry = entry.map_err(FileError::on("list", &self.root))?;
            let name = entry.file_name();
            if name == INCOMPLETE {
                return Err(OpenError::Incomplete(self.root.clone()));
            }
            let ours = [LOCK, TEMP, RESTORED]
                .iter()
                .chain(&SHARDED)
                .any(|our| name == *our);
            if !ours && name != LOST {
                return Err(OpenError::NotAStore {
                    path: self.root.clone(),
                    why: format!("it has no {FORMAT} but holds {}", name.display()),
                });
            }
        }
        Ok(())
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    fn temp(&self) -> PathBuf {
        self.root.join(TEMP)
    }

    pub(super) fn content(&self, digest: &Digest) -> PathBuf {
        self.sharded(CONTENT, digest, "")
    }

    pub(super) fn inventory(&self, release: ReleaseId) -> PathBuf {
        self.sharded(INVENTORIES, release.digest(), ".json")
    }

    pub(super) fn pointer(&self, project: &ProjectId) -> PathBuf {
        self.named(POINTERS, project.as_str())
    }

    pub(super) fn site_record(&self, project: &ProjectId) -> PathBuf {
        self.named(SITES, project.as_str())
    }

    pub(super) fn host_claim(&self, host: &Host) -> PathBuf {
        // A host may be longer than the name of a file.
        self.sharded(HOSTS, &Digest::of(host.as_str().as_bytes()), ".json")
    }

    pub(super) fn sites_lock(&self) -> PathBuf {
        self.root.join(SITES_LOCK)
    }

    pub(super) fn sites_journal(&self) -> PathBuf {
        self.root.join(SITES_JOURNAL)
    }

    pub(super) fn audit(&self) -> PathBuf {
        self.root.join(AUDIT)
    }

    pub(super) fn domain_check(&self, project: &ProjectId, host: &Host) -> PathBuf {
        self.sharded(DOMAIN_CHECKS, &domain_of(project, host), ".json")
    }

    pub(super) fn domain_check_request(&self, project: &ProjectId, host: &Host) -> PathBuf {
        let name = domain_of(project, host).to_string();
        self.domain_check_requests().join(name)
    }

    pub(super) fn domain_check_requests(&self) -> PathBuf {
        self.root.join(DOMAIN_CHECK_REQUESTS)
    }

    /// Returns the directory of the numbers of a project.
    pub(super) fn numbers(&self, project: &ProjectId) -> PathBuf {
        let name = project.as_str();
        self.shard_of(NUMBERS, name).join(name)
    }

    pub(super) fn number_shards(&self) -> impl Iterator<Item = PathBuf> {
        self.shards(NUMBERS)
    }

    pub(super) fn verification_lock(&self) -> PathBuf {
        self.root.join(VERIFICATION_LOCK)
    }

    pub(super) fn verification_key(&self) -> PathBuf {
        self.root.join(VERIFICATION_KEY)
    }

    /// Returns the path of a file that is named by a project.
    fn named(&self, sharded: &str, name: &str) -> PathBuf {
        self.shard_of(sharded, name).join(format!("{name}.json"))
    }

    /// Returns the directory of a name in a directory that is divided by digests.
    fn shard_of(&self, sharded: &str, name: &str) -> PathBuf {
        self.root.join(sharded).join(hex::encode([shard_of(name)]))
    }

    /// Returns the paths in the root that hold state which is neither releases nor pointers, in
    /// order: files and directories of this program that are neither temporary nor locks.
    pub(super) fn other_state(&self) -> Result<Vec<PathBuf>, FileError> {
        let on = || FileError::on("list", &self.root);
        let mut paths = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(on())? {
            let entry = entry.map_err(on())?;
            let name = entry.file_name();
            let is_other = [
                FORMAT,
                LOCK,
                TEMP,
                OWNERS,
                CONTENT,
                INVENTORIES,
                POINTERS,
                SITES_LOCK,
                RESTORED,
                LOST,
            ];
            if !is_other.iter().any(|other| name == *other) {
                paths.push(entry.path());
            }
        }
        paths.sort();
        Ok(paths)
    }

    /// Returns the paths of site records and of the claims of hosts.
    pub(super) fn record_state(&self) -> impl Iterator<Item = PathBuf> {
        [SITES, HOSTS, SITES_JOURNAL]
            .into_iter()
            .map(|name| self.root.join(name))
    }

    /// Makes a new store unusable until [`Layout::complete`] is called, also after a kill.
    pub(super) fn begin(&self, backup: &str) -> Result<(), FileError> {
        durable::replace(&self.temp(), &self.root.join(RESTORED), backup.as_bytes())?;
        self.rename_format(FORMAT, INCOMPLETE)
    }

    /// Ends what [`Layout::begin`] has begun.
    pub(super) fn complete(&self) -> Result<(), FileError> {
        self.rename_format(INCOMPLETE, FORMAT)?;
        let path = self.root.join(RESTORED);
        durable::together(|changes| changes.remove(&path))
    }

    fn rename_format(&self, from: &str, to: &str) -> Result<(), FileError> {
        let to = self.root.join(to);
        fs::rename(self.root.join(from), &to).map_err(FileError::on("rename to", &to))?;
        durable::flush_directory(&self.root)
    }

    pub(super) fn content_shards(&self) -> impl Iterator<Item = PathBuf> {
        self.shards(CONTENT)
    }

    pub(super) fn inventory_shards(&self) -> impl Iterator<Item = PathBuf> {
        self.shards(INVENTORIES)
    }

    pub(super) fn pointer_shards(&self) -> impl Iterator<Item = PathBuf> {
        self.shards(POINTERS)
    }

    pub(super) fn site_shards(&self) -> impl Iterator<Item = PathBuf> {
        self.shards(SITES)
    }

    pub(super) fn host_shards(&self) -> impl Iterator<Item = PathBuf> {
        self.shards(HOSTS)
    }

    fn shards(&self, sharded: &str) -> impl Iterator<Item = PathBuf> + use<> {
        let above = self.root.join(sharded);
        (0..=u8::MAX).map(move |shard| above.join(hex::encode([shard])))
    }

    fn sharded(&self, sharded: &str, digest: &Digest, extension: &str) -> PathBuf {
        let [first, rest @ ..] = digest.as_bytes();
        let mut path = self.root.join(sharded);
        path.push(hex::encode([*first]));
        path.push(hex::encode(rest) + extension);
        path
    }

    /// Locks the releases of an owner; `None` if another process has the lock all this time.
    pub(super) fn lock_owner(
        &self,
        owner: &str,
        timeout: Duration,
    ) -> Result<Option<Lock>, FileError> {
        let directory = self.root.join(OWNERS);
        make_directory(&directory)?;
        // The name of an owner may have any length and characters.
        let name = Digest::of(owner.as_bytes()).to_string();
        let path = directory.join(format!("{}.lock", &name[..32]));
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        let file = options.open(&path).map_err(FileError::on("open", &path))?;
        let since = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Lock { file, path })),
                Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(FileError::on("lock", &path)(error));
                }
                Err(_other) if since.elapsed() > timeout => return Ok(None),
                Err(_other) => std::thread::sleep(LOCK_INTERVAL),
            }
        }
    }

    /// Locks the store for a process that writes files.
    pub(super) fn lock_for_writer(&self) -> Result<WriterLock, FileError> {
        Ok(WriterLock {
            _lock: self.lock(Access::Shared)?,
            temp: self.temp(),
        })
    }

    /// Lists the temporary files.
    pub(super) fn temporary_files(&self) -> Result<Vec<PathBuf>, FileError> {
        super::sweep::list(&self.temp())
    }

    /// Locks the whole store.
    pub(super) fn lock(&self, access: Access) -> Result<Lock, FileError> {
        self.lock_file(&self.root.join(LOCK), access)
    }

    /// Locks a file, which is created if it does not exist.
    pub(super) fn lock_file(&self, path: &Path, access: Access) -> Result<Lock, FileError> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(FileError::on("open", path))?;
        Lock::take(file, path.to_owned(), access)
    }
}

/// Names a domain of a project. Neither contains a slash.
fn domain_of(project: &ProjectId, host: &Host) -> Digest {
    Digest::of(format!("{project}/{host}").as_bytes())
}

// === impl WriterLock ===

impl WriterLock {
    /// Locks the store in a directory, for a process that writes files on the same file system.
    ///
    /// # Errors
    ///
    /// When the lock file cannot be opened for writing or locked.
    pub fn take(root: &Path) -> Result<Self, FileError> {
        Layout::unopened(root).lock_for_writer()
    }

    /// Returns the directory for temporary files.
    pub(in crate::store) fn temp(&self) -> &Path {
        &self.temp
    }
}

// === impl Lock ===

impl Lock {
    /// Waits for a lock. On Unix [`File::lock`] is `flock(2)`: it also locks directories, and
    /// the kernel releases it when the process dies.
    fn take(file: File, path: PathBuf, access: Access) -> Result<Self, FileError> {
        loop {
            let locked = match access {
                Access::Shared => file.lock_shared(),
                Access::Exclusive => file.lock(),
            };
            match locked {
                Ok(()) => return Ok(Self { file, path }),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FileError::on("lock", &path)(error)),
            }
        }
    }

    /// Flushes the locked directory.
    pub(super) fn flush(&self) -> Result<(), FileError> {
        self.file
            .sync_all()
            .map_err(FileError::on("flush directory", &self.path))
    }
}

/// Returns whether a restore into a directory has begun and has not ended.
pub(super) fn is_incomplete(root: &Path) -> bool {
    root.join(INCOMPLETE).exists()
}

/// Returns the name of the backup that is being restored into a directory.
pub(super) fn restored_backup(root: &Path) -> Option<String> {
    fs::read_to_string(root.join(RESTORED)).ok()
}

/// Returns whether a directory says that it is a store, of any format.
pub(super) fn has_format(root: &Path) -> bool {
    root.join(FORMAT).exists()
}

/// Returns whether an error prevents writing but not reading.
fn is_for_writers(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
    )
}

/// Locks a directory exclusively.
pub(super) fn lock_directory(directory: &Path) -> Result<Lock, FileError> {
    let file = File::open(directory).map_err(FileError::on("open", directory))?;
    Lock::take(file, directory.to_owned(), Access::Exclusive)
}

/// Returns the digest in a path of [`Layout::content`] or [`Layout::inventory`].
pub(super) fn digest_of(path: &Path) -> Option<Digest> {
    let shard = path.parent()?.file_name()?.to_str()?;
    let rest = path.file_name()?.to_str()?;
    let rest = rest.strip_suffix(".json").unwrap_or(rest);
    Digest::parse(&format!("{shard}{rest}")).ok()
}

/// Creates a directory. Returns whether it was missing.
fn make_directory(path: &Path) -> Result<bool, FileError> {
    match fs::create_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(FileError::on("make directory", path)(error)),
    }
}

/// Makes a directory and those above it, if they do not exist.
pub(super) fn make(directory: &Path) -> Result<(), FileError> {
    fs::create_dir_all(directory).map_err(FileError::on("make directory", directory))
}
