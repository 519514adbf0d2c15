//! A branch of a git repository, read from the object database of a mirror.
//!
//! A *mirror* is a bare repository in our directory; each project has its own. It has the newest
//! commit of each branch that was fetched. [`fetch`] updates one branch; [`open`] lists the tree
//! of the commit and reads blobs on demand. The two run in different processes: only the first can
//! reach the network, and only it has credentials. There is no working tree, so no file, link or
//! program of an author is ever created on this disk. For documentation that shows the days of its
//! last changes, [`fetch_history`] fetches the older commits, without the contents of files.
//!
//! **Why the git program and not a library.** Operators know its transports and credentials (`ssh`
//! with its keys, https with its proxies), and security fixes come with the system. A fetch that
//! hangs is a process that can be killed, with all processes that it has started. A hostile pack is
//! parsed under the limits of that process. The cost is a few milliseconds for each call, and a
//! build makes five calls.
//!
//! * **Invariant:** git reads only our configuration: no settings of the system, the user or the
//!   repository, no hooks, no attributes, no prompts ([`program`]).
//! * **Invariant:** only the transports of [`Config`] are used. [`address`] checks this before
//!   the fetch, and git checks it during the fetch, also for redirects.
//! * **Invariant:** git connects only to an address that was checked ([`destination`]).
//! * **Invariant:** no credential is on a command line, in an error or in a log. Credentials are
//!   in files; a URL with a password is rejected.
//! * **Invariant:** a mirror never grows beyond its limit ([`Mirror`]): the kernel ends a file that
//!   would be longer, and the sum of the files is measured while git fetches.
//! * A mirror is a cache: when a crash or a full disk has damaged it, it is created again.
//!
//! Contents are as committed: `.gitattributes` (line ends, filters, `export-ignore`) is not
//! applied. A Git LFS pointer is read as the committed text and gets a diagnostic. A submodule is
//! listed, but its files are not.
//!
//! Sources: `git-fetch(1)`, `git-ls-tree(1)`, `git-cat-file(1)`, `git(1)` on
//! `GIT_ALLOW_PROTOCOL`, `git-credential-store(1)`.

mod address;
mod credential;
mod destination;
mod failure;
mod history;
pub mod local;
mod mirror;
mod program;
mod reader;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{LookupError, Tree, TreePath};
use crate::diagnostic::Diagnostic;
use crate::site::PrivateHosts;

pub use address::{Address, InvalidAddress};
pub use credential::{Credential, Secrets, choose};
use destination::Destination;
pub use failure::{FetchError, GitError};
pub use history::{fetch_history, history};
pub use mirror::{Mirror, prefix, remove_earlier};
use program::{Extent, Git, SshFiles};
pub(super) use reader::Reader;

/// The most paths in each list of changes.
const CHANGES_MAX: usize = 2000;
/// The file in a mirror that holds the size of the mirror after its last cleaning.
const CLEAN_SIZE: &str = "waypost-clean-size";
/// A mirror that has grown by less than this is not cleaned.
const GROWTH_BYTES_MIN: u64 = 1 << 20;
/// The files of a fetch with the key and the host keys of ssh.
const SSH_KEY: &str = "ssh-key";
const SSH_KNOWN_HOSTS: &str = "ssh-known-hosts";

/// The directory of the mirrors, the allowed transports, and the limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The directory of mirrors.
    pub mirrors: PathBuf,
    /// The git program.
    pub program: PathBuf,
    /// Directories of this machine whose repositories may be fetched. By default there are none.
    pub local: Vec<PathBuf>,
    /// The hosts that may have an address outside the public Internet.
    pub private_hosts: PrivateHosts,
    /// Whether `http://` is allowed; by default only `https` and `ssh` are allowed.
    pub plaintext: bool,
    /// The credentials for hosts and parts of hosts.
    pub credentials: Vec<Credential>,
    /// The largest number of files in a repository.
    pub entries_max: usize,
    /// The longest file that is read, in bytes.
    pub file_bytes_max: u64,
    /// The largest size of a mirror, in bytes.
    pub mirror_bytes_max: u64,
    /// The largest size of all mirrors together, in bytes.
    pub mirrors_bytes_max: u64,
    /// How many bytes of the disk stay free.
    pub free_bytes_min: u64,
}

/// The arguments of one fetch, besides the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Fetching<'f> {
    /// The directory of the mirror.
    pub mirror: &'f Path,
    /// The largest size of the mirror, in bytes.
    pub bytes_max: u64,
    /// The least number of bytes per second, on average after the grace period; 0 for any.
    pub rate_min: u64,
    /// How long the rate is not considered.
    pub grace: Duration,
    /// The credentials for the host.
    pub secrets: &'f Secrets,
    /// A directory for the files of ssh. Only ssh reads it.
    pub scratch: &'f Path,
}

/// The newest commit of a branch, after a fetch.
#[derive(Debug)]
pub struct Head {
    git: Git,
    /// The commit's object id.
    pub commit: Box<str>,
    /// Its whole message.
    pub message: Box<str>,
    /// Its author's name.
    pub author: Box<str>,
}

/// The changes between two commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Paths of new files.
    pub added: Vec<Box<str>>,
    /// Paths of files whose content or mode has changed.
    pub modified: Vec<Box<str>>,
    /// Paths of removed files.
    pub removed: Vec<Box<str>>,
}

/// Why the tree of a commit could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// git could not read the objects of the mirror.
    #[error("read the commit")]
    Git(#[from] GitError),
    /// The repository has too many files.
    #[error("repository has more than {limit} files")]
    TooManyEntries {
        /// How many are allowed.
        limit: usize,
    },
    /// The directory of the documentation does not exist.
    #[error("find the documentation")]
    Docs(#[source] LookupError),
}

/// Updates one branch in the mirror of a repository, and returns its newest commit.
///
/// It blocks until the host has responded. The caller holds the [`Mirror`], and limits the time by
/// killing the process group.
///
/// # Errors
///
/// [`FetchError`] says what failed, and whether another attempt may succeed.
pub fn fetch(
    config: &Config,
    address: &Address,
    fetching: &Fetching<'_>,
) -> Result<Head, FetchError> {
    let git = git_of(config, address, fetching)?;
    let updated = update(&git, address, fetching, Extent::Newest);
    updated.map_err(|error| of_room(error, config, fetching))?;
    let [commit, author, message] = git.head(address.branch())?;
    Ok(Head {
        git,
        commit,
        message,
        author,
    })
}

/// Returns the error of a fetch into a mirror that was given less room than one may use: others
/// had the rest, so a repository that needs more is not too large, and a later attempt may succeed.
fn of_room(error: FetchError, config: &Config, fetching: &Fetching<'_>) -> FetchError {
    match error {
        FetchError::TooLarge(_) | FetchError::OverQuota { .. }
            if fetching.bytes_max < config.mirror_bytes_max =>
        {
            FetchError::Full
        }
        error => error,
    }
}

/// Fetches a branch into a repository, which is created again if it is damaged or too large.
fn update(
    git: &Git,
    address: &Address,
    fetching: &Fetching<'_>,
    extent: Extent,
) -> Result<(), FetchError> {
    let is_new = !fetching.mirror.join("HEAD").exists();
    let renew = || {
        mirror::clear(fetching.mirror).map_err(|source| FetchError::Mirror {
            path: fetching.mirror.to_owned(),
            source,
        })?;
        attempt(git, address, fetching, extent)
    };
    attempt(git, address, fetching, extent).or_else(|error| match error {
        FetchError::Damaged(_) => {
            log::warn!(target: "source", "a mirror is damaged and is created again: {error}");
            renew()
        }
        // Objects of earlier fetches may take the space.
        FetchError::TooLarge(_) | FetchError::OverQuota { .. } if !is_new => {
            log::info!(target: "source", "a mirror is too large and is created again: {error}");
            renew()
        }
        error => Err(error),
    })
}

fn attempt(
    git: &Git,
    address: &Address,
    fetching: &Fetching<'_>,
    extent: Extent,
) -> Result<(), FetchError> {
    let directory = fetching.mirror;
    if !directory.join("HEAD").exists() {
        mirror::clear(directory).map_err(|source| FetchError::Mirror {
            path: directory.to_owned(),
            source,
        })?;
        git.init()?;
    }
    clear_leftovers(directory);
    let (began, before) = (Instant::now(), mirror::size(directory));
    let mut watch = || {
        let bytes = mirror::size(directory);
        if bytes > fetching.bytes_max {
            let limit = fetching.bytes_max;
            return Err(FetchError::OverQuota { limit });
        }
        let took = began.elapsed();
        let least = fetching.rate_min.saturating_mul(took.as_secs());
        if took > fetching.grace && bytes.saturating_sub(before) < least {
            let least = fetching.rate_min;
            return Err(FetchError::TooSlow { least });
        }
        Ok(())
    };
    git.fetch(address, extent, &mut watch)?;
    match mirror::size(directory) > fetching.bytes_max {
        true => Err(FetchError::OverQuota {
            limit: fetching.bytes_max,
        }),
        false => Ok(()),
    }
}

/// Opens the tree of a commit in a mirror, with its documentation at `docs`.
///
/// # Errors
///
/// [`OpenError`]. Files that are left out get a diagnostic.
pub fn open(
    config: &Config,
    mirror: &Path,
    commit: &str,
    docs: &TreePath,
) -> Result<(Tree, Vec<Diagnostic>), OpenError> {
    let git = Git::reading(config, mirror);
    let (reader, listing, diagnostics) =
        Reader::open(&git, commit, config.entries_max, config.file_bytes_max)?;
    let tree = Tree::new(listing, super::Contents::Git(reader));
    let found = tree.lookup(docs).map_err(OpenError::Docs)?;
    if found.kind != super::Kind::Directory {
        let path = found.path;
        return Err(OpenError::Docs(LookupError::NotADirectory { path }));
    }
    Ok((tree.with_docs_root(found.path), diagnostics))
}

/// Returns the commands of one fetch, with its credentials.
fn git_of(config: &Config, address: &Address, fetching: &Fetching<'_>) -> Result<Git, FetchError> {
    let Fetching {
        mirror, secrets, ..
    } = fetching;
    let ssh = SshFiles {
        key: scratch_file(fetching, SSH_KEY, secrets.ssh_key.as_deref())?,
        known_hosts: scratch_file(
            fetching,
            SSH_KNOWN_HOSTS,
            secrets.ssh_known_hosts.as_deref(),
        )?,
    };
    let destination = Destination::of(config, address)?;
    let login = secrets.login.as_ref();
    Ok(Git::fetching(
        config,
        mirror,
        address,
        &destination,
        login,
        &ssh,
    ))
}

/// Writes a file of ssh that only its owner can read.
fn scratch_file(
    fetching: &Fetching<'_>,
    name: &str,
    content: Option<&[u8]>,
) -> Result<Option<PathBuf>, FetchError> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    let Some(content) = content else {
        return Ok(None);
    };
    let path = fetching.scratch.join(name);
    let write = || {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(&path)?.write_all(content)
    };
    write().map_err(|source| FetchError::Mirror {
        path: path.clone(),
        source,
    })?;
    Ok(Some(path))
}

/// Removes the files that killed git processes have left: lock files, and packs that are not
/// complete. The caller holds the mirror, so no git is running.
fn clear_leftovers(directory: &Path) {
    let own = [
        "HEAD.lock",
        "config.lock",
        "packed-refs.lock",
        "shallow.lock",
        "gc.pid",
        "gc.pid.lock",
        "gc.log",
    ];
    let mut leftovers = Vec::from(own.map(|name| directory.join(name)));
    let mut directories = vec![directory.join("refs"), directory.join("objects")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                directories.push(path);
            } else if name.ends_with(".lock") || name.starts_with("tmp_") {
                // No branch has such a name: git-check-ref-format(1), rule 1. No object has one.
                leftovers.push(path);
            }
        }
    }
    for leftover in leftovers {
        // Usually there is none. If one cannot be removed, git reports it.
        let _ = std::fs::remove_file(leftover);
    }
}

/// Removes the objects of a repository that no branch needs any more, if they are a third of it or
/// more. A history in it has its own turn.
fn clean(git: &Git, directory: &Path) {
    let size = || {
        let history = mirror::size(&history::directory(directory));
        mirror::size(directory).saturating_sub(history)
    };
    let note = directory.join(CLEAN_SIZE);
    let clean = std::fs::read_to_string(&note).ok();
    let clean: Option<u64> = clean.and_then(|text| text.trim().parse().ok());
    let is_superfluous = |clean: u64| {
        size()
            > clean
                .saturating_add(clean / 2)
                .saturating_add(GROWTH_BYTES_MIN)
    };
    if clean.is_some_and(|clean| !is_superfluous(clean)) {
        return;
    }
    if clean.is_some()
        && let Err(error) = git.prune()
    {
        log::warn!(target: "source", "{error}");
        return;
    }
    if let Err(error) = std::fs::write(&note, size().to_string()) {
        log::warn!(target: "source", "cannot record the size of a mirror: {error}");
    }
}

// === impl Config ===

impl Config {
    /// Returns the default configuration with this directory of mirrors.
    #[must_use]
    pub fn new(mirrors: &Path) -> Self {
        Self {
            mirrors: mirrors.to_owned(),
            program: "git".into(),
            local: Vec::new(),
            private_hosts: PrivateHosts::default(),
            plaintext: false,
            credentials: Vec::new(),
            entries_max: 1_000_000,
            file_bytes_max: 100 << 20,
            mirror_bytes_max: 2 << 30,
            mirrors_bytes_max: 100 << 30,
            free_bytes_min: 512 << 20,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new(Path::new("var/git"))
    }
}

// === impl Head ===

impl Head {
    /// Returns the changes since an earlier commit. Each list has at most [`CHANGES_MAX`] paths.
    ///
    /// Returns `None` when the mirror no longer has that commit, for example after a rewritten
    /// history, and when there are more than `entries_max` files.
    #[must_use]
    pub fn changes_since(&self, commit: &str, entries_max: usize) -> Option<Changes> {
        // A few trees that contain each other can have millions of files, and git holds all changes
        // in memory before it writes the first one.
        let mut names = self.git.names(&self.commit).ok()?;
        for _ in 0..=entries_max {
            if names.next().ok()?.is_none() {
                return self.list_changes(commit);
            }
        }
        None
    }

    fn list_changes(&self, commit: &str) -> Option<Changes> {
        let mut listed = self.git.changes(commit, &self.commit).ok()?;
        let mut changes = Changes::default();
        while let Some(kind) = listed.next().ok()?.map(<[u8]>::to_vec) {
            let path = listed.next().ok()??;
            let paths = match &*kind {
                b"A" => &mut changes.added,
                b"D" => &mut changes.removed,
                _ => &mut changes.modified,
            };
            if paths.len() < CHANGES_MAX {
                paths.push(String::from_utf8_lossy(path).into());
            }
        }
        Some(changes)
    }

    /// Removes the objects that no branch needs any more, if they are a third of the mirror or
    /// more.
    ///
    /// Call it after [`Head::changes_since`], which needs the earlier commit. If it fails, the next
    /// fetch tries again.
    pub fn clean(&self, mirror: &Path) {
        clean(&self.git, mirror);
    }
}
